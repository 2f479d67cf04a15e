//! Converts a change of characters, as tools propose it, into a change of whole lines.

use crate::domain::LineRange;

/// Change that a tool proposes: the text between two places is replaced. Lines and columns are 1-based; the end is
/// exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFix {
    /// Description in words; may be empty.
    pub description: String,
    /// First line and column.
    pub start: (u32, u32),
    /// Last line, and the column behind the last replaced character; `None` means the end of the line.
    pub end: (u32, Option<u32>),
    /// New text.
    pub text: String,
}

impl ToolFix {
    /// Returns the lines that change, and their new text. `None` if the place is not in the text, or in a line with other
    /// characters than ASCII, in which tools count columns in different ways.
    pub fn to_lines(&self, text: &str) -> Option<(LineRange, String)> {
        let lines: Vec<&str> = text.lines().collect();
        let line = |number: u32| lines.get(number.checked_sub(1)? as usize).copied();
        let (first, (mut last, mut end)) = (line(self.start.0)?, self.end);
        // The beginning of the next line means the end of this one, with its line end.
        if end == Some(1) && last > self.start.0 && self.text.ends_with('\n') {
            (last, end) = (last - 1, None);
        }
        let last_line = line(last)?;
        if !first.is_ascii() || !last_line.is_ascii() || last < self.start.0 {
            return None;
        }
        let before = first.get(..(self.start.1.max(1) - 1) as usize)?;
        let after = match end {
            Some(column) => last_line.get((column.max(1) - 1) as usize..)?,
            None => "",
        };
        let middle = if after.is_empty() { self.text.trim_end_matches('\n') } else { &self.text };
        Some((LineRange::new(self.start.0, last), format!("{before}{middle}{after}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_characters_becomes_one_of_lines() {
        let text = "import os\nx = y == None\nend\nü = 1\n";
        for (start, end, new, expected) in [
            ((2, 7), (2, Some(9)), "is", Some((2, 2, "x = y is None"))),
            ((1, 1), (2, Some(1)), "", Some((1, 2, "x = y == None"))),
            ((1, 1), (2, Some(1)), "import re\n", Some((1, 1, "import re"))),
            ((3, 1), (3, None), "stop", Some((3, 3, "stop"))),
            ((1, 1), (9, None), "", None),
            ((0, 1), (1, None), "", None),
            ((2, 99), (2, None), "", None),
            ((3, 1), (2, None), "", None),
            ((4, 1), (4, None), "u = 1", None),
        ] {
            let fix = ToolFix { description: String::new(), start, end, text: new.to_owned() };
            let expected = expected.map(|(first, last, new)| (LineRange::new(first, last), new.to_owned()));
            assert_eq!(fix.to_lines(text), expected, "{fix:?}");
        }
    }
}
