//! Tags of Go's struct fields: what libraries are told of a field, by pairs of a key and a value.

use std::sync::LazyLock;

use regex::Regex;

/// A key and what it says; the quote that ends the last one may be taken away with those of the tag.
static TAG_PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^\s*[A-Za-z_][A-Za-z0-9_.-]*:"((?:[^"\\]|\\.)*)(?:"|$)"#)
        .unwrap_or_else(|_| unreachable!("a constant"))
});
/// Keys that say what the field holds, not what it is.
const VALUE_KEYS: [&str; 3] = ["default", "example", "value"];

/// What the field holds by its tag; `None` for what is no tag.
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
