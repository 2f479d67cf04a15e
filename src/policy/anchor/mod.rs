//! Anchors follow the code: where lines of one snapshot stand in another.
//!
//! Only contents count, so an edit, a rename, a move, a rebase, a squash and a revert are all the same to it. Code is the
//! same when it differs in white space only. Lines that were edited are [`Stand::Changed`] and never taken for the same;
//! what cannot be told is not guessed: the answer is `None`.

mod code;
mod moved;
mod within;

pub use code::Code;
pub use moved::{Added, Found};
pub use within::{Edit, Within, follow};

use crate::domain::LineRange;

/// Less than this cannot be told from other code of the same sort, so it is looked for together with what stands around
/// it. Letters and digits; own: `return None` or `except: pass` stand in every second function.
const WORTH_LOOKING_FOR: u64 = 16;
/// So many lines above, or below, come along then, and fewer where the first of them did not; own: the head of a small
/// function is among them.
const CONTEXT: usize = 4;

/// What became of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// The same code, here.
    Unchanged { path: String, lines: LineRange },
    /// Other code stands here in its place, or it was edited on its way here.
    Changed { path: String, lines: LineRange },
    /// The file is there and the code is not; it stood after line `after` (0 for the top).
    Deleted { path: String, after: u32 },
    /// Neither is there.
    FileGone,
}

impl Stand {
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
pub struct Now<'a> {
    pub path: &'a str,
    pub code: &'a Code,
    pub edits: &'a [Edit],
}

/// Where `lines` of `old`, a file called `path`, stand now. `now` is that file today, under whatever name; `None` when it
/// is gone. `added` gives what the change added in all of its files and is asked only when the lines are not where they
/// were; it answers `None` when that cannot be looked through.
///
/// `None` when the lines are no lines of the file, or when nobody can tell.
pub fn locate<'a>(
    old: &Code,
    path: &str,
    lines: LineRange,
    now: Option<Now<'_>>,
    added: impl FnOnce() -> Option<&'a Added>,
) -> Option<Stand> {
    if lines.start == 0 || lines.start > old.len() {
        return None;
    }
    let lines = LineRange::new(lines.start, lines.end.min(old.len()));
    let here = now.map(|now| (now.path, follow(old, now.code, now.edits, lines)));
    let near = match here {
        Some((path, Within::Unchanged(lines))) => return Some(Stand::Unchanged { path: path.to_owned(), lines }),
        Some((path, Within::Changed { lines, stayed, of })) if stayed * 2 > of => {
            return Some(Stand::Changed { path: path.to_owned(), lines });
        }
        Some((path, Within::Changed { lines, .. })) => (path, lines.start),
        Some((path, Within::Gone { after })) => (path, after),
        None => (path, lines.start),
    };
    match added()?.look_for(old, lines, near) {
        Some(Found::Exact { path, lines }) => return Some(Stand::Unchanged { path, lines }),
        Some(Found::Near { path, lines }) => return Some(Stand::Changed { path, lines }),
        None => {}
    }
    Some(match here {
        Some((path, Within::Unchanged(lines))) => Stand::Unchanged { path: path.to_owned(), lines },
        Some((path, Within::Changed { lines, .. })) => Stand::Changed { path: path.to_owned(), lines },
        Some((path, Within::Gone { after })) => Stand::Deleted { path: path.to_owned(), after },
        None => Stand::FileGone,
    })
}

impl Added {
    /// Where lines went, told by themselves or, where they say too little, by the lines around them.
    fn look_for(&self, old: &Code, lines: LineRange, near: (&str, u32)) -> Option<Found> {
        if old.weight_of(lines) >= WORTH_LOOKING_FOR {
            return self.find(old, lines, near);
        }
        let said: Vec<u32> = old.said(lines).collect();
        let (first, last) = (*said.first()?, *said.last()?);
        let above: Vec<u32> = old.said(LineRange::new(1, first)).rev().skip(1).take(CONTEXT).collect();
        let below: Vec<u32> = old.said(LineRange::new(last, old.len())).skip(1).take(CONTEXT).collect();
        let above = above.iter().rev().map(|&line| LineRange::new(line, last));
        let below = below.iter().rev().map(|&line| LineRange::new(first, line));
        let mut around = above.chain(below).filter(|&around| old.weight_of(around) >= WORTH_LOOKING_FOR);
        around.find_map(|around| match self.find(old, around, near)? {
            Found::Exact { path, lines } => {
                let skipped = old.said(around).take_while(|&line| line < first).count();
                let there: Vec<u32> = self.said_in(&path, lines).skip(skipped).take(said.len()).collect();
                Some(Found::Exact { path, lines: LineRange::new(*there.first()?, *there.last()?) })
            }
            Found::Near { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests;
