//! The engine of a review by a model: decides the next request, processes each answer, and ends the run.

use std::collections::{HashSet, VecDeque};

use super::diff_delivery::{DiffDelivery, count_fitting};
use super::window::{ComposedRequest, ConversationWindow};
use super::{ConversationLimits, FINISH_TOOL, PromptTokenCounter, REPORT_FINDINGS_TOOL};
use crate::domain::{
    BudgetKind, BudgetStop, CancelReason, ChatMessage, ChatRequest, ChatResponse, DiffPart, ErrorClass, FileCoverage,
    Finding, FindingId, LineRange, RejectedReport, ReportedProblem, RunEvent, RunStatus, StopReason, SummaryAuthor,
    ToolCall, ToolOutcome, ToolSpec, TurnPhase, WindowUse, text,
};
use crate::review::dedup::count_by_kind;
use crate::review::journal_state::to_u32;
use crate::review::{
    Admission, ExtractedReports, FindingAccumulator, PlannedFile, ReportValidation, ReviewOutcome, ReviewPlan, RunCost,
    extract_reports,
};

/// Maximum number of tool calls of one answer; further calls are ignored.
const MAX_TOOL_CALLS: usize = 16;
/// Maximum number of consecutive unusable answers before the run fails: the first one and its one retry.
const MAX_BAD_ANSWERS: u32 = 2;
/// Maximum number of files that are named if the model reports completion too early.
const MAX_LISTED_FILES: usize = 40;
/// Divisor of the pinned tokens that limits the list of known findings: an eighth.
const KNOWN_FINDINGS_DIVISOR: u64 = 8;
/// Maximum length of a known finding's title in the prompt.
const MAX_KNOWN_TITLE_CHARS: usize = 120;
/// Maximum length of the request's description in a journal entry.
const MAX_ASKED_CHARS: usize = 400;

/// The input of a review: the code, the prompts and the limits.
pub struct ReviewTask {
    /// Changed files to review.
    pub plan: ReviewPlan,
    /// Findings that belong to `plan.carried`.
    pub known_findings: Vec<Finding>,
    /// The parts of the diff, in the order of delivery.
    pub parts: Vec<DiffPart>,
    /// System prompt, the same for all requests.
    pub system: String,
    /// The tools; empty for a model that takes none.
    pub tools: Vec<ToolSpec>,
    /// Limits on turns, tokens and cost.
    pub limits: ConversationLimits,
    /// Token counter of the model.
    pub count: PromptTokenCounter,
    /// Renders a prompt.
    pub render_prompt: Box<dyn Fn(ConversationPrompt<'_>) -> String>,
    /// Tokens that the fixed parts cost in addition to their text, because providers bill tool schemas in their own
    /// form.
    pub overhead: u64,
}

/// A prompt that the engine needs.
#[derive(Debug, Clone, Copy)]
pub enum ConversationPrompt<'a> {
    /// The pinned task, with the first parts of the diff and a note about later parts.
    Task {
        /// First parts of the diff.
        diff: &'a str,
        /// Note about later parts; empty if there are none.
        later: &'a str,
        /// Findings of earlier reviews in the hunks that are not sent again, one per line; may be empty.
        known: &'a str,
    },
    /// The next part of the diff.
    More {
        /// Next parts of the diff.
        diff: &'a str,
        /// Note about further parts; empty if there are none.
        later: &'a str,
    },
    /// The model reported completion, but these paths (one per line) were not reviewed.
    Uncovered {
        /// Paths, one per line.
        hunks: &'a str,
    },
    /// The notice that a phase begins.
    Phase {
        /// New phase.
        phase: TurnPhase,
        /// Current turn, from 1.
        turn: u32,
        /// Maximum number of turns.
        of: u32,
    },
    /// The last allowed turn.
    Last,
    /// The answer was cut because of its length.
    Cut,
    /// The request to repeat an unusable answer.
    Retry {
        /// Problem with the answer.
        trouble: AnswerProblem,
        /// Description of the problem.
        reason: &'a str,
    },
    /// The replacement line for an old tool result.
    Masked {
        /// Call that the old result belongs to.
        call: &'a ToolCall,
        /// Size of the old result in tokens.
        tokens: u64,
    },
    /// A side request: summarize these messages in a few lines.
    Summarise {
        /// Messages that slid out of the window, as text.
        messages: &'a str,
    },
    /// A side request: is this finding real?
    Opinion {
        /// Finding to judge.
        finding: &'a Finding,
    },
}

