//! Tests the diff: screens at three sizes, and the keys that move in it.

use std::sync::Arc;

use similar::{DiffOp, TextDiff};

use super::looks::{assert_looks, assert_looks_at_all_sizes};
use super::support::*;
use crate::domain::{FindingStatus, Kind, LineRange, Priority};
use crate::runner::FreshnessFacts;
use crate::tui::app::{App, Pane};
use crate::tui::diff::{
    ChangeBlock, DiffFile, DiffFinding, DiffPage, DiffRequest, DiffSuggestion, DiffTexts, LineTable,
};
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab, TriageOrder};

/// Files of a diff with their texts.
#[derive(Clone, Default)]
pub(super) struct Sides {
    pub(super) files: Vec<DiffFile>,
    pub(super) texts: Vec<(String, String)>,
}

impl Sides {
    pub(super) fn file(mut self, path: &str, old: &str, new: &str, findings: Vec<DiffFinding>) -> Self {
        let compared = TextDiff::from_lines(old, new);
        let blocks = compared.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).map(|op| ChangeBlock {
            old: op.old_range().start as u32 + 1,
            old_lines: op.old_range().len() as u32,
            new: op.new_range().start as u32 + 1,
            new_lines: op.new_range().len() as u32,
        });
        self.files.push(DiffFile {
            path: path.to_owned(),
            old_blob: Some(format!("old-{path}")),
            new_blob: Some(format!("new-{path}")),
            blocks: blocks.collect(),
            findings,
            ..DiffFile::default()
        });
        self.texts.push((old.to_owned(), new.to_owned()));
        self
    }

    pub(super) fn page(&self, selected: Option<&str>) -> Arc<DiffPage> {
        Arc::new(DiffPage {
            run: run_id(3),
            from: "1111111111".into(),
            to: "2222222222".into(),
            files: self.files.clone(),
            selected: selected.map(str::to_owned),
            ..DiffPage::default()
        })
    }

    /// Plays the loader: answers all requests for texts.
    pub(super) fn answer(&self, app: &mut App, commands: Vec<AppCommand>) {
        let mut commands = commands;
        while let Some(command) = commands.pop() {
            if let AppCommand::Diff(DiffRequest::Read { page, file }) = command {
                let texts = Ok(self.texts_of(&page, file));
                commands.extend(send(app, AppMessage::DiffFile { page, file, texts }));
            }
        }
    }

    /// Returns the texts of a file of the page.
    pub(super) fn texts_of(&self, page: &DiffPage, file: usize) -> Arc<DiffTexts> {
        let (old, new) = self.texts[file].clone();
        let blocks = &page.files[file].blocks;
        let (before, after) = (LineTable::new(old.clone()), LineTable::new(new.clone()));
        let mut texts = DiffTexts::new(file as u64 + 1, &page.files[file].path, old, new, blocks);
        texts.find_change_without_space(blocks, &before, &after);
        texts.name_changes(blocks, &before, &after);
        Arc::new(texts)
    }

    /// Opens the tab and shows the page.
    pub(super) fn show(&self, app: &mut App, subject: DetailSubject, selected: Option<&str>) {
        app.detail.tab = Tab::Diff;
        let page = self.page(selected);
        let commands = send(app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(page.into()) });
        self.answer(app, commands);
    }
}

pub(super) fn sample_finding(n: u32, priority: Priority, lines: (u32, u32), title: &str) -> DiffFinding {
    DiffFinding {
        id: finding_id(n),
        priority,
        kind: Kind::MissingErrorHandling,
        status: FindingStatus::Open,
        lines: LineRange::new(lines.0, lines.1),
        title: title.to_owned(),
        explanation: "An amount that is no number counts as 0.0, so that the invoice is too low.".to_owned(),
        suggestion: None,
    }
}

pub(super) fn numbered(from: u32, to: u32) -> String {
    (from..=to).map(|n| format!("    let step_{n} = run({n});\n")).collect()
}

