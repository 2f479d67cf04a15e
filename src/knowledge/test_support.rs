//! Patterns and moments for tests.

use std::collections::BTreeMap;

use super::form::Form;
use super::pattern::{Count, EditKind, Evidence, Origin, Pattern, Stance};
use super::words;
use crate::domain::{Kind, PatternId, Time};

/// So many days after the first of November 2026.
pub fn at(days: i64) -> Time {
    Time::from_second(1_793_491_200 + days * 86_400).expect("a moment")
}

/// A pattern that one machine has seen once.
pub fn pattern(language: &str, broken: &str, fixed: &str) -> Pattern {
    let [one, other]: [Form; 2] = [broken, fixed].map(|text| text.parse().expect("a form"));
    let (stance, edit, kind) = (Stance::Mistake, EditKind::Other, Kind::Correctness);
    Pattern {
        id: PatternId::of(language, broken, fixed),
        language: language.to_owned(),
        stance,
        edit,
        kind,
        description: words::description(stance, edit, kind, &one, &other),
        broken: broken.to_owned(),
        fixed: fixed.to_owned(),
        instruction: words::instruction(stance, edit, kind, &one, &other),
        evidence: Evidence::Addressed,
        origin: Origin::Learned,
        counts: BTreeMap::from([("m_1".to_owned(), Count { frequency: 1, successes: 0, failures: 0 })]),
        here: Count { frequency: 1, successes: 0, failures: 0 },
        first_seen: at(-10),
        last_seen: at(0),
        last_matched: None,
        months: BTreeMap::new(),
        related: Vec::new(),
        group: None,
        muted: false,
    }
}
