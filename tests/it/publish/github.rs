//! Pull requests of GitHub: comments, suggestions, summary, threads, limits, faults.

use std::process::Output;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use super::fake_host::{Answer, Call, FakeHost, Fault, HostState, bad_gateway};
use super::{TOKEN, changed, fixable, head, import, patch, plain_lines, problem, three_findings};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out, run};

/// Answers like the REST and GraphQL APIs for pull request 7 of octo/hello.
pub(super) fn github(state: &mut HostState, call: &Call) -> Answer {
    assert!(call.head.contains(&format!("authorization: bearer {TOKEN}")), "{}", call.head);
    let path = call.path.strip_prefix("/repos/octo/hello").unwrap_or(&call.path).to_owned();
    match (call.method.as_str(), path.as_str()) {
        ("GET", "/user") if state.is_app_token => {
            Answer::new(403, json!({ "message": "Resource not accessible by integration" }))
        }
        ("GET", "/user") => Answer::ok(json!({ "login": state.login })),
        ("GET", "/pulls/7") => Answer::ok(json!({ "head": { "sha": state.head }, "base": { "sha": state.base } })),
        ("GET", "/pulls/7/files") => {
            let rows: Vec<Value> = state
                .files
                .iter()
                .map(|(path, patch)| json!({ "filename": path, "status": "modified", "patch": patch }))
                .collect();
            state.page(call, &rows)
        }
        ("GET", "/pulls/7/comments") => state.page(call, &state.inline),
        ("GET", "/issues/7/comments") => state.page(call, &state.comments),
        ("POST", "/pulls/7/reviews") => create_review(state, &call.body),
        ("POST", "/issues/7/comments") => {
            let row = json!({ "id": state.next_id(), "user": { "login": state.login }, "body": call.body["body"] });
            state.comments.push(row.clone());
            Answer::new(201, row)
        }
        ("PATCH", path) if path.starts_with("/issues/comments/") => {
            let id: u64 = path.rsplit('/').next().expect("an id").parse().expect("a number");
            let row = state.comments.iter_mut().find(|row| row["id"] == id).expect("a comment");
            row["body"] = call.body["body"].clone();
            Answer::ok(row.clone())
        }
        ("DELETE", path) if path.starts_with("/pulls/comments/") => {
            let id: u64 = path.rsplit('/').next().expect("an id").parse().expect("a number");
            state.inline.retain(|row| row["id"] != id);
            Answer::new(204, Value::Null)
        }
        ("POST", "/graphql") => graphql(state, &call.body),
        _ => Answer::new(404, json!({ "message": "Not Found" })),
    }
}

/// Stores all comments of a review, or none.
fn create_review(state: &mut HostState, review: &Value) -> Answer {
    let invalid = |message: &str| {
        let error = json!({ "resource": "PullRequestReviewComment", "code": "custom", "message": message });
        Answer::new(422, json!({ "message": "Unprocessable Entity", "errors": [error] }))
    };
    if review["commit_id"] != state.head.as_str() || review["event"] != "COMMENT" {
        return invalid("commit_id is not part of the pull request");
    }
    let comments = review["comments"].as_array().expect("comments");
    assert!(comments.len() <= 30, "a review of {} comments is taken for abuse", comments.len());
    for comment in comments {
        let path = comment["path"].as_str().expect("a path");
        let (line, start) = (comment["line"].as_u64().expect("a line"), comment["start_line"].as_u64());
        if start.is_some_and(|start| start >= line) {
            return invalid("start_line must precede the end line.");
        }
        if !state.has_line(path, line) || start.is_some_and(|start| !state.has_line(path, start)) {
            return invalid("line must be part of the diff");
        }
    }
    for comment in comments {
        let mut row = comment.clone();
        row["id"] = state.next_id().into();
        row["user"] = json!({ "login": state.login });
        row["original_commit_id"] = json!(state.head);
        row["original_line"] = comment["line"].clone();
        row["original_start_line"] = comment["start_line"].clone();
        state.inline.push(row);
    }
    Answer::ok(json!({ "id": state.next_id() }))
}

