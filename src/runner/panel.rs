//! Ends the run of a panel: merges what its members found into one list.
//!
//! - Merging asks no reviewer. Its result follows from the outputs of the members, so that a worker that dies is replaced
//!   by one that merges the same again. Only then are second opinions asked for.
//! - What somebody has decided, noted or asked about a report while the members worked stays with the problem of that report.
//! - A member that failed, or was stopped, is named and makes the panel incomplete. What it found until then counts.
//! - Until the panel ends, the findings of its members are findings like others. When it ends, those that describe a
//!   problem of the list under another id become obsolete and name the finding of the list
//!   ([`crate::domain::Disposition::merged_into`]).

mod earlier_reports;
mod standing_problems;

use std::collections::{BTreeSet, HashMap, HashSet};

use self::earlier_reports::EarlierReport;
use self::standing_problems::{ShownIndex, ShownReports, is_decided};
use crate::domain::text::{join_names, sanitize_line};
use crate::domain::{
    Coverage, ErrorClass, Finding, FindingCounts, FindingId, Kind, LineRange, Panel, PanelMember, RequestDecision,
    ReviewerUsage, RunId, RunOutput, RunRecord, RunStatus, SuppressionReason,
};
use crate::policy::FindingState;
use crate::review::{self, ListedIds, MemberResult, ReviewOutcome, merge_coverage, merge_panel};
use crate::runner::{BUILTIN_REVIEWER, RunnerError, Services};
use crate::store::{LatestDispositions, LockedStore, StoreView};

/// End of a member's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberEnd {
    /// It came to its own end, perhaps at one of its limits.
    OwnEnd,
    /// It failed, was lost or was stopped.
    Broken,
}

/// Member of a panel that has ended.
struct EndedMember {
    reviewer: String,
    decision: RequestDecision,
    record: RunRecord,
    output: RunOutput,
}

impl EndedMember {
    fn end(&self) -> MemberEnd {
        match (self.record.status, self.record.ending.budget_stop) {
            // What could not be read is a gap of the coverage.
            (RunStatus::Completed, _)
                if matches!(self.record.ending.error_class, None | Some(ErrorClass::Unreadable)) =>
            {
                MemberEnd::OwnEnd
            }
            (RunStatus::Cancelled, Some(_)) => MemberEnd::OwnEnd,
            _ => MemberEnd::Broken,
        }
    }

    /// Returns the name of the reviewer that gave most answers: the member, or the fallback that took over from it.
    fn main_reviewer(&self) -> &str {
        let main = ReviewerUsage::find_main(&self.record.usage.answered_by);
        // The runs of other machines may have other names for the same reviewer.
        let fallback = main.filter(|main| main.reviewer != self.record.reviewed_by.name);
        fallback.map_or(&self.reviewer, |fallback| &fallback.reviewer)
    }

    /// Returns the kinds that the reviewer can report or was asked for; `None` for all kinds.
    fn kinds<'a>(&'a self, smells: &'a [Kind]) -> Option<&'a [Kind]> {
        let focus = self.record.reviewed_by.focus.as_slice();
        if self.reviewer == BUILTIN_REVIEWER { Some(smells) } else { Some(focus).filter(|focus| !focus.is_empty()) }
    }

    /// Returns the reports that the member's run held back for another reason than a dismissal: the member sees the problem.
    fn undismissed_reports(&self) -> impl Iterator<Item = &Finding> {
        let held_back = self.output.held_back.iter();
        held_back.filter(|held| held.because != SuppressionReason::Dismissed).map(|held| &held.finding)
    }

    /// Returns the findings of the member's run, and the reports that it held back for another reason than a dismissal.
    fn seen_findings(&self) -> impl Iterator<Item = &Finding> {
        self.output.findings.iter().chain(self.undismissed_reports())
    }

    fn is_finished(&self) -> bool {
        self.record.status == RunStatus::Completed && self.record.ending.error_class.is_none()
    }

