//! Newton's method for convex losses with a ridge penalty, on small dense systems.
//!
//! See S. Boyd and L. Vandenberghe, "Convex Optimization" (2004), section 9.5: the damped Newton step with backtracking.

use thiserror::Error;

/// Maximum number of Newton steps. From any start, a dozen are enough for a strictly convex loss.
const MAX_STEPS: usize = 100;
/// Maximum number of times that a step is halved.
const MAX_HALVINGS: usize = 50;
/// Share of the predicted decrease that a step must reach.
const MIN_DECREASE_SHARE: f64 = 1e-4;
/// Predicted decrease, relative to the loss, below which the minimum is reached.
const TOLERANCE: f64 = 1e-14;
/// Smallest pivot, relative to the diagonal, of a matrix that counts as positive definite.
const MIN_PIVOT: f64 = 1e-12;

/// Reason why no minimum was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NewtonError {
    #[error("no weights are the best: the examples cannot tell some figures apart")]
    Singular,
    #[error("no best weights after {MAX_STEPS} steps")]
    NotConverged,
}

/// Convex loss that can be differentiated twice.
pub trait ConvexLoss {
    /// Returns the number of weights.
    fn dimension(&self) -> usize;
    fn value(&self, weights: &[f64]) -> f64;
    fn derivatives(&self, weights: &[f64]) -> LossDerivatives;
}

/// First and second derivatives of a loss.
#[derive(Debug, Clone, PartialEq)]
pub struct LossDerivatives {
    pub gradient: Vec<f64>,
    pub hessian: SymmetricMatrix,
}

impl LossDerivatives {
    /// Returns derivatives of 0.
    pub fn zero(dimension: usize) -> Self {
        Self { gradient: vec![0.0; dimension], hessian: SymmetricMatrix::zero(dimension) }
    }
}

/// Dense symmetric matrix. Only the lower triangle is stored and read.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricMatrix {
    rows: Vec<Vec<f64>>,
}

impl SymmetricMatrix {
    pub fn zero(dimension: usize) -> Self {
        Self { rows: (1..=dimension).map(|length| vec![0.0; length]).collect() }
    }

    /// Adds `scale` times the product of the column `x` and its transpose.
    pub fn add_outer_product(&mut self, x: &[f64], scale: f64) {
        for (row, own) in self.rows.iter_mut().zip(x) {
            let factor = scale * own;
            if factor != 0.0 {
                row.iter_mut().zip(x).for_each(|(entry, other)| *entry += factor * other);
            }
        }
    }

    fn add_to_diagonal(&mut self, addend: f64) {
        for entry in self.rows.iter_mut().filter_map(|row| row.last_mut()) {
            *entry += addend;
        }
    }

    /// Solves `self * x = right` by Cholesky decomposition. `None` if the matrix is not positive definite.
    pub fn solve(mut self, right: &[f64]) -> Option<Vec<f64>> {
        let rows = &mut self.rows;
        for at in 0..rows.len() {
            let (above, below) = rows.split_at_mut(at);
            let row = below.first_mut()?;
            let diagonal = row[at];
            for (column, other) in above.iter().enumerate() {
                row[column] = (row[column] - dot(&row[..column], &other[..column])) / other[column];
            }
            let pivot = diagonal - dot(&row[..at], &row[..at]);
            if pivot.is_nan() || pivot <= MIN_PIVOT * diagonal.abs() {
                return None;
            }
            row[at] = pivot.sqrt();
        }
        let mut x = right.to_vec();
        for at in 0..x.len() {
            x[at] = (x[at] - dot(&rows[at][..at], &x[..at])) / rows[at][at];
        }
        for at in (0..x.len()).rev() {
            let later: f64 = (at + 1..x.len()).map(|row| rows[row][at] * x[row]).sum();
            x[at] = (x[at] - later) / rows[at][at];
        }
        Some(x)
    }
}

/// Minimizes `loss` plus `penalty / 2` times the sum of the squared weights, starting with weights of 0.
///
/// # Errors
/// Returns [`NewtonError::Singular`] if the loss is not strictly convex, and [`NewtonError::NotConverged`] if the minimum
/// is too far. A positive penalty rules out the first.
pub fn minimize(loss: &dyn ConvexLoss, penalty: f64) -> Result<Vec<f64>, NewtonError> {
    let mut weights = vec![0.0; loss.dimension()];
    let value = |weights: &[f64]| loss.value(weights) + penalty / 2.0 * dot(weights, weights);
    let mut current = value(&weights);
    for _ in 0..MAX_STEPS {
        let LossDerivatives { mut gradient, mut hessian } = loss.derivatives(&weights);
        gradient.iter_mut().zip(&weights).for_each(|(slope, weight)| *slope += penalty * weight);
        hessian.add_to_diagonal(penalty);
        let direction = hessian.solve(&gradient).ok_or(NewtonError::Singular)?;
        let decrease = dot(&gradient, &direction);
        if decrease <= TOLERANCE * (1.0 + current.abs()) {
            return Ok(weights);
        }
        let step = (0..MAX_HALVINGS).map(|halvings| 0.5f64.powi(halvings as i32)).find_map(|length| {
            let next: Vec<f64> = weights.iter().zip(&direction).map(|(weight, part)| weight - length * part).collect();
            let reached = value(&next);
            (reached <= current - MIN_DECREASE_SHARE * length * decrease).then_some((next, reached))
        });
        // Only rounding keeps a step along the Newton direction from getting better.
        let Some((next, reached)) = step else { return Ok(weights) };
        (weights, current) = (next, reached);
    }
    Err(NewtonError::NotConverged)
}

