//! Writes weights into the text of `assets/retrieval.toml`. Comments, order and unchanged numbers stay.

use crate::context::retrieve::factors::{FileFactors, PassageFactors};
use crate::context::retrieve::weights::RankingWeights;

/// Decimal places of a weight in the file.
const DECIMALS: usize = 3;

/// Rounds a weight as it is written in the file, so that measured and written weights are the same.
pub fn round_weight(weight: f64) -> f32 {
    let scale = 10f64.powi(DECIMALS as i32);
    // Adding 0 turns -0 into 0.
    ((weight * scale).round() / scale + 0.0) as f32
}

/// Replaces the numbers of `text`, a weights file, that differ from `weights`.
pub fn replace_weights(text: &str, weights: &RankingWeights) -> String {
    let mut table = "";
    let mut replaced = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            table = name.0.trim();
        }
        match replace_number(line, table, weights) {
            Some(line) => replaced.push_str(&line),
            None => replaced.push_str(line),
        }
    }
    replaced
}

/// Returns the line with its new number. `None` if it has no number or the same one.
fn replace_number(line: &str, table: &str, weights: &RankingWeights) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let weight = find_weight(weights, table, key.trim())?;
    let number = value.split('#').next().unwrap_or(value).trim();
    if number.parse() == Ok(weight) {
        return None;
    }
    let (before, after) = value.split_once(number).filter(|_| !number.is_empty())?;
    Some(format!("{key}={before}{weight:.DECIMALS$}{after}"))
}

fn find_weight(weights: &RankingWeights, table: &str, key: &str) -> Option<f32> {
    let find = |names: &[&str], weights: &[f32]| weights.get(names.iter().position(|name| *name == key)?).copied();
    let calibration = &weights.calibration;
    match (table, key) {
        ("", "own") => Some(calibration.own),
        ("", "lead") => Some(calibration.lead),
        ("", "bias") => Some(calibration.bias),
        ("", "confidence") => Some(calibration.confidence),
        ("", "first") => Some(weights.first),
        ("files", _) => find(FileFactors::NAMES, &weights.files),
        ("passages", _) => find(PassageFactors::NAMES, &weights.passages),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::eval::weight_fit::BUILT_IN_TEXT;

    #[test]
    fn the_same_weights_leave_every_byte() {
        assert_eq!(replace_weights(BUILT_IN_TEXT, RankingWeights::built_in()), BUILT_IN_TEXT);
    }

    #[test]
    fn every_weight_can_be_written_and_all_else_stays() {
        let mut weights = RankingWeights::built_in().clone();
        let all = weights.files.iter_mut().chain(&mut weights.passages).chain([
            &mut weights.calibration.own,
            &mut weights.calibration.lead,
            &mut weights.calibration.bias,
            &mut weights.calibration.confidence,
            &mut weights.first,
        ]);
        for (at, weight) in (1..).zip(all) {
            *weight = round_weight(f64::from(at) * -0.117);
        }
        let text = replace_weights(BUILT_IN_TEXT, &weights);
        assert_eq!(RankingWeights::parse(&text).expect("a weights file"), weights);
        let words = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_once(" = ").map_or(line, |(key, _)| key).to_owned()).collect()
        };
        assert_eq!(words(&text), words(BUILT_IN_TEXT));
    }

    #[rstest]
    #[case("own = 0.5\n", "own = 2.250\n")]
    #[case("own=0.5", "own=2.250")]
    #[case("  own   =  0.5   # of = its own\n", "  own   =  2.250   # of = its own\n")]
    #[case("own = 2.25 # the same\n", "own = 2.25 # the same\n")]
    #[case("# own = 0.5\n", "# own = 0.5\n")]
    #[case("owner = 0.5\r\n", "owner = 0.5\r\n")]
    #[case("own = 0.5\r\n", "own = 2.250\r\n")]
    #[case("[files] # all\nown = 0.5\npath = 1\n", "[files] # all\nown = 0.5\npath = -3.000\n")]
    #[case("[passages]\npath = 1\n", "[passages]\npath = 1\n")]
    #[case("own =\n", "own =\n")]
    #[case("", "")]
    fn only_a_number_that_differs_is_replaced(#[case] text: &str, #[case] expected: &str) {
        let mut weights = RankingWeights::built_in().clone();
        weights.calibration.own = 2.25;
        let path = FileFactors::NAMES.iter().position(|name| *name == "path").expect("a figure");
        weights.files[path] = -3.0;
        assert_eq!(replace_weights(text, &weights), expected);
    }

    #[rstest]
    #[case(0.12345, "0.123")]
    #[case(-1.9996, "-2.000")]
    #[case(-0.0001, "0.000")]
    #[case(12.0, "12.000")]
    fn weights_are_rounded_as_they_are_written(#[case] weight: f64, #[case] written: &str) {
        let rounded = round_weight(weight);
        assert_eq!(format!("{rounded:.DECIMALS$}"), written);
        assert_eq!(written.parse(), Ok(rounded));
    }
}
