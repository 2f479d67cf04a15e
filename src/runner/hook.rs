//! What the git hook calls after a commit.
//!
//! Invariants: it returns at once, because somebody waits for `git commit`: the snapshot is taken and the request made by
//! a process of their own, which has none of the caller's streams, group and git variables. It asks for the commit that
//! HEAD is when it is called, whatever HEAD is later.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::{Requested, ReviewRequest, Runner, RunnerError, process};
use crate::config::Paths;
use crate::domain::{Movement, Operation, Scope, Source, Time, text};
use crate::git::Repo;
use crate::policy::Why;

const LOG: &str = "hook.log";

/// What came of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCommit {
    Asked,
    /// git makes the commits one after the other, and most of them nobody will look at.
    Rebasing,
}

/// Has a process of its own ask for a review of the commit that HEAD is.
pub fn after_commit(folder: &Path, paths: &Paths) -> Result<AfterCommit, RunnerError> {
    let repo = Repo::discover(folder)?;
    if repo.operation() == Some(Operation::Rebase) {
        return Ok(AfterCommit::Rebasing);
    }
    let arguments = ["hook", "run", "post-commit", "--commit", &repo.head()];
    process::ourselves(&repo, paths, &repo.root(), &arguments, Stdio::null(), LOG)?;
    Ok(AfterCommit::Asked)
}

/// Writes down why a hook came to nothing; nobody sees what it prints.
pub fn log_failure(paths: &Paths, now: Time, folder: &Path, failure: &str) {
    let Some(mut log) = process::log(paths, LOG) else { return };
    let line = format!("{now} {}: {failure}", folder.display());
    let _ = writeln!(log, "{}", text::one_line(&line));
}

impl Runner {
    /// Asks for a review of a commit, for the hook, by the rules of `[watch]`: nobody has asked for it. The error says why
    /// it is not reviewed now.
    pub fn review_commit(&self, commit: &str) -> Result<Result<Requested, Why>, RunnerError> {
        process::ignore_the_terminal();
        if let Some(why) = self.kept_from_reviewing(Movement::Commit)? {
            return Ok(Err(why));
        }
        let scope = Some(Scope::Commit(commit.to_owned()));
        let reviewer = self.settings.watch.reviewer.clone();
        self.request(&ReviewRequest { scope, reviewer, source: Source::Hook, force: false }).map(Ok)
    }
}
