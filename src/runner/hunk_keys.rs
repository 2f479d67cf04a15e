//! Computes hunk keys: hashes over everything that a verdict about a hunk depends on. They recognise a hunk from run to
//! run.
//!
//! - Two hunks with the same key show a reviewer the same code.
//! - A file that cannot be read has no keys.
//! - A key contains the file's name only if the name matters to the reviewer. Code that compares keys must compare
//!   names, too.
//!
//! A key of the built-in reviewer covers both whole files and their names, because a finding at a line depends on the
//! whole file, before and after. A key of a model covers the removed and the added lines, and on the new side the
//! enclosing function, from 6 to 60 lines to each side.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::domain::content_hash;
use crate::git::{Changeset, FileChange, Hunk, Repo};
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Lines on each side of a hunk that are always part of its key, because the diff shows them.
pub(super) const MIN_KEY_CONTEXT_LINES: u32 = 6;
/// Maximum number of lines on each side. Not from the literature: in longer functions the ends depend little on each
/// other.
const MAX_KEY_CONTEXT_LINES: u32 = 60;
/// Maximum size of a file with keys, in bytes. Larger files are not sent to a model either.
const MAX_KEYED_BYTES: u64 = 4 << 20;
/// Number of hexadecimal digits of a key: 128 bits.
const KEY_HEX_DIGITS: usize = 32;

/// The keys of a file's hunks in their order; empty if the file has no keys.
pub(super) type HunkKeys = Vec<String>;

fn hash_key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    content_hash(parts).chars().take(KEY_HEX_DIGITS).collect()
}

/// Computes keys for a reviewer that reads whole files, in the order of the change's files.
pub(super) fn compute_file_keys(change: &Changeset) -> Vec<HunkKeys> {
    let of_file = |file: &FileChange| {
        let old_path = file.old_path.as_deref().unwrap_or(&file.path);
        let old_blob = file.old_blob.as_deref().unwrap_or_default();
        let number = |number: usize| {
            let names = [b"file", file.path.as_bytes(), old_path.as_bytes()];
            hash_key(names.into_iter().chain([old_blob.as_bytes(), file.new_blob.as_bytes(), &number.to_le_bytes()]))
        };
        (0..file.hunks.len()).map(number).collect()
    };
    change.files.iter().map(of_file).collect()
}

/// Computes keys for a reviewer that sees hunks with surrounding lines, in the order of the change's files.
pub(super) fn compute_hunk_keys(repo: &Repo, change: &Changeset) -> Vec<HunkKeys> {
    let mut parsers = Parsers::default();
    let of_file = |file: &FileChange| {
        let Some((old, new)) = read_sides(repo, file.old_blob.as_deref(), &file.new_blob) else { return Vec::new() };
        let (old, new) = (NumberedText::from_text(&old), NumberedText::from_text(&new));
        let functions = find_functions(&mut parsers, &file.path, new.text);
        file.hunks.iter().map(|hunk| compute_hunk_key(hunk, &old, &new, &functions)).collect()
    };
    change.files.iter().map(of_file).collect()
}

/// Computes keys over the removed and added lines alone. They tell whether an edit still exists, whatever surrounds it.
pub(super) fn compute_edit_keys(old: &[u8], new: &[u8], hunks: &[Hunk]) -> HunkKeys {
    let (old, new) = (NumberedText::from_text(old), NumberedText::from_text(new));
    hunks.iter().map(|hunk| hash_key([b"edit".as_slice(), old.removed(hunk), new.added(hunk)])).collect()
}

/// Reads both sides of a file. Returns `None` if a side cannot be read or is too large.
pub(super) fn read_sides(repo: &Repo, old: Option<&str>, new: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = |blob: &str| match repo.blob_size(blob) {
        Ok(size) if size <= MAX_KEYED_BYTES => repo.blob(blob).ok(),
        _ => None,
    };
    Some((old.map_or(Some(Vec::new()), text)?, text(new)?))
}

fn compute_hunk_key(hunk: &Hunk, old: &NumberedText<'_>, new: &NumberedText<'_>, functions: &[(u32, u32)]) -> String {
    let (first, end) = added_range(hunk);
    let last = end.saturating_sub(1).max(first);
    let around = functions.iter().filter(|(from, to)| *from <= first && last <= *to).min_by_key(|(from, to)| to - from);
    let (from, to) = around.copied().unwrap_or((first, last));
    let from =
        from.max(first.saturating_sub(MAX_KEY_CONTEXT_LINES)).min(first.saturating_sub(MIN_KEY_CONTEXT_LINES)).max(1);
    let to = to
        .min(last.saturating_add(MAX_KEY_CONTEXT_LINES))
        .max(last.saturating_add(MIN_KEY_CONTEXT_LINES))
        .saturating_add(1);
    let (above, below) = (new.range(from, first), new.range(end, to));
    hash_key([b"hunk".as_slice(), old.removed(hunk), new.added(hunk), above, below])
}

