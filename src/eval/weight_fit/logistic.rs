//! Logistic regression: the logarithm of the odds is a weighted sum.

use super::newton::{ConvexLoss, LossDerivatives, dot};

/// Figures with the outcome that they should predict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogisticExample<const WIDTH: usize> {
    pub figures: [f64; WIDTH],
    pub outcome: bool,
}

/// Cross entropy between outcomes and probabilities, summed over all examples.
pub struct LogisticLoss<'a, const WIDTH: usize>(pub &'a [LogisticExample<WIDTH>]);

impl<const WIDTH: usize> ConvexLoss for LogisticLoss<'_, WIDTH> {
    fn dimension(&self) -> usize {
        WIDTH
    }

    fn value(&self, weights: &[f64]) -> f64 {
        let of = |example: &LogisticExample<WIDTH>| {
            let odds = dot(&example.figures, weights);
            // ln(1 + exp(odds)) without overflow.
            odds.max(0.0) + (-odds.abs()).exp().ln_1p() - if example.outcome { odds } else { 0.0 }
        };
        self.0.iter().map(of).sum()
    }

    fn derivatives(&self, weights: &[f64]) -> LossDerivatives {
        let mut derivatives = LossDerivatives::zero(WIDTH);
        for LogisticExample { figures, outcome } in self.0 {
            let probability = 1.0 / (1.0 + (-dot(figures, weights)).exp());
            let error = probability - f64::from(u8::from(*outcome));
            for (slope, figure) in derivatives.gradient.iter_mut().zip(figures) {
                *slope += error * figure;
            }
            derivatives.hessian.add_outer_product(figures, probability * (1.0 - probability));
        }
        derivatives
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::eval::weight_fit::newton::minimize;

    /// With a constant and one figure that is 0 or 1, the probabilities are the frequencies of the two groups.
    #[rstest]
    #[case(1, 4, 3, 4)]
    #[case(2, 4, 2, 4)]
    #[case(1, 100, 99, 100)]
    fn probabilities_are_the_frequencies(
        #[case] low: usize,
        #[case] of: usize,
        #[case] high: usize,
        #[case] all: usize,
    ) {
        let group = |figure: f64, hits: usize, count: usize| {
            (0..count).map(move |at| LogisticExample { figures: [1.0, figure], outcome: at < hits })
        };
        let examples: Vec<_> = group(0.0, low, of).chain(group(1.0, high, all)).collect();
        let weights = minimize(&LogisticLoss(&examples), 0.0).expect("a minimum");
        let odds = |hits: usize, count: usize| (hits as f64 / (count - hits) as f64).ln();
        assert!((weights[0] - odds(low, of)).abs() < 1e-5, "{weights:?}");
        assert!((weights[0] + weights[1] - odds(high, all)).abs() < 1e-5, "{weights:?}");
    }

    #[test]
    fn a_penalty_bounds_the_weights_of_equal_outcomes() {
        let examples = [1.0, 2.0, 4.0].map(|figure| LogisticExample { figures: [1.0, figure], outcome: false });
        let weights = minimize(&LogisticLoss(&examples), 0.1).expect("a minimum");
        assert!(weights.iter().all(|weight| (-3.0..0.0).contains(weight)), "{weights:?}");
    }

    #[test]
    fn odds_of_any_size_have_a_finite_loss() {
        let examples = [LogisticExample { figures: [1e6], outcome: true }];
        assert_eq!(LogisticLoss(&examples).value(&[1.0]), 0.0);
        assert_eq!(LogisticLoss(&examples).value(&[-1.0]), 1e6);
    }
}
