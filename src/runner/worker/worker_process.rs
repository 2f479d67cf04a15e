//! Executes a run in the process of its worker, and does what the end of a run leaves to do.

use crate::domain::{ErrorClass, RunId, RunStatus};
use crate::review::{JournalMetrics, JournalState};
use crate::runner::team::held_claim::HeldClaim;
use crate::runner::worker::run_claim::RunClaim;
use crate::runner::worker::{RunWorker, Worker};
use crate::runner::{RunnerError, conclude, process};

impl Worker<'_> {
    /// Executes one run to its end, then settles dead runs and starts the next pending one. Returns at once if another
    /// worker has the run, the run has ended, or no slot is free.
    ///
    /// # Errors
    ///
    /// If the run cannot be claimed, executed or recorded; the run is failed first, as far as the store still accepts
    /// it.
    pub fn run_worker(&self, run: &RunId) -> Result<(), RunnerError> {
        process::ignore_the_terminal();
        let (lock, record) = match self.claim_run(run)? {
            RunClaim::Mine(lock, record) => (lock, *record),
            // The process that has the run, or a slot, starts the next run.
            RunClaim::Taken | RunClaim::NoSlot => return Ok(()),
            RunClaim::Over => {
                self.services.launcher().start_pending_or_log();
                self.services.team().publish_left_result(run);
                return Ok(());
            }
        };
        let may_learn = self.services.learning().may_learn_from(&record);
        let (worked, claim) = match RunWorker::new(self.services, record) {
            Ok(worker) => worker.execute(),
            Err(error) => (Err(error), None),
        };
        if let Err(error) = &worked {
            tracing::error!(%run, %error, "the run ends because its worker cannot go on");
            // A run that cannot be failed now is settled by the next recovery.
            if let Err(error) = self.fail_run(run, error) {
                tracing::error!(%run, %error, "the failure is not recorded");
            }
        }
        drop(lock);
        let claim = match &worked {
            Ok(_) => claim,
            Err(_) => claim.and_then(|held| self.release_without_result(run, held)),
        };
        // Also recovers the runs of other workers that died, because perhaps no other process will.
        let recovered = self.services.recovery().recover();
        // Others may wait for the result; the next run of this machine does not.
        self.services.team().publish(claim, run);
        if let Err(error) = self.services.recovery().remove_leftovers() {
            tracing::warn!(%error, "what dead processes left stays");
        }
        self.services.recovery().run_housekeeping();
        if may_learn {
            self.services.learning().learn_after_run();
        }
        let rest = worked?;
        if let Some(commit) = &rest.unindexed {
            self.services.indexer().index_after_review(commit);
        }
        if let Some(sources) = &rest.unread {
            process::stand_back();
            self.services.indexer().read_ahead_after_review(sources);
        }
        recovered.map(drop)
    }

    /// Ends the claim of a run that has no result, because others would wait for nothing. Returns the claim of a run that has one:
    /// it ends when the result was sent.
    fn release_without_result(&self, run: &RunId, held: HeldClaim) -> Option<HeldClaim> {
        let record = self.services.store.run(run).ok().flatten();
        if record.is_some_and(|record| record.status == RunStatus::Completed) {
            return Some(held);
        }
        held.release();
        None
    }

    /// Fails a run whose worker met an internal error, as far as the store still accepts it.
    fn fail_run(&self, run: &RunId, error: &RunnerError) -> Result<(), RunnerError> {
        let Some(record) = self.services.store.run(run)? else { return Ok(()) };
        let entries = self.services.store.read_journal(run)?;
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        let timings = JournalMetrics::add_unrecorded_attempt(record.usage.phase_timings, &entries);
        let mut outcome = conclude::failed_outcome(&replayed, classify_error(error), error.to_string());
        self.services.closer().conclude_run(run, &mut outcome, timings)?;
        Ok(())
    }
}

/// Returns the class under which a run records an error.
pub(super) fn classify_error(error: &RunnerError) -> ErrorClass {
    match error {
        RunnerError::Git(_) => ErrorClass::Git,
        RunnerError::Store(_) => ErrorClass::Store,
        RunnerError::UnknownReviewer { .. }
        | RunnerError::UnknownPanel { .. }
        | RunnerError::Limits(_)
        | RunnerError::Config(_) => ErrorClass::Configuration,
        RunnerError::MissingKey(_) => ErrorClass::Auth,
        RunnerError::Reviewer(error) => error.class,
        RunnerError::Spawn { .. }
        | RunnerError::Unkillable { .. }
        | RunnerError::EngineStuck { .. }
        | RunnerError::Unsettled { .. }
        | RunnerError::NotReviewed { .. }
        | RunnerError::WatchedElsewhere { .. }
        | RunnerError::WatcherStays { .. }
        | RunnerError::Ask(_)
        | RunnerError::Fix(_) => ErrorClass::Internal,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;
    use crate::runner::fixture::RunnerFixture;
    use crate::runner::team::claims::ReviewClaim;
    use crate::team::postgres::fake_server::{ColumnValue, FakeServer, row_answer};

    #[test]
    fn a_run_that_cannot_go_on_gives_its_claim_back() {
        let fixture = RunnerFixture::new();
        let run = fixture.record_working_run(|_| {});
        let mut record = fixture.record(&run);
        // The store does not know this run.
        record.run_id = "ar_01M8KHBWYCRT879842CJ19XG3H".parse().expect("an id");
        let panel = fixture.record_working_run(|_| {});
        for (member_of, is_given_back) in [(None, true), (Some(panel), false)] {
            record.links.member_of = member_of;
            let mut worker = RunWorker::new(&fixture.services, record.clone()).expect("a journal");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            worker.claim = Some(ReviewClaim::at_port(port).keep_trying());
            let (worked, claim) = worker.execute();
            assert!(worked.is_err());
            // The panel goes on, and ends the claim of its members.
            assert_eq!(claim.is_some(), is_given_back);
        }
    }

    #[test]
    fn the_claim_of_a_run_without_a_result_ends_at_once() {
        for (status, is_released) in
            [(RunStatus::Failed, true), (RunStatus::Reviewing, true), (RunStatus::Completed, false)]
        {
            let fixture = RunnerFixture::new();
            let run = fixture.record_working_run(|record| record.status = status);
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let claim = ReviewClaim::at_port(listener.local_addr().expect("an address").port());
            let server = std::thread::spawn(move || {
                let mut server = FakeServer::connect(listener.accept().expect("a client").0);
                if is_released {
                    server.read_statements(1);
                    server.send(&[row_answer(&[ColumnValue::Bool(true)])]);
                }
                server
            });
            let database = Arc::new(claim.connect().expect("connected"));
            let left = Worker { services: &fixture.services }.release_without_result(&run, claim.keep(database));
            assert_eq!(left.is_none(), is_released, "{status:?}");
            // Ends when the claim was released, or need not be.
            drop(server.join().expect("the claim is released"));
        }
    }
}
