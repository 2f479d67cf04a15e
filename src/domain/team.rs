//! Defines the records that the machines of a team exchange: decisions about findings, and reviews.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{
    Actor, Coverage, DecisionFacts, Finding, FindingId, FindingStatus, HeldBackPlace, RunRecord, Time, TriageAction,
};

word_enum!(
    /// Part of a machine's records that the team receives.
    #[derive(Default)]
    ShareMode {
        /// Decisions about findings: id, status, reason, author and time.
        Decisions = "decisions",
        /// Decisions, and reviews with their findings, without code.
        #[default]
        Findings = "findings",
        /// The same with the quoted code and the proposed changes.
        All = "all",
    }
);

/// Time of a hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014): it follows the wall clock, and never
/// falls behind a time that the machine has seen. So a decision that was made after another one is known is later,
/// whatever the wall clocks say. Written as `[ms, count]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(i64, u32)", into = "(i64, u32)")]
pub struct TeamClock {
    /// Milliseconds since 1970.
    pub ms: i64,
    /// Counts events within one millisecond, and while the wall clock is behind.
    pub count: u32,
}

impl TeamClock {
    /// Greatest count within a millisecond, which others take, too. After it, the clock goes on to the next millisecond.
    pub const MAX_COUNT: u32 = 1 << 30;
    /// How far ahead of a wall clock a time may be so that it counts: 366 days, in milliseconds. Clocks that are wrong by weeks
    /// pass, and nobody can push the clocks of others to the end of time.
    pub const MAX_AHEAD_MS: i64 = 366 * 86_400_000;

    /// Returns the time of an own event at `wall`, after all times that the clock has seen.
    #[must_use]
    pub fn tick(self, wall: Time) -> Self {
        let ms = wall.as_millisecond();
        if ms > self.ms {
            Self { ms, count: 0 }
        } else if self.count < Self::MAX_COUNT {
            Self { ms: self.ms, count: self.count + 1 }
        } else {
            Self { ms: self.ms.saturating_add(1), count: 0 }
        }
    }

    /// Returns true if the time is so far ahead of a wall clock that it does not count.
    pub fn is_ahead_of(self, wall: Time) -> bool {
        self.ms > wall.as_millisecond().saturating_add(Self::MAX_AHEAD_MS)
    }
}

impl From<(i64, u32)> for TeamClock {
    fn from((ms, count): (i64, u32)) -> Self {
        Self { ms, count }
    }
}

impl From<TeamClock> for (i64, u32) {
    fn from(clock: TeamClock) -> Self {
        (clock.ms, clock.count)
    }
}

/// Name of a machine in its team: lower-case letters, digits and hyphens, so that it can be a part of a ref and a file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineName(String);

impl MachineName {
    /// Maximum number of characters.
    pub const MAX_LENGTH: usize = 48;
    /// Begin of the names of machines that exist for one job of continuous integration.
    pub const CI_PREFIX: &'static str = "ci-";
    /// Name of the log that all jobs of continuous integration share, because a log for each of them would fill the remote.
    pub const CI_LOG: &'static str = "ci";

    /// Builds a name from the name of a host and something that is unique: characters that a name may not have become
    /// hyphens.
    pub fn from_host(host: &str, unique: &str) -> Self {
        let clean = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
        };
        let host: String = clean(host.split('.').next().unwrap_or_default()).chars().take(24).collect();
        let host = host.trim_matches('-');
        let unique: String = clean(unique).chars().take(Self::MAX_LENGTH - 25).collect();
        let name = if host.is_empty() { unique } else { format!("{host}-{unique}") };
        let name = name.trim_matches('-');
        Self(if name.is_empty() { "machine".to_owned() } else { name.to_owned() })
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for a machine that exists for one job of continuous integration.
    pub fn is_ci(&self) -> bool {
        self.0.starts_with(Self::CI_PREFIX)
    }

    /// Returns true if the records of this machine do not count: its name is among the forgotten ones, or that of the log which
    /// it shares with others.
    pub fn is_forgotten(&self, forgotten: &[Self]) -> bool {
        forgotten.iter().any(|name| name == self || (self.is_ci() && name.0 == Self::CI_LOG))
    }
}