    /// Returns the line about the member in the notes of the panel.
    fn describe(&self) -> String {
        let said = match self.decision {
            RequestDecision::Adopt | RequestDecision::Reuse => format!(" ({})", self.record.run_id),
            RequestDecision::Launch | RequestDecision::Resume | RequestDecision::Skip => String::new(),
        };
        let by = Some(self.main_reviewer()).filter(|by| *by != self.reviewer);
        let by = by.map_or_else(String::new, |by| format!(" (answered by {by})"));
        let summary = self.record.summary_with_error();
        let summary = match &*summary {
            "" => self.record.status.word(),
            summary => summary,
        };
        let why = self.failure().map(|(_, why)| why).filter(|why| !summary.contains(*why));
        let why = why.map_or_else(String::new, |why| format!("; {why}"));
        let scanned = match self.record.outcome.scanned_findings.len() {
            0 => String::new(),
            count => format!("; {count} of them by revdeck's own search for secrets"),
        };
        sanitize_line(&format!("{}{said}{by}: {summary}{why}{scanned}", self.reviewer)).into_owned()
    }

    /// Returns the class and the reason of a failure.
    fn failure(&self) -> Option<(ErrorClass, &str)> {
        if self.end() == MemberEnd::OwnEnd {
            return None;
        }
        let class = self.record.ending.error_class.unwrap_or(ErrorClass::Reviewer);
        let why = match self.record.ending.error_summary.as_str() {
            "" => self.record.state_word(),
            summary => summary,
        };
        Some((class, why))
    }
}

/// Returns the class of the first failure and one sentence about all members that did not finish: `gpt and gemini did not
/// finish`, and for a single one why. The note of each member says why, too.
fn describe_failures(members: &[EndedMember]) -> Option<(ErrorClass, String)> {
    let failed: Vec<(&EndedMember, (ErrorClass, &str))> =
        members.iter().filter_map(|member| Some((member, member.failure()?))).collect();
    let (_, (class, why)) = failed.first()?;
    let names: Vec<&str> = failed.iter().map(|(member, _)| member.reviewer.as_str()).collect();
    let why = if names.len() == 1 { format!(": {why}") } else { String::new() };
    Some((*class, sanitize_line(&format!("{} did not finish{why}", join_names(&names))).into_owned()))
}

