//! Suggestions: validates the replacement of a report and applies replacements to a text.

use super::quote_search::FileText;
use crate::domain::text::sanitize_lines;
use crate::domain::{LineRange, ReportedProblem, Suggestion};
use crate::review::code_fences::{FencedSuggestion, find_suggestion};
use crate::review::extract::TAB_COLUMNS;

/// The lines that a replacement replaces.
pub(super) enum ReplacementTarget {
    Lines(LineRange),
    /// The code is not at the report's lines, and its new lines are unknown.
    Unknown,
}

/// The parts of a finding that depend on the suggestion of its report.
pub(super) struct SuggestionParts {
    pub suggestion: Option<Suggestion>,
    /// The explanation, without the block that holds the replacement.
    pub explanation: String,
    /// Says that a part of the suggestion was dropped, and why.
    pub note: Option<String>,
}

/// Returns the texts of a report without the suggestion block that holds its replacement: suggestion and explanation.
/// Without a replacement, or with another one, the texts stay.
fn remove_suggestion_block(report: &ReportedProblem, replacement: Option<&str>) -> (String, String) {
    let without = |text: &str| -> String {
        let is_shown = |block: &FencedSuggestion| {
            replacement.is_some_and(|code| sanitize_lines(code, TAB_COLUMNS).trim_end() == block.code.trim_end())
        };
        find_suggestion(text).filter(is_shown).map_or_else(|| text.to_owned(), |block| block.other_text)
    };
    (without(&report.suggestion), without(&report.explanation))
}

/// Builds a report's suggestion for a finding at `place`. A replacement stays only if it certainly replaces the code that
/// the model saw.
pub(super) fn build_suggestion(
    report: &ReportedProblem,
    file: &FileText,
    place: LineRange,
    target: &ReplacementTarget,
) -> SuggestionParts {
    let (replacement, note) = match (&report.replacement, target) {
        (None, _) => (None, None),
        (Some(new), ReplacementTarget::Lines(lines)) => match find_objection(file, *lines, new) {
            None => (Some((new.clone(), *lines)), None),
            Some(why) => (None, Some(format!("the replacement is dropped: {why}"))),
        },
        (Some(_), ReplacementTarget::Unknown) => {
            (None, Some("the replacement is dropped: it cannot be told which lines it is for".to_owned()))
        }
    };
    let (words, explanation) = remove_suggestion_block(report, replacement.as_ref().map(|(new, _)| new.as_str()));
    let text = match (words.is_empty(), &replacement) {
        (false, _) => words,
        (true, Some((new, lines))) => {
            let verb = if new.is_empty() { "Remove" } else { "Replace" };
            match lines.start == lines.end {
                true => format!("{verb} line {}.", lines.start),
                false => format!("{verb} lines {} to {}.", lines.start, lines.end),
            }
        }
        (true, None) => return SuggestionParts { suggestion: None, explanation, note },
    };
    let lines = replacement.as_ref().map(|(_, lines)| *lines).filter(|lines| *lines != place);
    let suggestion = Some(Suggestion { text, replacement: replacement.map(|(new, _)| new), lines });
    SuggestionParts { suggestion, explanation, note }
}

fn find_objection(file: &FileText, lines: LineRange, new: &str) -> Option<String> {
    let LineRange { start, end } = lines;
    if start == 0 || end > file.lines() {
        Some(format!("lines {start} to {end} are not in the file, which has {}", file.lines()))
    } else if file.has_masked_lines(lines) {
        Some("a secret stands in its lines, which the reviewer did not see".to_owned())
    } else if new.lines().eq(file.raw_lines(lines).iter().map(String::as_str)) {
        Some("it is what stands there".to_owned())
    } else {
        None
    }
}

/// Returns the text with these lines (1-based, inclusive) replaced; an empty replacement removes them. Lines beyond the
/// end are ignored. Keeps the line ends of the text, `\r\n` too, and a missing line end of its last line.
pub fn apply_replacement(text: &str, lines: LineRange, replacement: &str) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let start = (lines.start.max(1) as usize - 1).min(all.len());
    let end = (lines.end as usize).clamp(start, all.len());
    let (before, after) = (all.get(..start).unwrap_or_default(), all.get(end..).unwrap_or_default());
    let replaced = all.get(start..end).unwrap_or_default();
    let line_end = match replaced.iter().chain(&all).find(|line| line.ends_with('\n')) {
        Some(line) if line.ends_with("\r\n") => "\r\n",
        _ => "\n",
    };
    let mut new = before.concat();
    for line in replacement.lines() {
        new.push_str(line);
        new.push_str(line_end);
    }
    new.push_str(&after.concat());
    if !text.ends_with('\n') && after.is_empty() {
        let bare = new.strip_suffix('\n').map(|bare| bare.strip_suffix('\r').unwrap_or(bare).len());
        new.truncate(bare.unwrap_or(new.len()));
    }
    new
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one_line("a\nb\nc\n", (2, 2), "x", "a\nx\nc\n")]
    #[case::its_end_is_not_doubled("a\nb\nc\n", (2, 2), "x\n", "a\nx\nc\n")]
    #[case::more_lines("a\nb\nc\n", (1, 2), "x\ny\nz", "x\ny\nz\nc\n")]
    #[case::a_blank_line_stays("a\nb\n", (1, 1), "x\n\n", "x\n\nb\n")]
    #[case::removed("a\nb\nc\n", (2, 3), "", "a\n")]
    #[case::carriage_returns("a\r\nb\r\nc\r\n", (2, 2), "x\ny\n", "a\r\nx\r\ny\r\nc\r\n")]
    #[case::carriage_returns_in_the_replacement("a\nb\n", (1, 1), "x\r\ny", "x\ny\nb\n")]
    #[case::no_last_line_end("a\nb", (2, 2), "x\n", "a\nx")]
    #[case::no_last_line_end_with_carriage_returns("a\r\nb", (2, 2), "x\ny", "a\r\nx\r\ny")]
    #[case::the_last_line_removed("a\nb", (2, 2), "", "a")]
    #[case::an_earlier_line("a\nb", (1, 1), "x", "x\nb")]
    #[case::all_of_it("a", (1, 1), "", "")]
    #[case::beyond_the_end("a\n", (5, 9), "x", "a\nx\n")]
    #[case::empty("", (1, 1), "x", "x")]
    fn replacing(#[case] text: &str, #[case] lines: (u32, u32), #[case] replacement: &str, #[case] expected: &str) {
        assert_eq!(apply_replacement(text, LineRange { start: lines.0, end: lines.1 }, replacement), expected);
    }
}
