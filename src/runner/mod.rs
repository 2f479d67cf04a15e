//! Processes: requests, starts, adopts, cancels, recovers, reconciles and watches reviews, and executes the effects of
//! the engine.
//!
//! - The store is the only channel between processes.
//! - A worker is detached, in its own process group, and holds its run's lock for its whole life.
//! - A finding is in the journal before any output mentions it.
//!
//! The life of a run:
//!
//! - *Status.* Every change of a run's status happens under the store's lock and checks the old status. So a request, a
//!   worker, a cancellation and a recovery that run at the same time agree on the order.
//! - *Slots.* Any process may spawn a worker for a pending run. The worker takes the run's lock. Then, under the
//!   store's lock, it sets the run to working only if fewer than `max_parallel_runs` others work. Without a slot, the
//!   worker leaves the run pending and releases the run's lock before the store's lock, so that the next process that
//!   ends finds the run startable.
//! - *Waiting for an older run.* If an older sibling of a run may finish ([`crate::policy::supersede`]), the run stays
//!   pending until the sibling has ended, and then carries over its results. It holds no slot meanwhile. The awaited
//!   run is always older, holds a slot or gets the next slot, and is not paused by the user; so there is no circular
//!   wait.
//! - *Carrying over.* Before a worker sends anything, it looks for hunks that earlier runs with the same reviewer
//!   profile have reviewed unchanged ([`crate::policy::carry`]). It writes the hunks it leaves out into its journal, so
//!   that a restart leaves out the same hunks.
//! - *Starts.* A worker starts with a lock as standard input, so that no process starts a second worker meanwhile.
//!   Starts that end before the claim are counted; after three such starts the run fails.
//! - *Cancelling.* The requester writes `cancel_reason` into the run's record and leaves the status unchanged. The
//!   worker sees the reason at its next check and ends the run. If the worker does not end within
//!   [`MAX_CANCEL_WAIT`], the requester kills its process group and settles the run.
//! - *Pausing.* The requester writes `paused` into the run's record. The worker sees it at its next check, receives the
//!   answer that is under way, and sends no request until the pause ends.
//! - *Settling.* A working run with a free lock is settled by the process that finds it and holds the lock meanwhile.
//!   The run becomes completed if its output was written, ended if a cancellation was requested, pending for the next
//!   attempt, or lost with all findings of its journal kept.
//! - *Memory.* Workers and indexers limit their memory. A file whose parsing ends a worker is known from the log of its
//!   parses; the next attempt journals it and parses it no more ([`crate::syntax::parse_log`]).
//! - *Reconciling.* Every start of revdeck settles dead runs and removes the leftovers of dead processes: checkouts for
//!   agents, and a snapshot whose run was never recorded. The journal of each run records the outcome. The store's
//!   notices keep a line for the user until it is read once.
//! - *Retention.* Once a day, a worker that has ended its run deletes journals and snapshots of old runs, except for
//!   snapshots that contain unsettled findings. Findings, results and dispositions are never removed. Caches of missing
//!   repositories are removed, too.
//! - *The hook.* The git hook after a commit starts a separate process and returns, so that nobody waits for a
//!   snapshot.
//! - *Findings.* The end of a run updates all findings (`finding_lifecycle`): it matches reports with known findings,
//!   holds some back, confirms, contradicts or closes findings, and locates the others in the current code. The rules
//!   are in [`crate::policy`].
//! - *Fixing.* A separate worker makes a patch for findings, reviews it and offers it; see [`fixer`].
//! - *Watching.* One watcher per repository holds `locks/watch.lock` for its whole life. Any process may start it,
//!   detached like a worker; a signal ends it. It advances the epoch when something moved and asks the policy whether
//!   to request a review ([`RepoWatcher`]). A snooze is a file in the store's folder that watchers and hooks obey.
//! - *Indexing.* A worker that talks to a model indexes the snapshot on a separate thread while it waits for answers,
//!   and stops when its run ends; indexed files stay indexed. No review waits longer than half a second for the index,
//!   and no tool result depends on it. A worker of the built-in reviewer indexes after its run, for a minute at most,
//!   if much was unindexed: the index has the fingerprints with which the next run finds duplicates. A process that is
//!   started after a context request does the same if the index did not cover the whole tree.
//! - *Learning.* A worker that has ended its run reads the new decisions about findings and updates the knowledge on
//!   this machine ([`crate::knowledge`]). Nobody waits for it. A run or fix whose requester opted out records that and
//!   teaches nothing, whichever process works on it.
//! - *Panels.* A panel is requested in one step: a run for each reviewer that needs one, then the run of the panel, which
//!   stays pending until they have ended ([`launcher`]). It merges their outputs purely, asks for second opinions if the
//!   settings say so, and settles the findings ([`panel`]). Its members leave all decisions about findings to it and share
//!   one slot. A member's run answers later requests like any other run.
//! - *Teams.* `revdeck sync` exchanges decisions and completed reviews with other machines ([`team`]). What comes from them
//!   becomes runs and dispositions of this store, so that reuse, carry-over and suppression need no rules of their own.
//! - *Importing.* The report of another tool becomes a run of its own in the process of the command ([`import`]). It is
//!   recorded as a run that is being settled, under the run's lock, and never has a worker.
//! - *Superseding ended runs.* A run that completes, or is reused, replaces the ended runs of its lineage
//!   ([`crate::policy::find_replaced_runs`]). They get `superseded_by` and keep their status and results.

