//! A coding session made of the past: the last commits of a repository are written again, step by step, with reviews asked
//! for on the way, and a token meter beside them.
//!
//! Invariants: the repository is only read (the session works in a clone that shares its objects); the runs, workers and
//! the store are the real ones, in a home of their own that vanishes afterwards; the same seed gives the same session.
//!
//! `script` says what is done, `desk` does it with git, `meter` counts, and this file asks for the reviews and holds what
//! they found against reviews of everything.

mod desk;
mod dice;
mod meter;
mod script;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ReviewRequest, Runner, RunnerError, process, store_of};
use crate::config::{Ambient, Paths, Settings};
use crate::domain::{Finding, FindingStatus, RunEvent, RunId, RunOutput, RunRecord, RunStatus, Source};
use crate::git::{GitError, Repo};
use crate::policy::Action;
use crate::store::StoreError;
use desk::{Desk, Past, TRUNK, Touched};
use dice::Dice;
use meter::Meter;
use script::{After, Asked, Step, steps};

/// Commits on one topic branch before it lands on the trunk.
const TOPIC: usize = 8;
/// How long a worker may take to begin before it is killed; it is killed then anyway.
const BEGIN: Duration = Duration::from_secs(10);

/// What to play.
#[derive(Debug, Clone)]
pub struct Options {
    /// A repository, with or without a working tree.
    pub source: PathBuf,
    pub commits: usize,
    pub seed: u64,
    /// Where the clone and the homes are made; they vanish with it.
    pub folder: PathBuf,
}

/// What a replay came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
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

impl Played {
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
    NoPast { repository: PathBuf },
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
pub fn replay(options: &Options, progress: &mut dyn FnMut(usize, usize)) -> Result<Played, ReplayError> {
    let desk = Desk::clone_of(&options.source, options.folder.join("clone"))?;
    let past = desk.past(options.commits)?;
    let Some(first) = past.first() else { return Err(ReplayError::NoPast { repository: options.source.clone() }) };
    desk.begin(&first.parent)?;
    let session = runner(&desk, &options.folder.join("home"))?;
    let measure = runner(&desk, &options.folder.join("full"))?;
    let meter = Meter::new(&session.repo, session.filter());
    let mut stage = Stage {
        desk: &desk,
        runner: &session,
        full: &measure,
        meter,
        played: Played::default(),
        launched: Vec::new(),
        going: Vec::new(),
        dice: Dice::new(options.seed),
    };
    let mut topic = String::new();
    for (number, commit) in past.iter().enumerate() {
        if number % TOPIC == 0 {
            if number > 0 {
                stage.land()?;
            }
            topic = format!("topic-{number}");
            desk.begin_topic(&topic)?;
        }
        stage.play(commit, &topic, number)?;
        progress(number + 1, past.len());
    }
    stage.land()?;
    stage.settle()
}

/// A runner with default settings and a store of its own.
fn runner(desk: &Desk, home: &Path) -> Result<Runner, ReplayError> {
    let repo = Repo::discover(desk.folder())?;
    let paths = Paths::below(home);
    let store = store_of(&repo, &paths)?;
    let settings = Settings::default();
    Ok(Runner { repo, store, settings: Arc::new(settings), paths, ambient: Ambient::system() })
}

/// A session that is being played.
struct Stage<'a> {
    desk: &'a Desk,
    runner: &'a Runner,
    /// Reviews everything in full, in a store that knows nothing of the session.
    full: &'a Runner,
    meter: Meter<'a>,
    played: Played,
    /// Every run that the session caused.
    launched: Vec<RunId>,
    /// Those of them that were not waited for yet.
    going: Vec<RunId>,
    dice: Dice,
}

