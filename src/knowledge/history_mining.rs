//! What the history of a repository teaches: the edits of commits that say they fix something.
//!
//! Invariants: a few files are read at a time, and what of them is kept is bounded; a commit, a file or a blob that cannot be read
//! is passed over; everything comes from objects. Of a commit nothing goes out but forms, its time and a digest.

use std::ops::ControlFlow;
use std::path::Path;

use super::abstraction::{LearnedEdit, extract_edits};
use crate::domain::Time;
use crate::git::{GitError, ModifiedFileBlobs, Repo, ReviewFilter};
use crate::reviewers::analyzer::facts::is_test_path;
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::source::Parsers;

/// Files of code, tests aside, of a fix at most. Own: most commits that call themselves a fix change no more; of those that
/// do, most changes are not the fix.
pub const MAX_FILES_PER_FIX: usize = 4;
/// Changes in one file of a fix at most, for the same reason.
pub const MAX_CHANGES_PER_FILE: usize = 12;
/// Larger files are made by programs. In bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Threads at most, and files that are read before they start: both sides of them are in memory at once.
const MAX_THREADS: usize = 8;
const FILES_PER_BATCH: usize = 32;

/// Words of a message that say something was wrong, whole and in any case.
const FIX_WORDS: &[&str] = &[
    "fix",
    "fixes",
    "fixed",
    "fixing",
    "bug",
    "bugs",
    "bugfix",
    "bugfixes",
    "hotfix",
    "crash",
    "crashes",
    "crashed",
    "crashing",
    "regression",
    "regressions",
    "leak",
    "leaks",
    "deadlock",
    "deadlocks",
    "npe",
    "segfault",
    "overflow",
    "underflow",
    "race",
    "panic",
    "panics",
    "hang",
    "hangs",
    "wrong",
    "incorrect",
    "incorrectly",
    "corruption",
];
/// Words of a message that say that no behaviour was wrong.
const NON_FIX_WORDS: &[&str] = &[
    "typo",
    "typos",
    "spelling",
    "grammar",
    "lint",
    "linter",
    "linting",
    "clippy",
    "rubocop",
    "eslint",
    "checkstyle",
    "format",
    "formatting",
    "indentation",
    "whitespace",
    "style",
    "docs",
    "doc",
    "documentation",
    "javadoc",
    "docstring",
    "comment",
    "comments",
    "readme",
    "changelog",
    "revert",
    "reverts",
    "warning",
    "warnings",
    "build",
    "ci",
    "rename",
    "refactor",
    "refactoring",
    "cleanup",
];

/// One edit of a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinedEdit {
    pub language: Language,
    pub edit: LearnedEdit,
    /// A digest of what the commit changed, the same after a rebase and in every clone: an edit of a commit that was
    /// counted is not counted again. Says nothing of the code.
    pub commit: String,
    pub at: Time,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MiningStats {
    /// Commits whose messages were read, without merges.
    pub commits: usize,
    /// Those of them that say they fix something, and have code to learn from.
    pub fixes: usize,
    /// Edits of these that taught something.
    pub edits: usize,
}

/// Calls `each` with the edits of the fixes among the newest commits of a repository, from HEAD, the newest first, until it
/// has enough.
///
/// # Errors
/// A repository without a commit.
pub fn mine_fixes(
    repo: &Repo,
    newest: usize,
    each: &mut dyn FnMut(MinedEdit) -> ControlFlow<()>,
) -> Result<MiningStats, GitError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut parsers: Vec<Parsers> = (0..threads).map(|_| Parsers::default()).collect();
    let mut waiting = Vec::with_capacity(FILES_PER_BATCH);
    let (mut edits, mut enough) = (0, ControlFlow::Continue(()));
    let mined = visit_fixed_files(repo, newest, &mut |file| {
        waiting.push(file);
        if waiting.len() < FILES_PER_BATCH {
            return ControlFlow::Continue(());
        }
        enough = learn_batch(&mut parsers, &mut waiting, &mut edits, each);
        enough
    })?;
    if enough.is_continue() {
        let _ = learn_batch(&mut parsers, &mut waiting, &mut edits, each);
    }
    Ok(MiningStats { edits, ..mined })
}

