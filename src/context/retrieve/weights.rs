//! Weights of the ranking's figures, read from `assets/retrieval.toml`; that file also records the measurements.
//!
//! - Each figure has exactly one weight; all weights are finite.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use thiserror::Error;

use super::factors::{FileFactors, PassageFactors};

/// Weights embedded in the program: `assets/retrieval.toml` as JSON.
const BUILT_IN: &str = include_str!(concat!(env!("OUT_DIR"), "/retrieval.json"));

/// Error in a weights file.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// The text is no TOML of the expected form.
    #[error("retrieval.toml: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A table has no number for a factor.
    #[error("retrieval.toml: [{table}] has no number for {name}")]
    Missing {
        /// Name of the table.
        table: &'static str,
        /// Name of the factor.
        name: &'static str,
    },
    /// A table has a number for a name that is no factor.
    #[error("retrieval.toml: [{table}] weighs {name}, which nothing measures")]
    Unknown {
        /// Name of the table.
        table: &'static str,
        /// Name in the table.
        name: String,
    },
}

/// Weights of the ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingWeights {
    /// Conversion of sums to probabilities.
    pub calibration: Calibration,
    /// Table `[files]`: a weight per factor of a file, in the order of the factors.
    pub files: Vec<f32>,
    /// Table `[passages]`: a weight per factor of a passage, in the order of the factors.
    pub passages: Vec<f32>,
    /// Value of the first passage of a file relative to all relevant lines of the file: a higher value prefers breadth
    /// over depth.
    pub first: f32,
}

/// Converts the sum of a file's weighted figures to a probability. The sum tells which file is better; the lead of a
/// file tells how certain this is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Weight of the file's own sum.
    pub own: f32,
    /// Weight of the file's lead: the logarithm of its share in the softmax over all leading files.
    pub lead: f32,
    /// Constant term, the same for all files.
    pub bias: f32,
    /// Exponent of the probability in the utility of passages; above 1, likely files get more of the budget.
    pub confidence: f32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightTables {
    own: f32,
    lead: f32,
    bias: f32,
    confidence: f32,
    first: f32,
    files: BTreeMap<String, f32>,
    passages: BTreeMap<String, f32>,
}

impl RankingWeights {
    /// Returns the embedded weights.
    ///
    /// # Panics
    /// Panics if the embedded file is invalid; a test parses it.
    pub fn built_in() -> &'static Self {
        static WEIGHTS: OnceLock<RankingWeights> = OnceLock::new();
        WEIGHTS.get_or_init(|| {
            let tables = serde_json::from_str(BUILT_IN).ok().and_then(|tables| Self::from_tables(tables).ok());
            tables.unwrap_or_else(|| unreachable!("a test reads it"))
        })
    }

    /// Parses a weights file.
    ///
    /// # Errors
    /// Fails if the text is not valid TOML, or if a weight is missing, unknown or not finite.
    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        Self::from_tables(toml::from_str(text)?)
    }

    fn from_tables(tables: WeightTables) -> Result<Self, WeightsError> {
        Ok(Self {
            calibration: Calibration {
                own: tables.own,
                lead: tables.lead,
                bias: tables.bias,
                confidence: tables.confidence,
            },
            first: tables.first,
            files: order_weights("files", tables.files, FileFactors::NAMES)?,
            passages: order_weights("passages", tables.passages, PassageFactors::NAMES)?,
        })
    }
}

fn order_weights(
    table: &'static str,
    mut weights: BTreeMap<String, f32>,
    names: &'static [&'static str],
) -> Result<Vec<f32>, WeightsError> {
    let taken = names.iter().map(|name| {
        let weight = weights.remove(*name).filter(|weight| weight.is_finite());
        weight.ok_or(WeightsError::Missing { table, name })
    });
    let taken = taken.collect::<Result<Vec<f32>, _>>()?;
    match weights.into_keys().next() {
        Some(name) => Err(WeightsError::Unknown { table, name }),
        None => Ok(taken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file as it is written.
    const WRITTEN: &str = include_str!("../../../assets/retrieval.toml");

    #[test]
    fn every_figure_has_a_weight_and_every_weight_a_figure() {
        let weights = RankingWeights::parse(WRITTEN).expect("the program's own weights");
        assert_eq!(weights, *RankingWeights::built_in(), "the build changes none");
        assert_eq!(weights.files.len(), FileFactors::NAMES.len());
        let missing = WRITTEN.replacen("together =", "togetther =", 1);
        assert!(matches!(RankingWeights::parse(&missing), Err(WeightsError::Missing { name: "together", .. })));
        let unknown = format!("{WRITTEN}\ncolour = 1.0\n");
        assert!(matches!(RankingWeights::parse(&unknown), Err(WeightsError::Unknown { name, .. }) if name == "colour"));
    }
}
