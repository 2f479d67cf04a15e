//! Integration tests: every place that shows a run says the same about its freshness.

use revdeck::domain::RunId;
use serde_json::{Value, json};

use crate::env::{DONE, lines_with, out};
use crate::runner::place::{Place, wait_for};

/// Returns the freshness of a run in `runs`, `show`, the JSON of both and of `details`, as seen at `now`.
fn freshness(place: &Place, run: &RunId, now: &str) -> Vec<String> {
    let revdeck = |arguments: &[&str]| {
        let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        if !now.is_empty() {
            command.env("REVDECK_NOW", now);
        }
        let output = command.args(arguments).output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(DONE), "{arguments:?}");
        out(&output)
    };
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&revdeck(&[arguments, &["--format", "json"]].concat())).expect("JSON")
    };
    let word = |value: &Value| value["freshness"].as_str().expect("a word").to_owned();
    let listed = lines_with(&revdeck(&["runs"]), |line| line.starts_with(run.as_str()));
    let shown = lines_with(&revdeck(&["show", run.as_str()]), |line| line.trim_start().starts_with("freshness"));
    let runs = json(&["runs"]);
    let listed_json = runs["runs"].as_array().expect("runs").iter().find(|one| one["run_id"] == run.as_str());
    vec![
        listed.split_whitespace().nth(2).expect("a third column").to_owned(),
        shown.split([' ', ':']).filter(|word| !word.is_empty()).nth(1).expect("a word").to_owned(),
        word(listed_json.expect("the run is listed")),
        word(&json(&["show", run.as_str()])["run"]),
        word(&json(&["details", run.as_str()])["run"]),
    ]
}

fn ledger(place: &Place, now: &str) -> String {
    let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
    let ledger = out(&command.arg("ledger").env("REVDECK_NOW", now).output().expect("revdeck starts"));
    let word = ledger.split("freshness=\"").nth(1).and_then(|rest| rest.split('"').next());
    word.unwrap_or_else(|| panic!("no active run in {ledger:?}")).to_owned()
}

#[test]
fn a_commit_makes_the_review_of_the_worktree_obsolete_wherever_it_is_shown() {
    let place = Place::new();
    place.modules("a", 1);
    let run = place.review(&["--worktree", "--wait"]);
    assert_eq!(freshness(&place, &run, ""), ["current"; 5]);
    place.test.commit("a");
    assert_eq!(freshness(&place, &run, ""), ["obsolete"; 5]);
    assert!(place.revdeck(&["show", run.as_str()]).contains("freshness  obsolete: the code has changed since\n"));
    // The review of a commit is about the commit, whatever comes after it.
    let commit = place.review(&["--commit", "HEAD", "--wait"]);
    place.modules("b", 1);
    assert_eq!(freshness(&place, &commit, ""), ["current"; 5]);
    // Another request moves the epoch, and nobody has compared the first scope again.
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    assert_eq!(freshness(&place, &run, ""), ["unknown"; 5]);
}

#[test]
fn a_worker_that_streams_for_eleven_minutes_is_in_a_long_step_and_a_silent_one_is_inactive() {
    let place = Place::new();
    place.hold_reviews("");
    place.modules("a", 1);
    let run = place.review(&["--worktree"]);
    let pulse = place.store().root().join("events").join(format!("{run}.pulse"));
    let waits = || std::fs::read_to_string(&pulse).ok().filter(|beat| beat.contains("\"state\":\"waiting\""));
    let mut beat: Value = serde_json::from_str(&wait_for("the request", waits)).expect("JSON");
    let since: revdeck::domain::Time = beat["since"].as_str().expect("a time").parse().expect("a time");
    let after = |seconds: i64| (since + std::time::Duration::from_secs(seconds.unsigned_abs())).to_string();

    for (seconds, expected) in [(5, "current"), (120, "long_running"), (660, "inactive")] {
        let now = after(seconds);
        assert_eq!(freshness(&place, &run, &now), [expected; 5], "after {seconds} s");
        assert_eq!(ledger(&place, &now), expected, "after {seconds} s");
    }
    // The same moment, but the answer has been arriving all the time.
    (beat["state"], beat["last_byte_at"]) = (json!("receiving"), json!(after(655)));
    std::fs::write(&pulse, beat.to_string()).expect("the heartbeat is writable");
    assert_eq!(freshness(&place, &run, &after(660)), ["long_running"; 5]);
    assert_eq!(ledger(&place, &after(660)), "long_running");
    place.let_end();
    place.ended(&run);
}
