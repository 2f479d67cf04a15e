//! A run in the hands of its worker, from its first phase to its conclusion.

use std::cell::Cell;
use std::sync::Arc;

use crate::context::read_ahead::ContextSources;
use crate::domain::{
    CancelReason, ErrorClass, JournalEntry, PhaseTimings, RunEvent, RunId, RunRecord, RunStatus, SteeredKind, Time,
};
use crate::review::{JournalState, ReviewOutcome, RunCost};
use crate::runner::conclude::{self, elapsed_ms};
use crate::runner::team::claims::ClaimConnection;
use crate::runner::team::held_claim::HeldClaim;
use crate::runner::worker::standing_code::StandingCode;
use crate::runner::worker::visible_findings::VisibleFindings;
use crate::runner::worker::{CancelWatch, rewritten_code};
use crate::runner::{BUILTIN_REVIEWER, RunnerError, Services, indexing};
use crate::store::JournalWriter;

/// A run in the hands of its worker.
pub(in crate::runner) struct RunWorker<'a> {
    pub(in crate::runner) services: &'a Services,
    pub(in crate::runner) record: RunRecord,
    journal: JournalWriter,
    /// Journal entries that are not written yet. They are written together, before anything that cannot be undone.
    pub(in crate::runner) buffer: Vec<RunEvent>,
    pub(in crate::runner) cancel_watch: CancelWatch<'a>,
    /// The findings that the run knows; loaded with the first finding.
    pub(super) earlier: Option<Arc<VisibleFindings>>,
    pub(super) standing_code: StandingCode,
    timings: PhaseTimings,
    /// The last failure of the reviewer, in this attempt or an earlier one.
    pub(super) failure: Option<(ErrorClass, String)>,
    /// Bytes of unindexed files that the reviewer had to read.
    pub(super) unknown_bytes: u64,
    /// Sources of the context that were not read completely.
    pub(in crate::runner) unread: Option<ContextSources>,
    /// Kinds about which the reviewer is almost always wrong.
    pub(in crate::runner) steered: Vec<SteeredKind>,
    /// As [`crate::domain::RunUsage::price_known`], with the answers that are not recorded yet.
    pub(super) price_known: Cell<Option<bool>>,
    /// Claim of the review in the team's database.
    pub(super) claim: Option<HeldClaim>,
    /// Connection for that claim, until it is used.
    pub(super) claim_connection: Option<ClaimConnection>,
}

/// Work for the next review that a run leaves to its worker.
pub(super) struct WorkAfterRun {
    /// Commit of the snapshot, if more of its files should be indexed.
    pub unindexed: Option<String>,
    pub unread: Option<ContextSources>,
}

impl<'a> RunWorker<'a> {
    pub(super) fn new(services: &'a Services, record: RunRecord) -> Result<Self, RunnerError> {
        let journal = services.store.open_journal(&record.run_id)?;
        let asked = CancelWatch::new(services, record.run_id.clone());
        let timings = record.usage.phase_timings;
        let price_known = Cell::new(record.usage.price_known);
        Ok(Self {
            services,
            record,
            journal,
            buffer: Vec::new(),
            cancel_watch: asked,
            earlier: None,
            standing_code: StandingCode::default(),
            timings,
            failure: None,
            unknown_bytes: 0,
            unread: None,
            steered: Vec::new(),
            price_known,
            claim: None,
            claim_connection: None,
        })
    }

    /// Executes the run. Returns what should be read for the next review, and, also after an error, the claim that the run has to
    /// end.
    pub(super) fn execute(mut self) -> (Result<WorkAfterRun, RunnerError>, Option<HeldClaim>) {
        let worked = self.execute_to_end();
        // The members of a panel hold the claim of the panel, which ends with it. A panel that was cancelled has no worker that
        // would end it.
        let is_over = |panel: &RunId| {
            let record = self.services.store.run(panel).ok().flatten();
            record.is_none_or(|record| record.status.is_terminal() || record.ending.cancel_reason.is_some())
        };
        let claim = self.claim.filter(|_| self.record.links.member_of.as_ref().is_none_or(is_over));
        (worked, claim)
    }

