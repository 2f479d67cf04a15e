//! Line ends and filter programs.

use std::time::SystemTime;

use revdeck::domain::Scope;

use super::{assert_tree_is_gits, filter, hunk, hunks, open, paths, snapshot};
use crate::env::TestEnvironment;

#[test]
fn line_ends_and_filters_are_undone_as_git_does() {
    let test = TestEnvironment::new();
    test.write(
        ".gitattributes",
        "*.txt text=auto\n*.bat eol=crlf\n*.up filter=upper\n*.u16 working-tree-encoding=UTF-16LE\n*.raw -text\n",
    );
    test.write("a.txt", "one\r\ntwo\r\n");
    test.write("b.bat", "one\r\ntwo\r\n");
    test.write("c.up", "shout\n");
    test.write("d.raw", "kept\r\n");
    test.write("e.u16", b"h\0i\0\n\0");
    test.write("f.rs", "native\r\n");
    test.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    test.git(&["config", "filter.upper.smudge", "tr A-Z a-z"]);
    test.commit("one");
    let touch = |path: &str| {
        let file = std::fs::File::options().write(true).open(test.repo().join(path)).expect(path);
        file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000)).expect("a time");
    };
    for path in ["a.txt", "b.bat", "c.up", "d.raw", "e.u16", "f.rs"] {
        touch(path);
    }
    assert_eq!(
        open(&test).default_scope().map(|scope| scope.to_string()).unwrap_or_default().get(..7),
        Some("commit:")
    );
    assert_eq!(paths(&snapshot(&test, "worktree")), [""; 0]);
    test.write("c.up", "shout louder\n");
    test.write("b.bat", "one\r\ntwo and more\r\n");
    test.write("new.txt", "1\r\n2\r\n");
    let taken = snapshot(&test, "worktree");
    assert_eq!(paths(&taken), ["b.bat", "c.up", "new.txt"]);
    assert_eq!(hunks(&taken, "b.bat"), [hunk(2, 1, 2, 1)]);
    assert_tree_is_gits(&test, &taken);
    test.git(&["config", "core.autocrlf", "true"]);
    test.write("f2.rs", "1\r\n2\r\n");
    let taken = snapshot(&test, "worktree");
    assert_eq!(open(&test).file_at(&taken.snapshot_commit, "f2.rs").expect("a read"), Some(b"1\n2\n".to_vec()));
    assert_tree_is_gits(&test, &taken);
    // With this setting git refuses to add the file.
    test.git(&["config", "core.safecrlf", "true"]);
    test.write("mixed.rs", "1\r\n2\n");
    assert!(paths(&snapshot(&test, "worktree")).contains(&"mixed.rs".to_owned()));
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_required_filter_refuses_is_never_stored() {
    let test = TestEnvironment::new();
    test.write(".gitattributes", "*.key filter=vault\n*.txt filter=broken\n");
    test.write("a.key", "locked\n");
    test.commit("one");
    test.git(&["config", "filter.vault.clean", "echo no key >&2; false"]);
    test.git(&["config", "filter.vault.required", "true"]);
    test.git(&["config", "filter.broken.clean", "false"]);
    for (path, content) in [("a.key", "secret one\n"), ("b.key", "secret two\n"), ("c.txt", "passed on\n")] {
        test.write(path, content);
    }
    let taken = snapshot(&test, "worktree");
    assert_eq!(paths(&taken), ["c.txt", "a.key: unreadable", "b.key: unreadable"]);
    assert_eq!(taken.unstored, taken.change.left_out);
    let said = |path| taken.notes.iter().any(|note| note.starts_with(path) && note.contains("clean filter 'vault'"));
    assert!(said("a.key") && said("b.key"), "{:?}", taken.notes);
    for content in ["secret one\n", "secret two\n"] {
        let plain = test.write(".git/plain", content);
        let id = test.git(&["hash-object", "--no-filters", &plain.to_string_lossy()]);
        let stored = test.command("git").args(["cat-file", "-e", id.trim()]).output().expect("git starts");
        assert!(!stored.status.success(), "{content:?} was stored");
    }
    std::fs::remove_file(test.repo().join("c.txt")).expect("removed");
    std::fs::remove_file(test.repo().join("b.key")).expect("removed");
    assert_eq!(open(&test).default_scope().expect("a scope"), Scope::Worktree, "what cannot be read may have changed");
    assert_eq!(open(&test).take_default_snapshot(&filter()).expect("a snapshot").scope, Scope::Worktree);
}
