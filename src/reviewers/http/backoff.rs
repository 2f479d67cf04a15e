//! Computes the wait before a request is sent again.
//!
//! Random numbers and sleeping come through [`BackoffClock`], so that tests need neither.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// First backoff step. It doubles with each attempt, up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Longest wait that a server may ask for. If a server asks for more, the run ends with the time in its error instead
/// of appearing to hang.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// The source of sleep and random numbers.
pub trait BackoffClock: Send {
    /// Returns a uniformly distributed number in `0.0..1.0`.
    fn random(&mut self) -> f64;
    /// Waits for this time.
    fn sleep(&mut self, time: Duration);
}

/// A clock that sleeps on the thread and takes random numbers from the keys of the standard library's hasher.
#[derive(Debug, Clone, Copy)]
pub struct SystemBackoffClock;

impl BackoffClock for SystemBackoffClock {
    fn random(&mut self) -> f64 {
        let bits = RandomState::new().build_hasher().finish() >> 11;
        // 53 bits are as many as an f64 holds exactly.
        bits as f64 / (1_u64 << 53) as f64
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Returns the wait after `attempt` failed attempts (1-based). If the server asked for a time: that time plus up to
/// 10%, so that many clients do not return at once. Otherwise: exponential backoff, half of it random.
pub(crate) fn retry_delay(attempt: u32, asked: Option<Duration>, pace: &mut dyn BackoffClock) -> Duration {
    let chance = pace.random().clamp(0.0, 1.0);
    match asked {
        Some(asked) => asked.saturating_add(asked.min(MAX_RETRY_AFTER).mul_f64(chance / 10.0)),
        None => {
            let step = MIN_BACKOFF.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(MAX_BACKOFF);
            step.mul_f64(0.5 + chance / 2.0)
        }
    }
}

/// Parses the wait that response headers ask for: `retry-after-ms`, or `retry-after` as seconds or as a date. A date is
/// compared with the server's `date` header if present. Returns `None` for a wait of zero.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    parse_retry_after(headers).filter(|patience| !patience.is_zero())
}

/// Parses the wait like [`retry_after`]. Returns zero if the server allows the next request at once.
pub(crate) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds_to_duration(milliseconds / 1000.0);
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(number) = after.parse::<f64>() {
        return seconds_to_duration(number);
    }
    let moment = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
    let now = text(DATE.as_str()).and_then(moment).unwrap_or_else(jiff::Timestamp::now);
    let left = moment(after)?.duration_since(now);
    left.try_into().ok()
}

/// Parses seconds as a JSON body may give them: `34`, `34.5s`.
pub(super) fn parse_seconds(text: &str) -> Option<Duration> {
    seconds_to_duration(text.trim().trim_end_matches('s').parse().ok()?)
}

fn seconds_to_duration(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    struct FixedRandom(f64);

    impl BackoffClock for FixedRandom {
        fn random(&mut self) -> f64 {
            self.0
        }

        fn sleep(&mut self, _: Duration) {}
    }

    #[rstest]
    #[case::first_at_least(1, None, 0.0, 500)]
    #[case::first_at_most(1, None, 1.0, 1000)]
    #[case::third(3, None, 0.5, 3000)]
    #[case::bounded(40, None, 1.0, 60_000)]
    #[case::asked(1, Some(20_000), 0.0, 20_000)]
    #[case::asked_and_spread(1, Some(20_000), 1.0, 22_000)]
    #[case::asked_for_ages(1, Some(u64::MAX), 0.0, u64::MAX)]
    fn waits(#[case] attempt: u32, #[case] asked: Option<u64>, #[case] chance: f64, #[case] milliseconds: u64) {
        let waited = retry_delay(attempt, asked.map(Duration::from_millis), &mut FixedRandom(chance));
        assert_eq!(waited, Duration::from_millis(milliseconds));
    }

    #[rstest]
    #[case::none(&[], None)]
    #[case::seconds(&[("retry-after", "7")], Some(7000))]
    #[case::fraction(&[("retry-after", " 0.25 ")], Some(250))]
    #[case::milliseconds_win(&[("retry-after-ms", "1500"), ("retry-after", "2")], Some(1500))]
    #[case::date(
        &[("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:28:42 GMT")],
        Some(42_000)
    )]
    #[case::date_gone_by(&[("retry-after", "Wed, 21 Oct 2015 07:28:42 GMT")], None)]
    #[case::at_once(&[("retry-after", "0")], None)]
    #[case::negative(&[("retry-after", "-3")], None)]
    #[case::nonsense(&[("retry-after", "soon")], None)]
    #[case::infinite(&[("retry-after", "inf")], None)]
    fn patience(#[case] given: &[(&'static str, &'static str)], #[case] milliseconds: Option<u64>) {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(retry_after(&headers), milliseconds.map(Duration::from_millis));
    }

    #[test]
    fn chance_is_in_range() {
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&SystemBackoffClock.random()));
        }
    }
}
