//! Integration tests: the real binary, its commands, exit codes, JSON shapes and settings.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use revdeck::domain::{RunId, RunRecord, RunStatus, SCHEMA_VERSION};
use revdeck::git::Repo;
use revdeck::store::{RepoInfo, Store};
use rstest::rstest;
use serde_json::Value;

use crate::env::TestEnvironment;

const DONE: i32 = 0;
const FINDINGS: i32 = 1;
const USAGE: i32 = 2;
const INCOMPLETE: i32 = 3;
const INTERRUPTED: i32 = 130;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs revdeck and holds the exit code against what is expected; its standard output.
#[track_caller]
fn run(test: &TestEnvironment, arguments: &[&str], code: i32) -> String {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    out(&output)
}

/// As [`run`], for a command that fails: its standard error.
#[track_caller]
fn fails(test: &TestEnvironment, arguments: &[&str], code: i32) -> String {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    assert_eq!(out(&output), "", "{arguments:?} prints although it fails");
    err(&output)
}

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    let text = run(test, arguments, code);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
    assert_eq!(value["version"], 1, "{arguments:?}");
    value
}

#[track_caller]
fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is missing in {value}");
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is no list in {value}"))
}

/// A function of 200 lines: a p1 finding.
fn long_function(name: &str) -> String {
    let body: String = (0..200).map(|line| format!("    {name}_total = add({name}_total, {name}_{line})\n")).collect();
    format!("def {name}({name}_total):\n{body}    return {name}_total\n")
}

/// A function with too many parameters: a p3 finding.
fn wide_function(name: &str) -> String {
    format!("def {name}(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n")
}

