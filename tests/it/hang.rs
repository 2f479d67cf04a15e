//! Programs and files that hang: no command waits for ever, and the message names the cause.

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rstest::rstest;
use rustix::process::Signal;

use crate::env::{DONE, INCOMPLETE, TestEnvironment, err, executable, lines_with, out};
use crate::http::server::{Server, reply};
use crate::runner::place::{gone, poll, signal, wait_for};

/// Time in which every command here ends, however busy the machine is.
const MAX_TIME: Duration = Duration::from_secs(40);

/// Time in which a watcher ends after SIGTERM.
const MAX_STOP: Duration = Duration::from_secs(1);

/// Returns the output of a child that ends in time; kills it and returns `None` otherwise.
fn ends(mut child: Child) -> Option<Output> {
    if !poll(MAX_TIME, || child.try_wait().expect("a status").is_some()) {
        child.kill().expect("killed");
        child.wait().expect("reaped");
        return None;
    }
    Some(child.wait_with_output().expect("the output"))
}

fn start(test: &TestEnvironment, folder: &Path, arguments: &[&str]) -> Child {
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("revdeck starts")
}

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let _ = std::fs::remove_file(path);
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo starts");
    assert!(made.success(), "{}", path.display());
}

/// Creates a repository in which git starts a filter program for `*.py` that writes its process id and hangs.
fn with_hanging_filter(seconds: u32) -> (TestEnvironment, PathBuf) {
    let test = TestEnvironment::new();
    test.write(".gitattributes", "*.py filter=slow\n");
    test.commit("one");
    let started = test.home().join("started");
    let program = test.home().join("slow-filter");
    executable(&program, format!("#!/bin/sh\necho $$ > '{}'\nexec sleep 98765\n", started.display()));
    test.git(&["config", "filter.slow.clean", program.to_str().expect("text")]);
    test.settings(&format!("git_seconds = {seconds}\n[watch]\nquiet_seconds = 0\ninterval_seconds = 0\n"));
    (test, started)
}

fn filter_process(started: &Path) -> u32 {
    wait_for("the filter", || std::fs::read_to_string(started).ok()?.trim().parse().ok())
}

#[test]
fn a_filter_that_hangs_is_ended_and_named_and_the_other_files_are_reviewed() {
    let (test, started) = with_hanging_filter(1);
    for name in ["a.py", "b.py", "c.py"] {
        test.write(name, "x = 1\n");
    }
    test.write("d.js", "var x = 1;\n");
    let output = ends(start(&test, &test.repo(), &["review", "--worktree", "--wait"])).expect("an end");
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}{}", out(&output), err(&output));
    assert_snapshot!(lines_with(&test.normalise(&out(&output)), |line| !line.contains(" reviewed")), @r#"
    note: a.py is left out as git would not add it: git hash-object was ended, as for [duration] nothing came from the program "sleep 98765" (setting git_seconds)
    note: b.py is left out as git would not add it: git hash-object was ended, as for [duration] nothing came from the program "sleep 98765" (setting git_seconds)
    note: c.py is left out as git would not add it: git hash-object was ended, as for [duration] nothing came from the program "sleep 98765" (setting git_seconds)
    incomplete: 3 files could not be read: a.py, b.py, c.py
    "#);
    let filter = filter_process(&started);
    wait_for("the end of the filter", || gone(filter).then_some(()));
    let run = &test.json(&["runs", "--format", "json"], DONE)["runs"][0];
    assert_eq!(run["coverage"]["files_covered"], 1, "{run}");
}

#[test]
fn a_credential_helper_that_hangs_is_ended_and_named() {
    let test = TestEnvironment::new();
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    for number in 0..2 {
        test.write("a.py", format!("x = {number}\n"));
        test.commit(&format!("change {number}"));
    }
    test.settings("git_seconds = 1\n");
    let clone = test.home().join("clone");
    let origin = format!("file://{}", test.repo().display());
    test.git(&["clone", "-q", "--filter=blob:none", &origin, clone.to_str().expect("text")]);
    let refusal = reply("401 Unauthorized", "text/plain", &[("www-authenticate", "Basic realm=\"x\"")], "no");
    let server = Server::new(vec![refusal; 8]);
    let address = format!("http://127.0.0.1:{}/x.git", server.port);
    let git = |arguments: &[&str]| {
        let mut command = test.command("git");
        assert!(command.current_dir(&clone).args(arguments).status().expect("git starts").success());
    };
    git(&["remote", "set-url", "origin", &address]);
    git(&["config", "credential.helper", "!sleep 98764 #"]);
    let output = ends(start(&test, &clone, &["review", "--commit", "HEAD", "--wait"])).expect("an end");
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}{}", out(&output), err(&output));
    assert_snapshot!(test.normalise(&err(&output)), @r#"
    error: [home]/clone is a partial clone: 1 object of what is to be reviewed is not here, and git fetch was ended, as for [duration] nothing came from the program "sleep 98764 # get" (setting git_seconds)
      hint: `git fetch --refetch --no-filter` makes it a full clone, while its remote can be reached
    "#);
}

