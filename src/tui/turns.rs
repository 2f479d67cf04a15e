//! A run's journal as its turns: what was asked, answered, looked up and found in each.
//!
//! Invariants: entries go in as they come, so that a journal that grows is never read twice; every text is cut to what a
//! page can show and made harmless; a turn that nothing changes is shared, not copied.

use std::sync::Arc;

use crate::domain::{
    ChatResponse, ContextRecord, ErrorClass, Finding, JournalEntry, Priority, RejectedReport, RunEvent, StopReason,
    Time, ToolOutcome, TurnPhase, Usage, WindowUse, text,
};

/// Bytes of an answer, or of what was asked, that are kept for the page; the journal has all of it.
const MAX_TEXT_BYTES: usize = 24 * 1024;

/// A conversation with a model, as far as it has come.
#[derive(Debug, Clone, Default)]
pub struct TurnHistory {
    pub turns: Vec<Arc<Turn>>,
    /// The code around the change that went with the first request; the last one told, when it was put together anew.
    pub context: Option<Arc<ContextRecord>>,
    /// What ended it, or a part of it.
    pub failure: Option<(ErrorClass, String)>,
}

/// One request and what came of it.
#[derive(Debug, Clone)]
pub struct Turn {
    pub number: u32,
    pub phase: TurnPhase,
    pub at: Time,
    /// How often the request was begun: more than once when a worker died with it.
    pub attempts: u32,
    pub asked: TruncatedText,
    pub window: WindowUse,
    /// More than one when an answer could not be used and was asked for again.
    pub answers: Vec<TurnAnswer>,
    pub waits: Vec<TurnWait>,
    pub tools: Vec<TurnToolCall>,
    pub findings: Vec<TurnFinding>,
    pub rejected: Vec<RejectedReport>,
    /// Messages that left the window, when it slid for this turn.
    pub slid_messages: Option<u32>,
    /// When it was stopped after this turn, and when it went on.
    pub pauses: Vec<(Time, Option<Time>)>,
}

/// A text as far as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruncatedText {
    pub text: String,
    /// Bytes that are in the journal only.
    pub omitted_bytes: usize,
}

#[derive(Debug, Clone)]
pub struct TurnAnswer {
    pub text: TruncatedText,
    /// Names of the tools it wanted.
    pub calls: Vec<String>,
    pub stop: StopReason,
    pub usage: Usage,
    pub model: String,
    /// In US dollars; 0 when the price is not known.
    pub cost: f64,
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

/// How a turn reported a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingReportKind {
    New,
    /// Stronger or clearer than before.
    Restated,
    Repeated,
}

#[derive(Debug, Clone)]
pub struct TurnFinding {
    pub report: FindingReportKind,
    /// Not known of one that was repeated.
    pub priority: Option<Priority>,
    /// `path:line`, or the line alone.
    pub place: String,
    pub title: String,
}

impl TruncatedText {
    fn truncate(whole: &str) -> Self {
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
            calls: response.calls.into_iter().map(|call| text::sanitize_line(&call.name).into_owned()).collect(),
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
            title: text::sanitize_line(&finding.title).into_owned(),
        }
    }
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

    /// The answer that counts.
    pub fn answer(&self) -> Option<&TurnAnswer> {
        self.answers.last()
    }

    /// What its answers have used, those that were of no use included.
    pub fn usage(&self) -> Usage {
        self.answers.iter().map(|answer| answer.usage).sum()
    }

    /// US dollars for all of them.
    pub fn cost(&self) -> f64 {
        self.answers.iter().map(|answer| answer.cost).sum()
    }

    /// Findings that were not known before it.
    pub fn new_findings(&self) -> usize {
        self.findings.iter().filter(|found| found.report == FindingReportKind::New).count()
    }

    /// The most urgent of them.
    pub fn top_priority(&self) -> Option<Priority> {
        self.findings
            .iter()
            .filter(|found| found.report == FindingReportKind::New)
            .filter_map(|found| found.priority)
            .min()
    }

    /// Calls of tools that were refused or failed.
    pub fn failed_tool_calls(&self) -> usize {
        self.tools.iter().filter(|tool| tool.outcome != ToolOutcome::Answered).count()
    }
}

