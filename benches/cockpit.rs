//! The cockpit's time for a key with 100,000 findings: `cargo bench --bench cockpit`. Targets: less than 2 ms for an
//! update and the next frame together, and less than 1,000 bytes for each key.
//!
//! The time of the whole program from key to byte is measured from outside, in a pseudo-terminal.

use std::sync::{Arc, LazyLock};

use divan::{Bencher, black_box};
use revdeck::config::{FindingGrouping, FindingSort};
use revdeck::domain::{FindingStatus, Kind, Priority, RunStatus, Severity};
use revdeck::store::{FindingRow, RunRow, StoreView, StoreViewBuilder};
use revdeck::tui::app::{App, AppOptions, MotionMode, SessionInfo};
use revdeck::tui::diff::{ChangeBlock, DiffFile, DiffOptions, DiffPage, DiffRequest, DiffTexts};
use revdeck::tui::filter::{FilterOverrides, FindingFilter};
use revdeck::tui::finding_order::{FindingArrangement, FindingQuery};
use revdeck::tui::input::{KeyEvent, TerminalInput};
use revdeck::tui::keymap::{self, Keymap};
use revdeck::tui::message::{AppCommand, AppMessage, Tab};
use revdeck::tui::theme::{Background, ColorDepth, ThemeChoice, ThemeName};
use revdeck::tui::{Screen, draw, glyphs, update};

fn main() {
    divan::main();
}

const RUNS: usize = 10_000;
const FINDINGS: usize = 100_000;
const NOW: i64 = 1_772_625_600_000;

static LARGE: LazyLock<Arc<StoreView>> = LazyLock::new(|| {
    let mut builder = StoreViewBuilder::default();
    let run_ids: Vec<String> = (0..RUNS).map(|n| format!("ar_{:026}", RUNS - n)).collect();
    for id in &run_ids {
        builder.run(RunRow {
            id,
            status: RunStatus::Completed,
            scope: "worktree",
            reviewer: "builtin",
            model: "",
            reasoning_effort: "",
            branch: "main",
            created_ms: NOW - 3_600_000,
            updated_ms: NOW - 3_599_000,
            counts: [1, 2, 3, 4],
            tokens: 0,
            files_total: 12,
            files_covered: 12,
            hunks_total: 31,
            hunks_covered: 31,
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
        });
    }
    for n in 0..FINDINGS {
        let (id, run) = (format!("f_{n:016}"), &run_ids[n * RUNS / FINDINGS]);
        let path = format!("src/part{}/module{}.rs", n % 37, n % 211);
        let title = format!("function `step_{n}` is complex: cyclomatic {}", 16 + n % 30);
        builder.finding(FindingRow {
            id: &id,
            first_run: run,
            last_run: run,
            status: FindingStatus::ALL[n % 5],
            priority: Priority::ALL[n % 4],
            severity: Severity::Medium,
            kind: Kind::ALL[n % 11],
            path: &path,
            line_start: 48,
            line_end: 50,
            title: &title,
            symbol: "",
            panel_disputed: n % 50 == 0,
        });
    }
    builder.build()
});

/// Returns an app at 200x60 that shows everything.
fn app() -> App {
    let mut app = App::new(AppOptions {
        columns: 200,
        rows: 60,
        zone: jiff::tz::TimeZone::UTC,
        session: SessionInfo { repository: "sample".into(), branch: "main".into(), ..SessionInfo::default() },
        keymap: Keymap::parse(keymap::DEFAULT).0,
        themes: ThemeChoice::new(ThemeName::Dark, Background::Dark, ColorDepth::Indexed256),
        glyphs: glyphs::UNICODE,
        diff: DiffOptions::default(),
        motion: MotionMode::Full,
        mouse: true,
        plain: false,
        notices: Vec::new(),
    });
    let commands = update(&mut app, NOW, AppMessage::StoreRead { view: Arc::clone(&LARGE), written: 0 });
    for command in commands {
        if let AppCommand::Filter { serial, view, query } = command {
            let listed = query.list(&view);
            update(&mut app, NOW, AppMessage::Filtered { serial, view, listed });
        }
    }
    app
}

fn key(name: &str) -> AppMessage {
    AppMessage::Input(TerminalInput::Key(name.parse().unwrap_or(KeyEvent::plain(revdeck::tui::input::KeyCode::Esc))))
}

/// Measures a key and the bytes of the next frame.
#[divan::bench(args = ["j", "k", "Ctrl-d", "1", "G", "?"])]
fn key_to_bytes(bencher: Bencher, name: &str) {
    let mut app = app();
    let mut screen = Screen::new(200, 60);
    screen.draw_frame(|buffer| draw(&app, buffer));
    let (mut keys, mut bytes) = (0, 0);
    bencher.bench_local(|| {
        update(&mut app, NOW, key(name));
        let frame = screen.draw_frame(|buffer| draw(&app, buffer));
        keys += 1;
        bytes += frame.len();
        black_box(frame.len())
    });
    #[allow(clippy::print_stderr, reason = "a figure that divan has no column for")]
    {
        eprintln!("{name}: {} bytes a key on average", bytes / keys.max(1));
    }
}

#[divan::bench]
fn first_frame(bencher: Bencher) {
    let app = app();
    bencher.bench_local(|| {
        let mut screen = Screen::new(200, 60);
        black_box(screen.draw_frame(|buffer| draw(&app, buffer)).len())
    });
}

