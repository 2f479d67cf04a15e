//! Finds the changes that nobody has reviewed when the cockpit opens, and has the built-in reviewer review them.
//!
//! - No other reviewer is ever started here: nobody has asked for it.
//! - A change counts as reviewed if any reviewer has reviewed, or is reviewing, the same content. A worktree that was
//!   reviewed and then committed is not reviewed again.
//! - In a repository without runs, the default scope is the change: nobody has reviewed the history before it.
//! - Runs of machines that were forgotten answer nothing, here as elsewhere.

use std::collections::HashSet;

use crate::config::OpeningMode;
use crate::domain::{CancelReason, OmittedFile, ReviewedCode, RunId, RunStatus, Scope, Source, text};
use crate::git::{GitError, NewCommits, Snapshot};
use crate::runner::{BUILTIN_REVIEWER, Launcher, ReviewDemand, ReviewRequest, RunnerError, Services, known_runs};
use crate::store::{RunRow, StoreView};

/// Maximum number of new commits that are reviewed unasked; more are offered. Not from the literature: a day of a
/// team. More are a pull of other people's history, whose findings would bury the user's own.
const MAX_UNASKED_COMMITS: usize = 30;
/// Maximum number of reviewed commits from which new commits are told apart. The newest count.
const MAX_KNOWN_COMMITS: usize = 64;

/// Change that nobody has reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreviewedChange {
    pub scope: Scope,
    /// Description, such as "2 new commits" or "uncommitted changes in 3 files".
    pub text: String,
    /// The change is too large to be reviewed unasked.
    pub is_large: bool,
}

/// The outcome of opening the cockpit.
#[derive(Debug, Clone, Default)]
pub struct OpeningOutcome {
    /// No run is known yet in this repository.
    pub is_first: bool,
    /// Changes that nobody has reviewed and that are not under review now.
    pub offered: Vec<UnreviewedChange>,
    /// Changes that the built-in reviewer reviews now, with their runs.
    pub started: Vec<(UnreviewedChange, RunId)>,
    /// Reason why there is nothing to review in a repository without runs.
    pub nothing: Option<String>,
    /// Reasons why results that answer for changes could not be applied to all findings.
    pub unsettled: Vec<String>,
}

/// Runs of a view without those of forgotten machines.
struct CountingRuns<'v> {
    view: &'v StoreView,
    /// Ids of the runs that do not count.
    forgotten: HashSet<String>,
}

impl<'v> CountingRuns<'v> {
    fn load(services: &Services, view: &'v StoreView) -> Result<Self, RunnerError> {
        let ids = (0..view.run_count()).map(|index| view.run_id(index));
        Ok(Self { view, forgotten: services.team().find_forgotten_runs(ids)? })
    }

    /// Returns the rows, newest first.
    fn rows(&self) -> impl Iterator<Item = RunRow<'_>> {
        known_runs::run_rows(self.view).filter(move |row| !self.forgotten.contains(row.id))
    }

    /// Returns the row of the oldest run.
    fn oldest(&self) -> Option<RunRow<'_>> {
        let mut rows = (0..self.view.run_count()).rev().map(|index| self.view.run(index));
        rows.find(|row| !self.forgotten.contains(row.id))
    }
}