impl TurnHistory {
    /// Takes in the next entry of the journal.
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
                let reason = text::sanitize_line(&reason).into_owned();
                self.turn_mut(turn, at).waits.push(TurnWait { reason, wait_ms });
            }
            RunEvent::ToolAnswered { turn, name, arguments, outcome, tokens, result } => {
                let harmless = |text: String| text::sanitize_line(&text).into_owned();
                let (name, arguments, result) = (harmless(name), harmless(arguments), harmless(result));
                self.turn_mut(turn, at).tools.push(TurnToolCall { name, arguments, outcome, tokens, result });
            }
            RunEvent::SlidingWindowApplied { turn, messages_removed, .. } => {
                self.turn_mut(turn, at).slid_messages = Some(messages_removed);
            }
            RunEvent::Restated { turn, finding } => {
                self.turn_mut(turn, at).findings.push(TurnFinding::from_finding(FindingReportKind::Restated, &finding));
            }
            RunEvent::Repeated { turn, line_start, title, .. } => {
                let (place, title) = (format!("line {line_start}"), text::sanitize_line(&title).into_owned());
                self.turn_mut(turn, at).findings.push(TurnFinding {
                    report: FindingReportKind::Repeated,
                    priority: None,
                    place,
                    title,
                });
            }
            RunEvent::Rejected { turn, rejected } => {
                let turn = self.turn_mut(turn, at);
                if !turn.rejected.contains(&rejected) {
                    turn.rejected.push(*rejected);
                }
            }
            RunEvent::Finding { finding } => {
                if let Some(turn) = self.last_mut() {
                    turn.findings.push(TurnFinding::from_finding(FindingReportKind::New, &finding));
                }
            }
            RunEvent::Paused => {
                if let Some(turn) = self.last_mut() {
                    turn.pauses.push((at, None));
                }
            }
            RunEvent::Resumed => {
                if let Some((_, until @ None)) = self.last_mut().and_then(|turn| turn.pauses.last_mut()) {
                    *until = Some(at);
                }
            }
            RunEvent::Surrounded { mut context } => {
                context.sections.truncate(ContextRecord::MAX_LISTED);
                context.left_out.truncate(ContextRecord::MAX_LISTED);
                context.patterns.truncate(ContextRecord::MAX_LISTED);
                self.context = Some(Arc::from(context));
            }
            RunEvent::Failed { class, summary } => self.failure = Some((class, summary)),
            // What a failure said of an earlier attempt is over.
            RunEvent::Started { .. } => self.failure = None,
            RunEvent::Phase { .. }
            | RunEvent::Planned { .. }
            | RunEvent::Covered { .. }
            | RunEvent::Carried { .. }
            | RunEvent::LeftOut { .. }
            | RunEvent::Note { .. }
            | RunEvent::Unanswered { .. }
            | RunEvent::TookOver { .. }
            | RunEvent::CancelAsked { .. }
            | RunEvent::Finished { .. }
            | RunEvent::Judged { .. }
            | RunEvent::CodeSmellsAccumulated { .. }
            | RunEvent::FinalCodeSmellsSummary { .. }
            | RunEvent::Unknown => {}
        }
    }

    /// The turn of this number; a journal with a hole in it gets one that knows nothing but its number.
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

    /// In US dollars; 0 when no price is known.
    pub fn cost(&self) -> f64 {
        self.turns.iter().flat_map(|turn| &turn.answers).map(|answer| answer.cost).sum()
    }

    pub fn usage(&self) -> Usage {
        self.turns.iter().map(|turn| turn.usage()).sum()
    }

    /// Reports that were set aside in all turns.
    pub fn rejected_count(&self) -> usize {
        self.turns.iter().map(|turn| turn.rejected.len()).sum()
    }
}
