//! Changed files and lines of a snapshot.

use revdeck::domain::OmissionReason;
use revdeck::git::{ChangeKind, FilterSettings, LineOrigin};

use super::{assert_tree_is_gits, filter, hunk, hunks, open, paths, snapshot};
use crate::env::TestEnvironment;

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
