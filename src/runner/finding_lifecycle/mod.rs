//! Applies the end of a run to all findings: matches reports with known findings, holds reports back, locates and
//! judges earlier findings.
//!
//! - The policy decides; this module reads the code and the records for it.
//! - Unreadable code is no evidence.
//! - A failure in this module does not keep a run from ending.
//! - Settling is idempotent: if a process dies while it settles a run, settling again gives the same result, because
//!   the dispositions of the first time are already stored for the same snapshot.

mod earlier_findings;
mod held_back_reports;
mod hold_back;
mod panel_part;
mod places_to_judge;
mod recheck;
mod report_reader;
mod settle_request;
mod settle_silence;
mod snapshot_files;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use self::earlier_findings::{EarlierFinding, sight_from_run};
use self::hold_back::{PartitionedReports, list_moved};
use self::panel_part::{list_merged, list_single_problems};
use self::recheck::{Recheck, RecheckResult};
use self::report_reader::ReportReader;
pub(super) use self::snapshot_files::SnapshotFiles;
use crate::domain::text::format_count;
use crate::domain::{
    Disposition, Finding, FindingAlias, FindingCounts, FindingId, FindingStatus, FlipFlop, Kind, LineRange,
    MergedReport, MovedFinding, OmissionReason, RunRecord, RunStatus, Source, SuppressedReport,
};
use crate::policy::anchor::AnchorLocation;
use crate::policy::{
    self, ClaimOrder, DETERMINISTIC_REVIEWER, Evidence, FindingState, ReviewExtent, ReviewObservation, RunAuthority,
    SilentRun, SnapshotView,
};
use crate::review::ReviewOutcome;
use crate::runner::{RunnerError, Services};
use crate::store::{LatestDispositions, LearningPolicy, Store, StoreView};

/// The part of a run's output about findings that it does not raise.
#[derive(Debug, Default)]
pub(super) struct LifecycleReport {
    pub held_back: Vec<SuppressedReport>,
    pub moved: Vec<MovedFinding>,
    pub flip_flops: Vec<FlipFlop>,
    pub recognised: Vec<FindingAlias>,
    /// Reports that the list of a panel has merged into findings with other ids; `None` for another run.
    pub merged_reports: Option<Vec<MergedReport>>,
}

/// A run whose findings are being settled.
struct FindingSettlement<'a> {
    services: &'a Services,
    run: &'a RunRecord,
    view: Arc<StoreView>,
    /// The run's scope as text.
    scope: String,
    status: RunStatus,
    extent: ReviewExtent,
    panel: PanelPart,
    /// True if the run answers a later request about the same code: then all other runs that have ended are earlier ones.
    is_answer: bool,
    /// Index of the run with whose snapshot that of this run is compared; computed on first use.
    follower: OnceCell<Option<usize>>,
}

/// The part of a run in a panel, as far as it settles findings.
#[derive(Default)]
struct PanelPart {
    /// True for a member: it recognises known findings and holds reports back, and leaves all decisions to the panel.
    is_member: bool,
    /// Indices of the other members' runs in the view. A member does not see what they report, so that the list does not
    /// depend on who ends first.
    siblings: HashSet<usize>,
    /// Indices of the run of a member and of those of the others that work with it: what they report first is new with the
    /// panel.
    working: HashSet<usize>,
    /// Reviewers of the panel that have reviewed everything, if the run is that of a panel, with the kinds that they were
    /// asked for; all kinds if there are none.
    silent: Vec<(String, Vec<Kind>)>,
}

/// The code that the run sent to its reviewer.
struct RunCoverage {
    hunks: HashMap<String, Vec<LineRange>>,
    /// Hunks that an earlier run reviewed unchanged. They show the current code, but silence about them is no evidence.
    carried: HashMap<String, Vec<LineRange>>,
    /// Paths that the run's change deletes.
    deleted: HashSet<String>,
}

