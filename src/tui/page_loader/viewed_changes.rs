//! Finds out which changes of a file the user has viewed, and names those that are marked with the whole file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::PageLoader;
use crate::domain::{RunRecord, Scope, Time, ViewedFile};
use crate::tui::diff::{ChangeBlock, DiffFile, LineTable, is_change_name, name_changes};
use crate::tui::message::FileListRow;

/// Largest blob whose changes are named without showing it, in bytes.
const MAX_NAMED_BYTES: u64 = 4 << 20;
/// Most files whose names of changes are kept in memory, by their blobs and by their runs.
const MAX_KEPT_FILES: usize = 2_000;
/// Most files whose changes are marked with them; of a larger folder only the files are. Their texts are read for it.
const MAX_MARKED_FILES: usize = 500;

/// Names of changes that were looked up, so that the lists of files, which are made anew with each mark, do not compare the same
/// commits again.
#[derive(Debug, Default)]
pub(super) struct ChangeNames {
    /// Names by the blobs of the two sides of a file.
    of_blobs: HashMap<(Option<String>, String), Arc<Vec<String>>>,
    /// Names by run and path; `None` for a file that the run has not changed.
    of_runs: HashMap<(String, String), Option<Arc<Vec<String>>>>,
}

/// Marks of what the user has viewed.
#[derive(Debug, Default)]
pub struct ViewedMarks {
    /// Path and content of files.
    pub contents: HashSet<(String, String)>,
    /// Names of changes by path.
    pub changes: HashMap<String, HashSet<String>>,
}

impl ViewedMarks {
    /// Sorts the marks of the store.
    fn new(marks: HashSet<(String, String)>) -> Self {
        let mut sorted = Self::default();
        for (path, content) in marks {
            if is_change_name(&content) {
                sorted.changes.entry(path).or_default().insert(content);
            } else {
                sorted.contents.insert((path, content));
            }
        }
        sorted
    }

    /// Returns the names of the viewed changes of a path.
    fn changes_of(&self, path: &str) -> impl Iterator<Item = &String> {
        self.changes.get(path).into_iter().flatten()
    }
}

impl FileListRow {
    /// Takes over how many of the changes of the file were viewed, and of how many.
    pub(super) fn set_viewed_changes(&mut self, (viewed, all): (u32, u32)) {
        match viewed {
            0 => {}
            viewed if viewed >= all => (self.is_viewed, self.viewed_changes) = (true, None),
            viewed => self.viewed_changes = Some((viewed, all)).filter(|_| !self.is_viewed),
        }
    }
}

impl PageLoader {
    /// Reads the marks of what the user has viewed; none if they cannot be read.
    pub(in crate::tui) fn read_viewed(&self) -> ViewedMarks {
        ViewedMarks::new(self.store.viewed_files().unwrap_or_default())
    }

    /// Marks a file of a diff as viewed, and its changes. A file is viewed if it was marked with its content, or if each of its
    /// changes was.
    pub(in crate::tui) fn apply_viewed_marks(&mut self, file: &mut DiffFile, marks: &ViewedMarks) {
        file.viewed_changes = marks.changes_of(&file.path).cloned().collect();
        file.is_viewed = marks.contents.contains(&(file.path.clone(), file.content_key()));
        if file.is_viewed || file.viewed_changes.is_empty() {
            return;
        }
        let Some(new_blob) = file.new_blob.clone() else { return };
        let names = self.name_changes((file.old_blob.clone(), new_blob), &file.blocks);
        file.is_viewed = names.is_some_and(|names| names.iter().all(|name| file.viewed_changes.contains(name)));
    }

    /// Returns the numbers of the viewed changes and of all changes of a file of a run; `None` if the run has not changed it.
    pub(super) fn count_viewed_changes(
        &mut self,
        run: &RunRecord,
        path: &str,
        viewed: &HashSet<String>,
    ) -> Option<(u32, u32)> {
        let names = self.name_changes_of_run(run, path)?;
        let count = names.iter().filter(|name| viewed.contains(*name)).count();
        Some((u32::try_from(count).ok()?, u32::try_from(names.len()).ok()?))
    }

