//! The pages of a finding in triage mode: code or diff, suggested patch, explanation with history.

use std::collections::HashMap;
use std::ops::Range;

use super::similar::SimilarDecisions;
use crate::domain::{FindingStatus, text};
use crate::tui::app::App;
use crate::tui::diff::{MAX_PAIRS, compare_block};
use crate::tui::doc::{Doc, DocLine};
use crate::tui::page_data::{DiffSide, FileDiffPage, FindingPage, HighlightSpans};
use crate::tui::pages::{
    NAMES, count_digits, describe_lowered, push_spans, render_disputes, render_history, render_questions,
    render_voices_in_short,
};
use crate::tui::theme::Role;
use crate::tui::views::fix::render_state;
use crate::tui::views::patch::build_suggestion;

/// Data of a finding in triage mode, as read in the background.
#[derive(Debug, Clone)]
pub struct TriageCard {
    pub page: FindingPage,
    /// Diff of the file, if it shows the finding.
    pub diff: Option<FileDiffPage>,
    pub similar: SimilarDecisions,
}

/// Laid-out card.
#[derive(Debug, Clone, Default)]
pub struct CardPages {
    /// Code or diff; [`Doc::start`] is the first line of the finding.
    pub code: Doc,
    /// Suggested patch; `None` without an exact suggestion.
    pub patch: Option<Doc>,
    /// Explanation, similar decisions, history.
    pub text: Doc,
}

/// Line of code or diff, before it is laid out.
struct CodeLine<'a> {
    number: Option<u32>,
    side: DiffSide,
    text: &'a str,
    spans: &'a [(u32, u32, Role)],
    is_inside: bool,
}

/// Changed parts of lines, as byte ranges by the index of the line.
type ChangedWords = HashMap<usize, Vec<Range<usize>>>;

impl CardPages {
    /// Lays a card out; `width` is the number of columns of the explanation.
    pub fn build(app: &App, card: &TriageCard, width: usize) -> Self {
        Self {
            code: build_code(app, card),
            patch: build_suggestion(app, &card.page),
            text: build_text(app, card, width),
        }
    }
}

fn build_code(app: &App, card: &TriageCard) -> Doc {
    let finding = &card.page.finding;
    let anchor = finding.line_start..=finding.line_end;
    let mut doc = Doc::default();
    let lines: Vec<CodeLine<'_>> = match &card.diff {
        Some(diff) => {
            let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| CodeLine {
                number: line.new.or(line.old),
                side: line.side,
                text: &line.text,
                spans: &line.spans,
                is_inside: line.new.is_some_and(|number| anchor.contains(&number)),
            });
            lines.collect()
        }
        None => {
            let excerpt = &card.page.code;
            let number = |index: usize| excerpt.first.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
            let lines = excerpt.lines.iter().enumerate().map(|(index, text)| CodeLine {
                number: Some(number(index)),
                side: DiffSide::Both,
                text,
                spans: excerpt.spans.get(index).map_or(&[][..], Vec::as_slice),
                is_inside: anchor.contains(&number(index)),
            });
            lines.collect()
        }
    };
    if let Some(note) = card.page.code.note.filter(|_| card.diff.is_none()) {
        doc.push(DocLine::styled(Role::Muted, note));
    }
    let digits = count_digits(lines.iter().filter_map(|line| line.number).max().unwrap_or(1));
    let changed = find_changed_words(&lines);
    let mut before: Option<u32> = None;
    for (index, line) in lines.iter().enumerate() {
        // A gap between two hunks.
        if let (Some(before), Some(number), DiffSide::Both) = (before, line.number, line.side)
            && number > before + 1
            && card.diff.is_some()
        {
            doc.push(DocLine::styled(Role::Faint, app.display.glyphs.ellipsis));
        }
        before = if line.side == DiffSide::Old { before } else { line.number };
        if line.is_inside && doc.start == 0 {
            doc.start = doc.lines.len();
        }
        let words = changed.get(&index).map_or(&[][..], Vec::as_slice);
        doc.push(build_code_line(app, finding.priority, (line, words), digits));
    }
    doc
}

