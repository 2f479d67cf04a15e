//! Renders entries of a run's journal: time, one word, and a text that wraps.

use std::collections::BTreeMap;

use super::super::app::App;
use super::super::doc::{Doc, DocLine, wrap_words};
use super::super::theme::Role;
use super::{format_reported_location, priority_label};
use crate::domain::{
    CarriedFile, ChatResponse, ContextRecord, Finding, JournalEntry, Kind, RejectedReport, RunEvent, SteeredKind, text,
};
use crate::tui::doc::TextColumns;

/// Width of the column of words.
const WORDS: usize = 12;
/// Smallest width of the text, however narrow the page is.
const MIN_TEXT: usize = 12;
/// Width of the text from which it stands beside the word on all of its lines. Chosen here: paths are hardly cut then.
const MIN_WIDE_TEXT: usize = 30;
/// Indentation of a text below its word.
const INDENT: usize = 2;

/// Renders one entry; the lines after the first are indented below its text. On a narrow page, a text that does not fit
/// beside the word stands below it.
pub fn render_entry(app: &App, entry: &JournalEntry, width: usize, doc: &mut Doc) {
    let time = entry.at.to_zoned(app.display.zone.clone()).strftime("%H:%M:%S").to_string();
    let EventSummary { word, role, text } = summarize_event(&entry.event);
    let column = time.len() + 2;
    let room = width.saturating_sub(column + WORDS).max(MIN_TEXT);
    let text = text::sanitize_line(&text);
    if room < MIN_WIDE_TEXT && text.width() > room {
        doc.push(DocLine::styled(Role::Faint, &format!("{time:<column$}")).with_span(role, word));
        for line in wrap_words(&text, width.saturating_sub(INDENT).max(MIN_TEXT)) {
            doc.push(DocLine::styled(Role::Faint, &" ".repeat(INDENT)).with_span(Role::Normal, &line));
        }
        return;
    }
    for (index, line) in wrap_words(&text, room).into_iter().enumerate() {
        let (time, word) = if index == 0 { (time.as_str(), word) } else { ("", "") };
        doc.push(
            DocLine::styled(Role::Faint, &format!("{time:<column$}"))
                .with_span(role, &format!("{word:<WORDS$}"))
                .with_span(Role::Normal, &line),
        );
    }
}

/// Event in words.
#[derive(Debug, PartialEq, Eq)]
struct EventSummary {
    word: &'static str,
    /// Role of the word.
    role: Role,
    text: String,
}

fn summarize_event(event: &RunEvent) -> EventSummary {
    use RunEvent as E;
    let (word, role, text) = match event {
        E::Started { attempt: 1, .. } => ("started", Role::Muted, "a worker took the run on".to_owned()),
        E::Started { attempt, .. } => ("started", Role::Warn, format!("attempt {attempt}")),
        E::Phase { status } => ("phase", Role::Muted, status.to_string()),
        E::Planned { files, hunks, left_out } => {
            ("planned", Role::Muted, describe_plan(*files, *hunks, left_out.len()))
        }
        E::Finding { finding } => ("finding", Role::from_priority(finding.priority), describe_finding(finding)),
        E::Covered { file } => ("covered", Role::Good, file.path.clone()),
        E::Carried { carried } => ("carried", Role::Good, describe_carried(carried)),
        E::LeftOut { file, .. } => ("left out", Role::Muted, format!("{}: {}", file.path, file.reason)),
        E::Note { text } => ("note", Role::Normal, text.clone()),
        E::CancelAsked { reason } => ("cancel", Role::Warn, reason.word().replace('_', " ")),
        E::Failed { class, summary } => ("failed", Role::Bad, format!("{class}: {summary}")),
        E::Finished { status } => ("finished", Role::from_run_status(*status), status.to_string()),
        E::TurnAsked { turn, phase, asked, window } => {
            let text = format!("{turn}, {phase}: {asked} ({} of {} tokens)", window.tokens, window.limit);
            ("turn", Role::Accent, text)
        }
        E::TurnAnswered { turn, response, took_ms, .. } => {
            ("answered", Role::Normal, describe_answer(*turn, response, *took_ms))
        }
        E::Unanswered { turn, class, summary } => ("unanswered", Role::Warn, format!("{turn}, {class}: {summary}")),
        E::TookOver { reviewer, model, .. } => ("took over", Role::Warn, describe_successor(reviewer, model)),
        E::Surrounded { context } => ("context", Role::Muted, describe_context(context)),
        E::Steered { kinds } => ("steered", Role::Warn, describe_steered(kinds)),
        E::Waiting { reason, wait_ms, .. } => {
            ("waiting", Role::Warn, format!("{reason}, {} s", wait_ms.div_ceil(1000)))
        }
        E::ToolAnswered { name, arguments, outcome, tokens, result, .. } => {
            let tokens = format_amount(*tokens, "token");
            ("tool", Role::Muted, format!("{name} {arguments}: {outcome}, {tokens}, {result}"))
        }
        E::Restated { finding, .. } => ("restated", Role::from_priority(finding.priority), finding.title.clone()),
        E::Repeated { title, line_start, .. } => ("repeated", Role::Muted, format!("line {line_start}: {title}")),
        E::Rejected { rejected, .. } => ("rejected", Role::Warn, describe_rejection(rejected)),
        E::Judged { opinion, reason, .. } => ("judged", Role::Muted, format!("{opinion}: {reason}")),
        E::CodeSmellsAccumulated { new_issues, total_issues, issues_by_type, .. } => {
            let kinds = describe_kinds(issues_by_type);
            ("findings", Role::Muted, format!("{new_issues} new, {total_issues} in all{kinds}"))
        }
        E::SlidingWindowApplied { messages_removed, messages_kept, .. } => {
            let removed = format_amount(*messages_removed, "message");
            ("window", Role::Muted, format!("{removed} slid out, {messages_kept} kept"))
        }
        E::FinalCodeSmellsSummary { total_issues, loops, issues_by_type } => {
            let (found, turns) = (format_amount(*total_issues, "finding"), format_amount(*loops, "turn"));
            ("summary", Role::Muted, format!("{found} in {turns}{}", describe_kinds(issues_by_type)))
        }
        E::OutOfMemory { parsing } => {
            let files = text::format_count(parsing.len(), "file");
            ("memory", Role::Warn, format!("the worker ran out of memory while it parsed {files}"))
        }
        E::BudgetReached { stop } => ("stopped", Role::Warn, stop.describe()),
        E::Paused => ("paused", Role::Warn, "nothing is asked until it is resumed".to_owned()),
        E::Resumed => ("resumed", Role::Normal, String::new()),
        E::Unknown => ("?", Role::Faint, "an entry of a newer revdeck".to_owned()),
    };
    EventSummary { word, role, text }
}

