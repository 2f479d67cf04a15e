//! The engine of a review by a model: dispatches events, starts the review, delivers the diff, and ends on failures.

use std::collections::{HashSet, VecDeque};

use super::diff_delivery::DiffDelivery;
use super::window::ConversationWindow;
use super::{ConversationEffect, ConversationEvent, ConversationLimits, ConversationPrompt, ReviewTask};
use crate::domain::{
    BudgetStop, CancelReason, ChatResponse, ErrorClass, FileCoverage, Finding, FindingId, RejectedReport, RunEvent,
    RunStatus, ToolCall, ToolSpec, TurnPhase, text,
};
use crate::review::journal_state::to_u32;
use crate::review::{ExtractedReports, FindingAccumulator, ReviewPlan, RunCost};

/// The event that the engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConversationStage {
    NotStarted,
    Answer,
    /// The model's summary of the messages that left the window.
    Summary,
    /// A second opinion.
    Opinion,
    Validation,
    ToolResults,
    Over,
}

/// The engine of one conversation.
pub struct ConversationEngine {
    pub(super) stage: ConversationStage,
    pub(super) plan: ReviewPlan,
    pub(super) system: String,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) render_prompt: Box<dyn Fn(ConversationPrompt<'_>) -> String>,
    pub(super) window: ConversationWindow,
    pub(super) delivery: DiffDelivery,
    pub(super) turn: u32,
    pub(super) phase: TurnPhase,
    /// The description of the next request, for the user.
    pub(super) asked: Vec<String>,
    pub(super) accumulated: FindingAccumulator,
    /// Findings that a second opinion called false.
    pub(super) withdrawn: HashSet<FindingId>,
    pub(super) rejected: Vec<RejectedReport>,
    pub(super) notes: Vec<String>,
    pub(super) covered: Vec<FileCoverage>,
    /// The limit at which the run stops.
    pub(super) budget_stop: Option<BudgetStop>,
    pub(super) spent: RunCost,
    /// Tokens of the request that is under way.
    pub(super) request_tokens: u64,
    /// The answer that is being processed.
    pub(super) answer: Option<ChatResponse>,
    pub(super) extracted: ExtractedReports,
    /// The tool calls that are being executed.
    pub(super) calls: Vec<ToolCall>,
    /// Number of consecutive unusable answers.
    pub(super) bad_answers: u32,
    /// True if the last answer broke off or was cut at its longest length.
    pub(super) last_answer_cut: bool,
    /// States whether the model has ever reported findings in structured form.
    pub(super) reporting: ReportingHistory,
    shrunk: WindowShrink,
    /// Findings that wait for a second opinion.
    pub(super) opinions: VecDeque<Finding>,
    /// Number of requested second opinions. Their requests are numbered after the turns.
    pub(super) judgements: u32,
    /// The finding whose opinion was requested.
    pub(super) judged: Option<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportingHistory {
    Nothing,
    Findings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowShrink {
    NotYet,
    Once,
}

impl Default for ConversationEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl ConversationEngine {
    /// Creates an engine that waits for [`ConversationEvent::Started`].
    pub fn new() -> Self {
        Self {
            stage: ConversationStage::NotStarted,
            plan: ReviewPlan::default(),
            system: String::new(),
            tools: Vec::new(),
            render_prompt: Box::new(|_| String::new()),
            window: ConversationWindow::new(Box::new(|_| 0), ConversationLimits::empty(), 0),
            delivery: DiffDelivery::default(),
            turn: 0,
            phase: TurnPhase::Investigate,
            asked: Vec::new(),
            accumulated: FindingAccumulator::default(),
            withdrawn: HashSet::new(),
            rejected: Vec::new(),
            notes: Vec::new(),
            covered: Vec::new(),
            budget_stop: None,
            spent: RunCost::default(),
            request_tokens: 0,
            answer: None,
            extracted: ExtractedReports::default(),
            calls: Vec::new(),
            bad_answers: 0,
            last_answer_cut: false,
            reporting: ReportingHistory::Nothing,
            shrunk: WindowShrink::NotYet,
            opinions: VecDeque::new(),
            judgements: 0,
            judged: None,
        }
    }

    /// Handles an event and returns the effects. After [`ConversationEffect::Finish`] it returns no effects.
    pub fn handle(&mut self, event: ConversationEvent) -> Vec<ConversationEffect> {
        match (self.stage, event) {
            (ConversationStage::NotStarted, ConversationEvent::Started(task)) => self.start(*task),
            (ConversationStage::Answer, ConversationEvent::Answered { response, first_ms, took_ms, cost }) => {
                self.handle_answer(*response, first_ms, took_ms, cost)
            }
            (ConversationStage::Answer, ConversationEvent::Failed { class, summary }) => {
                self.handle_failure(class, summary)
            }
            (
                ConversationStage::Summary | ConversationStage::Opinion,
                ConversationEvent::Answered { response, first_ms, took_ms, cost },
            ) => self.handle_side_answer(*response, first_ms, took_ms, cost),
            (ConversationStage::Summary | ConversationStage::Opinion, ConversationEvent::Failed { class, summary }) => {
                self.handle_side_failure(class, summary)
            }
            (ConversationStage::Opinion, ConversationEvent::BudgetExceeded(problem)) => {
                self.close_without_opinions(problem.note)
            }
            (ConversationStage::Answer | ConversationStage::Summary, ConversationEvent::BudgetExceeded(problem)) => {
                self.stop_for_budget(problem)
            }
            (ConversationStage::Validation, ConversationEvent::Validated(examined)) => self.handle_validated(examined),
            (ConversationStage::ToolResults, ConversationEvent::ToolsAnswered(answers)) => {
                self.handle_tool_results(answers)
            }
            (ConversationStage::Over, _) => Vec::new(),
            (_, ConversationEvent::CancelAsked(reason)) => self.cancel(reason),
            _ => Vec::new(),
        }
    }

    /// Returns the cost so far.
    pub fn spent(&self) -> &RunCost {
        &self.spent
    }

    fn start(&mut self, task: ReviewTask) -> Vec<ConversationEffect> {
        let fixed = task.fixed_tokens();
        let (known_told, first) = task.plan_first_request();
        let ReviewTask {
            plan,
            known_findings: known,
            parts,
            system,
            tools,
            limits,
            count,
            render_prompt: say,
            overhead: _,
        } = task;
        let planned = RunEvent::Planned {
            files: to_u32(plan.files.len() + plan.left_out.len()),
            hunks: to_u32(plan.files.iter().map(|file| file.hunks.len()).sum()),
            left_out: plan.left_out.clone(),
        };
        let open = plan.open_files();
        known.iter().for_each(|finding| self.accumulated.add_known(finding));
        let files = open.len();
        self.delivery = DiffDelivery::new(open, parts);
        (self.plan, self.system, self.tools, self.render_prompt) = (plan, system, tools, say);
        self.window = ConversationWindow::new(count, limits, fixed);
        let mut effects = vec![ConversationEffect::Append(planned)];
        if files == 0 {
            effects.extend(self.finish(RunStatus::Completed, None, None));
            return effects;
        }
        if fixed >= self.window.limits().window_tokens * 2 / 5 {
            let text = format!(
                "the prompt and the tools alone take {fixed} tokens and a request may hold {}; raise window.max_tokens or the reviewer's context_window",
                self.window.limits().window_tokens
            );
            effects.extend(self.fail(ErrorClass::Configuration, text));
            return effects;
        }
        let diff = self.take_diff_parts(first);
        let later = self.describe_remaining();
        let task = (self.render_prompt)(ConversationPrompt::Task { diff: &diff, later: &later, known: &known_told });
        self.window.push_user_text(&task);
        self.asked.push(format!("review {}", text::format_count(files, "file")));
        effects.extend(self.next_request());
        effects
    }

    /// Takes the next parts of the diff that fit, as one text.
    pub(super) fn take_diff_parts(&mut self, tokens: u64) -> String {
        let parts = self.delivery.take_next_parts(tokens);
        parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Describes the remaining diff for the model.
    pub(super) fn describe_remaining(&self) -> String {
        match self.delivery.parts_left() {
            0 => String::new(),
            parts => format!("{parts} more parts of the diff, about {} tokens, follow.", self.delivery.tokens_left()),
        }
    }

    /// Delivers the next part of the diff, if there is one.
    pub(super) fn deliver_more(&mut self) {
        let tokens = self.window.limits().part_tokens();
        if self.delivery.parts_left() == 0 {
            return;
        }
        let diff = self.take_diff_parts(tokens);
        let later = self.describe_remaining();
        let words = (self.render_prompt)(ConversationPrompt::More { diff: &diff, later: &later });
        self.window.push_user_text(&words);
        self.asked.push("the next part of the diff".to_owned());
    }

    /// Returns the number of turns that the unsent parts of the diff need.
    pub(super) fn turns_needed(&self) -> u32 {
        let tokens = self.window.limits().part_tokens().max(1);
        u32::try_from(self.delivery.tokens_left().div_ceil(tokens)).unwrap_or(u32::MAX)
    }

    fn handle_failure(&mut self, class: ErrorClass, summary: String) -> Vec<ConversationEffect> {
        if class == ErrorClass::ContextTooLong && self.shrunk == WindowShrink::NotYet {
            self.shrunk = WindowShrink::Once;
            self.window.shrink();
            let note = format!("turn {}: {summary}; asked again with a smaller window", self.turn);
            let mut effects = vec![self.unanswered_entry(class, &summary), self.note(note)];
            self.turn -= 1;
            self.asked.push("the same in a smaller window".to_owned());
            effects.extend(self.next_request());
            return effects;
        }
        let turn = self.turn;
        self.fail(class, format!("turn {turn}: {summary}"))
    }

    pub(super) fn fail(&mut self, class: ErrorClass, text: String) -> Vec<ConversationEffect> {
        let event = RunEvent::Failed { class, summary: text.clone() };
        let mut effects = vec![ConversationEffect::Append(event)];
        effects.extend(self.record_partial_files());
        effects.extend(self.finish(RunStatus::Failed, None, Some((class, text))));
        effects
    }

    pub(super) fn cancel(&mut self, reason: CancelReason) -> Vec<ConversationEffect> {
        let mut effects = vec![ConversationEffect::Append(RunEvent::CancelAsked { reason })];
        effects.extend(self.record_partial_files());
        effects.extend(self.finish(reason.status(), Some(reason), None));
        effects
    }

    /// Returns `true` if a finding belongs only to carried hunks.
    pub(super) fn is_carried(&self, id: &FindingId) -> bool {
        self.plan.carried.iter().any(|carried| carried.findings.contains(id))
    }

    /// Turns a carried finding into a finding of this run, because this run's model reported it, too.
    pub(super) fn mark_reported_again(&mut self, id: &FindingId) {
        self.plan.carried.iter_mut().for_each(|carried| carried.findings.retain(|carried| carried != id));
    }

    /// Adds a note for the user and returns its journal entry.
    pub(super) fn note(&mut self, text: String) -> ConversationEffect {
        if !self.notes.contains(&text) {
            self.notes.push(text.clone());
        }
        ConversationEffect::Append(RunEvent::Note { text })
    }
}
