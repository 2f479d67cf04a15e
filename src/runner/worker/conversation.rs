//! Executes the effects of a conversation with a model: requests answers, runs tools, validates reports against the
//! snapshot.
//!
//! - An answer is in the journal and synced before it is processed.
//! - An answer that an earlier attempt paid for comes from the journal and is never requested again.
//! - No request is sent while the run is paused.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::config::ReviewerKind;
use crate::context::read_ahead::ContextSources;
use crate::context::tools::{self, Toolbox};
use crate::domain::{
    CancelReason, ChatRequest, ChatResponse, ErrorClass, Finding, ReportedProblem, RunEvent, ToolCall, Usage,
};
use crate::git::Changeset;
use crate::index::{Index, IndexCompleteness, RefreshReport};
use crate::masking::mask_event_words;
use crate::review::conversation::{
    ConversationEffect, ConversationEngine, ConversationEvent, ConversationToolResult, ResumeLog, ReviewTask,
};
use crate::review::{JournalState, ReportValidation, ReviewOutcome, ReviewPlan};
use crate::reviewers::chat::{ChatObserver, ChatProgress};
use crate::runner::indexing::{BackgroundIndexing, BackgroundReading, IndexReadiness, IndexingUrgency};
use crate::runner::prompt::code_context::{ContextTaskInput, context_sources, summarize_packed};
use crate::runner::reviewer_access::model_reviewer::{OpenedReviewer, PreparedTask, TaskReviewer};
use crate::runner::reviewer_access::usage_estimate::fill_missing_usage;
use crate::runner::worker::panel_cost::RequestCost;
use crate::runner::worker::report_validation::ReportValidator;
use crate::runner::worker::shared_reading::SharedReading;
use crate::runner::worker::team_claim::ClaimedRequest;
use crate::runner::worker::{CancelWatch, RunWorker};
use crate::runner::{RunnerError, Services, conclude};
use crate::store::{HeartbeatState, HeartbeatWriter, PaidAnswer};

/// Interval at which a paused worker checks whether it may go on.
pub(super) const PAUSE_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The resources of a conversation.
struct ConversationResources {
    opened: OpenedReviewer,
    tools: Toolbox,
    bench: ReportValidator,
    pulse: HeartbeatWriter,
    background: BackgroundReaders,
}

/// Threads that read for later turns and contexts.
struct BackgroundReaders {
    /// Work that waits until the first request is sent: the processor is needed for that first.
    later: DeferredReading,
    /// The index for the tools, while it is being built.
    indexing: Option<BackgroundIndexing>,
    /// History and documents for the next context, while they are being read.
    reading: Option<BackgroundReading>,
}

/// Sources that are read in the background.
#[derive(Default)]
struct DeferredReading {
    /// Commit whose tree is indexed.
    tree: Option<String>,
    /// Sources that are read for the next context.
    sources: Option<ContextSources>,
}

impl BackgroundReaders {
    /// Starts the work that waited for the first request.
    fn start(&mut self, services: &Services) {
        let DeferredReading { tree, sources } = std::mem::take(&mut self.later);
        if let Some(tree) = tree {
            self.indexing = services.indexer().start_indexing(&tree, IndexingUrgency::ForLater);
        }
        if let Some(sources) = sources {
            self.reading = services.indexer().start_reading_ahead(&sources);
        }
    }
}

