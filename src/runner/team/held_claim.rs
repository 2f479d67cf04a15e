//! Holds a claim in the team's database: a thread renews it, and each request to a model asks first whether the run still has it.
//!
//! A machine that was suspended, or that could not reach the database for longer than a claim lasts, may find its claim again as if
//! nothing had happened: another machine has had it meanwhile, and has sent its result. So a claim that was interrupted stays in
//! doubt until the run claims the review anew, which looks for that result.
//!
//! Only the thread asks the database about the claim, one question after the other, so no late renewal follows the end of a claim.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::claims::{ClaimAttempt, ReviewClaim};
use crate::team::postgres::{CLAIM_SECONDS, Database, DatabaseError};

/// Time after which a claim that is not renewed may have ended.
const LEASE: Duration = Duration::from_secs(CLAIM_SECONDS as u64);
/// Interval between two renewals of a claim.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(CLAIM_SECONDS as u64 / 3);
/// Interval between two attempts to renew a claim after one has failed.
const RENEWAL_RETRY: Duration = Duration::from_secs(3);
/// Maximum wait of a run for the thread that asks the database. An answer takes some milliseconds; a connection that a router has
/// dropped says nothing until its time limit.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Claim that a thread renews until it is dropped. It does not end then, but after its time.
pub(in crate::runner) struct HeldClaim {
    lease: Arc<Mutex<Lease>>,
    /// Gives orders to the thread, and ends it when it is dropped.
    orders: Sender<ClaimOrder>,
    /// Answer to a check for which a request has waited in vain.
    late_answer: Option<Receiver<()>>,
    is_told: bool,
}

