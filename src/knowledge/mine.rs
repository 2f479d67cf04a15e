//! What the history of a repository teaches: the edits of commits that say they fix something.
//!
//! Invariants: a few files are read at a time, and what of them is kept is bounded; a commit, a file or a blob that cannot be read
//! is passed over; everything comes from objects. Of a commit nothing goes out but forms, its time and a digest.

use std::ops::ControlFlow;
use std::path::Path;

use super::abstraction::{LearnedEdit, edits};
use crate::domain::Time;
use crate::git::{GitError, Judge, PastVersions, Repo};
use crate::provider::builtin::facts::is_test_path;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// Files of code, tests aside, of a fix at most. Own: most commits that call themselves a fix change no more; of those that
/// do, most changes are not the fix.
pub const MAX_FILES: usize = 4;
/// Changes in one file of a fix at most, for the same reason.
pub const MAX_CHANGES: usize = 12;
/// Larger files are made by programs. In bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Threads at most, and files that are read before they start: both sides of them are in memory at once.
const MAX_THREADS: usize = 8;
const TOGETHER: usize = 32;

/// Words of a message that say something was wrong, whole and in any case.
const FIXES: &[&str] = &[
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
const NO_FIXES: &[&str] = &[
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
pub struct Mined {
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
pub fn fixes(
    repo: &Repo,
    newest: usize,
    each: &mut dyn FnMut(MinedEdit) -> ControlFlow<()>,
) -> Result<Mined, GitError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let mut parsers: Vec<Parsers> = (0..threads).map(|_| Parsers::default()).collect();
    let mut waiting = Vec::with_capacity(TOGETHER);
    let (mut edits, mut enough) = (0, ControlFlow::Continue(()));
    let mined = fixed_files(repo, newest, &mut |file| {
        waiting.push(file);
        if waiting.len() < TOGETHER {
            return ControlFlow::Continue(());
        }
        enough = learn(&mut parsers, &mut waiting, &mut edits, each);
        enough
    })?;
    if enough.is_continue() {
        let _ = learn(&mut parsers, &mut waiting, &mut edits, each);
    }
    Ok(Mined { edits, ..mined })
}

/// Learns of some files on several threads; what is learned comes in their order. `count` grows by the edits that taught
/// something.
fn learn(
    parsers: &mut [Parsers],
    waiting: &mut Vec<FixedFile>,
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
                    own.map(|(at, file)| (at, edits(parsers, file.language, &file.before, &file.after))).collect()
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
        if hunks <= MAX_CHANGES {
            *count += hunks;
            for edit in edits.drain(..) {
                each(MinedEdit { language: file.language, edit, commit: file.commit.clone(), at: file.at })?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Both sides of a file that a fix changed.
pub(super) struct FixedFile {
    pub language: Language,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
    commit: String,
    at: Time,
}

/// Calls `each` with the files of code of the fixes among the newest commits, until it has enough.
pub(super) fn fixed_files(
    repo: &Repo,
    newest: usize,
    each: &mut dyn FnMut(FixedFile) -> ControlFlow<()>,
) -> Result<Mined, GitError> {
    let head = repo.resolve_commit("HEAD")?;
    let mut judge = Judge::by_itself(MAX_BYTES);
    let mut mined = Mined::default();
    for ancestor in repo.ancestors(&head, newest)? {
        if ancestor.parents.len() != 1 {
            continue;
        }
        let Ok((message, at)) = repo.commit_message(&ancestor.commit) else { continue };
        mined.commits += 1;
        if !is_fix(&message) {
            continue;
        }
        let versions = repo.versions(&ancestor.commit, MAX_FILES, &is_code).unwrap_or_default();
        mined.fixes += usize::from(!versions.is_empty());
        let commit = digest(&versions);
        for file in &versions {
            let Some((before, after)) = texts(repo, file) else { continue };
            let is_written_here = judge.reason(&file.path, &after).is_none();
            if let Some(language) = Language::detect(&file.path, &after).filter(|_| is_written_here)
                && each(FixedFile { language, before, after, commit: commit.clone(), at }).is_break()
            {
                return Ok(mined);
            }
        }
    }
    Ok(mined)
}

fn texts(repo: &Repo, file: &PastVersions) -> Option<(Vec<u8>, Vec<u8>)> {
    let read = |blob: &str| match repo.blob_size(blob) {
        Ok(bytes) if bytes <= MAX_BYTES => repo.blob(blob).ok(),
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
fn digest(versions: &[PastVersions]) -> String {
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
    let says = |line: &str, words: &[&str]| words_of(line).any(|word| words.contains(&word.as_str()));
    let closes = |line: &str| words_of(line).next().is_some_and(|word| FIXES[..4].contains(&word.as_str()));
    !says(subject, NO_FIXES) && (says(subject, FIXES) || lines.any(closes))
}

/// Runs of letters, in lower case. A message is as long as somebody liked: the words of a line's start are enough.
fn words_of(line: &str) -> impl Iterator<Item = String> + '_ {
    const LOOKED_AT: usize = 64;
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(LOOKED_AT).map(str::to_lowercase)
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
