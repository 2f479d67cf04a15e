//! The records of an earlier attempt of the run: paid answers, failed requests, and journal entries that must not be
//! written twice.
//!
//! A restart feeds the recorded answers to a new engine. Everything between two answers is computed again; the result
//! is the same because the snapshot is immutable.

use std::collections::{HashMap, VecDeque};

use super::ConversationEvent;
use crate::domain::{Finding, FindingId, RunEvent};

/// A journal, prepared for a restart.
#[derive(Debug, Default)]
pub struct ResumeLog {
    answers: VecDeque<ConversationEvent>,
    written: HashMap<String, usize>,
    findings: HashMap<FindingId, Finding>,
}

impl ResumeLog {
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Self {
        let mut recorded = Self::default();
        for event in events {
            match event {
                RunEvent::TurnAnswered { response, cost, first_ms, took_ms, taken_over, .. } => {
                    recorded.answers.push_back(ConversationEvent::Answered {
                        response: response.clone(),
                        first_ms: *first_ms,
                        took_ms: *took_ms,
                        cost: (!taken_over).then_some(*cost),
                    });
                }
                RunEvent::Unanswered { class, summary, .. } => {
                    recorded.answers.push_back(ConversationEvent::Failed { class: *class, summary: summary.clone() });
                }
                RunEvent::Finding { finding } => {
                    recorded.findings.entry(finding.finding_id.clone()).or_insert_with(|| (**finding).clone());
                }
                _ => {}
            }
            *recorded.written.entry(entry_key(event)).or_default() += 1;
        }
        recorded
    }

    /// Returns the recorded outcome of the next request, if there is one.
    pub fn next_answer(&mut self) -> Option<ConversationEvent> {
        self.answers.pop_front()
    }

    /// Returns `true` if an entry must still be written. Each recorded entry matches once.
    pub fn is_new(&mut self, event: &RunEvent) -> bool {
        match self.written.get_mut(&entry_key(event)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        }
    }

    /// Returns the finding as it was first recorded.
    pub fn finding(&self, id: &FindingId) -> Option<&Finding> {
        self.findings.get(id)
    }
}

/// Returns the identity of an entry, without its time and without the run id and time inside a finding.
fn entry_key(event: &RunEvent) -> String {
    match event {
        RunEvent::TurnAsked { turn, .. } => format!("asked {turn}"),
        RunEvent::TurnAnswered { turn, .. } => format!("answered {turn}"),
        RunEvent::CodeSmellsAccumulated { turn, .. } => format!("accumulated {turn}"),
        RunEvent::SlidingWindowApplied { turn, .. } => format!("slid {turn}"),
        RunEvent::Finding { finding } => format!("finding {}", finding.finding_id),
        RunEvent::Restated { turn, finding } => format!("restated {turn} {} {}", finding.finding_id, finding.title),
        RunEvent::Covered { file } => format!("covered {}", file.path),
        RunEvent::Planned { .. } => "planned".to_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
