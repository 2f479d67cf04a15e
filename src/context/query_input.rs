//! Converts a change to the input of the ranking.
//!
//! Invariants:
//! - The same change gives the same input.
//! - Line numbers refer to the snapshot, which is the tree that is searched.
//! - Deleted files and old names are included, because their history and their users still exist.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::retrieve::task::{GivenFile, GivenFileHunk, MAX_GIVEN_FILES};
use crate::domain::OmissionReason;
use crate::git::{ChangeKind, Changeset, DiffLine, EntryKind, FileChange, GitError, Hunk, LineOrigin, Repo};
use crate::index::document::Document;
use crate::index::document_store::read_text;
use crate::index::history::Touch;
use crate::index::vocabulary::Vocabulary;
use crate::masking::secret_files::is_secret_file;
use crate::syntax::facts::is_code_path;

/// Maximum number of deleted files to read, and of declarations to take from each file.
const MAX_DELETED_FILES: usize = 100;
const MAX_DECLARATIONS_PER_FILE: usize = 200;

/// Builds the ranking input for a change from `base`, which is empty if there is no base commit. `is_open` selects
/// changed files by path. Hunks refer to lines of the snapshot; deleted files and the old paths of renamed files are
/// added. Only the [`MAX_GIVEN_FILES`] files with the most changed lines have their hunks.
///
/// # Errors
/// Returns an error if git cannot make the diff of a file.
pub fn build_query_input(
    repo: &Repo,
    base: &str,
    change: &Changeset,
    is_open: &dyn Fn(&str) -> bool,
) -> Result<Vec<GivenFile>, GitError> {
    let mut open: Vec<&FileChange> = change.files.iter().filter(|file| is_open(&file.path)).collect();
    let lines = |file: &FileChange| -> u64 {
        file.hunks.iter().map(|hunk| u64::from(hunk.old_lines) + u64::from(hunk.new_lines)).sum()
    };
    open.sort_by_key(|file| (Reverse(lines(file)), &file.path));
    let mut given = Vec::with_capacity(open.len());
    for (number, file) in open.iter().enumerate() {
        let hunks = if number < MAX_GIVEN_FILES { read_hunks(repo, file)? } else { Vec::new() };
        let touch = match file.kind {
            ChangeKind::Added | ChangeKind::Copied => Touch::Added,
            ChangeKind::Modified | ChangeKind::Renamed => Touch::Modified,
        };
        given.push(GivenFile { path: file.path.clone(), touch, hunks });
    }
    let known: HashSet<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
    let renamed = open.iter().filter(|file| file.kind == ChangeKind::Renamed).filter_map(|file| file.old_path.as_ref());
    let renamed = renamed.filter(|path| !known.contains(path.as_str()));
    given.extend(renamed.map(|path| GivenFile { path: path.clone(), touch: Touch::Deleted, hunks: Vec::new() }));
    let deleted = change.left_out.iter().filter(|file| file.reason == OmissionReason::Deleted);
    let deleted = deleted.filter(|file| is_code_path(&file.path) && !is_secret_file(&file.path));
    given.extend(deleted.take(MAX_DELETED_FILES).map(|file| describe_deleted_file(repo, base, &file.path)));
    given.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(given)
}

/// Returns the commit whose history a change has: the base, because it does not contain the change. Without a base,
/// this is the snapshot itself.
pub fn history_tip<'a>(base: &'a str, snapshot: &'a str) -> &'a str {
    if base.is_empty() { snapshot } else { base }
}

/// Reads the hunks of a file. Their old side is set to the lines of the snapshot.
fn read_hunks(repo: &Repo, file: &FileChange) -> Result<Vec<GivenFileHunk>, GitError> {
    let lines = repo.file_diff(file, 0)?;
    let blocks = lines.split(|line| line.origin == LineOrigin::HunkHeader).skip(1);
    let hunks = blocks.zip(&file.hunks).map(|(block, hunk)| {
        let of = |origin: LineOrigin| -> Vec<String> {
            let of_side = |line: &&DiffLine| line.origin == origin;
            block.iter().filter(of_side).map(|line| line.text.clone()).collect()
        };
        let place = Hunk { old_start: hunk.new_start, old_lines: hunk.new_lines, ..*hunk };
        GivenFileHunk { range: place, removed: of(LineOrigin::Removed), added: of(LineOrigin::Added) }
    });
    Ok(hunks.collect())
}

/// Describes a deleted file by the lines that declare something. Other code refers to these names and never to the
/// bodies.
fn describe_deleted_file(repo: &Repo, base: &str, path: &str) -> GivenFile {
    let entry = repo.entry_at(base, path).ok().flatten().filter(|(kind, _)| *kind == EntryKind::File);
    let text = entry.and_then(|(_, blob)| read_text(repo, &blob).ok()?).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let declared = Document::read(&text, &mut Vocabulary::default()).declarations;
    let heads = declared.iter().take(MAX_DECLARATIONS_PER_FILE).filter_map(|(line, _)| lines.get(*line as usize));
    let removed: Vec<String> = heads.map(|line| (*line).to_owned()).collect();
    let place = Hunk { old_start: 0, old_lines: 0, new_start: 0, new_lines: 0 };
    let hunks =
        if removed.is_empty() { Vec::new() } else { vec![GivenFileHunk { range: place, removed, added: Vec::new() }] };
    GivenFile { path: path.to_owned(), touch: Touch::Deleted, hunks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_large_change_the_files_that_change_most_are_given_with_their_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = |number: u32| {
            let blob = git.blob("line\n".repeat(number as usize).as_bytes()).expect("a blob").to_string();
            let hunk = Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines: number };
            FileChange {
                path: format!("{number:03}.rs"),
                old_path: None,
                kind: ChangeKind::Added,
                old_blob: None,
                new_blob: blob,
                hunks: vec![hunk],
            }
        };
        let most = MAX_GIVEN_FILES as u32;
        let change = Changeset { files: (1..=most + 50).map(file).collect(), ..Changeset::default() };
        let given = build_query_input(&repo, "", &change, &|path| path != "001.rs").expect("a change");
        assert_eq!(given.len(), MAX_GIVEN_FILES + 49);
        let bare: Vec<&str> =
            given.iter().filter(|given| given.hunks.is_empty()).map(|given| given.path.as_str()).collect();
        assert_eq!((bare.len(), bare.first(), bare.last()), (49, Some(&"002.rs"), Some(&"050.rs")));
    }
}
