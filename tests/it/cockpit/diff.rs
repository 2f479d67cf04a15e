//! The diff of a run: large files, marks that last, findings of the user.

use super::Cockpit;
use crate::env::{DONE, TestEnvironment, run};

/// Returns a file in which every fiftieth line has a word of its own.
fn text_of(lines: usize, word: &str) -> String {
    (1..=lines).map(|n| format!("value_{n} = {}\n", if n % 50 == 7 { word } else { "same" })).collect()
}

/// Creates a repository with a reviewed change of a large file and of a small one, where the cockpit starts nothing itself.
fn reviewed(lines: usize) -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("large.py", text_of(lines, "old"));
    test.write("small.py", "a = 1\n");
    test.commit("base");
    test.write("large.py", text_of(lines, "new"));
    test.write("small.py", "def load(path, items=[]):\n    return items + [path]\n");
    test.settings("on_open = \"nothing\"\nmax_file_bytes = 10000000\n");
    run(&test, &["review", "--wait"], DONE);
    test
}

/// Opens the diff of the newest run.
fn open_diff(test: &TestEnvironment) -> Cockpit {
    let mut cockpit = Cockpit::open(test);
    cockpit.wait_for("small.py");
    // The pane before the runs is the detail.
    cockpit.press("1\x1b[Z");
    cockpit.press("l");
    cockpit.wait("the diff", |screen| screen.contains("+ value_7 = new"));
    cockpit
}

#[test]
fn a_change_of_50_000_lines_opens_and_its_end_is_one_key_away() {
    let test = reviewed(50_000);
    let mut cockpit = open_diff(&test);
    cockpit.press("G");
    cockpit.wait("the last file", |screen| screen.contains("+ def load(path, items=[]):"));
    cockpit.press("[f[f");
    cockpit.press("]h]h]h");
    cockpit.wait("the third change", |screen| screen.contains("+ value_107 = new"));
    cockpit.press("zz");
    cockpit.quit();
}

