//! Builds the pages of a run, of a file of a run, and of a run's journal.

use super::super::app::App;
use super::super::doc::{Doc, DocLine, FoldKey, FollowMode, wrap_words};
use super::super::message::FileListState;
use super::super::page_data::{FilePage, RunPage};
use super::super::theme::Role;
use super::journal_entry::render_entry;
use super::members;
use super::{
    NAMES, count_digits, format_dollars, format_reported_location, format_thousands, priority_label, short_commit,
};
use crate::domain::{
    JournalEntry, Panel, Priority, RejectedReport, ReviewReach, RunEvent, RunRecord, RunStatus, Scope, TurnPhase,
    Usage, text,
};
use crate::report::activity::{ActivityState, describe_turn};
use crate::report::text::{describe_early_end, describe_freshness, describe_window};
use crate::store::RunRow;

/// Greatest number of left-out files that are listed, so that they do not push the findings off the page.
const MAX_LEFT_OUT_ROWS: usize = 8;
/// Greatest number of journal entries below a working run; the log page has them all.
const MAX_LATEST_ENTRIES: usize = 10;

pub fn render_run(app: &App, page: &RunPage, width: usize, doc: &mut Doc) {
    let run = &page.run;
    render_run_status(app, run, width, doc);
    if let Some(panel) = &run.links.panel {
        members::render_members(app, run, panel, width, doc);
    }
    render_coverage(app, page, width, doc);
    render_left_out(page, width, doc);
    render_finding_counts(app, run, doc);
    render_spending(app, run, width, doc);
    render_about(app, run, width, doc);
    render_set_aside(app, page.output.as_ref().map_or(&[][..], |output| output.rejected.as_slice()), width, doc);
    render_notes(page, width, doc);
    render_latest_entries(app, page, width, doc);
}

/// Renders the state and scope of the run, its summary and its error.
fn render_run_status(app: &App, run: &RunRecord, width: usize, doc: &mut Doc) {
    let (glyph, word, role) = match run.is_paused() {
        true => {
            (app.display.glyphs.activity(ActivityState::Paused), "paused", Role::from_activity(ActivityState::Paused))
        }
        false => match run.shortfall() {
            Some(shortfall) => {
                (app.display.glyphs.shortfall(shortfall), shortfall.word(), Role::from_shortfall(shortfall))
            }
            None => (app.display.glyphs.run_status(run.status), run.state_word(), Role::from_run_status(run.status)),
        },
    };
    let (glyph, word, role) =
        find_list_row(app, run).and_then(|row| app.panel_state(&row)).unwrap_or((glyph, word, role));
    doc.push(
        DocLine::styled(role, &app.display.glyphs.sign_before_word(glyph))
            .with_span(role, word)
            .with_span(Role::Faint, "  ")
            .with_span(Role::Strong, &app.name_record(run)),
    );
    let summary = run.outcome.summary.as_str();
    if !summary.is_empty() {
        doc.push_blank();
        doc.push_paragraph(Role::Normal, summary, width);
    }
    if run.is_incomplete()
        && let Some(gaps) = run.outcome.coverage.describe_gaps()
    {
        doc.push_blank();
        doc.push_paragraph(Role::Warn, &gaps, width);
    }
    if !run.ending.error_summary.is_empty() {
        doc.push_blank();
        doc.push_paragraph(Role::Bad, &run.ending.error_summary, width);
    }
}

/// Returns the run's list row. While the run works, the row is newer than the record.
pub fn find_list_row<'a>(app: &'a App, run: &RunRecord) -> Option<RunRow<'a>> {
    app.store.view.run_index(run.run_id.as_str()).map(|index| app.store.view.run(index))
}

