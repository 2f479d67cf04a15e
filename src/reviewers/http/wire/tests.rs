//! Tests of the requests and events of each format. `tests/it/http` tests whole exchanges against servers.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::domain::{ChatMessage, ChatResponse, StopReason, ToolSpec, Usage};
use crate::reviewers::http::api_key::ApiKey;

/// Lists the kinds that talk to a model over HTTP.
fn http_kinds() -> impl Iterator<Item = ReviewerKind> {
    ReviewerKind::ALL.iter().copied().filter(|kind| kind.is_http())
}

fn request() -> ChatRequest {
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: "read_file".to_owned(),
        arguments: arguments.to_owned(),
    };
    ChatRequest {
        system: "You review.".to_owned(),
        messages: vec![
            ChatMessage::User { text: "The task.".to_owned() },
            ChatMessage::Assistant {
                text: "Reading.".to_owned(),
                calls: vec![call("call_1", r#"{"path":"a"}"#), call("rd_2", r#"{"path":"cut"#)],
                opaque: Vec::new(),
            },
            ChatMessage::Tool { call_id: "call_1".to_owned(), name: "read_file".to_owned(), text: "fn a".to_owned() },
            ChatMessage::Tool { call_id: "rd_2".to_owned(), name: "read_file".to_owned(), text: "cut off".to_owned() },
            ChatMessage::User { text: "Go on.".to_owned() },
        ],
        tools: vec![ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads.".to_owned(),
            parameters: json!({ "type": "object" }),
        }],
        max_output: 4096,
        temperature: Some(0.5),
        pinned: 1,
    }
}

fn format_of(kind: ReviewerKind) -> &'static dyn WireFormat {
    from_kind(kind).expect("a kind that talks to a server")
}

#[test]
fn each_kind_with_a_service_has_its_format() {
    for kind in ReviewerKind::ALL {
        assert_eq!(from_kind(*kind).map(WireFormat::kind), kind.is_http().then_some(*kind), "{kind}");
        let embeds = from_kind(*kind).is_some_and(|wire| wire.embeddings_request("m", &[]).is_some());
        assert_eq!(embeds, ReviewerKind::WITH_EMBEDDINGS.contains(kind), "{kind}");
    }
}

fn body(kind: ReviewerKind, model: &str, effort: Option<Effort>, left_out: &[OptionalField]) -> Value {
    let left_out = left_out.iter().copied().collect();
    format_of(kind).build_body(
        &request(),
        &RequestOptions { model, effort, window: Some(65_536), is_official: true, unsupported: &left_out },
    )
}

