//! Weights of rankings by a single signal, for comparison with the built-in ranking.

use crate::context::retrieve::factors::{FileFactors, PassageFactors};
use crate::context::retrieve::weights::{Calibration, RankingWeights};

/// Returns the weights of the single-signal rankings with their names.
///
/// - `grep` counts lines with words of changed lines, rare words first;
/// - `bm25` weights the words and their parts;
/// - `graph` follows imports, declarations and uses one step in both directions.
pub fn single_signal_weights() -> [(&'static str, RankingWeights); 3] {
    [
        (
            "grep",
            weigh_equally(
                &["rare_removed", "rare_added", "rare_changed"],
                &["lines_removed", "lines_added", "lines_changed"],
            ),
        ),
        ("bm25", weigh_equally(&["removed", "added", "changed", "parts"], &["removed", "added", "changed", "parts"])),
        (
            "graph",
            weigh_equally(
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

/// Gives equal weight to some figures and no weight to breadth, because breadth costs a single signal its lines.
fn weigh_equally(files: &[&str], passages: &[&str]) -> RankingWeights {
    let weigh = |names: &[&str], known: &[&str]| -> Vec<f32> {
        known.iter().map(|name| if names.contains(name) { 2.0 } else { 0.0 }).collect()
    };
    RankingWeights {
        calibration: Calibration { own: 1.0, lead: 0.0, bias: -5.0, confidence: 1.0 },
        first: 0.0,
        files: weigh(files, FileFactors::NAMES),
        passages: weigh(passages, PassageFactors::NAMES),
    }
}
