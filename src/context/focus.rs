//! Builds pieces with the code around the places that a task is about. For a file without a line, this is its
//! beginning.
//!
//! Invariants: the pieces stay within their part of the budget, and a note marks a line that is cut.

use super::builder::standalone_piece;
use super::file_analysis::FileAnalyzer;
use super::pack::{ContextPiece, Need, PackedContext, SectionKind, TokenCounter};
use super::retrieve::masked_text::PassageTexts;
use super::retrieve::task::Focus;
use super::text::find_max_fitting;
use crate::domain::LineRange;
use crate::index::document::Document;
use crate::index::document_store::SourceFile;

/// Maximum length of a token in bytes. Longer tokens are very rare.
const MAX_TOKEN_BYTES: usize = 16;

/// Builds a piece with the lines around each place in `focus`, with at most `most` tokens together.
pub fn build_focus_pieces(
    focus: &[Focus],
    files: &[SourceFile],
    telling: &FileAnalyzer<'_>,
    most: u32,
    count: TokenCounter<'_>,
) -> Vec<ContextPiece> {
    let most = most / focus.len().max(1) as u32;
    let around = |focus: &Focus| {
        let file = files.iter().find(|file| file.path == focus.path)?;
        let (lines, text) =
            select_around_line(focus.line, &file.document, &telling.mask_file(file).texts, most, count)?;
        let piece = standalone_piece(SectionKind::Focus, Need::Must, text, "in focus");
        Some(ContextPiece { path: focus.path.clone(), lines: Some(lines), ..piece })
    };
    focus.iter().filter_map(around).collect()
}

/// Returns true if one section contains all lines of the piece.
pub fn is_sent(piece: &(String, LineRange), packed: &PackedContext) -> bool {
    let (path, lines) = piece;
    packed.sections.iter().any(|section| section.path == *path && section.lines.is_some_and(|own| own.contains(*lines)))
}

/// Selects text around `line` (1-based; `None` means the first line) with at most `most` tokens. Whole passages are
/// preferred; if the line's passage does not fit, single lines; if the line does not fit, its beginning.
fn select_around_line(
    line: Option<u32>,
    document: &Document,
    texts: &PassageTexts,
    most: u32,
    count: TokenCounter<'_>,
) -> Option<(LineRange, String)> {
    let passages = &document.passages;
    let line = line.unwrap_or(1).clamp(1, document.line_count().max(1));
    let said = |lines: LineRange| texts.all.get(texts.locate_lines(passages, lines).0).unwrap_or_default();
    let fits = |lines: LineRange| count(said(lines)) as u32 <= most;
    let of_passages = |first: usize, last: usize| {
        Some(LineRange::new(passages.get(first)?.start + 1, passages.get(last)?.end)).filter(|lines| fits(*lines))
    };
    let of_lines = |first: usize, last: usize| {
        let lines = LineRange::new(first as u32, last as u32);
        (lines.start > 0 && lines.end <= document.line_count() && fits(lines)).then_some(lines)
    };
    let at = passages.iter().position(|passage| (passage.start + 1..=passage.end).contains(&line))?;
    if let Some(lines) = grow_range(at, &of_passages).or_else(|| grow_range(line as usize, &of_lines)) {
        return Some((lines, said(lines).to_owned()));
    }
    let line = LineRange::new(line, line);
    let text = said(line).trim_end();
    let beginning = |bytes: usize| {
        let beginning = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
        format!("{beginning} … (the rest of the line is left out)\n")
    };
    let too_many = text.len().min(most as usize * MAX_TOKEN_BYTES) + 1;
    Some((line, beginning(find_max_fitting(0, too_many, |bytes| count(&beginning(bytes)) as u32 <= most))))
}

/// Grows a range from `at` by one step up and one step down in turns, as long as `lines_of` accepts the range. `None`
/// if it rejects even the start.
fn grow_range(at: usize, lines_of: &dyn Fn(usize, usize) -> Option<LineRange>) -> Option<LineRange> {
    let (mut first, mut last) = (at, at);
    let mut widest = lines_of(first, last)?;
    let (mut above, mut below) = (true, true);
    while above || below {
        let higher = first.checked_sub(1).filter(|_| above).and_then(|first| lines_of(first, last));
        above = higher.is_some();
        (first, widest) = (first - usize::from(above), higher.unwrap_or(widest));
        let lower = Some(last + 1).filter(|_| below).and_then(|last| lines_of(first, last));
        below = lower.is_some();
        (last, widest) = (last + usize::from(below), lower.unwrap_or(widest));
    }
    Some(widest)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::context::retrieve::masked_text::MaskedFile;
    use crate::index::vocabulary::Vocabulary;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[rstest]
    #[case::passages("a b c d\n", 40, Some(40), 100, (17, 40))]
    #[case::at_the_beginning("a b c d\n", 40, None, 100, (1, 24))]
    #[case::lines_of_a_long_passage("a b c d e f g h i j\n", 8, Some(4), 35, (3, 5))]
    #[case::one_line("a b c d e f g h i j\n", 8, Some(8), 10, (8, 8))]
    fn as_much_as_fits_is_around_it(
        #[case] line: &str,
        #[case] lines: usize,
        #[case] at: Option<u32>,
        #[case] most: u32,
        #[case] expected: (u32, u32),
    ) {
        let text = line.repeat(lines);
        let document = Document::read(&text, &mut Vocabulary::default());
        let told = MaskedFile::from_text(&document, &text, &words);
        let (found, said) = select_around_line(at, &document, &told.texts, most, &words).expect("a text");
        assert_eq!((found.start, found.end), expected);
        assert_eq!(said, line.repeat((found.end - found.start + 1) as usize));
        assert!(words(&said) as u32 <= most);
    }

    #[test]
    fn of_a_line_that_does_not_fit_the_beginning_is_told() {
        let text = format!("short\n{}\nshort\n", "é wide ".repeat(4_000));
        let document = Document::read(&text, &mut Vocabulary::default());
        let told = MaskedFile::from_text(&document, &text, &words);
        let (lines, said) = select_around_line(Some(2), &document, &told.texts, 50, &words).expect("a text");
        assert_eq!((lines, words(&said)), (LineRange::new(2, 2), 50));
        assert!(said.starts_with("é wide é") && said.ends_with(" … (the rest of the line is left out)\n"), "{said}");
    }
}
