//! Feeds arbitrary bytes as a model's answer: the parser of reports must not panic and must let no terminal control
//! characters through.
//!
//! ```text
//! cargo install cargo-fuzz
//! cargo +nightly fuzz run extract -- -max_len=4096 -max_total_time=600
//! cargo +nightly fuzz run extract fuzz/artifacts/extract/crash-…      # one input again
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use revdeck::domain::{ChatResponse, StopReason, ToolCall, Usage, text};
use revdeck::review::extract_reports;

fuzz_target!(|bytes: &[u8]| {
    let input = String::from_utf8_lossy(bytes).into_owned();
    let response = ChatResponse {
        calls: vec![ToolCall { id: "c".into(), name: "report_findings".into(), arguments: input.clone() }],
        text: input,
        opaque: Vec::new(),
        stop: StopReason::Done,
        usage: Usage::default(),
        model: String::new(),
    };
    let extracted = extract_reports(&response);
    assert_eq!(extracted, extract_reports(&response));
    for report in &extracted.reports {
        assert!(report.title.chars().count() <= 200);
        assert!(!report.title.chars().chain(report.path.chars()).any(text::is_unsafe));
        assert!(!report.explanation.chars().any(|c| c != '\n' && text::is_unsafe(c)));
        assert!(report.line_start <= report.line_end);
    }
    assert!(!extracted.problems.iter().flat_map(|problem| problem.chars()).any(text::is_unsafe));
});
