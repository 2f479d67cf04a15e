//! What patterns come to, in numbers.

use serde::Serialize;

use super::pattern::{Origin, Pattern, Stance};
use super::rank::{Standing, State};
use crate::domain::wilson;

/// Figures of a language, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    pub patterns: usize,
    pub mistakes: usize,
    pub false_alarms: usize,
    pub learned: usize,
    pub base: usize,
    pub imported: usize,
    /// Muted ones are neither used nor watched.
    pub used: usize,
    pub watched: usize,
    pub muted: usize,
    pub forgotten: usize,
    /// Kinds of findings that are lowered.
    pub kinds: usize,
    /// Of each pattern what the machine that saw it most saw.
    pub frequency: u64,
    pub successes: u64,
    pub failures: u64,
}

impl Figures {
    pub fn add(&mut self, pattern: &Pattern, standing: &Standing) {
        self.patterns += 1;
        *match pattern.stance {
            Stance::Mistake => &mut self.mistakes,
            Stance::FalseAlarm => &mut self.false_alarms,
        } += 1;
        *match pattern.origin {
            Origin::Learned => &mut self.learned,
            Origin::Base => &mut self.base,
            Origin::Imported => &mut self.imported,
        } += 1;
        match standing.state(pattern) {
            State::Muted => self.muted += 1,
            State::Used => self.used += 1,
            State::Watched => self.watched += 1,
            State::NotUsed => {}
        }
        let count = pattern.count();
        self.frequency += u64::from(pattern.seen());
        self.successes += u64::from(count.successes);
        self.failures += u64::from(count.failures);
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.patterns, other.patterns),
            (&mut self.mistakes, other.mistakes),
            (&mut self.false_alarms, other.false_alarms),
            (&mut self.learned, other.learned),
            (&mut self.base, other.base),
            (&mut self.imported, other.imported),
            (&mut self.used, other.used),
            (&mut self.watched, other.watched),
            (&mut self.muted, other.muted),
            (&mut self.forgotten, other.forgotten),
            (&mut self.kinds, other.kinds),
        ] {
            *mine += theirs;
        }
        self.frequency += other.frequency;
        self.successes += other.successes;
        self.failures += other.failures;
    }

    /// The share of successes of all outcomes, and its lower bound by Wilson; none before the first.
    pub fn rates(&self) -> (Option<f64>, Option<f64>) {
        let (successes, outcomes) = (self.successes as f64, (self.successes + self.failures) as f64);
        match outcomes > 0.0 {
            true => (Some(successes / outcomes), Some(wilson(successes, outcomes))),
            false => (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::base;
    use crate::knowledge::rank::standing;
    use crate::knowledge::test_support::{at, pattern};
    use crate::provider::builtin::language::Language;

    #[test]
    fn figures_are_of_what_happened_and_add_up() {
        let mut learned = pattern("python", "VARIABLE < None", "VARIABLE is None");
        learned.counts.values_mut().for_each(|count| (count.successes, count.failures) = (8, 2));
        let muted = Pattern { muted: true, ..learned.clone() };
        let untouched = &base::patterns(Language::Python)[0];
        let (mut first, mut second) = (Figures::default(), Figures::default());
        for one in [&learned, untouched] {
            first.add(one, &standing(one, at(0)));
        }
        second.add(&muted, &standing(&muted, at(0)));
        assert_eq!((first.patterns, first.base, first.learned, first.mistakes), (2, 1, 1, 2));
        assert_eq!((first.frequency, first.successes, first.failures), (1, 8, 2), "what came along nobody has seen");
        assert_eq!((second.muted, second.used, second.watched), (1, 0, 0));
        assert_eq!(first.rates().0, Some(0.8));
        first.merge(&second);
        assert_eq!((first.patterns, first.muted, first.successes, first.frequency), (3, 1, 16, 2));
        assert_eq!(Figures::default().rates(), (None, None));
    }
}
