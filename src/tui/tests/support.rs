//! Provides a cockpit with a few runs and findings, and functions that press its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::config::KeyPreset;
use crate::domain::{
    Actor, Confidence, Disposition, Finding, FindingStatus, Kind, Priority, RunOutput, RunRecord, RunStatus, Severity,
    Suggestion, Time, TriageAction,
};
use crate::runner::FreshnessFacts;
use crate::store::triage::UndoOutcome;
use crate::store::{FindingRow, RunRow, StoreView, StoreViewBuilder};
use crate::tui::app::{App, AppOptions, MotionMode, RunBudget, SessionInfo, TurnLimits};
use crate::tui::diff::DiffOptions;
use crate::tui::glyphs;
use crate::tui::input::{KeyEvent, TerminalInput};
use crate::tui::keymap::Keymap;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, FileListState, Tab, TriageOrder};
use crate::tui::page_data::{CodeExcerpt, FilePage, FindingPage, PageData, RunPage};
use crate::tui::theme::{Background, ColorDepth, ThemeChoice, ThemeName};
use crate::tui::views::triage::{SimilarDecisions, TriageCard};
use crate::tui::{draw, update};

/// 2026-03-04 12:00:00 UTC.
pub const NOW: i64 = 1_772_625_600_000;

pub fn app(columns: u16, rows: u16) -> App {
    let mut app = App::new(AppOptions {
        columns,
        rows,
        zone: jiff::tz::TimeZone::UTC,
        session: SessionInfo {
            repository: "billing".into(),
            branch: "main".into(),
            turn_limits: TurnLimits { default: 20, by_reviewer: BTreeMap::new() },
            budget: RunBudget::default(),
            answering_reviewers: BTreeSet::new(),
            reviewer: None,
            reviews_on_open: true,
        },
        keymap: Keymap::from_preset(KeyPreset::Vim),
        themes: ThemeChoice::new(ThemeName::Auto, Background::Dark, ColorDepth::Indexed256),
        glyphs: glyphs::UNICODE,
        diff: DiffOptions::default(),
        motion: MotionMode::Full,
        mouse: true,
        plain: false,
        notices: Vec::new(),
    });
    app.now = NOW;
    app
}

pub fn run_id(n: u32) -> String {
    format!("ar_{n:026}")
}

pub fn finding_id(n: u32) -> String {
    format!("f_{n:016}")
}

/// Returns an ordinary run row for a test to adapt.
pub fn run_row(id: &str) -> RunRow<'_> {
    RunRow {
        id,
        status: RunStatus::Completed,
        scope: "worktree",
        reviewer: "builtin",
        model: "",
        reasoning_effort: "",
        branch: "main",
        created_ms: NOW - 3_600_000,
        updated_ms: NOW - 3_599_000,
        counts: [0, 1, 2, 0],
        tokens: 0,
        files_total: 4,
        files_covered: 4,
        hunks_total: 9,
        hunks_covered: 9,
        incomplete: false,
        has_carried: false,
        attempt: 1,
        paused: false,
        epoch: 1,
        superseded_by: "",
        cancel_reason: "",
        error_class: "",
        diff_fingerprint: "",
        scope_hash: "",
        policy_version: "",
        snapshot_commit: "3fa2c1d09b7e4851aa",
        head_commit: "",
        matching_head: "",
        worktree: "/repo",
        base_commit: "",
        cost: 0.0,
        reused_from: "",
        carried_over_from: "",
        resumed_from: "",
        member_of: "",
        members: "",
        reuse_count: 0,
    }
}

pub fn finding_row<'a>(id: &'a str, run: &'a str) -> FindingRow<'a> {
    FindingRow {
        id,
        first_run: run,
        last_run: run,
        status: FindingStatus::Open,
        priority: Priority::P2,
        severity: Severity::Medium,
        kind: Kind::DeadCode,
        path: "src/invoice/total.rs",
        line_start: 48,
        line_end: 50,
        title: "unused parameter `rate`",
        symbol: "",
        panel_disputed: false,
    }
}

/// Finding of [`view`], with the numbers of its id and of its run.
struct SampleFinding {
    number: u32,
    run: u32,
    priority: Priority,
    kind: Kind,
    status: FindingStatus,
    path: &'static str,
    line: u32,
    title: &'static str,
}

