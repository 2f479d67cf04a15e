//! Wire formats: the request, the parsed answer, and the request of the next turn.

use revdeck::config::ReviewerKind;
use revdeck::domain::{ChatMessage, ChatResponse, StopReason, Usage};
use revdeck::reviewers::chat::{Chat, ChatProgress};
use rstest::rstest;
use serde_json::{Value, json};

use super::samples::{FIRST, SECOND, TEXT, stream};
use super::server::{Notes, Server, ask, chunked, error, reply, request, streamed};

/// Requests the sample and answers its calls; returns the answer, the notes and the two requests.
fn conversation(kind: ReviewerKind) -> (ChatResponse, Notes, [Value; 2]) {
    let server = Server::new(vec![streamed(&stream(kind)), streamed(&stream(kind))]);
    let mut chat = server.chat(kind);
    let (response, notes) = ask(&mut chat);
    let response = response.expect("an answer");
    // The response after a round trip through the journal.
    let journaled = serde_json::to_string(&response).expect("JSON");
    let response: ChatResponse = serde_json::from_str(&journaled).expect("the same");
    let mut next = request();
    next.messages.push(response.to_message());
    for call in &response.calls {
        let text = format!("answer to {}", call.name);
        next.messages.push(ChatMessage::Tool { call_id: call.id.clone(), name: call.name.clone(), text });
    }
    chat.respond(&next, &mut Notes::default()).expect("another answer");
    let [first, second] = server.requests().try_into().expect("two requests");
    (response, notes, [first.body, second.body])
}

#[rstest]
#[case::openai(ReviewerKind::Openai, [100, 60, 10, 20])]
#[case::responses(ReviewerKind::OpenaiResponses, [100, 60, 10, 20])]
#[case::anthropic(ReviewerKind::Anthropic, [100, 60, 10, 20])]
#[case::gemini(ReviewerKind::Gemini, [100, 60, 10, 20])]
#[case::ollama(ReviewerKind::Ollama, [100, 0, 30, 0])]
fn an_answer_is_understood(#[case] kind: ReviewerKind, #[case] counts: [u64; 4]) {
    let [input, cached, output, reasoning] = counts;
    let (response, notes, _) = conversation(kind);
    assert_eq!(response.text, TEXT);
    let calls: Vec<(&str, Value)> = response
        .calls
        .iter()
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).expect("JSON")))
        .collect();
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(calls, [("read_file", value(FIRST)), ("report_findings", value(SECOND))]);
    assert_ne!(response.calls[0].id, response.calls[1].id);
    assert_eq!(response.stop, StopReason::Tools);
    assert_eq!(response.usage, Usage { input, cached, output, reasoning, ..Usage::default() });
    assert_eq!(response.model, "the-model-1");
    assert_eq!(notes.text(), TEXT, "the watcher saw it come");
    assert_eq!(notes.seen[0], ChatProgress::Sent);
    assert!(matches!(notes.seen[1], ChatProgress::Bytes(bytes) if bytes > 0));
}

