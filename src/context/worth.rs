//! What lines of a ranked file are worth.

use super::retrieve::weights::Weights;
use super::retrieve::{RankedFile, RankedPassage};
use crate::domain::LineRange;

/// What a file is worth.
pub struct Worths<'a> {
    file: &'a RankedFile,
    all: f32,
    first: f32,
    /// Of its best passage.
    most_share: f32,
}

/// What lines are worth.
pub struct Worth {
    /// The number of the passage that tells most.
    pub strongest: usize,
    /// Of the file's best passage, from 0 to 1.
    pub part: f32,
    pub worth: f32,
    /// That a file is there at all is worth something, the more the better this tells of it.
    pub first: f32,
}

impl<'a> Worths<'a> {
    pub fn of(file: &'a RankedFile, weights: &Weights) -> Self {
        let all = file.probability.powf(weights.calibration.confidence);
        let most_share = file.passages.iter().map(|passage| passage.share).fold(f32::MIN_POSITIVE, f32::max);
        Self { file, all, first: weights.first, most_share }
    }

    /// What the passages of some lines are worth together: of a passage that is cut, by its lines. Nothing where there are
    /// none.
    pub fn of_lines(&self, lines: LineRange) -> Option<Worth> {
        let (mut strongest, mut share) = (None::<(usize, f32)>, 0.0f32);
        for (number, passage) in within(&self.file.passages, lines) {
            share += of_lines(passage, lines, passage.share);
            if strongest.is_none_or(|(_, known)| passage.share > known) {
                strongest = Some((number, passage.share));
            }
        }
        let (strongest, _) = strongest?;
        let part = (share / self.most_share).min(1.0);
        let worth = self.all * share;
        Some(Worth { strongest, part, worth, first: self.all * self.first * part.sqrt() })
    }
}

/// The passages that some lines have a part of, with their numbers.
pub fn within(passages: &[RankedPassage], lines: LineRange) -> impl Iterator<Item = (usize, &RankedPassage)> {
    let first = passages.partition_point(|passage| passage.place.end < lines.start);
    let parts = passages.iter().enumerate().skip(first);
    parts.take_while(move |(_, passage)| passage.place.start < lines.end)
}

/// Of a figure of a passage, the part of those of its lines that are among some.
pub fn of_lines(passage: &RankedPassage, lines: LineRange, figure: f32) -> f32 {
    let place = passage.place;
    let own = lines.end.min(place.end) + 1 - lines.start.max(place.start + 1);
    figure * own as f32 / (place.end - place.start).max(1) as f32
}
