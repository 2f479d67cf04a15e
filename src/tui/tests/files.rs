//! Tests the list of files: whose files it has, its tree, and what a chosen run or file narrows.

use std::collections::HashSet;
use std::sync::Arc;

use super::lists::listed;
use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use crate::domain::{FindingStatus, ViewedFile};
use crate::store::{FindingRow, RunRow, StoreView, StoreViewBuilder};
use crate::tui::app::{App, ListedFiles, Pane, ReviewedFile, ReviewedFiles};
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, FileListRow, FileListState, RunFile};
use crate::tui::update::data;

/// Returns the paths of the list of files.
fn file_paths(app: &App) -> Vec<&str> {
    app.file_list.files().iter().map(|file| file.path.as_str()).collect()
}

/// Returns a file that was covered and not viewed.
fn covered(path: &str, counts: [u32; 4]) -> FileListRow {
    FileListRow { counts, ..FileListRow::new(path, FileListState::Covered) }
}

/// Returns a file without findings that was left out for a reason.
fn left_out(path: &str, reason: &'static str) -> FileListRow {
    FileListRow::new(path, FileListState::LeftOut(reason))
}

/// Returns the runs whose files are requested.
fn loaded_runs(commands: &[AppCommand]) -> Vec<&str> {
    let runs = commands.iter().filter_map(|command| match command {
        AppCommand::LoadFiles { run } => Some(run.as_str()),
        _ => None,
    });
    runs.collect()
}

#[test]
fn a_chosen_run_narrows_findings_and_files_and_esc_widens_step_by_step() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "1 j Enter");
    let run = run_id(1);
    assert!(loaded_runs(&commands).contains(&run.as_str()));
    assert_eq!((app.chosen_run(), app.panes.focus), (Some(run.as_str()), Pane::Findings));
    assert_eq!(listed(&app), [5, 6]);
    let files = vec![covered("src/mail/queue/retry.rs", [0, 0, 1, 1])];
    send(&mut app, AppMessage::Files { run: run.clone(), files: Some(files) });
    let shown = screen(&app);
    assert!(shown.contains("2 Findings  1/2  of 3fa2c1d"), "{shown}");
    assert!(shown.contains("3 Files  of 3fa2c1d  1 with findings"), "{shown}");
    // Moving through the runs does not change what was chosen.
    let commands = press(&mut app, "1 k");
    assert!(loaded_runs(&commands).is_empty());
    press(&mut app, "3 Enter");
    assert_eq!(app.chosen_run(), Some(run.as_str()));
    assert_eq!(listed(&app), [5], "of the file, what is undecided");
    press(&mut app, "Esc");
    assert_eq!((app.chosen_run(), listed(&app)), (Some(run.as_str()), vec![5, 6]));
    press(&mut app, "Esc");
    assert_eq!((app.chosen_run(), listed(&app)), (None, vec![1, 2, 3, 5]));
    assert_eq!(file_paths(&app), ["src/config.rs", "src/invoice/total.rs", "src/mail/queue/retry.rs"]);
    // A filter that was typed meanwhile is taken back as a whole.
    press(&mut app, "1 j Enter f");
    type_text(&mut app, " p:2");
    press(&mut app, "Enter Esc");
    assert_eq!((app.chosen_run(), listed(&app)), (None, vec![1, 2, 3, 5]));
}

/// Returns the files that are to be marked as viewed or not, and the marks that the store would get.
fn marked_files(commands: Vec<AppCommand>) -> (Vec<RunFile>, Vec<ViewedFile>) {
    let mut orders = commands.into_iter().filter_map(|command| match command {
        AppCommand::MarkFiles { files, viewed, at } => Some((files, viewed, at)),
        _ => None,
    });
    let (files, viewed, at) = orders.next().expect("an order");
    assert!(orders.next().is_none(), "one order");
    let mark = |file: &RunFile| ViewedFile { path: file.path.clone(), content: "1".to_owned(), viewed, at };
    let marks = files.iter().map(mark).collect();
    (files, marks)
}

