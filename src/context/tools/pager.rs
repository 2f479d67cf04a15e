//! Splits answers into pages. The same lines in the same order always fall on the same pages, and each page has a
//! bounded size.

use std::ops::ControlFlow;

use crate::domain::LineRange;

/// Largest page in bytes: about 6,000 tokens.
pub const MAX_PAGE_BYTES: usize = 24 << 10;
/// Largest page in lines.
pub const MAX_PAGE_LINES: usize = 400;

/// Receives all lines of an answer and keeps the lines of one page.
pub struct Pager {
    wanted: u32,
    current: u32,
    lines: usize,
    bytes: usize,
    heading: String,
    text: String,
    /// True if a page follows the wanted one.
    pub has_more: bool,
}

impl Pager {
    /// Creates a pager for the page `wanted`, counted from 1.
    pub fn new(wanted: u32) -> Self {
        let (heading, text) = (String::new(), String::new());
        Self { wanted, current: 1, lines: 0, bytes: 0, heading, text, has_more: false }
    }

    /// Adds a line without its line end. Returns `Break` if the wanted page is full and this line would start the next
    /// page.
    pub fn push(&mut self, line: &str) -> ControlFlow<()> {
        if self.lines > 0 && (self.lines >= MAX_PAGE_LINES || self.bytes + line.len() + 1 > MAX_PAGE_BYTES) {
            self.current += 1;
            (self.lines, self.bytes) = (0, 0);
            self.heading.clear();
        }
        if self.current > self.wanted {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.lines += 1;
        self.bytes += line.len() + 1;
        if self.is_on_wanted_page() {
            self.text.push_str(line);
            self.text.push('\n');
        }
        ControlFlow::Continue(())
    }

    /// Adds a line below a heading. Repeats the heading if the previous line had another heading or stood on another
    /// page.
    pub fn push_below(&mut self, heading: &str, line: &str) -> ControlFlow<()> {
        let is_below = self.heading == heading;
        let (lines, bytes) = if is_below { (1, line.len() + 1) } else { (2, heading.len() + line.len() + 2) };
        let is_full = self.lines > 0 && (self.lines + lines > MAX_PAGE_LINES || self.bytes + bytes > MAX_PAGE_BYTES);
        if is_full {
            // Prevents a lone heading at the end of a page.
            self.lines = MAX_PAGE_LINES;
        }
        if is_full || !is_below {
            self.push(heading)?;
            heading.clone_into(&mut self.heading);
        }
        self.push(line)
    }

    /// Returns true if the last line fell on the wanted page.
    pub fn is_on_wanted_page(&self) -> bool {
        self.current == self.wanted
    }

    /// Returns the text of the page; `None` if the page is empty.
    pub fn text(&self) -> Option<&str> {
        (!self.text.is_empty()).then_some(self.text.as_str())
    }

    /// Returns the number of pages seen so far.
    pub fn page_count(&self) -> u32 {
        self.current.min(self.wanted)
    }
}

/// Line ranges shown to the model; adjacent ranges are merged.
#[derive(Default)]
pub struct ShownLines(pub Vec<(String, LineRange)>);

impl ShownLines {
    /// Adds a line range and merges it with the last range if they touch.
    pub fn add(&mut self, path: &str, lines: LineRange) {
        match self.0.last_mut() {
            Some((last, range)) if last == path && lines.start <= range.end + 1 && range.start <= lines.end + 1 => {
                *range = LineRange::new(range.start.min(lines.start), range.end.max(lines.end));
            }
            _ => self.0.push((path.to_owned(), lines)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(lines: &[(usize, usize)], wanted: u32) -> (Option<String>, bool) {
        let mut pager = Pager::new(wanted);
        for (number, (heading, length)) in lines.iter().enumerate() {
            let line = format!("{number} {}", "x".repeat(*length));
            if pager.push_below(&format!("# {heading}"), &line).is_break() {
                break;
            }
        }
        (pager.text().map(str::to_owned), pager.has_more)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pages_together_are_all_lines_once_each_below_its_heading(
            lines in proptest::collection::vec((0..4usize, prop_oneof![9 => 0..200usize, 1 => Just(20_000usize)]), 0..1_500),
        ) {
            let mut all = Vec::new();
            for wanted in 1.. {
                let (text, has_more) = page(&lines, wanted);
                let Some(text) = text else { break };
                prop_assert!(text.len() <= MAX_PAGE_BYTES && text.lines().count() <= MAX_PAGE_LINES);
                let mut heading = "";
                for line in text.lines() {
                    match line.strip_prefix("# ") {
                        Some(name) => heading = name,
                        None => all.push((line.split(' ').next().map(str::to_owned), heading.to_owned())),
                    }
                }
                prop_assert!(text.starts_with("# ") && !text.lines().last().is_some_and(|line| line.starts_with('#')));
                if !has_more {
                    prop_assert!(page(&lines, wanted + 1).0.is_none());
                    break;
                }
            }
            let expected: Vec<_> = lines.iter().enumerate().map(|(n, (h, _))| (Some(n.to_string()), h.to_string())).collect();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn neighbouring_lines_are_one_range() {
        let mut shown = ShownLines::default();
        for (path, line) in [("a", 1), ("a", 2), ("a", 2), ("a", 5), ("b", 6), ("b", 7)] {
            shown.add(path, LineRange::new(line, line));
        }
        let range = LineRange::new;
        assert_eq!(shown.0, [("a".into(), range(1, 2)), ("a".into(), range(5, 5)), ("b".into(), range(6, 7))]);
    }
}