/// Two files: one with two changes and three findings, and a new one.
pub(super) fn sample() -> Sides {
    let old = format!(
        "pub fn total(lines: &[Line]) -> f64 {{\n    let mut sum = 0.0;\n    for line in lines {{\n        sum += line.amount();\n    }}\n    sum\n}}\n{}",
        numbered(8, 60)
    );
    let new = old
        .replace("-> f64", "-> Result<f64, Error>")
        .replace("line.amount()", "line.amount.parse::<f64>().unwrap_or(0.0)")
        .replace("    sum\n", "    Ok(sum)\n")
        .replace("    let step_40 = run(40);\n", "    let step_40 = run(41);\n    let more = 1;\n");
    let mut first = sample_finding(2, Priority::P1, (4, 4), "the error of `parse` is ignored");
    first.suggestion = Some(DiffSuggestion {
        text: "Hand the error on.".into(),
        replacement: Some((LineRange::new(4, 4), "        sum += line.amount.parse::<f64>()?;".into())),
    });
    let findings = vec![
        first,
        sample_finding(3, Priority::P2, (25, 26), "unused step"),
        sample_finding(1, Priority::P0, (41, 41), "a token in the source"),
    ];
    Sides::default().file("src/invoice/total.rs", &old, &new, findings).file(
        "src/mail.rs",
        "",
        "//! Sends mail.\n\npub fn send() {}\n",
        Vec::new(),
    )
}

pub(super) fn of_run(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "1");
    sample().show(&mut app, DetailSubject::Run(run_id(3)), None);
    press(&mut app, "Shift-Tab");
    app
}

pub(super) fn of_finding(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "j");
    let sample = Sides { files: sample().files[..1].to_vec(), texts: sample().texts };
    sample.show(&mut app, DetailSubject::Finding(finding_id(2)), Some(&finding_id(2)));
    press(&mut app, "d");
    app
}

#[test]
fn screens() {
    assert_looks_at_all_sizes("diff_of_run", of_run);
    assert_looks_at_all_sizes("diff_of_finding", of_finding);
}

#[test]
fn a_diff_without_an_old_side_is_unified() {
    let mut app = of_run(200, 48);
    press(&mut app, "z");
    assert!(app.detail.diff.columns().is_side_by_side);
    // Unchanged lines, as a whole tree has them.
    let text = "pub fn send() {}\n";
    let tree =
        Sides::default().file("src/mail.rs", text, text, vec![sample_finding(1, Priority::P0, (1, 1), "a token")]);
    let page = Arc::new(DiffPage { from: String::new(), ..(*tree.page(None)).clone() });
    let subject = DetailSubject::Run(run_id(3));
    let commands = send(&mut app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded: Box::new(page.into()) });
    tree.answer(&mut app, commands);
    let count = |app: &App| screen(app).matches("pub fn send() {}").count();
    assert_eq!(count(&app), 1, "{}", screen(&app));
    assert!(!screen(&app).contains("= sides"), "the footer offers no key that does nothing: {}", screen(&app));
    press(&mut app, "=");
    assert!(screen(&app).contains("there is no old side") && count(&app) == 1, "{}", screen(&app));
    // The choice for other diffs stays.
    sample().show(&mut app, DetailSubject::Run(run_id(3)), None);
    assert!(app.detail.diff.columns().is_side_by_side && screen(&app).contains("= sides"), "{}", screen(&app));
}

