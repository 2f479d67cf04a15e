//! Snapshots of worktree and index: complete, and without a trace in what is the user's.

use std::time::SystemTime;

use revdeck::domain::Scope;
use revdeck::git::FilterSettings;

use super::{KIB, assert_tree_is_gits, filter, hunk, hunks, open, paths, snapshot, state};
use crate::env::{TestEnvironment, executable};

#[test]
fn a_worktree_is_frozen_with_staged_unstaged_and_untracked_files() {
    let test = TestEnvironment::new();
    test.write(".gitignore", "*.log\ntarget/\n!kept.log\n");
    test.write("a.rs", "1\n2\n3\n4\n5\n");
    test.write("gone.rs", "x\n");
    test.write("sub/same.rs", "same\n");
    let head = test.commit("one");
    test.write("a.rs", "1\n2b\n3\n5\n6\n");
    test.write("sub/staged.rs", "s\n");
    test.git(&["add", "sub/staged.rs"]);
    std::fs::remove_file(test.repo().join("gone.rs")).expect("removed");
    for file in ["new/deep/untracked.rs", "x.log", "kept.log", "target/out.rs", "new/.hidden"] {
        test.write(file, "new\nlines\n");
    }
    let taken = snapshot(&test, "worktree");
    assert_eq!(
        paths(&taken),
        ["a.rs", "kept.log", "new/.hidden", "new/deep/untracked.rs", "sub/staged.rs", "gone.rs: deleted"]
    );
    assert_eq!(hunks(&taken, "a.rs"), [hunk(2, 1, 2, 1), hunk(4, 1, 3, 0), hunk(5, 0, 5, 1)]);
    assert_eq!(hunks(&taken, "kept.log"), [hunk(0, 0, 1, 2)]);
    assert_eq!((taken.base_commit.as_str(), taken.head_commit.as_str()), (head.as_str(), head.as_str()));
    assert_eq!((taken.branch.as_str(), taken.scope), ("main", Scope::Worktree));
    // The tree is the same as the one that git would commit.
    test.git(&["add", "-A"]);
    let tree = test.git(&["write-tree"]);
    assert_eq!(test.git(&["rev-parse", &format!("{}^{{tree}}", taken.snapshot_commit)]), tree);
}

#[test]
fn nothing_of_the_users_is_touched() {
    let test = TestEnvironment::new();
    test.write("a.rs", "one\n");
    test.write("b.rs", "one\n");
    test.commit("one");
    test.write("a.rs", "stashed\n");
    test.git(&["stash", "-q"]);
    test.write("a.rs", "two\n");
    test.write("b.rs", "staged\n");
    test.git(&["add", "b.rs"]);
    test.write("c.rs", "new\n");
    // The content is the same and the time is new: git would refresh the index here, and revdeck must not.
    let file = std::fs::File::options().write(true).open(test.repo().join("b.rs")).expect("b.rs");
    file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).expect("a time");
    let before = state(&test.repo());
    let repo = open(&test);
    for scope in ["worktree", "staged", "commit:HEAD", "all", "range:HEAD..HEAD"] {
        let taken = snapshot(&test, scope);
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("a run id");
        repo.keep_snapshot(&run, &taken.snapshot_commit).expect("kept");
    }
    repo.take_default_snapshot(&filter()).expect("a snapshot");
    repo.default_scope().expect("a scope");
    let after = state(&test.repo());
    assert!(
        before.keys().any(|path| path.ends_with(".git/index")) && before.keys().any(|path| path.ends_with("logs/HEAD"))
    );
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (path, (time, bytes)) in before {
        assert_eq!(after.get(&path), Some(&(time, bytes)), "{}", path.display());
    }
}

