//! Learns a weight for each form: how well the form points at the fixed line of a file.
//!
//! The score of a line is the sum of the weights of the forms that begin on it, and of the shared features of these
//! forms and of the line (see [`collect_line_forms`](super::file_features::collect_line_forms)). In each fix, the
//! lines of the file compete (softmax over the scores), and the weights move so that the fixed line wins: a form
//! gains weight where it was fixed, and loses weight on other lines. Training is one pass in order of time, with a
//! learning rate that falls per form (AdaGrad).
//!
//! - Only fixes of the learning part change a weight.

use std::collections::BTreeMap;

use super::file_features::FormNumber;

/// Learning rate of the first step, tuned on the validation part.
const LEARNING_RATE: f32 = 0.06;
/// Lower bound of the accumulated gradient norm of a form, so that a rare form moves by at most [`LEARNING_RATE`]
/// times its gradient divided by this bound.
const MIN_GRADIENT_NORM: f32 = 0.3;
/// Gradients below this value are ignored.
const MIN_GRADIENT: f32 = 1e-4;

/// Weights of forms and features.
#[derive(Debug, Clone)]
pub struct FormWeights {
    weights: Vec<f32>,
    squares: Vec<f32>,
}

impl FormWeights {
    /// Creates weights of 0 for `forms` forms.
    pub fn new(forms: usize) -> Self {
        Self { weights: vec![0.0; forms], squares: vec![0.0; forms] }
    }

    /// Returns the sum of the weights of the forms.
    ///
    /// # Panics
    ///
    /// Panics if a form number is out of range.
    pub fn score(&self, forms: &[FormNumber]) -> f32 {
        forms.iter().map(|form| self.weights[*form as usize]).sum()
    }

    /// Learns from one fix: `lines` holds the forms by line, `others` is the number of code lines without forms, and
    /// `fixed` is the fixed line.
    pub fn learn(&mut self, lines: &BTreeMap<u32, Vec<FormNumber>>, others: usize, fixed: u32) {
        let scores: Vec<f32> = lines.values().map(|forms| self.score(forms)).collect();
        let most = scores.iter().copied().fold(0.0, f32::max);
        let rest = others as f32 * (-most).exp();
        let sum: f32 = rest + scores.iter().map(|score| (score - most).exp()).sum::<f32>();
        for ((line, forms), score) in lines.iter().zip(scores) {
            let pull = (score - most).exp() / sum - f32::from(u8::from(*line == fixed));
            if pull.abs() < MIN_GRADIENT {
                continue;
            }
            for form in forms {
                let form = *form as usize;
                self.squares[form] += pull * pull;
                self.weights[form] -= LEARNING_RATE * pull / self.squares[form].sqrt().max(MIN_GRADIENT_NORM);
            }
        }
    }

    /// Returns the `count` lines with the highest scores, best first; of equal scores, the upper line first.
    pub fn rank_lines(&self, lines: &BTreeMap<u32, Vec<FormNumber>>, count: usize) -> Vec<u32> {
        let mut scored: Vec<(f32, u32)> = lines.iter().map(|(line, forms)| (self.score(forms), *line)).collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        scored.into_iter().take(count).map(|(_, line)| line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fixed_weighs_more_than_what_stood_beside_it() {
        let mut weights = FormWeights::new(3);
        let file = BTreeMap::from([(1, vec![0]), (2, vec![1]), (3, vec![0, 2])]);
        for _ in 0..20 {
            weights.learn(&file, 2, 2);
        }
        assert_eq!(weights.rank_lines(&file, 1), [2]);
        assert!(weights.score(&[1]) > 0.0 && weights.score(&[0]) < 0.0, "{weights:?}");
        // Equal scores are ordered from the top.
        assert_eq!(weights.rank_lines(&BTreeMap::from([(7, vec![0]), (4, vec![0]), (9, vec![0])]), 2), [4, 7]);
    }
}
