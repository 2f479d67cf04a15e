//! Integration tests: git. Git itself creates the repositories.

mod checkout;
mod follow;
mod listing;
mod partial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use revdeck::domain::{OmissionReason, Scope};
use revdeck::git::{ChangeKind, FilterSettings, GitError, Hunk, LineOrigin, Repo, Snapshot};

use crate::env::{TestEnvironment, executable};

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

#[test]
fn each_scope_names_its_commits() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    let one = test.commit("one");
    test.git(&["switch", "-q", "-c", "topic"]);
    test.write("a.rs", "1\n2\n");
    let two = test.commit("two");
    test.write("b.rs", "b\n");
    let three = test.commit("three");
    test.git(&["switch", "-q", "main"]);
    test.write("m.rs", "m\n");
    let main = test.commit("on main");
    test.git(&["merge", "-q", "--no-edit", "topic"]);
    let merge = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    test.git(&["switch", "-q", "topic"]);
    test.git(&["tag", "v1", &one]);
    let short = &three[..7];
    for (scope, resolved, base, tip, files) in [
        ("commit:HEAD", format!("commit:{short}"), two.as_str(), three.as_str(), "b.rs"),
        ("commit:HEAD~1", format!("commit:{}", &two[..7]), &one, &two, "a.rs"),
        ("commit:v1", "commit:v1".to_owned(), "", &one, "a.rs"),
        ("commit:main", "commit:main".to_owned(), &main, &merge, "a.rs b.rs"),
        ("range:main~1..topic", format!("range:{}..topic", &main[..7]), &main, &three, "a.rs b.rs m.rs: deleted"),
        ("range:main~1...@", format!("range:{}...{short}", &main[..7]), &one, &three, "a.rs b.rs"),
        ("range:v1..HEAD^", format!("range:v1..{}", &two[..7]), &one, &two, "a.rs"),
        (&format!("commit:{two}"), format!("commit:{two}"), &one, &two, "a.rs"),
        ("branch:topic~2", format!("branch:{}", &one[..7]), &one, &three, "a.rs b.rs"),
        ("branch:v1", "branch:v1".to_owned(), &one, &three, "a.rs b.rs"),
        ("branch", "branch:main".to_owned(), &three, &three, ""),
        ("all", "all".to_owned(), "", &three, "a.rs b.rs"),
    ] {
        let taken = snapshot(&test, scope);
        assert_eq!(taken.scope.to_string(), resolved);
        assert_eq!((taken.base_commit.as_str(), taken.snapshot_commit.as_str()), (base, tip), "{scope}");
        assert_eq!(paths(&taken).join(" "), files, "{scope}");
        assert_eq!(taken.head_commit, three);
    }
    let repo = open(&test);
    for (scope, words) in [
        ("commit:nowhere", "\"nowhere\" names no commit"),
        ("commit:HEAD:a.rs", "names no commit"),
        ("range:v1..--help", "names no commit"),
    ] {
        let error = repo.take_snapshot(&scope.parse().expect("a scope"), &filter()).expect_err("no such commit");
        assert!(error.to_string().contains(words) && error.hint().is_some(), "{scope}: {error}");
    }
    test.git(&["switch", "-q", "--orphan", "other"]);
    test.write("o.rs", "o\n");
    test.commit("unrelated");
    let error = repo.take_snapshot(&Scope::Branch(None), &filter()).expect_err("nothing in common");
    assert!(error.to_string().contains("no common ancestor"), "{error}");
}

