//! Streams that are cut at every byte.

use revdeck::config::ReviewerKind;
use revdeck::domain::{ChatResponse, ErrorClass, StopReason};
use rstest::rstest;

use super::samples::stream;
use super::server::{Act, Server, ask, chunked, open, streamed};

/// Checks the result of a cut stream: either a usable beginning, paid once, or a second request.
#[track_caller]
fn check(whole: &ChatResponse, got: &ChatResponse, requests: usize, cut: usize) {
    assert!(whole.text.starts_with(&got.text), "cut at {cut}: {:?}", got.text);
    for (call, full) in got.calls.iter().zip(&whole.calls) {
        assert_eq!(call.name, full.name, "cut at {cut}");
        assert!(full.arguments.starts_with(&call.arguments), "cut at {cut}: {}", call.arguments);
    }
    assert!(got.calls.len() <= whole.calls.len());
    for (kept, full) in got.opaque.iter().zip(&whole.opaque) {
        let signed = |item: &serde_json::Value| item.pointer("/item/signature").cloned();
        assert_eq!(signed(kept), signed(full), "cut at {cut}: half a signature is none");
    }
    match got.stop {
        StopReason::Interrupted => {
            assert_eq!(requests, 1, "cut at {cut}: it was asked for twice");
            assert!(!got.is_empty(), "cut at {cut}");
        }
        stop => {
            assert_eq!(stop, whole.stop, "cut at {cut}");
            assert_eq!(got.text, whole.text, "cut at {cut}");
            assert_eq!(got.calls.len(), whole.calls.len(), "cut at {cut}");
            assert!(requests <= 2, "cut at {cut}: {requests} requests");
        }
    }
}

#[rstest]
#[case::openai(ReviewerKind::Openai, false)]
#[case::openai_in_chunks(ReviewerKind::Openai, true)]
#[case::responses(ReviewerKind::OpenaiResponses, false)]
#[case::anthropic(ReviewerKind::Anthropic, false)]
#[case::gemini(ReviewerKind::Gemini, false)]
#[case::ollama(ReviewerKind::Ollama, false)]
fn a_stream_cut_anywhere_is_used_as_far_as_it_goes(#[case] kind: ReviewerKind, #[case] in_chunks: bool) {
    let body = stream(kind);
    let bytes = match in_chunks {
        true => chunked(&body),
        false => match &streamed(&body)[0] {
            Act::Say(bytes) => bytes.clone(),
            _ => Vec::new(),
        },
    };
    let whole_reply = vec![Act::Say(bytes.clone())];
    let server = Server::new(vec![whole_reply.clone()]);
    let mut chat = server.chat(kind);
    let whole = ask(&mut chat).0.expect("the whole answer");
    let (mut interrupted, mut again) = (0, 0);
    for cut in 0..bytes.len() {
        server.script(vec![vec![Act::Say(bytes[..cut].to_vec())], whole_reply.clone()]);
        let got = ask(&mut chat).0.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let requests = server.requests().len();
        check(&whole, &got, requests, cut);
        interrupted += usize::from(got.stop == StopReason::Interrupted);
        again += usize::from(requests == 2);
    }
    assert!(interrupted > 100, "only {interrupted} cuts left something to use");
    assert!(again > 100, "only {again} cuts left nothing");
}

#[rstest]
#[case::nothing("", ErrorClass::Malformed)]
#[case::half_an_event("data: {\"choices\":[{\"index\":0,\"del", ErrorClass::Network)]
#[case::no_text("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n", ErrorClass::Network)]
fn a_stream_that_always_breaks_is_given_up(#[case] body: &str, #[case] class: ErrorClass) {
    let server = Server::new(vec![streamed(body); 5]);
    let (error, notes) = ask(&mut server.chat(ReviewerKind::Openai));
    let error = error.expect_err("nothing to use");
    assert_eq!(error.class, class, "{error}");
    assert!(error.summary.contains("(3 attempts)"), "{error}");
    assert_eq!((server.requests().len(), notes.waits()), (3, vec![750, 1500]));
}

#[test]
fn half_a_report_is_kept_and_half_a_question_is_not() {
    for (arguments, kept) in [(r#"{\"findings\":[{\"line\":1},{\"li"#, true), (r#"{\"path\":\"src"#, false)] {
        let call = format!(r#"{{"index":0,"id":"a","function":{{"name":"n","arguments":"{arguments}"}}}}"#);
        let text = if kept { "" } else { r#""content":"Look.","# };
        let body = format!("data: {{\"choices\":[{{\"delta\":{{{text}\"tool_calls\":[{call}]}}}}]}}\n\n");
        let server = Server::new(vec![streamed(&body)]);
        let mut endpoint = server.endpoint(ReviewerKind::Openai);
        endpoint.attempts = 1;
        let response = ask(&mut open(endpoint)).0.expect("something to use");
        assert_eq!(response.stop, StopReason::Interrupted);
        assert_eq!(response.calls.len(), usize::from(kept), "{response:?}");
    }
}
