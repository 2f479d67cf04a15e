//! Computes totals over patterns.

use serde::Serialize;

use super::cache::LanguageKnowledge;
use super::pattern::{Pattern, PatternOrigin, PatternStance};
use super::rank::{PatternAssessment, PatternState, assess_pattern};
use crate::domain::{Time, wilson_lower_bound};

/// Totals of one language or of all languages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KnowledgeTotals {
    pub patterns: usize,
    pub mistakes: usize,
    pub false_alarms: usize,
    pub learned: usize,
    pub base: usize,
    pub imported: usize,
    /// Muted patterns count neither as used nor as watched.
    pub used: usize,
    pub watched: usize,
    pub muted: usize,
    pub forgotten: usize,
    /// Number of finding kinds that are lowered.
    pub kinds: usize,
    /// Sum over the patterns of the sightings on the machine that saw the pattern most.
    pub frequency: u64,
    pub successes: u64,
    pub failures: u64,
}

impl KnowledgeTotals {
    /// Counts what is known about a language, with the state of each pattern at `now`.
    pub fn from_language(known: &LanguageKnowledge, now: Time) -> Self {
        let kinds = known.kinds.values().filter(|tally| tally.lowering_dismissals().is_some()).count();
        let mut totals = Self { forgotten: known.forgotten.len(), kinds, ..Self::default() };
        for pattern in &known.patterns {
            totals.add(pattern, &assess_pattern(pattern, now));
        }
        totals
    }

    pub fn add(&mut self, pattern: &Pattern, standing: &PatternAssessment) {
        self.patterns += 1;
        *match pattern.stance {
            PatternStance::Mistake => &mut self.mistakes,
            PatternStance::FalseAlarm => &mut self.false_alarms,
        } += 1;
        *match pattern.origin {
            PatternOrigin::Learned => &mut self.learned,
            PatternOrigin::Base => &mut self.base,
            PatternOrigin::Imported => &mut self.imported,
        } += 1;
        match standing.state(pattern) {
            PatternState::Muted => self.muted += 1,
            PatternState::Used => self.used += 1,
            PatternState::Watched => self.watched += 1,
            PatternState::NotUsed => {}
        }
        let count = pattern.total_count();
        self.frequency += u64::from(pattern.times_seen());
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

    /// Returns the share of successes among all outcomes and its lower bound (Wilson); `None` without outcomes.
    pub fn rates(&self) -> (Option<f64>, Option<f64>) {
        let (successes, outcomes) = (self.successes as f64, (self.successes + self.failures) as f64);
        match outcomes > 0.0 {
            true => (Some(successes / outcomes), Some(wilson_lower_bound(successes, outcomes))),
            false => (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::builtin_patterns;
    use crate::knowledge::rank::assess_pattern;
    use crate::knowledge::test_support::{sample_pattern, time_at_day};
    use crate::syntax::language::Language;

    #[test]
    fn figures_are_of_what_happened_and_add_up() {
        let mut learned = sample_pattern("python", "VARIABLE < None", "VARIABLE is None");
        learned.counts.values_mut().for_each(|count| (count.successes, count.failures) = (8, 2));
        let muted = Pattern { muted: true, ..learned.clone() };
        let untouched = &builtin_patterns::patterns(Language::Python)[0];
        let (mut first, mut second) = (KnowledgeTotals::default(), KnowledgeTotals::default());
        for one in [&learned, untouched] {
            first.add(one, &assess_pattern(one, time_at_day(0)));
        }
        second.add(&muted, &assess_pattern(&muted, time_at_day(0)));
        assert_eq!((first.patterns, first.base, first.learned, first.mistakes), (2, 1, 1, 2));
        assert_eq!((first.frequency, first.successes, first.failures), (1, 8, 2), "what came along nobody has seen");
        assert_eq!((second.muted, second.used, second.watched), (1, 0, 0));
        assert_eq!(first.rates().0, Some(0.8));
        first.merge(&second);
        assert_eq!((first.patterns, first.muted, first.successes, first.frequency), (3, 1, 16, 2));
        assert_eq!(KnowledgeTotals::default().rates(), (None, None));
    }
}
