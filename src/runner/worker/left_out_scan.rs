//! Searches the changed files that a review leaves out for secrets, whatever the reason is. The search needs no syntax
//! tree: it finds keys by their shape.

use std::cell::Cell;
use std::collections::HashSet;

use crate::domain::{Finding, FindingCounts, OmissionReason, OmittedFile, RunEvent, RunId, RunStatus, Time};
use crate::git::{Changeset, Repo, is_binary_by_type};
use crate::review::{ReviewOutcome, summarize_run};
use crate::reviewers::analyzer;
use crate::runner::worker::RunWorker;
use crate::runner::{RunnerError, Services};

/// Maximum total size in bytes of the texts that a worker searches, old and new ones together: about a second of work.
pub(in crate::runner) const MAX_SCANNED_BYTES: u64 = 256 << 20;
/// Maximum total size in bytes that is searched while somebody waits for the answer to a request: about a tenth of a
/// second.
pub(in crate::runner) const MAX_FOREGROUND_BYTES: u64 = 32 << 20;

/// Searches files of one change, up to a total number of bytes.
pub(in crate::runner) struct LeftOutScan<'a> {
    repo: &'a Repo,
    change: &'a Changeset,
    base: &'a str,
    snapshot: &'a str,
    remaining_bytes: Cell<u64>,
}

/// Result of a search.
#[derive(Default)]
pub(in crate::runner) struct LeftOutSecrets {
    /// A finding for each secret that the change adds. They have no run and no time yet.
    pub findings: Vec<Finding>,
    /// Files that were too large to be searched, and that may hold text.
    pub unsearched: HashSet<String>,
}

/// Text of one side of a file.
enum ScannedText {
    Text(Vec<u8>),
    /// Larger than the bytes that remain.
    TooLarge,
    /// Not in the commit, or lost.
    Missing,
}

impl<'a> LeftOutScan<'a> {
    /// Creates a search that reads at most `max_bytes`.
    pub fn new(
        services: &'a Services,
        change: &'a Changeset,
        (base, snapshot): (&'a str, &'a str),
        max_bytes: u64,
    ) -> Self {
        Self { repo: &services.repo, change, base, snapshot, remaining_bytes: Cell::new(max_bytes) }
    }

    /// Finds the secrets that the change adds to these files.
    pub fn find_secrets(&self, files: &[OmittedFile], run: &RunId) -> LeftOutSecrets {
        let mut secrets = LeftOutSecrets::default();
        for file in files.iter().filter(|file| has_content(file.reason)) {
            match self.read(self.snapshot, &file.path) {
                ScannedText::Text(text) => {
                    let found = analyzer::find_text_secrets(&file.path, &text, &|| self.read_old(&file.path));
                    let found = analyzer::to_findings(&found, &file.path, &text, run, Time::UNIX_EPOCH);
                    secrets.findings.extend(found);
                }
                ScannedText::TooLarge if !is_binary_by_type(file.path.as_bytes()) => {
                    secrets.unsearched.insert(file.path.clone());
                }
                ScannedText::TooLarge | ScannedText::Missing => {}
            }
        }
        secrets
    }

    /// Returns true if a review of the change would report a secret in a file that it leaves out, or if not all of them
    /// can be searched. Ends at the first such file.
    pub fn has_secret_files(&self) -> bool {
        let mut files = self.change.left_out.iter().filter(|file| has_content(file.reason));
        files.any(|file| match self.read(self.snapshot, &file.path) {
            ScannedText::Text(text) => {
                !analyzer::find_text_secrets(&file.path, &text, &|| self.read_old(&file.path)).is_empty()
            }
            ScannedText::TooLarge => !is_binary_by_type(file.path.as_bytes()),
            ScannedText::Missing => false,
        })
    }

    /// Reads the file before the change. `None` if there is none, or no bytes remain: then each secret counts as new.
    fn read_old(&self, path: &str) -> Option<Vec<u8>> {
        let old_path = self.change.moved.get(path).map_or(path, String::as_str);
        match self.base.is_empty() {
            true => None,
            false => match self.read(self.base, old_path) {
                ScannedText::Text(text) => Some(text),
                ScannedText::TooLarge | ScannedText::Missing => None,
            },
        }
    }

