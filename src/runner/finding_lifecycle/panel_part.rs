//! Settles the findings of a panel: what its members leave to it, and who its silence stands for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::earlier_findings::EarlierFinding;
use super::report_reader::ReportReader;
use super::{FindingSettlement, PanelPart, is_since_request};
use crate::domain::{
    Actor, Coverage, Disposition, Finding, FindingId, Kind, Panel, RunId, RunRecord, RunStatus, Source, Time,
    TriageAction, Voice,
};
use crate::policy::{self, DETERMINISTIC_REVIEWER, FindingState, LoggedDecision, SilentRun};
use crate::review::{FindingIdentities, ProblemText, ReviewOutcome};
use crate::runner::merged_reports::take_over_remarks;
use crate::runner::{RunnerError, Services};
use crate::store::{LatestDispositions, StoreView};

impl PanelPart {
    /// Finds out the part of a run.
    pub(super) fn find(services: &Services, run: &RunRecord, view: &StoreView) -> Result<Self, RunnerError> {
        if let Some((_, panel)) = services.find_panel_of(run) {
            let others = panel.members.iter().filter(|member| member.run_id != run.run_id);
            let siblings = others.filter_map(|member| view.run_index(member.run_id.as_str()));
            let working = services.list_working_siblings(run);
            let working = working.iter().map(String::as_str).chain([run.run_id.as_str()]);
            return Ok(Self {
                is_member: true,
                siblings: siblings.collect(),
                working: working.filter_map(|run| view.run_index(run)).collect(),
                silent: Vec::new(),
            });
        }
        let Some(panel) = &run.links.panel else { return Ok(Self::default()) };
        let mut silent = Vec::new();
        for member in &panel.members {
            let Some(record) = services.store.run(&member.run_id)? else { continue };
            let is_whole = record.status == RunStatus::Completed && !record.is_incomplete();
            if is_whole && !services.may_hold_back_elsewhere(&record) {
                silent.push((member.reviewer.clone(), record.reviewed_by.focus));
            }
        }
        Ok(Self { silent, ..Self::default() })
    }
}

impl EarlierFinding {
    /// Returns true if the silence of this run, where it covered changed code, confirms that the finding is fixed.
    pub(super) fn is_fixed_by(&self, silence: &SilentRun<'_>) -> bool {
        self.reviewers.iter().any(|reviewer| policy::confirms_fix(silence, reviewer, self.kind))
    }
}

