//! What an earlier attempt of the run has recorded: answers that are paid for, requests that failed, and entries not to
//! be written twice.
//!
//! A restart drives a fresh engine with the recorded answers; everything between them is computed again, which the
//! snapshot's immutability makes the same.

use std::collections::{HashMap, VecDeque};

use super::ConversationEvent;
use crate::domain::{Finding, FindingId, RunEvent};

/// A journal, read for a restart.
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

    /// What came of the next request, if that is known.
    pub fn next_answer(&mut self) -> Option<ConversationEvent> {
        self.answers.pop_front()
    }

    /// Whether an entry has still to be written. Each recorded one stands for one.
    pub fn is_new(&mut self, event: &RunEvent) -> bool {
        match self.written.get_mut(&entry_key(event)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        }
    }

    /// The finding as it was first recorded.
    pub fn finding(&self, id: &FindingId) -> Option<&Finding> {
        self.findings.get(id)
    }
}

/// What makes an entry the same entry: not when it was written, nor the run or the time that is stamped into a finding.
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
