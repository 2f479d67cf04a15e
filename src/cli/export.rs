//! Collects what the formats for other programs need beside the findings: reasons of dismissals, and what was not
//! reviewed.

use std::collections::{HashMap, HashSet};

use super::error::CliError;
use super::session::Session;
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{Coverage, Finding, FindingId, FindingStatus, OutputDamage, RunId, RunRecord, RunStatus, Source};
use crate::report::{ExportedFinding, FindingExport, TextOptions, text};
use crate::store::{Store, StoreView};

/// Returns the reasons of the dismissed findings, by id.
///
/// # Errors
///
/// Returns an error if the decisions cannot be read.
pub fn load_dismissals(store: &Store, findings: &[Finding]) -> Result<HashMap<FindingId, String>, CliError> {
    let dismissed = findings.iter().filter(|finding| finding.status == FindingStatus::Dismissed);
    let ids: HashSet<&str> = dismissed.map(|finding| finding.finding_id.as_str()).collect();
    let said = store.latest_dispositions(&ids)?;
    let reason =
        |finding: &Finding| Some((finding.finding_id.clone(), said.get(&finding.finding_id)?.1.reason.clone()));
    Ok(findings.iter().filter_map(reason).collect())
}

/// Builds the export of findings that stand in the store.
///
/// # Errors
///
/// Returns an error if the decisions cannot be read.
pub fn build_export(
    store: &Store,
    findings: &[Finding],
    incomplete: Option<String>,
) -> Result<FindingExport, CliError> {
    let dismissals = load_dismissals(store, findings)?;
    let exported =
        findings.iter().map(|finding| ExportedFinding::new(finding, dismissals.get(&finding.finding_id).cloned()));
    Ok(FindingExport::new(exported.collect(), incomplete, ""))
}

/// Returns the error for a run whose findings cannot be read: an empty list would look like a clean review.
pub fn lost_result_error(run: &RunId, damage: &OutputDamage) -> CliError {
    let path = sanitize_line(&damage.path.to_string_lossy()).into_owned();
    CliError::failed(format!("the result of the run {run} is {}: {path}", damage.cause.word()))
        .hint("`revdeck store verify` says more; `revdeck review --force` reviews the code again")
}

/// Returns a sentence that says why findings of a run are missing: its result has lost some, or it did not review all that
/// it should have. `None` if nothing is missing, or if there was nothing to review.
pub fn describe_missing(run: &RunRecord, coverage: &Coverage, damage: Option<&OutputDamage>) -> Option<String> {
    if let Some(damage) = damage.filter(|damage| damage.lost > 0) {
        return Some(format!("{}; `revdeck review --force` reviews the code again", damage.describe()));
    }
    match run.status {
        RunStatus::Completed | RunStatus::Skipped if !run.is_incomplete() => None,
        RunStatus::Completed | RunStatus::Skipped => Some(text::describe_incomplete(run, coverage).map_or_else(
            || "a part of it failed".to_owned(),
            |said| said.trim_start_matches("incomplete: ").to_owned(),
        )),
        _ => Some(text::describe_ending(&plain_look(run), run)),
    }
}

fn plain_look(run: &RunRecord) -> TextOptions {
    TextOptions { color: false, ascii: true, width: None, now: run.updated_at }
}

/// Sentence for a worktree without a review.
pub const NOTHING_REVIEWED: &str = "nothing has been reviewed in this worktree";

/// Reasons why findings of the store say less than they seem to: silence about a file may mean that nobody has looked at
/// it, or that the result is lost.
#[derive(Debug, Default)]
pub struct MissingFindings {
    /// Sentence that says what is missing; `None` if nothing is.
    pub sentence: Option<String>,
    /// Whether findings were reported and cannot be read.
    pub has_lost: bool,
}

impl MissingFindings {
    /// Returns what is missing of a run, or of the newest review in this worktree if that is `None`.
    ///
    /// # Errors
    ///
    /// Returns an error if the record or the result of the run cannot be read.
    pub fn load(session: &Session, run: Option<&RunRecord>) -> Result<Self, CliError> {
        let Some(record) = run else {
            return Ok(Self { sentence: Some(NOTHING_REVIEWED.to_owned()), has_lost: false });
        };
        let damage = session.store.output_damage(&record.run_id)?;
        Ok(Self {
            sentence: describe_missing(record, &record.outcome.coverage, damage.as_ref()),
            has_lost: damage.is_some_and(|damage| damage.lost > 0),
        })
    }

    /// Adds findings of a list that cannot be read.
    pub fn add_unreadable(&mut self, count: usize) {
        if count > 0 {
            self.has_lost = true;
            let said = format!(
                "{} of the list cannot be read; `revdeck store verify` says more",
                format_count(count, "finding")
            );
            self.sentence.get_or_insert(said);
        }
    }
}

/// Returns the record of the newest review in this worktree. Reviews of fixes, skipped and superseded reviews, and reports
/// of other tools do not count.
///
/// # Errors
///
/// Returns an error if the record of a run cannot be read.
pub fn find_newest_review(session: &Session, view: &StoreView) -> Result<Option<RunRecord>, CliError> {
    let worktree = session.repo.root().to_string_lossy().into_owned();
    for index in 0..view.run_count() {
        let row = view.run(index);
        let is_review = row.worktree == worktree && !row.is_fix_review();
        if !is_review || matches!(row.status, RunStatus::Skipped | RunStatus::Superseded) {
            continue;
        }
        let Ok(id) = row.id.parse::<RunId>() else { continue };
        match session.store.run(&id)? {
            // Another tool's report is no review of ours.
            Some(record) if record.source == Source::Import => {}
            Some(record) => return Ok(Some(record)),
            None => {}
        }
    }
    Ok(None)
}