/// Renders the reviewed part of the files and hunks.
fn render_coverage(app: &App, page: &RunPage, width: usize, doc: &mut Doc) {
    let run = &page.run;
    let (files_covered, files_total, hunks_covered, hunks_total) = find_list_row(app, run).map_or(
        (
            run.outcome.coverage.files_covered,
            run.outcome.coverage.files_total,
            run.outcome.coverage.hunks_covered,
            run.outcome.coverage.hunks_total,
        ),
        |row| (row.files_covered, row.files_total, row.hunks_covered, row.hunks_total),
    );
    doc.push_heading("Coverage", "");
    if let Some(sums) = members::find_sums(app, run).filter(|_| !run.status.is_terminal()) {
        let to_count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let members = Gauge { name: "members", part: to_count(sums.done), whole: to_count(sums.members) };
        render_gauge(app, members, width, doc);
        render_gauge(app, Gauge { name: "hunks", part: sums.hunks_covered, whole: sums.hunks_total }, width, doc);
        return;
    }
    let listed = page.output.as_ref().map(|output| &output.coverage);
    let not_due = listed.map_or(0, |listed| listed.files_total.saturating_sub(listed.reviewable_file_count()));
    let carried = listed.unwrap_or(&run.outcome.coverage);
    let files = Gauge {
        name: "files",
        part: files_covered + carried.files_carried,
        whole: files_total.saturating_sub(not_due),
    };
    let hunks = Gauge { name: "hunks", part: hunks_covered + carried.hunks_carried, whole: hunks_total };
    // Of a change whose files were all left out, nothing was due.
    for gauge in [files, hunks] {
        if gauge.whole.max(gauge.part) > 0 || !run.status.is_terminal() {
            render_gauge(app, gauge, width, doc);
        }
    }
    // Hunks are sent in the first turns; the review goes on until the last turn.
    if !run.status.is_terminal()
        && let Some((turn, phase)) = find_last_turn(&page.journal)
    {
        let whole = app.session.turn_limits.of_reviewer(&run.reviewed_by.name);
        render_gauge(app, Gauge { name: "turns", part: turn.saturating_sub(1).min(whole), whole }, width, doc);
        let phase = if turn > whole { describe_turn(turn, whole) } else { phase.word().to_owned() };
        doc.push_field("phase", NAMES, Role::Normal, &phase, width);
    }
    if let Some(said) = carried.describe_carried() {
        doc.push_field("carried", NAMES, Role::Normal, &format!("{said}; {hunks_covered} reviewed"), width);
    }
}

/// Returns the turn that was begun last, with its phase.
fn find_last_turn(journal: &[JournalEntry]) -> Option<(u32, TurnPhase)> {
    journal.iter().rev().find_map(|entry| match &entry.event {
        RunEvent::TurnAsked { turn, phase, .. } => Some((*turn, *phase)),
        _ => None,
    })
}

/// Renders the number of files left out, and the first of them with their reasons.
fn render_left_out(page: &RunPage, width: usize, doc: &mut Doc) {
    let Some(output) = &page.output else { return };
    let left = &output.coverage.left_out;
    if left.is_empty() {
        return;
    }
    let mut out = text::format_count(left.len(), "file");
    if output.coverage.hunks_left_out > 0 {
        out.push_str(&format!(" with {}", text::format_count(output.coverage.hunks_left_out as usize, "hunk")));
    }
    doc.push_field("left out", NAMES, Role::Muted, &out, width);
    for file in left.iter().take(MAX_LEFT_OUT_ROWS) {
        let reason = super::super::page_loader::reason_label(file.reason);
        doc.push_path(NAMES, Role::Normal, &file.path, (Role::Faint, reason), width);
    }
    if left.len() > MAX_LEFT_OUT_ROWS {
        let more = format!("{}and {} more", " ".repeat(NAMES), left.len() - MAX_LEFT_OUT_ROWS);
        doc.push(DocLine::styled(Role::Faint, &more));
    }
}

