//! Formats moments and durations as lists and pages show them.

use super::App;

impl App {
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

    /// Formats a moment as date and time.
    pub fn format_date_time(&self, time: jiff::Timestamp) -> String {
        time.to_zoned(self.display.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Formats the age of a moment that is `ms` milliseconds after 1970: `2s`, `3m`, `4h`. Used for activity in
    /// progress.
    pub fn format_age_of(&self, ms: i64) -> String {
        format_duration(self.now.saturating_sub(ms).max(0) / 1000)
    }
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