#[test]
fn space_marks_the_selected_file_and_all_files_of_a_folder_as_viewed() {
    let mut app = showing(160, 48, view());
    let selected = |app: &App| app.file_list.path_at(app.file_list.cursor.selected).map(str::to_owned);
    let viewed = |app: &App| {
        let files = app.file_list.files().iter().filter(|file| file.is_viewed);
        files.map(|file| file.path.clone()).collect::<Vec<_>>()
    };
    let paths = |marks: &[ViewedFile]| marks.iter().map(|mark| (mark.path.clone(), mark.viewed)).collect::<Vec<_>>();
    let (files, marks) = marked_files(press(&mut app, "3 Space"));
    assert_eq!(paths(&marks), [("src/config.rs".to_owned(), true)]);
    assert!(!files[0].run.is_empty() && viewed(&app).is_empty(), "it is not stored yet");
    send(&mut app, AppMessage::FilesMarked { files, result: Ok(marks) });
    assert_eq!(viewed(&app), ["src/config.rs"]);
    assert_eq!(selected(&app).as_deref(), Some("src/invoice/total.rs"), "the next one");
    assert!(screen(&app).contains("viewed: src/config.rs"), "{}", screen(&app));

    // A folder is viewed when all of its files are.
    press(&mut app, "o 2 g");
    assert_eq!(selected(&app).as_deref(), Some("src/"));
    let (files, marks) = marked_files(press(&mut app, "Space"));
    let rest = ["src/invoice/total.rs", "src/mail/queue/retry.rs"];
    assert_eq!(paths(&marks), rest.map(|path| (path.to_owned(), true)));
    send(&mut app, AppMessage::FilesMarked { files: files.clone(), result: Err("the disk is full".to_owned()) });
    assert!(screen(&app).contains("not marked as viewed: the disk is full"));
    send(&mut app, AppMessage::FilesMarked { files, result: Ok(marks) });
    assert!(screen(&app).contains("viewed: 2 files"), "{}", screen(&app));
    // Another order takes a mark back, and the selection stays.
    press(&mut app, "j");
    let before = selected(&app);
    let (files, marks) = marked_files(press(&mut app, "Space"));
    assert_eq!(paths(&marks), [("src/config.rs".to_owned(), false)]);
    send(&mut app, AppMessage::FilesMarked { files, result: Ok(marks) });
    assert_eq!((selected(&app), viewed(&app)), (before, Vec::new()));
}

#[test]
fn the_files_of_a_chosen_run_count_what_the_run_reported() {
    let [newer, older] = [run_id(2), run_id(1)];
    let [first, second, third] = [1, 2, 3].map(finding_id);
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { counts: [0, 0, 1, 0], ..run_row(&newer) });
    builder.run(RunRow { counts: [0, 0, 2, 0], ..run_row(&older) });
    builder.finding(FindingRow { path: "a.rs", ..finding_row(&first, &newer) });
    builder.finding(FindingRow { path: "b.rs", ..finding_row(&second, &older) });
    builder.finding(FindingRow { path: "renamed.rs", ..finding_row(&third, &older) });
    builder.reports(&newer, &[&first]).reports(&older, &[&second, &third]);
    let mut app = showing(160, 48, complete(builder));
    // As they are read: with the finding of the other run that stands there, too.
    let read = || vec![covered("a.rs", [0, 0, 1, 0]), covered("b.rs", [0, 0, 1, 0]), covered("old.rs", [0, 0, 1, 0])];
    let counted = |app: &App| -> Vec<(String, u32)> {
        app.file_list.files().iter().map(|file| (file.path.clone(), file.counts[2])).collect()
    };
    let counts = |files: [(&str, u32); 3]| files.map(|(path, count)| (path.to_owned(), count)).to_vec();
    assert!(loaded_runs(&press(&mut app, "1 j")).contains(&older.as_str()));
    send(&mut app, AppMessage::Files { run: older.clone(), files: Some(read()) });
    assert_eq!(counted(&app), counts([("a.rs", 1), ("b.rs", 1), ("old.rs", 1)]), "until it is chosen");
    assert_eq!(loaded_runs(&press(&mut app, "Enter")), [older.as_str()], "it is chosen: other findings count");
    send(&mut app, AppMessage::Files { run: older.clone(), files: Some(read()) });
    let shown = [("b.rs", 1), ("renamed.rs", 1), ("a.rs", 0)];
    assert_eq!(counted(&app)[..3], counts(shown), "{}", screen(&app));
    assert_eq!(listed(&app), [2, 3], "as many as are listed");
    // A run whose result is gone keeps what was counted.
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { counts: [0, 0, 2, 0], ..run_row(&older) });
    let mut app = showing(160, 48, complete(builder));
    press(&mut app, "1 Enter");
    send(&mut app, AppMessage::Files { run: older.clone(), files: Some(read()) });
    assert_eq!(counted(&app), counts([("a.rs", 1), ("b.rs", 1), ("old.rs", 1)]));
}

