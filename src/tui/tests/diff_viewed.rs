//! Tests the marks of what the user has viewed in a diff.

use super::diff::{of_run, place, sample};
use super::support::*;
use crate::domain::{Time, ViewedFile};
use crate::tui::app::{App, Pane};
use crate::tui::diff::is_change_name;
use crate::tui::glyphs;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};

#[test]
fn a_viewed_file_is_folded_when_its_mark_is_stored() {
    let mut app = of_run(160, 48);
    let commands = press(&mut app, "g Space");
    let marks: Vec<_> = commands
        .into_iter()
        .filter_map(|command| match command {
            AppCommand::MarkViewed(mark) => Some(mark),
            _ => None,
        })
        .collect();
    assert_eq!(marks.len(), 1);
    assert_eq!(
        (marks[0].path.as_str(), marks[0].content.as_str()),
        ("src/invoice/total.rs", "new-src/invoice/total.rs")
    );
    assert!(!screen(&app).contains("✓ viewed"), "it is not stored yet");
    send(&mut app, AppMessage::ViewedFile { mark: marks[0].clone(), result: Ok(()) });
    let shown = screen(&app);
    assert!(
        shown.contains("✓ viewed") && !shown.contains("let step_41") && shown.contains("viewed 1 of 2 files"),
        "{shown}"
    );
    assert_eq!(place(&app), "mail.rs:1", "the next file is at the cursor");
    let mut mark = marks[0].clone();
    mark.viewed = false;
    send(&mut app, AppMessage::ViewedFile { mark, result: Ok(()) });
    assert!(screen(&app).contains("more = 1"));
    send(&mut app, AppMessage::ViewedFile { mark: marks[0].clone(), result: Err("the disk is full".into()) });
    assert!(screen(&app).contains("not marked as viewed: the disk is full"));
}

#[test]
fn the_diff_is_read_again_when_another_cockpit_has_marked_one_of_its_files() {
    let mut app = of_run(160, 48);
    let path = "src/invoice/total.rs".to_owned();
    let is_read = |app: &mut App, contents: &[&str]| {
        let viewed = contents.iter().map(|content| (path.clone(), (*content).to_owned())).collect();
        let commands = send(app, AppMessage::ViewedFiles(viewed));
        commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. }))
    };
    assert!(!is_read(&mut app, &[]) && !is_read(&mut app, &["another content"]));
    let (path, content) = (path.clone(), "new-src/invoice/total.rs".to_owned());
    let mark = ViewedFile { path, content, viewed: true, at: Time::UNIX_EPOCH };
    assert!(is_read(&mut app, &[mark.content.as_str()]));
    // The mark of this cockpit is shown already.
    send(&mut app, AppMessage::ViewedFile { mark, result: Ok(()) });
    assert!(!is_read(&mut app, &["new-src/invoice/total.rs"]));
}

/// Beginning of the header of the first file.
const HEADER: &str = "▾ src/invoice/total.rs";

/// Plays the store: answers the orders to mark changes. Returns for each mark whether it is one of a change, and whether it is
/// set or taken back.
fn store_marks(app: &mut App, commands: Vec<AppCommand>) -> Vec<(bool, bool)> {
    let mut stored = Vec::new();
    for command in commands {
        if let AppCommand::MarkChanges(marks) = command {
            stored.extend(marks.iter().map(|mark| (is_change_name(&mark.content), mark.viewed)));
            send(app, AppMessage::ChangesMarked { marks, result: Ok(()) });
        }
    }
    stored
}

/// Presses keys and stores the marks of changes. Returns the marks as [`store_marks`].
fn mark(app: &mut App, keys: &str) -> Vec<(bool, bool)> {
    let commands = press(app, keys);
    store_marks(app, commands)
}

/// Returns the first row of the diff on the screen with a text.
fn row_with(app: &App, text: &str) -> String {
    let left = usize::from(app.layout().body(Pane::Detail).expect("a pane").x);
    let screen = screen(app);
    let mut rows = screen.lines().map(|line| line.chars().skip(left).collect::<String>());
    rows.find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}"))
}

fn said(app: &App) -> &str {
    app.notice.as_ref().map_or("", |notice| notice.text.as_str())
}

