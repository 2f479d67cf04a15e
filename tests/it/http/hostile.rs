//! Hostile servers: each ends in a bounded time with a harmless message or a bounded answer, and is asked no more often
//! than the attempts allow.
//!
//! The campaign asks every kind of server in every format and prints the figures:
//! `cargo test --test it -- --ignored campaign_of_hostile_servers --nocapture`.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use revdeck::config::ReviewerKind;
use revdeck::reviewers::chat::AnswerTimeouts;
use revdeck::reviewers::http::Endpoint;

use super::server::{Act, Server, ask, open, reply};

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const ATTEMPTS: usize = 2;
/// Limits of the client here; the total is for one attempt.
const IDLE: Duration = Duration::from_millis(400);
const TOTAL: Duration = Duration::from_millis(1_500);
/// Largest text that an answer may have; see `reviewers::http::response_builder`.
const MAX_TEXT_BYTES: usize = 8 << 20;
const MAX_MESSAGE_CHARS: usize = 1_500;

fn say(text: impl Into<Vec<u8>>) -> Act {
    Act::Say(text.into())
}

fn repeat(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Repeat(bytes.into(), None)
}

fn trickle(bytes: &str) -> Act {
    Act::Repeat(bytes.into(), Some(Duration::from_millis(20)))
}

fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{}}}}}]}}\n\n", serde_json::json!(text))
}

/// A gzip stream whose blocks of zeros expand a thousandfold; the client does not ask for compression.
fn gzip_bomb() -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n".to_vec();
    bytes.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xec, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90]);
    bytes.extend(std::iter::repeat_n(0, 100_000));
    bytes
}

