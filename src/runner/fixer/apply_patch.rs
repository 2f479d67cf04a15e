//! Applies a patch to a file that may have changed since: each hunk only where its lines are now.
//!
//! - A line is changed only if it equals the patch's line, except for its line end.
//! - No IO.

use std::fmt;

use crate::domain::patch::{FilePatch, PatchHunk, PatchLine, PatchLineKind};
use crate::git::Hunk;

/// The first place where a file differs from the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchMismatch {
    /// Line number in the current file, 1-based.
    pub line: usize,
    /// The line that the patch needs, and the line in the file; `None` is the end of the file. Both are untrusted.
    pub needed: Option<String>,
    pub found: Option<String>,
}

impl fmt::Display for PatchMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, needed, found } = self;
        match (needed, found) {
            (Some(needed), Some(found)) => write!(f, "line {line} is {found:?} and not {needed:?}"),
            (Some(needed), None) => write!(f, "it ends before line {line}, which should be {needed:?}"),
            (None, _) => write!(f, "it should end before line {line}"),
        }
    }
}

/// A line of a file: its text without the line feed, and whether the line feed is missing.
#[derive(Clone, Copy)]
struct FileLine<'a> {
    text: &'a [u8],
    is_open: bool,
}

/// The similarity of the file's lines and the patch's lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineMatch {
    Exactly,
    /// Equal except for carriage returns.
    ButForLineEnds,
}

/// Returns the file with the patch applied. `edits` are the differences between the file for which the patch was made
/// and `present`. Without `edits`, the lines of each hunk must occur exactly once.
///
/// # Errors
///
/// [`PatchMismatch`] if the lines of a hunk are not in the file.
pub fn apply_patch(present: &[u8], patch: &FilePatch, edits: Option<&[Hunk]>) -> Result<Vec<u8>, PatchMismatch> {
    let rows = split_rows(present);
    let mut laid = Vec::with_capacity(present.len() + 256);
    let mut at = 0;
    for hunk in &patch.hunks {
        let old: Vec<&PatchLine> = hunk.lines_on_side(PatchLineKind::Removed).collect();
        let place = match edits {
            Some(edits) => map_row(hunk.old_row_range().start, edits),
            None => find_only_place(&rows, &old).unwrap_or(hunk.old_row_range().start),
        };
        let alike = match_lines(&rows, place.max(at), &old)?;
        rows.get(at..place.max(at))
            .unwrap_or_default()
            .iter()
            .for_each(|row| push_line(&mut laid, row.text, row.is_open));
        at = place.max(at);
        let ends = rows.get(at..at + old.len()).filter(|rows| !rows.is_empty()).unwrap_or(&rows);
        let with_return = ends.iter().any(|row| row.text.ends_with(b"\r"));
        for line in &hunk.lines {
            match line.kind {
                PatchLineKind::Removed => at += 1,
                PatchLineKind::Context => {
                    if let Some(row) = rows.get(at) {
                        // If another line follows the last line, the last line gets a line end.
                        push_line(&mut laid, row.text, row.is_open && is_last_added(hunk, line));
                    }
                    at += 1;
                }
                PatchLineKind::Added if alike == LineMatch::Exactly => {
                    push_line(&mut laid, &line.text, line.lacks_newline)
                }
                PatchLineKind::Added => {
                    laid.extend_from_slice(strip_return(&line.text));
                    if with_return && !line.lacks_newline {
                        laid.push(b'\r');
                    }
                    push_line(&mut laid, b"", line.lacks_newline);
                }
            }
        }
        if let Some(row) =
            rows.get(at).filter(|_| hunk.lines_on_side(PatchLineKind::Added).any(|line| line.lacks_newline))
        {
            return Err(PatchMismatch { line: at + 1, needed: None, found: Some(display_line(row.text)) });
        }
    }
    rows.get(at..).unwrap_or_default().iter().for_each(|row| push_line(&mut laid, row.text, row.is_open));
    Ok(laid)
}

