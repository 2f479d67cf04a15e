//! Requests of an assistant: it claims and asks, and the policy answers.

use insta::assert_snapshot;

use super::*;
use crate::runner::place::{Place, wait_for};

fn history(test: &TestEnvironment, id: &str) -> Vec<String> {
    let shown = test.json(&["show", id, "--format", "json"], DONE);
    let line = |line: &Value| format!("{} {} {}", text(&line["actor"]), text(&line["status"]), text(&line["reason"]));
    shown["history"].as_array().expect("a history").iter().map(line).collect()
}

#[test]
fn a_claim_is_recorded_once_as_the_assistants() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let id = finding_ids(&mut client).remove(0);
    let claimed = client.tool("claim_addressed", json!({ "finding_id": id, "note": "split into\ntwo functions" }));
    assert_eq!((&claimed["status"], &claimed["previous"]), (&json!("addressed"), &json!("open")));
    assert_eq!(claimed["changed"], true);
    assert_eq!(history(&test, &id), ["assistant addressed split into two functions"]);
    let again = client.tool("claim_addressed", json!({ "finding_id": id, "note": "again" }));
    assert_eq!((&again["changed"], history(&test, &id).len()), (&json!(false), 1));
    let answer = client.tool("request_review", json!({ "scope": "all", "wait_seconds": 60 }));
    assert_eq!((&answer["action"], &answer["ended"]), (&json!("launch"), &json!(true)), "{answer}");
    let details = client.tool("auto_review_details", json!({ "run_id": id }));
    assert_eq!(details["findings"][0]["history"][0]["actor"], "assistant");
}

#[test]
fn what_the_user_decided_stays() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let id = finding_ids(&mut client).remove(0);
    run(&test, &["triage", &id, "dismissed", "--reason", "intended"], DONE);
    let said = client.failure("claim_addressed", json!({ "finding_id": id, "note": "fixed" }));
    assert_snapshot!(test.normalise(&said), @"
    f_[id] cannot become addressed: it was dismissed by the user, and only the user may change that
    hint: an assistant claims fixes of open and unresolved findings; the user decides about the others
    ");
    assert_eq!(history(&test, &id), ["user dismissed intended"]);
}

#[test]
fn a_dispute_is_a_note_for_the_user_and_changes_no_status() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let id = finding_ids(&mut client).remove(1);
    let disputed = client.tool("dispute", json!({ "finding_id": id, "reason": "the signature\nis given" }));
    assert_eq!((&disputed["status"], &disputed["recorded"]), (&json!("open"), &json!(true)));
    let again = client.tool("dispute", json!({ "finding_id": id, "reason": "the signature\nis given" }));
    assert_eq!(again["recorded"], false);
    assert_eq!(history(&test, &id), [""; 0]);
    let listed = client.tool("list_findings", json!({}));
    assert_eq!([&listed["findings"][0]["disputed"], &listed["findings"][1]["disputed"]], [&json!(false), &json!(true)]);
    let details = client.tool("auto_review_details", json!({ "run_id": id }));
    assert_eq!(details["findings"][0]["notes"][0]["text"], "the signature is given");
    let shown = run(&test, &["show", &id], DONE);
    assert!(shown.contains("disputed by an assistant ") && shown.contains("ago: the signature is given\n"), "{shown}");
    let shown = test.json(&["show", &id, "--format", "json"], DONE);
    assert_eq!((&shown["notes"][0]["kind"], &shown["notes"][0]["actor"]), (&json!("dispute"), &json!("assistant")));
    assert!(run(&test, &["store", "verify"], DONE).starts_with("the store is sound"));
}

