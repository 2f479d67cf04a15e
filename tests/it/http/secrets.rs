//! Key handling: one header carries the key, and it appears in no other place.

use insta::assert_snapshot;
use revdeck::config::{ApiKeySource, ReviewerKind};
use revdeck::domain::ErrorClass;
use revdeck::reviewers::chat::Chat;
use revdeck::reviewers::http::{Endpoint, open, open_with, read_key};
use rstest::rstest;
use serde_json::json;

use crate::env::{INCOMPLETE, TestEnvironment, USAGE, err, out};

use super::server::{KEY, Notes, Quick, Server, ask, error, events, reply, request, streamed};

/// A part of the key that is long enough to help an attacker.
const PART: &str = "0123456789";

#[rstest]
#[case::message("401 Unauthorized", json!({ "error": { "message": format!("Incorrect API key provided: {KEY}.") } }).to_string())]
#[case::cut_short("401 Unauthorized", json!({ "error": { "message": format!("bad key {}…", &KEY[..20]) } }).to_string())]
#[case::escaped("401 Unauthorized", format!("{{\"error\":\"sk\\u002dtest-{PART}abcdefghijklmnop\"}}"))]
#[case::page("403 Forbidden", format!("<html><title>No {KEY}</title>"))]
#[case::words("500 Internal Server Error", format!("header x-api-key: {KEY}\n"))]
#[case::not_an_answer("200 OK", format!("<p>{KEY}"))]
#[case::event("200 OK", format!("data: {{\"error\":{{\"message\":\"{KEY}\"}}}}\n\n"))]
#[case::broken_event("200 OK", format!("data: {{{KEY}\n\n"))]
#[case::far_behind("401 Unauthorized", json!({ "error": { "message": format!("{}{KEY}", "x ".repeat(140)) } }).to_string())]
fn errors_do_not_show_it(#[case] status: &str, #[case] body: String) {
    let server = Server::new(vec![reply(status, "text/plain", &[], &body); 3]);
    let mut chat = server.chat(ReviewerKind::Openai);
    let (failed, notes) = ask(&mut chat);
    let failed = failed.expect_err("no answer");
    let shown = format!("{failed} {failed:?} {:?} {chat:?}", notes.seen);
    assert!(!shown.contains(PART), "{shown}");
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()), "it was sent");
}

#[test]
fn answers_do_not_hold_it() {
    let (start, end) = KEY.split_at(12);
    let call = json!({ "index": 0, "id": KEY, "function": { "name": KEY, "arguments": format!("{{\"key\":\"{KEY}\"}}") }, "extra_content": { "key": KEY } });
    let body = events(&[
        json!({ "model": KEY, "choices": [{ "delta": { "content": format!("Your key is {start}") } }] }),
        json!({ "choices": [{ "delta": { "content": format!("{end}, {KEY}.") } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [call], "reasoning_content": KEY }, "finish_reason": "tool_calls" }] }),
    ]);
    let server = Server::new(vec![streamed(&body)]);
    let response = ask(&mut server.chat(ReviewerKind::Openai)).0.expect("an answer");
    assert_eq!(response.text, "Your key is [key], [key].");
    let journaled = serde_json::to_string(&response).expect("JSON");
    assert!(!journaled.contains(PART), "{journaled}");
}

#[test]
fn an_endpoint_does_not_show_it() {
    let server = Server::new(Vec::new());
    let endpoint = server.endpoint(ReviewerKind::Anthropic);
    assert!(!format!("{endpoint:?}").contains(PART));
    assert!(!format!("{:?}", super::server::open(endpoint)).contains(PART));
}

#[test]
fn it_does_not_follow_to_another_host() {
    let thief = Server::new(vec![streamed("data: [DONE]\n\n")]);
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let target = format!("http://127.0.0.1:{}/v1/", thief.port);
        let server = Server::new(vec![reply(status, "text/plain", &[("location", &target)], "")]);
        let failed = ask(&mut server.chat(ReviewerKind::Openai)).0.expect_err("no answer");
        assert_eq!(failed.class, ErrorClass::Configuration);
        assert!(failed.summary.contains(&format!("redirects to {target}, which is not followed")), "{failed}");
    }
    assert!(thief.requests().is_empty());
}

#[test]
fn without_a_key_none_is_sent() {
    let server = Server::new(vec![error("401 Unauthorized", &json!({}))]);
    let mut endpoint = server.endpoint(ReviewerKind::Openai);
    endpoint.key = Some("".into());
    let failed = ask(&mut super::server::open(endpoint)).0.expect_err("no answer");
    assert!(failed.summary.contains("wants a key"), "{failed}");
    assert_eq!(server.requests()[0].header("authorization"), None);
}

fn at_home(kind: ReviewerKind) -> Endpoint {
    Endpoint { base_url: None, key: None, ..Server::new(Vec::new()).endpoint(kind) }
}

