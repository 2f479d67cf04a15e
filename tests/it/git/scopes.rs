//! Scopes, their commits, and the fingerprint of a change.

use revdeck::domain::Scope;
use revdeck::git::{FilterSettings, GitError};

use super::{KIB, filter, open, paths, snapshot};
use crate::env::TestEnvironment;

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
