//! Restores the state of a run from its journal, without the plan. The state is enough to write the result of a run
//! whose worker is gone.

use std::collections::{BTreeMap, HashSet};

use super::{FindingDeduplicator, ReviewOutcome, RunCost};
use crate::domain::{
    BudgetStop, CancelReason, CarriedFile, Coverage, ErrorClass, FileCoverage, Finding, FindingCounts, FindingId,
    InterruptedParse, OmittedFile, Opinion, RejectedReport, RunEvent, RunStatus, text,
};

/// The counts of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Number of changed files in scope, including left-out files.
    pub files: u32,
    pub hunks: u32,
}

/// The state of a run according to its journal.
#[derive(Debug, Clone, Default)]
pub struct JournalState {
    pub(super) critic: FindingDeduplicator,
    pub(super) covered: Vec<FileCoverage>,
    /// Hunks that are not sent.
    pub(super) carried: Vec<CarriedFile>,
    /// Files that the plan leaves out, and files that the reviewer could not read.
    pub(super) left_out: Vec<OmittedFile>,
    /// Number of changed hunks in files that the reviewer left out.
    hunks_left_out: u32,
    /// The counts of the plan, once it was made.
    pub planned: Option<PlanCounts>,
    pub notes: Vec<String>,
    pub rejected: Vec<RejectedReport>,
    /// The last attempt that began, 1-based; 0 if none did.
    pub attempt: u32,
    /// The process id of that attempt's worker.
    pub worker: Option<u32>,
    pub cancel_asked: Option<CancelReason>,
    /// The limit at which the run stopped.
    pub budget_stop: Option<BudgetStop>,
    pub failure: Option<(ErrorClass, String)>,
    pub finished: Option<RunStatus>,
    pub spent: RunCost,
    /// Number of turns or units whose findings are recorded.
    pub(super) rounds: u32,
    /// True if the journal has the summary at the end of the run.
    pub(super) is_summarized: bool,
}

impl JournalState {
    /// Reads events in the order of the journal.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Self {
        let mut state = Self::default();
        state.critic.begin_answer();
        let mut done: HashSet<&str> = HashSet::new();
        for event in events {
            match event {
                RunEvent::Started { attempt, worker } => {
                    (state.attempt, state.worker) = (*attempt, Some(*worker));
                }
                RunEvent::Planned { files, hunks, left_out } => {
                    state.planned = Some(PlanCounts { files: *files, hunks: *hunks });
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
                RunEvent::Carried { carried } => {
                    let is_here = |known: &CarriedFile| known.from == carried.from && known.file == carried.file;
                    if !state.carried.iter().any(is_here) {
                        state.carried.push((**carried).clone());
                    }
                }
                RunEvent::LeftOut { file, hunks } => {
                    if done.insert(&file.path) {
                        state.leave_out(file.clone(), *hunks);
                    }
                }
                RunEvent::OutOfMemory { parsing } => {
                    parsing.iter().filter_map(InterruptedParse::note).for_each(|note| state.add_note(note));
                }
                RunEvent::Note { text } => state.add_note(text.clone()),
                RunEvent::CancelAsked { reason } => state.cancel_asked = Some(*reason),
                RunEvent::BudgetReached { stop } => state.budget_stop = Some(*stop),
                RunEvent::Failed { class, summary } => state.failure = Some((*class, summary.clone())),
                RunEvent::Finished { status } => state.finished = Some(*status),
                RunEvent::TurnAsked { window, .. } => {
                    state.spent.add_request(window.tokens, window.limit);
                }
                RunEvent::TurnAnswered { response, cost, taken_over, .. } => {
                    if !taken_over {
                        state.spent.add(&response.usage, *cost, &response.model);
                    }
                }
                RunEvent::Restated { finding, .. } => {
                    state.mark_reported_again(&finding.finding_id);
                    state.critic.replace(finding);
                }
                RunEvent::Repeated { finding_id, .. } => state.mark_reported_again(finding_id),
                RunEvent::Judged { finding_id, opinion: Opinion::False, .. } => state.critic.withdraw(finding_id),
                RunEvent::Rejected { rejected, .. } => {
                    if !state.rejected.contains(rejected) {
                        state.rejected.push((**rejected).clone());
                    }
                }
                RunEvent::CodeSmellsAccumulated { turn, .. } => {
                    state.rounds = state.rounds.max(*turn);
                    state.critic.begin_answer();
                }
                RunEvent::FinalCodeSmellsSummary { .. } => state.is_summarized = true,
                RunEvent::Phase { .. }
                | RunEvent::Judged { .. }
                | RunEvent::Unanswered { .. }
                | RunEvent::TookOver { .. }
                | RunEvent::Surrounded { .. }
                | RunEvent::Steered { .. }
                | RunEvent::Waiting { .. }
                | RunEvent::ToolAnswered { .. }
                | RunEvent::SlidingWindowApplied { .. }
                | RunEvent::Paused
                | RunEvent::Resumed
                | RunEvent::Unknown => {}
            }
        }
        state
    }

