//! What the figures weigh: read from `assets/retrieval.toml`, where it stands what was measured with them.
//!
//! Invariants: every figure has a weight, and every weight a figure; all are finite.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use thiserror::Error;

use super::factors::{FileFactors, PassageFactors};

/// The weights that are part of the program.
const BUILT_IN: &str = include_str!("../../../assets/retrieval.toml");

/// What is wrong with weights.
#[derive(Debug, Error)]
pub enum WeightsError {
    #[error("retrieval.toml: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("retrieval.toml: [{table}] has no number for {name}")]
    Missing { table: &'static str, name: &'static str },
    #[error("retrieval.toml: [{table}] weighs {name}, which nothing measures")]
    Unknown { table: &'static str, name: String },
}

/// What the ranking weighs by.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingWeights {
    pub calibration: Calibration,
    pub files: Vec<f32>,
    pub passages: Vec<f32>,
    /// What the first passage of a file is worth by itself, against all of the file's relevant lines: breadth against
    /// depth.
    pub first: f32,
}

/// Each signal by itself, to compare with: grep for the words of changed lines, BM25, the graph of references.
pub struct SingleSignals;

impl SingleSignals {
    /// Grep counts lines with words of changed lines, rare words first; BM25 weighs the words and their parts; the graph
    /// follows imports, declarations and uses one step in both directions.
    pub fn all_weights() -> Vec<(&'static str, RankingWeights)> {
        vec![
            (
                "grep",
                RankingWeights::from_figures(
                    &["rare_removed", "rare_added", "rare_changed"],
                    &["lines_removed", "lines_added", "lines_changed"],
                ),
            ),
            (
                "bm25",
                RankingWeights::from_figures(
                    &["removed", "added", "changed", "parts"],
                    &["removed", "added", "changed", "parts"],
                ),
            ),
            (
                "graph",
                RankingWeights::from_figures(
                    &[
                        "declares",
                        "declares_alone",
                        "uses_declared",
                        "rare_declared",
                        "imported",
                        "importing",
                        "imported_word",
                        "importing_word",
                    ],
                    &["declares", "declares_enclosing", "inside", "enclosing"],
                ),
            ),
        ]
    }
}

impl RankingWeights {
    /// Some figures, alike; nothing for breadth, which costs a single signal its lines.
    fn from_figures(files: &[&str], passages: &[&str]) -> Self {
        let weigh = |names: &[&str], known: &[&str]| -> Vec<f32> {
            known.iter().map(|name| if names.contains(name) { 2.0 } else { 0.0 }).collect()
        };
        Self {
            calibration: Calibration { own: 1.0, lead: 0.0, bias: -5.0, confidence: 1.0 },
            first: 0.0,
            files: weigh(files, FileFactors::NAMES),
            passages: weigh(passages, PassageFactors::NAMES),
        }
    }
}

/// From the sums of figures to probabilities: the sums say which file is the better one, and how far a file leads says
/// how sure that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// What a file's own sum weighs.
    pub own: f32,
    /// What its lead weighs: the logarithm of its part in the softmax over all files that lead.
    pub lead: f32,
    pub bias: f32,
    /// The power of the probability by which passages are paid for: above 1 the likely files get more of the budget.
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
    /// Those of the program.
    pub fn built_in() -> &'static Self {
        static WEIGHTS: OnceLock<RankingWeights> = OnceLock::new();
        WEIGHTS.get_or_init(|| Self::parse(BUILT_IN).unwrap_or_else(|_| unreachable!("a test reads it")))
    }

    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        let tables: WeightTables = toml::from_str(text)?;
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

    #[test]
    fn every_figure_has_a_weight_and_every_weight_a_figure() {
        let weights = RankingWeights::parse(BUILT_IN).expect("the program's own weights");
        assert_eq!(weights.files.len(), FileFactors::NAMES.len());
        let missing = BUILT_IN.replacen("together =", "togetther =", 1);
        assert!(matches!(RankingWeights::parse(&missing), Err(WeightsError::Missing { name: "together", .. })));
        let unknown = format!("{BUILT_IN}\ncolour = 1.0\n");
        assert!(matches!(RankingWeights::parse(&unknown), Err(WeightsError::Unknown { name, .. }) if name == "colour"));
    }
}
