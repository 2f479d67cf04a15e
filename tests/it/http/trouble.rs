//! Servers that refuse, fail, answer slowly, send invalid data or do not exist.

use std::net::TcpListener;
use std::time::Duration;

use revdeck::config::ReviewerKind;
use revdeck::domain::{ErrorClass, StopReason};
use revdeck::reviewers::chat::AnswerTimeouts;
use revdeck::reviewers::chat::{Chat, ChatProgress};
use revdeck::reviewers::http::open_with;
use rstest::rstest;
use serde_json::{Value, json};

use super::samples::{TEXT, stream};
use super::server::{Act, Notes, Quick, Server, ask, error, open, reply, request, streamed};

const KIND: ReviewerKind = ReviewerKind::Openai;

#[rstest]
#[case::key("401 Unauthorized", json!({ "error": { "message": "Incorrect API key" } }), ErrorClass::Auth, 1, "api_key_env")]
#[case::forbidden("403 Forbidden", json!({ "error": { "message": "not yours" } }), ErrorClass::Auth, 1, "api_key_env")]
#[case::money("402 Payment Required", json!({ "error": { "message": "Insufficient credits" } }), ErrorClass::Quota, 1, "top up")]
#[case::quota("429 Too Many Requests", json!({ "error": { "code": "insufficient_quota" } }), ErrorClass::Quota, 1, "top up")]
#[case::rate("429 Too Many Requests", json!({ "error": { "code": "rate_limit_exceeded" } }), ErrorClass::RateLimit, 3, "later")]
#[case::internal("500 Internal Server Error", json!({ "error": { "message": "oops" } }), ErrorClass::Overloaded, 3, "later")]
#[case::unavailable("503 Service Unavailable", json!({}), ErrorClass::Overloaded, 3, "later")]
#[case::overloaded("529 Overloaded", json!({ "error": { "type": "overloaded_error" } }), ErrorClass::Overloaded, 3, "later")]
#[case::long("400 Bad Request", json!({ "error": { "code": "context_length_exceeded", "message": "maximum context length" } }), ErrorClass::ContextTooLong, 1, "window.max_tokens")]
#[case::long_with_limit("400 Bad Request", json!({ "message": "'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens" }), ErrorClass::ContextTooLong, 1, "window.max_tokens")]
#[case::large("413 Payload Too Large", json!({ "error": { "type": "request_too_large" } }), ErrorClass::ContextTooLong, 1, "window.max_tokens")]
#[case::no_model("404 Not Found", json!({ "error": { "message": "no such model" } }), ErrorClass::Configuration, 1, "check kind, model")]
#[case::filter("400 Bad Request", json!({ "error": { "code": "content_policy_violation" } }), ErrorClass::Refused, 1, "another reviewer")]
fn refusals(
    #[case] status: &str,
    #[case] body: Value,
    #[case] class: ErrorClass,
    #[case] sent: usize,
    #[case] next: &str,
) {
    let server = Server::new(vec![error(status, &body); 5]);
    let failed = ask(&mut server.chat(KIND)).0.expect_err("a refusal");
    assert_eq!(failed.class, class, "{failed}");
    assert!(failed.summary.starts_with("mine: ") && failed.summary.contains(next), "{failed}");
    assert_eq!(server.requests().len(), sent);
}

