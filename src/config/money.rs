//! Defines amounts of money for the settings and the model table.
//!
//! - An amount is never negative or infinite. Its resolution is a millionth of a dollar, which is as fine as price
//!   lists are.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MILLIONTHS_PER_DOLLAR: f64 = 1e6;
/// Maximum amount in US dollars; larger values are treated as mistakes.
const MAX_DOLLARS: f64 = 1e9;

/// Amount in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dollars {
    millionths: u64,
}

impl Dollars {
    pub const ZERO: Self = Self { millionths: 0 };

    /// Creates an amount. Returns `None` for a value that is negative, not a number or above 10^9.
    pub fn new(amount: f64) -> Option<Self> {
        (0.0..=MAX_DOLLARS)
            .contains(&amount)
            .then(|| Self { millionths: (amount * MILLIONTHS_PER_DOLLAR).round() as u64 })
    }

    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / MILLIONTHS_PER_DOLLAR
    }
}

impl fmt::Display for Dollars {
    /// Writes at least two digits after the decimal point, and more only where they are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = format!("{:.6}", self.as_f64());
        let short = all.trim_end_matches('0');
        let digits = short.len() - short.find('.').unwrap_or(0) - 1;
        f.write_str(&all[..short.len() + 2_usize.saturating_sub(digits)])
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Self::new(amount).ok_or_else(|| D::Error::custom(format!("{amount} is no amount of money")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_short() {
        for (amount, shown) in [
            (0.0, "0.00"),
            (1.0, "1.00"),
            (0.1, "0.10"),
            (0.075, "0.075"),
            (0.0028, "0.0028"),
            (0.003625, "0.003625"),
            (1234.5, "1234.50"),
        ] {
            let dollars = Dollars::new(amount).expect("an amount");
            assert_eq!(dollars.to_string(), shown);
            assert_eq!(dollars.as_f64(), amount);
        }
        assert_eq!(Dollars::new(0.1 + 0.2), Dollars::new(0.3));
        for bad in [-0.01, f64::NAN, f64::INFINITY, 1e10] {
            assert_eq!(Dollars::new(bad), None, "{bad}");
        }
    }
}
