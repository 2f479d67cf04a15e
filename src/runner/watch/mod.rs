//! Watching: reviews that nobody has to ask for, by the policy's word.
//!
//! One watcher per repository, all its worktrees included: it holds `locks/watch.lock` for its life, so that a killed one
//! leaves nothing to clean. It sleeps until the system tells it that something stirred ([`eye`]; `mail` keeps that
//! bounded), looks whether anything moved ([`ground`]), advances the epoch, and asks [`policy::rate`] what to do: a review,
//! which [`Runner::request`] may adopt, reuse or skip; to wait; or nothing. While nothing stirs and nothing waits it does
//! not wake; where the system cannot tell, it looks every so often and says so.
//!
//! Invariants: settings are read anew before each verdict (which paths are ignored: when it begins to watch them); no
//! repository is kept open between two looks, so that gc and removal are nobody's problem; a laptop that slept is noticed by its clock, and everything looked at again.

mod control;
mod fs_events;
mod inputs;
mod queue;
mod snooze;
mod worktree_state;

pub use control::{StopOutcome, WatchState};
pub use snooze::parse_snooze;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use super::{ReviewRequest, Runner, RunnerError, process};
use crate::config::ClockAndIds;
use crate::domain::{Scope, Source, Time, WatchTrigger, text};
use crate::git::Repo;
use crate::policy::{self, AutoReviewInput, AutoReviewVerdict, NoReviewReason, RetryAt, ReviewAction};
use crate::store::{RunLock, Store, StoreError, WatcherInfo, WatcherStatus};

use fs_events::FsEventSource;
use inputs::{measure_scope, rules_from_settings};
use queue::{WatchEvents, WatchQueue};
use worktree_state::{LookResult, PendingMovement, WatchedWorktree};

/// A wait for a time of day is cut into pieces of this length: while a laptop sleeps, time stands still for who waits.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// The clock on the wall and the one that only counts may differ by so much before something must have happened: sleep,
/// or somebody who set the clock.
const MAX_CLOCK_DRIFT: Duration = Duration::from_secs(5);
/// What could not be decided is tried again after so long, and twice as long each time.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// ... so often.
const MAX_FAILURES: u32 = 8;

const SETTLE_TIME: Duration = Duration::from_millis(policy::MIN_SETTLE_MS);

/// Opens a worktree with the settings as they are now. The error is a sentence.
pub type WorktreeOpener = Box<dyn Fn(&Path) -> Result<Runner, String>>;

/// A watcher that has the lock.
pub struct RepoWatcher {
    open: WorktreeOpener,
    store: Store,
    ambient: ClockAndIds,
    /// Worktrees in here are nobody's work.
    own_folders: Vec<PathBuf>,
    owner: String,
    since: Time,
    queue: Arc<WatchQueue>,
    source: FsEventSource,
    /// How often to look should the system stop telling.
    every: Duration,
    worktrees: Vec<WatchedWorktree>,
    /// The epoch as it was advanced last: as long as nobody took a newer one, every run is older already.
    epoch: Option<u64>,
    clocks: (Instant, Time),
    looked: Instant,
    common_dir: PathBuf,
    /// When to see which worktrees there are, and how often that was put off for one that cannot be watched yet.
    worktrees_due: Option<(Instant, u32)>,
    pending_lines: Vec<WatchLine>,
    _lock: RunLock,
}

/// What came of the wish to watch.
pub enum WatchStart {
    Watching(Box<RepoWatcher>),
    /// Somebody watches already.
    Already(WatcherStatus),
}

/// A line about something the watcher did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchLine {
    pub at: Time,
    pub text: String,
}

/// Whether a movement that was decided about goes on to wait.
enum MovementFate {
    No,
    Until { due: Option<Instant>, said: Option<NoReviewReason> },
}

/// How watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// Somebody asked for it.
    Stopped,
    /// What was watched is gone.
    Gone(PathBuf),
}

/// Ends a watcher from another thread.
#[derive(Debug, Clone)]
pub struct WatchStopper(Arc<WatchQueue>);

impl WatchStopper {
    pub fn stop(&self) {
        self.0.update(|news| news.stop = true);
    }
}

/// Whether a watcher ends with its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalBinding {
    Terminal,
    /// It goes on until it is told to end.
    None,
}

