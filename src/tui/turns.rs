//! Converts a run's journal to its turns: request, responses, tool calls and findings of each.
//!
//! - Entries are applied as they arrive, so a growing journal is never read twice.
//! - Every text is cut to what a page can show, its secrets are masked, and control characters are replaced.
//! - An unchanged turn is shared, not copied.

use std::sync::Arc;

use crate::domain::{
    ChatResponse, ContextRecord, ErrorClass, Finding, JournalEntry, Priority, RejectedReport, RunEvent, StopReason,
    Time, ToolOutcome, TurnPhase, Usage, WindowUse, text,
};
use crate::masking::Mask;

/// Greatest size of a stored request or response, in bytes; the journal has the full text.
const MAX_TEXT_BYTES: usize = 24 * 1024;

/// Turns of a run so far.
#[derive(Debug, Clone, Default)]
pub struct TurnHistory {
    pub turns: Vec<Arc<Turn>>,
    /// Context of the first request; the latest one if the context was built again.
    pub context: Option<Arc<ContextRecord>>,
    /// Error that ended the run or a part of the run.
    pub failure: Option<(ErrorClass, String)>,
}

/// Request and its results.
#[derive(Debug, Clone)]
pub struct Turn {
    pub number: u32,
    pub phase: TurnPhase,
    pub at: Time,
    /// Number of starts of the request; more than one if a worker died during the turn.
    pub attempts: u32,
    pub asked: TruncatedText,
    pub window: WindowUse,
    /// More than one if a response was unusable and the request was repeated.
    pub answers: Vec<TurnAnswer>,
    pub waits: Vec<TurnWait>,
    pub tools: Vec<TurnToolCall>,
    pub findings: Vec<TurnFinding>,
    pub rejected: Vec<RejectedReport>,
    /// Number of messages that left the window when it slid for this turn.
    pub slid_messages: Option<u32>,
    /// Start and end of the pauses after this turn; no end while the pause lasts.
    pub pauses: Vec<(Time, Option<Time>)>,
}

/// Text cut to a maximum size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruncatedText {
    pub text: String,
    /// Bytes that only the journal has.
    pub omitted_bytes: usize,
}

#[derive(Debug, Clone)]
pub struct TurnAnswer {
    pub text: TruncatedText,
    /// Names of the requested tools.
    pub calls: Vec<String>,
    pub stop: StopReason,
    pub usage: Usage,
    pub model: String,
    /// US dollars; 0 if the price is unknown.
    pub cost: f64,
    /// Milliseconds until the first byte; 0 if no byte came before the end.
    pub first_ms: u64,
    pub took_ms: u64,
}

#[derive(Debug, Clone)]
pub struct TurnWait {
    pub reason: String,
    pub wait_ms: u64,
}

#[derive(Debug, Clone)]
pub struct TurnToolCall {
    pub name: String,
    pub arguments: String,
    pub outcome: ToolOutcome,
    pub tokens: u64,
    pub result: String,
}

/// Way in which a turn reported a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingReportKind {
    New,
    /// Reported again with a stronger or clearer text.
    Restated,
    Repeated,
}

#[derive(Debug, Clone)]
pub struct TurnFinding {
    pub report: FindingReportKind,
    /// `None` for a repeated finding.
    pub priority: Option<Priority>,
    /// `path:line`, or `line N` for a repeated finding.
    pub place: String,
    pub title: String,
}

impl TruncatedText {
    fn truncate(whole: &str) -> Self {
        // A reviewer with `mask_secrets = false` and an agent see secrets, and may quote them.
        let whole = &*Mask::On.mask_text(None, whole);
        let mut end = whole.len().min(MAX_TEXT_BYTES);
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        Self { text: text::sanitize_lines(&whole[..end], 4), omitted_bytes: whole.len() - end }
    }
}

