//! Patterns and moments for tests.

use super::form::Form;
use super::pattern::{Count, EditKind, Evidence, Pattern, Stance};
use crate::domain::{Kind, Time};

/// So many days after the first of November 2026.
pub fn at(days: i64) -> Time {
    Time::from_second(1_793_491_200 + days * 86_400).expect("a moment")
}

/// A pattern that one machine has seen once.
pub fn pattern(language: &str, broken: &str, fixed: &str) -> Pattern {
    let [broken, fixed]: [Form; 2] = [broken, fixed].map(|text| text.parse().expect("a form"));
    let here = Count { frequency: 1, ..Count::default() };
    Pattern {
        evidence: Evidence::Addressed,
        counts: [("m_1".to_owned(), here)].into(),
        here,
        first_seen: at(-10),
        last_seen: at(0),
        ..Pattern::of(language, Stance::Mistake, EditKind::Other, Kind::Correctness, &broken, &fixed)
    }
}