/// A repository with a p1 and a p3 finding that a review has recorded.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("wide.py", wide_function("wide"));
    test.commit("two findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

fn finding_ids(test: &TestEnvironment) -> Vec<String> {
    let value = json(test, &["findings", "--status", "all", "--format", "json"], DONE);
    list(&value, "findings").iter().map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}

fn store(test: &TestEnvironment) -> Store {
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let info = RepoInfo { version: SCHEMA_VERSION, key: repo.key(), name: repo.name(), common_dir: String::new() };
    Store::open(&test.home().join("state"), info).expect("a store")
}

#[test]
fn a_review_says_what_it_found_and_what_it_covered() {
    let test = TestEnvironment::new();
    test.write("src/long.py", long_function("long"));
    test.write("src/wide.py", wide_function("wide"));
    test.write("Cargo.lock", "# lock\n");
    test.write("image.bin", b"\0\x01\x02".repeat(100));
    test.commit("all sorts");
    let text = run(&test, &["review", "--wait"], DONE);
    let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is missing in {text}"));
    assert!(position("src/long.py\n") < position("src/wide.py\n"), "{text}");
    assert!(position("p1  LONG_METHOD") > position("src/long.py\n"), "{text}");
    let last = text.lines().last().expect("a last line");
    assert!(last.contains("2 findings (1 p1, 1 p3) · 2 files, 2 hunks reviewed · 2 left out: "), "{last}");
    assert!(last.contains("lock file") && last.contains("binary"), "{last}");
    assert!(!text.contains('\x1b'), "no colours into a pipe");
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

const FINDING_KEYS: [&str; 17] = [
    "finding_id",
    "first_run_id",
    "last_run_id",
    "priority",
    "severity",
    "confidence",
    "kind",
    "title",
    "explanation",
    "repo_relative_path",
    "line_start",
    "line_end",
    "quoted_code",
    "suggestion",
    "status",
    "detail_ref",
    "reported_at",
];

const RUN_KEYS: [&str; 40] = [
    "run_id",
    "status",
    "created_at",
    "updated_at",
    "source",
    "owner",
    "branch",
    "worktree",
    "base_commit",
    "snapshot_commit",
    "head_commit",
    "epoch",
    "scope",
    "scope_hash",
    "diff_fingerprint",
    "prompt_policy_version",
    "changed_paths",
    "reviewer",
    "model",
    "reasoning_effort",
    "attempt",
    "follow_up_count",
    "phase_timings",
    "prompt_estimate",
    "tokens",
    "cost",
    "window_peak",
    "saved_token_estimate",
    "coverage",
    "finding_counts",
    "finding_digests",
    "summary",
    "decision",
    "superseded_by",
    "reused_from",
    "carried_over_from",
    "cancel_reason",
    "cancel_note",
    "error_class",
    "error_summary",
];

#[test]
fn json_has_the_documented_shape() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");

    let started = json(&test, &["review", "--format", "json"], DONE);
    has_keys(&started["run"], &RUN_KEYS);
    has_keys(&started["decision"], &["action", "reason", "saved_token_estimate", "supersedes"]);

    let review = json(&test, &["review", "--wait", "--format", "json"], DONE);
    has_keys(&review, &["run", "findings", "coverage", "decision"]);
    has_keys(&review["run"], &RUN_KEYS);
    has_keys(
        &review["coverage"],
        &["files_total", "files_covered", "hunks_total", "hunks_covered", "files", "left_out"],
    );
    assert_eq!(review["run"]["status"], "completed");
    assert!(review["run"]["created_at"].as_str().is_some_and(|at| at.ends_with('Z')), "RFC 3339");
    let finding = &list(&review, "findings")[0];
    has_keys(finding, &FINDING_KEYS);
    assert_eq!(finding["priority"], 1);
    assert_eq!(finding["kind"], "LONG_METHOD");
    assert_eq!(finding["repo_relative_path"], "long.py");
    assert_eq!(finding["status"], "open");

    let runs = json(&test, &["runs", "--format", "json"], DONE);
    has_keys(&list(&runs, "runs")[0], &RUN_KEYS);
    let findings = json(&test, &["findings", "--format", "json"], DONE);
    assert_eq!(list(&findings, "findings")[0], *finding);

    let id = finding["finding_id"].as_str().expect("an id");
    let shown = json(&test, &["show", id, "--format", "json"], DONE);
    assert_eq!(shown["finding"], *finding);
    assert_eq!(list(&shown, "history").len(), 0);
    let shown = json(&test, &["show", "latest", "--format", "json"], DONE);
    has_keys(&shown, &["run", "findings", "coverage"]);

    let smells = json(&test, &["smells", ".", "--format", "json"], DONE);
    has_keys(&list(&smells, "findings")[0], &FINDING_KEYS);
    assert_eq!(list(&smells, "findings")[0]["first_run_id"], Value::Null);
    let function = &list(&smells, "functions")[0];
    let figures = ["nloc", "cyclomatic", "cognitive", "parameters", "nesting", "start_line", "end_line"];
    has_keys(function, &["path", "name"]);
    has_keys(function, &figures);
    assert_eq!((&function["nloc"], &function["parameters"]), (&202.into(), &1.into()), "{function}");

    let tokens = json(&test, &["tokens", "long.py", "--format", "json"], DONE);
    has_keys(&list(&tokens, "files")[0], &["path", "tokens"]);
    let verified = json(&test, &["store", "verify", "--format", "json"], DONE);
    has_keys(&verified, &["sound", "files", "lines", "problems"]);
    let ledger = json(&test, &["ledger", "--format", "json"], DONE);
    has_keys(&ledger, &["ledger", "tokens", "cap", "surfaced"]);
    assert_eq!(list(&ledger, "surfaced").len(), 1);
}

#[test]
fn lists_can_be_filtered() {
    let test = reviewed();
    for (arguments, expected) in [
        (&["--priority", "p1"][..], vec!["LONG_METHOD"]),
        (&["--kind", "complex-functions"], vec!["COMPLEX_FUNCTIONS"]),
        (&["--kind", "LONG_METHOD,COMPLEX_FUNCTIONS"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--path", "./wide.py"], vec!["COMPLEX_FUNCTIONS"]),
        (&["--path", "wide"], vec![]),
        (&["--status", "dismissed"], vec![]),
        (&["--status", "open,addressed"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--run", "latest"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--limit", "1"], vec!["LONG_METHOD"]),
    ] {
        let found = json(&test, &[&["findings", "--format", "json"], arguments].concat(), DONE);
        let kinds: Vec<&str> = list(&found, "findings").iter().filter_map(|finding| finding["kind"].as_str()).collect();
        assert_eq!(kinds, expected, "{arguments:?}");
    }
    let failed = json(&test, &["runs", "--status", "failed,lost", "--format", "json"], DONE);
    assert_eq!(list(&failed, "runs").len(), 0);
}

#[test]
fn decisions_are_kept_taken_back_and_made_again() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let status = |id: &str| json(&test, &["show", id, "--format", "json"], DONE)["finding"]["status"].clone();

    let error = fails(&test, &["triage", &ids[0], "dismissed"], USAGE);
    assert!(error.contains("reason") && error.contains("hint:"), "{error}");
    assert_eq!(status(&ids[0]), "open");

    run(&test, &["triage", &ids[0], &ids[1], "addressed", "--reason", "rewritten"], DONE);
    assert_eq!((status(&ids[0]), status(&ids[1])), ("addressed".into(), "addressed".into()));
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "on purpose"], DONE);
    assert_eq!(status(&ids[0]), "dismissed");
    run(&test, &["undo"], DONE);
    assert_eq!(status(&ids[0]), "addressed");
    run(&test, &["undo"], DONE);
    assert_eq!((status(&ids[0]), status(&ids[1])), ("open".into(), "open".into()), "one command is one step");
    assert_eq!(run(&test, &["undo"], DONE), "nothing to take back\n");
    run(&test, &["undo", "--redo"], DONE);
    assert_eq!(status(&ids[1]), "addressed");
    run(&test, &["redo"], DONE);
    assert_eq!(status(&ids[0]), "dismissed");
    assert_eq!(run(&test, &["redo"], DONE), "nothing to make again\n");

    let shown = run(&test, &["show", &ids[0]], DONE);
    assert!(shown.contains("on purpose") && shown.contains("user redo addressed -> dismissed"), "{shown}");
}

