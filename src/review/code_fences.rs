//! Finds fenced code blocks in Markdown, as CommonMark defines them, and the suggestions among them.
//!
//! A suggestion is a block whose info string has the word `suggestion`: its code replaces the lines that the text is
//! about. GitHub and GitLab show such blocks with a button that applies them.

use std::ops::Range;

/// Minimum number of backticks or tildes of a fence.
const MIN_FENCE_CHARS: usize = 3;

/// Info word of a block whose code replaces lines.
const SUGGESTION_WORD: &str = "suggestion";

/// A fenced code block of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FencedBlock<'t> {
    /// The text behind the opening fence.
    pub info: &'t str,
    /// The lines inside, each with a line feed, without the indentation of the fence.
    pub code: String,
    /// Byte range in the text, with both fences and the last line end.
    pub span: Range<usize>,
    /// False if the text ends before the closing fence.
    pub is_closed: bool,
}

/// A suggestion in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FencedSuggestion {
    /// The new lines, each with a line feed; empty to remove the lines.
    pub code: String,
    /// Number of lines above and below the commented lines that are replaced, too (GitLab's `suggestion:-1+2`).
    pub around: (u32, u32),
    /// The text without the block.
    pub other_text: String,
}

/// The opening fence of a block.
#[derive(Clone, Copy)]
struct OpeningFence<'t> {
    mark: char,
    length: usize,
    /// Columns before the fence; as many are removed from each line of code.
    indent: usize,
    info: &'t str,
}

