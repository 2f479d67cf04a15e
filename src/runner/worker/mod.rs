//! Runs `revdeck worker RUN`: one run from its claim to its end.

pub(super) mod carry_over;
pub(super) mod conversation;
mod earlier_rulings;
mod panel_cost;
mod panel_opinions;
pub(super) mod report_validation;
pub(in crate::runner) mod rewritten_code;
pub(super) mod secret_scan;
pub(super) mod shared_reading;
mod standing_code;
mod team_claim;

use std::cell::Cell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::standing_code::{StandingCode, StandingGround};
use crate::context::read_ahead::ContextSources;
use crate::domain::{
    CancelReason, ErrorClass, Finding, FindingId, JournalEntry, Panel, PhaseTimings, RunEvent, RunId, RunRecord,
    RunReviewer, RunStatus, Source, SteeredKind, Time,
};
use crate::git::{Changeset, FileChange};
use crate::review::{
    self, JournalMetrics, JournalState, PlannedFile, ReviewOutcome, ReviewPlan, RunCost, UnitEffect, UnitEngine,
    UnitEvent,
};
use crate::reviewers::{Reviewer, ReviewerError};
use crate::runner::conclude::{self, elapsed_ms};
use crate::runner::steering::recorded_steering;
use crate::runner::team::claims::HeldClaim;
use crate::runner::{BUILTIN_REVIEWER, RunnerError, Services, indexing, known_runs, process};
use crate::store::{HeartbeatState, JournalWriter, RunLock, StoreError, StoreView};
use crate::syntax::parse_log::{self, ParseLog};

/// Time that a worker waits for the lock of a pending run. Another worker may hold the lock while it checks for a free
/// slot.
const MAX_CLAIM_WAIT: Duration = Duration::from_secs(5);
/// Minimum interval between two checks for a cancellation.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The result of claiming a run.
enum RunClaim {
    Mine(RunLock, Box<RunRecord>),
    /// Another worker has the run.
    Taken,
    /// All slots are taken, or the run waits for an older run.
    NoSlot,
    /// The run ended before it began.
    Over,
}

