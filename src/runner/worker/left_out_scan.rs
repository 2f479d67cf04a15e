//! Searches the changed files that a review leaves out for secrets, whatever the reason is. The search needs no syntax
//! tree: it finds keys by their shape.

use crate::domain::{Finding, FindingCounts, OmissionReason, OmittedFile, RunEvent, RunId, RunStatus, Time};
use crate::git::{Changeset, Repo};
use crate::review::{ReviewOutcome, summarize_run};
use crate::reviewers::analyzer;
use crate::runner::worker::RunWorker;
use crate::runner::{RunnerError, Services};

/// Maximum size in bytes of a file that is searched. A larger file is data that was never meant to be read.
const MAX_SCANNED_FILE_BYTES: u64 = 32 << 20;
/// Maximum total size in bytes of the files of a change that are searched: about a second of work.
const MAX_SCANNED_BYTES: u64 = 256 << 20;

/// Searches files of one change.
pub(in crate::runner) struct LeftOutScan<'a> {
    repo: &'a Repo,
    change: &'a Changeset,
    base: &'a str,
    snapshot: &'a str,
}

impl<'a> LeftOutScan<'a> {
    pub fn new(services: &'a Services, change: &'a Changeset, (base, snapshot): (&'a str, &'a str)) -> Self {
        Self { repo: &services.repo, change, base, snapshot }
    }

    /// Returns a finding for each secret that the change adds to these files. The findings have no run and no time yet.
    pub fn find_secrets(&self, files: &[OmittedFile], run: &RunId) -> Vec<Finding> {
        let mut room = MAX_SCANNED_BYTES;
        let mut findings = Vec::new();
        for file in files.iter().filter(|file| has_content(file.reason)) {
            let Some(text) = self.read(self.snapshot, &file.path, &mut room) else { continue };
            let found = analyzer::find_text_secrets(&file.path, &text, &|| self.read_old(&file.path));
            findings.extend(analyzer::to_findings(&found, &file.path, &text, run, Time::UNIX_EPOCH));
        }
        findings
    }

    fn read_old(&self, path: &str) -> Option<Vec<u8>> {
        let old_path = self.change.moved.get(path).map_or(path, String::as_str);
        if self.base.is_empty() { None } else { self.read(self.base, old_path, &mut MAX_SCANNED_BYTES.clone()) }
    }

    fn read(&self, commit: &str, path: &str, room: &mut u64) -> Option<Vec<u8>> {
        let blob = self.repo.blob_at(commit, path).ok().flatten()?;
        let size = self.repo.blob_size(&blob).ok().filter(|size| *size <= MAX_SCANNED_FILE_BYTES.min(*room))?;
        *room -= size;
        self.repo.blob(&blob).ok()
    }
}

/// Returns true if a file that is left out for this reason has content of its own.
fn has_content(reason: OmissionReason) -> bool {
    use OmissionReason as R;
    !matches!(reason, R::Deleted | R::NoContentChange | R::Submodule | R::Symlink | R::Unreadable)
}

impl RunWorker<'_> {
    /// Adds the secrets in the files that the review left out to its findings.
    pub(super) fn add_left_out_secrets(
        &mut self,
        change: &Changeset,
        outcome: &mut ReviewOutcome,
    ) -> Result<(), RunnerError> {
        if outcome.status != RunStatus::Completed {
            return Ok(());
        }
        let subject = &self.record.subject;
        let scan = LeftOutScan::new(self.services, change, (&subject.base_commit, &subject.snapshot_commit));
        let mut found = scan.find_secrets(&outcome.coverage.left_out, &self.record.run_id);
        found.retain(|new| outcome.findings.iter().all(|known| known.finding_id != new.finding_id));
        if found.is_empty() {
            return Ok(());
        }
        for mut finding in found {
            self.stamp(&mut finding)?;
            self.buffer.push(RunEvent::Finding { finding: Box::new(finding.clone()) });
            outcome.findings.push(finding);
        }
        self.flush()?;
        outcome.counts = FindingCounts::from_findings(&outcome.findings);
        outcome.summary = summarize_run(outcome.status, &outcome.counts, &outcome.coverage);
        Ok(())
    }
}