#[test]
fn the_files_are_those_of_the_listed_findings_until_a_run_is_chosen() {
    let all = ["src/config.rs", "src/invoice/total.rs", "src/mail/queue/retry.rs"];
    let mut app = showing(160, 48, view());
    assert_eq!(file_paths(&app), all);
    assert!(screen(&app).contains("3 Files  3 with findings"), "{}", screen(&app));
    // A file is one of the run that found something in it last.
    press(&mut app, "3");
    let file = |run: u32, path: &str| DetailSubject::File { run: run_id(run), path: path.to_owned() };
    assert_eq!(app.detail.subject, file(3, "src/config.rs"));
    press(&mut app, "o Esc G");
    assert_eq!(app.detail.subject, file(1, "src/mail/queue/retry.rs"));
    // They follow the filter.
    press(&mut app, "2 f");
    type_text(&mut app, " p:1");
    assert_eq!(file_paths(&app), ["src/invoice/total.rs"]);
    press(&mut app, "Esc");
    assert_eq!(file_paths(&app), all);
    // A chosen file narrows the findings, and the other files stay, to be chosen next.
    press(&mut app, "3 o Esc g j Enter");
    assert_eq!((listed(&app), file_paths(&app)), (vec![2, 3], all.to_vec()));
    press(&mut app, "Esc");
    assert_eq!((listed(&app), file_paths(&app)), (vec![1, 2, 3, 5], all.to_vec()));
    // Going through the runs shows the files of the selected one.
    assert_eq!(loaded_runs(&press(&mut app, "1 o Esc j")), [run_id(3), run_id(1)]);
    assert_eq!(app.file_list.run, run_id(3), "until the others are read");
    press(&mut app, "3");
    assert_eq!(app.file_list.run, run_id(3), "the files that are in sight stay");
    press(&mut app, "2");
    assert_eq!((file_paths(&app), app.file_list.run.as_str()), (all.to_vec(), ""));
    // Files that were on their way are not shown any more.
    send(&mut app, AppMessage::Files { run: run_id(1), files: Some(Vec::new()) });
    assert_eq!(file_paths(&app), all);
}

/// Returns the runs whose files without open findings are requested.
fn reviewed_runs(commands: &[AppCommand]) -> Vec<Vec<String>> {
    let runs = commands.iter().filter_map(|command| match command {
        AppCommand::LoadReviewedFiles { runs } => Some(runs.clone()),
        _ => None,
    });
    runs.collect()
}

#[test]
fn files_without_open_findings_stand_behind_those_of_the_listed_findings() {
    let found = ["src/config.rs", "src/invoice/total.rs", "src/mail/queue/retry.rs"];
    let mut app = app(160, 48);
    let commands = send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert_eq!(reviewed_runs(&commands), [[run_id(3), run_id(1)]], "run 2 was replaced");
    let reviewed = |row: FileListRow| ReviewedFile { row, run: run_id(1) };
    let files = vec![
        reviewed(left_out("Cargo.lock", "lock file")),
        // A file that has had a finding since it was read.
        reviewed(covered("src/config.rs", [0; 4])),
        reviewed(covered("src/mail.rs", [0; 4])),
    ];
    let files = ReviewedFiles { files, ..ReviewedFiles::default() };
    assert!(reviewed_runs(&send(&mut app, AppMessage::ReviewedFiles(files))).is_empty());
    let all = [found[0], found[1], found[2], "src/mail.rs", "Cargo.lock"];
    assert_eq!(file_paths(&app), all);
    let shown = screen(&app);
    assert!(shown.contains("3 Files  3 with findings, 1 clean, 1 left out"), "{shown}");
    // The page of such a file is that of the run that reviewed it.
    assert!(reviewed_runs(&press(&mut app, "3 j j j")).is_empty(), "nothing has changed");
    let file = DetailSubject::File { run: run_id(1), path: "src/mail.rs".into() };
    assert_eq!(app.detail.subject, file);
    // Beside a chosen file, the others stay. A filter that asks for certain findings has none without.
    press(&mut app, "g Enter");
    assert_eq!((listed(&app), file_paths(&app)), (vec![1], all.to_vec()));
    press(&mut app, "Esc");
    for (filter, expected) in [(" p:1", vec![found[1]]), (" config", vec![found[0]]), (" status:open", all.to_vec())] {
        press(&mut app, "2 f");
        type_text(&mut app, filter);
        assert_eq!(file_paths(&app), expected, "{filter}");
        press(&mut app, "Esc");
        assert_eq!(file_paths(&app), all, "back from {filter}");
    }
    // A decision may leave a file without open findings: they are read again once it is stored.
    let commands = press(&mut app, "2 g a");
    assert!(reviewed_runs(&commands).is_empty());
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run_id(3)));
    let commands = send(&mut app, AppMessage::StoreRead { view: complete(builder), written: 9 });
    assert_eq!(reviewed_runs(&commands), [[run_id(3)]]);
    let files = vec![reviewed(covered("src/mail.rs", [0; 4]))];
    send(&mut app, AppMessage::ReviewedFiles(ReviewedFiles { files, ..ReviewedFiles::default() }));
    assert_eq!(file_paths(&app), ["src/mail.rs"], "without any finding");
}

