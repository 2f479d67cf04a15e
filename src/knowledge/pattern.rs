//! Defines a pattern: an abstract mistake with its fix, or an abstract piece of code that is a known false alarm.
//!
//! - Nothing counts twice. Each origin has its own count, and merging takes the larger count per origin (a grow-only
//!   counter).
//! - Two machines may see the same commits. Therefore the frequency of a pattern is the maximum over the origins, not
//!   the sum. Outcomes of findings are summed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::form::Form;
use super::{builtin_patterns, descriptions, rank};
use crate::domain::{Kind, PatternId, Time, is_default, word_enum};

word_enum!(
    /// Claim of a pattern about code with its broken form.
    PatternStance {
        /// The code was wrong and was changed to the fixed form.
        Mistake = "mistake",
        /// The code was reported and the report was dismissed; there is no fixed form.
        FalseAlarm = "false_alarm",
    }
);
word_enum!(
    /// Kind of edit from the broken to the fixed form, found by comparing both forms.
    EditKind {
        WrongOperator = "wrong_operator",
        WrongCondition = "wrong_condition",
        MissingCheck = "missing_check",
        WrongArgument = "wrong_argument",
        MissingArgument = "missing_argument",
        WrongCall = "wrong_call",
        WrongValue = "wrong_value",
        WrongType = "wrong_type",
        MissingStatement = "missing_statement",
        NeedlessStatement = "needless_statement",
        MissingErrorHandling = "missing_error_handling",
        /// An edit in the head of a declaration, of any kind.
        WrongDeclaration = "wrong_declaration",
        Other = "other",
    }
);
word_enum!(
    /// First source of a pattern.
    PatternOrigin {
        /// Findings, fixes, dismissals or history on this machine.
        Learned = "learned",
        /// Part of revdeck.
        Base = "base",
        /// A file that somebody exported.
        Imported = "imported",
    }
);
word_enum!(
    /// Evidence that taught a pattern; each kind has its own weight in `confidence`.
    PatternEvidence {
        /// A later review confirmed that the finding is gone, and this edit is the reason.
        Addressed = "addressed",
        /// A person applied a suggestion or a fix.
        Applied = "applied",
        /// A person dismissed the finding with a reason.
        Dismissed = "dismissed",
        /// A commit in the history whose message says that it fixes something.
        History = "history",
        /// Written by revdeck's authors.
        Curated = "curated",
    }
);

impl PatternStance {
    /// Returns the id of a pattern with this stance.
    pub fn pattern_id(self, language: &str, kind: Kind, broken: &str, fixed: &str) -> PatternId {
        match self {
            Self::Mistake => PatternId::from_forms(language, broken, fixed),
            Self::FalseAlarm => PatternId::from_false_alarm(language, broken, kind),
        }
    }
}

impl EditKind {
    /// Returns the kind of finding for a pattern that no finding has taught.
    pub fn default_kind(self) -> Kind {
        match self {
            Self::MissingErrorHandling => Kind::ErrorHandling,
            _ => Kind::Correctness,
        }
    }
}

/// Counts of a pattern at one origin. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternCount {
    /// Number of times that the edit, or the dismissal, was seen.
    pub frequency: u32,
    /// Number of findings that the pattern raised and that were addressed. For a false alarm: the number of similar
    /// findings dismissed after the pattern was known.
    #[serde(default)]
    pub successes: u32,
    /// Number of findings that the pattern raised and that were dismissed. For a false alarm: the number of similar
    /// findings that were addressed.
    #[serde(default)]
    pub failures: u32,
}

/// Outcomes of raised findings in one month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthlyOutcomes {
    /// Successes in the month, counted as in [`PatternCount::successes`].
    pub successes: u32,
    /// Failures in the month, counted as in [`PatternCount::failures`].
    pub failures: u32,
}

/// Learned pattern of one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// Identity, see [`PatternStance::pattern_id`].
    pub id: PatternId,
    /// Name of the language, see [`super::stdlib_names`].
    pub language: String,
    /// Claim about code with the broken form.
    pub stance: PatternStance,
    /// Kind of edit from the broken to the fixed form.
    pub edit: EditKind,
    /// Kind of the finding that taught the pattern, or the kind under which it is raised.
    pub kind: Kind,
    /// Description on one line, generated from the forms or written for a curated pattern.
    pub description: String,
    /// Broken form, as the text of a [`Form`].
    pub broken: String,
    /// Fixed form; empty when the code is to be removed, and for a false alarm.
    #[serde(default)]
    pub fixed: String,
    /// Instruction on one line, with the same source as `description`.
    #[serde(default)]
    pub instruction: String,
    /// Strongest evidence that taught the pattern.
    pub evidence: PatternEvidence,
    /// First source of the pattern.
    pub origin: PatternOrigin,
    /// Counts by origin: the random id of a machine, or `base`.
    pub counts: BTreeMap<String, PatternCount>,
    /// Counts of this machine, copied from `counts` when the cache is read; not stored.
    #[serde(skip)]
    pub here: PatternCount,
    /// Time of the first sighting; the Unix epoch means never.
    pub first_seen: Time,
    /// Time of the last sighting; the Unix epoch means never.
    pub last_seen: Time,
    /// Time of the last match; the matching code is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_matched: Option<Time>,
    /// Outcomes by month, for example `2026-11`; the newest 24 months.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub months: BTreeMap<String, MonthlyOutcomes>,
    /// Number of fixes on this machine that failed their check, were dropped or were undone, for findings that the
    /// pattern raised or with the edit of the pattern. Not exported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub setbacks: u32,
    /// Other kinds of findings that the same edit fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Kind>,
    /// Representative of the group of similar patterns; `None` for the representative itself. Computed when the cache
    /// is read; not stored.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub group: Option<PatternId>,
    /// If true, the pattern is stored but not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
}