fn graphql(state: &mut HostState, body: &Value) -> Answer {
    let query = body["query"].as_str().expect("a query");
    if query.contains("viewer") {
        return Answer::ok(json!({ "data": { "viewer": { "login": state.login } } }));
    }
    if query.contains("resolveReviewThread") {
        if !state.may_resolve {
            let error = json!({ "type": "FORBIDDEN", "message": "Resource not accessible by integration" });
            return Answer::ok(json!({ "data": { "resolveReviewThread": null }, "errors": [error] }));
        }
        let thread = body["variables"]["thread"].as_str().expect("a thread");
        state.resolved.insert(thread.trim_start_matches("PRRT_").parse().expect("a number"));
        return Answer::ok(
            json!({ "data": { "resolveReviewThread": { "thread": { "id": thread, "isResolved": true } } } }),
        );
    }
    // Pages of two threads, so that a test needs few of them.
    let after: usize = body["variables"]["after"].as_str().map_or(0, |cursor| cursor.parse().expect("a number"));
    let nodes: Vec<Value> = state.inline.iter().skip(after).take(2).map(|row| {
        let id = row["id"].as_u64().expect("an id");
        json!({ "id": format!("PRRT_{id}"), "isResolved": state.resolved.contains(&id), "comments": { "nodes": [{ "databaseId": id }] } })
    }).collect();
    let more = after + 2 < state.inline.len();
    let info = json!({ "hasNextPage": more, "endCursor": (after + 2).to_string() });
    let threads = json!({ "pageInfo": info, "nodes": nodes });
    Answer::ok(json!({ "data": { "repository": { "pullRequest": { "reviewThreads": threads } } } }))
}

pub(super) fn start(test: &TestEnvironment) -> FakeHost {
    let base = test.git(&["rev-parse", "origin/main"]).trim().to_owned();
    let names = test.git(&["diff", "--name-only", "origin/main", "HEAD"]);
    let files = names.lines().map(|path| (path.to_owned(), patch(test, path))).collect();
    FakeHost::start(github, head(test), base, files)
}

pub(super) fn publish_with(
    test: &TestEnvironment,
    host: &FakeHost,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Output {
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["publish", "github"]).args(arguments);
    command.env("REVDECK_GITHUB_API", host.url()).env("GITHUB_TOKEN", TOKEN).envs(variables.iter().copied());
    command.output().expect("revdeck starts")
}

/// Publishes to pull request 7 and returns the report.
#[track_caller]
pub(super) fn publish(test: &TestEnvironment, host: &FakeHost, arguments: &[&str], code: i32) -> Value {
    let arguments = [&["--pr", "7", "--format", "json"], arguments].concat();
    let output = publish_with(test, host, &arguments, &[]);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{error}: {}", out(&output)))
}

/// Returns the command of docs/ci.md that publishes.
pub(super) fn documented_command(host: &str) -> Vec<&'static str> {
    let page = include_str!("../../../docs/ci.md");
    let lines = page.lines().map(|line| line.trim().trim_start_matches("- "));
    let found: Vec<&str> = lines.filter(|line| *line == format!("revdeck publish {host}")).collect();
    assert_eq!(found.len(), 1, "commands of {host} in a block of docs/ci.md");
    found[0].split(' ').skip(1).collect()
}

/// Returns the counts in the order posted, updated, resolved, already there, failed, skipped.
pub(super) fn counts(report: &Value) -> [u64; 6] {
    let names = ["posted", "updated", "resolved", "already_there", "failed", "skipped"];
    names.map(|name| report["counts"][name].as_u64().expect("a number"))
}