/// Returns the added lines of a hunk (1-based): the first line, and the line after the last. For a deletion, both are
/// the line behind it.
fn added_range(hunk: &Hunk) -> (u32, u32) {
    let first = if hunk.new_lines == 0 { hunk.new_start.saturating_add(1) } else { hunk.new_start };
    (first, first.saturating_add(hunk.new_lines))
}

/// Returns the first and last lines (1-based) of a file's functions; empty if the file cannot be parsed.
fn find_functions(parsers: &mut Parsers, path: &str, text: &[u8]) -> Vec<(u32, u32)> {
    let read = |parsers: &mut Parsers| {
        let language = Language::detect(path, text)?;
        let source = parsers.parse(path, language, text).ok()?;
        let functions = FileFacts::from_parsed(&source).functions;
        Some(functions.iter().map(|function| (function.line_start, function.line_end)).collect())
    };
    // If a file makes the analysis panic, only this file is lost, as in a review.
    match catch_unwind(AssertUnwindSafe(|| read(parsers))) {
        Ok(functions) => functions.unwrap_or_default(),
        Err(_) => {
            *parsers = Parsers::default();
            Vec::new()
        }
    }
}

/// A text with random access to its lines, 1-based.
struct NumberedText<'a> {
    text: &'a [u8],
    /// Byte offset of each line.
    starts: Vec<usize>,
}

impl<'a> NumberedText<'a> {
    fn from_text(text: &'a [u8]) -> Self {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        Self { text, starts: starts.collect() }
    }

    /// Returns the lines from `from` to `end`, excluding `end`.
    fn range(&self, from: u32, end: u32) -> &'a [u8] {
        let at = |line: u32| {
            let index = (line as usize).saturating_sub(1);
            self.starts.get(index).copied().unwrap_or(self.text.len())
        };
        self.text.get(at(from)..at(end).max(at(from))).unwrap_or_default()
    }

    fn removed(&self, hunk: &Hunk) -> &'a [u8] {
        match hunk.old_lines {
            0 => &[],
            lines => self.range(hunk.old_start, hunk.old_start.saturating_add(lines)),
        }
    }

    fn added(&self, hunk: &Hunk) -> &'a [u8] {
        let (first, end) = added_range(hunk);
        self.range(first, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(old: &str, new: &str) -> HunkKeys {
        let diff = similar::TextDiff::from_lines(old, new);
        let hunks = diff.ops().iter().filter(|op| op.tag() != similar::DiffTag::Equal).map(|op| Hunk {
            old_start: op.old_range().start as u32 + u32::from(!op.old_range().is_empty()),
            old_lines: op.old_range().len() as u32,
            new_start: op.new_range().start as u32 + u32::from(!op.new_range().is_empty()),
            new_lines: op.new_range().len() as u32,
        });
        let functions = find_functions(&mut Parsers::default(), "a.py", new.as_bytes());
        let (old, new) = (NumberedText::from_text(old.as_bytes()), NumberedText::from_text(new.as_bytes()));
        hunks.map(|hunk| compute_hunk_key(&hunk, &old, &new, &functions)).collect()
    }

    fn function(name: &str, lines: usize) -> String {
        (1..lines).fold(format!("def {name}():\n"), |text, line| text + &format!("    {name}({line})\n")) + "\n\n"
    }

    #[test]
    fn a_key_holds_what_is_around_the_hunk_and_nothing_else() {
        let old = function("f", 30) + &function("g", 30) + &function("h", 200);
        let edit = |text: &str, line: &str| text.replace(line, &format!("    # edited\n{line}"));
        let base = edit(&old, "    f(15)\n");
        let one = keys(&old, &base);
        assert_eq!(one.len(), 1);
        for (name, text, expected) in [
            ("moved down", format!("import os\n{base}"), true),
            ("edited elsewhere", edit(&base, "    g(15)\n"), true),
            ("at the end of its function", edit(&base, "    f(29)\n"), false),
            ("three lines away", edit(&base, "    f(18)\n"), false),
            ("edited otherwise", base.replace("# edited", "# changed"), false),
        ] {
            let found = keys(&old, &text).contains(&one[0]);
            assert_eq!(found, expected, "{name}");
        }
        // In a long function, distant lines do not matter.
        let long = edit(&old, "    h(20)\n");
        assert!(keys(&old, &edit(&long, "    h(190)\n")).contains(&keys(&old, &long)[0]));
        assert!(!keys(&old, &edit(&long, "    h(50)\n")).contains(&keys(&old, &long)[0]));
    }

    #[test]
    fn what_was_taken_away_counts() {
        let old = function("f", 30);
        let (one, other) = (keys(&old, &old.replace("    f(3)\n", "")), keys(&old, &old.replace("    f(4)\n", "")));
        assert_eq!((one.len(), other.len()), (1, 1));
        assert_ne!(one, other);
        let same_result = old.replace("    f(3)\n", "    f(3, 3)\n");
        assert_ne!(
            keys(&same_result, &old),
            keys(&old.replace("    f(3)\n", "    f(3, 4)\n"), &old),
            "what was there before"
        );
    }
}
