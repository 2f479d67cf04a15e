//! Collects what the formats for other programs need beside the findings: reasons of dismissals, and what was not
//! reviewed.

use std::collections::{HashMap, HashSet};

use super::error::CliError;
use super::session::Session;
use crate::domain::{Coverage, Finding, FindingId, FindingStatus, RunId, RunRecord, RunStatus, Source};
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

/// Returns a sentence that says why a run did not review all that it should have; `None` if it did, or if there was
/// nothing to review.
pub fn describe_missing(run: &RunRecord, coverage: &Coverage) -> Option<String> {
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

/// Returns a sentence if the newest review in this worktree is not complete, or if there was none. Findings of the store
/// then say less than they seem to: silence about a file may mean that nobody has looked at it.
///
/// # Errors
///
/// Returns an error if the record of the run cannot be read.
pub fn describe_missing_review(session: &Session, view: &StoreView) -> Result<Option<String>, CliError> {
    match find_newest_review(session, view)? {
        Some(record) => Ok(describe_missing(&record, &record.outcome.coverage)),
        None => Ok(Some(NOTHING_REVIEWED.to_owned())),
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
