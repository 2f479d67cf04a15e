//! What becomes something else between the look at a worktree and the reading of its files.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

const KEEP: Keep = Keep::Objects { max_file_bytes: 1 << 20 };

/// What a file becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    Nothing,
    Folder,
    Pipe,
    Link,
}

fn free(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path).expect("removed"),
        Ok(_) => fs::remove_file(path).expect("removed"),
        Err(_) => {}
    }
}

fn turn(path: &Path, into: Becomes) {
    free(path);
    match into {
        Becomes::Nothing => {}
        Becomes::Folder => {
            fs::create_dir(path).expect("a folder");
            fs::write(path.join("inner.rs"), "inner\n").expect("a file");
        }
        Becomes::Pipe => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        Becomes::Link => symlink("../outside", path).expect("a link"),
    }
}

/// A repository with a commit of `kept.rs`, and of `moved.rs` where that is tracked; then both are changed.
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

/// The paths of an overlay, with what is there.
fn told(frozen: &Frozen) -> Vec<String> {
    let sort = |leaf: &Option<Leaf>| match leaf {
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
                (Becomes::Nothing, &[][..]),
                (Becomes::Folder, &["moved.rs/inner.rs file"]),
                (Becomes::Pipe, &[]),
                (Becomes::Link, &["moved.rs link"]),
            ] {
                let (folder, repo) = sample(attributes, is_tracked);
                let moved = folder.path().join("repo").join("moved.rs");
                let mut looks = 0;
                let mut look = |root: &Path, index: &Index, compare, ignored: &Arc<Shared>| {
                    let seen = scan(root, index, compare, ignored);
                    if looks == 0 {
                        turn(&moved, into);
                    }
                    looks += 1;
                    seen
                };
                let frozen = repo.freeze_with(KEEP, &mut look).expect("a snapshot");
                let gone = if is_tracked && into != Becomes::Link { vec!["moved.rs gone"] } else { vec![] };
                let case = format!("{into:?}, tracked: {is_tracked}, {attributes:?}");
                assert_eq!(told(&frozen), [&["kept.rs file"][..], &gone, now].concat(), "{case}");
                assert_eq!((frozen.extra, frozen.notes), (Vec::new(), Vec::new()), "{case}");
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
    let mut look = |root: &Path, index: &Index, compare, ignored: &Arc<Shared>| {
        free(&moved);
        fs::write(&moved, "once more\n").expect("a file");
        let seen = scan(root, index, compare, ignored);
        turn(&moved, Becomes::Folder);
        looks += 1;
        seen
    };
    let frozen = repo.freeze_with(KEEP, &mut look).expect("a snapshot");
    assert_eq!((told(&frozen), looks), (vec!["kept.rs file".to_owned(), "moved.rs gone".to_owned()], LOOKS));
}

#[test]
fn nobody_waits_for_pipes_in_place_of_rules() {
    let (folder, repo) = sample("", true);
    for name in [".gitattributes", ".gitignore"] {
        turn(&folder.path().join("repo").join(name), Becomes::Pipe);
    }
    let frozen = repo.freeze_worktree(KEEP).expect("a snapshot");
    assert_eq!(told(&frozen), ["kept.rs file", "moved.rs file"]);
}
