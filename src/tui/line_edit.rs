//! Edits one line of text with a cursor between graphemes.
//!
//! tui-input 0.15 moves and deletes by `char`, which tears an accent from its letter, and ends words at every
//! punctuation mark, so that a path is deleted piece by piece.

use unicode_segmentation::UnicodeSegmentation;

use crate::domain::text;
use crate::tui::doc::TextColumns;

/// Text and cursor; the cursor is a byte offset, always at a grapheme boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineEdit {
    text: String,
    cursor: usize,
    origin: TextOrigin,
}

/// Origin of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TextOrigin {
    #[default]
    Typed,
    /// Suggested text: typing replaces it, editing keeps it.
    Suggested,
}

impl LineEdit {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), origin: TextOrigin::Typed }
    }

    /// Creates a line with a suggested text, which the user accepts, edits or types over.
    pub fn with_suggestion(text: &str) -> Self {
        Self { origin: TextOrigin::Suggested, ..Self::new(text) }
    }

    pub fn is_suggestion(&self) -> bool {
        self.origin == TextOrigin::Suggested
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn set_text(&mut self, text: &str) {
        *self = Self::new(text);
    }

    /// Inserts typed or pasted text at the cursor; line ends and control characters are replaced.
    pub fn insert(&mut self, typed: &str) {
        if self.is_suggestion() {
            self.delete_all();
        }
        let clean = text::sanitize_line(typed);
        self.text.insert_str(self.cursor, &clean);
        self.cursor += clean.len();
    }

    /// Replaces the text from byte `start` to the cursor.
    pub fn replace(&mut self, start: usize, with: &str) {
        if start <= self.cursor && self.text.is_char_boundary(start) {
            self.text.replace_range(start..self.cursor, with);
            self.move_cursor(start + with.len());
        }
    }

    pub fn move_left(&mut self) {
        self.move_cursor(self.previous_boundary());
    }

    pub fn move_right(&mut self) {
        self.move_cursor(self.next_boundary());
    }

    pub fn move_to_start(&mut self) {
        self.move_cursor(0);
    }

    pub fn move_to_end(&mut self) {
        self.move_cursor(self.text.len());
    }

    pub fn delete_left(&mut self) {
        let start = self.previous_boundary();
        self.replace(start, "");
    }

    pub fn delete_right(&mut self) {
        self.text.replace_range(self.cursor..self.next_boundary(), "");
        self.move_cursor(self.cursor);
    }

    pub fn delete_word(&mut self) {
        let before = self.text[..self.cursor].trim_end();
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.replace(start, "");
    }

    pub fn delete_all(&mut self) {
        *self = Self::default();
    }

    /// Moves behind the byte with this offset, which must be at a grapheme boundary.
    pub fn move_to_byte(&mut self, at: usize) {
        if self.text.is_char_boundary(at) {
            self.move_cursor(at);
        }
    }

    /// Returns the columns of the text before the cursor.
    pub fn column(&self) -> usize {
        self.text[..self.cursor].width()
    }

    /// Moves to a column, or as near before it as the text allows.
    pub fn move_to_column(&mut self, column: usize) {
        let mut used = 0;
        let end = self.text.grapheme_indices(true).find(|(_, grapheme)| {
            used += grapheme.width();
            used > column
        });
        self.move_cursor(end.map_or(self.text.len(), |(at, _)| at));
    }

    fn move_cursor(&mut self, cursor: usize) {
        (self.cursor, self.origin) = (cursor, TextOrigin::Typed);
    }

    fn previous_boundary(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next_boundary(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |g| self.cursor + g.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offered_text_gives_way_to_what_is_typed_and_stays_when_it_is_edited() {
        let edited = |edit: fn(&mut LineEdit)| {
            let mut line = LineEdit::with_suggestion("30m");
            edit(&mut line);
            line.insert("2");
            line.insert("h");
            line.text().to_owned()
        };
        assert_eq!(edited(|_| ()), "2h");
        assert_eq!(edited(LineEdit::move_to_end), "30m2h");
        assert_eq!(edited(LineEdit::delete_left), "302h");
        assert_eq!(edited(LineEdit::move_to_start), "2h30m");
        assert_eq!(edited(LineEdit::delete_right), "30m2h");
    }

    #[test]
    fn editing_moves_by_what_a_reader_calls_a_character() {
        let mut line = LineEdit::new("né\u{301} 漢字");
        line.delete_left();
        line.move_left();
        line.move_left();
        line.delete_left();
        assert_eq!((line.text(), line.cursor()), ("n 漢", 1));
        line.insert("o\nw\x1b");
        assert_eq!(line.text(), "no w\u{fffd} 漢");
        line.move_to_end();
        line.delete_word();
        line.delete_word();
        assert_eq!(line.text(), "no ");
        line.move_to_start();
        line.delete_right();
        line.delete_left();
        assert_eq!((line.text(), line.cursor()), ("o ", 0));
    }
}