impl ReviewTask {
    /// Creates a review without anything to send. It ends as soon as it starts.
    pub fn nothing_to_send(plan: ReviewPlan, known_findings: Vec<Finding>) -> Self {
        Self {
            plan,
            known_findings,
            parts: Vec::new(),
            system: String::new(),
            tools: Vec::new(),
            limits: ConversationLimits::empty(),
            count: Box::new(|_| 0),
            render_prompt: Box::new(|_| String::new()),
            overhead: 0,
        }
    }

    /// Returns the tokens that are the same in every request: system prompt, tools, and their overhead.
    pub fn fixed_tokens(&self) -> u64 {
        let specs = self.tools.iter().map(|tool| (self.count)(&serde_json::to_string(tool).unwrap_or_default()));
        (self.count)(&self.system) + specs.sum::<u64>() + self.overhead
    }

    /// Returns the maximum number of tokens for known findings in the pinned task.
    pub fn known_tokens(&self) -> u64 {
        if self.known_findings.is_empty() { 0 } else { self.limits.pinned_tokens() / KNOWN_FINDINGS_DIVISOR }
    }

    /// Returns the number of diff parts in the first request.
    pub fn first_part_count(&self) -> usize {
        count_fitting(self.parts.iter(), self.plan_first_request().1)
    }

    /// Returns the known findings of the first request, and the tokens that remain for the diff.
    fn plan_first_request(&self) -> (String, u64) {
        let known =
            format_known_findings(&self.known_findings, &self.plan.open_files(), self.known_tokens(), &self.count);
        let words =
            (self.count)(&(self.render_prompt)(ConversationPrompt::Task { diff: "", later: "", known: &known }));
        (known, self.limits.pinned_tokens().saturating_sub(self.fixed_tokens() + words))
    }
}

impl std::fmt::Debug for ReviewTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("plan", &self.plan).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The problem with an unusable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProblem {
    /// The answer has neither text nor tool calls.
    Empty,
    /// The model refused.
    Refused,
    /// The answer has neither a list of findings nor a tool call.
    Unreadable,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationToolResult {
    /// Result for the model.
    pub text: String,
    /// Success or failure of the call.
    pub outcome: ToolOutcome,
    /// One line for the user.
    pub summary: String,
    /// Lines of files that the result shows.
    pub shown: Vec<(String, LineRange)>,
}

/// Limit that does not allow the next request.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetProblem {
    /// The limit.
    pub stop: BudgetStop,
    /// One sentence with the size of the next request, for the notes of the run.
    pub note: String,
}

/// An event for the engine.
#[derive(Debug)]
pub enum ConversationEvent {
    /// The first event.
    Started(Box<ReviewTask>),
    /// The answer to a request, with its cost in US dollars; the cost is `None` if an earlier run paid for the answer.
    Answered {
        /// Answer with its token usage; all counts are 0 if the provider gave none.
        response: Box<ChatResponse>,
        /// Milliseconds from the request to the first byte of the answer.
        first_ms: u64,
        /// Milliseconds from the request to the end of the answer.
        took_ms: u64,
        /// Cost in US dollars; `None` if an earlier run paid.
        cost: Option<f64>,
    },
    /// The request failed.
    Failed {
        /// Class of the failure.
        class: ErrorClass,
        /// Description of the failure for a person.
        summary: String,
    },
    /// The request was not sent because the budget does not allow it.
    BudgetExceeded(BudgetProblem),
    /// The validated reports, in their order.
    Validated(Vec<ReportValidation>),
    /// The results, in the order of the calls.
    ToolsAnswered(Vec<ConversationToolResult>),
    /// A cancellation was requested, for this reason.
    CancelAsked(CancelReason),
}

