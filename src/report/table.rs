//! Aligns text in columns by terminal width.

use unicode_width::UnicodeWidthStr;

use super::text_style::{TextOptions, TextStyle};
use crate::domain::text::sanitize_line;

/// Widest cell, in columns, that counts for alignment. A wider cell (a long path) does not move the cells of
/// other rows.
const MAX_ALIGNED_COLUMNS: usize = 48;

/// Rows of cells. A column is as wide as its widest cell up to [`MAX_ALIGNED_COLUMNS`]; lines are cut at the
/// terminal's width.
#[derive(Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<(TextStyle, String)>>,
}

impl TextTable {
    /// Adds a row. Control characters and line ends in cells are replaced, so cells may hold untrusted text.
    pub fn push_row<'a>(&mut self, cells: impl IntoIterator<Item = (TextStyle, &'a str)>) {
        self.rows.push(cells.into_iter().map(|(paint, text)| (paint, sanitize_line(text).into_owned())).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the rows as lines with two spaces between columns and no trailing spaces.
    pub fn render(&self, look: &TextOptions) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (width, (_, text)) in widths.iter_mut().zip(row) {
                *width = Some(text.width()).filter(|wide| *wide <= MAX_ALIGNED_COLUMNS).unwrap_or(0).max(*width);
            }
        }
        let mut lines = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let mut used = 0;
            for (column, (paint, text)) in row.iter().enumerate() {
                let room = look.width.map_or(usize::MAX, |width| width.saturating_sub(used));
                let text = look.truncate(text, room);
                line.push_str(&look.paint(*paint, &text));
                used += text.width();
                if row[column + 1..].iter().any(|(_, rest)| !rest.is_empty()) {
                    let gap = widths[column].saturating_sub(text.width()) + 2;
                    let gap = gap.min(look.width.map_or(usize::MAX, |width| width.saturating_sub(used)));
                    line.push_str(&" ".repeat(gap));
                    used += gap;
                }
            }
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Time;

    #[test]
    fn columns_line_up_whatever_stands_in_them() {
        let mut table = TextTable::default();
        table.push_row([(TextStyle::Plain, "a"), (TextStyle::Plain, "漢字"), (TextStyle::Plain, "end")]);
        table.push_row([(TextStyle::Plain, "long"), (TextStyle::Plain, "b"), (TextStyle::Plain, "x\x1b[2J\ny")]);
        table.push_row([(TextStyle::Plain, "only"), (TextStyle::Plain, ""), (TextStyle::Plain, "")]);
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        assert_eq!(table.render(&look), "a     漢字  end\nlong  b     x\u{fffd}[2J y\nonly\n");
        let mut wide = TextTable::default();
        wide.push_row([(TextStyle::Plain, "a"), (TextStyle::Plain, "b")]);
        wide.push_row([(TextStyle::Plain, &*"x".repeat(49)), (TextStyle::Plain, "c")]);
        assert_eq!(wide.render(&look), format!("a  b\n{}  c\n", "x".repeat(49)));
        let narrow = TextOptions { width: Some(9), ..look };
        assert_eq!(table.render(&narrow), "a     漢…\nlong  b\nonly\n");
    }
}