/// Service that updates the findings of the store with the results of a run.
#[derive(Clone, Copy)]
pub struct FindingLifecycle<'a> {
    pub(in crate::runner) services: &'a Services,
}

impl FindingLifecycle<'_> {
    /// Applies the end of a run to all findings. Its reports get known ids and statuses, reports that must not be
    /// raised are removed, and earlier findings that the run can judge are judged. The dispositions are stored on
    /// return; the result is for the output.
    pub(super) fn settle_findings(
        &self,
        run: &RunRecord,
        outcome: &mut ReviewOutcome,
    ) -> Result<LifecycleReport, RunnerError> {
        // A run that never began is no evidence.
        if run.attempt == 0 && outcome.findings.is_empty() {
            return Ok(LifecycleReport::default());
        }
        if let Some(fix) = &run.follow_up_of {
            return Ok(hold_back::hold_back_all(outcome, fix));
        }
        let whole =
            outcome.status == RunStatus::Completed && outcome.failure.is_none() && !outcome.coverage.is_incomplete();
        let extent = if whole { ReviewExtent::Whole } else { ReviewExtent::Partial };
        FindingSettlement::new(self.services, run, outcome.status, extent)?.settle(outcome)
    }

    /// Returns the store for the run's dispositions. The run, not the process that settles it, decides whether they may
    /// be learned from.
    fn store_for_run(&self, run: &RunRecord) -> Store {
        let store = self.services.store.clone();
        if run.private { store.with_learning(LearningPolicy::Refused) } else { store }
    }
}

/// Returns the new disposition of a finding, given the evidence and the last decision about it.
fn judge_finding(
    services: &Services,
    run: &RunRecord,
    id: &FindingId,
    present: FindingState,
    seen: ReviewObservation,
    said: &LatestDispositions,
) -> Option<Disposition> {
    let later = said.get(id).is_some_and(|(place, last)| is_since_request(run, *place, last));
    let order = if later { ClaimOrder::SnapshotFirst } else { ClaimOrder::ClaimFirst };
    policy::next_status(id, present, &Evidence { seen, run: &run.run_id, order, at: services.ambient.now() })
}

/// Returns true for a line at this offset of the triage log that came after the request for the run.
fn is_since_request(run: &RunRecord, place: u64, line: &Disposition) -> bool {
    match run.subject.triage_bytes {
        Some(bytes) => place >= bytes,
        None => line.at > run.created_at,
    }
}

impl<'a> FindingSettlement<'a> {
    fn new(
        services: &'a Services,
        run: &'a RunRecord,
        status: RunStatus,
        extent: ReviewExtent,
    ) -> Result<Self, RunnerError> {
        let (view, scope) = (services.store.view()?, run.subject.scope.to_string());
        let panel = PanelPart::find(services, run, &view)?;
        Ok(Self { services, run, view, scope, status, extent, panel, is_answer: false, follower: OnceCell::new() })
    }

