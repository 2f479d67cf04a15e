//! Represents a text for anchors: each line as a hash of its words and a weight.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::domain::LineRange;

/// Lines of a text, 1-based. Two lines are equal if they differ in white space only, as in
/// [`crate::domain::text::normalize_code`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HashedLines {
    lines: Vec<HashedLine>,
}

/// One line. Both values are 0 for a blank line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HashedLine {
    hash: u64,
    /// Number of letters and digits. A brace weighs nothing.
    weight: u32,
}

impl HashedLines {
    /// Splits a text into lines and hashes each line.
    pub fn from_text(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        Self { lines: text.split(|&byte| byte == b'\n').map(HashedLine::from_bytes).collect() }
    }

    /// Returns the number of lines.
    pub fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Returns the hash of a line (1-based). 0 for a blank line and outside of the text.
    pub(super) fn hash(&self, line: u32) -> u64 {
        self.line(line).hash
    }

    pub(super) fn weight(&self, line: u32) -> u32 {
        self.line(line).weight
    }

    fn line(&self, line: u32) -> HashedLine {
        (line as usize).checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or_default()
    }

    /// Returns the numbers of the lines in a range that are not blank.
    pub(super) fn nonblank_lines(&self, range: LineRange) -> impl DoubleEndedIterator<Item = u32> + '_ {
        (range.start.max(1)..=range.end.min(self.len())).filter(|&line| self.hash(line) != 0)
    }

    /// Returns the number of letters and digits in a range.
    pub(super) fn range_weight(&self, range: LineRange) -> u64 {
        self.nonblank_lines(range).map(|line| u64::from(self.weight(line))).sum()
    }

    /// Returns true if two ranges hold the same code, apart from white space and blank lines.
    #[cfg(test)]
    pub fn is_same(&self, range: LineRange, other: &Self, there: LineRange) -> bool {
        let here = self.nonblank_lines(range).map(|line| self.hash(line));
        here.eq(other.nonblank_lines(there).map(|line| other.hash(line)))
    }
}

impl HashedLine {
    fn from_bytes(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(line);
        let mut hasher = DefaultHasher::new();
        let (mut words, mut weight) = (0, 0_u32);
        for word in text.split_whitespace() {
            word.hash(&mut hasher);
            words += 1;
            weight = weight.saturating_add(word.chars().filter(|c| c.is_alphanumeric()).count() as u32);
        }
        match words {
            0 => Self::default(),
            // The hash 0 is reserved for blank lines.
            _ => Self { hash: hasher.finish().max(1), weight },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_git_does_and_compared_as_code() {
        for (text, lines) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n\n\n", 3), ("a\r\nb", 2)] {
            assert_eq!(HashedLines::from_text(text.as_bytes()).len(), lines, "{text:?}");
        }
        let (one, other) =
            (HashedLines::from_text(b"if  x {\n\n\ty();\r\n}\n"), HashedLines::from_text(b"  if x {\n  y();\n\n}"));
        let all = LineRange::new(1, 9);
        assert!(one.is_same(all, &other, all));
        assert!(!one.is_same(LineRange::new(1, 3), &other, all));
        assert!(
            !HashedLines::from_text(b"ab c").is_same(all, &HashedLines::from_text(b"a bc"), all),
            "words stay apart"
        );
        assert_eq!((one.weight(1), one.weight(2), one.weight(4), one.weight(99)), (3, 0, 0, 0));
        assert_eq!(HashedLines::from_text(b"\xff\xfe = 1").weight(1), 1, "what is not text says little");
    }
}