#[test]
fn a_new_or_deleted_file_takes_the_whole_width() {
    let mut sides = sample().file("src/gone.rs", "pub fn forget() {}\n", "", Vec::new());
    (sides.files[1].old_blob, sides.files[2].new_blob) = (None, None);
    let show = |sides: &Sides| {
        let mut app = showing(200, 70, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z");
        app
    };
    let row_of = |app: &App, text: &str| {
        let shown = screen(app);
        shown.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {shown}")).to_owned()
    };
    let app = show(&sides);
    assert!(app.detail.diff.columns().is_side_by_side);
    assert!(row_of(&app, "Ok(sum)").contains('│'), "{}", screen(&app));
    for text in ["+ pub fn send() {}", "- pub fn forget() {}"] {
        let row = row_of(&app, text);
        assert!(!row.contains('│') && row.find(text).is_some_and(|at| at < 40), "{row}");
    }
    // Without a file of two sides, the key would do nothing.
    sides.files.remove(0);
    sides.texts.remove(0);
    let mut app = show(&sides);
    assert!(!app.detail.diff.columns().is_side_by_side && !screen(&app).contains("= sides"), "{}", screen(&app));
    press(&mut app, "=");
    assert!(screen(&app).contains("no file here has two sides"), "{}", screen(&app));
}

#[test]
fn the_facts_of_a_header_stand_apart() {
    let app = of_run(160, 48);
    assert!(screen(&app).contains("+5 -4  1 P0  1 P1  1 P2"), "{}", screen(&app));
}

#[test]
fn side_by_side_fills_a_wide_screen_and_the_user_may_choose() {
    let mut app = of_finding(160, 48);
    press(&mut app, "z");
    assert!(app.detail.diff.columns().is_side_by_side, "zoomed, there is room");
    assert_looks("diff_side_by_side", &mut app);
    press(&mut app, "=");
    assert!(!app.detail.diff.columns().is_side_by_side);
    press(&mut app, "z =");
    assert!(app.detail.diff.columns().is_side_by_side, "in spite of the width");
    for (columns, rows) in [(100, 30), (80, 24)] {
        let mut app = of_finding(columns, rows);
        press(&mut app, "z =");
        assert!(app.detail.diff.columns().is_side_by_side, "{columns}x{rows}");
        assert_looks("diff_side_by_side", &mut app);
    }
}

#[test]
fn one_key_goes_to_the_diff_and_back() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "d");
    assert_eq!((app.panes.focus, app.detail.tab), (Pane::Detail, Tab::Diff));
    assert!(commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. })));
    press(&mut app, "d");
    assert_eq!((app.panes.focus, app.detail.tab), (Pane::Findings, Tab::Page));
    for key in ["] h", "[ f", "] d"] {
        press(&mut app, key);
        assert_eq!((app.panes.focus, app.detail.tab), (Pane::Detail, Tab::Diff), "{key}");
        press(&mut app, "d");
    }
    let mut app = showing(160, 48, complete(crate::store::StoreViewBuilder::default()));
    press(&mut app, "d");
    assert_eq!((app.panes.focus, app.detail.tab), (Pane::Runs, Tab::Page), "nothing is selected");
}

/// Returns file and new line at the cursor.
pub(super) fn place(app: &App) -> String {
    let (path, line) = crate::tui::diff::source_at_cursor(app).expect("a place");
    format!("{}:{line}", path.rsplit('/').next().unwrap_or(""))
}

#[test]
fn keys_go_from_change_to_change_and_from_finding_to_finding() {
    let mut app = of_run(160, 48);
    let mut places = Vec::new();
    for key in [
        "] h", "] h", "] h", "] h", "] h", "[ h", "[ h", "] d", "] d", "] d", "] d", "[ d", "] f", "] f", "[ f", "G",
        "g",
    ] {
        press(&mut app, key);
        places.push(format!("{key} {}", place(&app)));
    }
    assert_eq!(
        places,
        [
            "] h total.rs:1",
            "] h total.rs:4",
            "] h total.rs:6",
            "] h total.rs:40",
            "] h mail.rs:1",
            "[ h total.rs:40",
            "[ h total.rs:6",
            "] d total.rs:25",
            "] d total.rs:41",
            "] d total.rs:41",
            "] d total.rs:41",
            "[ d total.rs:25",
            "] f mail.rs:1",
            "] f mail.rs:1",
            "[ f total.rs:1",
            "G mail.rs:3",
            "g total.rs:1",
        ]
    );
}

