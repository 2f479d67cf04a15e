//! Provides patterns and times for tests.

use super::form::Form;
use super::pattern::{EditKind, Pattern, PatternCount, PatternEvidence, PatternStance};
use crate::domain::{Kind, Time};

/// Returns the time `days` days after November 1, 2026.
pub fn time_at_day(days: i64) -> Time {
    Time::from_second(1_793_491_200 + days * 86_400).expect("a moment")
}

/// Returns a pattern that one machine has seen once.
pub fn sample_pattern(language: &str, broken: &str, fixed: &str) -> Pattern {
    let [broken, fixed]: [Form; 2] = [broken, fixed].map(|text| text.parse().expect("a form"));
    let here = PatternCount { frequency: 1, ..PatternCount::default() };
    Pattern {
        evidence: PatternEvidence::Addressed,
        counts: [("m_1".to_owned(), here)].into(),
        here,
        first_seen: time_at_day(-10),
        last_seen: time_at_day(0),
        ..Pattern::from_forms(language, PatternStance::Mistake, EditKind::Other, Kind::Correctness, &broken, &fixed)
    }
}
