//! Records a finding that the user has written about lines of a reviewed snapshot.
//!
//! - The finding takes the way of an imported problem, so that its id, its anchor, decisions about it and the ledger are
//!   those of any finding.
//! - It confirms and denies nothing else: no file counts as checked.

use std::path::PathBuf;

use super::{ImportGround, ImportOutcome, ImportRequest, Importer};
use crate::domain::{Actor, Confidence, FindingId, FindingStatus, Kind, LineRange, Priority, RunId};
use crate::git::{Changeset, Snapshot};
use crate::runner::{RunnerError, Services, StatusChange, set_status};
use crate::tool_reports::{ReportedPath, ToolProblem, ToolReport};

/// Name of the reviewer of findings that the user has written.
pub const OWN_REVIEWER: &str = "you";

/// Finding that the user has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFinding {
    /// Run whose snapshot has the lines.
    pub run: RunId,
    /// Path relative to the repository root, in the snapshot.
    pub path: String,
    /// Lines of the snapshot, 1-based.
    pub lines: LineRange,
    /// Text of one line, the title.
    pub text: String,
    /// Further lines of the text; may be empty.
    pub details: String,
    /// Urgency.
    pub priority: Priority,
    /// Line of the old side that the finding is about; `lines` is then the place where it was.
    pub removed: Option<RemovedLine>,
}

/// Line that a change has removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedLine {
    /// Line of the old side, 1-based.
    pub number: u32,
    /// Text of the line; empty if it is not to be stored.
    pub text: String,
}

impl RemovedLine {
    /// Explains which line a finding is about.
    fn explain(&self) -> String {
        match self.text.trim() {
            "" => format!("About the removed line {}.", self.number),
            text => format!("About the removed line {}: {text}", self.number),
        }
    }
}

/// Stored comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenComment {
    /// Id of the finding.
    pub finding: FindingId,
    /// Reason why the comment that it replaces still stands.
    pub trouble: Option<String>,
}

/// Finding of the user after its run has ended.
enum RecordedComment {
    Raised(FindingId),
    /// Not raised, for this reason: mostly because the same words were withdrawn before.
    HeldBack {
        finding: FindingId,
        reason: String,
    },
}

