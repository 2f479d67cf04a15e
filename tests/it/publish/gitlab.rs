//! Merge requests of GitLab: positions, suggestions, threads, notes, tokens.

use std::process::Output;

use insta::{allow_duplicates, assert_snapshot};
use rstest::rstest;
use serde_json::{Value, json};

use super::fake_host::{Answer, Call, FakeHost, Fault, HostState, bad_gateway};
use super::{TOKEN, changed, head, import, patch, problem, three_findings};
use crate::env::{DONE, TestEnvironment, USAGE, err, out, run};

/// Answers like the REST API for merge request 7 of the project `group/sub/hello`.
fn gitlab(state: &mut HostState, call: &Call) -> Answer {
    let is_known = call.head.contains(&format!("private-token: {TOKEN}"));
    let is_job = call.head.contains(&format!("job-token: {TOKEN}"));
    assert!(is_known != is_job, "{}", call.head);
    let base = "/projects/group%2Fsub%2Fhello/merge_requests/7";
    match (call.method.as_str(), call.path.strip_prefix(base).unwrap_or(&call.path)) {
        ("GET", "/user") if is_known => Answer::ok(json!({ "username": state.login })),
        ("GET", "/job") if is_job => Answer::ok(json!({ "user": { "username": state.login } })),
        ("GET", "") => {
            let refs = json!({ "base_sha": state.base, "start_sha": state.base, "head_sha": state.head });
            Answer::ok(json!({ "diff_refs": refs }))
        }
        ("GET", "/diffs") => {
            let row = |(path, patch): &(String, String)| json!({ "old_path": path, "new_path": path, "diff": patch });
            let rows: Vec<Value> = state.files.iter().map(row).collect();
            state.page(call, &rows)
        }
        ("GET", "/discussions") => {
            let rows = [state.inline.clone(), state.comments.clone()].concat();
            state.page(call, &rows)
        }
        ("POST", "/discussions") => {
            let position = &call.body["position"];
            let (path, line) = (position["new_path"].as_str().expect("a path"), position["new_line"].as_u64());
            let is_right = position["head_sha"] == state.head.as_str() && position["base_sha"] == state.base.as_str();
            if !is_right || !state.has_line(path, line.expect("a line")) {
                let message = "400 Bad request - Note {:line_code=>[\"can't be blank\"]}";
                return Answer::new(400, json!({ "message": message }));
            }
            state.inline.push(json!({ "position": position }));
            add_note(state, call, true)
        }
        ("POST", "/notes") => {
            state.comments.push(json!({}));
            add_note(state, call, false)
        }
        ("PUT", path) if path.starts_with("/notes/") => {
            let id: u64 = path.trim_start_matches("/notes/").parse().expect("a number");
            let row = state.comments.iter_mut().find(|row| row["notes"][0]["id"] == id).expect("a note");
            row["notes"][0]["body"] = call.body["body"].clone();
            Answer::ok(json!({}))
        }
        ("PUT", path) if path.starts_with("/discussions/") => {
            assert_eq!(call.body, json!({ "resolved": true }));
            let id = path.trim_start_matches("/discussions/");
            let row = state.inline.iter_mut().find(|row| row["id"] == id).expect("a discussion");
            row["notes"][0]["resolved"] = json!(true);
            Answer::ok(json!({}))
        }
        _ => Answer::new(404, json!({ "message": "404 Not found" })),
    }
}

/// Completes the discussion that was added last.
fn add_note(state: &mut HostState, call: &Call, is_inline: bool) -> Answer {
    let id = state.next_id();
    let author = json!({ "username": state.login });
    let note = json!({ "id": id, "author": author, "body": call.body["body"], "resolved": false });
    let list = if is_inline { &mut state.inline } else { &mut state.comments };
    let row = list.last_mut().expect("a discussion");
    (row["id"], row["notes"]) = (json!(format!("d{id}")), json!([note]));
    Answer::new(201, row.clone())
}

fn start(test: &TestEnvironment) -> FakeHost {
    let base = test.git(&["rev-parse", "origin/main"]).trim().to_owned();
    let names = test.git(&["diff", "--name-only", "origin/main", "HEAD"]);
    let files = names.lines().map(|path| (path.to_owned(), patch(test, path))).collect();
    test.git(&["remote", "set-url", "origin", "https://gitlab.com/group/sub/hello.git"]);
    FakeHost::start(gitlab, head(test), base, files)
}

fn publish_with(test: &TestEnvironment, host: &FakeHost, variables: &[(&str, &str)]) -> Output {
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["publish", "gitlab", "--format", "json"]);
    command.env("CI_API_V4_URL", host.url()).env("CI_MERGE_REQUEST_IID", "7").envs(variables.iter().copied());
    command.output().expect("revdeck starts")
}

