//! What the task message of a review holds of the change: its diff in parts that fit into a window.
//!
//! Invariants: the same change gives the same parts; every hunk of the change is in a part, in `beyond` or belongs to a
//! file of `left_out`; nothing of a secret file, and no secret that [`Mask`] knows, is in a part.

use std::ops::Range;

use super::diff::{self, DiffRow};
use super::mask::Mask;
use super::secret_files::is_secret_file;
use super::text::ReadTextError;
use crate::domain::{FileCoverage, LineRange, OmissionReason, OmittedFile};
use crate::git::{Changeset, FileChange, Repo};
use crate::reviewers::analyzer::facts::is_test_path;
use crate::reviewers::analyzer::language::Language;

/// How much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLimits {
    /// All parts together, in tokens.
    pub budget_tokens: u64,
    /// One part, in tokens; below [`Measure::MIN_PART`] it is taken for that.
    pub max_part_tokens: u64,
    /// Unchanged lines around each hunk.
    pub context_lines: u32,
}

impl DiffLimits {
    /// In less there is no place for a line and the name of its file.
    pub const MIN_PART_TOKENS: u64 = 200;
    /// Unchanged lines around each hunk of a review; a model that wants more reads the file.
    pub const DEFAULT_CONTEXT_LINES: u32 = 6;
}

/// What is to be shorter than this, in bytes, is not cut any more.
const MIN_TEXT_BYTES: usize = 16;
/// Once a part did not fit, so many files more are looked into for smaller ones: a change may be of very many. Own.
const MAX_FILES_TRIED: usize = 200;
/// No part is smaller, in tokens: a name, where a block begins, a line.
const MIN_USEFUL_TOKENS: u64 = 12;
/// In place of where a block begins, when it is cut before that.
const MID_BLOCK_MARKER: &str = "@@ in the middle of a block @@";

/// A piece of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPart {
    pub path: String,
    /// The changed lines in it on the new side, one range for each hunk or piece of a hunk; of pure deletions the line
    /// before. The ranges of all parts of a hunk together are [`crate::git::Hunk::new_range`].
    pub hunks: Vec<LineRange>,
    /// The file's name and a unified diff with the line numbers of the new side, each line with a line end.
    pub text: String,
    pub tokens: u64,
}

/// What of a change can be told, in the order in which it is worth reading: code, settings and data, tests, prose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffParts {
    pub parts: Vec<DiffPart>,
    /// Of all parts.
    pub tokens: u64,
    /// Hunks for which the budget did not suffice.
    pub over_budget: Vec<FileCoverage>,
    /// Files that are not told of at all.
    pub left_out: Vec<OmittedFile>,
}

/// The material of a change. `count` says how many tokens a text is; `is_open` whether a file's hunk of this number is to
/// be told: one that is not appears as long as it stands around one that is. Once it is cancelled, the files that are left
/// are beyond.
///
/// Of what does not fit, the first part is cut into the room that smaller parts behind it have left.
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
    // The first part that does not fit: where it is, and what it is made of.
    let mut waiting: Option<(usize, DiffPartCutter<'_>)> = None;
    let mut tried = 0;
    for file in files {
        let leave_out = |reason| OmittedFile { path: file.path.clone(), reason };
        if is_secret(file) {
            left_out.push(leave_out(OmissionReason::Secret));
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
                left_out.push(leave_out(match unread {
                    ReadTextError::TooLarge(_) => OmissionReason::Oversized,
                    ReadTextError::Git(_) => OmissionReason::Unreadable,
                }));
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

/// Whether a file holds secrets by its name, or by the one it had.
pub fn is_secret(file: &FileChange) -> bool {
    is_secret_file(&file.path) || file.old_path.as_deref().is_some_and(is_secret_file)
}

/// The parts of a change in their order, those that are told and those that are not.
struct PartAllocator {
    /// Tokens that are left.
    room: u64,
    parts: Vec<Result<DiffPart, FileCoverage>>,
}

impl PartAllocator {
    /// Whether there is room for it.
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

/// The blocks in which there is a wanted hunk.
fn select_blocks(rows: Vec<DiffRow>, is_wanted: impl Fn(usize) -> bool) -> Vec<DiffRow> {
    let blocks = rows.chunk_by(|_, next| !next.is_header);
    let wanted = blocks.filter(|block| block.iter().any(|row| row.hunk.is_some_and(|(hunk, _)| is_wanted(hunk))));
    wanted.flatten().cloned().collect()
}

/// Greater is less worth reading first.
fn reading_rank(path: &str) -> u8 {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let is_prose = matches!(ending.as_str(), "md" | "mdx" | "markdown" | "rst" | "txt" | "adoc" | "org" | "tex");
    match () {
        () if is_prose => 3,
        () if is_test_path(path) => 2,
        // A program without an ending is known by its first line, which is not read for this.
        () if Language::detect(path, b"").is_some() => 0,
        () => 1,
    }
}

/// A file's rows on their way into parts: cut before a block where there is one, else between lines.
struct DiffPartCutter<'a> {
    file: &'a FileChange,
    title: String,
    rows: Vec<DiffRow>,
    /// Of each row.
    tokens: Vec<u64>,
    count: &'a dyn Fn(&str) -> u64,
    /// The rows of the last part, and where the next one begins.
    last: Range<usize>,
    /// Whether the file's name is told already.
    is_begun: bool,
    /// Whether it was before the last part.
    was_begun: bool,
}

impl<'a> DiffPartCutter<'a> {
    fn new((file, title): (&'a FileChange, String), rows: Vec<DiffRow>, count: &'a dyn Fn(&str) -> u64) -> Self {
        let tokens = rows.iter().map(|row| count(&with_line_end(&row.text))).collect();
        Self { file, title, rows, tokens, count, last: 0..0, is_begun: false, was_begun: false }
    }

    /// The last part as rows again.
    fn restart_last_part(&self) -> Self {
        let rows = self.rows.get(self.last.clone()).unwrap_or_default().to_vec();
        Self { is_begun: self.was_begun, ..Self::new((self.file, self.title.clone()), rows, self.count) }
    }

    /// The next part, of at most `limit` tokens.
    fn next_part(&mut self, limit: u64) -> Option<DiffPart> {
        while self.last.end < self.rows.len() {
            let intro = self.build_part_heading(limit);
            let (start, end) = (self.last.end, self.find_part_end(&intro, limit));
            if end == start && self.shorten() {
                // One line is too long: half of it is tried again.
                continue;
            }
            self.last = start..end.max(start + 1);
            let rows = self.rows.get(self.last.clone()).unwrap_or_default();
            let hunks = merge_hunk_ranges(rows);
            // Context behind the last change alone tells nothing.
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

    /// Where a part ends that begins with such an intro.
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
        // Texts together may be more tokens than by themselves, if hardly ever.
        while end > start && (self.count)(&assemble_part(intro, self.rows.get(start..end).unwrap_or_default())) > limit
        {
            end -= 1;
        }
        end
    }

    /// Takes half of the next row's text away; whether there was something to take.
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

/// The line that names the file; at most half of a part.
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
