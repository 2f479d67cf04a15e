//! Builds summaries: a few lines about a chunk, which are sent if the chunk itself does not fit.
//!
//! Invariants:
//! - A summary holds only text of its piece, which is already masked.
//! - A summary is shorter than its piece.

use std::collections::HashMap;

use super::builder::standalone_piece;
use super::pack::{ContextPiece, Need, SectionKind};
use super::retrieve::RankedFile;
use super::text::slice_lines;
use crate::domain::LineRange;
use crate::index::chunk::FileSyntax;

/// Minimum size of a summarized piece, in tokens. A smaller piece fits wherever a summary has room; see
/// `MIN_SUMMARY_ROOM` in `pack/selection.rs`.
const MIN_SUMMARIZED_TOKENS: u32 = 400;
/// Maximum number of summaries. Required and mentioned pieces come first, then the pieces with the greatest utility.
const MAX_SUMMARIES: usize = 16;
/// Maximum number of lines in a summary, for instance of a class with many methods, and the maximum length of each line
/// in bytes. Longer lines are left out.
const MAX_LINES_PER_SUMMARY: usize = 24;
const MAX_LINE_BYTES: usize = 300;

/// Builds summaries for large pieces, which may not fit. A piece without declarations has none.
pub fn build_summaries(
    code: &[ContextPiece],
    ranked: &[RankedFile],
    syntax: &dyn Fn(&str) -> FileSyntax,
) -> Vec<ContextPiece> {
    let files: HashMap<&str, &RankedFile> = ranked.iter().map(|file| (file.path.as_str(), file)).collect();
    let may_miss = |piece: &&ContextPiece| piece.tokens.is_some_and(|tokens| tokens >= MIN_SUMMARIZED_TOKENS);
    let mut large: Vec<&ContextPiece> = code.iter().filter(may_miss).collect();
    large.sort_by(|a, b| {
        let by_need = a.need.min(Need::Snippet).cmp(&b.need.min(Need::Snippet));
        by_need.then(b.utility.total_cmp(&a.utility)).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines)))
    });
    let in_short = |large: &ContextPiece| summarize_piece(large, files.get(large.path.as_str())?, &syntax(&large.path));
    large.into_iter().take(MAX_SUMMARIES).filter_map(in_short).collect()
}

