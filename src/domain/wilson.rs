//! Computes confidence bounds for a proportion with few trials.

/// Quantile of the standard normal distribution for a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_984_540_054;

/// Returns the lower bound of the Wilson score interval at 95 %, from 0 to 1; 0 without trials.
///
/// Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
/// American Statistical Association 22 (1927), 209-212.
pub fn wilson_lower_bound(successes: f64, trials: f64) -> f64 {
    if trials <= 0.0 {
        return 0.0;
    }
    let share = successes / trials;
    let z2 = Z_95 * Z_95;
    let middle = share + z2 / (2.0 * trials);
    let spread = Z_95 * (share * (1.0 - share) / trials + z2 / (4.0 * trials * trials)).sqrt();
    ((middle - spread) / (1.0 + z2 / trials)).clamp(0.0, 1.0)
}

/// Returns the upper bound of the same interval, from 0 to 1; 1 without trials.
pub fn wilson_upper_bound(successes: f64, trials: f64) -> f64 {
    1.0 - wilson_lower_bound(trials - successes, trials)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds computed independently of this code, to six digits.
    #[test]
    fn both_bounds_enclose_the_share() {
        for (successes, trials, lower, upper) in [
            (0.0, 0.0, 0.0, 1.0),
            (0.0, 20.0, 0.0, 0.161_125),
            (1.0, 20.0, 0.008_881, 0.236_131),
            (2.0, 20.0, 0.027_867, 0.301_034),
            (20.0, 20.0, 0.838_875, 1.0),
        ] {
            let bounds = [wilson_lower_bound(successes, trials), wilson_upper_bound(successes, trials)];
            let near = |a: f64, b: f64| (a - b).abs() < 2e-6;
            assert!(near(bounds[0], lower) && near(bounds[1], upper), "{successes} of {trials}: {bounds:?}");
        }
    }
}
