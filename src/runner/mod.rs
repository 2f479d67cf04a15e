//! Processes: request, start, adopt, cancel, recover, reconcile, watch; executes the engine's effects.
//!
//! Invariants: the store is the only channel between processes; a worker is detached, in its own process group, and
//! holds its run's lock for its life; a finding is in the journal before anything is said about it.
//!
//! How a run goes through its life:
//!
//! - Every change of a run's status happens under the store's lock and looks at the status it changes, so a request, a
//!   worker, a cancellation and a recovery that meet each other agree on who was first.
//! - *Slots.* Anybody may spawn a worker for a pending run; the worker takes the run's lock and then, under the store's
//!   lock, turns the run to working only if fewer than `max_parallel_runs` others work. One that finds no slot leaves
//!   its run pending and gives its lock up before it lets go of the store, so whoever ends next finds the run startable.
//! - *Waiting for an older run.* A run whose older sibling may finish ([`crate::policy::supersede`]) stays pending until
//!   that one has ended, so that it carries over what it yields. It holds no slot meanwhile, it waits for one that holds
//!   a slot or gets the next, always an older one, and not for one that a person has paused: nobody waits in a circle.
//! - *Carrying over.* Before a worker sends anything it looks for what earlier runs with the same eyes have reviewed as it
//!   is ([`crate::policy::carry`]), and writes what it leaves out into its journal: a restart leaves out the same.
//! - *Starts.* A worker is started with a lock of its own as standard input, so that nobody starts a second one while
//!   it is on its way; starts that end before the claim are counted, and after three the run fails.
//! - *Asking for an end.* The asker writes `cancel_reason` into the run's record and leaves the status; the worker sees
//!   it at its next look and ends the run. A worker that does not within [`Runner::ANSWER`] is killed with its process
//!   group, and the asker settles the run.
//! - *Pausing.* The asker writes `paused` into the run's record; the worker sees it at its next look, lets the answer
//!   that is on its way come in, and asks for nothing until it is taken back.
//! - *Settling.* A run that says working while its lock is free is settled by whoever finds it and holds its lock
//!   meanwhile: completed from its output when that was written, ended as asked, pending again for the next attempt, or
//!   lost with everything its journal holds.
//! - *Reconciling.* Whoever starts settles what is dead and removes what dead processes left: checkouts for programs, and
//!   the snapshot of a run that its maker did not come to record. Each run's journal says what became of it; a line for
//!   people waits in the store's news, once, until there is one to read it.
//! - *Retention.* Once a day a worker that has ended its run lets old runs go of their journals and snapshots, but for
//!   snapshots that unsettled findings stand in. Findings, results and dispositions are never removed. Caches of repositories
//!   that are gone go as well.
//! - *The hook.* What git calls after a commit hands over to a process of its own and returns: nobody waits for a snapshot.
//! - *Findings.* The end of a run acts on all findings (`life`): which of its reports are known, which are held back, what
//!   it confirms, contradicts or finds gone, and where the others stand now. The rules are in [`crate::policy`].
//! - *Fixing.* A patch for findings is made, reviewed and offered by a worker of its own; see [`resolve`].
//! - *Watching.* One watcher per repository holds `locks/watch.lock` for its life; it is started by whoever wants it,
//!   detached as a worker is, and ended by a signal. It advances the epoch when something moved and asks the policy
//!   whether that is worth a request ([`Watch`]). A snooze is a file in the store's folder that watchers and hooks obey.
//! - *Indexing.* A worker that talks to a model reads the snapshot into the repository's index on a thread of its own while
//!   it waits for answers, and gives it up when its run ends; what was read is kept. No review waits more than a moment
//!   for it, and no answer of a tool depends on whether there is one. A worker of the built-in reviewer does so after its run,
//!   for a minute at most, when much was not known: the index has the fingerprints by which the next one finds copies. So
//!   does a process that is started behind a context, when that had no index of all of its tree.
//! - *Learning.* A worker that has ended its run reads what was decided about findings since somebody did so last, and
//!   teaches the knowledge on this machine what it says ([`crate::knowledge`]). Nobody waits for it. A run or a fix that was
//!   asked for by somebody who opts out says so in its record, and teaches nothing, whoever works on it.
//! - *Standing for older runs.* A run that completes, or is reused, stands for the ended runs of its lineage
//!   ([`crate::policy::replaced_by`]); they get `superseded_by` and keep their status and results.

