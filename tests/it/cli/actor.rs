//! Who acts at the command line: a person decides, an assistant claims.

use std::process::Output;

use super::*;

/// Runs revdeck as an assistant would: with the variable that it sets.
fn assistant(test: &TestEnvironment, arguments: &[&str]) -> Output {
    test.command(env!("CARGO_BIN_EXE_revdeck")).env("CLAUDECODE", "1").args(arguments).output().expect("revdeck starts")
}

#[track_caller]
fn refused(test: &TestEnvironment, arguments: &[&str]) -> String {
    let output = assistant(test, arguments);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(USAGE), ""), "{arguments:?}");
    test.normalise(&err(&output))
}

fn history(test: &TestEnvironment, id: &str) -> Vec<String> {
    let shown = test.json(&["show", id, "--format", "json"], DONE);
    let line = |line: &Value| {
        [&line["actor"], &line["action"], &line["status"]]
            .map(|word| word.as_str().expect("a word").to_owned())
            .join(" ")
    };
    list(&shown, "history").iter().map(line).collect()
}

#[test]
fn an_assistant_claims_and_takes_back_its_own_claims_only() {
    let test = reviewed();
    let ids = finding_ids(&test);
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "intended"], DONE);
    assert!(assistant(&test, &["triage", &ids[1], "addressed", "--reason", "rewritten"]).status.success());
    assert_eq!(history(&test, &ids[1]), ["assistant set addressed"]);
    assert_snapshot!(test.output(&["show", &ids[1]], DONE), @"
    f_[id]  p3  COMPLEX_FUNCTIONS  addressed
    Function `wide` is complex: 8 parameters
    wide.py:1-2

         1  def wide(a, b, c, d, e, f, g, h):

    8 parameters (limit 7): every path has to be understood and tested.

    severity low · confidence high · reported [duration] ago
    first run [run] · last run [run]
    [duration] ago  assistant set open -> addressed: rewritten
    addressed: claimed by an assistant [duration] ago, not confirmed by a review yet
    ");

    assert_snapshot!(refused(&test, &["triage", &ids[1], "dismissed", "--reason", "no"]), @"
    error: f_[id] cannot become dismissed: only the user may set dismissed
      hint: this counts as the command of an assistant (CLAUDECODE is set): an assistant may claim a fix with `revdeck triage FINDING addressed`; the user decides in the cockpit or in a terminal of their own
    ");
    for (arguments, message) in [
        (&["triage", ids[1].as_str(), "open"][..], "error: f_[id] cannot become open: only the user may set open\n"),
        (
            &["triage", ids[0].as_str(), "addressed"],
            "error: f_[id] cannot become addressed: it was dismissed by the user, and only the user may change that\n",
        ),
        (&["mute", "LONG_METHOD"], "error: only the user may mute kinds of findings\n"),
        (&["unmute", "LONG_METHOD"], "error: only the user may unmute kinds of findings\n"),
        (
            &["cancel", "latest", "--reason", "slow"],
            "error: only the user may cancel a review that no assistant asked for\n",
        ),
    ] {
        assert_eq!(refused(&test, arguments).split_inclusive('\n').next(), Some(message));
    }
    // The last decision is the claim; below it is the user's dismissal.
    assert!(assistant(&test, &["undo"]).status.success());
    assert_eq!(history(&test, &ids[1]), ["assistant set addressed", "assistant undo open"]);
    assert_snapshot!(refused(&test, &["undo"]), @"
    error: no claim of an assistant can be taken back or made again
      hint: this counts as the command of an assistant (CLAUDECODE is set): an assistant may claim a fix with `revdeck triage FINDING addressed`; the user decides in the cockpit or in a terminal of their own
    ");
    assert_eq!(history(&test, &ids[0]), ["user set dismissed"]);
    assert!(assistant(&test, &["redo"]).status.success());
    // The user's own step is not the assistant's.
    assert_eq!(run(&test, &["undo"], DONE), format!("{}  dismissed -> open\n", ids[0]));
    assert_eq!(history(&test, &ids[1]).last().map(String::as_str), Some("assistant redo addressed"));
}

#[test]
fn a_request_of_an_assistant_is_recorded_as_that() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    let output = assistant(&test, &["review", "--wait", "--format", "json"]);
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(value["run"]["source"], "assistant");
    let id = value["run"]["run_id"].as_str().expect("an id");
    let output = assistant(&test, &["cancel", id, "--reason", "not needed"]);
    assert!(output.status.success(), "its own review: {}", err(&output));
}

#[test]
fn a_job_of_continuous_integration_is_recorded_as_that() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    let in_job = |arguments: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.env("GITLAB_CI", "true").args(arguments).output().expect("revdeck starts")
    };
    let value: Value = serde_json::from_str(&out(&in_job(&["review", "--wait", "--format", "json"]))).expect("JSON");
    assert_eq!(value["run"]["source"], "cli");
    assert_eq!(value["run"]["ci"], true);
    let shown = run(&test, &["show", "latest"], DONE);
    assert!(shown.contains("(cli in CI)"), "{shown}");
    let id = finding_ids(&test).remove(0);
    let output = in_job(&["triage", &id, "dismissed", "--reason", "intended"]);
    assert!(output.status.success(), "{}", err(&output));
    // A person who takes it back at a terminal is no job.
    run(&test, &["undo"], DONE);
    // Older versions read the actor, and skip what stands beside it.
    assert_eq!(history(&test, &id), ["user set dismissed", "user undo open"]);
    let shown = test.json(&["show", &id, "--format", "json"], DONE);
    let marks: Vec<&Value> = list(&shown, "history").iter().map(|line| &line["ci"]).collect();
    assert_eq!(marks, [&Value::Bool(true), &Value::Null]);
    let events = lines_with(&run(&test, &["show", &id], DONE), |line| line.contains(" -> "));
    assert!(events.contains("ci set open -> dismissed: intended"), "{events}");
    assert!(events.contains("user undo dismissed -> open"), "{events}");
}

#[test]
fn the_variable_of_revdeck_wins() {
    let test = reviewed();
    let id = finding_ids(&test).remove(0);
    let revdeck = |actor: &str, arguments: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.env("CLAUDECODE", "1").env("REVDECK_ACTOR", actor).args(arguments).output().expect("revdeck starts")
    };
    assert!(revdeck("user", &["triage", &id, "dismissed", "--reason", "intended"]).status.success());
    assert_eq!(history(&test, &id), ["user set dismissed"]);
    let output = revdeck("engine", &["triage", &id, "open"]);
    assert_eq!(output.status.code(), Some(USAGE));
    assert_snapshot!(err(&output), @r#"
    error: REVDECK_ACTOR is "engine", which is nobody who acts
      hint: set it to user, assistant or ci, or unset it
    "#);
}
