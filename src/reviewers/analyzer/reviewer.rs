//! Implements [`Reviewer`] for the built-in smells: reviews each changed file alone, then searches copies in the whole
//! snapshot.
//!
//! - All content comes from the objects of the snapshot.
//! - The report follows the order of the files in the unit, for any number of threads.
//! - A panic during the analysis of a file loses the result of this file only.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Builtin;
use super::change::LineSet;
use super::findings::to_findings;
use super::learned_rules::LearnedRules;
use super::limits::{Limits, LimitsError};
use super::other_files::FileSource;
use super::smells::Smell;
use super::smells::duplicate_code::index::CloneIndex;
use super::smells::duplicate_code::search::{ChangedFile, CloneSearch, FingerprintSource};
use crate::domain::{
    ErrorClass, Finding, LineRange, OmissionReason, OmittedFile, ReviewUnitKind, ReviewedFile, RunId, Time, UnitReport,
    content_hash, text::format_count,
};
use crate::git::{ChangeKind, FileChange, FilterSettings, GitError, Repo, TreeFile};
use crate::reviewers::{Reviewer, ReviewerError};
use crate::syntax::ParseFailure;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Version of the rules. Raise it if the same code and thresholds give other findings within one package version.
const RULES_VERSION: u32 = 6;

/// Number of files in a unit. Measured: from this size on, one durable write per finding and file costs less than
/// reading the files, and a killed worker repeats at most 0.1 s of work.
const FILES_PER_UNIT: usize = 32;

/// Minimum number of files for a second thread. Below it, starting the thread costs more than it saves.
const MIN_FILES_FOR_SECOND_THREAD: usize = 4;

/// Stack size of the second thread, in bytes.
const THREAD_STACK_BYTES: usize = 8 << 20;

/// Maximum total size of changed files whose syntax trees are held at once, in bytes. Above it, copies are searched
/// only among the changed files, by fingerprints.
const MAX_CHANGED_BYTES: usize = 4 << 20;

/// Returns a version that changes whenever the same code could lead to other findings: 16 hexadecimal digits of a hash
/// of the package version, the rules version and the thresholds in force (`smells`, TOML).
///
/// The learned rules are not part of the version on purpose. They grow with every settled finding, so no earlier review
/// would stay valid. They only add hints of the lowest priority and hide nothing, so a review with fewer rules is as
/// good. Changed code is reviewed with all rules known by then.
pub fn policy_version(smells: &str) -> String {
    let rules = RULES_VERSION.to_le_bytes();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    content_hash([b"builtin".as_slice(), version, &rules, smells.as_bytes()]).chars().take(16).collect()
}

/// Snapshot to review, and the files in which a review may search.
#[derive(Debug, Clone)]
pub struct ReviewedSnapshot {
    /// Run that reports the findings.
    pub run_id: RunId,
    /// Commit whose tree is reviewed.
    pub commit: String,
    /// Commit that the change is compared with, or that has its settings; `None` if it is cut off by a shallow clone.
    pub base: Option<String>,
    /// Filter that excludes files from a review; it also limits the files that are searched for copies.
    pub filter: FilterSettings,
}

/// Built-in reviewer of one run.
pub struct BuiltinReviewer {
    repo: Arc<Mutex<Repo>>,
    snapshot: ReviewedSnapshot,
    builtin: Builtin,
    known: Option<Arc<dyn FingerprintSource>>,
}

/// The files of a snapshot that a review may search.
struct SearchedSnapshot {
    repo: Arc<Mutex<Repo>>,
    snapshot: ReviewedSnapshot,
    /// Blobs by path.
    blobs: OnceLock<HashMap<String, String>>,
}

impl SearchedSnapshot {
    fn blobs(&self) -> &HashMap<String, String> {
        self.blobs.get_or_init(|| {
            let repo = self.repo.lock().unwrap_or_else(PoisonError::into_inner);
            let files = list_searched_files(&repo, &self.snapshot.commit, &self.snapshot.filter).unwrap_or_default();
            files.into_iter().map(|file| (file.path, file.blob)).collect()
        })
    }
}

