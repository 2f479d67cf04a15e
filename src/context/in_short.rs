//! What a chunk is, in a few lines: told where it does not fit itself.
//!
//! Invariants: nothing is told that may not be, since all of it stands in the text as it is sent; a summary is shorter than
//! what it stands for.

use std::collections::HashMap;

use super::chunk::Syntax;
use super::pack::{Need, Piece, SectionKind};
use super::retrieve::RankedFile;
use super::surroundings::piece;
use super::text::lines_of;
use crate::domain::LineRange;

/// What has fewer tokens fits where there is room for a summary, see `take.rs`.
const FEWEST_TOKENS: u32 = 400;
/// So many chunks are told in short: those that must be there or are named first, then those that are worth most.
const MOST: usize = 16;
/// Of a class with many methods so many lines are told, those that are no longer than so many bytes.
const MOST_LINES: usize = 24;
const LONGEST_LINE: usize = 300;

/// The summaries of pieces that may not fit. Of one that declares nothing there is none.
pub fn summaries(code: &[Piece], ranked: &[RankedFile], syntax: &dyn Fn(&str) -> Syntax) -> Vec<Piece> {
    let files: HashMap<&str, &RankedFile> = ranked.iter().map(|file| (file.path.as_str(), file)).collect();
    let may_miss = |piece: &&Piece| piece.tokens.is_some_and(|tokens| tokens >= FEWEST_TOKENS);
    let mut large: Vec<&Piece> = code.iter().filter(may_miss).collect();
    large.sort_by(|a, b| {
        let by_need = a.need.min(Need::Found).cmp(&b.need.min(Need::Found));
        by_need.then(b.worth.total_cmp(&a.worth)).then_with(|| (&a.path, a.lines).cmp(&(&b.path, b.lines)))
    });
    let in_short = |large: &Piece| summary(large, files.get(large.path.as_str())?, &syntax(&large.path));
    large.into_iter().take(MOST).filter_map(in_short).collect()
}

/// The size, and the heads of what is declared; without any the names that stand on lines which look like it.
fn summary(large: &Piece, file: &RankedFile, syntax: &Syntax) -> Option<Piece> {
    let (lines, tokens) = (large.lines?, large.tokens?);
    let within = syntax.declared.iter().filter(|one| lines.holds(one.lines)).map(|one| one.head);
    let by_looks = file.document.declared.iter().map(|(line, _)| LineRange::new(line + 1, line + 1));
    let mut heads: Vec<LineRange> = within.collect();
    if heads.is_empty() {
        heads = by_looks.filter(|line| lines.holds(*line)).collect();
    }
    heads.dedup();
    let told = heads.iter().flat_map(|head| lines_of(&large.text, lines.start, *head).lines().map(str::trim_end));
    let is_told = |line: &&str| !line.is_empty() && line.len() <= LONGEST_LINE;
    let told: Vec<&str> = told.take(2 * MOST_LINES).filter(is_told).take(MOST_LINES).collect();
    let text = format!("lines {}-{}, {tokens} tokens\n{}\n", lines.start, lines.end, told.join("\n"));
    (!told.is_empty() && text.len() < large.text.len()).then(|| Piece {
        path: large.path.clone(),
        stands_for: Some(lines),
        score: large.score,
        worth: large.worth,
        ..piece(SectionKind::Summary, Need::Filler, text, "what does not fit, in short")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::chunk::syntax;
    use crate::context::mask::Mask;
    use crate::context::pack::Because;
    use crate::context::retrieve::document::Document;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::told::Told;
    use crate::context::retrieve::words::Vocabulary;
    use crate::context::text::Text;
    use crate::provider::builtin::source::Parsers;

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
                told: Told::plain(&document, text, &str::len),
                document,
                probability: 0.5,
                factors: FileFactors::default(),
                passages: Vec::new(),
            };
            let lines = LineRange::new(1, text.lines().count() as u32);
            let large = Piece {
                path: path.to_owned(),
                lines: Some(lines),
                tokens: Some(500),
                because: Arc::new(Because::default()),
                ..piece(kind, Need::Worth, text.to_owned(), "")
            };
            let small = Piece { tokens: Some(FEWEST_TOKENS - 1), ..large.clone() };
            let of = |path: &str| syntax(&mut Parsers::default(), path, text);
            let certain =
                Piece { need: Need::Must, worth: 0.0, lines: Some(LineRange::new(1, lines.end - 1)), ..large.clone() };
            let order: Vec<_> = summaries(&[large.clone(), certain], std::slice::from_ref(&file), &of)
                .iter()
                .filter_map(|piece| piece.stands_for)
                .collect();
            assert!(order.is_sorted_by_key(|lines| lines.end), "what must be there comes first: {order:?}");
            let found = summaries(&[small, large], &[file], &of);
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
        let masked = Text::new("a.txt", text.as_bytes(), Mask::On);
        let said = |first, last| (first..=last).flat_map(|number| [masked.line(number), "\n"]).collect::<String>();
        let file = RankedFile {
            path: "a.txt".to_owned(),
            blob: String::new(),
            told: Told::masked(&document, &text, &said, &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        let large = Piece {
            path: file.path.clone(),
            lines: Some(LineRange::new(1, 72)),
            tokens: Some(500),
            ..piece(SectionKind::Window, Need::Worth, file.told.texts.all.to_string(), "")
        };
        let found = summaries(&[large], &[file], &|_| Syntax::default());
        let told = &found[0].text;
        assert!(told.ends_with("fn fine() {}\n") && told.contains("«secret") && !told.contains("ghp_"), "{}", &**told);
    }
}
