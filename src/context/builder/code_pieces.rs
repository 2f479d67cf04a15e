//! Converts ranked files to pieces of code, and marks those that are needed for more than their utility.

use std::collections::HashMap;
use std::sync::Arc;

use super::explanation::{explain_file_score, explain_passage};
use crate::context::pack::{ContextPiece, Need, ScoreExplanation, SectionKind, SharedText, find_best_per_file};
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, RankedPassage};
use crate::context::score;
use crate::context::units::split_into_units;
use crate::context::utility::{FileUtility, LinesUtility};
use crate::domain::LineRange;
use crate::index::chunk::FileSyntax;
use crate::syntax::facts::is_test_path;

/// Creates a piece that belongs to no file.
pub fn standalone_piece(kind: SectionKind, need: Need, text: String, reason: &str) -> ContextPiece {
    ContextPiece {
        path: String::new(),
        lines: None,
        stands_for: None,
        kind,
        chunk: None,
        text: text.into(),
        tokens: None,
        need,
        score: 1.0,
        utility: 1.0,
        first_bonus: 0.0,
        explanation: ScoreExplanation { factors: Vec::new(), reason: reason.to_owned() }.into(),
    }
}

/// Converts ranked files to pieces, one for each chunk.
pub fn build_code_pieces(
    ranked: &[RankedFile],
    weights: &RankingWeights,
    syntax: &dyn Fn(&str) -> FileSyntax,
) -> Vec<ContextPiece> {
    let mut pieces = Vec::new();
    for file in ranked {
        let because = explain_file_score(&file.factors, weights);
        // The passages of a file share few different reasons.
        let mut reasons: HashMap<&str, Arc<ScoreExplanation>> = HashMap::new();
        let worths = FileUtility::new(file, weights);
        let (texts, places, is_test) = (&file.masked.texts, &file.document.passages, is_test_path(&file.path));
        for unit in split_into_units(&syntax(&file.path), file.document.line_count()) {
            let Some(LinesUtility { best_passage: strongest, share_of_best: part, utility: worth, first_bonus: first }) =
                worths.for_lines(unit.lines)
            else {
                continue;
            };
            let Some(passage) = file.passages.get(strongest) else { continue };
            let reason = explain_passage(&passage.factors, weights);
            let because = reasons.entry(reason).or_insert_with(|| {
                let reason = format!("{}; {reason}", because.reason);
                Arc::new(ScoreExplanation { factors: because.factors.clone(), reason })
            });
            let (place, tokens) = texts.locate_lines(places, unit.lines);
            let text = SharedText::from_range(&texts.all, place);
            if !text.contains(char::is_alphanumeric) {
                continue;
            }
            pieces.push(ContextPiece {
                path: file.path.clone(),
                lines: Some(unit.lines),
                stands_for: None,
                kind: unit
                    .kind
                    .filter(|_| !is_test)
                    .unwrap_or_else(|| classify_lines(file, unit.lines, (strongest, passage))),
                chunk: Some(unit.chunk),
                text,
                tokens: Some(tokens),
                need: Need::ByUtility,
                score: score::from_probability(file.probability * part),
                utility: worth,
                first_bonus: first,
                explanation: Arc::clone(because),
            });
        }
    }
    pieces
}

/// Classifies lines that are no declaration, by their best passage.
fn classify_lines(file: &RankedFile, lines: LineRange, (number, passage): (usize, &RankedPassage)) -> SectionKind {
    let imports = || file.document.imports.get(lines.start as usize - 1..lines.end as usize).unwrap_or_default();
    match () {
        () if is_test_path(&file.path) => SectionKind::Test,
        () if passage.factors.imports > 0.0 && imports().contains(&true) => SectionKind::Module,
        () if file.masked.declares_type.get(number).is_some_and(|is_type| *is_type) => SectionKind::Type,
        () if passage.factors.has_declaration > 0.0 => SectionKind::Function,
        () => SectionKind::Window,
    }
}

/// Returns true if a piece may be sent: it is needed for another reason, or its score is high enough.
pub fn is_likely(piece: &ContextPiece) -> bool {
    piece.need != Need::ByUtility || piece.score >= score::MIN_SCORE
}

/// Makes the best piece of each near-certain file required.
pub(super) fn mark_certain_pieces(pieces: &mut [ContextPiece]) {
    for at in find_best_per_file(pieces, &|piece| piece.score > score::CERTAIN_SCORE) {
        pieces[at].need = Need::Must;
    }
}

/// Marks types that changed lines name with [`Need::Type`].
pub(super) fn mark_used_types(pieces: &mut [ContextPiece], ranked: &[RankedFile]) {
    let mut named: HashMap<&str, Vec<LineRange>> = HashMap::new();
    for file in ranked {
        let declaring = file.passages.iter().filter(|passage| passage.factors.declares > 0.0);
        let places = declaring.map(|passage| LineRange::new(passage.range.start + 1, passage.range.end));
        named.entry(&file.path).or_default().extend(places);
    }
    for piece in pieces.iter_mut().filter(|piece| piece.need == Need::ByUtility && piece.kind == SectionKind::Type) {
        let places = named.get(piece.path.as_str()).into_iter().flatten();
        if piece.lines.is_some_and(|lines| places.clone().any(|place| place.overlaps(lines))) {
            piece.need = Need::Type;
        }
    }
}
