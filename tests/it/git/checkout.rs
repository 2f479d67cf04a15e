//! Temporary checkouts: their content, their isolation, and no effect on the user's repository.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use revdeck::git::{CheckoutPlan, GitError, Repo, TemporaryCheckout};

use super::{open, state};
use crate::env::{TestEnvironment, executable};

fn place(test: &TestEnvironment, name: &str) -> PathBuf {
    test.home().join("checkouts").join(name)
}

fn attempt(repo: &Repo, commit: &str, folder: &Path, unwanted: &[&str]) -> Result<TemporaryCheckout, GitError> {
    let plan = CheckoutPlan { unwanted, ..plan(commit) };
    repo.create_checkout(&plan, folder, &|| false).map(|made| made.expect("nobody cancelled it"))
}

/// Returns the plan of a checkout of a commit alone, without secrets and masks.
fn plan(commit: &str) -> CheckoutPlan<'_> {
    CheckoutPlan { commit, base: None, unwanted: &[], is_secret: &|_| false, mask: None }
}

fn throwaway(test: &TestEnvironment, commit: &str, unwanted: &[&str]) -> TemporaryCheckout {
    attempt(&open(test), commit, &place(test, "one"), unwanted).expect("a checkout")
}

/// Runs git in a checkout and returns its output.
fn git(test: &TestEnvironment, folder: &Path, arguments: &[&str]) -> String {
    let mut command = test.command("git");
    // This environment is less strict than a reviewer's: the checkout must be safe without it.
    let output = command.current_dir(folder).args(arguments).output().expect("git starts");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Passes `input` to a git command in the repository and returns the line that it prints.
fn feed(test: &TestEnvironment, arguments: &[&str], input: &[u8]) -> String {
    let mut child = test.command("git");
    let mut child = child.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Writes a tree from its entries (`mode name`, each with the blob) and returns its id.
fn tree(test: &TestEnvironment, entries: &[(&str, &str, &str)]) -> String {
    let mut input = Vec::new();
    for (mode, name, id) in entries {
        let kind = if *mode == "040000" { "tree" } else { "blob" };
        input.extend(format!("{mode} {kind} {id}\t{name}\0").into_bytes());
    }
    feed(test, &["mktree", "-z", "--missing"], &input)
}

fn commit_tree(test: &TestEnvironment, tree: &str) -> String {
    feed(test, &["commit-tree", "-m", "made by hand", tree], b"")
}

#[test]
fn a_checkout_is_the_commit_and_its_base() {
    let test = TestEnvironment::new();
    test.write("src/a.rs", "fn a() {}\r\n");
    test.write("tool.sh", "#!/bin/sh\n");
    let one = test.commit("one");
    test.write("src/a.rs", "fn a() {}\r\nfn b() {}\r\n");
    std::fs::set_permissions(test.repo().join("tool.sh"), PermissionsExt::from_mode(0o755)).expect("a mode");
    std::os::unix::fs::symlink("src/a.rs", test.repo().join("link")).expect("a link");
    test.write("bytes", b"\0\xff\n");
    let two = test.commit("two");
    test.write("later", "");
    test.commit("three");
    test.write("src/a.rs", "changed since\n");
    let (worktrees, before) = (test.git(&["worktree", "list"]), state(&test.repo()));

    let plan = CheckoutPlan { base: Some(&one), ..plan(&two) };
    let made = open(&test).create_checkout(&plan, &place(&test, "one"), &|| false).expect("a checkout");
    let made = made.expect("nobody cancelled it");
    let folder = made.folder().to_owned();
    assert_eq!((made.files, made.left_out), (4, 0));
    let read = |path: &str| std::fs::read(folder.join(path)).expect("a file");
    assert_eq!(read("src/a.rs"), b"fn a() {}\r\nfn b() {}\r\n");
    assert_eq!(read("bytes"), b"\0\xff\n");
    assert_eq!(read("link"), b"src/a.rs");
    for path in ["src/a.rs", "tool.sh", "link"] {
        let seen = folder.join(path).symlink_metadata().expect("a file");
        assert!(seen.is_file() && seen.permissions().mode() & 0o333 == 0, "{path}: {seen:?}");
    }
    assert_eq!(folder.metadata().expect("a folder").permissions().mode() & 0o077, 0, "for its owner alone");
    let says = |arguments: &[&str]| git(&test, &folder, arguments);
    assert_eq!(says(&["status", "--porcelain"]), "");
    assert_eq!(says(&["log", "--format=%s"]), "The state under review\nThe state before the change\n");
    assert!(!folder.join(".git/objects/info/alternates").exists(), "it borrows nothing");
    assert_eq!(says(&["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD\n");
    assert_eq!(says(&["diff", "--name-status", "HEAD~1"]), "A\tbytes\nA\tlink\nM\tsrc/a.rs\nM\ttool.sh\n");
    assert!(says(&["diff", "HEAD~1", "--", "src/a.rs"]).contains("+fn b() {}"));
    // Objects that a program creates in the checkout stay there, too.
    says(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "four"]);
    drop(made);
    assert!(!folder.exists());
    assert_eq!(test.git(&["worktree", "list"]), worktrees);
    assert_eq!(state(&test.repo()), before);
}

#[test]
fn nothing_in_a_commit_runs_or_gets_out() {
    let test = TestEnvironment::new();
    let proof = test.home().join("proof");
    let blob = |content: &str| feed(&test, &["hash-object", "-w", "--stdin"], content.as_bytes());
    let shout = blob(&format!("#!/bin/sh\ntouch {}\n", proof.display()));
    let (text, attributes) = (blob("text\n"), blob("* filter=shout diff=shout ident eol=crlf\n"));
    let outside = blob(&test.home().display().to_string());
    let hooks = tree(&test, &[("100755", "post-checkout", &shout)]);
    let git_dir = tree(&test, &[("040000", "hooks", &hooks), ("100644", "config", &shout)]);
    let below = tree(&test, &[("100644", "planted", &text)]);
    let long = "n".repeat(300);
    let whole = tree(
        &test,
        &[
            ("100644", ".gitattributes", &attributes),
            ("040000", ".git", &git_dir),
            ("040000", ".GIT", &git_dir),
            ("040000", "..", &below),
            ("040000", ".claude", &below),
            ("100644", "a.rs", &text),
            ("100644", "agents.MD", &text),
            // A link that leads out of the checkout and has the name of a folder; the danger is that the link is
            // created first.
            ("120000", "exit", &outside),
            ("040000", "exit", &below),
            ("120000", "passwd", &blob("/etc/passwd")),
            ("100644", &long, &text),
            ("100755", "tool", &shout),
        ],
    );
    let commit = commit_tree(&test, &whole);
    // The user's settings define the filter.
    let filter = format!("touch {}; cat", proof.display());
    for (key, value) in [
        ("filter.shout.clean", filter.as_str()),
        ("filter.shout.smudge", filter.as_str()),
        ("diff.shout.textconv", filter.as_str()),
        ("core.hooksPath", test.home().to_str().expect("UTF-8")),
        ("core.autocrlf", "true"),
    ] {
        std::fs::create_dir_all(test.home()).expect("a folder");
        git(&test, &test.repo(), &["config", "--global", key, value]);
    }
    executable(test.home().join("post-index-change"), format!("#!/bin/sh\ntouch {}\n", proof.display()));

    let made = throwaway(&test, &commit, &[".claude", "AGENTS.md"]);
    let folder = made.folder();
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let exits = folder.join("exit").symlink_metadata().expect("the link or the folder");
    assert!(!exits.is_symlink());
    assert_eq!(names, [".git", ".gitattributes", "a.rs", "exit", "passwd", "tool"]);
    assert_eq!(std::fs::read_to_string(folder.join("passwd")).expect("a file"), "/etc/passwd");
    assert!(!folder.join(".git/hooks").exists() && !folder.parent().expect("above").join("planted").exists());
    git(&test, folder, &["status", "--porcelain"]);
    std::fs::remove_file(folder.join("a.rs")).expect("a file");
    std::fs::write(folder.join("a.rs"), "text\r\n").expect("a file");
    let changed = git(&test, folder, &["diff", "--", "a.rs", "passwd", "tool", "agents.MD"]);
    assert!(changed.contains("-text\n+text\r\n") && !changed.contains("passwd"), "{changed}");
    assert_eq!(git(&test, folder, &["show", "HEAD:agents.MD"]), "text\n");
    assert!(!proof.exists(), "something of the commit, or a filter or a hook, ran");
}

#[test]
fn what_cannot_be_written_is_left_out_and_not_called_deleted() {
    let test = TestEnvironment::new();
    test.write("a.rs", "a\n");
    test.write("sub/.env", "KEY=1\n");
    test.write("sub/b.rs", "b\n");
    let one = test.commit("one");
    test.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{one},module")]);
    test.git(&["commit", "-q", "-m", "with a submodule"]);
    let made = throwaway(&test, "HEAD", &[".env"]);
    assert_eq!((made.files, made.left_out), (3, 1));
    assert_eq!(git(&test, made.folder(), &["status", "--porcelain"]), "");
    assert!(!made.folder().join("sub/.env").exists());
    assert_eq!(std::fs::read_dir(made.folder().join("module")).expect("a folder").count(), 0);
}

#[test]
fn linked_worktrees_and_bare_and_shallow_and_partial_clones_can_be_checked_out() {
    let test = TestEnvironment::new();
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    for number in 0..3 {
        test.write("a.rs", format!("{number}\n"));
        test.commit(&format!("change {number}"));
    }
    std::fs::create_dir_all(test.home()).expect("a folder");
    let (origin, home) = (format!("file://{}", test.repo().display()), test.home());
    let named = |name: &str| home.join(name).to_str().expect("UTF-8").to_owned();
    test.git(&["worktree", "add", "-q", &named("linked"), "HEAD"]);
    test.git(&["clone", "-q", "--bare", &origin, &named("bare")]);
    test.git(&["clone", "-q", "--depth=2", &origin, &named("shallow")]);
    test.git(&["clone", "-q", "--no-checkout", "--filter=blob:none", &origin, &named("partial")]);
    for (name, content) in [("linked", Some("2\n")), ("bare", Some("2\n")), ("shallow", Some("2\n")), ("partial", None)]
    {
        let repo = Repo::discover(&home.join(name)).expect("a repository");
        let made = attempt(&repo, "HEAD", &place(&test, name), &[]).expect("a checkout");
        assert_eq!(git(&test, made.folder(), &["log", "--format=%s"]).lines().count(), 1, "{name}");
        assert_eq!(std::fs::read_to_string(made.folder().join("a.rs")).ok().as_deref(), content, "{name}");
        assert_eq!(git(&test, made.folder(), &["status", "--porcelain"]), "", "{name}");
    }
}

#[test]
fn a_checkout_goes_away_whatever_was_done_to_it_and_leftovers_are_swept() {
    let test = TestEnvironment::new();
    test.write("deep/er/a.rs", "a\n");
    test.commit("one");
    let made = throwaway(&test, "HEAD", &[]);
    let folder = made.folder().to_owned();
    std::fs::set_permissions(folder.join("deep/er"), PermissionsExt::from_mode(0o000)).expect("a mode");
    std::os::unix::fs::symlink(test.repo(), folder.join("way-out")).expect("a link");
    drop(made);
    assert!(!folder.exists() && test.repo().join("deep/er/a.rs").exists());

    // A killed worker leaves its checkout behind. The next attempt of the same run replaces it.
    for name in ["one", "dead", "alive"] {
        std::mem::forget(attempt(&open(&test), "HEAD", &place(&test, name), &[]).expect("a checkout"));
    }
    std::fs::write(folder.join("stale"), "").expect("a file");
    let again = throwaway(&test, "HEAD", &[]);
    assert!(!folder.join("stale").exists() && folder.join("deep/er/a.rs").exists());
    let checkouts = test.home().join("checkouts");
    let swept = Repo::remove_stale_checkouts(&checkouts, &|name| matches!(name, "one" | "alive"));
    assert_eq!(swept.expect("the leftovers can be deleted"), 1);
    assert!(place(&test, "alive").exists() && folder.exists() && !place(&test, "dead").exists());
    drop(again);
    assert_eq!(Repo::remove_stale_checkouts(&checkouts, &|_| false).expect("as before"), 1);
    assert_eq!(Repo::remove_stale_checkouts(&test.home().join("no-such"), &|_| false).expect("nothing"), 0);
}

#[test]
fn a_commit_that_is_not_there_leaves_nothing() {
    let test = TestEnvironment::new();
    let missing = "1".repeat(40);
    let error = attempt(&open(&test), &missing, &place(&test, "one"), &[]).expect_err("no commit");
    assert!(matches!(error, GitError::UnknownRevision { .. }), "{error}");
    // A commit whose tree is missing.
    let commit = commit_tree(&test, &tree(&test, &[]));
    let text = test.git(&["cat-file", "commit", &commit]);
    let text = text.replace(text.lines().next().expect("a tree"), &format!("tree {missing}"));
    let gone = feed(&test, &["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], text.as_bytes());
    let error = attempt(&open(&test), &gone, &place(&test, "one"), &[]).expect_err("no tree");
    assert!(error.to_string().contains("read a commit"), "{error}");
    assert!(!place(&test, "one").exists());
}

/// Trees that contain themselves many times: a few objects that expand to more files than any disk can hold.
#[test]
fn a_commit_that_unfolds_without_end_is_refused() {
    let test = TestEnvironment::new();
    let blob = feed(&test, &["hash-object", "-w", "--stdin"], b"x\n");
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    let files: Vec<String> = (0..10_000).map(|number| format!("f{number}")).collect();
    let files: Vec<_> = files.iter().map(|name| ("100644", name.as_str(), blob.as_str())).collect();
    let mut level = tree(&test, &files);
    for _ in 0..12 {
        let entries: Vec<_> = names.iter().map(|name| ("040000", name.as_str(), level.as_str())).collect();
        level = tree(&test, &entries);
    }
    let commit = commit_tree(&test, &level);
    let error = attempt(&open(&test), &commit, &place(&test, "one"), &[]).expect_err("too many files");
    assert!(matches!(error, GitError::TooManyFiles { .. }) && error.hint().is_some(), "{error}");
    assert!(!place(&test, "one").exists());
}

/// Checks out a tree with as many files as `REVDECK_TEST_FILES` says.
#[test]
fn a_large_tree_is_checked_out_whole() {
    let test = TestEnvironment::new();
    let count: usize = std::env::var("REVDECK_TEST_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    let mut stream = String::from("commit refs/heads/main\ncommitter A <a@example.org> 1767000000 +0000\ndata 0\n");
    for number in 0..count {
        let content = format!("pub fn f{number}() -> usize {{\n    {number}\n}}\n");
        let _ = write!(
            stream,
            "M 100644 inline src/m{}/n{}/file_{number}.rs\ndata {}\n{content}\n",
            number / 1000,
            number / 50 % 20,
            content.len()
        );
    }
    feed(&test, &["fast-import", "--quiet"], stream.as_bytes());
    let made = throwaway(&test, "refs/heads/main", &[]);
    assert_eq!((made.files, made.left_out), (count, 0));
    assert_eq!(git(&test, made.folder(), &["status", "--porcelain"]), "");
    drop(made);
    // No files are left, at whatever moment the checkout is cancelled. It asks at each of more than 100 folders.
    for patience in [0, 5, 60] {
        let asked = std::cell::Cell::new(0);
        let cancelled = || asked.replace(asked.get() + 1) >= patience;
        let made = open(&test).create_checkout(&plan("refs/heads/main"), &place(&test, "one"), &cancelled);
        let made = made.expect("no error");
        assert!(made.is_none(), "{patience}");
        drop(made);
        assert!(!place(&test, "one").exists());
    }
}

/// Returns every object that git finds in a checkout, and every file below it.
fn everything(test: &TestEnvironment, folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    let objects = git(test, folder, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
    for object in objects.lines() {
        let (id, kind) = object.split_once(' ').expect("an id and a type");
        let mut command = test.command("git");
        all.extend(command.current_dir(folder).args(["cat-file", kind, id]).output().expect("git starts").stdout);
    }
    all.extend(crate::env::files_below(folder).into_iter().flat_map(|file| std::fs::read(file).expect("a file")));
    all
}

#[test]
fn secret_files_and_masked_values_are_in_no_object() {
    let test = TestEnvironment::new();
    let planted = ["value-of-the-secret-file", "value-of-the-past", "value-in-the-base", "value-in-the-commit"];
    test.write("past.txt", planted[1]);
    test.commit("zero");
    test.git(&["rm", "-q", "past.txt"]);
    test.write("sub/.env", planted[0]);
    test.write("both.txt", format!("same {}\n", planted[2]));
    test.write("code.txt", format!("old {}\n", planted[2]));
    let one = test.commit("one");
    test.write("code.txt", format!("new {}\n", planted[3]));
    let two = test.commit("two value-in-the-commit");
    let mask = |path: &str, content: &[u8]| {
        let text = std::str::from_utf8(content).expect("UTF-8");
        text.contains("value-").then(|| format!("{} masked in {path}\n", &text[..4]).into_bytes())
    };
    let plan =
        CheckoutPlan { base: Some(&one), is_secret: &|path| path.ends_with(".env"), mask: Some(&mask), ..plan(&two) };
    let made = open(&test).create_checkout(&plan, &place(&test, "one"), &|| false).expect("a checkout");
    let made = made.expect("nobody cancelled it");
    assert_eq!((made.files, made.left_out), (2, 1));
    let found = everything(&test, made.folder());
    for value in planted {
        assert!(!found.windows(value.len()).any(|part| part == value.as_bytes()), "{value}");
    }
    let says = |arguments: &[&str]| git(&test, made.folder(), arguments);
    assert_eq!(says(&["status", "--porcelain"]), "");
    assert_eq!(says(&["ls-tree", "-r", "--name-only", "HEAD"]), "both.txt\ncode.txt\n");
    assert_eq!(says(&["diff", "--name-only", "HEAD~1"]), "code.txt\n");
    assert_eq!(says(&["show", "HEAD:code.txt"]), "new  masked in code.txt\n");
}