#[rstest]
#[case::openai(ReviewerKind::Openai, "POST /v1/chat/completions HTTP/1.1", "authorization", "Bearer ")]
#[case::responses(ReviewerKind::OpenaiResponses, "POST /v1/responses HTTP/1.1", "authorization", "Bearer ")]
#[case::anthropic(ReviewerKind::Anthropic, "POST /v1/messages HTTP/1.1", "x-api-key", "")]
#[case::gemini(
    ReviewerKind::Gemini,
    "POST /v1beta/models/the-model:streamGenerateContent?alt=sse HTTP/1.1",
    "x-goog-api-key",
    ""
)]
#[case::ollama(ReviewerKind::Ollama, "POST /api/chat HTTP/1.1", "authorization", "Bearer ")]
fn a_request_goes_where_it_belongs(
    #[case] kind: ReviewerKind,
    #[case] line: &str,
    #[case] header: &str,
    #[case] before: &str,
) {
    let server = Server::new(vec![streamed(&stream(kind))]);
    ask(&mut server.chat(kind)).0.expect("an answer");
    let request = &server.requests()[0];
    assert_eq!(request.line, line);
    assert_eq!(request.header(header), Some(format!("{before}{}", super::server::KEY).as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("anthropic-version").is_some(), kind == ReviewerKind::Anthropic);
}

#[rstest]
#[case::openai(ReviewerKind::Openai, "/proxy/v2?api-version=1", "/proxy/v2/chat/completions?api-version=1")]
#[case::anthropic(ReviewerKind::Anthropic, "/anthropic", "/anthropic/v1/messages")]
#[case::anthropic_versioned(ReviewerKind::Anthropic, "/x/v1/", "/x/v1/messages")]
#[case::gemini(ReviewerKind::Gemini, "/v1", "/v1/models/the-model:streamGenerateContent?alt=sse")]
#[case::ollama(ReviewerKind::Ollama, "/behind", "/behind/api/chat")]
fn addresses_with_paths(#[case] kind: ReviewerKind, #[case] path: &str, #[case] asked: &str) {
    let server = Server::new(vec![streamed(&stream(kind))]);
    let mut endpoint = server.endpoint(kind);
    endpoint.base_url = endpoint.base_url.map(|base| base + path);
    ask(&mut super::server::open(endpoint)).0.expect("an answer");
    assert_eq!(server.requests()[0].line, format!("POST {asked} HTTP/1.1"));
}

#[test]
fn openai_gets_thoughts_and_ids_back() {
    let (_, _, [_, next]) = conversation(ReviewerKind::Openai);
    let answer = &next["messages"][2];
    assert_eq!(answer["reasoning_content"], "Hmm.");
    assert_eq!(answer["tool_calls"][1]["id"], "call_1");
    assert_eq!(answer["tool_calls"][1]["function"]["arguments"], SECOND);
    assert_eq!(
        next["messages"][4],
        json!({ "role": "tool", "tool_call_id": "call_1", "content": "answer to report_findings" })
    );
}

#[test]
fn responses_get_sealed_thoughts_back() {
    let (_, _, [_, next]) = conversation(ReviewerKind::OpenaiResponses);
    let sealed = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEALED" });
    assert_eq!(next["input"][1], sealed);
    assert_eq!(next["input"][2]["content"][0]["text"], TEXT);
    assert_eq!(next["input"][3]["call_id"], "call_2");
    assert_eq!(
        next["input"][5],
        json!({ "type": "function_call_output", "call_id": "call_2", "output": "answer to read_file" })
    );
}

#[test]
fn anthropic_gets_signed_thoughts_back() {
    let (_, _, [_, next]) = conversation(ReviewerKind::Anthropic);
    let content = &next["messages"][1]["content"];
    assert_eq!(content[0], json!({ "type": "thinking", "thinking": "Hmm.", "signature": "SIGNED" }));
    assert_eq!(content[1], json!({ "type": "text", "text": TEXT }));
    assert_eq!(content[2]["id"], "toolu_2");
    assert_eq!(next["messages"][2]["content"][1]["tool_use_id"], "toolu_3");
    assert_eq!(next["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(next["system"][0]["cache_control"]["type"], "ephemeral");
}

#[test]
fn gemini_gets_its_signature_back_at_its_call() {
    let (response, _, [_, next]) = conversation(ReviewerKind::Gemini);
    let parts = &next["contents"][1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], "SIGNED");
    assert_eq!(parts[1]["functionCall"], json!({ "name": "read_file", "args": { "path": "src/ä.rs" } }));
    assert_eq!(parts[2].get("thoughtSignature"), None);
    let answers = &next["contents"][2]["parts"];
    assert_eq!(answers[1]["functionResponse"]["name"], "report_findings");
    assert!(response.calls.iter().all(|call| call.id.starts_with("rd_")), "ids of ours where Gemini gave none");
    assert!(!next.to_string().contains("rd_"), "and they are not sent");
}

#[test]
fn ollama_gets_thoughts_back() {
    let (_, _, [first, next]) = conversation(ReviewerKind::Ollama);
    assert_eq!(next["messages"][2]["thinking"], "Hmm.");
    assert_eq!(next["messages"][3]["tool_name"], "read_file");
    assert_eq!(first["options"]["num_ctx"], 16_384, "or the server cuts the conversation");
}

/// Returns the sample as a server sends it without streaming.
fn whole(kind: ReviewerKind) -> Value {
    let arguments: Value = serde_json::from_str(FIRST).expect("JSON");
    match kind {
        ReviewerKind::Openai => {
            json!({ "model": "the-model-1", "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": TEXT,
            "tool_calls": [{ "id": "call_0", "type": "function", "function": { "name": "read_file", "arguments": FIRST } }],
        } }] })
        }
        ReviewerKind::OpenaiResponses => {
            json!({ "object": "response", "model": "the-model-1", "status": "completed", "output": [
            { "type": "message", "content": [{ "type": "output_text", "text": TEXT }] },
            { "type": "function_call", "call_id": "call_0", "name": "read_file", "arguments": FIRST },
        ] })
        }
        ReviewerKind::Anthropic => {
            json!({ "type": "message", "model": "the-model-1", "stop_reason": "tool_use", "content": [
            { "type": "text", "text": TEXT },
            { "type": "tool_use", "id": "call_0", "name": "read_file", "input": arguments },
        ] })
        }
        ReviewerKind::Gemini => {
            json!({ "modelVersion": "the-model-1", "candidates": [{ "finishReason": "STOP", "content": { "parts": [
            { "text": TEXT }, { "functionCall": { "id": "call_0", "name": "read_file", "args": arguments } },
        ] } }] })
        }
        ReviewerKind::Ollama => json!({ "model": "the-model-1", "done": true, "done_reason": "stop", "message": {
            "role": "assistant", "content": TEXT,
            "tool_calls": [{ "id": "call_0", "function": { "name": "read_file", "arguments": arguments } }],
        } }),
        ReviewerKind::Builtin | ReviewerKind::Command => unreachable!("{kind} talks to no server"),
    }
}

