//! Masks secrets in all text that leaves the machine: file contents, diffs, search results, instructions.
//!
//! Invariants:
//! - A masked text has as many lines as the original, and text that is no secret stays on its line.
//! - To mask a masked text again changes nothing.
//! - The analyzer's secret detection is used with wider limits: examples and placeholders are masked too.

mod journal_texts;
mod known_secrets;
mod names;
pub(crate) mod secret_files;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use regex::Regex;

use crate::reviewers::analyzer::{self, Builtin};
use crate::secrets::{self, SecretSpan, TextForm};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

pub use journal_texts::mask_event_words;
pub use known_secrets::KnownSecrets;
pub(crate) use names::{mask_besides_ids, mask_name, mask_shown_name, prepare_for};

/// Number of bytes in which a NUL makes a file binary, as in git.
const BINARY_PROBE_BYTES: usize = 8000;

/// Switch for masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Replaces each secret by a marker.
    On,
    /// Returns texts unchanged.
    Off,
}

/// Matches the marker that replaces a secret.
static SECRET_MARKER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("«secret(?::[a-z_]+)?»").unwrap_or_else(|_| unreachable!("a constant")));

/// Returns whether a text contains the marker of a masked secret. As code, such a text is not what its author meant.
pub fn has_secret_marker(text: &str) -> bool {
    SECRET_MARKER.is_match(text)
}

impl Mask {
    /// Masks the secrets in a complete text, as in `«secret:github_token»`. `path` is the file that the text comes
    /// from: in files of a known language, a secret is also detected by the name of its variable.
    pub fn mask_text<'a>(self, path: Option<&str>, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::On => replace_secrets(text, find_secrets(path, text)),
            Self::Off => text.into(),
        }
    }

    /// Masks the secrets in the content of a file; `None` if it has none or is no text. Invalid UTF-8 is replaced.
    pub fn mask_content(self, path: &str, content: &[u8]) -> Option<Vec<u8>> {
        let probe = content.get(..BINARY_PROBE_BYTES).unwrap_or(content);
        if memchr::memchr(0, probe).is_some() {
            return None;
        }
        let text = String::from_utf8_lossy(content);
        match self.mask_text(Some(path), &text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(masked.into_bytes()),
        }
    }

    /// Masks the secrets in words that people and models write: titles, explanations, messages. Values with the name of a
    /// secret (`password = "…"`) count too; ids of runs, fixes and findings do not.
    pub fn mask_words(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::On => replace_secrets(text, find_secrets_in_words(text)),
            Self::Off => text.into(),
        }
    }

    /// Masks secrets by the shape of keys alone. For texts that consist of masked text and of names; see
    /// [`Mask::mask_text`] for files.
    pub fn mask_key_shapes(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::On => replace_secrets(text, secrets::find_keys(text)),
            Self::Off => text.into(),
        }
    }
}

/// Replaces the bytes of secrets by spaces, so that every other byte stays at its place. For texts whose words are kept,
/// such as those of an index; detects secrets by the text alone.
pub fn blank_secrets<'a>(path: Option<&str>, text: &'a str) -> Cow<'a, str> {
    let language = path.and_then(|path| Language::detect(path, text.as_bytes()));
    let found = secrets::find_secrets(text, analyzer::choose_text_form(path, language));
    if found.is_empty() {
        return text.into();
    }
    let mut bytes = text.as_bytes().to_vec();
    for (range, _) in found {
        // Secrets end at character boundaries, so the text stays UTF-8.
        let part = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
        for byte in bytes.get_mut(part).unwrap_or_default() {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).map_or_else(|_| text.into(), Cow::Owned)
}

/// Returns whether a path has a secret in one of its names.
pub fn has_secret_name(path: &str) -> bool {
    !secrets::find_keys(path).is_empty()
}

/// Returns the byte ranges of a masked text outside of the markers. Text in these ranges is also in the original.
pub fn unmasked_ranges(masked: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let markers = SECRET_MARKER.find_iter(masked).map(|marker| (marker.start(), marker.end()));
    let parts = markers.chain([(masked.len(), masked.len())]).map(|(end, next)| {
        let part = start..end;
        start = next;
        part
    });
    parts.collect()
}

fn find_secrets(path: Option<&str>, text: &str) -> Vec<SecretSpan> {
    let language = path.and_then(|path| Language::detect(path, text.as_bytes()));
    let mut found = secrets::find_secrets(text, analyzer::choose_text_form(path, language));
    if let Some(path) = path
        && language.is_some()
        && analyzer::needs_parsing(text)
    {
        // Code that makes the analysis panic is masked by its text alone.
        let hidden = catch_unwind(AssertUnwindSafe(|| {
            Builtin::default().find_secrets(&mut Parsers::default(), path, text.as_bytes())
        }));
        let hidden = hidden.unwrap_or_default();
        // The detection by text finds the end of a private key more exactly.
        found.extend(hidden.into_iter().filter(|(_, sort)| *sort != "a private key"));
    }
    found
}

/// Finds the secrets in words that people and models write.
fn find_secrets_in_words(text: &str) -> Vec<SecretSpan> {
    let mut found = secrets::find_secrets(text, TextForm::Data);
    found.retain(|(range, _)| text.get(range.clone()).is_none_or(|word| !names::is_record_id(word)));
    found
}

fn replace_secrets(text: &str, mut found: Vec<SecretSpan>) -> Cow<'_, str> {
    found.sort_by_key(|(range, _)| (range.start, range.end));
    let mut markers = SECRET_MARKER.find_iter(text).map(|marker| marker.range()).peekable();
    found.retain(|(range, _)| {
        while markers.next_if(|marker| marker.end <= range.start).is_some() {}
        markers.peek().is_none_or(|marker| marker.start >= range.end)
    });
    if found.is_empty() {
        return text.into();
    }
    let mut apart: Vec<SecretSpan> = Vec::with_capacity(found.len());
    for (range, sort) in found {
        match apart.last_mut() {
            Some((last, known)) if range.start < last.end => {
                last.end = last.end.max(range.end);
                // A rule tells more than a name.
                if *known == "a secret" {
                    *known = sort;
                }
            }
            _ => apart.push((range, sort)),
        }
    }
    let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
    for (range, sort) in apart {
        clean.push_str(text.get(at..range.start).unwrap_or_default());
        let label = format_marker(sort);
        for (number, line) in text.get(range.clone()).unwrap_or_default().split('\n').enumerate() {
            if number > 0 {
                clean.push('\n');
            }
            if !line.trim().is_empty() {
                clean.push_str(&label);
            }
        }
        at = range.end;
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    clean.into()
}

/// Formats the marker: `«secret:aws_access_key»` for "an AWS access key".
fn format_marker(sort: &str) -> String {
    let name = sort.split_once(' ').map_or(sort, |(_, name)| name);
    match name.split(" in ").next().unwrap_or(name) {
        "secret" => "«secret»".to_owned(),
        name => format!("«secret:{}»", name.to_ascii_lowercase().replace(' ', "_")),
    }
}