#[test]
fn the_policy_answers_a_request_for_a_review() {
    let test = reviewed();
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    let mut client = McpClient::start(&test, &[]);
    let first = client.tool("request_review", json!({ "scope": "commit:HEAD" }));
    assert_eq!((&first["action"], &first["ended"]), (&json!("reuse"), &json!(true)), "{first}");
    test.write("late.py", long_function("late"));
    let begun = client.tool("request_review", json!({ "scope": "worktree", "wait_seconds": 60 }));
    assert_eq!((&begun["action"], &begun["run"]["scope"]), (&json!("launch"), &json!("worktree")));
    let run_id = text(&begun["run"]["run_id"]);
    let next = text(&begun["next"]);
    assert!(next.starts_with(&format!("auto_review_details(run_id=\"{run_id}\") returns the ")), "{next}");
    assert_eq!(test.json(&["show", &run_id, "--format", "json"], DONE)["run"]["source"], "assistant");
}

#[test]
fn an_assistant_starts_only_as_many_reviews_as_the_settings_allow() {
    let test = reviewed();
    test.settings("[assistants]\nreviews_per_hour = 3\nreviews_per_session = 2\n");
    let mut client = McpClient::start(&test, &[]);
    let ask = |client: &mut McpClient, file: &str| {
        test.write(file, long_function(&file[..2]));
        client.tool("request_review", json!({ "scope": "worktree", "wait_seconds": 60 }))
    };
    assert_eq!(ask(&mut client, "a1.py")["action"], "launch");
    assert_eq!(ask(&mut client, "a2.py")["action"], "launch");
    let refused = ask(&mut client, "a3.py");
    let reason = "refused: this session has started 2 reviews, as many as `assistants.reviews_per_session` allows; the \
                  user can ask for one with `revdeck review`";
    assert_eq!(
        (&refused["action"], &refused["reason"], &refused["ended"]),
        (&json!("skip"), &json!(reason), &json!(true))
    );
    assert_eq!(refused["next"], "no review was started, for the reason above; if one is needed, tell the user");
    // Recorded as any other decision, once for the same code.
    let run_id = text(&refused["run"]["run_id"]);
    let shown = test.json(&["show", &run_id, "--format", "json"], DONE);
    assert_eq!((&shown["run"]["status"], &shown["run"]["decision"]), (&json!("skipped"), &json!(reason)));
    let again = client.tool("request_review", json!({ "scope": "worktree" }));
    assert_eq!(again["run"]["run_id"], refused["run"]["run_id"]);
    // An answer that exists is still given.
    assert_eq!(client.tool("request_review", json!({ "scope": "commit:HEAD" }))["action"], "reuse");
    // Another session has a count of its own; the hour is everybody's.
    let mut other = McpClient::start(&test, &[]);
    assert_eq!(ask(&mut other, "a4.py")["action"], "launch");
    let refused = ask(&mut other, "a5.py");
    assert!(
        text(&refused["reason"]).starts_with("refused: assistants have started 3 reviews within an hour, "),
        "{refused}"
    );
    // The user is not limited.
    run(&test, &["review", "worktree", "--wait"], DONE);
}

#[test]
fn a_waiting_call_reports_progress_and_ends_when_it_is_cancelled() {
    let place = Place::new();
    place.hold_reviews("");
    place.modules("new", 1);
    let mut client = McpClient::start(&place.test, &[]);
    let arguments = json!({ "scope": "worktree", "wait_seconds": 600 });
    let call = json!({ "name": "request_review", "arguments": arguments, "_meta": { "progressToken": "p1" } });
    let id = client.send("tools/call", call);
    let step = client.notification("progress", |message| message["method"] == "notifications/progress");
    assert_eq!((&step["params"]["progressToken"], &step["params"]["total"]), (&json!("p1"), &json!(100.0)));
    assert!(!text(&step["params"]["message"]).is_empty());
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "the user went on" }));
    // The server answers other calls, and the review goes on without the call.
    let status = client.tool("review_status", json!({}));
    assert_eq!(status["active"].as_array().map(Vec::len), Some(1), "{status}");
    let run_id = text(&status["active"][0]["run_id"]);
    let again = client.tool("request_review", json!({ "scope": "worktree" }));
    assert_eq!((&again["action"], &again["ended"]), (&json!("adopt"), &json!(false)));
    let ended = client.tool("request_cancel", json!({ "run_id": run_id, "reason": "no longer needed" }));
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let shown = place.test.json(&["show", &run_id, "--format", "json"], DONE);
    assert_eq!(shown["run"]["cancel_note"], "no longer needed");
    let over = client.tool("request_cancel", json!({ "run_id": run_id, "reason": "again" }));
    assert_eq!(over["outcome"], "already_ended");
}