    fn read(&self, commit: &str, path: &str) -> ScannedText {
        let blob = self.repo.blob_at(commit, path).ok().flatten();
        let Some((blob, size)) = blob.and_then(|blob| self.repo.blob_size(&blob).ok().map(|size| (blob, size))) else {
            return ScannedText::Missing;
        };
        let Some(remaining_bytes) = self.remaining_bytes.get().checked_sub(size) else { return ScannedText::TooLarge };
        self.remaining_bytes.set(remaining_bytes);
        self.repo.blob(&blob).map_or(ScannedText::Missing, ScannedText::Text)
    }
}

/// Returns true if a file that is left out for this reason has content of its own.
fn has_content(reason: OmissionReason) -> bool {
    use OmissionReason as R;
    !matches!(reason, R::Deleted | R::NoContentChange | R::Submodule | R::Symlink | R::Unreadable)
}

impl RunWorker<'_> {
    /// Adds the secrets in the files that the review left out to its findings. A file that is too large to be searched
    /// becomes a gap.
    pub(super) fn add_left_out_secrets(
        &mut self,
        change: &Changeset,
        outcome: &mut ReviewOutcome,
    ) -> Result<(), RunnerError> {
        if outcome.status != RunStatus::Completed {
            return Ok(());
        }
        let subject = &self.record.subject;
        let commits = (subject.base_commit.as_str(), subject.snapshot_commit.as_str());
        let scan = LeftOutScan::new(self.services, change, commits, MAX_SCANNED_BYTES);
        let LeftOutSecrets { findings: mut found, unsearched } =
            scan.find_secrets(&outcome.coverage.left_out, &self.record.run_id);
        found.retain(|new| outcome.findings.iter().all(|known| known.finding_id != new.finding_id));
        if found.is_empty() && unsearched.is_empty() {
            return Ok(());
        }
        outcome.coverage.hide_files(&unsearched);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Scope;
    use crate::runner::fixture::RunnerFixture;

    fn made_up_key() -> String {
        format!("AKIA{}", "Z7Q2M4X6B3N5V2K4")
    }

    /// Returns the number of findings, and the files that are not searched, of a search of at most `max_bytes`.
    fn search(fixture: &RunnerFixture, max_bytes: u64) -> (usize, Vec<String>, bool) {
        let services = &fixture.services;
        let scope = Scope::Commit(services.repo.head());
        let snapshot = services.repo.take_snapshot(&scope, &services.filter()).expect("a snapshot");
        let commits = (snapshot.base_commit.as_str(), snapshot.snapshot_commit.as_str());
        let scan = || LeftOutScan::new(services, &snapshot.change, commits, max_bytes);
        let found = scan().find_secrets(&snapshot.change.left_out, &services.ambient.new_run_id());
        let mut unsearched: Vec<String> = found.unsearched.into_iter().collect();
        unsearched.sort();
        (found.findings.len(), unsearched, scan().has_secret_files())
    }

    #[test]
    fn both_sides_of_all_files_share_one_limit_and_the_rest_is_named() {
        let fixture = RunnerFixture::new();
        let lock = |text: &str| format!("{text}{}\n", " ".repeat(1000));
        fixture.commit_files(&[("Cargo.lock", lock("first").as_bytes())]);
        let key = lock(&format!("key = {}", made_up_key()));
        let image = [&b"\x89PNG\r\n\x1a\n\0"[..], &[0; 2000]].concat();
        fixture.commit_files(&[
            ("Cargo.lock", key.as_bytes()),
            ("package-lock.json", lock("{}").as_bytes()),
            ("logo.png", &image),
        ]);
        // The new lock, the old one, the new file.
        assert_eq!(search(&fixture, 1 << 20), (1, Vec::new(), true));
        assert_eq!(search(&fixture, 2_100), (1, vec!["package-lock.json".to_owned()], true));
        let both = vec!["Cargo.lock".to_owned(), "package-lock.json".to_owned()];
        assert_eq!(search(&fixture, 500), (0, both, true));
    }
}
