//! Defines the full result of a run, which is stored once at its end.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::text::{format_count, sanitize_line};
use super::{
    Coverage, Finding, FindingAlias, FlipFlop, HeldBackPlace, MovedFinding, RejectedReport, RunRecord, SCHEMA_VERSION,
    SuppressedReport,
};

/// Full result of a run, stored once as `outputs/<run_id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutput {
    /// Schema version of the file, see [`SCHEMA_VERSION`].
    pub version: u32,
    /// Record of the run at its end.
    pub run: RunRecord,
    /// Findings of the run, including carried findings.
    pub findings: Vec<Finding>,
    /// Coverage with the lists of files.
    pub coverage: Coverage,
    /// Notes about the run for a person, one line each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Model reports that failed a check against the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedReport>,
    /// Reports that are not findings of the run, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<SuppressedReport>,
    /// For a run of another machine: the reports that it held back there. `None` if its record does not say so, and for a run
    /// of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back_places: Option<Vec<HeldBackPlace>>,
    /// Earlier findings at a new location in this run's snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFinding>,
    /// Findings of the run that ask to undo an earlier fix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flip_flops: Vec<FlipFlop>,
    /// Findings and suppressed reports that were matched to an earlier finding with another id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<FindingAlias>,
    /// Damage of the file, because of which the result was read from the run's journal.
    #[serde(skip)]
    pub damage: Option<OutputDamage>,
}

/// Damage of the stored result of a run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDamage {
    /// Path of `outputs/<run_id>.json`.
    pub path: PathBuf,
    /// Reason why it cannot be read.
    pub cause: OutputDamageCause,
    /// Number of findings that the run reported and its journal does not have either.
    pub lost: u32,
}

/// Reason why the stored result of a run cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputDamageCause {
    /// There is no such file.
    Missing,
    /// The file is there, and is no result.
    Unreadable,
}

impl OutputDamage {
    /// Returns a sentence for the notes of the run, on one line.
    pub fn describe(&self) -> String {
        let cause = self.cause.word();
        let path = sanitize_line(&self.path.to_string_lossy()).into_owned();
        match self.lost {
            0 => format!("the result is {cause} ({path}); these are the findings of the run's journal"),
            n => format!("the result is {cause} ({path}), and {} with it", format_lost(n)),
        }
    }
}

impl OutputDamageCause {
    /// Returns the word for a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "damaged",
        }
    }
}

fn format_lost(findings: u32) -> String {
    format!("{} {} lost", format_count(findings as usize, "finding"), if findings == 1 { "is" } else { "are" })
}

impl RunOutput {
    /// Creates an empty result.
    pub fn new(run: RunRecord) -> Self {
        Self {
            version: SCHEMA_VERSION,
            coverage: run.outcome.coverage.clone(),
            run,
            findings: Vec::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            held_back: Vec::new(),
            held_back_places: None,
            moved: Vec::new(),
            flip_flops: Vec::new(),
            recognised: Vec::new(),
            damage: None,
        }
    }
}
