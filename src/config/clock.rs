//! Provides the clock and the id generator, so that tests can inject both.

use std::sync::Mutex;
use std::time::Duration;

use crate::domain::{FixId, RunId, Time};

/// Source of times and ids: the system or a test.
#[derive(Debug)]
pub struct ClockAndIds(ClockSource);

#[derive(Debug)]
enum ClockSource {
    System,
    /// Like `Fixed`, but with random ids, because several processes may start at the same time.
    Started {
        state: Mutex<Time>,
    },
    /// Clock that moves by `step` at each reading, and ids that count up from 1.
    Fixed {
        state: Mutex<(Time, u128)>,
        step: Duration,
    },
}

impl ClockAndIds {
    /// Returns the system clock with random ids.
    pub fn system() -> Self {
        Self(ClockSource::System)
    }

    /// Returns the system clock, or a test clock if `REVDECK_NOW` (RFC 3339, for tests only) is set. The test clock
    /// starts at that time and moves by 1 ms at each reading.
    ///
    /// # Errors
    ///
    /// Fails if the value is not an RFC 3339 time.
    pub fn from_variable(now: Option<&str>) -> Result<Self, super::ConfigError> {
        match now.filter(|now| !now.is_empty()) {
            None => Ok(Self::system()),
            Some(now) => match now.parse() {
                Ok(start) => Ok(Self(ClockSource::Started { state: Mutex::new(start) })),
                Err(_) => Err(super::ConfigError::Now { value: now.to_owned() }),
            },
        }
    }

    /// Returns a clock that starts at `start` and moves by `step` at each reading, with ids that count from 1.
    pub fn fixed(start: Time, step: Duration) -> Self {
        Self(ClockSource::Fixed { state: Mutex::new((start, 0)), step })
    }

    /// Returns the current time, truncated to milliseconds.
    pub fn now(&self) -> Time {
        let now = match &self.0 {
            ClockSource::System => Time::now(),
            ClockSource::Started { state } => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let now = *state;
                *state = now.checked_add(Duration::from_millis(1)).unwrap_or(now);
                now
            }
            ClockSource::Fixed { state, step } => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let now = state.0;
                state.0 = now.checked_add(*step).unwrap_or(now);
                now
            }
        };
        Time::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Returns a new run id.
    pub fn new_run_id(&self) -> RunId {
        RunId::try_from(format!("ar_{}", self.new_ulid()))
            .unwrap_or_else(|error| unreachable!("a ULID is 26 letters: {error}"))
    }

    /// Returns a new fix id.
    pub fn new_fix_id(&self) -> FixId {
        FixId::try_from(format!("fx_{}", self.new_ulid()))
            .unwrap_or_else(|error| unreachable!("a ULID is 26 letters: {error}"))
    }

    fn new_ulid(&self) -> ulid::Ulid {
        match &self.0 {
            ClockSource::System => ulid::Ulid::generate(),
            ClockSource::Started { state } => {
                let state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let milliseconds = u64::try_from(state.as_millisecond()).unwrap_or(0);
                ulid::Ulid::from_parts(milliseconds, ulid::Ulid::generate().random())
            }
            ClockSource::Fixed { state, .. } => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                state.1 += 1;
                let milliseconds = u64::try_from(state.0.as_millisecond()).unwrap_or(0);
                ulid::Ulid::from_parts(milliseconds, state.1)
            }
        }
    }
}
