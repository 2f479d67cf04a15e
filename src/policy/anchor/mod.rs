//! Locates anchors: finds where lines of one snapshot are in another.
//!
//! Only content counts, so edits, renames, moves, rebases, squashes and reverts need no special handling. Code is the
//! same if it differs in white space only. Edited lines are [`AnchorLocation::Changed`] and never count as the same. If
//! the answer is uncertain, it is `None`.

mod line_hashes;
mod line_mapping;
mod moved_code;

pub(crate) use line_hashes::HashedLines;
pub(crate) use line_mapping::{AnchorEdit, MappedLines, map_lines};
pub(crate) use moved_code::{AddedLines, MovedCode};

use crate::domain::LineRange;

/// Minimum weight (letters and digits) of code that is searched alone. Code with less weight looks like other code, so
/// it is searched together with the lines around it: `return None` or `except: pass` occur in every second function.
const MIN_SEARCHABLE_WEIGHT: u64 = 16;
/// Maximum number of lines above or below that are searched together with it; fewer are tried too. The number is large
/// enough to include the head of a small function.
const MAX_CONTEXT_LINES: usize = 4;

/// Location of anchored lines in another snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorLocation {
    /// The same code is here.
    Unchanged {
        /// Path of the file.
        path: String,
        /// Lines of the code.
        lines: LineRange,
    },
    /// Other code replaced it here, or it was edited and moved here.
    Changed {
        /// Path of the file.
        path: String,
        /// Lines of the other code.
        lines: LineRange,
    },
    /// The file exists, but the code is gone.
    Deleted {
        /// Path of the file.
        path: String,
        /// Line before the place where the code was; 0 for the top.
        after: u32,
    },
    /// The file is gone too.
    FileGone,
}

impl AnchorLocation {
    /// Returns the path and the lines of the code, or of the code that replaced it. `None` if it is gone.
    pub fn place(&self) -> Option<(&str, LineRange)> {
        match self {
            Self::Unchanged { path, lines } | Self::Changed { path, lines } => Some((path, *lines)),
            Self::Deleted { .. } | Self::FileGone => None,
        }
    }
}

/// Current version of a file, and the edits that led to it.
#[derive(Debug, Clone, Copy)]
pub struct CurrentFile<'a> {
    pub path: &'a str,
    pub code: &'a HashedLines,
    pub edits: &'a [AnchorEdit],
}

/// Locates `lines` (1-based) of `old`, a file that was called `path`. `now` is the current version of the file under
/// any name, or `None` if it is gone. `added` returns the lines that the change added in all files, or `None` if they
/// cannot be searched. It is called only if most of the lines are not in their file any more.
///
/// Returns `None` if `lines` is outside of the file or the location is uncertain.
pub fn locate_anchor<'a>(
    old: &HashedLines,
    path: &str,
    lines: LineRange,
    now: Option<CurrentFile<'_>>,
    added: impl FnOnce() -> Option<&'a AddedLines>,
) -> Option<AnchorLocation> {
    if lines.start == 0 || lines.start > old.len() {
        return None;
    }
    let lines = LineRange::new(lines.start, lines.end.min(old.len()));
    let here = now.map(|now| (now.path, map_lines(old, now.code, now.edits, lines)));
    let near = match here {
        Some((path, MappedLines::Unchanged(lines))) => {
            return Some(AnchorLocation::Unchanged { path: path.to_owned(), lines });
        }
        Some((path, MappedLines::Changed { lines, unchanged_weight: stayed, total_weight: of })) if stayed * 2 > of => {
            return Some(AnchorLocation::Changed { path: path.to_owned(), lines });
        }
        Some((path, MappedLines::Changed { lines, .. })) => (path, lines.start),
        Some((path, MappedLines::Gone { after })) => (path, after),
        None => (path, lines.start),
    };
    match added()?.find_with_context(old, lines, near) {
        Some(MovedCode::Exact { path, lines }) => return Some(AnchorLocation::Unchanged { path, lines }),
        Some(MovedCode::Similar { path, lines }) => return Some(AnchorLocation::Changed { path, lines }),
        None => {}
    }
    Some(match here {
        Some((path, MappedLines::Unchanged(lines))) => AnchorLocation::Unchanged { path: path.to_owned(), lines },
        Some((path, MappedLines::Changed { lines, .. })) => AnchorLocation::Changed { path: path.to_owned(), lines },
        Some((path, MappedLines::Gone { after })) => AnchorLocation::Deleted { path: path.to_owned(), after },
        None => AnchorLocation::FileGone,
    })
}

impl AddedLines {
    /// Searches the added lines for `lines` alone, or together with the lines around them if they weigh too little.
    fn find_with_context(&self, old: &HashedLines, lines: LineRange, near: (&str, u32)) -> Option<MovedCode> {
        if old.range_weight(lines) >= MIN_SEARCHABLE_WEIGHT {
            return self.find(old, lines, near);
        }
        let said: Vec<u32> = old.nonblank_lines(lines).collect();
        let (first, last) = (*said.first()?, *said.last()?);
        let above: Vec<u32> =
            old.nonblank_lines(LineRange::new(1, first)).rev().skip(1).take(MAX_CONTEXT_LINES).collect();
        let below: Vec<u32> =
            old.nonblank_lines(LineRange::new(last, old.len())).skip(1).take(MAX_CONTEXT_LINES).collect();
        let above = above.iter().rev().map(|&line| LineRange::new(line, last));
        let below = below.iter().rev().map(|&line| LineRange::new(first, line));
        let mut around = above.chain(below).filter(|&around| old.range_weight(around) >= MIN_SEARCHABLE_WEIGHT);
        around.find_map(|around| match self.find(old, around, near)? {
            MovedCode::Exact { path, lines } => {
                let skipped = old.nonblank_lines(around).take_while(|&line| line < first).count();
                let there: Vec<u32> = self.nonblank_lines_in(&path, lines).skip(skipped).take(said.len()).collect();
                Some(MovedCode::Exact { path, lines: LineRange::new(*there.first()?, *there.last()?) })
            }
            MovedCode::Similar { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests;
