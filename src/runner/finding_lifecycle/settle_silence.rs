//! Settles the findings about which a completed review is silent, when the review answers another request: one of another machine,
//! or an earlier one of the same code.
//!
//! - The code of the request is what the review has read, so its silence counts as that of a new review would: where it covered
//!   the place, and its reviewer is one that reported the finding.
//! - The order of the runs says nothing here: the code may be back, and clocks of machines differ.
//! - A result is immutable. So the new places of findings that have moved are not recorded; the next review finds them.
//! - A finding that a review of the change would have judged stays as it is where the result does not show that its place was read.
//!   It is returned, so that a gate does not take the result for clean. Where git cannot read the code of the request, these are all
//!   undecided findings of its reviewers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::earlier_findings::EarlierFinding;
use super::held_back_reports::HeldBackReports;
use super::{FindingSettlement, PanelPart, RunCoverage, collect_recognised};
use crate::domain::{Coverage, Finding, FindingCounts, FindingId, Kind, LineRange, RunOutput, RunRecord, RunStatus};
use crate::policy::anchor::AnchorLocation;
use crate::policy::{self, DETERMINISTIC_REVIEWER, FindingState, ReviewExtent, ReviewObservation, SilentRun};
use crate::review::ReviewOutcome;
use crate::runner::{RunnerError, Services};
use crate::store::LatestDispositions;

impl<'a> FindingSettlement<'a> {
    /// Settles for a request that `run` answers. The subject of `run` is the code of the request.
    pub(super) fn for_answer(
        services: &'a Services,
        run: &'a RunRecord,
        extent: ReviewExtent,
    ) -> Result<Self, RunnerError> {
        let mut settlement = Self::new(services, run, run.status, extent)?;
        // The result of a member answers without its panel.
        if settlement.panel.is_member {
            settlement.panel = PanelPart::default();
        }
        settlement.is_answer = true;
        Ok(settlement)
    }

    /// Stores what the silence of the result says. Returns the undecided findings whose places it does not show to be read, and
    /// those that the review has reported and its list lacks: they were held back, because they were dismissed then or on its
    /// machine, or a panel lists their problems under other ids since.
    pub(super) fn settle_silence(
        &self,
        output: RunOutput,
        held_back: &HeldBackReports,
    ) -> Result<Vec<FindingId>, RunnerError> {
        let unraised = held_back.reports.iter().map(|held| held.finding.clone()).collect();
        let mut outcome = build_outcome(output.findings, unraised, output.coverage);
        outcome.status = self.status;
        let reported: Vec<FindingId> = outcome.findings.iter().map(|finding| finding.finding_id.clone()).collect();
        self.follow_merged(&mut outcome.findings)?;
        let merged = collect_recognised(&mut outcome, &reported);
        let mut unlisted = held_back.dismissed_ids();
        unlisted.extend(merged.iter().map(|alias| &alias.finding_id));
        let Some(mut ground) = self.open_snapshot_files() else { return self.list_unjudged(&outcome, &unlisted) };
        let candidates = self.find_candidates(&ground, &outcome);
        let concerned = candidates.iter().map(|candidate| self.candidate_id(candidate));
        let about: HashSet<&str> = concerned.chain(unlisted.iter().map(|id| id.as_str())).collect();
        let said = self.services.store.latest_dispositions(&about)?;
        let mut reports = self.read_reports(&candidates);
        let known: Vec<EarlierFinding> = candidates
            .iter()
            .filter_map(|candidate| self.look_up(candidate, &said, &mut ground, &mut reports))
            .collect();
        self.recognise(&mut ground, &known, &mut outcome.findings);
        self.recognise(&mut ground, &known, &mut outcome.unraised);
        let seen = outcome.findings.iter().chain(&outcome.unraised).map(|finding| &finding.finding_id);
        let seen: HashSet<&FindingId> = seen.chain(unlisted.iter().copied()).collect();
        let coverage = RunCoverage::from_outcome(&outcome, &self.run.reviewed_by.name);
        let mut recheck = None;
        let mut change: Option<Option<RunCoverage>> = None;
        let mut dispositions = Vec::new();
        let stands = |id: &FindingId| self.stands_here(id, &said);
        let mut unproven: Vec<FindingId> = unlisted.iter().copied().filter(|id| stands(id)).cloned().collect();
        for known in known.iter().filter(|known| !seen.contains(&known.id)) {
            let is_hidden = self.may_be_hidden(known, held_back);
            let (observed, _) = self.observe_finding(known, &mut ground, &coverage, &mut recheck, &mut reports);
            if let Some(observed) = observed.filter(|one| !is_hidden || *one != ReviewObservation::NotRaised) {
                dispositions.extend(self.judge(&known.id, known.present, observed, &said));
                continue;
            }
            let is_read = !is_hidden && self.is_silent_about(known) && coverage.has_covered(&known.path, &known.stand);
            if is_read || !self.would_settle(known) {
                continue;
            }
            let change = change.get_or_insert_with(|| self.read_change());
            if change.as_ref().is_none_or(|change| change.has_covered(&known.path, &known.stand)) {
                unproven.push(known.id.clone());
            }
        }
        self.services.findings().store_for_run(self.run).append_unless_newer(dispositions, &said)?;
        Ok(unproven)
    }

