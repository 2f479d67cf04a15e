//! Parses patches that revdeck wrote, in git's format (see `git::patch`). File paths are passed separately and are
//! never read from the patch text.

use std::ops::Range;

use thiserror::Error;

use super::unified_diff::{DiffItem, DiffItemAt, GIT_HEADER, Hunk, HunkLine, parse_diff_lines};

/// Kind of a hunk line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLineKind {
    Context,
    Removed,
    Added,
}

/// Hunk line as bytes, without its line feed but with its carriage return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: PatchLineKind,
    pub text: Vec<u8>,
    /// True for the last line of a file without a final line feed.
    pub lacks_newline: bool,
}

/// Changed lines with unchanged lines around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchHunk {
    /// First line on the old side (1-based); for an empty side, the line before the hunk. `new_start` is the same for
    /// the new side.
    pub old_start: u32,
    pub new_start: u32,
    pub lines: Vec<PatchLine>,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilePatchKind {
    #[default]
    Modify,
    Add {
        executable: bool,
    },
    Delete,
}

/// Changes of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePatch {
    pub kind: FilePatchKind,
    /// Object id of the blob that the patch was made for, in hexadecimal.
    pub old_blob: String,
    pub hunks: Vec<PatchHunk>,
}

impl PatchHunk {
    /// Builds a hunk from its parsed lines, all of which have a sign.
    fn from_lines(header: Hunk, lines: &[HunkLine<'_>]) -> Self {
        let lines = lines.iter().filter_map(|line| {
            Some(PatchLine { kind: line.kind?, text: line.text.to_vec(), lacks_newline: line.lacks_newline })
        });
        Self { old_start: header.old_start, new_start: header.new_start, lines: lines.collect() }
    }

    /// Returns the lines of the old side (`PatchLineKind::Removed`) or of the new side (`PatchLineKind::Added`).
    pub fn lines_on_side(&self, side: PatchLineKind) -> impl Iterator<Item = &PatchLine> {
        self.lines.iter().filter(move |line| line.kind == PatchLineKind::Context || line.kind == side)
    }

    /// Returns the rows of the old side (0-based, end exclusive).
    pub fn old_row_range(&self) -> Range<usize> {
        let count = self.lines_on_side(PatchLineKind::Removed).count();
        let first = if count == 0 { self.old_start as usize } else { (self.old_start as usize).saturating_sub(1) };
        first..first + count
    }
}

impl FilePatch {
    /// Returns the number of lines of this kind.
    pub fn count_lines(&self, origin: PatchLineKind) -> u32 {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == origin);
        u32::try_from(lines.count()).unwrap_or(u32::MAX)
    }
}

/// Damage for which a patch cannot be applied: it is truncated, binary or not written by revdeck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line {line} of the patch is damaged")]
pub struct PatchDamage {
    /// 1-based. The line after the last one if the patch is truncated.
    pub line: usize,
}

/// Parses the files of a patch, in order.
///
/// # Errors
///
/// Returns [`PatchDamage`] at the first line that revdeck would not have written there.
pub fn parse_patch(text: &[u8]) -> Result<Vec<FilePatch>, PatchDamage> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let Some((b"", lines)) = lines.split_last().map(|(last, lines)| (*last, lines)).filter(|_| !text.is_empty()) else {
        return Err(PatchDamage { line: lines.len() });
    };
    let mut files: Vec<FilePatch> = Vec::new();
    for DiffItemAt { first, item } in parse_diff_lines(lines) {
        let damage = |at: usize| PatchDamage { line: at + 1 };
        // A header stands before the hunks of its file.
        let file_in_header = files.last_mut().filter(|file| file.hunks.is_empty());
        match item {
            DiffItem::Other(line) if line.starts_with(GIT_HEADER) => files.push(FilePatch::default()),
            DiffItem::Other(line) => {
                file_in_header.and_then(|file| parse_header_line(line, file)).ok_or(damage(first))?;
            }
            DiffItem::FileNames { .. } => {
                file_in_header.ok_or(damage(first))?;
            }
            DiffItem::Hunk { damaged_at: Some(at), .. } => return Err(damage(at)),
            DiffItem::Hunk { header, lines, damaged_at: None } => {
                files.last_mut().ok_or(damage(first))?.hunks.push(PatchHunk::from_lines(header, &lines));
            }
        }
    }
    Ok(files)
}

/// Adds the content of a header line to `file`. Returns `None` for a line that revdeck never writes: mode changes,
/// renames and binary content.
fn parse_header_line(line: &[u8], file: &mut FilePatch) -> Option<()> {
    if let Some(mode) = line.strip_prefix(b"new file mode ") {
        file.kind = FilePatchKind::Add { executable: mode.ends_with(b"755") };
    } else if line.starts_with(b"deleted file mode ") {
        file.kind = FilePatchKind::Delete;
    } else {
        let ids = std::str::from_utf8(line.strip_prefix(b"index ")?).ok()?;
        let (old, _) = ids.split_once("..")?;
        file.old_blob = old.to_owned();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "diff --git a/a.py b/a.py\nindex 11..22 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1 @@ def f():\n-import os\n x\n\
                       @@ -9 +8,2 @@\n-y\n\\ No newline at end of file\n+y\n+--- z\ndiff --git a/b b/b\nnew file mode 100755\n\
                       index 00..33\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+diff --git\n";

    #[test]
    fn a_patch_is_read_by_its_counts() {
        let files = parse_patch(TWO.as_bytes()).expect("a patch");
        let [one, two] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!((one.kind, one.old_blob.as_str(), one.hunks.len()), (FilePatchKind::Modify, "11", 2));
        assert_eq!((one.count_lines(PatchLineKind::Removed), one.count_lines(PatchLineKind::Added)), (2, 2));
        assert_eq!(one.hunks[0].old_row_range(), 0..2);
        assert!(one.hunks[1].lines[0].lacks_newline && !one.hunks[1].lines[1].lacks_newline);
        assert_eq!(one.hunks[1].lines[2].text, b"--- z");
        assert_eq!(two.kind, FilePatchKind::Add { executable: true });
        assert_eq!(two.hunks[0].lines[0].text, b"diff --git");
        assert_eq!(two.hunks[0].old_row_range(), 0..0);
    }

    #[test]
    fn what_is_no_whole_patch_is_none() {
        for cut in 1..TWO.len() - 1 {
            if TWO.is_char_boundary(cut) && !TWO[cut..].starts_with("diff --git a/b") {
                // A cut may fall where a shorter patch is complete, so only a panic would be a failure here.
                let _ = parse_patch(&TWO.as_bytes()[..cut]);
            }
        }
        let header = "diff --git a/a b/a\nindex 1..2\n";
        for (damaged, line) in [
            ("", 1),
            ("hello\n", 1),
            ("diff --git a/a b/a\nBinary files differ\n", 2),
            ("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", 2),
            (&format!("{header}@@ -1,2 +1 @@\n-a\n"), 5),
            (&format!("{header}@@ -1 +1 @@\n?a\n"), 4),
            (&format!("{header}@@ -1,x +1 @@\n a\n"), 3),
            (&format!("{header}@@ -1 +1 @@\n a\nindex 1..2\n"), 5),
            (&format!("{header}@@ -1 +1 @@\n a"), 4),
        ] {
            assert_eq!(parse_patch(damaged.as_bytes()), Err(PatchDamage { line }), "{damaged:?}");
        }
    }
}
