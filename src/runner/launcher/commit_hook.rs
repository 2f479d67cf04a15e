//! The git hooks that run after a commit, and after commits were rewritten.
//!
//! - The hook returns at once, because `git commit` waits for it. A separate process takes the snapshot and requests
//!   the review; it has none of the caller's streams, process group and git variables.
//! - The review is of the commit that HEAD is when the hook runs, whatever HEAD is later.
//! - Rewritten commits are noticed when git is done: reviews of commits that are gone end or are adopted. Nothing is
//!   requested.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::config::Paths;
use crate::domain::{GitOperation, Scope, Source, Time, WatchTrigger, text};
use crate::git::Repo;
use crate::policy::NoReviewReason;
use crate::runner::{Launcher, RequestOutcome, ReviewDemand, ReviewRequest, RunnerError, process};
use crate::store::RecoveryNotice;

const HOOK_LOG: &str = "hook.log";
/// Maximum time that a rebase may take to end after it has called its hook. Afterwards it is up to the next command to
/// notice the rewritten commits.
const MAX_REBASE_END: Duration = Duration::from_secs(30);
/// Interval between two looks whether the rebase has ended.
const REBASE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The outcome of the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitHookOutcome {
    Asked,
    /// A rebase creates many commits, and nobody will look at most of them.
    Rebasing,
}

/// Starts a separate process that requests a review of the commit at HEAD.
///
/// # Errors
///
/// If `folder` is not in a repository, or the process cannot be started.
pub fn start_commit_review(folder: &Path, paths: &Paths) -> Result<CommitHookOutcome, RunnerError> {
    let repo = Repo::discover(folder)?;
    if repo.operation() == Some(GitOperation::Rebase) {
        return Ok(CommitHookOutcome::Rebasing);
    }
    let arguments = ["hook", "run", "post-commit", "--commit", &repo.head()];
    process::spawn_detached(&repo, paths, &repo.root(), &arguments, Stdio::null(), HOOK_LOG)?;
    Ok(CommitHookOutcome::Asked)
}

/// Starts a separate process that notices which commits were rewritten.
///
/// # Errors
///
/// If `folder` is not in a repository, or the process cannot be started.
pub fn start_rewrite_notice(folder: &Path, paths: &Paths) -> Result<(), RunnerError> {
    let repo = Repo::discover(folder)?;
    let arguments = ["hook", "run", "post-rewrite", "--commit", &repo.head()];
    process::spawn_detached(&repo, paths, &repo.root(), &arguments, Stdio::null(), HOOK_LOG)?;
    Ok(())
}

/// Writes the reason of a failed hook into the log, because nobody sees the hook's output.
pub fn log_failure(paths: &Paths, now: Time, folder: &Path, failure: &str) {
    let Some(mut log) = process::open_log(paths, HOOK_LOG) else { return };
    let line = format!("{now} {}: {failure}", folder.display());
    let _ = writeln!(log, "{}", text::sanitize_line(&line));
}

/// Describes for the log why a commit is not reviewed, or why the findings do not show that it was; `None` if all is well.
pub fn describe_commit_problem(commit: &str, asked: &Result<RequestOutcome, NoReviewReason>) -> Option<String> {
    match asked {
        Ok(requested) => requested.settled.describe_failure().map(|failure| format!("{commit}: {failure}")),
        Err(why) => Some(format!("{commit} is not reviewed: {why}")),
    }
}

impl Launcher<'_> {
    /// Requests a review of a commit for the hook, under the rules of `[watch]` for unrequested reviews. The inner
    /// `Err` is the reason why the commit is not reviewed now.
    ///
    /// # Errors
    ///
    /// If the snapshot cannot be taken, or the store cannot be read or written.
    pub fn review_commit(&self, commit: &str) -> Result<Result<RequestOutcome, NoReviewReason>, RunnerError> {
        process::ignore_the_terminal();
        if let Some(why) = self.services.watcher().reason_not_to_review(WatchTrigger::Commit)? {
            // The commit may have come in place of one that is under review.
            self.settle_needless_or_log();
            return Ok(Err(why));
        }
        let scope = Some(Scope::Commit(commit.to_owned()));
        let reviewer = Some(self.services.reviewers().automatic_reviewer()?.name);
        let requested = self.request_review(&ReviewRequest {
            scope,
            reviewer,
            prompt_set: None,
            source: Source::Hook,
            started_in_session: 0,
            demand: ReviewDemand::AsNeeded,
        });
        if let Err(RunnerError::MissingKey(missing)) = &requested {
            // Nobody reads the log: the next process with a user says it once.
            let said = format!("the git hook reviews nothing: {missing}; {}", missing.hint());
            self.services.store.append_notices(&[RecoveryNotice::Repaired { said }])?;
        }
        requested.map(Ok)
    }

    /// Notices rewritten commits: reviews of commits that are gone end or are adopted, and others show that the code has
    /// moved. Waits for the end of the rebase that calls the hook, because commits may be missing until then.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    pub fn notice_rewritten_commits(&self) -> Result<(), RunnerError> {
        process::ignore_the_terminal();
        let give_up = Instant::now() + MAX_REBASE_END;
        while self.services.repo.operation() == Some(GitOperation::Rebase) && Instant::now() < give_up {
            std::thread::sleep(REBASE_POLL_INTERVAL);
        }
        if self.services.store.runs_view()?.run_count() == 0 {
            return Ok(());
        }
        self.services.store.advance_epoch()?;
        self.settle_needless_or_log();
        // A run that waited for one of these may begin.
        self.start_pending_or_log();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Decision, ReviewAction};
    use crate::runner::SettledAnswer;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn the_log_says_why_a_commit_is_not_reviewed_or_its_answer_not_applied() {
        let fixture = RunnerFixture::new();
        let run = fixture.record(&fixture.record_working_run(|_| {}));
        let answered = |failure: Option<&str>| {
            let decision = Decision {
                action: ReviewAction::Skip,
                reason: String::new(),
                saved_token_estimate: 0,
                older: Vec::new(),
                duplicate_of: None,
            };
            let settled = SettledAnswer { failure: failure.map(str::to_owned), ..SettledAnswer::default() };
            Ok(RequestOutcome { decision, run: run.clone(), settled })
        };
        for (title, asked, expected) in [
            ("answered", answered(None), None),
            (
                "a full disk",
                answered(Some("no space")),
                Some("4be4b76: the result could not be applied to all findings"),
            ),
            ("paused", Err(NoReviewReason::Snoozed), Some("4be4b76 is not reviewed: ")),
        ] {
            let said = describe_commit_problem("4be4b76", &asked);
            assert_eq!(said.is_some(), expected.is_some(), "{title}: {said:?}");
            assert!(said.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{title}");
        }
    }
}
