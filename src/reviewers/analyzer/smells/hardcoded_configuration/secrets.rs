//! Recognizes secrets by the shapes of providers' keys, or by a name and the entropy of the text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Match, Regex};

use super::super::syntax::has_word;
use super::HardcodedConfigurationLimits;

/// A secret in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Secret<'a> {
    /// First byte in the file.
    pub start: usize,
    pub text: &'a str,
    /// Label for people: "an AWS access key".
    pub label: &'static str,
    /// Name that the code gives it; empty if unknown.
    pub name: &'a str,
    /// Recognized by its shape or its position in a URL, not by its name.
    pub certain: bool,
    /// Has the shape of a provider's key, which is reported in test code too.
    pub by_shape: bool,
}

impl Secret<'_> {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.start + other.text.len() && other.start < self.start + self.text.len()
    }
}

/// Shapes of keys, as (label, pattern), from the providers' documentation and the rules of gitleaks.
const KEY_SHAPES: [(&str, &str); 15] = [
    ("an AWS access key", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    ("a GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{60,255}\b"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}\b"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}"),
    ("a Slack webhook", r"https://hooks\.slack\.com/services/T[A-Z0-9]{7,}/B[A-Z0-9]{7,}/[A-Za-z0-9]{20,}"),
    ("a Stripe key", r"\b[sr]k_live_[A-Za-z0-9]{16,}\b"),
    ("a Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9]{2,10}-[A-Za-z0-9_-]{40,}"),
    ("an OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_]*[A-Za-z0-9]{20,}[A-Za-z0-9_-]*"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{60,}"),
    ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s|[A-Za-z0-9+/=:,-])*"),
    ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
];

/// All shapes in one pattern, with one group each: one search per file.
static ANY_KEY_SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    let all: Vec<String> = KEY_SHAPES.iter().map(|(_, pattern)| format!("((?-u){pattern})")).collect();
    // The patterns are constants and a test compiles them. The fallback matches nothing.
    Regex::new(&all.join("|")).or_else(|_| Regex::new("[^\\s\\S]")).unwrap_or_else(|_| unreachable!("a constant"))
});

/// Texts of which every key contains one. Most files contain none, so they need no search for the shapes.
static KEY_PREFIXES: LazyLock<Regex> = LazyLock::new(|| {
    let hints = "AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hooks\\.slack|k_live_|AIza|npm_|sk-|SG\\.|pypi-|PRIVATE KEY|eyJ";
    Regex::new(hints).unwrap_or_else(|_| unreachable!("a constant"))
});

/// Minimum length of a private key block that contains a key and not only the first line, in bytes.
const MIN_KEY_BLOCK_BYTES: usize = 90;
/// Minimum entropy of a key, in bits per character. Below it even the right shape is an example (`sk_live_xxxxxxxx`).
const MIN_SHAPE_ENTROPY: f64 = 2.8;

/// Minimum length from which a text of mixed characters counts as random and is not shown, in bytes. Own choice.
const MIN_RANDOM_CHARS: usize = 10;
/// Minimum entropy of such a text, in bits per character. Own choice.
const MIN_RANDOM_ENTROPY: f64 = 3.2;

/// Returns the label and the position of a match of [`ANY_KEY_SHAPE`].
fn classify_match<'a>(found: &Captures<'a>) -> Option<(&'static str, Match<'a>)> {
    let (number, part) = (1..found.len()).find_map(|number| Some((number - 1, found.get(number)?)))?;
    KEY_SHAPES.get(number).map(|(sort, _)| (*sort, part))
}

/// Finds every text with the shape of a key, in order, including examples and placeholders. Private keys are skipped,
/// because their shape includes the text after them.
pub(super) fn find_key_shapes(text: &[u8]) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    let mut at = if KEY_PREFIXES.is_match(text) { 0 } else { text.len() };
    std::iter::from_fn(move || {
        while at < text.len() {
            let (sort, part) = classify_match(&ANY_KEY_SHAPE.captures_at(text, at)?)?;
            if part.as_bytes().starts_with(b"-----") {
                at = part.start() + 1;
                continue;
            }
            at = part.end();
            return Some((part.range(), sort));
        }
        None
    })
}

/// Finds the secrets in a text by their shape, in order, without examples and placeholders.
pub(super) fn find_by_shape(text: &[u8]) -> impl Iterator<Item = Secret<'_>> {
    let any = KEY_PREFIXES.is_match(text).then(|| ANY_KEY_SHAPE.captures_iter(text));
    any.into_iter().flatten().filter_map(|found| {
        let (sort, part) = classify_match(&found)?;
        let text = std::str::from_utf8(part.as_bytes()).ok()?.trim_end();
        let is_block = text.starts_with("-----");
        if is_block && text.len() < MIN_KEY_BLOCK_BYTES {
            return None;
        }
        let random = text.rsplit(['_', '-', '/', '.']).next().filter(|last| last.len() >= 16).unwrap_or(text);
        let digits = text.bytes().any(|byte| byte.is_ascii_digit());
        let upper = text.bytes().filter(u8::is_ascii_uppercase).count() > 1;
        // Words joined by hyphens (`sk-learn-something`) have neither digits nor capitals.
        let looks_random = is_block || sort != "an OpenAI key" || (digits && upper);
        (looks_random && shannon_entropy(random) >= MIN_SHAPE_ENTROPY && !is_placeholder(text)).then_some(Secret {
            start: part.start(),
            text,
            label: sort,
            name: "",
            certain: true,
            by_shape: true,
        })
    })
}

