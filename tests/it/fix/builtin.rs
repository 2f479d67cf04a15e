//! Exact suggestions of the built-in reviewer: made, applied, refused and undone.

use insta::{allow_duplicates, assert_snapshot};
use rstest::rstest;

use super::{UNUSED, USED, findings, fix, gits_own, id_of, run, status_of};
use crate::env::{DONE, TestEnvironment, USAGE, files_below};

/// Creates and reviews a repository with this content in `a.py`; returns the id of its finding.
fn reviewed(content: &str) -> (TestEnvironment, String) {
    let test = TestEnvironment::new();
    test.write("a.py", content);
    test.commit("an unused import");
    run(&test, &["review", "--wait"], 0);
    let ids = findings(&test, "a.py");
    assert_eq!(ids.len(), 1, "{ids:?}");
    let id = ids[0].clone();
    (test, id)
}

fn read(test: &TestEnvironment, path: &str) -> String {
    String::from_utf8(std::fs::read(test.repo().join(path)).expect("a file")).expect("text")
}

#[test]
fn a_suggestion_is_made_applied_and_undone_and_git_sees_nothing_of_it() {
    let (test, id) = reviewed(UNUSED);
    // The index and the stash hold changes that the fix must not touch.
    test.write("b.txt", "staged");
    test.git(&["add", "b.txt"]);
    test.write("c.txt", "stashed");
    test.git(&["stash", "push", "-q", "-u", "--", "c.txt"]);
    let before = gits_own(&test);
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["status"].as_str(), made["reviewer"].as_str()), (Some("offered"), Some("builtin")), "{made}");
    assert_eq!(made["files"][0]["path"], "a.py");
    assert_eq!(read(&test, "a.py"), UNUSED, "an offer touches nothing");
    let fix = id_of(&made);
    assert_snapshot!(test.output(&["fix", "show", &fix], DONE), @"
    diff --git a/a.py b/a.py
    index [hash]..[hash] 100644
    --- a/a.py
    +++ b/a.py
    @@ -1,5 +1,4 @@
     import sys
    -import os
     
     
     def main():
    ");

    assert_snapshot!(test.output(&["fix", "apply", &fix], DONE), @"
    [fix]  applied    Unused import `os` in a.py, by builtin; 1 file, +0 -1; review of the fix: clean
      a.py
    ");
    assert_eq!(read(&test, "a.py"), USED);
    assert_eq!(status_of(&test, &id), "addressed");
    assert_snapshot!(test.fails(&["fix", "apply", &fix], USAGE), @"error: [fix] is applied: only an offer can be applied");
    assert_snapshot!(test.fails(&["fix", "drop", &fix], USAGE), @"error: [fix] is applied: there is nothing to drop");
    assert_snapshot!(test.fails(&["fix", &id], USAGE), @"
    error: f_[id] is addressed: there is nothing to fix
      hint: `revdeck triage f_[id] open` opens it again
    ");

    run(&test, &["fix", "undo", &fix], 0);
    assert_eq!(read(&test, "a.py"), UNUSED);
    assert_eq!(status_of(&test, &id), "open");
    assert_eq!(gits_own(&test), before);
    // The fix can be applied again.
    run(&test, &["fix", "apply", &fix], 0);
    assert_eq!(read(&test, "a.py"), USED);
    run(&test, &["fix", "undo", "latest"], 0);
    run(&test, &["fix", "drop", &fix], 0);
    assert_snapshot!(test.fails(&["fix", "apply", &fix], USAGE), @"error: [fix] is dropped: only an offer can be applied");
    assert_snapshot!(test.output(&["fixes"], DONE), @"[fix]  dropped    Unused import `os` in a.py, by builtin; 1 file, +0 -1; review of the fix: clean");
    assert_eq!(test.json(&["store", "verify", "--format", "json"], 0)["problems"], serde_json::json!([]));
}

#[rstest]
#[case::carriage_returns(&UNUSED.replace('\n', "\r\n"), &USED.replace('\n', "\r\n"))]
#[case::no_last_line_end(UNUSED.trim_end(), USED.trim_end())]
fn line_ends_stay_as_they_are(#[case] before: &str, #[case] after: &str) {
    let (test, id) = reviewed(before);
    let fix = id_of(&fix(&test, &[&id], 0));
    run(&test, &["fix", "apply", &fix], 0);
    assert_eq!(read(&test, "a.py"), after);
    run(&test, &["fix", "undo", &fix], 0);
    assert_eq!(read(&test, "a.py"), before);
}

#[test]
fn a_file_that_git_converts_keeps_its_own_line_ends() {
    let test = TestEnvironment::new();
    test.write(".gitattributes", "*.py text eol=crlf\n");
    test.write("a.py", UNUSED.replace('\n', "\r\n"));
    test.commit("converted");
    run(&test, &["review", "--wait"], 0);
    let fix = id_of(&fix(&test, &[&findings(&test, "a.py")[0]], 0));
    run(&test, &["fix", "apply", &fix], 0);
    assert_eq!(read(&test, "a.py"), USED.replace('\n', "\r\n"));
}

#[test]
fn the_patch_follows_lines_that_moved_and_refuses_lines_that_changed() {
    let (test, id) = reviewed(UNUSED);
    let made = id_of(&fix(&test, &[&id], 0));
    // The code moves down, and other code changes.
    let moved = format!("\"\"\"Doc.\"\"\"\n\n{}# end\n", UNUSED);
    test.write("a.py", &moved);
    run(&test, &["fix", "apply", &made], 0);
    assert_eq!(read(&test, "a.py"), moved.replace("import os\n", ""));
    // The file was edited after that: undo must not overwrite the user's edit.
    test.write("a.py", "mine\n");
    assert_snapshot!(test.fails(&["fix", "undo", &made], USAGE), @"
    error: the lines of the fix in a.py have changed since: nothing was taken back
      hint: undo your changes of these lines first, or take the fix back by hand; opening its findings again needs no file: `revdeck triage FINDING open`
    ");
    assert_eq!(read(&test, "a.py"), "mine\n");

    let (test, id) = reviewed(UNUSED);
    let made = id_of(&fix(&test, &[&id], 0));
    let changed = UNUSED.replace("import os", "import os.path");
    test.write("a.py", &changed);
    assert_snapshot!(test.fails(&["fix", "apply", &made], USAGE), @r#"
    error: the patch does not apply: a.py: line 2 is "import os.path" and not "import os"
      hint: your files have changed since the snapshot; review again and fix what is found then, or take from `revdeck fix show` what you need
    "#);
    assert_eq!(read(&test, "a.py"), changed);
    assert_eq!(status_of(&test, &id), "open");
    std::fs::remove_file(test.repo().join("a.py")).expect("removed");
    assert_snapshot!(test.fails(&["fix", "apply", &made], USAGE), @"
    error: the patch does not apply: a.py is not there any more
      hint: your files have changed since the snapshot; review again and fix what is found then, or take from `revdeck fix show` what you need
    ");
}

#[test]
fn only_the_lines_of_the_fix_are_taken_back() {
    let (test, id) = reviewed(&format!("{UNUSED}\n\ndef more():\n    return sys.path\n"));
    let made = id_of(&fix(&test, &[&id], 0));
    run(&test, &["fix", "apply", &made], 0);
    // The user edits another part of the file.
    let goes_on = read(&test, "a.py").replace("sys.path\n", "sys.path[0]\n") + "# more\n";
    test.write("a.py", &goes_on);
    run(&test, &["fix", "undo", &made], 0);
    assert_eq!(read(&test, "a.py"), goes_on.replace("import sys\n", "import sys\nimport os\n"));
    assert_eq!(status_of(&test, &id), "open");
}

#[test]
fn undo_takes_the_files_back_with_the_findings_and_redo_both_again() {
    let test = TestEnvironment::new();
    test.write("a.py", UNUSED);
    test.write("b.py", UNUSED);
    test.commit("two");
    run(&test, &["review", "--wait"], 0);
    let (one, other) = (findings(&test, "a.py")[0].clone(), findings(&test, "b.py")[0].clone());
    let made = id_of(&fix(&test, &[&one], 0));
    assert_snapshot!(test.output(&["fixes"], DONE), @"[fix]  offered    Unused import `os` in a.py, by builtin; 1 file, +0 -1; review of the fix: clean");
    run(&test, &["triage", &other, "dismissed", "--reason", "wanted"], 0);
    run(&test, &["fix", "apply", &made], 0);

    assert_snapshot!(test.output(&["undo"], DONE), @"
    [fix]  undone     Unused import `os` in a.py, by builtin; 1 file, +0 -1; review of the fix: clean
      a.py
    ");
    assert_eq!((read(&test, "a.py").as_str(), status_of(&test, &one).as_str()), (UNUSED, "open"));
    run(&test, &["redo"], 0);
    assert_eq!((read(&test, "a.py").as_str(), status_of(&test, &one).as_str()), (USED, "addressed"));
    run(&test, &["undo"], 0);
    // The next undo takes back the decision before; then the decision and the fix can be set again.
    assert_eq!(run(&test, &["undo"], DONE), format!("{other}  dismissed -> open\n"));
    assert_snapshot!(test.output(&["redo"], DONE), @"f_[id]  open -> dismissed  (wanted)");
    run(&test, &["redo"], 0);
    assert_eq!(read(&test, "a.py"), USED);

    // If the lines cannot be restored, undo changes nothing.
    test.write("a.py", "mine\n");
    assert_snapshot!(test.fails(&["undo"], USAGE), @"
    error: the lines of the fix in a.py have changed since: nothing was taken back
      hint: undo your changes of these lines first, or take the fix back by hand; opening its findings again needs no file: `revdeck triage FINDING open`
    ");
    assert_eq!((read(&test, "a.py").as_str(), status_of(&test, &one).as_str()), ("mine\n", "addressed"));
    test.write("a.py", USED);
    run(&test, &["undo"], 0);
    run(&test, &["fix", "drop", &made], 0);
    assert_snapshot!(test.output(&["redo"], DONE), @"nothing to make again");
}

#[test]
fn one_fix_for_many_findings_is_all_or_nothing() {
    let test = TestEnvironment::new();
    for name in ["a.py", "b.py", "c.py"] {
        test.write(name, UNUSED);
    }
    test.write("d.py", "def f(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n");
    test.commit("several");
    run(&test, &["review", "--wait"], 0);
    let ids: Vec<String> = ["a.py", "b.py", "c.py", "d.py"].iter().flat_map(|path| findings(&test, path)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let made = fix(&test, &ids, 0);
    assert_eq!(made["files"].as_array().map(Vec::len), Some(3), "{made}");
    assert_eq!(made["left_out"][0]["finding_id"], ids[3], "{made}");
    test.write("c.py", "other\n");
    assert_snapshot!(test.fails(&["fix", "apply", "latest"], USAGE), @r#"
    error: the patch does not apply: c.py: line 1 is "other" and not "import sys"
      hint: your files have changed since the snapshot; review again and fix what is found then, or take from `revdeck fix show` what you need
    "#);
    assert_eq!((read(&test, "a.py"), read(&test, "b.py")), (UNUSED.to_owned(), UNUSED.to_owned()));
    test.write("c.py", UNUSED);
    run(&test, &["fix", "apply", "latest"], 0);
    for name in ["a.py", "b.py", "c.py"] {
        assert_eq!(read(&test, name), USED);
    }
    assert_eq!(status_of(&test, ids[3]), "open", "what was left out is not addressed");
    assert_snapshot!(test.fails(&["fix", ids[3]], USAGE), @"
    error: no exact suggestion comes with the finding
      hint: name a reviewer that can make a fix: `resolve.reviewer` in your settings, or --reviewer NAME
    ");
}

#[cfg(unix)]
#[test]
fn permissions_stay_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let test = TestEnvironment::new();
    let file = test.write("bin/a.py", UNUSED);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    test.commit("an executable");
    run(&test, &["review", "--wait"], 0);
    let id = findings(&test, "bin/a.py")[0].clone();
    let made = id_of(&fix(&test, &[&id], 0));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o711)).expect("a mode");
    run(&test, &["fix", "apply", &made], 0);
    let mode = |file: &std::path::Path| std::fs::metadata(file).expect("a file").permissions().mode() & 0o7777;
    assert_eq!((read(&test, "bin/a.py").as_str(), mode(&file)), (USED, 0o711));
    run(&test, &["fix", "undo", &made], 0);
    assert_eq!((read(&test, "bin/a.py").as_str(), mode(&file)), (UNUSED, 0o711));
    // First the file and then its folder becomes a link to a place outside the repository.
    let outside = test.home().join("outside");
    std::fs::create_dir_all(&outside).expect("a folder");
    std::fs::write(outside.join("a.py"), UNUSED).expect("a file");
    std::fs::remove_file(&file).expect("removed");
    symlink(outside.join("a.py"), &file).expect("a link");
    assert_snapshot!(test.fails(&["fix", "apply", &made], USAGE), @"error: [repo]/bin/a.py is not touched: it is a symbolic link");
    std::fs::remove_dir_all(test.repo().join("bin")).expect("removed");
    symlink(&outside, test.repo().join("bin")).expect("a link");
    assert_snapshot!(test.fails(&["fix", "apply", &made], USAGE), @"error: [repo]/bin/a.py is not touched: bin is not a folder");
    assert_eq!(std::fs::read_to_string(outside.join("a.py")).expect("a file"), UNUSED);
}

#[test]
fn whoever_dies_while_applying_leaves_what_can_be_finished_or_taken_back() {
    for ending in ["apply", "undo"] {
        let test = TestEnvironment::new();
        for name in ["a.py", "b.py"] {
            test.write(name, UNUSED);
        }
        test.commit("two");
        run(&test, &["review", "--wait"], 0);
        let ids: Vec<String> = ["a.py", "b.py"].iter().flat_map(|path| findings(&test, path)).collect();
        let made = id_of(&fix(&test, &[&ids[0], &ids[1]], 0));
        run(&test, &["fix", "apply", &made], 0);
        // The state after the first write: the record lists both files, and the second file is not written yet.
        let state = test.home().join("state/review");
        let store = std::fs::read_dir(state).expect("a store").next().expect("one").expect("an entry").path();
        let fixes = store.join("auto-review/fixes.ndjson");
        let text = std::fs::read_to_string(&fixes).expect("fixes");
        let begun = text.lines().find(|line| line.contains("touched") && line.contains("offered")).expect("a line");
        std::fs::write(&fixes, format!("{text}{begun}\n")).expect("written");
        test.write("b.py", UNUSED);
        let listed = test.output(&["fixes"], DONE) + &test.fails(&["fix", "drop", &made], USAGE);
        allow_duplicates!(assert_snapshot!(listed, @"
        [fix]  offered    Unused import `os` in a.py and 1 more, by builtin; 2 files, +0 -2; review of the fix: clean; half applied: `fix apply` finishes it, `fix undo` takes it back
        error: [fix] is offered: it is half applied: apply or undo it first
        "));
        run(&test, &["fix", ending, &made], 0);
        let expected = if ending == "apply" { USED } else { UNUSED };
        assert_eq!((read(&test, "a.py").as_str(), read(&test, "b.py").as_str()), (expected, expected), "{ending}");
        assert_eq!(status_of(&test, &ids[1]), if ending == "apply" { "addressed" } else { "open" });
    }
}

/// A process that is killed while it writes leaves nothing, because its new file has no name in the worktree.
#[cfg(target_os = "linux")]
#[test]
fn no_temporary_file_is_ever_seen_in_the_worktree() {
    use notify::Watcher as _;
    let (test, id) = reviewed(UNUSED);
    let made = id_of(&fix(&test, &[&id], 0));
    let (sender, events) = std::sync::mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender).expect("a watcher");
    watcher.watch(&test.repo(), notify::RecursiveMode::NonRecursive).expect("watched");
    run(&test, &["fix", "apply", &made], 0);
    run(&test, &["fix", "undo", &made], 0);
    test.write("last.txt", "");
    let names =
        || events.iter().flatten().flat_map(|event| event.paths).filter_map(|path| Some(path.file_name()?.to_owned()));
    let seen: std::collections::BTreeSet<_> = names().take_while(|name| name != "last.txt").collect();
    // The system calls a file without a name `#INODE`.
    let seen: Vec<_> = seen.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let named: Vec<_> =
        seen.iter().filter(|name| !name.starts_with('#') && *name != ".git" && *name != "repo").collect();
    assert_eq!(named, ["a.py"], "{seen:?}");
    assert!(!files_below(&test.repo().join(".git")).iter().any(|file| file.to_string_lossy().contains("revdeck-fx_")));
}

#[test]
fn what_an_older_version_or_another_file_system_left_goes_at_the_next_start() {
    let (test, id) = reviewed(UNUSED);
    let made = id_of(&fix(&test, &[&id], 0));
    run(&test, &["fix", "apply", &made], 0);
    let left = [test.write(&format!(".{made}.tmp"), "half"), test.write(&format!(".git/revdeck-{made}.lock"), "half")];
    let foreign = test.write(".fx_01.tmp", "mine");
    run(&test, &["runs"], 0);
    assert!(left.iter().all(|file| !file.exists()));
    assert!(foreign.exists(), "a file that revdeck did not write stays");
}
