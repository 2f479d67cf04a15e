//! Explains why code was selected: the contribution of each signal, and the strongest signal in words.

use std::sync::LazyLock;

use crate::context::pack::ScoreExplanation;
use crate::context::retrieve::factors::{FileFactors, PassageFactors};
use crate::context::retrieve::weights::RankingWeights;

/// Signals of the file ranking: name, reason in words, and prefixes of the names of their factors.
const FILE_SIGNALS: [(&str, &str, &[&str]); 5] = [
    ("history", "it changed together with the change's files", &["together", "alike", "changes", "latest"]),
    (
        "lexical",
        "it has the change's words",
        &["removed", "added", "changed", "near", "parts", "words", "passage", "rare", "size"],
    ),
    ("reference", "it declares, uses or imports what the change does", &["enclosing", "declares", "uses", "import"]),
    ("path", "its path is like the change's", &["same", "folder", "path", "pair", "is_"]),
    ("semantic", "it means what the change does", &["meaning"]),
];

/// Explains a file's score: each signal's contribution in log-odds, and the strongest signal in words.
pub fn explain_file_score(factors: &FileFactors, weights: &RankingWeights) -> ScoreExplanation {
    let mut parts: Vec<(&'static str, f32)> = FILE_SIGNALS.iter().map(|(name, _, _)| (*name, 0.0)).collect();
    for ((name, figure), weight) in FileFactors::NAMES.iter().zip(factors.values()).zip(&weights.files) {
        let signal =
            FILE_SIGNALS.iter().position(|(_, _, names)| names.iter().any(|beginning| name.starts_with(beginning)));
        if let Some((_, part)) = signal.and_then(|signal| parts.get_mut(signal)) {
            *part += figure * weight;
        }
    }
    let speaking = FILE_SIGNALS.iter().zip(&parts).filter(|(_, (_, part))| *part > 0.0);
    let strongest = speaking.max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut reason =
        strongest.map_or("nothing speaks for it more than for others", |((_, reason, _), _)| reason).to_owned();
    if factors.meaning_first == 0.0 {
        parts.retain(|(name, _)| *name != "semantic");
    }
    if factors.together > 0.01 {
        reason.push_str(&format!("; in {:.0} % of their commits", factors.together * 100.0));
    }
    if factors.pair > 0.0 {
        reason.push_str(if factors.is_test > 0.0 { "; a test and what it tests" } else { "; of the same name" });
    }
    ScoreExplanation { factors: parts, reason }
}

/// Signals of the passage ranking: reason in words, and prefixes of the names of their factors.
const PASSAGE_SIGNALS: [(&str, &[&str]); 6] = [
    ("lines like the changed ones", &["like"]),
    (
        "the change's words",
        &["removed", "added", "changed", "near", "parts", "words", "rare", "lines_", "beside_words"],
    ),
    ("names of the change", &["enclosing", "declares", "inside"]),
    ("lines that change often", &["past", "beside_past"]),
    ("where its imports, its beginning or its end is", &["is_first", "is_last", "imports"]),
    ("what it means", &["meaning"]),
];

/// Index into [`PASSAGE_SIGNALS`] for each passage factor. `None` if the factor belongs to no signal.
static PASSAGE_SIGNAL_BY_FACTOR: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let is_of = |name: &str, names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    let place = |name: &&str| PASSAGE_SIGNALS.iter().position(|(_, names)| is_of(name, names));
    PassageFactors::NAMES.iter().map(place).collect()
});

/// Returns the strongest reason for a passage, in words.
pub fn explain_passage(factors: &PassageFactors, weights: &RankingWeights) -> &'static str {
    let mut parts = [0.0f32; PASSAGE_SIGNALS.len()];
    for ((place, figure), weight) in PASSAGE_SIGNAL_BY_FACTOR.iter().zip(factors.values()).zip(&weights.passages) {
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            *part += figure * weight;
        }
    }
    let speaking = PASSAGE_SIGNALS.iter().zip(parts).filter(|(_, part)| *part > 0.0);
    speaking.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("a part of it", |((reason, _), _)| reason)
}
