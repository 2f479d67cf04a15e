//! The `review` command: output and exit codes.

use std::time::Duration;

use super::*;
use crate::runner::place::{Place, poll};

#[test]
fn a_review_says_what_it_found_and_what_it_covered() {
    let test = TestEnvironment::new();
    test.write("src/long.py", long_function("long"));
    test.write("src/wide.py", wide_function("wide"));
    test.write("Cargo.lock", "# lock\n");
    test.write("image.bin", b"\0\x01\x02".repeat(100));
    test.commit("all sorts");
    // A pipe gets no colours.
    assert_snapshot!(test.output(&["review", "--wait"], DONE), @"
    src/long.py
      1-202  p1  LONG_METHOD  Function `long` is 202 code lines long
             202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.
             f_[id]

    src/wide.py
      1-2  p3  COMPLEX_FUNCTIONS  Function `wide` is complex: 8 parameters
           8 parameters (limit 7): every path has to be understood and tested.
           f_[id]

    2 findings (1 p1, 1 p3) · 2 files, 2 hunks reviewed · 2 left out: lock file, binary
    ");
}

#[test]
fn hunks_that_the_reviewer_cannot_read_are_counted_apart() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    for name in ["a.txt", "b.txt", "c.txt"] {
        test.write(name, "words\n");
    }
    test.commit("all sorts");
    assert_snapshot!(test.output(&["review", "--wait"], DONE), @"
    long.py
      1-202  p1  LONG_METHOD  Function `long` is 202 code lines long
             202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.
             f_[id]

    1 finding (1 p1) · 1 file, 1 hunk reviewed, 3 in files left out · 3 left out: 3 language not supported by this reviewer
    ");
    let value = test.json(&["review", "--wait", "--format", "json"], DONE);
    for coverage in [&value["coverage"], &value["run"]["coverage"]] {
        let counts = ["hunks_covered", "hunks_total", "hunks_left_out"].map(|name| coverage[name].as_u64());
        assert_eq!(counts, [Some(1), Some(1), Some(3)], "{coverage}");
    }
    assert_snapshot!(test.output(&["review", "--wait", "--format", "markdown"], DONE), @r#"
    ## Review of `commit:[hash]`

    1 finding \(1 p1\) · 1 file, 1 hunk reviewed, 3 in files left out · 3 left out: 3 language not supported by this reviewer

    ### `long.py`

    - **p1 LONG\_METHOD** line 1-202: Function \`long\` is 202 code lines long

      202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.

      ```py
      def long(long_total):
      ```

      `f_[id]`
    "#);
}

#[test]
fn a_review_of_no_file_is_called_so_everywhere() {
    let test = TestEnvironment::new();
    test.write("src/clean.py", "def clean(): return 1\n");
    test.commit("Code");
    run(&test, &["review", "commit:HEAD", "--wait"], DONE);
    assert!(run(&test, &["runs"], DONE).contains("  completed "));
    // The built-in reviewer does not know the language, so it is a run that looks at nothing.
    test.write("NOTES.md", "words\n");
    test.commit("Notes");
    run(&test, &["review", "commit:HEAD", "--wait"], DONE);
    let listed = run(&test, &["runs"], DONE);
    let newest = listed.lines().next().unwrap_or_default().to_owned();
    assert!(newest.contains("  not reviewed  ") && !newest.contains("completed"), "{listed}");
    let status = run(&test, &["status"], DONE);
    assert!(status.contains(" not reviewed, 0 minutes ago") && !status.contains("completed"), "{status}");
    let shown = run(&test, &["show", "latest"], DONE);
    assert!(shown.lines().next().is_some_and(|line| line.ends_with("  not reviewed")), "{shown}");
    for command in [&["findings"][..], &["findings", "--run", "latest"]] {
        let listed = run(&test, command, DONE);
        assert_eq!(listed, "not reviewed: every changed file was left out\n", "{command:?}");
    }
    let value = test.json(&["runs", "--format", "json"], DONE);
    assert_eq!(value["runs"][0]["status"], "completed", "programs read the status and the coverage");
}

#[test]
fn a_file_that_is_too_complex_is_left_out_as_that() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("hostile.java", "a =>\n".repeat(5_000));
    test.commit("one of each");
    assert_snapshot!(test.output(&["review", "--wait"], DONE), @"
    long.py
      1-202  p1  LONG_METHOD  Function `long` is 202 code lines long
             202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.
             f_[id]

    1 finding (1 p1) · 1 file, 1 hunk reviewed, 1 in files left out · 1 left out: too complex to parse
    ");
    let value = test.json(&["review", "--wait", "--format", "json"], DONE);
    let left_out = serde_json::json!([{ "path": "hostile.java", "reason": "too_complex" }]);
    assert_eq!(value["coverage"]["left_out"], left_out);
}

#[test]
fn fail_on_decides_the_exit_code() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    for (more, code) in [
        (&[][..], DONE),
        (&["--fail-on", "p0"], DONE),
        (&["--fail-on", "p1"], FINDINGS),
        (&["--fail-on", "p3"], FINDINGS),
        (&["--fail-on", "none"], DONE),
        (&["--fail-on", "p1", "--format", "json"], FINDINGS),
    ] {
        run(&test, &[&["review", "--wait"], more].concat(), code);
    }
    test.write(".revdeck.toml", "fail_on = \"p1\"\n");
    test.commit("the settings as well");
    run(&test, &["review", "--wait", "--commit", "HEAD~1"], FINDINGS);
    run(&test, &["review", "--wait", "--commit", "HEAD~1", "--fail-on", "none"], DONE);
}

#[test]
fn findings_that_were_decided_about_fail_no_review() {
    let test = reviewed();
    run(&test, &["review", "--wait", "--fail-on", "p1"], FINDINGS);
    for id in finding_ids(&test) {
        run(&test, &["triage", &id, "dismissed", "--reason", "as intended"], DONE);
    }
    run(&test, &["review", "--wait", "--fail-on", "p3"], DONE);
    run(&test, &["review", "--wait", "--force", "--fail-on", "p3"], DONE);
}

/// Occupies the only worker slot with a run that this process pretends to work on: other runs stay pending.
fn occupy(test: &TestEnvironment) -> (RunRecord, revdeck::store::RunLock) {
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), "max_parallel_runs = 1\n").expect("settings");
    let store = test.store();
    let id: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
    let lock = store.lock_run(&id).expect("a lock").expect("free");
    let record: RunRecord = serde_json::from_value(serde_json::json!({
        "run_id": id, "status": "reviewing", "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z",
        "source": "cli", "scope": "all", "reviewer": "builtin", "scope_hash": "other", "worktree": "/elsewhere",
    }))
    .expect("a record");
    store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
    (record, lock)
}

/// Waits until the store has a run with this status and returns its id.
fn await_run(test: &TestEnvironment, status: RunStatus) -> RunId {
    let store = test.store();
    wait_for(&format!("a run that is {status}"), || {
        let view = store.view().expect("a view");
        let found = (0..view.run_count()).map(|index| view.run(index)).find(|run| run.status == status);
        found.map(|run| run.id.parse().expect("an id"))
    })
}

fn waiting(test: &TestEnvironment) -> std::process::Child {
    test.command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["review", "--wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("revdeck starts")
}

#[test]
fn a_run_that_did_not_complete_is_never_clean() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let (_, _lock) = occupy(&test);
    let child = waiting(&test);
    let pending = await_run(&test, RunStatus::Pending);
    run(&test, &["cancel", pending.as_str(), "--reason", "changed my mind"], DONE);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}{}", out(&output), err(&output));
    assert_snapshot!(test.normalise(&out(&output)), @"
    run [run] is cancelled: stopped by the user: changed my mind
    nothing reviewed · 0 of 1 file, 0 of 1 hunk reviewed
    ");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_waiting_and_not_the_review() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let (_, _lock) = occupy(&test);
    let mut child = waiting(&test);
    let pending = await_run(&test, RunStatus::Pending);
    // revdeck installs the handler right after it has recorded the run. An earlier interrupt ends revdeck by the
    // signal itself, which a shell also shows as 130.
    let process = rustix::process::Pid::from_child(&child);
    wait_for_handler(child.id());
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a signal");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(INTERRUPTED));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut said).expect("text");
    assert_snapshot!(said.trim_start().replace(pending.as_str(), "[pending]"), @"interrupted: the review goes on; `revdeck show [pending]` shows it, `revdeck cancel [pending]` ends it");
    assert_eq!(test.store().run(&pending).expect("readable").map(|run| run.status), Some(RunStatus::Pending));
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_the_waiting_although_nobody_reads_the_message() {
    use std::io::Write;

    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let (_, _lock) = occupy(&test);
    let (_unread, mut full) = std::io::pipe().expect("a pipe");
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["review", "--wait"]).stdout(Stdio::null()).stderr(full.try_clone().expect("a pipe"));
    let mut child = command.spawn().expect("revdeck starts");
    await_run(&test, RunStatus::Pending);
    wait_for_handler(child.id());
    let mode = rustix::fs::fcntl_getfl(&full).expect("a mode");
    rustix::fs::fcntl_setfl(&full, mode | rustix::fs::OFlags::NONBLOCK).expect("a mode");
    while matches!(full.write(b" "), Ok(1..)) {}
    rustix::fs::fcntl_setfl(&full, mode).expect("a mode");
    let process = rustix::process::Pid::from_child(&child);
    // Two signals that arrive at once are one.
    let status = wait_for("the end, although nobody reads its message", || {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::INT);
        poll(Duration::from_millis(50), || child.try_wait().expect("a status").is_some())
            .then(|| child.wait().expect("a status"))
    });
    assert_eq!(status.code(), Some(INTERRUPTED));
}

/// Waits until a process has a handler for SIGINT; where the system cannot tell, waits for as long as that may take.
#[cfg(unix)]
fn wait_for_handler(process: u32) {
    poll(Duration::from_secs(20), || catches_interrupts(process));
}

/// Returns true if a process has a handler for SIGINT; false, too, if the system cannot tell.
#[cfg(unix)]
fn catches_interrupts(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/status")) {
        Ok(status) => status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & 0b10 != 0),
        Err(_) => false,
    }
}

#[test]
fn the_clock_of_tests_is_obeyed() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command
        .args(["review", "--format", "json"])
        .env("REVDECK_NOW", "2031-05-06T07:08:09Z")
        .output()
        .expect("revdeck starts");
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    // Each look at the clock is a millisecond later.
    let created_at = value["run"]["created_at"].as_str().and_then(|at| at.get(..19));
    assert_eq!(created_at, Some("2031-05-06T07:08:09"), "{value}");
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_NOW", "tomorrow").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE));
    assert_snapshot!(err(&output), @r#"
    error: REVDECK_NOW is "tomorrow", which is no moment as RFC 3339 writes them
      hint: for tests only; for example 2026-01-02T03:04:05Z
    "#);
}

/// Removes a file's content from the object database; returns a function that restores it.
fn lose(test: &TestEnvironment, path: &str) -> impl FnOnce() + use<> {
    let id = test.git(&["rev-parse", &format!("HEAD:{path}")]).trim().to_owned();
    let object = test.repo().join(".git/objects").join(&id[..2]).join(&id[2..]);
    let aside = test.repo().join(".git").join(id);
    fs::rename(&object, &aside).expect("a loose object");
    move || fs::rename(aside, object).expect("a loose object")
}

#[test]
fn a_review_of_a_part_is_not_clean_and_no_answer_for_the_next_one() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.commit("two findings");
    let restore = lose(&test, "wide.py");
    assert_snapshot!(test.output(&["review", "--wait"], INCOMPLETE), @"
    long.py
      1-202  p1  LONG_METHOD  Function `long` is 202 code lines long
             202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.
             f_[id]

    incomplete: 1 file could not be read: wide.py
    1 finding (1 p1) · 1 of 2 files, 1 hunk reviewed · 1 left out: unreadable
    ");

    restore();
    let value = test.json(&["review", "--wait", "--format", "json"], DONE);
    assert_eq!(list(&value, "findings").len(), 2);
    assert_eq!(value["run"]["error_class"], Value::Null);
    let value = test.json(&["review", "--wait", "--format", "json"], DONE);
    assert_eq!(value["decision"]["action"], "reuse", "a whole one is an answer: {value}");
}

#[test]
fn what_stays_unreadable_is_tried_twice_and_then_only_by_force() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.commit("two findings");
    let restore = lose(&test, "wide.py");
    let ask = |more: &[&str], exit| test.json(&[&["review", "--wait", "--format", "json"], more].concat(), exit);
    assert_eq!(ask(&[], INCOMPLETE)["decision"]["action"], "launch");
    let second = ask(&["--fail-on", "p1"], FINDINGS);
    assert_eq!(second["decision"]["action"], "resume", "the cause may be gone");
    for _ in 0..3 {
        let again = ask(&[], INCOMPLETE);
        assert_eq!(again["run"]["run_id"], second["run"]["run_id"]);
        let reason = again["decision"]["reason"].as_str().expect("a reason");
        assert!(reason.ends_with("all but 1 file that stays unreadable; `--force` tries again"), "{reason}");
    }
    assert_snapshot!(test.output(&["review", "--wait", "--format", "markdown"], INCOMPLETE), @r#"
    ## Review of `commit:[hash]`

    **incomplete: 1 file could not be read: wide.py**

    1 finding \(1 p1\) · 1 of 2 files, 1 hunk reviewed · 1 left out: unreadable

    ### `long.py`

    - **p1 LONG\_METHOD** line 1-202: Function \`long\` is 202 code lines long

      202 code lines without blank lines and comments, 60 are the limit: it is hard to see what belongs together and to test the parts alone.

      ```py
      def long(long_total):
      ```

      `f_[id]`
    "#);
    let allowed = ask(&["--allow-unreviewed", "unreadable"], DONE);
    assert_eq!(allowed["run"]["error_class"], "unreadable", "no failure of the reviewer: {allowed}");
    assert_eq!(list(&test.json(&["runs", "--format", "json"], DONE), "runs").len(), 2);

    restore();
    let forced = ask(&["--force"], DONE);
    assert_eq!(list(&forced, "findings").len(), 2);
    assert_eq!(ask(&[], DONE)["run"]["run_id"], forced["run"]["run_id"], "a whole one is an answer");
}

/// Content that was carried over from another review does not count as an attempt of this review.
#[test]
fn what_another_review_could_not_read_either_is_tried_again() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.commit("two findings");
    let restore = lose(&test, "wide.py");
    let ask = || test.json(&["review", "--all", "--wait", "--format", "json"], INCOMPLETE);
    let first = ask();
    restore();
    test.write("fine.py", "x = 0\n");
    test.commit("more");
    let _restore = lose(&test, "wide.py");
    let second = ask();
    assert_eq!(second["run"]["carried_over_from"], first["run"]["run_id"], "{second}");
    assert_eq!(ask()["decision"]["action"], "resume");
}

#[test]
fn another_file_unreadable_is_another_attempt() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.write("fine.py", "x = 0\n");
    test.commit("two findings");
    let ask = |exit| test.json(&["review", "--wait", "--format", "json"], exit);
    let (restore, _lost) = (lose(&test, "wide.py"), lose(&test, "long.py"));
    ask(INCOMPLETE);
    restore();
    assert_eq!(ask(INCOMPLETE)["decision"]["action"], "resume");
    assert_eq!(ask(INCOMPLETE)["decision"]["action"], "resume", "another file was unreadable before");
    assert_eq!(ask(INCOMPLETE)["decision"]["action"], "reuse");
}

#[test]
fn where_nothing_could_be_read_nothing_is_clean() {
    let test = TestEnvironment::new();
    test.write("wide.py", wide_function("wide"));
    test.commit("one finding");
    let _restore = lose(&test, "wide.py");
    assert_snapshot!(test.output(&["review", "--wait"], INCOMPLETE), @"
    run [run] is skipped: nothing to review: the one changed file is left out
    incomplete: 1 file not reviewed: wide.py (unreadable)
    nothing reviewed · 0 of 1 file, 0 hunks reviewed · 1 left out: unreadable
      wide.py: unreadable
    ");
}

#[test]
fn a_scope_is_a_word_or_a_flag_everywhere() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("one");
    test.write("a.py", "x = 2\n");
    test.commit("two");
    test.write("a.py", "x = 3\n");
    for (word, flags) in [
        ("worktree", &["--worktree"][..]),
        ("staged", &["--staged"]),
        ("commit:HEAD~1", &["--commit", "HEAD~1"]),
        ("range:HEAD~1..HEAD", &["--range", "HEAD~1..HEAD"]),
        ("range:HEAD~1...HEAD", &["--range", "HEAD~1...HEAD"]),
        ("branch:main", &["--branch", "main"]),
        ("all", &["--all"]),
    ] {
        let scope_of = |arguments: &[&str]| {
            let arguments = [&["review", "--format", "json"], arguments].concat();
            test.json(&arguments, DONE)["run"]["scope"].clone()
        };
        assert_eq!(scope_of(&[word]), scope_of(flags), "review {word}");
        let context_of = |arguments: &[&str]| {
            let arguments = [&["context", "--budget", "500", "--format", "json"], arguments].concat();
            test.json(&arguments, DONE)["sections"].clone()
        };
        assert_eq!(context_of(&[word]), context_of(flags), "context {word}");
    }
    for command in ["review", "context"] {
        let error = test.fails(&[command, "worktree", "--staged"], USAGE).replace(command, "[command]");
        allow_duplicates!(assert_snapshot!(error, @"
        error: the argument '[SCOPE]' cannot be used with '--staged'

        Usage: revdeck [command] <SCOPE>

        For more information, try '--help'.
        "));
    }
}

#[test]
fn cancelling_needs_no_reason() {
    let place = Place::new();
    place.hold_reviews("");
    place.commit_modules("one", 1);
    let run = place.review(&[]);
    place.revdeck(&["cancel", run.as_str()]);
    let shown = place.test.json(&["show", run.as_str(), "--format", "json"], DONE);
    assert_eq!(shown["run"]["status"], "cancelled");
    assert_eq!(shown["run"]["cancel_reason"], "user_stop");
}

#[test]
fn without_git_a_split_index_is_an_error_about_git() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    test.git(&["update-index", "--split-index"]);
    test.write("long.py", long_function("longer"));
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["review", "--worktree"]).env("PATH", test.home()).output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(INCOMPLETE));
    assert_snapshot!(test.normalise(&err(&output)), @"
    error: git cannot be run to join the split index of [repo]/.git/: No such file or directory (os error 2)
      hint: install git, or put it into PATH
    ");
}