/// Words that mark a name as the name of a secret.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "pwd",
    "privatekey",
    "accesskey",
    "authkey",
];
/// Words that mark a name as the name of a secret together with `key`.
const KEY_WORDS: &[&str] =
    &["api", "secret", "private", "access", "auth", "encryption", "signing", "master", "session"];
/// Words that mark a name as a description of a secret, not its value.
const DESCRIPTIVE_WORDS: &[&str] = &[
    "name",
    "field",
    "label",
    "header",
    "url",
    "uri",
    "path",
    "file",
    "type",
    "kind",
    "prefix",
    "suffix",
    "regex",
    "pattern",
    "hint",
    "placeholder",
    "message",
    "msg",
    "error",
    "help",
    "description",
    "title",
    "text",
    "id",
    "identifier",
    "address",
    "contract",
    "param",
    "parameter",
    "env",
    "var",
    "endpoint",
    "policy",
    "format",
    "length",
    "min",
    "max",
    "csrf",
    "cookie",
    "input",
    "selector",
    "class",
    "command",
    "lexer",
    "parser",
    "next",
    "end",
    "start",
    "reset",
];

/// Returns whether a name may be the name of a secret.
pub(super) fn is_possible_secret_name(name: &str) -> bool {
    has_word(name, SECRET_WORDS) || (has_word(name, &["key"]) && has_word(name, KEY_WORDS))
}

/// Returns whether a text may be a secret, if it had the name of a secret.
pub(super) fn is_possible_secret(text: &str, limits: &HardcodedConfigurationLimits) -> bool {
    // The limits for a password are the lowest.
    is_secret_value(text, true, limits)
}

/// Returns whether a text with this name is a secret.
pub(super) fn is_secret(name: &str, text: &str, limits: &HardcodedConfigurationLimits) -> bool {
    if !is_possible_secret_name(name) || has_word(name, DESCRIPTIVE_WORDS) || is_echo_of_name(name, text) {
        return false;
    }
    is_secret_value(text, has_word(name, &["password", "passwd", "pwd", "passphrase"]), limits)
}

fn is_secret_value(text: &str, is_password: bool, limits: &HardcodedConfigurationLimits) -> bool {
    // People's passwords are shorter than keys and have less entropy.
    let min_length = if is_password {
        (limits.min_secret_length as usize * 2).div_ceil(3)
    } else {
        limits.min_secret_length as usize
    };
    if text.chars().count() < min_length || text.contains(NON_SECRET_CHARS) || is_placeholder(text) {
        return false;
    }
    // Exclude paths, URLs and names made of words.
    if text.contains("://") || text.starts_with(['/', '.', '#', '%', '@']) || is_identifier(text) {
        return false;
    }
    let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let min = if hex { limits.min_hex_entropy } else { limits.min_entropy };
    let min = if is_password { min.min(limits.min_password_entropy) } else { min };
    shannon_entropy(text) >= min
}

/// Characters of sentences, markup and templates, which no secret contains.
pub(super) const NON_SECRET_CHARS: [char; 6] = [' ', '\n', '<', '{', '(', '$'];

/// Returns whether a text only repeats its name, as in `oauth2Token = "oauth2_token"`: the name of a value that comes
/// later.
fn is_echo_of_name(name: &str, text: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    is_name && (letters(text) == letters(name) || letters(text) == letters(last))
}

/// Returns whether a text is made of words and not of random characters: `auth.token.missing`, `access_token`,
/// `X-Api-Key`.
fn is_identifier(text: &str) -> bool {
    let classes = [
        text.bytes().any(|byte| byte.is_ascii_lowercase()),
        text.bytes().any(|byte| byte.is_ascii_uppercase()),
        text.bytes().any(|byte| byte.is_ascii_digit()),
        text.bytes().any(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')),
    ];
    // Words have neither digits nor characters that are unusual in identifiers.
    !classes[2] && !classes[3]
}

/// Words of texts that are placeholders for a secret.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "example",
    "your-",
    "your_",
    "yourapi",
    "dummy",
    "sample",
    "insert",
    "replace",
    "xxxx",
    "****",
    "todo",
    "redacted",
    "not-a-real",
    "notreal",
    "fake",
    "test",
    "foobar",
    "secret_key_here",
    "12345678",
    "abcdefgh",
    "lorem",
    "process.env",
    "getenv",
    "environ",
    "undefined",
];

pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = text.get(..text.len().min(200)).unwrap_or(text).to_ascii_lowercase();
    let same = lower.bytes().next().is_some_and(|first| lower.bytes().all(|byte| byte == first));
    same || PLACEHOLDERS.iter().any(|word| lower.contains(word))
        || text.starts_with(['<', '$', '%', '{'])
        || text.contains("${")
}

/// Returns whether a text mixes lower-case letters, upper-case letters and digits without spaces, with high entropy: it
/// is not for people.
pub(super) fn is_random_looking(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.as_bytes().iter().any(test);
    text.len() >= MIN_RANDOM_CHARS
        && !text.contains(' ')
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && shannon_entropy(text) >= MIN_RANDOM_ENTROPY
}

/// Returns the Shannon entropy of the bytes, in bits per byte (per character of an ASCII text).
pub(super) fn shannon_entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len().max(1) as f64;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) / length)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        for (sort, pattern) in KEY_SHAPES {
            assert!(Regex::new(pattern).is_ok(), "{sort}");
        }
        assert_eq!(ANY_KEY_SHAPE.captures_len(), KEY_SHAPES.len() + 1);
    }
}
