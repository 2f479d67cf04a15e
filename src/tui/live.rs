//! What a working run does this moment, in the same words wherever it is said: waiting is told from working, and a
//! reviewer that says nothing any more from both.

use super::app::App;
use super::theme::Role;
use crate::store::{Pulse, PulseState, RunRow};

/// An answer that was coming in and has had no byte for so long has stalled: providers that keep a connection open say
/// something at least every 15 seconds.
const STALLED_MS: i64 = 20_000;
/// So long for the first byte is more than thinking models usually take.
const LATE_MS: i64 = 90_000;

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Working,
    /// For somebody else, as it should be.
    Waiting,
    /// For somebody else, as it should not be: a limit, an error that is tried again.
    HeldUp,
    /// Nothing comes any more.
    Stalled,
    /// A person stopped it for a while.
    Paused,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub mode: Mode,
    pub text: String,
}

impl Role {
    pub fn of_live(mode: Mode) -> Self {
        match mode {
            Mode::Working => Self::Working,
            Mode::Waiting | Mode::Paused => Self::Pending,
            Mode::HeldUp | Mode::Stalled => Self::Warn,
        }
    }
}

impl App {
    /// What the worker of a run said last.
    pub fn pulse(&self, run: &str) -> Option<&Pulse> {
        self.pulses.iter().find(|(id, _)| id == run).map(|(_, pulse)| pulse)
    }

    /// What a run does this moment, as far as its worker says it.
    pub fn live(&self, run: &RunRow<'_>) -> Option<Live> {
        match self.pulse(run.id) {
            Some(pulse) if run.status.is_working() => Some(live(pulse, run.is_paused(), self.now)),
            _ if run.is_paused() => Some(Live { mode: Mode::Paused, text: "paused".to_owned() }),
            _ => None,
        }
    }

    /// Sign, word and meaning of a run in a list.
    pub fn run_state(&self, run: &RunRow<'_>) -> (&'static str, &'static str, Role) {
        let status = (self.glyphs.run(run.status), run.status.word(), Role::of_run(run.status));
        match self.live(run).map(|live| live.mode) {
            Some(mode @ Mode::Paused) => (self.glyphs.live(mode), "paused", Role::of_live(mode)),
            Some(mode @ Mode::Stalled) => (self.glyphs.live(mode), "stalled", Role::of_live(mode)),
            Some(mode) => (self.glyphs.live(mode), status.1, Role::of_live(mode)),
            None => status,
        }
    }
}

/// A pulse in words. `paused` is the wish, which the worker heeds as soon as the answer that is on its way is in.
fn live(pulse: &Pulse, paused: bool, now: i64) -> Live {
    let since = |ms: i64| now.saturating_sub(ms).max(0);
    let state_ms = since(pulse.since.as_millisecond());
    let (mode, what) = match &pulse.state {
        PulseState::Preparing => (Mode::Working, format!("preparing, {}", seconds(state_ms))),
        PulseState::Waiting => {
            let mode = if state_ms < LATE_MS { Mode::Waiting } else { Mode::Stalled };
            (mode, format!("waiting for the first byte, {}", seconds(state_ms)))
        }
        PulseState::Receiving => {
            let silent = pulse.last_byte_at.map_or(state_ms, |at| since(at.as_millisecond()));
            if silent < STALLED_MS {
                (Mode::Working, format!("receiving, {}, {}", size(pulse.bytes), seconds(state_ms)))
            } else {
                (Mode::Stalled, format!("no bytes for {} after {}", seconds(silent), size(pulse.bytes)))
            }
        }
        PulseState::Tools => (Mode::Working, format!("running tools, {}", seconds(state_ms))),
        PulseState::BackingOff { reason, until } => {
            let left = until.as_millisecond().saturating_sub(now);
            let rest = if left > 0 { format!("{} left", seconds(left + 999)) } else { "asking again".to_owned() };
            (Mode::HeldUp, format!("{reason}, {rest}"))
        }
        PulseState::Paused if paused => (Mode::Paused, "paused".to_owned()),
        PulseState::Paused => (Mode::Working, "going on".to_owned()),
    };
    let then = if paused && pulse.state != PulseState::Paused { ", then pauses" } else { "" };
    let turn = if pulse.turn == 0 { String::new() } else { format!("turn {}: ", pulse.turn) };
    Live { mode, text: format!("{turn}{what}{then}") }
}

/// `3 s`, `2 min 5 s`, `14 min`.
pub fn seconds(ms: i64) -> String {
    match ms / 1000 {
        s @ ..60 => format!("{s} s"),
        s @ 60..600 if s % 60 > 0 => format!("{} min {} s", s / 60, s % 60),
        s @ 60..7200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}

/// `812 B`, `12 KB`, `1.4 MB`.
fn size(bytes: u64) -> String {
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
        use Mode as M;
        let at = |ms: i64| Time::from_millisecond(ms).unwrap_or_default();
        let now = 1_000_000;
        let limited = |left: i64| PulseState::BackingOff { reason: "rate limited".into(), until: at(now + left) };
        // State, how long it has lasted, how long ago the last byte was, the wish to pause; how it is said.
        for (state, since, byte, paused, mode, text) in [
            (PulseState::Preparing, 400, None, false, M::Working, "turn 7: preparing, 0 s"),
            (PulseState::Waiting, 40_000, None, false, M::Waiting, "turn 7: waiting for the first byte, 40 s"),
            (PulseState::Waiting, 95_000, None, false, M::Stalled, "turn 7: waiting for the first byte, 1 min 35 s"),
            (PulseState::Receiving, 3_000, Some(120), false, M::Working, "turn 7: receiving, 12 KB, 3 s"),
            (PulseState::Receiving, 60_000, Some(40_000), false, M::Stalled, "turn 7: no bytes for 40 s after 12 KB"),
            (PulseState::Receiving, 60_000, Some(19_999), false, M::Working, "turn 7: receiving, 12 KB, 1 min"),
            (PulseState::Receiving, 3_000, Some(1), true, M::Working, "turn 7: receiving, 12 KB, 3 s, then pauses"),
            (PulseState::Tools, 1_000, None, false, M::Working, "turn 7: running tools, 1 s"),
            (limited(12_000), 3_000, None, false, M::HeldUp, "turn 7: rate limited, 12 s left"),
            (limited(11_001), 3_000, None, false, M::HeldUp, "turn 7: rate limited, 12 s left"),
            (limited(-5), 3_000, None, false, M::HeldUp, "turn 7: rate limited, asking again"),
            (PulseState::Paused, 900_000, None, true, M::Paused, "turn 7: paused"),
            (PulseState::Paused, 900_000, None, false, M::Working, "turn 7: going on"),
            // A clock that was set back.
            (PulseState::Tools, -5_000, None, false, M::Working, "turn 7: running tools, 0 s"),
        ] {
            let pulse = Pulse {
                turn: 7,
                state,
                since: at(now - since),
                last_byte_at: byte.map(|ago| at(now - ago)),
                bytes: 12_345,
                tail: String::new(),
                cost: 0.0,
                tokens: Usage::default(),
            };
            assert_eq!(live(&pulse, paused, now), Live { mode, text: text.to_owned() }, "{pulse:?}");
        }
        for (ms, said) in [(0, "0 s"), (59_999, "59 s"), (600_000, "10 min"), (5_999_000, "99 min"), (7_200_000, "2 h")]
        {
            assert_eq!(seconds(ms), said);
        }
        for (bytes, said) in [(999, "999 B"), (1_000, "1 KB"), (1_450_000, "1.4 MB")] {
            assert_eq!(size(bytes), said);
        }
    }
}
