//! Marks the changes of a file as viewed, one by one.
//!
//! - A change is named by its removed and added lines, so that its mark lasts while its line numbers move, and is gone when its
//!   lines change.
//! - The marks stand beside those of files, with the name of the change in place of the content of the file. A version of revdeck
//!   that does not know them takes them for contents that no file has.

use std::collections::HashMap;

use super::super::app::{App, NoticeLevel};
use super::super::keymap::{Action, KeyContext};
use super::super::message::AppCommand;
use super::file_pane::FilePane;
use super::keys::is_shown;
use super::layout::{CodeRow, DiffPageRow, RunKind};
use super::model::{ChangeBlock, DiffFile, DiffPageSide, LineTable};
use super::navigation::DiffTarget;
use super::pane::{DiffPane, PlacedRow};
use crate::domain::{Time, ViewedFile, text};

/// Begins the name of a change. No name of a content begins with it.
const CHANGE_SIGN: char = '#';
/// Hexadecimal digits of a hash in the name of a change.
const NAME_DIGITS: usize = 16;

/// Names the changed blocks of a file by their lines, in the order of the blocks. A block with the lines of an earlier one has a
/// number behind its name. `old` and `new` are the texts with their secrets: two masked secrets may look the same.
pub fn name_changes(blocks: &[ChangeBlock], old: &LineTable, new: &LineTable) -> Vec<String> {
    let mut repeated: HashMap<String, usize> = HashMap::new();
    let name = |block: &ChangeBlock| {
        let mut hash = blake3::Hasher::new();
        let mut add = |sign: &[u8], line: &str| {
            hash.update(sign);
            hash.update(line.as_bytes());
            hash.update(b"\n");
        };
        old.lines(block.old, block.old.saturating_add(block.old_lines)).for_each(|line| add(b"-", line));
        new.lines(block.new, block.new.saturating_add(block.new_lines)).for_each(|line| add(b"+", line));
        let digits: String = hash.finalize().to_hex().chars().take(NAME_DIGITS).collect();
        let before = repeated.entry(digits.clone()).or_insert(0);
        *before += 1;
        match *before {
            1 => format!("{CHANGE_SIGN}{digits}"),
            times => format!("{CHANGE_SIGN}{digits}.{times}"),
        }
    };
    blocks.iter().map(name).collect()
}

/// Returns true if a mark names a change and not the content of a whole file.
pub fn is_change_name(content: &str) -> bool {
    content.starts_with(CHANGE_SIGN)
}

impl FilePane {
    /// Returns all changes of the file, those of white space included.
    fn all_changes<'a>(&'a self, file: &'a DiffFile) -> &'a [ChangeBlock] {
        self.read_texts().and_then(|texts| texts.found_blocks.as_deref()).unwrap_or(&file.blocks)
    }

    /// Returns the index of the change of which a row shows a line.
    pub fn change_of(&self, file: &DiffFile, code: CodeRow) -> Option<usize> {
        if code.kind == RunKind::Context {
            return None;
        }
        let changes = self.all_changes(file);
        let find = |line: Option<u32>, lines_of: fn(&ChangeBlock) -> (u32, u32)| {
            let line = line?;
            let at = changes.partition_point(|change| lines_of(change).0 <= line).checked_sub(1)?;
            let (first, lines) = lines_of(&changes[at]);
            (line - first < lines).then_some(at)
        };
        find(code.new, |change| (change.new, change.new_lines))
            .or_else(|| find(code.old, |change| (change.old, change.old_lines)))
    }

    /// Returns true if the user has viewed a change, or the whole file.
    pub fn is_change_viewed(&self, change: usize) -> bool {
        let name = self.read_texts().and_then(|texts| texts.change_names.get(change));
        self.is_viewed || name.is_some_and(|name| self.viewed_changes.contains(name))
    }

    /// Returns true if a row shows the first line of a change that the user has viewed; side by side the first line of the new
    /// side, if there is one.
    pub fn begins_viewed_change(
        &self,
        file: &DiffFile,
        (code, side): (CodeRow, DiffPageSide),
        is_side_by_side: bool,
    ) -> bool {
        let Some(change) = self.change_of(file, code).filter(|change| self.is_change_viewed(*change)) else {
            return false;
        };
        let block = self.all_changes(file)[change];
        let is_new = if is_side_by_side { block.new_lines > 0 } else { block.old_lines == 0 };
        let first = if is_new { (DiffPageSide::New, block.new) } else { (DiffPageSide::Old, block.old) };
        code.part == 0 && code.line(side).is_some_and(|line| (side, line) == first)
    }

