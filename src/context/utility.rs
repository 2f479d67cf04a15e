//! Computes the utility of lines of a ranked file. The packer compares utility per token.

use super::retrieve::weights::RankingWeights;
use super::retrieve::{RankedFile, RankedPassage};
use crate::domain::LineRange;

/// Utility figures of one ranked file, from which the utility of any of its lines is computed.
pub struct FileUtility<'a> {
    file: &'a RankedFile,
    file_weight: f32,
    first_bonus: f32,
    /// Share of the file's best passage.
    max_share: f32,
}

/// Utility of a range of lines.
pub struct LinesUtility {
    /// Index of the passage with the greatest share in the file's `passages`.
    pub best_passage: usize,
    /// Share of the lines relative to the file's best passage, from 0 to 1.
    pub share_of_best: f32,
    pub utility: f32,
    /// Extra utility if these lines are the first ones sent of their file. It grows with `share_of_best`, because
    /// better lines show better why the file matters.
    pub first_bonus: f32,
}

impl<'a> FileUtility<'a> {
    /// Computes the figures of a file. Its weight is the probability raised to the power of `calibration.confidence`.
    pub fn new(file: &'a RankedFile, weights: &RankingWeights) -> Self {
        let file_weight = file.probability.powf(weights.calibration.confidence);
        let max_share = file.passages.iter().map(|passage| passage.share).fold(f32::MIN_POSITIVE, f32::max);
        Self { file, file_weight, first_bonus: weights.first, max_share }
    }

    /// Returns the utility of the passages that overlap `lines` (1-based, inclusive). A passage that is only partly
    /// inside counts in proportion to its lines. `None` if no passage overlaps.
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

/// Returns the passages that share a line with `lines` (1-based, inclusive), with their indexes.
pub fn overlapping_passages(
    passages: &[RankedPassage],
    lines: LineRange,
) -> impl Iterator<Item = (usize, &RankedPassage)> {
    let first = passages.partition_point(|passage| passage.range.end < lines.start);
    let parts = passages.iter().enumerate().skip(first);
    parts.take_while(move |(_, passage)| passage.range.start < lines.end)
}

/// Returns the share of `figure` that falls on the lines of `passage` inside `lines` (1-based, inclusive). The figure
/// is spread evenly over the lines of the passage.
pub fn prorate_to_lines(passage: &RankedPassage, lines: LineRange, figure: f32) -> f32 {
    let place = passage.range;
    let own = lines.end.min(place.end) + 1 - lines.start.max(place.start + 1);
    figure * own as f32 / (place.end - place.start).max(1) as f32
}