impl FindingSettlement<'_> {
    /// Returns true if the run is that of a member, and no run before its panel has reported the finding. Another member may
    /// have reported another problem under its id, about which somebody has decided: the panel finds out.
    pub(super) fn is_new_with_panel(&self, id: &FindingId) -> bool {
        let first = self.view.finding_index(id.as_str()).and_then(|index| self.view.first_reporting_run(index));
        self.panel.is_member && first.is_none_or(|first| self.panel.working.contains(&first))
    }

    /// Gives reports of a member another id if somebody has decided about their id while the members worked, and the lists showed
    /// another problem under it then: the decision is about that one. `reported` are the ids of the reports, and changed with
    /// them: the report never gets its old id back.
    pub(super) fn leave_decided_ids(
        &self,
        findings: &mut [Finding],
        reported: &mut [FindingId],
        said: &LatestDispositions,
    ) {
        let decided: Vec<(usize, Time)> = findings
            .iter()
            .enumerate()
            .filter_map(|(at, finding)| Some((at, self.find_new_decision(finding, said)?)))
            .collect();
        if decided.is_empty() {
            return;
        }
        let mut reports = self.read_variants(decided.iter().map(|(at, _)| &findings[*at].finding_id));
        let runs = self.panel.working.iter().map(|index| self.view.run_id(*index));
        let mut runs: Vec<RunId> = runs.filter_map(|run| run.parse().ok()).collect();
        runs.sort_unstable();
        let mut places: HashMap<FindingId, BTreeSet<usize>> = HashMap::new();
        for (at, finding) in findings.iter().enumerate() {
            places.entry(finding.finding_id.clone()).or_default().insert(at);
        }
        for (at, decided_at) in decided {
            let id = findings[at].finding_id.clone();
            // Of the members that had reported it, the lists showed the report of the newest run.
            let shown = runs.iter().rev().find_map(|run| {
                let report = reports.find_in_run(run, &id).ok().flatten();
                report.filter(|report| report.reported_at <= decided_at).map(to_problem_text)
            });
            let Some(shown) = shown else { continue };
            let mut finding = findings[at].clone();
            let text_of = |other: &FindingId| {
                if *other == id {
                    return Some(shown.clone());
                }
                match places.get(other).and_then(BTreeSet::first) {
                    Some(own) => Some(to_problem_text(&findings[*own])),
                    None => reports.find_last(&self.view, other).ok().flatten().map(to_problem_text),
                }
            };
            FindingIdentities::default().assign(&mut finding, text_of, |_| false);
            if finding.finding_id != id {
                if let Some(places) = places.get_mut(&id) {
                    places.remove(&at);
                }
                places.entry(finding.finding_id.clone()).or_default().insert(at);
                reported[at].clone_from(&finding.finding_id);
                findings[at] = finding;
            }
        }
    }

    /// Returns the time of the last decision about the id of a member's report if the id is new with the panel; `None` if nobody
    /// has decided.
    fn find_new_decision(&self, finding: &Finding, said: &LatestDispositions) -> Option<Time> {
        let id = &finding.finding_id;
        let (_, last) = said.get(id).filter(|(_, last)| last.actor != Actor::Engine)?;
        self.is_new_with_panel(id).then_some(last.at)
    }

    /// Returns a reader of the reports under these ids, and under their variants that are on record.
    fn read_variants<'i>(&self, ids: impl Iterator<Item = &'i FindingId>) -> ReportReader<'_> {
        let mut wanted = BTreeSet::new();
        for id in ids {
            let variants = (1..FindingId::MAX_PLACES).map(|number| id.variant(number).to_string());
            wanted.extend(variants.filter(|variant| self.view.finding_index(variant).is_some()));
            wanted.insert(id.to_string());
        }
        ReportReader::new(&self.services.store, wanted)
    }

    /// Returns the reviewer whose silence about a finding the run's is: for a panel, the member that reported it. The
    /// built-in reviewer goes first, because it can be asked again.
    pub(super) fn silent_reviewer(&self, known: &EarlierFinding) -> &str {
        let has_looked = |focus: &[Kind]| focus.is_empty() || focus.contains(&known.kind);
        let silent = self.panel.silent.iter().filter(|(_, focus)| has_looked(focus)).map(|(name, _)| name.as_str());
        let reporters: Vec<&str> = silent.filter(|name| known.reviewers.iter().any(|one| one == name)).collect();
        let builtin = reporters.iter().find(|name| **name == DETERMINISTIC_REVIEWER);
        builtin.or(reporters.first()).copied().unwrap_or(self.run.reviewed_by.name.as_str())
    }

    /// Returns the reviewers that reported a finding: that of its last run, or those of its voices. revdeck's own search for
    /// secrets looks in each run of a model, so that the silence of any model includes that of the search. The built-in
    /// reviewer takes its place there, and says nothing about a key in a comment; an imported report knows nothing of it.
    ///
    /// `reports` reads what panels have listed, with the words of their members.
    pub(super) fn list_reporters(&self, reviewer: &str, index: usize, reports: &mut ReportReader<'_>) -> Vec<String> {
        if Panel::name_of(reviewer).is_none() {
            return vec![reviewer.to_owned()];
        }
        let reported = match self.view.finding(index).id.parse::<FindingId>() {
            Ok(id) => reports.find_last(&self.view, &id).ok().flatten(),
            Err(_) => None,
        };
        // Who was silent about the same lines before its report was held back proves nothing by its next silence.
        let voices = reported.into_iter().flat_map(Finding::raised_voices);
        let mut names: Vec<String> = voices.map(|voice| voice.reviewer.clone()).collect();
        if self.run.source != Source::Import && names.iter().any(|name| name == Voice::SECRET_SCAN) {
            let silent = self.panel.silent.iter().map(|(name, _)| name);
            let is_model = |name: &&String| *name != DETERMINISTIC_REVIEWER && Panel::name_of(name).is_none();
            names.extend(silent.chain([&self.run.reviewed_by.name]).filter(is_model).cloned());
        }
        names.dedup();
        names
    }

    /// Returns the first of these whole reviews that has located the known findings of this machine. A member leaves that to its
    /// panel, and a review of another machine did not know them.
    pub(super) fn find_locating_run(&self, runs: &[usize]) -> Option<usize> {
        let ids: BTreeSet<&str> = runs.iter().map(|index| self.view.run_id(*index)).collect();
        let records = self.services.store.latest_records_of(&ids).unwrap_or_default();
        let has_located = |record: &RunRecord| record.team.is_none() && self.services.find_panel_of(record).is_none();
        runs.iter().copied().find(|index| records.get(self.view.run_id(*index)).is_none_or(has_located))
    }

    /// Gives reports whose problem a panel listed under another id that id, unless the run reports that one, too. A report that has
    /// kept its own decision follows, too: the finding of the list may have been opened again since.
    pub(super) fn follow_merged(&self, findings: &mut [Finding]) -> Result<(), RunnerError> {
        let store = &self.services.store;
        let targets: Vec<FindingId> = findings.iter().map(|finding| finding.finding_id.clone()).collect();
        let targets = store.follow_merged(&self.view, &targets)?;
        let mut ids: HashSet<FindingId> = findings.iter().map(|finding| finding.finding_id.clone()).collect();
        for (finding, target) in findings.iter_mut().zip(targets) {
            let Some(index) = self.view.finding_index(target.as_str()) else { continue };
            if !ids.insert(target.clone()) {
                continue;
            }
            let row = self.view.finding(index);
            finding.detail_ref = format!("outputs/{}.json#{target}", self.run.run_id);
            finding.finding_id = target;
            if let Ok(first) = row.first_run.parse() {
                finding.first_run_id = first;
            }
        }
        Ok(())
    }

    /// Returns the decisions that the findings of a panel's list take over from the other ids of their problems, and puts them
    /// into `said`, so that the run ends as if they had been made about the findings. `merged` has the other ids that stand for
    /// one problem, each with the id on the list.
    ///
    /// The lines have the groups of the decisions, so that one undo takes back both.
    pub(super) fn take_over_decisions(
        &self,
        merged: &[(FindingId, FindingId)],
        said: &mut LatestDispositions,
    ) -> Vec<Disposition> {
        if self.run.links.panel.is_none() {
            return Vec::new();
        }
        let mut ids_of: BTreeMap<&FindingId, Vec<&FindingId>> = BTreeMap::new();
        for (id, listed) in merged {
            ids_of.entry(listed).or_default().push(id);
        }
        let mut taken: Vec<(u64, Disposition)> = Vec::new();
        for (listed, ids) in ids_of {
            let decision_of = |id: &FindingId| {
                let (place, line) = said.get(id)?;
                let is_since_request = is_since_request(self.run, *place, line);
                Some(LoggedDecision { line, place: *place, is_since_request })
            };
            let reports: Vec<LoggedDecision<'_>> = ids.into_iter().filter_map(decision_of).collect();
            for taken_over in policy::take_over_decisions(decision_of(listed), &reports) {
                let LoggedDecision { line, place, .. } = taken_over.decision;
                let line = Disposition {
                    finding_id: listed.clone(),
                    previous: taken_over.previous,
                    // The log is in the order of the times, but for decisions of other machines.
                    at: if line.team.is_some() { line.at } else { self.services.ambient.now() },
                    action: TriageAction::Set,
                    run_id: Some(self.run.run_id.clone()),
                    merged_into: None,
                    ..line.clone()
                };
                taken.push((place, line));
            }
        }
        taken.iter().for_each(|(place, line)| said.replace(*place, line.clone()));
        taken.into_iter().map(|(_, line)| line).collect()
    }

    /// Stores for the findings of a panel's list what was written about the other ids of their problems while the members worked.
    /// `merged` is as in [`Self::take_over_decisions`].
    pub(super) fn take_over_remarks(&self, merged: &[(FindingId, FindingId)]) -> Result<(), RunnerError> {
        if self.run.links.panel.is_none() {
            return Ok(());
        }
        Ok(take_over_remarks(&self.services.store, merged, self.run.created_at)?)
    }

    /// Returns the dispositions of the reports that give way to findings of a panel's list ([`policy::gives_way`]), after those have
    /// taken decisions over ([`Self::take_over_decisions`]). `single` has those of `merged` that stand for one problem; another one
    /// keeps what was decided about it.
    pub(super) fn merge_dispositions(
        &self,
        merged: &[(FindingId, FindingId)],
        single: &[(FindingId, FindingId)],
        coverage: &Coverage,
        said: &LatestDispositions,
    ) -> Vec<Disposition> {
        let run = &self.run.run_id;
        // A review of old code is no evidence about later decisions, and code that was carried over was not looked at again.
        let is_present = self.sight().layer() > policy::SnapshotLayer::Past;
        let carried: HashSet<&FindingId> = coverage.carried.iter().flat_map(|carried| &carried.findings).collect();
        let single: HashSet<&FindingId> = single.iter().map(|(id, _)| id).collect();
        let last_of = |id: &FindingId| said.get(id).map(|(_, last)| last);
        let given_way = merged.iter().filter_map(|(id, into)| {
            let (report, listed) = (last_of(id), last_of(into).filter(|_| single.contains(id)));
            let is_seen = is_present && single.contains(id) && !carried.contains(into);
            let present = FindingState::from_last_disposition(report);
            let merge = || Disposition::from_merge(id, present.status(), into, run, self.services.ambient.now());
            policy::gives_way(report, listed, is_seen).then(merge)
        });
        given_way.collect()
    }

    /// Compares the ids of each problem again where something was said about one of them while the run was settled: from the offset
    /// `end` of the triage log on. The finding of the list then takes over what people have decided about the other ids, also what it
    /// could not take over because its own last line was newer. Lines that the run itself has appended are no news.
    pub(super) fn follow_late_decisions(
        &self,
        merged: &[(FindingId, FindingId)],
        single: &[(FindingId, FindingId)],
        coverage: &Coverage,
        mut end: u64,
    ) -> Result<(), RunnerError> {
        /// Rounds after which a stream of decisions is left to those who decide. Own choice.
        const MAX_ROUNDS: usize = 8;
        if self.run.links.panel.is_none() || single.is_empty() {
            return Ok(());
        }
        let about: HashSet<&str> = single.iter().flat_map(|(id, into)| [id.as_str(), into.as_str()]).collect();
        for _ in 0..MAX_ROUNDS {
            let mut said = self.services.store.latest_dispositions(&about)?;
            let is_late = |id: &FindingId| {
                let last = said.get(id);
                last.is_some_and(|(place, line)| *place >= end && line.run_id.as_ref() != Some(&self.run.run_id))
            };
            if !single.iter().any(|(id, into)| is_late(id) || is_late(into)) {
                return Ok(());
            }
            end = said.end();
            let mut lines = self.take_over_decisions(single, &mut said);
            lines.extend(self.merge_dispositions(merged, single, coverage, &said));
            self.services.findings().store_for_run(self.run).append_unless_newer(lines, &said)?;
        }
        Ok(())
    }
}