#[test]
fn enter_shows_hidden_lines_and_the_text_of_a_finding() {
    let mut app = of_run(160, 48);
    let rows = app.detail.diff.row_count();
    press(&mut app, "] d Enter");
    assert!(!screen(&app).contains("counts as 0.0"), "the text that the jump has shown is hidden again");
    assert_eq!(app.detail.diff.row_count(), rows);
    press(&mut app, "Space");
    assert!(screen(&app).contains("counts as 0.0"));
    press(&mut app, "Space");
    // The gap below the first changes.
    for _ in 0..40 {
        if screen_row_at_cursor(&app).contains("… 13 lines") {
            break;
        }
        press(&mut app, "j");
    }
    assert!(screen_row_at_cursor(&app).contains("… 13 lines"), "{}", screen(&app));
    press(&mut app, "Enter");
    assert!(screen(&app).contains("let step_15 = run(15)"), "{}", screen(&app));
    assert_eq!(place(&app), "total.rs:10", "the cursor is at the first line that appeared");
}

/// Returns the row of the screen at the cursor of the diff.
fn screen_row_at_cursor(app: &App) -> String {
    let area = app.layout().body(crate::tui::app::Pane::Detail).expect("a pane");
    let row = usize::from(area.y) + app.detail.diff.cursor() - app.detail.diff.top();
    screen(app).lines().nth(row).unwrap_or("").to_owned()
}