/// Finds the words that differ between removed lines and the added ones behind them.
fn find_changed_words(lines: &[CodeLine<'_>]) -> ChangedWords {
    let mut changed = ChangedWords::new();
    let mut budget = MAX_PAIRS;
    let mut at = 0;
    while at < lines.len() {
        let count = |from: usize, side| lines[from..].iter().take_while(|line| line.side == side).count();
        let added = at + count(at, DiffSide::Old);
        let end = added + count(added, DiffSide::New);
        let texts = |range: Range<usize>| lines[range].iter().map(|line| line.text).collect::<Vec<&str>>();
        for (old, new, (before, after)) in compare_block(&texts(at..added), &texts(added..end), &mut budget) {
            changed.insert(at + old, before);
            changed.insert(added + new, after);
        }
        at = end.max(at + 1);
    }
    changed
}

/// Lays changed words over the spans of a line.
fn mark_words(spans: &[(u32, u32, Role)], words: &[Range<usize>], role: Role) -> HighlightSpans {
    let ranges = || words.iter().map(|range| (range.start as u32, range.end as u32));
    let mut marked: HighlightSpans = ranges().map(|(start, end)| (start, end, role)).collect();
    for (start, end, role) in spans {
        let mut at = *start;
        for (from, to) in ranges().filter(|(from, to)| from < end && to > start) {
            if from > at {
                marked.push((at, from, *role));
            }
            at = at.max(to);
        }
        if at < *end {
            marked.push((at, *end, *role));
        }
    }
    marked.sort_by_key(|(start, ..)| *start);
    marked
}

/// Builds a line with its changed words.
fn build_code_line(
    app: &App,
    priority: crate::domain::Priority,
    (line, words): (&CodeLine<'_>, &[Range<usize>]),
    digits: usize,
) -> DocLine {
    let number = line.number.map_or_else(|| " ".repeat(digits), |number| format!("{number:>digits$}"));
    let bar = if line.is_inside { app.display.glyphs.bar } else { " " };
    let (sign, role) = match line.side {
        DiffSide::Both => (" ", Role::Normal),
        DiffSide::Old => ("-", Role::Removed),
        DiffSide::New => ("+", Role::Added),
    };
    let mut shown = DocLine { source: line.number, ..DocLine::default() }
        .with_span(Role::from_priority(priority), bar)
        .with_span(if line.is_inside { Role::Muted } else { Role::LineNumber }, &number)
        .with_span(role, &format!(" {sign} "));
    let is_coloured = line.side == DiffSide::Both || app.display.theme.colors_changed_code();
    let spans = if is_coloured { line.spans } else { &[] };
    let base = if is_coloured && !spans.is_empty() { Role::Normal } else { role };
    let word = if line.side == DiffSide::Old { Role::RemovedWord } else { Role::AddedWord };
    push_spans(&mut shown, line.text, &mark_words(spans, words, word), base);
    shown.fill = match line.side {
        DiffSide::Both if line.is_inside => Some(Role::Anchor),
        DiffSide::Both => None,
        DiffSide::Old | DiffSide::New => Some(role),
    };
    shown
}

fn build_text(app: &App, card: &TriageCard, width: usize) -> Doc {
    let (page, mut doc) = (&card.page, Doc::default());
    let finding = &page.finding;
    let status = app.finding_by_id(finding.finding_id.as_str()).map_or(finding.status, |row| app.current_status(&row));
    if let Some(last) =
        page.last_decision().filter(|last| status == FindingStatus::Dismissed && !last.reason.is_empty())
    {
        doc.push_field(status.word(), NAMES, Role::from_finding_status(status), &last.reason, width);
    }
    if let Some(fix) = app.store.fixes.for_finding(finding.finding_id.as_str()) {
        render_state(app, fix, width, &mut doc);
    }
    render_disputes(app, finding, width, &mut doc);
    if !finding.explanation.is_empty() {
        doc.push_paragraph(Role::Normal, &finding.explanation, width);
    }
    if let Some(suggestion) = &finding.suggestion {
        doc.push_field("suggested", NAMES, Role::Normal, &text::sanitize_line(&suggestion.text), width);
    }
    if let Some(lowered) = describe_lowered(finding) {
        doc.push_paragraph(Role::Muted, &lowered, width);
    }
    render_voices_in_short(app, finding, width, &mut doc);
    if let Some(similar) = card.similar.describe() {
        doc.push_field("similar", NAMES, Role::Normal, &similar, width);
    }
    render_questions(app, page, width, &mut doc);
    render_history(app, page, width, &mut doc);
    doc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(side: DiffSide, text: &str) -> CodeLine<'_> {
        CodeLine { number: None, side, text, spans: &[], is_inside: false }
    }

    #[test]
    fn changed_words_are_found_in_the_changes_of_a_diff() {
        use DiffSide::{Both, New, Old};
        let lines = [
            line(Both, "fn total() {"),
            line(Old, "    let a = load(path);"),
            line(Old, "    gone();"),
            line(New, "    let a = read(path);"),
            line(Both, "    more();"),
            line(New, "    let b = 1;"),
            line(Old, "    sum += 1;"),
            line(New, "    sum += 2;"),
        ];
        let mut found: Vec<(usize, &str)> = find_changed_words(&lines)
            .into_iter()
            .flat_map(|(index, ranges)| ranges.into_iter().map(move |range| (index, range)))
            .map(|(index, range)| (index, &lines[index].text[range]))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(1, "load"), (3, "read"), (6, "1"), (7, "2")]);
    }

    #[test]
    fn changed_words_lie_over_the_colours_of_the_code() {
        let (code, word) = (Role::Title, Role::AddedWord);
        for (spans, words, expected) in [
            (&[(0, 6, code)][..], &[(2, 4)][..], &[(0, 2, code), (2, 4, word), (4, 6, code)][..]),
            (&[], &[(2, 4)], &[(2, 4, word)]),
            (&[(0, 6, code)], &[(0, 2), (5, 9)], &[(0, 2, word), (2, 5, code), (5, 9, word)]),
            (&[(0, 2, code), (4, 6, code)], &[(1, 5)], &[(0, 1, code), (1, 5, word), (5, 6, code)]),
            (&[(0, 2, code)], &[], &[(0, 2, code)]),
        ] {
            let words: Vec<Range<usize>> = words.iter().map(|(start, end): &(usize, usize)| *start..*end).collect();
            assert_eq!(mark_words(spans, &words, word), expected, "{spans:?} and {words:?}");
        }
    }
}