impl OwnFinding {
    /// Returns what the finding says besides its title.
    fn explain(&self) -> String {
        let removed = self.removed.as_ref().map(RemovedLine::explain);
        let parts = removed.into_iter().chain((!self.details.is_empty()).then(|| self.details.clone()));
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Parses what the user has typed: a text, with `p0` to `p3` in front of it if its priority is not p2. `None` if there is
    /// no text.
    pub fn parse(typed: &str) -> Option<(Priority, &str)> {
        let typed = typed.trim();
        let (first, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let is_priority = first.len() == 2 && first.starts_with(['p', 'P']);
        let (priority, text) = match first.parse() {
            Ok(priority) if is_priority => (priority, rest.trim_start()),
            _ => (Priority::P2, typed),
        };
        (!text.is_empty()).then_some((priority, text))
    }
}

impl Importer<'_> {
    /// Records a finding of the user in place of an older one, which is dismissed with the id of the new one as its reason.
    /// Words that were withdrawn before are open again.
    ///
    /// # Errors
    ///
    /// A reason for the user: the finding cannot be taken, or the store fails. The older one then stands.
    pub fn write_own_finding(&self, own: &OwnFinding, rewrites: Option<&FindingId>) -> Result<WrittenComment, String> {
        let finding = match self.record_own_finding(own)? {
            RecordedComment::Raised(finding) => finding,
            RecordedComment::HeldBack { finding, .. } => {
                self.set_own_status(&finding, FindingStatus::Open, "")?;
                match self.record_own_finding(own)? {
                    RecordedComment::Raised(finding) => finding,
                    RecordedComment::HeldBack { reason, .. } => return Err(reason),
                }
            }
        };
        let trouble = rewrites.filter(|before| **before != finding).and_then(|before| {
            let reason = format!("rewritten as {finding}");
            let dismissed = self.set_own_status(before, FindingStatus::Dismissed, &reason);
            dismissed.err().map(|error| format!("the old one still stands: {error}"))
        });
        Ok(WrittenComment { finding, trouble })
    }

    fn set_own_status(&self, finding: &FindingId, status: FindingStatus, reason: &str) -> Result<(), String> {
        let change = StatusChange { actor: Actor::User, status, reason };
        let chosen = std::slice::from_ref(finding);
        let Services { repo, store, ambient, .. } = self.services;
        let set = set_status((Some(repo), store), ambient, chosen, change);
        set.map(|_| ()).map_err(|error| error.to_string())
    }

    fn record_own_finding(&self, own: &OwnFinding) -> Result<RecordedComment, String> {
        let outcome = self.add_own_finding(own).map_err(|error| error.to_string())?;
        let outcome = outcome.ok_or("the store no longer has the run of this diff")?;
        if let Some(refused) = outcome.refused.first() {
            return Err(refused.reason.clone());
        }
        let output = self.services.store.output(&outcome.run.run_id).map_err(|error| error.to_string())?;
        let output = output.ok_or("the store has no output of the comment")?;
        let raised = output.findings.first().map(|finding| RecordedComment::Raised(finding.finding_id.clone()));
        let held_back = || {
            let held = output.held_back.first()?;
            let finding = held.finding.finding_id.clone();
            Some(RecordedComment::HeldBack { finding, reason: held.reason.clone() })
        };
        raised.or_else(held_back).ok_or_else(|| "the store did not keep the comment".to_owned())
    }

    /// Records a finding of the user as a run of its own; `None` if the store no longer has the run. A finding that cannot be
    /// taken is in the outcome.
    ///
    /// # Errors
    ///
    /// If the snapshot is gone, or the store fails.
    pub fn add_own_finding(&self, own: &OwnFinding) -> Result<Option<ImportOutcome>, RunnerError> {
        let triage_bytes = self.services.store.triage_bytes()?;
        let Some(record) = self.services.store.run(&own.run)? else { return Ok(None) };
        let subject = record.subject;
        let files =
            self.services.repo.tree_files(&subject.snapshot_commit)?.into_iter().map(|file| file.path).collect();
        let snapshot = Snapshot {
            base_commit: subject.base_commit,
            snapshot_commit: subject.snapshot_commit,
            head_commit: subject.head_commit,
            branch: subject.branch,
            worktree: PathBuf::from(subject.worktree),
            scope: subject.scope,
            scope_hash: subject.scope_hash,
            diff_fingerprint: subject.diff_fingerprint,
            change: Changeset::default(),
            unstored: Vec::new(),
            notes: Vec::new(),
        };
        let problem = ToolProblem {
            rule: String::new(),
            path: ReportedPath { path: own.path.clone(), base: String::new() },
            lines: Some(own.lines),
            message: own.text.clone(),
            help: own.explain(),
            kind: Kind::Correctness,
            severity: own.priority.severity(),
            confidence: Confidence::High,
            fix: None,
        };
        let request = ImportRequest {
            report: ToolReport { tool: OWN_REVIEWER.to_owned(), problems: vec![problem], ..ToolReport::default() },
            tool: OWN_REVIEWER.to_owned(),
            covered: Vec::new(),
            tool_root: None,
            origin: "the diff in the cockpit".to_owned(),
            author: self.services.repo.user_name(),
        };
        self.import_report(&request, &ImportGround { snapshot, files, triage_bytes }).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_may_stand_in_front_of_the_text() {
        for (typed, expected) in [
            ("rename this", Some((Priority::P2, "rename this"))),
            ("p0 leaks the key ", Some((Priority::P0, "leaks the key"))),
            ("P3  a typo", Some((Priority::P3, "a typo"))),
            ("p9 is no priority", Some((Priority::P2, "p9 is no priority"))),
            ("1 of 2 cases", Some((Priority::P2, "1 of 2 cases"))),
            ("p1", None),
            ("p1 ", None),
            ("  ", None),
        ] {
            assert_eq!(OwnFinding::parse(typed), expected, "{typed:?}");
        }
    }
}
