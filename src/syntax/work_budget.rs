//! Bounds the work of reading one syntax tree, so that a file that was made for it cannot keep a check busy.
//!
//! Readers spend a step for each node that they visit and for each stretch of text that they search. They end early when
//! the steps or the time are used up, and whoever started them leaves the file out. The checks are meant to need a
//! number of steps in proportion to the file; the budget stands behind them.

use std::cell::Cell;
use std::time::Duration;

/// Number of bytes that a reader may search for one step.
const BYTES_PER_STEP: usize = 64;
/// Number of steps between two looks at the clock. 65,536 steps take about a millisecond.
const STEPS_PER_LOOK: u32 = 1 << 16;

/// Steps and time that the readers of one file may use.
#[derive(Debug)]
pub struct WorkBudget {
    steps: Cell<u64>,
    until_look: Cell<u32>,
    deadline: Duration,
    clock: WorkClock,
}

/// Returns the time since some moment that stays the same; the tests inject another one.
pub type WorkClock = fn() -> Duration;

impl WorkBudget {
    /// Returns a budget that never ends.
    pub fn unlimited() -> Self {
        Self {
            steps: Cell::new(u64::MAX),
            until_look: Cell::new(u32::MAX),
            deadline: Duration::MAX,
            clock: || Duration::ZERO,
        }
    }

    /// Returns a budget of `steps` steps that ends `time` after now.
    pub fn new(steps: u64, time: Duration, clock: WorkClock) -> Self {
        let deadline = clock().saturating_add(time);
        Self { steps: Cell::new(steps), until_look: Cell::new(STEPS_PER_LOOK), deadline, clock }
    }

    /// Spends steps. Returns false once the budget is used up.
    pub fn spend(&self, steps: usize) -> bool {
        let left = self.steps.get().saturating_sub(steps as u64);
        self.steps.set(left);
        let until_look = self.until_look.get().saturating_sub(steps as u32);
        self.until_look.set(until_look);
        if until_look == 0 {
            self.look_at_clock();
        }
        self.is_left()
    }

    /// Spends the steps of a search in a text.
    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Returns whether steps and time are left.
    pub fn is_left(&self) -> bool {
        self.steps.get() > 0
    }

    /// Returns the number of steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.steps.get()
    }

    #[cold]
    fn look_at_clock(&self) {
        self.until_look.set(if self.deadline == Duration::MAX { u32::MAX } else { STEPS_PER_LOOK });
        if (self.clock)() > self.deadline {
            self.steps.set(0);
        }
    }
}

/// Returns the processor time of the current thread, so that a busy machine makes no file too complex. On systems that
/// do not count it, returns the time since the first call.
pub fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_with_its_steps() {
        let budget = WorkBudget::new(10, Duration::MAX, || Duration::ZERO);
        assert_eq!([budget.spend(9), budget.is_left(), budget.spend(1), budget.is_left()], [true, true, false, false]);
        assert!(!WorkBudget::new(10, Duration::MAX, || Duration::ZERO).spend_bytes(10 * BYTES_PER_STEP));
        assert!(WorkBudget::unlimited().spend(usize::MAX / 2));
    }

    #[test]
    fn a_budget_ends_with_its_time() {
        fn clock() -> Duration {
            thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });
            CALLS.set(CALLS.get() + 1);
            Duration::from_secs(CALLS.get())
        }
        // The first call gives the deadline: three seconds. Each look takes a second.
        let budget = WorkBudget::new(u64::MAX, Duration::from_secs(2), clock);
        let looks = (0..10).take_while(|_| budget.spend(STEPS_PER_LOOK as usize)).count();
        assert_eq!((looks, budget.is_left()), (2, false));
    }
}
