//! Integration tests: each test prevents the return of one defect that users found.

use std::fs;
use std::process::Stdio;

use revdeck::domain::{Actor, Disposition, FindingId, FindingStatus, Time, TriageAction};
use rstest::rstest;
use serde_json::Value;

use crate::env::{TestEnvironment, err, out};

const DONE: i32 = 0;
const FINDINGS: i32 = 1;
const USAGE: i32 = 2;
const INCOMPLETE: i32 = 3;

/// Runs revdeck, checks the exit code and returns the standard output and standard error.
#[track_caller]
fn run(test: &TestEnvironment, arguments: &[&str], code: i32) -> (String, String) {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    (out(&output), err(&output))
}

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    let (text, _) = run(test, &[arguments, &["--format", "json"]].concat(), code);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// Returns a function of 200 lines: a p1 finding.
fn long_function(name: &str) -> String {
    let body: String = (0..200).map(|line| format!("    {name}_total = add({name}_total, {name}_{line})\n")).collect();
    format!("def {name}({name}_total):\n{body}    return {name}_total\n")
}

/// Creates a repository with one p1 finding in `src/long.py` that a review has recorded.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/long.py", long_function("long"));
    test.commit("one finding");
    run(&test, &["review", "--wait"], DONE);
    test
}

fn user_settings(test: &TestEnvironment, content: &str) {
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), content).expect("settings");
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
    assert!(run(&test, &["undo"], DONE).0.contains("nothing to take back"));
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
    let (said, told) = run(&test, &arguments, DONE);
    assert!(said.contains("link.py") && said.contains("2 files"), "{said}");
    for (name, reason) in [
        ("pipe.py", "not an ordinary file"),
        ("/dev/zero", "not an ordinary file"),
        ("large.py", "larger than max_file_bytes"),
        ("notes.txt", "no language"),
        ("folder/pipe.py", "not an ordinary file"),
        ("folder/large.py", "larger than max_file_bytes"),
    ] {
        let line = format!("warning: left out {name}: ");
        assert!(told.lines().any(|told| told.starts_with(&line) && told.contains(reason)), "{name}: {told}");
    }
}

#[rstest]
#[case::value("fail_on = \"p9\"\nmax_file_bytes = 7000000\n", "fail_on", "\"none\"")]
#[case::sort("default_scope = 3\nmax_file_bytes = 7000000\n", "default_scope", "\"worktree\"")]
#[case::threshold("max_file_bytes = 7000000\n[smells.long_method]\nmax_lines = 3\n", "max_lines", "max_code_lines")]
#[case::threshold_size(
    "max_file_bytes = 7000000\n[smells.long_method]\nmax_code_lines = 5000000000\n",
    "max_code_lines",
    "whole number"
)]
#[case::list("max_file_bytes = 7000000\n[smells.magic_numbers]\nallowed = [\"a\"]\n", "allowed", "number")]
fn a_mistake_in_the_repositorys_settings_is_told_and_passed_over(
    #[case] content: &str,
    #[case] key: &str,
    #[case] allowed: &str,
) {
    let test = reviewed();
    test.write(".revdeck.toml", content);
    for arguments in [&["review", "--wait", "--commit", "HEAD"][..], &["runs"], &["findings"], &["config", "show"]] {
        let (_, told) = run(&test, arguments, DONE);
        if arguments[0] != "findings" {
            let line = told.lines().find(|line| line.contains(".revdeck.toml:") && line.contains(key));
            assert!(line.is_some_and(|line| line.contains(allowed)), "{arguments:?}: {told}");
        }
    }
    // The other settings of the file still apply.
    assert_eq!(json(&test, &["config", "show"], DONE)["settings"]["max_file_bytes"]["value"], 7_000_000);
}

#[test]
fn a_repositorys_settings_that_are_no_toml_keep_nobody_from_working() {
    let test = reviewed();
    test.write(".revdeck.toml", "fail_on = [\n");
    let (_, told) = run(&test, &["review", "--wait", "--commit", "HEAD", "--fail-on", "p1"], FINDINGS);
    assert!(told.contains("warning: ignored: ") && told.contains("this is not TOML"), "{told}");
}

#[test]
fn reading_needs_no_settings() {
    let test = reviewed();
    user_settings(&test, "max_parallel_runs = 0\nascii = true\n");
    let place = "config.toml:1:21: max_parallel_runs: 0 is out of range";
    let (_, told) = run(&test, &["review"], USAGE);
    assert!(told.contains("error: ") && told.contains(place), "{told}");
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
        assert!(told.contains("warning: ignored: ") && told.contains(place), "{arguments:?}: {told}");
    }
    assert_eq!(json(&test, &["config", "show"], DONE)["settings"]["ascii"]["value"], true, "the rest holds");
}