    fn settle(&self, outcome: &mut ReviewOutcome) -> Result<LifecycleReport, RunnerError> {
        let mut reported: Vec<FindingId> = outcome.findings.iter().map(|finding| finding.finding_id.clone()).collect();
        self.follow_merged(&mut outcome.findings)?;
        let mut ground = self.open_snapshot_files();
        let candidates = ground.as_ref().map(|ground| self.find_candidates(ground, outcome)).unwrap_or_default();
        let concerned = candidates.iter().map(|candidate| self.view.finding(candidate.index).id);
        let merged = list_merged(outcome);
        let about = concerned.chain(finding_ids(&outcome.findings)).chain(merged.iter().map(|(id, _)| id.as_str()));
        let about: HashSet<&str> = about.collect();
        let mut said = self.services.store.latest_dispositions(&about)?;
        self.leave_decided_ids(&mut outcome.findings, &mut reported, &said);
        let (mut known, mut recognised) = (Vec::new(), Vec::new());
        let mut earlier_reports = self.read_reports(&candidates);
        if let Some(ground) = &mut ground {
            known = candidates
                .iter()
                .filter_map(|candidate| self.look_up(candidate, &said, ground, &mut earlier_reports))
                .collect();
            self.recognise(ground, &known, &mut outcome.findings);
            self.recognise(ground, &known, &mut outcome.unraised);
        }
        recognised.extend(collect_recognised(outcome, &reported));
        let merged = list_merged(outcome);
        let single = list_single_problems(outcome, &merged);
        let taken_over = self.take_over_decisions(&single, &mut said);
        self.take_over_remarks(&single)?;
        let seen = outcome.findings.iter().chain(&outcome.unraised);
        let seen: HashSet<FindingId> = seen.map(|finding| finding.finding_id.clone()).collect();
        let to_report = |(reported_as, finding_id): (FindingId, FindingId)| MergedReport { reported_as, finding_id };
        let merged_reports: Option<Vec<MergedReport>> =
            self.run.links.panel.as_ref().map(|_| single.iter().cloned().map(to_report).collect());
        let mut life = LifecycleReport { recognised, merged_reports, ..LifecycleReport::default() };
        let carried = outcome.coverage.carried.iter().flat_map(|carried| &carried.findings);
        let carried: HashSet<&FindingId> = carried.collect();
        let mut dispositions = Vec::new();
        for finding in &mut outcome.findings {
            let present = FindingState::from_last_disposition(said.get(&finding.finding_id).map(|(_, last)| last));
            finding.status = present.status();
            // A carried finding was not reviewed again. Only its code is evidence, and the code is unchanged.
            let is_carried = carried.contains(&finding.finding_id);
            let says = !is_carried || matches!(present, FindingState::Confirmed | FindingState::Obsolete);
            // A review of old code is no evidence about later decisions.
            if says
                && !self.panel.is_member
                && self.sight().layer() > policy::SnapshotLayer::Past
                && let Some(line) = self.judge(&finding.finding_id, present, ReviewObservation::Raised, &said)
            {
                finding.status = line.status;
                dispositions.push(line);
            }
        }
        if let Some(ground) = ground.as_mut().filter(|_| !self.panel.is_member) {
            let coverage = RunCoverage::from_outcome(outcome, &self.run.reviewed_by.name);
            let mut recheck = None;
            for known in known.iter().filter(|known| !seen.contains(&known.id)) {
                let (observed, moved) =
                    self.observe_finding(known, ground, &coverage, &mut recheck, &mut earlier_reports);
                let judged = observed.and_then(|observed| self.judge(&known.id, known.present, observed, &said));
                dispositions.extend(judged);
                life.moved.extend(moved);
            }
            life.flip_flops = self.find_flip_flops(ground, &outcome.findings);
        }
        let reports = std::mem::take(&mut outcome.findings);
        let before = FindingCounts::from_findings(&reports);
        let PartitionedReports { raised, held_back } = self.hold_back(reports, &said, ground.as_mut())?;
        life.moved.extend(list_moved(&known, &held_back));
        (outcome.findings, life.held_back) = (raised, held_back);
        dispositions.extend(self.merge_dispositions(&merged, &single, &outcome.coverage, &said));
        self.write_notes(outcome, &mut life, &dispositions, before);
        // The evidence of the run comes after the decisions that it has judged.
        let lines = taken_over.into_iter().chain(dispositions).collect();
        self.services.findings().store_for_run(self.run).append_unless_newer(lines, &said)?;
        self.follow_late_decisions(&merged, &single, &outcome.coverage, said.end())?;
        Ok(life)
    }

