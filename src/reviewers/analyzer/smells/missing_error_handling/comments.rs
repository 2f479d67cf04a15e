//! Selects the comments that explain why an error may be ignored. Doc comments and to-do comments do not count.

use crate::syntax::language::Language;
use crate::syntax::source::Node;

/// Words of a comment that announces later work and justifies nothing.
const TO_DO_MARKS: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// Comments of a file, in order.
#[derive(Default)]
pub(super) struct ExplainingComments {
    row_ranges: Vec<(u32, u32)>,
    /// Last row of the latest to-do comment: a comment on the next row continues it.
    to_do: Option<u32>,
}

impl ExplainingComments {
    pub fn push(&mut self, node: &Node, text: &str, language: Language) {
        // In the grammar of Rust a doc comment includes its line end.
        let end = node.end_row - u32::from(text.ends_with('\n') && node.end_row > node.row);
        let goes_on = self.to_do.is_some_and(|row| row + 1 == node.row);
        if goes_on || is_to_do(text) {
            self.to_do = Some(end);
        } else if !(language == Language::Rust && is_documentation(text)) {
            self.row_ranges.push((node.row, end));
        }
    }

    /// Returns the first and last row of each explaining comment.
    pub fn row_ranges(&self) -> &[(u32, u32)] {
        &self.row_ranges
    }
}

/// Returns whether the first line of a comment announces work. A mark is its first or last word, or stands before a colon
/// or a name: `// TODO later`, `/* ignored for now, FIXME(ann) */`. In lower case, only the first word before a colon or a
/// name is a mark: `# todo: log it`.
fn is_to_do(text: &str) -> bool {
    let words = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let line = words.lines().next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric();
    let is_end = |rest: &str| rest.starts_with([':', '(']) || !rest.contains(is_word);
    let is_mark = |mark: &&str| {
        line.match_indices(*mark).any(|(at, _)| {
            let (before, rest) = (&line[..at], &line[at + mark.len()..]);
            !before.ends_with(is_word) && !rest.starts_with(is_word) && (at == 0 || is_end(rest))
        })
    };
    let (first, rest) = line.split_at(line.find(|c: char| !is_word(c)).unwrap_or(line.len()));
    TO_DO_MARKS.iter().any(is_mark)
        || (rest.starts_with([':', '(']) && TO_DO_MARKS.contains(&first.to_ascii_uppercase().as_str()))
}

/// Returns whether a Rust comment is documentation: `///`, `//!`, `/**`, `/*!`. A comment with more slashes or stars is
/// not.
fn is_documentation(text: &str) -> bool {
    let is = |mark: &str, plain: &str| text.starts_with(mark) && !text.starts_with(plain);
    is("///", "////") || text.starts_with("//!") || (is("/**", "/***") && text != "/**/") || text.starts_with("/*!")
}
