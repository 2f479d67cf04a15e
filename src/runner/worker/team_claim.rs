//! Waits for an equivalent review on another machine of the team, and takes its result.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::ReviewerKind;
use crate::domain::text::sanitize_line;
use crate::domain::{CancelReason, Panel, RunEvent, RunId, RunRecord};
use crate::reviewers::chat::{AnswerTracker, ChatProgress};
use crate::runner::cancellable_sleep::{CANCEL_INTERVAL, sleep_unless_cancelled};
use crate::runner::team::SyncError;
use crate::runner::team::claims::{ClaimAttempt, ReviewClaim};
use crate::runner::team::held_claim::{ClaimStanding, HeldClaim};
use crate::runner::worker::RunWorker;
use crate::runner::worker::conversation::PAUSE_POLL_INTERVAL;
use crate::runner::{BUILTIN_REVIEWER, RunnerError};
use crate::store::{HeartbeatState, HeartbeatWriter};
use crate::team::TeamError;
use crate::team::postgres::{CLAIM_SECONDS, ClaimHolder, Database, DatabaseError, Listener};

/// Longest time between two attempts to get a claim, should news be missed.
const MAX_CLAIM_PAUSE: Duration = Duration::from_secs(10);
/// Time after which a worker that waits for another machine goes on alone, because the database cannot be reached: then the
/// claim of the other machine has ended, too.
const MAX_LOST_CONNECTION: Duration = Duration::from_secs(CLAIM_SECONDS as u64);
/// Time for which a worker that has its claim tries again to receive what others have sent, when the connection is lost in between.
const MAX_FETCH_TIME: Duration = Duration::from_secs(10);
/// Pause before the next attempt to reach the database.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Error of an attempt to get a claim.
enum ClaimError {
    /// The database cannot be asked.
    Database(DatabaseError),
    Runner(RunnerError),
}

impl From<DatabaseError> for ClaimError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<RunnerError> for ClaimError {
    fn from(error: RunnerError) -> Self {
        Self::Runner(error)
    }
}

/// Memory of the attempts to get a claim.
#[derive(Default)]
struct ClaimWait {
    /// Last time at which the database said that another machine has the claim; `None` before the first time.
    seen: Option<Instant>,
    /// Time at which the run got the claim; `None` if it did not.
    taken: Option<Instant>,
}

impl ClaimWait {
    /// Returns true if the database may still come back before the run goes on without it. The connection that was lost for a moment
    /// is no reason to pay for what another machine reviews or has sent.
    fn is_worth_trying(&self) -> bool {
        self.seen.is_some_and(|seen| seen.elapsed() < MAX_LOST_CONNECTION)
            || self.taken.is_some_and(|taken| taken.elapsed() < MAX_FETCH_TIME)
    }
}

/// Request to a reviewer, as far as it depends on the claim of its run.
pub(super) struct ClaimedRequest<'a> {
    /// Claim of the review in the team's database.
    claim: Option<&'a HeldClaim>,
    answer: AnswerTracker,
    /// True once the request was found to be perhaps needless.
    is_stopped: Cell<bool>,
}

impl<'a> ClaimedRequest<'a> {
    fn new(claim: Option<&'a HeldClaim>, is_agent: bool) -> Self {
        Self { claim, answer: AnswerTracker::new(is_agent), is_stopped: Cell::new(false) }
    }

    /// Takes the next progress of the request into account.
    pub(super) fn add(&mut self, progress: &ChatProgress) {
        self.answer.add(progress);
    }

    /// Returns true if another machine may have reviewed the same while the request waits. An answer that is on its way is paid for,
    /// whoever has the claim now.
    pub(super) fn may_be_needless(&self) -> bool {
        let is_needless = !self.answer.is_under_way() && self.claim.is_some_and(HeldClaim::is_in_doubt);
        self.is_stopped.set(self.is_stopped.get() || is_needless);
        is_needless
    }

    /// Returns true if [`ClaimedRequest::may_be_needless`] has stopped the request. The database may be lost since, so that it can no
    /// longer be asked about the claim.
    pub(super) fn was_stopped(&self) -> bool {
        self.is_stopped.get()
    }
}