#[test]
fn ids_may_be_shortened_as_long_as_they_are_clear() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let short = &ids[0][..8];
    assert!(run(&test, &["show", short], DONE).contains(&ids[0]));
    assert!(run(&test, &["show", &short[2..]], DONE).contains(&ids[0]), "without the f_");
    let error = fails(&test, &["triage", "f_", "addressed"], USAGE);
    assert!(ids.iter().all(|id| error.contains(id.as_str())), "{error}");

    let runs = json(&test, &["runs", "--format", "json"], DONE);
    let id = list(&runs, "runs")[0]["run_id"].as_str().expect("an id").to_owned();
    assert!(run(&test, &["show", &id[..12].to_lowercase()], DONE).contains(&id));
    for unknown in ["ar_00000000000000000000000000", "f_0000000000000000", "ar_zzz", "nonsense", "", "../../etc"] {
        let error = fails(&test, &["show", unknown], USAGE);
        assert!(error.starts_with("error: ") && error.contains("  hint: "), "{unknown:?}: {error}");
    }
    let error = fails(&test, &["show", "ar_zzz"], USAGE);
    assert!(error.contains(&id), "names what there is: {error}");
}

#[rstest]
#[case::unknown_command(&["revie"])]
#[case::two_scopes(&["review", "--staged", "--all"])]
#[case::fail_on_without_wait(&["review", "--fail-on", "p1"])]
#[case::no_priority(&["review", "--wait", "--fail-on", "p7"])]
#[case::no_range(&["review", "--range", "main"])]
#[case::unknown_revision(&["review", "--commit", "nonsense"])]
#[case::unknown_reviewer(&["review", "--reviewer", "nobody"])]
#[case::no_status(&["findings", "--status", "closed"])]
#[case::no_kind(&["findings", "--kind", "BUGS"])]
#[case::no_such_file(&["tokens", "missing.py"])]
#[case::no_such_folder(&["smells", "missing"])]
#[case::no_encoding(&["tokens", "a.py", "--encoding", "p50k"])]
#[case::cancel_without_reason(&["cancel", "latest"])]
#[case::cancel_of_nothing(&["cancel", "latest", "--reason", "x"])]
#[case::engine_status(&["triage", "f_1", "obsolete"])]
#[case::few_bytes(&["details", "latest", "--max-bytes", "3"])]
#[case::no_folder(&["-C", "missing", "runs"])]
fn wrong_use_ends_with_2(#[case] arguments: &[&str]) {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let error = fails(&test, arguments, USAGE);
    assert!(error.starts_with("error: "), "{error}");
}

