//! Reads the tags of Go's struct fields: pairs of a key and a value, with which libraries are configured for a field.

use std::sync::LazyLock;

use regex::Regex;

/// A key and its value. The quote after the last value may be missing, because it may be trimmed with the quotes of the
/// tag.
static TAG_PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^\s*[A-Za-z_][A-Za-z0-9_.-]*:"((?:[^"\\]|\\.)*)(?:"|$)"#)
        .unwrap_or_else(|_| unreachable!("a constant"))
});
/// Parts of keys whose value is the content of the field, not a description of the field.
const VALUE_KEYS: [&str; 3] = ["default", "example", "value"];

/// Returns the values of a tag that are the content of the field; `None` if the text is not a tag.
pub(super) fn parse_tag_values(text: &str) -> Option<Vec<&str>> {
    let mut held = Vec::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        let pair = TAG_PAIR.captures(rest)?;
        let (whole, value) = (pair.get(0)?, pair.get(1)?);
        let key = rest.get(..value.start()).unwrap_or_default().to_ascii_lowercase();
        if VALUE_KEYS.iter().any(|holds| key.contains(holds)) {
            held.push(value.as_str());
        }
        rest = rest.get(whole.end()..).unwrap_or_default();
    }
    (!text.trim().is_empty()).then_some(held)
}
