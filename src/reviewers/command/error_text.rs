//! Makes the error messages of programs fit to be shown, and gives advice for each class.
//!
//! Invariant: a message is one line of bounded length, without control characters and without keys. Text that looks
//! like a key, and values of environment variables with the name of a key, are masked.

use std::ffi::OsString;

use super::dialect::AgentDialect;
use crate::domain::{ErrorClass, text};

/// Maximum length of a program's words in an error message.
const MAX_MESSAGE_CHARS: usize = 300;
/// Maximum size of the standard error that is kept.
pub const MAX_STDERR_BYTES: usize = 64 * 1024;
/// Minimum length of a masked value. Shorter values are no keys, and masking them would hide ordinary words.
const MIN_KEY_BYTES: usize = 8;
/// Prefixes of well-known keys.
const KEY_PREFIXES: [&str; 8] = ["sk-", "AIza", "ghp_", "gho_", "glpat-", "xox", "eyJ", "Bearer "];

/// Returns what the user can do about the error.
pub fn advice(class: ErrorClass, dialect: &dyn AgentDialect) -> &'static str {
    match class {
        ErrorClass::Auth => dialect.login_advice(),
        ErrorClass::Quota => "look at the account's plan, or review with another reviewer",
        ErrorClass::RateLimit | ErrorClass::Overloaded => "try again later, or review with another reviewer",
        ErrorClass::ContextTooLong => "review less at once, or with a model that has a larger window",
        ErrorClass::Network => "see whether this machine reaches the provider (proxy, certificates)",
        ErrorClass::Configuration if !dialect.writes_events() => "look at `command` in its settings",
        ErrorClass::Configuration => "look at `command` and `model` in its settings, and update the program",
        ErrorClass::Malformed if dialect.writes_events() => "try again, and update the program when it happens again",
        _ => "run it by hand to see more",
    }
}

/// Makes the words one line without control characters, cut to [`MAX_MESSAGE_CHARS`].
pub fn to_one_line(words: &str) -> String {
    let line = text::sanitize_line(words.trim());
    let mut short: String = line.chars().take(MAX_MESSAGE_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Returns the most informative line of standard error: the first line that begins with "error" or "fatal", otherwise
/// the first line that is no warning.
pub fn find_error_line(errors: &[u8]) -> Option<String> {
    let errors = String::from_utf8_lossy(errors);
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = |line: &str, words: &[&str]| {
        let line = line.trim_start_matches(|c: char| !c.is_alphabetic()).to_lowercase();
        words.iter().any(|word| line.starts_with(word))
    };
    lines()
        .find(|line| begins(line, &["error", "fatal"]))
        .or_else(|| lines().find(|line| !begins(line, &["warn", "debug", "info"])))
        .or_else(|| lines().next())
        .map(str::to_owned)
}

/// Masks keys: words with a known prefix, and the values of variables with the name of a key.
pub fn mask_keys(words: &str, environment: &[(OsString, OsString)]) -> String {
    let mut masked = words.to_owned();
    for (name, value) in environment {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let is_key = ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.to_ascii_uppercase().contains(word));
        if is_key && value.len() >= MIN_KEY_BYTES {
            masked = masked.replace(value, "…");
        }
    }
    for beginning in KEY_PREFIXES {
        masked = mask_prefixed(&masked, beginning);
    }
    masked
}

fn mask_prefixed(words: &str, beginning: &str) -> String {
    let mut masked = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find(beginning) {
        let (before, found) = rest.split_at(at);
        let of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
        let length = beginning.len()
            + found.get(beginning.len()..).map_or(0, |key| key.find(|c| !of_key(c)).unwrap_or(key.len()));
        let (key, after) = found.split_at(length);
        let in_word = before.chars().next_back().is_some_and(char::is_alphanumeric);
        masked.push_str(before);
        masked.push_str(if !in_word && key.len() >= beginning.len() + MIN_KEY_BYTES { "…" } else { key });
        rest = after;
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Warning: 256 colours\nWARNING: proceeding\nno such file\nError: it broke\n", Some("Error: it broke"))]
    #[case("Warning: 256 colours\n\n  it broke \nmore\n", Some("it broke"))]
    #[case("Warning: 256 colours\n", Some("Warning: 256 colours"))]
    #[case("\n \n", None)]
    fn the_line_that_tells_most(#[case] errors: &str, #[case] line: Option<&str>) {
        assert_eq!(find_error_line(errors.as_bytes()).as_deref(), line);
    }

    #[test]
    fn keys_are_masked() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let environment =
            [pair("MY_API_KEY", "0123456789abcdef"), pair("SHORT_KEY", "key"), pair("HOME", "/home/somebody")];
        for (words, masked) in [
            ("Incorrect API key provided: sk-proj-abcd1234.", "Incorrect API key provided: …"),
            ("sent 0123456789abcdef to /home/somebody", "sent … to /home/somebody"),
            ("a key and a task-management-thing", "a key and a task-management-thing"),
            ("AIzaSyA1234567890 and AIzaSyB1234567890", "… and …"),
            ("the sk-", "the sk-"),
        ] {
            assert_eq!(mask_keys(words, &environment), masked);
        }
    }

    #[test]
    fn words_become_one_short_harmless_line() {
        let line = to_one_line(&format!("\x1b[31mred\x1b[0m\nnext {}", "x".repeat(1000)));
        assert!(line.starts_with("\u{fffd}[31mred\u{fffd}[0m next x") && line.ends_with('…'), "{line}");
        assert_eq!(line.chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
