//! Claims a review in the team's database, so that machines that are asked for an equivalent one wait for its result.
//!
//! - A machine claims before it pays, then receives what others have sent, and pays only if no equivalent result is among it. A
//!   result is sent before its claim ends. So whoever gets a claim has seen all results.
//! - A claim is a lease that a thread renews ([`super::held_claim`]). A connection that is lost for less than the lease loses
//!   nothing.
//! - Whoever cannot ask the database reviews without a claim, says so, and asks again before each request.

use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::held_claim::HeldClaim;
use super::{SyncError, SyncReport, TeamSync};
use crate::domain::{MachineName, RunId, RunRecord, RunStatus, ShareMode, content_hash};
use crate::policy;
use crate::runner::launcher::start_workers::WORKER_LOG;
use crate::runner::{RunnerError, Services, known_runs, process};
use crate::team::TeamError;
use crate::team::postgres::{
    CLAIM_SECONDS, ClaimHolder, Database, DatabaseAddress, DatabaseError, Listener, is_database,
};

/// Maximum wait for another process that exchanges records.
const MAX_BUSY_WAIT: Duration = Duration::from_secs(15);
/// Time for which a result that cannot be sent is tried again, while others wait for it.
const MAX_PUBLISH_TIME: Duration = Duration::from_secs(60);
/// Pause before the next attempt to send a result.
const PUBLISH_PAUSE: Duration = Duration::from_secs(2);
/// Interval between two looks whether another process still exchanges records.
const BUSY_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Claim that a run may take.
#[derive(Debug, Clone)]
pub(in crate::runner) struct ReviewClaim {
    address: DatabaseAddress,
    project: String,
    machine: MachineName,
    /// Hash of what makes reviews equivalent.
    review: String,
    /// Run that holds the claim. The members of a panel hold that of the panel together.
    holder: RunId,
}

/// Result of an attempt to take a claim.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runner) enum ClaimAttempt {
    /// The run has the claim.
    Taken {
        /// True if no other run has had it since this one took it first.
        is_renewal: bool,
    },
    /// Another machine reviews the same.
    Elsewhere(ClaimHolder),
}

impl ReviewClaim {
    /// Connects to the database for claims.
    pub(in crate::runner) fn connect(&self) -> Result<Database, DatabaseError> {
        Database::connect(&self.address)
    }

    /// Begins to connect to the database for claims, which takes about as long as a worker reads its change.
    pub(in crate::runner) fn begin_to_connect(self) -> ClaimConnection {
        let address = self.address.clone();
        ClaimConnection { address, opening: std::thread::spawn(move || self.connect()) }
    }

    /// Takes the claim over the connection that was begun, if it is one to the database of this claim. Otherwise connects now.
    /// A connection that was made, and then lost while nobody used it, is made once anew: to read a large change takes longer
    /// than some routers keep an idle connection. One that could not be made at all is not tried again.
    pub(in crate::runner) fn take_first(
        &self,
        begun: Option<ClaimConnection>,
    ) -> Result<(Database, ClaimAttempt), DatabaseError> {
        if let Some(begun) = begun.filter(|begun| begun.address == self.address) {
            let database = begun.finish()?;
            match self.take(&database) {
                Err(error) if error.is_lost_connection() => {
                    tracing::debug!(%error, "the connection for a claim was lost before its use");
                }
                attempt => return Ok((database, attempt?)),
            }
        }
        let database = self.connect()?;
        let attempt = self.take(&database)?;
        Ok((database, attempt))
    }

    /// Begins to hear of claims that end.
    pub(in crate::runner) fn listen(&self) -> Result<Listener, DatabaseError> {
        Listener::connect(&self.address, &self.project)
    }

    /// Takes the claim, or renews it.
    pub(in crate::runner) fn take(&self, database: &Database) -> Result<ClaimAttempt, DatabaseError> {
        let holder = database.claim_review(&self.project, &self.review, &self.holder, &self.machine, CLAIM_SECONDS)?;
        Ok(match holder.run == self.holder.as_str() {
            true => ClaimAttempt::Taken { is_renewal: holder.is_renewal },
            false => ClaimAttempt::Elsewhere(holder),
        })
    }

    /// Ends the claim of a run of this machine.
    pub(in crate::runner) fn release(&self, database: &Database, run: &RunId) -> Result<(), DatabaseError> {
        database.release_claims(&self.project, run)
    }

    /// Returns true for a holder on this machine.
    pub(in crate::runner) fn is_of_this_machine(&self, holder: &ClaimHolder) -> bool {
        holder.machine == self.machine.as_str()
    }

    /// Returns the run that holds the claim.
    pub(in crate::runner) fn holder(&self) -> &RunId {
        &self.holder
    }
}

/// Connection to the database of a claim that a thread makes.
pub(in crate::runner) struct ClaimConnection {
    address: DatabaseAddress,
    opening: JoinHandle<Result<Database, DatabaseError>>,
}

