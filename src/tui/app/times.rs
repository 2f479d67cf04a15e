//! Formats moments and durations as lists and pages show them.

use std::time::Duration;

use super::{App, MotionMode, Pane, RunListLine};

impl App {
    /// Returns the milliseconds by which clocks step; `None` if they do not move.
    pub(super) fn clock_step(&self) -> Option<i64> {
        match self.display.motion {
            MotionMode::Full => Some(1_000),
            MotionMode::Reduced => Some(10_000),
            MotionMode::Still => None,
        }
    }

    /// Returns the time from which ages are computed, in milliseconds since 1970: the time of the last message, with
    /// reduced motion rounded down to the step of the clocks, so that a message does not move them.
    pub fn clock(&self) -> i64 {
        match self.display.motion {
            MotionMode::Full => self.now,
            MotionMode::Reduced | MotionMode::Still => self.now - self.now.rem_euclid(10_000),
        }
    }

    /// Formats a moment for an age column: the time of day for today, else the date. The text is absolute, so an idle
    /// cockpit needs no timer to stay correct.
    pub fn format_date_or_time(&self, ms: i64) -> String {
        let at = |ms: i64| {
            jiff::Timestamp::from_millisecond(ms).ok().map(|time| time.to_zoned(self.display.zone.clone()).datetime())
        };
        let (Some(then), Some(now)) = (at(ms), at(self.now)) else { return String::new() };
        if then.date() == now.date() {
            then.strftime("%H:%M").to_string()
        } else if then.year() == now.year() {
            then.strftime("%b %e").to_string()
        } else {
            then.strftime("%Y-%m").to_string()
        }
    }

    /// Returns the number of findings that the user decided today; `None` if it was not counted today.
    pub fn decided_today(&self) -> Option<usize> {
        let (since, count) = self.decisions.today?;
        (0..DAY_MS).contains(&self.now.saturating_sub(since)).then_some(count)
    }

    /// Formats the age of a moment for a list: `now`, `5m`, `3h`, `2d`, and after [`MAX_AGE_DAYS`] the date.
    pub fn format_short_age(&self, ms: i64) -> String {
        match self.now.saturating_sub(ms).max(0) / 1000 {
            ..60 => "now".to_owned(),
            seconds if seconds < MAX_AGE_DAYS * 86_400 => format_duration(seconds),
            _ => self.format_date_or_time(ms),
        }
    }

    /// Returns the time after which an age on the screen is wrong; `None` if none is shown. It is never shorter than
    /// [`MIN_AGE_UPDATE`], so that a cockpit that was just left alone stays silent.
    pub fn time_until_ages_change(&self) -> Option<Duration> {
        let height = self.layout().body(Pane::Runs).map_or(0, |area| usize::from(area.height));
        let first = self.run_list.cursor.offset;
        let shown = (first..first + height).filter_map(|line| match self.run_list.line(line) {
            Some(RunListLine::Run(at)) => self.run_list.entries.get(at),
            _ => None,
        });
        let left = shown.filter_map(|entry| {
            let created = self.store.view.run_created_ms(entry.index as usize);
            until_age_changes(self.now.saturating_sub(created).max(0) / 1000)
        });
        left.min().map(|seconds| Duration::from_secs(seconds).max(MIN_AGE_UPDATE))
    }

    /// Formats a moment as date and time.
    pub fn format_date_time(&self, time: jiff::Timestamp) -> String {
        time.to_zoned(self.display.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Formats the age of a moment that is `ms` milliseconds after 1970: `2s`, `3m`, `4h`. Used for activity in
    /// progress.
    pub fn format_age_of(&self, ms: i64) -> String {
        format_duration(self.clock().saturating_sub(ms).max(0) / 1000)
    }
}

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Shortest time between two updates of ages that nothing else updates.
const MIN_AGE_UPDATE: Duration = Duration::from_secs(60);

/// Days from which a list shows the date instead of the age.
const MAX_AGE_DAYS: i64 = 14;

/// Returns the seconds after which the text of an age of `age` seconds changes; `None` for a date.
fn until_age_changes(age: i64) -> Option<u64> {
    let unit = match age {
        ..3600 => 60,
        3600..86_400 => 3600,
        age if age < MAX_AGE_DAYS * 86_400 => 86_400,
        _ => return None,
    };
    u64::try_from(unit - age % unit).ok()
}

/// Formats seconds in one unit: `2s`, `3m`, `4h`, `5d`.
pub fn format_duration(seconds: i64) -> String {
    match seconds {
        s @ ..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86_400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::support::{NOW, app};

    #[test]
    fn an_age_is_now_a_unit_or_a_date() {
        let app = app(160, 48);
        for (seconds, text, change) in [
            (-5, "now", Some(60)),
            (0, "now", Some(60)),
            (59, "now", Some(1)),
            (60, "1m", Some(60)),
            (3_599, "59m", Some(1)),
            (3_600, "1h", Some(3_600)),
            (86_399, "23h", Some(1)),
            (3 * 86_400 + 1, "3d", Some(86_399)),
            (20 * 86_400, "Feb 12", None),
        ] {
            assert_eq!(app.format_short_age(NOW - seconds * 1000), text, "{seconds}");
            assert_eq!(until_age_changes(seconds.max(0)), change, "{seconds}");
        }
    }
}
