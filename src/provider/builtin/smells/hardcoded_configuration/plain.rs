//! Secrets by their name, and passwords in addresses, in texts that are not parsed: settings, data, prose, comments.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{addresses, secrets};
use crate::provider::builtin::limits::Limits;

/// What may stand for a value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Only what is in quotes, as in code.
    Quoted,
    /// Words without quotes as well, as in settings.
    Any,
}

/// A name that may be a secret's, a sign that gives it a value, and the value: in quotes of either sort or without.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"[A-Za-z0-9_.-]{0,60}(?i:pass|pwd|secret|token|key|credential)[A-Za-z0-9_.-]{0,60}";
    let value = r#""([^"\n]{8,400})"|'([^'\n]{8,400})'|([^\s"'`,;#<>{}()\[\]&]{8,400})"#;
    Regex::new(&format!(r#"({name})["']?[ \t]*(?::|=>?)[ \t]*(?:{value})"#))
        .unwrap_or_else(|_| unreachable!("a constant"))
});

static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let address = r#"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s"'`<>/?#]{3,400}@[^\s"'`<>]{1,300}"#;
    Regex::new(address).unwrap_or_else(|_| unreachable!("a constant"))
});

/// Secrets by their name and passwords in addresses: their bytes, and what each is; in no particular order.
pub fn named(text: &str, values: Values) -> Vec<(Range<usize>, &'static str)> {
    static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(pair) = PAIR.captures_at(text, at) {
        let Some(name) = pair.get(1) else { break };
        // What is no secret's value may hold a name and a value of its own: `url=x?token=y`.
        at = name.end();
        let value = pair.get(2).or(pair.get(3)).or_else(|| pair.get(4).filter(|_| values == Values::Any));
        let Some(value) = value else { continue };
        if secrets::is_secret(name.as_str(), value.as_str(), &LIMITS.hardcoded_configuration) {
            found.push((value.range(), "a secret"));
            at = value.end();
        }
    }
    for address in ADDRESS.find_iter(text) {
        if let Some(password) = addresses::credentials(address.as_str()) {
            let start = password.as_ptr() as usize - text.as_ptr() as usize;
            found.push((start..start + password.len(), "a password in an address"));
        }
    }
    found
}
