//! Converts the probability that code belongs to a change into a score.
//!
//! Most files that do belong to a change have a probability below 0.3, and code with a probability of 0.003 is still
//! worth its tokens. The score therefore spreads out small probabilities: it is a logistic function of the logarithm of
//! the odds, stretched so that the lowest probability that is sent (0.003) scores 0.3 and a near-certain one (0.9)
//! scores 0.9.
//!
//! Invariants: a score is between 0 and 1 and never NaN, and a higher probability has a higher score.

/// Lowest score that is sent, even if room is left. It stands for a probability of 0.003. With a limit of 0.005 or
/// more, files that belong to a change get lost; see docs/retrieval.md.
pub const MIN_SCORE: f32 = 0.3;
/// Score above which code almost certainly belongs to the change. It stands for a probability of 0.9.
pub const CERTAIN_SCORE: f32 = 0.9;

/// Slope and offset of the line through (-5.806, -0.847) and (2.197, 2.197): the log-odds of the probabilities 0.003
/// and 0.9, and the log-odds of their scores 0.3 and 0.9.
const SLOPE: f32 = 0.3804;
const OFFSET: f32 = 1.3614;

/// Converts a probability (0 to 1) to a score (0 to 1). NaN and negative values give 0.
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