#[test]
fn a_service_that_wants_a_key_is_not_asked_without() {
    for kind in [ReviewerKind::Openai, ReviewerKind::OpenaiResponses, ReviewerKind::Anthropic, ReviewerKind::Gemini] {
        let failed = open(at_home(kind)).expect_err("no key");
        assert_eq!(failed.class, ErrorClass::Auth);
        assert!(failed.summary.contains("api_key_env"), "{failed}");
    }
    assert!(open(at_home(ReviewerKind::Ollama)).is_ok());
}

#[rstest]
#[case::no_address(|endpoint: &mut Endpoint| endpoint.base_url = Some("models".into()), "is no address")]
#[case::no_web(|endpoint: &mut Endpoint| endpoint.base_url = Some("file:///etc/passwd".into()), "no http or https")]
#[case::user(|endpoint: &mut Endpoint| endpoint.base_url = Some(format!("https://me:{KEY}@h/v1")), "name or a password")]
#[case::no_file(|endpoint: &mut Endpoint| endpoint.ca_file = Some("/nowhere/ca.pem".into()), "ca_file /nowhere/ca.pem: No such file")]
#[case::no_certificate(|endpoint: &mut Endpoint| endpoint.ca_file = Some("/dev/null".into()), "holds no certificate")]
#[case::no_model(|endpoint: &mut Endpoint| endpoint.model = " ".into(), "no name of a model")]
#[case::hostile_model(|endpoint: &mut Endpoint| endpoint.model = "a\x1b[2J".into(), "no name of a model")]
#[case::hostile_key(|endpoint: &mut Endpoint| endpoint.key = Some(format!("{KEY}\r\nx: y").into()), "no header can carry")]
fn settings_that_cannot_be_used(#[case] change: fn(&mut Endpoint), #[case] says: &str) {
    let mut endpoint = Server::new(Vec::new()).endpoint(ReviewerKind::Openai);
    change(&mut endpoint);
    let failed = open_with(endpoint, Box::new(Quick::default())).expect_err("an error");
    assert!(failed.summary.starts_with("mine: ") && failed.summary.contains(says), "{failed}");
    assert!(!failed.summary.contains(PART) && !failed.summary.contains('\x1b'), "{failed}");
}

#[test]
fn over_plain_http_it_goes_to_this_machine_only_unless_that_is_allowed() {
    let at = |address: &str, insecure_http: bool| {
        let endpoint = Server::new(Vec::new()).endpoint(ReviewerKind::Openai);
        Endpoint { base_url: Some(address.to_owned()), insecure_http, ..endpoint }
    };
    for address in ["http://models.invalid/v1", "HTTP://models.invalid", "http://10.0.0.7", "http://localhost.invalid"]
    {
        let failed = open(at(address, false)).expect_err(address);
        assert_eq!(failed.class, ErrorClass::Configuration, "{failed}");
        assert!(failed.summary.contains("use https, or set insecure_http = true"), "{failed}");
        assert!(open(at(address, true)).is_ok(), "{address}");
        assert!(open(Endpoint { key: None, ..at(address, false) }).is_ok(), "{address}");
    }
    for address in ["http://localhost:1", "http://127.0.0.1", "http://[::1]:8080/v1", "https://models.invalid"] {
        assert!(open(at(address, false)).is_ok(), "{address}");
    }
}

#[test]
fn a_review_that_would_show_it_on_the_way_is_refused_before_it_is_queued() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("one");
    let settings = |more: &str| {
        test.settings(&format!(
            "default_reviewer = \"mine\"\n[reviewers.mine]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n\
             base_url = \"http://models.invalid/v1\"\nattempts = 1\n{more}"
        ));
    };
    let review = || {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(["review", "--commit", "HEAD", "--wait"]).env("MY_KEY", KEY).output().expect("revdeck starts")
    };
    settings("");
    let refused = review();
    assert_eq!(refused.status.code(), Some(USAGE), "{}", err(&refused));
    assert_snapshot!(err(&refused), @"error: mine: the key would go to models.invalid over plain http, readable on the way: use https, or set insecure_http = true");
    assert_eq!(test.json(&["runs", "--format", "json"], 0)["runs"].as_array().map(Vec::len), Some(0));
    // With the setting, the review is asked for; there is no such host.
    settings("insecure_http = true\n");
    let asked = review();
    assert_eq!(asked.status.code(), Some(INCOMPLETE), "{}{}", out(&asked), err(&asked));
    let run = &test.json(&["runs", "--format", "json"], 0)["runs"][0];
    let said = run["error_summary"].as_str().expect("an error");
    assert!(said.contains("no connection to models.invalid"), "{run}");
}

#[test]
fn from_a_command_to_the_header() {
    let server = Server::new(vec![streamed("data: [DONE]\n\n")]);
    let key = read_key(ApiKeySource::Command(&format!("echo '{KEY}'")), &|_| None).expect("a key");
    let mut chat = open(Endpoint { key, ..server.endpoint(ReviewerKind::Gemini) }).expect("a chat");
    chat.respond(&request(), &mut Notes::default()).expect("an empty answer");
    assert_eq!(server.requests()[0].header("x-goog-api-key"), Some(KEY));
    assert!(!server.requests()[0].line.contains(KEY), "not in the address");
}
