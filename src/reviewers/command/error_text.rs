//! Classifies the error messages of programs and gives advice for each class.
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

/// Phrases in agents' error messages. The first match decides. A number matches only if no letter or digit is next to
/// it.
const ERROR_PHRASES: [(&[&str], ErrorClass); 8] = [
    (&["quota", "billing", "credit balance", "usage limit", "402"], ErrorClass::Quota),
    (&["rate limit", "rate_limit", "too many requests", "429", "resource_exhausted"], ErrorClass::RateLimit),
    (
        &["too long", "context window", "context length", "context_length", "input token count", "maximum context"],
        ErrorClass::ContextTooLong,
    ),
    (
        &[
            "not logged in",
            "/login",
            "log in",
            "codex login",
            "api key",
            "api_key",
            "auth method",
            "authentication",
            "unauthenticated",
            "unauthorized",
            "credentials",
            "401",
            "403",
        ],
        ErrorClass::Auth,
    ),
    (
        &[
            "unexpected argument",
            "unknown option",
            "unknown argument",
            "unknown arguments",
            "invalid values",
            "invalid value",
            "error loading config",
            "trusted directory",
            "model not found",
            "model_not_found",
            "not supported",
            "404",
        ],
        ErrorClass::Configuration,
    ),
    (
        &["overloaded", "high demand", "at capacity", "service unavailable", "500", "502", "503", "504", "529"],
        ErrorClass::Overloaded,
    ),
    (
        &[
            "network",
            "connect",
            "disconnected",
            "lookup",
            "dns",
            "econn",
            "enotfound",
            "etimedout",
            "certificate",
            "fetch failed",
            "sending request",
        ],
        ErrorClass::Network,
    ),
    (&["parse json", "unexpected token", "malformed"], ErrorClass::Malformed),
];

/// Classifies an agent's error message; `status` is the HTTP status, or 0 if unknown.
pub fn classify(status: u64, words: &str) -> ErrorClass {
    let by_words = || {
        let words = words.to_lowercase();
        ERROR_PHRASES
            .iter()
            .find(|(signs, _)| signs.iter().any(|sign| has_phrase(&words, sign)))
            .map(|(_, class)| *class)
    };
    match status {
        401 | 403 => ErrorClass::Auth,
        402 => ErrorClass::Quota,
        // Providers also use 429 for an account without credit.
        429 => by_words().filter(|class| *class == ErrorClass::Quota).unwrap_or(ErrorClass::RateLimit),
        500..=599 => ErrorClass::Overloaded,
        413 => ErrorClass::ContextTooLong,
        _ => by_words().unwrap_or(ErrorClass::Reviewer),
    }
}

fn has_phrase(words: &str, sign: &str) -> bool {
    let is_number = sign.bytes().all(|byte| byte.is_ascii_digit());
    words.match_indices(sign).any(|(at, _)| {
        let is_apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        let (before, after) = (words.get(..at), words.get(at + sign.len()..));
        !is_number
            || is_apart(before.and_then(|text| text.chars().next_back()))
                && is_apart(after.and_then(|text| text.chars().next()))
    })
}

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
    // Messages that the agents wrote for such answers of a fake provider.
    #[case(0, "Not logged in · Please run /login", ErrorClass::Auth)]
    #[case(0, "Invalid API key · Fix external API key", ErrorClass::Auth)]
    #[case(0, "unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1/v1", ErrorClass::Auth)]
    #[case(0, "Missing environment variable: `OPENAI_API_KEY`.", ErrorClass::Auth)]
    #[case(0, "Please set an Auth method in your settings.json or specify one of", ErrorClass::Auth)]
    #[case(0, "[API Error: {\"error\":{\"code\":401,\"message\":\"invalid\"}}]", ErrorClass::Auth)]
    #[case(0, "exceeded retry limit, last status: 429 Too Many Requests", ErrorClass::RateLimit)]
    #[case(429, "API Error: Request rejected (429) · Rate limit reached for requests", ErrorClass::RateLimit)]
    #[case(429, "You've hit your usage limit", ErrorClass::Quota)]
    #[case(0, "Quota exceeded. Check your plan and billing details.", ErrorClass::Quota)]
    #[case(
        0,
        "{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
        ErrorClass::ContextTooLong
    )]
    #[case(400, "Prompt is too long · the request is ~210000 tokens", ErrorClass::ContextTooLong)]
    #[case(529, "API Error: 529 Overloaded.", ErrorClass::Overloaded)]
    #[case(0, "unexpected status 529 <unknown status code>: Overloaded", ErrorClass::Overloaded)]
    #[case(0, "stream disconnected before completion: failed to lookup address information", ErrorClass::Network)]
    #[case(0, "error: unexpected argument '--ephemeral' found", ErrorClass::Configuration)]
    #[case(0, "Gemini CLI is not running in a trusted directory.", ErrorClass::Configuration)]
    #[case(0, "API Error: Failed to parse JSON", ErrorClass::Malformed)]
    // Digits inside longer numbers do not count.
    #[case(0, "request id: req-4290401 failed", ErrorClass::Reviewer)]
    #[case(0, "segmentation fault", ErrorClass::Reviewer)]
    fn words_have_a_class(#[case] status: u64, #[case] words: &str, #[case] class: ErrorClass) {
        assert_eq!(classify(status, words), class);
    }

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
