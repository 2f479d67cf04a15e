//! Holds the rows of the list of files: those with findings first, then clean ones, or all of them as a tree of folders;
//! files that were left out are folded into one row at the end.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Cursor;
use super::file_tree::{FileFolder, FileTreeRow, arrange_files};
use crate::config::FileOrder;
use crate::store::StoreView;
use crate::tui::filter::{FilterOverrides, FindingFilter};
use crate::tui::message::{FileListRow, FileListState};

/// Row of the list of files on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileListEntry<'a> {
    /// A file.
    File {
        /// The file.
        file: &'a FileListRow,
        /// Number of folder rows above it that contain it.
        depth: usize,
        /// Path without the folders of those rows.
        name: &'a str,
    },
    /// A folder of the tree.
    Folder(&'a FileFolder),
    /// The files that were left out, with their number.
    LeftOut(usize),
}

/// Files of listed findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedFiles {
    /// Files with the numbers of these findings.
    pub files: Vec<FileListRow>,
    /// Id of the run that reported the newest of the findings in a file, by path.
    pub newest_runs: HashMap<String, String>,
}

/// File that a review looked at or left out, and in which no finding is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedFile {
    /// Row of the file, without findings.
    pub row: FileListRow,
    /// Id of the run that says so.
    pub run: String,
}

/// Files of the newest reviews in which no finding is open, and the marks of all viewed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewedFiles {
    /// Files by path; of very many the first ones.
    pub files: Vec<ReviewedFile>,
    /// There are more clean files than `files` has.
    pub has_more_clean: bool,
    /// There are more files that were reviewed in part than `files` has.
    pub has_more_partial: bool,
    /// There are more files that were left out than `files` has.
    pub has_more_left_out: bool,
    /// Ids of the runs whose content of a file with findings the user has viewed, by path.
    pub viewed: HashMap<String, Vec<String>>,
    /// Files with findings of which the user has viewed a part, by path: the id of the run whose changes they are, the numbers of
    /// the viewed changes and of all.
    pub partly_viewed: HashMap<String, (String, (u32, u32))>,
}

/// Findings whose files are listed.
#[derive(Debug, Clone)]
pub enum FileSource {
    /// Findings, given by their indices in the view.
    Rows(Vec<u32>),
    /// Findings that pass a filter.
    Filter(FindingFilter, Arc<FilterOverrides>),
}

impl FileSource {
    /// Returns the number of findings that have to be read.
    pub fn finding_count(&self, view: &StoreView) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Filter(..) => view.finding_count(),
        }
    }

    /// Collects the files.
    pub fn collect_files(&self, view: &StoreView) -> ListedFiles {
        match self {
            Self::Rows(rows) => collect_files(view, rows),
            Self::Filter(filter, overrides) => collect_files(view, &filter.matching_rows(view, overrides)),
        }
    }
}

/// Collects the files of findings, given by their indices in the view.
fn collect_files(view: &StoreView, rows: &[u32]) -> ListedFiles {
    let mut files: HashMap<&str, ([u32; 4], u32)> = HashMap::new();
    for row in rows {
        let finding = view.finding(*row as usize);
        let (counts, newest) = files.entry(finding.path).or_insert(([0; 4], u32::MAX));
        counts[finding.priority.index()] += 1;
        // Findings are sorted by the run that last reported them, the newest first.
        *newest = (*newest).min(*row);
    }
    let mut listed = ListedFiles::default();
    for (path, (counts, newest)) in files {
        let run = view.finding(newest as usize).last_run;
        listed.newest_runs.insert(path.to_owned(), run.to_owned());
        listed.files.push(FileListRow { counts, ..FileListRow::new(path, FileListState::Unknown) });
    }
    sort_files(&mut listed.files);
    listed
}