impl Services {
    /// Merges the members of a panel into the outcome of its run. A member whose output cannot be read counts as broken.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(in crate::runner) fn merge_members(
        &self,
        record: &RunRecord,
        panel: &Panel,
    ) -> Result<ReviewOutcome, RunnerError> {
        let members = self.load_members(panel, &record.run_id)?;
        let view = self.store.view()?;
        let own = panel.members.iter().map(|member| &member.run_id).chain([&record.run_id]);
        let own: HashSet<&str> = own.map(RunId::as_str).collect();
        let reported = members.iter().flat_map(EndedMember::seen_findings);
        let reported: HashSet<&str> = reported.map(|finding| finding.finding_id.as_str()).collect();
        let said = self.store.latest_dispositions(&reported)?;
        // A decision that somebody made while the members worked holds for the problem, too.
        let is_known = |id: &FindingId| is_decided(&said, id) || is_known_before(&view, &own, id);
        let smells: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| kind.is_smell()).collect();
        let seen = || members.iter().flat_map(EndedMember::seen_findings).map(|finding| &finding.finding_id);
        let known: BTreeSet<&FindingId> = seen().filter(|id| is_known_before(&view, &own, id)).collect();
        // An earlier panel may have listed what a member had reported before.
        let mut once: HashSet<&FindingId> = HashSet::new();
        let repeated: BTreeSet<&FindingId> = seen().filter(|&id| !once.insert(id)).collect();
        let earlier = self.find_earlier_reports(&view, &own, &(&known | &repeated))?;
        let fixed = list_fixed(&members, &known, &earlier, &said);
        let shown = ShownReports {
            services: self,
            view: &view,
            own: &own,
            members: &members,
            panel: &record.run_id,
            said: &said,
            earlier: &earlier,
            index: ShownIndex::default(),
        };
        let confirmed: Vec<Vec<FindingId>> = members
            .iter()
            .map(|member| {
                let held_back = member.undismissed_reports().map(|finding| finding.finding_id.clone());
                held_back.filter(|id| is_known_before(&view, &own, id)).collect()
            })
            .collect();
        let merged_members: Vec<MemberResult<'_>> = members
            .iter()
            .zip(confirmed.iter().zip(&fixed))
            .map(|(member, (confirmed, fixed))| MemberResult {
                reviewer: member.main_reviewer(),
                run_id: &member.record.run_id,
                findings: &member.output.findings,
                coverage: &member.output.coverage,
                is_finished: member.is_finished(),
                kinds: member.kinds(&smells),
                confirmed,
                fixed,
                held_back: &member.output.held_back,
            })
            .collect();
        let reviewers: Vec<&str> = members.iter().map(EndedMember::main_reviewer).collect();
        let records = self.kind_records(&reviewers)?;
        let record_of = |reviewer: &str, kind: Kind| {
            records.iter().find(|record| record.reviewer == reviewer && record.kind == kind).cloned()
        };
        let list = merge_panel(&merged_members, is_known, |id| shown.problem_of(id), record_of);
        let ended: Vec<&EndedMember> = members.iter().filter(|member| member.end() == MemberEnd::OwnEnd).collect();
        let covered: Vec<&Coverage> = ended.iter().map(|member| &member.output.coverage).collect();
        let listed = ListedIds::new(&list);
        let mut coverage = merge_coverage(&covered, |member, id| listed.find(&ended[member].record.run_id, id));
        if ended.is_empty() {
            coverage = record.outcome.coverage.clone();
        }
        let adopt_listed = |finding: &Finding| {
            let id = &finding.finding_id;
            let known = view.finding_index(id.as_str()).filter(|_| is_known_before(&view, &own, id));
            let first_run = match known.and_then(|index| view.finding(index).first_run.parse().ok()) {
                Some(first_run) => first_run,
                None if reported.contains(id.as_str()) => finding.first_run_id.clone(),
                // The panel gave it this id, because the one of the report belongs to another problem.
                None => record.run_id.clone(),
            };
            adopt(finding.clone(), record, first_run)
        };
        let findings: Vec<Finding> = list.findings.iter().map(adopt_listed).collect();
        let failure = describe_failures(&members);
        let status = match record.ending.cancel_reason {
            Some(reason) => reason.status(),
            None if ended.is_empty() => RunStatus::Failed,
            None => RunStatus::Completed,
        };
        let mut outcome = ReviewOutcome {
            status,
            findings,
            // A report that is held back shows that an earlier finding is not fixed.
            unraised: members.iter().flat_map(|one| &one.output.held_back).map(|held| held.finding.clone()).collect(),
            moved_ids: list.moved_ids,
            counts: FindingCounts::default(),
            coverage,
            summary: String::new(),
            // A finding that nobody raises has no place on the list that could say so.
            notes: members
                .iter()
                .map(EndedMember::describe)
                .chain(list.disputed_known.iter().map(|(id, dispute)| format!("{id}: {dispute}")))
                .chain(panel.describe_uncounted())
                .collect(),
            rejected: members.iter().flat_map(|member| member.output.rejected.clone()).collect(),
            failure: failure.filter(|_| matches!(status, RunStatus::Completed | RunStatus::Failed)),
            cancel: record.ending.cancel_reason,
            budget_stop: None,
            spent: review::RunCost::default(),
        };
        review::summarize_panel(&mut outcome);
        Ok(outcome)
    }

    fn load_members(&self, panel: &Panel, panel_run: &RunId) -> Result<Vec<EndedMember>, RunnerError> {
        let mut members = Vec::new();
        for member in &panel.members {
            let Some(mut record) = self.store.run(&member.run_id)? else {
                tracing::warn!(run = %member.run_id, "the run of a panel's member is gone");
                continue;
            };
            // Another run may have reviewed the same. The review of a whole panel says nothing about one reviewer.
            let answer = self.answering_run(record.clone())?;
            if Panel::name_of(&answer.reviewed_by.name).is_none() {
                record = answer;
            }
            // A damaged result must not keep the panel from ending.
            let output = self.store.output(&record.run_id).unwrap_or_else(|error| {
                record.ending.error_class = Some(ErrorClass::Store);
                record.ending.error_summary = error.to_string();
                None
            });
            let mut output = output.unwrap_or_else(|| RunOutput::new(record.clone()));
            if record.links.member_of.as_ref() != Some(panel_run) {
                use_listed_ids(&mut output, &self.find_listed_ids(&record));
            }
            members.push(EndedMember { reviewer: member.reviewer.clone(), decision: member.decision, record, output });
        }
        Ok(members)
    }

    /// Returns what the members of a panel have spent for it in US dollars. What an adopted or reused run costs was not
    /// paid for this panel.
    pub(in crate::runner) fn spent_by_members(&self, panel: &Panel, panel_run: &RunId) -> Result<f64, RunnerError> {
        let mut spent = 0.0;
        for member in &panel.members {
            let record = self.store.run(&member.run_id)?;
            let record = record.filter(|record| record.links.member_of.as_ref() == Some(panel_run));
            spent += record.map_or(0.0, |record| record.usage.cost);
        }
        Ok(spent)
    }

    /// Marks the runs of a panel's own members as replaced by the run of the panel, whose list contains their findings.
    pub(in crate::runner) fn fold_members(
        &self,
        locked: &LockedStore<'_>,
        panel_run: &RunRecord,
        panel: &Panel,
    ) -> Result<(), RunnerError> {
        for member in &panel.members {
            let Some(record) = self.store.run(&member.run_id)? else { continue };
            let is_own = record.links.member_of.as_ref() == Some(&panel_run.run_id);
            if is_own && record.status.is_terminal() && record.links.superseded_by.is_none() {
                locked.annotate_run(&member.run_id, |record| {
                    record.links.superseded_by = Some(panel_run.run_id.clone());
                })?;
            }
        }
        Ok(())
    }

    /// Returns the ids that reports of a run have on the list of its panel, by their ids in the run, where these are those of
    /// other problems; none before the panel has ended.
    pub(in crate::runner) fn find_listed_ids(&self, run: &RunRecord) -> HashMap<FindingId, FindingId> {
        let panel = run.links.member_of.as_ref().and_then(|id| self.store.run(id).ok().flatten());
        let reports = panel.map(|panel| panel.outcome.listed_as).unwrap_or_default();
        let own = reports.into_iter().filter(|report| report.run_id == run.run_id);
        own.map(|report| (report.reported_as, report.finding_id)).collect()
    }

    /// Returns the ids of the runs of a member's panel that report findings while the member does: not those that had ended
    /// before the panel was asked for. None for a run that is no member.
    pub(in crate::runner) fn list_working_siblings(&self, run: &RunRecord) -> HashSet<String> {
        let Some((_, panel)) = self.find_panel_of(run) else { return HashSet::new() };
        let is_working =
            |member: &&PanelMember| member.run_id != run.run_id && member.decision != RequestDecision::Reuse;
        panel.members.iter().filter(is_working).map(|member| member.run_id.to_string()).collect()
    }

    /// Returns the runs of the same panel as this one, and the run of the panel; `None` if the run belongs to no panel, or
    /// to one that was never recorded.
    pub(in crate::runner) fn find_panel_of(&self, run: &RunRecord) -> Option<(RunId, Panel)> {
        let id = run.links.member_of.as_ref()?;
        let record = self.store.run(id).ok().flatten()?;
        Some((id.clone(), record.links.panel?))
    }
}

