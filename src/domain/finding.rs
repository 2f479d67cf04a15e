//! A finding: one problem at one place, with an identity that outlives runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Dispute, FindingId, FindingStep, Kind, LoweredPriority, PatternId, RunId, Time, Voice};

/// Urgency of a finding: P0 needs attention now, P3 when there is time. Serialized as a number, 0 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Priority {
    /// Most urgent: needs attention now.
    P0,
    /// Second most urgent.
    P1,
    /// Third most urgent.
    P2,
    /// Least urgent: can wait until there is time.
    P3,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 4] = [Self::P0, Self::P1, Self::P2, Self::P3];

    /// Returns the priority as lists and pages on the screen show it: `P1`.
    pub fn label(self) -> &'static str {
        ["P0", "P1", "P2", "P3"][self.index()]
    }

    /// Returns the number of the priority, from 0 (most urgent) to 3.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;

    fn try_from(n: u8) -> Result<Self, String> {
        Self::ALL.get(usize::from(n)).copied().ok_or_else(|| format!("{n} is not a priority; priorities are 0 to 3"))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority as u8
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit = text.strip_prefix(['p', 'P']).unwrap_or(text);
        digit
            .parse()
            .ok()
            .and_then(|n: u8| Self::try_from(n).ok())
            .ok_or_else(|| format!("{text:?} is not a priority; write p0, p1, p2 or p3"))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(["p0", "p1", "p2", "p3"][self.index()])
    }
}

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $(
                $(#[$vdoc])*
                #[doc = concat!("Written as `", $word, "`.")]
                #[serde(rename = $word)]
                $variant
            ),+
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The words of [`Self::ALL`], in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the word for this value in files, on the command line and on the screen.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| {
                    format!("{text:?} is none of {}", Self::WORDS.join(", "))
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}
pub(crate) use word_enum;

word_enum!(
    /// Severity of a problem, assuming that the report is true.
    Severity { Low = "low", Medium = "medium", High = "high", Critical = "critical" }
);
word_enum!(
    /// Confidence of the reviewer in a finding.
    Confidence { Low = "low", Medium = "medium", High = "high" }
);
word_enum!(
    /// Status of a finding. The module `policy` defines which actor may set which status.
    FindingStatus {
        /// Reported and valid; nobody has decided yet.
        Open = "open",
        /// Claimed fixed or carried over, but a later review saw it again.
        Unresolved = "unresolved",
        /// Fixed, or claimed to be fixed.
        Addressed = "addressed",
        /// Rejected with a reason.
        Dismissed = "dismissed",
        /// The code is gone, or the snapshot no longer applies.
        Obsolete = "obsolete",
    }
);
/// Maps a severity to a priority and back, for reports that give only one of both: critical is p0, high p1, medium
/// p2, low p3.
impl Severity {
    /// Returns the priority of a problem with this severity.
    pub fn priority(self) -> Priority {
        match self {
            Self::Critical => Priority::P0,
            Self::High => Priority::P1,
            Self::Medium => Priority::P2,
            Self::Low => Priority::P3,
        }
    }
}

impl Priority {
    /// Returns the next less urgent priority; `None` for the lowest.
    pub fn one_lower(self) -> Option<Self> {
        Self::ALL.get(self.index() + 1).copied()
    }

    /// Returns the inverse of [`Severity::priority`].
    pub fn severity(self) -> Severity {
        match self {
            Self::P0 => Severity::Critical,
            Self::P1 => Severity::High,
            Self::P2 => Severity::Medium,
            Self::P3 => Severity::Low,
        }
    }
}

impl Confidence {
    /// Minimum probability of each confidence, from 0 to 1. Not from the literature.
    const MIN_PROBABILITIES: [f64; 3] = [0.0, 0.5, 0.8];

    /// Returns the confidence for a probability from 0 to 1: high from 0.8, medium from 0.5.
    pub fn from_probability(probability: f64) -> Self {
        let [_, medium, high] = Self::MIN_PROBABILITIES;
        match probability {
            high_enough if high_enough >= high => Self::High,
            medium_enough if medium_enough >= medium => Self::Medium,
            _ => Self::Low,
        }
    }

    /// Returns the middle of the probabilities that have this confidence.
    pub fn probability(self) -> f64 {
        let [low, medium, high] = Self::MIN_PROBABILITIES;
        let (from, to) = match self {
            Self::Low => (low, medium),
            Self::Medium => (medium, high),
            Self::High => (high, 1.0),
        };
        f64::midpoint(from, to)
    }

    /// Returns the next lower confidence, or the lowest one.
    pub fn lower(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium | Self::Low => Self::Low,
        }
    }
}

impl FindingStatus {
    /// Returns true if the finding still needs a decision.
    pub fn is_undecided(self) -> bool {
        matches!(self, Self::Open | Self::Unresolved)
    }
}

/// Proposed change, with replacement text where it is certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// Description of the change in one sentence.
    pub text: String,
    /// New text of the replaced lines; `None` when no exact text is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// Replaced lines; `None` means the finding's own lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<super::LineRange>,
}