#[track_caller]
fn publish(test: &TestEnvironment, host: &FakeHost, token: &str) -> Value {
    let output = publish_with(test, host, &[(token, TOKEN)]);
    assert_eq!(output.status.code(), Some(DONE), "{}{}", out(&output), err(&output));
    serde_json::from_str(&out(&output)).expect("JSON")
}

/// Returns the counts in the order posted, updated, resolved, already there, failed, skipped.
fn counts(report: &Value) -> [u64; 6] {
    let names = ["posted", "updated", "resolved", "already_there", "failed", "skipped"];
    names.map(|name| report["counts"][name].as_u64().expect("a number"))
}

#[rstest]
#[case::of_a_person("GITLAB_TOKEN")]
#[case::of_a_job("CI_JOB_TOKEN")]
fn findings_are_threads_that_are_resolved_and_a_note_that_is_updated(#[case] token: &str) {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    assert_eq!(counts(&publish(&test, &host, token)), [3, 0, 0, 0, 0, 0]);
    assert_eq!(counts(&publish(&test, &host, token)), [0, 0, 0, 3, 0, 0]);
    let position = host.with(|state| state.inline[0]["position"].clone());
    assert_eq!((&position["new_path"], &position["new_line"]), (&json!("src/app.py"), &json!(10)));
    assert_eq!(position["old_line"], Value::Null, "the line is new");
    let body = host.with(|state| state.inline[0]["notes"][0]["body"].as_str().expect("text").to_owned());
    allow_duplicates!(assert_snapshot!(test.normalise(&body), @r#"
    <!-- revdeck:finding f_[id] -->
    **p2 correctness**: lint R1: Wrong name

    Reported by lint.

    Suggestion: Replace line 10.

    ```suggestion:-0+0
    app_9 = load(app_source_9)
    ```

    revdeck `f_[id]`
    "#));

    run(&test, &["triage", &ids[1], "dismissed", "--reason", "loaded elsewhere"], DONE);
    run(&test, &["triage", &ids[2], "addressed"], DONE);
    let report = publish(&test, &host, token);
    assert_eq!(counts(&report), [0, 1, 1, 1, 0, 0]);
    let resolved =
        host.with(|state| state.inline.iter().map(|row| row["notes"][0]["resolved"] == true).collect::<Vec<_>>());
    assert_eq!(resolved, [false, true]);
    assert_eq!(counts(&publish(&test, &host, token)), [0, 0, 0, 2, 0, 0]);
}

#[test]
fn unchanged_lines_have_a_number_on_both_sides_and_failures_repeat_nothing() {
    let test = changed();
    let problems: Vec<Value> =
        (7..=13).map(|line| problem("src/app.py", line, "Trouble")).chain([problem("src/app.py", 25, "Far")]).collect();
    let ids = import(&test, &problems);
    let host = start(&test);
    host.plan_faults(|number, call| match number % 5 {
        2 if call.is_create() => Some(Fault::Lose(bad_gateway())),
        4 => Some(Fault::Refuse(Answer::new(429, json!({ "message": "Retry later" })).at_once())),
        _ => None,
    });
    let report = publish(&test, &host, "REVDECK_GITLAB_TOKEN");
    assert_eq!((counts(&report), &report["in_summary"]), ([8, 0, 0, 0, 0, 0], &json!([ids[7]])));
    let lines = host.with(|state| {
        let position = |row: &Value| (row["position"]["new_line"].as_u64(), row["position"]["old_line"].as_u64());
        state.inline.iter().map(position).collect::<Vec<_>>()
    });
    let both = |line: u64| (Some(line), Some(line));
    assert_eq!(lines, [both(7), both(8), both(9), (Some(10), None), both(11), both(12), both(13)]);
    assert_eq!(host.with(|state| state.comments.len()), 1);
}

#[test]
fn a_missing_token_and_a_missing_number_are_named() {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    for (variables, says) in [
        (&[][..], "there is no token: REVDECK_GITLAB_TOKEN is not set"),
        (&[("GITLAB_TOKEN", TOKEN), ("CI_MERGE_REQUEST_IID", "")], "the number of the merge request is not known"),
        (&[("GITLAB_TOKEN", TOKEN), ("CI_PROJECT_ID", "a b")], "\"a b\" is no project of GitLab"),
    ] {
        let output = publish_with(&test, &host, variables);
        assert_eq!(output.status.code(), Some(USAGE), "{}", err(&output));
        assert!(err(&output).contains(says), "{}", err(&output));
    }
    assert!(host.take_calls().is_empty(), "nothing is sent");
}
