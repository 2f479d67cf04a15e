//! Exchanges records whenever there is something new, on either side, until the process ends.

use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use super::{SyncError, SyncReport, TeamSync};
use crate::runner::{RunnerError, Services, process};
use crate::store::{StoreChange, StoreError, TeamMembership, TeamProgress};
use crate::team::TeamError;
use crate::team::postgres::{DatabaseAddress, Listener, News, NewsSender, is_database};

/// Log of followers that a user interface has started.
const FOLLOW_LOG: &str = "follow.log";
/// First and longest pause before the next attempt after the database could not be reached.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Longest time from one exchange to the next, whatever news come: the one that counts may have been missed.
const MAX_QUIET: Duration = Duration::from_secs(600);
/// Interval between two looks whether the machine still takes part at this place.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Pause between news and the exchange, in which further news may come.
const NEWS_PAUSE: Duration = Duration::from_millis(300);

/// Process that follows the team until its input is dropped.
pub struct FollowerProcess {
    /// Process, which somebody must wait for.
    pub child: Child,
    /// Its standard input.
    pub input: ChildStdin,
}

impl FollowerProcess {
    /// Exit code of a process that gave up: until a person changes something here, the next one fails, too. It is that of a
    /// usage error.
    pub const GAVE_UP: i32 = 2;
}

