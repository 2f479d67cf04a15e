//! Measures the engine's work on a model's answer. Targets: less than 10 ms to read 300 reports from 200 KB, less than
//! 5 ms for a whole turn (an answer with findings, results of tools, the next window of 70,000 tokens), and less than 20 ms
//! to merge 300 reports of each of three reviewers into one list. Merging, and matching reports with earlier findings, take
//! time in proportion to the number of reports: ten times as many reports take about ten times as long.
//!
//! ```text
//! cargo bench --bench review
//! cargo bench --bench review merging_a_panel      # one of them
//! ```

use divan::Bencher;
use divan::counter::BytesCount;
use revdeck::domain::{
    ChatResponse, Coverage, DiffPart, FileCoverage, Finding, FindingId, LineRange, RunId, StopReason, SummaryAuthor,
    ToolCall, ToolOutcome, Usage,
};
use revdeck::policy::{AnchorLocation, MatchCandidate, match_earlier_findings};
use revdeck::review::conversation::{
    ConversationEffect, ConversationEngine, ConversationEvent, ConversationLimits, ConversationPrompt,
    ConversationToolResult, RemainingBudget, ReviewTask,
};
use revdeck::review::{MemberResult, OneList, PlannedFile, ReviewPlan, extract_reports, merge_panel};
use revdeck::tokens::{Encoding, count_tokens};

const REPORTS: usize = 300;
/// Reports of each reviewer of a large panel.
const MANY_REPORTS: usize = 3_000;
const SIZE: usize = 200_000;

fn main() {
    for (name, text) in [("JSON", as_json()), ("prose", in_prose()), ("broken JSON", as_broken_json())] {
        assert!(text.len() >= SIZE, "{name}: {} bytes", text.len());
        assert_eq!(extract_reports(&answer(text)).reports.len(), REPORTS, "{name}");
    }
    let panel = panel(REPORTS);
    let list = merge(&panel);
    let voices: usize = list.findings.iter().map(|finding| finding.voices.len()).sum();
    let reported = panel.len() * REPORTS;
    assert!(voices == reported && list.findings.len() < reported, "{} of {voices}", list.findings.len());
    let (reports, earlier) = (&panel[2].findings, EarlierFindings::new(&panel[0].findings));
    assert!(earlier.find(reports).iter().all(Option::is_some), "each report repeats an earlier finding");
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
            has_tools: true,
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

/// Reviewer of a panel.
struct Reviewer {
    name: &'static str,
    run_id: RunId,
    findings: Vec<Finding>,
    coverage: Coverage,
}

/// Files of the panel's change; ten reports stand in each, many of them on neighbouring lines.
const PANEL_FILES: usize = 30;

/// Returns three reviewers with so many reports each: two of three problems are common, in other words and a line off.
fn panel(reports: usize) -> Vec<Reviewer> {
    let words = [
        (
            "The result of `write` is thrown away in",
            "When the disk is full, the caller goes on as if all were written.",
        ),
        ("Error of `write` is ignored in", "A full disk goes unnoticed because the returned error is never looked at."),
        ("`write` may fail unnoticed in", "Nobody looks at the error, so data is lost when the disk is full."),
    ];
    let names = [("builtin", "0"), ("claude", "1"), ("gpt", "2")];
    let build = |member: usize| {
        let (name, digit) = names[member];
        let run_id: RunId = format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C0{digit}").parse().expect("an id");
        let findings = (0..reports).map(|number| {
            // Every third problem is of one reviewer only.
            let own = if number % 3 == 0 { format!("alone_{member}_{number}") } else { format!("flush_{number}") };
            let (path, line) = (format!("src/store/file_{}.rs", number % PANEL_FILES), number / PANEL_FILES * 4 + member % 2 + 1);
            let code = format!("    let _ = file.write(&block_{number});");
            let (title, text) = words[member];
            let id = FindingId::from_parts("ERROR_HANDLING", &path, &format!("{code}{own}{member}"), 0);
            serde_json::from_value(serde_json::json!({
                "finding_id": id, "first_run_id": run_id, "last_run_id": run_id, "priority": number % 4,
                "severity": "high", "confidence": "medium", "kind": if member == 1 { "CORRECTNESS" } else { "ERROR_HANDLING" },
                "title": format!("{title} `{own}`"), "explanation": text.repeat(4), "repo_relative_path": path,
                "line_start": line, "line_end": line + 1, "quoted_code": code, "status": "open", "detail_ref": "",
                "reported_at": "2026-03-04T12:00:00Z",
            }))
            .expect("a finding")
        });
        let files = (0..PANEL_FILES).map(|file| FileCoverage {
            path: format!("src/store/file_{file}.rs"),
            hunks: vec![LineRange::new(1, 100)],
            keys: Vec::new(),
        });
        let coverage = Coverage { files: files.collect(), ..Coverage::default() };
        Reviewer { name, findings: findings.collect(), coverage, run_id }
    };
    (0..names.len()).map(build).collect()
}

fn merge(panel: &[Reviewer]) -> OneList {
    let members: Vec<MemberResult<'_>> = panel
        .iter()
        .map(|reviewer| MemberResult {
            reviewer: reviewer.name,
            run_id: &reviewer.run_id,
            findings: &reviewer.findings,
            coverage: &reviewer.coverage,
            is_finished: true,
            kinds: None,
            confirmed: &[],
            fixed: &[],
            held_back: &[],
        })
        .collect();
    merge_panel(&members, |_| false, |_| None, |_, _| None)
}

/// Merges three reviewers with so many reports each.
#[divan::bench(args = [REPORTS, MANY_REPORTS])]
fn merging_a_panel(bencher: Bencher<'_, '_>, reports: usize) {
    let panel = panel(reports);
    bencher.bench(|| merge(&panel));
}

/// Findings of an earlier run, whose code is unchanged.
struct EarlierFindings<'a> {
    findings: &'a [Finding],
    stands: Vec<AnchorLocation>,
}

impl<'a> EarlierFindings<'a> {
    fn new(findings: &'a [Finding]) -> Self {
        let stand = |finding: &Finding| AnchorLocation::Unchanged {
            path: finding.repo_relative_path.clone(),
            lines: finding.lines(),
        };
        Self { findings, stands: findings.iter().map(stand).collect() }
    }

    /// Returns for each report the earlier finding that it repeats.
    fn find(&self, reports: &[Finding]) -> Vec<Option<usize>> {
        let known = self.findings.iter().zip(&self.stands).map(|(finding, stand)| MatchCandidate {
            id: &finding.finding_id,
            kind: finding.kind,
            title: &finding.title,
            lines: finding.lines().count(),
            stand,
            dismissed: false,
        });
        let known: Vec<MatchCandidate<'_>> = known.collect();
        let reports: Vec<&Finding> = reports.iter().collect();
        match_earlier_findings(&reports, &known, |_, _| true)
    }
}

/// Matches the reports of a reviewer with as many findings of an earlier run.
#[divan::bench(args = [REPORTS, MANY_REPORTS])]
fn matching_earlier_findings(bencher: Bencher<'_, '_>, reports: usize) {
    let panel = panel(reports);
    let earlier = EarlierFindings::new(&panel[0].findings);
    bencher.bench(|| earlier.find(&panel[2].findings));
}
