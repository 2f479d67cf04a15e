//! What the task message of a review holds of the change: its diff in parts that fit into a window.
//!
//! Invariants: the same change gives the same parts; every hunk of the change is in a part, in `beyond` or belongs to a
//! file of `left_out`; nothing of a secret file, and no secret that [`Mask`] knows, is in a part.

use super::diff::{self, Row};
use super::mask::Mask;
use super::secret_files::is_secret_file;
use super::text::Unread;
use crate::domain::{FileCoverage, LeftOut, LeftOutReason, LineRange};
use crate::git::{Change, FileChange, Repo};
use crate::provider::builtin::facts::is_test_path;
use crate::provider::builtin::language::Language;

/// How much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// All parts together, in tokens.
    pub budget_tokens: u64,
    /// One part, in tokens; below [`Measure::MIN_PART`] it is taken for that.
    pub max_part_tokens: u64,
    /// Unchanged lines around each hunk.
    pub context_lines: u32,
}

impl Measure {
    /// In less there is no place for a line and the name of its file.
    pub const MIN_PART: u64 = 200;
    /// Unchanged lines around each hunk of a review; a model that wants more reads the file.
    pub const CONTEXT_LINES: u32 = 6;
}

/// What is to be shorter than this, in bytes, is not cut any more.
const MIN_TEXT: usize = 16;

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
pub struct Material {
    pub parts: Vec<DiffPart>,
    /// Of all parts.
    pub tokens: u64,
    /// Hunks for which the budget did not suffice.
    pub beyond: Vec<FileCoverage>,
    /// Files that are not told of at all.
    pub left_out: Vec<LeftOut>,
}

/// The material of a change. `count` says how many tokens a text is; `is_open` whether a file's hunk of this number is to
/// be told: one that is not appears as long as it stands around one that is.
pub fn material(
    repo: &Repo,
    change: &Change,
    measure: Measure,
    count: &dyn Fn(&str) -> u64,
    mask: Mask,
    is_open: &dyn Fn(&FileChange, usize) -> bool,
) -> Material {
    let open = |file: &&FileChange| (0..file.hunks.len()).any(|hunk| is_open(file, hunk));
    let mut files: Vec<&FileChange> = change.files.iter().filter(open).collect();
    files.sort_by_key(|file| (rank(&file.path), &file.path));
    let mut material = Material::default();
    for file in files {
        let leave_out = |reason| LeftOut { path: file.path.clone(), reason };
        if is_secret_file(&file.path) || file.old_path.as_deref().is_some_and(is_secret_file) {
            material.left_out.push(leave_out(LeftOutReason::Secret));
            continue;
        }
        if !material.beyond.is_empty() {
            let open = file.hunks.iter().enumerate().filter(|(hunk, _)| is_open(file, *hunk));
            let hunks = open.map(|(_, hunk)| hunk.new_range()).collect();
            material.beyond.push(FileCoverage { path: file.path.clone(), hunks, keys: Vec::new() });
            continue;
        }
        let rows = match diff::rows(repo, file, measure.context_lines, mask) {
            Ok(rows) => blocks_with(rows, |hunk| is_open(file, hunk)),
            Err(unread) => {
                material.left_out.push(leave_out(match unread {
                    Unread::TooLarge(_) => LeftOutReason::Oversized,
                    Unread::Git(_) => LeftOutReason::Unreadable,
                }));
                continue;
            }
        };
        for part in parts(file, rows, measure.max_part_tokens.max(Measure::MIN_PART), count) {
            if material.beyond.is_empty() && material.tokens + part.tokens <= measure.budget_tokens {
                material.tokens += part.tokens;
                material.parts.push(part);
                continue;
            }
            match material.beyond.last_mut().filter(|last| last.path == part.path) {
                Some(last) => last.hunks.extend(part.hunks),
                None => material.beyond.push(FileCoverage { path: part.path, hunks: part.hunks, keys: Vec::new() }),
            }
        }
    }
    material
}

