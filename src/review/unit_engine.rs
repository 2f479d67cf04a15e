//! The engine of a run by a reviewer that works in units: decides the next unit, records results, and ends the run.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::journal_state::{JournalState, to_u32};
use super::plan::{PlannedFile, ReviewPlan, ReviewUnit};
use super::{DedupVerdict, FindingDeduplicator, RunCost, summarize_run};
use crate::domain::{
    BudgetStop, CancelReason, Coverage, ErrorClass, Finding, FindingCounts, FindingId, OmissionReason, OmittedFile,
    RejectedReport, ReviewUnitKind, RunEvent, RunStatus, UnitReport,
};

/// An event for the engine.
#[derive(Debug, Clone)]
pub enum UnitEvent {
    /// The first event of a run: the plan, and the records of an earlier attempt.
    Started(ReviewPlan, Box<JournalState>),
    /// The reviewer's report about the current unit. Its findings have run ids and times.
    Reported(UnitReport),
    /// The reviewer failed on the current unit.
    Failed { class: ErrorClass, summary: String },
    /// A cancellation was requested.
    CancelAsked(CancelReason),
}

/// An action for the caller. Effects must be executed in order.
#[derive(Debug, Clone, PartialEq)]
pub enum UnitEffect {
    Append(RunEvent),
    CallReviewer(ReviewUnit),
    Finish(Box<ReviewOutcome>),
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewOutcome {
    pub status: RunStatus,
    pub findings: Vec<Finding>,
    /// Problems that the run has seen and does not raise. An earlier finding about one of them is not fixed.
    pub unraised: Vec<Finding>,
    /// Ids that stand for problems which the list of a panel has under other ids, see [`super::OneList::moved_ids`].
    pub moved_ids: BTreeMap<FindingId, Option<FindingId>>,
    pub counts: FindingCounts,
    /// The coverage, with its lists of files.
    pub coverage: Coverage,
    /// One sentence.
    pub summary: String,
    pub notes: Vec<String>,
    /// Reports that failed the validation against the code.
    pub rejected: Vec<RejectedReport>,
    pub failure: Option<(ErrorClass, String)>,
    pub cancel: Option<CancelReason>,
    /// The limit at which the run stopped.
    pub budget_stop: Option<BudgetStop>,
    /// The cost of the run; zero for the built-in reviewer.
    pub spent: RunCost,
}

/// The engine of one run.
#[derive(Debug, Default)]
pub struct UnitEngine {
    plan: ReviewPlan,
    /// Number of hunks in the plan, including carried hunks.
    hunks: u32,
    /// Number of hunks of each planned file, including carried hunks.
    hunk_counts: Vec<(String, usize)>,
    journal: JournalState,
    /// Paths of the plan that are covered, carried over or left out.
    done: HashSet<String>,
    /// The remaining units, the next one last.
    units: Vec<ReviewUnit>,
    /// The unit that the reviewer is working on.
    current_unit: Option<ReviewUnit>,
    stage: UnitStage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum UnitStage {
    #[default]
    NotStarted,
    Reviewing,
    Over,
}

impl UnitEngine {
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles an event and returns the effects. After [`UnitEffect::Finish`] it returns no effects.
    pub fn handle(&mut self, event: UnitEvent) -> Vec<UnitEffect> {
        match (self.stage, event) {
            (UnitStage::NotStarted, UnitEvent::Started(plan, journal)) => self.start(plan, *journal),
            (UnitStage::Reviewing, UnitEvent::Reported(report)) => self.handle_report(report),
            (UnitStage::Reviewing, UnitEvent::Failed { class, summary }) => self.handle_failure(class, summary),
            (UnitStage::Reviewing, UnitEvent::CancelAsked(reason)) => self.cancel(reason),
            _ => Vec::new(),
        }
    }

    fn start(&mut self, plan: ReviewPlan, journal: JournalState) -> Vec<UnitEffect> {
        self.stage = UnitStage::Reviewing;
        self.plan = plan;
        self.journal = journal;
        self.hunk_counts = self.plan.files.iter().map(|file| (file.path.clone(), file.hunks.len())).collect();
        self.hunks = to_u32(self.hunk_counts.iter().map(|(_, hunks)| hunks).sum());
        let covered = self.journal.covered.iter().map(|file| &file.path);
        self.done = covered.chain(self.journal.left_out.iter().map(|file| &file.path)).cloned().collect();
        self.exclude_carried();
        self.units = self.plan.units(|file| self.done.contains(&self.plan.files[file].path));
        self.units.reverse();
        let mut effects = Vec::new();
        if self.journal.planned.is_none() {
            let event = RunEvent::Planned {
                files: to_u32(self.plan.files.len() + self.plan.left_out.len()),
                hunks: self.hunks,
                left_out: self.plan.left_out.clone(),
            };
            effects.push(UnitEffect::Append(event));
        }
        match self.journal.cancel_asked {
            Some(reason) => effects.extend(self.finish(reason.status(), Some(reason))),
            None => effects.extend(self.next_effects()),
        }
        effects
    }