/// Measures the work of the background thread while the user types a filter.
#[divan::bench(args = ["status:undecided", "p:0,1 path:src/part3", "cyclomatic 44"])]
fn filter(bencher: Bencher, text: &str) {
    let (view, filter, known) = (Arc::clone(&LARGE), FindingFilter::parse(text), FilterOverrides::default());
    bencher.bench_local(|| black_box(filter.matching_rows(&view, &known).len()));
}

fn query(filter: &str, arrangement: FindingArrangement) -> FindingQuery {
    FindingQuery { filter: FindingFilter::parse(filter), overrides: Arc::default(), arrangement }
}

/// Measures filtering, sorting and grouping as the filter thread does it.
#[divan::bench(args = FindingSort::ALL)]
fn list_findings(bencher: Bencher, sort: FindingSort) {
    let query = query("status:all", FindingArrangement { sort, grouping: FindingGrouping::File });
    bencher.bench_local(|| black_box(query.list(&LARGE)));
}

/// Measures a store change: the app takes over runs and rows and restores the selection.
#[divan::bench]
fn new_view(bencher: Bencher) {
    let mut app = app();
    let listed = query("status:undecided", FindingArrangement::default()).list(&LARGE);
    let mut serial = 1_000;
    bencher.bench_local(|| {
        serial += 1;
        // An empty view makes the next one count as new.
        app.store.view = Arc::default();
        update(&mut app, NOW, AppMessage::Filtered { serial, view: Arc::clone(&LARGE), listed: listed.clone() });
    });
}

/// Diff of a file with this many lines, one of ten changed, or of this many files with 40 lines.
fn large_diff(lines: u32, files: u32) -> (Arc<DiffPage>, Vec<Arc<DiffTexts>>) {
    let mut page = DiffPage { from: "1111111111".into(), to: "2222222222".into(), ..DiffPage::default() };
    let mut texts = Vec::new();
    for file in 0..files {
        let line = |n: u32, word: &str| format!("    let value_{n} = compute_{word}({n}, \"text of {file}\");\n");
        let old: String = (1..=lines).map(|n| line(n, "old")).collect();
        let new: String = (1..=lines).map(|n| line(n, if n % 10 == 5 { "new" } else { "old" })).collect();
        let changed = (1..=lines).filter(|n| n % 10 == 5);
        let blocks: Vec<ChangeBlock> =
            changed.map(|n| ChangeBlock { old: n, old_lines: 1, new: n, new_lines: 1 }).collect();
        texts.push(Arc::new(DiffTexts::new(u64::from(file) + 1, "src/a.rs", old, new, &blocks)));
        page.files.push(DiffFile { path: format!("src/part_{file}.rs"), blocks, ..DiffFile::default() });
    }
    (Arc::new(page), texts)
}

/// Opens a diff as the cockpit does, and plays the loader.
fn open_diff(app: &mut App, page: &Arc<DiffPage>, texts: &[Arc<DiffTexts>]) {
    app.detail.tab = Tab::Diff;
    let subject = app.detail.subject.clone();
    let loaded = Box::new(Arc::clone(page).into());
    let commands = update(app, NOW, AppMessage::Loaded { subject, tab: Tab::Diff, loaded });
    answer_reads(app, commands, texts);
}

fn answer_reads(app: &mut App, mut commands: Vec<AppCommand>, texts: &[Arc<DiffTexts>]) {
    while let Some(command) = commands.pop() {
        if let AppCommand::Diff(DiffRequest::Read { page, file }) = command {
            commands.extend(update(app, NOW, AppMessage::DiffFile { page, file, texts: Ok(Arc::clone(&texts[file])) }));
        }
    }
}

/// Measures opening a diff up to the first frame with its texts, without reading them: lines a file, files.
#[divan::bench(args = [(50_000, 1), (40, 5_000)])]
fn diff_open(bencher: Bencher, (lines, files): (u32, u32)) {
    let (page, texts) = large_diff(lines, files);
    let mut app = app();
    update(&mut app, NOW, key("1"));
    let mut screen = Screen::new(200, 60);
    bencher.bench_local(|| {
        app.detail.diff = Default::default();
        open_diff(&mut app, &page, &texts);
        black_box(screen.draw_frame(|buffer| draw(&app, buffer)).len())
    });
}

/// Measures a key and the next frame in a zoomed diff: lines a file, files.
#[divan::bench(args = [("j", 50_000, 1), ("Ctrl-d", 50_000, 1), ("Ctrl-d", 40, 5_000), ("] h", 50_000, 1), ("G", 40, 5_000)])]
fn diff_key(bencher: Bencher, (name, lines, files): (&str, u32, u32)) {
    let (page, texts) = large_diff(lines, files);
    let mut app = app();
    update(&mut app, NOW, key("1"));
    open_diff(&mut app, &page, &texts);
    for name in ["Shift-Tab", "z"] {
        let commands = update(&mut app, NOW, key(name));
        answer_reads(&mut app, commands, &texts);
    }
    let mut screen = Screen::new(200, 60);
    let (mut keys, mut bytes) = (0, 0);
    bencher.bench_local(|| {
        for name in name.split(' ') {
            let commands = update(&mut app, NOW, key(name));
            answer_reads(&mut app, commands, &texts);
        }
        let frame = screen.draw_frame(|buffer| draw(&app, buffer)).len();
        keys += 1;
        bytes += frame;
        black_box(frame)
    });
    #[allow(clippy::print_stderr, reason = "a figure that divan has no column for")]
    {
        eprintln!("{name} in {files} x {lines}: {} bytes a key on average", bytes / keys.max(1));
    }
}
