//! What the engine does with a model's answer: reading 300 reports out of 200 KB is to take less than 10 ms, and a whole
//! turn (an answer with findings, results of tools, the next window of 70,000 tokens) less than 5 ms.
//!
//! ```text
//! cargo bench --bench review
//! ```

use divan::Bencher;
use divan::counter::BytesCount;
use revdeck::context::tokens::{Encoding, count};
use revdeck::domain::{LineRange, Response, Stop, ToolCall, ToolOutcome, Usage};
use revdeck::review::dialog::{Budget, Dialog, Effect, Event, Limits, Part, Say, SummaryBy, Task, ToolAnswer};
use revdeck::review::{Plan, PlannedFile, extract};

const REPORTS: usize = 300;
const SIZE: usize = 200_000;

fn main() {
    for (name, text) in [("JSON", as_json()), ("prose", in_prose()), ("broken JSON", as_broken_json())] {
        assert!(text.len() >= SIZE, "{name}: {} bytes", text.len());
        assert_eq!(extract(&answer(text)).reports.len(), REPORTS, "{name}");
    }
    divan::main();
}

fn answer(text: String) -> Response {
    Response {
        text,
        calls: Vec::new(),
        opaque: Vec::new(),
        stop: Stop::Done,
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

/// Comments, trailing commas, and quotes that are not escaped.
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
    bencher.counter(BytesCount::new(response.text.len())).bench(|| extract(&response));
}

fn task() -> Task {
    let lines = LineRange { start: 1, end: 400 };
    let text = "   12 +    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n".repeat(900);
    let tokens = count(Encoding::O200kBase, &text) as u64;
    let path = "src/store/file_1.rs".to_owned();
    Task {
        known: Vec::new(),
        plan: Plan {
            files: vec![PlannedFile { path: path.clone(), hunks: vec![lines], keys: Vec::new(), added_lines: 400 }],
            left_out: Vec::new(),
            unit_files: 1,
            whole: false,
            carried: Vec::new(),
        },
        parts: vec![Part { path, hunks: vec![lines], text, tokens }],
        system: "You review changes to code. ".repeat(200),
        tools: Vec::new(),
        limits: Limits {
            max_turns: 20,
            window_tokens: 70_000,
            output_tokens: 8_000,
            slide_after_turn: 5,
            slide_over_messages: 15,
            keep_messages: 10,
            budget: Budget::default(),
            input_price: None,
            approximate: false,
            summary: SummaryBy::Local,
            opinion: None,
        },
        count: Box::new(|text| count(Encoding::O200kBase, text) as u64),
        say: Box::new(|say| match say {
            Say::Task { diff, .. } | Say::More { diff, .. } => diff.to_owned(),
            Say::Masked { .. } => "[a result stood here]".to_owned(),
            _ => "Go on.".to_owned(),
        }),
        overhead: 6,
    }
}

/// An engine that has asked for the turn after this one.
fn after(turns: u32) -> Dialog {
    let mut dialog = Dialog::new();
    dialog.handle(Event::Started(Box::new(task())));
    (0..turns).for_each(|_| play(&mut dialog));
    dialog
}

/// One turn with three tool calls whose results have 8 KB each.
fn play(dialog: &mut Dialog) {
    let call = |number: u32| ToolCall {
        id: format!("call_{number}"),
        name: "read_file".to_owned(),
        arguments: format!("{{\"path\": \"src/file_{number}.rs\"}}"),
    };
    let response = Response {
        calls: (0..3).map(call).collect(),
        stop: Stop::Tools,
        ..answer(format!("{} Looking on.", as_json().get(..2_000).unwrap_or_default()))
    };
    let answered = Event::Answered { response: Box::new(response), first_ms: 1, took_ms: 2, cost: Some(0.0) };
    let mut effects = dialog.handle(answered);
    if effects.iter().any(|effect| matches!(effect, Effect::Examine { .. })) {
        effects = dialog.handle(Event::Examined(Vec::new()));
    }
    assert!(effects.iter().any(|effect| matches!(effect, Effect::RunTools { .. })));
    let result = || ToolAnswer {
        text: "  12  let total = items.iter().map(|item| item.price * item.count).sum();\n".repeat(110),
        outcome: ToolOutcome::Answered,
        summary: "read".to_owned(),
        shown: Vec::new(),
    };
    let effects = dialog.handle(Event::ToolsAnswered((0..3).map(|_| result()).collect()));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Ask { .. })));
}

#[divan::bench(args = [0, 4, 10, 17])]
fn turn(bencher: Bencher<'_, '_>, before: u32) {
    bencher.with_inputs(|| after(before)).bench_values(|mut dialog| {
        play(&mut dialog);
        dialog
    });
}