/// Renders the number of findings of each priority.
fn render_finding_counts(app: &App, run: &RunRecord, doc: &mut Doc) {
    let sums = members::find_sums(app, run);
    let row = find_list_row(app, run);
    let counts = row.map_or(run.outcome.finding_counts.by_priority(), |row| row.counts);
    let counts = sums.map_or(counts, |sums| sums.counts);
    let mut line = DocLine::styled(Role::Muted, &format!("{:<NAMES$}", "findings"));
    if counts == [0; 4] {
        let (role, said) = match row.map_or(run.review_reach(), |row| row.review_reach()) {
            ReviewReach::Unfinished => (Role::Normal, "none so far"),
            ReviewReach::Nothing => (Role::Warn, "nothing was reviewed"),
            ReviewReach::Part => (Role::Warn, "none in the reviewed part"),
            ReviewReach::Whole => (Role::Good, "none"),
        };
        line = line.with_span(role, said);
    }
    for priority in Priority::ALL {
        if counts[priority.index()] > 0 {
            line = line
                .with_span(Role::from_priority(priority), priority_label(priority))
                .with_span(Role::Normal, &format!(" {}   ", counts[priority.index()]));
        }
    }
    // The members may have reported one problem in their own words each.
    if sums.is_some() && counts != [0; 4] && !run.status.is_terminal() {
        line = line.with_span(Role::Faint, "not merged yet");
    }
    doc.push(line);
}

/// Renders the tokens and the cost of the run, and the fill of its model's window.
fn render_spending(app: &App, run: &RunRecord, width: usize, doc: &mut Doc) {
    doc.push_heading("Tokens", "");
    if let Some(sums) = members::find_sums(app, run) {
        members::render_spending(&sums, width, doc);
        if run.usage.tokens.total() == 0 {
            return;
        }
        let opinions = format_spent(&run.usage.tokens, run.usage.cost);
        doc.push_field("opinions", NAMES, Role::Normal, &format!("{opinions} of it"), width);
        return;
    }
    if let Some(said) = members::describe_spending_elsewhere(run) {
        doc.push_field("spent", NAMES, Role::Normal, &said, width);
    } else if run.usage.tokens.total() == 0 && run.usage.window_peak == 0 && run.reviewed_by.name == "builtin" {
        doc.push_field("spent", NAMES, Role::Normal, "no tokens: the built-in reviewer works offline", width);
    } else {
        // The record of a working run may lag behind its worker's heartbeat.
        let now = app.pulse(run.run_id.as_str());
        let (tokens, cost) = now.map_or((run.usage.tokens, run.usage.cost), |pulse| (pulse.tokens, pulse.cost));
        doc.push_field("spent", NAMES, Role::Normal, &format_spent(&tokens, cost), width);
        if run.usage.price_known == Some(false) {
            doc.push_field("price", NAMES, Role::Warn, "not known: no limit in US dollars counts it", width);
        }
        let window = describe_window(run);
        if !window.is_empty() {
            doc.push_field("window", NAMES, Role::Normal, &window, width);
        }
    }
}

fn render_notes(page: &RunPage, width: usize, doc: &mut Doc) {
    let notes = page.output.as_ref().map_or(&[][..], |output| output.notes.as_slice());
    if !notes.is_empty() {
        doc.push_heading("Notes", "");
        for note in notes {
            doc.push_paragraph(Role::Normal, note, width);
        }
    }
}

/// Renders the end of the journal of a run that has not ended.
fn render_latest_entries(app: &App, page: &RunPage, width: usize, doc: &mut Doc) {
    let run = &page.run;
    if !run.status.is_terminal() && !page.journal.is_empty() {
        doc.push_heading("Now", "");
        for entry in page.journal.iter().rev().take(MAX_LATEST_ENTRIES).rev() {
            render_entry(app, entry, width, doc);
        }
    }
}