/// Learns of some files on several threads; what is learned comes in their order. `count` grows by the edits that taught
/// something.
fn learn_batch(
    parsers: &mut [Parsers],
    waiting: &mut Vec<FixedFileVersions>,
    count: &mut usize,
    each: &mut dyn FnMut(MinedEdit) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (threads, files) = (parsers.len(), &*waiting);
    let mut learned: Vec<Vec<LearnedEdit>> = std::thread::scope(|scope| {
        let started: Vec<_> = parsers
            .iter_mut()
            .enumerate()
            .map(|(thread, parsers)| {
                scope.spawn(move || {
                    let own = files.iter().enumerate().skip(thread).step_by(threads);
                    own.map(|(at, file)| (at, extract_edits(parsers, file.language, &file.before, &file.after)))
                        .collect()
                })
            })
            .collect();
        let mut learned = vec![Vec::new(); files.len()];
        // A thread that failed has learned nothing.
        for (at, edits) in started.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|_| Vec::new())) {
            learned[at] = edits;
        }
        learned
    });
    for (file, edits) in waiting.drain(..).zip(&mut learned) {
        let hunks = edits.last().map_or(0, |last| last.hunk + 1);
        if hunks <= MAX_CHANGES_PER_FILE {
            *count += hunks;
            for edit in edits.drain(..) {
                each(MinedEdit { language: file.language, edit, commit: file.commit.clone(), at: file.at })?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Both sides of a file that a fix changed.
pub(super) struct FixedFileVersions {
    pub language: Language,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
    commit: String,
    at: Time,
}

/// Calls `each` with the files of code of the fixes among the newest commits, until it has enough.
pub(super) fn visit_fixed_files(
    repo: &Repo,
    newest: usize,
    each: &mut dyn FnMut(FixedFileVersions) -> ControlFlow<()>,
) -> Result<MiningStats, GitError> {
    let head = repo.resolve_commit("HEAD")?;
    let mut judge = ReviewFilter::without_attributes(MAX_FILE_BYTES);
    let mut mined = MiningStats::default();
    for ancestor in repo.ancestors(&head, newest)? {
        if ancestor.parents.len() != 1 {
            continue;
        }
        let Ok((message, at)) = repo.commit_message(&ancestor.commit) else { continue };
        mined.commits += 1;
        if !is_fix(&message) {
            continue;
        }
        let versions = repo.modified_file_blobs(&ancestor.commit, MAX_FILES_PER_FIX, &is_code).unwrap_or_default();
        mined.fixes += usize::from(!versions.is_empty());
        let commit = digest_versions(&versions);
        for file in &versions {
            let Some((before, after)) = read_versions(repo, file) else { continue };
            let is_written_here = judge.left_out_reason(&file.path, &after).is_none();
            if let Some(language) = Language::detect(&file.path, &after).filter(|_| is_written_here)
                && each(FixedFileVersions { language, before, after, commit: commit.clone(), at }).is_break()
            {
                return Ok(mined);
            }
        }
    }
    Ok(mined)
}

fn read_versions(repo: &Repo, file: &ModifiedFileBlobs) -> Option<(Vec<u8>, Vec<u8>)> {
    let read = |blob: &str| match repo.blob_size(blob) {
        Ok(bytes) if bytes <= MAX_FILE_BYTES => repo.blob(blob).ok(),
        _ => None,
    };
    Some((read(&file.old_blob)?, read(&file.new_blob)?))
}

/// Whether a file may hold code that is not a test's; its content is not known yet.
pub(super) fn is_code(path: &str) -> bool {
    let has_ending = Path::new(path).extension().is_some();
    !is_test_path(path) && has_ending && Language::detect(path, b"").is_some()
}

/// 32 hexadecimal digits of the blobs before and after.
fn digest_versions(versions: &[ModifiedFileBlobs]) -> String {
    let mut hash = blake3::Hasher::new();
    for file in versions {
        hash.update(file.old_blob.as_bytes()).update(file.new_blob.as_bytes());
    }
    let mut digest = hash.finalize().to_hex().to_string();
    digest.truncate(32);
    digest
}

/// Whether a message says that something was wrong and is not any more: by its first line, or by a line that begins with
/// a word such as `Fixes`.
pub(super) fn is_fix(message: &str) -> bool {
    let mut lines = message.lines();
    let subject = lines.next().unwrap_or("");
    let says = |line: &str, words: &[&str]| split_words(line).any(|word| words.contains(&word.as_str()));
    let closes = |line: &str| split_words(line).next().is_some_and(|word| FIX_WORDS[..4].contains(&word.as_str()));
    !says(subject, NON_FIX_WORDS) && (says(subject, FIX_WORDS) || lines.any(closes))
}

/// Runs of letters, in lower case. A message is as long as somebody liked: the words of a line's start are enough.
fn split_words(line: &str) -> impl Iterator<Item = String> + '_ {
    const MAX_WORDS_PER_LINE: usize = 64;
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(MAX_WORDS_PER_LINE).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Fix a crash when the list is empty", true)]
    #[case("fix(core): wrong order", true)]
    #[case("Handle an empty list\n\nFixes #12", true)]
    #[case("BUGFIX: off by one", true)]
    #[case::only_whole_words("Add fixtures and a prefix", false)]
    #[case::no_behaviour("Fix typo in a comment", false)]
    #[case::style("fix clippy", false)]
    #[case("Add a cache", false)]
    #[case("", false)]
    fn messages_that_say_something_was_wrong(#[case] message: &str, #[case] expected: bool) {
        assert_eq!(is_fix(message), expected);
    }
}
