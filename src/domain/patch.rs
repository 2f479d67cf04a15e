//! Parses patches that revdeck wrote, in git's format (see `git::patch`). File paths are passed separately and are
//! never read from the patch text.

use std::ops::Range;

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

/// Parses the files of a patch, in order. Returns `None` if the patch cannot be applied: truncated, binary or
/// damaged.
pub fn parse_patch(text: &[u8]) -> Option<Vec<FilePatch>> {
    let mut lines = text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n').peekable();
    let mut files = Vec::new();
    while let Some(line) = lines.next() {
        if !line.starts_with(b"diff --git ") {
            return None;
        }
        let mut file = FilePatch::default();
        // The header, up to the first hunk.
        while let Some(line) = lines.next_if(|line| !line.starts_with(b"@@ ") && !line.starts_with(b"diff --git ")) {
            if let Some(mode) = line.strip_prefix(b"new file mode ") {
                file.kind = FilePatchKind::Add { executable: mode.ends_with(b"755") };
            } else if line.starts_with(b"deleted file mode ") {
                file.kind = FilePatchKind::Delete;
            } else if let Some(ids) = line.strip_prefix(b"index ") {
                let end = ids.windows(2).position(|two| two == b"..")?;
                file.old_blob = String::from_utf8(ids.get(..end)?.to_vec()).ok()?;
            } else if !line.starts_with(b"--- ") && !line.starts_with(b"+++ ") {
                // revdeck never writes mode changes, renames or binary content.
                return None;
            }
        }
        while let Some(head) = lines.next_if(|line| line.starts_with(b"@@ ")) {
            let (old_start, mut old, new_start, mut new) = parse_hunk_header(head)?;
            let mut hunk = PatchHunk { old_start, new_start, lines: Vec::new() };
            while old > 0 || new > 0 {
                let line = lines.next()?;
                let (sign, text) = line.split_first()?;
                let (origin, takes) = match sign {
                    b' ' => (PatchLineKind::Context, (1, 1)),
                    b'-' => (PatchLineKind::Removed, (1, 0)),
                    b'+' => (PatchLineKind::Added, (0, 1)),
                    _ => return None,
                };
                (old, new) = (old.checked_sub(takes.0)?, new.checked_sub(takes.1)?);
                let is_open = lines.next_if(|line| line.starts_with(b"\\ ")).is_some();
                hunk.lines.push(PatchLine { kind: origin, text: text.to_vec(), lacks_newline: is_open });
            }
            file.hunks.push(hunk);
        }
        files.push(file);
    }
    Some(files)
}

/// Parses `@@ -1,2 +3 @@ ...` to (1, 2, 3, 1): start and count of the old side, then of the new side.
fn parse_hunk_header(head: &[u8]) -> Option<(u32, u32, u32, u32)> {
    let head = std::str::from_utf8(head.strip_prefix(b"@@ -")?.split(|byte| *byte == b'@').next()?).ok()?;
    let (old, new) = head.trim_end().split_once(" +")?;
    let range = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((old_start, old), (new_start, new)) = (range(old)?, range(new)?);
    Some((old_start, old, new_start, new))
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
        for damaged in [
            "",
            "hello\n",
            "diff --git a/a b/a\nBinary files differ\n",
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n",
            "diff --git a/a b/a\nindex 1..2\n@@ -1,2 +1 @@\n-a\n",
            "diff --git a/a b/a\nindex 1..2\n@@ -1 +1 @@\n?a\n",
            "diff --git a/a b/a\nindex 1..2\n@@ -1,x +1 @@\n a\n",
        ] {
            assert_eq!(parse_patch(damaged.as_bytes()), None, "{damaged:?}");
        }
    }
}
