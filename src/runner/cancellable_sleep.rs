//! Sleeps that a cancellation ends early.

use std::time::Duration;

/// Interval between two checks for a cancellation, and the longest time that a cancellation is noticed late.
pub(super) const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// Sleeps for `time`, rounded up to whole [`CANCEL_INTERVAL`]s, and calls `check` before each of them. Ends the sleep and
/// returns the value as soon as `check` returns one; otherwise returns `None`.
pub(super) fn sleep_unless_cancelled<T>(time: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let mut left = time;
    while !left.is_zero() {
        if let Some(cancelled) = check() {
            return Some(cancelled);
        }
        std::thread::sleep(CANCEL_INTERVAL);
        left = left.saturating_sub(CANCEL_INTERVAL);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancellation_ends_the_sleep_at_the_next_check() {
        let far = Duration::from_secs(3_600);
        let short = CANCEL_INTERVAL / 2;
        for (time, cancelled_at, expected, checks) in
            [(far, 1, Some(1), 1), (far, 2, Some(2), 2), (short, 2, None, 1), (Duration::ZERO, 1, None, 0)]
        {
            let mut count = 0;
            let ended = sleep_unless_cancelled(time, || {
                count += 1;
                (count == cancelled_at).then_some(count)
            });
            assert_eq!((ended, count), (expected, checks), "{time:?}, cancelled at check {cancelled_at}");
        }
    }
}
