//! A coding session made of the past: the last commits of a repository are written again, step by step, with reviews asked
//! for on the way, and a token meter beside them.
//!
//! Invariants: the repository is only read (the session works in a clone that shares its objects); the runs, workers and
//! the store are the real ones, in a home of their own that vanishes afterwards; the same seed gives the same session.
//!
//! `script` says what is done, `desk` does it with git, `meter` counts, and this file asks for the reviews and holds what
//! they found against reviews of everything.

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
use crate::runner::{ReviewRequest, Runner, RunnerError, open_store, process};
use crate::store::StoreError;
use rng::SplitMix64;
use sandbox::{ReplayCommit, ReplaySandbox, TRUNK, TouchedPath};
use script::{AfterRequest, ReplayScope, SessionStep, plan_steps};
use token_meter::TokenMeter;

/// Commits on one topic branch before it lands on the trunk.
const COMMITS_PER_TOPIC: usize = 8;
/// How long a worker may take to begin before it is killed; it is killed then anyway.
const MAX_BEGIN_WAIT: Duration = Duration::from_secs(10);

/// What to play.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// A repository, with or without a working tree.
    pub source: PathBuf,
    pub commits: usize,
    pub seed: u64,
    /// Where the clone and the homes are made; they vanish with it.
    pub folder: PathBuf,
}

/// What a replay came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayReport {
    pub commits: usize,
    /// Reviews asked for.
    pub requests: usize,
    pub launched: usize,
    pub adopted: usize,
    pub reused: usize,
    pub resumed: usize,
    pub skipped: usize,
    /// Runs that ended in favour of a newer one.
    pub superseded: usize,
    /// Workers killed.
    pub killed: usize,
    /// Runs that went on after the death of their worker.
    pub restarted: usize,
    /// Tokens of input if each request had been answered by a review of all that it was about.
    pub tokens_in_full: u64,
    /// Tokens of input that were sent.
    pub tokens_sent: u64,
    /// Hunks that runs took over from earlier ones.
    pub hunks_carried: u64,
    /// Equivalent changes of which more than one run has reviewed all; each is a fault.
    pub reviewed_twice: usize,
    /// Codes on which a full review was held against what stood in the store.
    pub compared: usize,
    /// Findings of those full reviews.
    pub findings_in_full: usize,
    /// Of these, what the store does not have: each with its commit.
    pub missing: Vec<String>,
    /// Of these, what a run has and does not raise: known, held back as a rule says.
    pub held_back: usize,
}

impl ReplayReport {
    /// The share of input that was saved, in percent.
    pub fn saved_percent(&self) -> f64 {
        match self.tokens_in_full {
            0 => 0.0,
            full => 100.0 * (1.0 - self.tokens_sent as f64 / full as f64),
        }
    }
}

/// Why a replay cannot go on.
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

/// Plays a session. `progress` is told how many of how many commits are done.
///
/// # Errors
/// The git program is missing or refuses, or the runner cannot work.
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
        runner: &session,
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

/// A runner with default settings and a store of its own.
fn open_runner(desk: &ReplaySandbox, home: &Path) -> Result<Runner, ReplayError> {
    let repo = Repo::discover(desk.folder())?;
    let paths = Paths::from_home(home);
    let store = open_store(&repo, &paths)?;
    let settings = Settings::default();
    Ok(Runner { repo, store, settings: Arc::new(settings), paths, ambient: ClockAndIds::system() })
}