#[rstest]
#[case::without(&[], vec![750])]
#[case::seconds(&[("retry-after", "20")], vec![21_000])]
#[case::milliseconds(&[("retry-after-ms", "400")], vec![420])]
#[case::date(&[("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:29:00 GMT")], vec![63_000])]
fn the_patience_that_a_server_asks_for_is_given(#[case] headers: &[(&str, &str)], #[case] waits: Vec<u64>) {
    let refusal = reply("429 Too Many Requests", "application/json", headers, "{}");
    let server = Server::new(vec![refusal, streamed(&stream(KIND))]);
    let pace = Quick::default();
    let mut chat = open_with(server.endpoint(KIND), Box::new(pace.clone())).expect("a chat");
    let (response, notes) = ask(&mut chat);
    assert_eq!(response.expect("an answer").text, TEXT);
    assert_eq!(notes.waits(), waits);
    let slept = pace.0.lock().expect("no panic before").clone();
    assert_eq!(slept.iter().sum::<Duration>(), Duration::from_millis(waits[0]));
    assert!(slept.iter().all(|nap| *nap <= Duration::from_millis(100)), "cancellation is looked for in between");
    let reason = notes.seen.iter().find_map(|seen| match seen {
        ChatProgress::Waiting { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.is_some_and(|reason| reason.contains("too many requests")));
}

#[test]
fn patience_has_an_end() {
    let server =
        Server::new(vec![reply("429 Too Many Requests", "text/plain", &[("retry-after", "86400")], "tomorrow")]);
    let (failed, notes) = ask(&mut server.chat(KIND));
    let failed = failed.expect_err("too long");
    assert_eq!(failed.class, ErrorClass::RateLimit);
    assert!(failed.summary.contains("(try again in 86400 s)"), "{failed}");
    assert!(notes.waits().is_empty());
}

#[test]
fn waiting_can_be_cancelled() {
    let server = Server::new(vec![reply("429 Too Many Requests", "text/plain", &[("retry-after", "500")], "")]);
    let mut notes = Notes {
        until: Some(|seen| seen.iter().any(|seen| matches!(seen, ChatProgress::Waiting { .. }))),
        ..Notes::default()
    };
    let failed = server.chat(KIND).respond(&request(), &mut notes).expect_err("an end");
    assert!(failed.cancelled);
}

#[rstest]
#[case::before_an_answer(vec![Act::Hold], |seen: &[ChatProgress]| seen.contains(&ChatProgress::Sent) && seen.len() == 1)]
#[case::within_an_answer(
    vec![Act::Say(b"HTTP/1.1 200 OK\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n".to_vec()), Act::Hold],
    |seen: &[ChatProgress]| seen.contains(&ChatProgress::Text("Hi".to_owned()))
)]
fn cancelling_closes_the_connection(#[case] acts: Vec<Act>, #[case] until: fn(&[ChatProgress]) -> bool) {
    let server = Server::new(vec![acts]);
    let mut chat = server.chat(KIND);
    let mut first = true;
    // Cancels only after the server has received the request.
    struct Later<'a>(&'a Server, Notes, &'a mut bool);
    impl revdeck::reviewers::chat::ChatObserver for Later<'_> {
        fn on_progress(&mut self, progress: ChatProgress) {
            *self.2 = false;
            self.1.on_progress(progress);
        }

        fn is_cancelled(&self) -> bool {
            !self.0.requests().is_empty() && self.1.is_cancelled()
        }
    }
    let mut watch = Later(&server, Notes { until: Some(until), ..Notes::default() }, &mut first);
    let failed = chat.respond(&request(), &mut watch).expect_err("an end");
    assert!(failed.cancelled);
    assert!(server.client_is_gone(), "or the provider goes on, and is paid for it");
    assert_eq!(server.requests().len(), 1);
}