/// Builds a view with one run and a finding in each of two files. `findings` are their paths and statuses.
fn two_findings(findings: [(&str, FindingStatus); 2]) -> Arc<StoreView> {
    let run = run_id(3);
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for ((path, status), id) in findings.into_iter().zip([1, 2].map(finding_id)) {
        builder.finding(FindingRow { path, status, ..finding_row(&id, &run) });
    }
    complete(builder)
}

#[test]
fn the_files_without_open_findings_are_read_again_when_other_files_have_some() {
    use FindingStatus::{Dismissed, Open};
    let mut app = app(160, 48);
    for (title, findings, is_requested) in [
        ("the first view", [("a.rs", Open), ("b.rs", Dismissed)], true),
        ("the same files", [("a.rs", Open), ("b.rs", Dismissed)], false),
        ("as many findings are open, but in another file", [("a.rs", Dismissed), ("b.rs", Open)], true),
        ("the file was renamed", [("a.rs", Dismissed), ("c.rs", Open)], true),
        ("both are open", [("a.rs", Open), ("c.rs", Open)], true),
        ("none is", [("a.rs", Dismissed), ("c.rs", Dismissed)], true),
        ("a decided finding was renamed", [("d.rs", Dismissed), ("c.rs", Dismissed)], false),
    ] {
        let commands = send(&mut app, AppMessage::StoreRead { view: two_findings(findings), written: 0 });
        assert_eq!(reviewed_runs(&commands).len(), usize::from(is_requested), "{title}");
        assert!(reviewed_runs(&send(&mut app, AppMessage::Tick)).is_empty(), "{title}: requested once");
    }
}

#[test]
fn the_marks_of_viewed_files_are_read_again_after_one_was_set() {
    let mut app = showing(160, 48, view());
    let run = app.file_list.newest_runs["src/config.rs"].clone();
    app.file_list.set_viewed(&run, "src/config.rs", true);
    assert!(reviewed_runs(&send(&mut app, AppMessage::Tick)).is_empty(), "the list has the mark");
    let commands = send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert_eq!(reviewed_runs(&commands).len(), 1, "other runs may have the same content");
    // The list shows the file of another run, which may have the same content.
    app.file_list.set_viewed(&run_id(9), "src/config.rs", true);
    assert_eq!(reviewed_runs(&send(&mut app, AppMessage::Tick)).len(), 1);
    assert!(reviewed_runs(&send(&mut app, AppMessage::Tick)).is_empty(), "requested once");
}

#[test]
fn the_marks_of_viewed_files_are_read_again_after_another_cockpit_set_one() {
    let mut app = showing(160, 48, view());
    assert!(reviewed_runs(&send(&mut app, AppMessage::Tick)).is_empty(), "nothing has changed");
    let commands = send(&mut app, AppMessage::ViewedFiles(HashSet::new()));
    assert_eq!(reviewed_runs(&commands).len(), 1);
    assert!(reviewed_runs(&send(&mut app, AppMessage::Tick)).is_empty(), "requested once");
}

