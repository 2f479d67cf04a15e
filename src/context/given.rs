//! A change as what the ranking is given of it.
//!
//! Invariants: the same change is given the same way; places are lines of the snapshot, which is the tree that is searched.

use super::retrieve::history::Touch;
use super::retrieve::task::{Given, GivenHunk};
use crate::git::{ChangeKind, DiffLine, FileChange, GitError, Hunk, LineOrigin, Repo};

/// Changed files, by the lines of the snapshot.
///
/// # Errors
/// A file whose diff git cannot make.
pub fn given<'a>(repo: &Repo, files: impl IntoIterator<Item = &'a FileChange>) -> Result<Vec<Given>, GitError> {
    files.into_iter().map(|file| given_file(repo, file)).collect()
}

fn given_file(repo: &Repo, file: &FileChange) -> Result<Given, GitError> {
    let lines = repo.file_diff(file, 0)?;
    let blocks = lines.split(|line| line.origin == LineOrigin::HunkHeader).skip(1);
    let hunks = blocks.zip(&file.hunks).map(|(block, hunk)| {
        let of = |origin: LineOrigin| -> Vec<String> {
            let of_side = |line: &&DiffLine| line.origin == origin;
            block.iter().filter(of_side).map(|line| line.text.clone()).collect()
        };
        let place = Hunk { old_start: hunk.new_start, old_lines: hunk.new_lines, ..*hunk };
        GivenHunk { place, removed: of(LineOrigin::Removed), added: of(LineOrigin::Added) }
    });
    let touch = match file.kind {
        ChangeKind::Added | ChangeKind::Copied => Touch::Added,
        ChangeKind::Modified | ChangeKind::Renamed => Touch::Modified,
    };
    Ok(Given { path: file.path.clone(), touch, hunks: hunks.collect() })
}
