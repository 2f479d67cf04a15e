//! A text as anchors see it: each line as what makes it the same code, and how much it says.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::domain::LineRange;

/// The lines of a text, counted from 1. Two lines are the same when they differ in white space only, as
/// [`crate::domain::text::normalize_code`] has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HashedLines {
    lines: Vec<HashedLine>,
}

/// One line; of a blank one both are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HashedLine {
    hash: u64,
    /// Letters and digits: a brace says nothing, a call says something.
    weight: u32,
}

impl HashedLines {
    pub fn from_text(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        Self { lines: text.split(|&byte| byte == b'\n').map(HashedLine::from_bytes).collect() }
    }

    /// How many lines there are.
    pub fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What a line says; 0 for a blank one and for one that is not there.
    pub(super) fn hash(&self, line: u32) -> u64 {
        self.line(line).hash
    }

    pub(super) fn weight(&self, line: u32) -> u32 {
        self.line(line).weight
    }

    fn line(&self, line: u32) -> HashedLine {
        (line as usize).checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or_default()
    }

    /// The lines of a range that are not blank, as far as there are any.
    pub(super) fn nonblank_lines(&self, range: LineRange) -> impl DoubleEndedIterator<Item = u32> + '_ {
        (range.start.max(1)..=range.end.min(self.len())).filter(|&line| self.hash(line) != 0)
    }

    /// Letters and digits of a range.
    pub(super) fn range_weight(&self, range: LineRange) -> u64 {
        self.nonblank_lines(range).map(|line| u64::from(self.weight(line))).sum()
    }

    /// Whether two ranges are the same code.
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
            // 0 is for blank lines alone.
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