    /// Returns the numbers of the changes that have a mark and of all changes; `None` if there are none, or their lines are not
    /// read yet.
    pub fn count_marked_changes(&self) -> Option<(usize, usize)> {
        let names = &self.read_texts()?.change_names;
        let marked = names.iter().filter(|name| self.viewed_changes.contains(*name)).count();
        (!names.is_empty()).then_some((marked, names.len()))
    }
}

impl DiffPane {
    /// Returns file and index of the change at the cursor; on an unchanged line or the text of a finding, of the nearest change
    /// from which no hidden lines part it.
    pub fn change_at_cursor(&self) -> Option<(usize, usize)> {
        let cursor = self.cursor();
        let here = self.file_at(cursor)?;
        let (known, pane) = self.file(here)?;
        // The change of a row beside the cursor; nothing beyond a gap or the end of the file.
        let beside = |row: usize| match self.row(row)? {
            PlacedRow { file, row: DiffPageRow::Code(code) } if file == here => Some(pane.change_of(known, code)),
            PlacedRow { file, row: DiffPageRow::Finding { .. } } if file == here => Some(None),
            _ => None,
        };
        let with_change = |(distance, change): (usize, Option<usize>)| Some((distance, change?));
        let mut below = (cursor..self.row_count()).map_while(|row| Some((row - cursor, beside(row)?)));
        let mut above = (0..=cursor).rev().map_while(|row| Some((cursor - row, beside(row)?)));
        let found = [below.find_map(with_change), above.find_map(with_change)];
        found.into_iter().flatten().min_by_key(|(distance, _)| *distance).map(|(_, change)| (here, change))
    }

    /// Returns true if a row shows a change that the user has viewed.
    pub fn is_row_viewed(&self, row: usize) -> bool {
        let Some(PlacedRow { file, row: DiffPageRow::Code(code) }) = self.row(row) else { return false };
        self.file(file).is_some_and(|(known, pane)| {
            pane.change_of(known, code).is_some_and(|change| pane.is_change_viewed(change))
        })
    }
}

/// Marks the change at the cursor as viewed, or takes the mark back; at none, such as on a header, goes to the next one that is
/// not viewed, because nobody marks what they have not seen. A file whose last change gets its mark is viewed, too; the
/// other changes of a viewed file stay viewed.
pub fn toggle_change(app: &mut App, commands: &mut Vec<AppCommand>) {
    let at = Time::from_millisecond(app.now).unwrap_or_default();
    let diff = &app.detail.diff;
    let Some((file, change)) = diff.change_at_cursor() else { return go_to_unviewed(app) };
    let Some((known, pane)) = diff.file(file) else { return };
    let names = pane.read_texts().map(|texts| texts.change_names.as_slice()).unwrap_or_default();
    let Some(name) = names.get(change) else {
        return app.show_notice(NoticeLevel::Info, "the lines of the file are not read yet");
    };
    let mark = |content: &str, viewed| ViewedFile { path: known.path.clone(), content: content.to_owned(), viewed, at };
    let viewed = !pane.is_change_viewed(change);
    let mut marks = vec![mark(name, viewed)];
    if !viewed && pane.is_viewed {
        let others = names.iter().filter(|other| *other != name && !pane.viewed_changes.contains(*other));
        marks.extend(others.map(|other| mark(other, true)));
        marks.push(mark(&known.content_key(), false));
    } else if viewed && (0..names.len()).all(|other| other == change || pane.is_change_viewed(other)) {
        marks.push(mark(&known.content_key(), true));
    }
    commands.push(AppCommand::MarkChanges(marks));
}

/// Goes to the next change that is not viewed, else to the one before, and says which key marks it.
fn go_to_unviewed(app: &mut App) {
    let diff = &mut app.detail.diff;
    let is_found = diff.go_to(DiffTarget::Unviewed, true) || diff.go_to(DiffTarget::Unviewed, false);
    let said = match app.keymap.key_of(KeyContext::Detail, Action::ViewedChange) {
        _ if !is_found => "no unviewed change in the unfolded files".to_owned(),
        Some(key) => format!("{key} marks this change as viewed"),
        None => "this change is not viewed yet".to_owned(),
    };
    app.show_notice(NoticeLevel::Info, said);
}

/// Returns the marks of the changes of a file that is to be viewed or not as a whole: so those that stay as they are keep their
/// marks when the content of the file becomes another one.
pub fn mark_all_changes(known: &DiffFile, pane: &FilePane, viewed: bool, at: Time) -> Vec<ViewedFile> {
    let mark = |name: &String| ViewedFile { path: known.path.clone(), content: name.clone(), viewed, at };
    if !viewed {
        return pane.viewed_changes.iter().map(mark).collect();
    }
    let names = pane.read_texts().map(|texts| texts.change_names.as_slice()).unwrap_or_default();
    names.iter().filter(|name| !pane.viewed_changes.contains(*name)).map(mark).collect()
}

