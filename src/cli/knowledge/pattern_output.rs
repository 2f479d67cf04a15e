//! Output of patterns and counted kinds as JSON and text.

use serde_json::{Map, Value, json};

use crate::domain::{Kind, Time};
use crate::knowledge::kind_tallies::KindTally;
use crate::knowledge::pattern::Pattern;
use crate::knowledge::rank;
use crate::knowledge::totals::KnowledgeTotals;
use crate::syntax::language::Language;

/// Converts a pattern to JSON with every documented key, including its current confidence.
pub fn pattern_to_json(pattern: &Pattern, now: Time) -> Value {
    let mut object = match serde_json::to_value(pattern) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (count, standing) = (pattern.total_count(), rank::assess_pattern(pattern, now));
    object.extend(
        [
            ("frequency", json!(pattern.times_seen())),
            ("successes", json!(count.successes)),
            ("failures", json!(count.failures)),
            ("success_rate", json!(standing.success_rate)),
            ("at_least", json!(standing.at_least)),
            ("confidence", json!(standing.confidence)),
            ("recency", json!(standing.recency)),
            ("inclusion", json!(standing.inclusion)),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    // Serialization omits these keys if they are empty; the JSON contract has them always.
    for (key, nothing) in [
        ("last_matched", Value::Null),
        ("months", json!({})),
        ("related", json!([])),
        ("group", Value::Null),
        ("setbacks", json!(0)),
        ("muted", json!(false)),
    ] {
        object.entry(key).or_insert(nothing);
    }
    if pattern.last_seen == Time::UNIX_EPOCH {
        // Patterns that ship with revdeck have no dates until they are seen.
        object.insert("first_seen".to_owned(), Value::Null);
        object.insert("last_seen".to_owned(), Value::Null);
    }
    Value::Object(object)
}

/// Converts totals to JSON with their rates, and with the language unless they are of all languages.
pub fn totals_to_json(figures: &KnowledgeTotals, language: Option<&str>) -> Value {
    let mut value = json!(figures);
    let (success_rate, at_least) = figures.rates();
    (value["success_rate"], value["at_least"]) = (json!(success_rate), json!(at_least));
    if let Some(language) = language {
        value["language"] = language.into();
    }
    value
}

/// Converts the counts of a kind to JSON.
pub fn kind_to_json(language: Language, kind: Kind, tally: &KindTally) -> Value {
    json!({
        "language": language.name(),
        "kind": kind,
        "dismissed": tally.dismissed,
        "addressed": tally.addressed,
        "setbacks": tally.setbacks,
        "lowered": tally.lowering_dismissals().is_some(),
        "muted": tally.muted,
        "last_seen": tally.last_seen,
    })
}

/// Formats the broken and the fixed form on one line.
pub fn format_forms(pattern: &Pattern) -> String {
    match pattern.fixed.as_str() {
        "" => pattern.broken.clone(),
        fixed => format!("{}  ->  {fixed}", pattern.broken),
    }
}

/// Formats a success rate: `80 % of 10 succeeded, at least 49 %`, or `no outcome yet`.
pub fn format_rate(successes: u64, failures: u64, success_rate: Option<f64>, at_least: Option<f64>) -> String {
    match (success_rate, at_least) {
        (Some(rate), Some(bound)) => {
            let outcomes = successes + failures;
            format!("{:.0} % of {outcomes} succeeded, at least {:.0} %", rate * 100.0, bound * 100.0)
        }
        _ => "no outcome yet".to_owned(),
    }
}
