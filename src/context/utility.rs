//! What lines of a ranked file are worth.

use super::retrieve::weights::RankingWeights;
use super::retrieve::{RankedFile, RankedPassage};
use crate::domain::LineRange;

/// What a file is worth.
pub struct FileUtility<'a> {
    file: &'a RankedFile,
    file_weight: f32,
    first_bonus: f32,
    /// Of its best passage.
    max_share: f32,
}

/// What lines are worth.
pub struct LinesUtility {
    /// The number of the passage that tells most.
    pub best_passage: usize,
    /// Of the file's best passage, from 0 to 1.
    pub share_of_best: f32,
    pub utility: f32,
    /// That a file is there at all is worth something, the more the better this tells of it.
    pub first_bonus: f32,
}

impl<'a> FileUtility<'a> {
    pub fn new(file: &'a RankedFile, weights: &RankingWeights) -> Self {
        let file_weight = file.probability.powf(weights.calibration.confidence);
        let max_share = file.passages.iter().map(|passage| passage.share).fold(f32::MIN_POSITIVE, f32::max);
        Self { file, file_weight, first_bonus: weights.first, max_share }
    }

    /// What the passages of some lines are worth together: of a passage that is cut, by its lines. Nothing where there are
    /// none.
    pub fn for_lines(&self, lines: LineRange) -> Option<LinesUtility> {
        let (mut strongest, mut share) = (None::<(usize, f32)>, 0.0f32);
        for (number, passage) in overlapping_passages(&self.file.passages, lines) {
            share += prorate_to_lines(passage, lines, passage.share);
            if strongest.is_none_or(|(_, known)| passage.share > known) {
                strongest = Some((number, passage.share));
            }
        }
        let (strongest, _) = strongest?;
        let part = (share / self.max_share).min(1.0);
        let worth = self.file_weight * share;
        Some(LinesUtility {
            best_passage: strongest,
            share_of_best: part,
            utility: worth,
            first_bonus: self.file_weight * self.first_bonus * part.sqrt(),
        })
    }
}

/// The passages that some lines have a part of, with their numbers.
pub fn overlapping_passages(
    passages: &[RankedPassage],
    lines: LineRange,
) -> impl Iterator<Item = (usize, &RankedPassage)> {
    let first = passages.partition_point(|passage| passage.range.end < lines.start);
    let parts = passages.iter().enumerate().skip(first);
    parts.take_while(move |(_, passage)| passage.range.start < lines.end)
}

/// Of a figure of a passage, the part of those of its lines that are among some.
pub fn prorate_to_lines(passage: &RankedPassage, lines: LineRange, figure: f32) -> f32 {
    let place = passage.range;
    let own = lines.end.min(place.end) + 1 - lines.start.max(place.start + 1);
    figure * own as f32 / (place.end - place.start).max(1) as f32
}
