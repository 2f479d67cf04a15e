//! Computes a confidence bound for a proportion with few trials.

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