#[test]
fn a_repository_cannot_switch_off_the_users_gate() {
    let test = reviewed();
    for (own, theirs, code, warned) in [
        ("p1", "none", FINDINGS, true),
        ("p1", "p0", FINDINGS, true),
        ("p0", "p1", FINDINGS, false),
        ("none", "p1", FINDINGS, false),
        ("p0", "p0", DONE, false),
    ] {
        user_settings(&test, &format!("fail_on = \"{own}\"\n"));
        test.write(".revdeck.toml", format!("fail_on = \"{theirs}\"\n"));
        let (_, told) = run(&test, &["review", "--wait", "--commit", "HEAD"], code);
        assert_eq!(told.contains("fail_on: not obeyed"), warned, "{own} {theirs}: {told}");
    }
}

#[rstest]
#[case::twice("ascii = true\nascii = true\n", "only once")]
#[case::bare("theme = dark\n", "in quotes")]
#[case::open("ignored_paths = [\"a\"\n", "bracket is missing")]
#[case::no_value("theme\n", "equals sign")]
fn the_hint_fits_what_is_wrong_with_the_toml(#[case] content: &str, #[case] hint: &str) {
    let test = TestEnvironment::new();
    user_settings(&test, content);
    let (_, told) = run(&test, &["review"], USAGE);
    assert!(told.contains("this is not TOML") && told.contains(hint), "{told}");
}

#[test]
fn a_reuse_leaves_the_runs_own_record_as_it_was() {
    let test = reviewed();
    let first = json(&test, &["show", "latest"], DONE)["run"].clone();
    let (said, _) = run(&test, &["review", "--wait"], DONE);
    let id = first["run_id"].as_str().expect("an id");
    let told =
        said.lines().filter(|line| line.starts_with(&format!("{id} reused, nothing was reviewed again"))).count();
    assert_eq!(told, 1, "{said}");
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
    assert!(after["last_reuse_reason"].as_str().is_some_and(|reason| reason.contains("has reviewed exactly this")));
    assert!(after["last_reused_at"].is_string());
    assert!(run(&test, &["show", id], DONE).0.contains("2 times, last "));
}

#[test]
fn the_doctor_tells_settings_that_mean_nothing() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("a file");
    let doctor = |settings: &str, code: i32| {
        user_settings(&test, settings);
        run(&test, &["doctor"], code).0
    };
    assert!(doctor("theme = \"nope\"\n", DONE).contains("there is no theme \"nope\""));
    assert!(doctor("ignored_paths = [\"[\", \"docs/\"]\n", DONE).contains("ignored_paths: \"[\" is no sound pattern"));
    let (_, told) = run(&test, &["review", "--wait"], DONE);
    assert!(told.contains("warning: ignored_paths: \"[\" is no sound pattern"), "{told}");
    assert!(doctor("default_reviewer = \"ghost\"\n", USAGE).contains("there is no reviewer named \"ghost\""));
    user_settings(&test, "");
    let output = test.command(env!("CARGO_BIN_EXE_revdeck")).arg("doctor").env("REVDECK_BOGUS", "1").output();
    assert!(out(&output.expect("revdeck starts")).contains("set but not known: REVDECK_BOGUS"));
}

#[test]
fn a_store_of_a_newer_schema_is_told() {
    let test = reviewed();
    let path = test.store().root().join("repo.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
    info["version"] = 99.into();
    fs::write(&path, info.to_string()).expect("writable");
    for arguments in [&["doctor"][..], &["store", "verify"]] {
        let (said, _) = run(&test, arguments, DONE);
        assert!(said.contains("schema 99") && said.contains("not written"), "{arguments:?}: {said}");
    }
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
        let (said, _) = run(&test, &["-C", folder, "findings", "--path", path], DONE);
        assert_eq!(said.contains("src/long.py"), found, "{path} in {folder}: {said}");
    }
    let (_, told) = run(&test, &["-C", "src", "findings", "--path", "../../a.py"], USAGE);
    assert!(told.contains("is not in this repository") && told.contains("paths are relative to"), "{told}");
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
    let (said, _) = run(&test, &["store", "verify"], INCOMPLETE);
    for (id, folder) in ids.iter().zip(["outputs", "events", "locks"]) {
        let told = said.lines().any(|line| {
            line.contains(&format!("{folder}/{id}")) && line.contains("is of a run that runs.ndjson does not have")
        });
        assert!(told, "{id}: {said}");
    }
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
    assert!(said.contains("is missing although its run completed; repair: made anew"), "{said}");
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    assert_eq!(json(&test, &["show", &ids[0]], DONE), before);
    // Without its last line the journal cannot prove that the run completed.
    fs::remove_file(&output).expect("there");
    let text = fs::read_to_string(&journal).expect("readable");
    let cut: Vec<&str> = text.lines().filter(|line| !line.contains("\"finished\"")).collect();
    fs::write(&journal, cut.join("\n") + "\n").expect("writable");
    let (said, _) = run(&test, &["store", "repair"], INCOMPLETE);
    assert!(said.contains("the run's journal is not complete either"), "{said}");
    assert!(!output.exists());
}
