//! Formats the diff of a changed file for a model. Lines have the numbers of the new side.
//!
//! Secrets are masked in the whole old and new file, and the lines of the diff are taken from these masked texts.

use super::text::{BlobText, ReadTextError, format_line, format_path};
use crate::domain::LineRange;
use crate::git::{ChangeKind, DiffLine, FileChange, LineOrigin, Repo};
use crate::masking::Mask;

/// How far above a hunk, in lines, the enclosing declaration is searched.
const MAX_SECTION_LOOKBACK_LINES: u32 = 2_000;
/// Maximum length of the declaration shown in a hunk header, in characters.
const MAX_SECTION_CHARS: usize = 100;

/// One line of a formatted diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffRow {
    /// Text without a line end, such as `   12 +let x = 1;`. Removed lines have no number.
    pub text: String,
    /// True for a hunk header, with which a block of changes and its context lines begins.
    pub is_header: bool,
    /// Index of the hunk in the file's `hunks`, and the lines of the new side that this row stands for (1-based). A
    /// removed line stands for the first line of its hunk. `None` for context lines and headers.
    pub hunk: Option<(usize, LineRange)>,
    pub new_line: Option<u32>,
}

/// Builds the rows of a file's diff, with `context` unchanged lines around each hunk.
///
/// # Errors
/// Returns an error if a side of the file is too large or git cannot read it.
pub fn build_diff_rows(
    repo: &Repo,
    file: &FileChange,
    context: u32,
    mask: Mask,
) -> Result<Vec<DiffRow>, ReadTextError> {
    let new = BlobText::from_blob(repo, &file.new_blob, &file.path, mask)?;
    let old_path = file.old_path.as_deref().unwrap_or(&file.path);
    let old = file.old_blob.as_ref().map(|blob| BlobText::from_blob(repo, blob, old_path, mask)).transpose()?;
    let lines = repo.file_diff(file, context).map_err(ReadTextError::Git)?;
    let mut rows = Vec::with_capacity(lines.len());
    let (mut hunk, mut is_inside) = (0, false);
    for line in &lines {
        let is_change = matches!(line.origin, LineOrigin::Added | LineOrigin::Removed);
        if is_inside && !is_change {
            hunk += 1;
        }
        is_inside = is_change;
        // The text comes from the masked files and not from git's diff.
        let old_text = || line.old_line.and_then(|number| Some(old.as_ref()?.line(number))).unwrap_or_default();
        let new_text = || line.new_line.map_or("", |number| new.line(number));
        let text = match line.origin {
            LineOrigin::HunkHeader => format_hunk_header(line, &new),
            LineOrigin::Removed => format!("      -{}", format_line(old_text())),
            LineOrigin::Added => format!("{:>5} +{}", line.new_line.unwrap_or(0), format_line(new_text())),
            LineOrigin::Context => format!("{:>5}  {}", line.new_line.unwrap_or(0), format_line(new_text())),
        };
        let stands_for = || {
            let first = file.hunks.get(hunk).map_or(1, |hunk| hunk.new_range().start);
            let number = line.new_line.unwrap_or(first);
            (hunk, LineRange::new(number, number))
        };
        rows.push(DiffRow {
            text,
            is_header: line.origin == LineOrigin::HunkHeader,
            hunk: is_change.then(stands_for),
            new_line: line.new_line,
        });
    }
    Ok(rows)
}

/// Formats `@@ -10,3 +12,5 @@ fn around_it(` like git, but takes the declaration from the masked file.
fn format_hunk_header(line: &DiffLine, new: &BlobText) -> String {
    let places = line.text.split("@@").nth(1).unwrap_or_default().trim();
    let places: String = places.chars().filter(|c| c.is_ascii_digit() || matches!(c, ' ' | '+' | '-' | ',')).collect();
    let start = places.split('+').nth(1).and_then(|new| new.split(',').next()?.parse::<u32>().ok()).unwrap_or(1);
    let begins = |line: &&str| line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    let above = (start.saturating_sub(MAX_SECTION_LOOKBACK_LINES).max(1)..start)
        .rev()
        .map(|number| new.line(number))
        .find(begins);
    let section: String = above.unwrap_or_default().chars().take(MAX_SECTION_CHARS).collect();
    format!("@@ {places} @@ {}", format_line(section.trim_end())).trim_end().to_owned()
}

/// Returns the title of a file's diff, such as `src/a.rs (renamed from src/b.rs)`.
pub fn format_file_title(file: &FileChange, mask: Mask) -> String {
    let path = format_path(&file.path, mask);
    let from = || format_path(file.old_path.as_deref().unwrap_or_default(), mask);
    match file.kind {
        ChangeKind::Added => format!("{path} (new file)"),
        ChangeKind::Modified => path,
        ChangeKind::Renamed => format!("{path} (renamed from {})", from()),
        ChangeKind::Copied => format!("{path} (copied from {})", from()),
    }
}