/// Checks that the file is exactly what the patch deletes, except for line ends.
///
/// # Errors
///
/// [`PatchMismatch`] at the first difference.
pub fn check_deletion(present: &[u8], patch: &FilePatch) -> Result<(), PatchMismatch> {
    let rows = split_rows(present);
    let old: Vec<&PatchLine> = patch.hunks.iter().flat_map(|hunk| hunk.lines_on_side(PatchLineKind::Removed)).collect();
    match_lines(&rows, 0, &old)?;
    match rows.get(old.len()) {
        Some(row) => Err(PatchMismatch { line: old.len() + 1, needed: None, found: Some(display_line(row.text)) }),
        None => Ok(()),
    }
}

/// Returns the content of a file that the patch adds.
pub fn added_content(patch: &FilePatch) -> Vec<u8> {
    let mut content = Vec::new();
    let lines = patch.hunks.iter().flat_map(|hunk| hunk.lines_on_side(PatchLineKind::Added));
    lines.for_each(|line| push_line(&mut content, &line.text, line.lacks_newline));
    content
}

/// Maps a row (0-based) of the old file to the present file, through the edits before it.
fn map_row(row: usize, edits: &[Hunk]) -> usize {
    let mut place = row as i64;
    for edit in edits {
        // A side without lines names the line before it.
        let begin = |start: u32, lines: u32| if lines == 0 { start } else { start.saturating_sub(1) } as usize;
        let begins = begin(edit.old_start, edit.old_lines);
        if begins > row || (begins == row && edit.old_lines > 0) {
            break;
        }
        if begins + edit.old_lines as usize > row {
            // The row was removed: return the row that replaced it.
            return begin(edit.new_start, edit.new_lines) + (row - begins).min(edit.new_lines as usize);
        }
        place += i64::from(edit.new_lines) - i64::from(edit.old_lines);
    }
    usize::try_from(place).unwrap_or(0)
}

/// Returns the row at which these lines occur, if they occur exactly once.
fn find_only_place(rows: &[FileLine<'_>], lines: &[&PatchLine]) -> Option<usize> {
    let mut places = (0..=rows.len().checked_sub(lines.len())?).filter(|at| match_lines(rows, *at, lines).is_ok());
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

fn match_lines(rows: &[FileLine<'_>], at: usize, lines: &[&PatchLine]) -> Result<LineMatch, PatchMismatch> {
    let mut alike = LineMatch::Exactly;
    for (line, at) in lines.iter().zip(at..) {
        let differs = |found| PatchMismatch { line: at + 1, needed: Some(display_line(&line.text)), found };
        let row = rows.get(at).ok_or_else(|| differs(None))?;
        if row.is_open != line.lacks_newline || strip_return(row.text) != strip_return(&line.text) {
            return Err(differs(Some(display_line(row.text))));
        }
        if row.text != line.text {
            alike = LineMatch::ButForLineEnds;
        }
    }
    Ok(alike)
}

fn is_last_added(hunk: &PatchHunk, line: &PatchLine) -> bool {
    hunk.lines_on_side(PatchLineKind::Added).last().is_some_and(|last| std::ptr::eq(last, line))
}

fn split_rows(text: &[u8]) -> Vec<FileLine<'_>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| match line.strip_suffix(b"\n") {
            Some(text) => FileLine { text, is_open: false },
            None => FileLine { text: line, is_open: true },
        })
        .collect()
}

fn strip_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn push_line(text: &mut Vec<u8>, line: &[u8], is_open: bool) {
    text.extend_from_slice(line);
    if !is_open {
        text.push(b'\n');
    }
}

