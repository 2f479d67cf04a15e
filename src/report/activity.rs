//! Describes the current activity of a working run in the same words everywhere. Distinguishes working, waiting
//! and stalled.

use crate::store::{Heartbeat, HeartbeatState};

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

/// Describes a heartbeat without its turn, at time `now` in milliseconds since 1970.
pub fn describe_activity(pulse: &Heartbeat, paused: bool, now: i64) -> RunActivity {
    let since = |ms: i64| now.saturating_sub(ms).max(0);
    let state_ms = since(pulse.since.as_millisecond());
    let (mode, what) = match &pulse.state {
        HeartbeatState::Preparing if pulse.turn == 0 => {
            (ActivityState::Working, format!("gathering context, {}", format_elapsed(state_ms)))
        }
        HeartbeatState::Preparing => (ActivityState::Working, format!("preparing, {}", format_elapsed(state_ms))),
        HeartbeatState::Waiting => {
            let mode = if state_ms < MAX_FIRST_BYTE_WAIT_MS { ActivityState::Waiting } else { ActivityState::Stalled };
            (mode, format!("waiting for the first byte, {}", format_elapsed(state_ms)))
        }
        HeartbeatState::Receiving => {
            let silent = pulse.last_byte_at.map_or(state_ms, |at| since(at.as_millisecond()));
            if silent < MAX_SILENCE_MS {
                (
                    ActivityState::Working,
                    format!("receiving, {}, {}", format_bytes(pulse.bytes), format_elapsed(state_ms)),
                )
            } else {
                (
                    ActivityState::Stalled,
                    format!("no bytes for {} after {}", format_elapsed(silent), format_bytes(pulse.bytes)),
                )
            }
        }
        HeartbeatState::Tools => (ActivityState::Working, format!("running tools, {}", format_elapsed(state_ms))),
        HeartbeatState::BackingOff { reason, until } => {
            let left = until.as_millisecond().saturating_sub(now);
            let rest =
                if left > 0 { format!("{} left", format_elapsed(left + 999)) } else { "asking again".to_owned() };
            (ActivityState::HeldUp, format!("{reason}, {rest}"))
        }
        HeartbeatState::Elsewhere { machine } => {
            (ActivityState::Waiting, format!("{machine} reviews the same, {}", format_elapsed(state_ms)))
        }
        HeartbeatState::Paused if paused => (ActivityState::Paused, "paused".to_owned()),
        HeartbeatState::Paused => (ActivityState::Working, "going on".to_owned()),
    };
    let then = if paused && pulse.state != HeartbeatState::Paused { ", then pauses" } else { "" };
    RunActivity { state: mode, text: format!("{what}{then}") }
}

/// Names a request of a run of at most `of` turns: `turn 7 of 20`. Requests for second opinions are numbered after the
/// turns: `second opinion 2`.
pub fn describe_turn(number: u32, of: u32) -> String {
    match number.checked_sub(of) {
        Some(opinion @ 1..) => format!("second opinion {opinion}"),
        _ => format!("turn {number} of {of}"),
    }
}

/// Formats milliseconds: `3 s`, `2 min 5 s`, `14 min`, `2 h`.
pub fn format_elapsed(ms: i64) -> String {
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

    #[test]
    fn requests_after_the_last_turn_are_second_opinions() {
        for (number, said) in [(1, "turn 1 of 5"), (5, "turn 5 of 5"), (6, "second opinion 1"), (8, "second opinion 3")]
        {
            assert_eq!(describe_turn(number, 5), said);
        }
    }

    #[test]
    fn times_and_sizes_are_short() {
        for (ms, said) in [(0, "0 s"), (59_999, "59 s"), (600_000, "10 min"), (5_999_000, "99 min"), (7_200_000, "2 h")]
        {
            assert_eq!(format_elapsed(ms), said);
        }
        for (bytes, said) in [(999, "999 B"), (1_000, "1 KB"), (1_450_000, "1.4 MB")] {
            assert_eq!(format_bytes(bytes), said);
        }
    }
}
