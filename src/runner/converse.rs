//! Executes the effects of a conversation with a model: asks it, runs its tools, holds its reports against the
//! snapshot.
//!
//! Invariants: an answer is in the journal, synced, before anything is made of it; what an earlier attempt paid for is
//! taken from the journal and never asked for again; nothing is asked while the run is paused.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::examine::Bench;
use super::indexing::{Indexing, Ready};
use super::model::{Opened, Prepared};
use super::surround::{Wish, in_short};
use super::work::{Asked, Worker};
use super::{Runner, RunnerError, settle};
use crate::config::ReviewerKind;
use crate::context::index::{Index, Reach, Refreshed};
use crate::context::tools::{self, Toolbox};
use crate::domain::{CancelReason, ChatRequest, ErrorClass, Finding, Reported, Response, RunEvent, ToolCall};
use crate::git::Change;
use crate::provider::chat::{Progress, Watch};
use crate::review::dialog::{Dialog, Effect, Event, Recorded, Task, ToolAnswer};
use crate::review::{Examined, Outcome, Plan, Replayed};
use crate::store::{Paid, PulseState, PulseWriter};

/// How often a paused worker looks whether it may go on.
const LOOK: Duration = Duration::from_millis(100);

/// What a conversation is led with.
struct Talk {
    opened: Opened,
    tools: Toolbox,
    bench: Bench,
    pulse: PulseWriter,
    /// What the tools look things up in, while it is being made.
    indexing: Option<Indexing>,
}

