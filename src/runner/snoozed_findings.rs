//! Snoozes findings, and tells which are snoozed now: reads the snoozes, the clock's time and the named files; `policy`
//! decides.

use std::collections::HashMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use super::merged_reports::follow_merged;
use super::parse_snooze;
use crate::config::ClockAndIds;
use crate::domain::{Actor, FindingId, FindingSnooze, FindingStatus, SnoozeEnd, Time, TriageAction, content_hash};
use crate::git::Repo;
use crate::policy::{self, SnoozeRefusal, SnoozeSubject};
use crate::store::{FindingRow, Store, StoreError, StoreView, snooze_after};

/// Longest snooze in days. Own choice: a longer one is a dismissal.
const MAX_SNOOZE_DAYS: i64 = 366;

/// End of a snooze as the user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnoozeWish {
    /// Until this time.
    Until(Time),
    /// Until the file of the finding changes.
    FileChange,
    /// The snooze ends now.
    Off,
}

impl SnoozeWish {
    /// Parses the wish at time `now`: `3d`, `2w`, `12h`, `until 14:00`, `2026-12-01` (the begin of that day in `zone`),
    /// `change` or `off`.
    ///
    /// # Errors
    ///
    /// A description of the problem, with the correct syntax.
    pub fn parse(text: &str, now: Time, zone: &TimeZone) -> Result<Self, String> {
        let text = text.trim();
        let bad =
            || format!("{text:?} is no time; write 3d, 2w, 12h, 2026-12-01, change (until the file changes) or off");
        match text {
            "change" | "changed" | "file" => return Ok(Self::FileChange),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let here = now.to_zoned(zone.clone());
        let date = text.strip_prefix("until").unwrap_or(text).trim();
        let until = if let Ok(date) = date.parse::<Date>() {
            date.to_zoned(zone.clone()).map_err(|_| bad())?
        } else if let Some(span) = parse_long_span(text) {
            here.checked_add(span).map_err(|_| bad())?
        } else {
            parse_snooze(text, now, zone).ok().flatten().ok_or_else(bad)?.to_zoned(zone.clone())
        };
        match here.checked_add(MAX_SNOOZE_DAYS.days()) {
            Ok(longest) if until <= longest => Ok(Self::Until(until.timestamp())),
            _ => Err(format!("{text:?} is longer than {MAX_SNOOZE_DAYS} days; dismiss the finding instead")),
        }
    }
}

/// Parses days and weeks, which may be longer than a snooze of automatic reviews.
fn parse_long_span(text: &str) -> Option<Span> {
    let (number, unit) = text.split_at_checked(text.find(|c: char| !c.is_ascii_digit())?)?;
    let number: i64 = number.parse().ok().filter(|number| (1..=10_000).contains(number))?;
    match unit.trim() {
        "d" | "day" | "days" => Some(number.days()),
        "w" | "week" | "weeks" => Some(number.weeks()),
        _ => None,
    }
}

/// Error of a request for a snooze.
#[derive(Debug, thiserror::Error)]
pub enum SnoozeError {
    /// A rule forbids it, so no finding was snoozed.
    #[error("{finding} cannot be snoozed: {refusal}")]
    Refused {
        /// Finding that may not be snoozed.
        finding: FindingId,
        /// Rule that forbids it.
        refusal: SnoozeRefusal,
    },
    /// The store does not know the finding.
    #[error("the store has no finding {0}")]
    Unknown(FindingId),
    /// The file of the finding cannot be read.
    #[error("the file of {finding} cannot be read: {reason}")]
    NoFile {
        /// Finding in the file.
        finding: FindingId,
        /// Error of the worktree.
        reason: String,
    },
    /// The store cannot be locked, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Snoozes findings as one step that an undo takes back, or ends their snoozes. Returns the stored lines; findings whose
/// snooze would not change are left out. A report that a panel lists under another id stands for the finding of the list.
///
/// # Errors
///
/// If a finding is unknown or may not be snoozed, or the store fails. No finding is snoozed then.
pub fn snooze_findings(
    (repo, store): (&Repo, &Store),
    ambient: &ClockAndIds,
    chosen: &[FindingId],
    wish: SnoozeWish,
    actor: Actor,
) -> Result<Vec<FindingSnooze>, SnoozeError> {
    let view = store.view()?;
    let (at, group) = (ambient.now(), ambient.new_run_id().as_str().replacen("ar_", "t_", 1));
    let listed = follow_merged(store, &view, chosen)?;
    let mut ends = Vec::with_capacity(listed.len());
    for id in &listed {
        let index = view.finding_index(id.as_str()).ok_or_else(|| SnoozeError::Unknown(id.clone()))?;
        let row = view.finding(index);
        let until = match wish {
            SnoozeWish::Off if actor == Actor::User => None,
            SnoozeWish::Off => {
                return Err(SnoozeError::Refused { finding: id.clone(), refusal: SnoozeRefusal::NotTheUser });
            }
            SnoozeWish::Until(time) => Some(SnoozeEnd::Time(time)),
            SnoozeWish::FileChange => {
                let path = row.path.to_owned();
                let content =
                    hash_file(repo, &path).map_err(|reason| SnoozeError::NoFile { finding: id.clone(), reason })?;
                Some(SnoozeEnd::FileChange { path, content })
            }
        };
        if let Some(end) = &until {
            policy::may_snooze(actor, subject_of(&row), end, at)
                .map_err(|refusal| SnoozeError::Refused { finding: id.clone(), refusal })?;
        }
        ends.push((id.clone(), until));
    }
    store.snooze_findings(|log| {
        let line = |(finding_id, until): (FindingId, Option<SnoozeEnd>)| {
            let previous = snooze_after(log, &finding_id);
            let (action, group) = (TriageAction::Set, group.clone());
            (previous != until).then_some(FindingSnooze { finding_id, until, previous, actor, at, action, group })
        };
        Ok(ends.into_iter().filter_map(line).collect())
    })
}

fn subject_of(row: &FindingRow<'_>) -> SnoozeSubject {
    SnoozeSubject { status: row.status, priority: row.priority }
}

/// Hashes a file of the worktree; empty if there is none.
fn hash_file(repo: &Repo, path: &str) -> Result<String, String> {
    let files = repo.worktree_files().map_err(|error| error.to_string())?;
    let file = files.read(path).map_err(|error| error.to_string())?;
    Ok(file.map(|file| content_hash([file.content.as_slice()])).unwrap_or_default())
}

/// Findings that are snoozed at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnoozedFindings {
    by_id: HashMap<String, ActiveSnooze>,
}

/// Snooze that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveSnooze {
    /// End that the user chose.
    pub until: SnoozeEnd,
    /// Time at which the finding comes back by itself; `None` if only a change of its file brings it back.
    pub wakes_at: Option<Time>,
}