#[rstest]
fn a_server_that_cannot_stream_is_asked_without(
    #[values(
        ReviewerKind::Openai,
        ReviewerKind::OpenaiResponses,
        ReviewerKind::Anthropic,
        ReviewerKind::Gemini,
        ReviewerKind::Ollama
    )]
    kind: ReviewerKind,
) {
    let refusal = json!({ "error": { "message": "Streaming is not supported by this model", "code": 400 } });
    let whole = whole(kind);
    // Ollama sends one line; the other servers send JSON with line breaks.
    let whole = if kind == ReviewerKind::Ollama { format!("{whole}\n") } else { format!("\n{whole:#}\n") };
    let plain = || reply("200 OK", "application/json", &[], &whole);
    let server = Server::new(vec![error("400 Bad Request", &refusal), plain(), plain()]);
    let mut chat = server.chat(kind);
    for _ in 0..2 {
        let (response, notes) = ask(&mut chat);
        let response = response.expect("an answer");
        assert_eq!((response.text.as_str(), response.stop), (TEXT, StopReason::Tools));
        assert_eq!(notes.text(), TEXT);
        assert_eq!((response.calls[0].id.as_str(), response.model.as_str()), ("call_0", "the-model-1"));
        let arguments: Value = serde_json::from_str(&response.calls[0].arguments).expect("JSON");
        assert_eq!(arguments, serde_json::from_str::<Value>(FIRST).expect("JSON"));
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "it is remembered");
    for (request, streams) in requests.iter().zip([true, false, false]) {
        if kind == ReviewerKind::Gemini {
            assert_eq!(!request.line.contains(":generateContent HTTP"), streams, "{}", request.line);
        } else {
            assert_eq!(request.body["stream"], streams);
        }
    }
}