/// Returns how often each finding has a comment, most often first.
fn comments_by_finding(host: &FakeHost) -> Vec<usize> {
    let mut counts = std::collections::HashMap::new();
    for marker in host.markers().into_iter().filter(|marker| marker.contains("revdeck:finding")) {
        *counts.entry(marker).or_insert(0) += 1;
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts
}

fn summary(host: &FakeHost) -> String {
    host.with(|state| state.comments.last().expect("a summary")["body"].as_str().expect("text").to_owned())
}

#[test]
fn findings_are_comments_once_with_suggestions_and_a_summary() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(counts(&report), [3, 0, 0, 0, 0, 0]);
    assert_eq!((&report["summary"], &report["in_summary"]), (&json!("posted"), &json!([ids[2]])));
    let comments = host.with(|state| state.inline.clone());
    let place = |comment: &Value| (comment["path"].clone(), comment["line"].clone(), comment["start_line"].clone());
    assert_eq!(place(&comments[0]), (json!("src/app.py"), json!(10), Value::Null));
    assert_eq!(place(&comments[1]), (json!("src/new.py"), json!(3), Value::Null));
    assert_snapshot!(test.normalise(comments[0]["body"].as_str().expect("text")), @r#"
    <!-- revdeck:finding f_[id] -->
    **p2 correctness**: lint R1: Wrong name

    Reported by lint.

    Suggestion: Replace line 10.

    ```suggestion
    app_9 = load(app_source_9)
    ```

    revdeck `f_[id]`
    "#);
    assert_snapshot!(test.normalise(&summary(&host)), @r#"
    <!-- revdeck:summary -->
    ### Review by revdeck

    3 open findings at [hash]: 3 p2. 2 have a comment beside the code.

    Without a comment beside the code:

    - **p2 correctness** `src/other.py:5` lint R1: Old trouble `f_[id]`
    "#);

    // Another run finds them.
    host.take_calls();
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(counts(&report), [0, 0, 0, 3, 0, 0]);
    assert_eq!(report["summary"], "unchanged");
    let sent = host.take_calls().into_iter().filter(|call| call.method != "GET");
    let sent: Vec<String> = sent.map(|call| call.path).collect();
    assert_eq!(sent, ["/graphql"], "nothing is sent again: this asks for the threads");

    // The text for a person.
    let output = publish_with(&test, &host, &["--pr", "7", "--repo", "octo/hello"], &[]);
    assert_snapshot!(test.normalise(&out(&output)), @r#"
    pull request 7 of octo/hello at [hash]
    posted 0, updated 0, resolved 0, already there 3, failed 0, skipped 0
    summary unchanged, with 1 finding
    "#);
}

#[test]
fn threads_of_decided_findings_are_resolved_and_the_summary_is_updated() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    publish(&test, &host, &[], DONE);
    run(&test, &["triage", &ids[1], "dismissed", "--reason", "loaded elsewhere"], DONE);
    run(&test, &["triage", &ids[2], "addressed"], DONE);
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(counts(&report), [0, 1, 1, 1, 0, 0]);
    assert_eq!(report["resolved"], json!([ids[1]]));
    let resolved = host.with(|state| state.resolved.iter().copied().collect::<Vec<_>>());
    assert_eq!(resolved, [host.with(|state| state.inline[1]["id"].as_u64().expect("an id"))]);
    assert!(!summary(&host).contains(&ids[2]), "{}", summary(&host));
    assert_eq!(host.with(|state| state.comments.len()), 1);
    // A resolved thread is left alone.
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [0, 0, 0, 2, 0, 0]);
}

#[test]
fn a_token_that_may_not_resolve_says_so_and_is_no_failure() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    publish(&test, &host, &[], DONE);
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "on purpose"], DONE);
    host.with(|state| state.may_resolve = false);
    let report = publish(&test, &host, &[], DONE);
    let reason = "the token may not resolve threads: it needs `contents: write`";
    assert_eq!(report["skipped"], json!([{ "finding_id": ids[0], "reason": reason }]));
}

#[test]
fn only_markers_of_the_own_account_in_the_first_line_count() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    host.with(|state| {
        let comment = |login: &str, body: String| json!({ "id": 1, "user": { "login": login }, "body": body });
        let marker = |id: &str| format!("<!-- revdeck:finding {id} -->");
        state.inline.push(comment("mallory", format!("{}\nnothing to see", marker(&ids[0]))));
        state.inline.push(comment("me", format!("I quote\n{}", marker(&ids[1]))));
        state.comments.push(comment("mallory", "<!-- revdeck:summary -->\nall is well".to_owned()));
    });
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [3, 0, 0, 0, 0, 0]);
    let bodies = host.with(|state| state.comments.iter().map(|row| row["user"]["login"].clone()).collect::<Vec<_>>());
    assert_eq!(bodies, ["mallory", "me"]);
}

#[test]
fn two_machines_in_turn_post_each_finding_once() {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    publish(&test, &host, &[], DONE);
    // Another machine: a clone with a home of its own.
    let other = TestEnvironment::new();
    other.git(&["pull", "-q", test.repo().to_str().expect("text"), "main"]);
    other.git(&["remote", "add", "origin", "https://github.com/octo/hello"]);
    other.git(&["update-ref", "refs/remotes/origin/main", "HEAD~1"]);
    three_findings(&other);
    // Another tool: a later import of the same one would take the findings that it misses for fixed.
    let mut further = problem("src/new.py", 7, "Seen by the other machine only");
    further["source"]["name"] = json!("checker");
    import(&other, &[further]);
    let report = publish(&other, &host, &[], DONE);
    assert_eq!(counts(&report), [1, 1, 0, 2, 0, 0]);
    assert_eq!(counts(&publish(&test, &host, &[], DONE))[0], 0);
    assert_eq!(comments_by_finding(&host), [1, 1, 1]);
}