    /// Excludes carried hunks from the review. Of a partly carried file, the rest is reviewed.
    fn exclude_carried(&mut self) {
        self.plan.carried.clone_from(&self.journal.carried);
        let mut open: HashMap<String, _> =
            self.plan.open_files().into_iter().map(|file| (file.path.clone(), file)).collect();
        for file in &mut self.plan.files {
            match open.remove(&file.path) {
                Some(rest) => *file = rest,
                None => drop(self.done.insert(file.path.clone())),
            }
        }
    }

    fn handle_report(&mut self, report: UnitReport) -> Vec<UnitEffect> {
        let Some(unit) = self.current_unit.take() else { return Vec::new() };
        let mut effects = Vec::new();
        let (findings, rejected) = self.check_report(&unit, &report);
        let mut by_path: HashMap<&str, Vec<&Finding>> = HashMap::new();
        for finding in &findings {
            by_path.entry(&finding.repo_relative_path).or_default().push(finding);
        }
        let left_out: HashMap<&str, &OmittedFile> =
            report.left_out.iter().map(|file| (file.path.as_str(), file)).collect();
        let read: HashSet<&str> = report.read.iter().map(|file| file.path.as_str()).collect();
        let (mut silent, mut new_issues) = (Vec::new(), 0);
        for &index in &unit.files {
            let file = &self.plan.files[index];
            for &finding in by_path.get(file.path.as_str()).into_iter().flatten() {
                if self.journal.critic.admit(finding) == DedupVerdict::Accepted {
                    new_issues += 1;
                    effects.push(UnitEffect::Append(RunEvent::Finding { finding: Box::new(finding.clone()) }));
                }
            }
            if unit.kind == ReviewUnitKind::EachFile && self.done.insert(file.path.clone()) {
                let path = file.path.as_str();
                let left_out = match left_out.get(path) {
                    None if read.contains(path) => None,
                    None => {
                        silent.push(format!("{path}: the reviewer did not say that it read this file"));
                        Some(OmittedFile::new(path, OmissionReason::Unreadable))
                    }
                    Some(&left_out) => Some(left_out.clone()),
                };
                effects.push(UnitEffect::Append(match left_out {
                    None => {
                        self.journal.covered.push(file.coverage());
                        RunEvent::Covered { file: file.coverage() }
                    }
                    Some(left_out) => {
                        let hunks = to_u32(file.hunks.len());
                        self.journal.leave_out(left_out.clone(), hunks);
                        RunEvent::LeftOut { file: left_out, hunks }
                    }
                }));
            }
        }
        for text in report.notes.into_iter().chain(silent).chain(rejected) {
            self.journal.add_note(text.clone());
            effects.push(UnitEffect::Append(RunEvent::Note { text }));
        }
        self.journal.rounds += 1;
        effects.push(UnitEffect::Append(RunEvent::CodeSmellsAccumulated {
            new_issues,
            total_issues: to_u32(self.journal.critic.len()),
            turn: self.journal.rounds,
            issues_by_type: self.journal.critic.count_by_kind(),
        }));
        self.journal.critic.begin_answer();
        effects.extend(self.next_effects());
        effects
    }

    /// Checks the reports of a unit. Returns the valid findings without duplicates, and a line for each rejected
    /// report.
    fn check_report(&self, unit: &ReviewUnit, report: &UnitReport) -> (Vec<Finding>, Vec<String>) {
        let in_scope: HashSet<&str> = unit.files.iter().map(|&index| self.plan.files[index].path.as_str()).collect();
        let lines: HashMap<&str, u32> = report.read.iter().map(|file| (file.path.as_str(), file.lines)).collect();
        let (mut findings, mut rejected) = (Vec::new(), Vec::new());
        for finding in &report.findings {
            let path = finding.repo_relative_path.as_str();
            let problem = match lines.get(path) {
                _ if !in_scope.contains(path) => Some("the file is not in scope".to_owned()),
                _ if finding.line_start == 0 || finding.line_end < finding.line_start => {
                    Some(format!("lines {} to {} are no lines", finding.line_start, finding.line_end))
                }
                Some(&lines) if finding.line_end > lines => {
                    Some(format!("line {} is beyond its end at line {lines}", finding.line_end))
                }
                _ => None,
            };
            match problem {
                None => findings.push(finding.clone()),
                Some(problem) => rejected.push(format!("set aside {:?} in {path}: {problem}", finding.title)),
            }
        }
        (FindingDeduplicator::keep_strongest(findings), rejected)
    }