#[test]
fn the_numbers_of_very_many_files_say_that_there_are_more() {
    for (has_more_clean, has_more_left_out, clean, left) in [
        (false, false, "3 with findings, 1 clean, ", " 1 left out"),
        (true, false, "3 with findings, 1+ clean, ", " 1 left out"),
        (true, true, "3 with findings, 1+ clean, ", " 1+ left out"),
    ] {
        let mut app = showing(200, 60, view());
        let reviewed = |row: FileListRow| ReviewedFile { row, run: run_id(1) };
        let files = vec![reviewed(covered("src/mail.rs", [0; 4])), reviewed(left_out("z.lock", "lock file"))];
        let reviewed = ReviewedFiles { files, has_more_clean, has_more_left_out, ..ReviewedFiles::default() };
        send(&mut app, AppMessage::ReviewedFiles(reviewed));
        let shown = screen(&app);
        assert!(shown.contains(clean), "{clean}: {shown}");
        assert_eq!(shown.matches(left).count(), 2, "{left} in the title and in its row: {shown}");
        // The files of a run are all listed.
        press(&mut app, "1");
        send(&mut app, AppMessage::Files { run: run_id(3), files: Some(vec![covered("a.rs", [0; 4])]) });
        assert!(screen(&app).contains(" 1 clean "), "{}", screen(&app));
    }
}

#[test]
fn files_with_findings_are_marked_as_viewed_without_a_chosen_run() {
    let mut app = showing(160, 48, view());
    let viewed = |app: &App| -> Vec<String> {
        let files = app.file_list.files().iter().filter(|file| file.is_viewed);
        files.map(|file| file.path.clone()).collect()
    };
    assert_eq!(viewed(&app), [""; 0]);
    // The newest run with findings in a file is shown. The content of another run may have been viewed.
    let run = app.file_list.newest_runs["src/config.rs"].clone();
    let marks = [("src/config.rs", run.clone()), ("src/invoice/total.rs", run_id(9))];
    let marks = marks.map(|(path, run)| (path.to_owned(), vec![run])).into_iter().collect();
    send(&mut app, AppMessage::ReviewedFiles(ReviewedFiles { viewed: marks, ..ReviewedFiles::default() }));
    assert_eq!(viewed(&app), ["src/config.rs"]);
    assert_eq!(screen(&app).matches("✓ viewed").count(), 1, "{}", screen(&app));
    // A filter for certain findings keeps the marks.
    press(&mut app, "2 f");
    type_text(&mut app, " config");
    press(&mut app, "Enter");
    assert_eq!(viewed(&app), ["src/config.rs"]);
    // A mark that is taken back or set in the diff shows at once, and stays when the files are listed again.
    app.file_list.set_viewed(&run, "src/config.rs", false);
    assert_eq!(viewed(&app), [""; 0]);
    app.file_list.set_viewed(&run_id(9), "src/config.rs", true);
    assert_eq!(viewed(&app), [""; 0], "the content of another run");
    app.file_list.set_viewed(&run, "src/config.rs", true);
    press(&mut app, "Esc");
    assert_eq!(viewed(&app), ["src/config.rs"]);
}

#[test]
fn the_files_beside_a_chosen_one_are_counted_anew() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "3 g Enter a");
    assert_eq!((store(&mut app, commands), file_paths(&app).len()), (1, 3), "what was decided just now stays");
    // The first file has no open finding any more.
    press(&mut app, "3 g Enter");
    assert_eq!(file_paths(&app), ["src/invoice/total.rs", "src/mail/queue/retry.rs"]);
    assert_eq!(app.selected_file().map(|file| file.path.as_str()), Some("src/invoice/total.rs"));
    press(&mut app, "3 j Enter");
    assert_eq!((listed(&app), file_paths(&app).len()), (vec![5], 2));
}

/// Returns the request for the files of findings, and its answer.
fn wanted(commands: Vec<AppCommand>) -> Option<(u64, ListedFiles)> {
    commands.into_iter().find_map(|command| match command {
        AppCommand::ListFiles { serial, view, source } => Some((serial, source.collect_files(&view))),
        _ => None,
    })
}

/// Answers the request for the listed findings as the filter thread would.
fn filtered(app: &mut App, commands: Vec<AppCommand>) -> Vec<AppCommand> {
    let found = commands.into_iter().find_map(|command| match command {
        AppCommand::Filter { serial, view, query } => Some((serial, view, query)),
        _ => None,
    });
    let (serial, view, query) = found.expect("a request");
    let listed = query.list(&view);
    send(app, AppMessage::Filtered { serial, view, listed })
}

