//! Aligned columns by the width that characters have on a terminal.

use unicode_width::UnicodeWidthStr;

use super::look::{Look, Paint};
use crate::domain::text::one_line;

/// A cell wider than this, a long path for instance, stands out instead of moving the cells of all other rows.
const WIDEST: usize = 48;

/// Rows of cells; a column is as wide as its widest cell up to [`WIDEST`], and the last one takes what is left of the
/// terminal.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<(Paint, String)>>,
}

impl Table {
    /// Cells are made harmless here: they may come from anywhere.
    pub fn row<'a>(&mut self, cells: impl IntoIterator<Item = (Paint, &'a str)>) {
        self.rows.push(cells.into_iter().map(|(paint, text)| (paint, one_line(text).into_owned())).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows as lines, two spaces between columns, none at the end of a line.
    pub fn render(&self, look: &Look) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (width, (_, text)) in widths.iter_mut().zip(row) {
                *width = Some(text.width()).filter(|wide| *wide <= WIDEST).unwrap_or(0).max(*width);
            }
        }
        let mut lines = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let mut used = 0;
            for (column, (paint, text)) in row.iter().enumerate() {
                let room = look.width.map_or(usize::MAX, |width| width.saturating_sub(used));
                let text = look.fit(text, room);
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
        let mut table = Table::default();
        table.row([(Paint::Plain, "a"), (Paint::Plain, "漢字"), (Paint::Plain, "end")]);
        table.row([(Paint::Plain, "long"), (Paint::Plain, "b"), (Paint::Plain, "x\x1b[2J\ny")]);
        table.row([(Paint::Plain, "only"), (Paint::Plain, ""), (Paint::Plain, "")]);
        let look = Look { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        assert_eq!(table.render(&look), "a     漢字  end\nlong  b     x\u{fffd}[2J y\nonly\n");
        let mut wide = Table::default();
        wide.row([(Paint::Plain, "a"), (Paint::Plain, "b")]);
        wide.row([(Paint::Plain, &*"x".repeat(49)), (Paint::Plain, "c")]);
        assert_eq!(wide.render(&look), format!("a  b\n{}  c\n", "x".repeat(49)));
        let narrow = Look { width: Some(9), ..look };
        assert_eq!(table.render(&narrow), "a     漢…\nlong  b\nonly\n");
    }
}