impl TryFrom<String> for MachineName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match !text.is_empty()
            && text.len() <= Self::MAX_LENGTH
            && text.chars().all(is_allowed)
            && !text.starts_with('-')
            && !text.ends_with('-')
        {
            true => Ok(Self(text)),
            false => Err(format!(
                "{text:?} is not a name of a machine: 1 to {} lower-case letters, digits and inner hyphens",
                Self::MAX_LENGTH
            )),
        }
    }
}

impl FromStr for MachineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

impl From<MachineName> for String {
    fn from(name: MachineName) -> Self {
        name.0
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Identity of a decision in the team, and its place in the order of all decisions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecisionId {
    /// Time of the decision.
    pub clock: TeamClock,
    /// Machine on which it was made.
    pub machine: MachineName,
}

/// Member of a team, as git knows the person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TeamPerson {
    /// `user.name` of git.
    pub name: String,
    /// `user.email` of git.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
}

impl TeamPerson {
    /// Returns true if both are one person: the same address, or the same name where one has no address.
    pub fn is_same(&self, other: &Self) -> bool {
        match self.email.is_empty() || other.email.is_empty() {
            true => self.name == other.name,
            false => self.email.eq_ignore_ascii_case(&other.email),
        }
    }

    /// Returns the name, or the address of a person without a name.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.email } else { &self.name }
    }
}

/// Decision about a finding, as the team receives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SharedDecision {
    /// Identity, and place in the order of all decisions.
    #[serde(flatten)]
    pub id: DecisionId,
    /// Person at the machine.
    pub person: TeamPerson,
    /// Author of the change: the person, or an assistant that works for the person.
    pub actor: Actor,
    /// Finding that the decision is about.
    pub finding_id: FindingId,
    /// New status.
    pub status: FindingStatus,
    /// Reason for the change; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Wall clock of the machine.
    pub at: Time,
    /// Whether the change was set, undone or redone.
    pub action: TriageAction,
    /// Decisions that its author knew, and which this one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<DecisionId>,
    /// Group of all findings that were triaged by one keypress, on the machine of the decision, so that another machine of the
    /// person undoes them together; empty in records of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// If true, a job of continuous integration decided, see [`super::Disposition::ci`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ci: bool,
}

impl SharedDecision {
    /// Returns the facts by which the record is one of a decision.
    pub fn decision_facts(&self) -> DecisionFacts {
        let Self { actor, ci, status, action, at, .. } = *self;
        DecisionFacts { actor, ci, status, action, at }
    }

    /// Returns true for an undo after which its author has not decided.
    pub fn is_withdrawal(&self) -> bool {
        self.action == TriageAction::Undo && self.status.is_undecided()
    }
}

/// Completed review, as the team receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedReview {
    /// Machine on which the review ran.
    pub machine: MachineName,
    /// Person at the machine.
    pub person: TeamPerson,
    /// Record of the run at its end.
    pub run: RunRecord,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Its coverage, with the lists of files.
    pub coverage: Coverage,
    /// Reports that the review held back, because their findings are dismissed on the machine. `None` in records of older
    /// versions: they do not say whether the review is silent about a place or holds a report back there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back_places: Option<Vec<HeldBackPlace>>,
}

/// Learned patterns of one programming language, as the team receives them. The last record of a machine for a language counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedPatterns {
    /// Machine that has learned them.
    pub machine: MachineName,
    /// Person at the machine.
    pub person: TeamPerson,
    /// Day (UTC) on which they became a record; `None` in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Name of the programming language.
    pub language: String,
    /// Patterns in the form of `revdeck knowledge export`, with the counts of this machine alone.
    pub export: serde_json::Value,
}

/// Line of a segment: a record of one machine for its team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TeamRecord {
    /// A decision about a finding.
    Decision(SharedDecision),
    /// A completed review.
    Review(Box<SharedReview>),
    /// Learned patterns.
    Patterns(Box<SharedPatterns>),
}

