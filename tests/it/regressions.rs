//! Integration tests: each test prevents the return of one defect that users found.

use std::fs;
use std::process::Stdio;

use insta::{allow_duplicates, assert_snapshot};
use revdeck::domain::{Actor, Disposition, FindingId, FindingStatus, Time, TriageAction};
use serde_json::Value;

use crate::env::{DONE, FINDINGS, INCOMPLETE, TestEnvironment, USAGE, err, lines_with, long_function, out};

/// Runs revdeck, checks the exit code and returns the normalised standard output and standard error.
#[track_caller]
fn run(test: &TestEnvironment, arguments: &[&str], code: i32) -> (String, String) {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    (test.normalise(&out(&output)), test.normalise(&err(&output)))
}

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    test.json(&[arguments, &["--format", "json"]].concat(), code)
}

/// Creates a repository with one p1 finding in `src/long.py` that a review has recorded.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/long.py", long_function("long"));
    test.commit("one finding");
    run(&test, &["review", "--wait"], DONE);
    test
}

#[test]
fn concurrent_undos_take_back_one_decision_each() {
    const MANY: usize = 10;
    let test = TestEnvironment::new();
    let store = test.store();
    let ids: Vec<FindingId> = (0..MANY).map(|n| format!("f_{n:016x}").parse().expect("an id")).collect();
    for (n, id) in ids.iter().enumerate() {
        let line = Disposition {
            finding_id: id.clone(),
            status: FindingStatus::Addressed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: format!("t_{n}"),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        store.append_dispositions(&[line]).expect("written");
    }
    let undos: Vec<_> = (0..MANY)
        .map(|_| {
            let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
            command.arg("undo").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("revdeck starts")
        })
        .collect();
    let mut said: Vec<String> = undos
        .into_iter()
        .map(|undo| {
            let output = undo.wait_with_output().expect("it ends");
            assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
            out(&output).split_whitespace().next().unwrap_or_default().to_owned()
        })
        .collect();
    said.sort();
    let expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "each says another finding");
    for id in &ids {
        assert_eq!(store.status(id).expect("readable"), FindingStatus::Open, "{id}");
    }
    assert_snapshot!(run(&test, &["undo"], DONE).0, @"nothing to take back");
}