#[test]
fn a_viewed_file_stays_viewed_until_it_changes() {
    let test = reviewed(60);
    let mut cockpit = open_diff(&test);
    cockpit.press("g ");
    cockpit.wait_for("viewed 1 of 2 files");
    cockpit.quit();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("small.py");
    cockpit.press("1\x1b[Zl");
    let screen = cockpit.wait_for("✓ viewed");
    assert!(!screen.contains("value_7 = new"), "a viewed file is folded: {screen}");
    cockpit.quit();
    test.write("large.py", text_of(60, "other"));
    run(&test, &["review", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("small.py");
    cockpit.press("1\x1b[Zl");
    let screen = cockpit.wait("the new content", |screen| screen.contains("+ value_7 = other"));
    assert!(!screen.contains("✓ viewed"), "{screen}");
    cockpit.quit();
}

#[test]
fn a_viewed_change_stays_viewed_where_it_moves_until_its_lines_change() {
    let test = reviewed(60);
    let mut cockpit = open_diff(&test);
    cockpit.press("g]hm");
    cockpit.wait_for("viewed 1 of 2 changes in the file");
    cockpit.quit();
    let text = text_of(60, "new").replace("value_57 = new", "value_57 = newer");
    test.write("large.py", format!("# A line more.\n{text}"));
    run(&test, &["review", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    // In the list of files, then in the diff.
    cockpit.wait_for("✓ 1/3");
    cockpit.press("1\x1b[Zl");
    cockpit.wait_for("✓ 1/3 viewed");
    // The last change completes the file.
    cockpit.press("g]hm");
    cockpit.wait_for("viewed 2 of 3 changes in the file");
    cockpit.press("m");
    cockpit.wait("the viewed file", |screen| screen.contains("✓ viewed") && !screen.contains("value_7 = new"));
    cockpit.quit();
    let cockpit = Cockpit::open(&test);
    cockpit.wait_for("✓ viewed");
    cockpit.quit();
}

#[test]
fn a_file_is_marked_as_viewed_in_the_list_of_files_and_in_the_diff() {
    let test = reviewed(60);
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the files", |screen| screen.contains("1 with findings"));
    cockpit.press("3");
    cockpit.press(" ");
    cockpit.wait("the mark", |screen| screen.contains("viewed: small.py") && screen.contains("✓ viewed"));
    cockpit.quit();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("✓ viewed");
    cockpit.press("1\x1b[Zl");
    let screen = cockpit.wait("the diff", |screen| screen.contains("+ value_7 = new"));
    assert!(!screen.contains("+ def load(path, items=[]):"), "it is folded: {screen}");
    cockpit.quit();
}

#[test]
fn a_finding_written_on_a_line_is_one_like_others() {
    let test = reviewed(60);
    test.git(&["config", "user.name", "Ada Lovelace"]);
    let mut cockpit = open_diff(&test);
    cockpit.press("]hc");
    cockpit.wait_for("p0 to p3 in front");
    cockpit.press("\r");
    cockpit.wait_for("a finding needs a text");
    cockpit.press("p1 name the value\r");
    cockpit.wait_for("comment written at large.py:7");
    cockpit.wait("its mark in the margin", |screen| screen.contains("1 P1"));
    let listed = test.json(&["findings", "--format", "json"], DONE);
    let findings = listed["findings"].as_array().expect("findings");
    let own = findings.iter().find(|finding| finding["title"] == "name the value").expect("the finding");
    assert_eq!((&own["priority"], &own["line_start"], &own["status"]), (&1.into(), &7.into(), &"open".into()));
    assert!(own["explanation"].as_str().is_some_and(|text| text.starts_with("About the removed line 7:")), "{own}");
    let id = own["finding_id"].as_str().expect("an id").to_owned();
    let shown = run(&test, &["show", &id], DONE);
    assert!(shown.contains("name the value") && shown.contains("value_7 = new"), "{shown}");
    let runs = test.json(&["runs", "--format", "json"], DONE);
    assert_eq!((&runs["runs"][0]["reviewer"], &runs["runs"][0]["owner"]), (&"you".into(), &"Ada Lovelace".into()));
    // A second text about the same line is a second finding, and takes nothing back.
    cockpit.press("cand it is unused\r");
    cockpit.wait("both in the header of the file", |screen| screen.contains("1 P1  1 P2"));
    cockpit.quit();
    run(&test, &["triage", &id, "dismissed", "--reason", "intended"], DONE);
    let listed = test.json(&["findings", "--status", "dismissed", "--format", "json"], DONE);
    assert_eq!(listed["findings"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn a_finding_of_the_user_stays_in_the_diff_of_later_reviews_while_its_code_stands() {
    let test = reviewed(60);
    let mut cockpit = open_diff(&test);
    cockpit.press("]hc");
    cockpit.wait_for("p0 to p3 in front");
    cockpit.press("p1 name the value\r");
    // Its run stands below the review of the same snapshot, whose files stay in the list.
    cockpit.wait("the comment below its review", |screen| screen.contains("└ 1 comment"));
    cockpit.quit();
    // Lines above move it; another file is reviewed as well.
    test.write("large.py", format!("# one\n# two\n{}", text_of(60, "new")));
    test.write("small.py", "def load(path):\n    return [path]\n");
    run(&test, &["review", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    // The run has both files, and the listed findings are in one of them.
    cockpit.wait("the file with the comment", |screen| screen.contains("large.py"));
    cockpit.press("1");
    cockpit.wait("the files of the run", |screen| screen.contains("small.py"));
    cockpit.press("3");
    cockpit.wait("its count in the files", |screen| {
        screen.lines().any(|line| line.contains("○ large.py") && line.contains("·   1   ·   ·"))
    });
    cockpit.press("1\x1b[Zl");
    cockpit.wait("its mark in the new diff", |screen| {
        screen.contains("+ value_7 = new")
            && screen.lines().any(|line| line.contains("large.py") && line.contains("1 P1"))
    });
    cockpit.quit();
    // Its code is replaced: it is no longer there.
    test.write("large.py", text_of(60, "newest"));
    run(&test, &["review", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    cockpit.press("1");
    cockpit.wait_for("small.py");
    cockpit.press("\x1b[Zl");
    let screen = cockpit.wait_for("+ value_7 = newest");
    assert!(!screen.lines().any(|line| line.contains("▾ large.py") && line.contains("1 P1")), "{screen}");
    cockpit.quit();
}

#[test]
fn a_large_file_that_only_the_worktree_has_is_viewed_in_its_review_only() {
    let test = TestEnvironment::new();
    test.write("large.py", text_of(200, "old"));
    test.commit("base");
    test.settings("on_open = \"nothing\"\nmax_file_bytes = 1000\n");
    for (word, in_list) in [("new", true), ("newer", false), ("newest", true)] {
        test.write("large.py", text_of(200, word));
        test.revdeck(&["review", "--wait"]);
        let mut cockpit = Cockpit::open(&test);
        cockpit.wait_for("large.py");
        cockpit.press("1\x1b[Zl");
        let screen = cockpit.wait_for(&format!("+ value_7 = {word}"));
        assert!(!screen.contains("✓ viewed"), "{screen}");
        // The list names the content as the diff does.
        cockpit.press(if in_list { "3\rj " } else { "g " });
        cockpit.wait_for("✓ viewed");
        cockpit.quit();
    }
}

#[test]
fn a_file_that_was_moved_without_changes_is_not_shown_as_new() {
    let test = TestEnvironment::new();
    test.write("large.py", text_of(60, "old"));
    test.write("small.py", "a = 1\n");
    test.commit("base");
    test.git(&["mv", "large.py", "moved.py"]);
    test.write("small.py", "def load(path, items=[]):\n    return items + [path]\n");
    test.commit("move");
    test.settings("on_open = \"nothing\"\n");
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("small.py");
    cockpit.press("1\x1b[Zlz");
    cockpit.wait_for("▸ large.py → moved.py");
    cockpit.press("G\r");
    let screen = cockpit.wait_for("moved from large.py without changes");
    assert!(!screen.contains("+60"), "{screen}");
    cockpit.quit();
}

#[test]
fn a_changed_file_that_is_too_large_is_shown_and_named_as_not_reviewed() {
    let test = TestEnvironment::new();
    test.write("large.py", text_of(200, "old"));
    test.commit("base");
    test.write("large.py", text_of(200, "new"));
    test.settings("on_open = \"nothing\"\nmax_file_bytes = 1000\n");
    test.revdeck(&["review", "--wait"]);
    let open = || {
        let mut cockpit = Cockpit::open(&test);
        cockpit.wait_for("large.py");
        cockpit.press("1\x1b[Zl");
        cockpit
    };
    // The snapshot does not have it, but the worktree does.
    let mut cockpit = open();
    let screen = cockpit.wait_for("+ value_7 = new");
    assert!(screen.contains("▾ large.py") && screen.contains("not reviewed: oversized"), "{screen}");
    assert!(screen.contains("The reviewer did not read this file"), "{screen}");
    assert!(!screen.contains("no findings"), "nobody has read it: {screen}");
    cockpit.press("]hc");
    cockpit.wait_for("the snapshot of this review does not have the file");
    cockpit.quit();
    // Another content is not what was left out of this review.
    test.write("large.py", text_of(200, "newer"));
    let cockpit = open();
    let screen = cockpit.wait_for("It has changed since");
    assert!(screen.contains("a new review") && !screen.contains("value_7 = "), "{screen}");
    cockpit.quit();
    // A commit has it, whatever becomes of the worktree.
    test.commit("large");
    test.write("large.py", text_of(200, "newest"));
    test.revdeck(&["review", "--commit", "HEAD", "--wait"]);
    let cockpit = open();
    let screen = cockpit.wait_for("+ value_7 = newer");
    assert!(screen.contains("The reviewer did not read this file"), "{screen}");
    cockpit.quit();
    // A larger limit does not make the old review one that has read it.
    test.settings("on_open = \"nothing\"\n");
    let cockpit = open();
    let screen = cockpit.wait_for("+ value_7 = newer");
    assert!(screen.contains("The reviewer did not read this file"), "{screen}");
    cockpit.quit();
}

#[test]
fn a_large_file_that_was_moved_in_with_its_folder_is_another_one() {
    let test = TestEnvironment::new();
    test.write("data/large.py", text_of(200, "old"));
    test.commit("base");
    test.write("data/large.py", text_of(200, "new"));
    // It has the same size, and was written before the review.
    let (inside, outside) = (test.repo().join("data"), test.repo().with_file_name("other"));
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("large.py"), text_of(200, "own")).expect("a file");
    test.settings("on_open = \"nothing\"\nmax_file_bytes = 1000\n");
    test.revdeck(&["review", "--wait"]);
    std::fs::rename(&inside, test.repo().with_file_name("away")).expect("moved away");
    std::fs::rename(&outside, &inside).expect("moved in");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("large.py");
    cockpit.press("1\x1b[Zl");
    let screen = cockpit.wait_for("It has changed since");
    assert!(!screen.contains("value_7 = "), "{screen}");
    cockpit.quit();
}

#[test]
fn a_comment_is_rewritten_and_taken_back() {
    let test = reviewed(60);
    let mut cockpit = open_diff(&test);
    cockpit.press("]hvjjjjc");
    cockpit.wait_for("Comment on large.py:7-10");
    cockpit.press("name the value\nin one place\r");
    cockpit.wait("its mark", |screen| screen.contains("E rewrite"));
    cockpit.press("E");
    cockpit.wait_for("Rewrite the comment on large.py:7-10");
    cockpit.press(", please\r");
    let listed = |status: &str| {
        let listed = test.json(&["findings", "--status", status, "--format", "json"], DONE);
        let findings = listed["findings"].as_array().cloned().unwrap_or_default();
        let field = |finding: &serde_json::Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        let own = findings.iter().filter(|finding| field(finding, "title").starts_with("name the"));
        own.map(|own| (field(own, "title"), field(own, "explanation"))).collect::<Vec<_>>()
    };
    let text = |title: &str, details: &str| vec![(title.to_owned(), details.to_owned())];
    cockpit.wait("the new details", |_| listed("open") == text("name the value", "in one place, please"));
    assert_eq!(listed("dismissed"), [], "the same finding says more");
    cockpit.press("\r");
    cockpit.wait("the new text below its line", |screen| screen.contains("in one place, please"));
    cockpit.press("E");
    cockpit.wait_for("Rewrite the comment on");
    cockpit.press("\x1b[A\x05 now\r");
    cockpit.wait_for("comment written at large.py:7-10");
    cockpit.wait("the new title", |_| listed("open") == text("name the value now", "in one place, please"));
    assert_eq!(listed("dismissed"), text("name the value", "in one place, please"));
    // An undo brings the text before the rewriting back.
    cockpit.press("u");
    cockpit.wait("the older title", |_| listed("open") == text("name the value", "in one place, please"));
    // Words that were withdrawn can be written again; other words that begin like them are another comment.
    cockpit.press("]h[hcname the value now\r");
    cockpit.wait("the same words again", |_| listed("open").iter().any(|(title, _)| title == "name the value now"));
    cockpit.press("cname the\r");
    cockpit.wait("another comment", |_| listed("open").iter().any(|(title, _)| title == "name the"));
    assert_eq!(listed("open").len(), 3);
    cockpit.quit();
}