#[test]
fn what_is_no_file_or_not_readable_is_no_failure() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    test.write("secret.rs", "1\n");
    test.write("late.rs", "1\n");
    test.commit("one");
    let at = |path: &str| test.repo().join(path);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
    std::os::unix::fs::symlink(test.repo(), at("loop")).expect("a link");
    std::fs::create_dir_all(at("nested")).expect("a folder");
    let status = test.command("git").args(["init", "-q", "nested"]).status().expect("git starts");
    assert!(status.success());
    test.write("nested/inner.rs", "not ours\n");
    test.write("not_nested/.git/x", "a folder of that name is no repository\n");
    test.write("not_nested/ours.rs", "ours\n");
    test.write("large.rs", vec![b'\n'; 600 * KIB as usize]);
    test.write("known.rs", "later\n");
    test.git(&["add", "-N", "known.rs"]);
    test.write("secret.rs", "2\n");
    let mode = |bits| std::os::unix::fs::PermissionsExt::from_mode(bits);
    std::fs::set_permissions(at("secret.rs"), mode(0o000)).expect("a mode");
    std::fs::remove_file(at("late.rs")).expect("removed");
    let taken = snapshot(&test, "worktree");
    // A user who may read every file (root) reads this one too.
    let secret = if std::fs::read(at("secret.rs")).is_ok() { vec!["secret.rs"] } else { vec![] };
    let secret_left = if secret.is_empty() { vec!["secret.rs: unreadable"] } else { vec![] };
    let expected = [
        vec!["known.rs", "not_nested/ours.rs"],
        secret,
        vec!["large.rs: oversized", "late.rs: deleted", "loop: symbolic link"],
        secret_left,
    ];
    assert_eq!(paths(&taken), expected.concat());
    assert!(open(&test).file_at(&taken.snapshot_commit, "large.rs").expect("a read").is_none());
    // The inode says later whether it is still the same file.
    let large = std::fs::symlink_metadata(at("large.rs")).expect("a file");
    let inodes: Vec<u64> = taken.change.left_out.iter().filter_map(|file| file.inode).collect();
    assert_eq!(inodes, [std::os::unix::fs::MetadataExt::ino(&large)]);
    assert_eq!(paths(&snapshot(&test, "staged")), [""; 0]);
}

#[test]
fn a_conflict_shows_the_worktree() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n2\n3\n");
    test.write("b.rs", "b\n");
    test.commit("one");
    test.git(&["switch", "-q", "-c", "topic"]);
    test.write("a.rs", "1\ntopic\n3\n");
    test.git(&["rm", "-q", "b.rs"]);
    test.commit("topic");
    test.git(&["switch", "-q", "main"]);
    test.write("a.rs", "1\nmain\n3\n");
    test.write("b.rs", "changed\n");
    test.commit("main");
    let merge = test.command("git").args(["merge", "-q", "topic"]).output().expect("git starts");
    assert!(!merge.status.success(), "a conflict");
    let taken = snapshot(&test, "worktree");
    assert_eq!(paths(&taken), ["a.rs"]);
    assert_eq!(hunks(&taken, "a.rs"), [hunk(1, 0, 2, 1), hunk(2, 0, 4, 3)]);
    assert_tree_is_gits(&test, &taken);
    let error = open(&test).take_snapshot(&Scope::Staged, &filter()).expect_err("two sides are nothing to commit");
    assert!(error.to_string().ends_with("repo: a.rs, b.rs are unmerged"), "{error}");
    let asked = test.revdeck(&["review", "--staged", "--wait"]);
    assert_eq!(asked.status.code(), Some(2), "{asked:?}");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("or review the working tree as it is"), "{asked:?}");
}

#[test]
fn a_hook_sees_what_is_being_committed() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    test.write("b.rs", "1\n");
    test.commit("one");
    executable(
        test.repo().join(".git/hooks/pre-commit"),
        format!("#!/bin/sh\nexec {} review --staged --wait --format json > seen.json\n", env!("CARGO_BIN_EXE_revdeck")),
    );
    test.write(".git/info/exclude", "seen.json\n");
    let seen = |arguments: &[&str]| {
        let mut committing = test.command("git");
        let output = committing.args(["commit", "-q", "-m", "x"]).args(arguments).current_dir(test.repo().join("sub"));
        let output = output.output().expect("git starts");
        let text = std::fs::read(test.repo().join("seen.json")).expect("an answer");
        let answer: serde_json::Value = serde_json::from_slice(&text).unwrap_or_else(|_| panic!("{output:?}"));
        answer["run"]["changed_paths"].clone()
    };
    test.write("sub/c.rs", "1\n");
    test.write("a.rs", "2\n");
    test.write("b.rs", "2\n");
    assert_eq!(seen(&["../b.rs"]), serde_json::json!(["b.rs"]), "a path");
    assert_eq!(seen(&["--all"]), serde_json::json!(["a.rs"]), "all");
    test.git(&["add", "sub"]);
    assert_eq!(seen(&[]), serde_json::json!(["sub/c.rs"]), "what is staged");
}