impl Worker<'_> {
    /// Reviews by talking to the run's model.
    pub(super) fn converse(
        &mut self,
        change: &Change,
        plan: Plan,
        known: Vec<Finding>,
    ) -> Result<Outcome, RunnerError> {
        self.flush()?;
        let entries = self.runner.store.read_journal(&self.record.run_id)?;
        let events = || entries.iter().map(|entry| &entry.event);
        if !plan.files.is_empty() && plan.open().is_empty() {
            return self.without_a_word(Task::nothing_to_send(plan, known), Recorded::of(events()));
        }
        let opened = match self.runner.open_model(&self.record.reviewer, &self.record, &|| self.asked.look().is_some())
        {
            Ok(opened) => opened,
            Err(RunnerError::Reviewer(error)) if error.cancelled => {
                let reason = self.asked.look().unwrap_or(CancelReason::UserStop);
                self.buffer.push(RunEvent::CancelAsked { reason });
                let outcome = Replayed::of(events()).outcome(reason.status(), "it had asked nothing yet");
                return Ok(Outcome { cancel: Some(reason), ..outcome });
            }
            Err(RunnerError::Reviewer(error)) => {
                let (class, summary) = (error.class, error.summary);
                self.buffer.push(RunEvent::Failed { class, summary: summary.clone() });
                return Ok(settle::failed(&Replayed::of(events()), class, summary));
            }
            Err(error) => return Err(error),
        };
        let mut tools = self.runner.toolbox(&self.record, change, opened.mask)?;
        let commit = self.record.snapshot_commit.clone();
        // Programs look around by themselves.
        let is_indexed = self.runner.model_settings(&opened.name)?.kind != ReviewerKind::Command;
        // Once it is cancelled, the first look before the first turn ends the run.
        let asked = &self.asked;
        let cancelled = || asked.look().is_some();
        let ready = if is_indexed { self.runner.ready_index(&commit, &cancelled) } else { Ready::default() };
        let who = self.runner.who(&opened)?;
        let asked = (&ready, &Wish::default(), &cancelled as &dyn Fn() -> bool);
        let Prepared { task, packed } = self.runner.task(who, &self.record, change, (plan, known), asked)?;
        let Ready { index, mut indexing, repaired, .. } = ready;
        self.buffer.extend(repaired.map(|text| RunEvent::Note { text }));
        if !cancelled() && !events().any(|event| matches!(event, RunEvent::Surrounded { .. })) {
            self.buffer.push(RunEvent::Surrounded { context: Box::new(in_short(&packed)) });
        }
        match index.filter(|index| index.reach() == Reach::Whole) {
            Some(index) => tools.look_up_in(index),
            None if is_indexed && indexing.is_none() => indexing = self.runner.begin_indexing(&commit),
            None => {}
        }
        let bench = Bench::new(self.runner, &self.record, change)?;
        let pulse = self.runner.store.pulse_writer(&self.record.run_id, self.now());
        let mut talk = Talk { opened, tools, bench, pulse, indexing };
        let mut recorded = Recorded::of(events());
        let mut dialog = Dialog::new();
        let mut effects = VecDeque::from(dialog.handle(Event::Started(Box::new(task))));
        let mut outcome = loop {
            let event = match effects.pop_front() {
                None => return Err(RunnerError::Stuck { run: self.record.run_id.clone() }),
                Some(Effect::Append(event)) => {
                    if recorded.is_new(&event) {
                        self.buffer.push(event);
                    }
                    continue;
                }
                Some(Effect::Ask { turn, request }) => match recorded.answer() {
                    Some(event) => event,
                    None => {
                        self.keep_account(&dialog, &mut talk)?;
                        match self.may_not_ask(&dialog, &mut talk)? {
                            Some(event) => event,
                            None => self.ask(turn, &request, &mut talk)?,
                        }
                    }
                },
                Some(Effect::Examine { reports, .. }) => Event::Examined(self.examine(reports, &mut talk, &recorded)?),
                Some(Effect::RunTools { calls, .. }) => {
                    if let Some(refreshed) = talk.indexing.as_mut().and_then(Indexing::take) {
                        talk.tools.look_up_in(self.indexed(refreshed));
                    }
                    self.flush()?;
                    talk.pulse.enter(self.now(), PulseState::Tools);
                    self.run_tools(&calls, &mut talk.tools)
                }
                Some(Effect::Finish(outcome)) => break *outcome,
            };
            effects.extend(dialog.handle(event));
        };
        if let Some(refreshed) = talk.indexing.take().and_then(Indexing::end) {
            self.indexed(refreshed);
        }
        self.keep_account(&dialog, &mut talk)?;
        // Those of this room and of earlier attempts as well.
        let entries = self.runner.store.read_journal(&self.record.run_id)?;
        outcome.notes = Replayed::of(entries.iter().map(|entry| &entry.event)).notes;
        Ok(outcome)
    }

    /// An index that is ready; what was wrong with it is said.
    fn indexed(&mut self, refreshed: Refreshed) -> Index {
        self.buffer.extend(refreshed.repaired.map(|text| RunEvent::Note { text }));
        refreshed.index
    }

    /// A review that needs no model, because earlier ones have looked at everything.
    fn without_a_word(&mut self, task: Task, mut recorded: Recorded) -> Result<Outcome, RunnerError> {
        for effect in Dialog::new().handle(Event::Started(Box::new(task))) {
            match effect {
                Effect::Append(event) if recorded.is_new(&event) => self.buffer.push(event),
                Effect::Finish(outcome) => return Ok(*outcome),
                _ => {}
            }
        }
        Err(RunnerError::Stuck { run: self.record.run_id.clone() })
    }

    /// Writes the journal out, and into the record what the run has cost so far.
    fn keep_account(&mut self, dialog: &Dialog, talk: &mut Talk) -> Result<(), RunnerError> {
        self.flush()?;
        let spent = dialog.spent();
        talk.pulse.spent(self.now(), spent.cost, spent.usage);
        if self.record.tokens != spent.usage {
            let now = self.now();
            self.record = self.runner.store.update_run(&self.record.run_id, now, |record| {
                settle::account(spent, record);
            })?;
        }
        Ok(())
    }

    /// Waits while the run is paused; answers what keeps it from asking, if anything does.
    fn may_not_ask(&mut self, dialog: &Dialog, talk: &mut Talk) -> Result<Option<Event>, RunnerError> {
        let run = self.record.run_id.clone();
        if self.runner.is_paused(&run)? {
            self.buffer.push(RunEvent::Paused);
            self.flush()?;
            talk.pulse.enter(self.now(), PulseState::Paused);
            while self.asked.look().is_none() && self.runner.is_paused(&run)? {
                std::thread::sleep(LOOK);
            }
            self.buffer.push(RunEvent::Resumed);
        }
        if let Some(reason) = self.asked.look() {
            return Ok(Some(Event::CancelAsked(reason)));
        }
        let free = talk.opened.facts.is_free();
        let day = self.runner.day_is_spent()?.filter(|_| !free);
        Ok(day.or_else(|| dialog.over_budget()).map(Event::Unaffordable))
    }

    /// One paid answer, from the run's reviewer or from whoever takes over.
    fn ask(&mut self, turn: u32, request: &ChatRequest, talk: &mut Talk) -> Result<Event, RunnerError> {
        loop {
            talk.pulse.turn(self.now(), turn);
            let mut watching = Watching {
                asked: &self.asked,
                runner: self.runner,
                pulse: &mut talk.pulse,
                began: Instant::now(),
                first: None,
                waits: Vec::new(),
            };
            let answer = talk.opened.chat.respond(request, &mut watching);
            // 0 says that no byte was seen.
            let first_ms = watching.first.map_or(0, |first| (first.as_millis() as u64).max(1));
            let took_ms = watching.began.elapsed().as_millis() as u64;
            let waits = watching.waits;
            self.buffer.extend(waits.into_iter().map(|(reason, wait_ms)| RunEvent::Waiting { turn, reason, wait_ms }));
            let error = match answer {
                Ok(response) => return Ok(self.paid(turn, response, first_ms, took_ms, &talk.opened)),
                Err(error) if error.cancelled => {
                    return Ok(Event::CancelAsked(self.asked.look().unwrap_or(CancelReason::UserStop)));
                }
                Err(error) => error,
            };
            // A window that is too long is the engine's to shrink.
            let next = talk.opened.fallback.clone().filter(|_| error.class != ErrorClass::ContextTooLong);
            let Some(next) = next else {
                return Ok(Event::Failed { class: error.class, summary: error.summary });
            };
            self.buffer.push(RunEvent::Note { text: format!("turn {turn}: {}; {next} takes over", error.summary) });
            self.flush()?;
            match self.runner.open_model(&next, &self.record, &|| self.asked.look().is_some()) {
                Ok(opened) => {
                    talk.opened = opened;
                    let identity = self.runner.identity(Some(&next))?;
                    self.buffer.push(RunEvent::TookOver {
                        turn,
                        reviewer: identity.reviewer,
                        model: identity.model,
                        reasoning_effort: identity.effort,
                    });
                    self.flush()?;
                }
                Err(RunnerError::Reviewer(second)) => {
                    let summary = format!("{}; {next} cannot take over: {}", error.summary, second.summary);
                    return Ok(Event::Failed { class: error.class, summary });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What an answer cost, written down before the next one is paid for.
    fn paid(&self, turn: u32, response: Response, first_ms: u64, took_ms: u64, opened: &Opened) -> Event {
        let cost = opened.cost(&response.usage);
        let paid = Paid {
            at: self.now(),
            run_id: self.record.run_id.clone(),
            turn,
            reviewer: opened.name.clone(),
            tokens: response.usage.total(),
            cost,
        };
        let free = opened.facts.is_free();
        if !free && let Err(error) = self.runner.spending().append(&paid) {
            // The run's own account still has it.
            tracing::warn!(run = %self.record.run_id, %error, "what was paid is missing from the account of the day");
        }
        Event::Answered { response: Box::new(response), first_ms, took_ms, cost: Some(cost) }
    }

    fn run_tools(&self, calls: &[ToolCall], tools: &mut Toolbox) -> Event {
        let cancelled = || self.asked.look().is_some();
        let answers = calls.iter().map(|call| {
            let tools::ToolAnswer { text, outcome, summary, shown } = tools.run(call, &cancelled);
            ToolAnswer { text, outcome, summary, shown }
        });
        let answers = answers.collect();
        match self.asked.look() {
            Some(reason) => Event::CancelAsked(reason),
            None => Event::ToolsAnswered(answers),
        }
    }

    /// Holds reports against the snapshot. What was recorded before keeps the moment at which it was.
    fn examine(
        &mut self,
        reports: Vec<Reported>,
        talk: &mut Talk,
        recorded: &Recorded,
    ) -> Result<Vec<Examined>, RunnerError> {
        self.flush()?;
        let mut examined: Vec<Examined> = reports.iter().map(|report| talk.bench.examine(report)).collect();
        for examined in &mut examined {
            if let Examined::Finding { finding, .. } = examined {
                self.stamp(finding)?;
                if let Some(earlier) = recorded.finding(&finding.finding_id) {
                    finding.reported_at = earlier.reported_at;
                }
            }
        }
        Ok(examined)
    }
}

/// Watches one answer come in.
struct Watching<'a> {
    asked: &'a Asked<'a>,
    runner: &'a Runner,
    pulse: &'a mut PulseWriter,
    began: Instant,
    first: Option<Duration>,
    /// Reasons and milliseconds.
    waits: Vec<(String, u64)>,
}

impl Watch for Watching<'_> {
    fn progress(&mut self, progress: Progress) {
        let now = self.runner.ambient.now();
        match progress {
            Progress::Sent => self.pulse.enter(now, PulseState::Waiting),
            Progress::Bytes(bytes) => {
                self.first.get_or_insert_with(|| self.began.elapsed());
                self.pulse.received(now, bytes);
            }
            Progress::Text(text) => self.pulse.text(now, &text),
            Progress::Waiting { reason, wait_ms } => {
                let until = now.checked_add(Duration::from_millis(wait_ms)).unwrap_or(now);
                self.pulse.enter(now, PulseState::BackingOff { reason: reason.clone(), until });
                self.waits.push((reason, wait_ms));
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.asked.look().is_some()
    }
}
