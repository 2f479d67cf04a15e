//! Integration tests: git. Repositories are made by git itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use revdeck::domain::{LeftOutReason, Scope};
use revdeck::git::{Filter, Hunk, Repo, Snapshot};

use crate::env::TestEnvironment;

const KIB: u64 = 1024;

fn filter() -> Filter {
    Filter { max_file_bytes: 512 * KIB, ignored_paths: Vec::new() }
}

fn open(test: &TestEnvironment) -> Repo {
    Repo::discover(&test.repo()).expect("a repository")
}

/// The snapshot of a scope; and that the worker, who has only the commits, sees the same change.
fn snapshot(test: &TestEnvironment, scope: &str) -> Snapshot {
    let repo = open(test);
    let snapshot = repo.snapshot(&scope.parse().expect("a scope"), &filter()).expect("a snapshot");
    let mut again = repo.change(&snapshot.base_commit, &snapshot.snapshot_commit, &filter()).expect("a change");
    let mut change = snapshot.change.clone();
    // What is not in the tree only the one who took the snapshot knows.
    let in_tree = |path: &str| repo.file_at(&snapshot.snapshot_commit, path).expect("a read").is_some();
    let only_here = |reason| matches!(reason, LeftOutReason::Unreadable | LeftOutReason::Oversized);
    change.left_out.retain(|left| !only_here(left.reason) || in_tree(&left.path));
    again.left_out.retain(|left| !only_here(left.reason) || in_tree(&left.path));
    assert_eq!(change, again, "the change computed again from {scope}");
    snapshot
}

/// Paths under review, and those left out with their reason, in words.
fn paths(snapshot: &Snapshot) -> Vec<String> {
    let files = snapshot.change.files.iter().map(|file| file.path.clone());
    let left_out = snapshot.change.left_out.iter().map(|left| format!("{}: {}", left.path, left.reason));
    files.chain(left_out).collect()
}

fn hunks(snapshot: &Snapshot, path: &str) -> Vec<Hunk> {
    let file = snapshot.change.files.iter().find(|file| file.path == path);
    file.unwrap_or_else(|| panic!("{path} is not in {:?}", paths(snapshot))).hunks.clone()
}

fn hunk(old_start: u32, old_lines: u32, new_start: u32, new_lines: u32) -> Hunk {
    Hunk { old_start, old_lines, new_start, new_lines }
}

/// Every file below a folder with its bytes and time, but for git's object database and our own refs.
fn state(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            let metadata = path.symlink_metadata().expect("metadata");
            if path.ends_with(".git/objects") || path.ends_with(".git/refs/revdeck") {
                continue;
            } else if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                let content = std::fs::read(&path).unwrap_or_default();
                found.insert(path, (metadata.modified().expect("a time"), content));
            }
        }
    }
    found
}

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
    // The tree is what git itself would commit.
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
    // The same content under a new time: the index would like to be refreshed, and must not be.
    let file = std::fs::File::options().write(true).open(test.repo().join("b.rs")).expect("b.rs");
    file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).expect("a time");
    let before = state(&test.repo());
    let repo = open(&test);
    for scope in ["worktree", "staged", "commit:HEAD", "all", "range:HEAD..HEAD"] {
        let taken = snapshot(&test, scope);
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("a run id");
        repo.keep(&run, &taken.snapshot_commit).expect("kept");
    }
    repo.snapshot_default(&filter()).expect("a snapshot");
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