mod asker;
mod cancellable_sleep;
mod conclude;
mod control;
mod finding_lifecycle;
mod finding_ratings;
pub(crate) mod fixer;
#[cfg(test)]
mod fixture;
mod freshness;
mod hunk_keys;
mod import;
mod indexing;
mod known_runs;
mod launcher;
mod learning;
mod ledger_feed;
mod located_findings;
mod merged_reports;
mod panel;
pub(crate) mod process;
mod prompt;
mod recovery;
mod repository_rules;
mod reviewer_access;
mod scope_comparison;
mod services;
mod set_status;
mod snoozed_findings;
mod steering;
mod stored_reports;
mod team;
mod uncommitted_elsewhere;
mod watcher;
mod worker;

pub(crate) use asker::{AskError, Asker, PreparedQuestion, QuestionPlan, wait_for_answer};
pub(crate) use conclude::RunCloser;
pub(crate) use control::RunControl;
pub(crate) use control::wait::{WaitProgress, WaitedTurn};
pub(crate) use finding_lifecycle::FindingLifecycle;
pub(crate) use finding_ratings::{RatingError, rate_findings};
pub(crate) use fixer::{FixError, FixMakers, FixRequest, Fixer};
pub(crate) use freshness::{FreshnessFacts, read_run_freshness};
pub(crate) use import::{
    ImportOutcome, ImportRequest, Importer, OWN_REVIEWER, OwnFinding, RemovedLine, WrittenComment,
};
pub(crate) use indexing::Indexer;
pub(crate) use launcher::Launcher;
pub(crate) use launcher::commit_hook::{
    describe_commit_problem, log_failure, start_commit_review, start_rewrite_notice,
};
pub(crate) use launcher::opening::{OpeningOutcome, UnreviewedChange};
pub(crate) use launcher::preview::{BUDGET_RANGE, ContextRequest, ContextTarget, Preview};
pub(crate) use launcher::request_preview::{MemberForecast, OfferedReviewer, RequestPreview};
pub(crate) use learning::Learning;
pub(crate) use learning::learn::LearnError;
#[cfg(test)]
pub(crate) use ledger_feed::preview::PreviewLine;
pub(crate) use ledger_feed::preview::{LedgerPreview, SessionPreview, preview_ledgers};
pub(crate) use ledger_feed::{
    LedgerRecall, LedgerRequest, LedgerSources, LedgerTurn, compose_ledger, find_details_call, forget_ledger_session,
    ledger_format,
};
pub(crate) use located_findings::{CodeComparison, CodeState, LocatedFinding, is_commit_id, locate_findings};
pub(crate) use merged_reports::write_note;
pub(crate) use process::{host_name, limit_memory};
pub(crate) use prompt::PromptBuilder;
pub(crate) use prompt::code_context::{ContextTaskInput, context_options};
pub(crate) use recovery::Recovery;
pub(crate) use recovery::reconcile::ReconcileReport;
pub(crate) use recovery::retention::{RetentionLimits, RetentionReport};
pub(crate) use repository_rules::RepositoryRules;
pub(crate) use reviewer_access::ReviewerAccess;
pub(crate) use reviewer_access::local_reviewers::{
    DiscoveredServer, DiscoveryRequest, LocalReviewer, ModelTests, ToolVerdict, WindowSource, discover_reviewers,
};
pub(crate) use reviewer_access::missing_key::MissingKey;
pub(crate) use reviewer_access::model_reviewer::max_turns;
pub(crate) use reviewer_access::review_cost::{AutomaticReviewer, CostLimit, ReviewerTerms};
pub(crate) use reviewer_access::reviewer_probe::{ReviewerProbe, ToolProbe, probe_reviewer};
pub(crate) use scope_comparison::{ScopeComparer, ScopeFingerprints};
pub(crate) use services::{BUILTIN_REVIEWER, Services};
pub(crate) use set_status::{DecidedFinding, SetStatusError, StatusChange, find_decided, set_status};
pub(crate) use snoozed_findings::{SnoozeError, SnoozeWish, SnoozedFindings, snooze_findings};
pub(crate) use stored_reports::{StoredReports, find_listed_reports};
pub(crate) use team::{FollowerProcess, RecordCounts, SyncError, SyncReport, TeamSync, undo_or_redo_triage};
pub(crate) use uncommitted_elsewhere::UncommittedElsewhere;
pub(crate) use watcher::{
    RepoWatcher, StopOutcome, TerminalBinding, WatchEnd, WatchLine, WatchStart, WatchState, Watcher, parse_snooze,
};
pub(crate) use worker::Worker;

