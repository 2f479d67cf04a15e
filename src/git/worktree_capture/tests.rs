//! Tests files that are replaced between the scan of a worktree and the read, and files that filter programs convert.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::domain::text::path_from_bytes;

const WRITE_MODE: BlobWriteMode = BlobWriteMode::WriteObjects { max_file_bytes: 1 << 20 };

/// Replacement of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileReplacement {
    Nothing,
    Folder,
    Pipe,
    Link,
}

fn remove_any(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path).expect("removed"),
        Ok(_) => fs::remove_file(path).expect("removed"),
        Err(_) => {}
    }
}

fn replace_with(path: &Path, into: FileReplacement) {
    remove_any(path);
    match into {
        FileReplacement::Nothing => {}
        FileReplacement::Folder => {
            fs::create_dir(path).expect("a folder");
            fs::write(path.join("inner.rs"), "inner\n").expect("a file");
        }
        FileReplacement::Pipe => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        FileReplacement::Link => symlink("../outside", path).expect("a link"),
    }
}

/// Creates a repository with a commit of `kept.rs`, and of `moved.rs` when `is_tracked`; then changes both files.
fn sample(attributes: &str, is_tracked: bool) -> (tempfile::TempDir, Repo) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("outside"), "nobody's business\n").expect("a file");
    let root = folder.path().join("repo");
    let git = git2::Repository::init(&root).expect("a repository");
    let mut config = git.config().expect("a configuration");
    config.set_str("filter.own.clean", "cat").expect("a filter");
    fs::write(git.path().join("info").join("attributes"), attributes).expect("attributes");
    let tracked: &[&str] = if is_tracked { &["kept.rs", "moved.rs"] } else { &["kept.rs"] };
    let mut index = git.index().expect("an index");
    for path in tracked {
        fs::write(root.join(path), "before\n").expect("a file");
        index.add_path(Path::new(path)).expect("added");
    }
    index.write().expect("written");
    let tree = git.find_tree(index.write_tree().expect("a tree")).expect("a tree");
    let who = git2::Signature::now("a", "a@example.com").expect("somebody");
    git.commit(Some("HEAD"), &who, &who, "one\n", &tree, &[]).expect("a commit");
    for path in ["kept.rs", "moved.rs"] {
        fs::write(root.join(path), "after it\n").expect("a file");
    }
    let repo = Repo::discover(&root).expect("a repository");
    (folder, repo)
}

/// Lists the paths of an overlay with the kind of their entries.
fn describe_overlay(frozen: &UncommittedChanges) -> Vec<String> {
    let sort = |leaf: &Option<TreeLeaf>| match leaf {
        None => "gone",
        Some(leaf) if leaf.mode == MODE_SYMLINK => "link",
        Some(_) => "file",
    };
    frozen.overlay.iter().map(|(path, leaf)| format!("{} {}", path_from_bytes(path), sort(leaf))).collect()
}

#[test]
fn what_becomes_something_else_is_taken_as_it_is_then() {
    for attributes in ["", "*.rs text\n", "*.rs filter=own\n"] {
        for is_tracked in [true, false] {
            for (into, now) in [
                (FileReplacement::Nothing, &[][..]),
                (FileReplacement::Folder, &["moved.rs/inner.rs file"]),
                (FileReplacement::Pipe, &[]),
                (FileReplacement::Link, &["moved.rs link"]),
            ] {
                let (folder, repo) = sample(attributes, is_tracked);
                let moved = folder.path().join("repo").join("moved.rs");
                let mut looks = 0;
                let mut look = |root: &Path, index: &GitIndex, compare, ignored: &Arc<SharedIgnoreRules>| {
                    let seen = scan_worktree(root, index, compare, ignored);
                    if looks == 0 {
                        replace_with(&moved, into);
                    }
                    looks += 1;
                    seen
                };
                let frozen = repo.capture_with(WRITE_MODE, &mut look).expect("a snapshot");
                let gone = if is_tracked && into != FileReplacement::Link { vec!["moved.rs gone"] } else { vec![] };
                let case = format!("{into:?}, tracked: {is_tracked}, {attributes:?}");
                assert_eq!(describe_overlay(&frozen), [&["kept.rs file"][..], &gone, now].concat(), "{case}");
                assert_eq!((frozen.unstored, frozen.notes), (Vec::new(), Vec::new()), "{case}");
                assert!(looks <= 2, "{looks} looks, {case}");
            }
        }
    }
}

