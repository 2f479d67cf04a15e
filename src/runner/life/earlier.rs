//! The findings that a run may have something to say about: few of many.
//!
//! The last run that saw the whole of the branch has followed every finding up to its snapshot, so only files that
//! differ since then matter, and what was found since. Everything else stands where it stood.

use std::collections::{HashMap, HashSet};

use super::Settling;
use super::ground::Ground;
use crate::domain::{Finding, FindingId, FindingStatus, Kind, LeftOut, LeftOutReason, LineRange, RunStatus};
use crate::policy::anchor::Stand;
use crate::policy::{self, Earlier, Extent, Layer, Present, Reach, Sight};
use crate::review::Outcome;
use crate::store::{FindingRow, LastSaid, RunRow};

/// Other findings of the same code in one file are told apart by numbers up to here when a renamed file's are looked for;
/// own.
const ORDINALS: u32 = 8;

/// An earlier finding, and what became of its code.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub id: FindingId,
    pub kind: Kind,
    pub title: String,
    pub first_run: String,
    /// Where it stood in `snapshot`.
    pub path: String,
    pub lines: LineRange,
    pub snapshot: String,
    /// Who reported it.
    pub reviewer: String,
    pub present: Present,
    /// How far the run's word about it goes.
    pub reach: Option<Reach>,
    pub stand: Stand,
}

/// A finding that a run may have something to say about, by its index in the view, and those of its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub index: usize,
    reporter: usize,
    placed: usize,
    reach: Option<Reach>,
}

fn sight<'a>(row: &RunRow<'a>) -> Sight<'a> {
    Sight {
        scope: row.scope,
        branch: row.branch,
        worktree: row.worktree,
        head: row.head_commit,
        snapshot: row.snapshot_commit,
    }
}