    fn handle_failure(&mut self, class: ErrorClass, text: String) -> Vec<UnitEffect> {
        let Some(unit) = self.current_unit.take() else { return Vec::new() };
        self.journal.failure = Some((class, text.clone()));
        let mut effects = vec![UnitEffect::Append(RunEvent::Failed { class, summary: text })];
        if unit.kind == ReviewUnitKind::EachFile {
            for &index in &unit.files {
                let PlannedFile { path, hunks, .. } = &self.plan.files[index];
                if self.done.insert(path.clone()) {
                    let file = OmittedFile::new(path, OmissionReason::Unreadable);
                    self.journal.leave_out(file.clone(), to_u32(hunks.len()));
                    effects.push(UnitEffect::Append(RunEvent::LeftOut { file, hunks: to_u32(hunks.len()) }));
                }
            }
        }
        effects.extend(self.next_effects());
        effects
    }

    fn cancel(&mut self, reason: CancelReason) -> Vec<UnitEffect> {
        let mut effects = vec![UnitEffect::Append(RunEvent::CancelAsked { reason })];
        effects.extend(self.finish(reason.status(), Some(reason)));
        effects
    }

    /// Returns the next unit, or the end. The run fails if the reviewer failed and nothing at all was covered.
    fn next_effects(&mut self) -> Vec<UnitEffect> {
        if let Some(unit) = self.units.pop() {
            self.current_unit = Some(unit.clone());
            return vec![UnitEffect::CallReviewer(unit)];
        }
        let journal = &self.journal;
        let none = journal.covered.is_empty() && journal.carried.is_empty() && journal.critic.is_empty();
        let nothing = !self.plan.files.is_empty() && none;
        let status = match &self.journal.failure {
            Some(_) if nothing => RunStatus::Failed,
            _ => RunStatus::Completed,
        };
        self.finish(status, None)
    }

    fn finish(&mut self, status: RunStatus, cancel: Option<CancelReason>) -> Vec<UnitEffect> {
        self.stage = UnitStage::Over;
        let mut effects: Vec<UnitEffect> = self.journal.final_summary().into_iter().map(UnitEffect::Append).collect();
        let findings = self.journal.findings();
        let counts = FindingCounts::from_findings(&findings);
        let coverage = self.coverage(cancel);
        let failure = self.journal.failure.clone();
        let mut notes = self.journal.notes.clone();
        if let (Some((_, text)), RunStatus::Completed) = (&failure, status) {
            notes.push(format!("a part of the review failed: {text}"));
        }
        effects.push(UnitEffect::Finish(Box::new(ReviewOutcome {
            status,
            summary: summarize_run(status, &counts, &coverage),
            findings,
            unraised: Vec::new(),
            moved_ids: BTreeMap::new(),
            counts,
            coverage,
            notes,
            rejected: self.journal.rejected.clone(),
            failure: failure.filter(|_| status == RunStatus::Failed),
            cancel,
            budget_stop: None,
            spent: RunCost::default(),
        })));
        effects
    }

    fn coverage(&self, cancel: Option<CancelReason>) -> Coverage {
        let mut coverage = self.journal.coverage();
        let covered: HashSet<&str> = self.journal.covered.iter().map(|file| file.path.as_str()).collect();
        coverage.files_total = to_u32(self.plan.files.len() + self.plan.left_out.len());
        // Counted from the plan, because journals of older versions do not count left-out hunks.
        let out: HashSet<&str> =
            coverage.left_out.iter().filter(|file| !file.is_gap()).map(|file| file.path.as_str()).collect();
        let hunks = |left_out: bool| {
            let files = self.plan.files.iter().filter(|file| out.contains(file.path.as_str()) == left_out);
            to_u32(files.map(|file| file.hunks.len()).sum())
        };
        (coverage.hunks_total, coverage.hunks_left_out) = (hunks(false), hunks(true));
        let reviewed = self.plan.files.iter().filter(|file| covered.contains(file.path.as_str()));
        coverage.lines_covered = reviewed.fold(0, |sum, file| sum.saturating_add(file.added_lines));
        let listed: HashSet<String> = coverage.left_out.iter().map(|file| file.path.clone()).collect();
        coverage.left_out.extend(self.plan.left_out.iter().filter(|file| !listed.contains(&file.path)).cloned());
        coverage.left_out.extend(
            self.plan
                .files
                .iter()
                .filter(|file| !self.done.contains(&file.path))
                .map(|file| OmittedFile::new(&file.path, OmissionReason::NotReached)),
        );
        coverage.set_carried(&self.journal.carried);
        let early_end = match cancel {
            Some(CancelReason::BudgetExhausted) => OmissionReason::Budget,
            _ => OmissionReason::NotReached,
        };
        coverage.set_gaps(self.hunk_counts.iter().map(|(path, hunks)| (path.as_str(), *hunks)), early_end);
        coverage
    }
}

#[cfg(test)]
pub(super) mod tests;