impl TurnAnswer {
    fn from_response(response: ChatResponse, cost: f64, first_ms: u64, took_ms: u64) -> Self {
        Self {
            text: TruncatedText::truncate(response.text.trim()),
            calls: response.calls.into_iter().map(|call| sanitize(&call.name)).collect(),
            stop: response.stop,
            usage: response.usage,
            model: response.model,
            cost,
            first_ms,
            took_ms,
        }
    }
}

impl TurnFinding {
    fn from_finding(report: FindingReportKind, finding: &Finding) -> Self {
        Self {
            report,
            priority: Some(finding.priority),
            place: format!("{}:{}", text::sanitize_line(&finding.repo_relative_path), finding.line_start),
            title: sanitize(&finding.title),
        }
    }

    fn from_repetition(line_start: u32, title: &str) -> Self {
        Self {
            report: FindingReportKind::Repeated,
            priority: None,
            place: format!("line {line_start}"),
            title: sanitize(title),
        }
    }
}

/// Masks keys, and replaces line breaks and control characters.
pub fn sanitize(text: &str) -> String {
    text::sanitize_line(&Mask::On.mask_words(text)).into_owned()
}

impl Turn {
    fn new(number: u32, at: Time) -> Self {
        Self {
            number,
            phase: TurnPhase::Investigate,
            at,
            attempts: 0,
            asked: TruncatedText::default(),
            window: WindowUse::default(),
            answers: Vec::new(),
            waits: Vec::new(),
            tools: Vec::new(),
            findings: Vec::new(),
            rejected: Vec::new(),
            slid_messages: None,
            pauses: Vec::new(),
        }
    }

    /// Adds a rejected report, unless the same was rejected before.
    fn add_rejected(&mut self, rejected: RejectedReport) {
        if !self.rejected.contains(&rejected) {
            self.rejected.push(rejected);
        }
    }

    /// Returns the last response, which is the valid one.
    pub fn answer(&self) -> Option<&TurnAnswer> {
        self.answers.last()
    }

    /// Returns the usage of all responses, unusable ones included.
    pub fn usage(&self) -> Usage {
        self.answers.iter().map(|answer| answer.usage).sum()
    }

    /// Returns the cost of all responses in US dollars.
    pub fn cost(&self) -> f64 {
        self.answers.iter().map(|answer| answer.cost).sum()
    }

    /// Returns the number of findings that were new in this turn.
    pub fn new_findings(&self) -> usize {
        self.findings.iter().filter(|found| found.report == FindingReportKind::New).count()
    }

    /// Returns the highest priority of the new findings.
    pub fn top_priority(&self) -> Option<Priority> {
        self.findings
            .iter()
            .filter(|found| found.report == FindingReportKind::New)
            .filter_map(|found| found.priority)
            .min()
    }

    /// Returns the number of tool calls that were refused or failed.
    pub fn failed_tool_calls(&self) -> usize {
        self.tools.iter().filter(|tool| tool.outcome != ToolOutcome::Answered).count()
    }
}

