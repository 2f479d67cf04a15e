//! One answer in each wire format, as the real services stream it: a thought, text with multi-byte characters, two
//! calls, token counts.

use revdeck::config::ReviewerKind;
use serde_json::{Value, json};

use super::server::events;

pub const TEXT: &str = "Sieh: „größer“ 🦀 ≠ less.";
pub const FIRST: &str = r#"{"path":"src/ä.rs"}"#;
pub const SECOND: &str = r#"{"findings":[{"line":1},{"line":2}]}"#;

/// Returns the stream of a format: 100 input tokens (60 cached) and 30 output tokens (20 reasoning, if the format
/// reports them).
pub fn stream(kind: ReviewerKind) -> String {
    match kind {
        ReviewerKind::Openai => openai_chat(),
        ReviewerKind::OpenaiResponses => named(&openai_responses()),
        ReviewerKind::Anthropic => named(&anthropic()),
        ReviewerKind::Gemini => events(&gemini()).replace('\n', "\r\n"),
        ReviewerKind::Ollama => ollama(),
        ReviewerKind::Builtin | ReviewerKind::Command => unreachable!("{kind} talks to no server"),
    }
}

/// Formats events with their names, as OpenAI's Responses API and Anthropic send them.
pub fn named(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or(""))).collect()
}

fn halves(text: &str) -> [&str; 2] {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    [&text[..middle], &text[middle..]]
}

fn openai_chat() -> String {
    let chunk =
        |delta: Value, finish: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    chunks.push(chunk(json!({ "reasoning_content": "Hmm." }), Value::Null));
    chunks.extend(halves(TEXT).map(|half| chunk(json!({ "content": half }), Value::Null)));
    for (index, name, arguments) in [(0, "read_file", FIRST), (1, "report_findings", SECOND)] {
        let start = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": { "name": name, "arguments": "" } });
        chunks.push(chunk(json!({ "tool_calls": [start] }), Value::Null));
        for half in halves(arguments) {
            let piece = json!({ "index": index, "function": { "arguments": half } });
            chunks.push(chunk(json!({ "tool_calls": [piece] }), Value::Null));
        }
    }
    chunks.push(chunk(json!({}), json!("tool_calls")));
    chunks.push(json!({ "model": "the-model-1", "choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
        "prompt_tokens_details": { "cached_tokens": 60 }, "completion_tokens_details": { "reasoning_tokens": 20 },
    } }));
    format!(": OPENROUTER PROCESSING\n\n{}data: [DONE]\n\n", events(&chunks))
}

fn openai_responses() -> Vec<Value> {
    let mut events = vec![
        json!({ "type": "response.created", "response": { "id": "r", "model": "the-model-1", "status": "in_progress" } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning", "id": "rs_1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": {
            "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEALED", "status": null } }),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": { "type": "message", "role": "assistant" } }),
        json!({ "type": "response.content_part.added", "output_index": 1, "part": { "type": "output_text", "text": "" } }),
    ];
    events.extend(
        halves(TEXT).map(|half| json!({ "type": "response.output_text.delta", "output_index": 1, "delta": half })),
    );
    events.push(json!({ "type": "response.output_text.done", "output_index": 1, "text": TEXT }));
    for (index, name, arguments) in [(2, "read_file", FIRST), (3, "report_findings", SECOND)] {
        let item = |arguments: &str| json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"), "name": name, "arguments": arguments });
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": item("") }));
        events.extend(halves(arguments).map(
            |half| json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": half }),
        ));
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item(arguments) }));
    }
    events.push(json!({ "type": "response.completed", "response": {
        "id": "r", "model": "the-model-1", "status": "completed",
        "output": [{ "type": "message", "content": [{ "type": "output_text", "text": TEXT }] }],
        "usage": { "input_tokens": 100, "input_tokens_details": { "cached_tokens": 60 },
            "output_tokens": 30, "output_tokens_details": { "reasoning_tokens": 20 } } } }));
    events
}

fn anthropic() -> Vec<Value> {
    let start =
        |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let mut events = vec![
        json!({ "type": "message_start", "message": { "id": "m", "model": "the-model-1", "content": [], "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 1 } } }),
        json!({ "type": "ping" }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hmm." })),
        delta(0, json!({ "type": "signature_delta", "signature": "SIG" })),
        delta(0, json!({ "type": "signature_delta", "signature": "NED" })),
        stop(0),
        start(1, json!({ "type": "text", "text": "" })),
    ];
    events.extend(halves(TEXT).map(|half| delta(1, json!({ "type": "text_delta", "text": half }))));
    events.push(stop(1));
    for (index, name, arguments) in [(2, "read_file", FIRST), (3, "report_findings", SECOND)] {
        events.push(start(
            index,
            json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} }),
        ));
        events.extend(
            halves(arguments).map(|half| delta(index, json!({ "type": "input_json_delta", "partial_json": half }))),
        );
        events.push(stop(index));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": {
        "output_tokens": 30, "output_tokens_details": { "thinking_tokens": 20 } } }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn gemini() -> Vec<Value> {
    let chunk = |parts: Value| json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }], "modelVersion": "the-model-1" });
    let mut chunks = vec![chunk(json!([{ "text": "Hmm.", "thought": true }]))];
    chunks.extend(halves(TEXT).map(|half| chunk(json!([{ "text": half }]))));
    let call = |name: &str, arguments: &str| json!({ "name": name, "args": serde_json::from_str::<Value>(arguments).expect("JSON") });
    chunks.push(chunk(json!([{ "functionCall": call("read_file", FIRST), "thoughtSignature": "SIGNED" }])));
    chunks.push(chunk(json!([{ "functionCall": call("report_findings", SECOND) }])));
    chunks.push(json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 100, "cachedContentTokenCount": 60,
            "candidatesTokenCount": 10, "thoughtsTokenCount": 20, "totalTokenCount": 130 } }));
    chunks
}

fn ollama() -> String {
    let line = |message: Value| json!({ "model": "the-model-1", "message": message, "done": false });
    let mut lines = vec![line(json!({ "role": "assistant", "content": "", "thinking": "Hmm." }))];
    lines.extend(halves(TEXT).map(|half| line(json!({ "role": "assistant", "content": half }))));
    for (name, arguments) in [("read_file", FIRST), ("report_findings", SECOND)] {
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let call = json!({ "function": { "name": name, "arguments": arguments } });
        lines.push(line(json!({ "role": "assistant", "content": "", "tool_calls": [call] })));
    }
    lines.push(json!({ "model": "the-model-1", "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 30 }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