/// Returns a line for display, cut to 60 characters.
fn display_line(line: &[u8]) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let text = String::from_utf8_lossy(strip_return(line));
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// Removes carriage returns before line feeds, so that line ends make no difference.
pub fn normalize_line_ends(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => plain.extend(line.iter().chain(b"\n")),
            None => plain.extend_from_slice(line),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::patch::parse_patch;

    const OLD: &str = "a\nb\nc\nd\ne\nf\ng\n";

    /// A patch that replaces `d` by `D` and `DD`.
    fn change() -> FilePatch {
        let text =
            "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -2,5 +2,6 @@\n b\n c\n-d\n+D\n+DD\n e\n f\n";
        parse_patch(text.as_bytes()).expect("a patch").remove(0)
    }

    fn edits(present: &str) -> Vec<Hunk> {
        let folder = tempfile::tempdir().expect("a folder");
        git2::Repository::init(folder.path()).expect("a repository");
        let repo = crate::git::Repo::discover(folder.path()).expect("a repository");
        repo.diff_texts(OLD.as_bytes(), &normalize_line_ends(present.as_bytes())).expect("compared")
    }

    #[rstest]
    #[case::as_it_was(OLD, Ok("a\nb\nc\nD\nDD\ne\nf\ng\n"))]
    #[case::lines_before(&format!("x\ny\n{OLD}"), Ok("x\ny\na\nb\nc\nD\nDD\ne\nf\ng\n"))]
    #[case::the_first_line_gone("b\nc\nd\ne\nf\ng\n", Ok("b\nc\nD\nDD\ne\nf\ng\n"))]
    #[case::lines_behind(&format!("{OLD}b\nc\nd\ne\nf\n"), Ok("a\nb\nc\nD\nDD\ne\nf\ng\nb\nc\nd\ne\nf\n"))]
    #[case::carriage_returns(&OLD.replace('\n', "\r\n"), Ok("a\r\nb\r\nc\r\nD\r\nDD\r\ne\r\nf\r\ng\r\n"))]
    #[case::its_line_changed("a\nb\nc\nd2\ne\nf\ng\n", Err((4, "d", Some("d2"))))]
    #[case::its_context_changed("a\nb\nc\nd\ne\nF\ng\n", Err((6, "f", Some("F"))))]
    #[case::its_end_gone("a\nb\nc\nd\n", Err((5, "e", None)))]
    #[case::empty("", Err((1, "b", None)))]
    fn a_hunk_goes_where_its_lines_are(
        #[case] present: &str,
        #[case] expected: Result<&str, (usize, &str, Option<&str>)>,
    ) {
        let laid = apply_patch(present.as_bytes(), &change(), Some(&edits(present)));
        let laid = laid.map(|text| String::from_utf8(text).expect("text"));
        let expected = expected.map(str::to_owned).map_err(|(line, needed, found)| PatchMismatch {
            line,
            needed: Some(needed.to_owned()),
            found: found.map(str::to_owned),
        });
        assert_eq!(laid, expected);
    }

    #[test]
    fn without_the_old_file_a_hunk_has_to_stand_at_one_place() {
        let moved = format!("x\n{OLD}");
        assert!(apply_patch(moved.as_bytes(), &change(), None).is_ok());
        let twice = format!("x\n{OLD}{OLD}");
        assert!(apply_patch(twice.as_bytes(), &change(), None).is_err());
    }

    #[rstest]
    #[case::kept_open("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb")]
    #[case::closed("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n")]
    #[case::opened("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb")]
    #[case::all_of_it("a\n", "@@ -1 +0,0 @@\n-a\n", "")]
    #[case::into_nothing("", "@@ -0,0 +1 @@\n+a\n", "a\n")]
    fn the_end_of_the_file_is_as_the_patch_says(#[case] old: &str, #[case] hunk: &str, #[case] new: &str) {
        let text = format!("diff --git a/f b/f\nindex 1..2 100644\n{hunk}");
        let patch = parse_patch(text.as_bytes()).expect("a patch").remove(0);
        assert_eq!(apply_patch(old.as_bytes(), &patch, Some(&[])).expect("laid"), new.as_bytes());
    }

    #[test]
    fn a_last_line_without_an_end_gets_nothing_behind_it() {
        let text = "diff --git a/f b/f\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
        let patch = parse_patch(text.as_bytes()).expect("a patch").remove(0);
        let why = apply_patch(b"a\nmore\n", &patch, Some(&[])).expect_err("refused");
        assert_eq!(why.to_string(), "it should end before line 2");
    }
}
