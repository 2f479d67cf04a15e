//! Answers that call any tools, in each wire format, with the counts of tokens that each format has.

use revdeck::config::ReviewerKind;
use serde_json::{Value, json};

use super::samples::named;
use super::server::events;

/// Tokens that each answer says it was sent.
pub const INPUT: u64 = 1_000;
/// Tokens that each answer says it has.
pub const OUTPUT: u64 = 100;

/// Returns the stream of a format for an answer that calls these tools with these arguments.
pub fn calling(kind: ReviewerKind, calls: &[(&str, Value)]) -> String {
    match kind {
        ReviewerKind::Openai => openai_chat(calls),
        ReviewerKind::OpenaiResponses => openai_responses(calls),
        ReviewerKind::Anthropic => anthropic(calls),
        ReviewerKind::Gemini => gemini(calls),
        ReviewerKind::Ollama => ollama(calls),
        ReviewerKind::Builtin | ReviewerKind::Command => unreachable!("{kind} talks to no server"),
    }
}

fn openai_chat(calls: &[(&str, Value)]) -> String {
    let chunk = |delta: Value, finish: Value| json!({ "model": "the-model-1", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let mut chunks = Vec::new();
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let call = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function });
        chunks.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
    }
    chunks.push(chunk(json!({}), json!("tool_calls")));
    chunks.push(json!({ "model": "the-model-1", "choices": [], "usage": {
        "prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT } }));
    format!("{}data: [DONE]\n\n", events(&chunks))
}

fn openai_responses(calls: &[(&str, Value)]) -> String {
    let mut events = vec![
        json!({ "type": "response.created", "response": { "id": "r", "model": "the-model-1", "status": "in_progress" } }),
    ];
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let arguments = arguments.to_string();
        let item = |arguments: &str| {
            json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                "name": name, "arguments": arguments })
        };
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": item("") }));
        events.push(
            json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments }),
        );
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item(&arguments) }));
    }
    events.push(json!({ "type": "response.completed", "response": {
        "id": "r", "model": "the-model-1", "status": "completed", "output": [],
        "usage": { "input_tokens": INPUT, "output_tokens": OUTPUT } } }));
    named(&events)
}

fn anthropic(calls: &[(&str, Value)]) -> String {
    let mut events =
        vec![json!({ "type": "message_start", "message": { "id": "m", "model": "the-model-1", "content": [],
        "usage": { "input_tokens": INPUT, "output_tokens": 1 } } })];
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let block = json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} });
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        let delta = json!({ "type": "input_json_delta", "partial_json": arguments.to_string() });
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" },
        "usage": { "output_tokens": OUTPUT } }));
    events.push(json!({ "type": "message_stop" }));
    named(&events)
}

fn gemini(calls: &[(&str, Value)]) -> String {
    let mut chunks = Vec::new();
    for (name, arguments) in calls {
        let parts = json!([{ "functionCall": { "name": name, "args": arguments } }]);
        chunks.push(json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }],
            "modelVersion": "the-model-1" }));
    }
    chunks.push(json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT,
            "totalTokenCount": INPUT + OUTPUT } }));
    events(&chunks)
}

fn ollama(calls: &[(&str, Value)]) -> String {
    let mut lines = Vec::new();
    for (name, arguments) in calls {
        let call = json!({ "function": { "name": name, "arguments": arguments } });
        let message = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
        lines.push(json!({ "model": "the-model-1", "message": message, "done": false }));
    }
    lines.push(json!({ "model": "the-model-1", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "prompt_eval_count": INPUT, "eval_count": OUTPUT }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
