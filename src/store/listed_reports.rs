//! Follows reports of a panel's members to the findings of its list.
//!
//! Two kinds of lines of `triage.ndjson` say that a list has a report under another id:
//!
//! - the line by which the report gave way ([`Disposition::merged_into`]);
//! - for a report that has kept its own decision, the line by which the finding of the list took that decision over
//!   ([`Disposition::is_taken_over`]). The output of the panel says which of the reports with this decision it was.
//!
//! The log is indexed once, and the output of each panel is read once, so that following any number of ids takes time in
//! proportion to the log.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Store, StoreError, StoreView};
use crate::domain::{Disposition, FindingId, FindingStatus, Panel, RunId, RunOutput, TriageAction};

/// Last line of each finding in a triage log.
#[derive(Debug, Default)]
pub struct LastLines<'a>(HashMap<&'a FindingId, &'a Disposition>);

impl<'a> LastLines<'a> {
    /// Indexes a log, oldest line first.
    pub fn new(log: &'a [Disposition]) -> Self {
        Self(log.iter().map(|line| (&line.finding_id, line)).collect())
    }

    /// Returns the last line about a finding.
    pub fn get(&self, id: &FindingId) -> Option<&'a Disposition> {
        self.0.get(id).copied()
    }

    /// Returns the status of a finding: that of its last line, or open when there is none.
    pub fn status_of(&self, id: &FindingId) -> FindingStatus {
        self.get(id).map_or(FindingStatus::Open, |line| line.status)
    }

    /// Returns the finding that stands for the problem of an id: of a report that gave way to a finding with another id, that
    /// finding; else the id itself. A report that kept its decision has no such line: for it, see [`ListedReports::follow`].
    pub fn follow_merges<'b>(&'b self, id: &'b FindingId) -> &'b FindingId {
        /// Longest way that is followed; each step is a later panel. A damaged file could lead in a circle.
        const MAX_MERGES: usize = 64;
        let find_target = |id: &&'b FindingId| -> Option<&'b FindingId> {
            let last = self.get(id)?;
            last.merged_into.as_ref().filter(|_| last.status == FindingStatus::Obsolete)
        };
        std::iter::successors(Some(id), find_target).take(MAX_MERGES).last().unwrap_or(id)
    }
}

/// Lists of panels against a triage log.
pub struct ListedReports<'a> {
    store: &'a Store,
    last: LastLines<'a>,
    /// Findings that have taken decisions over, by the group of the decisions: of each panel, the oldest panel first.
    taken_over: HashMap<&'a str, Vec<TakenByPanel<'a>>>,
    lists: HashMap<RunId, PanelList>,
}

/// Findings of a panel's list that have taken decisions of a group over.
struct TakenByPanel<'a> {
    run: &'a RunId,
    findings: HashSet<&'a FindingId>,
}

/// Findings of a panel's list by the ids under which it has them or members have reported them. An id of several problems has none.
type PanelList = HashMap<FindingId, Option<FindingId>>;

impl<'a> ListedReports<'a> {
    /// Indexes a log, oldest line first.
    pub fn new(store: &'a Store, log: &'a [Disposition]) -> Self {
        let mut taken_over: HashMap<&str, Vec<TakenByPanel<'_>>> = HashMap::new();
        for line in log.iter().filter(|line| line.action == TriageAction::Set && line.is_taken_over()) {
            let panels = taken_over.entry(line.group.as_str()).or_default();
            let Some(run) = &line.run_id else { continue };
            match panels.iter_mut().find(|panel| panel.run == run) {
                Some(panel) => drop(panel.findings.insert(&line.finding_id)),
                None => panels.push(TakenByPanel { run, findings: HashSet::from([&line.finding_id]) }),
            }
        }
        Self { store, last: LastLines::new(log), taken_over, lists: HashMap::new() }
    }

    /// Returns the last line of each finding.
    pub fn last_lines(&self) -> &LastLines<'a> {
        &self.last
    }

    /// Returns the finding of a panel's list that has taken over the last decision about a report, and the run of the panel.
    /// The report has kept the decision, so no line says that it was merged. `None` if no list has taken it over.
    ///
    /// # Errors
    /// Returns an error when the output of a panel cannot be read.
    pub fn find_taken_over(&mut self, report: &FindingId) -> Result<Option<(FindingId, RunId)>, StoreError> {
        let last = self.last.get(report).filter(|last| last.is_decision() && last.action != TriageAction::Undo);
        last.map_or(Ok(None), |last| self.find_in_group(report, &last.group))
    }

    /// Returns the finding of a panel's list that has taken over the decision of this group about a report, and the run of the panel:
    /// the newest one that has.
    fn find_in_group(&mut self, report: &FindingId, group: &str) -> Result<Option<(FindingId, RunId)>, StoreError> {
        let Some(panels) = self.taken_over.get(group) else { return Ok(None) };
        for TakenByPanel { run, findings } in panels.iter().rev() {
            let list = match self.lists.entry((*run).clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(read_list(self.store, run)?),
            };
            if let Some(listed) = find_in_list(list, report).filter(|listed| findings.contains(listed)) {
                return Ok(Some((listed.clone(), (*run).clone())));
            }
        }
        Ok(None)
    }

    /// Returns the finding that stands for the problem of an id: of a report that a panel lists under another id, the finding of
    /// the list; else the id itself.
    ///
    /// # Errors
    /// Returns an error when the output of a panel cannot be read.
    pub fn follow(&mut self, id: &FindingId) -> Result<FindingId, StoreError> {
        let report = self.last.follow_merges(id).clone();
        Ok(match self.find_taken_over(&report)? {
            Some((listed, _)) => self.last.follow_merges(&listed).clone(),
            None => report,
        })
    }
}

