//! How much of what was decided about was worth raising.

use serde::Serialize;

use crate::domain::wilson_lower_bound;

/// Findings that were addressed against those that were dismissed. What is open or obsolete says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Precision {
    pub addressed: u32,
    pub dismissed: u32,
    /// Addressed of all that were decided, 0 to 1; `None` when none was.
    pub share: Option<f64>,
    /// The share is at least this with a confidence of 95 %: two of two prove less than 200 of 200.
    pub at_least: Option<f64>,
}

impl Precision {
    pub fn from_counts(addressed: u32, dismissed: u32) -> Self {
        let decided = f64::from(addressed) + f64::from(dismissed);
        let is_known = decided > 0.0;
        Self {
            addressed,
            dismissed,
            share: is_known.then(|| f64::from(addressed) / decided),
            at_least: is_known.then(|| wilson_lower_bound(f64::from(addressed), decided)),
        }
    }

    /// How many findings were decided about.
    pub fn decided_count(&self) -> u32 {
        self.addressed.saturating_add(self.dismissed)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Bounds worked out apart from this code, to six digits.
    #[rstest]
    #[case::nothing_decided(0, 0, None, None)]
    #[case::one_of_one(1, 0, Some(1.0), Some(0.206_549))]
    #[case::none_of_one(0, 1, Some(0.0), Some(0.0))]
    #[case::half_of_ten(5, 5, Some(0.5), Some(0.236_593))]
    #[case::eight_of_ten(8, 2, Some(0.8), Some(0.490_162))]
    #[case::many(200, 0, Some(1.0), Some(0.981_155))]
    fn few_decisions_prove_little(
        #[case] addressed: u32,
        #[case] dismissed: u32,
        #[case] share: Option<f64>,
        #[case] at_least: Option<f64>,
    ) {
        let precision = Precision::from_counts(addressed, dismissed);
        assert_eq!(precision.share, share);
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-6,
            (a, b) => a == b,
        };
        assert!(near(precision.at_least, at_least), "{precision:?}");
        assert_eq!(precision.decided_count(), addressed + dismissed);
    }
}
