//! Composes and sends the requests of the turns, and stops before a request that the budget does not allow.

use super::engine::{ConversationEngine, ConversationStage};
use super::window::ComposedRequest;
use super::{BudgetProblem, ConversationEffect, ConversationPrompt};
use crate::domain::{BudgetStop, CancelReason, ChatRequest, Finding, RunEvent, SummaryAuthor, WindowUse, text};
use crate::review::journal_state::to_u32;

/// Maximum length of the request's description in a journal entry.
pub(super) const MAX_ASKED_CHARS: usize = 400;

impl ConversationEngine {
    /// Returns the next request, or the end if no turn is left.
    pub(super) fn next_request(&mut self) -> Vec<ConversationEffect> {
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
    pub(super) fn send_turn(&mut self, composed: ComposedRequest) -> Vec<ConversationEffect> {
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

    /// Sends the turn's request that waited for the summary.
    pub(super) fn resend_turn(&mut self) -> Vec<ConversationEffect> {
        let found = self.finding_lines();
        let composed = self.window.compose(self.turn, &found);
        self.send_turn(composed)
    }

    /// Returns the findings so far, one line each, for the summary of the messages that left the window.
    pub(super) fn finding_lines(&self) -> Vec<String> {
        let line = |finding: &Finding| {
            format!(
                "{} {} {}:{} {}",
                finding.priority, finding.kind, finding.repo_relative_path, finding.line_start, finding.title
            )
        };
        self.accumulated.iter().map(line).collect()
    }

    /// Returns the reason why the current request would exceed the budget. Must be called before a request is paid for,
    /// not when a recorded answer is replayed.
    pub fn budget_problem(&self) -> Option<BudgetProblem> {
        let (tokens, cost) = (self.request_tokens, self.estimate_request_cost());
        let stop = self.window.limits().budget.find_stop(&self.spent, tokens, cost)?;
        let BudgetStop { kind, reached, limit } = stop;
        let (name, next_step) = (kind.limit_name(), stop.next_step());
        let note = match cost.filter(|_| kind.is_money()) {
            Some(next) => format!(
                "the {name} of {} is used up: ${reached:.4} are spent and the next request takes about ${next:.4}; \
                 {next_step}",
                text::format_limit_dollars(limit)
            ),
            None => format!(
                "the {name} of {limit:.0} tokens is used up: {reached:.0} are spent and the next request takes {tokens}; \
                 {next_step}"
            ),
        };
        Some(BudgetProblem { stop, note })
    }

    /// Returns the price of the current request in US dollars without its answer; `None` if it is not known. The number
    /// of cached tokens is unknown before the request; caching only lowers the cost.
    pub fn estimate_request_cost(&self) -> Option<f64> {
        self.window.limits().input_price.map(|price| self.request_tokens as f64 * price / 1e6)
    }

    /// Sets the price in US dollars of a million tokens that are sent, after another reviewer took over; `None` if it is
    /// not known.
    pub fn set_input_price(&mut self, price: Option<f64>) {
        self.window.set_input_price(price);
    }

    /// Ends the run because the budget does not allow the next turn.
    pub(super) fn stop_for_budget(&mut self, problem: BudgetProblem) -> Vec<ConversationEffect> {
        self.turn -= 1;
        let mut effects = vec![self.note(problem.note), self.record_stop(problem.stop)];
        effects.extend(self.cancel(CancelReason::BudgetExhausted));
        effects
    }

    pub(super) fn record_stop(&mut self, stop: BudgetStop) -> ConversationEffect {
        self.budget_stop = Some(stop);
        ConversationEffect::Append(RunEvent::BudgetReached { stop })
    }
}
