//! Holds the members of a panel to its limit, also those that ask at the same moment.
//!
//! - A panel that completes an earlier run goes on with its limit: what that run has spent counts.
//! - Before its request, a member reserves in its record what the request may cost at most, under the store's lock.
//! - A member whose request would exceed the limit only together with requests on their way waits for their answers, which
//!   usually cost less than was reserved. It reserves nothing meanwhile, so that no two members wait for each other. After the
//!   wait it asks again whether it may send: its claim may have ended, or a person may have paused it.
//! - A reservation ends with its request: with the record of the answer's cost, or when the request has failed. A fallback
//!   that is free, or has no price, reserves nothing.
//! - So the members exceed the limit together by no more than one answer: what a request sends is counted before, and
//!   what comes back after.

use crate::domain::text::format_limit_dollars;
use crate::domain::{BudgetKind, BudgetStop, Panel, RunEvent, RunId, RunRecord};
use crate::review::conversation::{BudgetProblem, ConversationEvent};
use crate::runner::RunnerError;
use crate::runner::worker::RunWorker;
use crate::runner::worker::conversation::PAUSE_POLL_INTERVAL;
use crate::store::{HeartbeatWriter, LockedStore};

/// Cost of the next request in US dollars.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestCost {
    /// Cost of what it sends.
    pub input: f64,
    /// Cost with the longest answer.
    pub most: f64,
}

/// Answer to a member that wants to send a request.
enum Reservation {
    /// The request may be sent.
    Granted,
    /// Requests of other members are on their way that may use up the rest of the limit.
    MustWait,
    /// The limit is used up: US dollars that all members have spent, and the runs that the panel completes.
    Refused { reached: f64 },
}

