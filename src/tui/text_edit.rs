//! Edits a text of several lines with a cursor between graphemes.

use super::line_edit::LineEdit;

/// Text of one line or more, and the line with the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    lines: Vec<LineEdit>,
    row: usize,
}

impl TextEdit {
    /// Creates a text with the cursor at its end.
    pub fn new(text: &str) -> Self {
        let lines: Vec<LineEdit> = text.split('\n').map(LineEdit::new).collect();
        Self { row: lines.len() - 1, lines }
    }

    /// Returns the text; lines end with `\n`, the last one does not.
    pub fn text(&self) -> String {
        self.lines.iter().map(LineEdit::text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the lines.
    pub fn lines(&self) -> &[LineEdit] {
        &self.lines
    }

    /// Returns the index of the line with the cursor.
    pub fn row(&self) -> usize {
        self.row
    }

    /// Returns the line with the cursor, to edit it.
    pub fn line_mut(&mut self) -> &mut LineEdit {
        &mut self.lines[self.row]
    }

    /// Inserts typed or pasted text at the cursor. Line ends stay; other control characters are replaced.
    pub fn insert(&mut self, typed: &str) {
        let typed = typed.replace("\r\n", "\n").replace('\r', "\n");
        for (index, part) in typed.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            self.line_mut().insert(part);
        }
    }

    /// Ends the line at the cursor.
    pub fn break_line(&mut self) {
        let line = self.line_mut();
        let rest = line.text()[line.cursor()..].to_owned();
        let before = line.text()[..line.cursor()].to_owned();
        line.set_text(&before);
        let mut next = LineEdit::new(&rest);
        next.move_to_start();
        self.row += 1;
        self.lines.insert(self.row, next);
    }

    /// Deletes the character before the cursor; at the start of a line, its break.
    pub fn delete_left(&mut self) {
        if self.line_mut().cursor() > 0 || self.row == 0 {
            return self.line_mut().delete_left();
        }
        self.row -= 1;
        self.join_next();
    }

    /// Deletes the character behind the cursor; at the end of a line, its break.
    pub fn delete_right(&mut self) {
        let line = self.line_mut();
        if line.cursor() < line.text().len() {
            return line.delete_right();
        }
        if self.row + 1 < self.lines.len() {
            self.join_next();
        }
    }

    /// Moves one character to the left, across line breaks.
    pub fn move_left(&mut self) {
        if self.line_mut().cursor() == 0 && self.row > 0 {
            self.row -= 1;
            return self.line_mut().move_to_end();
        }
        self.line_mut().move_left();
    }

    /// Moves one character to the right, across line breaks.
    pub fn move_right(&mut self) {
        let line = self.line_mut();
        if line.cursor() == line.text().len() && self.row + 1 < self.lines.len() {
            self.row += 1;
            return self.line_mut().move_to_start();
        }
        self.line_mut().move_right();
    }

    /// Moves to the line above or below, as near to the same column as its text allows.
    pub fn move_row(&mut self, down: bool) {
        let next = if down { self.row + 1 } else { self.row.wrapping_sub(1) };
        if next < self.lines.len() {
            let column = self.line_mut().column();
            self.row = next;
            self.line_mut().move_to_column(column);
        }
    }

    /// Appends the line below to the line of the cursor, which stays between them.
    fn join_next(&mut self) {
        let below = self.lines.remove(self.row + 1);
        let line = self.line_mut();
        let (before, end) = (line.text().to_owned(), line.text().len());
        *line = LineEdit::new(&format!("{before}{}", below.text()));
        line.move_to_byte(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes the text with `|` at the cursor.
    fn describe(edit: &TextEdit) -> String {
        let line = |(row, line): (usize, &LineEdit)| match row == edit.row() {
            true => format!("{}|{}", &line.text()[..line.cursor()], &line.text()[line.cursor()..]),
            false => line.text().to_owned(),
        };
        edit.lines().iter().enumerate().map(line).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn lines_are_broken_joined_and_crossed() {
        type Step = (&'static str, fn(&mut TextEdit));
        let steps: [Step; 15] = [
            ("ab|", |edit| edit.insert("ab")),
            ("ab/|", TextEdit::break_line),
            ("ab/c/dé|", |edit| edit.insert("c\r\ndé")),
            ("ab/c|/dé", |edit| edit.move_row(false)),
            ("ab|/c/dé", |edit| {
                edit.move_left();
                edit.move_left();
            }),
            ("ab|/c/dé", |edit| edit.move_row(false)),
            ("ab|c/dé", TextEdit::delete_right),
            ("a|c/dé", TextEdit::delete_left),
            ("a/|c/dé", TextEdit::break_line),
            ("a|c/dé", TextEdit::delete_left),
            ("ac/|dé", |edit| {
                edit.move_right();
                edit.move_right();
            }),
            ("ac|dé", TextEdit::delete_left),
            ("|acdé", |edit| edit.line_mut().move_to_start()),
            ("|acdé", TextEdit::delete_left),
            ("\u{fffd}|acdé", |edit| edit.insert("\x1b")),
        ];
        let mut edit = TextEdit::new("");
        for (expected, step) in steps {
            step(&mut edit);
            assert_eq!(describe(&edit), expected);
        }
        assert_eq!(TextEdit::new("a\nb").text(), "a\nb");
    }
}
