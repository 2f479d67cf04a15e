//! Masks secrets in all text that leaves the machine: file contents, diffs, search results, instructions.
//!
//! Invariants:
//! - A masked text has as many lines as the original, and text that is no secret stays on its line.
//! - To mask a masked text again changes nothing.
//! - The analyzer's secret detection is used with wider limits: examples and placeholders are masked too.

mod private_keys;
pub(crate) mod secret_files;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use regex::Regex;

use crate::reviewers::analyzer::{self, Builtin, ValueQuoting};
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Switch for masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Replaces each secret by a marker.
    On,
    /// Returns texts unchanged.
    Off,
}

/// Byte range of a secret, and its description, such as "an AWS access key".
type SecretSpan = (Range<usize>, &'static str);

/// Matches the marker that replaces a secret.
static SECRET_MARKER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("«secret(?::[a-z_]+)?»").unwrap_or_else(|_| unreachable!("a constant")));

impl Mask {
    /// Masks the secrets in a complete text, as in `«secret:github_token»`. `path` is the file that the text comes
    /// from: in files of a known language, a secret is also detected by the name of its variable.
    pub fn mask_text<'a>(self, path: Option<&str>, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::On => replace_secrets(text, find_secrets(path, text)),
            Self::Off => text.into(),
        }
    }

    /// Masks secrets by the shape of keys alone. For texts that consist of masked text and of names; see
    /// [`Mask::mask_text`] for files.
    pub fn mask_key_shapes(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::On => replace_secrets(text, analyzer::find_key_shapes(text.as_bytes()).collect()),
            Self::Off => text.into(),
        }
    }
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
    let values = match language {
        // In a shell script, values need no quotes.
        None | Some(Language::Bash) => ValueQuoting::Any,
        Some(_) => ValueQuoting::Quoted,
    };
    let mut found: Vec<SecretSpan> = analyzer::find_key_shapes(text.as_bytes()).collect();
    found.extend(private_keys::find_private_keys(text));
    found.extend(analyzer::find_named_secrets(text, values));
    if let Some(path) = path
        && language.is_some()
        && analyzer::needs_parsing(text)
    {
        // Code that makes the analysis panic is masked by its text alone.
        let hidden = catch_unwind(AssertUnwindSafe(|| {
            Builtin::default().redactor(&mut Parsers::default(), path, text.as_bytes())
        }));
        let hidden = hidden.unwrap_or_default();
        // `private_keys` finds the end of a private key more exactly.
        found.extend(hidden.labelled_ranges().filter(|(_, sort)| *sort != "a private key"));
    }
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
            Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
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
