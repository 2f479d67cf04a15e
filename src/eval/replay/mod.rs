//! Replays a coding session from history: writes the last commits of a repository again, step by step, requests reviews
//! on the way, and counts tokens.
//!
//! - The repository is only read; the session works in a clone that shares its objects.
//! - Runs, workers and the store are the real ones, in a temporary home.
//! - The same seed gives the same session.
//!
//! `script` plans the steps, `sandbox` executes them with git, `token_meter` counts. This file requests the reviews and
//! compares their findings with full reviews.

mod rng;
mod sandbox;
mod script;
mod token_meter;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{ClockAndIds, Paths, Settings};
use crate::domain::{Finding, FindingStatus, RunEvent, RunId, RunOutput, RunRecord, RunStatus, Source};
use crate::git::{GitError, Repo};
use crate::policy::ReviewAction;
use crate::runner::{
    BUILTIN_REVIEWER, RepositoryRules, ReviewDemand, ReviewRequest, RunnerError, Services, open_store, process,
};
use crate::store::StoreError;
use rng::SplitMix64;
use sandbox::{ReplayCommit, ReplaySandbox, TRUNK, TouchedPath};
use script::{AfterRequest, ReplayScope, SessionStep, plan_steps};
use token_meter::TokenMeter;

/// Number of commits on one topic branch before it lands on the trunk.
const COMMITS_PER_TOPIC: usize = 8;
/// Time that a worker has to begin before it is killed anyway.
const MAX_BEGIN_WAIT: Duration = Duration::from_secs(10);

/// The options of a replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// A repository, with or without a working tree.
    pub source: PathBuf,
    pub commits: usize,
    pub seed: u64,
    /// The folder for the clone and the homes; they are deleted with it.
    pub folder: PathBuf,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayReport {
    pub commits: usize,
    /// Number of requested reviews.
    pub requests: usize,
    pub launched: usize,
    pub adopted: usize,
    pub reused: usize,
    pub resumed: usize,
    pub skipped: usize,
    /// Number of runs that ended in favour of a newer run.
    pub superseded: usize,
    /// Number of killed workers.
    pub killed: usize,
    /// Number of runs that continued after the death of their worker.
    pub restarted: usize,
    /// Input tokens if each request were answered by a full review.
    pub tokens_in_full: u64,
    /// Input tokens that were sent.
    pub tokens_sent: u64,
    /// Number of hunks that runs took over from earlier runs.
    pub hunks_carried: u64,
    /// Number of equivalent changes that more than one run reviewed; each is a fault.
    pub reviewed_twice: usize,
    /// Number of states at which a full review was compared with the store.
    pub compared: usize,
    /// Number of findings of those full reviews.
    pub findings_in_full: usize,
    /// Findings of the full reviews that the store does not have, each with its commit.
    pub missing: Vec<String>,
    /// Number of findings of the full reviews that a run knows and holds back by a rule.
    pub held_back: usize,
}

impl ReplayReport {
    /// Returns the share of saved input tokens, in percent.
    pub fn saved_percent(&self) -> f64 {
        match self.tokens_in_full {
            0 => 0.0,
            full => 100.0 * (1.0 - self.tokens_sent as f64 / full as f64),
        }
    }
}

/// The reason why a replay cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot run git for {what}: {source}")]
    NoGit { what: String, source: std::io::Error },
    #[error("git {what} failed in the clone: {said}")]
    Git { what: String, said: String },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{repository} has no commits with a parent to play")]
    NoCommits { repository: PathBuf },
    #[error(transparent)]
    Objects(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

/// Replays a session. Calls `progress` with the number of finished commits and the number of all commits.
///
/// # Errors
///
/// If git is missing or fails, or the runner fails.
pub fn replay(options: &ReplayOptions, progress: &mut dyn FnMut(usize, usize)) -> Result<ReplayReport, ReplayError> {
    let desk = ReplaySandbox::clone_repository(&options.source, options.folder.join("clone"))?;
    let past = desk.list_commits(options.commits)?;
    let Some(first) = past.first() else { return Err(ReplayError::NoCommits { repository: options.source.clone() }) };
    desk.start_trunk(&first.parent)?;
    let session = open_runner(&desk, &options.folder.join("home"))?;
    let measure = open_runner(&desk, &options.folder.join("full"))?;
    let meter = TokenMeter::new(&session.repo, session.filter());
    let mut stage = ReplaySession {
        sandbox: &desk,
        services: &session,
        full: &measure,
        meter,
        played: ReplayReport::default(),
        launched: Vec::new(),
        unawaited: Vec::new(),
        rng: SplitMix64::new(options.seed),
    };
    let mut topic = String::new();
    for (number, commit) in past.iter().enumerate() {
        if number % COMMITS_PER_TOPIC == 0 {
            if number > 0 {
                stage.land_topic()?;
            }
            topic = format!("topic-{number}");
            desk.create_topic(&topic)?;
        }
        stage.play_commit(commit, &topic, number)?;
        progress(number + 1, past.len());
    }
    stage.land_topic()?;
    stage.sum_up()
}

/// Creates a runner with default settings and its own store.
fn open_runner(desk: &ReplaySandbox, home: &Path) -> Result<Services, ReplayError> {
    let repo = Repo::discover(desk.folder())?;
    let paths = Paths::from_home(home);
    let store = open_store(&repo, &paths)?;
    let settings = Arc::new(Settings::default());
    let rules = RepositoryRules::fixed(Arc::clone(&settings));
    Ok(Services { repo, store, settings, rules, paths, ambient: ClockAndIds::system() })
}

/// A session that is being replayed.
struct ReplaySession<'a> {
    sandbox: &'a ReplaySandbox,
    services: &'a Services,
    /// Reviews everything in full, in a store that knows nothing of the session.
    full: &'a Services,
    meter: TokenMeter<'a>,
    played: ReplayReport,
    /// All runs that the session started.
    launched: Vec<RunId>,
    /// Started runs that were not awaited yet.
    unawaited: Vec<RunId>,
    rng: SplitMix64,
}

