//! Cutting lines at blank ones, where no syntax tree says better.

use crate::domain::LineRange;

/// From here on a window ends at the next blank line, in lines.
const ENOUGH: u32 = 30;
/// No window is longer, in lines: a screen and a half.
const MOST: u32 = 80;
/// From here on a window ends at the end of its line, in bytes: about 2,000 tokens.
const MOST_BYTES: usize = 6_000;

/// Cuts all lines of a text.
pub fn of(text: &str) -> Vec<LineRange> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    cut(&lines, 1)
}

/// Cuts lines, the first of which has the number `first`, into windows. A blank line belongs to the window before it; the
/// last window is not much shorter than the others if it can be helped.
pub fn cut(lines: &[&str], first: u32) -> Vec<LineRange> {
    let mut windows = Vec::new();
    let (mut start, mut bytes, mut after_blank) = (0usize, 0usize, false);
    for (at, line) in lines.iter().enumerate() {
        let count = (at - start) as u32;
        let is_blank = line.trim_ascii().is_empty();
        let rest = (lines.len() - at) as u32;
        let at_blank = after_blank && !is_blank && count >= ENOUGH && rest >= ENOUGH / 3;
        if at > start && (at_blank || count >= MOST || bytes + line.len() > MOST_BYTES) {
            windows.push(LineRange::new(first + start as u32, first + at as u32 - 1));
            (start, bytes) = (at, 0);
        }
        bytes += line.len();
        after_blank = is_blank;
    }
    if start < lines.len() {
        windows.push(LineRange::new(first + start as u32, first + lines.len() as u32 - 1));
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_blank_lines_and_are_bounded() {
        let paragraph = format!("{}\n", "text\n".repeat(24));
        let long = "x".repeat(20_000);
        for (text, expected) in [
            (String::new(), vec![]),
            ("\n".to_owned(), vec![(1, 1)]),
            ("a".to_owned(), vec![(1, 1)]),
            ("text\n".repeat(170), vec![(1, 80), (81, 160), (161, 170)]),
            (paragraph.repeat(4), vec![(1, 50), (51, 100)]),
            (format!("a\n{long}\nb\n"), vec![(1, 1), (2, 2), (3, 3)]),
            (format!("{}\nend\n", "text\n".repeat(40)), vec![(1, 42)]),
        ] {
            let found: Vec<_> = of(&text).iter().map(|range| (range.start, range.end)).collect();
            assert_eq!(found, expected, "{} lines", text.lines().count());
        }
    }
}