#[rstest]
#[case(&[])]
#[case(&["review"])]
#[case(&["runs"])]
#[case(&["findings"])]
#[case(&["show", "latest"])]
#[case(&["ledger"])]
#[case(&["store", "path"])]
fn outside_of_a_repository_one_clear_sentence(#[case] arguments: &[&str]) {
    let test = TestEnvironment::new();
    fs::create_dir_all(test.home()).expect("a folder");
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .current_dir(test.home())
        .args(arguments)
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE), "{}", err(&output));
    assert_eq!(err(&output).lines().count(), 2, "{}", err(&output));
    assert!(err(&output).contains("is not in a git repository\n  hint: "), "{}", err(&output));
}

#[test]
fn without_a_terminal_there_is_a_summary() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let empty = run(&test, &[], DONE);
    assert!(empty.contains("repo (main) · no findings") && empty.contains("no runs yet"), "{empty}");
    let test = reviewed();
    let text = run(&test, &[], DONE);
    assert!(text.contains("2 findings (1 p1, 1 p3) to decide") && text.contains("LONG_METHOD"), "{text}");
}

/// A slot of the only worker, taken by a run that this process pretends to work on: others stay pending.
fn occupy(test: &TestEnvironment) -> (RunRecord, revdeck::store::RunLock) {
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), "max_parallel_runs = 1\n").expect("settings");
    let store = store(test);
    let id: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
    let lock = store.lock_run(&id).expect("a lock").expect("free");
    let record: RunRecord = serde_json::from_value(serde_json::json!({
        "run_id": id, "status": "reviewing", "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z",
        "source": "cli", "scope": "all", "reviewer": "builtin", "scope_hash": "other", "worktree": "/elsewhere",
    }))
    .expect("a record");
    store.locked(|locked| locked.create_run(&record)).expect("recorded");
    (record, lock)
}

/// Waits until a run of this status is in the store.
fn await_run(test: &TestEnvironment, status: RunStatus) -> RunId {
    let store = store(test);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let view = store.view().expect("a view");
        let found = (0..view.run_count()).map(|index| view.run(index)).find(|run| run.status == status);
        if let Some(run) = found {
            return run.id.parse().expect("an id");
        }
        assert!(Instant::now() < deadline, "no run becomes {status}");
        std::thread::yield_now();
    }
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
    assert!(out(&output).contains("is cancelled") && out(&output).contains("changed my mind"), "{}", out(&output));
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
    // The handler is set right after the run is recorded; an interrupt before that ends revdeck by the signal itself,
    // which a shell shows as 130 as well.
    let process = rustix::process::Pid::from_child(&child);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !catches_interrupts(child.id()) && Instant::now() < deadline {
        std::thread::yield_now();
    }
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a signal");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(INTERRUPTED));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut said).expect("text");
    assert!(said.contains("the review goes on") && said.contains(pending.as_str()), "{said}");
    assert_eq!(store(&test).run(&pending).expect("readable").map(|run| run.status), Some(RunStatus::Pending));
}