impl<'t> OpeningFence<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let bare = line.trim_start_matches(' ');
        let mark = bare.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = bare.trim_start_matches(mark);
        let length = bare.len() - info.len();
        // A backtick in the info string makes the line inline code.
        let is_fence = length >= MIN_FENCE_CHARS && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Self { mark, length, indent: line.len() - bare.len(), info: info.trim() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// Returns the fenced code blocks of a text. Fences may be indented by any number of spaces, as in lists.
pub(super) fn find_fenced_blocks(text: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(OpeningFence<'_>, usize, String)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        let end = at + line.len();
        open = match open.take() {
            None => OpeningFence::parse(bare).map(|fence| (fence, at, String::new())),
            Some((fence, start, code)) if fence.is_closed_by(bare) => {
                blocks.push(FencedBlock { info: fence.info, code, span: start..end, is_closed: true });
                None
            }
            Some((fence, start, mut code)) => {
                let blanks = bare.bytes().take(fence.indent).take_while(|&byte| byte == b' ').count();
                code.push_str(bare.get(blanks..).unwrap_or_default());
                code.push('\n');
                Some((fence, start, code))
            }
        };
        at = end;
    }
    if let Some((fence, start, code)) = open {
        blocks.push(FencedBlock { info: fence.info, code, span: start..text.len(), is_closed: false });
    }
    blocks
}

/// Returns the suggestion of a text; `None` if there is none, if there are several, or if its end is missing.
pub(super) fn find_suggestion(text: &str) -> Option<FencedSuggestion> {
    let mut suggestions =
        find_fenced_blocks(text).into_iter().filter_map(|block| Some((parse_suggestion_info(block.info)?, block)));
    let (around, FencedBlock { code, span, is_closed, .. }) = suggestions.next()?;
    if suggestions.next().is_some() || !is_closed {
        return None;
    }
    let (before, after) = (text.get(..span.start)?.trim_end(), text.get(span.end..)?.trim());
    let gap = if before.is_empty() || after.is_empty() { "" } else { "\n" };
    Some(FencedSuggestion { code, around, other_text: format!("{before}{gap}{after}") })
}

/// Parses the info string of a suggestion: `suggestion`, `suggestion:-1+2`, `suggestion rust`, `rust suggestion`.
/// Returns the number of lines above and below that are replaced, too.
fn parse_suggestion_info(info: &str) -> Option<(u32, u32)> {
    let mut words =
        info.split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}')).filter(|word| !word.is_empty());
    words.find_map(|word| {
        let word = word.to_ascii_lowercase();
        let Some((name, offsets)) = word.split_once(':') else { return (word == SUGGESTION_WORD).then_some((0, 0)) };
        if name != SUGGESTION_WORD {
            return None;
        }
        let (above, below) = offsets.strip_prefix('-').and_then(|offsets| offsets.split_once('+')).unwrap_or_default();
        Some((above.parse().unwrap_or(0), below.parse().unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::alone("```suggestion\nx = 1\n```", Some(("x = 1\n", (0, 0), "")))]
    #[case::between_words("Do this:\n\n```suggestion\nx = 1\ny = 2\n```\n\nIt is shorter.", Some(("x = 1\ny = 2\n", (0, 0), "Do this:\nIt is shorter.")))]
    #[case::a_language_after("```suggestion rust\nx\n```", Some(("x\n", (0, 0), "")))]
    #[case::a_language_before("```rust suggestion\nx\n```", Some(("x\n", (0, 0), "")))]
    #[case::a_language_with_comma("```rust,suggestion\nx\n```", Some(("x\n", (0, 0), "")))]
    #[case::capitals("``` Suggestion\nx\n```", Some(("x\n", (0, 0), "")))]
    #[case::of_gitlab("```suggestion:-1+2\nx\n```", Some(("x\n", (1, 2), "")))]
    #[case::of_gitlab_for_one_line("```suggestion:-0+0\nx\n```", Some(("x\n", (0, 0), "")))]
    #[case::tildes("~~~suggestion\nx\n~~~", Some(("x\n", (0, 0), "")))]
    #[case::carriage_returns("Do:\r\n```suggestion\r\nx\r\n\r\ny\r\n```\r\nDone.", Some(("x\n\ny\n", (0, 0), "Do:\nDone.")))]
    #[case::more_backticks("````suggestion\n```rust\nx\n```\n````\n", Some(("```rust\nx\n```\n", (0, 0), "")))]
    #[case::a_longer_closing_fence("```suggestion\nx\n`````", Some(("x\n", (0, 0), "")))]
    #[case::a_shorter_fence_closes_nothing("````suggestion\nx\n```", None)]
    #[case::in_a_list("1. Do:\n   ```suggestion\n   if a {\n       b\n   ```", Some(("if a {\n    b\n", (0, 0), "1. Do:")))]
    #[case::less_indented_than_its_fence("  ```suggestion\n x\n  ```", Some(("x\n", (0, 0), "")))]
    #[case::tabs_stay("```suggestion\n\tx\n```", Some(("\tx\n", (0, 0), "")))]
    #[case::removes("Drop it.\n```suggestion\n```", Some(("", (0, 0), "Drop it.")))]
    #[case::a_blank_line("```suggestion\n\n```", Some(("\n", (0, 0), "")))]
    #[case::another_block_beside_it("```rust\nold\n```\nnew:\n```suggestion\nx\n```", Some(("x\n", (0, 0), "```rust\nold\n```\nnew:")))]
    #[case::only_code("```rust\nx\n```", None)]
    #[case::within_another_block("````markdown\n```suggestion\nx\n```\n````", None)]
    #[case::two("```suggestion\nx\n```\nor\n```suggestion\ny\n```", None)]
    #[case::not_closed("```suggestion\nx\n", None)]
    #[case::inline("Use ```suggestion``` here", None)]
    #[case::a_word_that_begins_alike("```suggestions\nx\n```", None)]
    #[case::nothing("", None)]
    fn suggestions(#[case] text: &str, #[case] expected: Option<(&str, (u32, u32), &str)>) {
        let found = find_suggestion(text);
        let expected = expected.map(|(code, around, other_text)| FencedSuggestion {
            code: code.to_owned(),
            around,
            other_text: other_text.to_owned(),
        });
        assert_eq!(found, expected);
    }
}
