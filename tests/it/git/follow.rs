//! File renames between two snapshots.

use revdeck::git::{AlteredFile, Hunk};

use super::*;

/// Returns `old -> new` for each file that differs.
fn between(test: &TestEnvironment, from: &str, to: &str) -> Vec<String> {
    let commit = |revision: &str| match revision {
        "" => String::new(),
        revision => test.git(&["rev-parse", revision]).trim().to_owned(),
    };
    let altered = open(test).diff_snapshots(&commit(from), &commit(to)).expect("a comparison");
    let name = |file: &Option<revdeck::git::TreeFile>| file.as_ref().map_or("-", |file| file.path.as_str()).to_owned();
    altered.iter().map(|AlteredFile { old, new }| format!("{} -> {}", name(old), name(new))).collect()
}

#[test]
fn files_are_followed_through_renames_and_nothing_is_left_out() {
    let test = TestEnvironment::new();
    let text = |word: &str| (0..20).map(|n| format!("{word} number {n}\n")).collect::<String>();
    for (path, word) in [("a.py", "a"), ("b.py", "b"), ("gone.py", "gone"), ("same.py", "same"), ("Cargo.lock", "lock")]
    {
        test.write(path, text(word));
    }
    test.commit("one");
    test.git(&["mv", "a.py", "lib.py"]);
    test.write("lib.py", text("a") + "one more\n");
    test.write("b.py", text("b") + "one more\n");
    test.write("new.py", text("new"));
    test.write("Cargo.lock", text("lock") + "one more\n");
    std::fs::remove_file(test.repo().join("gone.py")).expect("removed");
    test.commit("two");
    assert_eq!(
        between(&test, "HEAD~1", "HEAD"),
        ["Cargo.lock -> Cargo.lock", "a.py -> lib.py", "b.py -> b.py", "gone.py -> -", "- -> new.py"]
    );
    assert_eq!(between(&test, "HEAD", "HEAD"), [""; 0]);
    assert_eq!(between(&test, "", "HEAD~1").len(), 5);
    // The old name stays in use: it counts as the same file, and the other one as new.
    test.git(&["mv", "lib.py", "moved.py"]);
    test.write("lib.py", text("other"));
    test.commit("three");
    assert_eq!(between(&test, "HEAD~1", "HEAD"), ["lib.py -> lib.py", "- -> moved.py"]);
}

#[test]
fn blobs_edits_and_history_are_told_by_content() {
    let test = TestEnvironment::new();
    test.write("a.py", "one\ntwo\nthree\n");
    test.write("dir/b.py", "b\n");
    let first = test.commit("one");
    test.write("a.py", "zero\none\nTWO\nthree\n");
    let second = test.commit("two");
    let repo = open(&test);
    let blob = |commit: &str, path: &str| repo.blob_at(commit, path).expect("readable");
    assert_eq!(blob(&first, "dir/b.py"), blob(&second, "dir/b.py"));
    assert_ne!(blob(&first, "a.py"), blob(&second, "a.py"));
    assert_eq!((blob(&first, "dir"), blob(&first, "none")), (None, None));
    assert!(repo.blob_at("0000000000000000000000000000000000000000", "a.py").is_err());

    let text = |commit: &str| repo.file_at(commit, "a.py").expect("readable").expect("there");
    assert_eq!(
        repo.diff_texts(&text(&first), &text(&second)).expect("edits"),
        [
            Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines: 1 },
            Hunk { old_start: 2, old_lines: 1, new_start: 3, new_lines: 1 }
        ]
    );
    for (commit, of, expected) in
        [(&first, &second, true), (&second, &second, true), (&second, &first, false), (&String::new(), &first, false)]
    {
        assert_eq!(repo.is_in_history(commit, of), expected, "{commit} {of}");
    }
}

#[test]
fn commits_that_were_amended_before_others_followed_are_among_those_that_were_made() {
    let test = TestEnvironment::new();
    let commit = |text: &str| {
        test.write("a.py", text);
        test.commit(text)
    };
    let first = commit("first");
    let second = commit("second");
    let made = |from: &str, to: &str| open(&test).scope_between(from, to);
    let range = |scope: revdeck::domain::Scope| match scope {
        Scope::Range { from, to } => [from, to].map(|end| test.git(&["rev-parse", &end]).trim().to_owned()),
        other => panic!("{other:?} is no range"),
    };
    assert!(matches!(made(&first, &second), Scope::Commit(_)));
    let third = commit("third");
    assert_eq!(range(made(&first, &third)), [first.clone(), third.clone()]);
    test.write("a.py", "amended");
    test.git(&["commit", "-qa", "--amend", "-m", "amended"]);
    let amended = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert!(matches!(made(&third, &amended), Scope::Commit(_)), "an amended commit by itself");
    let fourth = commit("fourth");
    assert_eq!(range(made(&third, &fourth)), [second, fourth], "the amended commit and the one after it");
}