impl RunWorker<'_> {
    /// Returns a request to a reviewer that is about to be sent.
    pub(super) fn begin_request(&self, reviewer: &str) -> ClaimedRequest<'_> {
        let reviewer = self.services.settings.reviewers.get(reviewer);
        let is_agent = reviewer.is_some_and(|reviewer| reviewer.kind == ReviewerKind::Command);
        ClaimedRequest::new(self.claim.as_ref(), is_agent)
    }

    /// Begins to connect to the team's database, if the run will need a claim as far as its record says.
    pub(super) fn begin_to_connect(&mut self) {
        if self.record.reviewed_by.name == BUILTIN_REVIEWER {
            return;
        }
        // What is wrong is told when the claim is taken.
        let claim = self.services.team().review_claim(&self.record).ok().flatten();
        self.claim_connection = claim.map(ReviewClaim::begin_to_connect);
    }

    /// Claims the review in the team's database. While another machine has the claim, waits for its result. Returns the reason
    /// to end the run, if there is one: that result, or a cancellation. If the database cannot be asked, the run goes on, and a
    /// later request may get the claim.
    pub(super) fn claim_review(
        &mut self,
        mut pulse: Option<&mut HeartbeatWriter>,
    ) -> Result<Option<CancelReason>, RunnerError> {
        // One that is in doubt would hold up each request.
        self.claim = None;
        let claim = match self.services.team().review_claim(&self.record) {
            Ok(Some(claim)) => claim,
            Ok(None) => return self.take_sent_answer(),
            Err(error) => {
                self.note_without_claim(&error.to_string())?;
                return Ok(None);
            }
        };
        let mut wait = ClaimWait::default();
        loop {
            let error = match self.wait_for_claim(&claim, &mut wait, &mut pulse) {
                Ok(ended) => return Ok(ended),
                Err(ClaimError::Runner(error)) => return Err(error),
                Err(ClaimError::Database(error)) => error,
            };
            if !wait.is_worth_trying() {
                self.note_without_claim(&error.to_string())?;
                self.claim = Some(claim.keep_trying());
                return Ok(None);
            }
            if let Some(reason) = sleep_unless_cancelled(RECONNECT_PAUSE, || self.cancel_watch.check()) {
                return Ok(Some(reason));
            }
        }
    }

    /// Takes the result that another machine has sent. A run whose own result stays here claims nothing, because others would wait
    /// for nothing. Returns the reason to end the run, if there is one.
    fn take_sent_answer(&mut self) -> Result<Option<CancelReason>, RunnerError> {
        let team = self.services.team();
        if !team.may_take_results(&self.record) {
            return Ok(None);
        }
        if let Err(error) = team.sync_when_free() {
            self.note_without_claim(&error.to_string())?;
        }
        let Some(answer) = self.find_sent_answer()? else { return Ok(None) };
        self.take_answer(&answer)?;
        Ok(Some(CancelReason::Duplicate))
    }

    /// Returns a run of another machine that answers this one, or its panel.
    fn find_sent_answer(&self) -> Result<Option<RunId>, RunnerError> {
        let team = self.services.team();
        match team.find_answer(&self.record)? {
            // The reviewer may have reviewed alone elsewhere.
            None if self.record.links.member_of.is_some() => team.find_answer_to(&self.record.run_id),
            answer => Ok(answer),
        }
    }

    /// Ends the claim, unless it is that of a panel. Returns true if there was one.
    fn release_claim(&mut self) -> bool {
        match self.claim.take() {
            Some(held) => self.end_claim(held),
            None => return false,
        }
        true
    }

    /// Asks whether the run still has its claim. If another machine may have had it meanwhile, does as
    /// [`RunWorker::claim_review`].
    fn renew_claim(&mut self, pulse: &mut HeartbeatWriter) -> Result<Option<CancelReason>, RunnerError> {
        let Some(held) = &mut self.claim else { return Ok(None) };
        match held.check() {
            ClaimStanding::Held => Ok(None),
            ClaimStanding::InDoubt => self.claim_review(Some(pulse)),
            ClaimStanding::Unknown => {
                if held.begin_telling() {
                    self.note_without_claim("the claim may have ended, and the database cannot be asked")?;
                }
                Ok(None)
            }
        }
    }

    /// Waits while the run is paused, and then makes sure that no other machine has reviewed the same meanwhile. Returns the reason
    /// to end the run, if there is one.
    pub(super) fn wait_until_allowed(
        &mut self,
        pulse: &mut HeartbeatWriter,
    ) -> Result<Option<CancelReason>, RunnerError> {
        let run = self.record.run_id.clone();
        if self.services.control().is_paused(&run)? {
            self.buffer.push(RunEvent::Paused);
            self.flush()?;
            pulse.set_state(self.now(), HeartbeatState::Paused);
            // Nobody waits for a run that a person has paused.
            let had_claim = self.release_claim();
            while self.cancel_watch.check().is_none() && self.services.control().is_paused(&run)? {
                std::thread::sleep(PAUSE_POLL_INTERVAL);
            }
            self.buffer.push(RunEvent::Resumed);
            if had_claim && self.cancel_watch.check().is_none() {
                return self.claim_review(Some(pulse));
            }
        }
        self.renew_claim(pulse)
    }

    /// Ends a claim that this run does not need. A member of a panel leaves it to the panel, for which others may go on.
    fn end_claim(&self, held: HeldClaim) {
        if self.record.links.member_of.is_none() {
            held.release();
        }
    }

    /// Waits for the claim, and then looks for what others have sent. Returns the reason to end the run, if there is one.
    fn wait_for_claim(
        &mut self,
        claim: &ReviewClaim,
        wait: &mut ClaimWait,
        pulse: &mut Option<&mut HeartbeatWriter>,
    ) -> Result<Option<CancelReason>, ClaimError> {
        let (database, attempt) = claim.take_first(self.claim_connection.take())?;
        let (database, mut first) = (Arc::new(database), Some(attempt));
        let mut listener: Option<Listener> = None;
        let mut released: Option<RunId> = None;
        loop {
            let attempt = match first.take() {
                Some(attempt) => attempt,
                None => claim.take(&database)?,
            };
            let holder = match attempt {
                ClaimAttempt::Taken { .. } => {
                    wait.taken.get_or_insert_with(Instant::now);
                    return self.use_claim(claim, &database);
                }
                ClaimAttempt::Elsewhere(holder) => holder,
            };
            if claim.is_of_this_machine(&holder)
                && let Ok(run) = holder.run.parse::<RunId>()
                && released.as_ref() != Some(&run)
                && self.is_over(&run)
            {
                // Once only: the claim of another role of the database stays until its time is over.
                claim.release(&database, &run)?;
                released = Some(run);
                continue;
            }
            if self.services.team().is_forgotten(&holder.machine) {
                // What it sends is not read here.
                self.note_without_claim(&format!("{} is forgotten here", holder.machine))?;
                return Ok(None);
            }
            if let Some(pulse) = pulse {
                let machine = sanitize_line(&holder.machine).into_owned();
                pulse.set_state(self.now(), HeartbeatState::Elsewhere { machine });
            }
            if wait.seen.replace(Instant::now()).is_none() {
                self.note_wait(&holder)?;
                // A run that waits takes no slot.
                self.services.launcher().start_pending_or_log();
            }
            // The first time, the claim may have ended before anybody listened.
            let Some(news) = &mut listener else {
                listener = Some(claim.listen()?);
                continue;
            };
            let mut left = pause_until_end(holder.seconds_left);
            loop {
                if let Some(reason) = self.cancel_watch.check() {
                    return Ok(Some(reason));
                }
                match news.wait(CANCEL_INTERVAL) {
                    Ok(None) if !left.is_zero() => left = left.saturating_sub(CANCEL_INTERVAL),
                    Ok(_) => break,
                    Err(_) => {
                        listener = None;
                        break;
                    }
                }
            }
        }
    }

    /// Looks for an equivalent result among all that others have sent. Without one, keeps the claim.
    fn use_claim(&mut self, claim: &ReviewClaim, database: &Arc<Database>) -> Result<Option<CancelReason>, ClaimError> {
        let held = claim.clone().keep(Arc::clone(database));
        loop {
            match self.services.team().sync_over(Some(database)) {
                Ok(_) => break,
                // Another process is receiving: what it brings may be the result.
                Err(SyncError::Busy) => {
                    if let Some(reason) = sleep_unless_cancelled(CANCEL_INTERVAL, || self.cancel_watch.check()) {
                        self.end_claim(held);
                        return Ok(Some(reason));
                    }
                }
                Err(SyncError::Team(TeamError::Database(error))) if error.is_lost_connection() => {
                    return Err(error.into());
                }
                Err(error) => {
                    self.note_without_claim(&error.to_string())?;
                    // Whoever waited for a result that cannot be sent would wait for nothing.
                    if error.is_permanent() {
                        self.end_claim(held);
                        return Ok(None);
                    }
                    break;
                }
            }
        }
        let Some(answer) = self.find_sent_answer()? else {
            self.claim = Some(held);
            return Ok(None);
        };
        self.end_claim(held);
        self.take_answer(&answer)?;
        Ok(Some(CancelReason::Duplicate))
    }

    /// Takes the result of another machine for the run of a panel if it has answered members: then these have not reviewed. The
    /// claim of a panel finds the same result, unless its database cannot be reached. Returns the reason to end the run, if there
    /// is one.
    pub(super) fn take_answer_to_members(&mut self, panel: &Panel) -> Result<Option<CancelReason>, RunnerError> {
        let store = &self.services.store;
        let mut is_answered = false;
        for member in &panel.members {
            let Some(record) = store.run(&member.run_id)? else { continue };
            if record.links.member_of.as_ref() == Some(&self.record.run_id) {
                let answer = self.services.answering_run(record)?;
                is_answered |= answer.reviewed_by.name == self.record.reviewed_by.name;
            }
        }
        let answer = if is_answered { self.services.team().find_answer(&self.record)? } else { None };
        let Some(answer) = answer else { return Ok(None) };
        self.take_answer(&answer)?;
        Ok(Some(CancelReason::Duplicate))
    }

    /// Records that a run of another machine answers this one, and what that saves.
    fn take_answer(&mut self, answer: &RunId) -> Result<(), RunnerError> {
        let services = self.services;
        let now = self.now();
        let own = self.record.clone();
        let reviewed = services.store.run(answer)?;
        let machine = reviewed.as_ref().and_then(|run| run.team.as_ref()).map(|origin| origin.machine.to_string());
        let by = machine.unwrap_or_else(|| "this machine".to_owned());
        let note = format!("{by} has reviewed exactly the same as {answer}");
        let (ended, adopted) = services.store.with_lock_as(|locked| -> Result<_, RunnerError> {
            let end = |run: &mut RunRecord| {
                run.ending.cancel_reason = Some(CancelReason::Duplicate);
                run.ending.cancel_note.clone_from(&note);
                run.links.reused_from = Some(answer.clone());
                run.links.superseded_by = Some(answer.clone());
            };
            // What answers a panel is adopted by its own run.
            if reviewed.as_ref().is_some_and(|run| run.reviewed_by.name != own.reviewed_by.name) {
                return Ok((locked.update_run(&own.run_id, now, end)?, None));
            }
            let (ended, adopted) = locked.update_and_annotate(&own.run_id, now, end, answer, |run| {
                run.subject.epoch = run.subject.epoch.max(own.subject.epoch);
                run.subject.triage_bytes = own.subject.triage_bytes;
                if run.team.is_some() && run.subject.worktree.is_empty() {
                    run.subject.worktree.clone_from(&own.subject.worktree);
                    run.subject.branch.clone_from(&own.subject.branch);
                }
                let saved = own.usage.prompt_estimate.max(run.usage.tokens.total());
                run.usage.saved_token_estimate = run.usage.saved_token_estimate.saturating_add(saved);
                run.reuse.count = run.reuse.count.saturating_add(1);
                run.reuse.adopted_count = run.reuse.adopted_count.saturating_add(1);
                run.reuse.last_at = Some(now);
                run.reuse.last_reason = format!("{} was asked for the same here", own.run_id);
                run.reuse.last_head.clone_from(&own.subject.head_commit);
            })?;
            Ok((ended, Some(adopted)))
        })?;
        self.record = ended;
        // The findings of a member are settled with the list of its panel.
        if let Some(adopted) = adopted.as_ref().filter(|_| own.links.member_of.is_none()) {
            services.findings().settle_adopted_result(&own, adopted);
        }
        // The end of the run, which is next, writes it: the record says the same already.
        self.buffer.push(RunEvent::Note { text: note });
        Ok(())
    }

    /// Returns true if a run of this store has ended. Another store may have joined under the same name.
    fn is_over(&self, run: &RunId) -> bool {
        self.services.store.run(run).ok().flatten().is_some_and(|record| record.status.is_terminal())
    }

    fn note_wait(&mut self, holder: &ClaimHolder) -> Result<(), RunnerError> {
        let (machine, run) = (sanitize_line(&holder.machine), sanitize_line(&holder.run));
        self.buffer.push(RunEvent::Note { text: format!("waits for {machine}, which reviews the same as {run}") });
        self.flush()
    }

    fn note_without_claim(&mut self, why: &str) -> Result<(), RunnerError> {
        let text = format!("the review goes on without asking the team: {}", sanitize_line(why));
        self.buffer.push(RunEvent::Note { text });
        self.flush()
    }
}