impl Launcher<'_> {
    /// Looks for changes that nobody has reviewed and, as the settings say, has the built-in reviewer review them.
    ///
    /// # Errors
    ///
    /// If a snapshot cannot be taken, or the store cannot be read or written.
    pub fn review_on_open(&self) -> Result<OpeningOutcome, RunnerError> {
        let mode = self.services.settings.on_open;
        if mode == OpeningMode::Nothing {
            return Ok(OpeningOutcome::default());
        }
        let view = self.services.store.runs_view()?;
        let runs = CountingRuns::load(self.services, &view)?;
        let is_first = runs.rows().next().is_none();
        let (unreviewed, nothing) = match is_first {
            true => self.find_first_change()?,
            false => (self.find_unreviewed(&runs)?, None),
        };
        let mut outcome = OpeningOutcome { is_first, nothing, ..OpeningOutcome::default() };
        for change in unreviewed {
            if mode == OpeningMode::Offer || change.is_large {
                outcome.offered.push(change);
                continue;
            }
            let requested = self.request_review(&ReviewRequest {
                scope: Some(change.scope.clone()),
                reviewer: Some(BUILTIN_REVIEWER.to_owned()),
                prompt_set: None,
                source: Source::Cockpit,
                started_in_session: 0,
                demand: ReviewDemand::AsNeeded,
            })?;
            outcome.unsettled.extend(requested.settled.describe_failure().map(|why| format!("{}: {why}", change.text)));
            if requested.decision.action.starts_run() {
                outcome.started.push((change, requested.run.run_id));
            }
        }
        Ok(outcome)
    }

    /// Returns the change of the default scope, or the reason why there is nothing to review.
    fn find_first_change(&self) -> Result<(Vec<UnreviewedChange>, Option<String>), RunnerError> {
        let scope = self.services.settings.default_scope.clone();
        let snapshot = match &scope {
            Some(scope) => self.services.repo.take_snapshot(scope, &self.services.filter()),
            None => self.services.repo.take_default_snapshot(&self.services.filter()),
        };
        match snapshot {
            Ok(snapshot) if snapshot.change.files.is_empty() => {
                let (none, name) = match snapshot.scope {
                    Scope::Worktree => ("there are no uncommitted changes", "the uncommitted changes".to_owned()),
                    Scope::Staged => ("there are no staged changes", "the staged changes".to_owned()),
                    _ => ("", name_change(&snapshot)),
                };
                let reason = match snapshot.change.left_out.as_slice() {
                    [] if !none.is_empty() => none.to_owned(),
                    [] => format!("there is nothing to review in {name}"),
                    left_out => {
                        let (files, why) = (left_out.len(), OmittedFile::describe_reasons(left_out));
                        let files = text::format_count(files, "file");
                        format!("there is nothing to review in {name}: {files} left out ({why})")
                    }
                };
                Ok((Vec::new(), Some(reason)))
            }
            Ok(snapshot) => {
                let text = describe_change(&snapshot);
                Ok((vec![UnreviewedChange { scope: snapshot.scope, text, is_large: false }], None))
            }
            // A repository without a commit or without a base has nothing to review yet.
            Err(error @ (GitError::Unborn { .. } | GitError::NoBase { .. } | GitError::NoMergeBase { .. })) => {
                Ok((Vec::new(), Some(error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the new commits, then the uncommitted changes, unless somebody has reviewed them.
    fn find_unreviewed(&self, runs: &CountingRuns<'_>) -> Result<Vec<UnreviewedChange>, RunnerError> {
        let (repo, filter) = (&self.services.repo, self.services.filter());
        let mut unreviewed = Vec::new();
        if let Some(NewCommits { count, scope }) = repo.find_new_commits(&known_commits(runs))? {
            let is_large = count > MAX_UNASKED_COMMITS;
            let is_new = is_large || {
                let snapshot = repo.take_snapshot(&scope, &filter)?;
                !snapshot.change.files.is_empty() && !is_reviewed(runs, &snapshot)
            };
            if is_new {
                let text = text::format_count(count, "new commit");
                unreviewed.push(UnreviewedChange { scope, text, is_large });
            }
        }
        if repo.has_worktree() {
            let snapshot = repo.take_snapshot(&Scope::Worktree, &filter)?;
            if !snapshot.change.files.is_empty() && !is_reviewed(runs, &snapshot) {
                let text = describe_change(&snapshot);
                unreviewed.push(UnreviewedChange { scope: Scope::Worktree, text, is_large: false });
            }
        }
        Ok(unreviewed)
    }
}

fn describe_change(snapshot: &Snapshot) -> String {
    match &snapshot.scope {
        Scope::Worktree => {
            format!("uncommitted changes in {}", text::format_count(snapshot.change.files.len(), "file"))
        }
        _ => name_change(snapshot),
    }
}

/// Names a change as people do: `4be4b76`, `HEAD~3..HEAD`, `topic since main`.
fn name_change(snapshot: &Snapshot) -> String {
    let code = ReviewedCode {
        scope: &snapshot.scope.to_string(),
        scope_hash: "",
        snapshot_commit: &snapshot.snapshot_commit,
        branch: &snapshot.branch,
    };
    code.name().into_owned()
}

/// Returns `true` if a reviewer has reviewed or is reviewing this content, or a person has stopped its review.
fn is_reviewed(runs: &CountingRuns<'_>, snapshot: &Snapshot) -> bool {
    runs.rows().any(|row| {
        let same = row.scope_hash == snapshot.scope_hash && row.diff_fingerprint == snapshot.diff_fingerprint;
        let stopped = row.reviewer == BUILTIN_REVIEWER && row.cancel_reason == CancelReason::UserStop.word();
        same && (is_answer(&row) || stopped)
    })
}

/// Returns `true` if a run has given an answer about its content, or will.
fn is_answer(row: &RunRow<'_>) -> bool {
    match row.status {
        RunStatus::Completed | RunStatus::Skipped => true,
        status => !status.is_terminal() && row.cancel_reason.is_empty(),
    }
}

/// Returns the tips of reviewed commits, newest first, and HEAD of the oldest run: what it contains is older than the
/// use of revdeck here.
fn known_commits(runs: &CountingRuns<'_>) -> Vec<String> {
    let mut seen = HashSet::new();
    let reviewed = runs.rows().filter(|row| is_answer(row) && !row.is_fix_review());
    let tips = reviewed.filter_map(|row| match row.scope.parse().ok()? {
        Scope::Commit(_) | Scope::Range { .. } | Scope::Since { .. } | Scope::Branch(_) => Some(row.snapshot_commit),
        Scope::All => Some(row.head_commit),
        Scope::Worktree | Scope::Staged => None,
    });
    let oldest = runs.oldest().map(|row| row.head_commit);
    let tips = tips.filter(|tip| !tip.is_empty() && seen.insert(*tip)).take(MAX_KNOWN_COMMITS);
    tips.chain(oldest.filter(|head| !head.is_empty())).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MachineName, RunOrigin, TeamPerson};
    use crate::runner::fixture::RunnerFixture;
    use crate::store::TeamProgress;

    #[test]
    fn a_change_of_which_all_is_left_out_says_why() {
        let fixture = RunnerFixture::new();
        let lock = &b"version = 4\n"[..];
        fixture.commit_files(&[("Cargo.lock", lock), ("data.py", &b"a\0b"[..]), ("poetry.lock", lock)]);
        let (offered, nothing) = fixture.services.launcher().find_first_change().expect("a look");
        assert!(offered.is_empty());
        let nothing = nothing.expect("a reason");
        assert!(nothing.starts_with("there is nothing to review in "), "{nothing}");
        assert!(nothing.ends_with(": 3 files left out (2 lock file, binary)"), "{nothing}");
    }

    #[test]
    fn what_a_forgotten_machine_has_reviewed_is_not_reviewed() {
        let fixture = RunnerFixture::new();
        let (services, eve): (_, MachineName) = (&fixture.services, "eve-1".parse().expect("a name"));
        let origin = Some(RunOrigin { machine: eve.clone(), person: TeamPerson::default() });
        fixture.commit_files(&[("a.py", &b"a = 1\n"[..])]);
        std::fs::write(fixture.folder.path().join("repo/a.py"), "a = 2\n").expect("written");
        let launcher = services.launcher();
        let request = ReviewRequest {
            scope: Some(Scope::Worktree),
            reviewer: Some(BUILTIN_REVIEWER.to_owned()),
            prompt_set: None,
            source: Source::Cockpit,
            started_in_session: 0,
            demand: ReviewDemand::AsNeeded,
        };
        let (_, mut of_eve) = launcher.draft_unrecorded_run(&request).expect("a draft");
        (of_eve.status, of_eve.attempt, of_eve.team) = (RunStatus::Completed, 1, origin.clone());
        services.store.with_lock(|locked| locked.create_run(&of_eve)).expect("recorded");
        // Own commits, and newer ones of her.
        for (commit, origin) in [("1111", None), ("2222", origin)] {
            fixture.record_working_run(|record| {
                record.subject.scope = Scope::Commit("HEAD".to_owned());
                record.subject.snapshot_commit = commit.to_owned();
                record.team = origin;
            });
        }
        let of_eve_head = of_eve.subject.head_commit.as_str();
        for (forgotten, unreviewed, commits) in
            [(vec![], 0, vec!["2222", "1111", of_eve_head]), (vec![eve], 1, vec!["1111"])]
        {
            let progress = TeamProgress { forgotten, ..TeamProgress::default() };
            services.store.write_team_progress(&progress).expect("stored");
            let view = services.store.runs_view().expect("a view");
            let runs = CountingRuns::load(services, &view).expect("readable");
            assert_eq!(known_commits(&runs), commits);
            assert_eq!(launcher.find_unreviewed(&runs).expect("found").len(), unreviewed, "{commits:?}");
        }
    }
}
