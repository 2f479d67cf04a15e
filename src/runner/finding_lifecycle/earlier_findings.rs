//! Selects the earlier findings that a run can judge.
//!
//! The last run that saw the whole branch has located every finding up to its snapshot. Therefore only findings in
//! files that differ since then, and findings reported since then, are candidates. All others are unchanged.

use std::collections::{HashMap, HashSet};

use super::FindingSettlement;
use super::report_reader::ReportReader;
use super::snapshot_files::SnapshotFiles;
use crate::domain::{
    Finding, FindingId, FindingStatus, Kind, LineRange, OmissionReason, OmittedFile, RunRecord, RunStatus, Source,
};
use crate::policy::anchor::AnchorLocation;
use crate::policy::{self, FindingState, MatchCandidate, ReviewExtent, RunAuthority, SnapshotLayer, SnapshotView};
use crate::review::ReviewOutcome;
use crate::store::{FindingRow, LatestDispositions, RunRow};

/// Maximum number of findings with the same code in one file that are tried when the findings of a renamed file are
/// matched. Not from the literature.
const MAX_ORDINALS: u32 = 8;

/// An earlier finding and the current state of its code.
#[derive(Debug, Clone)]
pub(super) struct EarlierFinding {
    pub id: FindingId,
    pub kind: Kind,
    pub title: String,
    pub first_run: String,
    /// Path in `snapshot`.
    pub path: String,
    pub lines: LineRange,
    pub snapshot: String,
    /// Names of the reviewers that reported the finding: one, or those of a panel.
    pub reviewers: Vec<String>,
    pub present: FindingState,
    /// How far the run may judge the finding; `None` if it may not.
    pub reach: Option<RunAuthority>,
    pub stand: AnchorLocation,
}

/// A finding that a run may judge: its index in the view, and the indices of its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlierCandidate {
    pub index: usize,
    reporter: usize,
    placed: usize,
    reach: Option<RunAuthority>,
}

/// Returns the snapshot of a run; `scope` is the text of its scope.
pub(super) fn sight_from_run<'a>(run: &'a RunRecord, scope: &'a str) -> SnapshotView<'a> {
    let subject = &run.subject;
    SnapshotView {
        scope,
        branch: &subject.branch,
        worktree: &subject.worktree,
        head: &subject.head_commit,
        snapshot: &subject.snapshot_commit,
    }
}

fn sight_from_row<'a>(row: &RunRow<'a>) -> SnapshotView<'a> {
    SnapshotView {
        scope: row.scope,
        branch: row.branch,
        worktree: row.worktree,
        head: row.head_commit,
        snapshot: row.snapshot_commit,
    }
}

