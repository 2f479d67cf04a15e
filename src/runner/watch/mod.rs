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
mod eye;
mod ground;
mod mail;
mod snooze;
mod weigh;

pub use control::{Stopped, WatchState};
pub use snooze::parse_snooze;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use super::{ReviewRequest, Runner, RunnerError, process};
use crate::config::Ambient;
use crate::domain::{Movement, Scope, Source, Time, text};
use crate::git::Repo;
use crate::policy::{self, Action, Situation, Until, Verdict, Why};
use crate::store::{RunLock, Store, StoreError, Watcher, Watching};

use eye::Eye;
use ground::{Found, Ground, Pending};
use mail::{Mailbox, News};
use weigh::{measure, rules};

/// A wait for a time of day is cut into pieces of this length: while a laptop sleeps, time stands still for who waits.
const PIECE: Duration = Duration::from_secs(60);
/// The clock on the wall and the one that only counts may differ by so much before something must have happened: sleep,
/// or somebody who set the clock.
const JUMP: Duration = Duration::from_secs(5);
/// What could not be decided is tried again after so long, and twice as long each time.
const AGAIN: Duration = Duration::from_secs(2);
/// ... so often.
const MOST_FAILURES: u32 = 8;

const SETTLE: Duration = Duration::from_millis(policy::SETTLE_MS);

/// Opens a worktree with the settings as they are now. The error is a sentence.
pub type Open = Box<dyn Fn(&Path) -> Result<Runner, String>>;

/// A watcher that has the lock.
pub struct Watch {
    open: Open,
    store: Store,
    ambient: Ambient,
    /// Worktrees in here are nobody's work.
    own_folders: Vec<PathBuf>,
    owner: String,
    since: Time,
    mail: Arc<Mailbox>,
    eye: Eye,
    /// How often to look should the system stop telling.
    every: Duration,
    grounds: Vec<Ground>,
    /// The epoch as it was advanced last: as long as nobody took a newer one, every run is older already.
    epoch: Option<u64>,
    clocks: (Instant, Time),
    looked: Instant,
    common_dir: PathBuf,
    /// When to see which worktrees there are, and how often that was put off for one that cannot be watched yet.
    worktrees_due: Option<(Instant, u32)>,
    unsaid: Vec<Said>,
    _lock: RunLock,
}

/// What came of the wish to watch.
pub enum Began {
    Watching(Box<Watch>),
    /// Somebody watches already.
    Already(Watcher),
}

/// A line about something the watcher did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub at: Time,
    pub text: String,
}

/// Whether a movement that was decided about goes on to wait.
enum Kept {
    No,
    Until { due: Option<Instant>, said: Option<Why> },
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
pub struct WatchStopper(Arc<Mailbox>);

impl WatchStopper {
    pub fn stop(&self) {
        self.0.tell(|news| news.stop = true);
    }
}

/// Whether a watcher ends with its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leash {
    Terminal,
    /// It goes on until it is told to end.
    None,
}

impl Watch {
    /// Takes the lock and begins to watch all worktrees of the repository.
    pub fn begin(runner: Runner, open: Open) -> Result<Began, RunnerError> {
        let Some(lock) = runner.store.lock_watch()? else { return Ok(Began::Already(runner.store.watcher()?)) };
        let Runner { repo, store, settings, paths, ambient } = runner;
        let mail = Arc::new(Mailbox::default());
        let every = Duration::from_secs(settings.watch.poll_seconds);
        let eye = match settings.watch.poll {
            true => Eye::Looking { reason: "watch.poll says so".to_owned(), every },
            false => Eye::open(&mail, &store.snooze_path(), every),
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
            mail,
            eye,
            every,
            grounds: Vec::new(),
            epoch: None,
            clocks: (Instant::now(), since),
            looked: Instant::now(),
            common_dir: repo.common_dir(),
            worktrees_due: None,
            unsaid: Vec::new(),
            store,
            ambient,
            _lock: lock,
        };
        watch.grounds.push(Ground::new(&repo.root(), &settings)?);
        if let Err(reason) = watch.eye.folder(watch.store.root()).and_then(|()| watch.grounds[0].watch(&mut watch.eye))
        {
            watch.look_from_now_on(reason);
        }
        watch.find_worktrees(Instant::now(), 0);
        watch.tell()?;
        Ok(Began::Watching(Box::new(watch)))
    }

    pub fn stopper(&self) -> WatchStopper {
        WatchStopper(Arc::clone(&self.mail))
    }