/// Order to the thread that renews a claim; it answers when it has done it or failed.
enum ClaimOrder {
    /// Renew the claim at once.
    Renew(Sender<()>),
    /// End the claim.
    Release(Sender<()>),
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
                // The members of a panel have one claim: another one may have got it back after the interruption.
                self.is_interrupted |= !is_renewal || self.may_be_over();
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

/// Thread that renews a claim.
struct ClaimRenewal {
    claim: ReviewClaim,
    /// Gone when the run has let go of the claim.
    lease: Weak<Mutex<Lease>>,
    connection: Option<Arc<Database>>,
}

impl ClaimRenewal {
    fn run(mut self, mut pause: Duration, orders: &Receiver<ClaimOrder>) {
        loop {
            let answer = match orders.recv_timeout(pause) {
                Ok(ClaimOrder::Renew(answer)) => Some(answer),
                Ok(ClaimOrder::Release(answer)) => {
                    self.release();
                    // The run may have gone on.
                    let _ = answer.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            pause = self.renew();
            if let Some(answer) = answer {
                // The run may have gone on.
                let _ = answer.send(());
            }
        }
    }

    /// Takes the claim or renews it. Returns the pause until the next time.
    fn renew(&mut self) -> Duration {
        // The claim ends by the time at which the database got the question, not by that of the answer.
        let began = (Instant::now(), SystemTime::now());
        let renewed = match self.ask_over_connection(ReviewClaim::take) {
            Some(attempt) => Ok(attempt),
            // The run has let go of the claim while a lost connection was silent, and must not get it again.
            None if self.lease.strong_count() == 0 => return RENEWAL_RETRY,
            None => self.ask_anew(ReviewClaim::take),
        };
        let Some(lease) = self.lease.upgrade() else { return RENEWAL_RETRY };
        let mut lease = lock(&lease);
        if let Err(error) = &renewed
            && !lease.is_away
        {
            tracing::warn!(%error, "a claim is not renewed");
        }
        lease.record_renewal(began, &renewed);
        pause_after(lease.is_away)
    }

    fn release(&mut self) {
        let release = |claim: &ReviewClaim, database: &Database| claim.release(database, claim.holder());
        if self.ask_over_connection(release).is_none()
            && let Err(error) = self.ask_anew(release)
        {
            tracing::warn!(%error, "a claim ends after its time");
        }
    }

    /// Asks over the connection that is there; `None` if there is none, or it has failed: one that was idle may be gone.
    fn ask_over_connection<T>(
        &mut self,
        question: impl FnOnce(&ReviewClaim, &Database) -> Result<T, DatabaseError>,
    ) -> Option<T> {
        let database = self.connection.take()?;
        let answer = question(&self.claim, &database).ok()?;
        self.connection = Some(database);
        Some(answer)
    }

    /// Asks over a new connection.
    fn ask_anew<T>(
        &mut self,
        question: impl FnOnce(&ReviewClaim, &Database) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let database = self.claim.connect()?;
        let answer = question(&self.claim, &database)?;
        self.connection = Some(Arc::new(database));
        Ok(answer)
    }
}

impl ReviewClaim {
    /// Starts a thread that renews the claim, which the run has just taken over this connection.
    pub(in crate::runner) fn keep(self, database: Arc<Database>) -> HeldClaim {
        HeldClaim::start(self, Lease::new_taken(), Some(database))
    }

    /// Starts a thread that takes the claim as soon as the database can be asked. People know that the run goes on without it.
    pub(in crate::runner) fn keep_trying(self) -> HeldClaim {
        HeldClaim { is_told: true, ..HeldClaim::start(self, Lease::new_unasked(), None) }
    }
}

impl HeldClaim {
    fn start(claim: ReviewClaim, lease: Lease, connection: Option<Arc<Database>>) -> Self {
        let pause = pause_after(lease.is_away);
        let lease = Arc::new(Mutex::new(lease));
        let (orders, received) = channel();
        let renewal = ClaimRenewal { claim, lease: Arc::downgrade(&lease), connection };
        let thread = std::thread::Builder::new().name("team-claim".to_owned());
        if let Err(error) = thread.spawn(move || renewal.run(pause, &received)) {
            tracing::warn!(%error, "a claim is not renewed");
        }
        Self { lease, orders, late_answer: None, is_told: false }
    }

    /// Ends the claim; the members of a panel leave it to the panel. Waits for that for a short time only: a database that is silent
    /// holds up no run.
    pub(in crate::runner) fn release(self) {
        self.release_within(MAX_ANSWER_WAIT);
    }

    fn release_within(self, limit: Duration) {
        let (answer, answered) = channel();
        if self.orders.send(ClaimOrder::Release(answer)).is_ok() {
            let _ = answered.recv_timeout(limit);
        }
    }

    /// Asks the database whether the run still has the claim. While the database is away or silent, answers by what is known.
    pub(in crate::runner) fn check(&mut self) -> ClaimStanding {
        self.check_within(MAX_ANSWER_WAIT)
    }

    fn check_within(&mut self, limit: Duration) -> ClaimStanding {
        let is_silent = self.late_answer.as_ref().is_some_and(|late| late.try_recv() == Err(TryRecvError::Empty));
        if !is_silent && !lock(&self.lease).is_away {
            let (answer, answered) = channel();
            let is_late = self.orders.send(ClaimOrder::Renew(answer)).is_ok() && answered.recv_timeout(limit).is_err();
            // Only one request waits in vain. Without an answer, the clocks decide.
            self.late_answer = is_late.then_some(answered);
        }
        lock(&self.lease).standing()
    }

    /// Returns true if the run has had the claim, so that others may wait for its result.
    pub(in crate::runner) fn was_taken(&self) -> bool {
        lock(&self.lease).renewed.is_some()
    }

    /// Returns true if another machine has the claim, or may have had it and sent a result, as far as this machine knows without
    /// asking: no further request is sent before the run has claimed the review anew.
    pub(in crate::runner) fn is_in_doubt(&self) -> bool {
        lock(&self.lease).standing() == ClaimStanding::InDoubt
    }

    /// Returns true the first time: people hear once that the run goes on without its claim.
    pub(in crate::runner) fn begin_telling(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
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
    use std::net::TcpListener;

    use super::*;
    use crate::team::postgres::{ClaimHolder, MAX_CLAIM_CALL};

    impl HeldClaim {
        /// Returns a claim that another machine may have had, and that nothing renews.
        pub(in crate::runner) fn new_in_doubt() -> Self {
            let lease = Lease { is_interrupted: true, ..Lease::new_taken() };
            Self { lease: Arc::new(Mutex::new(lease)), orders: channel().0, late_answer: None, is_told: false }
        }

        /// Lets the database not answer the next renewal.
        pub(in crate::runner) fn lose_database(&self) {
            lock(&self.lease).is_away = true;
        }
    }

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
    fn a_member_notices_an_interruption_after_which_another_member_got_the_claim_back() {
        let wall = SystemTime::now();
        let mut lease = Lease { renewed: Some((Instant::now(), wall - LEASE)), ..Lease::new_taken() };
        lease.record_renewal((Instant::now(), wall), &taken(true));
        assert_eq!(lease.standing(), ClaimStanding::InDoubt);
    }

    #[test]
    fn a_database_that_is_silent_holds_up_one_request_for_a_time_and_no_end_of_a_run() {
        // The test takes the orders instead of the thread, and answers when it likes.
        let (orders, taken) = channel();
        let lease = Arc::new(Mutex::new(Lease::new_taken()));
        let mut held = HeldClaim { lease, orders, late_answer: None, is_told: false };
        assert_eq!(held.check_within(Duration::ZERO), ClaimStanding::Held);
        let Ok(ClaimOrder::Renew(late)) = taken.try_recv() else { panic!("the first request asks") };
        assert_eq!(held.check_within(Duration::ZERO), ClaimStanding::Held, "the clocks decide");
        assert!(taken.try_recv().is_err(), "a second request asks, and waits for as long");
        late.send(()).expect("the run still listens");
        assert_eq!(held.check_within(Duration::ZERO), ClaimStanding::Held);
        assert!(matches!(taken.try_recv(), Ok(ClaimOrder::Renew(_))), "it asks again once there is an answer");
        held.release_within(Duration::ZERO);
        assert!(matches!(taken.try_recv(), Ok(ClaimOrder::Release(_))), "the run has gone on without an answer");
    }

    #[test]
    fn the_lease_can_be_read_while_the_thread_waits_for_the_database() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let held = HeldClaim::start(ReviewClaim::at_port(port), Lease::new_taken(), None);
        let (answer, _answered) = channel();
        held.orders.send(ClaimOrder::Renew(answer)).expect("the thread listens");
        // It has begun to connect, and nobody answers.
        let _client = listener.accept().expect("a client");
        assert!(held.lease.try_lock().is_ok(), "the thread holds the lease while it waits");
    }

    #[test]
    fn a_connection_that_nobody_answers_on_costs_no_claim() {
        // A silent statement, a login, and the statement over that connection.
        assert!(RENEWAL_INTERVAL + 3 * MAX_CLAIM_CALL < LEASE);
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