/// Renders the rejected reports: their number, and unfolded each report with its reason.
fn render_set_aside(app: &App, rejected: &[RejectedReport], width: usize, doc: &mut Doc) {
    if rejected.is_empty() {
        return;
    }
    let open = app.detail.open_folds.contains(&FoldKey::SetAside);
    let sign = if open { app.display.glyphs.unfolded } else { app.display.glyphs.folded };
    doc.push_blank();
    let said = format!(" {} set aside", text::format_count(rejected.len(), "report"));
    doc.push_fold(FoldKey::SetAside, DocLine::styled(Role::Faint, sign).with_span(Role::Title, &said));
    if !open {
        doc.push(DocLine::styled(Role::Muted, "  what the model reported does not hold against the code"));
        return;
    }
    for RejectedReport { report, reason } in rejected {
        let mut put = |role: Role, said: &str| {
            for line in wrap_words(&text::sanitize_line(said), width.saturating_sub(2)) {
                doc.push(DocLine::styled(role, "  ").with_span(role, &line));
            }
        };
        put(Role::Normal, &report.title);
        put(Role::Accent, &format_reported_location(report));
        put(Role::Warn, reason);
        doc.push(DocLine::default());
    }
}

/// Describes tokens and cost: `11,000 in, 1,400 out, $0.01`.
pub fn format_spent(tokens: &Usage, cost: f64) -> String {
    let about = if tokens.estimated { "~" } else { "" };
    let mut parts = vec![
        format!("{about}{} in", format_thousands(tokens.input)),
        format!("{about}{} out", format_thousands(tokens.output)),
    ];
    if tokens.cached > 0 {
        parts.push(format!("{} cached", format_thousands(tokens.cached)));
    }
    if tokens.reasoning > 0 {
        parts.push(format!("{} reasoning", format_thousands(tokens.reasoning)));
    }
    if cost > 0.0 {
        parts.push(format_dollars(cost));
    }
    parts.join(", ")
}

/// Share to draw as a bar.
struct Gauge {
    name: &'static str,
    part: u32,
    whole: u32,
}

/// Renders `name  ━━━━━────  3 of 12`.
fn render_gauge(app: &App, Gauge { name, part, whole }: Gauge, width: usize, doc: &mut Doc) {
    // A plan may have named fewer parts than were reviewed in the end.
    let whole = whole.max(part);
    let label = format!("  {part} of {whole}");
    let room = width.saturating_sub(NAMES + label.len()).min(32);
    let filled = if whole == 0 { 0 } else { room * part as usize / whole as usize };
    doc.push(
        DocLine::styled(Role::Muted, &format!("{name:<NAMES$}"))
            .with_span(Role::Filled, &app.display.glyphs.filled.repeat(filled))
            .with_span(Role::Empty, &app.display.glyphs.empty.repeat(room - filled))
            .with_span(Role::Normal, &label),
    );
}

fn render_about(app: &App, run: &RunRecord, width: usize, doc: &mut Doc) {
    doc.push_heading("About", run.run_id.as_str());
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            doc.push_field(name, NAMES, Role::Normal, value, width);
        }
    };
    if let Some(row) = find_list_row(app, run) {
        field("freshness", &describe_freshness(app.run_freshness(&row)));
    }
    let reviewer = if run.reviewed_by.model.is_empty() {
        Panel::describe_reviewer(&run.reviewed_by.name).into_owned()
    } else {
        format!("{} ({})", run.reviewed_by.name, run.reviewed_by.model)
    };
    field("reviewer", &reviewer);
    field("prompts", run.reviewed_by.prompt_set.as_deref().unwrap_or_default());
    field(
        "asked by",
        &format!("{} from the {}", run.owner, run.describe_source())
            .trim_start_matches(" from")
            .replace("from the cli", "from the command line"),
    );
    if let Some(team) = &run.team {
        field("ran on", team.machine.as_str());
    }
    field("asked at", &app.format_date_time(run.created_at));
    if run.status.is_terminal() {
        let took = run.updated_at.as_millisecond().saturating_sub(run.created_at.as_millisecond());
        field(
            "took",
            &if took < 10_000 {
                format!("{:.1} s", took as f64 / 1000.0)
            } else {
                super::super::app::format_duration(took / 1000)
            },
        );
    }
    if !matches!(run.subject.scope, Scope::All) {
        field("base", short_commit(&run.subject.base_commit));
    }
    field("snapshot", short_commit(&run.subject.snapshot_commit));
    field("branch", &run.subject.branch);
    if run.attempt > 1 {
        field("attempt", &run.attempt.to_string());
    }
    field("decision", &run.decision);
    if let Some(older) = run.links.waits_for.as_ref().filter(|_| run.status == RunStatus::Pending) {
        field("waits for", older.as_str());
    }
    if let Some(panel) = &run.links.member_of {
        field("panel", panel.as_str());
    }
    if let Some(uncounted) = run.links.panel.as_ref().and_then(Panel::describe_uncounted) {
        field("limits", &uncounted);
    }
    field("finishing", &run.ending.finish_note);
    if let Some(by) = run.links.replaced_by() {
        field("superseded", &format!("by {by}"));
    }
    if let Some(stop) = describe_early_end(run) {
        field("stopped", &stop);
    }
}