const SAMPLE_FINDINGS: [SampleFinding; 6] = [
    SampleFinding {
        number: 1,
        run: 3,
        priority: Priority::P0,
        kind: Kind::HardcodedConfiguration,
        status: FindingStatus::Open,
        path: "src/config.rs",
        line: 7,
        title: "a token in the source: ghp_…redacted",
    },
    SampleFinding {
        number: 2,
        run: 3,
        priority: Priority::P1,
        kind: Kind::MissingErrorHandling,
        status: FindingStatus::Unresolved,
        path: "src/invoice/total.rs",
        line: 31,
        title: "the error of `parse` is ignored",
    },
    SampleFinding {
        number: 3,
        run: 3,
        priority: Priority::P2,
        kind: Kind::DeadCode,
        status: FindingStatus::Open,
        path: "src/invoice/total.rs",
        line: 48,
        title: "unused parameter `rate`",
    },
    SampleFinding {
        number: 4,
        run: 3,
        priority: Priority::P2,
        kind: Kind::ComplexFunctions,
        status: FindingStatus::Dismissed,
        path: "src/invoice/lines.rs",
        line: 112,
        title: "function `fold` is complex: cyclomatic 21",
    },
    SampleFinding {
        number: 5,
        run: 1,
        priority: Priority::P2,
        kind: Kind::LongMethod,
        status: FindingStatus::Open,
        path: "src/mail/queue/retry.rs",
        line: 9,
        title: "function `retry` is 84 code lines long",
    },
    SampleFinding {
        number: 6,
        run: 1,
        priority: Priority::P3,
        kind: Kind::MagicNumbers,
        status: FindingStatus::Addressed,
        path: "src/mail/queue/retry.rs",
        line: 20,
        title: "3600 is not explained by a name",
    },
];

/// Builds a view of three runs (one superseded) and six findings (two decided).
pub fn view() -> Arc<StoreView> {
    let (a, b, c) = (run_id(3), run_id(2), run_id(1));
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { counts: [1, 1, 2, 0], ..run_row(&a) });
    builder.run(RunRow { status: RunStatus::Superseded, superseded_by: &a, scope: "staged", ..run_row(&b) });
    builder.run(RunRow {
        scope: "commit:HEAD~1",
        created_ms: NOW - 20 * 86_400_000,
        counts: [0, 0, 1, 1],
        tokens: 12_345,
        reviewer: "claude",
        ..run_row(&c)
    });
    for row in SAMPLE_FINDINGS {
        let (id, run) = (finding_id(row.number), run_id(row.run));
        builder.finding(FindingRow {
            priority: row.priority,
            kind: row.kind,
            status: row.status,
            path: row.path,
            line_start: row.line,
            line_end: row.line + 2,
            title: row.title,
            ..finding_row(&id, &run)
        });
    }
    complete(builder)
}

/// Builds a view and asserts that it is complete.
pub fn complete(builder: StoreViewBuilder) -> Arc<StoreView> {
    let view = builder.build();
    assert!(view.complete, "a built view is a whole one");
    view
}

/// Builds a view with many findings in one run.
pub fn many(findings: u32) -> Arc<StoreView> {
    let run = run_id(1);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for n in 0..findings {
        let id = finding_id(n);
        builder.finding(FindingRow { line_start: n + 1, line_end: n + 1, ..finding_row(&id, &run) });
    }
    complete(builder)
}

pub fn send(app: &mut App, message: AppMessage) -> Vec<AppCommand> {
    update(app, NOW, message)
}

/// Creates an app that shows a view.
pub fn showing(columns: u16, rows: u16, view: Arc<StoreView>) -> App {
    let mut app = app(columns, rows);
    let working: Vec<String> = (0..view.run_count())
        .map(|index| view.run(index))
        .filter(|run| run.status.is_working())
        .map(|run| run.id.to_owned())
        .collect();
    let working: Vec<&str> = working.iter().map(String::as_str).collect();
    let facts = FreshnessFacts::for_worktree(1, "/repo", "main", "", &working);
    send(&mut app, AppMessage::Freshness(Arc::new(facts)));
    send(&mut app, AppMessage::StoreRead { view, written: 0 });
    app
}

/// Presses keys, named as in a keymap and separated by blanks.
pub fn press(app: &mut App, keys: &str) -> Vec<AppCommand> {
    let mut commands = Vec::new();
    for name in keys.split_whitespace() {
        let key: KeyEvent = name.parse().unwrap_or_else(|error| panic!("{error}"));
        commands.extend(send(app, AppMessage::Input(TerminalInput::Key(key))));
    }
    commands
}

/// Types text, blanks included.
pub fn type_text(app: &mut App, text: &str) -> Vec<AppCommand> {
    send(app, AppMessage::Input(TerminalInput::Paste(text.to_owned())))
}

/// Plays the store: answers triage orders. Returns the number of stored decisions.
pub fn store(app: &mut App, commands: Vec<AppCommand>) -> usize {
    let mut stored = 0;
    for command in commands {
        if let AppCommand::Triage(TriageOrder::Set { findings, verdict }) = command {
            let dispositions: Vec<Disposition> = findings
                .iter()
                .map(|finding| Disposition {
                    finding_id: finding.clone(),
                    status: verdict.status,
                    previous: FindingStatus::Open,
                    actor: Actor::User,
                    reason: verdict.reason.clone(),
                    at: Time::UNIX_EPOCH,
                    action: TriageAction::Set,
                    group: "t_1".into(),
                    run_id: None,
                    merged_into: None,
                    team: None,
                    ci: false,
                })
                .collect();
            stored += dispositions.len();
            send(
                app,
                AppMessage::Triaged {
                    order: TriageOrder::Set { findings, verdict },
                    result: Ok(UndoOutcome::Decided(dispositions)),
                    written: 1,
                },
            );
        }
    }
    stored
}

