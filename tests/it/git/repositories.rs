//! Sorts of repositories, and how they are opened.

use std::path::Path;

use revdeck::domain::Scope;
use revdeck::git::{GitError, Repo};

use super::{assert_tree_is_gits, filter, open, paths, snapshot};
use crate::env::TestEnvironment;

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
fn a_repository_can_go_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Repo>();
}