/// Service that executes one run in the process of its worker.
#[derive(Clone, Copy)]
pub struct Worker<'a> {
    pub(in crate::runner) services: &'a Services,
}

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
                return Ok(());
            }
        };
        let may_learn = self.services.learning().may_learn_from(&record);
        let worked = RunWorker::new(self.services, record).and_then(RunWorker::execute);
        if let Err(error) = &worked {
            tracing::error!(%run, %error, "the run ends because its worker cannot go on");
            // A run that cannot be failed now is settled by the next recovery.
            if let Err(error) = self.fail_run(run, error) {
                tracing::error!(%run, %error, "the failure is not recorded");
            }
        }
        drop(lock);
        // Also recovers the runs of other workers that died, because perhaps no other process will.
        let recovered = self.services.recovery().recover();
        // Others may wait for the result; the next run of this machine does not.
        let worked = worked.map(|mut rest| {
            self.services.team().publish(rest.claim.take(), run);
            rest
        });
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

    /// Takes the run's lock and then a slot, in this order; see the invariants in [`super`].
    fn claim_run(&self, run: &RunId) -> Result<RunClaim, RunnerError> {
        let give_up = Instant::now() + MAX_CLAIM_WAIT;
        let lock = loop {
            if let Some(lock) = self.services.store.lock_run(run)? {
                break lock;
            }
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status != RunStatus::Pending || Instant::now() > give_up {
                return Ok(RunClaim::Taken);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.services.store.with_lock_as(move |locked| {
            // Every result but `Mine` drops the run's lock inside this closure, under the store's lock, so that no
            // later reader finds it held.
            let lock = lock;
            let Some(record) = self.services.store.run(run)? else { return Err(self.services.no_run_error(run)) };
            if record.status != RunStatus::Pending {
                return Ok(RunClaim::Over);
            }
            let view = locked.runs_view()?;
            let working = known_runs::run_rows(&view).filter(|row| row.status.is_working() && row.id != run.as_str());
            let working = working.filter_map(|row| row.id.parse().ok()).filter(|id| self.services.has_worker(id));
            let launcher = self.services.launcher();
            let slots = launcher.collect_slots(working);
            // A panel's other members have the slot already.
            let own = launcher.slot_of(run);
            let busy = if slots.contains(&own) { 0 } else { slots.len() };
            if busy >= self.services.settings.max_parallel_runs.max(1) || self.services.launcher().must_wait(&record) {
                self.clear_failed_starts(run);
                // Released under the store's lock, like the run's lock, so that the next process that ends finds the
                // run startable.
                process::unlock_input();
                return Ok(RunClaim::NoSlot);
            }
            let now = self.services.ambient.now();
            let record = locked.update_run(run, now, |record| {
                record.status = RunStatus::Snapshotting;
                record.attempt += 1;
                // Later attempts did not wait in the queue: the record has changed since the request.
                if record.updated_at == record.created_at {
                    record.usage.phase_timings.queued_ms = elapsed_ms(record.created_at, now);
                }
            })?;
            // Only now: a worker that cannot write its claim has not begun.
            self.clear_failed_starts(run);
            Ok(RunClaim::Mine(lock, Box::new(record)))
        })
    }

    fn clear_failed_starts(&self, run: &RunId) {
        if let Err(error) = self.services.store.clear_failed_starts(run) {
            tracing::warn!(%run, %error, "starts that came to nothing go on to be counted");
        }
    }

    /// Fails a run whose worker met an internal error, as far as the store still accepts it.
    fn fail_run(&self, run: &RunId, error: &RunnerError) -> Result<(), RunnerError> {
        let class = match error {
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
        };
        let Some(record) = self.services.store.run(run)? else { return Ok(()) };
        let entries = self.services.store.read_journal(run)?;
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        let timings = JournalMetrics::add_unrecorded_attempt(record.usage.phase_timings, &entries);
        let mut outcome = conclude::failed_outcome(&replayed, class, error.to_string());
        self.services.closer().conclude_run(run, &mut outcome, timings)?;
        Ok(())
    }
}

/// A run in the hands of its worker.
pub(in crate::runner) struct RunWorker<'a> {
    pub(in crate::runner) services: &'a Services,
    pub(in crate::runner) record: RunRecord,
    journal: JournalWriter,
    /// Journal entries that are not written yet. They are written together, before anything that cannot be undone.
    pub(in crate::runner) buffer: Vec<RunEvent>,
    pub(in crate::runner) cancel_watch: CancelWatch<'a>,
    /// The first runs that reported each finding; loaded with the first finding.
    earlier: Option<Arc<StoreView>>,
    standing_code: StandingCode,
    timings: PhaseTimings,
    /// The last failure of the reviewer, in this attempt or an earlier one.
    failure: Option<(ErrorClass, String)>,
    /// Bytes of unindexed files that the reviewer had to read.
    unknown_bytes: u64,
    /// Sources of the context that were not read completely.
    pub(in crate::runner) unread: Option<ContextSources>,
    /// Kinds about which the reviewer is almost always wrong.
    pub(in crate::runner) steered: Vec<SteeredKind>,
    /// As [`crate::domain::RunUsage::price_known`], with the answers that are not recorded yet.
    price_known: Cell<Option<bool>>,
    /// Claim of the review in the team's database.
    claim: Option<HeldClaim>,
}

/// Work for the next review that a run leaves to its worker.
struct WorkAfterRun {
    /// Commit of the snapshot, if more of its files should be indexed.
    unindexed: Option<String>,
    unread: Option<ContextSources>,
    /// Claim that ends when the result was sent.
    claim: Option<HeldClaim>,
}

