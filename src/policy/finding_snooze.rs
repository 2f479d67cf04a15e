//! Decides who may snooze a finding for how long, and whether a finding is snoozed. The time is a parameter.

use jiff::SignedDuration;
use thiserror::Error;

use crate::domain::{Actor, FindingSnooze, FindingStatus, Priority, SnoozeEnd, Time};

/// Longest snooze of a p0 finding, in hours: 7 days. Own choice: a release goes out in that time.
const MAX_URGENT_SNOOZE_HOURS: i64 = 7 * 24;

/// Rule that forbids a snooze.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SnoozeRefusal {
    /// An assistant or the engine asked.
    #[error("only the user snoozes findings")]
    NotTheUser,
    /// The finding needs no attention any more.
    #[error("it is {0} already")]
    Decided(FindingStatus),
    /// The end is not in the future.
    #[error("that time is over")]
    Over,
    /// A p0 finding would be out of sight for too long.
    #[error("a p0 finding is snoozed for 7 days at most, and only until a time")]
    TooUrgent,
}

/// Finding as far as a snooze depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnoozeSubject {
    /// Current status.
    pub status: FindingStatus,
    /// Current priority.
    pub priority: Priority,
}

fn urgent_end(from: Time) -> Time {
    from.checked_add(SignedDuration::from_hours(MAX_URGENT_SNOOZE_HOURS)).unwrap_or(Time::MAX)
}

/// Checks a request for a snooze at time `now`.
///
/// # Errors
///
/// Returns the rule that forbids the snooze.
pub fn may_snooze(actor: Actor, subject: SnoozeSubject, end: &SnoozeEnd, now: Time) -> Result<(), SnoozeRefusal> {
    if actor != Actor::User {
        return Err(SnoozeRefusal::NotTheUser);
    }
    if !subject.status.is_undecided() {
        return Err(SnoozeRefusal::Decided(subject.status));
    }
    match end {
        SnoozeEnd::Time(until) if *until <= now => Err(SnoozeRefusal::Over),
        SnoozeEnd::Time(until) if subject.priority > Priority::P0 || *until <= urgent_end(now) => Ok(()),
        SnoozeEnd::FileChange { .. } if subject.priority > Priority::P0 => Ok(()),
        SnoozeEnd::Time(_) | SnoozeEnd::FileChange { .. } => Err(SnoozeRefusal::TooUrgent),
    }
}

/// Returns true if a finding is out of sight at time `now`. `content` is the hash of the file that a
/// [`SnoozeEnd::FileChange`] names, as it is now. A finding that has become p0 since comes back after 7 days.
pub fn is_snoozed(snooze: &FindingSnooze, subject: SnoozeSubject, now: Time, content: &str) -> bool {
    let is_held = match &snooze.until {
        None => false,
        Some(SnoozeEnd::Time(until)) => now < *until,
        Some(SnoozeEnd::FileChange { content: before, .. }) => before == content,
    };
    is_held && subject.status.is_undecided() && (subject.priority > Priority::P0 || now < urgent_end(snooze.at))
}

/// Returns the time at which a finding comes back by itself; `None` if only a change of its file brings it back.
pub fn snooze_wake_time(snooze: &FindingSnooze, priority: Priority) -> Option<Time> {
    let until = match &snooze.until {
        Some(SnoozeEnd::Time(until)) => Some(*until),
        _ => None,
    };
    let urgent = (priority == Priority::P0).then(|| urgent_end(snooze.at));
    until.into_iter().chain(urgent).min()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::TriageAction;

    const NOW: &str = "2026-03-04T12:00:00Z";

    fn time(text: &str) -> Time {
        text.parse().expect("a time")
    }

    fn until(text: &str) -> SnoozeEnd {
        match text {
            "change" => SnoozeEnd::FileChange { path: "a.py".to_owned(), content: "one".to_owned() },
            time => SnoozeEnd::Time(self::time(time)),
        }
    }

    #[rstest]
    #[case(Actor::User, FindingStatus::Open, Priority::P1, "2026-12-01T00:00:00Z", Ok(()))]
    #[case(Actor::User, FindingStatus::Unresolved, Priority::P3, "change", Ok(()))]
    #[case(Actor::User, FindingStatus::Open, Priority::P0, "2026-03-11T12:00:00Z", Ok(()))]
    #[case(Actor::User, FindingStatus::Open, Priority::P0, "2026-03-11T12:00:01Z", Err(SnoozeRefusal::TooUrgent))]
    #[case(Actor::User, FindingStatus::Open, Priority::P0, "change", Err(SnoozeRefusal::TooUrgent))]
    #[case(Actor::User, FindingStatus::Open, Priority::P1, NOW, Err(SnoozeRefusal::Over))]
    #[case(
        Actor::User,
        FindingStatus::Addressed,
        Priority::P1,
        "change",
        Err(SnoozeRefusal::Decided(FindingStatus::Addressed))
    )]
    #[case(Actor::Assistant, FindingStatus::Open, Priority::P3, "change", Err(SnoozeRefusal::NotTheUser))]
    #[case(Actor::Engine, FindingStatus::Open, Priority::P3, "change", Err(SnoozeRefusal::NotTheUser))]
    fn who_may_snooze_for_how_long(
        #[case] actor: Actor,
        #[case] status: FindingStatus,
        #[case] priority: Priority,
        #[case] end: &str,
        #[case] expected: Result<(), SnoozeRefusal>,
    ) {
        assert_eq!(may_snooze(actor, SnoozeSubject { status, priority }, &until(end), time(NOW)), expected);
    }

    #[rstest]
    #[case("2026-03-04T12:00:01Z", FindingStatus::Open, Priority::P1, NOW, "", true)]
    #[case::the_time_has_come("2026-03-04T12:00:00Z", FindingStatus::Open, Priority::P1, NOW, "", false)]
    #[case("change", FindingStatus::Open, Priority::P1, NOW, "one", true)]
    #[case::the_file_is_another("change", FindingStatus::Open, Priority::P1, NOW, "two", false)]
    #[case::the_file_is_gone("change", FindingStatus::Open, Priority::P1, NOW, "", false)]
    #[case::decided("change", FindingStatus::Dismissed, Priority::P1, NOW, "one", false)]
    #[case::it_became_urgent("change", FindingStatus::Open, Priority::P0, "2026-03-09T12:00:00Z", "one", false)]
    #[case::it_became_urgent_but_not_long_ago("change", FindingStatus::Open, Priority::P0, NOW, "one", true)]
    fn a_snooze_ends_by_itself(
        #[case] end: &str,
        #[case] status: FindingStatus,
        #[case] priority: Priority,
        #[case] now: &str,
        #[case] content: &str,
        #[case] expected: bool,
    ) {
        let snooze = FindingSnooze {
            finding_id: "f_0000000000000001".parse().expect("an id"),
            until: Some(until(end)),
            previous: None,
            actor: Actor::User,
            at: time("2026-03-02T12:00:00Z"),
            action: TriageAction::Set,
            group: "t_1".to_owned(),
        };
        let subject = SnoozeSubject { status, priority };
        assert_eq!(is_snoozed(&snooze, subject, time(now), content), expected);
        assert!(!is_snoozed(&FindingSnooze { until: None, ..snooze }, subject, time(now), content));
    }
}