#[test]
fn the_files_beside_a_chosen_one_follow_a_large_store() {
    let mut app = app(160, 48);
    let mut commands = send(&mut app, AppMessage::StoreRead { view: many(5_000), written: 0 });
    for (step, count) in [("opened", 5_000), ("chosen", 5_000), ("one more finding", 5_001), ("widened", 5_001)] {
        let commands_of_list = filtered(&mut app, commands);
        let (serial, listed) = wanted(commands_of_list).unwrap_or_else(|| panic!("{step}: no request for the files"));
        send(&mut app, AppMessage::FilesListed { serial, listed });
        assert_eq!(app.file_list.files()[0].counts, [0, 0, count, 0], "{step}");
        let is_chosen = app.finding_list.filter_text.contains("path:");
        assert_eq!(is_chosen, matches!(step, "chosen" | "one more finding"), "{step}");
        commands = match step {
            "opened" => press(&mut app, "3 g Enter"),
            "chosen" => send(&mut app, AppMessage::StoreRead { view: many(5_001), written: 0 }),
            _ => press(&mut app, "Esc"),
        };
    }
}

#[test]
fn the_files_of_a_run_beside_a_chosen_one_are_read_again() {
    let mut app = showing(160, 48, view());
    press(&mut app, "1");
    let files = vec![covered("src/invoice/total.rs", [0, 1, 1, 0])];
    send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files) });
    press(&mut app, "3 Enter");
    let filter = "status:undecided path:src/invoice/total.rs";
    assert_eq!((app.file_list.run.as_str(), app.finding_list.filter_text.as_str()), (run_id(3).as_str(), filter));
    let commands = send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert_eq!(loaded_runs(&commands), [run_id(3)]);
    assert!(loaded_runs(&press(&mut app, "j")).is_empty());
}

#[test]
fn the_files_of_many_findings_are_collected_elsewhere_and_old_answers_do_not_count() {
    let mut app = app(160, 48);
    let commands = send(&mut app, AppMessage::StoreRead { view: many(5_000), written: 0 });
    let commands = filtered(&mut app, commands);
    let (old, first) = wanted(commands).expect("a request for the files");
    assert_eq!((file_paths(&app), first.files[0].counts), (Vec::new(), [0, 0, 5_000, 0]));
    let commands = send(&mut app, AppMessage::StoreRead { view: many(5_001), written: 0 });
    let commands = filtered(&mut app, commands);
    let (new, second) = wanted(commands).expect("a request for the files");
    send(&mut app, AppMessage::FilesListed { serial: new, listed: second });
    send(&mut app, AppMessage::FilesListed { serial: old, listed: first });
    assert_eq!(app.file_list.files()[0].counts, [0, 0, 5_001, 0]);
    assert!(wanted(press(&mut app, "j")).is_none(), "the same findings are listed");
}

#[test]
fn files_can_be_a_tree_of_folders_with_the_marks_of_viewed_ones() {
    let viewed = |path, counts| FileListRow { is_viewed: true, ..covered(path, counts) };
    let files = || {
        vec![
            viewed("src/invoice/total.rs", [0, 1, 1, 0]),
            covered("src/invoice/rows/line.rs", [0; 4]),
            covered("src/config.rs", [1, 0, 0, 0]),
            viewed("README.md", [0; 4]),
            left_out("Cargo.lock", "lock file"),
        ]
    };
    let open = |columns, rows| {
        let mut app = showing(columns, rows, view());
        press(&mut app, "1");
        send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files()) });
        let commands = press(&mut app, "3 o 2");
        load_pages(&mut app, commands);
        app
    };
    assert_looks_at_all_sizes("file_tree", open);
    let mut app = open(160, 48);
    let rows = |app: &App| app.file_list.row_count();
    assert_eq!(rows(&app), 8, "{}", screen(&app));
    press(&mut app, "g j Enter");
    assert_eq!(rows(&app), 3, "a folded folder: {}", screen(&app));
    assert_eq!(app.panes.focus, Pane::Files);
    send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files()) });
    assert_eq!(rows(&app), 3, "it stays folded");
    press(&mut app, "Enter 5 j Enter");
    assert_eq!(
        app.finding_list.filter_text, "status:undecided path:src/invoice/total.rs",
        "a file narrows the findings"
    );
    press(&mut app, "3 o 1");
    assert_eq!(rows(&app), 5);
}

