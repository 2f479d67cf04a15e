//! Maps the words of models to kinds, severities, priorities and confidences.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::domain::{Confidence, Kind, Priority, Severity};

/// Maximum number of words that are read. Not from the literature: a name has fewer.
const MAX_NAME_WORDS: usize = 8;

static KIND_BY_NAME: LazyLock<BTreeMap<String, Kind>> = LazyLock::new(|| {
    let own = Kind::ALL.iter().map(|&kind| (fold_name(kind.word()), kind));
    let others = Kind::ALL.iter().flat_map(|&kind| kind.synonyms().iter().map(move |word| ((*word).to_owned(), kind)));
    own.chain(others).collect()
});

/// Keeps only letters and digits, in lower case: `startLine`, `start_line` and `Start line` are the same name.
pub(super) fn fold_name(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(MAX_NAME_WORDS).map(fold_name)
}

/// Returns the kind for a name: the whole name, or else the longest sequence of its words that is a known name
/// (`Security / SQL injection`, `CWE-362: race condition`). Returns `None` for an unknown name.
pub(super) fn parse_kind(name: &str) -> Option<Kind> {
    let words: Vec<String> = split_words(name).collect();
    let rows = (1..=words.len()).rev().flat_map(|length| words.windows(length));
    rows.map(|row| row.concat()).find_map(|row| KIND_BY_NAME.get(&row).copied())
}

pub(super) fn parse_severity(text: &str) -> Option<Severity> {
    split_words(text).find_map(|word| {
        Some(match word.as_str() {
            "critical" | "blocker" | "blocking" | "fatal" | "severe" | "catastrophic" | "urgent" | "p0" => {
                Severity::Critical
            }
            "high" | "major" | "error" | "err" | "serious" | "important" | "danger" | "p1" => Severity::High,
            "medium" | "moderate" | "med" | "warning" | "warn" | "normal" | "p2" => Severity::Medium,
            "low" | "minor" | "info" | "information" | "informational" | "note" | "notice" | "hint" | "trivial"
            | "style" | "suggestion" | "nit" | "nitpick" | "cosmetic" | "optional" | "p3" | "p4" => Severity::Low,
            _ => return None,
        })
    })
}

/// Parses `P1`, `1`, `priority: 1`, or a word for a severity.
pub(super) fn parse_priority(text: &str) -> Option<Priority> {
    let digit = |word: &str| {
        let digit = word.strip_prefix('p').unwrap_or(word);
        digit.parse().ok().map(priority_from_number)
    };
    split_words(text).find_map(|word| digit(&word)).or_else(|| parse_severity(text).map(Severity::priority))
}

/// Converts a number into a priority; greater numbers become the last priority.
pub(super) fn priority_from_number(number: u8) -> Priority {
    Priority::try_from(number).unwrap_or(Priority::P3)
}

pub(super) fn parse_confidence(text: &str) -> Option<Confidence> {
    split_words(text).find_map(|word| {
        Some(match word.as_str() {
            "high" | "certain" | "definite" | "confirmed" | "strong" => Confidence::High,
            "medium" | "moderate" | "likely" | "probable" | "med" => Confidence::Medium,
            "low" | "uncertain" | "unsure" | "possible" | "tentative" | "unlikely" | "guess" | "weak" => {
                Confidence::Low
            }
            _ => return None,
        })
    })
}

/// Converts a score out of 1, 10 or 100 into a confidence.
pub(super) fn confidence_from_score(score: f64) -> Option<Confidence> {
    let part = match score {
        score if (0.0..=1.0).contains(&score) => score,
        score if (1.0..=10.0).contains(&score) => score / 10.0,
        score if (10.0..=100.0).contains(&score) => score / 100.0,
        _ => return None,
    };
    Some(Confidence::from_probability(part))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("LONG_METHOD", Some(Kind::LongMethod))]
    #[case("longMethod", Some(Kind::LongMethod))]
    #[case("Long Method", Some(Kind::LongMethod))]
    #[case("long-method", Some(Kind::LongMethod))]
    #[case("Magic Number", Some(Kind::MagicNumbers))]
    #[case("DuplicatedCode", Some(Kind::DuplicateCode))]
    #[case("god object", Some(Kind::GodClass))]
    #[case("Security / SQL Injection", Some(Kind::Security))]
    #[case("CWE-362: Race Condition", Some(Kind::Concurrency))]
    #[case("Potential race condition in cache", Some(Kind::Concurrency))]
    #[case("missing error handling", Some(Kind::MissingErrorHandling))]
    #[case("error handling", Some(Kind::ErrorHandling))]
    #[case("Missing tests", Some(Kind::Tests))]
    #[case("hard-coded configuration", Some(Kind::HardcodedConfiguration))]
    #[case("latest trace", None)]
    #[case("maintainability", None)]
    #[case("", None)]
    #[case("bug", Some(Kind::Correctness))]
    fn kinds(#[case] name: &str, #[case] expected: Option<Kind>) {
        assert_eq!(parse_kind(name), expected);
    }

    #[test]
    fn every_kind_is_known_by_its_word_and_no_name_stands_for_two() {
        for &each in Kind::ALL {
            assert_eq!(parse_kind(each.word()), Some(each));
            assert_eq!(parse_kind(&each.word().to_lowercase().replace('_', " ")), Some(each));
        }
        let names = Kind::ALL.len() + Kind::ALL.iter().map(|kind| kind.synonyms().len()).sum::<usize>();
        assert_eq!(KIND_BY_NAME.len(), names);
        assert!(KIND_BY_NAME.keys().all(|name| *name == fold_name(name)));
    }

    #[rstest]
    #[case("🔴 Critical", Some(Severity::Critical), Some(Priority::P0))]
    #[case("Blocker", Some(Severity::Critical), Some(Priority::P0))]
    #[case("MAJOR", Some(Severity::High), Some(Priority::P1))]
    #[case("error", Some(Severity::High), Some(Priority::P1))]
    #[case("severity: warning", Some(Severity::Medium), Some(Priority::P2))]
    #[case("info", Some(Severity::Low), Some(Priority::P3))]
    #[case("P1", Some(Severity::High), Some(Priority::P1))]
    #[case("priority 0", None, Some(Priority::P0))]
    #[case("p7", None, Some(Priority::P3))]
    #[case("whatever", None, None)]
    fn how_bad_and_how_soon(#[case] text: &str, #[case] bad: Option<Severity>, #[case] soon: Option<Priority>) {
        assert_eq!((parse_severity(text), parse_priority(text)), (bad, soon));
    }

    #[rstest]
    #[case(0.95, Some(Confidence::High))]
    #[case(0.5, Some(Confidence::Medium))]
    #[case(0.0, Some(Confidence::Low))]
    #[case(7.0, Some(Confidence::Medium))]
    #[case(85.0, Some(Confidence::High))]
    #[case(-1.0, None)]
    #[case(f64::NAN, None)]
    fn scores(#[case] score: f64, #[case] expected: Option<Confidence>) {
        assert_eq!(confidence_from_score(score), expected);
    }
}