/// List of the files of a run, or of the listed findings.
///
/// The files on the screen stay until the answer to the last request replaces them, so the wanted files may be others.
#[derive(Debug, Default)]
pub struct FileList {
    /// Files in the order of the list, the left-out ones last.
    files: Vec<FileListRow>,
    /// Number of files with findings.
    pub with_findings: usize,
    /// Number of files without findings that were reviewed in part.
    pub partial: usize,
    /// Number of files without findings that the run has not reviewed yet.
    pub waiting: usize,
    /// Number of files that were left out.
    pub left_out: usize,
    /// True if the files that were left out are listed.
    pub unfolded: bool,
    /// Order of the rows.
    order: FileOrder,
    /// Rows of the tree; empty in another order.
    tree: Vec<FileTreeRow>,
    /// Paths of the folders whose files are not listed.
    folded: HashSet<String>,
    /// Selected row and scroll position.
    pub cursor: Cursor,
    /// Id of the run whose files are on the screen; empty before the first, and for the files of the listed findings.
    pub run: String,
    /// The user goes through the runs, or has come from there.
    pub follows_runs: bool,
    /// Id of the run whose files are wanted; `None` for the files of the listed findings.
    wanted_run: Option<String>,
    /// True if the findings are narrowed to the wanted run, so that only those that it reported count.
    is_chosen: bool,
    /// True if the wanted files were requested, and nothing has changed since.
    is_requested: bool,
    /// Serial number of the last request for the files of the listed findings.
    serial: u64,
    /// [`ListedFiles::newest_runs`] of the files of the listed findings.
    pub newest_runs: HashMap<String, String>,
    /// Files of the newest reviews, listed behind those of findings.
    reviewed: ReviewedFiles,
    /// True if the files of the newest reviews were added to the files on the screen.
    shows_reviewed: bool,
    /// Reviews whose files were requested last, and the fingerprint of the files with undecided findings then; `None` if they
    /// must be requested.
    reviewed_of: Option<(Vec<String>, u64)>,
    /// Numbers of findings and of undecided ones, and the fingerprint of the files of these, with which the files were
    /// requested last.
    pub counted: (usize, usize, u64),
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
        let count =
            |state: FileListState| files.iter().filter(|file| file.state == state && file.counts == [0; 4]).count();
        (self.partial, self.waiting) = (count(FileListState::Partial), count(FileListState::Waiting));
        let is_left_out = |file: &FileListRow| matches!(file.state, FileListState::LeftOut(_)) && file.counts == [0; 4];
        self.left_out = files.len() - files.partition_point(|file| !is_left_out(file));
        self.files = files;
        self.arrange();
    }

    /// Returns the order of the rows.
    pub fn order(&self) -> FileOrder {
        self.order
    }

    /// Sets the order of the rows.
    pub fn set_order(&mut self, order: FileOrder) {
        self.order = order;
        self.arrange();
    }

    /// Builds the tree for the order, the folds and the files.
    fn arrange(&mut self) {
        self.tree = match self.order {
            FileOrder::Findings => Vec::new(),
            FileOrder::Folders => {
                let listed = if self.unfolded { self.files.len() } else { self.listed() };
                arrange_files(&self.files[..listed], &self.folded)
            }
        };
    }

    /// Lists the files of the folder or of the group at a position, or folds them into one row. Returns false if another
    /// row is there.
    pub fn toggle_fold(&mut self, at: usize) -> bool {
        let folder = match self.row(at) {
            Some(FileListEntry::LeftOut(_)) => None,
            Some(FileListEntry::Folder(folder)) => Some(folder.path.clone()),
            _ => return false,
        };
        match folder {
            None => self.unfolded = !self.unfolded,
            Some(path) => {
                if !self.folded.remove(&path) {
                    self.folded.insert(path);
                }
            }
        }
        self.arrange();
        true
    }

    /// Marks the content that a file has in a run as viewed or not. Other runs may have the same content: the marks are read
    /// again when the findings are listed next, and at once if the list shows another run's.
    pub fn set_viewed(&mut self, run: &str, path: &str, is_viewed: bool) {
        let reviewed = &mut self.reviewed;
        if let Some(file) = reviewed.files.iter_mut().find(|file| file.row.path == path && file.run == run) {
            (file.row.is_viewed, file.row.viewed_changes) = (is_viewed, None);
        }
        if reviewed.partly_viewed.get(path).is_some_and(|(known, _)| known == run) {
            reviewed.partly_viewed.remove(path);
        }
        let viewed = reviewed.viewed.entry(path.to_owned()).or_default();
        viewed.retain(|known| known != run);
        if is_viewed {
            viewed.push(run.to_owned());
        }
        self.reviewed_of = None;
        if self.run_of(path) != run {
            return self.outdate_findings();
        }
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            (file.is_viewed, file.viewed_changes) = (is_viewed, None);
            self.arrange();
        }
    }

    /// Returns the id of the run of which a file of the list is shown; empty if there is none.
    pub fn run_of(&self, path: &str) -> &str {
        match self.run.is_empty() {
            true => self.newest_runs.get(path).map_or("", String::as_str),
            false => &self.run,
        }
    }

    /// Wants the files of a run from now on; `is_chosen` if the findings are narrowed to it. Returns true if they must be
    /// requested.
    pub fn want_run(&mut self, run: &str, is_chosen: bool) -> bool {
        let must_request = !self.is_requested || self.wanted_run() != Some(run) || self.is_chosen != is_chosen;
        if must_request {
            (self.wanted_run, self.is_requested, self.is_chosen) = (Some(run.to_owned()), true, is_chosen);
        }
        must_request
    }

    /// Wants the files of the listed findings from now on. Returns the serial number of the request for them.
    pub fn want_findings(&mut self) -> u64 {
        (self.wanted_run, self.is_requested) = (None, true);
        self.serial += 1;
        self.serial
    }

    /// Returns the id of the run whose files are wanted; `None` if those of the listed findings are.
    pub fn wanted_run(&self) -> Option<&str> {
        self.wanted_run.as_deref()
    }

    /// Returns true if the files of the findings that are listed now are wanted and were requested.
    pub fn has_requested_findings(&self) -> bool {
        self.is_requested && self.wanted_run.is_none()
    }

    /// Returns true if the answer to a request for the files of findings is the last wanted one.
    pub fn awaits_findings(&self, serial: u64) -> bool {
        self.wanted_run.is_none() && serial == self.serial
    }

    /// Notices that other findings are listed: their files must be requested.
    pub fn outdate_findings(&mut self) {
        self.is_requested &= self.wanted_run.is_some();
    }

    /// Notices that the files of the wanted run may have changed: they must be requested.
    pub fn outdate_run(&mut self) {
        self.is_requested &= self.wanted_run.is_none();
    }

    /// Forgets what was requested: nobody has got the requests, or the answers are out of date.
    pub fn forget_requests(&mut self) {
        (self.is_requested, self.reviewed_of) = (false, None);
    }

    /// Wants the files of these reviews behind those of findings. Which of them have no open finding follows from the files
    /// of undecided findings, given by their fingerprint [`FindingTotals::undecided_files`]. Returns true if the files must
    /// be requested.
    ///
    /// [`FindingTotals::undecided_files`]: crate::tui::finding_order::FindingTotals::undecided_files
    pub fn want_reviewed(&mut self, runs: &[String], undecided_files: u64) -> bool {
        let is_known =
            self.reviewed_of.as_ref().is_some_and(|(known, files)| known == runs && *files == undecided_files);
        if !is_known {
            self.reviewed_of = Some((runs.to_vec(), undecided_files));
        }
        !is_known
    }

    /// Replaces the files of the newest reviews. The list has them when the files of findings are listed next.
    pub fn set_reviewed(&mut self, reviewed: ReviewedFiles) {
        self.reviewed = reviewed;
        self.outdate_findings();
    }

    /// Completes the files of findings with what reviews and the user have seen: marks the viewed ones, and with
    /// `adds_reviewed` adds the files of the newest reviews.
    pub fn complete_listed(&mut self, listed: &mut ListedFiles, adds_reviewed: bool) {
        for file in &mut listed.files {
            let runs = self.reviewed.viewed.get(&file.path);
            let shown = listed.newest_runs.get(&file.path);
            file.is_viewed = shown.is_some_and(|shown| runs.is_some_and(|runs| runs.contains(shown)));
            let part = self.reviewed.partly_viewed.get(&file.path).filter(|(run, _)| Some(run) == shown);
            file.viewed_changes = part.map(|(_, counts)| *counts).filter(|_| !file.is_viewed);
        }
        self.shows_reviewed = adds_reviewed;
        for ReviewedFile { row, run } in self.reviewed.files.iter().filter(|_| adds_reviewed) {
            if !listed.newest_runs.contains_key(&row.path) {
                listed.newest_runs.insert(row.path.clone(), run.clone());
                listed.files.push(row.clone());
            }
        }
    }

    /// Returns true if there are more clean files than the list has.
    pub fn has_more_clean(&self) -> bool {
        self.has_reviewed() && self.reviewed.has_more_clean
    }

    /// Returns true if there are more files that were reviewed in part than the list has.
    pub fn has_more_partial(&self) -> bool {
        self.has_reviewed() && self.reviewed.has_more_partial
    }

    /// Returns true if more files were left out than the list has.
    pub fn has_more_left_out(&self) -> bool {
        self.has_reviewed() && self.reviewed.has_more_left_out
    }

    /// Returns true if the files of the newest reviews are among those on the screen.
    fn has_reviewed(&self) -> bool {
        self.shows_reviewed && self.run.is_empty()
    }

    /// Returns all files, in the order of the list.
    pub fn files(&self) -> &[FileListRow] {
        &self.files
    }

    /// Returns the row of a file, and unfolds what hides it. `None` if the run has no such file.
    pub fn reveal(&mut self, path: &str) -> Option<usize> {
        let at = self.files.iter().position(|file| file.path == path)?;
        self.unfolded |= at >= self.listed();
        self.folded.retain(|folder| !path.starts_with(folder.as_str()));
        self.arrange();
        self.position_of(path)
    }

    fn listed(&self) -> usize {
        self.files.len() - self.left_out
    }

    /// Returns the number of rows of the list.
    pub fn row_count(&self) -> usize {
        let files = match self.order {
            FileOrder::Folders => self.tree.len(),
            FileOrder::Findings => self.listed() + if self.unfolded { self.left_out } else { 0 },
        };
        files + usize::from(self.left_out > 0)
    }

    /// Selects the row at a position as a step of the user does.
    pub fn step_to(&mut self, at: usize, height: usize) {
        let (before, rows) = (self.cursor.offset, self.row_count());
        self.cursor.select(at, rows, height);
        self.cursor.scroll_ahead(before, rows, height);
    }

    /// Returns the row at a position; `None` below the end of the list.
    pub fn row(&self, at: usize) -> Option<FileListEntry<'_>> {
        let left_out = || (self.left_out > 0).then_some(FileListEntry::LeftOut(self.left_out));
        if self.order == FileOrder::Folders {
            return match self.tree.get(at) {
                Some(FileTreeRow::Folder(folder)) => Some(FileListEntry::Folder(folder)),
                Some(FileTreeRow::File { index, depth, folder_bytes }) => {
                    let file = self.files.get(*index)?;
                    Some(FileListEntry::File { file, depth: *depth, name: &file.path[*folder_bytes..] })
                }
                None if at == self.tree.len() => left_out(),
                None => None,
            };
        }
        let flat = |at: usize| self.files.get(at).map(|file| FileListEntry::File { file, depth: 0, name: &file.path });
        let listed = self.listed();
        match at {
            at if at < listed => flat(at),
            at if at == listed => left_out(),
            // The row that counts the files left out stands before them.
            at if self.unfolded && self.left_out > 0 => flat(at - 1),
            _ => None,
        }
    }

    /// Returns the file at a position; `None` for other rows.
    pub fn file(&self, at: usize) -> Option<&FileListRow> {
        match self.row(at) {
            Some(FileListEntry::File { file, .. }) => Some(file),
            _ => None,
        }
    }

    /// Returns the file at a position, or all files of the folder there, also those that are folded away; none for another
    /// row. Files that were left out belong to a folder only while they are listed.
    pub fn files_at(&self, at: usize) -> Vec<&FileListRow> {
        match self.row(at) {
            Some(FileListEntry::File { file, .. }) => vec![file],
            Some(FileListEntry::Folder(folder)) => {
                let listed = if self.unfolded { self.files.len() } else { self.listed() };
                self.files[..listed].iter().filter(|file| file.path.starts_with(&folder.path)).collect()
            }
            Some(FileListEntry::LeftOut(_)) | None => Vec::new(),
        }
    }

    /// Returns the path of the file or, with `/` at its end, of the folder at a position.
    pub fn path_at(&self, at: usize) -> Option<&str> {
        match self.row(at)? {
            FileListEntry::File { file, .. } => Some(&file.path),
            FileListEntry::Folder(folder) => Some(&folder.path),
            FileListEntry::LeftOut(_) => None,
        }
    }

    /// Returns the position of the file with this path, or of the folder if the path ends with `/`. A file that is folded
    /// away has the position of the row that stands for it.
    pub fn position_of(&self, path: &str) -> Option<usize> {
        let is_folder = |row: &FileTreeRow| matches!(row, FileTreeRow::Folder(folder) if folder.path == path);
        if path.ends_with('/') {
            return self.tree.iter().position(is_folder);
        }
        let at = self.files.iter().position(|file| file.path == path)?;
        if self.order == FileOrder::Folders {
            let is_row = |row: &FileTreeRow| match row {
                FileTreeRow::File { index, .. } => *index == at,
                FileTreeRow::Folder(folder) => folder.is_folded && path.starts_with(&folder.path),
            };
            return Some(self.tree.iter().position(is_row).unwrap_or(self.tree.len()));
        }
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
    fn files_are_requested_when_other_ones_are_wanted_or_they_have_changed() {
        type Step = fn(&mut FileList);
        let run: Step = |list| {
            list.want_run("ar_1", false);
        };
        let findings: Step = |list| {
            list.want_findings();
        };
        // Whether run 1, another run and the listed findings must be requested after the steps.
        let table: [(&str, &[Step], [bool; 3]); 8] = [
            ("nothing yet", &[], [true, true, true]),
            ("a run", &[run], [false, true, true]),
            ("findings", &[findings], [true, true, false]),
            ("findings, then a run", &[findings, run], [false, true, true]),
            ("a run that has changed", &[run, FileList::outdate_run], [true, true, true]),
            ("other findings beside a run", &[run, FileList::outdate_findings], [false, true, true]),
            ("other findings", &[findings, FileList::outdate_findings], [true, true, true]),
            ("the run of before has changed", &[findings, FileList::outdate_run], [true, true, false]),
        ];
        for (title, steps, expected) in table {
            let after = || {
                let mut list = FileList::default();
                steps.iter().for_each(|step| step(&mut list));
                list
            };
            let mut chosen = after();
            assert!(chosen.want_run("ar_1", true), "{title}: it counts other findings");
            assert!(!chosen.want_run("ar_1", true), "{title}: chosen twice");
            let runs = ["ar_1", "ar_2"].map(|run| after().want_run(run, false));
            let must_request = [runs[0], runs[1], !after().has_requested_findings()];
            assert_eq!(must_request, expected, "{title}");
            let mut forgotten = after();
            forgotten.forget_requests();
            assert!(!forgotten.has_requested_findings() && forgotten.want_run("ar_1", false), "{title}: forgotten");
        }
        let mut list = FileList::default();
        let (old, new) = (list.want_findings(), list.want_findings());
        assert_eq!([old, new].map(|serial| list.awaits_findings(serial)), [false, true]);
        list.want_run("ar_1", false);
        assert_eq!((list.awaits_findings(new), list.wanted_run()), (false, Some("ar_1")));
    }

    #[test]
    fn urgent_files_come_first_and_left_out_ones_are_one_row() {
        let row = |path: &str, counts, state| FileListRow { counts, ..FileListRow::new(path, state) };
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
                Some(FileListEntry::File { name, .. }) => name.to_owned(),
                Some(FileListEntry::Folder(folder)) => format!("{}({})", folder.path, folder.files),
                Some(FileListEntry::LeftOut(count)) => format!("{count} left out"),
                None => "nothing".to_owned(),
            };
            (0..list.row_count()).map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rows(&list), "d.rs e.rs c.rs b.rs g.rs 2 left out");
        assert_eq!((list.with_findings, list.waiting, list.left_out, list.row(6)), (3, 1, 2, None));
        assert_eq!(
            (list.position_of("c.rs"), list.position_of("f.bin"), list.position_of("z")),
            (Some(2), Some(5), None)
        );
        list.unfolded = true;
        assert_eq!(rows(&list), "d.rs e.rs c.rs b.rs g.rs 2 left out a.lock f.bin");
        assert_eq!((list.position_of("f.bin"), list.file(5), list.row(8)), (Some(7), None, None));
        list.set_files(Vec::new());
        assert_eq!((list.row_count(), list.row(0)), (0, None));
        list.set_order(FileOrder::Folders);
        list.unfolded = false;
        list.set_files(vec![
            row("src/a.rs", [0; 4], FileListState::Covered),
            row("src/b.lock", [0; 4], FileListState::LeftOut("lock file")),
            row("z.rs", [1, 0, 0, 0], FileListState::Covered),
        ]);
        assert_eq!(rows(&list), "src/(1) a.rs z.rs 1 left out");
        assert_eq!((list.position_of("z.rs"), list.position_of("src/b.lock")), (Some(2), Some(3)));
        assert!(list.toggle_fold(3), "the files that were left out");
        assert_eq!(rows(&list), "src/(2) a.rs b.lock z.rs 1 left out");
        assert!(list.toggle_fold(0), "a folder");
        assert_eq!(rows(&list), "src/(2) z.rs 1 left out");
        assert_eq!((list.position_of("src/a.rs"), list.toggle_fold(1)), (Some(0), false));
        assert_eq!(list.reveal("src/b.lock"), Some(2));
        assert_eq!(rows(&list), "src/(2) a.rs b.lock z.rs 1 left out");
    }
}