#[test]
fn a_choice_of_a_file_is_no_part_of_a_quote_that_was_not_closed() {
    let mut app = showing(160, 48, view());
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "\"unused parameter");
    press(&mut app, "Enter");
    assert_eq!(listed(&app), [3]);
    press(&mut app, "3 Enter");
    assert_eq!(app.finding_list.filter_text, "\"unused parameter\" path:src/invoice/total.rs");
    assert_eq!(listed(&app), [3]);
}

#[test]
fn choices_of_files_and_runs_read_the_terms_of_the_filter_not_its_text() {
    let run = run_id(3);
    for (typed, of_file, of_run) in [
        ("run:ID", "status:undecided path:a.rs run:ID", "run:ID"),
        ("run:ID status:open", "status:open path:a.rs run:ID", "run:ID"),
        ("run:ID s:open", "s:open path:a.rs run:ID", "run:ID"),
        ("RUN:ID Status:open", "Status:open path:a.rs run:ID", "run:ID"),
        // Words in quotes are no terms.
        (
            r#"run:ID "status: unused""#,
            r#"status:undecided "status: unused" path:a.rs run:ID"#,
            r#""status: unused" run:ID"#,
        ),
        (r#""a run: b" p:1"#, r#""a run: b" p:1 path:a.rs"#, r#""a run: b" p:1 run:ID"#),
        // The other name of a path.
        ("file:b.rs p:1", "p:1 path:a.rs", "p:1 run:ID"),
    ] {
        for (is_file, expected) in [(true, of_file), (false, of_run)] {
            let mut app = showing(160, 48, view());
            press(&mut app, "f Ctrl-u");
            type_text(&mut app, &typed.replace("ID", &run));
            press(&mut app, "Enter");
            match is_file {
                true => data::show_path(&mut app, "a.rs", &mut Vec::new()),
                false => data::show_run(&mut app, &run, &mut Vec::new()),
            }
            assert_eq!(app.finding_list.filter_text, expected.replace("ID", &run), "{typed}");
        }
    }
}

#[test]
fn a_file_with_white_space_in_its_name_narrows_and_its_filter_can_be_saved() {
    let run = run_id(1);
    let path = "docs dir/a b, c.py";
    let mut builder = StoreViewBuilder::default();
    builder.run(run_row(&run));
    for (number, path) in [(1, path), (2, "src/a.rs"), (3, "docs dir/a b.py")] {
        let id = finding_id(number);
        builder.finding(FindingRow { path, ..finding_row(&id, &run) });
    }
    let mut app = showing(160, 48, complete(builder));
    press(&mut app, "1");
    send(&mut app, AppMessage::Files { run, files: Some(vec![covered(path, [0, 0, 1, 0])]) });
    press(&mut app, "3 Enter");
    let filter = r#"status:undecided path:"docs dir/a b, c.py""#;
    assert_eq!((app.panes.focus, app.finding_list.filter_text.as_str()), (Pane::Findings, filter));
    assert_eq!(listed(&app), [1]);
    // The filter goes through a saved one and back, and is offered what fits behind it.
    press(&mut app, "f");
    type_text(&mut app, "=@docs");
    let commands = press(&mut app, "Enter");
    let saved = commands.iter().find_map(|command| match command {
        AppCommand::SaveFilter(change) => change.text.clone(),
        _ => None,
    });
    assert_eq!(saved.as_deref(), Some(filter));
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "@docs");
    press(&mut app, "Enter");
    assert_eq!((listed(&app), app.finding_list.filter_text.as_str()), (vec![1], filter));
    press(&mut app, "f");
    type_text(&mut app, "ki");
    press(&mut app, "Tab Esc Esc");
    assert_eq!(listed(&app).len(), 3, "Esc widens: {}", app.finding_list.filter_text);
}

#[test]
fn files_that_were_left_out_are_one_row_until_it_is_opened() {
    let mut app = showing(160, 48, view());
    let files = vec![left_out("Cargo.lock", "lock file"), covered("a.rs", [0; 4]), left_out("b.bin", "binary")];
    press(&mut app, "1");
    send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files) });
    press(&mut app, "3 o Esc j");
    assert!(app.selected_file().is_none());
    let shown = screen(&app);
    assert!(shown.contains("1 clean, 2 left out") && !shown.contains("Cargo.lock"), "{shown}");
    press(&mut app, "Enter j");
    assert_eq!(app.selected_file().map(|file| file.path.as_str()), Some("Cargo.lock"));
    press(&mut app, "k Enter");
    assert!(!screen(&app).contains("Cargo.lock"));
}

