//! Processes the answer of a turn: records it, then its findings, then its tool calls, and continues.

use super::engine::{ConversationEngine, ConversationStage, ReportingHistory};
use super::requests::MAX_ASKED_CHARS;
use super::{
    AnswerProblem, ConversationEffect, ConversationPrompt, ConversationToolResult, FINISH_TOOL, REPORT_FINDINGS_TOOL,
};
use crate::domain::{ChatMessage, ChatResponse, ErrorClass, RunEvent, StopReason, ToolCall, text};
use crate::review::dedup::count_by_kind;
use crate::review::journal_state::to_u32;
use crate::review::{Admission, ReportValidation, extract_reports};

/// Maximum number of tool calls of one answer; further calls are ignored.
const MAX_TOOL_CALLS: usize = 16;
/// Maximum number of consecutive unusable answers before the run fails: the first one and its one retry.
const MAX_BAD_ANSWERS: u32 = 2;
/// Maximum number of files that are named if the model reports completion too early.
const MAX_LISTED_FILES: usize = 40;

impl ConversationEngine {
    pub(super) fn handle_answer(
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
    pub(super) fn record_answer(
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

    pub(super) fn handle_validated(&mut self, examined: Vec<ReportValidation>) -> Vec<ConversationEffect> {
        let Some(response) = self.answer.take() else { return Vec::new() };
        let (mut effects, mut told) = (Vec::new(), Vec::new());
        let (mut fresh, mut kept) = (0, 0);
        let reported = examined.len();
        self.accumulated.begin_answer();
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
    pub(super) fn continue_after_answer(&mut self, response: ChatResponse, told: String) -> Vec<ConversationEffect> {
        if let Some((trouble, reason)) = self.find_problem(&response) {
            return self.retry(&response, trouble, reason);
        }
        self.bad_answers = 0;
        let mut effects = Vec::new();
        let broken = is_broken(&response);
        // The calls that came before an answer broke off are whole; those of an answer at its longest length are not.
        let cut = broken && (response.stop == StopReason::Length || response.calls.iter().all(is_engine_call));
        self.last_answer_cut = broken;
        if is_verdict(&response) {
            for file in self.delivery.mark_reviewed() {
                self.covered.push(file.clone());
                effects.push(ConversationEffect::Append(RunEvent::Covered { file }));
            }
        }
        let done = !broken && is_done(&response);
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

    /// Adds an answer to the conversation. Answers the calls of the engine's own tools, and returns the other calls for
    /// execution.
    pub(super) fn remember_answer(&mut self, response: &ChatResponse, told: &str) -> Vec<ToolCall> {
        let ChatMessage::Assistant { text, mut calls, opaque } = response.to_message() else { return Vec::new() };
        calls.truncate(MAX_TOOL_CALLS);
        // The engine's own calls come first, because results are sent in the order of the calls.
        let (own, others): (Vec<ToolCall>, Vec<ToolCall>) = calls.into_iter().partition(is_engine_call);
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
    pub(super) fn answer_open_calls(&mut self, text: &str) {
        for call in std::mem::take(&mut self.calls) {
            self.window.push(ChatMessage::Tool { call_id: call.id, name: call.name, text: text.to_owned() }, None);
        }
    }

    pub(super) fn handle_tool_results(&mut self, answers: Vec<ConversationToolResult>) -> Vec<ConversationEffect> {
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

    /// Returns the problem with an answer that contains nothing usable.
    pub(super) fn find_problem(&self, response: &ChatResponse) -> Option<(AnswerProblem, String)> {
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
        (!structured && !is_broken(response)).then(|| {
            (AnswerProblem::Unreadable, "the answer holds neither a list of findings nor a tool call".to_owned())
        })
    }

    /// Retries once with the reason; the second consecutive problem fails the run.
    pub(super) fn retry(
        &mut self,
        response: &ChatResponse,
        trouble: AnswerProblem,
        reason: String,
    ) -> Vec<ConversationEffect> {
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
}

/// Returns `true` if the answer broke off or was cut at its longest length.
fn is_broken(response: &ChatResponse) -> bool {
    matches!(response.stop, StopReason::Length | StopReason::Interrupted)
}

/// Returns `true` if the engine itself answers this call.
fn is_engine_call(call: &ToolCall) -> bool {
    [REPORT_FINDINGS_TOOL, FINISH_TOOL].contains(&call.name.as_str())
}

fn has_finish_call(response: &ChatResponse) -> bool {
    response.calls.iter().any(|call| call.name == FINISH_TOOL)
}

/// Returns `true` if the answer is a verdict on everything that was shown before it: it is whole, and it ends the
/// review or waits for no tool. A model that still looks something up has not judged yet, whatever it reports meanwhile.
fn is_verdict(response: &ChatResponse) -> bool {
    !is_broken(response) && (has_finish_call(response) || response.calls.iter().all(is_engine_call))
}

/// Returns `true` if the model reports that it is done.
fn is_done(response: &ChatResponse) -> bool {
    let only_reports = response.calls.is_empty();
    has_finish_call(response) || (only_reports && matches!(response.stop, StopReason::Done | StopReason::Unknown))
}
