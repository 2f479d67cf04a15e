//! Parses unified diffs as git and diff write them, for all that read a diff: patches of revdeck, and diffs inside other
//! text.
//!
//! - The parser never fails. Text around a diff is returned line by line, and a damaged hunk says where it is damaged.
//! - Hunks end by the counts of their headers, because a line of a file can look like a header.

use std::borrow::Cow;

use super::LineRange;
use super::patch::PatchLineKind;
use super::text::path_from_bytes;

/// Start of the line with which git begins the diff of a file.
pub const GIT_HEADER: &[u8] = b"diff --git ";

/// Line ranges on both sides. Line numbers are 1-based. When a side has 0 lines, its start is the line before the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk {
    /// First line on the old side.
    pub old_start: u32,
    /// Number of lines on the old side.
    pub old_lines: u32,
    /// First line on the new side.
    pub new_start: u32,
    /// Number of lines on the new side.
    pub new_lines: u32,
}

impl Hunk {
    /// Returns the added or changed lines on the new side (1-based, inclusive). For a pure deletion, returns the line
    /// before it, or line 1.
    pub fn new_range(&self) -> LineRange {
        let first = self.new_start.max(1);
        LineRange::new(first, first + self.new_lines.saturating_sub(1))
    }
}

/// Line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// `None` for a line without a sign, such as a note that the rest was cut off, or an empty context line whose blank
    /// was trimmed.
    pub kind: Option<PatchLineKind>,
    /// Text without its sign.
    pub text: &'a [u8],
    /// True if `\ No newline at end of file` follows.
    pub lacks_newline: bool,
}

/// Meaning of one or more lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffItem<'a> {
    /// A line outside of hunks that names no file: text around a diff, or a header of git such as `index 1..2`.
    Other(&'a [u8]),
    /// The lines `--- OLD` and `+++ NEW`, without these signs. See [`parse_file_name`].
    FileNames {
        /// Name on the old side.
        old: &'a [u8],
        /// Name on the new side.
        new: &'a [u8],
    },
    /// A hunk with its header.
    Hunk {
        /// Ranges as the header names them, context included.
        header: Hunk,
        /// Lines below the header.
        lines: Vec<HunkLine<'a>>,
        /// Position of the first line that does not belong in the hunk, as an index of all lines. It is the number of
        /// all lines if the hunk is cut off.
        damaged_at: Option<usize>,
    },
}

/// Item of a diff, with the position of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffItemAt<'a> {
    /// Index of the first line. The lines of an item end where the next item begins.
    pub first: usize,
    /// Meaning of the lines.
    pub item: DiffItem<'a>,
}

/// Parses lines (without their line feeds) that contain any number of diffs. Every line belongs to one item. Hunks count
/// only below the header of a file.
pub fn parse_diff_lines<'a>(lines: &[&'a [u8]]) -> Vec<DiffItemAt<'a>> {
    let mut items = Vec::new();
    let (mut at, mut has_file) = (0, false);
    while let Some(&line) = lines.get(at) {
        let first = at;
        let names = line.strip_prefix(b"--- ").zip(lines.get(at + 1).and_then(|line| line.strip_prefix(b"+++ ")));
        let item = if let Some((old, new)) = names {
            (at, has_file) = (at + 2, true);
            DiffItem::FileNames { old, new }
        } else if let Some(header) = parse_hunk_header(line).filter(|_| has_file) {
            at += 1;
            parse_hunk(header, lines, &mut at)
        } else {
            has_file |= line.starts_with(GIT_HEADER);
            at += 1;
            DiffItem::Other(line)
        };
        items.push(DiffItemAt { first, item });
    }
    items
}

/// Parses the lines of a hunk, from the line after its header. Sets `at` to the line after the hunk.
fn parse_hunk<'a>(header: Hunk, lines: &[&'a [u8]], at: &mut usize) -> DiffItem<'a> {
    const NO_NEWLINE: &[u8] = b"\\ ";
    let (mut old, mut new) = (header.old_lines, header.new_lines);
    let (mut found, mut damaged_at): (Vec<HunkLine>, _) = (Vec::new(), None);
    while old > 0 || new > 0 || lines.get(*at).is_some_and(|line| line.starts_with(NO_NEWLINE)) {
        let Some(&line) = lines.get(*at) else {
            damaged_at = damaged_at.or(Some(*at));
            break;
        };
        let (kind, text) = match line.split_first() {
            Some((b' ', text)) => (Some(PatchLineKind::Context), text),
            Some((b'-', text)) => (Some(PatchLineKind::Removed), text),
            Some((b'+', text)) => (Some(PatchLineKind::Added), text),
            Some((b'\\', _)) => {
                match found.last_mut() {
                    Some(last) if line.starts_with(NO_NEWLINE) && !last.lacks_newline => last.lacks_newline = true,
                    _ => damaged_at = damaged_at.or(Some(*at)),
                }
                *at += 1;
                continue;
            }
            _ => (None, line),
        };
        let is_expected = match kind {
            Some(PatchLineKind::Context) => old > 0 && new > 0,
            Some(PatchLineKind::Removed) => old > 0,
            Some(PatchLineKind::Added) => new > 0,
            None => false,
        };
        if !is_expected {
            damaged_at = damaged_at.or(Some(*at));
        }
        old = old.saturating_sub(u32::from(kind != Some(PatchLineKind::Added)));
        new = new.saturating_sub(u32::from(kind != Some(PatchLineKind::Removed)));
        found.push(HunkLine { kind, text, lacks_newline: false });
        *at += 1;
    }
    DiffItem::Hunk { header, lines: found, damaged_at }
}