impl FindingSettlement<'_> {
    fn own_index(&self) -> Option<usize> {
        self.view.run_index(self.run.run_id.as_str())
    }

    /// Returns true if the run at an index was there before the code that this run shows.
    fn is_earlier(&self, index: usize, own: usize) -> bool {
        if self.is_answer { index != own } else { index > own }
    }

    /// Returns the index of the latest earlier run that located every finding of the branch.
    pub(super) fn find_follower(&self) -> Option<usize> {
        *self.follower.get_or_init(|| self.search_follower())
    }

    fn search_follower(&self) -> Option<usize> {
        let own = self.own_index()?;
        let mine = self.sight();
        let mut whole = (0..self.view.run_count()).filter(|&index| self.is_earlier(index, own)).filter(|&index| {
            let row = self.view.run(index);
            row.status == RunStatus::Completed
                && row.error_class.is_empty()
                && !row.incomplete
                && row.branch == mine.branch
                && row.worktree == mine.worktree
                && sight_from_row(&row).layer() >= mine.layer().max(SnapshotLayer::Head)
        });
        // The first one is nearly always it. After many reused reviews of other machines, it is far back: the more records are
        // read at once, the less often the file is read.
        let mut at_once = 1;
        loop {
            let batch: Vec<usize> = whole.by_ref().take(at_once).collect();
            if batch.is_empty() {
                return None;
            }
            if let Some(follower) = self.find_locating_run(&batch) {
                return Some(follower);
            }
            at_once *= 4;
        }
    }

    /// Opens the files of the run's snapshot and of the snapshot before. Returns `None` if they cannot be read.
    pub(super) fn open_snapshot_files(&self) -> Option<SnapshotFiles<'_>> {
        let (repo, snapshot) = (&self.services.repo, self.run.subject.snapshot_commit.as_str());
        if snapshot.is_empty() {
            return None;
        }
        let before = self.find_follower().map(|index| self.view.run(index).snapshot_commit);
        let ground = match before.map(|before| SnapshotFiles::new(repo, before, snapshot)) {
            Some(Ok(ground)) => Ok(ground),
            // The earlier snapshot may be deleted.
            _ => SnapshotFiles::new(repo, &self.run.subject.base_commit, snapshot),
        };
        ground.inspect_err(|error| tracing::warn!(run = %self.run.run_id, %error, "findings cannot be followed")).ok()
    }

    /// Returns the findings that the run did not report and that its snapshot may say something about.
    pub(super) fn find_candidates(&self, ground: &SnapshotFiles<'_>, outcome: &ReviewOutcome) -> Vec<EarlierCandidate> {
        let reported: HashSet<&str> = super::finding_ids(&outcome.findings).collect();
        let mut affected: HashSet<&str> = ground.altered_paths().collect();
        affected.extend(outcome.coverage.reviewed_files().map(|file| file.path.as_str()));
        affected.extend(outcome.coverage.left_out.iter().map(|file| file.path.as_str()));
        // The snapshot does not contain these files, so their absence is no evidence.
        let unseen =
            |file: &&OmittedFile| matches!(file.reason, OmissionReason::Oversized | OmissionReason::Unreadable);
        let unseen: HashSet<&str> =
            outcome.coverage.left_out.iter().filter(unseen).map(|file| file.path.as_str()).collect();
        let follower = self.find_follower().unwrap_or(usize::MAX);
        self.find_related(|row, placed| {
            row.status != FindingStatus::Obsolete
                && !unseen.contains(row.path)
                && (placed < follower || affected.contains(row.path))
                && !reported.contains(row.id)
        })
    }

    /// Returns the addressed findings on these paths.
    pub(super) fn find_addressed(&self, ground: &mut SnapshotFiles<'_>, paths: &HashSet<&str>) -> Vec<EarlierFinding> {
        let addressed = self.find_related(|row, _| row.status == FindingStatus::Addressed && paths.contains(row.path));
        let mut reports = self.read_reports(&addressed);
        let located = addressed
            .iter()
            .filter_map(|candidate| self.locate(candidate, FindingState::Confirmed, ground, &mut reports));
        located.collect()
    }

    /// Returns the findings that match `wanted` and that this run may judge. `wanted` gets a finding and the index of
    /// the run that saw it last.
    pub(super) fn find_related(&self, wanted: impl Fn(&FindingRow<'_>, usize) -> bool) -> Vec<EarlierCandidate> {
        let Some(own) = self.own_index() else { return Vec::new() };
        let mut reaches: HashMap<usize, Option<RunAuthority>> = HashMap::new();
        let is_over = |index: usize| self.is_earlier(index, own) && self.view.run(index).status.is_terminal();
        let mut candidates = Vec::new();
        for index in 0..self.view.finding_count() {
            let row = self.view.finding(index);
            let Some((mut reporter, placed)) = self.view.last_reporting_run(index).zip(self.view.locating_run(index))
            else {
                continue;
            };
            let siblings = &self.panel.siblings;
            if siblings.contains(&reporter) {
                // What was known before the panel is known, whichever member has ended.
                let Some(first) = self.view.first_reporting_run(index) else { continue };
                reporter = first;
            }
            let is_placed = is_over(placed) || siblings.contains(&placed);
            if siblings.contains(&reporter) || !wanted(&row, placed) || !is_over(reporter) || !is_placed {
                continue;
            }
            let reach =
                *reaches.entry(placed).or_insert_with(|| self.compute_reach(&sight_from_row(&self.view.run(placed))));
            // A dismissal holds wherever the same code is.
            if reach.is_some() || row.status == FindingStatus::Dismissed {
                candidates.push(EarlierCandidate { index, reporter, placed, reach });
            }
        }
        candidates
    }

    pub(super) fn candidate_id(&self, candidate: &EarlierCandidate) -> &str {
        self.view.finding(candidate.index).id
    }

    /// Returns a reader of the reports of candidates.
    pub(super) fn read_reports(&self, candidates: &[EarlierCandidate]) -> ReportReader<'_> {
        let ids = candidates.iter().map(|candidate| self.candidate_id(candidate).to_owned());
        ReportReader::new(&self.services.store, ids.collect())
    }

    /// Returns the reviewers that reported a candidate, as in [`EarlierFinding::reviewers`]. `reports` comes from
    /// [`Self::read_reports`].
    pub(super) fn candidate_reporters(
        &self,
        candidate: &EarlierCandidate,
        reports: &mut ReportReader<'_>,
    ) -> Vec<String> {
        self.list_reporters(self.view.run(candidate.reporter).reviewer, candidate.index, reports)
    }

    fn compute_reach(&self, place: &SnapshotView<'_>) -> Option<RunAuthority> {
        let repo = &self.services.repo;
        policy::decide_authority(&self.sight(), self.extent, place, &|commit, of| repo.is_in_history(commit, of))
    }

    /// Returns a finding that is not finally settled, with its status and the state of its code. `reports` is as in
    /// [`Self::candidate_reporters`].
    pub(super) fn look_up(
        &self,
        candidate: &EarlierCandidate,
        said: &LatestDispositions,
        ground: &mut SnapshotFiles<'_>,
        reports: &mut ReportReader<'_>,
    ) -> Option<EarlierFinding> {
        let id = self.view.finding(candidate.index).id.parse().ok()?;
        let present = FindingState::from_last_disposition(said.get(&id).map(|(_, last)| last));
        match present {
            FindingState::Confirmed | FindingState::Obsolete | FindingState::DismissedAndMerged => None,
            FindingState::Dismissed => self.locate(candidate, present, ground, reports),
            FindingState::Open | FindingState::Unresolved | FindingState::Claimed(_) => {
                candidate.reach.and_then(|_| self.locate(candidate, present, ground, reports))
            }
        }
    }

    fn locate(
        &self,
        candidate: &EarlierCandidate,
        present: FindingState,
        ground: &mut SnapshotFiles<'_>,
        reports: &mut ReportReader<'_>,
    ) -> Option<EarlierFinding> {
        let row = self.view.finding(candidate.index);
        let place = self.view.run(candidate.placed);
        let stand = ground.locate_lines(place.snapshot_commit, row.path, row.lines())?;
        let now = stand.place().map_or(row.path, |(path, _)| path);
        // A file that is in HEAD unchanged is no evidence about uncommitted code.
        if candidate.reach == Some(RunAuthority::CommittedFiles) && ground.is_same_in(now, place.head_commit, row.path)
        {
            return None;
        }
        Some(EarlierFinding {
            id: row.id.parse().ok()?,
            kind: row.kind,
            title: row.title.to_owned(),
            first_run: row.first_run.to_owned(),
            path: row.path.to_owned(),
            lines: row.lines(),
            snapshot: place.snapshot_commit.to_owned(),
            reviewers: self.candidate_reporters(candidate, reports),
            present,
            reach: candidate.reach,
            stand,
        })
    }

    /// Gives reports of known problems the ids of the known findings.
    pub(super) fn recognise(&self, ground: &mut SnapshotFiles<'_>, known: &[EarlierFinding], findings: &mut [Finding]) {
        let is_new = |finding: &Finding| {
            let row = self.view.finding_index(finding.finding_id.as_str()).map(|index| self.view.finding(index));
            row.is_none_or(|row| row.first_run == self.run.run_id.as_str())
        };
        let known_at: HashMap<&FindingId, usize> =
            known.iter().enumerate().map(|(at, known)| (&known.id, at)).collect();
        let mut taken: HashSet<FindingId> = HashSet::new();
        let mut renamed = |finding: &mut Finding| -> bool {
            let Some(old) = ground.old_name(&finding.repo_relative_path) else { return false };
            let id = |ordinal| FindingId::from_parts(finding.kind.word(), old, &finding.quoted_code, ordinal);
            let mut places: Vec<usize> = (0..MAX_ORDINALS)
                .map(id)
                .flat_map(|id| (0..FindingId::MAX_VARIANTS).map(move |n| id.variant(n)))
                .filter(|id| !taken.contains(id))
                .filter_map(|id| known_at.get(&id).copied())
                .collect();
            places.sort_unstable();
            // Of several problems of the same code, the one with the same title; else the first one.
            let mut same = places.iter().map(|at| &known[*at]).filter(|known| self.may_be_same(finding, known));
            let found = same.clone().find(|known| known.title == finding.title).or_else(|| same.next());
            if let Some(known) = found {
                taken.insert(known.id.clone());
            }
            if let Some(known) = found {
                self.reuse_id(finding, known);
            }
            found.is_some()
        };
        let mut open: Vec<&mut Finding> = Vec::new();
        for finding in findings.iter_mut().filter(|finding| is_new(finding)) {
            if !renamed(finding) {
                open.push(finding);
            }
        }
        let left: Vec<&EarlierFinding> = known
            .iter()
            .filter(|known| known.present != FindingState::Confirmed && !taken.contains(&known.id))
            .collect();
        let earlier: Vec<MatchCandidate<'_>> = left
            .iter()
            .map(|known| MatchCandidate {
                id: &known.id,
                kind: known.kind,
                title: &known.title,
                lines: known.lines.count(),
                stand: &known.stand,
                dismissed: known.present == FindingState::Dismissed,
            })
            .collect();
        let reports: Vec<&Finding> = open.iter().map(|finding| &**finding).collect();
        let may_be_same = |report: usize, known: usize| self.may_be_same(reports[report], left[known]);
        let found = policy::match_earlier_findings(&reports, &earlier, may_be_same);
        for (finding, known) in open.into_iter().zip(found) {
            if let Some(known) = known.and_then(|known| left.get(known)) {
                self.reuse_id(finding, known);
            }
        }
    }

    /// Returns false if a finding of an imported report is another problem than an earlier finding, although kind and
    /// place are equal: the tool reports it under another rule. A smell of another reviewer is the same by its kind.
    fn may_be_same(&self, finding: &Finding, known: &EarlierFinding) -> bool {
        let tool = self.run.reviewed_by.name.as_str();
        match self.run.source {
            Source::Import if known.reviewers.iter().any(|reviewer| reviewer == tool) => {
                policy::is_same_rule(tool, &finding.title, &known.title)
            }
            Source::Import => finding.kind.is_smell(),
            _ => true,
        }
    }

    fn reuse_id(&self, finding: &mut Finding, known: &EarlierFinding) {
        finding.finding_id = known.id.clone();
        if let Ok(first) = known.first_run.parse() {
            finding.first_run_id = first;
        }
        finding.detail_ref = format!("outputs/{}.json#{}", self.run.run_id, known.id);
    }

    /// Returns the indices of the latest earlier reviews of the branch with the same reviewer profile, at most `most`.
    pub(super) fn find_earlier_reviews(&self, most: usize) -> Vec<usize> {
        let Some(own) = self.own_index() else { return Vec::new() };
        let eyes = policy::ReviewerProfile {
            reviewer: &self.run.reviewed_by.name,
            model: &self.run.reviewed_by.model,
            reasoning_effort: &self.run.reviewed_by.reasoning_effort,
            policy_version: &self.run.subject.prompt_policy_version,
        };
        let runs = ((own + 1)..self.view.run_count()).filter(|&index| {
            let row = self.view.run(index);
            let its = policy::ReviewerProfile {
                reviewer: row.reviewer,
                model: row.model,
                reasoning_effort: row.reasoning_effort,
                policy_version: row.policy_version,
            };
            row.status == RunStatus::Completed
                // A review of another machine says nothing about what is late here.
                && row.worktree == self.run.subject.worktree
                && eyes.is_repeat_of(&its)
                && policy::decide_authority(&self.sight(), ReviewExtent::Whole, &sight_from_row(&row), &|_, _| true)
                    .is_some()
        });
        runs.take(most).collect()
    }
}