impl TurnHistory {
    /// Applies the next journal entry.
    pub fn apply_entry(&mut self, entry: JournalEntry) {
        let JournalEntry { at, event, .. } = entry;
        match event {
            RunEvent::TurnAsked { turn, phase, asked, window } => {
                let turn = self.turn_mut(turn, at);
                (turn.phase, turn.at, turn.window) = (phase, at, window);
                turn.asked = TruncatedText::truncate(asked.trim());
                turn.attempts += 1;
            }
            RunEvent::TurnAnswered { turn, response, cost, first_ms, took_ms, .. } => {
                self.turn_mut(turn, at).answers.push(TurnAnswer::from_response(*response, cost, first_ms, took_ms));
            }
            RunEvent::Waiting { turn, reason, wait_ms } => {
                self.turn_mut(turn, at).waits.push(TurnWait { reason: sanitize(&reason), wait_ms });
            }
            RunEvent::ToolAnswered { turn, name, arguments, outcome, tokens, result } => {
                let (name, arguments, result) = (sanitize(&name), sanitize(&arguments), sanitize(&result));
                self.turn_mut(turn, at).tools.push(TurnToolCall { name, arguments, outcome, tokens, result });
            }
            RunEvent::SlidingWindowApplied { turn, messages_removed, .. } => {
                self.turn_mut(turn, at).slid_messages = Some(messages_removed);
            }
            RunEvent::Restated { turn, finding } => {
                self.turn_mut(turn, at).findings.push(TurnFinding::from_finding(FindingReportKind::Restated, &finding));
            }
            RunEvent::Repeated { turn, line_start, title, .. } => {
                self.turn_mut(turn, at).findings.push(TurnFinding::from_repetition(line_start, &title));
            }
            RunEvent::Rejected { turn, mut rejected } => {
                for text in [&mut rejected.reason, &mut rejected.report.title, &mut rejected.report.explanation] {
                    *text = sanitize(text);
                }
                self.turn_mut(turn, at).add_rejected(*rejected);
            }
            RunEvent::Finding { finding } => {
                if let Some(turn) = self.last_mut() {
                    turn.findings.push(TurnFinding::from_finding(FindingReportKind::New, &finding));
                }
            }
            RunEvent::Paused => self.begin_pause(at),
            RunEvent::Resumed => self.end_pause(at),
            RunEvent::Surrounded { context } => self.set_context(context),
            RunEvent::Failed { class, summary } => self.failure = Some((class, sanitize(&summary))),
            // A new attempt starts, so the failure of the earlier attempt no longer counts.
            RunEvent::Started { .. } => self.failure = None,
            // The pages of the run and of its findings show these.
            RunEvent::Phase { .. } | RunEvent::Note { .. } => {}
            RunEvent::CancelAsked { .. } | RunEvent::BudgetReached { .. } | RunEvent::Steered { .. } => {}
            RunEvent::OutOfMemory { .. } => {}
            RunEvent::Planned { .. } | RunEvent::Covered { .. } | RunEvent::Carried { .. } => {}
            RunEvent::LeftOut { .. } | RunEvent::Unanswered { .. } | RunEvent::TookOver { .. } => {}
            RunEvent::Judged { .. } | RunEvent::CodeSmellsAccumulated { .. } => {}
            RunEvent::FinalCodeSmellsSummary { .. } | RunEvent::Finished { .. } | RunEvent::Unknown => {}
        }
    }

    /// Begins a pause after the last turn.
    fn begin_pause(&mut self, at: Time) {
        if let Some(turn) = self.last_mut() {
            turn.pauses.push((at, None));
        }
    }

    fn end_pause(&mut self, at: Time) {
        if let Some((_, until @ None)) = self.last_mut().and_then(|turn| turn.pauses.last_mut()) {
            *until = Some(at);
        }
    }

    /// Replaces the context, with lists cut to what a page shows.
    fn set_context(&mut self, mut context: Box<ContextRecord>) {
        context.sections.truncate(ContextRecord::MAX_LISTED);
        context.left_out.truncate(ContextRecord::MAX_LISTED);
        context.patterns.truncate(ContextRecord::MAX_LISTED);
        self.context = Some(Arc::from(context));
    }

    /// Returns the turn with this number; adds an empty one if the journal lacks its request.
    fn turn_mut(&mut self, number: u32, at: Time) -> &mut Turn {
        let place = match self.turns.binary_search_by_key(&number, |turn| turn.number) {
            Ok(place) => place,
            Err(place) => {
                self.turns.insert(place, Arc::new(Turn::new(number, at)));
                place
            }
        };
        Arc::make_mut(&mut self.turns[place])
    }

    fn last_mut(&mut self) -> Option<&mut Turn> {
        self.turns.last_mut().map(Arc::make_mut)
    }

    /// Returns the cost in US dollars; 0 if no price is known.
    pub fn cost(&self) -> f64 {
        self.turns.iter().flat_map(|turn| &turn.answers).map(|answer| answer.cost).sum()
    }

    pub fn usage(&self) -> Usage {
        self.turns.iter().map(|turn| turn.usage()).sum()
    }
}