use std::sync::Arc;

use crate::config::Paths;
use crate::domain::{FindingId, RunId, RunRecord, RunStatus, SCHEMA_VERSION, Scope, Source};
use crate::git::{GitError, Repo};
use crate::policy::Decision;
use crate::reviewers::analyzer;
use crate::reviewers::chat::ChatError;
use crate::store::{RepoInfo, Store, StoreError, StoreView};

/// Opens the store of a repository.
///
/// # Errors
///
/// If the store's folder cannot be created or read.
pub fn open_store(repo: &Repo, paths: &Paths) -> Result<Store, StoreError> {
    let info = RepoInfo {
        version: SCHEMA_VERSION,
        key: repo.key(),
        name: repo.name(),
        common_dir: repo.common_dir().to_string_lossy().into_owned(),
    };
    Store::open(&paths.state, info)
}

/// A request for a review.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// The scope; `None` for the default scope.
    pub scope: Option<Scope>,
    /// The reviewer's name; `None` for the default reviewer.
    pub reviewer: Option<String>,
    /// Prompt set of the user; `None` for the prompts outside of a set. A reviewer without prompts ignores it.
    pub prompt_set: Option<String>,
    /// Part of revdeck that asks.
    pub source: Source,
    /// Number of reviews that the asking session of an assistant has started; 0 for others.
    pub started_in_session: u32,
    /// Whether a review that exists may answer, or must.
    pub demand: ReviewDemand,
}

/// Demand on the review that answers a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReviewDemand {
    /// An equivalent review answers; without one, a new one is started.
    #[default]
    AsNeeded,
    /// A new review is started although an equivalent one exists.
    Anew,
    /// Only an equivalent review that has ended answers; nothing is started.
    OnlyExisting,
}

impl ReviewDemand {
    /// Returns the demand for a new review, or the usual one.
    pub fn anew_if(force: bool) -> Self {
        if force { Self::Anew } else { Self::AsNeeded }
    }
}

