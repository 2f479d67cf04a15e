//! Puts a patch into a file that may have moved on since: every hunk where its lines stand now, and nowhere else.
//!
//! Invariants: no line is changed that is not exactly as the patch has it, line ends aside; no IO.

use std::fmt;

use crate::domain::patch::{FilePatch, Origin, PatchHunk, PatchLine};
use crate::git::Hunk;

/// Where a file is not as the patch needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Line of the file as it is, from 1.
    pub line: usize,
    /// The line that the patch needs there, and the one that is there; `None` is the end of the file. Data.
    pub needed: Option<String>,
    pub found: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, needed, found } = self;
        match (needed, found) {
            (Some(needed), Some(found)) => write!(f, "line {line} is {found:?} and not {needed:?}"),
            (Some(needed), None) => write!(f, "it ends before line {line}, which should be {needed:?}"),
            (None, _) => write!(f, "it should end before line {line}"),
        }
    }
}

/// A line of a file: its text without the line feed, and whether it has one.
#[derive(Clone, Copy)]
struct Row<'a> {
    text: &'a [u8],
    is_open: bool,
}

/// How lines of the file are like those of the patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alike {
    Exactly,
    /// But for carriage returns.
    ButForLineEnds,
}

/// The file with the patch in it. `old` is the file that the patch was made for, and `edits` what differs between it and
/// `present`; without them each hunk is looked for, and has to stand at one place only.
pub fn lay(present: &[u8], patch: &FilePatch, edits: Option<&[Hunk]>) -> Result<Vec<u8>, Mismatch> {
    let rows = rows(present);
    let mut laid = Vec::with_capacity(present.len() + 256);
    let mut at = 0;
    for hunk in &patch.hunks {
        let old: Vec<&PatchLine> = hunk.side(Origin::Removed).collect();
        let place = match edits {
            Some(edits) => moved(hunk.old_rows().start, edits),
            None => the_only_place(&rows, &old).unwrap_or(hunk.old_rows().start),
        };
        let alike = stands(&rows, place.max(at), &old)?;
        rows.get(at..place.max(at)).unwrap_or_default().iter().for_each(|row| put(&mut laid, row.text, row.is_open));
        at = place.max(at);
        let ends = rows.get(at..at + old.len()).filter(|rows| !rows.is_empty()).unwrap_or(&rows);
        let with_return = ends.iter().any(|row| row.text.ends_with(b"\r"));
        for line in &hunk.lines {
            match line.origin {
                Origin::Removed => at += 1,
                Origin::Kept => {
                    if let Some(row) = rows.get(at) {
                        // A last line that gets one behind it gets a line end.
                        put(&mut laid, row.text, row.is_open && is_last(hunk, line));
                    }
                    at += 1;
                }
                Origin::Added if alike == Alike::Exactly => put(&mut laid, &line.text, line.is_open),
                Origin::Added => {
                    laid.extend_from_slice(bare(&line.text));
                    if with_return && !line.is_open {
                        laid.push(b'\r');
                    }
                    put(&mut laid, b"", line.is_open);
                }
            }
        }
        if let Some(row) = rows.get(at).filter(|_| hunk.side(Origin::Added).any(|line| line.is_open)) {
            return Err(Mismatch { line: at + 1, needed: None, found: Some(words(row.text)) });
        }
    }
    rows.get(at..).unwrap_or_default().iter().for_each(|row| put(&mut laid, row.text, row.is_open));
    Ok(laid)
}

/// Whether the file is what the patch takes away: all of it, line ends aside.
pub fn is_all_of(present: &[u8], patch: &FilePatch) -> Result<(), Mismatch> {
    let rows = rows(present);
    let old: Vec<&PatchLine> = patch.hunks.iter().flat_map(|hunk| hunk.side(Origin::Removed)).collect();
    stands(&rows, 0, &old)?;
    match rows.get(old.len()) {
        Some(row) => Err(Mismatch { line: old.len() + 1, needed: None, found: Some(words(row.text)) }),
        None => Ok(()),
    }
}

/// The content of a file that the patch adds.
pub fn content(patch: &FilePatch) -> Vec<u8> {
    let mut content = Vec::new();
    let lines = patch.hunks.iter().flat_map(|hunk| hunk.side(Origin::Added));
    lines.for_each(|line| put(&mut content, &line.text, line.is_open));
    content
}

/// Where a row of the old file is in the present one, as far as the edits before it say.
fn moved(row: usize, edits: &[Hunk]) -> usize {
    let mut place = row as i64;
    for edit in edits {
        // A side without lines names the line before.
        let begin = |start: u32, lines: u32| if lines == 0 { start } else { start.saturating_sub(1) } as usize;
        let begins = begin(edit.old_start, edit.old_lines);
        if begins > row || (begins == row && edit.old_lines > 0) {
            break;
        }
        if begins + edit.old_lines as usize > row {
            // It is gone: this is what took its place.
            return begin(edit.new_start, edit.new_lines) + (row - begins).min(edit.new_lines as usize);
        }
        place += i64::from(edit.new_lines) - i64::from(edit.old_lines);
    }
    usize::try_from(place).unwrap_or(0)
}