#[test]
fn a_change_is_marked_as_viewed_and_the_last_one_completes_the_file() {
    let mut app = of_run(160, 48);
    let commands = press(&mut app, "g ] h m");
    assert!(!row_with(&app, HEADER).contains("viewed"), "it is not stored yet: {}", screen(&app));
    assert_eq!(store_marks(&mut app, commands), [(true, true)]);
    assert_eq!(place(&app), "total.rs:4", "the next change that is not viewed");
    assert_eq!(said(&app), "viewed 1 of 4 changes in the file");
    assert!(row_with(&app, HEADER).contains("✓ 1/4 viewed"), "{}", screen(&app));
    // Both sides of the change have the sign, and its first row the word.
    let (removed, added) = (row_with(&app, "-> f64 {"), row_with(&app, "-> Result<f64, Error> {"));
    assert!(removed.contains('✓') && removed.contains(" viewed"), "{removed}");
    assert!(added.contains('✓') && !added.contains("viewed"), "{added}");
    for (expected, next) in [("2/4", "total.rs:6"), ("3/4", "total.rs:40")] {
        assert_eq!(mark(&mut app, "m"), [(true, true)]);
        assert_eq!(place(&app), next);
        assert!(row_with(&app, HEADER).contains(expected), "{}", screen(&app));
    }
    // With its last change the file is viewed: it is folded, and the next file follows.
    assert_eq!(mark(&mut app, "m"), [(true, true), (false, true)]);
    let shown = screen(&app);
    assert!(shown.contains("✓ viewed") && !shown.contains("let step_41"), "{shown}");
    assert_eq!(place(&app), "mail.rs:1");
    // A mark that is taken back takes back that of the file.
    assert_eq!(mark(&mut app, "g Enter ] h m"), [(true, false), (false, false)]);
    assert!(row_with(&app, HEADER).contains("✓ 3/4 viewed"), "{}", screen(&app));
    assert_eq!(place(&app), "total.rs:1", "the cursor stays");
}

#[test]
fn a_header_counts_added_and_removed_lines_or_none_of_them() {
    let mut counted = 0;
    for columns in 30..=130 {
        let mut app = of_run(columns, 30);
        mark(&mut app, "g ] h m g");
        let header = row_with(&app, "▾ ");
        assert_eq!(header.contains("+5"), header.contains("-4"), "{columns}: {header}");
        counted += usize::from(header.contains("+5 -4"));
    }
    assert!(counted > 50, "{counted} headers have the room");
}

#[test]
fn the_other_changes_of_a_viewed_file_stay_viewed() {
    let mut app = of_run(160, 48);
    // As a mark in the list of files does, which has no marks of changes if it is one of very many.
    let commands = press(&mut app, "g Space");
    for command in commands {
        if let AppCommand::MarkViewed(mark) = command {
            send(&mut app, AppMessage::ViewedFile { mark, result: Ok(()) });
        }
    }
    press(&mut app, "g Enter ] h");
    assert!(row_with(&app, "-> f64 {").contains('✓'), "{}", screen(&app));
    let marks = mark(&mut app, "m");
    assert_eq!(marks, [(true, false), (true, true), (true, true), (true, true), (false, false)]);
    assert!(row_with(&app, HEADER).contains("✓ 3/4 viewed"), "{}", screen(&app));
    assert!(!row_with(&app, "-> f64 {").contains('✓'), "{}", screen(&app));
}

#[test]
fn a_file_that_is_marked_as_a_whole_marks_its_changes_so_that_they_outlast_an_edit_elsewhere() {
    let mut app = of_run(160, 48);
    let commands = press(&mut app, "g Space");
    assert_eq!(store_marks(&mut app, commands), [(true, true); 4]);
    // The file has another content, and one of its changes is another one.
    let mut edited = sample();
    let (old, new) = edited.texts[0].clone();
    let added = "    let mut sum = 0.0;\n    // A line more.\n";
    let new = new.replace("    let mut sum = 0.0;\n", added).replace("Ok(sum)", "Ok(sum + 1.0)");
    let names = app.detail.diff.files()[0].read_texts().expect("texts").change_names.iter().cloned().collect();
    edited.files.remove(0);
    edited.texts.remove(0);
    let mut edited = edited.file("src/invoice/total.rs", &old, &new, Vec::new());
    (edited.files[1].new_blob, edited.files[1].viewed_changes) = (Some("edited".to_owned()), names);
    edited.show(&mut app, DetailSubject::Run(run_id(3)), None);
    assert!(row_with(&app, HEADER).contains("✓ 3/5 viewed"), "{}", screen(&app));
}

#[test]
fn a_key_goes_to_the_changes_that_are_not_viewed() {
    let mut app = of_run(160, 48);
    mark(&mut app, "g ] h ] h m");
    press(&mut app, "g");
    let mut places = Vec::new();
    for key in ["] v", "] v", "] v", "[ v", "[ v"] {
        press(&mut app, key);
        places.push(format!("{key} {}", place(&app)));
    }
    assert_eq!(places, ["] v total.rs:1", "] v total.rs:6", "] v total.rs:40", "[ v total.rs:6", "[ v total.rs:1"]);
    press(&mut app, "] v ] v ] v ] v");
    assert_eq!((place(&app).as_str(), said(&app)), ("mail.rs:1", "no unviewed change below"));
}

