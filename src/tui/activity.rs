//! Describes the current activity of a working run in the same words everywhere. Distinguishes working, waiting
//! and stalled.

use super::app::App;
use super::theme::Role;
use crate::domain::RunStatus;
use crate::store::{Heartbeat, HeartbeatState, RunRow};

/// Silence, in milliseconds, after which a response stream counts as stalled. Providers that keep a connection
/// open send something at least every 15 seconds.
const MAX_SILENCE_MS: i64 = 20_000;
/// Longest normal wait for the first byte, in milliseconds; thinking models usually answer sooner.
const MAX_FIRST_BYTE_WAIT_MS: i64 = 90_000;

/// State of a run's activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityState {
    Working,
    /// Waits for the provider, within the normal time.
    Waiting,
    /// Waits because of a rate limit or before a retry after an error.
    HeldUp,
    /// No data for too long.
    Stalled,
    /// Paused by the user.
    Paused,
}

/// Activity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunActivity {
    pub state: ActivityState,
    pub text: String,
}

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
            Some(pulse) if run.status.is_working() => Some(describe_pulse(pulse, run.is_paused(), self.now)),
            _ if run.is_paused() => Some(RunActivity { state: ActivityState::Paused, text: "paused".to_owned() }),
            _ => None,
        }
    }

    /// Returns glyph, word and style of a run's state in a list.
    pub fn run_state(&self, run: &RunRow<'_>) -> (&'static str, &'static str, Role) {
        // The column of the list is as wide as `snapshotting`.
        let word = if run.state_word() == "budget reached" { "budget" } else { run.status.word() };
        let status = match run.is_incomplete() {
            true => (self.display.glyphs.run_status(RunStatus::Failed), "incomplete", Role::Warn),
            false => (self.display.glyphs.run_status(run.status), word, Role::from_run_status(run.status)),
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

/// Describes a heartbeat with its turn. `paused` is the user's request; the worker pauses after the response in
/// progress.
fn describe_pulse(pulse: &Heartbeat, paused: bool, now: i64) -> RunActivity {
    let RunActivity { state, text } = describe_activity(pulse, paused, now);
    let turn = if pulse.turn == 0 { String::new() } else { format!("turn {}: ", pulse.turn) };
    RunActivity { state, text: format!("{turn}{text}") }
}

/// Describes a heartbeat without its turn, at time `now` in milliseconds since 1970.
pub fn describe_activity(pulse: &Heartbeat, paused: bool, now: i64) -> RunActivity {
    let since = |ms: i64| now.saturating_sub(ms).max(0);
    let state_ms = since(pulse.since.as_millisecond());
    let (mode, what) = match &pulse.state {
        HeartbeatState::Preparing if pulse.turn == 0 => {
            (ActivityState::Working, format!("gathering context, {}", format_millis(state_ms)))
        }
        HeartbeatState::Preparing => (ActivityState::Working, format!("preparing, {}", format_millis(state_ms))),
        HeartbeatState::Waiting => {
            let mode = if state_ms < MAX_FIRST_BYTE_WAIT_MS { ActivityState::Waiting } else { ActivityState::Stalled };
            (mode, format!("waiting for the first byte, {}", format_millis(state_ms)))
        }
        HeartbeatState::Receiving => {
            let silent = pulse.last_byte_at.map_or(state_ms, |at| since(at.as_millisecond()));
            if silent < MAX_SILENCE_MS {
                (
                    ActivityState::Working,
                    format!("receiving, {}, {}", format_bytes(pulse.bytes), format_millis(state_ms)),
                )
            } else {
                (
                    ActivityState::Stalled,
                    format!("no bytes for {} after {}", format_millis(silent), format_bytes(pulse.bytes)),
                )
            }
        }
        HeartbeatState::Tools => (ActivityState::Working, format!("running tools, {}", format_millis(state_ms))),
        HeartbeatState::BackingOff { reason, until } => {
            let left = until.as_millisecond().saturating_sub(now);
            let rest = if left > 0 { format!("{} left", format_millis(left + 999)) } else { "asking again".to_owned() };
            (ActivityState::HeldUp, format!("{reason}, {rest}"))
        }
        HeartbeatState::Paused if paused => (ActivityState::Paused, "paused".to_owned()),
        HeartbeatState::Paused => (ActivityState::Working, "going on".to_owned()),
    };
    let then = if paused && pulse.state != HeartbeatState::Paused { ", then pauses" } else { "" };
    RunActivity { state: mode, text: format!("{what}{then}") }
}

/// Formats milliseconds: `3 s`, `2 min 5 s`, `14 min`, `2 h`.
pub fn format_millis(ms: i64) -> String {
    match ms / 1000 {
        s @ ..60 => format!("{s} s"),
        s @ 60..600 if s % 60 > 0 => format!("{} min {} s", s / 60, s % 60),
        s @ 60..7200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}

/// Formats a byte count: `812 B`, `12 KB`, `1.4 MB`.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Time, Usage};

    #[test]
    fn waiting_working_stalled_held_up_and_paused_are_told_apart() {
        use ActivityState as M;
        let at = |ms: i64| Time::from_millisecond(ms).unwrap_or_default();
        let now = 1_000_000;
        let limited = |left: i64| HeartbeatState::BackingOff { reason: "rate limited".into(), until: at(now + left) };
        // State, its duration, age of the last byte (milliseconds), pause requested, expected state and text.
        for (state, since, byte, paused, mode, text) in [
            (HeartbeatState::Preparing, 400, None, false, M::Working, "turn 7: preparing, 0 s"),
            (HeartbeatState::Waiting, 40_000, None, false, M::Waiting, "turn 7: waiting for the first byte, 40 s"),
            (
                HeartbeatState::Waiting,
                95_000,
                None,
                false,
                M::Stalled,
                "turn 7: waiting for the first byte, 1 min 35 s",
            ),
            (HeartbeatState::Receiving, 3_000, Some(120), false, M::Working, "turn 7: receiving, 12 KB, 3 s"),
            (
                HeartbeatState::Receiving,
                60_000,
                Some(40_000),
                false,
                M::Stalled,
                "turn 7: no bytes for 40 s after 12 KB",
            ),
            (HeartbeatState::Receiving, 60_000, Some(19_999), false, M::Working, "turn 7: receiving, 12 KB, 1 min"),
            (HeartbeatState::Receiving, 3_000, Some(1), true, M::Working, "turn 7: receiving, 12 KB, 3 s, then pauses"),
            (HeartbeatState::Tools, 1_000, None, false, M::Working, "turn 7: running tools, 1 s"),
            (limited(12_000), 3_000, None, false, M::HeldUp, "turn 7: rate limited, 12 s left"),
            (limited(11_001), 3_000, None, false, M::HeldUp, "turn 7: rate limited, 12 s left"),
            (limited(-5), 3_000, None, false, M::HeldUp, "turn 7: rate limited, asking again"),
            (HeartbeatState::Paused, 900_000, None, true, M::Paused, "turn 7: paused"),
            (HeartbeatState::Paused, 900_000, None, false, M::Working, "turn 7: going on"),
            // The clock was set back.
            (HeartbeatState::Tools, -5_000, None, false, M::Working, "turn 7: running tools, 0 s"),
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
                describe_pulse(&pulse, paused, now),
                RunActivity { state: mode, text: text.to_owned() },
                "{pulse:?}"
            );
        }
        for (ms, said) in [(0, "0 s"), (59_999, "59 s"), (600_000, "10 min"), (5_999_000, "99 min"), (7_200_000, "2 h")]
        {
            assert_eq!(format_millis(ms), said);
        }
        for (bytes, said) in [(999, "999 B"), (1_000, "1 KB"), (1_450_000, "1.4 MB")] {
            assert_eq!(format_bytes(bytes), said);
        }
    }
}
