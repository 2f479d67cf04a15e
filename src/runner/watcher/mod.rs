//! Watching: requests reviews by itself when the policy says so.
//!
//! One watcher per repository covers all its worktrees. It holds `locks/watch.lock` for its whole life, so that a
//! killed watcher leaves nothing to clean up. It sleeps until the system reports an event ([`fs_events`]; `queue`
//! bounds the events), checks whether anything moved ([`worktree_state`]), advances the epoch, and asks
//! [`crate::policy::decide_auto_review`] for a verdict: to request a review, which
//! [`crate::runner::Launcher::request_review`] may adopt, reuse or skip; to wait; or to do nothing. It does not wake while nothing happens and nothing waits. If the system cannot send
//! events, it polls and says so.
//!
//! - Settings are read again before each verdict. The ignored paths are read when the watching of a worktree begins.
//! - No repository stays open between two checks, so that `git gc` and removal are not blocked.
//! - A laptop's sleep is detected by comparing clocks, and then everything is checked again.

mod control;
mod fs_events;
mod inputs;
mod queue;
mod snooze;
mod worktree_state;

pub(crate) use control::{StopOutcome, WatchState};
pub(crate) use snooze::parse_snooze;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use crate::config::ClockAndIds;
use crate::domain::{Scope, Source, Time, WatchTrigger, text};
use crate::git::{self, Repo};
use crate::policy::{self, AutoReviewInput, AutoReviewVerdict, NoReviewReason, RetryAt, ReviewAction};
use crate::runner::{
    AutomaticReviewer, CostLimit, MissingKey, ReviewDemand, ReviewRequest, RunnerError, Services, process,
};
use crate::store::{RunLock, Store, StoreError, WatcherInfo, WatcherStatus};

use fs_events::FsEventSource;
use inputs::{measure_scope, rules_from_settings};
use queue::{WatchEvents, WatchQueue};
use worktree_state::{LookResult, PendingMovement, WatchedWorktree};

/// Maximum length of one wait, because the monotonic clock stands still while a laptop sleeps.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// Maximum difference between wall clock and monotonic clock. A larger difference means that the machine slept or the
/// clock was set.
const MAX_CLOCK_DRIFT: Duration = Duration::from_secs(5);
/// Time that a watcher has to end by itself after a signal: people wait for it at a prompt.
const MAX_STOP_TIME: Duration = Duration::from_millis(700);
/// Delay before a failed verdict is tried again; doubled each time.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of failed tries.
const MAX_FAILURES: u32 = 8;

const SETTLE_TIME: Duration = Duration::from_millis(policy::MIN_SETTLE_MS);

/// Service that starts and stops the watcher process, and measures whether an automatic review is due.
#[derive(Clone, Copy)]
pub struct Watcher<'a> {
    pub(in crate::runner) services: &'a Services,
}

/// Opens a worktree with its current settings. The error is a sentence for the user.
pub type WorktreeOpener = Box<dyn Fn(&Path) -> Result<Services, String>>;

/// A watcher that holds the lock.
pub struct RepoWatcher {
    open: WorktreeOpener,
    store: Store,
    ambient: ClockAndIds,
    /// revdeck's own folders; worktrees inside them are not watched.
    own_folders: Vec<PathBuf>,
    owner: String,
    since: Time,
    queue: Arc<WatchQueue>,
    source: FsEventSource,
    /// The polling interval, should the system stop sending events.
    every: Duration,
    worktrees: Vec<WatchedWorktree>,
    /// The epoch that this watcher set last. While no run has taken a newer epoch, all runs are already older.
    epoch: Option<u64>,
    clocks: (Instant, Time),
    looked: Instant,
    common_dir: PathBuf,
    /// Time of the next search for new worktrees, and the number of failed searches.
    worktrees_due: Option<(Instant, u32)>,
    pending_lines: Vec<WatchLine>,
    /// The missing key that was reported last.
    missing_key: Option<MissingKey>,
    _lock: RunLock,
}

/// The result of starting a watcher.
pub enum WatchStart {
    Watching(Box<RepoWatcher>),
    /// Another watcher is active.
    Already(WatcherStatus),
}

/// A line about an action of the watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchLine {
    pub at: Time,
    pub text: String,
}

/// The state of a movement after a verdict.
enum MovementFate {
    No,
    Until { due: Option<Instant>, said: Option<NoReviewReason> },
}

/// The reason why watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The watcher was asked to stop.
    Stopped,
    /// The watched folder is gone.
    Gone(PathBuf),
}

/// Stops a watcher from another thread.
#[derive(Debug, Clone)]
pub struct WatchStopper(Arc<WatchQueue>);

impl WatchStopper {
    pub fn stop(&self) {
        self.0.update(|news| news.stop = true);
    }
}

/// States whether a watcher ends with its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalBinding {
    Terminal,
    /// The watcher continues until it is told to end.
    None,
}