impl SnoozedFindings {
    /// Reads the snoozes of the findings in `view` that are not over at time `now`. Without `repo`, a snooze until a file
    /// changes is over.
    ///
    /// # Errors
    ///
    /// If the snoozes cannot be read.
    pub fn read(repo: Option<&Repo>, store: &Store, view: &StoreView, now: Time) -> Result<Self, StoreError> {
        let mut by_id = HashMap::new();
        let mut contents: HashMap<String, String> = HashMap::new();
        for snooze in store.snoozes()? {
            let Some(index) = view.finding_index(snooze.finding_id.as_str()) else { continue };
            let row = view.finding(index);
            let Some(until) = snooze.until.clone() else { continue };
            let content = match &until {
                SnoozeEnd::Time(_) => "",
                SnoozeEnd::FileChange { path, .. } => {
                    // A file that cannot be read counts as changed.
                    let hash = |path: &str| repo.map_or(Err("not read".to_owned()), |repo| hash_file(repo, path));
                    let read = |path: &String| hash(path).unwrap_or_else(|error| error);
                    contents.entry(path.clone()).or_insert_with_key(read).as_str()
                }
            };
            if policy::is_snoozed(&snooze, subject_of(&row), now, content) {
                let wakes_at = policy::snooze_wake_time(&snooze, row.priority);
                by_id.insert(row.id.to_owned(), ActiveSnooze { until, wakes_at });
            }
        }
        Ok(Self { by_id })
    }

