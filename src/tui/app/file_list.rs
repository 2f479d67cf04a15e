//! Holds the rows of the list of files: files with findings first, then clean ones; files that were left out are folded
//! into one row at the end.

use std::cmp::Reverse;

use super::Cursor;
use crate::tui::message::{FileListRow, FileListState};

/// Row of the list of files on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileListEntry<'a> {
    /// A file.
    File(&'a FileListRow),
    /// The files that were left out, with their number.
    LeftOut(usize),
}

/// List of the files of a run.
#[derive(Debug, Default)]
pub struct FileList {
    /// Files in the order of the list, the left-out ones last.
    files: Vec<FileListRow>,
    /// Number of files with findings.
    pub with_findings: usize,
    /// Number of files that were left out.
    pub left_out: usize,
    /// True if the files that were left out are listed.
    pub unfolded: bool,
    /// Selected row and scroll position.
    pub cursor: Cursor,
    /// Id of the run whose files are listed; empty before the first.
    pub run: String,
    /// Id of the run whose files were requested last; empty when they must be requested again.
    pub requested: String,
}

/// Sorts files for the list: those with the most urgent findings first, then clean ones, then those left out, each by
/// path.
pub fn sort_files(files: &mut [FileListRow]) {
    let group = |file: &FileListRow| match (&file.state, file.counts == [0; 4]) {
        (_, false) => 0,
        (FileListState::LeftOut(_), true) => 2,
        (_, true) => 1,
    };
    // The counts are compared first to last, so that one P0 counts more than many P1.
    files.sort_by(|a, b| (group(a), Reverse(a.counts), &a.path).cmp(&(group(b), Reverse(b.counts), &b.path)));
}

impl FileList {
    /// Replaces the files. Sorting takes one pass if they are sorted already.
    pub fn set_files(&mut self, mut files: Vec<FileListRow>) {
        sort_files(&mut files);
        self.with_findings = files.partition_point(|file| file.counts != [0; 4]);
        let is_left_out = |file: &FileListRow| matches!(file.state, FileListState::LeftOut(_)) && file.counts == [0; 4];
        self.left_out = files.len() - files.partition_point(|file| !is_left_out(file));
        self.files = files;
    }

    /// Returns all files, in the order of the list.
    pub fn files(&self) -> &[FileListRow] {
        &self.files
    }

    /// Returns the row of a file, and unfolds the files that were left out if it is one of them. `None` if the run has no
    /// such file.
    pub fn reveal(&mut self, path: &str) -> Option<usize> {
        let at = self.files.iter().position(|file| file.path == path)?;
        let is_left_out = at >= self.listed();
        self.unfolded |= is_left_out;
        // The row that counts the files left out stands before them.
        Some(at + usize::from(is_left_out))
    }

    fn listed(&self) -> usize {
        self.files.len() - self.left_out
    }

    /// Returns the number of rows of the list.
    pub fn row_count(&self) -> usize {
        self.listed() + usize::from(self.left_out > 0) + if self.unfolded { self.left_out } else { 0 }
    }

    /// Returns the row at a position; `None` below the end of the list.
    pub fn row(&self, at: usize) -> Option<FileListEntry<'_>> {
        let listed = self.listed();
        match at {
            at if at < listed => self.files.get(at).map(FileListEntry::File),
            at if at == listed && self.left_out > 0 => Some(FileListEntry::LeftOut(self.left_out)),
            at if self.unfolded && self.left_out > 0 => self.files.get(at - 1).map(FileListEntry::File),
            _ => None,
        }
    }

    /// Returns the file at a position; `None` for other rows.
    pub fn file(&self, at: usize) -> Option<&FileListRow> {
        match self.row(at) {
            Some(FileListEntry::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Returns the position of the file with this path; that of the folded row if the file is folded away.
    pub fn position_of(&self, path: &str) -> Option<usize> {
        let at = self.files.iter().position(|file| file.path == path)?;
        Some(match at < self.listed() {
            true => at,
            false if self.unfolded => at + 1,
            false => self.listed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_files_come_first_and_left_out_ones_are_one_row() {
        let row = |path: &str, counts, state| FileListRow { path: path.to_owned(), counts, state };
        let mut list = FileList::default();
        list.set_files(vec![
            row("a.lock", [0; 4], FileListState::LeftOut("lock file")),
            row("b.rs", [0; 4], FileListState::Covered),
            row("c.rs", [0, 0, 9, 0], FileListState::Covered),
            row("d.rs", [1, 0, 0, 0], FileListState::LeftOut("binary")),
            row("e.rs", [0, 2, 0, 0], FileListState::Covered),
            row("f.bin", [0; 4], FileListState::LeftOut("binary")),
            row("g.rs", [0; 4], FileListState::Waiting),
        ]);
        let rows = |list: &FileList| {
            let name = |at| match list.row(at) {
                Some(FileListEntry::File(file)) => file.path.clone(),
                Some(FileListEntry::LeftOut(count)) => format!("{count} left out"),
                None => "nothing".to_owned(),
            };
            (0..list.row_count()).map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rows(&list), "d.rs e.rs c.rs b.rs g.rs 2 left out");
        assert_eq!((list.with_findings, list.left_out, list.row(6)), (3, 2, None));
        assert_eq!(
            (list.position_of("c.rs"), list.position_of("f.bin"), list.position_of("z")),
            (Some(2), Some(5), None)
        );
        list.unfolded = true;
        assert_eq!(rows(&list), "d.rs e.rs c.rs b.rs g.rs 2 left out a.lock f.bin");
        assert_eq!((list.position_of("f.bin"), list.file(5), list.row(8)), (Some(7), None, None));
        list.set_files(Vec::new());
        assert_eq!((list.row_count(), list.row(0)), (0, None));
    }
}
