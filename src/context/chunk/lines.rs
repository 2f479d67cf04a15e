//! The lines of a text, as git counts them; rows count from 0.

use crate::domain::LineRange;

/// Rows, both ends included.
pub type RowRange = (u32, u32);

pub struct RowTable<'a> {
    text: &'a str,
    /// Where each line begins; and the end of the text.
    starts: Vec<u32>,
}

impl<'a> RowTable<'a> {
    /// `text` is shorter than 4 GiB.
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

    /// The text of some rows, line ends included.
    pub fn text(&self, (first, last): RowRange) -> &'a str {
        let at = |row: u32| self.starts.get(row as usize).map_or(self.text.len(), |at| *at as usize);
        self.text.get(at(first)..at(last.saturating_add(1))).unwrap_or_default()
    }

    /// The first byte of a row.
    pub fn start(&self, row: u32) -> u32 {
        self.starts.get(row as usize).or(self.starts.last()).copied().unwrap_or_default()
    }

    /// One past the last byte of a row.
    pub fn end(&self, row: u32) -> u32 {
        self.starts.get(row as usize + 1).or(self.starts.last()).copied().unwrap_or_default()
    }

    pub fn line(&self, row: u32) -> &'a str {
        self.text((row, row))
    }

    /// Whether rows have nothing but white space and signs that end what is above.
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

/// `#else`, `#endif  // X`.
fn is_condition_end(line: &str) -> bool {
    let Some(word) = line.strip_prefix('#').map(str::trim_ascii_start) else { return false };
    let rest = word.strip_prefix("endif").or_else(|| word.strip_prefix("else"));
    rest.map(str::trim_ascii_start)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("/*") || rest.starts_with("//"))
}

pub fn to_line_range((first, last): RowRange) -> LineRange {
    LineRange::new(first + 1, last + 1)
}
