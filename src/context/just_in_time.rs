//! Snippets found just in time: of all code that may be sent, the few places where a grep for the change's words finds most
//! for their length, weighed with what else speaks for them. They come before what is worth most by everything together.
//!
//! Invariant: at most [`MOST`] pieces, none that is sent in any case.

use std::collections::HashMap;
use std::sync::Arc;

use super::pack::{Because, Need, Piece};
use super::retrieve::{RankedFile, RankedPassage};
use super::score;
use super::worth::{of_lines, within};
use crate::domain::LineRange;

/// So many pieces at most; five or more where so many have a word of the change, and room.
const MOST: usize = 10;
/// A longer one is no snippet, in tokens: some forty lines.
const LONGEST: u32 = 400;
/// A title and fences have about so many tokens.
const TITLE: u32 = 12;

/// Marks them.
pub fn mark(pieces: &mut [Piece], ranked: &[RankedFile]) {
    let by_path: HashMap<&str, &RankedFile> = ranked.iter().map(|file| (file.path.as_str(), file)).collect();
    let density = |piece: &Piece| {
        let tokens = piece.tokens.filter(|tokens| *tokens <= LONGEST)?;
        let (file, lines) = (by_path.get(piece.path.as_str())?, piece.lines?);
        let is_open = piece.need == Need::Worth && piece.score >= score::LEAST;
        let found = if is_open { hits(&file.passages, lines) } else { 0.0 };
        (found > 0.0).then(|| found / (tokens + TITLE) as f32 * piece.worth)
    };
    let mut found: Vec<(f32, usize)> =
        pieces.iter().enumerate().filter_map(|(at, piece)| Some((density(piece)?, at))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, at) in found.into_iter().take(MOST) {
        let piece = &mut pieces[at];
        let Because { factors, reason } = piece.because.as_ref();
        let reason = format!("found just in time, where the change's words are densest; {reason}");
        (piece.need, piece.because) = (Need::Found, Arc::new(Because { factors: factors.clone(), reason }));
    }
}

/// The lines that have a word of the change, each by how rare its rarest word is.
fn hits(passages: &[RankedPassage], lines: LineRange) -> f32 {
    let hits = within(passages, lines).map(|(_, passage)| {
        let factors = &passage.factors;
        of_lines(passage, lines, factors.lines_removed + factors.lines_added + factors.lines_changed)
    });
    hits.sum()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::context::pack::SectionKind;
    use crate::context::retrieve::document::{Document, Passage};
    use crate::context::retrieve::factors::{FileFactors, PassageFactors};
    use crate::context::retrieve::told::Told;
    use crate::context::retrieve::words::Vocabulary;

    /// A file whose passages of ten lines have so many words of the change.
    fn file(hits: &[f32]) -> RankedFile {
        let document = Arc::new(Document::read("", &mut Vocabulary::default()));
        let passage = |(number, hits): (u32, &f32)| RankedPassage {
            place: Passage { start: number * 10, end: number * 10 + 10 },
            share: 0.1,
            factors: PassageFactors { lines_changed: *hits, ..PassageFactors::default() },
        };
        RankedFile {
            path: "a.rs".to_owned(),
            blob: String::new(),
            told: Told::plain(&document, "", &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: (0..).zip(hits).map(passage).collect(),
        }
    }

    fn piece((start, end): (u32, u32), tokens: u32) -> Piece {
        Piece {
            path: "a.rs".to_owned(),
            lines: Some(LineRange::new(start, end)),
            stands_for: None,
            kind: SectionKind::Function,
            text: String::new().into(),
            tokens: Some(tokens),
            need: Need::Worth,
            score: 0.5,
            worth: 1.0,
            first: 0.0,
            because: Arc::default(),
        }
    }

    fn marked(pieces: &mut [Piece], hits: &[f32]) -> Vec<u32> {
        mark(pieces, &[file(hits)]);
        let found = pieces.iter().filter(|piece| piece.need == Need::Found);
        assert!(found.clone().all(|piece| piece.because.reason.starts_with("found just in time")));
        found.filter_map(|piece| Some(piece.lines?.start)).collect()
    }

    #[rstest]
    #[case::a_word(|_: &mut Piece| {}, true)]
    #[case::no_word(|piece: &mut Piece| piece.lines = Some(LineRange::new(11, 20)), false)]
    #[case::in_a_part(|piece: &mut Piece| piece.lines = Some(LineRange::new(10, 20)), true)]
    #[case::too_long(|piece: &mut Piece| piece.tokens = Some(LONGEST + 1), false)]
    #[case::unlikely(|piece: &mut Piece| piece.score = 0.29, false)]
    #[case::there_in_any_case(|piece: &mut Piece| piece.need = Need::Must, false)]
    #[case::of_another_file(|piece: &mut Piece| piece.path = "b.rs".to_owned(), false)]
    fn what_has_a_word_of_the_change_and_may_be_sent(#[case] change: fn(&mut Piece), #[case] expected: bool) {
        let mut one = piece((1, 10), 100);
        change(&mut one);
        assert_eq!(!marked(&mut [one], &[3.0, 0.0]).is_empty(), expected);
    }

    #[test]
    fn ten_where_most_words_are_for_their_length() {
        let of = |number: u32| (number * 10 + 1, number * 10 + 10);
        let hits: Vec<f32> = (0..12).map(|number| number as f32).collect();
        let mut pieces: Vec<Piece> = (0..12).map(|number| piece(of(number), 100)).collect();
        // The last but one has as many words in four times the length, and what the first has is worth nothing.
        pieces[10].tokens = Some(400);
        assert_eq!(marked(&mut pieces, &hits), [11, 21, 31, 41, 51, 61, 71, 81, 91, 101, 111][1..]);
        let mut few: Vec<Piece> = (0..3).map(|number| piece(of(number), 100)).collect();
        assert_eq!(marked(&mut few, &hits), [11, 21]);
    }
}
