//! Measures the engine's work on a model's answer. Targets: less than 10 ms to read 300 reports from 200 KB, and less
//! than 5 ms for a whole turn (an answer with findings, results of tools, the next window of 70,000 tokens).
//!
//! ```text
//! cargo bench --bench review
//! ```

use divan::Bencher;
use divan::counter::BytesCount;
use revdeck::domain::{ChatResponse, DiffPart, LineRange, StopReason, SummaryAuthor, ToolCall, ToolOutcome, Usage};
use revdeck::review::conversation::{
    ConversationEffect, ConversationEngine, ConversationEvent, ConversationLimits, ConversationPrompt,
    ConversationToolResult, RemainingBudget, ReviewTask,
};
use revdeck::review::{PlannedFile, ReviewPlan, extract_reports};
use revdeck::tokens::{Encoding, count_tokens};

const REPORTS: usize = 300;
const SIZE: usize = 200_000;

fn main() {
    for (name, text) in [("JSON", as_json()), ("prose", in_prose()), ("broken JSON", as_broken_json())] {
        assert!(text.len() >= SIZE, "{name}: {} bytes", text.len());
        assert_eq!(extract_reports(&answer(text)).reports.len(), REPORTS, "{name}");
    }
    divan::main();
}

fn answer(text: String) -> ChatResponse {
    ChatResponse {
        text,
        calls: Vec::new(),
        opaque: Vec::new(),
        stop: StopReason::Done,
        usage: Usage::default(),
        model: String::new(),
    }
}

fn report(number: usize) -> serde_json::Value {
    serde_json::json!({
        "priority": number % 4,
        "severity": "high",
        "confidence": "medium",
        "kind": "ERROR_HANDLING",
        "title": format!("The result of `write` is thrown away in `flush_{number}`"),
        "explanation": "When the disk is full, the caller goes on as if all were written. ".repeat(5),
        "repo_relative_path": format!("src/store/file_{number}.rs"),
        "line_start": number + 1,
        "line_end": number + 3,
        "quoted_code": "    let _ = file.write(\"bytes\");\n    file.flush();",
        "suggestion": "Hand the error on.",
    })
}

fn as_json() -> String {
    let reports: Vec<_> = (0..REPORTS).map(report).collect();
    format!("{:#}", serde_json::json!({ "findings": reports }))
}

fn in_prose() -> String {
    let block = |number| {
        format!("Next, `map[{number}]` (see [docs](x)) and it's {{odd}}:\n\n```json\n[{:#}]\n```\n", report(number))
    };
    (0..REPORTS).map(block).collect()
}

/// Returns the answer with comments, trailing commas and unescaped quotes.
fn as_broken_json() -> String {
    as_json().replace("\\\"", "\"").replace("\n    },", ",\n    }, // next")
}

#[divan::bench]
fn extracting_json(bencher: Bencher<'_, '_>) {
    bench(bencher, as_json());
}

#[divan::bench]
fn extracting_from_prose(bencher: Bencher<'_, '_>) {
    bench(bencher, in_prose());
}

#[divan::bench]
fn extracting_broken_json(bencher: Bencher<'_, '_>) {
    bench(bencher, as_broken_json());
}

fn bench(bencher: Bencher<'_, '_>, text: String) {
    let response = answer(text);
    bencher.counter(BytesCount::new(response.text.len())).bench(|| extract_reports(&response));
}

fn task() -> ReviewTask {
    let lines = LineRange { start: 1, end: 400 };
    let text = "   12 +    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n".repeat(900);
    let tokens = count_tokens(Encoding::O200kBase, &text) as u64;
    let path = "src/store/file_1.rs".to_owned();
    ReviewTask {
        known_findings: Vec::new(),
        plan: ReviewPlan {
            files: vec![PlannedFile { path: path.clone(), hunks: vec![lines], keys: Vec::new(), added_lines: 400 }],
            left_out: Vec::new(),
            unit_files: 1,
            has_whole_unit: false,
            carried: Vec::new(),
        },
        parts: vec![DiffPart { path, hunks: vec![lines], text, tokens }],
        system: "You review changes to code. ".repeat(200),
        tools: Vec::new(),
        limits: ConversationLimits {
            max_turns: 20,
            window_tokens: 70_000,
            output_tokens: 8_000,
            slide_after_turn: 5,
            slide_over_messages: 15,
            keep_messages: 10,
            budget: RemainingBudget::default(),
            input_price: None,
            approximate: false,
            summary: SummaryAuthor::Local,
            opinion: None,
        },
        count: Box::new(|text| count_tokens(Encoding::O200kBase, text) as u64),
        render_prompt: Box::new(|say| match say {
            ConversationPrompt::Task { diff, .. } | ConversationPrompt::More { diff, .. } => diff.to_owned(),
            ConversationPrompt::Masked { .. } => "[a result stood here]".to_owned(),
            _ => "Go on.".to_owned(),
        }),
        overhead: 6,
    }
}

/// Returns an engine that has requested the turn after this number of turns.
fn after(turns: u32) -> ConversationEngine {
    let mut dialog = ConversationEngine::new();
    dialog.handle(ConversationEvent::Started(Box::new(task())));
    (0..turns).for_each(|_| play(&mut dialog));
    dialog
}

/// Plays one turn with three tool calls whose results have 8 KB each.
fn play(dialog: &mut ConversationEngine) {
    let call = |number: u32| ToolCall {
        id: format!("call_{number}"),
        name: "read_file".to_owned(),
        arguments: format!("{{\"path\": \"src/file_{number}.rs\"}}"),
    };
    let response = ChatResponse {
        calls: (0..3).map(call).collect(),
        stop: StopReason::Tools,
        ..answer(format!("{} Looking on.", as_json().get(..2_000).unwrap_or_default()))
    };
    let answered =
        ConversationEvent::Answered { response: Box::new(response), first_ms: 1, took_ms: 2, cost: Some(0.0) };
    let mut effects = dialog.handle(answered);
    if effects.iter().any(|effect| matches!(effect, ConversationEffect::Validate { .. })) {
        effects = dialog.handle(ConversationEvent::Validated(Vec::new()));
    }
    assert!(effects.iter().any(|effect| matches!(effect, ConversationEffect::RunTools { .. })));
    let result = || ConversationToolResult {
        text: "  12  let total = items.iter().map(|item| item.price * item.count).sum();\n".repeat(110),
        outcome: ToolOutcome::Answered,
        summary: "read".to_owned(),
        shown: Vec::new(),
    };
    let effects = dialog.handle(ConversationEvent::ToolsAnswered((0..3).map(|_| result()).collect()));
    assert!(effects.iter().any(|effect| matches!(effect, ConversationEffect::Ask { .. })));
}

#[divan::bench(args = [0, 4, 10, 17])]
fn turn(bencher: Bencher<'_, '_>, before: u32) {
    bencher.with_inputs(|| after(before)).bench_values(|mut dialog| {
        play(&mut dialog);
        dialog
    });
}