#[test]
fn a_review_of_the_user_is_not_cancelled() {
    let place = Place::new();
    place.hold_reviews("");
    place.modules("new", 1);
    let asked = place.test.json(&["review", "--format", "json"], DONE);
    let run_id = text(&asked["run"]["run_id"]);
    let mut client = McpClient::start(&place.test, &[]);
    let said = client.failure("request_cancel", json!({ "run_id": run_id, "reason": "it takes long" }));
    assert_snapshot!(place.test.normalise(&said), @"
    [run] was not requested by an assistant, so only the user may cancel it
    hint: tell the user why: `revdeck cancel [run]` ends it
    ");
    place.let_end();
    wait_for("the end of the review", || {
        let shown = place.test.json(&["show", &run_id, "--format", "json"], DONE);
        (shown["run"]["status"] == "completed").then_some(())
    });
}

#[test]
fn wrong_arguments_are_failures_that_say_what_to_do() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    for (name, arguments, expected) in [
        (
            "auto_review_details",
            json!({}),
            "the arguments of auto_review_details are wrong: missing field `run_id`\nhint: ",
        ),
        (
            "auto_review_details",
            json!({ "run_id": 7 }),
            "the arguments of auto_review_details are wrong: invalid type: integer `7`, expected a string\nhint: ",
        ),
        (
            "auto_review_details",
            json!({ "run_id": "ar_nothing" }),
            "there is no run \"ar_nothing\" in this repository\nhint: list_runs and list_findings return the ids",
        ),
        (
            "auto_review_details",
            json!({ "run_id": "latest", "max_bytes": 1_000_000 }),
            "max_bytes is 1000000, which is out of range\nhint: allowed: 3000 to 64000",
        ),
        (
            "list_findings",
            json!({ "prioritty": "p1" }),
            "the arguments of list_findings are wrong: unknown field `prioritty`, expected one of `status`, ",
        ),
        (
            "list_findings",
            json!({ "priority": "urgent" }),
            "priority: \"urgent\" is not a priority; write p0, p1, p2 or p3\nhint: write one of these words",
        ),
        (
            "list_findings",
            json!({ "status": ["fixed"] }),
            "status: \"fixed\" is none of open, unresolved, addressed, dismissed, obsolete\nhint: ",
        ),
        ("list_findings", json!({ "limit": 0 }), "limit is 0, which is out of range\nhint: allowed: 1 to 200"),
        ("list_runs", json!({ "limit": -1 }), "the arguments of list_runs are wrong: invalid value: integer `-1`, "),
        ("request_review", json!({ "scope": "nonsense" }), "scope: "),
        (
            "claim_addressed",
            json!({ "finding_id": "f_", "note": " " }),
            "note is empty\nhint: write how you fixed it, in a sentence",
        ),
        (
            "dispute",
            json!({ "finding_id": "\u{1b}[2Jx", "reason": "wrong" }),
            "there is no finding \"\u{fffd}[2Jx\" in this repository\nhint: ",
        ),
        (
            "dispute",
            json!({ "finding_id": "f_", "reason": "x".repeat(3_000) }),
            "reason has 3000 characters, 2000 are allowed\nhint: say it shorter",
        ),
    ] {
        let said = client.failure(name, arguments.clone());
        assert!(said.starts_with(expected), "{name} {arguments}: {said:?}");
    }
    let said = client.failure("request_review", json!({ "scope": "commit:no-such-revision" }));
    assert!(said.contains("no-such-revision"), "{said}");
    let unknown = client.refused("tools/call", json!({ "name": "no_such_tool", "arguments": {} }));
    assert!(unknown.starts_with("there is no tool \"no_such_tool\"; there are auto_review_ledger, "), "{unknown}");
}