impl TeamSync<'_> {
    /// Exchanges records now, and then whenever others have sent something or there is something to send. Calls `report` with
    /// each exchange, until it returns false.
    ///
    /// # Errors
    ///
    /// If the machine takes no part in a team with a database, the store cannot be read, or trying again cannot help, see
    /// [`SyncError::is_permanent`]. A database that cannot be reached is reported, and tried again.
    pub fn follow(&self, report: &mut dyn FnMut(Result<SyncReport, SyncError>) -> bool) -> Result<(), SyncError> {
        let mut pause = RETRY_PAUSES.0;
        loop {
            // The machine may have joined elsewhere since.
            let team = self.membership()?;
            if !is_database(&team.place) {
                return Ok(());
            }
            let address = DatabaseAddress::parse(&team.place).map_err(TeamError::from)?;
            // Listens before the exchange, on both sides, so that nothing is missed between the two.
            let listener = Listener::connect(&address, &team.project).map_err(|error| SyncError::Team(error.into()));
            let exchanged = listener.and_then(|listener| {
                let watch = watch_store(self.services, listener.sender());
                Ok((listener, watch, self.sync_when_free()?))
            });
            let (mut listener, _watch) = match exchanged {
                Ok((listener, watch, done)) => {
                    pause = RETRY_PAUSES.0;
                    if !report(Ok(done)) {
                        return Ok(());
                    }
                    (listener, watch)
                }
                Err(error) if error.is_permanent() => return Err(error),
                Err(error) => {
                    self.note_failure(&error);
                    if !report(Err(error)) {
                        return Ok(());
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(RETRY_PAUSES.1);
                    continue;
                }
            };
            let mut last_exchange = Instant::now();
            loop {
                let news = listener.wait(CHECK_INTERVAL.min(MAX_QUIET.saturating_sub(last_exchange.elapsed())));
                let now = self.membership()?;
                if (&now.place, &now.project) != (&team.place, &team.project) {
                    break;
                }
                // Otherwise the connection has ended.
                let Ok(news) = news else { break };
                let is_due = match judge_news(news.as_ref(), last_exchange.elapsed(), &team) {
                    ExchangeNeed::Due => true,
                    ExchangeNeed::IfUnsent => self.has_unsent()?,
                    ExchangeNeed::NotDue => false,
                };
                if !is_due {
                    continue;
                }
                // News that come together are one exchange.
                std::thread::sleep(NEWS_PAUSE);
                listener.forget_news();
                last_exchange = Instant::now();
                match self.sync_when_free() {
                    Err(error) if error.is_permanent() => return Err(error),
                    done => {
                        let has_failed = done.is_err();
                        if !report(done) {
                            return Ok(());
                        }
                        if has_failed {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Records that the database cannot be reached, so that a cockpit shows it: without a connection for news, no exchange is tried
    /// that would record it. A failure is logged.
    fn note_failure(&self, error: &SyncError) {
        let store = &self.services.store;
        let note = || -> Result<(), StoreError> {
            // Another process that exchanges records finds out by itself.
            let Some(_lock) = store.lock_team()? else { return Ok(()) };
            let progress = store.team_progress()?;
            let failure = Some(error.describe());
            if progress.failure == failure {
                return Ok(());
            }
            store.write_team_progress(&TeamProgress { failure, ..progress })
        };
        if !matches!(error, SyncError::Busy)
            && let Err(error) = note()
        {
            tracing::warn!(%error, "the failure of an exchange is not recorded");
        }
    }

    /// Starts a process that follows the team, for a user interface. Returns `None` without a team that tells news.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub fn start_follower(&self) -> Result<Option<FollowerProcess>, RunnerError> {
        if !self.is_live() {
            return Ok(None);
        }
        let Services { repo, paths, .. } = self.services;
        let arguments = ["sync", "--follow", "--until-input-ends"];
        let mut child = process::spawn_detached(repo, paths, &repo.root(), &arguments, Stdio::piped(), FOLLOW_LOG)?;
        let input = child.stdin.take();
        Ok(input.map(|input| FollowerProcess { child, input }))
    }

    fn has_unsent(&self) -> Result<bool, SyncError> {
        let store = &self.services.store;
        // The membership may have ended.
        self.membership()?;
        Ok(store.count_unsent(&store.team_progress()?)?.total() > 0)
    }
}

/// Answer to the question whether records are exchanged after news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeNeed {
    Due,
    /// Only if something waits to be sent.
    IfUnsent,
    NotDue,
}

/// Judges news (`None`: there were none for a time), given the time since the last exchange.
fn judge_news(news: Option<&News>, since: Duration, team: &TeamMembership) -> ExchangeNeed {
    match news {
        _ if since >= MAX_QUIET => ExchangeNeed::Due,
        Some(News::Log(log)) if *log != team.log.as_str() || team.machine.is_ci() => ExchangeNeed::Due,
        Some(News::Store) => ExchangeNeed::IfUnsent,
        None | Some(News::Log(_) | News::Claim(_)) => ExchangeNeed::NotDue,
    }
}

/// Ends the thread that watches the store when it is dropped.
struct StoreWatch(crate::store::TailStopper);

impl Drop for StoreWatch {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Tells the listener of changes of the store.
fn watch_store(services: &Services, sender: NewsSender) -> StoreWatch {
    let mut tail = services.store.open_tail();
    let watch = StoreWatch(tail.stopper());
    let watching = std::thread::Builder::new().name("store-tail".to_owned()).spawn(move || {
        loop {
            match tail.wait() {
                StoreChange::Store if !sender.send() => return,
                StoreChange::Store | StoreChange::Heartbeat | StoreChange::Viewed | StoreChange::Delivery => {}
                StoreChange::Stopped => return,
            }
        }
    });
    if let Err(error) = watching {
        tracing::warn!(%error, "own records are sent with the next news");
    }
    watch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Time;

    #[test]
    fn no_news_put_an_exchange_off_for_longer_than_the_limit() {
        use ExchangeNeed::{Due, IfUnsent, NotDue};
        let team = |machine: &str, log: &str| TeamMembership {
            machine: machine.parse().expect("a name"),
            log: log.parse().expect("a name"),
            place: "postgres://db/team".to_owned(),
            project: "app".to_owned(),
            joined_at: Time::UNIX_EPOCH,
            left_at: None,
        };
        let (ada, job) = (team("ada-1", "ada-1"), team("ci-3f9a2c1d", "ci"));
        let log = |name: &str| Some(News::Log(name.to_owned()));
        for (title, news, team, expected) in [
            ("none", None, &ada, NotDue),
            ("another machine has sent something", log("bob-1"), &ada, Due),
            ("this machine has", log("ada-1"), &ada, NotDue),
            ("a job has, perhaps another one", log("ci"), &job, Due),
            ("a claim has ended", Some(News::Claim("ar_1".to_owned())), &ada, NotDue),
            ("the store has changed", Some(News::Store), &ada, IfUnsent),
        ] {
            let almost = MAX_QUIET.saturating_sub(Duration::from_nanos(1));
            for (since, expected) in [(Duration::ZERO, expected), (almost, expected), (MAX_QUIET, Due)] {
                assert_eq!(judge_news(news.as_ref(), since, team), expected, "{title}, {since:?}");
            }
        }
    }
}
