//! Shows the current activity of a working run in lists and pages.

use super::app::App;
use super::theme::Role;
use crate::domain::{CancelReason, RunStatus};
use crate::report::activity::{ActivityState, RunActivity, describe_activity, describe_turn};
use crate::store::{Heartbeat, RunRow};

impl Role {
    /// Returns the role of an activity.
    pub fn from_activity(mode: ActivityState) -> Self {
        match mode {
            ActivityState::Working => Self::Working,
            ActivityState::Waiting | ActivityState::Paused => Self::Pending,
            ActivityState::HeldUp | ActivityState::Stalled => Self::Warn,
        }
    }
}

impl App {
    /// Returns the last heartbeat of the run's worker.
    pub fn pulse(&self, run: &str) -> Option<&Heartbeat> {
        self.store.pulses.iter().find(|(id, _)| id == run).map(|(_, pulse)| pulse)
    }

    /// Returns the current activity of a run, as far as its worker reports it.
    pub fn run_activity(&self, run: &RunRow<'_>) -> Option<RunActivity> {
        match self.pulse(run.id) {
            Some(pulse) if run.status.is_working() => {
                let limit = self.session.turn_limits.of_reviewer(run.reviewer);
                Some(describe_pulse(pulse, limit, run.is_paused(), self.clock()))
            }
            _ if run.is_paused() => Some(RunActivity { state: ActivityState::Paused, text: "paused".to_owned() }),
            _ => None,
        }
    }

    /// Returns glyph, word and style of a run's state in a list.
    pub fn run_state(&self, run: &RunRow<'_>) -> (&'static str, &'static str, Role) {
        if let Some(state) = self.panel_state(run) {
            return state;
        }
        // The column of the list is as wide as `snapshotting`.
        let is_budget_stop =
            run.status == RunStatus::Cancelled && run.cancel_reason == CancelReason::BudgetExhausted.word();
        let word = if is_budget_stop { "budget" } else { run.status.word() };
        let status = match run.shortfall() {
            Some(shortfall) => {
                (self.display.glyphs.shortfall(shortfall), shortfall.word(), Role::from_shortfall(shortfall))
            }
            None => (self.display.glyphs.run_status(run.status), word, Role::from_run_status(run.status)),
        };
        match self.run_activity(run).map(|live| live.state) {
            Some(mode @ ActivityState::Paused) => {
                (self.display.glyphs.activity(mode), "paused", Role::from_activity(mode))
            }
            Some(mode @ ActivityState::Stalled) => {
                (self.display.glyphs.activity(mode), "stalled", Role::from_activity(mode))
            }
            Some(mode) => (self.display.glyphs.activity(mode), status.1, Role::from_activity(mode)),
            None => status,
        }
    }
}

/// Describes a heartbeat with its turn, of `limit` turns at most. `paused` is the user's request; the worker pauses after the response in
/// progress.
fn describe_pulse(pulse: &Heartbeat, limit: u32, paused: bool, now: i64) -> RunActivity {
    let RunActivity { state, text } = describe_activity(pulse, paused, now);
    let turn = if pulse.turn == 0 { String::new() } else { format!("{}: ", describe_turn(pulse.turn, limit)) };
    RunActivity { state, text: format!("{turn}{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Time, Usage};
    use crate::store::HeartbeatState;

    #[test]
    fn waiting_working_stalled_held_up_and_paused_are_told_apart() {
        use ActivityState as M;
        let at = |ms: i64| Time::from_millisecond(ms).unwrap_or_default();
        let now = 1_000_000;
        let limited = |left: i64| HeartbeatState::BackingOff { reason: "rate limited".into(), until: at(now + left) };
        // State, its duration, age of the last byte (milliseconds), pause requested, expected state and text.
        for (state, since, byte, paused, mode, text) in [
            (HeartbeatState::Preparing, 400, None, false, M::Working, "turn 7 of 20: preparing, 0 s"),
            (
                HeartbeatState::Waiting,
                40_000,
                None,
                false,
                M::Waiting,
                "turn 7 of 20: waiting for the first byte, 40 s",
            ),
            (
                HeartbeatState::Waiting,
                95_000,
                None,
                false,
                M::Stalled,
                "turn 7 of 20: waiting for the first byte, 1 min 35 s",
            ),
            (HeartbeatState::Receiving, 3_000, Some(120), false, M::Working, "turn 7 of 20: receiving, 12 KB, 3 s"),
            (
                HeartbeatState::Receiving,
                60_000,
                Some(40_000),
                false,
                M::Stalled,
                "turn 7 of 20: no bytes for 40 s after 12 KB",
            ),
            (
                HeartbeatState::Receiving,
                60_000,
                Some(19_999),
                false,
                M::Working,
                "turn 7 of 20: receiving, 12 KB, 1 min",
            ),
            (
                HeartbeatState::Receiving,
                3_000,
                Some(1),
                true,
                M::Working,
                "turn 7 of 20: receiving, 12 KB, 3 s, then pauses",
            ),
            (HeartbeatState::Tools, 1_000, None, false, M::Working, "turn 7 of 20: running tools, 1 s"),
            (limited(12_000), 3_000, None, false, M::HeldUp, "turn 7 of 20: rate limited, 12 s left"),
            (limited(11_001), 3_000, None, false, M::HeldUp, "turn 7 of 20: rate limited, 12 s left"),
            (limited(-5), 3_000, None, false, M::HeldUp, "turn 7 of 20: rate limited, asking again"),
            (HeartbeatState::Paused, 900_000, None, true, M::Paused, "turn 7 of 20: paused"),
            (HeartbeatState::Paused, 900_000, None, false, M::Working, "turn 7 of 20: going on"),
            // The clock was set back.
            (HeartbeatState::Tools, -5_000, None, false, M::Working, "turn 7 of 20: running tools, 0 s"),
        ] {
            let pulse = Heartbeat {
                turn: 7,
                state,
                since: at(now - since),
                last_byte_at: byte.map(|ago| at(now - ago)),
                bytes: 12_345,
                tail: String::new(),
                cost: 0.0,
                tokens: Usage::default(),
            };
            assert_eq!(
                describe_pulse(&pulse, 20, paused, now),
                RunActivity { state: mode, text: text.to_owned() },
                "{pulse:?}"
            );
        }
    }
}