    /// From here on SIGINT and SIGTERM, and the end of the terminal on a leash, end the watcher.
    pub fn end_on_signals(&self, leash: Leash) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let stopper = self.stopper();
        let listen = move || {
            for signal in signals.forever() {
                if signal != SIGHUP || leash == Leash::Terminal {
                    stopper.stop();
                }
            }
        };
        std::thread::Builder::new().name("watch-signals".to_owned()).spawn(listen).map(drop)
    }

    /// What it does, for the line that says that it began.
    pub fn what(&self) -> String {
        let places = text::count(self.grounds.len(), "worktree");
        let folders: usize = self.grounds.iter().map(Ground::folders).sum();
        match &self.eye {
            Eye::Told(_) => format!("watching {places}, {}", text::count(folders, "folder")),
            Eye::Looking { reason, every } => {
                format!("watching {places} by looking every {} s: {reason}", every.as_secs())
            }
        }
    }

    /// Watches until somebody ends it or what is watched is gone. `say` gets a line about everything it does.
    pub fn run(mut self, say: &mut dyn FnMut(&Said)) -> Result<WatchEnd, RunnerError> {
        let end = loop {
            self.unsaid.drain(..).for_each(|said| say(&said));
            let news = self.mail.wait(self.patience());
            if news.stop {
                break WatchEnd::Stopped;
            }
            let now = Instant::now();
            if self.jumped(now) || news.more {
                self.look_at_all(now, news.more);
            }
            self.take(news, now);
            if let Some((_, tries)) = self.worktrees_due.take_if(|(due, _)| *due <= now) {
                self.find_worktrees(now, tries);
            }
            if let Some(end) = self.leave_what_is_gone() {
                break end;
            }
            for at in 0..self.grounds.len() {
                self.look(at, now);
                self.decide_due(at, now);
            }
        };
        self.unsaid.drain(..).for_each(|said| say(&said));
        self.store.clear_watching()?;
        Ok(end)
    }

    /// How long nothing needs to be done; `None` for as long as nothing is heard.
    fn patience(&self) -> Option<Duration> {
        let looks = self.eye.every().map(|every| self.looked + every);
        let worktrees = self.worktrees_due.map(|(due, _)| due);
        let due = self.grounds.iter().filter_map(Ground::due).chain(looks).chain(worktrees).min()?;
        Some(due.saturating_duration_since(Instant::now()).min(PIECE))
    }

    /// Whether the clocks went apart since the last time: somebody slept.
    fn jumped(&mut self, now: Instant) -> bool {
        let wall = self.ambient.now();
        let (then, wall_then) = std::mem::replace(&mut self.clocks, (now, wall));
        went_apart(now - then, wall.duration_since(wall_then))
    }

    /// Anything may have moved, and waits may be over.
    fn look_at_all(&mut self, now: Instant, watch_again: bool) {
        for at in 0..self.grounds.len() {
            let ground = &mut self.grounds[at];
            ground.stir(now);
            ground.pending.iter_mut().for_each(|pending| pending.due = Some(now));
            if watch_again && let Err(reason) = ground.watch_again(&mut self.eye) {
                self.look_from_now_on(reason);
            }
        }
    }

    fn take(&mut self, news: News, now: Instant) {
        if let Some(reason) = news.broken {
            self.look_from_now_on(reason);
        }
        if news.snooze {
            let pending = self.grounds.iter_mut().flat_map(|ground| &mut ground.pending);
            pending.for_each(|pending| pending.due = Some(now));
        }
        let worktrees = self.common_dir.join("worktrees");
        for (path, happened) in &news.paths {
            if path.starts_with(&worktrees) {
                self.worktrees_due = Some((now + SETTLE, 0));
            }
            let eye = &mut self.eye;
            let heard = self.grounds.iter_mut().try_for_each(|ground| ground.hear(path, *happened, now, eye));
            if let Err(reason) = heard {
                self.look_from_now_on(reason);
            }
        }
        if self.eye.every().is_some_and(|every| self.looked + every <= now) {
            self.looked = now;
            self.worktrees_due = Some((now, 0));
            self.grounds.iter_mut().for_each(|ground| ground.stir_now(now));
        }
    }

    /// Watches the worktrees that are not watched yet.
    fn find_worktrees(&mut self, now: Instant, tries: u32) {
        let Some(repo) = self.grounds.iter().find_map(|ground| Repo::at(&ground.root).ok()) else { return };
        // It is made with the first of them.
        if let Err(reason) = self.eye.folder(&self.common_dir.join("worktrees")) {
            self.look_from_now_on(reason);
        }
        let known = self.grounds.len();
        for root in repo.worktrees() {
            let known = self.grounds.iter().any(|ground| ground.root == root);
            if known || self.own_folders.iter().any(|folder| root.starts_with(folder)) {
                continue;
            }
            let ground = (self.open)(&root)
                .and_then(|runner| Ground::new(&root, &runner.settings).map_err(|error| error.to_string()));
            match ground {
                Ok(mut ground) => {
                    if let Err(reason) = ground.watch(&mut self.eye) {
                        self.look_from_now_on(reason);
                    }
                    self.grounds.push(ground);
                }
                // It may be about to be made, or half removed.
                Err(error) => {
                    tracing::debug!(root = %root.display(), error, "a worktree is not watched");
                    let later = now + AGAIN * 2u32.saturating_pow(tries);
                    self.worktrees_due = (tries < MOST_FAILURES).then_some((later, tries + 1));
                }
            }
        }
        if self.grounds.len() != known {
            self.tell_or_warn();
        }
    }

    /// The system does not tell (any more).
    fn look_from_now_on(&mut self, reason: String) {
        if let Eye::Told(_) = self.eye {
            self.say(format!("looking every {} s from now on: {reason}", self.every.as_secs()));
            self.eye = Eye::Looking { reason, every: self.every };
            let now = Instant::now();
            self.grounds.iter_mut().for_each(|ground| ground.stir(now));
            self.tell_or_warn();
        }
    }

    fn leave_what_is_gone(&mut self) -> Option<WatchEnd> {
        let known = self.grounds.len();
        let mut gone = PathBuf::new();
        for mut ground in std::mem::take(&mut self.grounds) {
            if ground.is_gone() {
                ground.unwatch(&mut self.eye);
                gone = ground.root;
            } else {
                self.grounds.push(ground);
            }
        }
        if self.grounds.is_empty() {
            return Some(WatchEnd::Gone(gone));
        }
        if self.grounds.len() < known {
            self.say(format!("{} is no longer there; the other worktrees stay watched", gone.display()));
            self.tell_or_warn();
        }
        None
    }

    fn look(&mut self, at: usize, now: Instant) {
        let ground = &mut self.grounds[at];
        let looked = ground.look(now).and_then(|found| ground.settle(now).map(|()| found));
        match looked {
            Ok(Found::Nothing) => {}
            Ok(Found::Moved) => self.advance_epoch(),
            // Half a rebase, an index that is just being written: what it is tells the next look.
            Err(error) => {
                tracing::warn!(%error, "a worktree cannot be looked at");
                ground.look_later(now);
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
        let (due, rest) = std::mem::take(&mut self.grounds[at].pending)
            .into_iter()
            .partition(|pending| pending.due.is_some_and(|due| due <= now));
        self.grounds[at].pending = rest;
        let due: Vec<Pending> = due;
        for mut pending in due {
            match self.decide(at, &pending, now) {
                Ok(Kept::No) => continue,
                Ok(Kept::Until { due, said }) => (pending.due, pending.said) = (due, said),
                Err(error) => {
                    pending.failures += 1;
                    if pending.failures == 1 {
                        self.say(format!("{}: {error}", self.name(at, &pending)));
                    }
                    if pending.failures == MOST_FAILURES {
                        continue;
                    }
                    pending.due = Some(now + AGAIN * 2u32.saturating_pow(pending.failures - 1));
                }
            }
            self.grounds[at].pending.push(pending);
        }
    }

    /// Decides about one movement and does what was decided. The error is a sentence.
    fn decide(&mut self, at: usize, pending: &Pending, now: Instant) -> Result<Kept, String> {
        let in_words = |error: RunnerError| error.to_string();
        let runner = (self.open)(&self.grounds[at].root)?;
        let rules = rules(&runner.settings);
        let mut situation = self.situation(at, pending, &runner, now).map_err(in_words)?;
        let mut verdict = policy::rate(&rules, &situation);
        if let Verdict::Review(scope) = &verdict {
            let made = pending.span.as_ref().map(|span| runner.repo.made(&span.from, &span.to));
            let measured = measure(&runner, made.as_ref().unwrap_or(scope));
            let (scope, change) = measured.map_err(|error| error.to_string())?;
            situation.change = change;
            verdict = match policy::rate(&rules, &situation) {
                Verdict::Review(_) => Verdict::Review(scope),
                verdict => verdict,
            };
        }
        match verdict {
            Verdict::Review(scope) => {
                self.request(at, &runner, pending, scope, now).map_err(in_words)?;
                Ok(Kept::No)
            }
            Verdict::NotNow(why) => {
                // Undone edits, and what every commit leaves behind, are no news.
                if why != Why::NothingChanged || pending.movement != Movement::Worktree {
                    self.say(format!("{}: not reviewed: {why}", self.name(at, pending)));
                }
                Ok(Kept::No)
            }
            Verdict::Wait(until, why) => {
                let is_news = !matches!(why, Why::NotQuiet | Why::TooSoon) && pending.said != Some(why);
                if is_news {
                    self.say(format!("{}: {}", self.name(at, pending), self.waiting(why)));
                }
                let said = if is_news { Some(why) } else { pending.said };
                let due = match until {
                    Until::Ms(ms) => Some(now + Duration::from_millis(ms)),
                    Until::Movement => None,
                };
                Ok(Kept::Until { due, said })
            }
        }
    }

    fn waiting(&self, why: Why) -> String {
        match self.store.snoozed(self.ambient.now()).filter(|_| why == Why::Snoozed) {
            Some(until) => format!("snoozed until {}", until.to_zoned(TimeZone::system()).strftime("%H:%M")),
            None => why.to_string(),
        }
    }

    fn situation(&self, at: usize, pending: &Pending, runner: &Runner, now: Instant) -> Result<Situation, RunnerError> {
        let ground = &self.grounds[at];
        Ok(Situation {
            still_ms: weigh::ms(now.saturating_duration_since(pending.moved)),
            operation: ground.stance.operation,
            asked_ms_ago: ground.asked.map(|asked| weigh::ms(now.saturating_duration_since(asked))),
            ..runner.unasked(pending.movement)?
        })
    }

    fn request(
        &mut self,
        at: usize,
        runner: &Runner,
        pending: &Pending,
        scope: Scope,
        now: Instant,
    ) -> Result<(), RunnerError> {
        let reviewer = runner.settings.watch.reviewer.clone();
        let request = ReviewRequest { scope: Some(scope), reviewer, source: Source::Watch, force: false };
        let requested = runner.request(&request)?;
        if pending.movement == Movement::Worktree {
            self.grounds[at].asked = Some(now);
        }
        let (run, reason) = (&requested.run, &requested.decision.reason);
        let said = match &requested.decision.action {
            Action::Launch => format!("reviewing {} ({})", run.scope, run.run_id),
            Action::Resume { .. } => format!("reviewing {} ({}): {reason}", run.scope, run.run_id),
            Action::Adopt { .. } | Action::Reuse { .. } | Action::Skip => reason.clone(),
        };
        self.say(format!("{}: {said}", self.name(at, pending)));
        Ok(())
    }

    /// A movement by its word and its place.
    fn name(&self, at: usize, pending: &Pending) -> String {
        let (ground, movement) = (&self.grounds[at], pending.movement);
        let branch = pending.span.as_ref().map_or(&ground.stance.branch, |span| &span.branch);
        let branch = if branch.is_empty() { "detached HEAD" } else { branch };
        match self.grounds.len() {
            1 => format!("{movement} on {branch}"),
            _ => format!("{movement} on {branch} in {}", ground.root.display()),
        }
    }

    fn say(&mut self, text: String) {
        self.unsaid.push(Said { at: self.ambient.now(), text: text::one_line(&text).into_owned() });
    }

    /// Says to others what this watcher does.
    fn tell(&self) -> Result<(), StoreError> {
        self.store.set_watching(&Watching {
            pid: std::process::id(),
            owner: self.owner.clone(),
            since: self.since,
            mode: self.eye.mode(),
            worktrees: self.grounds.iter().map(|ground| ground.root.to_string_lossy().into_owned()).collect(),
        })
    }

    fn tell_or_warn(&self) {
        if let Err(error) = self.tell() {
            tracing::warn!(%error, "what the watcher does cannot be told");
        }
    }
}

/// Whether the clock on the wall went another way than the one that only counts.
fn went_apart(counted: Duration, wall: jiff::SignedDuration) -> bool {
    let counted = jiff::SignedDuration::try_from(counted).unwrap_or(jiff::SignedDuration::MAX);
    wall.saturating_sub(counted).unsigned_abs() > JUMP
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
        assert_eq!(went_apart(Duration::from_secs(counted), SignedDuration::from_secs(wall)), expected);
    }
}
