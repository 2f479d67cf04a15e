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

/// Returns whether the first line of a comment has one of the marks: `// TODO`, `/* ignored for now, FIXME */`. In lower
/// case, only the first word with a colon or a name behind it is a mark: `# todo: log it`.
fn is_to_do(text: &str) -> bool {
    let words = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let line = words.lines().next().unwrap_or_default();
    let is_mark = |word: &str| TO_DO_MARKS.contains(&word);
    let (first, rest) = line.split_at(line.find(|c: char| !c.is_alphanumeric()).unwrap_or(line.len()));
    line.split(|c: char| !c.is_alphanumeric()).any(is_mark)
        || (rest.starts_with([':', '(']) && is_mark(&first.to_ascii_uppercase()))
}

/// Returns whether a Rust comment is documentation: `///`, `//!`, `/**`, `/*!`. A comment with more slashes or stars is
/// not.
fn is_documentation(text: &str) -> bool {
    let is = |mark: &str, plain: &str| text.starts_with(mark) && !text.starts_with(plain);
    is("///", "////") || text.starts_with("//!") || (is("/**", "/***") && text != "/**/") || text.starts_with("/*!")
}
