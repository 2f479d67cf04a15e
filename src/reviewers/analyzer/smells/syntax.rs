//! Shared syntax helpers of the smells: ids of fields, the name before a call's arguments, words in names.
//!
//! Parsing helpers borrow from the file, so that nothing is allocated per node.

use crate::domain::LineRange;
pub(super) use crate::domain::text::has_word;
use crate::syntax::language::Language;
use crate::syntax::source::{MAX_SEARCHED_BYTES, Node, NodeIndex, ParsedFile, field_id};

/// Ids of the fields that the smells read; 0 if a language has no such field.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmellFieldIds {
    pub name: u16,
    pub left: u16,
    pub right: u16,
    pub key: u16,
    pub value: u16,
    pub body: u16,
    pub condition: u16,
    pub consequence: u16,
    pub function: u16,
    pub arguments: u16,
    pub declarator: u16,
    pub pattern: u16,
    pub operator: u16,
    pub property: u16,
    pub field: u16,
    pub of_type: u16,
}

impl SmellFieldIds {
    pub fn new(language: Language) -> Self {
        let id = |name| field_id(language, name);
        Self {
            name: id("name"),
            left: id("left"),
            right: id("right"),
            key: id("key"),
            value: id("value"),
            body: id("body"),
            condition: id("condition"),
            consequence: id("consequence"),
            function: id("function"),
            arguments: id("arguments"),
            declarator: id("declarator"),
            pattern: id("pattern"),
            operator: id("operator"),
            property: id("property"),
            field: id("field"),
            of_type: id("type"),
        }
    }
}

pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Returns the last identifier of a text: `remove_file` for `std::fs::remove_file`, `get` for `map.get::<u8>` and for
/// `a?.get`.
pub(super) fn last_identifier(text: &[u8]) -> &str {
    let text = &text[text.len().saturating_sub(MAX_SEARCHED_BYTES)..];
    let mut end = text.len();
    loop {
        while end > 0 && !is_word_byte(text[end - 1]) && text[end - 1] != b'>' {
            end -= 1;
        }
        if end == 0 || text[end - 1] != b'>' || (end > 1 && text[end - 2] == b'-') {
            break;
        }
        let mut depth = 0usize;
        while end > 0 {
            end -= 1;
            match text[end] {
                b'>' => depth += 1,
                b'<' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    let start = text[..end].iter().rposition(|&byte| !is_word_byte(byte)).map_or(0, |at| at + 1);
    std::str::from_utf8(&text[start..end]).unwrap_or("")
}

/// Returns whether a name is in upper case (`MAX_SIZE`, `X2`): at least two characters, none of them a lower-case
/// letter.
pub(super) fn is_upper_case(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    name.len() > 1 && name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}

/// Returns a text on one line with single spaces, cut after `max` characters.
pub(super) fn compact(text: &str, max: usize) -> String {
    let (mut short, mut count, mut is_apart) = (String::new(), 0, false);
    for c in text.chars() {
        if c.is_whitespace() {
            is_apart = count > 0;
            continue;
        }
        let parts = [is_apart.then_some(' '), Some(c)];
        is_apart = false;
        for part in parts.into_iter().flatten() {
            if count == max {
                short.push('…');
                return short;
            }
            short.push(part);
            count += 1;
        }
    }
    short
}

/// Returns a text with its first letter in upper case.
pub(super) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl<'a> ParsedFile<'a> {
    /// Returns the lines of a node.
    pub(super) fn node_lines(&self, index: NodeIndex) -> LineRange {
        let node = &self.nodes[index];
        LineRange::new(node.row + 1, node.end_row + 1)
    }

    pub(super) fn parent(&self, index: NodeIndex) -> NodeIndex {
        self.nodes[index].parent as usize
    }

    /// Returns the call to which an argument list belongs. In Swift, a node without text of its own stands between them.
    pub(super) fn called_node(&self, arguments: NodeIndex) -> NodeIndex {
        let call = self.parent(arguments);
        let is_suffix = self.nodes[call].start == self.nodes[arguments].start;
        if is_suffix { self.parent(call) } else { call }
    }

    /// Returns the text from the start of `outer` to the start of `inner`.
    pub(super) fn text_up_to(&self, outer: &Node, inner: &Node) -> &'a [u8] {
        self.text.get(outer.start as usize..inner.start as usize).unwrap_or(b"")
    }

    /// Returns the line of a node's first byte, without its line end. A very long line is cut to 1,000 bytes before and
    /// after that byte.
    pub(super) fn line_text(&self, node: &Node) -> &'a [u8] {
        const MAX_BYTES_AROUND: usize = 1_000;
        let at = (node.start as usize).min(self.text.len());
        let (near, far) = (at.saturating_sub(MAX_BYTES_AROUND), (at + MAX_BYTES_AROUND).min(self.text.len()));
        let start = self.text[near..at].iter().rposition(|&byte| byte == b'\n').map_or(near, |line| near + line + 1);
        let end = self.text[at..far].iter().position(|&byte| byte == b'\n').map_or(far, |end| at + end);
        &self.text[start..end]
    }
}

/// Returns whether a comment is on one of the rows `first..=last`. `comments` holds first and last rows in document
/// order.
pub(super) fn has_comment_on_rows(comments: &[(u32, u32)], first: u32, last: u32) -> bool {
    let from = comments.partition_point(|&(_, end)| end < first);
    comments.get(from).is_some_and(|&(start, _)| start <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (text, name) in [
            ("std::fs::remove_file", "remove_file"),
            ("map.get::<Vec<u8>>", "get"),
            ("a?.b ", "b"),
            ("p->next", "next"),
            ("", ""),
            ("(", ""),
            ("new Foo<A>", "Foo"),
            (">>>", ""),
        ] {
            assert_eq!(last_identifier(text.as_bytes()), name, "{text}");
        }
        for (name, word, expected) in [
            ("maxRetryCount", "retry", true),
            ("MAX_RETRY_COUNT", "count", true),
            ("HTTPStatus", "status", true),
            ("timeouts", "timeout", true),
            ("estate", "state", false),
            ("set_timeout_ms", "ms", true),
            ("__x__", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(has_word(name, &[word]), expected, "{name} {word}");
        }
    }

    #[test]
    fn comments_are_found_by_rows() {
        let comments = [(1, 1), (4, 6)];
        for (first, last, expected) in [(0, 0, false), (0, 1, true), (2, 3, false), (5, 5, true), (7, 9, false)] {
            assert_eq!(has_comment_on_rows(&comments, first, last), expected, "{first}-{last}");
        }
    }
}