/// The kinds of servers: a name and what each connection gets.
fn kinds(port: u16) -> Vec<(&'static str, Vec<Act>)> {
    let itself = format!("http://127.0.0.1:{port}/v1/chat/completions");
    let chunked = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let busy = |after: &str| reply("429 Too Many Requests", "application/json", &[("retry-after", after)], "{}");
    vec![
        ("nothing at all", vec![Act::Hold]),
        ("slow loris in the status line", vec![trickle("H")]),
        ("slow loris in the headers", vec![say("HTTP/1.1 200 OK\r\n"), trickle("x-a: b\r\n")]),
        ("endless headers", vec![say("HTTP/1.1 200 OK\r\n"), repeat("x-a: b\r\n".repeat(1000))]),
        ("a header of a megabyte", vec![say(format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n\r\n", "b".repeat(1 << 20)))]),
        ("an endless body", vec![say("HTTP/1.1 200 OK\r\n\r\n"), repeat("x".repeat(64 << 10))]),
        ("an endless line", vec![say(SSE), repeat("data: x".repeat(10_000))]),
        ("endless comments", vec![say(SSE), repeat(": ping\n".repeat(10_000))]),
        ("endless empty events", vec![say(SSE), repeat("data:\n\n".repeat(10_000))]),
        ("an endless text", vec![say(SSE), repeat(delta(&"x".repeat(50_000)))]),
        ("events without end", vec![say(SSE), say(delta("Hi")), trickle(": ping\n\n")]),
        ("a text and then silence", vec![say(SSE), say(delta("Hi")), Act::Hold]),
        ("a web page", reply("200 OK", "text/html", &[], "<html><title>Sign\x1b[2J in</title>")),
        ("a picture", reply("200 OK", "image/png", &[], "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR")),
        ("bytes that are no UTF-8", vec![say(SSE), say(b"data: \xff\xfe\xc3\x28\x80\n\n".to_vec())]),
        (
            "text that is no UTF-8",
            vec![
                say(SSE),
                say([&b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xc3\x28\"}}]}\n\n"[..]].concat()),
            ],
        ),
        (
            "huge numbers",
            vec![say(format!(
                "{SSE}data: {{\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}},\"index\":1e308}}],\"usage\":{{\"prompt_tokens\":\
             99999999999999999999999999,\"completion_tokens\":-1e999,\"total_tokens\":1e400}}}}\n\ndata: [DONE]\n\n"
            ))],
        ),
        ("a nesting of a million", vec![say(format!("{SSE}data: {}\n\n", "[".repeat(1_000_000)))]),
        (
            "ten thousand calls",
            vec![say(format!(
                "{SSE}data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}]}}}}]}}\n\n",
                vec!["{\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}"; 10_000].join(",")
            ))],
        ),
        ("a redirect to itself", reply("302 Found", "text/plain", &[("location", &itself)], "")),
        ("a redirect to a file", reply("307 Temporary", "text/plain", &[("location", "file:///etc/passwd")], "")),
        ("a redirect to nowhere", reply("301 Moved", "text/plain", &[("location", "\u{1}\x1b[2J")], "")),
        ("a gzip bomb", vec![say(gzip_bomb())]),
        ("a chunk that is no number", vec![say(format!("{chunked}zz\r\nabc\r\n"))]),
        ("a chunk of sixteen exabytes", vec![say(format!("{chunked}ffffffffffffffff\r\nabc"))]),
        ("a chunk that breaks off", vec![say(format!("{chunked}ff\r\ndata: {{\"choices\""))]),
        ("a length that is not kept", vec![say("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{}")]),
        ("two lengths", vec![say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}")]),
        ("an end before the answer", vec![]),
        ("an end in the status line", vec![say("HTTP/1.1 2")]),
        ("an end in the headers", vec![say("HTTP/1.1 200 OK\r\ncontent-ty")]),
        ("an end in an event", vec![say(format!("{SSE}{}data: {{\"choi", delta("Hi")))]),
        ("no HTTP", vec![say("SSH-2.0-OpenSSH_9.9\r\n"), repeat("\0\x07\x1b[2J")]),
        ("endless interim answers", vec![repeat("HTTP/1.1 100 Continue\r\n\r\n".repeat(500))]),
        ("patience for ever", busy("99999999999999999999999999")),
        ("patience of a negative time", busy("-1")),
        ("patience that is no number", busy("NaN, yesterday \u{7}")),
        ("an error without end", vec![say("HTTP/1.1 503 No\r\n\r\n"), repeat("<p>no</p>".repeat(5_000))]),
    ]
}

/// Asks a server once and checks the outcome. Returns the time that it took.
fn ask_kind(kind: ReviewerKind, at: usize) -> (&'static str, Duration) {
    let server = Server::new(Vec::new());
    let (name, acts) = kinds(server.port).swap_remove(at);
    server.script(vec![acts; ATTEMPTS + 2]);
    let mut chat = open(Endpoint {
        attempts: ATTEMPTS as u32,
        timeouts: AnswerTimeouts { idle: IDLE, total: TOTAL },
        ..server.endpoint(kind)
    });
    let begun = Instant::now();
    let (answer, notes) = ask(&mut chat);
    let took = begun.elapsed();
    // Generous for a busy machine; without limits most of these servers would take for ever.
    assert!(took < (TOTAL + IDLE) * ATTEMPTS as u32 + Duration::from_secs(20), "{kind} {name}: {took:?}");
    assert!(server.requests().len() <= ATTEMPTS, "{kind} {name}: {} requests", server.requests().len());
    match answer {
        Ok(answer) => assert!(answer.text.len() <= MAX_TEXT_BYTES, "{kind} {name}: {} bytes", answer.text.len()),
        Err(error) => {
            let text = &error.summary;
            assert!(text.chars().count() <= MAX_MESSAGE_CHARS, "{kind} {name}: {text}");
            assert!(!text.chars().any(revdeck::domain::text::is_unsafe), "{kind} {name}: {text:?}");
        }
    }
    assert!(notes.text().len() <= MAX_TEXT_BYTES, "{kind} {name}");
    (name, took)
}

#[test]
fn every_kind_of_hostile_server_ends_in_time() {
    let count = kinds(0).len();
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..count).map(|at| scope.spawn(move || ask_kind(ReviewerKind::Openai, at))).collect();
        for asked in asked {
            let _ = asked.join().expect("an outcome");
        }
    });
}

#[test]
fn a_connection_that_is_reset_is_a_failure_of_the_network() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // Closing a connection with unread data resets it.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let server = Server::new(Vec::new());
    let base_url = Some(format!("http://127.0.0.1:{port}"));
    let failed =
        ask(&mut open(Endpoint { base_url, ..server.endpoint(ReviewerKind::Openai) })).0.expect_err("no answer");
    assert_eq!(failed.class, revdeck::domain::ErrorClass::Network, "{failed}");
}

#[test]
#[ignore = "takes a minute"]
#[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
fn campaign_of_hostile_servers() {
    let (count, formats) = (kinds(0).len(), super::http_kinds().collect::<Vec<_>>());
    let mut slowest = ("", Duration::ZERO);
    for kind in &formats {
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..count).map(|at| scope.spawn(move || ask_kind(*kind, at))).collect();
            for asked in asked {
                let one = asked.join().expect("an outcome");
                if one.1 > slowest.1 {
                    slowest = one;
                }
            }
        });
    }
    println!(
        "{count} kinds of hostile servers in {} formats: each ended, the slowest ({}) after {:.1} s",
        formats.len(),
        slowest.0,
        slowest.1.as_secs_f64()
    );
}