/// Returns the pause before the next attempt to get a claim that ends in so many seconds. A number that is none, or that no clock can
/// hold, comes from a damaged database.
fn pause_until_end(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).map_or(MAX_CLAIM_PAUSE, |left| left.min(MAX_CLAIM_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{PanelMember, RequestDecision, RunStatus};
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_request_that_waits_is_not_sent_once_its_claim_is_in_doubt_and_an_answer_on_its_way_is_awaited() {
        let in_doubt = HeldClaim::new_in_doubt();
        let sent = || ChatProgress::Sent;
        let waiting = || ChatProgress::Waiting { reason: "busy".to_owned(), wait_ms: 1 };
        for (title, is_agent, claim, told, expected) in [
            ("no claim", false, None, vec![waiting()], false),
            ("before it is sent", false, Some(&in_doubt), vec![], true),
            ("while others may use up the budget", false, Some(&in_doubt), vec![waiting()], true),
            ("in the answer", false, Some(&in_doubt), vec![sent()], false),
            ("before another attempt", false, Some(&in_doubt), vec![sent(), waiting()], true),
            ("an agent that waits for the budget", true, Some(&in_doubt), vec![waiting()], true),
            ("an agent that waits for its provider", true, Some(&in_doubt), vec![sent(), waiting()], false),
        ] {
            let mut request = ClaimedRequest::new(claim, is_agent);
            told.iter().for_each(|progress| request.add(progress));
            assert!(!request.was_stopped(), "{title}");
            assert_eq!(request.may_be_needless(), expected, "{title}");
            assert_eq!(request.was_stopped(), expected, "{title}");
        }
        // The database is lost before the request has ended: nobody has stopped the run.
        let request = ClaimedRequest::new(Some(&in_doubt), false);
        assert!(request.may_be_needless());
        in_doubt.lose_database();
        assert!(!request.may_be_needless() && request.was_stopped());
    }

    #[test]
    fn an_odd_end_of_a_claim_is_a_pause_like_any_other() {
        for (seconds, expected) in [
            (-1.0, Duration::ZERO),
            (0.0, Duration::ZERO),
            (2.5, Duration::from_millis(2_500)),
            (90.0, MAX_CLAIM_PAUSE),
            (1e300, MAX_CLAIM_PAUSE),
            (f64::INFINITY, MAX_CLAIM_PAUSE),
            (f64::NEG_INFINITY, Duration::ZERO),
            (f64::NAN, Duration::ZERO),
        ] {
            assert_eq!(pause_until_end(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_run_and_its_answer_are_marked_together_or_not_at_all() {
        let fixture = RunnerFixture::new();
        let own = fixture.record_working_run(|_| {});
        let before = fixture.record(&own);
        let mut worker = RunWorker::new(&fixture.services, before.clone()).expect("a journal");
        let gone: RunId = "ar_01M8KHBWYCRT879842CJ19XG3H".parse().expect("an id");
        assert!(worker.take_answer(&gone).is_err());
        assert_eq!(fixture.record(&own), before);
        let answer = fixture.record_working_run(|record| record.status = RunStatus::Completed);
        worker.take_answer(&answer).expect("stored");
        assert_eq!(fixture.record(&own).links.reused_from, Some(answer.clone()));
        assert_eq!(fixture.record(&answer).reuse.adopted_count, 1);
    }

    #[test]
    fn a_panel_takes_the_result_that_has_answered_its_members_without_a_database() {
        for (reviewer, reason, is_taken) in [
            ("panel:a+b", Some(CancelReason::Duplicate), true),
            ("panel:a+b", Some(CancelReason::UserStop), false),
            ("panel:a+b", None, false),
            ("a", Some(CancelReason::Duplicate), false),
        ] {
            let fixture = RunnerFixture::new();
            let answer = fixture.record_working_run(|record| {
                record.reviewed_by.name = reviewer.to_owned();
                record.status = RunStatus::Completed;
            });
            let own = fixture.record_working_run(|record| record.reviewed_by.name = "panel:a+b".to_owned());
            let member = fixture.record_working_run(|record| {
                record.reviewed_by.name = "a".to_owned();
                record.status = RunStatus::Cancelled;
                record.links.member_of = Some(own.clone());
                record.links.reused_from = Some(answer.clone());
                record.ending.cancel_reason = reason;
            });
            let member = PanelMember {
                reviewer: "a".to_owned(),
                run_id: member,
                decision: RequestDecision::Launch,
                saved_token_estimate: 0,
            };
            let panel = Panel { name: "a+b".to_owned(), members: vec![member], ..Panel::default() };
            let mut worker = RunWorker::new(&fixture.services, fixture.record(&own)).expect("a journal");
            let taken = worker.take_answer_to_members(&panel).expect("readable");
            assert_eq!(taken, is_taken.then_some(CancelReason::Duplicate), "{reviewer} {reason:?}");
            assert_eq!(fixture.record(&own).links.reused_from, is_taken.then_some(answer), "{reviewer} {reason:?}");
        }
    }
}