    fn execute_to_end(&mut self) -> Result<WorkAfterRun, RunnerError> {
        let run = self.record.run_id.clone();
        let began = self.now();
        self.begin_to_connect();
        let started = RunEvent::Started { attempt: self.record.attempt, worker: std::process::id() };
        self.buffer.extend([started, RunEvent::Phase { status: RunStatus::Snapshotting }]);
        self.flush()?;
        self.copy_earlier_journal()?;
        let _parsing = self.start_parse_log()?;
        let entries = self.services.store.read_journal(&run)?;
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));

        let filter = self.services.filter();
        let change = self.services.repo.compute_changeset(
            &self.record.subject.base_commit,
            &self.record.subject.snapshot_commit,
            &filter,
        );
        let frozen = self.now();
        self.timings.snapshot_ms += elapsed_ms(began, frozen);
        let mut outcome = match change {
            Ok(mut change) => {
                if self.record.reviewed_by.name == BUILTIN_REVIEWER {
                    let commit = &self.record.subject.snapshot_commit;
                    let read = |path: &str| self.services.repo.file_at(commit, path).ok().flatten();
                    rewritten_code::mark_moved_code(&mut change, read);
                }
                let mut outcome = match self.record.links.panel.clone() {
                    Some(panel) => self.review_panel(&panel, &entries)?,
                    None => {
                        let mut outcome = self.review(&change, replayed, &entries)?;
                        self.add_new_secrets(&change, &mut outcome)?;
                        outcome
                    }
                };
                let subject = &self.record.subject;
                outcome
                    .notes
                    .extend(self.services.describe_loosened_rules(&subject.base_commit, &subject.snapshot_commit));
                outcome
            }
            Err(error) => {
                let text = format!("the snapshot is gone or cannot be read: {error}");
                self.buffer.push(RunEvent::Failed { class: ErrorClass::Git, summary: text.clone() });
                conclude::failed_outcome(&replayed, ErrorClass::Git, text)
            }
        };
        conclude::mark_incomplete(&mut outcome, self.failure.take());
        let reviewed = self.now();
        self.timings.review_ms += elapsed_ms(frozen, reviewed);

        self.enter_phase(RunStatus::Resolving)?;
        self.timings.resolve_ms += elapsed_ms(reviewed, self.now());
        let status = outcome.status;
        let concluded = self.services.closer().conclude_run(&run, &mut outcome, self.timings)?;
        // A reviewer that could not begin has left no summary.
        if status == RunStatus::Failed {
            self.buffer.extend(self.services.replay_journal(&run)?.final_summary());
        }
        self.buffer.push(RunEvent::Finished { status });
        self.flush()?;
        if self.services.learning().may_learn_from(&concluded) {
            self.services.learning().record_matches(&concluded.subject.snapshot_commit, &outcome.findings);
        }
        let is_unindexed = self.unknown_bytes > indexing::MIN_UNKNOWN_BYTES;
        let unindexed = is_unindexed.then(|| self.record.subject.snapshot_commit.clone());
        Ok(WorkAfterRun { unindexed, unread: self.unread.take() })
    }

    /// Returns the outcome of a run that ends before it has asked anything.
    pub(super) fn cancelled_outcome(&mut self, reason: CancelReason, entries: &[JournalEntry]) -> ReviewOutcome {
        self.buffer.push(RunEvent::CancelAsked { reason });
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        ReviewOutcome { cancel: Some(reason), ..replayed.to_outcome(reason.status(), "it had asked nothing yet") }
    }

    fn enter_phase(&mut self, status: RunStatus) -> Result<(), RunnerError> {
        self.buffer.push(RunEvent::Phase { status });
        self.flush()?;
        let (now, timings) = (self.now(), self.timings);
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            record.status = status;
            record.usage.phase_timings = timings;
        })?;
        Ok(())
    }

    /// Records what the run has cost so far.
    pub(super) fn record_cost(&mut self, spent: &RunCost) -> Result<(), RunnerError> {
        let (now, price_known) = (self.now(), self.price_known.get());
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            conclude::record_cost(spent, record);
            record.usage.price_known = price_known;
        })?;
        Ok(())
    }

    /// Writes the buffered entries durably into the journal.
    pub(in crate::runner) fn flush(&mut self) -> Result<(), RunnerError> {
        let events = std::mem::take(&mut self.buffer);
        Ok(self.journal.append_all(self.services.ambient.now(), &events)?)
    }

    pub(in crate::runner) fn now(&self) -> Time {
        self.services.ambient.now()
    }
}
