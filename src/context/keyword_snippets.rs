//! Marks keyword snippets: the few short pieces with the most words of the change for their length.
//!
//! The score is like that of a grep for the words, multiplied by the utility of the piece. Snippets are packed before
//! the pieces that are chosen by utility per token.
//!
//! Invariant: at most [`MAX_SNIPPETS`] pieces are marked, and none that is required anyway.

use std::collections::HashMap;
use std::sync::Arc;

use super::pack::{ContextPiece, Need, ScoreExplanation};
use super::retrieve::{RankedFile, RankedPassage};
use super::score;
use super::utility::{overlapping_passages, prorate_to_lines};
use crate::domain::LineRange;

/// Maximum number of snippets. Usually five or more are sent, if enough pieces have words of the change and there is
/// room.
const MAX_SNIPPETS: usize = 10;
/// Maximum size of a snippet, in tokens: about 40 lines.
const MAX_SNIPPET_TOKENS: u32 = 400;
/// Approximate size of a title and fences, in tokens.
const TITLE_TOKENS: u32 = 12;

/// Marks the best snippets among the pieces with [`Need::Snippet`].
pub fn mark_snippets(pieces: &mut [ContextPiece], ranked: &[RankedFile]) {
    let by_path: HashMap<&str, &RankedFile> = ranked.iter().map(|file| (file.path.as_str(), file)).collect();
    let density = |piece: &ContextPiece| {
        let tokens = piece.tokens.filter(|tokens| *tokens <= MAX_SNIPPET_TOKENS)?;
        let (file, lines) = (by_path.get(piece.path.as_str())?, piece.lines?);
        let is_open = piece.need == Need::ByUtility && piece.score >= score::MIN_SCORE;
        let found = if is_open { score_hits(&file.passages, lines) } else { 0.0 };
        (found > 0.0).then(|| found / (tokens + TITLE_TOKENS) as f32 * piece.utility)
    };
    let mut found: Vec<(f32, usize)> =
        pieces.iter().enumerate().filter_map(|(at, piece)| Some((density(piece)?, at))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, at) in found.into_iter().take(MAX_SNIPPETS) {
        let piece = &mut pieces[at];
        let ScoreExplanation { factors, reason } = piece.explanation.as_ref();
        let reason = format!("found just in time, where the change's words are densest; {reason}");
        (piece.need, piece.explanation) =
            (Need::Snippet, Arc::new(ScoreExplanation { factors: factors.clone(), reason }));
    }
}

/// Scores the lines that contain a word of the change. Each line counts by the rarity of its rarest word.
fn score_hits(passages: &[RankedPassage], lines: LineRange) -> f32 {
    let hits = overlapping_passages(passages, lines).map(|(_, passage)| {
        let factors = &passage.factors;
        prorate_to_lines(passage, lines, factors.lines_removed + factors.lines_added + factors.lines_changed)
    });
    hits.sum()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::context::pack::SectionKind;
    use crate::context::retrieve::factors::{FileFactors, PassageFactors};
    use crate::context::retrieve::masked_text::MaskedFile;
    use crate::index::document::{Document, Passage};
    use crate::index::vocabulary::Vocabulary;

    /// Returns a file with one passage of ten lines for each value: the score of the change's words in it.
    fn file(hits: &[f32]) -> RankedFile {
        let document = Arc::new(Document::read("", &mut Vocabulary::default()));
        let passage = |(number, hits): (u32, &f32)| RankedPassage {
            range: Passage { start: number * 10, end: number * 10 + 10 },
            share: 0.1,
            factors: PassageFactors { lines_changed: *hits, ..PassageFactors::default() },
        };
        RankedFile {
            path: "a.rs".to_owned(),
            blob: String::new(),
            masked: MaskedFile::from_text(&document, "", &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: (0..).zip(hits).map(passage).collect(),
        }
    }

    fn piece((start, end): (u32, u32), tokens: u32) -> ContextPiece {
        ContextPiece {
            path: "a.rs".to_owned(),
            lines: Some(LineRange::new(start, end)),
            stands_for: None,
            chunk: None,
            kind: SectionKind::Function,
            text: String::new().into(),
            tokens: Some(tokens),
            need: Need::ByUtility,
            score: 0.5,
            utility: 1.0,
            first_bonus: 0.0,
            explanation: Arc::default(),
        }
    }

    fn marked(pieces: &mut [ContextPiece], hits: &[f32]) -> Vec<u32> {
        mark_snippets(pieces, &[file(hits)]);
        let found = pieces.iter().filter(|piece| piece.need == Need::Snippet);
        assert!(found.clone().all(|piece| piece.explanation.reason.starts_with("found just in time")));
        found.filter_map(|piece| Some(piece.lines?.start)).collect()
    }

    #[rstest]
    #[case::a_word(|_: &mut ContextPiece| {}, true)]
    #[case::no_word(|piece: &mut ContextPiece| piece.lines = Some(LineRange::new(11, 20)), false)]
    #[case::in_a_part(|piece: &mut ContextPiece| piece.lines = Some(LineRange::new(10, 20)), true)]
    #[case::too_long(|piece: &mut ContextPiece| piece.tokens = Some(MAX_SNIPPET_TOKENS + 1), false)]
    #[case::unlikely(|piece: &mut ContextPiece| piece.score = 0.29, false)]
    #[case::there_in_any_case(|piece: &mut ContextPiece| piece.need = Need::Must, false)]
    #[case::of_another_file(|piece: &mut ContextPiece| piece.path = "b.rs".to_owned(), false)]
    fn what_has_a_word_of_the_change_and_may_be_sent(#[case] change: fn(&mut ContextPiece), #[case] expected: bool) {
        let mut one = piece((1, 10), 100);
        change(&mut one);
        assert_eq!(!marked(&mut [one], &[3.0, 0.0]).is_empty(), expected);
    }

    #[test]
    fn ten_where_most_words_are_for_their_length() {
        let of = |number: u32| (number * 10 + 1, number * 10 + 10);
        let hits: Vec<f32> = (0..12).map(|number| number as f32).collect();
        let mut pieces: Vec<ContextPiece> = (0..12).map(|number| piece(of(number), 100)).collect();
        // The last but one has as many words in four times the length. The first has no words.
        pieces[10].tokens = Some(400);
        assert_eq!(marked(&mut pieces, &hits), [11, 21, 31, 41, 51, 61, 71, 81, 91, 101, 111][1..]);
        let mut few: Vec<ContextPiece> = (0..3).map(|number| piece(of(number), 100)).collect();
        assert_eq!(marked(&mut few, &hits), [11, 21]);
    }
}