#[test]
fn kept_snapshots_outlive_gc() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    test.commit("one");
    test.write("a.rs", "2\n");
    let repo = open(&test);
    let kept = snapshot(&test, "worktree");
    let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("a run id");
    repo.keep_snapshot(&run, &kept.snapshot_commit).expect("kept");
    test.write("a.rs", "3\n");
    let lost = snapshot(&test, "worktree");
    test.git(&["gc", "-q", "--prune=now"]);
    let read = |commit: &str| open(&test).file_at(commit, "a.rs").ok().flatten();
    assert_eq!(read(&kept.snapshot_commit), Some(b"2\n".to_vec()));
    assert_eq!(read(&lost.snapshot_commit), None);
    assert_eq!(repo.kept_snapshot_runs().expect("a list"), std::slice::from_ref(&run));
    repo.release_snapshot(&run).expect("released");
    repo.release_snapshot(&run).expect("released twice");
    assert_eq!(repo.kept_snapshot_runs().expect("a list"), []);
}

#[test]
fn the_fingerprint_of_a_scope_is_that_of_its_snapshot_and_nothing_is_written_for_it() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n2\n3\n");
    test.write("gone.rs", "x\n");
    test.write("folder/file.rs", "x\n");
    test.write("crlf.txt", "1\n");
    test.write("large.txt", "1\n");
    test.write(".gitattributes", "crlf.txt text eol=crlf\n");
    test.commit("one");
    let repo = open(&test);
    let small = &FilterSettings { max_file_bytes: KIB, ..filter() };
    let objects = || {
        let mut files = crate::env::files_below(&test.repo().join(".git").join("objects"));
        files.sort();
        files
    };
    let mut known = std::collections::BTreeMap::new();
    let steps: [(&str, &dyn Fn()); 8] = [
        ("clean", &|| {}),
        ("edited", &|| drop(test.write("a.rs", "1\n2b\n3\n"))),
        ("untracked", &|| drop(test.write("new/b.rs", "b\n"))),
        ("deleted", &|| std::fs::remove_file(test.repo().join("gone.rs")).expect("removed")),
        ("a file in place of a folder", &|| {
            std::fs::remove_dir_all(test.repo().join("folder")).expect("removed");
            test.write("folder", "a file\n");
        }),
        ("line ends", &|| drop(test.write("crlf.txt", "1\r\n2\r\n"))),
        ("oversized", &|| {
            test.write("large.txt", "x".repeat(3 * KIB as usize));
            test.write("large-and-new.txt", "y".repeat(3 * KIB as usize));
        }),
        ("staged", &|| {
            test.git(&["add", "a.rs", "new"]);
            test.write("a.rs", "1\n2c\n3\n");
        }),
    ];
    for (step, change) in steps {
        change();
        for scope in ["worktree", "staged", "all"] {
            let before = objects();
            let scope: Scope = scope.parse().expect("a scope");
            let computed = repo.compute_scope_fingerprint(&scope, small).expect("readable");
            assert_eq!(objects(), before, "{step}: {scope} has written objects");
            let taken = repo.take_snapshot(&scope, small).expect("a snapshot");
            assert_eq!(computed.as_deref(), Some(taken.diff_fingerprint.as_str()), "{step}: {scope}");
            known.insert((scope.to_string(), computed), step);
        }
    }
    // Each step changed the worktree and the whole tree, and one step the index.
    assert_eq!(known.len(), 8 + 8 + 2);
    let commit = Scope::Commit("HEAD".to_owned());
    assert_eq!(repo.compute_scope_fingerprint(&commit, small).expect("readable"), None);
}