/// Indexes of what a member's run has seen.
struct MemberSight<'a> {
    /// Ids of its findings, and of the reports that it held back for another reason than a dismissal.
    seen: HashSet<&'a FindingId>,
    /// Hunks that its reviewer saw in this run, by path.
    hunks: HashMap<&'a str, Vec<LineRange>>,
}

impl<'a> MemberSight<'a> {
    fn new(member: &'a EndedMember) -> Self {
        let mut hunks: HashMap<&str, Vec<LineRange>> = HashMap::new();
        for file in &member.output.coverage.files {
            hunks.entry(&file.path).or_default().extend(&file.hunks);
        }
        Self { seen: member.seen_findings().map(|finding| &finding.finding_id).collect(), hunks }
    }
}

/// Returns for each member the known findings that another member sees and that it calls fixed by its silence: it
/// reported them before and has reviewed their lines again, and somebody claims that they are fixed or their code has
/// changed. `earlier` are the last reports before the panel.
fn list_fixed(
    members: &[EndedMember],
    known: &BTreeSet<&FindingId>,
    earlier: &HashMap<FindingId, EarlierReport>,
    said: &LatestDispositions,
) -> Vec<Vec<FindingId>> {
    let sights: Vec<MemberSight<'_>> = members.iter().map(MemberSight::new).collect();
    let mut listed: Vec<HashSet<&FindingId>> = vec![HashSet::new(); members.len()];
    let mut fixed: Vec<Vec<FindingId>> = vec![Vec::new(); members.len()];
    for finding in members.iter().flat_map(EndedMember::seen_findings) {
        let id = &finding.finding_id;
        let Some(before) = earlier.get(id).filter(|_| known.contains(id)) else { continue };
        let present = FindingState::from_last_disposition(said.get(id).map(|(_, last)| last));
        let is_changed = before.quoted_code != finding.quoted_code;
        if !is_changed && !matches!(present, FindingState::Claimed(_)) {
            continue;
        }
        for (at, (member, sight)) in members.iter().zip(&sights).enumerate() {
            let is_silent = member.is_finished() && !sight.seen.contains(id);
            let hunks = sight.hunks.get(finding.repo_relative_path.as_str()).map(Vec::as_slice).unwrap_or_default();
            let has_reviewed = hunks.iter().any(|hunk| hunk.overlaps(finding.lines()));
            let has_reported = before.reporters.contains(member.main_reviewer());
            if is_silent && has_reviewed && has_reported && listed[at].insert(id) {
                fixed[at].push(id.clone());
            }
        }
    }
    fixed
}