/// The row at which these lines stand, if there is exactly one.
fn the_only_place(rows: &[Row<'_>], lines: &[&PatchLine]) -> Option<usize> {
    let mut places = (0..=rows.len().checked_sub(lines.len())?).filter(|at| stands(rows, *at, lines).is_ok());
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

fn stands(rows: &[Row<'_>], at: usize, lines: &[&PatchLine]) -> Result<Alike, Mismatch> {
    let mut alike = Alike::Exactly;
    for (line, at) in lines.iter().zip(at..) {
        let differs = |found| Mismatch { line: at + 1, needed: Some(words(&line.text)), found };
        let row = rows.get(at).ok_or_else(|| differs(None))?;
        if row.is_open != line.is_open || bare(row.text) != bare(&line.text) {
            return Err(differs(Some(words(row.text))));
        }
        if row.text != line.text {
            alike = Alike::ButForLineEnds;
        }
    }
    Ok(alike)
}

fn is_last(hunk: &PatchHunk, line: &PatchLine) -> bool {
    hunk.side(Origin::Added).last().is_some_and(|last| std::ptr::eq(last, line))
}

fn rows(text: &[u8]) -> Vec<Row<'_>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| match line.strip_suffix(b"\n") {
            Some(text) => Row { text, is_open: false },
            None => Row { text: line, is_open: true },
        })
        .collect()
}

fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn put(text: &mut Vec<u8>, line: &[u8], is_open: bool) {
    text.extend_from_slice(line);
    if !is_open {
        text.push(b'\n');
    }
}

/// A line as it is shown: not too long.
fn words(line: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(bare(line));
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// A text without carriage returns before line feeds, so that line ends make no difference.
pub fn without_returns(text: &[u8]) -> Vec<u8> {
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
    use crate::domain::patch::parse;

    const OLD: &str = "a\nb\nc\nd\ne\nf\ng\n";

    /// The patch that takes `d` away and puts `D` and `DD` there.
    fn change() -> FilePatch {
        let text =
            "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -2,5 +2,6 @@\n b\n c\n-d\n+D\n+DD\n e\n f\n";
        parse(text.as_bytes()).expect("a patch").remove(0)
    }

    fn edits(present: &str) -> Vec<Hunk> {
        let folder = tempfile::tempdir().expect("a folder");
        git2::Repository::init(folder.path()).expect("a repository");
        let repo = crate::git::Repo::discover(folder.path()).expect("a repository");
        repo.edits(OLD.as_bytes(), &without_returns(present.as_bytes())).expect("compared")
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
        let laid = lay(present.as_bytes(), &change(), Some(&edits(present)));
        let laid = laid.map(|text| String::from_utf8(text).expect("text"));
        let expected = expected.map(str::to_owned).map_err(|(line, needed, found)| Mismatch {
            line,
            needed: Some(needed.to_owned()),
            found: found.map(str::to_owned),
        });
        assert_eq!(laid, expected);
    }

    #[test]
    fn without_the_old_file_a_hunk_has_to_stand_at_one_place() {
        let moved = format!("x\n{OLD}");
        assert!(lay(moved.as_bytes(), &change(), None).is_ok());
        let twice = format!("x\n{OLD}{OLD}");
        assert!(lay(twice.as_bytes(), &change(), None).is_err());
    }

    #[rstest]
    #[case::kept_open("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb")]
    #[case::closed("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n")]
    #[case::opened("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb")]
    #[case::all_of_it("a\n", "@@ -1 +0,0 @@\n-a\n", "")]
    #[case::into_nothing("", "@@ -0,0 +1 @@\n+a\n", "a\n")]
    fn the_end_of_the_file_is_as_the_patch_says(#[case] old: &str, #[case] hunk: &str, #[case] new: &str) {
        let text = format!("diff --git a/f b/f\nindex 1..2 100644\n{hunk}");
        let patch = parse(text.as_bytes()).expect("a patch").remove(0);
        assert_eq!(lay(old.as_bytes(), &patch, Some(&[])).expect("laid"), new.as_bytes());
    }

    #[test]
    fn a_last_line_without_an_end_gets_nothing_behind_it() {
        let text = "diff --git a/f b/f\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
        let patch = parse(text.as_bytes()).expect("a patch").remove(0);
        let why = lay(b"a\nmore\n", &patch, Some(&[])).expect_err("refused");
        assert_eq!(why.to_string(), "it should end before line 2");
    }
}