impl RunWorker<'_> {
    /// Reserves the cost of the next request in the limit of the panel that the run belongs to. `spent` is what the run has
    /// spent. Returns the event that forbids the request, if any: a used-up limit, or what has ended the run during the wait for it.
    pub(super) fn reserve_panel_cost(
        &mut self,
        turn: u32,
        next: RequestCost,
        spent: f64,
        pulse: &mut HeartbeatWriter,
    ) -> Result<Option<ConversationEvent>, RunnerError> {
        let Some((panel_run, panel)) = self.services.find_panel_of(&self.record) else { return Ok(None) };
        let Some(limit) = panel.max_cost else { return Ok(None) };
        let (mut is_noted, mut has_waited) = (false, false);
        loop {
            let store = &self.services.store;
            let (reserved, record) =
                store.with_lock_as(|locked| self.try_to_reserve(locked, (&panel_run, &panel, limit), next, spent))?;
            self.record = record;
            match reserved {
                Reservation::Granted if has_waited => {
                    // Asking may take long. Other members need not wait for that.
                    self.release_reserved_cost()?;
                    if let Some(reason) = self.wait_until_allowed(pulse)? {
                        return Ok(Some(ConversationEvent::CancelAsked(reason)));
                    }
                    has_waited = false;
                }
                Reservation::Granted => return Ok(None),
                Reservation::Refused { reached } => {
                    let stop = BudgetStop { kind: BudgetKind::PanelCost, reached, limit };
                    let before = panel.continues.as_ref().filter(|_| panel.spent_before > 0.0);
                    let before =
                        before.map_or_else(String::new, |run| format!(" (${:.4} by {run})", panel.spent_before));
                    let note = format!(
                        "the budget of {} (max_cost of panels.{}) is used up: ${reached:.4} are spent{before} and the next \
                         request takes about ${:.4}; {}",
                        format_limit_dollars(limit),
                        panel.name,
                        next.input,
                        stop.next_step()
                    );
                    return Ok(Some(ConversationEvent::BudgetExceeded(BudgetProblem { stop, note })));
                }
                Reservation::MustWait => {
                    if !std::mem::replace(&mut is_noted, true) {
                        let text = format!(
                            "turn {turn} waits: requests of other members may use up the {} of panel {}",
                            format_limit_dollars(limit),
                            panel.name
                        );
                        self.buffer.push(RunEvent::Note { text });
                        self.flush()?;
                    }
                    has_waited = true;
                    std::thread::sleep(PAUSE_POLL_INTERVAL);
                    if let Some(reason) = self.cancel_watch.check() {
                        return Ok(Some(ConversationEvent::CancelAsked(reason)));
                    }
                }
            }
        }
    }

    /// Releases what the run has reserved, because no request of it is on its way: another member may be waiting for that
    /// money.
    pub(super) fn release_reserved_cost(&mut self) -> Result<(), RunnerError> {
        if self.record.usage.reserved_cost.is_some() {
            let run = self.record.run_id.clone();
            self.record = self
                .services
                .store
                .with_lock(|locked| locked.annotate_run(&run, |record| record.usage.reserved_cost = None))?;
        }
        Ok(())
    }

    /// Tries to reserve the cost of the next request. Returns the answer with the record of the run.
    fn try_to_reserve(
        &self,
        locked: &LockedStore<'_>,
        (panel_run, panel, limit): (&RunId, &Panel, f64),
        next: RequestCost,
        spent: f64,
    ) -> Result<(Reservation, RunRecord), RunnerError> {
        let (mut reached, mut on_their_way) = (panel.spent_before + spent, 0.0);
        for member in panel.members.iter().filter(|member| member.run_id != self.record.run_id) {
            let Some(record) = self.services.store.run(&member.run_id)? else { continue };
            // What an adopted or reused run costs was not paid for this panel.
            if record.links.member_of.as_ref() == Some(panel_run) {
                reached += record.usage.cost;
                on_their_way += self.reserved_cost(&record);
            }
        }
        let answer = if reached + next.input > limit {
            Reservation::Refused { reached }
        } else if reached + on_their_way + next.input > limit {
            Reservation::MustWait
        } else {
            Reservation::Granted
        };
        let reserved = matches!(answer, Reservation::Granted).then_some(next.most);
        let record = locked.annotate_run(&self.record.run_id, |record| record.usage.reserved_cost = reserved)?;
        Ok((answer, record))
    }

    /// Returns what the request of a member that is on its way may cost. A member without a worker has none.
    fn reserved_cost(&self, member: &RunRecord) -> f64 {
        let is_working = !member.status.is_terminal() && self.services.has_worker(&member.run_id);
        member.usage.reserved_cost.filter(|_| is_working).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;
    use crate::domain::{PanelMember, RequestDecision};
    use crate::runner::fixture::RunnerFixture;
    use crate::runner::team::claims::ReviewClaim;
    use crate::team::postgres::fake_server::{ColumnValue, FakeServer, row_answer};

    #[test]
    fn a_member_that_has_waited_for_money_asks_again_for_its_claim() {
        let fixture = RunnerFixture::new();
        let (services, store) = (&fixture.services, &fixture.services.store);
        let panel_run = fixture.record_working_run(|_| {});
        let [own, other] = [None, Some(1.0)].map(|reserved| {
            fixture.record_working_run(|record| {
                record.links.member_of = Some(panel_run.clone());
                record.usage.reserved_cost = reserved;
            })
        });
        let members = [&own, &other].map(|run| PanelMember {
            reviewer: "m".to_owned(),
            run_id: run.clone(),
            decision: RequestDecision::Launch,
            saved_token_estimate: 0,
        });
        let panel =
            Panel { name: "a+b".to_owned(), members: members.to_vec(), max_cost: Some(1.0), ..Panel::default() };
        let set_panel = |record: &mut RunRecord| record.links.panel = Some(panel);
        store.with_lock(|locked| locked.annotate_run(&panel_run, set_panel)).expect("stored");

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let claim = ReviewClaim::at_port(listener.local_addr().expect("an address").port());
        let holder = claim.holder().to_string();
        let server = std::thread::spawn(move || {
            let mut server = FakeServer::connect(listener.accept().expect("a client").0);
            server.read_statements(1);
            let (run, machine) = (ColumnValue::Text(&holder), ColumnValue::Text("ada-1"));
            server.send(&[row_answer(&[run, machine, ColumnValue::Float(90.0), ColumnValue::Bool(true)])]);
            server
        });
        let database = Arc::new(claim.connect().expect("connected"));
        // The other member works until this one says that it waits.
        let other_works = store.lock_run(&other).expect("a lock").expect("it is free");
        let mut journal = store.follow_journal(&own, 0);
        let other_member = std::thread::spawn(move || {
            let is_wait = |event: &RunEvent| matches!(event, RunEvent::Note { text } if text.contains(" waits: "));
            while !journal.advance().expect("readable").iter().any(|entry| is_wait(&entry.event)) {
                std::thread::yield_now();
            }
            drop(other_works);
        });

        let mut worker = RunWorker::new(services, fixture.record(&own)).expect("a journal");
        worker.claim = Some(claim.keep(database));
        let mut pulse = store.start_heartbeat(&own, services.ambient.now());
        let cost = RequestCost { input: 0.25, most: 0.5 };
        let forbidden = worker.reserve_panel_cost(1, cost, 0.0, &mut pulse).expect("stored");
        assert!(forbidden.is_none());
        assert_eq!(fixture.record(&own).usage.reserved_cost, Some(0.5));
        other_member.join().expect("it has ended");
        drop(server.join().expect("the claim is asked about"));
    }
}