#[test]
fn openai_chat() {
    assert_eq!(
        body(ReviewerKind::Openai, "gpt", Some(Effort::High), &[]),
        json!({
            "model": "gpt",
            "messages": [
                { "role": "system", "content": "You review." },
                { "role": "user", "content": "The task." },
                { "role": "assistant", "content": "Reading.", "tool_calls": [
                    { "id": "call_1", "type": "function", "function": { "name": "read_file", "arguments": "{\"path\":\"a\"}" } },
                    { "id": "rd_2", "type": "function", "function": { "name": "read_file", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "call_1", "content": "fn a" },
                { "role": "tool", "tool_call_id": "rd_2", "content": "cut off" },
                { "role": "user", "content": "Go on." },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_completion_tokens": 4096,
            "temperature": 0.5,
            "reasoning_effort": "high",
            "tools": [{ "type": "function", "function": {
                "name": "read_file", "description": "Reads.", "parameters": { "type": "object" },
            } }],
        })
    );
    let least = [
        OptionalField::Stream,
        OptionalField::Temperature,
        OptionalField::Effort,
        OptionalField::DefaultLimitName,
        OptionalField::Tools,
    ];
    let body = body(ReviewerKind::Openai, "gpt", Some(Effort::High), &least);
    let fields: Vec<&str> = body.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["model", "messages", "stream", "max_tokens"]);
    assert_eq!(body["stream"], false);
}

#[test]
fn openai_responses() {
    assert_eq!(
        body(ReviewerKind::OpenaiResponses, "gpt", Some(Effort::Low), &[]),
        json!({
            "model": "gpt",
            "instructions": "You review.",
            "input": [
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "The task." }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Reading." }] },
                { "type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\":\"a\"}" },
                { "type": "function_call", "call_id": "rd_2", "name": "read_file", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "call_1", "output": "fn a" },
                { "type": "function_call_output", "call_id": "rd_2", "output": "cut off" },
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Go on." }] },
            ],
            "max_output_tokens": 4096,
            "store": false,
            "stream": true,
            "include": ["reasoning.encrypted_content"],
            "temperature": 0.5,
            "reasoning": { "effort": "low" },
            "tools": [{
                "type": "function", "name": "read_file", "description": "Reads.",
                "parameters": { "type": "object" }, "strict": false,
            }],
        })
    );
}

#[test]
fn anthropic() {
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(
        body(ReviewerKind::Anthropic, "claude-haiku-4-5", None, &[]),
        json!({
            "model": "claude-haiku-4-5",
            "max_tokens": 4096,
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "The task.", "cache_control": mark }] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Reading." },
                    { "type": "tool_use", "id": "call_1", "name": "read_file", "input": { "path": "a" } },
                    { "type": "tool_use", "id": "rd_2", "name": "read_file", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_1", "content": "fn a" },
                    { "type": "tool_result", "tool_use_id": "rd_2", "content": "cut off" },
                    { "type": "text", "text": "Go on." },
                ] },
            ],
            "stream": true,
            "system": [{ "type": "text", "text": "You review.", "cache_control": mark }],
            "tools": [{ "name": "read_file", "description": "Reads.", "input_schema": { "type": "object" } }],
            "temperature": 0.5,
        })
    );
    let without = body(ReviewerKind::Anthropic, "claude-haiku-4-5", None, &[OptionalField::CacheControl]);
    assert!(!without.to_string().contains("cache_control"));
}

#[test]
fn gemini() {
    assert_eq!(
        body(ReviewerKind::Gemini, "gemini-3-pro", None, &[]),
        json!({
            "contents": [
                { "role": "user", "parts": [{ "text": "The task." }] },
                { "role": "model", "parts": [
                    { "text": "Reading." },
                    {
                        "functionCall": { "name": "read_file", "args": { "path": "a" }, "id": "call_1" },
                        "thoughtSignature": "skip_thought_signature_validator",
                    },
                    { "functionCall": { "name": "read_file", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "read_file", "response": { "output": "fn a" }, "id": "call_1" } },
                    { "functionResponse": { "name": "read_file", "response": { "output": "cut off" } } },
                ] },
                { "role": "user", "parts": [{ "text": "Go on." }] },
            ],
            "generationConfig": { "maxOutputTokens": 4096, "temperature": 0.5 },
            "systemInstruction": { "parts": [{ "text": "You review." }] },
            "tools": [{ "functionDeclarations": [
                { "name": "read_file", "description": "Reads.", "parametersJsonSchema": { "type": "object" } },
            ] }],
        })
    );
}

#[test]
fn ollama() {
    assert_eq!(
        body(ReviewerKind::Ollama, "qwen3:8b", Some(Effort::Low), &[]),
        json!({
            "model": "qwen3:8b",
            "messages": [
                { "role": "system", "content": "You review." },
                { "role": "user", "content": "The task." },
                { "role": "assistant", "content": "Reading.", "tool_calls": [
                    { "function": { "name": "read_file", "arguments": { "path": "a" } }, "id": "call_1" },
                    { "function": { "name": "read_file", "arguments": {} } },
                ] },
                { "role": "tool", "tool_name": "read_file", "content": "fn a", "tool_call_id": "call_1" },
                { "role": "tool", "tool_name": "read_file", "content": "cut off" },
                { "role": "user", "content": "Go on." },
            ],
            "stream": true,
            "options": { "num_predict": 4096, "num_ctx": 65536, "temperature": 0.5 },
            "truncate": false,
            "shift": false,
            "think": true,
            "tools": [{ "type": "function", "function": {
                "name": "read_file", "description": "Reads.", "parameters": { "type": "object" },
            } }],
        })
    );
    let unknown =
        RequestOptions { model: "m", effort: None, window: None, is_official: true, unsupported: &BTreeSet::new() };
    let mut request = request();
    assert_eq!(format_of(ReviewerKind::Ollama).build_body(&request, &unknown)["options"]["num_ctx"], 16_384);
    request.system = "x".repeat(120_000);
    assert_eq!(format_of(ReviewerKind::Ollama).build_body(&request, &unknown)["options"]["num_ctx"], 65_536);
}