/// Maximum number of origins per pattern; counts of more machines add no information.
pub const MAX_ORIGINS: usize = 64;

impl PatternCount {
    /// Merges two counts of the same origin. Counts only grow, so the larger value is the newer one.
    fn max_of_each(self, other: Self) -> Self {
        Self {
            frequency: self.frequency.max(other.frequency),
            successes: self.successes.max(other.successes),
            failures: self.failures.max(other.failures),
        }
    }
}

/// Truncates a time to the day in UTC.
pub fn truncate_to_day(at: Time) -> Time {
    const SECONDS: i64 = 86_400;
    Time::from_second(at.as_second().div_euclid(SECONDS) * SECONDS).unwrap_or(at)
}

impl Pattern {
    /// Creates a pattern from its forms, with generated texts, evidence from history, no counts and no times.
    pub fn from_forms(
        language: &str,
        stance: PatternStance,
        edit: EditKind,
        kind: Kind,
        broken: &Form,
        fixed: &Form,
    ) -> Self {
        let (description, instruction) = (
            descriptions::build_description(stance, edit, kind, broken, fixed),
            descriptions::build_instruction(stance, edit, kind, broken, fixed),
        );
        let (broken, fixed) = (broken.to_string(), fixed.to_string());
        Self {
            id: stance.pattern_id(language, kind, &broken, &fixed),
            language: language.to_owned(),
            stance,
            edit,
            kind,
            description,
            broken,
            fixed,
            instruction,
            evidence: PatternEvidence::History,
            origin: PatternOrigin::Learned,
            counts: BTreeMap::new(),
            here: PatternCount::default(),
            first_seen: Time::UNIX_EPOCH,
            last_seen: Time::UNIX_EPOCH,
            last_matched: None,
            months: BTreeMap::new(),
            setbacks: 0,
            related: Vec::new(),
            group: None,
            muted: false,
        }
    }

    /// Merges another copy of the same pattern. Merging the same copy twice changes nothing.
    pub fn merge(&mut self, other: &Self) {
        for (origin, count) in &other.counts {
            if self.counts.len() < MAX_ORIGINS || self.counts.contains_key(origin) {
                let mine = self.counts.entry(origin.clone()).or_default();
                *mine = mine.max_of_each(*count);
            }
        }
        for &kind in other.related.iter().chain([&other.kind]) {
            self.add_related_kind(kind);
        }
        // Other machines export only the day, so a known day is not a new sighting.
        let days = [self.first_seen, self.last_seen].map(truncate_to_day);
        for at in [other.first_seen, other.last_seen] {
            if !days.contains(&truncate_to_day(at)) {
                self.record_sighting(at);
            }
        }
        self.evidence = rank::stronger_evidence(self.evidence, other.evidence);
    }

    /// Copies the counts of this machine's origin to `here`.
    pub fn set_local_count(&mut self, origin: &str) {
        self.here = self.counts.get(origin).copied().unwrap_or_default();
    }

    /// Records another kind of finding for the same code.
    pub fn add_related_kind(&mut self, kind: Kind) {
        if kind != self.kind
            && let Err(at) = self.related.binary_search(&kind)
        {
            self.related.insert(at, kind);
        }
    }

    /// Records a sighting. The Unix epoch means "never seen" and is ignored.
    pub fn record_sighting(&mut self, at: Time) {
        if at != Time::UNIX_EPOCH {
            let never = self.first_seen == Time::UNIX_EPOCH;
            self.first_seen = if never { at } else { self.first_seen.min(at) };
            self.last_seen = self.last_seen.max(at);
        }
    }

    /// Returns how often the pattern was seen by the machine that saw it most, without the curated count.
    pub fn times_seen(&self) -> u32 {
        let counts = self.counts.iter().filter(|(origin, _)| *origin != builtin_patterns::ORIGIN);
        counts.map(|(_, count)| count.frequency).max().unwrap_or_default()
    }

    /// Returns the number of machines that counted the pattern.
    pub fn origin_count(&self) -> usize {
        self.counts.keys().filter(|origin| *origin != builtin_patterns::ORIGIN).count()
    }

    /// Returns the counts over all origins: the maximum of the frequencies and the sums of the outcomes.
    pub fn total_count(&self) -> PatternCount {
        self.counts.values().fold(PatternCount::default(), |sum, count| PatternCount {
            frequency: sum.frequency.max(count.frequency),
            successes: sum.successes.saturating_add(count.successes),
            failures: sum.failures.saturating_add(count.failures),
        })
    }

    /// Parses both forms. Returns `None` if one of them is not a valid form.
    pub fn parse_forms(&self) -> Option<(Form, Form)> {
        Some((self.broken.parse().ok()?, self.fixed.parse().ok()?))
    }
}