/// Problem at one place, as a run reported it. Lines are 1-based and inclusive, and refer to the run's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Identity of the finding; the same in every run that reports it.
    pub finding_id: FindingId,
    /// First run that reported the finding.
    pub first_run_id: RunId,
    /// Last run that reported the finding or carried it over.
    pub last_run_id: RunId,
    /// Urgency of the finding.
    pub priority: Priority,
    /// Severity of the problem.
    pub severity: Severity,
    /// Confidence of the reviewer, lowered where quoted code does not prove the place.
    pub confidence: Confidence,
    /// Class of the problem.
    pub kind: Kind,
    /// Title on one line.
    pub title: String,
    /// Explanation of the problem, with its measurements.
    pub explanation: String,
    /// Path relative to the repository root, in the run's snapshot.
    pub repo_relative_path: String,
    /// First line of the anchor.
    pub line_start: u32,
    /// Last line of the anchor.
    pub line_end: u32,
    /// Code at the anchor, at most [`Finding::MAX_QUOTE_LINES`] lines.
    pub quoted_code: String,
    /// Proposed change; `None` when the reviewer proposed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Suggestion>,
    /// Learned pattern that caused the finding, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternId>,
    /// Step by which the priority was lowered; `None` for a finding with the priority that its reviewer reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowered: Option<LoweredPriority>,
    /// Status at the end of the run; later changes are dispositions.
    pub status: FindingStatus,
    /// Reference to the details: `outputs/<run_id>.json#<finding_id>`.
    pub detail_ref: String,
    /// Time of the report; kept when a later run carries the finding over.
    pub reported_at: Time,
    /// Reports of the problem by the reviewers of a panel, sorted by reviewer; empty for the finding of a single reviewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voices: Vec<Voice>,
    /// Changes of priority and confidence that follow from the voices, in the order in which they were made, and what
    /// revdeck's own search for secrets adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<FindingStep>,
    /// Contradictions between the reviewers of a panel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disputed: Vec<Dispute>,
    /// Innermost function or method around the first line, such as `Parser.parse`; `None` if it is not known, or if the title
    /// names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

impl Finding {
    /// Maximum number of quoted lines; longer anchors are truncated.
    pub const MAX_QUOTE_LINES: usize = 12;

    /// Returns the lines of the anchor.
    pub fn lines(&self) -> super::LineRange {
        super::LineRange::new(self.line_start, self.line_end)
    }

    /// Returns true if the reviewers of a panel contradict each other, and no second opinion has settled that.
    pub fn is_disputed(&self) -> bool {
        !self.disputed.is_empty() && !self.steps.iter().any(FindingStep::is_verdict)
    }

    /// Returns true if no reviewer reported the problem: revdeck's own search for secrets found it in the reviewer's run.
    pub fn is_from_secret_scan(&self) -> bool {
        self.steps.contains(&FindingStep::Scanned)
    }

    /// Returns the priority that the reviewer gave, before its run lowered it and revdeck's own search for secrets raised it.
    pub fn reported_priority(&self) -> Priority {
        let raised = self.steps.iter().find_map(|step| match step {
            FindingStep::Raised { from, .. } => Some(*from),
            _ => None,
        });
        // A run lowers a report when it comes, and searches for secrets later.
        let before_search = raised.unwrap_or(self.priority);
        let lowered = self.lowered.as_ref().filter(|lowered| lowered.to == before_search);
        lowered.map_or(before_search, |lowered| lowered.from)
    }

    /// Returns the number of reviewers among the voices. One that answered for two members of a panel counts once.
    pub fn count_reviewer_voices(&self) -> usize {
        let said = self.voices.iter().filter(|voice| !voice.is_secret_scan());
        said.map(|voice| voice.reviewer.as_str()).collect::<std::collections::BTreeSet<&str>>().len()
    }

    /// Returns the position among the voices of the report whose words are those of the finding.
    pub fn own_voice(&self) -> Option<usize> {
        let is_own = |voice: &Voice| voice.title == self.title && voice.explanation == self.explanation;
        self.voices.iter().position(|voice| voice.held_back.is_none() && is_own(voice))
    }

    /// Returns the voices that the runs of the members raised: their ids are other ids of this finding. A report that was held back
    /// stands for nothing on the list; a decision about its id is not one about this finding.
    pub fn raised_voices(&self) -> impl Iterator<Item = &Voice> {
        self.voices.iter().filter(|voice| voice.held_back.is_none())
    }

    /// Returns the voices: the one whose words are those of the finding first, then the others by reviewer.
    pub fn voices_own_first(&self) -> impl Iterator<Item = &Voice> {
        let own = self.own_voice();
        let others = self.voices.iter().enumerate().filter(move |(at, _)| Some(*at) != own).map(|(_, voice)| voice);
        own.and_then(|own| self.voices.get(own)).into_iter().chain(others)
    }
}