#[rstest]
#[case::adaptive("claude-opus-4-6", Some(json!("high")), Some(json!({ "type": "adaptive" })))]
#[case::dotted("anthropic/claude-sonnet-5.1", Some(json!("high")), Some(json!({ "type": "adaptive" })))]
#[case::newer("claude-mythos-latest", Some(json!("high")), Some(json!({ "type": "adaptive" })))]
#[case::effort_only("claude-opus-4-5-20251101", Some(json!("high")), None)]
#[case::tokens("claude-sonnet-4-20250514", None, Some(json!({ "type": "enabled", "budget_tokens": 2048 })))]
#[case::old_names("claude-3-7-sonnet-latest", None, Some(json!({ "type": "enabled", "budget_tokens": 2048 })))]
fn anthropic_effort(#[case] model: &str, #[case] effort: Option<Value>, #[case] thinking: Option<Value>) {
    let mut request = request();
    // A model with a thinking budget must find its thinking blocks before the calls.
    request.messages.truncate(1);
    let ask = RequestOptions {
        model,
        effort: Some(Effort::High),
        window: None,
        is_official: true,
        unsupported: &BTreeSet::new(),
    };
    let body = format_of(ReviewerKind::Anthropic).build_body(&request, &ask);
    assert_eq!(body.pointer("/output_config/effort").cloned(), effort);
    assert_eq!(body.get("thinking").cloned(), thinking);
    assert_eq!(body.get("temperature").is_some(), thinking.is_none());
}

#[test]
fn a_budget_to_think_with_needs_the_thoughts_before_calls() {
    assert_eq!(body(ReviewerKind::Anthropic, "claude-sonnet-4-0", Some(Effort::High), &[]).get("thinking"), None);
}

#[rstest]
#[case("gemini-2.5-pro", json!({ "thinkingBudget": 8192 }))]
#[case("gemini-3-pro-preview", json!({ "thinkingLevel": "MEDIUM" }))]
fn gemini_effort(#[case] model: &str, #[case] thinking: Value) {
    let body = body(ReviewerKind::Gemini, model, Some(Effort::Medium), &[]);
    assert_eq!(body["generationConfig"]["thinkingConfig"], thinking);
    let signed = body.to_string().contains("skip_thought_signature_validator");
    assert_eq!(signed, model.contains("gemini-3"));
}

/// Returns the answer that these events produce.
fn answer(kind: ReviewerKind, events: &[Value]) -> ChatResponse {
    let mut answer = ResponseBuilder::default();
    let mut reader = format_of(kind).new_reader("m");
    for event in events {
        reader.read_event(event, &mut answer).expect("events without an error");
    }
    answer.into_response(&ApiKey::new(None))
}