#[test]
fn an_unchanged_line_stands_for_the_nearest_change_and_a_header_leads_to_the_next_one() {
    let mut app = of_run(160, 48);
    let names = app.detail.diff.files()[0].read_texts().expect("texts").change_names.clone();
    // The removed and the added line 1, then the unchanged lines 2 and 3.
    for (keys, expected) in [("g ] h j j", Some(0)), ("g ] h j j j", Some(1)), ("g", None)] {
        let commands = press(&mut app, &format!("{keys} m"));
        let marked = commands.iter().find_map(|command| match command {
            AppCommand::MarkChanges(marks) => Some(&marks[0].content),
            _ => None,
        });
        assert_eq!(marked, expected.map(|at: usize| &names[at]), "{keys}: {}", screen(&app));
    }
    assert_eq!((place(&app).as_str(), said(&app)), ("total.rs:1", "m marks this change as viewed"));
    assert_eq!(mark(&mut app, "m"), [(true, true)]);
    // From the header of the last file, of which all is viewed, the key leads back.
    mark(&mut app, "G [ f ] h m");
    press(&mut app, "G m");
    assert_eq!((place(&app).as_str(), said(&app)), ("total.rs:40", "m marks this change as viewed"));
    for keys in ["m", "[ v m", "[ v m"] {
        mark(&mut app, keys);
    }
    press(&mut app, "g m");
    assert_eq!(said(&app), "no unviewed change in the unfolded files");
}

#[test]
fn marks_of_changes_by_another_cockpit_and_errors_of_the_store_are_shown() {
    let mut app = of_run(160, 48);
    let name = app.detail.diff.files()[0].read_texts().expect("texts").change_names[0].clone();
    let is_read = |app: &mut App, names: &[&str]| {
        let viewed = names.iter().map(|name| ("src/invoice/total.rs".to_owned(), (*name).to_owned())).collect();
        let commands = send(app, AppMessage::ViewedFiles(viewed));
        commands.iter().any(|command| matches!(command, AppCommand::Load { tab: Tab::Diff, .. }))
    };
    assert!(!is_read(&mut app, &[]));
    assert_eq!(mark(&mut app, "g ] h m"), [(true, true)]);
    assert!(!is_read(&mut app, &[&name]), "its own mark is shown already");
    assert!(is_read(&mut app, &[&name, "#another"]));
    let commands = press(&mut app, "m");
    for command in commands {
        if let AppCommand::MarkChanges(marks) = command {
            send(&mut app, AppMessage::ChangesMarked { marks, result: Err("the disk is full".into()) });
        }
    }
    assert_eq!(said(&app), "not marked as viewed: the disk is full");
    assert!(row_with(&app, HEADER).contains("✓ 1/4 viewed"), "{}", screen(&app));
}

#[test]
fn without_a_diff_the_key_says_why_it_does_nothing() {
    let mut app = showing(160, 48, view());
    press(&mut app, "2 l m");
    assert_eq!(said(&app), "this is for the tab Diff; it is not open");
}

#[test]
fn a_viewed_change_is_told_by_letters_and_words_too() {
    for (glyphs, sign) in [(glyphs::ASCII, Some(" v ")), (glyphs::PLAIN, None)] {
        let mut app = of_run(160, 48);
        app.display.glyphs = glyphs;
        mark(&mut app, "g ] h m");
        let removed = row_with(&app, "-> f64 {");
        assert!(removed.contains(" viewed"), "{removed}");
        assert!(sign.is_none_or(|sign| removed.contains(sign)), "{removed}");
        assert!(screen(&app).contains("1/4 viewed"), "{}", screen(&app));
    }
}

#[test]
fn side_by_side_a_viewed_change_has_its_word_on_the_new_side() {
    let mut app = of_run(160, 48);
    press(&mut app, "z");
    assert!(app.detail.diff.columns().is_side_by_side);
    mark(&mut app, "g ] h m");
    let row = row_with(&app, "-> Result<f64, Error> {");
    assert!(row.contains('✓') && row.contains(" viewed"), "{row}");
    assert_eq!(row.matches("viewed").count(), 1, "{row}");
    // Wrapped lines have no room for the word, but the sign.
    press(&mut app, "= - g");
    let row = row_with(&app, "-> f64 {");
    assert!(row.contains('✓') && !row.contains("viewed"), "{row}");
}