impl TeamRecord {
    /// Returns the machine that made the record.
    pub fn machine(&self) -> &MachineName {
        match self {
            Self::Decision(decision) => &decision.id.machine,
            Self::Review(review) => &review.machine,
            Self::Patterns(patterns) => &patterns.machine,
        }
    }
}

/// Origin of a disposition that another machine of the team has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamOrigin {
    /// Identity of the decision.
    #[serde(flatten)]
    pub id: DecisionId,
    /// Person who decided, or for whom the assistant works.
    pub person: TeamPerson,
}

/// Origin of a run that another machine of the team has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// Machine on which the run was made.
    pub machine: MachineName,
    /// Person at the machine.
    pub person: TeamPerson,
}

impl RunRecord {
    /// Returns true for a run of another machine whose records do not count, see [`MachineName::is_forgotten`].
    pub fn is_of_forgotten(&self, forgotten: &[MachineName]) -> bool {
        self.team.as_ref().is_some_and(|origin| origin.machine.is_forgotten(forgotten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_never_goes_back_and_counts_within_a_millisecond() {
        let at = |ms| Time::from_millisecond(ms).expect("a time");
        let start = TeamClock { ms: 1_000, count: 3 };
        for (wall, expected) in [(1_001, (1_001, 0)), (1_000, (1_000, 4)), (2, (1_000, 4))] {
            assert_eq!(<(i64, u32)>::from(start.tick(at(wall))), expected, "{wall}");
        }
        for (count, expected) in
            [(TeamClock::MAX_COUNT - 1, (7, TeamClock::MAX_COUNT)), (TeamClock::MAX_COUNT, (8, 0)), (u32::MAX, (8, 0))]
        {
            assert_eq!(<(i64, u32)>::from(TeamClock { ms: 7, count }.tick(at(1))), expected, "{count}");
        }
    }

    #[test]
    fn a_clock_counts_up_to_a_year_ahead() {
        let wall = Time::from_millisecond(1_000).expect("a time");
        let limit = 1_000 + TeamClock::MAX_AHEAD_MS;
        for (ms, expected) in [(0, false), (limit, false), (limit + 1, true), (i64::MAX, true)] {
            assert_eq!(TeamClock { ms, count: 0 }.is_ahead_of(wall), expected, "{ms}");
        }
    }

    #[test]
    fn a_machine_is_forgotten_by_its_name_or_by_that_of_the_shared_log() {
        let name = |text: &str| -> MachineName { text.parse().expect("a name") };
        for (machine, forgotten, expected) in [
            ("ada-1", &[][..], false),
            ("ada-1", &["bob-1", "ada-1"][..], true),
            ("ada-1", &["ci"][..], false),
            ("ci-7", &["ci"][..], true),
            ("ci-7", &["ci-8"][..], false),
        ] {
            let forgotten: Vec<MachineName> = forgotten.iter().map(|text| name(text)).collect();
            assert_eq!(name(machine).is_forgotten(&forgotten), expected, "{machine} {forgotten:?}");
        }
    }

    #[test]
    fn names_of_machines_are_parts_of_refs_and_files() {
        for bad in ["", "-a", "a-", "A", "a/b", "..", "a.lock", "a b", &"x".repeat(49)] {
            assert!(bad.parse::<MachineName>().is_err(), "{bad:?}");
        }
        for (host, unique, expected) in [
            ("lovelace.local", "3f9a2c", "lovelace-3f9a2c"),
            ("Ada's MacBook", "3f9a2c", "ada-s-macbook-3f9a2c"),
            ("日本", "3F", "3f"),
            ("", "", "machine"),
        ] {
            let name = MachineName::from_host(host, unique);
            assert_eq!(name.as_str(), expected);
            assert_eq!(name.as_str().parse::<MachineName>().as_ref(), Ok(&name));
        }
        let long = MachineName::from_host(&"h".repeat(100), &"u".repeat(100));
        assert_eq!(long.as_str().parse::<MachineName>(), Ok(long));
    }
}
