//! Tests the texts of a diff: copy, search, highlights, white space, lines that face each other, long lines.

use std::sync::Arc;

use super::diff::{Sides, numbered, place, sample_finding};
use super::support::*;
use crate::domain::Priority;
use crate::tui::app::App;
use crate::tui::diff::{DiffOptions, DiffPage, DiffPane, DiffRequest};
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};

#[test]
fn the_code_of_a_line_is_copied_without_its_sign() {
    let old = "fn one() {\n    a();\n    b();\n}\n";
    let new = "fn one() {\n    «secret:github_token»();\n}\n";
    let sides = Sides::default().file("src/a.rs", old, new, Vec::new());
    // Side by side, the row of a changed line has both.
    for (columns, row, expected) in [
        (100, 2, vec!["    a();"]),
        (100, 4, vec!["    «secret:github_token»();"]),
        (160, 2, vec!["    «secret:github_token»();", "    a();"]),
        (160, 3, vec!["    b();"]),
        (160, 1, vec!["fn one() {"]),
        (160, 0, vec![]),
    ] {
        let mut app = showing(columns, 40, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z g");
        (0..row).for_each(|_| drop(press(&mut app, "j")));
        let code: Vec<String> = crate::tui::diff::code_at_cursor(&app).into_iter().map(|(_, line)| line).collect();
        assert_eq!(code, expected, "row {row} of {columns} columns");
        press(&mut app, "y");
        assert_eq!(screen(&app).contains("the line"), !expected.is_empty(), "{}", screen(&app));
        if let Some(line) = expected.first() {
            let commands = press(&mut app, "Enter");
            let copied = commands.iter().find_map(|command| match command {
                AppCommand::Copy(order) => Some(order.text.as_str()),
                _ => None,
            });
            assert_eq!(copied, Some(*line));
        }
    }
}

#[test]
fn a_match_of_the_search_is_shifted_into_sight() {
    let line = |word: &str| format!("let text = \"{}{word}\";\n", "0123456789".repeat(19));
    let new = format!("needle\n{}short\n{}", line("needle"), line("other"));
    for columns in [100, 160] {
        let sides = Sides::default().file("src/a.rs", "", &new, Vec::new());
        let mut app = showing(columns, 30, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z g /");
        type_text(&mut app, "needle");
        press(&mut app, "Enter");
        assert_eq!((place(&app).as_str(), app.detail.diff.shift()), ("a.rs:1", 0));
        press(&mut app, "n");
        assert_eq!(place(&app), "a.rs:2");
        assert!(screen(&app).contains("needle\";"), "{}", screen(&app));
        let shift = app.detail.diff.shift();
        press(&mut app, "n");
        assert_eq!((place(&app).as_str(), app.detail.diff.shift()), ("a.rs:1", 0), "back to the left");
        assert!(shift > 0 && screen(&app).contains("+ needle"), "{}", screen(&app));
    }
}

#[test]
fn both_sides_of_a_change_are_highlighted_and_unchanged_lines_once() {
    // Removed and added lines have no word in common.
    let (old, new) = ("fn first() {}\nlet a = 1;\n", "fn first() {}\nother(call)?;\n");
    let mut app = showing(160, 30, view());
    press(&mut app, "1 Shift-Tab z");
    for (new, expected) in [(new, &[false, true][..]), (old, &[true])] {
        let finding = vec![sample_finding(1, Priority::P0, (1, 1), "a problem")];
        let sides = Sides::default().file("src/a.rs", old, new, finding);
        app.detail.tab = Tab::Diff;
        let subject = DetailSubject::Run(run_id(3));
        let page = Arc::new(DiffPage { to: new.to_owned(), ..(*sides.page(None)).clone() });
        let loaded = Box::new(Arc::clone(&page).into());
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Diff, loaded });
        let texts = Ok(sides.texts_of(&page, 0));
        let commands = send(&mut app, AppMessage::DiffFile { page, file: 0, texts });
        let is_new = commands.iter().filter_map(|command| match command {
            AppCommand::Diff(DiffRequest::Highlight { side, .. }) => Some(*side == crate::tui::diff::DiffPageSide::New),
            _ => None,
        });
        let mut sides: Vec<bool> = is_new.collect();
        sides.sort_unstable();
        assert_eq!(sides, expected, "{}", screen(&app));
    }
}