/// Each place of a pipe, the commands that must end in spite of it, and a part of what the first command says.
#[rstest]
#[case::settings(".git/config", "is a named pipe")]
#[case::settings_of_the_worktree(".git/config.worktree", "is a named pipe")]
#[case::included_settings(".git/included", "is a named pipe")]
#[case::index(".git/index", "is a named pipe")]
#[case::branch(".git/refs/heads/main", "is a named pipe")]
#[case::packed_references(".git/packed-refs", "is a named pipe")]
#[case::attributes(".git/info/attributes", "is a named pipe")]
#[case::exclude(".git/info/exclude", "is a named pipe")]
#[case::alternates(".git/objects/info/alternates", "is a named pipe")]
#[case::graph(".git/objects/info/commit-graph", "is a named pipe")]
#[case::shallow(".git/shallow", "is a named pipe")]
#[case::log(".git/logs/HEAD", "is a named pipe")]
#[case::common(".git/commondir", "is a named pipe")]
#[case::head(".git/HEAD", "")]
#[case::a_tag(".git/refs/tags/v1", "")]
#[case::another_branch(".git/refs/heads/master", "")]
#[case::upstream(".git/refs/remotes/origin/HEAD", "")]
#[case::snapshots(".git/refs/revdeck/snapshots/x", "")]
#[case::attributes_of_the_tree(".gitattributes", "is not a file")]
#[case::attributes_below("sub/.gitattributes", "is not a file")]
#[case::ignored("sub/.gitignore", "")]
#[case::settings_of_the_repository(".revdeck.toml", "")]
#[case::untracked("sub/pipe", "")]
#[case::coverage("lcov.info", "")]
#[case::guidelines("AGENTS.md", "")]
#[case::a_repository_inside("inner/.git/config", "")]
#[case::a_file_of_the_repository("a.py", "")]
fn a_pipe_in_the_place_of_a_file_holds_nobody_up(#[case] place: &str, #[case] says: &str) {
    let test = TestEnvironment::new();
    test.write("sub/b.py", "y = 1\n");
    test.write("a.py", "x = 1\n");
    test.commit("one");
    test.git(&["config", "core.autocrlf", "input"]);
    test.write("sub/b.py", "y = 2\n");
    test.write("a.py", "x = 2\n");
    match place {
        ".git/included" => drop(test.git(&["config", "include.path", "included"])),
        "inner/.git/config" => {
            test.git(&["init", "-q", "inner"]);
        }
        _ => {}
    }
    pipe(&test.repo().join(place));
    let commands: [&[&str]; 10] = [
        &["review", "--worktree", "--wait"],
        &["review", "--commit", "HEAD", "--wait"],
        &["review", "--branch"],
        &["review", "--commit", "v1"],
        &["context"],
        &["runs"],
        &["ledger"],
        &["doctor"],
        &["hook", "status"],
        &["smells"],
    ];
    let mut said = String::new();
    for arguments in commands {
        let output = ends(start(&test, &test.repo(), arguments));
        let output = output.unwrap_or_else(|| panic!("{arguments:?} waits for {place}"));
        if said.is_empty() {
            said = format!("{}{} ", out(&output), err(&output));
        }
        let code = output.status.code();
        assert!(code.is_some_and(|code| code <= 3), "{arguments:?} with {place}: {code:?}\n{}", err(&output));
    }
    assert!(said.contains(says), "{place}: {said}");
    // A watcher either does not start, or ends when asked.
    let mut watch = start(&test, &test.repo(), &["watch"]);
    wait_for("a watcher", || {
        let ended = watch.try_wait().expect("a status").is_some();
        (ended || test.home().join("state").is_dir()).then_some(())
    });
    if watch.try_wait().expect("a status").is_none() {
        signal(watch.id(), Signal::TERM);
    }
    assert!(ends(watch).is_some(), "the watcher waits for {place}");
}

#[test]
fn a_watcher_ends_within_a_second_whatever_it_waits_for() {
    // It waits for a filter program.
    let (test, started) = with_hanging_filter(9999);
    let mut watch = start(&test, &test.repo(), &["watch"]);
    wait_for("a watcher", || test.revdeck(&["watch", "--status"]).stdout.starts_with(b"process").then_some(()));
    test.write("a.py", "x = 1\n");
    let filter = filter_process(&started);
    let asked = Instant::now();
    signal(watch.id(), Signal::TERM);
    let status = wait_for("the end of the watcher", || watch.try_wait().expect("a status"));
    let took = asked.elapsed();
    assert!(status.success() && took < MAX_STOP, "{status} after {took:?}");
    wait_for("the end of the filter", || gone(filter).then_some(()));
    assert!(out(&watch.wait_with_output().expect("the output")).ends_with("  ended as asked\n"));

    // It waits for the store's lock, while nobody reads what it says.
    test.git(&["config", "--unset", "filter.slow.clean"]);
    let store = test.store();
    let held = store.with_lock(|_| {
        let mut watch = start(&test, &test.repo(), &["watch"]);
        wait_for("a watcher", || test.revdeck(&["watch", "--status"]).stdout.starts_with(b"process").then_some(()));
        test.write("b.py", "x = 1\n");
        wait_for("a process that waits for the lock", || {
            let waits = std::fs::read_to_string("/proc/locks").expect("the locks");
            waits.lines().any(|line| line.contains("->") && line.contains(&format!(" {} ", watch.id()))).then_some(())
        });
        let asked = Instant::now();
        signal(watch.id(), Signal::TERM);
        let status = wait_for("the end of the watcher", || watch.try_wait().expect("a status"));
        let took = asked.elapsed();
        assert!(status.success() && took < MAX_STOP, "{status} after {took:?}");
        Ok(())
    });
    held.expect("the store's lock");
}