impl Settling<'_> {
    fn own_index(&self) -> Option<usize> {
        self.view.run_index(self.run.run_id.as_str())
    }

    /// The latest run before this one that followed every finding of the branch.
    fn follower(&self) -> Option<usize> {
        let own = self.own_index()?;
        let mine = self.sight();
        ((own + 1)..self.view.run_count()).find(|&index| {
            let row = self.view.run(index);
            let whole = row.status == RunStatus::Completed && row.error_class.is_empty();
            whole
                && row.branch == mine.branch
                && row.worktree == mine.worktree
                && sight(&row).layer() >= mine.layer().max(Layer::Head)
        })
    }

    /// The code of the run and of what was before it; `None` when it cannot be read.
    pub(super) fn ground(&self) -> Option<Ground<'_>> {
        let (repo, snapshot) = (&self.runner.repo, self.run.snapshot_commit.as_str());
        if snapshot.is_empty() {
            return None;
        }
        let before = self.follower().map(|index| self.view.run(index).snapshot_commit);
        let ground = match before.map(|before| Ground::new(repo, before, snapshot)) {
            Some(Ok(ground)) => Ok(ground),
            // Its snapshot may have been let go.
            _ => Ground::new(repo, &self.run.base_commit, snapshot),
        };
        ground.inspect_err(|error| tracing::warn!(run = %self.run.run_id, %error, "findings cannot be followed")).ok()
    }

    /// The findings that the run did not report and that its snapshot may say something about.
    pub(super) fn candidates(&self, ground: &Ground<'_>, outcome: &Outcome) -> Vec<Candidate> {
        let reported: HashSet<&str> = super::ids(&outcome.findings).collect();
        let mut affected: HashSet<&str> = ground.altered().collect();
        affected.extend(outcome.coverage.reviewed().map(|file| file.path.as_str()));
        affected.extend(outcome.coverage.left_out.iter().map(|file| file.path.as_str()));
        // Their content is not in the snapshot: that it shows another one, or none, means nothing.
        let unseen = |file: &&LeftOut| matches!(file.reason, LeftOutReason::Oversized | LeftOutReason::Unreadable);
        let unseen: HashSet<&str> =
            outcome.coverage.left_out.iter().filter(unseen).map(|file| file.path.as_str()).collect();
        let follower = self.follower().unwrap_or(usize::MAX);
        self.related(|row, placed| {
            row.status != FindingStatus::Obsolete
                && !unseen.contains(row.path)
                && (placed < follower || affected.contains(row.path))
                && !reported.contains(row.id)
        })
    }

    /// The findings on these paths that were addressed.
    pub(super) fn addressed(&self, ground: &mut Ground<'_>, paths: &HashSet<&str>) -> Vec<Known> {
        let addressed = self.related(|row, _| row.status == FindingStatus::Addressed && paths.contains(row.path));
        addressed.iter().filter_map(|candidate| self.stand(candidate, Present::Confirmed, ground)).collect()
    }

    /// The findings that are wanted, given the index of the run that saw them last, and that this run may judge.
    pub(super) fn related(&self, wanted: impl Fn(&FindingRow<'_>, usize) -> bool) -> Vec<Candidate> {
        let Some(own) = self.own_index() else { return Vec::new() };
        let mut reaches: HashMap<usize, Option<Reach>> = HashMap::new();
        let is_over = |index: usize| index > own && self.view.run(index).status.is_terminal();
        let mut candidates = Vec::new();
        for index in 0..self.view.finding_count() {
            let row = self.view.finding(index);
            let Some((reporter, placed)) = self.view.reported_by(index).zip(self.view.placed_by(index)) else {
                continue;
            };
            if !wanted(&row, placed) || !is_over(reporter) || !is_over(placed) {
                continue;
            }
            let reach = *reaches.entry(placed).or_insert_with(|| self.reach(&sight(&self.view.run(placed))));
            // A dismissal holds wherever the same code is.
            if reach.is_some() || row.status == FindingStatus::Dismissed {
                candidates.push(Candidate { index, reporter, placed, reach });
            }
        }
        candidates
    }

    pub(super) fn id_of(&self, candidate: &Candidate) -> &str {
        self.view.finding(candidate.index).id
    }

    fn reach(&self, place: &Sight<'_>) -> Option<Reach> {
        let repo = &self.runner.repo;
        policy::reach(&self.sight(), self.extent, place, &|commit, of| repo.is_in_history(commit, of))
    }

    /// A finding that is not settled for good, with what became of it and of its code.
    pub(super) fn look_up(&self, candidate: &Candidate, said: &LastSaid, ground: &mut Ground<'_>) -> Option<Known> {
        let id = self.view.finding(candidate.index).id.parse().ok()?;
        let present = Present::of(said.about(&id).map(|(_, last)| last));
        match present {
            Present::Confirmed | Present::Obsolete => None,
            Present::Dismissed => self.stand(candidate, present, ground),
            Present::Open | Present::Unresolved | Present::Claimed(_) => {
                candidate.reach.and_then(|_| self.stand(candidate, present, ground))
            }
        }
    }

    fn stand(&self, candidate: &Candidate, present: Present, ground: &mut Ground<'_>) -> Option<Known> {
        let row = self.view.finding(candidate.index);
        let (reporter, place) = (self.view.run(candidate.reporter), self.view.run(candidate.placed));
        let stand = ground.stand(place.snapshot_commit, row.path, row.lines())?;
        let now = stand.place().map_or(row.path, |(path, _)| path);
        // A file that is in HEAD as it was then says nothing about what was not committed.
        if candidate.reach == Some(Reach::Landed) && ground.is_as_in(now, place.head_commit, row.path) {
            return None;
        }
        Some(Known {
            id: row.id.parse().ok()?,
            kind: row.kind,
            title: row.title.to_owned(),
            first_run: row.first_run.to_owned(),
            path: row.path.to_owned(),
            lines: row.lines(),
            snapshot: place.snapshot_commit.to_owned(),
            reviewer: reporter.reviewer.to_owned(),
            present,
            reach: candidate.reach,
            stand,
        })
    }

    /// Gives reports of problems that are known the ids that they have.
    pub(super) fn recognise(&self, ground: &mut Ground<'_>, known: &[Known], findings: &mut [Finding]) {
        let is_new = |finding: &Finding| {
            let row = self.view.finding_index(finding.finding_id.as_str()).map(|index| self.view.finding(index));
            row.is_none_or(|row| row.first_run == self.run.run_id.as_str())
        };
        let mut taken: HashSet<FindingId> = HashSet::new();
        let mut renamed = |finding: &mut Finding| -> bool {
            let Some(old) = ground.old_name(&finding.repo_relative_path) else { return false };
            let id = |ordinal| FindingId::of(finding.kind.word(), old, &finding.quoted_code, ordinal);
            let found = (0..ORDINALS).map(id).find_map(|id| {
                let known = known.iter().find(|known| known.id == id)?;
                taken.insert(id).then_some(known)
            });
            if let Some(known) = found {
                self.rename(finding, known);
            }
            found.is_some()
        };
        let mut open: Vec<&mut Finding> = Vec::new();
        for finding in findings.iter_mut().filter(|finding| is_new(finding)) {
            if !renamed(finding) {
                open.push(finding);
            }
        }
        let left: Vec<&Known> =
            known.iter().filter(|known| known.present != Present::Confirmed && !taken.contains(&known.id)).collect();
        let earlier: Vec<Earlier<'_>> = left
            .iter()
            .map(|known| Earlier {
                kind: known.kind,
                title: &known.title,
                lines: known.lines.count(),
                stand: &known.stand,
                dismissed: known.present == Present::Dismissed,
            })
            .collect();
        let reports: Vec<&Finding> = open.iter().map(|finding| &**finding).collect();
        let found = policy::recognise(&reports, &earlier);
        for (finding, known) in open.into_iter().zip(found) {
            if let Some(known) = known.and_then(|known| left.get(known)) {
                self.rename(finding, known);
            }
        }
    }

    fn rename(&self, finding: &mut Finding, known: &Known) {
        finding.finding_id = known.id.clone();
        if let Ok(first) = known.first_run.parse() {
            finding.first_run_id = first;
        }
        finding.detail_ref = format!("outputs/{}.json#{}", self.run.run_id, known.id);
    }

    /// The latest earlier reviews of the branch with the same eyes, by their index, at most `most`.
    pub(super) fn looked_before(&self, most: usize) -> Vec<usize> {
        let Some(own) = self.own_index() else { return Vec::new() };
        let eyes = policy::Eyes {
            reviewer: &self.run.reviewer,
            model: &self.run.model,
            reasoning_effort: &self.run.reasoning_effort,
            policy_version: &self.run.prompt_policy_version,
        };
        let runs = ((own + 1)..self.view.run_count()).filter(|&index| {
            let row = self.view.run(index);
            let its = policy::Eyes {
                reviewer: row.reviewer,
                model: row.model,
                reasoning_effort: row.reasoning_effort,
                policy_version: row.policy_version,
            };
            row.status == RunStatus::Completed
                && eyes.come_after(&its)
                && policy::reach(&self.sight(), Extent::Whole, &sight(&row), &|_, _| true).is_some()
        });
        runs.take(most).collect()
    }
}
