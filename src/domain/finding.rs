//! A finding: one problem at one place, with an identity that outlives runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{FindingId, PatternId, RunId, Time};

/// How soon somebody should look: 0 now, 3 when there is time. Written as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Priority {
    P0,
    P1,
    P2,
    P3,
}

impl Priority {
    pub const ALL: [Self; 4] = [Self::P0, Self::P1, Self::P2, Self::P3];

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
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands for it in files, on the command line and on the screen.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| {
                    let words: Vec<&str> = Self::ALL.iter().map(|value| value.word()).collect();
                    format!("{text:?} is none of {}", words.join(", "))
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
    /// How bad it is if it is true.
    Severity { Low = "low", Medium = "medium", High = "high", Critical = "critical" }
);
word_enum!(
    /// How sure the reviewer is.
    Confidence { Low = "low", Medium = "medium", High = "high" }
);
word_enum!(
    /// What became of a finding; who may set which is in `policy`.
    FindingStatus {
        /// Reported, stands, nobody decided.
        Open = "open",
        /// Claimed fixed or carried over, and a later review saw it again.
        Unresolved = "unresolved",
        /// Fixed, or claimed to be.
        Addressed = "addressed",
        /// Rejected with a reason.
        Dismissed = "dismissed",
        /// Its code is gone, or its snapshot no longer applies.
        Obsolete = "obsolete",
    }
);
word_enum!(
    /// What sort of problem: one of the eleven smells of the built-in reviewer, or a class of defect.
    Kind {
        LongMethod = "LONG_METHOD",
        MagicNumbers = "MAGIC_NUMBERS",
        DuplicateCode = "DUPLICATE_CODE",
        GodClass = "GOD_CLASS",
        DeadCode = "DEAD_CODE",
        GlobalVariables = "GLOBAL_VARIABLES",
        MutableSharedState = "MUTABLE_SHARED_STATE",
        ComplexFunctions = "COMPLEX_FUNCTIONS",
        MissingErrorHandling = "MISSING_ERROR_HANDLING",
        TightCoupling = "TIGHT_COUPLING",
        HardcodedConfiguration = "HARDCODED_CONFIGURATION",
        Correctness = "CORRECTNESS",
        Security = "SECURITY",
        Concurrency = "CONCURRENCY",
        Performance = "PERFORMANCE",
        ErrorHandling = "ERROR_HANDLING",
        Api = "API",
        Tests = "TESTS",
        Docs = "DOCS",
    }
);

/// Who says how bad something is and not how soon to look, or the other way round, means: critical is p0, high p1,
/// medium p2, low p3.
impl Severity {
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
    /// As [`Severity::priority`], backwards.
    pub fn severity(self) -> Severity {
        match self {
            Self::P0 => Severity::Critical,
            Self::P1 => Severity::High,
            Self::P2 => Severity::Medium,
            Self::P3 => Severity::Low,
        }
    }
}

impl FindingStatus {
    /// Whether the finding still asks for a decision.
    pub fn is_undecided(self) -> bool {
        matches!(self, Self::Open | Self::Unresolved)
    }
}

impl Kind {
    /// Whether findings of this kind are never held back, muted or lowered, whatever was decided about others like them.
    pub fn is_never_hidden(self) -> bool {
        matches!(self, Self::Security | Self::Correctness)
    }

    /// Whether dismissals of findings of this kind say nothing of others: beside what is never hidden, what may be grave
    /// in one place and harmless in the next that looks like it. A value in the code may be a secret.
    pub fn is_never_lowered(self) -> bool {
        let may_be_grave = matches!(
            self,
            Self::HardcodedConfiguration
                | Self::Concurrency
                | Self::MutableSharedState
                | Self::ErrorHandling
                | Self::MissingErrorHandling
        );
        self.is_never_hidden() || may_be_grave
    }

    /// The kinds that the built-in reviewer reports.
    pub const SMELLS: [Self; 11] = [
        Self::LongMethod,
        Self::MagicNumbers,
        Self::DuplicateCode,
        Self::GodClass,
        Self::DeadCode,
        Self::GlobalVariables,
        Self::MutableSharedState,
        Self::ComplexFunctions,
        Self::MissingErrorHandling,
        Self::TightCoupling,
        Self::HardcodedConfiguration,
    ];
}

/// Replacement text for exact lines of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// What to do, in one sentence.
    pub text: String,
    /// The new text of `line_start..=line_end`, where it is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// First and last line replaced; the finding's own lines when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<super::LineRange>,
}

/// One problem at one place, as a run reported it. Lines count from 1 in the run's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub finding_id: FindingId,
    pub first_run_id: RunId,
    pub last_run_id: RunId,
    pub priority: Priority,
    pub severity: Severity,
    pub confidence: Confidence,
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// Why it is a problem, with the figures.
    pub explanation: String,
    pub repo_relative_path: String,
    pub line_start: u32,
    pub line_end: u32,
    /// The code at the anchor, at most [`Finding::MAX_QUOTE_LINES`] lines.
    pub quoted_code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Suggestion>,
    /// The learned pattern for which it was raised, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternId>,
    pub status: FindingStatus,
    /// Where the details are: `outputs/<run_id>.json#<finding_id>`.
    pub detail_ref: String,
    pub reported_at: Time,
}

impl Finding {
    /// Longer anchors are quoted up to here, in lines.
    pub const MAX_QUOTE_LINES: usize = 12;

    /// The lines of the anchor.
    pub fn lines(&self) -> super::LineRange {
        super::LineRange::new(self.line_start, self.line_end)
    }

    /// Whether two reports of one run are the same problem: path, kind and overlapping lines.
    pub fn is_duplicate_of(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.repo_relative_path == other.repo_relative_path
            && self.lines().overlaps(other.lines())
    }
}