impl<'a> RunWorker<'a> {
    fn new(services: &'a Services, record: RunRecord) -> Result<Self, RunnerError> {
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
        })
    }

    /// Executes the run. Returns what should be read for the next review.
    fn execute(mut self) -> Result<WorkAfterRun, RunnerError> {
        let run = self.record.run_id.clone();
        let began = self.now();
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
        // A panel that could not merge does not stand for its members.
        if let Some(panel) = concluded.links.panel.as_ref().filter(|_| concluded.status != RunStatus::Failed) {
            self.services.fold_members(&concluded, panel)?;
        }
        if self.services.learning().may_learn_from(&concluded) {
            self.services.learning().record_matches(&concluded.subject.snapshot_commit, &outcome.findings);
        }
        let is_unindexed = self.unknown_bytes > indexing::MIN_UNKNOWN_BYTES;
        let unindexed = is_unindexed.then_some(self.record.subject.snapshot_commit);
        // The members of a panel hold the claim of the panel, which ends with it. A panel that was cancelled has no worker that
        // would end it.
        let is_over = |panel: &RunId| {
            let record = self.services.store.run(panel).ok().flatten();
            record.is_none_or(|record| record.status.is_terminal() || record.ending.cancel_reason.is_some())
        };
        let claim = self.claim.filter(|_| self.record.links.member_of.as_ref().is_none_or(is_over));
        Ok(WorkAfterRun { unindexed, unread: self.unread, claim })
    }

    /// Records which files an earlier attempt was parsing when it ran out of memory, and keeps this process from parsing
    /// them. Starts the log for the next attempt; without a log, such an attempt repeats the death of this one.
    fn start_parse_log(&mut self) -> Result<Option<ParseLog>, RunnerError> {
        let path = self.services.store.parse_log_path(&self.record.run_id);
        let parsing = ParseLog::read_interrupted(&path);
        if !parsing.is_empty() {
            self.buffer.push(RunEvent::OutOfMemory { parsing });
            self.flush()?;
        }
        for entry in self.services.store.read_journal(&self.record.run_id)? {
            if let RunEvent::OutOfMemory { parsing } = entry.event {
                parse_log::refuse_texts(parsing.into_iter().map(|text| text.content));
            }
        }
        let log = ParseLog::start(&path).inspect_err(|error| tracing::warn!(%error, "no log of what is parsed"));
        Ok(log.ok())
    }

    /// Copies the records of an earlier run of the same content into this run's journal. Continues a copy that was
    /// interrupted.
    fn copy_earlier_journal(&mut self) -> Result<(), RunnerError> {
        // A panel merges its members anew.
        let resumed = self.record.links.resumed_from.clone().filter(|_| self.record.links.panel.is_none());
        let Some(from) = resumed else { return Ok(()) };
        let store = &self.services.store;
        let own = store.read_journal(&self.record.run_id)?;
        let mut ids: HashSet<FindingId> = HashSet::new();
        let mut paths: HashSet<String> = HashSet::new();
        let mut carry: HashSet<(String, RunId)> = HashSet::new();
        let mut answers = 0;
        for entry in &own {
            match &entry.event {
                RunEvent::Finding { finding } => drop(ids.insert(finding.finding_id.clone())),
                RunEvent::Covered { file } => drop(paths.insert(file.path.clone())),
                RunEvent::LeftOut { file, .. } => drop(paths.insert(file.path.clone())),
                RunEvent::Carried { carried } => drop(carry.insert((carried.file.path.clone(), carried.from.clone()))),
                RunEvent::TurnAnswered { .. } | RunEvent::Unanswered { .. } => answers += 1,
                _ => {}
            }
        }
        for entry in store.read_journal(&from)? {
            match entry.event {
                RunEvent::Finding { mut finding } if ids.insert(finding.finding_id.clone()) => {
                    self.stamp(&mut finding)?;
                    self.buffer.push(RunEvent::Finding { finding });
                }
                RunEvent::TurnAnswered { .. } | RunEvent::Unanswered { .. } if answers > 0 => answers -= 1,
                event @ RunEvent::Unanswered { .. } => self.buffer.push(event),
                // The copied answers were given to a prompt with this warning.
                event @ RunEvent::Steered { .. } if own.iter().all(|entry| entry.event != event) => {
                    self.buffer.push(event);
                }
                event @ RunEvent::OutOfMemory { .. } if own.iter().all(|entry| entry.event != event) => {
                    self.buffer.push(event);
                }
                // The answer is paid for. The engine extracts its findings again.
                RunEvent::TurnAnswered { turn, response, cost, first_ms, took_ms, .. } => {
                    let taken_over = true;
                    self.buffer.push(RunEvent::TurnAnswered { turn, response, cost, first_ms, took_ms, taken_over });
                }
                RunEvent::Covered { file } if paths.insert(file.path.clone()) => {
                    self.buffer.push(RunEvent::Covered { file });
                }
                // Hunks that were not sent then are not sent now, because the copied answers do not cover them.
                RunEvent::Carried { carried } if carry.insert((carried.file.path.clone(), carried.from.clone())) => {
                    self.buffer.push(RunEvent::Carried { carried });
                }
                _ => {}
            }
        }
        self.flush()
    }

    fn review(
        &mut self,
        change: &Changeset,
        replayed: JournalState,
        entries: &[JournalEntry],
    ) -> Result<ReviewOutcome, RunnerError> {
        self.decide_steering(entries)?;
        let subject = &self.record.subject;
        let prompt_set = self.record.reviewed_by.prompt_set.as_deref();
        let identity = self.services.reviewers().with_prompt_set(prompt_set).resolve_identity_for(
            Some(&self.record.reviewed_by.name),
            &subject.base_commit,
            &subject.snapshot_commit,
        )?;
        self.buffer.push(RunEvent::Phase { status: RunStatus::Reviewing });
        let now = self.now();
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            record.status = RunStatus::Reviewing;
            // The settings may have changed since the request.
            record.subject.prompt_policy_version =
                RunReviewer::focused_version(&identity.policy_version, &record.reviewed_by.focus);
        })?;
        if identity.reviewer != BUILTIN_REVIEWER {
            // From here on, the run has an activity: it gathers its context, or waits for another machine.
            let mut pulse = self.services.store.start_heartbeat(&self.record.run_id, self.now());
            // Before the plan: what others have reviewed is carried over.
            if let Some(reason) = self.claim_review(Some(&mut pulse))? {
                return Ok(self.cancelled_outcome(reason, entries));
            }
            pulse.set_state(self.now(), HeartbeatState::Preparing);
            // This attempt tries again where an earlier attempt failed.
            let mut plan = self.build_plan(change, None);
            let known = self.carry_over(change, &mut plan, entries)?;
            return self.run_conversation(change, plan, known, pulse);
        }
        self.failure.clone_from(&replayed.failure);
        let mut reviewer = self.services.reviewers().open_builtin(&self.record)?;
        let mut plan = self.build_plan(change, Some(reviewer.as_ref()));
        self.carry_over(change, &mut plan, entries)?;
        let replayed = self.services.replay_journal(&self.record.run_id)?;
        let mut engine = UnitEngine::new();
        let mut effects = engine.handle(UnitEvent::Started(plan, Box::new(replayed)));
        loop {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    UnitEffect::Append(event) => self.buffer.push(event),
                    UnitEffect::CallReviewer(unit) => {
                        self.flush()?;
                        let event = self.call_reviewer(reviewer.as_mut(), &unit, change)?;
                        next = engine.handle(event);
                    }
                    UnitEffect::Finish(outcome) => return Ok(*outcome),
                }
            }
            effects = next;
        }
    }

    /// Merges what the members of a panel found, and asks for second opinions. The members have ended.
    fn review_panel(&mut self, panel: &Panel, entries: &[JournalEntry]) -> Result<ReviewOutcome, RunnerError> {
        let now = self.now();
        self.record = self.services.store.update_run(&self.record.run_id, now, |record| {
            record.status = RunStatus::Reviewing;
        })?;
        if let Some(reason) = self.claim_review(None)? {
            return Ok(self.cancelled_outcome(reason, entries));
        }
        let mut outcome = self.services.merge_members(&self.record, panel)?;
        self.failure.clone_from(&outcome.failure);
        // An earlier attempt has merged the same.
        let is_recorded = entries.iter().any(|entry| matches!(entry.event, RunEvent::Planned { .. }));
        if !is_recorded {
            let coverage = &outcome.coverage;
            self.buffer.push(RunEvent::Phase { status: RunStatus::Reviewing });
            let (files, hunks) = (coverage.files_total, coverage.hunks_total);
            self.buffer.push(RunEvent::Planned { files, hunks, left_out: coverage.left_out.clone() });
            let findings = outcome.findings.iter().map(|finding| Box::new(finding.clone()));
            self.buffer.extend(findings.map(|finding| RunEvent::Finding { finding }));
            self.buffer.extend(coverage.files.iter().map(|file| RunEvent::Covered { file: file.clone() }));
            let carried = coverage.carried.iter().cloned().map(Box::new);
            self.buffer.extend(carried.map(|carried| RunEvent::Carried { carried }));
            self.buffer.extend(outcome.notes.iter().map(|text| RunEvent::Note { text: text.clone() }));
            self.flush()?;
        }
        let merged = outcome.findings.clone();
        self.ask_for_opinions(panel, &mut outcome, entries)?;
        let changed = outcome.findings.iter().zip(&merged).filter(|(after, before)| after != before);
        let changed: Vec<Box<Finding>> = changed.map(|(after, _)| Box::new(after.clone())).collect();
        let turn = outcome.spent.turns;
        self.buffer.extend(changed.into_iter().map(|finding| RunEvent::Restated { turn, finding }));
        self.flush()?;
        review::sort_by_urgency(&mut outcome.findings);
        review::summarize_panel(&mut outcome);
        Ok(outcome)
    }

    /// Returns the outcome of a run that ends before it has asked anything.
    fn cancelled_outcome(&mut self, reason: CancelReason, entries: &[JournalEntry]) -> ReviewOutcome {
        self.buffer.push(RunEvent::CancelAsked { reason });
        let replayed = JournalState::from_events(entries.iter().map(|entry| &entry.event));
        ReviewOutcome { cancel: Some(reason), ..replayed.to_outcome(reason.status(), "it had asked nothing yet") }
    }

    /// Decides which kinds are lowered in this run, and records the decision; a later attempt takes it from the journal.
    fn decide_steering(&mut self, entries: &[JournalEntry]) -> Result<(), RunnerError> {
        if let Some(recorded) = recorded_steering(entries) {
            self.steered = recorded;
            return Ok(());
        }
        self.steered = self.services.steered_kinds(&self.record.reviewed_by.name)?;
        if !self.steered.is_empty() {
            self.buffer.push(RunEvent::Steered { kinds: self.steered.clone() });
        }
        Ok(())
    }

    /// Lowers the priority of a finding if its reviewer is almost always wrong about its kind.
    pub(in crate::runner) fn lower_misjudged(&self, finding: &mut Finding) {
        if let Some(steered) = self.steered.iter().find(|steered| steered.kind == finding.kind) {
            steered.lower(finding, &self.record.reviewed_by.name);
        }
    }

    /// Builds the plan. `reviewer` is `None` for a model, which does not review in units.
    fn build_plan(&self, change: &Changeset, reviewer: Option<&dyn Reviewer>) -> ReviewPlan {
        let keys = self.services.worker().hunk_keys(&self.record.reviewed_by.name, change);
        let files = change.files.iter().zip(keys).map(|(file, keys)| PlannedFile {
            path: file.path.clone(),
            hunks: file.hunks.iter().map(|hunk| hunk.new_range()).collect(),
            keys,
            added_lines: file.hunks.iter().fold(0, |sum: u32, hunk| sum.saturating_add(hunk.new_lines)),
        });
        let mut left_out = change.left_out.clone();
        // Files that were too large for the snapshot or unreadable. Only the request knows them.
        let known: HashSet<&str> = left_out.iter().map(|file| file.path.as_str()).collect();
        let unseen = self.record.outcome.coverage.left_out.iter().filter(|file| !known.contains(file.path.as_str()));
        let unseen: Vec<_> = unseen.cloned().collect();
        left_out.extend(unseen);
        ReviewPlan {
            files: files.collect(),
            left_out,
            unit_files: reviewer.map_or(1, Reviewer::files_per_unit),
            has_whole_unit: reviewer.is_some_and(Reviewer::has_cross_file_unit),
            carried: Vec::new(),
        }
    }

    fn call_reviewer(
        &mut self,
        reviewer: &mut dyn Reviewer,
        unit: &review::ReviewUnit,
        change: &Changeset,
    ) -> Result<UnitEvent, RunnerError> {
        if let Some(reason) = self.cancel_watch.check() {
            return Ok(UnitEvent::CancelAsked(reason));
        }
        let files: Vec<FileChange> = unit.files.iter().filter_map(|&index| change.files.get(index)).cloned().collect();
        let asked = &self.cancel_watch;
        let mut report = match reviewer.review(unit.kind, &files, &|| asked.check().is_some()) {
            Ok(report) => report,
            Err(ReviewerError::Cancelled) => {
                return Ok(UnitEvent::CancelAsked(self.cancel_watch.check().unwrap_or(CancelReason::UserStop)));
            }
            Err(ReviewerError::Failed { class, summary }) => {
                self.failure = Some((class, summary.clone()));
                return Ok(UnitEvent::Failed { class, summary });
            }
        };
        rewritten_code::mark_rewritten_code(&mut report.left_out, change);
        self.unknown_bytes += report.unindexed_bytes;
        for finding in &mut report.findings {
            self.leave_foreign_id(finding)?;
            self.stamp(finding)?;
            self.lower_misjudged(finding);
        }
        Ok(UnitEvent::Reported(report))
    }

    /// Gives a finding another id of its code if its own one belongs to another problem: one whose code stands elsewhere,
    /// or a defect of an imported report with other words, which keeps its words, its priority and its decision.
    pub(in crate::runner) fn leave_foreign_id(&mut self, finding: &mut Finding) -> Result<(), StoreError> {
        let view = Arc::clone(self.earlier_view()?);
        let services = self.services;
        let is_import =
            |run: RunId| services.store.run(&run).ok().flatten().is_some_and(|run| run.source == Source::Import);
        let is_foreign = |id: &FindingId| {
            let Some(row) = view.finding_index(id.as_str()).map(|index| view.finding(index)) else { return false };
            !finding.kind.is_smell() && row.title != finding.title && row.last_run.parse().is_ok_and(is_import)
        };
        let snapshot = &self.record.subject.snapshot_commit;
        let ground = StandingGround { repo: &services.repo, view: &view, snapshot };
        finding.finding_id = self.standing_code.choose_id(ground, finding, is_foreign);
        Ok(())
    }

    /// Returns the findings before this run.
    fn earlier_view(&mut self) -> Result<&Arc<StoreView>, StoreError> {
        Ok(match &mut self.earlier {
            Some(view) => view,
            none => none.insert(self.services.store.view()?),
        })
    }

    /// Sets the runs that reported a finding, its detail reference and its time.
    pub(in crate::runner) fn stamp(&mut self, finding: &mut Finding) -> Result<(), StoreError> {
        let view = Arc::clone(self.earlier_view()?);
        let run = &self.record.run_id;
        finding.first_run_id = view
            .finding_index(finding.finding_id.as_str())
            .and_then(|index| view.finding(index).first_run.parse().ok())
            .unwrap_or_else(|| run.clone());
        finding.last_run_id = run.clone();
        finding.detail_ref = format!("outputs/{run}.json#{}", finding.finding_id);
        finding.reported_at = self.services.ambient.now();
        Ok(())
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
    fn record_cost(&mut self, spent: &RunCost) -> Result<(), RunnerError> {
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

/// Checks for a cancellation of the run: looks at the size of a file, and reads the record only if the file has grown.
pub(in crate::runner) struct CancelWatch<'a> {
    services: &'a Services,
    run: RunId,
    file: PathBuf,
    looked: Cell<Option<Instant>>,
    size: Cell<u64>,
    answer: Cell<Option<CancelReason>>,
}

impl<'a> CancelWatch<'a> {
    fn new(services: &'a Services, run: RunId) -> Self {
        let file = services.store.runs_path();
        Self { services, run, file, looked: Cell::new(None), size: Cell::new(0), answer: Cell::new(None) }
    }

    pub(in crate::runner) fn check(&self) -> Option<CancelReason> {
        if self.answer.get().is_some()
            || self.looked.get().is_some_and(|looked| looked.elapsed() < CANCEL_POLL_INTERVAL)
        {
            return self.answer.get();
        }
        self.check_now()
    }

    /// Checks like [`CancelWatch::check`], however short ago the last check was.
    pub(in crate::runner) fn check_now(&self) -> Option<CancelReason> {
        self.looked.set(Some(Instant::now()));
        // The next check may be able to read the file.
        let Ok(size) = std::fs::metadata(&self.file).map(|metadata| metadata.len()) else { return None };
        if size != self.size.get()
            && let Ok(Some(record)) = self.services.store.run(&self.run)
        {
            self.size.set(size);
            self.answer.set(record.ending.cancel_reason);
        }
        self.answer.get()
    }
}
