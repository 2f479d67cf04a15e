//! Anchors follow the code: where lines of one snapshot stand in another.
//!
//! Only contents count, so an edit, a rename, a move, a rebase, a squash and a revert are all the same to it. Code is the
//! same when it differs in white space only. Lines that were edited are [`Stand::Changed`] and never taken for the same;
//! what cannot be told is not guessed: the answer is `None`.

mod line_hashes;
mod line_mapping;
mod moved_code;

pub use line_hashes::HashedLines;
pub use line_mapping::{AnchorEdit, MappedLines, map_lines};
pub use moved_code::{AddedLines, MovedCode};

use crate::domain::LineRange;

/// Less than this cannot be told from other code of the same sort, so it is looked for together with what stands around
/// it. Letters and digits; own: `return None` or `except: pass` stand in every second function.
const MIN_SEARCHABLE_WEIGHT: u64 = 16;
/// So many lines above, or below, come along then, and fewer where the first of them did not; own: the head of a small
/// function is among them.
const MAX_CONTEXT_LINES: usize = 4;

/// What became of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorLocation {
    /// The same code, here.
    Unchanged { path: String, lines: LineRange },
    /// Other code stands here in its place, or it was edited on its way here.
    Changed { path: String, lines: LineRange },
    /// The file is there and the code is not; it stood after line `after` (0 for the top).
    Deleted { path: String, after: u32 },
    /// Neither is there.
    FileGone,
}

impl AnchorLocation {
    /// Where the code is now, or what took its place.
    pub fn place(&self) -> Option<(&str, LineRange)> {
        match self {
            Self::Unchanged { path, lines } | Self::Changed { path, lines } => Some((path, *lines)),
            Self::Deleted { .. } | Self::FileGone => None,
        }
    }
}

/// A file as it is now, and how it came from what it was.
#[derive(Debug, Clone, Copy)]
pub struct CurrentFile<'a> {
    pub path: &'a str,
    pub code: &'a HashedLines,
    pub edits: &'a [AnchorEdit],
}

/// Where `lines` of `old`, a file called `path`, stand now. `now` is that file today, under whatever name; `None` when it
/// is gone. `added` gives what the change added in all of its files and is asked only when the lines are not where they
/// were; it answers `None` when that cannot be looked through.
///
/// `None` when the lines are no lines of the file, or when nobody can tell.
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
    /// Where lines went, told by themselves or, where they say too little, by the lines around them.
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
