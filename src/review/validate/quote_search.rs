//! Searches quotes of reports in a file of the snapshot, and returns the text that findings may quote.
//!
//! - A quote is found whatever the white space in the quote and in the file is.
//! - A search takes time linear in the size of the file.
//! - The module never returns hidden text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem;

use crate::domain::anchors::{compute_code_identity, truncate_quote};
use crate::domain::text::{is_unsafe, sanitize_line};
use crate::domain::{Finding, LineRange};

/// Minimum length of a quote, in bytes without white space. Shorter quotes occur everywhere. Not from the literature.
const MIN_QUOTE_BYTES: usize = 4;

/// Minimum length of a single line that identifies a place if it occurs once, in bytes without white space. Not from
/// the literature.
const MIN_DISTINCTIVE_BYTES: usize = 12;

/// Maximum number of lines of a quote that are searched individually. Not from the literature: the longest lines are
/// the most distinctive.
const MAX_SINGLE_LINES: usize = 5;

/// The text of a file, prepared for many searches.
#[derive(Debug, Clone, Default)]
pub struct FileText {
    /// The lines without their line ends.
    lines: Vec<String>,
    /// The masked lines that are shown instead, by index (0-based).
    masked: BTreeMap<usize, String>,
    shown: SqueezedText,
    /// The text with the hidden lines; `None` if nothing is hidden.
    whole: Option<SqueezedText>,
}

/// A text without white space.
#[derive(Debug, Clone, Default)]
struct SqueezedText {
    text: String,
    /// Byte offset of each line.
    starts: Vec<usize>,
}

/// The place at which a report claims its quote.
#[derive(Debug, Clone, Copy)]
pub(super) enum QuoteHint<'a> {
    Lines(LineRange),
    /// The report gives no lines; changed lines are likely.
    Changed(&'a [LineRange]),
}

/// The place of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuoteMatch {
    pub lines: LineRange,
    pub certainty: MatchCertainty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchCertainty {
    Yes,
    /// The quote occurs at other places, too, or only a line of the quote occurs here.
    No,
}

impl FileText {
    /// Creates a file without hidden lines. Invalid UTF-8 is replaced.
    pub fn new(text: &[u8]) -> Self {
        Self::with_hidden(text, |_, _| None)
    }

    /// Creates a file with secrets. `hide` gets each line and its byte offset, and returns the masked line. Models saw
    /// the masked lines; searches consider both versions.
    pub fn with_hidden(text: &[u8], mut hide: impl FnMut(&[u8], usize) -> Option<String>) -> Self {
        let mut file = Self::default();
        let mut at = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
            let own = String::from_utf8_lossy(bare).into_owned();
            if let Some(shown) = hide(bare, at).filter(|shown| *shown != own) {
                file.masked.insert(file.lines.len(), shown);
            }
            file.lines.push(own);
            at += line.len();
        }
        file.shown = SqueezedText::from_lines((0..file.lines.len()).map(|index| file.shown_line(index)));
        file.whole = (!file.masked.is_empty()).then(|| SqueezedText::from_lines(file.lines.iter().map(String::as_str)));
        file
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    fn shown_line(&self, index: usize) -> &str {
        self.masked.get(&index).or_else(|| self.lines.get(index)).map_or("", String::as_str)
    }

    fn indices(&self, lines: LineRange) -> std::ops::Range<usize> {
        let start = (lines.start.max(1) as usize - 1).min(self.lines.len());
        start..(lines.end as usize).clamp(start, self.lines.len())
    }

    /// Returns the lines as they are in the file.
    pub(super) fn raw_lines(&self, lines: LineRange) -> &[String] {
        self.lines.get(self.indices(lines)).unwrap_or_default()
    }

    pub(super) fn has_masked_lines(&self, lines: LineRange) -> bool {
        self.masked.range(self.indices(lines)).next().is_some()
    }

    /// Returns the lines as a finding quotes them.
    pub(super) fn quote(&self, lines: LineRange) -> String {
        let quoted: Vec<&str> =
            self.indices(lines).take(Finding::MAX_QUOTE_LINES).map(|index| self.shown_line(index)).collect();
        truncate_quote(&quoted.join("\n"))
    }

    /// Returns the identity of a problem at these lines: the first line with a letter or digit, and the number of equal
    /// lines above it. A single line is used because the extent that a model gives to a problem differs from run to
    /// run.
    pub(super) fn identity(&self, lines: LineRange) -> (String, u32) {
        let says = |index: &usize| self.shown_line(*index).contains(|c: char| c.is_alphanumeric());
        let anchor = self.indices(lines).find(says).unwrap_or_else(|| self.indices(lines).start);
        let code = self.shown.line(anchor);
        let above = (0..anchor).filter(|&index| self.shown.line(index) == code).count();
        (compute_code_identity(self.shown_line(anchor)), u32::try_from(above).unwrap_or(u32::MAX))
    }