/// The outcome of a request: the decision and the run that answers it.
#[derive(Debug, Clone)]
pub struct RequestOutcome {
    /// Decision of the policy, with its reason.
    pub decision: Decision,
    /// Record of the run that answers; for a skipped request, the skipped record.
    pub run: RunRecord,
    /// Findings that a reused result has settled.
    pub settled: SettledAnswer,
}

/// Findings after a result that answers a request was applied to them.
#[derive(Debug, Clone, Default)]
pub struct SettledAnswer {
    /// Undecided findings that a new review would have judged or raised: the reused result does not show that their places were
    /// read, or holds its reports back because they were dismissed then or on its machine. A gate counts them: what is not
    /// reviewed is not clean.
    pub unproven: Vec<FindingId>,
    /// Store with which the result was compared. Whoever refreshes it need not read all findings again.
    pub view: Option<Arc<StoreView>>,
    /// Reason why the result could not be applied to all findings. Nobody knows then whether it is clean.
    pub failure: Option<String>,
}

impl SettledAnswer {
    /// Returns the answer of a result that could not be applied.
    fn failed(error: &dyn std::fmt::Display) -> Self {
        Self { failure: Some(error.to_string()), ..Self::default() }
    }

    /// Adds findings that are not proven either, or the reason why they are not known.
    pub fn add_unproven<E: std::fmt::Display>(&mut self, findings: Result<Vec<FindingId>, E>) {
        match findings {
            Ok(findings) => self.unproven.extend(findings),
            Err(error) => {
                self.failure.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Describes the failure as one sentence; `None` without one.
    pub fn describe_failure(&self) -> Option<String> {
        let why = self.failure.as_ref()?;
        Some(format!(
            "the result could not be applied to all findings, so that this is no clean review: {}; `revdeck store verify` says \
             more",
            crate::domain::text::sanitize_line(why)
        ))
    }
}

/// The result of recovering a run without a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredRun {
    /// Run whose worker is gone.
    pub run_id: RunId,
    /// Result of the recovery.
    pub outcome: RecoveryOutcome,
}

/// The outcome for a run without a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The run has ended, or is resumed.
    Settled {
        /// The new status; pending if the run is resumed.
        status: RunStatus,
        /// The cause, for example "worker died in turn 7".
        cause: String,
        /// Number of findings in the journal; all are kept.
        findings: u32,
    },
    /// The run could not be settled for this reason and is unchanged.
    Stuck(String),
}

/// The outcome of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The run had not begun.
    BeforeStart,
    /// The worker received the request and ended the run.
    ByWorker,
    /// The worker did not answer and was killed with its process group, or was already dead.
    Killed,
    /// The run had already ended.
    AlreadyOver,
}

/// The outcome of a request to pause or resume a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseOutcome {
    /// The request is recorded; the worker obeys it before its next request.
    Recorded,
    /// The run already was in the requested state.
    Already,
    /// The run has ended.
    Over,
    /// The reviewer works without requests: there are no turns between which it could pause.
    NoTurns,
}

