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
const STEPS_PER_LOOK: u64 = 1 << 16;

/// Steps and time that the readers of one file may use.
#[derive(Debug)]
pub struct WorkBudget {
    /// Steps until the next look at the clock: the only number that most steps change. 0 once the budget is used up.
    slice: Cell<u64>,
    /// Steps after the slice.
    reserve: Cell<u64>,
    deadline: Cell<Duration>,
    clock: WorkClock,
}

/// Returns the time since some moment that stays the same; the tests inject another one.
pub type WorkClock = fn() -> Duration;

impl WorkBudget {
    /// Returns a budget that never ends.
    pub fn unlimited() -> Self {
        Self::with_deadline(u64::MAX, Duration::MAX, || Duration::ZERO)
    }

    /// Returns a budget of `steps` steps that ends `time` after now.
    pub fn new(steps: u64, time: Duration, clock: WorkClock) -> Self {
        Self::with_deadline(steps, clock().saturating_add(time), clock)
    }

    fn with_deadline(steps: u64, deadline: Duration, clock: WorkClock) -> Self {
        let slice = steps.min(STEPS_PER_LOOK);
        Self { slice: Cell::new(slice), reserve: Cell::new(steps - slice), deadline: Cell::new(deadline), clock }
    }

    /// Spends steps. Returns false once the budget is used up.
    #[inline]
    pub fn spend(&self, steps: usize) -> bool {
        let steps = steps as u64;
        let slice = self.slice.get();
        if steps < slice {
            self.slice.set(slice - steps);
            return true;
        }
        self.begin_slice(steps)
    }

    /// Spends the steps of a search in a text.
    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Returns whether steps and time are left.
    pub fn is_left(&self) -> bool {
        self.slice.get() > 0
    }

    /// Returns the number of steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.slice.get() + self.reserve.get()
    }

    /// Does work for another file, whose time does not count: the deadline moves by it.
    pub fn exclude_time<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = (self.clock)();
        let done = work();
        let taken = (self.clock)().saturating_sub(started);
        self.deadline.set(self.deadline.get().saturating_add(taken));
        done
    }

    /// Spends steps that reach the end of the slice, looks at the clock and takes the next slice from the reserve.
    #[cold]
    fn begin_slice(&self, steps: u64) -> bool {
        let is_late = (self.clock)() > self.deadline.get();
        let left = if is_late { 0 } else { self.steps_left().saturating_sub(steps) };
        let slice = left.min(STEPS_PER_LOOK);
        self.slice.set(slice);
        self.reserve.set(left - slice);
        slice > 0
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
        // More steps than 32 bits can count.
        assert!(!WorkBudget::new(1 << 33, Duration::MAX, || Duration::ZERO).spend((1 << 33) + 1));
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

    #[test]
    fn excluded_time_moves_the_deadline() {
        fn clock() -> Duration {
            thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });
            CALLS.set(CALLS.get() + 1);
            Duration::from_secs(CALLS.get())
        }
        let looks = |excluded: usize| {
            let budget = WorkBudget::new(u64::MAX, Duration::from_secs(2), clock);
            for _ in 0..excluded {
                budget.exclude_time(|| [clock(), clock(), clock()]);
            }
            (0..10).take_while(|_| budget.spend(STEPS_PER_LOOK as usize)).count()
        };
        assert_eq!((looks(0), looks(1)), (2, 1), "the clock itself takes a second, the excluded work three more");
    }
}
