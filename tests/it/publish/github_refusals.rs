//! What `publish` refuses before or while it writes to GitHub, and what it finds out by itself.

use rstest::rstest;
use serde_json::{Value, json};

use super::fake_host::{Answer, Fault, bad_gateway};
use super::github::{counts, documented_command, publish, publish_with, start};
use super::{TOKEN, changed, import, problem, three_findings};
use crate::env::{DONE, INCOMPLETE, USAGE, err, out};

#[test]
fn in_github_actions_nothing_need_be_said() {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    host.with(|state| (state.login, state.is_app_token) = ("github-actions[bot]".to_owned(), true));
    for expected in [[3, 0, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0]] {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(documented_command("github")).args(["--format", "json"]);
        command.env("GITHUB_API_URL", host.url()).env("GITHUB_REPOSITORY", "octo/hello");
        command.env("GITHUB_REF", "refs/pull/7/merge").env("GH_TOKEN", TOKEN);
        let output = command.output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
        assert_eq!(counts(&serde_json::from_str(&out(&output)).expect("JSON")), expected);
    }
}

#[test]
fn without_the_name_of_the_account_nothing_is_posted() {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    host.with(|state| state.is_app_token = true);
    host.plan_faults(|_, call| (call.path == "/graphql").then(|| Fault::Refuse(bad_gateway())));
    let output = publish_with(&test, &host, &["--pr", "7"], &[]);
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", err(&output));
    assert!(err(&output).contains("cannot find out whose token this is: "), "{}", err(&output));
    assert!(host.take_calls().iter().all(|call| !call.is_create()));
}

#[rstest]
#[case::no_token(&[("GITHUB_TOKEN", "")], &["--pr", "7"], "there is no token: REVDECK_GITHUB_TOKEN is not set")]
#[case::plain_http(
    &[("REVDECK_GITHUB_API", "http://ghe.example.com/api/v3")], &["--pr", "7"],
    "REVDECK_GITHUB_API is no usable address of an API: the token would go to ghe.example.com over plain http"
)]
#[case::password(
    &[("REVDECK_GITHUB_API", "https://me:secret@ghe.example.com")], &["--pr", "7"], "it holds a name or a password"
)]
#[case::no_number(&[], &[], "the number of the pull request is not known")]
#[case::no_repository(&[], &["--pr", "7", "--repo", "../up"], "\"../up\" is no repository of GitHub")]
#[case::wrong_number(&[], &["--pr", "8"], "cannot read the pull request: ")]
#[case::wrong_run(&[], &["--pr", "7", "--run", "ar_nothing"], "ar_nothing")]
fn mistakes_are_named_before_anything_is_sent(
    #[case] variables: &[(&str, &str)],
    #[case] arguments: &[&str],
    #[case] says: &str,
) {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    let output = publish_with(&test, &host, arguments, variables);
    assert_eq!(output.status.code(), Some(USAGE), "{}", err(&output));
    assert!(err(&output).contains(says), "{}", err(&output));
    assert!(!err(&output).contains("secret@"), "{}", err(&output));
    assert!(host.take_calls().iter().all(|call| call.method == "GET"));
}

#[test]
fn a_remote_elsewhere_and_a_head_that_is_not_here_say_what_to_do() {
    let test = changed();
    three_findings(&test);
    let host = start(&test);
    host.with(|state| state.head = "1".repeat(40));
    let output = publish_with(&test, &host, &["--pr", "7"], &[]);
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(err(&output).contains("fetch it with `git fetch origin pull/7/head`"), "{}", err(&output));
    test.git(&["remote", "set-url", "origin", "https://git.example.com/octo/hello.git"]);
    let output = publish_with(&test, &host, &["--pr", "7"], &[("REVDECK_GITHUB_API", "")]);
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(err(&output).contains("the remote `origin` is at git.example.com, not at github.com"), "{}", err(&output));
}

#[test]
fn a_token_that_may_not_write_stops_the_sending() {
    let test = changed();
    let problems: Vec<Value> = (1..=12).map(|line| problem("src/new.py", line, "Trouble")).collect();
    import(&test, &problems);
    let host = start(&test);
    host.plan_faults(|_, call| {
        let refused = Answer::new(403, json!({ "message": "Resource not accessible by integration" }));
        call.is_create().then(|| Fault::Refuse(refused))
    });
    let report = publish(&test, &host, &[], INCOMPLETE);
    assert_eq!(counts(&report), [0, 0, 0, 0, 13, 0]);
    let said = report["failed"][0]["reason"].as_str().expect("a reason");
    assert!(said.contains("answered with 403: Resource not accessible by integration"), "{said}");
    assert_eq!(host.take_calls().iter().filter(|call| call.is_create()).count(), 2, "one review, one summary");
}