fn impatient(server: &Server, idle: u64, total: u64) -> revdeck::reviewers::http::HttpChat {
    let mut endpoint = server.endpoint(KIND);
    endpoint.attempts = 2;
    endpoint.connect_timeout = Duration::from_secs(5);
    endpoint.timeouts = AnswerTimeouts { idle: Duration::from_millis(idle), total: Duration::from_millis(total) };
    open(endpoint)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[test]
fn a_server_that_never_answers() {
    let server = Server::new(vec![vec![Act::Hold], vec![Act::Hold]]);
    let failed = ask(&mut impatient(&server, 60, 10_000)).0.expect_err("nothing");
    assert_eq!(failed.class, ErrorClass::Timeout);
    assert!(failed.summary.contains("sent nothing for 0.06 s"), "{failed}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_stops_in_the_middle() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n";
    let server = Server::new(vec![vec![Act::Say(format!("{HEAD}{text}").into_bytes()), Act::Hold]]);
    let response = ask(&mut impatient(&server, 700, 10_000)).0.expect("half an answer");
    assert_eq!((response.text.as_str(), response.stop), ("Half", StopReason::Interrupted));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_trickle_without_end() {
    // Each byte arrives in time, but the answer never becomes complete.
    let trickle = Act::Repeat(b":".to_vec(), Some(Duration::from_millis(10)));
    let server = Server::new(vec![vec![Act::Say(HEAD.into()), trickle]]);
    let (failed, notes) = ask(&mut impatient(&server, 5_000, 1_000));
    let failed = failed.expect_err("nothing");
    assert_eq!(failed.class, ErrorClass::Timeout);
    assert!(failed.summary.contains("took more than 1 s"), "{failed}");
    assert_eq!((server.requests().len(), notes.waits().len()), (1, 0), "another request would take as long");
    assert!(server.client_is_gone());
}

#[test]
fn an_answer_whose_connection_stays_open_is_an_answer() {
    let body = stream(KIND);
    let whole = format!("{HEAD}{body}");
    let server = Server::new(vec![vec![Act::Say(whole.into_bytes()), Act::Hold]]);
    let response = ask(&mut impatient(&server, 5_000, 20_000)).0.expect("an answer");
    assert_eq!((response.text.as_str(), response.stop), (TEXT, StopReason::Tools));
    assert!(server.client_is_gone());
}

#[rstest]
#[case::text(json!({ "choices": [{ "delta": { "content": "x".repeat(100_000) } }] }), 8 * 1024 * 1024)]
#[case::arguments(json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "n", "arguments": "{}".repeat(50_000) } }] } }] }), 0)]
fn a_huge_answer_is_cut(#[case] event: Value, #[case] most: usize) {
    let event = format!("data: {event}\n\n");
    let server = Server::new(vec![vec![Act::Say(HEAD.into()), Act::Repeat(event.into_bytes(), None)]]);
    let response = ask(&mut server.chat(KIND)).0.expect("a beginning");
    assert_eq!(response.stop, StopReason::Interrupted);
    assert!(response.text.len() <= most && response.calls.iter().all(|call| call.arguments.len() <= 1024 * 1024));
    assert!(server.client_is_gone());
}

#[rstest]
#[case::one_line(Act::Repeat(b"data: x".repeat(10_000), None))]
#[case::comments(Act::Repeat(b": ping, pong, ping, pong, ping, pong, ping, pong, ping\n".repeat(1_000), None))]
#[case::calls(Act::Say(format!("data: {}\n\n", json!({ "choices": [{ "delta": { "tool_calls": vec![json!({ "id": "" }); 200] } }] })).into()))]
fn a_flood_of_nothing_ends(#[case] flood: Act) {
    let server = Server::new(vec![vec![Act::Say(HEAD.into()), flood]]);
    let failed = ask(&mut server.chat(KIND)).0.expect_err("nothing");
    assert_eq!(failed.class, ErrorClass::Malformed, "{failed}");
    assert!(failed.summary.contains("more than"), "{failed}");
    assert_eq!(server.requests().len(), 1, "it would come again");
}

#[rstest]
#[case::page("text/html", "<html><head><title>Sign in</title></head></html>", "a web page, \"Sign in\"")]
#[case::words("text/plain", "no healthy upstream", "sent no answer of kind")]
#[case::another_json("application/json", "{\"hello\": \"world\"}", "sent no answer of kind \"openai\"")]
#[case::broken_json(
    "text/event-stream",
    "data: {\"choices\": oops}\n\n",
    "something else than an answer: {\"choices\": oops}"
)]
#[case::number("application/json", "17", "sent no answer")]
#[case::control("text/event-stream", "data: \x1b[2J\u{202e}\n\n", "\u{fffd}[2J\u{fffd}")]
fn nonsense(#[case] kind: &str, #[case] body: &str, #[case] says: &str) {
    let server = Server::new(vec![reply("200 OK", kind, &[], body); 3]);
    let failed = ask(&mut server.chat(KIND)).0.expect_err("no answer");
    assert_eq!(failed.class, ErrorClass::Malformed);
    assert!(failed.summary.contains(says), "{failed}");
    assert!(failed.summary.contains("base_url of [reviewers.mine]"), "{failed}");
    assert!(!failed.summary.contains(revdeck_unsafe));
}

fn revdeck_unsafe(c: char) -> bool {
    revdeck::domain::text::is_unsafe(c)
}

#[test]
fn nonsense_within_an_answer_ends_it() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n";
    let server = Server::new(vec![streamed(&format!("{text}data: {{oops\n\n{text}"))]);
    let response = ask(&mut server.chat(KIND)).0.expect("half an answer");
    assert_eq!((response.text.as_str(), response.stop), ("Half", StopReason::Interrupted));
}