fn to_problem_text(finding: &Finding) -> ProblemText {
    let (title, explanation) = (finding.title.clone(), finding.explanation.clone());
    ProblemText { title, explanation, ..ProblemText::default() }
}

/// Returns the ids under which members reported the problems of a panel's list, each with its id on the list. An id that stands
/// for a problem goes with that one, and with none if nobody reports it.
pub(super) fn list_merged(outcome: &ReviewOutcome) -> Vec<(FindingId, FindingId)> {
    let (findings, moved) = (&outcome.findings, &outcome.moved_ids);
    let listed: HashSet<&FindingId> = findings.iter().map(|finding| &finding.finding_id).collect();
    let moved_to = moved.iter().filter_map(|(id, listed)| Some((id, listed.as_ref()?)));
    let voices =
        findings.iter().flat_map(|finding| finding.raised_voices().map(move |voice| (voice, &finding.finding_id)));
    let voiced = voices.map(|(voice, listed)| (&voice.finding_id, listed)).filter(|(id, _)| !moved.contains_key(*id));
    let mut merged: Vec<(FindingId, FindingId)> = voiced
        .chain(moved_to)
        .filter(|(id, into)| !listed.contains(id) && listed.contains(into))
        .map(|(id, into)| (id.clone(), into.clone()))
        .collect();
    merged.sort();
    merged.dedup_by(|one, other| one.0 == other.0);
    merged
}