/// Summarizes a piece: its size and the heads of its declarations. Without a syntax tree, lines that look like
/// declarations are used. `None` if there are none or the summary would not be shorter.
fn summarize_piece(large: &ContextPiece, file: &RankedFile, syntax: &FileSyntax) -> Option<ContextPiece> {
    let (lines, tokens) = (large.lines?, large.tokens?);
    let within = syntax.declarations.iter().filter(|one| lines.contains(one.lines)).map(|one| one.head);
    let by_looks = file.document.declarations.iter().map(|(line, _)| LineRange::new(line + 1, line + 1));
    let mut heads: Vec<LineRange> = within.collect();
    if heads.is_empty() {
        heads = by_looks.filter(|line| lines.contains(*line)).collect();
    }
    heads.dedup();
    let told = heads.iter().flat_map(|head| slice_lines(&large.text, lines.start, *head).lines().map(str::trim_end));
    let is_told = |line: &&str| !line.is_empty() && line.len() <= MAX_LINE_BYTES;
    let told: Vec<&str> = told.take(2 * MAX_LINES_PER_SUMMARY).filter(is_told).take(MAX_LINES_PER_SUMMARY).collect();
    let text = format!("lines {}-{}, {tokens} tokens\n{}\n", lines.start, lines.end, told.join("\n"));
    (!told.is_empty() && text.len() < large.text.len()).then(|| ContextPiece {
        path: large.path.clone(),
        stands_for: Some(lines),
        chunk: None,
        score: large.score,
        utility: large.utility,
        ..standalone_piece(SectionKind::Summary, Need::Filler, text, "what does not fit, in short")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::pack::ScoreExplanation;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::masked_text::MaskedFile;
    use crate::context::text::BlobText;
    use crate::index::chunk::parse_syntax;
    use crate::index::document::Document;
    use crate::index::vocabulary::Vocabulary;
    use crate::masking::Mask;
    use crate::syntax::source::Parsers;

    #[test]
    fn a_summary_tells_what_is_declared_and_how_long_it_is() {
        let steps = "        self.step();\n".repeat(60);
        let class = format!("impl Walk {{\n    /// Far.\n    pub fn far(&self) -> u32 {{\n{steps}    }}\n}}\n");
        let plain = "x = 1\n".repeat(70);
        for (path, text, kind, expected) in [
            (
                "a.rs",
                class.as_str(),
                SectionKind::Function,
                "lines 1-65, 500 tokens\nimpl Walk {\n    pub fn far(&self) -> u32 {\n",
            ),
            ("a.txt", &plain, SectionKind::Window, ""),
        ] {
            let document = Arc::new(Document::read(text, &mut Vocabulary::default()));
            let file = RankedFile {
                path: path.to_owned(),
                blob: String::new(),
                masked: MaskedFile::from_text(&document, text, &str::len),
                document,
                probability: 0.5,
                factors: FileFactors::default(),
                passages: Vec::new(),
            };
            let lines = LineRange::new(1, text.lines().count() as u32);
            let large = ContextPiece {
                path: path.to_owned(),
                lines: Some(lines),
                tokens: Some(500),
                explanation: Arc::new(ScoreExplanation::default()),
                ..standalone_piece(kind, Need::ByUtility, text.to_owned(), "")
            };
            let small = ContextPiece { tokens: Some(MIN_SUMMARIZED_TOKENS - 1), ..large.clone() };
            let of = |path: &str| parse_syntax(&mut Parsers::default(), path, text);
            let certain = ContextPiece {
                need: Need::Must,
                utility: 0.0,
                lines: Some(LineRange::new(1, lines.end - 1)),
                ..large.clone()
            };
            let order: Vec<_> = build_summaries(&[large.clone(), certain], std::slice::from_ref(&file), &of)
                .iter()
                .filter_map(|piece| piece.stands_for)
                .collect();
            assert!(order.is_sorted_by_key(|lines| lines.end), "what must be there comes first: {order:?}");
            let found = build_summaries(&[small, large], &[file], &of);
            let told: String = found.iter().map(|piece| &*piece.text).collect();
            assert_eq!(told, expected);
            assert!(found.iter().all(|piece| (piece.lines, piece.stands_for) == (None, Some(lines))));
        }
    }

    #[test]
    fn a_summary_names_nothing_that_may_not_be_told() {
        let text =
            "type: \"ghp_0123456789abcdefghijklmnopqrstuvwxyz\"\nfn fine() {}\n".to_owned() + &"x = 1\n".repeat(70);
        let document = Arc::new(Document::read(&text, &mut Vocabulary::default()));
        let masked = BlobText::new("a.txt", text.as_bytes(), Mask::On);
        let said = |first, last| (first..=last).flat_map(|number| [masked.line(number), "\n"]).collect::<String>();
        let file = RankedFile {
            path: "a.txt".to_owned(),
            blob: String::new(),
            masked: MaskedFile::with_masked_lines(&document, &text, &said, &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        let large = ContextPiece {
            path: file.path.clone(),
            lines: Some(LineRange::new(1, 72)),
            tokens: Some(500),
            ..standalone_piece(SectionKind::Window, Need::ByUtility, file.masked.texts.all.to_string(), "")
        };
        let found = build_summaries(&[large], &[file], &|_| FileSyntax::default());
        let told = &found[0].text;
        assert!(told.ends_with("fn fine() {}\n") && told.contains("«secret") && !told.contains("ghp_"), "{}", &**told);
    }
}