    fn sight(&self) -> SnapshotView<'_> {
        sight_from_run(self.run, &self.scope)
    }

    fn judge(
        &self,
        id: &FindingId,
        present: FindingState,
        seen: ReviewObservation,
        said: &LatestDispositions,
    ) -> Option<Disposition> {
        judge_finding(self.services, self.run, id, present, seen, said)
    }

    /// Returns what the run saw of a finding that it did not report, and the finding's new place if it has moved. `reports`
    /// reads the earlier reports for the recheck, which is made at its first use.
    fn observe_finding(
        &self,
        known: &EarlierFinding,
        ground: &mut SnapshotFiles<'_>,
        coverage: &RunCoverage,
        recheck: &mut Option<Recheck>,
        reports: &mut ReportReader<'_>,
    ) -> (Option<ReviewObservation>, Option<MovedFinding>) {
        let Some(reach) = known.reach else { return (None, None) };
        let moved = |path: &str, lines: LineRange| {
            (path != known.path || lines != known.lines).then(|| MovedFinding::new(known.id.clone(), path, lines))
        };
        let is_missing = self.run.source == Source::Import
            && known.present != FindingState::Dismissed
            && known.stand.place().is_some_and(|(path, _)| coverage.hunks.contains_key(path));
        let reviewer = self.silent_reviewer(known);
        let silence = SilentRun { reviewer, status: self.status, extent: self.extent };
        // Another tool checks the whole file, so its silence counts even if the code of the finding is unchanged.
        if is_missing && known.is_fixed_by(&silence) {
            return (Some(ReviewObservation::Missing), None);
        }
        let touched = reach == RunAuthority::Everywhere || coverage.has_shown(&known.path, &known.stand);
        match &known.stand {
            AnchorLocation::Unchanged { path, lines } => (None, moved(path, *lines)),
            _ if known.present == FindingState::Dismissed => (None, None),
            AnchorLocation::Changed { path, lines } if coverage.has_covered(&known.path, &known.stand) => {
                if !known.is_fixed_by(&silence) {
                    return (None, None);
                }
                if reviewer != DETERMINISTIC_REVIEWER {
                    return (Some(ReviewObservation::NotRaised), None);
                }
                let recheck = recheck.get_or_insert_with(|| {
                    let subject = &self.run.subject;
                    let settings = self.services.settings_for(&subject.base_commit, &subject.snapshot_commit);
                    Recheck::new(&settings.smells, self.services.learning().learned_rules())
                });
                let reported = || reports.find_last(&self.view, &known.id).map(|found| found.cloned());
                let problem = (*lines, known.lines.count());
                match recheck.check((path, || ground.content(path)), known.kind, problem, reported) {
                    RecheckResult::StillThere(lines) => (Some(ReviewObservation::StillThere), moved(path, lines)),
                    RecheckResult::NotThere => (Some(ReviewObservation::NotRaised), None),
                    RecheckResult::Unknown => (None, None),
                }
            }
            AnchorLocation::Changed { .. } => (None, None),
            AnchorLocation::Deleted { .. } => (touched.then_some(ReviewObservation::CodeDeleted), None),
            AnchorLocation::FileGone => (touched.then_some(ReviewObservation::FileGone), None),
        }
    }

    /// Returns the findings that ask for the code as it was before an earlier finding was addressed.
    fn find_flip_flops(&self, ground: &mut SnapshotFiles<'_>, findings: &[Finding]) -> Vec<FlipFlop> {
        let replacing: Vec<&Finding> = findings.iter().filter(|finding| replacement(finding).is_some()).collect();
        if replacing.is_empty() {
            return Vec::new();
        }
        let paths: HashSet<&str> = replacing.iter().map(|finding| finding.repo_relative_path.as_str()).collect();
        let addressed = self.find_addressed(ground, &paths);
        // Code that is gone may come back anywhere.
        let mut addressed_in: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
        for (at, known) in addressed.iter().enumerate() {
            addressed_in.entry(known.stand.place().map(|(path, _)| path)).or_default().push(at);
        }
        let mut found = Vec::new();
        for finding in replacing {
            let path = finding.repo_relative_path.as_str();
            let mut places: Vec<usize> =
                [Some(path), None].iter().filter_map(|place| addressed_in.get(place)).flatten().copied().collect();
            places.sort_unstable();
            let mut candidates = places.iter().map(|at| &addressed[*at]).filter(|known| known.id != finding.finding_id);
            let Some(text) = ground.content(path).and_then(|text| replace_lines(&text, finding)) else { continue };
            let undone = candidates.find(|known| {
                let changed = !matches!(known.stand, AnchorLocation::Unchanged { .. });
                let then = ground.locate_with_content(&known.snapshot, &known.path, known.lines, (path, &text));
                changed && matches!(then, Some(AnchorLocation::Unchanged { .. }))
            });
            found.extend(
                undone.map(|known| FlipFlop { finding_id: finding.finding_id.clone(), undoes: known.id.clone() }),
            );
        }
        found
    }

    /// Adds notes about the changes to the outcome.
    fn write_notes(
        &self,
        outcome: &mut ReviewOutcome,
        life: &mut LifecycleReport,
        dispositions: &[Disposition],
        before: FindingCounts,
    ) {
        let mut flipping: HashMap<FindingId, usize> = HashMap::new();
        if !life.flip_flops.is_empty() {
            // An id from elsewhere may stand twice: the first one counts.
            let findings = outcome.findings.iter().enumerate().rev();
            flipping.extend(findings.map(|(at, finding)| (finding.finding_id.clone(), at)));
        }
        for flip in &life.flip_flops {
            let finding = flipping.get(&flip.finding_id).and_then(|at| outcome.findings.get_mut(*at));
            let text = format!("This asks to undo what {} asked for, which was addressed.", flip.undoes);
            // A carried finding already contains the text.
            if let Some(finding) = finding.filter(|finding| !finding.explanation.ends_with(&text)) {
                finding.explanation = [finding.explanation.as_str(), &text].join(" ").trim().to_owned();
            }
            outcome
                .notes
                .push(format!("{} is a flip-flop: it asks to undo what {} asked for", flip.finding_id, flip.undoes));
        }
        let raised: HashSet<&str> = finding_ids(&outcome.findings).collect();
        // Reports of members that the list of a panel has under another id.
        let merged = dispositions.iter().filter(|line| line.merged_into.is_some()).count();
        if merged > 0 {
            let reports = format_count(merged, "report");
            outcome.notes.push(format!("{reports} merged into findings of the list, which have other ids"));
        }
        let judged = |status| {
            let earlier = dispositions.iter().filter(|line| !raised.contains(line.finding_id.as_str()));
            earlier.filter(|line| line.status == status && line.merged_into.is_none()).count()
        };
        for (status, what) in [
            (FindingStatus::Addressed, "confirmed as addressed"),
            (FindingStatus::Obsolete, "obsolete: the code is gone"),
            (FindingStatus::Unresolved, "unresolved: the problem is still there"),
        ] {
            match judged(status) {
                0 => {}
                n => outcome.notes.push(format!("{} {what}", format_count(n, "earlier finding"))),
            }
        }
        hold_back::note_held_back(outcome, &life.held_back, before);
    }
}