/// Returns the merged ids that stand for one problem of a panel's list each, although members may have reported several under them.
pub(super) fn list_single_problems(
    outcome: &ReviewOutcome,
    merged: &[(FindingId, FindingId)],
) -> Vec<(FindingId, FindingId)> {
    let mut problems_of: HashMap<&FindingId, usize> = HashMap::new();
    for finding in &outcome.findings {
        let ids: HashSet<&FindingId> = finding.raised_voices().map(|voice| &voice.finding_id).collect();
        ids.into_iter().for_each(|id| *problems_of.entry(id).or_default() += 1);
    }
    let is_single = |id: &FindingId| {
        outcome.moved_ids.contains_key(id) || problems_of.get(id).is_none_or(|problems| *problems == 1)
    };
    merged.iter().filter(|(id, _)| is_single(id)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::ListedReport;
    use crate::runner::finding_lifecycle::settle_silence::build_outcome;

    const RUN: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E";

    fn list(findings: Vec<Finding>) -> ReviewOutcome {
        build_outcome(findings, Vec::new(), Coverage::default())
    }

    /// Returns a finding of a list with the ids of its reports, and the reasons why they were held back.
    fn listed(id: &FindingId, reports: &[(&FindingId, Option<&str>)]) -> Finding {
        let voice = |(id, held_back): &(&FindingId, Option<&str>)| {
            json!({
                "reviewer": "m", "run_id": RUN, "finding_id": id, "priority": 1, "confidence": "high", "kind": "SECURITY",
                "title": "t", "line_start": 1, "line_end": 1, "held_back": held_back,
            })
        };
        let voices: Vec<serde_json::Value> = reports.iter().map(voice).collect();
        let finding = json!({
            "finding_id": id, "first_run_id": RUN, "last_run_id": RUN, "priority": 1, "severity": "medium",
            "confidence": "high", "kind": "SECURITY", "title": "t", "explanation": "", "repo_relative_path": "a.rs",
            "line_start": 1, "line_end": 1, "quoted_code": "", "status": "open", "detail_ref": "",
            "reported_at": "2026-11-01T00:00:00Z", "voices": voices,
        });
        serde_json::from_value(finding).expect("a finding")
    }

    #[test]
    fn the_id_of_a_report_that_was_held_back_stands_for_no_finding_of_the_list() {
        let [own, raised, held]: [FindingId; 3] =
            [1, 2, 3].map(|number| format!("f_{number:016x}").parse().expect("an id"));
        let first = listed(&own, &[(&own, None), (&raised, None), (&held, Some("late"))]);
        let alone = list(vec![first.clone()]);
        let merged = list_merged(&alone);
        assert_eq!(merged, [(raised, own)], "the other id of a raised report is obsolete");
        assert_eq!(list_single_problems(&alone, &merged), merged);
        // Another problem has the id on the list.
        let second = listed(&held, &[(&held, None)]);
        assert_eq!(list_merged(&list(vec![first.clone(), second.clone()])), merged);
        assert_eq!(ListedReport::from_list([&first, &second]), []);
    }
}