pub fn render_file(app: &App, page: &FilePage, width: usize, doc: &mut Doc) {
    for line in wrap_words(&text::sanitize_line(&page.path), width) {
        doc.push(DocLine::styled(Role::Strong, &line));
    }
    let state = match &page.state {
        FileListState::LeftOut(reason) => format!("not reviewed: {reason}"),
        FileListState::Waiting => format!("not reviewed yet in {}", app.name_record(&page.run)),
        FileListState::Unknown => format!("not named by the review of {}", app.name_record(&page.run)),
        FileListState::Covered if page.hunks == 0 => format!("reviewed in {}", app.name_record(&page.run)),
        FileListState::Covered => {
            format!("{} reviewed in {}", text::format_count(page.hunks, "hunk"), app.name_record(&page.run))
        }
        FileListState::Partial => {
            let hunks = text::format_count(page.hunks, "hunk");
            format!("partly reviewed in {}: {hunks}, and others not", app.name_record(&page.run))
        }
    };
    doc.push_paragraph(Role::Muted, &state, width);
    let is_whole = page.state == FileListState::Covered;
    if page.findings.is_empty() && (is_whole || page.state == FileListState::Partial) {
        let (role, said) = match page.run.review_reach() {
            ReviewReach::Whole if is_whole => (Role::Good, "no findings"),
            ReviewReach::Unfinished => (Role::Normal, "no findings yet"),
            // The coverage of an older version does not say of which files hunks are missing.
            ReviewReach::Nothing | ReviewReach::Part | ReviewReach::Whole => {
                (Role::Normal, "no findings in the reviewed part")
            }
        };
        doc.push_blank();
        doc.push(DocLine::styled(role, said));
    }
    if !page.findings.is_empty() {
        doc.push_heading("Findings", &page.findings.len().to_string());
    }
    let digits = page.findings.iter().map(|finding| count_digits(finding.line_start)).max().unwrap_or(1);
    let glyphs = &app.display.glyphs;
    for finding in &page.findings {
        let status =
            app.finding_by_id(finding.finding_id.as_str()).map_or(finding.status, |row| app.current_status(&row));
        let shown = glyphs.sign_or_word(glyphs.finding_status(status), status.word());
        let line = DocLine::styled(Role::from_priority(finding.priority), priority_label(finding.priority))
            .with_span(Role::from_finding_status(status), &format!(" {shown} "))
            .with_span(Role::Muted, &format!("{:>digits$}  ", finding.line_start))
            .with_span(Role::Normal, &finding.title);
        doc.push(DocLine { source: Some(finding.line_start), ..line });
    }
}

pub fn render_log(app: &App, run: Option<&RunRecord>, entries: &[JournalEntry], width: usize, doc: &mut Doc) {
    if entries.is_empty() {
        let text = match run.map(|run| run.status) {
            Some(RunStatus::Pending) => "Waiting for a worker.",
            _ => "This run has no journal.",
        };
        doc.push_paragraph(Role::Muted, text, width);
        return;
    }
    for entry in entries {
        render_entry(app, entry, width, doc);
    }
    if run.is_some_and(|run| !run.status.is_terminal()) {
        doc.follow = FollowMode::StartAtEnd;
    }
}