impl Stage<'_> {
    fn play(&mut self, past: &Past, topic: &str, number: usize) -> Result<(), ReplayError> {
        let touched: Vec<Touched> = self.desk.paths(past)?;
        for step in steps(&mut self.dice) {
            match step {
                Step::Edit(part) => self.desk.edit(past, &touched, part)?,
                Step::TakeBack => self.desk.take_back()?,
                Step::Commit => self.desk.commit(&past.commit)?,
                Step::Amend => self.desk.amend()?,
                Step::Reword => self.desk.reword(&format!("{}, in better words", past.commit))?,
                Step::Rebase => self.desk.rebase(topic, number)?,
                Step::LookAtTrunk => {
                    self.desk.switch(TRUNK)?;
                    self.ask(Asked::Head, After::Wait)?;
                    self.desk.switch(topic)?;
                }
                Step::Review(asked, after) => {
                    self.ask(asked, after)?;
                }
                Step::Compare(asked) => self.compare(asked, &past.commit)?,
            }
        }
        self.played.commits += 1;
        Ok(())
    }

    /// The end of a topic: its last review, and the trunk has it.
    fn land(&mut self) -> Result<(), ReplayError> {
        self.ask(Asked::Branch, After::Wait)?;
        self.compare(Asked::Branch, "the end of a topic")?;
        self.desk.land_topic()
    }

    fn ask(&mut self, asked: Asked, after: After) -> Result<RunRecord, ReplayError> {
        let requested = self.runner.request(&wish(asked, Force::No))?;
        let run = requested.run;
        self.played.requests += 1;
        self.played.tokens_in_full += self.meter.full(&run)?;
        let counted = match requested.decision.action {
            Action::Launch => &mut self.played.launched,
            Action::Resume { .. } => &mut self.played.resumed,
            Action::Adopt { .. } => &mut self.played.adopted,
            Action::Reuse { .. } => &mut self.played.reused,
            Action::Skip => &mut self.played.skipped,
        };
        *counted += 1;
        if matches!(requested.decision.action, Action::Launch | Action::Resume { .. }) {
            self.launched.push(run.run_id.clone());
            self.going.push(run.run_id.clone());
        }
        match after {
            After::GoOn => Ok(run),
            After::Kill => {
                self.kill(&run)?;
                Ok(run)
            }
            After::Wait => {
                for run in std::mem::take(&mut self.going) {
                    self.runner.wait(&run, &mut |_| true)?;
                }
                Ok(self.runner.wait(&run.run_id, &mut |_| true)?)
            }
        }
    }

    /// Kills the run's worker as soon as it has begun. One that is faster than that has ended in order.
    fn kill(&mut self, run: &RunRecord) -> Result<(), ReplayError> {
        let give_up = Instant::now() + BEGIN;
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
    fn compare(&mut self, asked: Asked, place: &str) -> Result<(), ReplayError> {
        let ours = self.ask_again(self.runner, asked, Force::No)?;
        let full = self.ask_again(self.full, asked, Force::Yes)?;
        self.played.compared += 1;
        let Some(full) = self.full.store.output(&full.run_id)? else { return Ok(()) };
        let output = self.runner.store.output(&ours.run_id)?;
        let findings: Vec<Finding> = output.as_ref().map_or(Vec::new(), |output| output.findings.clone());
        for finding in &full.findings {
            self.played.findings_in_full += 1;
            if findings.iter().any(|ours| is_the_same(ours, finding)) {
                continue;
            }
            let held_back = output.iter().flat_map(|output| &output.held_back);
            if held_back.map(|held| &held.finding).any(|ours| is_the_same(ours, finding)) || self.stands(finding)? {
                self.played.held_back += 1;
                continue;
            }
            let Finding { kind, repo_relative_path: path, line_start, .. } = finding;
            self.played.missing.push(format!("{place}: {kind} {path}:{line_start} ({})", ours.run_id));
        }
        Ok(())
    }

    /// Whether the store knows the finding, wherever it was reported, and nobody has called it done with.
    fn stands(&self, finding: &Finding) -> Result<bool, ReplayError> {
        let view = self.runner.store.view()?;
        let known = view.finding_index(finding.finding_id.as_str());
        Ok(known.is_some_and(|index| {
            let row = view.finding(index);
            matches!(row.status, FindingStatus::Open | FindingStatus::Unresolved)
        }))
    }

    fn ask_again(&self, runner: &Runner, asked: Asked, force: Force) -> Result<RunRecord, ReplayError> {
        let requested = runner.request(&wish(asked, force))?;
        Ok(runner.wait(&requested.run.run_id, &mut |_| true)?)
    }

    /// Adds up what the runs of the session have done, once all have ended.
    fn settle(mut self) -> Result<Played, ReplayError> {
        let mut whole: HashMap<(String, String, String), usize> = HashMap::new();
        for id in &self.launched {
            let run = self.runner.wait(id, &mut |_| true)?;
            let output = self.runner.store.output(id)?.unwrap_or_else(|| RunOutput::new(run.clone()));
            let sent = self.meter.sent(&output)?;
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
enum Force {
    No,
    Yes,
}

fn wish(asked: Asked, force: Force) -> ReviewRequest {
    ReviewRequest {
        scope: Some(asked.scope()),
        reviewer: Some(Runner::BUILTIN.to_owned()),
        source: Source::Cli,
        force: force == Force::Yes,
    }
}

/// A finding keeps its id when its code is edited; a review that has never seen it before gives it one by the code as it
/// is now. So the place decides as well.
fn is_the_same(ours: &Finding, other: &Finding) -> bool {
    ours.finding_id == other.finding_id
        || (ours.kind == other.kind
            && ours.repo_relative_path == other.repo_relative_path
            && ours.line_start <= other.line_end
            && other.line_start <= ours.line_end)
}