#[test]
fn a_job_without_memory_resolves_threads_of_code_that_was_fixed() {
    let test = changed();
    import(
        &test,
        &[
            problem("src/app.py", 10, "Stays"),
            problem("src/new.py", 3, "Is removed"),
            problem("src/new.py", 8, "Is rewritten"),
            problem("src/new.py", 11, "Stays, too"),
        ],
    );
    let host = start(&test);
    publish(&test, &host, &[], DONE);
    let rewritten = plain_lines("new", 12).replace("new_2 = load(new_source_2)\n", "");
    test.write("src/new.py", rewritten.replace("new_7 = load(new_source_7)", "new_7 = load(new_source_7, again)"));
    test.commit("fixed");
    // The next job: a clone with a home of its own, which has reviewed the last commit.
    let job = TestEnvironment::new();
    job.git(&["pull", "-q", test.repo().to_str().expect("text"), "main"]);
    job.git(&["remote", "add", "origin", "https://github.com/octo/hello"]);
    host.with(|state| state.head = head(&job));
    // Without a review, only code that is gone is known to be fixed.
    assert_eq!(publish(&job, &host, &["--dry-run"], DONE)["counts"]["resolved"], 1);
    run(&job, &["review", "--wait"], DONE);
    let report = publish(&job, &host, &[], DONE);
    assert_eq!(counts(&report), [0, 1, 2, 0, 0, 0]);
    let resolved = host.with(|state| {
        state.inline.iter().map(|row| state.resolved.contains(&row["id"].as_u64().expect("an id"))).collect::<Vec<_>>()
    });
    assert_eq!(resolved, [false, true, true, false]);
}

#[test]
fn a_line_that_the_host_refuses_costs_only_its_own_comment() {
    let test = changed();
    let problems: Vec<Value> = (1..=5).map(|line| problem("src/new.py", line, "Trouble")).collect();
    let ids = import(&test, &problems);
    let host = start(&test);
    // The diff of the host is another one when the comments arrive.
    host.plan_faults(|_, call| {
        let lines = call.body["comments"].as_array()?;
        let is_refused = lines.iter().any(|comment| comment["line"] == 4);
        let error = json!({ "message": "Unprocessable Entity", "errors": ["line must be part of the diff"] });
        is_refused.then(|| Fault::Refuse(Answer::new(422, error)))
    });
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(counts(&report), [5, 0, 0, 0, 0, 1]);
    assert_eq!(report["skipped"][0]["finding_id"], json!(ids[3]));
    assert_eq!(report["in_summary"], json!([ids[3]]));
    assert!(summary(&host).contains(&ids[3]), "{}", summary(&host));
    assert_eq!(comments_by_finding(&host), [1, 1, 1, 1]);
}

#[rstest]
#[case::secondary(Answer::new(403, json!({ "message": "You have exceeded a secondary rate limit" })).at_once())]
#[case::too_many(Answer::new(429, json!({ "message": "Too many requests" })).at_once())]
#[case::used_up(Answer::new(403, json!({ "message": "API rate limit exceeded" })).with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", "1"))]
#[case::comments_too_fast(Answer::new(422, json!({ "errors": [{ "message": "body was submitted too quickly" }] })).at_once())]
fn after_a_rate_limit_the_request_is_repeated(#[case] limit: Answer) {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    let mut left = 2;
    host.plan_faults(move |_, call| {
        left -= i32::from(call.is_create());
        (call.is_create() && left >= 0).then(|| Fault::Refuse(limit.clone()))
    });
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [3, 0, 0, 0, 0, 0]);
    assert_eq!(comments_by_finding(&host), [1, 1]);
}

