//! How telling each form is: what was learned of where, in a file that was fixed, the fix was.
//!
//! A line's score is the sum over the forms of patterns that begin on it, and over what these and the line share with others
//! (see [`forms`](super::file::forms)). Of every fix the lines of its file compete
//! (softmax over scores), and the weights move so that the line that was fixed wins: a form gains where it was fixed, and
//! loses where it stood beside. One pass in the order of time, with steps that get shorter by form (AdaGrad).
//!
//! Invariant: only fixes of the learning part move a weight.

use std::collections::BTreeMap;

use super::file_features::FormNumber;

/// Own, tuned on the validation part: how far the first step goes.
const LEARNING_RATE: f32 = 0.06;
/// What a form's gradients count at least, so that rare forms move by [`STEP`] times their gradient and no more.
const MIN_GRADIENT_NORM: f32 = 0.3;
/// Lines that got less than this of the probability teach nothing.
const MIN_GRADIENT: f32 = 1e-4;

/// Weights by form.
#[derive(Debug, Clone)]
pub struct FormWeights {
    weights: Vec<f32>,
    squares: Vec<f32>,
}

impl FormWeights {
    /// Of so many forms, none of which tells anything yet.
    pub fn new(forms: usize) -> Self {
        Self { weights: vec![0.0; forms], squares: vec![0.0; forms] }
    }

    pub fn score(&self, forms: &[FormNumber]) -> f32 {
        forms.iter().map(|form| self.weights[*form as usize]).sum()
    }

    /// Learns from one fix: the forms by line, how many lines of code have none, and the line that was fixed.
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

    /// The lines that the most telling forms point at, best first, the upper one of equals.
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
        // Equal scores: from the top.
        assert_eq!(weights.rank_lines(&BTreeMap::from([(7, vec![0]), (4, vec![0]), (9, vec![0])]), 2), [4, 7]);
    }
}
