//! A pattern: an abstract mistake with its cure, or an abstract piece of code about which nobody wants to hear.
//!
//! Invariant: nothing counts twice. Each origin counts by itself, and merging takes the larger count of each (a grow-only
//! counter). What one machine saw another may have seen, too, in the same commits: how often a pattern was seen is what the
//! one says that saw most, and no sum. What findings came to is a sum.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::form::Form;
use super::{builtin_patterns, descriptions, rank};
use crate::domain::{Kind, PatternId, Time, word_enum};

word_enum!(
    /// What a pattern says of code like its broken form.
    PatternStance {
        /// It was wrong before, and became the fixed form.
        Mistake = "mistake",
        /// It was reported before, and dismissed: there is no fixed form.
        FalseAlarm = "false_alarm",
    }
);
word_enum!(
    /// What the edit from the broken to the fixed form does. Found by comparing the forms.
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
        /// In the head of a declaration, whatever it is.
        WrongDeclaration = "wrong_declaration",
        Other = "other",
    }
);
word_enum!(
    /// Where a pattern came from first.
    PatternOrigin {
        /// From findings, fixes, dismissals or history on this machine.
        Learned = "learned",
        /// Came with revdeck.
        Base = "base",
        /// From a file that somebody exported.
        Imported = "imported",
    }
);
word_enum!(
    /// How something was learned; of each the weight in `confidence`.
    PatternEvidence {
        /// A later review confirmed that the finding is gone, and this edit is why.
        Addressed = "addressed",
        /// A person put a suggestion or a fix into the files.
        Applied = "applied",
        /// A person dismissed the finding with a reason.
        Dismissed = "dismissed",
        /// A commit of the history that says it fixes something.
        History = "history",
        /// Curated.
        Curated = "curated",
    }
);

impl PatternStance {
    /// The identity of a pattern that says this.
    pub fn pattern_id(self, language: &str, kind: Kind, broken: &str, fixed: &str) -> PatternId {
        match self {
            Self::Mistake => PatternId::from_forms(language, broken, fixed),
            Self::FalseAlarm => PatternId::from_false_alarm(language, broken, kind),
        }
    }
}

impl EditKind {
    /// What a finding would be raised as that no finding has taught.
    pub fn default_kind(self) -> Kind {
        match self {
            Self::MissingErrorHandling => Kind::ErrorHandling,
            _ => Kind::Correctness,
        }
    }
}

/// What one origin has seen of a pattern. Only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternCount {
    /// Times the edit, or the dismissal, was seen.
    pub frequency: u32,
    /// Times that it was raised because of the pattern, and the finding was addressed (of a false alarm: times that a
    /// finding like it was dismissed once the pattern was known).
    #[serde(default)]
    pub successes: u32,
    /// Times that it was raised, and the finding was dismissed (of a false alarm: times that one like it was addressed).
    #[serde(default)]
    pub failures: u32,
}

/// What was raised and how it ended, in a month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthlyOutcomes {
    pub successes: u32,
    pub failures: u32,
}

/// One pattern of a language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    pub id: PatternId,
    /// The language's name, see [`super::names`].
    pub language: String,
    pub stance: PatternStance,
    pub edit: EditKind,
    /// What sort of finding it was learned from, or would be raised as.
    pub kind: Kind,
    /// One line: made from the forms, or curated with them.
    pub description: String,
    /// [`Form`]s, as written.
    pub broken: String,
    /// Empty where code is to go, and of a false alarm.
    #[serde(default)]
    pub fixed: String,
    /// What to do, one line like `description`.
    #[serde(default)]
    pub instruction: String,
    pub evidence: PatternEvidence,
    pub origin: PatternOrigin,
    /// By origin: a random id of the machine that counted, or `base`.
    pub counts: BTreeMap<String, PatternCount>,
    /// That of this machine among them; found when the cache is read, and not kept.
    #[serde(skip)]
    pub here: PatternCount,
    pub first_seen: Time,
    pub last_seen: Time,
    /// Where code matched last is not kept, only when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_matched: Option<Time>,
    /// By month, as in `2026-11`; the newest 24.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub months: BTreeMap<String, MonthlyOutcomes>,
    /// Other kinds of finding that the same edit did away with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Kind>,
    /// The pattern that stands for a group of similar ones; absent for that one itself. Found when the cache is read, and
    /// not kept.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub group: Option<PatternId>,
    /// Kept, and not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub muted: bool,
}

/// Origins of one pattern at most: more machines than that say nothing new. Own.
pub const MAX_ORIGINS: usize = 64;

impl PatternCount {
    /// Both are of one origin, and counts only grow: the larger of each.
    fn max_of_each(self, other: Self) -> Self {
        Self {
            frequency: self.frequency.max(other.frequency),
            successes: self.successes.max(other.successes),
            failures: self.failures.max(other.failures),
        }
    }
}

/// The day of a moment, in UTC.
pub fn truncate_to_day(at: Time) -> Time {
    const SECONDS: i64 = 86_400;
    Time::from_second(at.as_second().div_euclid(SECONDS) * SECONDS).unwrap_or(at)
}

impl Pattern {
    /// What forms say, with texts made from them: of history, counted by nobody and never seen.
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
            related: Vec::new(),
            group: None,
            muted: false,
        }
    }

    /// Takes in what is known elsewhere of the same pattern. Taking it in twice says the same.
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
        // Elsewhere days are told.
        let days = [self.first_seen, self.last_seen].map(truncate_to_day);
        for at in [other.first_seen, other.last_seen] {
            if !days.contains(&truncate_to_day(at)) {
                self.record_sighting(at);
            }
        }
        self.evidence = rank::stronger_evidence(self.evidence, other.evidence);
    }

    /// Finds what the machine of this origin counted.
    pub fn set_local_count(&mut self, origin: &str) {
        self.here = self.counts.get(origin).copied().unwrap_or_default();
    }

    /// Another finding of this kind was about the same.
    pub fn add_related_kind(&mut self, kind: Kind) {
        if kind != self.kind
            && let Err(at) = self.related.binary_search(&kind)
        {
            self.related.insert(at, kind);
        }
    }

    /// It was seen at this moment, too. What was never seen has the first moment of all.
    pub fn record_sighting(&mut self, at: Time) {
        if at != Time::UNIX_EPOCH {
            let never = self.first_seen == Time::UNIX_EPOCH;
            self.first_seen = if never { at } else { self.first_seen.min(at) };
            self.last_seen = self.last_seen.max(at);
        }
    }

    /// How often the machine that saw it most saw it, what came with revdeck aside.
    pub fn times_seen(&self) -> u32 {
        let counts = self.counts.iter().filter(|(origin, _)| *origin != builtin_patterns::ORIGIN);
        counts.map(|(_, count)| count.frequency).max().unwrap_or_default()
    }

    /// Machines that counted something of it.
    pub fn origin_count(&self) -> usize {
        self.counts.keys().filter(|origin| *origin != builtin_patterns::ORIGIN).count()
    }

    /// All origins together: of how often it was seen the largest, of what findings came to the sum.
    pub fn total_count(&self) -> PatternCount {
        self.counts.values().fold(PatternCount::default(), |sum, count| PatternCount {
            frequency: sum.frequency.max(count.frequency),
            successes: sum.successes.saturating_add(count.successes),
            failures: sum.failures.saturating_add(count.failures),
        })
    }

    /// The forms as tokens; none if they are none, which the gate refuses.
    pub fn parse_forms(&self) -> Option<(Form, Form)> {
        Some((self.broken.parse().ok()?, self.fixed.parse().ok()?))
    }
}