#[test]
fn the_base_of_a_branch_is_guessed_and_never_the_branch_itself() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    test.commit("one");
    let base = |name: &str| {
        let taken = open(&test).take_snapshot(&Scope::Branch(None), &filter()).map(|taken| taken.scope.to_string());
        assert_eq!(taken.map_err(|error| error.to_string()), Ok(format!("branch:{name}")));
    };
    base("main");
    test.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    test.git(&["remote", "add", "origin", "nowhere"]);
    test.git(&["branch", "-q", "--set-upstream-to", "origin/main"]);
    test.write("a.rs", "2\n");
    test.commit("not pushed");
    base("origin/main");
    test.git(&["switch", "-q", "-c", "topic"]);
    test.git(&["update-ref", "refs/remotes/origin/topic", "HEAD"]);
    base("main");
    test.git(&["branch", "-q", "--set-upstream-to", "origin/topic"]);
    base("main");
    test.git(&["update-ref", "refs/remotes/origin/develop", "HEAD~1"]);
    test.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop"]);
    base("origin/develop");
    test.git(&["branch", "-q", "--set-upstream-to", "main"]);
    base("main");
    test.git(&["switch", "-q", "--detach"]);
    base("origin/develop");
    let none = TestEnvironment::new();
    none.write("a.rs", "1\n");
    none.commit("one");
    none.git(&["branch", "-q", "-m", "odd"]);
    let error = open(&none).take_snapshot(&Scope::Branch(None), &filter()).expect_err("no base");
    let words = "none of its upstream, origin/HEAD, main, master, origin/main, origin/master exists";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn the_default_is_the_worktree_if_dirty_else_the_last_commit() {
    let test = TestEnvironment::new();
    let default = || {
        let repo = open(&test);
        let scope = repo.default_scope().expect("a scope");
        let taken = repo.take_default_snapshot(&filter()).expect("a snapshot");
        assert_eq!(scope, taken.scope);
        (scope.to_string(), paths(&taken).join(" "))
    };
    assert_eq!(default(), ("worktree".to_owned(), String::new()));
    test.write("a.rs", "1\n");
    assert_eq!(default(), ("worktree".to_owned(), "a.rs".to_owned()));
    assert!(matches!(
        open(&test).take_snapshot(&Scope::Commit("HEAD".into()), &filter()),
        Err(GitError::Unborn { .. })
    ));
    let head = test.commit("one");
    let clean = (format!("commit:{}", &head[..7]), "a.rs".to_owned());
    assert_eq!(default(), clean);
    test.write("a.rs", "2\n");
    assert_eq!(default(), ("worktree".to_owned(), "a.rs".to_owned()));
    test.git(&["add", "a.rs"]);
    assert_eq!(default(), ("worktree".to_owned(), "a.rs".to_owned()));
    // A change is staged and then reverted in the worktree: against HEAD nothing has changed.
    test.write("a.rs", "1\n");
    assert_eq!(default(), clean);
    assert_eq!(paths(&snapshot(&test, "staged")), ["a.rs"]);
}

#[test]
fn the_fingerprint_speaks_of_what_changed_and_of_nothing_else() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n");
    test.write("moved.rs", "some\nlines\nthat\nstay\n");
    test.write("grows.txt", vec![b'\n'; 600 * KIB as usize]);
    test.write("turns.txt", vec![b'\n'; 600 * KIB as usize]);
    test.commit("one");
    test.write("grows.txt", vec![b'\n'; 601 * KIB as usize]);
    test.write("turns.txt", vec![b' '; 600 * KIB as usize]);
    test.write("a.rs", "2\n");
    std::fs::rename(test.repo().join("moved.rs"), test.repo().join("there.rs")).expect("renamed");
    test.write("large.bin", vec![b'x'; 600 * KIB as usize]);
    test.write("Cargo.lock", "left out, and yet changed\n");
    let worktree = snapshot(&test, "worktree");
    assert_eq!(worktree.snapshot_commit, snapshot(&test, "worktree").snapshot_commit);
    let all = snapshot(&test, "all");
    test.git(&["add", "-A"]);
    let staged = snapshot(&test, "staged");
    test.commit("two");
    let commit = snapshot(&test, "commit:HEAD");
    let branch = snapshot(&test, "branch:HEAD~1");
    for other in [&staged, &commit, &branch] {
        assert_eq!(paths(&worktree), paths(other));
        assert_eq!(worktree.diff_fingerprint, other.diff_fingerprint, "{}", other.scope);
        assert_eq!(worktree.scope_hash, other.scope_hash);
    }
    assert_ne!(all.scope_hash, commit.scope_hash);
    assert_ne!(all.diff_fingerprint, commit.diff_fingerprint);
    let narrow = FilterSettings { ignored_paths: vec!["*.rs".into()], ..filter() };
    let narrow = open(&test).take_snapshot(&Scope::Commit("HEAD".into()), &narrow).expect("a snapshot");
    assert_ne!(narrow.scope_hash, commit.scope_hash);
    assert_eq!(narrow.diff_fingerprint, commit.diff_fingerprint);
    assert_eq!(narrow.change.files, []);
    test.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_eq!(snapshot(&test, "commit:HEAD").diff_fingerprint, commit.diff_fingerprint);
    test.write("Cargo.lock", "changed again\n");
    test.git(&["commit", "-q", "-a", "--amend", "-m", "other words"]);
    assert_ne!(snapshot(&test, "commit:HEAD").diff_fingerprint, commit.diff_fingerprint);
}