/// An action for the caller. Effects must be executed in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationEffect {
    /// Append the event to the run's journal.
    Append(RunEvent),
    /// Send a request to the model.
    Ask {
        /// Number of the request. Requests for second opinions are numbered after the turns.
        turn: u32,
        /// Messages, tools and limits of the request.
        request: Box<ChatRequest>,
    },
    /// Validate these reports against the snapshot.
    Validate {
        /// Turn of the reports, from 1.
        turn: u32,
        /// Reports in the order of the answer.
        reports: Vec<ReportedProblem>,
    },
    /// Execute these tool calls.
    RunTools {
        /// Turn of the calls, from 1.
        turn: u32,
        /// Calls in the order of the answer.
        calls: Vec<ToolCall>,
    },
    /// End the run with this result.
    Finish(Box<ReviewOutcome>),
}

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
    request_tokens: u64,
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
    reporting: ReportingHistory,
    shrunk: WindowShrink,
    /// Findings that wait for a second opinion.
    pub(super) opinions: VecDeque<Finding>,
    /// Number of requested second opinions. Their requests are numbered after the turns.
    pub(super) judgements: u32,
    /// The finding whose opinion was requested.
    pub(super) judged: Option<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportingHistory {
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

    /// Returns the current turn, 1-based; 0 before the first.
    pub fn turn(&self) -> u32 {
        self.turn
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
    fn take_diff_parts(&mut self, tokens: u64) -> String {
        let parts = self.delivery.take_next_parts(tokens);
        parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Describes the remaining diff for the model.
    fn describe_remaining(&self) -> String {
        match self.delivery.parts_left() {
            0 => String::new(),
            parts => format!("{parts} more parts of the diff, about {} tokens, follow.", self.delivery.tokens_left()),
        }
    }

    /// Returns the next request, or the end if no turn is left.
    fn next_request(&mut self) -> Vec<ConversationEffect> {
        let limits = self.window.limits().clone();
        if self.turn >= limits.max_turns {
            return self.finish_or_ask_opinions();
        }
        self.turn += 1;
        let phase = limits.phase(self.turn);
        let last = self.turn == limits.max_turns;
        if last && self.turn > 1 {
            let words = (self.render_prompt)(ConversationPrompt::Last);
            self.window.push_user_text(&words);
            self.asked.push("the final report".to_owned());
        } else if phase != self.phase || self.turn == 1 {
            let words =
                (self.render_prompt)(ConversationPrompt::Phase { phase, turn: self.turn, of: limits.max_turns });
            self.window.push_user_text(&words);
        }
        self.phase = phase;
        let found = self.finding_lines();
        let composed = self.window.compose(self.turn, &found);
        let mut effects = Vec::new();
        if let Some((removed, kept)) = composed.slid {
            effects.push(ConversationEffect::Append(RunEvent::SlidingWindowApplied {
                turn: self.turn,
                messages_removed: to_u32(removed),
                messages_kept: to_u32(kept),
            }));
        }
        if composed.slid.is_some() && limits.summary == SummaryAuthor::Model {
            effects.extend(self.ask_for_summary(&composed));
            return effects;
        }
        effects.extend(self.send_turn(composed));
        effects
    }

    /// Sends the request of a turn.
    fn send_turn(&mut self, composed: ComposedRequest) -> Vec<ConversationEffect> {
        self.spent.add_request(composed.usage.tokens, composed.usage.limit);
        let asked = match self.asked.is_empty() {
            true => "go on".to_owned(),
            false => std::mem::take(&mut self.asked).join("; "),
        };
        let request = ChatRequest {
            system: self.system.clone(),
            messages: composed.messages,
            // Always the same tools, even in the last turn, because providers cache the beginning of a request.
            tools: self.tools.clone(),
            max_output: self.window.limits().output_tokens,
            temperature: None,
            pinned: 1,
        };
        self.send_request(
            ConversationStage::Answer,
            text::sanitize_line(&asked).chars().take(MAX_ASKED_CHARS).collect(),
            composed.usage,
            request,
        )
    }

    /// Sends a request and waits for its answer.
    pub(super) fn send_request(
        &mut self,
        stage: ConversationStage,
        asked: String,
        window: WindowUse,
        request: ChatRequest,
    ) -> Vec<ConversationEffect> {
        (self.stage, self.request_tokens) = (stage, window.tokens);
        let turn = self.turn + self.judgements;
        vec![
            ConversationEffect::Append(RunEvent::TurnAsked { turn, phase: self.phase, asked, window }),
            ConversationEffect::Ask { turn, request: Box::new(request) },
        ]
    }

    /// Returns the reason why the current request would exceed the budget. Must be called before a request is paid for,
    /// not when a recorded answer is replayed.
    pub fn budget_problem(&self) -> Option<BudgetProblem> {
        let (limits, tokens) = (self.window.limits(), self.request_tokens);
        if let Some(most) = limits.budget.tokens
            && self.spent.usage.total().saturating_add(tokens) > most
        {
            let spent = self.spent.usage.total();
            let stop = BudgetStop { kind: BudgetKind::RunTokens, reached: spent as f64, limit: most as f64 };
            let note = format!(
                "the budget of {most} tokens is used up: {spent} are spent and the next request takes {tokens}"
            );
            return Some(BudgetProblem { stop, note });
        }
        if let (Some(most), Some(price)) = (limits.budget.cost, limits.input_price) {
            // The number of cached tokens is unknown before the request; caching only lowers the cost.
            let next = tokens as f64 * price / 1e6;
            if self.spent.cost + next > most {
                let spent = self.spent.cost;
                let stop = BudgetStop { kind: BudgetKind::RunCost, reached: spent, limit: most };
                let note = format!(
                    "the budget of ${most:.2} is used up: ${spent:.4} are spent and the next request takes about ${next:.4}"
                );
                return Some(BudgetProblem { stop, note });
            }
        }
        None
    }

    fn handle_answer(
        &mut self,
        mut response: ChatResponse,
        first_ms: u64,
        took_ms: u64,
        cost: Option<f64>,
    ) -> Vec<ConversationEffect> {
        match response.usage.total() {
            // A journal of an older version.
            0 => response.usage = self.window.estimate_usage(&response),
            _ if response.usage.estimated => {}
            _ => self.window.calibrate(&response.usage),
        }
        self.extracted = extract_reports(&response);
        let mut effects = vec![self.record_answer(&response, first_ms, took_ms, cost)];
        self.answer = Some(response);
        self.stage = ConversationStage::Validation;
        let reports = std::mem::take(&mut self.extracted.reports);
        match reports.is_empty() {
            true => effects.extend(self.handle_validated(Vec::new())),
            false => effects.push(ConversationEffect::Validate { turn: self.turn, reports }),
        }
        effects
    }

    /// Adds an answer to the cost and returns its journal entry.
    fn record_answer(
        &mut self,
        response: &ChatResponse,
        first_ms: u64,
        took_ms: u64,
        cost: Option<f64>,
    ) -> ConversationEffect {
        if let Some(cost) = cost {
            self.spent.add(&response.usage, cost, &response.model);
        }
        ConversationEffect::Append(RunEvent::TurnAnswered {
            turn: self.turn + self.judgements,
            response: Box::new(response.clone()),
            cost: cost.unwrap_or_default(),
            first_ms,
            took_ms,
            taken_over: cost.is_none(),
        })
    }

    /// Handles the answer to a side request.
    fn handle_side_answer(
        &mut self,
        response: ChatResponse,
        first_ms: u64,
        took_ms: u64,
        cost: Option<f64>,
    ) -> Vec<ConversationEffect> {
        let mut effects = vec![self.record_answer(&response, first_ms, took_ms, cost)];
        effects.extend(match self.stage {
            ConversationStage::Summary => {
                self.accept_summary(&response);
                self.resend_turn()
            }
            _ => self.apply_opinion(&response),
        });
        effects
    }

    fn handle_side_failure(&mut self, class: ErrorClass, summary: String) -> Vec<ConversationEffect> {
        let mut effects = vec![self.unanswered_entry(class, &summary)];
        match self.stage {
            ConversationStage::Summary => {
                effects.push(self.note(format!("no summary by the model: {summary}")));
                effects.extend(self.resend_turn());
            }
            _ => effects.extend(self.close_without_opinions(summary)),
        }
        effects
    }

    /// Returns the journal entry of a failed request that did not end the run. Without the entry, a restart would take
    /// the next answer for the answer to this request.
    fn unanswered_entry(&self, class: ErrorClass, summary: &str) -> ConversationEffect {
        let turn = self.turn + self.judgements;
        ConversationEffect::Append(RunEvent::Unanswered { turn, class, summary: summary.to_owned() })
    }

    /// Ends the run without the remaining second opinions.
    fn close_without_opinions(&mut self, reason: String) -> Vec<ConversationEffect> {
        self.opinions.clear();
        let mut effects = vec![self.note(format!("no second opinion: {reason}"))];
        effects.extend(self.close());
        effects
    }

    /// Ends the run because the budget does not allow the next turn.
    fn stop_for_budget(&mut self, problem: BudgetProblem) -> Vec<ConversationEffect> {
        self.turn -= 1;
        let mut effects = vec![self.note(problem.note), self.record_stop(problem.stop)];
        effects.extend(self.cancel(CancelReason::BudgetExhausted));
        effects
    }

    pub(super) fn record_stop(&mut self, stop: BudgetStop) -> ConversationEffect {
        self.budget_stop = Some(stop);
        ConversationEffect::Append(RunEvent::BudgetReached { stop })
    }

    /// Sends the turn's request that waited for the summary.
    fn resend_turn(&mut self) -> Vec<ConversationEffect> {
        let found = self.finding_lines();
        let composed = self.window.compose(self.turn, &found);
        self.send_turn(composed)
    }

    fn handle_validated(&mut self, examined: Vec<ReportValidation>) -> Vec<ConversationEffect> {
        let Some(response) = self.answer.take() else { return Vec::new() };
        let (mut effects, mut told) = (Vec::new(), Vec::new());
        let (mut fresh, mut kept) = (0, 0);
        let reported = examined.len();
        for examined in examined {
            let event = match examined {
                ReportValidation::Rejected(rejected) => {
                    told.push(format!("{:?} set aside: {}", rejected.report.title, rejected.reason));
                    self.rejected.push(rejected.clone());
                    RunEvent::Rejected { turn: self.turn, rejected: Box::new(rejected) }
                }
                ReportValidation::Finding { finding, notes } => {
                    kept += 1;
                    told.extend(notes.iter().cloned());
                    effects.extend(notes.into_iter().map(|text| self.note(text)));
                    let finding = *finding;
                    let (line_start, line_end) = (finding.line_start, finding.line_end);
                    let title = finding.title.clone();
                    match self.accumulated.admit(&finding) {
                        Admission::New => {
                            fresh += 1;
                            RunEvent::Finding { finding: Box::new(finding) }
                        }
                        Admission::Restated(finding) => {
                            self.mark_reported_again(&finding.finding_id);
                            RunEvent::Restated { turn: self.turn, finding }
                        }
                        Admission::Repeated(finding_id) => {
                            self.mark_reported_again(&finding_id);
                            RunEvent::Repeated { turn: self.turn, finding_id, line_start, line_end, title }
                        }
                    }
                }
            };
            effects.push(ConversationEffect::Append(event));
        }
        for problem in std::mem::take(&mut self.extracted.problems) {
            effects.push(self.note(format!("turn {}: {problem}", self.turn)));
        }
        effects.push(ConversationEffect::Append(RunEvent::CodeSmellsAccumulated {
            new_issues: fresh,
            total_issues: to_u32(self.accumulated.len()),
            turn: self.turn,
            issues_by_type: count_by_kind(self.accumulated.iter()),
        }));
        if reported > 0 || self.extracted.lists > 0 {
            self.reporting = ReportingHistory::Findings;
        }
        told.insert(0, format!("recorded: {kept}, of them new: {fresh}"));
        let told = told.join("; ");
        effects.extend(self.continue_after_answer(response, told));
        effects
    }

    /// Continues after an answer whose findings are recorded.
    fn continue_after_answer(&mut self, response: ChatResponse, told: String) -> Vec<ConversationEffect> {
        if let Some((trouble, reason)) = self.find_problem(&response) {
            return self.retry(&response, trouble, reason);
        }
        self.bad_answers = 0;
        let mut effects = Vec::new();
        let cut = matches!(response.stop, StopReason::Length)
            || (response.stop == StopReason::Interrupted && response.calls.is_empty());
        self.last_answer_cut = cut;
        if !cut {
            for file in self.delivery.mark_answered() {
                self.covered.push(file.clone());
                effects.push(ConversationEffect::Append(RunEvent::Covered { file }));
            }
        }
        let done = !cut && is_done(&response);
        if done && self.delivery.parts_left() == 0 {
            effects.extend(self.finish_or_ask_opinions());
            return effects;
        }
        let calls = self.remember_answer(&response, &told);
        if !calls.is_empty() && !cut {
            self.stage = ConversationStage::ToolResults;
            effects.push(ConversationEffect::RunTools { turn: self.turn, calls });
            return effects;
        }
        if cut {
            self.answer_open_calls("not run: the answer was cut");
            let words = (self.render_prompt)(ConversationPrompt::Cut);
            self.window.push_user_text(&words);
            self.asked.push("the rest of the answer, shorter".to_owned());
        } else {
            if done {
                let open = self.delivery.open_paths();
                let listed: Vec<&str> = open.iter().copied().take(MAX_LISTED_FILES).collect();
                let more = open.len().saturating_sub(MAX_LISTED_FILES);
                let more =
                    if more > 0 { format!("\nand {} more", text::format_count(more, "file")) } else { String::new() };
                let words = (self.render_prompt)(ConversationPrompt::Uncovered {
                    hunks: &format!("{}{more}", listed.join("\n")),
                });
                self.window.push_user_text(&words);
            }
            self.deliver_more();
        }
        effects.extend(self.next_request());
        effects
    }

    /// Delivers the next part of the diff, if there is one.
    fn deliver_more(&mut self) {
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

    /// Adds an answer to the conversation. Answers the calls of the engine's own tools, and returns the other calls for
    /// execution.
    fn remember_answer(&mut self, response: &ChatResponse, told: &str) -> Vec<ToolCall> {
        let ChatMessage::Assistant { text, mut calls, opaque } = response.to_message() else { return Vec::new() };
        calls.truncate(MAX_TOOL_CALLS);
        let own = |call: &ToolCall| [REPORT_FINDINGS_TOOL, FINISH_TOOL].contains(&call.name.as_str());
        // The engine's own calls come first, because results are sent in the order of the calls.
        let (own, others): (Vec<ToolCall>, Vec<ToolCall>) = calls.into_iter().partition(own);
        let calls = own.iter().chain(&others).cloned().collect();
        let text =
            if text.trim().is_empty() && own.is_empty() && others.is_empty() { "(nothing)".to_owned() } else { text };
        self.window.push(ChatMessage::Assistant { text, calls, opaque }, None);
        let mut told = Some(told);
        for call in own {
            let text = match call.name.as_str() {
                FINISH_TOOL => "not finished yet: see below".to_owned(),
                _ => told.take().unwrap_or("recorded").to_owned(),
            };
            self.window.push(ChatMessage::Tool { call_id: call.id, name: call.name, text }, None);
        }
        self.calls.clone_from(&others);
        others
    }

    /// Answers calls that are not executed, because providers reject a call without a result.
    fn answer_open_calls(&mut self, text: &str) {
        for call in std::mem::take(&mut self.calls) {
            self.window.push(ChatMessage::Tool { call_id: call.id, name: call.name, text: text.to_owned() }, None);
        }
    }

    fn handle_tool_results(&mut self, answers: Vec<ConversationToolResult>) -> Vec<ConversationEffect> {
        let calls = std::mem::take(&mut self.calls);
        let mut effects = Vec::new();
        let share = self.window.limits().results_tokens() / (calls.len().max(1) as u64);
        for (call, answer) in calls.into_iter().zip(answers) {
            let text = self.window.truncate(answer.text, share);
            let tokens = self.window.count(&text);
            for (path, lines) in answer.shown {
                self.delivery.mark_shown(&path, lines);
            }
            effects.push(ConversationEffect::Append(RunEvent::ToolAnswered {
                turn: self.turn,
                name: call.name.clone(),
                arguments: text::sanitize_line(&call.arguments).chars().take(MAX_ASKED_CHARS / 2).collect(),
                outcome: answer.outcome,
                tokens,
                result: text::sanitize_line(&answer.summary).chars().take(MAX_ASKED_CHARS / 2).collect(),
            }));
            let mask = (self.render_prompt)(ConversationPrompt::Masked { call: &call, tokens });
            self.window.push(ChatMessage::Tool { call_id: call.id, name: call.name, text }, Some(mask));
        }
        // Deliver a part now if otherwise not every remaining part would get a turn.
        let turns_left = self.window.limits().max_turns.saturating_sub(self.turn);
        if self.delivery.parts_left() > 0 && self.turns_needed() >= turns_left.saturating_sub(1) {
            self.deliver_more();
        }
        effects.extend(self.next_request());
        effects
    }

    /// Returns the number of turns that the unsent parts of the diff need.
    fn turns_needed(&self) -> u32 {
        let tokens = self.window.limits().part_tokens().max(1);
        u32::try_from(self.delivery.tokens_left().div_ceil(tokens)).unwrap_or(u32::MAX)
    }

    /// Returns the problem with an answer that contains nothing usable.
    fn find_problem(&self, response: &ChatResponse) -> Option<(AnswerProblem, String)> {
        if response.stop == StopReason::Refused {
            return Some((AnswerProblem::Refused, "the model refused to answer".to_owned()));
        }
        if response.is_empty() {
            return Some((AnswerProblem::Empty, "the answer was empty".to_owned()));
        }
        let structured =
            !response.calls.is_empty() || self.extracted.lists > 0 || self.reporting == ReportingHistory::Findings;
        // A model without tools must answer every part of the diff with a list, even if it is empty.
        let structured = structured && !(self.tools.is_empty() && self.extracted.lists == 0);
        let cut = matches!(response.stop, StopReason::Length | StopReason::Interrupted);
        (!structured && !cut).then(|| {
            (AnswerProblem::Unreadable, "the answer holds neither a list of findings nor a tool call".to_owned())
        })
    }

    /// Retries once with the reason; the second consecutive problem fails the run.
    fn retry(&mut self, response: &ChatResponse, trouble: AnswerProblem, reason: String) -> Vec<ConversationEffect> {
        self.bad_answers += 1;
        let mut effects = vec![self.note(format!("turn {}: {reason}", self.turn))];
        if self.bad_answers >= MAX_BAD_ANSWERS || self.turn >= self.window.limits().max_turns {
            let class = if trouble == AnswerProblem::Refused { ErrorClass::Refused } else { ErrorClass::Malformed };
            effects.extend(self.fail(class, format!("{reason}, in turn {} and when asked again", self.turn)));
            return effects;
        }
        if !response.is_empty() {
            self.remember_answer(response, "recorded");
            self.answer_open_calls("not run");
        }
        let words = (self.render_prompt)(ConversationPrompt::Retry { trouble, reason: &reason });
        self.window.push_user_text(&words);
        self.asked.push(format!("again, because {reason}"));
        effects.extend(self.next_request());
        effects
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

    fn fail(&mut self, class: ErrorClass, text: String) -> Vec<ConversationEffect> {
        let event = RunEvent::Failed { class, summary: text.clone() };
        let mut effects = vec![ConversationEffect::Append(event)];
        effects.extend(self.record_partial_files());
        effects.extend(self.finish(RunStatus::Failed, None, Some((class, text))));
        effects
    }

    fn cancel(&mut self, reason: CancelReason) -> Vec<ConversationEffect> {
        let mut effects = vec![ConversationEffect::Append(RunEvent::CancelAsked { reason })];
        effects.extend(self.record_partial_files());
        effects.extend(self.finish(reason.status(), Some(reason), None));
        effects
    }

    /// Returns the findings so far, one line each, for the summary of the messages that left the window.
    fn finding_lines(&self) -> Vec<String> {
        let line = |finding: &Finding| {
            format!(
                "{} {} {}:{} {}",
                finding.priority, finding.kind, finding.repo_relative_path, finding.line_start, finding.title
            )
        };
        self.accumulated.iter().map(line).collect()
    }

    /// Returns `true` if a finding belongs only to carried hunks.
    pub(super) fn is_carried(&self, id: &FindingId) -> bool {
        self.plan.carried.iter().any(|carried| carried.findings.contains(id))
    }

    /// Turns a carried finding into a finding of this run, because this run's model reported it, too.
    fn mark_reported_again(&mut self, id: &FindingId) {
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

/// Returns `true` if the model reports that it is done.
fn is_done(response: &ChatResponse) -> bool {
    let finishes = response.calls.iter().any(|call| call.name == FINISH_TOOL);
    let only_reports = response.calls.is_empty();
    finishes
        || (only_reports && matches!(response.stop, StopReason::Done | StopReason::Unknown | StopReason::Interrupted))
}

/// Lists findings, one line each, in at most `tokens` tokens. Findings in files that are sent come first.
fn format_known_findings(known: &[Finding], open: &[PlannedFile], tokens: u64, count: &PromptTokenCounter) -> String {
    let sent: HashSet<&str> = open.iter().map(|file| file.path.as_str()).collect();
    let mut findings: Vec<&Finding> = known.iter().collect();
    findings.sort_by_key(|finding| !sent.contains(finding.repo_relative_path.as_str()));
    let (mut lines, mut used): (Vec<String>, u64) = (Vec::new(), 0);
    for finding in &findings {
        let title: String = finding.title.chars().take(MAX_KNOWN_TITLE_CHARS).collect();
        let (path, line) = (&finding.repo_relative_path, finding.line_start);
        let line = text::sanitize_line(&format!("{path}:{line} {} {title}", finding.kind)).into_owned();
        used = used.saturating_add(count(&line) + 1);
        if used > tokens {
            break;
        }
        lines.push(line);
    }
    if lines.len() < findings.len() {
        lines.push(format!("and {} more", findings.len() - lines.len()));
    }
    lines.join("\n")
}
