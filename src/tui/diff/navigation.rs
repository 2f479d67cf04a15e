//! Goes to the next and the previous change, file and finding, and past what was viewed.

use super::pane::DiffPane;

/// Thing to which the cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffTarget {
    Hunk,
    /// Change that the user has not viewed.
    Unviewed,
    File,
    Finding,
}

impl DiffPane {
    /// Goes to the next or the previous target. Returns false if there is none.
    pub fn go_to(&mut self, target: DiffTarget, forward: bool) -> bool {
        match target {
            DiffTarget::Hunk | DiffTarget::Unviewed | DiffTarget::File => {
                let Some(row) = self.find_row_of(target, forward) else { return false };
                self.jump_to(row);
            }
            DiffTarget::Finding => {
                let Some((file, index)) = self.find_finding(forward) else { return false };
                self.open_finding(file, index);
            }
        }
        true
    }

    /// Returns the findings at the cursor and those below it, as file and index in their order; empty if the cursor is at
    /// none.
    pub fn findings_from_cursor(&self) -> Vec<(usize, usize)> {
        let (here, found) = self.findings_at_cursor();
        let Some(first) = found.iter().min().copied() else { return Vec::new() };
        let is_below = |file: usize, index: usize| file > here || (index > first && !found.contains(&index));
        let files = self.page().files.iter().enumerate().skip(here);
        let below = files.flat_map(|(file, known)| (0..known.findings.len()).map(move |index| (file, index)));
        let below = below.filter(|(file, index)| is_below(*file, *index));
        found.iter().map(|index| (here, *index)).chain(below).collect()
    }

    fn find_row_of(&self, target: DiffTarget, forward: bool) -> Option<usize> {
        let cursor = self.cursor();
        let here = self.file_at(cursor)?;
        let rows = |file: usize| -> Vec<usize> {
            let start = self.file_start(file);
            let changes = self.files()[file].layout.change_rows().map(|row| start + row);
            match target {
                DiffTarget::File => vec![start],
                DiffTarget::Unviewed => changes.filter(|row| !self.is_row_viewed(*row)).collect(),
                _ => changes.collect(),
            }
        };
        if forward {
            (here..self.files().len()).find_map(|file| rows(file).into_iter().find(|row| *row > cursor))
        } else {
            (0..=here).rev().find_map(|file| rows(file).into_iter().rev().find(|row| *row < cursor))
        }
    }

    /// Finds the next finding; findings of folded files count, too.
    fn find_finding(&self, forward: bool) -> Option<(usize, usize)> {
        let cursor = self.cursor();
        let here = self.file_at(cursor)?;
        // Findings on one line follow each other: the one whose text is not shown yet is the next one.
        let place = |file: usize, index: usize| {
            let row = self.finding_row(file, index)?;
            let is_folded = self.files()[file].is_folded;
            let is_shown = self.files()[file].open_findings.contains(&index);
            Some((row, is_folded, is_shown))
        };
        let is_next = |file: usize, index: usize| {
            place(file, index).is_some_and(|(row, is_folded, is_shown)| match (file.cmp(&here), forward) {
                (std::cmp::Ordering::Greater, true) | (std::cmp::Ordering::Less, false) => true,
                (std::cmp::Ordering::Equal, true) => is_folded || row > cursor || (row == cursor && !is_shown),
                (std::cmp::Ordering::Equal, false) => !is_folded && row < cursor,
                _ => false,
            })
        };
        let count = |file: usize| self.page().files[file].findings.len();
        if forward {
            (here..self.files().len())
                .find_map(|file| (0..count(file)).find(|index| is_next(file, *index)).map(|index| (file, index)))
        } else {
            (0..=here)
                .rev()
                .find_map(|file| (0..count(file)).rev().find(|index| is_next(file, *index)).map(|index| (file, index)))
        }
    }
}
