//! What the git hook calls after a commit.
//!
//! Invariants: it returns at once, because somebody waits for `git commit`: the snapshot is taken and the request made by
//! a process of their own, which has none of the caller's streams, group and git variables. It asks for the commit that
//! HEAD is when it is called, whatever HEAD is later.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::{RequestOutcome, ReviewRequest, Runner, RunnerError, process};
use crate::config::Paths;
use crate::domain::{GitOperation, Scope, Source, Time, WatchTrigger, text};
use crate::git::Repo;
use crate::policy::NoReviewReason;

const HOOK_LOG: &str = "hook.log";

/// What came of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitHookOutcome {
    Asked,
    /// git makes the commits one after the other, and most of them nobody will look at.
    Rebasing,
}

/// Has a process of its own ask for a review of the commit that HEAD is.
pub fn start_commit_review(folder: &Path, paths: &Paths) -> Result<CommitHookOutcome, RunnerError> {
    let repo = Repo::discover(folder)?;
    if repo.operation() == Some(GitOperation::Rebase) {
        return Ok(CommitHookOutcome::Rebasing);
    }
    let arguments = ["hook", "run", "post-commit", "--commit", &repo.head()];
    process::spawn_detached(&repo, paths, &repo.root(), &arguments, Stdio::null(), HOOK_LOG)?;
    Ok(CommitHookOutcome::Asked)
}

/// Writes down why a hook came to nothing; nobody sees what it prints.
pub fn log_failure(paths: &Paths, now: Time, folder: &Path, failure: &str) {
    let Some(mut log) = process::open_log(paths, HOOK_LOG) else { return };
    let line = format!("{now} {}: {failure}", folder.display());
    let _ = writeln!(log, "{}", text::sanitize_line(&line));
}

impl Runner {
    /// Asks for a review of a commit, for the hook, by the rules of `[watch]`: nobody has asked for it. The error says why
    /// it is not reviewed now.
    pub fn review_commit(&self, commit: &str) -> Result<Result<RequestOutcome, NoReviewReason>, RunnerError> {
        process::ignore_the_terminal();
        if let Some(why) = self.reason_not_to_review(WatchTrigger::Commit)? {
            return Ok(Err(why));
        }
        let scope = Some(Scope::Commit(commit.to_owned()));
        let reviewer = self.settings.watch.reviewer.clone();
        self.request_review(&ReviewRequest { scope, reviewer, source: Source::Hook, force: false }).map(Ok)
    }
}