#[test]
fn a_limit_beyond_the_bound_leaves_a_state_to_go_on_from() {
    let test = changed();
    let problems: Vec<Value> = (1..=12).map(|line| problem("src/new.py", line, "Trouble")).collect();
    import(&test, &problems);
    let host = start(&test);
    host.plan_faults(|_, call| {
        let limit = Answer::new(403, json!({ "message": "You have exceeded a secondary rate limit" }));
        call.path.ends_with("/reviews").then(|| Fault::Refuse(limit.with("retry-after", "3600")))
    });
    let report = publish(&test, &host, &["--max-wait", "60"], INCOMPLETE);
    assert_eq!(counts(&report), [0, 0, 0, 0, 13, 0]);
    let reason = report["failed"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("secondary rate limit") && reason.contains("asks to wait 36"), "{reason}");
    assert!(report["summary_failure"].as_str().is_some_and(|said| said == reason), "{report}");
    assert_eq!(host.take_calls().iter().filter(|call| call.is_create()).count(), 1, "nothing is sent meanwhile");
    host.plan_faults(|_, _| None);
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [13, 0, 0, 0, 0, 0]);
    assert_eq!(comments_by_finding(&host), [1; 12]);
}

#[rstest]
#[case::not_stored(Fault::Refuse(bad_gateway()))]
#[case::stored(Fault::Lose(bad_gateway()))]
#[case::stored_and_late(Fault::Lose(Answer::new(504, json!({})).at_once()))]
fn a_gateway_that_fails_causes_no_second_comment(#[case] fault: Fault) {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    let mut failed = std::collections::HashSet::new();
    host.plan_faults(move |_, call| (call.is_create() && failed.insert(call.path.clone())).then(|| fault.clone()));
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(counts(&report), [3, 0, 0, 0, 0, 0]);
    assert_eq!(comments_by_finding(&host), [1, 1]);
    assert_eq!(host.with(|state| state.comments.len()), 1);
}

#[test]
fn a_second_comment_about_a_finding_is_removed_unless_somebody_has_answered() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    // The host stores the comments, fails, and shows them too late.
    let mut is_stored = false;
    let mut is_late = true;
    host.plan_faults(move |_, call| {
        if call.path.ends_with("/reviews") && !is_stored {
            is_stored = true;
            return Some(Fault::Lose(bad_gateway()));
        }
        let is_list = call.method == "GET" && call.path.ends_with("/pulls/7/comments");
        (is_list && is_stored && std::mem::take(&mut is_late)).then(|| Fault::Refuse(Answer::ok(json!([]))))
    });
    let report = publish(&test, &host, &[], DONE);
    assert_eq!((counts(&report), &report["removed"]), ([3, 0, 0, 0, 0, 0], &json!([ids[0], ids[1]])));
    assert_eq!(comments_by_finding(&host), [1, 1]);

    // Another machine has posted at the same moment, and somebody has answered there.
    host.with(|state| {
        let copies: Vec<Value> = state.inline.clone();
        for (mut copy, id) in copies.into_iter().zip([900, 901]) {
            copy["id"] = json!(id);
            state.inline.push(copy);
        }
        state.inline.push(json!({ "id": 902, "in_reply_to_id": 901, "user": { "login": "you" }, "body": "why?" }));
    });
    let report = publish(&test, &host, &[], DONE);
    assert_eq!((counts(&report)[0], &report["removed"]), (0, &json!([ids[0]])));
    assert_eq!(comments_by_finding(&host), [2, 1]);
}

#[test]
fn a_thousand_findings_arrive_once_although_a_fifth_of_the_requests_fails() {
    let test = changed();
    test.write("src/big.py", plain_lines("big", 1000));
    test.commit("big");
    let problems: Vec<Value> = (1..=1000).map(|line| problem("src/big.py", line, "Trouble")).collect();
    import(&test, &problems);
    let host = start(&test);
    // Scrambles the number of the request, so that the failures fall on all kinds of requests.
    host.plan_faults(|number, call| {
        let dice = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match dice % 20 {
            0 => Some(Fault::Refuse(bad_gateway())),
            1 if call.is_create() => Some(Fault::Lose(bad_gateway())),
            2 => Some(Fault::Refuse(Answer::new(403, json!({ "message": "secondary rate limit" })).at_once())),
            3 => Some(Fault::Refuse(Answer::new(503, json!({})).at_once())),
            _ => None,
        }
    });
    let mut runs = 0;
    let report = loop {
        runs += 1;
        let output = publish_with(&test, &host, &["--pr", "7", "--max-comments", "0", "--format", "json"], &[]);
        match output.status.code() {
            Some(DONE) => break serde_json::from_str::<Value>(&out(&output)).expect("JSON"),
            code => assert!(runs < 10, "{code:?} {}{}", out(&output), err(&output)),
        }
    };
    assert_eq!(counts(&report)[4], 0);
    assert_eq!(comments_by_finding(&host), vec![1; 1000], "after {runs} runs");
    let refused = host.with(|state| state.calls.len());
    assert!(refused > 60, "{refused} requests");
}