    /// Returns the findings that the result leaves unproven if nobody can say where their code is now, because git cannot read the
    /// code of the request: all undecided ones about which the review is silent and could have judged. `unlisted` are those that
    /// it has reported and its list lacks.
    fn list_unjudged(
        &self,
        outcome: &ReviewOutcome,
        unlisted: &BTreeSet<&FindingId>,
    ) -> Result<Vec<FindingId>, RunnerError> {
        let seen = outcome.findings.iter().chain(&outcome.unraised).map(|finding| &finding.finding_id);
        let seen: HashSet<&str> = seen.chain(unlisted.iter().copied()).map(|id| id.as_str()).collect();
        let candidates = self.find_related(|row, _| row.status.is_undecided() && !seen.contains(row.id));
        let about: HashSet<&str> = unlisted.iter().map(|id| id.as_str()).collect();
        let said = self.services.store.latest_dispositions(&about)?;
        let mut unproven: Vec<FindingId> =
            unlisted.iter().copied().filter(|id| self.stands_here(id, &said)).cloned().collect();
        let reviewers = self.list_answering_reviewers();
        let mut reports = self.read_reports(&candidates);
        for candidate in &candidates {
            let kind = self.view.finding(candidate.index).kind;
            if self.would_confirm(&reviewers, &self.candidate_reporters(candidate, &mut reports), kind) {
                unproven.extend(self.candidate_id(candidate).parse::<FindingId>().ok());
            }
        }
        Ok(unproven)
    }

    /// Returns true if this machine knows a finding, and nobody has decided about it.
    fn stands_here(&self, id: &FindingId, said: &LatestDispositions) -> bool {
        let present = FindingState::from_last_disposition(said.get(id).map(|(_, last)| last));
        self.view.finding_index(id.as_str()).is_some() && present.status().is_undecided()
    }

    /// Returns true if the silence of the result is that of a reviewer that has reported the finding. Nobody knows whose silence
    /// that of a panel is if its record does not name its members.
    fn is_silent_about(&self, known: &EarlierFinding) -> bool {
        let (status, extent) = (self.status, self.extent);
        known.is_fixed_by(&SilentRun { reviewer: self.silent_reviewer(known), status, extent })
    }

    /// Returns true if the review may have reported the finding, and held the report back on another machine. The built-in reviewer
    /// is asked again, so nothing is hidden from it.
    fn may_be_hidden(&self, known: &EarlierFinding, held_back: &HeldBackReports) -> bool {
        let path = known.stand.place().map_or(known.path.as_str(), |(path, _)| path);
        self.run.reviewed_by.name != DETERMINISTIC_REVIEWER && held_back.may_hide(path)
    }

    /// Returns true if a review that covers the place would confirm by its silence that an undecided finding is fixed.
    fn would_settle(&self, known: &EarlierFinding) -> bool {
        let is_changed = matches!(known.stand, AnchorLocation::Changed { .. });
        if !known.present.status().is_undecided() || !is_changed || known.reach.is_none() {
            return false;
        }
        self.would_confirm(&self.list_answering_reviewers(), &known.reviewers, known.kind)
    }

    /// Returns the names of the reviewers whose silence the result may be: that of the run, or the members of its panel.
    fn list_answering_reviewers(&self) -> Vec<String> {
        let name = &self.run.reviewed_by.name;
        // The record of another machine does not name the members of a panel; the settings do.
        let panel = self.services.reviewers().find_panel(name).ok().flatten();
        panel.map_or_else(|| vec![name.clone()], |panel| panel.reviewers)
    }

    /// Returns true if the silence of one of `reviewers` about changed code confirms that a finding of `reporters` is fixed.
    fn would_confirm(&self, reviewers: &[String], reporters: &[String], kind: Kind) -> bool {
        let (status, extent) = (self.status, self.extent);
        reviewers.iter().any(|reviewer| {
            let silence = SilentRun { reviewer, status, extent };
            reporters.iter().any(|reporter| policy::confirms_fix(&silence, reporter, kind))
        })
    }

    /// Returns the code of the request's change as if it was covered; `None` if it cannot be read.
    fn read_change(&self) -> Option<RunCoverage> {
        let (base, snapshot) = (&self.run.subject.base_commit, &self.run.subject.snapshot_commit);
        let change = self.services.repo.compute_changeset(base, snapshot, &self.services.filter()).ok()?;
        let mut hunks: HashMap<String, Vec<LineRange>> = HashMap::new();
        for file in &change.files {
            hunks.entry(file.path.clone()).or_default().extend(file.hunks.iter().map(|hunk| hunk.new_range()));
        }
        Some(RunCoverage { hunks, carried: HashMap::new(), deleted: HashSet::new() })
    }
}

/// Builds the outcome of a completed review from its lists.
pub(super) fn build_outcome(findings: Vec<Finding>, unraised: Vec<Finding>, coverage: Coverage) -> ReviewOutcome {
    ReviewOutcome {
        status: RunStatus::Completed,
        findings,
        unraised,
        moved_ids: BTreeMap::new(),
        counts: FindingCounts::default(),
        coverage,
        summary: String::new(),
        notes: Vec::new(),
        rejected: Vec::new(),
        failure: None,
        cancel: None,
        budget_stop: None,
        spent: Default::default(),
    }
}