impl RunCoverage {
    /// Collects the covered code of an outcome. For the built-in reviewer carried hunks count as covered, because it is
    /// asked again about every finding whose code has changed.
    fn from_outcome(outcome: &ReviewOutcome, reviewer: &str) -> Self {
        let (mut hunks, mut carried): (HashMap<String, Vec<LineRange>>, HashMap<String, Vec<LineRange>>) =
            Default::default();
        for file in &outcome.coverage.files {
            hunks.entry(file.path.clone()).or_default().extend(&file.hunks);
        }
        let asked = if reviewer == DETERMINISTIC_REVIEWER { &mut hunks } else { &mut carried };
        for file in outcome.coverage.carried.iter().map(|carried| &carried.file) {
            asked.entry(file.path.clone()).or_default().extend(&file.hunks);
        }
        let deleted = outcome.coverage.left_out.iter().filter(|file| file.reason == OmissionReason::Deleted);
        Self {
            hunks,
            carried,
            // For a run that did not complete, the list is only a plan.
            deleted: match outcome.status {
                RunStatus::Completed => deleted.map(|file| file.path.clone()).collect(),
                _ => HashSet::new(),
            },
        }
    }

    /// Returns `true` if the run covered or carried the place of a finding.
    fn has_shown(&self, old_path: &str, stand: &AnchorLocation) -> bool {
        self.has_covered(old_path, stand) || self.overlaps_any(&self.carried, stand)
    }