#[test]
fn a_search_in_the_diff_says_which_match_it_is() {
    let message = |app: &App| {
        let row = usize::from(app.layout().notice.y);
        screen(app).lines().nth(row).unwrap_or("").trim().to_owned()
    };
    let new = "needle\nb\na Needle\nd\nthe needle\n";
    let sides = Sides::default().file("src/a.rs", "other\n", new, Vec::new());
    for columns in [100, 160] {
        let mut app = showing(columns, 30, view());
        press(&mut app, "1");
        sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
        press(&mut app, "Shift-Tab z g /");
        for (typed, expected) in [("n", "1 of 3"), ("eedles", ""), ("x", "")] {
            type_text(&mut app, typed);
            let shown = message(&app);
            assert_eq!(shown.contains(" of "), !expected.is_empty(), "{shown}");
            assert!(shown.starts_with("search") && shown.ends_with(expected), "{shown}");
        }
        press(&mut app, "Backspace Backspace Enter");
        for (key, expected) in [("", "1 of 3"), ("n", "2 of 3"), ("n", "3 of 3"), ("n", "1 of 3"), ("N", "3 of 3")] {
            press(&mut app, key);
            assert!(message(&app).ends_with(&format!("\"needle\" {expected}")), "{}", screen(&app));
        }
    }
    // Where old and new line have the same number, the row has both texts.
    let sides = Sides::default().file("src/a.rs", "first\n", "second\n", Vec::new());
    let mut app = showing(160, 30, view());
    press(&mut app, "1");
    sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
    press(&mut app, "Shift-Tab z g /");
    type_text(&mut app, "first");
    press(&mut app, "Enter");
    assert!(
        app.detail.diff.columns().is_side_by_side && message(&app).ends_with("\"first\" 1 of 1"),
        "{}",
        screen(&app)
    );
}

#[test]
fn white_space_is_ignored_on_request() {
    let old = "fn one() {\n  let  a = 1;\n  b();\n}\n";
    let new = "fn one() {\n    let a = 2;\n    b();\n}\n";
    let finding = vec![sample_finding(2, Priority::P1, (1, 1), "a problem")];
    let sides = Sides::default()
        .file("src/a.rs", old, new, vec![sample_finding(3, Priority::P1, (3, 3), "another")])
        .file("src/b.rs", "a\n", "  a\n", Vec::new())
        .file("src/c.rs", "c\n", "  c\n", finding);
    let mut app = showing(100, 40, view());
    press(&mut app, "1");
    sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
    press(&mut app, "Shift-Tab z");
    let before = screen(&app);
    assert!(before.contains("-   b();") && before.contains("-   let  a = 1;") && before.contains("+   a"), "{before}");
    press(&mut app, "b");
    let shown = screen(&app);
    assert!(shown.contains("white space ignored ──"), "{shown}");
    assert!(
        shown.contains("-   let  a = 1;") && shown.contains("+     let a = 2;"),
        "a line with another change: {shown}"
    );
    assert!(shown.contains("●  3  3       b();"), "no change, but a finding: {shown}");
    let row = |text: &str| shown.lines().position(|line| line.contains(text)).unwrap_or_default();
    let line = |at: usize| shown.lines().nth(at).unwrap_or_default();
    assert!(line(row("src/a.rs")).contains("+1 -1"), "{shown}");
    assert!(line(row("src/b.rs") + 1).trim().starts_with("only white space differs"), "{shown}");
    assert!(line(row("src/c.rs")).contains("only white space differs"), "{shown}");
    assert!(line(row("src/c.rs") + 1).contains("●  1  1     c"), "the finding keeps its line: {shown}");
    let texts = app.detail.diff.files()[0].read_texts().cloned().expect("texts");
    let words = |ignores| {
        let words = texts.changed_words(crate::tui::diff::DiffPageSide::Old, 2, ignores).iter();
        words.map(|word| (word.start, word.end)).collect::<Vec<_>>()
    };
    assert_eq!((words(false), words(true)), (vec![(0, 2), (5, 7), (11, 12)], vec![(11, 12)]));
    press(&mut app, "b");
    assert!(screen(&app).contains("white space counts again"));
    assert_eq!(screen(&app).matches("-   b();").count(), 1, "{}", screen(&app));
}

