//! What the engine does with a model's answer: reading 300 reports out of 200 KB is to take less than 10 ms.
//!
//! ```text
//! cargo bench --bench review
//! ```

use divan::Bencher;
use divan::counter::BytesCount;
use revdeck::domain::{Response, Stop, Usage};
use revdeck::review::extract;

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
