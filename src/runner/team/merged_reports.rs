//! Lets decisions of the team about reports that panels have merged into findings of their lists reach those findings.
//!
//! The record of a list names the reports ([`RunOutcome::merged_reports`](crate::domain::RunOutcome::merged_reports)). So each machine
//! that has the list and the decisions finds by itself what follows ([`follow_reports`](crate::policy::follow_reports)), in whatever
//! order they came. The lines repeat decisions, like those that a panel takes over at its end, and are not sent.
//!
//! The records of older versions name no reports. There, the machine of the panel has the lines by which reports gave way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::domain::{Disposition, FindingId, FindingStatus, MachineName, Panel, RunId, RunRecord, SharedDecision};
use crate::policy::{MergedDecision, MergedReports};
use crate::store::{Store, StoreError};

/// Lists of panels, of this machine and of others.
#[derive(Debug, Default)]
pub(super) struct PanelLists {
    /// Reports that lists which count have merged.
    pub(super) reports: MergedReports,
    /// Runs whose records name all of these reports.
    recorded: HashSet<RunId>,
    /// Runs of machines whose records do not count.
    void: HashMap<RunId, MachineName>,
}

/// Decisions about some findings and the reports of these, by the id that they are about.
#[derive(Clone, Copy)]
pub(super) struct StandingDecisions<'a> {
    pub(super) about: &'a HashMap<&'a FindingId, Vec<&'a SharedDecision>>,
    /// Those that stand.
    pub(super) merged: &'a BTreeMap<&'a FindingId, MergedDecision<'a>>,
}

impl PanelLists {
    /// Loads the lists of all panels of a store. Reads no file but the index of the runs if there are none.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub(super) fn load(store: &Store, forgotten: &[MachineName]) -> Result<Self, StoreError> {
        let mut lists = Self::default();
        let view = store.runs_view()?;
        let panels = (0..view.run_count()).filter(|run| Panel::name_of(view.run(*run).reviewer).is_some());
        let panels: BTreeSet<&str> = panels.map(|run| view.run_id(run)).collect();
        if panels.is_empty() {
            return Ok(lists);
        }
        for run in store.latest_records_of(&panels)?.into_values() {
            lists.add_run(&run, forgotten);
        }
        lists.add_merge_lines(&store.triage_log()?);
        Ok(lists)
    }

    /// Adds the list of a panel.
    pub(super) fn add_run(&mut self, run: &RunRecord, forgotten: &[MachineName]) {
        if let Some(origin) = run.team.as_ref().filter(|origin| origin.machine.is_forgotten(forgotten)) {
            self.void.insert(run.run_id.clone(), origin.machine.clone());
            return;
        }
        let Some(merged) = &run.outcome.merged_reports else { return };
        self.recorded.insert(run.run_id.clone());
        for report in merged {
            self.reports.add(&report.reported_as, &report.finding_id, &run.run_id, Some(run.created_at));
        }
    }

    /// Adds the reports of lists whose records do not name them, as the lines of a log tell. A dismissed report has given way to
    /// another decision.
    pub(super) fn add_merge_lines(&mut self, log: &[Disposition]) {
        for (report, line) in find_merge_lines(log) {
            if let (Some(listed), Some(run)) = (&line.merged_into, &line.run_id)
                && !self.recorded.contains(run)
                && !line.is_merged_dismissal()
            {
                self.reports.add(report, listed, run, None);
            }
        }
    }

    /// Returns true if the record of a panel's run names the reports that its list has merged, or the list does not count. Then its
    /// findings follow decisions about them by the rule for all machines.
    pub(super) fn knows_reports_of(&self, run: &RunId) -> bool {
        self.recorded.contains(run) || self.void.contains_key(run)
    }

    /// Returns true if it is known which reports the list behind the last line of a finding has merged, or the report with the decision
    /// of that line is. `reports` are those of the finding.
    fn knows_source(
        &self,
        last: &Disposition,
        reports: &BTreeSet<FindingId>,
        decisions: StandingDecisions<'_>,
    ) -> bool {
        let (Some(run), Some(origin)) = (&last.run_id, &last.team) else { return false };
        let has_source = || {
            let mut about = reports.iter().filter_map(|report| decisions.about.get(report)).flatten();
            about.any(|decision| decision.id == origin.id)
        };
        // An older record does not name a report that has kept its decision.
        self.knows_reports_of(run) || has_source()
    }

    /// Returns the line that gives a finding its status back when it follows no report any longer. `last` is its last line, and `seen`
    /// the last one that neither follows a report nor is void.
    pub(super) fn leave_report(
        &self,
        last: &Disposition,
        seen: Option<&Disposition>,
        decisions: StandingDecisions<'_>,
    ) -> Option<LeftReport> {
        let status = seen.map_or(FindingStatus::Open, |line| line.status);
        if !last.follows_report() || last.status == status {
            return None;
        }
        let mut reports = self.reports.add_reports(&BTreeSet::from([last.finding_id.clone()]));
        reports.remove(&last.finding_id);
        if !self.knows_source(last, &reports, decisions) {
            return None;
        }
        if let Some(machine) = last.run_id.as_ref().and_then(|run| self.void.get(run)) {
            return Some(LeftReport::ForgottenList(machine.clone()));
        }
        let standing = reports.iter().filter_map(|report| decisions.merged.get(report)).map(|outcome| outcome.standing);
        // Whoever has decided something else about another report has not opened the finding.
        let is_replacing = |decision: &&SharedDecision| {
            decision.status.is_undecided() && last.team.as_ref().is_some_and(|origin| decision.id > origin.id)
        };
        let replacing = standing.filter(is_replacing).max_by(|one, other| one.id.cmp(&other.id));
        Some(replacing.map_or(LeftReport::Unfounded, |decision| LeftReport::Replaced(Box::new(decision.clone()))))
    }
}

/// Reason why a finding follows no report any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeftReport {
    /// The list was made on this machine, whose records do not count.
    ForgottenList(MachineName),
    /// This decision, which opens a report, stands now.
    Replaced(Box<SharedDecision>),
    /// The decision does not hold for the list.
    Unfounded,
}

/// Returns the lines by which reports give way again to the findings of lists here, because `new` lines take back what was decided
/// about them. They are appended to the log after these.
pub(super) fn give_way_again(log: &[Disposition], new: &[Disposition]) -> Vec<Disposition> {
    let last: BTreeMap<&FindingId, &Disposition> = new.iter().map(|line| (&line.finding_id, line)).collect();
    if !last.values().any(|line| line.is_withdrawal()) {
        return Vec::new();
    }
    let merges = find_merge_lines(log);
    let withdrawn = last.into_iter().filter(|(_, line)| line.is_withdrawal());
    let give_way = |(report, line): (&FindingId, &Disposition)| {
        let merge = merges.get(report)?;
        Some(Disposition { previous: line.status, ..(*merge).clone() })
    };
    withdrawn.filter_map(give_way).collect()
}

/// Returns the last line by which each report has given way to the finding of a list. Who opens a report takes it out of the finding.
fn find_merge_lines(log: &[Disposition]) -> HashMap<&FindingId, &Disposition> {
    let mut merges: HashMap<&FindingId, &Disposition> = HashMap::new();
    for line in log {
        let is_opened = line.status == FindingStatus::Open && line.previous == FindingStatus::Obsolete;
        if line.merged_into.is_some() && line.run_id.is_some() {
            merges.insert(&line.finding_id, line);
        } else if is_opened && !line.is_withdrawal() {
            merges.remove(&line.finding_id);
        }
    }
    merges
}