#[cfg(unix)]
#[test]
fn smells_opens_ordinary_files_only() {
    let test = TestEnvironment::new();
    test.write("good.py", long_function("good"));
    test.write("large.py", "x = 1\n".repeat(300_000));
    test.write("notes.txt", "nothing\n");
    std::os::unix::fs::symlink("good.py", test.repo().join("link.py")).expect("a link");
    let pipe = |name: &str| test.command("mkfifo").arg(name).status().expect("mkfifo starts");
    assert!(pipe("pipe.py").success());
    test.write("folder/ok.py", "x = 1\n");
    test.write("folder/large.py", "x = 1\n".repeat(300_000));
    assert!(pipe("folder/pipe.py").success());
    let arguments = ["smells", "link.py", "pipe.py", "/dev/zero", "large.py", "notes.txt", "folder"];
    let (said, told) = run(&test, &arguments, INCOMPLETE);
    assert_snapshot!(said, @"
    link.py:1-202  p1  LONG_METHOD  Function `good` is 202 code lines long
    1 finding · 2 files, 1 function
    ");
    let mut told: Vec<&str> = told.lines().collect();
    told.sort_unstable();
    assert_snapshot!(told.join("\n"), @"
    warning: left out /dev/zero: it is not an ordinary file
    warning: left out folder/large.py: it is larger than max_file_bytes, 1000000
    warning: left out folder/pipe.py: it is not an ordinary file
    warning: left out large.py: it is larger than max_file_bytes, 1000000
    warning: left out notes.txt: it is of no language that revdeck reads
    warning: left out pipe.py: it is not an ordinary file
    ");
}

#[test]
fn a_mistake_in_the_repositorys_settings_is_told_and_passed_over() {
    let test = reviewed();
    let warning = |content: &str| {
        test.write(".revdeck.toml", content);
        run(&test, &["findings"], DONE);
        let commands = [&["review", "--wait", "--commit", "HEAD"][..], &["runs"], &["config", "show"]];
        let [first, second, third] = commands.map(|arguments| run(&test, arguments, DONE).1);
        assert_eq!((&second, &third), (&first, &first));
        // The other settings of the file still apply.
        assert_eq!(json(&test, &["config", "show"], DONE)["settings"]["max_file_bytes"]["value"], 7_000_000);
        first
    };
    assert_snapshot!(warning("fail_on = \"p9\"\nmax_file_bytes = 7000000\n"), @r#"warning: ignored: [repo]/.revdeck.toml:1:11: fail_on: "p9" is not allowed; allowed: "p0", "p1", "p2", "p3" or "none""#);
    assert_snapshot!(warning("default_scope = 3\nmax_file_bytes = 7000000\n"), @r#"warning: ignored: [repo]/.revdeck.toml:1:17: default_scope: has a value of the wrong sort; allowed: "auto", "worktree", "staged", "commit:REV", "range:A..B", "range:A...B", "branch", "branch:BASE" or "all""#);
    assert_snapshot!(warning("max_file_bytes = 7000000\n[smells.long_method]\nmax_lines = 3\n"), @"warning: ignored: [repo]/.revdeck.toml:3:1: smells.long_method.max_lines: there is no such key; allowed: enabled, max_code_lines");
    assert_snapshot!(warning("max_file_bytes = 7000000\n[smells.long_method]\nmax_code_lines = 5000000000\n"), @"warning: ignored: [repo]/.revdeck.toml:3:18: smells.long_method.max_code_lines: 5000000000 is out of range; allowed: a whole number up to 4294967295; the default is 60");
    assert_snapshot!(warning("max_file_bytes = 7000000\n[smells.magic_numbers]\nallowed = [\"a\"]\n"), @"warning: ignored: [repo]/.revdeck.toml:3:12: smells.magic_numbers.allowed: has a value of the sort string in its list; allowed: a list of values of the sort number");
}

#[test]
fn a_repositorys_settings_that_are_no_toml_keep_nobody_from_working() {
    let test = reviewed();
    test.write(".revdeck.toml", "fail_on = [\n");
    let (_, told) = run(&test, &["review", "--wait", "--commit", "HEAD", "--fail-on", "p1"], FINDINGS);
    assert_snapshot!(told, @"warning: ignored: [repo]/.revdeck.toml:1:12: this is not TOML: unclosed array, expected `]`; close what was opened there: a quote or a bracket is missing");
}

#[test]
fn reading_needs_no_settings() {
    let test = reviewed();
    test.settings("max_parallel_runs = 0\nascii = true\n");
    assert_snapshot!(test.fails(&["review"], USAGE), @"
    error: [home]/config.toml:1:21: max_parallel_runs: 0 is out of range
      hint: allowed: a whole number from 1 to 64
    ");
    for arguments in [
        &["runs"][..],
        &["findings"],
        &["show", "latest"],
        &["details", "latest"],
        &["config", "show"],
        &["store", "verify"],
        &["store", "path"],
        &["undo"],
        &["cancel", "latest", "--reason", "x"],
    ] {
        let (_, told) = run(&test, arguments, DONE);
        allow_duplicates!(
            assert_snapshot!(told, @"warning: ignored: [home]/config.toml:1:21: max_parallel_runs: 0 is out of range; allowed: a whole number from 1 to 64")
        );
    }
    assert_eq!(json(&test, &["config", "show"], DONE)["settings"]["ascii"]["value"], true, "the rest holds");
}

#[test]
fn a_repository_cannot_switch_off_the_users_gate() {
    let test = reviewed();
    let mut said = String::new();
    for (own, theirs, code, warned) in [
        ("p1", "none", FINDINGS, true),
        ("p1", "p0", FINDINGS, true),
        ("p0", "p1", FINDINGS, false),
        ("none", "p1", FINDINGS, false),
        ("p0", "p0", DONE, false),
    ] {
        test.settings(&format!("fail_on = \"{own}\"\n"));
        test.write(".revdeck.toml", format!("fail_on = \"{theirs}\"\n"));
        let (_, told) = run(&test, &["review", "--wait", "--commit", "HEAD"], code);
        said += &format!("{own} and {theirs}:\n{told}");
        assert_eq!(told.is_empty(), !warned, "{own} {theirs}: {told}");
    }
    assert_snapshot!(said, @"
    p1 and none:
    warning: [repo]/.revdeck.toml:1:1: fail_on: not obeyed; a repository may only make it stricter than your own value
    p1 and p0:
    warning: [repo]/.revdeck.toml:1:1: fail_on: not obeyed; a repository may only make it stricter than your own value
    p0 and p1:
    none and p1:
    p0 and p0:
    ");
}

#[test]
fn the_hint_fits_what_is_wrong_with_the_toml() {
    let test = TestEnvironment::new();
    let error = |content: &str| {
        test.settings(content);
        test.fails(&["review"], USAGE)
    };
    assert_snapshot!(error("ascii = true\nascii = true\n"), @"
    error: [home]/config.toml:2:1: this is not TOML: duplicate key
      hint: each key and each table may stand only once: remove one of them
    ");
    assert_snapshot!(error("theme = dark\n"), @r#"
    error: [home]/config.toml:1:9: this is not TOML: string values must be quoted, expected literal string
      hint: a value stands behind the equals sign, texts in quotes: key = "text"
    "#);
    assert_snapshot!(error("ignored_paths = [\"a\"\n"), @"
    error: [home]/config.toml:1:21: this is not TOML: unclosed array, expected `]`
      hint: close what was opened there: a quote or a bracket is missing
    ");
    assert_snapshot!(error("theme\n"), @r#"
    error: [home]/config.toml:1:6: this is not TOML: key with no value, expected `=`
      hint: a value stands behind the equals sign, texts in quotes: key = "text"
    "#);
}

#[test]
fn a_reuse_leaves_the_runs_own_record_as_it_was() {
    let test = reviewed();
    let first = json(&test, &["show", "latest"], DONE)["run"].clone();
    let id = first["run_id"].as_str().expect("an id");
    let output = test.revdeck(&["review", "--wait"]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let said = out(&output).replace(id, "[reused]");
    assert_snapshot!(lines_with(&said, |line| line.starts_with("[reused] ")), @"[reused] reused, nothing was reviewed again · [reused] has reviewed exactly this; no line of it has changed since");
    test.git(&["commit", "-q", "--amend", "-m", "another message"]);
    run(&test, &["review", "--wait"], DONE);
    let runs = json(&test, &["runs"], DONE);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "no run is added");
    let after = runs["runs"][0].clone();
    for key in ["decision", "updated_at", "head_commit", "created_at", "phase_timings", "summary", "status"] {
        assert_eq!(first[key], after[key], "{key}");
    }
    assert_eq!((&first["reuse_count"], &after["reuse_count"]), (&Value::from(0), &Value::from(2)));
    let head = test.git(&["rev-parse", "HEAD"]);
    assert_eq!(after["last_reuse_head"], head.trim());
    assert_snapshot!(test.normalise(after["last_reuse_reason"].as_str().expect("a reason")), @"[run] has reviewed exactly this; no line of it has changed since");
    assert!(after["last_reused_at"].is_string());
    let (said, _) = run(&test, &["show", id], DONE);
    assert_snapshot!(lines_with(&said, |line| line.starts_with("  reused ")), @"  reused     2 times, last [duration] ago: [run] has reviewed exactly this; no line of it has changed since");
}

#[test]
fn the_doctor_tells_settings_that_mean_nothing() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("a file");
    let settings_of = |said: &str| lines_with(said, |line| !line.starts_with("ok ") && !line.contains("  terminal "));
    let doctor = |settings: &str, code: i32| {
        test.settings(settings);
        settings_of(&run(&test, &["doctor"], code).0)
    };
    assert_snapshot!(doctor("theme = \"nope\"\n", USAGE), @r#"problem theme        there is no theme "nope"; there are: auto, dark, light, high-contrast, neutral, ansi, mono"#);
    assert_snapshot!(doctor("ignored_paths = [\"[\", \"docs/\"]\n", DONE), @r#"notice  settings     1 warning: ignored_paths: "[" is no sound pattern: error parsing glob '[': unclosed character class; missing ']'"#);
    let (_, told) = run(&test, &["review", "--wait"], DONE);
    assert_snapshot!(told, @r#"warning: ignored_paths: "[" is no sound pattern: error parsing glob '[': unclosed character class; missing ']'"#);
    assert_snapshot!(doctor("default_reviewer = \"ghost\"\n", USAGE), @r#"problem reviewers    there is no reviewer named "ghost", the default_reviewer; there are: builtin"#);
    test.settings("");
    let output = test.command(env!("CARGO_BIN_EXE_revdeck")).arg("doctor").env("REVDECK_BOGUS", "1").output();
    let said = test.normalise(&out(&output.expect("revdeck starts")));
    assert_snapshot!(settings_of(&said), @"notice  environment  set but not known: REVDECK_BOGUS");
    let output = test.command(env!("CARGO_BIN_EXE_revdeck")).arg("doctor").env("REVDECK_THEM", "dark").output();
    let said = test.normalise(&out(&output.expect("revdeck starts")));
    assert_snapshot!(settings_of(&said), @r#"notice  environment  set but not known: REVDECK_THEM; did you mean "REVDECK_THEME"?"#);
}

#[test]
fn a_store_of_a_newer_schema_is_told() {
    let test = reviewed();
    let path = test.store().root().join("repo.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
    info["version"] = 99.into();
    fs::write(&path, info.to_string()).expect("writable");
    let mut told = String::new();
    for arguments in [&["doctor"][..], &["store", "verify"]] {
        let (said, _) = run(&test, arguments, DONE);
        let schema = lines_with(&said, |line| line.contains("schema 99"));
        told += &format!("$ revdeck {}\n{schema}\n", arguments.join(" "));
    }
    assert_snapshot!(told, @"
    $ revdeck doctor
    notice  store        [home]/state/review/repo-[hash]/auto-review: 1 run, 1 finding; a newer revdeck made this store (schema 99, this one knows 1): it can be read, not written
    $ revdeck store verify
    a newer revdeck made this store (schema 99, this one knows 1): it can be read, not written
    ");
    assert_eq!(json(&test, &["store", "verify"], DONE)["newer_schema"], 99);
}

#[test]
fn a_path_may_be_as_the_current_folder_sees_it() {
    let test = reviewed();
    test.write("src/deep/other.py", "x = 1\n");
    for (folder, path, found) in [
        (".", "src/long.py", true),
        ("src", "long.py", true),
        ("src", "src/long.py", true),
        ("src/deep", "../long.py", true),
        ("src/deep", "..", true),
        ("src/deep", ".", false),
        ("src/deep", "../../src", true),
    ] {
        let listed = json(&test, &["-C", folder, "findings", "--path", path], DONE);
        let paths = listed["findings"].as_array().expect("findings").iter();
        let paths: Vec<&Value> = paths.map(|finding| &finding["repo_relative_path"]).collect();
        assert_eq!(paths, if found { vec!["src/long.py"] } else { vec![] }, "{path} in {folder}");
    }
    assert_snapshot!(test.fails(&["-C", "src", "findings", "--path", "../../a.py"], USAGE), @r#"
    error: "../../a.py" is not in this repository
      hint: paths are relative to the current folder, or to the repository
    "#);
}

#[test]
fn details_of_a_finding_are_those_of_its_run() {
    let test = reviewed();
    let finding = json(&test, &["findings"], DONE)["findings"][0].clone();
    let id = finding["finding_id"].as_str().expect("an id");
    let details = json(&test, &["details", id], DONE);
    assert_eq!(details["run"]["run_id"], finding["last_run_id"]);
    assert_eq!(details["findings"][0]["finding_id"], id);
}

#[test]
fn a_skipped_run_says_its_reason_once() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("a file");
    run(&test, &["review", "--staged", "--wait"], DONE);
    let record = json(&test, &["show", "latest"], DONE)["run"].clone();
    assert_eq!(record["status"], "skipped");
    assert!(record["cost"].is_f64(), "a cost is a number with a point: {}", record["cost"]);
    let reason = record["decision"].as_str().expect("a reason");
    let (said, _) = run(&test, &["show", "latest"], DONE);
    assert_eq!(said.matches(reason).count(), 1, "{said}");
}

/// Returns the problems that `store verify` or `store repair` lists, without the sizes of the store.
fn problems(said: &str) -> String {
    lines_with(said, |line| line.starts_with("[home]"))
}

/// Returns the folder of the store, and the ids of the runs, oldest first.
fn store_with_runs(test: &TestEnvironment) -> (std::path::PathBuf, Vec<String>) {
    let runs = json(test, &["runs"], DONE);
    let ids = runs["runs"].as_array().expect("runs").iter().rev();
    (test.store().root().to_owned(), ids.map(|run| run["run_id"].as_str().expect("an id").to_owned()).collect())
}

#[test]
fn runs_whose_records_are_lost_are_told_and_made_anew() {
    let test = reviewed();
    for n in 0..2 {
        test.write(&format!("src/more{n}.py"), long_function("more"));
        test.commit("more");
        run(&test, &["review", "--wait", "--commit", "HEAD"], DONE);
    }
    let (root, ids) = store_with_runs(&test);
    let before = json(&test, &["runs"], DONE);
    let findings = json(&test, &["findings", "--status", "all"], DONE);
    assert_eq!(ids.len(), 3);
    // One run keeps its output, one only its journal, one only its lock.
    fs::remove_file(root.join("runs.ndjson")).expect("there");
    fs::remove_file(root.join("outputs").join(format!("{}.json", ids[1]))).expect("there");
    fs::remove_file(root.join("outputs").join(format!("{}.json", ids[2]))).expect("there");
    fs::remove_file(root.join("events").join(format!("{}.jsonl", ids[2]))).expect("there");
    let output = test.revdeck(&["store", "verify"]);
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", err(&output));
    let names = ["[first]", "[second]", "[third]"];
    let said = ids.iter().zip(names).fold(out(&output), |said, (id, name)| said.replace(id, name));
    assert_snapshot!(problems(&test.normalise(&said)), @"
    [home]/state/review/repo-[hash]/auto-review/runs.ndjson: was deleted; it had 15 lines; repair: runs are restored from outputs and journals; the rest is lost
    [home]/state/review/repo-[hash]/auto-review/events/[third].jsonl: was deleted; it had 11 lines; repair: the file goes on with what there is; nothing else tells the lost lines
    [home]/state/review/repo-[hash]/auto-review/outputs/[first].json: is of a run that runs.ndjson does not have; repair: the record that it holds is added to runs.ndjson
    [home]/state/review/repo-[hash]/auto-review/events/[second].jsonl: is of a run that runs.ndjson does not have; repair: a record is made from it and added to runs.ndjson; the run counts as lost
    [home]/state/review/repo-[hash]/auto-review/locks/[third].lock: is of a run that runs.ndjson does not have; repair: a record without any content is added to runs.ndjson; the run counts as lost
    ");
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    let after = json(&test, &["runs"], DONE);
    let column = |runs: &Value, key: &str| -> Vec<Value> {
        runs["runs"].as_array().expect("runs").iter().map(|run| run[key].clone()).collect()
    };
    assert_eq!(column(&after, "run_id"), column(&before, "run_id"), "in their order");
    assert_eq!(column(&after, "status"), ["lost", "lost", "completed"]);
    assert_eq!(column(&after, "finding_counts")[1..], column(&before, "finding_counts")[1..]);
    let count = |findings: &Value| findings["findings"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&json(&test, &["findings", "--status", "all"], DONE)), count(&findings) - 1, "all but the one");
}

#[test]
fn a_record_that_is_lost_comes_back_in_its_place() {
    let test = reviewed();
    test.write("src/more.py", long_function("more"));
    test.commit("more");
    run(&test, &["review", "--wait", "--commit", "HEAD"], DONE);
    let (root, ids) = store_with_runs(&test);
    let runs = fs::read_to_string(root.join("runs.ndjson")).expect("readable");
    let kept: String = runs
        .lines()
        .filter(|line| !line.starts_with(&format!("{{\"run_id\":\"{}\"", ids[0])))
        .fold(String::new(), |kept, line| kept + line + "\n");
    fs::write(root.join("runs.ndjson"), kept).expect("writable");
    run(&test, &["store", "repair"], DONE);
    assert_eq!(store_with_runs(&test).1, ids);
}

#[test]
fn an_output_that_is_lost_is_made_anew_from_a_complete_journal() {
    let test = reviewed();
    let (root, ids) = store_with_runs(&test);
    let before = json(&test, &["show", &ids[0]], DONE);
    let (output, journal) =
        (root.join(format!("outputs/{}.json", ids[0])), root.join(format!("events/{}.jsonl", ids[0])));
    fs::remove_file(&output).expect("there");
    let (said, _) = run(&test, &["store", "verify"], INCOMPLETE);
    assert_snapshot!(problems(&said), @"[home]/state/review/repo-[hash]/auto-review/outputs/[run].json: is missing although its run completed; repair: made anew from the run's journal");
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    assert_eq!(json(&test, &["show", &ids[0]], DONE), before);
    // Without its last line the journal cannot prove that the run completed.
    fs::remove_file(&output).expect("there");
    let text = fs::read_to_string(&journal).expect("readable");
    let cut: Vec<&str> = text.lines().filter(|line| !line.contains("\"finished\"")).collect();
    fs::write(&journal, cut.join("\n") + "\n").expect("writable");
    let (said, _) = run(&test, &["store", "repair"], INCOMPLETE);
    assert_snapshot!(problems(&said), @"
    [home]/state/review/repo-[hash]/auto-review/events/[run].jsonl: was cut: 10 of 11 lines are left; repaired: the file goes on with what there is; nothing else tells the lost lines
    [home]/state/review/repo-[hash]/auto-review/outputs/[run].json: is missing although its run completed; repair: none: the run's journal is not complete either; what it holds is shown
    ");
    assert!(!output.exists());
}
