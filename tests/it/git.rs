//! Integration tests: git. Git itself creates the repositories.

mod changes;
mod checkout;
mod filters;
mod follow;
mod listing;
mod logs;
mod partial;
mod repositories;
mod scopes;
mod shallow;
mod snapshots;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use revdeck::domain::Scope;
use revdeck::git::{FilterSettings, Hunk, Repo, Snapshot};

use crate::env::TestEnvironment;

const KIB: u64 = 1024;

fn filter() -> FilterSettings {
    FilterSettings { max_file_bytes: 512 * KIB, ignored_paths: Vec::new() }
}

fn open(test: &TestEnvironment) -> Repo {
    Repo::discover(&test.repo()).expect("a repository")
}

/// Returns the snapshot of a scope and checks that a worker, which has only the commits, sees the same change.
fn snapshot(test: &TestEnvironment, scope: &str) -> Snapshot {
    let repo = open(test);
    let snapshot = repo.take_snapshot(&scope.parse().expect("a scope"), &filter()).expect("a snapshot");
    let again = repo.compute_changeset(&snapshot.base_commit, &snapshot.snapshot_commit, &filter()).expect("a change");
    let mut change = snapshot.change.clone();
    // Only the process that took the snapshot knows the files that are not in the tree.
    for left in &snapshot.unstored {
        let at = change.left_out.iter().position(|known| known == left).expect("the unseen are left out");
        change.left_out.remove(at);
    }
    assert_eq!(change, again, "the change computed again from {scope}");
    snapshot
}

/// Returns the paths under review, and the omitted paths with their reason, as text.
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

/// Returns every file below a folder with its bytes and time, except git's object database and revdeck's refs.
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

/// Checks that the worktree's snapshot is the tree that git would commit after `git add -A`.
fn assert_tree_is_gits(test: &TestEnvironment, taken: &Snapshot) {
    let copy = test.repo().join(".git/index.for-the-test");
    std::fs::copy(test.repo().join(".git/index"), &copy).expect("a copy of the index");
    let git = |arguments: &[&str]| {
        let output = test.command("git").args(arguments).env("GIT_INDEX_FILE", &copy).output().expect("git starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["add", "-A"]);
    let tree = git(&["write-tree"]);
    let ours = test.git(&["rev-parse", &format!("{}^{{tree}}", taken.snapshot_commit)]);
    assert_eq!(ours.trim(), tree, "{}", test.git(&["diff-tree", "-r", ours.trim(), &tree]));
    std::fs::remove_file(copy).expect("removed");
}