impl RunWorker<'_> {
    /// Reviews the change in a conversation with the run's model.
    pub(in crate::runner) fn run_conversation(
        &mut self,
        change: &Changeset,
        plan: ReviewPlan,
        known: Vec<Finding>,
        pulse: HeartbeatWriter,
    ) -> Result<ReviewOutcome, RunnerError> {
        self.flush()?;
        let entries = self.services.store.read_journal(&self.record.run_id)?;
        let events = || entries.iter().map(|entry| &entry.event);
        if plan.open_files().is_empty() {
            return self
                .conclude_without_model(ReviewTask::nothing_to_send(plan, known), ResumeLog::from_events(events()));
        }
        let opened = match self
            .services
            .reviewers()
            .open_model(&self.record.reviewed_by.name, &self.record, &|| self.cancel_watch.check().is_some())
        {
            Ok(opened) => opened,
            Err(RunnerError::Reviewer(error)) if error.cancelled => {
                let reason = self.cancel_watch.check().unwrap_or(CancelReason::UserStop);
                return Ok(self.cancelled_outcome(reason, &entries));
            }
            Err(RunnerError::Reviewer(error)) => {
                let (class, summary) = (error.class, error.summary);
                self.buffer.push(RunEvent::Failed { class, summary: summary.clone() });
                return Ok(conclude::failed_outcome(&JournalState::from_events(events()), class, summary));
            }
            Err(error) => return Err(error),
        };
        let mut tools = self.services.prompts().build_toolbox(&self.record, change, opened.mask)?;
        let commit = self.record.subject.snapshot_commit.clone();
        // Command-line agents search the code by themselves.
        let is_indexed = self.services.reviewers().model_settings(&opened.name)?.kind != ReviewerKind::Command;
        // If the run is cancelled now, the check before the first turn ends it.
        let asked = &self.cancel_watch;
        let cancelled = || asked.check().is_some();
        let panel = self.record.links.member_of.as_ref().filter(|_| is_indexed);
        let indexer = self.services.indexer();
        let mut reading = SharedReading::Alone;
        let prepare_index = || {
            if !is_indexed {
                return IndexReadiness::default();
            }
            reading = indexer.share_reading(panel, &cancelled);
            let mut ready = indexer.prepare_index(&commit, &cancelled);
            if matches!(reading, SharedReading::Done) {
                ready.read_caches_only();
            }
            ready
        };
        let who = TaskReviewer { misjudged: &self.steered, ..self.services.reviewers().task_reviewer(&opened)? };
        let wish = ContextTaskInput::for_review(&self.services.settings.context);
        let how = (prepare_index, &wish, &cancelled as &dyn Fn() -> bool);
        let PreparedTask { task, packed, ready } =
            self.services.prompts().prepare_task(who, &self.record, change, (plan, known), how)?;
        // What a cancelled member has read is not all that there was time for.
        if !cancelled() {
            reading.finish();
        }
        let IndexReadiness { index, indexing, repaired, .. } = ready;
        self.buffer.extend(repaired.map(|text| RunEvent::Note { text }));
        if !cancelled() && !events().any(|event| matches!(event, RunEvent::Surrounded { .. })) {
            self.buffer.extend(packed.partial.notes().into_iter().map(|text| RunEvent::Note { text }));
            self.buffer.push(RunEvent::Surrounded { context: Box::new(summarize_packed(&packed)) });
        }
        let mut later = DeferredReading::default();
        match index.filter(|index| index.completeness() == IndexCompleteness::Whole) {
            Some(index) => tools.set_index(index),
            None if is_indexed && indexing.is_none() => later.tree = Some(commit.clone()),
            None => {}
        }
        let sources = (!packed.partial.is_whole()).then(|| context_sources(&self.record));
        later.sources.clone_from(&sources);
        let bench = ReportValidator::new(self.services, &self.record, change)?;
        let background = BackgroundReaders { later, indexing, reading: None };
        let mut talk = ConversationResources { opened, tools, bench, pulse, background };
        let mut recorded = ResumeLog::from_events(events());
        let mut dialog = ConversationEngine::new();
        let mut outcome = self.run_effects(&mut dialog, task, &mut recorded, &mut talk)?;
        if let Some(refreshed) = talk.background.indexing.take().and_then(BackgroundIndexing::stop) {
            self.accept_index(refreshed);
        }
        let is_read = talk.background.reading.take().is_some_and(BackgroundReading::stop);
        self.unread = sources.filter(|_| !is_read);
        self.record_spending(&dialog, &mut talk)?;
        // Includes the notes of the runner and of earlier attempts.
        outcome.notes = self.services.replay_journal(&self.record.run_id)?.notes;
        Ok(outcome)
    }

    /// Carries out the engine's effects, recorded answers first, until the engine finishes the conversation.
    fn run_effects(
        &mut self,
        dialog: &mut ConversationEngine,
        task: ReviewTask,
        recorded: &mut ResumeLog,
        talk: &mut ConversationResources,
    ) -> Result<ReviewOutcome, RunnerError> {
        let mut effects = VecDeque::from(dialog.handle(ConversationEvent::Started(Box::new(task))));
        loop {
            let event = match effects.pop_front() {
                None => return Err(RunnerError::EngineStuck { run: self.record.run_id.clone() }),
                Some(ConversationEffect::Append(mut event)) => {
                    mask_event_words(&mut event);
                    if recorded.is_new(&event) {
                        self.buffer.push(event);
                    }
                    continue;
                }
                Some(ConversationEffect::Ask { turn, request }) => match recorded.next_answer() {
                    Some(event) => event,
                    None => {
                        self.record_spending(dialog, talk)?;
                        self.ask_model(dialog, (turn, &request), talk)?
                    }
                },
                Some(ConversationEffect::Validate { reports, .. }) => {
                    ConversationEvent::Validated(self.validate_reports(reports, talk, recorded)?)
                }
                Some(ConversationEffect::RunTools { calls, .. }) => {
                    if let Some(refreshed) =
                        talk.background.indexing.as_mut().and_then(BackgroundIndexing::take_finished)
                    {
                        talk.tools.set_index(self.accept_index(refreshed));
                    }
                    self.flush()?;
                    talk.pulse.set_state(self.now(), HeartbeatState::Tools);
                    self.run_tools(&calls, &mut talk.tools)
                }
                Some(ConversationEffect::Finish(outcome)) => return Ok(*outcome),
            };
            effects.extend(dialog.handle(event));
        }
    }

    /// Takes a finished index and records the note about its repair.
    fn accept_index(&mut self, refreshed: RefreshReport) -> Index {
        self.buffer.extend(refreshed.repaired.map(|text| RunEvent::Note { text }));
        refreshed.index
    }

    /// Concludes a review that needs no model, because earlier runs have reviewed everything.
    fn conclude_without_model(
        &mut self,
        task: ReviewTask,
        mut recorded: ResumeLog,
    ) -> Result<ReviewOutcome, RunnerError> {
        for effect in ConversationEngine::new().handle(ConversationEvent::Started(Box::new(task))) {
            match effect {
                ConversationEffect::Append(event) if recorded.is_new(&event) => self.buffer.push(event),
                ConversationEffect::Finish(outcome) => return Ok(*outcome),
                _ => {}
            }
        }
        Err(RunnerError::EngineStuck { run: self.record.run_id.clone() })
    }

    /// Writes the journal, and the cost of the run so far into its record.
    fn record_spending(
        &mut self,
        dialog: &ConversationEngine,
        talk: &mut ConversationResources,
    ) -> Result<(), RunnerError> {
        self.flush()?;
        let spent = dialog.spent();
        talk.pulse.set_spending(self.now(), spent.cost, spent.usage);
        if self.record.usage.tokens != spent.usage {
            self.record_cost(spent)?;
        }
        Ok(())
    }

    /// Waits while the run is paused. Returns the event that forbids the next request, if any: a cancellation or a
    /// used-up budget.
    fn check_before_asking(
        &mut self,
        dialog: &ConversationEngine,
        (turn, request): (u32, &ChatRequest),
        talk: &mut ConversationResources,
    ) -> Result<Option<ConversationEvent>, RunnerError> {
        // A worker that died may have left a reservation.
        self.release_reserved_cost()?;
        if let Some(reason) = self.wait_until_allowed(&mut talk.pulse)? {
            return Ok(Some(ConversationEvent::CancelAsked(reason)));
        }
        // The commit may have been rewritten since the last request, without any other process that noticed.
        let needless = self.services.launcher().settle_needless_or_log();
        let is_needless = needless.iter().any(|settled| settled.run == self.record.run_id);
        let reason = if is_needless { self.cancel_watch.check_now() } else { self.cancel_watch.check() };
        if let Some(reason) = reason {
            return Ok(Some(ConversationEvent::CancelAsked(reason)));
        }
        let free = talk.opened.facts.is_free();
        let day = self.services.reviewers().check_daily_budget()?.filter(|_| !free);
        if let Some(problem) = day.or_else(|| dialog.budget_problem()) {
            return Ok(Some(ConversationEvent::BudgetExceeded(problem)));
        }
        let Some(next) = dialog.estimate_request_cost().filter(|_| !free) else { return Ok(None) };
        let answer = talk.opened.cost(&Usage { output: request.max_output, ..Usage::default() });
        let next = RequestCost { input: next, most: next + answer };
        self.reserve_panel_cost(turn, next, dialog.spent().cost, &mut talk.pulse)
    }

    /// Requests one answer from the run's reviewer, or from its fallback after a failure. Each of these requests is checked
    /// before it is sent, with the price of its reviewer. Returns the answer, or the event that takes its place.
    fn ask_model(
        &mut self,
        dialog: &mut ConversationEngine,
        (turn, request): (u32, &ChatRequest),
        talk: &mut ConversationResources,
    ) -> Result<ConversationEvent, RunnerError> {
        loop {
            if let Some(event) = self.check_before_asking(dialog, (turn, request), talk)? {
                return Ok(event);
            }
            talk.pulse.begin_turn(self.now(), turn);
            let mut watching = AnswerProgress {
                asked: &self.cancel_watch,
                services: self.services,
                pulse: &mut talk.pulse,
                background: &mut talk.background,
                began: Instant::now(),
                first: None,
                waits: Vec::new(),
                claimed: self.begin_request(&talk.opened.name),
            };
            let answer = talk.opened.chat.respond(request, &mut watching);
            // 0 means that no byte arrived.
            let first_ms = watching.first.map_or(0, |first| (first.as_millis() as u64).max(1));
            let took_ms = watching.began.elapsed().as_millis() as u64;
            let was_stopped = watching.claimed.was_stopped();
            let waits = watching.waits;
            talk.background.start(self.services);
            self.buffer.extend(waits.into_iter().map(|(reason, wait_ms)| RunEvent::Waiting { turn, reason, wait_ms }));
            let error = match answer {
                Ok(response) => {
                    return Ok(self.record_payment(turn, response, (request, first_ms, took_ms), &talk.opened));
                }
                Err(error) if error.cancelled => match self.cancel_watch.check() {
                    // Another machine may have reviewed the same while the request waited.
                    None if was_stopped => continue,
                    reason => return Ok(ConversationEvent::CancelAsked(reason.unwrap_or(CancelReason::UserStop))),
                },
                Err(error) => error,
            };
            self.release_reserved_cost()?;
            if error.class == ErrorClass::TeamBudget
                && let Some(problem) = self.services.team().describe_budget(&error.summary)
            {
                return Ok(ConversationEvent::BudgetExceeded(problem));
            }
            // The engine shrinks a window that is too long.
            let next = talk.opened.fallback.clone().filter(|_| error.class != ErrorClass::ContextTooLong);
            let Some(next) = next else {
                return Ok(ConversationEvent::Failed { class: error.class, summary: error.summary });
            };
            if self.is_asked_by_own_panel(&next) {
                let summary =
                    format!("{}; {next} does not take over: it is a member of the panel itself", error.summary);
                return Ok(ConversationEvent::Failed { class: error.class, summary });
            }
            self.buffer.push(RunEvent::Note { text: format!("turn {turn}: {}; {next} takes over", error.summary) });
            self.flush()?;
            match self.services.reviewers().open_model(&next, &self.record, &|| self.cancel_watch.check().is_some()) {
                Ok(opened) => {
                    talk.opened = opened;
                    let identity = self.services.reviewers().resolve_identity(Some(&next))?;
                    self.buffer.push(RunEvent::TookOver {
                        turn,
                        reviewer: identity.reviewer,
                        model: identity.model,
                        reasoning_effort: identity.effort,
                    });
                    self.flush()?;
                    dialog.set_input_price(talk.opened.input_price());
                }
                Err(RunnerError::Reviewer(second)) => {
                    let summary = format!("{}; {next} cannot take over: {}", error.summary, second.summary);
                    return Ok(ConversationEvent::Failed { class: error.class, summary });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns true if the panel of this run asks the reviewer itself: a model that answered for two members would agree
    /// with itself.
    fn is_asked_by_own_panel(&self, reviewer: &str) -> bool {
        let panel = self.services.find_panel_of(&self.record);
        panel.is_some_and(|(_, panel)| panel.members.iter().any(|member| member.reviewer == reviewer))
    }

    /// Writes the cost of an answer into the daily account, before the next answer is paid for.
    fn record_payment(
        &self,
        turn: u32,
        response: ChatResponse,
        (request, first_ms, took_ms): (&ChatRequest, u64, u64),
        opened: &OpenedReviewer,
    ) -> ConversationEvent {
        let (response, cost) = self.account_answer(turn, response, request, opened);
        ConversationEvent::Answered { response: Box::new(response), first_ms, took_ms, cost: Some(cost) }
    }

    /// Fills in the usage of an answer where the provider reports none, and writes its cost into the daily account.
    /// Returns the answer with its cost in US dollars.
    pub(super) fn account_answer(
        &self,
        turn: u32,
        mut response: ChatResponse,
        request: &ChatRequest,
        opened: &OpenedReviewer,
    ) -> (ChatResponse, f64) {
        fill_missing_usage(request, &mut response, opened.facts.encoding);
        let cost = opened.cost(&response.usage);
        let is_known = opened.facts.price.is_some() && self.price_known.get().unwrap_or(true);
        self.price_known.set(Some(is_known));
        let paid = PaidAnswer {
            at: self.now(),
            run_id: self.record.run_id.clone(),
            turn,
            reviewer: opened.name.clone(),
            tokens: response.usage.total(),
            cost,
            estimated: response.usage.estimated,
        };
        let free = opened.facts.is_free();
        if !free && let Err(error) = self.services.reviewers().spending().append(&paid) {
            // The run's own record still contains the cost.
            tracing::warn!(run = %self.record.run_id, %error, "what was paid is missing from the account of the day");
        }
        (response, cost)
    }

    fn run_tools(&self, calls: &[ToolCall], tools: &mut Toolbox) -> ConversationEvent {
        let cancelled = || self.cancel_watch.check().is_some();
        let answers = calls.iter().map(|call| {
            let tools::ToolResult { text, outcome, summary, shown } = tools.run(call, &cancelled);
            ConversationToolResult { text, outcome, summary, shown }
        });
        let answers = answers.collect();
        match self.cancel_watch.check() {
            Some(reason) => ConversationEvent::CancelAsked(reason),
            None => ConversationEvent::ToolsAnswered(answers),
        }
    }

    /// Validates reports against the snapshot. A finding that was recorded before keeps its time.
    fn validate_reports(
        &mut self,
        reports: Vec<ReportedProblem>,
        talk: &mut ConversationResources,
        recorded: &ResumeLog,
    ) -> Result<Vec<ReportValidation>, RunnerError> {
        self.flush()?;
        talk.bench.begin_answer();
        let mut examined: Vec<ReportValidation> = reports.iter().map(|report| talk.bench.validate(report)).collect();
        for examined in &mut examined {
            if let ReportValidation::Finding { finding, .. } = examined {
                self.stamp(finding)?;
                // A fallback has a record of its own.
                if talk.opened.name == self.record.reviewed_by.name {
                    self.lower_misjudged(finding);
                }
                if let Some(earlier) = recorded.finding(&finding.finding_id) {
                    finding.reported_at = earlier.reported_at;
                }
            }
        }
        Ok(examined)
    }
}

/// The observer of one answer.
struct AnswerProgress<'a> {
    asked: &'a CancelWatch<'a>,
    services: &'a Services,
    pulse: &'a mut HeartbeatWriter,
    background: &'a mut BackgroundReaders,
    began: Instant,
    first: Option<Duration>,
    /// Reasons and milliseconds of the waits.
    waits: Vec<(String, u64)>,
    claimed: ClaimedRequest<'a>,
}

impl ChatObserver for AnswerProgress<'_> {
    fn on_progress(&mut self, progress: ChatProgress) {
        let now = self.services.ambient.now();
        self.claimed.add(&progress);
        match progress {
            ChatProgress::Sent => {
                self.pulse.set_state(now, HeartbeatState::Waiting);
                self.background.start(self.services);
            }
            ChatProgress::Bytes(bytes) => {
                self.first.get_or_insert_with(|| self.began.elapsed());
                self.pulse.add_received_bytes(now, bytes);
            }
            ChatProgress::Text(text) => self.pulse.append_text(now, &text),
            ChatProgress::Lost => {}
            ChatProgress::Waiting { reason, wait_ms } => {
                let until = now.checked_add(Duration::from_millis(wait_ms)).unwrap_or(now);
                self.pulse.set_state(now, HeartbeatState::BackingOff { reason: reason.clone(), until });
                self.waits.push((reason, wait_ms));
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.asked.check().is_some() || self.claimed.may_be_needless()
    }
}
