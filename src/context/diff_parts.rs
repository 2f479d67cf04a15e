//! Splits the diff of a change into parts that fit into a window, for the task message of a review.
//!
//! Invariants:
//! - The same change gives the same parts.
//! - Every hunk of the change is in a part, in `over_budget`, or belongs to a file in `left_out`.
//! - No part holds text of a secret file or a secret that [`Mask`] detects.

use std::ops::Range;

use super::diff::{self, DiffRow};
use super::text::ReadTextError;
pub use crate::domain::DiffPart;
use crate::domain::{FileCoverage, LineRange, OmissionReason, OmittedFile};
use crate::git::{Changeset, FileChange, Repo};
use crate::masking::Mask;
use crate::masking::secret_files::is_secret_file;
use crate::syntax::facts::is_test_path;
use crate::syntax::language::Language;

/// Limits of the diff in a task message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLimits {
    /// Maximum for all parts together, in tokens.
    pub budget_tokens: u64,
    /// Maximum for one part, in tokens. A value below [`DiffLimits::MIN_PART_TOKENS`] counts as that minimum.
    pub max_part_tokens: u64,
    /// Unchanged lines around each hunk.
    pub context_lines: u32,
}

impl DiffLimits {
    /// Smallest possible part limit, in tokens. Less has no room for a line and the name of its file.
    pub const MIN_PART_TOKENS: u64 = 200;
    /// Unchanged lines around each hunk of a review. A model that wants more reads the file.
    pub const DEFAULT_CONTEXT_LINES: u32 = 6;
}

/// Texts of at most this many bytes are not shortened further.
const MIN_TEXT_BYTES: usize = 16;
/// Maximum number of further files to read after the first part that did not fit, in search of smaller parts. A change
/// may have very many files.
const MAX_FILES_TRIED: usize = 200;
/// Smallest useful part, in tokens: a file name, a hunk header and a line.
const MIN_USEFUL_TOKENS: u64 = 12;
/// Replaces the hunk header if a part begins in the middle of a block.
const MID_BLOCK_MARKER: &str = "@@ in the middle of a block @@";

/// Parts of a change's diff, in reading order: code, settings and data, tests, prose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffParts {
    /// Parts that fit into the budget.
    pub parts: Vec<DiffPart>,
    /// Tokens of all parts.
    pub tokens: u64,
    /// Hunks that did not fit into the budget.
    pub over_budget: Vec<FileCoverage>,
    /// Files without any part, with the reason.
    pub left_out: Vec<OmittedFile>,
}

