//! Computes the precision of findings: the share of decided findings that were worth raising.

use serde::Serialize;

use crate::domain::wilson_lower_bound;

/// Addressed findings compared with dismissed ones. Open and obsolete findings do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Precision {
    pub addressed: u32,
    pub dismissed: u32,
    /// Share of addressed among decided findings, from 0 to 1. `None` if none was decided.
    pub share: Option<f64>,
    /// Lower bound of the share with a confidence of 95 % (Wilson score): two of two prove less than 200 of 200.
    pub at_least: Option<f64>,
}

impl Precision {
    /// Computes the precision from the numbers of addressed and dismissed findings.
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

    /// Returns the number of decided findings.
    pub fn decided_count(&self) -> u32 {
        self.addressed.saturating_add(self.dismissed)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Bounds computed independently of this code, to six digits.
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
