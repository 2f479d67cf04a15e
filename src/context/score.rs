//! The scale of scores: how likely code is to belong to a change, spread out so that what is unlikely can be told apart.
//!
//! Of the files that do belong to a change most have a probability below 0.3, and 0.003 is still worth its tokens. So a
//! score is a logistic function of the logarithm of the odds, stretched until the least that is sent stands at 0.3 and what
//! is as good as certain at 0.9. Invariants: from 0 to 1, never NaN, and the likelier the higher.

/// Code below it is not sent, whatever room is left: a probability of 0.003. From 0.005 on, files that belong to a change
/// get lost, see docs/retrieval.md.
pub const MIN_SCORE: f32 = 0.3;
/// What is above it is as good as certain to belong to the change: a probability of 0.9.
pub const CERTAIN_SCORE: f32 = 0.9;

/// With ln(0.003 / 0.997) = -5.806 and ln(0.9 / 0.1) = 2.197, the line between ln(0.3 / 0.7) = -0.847 and 2.197.
const SLOPE: f32 = 0.3804;
const OFFSET: f32 = 1.3614;

/// The score of a probability.
pub fn from_probability(probability: f32) -> f32 {
    if probability.is_nan() || probability <= 0.0 {
        return 0.0;
    }
    let odds = probability / (1.0 - probability).max(f32::MIN_POSITIVE);
    1.0 / (1.0 + (-OFFSET - SLOPE * odds.ln()).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_certain_stand_where_they_are_said_to() {
        for (probability, score) in [(0.0, 0.0), (f32::NAN, 0.0), (0.003, MIN_SCORE), (0.9, CERTAIN_SCORE)] {
            assert!(
                (from_probability(probability) - score).abs() < 0.0005,
                "{probability}: {}",
                from_probability(probability)
            );
        }
        assert!(from_probability(1.0) <= 1.0 && from_probability(f32::MIN_POSITIVE) >= 0.0);
        let scores: Vec<f32> = (0..=1_000).map(|thousandth| from_probability(thousandth as f32 / 1_000.0)).collect();
        assert!(scores.is_sorted() && scores.iter().all(|score| (0.0..=1.0).contains(score)));
    }
}
