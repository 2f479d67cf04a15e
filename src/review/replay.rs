//! What a journal says happened, without the plan: enough to write the result of a run whose worker is gone.

use std::collections::HashSet;

use super::{Critic, Outcome, Spent};
use crate::domain::{
    CancelReason, Coverage, ErrorClass, FileCoverage, Finding, FindingCounts, LeftOut, Opinion, Rejected, RunEvent,
    RunStatus, text,
};

/// The counts of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planned {
    /// Changed files in scope, those left out included.
    pub files: u32,
    pub hunks: u32,
}

/// A journal read back.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    pub(super) critic: Critic,
    pub(super) covered: Vec<FileCoverage>,
    /// Those of the plan and those that the reviewer could not read.
    pub(super) left_out: Vec<LeftOut>,
    /// What there was to review, once it was counted.
    pub planned: Option<Planned>,
    pub notes: Vec<String>,
    pub rejected: Vec<Rejected>,
    /// The last attempt that began, from 1; 0 when none did.
    pub attempt: u32,
    /// The process id of the worker of that attempt.
    pub worker: Option<u32>,
    pub cancel_asked: Option<CancelReason>,
    pub failure: Option<(ErrorClass, String)>,
    pub finished: Option<RunStatus>,
    pub spent: Spent,
}

impl Replayed {
    /// Reads events in the order of the journal.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Self {
        let mut state = Self::default();
        let mut done: HashSet<&str> = HashSet::new();
        for event in events {
            match event {
                RunEvent::Started { attempt, worker } => {
                    (state.attempt, state.worker) = (*attempt, Some(*worker));
                }
                RunEvent::Planned { files, hunks, left_out } => {
                    state.planned = Some(Planned { files: *files, hunks: *hunks });
                    for file in left_out {
                        if done.insert(&file.path) {
                            state.left_out.push(file.clone());
                        }
                    }
                }
                RunEvent::Finding { finding } => {
                    state.critic.admit(finding);
                }
                RunEvent::Covered { file } => {
                    if done.insert(&file.path) {
                        state.covered.push(file.clone());
                    }
                }
                RunEvent::LeftOut { file } => {
                    if done.insert(&file.path) {
                        state.left_out.push(file.clone());
                    }
                }
                RunEvent::Note { text } => state.note(text.clone()),
                RunEvent::CancelAsked { reason } => state.cancel_asked = Some(*reason),
                RunEvent::Failed { class, summary } => state.failure = Some((*class, summary.clone())),
                RunEvent::Finished { status } => state.finished = Some(*status),
                RunEvent::TurnAsked { window, .. } => {
                    state.spent.window_peak = state.spent.window_peak.max(window.tokens);
                }
                RunEvent::TurnAnswered { response, cost, taken_over, .. } => {
                    if !taken_over {
                        state.spent.add(&response.usage, *cost, &response.model);
                    }
                }
                RunEvent::Restated { finding, .. } => state.critic.restate(finding),
                RunEvent::Judged { finding_id, opinion: Opinion::False, .. } => state.critic.withdraw(finding_id),
                RunEvent::Rejected { rejected, .. } => {
                    if !state.rejected.contains(rejected) {
                        state.rejected.push((**rejected).clone());
                    }
                }
                RunEvent::Phase { .. }
                | RunEvent::Judged { .. }
                | RunEvent::TookOver { .. }
                | RunEvent::Waiting { .. }
                | RunEvent::ToolAnswered { .. }
                | RunEvent::Repeated { .. }
                | RunEvent::CodeSmellsAccumulated { .. }
                | RunEvent::SlidingWindowApplied { .. }
                | RunEvent::FinalCodeSmellsSummary { .. }
                | RunEvent::Paused
                | RunEvent::Resumed
                | RunEvent::Unknown => {}
            }
        }
        state
    }

    /// Keeps a note once: a unit that is reviewed again says the same again.
    pub(super) fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        self.critic.findings()
    }

    pub fn finding_count(&self) -> usize {
        self.critic.len()
    }

    pub fn covered(&self) -> &[FileCoverage] {
        &self.covered
    }

    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What was covered, as far as the journal tells: files that were not reached are counted in the totals only, and
    /// the lines are those of the covered hunks.
    pub fn coverage(&self) -> Coverage {
        let hunks_covered = count(self.covered.iter().map(|file| file.hunks.len()).sum());
        let files_covered = count(self.covered.len());
        let known = files_covered.saturating_add(count(self.left_out.len()));
        let planned = self.planned.unwrap_or_default();
        Coverage {
            files_total: planned.files.max(known),
            files_covered,
            hunks_total: planned.hunks.max(hunks_covered),
            hunks_covered,
            lines_covered: self
                .covered
                .iter()
                .flat_map(|file| &file.hunks)
                .fold(0, |sum: u32, lines| sum.saturating_add(lines.end.saturating_sub(lines.start) + 1)),
            files: self.covered.clone(),
            left_out: self.left_out.clone(),
        }
    }
}

impl Replayed {
    /// The end of a run whose worker is gone: everything that its journal holds. `reason` is put before the summary.
    pub fn outcome(&self, status: RunStatus, reason: &str) -> Outcome {
        let findings = self.findings();
        let counts = FindingCounts::of(&findings);
        let coverage = self.coverage();
        let kept = text::count(findings.len(), "finding");
        Outcome {
            status,
            summary: format!("{status}: {reason}, {kept} kept"),
            findings,
            counts,
            coverage,
            notes: self.notes.clone(),
            rejected: self.rejected.clone(),
            failure: None,
            cancel: self.cancel_asked,
            spent: self.spent.clone(),
        }
    }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