/// A session that is being played.
struct ReplaySession<'a> {
    sandbox: &'a ReplaySandbox,
    runner: &'a Runner,
    /// Reviews everything in full, in a store that knows nothing of the session.
    full: &'a Runner,
    meter: TokenMeter<'a>,
    played: ReplayReport,
    /// Every run that the session caused.
    launched: Vec<RunId>,
    /// Those of them that were not waited for yet.
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

    /// The end of a topic: its last review, and the trunk has it.
    fn land_topic(&mut self) -> Result<(), ReplayError> {
        self.request_review(ReplayScope::Branch, AfterRequest::Wait)?;
        self.compare_with_full(ReplayScope::Branch, "the end of a topic")?;
        self.sandbox.land_topic()
    }

    fn request_review(&mut self, asked: ReplayScope, after: AfterRequest) -> Result<RunRecord, ReplayError> {
        let requested = self.runner.request_review(&build_request(asked, ForceReview::No))?;
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
        if matches!(requested.decision.action, ReviewAction::Launch | ReviewAction::Resume { .. }) {
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
                    self.runner.wait_for_run(&run, &mut |_| true)?;
                }
                Ok(self.runner.wait_for_run(&run.run_id, &mut |_| true)?)
            }
        }
    }

    /// Kills the run's worker as soon as it has begun. One that is faster than that has ended in order.
    fn kill_worker(&mut self, run: &RunRecord) -> Result<(), ReplayError> {
        let give_up = Instant::now() + MAX_BEGIN_WAIT;
        let began = loop {
            let entries = self.runner.store.read_journal(&run.run_id)?;
            let began = entries.iter().rev().find_map(|entry| match entry.event {
                RunEvent::Started { worker, .. } => Some(worker),
                _ => None,
            });
            if began.is_some() || Instant::now() > give_up {
                break began;
            }
            // As short as the life of a worker asks for: nothing wakes us before its record says that it works.
            std::thread::sleep(Duration::from_micros(200));
        };
        if let Some(worker) = began
            && self.runner.store.is_live(&run.run_id)?
        {
            process::kill_group(worker);
            self.played.killed += 1;
        }
        Ok(())
    }

    /// Reviews the code that is now finished in full, and looks for each finding in what the session has.
    fn compare_with_full(&mut self, asked: ReplayScope, place: &str) -> Result<(), ReplayError> {
        let ours = self.request_and_wait(self.runner, asked, ForceReview::No)?;
        let full = self.request_and_wait(self.full, asked, ForceReview::Yes)?;
        self.played.compared += 1;
        let Some(full) = self.full.store.output(&full.run_id)? else { return Ok(()) };
        let output = self.runner.store.output(&ours.run_id)?;
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

    /// Whether the store knows the finding, wherever it was reported, and nobody has called it done with.
    fn is_standing(&self, finding: &Finding) -> Result<bool, ReplayError> {
        let view = self.runner.store.view()?;
        let known = view.finding_index(finding.finding_id.as_str());
        Ok(known.is_some_and(|index| {
            let row = view.finding(index);
            matches!(row.status, FindingStatus::Open | FindingStatus::Unresolved)
        }))
    }

    fn request_and_wait(
        &self,
        runner: &Runner,
        asked: ReplayScope,
        force: ForceReview,
    ) -> Result<RunRecord, ReplayError> {
        let requested = runner.request_review(&build_request(asked, force))?;
        Ok(runner.wait_for_run(&requested.run.run_id, &mut |_| true)?)
    }

    /// Adds up what the runs of the session have done, once all have ended.
    fn sum_up(mut self) -> Result<ReplayReport, ReplayError> {
        let mut whole: HashMap<(String, String, String), usize> = HashMap::new();
        for id in &self.launched {
            let run = self.runner.wait_for_run(id, &mut |_| true)?;
            let output = self.runner.store.output(id)?.unwrap_or_else(|| RunOutput::new(run.clone()));
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
                *whole.entry((run.scope_hash, run.diff_fingerprint, run.prompt_policy_version)).or_default() += 1;
            }
        }
        self.played.reviewed_twice = whole.values().map(|count| count - 1).sum();
        Ok(self.played)
    }
}

/// Whether a review is made although there is an equivalent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForceReview {
    No,
    Yes,
}

fn build_request(asked: ReplayScope, force: ForceReview) -> ReviewRequest {
    ReviewRequest {
        scope: Some(asked.scope()),
        reviewer: Some(Runner::BUILTIN.to_owned()),
        source: Source::Cli,
        force: force == ForceReview::Yes,
    }
}

/// A finding keeps its id when its code is edited; a review that has never seen it before gives it one by the code as it
/// is now. So the place decides as well.
fn is_same_finding(ours: &Finding, other: &Finding) -> bool {
    ours.finding_id == other.finding_id
        || (ours.kind == other.kind
            && ours.repo_relative_path == other.repo_relative_path
            && ours.line_start <= other.line_end
            && other.line_start <= ours.line_end)
}