#[test]
fn in_chunks_it_is_the_same() {
    let server = Server::new(vec![vec![super::server::Act::Say(chunked(&stream(ReviewerKind::Openai)))]]);
    let response = ask(&mut server.chat(ReviewerKind::Openai)).0.expect("an answer");
    assert_eq!((response.text.as_str(), response.calls.len()), (TEXT, 2));
}

#[test]
fn a_stream_may_end_without_its_last_word() {
    for end in ["data: [DONE]\n\n", "\n\ndata: [DONE]\n\n"] {
        let stream = stream(ReviewerKind::Openai);
        let server = Server::new(vec![streamed(stream.strip_suffix(end).unwrap_or(&stream))]);
        let response = ask(&mut server.chat(ReviewerKind::Openai)).0.expect("an answer");
        assert_eq!((response.stop, response.usage.input), (StopReason::Tools, 100));
    }
}

#[rstest]
#[case::temperature(ReviewerKind::Openai, "Unsupported value: 'temperature' does not support 0.2", "temperature")]
#[case::usage(ReviewerKind::Openai, "unknown field stream_options", "stream_options")]
#[case::sealed(ReviewerKind::OpenaiResponses, "Encrypted content is not supported with this model.", "include")]
#[case::marks(
    ReviewerKind::Anthropic,
    "messages.0.cache_control: Extra inputs are not permitted",
    "system/0/cache_control"
)]
#[case::tools(ReviewerKind::Ollama, "the-model does not support tools", "tools")]
fn what_a_server_does_not_know_is_left_out(#[case] kind: ReviewerKind, #[case] says: &str, #[case] field: &str) {
    let server = Server::new(vec![
        error("400 Bad Request", &json!({ "error": { "message": says, "type": "invalid_request_error" } })),
        streamed(&stream(kind)),
    ]);
    let (response, notes) = ask(&mut server.chat(kind));
    assert_eq!(response.expect("an answer").text, TEXT);
    let requests = server.requests();
    let pointer = format!("/{field}");
    assert!(requests[0].body.pointer(&pointer).is_some());
    assert!(requests[1].body.pointer(&pointer).is_none());
    assert!(notes.waits().is_empty());
}

#[test]
fn thoughts_that_are_not_taken_back_are_left_out() {
    let kind = ReviewerKind::Anthropic;
    let refusal = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block" } });
    let server =
        Server::new(vec![streamed(&stream(kind)), error("400 Bad Request", &refusal), streamed(&stream(kind))]);
    let mut chat = server.chat(kind);
    let response = ask(&mut chat).0.expect("an answer");
    let mut next = request();
    next.messages.push(response.to_message());
    chat.respond(&next, &mut Notes::default()).expect("another answer");
    let kinds: Vec<Value> =
        server.requests()[1..].iter().map(|sent| sent.body["messages"][1]["content"][0]["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "text"]);
}

#[test]
fn the_limit_has_two_names() {
    let refusal = json!({ "error": { "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead." } });
    let server = Server::new(vec![error("400 Bad Request", &refusal), streamed(&stream(ReviewerKind::Openai))]);
    ask(&mut server.chat(ReviewerKind::Openai)).0.expect("an answer");
    let [first, second] = server.requests().try_into().expect("two requests");
    assert_eq!((&first.body["max_tokens"], &second.body["max_completion_tokens"]), (&json!(4096), &json!(4096)));
    assert_eq!(second.body.get("max_tokens"), None);
}

#[test]
fn a_model_without_tools_says_so() {
    use revdeck::reviewers::chat::ToolSupport;
    let kind = ReviewerKind::Ollama;
    let refusal = json!({ "error": "registry.ollama.ai/library/gemma:2b does not support tools" });
    let server = Server::new(vec![error("400 Bad Request", &refusal), streamed(&stream(kind))]);
    let mut chat = server.chat(kind);
    assert_eq!(chat.tool_support(), ToolSupport::Native);
    ask(&mut chat).0.expect("an answer");
    assert_eq!(chat.tool_support(), ToolSupport::None);
}