/// Splits the diff of a change into parts within `measure`. `count` counts the tokens of a text. `is_open` tells
/// whether the hunk with this index of a file must be included; other hunks appear only as context around an included
/// hunk. After `cancelled` returns true, the remaining files are over budget.
///
/// If not everything fits, smaller later parts fill the budget first. The first part that did not fit is then cut to
/// the room that is left.
pub fn build_diff_parts(
    repo: &Repo,
    change: &Changeset,
    measure: DiffLimits,
    count: &dyn Fn(&str) -> u64,
    mask: Mask,
    is_open: &dyn Fn(&FileChange, usize) -> bool,
    cancelled: &dyn Fn() -> bool,
) -> DiffParts {
    let open = |file: &&FileChange| (0..file.hunks.len()).any(|hunk| is_open(file, hunk));
    let mut files: Vec<&FileChange> = change.files.iter().filter(open).collect();
    files.sort_by_key(|file| (reading_rank(&file.path), &file.path));
    let most = measure.max_part_tokens.max(DiffLimits::MIN_PART_TOKENS);
    let mut left_out = Vec::new();
    let mut places = PartAllocator { room: measure.budget_tokens, parts: Vec::new() };
    // The first part that did not fit: its index, and the cutter that can split it again.
    let mut waiting: Option<(usize, DiffPartCutter<'_>)> = None;
    let mut tried = 0;
    for file in files {
        let leave_out = |reason| OmittedFile::new(&file.path, reason);
        if is_secret(file) {
            // A file whose name says so only on one side is put out of sight by its move.
            let hidden = file.old_path.as_deref().is_some_and(|old| is_secret_file(old) != is_secret_file(&file.path));
            left_out.push(OmittedFile { hidden, ..leave_out(OmissionReason::Secret) });
            continue;
        }
        tried += usize::from(waiting.is_some());
        if waiting.is_some() && (tried > MAX_FILES_TRIED || places.room < MIN_USEFUL_TOKENS) || cancelled() {
            let open = file.hunks.iter().enumerate().filter(|(hunk, _)| is_open(file, *hunk));
            places.add_over_budget(&file.path, open.map(|(_, hunk)| hunk.new_range()).collect());
            continue;
        }
        let rows = match diff::build_diff_rows(repo, file, measure.context_lines, mask) {
            Ok(rows) => select_blocks(rows, |hunk| is_open(file, hunk)),
            Err(unread) => {
                // The settings allow a file of this size.
                left_out.push(match unread {
                    ReadTextError::TooLarge(_) => OmittedFile { hidden: true, ..leave_out(OmissionReason::Oversized) },
                    ReadTextError::Git(_) => leave_out(OmissionReason::Unreadable),
                });
                continue;
            }
        };
        let mut cutter = DiffPartCutter::new((file, diff::format_file_title(file, mask)), rows, count);
        while let Some(part) = cutter.next_part(most) {
            if !places.try_add(part) && waiting.is_none() {
                waiting = Some((places.parts.len() - 1, cutter.restart_last_part()));
            }
        }
    }
    if let Some((at, mut cutter)) = waiting {
        let behind = places.parts.split_off(at + 1);
        places.parts.pop();
        let limit = |room: u64| if room < DiffLimits::MIN_PART_TOKENS { most } else { room.min(most) };
        while let Some(part) = cutter.next_part(limit(places.room)) {
            places.try_add(part);
        }
        places.parts.extend(behind);
    }
    places.into_diff_parts(left_out)
}

/// Returns true if the file's current or old name is that of a secret file.
pub fn is_secret(file: &FileChange) -> bool {
    is_secret_file(&file.path) || file.old_path.as_deref().is_some_and(is_secret_file)
}

/// Allocates the budget to parts. Keeps all parts in order, accepted and rejected.
struct PartAllocator {
    /// Tokens left.
    room: u64,
    parts: Vec<Result<DiffPart, FileCoverage>>,
}

impl PartAllocator {
    /// Adds the part if there is room for it, else records its hunks as over budget. Returns true if it was added.
    fn try_add(&mut self, part: DiffPart) -> bool {
        let left = self.room.checked_sub(part.tokens);
        match left {
            Some(left) => {
                self.room = left;
                self.parts.push(Ok(part));
            }
            None => self.add_over_budget(&part.path, part.hunks),
        }
        left.is_some()
    }

    /// Records hunks that do not fit into the budget.
    fn add_over_budget(&mut self, path: &str, hunks: Vec<LineRange>) {
        self.parts.push(Err(FileCoverage { path: path.to_owned(), hunks, keys: Vec::new() }));
    }

    fn into_diff_parts(self, left_out: Vec<OmittedFile>) -> DiffParts {
        let mut material = DiffParts { left_out, ..DiffParts::default() };
        for part in self.parts {
            match (part, material.over_budget.last_mut()) {
                (Ok(part), _) => {
                    material.tokens += part.tokens;
                    material.parts.push(part);
                }
                (Err(beyond), Some(last)) if last.path == beyond.path => last.hunks.extend(beyond.hunks),
                (Err(beyond), _) => material.over_budget.push(beyond),
            }
        }
        material
    }
}

/// Returns the rows of the blocks with at least one wanted hunk.
fn select_blocks(rows: Vec<DiffRow>, is_wanted: impl Fn(usize) -> bool) -> Vec<DiffRow> {
    let blocks = rows.chunk_by(|_, next| !next.is_header);
    let wanted = blocks.filter(|block| block.iter().any(|row| row.hunk.is_some_and(|(hunk, _)| is_wanted(hunk))));
    wanted.flatten().cloned().collect()
}

/// Ranks a path for reading order. A lower number is read first.
fn reading_rank(path: &str) -> u8 {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let is_prose = matches!(ending.as_str(), "md" | "mdx" | "markdown" | "rst" | "txt" | "adoc" | "org" | "tex");
    match () {
        () if is_prose => 3,
        () if is_test_path(path) => 2,
        // A program without a file ending is detected by its first line, which is not read here.
        () if Language::detect(path, b"").is_some() => 0,
        () => 1,
    }
}

/// Splits the rows of a file into parts: before a block if possible, else between lines.
struct DiffPartCutter<'a> {
    file: &'a FileChange,
    title: String,
    rows: Vec<DiffRow>,
    /// Tokens of each row.
    tokens: Vec<u64>,
    count: &'a dyn Fn(&str) -> u64,
    /// Row range of the last part. The next part begins at its end.
    last: Range<usize>,
    /// True after a part with the file's name was returned.
    is_begun: bool,
    /// Value of `is_begun` before the last part.
    was_begun: bool,
}