#[rstest]
#[case::openai(ReviewerKind::Openai, json!({ "usage": {
    "prompt_tokens": 100, "prompt_tokens_details": { "cached_tokens": 60 },
    "completion_tokens": 30, "completion_tokens_details": { "reasoning_tokens": 20 }, "total_tokens": 130,
} }), [100, 60, 10, 20])]
#[case::xai(ReviewerKind::Openai, json!({ "usage": {
    "prompt_tokens": 100, "completion_tokens": 30, "completion_tokens_details": { "reasoning_tokens": 20 }, "total_tokens": 150,
} }), [100, 0, 30, 20])]
#[case::deepseek(ReviewerKind::Openai, json!({ "usage": {
    "prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "completion_tokens": 30,
} }), [100, 64, 30, 0])]
#[case::nonsense(ReviewerKind::Openai, json!({ "usage": {
    "prompt_tokens": -5, "completion_tokens": "many", "completion_tokens_details": { "reasoning_tokens": u64::MAX }, "total_tokens": 1.5,
} }), [0, 0, 0, 0])]
#[case::responses(ReviewerKind::OpenaiResponses, json!({ "type": "response.completed", "response": { "status": "completed", "usage": {
    "input_tokens": 100, "input_tokens_details": { "cached_tokens": 60 },
    "output_tokens": 30, "output_tokens_details": { "reasoning_tokens": 20 },
} } }), [100, 60, 10, 20])]
#[case::anthropic(ReviewerKind::Anthropic, json!({ "type": "message_delta", "usage": {
    "input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60,
    "output_tokens": 30, "output_tokens_details": { "thinking_tokens": 20 },
} }), [100, 60, 10, 20])]
#[case::gemini(ReviewerKind::Gemini, json!({ "usageMetadata": {
    "promptTokenCount": 90, "toolUsePromptTokenCount": 10, "cachedContentTokenCount": 60,
    "candidatesTokenCount": 10, "thoughtsTokenCount": 20, "totalTokenCount": 130,
} }), [100, 60, 10, 20])]
#[case::ollama(ReviewerKind::Ollama, json!({ "done": true, "prompt_eval_count": 100, "eval_count": 30 }), [100, 0, 30, 0])]
fn tokens_are_counted_once(#[case] kind: ReviewerKind, #[case] event: Value, #[case] counts: [u64; 4]) {
    let [input, cached, output, reasoning] = counts;
    assert_eq!(answer(kind, &[event]).usage, Usage { input, cached, output, reasoning, ..Usage::default() });
}

#[test]
fn counts_of_anthropic_are_totals() {
    let start = json!({ "type": "message_start", "message": { "usage": { "input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1 } } });
    let delta = json!({ "type": "message_delta", "usage": { "input_tokens": 0, "output_tokens": 25 } });
    assert_eq!(
        answer(ReviewerKind::Anthropic, &[start, delta]).usage,
        Usage { input: 100, cached: 90, output: 25, ..Usage::default() }
    );
}

#[rstest]
#[case(ReviewerKind::Openai, "/choices/0/finish_reason", &[
    ("stop", StopReason::Done), ("length", StopReason::Length), ("content_filter", StopReason::Refused), ("whim", StopReason::Unknown)])]
#[case(ReviewerKind::Anthropic, "/delta/stop_reason", &[
    ("end_turn", StopReason::Done), ("stop_sequence", StopReason::Done), ("max_tokens", StopReason::Length),
    ("model_context_window_exceeded", StopReason::Length), ("refusal", StopReason::Refused), ("pause_turn", StopReason::Unknown)])]
#[case(ReviewerKind::Gemini, "/candidates/0/finishReason", &[
    ("STOP", StopReason::Done), ("MAX_TOKENS", StopReason::Length), ("SAFETY", StopReason::Refused), ("MALFORMED_FUNCTION_CALL", StopReason::Unknown)])]
#[case(ReviewerKind::Ollama, "/done_reason", &[("stop", StopReason::Done), ("length", StopReason::Length), ("load", StopReason::Unknown)])]
fn stops(#[case] kind: ReviewerKind, #[case] place: &str, #[case] reasons: &[(&str, StopReason)]) {
    for (reason, stop) in reasons {
        let mut event = json!({
            "type": "message_delta", "delta": { "stop_reason": "" },
            "choices": [{ "finish_reason": "" }], "candidates": [{ "finishReason": "" }],
            "done": true, "done_reason": "",
        });
        *event.pointer_mut(place).expect("the place of the reason") = json!(reason);
        assert_eq!(answer(kind, &[event]).stop, *stop, "{reason}");
    }
}

