//! Parses the duration of a snooze: `30m`, `2h`, `until 14:00`, `off`.

use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use crate::domain::{MinuteOfDay, Time};

/// Maximum length of a snooze in days. A longer one is a mistake, or a wish to stop watching.
const MAX_SNOOZE_DAYS: i64 = 7;

/// Returns the end of a snooze that begins now; `None` ends a snooze.
///
/// # Errors
///
/// A description of the problem, with the correct syntax.
pub fn parse_snooze(text: &str, now: Time, zone: &TimeZone) -> Result<Option<Time>, String> {
    let text = text.trim();
    let bad = || format!("{text:?} is no time to be left alone; write 30m, 2h, 1d, \"until 14:00\" or off");
    if text == "off" {
        return Ok(None);
    }
    let here = now.to_zoned(zone.clone());
    let until = match text.strip_prefix("until").map(str::trim_start) {
        Some(time) => {
            let minute: MinuteOfDay = time.parse().map_err(|_| bad())?;
            let at = |day: &jiff::Zoned| {
                let time = jiff::civil::time((minute.0 / 60) as i8, (minute.0 % 60) as i8, 0, 0);
                day.with().time(time).build().ok()
            };
            let today = at(&here).filter(|at| *at > here);
            today.or_else(|| at(&here.tomorrow().ok()?))
        }
        None => here.checked_add(parse_span(text).ok_or_else(bad)?).ok(),
    };
    let until = until.ok_or_else(bad)?;
    match here.checked_add(MAX_SNOOZE_DAYS.days()) {
        Ok(longest) if until <= longest => Ok(Some(until.timestamp())),
        _ => Err(format!(
            "{text:?} is longer than {MAX_SNOOZE_DAYS} days; `revdeck watch --stop` ends watching altogether"
        )),
    }
}

fn parse_span(text: &str) -> Option<Span> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let number: i64 = number.parse().ok().filter(|number| (1..=100_000).contains(number))?;
    match unit.trim_start() {
        "m" | "min" => Some(number.minutes()),
        "h" => Some(number.hours()),
        "d" => Some(number.days()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// 12:30 UTC, 13:30 in Berlin, on the day before the clocks go forward.
    const NOW: &str = "2026-03-28T12:30:00Z";

    #[rstest]
    #[case("30m", "2026-03-28T13:00:00Z")]
    #[case(" 90 min ", "2026-03-28T14:00:00Z")]
    #[case("2h", "2026-03-28T14:30:00Z")]
    #[case("until 14:00", "2026-03-28T13:00:00Z")]
    #[case("until 18:05", "2026-03-28T17:05:00Z")]
    #[case::tomorrow_in_summer_time("until 9:00", "2026-03-29T07:00:00Z")]
    #[case::this_very_minute("until 13:30", "2026-03-29T11:30:00Z")]
    #[case::a_day_of_23_hours("1d", "2026-03-29T11:30:00Z")]
    fn times(#[case] text: &str, #[case] until: &str) {
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        let found = parse_snooze(text, NOW.parse().expect("a time"), &zone);
        assert_eq!(found, Ok(Some(until.parse().expect("a time"))));
    }

    #[test]
    fn what_is_no_time_is_refused_and_off_takes_it_back() {
        let now = NOW.parse().expect("a time");
        let parse = |text: &str| parse_snooze(text, now, &TimeZone::UTC);
        assert_eq!(parse("off"), Ok(None));
        for text in [
            "",
            "soon",
            "5",
            "m",
            "-5m",
            "0m",
            "30s",
            "until",
            "until 25:00",
            "until noon",
            "5mm",
            "8d",
            "99999h",
            "9999999999999m",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
