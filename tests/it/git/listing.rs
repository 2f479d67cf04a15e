//! The list of a commit's tree, compared with git's own output.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use revdeck::git::EntryKind;

use super::open;
use crate::env::TestEnvironment;

#[test]
fn a_listing_is_what_git_lists_and_ignores() {
    let test = TestEnvironment::new();
    test.write(".gitignore", "*.log\nbuild/\n/top.txt\n!kept.log\nsub/a/*.tmp\nfoo/**/bar\n\\#odd\n");
    test.write("sub/.gitignore", "!again.log\n*.txt\n/only-here\n");
    test.write("sub/deep/.gitignore", "!*.txt\r\n");
    for path in [
        "a.rs",
        "a.log",
        "kept.log",
        "build/x.rs",
        "build/kept.log",
        "sub/again.log",
        "sub/b.log",
        "sub/x.txt",
        "top.txt",
        "sub/top.txt",
        "sub/deep/x.txt",
        "sub/a/x.tmp",
        "sub/a/b/x.tmp",
        "foo/1/2/bar",
        "foo/bar/x",
        "sub/only-here",
        "sub/deep/only-here",
        "#odd",
        "a/b",
        "a-b",
        "a.b/c",
    ] {
        test.write(path, path);
    }
    let odd = test.repo().join(std::ffi::OsStr::from_bytes(b"sub/caf\xe9.txt"));
    std::fs::write(odd, "x").expect("a file");
    symlink("a.rs", test.repo().join("link")).expect("a link");
    test.git(&["add", "-A", "-f"]);
    test.git(&["commit", "-q", "-m", "all of it"]);
    let repo = open(&test);
    let listing = repo.list_tree("HEAD").expect("a listing");
    assert!(listing.complete && listing.entries.is_sorted_by(|a, b| a.path < b.path));
    let lines = |text: String| {
        let mut lines: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // This helper replaces bytes that are not UTF-8.
    let shown = |path: &str| path.replace("\\xe9", "\u{fffd}");
    let all: Vec<String> = listing.entries.iter().map(|entry| shown(&entry.path)).collect();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, lines(test.git(&["ls-files", "-z"])));
    let ignored = listing.entries.iter().filter(|entry| entry.is_ignored).map(|entry| shown(&entry.path));
    let mut ignored: Vec<String> = ignored.collect();
    ignored.sort();
    assert_eq!(ignored, lines(test.git(&["ls-files", "-z", "-c", "-i", "--exclude-per-directory=.gitignore"])));
    for entry in &listing.entries {
        let found = repo.entry_at("HEAD", &entry.path).expect("a commit");
        assert_eq!(found, Some((entry.kind, entry.id.clone())), "{}", entry.path);
        assert_eq!(entry.kind == EntryKind::Symlink, entry.path == "link");
        let content = repo.blob(&entry.id).expect("a blob");
        assert_eq!(repo.blob_size(&entry.id).expect("a blob"), content.len() as u64);
    }
    assert_eq!(repo.entry_at("HEAD", "sub").expect("a commit"), None);
    assert_eq!(repo.entry_at("HEAD", "nowhere").expect("a commit"), None);
}

#[test]
fn a_tree_made_to_explode_costs_a_bounded_amount() {
    let test = TestEnvironment::new();
    test.write("a", "x");
    let mut id = test.git(&["hash-object", "-w", "a"]).trim().to_owned();
    // Ten folders, each with ten folders, and so on: 10^9 files in nine objects.
    for level in 0..9 {
        let (mode, kind) = if level == 0 { ("100644", "blob") } else { ("040000", "tree") };
        let entries: String = (0..10).map(|n| format!("{mode} {kind} {id}\tn{n}\n")).collect();
        test.write("entries", entries);
        let input = std::fs::File::open(test.repo().join("entries")).expect("a file");
        let output = test.command("git").arg("mktree").stdin(input).output().expect("git starts");
        id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    }
    let commit = test.git(&["commit-tree", &id, "-m", "bomb"]).trim().to_owned();
    let files = open(&test).tree_files(&commit).expect("files");
    assert!(!files.is_empty() && files.len() <= 1_000_000, "{}", files.len());
    let listing = open(&test).list_tree(&commit).expect("a listing");
    assert!(!listing.complete && listing.entries.len() <= 1_000_000, "{}", listing.entries.len());
}
