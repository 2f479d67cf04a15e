//! Conditional softmax over lists: the probability of a row is its share of the exponentials of the weighted sums of its
//! list.
//!
//! Known as the conditional logit model (D. McFadden, 1974), and in learning to rank as ListNet with its top-one
//! probabilities (Z. Cao and others, 2007).

use super::newton::{ConvexLoss, LossDerivatives, dot};

/// Rows of figures among which some are relevant.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceList {
    /// Number of figures of a row.
    width: usize,
    /// Figures, row by row.
    figures: Vec<f32>,
    /// Share of each row in the relevance of the list. The shares add up to 1.
    shares: Vec<f64>,
}

impl ChoiceList {
    /// Creates a list from rows with their relevance. `None` if no row is relevant, or if there is only one row.
    pub fn from_rows<const WIDTH: usize>(rows: &[([f32; WIDTH], f64)]) -> Option<Self> {
        let total: f64 = rows.iter().map(|(_, relevance)| relevance).sum();
        (rows.len() > 1 && total > 0.0).then(|| Self {
            width: WIDTH,
            figures: rows.iter().flat_map(|(figures, _)| *figures).collect(),
            shares: rows.iter().map(|(_, relevance)| relevance / total).collect(),
        })
    }

    /// Iterates over the figures of each row.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.figures.chunks_exact(self.width)
    }

    /// Returns the share of each row in the relevance of the list.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    fn varies(&self, column: usize) -> bool {
        let mut figures = self.rows().map(|row| row[column]);
        let first = figures.next();
        figures.any(|figure| Some(figure) != first)
    }
}

/// Returns the columns whose figures differ within a list. All other columns change no probability.
pub fn varying_columns(lists: &[ChoiceList]) -> Vec<usize> {
    let width = lists.first().map_or(0, |list| list.width);
    (0..width).filter(|column| lists.iter().any(|list| list.varies(*column))).collect()
}

/// Cross entropy between the shares of the rows and their probabilities, summed over all lists.
pub struct SoftmaxLoss<'a> {
    pub lists: &'a [ChoiceList],
    /// Columns with a weight.
    pub columns: &'a [usize],
}

impl SoftmaxLoss<'_> {
    /// Returns the weighted figures of each row of a list.
    fn select_columns(&self, list: &ChoiceList) -> Vec<Vec<f64>> {
        list.rows().map(|row| self.columns.iter().map(|column| f64::from(row[*column])).collect()).collect()
    }
}

impl ConvexLoss for SoftmaxLoss<'_> {
    fn dimension(&self) -> usize {
        self.columns.len()
    }

    fn value(&self, weights: &[f64]) -> f64 {
        let of = |list: &ChoiceList| {
            let sums = list.rows().map(|row| {
                let figures = self.columns.iter().map(|column| f64::from(row[*column]));
                figures.zip(weights).map(|(figure, weight)| figure * weight).sum::<f64>()
            });
            let sums: Vec<f64> = sums.collect();
            log_sum_exp(&sums) - dot(&sums, &list.shares)
        };
        self.lists.iter().map(of).sum()
    }

    fn derivatives(&self, weights: &[f64]) -> LossDerivatives {
        let mut derivatives = LossDerivatives::zero(self.dimension());
        for list in self.lists {
            let mut rows = self.select_columns(list);
            let sums: Vec<f64> = rows.iter().map(|row| dot(row, weights)).collect();
            let all = log_sum_exp(&sums);
            let probabilities: Vec<f64> = sums.iter().map(|sum| (sum - all).exp()).collect();
            let mut mean = vec![0.0; self.dimension()];
            for ((row, probability), share) in rows.iter().zip(&probabilities).zip(&list.shares) {
                for ((mean, slope), figure) in mean.iter_mut().zip(&mut derivatives.gradient).zip(row) {
                    *mean += probability * figure;
                    *slope += (probability - share) * figure;
                }
            }
            // The covariance of the figures, from differences to the mean: their squares do not cancel out.
            for (row, probability) in rows.iter_mut().zip(&probabilities) {
                row.iter_mut().zip(&mean).for_each(|(figure, mean)| *figure -= mean);
                derivatives.hessian.add_outer_product(row, *probability);
            }
        }
        derivatives
    }
}