/// The blocks in which there is a wanted hunk.
fn blocks_with(rows: Vec<Row>, is_wanted: impl Fn(usize) -> bool) -> Vec<Row> {
    let blocks = rows.chunk_by(|_, next| !next.is_header);
    let wanted = blocks.filter(|block| block.iter().any(|row| row.hunk.is_some_and(|(hunk, _)| is_wanted(hunk))));
    wanted.flatten().cloned().collect()
}

/// Greater is less worth reading first.
fn rank(path: &str) -> u8 {
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

/// A file's rows in parts of at most `limit` tokens: cut before a block where there is one, else between lines.
fn parts(file: &FileChange, mut rows: Vec<Row>, limit: u64, count: &dyn Fn(&str) -> u64) -> Vec<DiffPart> {
    let line = |text: &str| format!("{text}\n");
    let head = head(file, limit, count);
    let tokens_of = |row: &Row| count(&line(&row.text));
    let mut tokens: Vec<u64> = rows.iter().map(tokens_of).collect();
    let mut parts: Vec<DiffPart> = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let intro = match (parts.is_empty(), rows.get(start).is_some_and(|row| row.is_header)) {
            (true, _) => line(&head),
            (false, true) => format!("{head}, continued\n"),
            (false, false) => format!("{head}, continued\n@@ in the middle of a block @@\n"),
        };
        let room = limit.saturating_sub(count(&intro));
        let mut end = start;
        let (mut used, mut border) = (0, None);
        while let Some(more) = tokens.get(end).filter(|more| used + **more <= room) {
            used += more;
            end += 1;
            border = rows.get(end).filter(|row| row.is_header).map(|_| end).or(border);
        }
        end = border.filter(|_| end < rows.len()).unwrap_or(end);
        // Texts together may be more tokens than by themselves, if hardly ever.
        while end > start && count(&assembled(&intro, rows.get(start..end))) > limit {
            end -= 1;
        }
        if end == start {
            // One line is too long: half of it is tried again.
            if let (Some(row), Some(tokens)) = (rows.get_mut(start), tokens.get_mut(start))
                && shorten(row)
            {
                *tokens = tokens_of(row);
                continue;
            }
            end += 1;
        }
        let hunks = hunks_of(rows.get(start..end).unwrap_or_default());
        // Context behind the last change alone tells nothing.
        if !hunks.is_empty() {
            let text = assembled(&intro, rows.get(start..end));
            parts.push(DiffPart { path: file.path.clone(), hunks, tokens: count(&text), text });
        }
        start = end;
    }
    parts
}

fn assembled(intro: &str, rows: Option<&[Row]>) -> String {
    let mut text = intro.to_owned();
    for row in rows.unwrap_or_default() {
        text.push_str(&row.text);
        text.push('\n');
    }
    text
}

/// The line that names the file; at most half of a part.
fn head(file: &FileChange, limit: u64, count: &dyn Fn(&str) -> u64) -> String {
    let mut title = diff::title(file);
    while count(&title) > limit / 2 && title.len() > MIN_TEXT {
        halve(&mut title);
    }
    format!("### {title}")
}

/// Takes half of a row's text away; whether there was something to take.
fn shorten(row: &mut Row) -> bool {
    let is_long = row.text.len() > MIN_TEXT;
    if is_long {
        halve(&mut row.text);
    }
    is_long
}

fn halve(text: &mut String) {
    text.truncate(text.floor_char_boundary(text.len() / 2));
    text.push('…');
}

fn hunks_of(rows: &[Row]) -> Vec<LineRange> {
    let mut hunks: Vec<(usize, LineRange)> = Vec::new();
    for (number, lines) in rows.iter().filter_map(|row| row.hunk) {
        match hunks.last_mut().filter(|(last, _)| *last == number) {
            Some((_, range)) => *range = LineRange::new(range.start.min(lines.start), range.end.max(lines.end)),
            None => hunks.push((number, lines)),
        }
    }
    hunks.into_iter().map(|(_, range)| range).collect()
}
