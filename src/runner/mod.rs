//! Processes: request, start, adopt, cancel, recover, watch; executes the engine's effects.
//!
//! Invariants: the store is the only channel between processes; a worker is detached, in its own process group, and
//! holds its run's lock for its life; a finding is in the journal before anything is said about it.

use std::sync::Arc;

use crate::config::{Ambient, Paths, Settings};
use crate::domain::{RunId, RunRecord, Scope, Source};
use crate::git::{GitError, Repo};
use crate::policy::Decision;
use crate::store::{Store, StoreError};

/// Everything a request needs; cheap to make, one per process.
pub struct Runner {
    pub repo: Repo,
    pub store: Store,
    pub settings: Arc<Settings>,
    pub paths: Paths,
    pub ambient: Ambient,
}

/// A wish for a review.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// `None` for the default scope.
    pub scope: Option<Scope>,
    /// `None` for the default reviewer.
    pub reviewer: Option<String>,
    pub source: Source,
    pub force: bool,
}

/// What became of a request: the decision and the run that stands for it.
#[derive(Debug, Clone)]
pub struct Requested {
    pub decision: Decision,
    pub run: RunRecord,
}

/// What recovery did with a run whose worker is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    pub run_id: RunId,
    pub resumed: bool,
    /// One line for a person: "lost: worker died in attempt 3, 4 findings kept".
    pub text: String,
}

/// What a cancellation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun.
    BeforeStart,
    /// Its worker was asked and ended it.
    ByWorker,
    /// Its worker did not answer and was ended with its process group.
    Killed,
    /// It had already ended.
    AlreadyOver,
}

#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no reviewer named {name:?}; there are: {known}")]
    UnknownReviewer { name: String, known: String },
    #[error("cannot start the worker {program}: {source}")]
    Spawn { program: String, source: std::io::Error },
}

impl Runner {
    /// Snapshot, decide, record, start a worker if there is room. Returns at once.
    pub fn request(&self, _request: &ReviewRequest) -> Result<Requested, RunnerError> {
        unimplemented!()
    }

    /// Starts workers for pending runs while fewer than `max_parallel_runs` work.
    pub fn start_pending(&self) -> Result<Vec<RunId>, RunnerError> {
        unimplemented!()
    }

    /// Settles runs whose record says in flight while nobody holds their lock: resumed (at most 3 attempts) or lost.
    pub fn recover(&self) -> Result<Vec<Recovered>, RunnerError> {
        unimplemented!()
    }

    /// Asks a run to end; waits for it, and ends its process group after 5 s.
    pub fn cancel(&self, _run: &RunId, _note: &str) -> Result<Cancelled, RunnerError> {
        unimplemented!()
    }

    /// Blocks until the run has ended, calling `progress` with each record that differs from the one before;
    /// `progress` returning false gives up waiting (the run goes on).
    pub fn wait(&self, _run: &RunId, _progress: &mut dyn FnMut(&RunRecord) -> bool) -> Result<RunRecord, RunnerError> {
        unimplemented!()
    }

    /// The body of `revdeck worker RUN`: executes one run to its end, then starts the next pending one.
    pub fn work(&self, _run: &RunId) -> Result<(), RunnerError> {
        unimplemented!()
    }
}