/// Error of an operation on runs, fixes or the watcher.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// Git failed, or the repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No reviewer has this name.
    #[error("there is no reviewer named {name:?}; there are: {known}")]
    UnknownReviewer {
        /// Requested name.
        name: String,
        /// Names of all reviewers, separated by commas.
        known: String,
    },
    /// No panel has this name.
    #[error("there is no panel named {name:?}; there are: {known}")]
    UnknownPanel {
        /// Requested name.
        name: String,
        /// Names of all panels, separated by commas.
        known: String,
    },
    /// Nobody has reviewed what was asked for, and nothing may be started.
    #[error("neither this machine nor its team has a review of {scope} as it is now by {reviewer}")]
    NotReviewed {
        /// Scope in the words of the command line.
        scope: String,
        /// Reviewer or panel that was asked for.
        reviewer: String,
        /// Options that name who has reviewed it.
        others: Vec<String>,
    },
    /// The key of the reviewer is missing, so that nothing was queued.
    #[error(transparent)]
    MissingKey(#[from] MissingKey),
    /// A worker or another detached process could not be started.
    #[error("cannot start the worker {program}: {source}")]
    Spawn {
        /// Path of the program.
        program: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file of thresholds is no TOML, or has an unknown key or a wrong type.
    #[error("cannot use the thresholds of the built-in reviewer: {0}")]
    Limits(#[from] analyzer::limits::LimitsError),
    /// The settings, or a file that they name, cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// A fix cannot be made, applied, undone or dropped.
    #[error(transparent)]
    Fix(#[from] FixError),
    /// A question about a finding is not asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The client of the reviewer cannot be created, or the reviewer failed.
    #[error(transparent)]
    Reviewer(#[from] ChatError),
    /// The engine gave no next step before the end of the review.
    #[error("the engine of {run} stopped without an end; this is a fault of revdeck")]
    EngineStuck {
        /// Run of the engine.
        run: RunId,
    },
    /// A run cannot go on, and its end cannot be recorded either.
    #[error("{run} cannot be settled: {reason}")]
    Unsettled {
        /// The run.
        run: RunId,
        /// Error of the last attempt.
        reason: String,
    },
    /// A killed worker still holds the lock of its run.
    #[error("the worker of {run} (process {worker}) does not end although it was killed; it may hang in the kernel")]
    Unkillable {
        /// Run of the worker.
        run: RunId,
        /// Process id of the worker; 0 if the journal does not name it.
        worker: u32,
    },
    /// The watcher to end runs on another machine.
    #[error("the watcher runs as process {pid} of {owner}: it can only be ended there")]
    WatchedElsewhere {
        /// Process id of the watcher on its machine.
        pid: u32,
        /// User and machine of the watcher, as `user@host`.
        owner: String,
    },
    /// The watcher to end has not ended in time.
    #[error("the watcher{} does not end", .watcher.map_or(String::new(), |pid| format!(" (process {pid})")))]
    WatcherStays {
        /// Process id of the watcher; `None` if it has not recorded its id.
        watcher: Option<u32>,
    },
}

impl RunnerError {
    /// Returns a remedy as a sentence for the user; `None` when there is none.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Git(error) => return error.hint(),
            Self::Fix(error) => return error.hint(),
            Self::Ask(error) => return error.hint(),
            Self::Store(error) => return Some(error.hint()),
            Self::Config(error) => return Some(error.hint()),
            Self::MissingKey(missing) => return Some(missing.hint()),
            Self::UnknownPanel { .. } => {
                "a panel is a [panels.NAME] table in your settings; `--reviewer a,b` needs none"
            }
            Self::NotReviewed { others, .. } if !others.is_empty() => {
                let options: Vec<String> = others.iter().map(|option| format!("`{option}`")).collect();
                return Some(format!("somebody else has reviewed it: {} shows the result", options.join(" or ")));
            }
            Self::NotReviewed { .. } => {
                "`revdeck sync` fetches what the team has reviewed; without --from-team it is reviewed here"
            }
            Self::UnknownReviewer { .. } => "`revdeck config show` lists the reviewers of your settings",
            Self::Limits(_) => "`revdeck config path` says where smells.toml is",
            Self::Unsettled { .. } => {
                "the run waits in the store; once the store can be written, `revdeck runs` goes on with it"
            }
            Self::WatcherStays { watcher: Some(pid) } => {
                return Some(format!("`kill -9 {pid}` ends it; nothing is lost"));
            }
            Self::Reviewer(error) if error.class == crate::domain::ErrorClass::Configuration => return None,
            Self::Reviewer(_) => "`revdeck doctor` says what the reviewer lacks",
            Self::Spawn { .. } => "the run waits in the store; the next `revdeck review` starts it",
            Self::EngineStuck { .. }
            | Self::Unkillable { .. }
            | Self::WatchedElsewhere { .. }
            | Self::WatcherStays { watcher: None } => return None,
        };
        Some(hint.to_owned())
    }
}