mod cache_sweep;
mod cancel;
mod carry_over;
mod code_context;
mod conclude;
mod conversation;
mod finding_lifecycle;
mod hook;
mod hunk_keys;
mod indexing;
mod known_runs;
mod learn;
mod learned_rules;
mod model_reviewer;
mod older_run_progress;
mod pattern_hints;
mod pattern_queries;
mod pause;
mod preview;
pub(crate) mod process;
mod prompt_material;
mod reconcile;
mod recover;
mod report_validation;
mod request;
pub mod resolve;
mod retention;
mod reviewer_identity;
mod reviewer_probe;
mod start_workers;
mod wait;
mod watch;
mod worker;

pub use code_context::ContextTaskInput;
pub use hook::{CommitHookOutcome, log_failure, start_commit_review};
pub use learn::{LearnError, LearningReport};
pub use preview::{BUDGET_RANGE, ContextRequest, ContextTarget, Preview};
pub use reconcile::ReconcileReport;
pub use resolve::{FixError, FixRequest};
pub use retention::{RetentionLimits, RetentionReport};
pub use reviewer_probe::{ReviewerProbe, ToolProbe, probe_reviewer};
pub use watch::{
    RepoWatcher, StopOutcome, TerminalBinding, WatchEnd, WatchLine, WatchStart, WatchState, WatchStopper,
    WorktreeOpener, parse_snooze,
};

use std::sync::Arc;
use std::time::Duration;

use crate::config::{ClockAndIds, Paths, Settings};
use crate::domain::{RunId, RunRecord, RunStatus, SCHEMA_VERSION, Scope, Source};
use crate::git::{FilterSettings, GitError, Repo};
use crate::policy::Decision;
use crate::reviewers::analyzer;
use crate::reviewers::chat::ChatError;
use crate::store::{RepoInfo, Store, StoreError};

/// Everything a request needs; cheap to make, one per process.
pub struct Runner {
    pub repo: Repo,
    pub store: Store,
    pub settings: Arc<Settings>,
    pub paths: Paths,
    pub ambient: ClockAndIds,
}

/// The store of a repository.
pub fn open_store(repo: &Repo, paths: &Paths) -> Result<Store, StoreError> {
    let info = RepoInfo {
        version: SCHEMA_VERSION,
        key: repo.key(),
        name: repo.name(),
        common_dir: repo.common_dir().to_string_lossy().into_owned(),
    };
    Store::open(&paths.state, info)
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
pub struct RequestOutcome {
    pub decision: Decision,
    pub run: RunRecord,
}

/// What recovery did with a run whose worker is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredRun {
    pub run_id: RunId,
    pub outcome: RecoveryOutcome,
}

/// What became of a run whose worker is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryOutcome {
    Settled {
        /// Pending when it was resumed.
        status: RunStatus,
        /// "worker died in turn 7".
        cause: String,
        /// All that its journal held: they are kept.
        findings: u32,
    },
    /// It could not be settled, for this reason, and is as it was.
    Stuck(String),
}

/// What a cancellation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It had not begun.
    BeforeStart,
    /// Its worker was asked and ended it.
    ByWorker,
    /// Its worker did not answer and was ended with its process group, or was dead already.
    Killed,
    /// It had already ended.
    AlreadyOver,
}

/// What became of a wish to pause a run, or to let it go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseOutcome {
    /// It is on record; the worker heeds it before its next request.
    Recorded,
    /// It was so already.
    Already,
    /// The run has ended.
    Over,
    /// Its reviewer asks nobody anything: there are no turns to pause between.
    NoTurns,
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
    #[error("cannot use the thresholds of the built-in reviewer: {0}")]
    Limits(#[from] analyzer::limits::LimitsError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error(transparent)]
    Fix(#[from] FixError),
    /// A reviewer that cannot be talked to.
    #[error(transparent)]
    Reviewer(#[from] ChatError),
    #[error("the engine of {run} stopped without an end; this is a fault of revdeck")]
    EngineStuck { run: RunId },
    #[error("the worker of {run} (process {worker}) does not end although it was killed; it may hang in the kernel")]
    Unkillable { run: RunId, worker: u32 },
    #[error("the watcher runs as process {pid} of {owner}: it can only be ended there")]
    WatchedElsewhere { pid: u32, owner: String },
    #[error("the watcher{} does not end", .watcher.map_or(String::new(), |pid| format!(" (process {pid})")))]
    WatcherStays { watcher: Option<u32> },
}

impl Runner {
    /// How long a worker has to answer a cancellation before its process group is killed.
    pub const MAX_CANCEL_WAIT: Duration = Duration::from_secs(5);
    /// The reviewer that needs no settings.
    pub const BUILTIN: &'static str = "builtin";

    pub(crate) fn filter(&self) -> FilterSettings {
        FilterSettings {
            max_file_bytes: self.settings.max_file_bytes,
            ignored_paths: self.settings.ignored_paths.clone(),
        }
    }
}