#[test]
fn a_gap_names_what_encloses_the_change_below_it() {
    let body = numbered(1, 40).replace("    let", "        let");
    let old = format!("impl Total {{\n    fn sum(&self) {{\n{body}    }}\n}}\n");
    let new = old.replace("run(20)", "run(21)");
    let sides = Sides::default().file("src/a.rs", &old, &new, Vec::new());
    for columns in [100, 160] {
        let mut app = showing(columns, 48, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z");
        let shown = screen(&app);
        assert!(shown.contains("… 18 lines  fn sum(&self) ──"), "{shown}");
        assert!(shown.contains("… 19 lines ──"), "nothing stands below the last gap: {shown}");
        // When the declaration is in sight, the one around it is named.
        while !screen_row_at_cursor(&app).contains("18 lines") {
            press(&mut app, "j");
        }
        press(&mut app, "Enter");
        assert!(!screen(&app).contains("  fn sum(&self) ──"), "{}", screen(&app));
    }
}

#[test]
fn the_top_row_names_the_file_whose_lines_are_at_the_top() {
    let mut app = of_run(160, 24);
    let top_row = |app: &App| {
        let area = app.layout().body(Pane::Detail).expect("a pane");
        screen(app).lines().nth(usize::from(area.y)).unwrap_or("").to_owned()
    };
    press(&mut app, "] h ] h ] h ] h");
    assert!(app.detail.diff.top() > 0);
    assert!(top_row(&app).contains("▾ src/invoice/total.rs") && top_row(&app).contains("+5 -4"), "{}", screen(&app));
    press(&mut app, "] f");
    assert_eq!(
        screen(&app).matches("▾ src/mail.rs").count(),
        1,
        "a header in sight has no second one: {}",
        screen(&app)
    );
}

#[test]
fn a_jump_shows_nothing_above_the_header_of_its_file() {
    let old = numbered(1, 60);
    let new = old.replace("run(", "start(");
    let finding = vec![sample_finding(2, Priority::P1, (1, 1), "a problem")];
    let sides = Sides::default().file("src/a.rs", &old, &new, Vec::new()).file("src/b.rs", &old, &new, finding);
    let mut app = showing(100, 40, view());
    press(&mut app, "j");
    sides.show(&mut app, DetailSubject::Finding(finding_id(2)), Some(&finding_id(2)));
    press(&mut app, "d z");
    assert!(app.detail.diff.top() > 0 && !screen(&app).contains("src/a.rs"), "{}", screen(&app));
    assert_eq!(place(&app), "b.rs:1");
    press(&mut app, "[ f [ f");
    assert_eq!(place(&app), "a.rs:1");
}

#[test]
fn the_title_of_a_diff_says_that_the_code_has_changed_since() {
    for (columns, expected) in [(160, "the code has changed since ──"), (40, "obsolete")] {
        let mut app = of_run(columns, 24);
        let title = |app: &App| {
            let area = app.layout().pane(Pane::Detail).expect("in sight").title;
            screen(app).lines().nth(usize::from(area.y)).unwrap_or("").to_owned()
        };
        assert!(!title(&app).contains(expected), "{}", screen(&app));
        // The branch has another commit.
        let facts = FreshnessFacts::for_worktree(2, "/repo", "main", "another", &[]);
        send(&mut app, AppMessage::Freshness(Arc::new(facts)));
        assert!(title(&app).contains(expected), "{columns}: {}", screen(&app));
    }
    // A screen for a screen reader has a sentence.
    let mut app = of_run(160, 24);
    app.display.plain = true;
    let facts = FreshnessFacts::for_worktree(2, "/repo", "main", "another", &[]);
    send(&mut app, AppMessage::Freshness(Arc::new(facts)));
    send(&mut app, AppMessage::Resized { columns: 160, rows: 24 });
    assert!(screen(&app).contains(", the code has changed since."), "{}", screen(&app));
}

#[test]
fn a_number_of_findings_stands_apart_from_the_number_of_the_line() {
    let text = numbered(1, 60);
    let new = text.replace("let step_32 = ", "let other = ");
    let findings =
        vec![sample_finding(2, Priority::P1, (32, 32), "one"), sample_finding(3, Priority::P1, (32, 32), "two")];
    for (columns, expected) in [(100, "2    32 +"), (160, "2 32 +")] {
        let sides = Sides::default().file("src/a.rs", &text, &new, findings.clone());
        let mut app = showing(columns, 30, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z");
        assert!(screen(&app).contains(expected), "{}", screen(&app));
    }
}

#[test]
fn a_decision_in_the_diff_of_a_run_is_about_the_finding_at_the_cursor() {
    let mut app = of_run(160, 48);
    let commands = press(&mut app, "] d a");
    assert_eq!(store(&mut app, commands), 1);
    assert!(screen(&app).contains("addressed src/invoice/total.rs"), "{}", screen(&app));
}

#[test]
fn a_verdict_in_the_diff_of_a_run_goes_to_its_next_finding_and_the_counts_follow() {
    let decided = |commands: &[AppCommand]| -> Vec<String> {
        let findings = commands.iter().filter_map(|command| match command {
            AppCommand::Triage(TriageOrder::Set { findings, .. }) => Some(findings),
            _ => None,
        });
        findings.flatten().map(ToString::to_string).collect()
    };
    let mut app = of_run(160, 48);
    press(&mut app, "] d");
    for (keys, finding, next, counts) in [
        ("a", 2, "total.rs:25", [true, false, true]),
        ("x 4", 3, "total.rs:41", [true, false, false]),
        // Nothing is left below.
        ("a", 1, "total.rs:41", [false, false, false]),
    ] {
        let commands = press(&mut app, keys);
        assert_eq!(decided(&commands), [finding_id(finding)], "{keys}");
        store(&mut app, commands);
        assert_eq!(place(&app), next, "{}", screen(&app));
        let shown = screen(&app);
        let counted = ["1 P0", "1 P1", "1 P2"].map(|count| shown.contains(count));
        assert_eq!(counted, counts, "{shown}");
    }

    // A number decides those below, too, with one order.
    let mut app = of_run(160, 48);
    press(&mut app, "] d ] d");
    let commands = press(&mut app, "7 a");
    assert_eq!(decided(&commands), [finding_id(3), finding_id(1)]);

    // The next of two findings on one line is the one without a verdict.
    let mut sides = sample();
    sides.files[0].findings.insert(1, sample_finding(5, Priority::P2, (4, 4), "the same line"));
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
    press(&mut app, "Shift-Tab ] d");
    for finding in [2, 5] {
        assert!(place(&app).ends_with(":4"), "{}", screen(&app));
        let commands = press(&mut app, "a");
        assert_eq!(decided(&commands), [finding_id(finding)]);
        store(&mut app, commands);
    }
    assert!(place(&app).ends_with(":25"), "{}", screen(&app));
}