#[rstest]
#[case("completed", json!(null), StopReason::Done)]
#[case("incomplete", json!({ "reason": "max_output_tokens" }), StopReason::Length)]
#[case("incomplete", json!({ "reason": "content_filter" }), StopReason::Refused)]
#[case("queued", json!(null), StopReason::Unknown)]
fn stops_of_responses(#[case] status: &str, #[case] details: Value, #[case] stop: StopReason) {
    let event =
        json!({ "type": "response.completed", "response": { "status": status, "incomplete_details": details } });
    assert_eq!(answer(ReviewerKind::OpenaiResponses, &[event]).stop, stop);
}

#[test]
fn refusals_in_words_are_refusals() {
    let events = [
        json!({ "choices": [{ "delta": { "refusal": "I will " } }] }),
        json!({ "choices": [{ "delta": { "refusal": "not." }, "finish_reason": "stop" }] }),
    ];
    let response = answer(ReviewerKind::Openai, &events);
    assert_eq!((response.stop, response.text.as_str()), (StopReason::Refused, "I will not."));
    let events = [
        json!({ "type": "response.refusal.delta", "delta": "No." }),
        json!({ "type": "response.completed", "response": { "status": "completed" } }),
    ];
    assert_eq!(answer(ReviewerKind::OpenaiResponses, &events).stop, StopReason::Refused);
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    assert_eq!(answer(ReviewerKind::Gemini, &[blocked]).stop, StopReason::Refused);
}

#[test]
fn calls_of_gemini_in_the_openai_format_share_an_index() {
    let call = |id: &str, path: &str| {
        let function = json!({ "name": "read_file", "arguments": format!("{{\"path\":\"{path}\"}}") });
        let signature = json!({ "google": { "thought_signature": format!("sig-{id}") } });
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": id, "function": function, "extra_content": signature }] } }] })
    };
    let stop = json!({ "choices": [{ "finish_reason": "tool_calls" }] });
    let response = answer(ReviewerKind::Openai, &[call("a", "x"), call("b", "y"), stop]);
    let paths: Vec<&str> = response.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(paths, [r#"{"path":"x"}"#, r#"{"path":"y"}"#]);
    let mut request = request();
    request.messages = vec![response.to_message()];
    let left_out = BTreeSet::new();
    let ask = RequestOptions { model: "m", effort: None, window: None, is_official: false, unsupported: &left_out };
    let body = format_of(ReviewerKind::Openai).build_body(&request, &ask);
    assert_eq!(body["messages"][1]["tool_calls"][1]["extra_content"]["google"]["thought_signature"], "sig-b");
    assert_eq!(body["max_tokens"], 4096, "the old name, for servers other than OpenAI's");
}

#[test]
fn thoughts_of_openrouter_are_put_together() {
    let delta = |details: Value| json!({ "choices": [{ "delta": { "reasoning_details": details } }] });
    let response = answer(
        ReviewerKind::Openai,
        &[
            delta(json!([{ "type": "reasoning.text", "index": 0, "text": "Hm", "signature": null }])),
            delta(json!([{ "type": "reasoning.text", "index": 0, "text": "m.", "signature": "s" }])),
            delta(json!([{ "type": "reasoning.encrypted", "index": 1, "data": "zzz" }])),
            json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "n", "arguments": "{}" } }] }, "finish_reason": "tool_calls" }] }),
        ],
    );
    assert_eq!(
        response.opaque[0]["item"]["reasoning_details"],
        json!([
            { "type": "reasoning.text", "index": 0, "text": "Hmm.", "signature": "s" },
            { "type": "reasoning.encrypted", "index": 1, "data": "zzz" },
        ])
    );
}

#[test]
fn thoughts_go_back_to_the_model_that_had_them() {
    let given =
        |kind: ReviewerKind, model: &str| wrap_opaque(kind, model, json!({ "type": "thinking", "signature": "s" }));
    let opaque = [
        given(ReviewerKind::Anthropic, "m"),
        given(ReviewerKind::Anthropic, "another"),
        given(ReviewerKind::OpenaiResponses, "m"),
        json!("nonsense"),
    ];
    for (left_out, given) in [(BTreeSet::new(), 1), (BTreeSet::from([OptionalField::OpaqueReasoning]), 0)] {
        let ask = RequestOptions { model: "m", effort: None, window: None, is_official: true, unsupported: &left_out };
        assert_eq!(ask.opaque_items(ReviewerKind::Anthropic, &opaque).count(), given);
    }
}