/// Whether a process has a handler for SIGINT; where the system does not tell, after a while it surely has.
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
fn a_closed_pipe_is_no_error() {
    let test = reviewed();
    for (arguments, code) in [
        (&["findings", "--status", "all"][..], DONE),
        (&["runs", "--format", "json"], DONE),
        (&["review", "--wait", "--fail-on", "p1"], FINDINGS),
        (&["completions", "bash"], DONE),
        (&["--help"], DONE),
        (&[], DONE),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = test
            .command(env!("CARGO_BIN_EXE_revdeck"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("revdeck starts");
        assert_eq!((output.status.code(), err(&output).as_str()), (Some(code), ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let test = reviewed();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["findings"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", err(&output));
    assert!(err(&output).contains("cannot write to standard output"), "{}", err(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn hostile_names_are_harmless() {
    let test = TestEnvironment::new();
    test.write("evil\x1b[2J\n\u{202e}<b>`x`.py", long_function("long"));
    test.commit("hostile\x1b]52;c;aGk=\x07");
    for arguments in [
        &["review", "--wait"][..],
        &["findings", "--color", "always"],
        &["show", "latest"],
        &["details", "latest"],
        &["ledger"],
        &["smells", "."],
        &["findings", "--format", "markdown"],
        &[],
    ] {
        let text = run(&test, arguments, DONE);
        let plain = text.replace("\x1b[0m", "");
        let hostile = ["\x1b[2J", "\x1b]52", "\u{202e}", "evil\x1b"];
        assert!(hostile.iter().all(|part| !plain.contains(part)), "{arguments:?}: {text:?}");
    }
    let ledger = run(&test, &["ledger"], DONE);
    assert!(ledger.contains("&lt;b&gt;") && !ledger.contains("<b>"), "{ledger}");
    let markdown = run(&test, &["findings", "--format", "markdown"], DONE);
    assert!(markdown.contains("### ``"), "{markdown}");
    let value = json(&test, &["findings", "--format", "json"], DONE);
    assert_eq!(list(&value, "findings")[0]["repo_relative_path"], "evil\x1b[2J\n\u{202e}<b>`x`.py", "data stays data");
}

#[test]
fn details_stay_within_their_bytes() {
    let test = TestEnvironment::new();
    for number in 0..30 {
        test.write(&format!("wide{number}.py"), wide_function(&format!("wide{number}")));
    }
    test.commit("many findings");
    run(&test, &["review", "--wait"], DONE);
    for limit in [512, 1000, 2000, 5000, 20_000] {
        let bytes = limit.to_string();
        let text = run(&test, &["details", "latest", "--max-bytes", &bytes], DONE);
        assert!(text.len() <= limit, "{} > {limit}", text.len());
        let value = json(&test, &["details", "latest", "--max-bytes", &bytes, "--format", "json"], DONE);
        assert!(value.to_string().len() < limit, "{limit}: {value}");
        let shown = list(&value, "findings").len();
        assert_eq!(value["findings_left_out"], 30 - shown);
    }
    let all = json(&test, &["details", "latest", "--format", "json"], DONE);
    assert_eq!(list(&all, "findings").len(), 30);
    let id = list(&all, "findings")[3]["finding_id"].as_str().expect("an id").to_owned();
    let one = json(&test, &["details", "latest", &id, "--format", "json"], DONE);
    assert_eq!(list(&one, "findings").len(), 1);
}

#[test]
fn the_ledger_is_silent_or_short() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    assert_eq!(run(&test, &["ledger"], DONE), "", "nothing to say is not one byte");
    let test = reviewed();
    let ledger = run(&test, &["ledger"], DONE);
    assert!(ledger.contains("<latest ") && ledger.matches("<finding ").count() == 1, "only the p1: {ledger}");
    assert_eq!(run(&test, &["ledger", "--max-tokens", "0"], DONE), "");
    for cap in [40, 120, 160, 200] {
        let value = json(&test, &["ledger", "--max-tokens", &cap.to_string(), "--format", "json"], DONE);
        assert!(value["tokens"].as_u64().is_some_and(|tokens| tokens <= cap), "{cap}: {value}");
    }
}

#[test]
fn a_damaged_store_is_told_and_repaired() {
    let test = reviewed();
    let root = run(&test, &["store", "path"], DONE).trim().to_owned();
    assert!(run(&test, &["store", "verify"], DONE).contains("the store is sound"));
    let runs = format!("{root}/runs.ndjson");
    let mut content = fs::read_to_string(&runs).expect("readable");
    content.insert_str(0, "{broken\n");
    fs::write(&runs, content).expect("writable");
    assert!(run(&test, &["store", "verify"], INCOMPLETE).contains("runs.ndjson:1"));
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    assert_eq!(finding_ids(&test).len(), 2);
    let pruned = json(&test, &["store", "prune", "--keep-days", "0", "--keep-runs", "0", "--format", "json"], DONE);
    has_keys(&pruned, &["journals", "lines", "bytes", "snapshots"]);
    assert_eq!(finding_ids(&test).len(), 2, "findings stay");
}

fn with_settings(user: &str, repository: &str) -> TestEnvironment {
    let test = TestEnvironment::new();
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), user).expect("settings");
    if !repository.is_empty() {
        test.write(".revdeck.toml", repository);
    }
    test
}

fn setting(test: &TestEnvironment, key: &str, variables: &[(&str, &str)], flags: &[&str]) -> (Value, String) {
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["config", "show", "--format", "json"])
        .args(flags)
        .envs(variables.iter().copied())
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let setting = &value["settings"][key];
    (setting["value"].clone(), setting["origin"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn settings_are_layered() {
    let user = "max_file_bytes = 10\nignored_paths = [\"mine\"]\ncolor = \"never\"\n[window]\nmax_turns = 7\n";
    let repository = "max_file_bytes = 20\nignored_paths = [\"theirs\"]\ndefault_scope = \"branch:dev\"\n";
    let test = with_settings(user, repository);
    let variable = &[("REVDECK_MAX_FILE_BYTES", "30"), ("REVDECK_COLOR", "always")][..];
    for (key, variables, flags, value, origin) in [
        ("max_parallel_runs", &[][..], &[][..], Value::from(2), "default"),
        ("window.max_turns", &[], &[], 7.into(), "user"),
        ("max_file_bytes", &[], &[], 20.into(), "repository"),
        ("ignored_paths", &[], &[], serde_json::json!(["mine", "theirs"]), "repository"),
        ("default_scope", &[], &[], "branch:dev".into(), "repository"),
        ("max_file_bytes", variable, &[], 30.into(), "environment"),
        ("color", variable, &[], "always".into(), "environment"),
        ("color", variable, &["--color", "auto"], "auto".into(), "flag"),
        ("ascii", &[], &["--ascii"], true.into(), "flag"),
        ("theme", &[("REVDECK_THEME", "")], &[], "auto".into(), "default"),
    ] {
        assert_eq!(setting(&test, key, variables, flags), (value, origin.to_owned()), "{key} {variables:?} {flags:?}");
    }
    let shown = run(&test, &["config", "show", "--origin"], DONE);
    assert!(shown.contains("config.toml:3:1") && shown.contains(".revdeck.toml:1:1"), "{shown}");
    let paths = json(&test, &["config", "path", "--format", "json"], DONE);
    assert_eq!(paths["paths"]["config"]["exists"], true);
}

#[test]
fn a_repository_cannot_set_what_could_do_harm() {
    let repository = "default_reviewer = \"evil\"\nmax_parallel_runs = 50\ntheme = \"x\"\nmax_file_bytes = 99\n\
                      unknown\u{20}= 1\n[reviewers.evil]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"touch /tmp/x\"]\n\
                      [window]\nmax_turns = 1\n[keymap]\nq = \"quit\"\n";
    let test = with_settings("", repository);
    let output = test.revdeck(&["config", "show", "--format", "json"]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    for (key, expected) in
        [("default_reviewer", Value::from("builtin")), ("max_parallel_runs", 2.into()), ("theme", "auto".into())]
    {
        assert_eq!(value["settings"][key]["value"], expected, "{key}");
    }
    assert_eq!(value["settings"]["max_file_bytes"]["value"], 99);
    assert_eq!(value["reviewers"], serde_json::json!({}));
    for key in ["default_reviewer", "max_parallel_runs", "theme", "unknown", "reviewers", "window.max_turns", "keymap"]
    {
        let told = err(&output).lines().any(|line| {
            line.starts_with("warning: ") && line.contains(".revdeck.toml:") && line.contains(&format!(": {key}: "))
        });
        assert!(told, "{key}: {}", err(&output));
    }
}

#[cfg(unix)]
#[test]
fn a_repository_settings_file_that_is_a_link_is_not_followed() {
    let test = with_settings("", "");
    fs::write(test.home().join("secret.toml"), "max_file_bytes = 5\n").expect("a file");
    std::os::unix::fs::symlink(test.home().join("secret.toml"), test.repo().join(".revdeck.toml")).expect("a link");
    let output = test.revdeck(&["config", "show", "--format", "json"]);
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(value["settings"]["max_file_bytes"]["origin"], "default");
    assert!(err(&output).contains("not an ordinary file"), "{}", err(&output));
}

#[rstest]
#[case::value("max_parallel_runs = 0", "config.toml:1:21: max_parallel_runs: 0 is out of range", "from 1 to 64")]
#[case::sort("\n  ascii = \"yes\"", "config.toml:2:11: ascii: ", "true or false")]
#[case::unknown("colour = \"always\"", "config.toml:1:1: colour: there is no such setting", "color")]
#[case::nested("[window]\nturns = 3", "config.toml:2:1: window.turns: ", "window.max_turns")]
#[case::syntax("theme = \n", "config.toml:1:", "")]
#[case::scope("default_scope = \"everything\"", "config.toml:1:17: default_scope: ", "\"worktree\"")]
#[case::threshold(
    "[smells.long_method]\nmax_lines = 3",
    "config.toml:2:1: smells.long_method.max_lines: ",
    "max_code_lines"
)]
#[case::threshold_sort(
    "[smells.long_method]\nmax_code_lines = \"60\"",
    "config.toml:2:18: smells.long_method.max_code_lines: ",
    "integer"
)]
#[case::key_in_file(
    "[reviewers.a]\nkind = \"openai\"\nmodel = \"m\"\napi_key = \"sk-1\"",
    "config.toml:4:11: ",
    "api_key_env"
)]
#[case::reviewer_kind("[reviewers.a]\nkind = \"magic\"", "config.toml:2:8: reviewers.a.kind: ", "\"anthropic\"")]
#[case::reviewer_model("[reviewers.a]\nkind = \"openai\"", "config.toml:", "model")]
fn wrong_settings_are_told_with_their_place(#[case] user: &str, #[case] place: &str, #[case] allowed: &str) {
    let test = with_settings(user, "");
    let error = fails(&test, &["review"], USAGE);
    assert!(error.contains(place) && error.contains(allowed) && error.contains("  hint: "), "{error}");
    assert!(!error.contains("sk-1"), "a key is not repeated: {error}");
}

#[test]
fn reviewers_of_other_kinds_are_checked_and_not_run() {
    let test = with_settings(
        "[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\napi_key_env = \"KEY\"\n[reviewers.mine]\nkind = \"builtin\"\n",
        "",
    );
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let error = fails(&test, &["review", "--reviewer", "cloud"], USAGE);
    assert!(error.contains("only the built-in reviewer"), "{error}");
    run(&test, &["review", "--wait", "--reviewer", "mine"], DONE);
    let error = fails(&test, &["review", "--reviewer", "nobody"], USAGE);
    assert!(error.contains("builtin, cloud, mine"), "{error}");
}

#[test]
fn thresholds_can_be_changed_by_user_and_repository() {
    let test = with_settings("", "");
    test.write("wide.py", wide_function("wide"));
    let findings =
        |test: &TestEnvironment| list(&json(test, &["smells", ".", "--format", "json"], DONE), "findings").len();
    assert_eq!(findings(&test), 1);
    fs::write(test.home().join("smells.toml"), "[complex_functions]\nmax_parameters = 8\n").expect("a file");
    assert_eq!(findings(&test), 0);
    test.write(".revdeck.toml", "[smells.complex_functions]\nmax_parameters = 6\n");
    assert_eq!(findings(&test), 1, "the repository stands above the user's file");
    fs::write(test.home().join("config.toml"), "[smells.long_method]\nmax_code_lines = 9\n").expect("a file");
    let shown = json(&test, &["config", "show", "--format", "json"], DONE);
    for (key, value, origin) in [
        ("smells.complex_functions.max_parameters", "6", "repository"),
        ("smells.long_method.max_code_lines", "9", "user"),
    ] {
        let setting = &shown["settings"][key];
        assert_eq!((&setting["value"], &setting["origin"]), (&value.into(), &origin.into()), "{key}");
    }
    fs::remove_file(test.repo().join(".revdeck.toml")).expect("a file");
    let shown = run(&test, &["config", "show", "--origin"], DONE);
    assert!(shown.contains("max_parameters = 8") && shown.contains("smells.toml:2:1"), "{shown}");
}

#[test]
fn a_home_may_be_relative_or_empty() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let path = |home: &str| {
        let output = test
            .command(env!("CARGO_BIN_EXE_revdeck"))
            .args(["store", "path"])
            .env("REVDECK_HOME", home)
            .output()
            .expect("revdeck starts");
        out(&output).trim().to_owned()
    };
    let repo = test.repo().canonicalize().expect("a folder");
    assert!(path("some/home").starts_with(&format!("{}/some/home/state/review/repo-", repo.display())));
    assert!(path("some/home").ends_with("/auto-review"));
    assert!(!path("").contains("some/home") && path("").starts_with('/'), "{}", path(""));

    // A worker is started in another folder than this one perhaps; it must find the same store.
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["review", "--wait"])
        .env("REVDECK_HOME", "some/home")
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
}

#[test]
fn help_man_and_completions_come_from_the_arguments() {
    let test = TestEnvironment::new();
    let help = run(&test, &["--help"], DONE);
    assert!(help.contains("130  interrupted") && !help.contains("worker"), "{help}");
    assert_eq!(run(&test, &["--version"], DONE), format!("revdeck {}\n", env!("CARGO_PKG_VERSION")));
    assert!(run(&test, &["man"], DONE).contains("Exit codes"));
    let folder = test.home().join("man");
    run(&test, &["man", "--out", folder.to_str().expect("UTF-8")], DONE);
    let mut pages: Vec<_> =
        fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name().into_string()).collect();
    pages.sort();
    assert!(
        pages.contains(&Ok("revdeck.1".to_owned())) && pages.contains(&Ok("revdeck-review.1".to_owned())),
        "{pages:?}"
    );
    assert!(!pages.contains(&Ok("revdeck-worker.1".to_owned())), "{pages:?}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&test, &["completions", shell], DONE).contains("review"), "{shell}");
    }
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let test = TestEnvironment::new();
    let healthy = json(&test, &["doctor", "--format", "json"], DONE);
    assert_eq!(healthy["healthy"], true);
    let names: Vec<&str> = list(&healthy, "checks").iter().filter_map(|check| check["name"].as_str()).collect();
    for name in ["version", "settings", "state", "repository", "store", "terminal", "reviewers"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), "ascii = 3").expect("a file");
    let text = run(&test, &["doctor"], USAGE);
    assert!(text.contains("problem settings") && text.contains("config.toml:1:9"), "{text}");
}

#[test]
fn a_log_is_written_only_when_asked_for() {
    let test = reviewed();
    let logged = |test: &TestEnvironment| {
        let entries = fs::read_dir(test.home().join("logs")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(|text| text.contains("started"))
    };
    assert!(!logged(&test));
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_LOG", "debug").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert!(logged(&test));
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_LOG", "loud").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE));
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
    assert!(value["run"]["created_at"].as_str().is_some_and(|at| at.starts_with("2031-05-06T07:08:09")), "{value}");
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_NOW", "tomorrow").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE));
}