#[test]
fn renames_copies_modes_links_and_kinds() {
    let test = TestEnvironment::new();
    let text: String = (1..40).map(|line| format!("line {line} of a file that is moved about\n")).collect();
    for file in ["pure.rs", "edited.rs", "source.rs", "run.sh"] {
        test.write(file, format!("{file}\n{text}"));
    }
    for file in ["becomes_link.rs", "dir/inner.rs", "becomes_dir"] {
        test.write(file, format!("short {file}\n"));
    }
    std::os::unix::fs::symlink("pure.rs", test.repo().join("link")).expect("a link");
    test.write("gone.rs", "alone\n");
    test.commit("one");
    let at = |path: &str| test.repo().join(path);
    std::fs::rename(at("pure.rs"), at("pure_moved.rs")).expect("renamed");
    std::fs::remove_file(at("edited.rs")).expect("removed");
    test.write("sub/edited_moved.rs", format!("edited.rs\n{text}one more\n"));
    test.write("source.rs", format!("source.rs\n{text}changed\n"));
    test.write("copy.rs", format!("source.rs\n{text}\nand its own\n"));
    test.write("twin.rs", format!("source.rs\n{text}"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("run.sh"), mode).expect("a mode");
    std::fs::remove_file(at("becomes_link.rs")).expect("removed");
    std::os::unix::fs::symlink("nowhere", at("becomes_link.rs")).expect("a link");
    std::os::unix::fs::symlink("dir", at("link_to_dir")).expect("a link");
    std::fs::remove_file(at("link")).expect("removed");
    test.write("link", "a file now\n");
    std::fs::remove_dir_all(at("dir")).expect("removed");
    test.write("dir", "was a folder\n");
    std::fs::remove_file(at("becomes_dir")).expect("removed");
    test.write("becomes_dir/file.rs", "was a file\n");
    std::fs::remove_file(at("gone.rs")).expect("removed");
    test.write("empty.rs", "");
    let taken = snapshot(&test, "worktree");
    assert_eq!(
        paths(&taken),
        [
            "becomes_dir/file.rs",
            "copy.rs",
            "dir",
            "link",
            "source.rs",
            "sub/edited_moved.rs",
            "twin.rs",
            "becomes_dir: deleted",
            "becomes_link.rs: symbolic link",
            "dir/inner.rs: deleted",
            "empty.rs: no change of content",
            "gone.rs: deleted",
            "link_to_dir: symbolic link",
            "pure_moved.rs: no change of content",
            "run.sh: no change of content",
        ]
    );
    let moved: Vec<_> = taken.change.moved.iter().collect();
    assert_eq!(moved, [(&"pure_moved.rs".to_owned(), &"pure.rs".to_owned())]);
    let kinds: Vec<_> = taken.change.files.iter().map(|file| (file.kind, file.old_path.as_deref())).collect();
    let source = Some("source.rs");
    assert_eq!(
        kinds,
        [
            (ChangeKind::Added, None),
            (ChangeKind::Copied, source),
            (ChangeKind::Added, None),
            (ChangeKind::Modified, None),
            (ChangeKind::Modified, None),
            (ChangeKind::Renamed, Some("edited.rs")),
            (ChangeKind::Copied, source),
        ]
    );
    assert_eq!(hunks(&taken, "sub/edited_moved.rs"), [hunk(40, 0, 41, 1)]);
    assert_eq!(hunks(&taken, "link"), [hunk(0, 0, 1, 1)]);
    // A file that is a full copy counts as new code.
    assert_eq!(hunks(&taken, "twin.rs"), [hunk(0, 0, 1, 40)]);
    assert_tree_is_gits(&test, &taken);
    test.commit("two");
    assert_eq!(snapshot(&test, "commit:HEAD").diff_fingerprint, taken.diff_fingerprint);
}

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

#[test]
fn odd_names_are_found_again() {
    use std::os::unix::ffi::OsStrExt;
    let test = TestEnvironment::new();
    let names: [&[u8]; 7] = [
        b"caf\xe9.rs",
        b"new\nline.rs",
        b"tab\there.rs",
        b"\"quoted\" \\x41.rs",
        "ünï.rs".as_bytes(),
        b" space ",
        b"-dash.rs",
    ];
    for (number, name) in names.iter().enumerate() {
        let folder = test.repo().join(std::ffi::OsStr::from_bytes(b"d\xff"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), format!("{number}\n")).expect("a file");
    }
    let taken = snapshot(&test, "worktree");
    assert_eq!(taken.change.files.len(), names.len(), "{:?}", paths(&taken));
    let repo = open(&test);
    for file in &taken.change.files {
        let content = repo.file_at(&taken.snapshot_commit, &file.path).expect("a read").expect("a file");
        assert_eq!(content, repo.blob(&file.new_blob).expect("a blob"), "{}", file.path);
    }
    let listed: Vec<String> =
        repo.tree_files(&taken.snapshot_commit).expect("a list").into_iter().map(|file| file.path).collect();
    assert_eq!(listed, taken.change.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>());
    test.commit("one");
    assert_eq!(paths(&snapshot(&test, "worktree")), [""; 0]);
    assert_eq!(snapshot(&test, "commit:HEAD").diff_fingerprint, taken.diff_fingerprint);
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
fn a_wrong_git_dir_is_named() {
    let test = TestEnvironment::new();
    let asked = test.command(env!("CARGO_BIN_EXE_revdeck")).arg("review").env("GIT_DIR", "/nonexistent").output();
    let said = String::from_utf8_lossy(&asked.expect("revdeck starts").stderr).into_owned();
    assert!(said.contains("GIT_DIR names /nonexistent, which is not a git repository"), "{said}");
}

#[test]
fn every_sort_of_repository() {
    let test = TestEnvironment::new();
    for file in ["a.rs", "in/one.rs", "out/two.rs", "out/deep/three.rs"] {
        test.write(file, "1\n");
    }
    test.commit("one");
    test.write("a.rs", "2\n");
    let head = test.commit("two");
    let key = open(&test).key();
    assert_eq!((key.len(), open(&test).name().as_str()), (16, "repo"));
    let other = |name: &str| test.repo().parent().expect("a folder").join(name);
    let discover = |name: &str| Repo::discover(&other(name)).expect("a repository");

    // A linked worktree with a detached HEAD, opened from a subfolder.
    test.git(&["worktree", "add", "-q", "--detach", "../linked"]);
    std::fs::write(other("linked/in/one.rs"), "changed\n").expect("a file");
    let linked = Repo::discover(&other("linked/in")).expect("a repository");
    let taken = linked.take_default_snapshot(&filter()).expect("a snapshot");
    assert_eq!(
        (linked.key(), linked.branch(), paths(&taken)),
        (key.clone(), String::new(), vec!["in/one.rs".to_owned()])
    );
    assert!(taken.worktree.ends_with("linked"));
    assert_eq!(paths(&snapshot(&test, "worktree")), [""; 0]);

    // A sparse clone: each folder outside the cone becomes one index entry, and is expanded again later.
    test.git(&["clone", "-q", ".", "../sparse"]);
    let sparse = |arguments: &[&str]| test.git(&[&["-C", "../sparse"], arguments].concat());
    sparse(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    assert_eq!(discover("sparse").default_scope().expect("a scope").to_string(), format!("commit:{}", &head[..7]));
    std::fs::write(other("sparse/in/new.rs"), "1\n").expect("a file");
    let taken = discover("sparse").take_snapshot(&Scope::Worktree, &filter()).expect("a snapshot");
    assert_eq!(paths(&taken), ["in/new.rs"]);
    assert_eq!(discover("sparse").tree_files(&taken.snapshot_commit).expect("a list").len(), 5);
    sparse(&["sparse-checkout", "reapply", "--no-sparse-index"]);
    assert_eq!(
        paths(&discover("sparse").take_snapshot(&Scope::Worktree, &filter()).expect("a snapshot")),
        ["in/new.rs"]
    );

    // A shallow clone: its oldest commit has no parent.
    let url = format!("file://{}", test.repo().display());
    test.git(&["clone", "-q", "--depth", "1", &url, "../shallow"]);
    let taken = discover("shallow").take_default_snapshot(&filter()).expect("a snapshot");
    assert_eq!((taken.base_commit.as_str(), taken.change.files.len()), ("", 4));
    assert!(matches!(&taken.notes[..], [note] if note.contains("history is cut off at")), "{:?}", taken.notes);

    // A bare repository, and one whose worktree is in another folder.
    test.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = discover("bare.git");
    assert_eq!(
        (bare.name().as_str(), bare.default_scope().expect("a scope").to_string()),
        ("bare", format!("commit:{}", &head[..7]))
    );
    assert_eq!(paths(&bare.take_default_snapshot(&filter()).expect("a snapshot")), ["a.rs"]);
    assert!(matches!(bare.take_snapshot(&Scope::Worktree, &filter()), Err(GitError::NoWorktree { .. })));
    assert!(matches!(bare.take_snapshot(&Scope::Staged, &filter()), Err(GitError::NoIndex { .. })));
    std::fs::create_dir(other("elsewhere")).expect("a folder");
    test.git(&["-C", "../bare.git", "config", "core.bare", "false"]);
    test.git(&["-C", "../bare.git", "config", "core.worktree", "../elsewhere"]);
    test.git(&["-C", "../bare.git", "reset", "-q", "--hard"]);
    std::fs::write(other("elsewhere/a.rs"), "3\n").expect("a file");
    assert_eq!(paths(&discover("bare.git").take_default_snapshot(&filter()).expect("a snapshot")), ["a.rs"]);

    // A submodule whose commit changed.
    test.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../shallow", "sub"]);
    test.commit("with a submodule");
    assert_eq!(paths(&snapshot(&test, "worktree")), [""; 0]);
    std::fs::write(test.repo().join("sub/a.rs"), "moved\n").expect("a file");
    test.git(&["-C", "sub", "commit", "-q", "-a", "-m", "moved"]);
    let taken = snapshot(&test, "worktree");
    assert_eq!(paths(&taken), ["sub: submodule"]);
    assert_tree_is_gits(&test, &taken);
    assert_eq!(Repo::discover(&test.repo().join("sub")).expect("a repository").name(), "sub");

    for version in ["2", "3", "4"] {
        test.git(&["update-index", "--index-version", version]);
        assert_eq!(paths(&snapshot(&test, "worktree")), ["sub: submodule"], "index version {version}");
    }
    test.git(&["update-index", "--split-index"]);
    test.write("a.rs", "split\n");
    test.git(&["add", "a.rs"]);
    assert_eq!(paths(&snapshot(&test, "worktree")), ["a.rs", "sub: submodule"], "a split index");
    test.write(".gitattributes", "*.rs text=auto\n");
    test.write("a.rs", "split\r\n");
    assert_tree_is_gits(&test, &snapshot(&test, "worktree"));

    let none = Repo::discover(Path::new("/")).err().expect("no repository");
    assert_eq!(none.to_string(), "/ is not in a git repository");
    test.git(&["init", "-q", "--object-format=sha256", "../sha256"]);
    let error = Repo::discover(&other("sha256")).err().expect("not readable");
    assert!(matches!(error, GitError::Unsupported { .. }), "{error:?}");
}

#[test]
fn a_partial_clone_fetches_what_it_reviews_and_nothing_else() {
    let test = TestEnvironment::new();
    test.write("moved.rs", "one\ntwo\nthree\nfour\nfive\n");
    test.write("a.rs", "1\n");
    test.write("old/deep/b.rs", "b\n");
    test.write("new/.gitattributes", "gen.rs linguist-generated\n");
    test.commit("one");
    test.write("new/.gitattributes", "gen.rs -linguist-generated\n");
    test.write("new/gen.rs", "g\n");
    std::fs::remove_file(test.repo().join("moved.rs")).expect("removed");
    test.write("new/moved.rs", "one\ntwo\n3\nfour\nfive\n");
    test.write("a.rs", "2\n");
    test.commit("two");
    test.git(&["rm", "-q", "-r", "."]);
    test.write("last.rs", "l\n");
    test.commit("three");
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    let other = |name: &str| test.repo().parent().expect("a folder").join(name);
    let url = format!("file://{}", test.repo().display());
    let lacks = |name: &str, object: &str| {
        let mut command = test.command("git");
        command.args(["-C", &format!("../{name}"), "cat-file", "-e", object]).env("GIT_NO_LAZY_FETCH", "1");
        !command.output().expect("git starts").status.success()
    };
    let scope: Scope = "commit:HEAD~1".parse().expect("a scope");
    let expected = paths(&open(&test).take_snapshot(&scope, &filter()).expect("a snapshot"));
    assert_eq!(expected, ["a.rs", "new/.gitattributes", "new/moved.rs", "new/gen.rs: generated"]);
    for (name, filtered) in [("blobless", "--filter=blob:none"), ("treeless", "--filter=tree:0")] {
        test.git(&["clone", "-q", filtered, &url, &format!("../{name}")]);
        assert!(lacks(name, "HEAD~1:a.rs"), "{name}");
        let repo = Repo::discover(&other(name)).expect("a repository");
        let taken = repo.take_snapshot(&scope, &filter()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(paths(&taken), expected, "{name}");
        assert!(!lacks(name, "HEAD~1:a.rs") && lacks(name, "HEAD~1:old/deep/b.rs"), "{name}");
        assert!(repo.tree_files(&taken.snapshot_commit).is_ok());
        assert_eq!(
            repo.compute_changeset(&taken.base_commit, &taken.snapshot_commit, &filter()).expect("a change"),
            taken.change
        );
    }

    // Content that cannot be fetched is an error, never a review of fewer files.
    for name in ["cut", "cut-treeless"] {
        let filtered = if name == "cut" { "--filter=blob:none" } else { "--filter=tree:0" };
        test.git(&["clone", "-q", filtered, &url, &format!("../{name}")]);
        test.git(&["-C", &format!("../{name}"), "remote", "set-url", "origin", "file:///nonexistent"]);
        let error =
            Repo::discover(&other(name)).expect("a repository").take_snapshot(&scope, &filter()).expect_err(name);
        assert!(matches!(error, GitError::PartialClone { .. }), "{error:?}");
        assert!(error.to_string().contains("is a partial clone: "), "{error}");
    }
    // A full clone that lost one blob omits that file and reviews the others.
    let id = test.git(&["rev-parse", "HEAD~1:a.rs"]).trim().to_owned();
    let lost = test.repo().join(".git/objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(lost).expect("removed");
    let taken = open(&test).take_snapshot(&scope, &filter()).expect("a snapshot");
    assert!(paths(&taken).contains(&"a.rs: unreadable".to_owned()), "{:?}", paths(&taken));
    assert!(taken.change.files.iter().any(|file| file.path == "new/moved.rs"), "{:?}", paths(&taken));
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
fn a_diff_has_its_lines_with_numbers() {
    let test = TestEnvironment::new();
    test.write("a.rs", "1\n2\n3\n4\n5\n6\n7\n8\n9");
    test.commit("one");
    test.write("a.rs", "1\n2\n3\n4b\n5\n6\n7\n8\n9");
    let taken = snapshot(&test, "worktree");
    let lines = open(&test).file_diff(&taken.change.files[0], 1).expect("a diff");
    let lines: Vec<_> =
        lines.iter().map(|line| (line.origin, line.old_line, line.new_line, line.text.as_str())).collect();
    assert_eq!(
        lines,
        [
            (LineOrigin::HunkHeader, None, None, "@@ -3,3 +3,3 @@"),
            (LineOrigin::Context, Some(3), Some(3), "3"),
            (LineOrigin::Removed, Some(4), None, "4"),
            (LineOrigin::Added, None, Some(4), "4b"),
            (LineOrigin::Context, Some(5), Some(5), "5"),
        ]
    );
}

#[test]
fn attributes_come_from_the_snapshot() {
    let test = TestEnvironment::new();
    test.write(".gitattributes", "made/** linguist-generated\n*.dat binary\n");
    test.write("made/a.rs", "1\n");
    test.write("made/.gitattributes", "hand.rs -linguist-generated\n");
    test.write("made/hand.rs", "1\n");
    test.write("b.dat", "1\n");
    test.commit("one");
    std::fs::remove_file(test.repo().join(".gitattributes")).expect("removed");
    let taken = snapshot(&test, "commit:HEAD");
    assert_eq!(
        paths(&taken),
        [".gitattributes", "made/hand.rs", "b.dat: binary", "made/.gitattributes: generated", "made/a.rs: generated"]
    );
    let repo = open(&test);
    let mut judge = repo.review_filter("HEAD", &filter()).expect("a judge");
    assert_eq!(judge.left_out_reason("made/a.rs", b"1\n"), Some(OmissionReason::Generated));
    assert_eq!(judge.left_out_reason("made/hand.rs", b"1\n"), None);
    let mut judge = repo
        .review_filter("HEAD", &FilterSettings { ignored_paths: vec!["/made/".into()], ..filter() })
        .expect("a judge");
    assert_eq!(judge.left_out_reason("made/hand.rs", b"1\n"), Some(OmissionReason::Ignored));
}

#[test]
fn a_repository_can_go_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Repo>();
}