impl FileSource for SearchedSnapshot {
    fn paths(&self) -> Vec<String> {
        self.blobs().keys().cloned().collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let blob = self.blobs().get(path)?;
        self.repo.lock().unwrap_or_else(PoisonError::into_inner).blob(blob).ok()
    }
}

/// Result of the review of one file.
enum FileOutcome {
    Reviewed {
        findings: Vec<Finding>,
        lines: u32,
    },
    LeftOut {
        reason: OmissionReason,
        note: Option<String>,
        /// True if the base of the change was reviewable.
        is_hidden_by_change: bool,
    },
}

impl FileOutcome {
    fn failed() -> Self {
        Self::from_error(ParseFailure::Failed)
    }

    fn from_error(why: ParseFailure) -> Self {
        match why {
            ParseFailure::UnknownLanguage => Self::left_out(OmissionReason::UnsupportedLanguage, None),
            ParseFailure::TooComplex => Self::left_out(OmissionReason::TooComplex, None),
            ParseFailure::OutOfMemory | ParseFailure::TooComplexToCheck => {
                Self::left_out(OmissionReason::TooComplex, Some(why.to_string()))
            }
            ParseFailure::Failed => Self::left_out(OmissionReason::Unreadable, Some(why.to_string())),
        }
    }

    fn left_out(reason: OmissionReason, note: Option<String>) -> Self {
        Self::LeftOut { reason, note, is_hidden_by_change: false }
    }
}

/// Builds the report from the outcomes of `files`, at most one per file. A file without an outcome, because its thread
/// died, counts as not read.
fn build_report(files: &[FileChange], done: Vec<(usize, FileOutcome)>) -> UnitReport {
    let mut outcomes: Vec<Option<FileOutcome>> = files.iter().map(|_| None).collect();
    for (index, outcome) in done {
        if let Some(slot) = outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
    }
    let mut report = UnitReport::default();
    for (file, outcome) in files.iter().zip(outcomes) {
        let path = file.path.clone();
        match outcome.unwrap_or_else(FileOutcome::failed) {
            FileOutcome::Reviewed { findings, lines } => {
                report.findings.extend(findings);
                report.read.push(ReviewedFile { path, lines });
            }
            FileOutcome::LeftOut { reason, note, is_hidden_by_change: hidden } => {
                report.notes.extend(note.map(|note| format!("{path}: {note}")));
                report.left_out.push(OmittedFile { hidden, ..OmittedFile::new(path, reason) });
            }
        }
    }
    report
}