/// Names the kinds with their numbers, the most frequent first; empty for none.
fn describe_kinds(counts: &BTreeMap<String, u32>) -> String {
    let mut kinds: Vec<(&String, &u32)> = counts.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let label = |word: &str| word.parse::<Kind>().map_or_else(|_| word.to_owned(), |kind| kind.label().to_owned());
    let kinds: Vec<String> = kinds.into_iter().map(|(word, count)| format!("{count} {}", label(word))).collect();
    if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) }
}

fn describe_plan(files: u32, hunks: u32, left_out: usize) -> String {
    let out = if left_out == 0 { String::new() } else { format!(", {left_out} left out") };
    format!("{} in {}{out}", format_amount(hunks, "hunk"), format_amount(files, "file"))
}

fn describe_finding(finding: &Finding) -> String {
    let priority = priority_label(finding.priority);
    format!("{priority} {}:{}: {}", finding.repo_relative_path, finding.line_start, finding.title)
}

fn describe_carried(carried: &CarriedFile) -> String {
    let hunks = text::format_count(carried.file.hunks.len(), "hunk");
    let found = match carried.findings.len() {
        0 => String::new(),
        n => format!(", {}", text::format_count(n, "finding")),
    };
    format!("{}: {hunks} from {}{found}", carried.file.path, carried.from)
}

fn describe_answer(turn: u32, response: &ChatResponse, took_ms: u64) -> String {
    let (seconds, tenths) = (took_ms / 1000, took_ms % 1000 / 100);
    let usage = &response.usage;
    let calls = match response.calls.len() {
        0 => String::new(),
        n => format!(", {}", text::format_count(n, "tool call")),
    };
    let about = if usage.estimated { "~" } else { "" };
    let (input, cached, output) = (usage.input, usage.cached, usage.output);
    format!("{turn} in {seconds}.{tenths} s: {about}{input} in, {cached} cached, {about}{output} out{calls}")
}

/// Names the reviewer that answers the rest of the run, with its model if it has one.
fn describe_successor(reviewer: &str, model: &str) -> String {
    if model.is_empty() { reviewer.to_owned() } else { format!("{reviewer} ({model})") }
}

fn describe_context(context: &ContextRecord) -> String {
    let sections = text::format_count(context.sections.len(), "section");
    let patterns = match context.patterns.len() {
        0 => String::new(),
        count => format!(", {}", text::format_count(count, "learned pattern")),
    };
    format!("{sections}, {} of {} tokens{patterns}", context.total_tokens, context.budget)
}

fn describe_rejection(rejected: &RejectedReport) -> String {
    let report = &rejected.report;
    format!("{}: {}: {}", format_reported_location(report), report.title, rejected.reason)
}

/// Formats a count with its noun, like [`text::format_count`].
fn format_amount(count: impl TryInto<usize>, noun: &str) -> String {
    text::format_count(count.try_into().unwrap_or(usize::MAX), noun)
}