    /// Searches a quote and returns the place nearest to the claimed one; `None` if the quote does not occur.
    pub(super) fn find(&self, quote: &str, near: QuoteHint<'_>) -> Option<QuoteMatch> {
        let codes = || [Some(&self.shown), self.whole.as_ref()].into_iter().flatten();
        let readings = [quote.to_owned(), strip_diff_marks(quote), strip_line_numbers(quote)];
        let whole =
            readings.iter().map(|reading| strip_whitespace(reading)).filter(|reading| reading.len() >= MIN_QUOTE_BYTES);
        let found = whole.flat_map(|reading| codes().find_map(|code| code.find_nearest(&reading, near))).next();
        found.or_else(|| {
            let mut lines: Vec<Cow<'_, str>> =
                readings.iter().flat_map(|reading| reading.lines()).map(strip_whitespace).collect();
            lines.retain(|line| line.len() >= MIN_DISTINCTIVE_BYTES);
            lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
            let alone = lines.iter().take(MAX_SINGLE_LINES);
            let lines = alone.flat_map(|line| codes().find_map(|code| code.find_unique(line))).next()?;
            Some(QuoteMatch { lines, certainty: MatchCertainty::No })
        })
    }
}

/// Returns `true` if a quote is long enough to be searched.
pub(super) fn is_searchable(quote: &str) -> bool {
    strip_whitespace(quote).len() >= MIN_QUOTE_BYTES
}

impl SqueezedText {
    fn from_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut code = Self::default();
        for line in lines {
            code.starts.push(code.text.len());
            code.text.push_str(&strip_whitespace(line));
        }
        code
    }

    fn line(&self, index: usize) -> &str {
        let start = self.starts.get(index).copied().unwrap_or(self.text.len());
        let end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the lines (1-based) that contain these bytes.
    fn lines_at(&self, start: usize, end: usize) -> LineRange {
        // A blank line has the offset of the next line: of several lines with one offset, the last one contains the
        // byte.
        let line = |at: usize| u32::try_from(self.starts.partition_point(|&start| start <= at)).unwrap_or(u32::MAX);
        LineRange::new(line(start), line(end.saturating_sub(1)))
    }

    fn find_all(&self, code: &str) -> impl Iterator<Item = LineRange> {
        let found = memmem::find_iter(self.text.as_bytes(), code.as_bytes()).collect::<Vec<_>>();
        found.into_iter().map(move |at| self.lines_at(at, at + code.len()))
    }

    fn find_unique(&self, code: &str) -> Option<LineRange> {
        let mut places = self.find_all(code);
        places.next().filter(|_| places.next().is_none())
    }

    fn find_nearest(&self, code: &str, near: QuoteHint<'_>) -> Option<QuoteMatch> {
        let distance = |lines: LineRange| match near {
            QuoteHint::Lines(claimed) => claimed.distance(lines),
            QuoteHint::Changed(hunks) => u32::from(!hunks.iter().any(|hunk| hunk.overlaps(lines))),
        };
        let places: Vec<(u32, LineRange)> = self.find_all(code).map(|lines| (distance(lines), lines)).collect();
        let &(nearest, lines) = places.iter().min_by_key(|(distance, lines)| (*distance, lines.start))?;
        let alone = match near {
            QuoteHint::Lines(_) => nearest == 0 || places.len() == 1,
            QuoteHint::Changed(_) => places.iter().filter(|(distance, _)| *distance == nearest).count() == 1,
        };
        Some(QuoteMatch { lines, certainty: if alone { MatchCertainty::Yes } else { MatchCertainty::No } })
    }
}

/// Removes white space. Characters that a model cannot see unchanged are shown as in a quote, which is a safe text.
fn strip_whitespace(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_whitespace() || is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    let kept: String = text.split_whitespace().collect();
    Cow::Owned(sanitize_line(&kept).into_owned())
}

