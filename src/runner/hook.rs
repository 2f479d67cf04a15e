//! What the git hook calls after a commit.
//!
//! Invariants: it returns at once, because somebody waits for `git commit`: the snapshot is taken and the request made by
//! a process of their own, which has none of the caller's streams, group and git variables. It asks for the commit that
//! HEAD is when it is called, whatever HEAD is later.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::{Requested, ReviewRequest, Runner, RunnerError, process};
use crate::config::Paths;
use crate::domain::{Movement, Operation, Scope, Source, Time, text};
use crate::git::Repo;
use crate::policy::Why;

/// What git says of a repository to its hooks, and what a process that outlives the hook must not go on to believe
/// (`git rev-parse --local-env-vars`, and what a push adds).
const OF_THE_HOOK: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// Of what the hook has to say, nobody reads more. Bytes.
const MAX_LOG: u64 = 1 << 20;
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
    let program = process::program().map_err(|source| RunnerError::Spawn { program: "revdeck".to_owned(), source })?;
    let commit = OsString::from(repo.head());
    let arguments: Vec<OsString> =
        ["hook", "run", "post-commit", "--commit"].into_iter().map(OsString::from).chain([commit]).collect();
    let root = repo.root();
    let mut command = process::detached(&program, &arguments, &root, Stdio::null(), log(paths));
    for name in OF_THE_HOOK {
        command.env_remove(name);
    }
    if !repo.is_found_in_its_worktree() {
        // As with `git --git-dir=... --work-tree=... commit`: nothing else says where the repository is.
        command.env("GIT_DIR", repo.git_dir()).env("GIT_WORK_TREE", &root);
    }
    if let Some(home) = paths.home() {
        command.env(Paths::HOME_VARIABLE, home);
    }
    let spawned = command.spawn();
    spawned.map_err(|source| RunnerError::Spawn { program: program.display().to_string(), source })?;
    Ok(AfterCommit::Asked)
}

/// Writes down why a hook came to nothing; nobody sees what it prints.
pub fn log_failure(paths: &Paths, now: Time, folder: &Path, failure: &str) {
    let Some(mut log) = log(paths) else { return };
    let line = format!("{now} {}: {failure}", folder.display());
    let _ = writeln!(log, "{}", text::one_line(&line));
}

/// Where hooks write; it begins anew when it has become too long.
fn log(paths: &Paths) -> Option<File> {
    let log = process::log(&paths.logs, LOG)?;
    if log.metadata().is_ok_and(|seen| seen.len() > MAX_LOG) {
        let _ = log.set_len(0);
    }
    Some(log)
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