impl BuiltinReviewer {
    /// Creates a reviewer of `snapshot` with the thresholds `smells` (TOML).
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError`] if the thresholds cannot be used.
    pub fn new(repo: Repo, snapshot: ReviewedSnapshot, smells: &str) -> Result<Self, LimitsError> {
        let limits = Limits::from_layers([("the settings in force", smells)])?;
        let repo = Arc::new(Mutex::new(repo));
        let files = SearchedSnapshot { repo: Arc::clone(&repo), snapshot: snapshot.clone(), blobs: OnceLock::new() };
        Ok(Self { repo, snapshot, builtin: Builtin::new(limits).with_other_files(Box::new(files)), known: None })
    }

    /// Returns the reviewer with `lessons`, the rules learned from earlier code.
    #[must_use]
    pub fn with_learned_rules(self, lessons: Arc<dyn LearnedRules>) -> Self {
        Self { builtin: self.builtin.with_learned_rules(lessons), ..self }
    }

    /// Returns the reviewer with `known`, a source of fingerprints of the snapshot's files. Fingerprints that it lacks
    /// are computed, up to the budget of the search.
    #[must_use]
    pub fn with_fingerprints(self, known: Option<Arc<dyn FingerprintSource>>) -> Self {
        Self { known, ..self }
    }

    fn repo(&self) -> MutexGuard<'_, Repo> {
        self.repo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        self.repo().blob(id)
    }

    fn review_files(&self, files: &[FileChange], cancelled: &dyn Fn() -> bool) -> Result<UnitReport, ReviewerError> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let take = || match stop.load(Ordering::Relaxed) {
            true => None,
            false => {
                let index = next.fetch_add(1, Ordering::Relaxed);
                files.get(index).map(|file| (index, file))
            }
        };
        let work = |look: &dyn Fn()| {
            let (mut parsers, mut done) = (Parsers::default(), Vec::new());
            while let Some((index, file)) = take() {
                done.push((index, self.review_file(&mut parsers, file)));
                look();
            }
            done
        };
        let look = || {
            if cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let done: Vec<(usize, FileOutcome)> = std::thread::scope(|scope| {
            let helper = (files.len() >= MIN_FILES_FOR_SECOND_THREAD).then(|| {
                let thread = std::thread::Builder::new().name("review".to_owned()).stack_size(THREAD_STACK_BYTES);
                thread.spawn_scoped(scope, || work(&|| ())).ok()
            });
            let mut done = work(&look);
            if let Some(Ok(more)) = helper.flatten().map(std::thread::ScopedJoinHandle::join) {
                done.extend(more);
            }
            done
        });
        if stop.load(Ordering::Relaxed) {
            return Err(ReviewerError::Cancelled);
        }
        Ok(build_report(files, done))
    }

    /// Reviews one file. A panic becomes a failed outcome.
    fn review_file(&self, parsers: &mut Parsers, file: &FileChange) -> FileOutcome {
        match catch_unwind(AssertUnwindSafe(|| self.load_and_review(parsers, file))) {
            Ok(outcome) => outcome,
            Err(_) => {
                *parsers = Parsers::default();
                FileOutcome::failed()
            }
        }
    }

    fn load_and_review(&self, parsers: &mut Parsers, file: &FileChange) -> FileOutcome {
        let text = match self.blob(&file.new_blob) {
            Ok(text) => text,
            Err(error) => {
                return FileOutcome::left_out(OmissionReason::Unreadable, Some(error.to_string()));
            }
        };
        let old = || {
            let old = self.blob(file.old_blob.as_deref()?).ok()?;
            Some((file.old_path.clone().unwrap_or_else(|| file.path.clone()), old))
        };
        match self.builtin.review_change(parsers, &file.path, &text, &file.hunks, old) {
            Ok(smells) => FileOutcome::Reviewed {
                findings: self.build_findings(&smells, &file.path, &text),
                lines: count_lines(&text),
            },
            Err(why) => match FileOutcome::from_error(why) {
                FileOutcome::LeftOut { reason, note, .. } => {
                    let is_hidden_by_change = self.is_hidden_by_change(parsers, file, reason);
                    FileOutcome::LeftOut { reason, note, is_hidden_by_change }
                }
                reviewed => reviewed,
            },
        }
    }

    /// Returns true if the change itself keeps a file from being analyzed: the base could be, or has no such file. Without
    /// a base, as in a shallow clone, the change is not accused.
    fn is_hidden_by_change(&self, parsers: &mut Parsers, file: &FileChange, reason: OmissionReason) -> bool {
        let Some(base) = self.snapshot.base.as_deref() else { return false };
        let old_path = file.old_path.as_deref().filter(|_| file.kind == ChangeKind::Renamed).unwrap_or(&file.path);
        let old = || self.repo().file_at(base, old_path).ok().flatten();
        match reason {
            OmissionReason::TooComplex => {
                old().is_none_or(|old| !is_too_complex(self.builtin.analyze_file(parsers, old_path, &old).err()))
            }
            // An extension tells the language, whatever the content is.
            OmissionReason::UnsupportedLanguage if old_path == file.path && has_extension(old_path) => false,
            OmissionReason::UnsupportedLanguage => old().is_some_and(|old| Language::detect(old_path, &old).is_some()),
            _ => false,
        }
    }

    /// Converts smells to findings. The caller of the reviewer sets the final run ids and times.
    fn build_findings(&self, smells: &[Smell], path: &str, text: &[u8]) -> Vec<Finding> {
        to_findings(smells, path, text, &self.snapshot.run_id, Time::UNIX_EPOCH)
    }

    fn find_clones(&self, files: &[FileChange], cancelled: &dyn Fn() -> bool) -> Result<UnitReport, ReviewerError> {
        let mut texts: Vec<(&FileChange, Language, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        for file in files {
            if cancelled() {
                return Err(ReviewerError::Cancelled);
            }
            // The review of the single file has already reported that it cannot be read.
            let Ok(text) = self.blob(&file.new_blob) else { continue };
            let Some(language) = Language::detect(&file.path, &text) else { continue };
            bytes += text.len();
            texts.push((file, language, text));
            if bytes > MAX_CHANGED_BYTES {
                return self.find_clones_among_changed(files, cancelled);
            }
        }
        let mut parsers = Parsers::default();
        let mut parsed = Vec::with_capacity(texts.len());
        for (file, language, text) in &texts {
            if cancelled() {
                return Err(ReviewerError::Cancelled);
            }
            let Ok(source) = parsers.parse(&file.path, *language, text) else { continue };
            let facts = FileFacts::from_parsed(&source);
            parsed.push((*file, source, facts, added_lines(file)));
        }
        let changed: Vec<ChangedFile<'_>> =
            parsed.iter().map(|(_, source, facts, added)| ChangedFile { source, facts, added }).collect();
        let search = CloneSearch::new(self.known.as_deref());
        let repo = self.repo();
        let tree =
            list_searched_files(&repo, &self.snapshot.commit, &self.snapshot.filter).map_err(to_reviewer_error)?;
        let found = search.run(&changed, &tree, &mut |blob| repo.blob(blob).ok(), self.builtin.limits());
        let mut report = UnitReport { notes: found.notes, unindexed_bytes: found.bytes_read, ..UnitReport::default() };
        let mut smells_of: Vec<Vec<Smell>> = parsed.iter().map(|_| Vec::new()).collect();
        for (index, smell) in found.smells {
            if let Some(smells) = smells_of.get_mut(index) {
                smells.push(smell);
            }
        }
        for ((file, source, facts, _), mut smells) in parsed.iter().zip(smells_of) {
            if !smells.is_empty() {
                self.builtin.redact_and_lower(source, facts, &mut smells);
            }
            report.findings.extend(self.build_findings(&smells, &file.path, source.text));
            report.read.push(ReviewedFile { path: file.path.clone(), lines: count_lines(source.text) });
        }
        Ok(report)
    }

    /// Searches copies among the changed files only, for files that are too large to be held at once.
    fn find_clones_among_changed(
        &self,
        files: &[FileChange],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<UnitReport, ReviewerError> {
        let mut index = CloneIndex::default();
        for file in files {
            if cancelled() {
                return Err(ReviewerError::Cancelled);
            }
            let Ok(text) = self.blob(&file.new_blob) else { continue };
            if let Some(language) = Language::detect(&file.path, &text) {
                index.add_file(&file.path, language, &text);
            }
        }
        let by_path: HashMap<&str, &FileChange> = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut read = |path: &str| self.blob(&by_path.get(path)?.new_blob).ok();
        let found = index.find_clones(&mut read, self.builtin.limits());
        let mut report = UnitReport::default();
        let mut parsers = Parsers::default();
        for group in found.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((path, _)) = group.first() else { continue };
            let Some(file) = by_path.get(path.as_str()) else { continue };
            let Ok(text) = self.blob(&file.new_blob) else { continue };
            let Some(language) = Language::detect(path, &text) else { continue };
            let Ok(source) = parsers.parse(path, language, &text) else { continue };
            let added = LineSet::from_hunks(&file.hunks);
            let mut smells: Vec<Smell> = group
                .iter()
                .map(|(_, smell)| smell.clone())
                .filter(|smell| added.overlaps(smell.line_start, smell.line_end))
                .collect();
            if !smells.is_empty() {
                self.builtin.redact_and_lower(&source, &FileFacts::from_parsed(&source), &mut smells);
            }
            report.findings.extend(self.build_findings(&smells, path, &text));
            report.read.push(ReviewedFile { path: path.clone(), lines: count_lines(&text) });
        }
        report.notes.push(format!(
            "copies were looked for among the {} only: the change is over {} MB",
            format_count(files.len(), "changed file"),
            MAX_CHANGED_BYTES >> 20
        ));
        Ok(report)
    }
}

impl Reviewer for BuiltinReviewer {
    fn review(
        &mut self,
        kind: ReviewUnitKind,
        files: &[FileChange],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<UnitReport, ReviewerError> {
        match kind {
            ReviewUnitKind::EachFile => self.review_files(files, cancelled),
            ReviewUnitKind::CrossFile => match catch_unwind(AssertUnwindSafe(|| self.find_clones(files, cancelled))) {
                Ok(report) => report,
                Err(_) => Err(ReviewerError::Failed {
                    class: ErrorClass::Internal,
                    summary: "the search for copies failed; that is a fault of revdeck".to_owned(),
                }),
            },
        }
    }

    fn files_per_unit(&self) -> usize {
        FILES_PER_UNIT
    }

    fn has_cross_file_unit(&self) -> bool {
        self.builtin.limits().duplicate_code.enabled
    }
}

/// Returns the files of a commit in which copies are searched.
fn list_searched_files(repo: &Repo, commit: &str, filter: &FilterSettings) -> Result<Vec<TreeFile>, GitError> {
    let mut judge = repo.review_filter(commit, filter)?;
    let mut files = repo.tree_files(commit)?;
    files
        .retain(|file| Language::detect(&file.path, b"").is_some() && judge.left_out_reason(&file.path, b"").is_none());
    Ok(files)
}

/// Returns whether a file could not be analyzed because of its content.
fn is_too_complex(failure: Option<ParseFailure>) -> bool {
    matches!(failure, Some(ParseFailure::TooComplex | ParseFailure::TooComplexToCheck | ParseFailure::OutOfMemory))
}

fn has_extension(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some()
}

/// Returns the lines that a change added or changed.
fn added_lines(file: &FileChange) -> Vec<LineRange> {
    file.hunks.iter().filter(|hunk| hunk.new_lines > 0).map(|hunk| hunk.new_range()).collect()
}

fn count_lines(text: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text).count() + 1).unwrap_or(u32::MAX)
}

fn to_reviewer_error(error: GitError) -> ReviewerError {
    ReviewerError::Failed { class: ErrorClass::Git, summary: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_thread_gave_back_is_left_out_and_said() {
        let files: Vec<FileChange> = ["a.rs", "b.rs", "c.rs"]
            .map(|path| FileChange {
                path: path.to_owned(),
                old_path: None,
                kind: ChangeKind::Added,
                old_blob: None,
                new_blob: String::new(),
                hunks: Vec::new(),
            })
            .into();
        let reviewed = |lines| FileOutcome::Reviewed { findings: Vec::new(), lines };
        let report = build_report(&files, vec![(2, reviewed(7)), (0, reviewed(5))]);
        let read: Vec<_> = report.read.iter().map(|file| (file.path.as_str(), file.lines)).collect();
        assert_eq!(read, [("a.rs", 5), ("c.rs", 7)]);
        assert_eq!(report.left_out, [OmittedFile::new("b.rs", OmissionReason::Unreadable)]);
        assert!(report.notes.len() == 1 && report.notes[0].starts_with("b.rs: "), "{:?}", report.notes);
    }

    #[test]
    fn the_policy_version_moves_with_the_thresholds() {
        let (one, other) = (policy_version("[long_method]\nmax_code_lines = 60\n"), policy_version(""));
        assert_ne!(one, other);
        assert_eq!(other, policy_version(""));
        assert_eq!(one.len(), 16);
    }

    #[test]
    fn a_content_too_complex_in_any_way_is_no_change_of_this_review() {
        for (failure, expected) in [
            (Some(ParseFailure::TooComplex), true),
            (Some(ParseFailure::TooComplexToCheck), true),
            (Some(ParseFailure::OutOfMemory), true),
            (Some(ParseFailure::UnknownLanguage), false),
            (None, false),
        ] {
            assert_eq!(is_too_complex(failure), expected, "{failure:?}");
        }
    }
}