    /// Returns findings that are snoozed until a time.
    #[cfg(test)]
    pub fn for_test(until: &[(&str, Time)]) -> Self {
        let active = |until: Time| ActiveSnooze { until: SnoozeEnd::Time(until), wakes_at: Some(until) };
        Self { by_id: until.iter().map(|(id, until)| ((*id).to_owned(), active(*until))).collect() }
    }

    /// Returns the snooze of a finding; `None` if it is not snoozed.
    pub fn get(&self, id: &str) -> Option<&ActiveSnooze> {
        if self.by_id.is_empty() { None } else { self.by_id.get(id) }
    }

    /// Returns true if the finding is snoozed. `status` is its current status: a decided finding is not snoozed.
    pub fn hides(&self, id: &str, status: FindingStatus) -> bool {
        self.get(id).is_some() && status.is_undecided()
    }

    /// Returns the time at which the next finding comes back by itself.
    pub fn next_wake(&self) -> Option<Time> {
        self.by_id.values().filter_map(|snooze| snooze.wakes_at).min()
    }

    /// Removes the snoozes that are over at time `now`. Returns true if there was one.
    pub fn expire(&mut self, now: Time) -> bool {
        let before = self.by_id.len();
        self.by_id.retain(|_, snooze| snooze.wakes_at.is_none_or(|at| at > now));
        before != self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// 12:30 UTC, 13:30 in Berlin, on the day before the clocks go forward.
    const NOW: &str = "2026-03-28T12:30:00Z";

    fn wish(text: &str) -> Result<SnoozeWish, String> {
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        SnoozeWish::parse(text, NOW.parse().expect("a time"), &zone)
    }

    #[rstest]
    #[case("3d", "2026-03-31T11:30:00Z")]
    #[case(" 2w ", "2026-04-11T11:30:00Z")]
    #[case("10 days", "2026-04-07T11:30:00Z")]
    #[case("12h", "2026-03-29T00:30:00Z")]
    #[case("2026-12-01", "2026-11-30T23:00:00Z")]
    #[case("until 2026-12-01", "2026-11-30T23:00:00Z")]
    #[case("until 14:00", "2026-03-28T13:00:00Z")]
    fn times(#[case] text: &str, #[case] until: &str) {
        assert_eq!(wish(text), Ok(SnoozeWish::Until(until.parse().expect("a time"))));
    }

    #[test]
    fn other_wishes_and_mistakes() {
        assert_eq!(wish("change"), Ok(SnoozeWish::FileChange));
        assert_eq!(wish("off"), Ok(SnoozeWish::Off));
        for (text, said) in [
            ("", "is no time; write 3d"),
            ("soon", "is no time; write 3d"),
            ("0d", "is no time; write 3d"),
            ("2026-13-01", "is no time; write 3d"),
            ("53w", "is longer than 366 days"),
            ("2030-01-01", "is longer than 366 days"),
        ] {
            let error = wish(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn time_alone_brings_a_finding_back() {
        let active = |wakes_at: Option<&str>| ActiveSnooze {
            until: SnoozeEnd::Time(Time::UNIX_EPOCH),
            wakes_at: wakes_at.map(|time| time.parse().expect("a time")),
        };
        let by_id = [("a", Some("2026-03-28T13:00:00Z")), ("b", Some("2026-03-29T13:00:00Z")), ("c", None)];
        let by_id = by_id.map(|(id, time)| (id.to_owned(), active(time)));
        let mut snoozed = SnoozedFindings { by_id: by_id.into() };
        assert_eq!(snoozed.next_wake(), "2026-03-28T13:00:00Z".parse().ok());
        assert!(!snoozed.expire("2026-03-28T12:59:59Z".parse().expect("a time")));
        assert!(snoozed.expire("2026-03-28T13:00:00Z".parse().expect("a time")));
        assert_eq!((snoozed.by_id.len(), snoozed.hides("a", FindingStatus::Open)), (2, false));
        assert!(snoozed.hides("c", FindingStatus::Unresolved) && !snoozed.hides("c", FindingStatus::Dismissed));
    }
}