impl<'a> DiffPartCutter<'a> {
    fn new((file, title): (&'a FileChange, String), rows: Vec<DiffRow>, count: &'a dyn Fn(&str) -> u64) -> Self {
        let tokens = rows.iter().map(|row| count(&with_line_end(&row.text))).collect();
        Self { file, title, rows, tokens, count, last: 0..0, is_begun: false, was_begun: false }
    }

    /// Returns a cutter for the rows of the last part.
    fn restart_last_part(&self) -> Self {
        let rows = self.rows.get(self.last.clone()).unwrap_or_default().to_vec();
        Self { is_begun: self.was_begun, ..Self::new((self.file, self.title.clone()), rows, self.count) }
    }

    /// Returns the next part, with at most `limit` tokens. `None` at the end.
    fn next_part(&mut self, limit: u64) -> Option<DiffPart> {
        while self.last.end < self.rows.len() {
            let intro = self.build_part_heading(limit);
            let (start, end) = (self.last.end, self.find_part_end(&intro, limit));
            if end == start && self.shorten() {
                // A single line is too long: try again with half of it.
                continue;
            }
            self.last = start..end.max(start + 1);
            let rows = self.rows.get(self.last.clone()).unwrap_or_default();
            let hunks = merge_hunk_ranges(rows);
            // Context lines after the last change alone say nothing.
            if !hunks.is_empty() {
                let text = assemble_part(&intro, rows);
                self.was_begun = std::mem::replace(&mut self.is_begun, true);
                return Some(DiffPart { path: self.file.path.clone(), hunks, tokens: (self.count)(&text), text });
            }
        }
        None
    }

    fn build_part_heading(&self, limit: u64) -> String {
        let head = build_file_heading(self.title.clone(), limit, self.count);
        match (self.is_begun, self.rows.get(self.last.end).is_some_and(|row| row.is_header)) {
            (false, true) => with_line_end(&head),
            (false, false) => format!("{head}\n{MID_BLOCK_MARKER}\n"),
            (true, true) => format!("{head}, continued\n"),
            (true, false) => format!("{head}, continued\n{MID_BLOCK_MARKER}\n"),
        }
    }

    /// Returns the end of a part that begins with this heading (row index, exclusive).
    fn find_part_end(&self, intro: &str, limit: u64) -> usize {
        let start = self.last.end;
        let room = limit.saturating_sub((self.count)(intro));
        let (mut end, mut used, mut border) = (start, 0, None);
        while let Some(more) = self.tokens.get(end).filter(|more| used + **more <= room) {
            used += more;
            end += 1;
            border = self.rows.get(end).filter(|row| row.is_header).map(|_| end).or(border);
        }
        end = border.filter(|_| end < self.rows.len()).unwrap_or(end);
        // Joined texts rarely have more tokens than the sum of their parts.
        while end > start && (self.count)(&assemble_part(intro, self.rows.get(start..end).unwrap_or_default())) > limit
        {
            end -= 1;
        }
        end
    }

    /// Removes half of the next row's text. Returns false if it is already short.
    fn shorten(&mut self) -> bool {
        let next = self.last.end;
        let (Some(row), Some(tokens)) = (self.rows.get_mut(next), self.tokens.get_mut(next)) else { return false };
        let is_long = row.text.len() > MIN_TEXT_BYTES;
        if is_long {
            halve(&mut row.text);
            *tokens = (self.count)(&with_line_end(&row.text));
        }
        is_long
    }
}

fn with_line_end(text: &str) -> String {
    format!("{text}\n")
}

fn assemble_part(intro: &str, rows: &[DiffRow]) -> String {
    let mut text = intro.to_owned();
    for row in rows {
        text.push_str(&row.text);
        text.push('\n');
    }
    text
}

/// Builds the line that names the file, with at most half of a part's tokens.
fn build_file_heading(mut title: String, limit: u64, count: &dyn Fn(&str) -> u64) -> String {
    while count(&title) > limit / 2 && title.len() > MIN_TEXT_BYTES {
        halve(&mut title);
    }
    format!("### {title}")
}

fn halve(text: &mut String) {
    text.truncate(text.floor_char_boundary(text.len() / 2));
    text.push('…');
}

/// Merges the rows into one range of lines for each hunk.
fn merge_hunk_ranges(rows: &[DiffRow]) -> Vec<LineRange> {
    let mut hunks: Vec<(usize, LineRange)> = Vec::new();
    for (number, lines) in rows.iter().filter_map(|row| row.hunk) {
        match hunks.last_mut().filter(|(last, _)| *last == number) {
            Some((_, range)) => *range = LineRange::new(range.start.min(lines.start), range.end.max(lines.end)),
            None => hunks.push((number, lines)),
        }
    }
    hunks.into_iter().map(|(_, range)| range).collect()
}
