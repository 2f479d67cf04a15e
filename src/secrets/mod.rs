//! Detection of secrets in texts, by four means that complete each other:
//!
//! | module | finds |
//! |---|---|
//! | [`rules`] | keys of providers and credentials of clients, by the patterns of `assets/secrets.toml` |
//! | [`assignments`] | values that the text gives to the name of a secret, in any notation |
//! | [`random_tokens`] | random texts without a name |
//! | [`private_keys`], [`manifests`] | texts of several lines: private keys, Kubernetes secrets |
//!
//! Nothing here parses code: a text may be a file, a diff, a command line, a path or a sentence. The analyzer and the masks
//! share this detection; the analyzer reports only what [`rules::find_reported`] finds and what its syntax tree names.

mod assignments;
mod manifests;
mod names;
mod private_keys;
mod random_tokens;
mod rules;
mod tables;
mod values;

use std::ops::Range;

pub use assignments::{NamedValue, find_random_assignments};
pub(crate) use names::{DESCRIPTIVE_WORDS, is_possible_secret_name};
pub use rules::{RuleMatch, find_keys_by_rules, find_reported, select_masked, select_reported};
pub(crate) use values::{is_echo_of_name, is_identifier, is_placeholder, shannon_entropy};

/// A secret: its byte range, and its label, such as "an AWS access key".
pub type SecretSpan = (Range<usize>, &'static str);

/// How a text writes values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Source code: a word without quotes is a name, except in comments.
    Code,
    /// Settings, data, scripts and prose: a word without quotes may be a value.
    Data,
    /// A generated list of packages with their checksums: random texts are no secrets.
    Checksums,
}

impl TextForm {
    /// Returns the form of a file. `is_code` tells whether its language is one in which values need quotes.
    pub fn from_path(path: Option<&str>, is_code: bool) -> Self {
        let name = path.map_or("", |path| path.rsplit('/').next().unwrap_or(path));
        match () {
            () if is_checksum_file(name) => Self::Checksums,
            () if is_code => Self::Code,
            () => Self::Data,
        }
    }
}

/// Returns whether a file is a list of packages with their checksums, by its name.
fn is_checksum_file(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "go.sum",
        "go.work.sum",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "pnpm-lock.yaml",
        "flake.lock",
        "verification-metadata.xml",
        "SHA256SUMS",
        "packages.lock.json",
    ];
    NAMES.contains(&name)
        || [".lock", ".sum", ".lockfile", ".sha256", ".sha512", ".svg", ".ipynb", ".map"]
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// Longest part of a line that is looked at around a position, in bytes. Generated lines have no end.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Returns the start of the line of a position, or of its part of [`MAX_LINE_BYTES`].
fn line_start(text: &str, at: usize) -> usize {
    let from = at.saturating_sub(MAX_LINE_BYTES);
    let before = text.as_bytes().get(from..at).unwrap_or_default();
    memchr::memrchr(b'\n', before).map_or_else(|| text.ceil_char_boundary(from), |end| from + end + 1)
}

/// Returns the end of the line of a position, or of its part of [`MAX_LINE_BYTES`].
fn line_end(text: &str, at: usize) -> usize {
    let to = at.saturating_add(MAX_LINE_BYTES).min(text.len());
    let behind = text.as_bytes().get(at..to).unwrap_or_default();
    memchr::memchr(b'\n', behind).map_or_else(|| text.floor_char_boundary(to), |end| at + end)
}

/// Returns whether a position is in a comment or in a quoted text, as far as its line tells.
fn is_inside_text(text: &str, at: usize) -> bool {
    let line = text.get(line_start(text, at)..at).unwrap_or_default();
    let trimmed = line.trim_start();
    let is_comment = trimmed.starts_with(['#', '*', ';'])
        || trimmed.starts_with("--")
        || ["//", "/*", " # "].iter().any(|open| line.contains(open));
    let is_odd = |quote: u8| memchr::memchr_iter(quote, line.as_bytes()).count() % 2 == 1;
    is_comment || is_odd(b'"') || is_odd(b'\'') || is_odd(b'`')
}

/// Finds all secrets of a text, in no particular order. Ranges may overlap.
pub fn find_secrets(text: &str, form: TextForm) -> Vec<SecretSpan> {
    let keys: Vec<SecretSpan> = select_masked(&find_keys_by_rules(text.as_bytes())).collect();
    find_secrets_beside(text, form, &keys)
}

/// Finds all secrets of a text of which the rules have found `keys`. Returns these too, in no particular order. Ranges may
/// overlap.
pub fn find_secrets_beside(text: &str, form: TextForm, keys: &[SecretSpan]) -> Vec<SecretSpan> {
    let mut found = keys.to_vec();
    found.extend(private_keys::find_private_keys(text));
    assignments::find_assigned_secrets(text, form, &mut found);
    manifests::find_manifest_secrets(text, &mut found);
    if form != TextForm::Checksums {
        random_tokens::find_random_tokens(text, form, &mut found);
    }
    found
}

/// Finds the keys in a short text that is no file: a path, a name, a message.
pub fn find_keys(text: &str) -> Vec<SecretSpan> {
    let mut found: Vec<SecretSpan> = select_masked(&find_keys_by_rules(text.as_bytes())).collect();
    random_tokens::find_random_tokens(text, TextForm::Data, &mut found);
    found
}
