//! Which comments say why an error may be ignored: not those that document an item, nor those that say that something is
//! still to be done.

use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::source::Node;

/// First words of a comment that promises to come back.
const TO_DO_MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// The comments of a file, in order.
#[derive(Default)]
pub(super) struct ExplainingComments {
    row_ranges: Vec<(u32, u32)>,
    /// Last row of the latest one that says what is to be done: lines below it go on with that.
    to_do: Option<u32>,
}

impl ExplainingComments {
    pub fn push(&mut self, node: &Node, text: &str, language: Language) {
        // The grammar of Rust gives documentation its line end.
        let end = node.end_row - u32::from(text.ends_with('\n') && node.end_row > node.row);
        let goes_on = self.to_do.is_some_and(|row| row + 1 == node.row);
        if goes_on || is_to_do(text) {
            self.to_do = Some(end);
        } else if !(language == Language::Rust && is_documentation(text)) {
            self.row_ranges.push((node.row, end));
        }
    }

    /// First and last row of each.
    pub fn row_ranges(&self) -> &[(u32, u32)] {
        &self.row_ranges
    }
}

fn is_to_do(text: &str) -> bool {
    let words = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    TO_DO_MARKS.iter().any(|mark| words.strip_prefix(mark).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
}

/// Rust: `///`, `//!`, `/**`, `/*!`; more slashes or stars are an ordinary comment.
fn is_documentation(text: &str) -> bool {
    let is = |mark: &str, plain: &str| text.starts_with(mark) && !text.starts_with(plain);
    is("///", "////") || text.starts_with("//!") || (is("/**", "/***") && text != "/**/") || text.starts_with("/*!")
}