/// Shows the stored marks of changes of one file. If the change at the cursor was viewed, goes to the next one that is not; a file
/// that is viewed now is folded.
pub fn apply_marked_changes(app: &mut App, marks: &[ViewedFile], result: Result<(), String>) {
    if let Err(error) = result {
        return app.show_notice(NoticeLevel::Error, format!("not marked as viewed: {error}"));
    }
    let run = app.detail.diff.page().run.clone();
    let whole = marks.iter().find(|mark| !is_change_name(&mark.content));
    if let Some(mark) = whole {
        app.file_list.set_viewed(&run, &mark.path, mark.viewed);
    }
    let Some(path) = marks.first().map(|mark| mark.path.as_str()).filter(|_| is_shown(app)) else { return };
    let diff = &mut app.detail.diff;
    let Some(file) = diff.page().files.iter().position(|file| file.path == path) else { return };
    let content = diff.page().files[file].content_key();
    let at_cursor = diff.change_at_cursor().filter(|(here, _)| *here == file).map(|(_, change)| change);
    let Some(pane) = diff.file_mut(file) else { return };
    for mark in marks {
        if !is_change_name(&mark.content) {
            pane.is_viewed = if mark.content == content { mark.viewed } else { pane.is_viewed };
        } else if mark.viewed {
            pane.viewed_changes.insert(mark.content.clone());
        } else {
            pane.viewed_changes.remove(&mark.content);
        }
    }
    let (is_viewed, counted) = (pane.is_viewed, pane.count_marked_changes());
    let goes_on = at_cursor.is_some_and(|change| {
        let name = pane.read_texts().and_then(|texts| texts.change_names.get(change));
        name.is_some_and(|name| marks.iter().any(|mark| mark.viewed && mark.content == *name))
            && pane.is_change_viewed(change)
    });
    if whole.is_some() && is_viewed {
        diff.set_folded(file, true);
    }
    if goes_on {
        diff.go_to(DiffTarget::Unviewed, true);
    }
    if let Some((marked, all)) = counted {
        let text = format!("viewed {marked} of {} in the file", text::format_count(all, "change"));
        app.show_notice(NoticeLevel::Info, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(blocks: &[(u32, u32, u32, u32)], old: &str, new: &str) -> Vec<String> {
        let to_block =
            |&(old, old_lines, new, new_lines): &(u32, u32, u32, u32)| ChangeBlock { old, old_lines, new, new_lines };
        let blocks: Vec<ChangeBlock> = blocks.iter().map(to_block).collect();
        name_changes(&blocks, &LineTable::new(old.to_owned()), &LineTable::new(new.to_owned()))
    }

    #[test]
    fn a_change_keeps_its_name_while_its_lines_stay() {
        let before = names(&[(2, 1, 2, 1)], "a\nb\nc\n", "a\nB\nc\n");
        assert!(before.len() == 1 && is_change_name(&before[0]), "{before:?}");
        // It stands further below, and the text beside it is another one.
        assert_eq!(names(&[(4, 1, 3, 1)], "x\ny\nz\nb\n", "x\nq\nB\nr\n"), before);
        for (blocks, old, new, title) in [
            ((2, 1, 2, 1), "a\nb\nc\n", "a\nBB\nc\n", "another added line"),
            ((2, 1, 2, 1), "a\nd\nc\n", "a\nB\nc\n", "another removed line"),
            ((2, 1, 2, 0), "a\nb\nc\n", "a\nc\n", "nothing added"),
            ((2, 0, 2, 1), "a\nc\n", "a\nB\nc\n", "nothing removed"),
            ((2, 1, 2, 2), "a\nb\nc\n", "a\nB\n\nc\n", "a line more"),
        ] {
            assert_ne!(names(&[blocks], old, new), before, "{title}");
        }
        // A line that moves from one side to the other is another change.
        assert_ne!(names(&[(1, 1, 1, 0)], "a\n", ""), names(&[(1, 0, 1, 1)], "", "a\n"));
    }

    #[test]
    fn changes_with_the_same_lines_have_different_names() {
        let found = names(&[(1, 0, 1, 1), (2, 0, 3, 1), (3, 0, 5, 1)], "a\nb\nc\n", "x\na\nx\nb\ny\nc\n");
        assert_eq!(found[1], format!("{}.2", found[0]));
        assert!(!found[2].contains('.') && found[2] != found[0], "{found:?}");
    }
}
