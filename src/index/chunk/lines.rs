//! Table of the rows of a text. Rows are lines as in git, counted from 0.

use crate::domain::LineRange;

/// Range of rows, 0-based, both ends inclusive.
pub type RowRange = (u32, u32);

/// Text with the start offsets of its rows.
pub struct RowTable<'a> {
    text: &'a str,
    /// Start offset of each row, followed by the end of the text.
    starts: Vec<u32>,
}

impl<'a> RowTable<'a> {
    /// Builds the table. `text` must be shorter than 4 GiB.
    pub fn new(text: &'a str) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 32 + 2);
        starts.push(0);
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1));
        if starts.last() != Some(&(text.len() as u32)) {
            starts.push(text.len() as u32);
        }
        Self { text, starts }
    }

    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Returns the text of the rows, including line ends.
    pub fn text(&self, (first, last): RowRange) -> &'a str {
        let at = |row: u32| self.starts.get(row as usize).map_or(self.text.len(), |at| *at as usize);
        self.text.get(at(first)..at(last.saturating_add(1))).unwrap_or_default()
    }

    pub fn line(&self, row: u32) -> &'a str {
        self.text((row, row))
    }

    /// Returns true if the rows contain only white space and closing tokens such as `}`, `end` and `#endif`.
    pub fn is_trivial(&self, rows: RowRange) -> bool {
        self.text(rows).split_inclusive('\n').all(|line| {
            let line = line.trim_ascii();
            let is_sign = line == "end" || line.bytes().all(|byte| b"{}()[];,".contains(&byte));
            line.len() <= 8 && is_sign || is_condition_end(line)
        })
    }

    pub fn is_blank(&self, row: u32) -> bool {
        self.line(row).trim_ascii().is_empty()
    }
}

/// Returns true for lines such as `#else` and `#endif  // X`.
fn is_condition_end(line: &str) -> bool {
    let Some(word) = line.strip_prefix('#').map(str::trim_ascii_start) else { return false };
    let rest = word.strip_prefix("endif").or_else(|| word.strip_prefix("else"));
    rest.map(str::trim_ascii_start)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("/*") || rest.starts_with("//"))
}

/// Converts 0-based rows to 1-based lines.
pub fn to_line_range((first, last): RowRange) -> LineRange {
    LineRange::new(first + 1, last + 1)
}