impl ReplaySession<'_> {
    fn play_commit(&mut self, past: &ReplayCommit, topic: &str, number: usize) -> Result<(), ReplayError> {
        let touched: Vec<TouchedPath> = self.sandbox.touched_paths(past)?;
        for step in plan_steps(&mut self.rng) {
            match step {
                SessionStep::Edit(part) => self.sandbox.apply_part(past, &touched, part)?,
                SessionStep::Discard => self.sandbox.discard_changes()?,
                SessionStep::Commit => self.sandbox.commit(&past.commit)?,
                SessionStep::Amend => self.sandbox.amend()?,
                SessionStep::Reword => self.sandbox.reword(&format!("{}, in better words", past.commit))?,
                SessionStep::Rebase => self.sandbox.rebase(topic, number)?,
                SessionStep::VisitTrunk => {
                    self.sandbox.switch(TRUNK)?;
                    self.request_review(ReplayScope::Head, AfterRequest::Wait)?;
                    self.sandbox.switch(topic)?;
                }
                SessionStep::Review(asked, after) => {
                    self.request_review(asked, after)?;
                }
                SessionStep::Compare(asked) => self.compare_with_full(asked, &past.commit)?,
            }
        }
        self.played.commits += 1;
        Ok(())
    }

    /// Ends a topic: requests its last review and lands it on the trunk.
    fn land_topic(&mut self) -> Result<(), ReplayError> {
        self.request_review(ReplayScope::Branch, AfterRequest::Wait)?;
        self.compare_with_full(ReplayScope::Branch, "the end of a topic")?;
        self.sandbox.land_topic()
    }

    fn request_review(&mut self, asked: ReplayScope, after: AfterRequest) -> Result<RunRecord, ReplayError> {
        let requested = self.services.launcher().request_review(&build_request(asked, ForceReview::No))?;
        let run = requested.run;
        self.played.requests += 1;
        self.played.tokens_in_full += self.meter.count_full(&run)?;
        let counted = match requested.decision.action {
            ReviewAction::Launch => &mut self.played.launched,
            ReviewAction::Resume { .. } => &mut self.played.resumed,
            ReviewAction::Adopt { .. } => &mut self.played.adopted,
            ReviewAction::Reuse { .. } => &mut self.played.reused,
            ReviewAction::Skip => &mut self.played.skipped,
        };
        *counted += 1;
        if requested.decision.action.starts_run() {
            self.launched.push(run.run_id.clone());
            self.unawaited.push(run.run_id.clone());
        }
        match after {
            AfterRequest::GoOn => Ok(run),
            AfterRequest::Kill => {
                self.kill_worker(&run)?;
                Ok(run)
            }
            AfterRequest::Wait => {
                for run in std::mem::take(&mut self.unawaited) {
                    self.services.control().wait_for_run(&run, &mut |_| true)?;
                }
                Ok(self.services.control().wait_for_run(&run.run_id, &mut |_| true)?)
            }
        }
    }

    /// Kills the run's worker as soon as it has begun. A faster worker has ended regularly.
    fn kill_worker(&mut self, run: &RunRecord) -> Result<(), ReplayError> {
        let give_up = Instant::now() + MAX_BEGIN_WAIT;
        let began = loop {
            let entries = self.services.store.read_journal(&run.run_id)?;
            let began = entries.iter().rev().find_map(|entry| match entry.event {
                RunEvent::Started { worker, .. } => Some(worker),
                _ => None,
            });
            if began.is_some() || Instant::now() > give_up {
                break began;
            }
            // The interval is short because a worker lives only briefly, and no event announces its start.
            std::thread::sleep(Duration::from_micros(200));
        };
        if let Some(worker) = began
            && self.services.store.is_live(&run.run_id)?
        {
            process::kill_group(worker);
            self.played.killed += 1;
        }
        Ok(())
    }

    /// Makes a full review of the current code and searches for each of its findings in the session's results.
    fn compare_with_full(&mut self, asked: ReplayScope, place: &str) -> Result<(), ReplayError> {
        let ours = self.request_and_wait(self.services, asked, ForceReview::No)?;
        let full = self.request_and_wait(self.full, asked, ForceReview::Yes)?;
        self.played.compared += 1;
        let Some(full) = self.full.store.output(&full.run_id)? else { return Ok(()) };
        let output = self.services.store.output(&ours.run_id)?;
        let findings: Vec<Finding> = output.as_ref().map_or(Vec::new(), |output| output.findings.clone());
        for finding in &full.findings {
            self.played.findings_in_full += 1;
            if findings.iter().any(|ours| is_same_finding(ours, finding)) {
                continue;
            }
            let held_back = output.iter().flat_map(|output| &output.held_back);
            if held_back.map(|held| &held.finding).any(|ours| is_same_finding(ours, finding))
                || self.is_standing(finding)?
            {
                self.played.held_back += 1;
                continue;
            }
            let Finding { kind, repo_relative_path: path, line_start, .. } = finding;
            self.played.missing.push(format!("{place}: {kind} {path}:{line_start} ({})", ours.run_id));
        }
        Ok(())
    }

    /// Returns `true` if the store knows the finding as open or unresolved, from any report.
    fn is_standing(&self, finding: &Finding) -> Result<bool, ReplayError> {
        let view = self.services.store.view()?;
        let known = view.finding_index(finding.finding_id.as_str());
        Ok(known.is_some_and(|index| {
            let row = view.finding(index);
            matches!(row.status, FindingStatus::Open | FindingStatus::Unresolved)
        }))
    }

    fn request_and_wait(
        &self,
        services: &Services,
        asked: ReplayScope,
        force: ForceReview,
    ) -> Result<RunRecord, ReplayError> {
        let requested = services.launcher().request_review(&build_request(asked, force))?;
        Ok(services.control().wait_for_run(&requested.run.run_id, &mut |_| true)?)
    }

    /// Awaits all runs of the session and sums up their results.
    fn sum_up(mut self) -> Result<ReplayReport, ReplayError> {
        let mut whole: HashMap<(String, String, String), usize> = HashMap::new();
        for id in &self.launched {
            let run = self.services.control().wait_for_run(id, &mut |_| true)?;
            let output = self.services.store.output(id)?.unwrap_or_else(|| RunOutput::new(run.clone()));
            let sent = self.meter.count_sent(&output)?;
            self.played.tokens_sent += sent;
            self.played.hunks_carried += u64::from(output.coverage.hunks_carried);
            if run.attempt > 1 {
                self.played.restarted += 1;
            }
            if run.status == RunStatus::Superseded {
                self.played.superseded += 1;
            }
            if run.status == RunStatus::Completed && sent > 0 {
                *whole
                    .entry((run.subject.scope_hash, run.subject.diff_fingerprint, run.subject.prompt_policy_version))
                    .or_default() += 1;
            }
        }
        self.played.reviewed_twice = whole.values().map(|count| count - 1).sum();
        Ok(self.played)
    }
}

/// States whether a review is made although an equivalent one exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForceReview {
    No,
    Yes,
}

fn build_request(asked: ReplayScope, force: ForceReview) -> ReviewRequest {
    ReviewRequest {
        scope: Some(asked.scope()),
        reviewer: Some(BUILTIN_REVIEWER.to_owned()),
        prompt_set: None,
        source: Source::Cli,
        started_in_session: 0,
        demand: ReviewDemand::anew_if(force == ForceReview::Yes),
    }
}

/// Compares findings by id or by place, because a known finding keeps its id when its code is edited, while a new
/// review computes the id from the current code.
fn is_same_finding(ours: &Finding, other: &Finding) -> bool {
    ours.finding_id == other.finding_id
        || (ours.kind == other.kind
            && ours.repo_relative_path == other.repo_relative_path
            && ours.line_start <= other.line_end
            && other.line_start <= ours.line_end)
}