#[test]
fn side_by_side_a_line_faces_the_line_that_it_became() {
    let old = format!(
        "def load(names):\n    rows = []\n    for path in names:\n        rows.append(read(path))\n        log(path)\n{}",
        numbered(6, 40)
    );
    let new = old
        .replace(
            "        rows.append(read(path))\n        log(path)\n",
            "        try:\n            rows.append(read(path))\n",
        )
        .replace("run(20)", "run(21)");
    let sides = Sides::default().file("load.py", &old, &new, Vec::new());
    let mut app = showing(160, 40, view());
    press(&mut app, "1");
    app.detail.tab = Tab::Diff;
    let loaded = Box::new(sides.page(None).into());
    let reads = send(&mut app, AppMessage::Loaded { subject: DetailSubject::Run(run_id(3)), tab: Tab::Diff, loaded });
    press(&mut app, "Shift-Tab z ] h ] h");
    assert_eq!(place(&app), "load.py:20");
    let rows = app.detail.diff.row_count();
    sides.answer(&mut app, reads);
    assert_eq!(place(&app), "load.py:20", "the texts, which come later, leave the cursor at its line");
    let shown = screen(&app);
    let row = |text: &str| shown.lines().find(|line| line.contains(text)).unwrap_or("");
    assert!(app.detail.diff.row_count() > rows, "{shown}");
    assert_eq!(row("rows.append").matches("rows.append(read(path))").count(), 2, "{shown}");
    assert!(row("try:").matches('+').count() == 1 && !row("try:").contains("- "), "nothing stands beside it: {shown}");
    assert!(row("log(path)").contains("- ") && !row("log(path)").contains('+'), "{shown}");
    assert_eq!(row("run(20)").matches("run(2").count(), 2, "{shown}");
    // Each row has its line, and a comment is about that.
    press(&mut app, "[ h");
    assert_eq!(place(&app), "load.py:4", "the first line of the change: {}", screen(&app));
    press(&mut app, "j");
    let code = |app: &App| crate::tui::diff::code_at_cursor(app).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    assert_eq!(code(&app), ["            rows.append(read(path))", "        rows.append(read(path))"]);
    press(&mut app, "j");
    assert_eq!(code(&app), ["        log(path)"]);
    // Unified, the removed lines stay above the added ones.
    press(&mut app, "=");
    let shown = screen(&app);
    let at = |text: &str| shown.lines().position(|line| line.contains(text)).unwrap_or_default();
    assert!(at("-         log(path)") < at("+         try:"), "{shown}");
    // White space that is ignored leaves one line added and one removed.
    press(&mut app, "= b");
    let shown = screen(&app);
    let row = |text: &str| shown.lines().find(|line| line.contains(text)).unwrap_or("");
    assert!(row("try:").contains("+ ") && !row("rows.append").contains("+ "), "{shown}");
}

#[test]
fn long_lines_are_shifted_or_wrapped() {
    let long = format!("let text = \"{}end\";\n", "0123456789".repeat(18));
    let sides = Sides::default().file("src/a.rs", "", &long, Vec::new());
    let mut app = showing(100, 30, view());
    press(&mut app, "1");
    sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
    press(&mut app, "Shift-Tab");
    assert!(!screen(&app).contains("end\";"));
    for _ in 0..40 {
        press(&mut app, "Right");
    }
    assert!(screen(&app).contains("end\";"), "{}", screen(&app));
    assert_eq!(app.detail.tab, Tab::Diff, "the key does not leave the tab while it shifts");
    let mut app = showing(100, 30, view());
    app.detail.diff = DiffPane::new(DiffOptions { wraps: true, ..DiffOptions::default() });
    press(&mut app, "1");
    sides.show(&mut app, DetailSubject::Run(run_id(3)), None);
    assert!(screen(&app).contains("end\";"), "{}", screen(&app));
}
