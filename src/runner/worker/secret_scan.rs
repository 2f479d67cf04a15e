//! Searches changed files for secrets that the change adds: files that a review leaves out, whatever the reason is, and
//! files that only a model reviews. The search finds keys by their shape, and long random values by their name.
//!
//! - What it finds in the run of a model is not the model's: it is marked as [`FindingStep::Scanned`], and a report of the
//!   model that it makes more urgent as [`FindingStep::Raised`].
//! - A secret has the same identity here and in the built-in reviewer. That one reads the syntax tree: it also reports
//!   shorter values with the name of a secret, and none in comments. Neither reports placeholders.

use std::cell::Cell;
use std::collections::HashSet;

use crate::domain::text::has_word;
use crate::domain::{
    Finding, FindingCounts, FindingStep, Kind, OmissionReason, OmittedFile, RunEvent, RunId, RunStatus, Time, text,
};
use crate::git::{Changeset, Repo, is_binary_by_type};
use crate::review::{ReviewOutcome, summarize_outcome};
use crate::reviewers::analyzer::{self, TestCodeCheck};
use crate::runner::worker::RunWorker;
use crate::runner::{BUILTIN_REVIEWER, RunnerError, Services};

/// Maximum total size in bytes of the texts that a worker searches, old and new ones together: about a second of work.
pub(in crate::runner) const MAX_SCANNED_BYTES: u64 = 256 << 20;
/// Maximum total size in bytes that is searched while somebody waits for the answer to a request: about a tenth of a
/// second.
pub(in crate::runner) const MAX_FOREGROUND_BYTES: u64 = 32 << 20;
/// Maximum number of lines of a model's finding that counts as a report of a secret in these lines. Not from the
/// literature: a finding about more code is hardly about one value.
const MAX_SECRET_REPORT_LINES: u32 = 3;
/// Words that tell a security finding about a secret from one about other code in its line.
const SECRET_WORDS: [&str; 6] = ["secret", "key", "password", "passphrase", "credential", "token"];

/// Searches files of one change, up to a total number of bytes.
pub(in crate::runner) struct SecretScan<'a> {
    repo: &'a Repo,
    change: &'a Changeset,
    base: &'a str,
    snapshot: &'a str,
    remaining_bytes: Cell<u64>,
}

/// Result of a search.
#[derive(Default)]
pub(in crate::runner) struct FoundSecrets {
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

impl<'a> SecretScan<'a> {
    /// Creates a search that reads at most `max_bytes`.
    pub fn new(
        services: &'a Services,
        change: &'a Changeset,
        (base, snapshot): (&'a str, &'a str),
        max_bytes: u64,
    ) -> Self {
        Self { repo: &services.repo, change, base, snapshot, remaining_bytes: Cell::new(max_bytes) }
    }

    /// Finds the secrets that the change adds to files that a review left out.
    pub fn find_in_left_out(&self, files: &[OmittedFile], run: &RunId) -> FoundSecrets {
        let mut secrets = FoundSecrets::default();
        for file in files.iter().filter(|file| has_content(file.reason)) {
            // A file that the review did not reach is as any other file to review.
            let tests = if file.reason.is_early_end() { TestCodeCheck::Syntax } else { TestCodeCheck::Path };
            self.search_file(&file.path, tests, run, &mut secrets);
        }
        secrets
    }

    /// Finds the secrets that the change adds to the files to review, without those in `left_out`.
    pub fn find_in_reviewed(&self, left_out: &[OmittedFile], run: &RunId) -> FoundSecrets {
        let left_out: HashSet<&str> = left_out.iter().map(|file| file.path.as_str()).collect();
        let mut secrets = FoundSecrets::default();
        for file in self.change.files.iter().filter(|file| !left_out.contains(file.path.as_str())) {
            self.search_file(&file.path, TestCodeCheck::Syntax, run, &mut secrets);
        }
        secrets
    }

    fn search_file(&self, path: &str, tests: TestCodeCheck, run: &RunId, secrets: &mut FoundSecrets) {
        match self.read(self.snapshot, path) {
            ScannedText::Text(text) => {
                let found = analyzer::find_text_secrets(path, &text, tests, &|| self.read_old(path));
                secrets.findings.extend(analyzer::to_findings(&found, path, &text, run, Time::UNIX_EPOCH));
            }
            ScannedText::TooLarge if !is_binary_by_type(path.as_bytes()) => {
                secrets.unsearched.insert(path.to_owned());
            }
            ScannedText::TooLarge | ScannedText::Missing => {}
        }
    }