#[test]
fn what_never_stands_still_is_taken_for_gone() {
    let (folder, repo) = sample("", true);
    let moved = folder.path().join("repo").join("moved.rs");
    let mut looks = 0;
    let mut look = |root: &Path, index: &GitIndex, compare, ignored: &Arc<SharedIgnoreRules>| {
        remove_any(&moved);
        fs::write(&moved, "once more\n").expect("a file");
        let seen = scan_worktree(root, index, compare, ignored);
        replace_with(&moved, FileReplacement::Folder);
        looks += 1;
        seen
    };
    let frozen = repo.capture_with(WRITE_MODE, &mut look).expect("a snapshot");
    assert_eq!(
        (describe_overlay(&frozen), looks),
        (vec!["kept.rs file".to_owned(), "moved.rs gone".to_owned()], MAX_SCANS)
    );
}

/// Sets the time of a file's last write.
fn set_written(path: &Path, time: SystemTime) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.set_modified(time).expect("a time");
}

#[test]
fn a_filter_program_runs_again_only_for_what_has_changed() {
    const DRY: BlobWriteMode = BlobWriteMode::HashContents { max_file_bytes: 1 << 20 };
    let (folder, repo) = sample("*.rs filter=own\n", true);
    let root = folder.path().join("repo");
    let [kept, moved] = ["kept.rs", "moved.rs"].map(|name| root.join(name));
    let runs = folder.path().join("runs");
    let set_program = |program: &str| {
        let git = git2::Repository::open(&root).expect("a repository");
        let mut config = git.config().expect("a configuration");
        let program = format!("echo run >> '{}'; {program}", runs.display());
        config.set_str("filter.own.clean", &program).expect("a filter");
    };
    let count_runs = || fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let check = |mode: BlobWriteMode, expected: usize, step: &str| {
        let before = count_runs();
        let seen = repo.capture_worktree(mode).expect("a snapshot").overlay;
        assert_eq!(count_runs() - before, expected, "{step}");
        let again = Repo::discover(&root).expect("a repository").capture_worktree(DRY).expect("a snapshot");
        assert_eq!(seen, again.overlay, "{step}");
    };
    let (long_ago, later) = (SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000), SystemTime::now());
    set_program("cat");
    [&kept, &moved].into_iter().for_each(|path| set_written(path, long_ago));
    check(DRY, 2, "the first look");
    check(DRY, 0, "nothing has changed");
    check(BlobWriteMode::HashOnly, 0, "another look");
    check(WRITE_MODE, 2, "a look has written no object");
    check(WRITE_MODE, 0, "the objects are there");
    fs::write(&kept, "edited\n").expect("a file");
    set_written(&kept, long_ago);
    check(WRITE_MODE, 1, "one file has changed");
    // Its time does not tell whether it is written once more.
    fs::write(&kept, "just now\n").expect("a file");
    set_written(&kept, later + Duration::from_secs(3_600));
    check(DRY, 1, "a file of the present");
    check(DRY, 1, "the same file");
    set_written(&kept, long_ago);
    check(DRY, 1, "a file of the past");
    fs::write(root.join(".git/info/attributes"), "*.rs filter=own -text\n").expect("attributes");
    check(DRY, 2, "other attributes");
    fs::write(root.join(".gitattributes"), "*.md text\n").expect("attributes");
    check(DRY, 2, "other attributes in the worktree");
    set_program("tr a-z A-Z");
    check(DRY, 2, "another program");
    check(DRY, 0, "nothing has changed");
}

#[test]
fn nobody_waits_for_pipes_in_place_of_rules() {
    let (folder, repo) = sample("", true);
    for name in [".gitattributes", ".gitignore"] {
        replace_with(&folder.path().join("repo").join(name), FileReplacement::Pipe);
    }
    let frozen = repo.capture_worktree(WRITE_MODE).expect("a snapshot");
    assert_eq!(describe_overlay(&frozen), ["kept.rs file", "moved.rs file"]);
}