impl Watcher<'_> {
    /// Describes who reviews automatically and the most that one review may cost; `None` if it costs nothing and no
    /// other reviewer is the default one.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer, or `models.toml` cannot be read.
    pub fn describe_reviewer(&self) -> Result<Option<String>, RunnerError> {
        let AutomaticReviewer { name, passed_over } = self.services.reviewers().automatic_reviewer()?;
        let limit = self.services.reviewers().cost_limit(&name)?;
        Ok(match (passed_over, limit) {
            (Some(default), _) => Some(format!(
                "{name} reviews, at no cost: {default} may cost money, and reviews by itself only if watch.reviewer names it"
            )),
            (None, CostLimit::Nothing) => None,
            (None, limit) => Some(format!("{name} reviews, each review {limit}")),
        })
    }
}

impl RepoWatcher {
    /// Takes the lock and starts to watch all worktrees of the repository.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written, or git cannot read the worktree.
    pub fn begin(services: Services, open: WorktreeOpener) -> Result<WatchStart, RunnerError> {
        let Some(lock) = services.store.lock_watcher()? else {
            return Ok(WatchStart::Already(services.store.watcher_status()?));
        };
        let Services { repo, store, settings, paths, ambient, .. } = services;
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
            missing_key: None,
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

    /// Ends the watcher on SIGINT and SIGTERM, and with [`TerminalBinding::Terminal`] also on SIGHUP. If the watcher has
    /// not ended after [`MAX_STOP_TIME`], because git or a file system hangs, the programs that git started are killed
    /// and `end_process` is called, which must end the process. The kernel releases the watcher's lock then.
    ///
    /// # Errors
    ///
    /// If the signal handlers or their thread cannot be created.
    pub fn end_on_signals(
        &self,
        leash: TerminalBinding,
        end_process: impl Fn() + Send + 'static,
    ) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let stopper = self.stopper();
        let listen = move || {
            for signal in signals.forever() {
                if signal != SIGHUP || leash == TerminalBinding::Terminal {
                    stopper.stop();
                    // A watcher that ends in time takes this thread with it.
                    std::thread::sleep(MAX_STOP_TIME);
                    git::end_git_programs();
                    end_process();
                }
            }
        };
        std::thread::Builder::new().name("watch-signals".to_owned()).spawn(listen).map(drop)
    }

    /// Describes what is watched, for the first line of output.
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

    /// Watches until the watcher is stopped or the watched folders are gone. Calls `say` with a line about each action.
    ///
    /// # Errors
    ///
    /// If the state of the watcher cannot be removed from the store.
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

    /// Returns the time until the next action; `None` if only an event needs one.
    fn time_until_due(&self) -> Option<Duration> {
        let looks = self.source.poll_interval().map(|every| self.looked + every);
        let worktrees = self.worktrees_due.map(|(due, _)| due);
        let due = self.worktrees.iter().filter_map(WatchedWorktree::due).chain(looks).chain(worktrees).min()?;
        Some(due.saturating_duration_since(Instant::now()).min(MAX_SLEEP))
    }

    /// Returns `true` if the clocks have diverged since the last call, because the machine slept.
    fn has_clock_jumped(&mut self, now: Instant) -> bool {
        let wall = self.ambient.now();
        let (then, wall_then) = std::mem::replace(&mut self.clocks, (now, wall));
        have_diverged(now - then, wall.duration_since(wall_then))
    }

    /// Marks everything as disturbed and ends all waits.
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

