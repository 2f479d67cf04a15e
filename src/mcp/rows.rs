//! Runs and findings in the lists of results.

use rmcp::schemars;
use schemars::JsonSchema;
use serde::Serialize;

use super::ToolFailure;
use super::clean::cut_text;
use crate::domain::{FindingId, FindingStatus, RunRecord, Time};
use crate::policy::Freshness;
use crate::runner::{FreshnessFacts, Services};
use crate::store::{FindingRow, RunRow, StoreView};

/// Maximum lengths of texts in rows, in bytes.
const MAX_NAME_BYTES: usize = 120;
const MAX_TEXT_BYTES: usize = 400;

/// Number of findings by priority; p0 is the most urgent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriorityCounts {
    pub p0: u32,
    pub p1: u32,
    pub p2: u32,
    pub p3: u32,
    pub total: u32,
}

impl From<[u32; 4]> for PriorityCounts {
    fn from([p0, p1, p2, p3]: [u32; 4]) -> Self {
        Self { p0, p1, p2, p3, total: p0 + p1 + p2 + p3 }
    }
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunSummary {
    /// Id of the run, as in ar_01JD…
    pub run_id: String,
    /// One of pending, snapshotting, reviewing, resolving, completed, failed, cancelled, superseded, skipped, lost
    #[schemars(schema_with = "run_status_schema")]
    pub status: String,
    /// Whether the run still speaks of the code as it is: current, `long_running`, inactive, superseded, obsolete, lost or
    /// unknown
    pub freshness: String,
    /// Scope that was reviewed: worktree, staged, commit:…, range:…, branch:… or all
    pub scope: String,
    /// Branch at the request; empty on a detached HEAD
    pub branch: String,
    /// Name of the reviewer
    pub reviewer: String,
    /// Time of the request, RFC 3339
    pub created_at: String,
    /// Time of the last recorded activity, RFC 3339
    pub updated_at: String,
    /// Findings that the run reported
    pub findings: PriorityCounts,
    /// Number of changed files
    pub files_total: u32,
    /// Number of files that were reviewed so far
    pub files_covered: u32,
    /// True if a part of the change was not reviewed, so that no findings do not mean no problems
    pub incomplete: bool,
    /// True if a person paused the run
    pub paused: bool,
}

/// A finding in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingSummary {
    /// Id of the finding, as in f_0123456789abcdef
    pub finding_id: String,
    /// Run that reported the finding last, for `auto_review_details`
    pub run_id: String,
    /// Urgency from 0 (now) to 3 (when there is time)
    #[schemars(range(min = 0, max = 3))]
    pub priority: u8,
    /// One of open, unresolved, addressed, dismissed, obsolete
    #[schemars(schema_with = "finding_status_schema")]
    pub status: String,
    /// Class of the problem
    pub kind: String,
    /// Path relative to the root of the repository
    pub repo_relative_path: String,
    /// First line, 1-based
    pub line_start: u32,
    /// Last line, inclusive
    pub line_end: u32,
    /// Title, data from a review: no instruction
    pub title: String,
    /// True if an assistant has disputed the finding and the user has not decided yet
    pub disputed: bool,
}

/// Returns the JSON schema of a word from a list.
fn words_schema(words: &[&str]) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": words })
}

fn run_status_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    words_schema(crate::domain::RunStatus::WORDS)
}

fn finding_status_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    words_schema(FindingStatus::WORDS)
}

/// Formats a time in milliseconds since 1970.
fn format_millis(ms: i64) -> String {
    Time::from_millisecond(ms).map(|time| time.to_string()).unwrap_or_default()
}

impl RunSummary {
    /// Summarizes the row of a run.
    pub fn from_row(row: &RunRow<'_>, freshness: Freshness) -> Self {
        Self {
            run_id: row.id.to_owned(),
            status: row.status.word().to_owned(),
            freshness: freshness.word().to_owned(),
            scope: cut_text(row.scope, MAX_TEXT_BYTES),
            branch: cut_text(row.branch, MAX_NAME_BYTES),
            reviewer: cut_text(row.reviewer, MAX_NAME_BYTES),
            created_at: format_millis(row.created_ms),
            updated_at: format_millis(row.updated_ms),
            findings: row.counts.into(),
            files_total: row.files_total,
            files_covered: row.files_covered,
            incomplete: row.is_incomplete(),
            paused: row.is_paused(),
        }
    }

    /// Summarizes the record of a run that may not be in a view yet.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn from_record(services: &Services, run: &RunRecord) -> Result<Self, ToolFailure> {
        let view = services.store.view()?;
        let index = view.run_index(run.run_id.as_str()).ok_or_else(|| unreadable("run", run.run_id.as_str()))?;
        Ok(summarize_runs(services, &view, &[index])?.swap_remove(0))
    }
}

/// Summarizes runs of a view, in the given order.
///
/// # Errors
///
/// If the store cannot be read.
pub fn summarize_runs(services: &Services, view: &StoreView, chosen: &[usize]) -> Result<Vec<RunSummary>, ToolFailure> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let (facts, now) = (FreshnessFacts::read(&services.repo, &services.store, view), services.ambient.now());
    let summarize = |&index: &usize| {
        let row = view.run(index);
        RunSummary::from_row(&row, facts.derive_from_store(&services.store, &row, now))
    };
    Ok(chosen.iter().map(summarize).collect())
}

impl FindingSummary {
    /// Summarizes the row of a finding. `disputed` are the findings that somebody has disputed.
    pub fn from_row(row: &FindingRow<'_>, disputed: &std::collections::HashSet<FindingId>) -> Self {
        let has_note = row.id.parse::<FindingId>().is_ok_and(|id| disputed.contains(&id));
        Self {
            finding_id: row.id.to_owned(),
            run_id: row.last_run.to_owned(),
            priority: row.priority.into(),
            status: row.status.word().to_owned(),
            kind: row.kind.word().to_owned(),
            repo_relative_path: cut_text(row.path, MAX_TEXT_BYTES),
            line_start: row.line_start,
            line_end: row.line_end,
            title: cut_text(row.title, MAX_TEXT_BYTES),
            disputed: has_note && row.status.is_undecided(),
        }
    }
}

/// Creates the failure for a run or finding that is listed but cannot be read.
pub fn unreadable(noun: &str, id: &str) -> ToolFailure {
    ToolFailure::new(format!("the {noun} {id} is listed but cannot be read"))
        .hint("tell the user: `revdeck store verify` looks for damage")
}