impl Store {
    /// Returns the findings that stand for the problems of these ids, in their order, see [`ListedReports::follow`]. Reads
    /// `triage.ndjson` only if the view has a status for one of them that a merged report may have.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` or the output of a panel cannot be read.
    pub fn follow_merged(&self, view: &StoreView, ids: &[FindingId]) -> Result<Vec<FindingId>, StoreError> {
        if !ids.iter().any(|id| may_be_merged(view, id)) {
            return Ok(ids.to_vec());
        }
        let log = self.triage_log()?;
        let mut reports = ListedReports::new(self, &log);
        ids.iter().map(|id| reports.follow(id)).collect()
    }

    /// Returns those of some ids that stand for the same problem as a finding, itself among them.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` or the output of a panel cannot be read.
    pub(super) fn list_same_problem<'b>(
        &self,
        view: &StoreView,
        id: &'b FindingId,
        others: impl Iterator<Item = &'b FindingId>,
    ) -> Result<HashSet<FindingId>, StoreError> {
        let others: BTreeSet<&FindingId> = others.filter(|other| *other != id).collect();
        let ids: Vec<FindingId> = std::iter::once(id).chain(others).cloned().collect();
        if ids.len() == 1 || !has_panels(view) {
            return Ok(HashSet::from([id.clone()]));
        }
        let followed = self.follow_merged(view, &ids)?;
        let same = ids.into_iter().zip(&followed).filter(|(_, listed)| Some(*listed) == followed.first());
        Ok(same.map(|(id, _)| id).collect())
    }

    /// Returns the lines by which undone reports of a panel's members give way to the finding of its list that had taken their
    /// decision over. Both would be open, and the problem would be listed twice. The caller appends them after `undone`.
    ///
    /// # Errors
    /// Returns an error when the output of a panel cannot be read.
    pub fn merge_undone_reports(
        &self,
        log: &[Disposition],
        undone: &[Disposition],
    ) -> Result<Vec<Disposition>, StoreError> {
        let mut reports = ListedReports::new(self, log);
        let mut merged = Vec::new();
        for line in undone.iter().filter(|line| line.status.is_undecided()) {
            if let Some((listed, run)) = reports.find_in_group(&line.finding_id, &line.group)? {
                merged.push(Disposition::from_merge(&line.finding_id, line.status, &listed, &run, line.at));
            }
        }
        Ok(merged)
    }
}

/// Returns true if a view has runs of panels.
pub(super) fn has_panels(view: &StoreView) -> bool {
    (0..view.run_count()).any(|index| {
        let run = view.run(index);
        !run.member_of.is_empty() || Panel::name_of(run.reviewer).is_some()
    })
}

/// Returns true if a finding has a status that a merged report may have.
fn may_be_merged(view: &StoreView, id: &FindingId) -> bool {
    view.finding_index(id.as_str()).is_some_and(|index| !view.finding_status(index).is_undecided())
}

/// Reads the list of a panel; empty if its output is gone. The list of another machine takes no report of this one out of sight:
/// whoever may write a log could turn any report into one of another problem.
fn read_list(store: &Store, run: &RunId) -> Result<PanelList, StoreError> {
    let output = store.output(run)?.filter(|output| output.run.team.is_none());
    Ok(output.as_ref().map(index_list).unwrap_or_default())
}

fn index_list(output: &RunOutput) -> PanelList {
    let mut list = PanelList::new();
    let held_back = output.held_back.iter().map(|held| &held.finding);
    for finding in output.findings.iter().chain(held_back) {
        let mut ids: Vec<&FindingId> = finding.raised_voices().map(|voice| &voice.finding_id).collect();
        ids.push(&finding.finding_id);
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let entry = list.entry(id.clone()).and_modify(|listed| *listed = None);
            entry.or_insert_with(|| Some(finding.finding_id.clone()));
        }
    }
    list
}

/// Returns the finding that a list has for the problem of a report; `None` if it has the problem under the id of the report, or
/// several problems.
fn find_in_list<'a>(list: &'a PanelList, report: &FindingId) -> Option<&'a FindingId> {
    list.get(report)?.as_ref().filter(|listed| *listed != report)
}
