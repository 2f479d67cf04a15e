//! Finds the problems that ids stand for before a panel makes its list.
//!
//! - An id that was reported before the panel stands for the problem of that report.
//! - One that is new with the panel stands for a problem if a person has decided about it, or has noted, asked, rated or
//!   snoozed it: for the one that the lists showed then. Of several reports under one id they show that of the newest run.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{EarlierReport, EndedMember, is_known_before};
use crate::domain::{Actor, Finding, FindingId, RunEvent, RunId, Time};
use crate::review::StandingProblem;
use crate::runner::Services;
use crate::store::{LatestDispositions, StoreView};

/// Reports of a panel as people saw them while its members worked.
pub(super) struct ShownReports<'a> {
    pub services: &'a Services,
    pub view: &'a StoreView,
    /// Ids of the runs of the panel.
    pub own: &'a HashSet<&'a str>,
    pub members: &'a [EndedMember],
    /// Run of the panel. An earlier attempt may have shown its list already.
    pub panel: &'a RunId,
    pub said: &'a LatestDispositions,
    /// Last reports before the panel.
    pub earlier: &'a HashMap<FindingId, EarlierReport>,
    /// Reports that were shown and marks that were written, read at the first question about them.
    pub index: ShownIndex<'a>,
}

/// Reports and marks of the people by the ids of the findings, each read once for all of them.
#[derive(Default)]
pub(super) struct ShownIndex<'a> {
    /// Last note, question, rating or snooze.
    marks: OnceCell<HashMap<FindingId, Time>>,
    /// Findings of the list that an earlier attempt has shown, oldest first.
    listed: OnceCell<HashMap<FindingId, Vec<(Time, Finding)>>>,
    reports: OnceCell<HashMap<&'a FindingId, Vec<MemberReport<'a>>>>,
    /// Findings that no run reported later, by the run that reported them last.
    last_reports: RefCell<HashMap<String, HashMap<FindingId, StandingProblem>>>,
}

/// Report of a member.
struct MemberReport<'a> {
    /// True if the run of the member belongs to this panel.
    is_own: bool,
    run: &'a RunId,
    finding: &'a Finding,
}

/// Returns true if somebody has decided about a finding.
pub(super) fn is_decided(said: &LatestDispositions, id: &FindingId) -> bool {
    said.get(id).is_some_and(|(_, last)| last.actor != Actor::Engine)
}

impl<'a> ShownReports<'a> {
    /// Returns the problem that an id stands for; `None` if it stands for none yet.
    pub fn problem_of(&self, id: &FindingId) -> Option<StandingProblem> {
        let is_new = !self.earlier.contains_key(id) && !is_known_before(self.view, self.own, id);
        if let Some(shown) = self.find_mark(id, is_new).and_then(|at| self.find_shown(id, at)) {
            return Some(StandingProblem { title: shown.title, explanation: shown.explanation, is_new });
        }
        if let Some(EarlierReport { title, explanation, .. }) = self.earlier.get(id) {
            return Some(StandingProblem { title: title.clone(), explanation: explanation.clone(), is_new: false });
        }
        let last_run = self.view.finding(self.view.finding_index(id.as_str())?).last_run;
        if self.own.contains(last_run) {
            return None;
        }
        // No member reports it.
        let mut read = self.index.last_reports.borrow_mut();
        read.entry(last_run.to_owned()).or_insert_with(|| self.read_last_reports(last_run)).get(id).cloned()
    }

    /// Reads the findings that a run reported last.
    fn read_last_reports(&self, run: &str) -> HashMap<FindingId, StandingProblem> {
        let Ok(run_id) = run.parse::<RunId>() else { return HashMap::new() };
        let rows = (0..self.view.finding_count()).map(|index| self.view.finding(index));
        let ids: BTreeSet<String> = rows.filter(|row| row.last_run == run).map(|row| row.id.to_owned()).collect();
        let mut problems: HashMap<FindingId, StandingProblem> = HashMap::new();
        for finding in self.services.store.findings_in_run(&run_id, &ids).unwrap_or_default() {
            let Finding { finding_id, title, explanation, .. } = finding;
            problems.entry(finding_id).or_insert(StandingProblem { title, explanation, is_new: false });
        }
        problems
    }

    /// Returns the time at which a person last did something about a finding. Only for one that `is_new`, other things than
    /// decisions are looked for.
    fn find_mark(&self, id: &FindingId, is_new: bool) -> Option<Time> {
        if is_decided(self.said, id) {
            return self.said.get(id).map(|(_, last)| last.at);
        }
        if !is_new {
            return None;
        }
        self.index.marks.get_or_init(|| self.read_marks()).get(id).copied()
    }

    /// Reads when people last noted, asked, rated or snoozed something about each finding.
    fn read_marks(&self) -> HashMap<FindingId, Time> {
        let store = &self.services.store;
        let noted = store.notes_where(|_| true).unwrap_or_default().into_iter().map(|note| (note.finding_id, note.at));
        let asked = store.question_log().unwrap_or_default().into_iter().map(|line| line.request);
        let asked = asked.map(|request| (request.finding_id, request.at));
        let rated = store.rating_log().unwrap_or_default().into_iter().map(|line| (line.finding_id, line.at));
        let snoozed = store.snooze_log().unwrap_or_default().into_iter().map(|line| (line.finding_id, line.at));
        let mut marks: HashMap<FindingId, Time> = HashMap::new();
        for (finding, at) in noted.chain(asked).chain(rated).chain(snoozed) {
            let last = marks.entry(finding).or_insert(at);
            *last = at.max(*last);
        }
        marks
    }

    /// Reads the findings that an earlier attempt of the panel has listed.
    fn read_listed(&self) -> HashMap<FindingId, Vec<(Time, Finding)>> {
        let mut listed: HashMap<FindingId, Vec<(Time, Finding)>> = HashMap::new();
        for entry in self.services.store.read_journal(self.panel).unwrap_or_default() {
            if let RunEvent::Finding { finding } = entry.event {
                listed.entry(finding.finding_id.clone()).or_default().push((entry.at, *finding));
            }
        }
        listed
    }

    /// Indexes the reports of all members.
    fn index_reports(&self) -> HashMap<&'a FindingId, Vec<MemberReport<'a>>> {
        let mut reports: HashMap<&FindingId, Vec<MemberReport<'_>>> = HashMap::new();
        for member in self.members {
            let is_own = member.record.links.member_of.as_ref() == Some(self.panel);
            let held_back = member.output.held_back.iter().map(|held| &held.finding);
            for finding in member.output.findings.iter().chain(held_back) {
                let report = MemberReport { is_own, run: &member.record.run_id, finding };
                reports.entry(&finding.finding_id).or_default().push(report);
            }
        }
        reports
    }

    /// Returns the report that the lists showed under an id at a time.
    fn find_shown(&self, id: &FindingId, at: Time) -> Option<Finding> {
        let listed = self.index.listed.get_or_init(|| self.read_listed()).get(id);
        if let Some((_, listed)) = listed.and_then(|listed| listed.iter().rfind(|(time, _)| *time <= at)) {
            return Some(listed.clone());
        }
        let reports = self.index.reports.get_or_init(|| self.index_reports()).get(id)?;
        let shown = reports.iter().filter(|report| report.finding.reported_at <= at);
        shown.max_by_key(|report| (report.is_own, report.run)).map(|report| report.finding.clone())
    }
}