/// Builds the page of a finding as the loader would.
pub fn page(n: u32, run: u32) -> Box<PageData> {
    let (Ok(finding_id), Ok(run_id)) = (finding_id(n).parse(), run_id(run).parse::<crate::domain::RunId>()) else {
        unreachable!("made-up ids are ids")
    };
    let code = "/// What a customer owes.\npub fn total(lines: &[Line], rate: f64) -> Result<f64, Error> {\n    let mut sum = 0.0;\n    for line in lines {\n        sum += line.amount.parse::<f64>().unwrap_or(0.0);\n    }\n    Ok(sum)\n}";
    Box::new(PageData::Finding(Box::new(FindingPage {
        finding: Finding {
            finding_id,
            first_run_id: run_id.clone(),
            last_run_id: run_id,
            priority: Priority::P1,
            severity: Severity::High,
            confidence: Confidence::Medium,
            kind: Kind::MissingErrorHandling,
            title: "the error of `parse` is ignored".into(),
            explanation:
                "An amount that is no number counts as 0.0, so that the invoice is too low and nobody learns of it."
                    .into(),
            repo_relative_path: "src/invoice/total.rs".into(),
            line_start: 31,
            line_end: 32,
            quoted_code: String::new(),
            pattern: None,
            suggestion: Some(Suggestion {
                text: "Hand the error on.".into(),
                replacement: Some("        sum += line.amount.parse::<f64>()?;".into()),
                lines: Some(crate::domain::LineRange::new(31, 31)),
            }),
            status: FindingStatus::Unresolved,
            lowered: None,
            detail_ref: String::new(),
            reported_at: Time::from_second(NOW / 1000 - 3600).unwrap_or_default(),
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        },
        notes: Vec::new(),
        snoozes: Vec::new(),
        ratings: Vec::new(),
        questions: Vec::new(),
        pending: None,
        history: Vec::new(),
        void: BTreeMap::new(),
        run: None,
        first_report: None,
        carried_from: None,
        relocation: None,
        offer: None,
        code: CodeExcerpt {
            first: 27,
            lines: code.lines().map(str::to_owned).collect(),
            spans: Vec::new(),
            note: None,
        },
    })))
}

/// Builds the card of a finding for triage mode: its page, and decisions about similar ones.
pub fn card(n: u32) -> Arc<TriageCard> {
    let PageData::Finding(page) = *page(n, 3) else { unreachable!("the page of a finding") };
    let similar = SimilarDecisions { addressed: 2, dismissed: 1, reason: "generated".to_owned() };
    Arc::new(TriageCard { page: *page, diff: None, similar })
}

/// Answers the requests for pages of runs and files as the loader would.
pub fn load_pages(app: &mut App, commands: Vec<AppCommand>) {
    for command in commands {
        let AppCommand::Load { subject, tab: Tab::Page } = command else { continue };
        let loaded = match &subject {
            DetailSubject::Run(run) => PageData::Run(run_page(app, run)),
            DetailSubject::File { run, path } => PageData::File(Box::new(FilePage {
                run: run_page(app, run).run,
                path: path.clone(),
                findings: vec![sample_finding()],
                hunks: 2,
                state: FileListState::Covered,
            })),
            DetailSubject::Finding(_) | DetailSubject::Nothing => continue,
        };
        send(app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: Box::new(loaded) });
    }
}

/// Builds the page of a finished run from its row in the list.
fn run_page(app: &App, run: &str) -> Box<RunPage> {
    let mut record: RunRecord = serde_json::from_value(serde_json::json!({
        "run_id": run, "status": "completed", "created_at": "2026-03-04T11:00:00Z", "updated_at": "2026-03-04T11:00:01Z",
        "source": "cli", "scope": "worktree", "reviewer": "builtin", "branch": "main",
        "snapshot_commit": "3fa2c1d09b7e4851aa",
    }))
    .expect("a record");
    let row = app.store.view.run(app.store.view.run_index(run).expect("a listed run"));
    let coverage = &mut record.outcome.coverage;
    (coverage.files_total, coverage.files_covered) = (row.files_total, row.files_covered);
    (coverage.hunks_total, coverage.hunks_covered) = (row.hunks_total, row.hunks_covered);
    coverage.incomplete = row.incomplete;
    let output = RunOutput { findings: vec![sample_finding()], ..RunOutput::new(record.clone()) };
    Box::new(RunPage { run: record, output: Some(output), journal: Vec::new() })
}

fn sample_finding() -> Finding {
    let PageData::Finding(page) = *page(2, 3) else { unreachable!("the page of a finding") };
    page.finding
}

/// Returns the screen as text without trailing blanks.
pub fn screen(app: &App) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.display.columns, app.display.rows));
    draw(app, &mut buffer);
    let mut text = String::new();
    for y in 0..app.display.rows {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..app.display.columns {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
