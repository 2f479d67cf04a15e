//! Holds a claim in the team's database: a thread renews it, and each request to a model asks first whether the run still has it.
//!
//! A machine that was suspended, or that could not reach the database for longer than a claim lasts, may find its claim again as if
//! nothing had happened: another machine has had it meanwhile, and has sent its result. So a claim that was interrupted stays in
//! doubt until the run claims the review anew, which looks for that result.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use super::claims::{ClaimAttempt, ReviewClaim};
use crate::team::postgres::{CLAIM_SECONDS, Database, DatabaseError};

/// Time after which a claim that is not renewed may have ended.
const LEASE: Duration = Duration::from_secs(CLAIM_SECONDS as u64);
/// Interval between two renewals of a claim.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(CLAIM_SECONDS as u64 / 3);
/// Interval between two attempts to renew a claim after one has failed.
const RENEWAL_RETRY: Duration = Duration::from_secs(3);
/// Maximum wait of a request for the answer whether the run still has its claim. An answer takes some milliseconds; a connection
/// that a router has dropped says nothing for a minute.
const MAX_CHECK_TIME: Duration = Duration::from_secs(5);

/// Claim that a thread renews until it is dropped. It does not end then, but after its time.
pub(in crate::runner) struct HeldClaim {
    claim: ReviewClaim,
    lease: Arc<Mutex<Lease>>,
    /// Asks the thread to renew the claim at once, and ends it when it is dropped.
    questions: Sender<Sender<()>>,
    /// Returns the connection of the thread.
    renewing: Option<std::thread::JoinHandle<Option<Database>>>,
    is_told: bool,
}

/// Answer to the question whether a run still has its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum ClaimStanding {
    /// No other machine has had it since the run took it.
    Held,
    /// Another machine has it, or may have had it and sent a result.
    InDoubt,
    /// Another machine may have it, and the database cannot be asked.
    Unknown,
}

/// Claim of a run as its machine knows it.
#[derive(Debug)]
struct Lease {
    /// Begin of the last renewal that succeeded, by both clocks of this machine; `None` before the first.
    renewed: Option<(Instant, SystemTime)>,
    /// True if another machine has the claim, or may have had it since the run took it.
    is_interrupted: bool,
    /// True if the database did not answer the last renewal.
    is_away: bool,
}

impl Lease {
    /// Returns the lease of a claim that was just taken.
    fn new_taken() -> Self {
        Self { renewed: Some((Instant::now(), SystemTime::now())), is_interrupted: false, is_away: false }
    }

    /// Returns the lease of a claim that could not be asked for.
    fn new_unasked() -> Self {
        Self { renewed: None, is_interrupted: true, is_away: true }
    }

    /// Records the outcome of a renewal that began at a time.
    fn record_renewal(&mut self, began: (Instant, SystemTime), renewed: &Result<ClaimAttempt, DatabaseError>) {
        self.is_away = renewed.is_err();
        match renewed {
            Ok(ClaimAttempt::Taken { is_renewal }) => {
                self.is_interrupted |= !is_renewal;
                self.renewed = Some(began);
            }
            Ok(ClaimAttempt::Elsewhere(_)) => self.is_interrupted = true,
            Err(_) => {}
        }
    }

    /// Returns true if the claim may have ended by its time. The monotonic clock stands still while the machine is suspended.
    fn may_be_over(&self) -> bool {
        self.renewed.is_none_or(|(at, wall)| at.elapsed() >= LEASE || wall.elapsed().is_ok_and(|since| since >= LEASE))
    }

    fn standing(&self) -> ClaimStanding {
        match (self.is_interrupted || self.may_be_over(), self.is_away) {
            (false, _) => ClaimStanding::Held,
            (true, false) => ClaimStanding::InDoubt,
            (true, true) => ClaimStanding::Unknown,
        }
    }
}

impl ReviewClaim {
    /// Starts a thread that renews the claim, which the run has just taken.
    pub(in crate::runner) fn keep(self) -> HeldClaim {
        HeldClaim::start(self, Lease::new_taken())
    }

    /// Starts a thread that takes the claim as soon as the database can be asked.
    pub(in crate::runner) fn keep_trying(self) -> HeldClaim {
        HeldClaim::start(self, Lease::new_unasked())
    }

    /// Takes the claim or renews it, by the connection that is there or a new one: one that was idle may be gone.
    fn renew(&self, connection: &mut Option<Database>) -> Result<ClaimAttempt, DatabaseError> {
        if let Some(Ok(attempt)) = connection.as_ref().map(|database| self.take(database)) {
            return Ok(attempt);
        }
        *connection = None;
        let database = self.connect()?;
        let attempt = self.take(&database)?;
        *connection = Some(database);
        Ok(attempt)
    }
}

