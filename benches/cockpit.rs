//! The cockpit's time for a key with 100,000 findings: `cargo bench --bench cockpit`. Targets: less than 2 ms for an
//! update and the next frame together, and less than 1,000 bytes for each key.
//!
//! The time of the whole program from key to byte is measured from outside, in a pseudo-terminal.

use std::sync::{Arc, LazyLock};

use divan::{Bencher, black_box};
use revdeck::domain::{FindingStatus, Kind, Priority, RunStatus, Severity};
use revdeck::store::{FindingRow, RunRow, StoreView, StoreViewBuilder};
use revdeck::tui::app::{App, AppOptions, SessionInfo};
use revdeck::tui::filter::{FilterOverrides, FindingFilter};
use revdeck::tui::input::{KeyEvent, TerminalInput};
use revdeck::tui::keymap::{self, Keymap};
use revdeck::tui::message::{AppCommand, AppMessage};
use revdeck::tui::theme::{Background, ColorDepth, Theme};
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
        theme: Theme::builtin_for(Background::Dark, ColorDepth::Indexed256),
        depth: ColorDepth::Indexed256,
        theme_is_set: true,
        glyphs: glyphs::UNICODE,
        notices: Vec::new(),
    });
    let commands = update(&mut app, NOW, AppMessage::StoreRead { view: Arc::clone(&LARGE), written: 0 });
    for command in commands {
        if let AppCommand::Filter { serial, view, filter, overrides: known } = command {
            let rows = filter.matching_rows(&view, &known);
            update(&mut app, NOW, AppMessage::Filtered { serial, view, rows });
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

/// Measures a store change: the app takes over runs and rows and restores the selection.
#[divan::bench]
fn new_view(bencher: Bencher) {
    let mut app = app();
    let rows: Vec<u32> = FindingFilter::parse("status:undecided").matching_rows(&LARGE, &FilterOverrides::default());
    let mut serial = 1_000;
    bencher.bench_local(|| {
        serial += 1;
        // An empty view makes the next one count as new.
        app.store.view = Arc::default();
        update(&mut app, NOW, AppMessage::Filtered { serial, view: Arc::clone(&LARGE), rows: rows.clone() });
    });
}