fn describe_steered(kinds: &[SteeredKind]) -> String {
    let one = |steered: &SteeredKind| {
        let SteeredKind { kind, accepted, wrong } = steered;
        format!("{kind} ({accepted} of {} accepted)", accepted.saturating_add(*wrong))
    };
    format!("lowered by one: {}", kinds.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::Time;
    use crate::tui::tests::support;

    #[test]
    fn on_a_narrow_page_a_text_that_does_not_fit_beside_its_word_stands_below_it() {
        let render = |text: &str, width: usize| {
            let event = RunEvent::Note { text: text.to_owned() };
            let mut doc = Doc::default();
            render_entry(&support::app(80, 24), &JournalEntry { seq: 0, at: Time::UNIX_EPOCH, event }, width, &mut doc);
            doc.lines.iter().map(|line| line.plain_text().trim_end().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(render("short", 42), ["00:00:00  note        short"]);
        assert_eq!(
            render("src/session/store.rs is left out as git would not add it", 42),
            ["00:00:00  note", "  src/session/store.rs is left out as git", "  would not add it"]
        );
        assert_eq!(
            render("src/session/store.rs is left out as git would not add it", 62),
            ["00:00:00  note        src/session/store.rs is left out as git", "                      would not add it"]
        );
    }

    #[rstest]
    #[case::first(r#"{"event":"started","attempt":1,"worker":7}"#, "started", "a worker took the run on")]
    #[case::again(r#"{"event":"started","attempt":2,"worker":7}"#, "started", "attempt 2")]
    #[case::planned(r#"{"event":"planned","files":1,"hunks":3,"left_out":[]}"#, "planned", "3 hunks in 1 file")]
    #[case::unanswered(
        r#"{"event":"unanswered","turn":4,"class":"timeout","summary":"no byte in 60 s"}"#,
        "unanswered",
        "4, timeout: no byte in 60 s"
    )]
    #[case::took_over(
        r#"{"event":"took_over","turn":2,"reviewer":"codex","model":"","reasoning_effort":""}"#,
        "took over",
        "codex"
    )]
    #[case::took_over_with_a_model(
        r#"{"event":"took_over","turn":2,"reviewer":"codex","model":"m1","reasoning_effort":""}"#,
        "took over",
        "codex (m1)"
    )]
    #[case::waiting(
        r#"{"event":"waiting","turn":1,"reason":"rate limit","wait_ms":1200}"#,
        "waiting",
        "rate limit, 2 s"
    )]
    #[case::window(
        r#"{"event":"sliding_window_applied","loop":3,"messagesRemoved":1,"messagesKept":8}"#,
        "window",
        "1 message slid out, 8 kept"
    )]
    #[case::summary(
        r#"{"event":"final_code_smells_summary","totalIssues":1,"loops":5,"issuesByType":{}}"#,
        "summary",
        "1 finding in 5 turns"
    )]
    #[case::summary_by_kind(
        r#"{"event":"final_code_smells_summary","totalIssues":4,"loops":1,"issuesByType":{"DEAD_CODE":1,"LONG_METHOD":2,"OF_LATER":1}}"#,
        "summary",
        "4 findings in 1 turn: 2 long method, 1 dead code, 1 OF_LATER"
    )]
    #[case::accumulated(
        r#"{"event":"code_smells_accumulated","newIssues":1,"totalIssues":3,"loop":2,"issuesByType":{"SECURITY":3}}"#,
        "findings",
        "1 new, 3 in all: 3 security"
    )]
    #[case::accumulated_by_an_older_version(
        r#"{"event":"code_smells_accumulated","newIssues":0,"totalIssues":3,"loop":2}"#,
        "findings",
        "0 new, 3 in all"
    )]
    #[case::budget(
        r#"{"event":"budget_reached","budget":"run_cost","reached":0.95,"limit":1.0}"#,
        "stopped",
        "budget reached at $0.95 of $1.00"
    )]
    #[case::steered(
        r#"{"event":"steered","kinds":[{"kind":"MAGIC_NUMBERS","accepted":1,"wrong":19},{"kind":"DOCS","accepted":0,"wrong":20}]}"#,
        "steered",
        "lowered by one: MAGIC_NUMBERS (1 of 20 accepted), DOCS (0 of 20 accepted)"
    )]
    #[case::paused(r#"{"event":"paused"}"#, "paused", "nothing is asked until it is resumed")]
    #[case::of_a_newer_version(r#"{"event":"invented_later"}"#, "?", "an entry of a newer revdeck")]
    fn an_event_is_a_word_and_a_text(#[case] event: &str, #[case] word: &str, #[case] text: &str) {
        let event: RunEvent = serde_json::from_str(event).expect("an event");
        let summary = summarize_event(&event);
        assert_eq!((summary.word, summary.text.as_str()), (word, text));
    }
}