/// Returns the scalar product.
pub fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn matrix(rows: &[&[f64]]) -> SymmetricMatrix {
        SymmetricMatrix { rows: rows.iter().map(|row| row.to_vec()).collect() }
    }

    /// Rows of a matrix, right side, and solution if there is one.
    type LinearSystem<'a> = (&'a [&'a [f64]], &'a [f64], Option<&'a [f64]>);

    #[test]
    fn a_system_is_solved_or_singular() {
        let cases: [LinearSystem<'_>; 8] = [
            (&[&[4.0]], &[2.0], Some(&[0.5])),
            (&[&[2.0], &[0.0, 5.0]], &[1.0, 10.0], Some(&[0.5, 2.0])),
            (&[&[4.0], &[2.0, 3.0], &[0.0, 1.0, 2.0]], &[8.0, 11.0, 8.0], Some(&[1.0, 2.0, 3.0])),
            (&[], &[], Some(&[])),
            // Equal rows, no row, not positive definite, not a number.
            (&[&[1.0], &[1.0, 1.0]], &[1.0, 1.0], None),
            (&[&[0.0]], &[1.0], None),
            (&[&[1.0], &[2.0, 1.0]], &[1.0, 1.0], None),
            (&[&[f64::NAN]], &[1.0], None),
        ];
        for (rows, right, expected) in cases {
            let solved = matrix(rows).solve(right);
            assert_eq!(solved.is_some(), expected.is_some(), "{rows:?}: {solved:?}");
            for (found, expected) in solved.iter().flatten().zip(expected.into_iter().flatten()) {
                assert!((found - expected).abs() < 1e-12, "{rows:?}: {solved:?}");
            }
        }
    }

    /// `ln(cosh(scale (x - 1))) + (y + 2)²`. A full Newton step from 0 goes too far along `x`.
    struct Valley {
        scale: f64,
    }

    impl ConvexLoss for Valley {
        fn dimension(&self) -> usize {
            2
        }

        fn value(&self, weights: &[f64]) -> f64 {
            (self.scale * (weights[0] - 1.0)).cosh().ln() + (weights[1] + 2.0).powi(2)
        }

        fn derivatives(&self, weights: &[f64]) -> LossDerivatives {
            let slope = (self.scale * (weights[0] - 1.0)).tanh();
            let mut derivatives = LossDerivatives::zero(2);
            derivatives.gradient = vec![self.scale * slope, 2.0 * (weights[1] + 2.0)];
            derivatives.hessian.add_outer_product(&[1.0, 0.0], self.scale.powi(2) * (1.0 - slope * slope));
            derivatives.hessian.add_outer_product(&[0.0, 1.0], 2.0);
            derivatives
        }
    }

    #[rstest]
    #[case(1.0)]
    #[case(3.0)]
    #[case(8.0)]
    fn a_known_minimum_is_reached_from_afar(#[case] scale: f64) {
        let weights = minimize(&Valley { scale }, 0.0).expect("a minimum");
        assert!((weights[0] - 1.0).abs() < 1e-5 && (weights[1] + 2.0).abs() < 1e-5, "{weights:?}");
    }

    #[test]
    fn a_penalty_pulls_towards_zero() {
        // The minimum of (y + 2)² + 2 / 2 · y² is at -1.
        let weights = minimize(&Valley { scale: 1.0 }, 2.0).expect("a minimum");
        assert!((weights[1] + 1.0).abs() < 1e-6 && (0.0..1.0).contains(&weights[0]), "{weights:?}");
    }

    /// `exp(-x)` from so high that a hundred steps do not reach the bottom.
    struct Slope;

    impl ConvexLoss for Slope {
        fn dimension(&self) -> usize {
            1
        }

        fn value(&self, weights: &[f64]) -> f64 {
            (-weights[0]).exp() * 1e60
        }

        fn derivatives(&self, weights: &[f64]) -> LossDerivatives {
            let mut derivatives = LossDerivatives::zero(1);
            derivatives.gradient[0] = -self.value(weights);
            derivatives.hessian.add_outer_product(&[1.0], self.value(weights));
            derivatives
        }
    }

    /// `(x + y)²`, whose minimum is a line.
    struct Gutter;

    impl ConvexLoss for Gutter {
        fn dimension(&self) -> usize {
            2
        }

        fn value(&self, weights: &[f64]) -> f64 {
            (weights[0] + weights[1] - 1.0).powi(2)
        }

        fn derivatives(&self, weights: &[f64]) -> LossDerivatives {
            let mut derivatives = LossDerivatives::zero(2);
            derivatives.gradient = vec![2.0 * (weights[0] + weights[1] - 1.0); 2];
            derivatives.hessian.add_outer_product(&[1.0, 1.0], 2.0);
            derivatives
        }
    }

    #[test]
    fn what_has_no_minimum_near_is_an_error() {
        assert_eq!(minimize(&Gutter, 0.0), Err(NewtonError::Singular));
        let weights = minimize(&Gutter, 1e-6).expect("a minimum");
        assert!((weights[0] - 0.5).abs() < 1e-3 && (weights[0] - weights[1]).abs() < 1e-6, "{weights:?}");
        assert_eq!(minimize(&Slope, 0.0), Err(NewtonError::NotConverged));
    }
}