impl HeldClaim {
    fn start(claim: ReviewClaim, lease: Lease) -> Self {
        let mut pause = pause_after(lease.is_away);
        let lease = Arc::new(Mutex::new(lease));
        let (questions, asked) = channel::<Sender<()>>();
        let (renewed_claim, known) = (claim.clone(), Arc::clone(&lease));
        let renewing = std::thread::Builder::new().name("team-claim".to_owned()).spawn(move || {
            let mut connection = None;
            loop {
                let question = match asked.recv_timeout(pause) {
                    Ok(question) => Some(question),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return connection,
                };
                // The claim ends by the time at which the database got the question, not by that of the answer.
                let began = (Instant::now(), SystemTime::now());
                let renewed = renewed_claim.renew(&mut connection);
                let mut known = lock(&known);
                if let Err(error) = &renewed
                    && !known.is_away
                {
                    tracing::warn!(%error, "a claim is not renewed");
                }
                known.record_renewal(began, &renewed);
                pause = pause_after(known.is_away);
                drop(known);
                if let Some(question) = question {
                    // Whoever asked may have given up.
                    let _ = question.send(());
                }
            }
        });
        let renewing = renewing.inspect_err(|error| tracing::warn!(%error, "a claim is not renewed")).ok();
        Self { claim, lease, questions, renewing, is_told: false }
    }

    /// Ends the claim at once. The members of a panel leave it to the panel.
    pub(in crate::runner) fn release(self) {
        let Self { claim, questions, renewing, .. } = self;
        drop(questions);
        // The thread must not take the claim again.
        let connection = renewing.and_then(|thread| thread.join().ok().flatten());
        let released = match connection.map(|database| claim.release(&database, claim.holder())) {
            Some(Ok(())) => Ok(()),
            _ => claim.connect().and_then(|database| claim.release(&database, claim.holder())),
        };
        if let Err(error) = released {
            tracing::warn!(%error, "a claim ends after its time");
        }
    }

    /// Asks the database whether the run still has the claim. While the database is away, answers by what is known.
    pub(in crate::runner) fn check(&self) -> ClaimStanding {
        if !lock(&self.lease).is_away {
            let (answer, answered) = channel();
            if self.questions.send(answer).is_ok() {
                // Without an answer in time, the clocks decide.
                let _ = answered.recv_timeout(MAX_CHECK_TIME);
            }
        }
        lock(&self.lease).standing()
    }

    /// Returns true if the run has had the claim, so that others may wait for its result.
    pub(in crate::runner) fn was_taken(&self) -> bool {
        lock(&self.lease).renewed.is_some()
    }

    /// Returns true the first time: people hear once that the run goes on without its claim.
    pub(in crate::runner) fn begin_telling(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// Records that people know that the run goes on without its claim.
    pub(in crate::runner) fn mark_told(mut self) -> Self {
        self.is_told = true;
        self
    }
}

fn pause_after(is_away: bool) -> Duration {
    if is_away { RENEWAL_RETRY } else { RENEWAL_INTERVAL }
}

fn lock(lease: &Mutex<Lease>) -> MutexGuard<'_, Lease> {
    lease.lock().unwrap_or_else(|broken| broken.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::postgres::ClaimHolder;

    fn taken(is_renewal: bool) -> Result<ClaimAttempt, DatabaseError> {
        Ok(ClaimAttempt::Taken { is_renewal })
    }

    fn elsewhere() -> Result<ClaimAttempt, DatabaseError> {
        let holder =
            ClaimHolder { run: "ar_1".to_owned(), machine: "bob-1".to_owned(), seconds_left: 9.0, is_renewal: false };
        Ok(ClaimAttempt::Elsewhere(holder))
    }

    fn away() -> Result<ClaimAttempt, DatabaseError> {
        Err(DatabaseError::NotPrepared { place: "DB".to_owned() })
    }

    #[test]
    fn a_claim_that_was_interrupted_stays_in_doubt() {
        use ClaimStanding::{Held, InDoubt, Unknown};
        for (title, lease, renewals, expected) in [
            ("just taken", Lease::new_taken(), vec![], Held),
            ("renewed", Lease::new_taken(), vec![taken(true)], Held),
            ("a short gap", Lease::new_taken(), vec![away()], Held),
            ("a short gap that is over", Lease::new_taken(), vec![away(), taken(true)], Held),
            ("taken again", Lease::new_taken(), vec![taken(false), taken(true)], InDoubt),
            ("another machine has it", Lease::new_taken(), vec![elsewhere()], InDoubt),
            ("another machine had it", Lease::new_taken(), vec![elsewhere(), taken(false)], InDoubt),
            (
                "another machine had it, and the database is away",
                Lease::new_taken(),
                vec![elsewhere(), away()],
                Unknown,
            ),
            ("never asked for", Lease::new_unasked(), vec![], Unknown),
            ("never asked for, and away", Lease::new_unasked(), vec![away()], Unknown),
            ("asked for late", Lease::new_unasked(), vec![taken(false)], InDoubt),
        ] {
            let mut lease = lease;
            for renewed in &renewals {
                lease.record_renewal((Instant::now(), SystemTime::now()), renewed);
            }
            assert_eq!(lease.standing(), expected, "{title}");
        }
    }

    #[test]
    fn either_clock_ends_a_claim_that_is_not_renewed() {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let Some(long_ago) = now.checked_sub(LEASE) else { return };
        for (title, renewed, expected) in [
            ("now", (now, wall), false),
            ("a lost connection", (long_ago, wall - LEASE), true),
            ("a suspended machine", (now, wall - LEASE), true),
            ("a clock that was set back", (long_ago, wall + LEASE), true),
            ("a clock that was wrong", (now, wall + 1_000 * LEASE), false),
        ] {
            let lease = Lease { renewed: Some(renewed), ..Lease::new_taken() };
            assert_eq!(lease.may_be_over(), expected, "{title}");
        }
    }
}