#[test]
fn what_is_not_known_is_passed_over() {
    for kind in http_kinds() {
        let mut answer = ResponseBuilder::default();
        let mut reader = format_of(kind).new_reader("m");
        for event in [
            json!(null),
            json!(7),
            json!([]),
            json!({ "type": 3, "choices": 4, "candidates": {}, "message": "x", "index": -1 }),
            json!({ "type": "whim", "delta": { "type": "whim" } }),
            json!({ "type": "content_block_start", "content_block": { "type": "server_tool_use" } }),
            json!({ "type": "content_block_delta", "index": 9, "delta": { "type": "citations_delta" } }),
            json!({ "choices": [{ "delta": { "reasoning_details": ["x", {}, null, { "type": "y" }] } }] }),
            json!({ "choices": [{ "index": 1, "delta": { "content": "of another choice" } }] }),
        ] {
            assert!(reader.read_event(&event, &mut answer).is_ok(), "{kind}: {event}");
        }
        assert_eq!(answer.text, "", "{kind}");
    }
}

#[test]
fn an_error_in_a_stream_is_one() {
    for (kind, event) in [
        (ReviewerKind::Openai, json!({ "error": { "message": "oops" } })),
        (ReviewerKind::Openai, json!({ "object": "error", "message": "oops" })),
        (ReviewerKind::Openai, json!({ "choices": [{ "error": { "code": 502 }, "finish_reason": "error" }] })),
        (ReviewerKind::OpenaiResponses, json!({ "type": "error", "message": "oops" })),
        (
            ReviewerKind::OpenaiResponses,
            json!({ "type": "response.failed", "response": { "status": "failed", "error": { "code": "server_error" } } }),
        ),
        (ReviewerKind::Anthropic, json!({ "type": "error", "error": { "type": "overloaded_error" } })),
        (ReviewerKind::Gemini, json!({ "error": { "code": 503 } })),
        (ReviewerKind::Gemini, json!([{ "error": { "code": 503 } }])),
        (ReviewerKind::Ollama, json!({ "error": "oops" })),
    ] {
        let read = format_of(kind).new_reader("m").read_event(&event, &mut ResponseBuilder::default());
        assert!(matches!(read, Err(EventError::Server(_))), "{kind}: {event}");
    }
}

/// Generates arbitrary JSON from words of the formats.
fn events() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "choices",
        "delta",
        "message",
        "content",
        "tool_calls",
        "index",
        "function",
        "name",
        "arguments",
        "id",
        "usage",
        "error",
        "finish_reason",
        "reasoning_details",
        "text",
        "data",
        "extra_content",
        "response",
        "item",
        "output",
        "output_index",
        "call_id",
        "status",
        "summary",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "thoughtSignature",
        "content_block",
        "input",
        "partial_json",
        "thinking",
        "signature",
        "done",
        "usageMetadata",
    ]);
    let types = prop::sample::select(vec![
        "text",
        "thinking",
        "tool_use",
        "text_delta",
        "input_json_delta",
        "signature_delta",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "function_call",
        "reasoning",
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.failed",
        "completed",
        "stop",
        "{\"a\":1}",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..3).prop_map(Value::from),
        types.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_events_make_a_reader_stumble(events in prop::collection::vec(events(), 1..12)) {
        for kind in http_kinds() {
            let mut answer = ResponseBuilder::default();
            let mut reader = format_of(kind).new_reader("m");
            for event in &events {
                let _ = reader.read_event(event, &mut answer);
            }
            // Any answer can be sent back to any provider.
            let mut request = request();
            request.messages.push(answer.into_response(&ApiKey::new(None)).to_message());
            for other in http_kinds() {
                let ask = RequestOptions { model: "m", effort: None, window: None, is_official: true, unsupported: &BTreeSet::new() };
                let body = format_of(other).build_body(&request, &ask);
                prop_assert!(body.is_object(), "{}", body);
            }
        }
    }
}