    /// Returns the marks of the changes of a file of the list that is marked as viewed with `files` files, or whose mark is taken
    /// back.
    pub(super) fn mark_changes_of(
        &mut self,
        (run, path): (&RunRecord, &str),
        (viewed, at): (bool, Time),
        marks: &ViewedMarks,
        files: usize,
    ) -> Vec<ViewedFile> {
        let mark = |name: &String| ViewedFile { path: path.to_owned(), content: name.clone(), viewed, at };
        if !viewed {
            return marks.changes_of(path).map(mark).collect();
        }
        let names = if files <= MAX_MARKED_FILES { self.name_changes_of_run(run, path) } else { None };
        names.map_or_else(Vec::new, |names| names.iter().map(mark).collect())
    }

    fn name_changes_of_run(&mut self, run: &RunRecord, path: &str) -> Option<Arc<Vec<String>>> {
        if matches!(run.subject.scope, Scope::All) || run.subject.snapshot_commit.is_empty() {
            // A whole tree shows no change.
            return None;
        }
        let key = (run.run_id.to_string(), path.to_owned());
        if let Some(names) = self.change_names.of_runs.get(&key) {
            return names.clone();
        }
        let change = self.read_change(run)?;
        let names = change.files.iter().find(|file| file.path == path).and_then(|file| {
            let blocks: Vec<ChangeBlock> = file.hunks.iter().map(ChangeBlock::from).collect();
            self.name_changes((file.old_blob.clone(), file.new_blob.clone()), &blocks)
        });
        if self.change_names.of_runs.len() >= MAX_KEPT_FILES {
            self.change_names.of_runs.clear();
        }
        self.change_names.of_runs.insert(key, names.clone());
        names
    }

    /// Names the changed blocks between two blobs; `None` if there are none, or the blobs are too large or gone.
    fn name_changes(&mut self, blobs: (Option<String>, String), blocks: &[ChangeBlock]) -> Option<Arc<Vec<String>>> {
        if blocks.is_empty() {
            return None;
        }
        if let Some(names) = self.change_names.of_blobs.get(&blobs) {
            return Some(Arc::clone(names));
        }
        let repo = self.repo.as_ref()?;
        let read = |blob: &str| {
            let is_small = repo.blob_size(blob).is_ok_and(|size| size <= MAX_NAMED_BYTES);
            let bytes = is_small.then(|| repo.blob(blob).ok()).flatten()?;
            Some(LineTable::new(String::from_utf8_lossy(&bytes).into_owned()))
        };
        let old = match &blobs.0 {
            Some(blob) => read(blob)?,
            None => LineTable::default(),
        };
        let names = Arc::new(name_changes(blocks, &old, &read(&blobs.1)?));
        if self.change_names.of_blobs.len() >= MAX_KEPT_FILES {
            self.change_names.of_blobs.clear();
        }
        self.change_names.of_blobs.insert(blobs, Arc::clone(&names));
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::message::FileListState;

    #[test]
    fn a_file_is_viewed_when_all_of_its_changes_are() {
        for (counts, was_viewed, is_viewed, part) in [
            ((0, 3), false, false, None),
            ((2, 3), false, false, Some((2, 3))),
            ((3, 3), false, true, None),
            // Marked with its content, before its changes were.
            ((2, 3), true, true, None),
        ] {
            let mut row = FileListRow { is_viewed: was_viewed, ..FileListRow::new("a.rs", FileListState::Covered) };
            row.set_viewed_changes(counts);
            assert_eq!((row.is_viewed, row.viewed_changes), (is_viewed, part), "{counts:?} {was_viewed}");
        }
    }

    #[test]
    fn marks_of_changes_are_told_from_those_of_files() {
        let marks =
            [("a.rs", "1f"), ("a.rs", "#2e"), ("b.rs", "-3d"), ("b.rs", "#4c.2"), ("b.rs", "?2026-03-04T05:06:07Z")];
        let marks = marks.map(|(path, content)| (path.to_owned(), content.to_owned()));
        let sorted = ViewedMarks::new(marks.into_iter().collect());
        assert_eq!(sorted.contents.len(), 3, "{sorted:?}");
        let changes = |path: &str| sorted.changes_of(path).map(String::as_str).collect::<Vec<_>>();
        assert_eq!((changes("a.rs"), changes("b.rs"), changes("c.rs")), (vec!["#2e"], vec!["#4c.2"], Vec::new()));
    }
}