    /// Turns a carried finding into a finding of this run, because this run reported it, too.
    fn mark_reported_again(&mut self, id: &FindingId) {
        self.carried.iter_mut().for_each(|carried| carried.findings.retain(|carried| carried != id));
    }

    /// Adds a file of the plan that the reviewer left out or could not read.
    pub(super) fn leave_out(&mut self, file: OmittedFile, hunks: u32) {
        if !file.is_gap() {
            self.hunks_left_out = self.hunks_left_out.saturating_add(hunks);
        }
        self.left_out.push(file);
    }

    /// Adds a note unless it is already there, because a unit that is reviewed again repeats its notes.
    pub(super) fn add_note(&mut self, text: String) {
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

    pub fn carried(&self) -> &[CarriedFile] {
        &self.carried
    }

    /// Returns the summary for the end of the journal; `None` if the journal has it already.
    pub fn final_summary(&self) -> Option<RunEvent> {
        (!self.is_summarized).then(|| RunEvent::FinalCodeSmellsSummary {
            total_issues: to_u32(self.critic.len()),
            loops: self.rounds,
            issues_by_type: self.critic.count_by_kind(),
        })
    }

    /// Returns the coverage as far as the journal shows it. Files that were not reached count only in the totals, and
    /// the lines are those of the covered hunks.
    pub fn coverage(&self) -> Coverage {
        let hunks_covered = to_u32(self.covered.iter().map(|file| file.hunks.len()).sum());
        let files_covered = to_u32(self.covered.len());
        let known = files_covered.saturating_add(to_u32(self.left_out.len()));
        let planned = self.planned.unwrap_or_default();
        let mut coverage = Coverage {
            files_total: planned.files.max(known),
            files_covered,
            hunks_total: planned.hunks.saturating_sub(self.hunks_left_out).max(hunks_covered),
            hunks_covered,
            hunks_left_out: self.hunks_left_out,
            lines_covered: FileCoverage::count_changed_lines(&self.covered),
            files: self.covered.clone(),
            left_out: self.left_out.clone(),
            ..Coverage::default()
        };
        coverage.set_carried(&self.carried);
        coverage
    }
}

impl JournalState {
    /// Returns the outcome of a run whose worker is gone, with everything from its journal. `reason` becomes a part of
    /// the summary.
    pub fn to_outcome(&self, status: RunStatus, reason: &str) -> ReviewOutcome {
        let findings = self.findings();
        let counts = FindingCounts::from_findings(&findings);
        let coverage = self.coverage();
        let kept = text::format_count(findings.len(), "finding");
        ReviewOutcome {
            status,
            summary: format!("{status}: {reason}, {kept} kept"),
            findings,
            unraised: Vec::new(),
            moved_ids: BTreeMap::new(),
            counts,
            coverage,
            notes: self.notes.clone(),
            rejected: self.rejected.clone(),
            failure: None,
            cancel: self.cancel_asked,
            budget_stop: self.budget_stop,
            spent: self.spent.clone(),
        }
    }
}

/// Converts a count for records, saturating.
pub(super) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
