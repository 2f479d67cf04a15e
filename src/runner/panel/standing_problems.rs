//! Finds the problems that ids stand for before a panel makes its list.
//!
//! - An id that was reported before the panel stands for the problem of that report.
//! - One that is new with the panel stands for a problem if a person has decided about it, or has noted, asked, rated or
//!   snoozed it: for the one that the lists showed then. Of several reports under one id they show that of the newest run.

use std::collections::{HashMap, HashSet};

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
}

/// Returns true if somebody has decided about a finding.
pub(super) fn is_decided(said: &LatestDispositions, id: &FindingId) -> bool {
    said.get(id).is_some_and(|(_, last)| last.actor != Actor::Engine)
}

impl ShownReports<'_> {
    /// Returns the problem that an id stands for; `None` if it stands for none yet.
    pub fn problem_of(&self, id: &FindingId) -> Option<StandingProblem> {
        let is_new = !self.earlier.contains_key(id) && !is_known_before(self.view, self.own, id);
        if let Some(shown) = self.find_mark(id, is_new).and_then(|at| self.find_shown(id, at)) {
            return Some(StandingProblem { title: shown.title, explanation: shown.explanation, is_new });
        }
        if let Some(EarlierReport { title, explanation, .. }) = self.earlier.get(id) {
            return Some(StandingProblem { title: title.clone(), explanation: explanation.clone(), is_new: false });
        }
        let row = self.view.finding(self.view.finding_index(id.as_str())?);
        if self.own.contains(row.last_run) {
            return None;
        }
        // No member reports it.
        let Finding { title, explanation, .. } = self.services.store.finding_in(self.view, id).ok().flatten()?;
        Some(StandingProblem { title, explanation, is_new: false })
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
        let store = &self.services.store;
        let noted = store.notes(id).unwrap_or_default().into_iter().map(|note| note.at);
        let asked = store.questions(id).unwrap_or_default().into_iter().map(|question| question.request.at);
        let rated = store.rating_log().unwrap_or_default().into_iter().filter(|line| line.finding_id == *id);
        let snoozed = store.snooze_log().unwrap_or_default().into_iter().filter(|line| line.finding_id == *id);
        noted.chain(asked).chain(rated.map(|line| line.at)).chain(snoozed.map(|line| line.at)).max()
    }

    /// Returns the report that the lists showed under an id at a time.
    fn find_shown(&self, id: &FindingId, at: Time) -> Option<Finding> {
        let entries = self.services.store.read_journal(self.panel).unwrap_or_default();
        let mut listed = entries.into_iter().filter(|entry| entry.at <= at).filter_map(|entry| match entry.event {
            RunEvent::Finding { finding } if finding.finding_id == *id => Some(*finding),
            _ => None,
        });
        if let Some(listed) = listed.next_back() {
            return Some(listed);
        }
        let reports = self.members.iter().flat_map(|member| {
            let held_back = member.output.held_back.iter().map(|held| &held.finding);
            let is_own = member.record.links.member_of.as_ref() == Some(self.panel);
            member.output.findings.iter().chain(held_back).map(move |finding| (is_own, &member.record.run_id, finding))
        });
        let shown = reports.filter(|(.., finding)| finding.finding_id == *id && finding.reported_at <= at);
        shown.max_by_key(|(is_own, run, _)| (*is_own, *run)).map(|(.., finding)| finding.clone())
    }
}
