//! Defines what a watcher reacts to, git operations in progress, and quiet hours.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;

word_enum!(
    /// Change in the repository that a watcher saw.
    WatchTrigger {
        /// HEAD has a new commit on top of its previous commit.
        Commit = "commit",
        /// A commit with the same parents replaced HEAD's commit.
        Amend = "amend",
        /// The branch was rewritten, or a rebase ended.
        Rebase = "rebase",
        /// HEAD names another branch, or code from elsewhere (a pull, a reset).
        Checkout = "checkout",
        /// Files were edited.
        Worktree = "worktree",
    }
);
word_enum!(
    /// Git operation in progress.
    GitOperation {
        Rebase = "rebase",
        Merge = "merge",
        CherryPick = "cherry-pick",
        Revert = "revert",
        Bisect = "bisect",
    }
);

/// Time span of the day in local time, from a start minute (inclusive) to an end minute (exclusive). An end before
/// the start means the next day; equal minutes mean the whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u16,
    to: u16,
}

/// Number of minutes in a day.
const MINUTES_PER_DAY: u16 = 24 * 60;

impl QuietHours {
    /// Returns the minutes until the span ends, or `None` outside the span. `minute` counts from midnight.
    pub fn minutes_left(self, minute: u16) -> Option<u16> {
        let length = match self.to > self.from {
            true => self.to - self.from,
            false => self.to + MINUTES_PER_DAY - self.from,
        };
        let since = (minute % MINUTES_PER_DAY + MINUTES_PER_DAY - self.from) % MINUTES_PER_DAY;
        (since < length).then(|| length - since)
    }

    /// Returns the minute at which the span ends.
    pub fn end(self) -> MinuteOfDay {
        MinuteOfDay(self.to)
    }
}

/// Minute of the day, counted from midnight, written as `07:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteOfDay(pub u16);

impl fmt::Display for MinuteOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl FromStr for MinuteOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no time of day; write it as 07:30");
        let (hour, minute) = text.trim().split_once(':').ok_or_else(bad)?;
        let number = |text: &str, most: u16| {
            let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number: &u16| digits && *number <= most)
        };
        match (number(hour, 23), number(minute, 59)) {
            (Some(hour), Some(minute)) => Ok(Self(hour * 60 + minute)),
            _ => Err(bad()),
        }
    }
}

impl FromStr for QuietHours {
    type Err = String;

    /// Parses `22:00-07:00`.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once('-') else {
            return Err(format!("{text:?} names no hours; write them as 22:00-07:00"));
        };
        Ok(Self { from: from.parse::<MinuteOfDay>()?.0, to: to.parse::<MinuteOfDay>()?.0 })
    }
}

/// Way in which a watcher detects changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum WatchMode {
    /// The operating system sends file events.
    Events,
    /// The watcher polls, for the given reason.
    Polling {
        /// Reason for a person, for example that the system refused file events.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::inside("09:00-17:30", "12:00", Some(330))]
    #[case::first_minute("09:00-17:30", "09:00", Some(510))]
    #[case::last_minute("09:00-17:30", "17:29", Some(1))]
    #[case::just_over("09:00-17:30", "17:30", None)]
    #[case::before("09:00-17:30", "08:59", None)]
    #[case::late_evening("22:00-07:00", "23:30", Some(450))]
    #[case::midnight("22:00-07:00", "00:00", Some(420))]
    #[case::early_morning("22:00-07:00", "6:59", Some(1))]
    #[case::morning("22:00-07:00", "07:00", None)]
    #[case::noon("22:00-07:00", "12:00", None)]
    #[case::always("00:00-00:00", "00:00", Some(1440))]
    #[case::always_at_noon("00:00-00:00", "12:00", Some(720))]
    #[case::until_midnight("20:00-00:00", "23:59", Some(1))]
    fn minutes_left(#[case] hours: &str, #[case] now: &str, #[case] left: Option<u16>) {
        let hours: QuietHours = hours.parse().expect("hours");
        assert_eq!(hours.minutes_left(now.parse::<MinuteOfDay>().expect("a minute").0), left);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "22",
            "22:00",
            "22:00-",
            "24:00-07:00",
            "22:60-07:00",
            "-1:00-2:00",
            "22:00-7",
            "a:b-c:d",
            "001:00-2:00",
        ] {
            assert!(text.parse::<QuietHours>().is_err(), "{text:?}");
        }
    }
}
