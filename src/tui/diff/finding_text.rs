//! Writes the text of a finding that stands below its line: priority, title, explanation and suggestion.

use super::super::doc::{Doc, DocLine, DocSpan};
use super::super::pages::priority_label;
use super::super::theme::Role;
use super::model::{DiffFinding, DiffSuggestion, DiffTexts};
use super::words::compare_words;
use crate::domain::text;

/// Widest text, in columns; longer lines are hard to read.
const MAX_WIDTH: usize = 100;
/// Most lines of a suggestion on each side.
const MAX_SUGGESTION_LINES: usize = 40;

/// Returns the lines of a finding's text for a diff of this width. The replaced lines are shown if the texts of the file
/// are read.
pub fn render_finding_text(finding: &DiffFinding, texts: Option<&DiffTexts>, width: usize) -> Vec<DocLine> {
    let width = width.clamp(12, MAX_WIDTH);
    let mut doc = Doc::default();
    let label = priority_label(finding.priority);
    let role = Role::from_priority(finding.priority);
    for (index, line) in
        super::super::doc::wrap_words(&text::sanitize_line(&finding.title), width - 4).iter().enumerate()
    {
        let start = if index == 0 { label } else { "  " };
        doc.push(DocLine::styled(role, start).with_span(Role::Normal, "  ").with_span(Role::Strong, line));
    }
    let facts = DocLine::styled(Role::Muted, finding.kind.label());
    doc.push(
        facts.with_span(Role::Muted, "  ").with_span(Role::from_finding_status(finding.status), finding.status.word()),
    );
    if !finding.explanation.is_empty() {
        doc.push_paragraph(Role::Normal, &finding.explanation, width);
    }
    if let Some(suggestion) = &finding.suggestion {
        doc.push_paragraph(Role::Accent, &suggestion.text, width);
        render_suggestion(suggestion, texts, &mut doc);
    }
    doc.lines
}

/// Adds the replaced lines and the new ones as a small diff with its changed words.
fn render_suggestion(suggestion: &DiffSuggestion, texts: Option<&DiffTexts>, doc: &mut Doc) {
    let Some((lines, replacement)) = &suggestion.replacement else { return };
    let before: Vec<&str> =
        texts.map(|texts| texts.new.lines(lines.start, lines.end.saturating_add(1)).collect()).unwrap_or_default();
    let after = text::sanitize_lines(replacement.trim_end_matches('\n'), 4);
    let after: Vec<&str> = if after.is_empty() { Vec::new() } else { after.split('\n').collect() };
    doc.lines.extend(compare_lines(&before, &after));
}

/// Returns a small diff of lines of code: those that go, then those that come, with their changed words marked.
pub fn compare_lines(before: &[&str], after: &[&str]) -> Vec<DocLine> {
    // Lines that stay at the beginning and the end are no change.
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = before.iter().zip(after).take_while(same).count();
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(same).count();
    let (old, new) = (&before[start..before.len() - end], &after[start..after.len() - end]);
    let is_aligned = old.len() == new.len();
    let words = |index: usize| {
        let (a, b) = (old.get(index).filter(|_| is_aligned)?, new.get(index)?);
        compare_words(a, b)
    };
    let mut lines = Vec::new();
    let unchanged = |line: &str| DocLine::styled(Role::Faint, "  ").with_span(Role::Normal, line);
    lines.extend(before[start.saturating_sub(1)..start].iter().map(|line| unchanged(line)));
    for (index, line) in old.iter().take(MAX_SUGGESTION_LINES).enumerate() {
        let changed = words(index).map(|(old, _)| old).unwrap_or_default();
        lines.push(mark_words("- ", line, &changed, (Role::Removed, Role::RemovedWord)));
    }
    for (index, line) in new.iter().take(MAX_SUGGESTION_LINES).enumerate() {
        let changed = words(index).map(|(_, new)| new).unwrap_or_default();
        lines.push(mark_words("+ ", line, &changed, (Role::Added, Role::AddedWord)));
    }
    let tail = before.len() - end;
    lines.extend(before[tail..(tail + 1).min(before.len())].iter().map(|line| unchanged(line)));
    lines
}

fn mark_words(sign: &str, line: &str, changed: &[std::ops::Range<usize>], (base, word): (Role, Role)) -> DocLine {
    let mut shown = DocLine::styled(base, sign);
    shown.fill = Some(base);
    let mut at = 0;
    let mut push = |role: Role, text: &str| {
        if !text.is_empty() {
            shown.spans.push(DocSpan { role, text: text::sanitize_line(text).into_owned() });
        }
    };
    for range in changed {
        push(base, line.get(at..range.start).unwrap_or(""));
        push(word, line.get(range.clone()).unwrap_or(""));
        at = range.end;
    }
    push(base, line.get(at..).unwrap_or(""));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_diff_shows_what_changes_and_one_line_around_it() {
        let plain = |before: &[&str], after: &[&str]| -> Vec<String> {
            compare_lines(before, after).iter().map(DocLine::plain_text).collect()
        };
        assert_eq!(
            plain(&["a", "let x = f(1);", "c"], &["a", "let x = f(2);", "c"]),
            ["  a", "- let x = f(1);", "+ let x = f(2);", "  c"]
        );
        assert_eq!(plain(&[], &["new"]), ["+ new"]);
        assert_eq!(plain(&["a", "b"], &["a"]), ["  a", "- b"]);
        let words: Vec<String> = compare_lines(&["let x = f(1);"], &["let x = f(2);"])
            .iter()
            .flat_map(|line| &line.spans)
            .filter(|span| matches!(span.role, Role::AddedWord | Role::RemovedWord))
            .map(|span| span.text.clone())
            .collect();
        assert_eq!(words, ["1", "2"]);
    }
}