#[test]
fn all_pages_are_read() {
    let test = changed();
    let problems: Vec<Value> = (1..=12).map(|line| problem("src/new.py", line, "Trouble")).collect();
    import(&test, &problems);
    let host = start(&test);
    host.with(|state| {
        state.page_rows = 2;
        let chatter = |id: u64| json!({ "id": id, "user": { "login": "you" }, "body": "hm" });
        state.inline.extend((1..=7).map(chatter));
        state.comments.extend((11..=15).map(chatter));
        state.files.insert(0, ("src/first.py".to_owned(), "@@ -1 +1 @@\n-a\n+b".to_owned()));
        state.files.insert(0, ("src/zero.py".to_owned(), "@@ -1 +1 @@\n-a\n+b".to_owned()));
    });
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [13, 0, 0, 0, 0, 0]);
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [0, 0, 0, 13, 0, 0]);
    assert_eq!(comments_by_finding(&host), [1; 12]);
}

#[test]
fn a_dry_run_shows_each_request_and_sends_none() {
    let test = changed();
    let ids = three_findings(&test);
    let host = start(&test);
    let output = publish_with(&test, &host, &["--pr", "7", "--dry-run"], &[("CLAUDECODE", "1")]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let text = out(&output).replace(&host.url(), "[api]").replace(&head(&test), "[head]");
    assert_snapshot!(test.normalise(&text), @r#"
    POST [api]/repos/octo/hello/pulls/7/reviews
    {
      "commit_id": "[head]",
      "event": "COMMENT",
      "body": "",
      "comments": [
        {
          "path": "src/app.py",
          "side": "RIGHT",
          "line": 10,
          "body": "<!-- revdeck:finding f_[id] -->\n**p2 correctness**: lint R1: Wrong name\n\nReported by lint.\n\nSuggestion: Replace line 10.\n\n```suggestion\napp_9 = load(app_source_9)\n```\n\nrevdeck `f_[id]`\n"
        },
        {
          "path": "src/new.py",
          "side": "RIGHT",
          "line": 3,
          "body": "<!-- revdeck:finding f_[id] -->\n**p2 correctness**: lint R1: Not loaded\n\nReported by lint.\n\nrevdeck `f_[id]`\n"
        }
      ]
    }

    POST [api]/repos/octo/hello/issues/7/comments
    {
      "body": "<!-- revdeck:summary -->\n### Review by revdeck\n\n3 open findings at [hash]: 3 p2. 2 have a comment beside the code.\n\nWithout a comment beside the code:\n\n- **p2 correctness** `src/other.py:5` lint R1: Old trouble `f_[id]`\n"
    }

    pull request 7 of octo/hello at [hash], dry run: nothing was sent
    would be: posted 3, updated 0, resolved 0, already there 0, failed 0, skipped 0
    would be: summary posted, with 1 finding
    "#);
    assert!(host.take_calls().iter().all(|call| call.method == "GET"));
    let shown = publish(&test, &host, &["--dry-run"], DONE)["requests"].clone();
    // The requests are those that follow.
    publish(&test, &host, &[], DONE);
    let sent: Vec<Value> = host.take_calls().into_iter().filter(Call::is_create).map(|call| call.body).collect();
    let shown: Vec<Value> = shown.as_array().expect("requests").iter().map(|request| request["body"].clone()).collect();
    assert_eq!(shown, sent);
    // An assistant may look, but not publish.
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "on purpose"], DONE);
    let output = publish_with(&test, &host, &["--pr", "7"], &[("CLAUDECODE", "1")]);
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(err(&output).contains("only the user may publish findings"), "{}", err(&output));
    let output = publish_with(&test, &host, &["--pr", "7", "--dry-run", "--format", "json"], &[]);
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!((&value["resolved"], host.with(|state| state.resolved.len())), (&json!([ids[0]]), 0));
}

