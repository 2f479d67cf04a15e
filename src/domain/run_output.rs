//! Defines the full result of a run, which is stored once at its end.

use serde::{Deserialize, Serialize};

use super::{
    Coverage, Finding, FindingAlias, FlipFlop, MovedFinding, RejectedReport, RunRecord, SCHEMA_VERSION,
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
    /// Earlier findings at a new location in this run's snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFinding>,
    /// Findings of the run that ask to undo an earlier fix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flip_flops: Vec<FlipFlop>,
    /// Findings and suppressed reports that were matched to an earlier finding with another id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<FindingAlias>,
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
            moved: Vec::new(),
            flip_flops: Vec::new(),
            recognised: Vec::new(),
        }
    }
}
