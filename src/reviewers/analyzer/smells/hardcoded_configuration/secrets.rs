//! Recognizes secrets by the shapes of providers' keys, or by a name and the entropy of the text.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::super::syntax::has_word;
use super::HardcodedConfigurationLimits;
use crate::secrets::{DESCRIPTIVE_WORDS, RuleMatch, is_echo_of_name, is_identifier};
pub(super) use crate::secrets::{is_placeholder, is_possible_secret_name, shannon_entropy};

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

/// A block with a private key, as far as Base64 goes.
static PRIVATE_KEY_BLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s|[A-Za-z0-9+/=:,-])*")
        .unwrap_or_else(|_| unreachable!("a constant"))
});
const PRIVATE_KEY_LABEL: &str = "a private key";
/// Rule whose pattern also matches words that are joined by hyphens.
const OPENAI_RULE: &str = "openai-key";

/// Minimum length of a private key block that contains a key and not only the first line, in bytes.
const MIN_KEY_BLOCK_BYTES: usize = 90;
/// Minimum entropy of a key, in bits per character. Below it even the right shape is an example (`sk_live_xxxxxxxx`).
const MIN_SHAPE_ENTROPY: f64 = 2.8;

/// Minimum length from which a text of mixed characters counts as random and is not shown, in bytes. Own choice.
const MIN_RANDOM_CHARS: usize = 10;
/// Minimum entropy of such a text, in bits per character. Own choice.
const MIN_RANDOM_ENTROPY: f64 = 3.2;

/// Finds the secrets in a text by their shape, in order, without examples and placeholders.
pub(super) fn find_by_shape(text: &[u8]) -> Vec<Secret<'_>> {
    select_by_shape(text, crate::secrets::find_reported(text))
}

/// Selects the secrets among the keys that rules found in a text, and adds private keys. The keys must be in order and
/// apart.
pub(super) fn select_by_shape(text: &[u8], keys: Vec<RuleMatch>) -> Vec<Secret<'_>> {
    let blocks = memmem::find(text, b"PRIVATE KEY").map(|_| PRIVATE_KEY_BLOCK.find_iter(text));
    let blocks = blocks.into_iter().flatten().map(|block| (block.range(), PRIVATE_KEY_LABEL, ""));
    let keys = keys.into_iter().map(|key| (key.range, key.label, key.rule));
    let mut all: Vec<_> = blocks.chain(keys).collect();
    all.sort_by_key(|(range, ..)| range.start);
    let mut end = 0;
    all.retain(|(range, ..)| {
        let is_apart = range.start >= end;
        end = end.max(range.end);
        is_apart
    });
    all.into_iter().filter_map(|(range, label, rule)| build_shaped_secret(text, range, label, rule)).collect()
}

/// Returns the secret in a match of a shape; `None` for an example or a placeholder.
fn build_shaped_secret<'a>(
    text: &'a [u8],
    range: Range<usize>,
    label: &'static str,
    rule: &'static str,
) -> Option<Secret<'a>> {
    let start = range.start;
    let text = std::str::from_utf8(text.get(range)?).ok()?.trim_end();
    let is_block = text.starts_with("-----");
    if is_block && text.len() < MIN_KEY_BLOCK_BYTES {
        return None;
    }
    let random = text.rsplit(['_', '-', '/', '.']).next().filter(|last| last.len() >= 16).unwrap_or(text);
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let upper = text.bytes().filter(u8::is_ascii_uppercase).count() > 1;
    // Words joined by hyphens (`sk-learn-something`) have neither digits nor capitals.
    let looks_random = is_block || rule != OPENAI_RULE || (digits && upper);
    let is_key = looks_random && shannon_entropy(random) >= MIN_SHAPE_ENTROPY && !is_placeholder(text);
    is_key.then_some(Secret { start, text, label, name: "", certain: true, by_shape: true })
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