impl RepoWatcher {
    /// Takes the lock and begins to watch all worktrees of the repository.
    pub fn begin(runner: Runner, open: WorktreeOpener) -> Result<WatchStart, RunnerError> {
        let Some(lock) = runner.store.lock_watcher()? else {
            return Ok(WatchStart::Already(runner.store.watcher_status()?));
        };
        let Runner { repo, store, settings, paths, ambient } = runner;
        let mail = Arc::new(WatchQueue::default());
        let every = Duration::from_secs(settings.watch.poll_seconds);
        let eye = match settings.watch.poll {
            true => FsEventSource::Polling { reason: "watch.poll says so".to_owned(), every },
            false => FsEventSource::open(&mail, &store.snooze_path(), every),
        };
        let since = ambient.now();
        let mut watch = Self {
            own_folders: [Some(paths.state.as_path()), Some(paths.cache.as_path()), paths.home()]
                .into_iter()
                .flatten()
                .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
                .collect(),
            open,
            owner: process::owner(),
            since,
            queue: mail,
            source: eye,
            every,
            worktrees: Vec::new(),
            epoch: None,
            clocks: (Instant::now(), since),
            looked: Instant::now(),
            common_dir: repo.common_dir(),
            worktrees_due: None,
            pending_lines: Vec::new(),
            store,
            ambient,
            _lock: lock,
        };
        watch.worktrees.push(WatchedWorktree::new(&repo.root(), &settings)?);
        if let Err(reason) =
            watch.source.watch_folder(watch.store.root()).and_then(|()| watch.worktrees[0].watch(&mut watch.source))
        {
            watch.switch_to_polling(reason);
        }
        watch.find_worktrees(Instant::now(), 0);
        watch.publish_state()?;
        Ok(WatchStart::Watching(Box::new(watch)))
    }

    pub fn stopper(&self) -> WatchStopper {
        WatchStopper(Arc::clone(&self.queue))
    }