    /// Returns `true` if the run covered the place of a finding, in a file with the old path `old_path`.
    fn has_covered(&self, old_path: &str, stand: &AnchorLocation) -> bool {
        match stand {
            AnchorLocation::FileGone => self.deleted.contains(old_path),
            _ => self.overlaps_any(&self.hunks, stand),
        }
    }

    fn overlaps_any(&self, hunks: &HashMap<String, Vec<LineRange>>, stand: &AnchorLocation) -> bool {
        let (path, lines) = match stand {
            AnchorLocation::Unchanged { path, lines } | AnchorLocation::Changed { path, lines } => (path, *lines),
            // A hunk that only removes lines names the line before it.
            AnchorLocation::Deleted { path, after } => (path, LineRange::new((*after).max(1), after.saturating_add(1))),
            AnchorLocation::FileGone => return false,
        };
        hunks.get(path).is_some_and(|hunks| hunks.iter().any(|hunk| hunk.overlaps(lines)))
    }
}

/// Returns the findings with a new id, and replaces their old ids in the carried files. `before` are the old ids, in
/// the order of the findings.
fn collect_recognised(outcome: &mut ReviewOutcome, before: &[FindingId]) -> Vec<FindingAlias> {
    let renamed = before.iter().zip(&outcome.findings).filter(|(old, finding)| **old != finding.finding_id);
    let renamed =
        renamed.map(|(old, finding)| FindingAlias { finding_id: finding.finding_id.clone(), reported_as: old.clone() });
    let renamed: Vec<FindingAlias> = renamed.collect();
    let mut new_ids: HashMap<&FindingId, &FindingId> = HashMap::new();
    for alias in &renamed {
        new_ids.entry(&alias.reported_as).or_insert(&alias.finding_id);
    }
    for id in outcome.coverage.carried.iter_mut().flat_map(|carried| &mut carried.findings) {
        if let Some(new) = new_ids.get(&*id) {
            *id = (*new).clone();
        }
    }
    renamed
}

fn finding_ids(findings: &[Finding]) -> impl Iterator<Item = &str> {
    findings.iter().map(|finding| finding.finding_id.as_str())
}

fn replacement(finding: &Finding) -> Option<(&str, LineRange)> {
    let suggestion = finding.suggestion.as_ref()?;
    Some((suggestion.replacement.as_deref()?, suggestion.lines.unwrap_or(finding.lines())))
}

/// Returns the text with the finding's replacement applied.
fn replace_lines(text: &[u8], finding: &Finding) -> Option<Vec<u8>> {
    let (replacement, lines) = replacement(finding)?;
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
    let (from, to) = (lines.start.checked_sub(1)? as usize, lines.end as usize);
    let begin = *starts.get(from)?;
    let end = starts.get(to).copied().unwrap_or(text.len());
    let mut changed = text.get(..begin)?.to_vec();
    changed.extend_from_slice(replacement.as_bytes());
    if !replacement.is_empty() && !replacement.ends_with('\n') {
        changed.push(b'\n');
    }
    changed.extend_from_slice(text.get(end..)?);
    Some(changed)
}

#[cfg(test)]
mod tests;
