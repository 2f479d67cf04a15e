//! Finds the values in a column of a table whose head is the name of a secret: CSV, TSV and Markdown.

use std::ops::Range;

use super::line_end;

/// Separators of cells, the one that tells most first.
const SEPARATORS: [u8; 4] = [b'\t', b'|', b';', b','];
/// Most rows below a head that are read.
const MAX_ROWS: usize = 1_000;
/// Longest line of a table, in bytes.
const MAX_ROW_BYTES: usize = 2 << 10;

/// Column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableColumn {
    separator: u8,
    index: usize,
    /// Number of cells of the head.
    width: usize,
    /// Position of the first row.
    rows: usize,
}

impl TableColumn {
    /// Returns the column that a name in the line from `start` is the head of; `None` if it is no cell of a table.
    pub fn find(text: &str, start: usize, name: &Range<usize>) -> Option<Self> {
        let end = line_end(text, name.end);
        let line = text.get(start..end).filter(|line| line.len() < MAX_ROW_BYTES)?;
        let separator = *SEPARATORS.iter().find(|separator| line.as_bytes().contains(separator))?;
        let cells = split_cells(text, start..end, separator);
        let index = cells.iter().position(|cell| cell == name)?;
        // A head has words, and no values.
        let is_head = cells.iter().all(|cell| {
            let word = text.get(cell.clone()).unwrap_or_default();
            word.len() < 40 && !word.contains(['=', ':', '(', ')', '{', '}', '<', '>'])
        });
        (cells.len() > 1 && is_head).then_some(Self { separator, index, width: cells.len(), rows: end + 1 })
    }

    /// Returns the cells below the head, and the end of the table.
    pub fn read_cells(self, text: &str) -> (Vec<Range<usize>>, usize) {
        let (mut cells, mut at) = (Vec::new(), self.rows);
        for _ in 0..MAX_ROWS {
            let end = line_end(text, at);
            let is_row = text.get(at..end).is_some_and(|line| line.len() < MAX_ROW_BYTES && !line.trim().is_empty());
            if !is_row {
                break;
            }
            let row = split_cells(text, at..end, self.separator);
            if row.len() != self.width {
                break;
            }
            cells.extend(row.get(self.index).cloned());
            at = end + 1;
        }
        (cells, at)
    }
}

/// Splits a line into cells without the blanks and quotes around them. A cell in double quotes may hold separators.
fn split_cells(text: &str, line: Range<usize>, separator: u8) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut cells, mut start, mut is_quoted) = (Vec::new(), line.start, false);
    for at in line.clone() {
        match bytes.get(at) {
            Some(b'"') => is_quoted = !is_quoted,
            Some(byte) if *byte == separator && !is_quoted => {
                cells.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    cells.push(start..line.end);
    // Rows of Markdown begin and end with the separator.
    let is_empty = |cell: &Range<usize>| text.get(cell.clone()).is_none_or(|cell| cell.trim().is_empty());
    if separator == b'|' {
        if cells.first().is_some_and(is_empty) {
            cells.remove(0);
        }
        if cells.last().is_some_and(is_empty) {
            cells.pop();
        }
    }
    cells.into_iter().map(|cell| trim_cell(text, cell)).collect()
}

fn trim_cell(text: &str, cell: Range<usize>) -> Range<usize> {
    let part = text.get(cell.clone()).unwrap_or_default();
    let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*');
    let start = cell.start + (part.len() - part.trim_start_matches(is_around).len());
    start..start + part.trim_matches(is_around).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(text: &str, name: &str) -> Option<Vec<String>> {
        let at = text.find(name).expect("the name");
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let column = TableColumn::find(text, start, &(at..at + name.len()))?;
        Some(column.read_cells(text).0.into_iter().map(|cell| text[cell].to_owned()).collect())
    }

    #[test]
    fn the_cells_below_a_head_are_read_until_the_table_ends() {
        for (text, expected) in [
            ("user,password\nada,x1\nbob,\"y,2\"\n\nc,d\n", Some(vec!["x1", "y,2"])),
            ("user\tpassword\nada\tx1\n", Some(vec!["x1"])),
            ("| user | password |\n|---|---|\n| ada | `x1` |\nText.\n", Some(vec!["---", "x1"])),
            ("user;password;note\r\na;x1;n\r\nb;y2\r\n", Some(vec!["x1"])),
            ("password\nx1\n", None),
            ("the password, it is said, is short\nx\n", None),
            ("user = u, password\n", None),
            ("user,password", Some(vec![])),
        ] {
            let found = column(text, "password");
            assert_eq!(found, expected.map(|cells| cells.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }
}