    /// From here on SIGINT and SIGTERM, and the end of the terminal on a leash, end the watcher.
    pub fn end_on_signals(&self, leash: TerminalBinding) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let stopper = self.stopper();
        let listen = move || {
            for signal in signals.forever() {
                if signal != SIGHUP || leash == TerminalBinding::Terminal {
                    stopper.stop();
                }
            }
        };
        std::thread::Builder::new().name("watch-signals".to_owned()).spawn(listen).map(drop)
    }

    /// What it does, for the line that says that it began.
    pub fn describe(&self) -> String {
        let places = text::format_count(self.worktrees.len(), "worktree");
        let folders: usize = self.worktrees.iter().map(WatchedWorktree::folder_count).sum();
        match &self.source {
            FsEventSource::Events(_) => format!("watching {places}, {}", text::format_count(folders, "folder")),
            FsEventSource::Polling { reason, every } => {
                format!("watching {places} by looking every {} s: {reason}", every.as_secs())
            }
        }
    }

    /// Watches until somebody ends it or what is watched is gone. `say` gets a line about everything it does.
    pub fn run(mut self, say: &mut dyn FnMut(&WatchLine)) -> Result<WatchEnd, RunnerError> {
        let end = loop {
            self.pending_lines.drain(..).for_each(|said| say(&said));
            let news = self.queue.wait(self.time_until_due());
            if news.stop {
                break WatchEnd::Stopped;
            }
            let now = Instant::now();
            if self.has_clock_jumped(now) || news.overflowed {
                self.mark_all_disturbed(now, news.overflowed);
            }
            self.handle_events(news, now);
            if let Some((_, tries)) = self.worktrees_due.take_if(|(due, _)| *due <= now) {
                self.find_worktrees(now, tries);
            }
            if let Some(end) = self.drop_gone_worktrees() {
                break end;
            }
            for at in 0..self.worktrees.len() {
                self.look_at_worktree(at, now);
                self.decide_due(at, now);
            }
        };
        self.pending_lines.drain(..).for_each(|said| say(&said));
        self.store.remove_watcher_info()?;
        Ok(end)
    }

    /// How long nothing needs to be done; `None` for as long as nothing is heard.
    fn time_until_due(&self) -> Option<Duration> {
        let looks = self.source.poll_interval().map(|every| self.looked + every);
        let worktrees = self.worktrees_due.map(|(due, _)| due);
        let due = self.worktrees.iter().filter_map(WatchedWorktree::due).chain(looks).chain(worktrees).min()?;
        Some(due.saturating_duration_since(Instant::now()).min(MAX_SLEEP))
    }

    /// Whether the clocks went apart since the last time: somebody slept.
    fn has_clock_jumped(&mut self, now: Instant) -> bool {
        let wall = self.ambient.now();
        let (then, wall_then) = std::mem::replace(&mut self.clocks, (now, wall));
        have_diverged(now - then, wall.duration_since(wall_then))
    }

    /// Anything may have moved, and waits may be over.
    fn mark_all_disturbed(&mut self, now: Instant, watch_again: bool) {
        for at in 0..self.worktrees.len() {
            let ground = &mut self.worktrees[at];
            ground.mark_disturbed(now);
            ground.pending.iter_mut().for_each(|pending| pending.due = Some(now));
            if watch_again && let Err(reason) = ground.watch_again(&mut self.source) {
                self.switch_to_polling(reason);
            }
        }
    }

    fn handle_events(&mut self, news: WatchEvents, now: Instant) {
        if let Some(reason) = news.broken {
            self.switch_to_polling(reason);
        }
        if news.snooze_changed {
            let pending = self.worktrees.iter_mut().flat_map(|ground| &mut ground.pending);
            pending.for_each(|pending| pending.due = Some(now));
        }
        let worktrees = self.common_dir.join("worktrees");
        for (path, happened) in &news.paths {
            if path.starts_with(&worktrees) {
                self.worktrees_due = Some((now + SETTLE_TIME, 0));
            }
            let eye = &mut self.source;
            let heard =
                self.worktrees.iter_mut().try_for_each(|ground| ground.handle_path_event(path, *happened, now, eye));
            if let Err(reason) = heard {
                self.switch_to_polling(reason);
            }
        }
        if self.source.poll_interval().is_some_and(|every| self.looked + every <= now) {
            self.looked = now;
            self.worktrees_due = Some((now, 0));
            self.worktrees.iter_mut().for_each(|ground| ground.mark_due(now));
        }
    }

    /// Watches the worktrees that are not watched yet.
    fn find_worktrees(&mut self, now: Instant, tries: u32) {
        let Some(repo) = self.worktrees.iter().find_map(|ground| Repo::open_worktree(&ground.root).ok()) else {
            return;
        };
        // It is made with the first of them.
        if let Err(reason) = self.source.watch_folder(&self.common_dir.join("worktrees")) {
            self.switch_to_polling(reason);
        }
        let known = self.worktrees.len();
        for root in repo.worktrees() {
            let known = self.worktrees.iter().any(|ground| ground.root == root);
            if known || self.own_folders.iter().any(|folder| root.starts_with(folder)) {
                continue;
            }
            let ground = (self.open)(&root)
                .and_then(|runner| WatchedWorktree::new(&root, &runner.settings).map_err(|error| error.to_string()));
            match ground {
                Ok(mut ground) => {
                    if let Err(reason) = ground.watch(&mut self.source) {
                        self.switch_to_polling(reason);
                    }
                    self.worktrees.push(ground);
                }
                // It may be about to be made, or half removed.
                Err(error) => {
                    tracing::debug!(root = %root.display(), error, "a worktree is not watched");
                    let later = now + RETRY_DELAY * 2u32.saturating_pow(tries);
                    self.worktrees_due = (tries < MAX_FAILURES).then_some((later, tries + 1));
                }
            }
        }
        if self.worktrees.len() != known {
            self.publish_state_or_warn();
        }
    }

    /// The system does not tell (any more).
    fn switch_to_polling(&mut self, reason: String) {
        if let FsEventSource::Events(_) = self.source {
            self.queue_line(format!("looking every {} s from now on: {reason}", self.every.as_secs()));
            self.source = FsEventSource::Polling { reason, every: self.every };
            let now = Instant::now();
            self.worktrees.iter_mut().for_each(|ground| ground.mark_disturbed(now));
            self.publish_state_or_warn();
        }
    }

    fn drop_gone_worktrees(&mut self) -> Option<WatchEnd> {
        let known = self.worktrees.len();
        let mut gone = PathBuf::new();
        for mut ground in std::mem::take(&mut self.worktrees) {
            if ground.is_gone() {
                ground.unwatch(&mut self.source);
                gone = ground.root;
            } else {
                self.worktrees.push(ground);
            }
        }
        if self.worktrees.is_empty() {
            return Some(WatchEnd::Gone(gone));
        }
        if self.worktrees.len() < known {
            self.queue_line(format!("{} is no longer there; the other worktrees stay watched", gone.display()));
            self.publish_state_or_warn();
        }
        None
    }

    fn look_at_worktree(&mut self, at: usize, now: Instant) {
        let ground = &mut self.worktrees[at];
        let looked = ground.check_for_movement(now).and_then(|found| ground.settle_git_movement(now).map(|()| found));
        match looked {
            Ok(LookResult::Nothing) => {}
            Ok(LookResult::Moved) => self.advance_epoch(),
            // Half a rebase, an index that is just being written: what it is tells the next look.
            Err(error) => {
                tracing::warn!(%error, "a worktree cannot be looked at");
                ground.retry_later(now);
            }
        }
    }

    /// Something moved: no run is of this moment.
    fn advance_epoch(&mut self) {
        let advanced = self.store.epoch().and_then(|epoch| match self.epoch {
            Some(ours) if ours == epoch => Ok(epoch),
            _ => self.store.advance_epoch(),
        });
        match advanced {
            Ok(epoch) => self.epoch = Some(epoch),
            Err(error) => tracing::warn!(%error, "the epoch cannot be advanced"),
        }
    }

    fn decide_due(&mut self, at: usize, now: Instant) {
        let (due, rest) = std::mem::take(&mut self.worktrees[at].pending)
            .into_iter()
            .partition(|pending| pending.due.is_some_and(|due| due <= now));
        self.worktrees[at].pending = rest;
        let due: Vec<PendingMovement> = due;
        for mut pending in due {
            match self.decide(at, &pending, now) {
                Ok(MovementFate::No) => continue,
                Ok(MovementFate::Until { due, said }) => (pending.due, pending.announced) = (due, said),
                Err(error) => {
                    pending.failures += 1;
                    if pending.failures == 1 {
                        self.queue_line(format!("{}: {error}", self.describe_movement(at, &pending)));
                    }
                    if pending.failures == MAX_FAILURES {
                        continue;
                    }
                    pending.due = Some(now + RETRY_DELAY * 2u32.saturating_pow(pending.failures - 1));
                }
            }
            self.worktrees[at].pending.push(pending);
        }
    }

    /// Decides about one movement and does what was decided. The error is a sentence.
    fn decide(&mut self, at: usize, pending: &PendingMovement, now: Instant) -> Result<MovementFate, String> {
        let in_words = |error: RunnerError| error.to_string();
        let runner = (self.open)(&self.worktrees[at].root)?;
        let rules = rules_from_settings(&runner.settings);
        let mut situation = self.build_situation(at, pending, &runner, now).map_err(in_words)?;
        let mut verdict = policy::decide_auto_review(&rules, &situation);
        if let AutoReviewVerdict::Review(scope) = &verdict {
            let made = pending.span.as_ref().map(|span| runner.repo.scope_between(&span.from, &span.to));
            let measured = measure_scope(&runner, made.as_ref().unwrap_or(scope));
            let (scope, change) = measured.map_err(|error| error.to_string())?;
            situation.change = change;
            verdict = match policy::decide_auto_review(&rules, &situation) {
                AutoReviewVerdict::Review(_) => AutoReviewVerdict::Review(scope),
                verdict => verdict,
            };
        }
        match verdict {
            AutoReviewVerdict::Review(scope) => {
                self.request_review(at, &runner, pending, scope, now).map_err(in_words)?;
                Ok(MovementFate::No)
            }
            AutoReviewVerdict::NotNow(why) => {
                // Undone edits, and what every commit leaves behind, are no news.
                if why != NoReviewReason::NothingChanged || pending.movement != WatchTrigger::Worktree {
                    self.queue_line(format!("{}: not reviewed: {why}", self.describe_movement(at, pending)));
                }
                Ok(MovementFate::No)
            }
            AutoReviewVerdict::Wait(until, why) => {
                let is_news = !matches!(why, NoReviewReason::NotQuiet | NoReviewReason::TooSoon)
                    && pending.announced != Some(why);
                if is_news {
                    self.queue_line(format!("{}: {}", self.describe_movement(at, pending), self.describe_wait(why)));
                }
                let said = if is_news { Some(why) } else { pending.announced };
                let due = match until {
                    RetryAt::Ms(ms) => Some(now + Duration::from_millis(ms)),
                    RetryAt::Movement => None,
                };
                Ok(MovementFate::Until { due, said })
            }
        }
    }

    fn describe_wait(&self, why: NoReviewReason) -> String {
        match self.store.snoozed_until(self.ambient.now()).filter(|_| why == NoReviewReason::Snoozed) {
            Some(until) => format!("snoozed until {}", until.to_zoned(TimeZone::system()).strftime("%H:%M")),
            None => why.to_string(),
        }
    }

    fn build_situation(
        &self,
        at: usize,
        pending: &PendingMovement,
        runner: &Runner,
        now: Instant,
    ) -> Result<AutoReviewInput, RunnerError> {
        let ground = &self.worktrees[at];
        Ok(AutoReviewInput {
            still_ms: inputs::to_ms(now.saturating_duration_since(pending.moved)),
            operation: ground.stance.operation,
            asked_ms_ago: ground.asked.map(|asked| inputs::to_ms(now.saturating_duration_since(asked))),
            ..runner.base_situation(pending.movement)?
        })
    }

    fn request_review(
        &mut self,
        at: usize,
        runner: &Runner,
        pending: &PendingMovement,
        scope: Scope,
        now: Instant,
    ) -> Result<(), RunnerError> {
        let reviewer = runner.settings.watch.reviewer.clone();
        let request = ReviewRequest { scope: Some(scope), reviewer, source: Source::Watch, force: false };
        let requested = runner.request_review(&request)?;
        if pending.movement == WatchTrigger::Worktree {
            self.worktrees[at].asked = Some(now);
        }
        let (run, reason) = (&requested.run, &requested.decision.reason);
        let said = match &requested.decision.action {
            ReviewAction::Launch => format!("reviewing {} ({})", run.scope, run.run_id),
            ReviewAction::Resume { .. } => format!("reviewing {} ({}): {reason}", run.scope, run.run_id),
            ReviewAction::Adopt { .. } | ReviewAction::Reuse { .. } | ReviewAction::Skip => reason.clone(),
        };
        self.queue_line(format!("{}: {said}", self.describe_movement(at, pending)));
        Ok(())
    }

    /// A movement by its word and its place.
    fn describe_movement(&self, at: usize, pending: &PendingMovement) -> String {
        let (ground, movement) = (&self.worktrees[at], pending.movement);
        let branch = pending.span.as_ref().map_or(&ground.stance.branch, |span| &span.branch);
        let branch = if branch.is_empty() { "detached HEAD" } else { branch };
        match self.worktrees.len() {
            1 => format!("{movement} on {branch}"),
            _ => format!("{movement} on {branch} in {}", ground.root.display()),
        }
    }

    fn queue_line(&mut self, text: String) {
        self.pending_lines.push(WatchLine { at: self.ambient.now(), text: text::sanitize_line(&text).into_owned() });
    }

    /// Says to others what this watcher does.
    fn publish_state(&self) -> Result<(), StoreError> {
        self.store.write_watcher_info(&WatcherInfo {
            pid: std::process::id(),
            owner: self.owner.clone(),
            since: self.since,
            mode: self.source.mode(),
            worktrees: self.worktrees.iter().map(|ground| ground.root.to_string_lossy().into_owned()).collect(),
        })
    }

    fn publish_state_or_warn(&self) {
        if let Err(error) = self.publish_state() {
            tracing::warn!(%error, "what the watcher does cannot be told");
        }
    }
}

/// Whether the clock on the wall went another way than the one that only counts.
fn have_diverged(counted: Duration, wall: jiff::SignedDuration) -> bool {
    let counted = jiff::SignedDuration::try_from(counted).unwrap_or(jiff::SignedDuration::MAX);
    wall.saturating_sub(counted).unsigned_abs() > MAX_CLOCK_DRIFT
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::in_step(60, 60, false)]
    #[case::a_little_late(60, 64, false)]
    #[case::slept_for_an_hour(60, 3660, true)]
    #[case::the_clock_was_set_back(60, -3600, true)]
    #[case::the_clock_stood(60, 0, true)]
    fn sleep_is_seen_by_the_clocks(#[case] counted: u64, #[case] wall: i64, #[case] expected: bool) {
        assert_eq!(have_diverged(Duration::from_secs(counted), SignedDuration::from_secs(wall)), expected);
    }
}