/// Returns the logarithm of the sum of the exponentials; no intermediate result overflows.
pub fn log_sum_exp(sums: &[f64]) -> f64 {
    let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    sums.iter().map(|sum| (sum - most).exp()).sum::<f64>().ln() + most
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::eval::weight_fit::newton::{NewtonError, minimize};

    fn list(rows: &[([f32; 2], f64)]) -> ChoiceList {
        ChoiceList::from_rows(rows).expect("a list with a relevant row")
    }

    /// With one figure that is 1 or 0 and shares of `share` and the rest, the weight is the logarithm of the odds.
    #[rstest]
    #[case(0.5)]
    #[case(0.8)]
    #[case(0.999)]
    fn one_weight_is_the_logarithm_of_the_odds(#[case] share: f64) {
        let lists = [list(&[([1.0, 3.0], share), ([0.0, 3.0], 1.0 - share)])];
        assert_eq!(varying_columns(&lists), [0]);
        let weights = minimize(&SoftmaxLoss { lists: &lists, columns: &[0] }, 0.0).expect("a minimum");
        assert!((weights[0] - (share / (1.0 - share)).ln()).abs() < 1e-5, "{weights:?}");
    }

    #[test]
    fn at_the_minimum_the_gradient_is_the_penalty() {
        let lists = [
            list(&[([1.0, 0.5], 1.0), ([0.2, 2.0], 0.0), ([-1.0, 0.0], 1.0)]),
            list(&[([0.0, 1.0], 0.0), ([3.0, 1.5], 2.0), ([2.0, 2.0], 1.0), ([0.1, 0.1], 0.0)]),
        ];
        let loss = SoftmaxLoss { lists: &lists, columns: &[0, 1] };
        let weights = minimize(&loss, 0.7).expect("a minimum");
        for (slope, weight) in loss.derivatives(&weights).gradient.iter().zip(&weights) {
            assert!((slope + 0.7 * weight).abs() < 1e-5, "{slope} {weight}");
        }
    }

    #[test]
    fn derivatives_are_those_of_the_value() {
        let lists = [list(&[([1.0, 0.5], 1.0), ([0.2, 2.0], 0.5), ([-1.0, 0.0], 0.0)])];
        let loss = SoftmaxLoss { lists: &lists, columns: &[0, 1] };
        let (at, step) = ([0.3, -0.4], 1e-5);
        let moved = |column: usize, by: f64| {
            let mut weights = at;
            weights[column] += by;
            weights
        };
        let derivatives = loss.derivatives(&at);
        for column in 0..2 {
            let slope = (loss.value(&moved(column, step)) - loss.value(&moved(column, -step))) / (2.0 * step);
            assert!((slope - derivatives.gradient[column]).abs() < 1e-8);
            let [up, down] = [step, -step].map(|by| loss.derivatives(&moved(column, by)).gradient);
            let bends: Vec<f64> = up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * step)).collect();
            let solved = derivatives.hessian.clone().solve(&bends).expect("a convex loss");
            assert!((solved[column] - 1.0).abs() < 1e-6 && solved[1 - column].abs() < 1e-6, "{solved:?}");
        }
    }

    #[test]
    fn a_penalty_bounds_weights_that_nothing_else_does() {
        let perfect = [list(&[([1.0, 0.0], 1.0), ([0.0, 0.0], 0.0)])];
        let found = minimize(&SoftmaxLoss { lists: &perfect, columns: &[0] }, 0.0);
        assert!(found.is_ok_and(|weights| weights[0] > 10.0));
        let equal = [list(&[([1.0, 1.0], 0.6), ([0.0, 0.0], 0.4)])];
        let found = minimize(&SoftmaxLoss { lists: &equal, columns: &[0, 1] }, 0.0);
        assert_eq!(found, Err(NewtonError::Singular));
        for lists in [perfect, equal] {
            let weights = minimize(&SoftmaxLoss { lists: &lists, columns: &[0, 1] }, 1.0).expect("a minimum");
            assert!(weights.iter().all(|weight| weight.abs() < 1.0), "{weights:?}");
        }
    }

    #[test]
    fn large_sums_do_not_overflow() {
        let lists = [list(&[([3_000.0, 0.0], 1.0), ([0.0, 0.0], 0.0)])];
        let loss = SoftmaxLoss { lists: &lists, columns: &[0] };
        assert_eq!(loss.value(&[1.0]), 0.0);
        assert_eq!(loss.value(&[-1.0]), 3_000.0);
    }

    #[test]
    fn a_list_needs_two_rows_and_relevance() {
        assert_eq!(ChoiceList::from_rows(&[([1.0], 1.0)]), None);
        assert_eq!(ChoiceList::from_rows(&[([1.0], 0.0), ([2.0], 0.0)]), None);
        let list = ChoiceList::from_rows(&[([1.0], 1.0), ([2.0], 3.0)]).expect("a list");
        assert_eq!(list.shares(), [0.25, 0.75]);
    }
}