#[test]
fn the_names_of_the_columns_stand_above_the_numbers_of_the_files() {
    let clean = || vec![covered("src/mail.rs", [0; 4])];
    let found = || {
        vec![
            covered("src/config.rs", [1, 0, 0, 0]),
            covered("src/mail.rs", [0; 4]),
            left_out("Cargo.lock", "lock file"),
        ]
    };
    let title = |(columns, rows): (u16, u16), scope: &str, files: Vec<FileListRow>| {
        let run = run_id(1);
        let mut builder = StoreViewBuilder::default();
        builder.run(RunRow { scope, ..run_row(&run) });
        let mut app = showing(columns, rows, complete(builder));
        send(&mut app, AppMessage::Files { run: run.clone(), files: Some(files) });
        let shown = screen(&app);
        let line = shown.lines().find(|line| line.contains("3 Files")).unwrap_or_else(|| panic!("{shown}"));
        let title = line.split('│').next().unwrap_or(line).replace('─', " ");
        title.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let long = "range:feature/exchange-between-machines..feature/a-database-for-teams";
    for (size, scope, files, expected) in [
        ((200, 60), "worktree", found(), "3 Files of worktree 1 with findings, 1 clean, 1 left out p0 p1 p2 p3"),
        ((160, 48), "worktree", found(), "3 Files of worktree 1 with findings, 1 clean p0 p1 p2 p3"),
        ((120, 30), "worktree", found(), "3 Files of worktree p0 p1 p2 p3"),
        ((120, 30), "range:HEAD~3..HEAD", found(), "3 Files of HEAD~3..HEAD p0 p1 p2 p3"),
        ((120, 30), long, found(), "3 Files of feature/exchange-betwee… p0 p1 p2 p3"),
        ((160, 48), "worktree", clean(), "3 Files of worktree 1 clean"),
    ] {
        assert_eq!(title(size, scope, files), expected, "{size:?} {scope}");
    }
}

#[test]
fn a_file_of_which_a_part_was_viewed_says_how_many_of_its_changes() {
    let mut app = showing(160, 48, view());
    let run = app.file_list.newest_runs["src/config.rs"].clone();
    let part = |run: &str| ("src/config.rs".to_owned(), (run.to_owned(), (2, 5)));
    for (run, is_shown) in [(run.as_str(), true), (run_id(9).as_str(), false)] {
        let partly_viewed = [part(run)].into_iter().collect();
        send(&mut app, AppMessage::ReviewedFiles(ReviewedFiles { partly_viewed, ..ReviewedFiles::default() }));
        assert_eq!(screen(&app).contains("✓ 2/5"), is_shown, "{}", screen(&app));
    }
    // A tree of folders, and a screen for a screen reader.
    let part = FileListRow { viewed_changes: Some((2, 5)), ..covered("src/a.rs", [0; 4]) };
    let files = vec![part, covered("src/b.rs", [0; 4])];
    press(&mut app, "1");
    send(&mut app, AppMessage::Files { run: run_id(3), files: Some(files) });
    press(&mut app, "3 o 2");
    let shown = screen(&app);
    assert!(shown.contains("✓ 2/5") && !shown.contains("0/2"), "{shown}");
    app.display.plain = true;
    assert!(screen(&app).contains("src/a.rs: no findings, 2 of 5 changes viewed"), "{}", screen(&app));
    // The mark of the whole file takes its place.
    app.file_list.set_viewed(&run_id(3), "src/a.rs", true);
    assert!(screen(&app).contains("src/a.rs: no findings, viewed"), "{}", screen(&app));
}

#[test]
fn a_mark_of_a_file_that_is_taken_back_takes_back_those_of_its_changes() {
    let mut app = showing(160, 48, view());
    let run = app.file_list.newest_runs["src/config.rs"].clone();
    let partly_viewed = [("src/config.rs".to_owned(), (run.clone(), (2, 5)))].into_iter().collect();
    send(&mut app, AppMessage::ReviewedFiles(ReviewedFiles { partly_viewed, ..ReviewedFiles::default() }));
    assert!(screen(&app).contains("✓ 2/5"), "{}", screen(&app));
    for is_viewed in [true, false] {
        app.file_list.set_viewed(&run, "src/config.rs", is_viewed);
    }
    // The files are listed again, before the marks are read.
    send(&mut app, AppMessage::StoreRead { view: view(), written: 0 });
    assert!(!screen(&app).contains("✓ 2/5"), "{}", screen(&app));
}
