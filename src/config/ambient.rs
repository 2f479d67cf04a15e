//! The clock and the source of ids, so that both can be injected.

use std::sync::Mutex;
use std::time::Duration;

use crate::domain::{RunId, Time};

/// Where moments and ids come from: the system, or a test.
#[derive(Debug)]
pub struct Ambient(Kind);

#[derive(Debug)]
enum Kind {
    System,
    /// Each reading of the clock is one step later than the one before; ids count up.
    Fixed {
        state: Mutex<(Time, u128)>,
        step: Duration,
    },
}

impl Ambient {
    /// The system's clock and random ids.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// A clock that starts at `start` and moves by `step` at each reading, and ids that count from 1.
    pub fn fixed(start: Time, step: Duration) -> Self {
        Self(Kind::Fixed { state: Mutex::new((start, 0)), step })
    }

    /// Now, to the millisecond.
    pub fn now(&self) -> Time {
        let now = match &self.0 {
            Kind::System => Time::now(),
            Kind::Fixed { state, step } => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let now = state.0;
                state.0 = now.checked_add(*step).unwrap_or(now);
                now
            }
        };
        Time::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// A run id nobody has.
    pub fn run_id(&self) -> RunId {
        let ulid = match &self.0 {
            Kind::System => ulid::Ulid::generate(),
            Kind::Fixed { state, .. } => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                state.1 += 1;
                let milliseconds = u64::try_from(state.0.as_millisecond()).unwrap_or(0);
                ulid::Ulid::from_parts(milliseconds, state.1)
            }
        };
        RunId::try_from(format!("ar_{ulid}")).unwrap_or_else(|error| unreachable!("a ULID is 26 letters: {error}"))
    }
}