    /// Starts to watch new worktrees.
    fn find_worktrees(&mut self, now: Instant, tries: u32) {
        let Some(repo) = self.worktrees.iter().find_map(|ground| Repo::open_worktree(&ground.root).ok()) else {
            return;
        };
        // Git creates this folder with the first linked worktree.
        if let Err(reason) = self.source.watch_folder(&self.common_dir.join("worktrees")) {
            self.switch_to_polling(reason);
        }
        let known = self.worktrees.len();
        for root in repo.worktrees() {
            let known = self.worktrees.iter().any(|ground| ground.root == root);
            if known || self.own_folders.iter().any(|folder| root.starts_with(folder)) {
                continue;
            }
            let ground = (self.open)(&root).and_then(|services| {
                WatchedWorktree::new(&root, &services.settings).map_err(|error| error.to_string())
            });
            match ground {
                Ok(mut ground) => {
                    if let Err(reason) = ground.watch(&mut self.source) {
                        self.switch_to_polling(reason);
                    }
                    self.worktrees.push(ground);
                }
                // The worktree may be incomplete: just being created or removed.
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

    /// Switches to polling, because the system sends no (more) events.
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
        let before = ground.stance.head.clone();
        let looked = ground.check_for_movement(now).and_then(|found| ground.settle_git_movement(now).map(|()| found));
        match looked {
            Ok(LookResult::Nothing) => {}
            Ok(LookResult::Moved) => self.advance_epoch(),
            // A rebase in progress, or an index that is being written: the next check will succeed.
            Err(error) => {
                tracing::warn!(%error, "a worktree cannot be looked at");
                ground.retry_later(now);
            }
        }
        let ground = &self.worktrees[at];
        if ground.stance.head != before {
            self.settle_needless_runs(at);
        }
    }

    /// Ends or adopts the reviews of commits that the last movement of HEAD has rewritten, and says so.
    fn settle_needless_runs(&mut self, at: usize) {
        match (self.open)(&self.worktrees[at].root) {
            Ok(services) => {
                for settled in services.launcher().settle_needless_or_log() {
                    self.queue_line(format!("{} {}", settled.run, settled.text));
                }
            }
            Err(error) => tracing::warn!(error, "runs that nobody needs any more go on"),
        }
    }

    /// Advances the epoch after a movement, so that all runs count as older.
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

    /// Decides about one movement and executes the verdict. The error is a sentence for the user.
    fn decide(&mut self, at: usize, pending: &PendingMovement, now: Instant) -> Result<MovementFate, String> {
        let in_words = |error: RunnerError| error.to_string();
        let services = (self.open)(&self.worktrees[at].root)?;
        let rules = rules_from_settings(&services.settings);
        let mut situation = self.build_situation(at, pending, &services, now).map_err(in_words)?;
        let mut verdict = policy::decide_auto_review(&rules, &situation);
        if let AutoReviewVerdict::Review(scope) = &verdict {
            let made = pending.span.as_ref().map(|span| services.repo.scope_between(&span.from, &span.to));
            let measured = measure_scope(&services, made.as_ref().unwrap_or(scope));
            let (scope, change) = measured.map_err(|error| error.to_string())?;
            situation.change = change;
            verdict = match policy::decide_auto_review(&rules, &situation) {
                AutoReviewVerdict::Review(_) => AutoReviewVerdict::Review(scope),
                verdict => verdict,
            };
        }
        match verdict {
            AutoReviewVerdict::Review(scope) => {
                match self.request_review(at, &services, pending, scope, now) {
                    // The environment of this process cannot change: to try again is no use.
                    Err(RunnerError::MissingKey(missing)) => self.report_missing_key(missing),
                    asked => asked.map_err(in_words)?,
                }
                Ok(MovementFate::No)
            }
            AutoReviewVerdict::NotNow(why) => {
                // Reverted edits, and the worktree state after each commit, are not worth a line.
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

    /// Says once that the reviewer has no key.
    fn report_missing_key(&mut self, missing: MissingKey) {
        if self.missing_key.as_ref() != Some(&missing) {
            self.queue_line(format!("nothing is reviewed: {missing}; {}", missing.hint()));
            self.missing_key = Some(missing);
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
        services: &Services,
        now: Instant,
    ) -> Result<AutoReviewInput, RunnerError> {
        let ground = &self.worktrees[at];
        Ok(AutoReviewInput {
            still_ms: inputs::to_ms(now.saturating_duration_since(pending.moved)),
            operation: ground.stance.operation,
            asked_ms_ago: ground.asked.map(|asked| inputs::to_ms(now.saturating_duration_since(asked))),
            ..services.watcher().base_situation(pending.movement)?
        })
    }

    fn request_review(
        &mut self,
        at: usize,
        services: &Services,
        pending: &PendingMovement,
        scope: Scope,
        now: Instant,
    ) -> Result<(), RunnerError> {
        let reviewer = Some(services.reviewers().automatic_reviewer()?.name);
        let request = ReviewRequest {
            scope: Some(scope),
            reviewer,
            prompt_set: None,
            source: Source::Watch,
            started_in_session: 0,
            demand: ReviewDemand::AsNeeded,
        };
        let requested = services.launcher().request_review(&request)?;
        if pending.movement == WatchTrigger::Worktree {
            self.worktrees[at].asked = Some(now);
        }
        let (run, reason) = (&requested.run, &requested.decision.reason);
        let said = match &requested.decision.action {
            ReviewAction::Launch => format!("reviewing {} ({})", run.subject.scope, run.run_id),
            ReviewAction::Resume { .. } => format!("reviewing {} ({}): {reason}", run.subject.scope, run.run_id),
            ReviewAction::Adopt { .. } | ReviewAction::Reuse { .. } | ReviewAction::Skip => reason.clone(),
        };
        let unsettled = requested.settled.describe_failure().map(|failure| format!("; {failure}"));
        let unsettled = unsettled.unwrap_or_default();
        self.queue_line(format!("{}: {said}{unsettled}", self.describe_movement(at, pending)));
        Ok(())
    }

    /// Describes a movement by kind and place.
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

    /// Publishes the state of this watcher for other processes.
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

/// Returns `true` if the wall clock and the monotonic clock have diverged.
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