#[test]
fn unknown_events_are_passed_over() {
    for kind in super::http_kinds() {
        let sample = stream(kind);
        let strange = match kind {
            ReviewerKind::Ollama => "{\"strange\":{\"very\":[1]}}\n{\"message\":7}\n".to_owned(),
            _ => "event: strange\ndata: {\"type\":\"strange\",\"delta\":[]}\n\ndata: [1,2]\n\ndata: 3\n\nid: 4\n\n"
                .to_owned(),
        };
        let mut body = strange.clone();
        let separator = if kind == ReviewerKind::Ollama { "\n" } else { "\n\n" };
        for event in sample.replace("\r\n", "\n").split_inclusive(separator) {
            body.push_str(event);
            body.push_str(&strange);
        }
        let server = Server::new(vec![streamed(&body)]);
        let response = ask(&mut server.chat(kind)).0.expect("an answer");
        assert_eq!(
            (response.text.as_str(), response.calls.len(), response.stop),
            (TEXT, 2, StopReason::Tools),
            "{kind}"
        );
    }
}

#[test]
fn an_error_within_a_stream() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let kind = ReviewerKind::Anthropic;
    let server = Server::new(vec![streamed(overloaded), streamed(&stream(kind))]);
    assert_eq!(ask(&mut server.chat(kind)).0.expect("the second time").text, TEXT);
    assert_eq!(server.requests().len(), 2);
    // If a usable part has arrived, the client sends no second request.
    let whole = stream(kind);
    let (before, _) = whole.split_once("event: message_delta").expect("an end");
    let server = Server::new(vec![streamed(&format!("{before}{overloaded}"))]);
    let response = ask(&mut server.chat(kind)).0.expect("most of it");
    assert_eq!((response.stop, response.text.as_str(), response.calls.len()), (StopReason::Interrupted, TEXT, 2));
    assert_eq!(response.usage.input, 100, "what was counted before the end");
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let server = Server::new(Vec::new());
    let mut endpoint = server.endpoint(KIND);
    endpoint.base_url = Some(format!("http://127.0.0.1:{port}"));
    let (failed, notes) = ask(&mut open(endpoint));
    let failed = failed.expect_err("no answer");
    assert_eq!(failed.class, ErrorClass::Network);
    assert!(failed.summary.contains(&format!("no connection to 127.0.0.1:{port}: Connection refused")), "{failed}");
    assert_eq!(notes.waits().len(), 2);
}

#[test]
fn an_answer_after_two_failures() {
    let server = Server::new(vec![
        error("529 Overloaded", &json!({})),
        vec![Act::Say(b"HTTP/1.1 200".to_vec())],
        streamed(&stream(KIND)),
    ]);
    let (response, notes) = ask(&mut server.chat(KIND));
    assert_eq!(response.expect("the third time").text, TEXT);
    assert_eq!(notes.waits(), [750, 1500]);
}

#[test]
fn the_watcher_is_asked_while_nothing_comes() {
    let server = Server::new(vec![vec![Act::Hold], vec![Act::Hold]]);
    let (_, notes) = ask(&mut impatient(&server, 500, 10_000));
    assert!(*notes.asked.borrow() >= 4, "{} times in a second", notes.asked.borrow());
}