    /// Returns true if a review of the change would report a secret in a file that it leaves out, or if not all of them
    /// can be searched. Ends at the first such file.
    pub fn has_secret_files(&self) -> bool {
        let mut files = self.change.left_out.iter().filter(|file| has_content(file.reason));
        files.any(|file| match self.read(self.snapshot, &file.path) {
            ScannedText::Text(text) => {
                let old = || self.read_old(&file.path);
                !analyzer::find_text_secrets(&file.path, &text, TestCodeCheck::Path, &old).is_empty()
            }
            ScannedText::TooLarge => !is_binary_by_type(file.path.as_bytes()),
            ScannedText::Missing => false,
        })
    }

    /// Reads the file before the change. `None` if there is none, or no bytes remain: then each secret counts as new.
    fn read_old(&self, path: &str) -> Option<Vec<u8>> {
        match self.base.is_empty() {
            true => None,
            false => match self.read(self.base, self.old_path(path)) {
                ScannedText::Text(text) => Some(text),
                ScannedText::TooLarge | ScannedText::Missing => None,
            },
        }
    }

    /// Returns the path of a changed file before the change.
    fn old_path<'p>(&'p self, path: &'p str) -> &'p str {
        if let Some(old) = self.change.moved.get(path) {
            return old;
        }
        let file = self.change.files.binary_search_by(|file| file.path.as_str().cmp(path));
        file.ok().and_then(|at| self.change.files[at].old_path.as_deref()).unwrap_or(path)
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

/// Returns true if a finding is a model's report of this secret, and not what an earlier attempt has found here: a line may hold
/// two secrets.
fn reports_secret(known: &Finding, secret: &Finding) -> bool {
    if known.is_from_secret_scan() {
        return false;
    }
    let lines = known.lines();
    let is_here = known.repo_relative_path == secret.repo_relative_path
        && lines.overlaps(secret.lines())
        && lines.count() <= MAX_SECRET_REPORT_LINES;
    let is_kind = matches!(known.kind, Kind::HardcodedConfiguration | Kind::Security);
    is_here && is_kind && [&known.title, &known.explanation].into_iter().any(|text| has_word(text, &SECRET_WORDS))
}

/// Gives a model's finding about a secret at least the urgency of the secret, so that a model cannot play it down. The
/// finding keeps the priority that the model gave. Returns true if this changes the finding.
fn raise_to_secret(known: &mut Finding, secret: &Finding) -> bool {
    let before = (known.priority, known.severity);
    known.priority = known.priority.min(secret.priority);
    known.severity = known.severity.max(secret.severity);
    if known.priority != before.0 {
        known.steps.push(FindingStep::Raised { from: before.0, to: known.priority });
    }
    before != (known.priority, known.severity)
}

impl RunWorker<'_> {
    /// Adds a finding for each new secret in a file that the review left out or that only a model reviewed. If the model
    /// reported the secret, its finding is raised instead. A left-out file that is too large to be searched becomes a
    /// gap; a note counts other such files.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or the journal cannot be written.
    pub(super) fn add_new_secrets(
        &mut self,
        change: &Changeset,
        outcome: &mut ReviewOutcome,
    ) -> Result<(), RunnerError> {
        // The run that supersedes this one searches the newer code.
        if outcome.status == RunStatus::Superseded {
            return Ok(());
        }
        let (subject, run) = (&self.record.subject, &self.record.run_id);
        let commits = (subject.base_commit.as_str(), subject.snapshot_commit.as_str());
        let scan = SecretScan::new(self.services, change, commits, MAX_SCANNED_BYTES);
        let FoundSecrets { findings: mut found, unsearched } = scan.find_in_left_out(&outcome.coverage.left_out, run);
        outcome.coverage.hide_files(&unsearched);
        let mut unsearched_reviewed = 0;
        if self.record.reviewed_by.name != BUILTIN_REVIEWER {
            let reviewed = scan.find_in_reviewed(&outcome.coverage.left_out, run);
            found.extend(reviewed.findings);
            unsearched_reviewed = reviewed.unsearched.len();
        }
        if unsearched_reviewed > 0 {
            let files = text::format_count(unsearched_reviewed, "file");
            outcome.notes.push(format!("not searched for secrets, because the change is too large: {files}"));
        }
        for secret in &mut found {
            self.leave_foreign_id(secret)?;
        }
        found.retain(|new| outcome.findings.iter().all(|known| known.finding_id != new.finding_id));
        if found.is_empty() && unsearched.is_empty() {
            return Ok(());
        }
        let reported = outcome.findings.len();
        // A finding reports one secret: a second one needs a finding of its own.
        let mut is_taken = vec![false; reported];
        for mut secret in found {
            let (models, _) = outcome.findings.split_at_mut(reported);
            let mut free = models.iter_mut().zip(&mut is_taken).filter(|(_, is_taken)| !**is_taken);
            if let Some((known, is_taken)) = free.find(|(known, _)| reports_secret(known, &secret)) {
                *is_taken = true;
                // A carried finding was raised in its own run.
                let is_own = outcome.coverage.carried_from_run(&known.finding_id).is_none();
                if is_own && raise_to_secret(known, &secret) {
                    let finding = Box::new(known.clone());
                    self.buffer.push(RunEvent::Restated { turn: outcome.spent.turns, finding });
                }
                continue;
            }
            self.stamp(&mut secret)?;
            // The built-in reviewer is revdeck.
            if self.record.reviewed_by.name != BUILTIN_REVIEWER {
                secret.steps.push(FindingStep::Scanned);
            }
            self.buffer.push(RunEvent::Finding { finding: Box::new(secret.clone()) });
            outcome.findings.push(secret);
        }
        self.flush()?;
        outcome.counts = FindingCounts::from_findings(&outcome.findings);
        outcome.summary = summarize_outcome(outcome);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Priority, Scope};
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
        let scan = || SecretScan::new(services, &snapshot.change, commits, max_bytes);
        let found = scan().find_in_left_out(&snapshot.change.left_out, &services.ambient.new_run_id());
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

    /// Returns the secrets in the files to review of the last commit.
    fn find_reviewed(fixture: &RunnerFixture) -> Vec<Finding> {
        let services = &fixture.services;
        let scope = Scope::Commit(services.repo.head());
        let snapshot = services.repo.take_snapshot(&scope, &services.filter()).expect("a snapshot");
        let commits = (snapshot.base_commit.as_str(), snapshot.snapshot_commit.as_str());
        let scan = SecretScan::new(services, &snapshot.change, commits, MAX_SCANNED_BYTES);
        scan.find_in_reviewed(&[], &services.ambient.new_run_id()).findings
    }

    /// Returns the lines and priorities of [`find_reviewed`].
    fn reviewed(fixture: &RunnerFixture) -> Vec<(u32, Priority)> {
        find_reviewed(fixture).iter().map(|finding| (finding.line_start, finding.priority)).collect()
    }

    #[test]
    fn what_an_earlier_attempt_has_found_is_no_report_of_another_secret_in_its_line() {
        let fixture = RunnerFixture::new();
        fixture.commit_files(&[("a.py", format!("key = '{}'\n", made_up_key()).as_bytes())]);
        let found = find_reviewed(&fixture);
        let [secret] = found.as_slice() else { panic!("{found:#?}") };
        let told = Finding { title: "A key stands in the code".to_owned(), ..secret.clone() };
        assert!(reports_secret(&told, secret));
        let recorded = Finding { steps: vec![FindingStep::Scanned], ..told };
        assert!(!reports_secret(&recorded, secret));
    }

    #[test]
    fn what_the_old_file_had_is_not_new_even_if_the_file_was_renamed() {
        let fixture = RunnerFixture::new();
        let lines: String = (0..40).map(|line| format!("value_{line} = {line}\n")).collect();
        let old = format!("{lines}key = '{}'\n", made_up_key());
        fixture.commit_files(&[("a.py", old.as_bytes())]);
        assert_eq!(reviewed(&fixture), [(41, Priority::P0)]);
        std::fs::remove_file(fixture.services.repo.root().join("a.py")).expect("removed");
        fixture.commit_files(&[("b.py", format!("{old}more = 1\n").as_bytes())]);
        assert_eq!(reviewed(&fixture), []);
    }

    #[test]
    fn test_code_is_known_by_its_syntax() {
        let fixture = RunnerFixture::new();
        let password = ["Zx9kPq27", "LmW4tRb8"].concat();
        let code = format!("    let password = \"{password}\";\n    let key = \"{}\";\n", made_up_key());
        let text = format!("fn f() {{\n{code}}}\n\n#[cfg(test)]\nmod tests {{\nfn g() {{\n{code}}}\n}}\n");
        fixture.commit_files(&[("a.rs", text.as_bytes())]);
        assert_eq!(reviewed(&fixture), [(2, Priority::P1), (3, Priority::P0), (10, Priority::P2)]);
    }
}
