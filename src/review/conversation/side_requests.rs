//! Requests in addition to the turns: a summary of the messages that leave the window, and second opinions on findings.
//! Both are sent only if the settings ask for them.
//!
//! Invariant: a failed side request never fails the run. The local summary or the finding stays.

use super::engine::{ConversationEngine, ConversationStage};
use super::window::ComposedRequest;
use super::{ConversationEffect, ConversationPrompt};
use crate::domain::{
    ChatMessage, ChatRequest, ChatResponse, ErrorClass, Finding, Opinion, RejectedReport, ReportedProblem, RunEvent,
    TurnPhase, WindowUse, text,
};

/// Longest answer to a request about one finding, in tokens. Not from the literature: a verdict and a paragraph.
const MAX_OPINION_TOKENS: u64 = 1_000;

impl ConversationEngine {
    /// Handles the answer to a side request.
    pub(super) fn handle_side_answer(
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

    pub(super) fn handle_side_failure(&mut self, class: ErrorClass, summary: String) -> Vec<ConversationEffect> {
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
    pub(super) fn unanswered_entry(&self, class: ErrorClass, summary: &str) -> ConversationEffect {
        let turn = self.turn + self.judgements;
        ConversationEffect::Append(RunEvent::Unanswered { turn, class, summary: summary.to_owned() })
    }

    /// Ends the run without the remaining second opinions.
    pub(super) fn close_without_opinions(&mut self, reason: String) -> Vec<ConversationEffect> {
        self.opinions.clear();
        let mut effects = vec![self.note(format!("no second opinion: {reason}"))];
        effects.extend(self.close());
        effects
    }

    /// Asks the model for a summary of what just left the window.
    pub(super) fn ask_for_summary(&mut self, composed: &ComposedRequest) -> Vec<ConversationEffect> {
        let limits = self.window.limits().clone();
        let gone = self.window.slid_out_text(limits.window_tokens / 2);
        let words = (self.render_prompt)(ConversationPrompt::Summarise { messages: &gone });
        let window = WindowUse {
            tokens: self.window.count(&self.system) + self.window.count(&words),
            limit: limits.window_tokens,
            messages: 1,
            ..composed.usage
        };
        let asked = "a summary of what leaves the window".to_owned();
        let request = ChatRequest {
            system: self.system.clone(),
            messages: vec![ChatMessage::User { text: words }],
            tools: Vec::new(),
            max_output: super::ConversationLimits::MAX_SUMMARY_TOKENS,
            temperature: None,
            pinned: 0,
        };
        self.send_request(ConversationStage::Summary, asked, window, request)
    }

    /// Replaces the local summary by the model's summary, unless that is empty.
    pub(super) fn accept_summary(&mut self, response: &ChatResponse) {
        if !response.text.trim().is_empty() {
            self.window.set_summary(&response.text);
        }
    }

    /// Requests the next second opinion, or ends the run if none is left.
    pub(super) fn ask_next_opinion(&mut self) -> Vec<ConversationEffect> {
        let Some(finding) = self.opinions.pop_front() else { return self.close() };
        let words = (self.render_prompt)(ConversationPrompt::Opinion { finding: &finding });
        let window = WindowUse {
            tokens: self.window.count(&words),
            limit: self.window.limits().window_tokens,
            messages: 1,
            ..WindowUse::default()
        };
        let title: String = text::sanitize_line(&finding.title).chars().take(200).collect();
        let asked = format!("a second opinion: {title}");
        let request = ChatRequest {
            system: String::new(),
            messages: vec![ChatMessage::User { text: words }],
            tools: Vec::new(),
            max_output: MAX_OPINION_TOKENS,
            temperature: Some(0.0),
            pinned: 0,
        };
        self.judged = Some(finding);
        self.phase = TurnPhase::Finish;
        self.judgements += 1;
        self.send_request(ConversationStage::Opinion, asked, window, request)
    }

    /// Applies the model's opinion on a finding. A finding that the model calls false is rejected with the model's
    /// reason.
    pub(super) fn apply_opinion(&mut self, response: &ChatResponse) -> Vec<ConversationEffect> {
        let Some(finding) = self.judged.take() else { return self.close() };
        let (opinion, reason) = parse_opinion(&response.text);
        let mut effects = Vec::new();
        if opinion == Opinion::False {
            self.withdrawn.insert(finding.finding_id.clone());
            let rejected =
                RejectedReport { report: to_reported(&finding), reason: format!("second opinion: {reason}") };
            self.rejected.push(rejected.clone());
            let turn = self.turn + self.judgements;
            // Recorded before the verdict removes the finding: a journal that ends here contains the problem twice
            // rather than never.
            effects.push(ConversationEffect::Append(RunEvent::Rejected { turn, rejected: Box::new(rejected) }));
        }
        effects.push(ConversationEffect::Append(RunEvent::Judged { finding_id: finding.finding_id, opinion, reason }));
        effects.extend(self.ask_next_opinion());
        effects
    }
}

/// Parses the verdict of an answer; unsure if there is none.
fn parse_opinion(said: &str) -> (Opinion, String) {
    #[derive(serde::Deserialize)]
    struct OpinionAnswer {
        verdict: String,
        #[serde(default)]
        reason: String,
    }
    let object = said.find('{').zip(said.rfind('}')).and_then(|(from, to)| said.get(from..=to));
    let Some(said) = object.and_then(|object| serde_json::from_str::<OpinionAnswer>(object).ok()) else {
        return (Opinion::Unsure, "the answer held no verdict".to_owned());
    };
    let opinion = match said.verdict.trim().to_ascii_lowercase().as_str() {
        "real" | "true" => Opinion::Real,
        "false" => Opinion::False,
        _ => Opinion::Unsure,
    };
    (opinion, text::sanitize_line(&said.reason).chars().take(400).collect())
}

fn to_reported(finding: &Finding) -> ReportedProblem {
    ReportedProblem {
        path: finding.repo_relative_path.clone(),
        line_start: finding.line_start,
        line_end: finding.line_end,
        kind: finding.kind,
        severity: Some(finding.severity),
        priority: Some(finding.priority),
        confidence: Some(finding.confidence),
        title: finding.title.clone(),
        explanation: finding.explanation.clone(),
        quoted_code: finding.quoted_code.clone(),
        suggestion: finding.suggestion.as_ref().map(|suggestion| suggestion.text.clone()).unwrap_or_default(),
        replacement: finding.suggestion.as_ref().and_then(|suggestion| suggestion.replacement.clone()),
        replaced: finding.suggestion.as_ref().and_then(|suggestion| suggestion.lines),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain(r#"{"verdict": "false", "reason": "the lock is held"}"#, Opinion::False, "the lock is held")]
    #[case::in_prose("I think: ```json\n{\"verdict\":\"REAL\"}\n``` so", Opinion::Real, "")]
    #[case::another_word(r#"{"verdict": "maybe"}"#, Opinion::Unsure, "")]
    #[case::none("false", Opinion::Unsure, "the answer held no verdict")]
    #[case::reversed("} {", Opinion::Unsure, "the answer held no verdict")]
    fn verdicts(#[case] said: &str, #[case] opinion: Opinion, #[case] reason: &str) {
        assert_eq!(parse_opinion(said), (opinion, reason.to_owned()));
    }
}
