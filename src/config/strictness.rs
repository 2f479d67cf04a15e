//! Compares two values of a threshold by strictness, so that a repository can make a user's value only stricter.
//!
//! The smaller number, the shorter list and `true` are the stricter values, unless the comment above the key in
//! `assets/smells.toml` contains [`MORE_IS_STRICTER_MARK`].

use std::cmp::Ordering;
use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// Text in the comment above a key for which a greater number or a longer list reports more.
const MORE_IS_STRICTER_MARK: &str = "More is stricter.";

/// Direction in which a threshold reports more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StricterDirection {
    Less,
    More,
}

/// Directions of all thresholds, by `group.name`.
pub struct ThresholdStrictness(BTreeMap<String, StricterDirection>);

impl ThresholdStrictness {
    /// Reads the directions from the comments in `text`. The comment of a key is the text between the previous value
    /// and the key; a key without a comment has the direction of the key above it.
    pub fn from_toml(text: &str) -> Self {
        let mut directions = BTreeMap::new();
        let groups = DeTable::parse(text).map(toml::Spanned::into_inner).unwrap_or_default();
        for (group, keys) in &groups {
            let DeValue::Table(keys) = keys.get_ref() else { continue };
            let mut keys: Vec<_> = keys.iter().collect();
            keys.sort_by_key(|(name, _)| name.span().start);
            let (mut end, mut direction) = (group.span().end, StricterDirection::Less);
            for (name, value) in keys {
                let between = text.get(end..name.span().start).unwrap_or_default();
                if between.contains('#') {
                    direction = if between.contains(MORE_IS_STRICTER_MARK) {
                        StricterDirection::More
                    } else {
                        StricterDirection::Less
                    };
                }
                end = value.span().end;
                directions.insert(format!("{}.{}", group.get_ref(), name.get_ref()), direction);
            }
        }
        Self(directions)
    }

    /// Returns true if `theirs` reports less than `own`. Values of different types and unknown keys count as looser,
    /// because nothing is known about them.
    pub fn is_looser(&self, key: &str, theirs: &toml::Value, own: &toml::Value) -> bool {
        use toml::Value::{Array, Boolean};
        let Some(direction) = self.0.get(key) else { return true };
        match (theirs, own) {
            (Boolean(theirs), Boolean(own)) => !theirs & own,
            (Array(theirs), Array(own)) => {
                let (subset, whole) = match direction {
                    StricterDirection::Less => (theirs, own),
                    StricterDirection::More => (own, theirs),
                };
                !subset.iter().all(|item| whole.iter().any(|other| is_equal(item, other)))
            }
            _ => {
                match (
                    as_number(theirs).zip(as_number(own)).and_then(|(theirs, own)| theirs.partial_cmp(&own)),
                    direction,
                ) {
                    (Some(order), StricterDirection::Less) => order == Ordering::Greater,
                    (Some(order), StricterDirection::More) => order == Ordering::Less,
                    (None, _) => true,
                }
            }
        }
    }
}

fn is_equal(one: &toml::Value, other: &toml::Value) -> bool {
    match (as_number(one), as_number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

fn as_number(value: &toml::Value) -> Option<f64> {
    match value {
        toml::Value::Integer(figure) => Some(*figure as f64),
        toml::Value::Float(figure) => Some(*figure),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::config::{embedded, settings_file};

    #[test]
    fn every_threshold_has_a_direction_and_the_marks_are_where_they_are_meant() {
        let strictness = ThresholdStrictness::from_toml(embedded::SMELLS);
        for (group, keys) in settings_file::parse_embedded(embedded::SMELLS) {
            for name in keys.as_table().expect("a table").keys() {
                assert!(strictness.0.contains_key(&format!("{group}.{name}")), "{group}.{name}");
            }
        }
        let more: Vec<&str> = strictness
            .0
            .iter()
            .filter(|(_, it)| **it == StricterDirection::More)
            .map(|(key, _)| key.as_str())
            .collect();
        assert_eq!(
            more,
            [
                "hardcoded_configuration.address_words",
                "hardcoded_configuration.request_words",
                "hardcoded_configuration.service_words",
                "magic_numbers.max_per_function",
                "missing_error_handling.max_unwraps_per_function",
                "tight_coupling.service_words",
            ]
        );
    }

    #[rstest]
    #[case::figure("long_method.max_code_lines", "61", "60", true)]
    #[case::same("long_method.max_code_lines", "60", "60", false)]
    #[case::smaller("long_method.max_code_lines", "40", "60", false)]
    #[case::ratio("grading.high_ratio", "4", "3.5", true)]
    #[case::no_number("grading.high_ratio", "nan", "3.5", true)]
    #[case::cap("magic_numbers.max_per_function", "2", "3", true)]
    #[case::larger_cap("magic_numbers.max_per_function", "9", "3", false)]
    #[case::off("dead_code.enabled", "false", "true", true)]
    #[case::on("dead_code.enabled", "true", "false", false)]
    #[case::allowed_more("magic_numbers.allowed", "[0, 1, 42]", "[0.0, 1.0]", true)]
    #[case::allowed_less("magic_numbers.allowed", "[0]", "[0.0, 1.0]", false)]
    #[case::fewer_words("tight_coupling.service_words", "[\"api\"]", "[\"api\", \"dao\"]", true)]
    #[case::more_words("tight_coupling.service_words", "[\"api\", \"dao\"]", "[\"api\"]", false)]
    #[case::other_sort("dead_code.enabled", "1", "true", true)]
    #[case::unknown("dead_code.none", "true", "true", true)]
    fn looser(#[case] key: &str, #[case] theirs: &str, #[case] own: &str, #[case] expected: bool) {
        let value = |text: &str| {
            let table: toml::Table = format!("it = {text}").parse().expect("TOML");
            table["it"].clone()
        };
        assert_eq!(
            ThresholdStrictness::from_toml(embedded::SMELLS).is_looser(key, &value(theirs), &value(own)),
            expected
        );
    }
}