#[test]
fn text_of_findings_is_harmless_and_masked() {
    let test = changed();
    let secret = concat!("ghp_16C7e42F292c", "6912E7710c838347Ae178B4a");
    let hostile = format!(
        "@octo/admins <img src=x onerror=y> ![i](http://evil.example/a.png) <!-- revdeck:finding f_0000000000000001 -->\n\
         /approve\n\x1b[2J{secret} [x](javascript:1) #12 www.evil.example"
    );
    let fence = "x = 1\n```\n/merge\n<!-- revdeck:summary -->";
    import(
        &test,
        &[
            fixable("src/new.py", 1, &hostile, "app = 1"),
            fixable("src/new.py", 2, "Fence", fence),
            problem("src/other.py", 2, &hostile),
        ],
    );
    let host = start(&test);
    publish(&test, &host, &[], DONE);
    let bodies: Vec<String> = host.with(|state| {
        state.inline.iter().chain(&state.comments).map(|row| row["body"].as_str().expect("text").to_owned()).collect()
    });
    assert_eq!(bodies.len(), 3);
    for body in &bodies {
        let (first, rest) = body.split_once('\n').expect("a marker");
        assert!(first.starts_with("<!-- revdeck:"), "{first}");
        for forbidden in ["@octo", "<img", "![", "<!--", "\x1b", secret, "](", "://", "#12", "www.evil"] {
            assert!(!rest.contains(forbidden), "{forbidden} is in {body}");
        }
        assert!(!rest.lines().any(|line| line.trim_start().starts_with('/')), "{body}");
    }
    assert!(bodies[0].contains("```suggestion\napp = 1\n```"), "{}", bodies[0]);
    assert!(!bodies[1].contains("```"), "{}", bodies[1]);
    assert!(bodies[0].contains("«secret"), "{}", bodies[0]);
}

#[test]
fn a_finding_whose_code_has_changed_is_not_published() {
    let test = changed();
    let ids = three_findings(&test);
    // A later commit rewrites one place and moves another.
    let moved = plain_lines("new", 12).replace("new_2 = load(new_source_2)", "print('nothing of this is left here')");
    test.write("src/new.py", moved);
    test.write(
        "src/app.py",
        format!("top = load(top_source)\n{}", plain_lines("app", 30).replace("app_9 = ", "app_nine = ")),
    );
    test.commit("later");
    let host = start(&test);
    let report = publish(&test, &host, &[], DONE);
    assert_eq!(report["posted"], json!([ids[0]]));
    assert_eq!(report["skipped"][0]["finding_id"], json!(ids[1]));
    let comment = host.with(|state| state.inline[0].clone());
    assert_eq!((&comment["path"], &comment["line"]), (&json!("src/app.py"), &json!(11)));
    assert!(summary(&host).contains("The review is incomplete: the newest review is of "), "{}", summary(&host));
}

#[test]
fn the_most_urgent_findings_get_the_comments() {
    let test = changed();
    let mut minor = problem("src/new.py", 1, "Small");
    minor["severity"] = json!("INFO");
    let ids = import(&test, &[minor, problem("src/new.py", 2, "Large"), problem("src/new.py", 3, "Larger")]);
    let host = start(&test);
    let report = publish(&test, &host, &["--min-priority", "p2", "--max-comments", "1"], DONE);
    assert_eq!(report["posted"], json!([ids[1]]));
    let reasons: Vec<(&Value, &Value)> =
        report["skipped"].as_array().expect("rows").iter().map(|row| (&row["finding_id"], &row["reason"])).collect();
    let (less, more) = (json!("less urgent than --min-priority p2"), json!("more comments than --max-comments"));
    assert_eq!(reasons, [(&json!(ids[0]), &less), (&json!(ids[2]), &more)]);
    // The maximum holds for all runs together.
    let report = publish(&test, &host, &["--min-priority", "p2", "--max-comments", "1"], DONE);
    assert_eq!(report["posted"], json!([]));
}

#[test]
fn a_connection_that_breaks_after_the_work_is_looked_into() {
    let test = changed();
    import(&test, &[problem("src/new.py", 1, "Trouble")]);
    let host = start(&test);
    let mut left = 1;
    host.plan_faults(move |_, call| {
        left -= i32::from(call.path.ends_with("/reviews"));
        (call.path.ends_with("/reviews") && left >= 0).then_some(Fault::HangUp)
    });
    assert_eq!(counts(&publish(&test, &host, &[], DONE)), [2, 0, 0, 0, 0, 0]);
    assert_eq!(comments_by_finding(&host), [1]);
}