/// Gives the reports of an earlier panel's member the ids that they have on the list of that panel.
fn use_listed_ids(output: &mut RunOutput, listed: &HashMap<FindingId, FindingId>) {
    let held_back = output.held_back.iter_mut().map(|held| &mut held.finding);
    for finding in output.findings.iter_mut().chain(held_back) {
        if let Some(id) = listed.get(&finding.finding_id) {
            finding.detail_ref = finding.detail_ref.replace(finding.finding_id.as_str(), id.as_str());
            finding.finding_id = id.clone();
        }
    }
    for id in output.coverage.carried.iter_mut().flat_map(|carried| &mut carried.findings) {
        if let Some(listed) = listed.get(&*id) {
            id.clone_from(listed);
        }
    }
}

/// Returns true for the id of a finding that was there before the panel: the list keeps it.
fn is_known_before(view: &StoreView, own: &HashSet<&str>, id: &FindingId) -> bool {
    let Some(row) = view.finding_index(id.as_str()).map(|index| view.finding(index)) else { return false };
    !own.contains(row.first_run)
}

/// Makes a finding of the merged list one of the panel's run. `first_run` is the first run that reported it.
fn adopt(mut finding: Finding, record: &RunRecord, first_run: RunId) -> Finding {
    finding.first_run_id = first_run;
    finding.last_run_id = record.run_id.clone();
    finding.detail_ref = format!("outputs/{}.json#{}", record.run_id, finding.finding_id);
    finding
}

#[cfg(test)]
mod tests;