/// Parses `@@ -1,2 +3,4 @@`; a missing count is 1. The text after the ranges is ignored.
fn parse_hunk_header(line: &[u8]) -> Option<Hunk> {
    let mut sides = line.strip_prefix(b"@@ ")?.split(|byte| *byte == b' ');
    let mut side = |sign: u8| {
        let numbers = std::str::from_utf8(sides.next()?.strip_prefix(&[sign])?).ok()?;
        let (start, lines) = numbers.split_once(',').unwrap_or((numbers, "1"));
        Some((start.parse::<u32>().ok()?, lines.parse::<u32>().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (side(b'-')?, side(b'+')?);
    Some(Hunk { old_start, old_lines, new_start, new_lines })
}

/// Parses the name of a file from the line with its sign removed, for example `a/src/main.rs`. Removes `prefix` and a
/// timestamp after a tab, and resolves the quotes and escapes with which git writes unusual names. Returns `None` for
/// `/dev/null`.
pub fn parse_file_name(text: &[u8], prefix: &str) -> Option<String> {
    let name = text.split(|byte| *byte == b'\t').next().unwrap_or(text).trim_ascii_end();
    let name = match name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) {
        Some(quoted) => resolve_escapes(quoted),
        None => Cow::Borrowed(name),
    };
    (name.as_ref() != b"/dev/null").then(|| path_from_bytes(name.strip_prefix(prefix.as_bytes()).unwrap_or(&name)))
}

/// Resolves the escapes of a quoted name: `\"`, `\\`, letters as in C, and up to three octal digits for a byte. Any other
/// backslash stays.
fn resolve_escapes(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'\\') {
        return Cow::Borrowed(name);
    }
    let mut resolved = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let is_octal = |byte: &&u8| (b'0'..=b'7').contains(*byte);
        let digits = if byte == b'\\' { after.iter().take(3).take_while(is_octal).count() } else { 0 };
        let (byte, length) = match (byte, after.first()) {
            (b'\\', _) if digits > 0 => {
                let value = after.iter().take(digits).fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                (value.to_le_bytes()[0], 1 + digits)
            }
            (b'\\', Some(b'"' | b'\\')) => (after[0], 2),
            (b'\\', Some(b'a')) => (0x07, 2),
            (b'\\', Some(b'b')) => (0x08, 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(b'n')) => (b'\n', 2),
            (b'\\', Some(b'v')) => (0x0b, 2),
            (b'\\', Some(b'f')) => (0x0c, 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            _ => (byte, 1),
        };
        resolved.push(byte);
        rest = &rest[length..];
    }
    Cow::Owned(resolved)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(text: &str) -> Vec<DiffItem<'_>> {
        let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        parse_diff_lines(&lines).into_iter().map(|found| found.item).collect()
    }

    fn line(kind: PatchLineKind, text: &str) -> HunkLine<'_> {
        HunkLine { kind: Some(kind), text: text.as_bytes(), lacks_newline: false }
    }

    #[test]
    fn a_hunk_ends_by_its_counts_and_takes_the_marker_of_its_last_line() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@ fn f()\n same\n--- a/y\n\\ No newline at end of file\n+++ b/y\n";
        let header = Hunk { old_start: 1, old_lines: 2, new_start: 1, new_lines: 1 };
        let removed = HunkLine { lacks_newline: true, ..line(PatchLineKind::Removed, "-- a/y") };
        let lines = vec![line(PatchLineKind::Context, "same"), removed];
        let expected = [
            DiffItem::FileNames { old: b"a/x", new: b"b/x" },
            DiffItem::Hunk { header, lines, damaged_at: None },
            DiffItem::Other(b"+++ b/y"),
        ];
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn a_hunk_without_a_file_is_other_text() {
        let items = parse("@@ -1 +1 @@\n-a\n+b\n");
        assert!(items.iter().all(|item| matches!(item, DiffItem::Other(_))), "{items:?}");
    }

    #[rstest]
    #[case::whole("@@ -1 +1 @@\n-a\n+b", None)]
    #[case::cut_off("@@ -1 +1,2 @@\n-a\n+b", Some(5))]
    #[case::without_a_sign("@@ -1,2 +1,2 @@\n a\nb", Some(4))]
    #[case::more_than_counted("@@ -1 +1 @@\n-a\n-b\n+c", Some(4))]
    #[case::a_marker_of_nothing("@@ -1 +1 @@\n\\ No newline at end of file\n a", Some(3))]
    #[case::two_markers("@@ -1 +1 @@\n a\n\\ No newline at end of file\n\\ No newline at end of file", Some(5))]
    fn damage_has_a_position(#[case] hunk: &str, #[case] expected: Option<usize>) {
        let text = format!("--- a/x\n+++ b/x\n{hunk}\n");
        let items = parse(&text);
        let Some(DiffItem::Hunk { damaged_at, .. }) = items.get(1) else { panic!("{items:?}") };
        assert_eq!(*damaged_at, expected);
    }

    #[rstest]
    #[case("a/src/main.rs", Some("src/main.rs"))]
    #[case("a/x y\t2024-01-01 10:00:00", Some("x y"))]
    #[case("elsewhere/x", Some("elsewhere/x"))]
    #[case("/dev/null", None)]
    #[case(r#""a/caf\303\251 \"1\"\t.rs""#, Some("café \"1\"\t.rs"))]
    #[case(r#""a/\377""#, Some("\\xff"))]
    #[case(r#""a/\q\\""#, Some("\\q\\"))]
    fn names_are_parsed_with_their_quotes(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(parse_file_name(text.as_bytes(), "a/").as_deref(), expected);
    }
}
