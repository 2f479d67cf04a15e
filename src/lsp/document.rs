//! Text of a document with its lines, positions in both encodings of the protocol, and changes of open documents.

use gen_lsp_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent};

use crate::domain::LineRange;

/// Unit of columns, agreed with the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Bytes of UTF-8.
    Utf8,
    /// Units of UTF-16: two for an emoji. The default of the protocol.
    #[default]
    Utf16,
}

impl ColumnUnit {
    /// Returns the protocol's name.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    /// Returns the number of columns of a text.
    fn width(self, text: &str) -> u32 {
        let units = match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
        };
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Returns the byte at a column of a line. A column inside of a character stands for its begin, one behind the line for
    /// its end.
    fn byte_at(self, line: &str, column: u32) -> usize {
        let mut passed = 0;
        for (byte, c) in line.char_indices() {
            let width = match self {
                Self::Utf8 => c.len_utf8(),
                Self::Utf16 => c.len_utf16(),
            };
            passed += width;
            if passed > column as usize {
                return byte;
            }
        }
        line.len()
    }
}

/// Text with the starts of its lines. Lines end with `\n` or `\r\n`, as in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    text: String,
    /// Byte at which each line starts; the last one may be empty.
    starts: Vec<usize>,
}

impl DocumentText {
    /// Splits a text into lines.
    pub fn new(text: String) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        Self { text, starts }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of lines (at least 1), without an empty one after the last line end.
    pub fn line_count(&self) -> u32 {
        let lines = self.starts.len() - usize::from(self.starts.len() > 1 && self.text.ends_with('\n'));
        u32::try_from(lines).unwrap_or(u32::MAX)
    }

    /// Returns a line (0-based) without its end; empty behind the text.
    pub fn line(&self, index: u32) -> &str {
        let Some(&start) = self.starts.get(index as usize) else { return "" };
        let end = self.starts.get(index as usize + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end).unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Returns the lines that are inside of the text, at least one.
    pub fn clamp(&self, lines: LineRange) -> LineRange {
        let last = self.line_count();
        let start = lines.start.clamp(1, last);
        LineRange::new(start, lines.end.clamp(start, last))
    }

    /// Returns the byte at which a line (1-based) starts; the end of the text behind it.
    pub fn line_start(&self, line: u32) -> usize {
        self.starts.get((line as usize).saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// Returns the position of a byte, which is at the boundary of a character.
    pub fn position_at(&self, byte: usize, unit: ColumnUnit) -> Position {
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = self.text.get(start..byte).unwrap_or_default();
        Position::new(u32::try_from(line).unwrap_or(u32::MAX), unit.width(before))
    }

    /// Returns the range of lines (1-based, inclusive) from their first to their last visible character.
    pub fn range_of(&self, lines: LineRange, unit: ColumnUnit) -> Range {
        let lines = self.clamp(lines);
        let (first, last) = (self.line(lines.start - 1), self.line(lines.end - 1));
        let indent = first.len() - first.trim_start().len();
        // A blank line has no first visible character.
        let start = if first.trim().is_empty() { 0 } else { unit.width(&first[..indent]) };
        Range::new(Position::new(lines.start - 1, start), Position::new(lines.end - 1, unit.width(last.trim_end())))
    }

    fn byte_at(&self, position: Position, unit: ColumnUnit) -> usize {
        match self.starts.get(position.line as usize) {
            Some(start) => start + unit.byte_at(self.line(position.line), position.character),
            None => self.text.len(),
        }
    }

    /// Applies a change of the client. Positions outside of the text stand for the nearest one inside.
    pub fn apply(&mut self, change: TextDocumentContentChangeEvent, unit: ColumnUnit) {
        let text = match change {
            TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                let start = self.byte_at(change.range.start, unit);
                let end = self.byte_at(change.range.end, unit).max(start);
                let mut text = std::mem::take(&mut self.text);
                text.replace_range(start..end, &change.text);
                text
            }
            TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => change.text,
        };
        *self = Self::new(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(text: &str, unit: ColumnUnit, change: serde_json::Value) -> String {
        let mut document = DocumentText::new(text.to_owned());
        document.apply(serde_json::from_value(change).expect("a change"), unit);
        assert_eq!(document, DocumentText::new(document.text.clone()), "the lines fit the text");
        document.text
    }

    #[test]
    fn lines_are_those_of_the_store() {
        for (text, lines) in [
            ("", vec![""]),
            ("a", vec!["a"]),
            ("a\n", vec!["a"]),
            ("a\n\n", vec!["a", ""]),
            ("a\r\nb\rc\n", vec!["a", "b\rc"]),
        ] {
            let document = DocumentText::new(text.to_owned());
            let found: Vec<&str> = (0..document.line_count()).map(|line| document.line(line)).collect();
            assert_eq!(found, lines, "{text:?}");
        }
    }

    #[test]
    fn columns_count_units_of_the_encoding() {
        let document = DocumentText::new("  x = \"😀ü\"  \n\n    \nend".to_owned());
        for (lines, unit, expected) in [
            ((1, 1), ColumnUnit::Utf16, ((0, 2), (0, 11))),
            ((1, 1), ColumnUnit::Utf8, ((0, 2), (0, 14))),
            ((1, 4), ColumnUnit::Utf16, ((0, 2), (3, 3))),
            ((2, 2), ColumnUnit::Utf16, ((1, 0), (1, 0))),
            ((3, 3), ColumnUnit::Utf16, ((2, 0), (2, 0))),
            ((4, 900), ColumnUnit::Utf8, ((3, 0), (3, 3))),
            ((800, 900), ColumnUnit::Utf8, ((3, 0), (3, 3))),
            ((0, 0), ColumnUnit::Utf8, ((0, 2), (0, 14))),
        ] {
            let range = document.range_of(LineRange { start: lines.0, end: lines.1 }, unit);
            let found = ((range.start.line, range.start.character), (range.end.line, range.end.character));
            assert_eq!(found, expected, "{lines:?} {unit:?}");
        }
        assert_eq!(document.position_at(7, ColumnUnit::Utf16), Position::new(0, 7), "before the emoji");
        assert_eq!(document.position_at(11, ColumnUnit::Utf16), Position::new(0, 9), "after the emoji");
    }

    #[test]
    fn changes_are_applied_where_the_client_means() {
        let range = |from: (u32, u32), to: (u32, u32), text: &str| {
            json!({
                "range": {
                    "start": { "line": from.0, "character": from.1 }, "end": { "line": to.0, "character": to.1 },
                },
                "text": text,
            })
        };
        for (text, unit, change, expected) in [
            ("😀ab\n", ColumnUnit::Utf16, range((0, 2), (0, 3), "x"), "😀xb\n"),
            ("😀ab\n", ColumnUnit::Utf8, range((0, 4), (0, 5), "x"), "😀xb\n"),
            ("a\r\nb\r\n", ColumnUnit::Utf16, range((0, 9), (1, 0), ""), "ab\r\n"),
            ("a\nb\n", ColumnUnit::Utf16, range((1, 0), (2, 0), ""), "a\n"),
            ("a\n", ColumnUnit::Utf16, range((7, 3), (9, 9), "b"), "a\nb"),
            ("ab\n", ColumnUnit::Utf16, range((0, 2), (0, 1), "x"), "abx\n"),
            // Inside of a character, which a faulty client may mean.
            ("😀b", ColumnUnit::Utf16, range((0, 1), (0, 2), "x"), "xb"),
            ("old", ColumnUnit::Utf16, json!({ "text": "new" }), "new"),
        ] {
            assert_eq!(changed(text, unit, change.clone()), expected, "{text:?} {change}");
        }
    }
}