/// Returns the new side of a quoted diff; empty if the quote is no diff.
fn strip_diff_marks(quote: &str) -> String {
    let mut lines = quote.lines().filter(|line| !line.trim().is_empty());
    if !quote.lines().any(|line| line.starts_with('+')) || !lines.all(|line| line.starts_with(['+', '-', ' '])) {
        return String::new();
    }
    let new = quote.lines().filter(|line| !line.starts_with('-'));
    new.map(|line| line.get(1..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Removes the line numbers of a listing; empty if the quote is no listing.
fn strip_line_numbers(quote: &str) -> String {
    let bare = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let code = rest.strip_prefix([':', '|', '→']).or_else(|| rest.trim_start().strip_prefix(['|', '→', '│']));
        let code = code.or_else(|| rest.starts_with([' ', '\t']).then_some(rest));
        let numbered = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        if rest.is_empty() { Some("") } else { code }.filter(|_| numbered).map(str::to_owned)
    };
    let lines: Option<Vec<String>> = quote.lines().filter(|line| !line.trim().is_empty()).map(bare).collect();
    lines.unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const CODE: &str = "fn main() {\n    let a = read(path);\n\n    if a.is_empty() {\n        return;\n    }\n    use_it(a);\n    let b = read(path);\n    use_it(b);\n}\n";

    fn stand(first: u32, last: u32, sure: MatchCertainty) -> Option<QuoteMatch> {
        Some(QuoteMatch { lines: LineRange::new(first, last), certainty: sure })
    }

    #[rstest]
    #[case::there("let a = read(path);", 2, stand(2, 2, MatchCertainty::Yes))]
    #[case::moved("use_it(a);", 2, stand(7, 7, MatchCertainty::Yes))]
    #[case::other_blanks("if a.is_empty()  {\nreturn ;\n}", 4, stand(4, 6, MatchCertainty::Yes))]
    #[case::over_blank_lines("let a = read(path);\nif a.is_empty() {", 2, stand(2, 4, MatchCertainty::Yes))]
    #[case::a_part_of_a_line("read(path)", 8, stand(8, 8, MatchCertainty::Yes))]
    #[case::the_nearest_of_two("read(path)", 7, stand(8, 8, MatchCertainty::No))]
    #[case::parts_of_two_lines("(a);\nlet b = ", 1, stand(7, 8, MatchCertainty::Yes))]
    #[case::a_diff("+    use_it(a);\n-    gone();\n     let b = read(path);", 1, stand(7, 8, MatchCertainty::Yes))]
    #[case::a_listing("7:     use_it(a);\n8:     let b = read(path);", 1, stand(7, 8, MatchCertainty::Yes))]
    #[case::a_wide_listing("  4 |     if a.is_empty() {\n  5 |         return;", 1, stand(4, 5, MatchCertainty::Yes))]
    #[case::a_line_of_it("if a.is_empty() {\n    panic!(\"no\");\n}", 1, stand(4, 4, MatchCertainty::No))]
    #[case::nowhere("let c = write(path, text);", 2, None)]
    #[case::too_short("a", 2, None)]
    fn quotes_are_found(#[case] quote: &str, #[case] line: u32, #[case] expected: Option<QuoteMatch>) {
        let file = FileText::new(CODE.as_bytes());
        assert_eq!(file.find(quote, QuoteHint::Lines(LineRange::new(line, line))), expected);
    }

    #[test]
    fn without_lines_a_changed_place_is_taken() {
        let file = FileText::new(CODE.as_bytes());
        let changed = [LineRange::new(8, 9)];
        assert_eq!(file.find("read(path)", QuoteHint::Changed(&changed)), stand(8, 8, MatchCertainty::Yes));
        assert_eq!(file.find("read(path)", QuoteHint::Changed(&[])), stand(2, 2, MatchCertainty::No));
    }

    #[test]
    fn what_is_hidden_is_found_and_never_shown() {
        let text = b"a = 1\nkey = 'hunter2'\nb = 2\n";
        let hide = |line: &[u8], at: usize| {
            assert!(text.get(at..).is_some_and(|rest| rest.starts_with(line)));
            let line = String::from_utf8_lossy(line);
            line.contains("hunter2").then(|| line.replace("hunter2", "…"))
        };
        let file = FileText::with_hidden(text, hide);
        let near = QuoteHint::Lines(LineRange::new(1, 1));
        for quote in ["key = 'hunter2'", "key = '…'"] {
            assert_eq!(file.find(quote, near), stand(2, 2, MatchCertainty::Yes), "{quote}");
        }
        let lines = LineRange::new(1, 3);
        assert_eq!(file.quote(lines), "a = 1\nkey = '…'\nb = 2");
        assert_eq!(file.identity(LineRange::new(2, 2)), ("key = '…'".to_owned(), 0));
        assert_eq!((file.has_masked_lines(lines), file.has_masked_lines(LineRange::new(3, 3))), (true, false));
    }

    #[test]
    fn quotes_with_what_is_not_shown_are_found() {
        let file = FileText::new("a = 1\nwho = \"👨\u{200d}👩\u{202e}\"\nb = 2\n".as_bytes());
        let near = QuoteHint::Lines(LineRange::new(1, 1));
        for quote in ["who = \"👨\u{200d}👩\u{202e}\"", "who = \"👨👩\u{fffd}\""] {
            assert_eq!(file.find(quote, near), stand(2, 2, MatchCertainty::Yes), "{quote:?}");
        }
    }

    #[test]
    fn identities_count_equal_lines_from_the_top() {
        let file = FileText::new(b"{\n  x = 1\n}\n{\nx  = 1\n}\n");
        assert_eq!(file.identity(LineRange::new(1, 3)), ("x = 1".to_owned(), 0));
        assert_eq!(file.identity(LineRange::new(4, 6)), ("x = 1".to_owned(), 1));
        assert_eq!(file.identity(LineRange::new(6, 6)), ("}".to_owned(), 1));
    }
}