impl ClaimConnection {
    /// Waits for the thread that connects.
    fn finish(self) -> Result<Database, DatabaseError> {
        self.opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl TeamSync<'_> {
    /// Returns the claim that a run of a model must have before it pays; `None` if there is no team with a database, or others
    /// could not use the result.
    pub(in crate::runner) fn review_claim(&self, record: &RunRecord) -> Result<Option<ReviewClaim>, SyncError> {
        let Ok(team) = self.membership() else { return Ok(None) };
        if !self.may_take_results(record) || self.services.settings.team.share == ShareMode::Decisions {
            return Ok(None);
        }
        // A panel is reviewed as a whole.
        let panel = match &record.links.member_of {
            Some(panel) => self.services.store.run(panel)?,
            None => None,
        };
        let subject = panel.as_ref().unwrap_or(record);
        let filter = self.filter()?;
        if !subject.subject.changed_paths.iter().all(|path| filter.may_name(path)) {
            return Ok(None);
        }
        let (code, by) = (&subject.subject, &subject.reviewed_by);
        let parts = [
            &code.scope_hash,
            &code.diff_fingerprint,
            &code.prompt_policy_version,
            &by.name,
            &by.model,
            &by.reasoning_effort,
        ];
        Ok(Some(ReviewClaim {
            address: DatabaseAddress::parse(&team.place).map_err(TeamError::from)?,
            project: team.project,
            machine: team.machine,
            review: content_hash(parts.map(|part| part.as_bytes())),
            holder: subject.run_id.clone(),
        }))
    }

    /// Returns true if a run may be answered by what others send to a database: it was not forced, and reviews no fix.
    pub(in crate::runner) fn may_take_results(&self, record: &RunRecord) -> bool {
        self.is_live() && !record.full && record.follow_up_of.is_none()
    }

    /// Returns a run of another machine that answers a run of this one; for a member of a panel, one that answers the panel.
    pub(in crate::runner) fn find_answer(&self, record: &RunRecord) -> Result<Option<RunId>, RunnerError> {
        self.find_answer_to(record.links.member_of.as_ref().unwrap_or(&record.run_id))
    }

    /// Returns a run of another machine that has reviewed the same as this run, by itself.
    pub(in crate::runner) fn find_answer_to(&self, subject: &RunId) -> Result<Option<RunId>, RunnerError> {
        let view = self.services.store.view()?;
        let rows = || known_runs::run_rows(&view);
        let Some(own) = rows().find(|row| row.id == subject.as_str()) else { return Ok(None) };
        let known = rows().filter(|row| row.id != own.id).map(|row| known_runs::known_run_from_row(&row));
        let forgotten = self.list_forgotten();
        for id in policy::find_answers(&known_runs::known_run_from_row(&own), known) {
            let Some(record) = id.parse().ok().map(|id: RunId| self.services.store.run(&id)).transpose()?.flatten()
            else {
                continue;
            };
            if record.is_of_forgotten(&forgotten) {
                continue;
            }
            // A row does not say what is left to review, nor whether the result can still be read.
            if self.services.compute_extent(&record)?.leaves_nothing() {
                return Ok(Some(record.run_id));
            }
        }
        Ok(None)
    }

    /// Exchanges records, and waits for another process that does so.
    ///
    /// # Errors
    ///
    /// As [`TeamSync::sync`].
    pub fn sync_when_free(&self) -> Result<SyncReport, SyncError> {
        let give_up = Instant::now() + MAX_BUSY_WAIT;
        loop {
            match self.sync() {
                Err(SyncError::Busy) if Instant::now() < give_up => std::thread::sleep(BUSY_POLL_INTERVAL),
                result => return result,
            }
        }
    }

    /// Sends the result of a run to a team with a database, where others may wait for it, and then ends the run's claim. While
    /// it cannot be sent, tries again for a time, and keeps the claim; then the claim ends after its time, and the result waits
    /// for the next exchange. Where trying again cannot help, ends the claim at once: others would wait for nothing.
    pub(in crate::runner) fn publish(&self, claim: Option<HeldClaim>, run: &RunId) {
        if !self.is_live() {
            return;
        }
        let give_up = Instant::now() + MAX_PUBLISH_TIME;
        let is_awaited = claim.as_ref().is_some_and(HeldClaim::was_taken);
        while let Err(error) = self.sync_when_free() {
            tracing::warn!(%run, error = %error.describe(), "a review is not sent to the team");
            if error.is_permanent() {
                break;
            }
            if !is_awaited || Instant::now() >= give_up {
                return;
            }
            std::thread::sleep(PUBLISH_PAUSE);
        }
        if let Some(held) = claim {
            held.release();
        }
    }

    /// Sends what a worker of a run that is over has not sent, because it was killed before, and ends the run's claim. Tries once;
    /// a failure is logged.
    pub(in crate::runner) fn publish_left_result(&self, run: &RunId) {
        let publish = || -> Result<(), SyncError> {
            if !self.is_live() || !self.has_unsent_reviews()? {
                return Ok(());
            }
            self.sync_when_free()?;
            let record = self.services.store.run(run)?;
            let Some(claim) = record.map(|record| self.review_claim(&record)).transpose()?.flatten() else {
                return Ok(());
            };
            // The run of a panel goes on after its members, and holds the claim for all of them.
            let holder = self.services.store.run(&claim.holder)?;
            if holder.is_some_and(|holder| holder.status.is_terminal()) {
                claim
                    .connect()
                    .and_then(|database| claim.release(&database, &claim.holder))
                    .map_err(TeamError::from)?;
            }
            Ok(())
        };
        if let Err(error) = publish() {
            tracing::warn!(%run, error = %error.describe(), "a review is not sent to the team");
        }
    }

    /// Starts a process that does [`TeamSync::publish_left_result`] if a result of this machine that answers a request was not sent.
    /// A failure is logged: the next exchange sends it.
    pub(in crate::runner) fn start_publishing_left_result(&self, run: &RunRecord) {
        let is_own_result = run.status == RunStatus::Completed && run.team.is_none();
        if !is_own_result || !self.is_live() {
            return;
        }
        let started = self.has_unsent_reviews().map_err(|error| error.describe()).and_then(|has_unsent| {
            if !has_unsent {
                return Ok(());
            }
            let Services { repo, paths, .. } = self.services;
            let arguments = ["worker", run.run_id.as_str()];
            let process = process::spawn_detached(repo, paths, &repo.root(), &arguments, Stdio::null(), WORKER_LOG);
            process.map(process::reap).map_err(|error| error.to_string())
        });
        if let Err(error) = started {
            tracing::warn!(run = %run.run_id, error, "a result that was not sent waits for the next exchange");
        }
    }

    /// Returns true if a result of this machine waits to be sent.
    fn has_unsent_reviews(&self) -> Result<bool, SyncError> {
        let store = &self.services.store;
        Ok(store.count_unsent(&store.team_progress()?)?.reviews > 0)
    }

    /// Returns true if the records of a machine are not used here.
    pub(in crate::runner) fn is_forgotten(&self, machine: &str) -> bool {
        machine.parse::<MachineName>().is_ok_and(|machine| machine.is_forgotten(&self.list_forgotten()))
    }

    /// Returns true if this machine takes part in a team that hears of news as they happen.
    pub fn is_live(&self) -> bool {
        self.membership().is_ok_and(|team| is_database(&team.place))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::team::postgres::fake_server::{ColumnValue, FakeServer, row_answer};

    impl ReviewClaim {
        /// Returns a claim in a database at a port of this machine.
        pub(in crate::runner) fn at_port(port: u16) -> Self {
            Self {
                address: DatabaseAddress::parse(&format!("postgres://ada@127.0.0.1:{port}/team")).expect("an address"),
                project: "app".to_owned(),
                machine: "ada-1".parse().expect("a name"),
                review: String::new(),
                holder: "ar_01M8KHBWYCRT879842CJ19XG3H".parse().expect("an id"),
            }
        }
    }

    #[test]
    fn a_connection_that_could_not_be_made_is_not_tried_again() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let claim = ReviewClaim::at_port(port);
        let begun = claim.clone().begin_to_connect();
        // The server hangs up, which is the answer of this connection.
        drop(listener.accept().expect("a client"));
        assert!(claim.take_first(Some(begun)).is_err());
        listener.set_nonblocking(true).expect("a mode");
        assert!(listener.accept().is_err(), "there is another connection");
    }

    #[test]
    fn a_connection_that_was_lost_before_its_use_is_made_once_anew() {
        // The number of the connections, begun with the first, that the server ends before the claim is taken.
        for (title, lost, is_begun, expected, connections) in [
            ("a good connection", 0, true, true, 1),
            ("a stale connection", 1, true, true, 2),
            ("a database that went away", 2, true, false, 2),
            ("a new connection that is lost", 1, false, false, 1),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let claim = ReviewClaim::at_port(listener.local_addr().expect("an address").port());
            let holder = claim.holder.to_string();
            let (ended, has_ended) = std::sync::mpsc::channel();
            let server = std::thread::spawn(move || {
                for at in 0..connections {
                    let mut server = FakeServer::connect(listener.accept().expect("a client").0);
                    if at < lost {
                        drop(server);
                        ended.send(()).expect("the test waits");
                        continue;
                    }
                    server.read_statements(1);
                    let (run, machine) = (ColumnValue::Text(&holder), ColumnValue::Text("ada-1"));
                    server.send(&[row_answer(&[run, machine, ColumnValue::Float(90.0), ColumnValue::Bool(false)])]);
                }
                listener
            });
            let begun = is_begun.then(|| claim.clone().begin_to_connect());
            if is_begun && lost > 0 {
                // The reviewer reads its change, and the connection ends meanwhile.
                has_ended.recv().expect("an end");
            }
            let taken = claim.take_first(begun).map(|(_, attempt)| attempt);
            assert_eq!(taken.is_ok(), expected, "{title}: {taken:?}");
            if let Ok(attempt) = taken {
                assert_eq!(attempt, ClaimAttempt::Taken { is_renewal: false }, "{title}");
            }
            let listener = server.join().expect("an answer");
            listener.set_nonblocking(true).expect("a mode");
            assert!(listener.accept().is_err(), "{title}: there is another connection");
        }
    }
}
