//! Redacts the secrets of a file in smells of all kinds.
//!
//! Invariant: after [`FileRedactor::redact_smells`], no text of a smell shows more of a secret than
//! [`mask_secret`] does. Neither does the id that is made from its quote.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

use super::mask_secret;
use super::secrets::Secret;
use crate::domain::anchors::Anchors;
use crate::domain::{Finding, Kind, Suggestion};
use crate::reviewers::analyzer::smells::Smell;
use crate::secrets::{self, RuleMatch, SecretSpan, TextForm};

/// Number of consecutive bytes that give a secret away in a text. A shorter secret is given away only as a whole.
const FRAGMENT_BYTES: usize = 6;

/// Maximum length of a quoted line, in bytes. The rest of the line is cut off.
const MAX_QUOTED_LINE_BYTES: usize = 2_000;

/// Secrets of one file. The redactor is built when something of the file is shown for the first time: most files have
/// nothing to show.
#[derive(Debug, Clone)]
pub struct FileSecrets {
    /// Secrets that are reported or that the syntax tree reveals, sorted by position and without overlaps.
    reported: Vec<SecretSpan>,
    /// Keys that the rules found, masked ones included.
    keys: Vec<SecretSpan>,
    form: TextForm,
    redactor: OnceLock<FileRedactor>,
}

impl FileSecrets {
    /// Creates the secrets of a file. `reported` must be sorted by position and without overlaps.
    pub(super) fn new(reported: &[Secret<'_>], keys: &[RuleMatch], form: TextForm) -> Self {
        let to_span = |secret: &Secret<'_>| (secret.start..secret.start + secret.text.len(), secret.label);
        Self {
            reported: reported.iter().map(to_span).collect(),
            keys: secrets::select_masked(keys).collect(),
            form,
            redactor: OnceLock::new(),
        }
    }

    /// Finds the secrets of a text that is not parsed.
    pub fn from_text(text: &[u8], form: TextForm) -> Self {
        let keys = secrets::find_keys_by_rules(text);
        Self::new(&super::secrets::select_by_shape(text, secrets::select_reported(&keys)), &keys, form)
    }

    /// Returns the redactor of the file with this text, in which the secrets were found.
    pub fn redactor(&self, text: &[u8]) -> &FileRedactor {
        self.redactor.get_or_init(|| FileRedactor::new(text, &self.find_masked(text)))
    }

    /// Returns the secrets that are reported or that the syntax tree reveals, with their labels ("an AWS access key").
    pub fn into_reported(self) -> Vec<SecretSpan> {
        self.reported
    }

    /// Returns the reported secrets and those that are only masked, sorted by position and without overlaps.
    fn find_masked(&self, text: &[u8]) -> Vec<SecretSpan> {
        let mut all = self.reported.clone();
        if let Ok(valid) = std::str::from_utf8(text) {
            let overlaps = |range: &Range<usize>| {
                let at = self.reported.partition_point(|(known, _)| known.end <= range.start);
                self.reported.get(at).is_some_and(|(known, _)| known.start < range.end)
            };
            let found = secrets::find_secrets_beside(valid, self.form, &self.keys);
            all.extend(found.into_iter().filter(|(range, _)| !overlaps(range)));
        }
        all.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.len())));
        let mut end = 0;
        all.retain(|(range, _)| {
            let is_apart = range.start >= end;
            end = end.max(range.end);
            is_apart
        });
        all
    }
}

/// Secrets of one file, for redaction.
#[derive(Debug, Clone, Default)]
pub struct FileRedactor {
    /// Sorted by position and without overlaps.
    secrets: Vec<RedactedSecret>,
    /// All fragments of [`FRAGMENT_BYTES`] bytes of the secrets.
    fragments: HashSet<[u8; FRAGMENT_BYTES]>,
    /// Secrets that are shorter than a fragment.
    short: Vec<String>,
}

/// Position and replacement of one secret.
#[derive(Debug, Clone)]
struct RedactedSecret {
    bytes: Range<usize>,
    /// First and last line, 1-based.
    lines: (u32, u32),
    shown: String,
}

impl FileRedactor {
    /// Creates a redactor. `secrets` must be sorted by position and without overlaps.
    fn new(text: &[u8], secrets: &[SecretSpan]) -> Self {
        let mut hidden = Self::default();
        let mut lines = super::ForwardLineCounter::new(text);
        for (range, _) in secrets {
            let secret = text.get(range.clone()).and_then(|secret| std::str::from_utf8(secret).ok());
            let Some(secret) = secret else { continue };
            let first = lines.line_of_byte(range.start);
            let last = lines.line_of_byte(range.end.saturating_sub(1).max(range.start));
            hidden.secrets.push(RedactedSecret {
                bytes: range.clone(),
                lines: (first, last),
                shown: mask_secret(secret),
            });
            let fragments = secret.as_bytes().windows(FRAGMENT_BYTES);
            hidden.fragments.extend(fragments.filter_map(|part| <[u8; FRAGMENT_BYTES]>::try_from(part).ok()));
            if secret.len() < FRAGMENT_BYTES {
                hidden.short.push(secret.to_owned());
            }
        }
        hidden
    }

    /// Returns true if the redactor knows no secret.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns whether a secret is in a range of bytes, in part or whole.
    pub(in super::super) fn overlaps(&self, range: Range<usize>) -> bool {
        !self.secrets_between(range.start, range.end).is_empty()
    }

    /// Returns the secrets of which a part is in a range of bytes.
    fn secrets_between(&self, start: usize, end: usize) -> &[RedactedSecret] {
        let first = self.secrets.partition_point(|secret| secret.bytes.end <= start);
        let last = self.secrets.partition_point(|secret| secret.bytes.start < end).max(first);
        self.secrets.get(first..last).unwrap_or_default()
    }

    fn has_secret_on_lines(&self, (first, last): (u32, u32)) -> bool {
        let at = self.secrets.partition_point(|secret| secret.lines.1 < first);
        self.secrets.get(at).is_some_and(|secret| secret.lines.0 <= last)
    }

    /// Returns a slice of the file, which starts at byte `offset`, with its secrets masked and invalid UTF-8 replaced.
    /// The secrets are masked first, because the conversion changes the offsets.
    pub fn redact_slice(&self, piece: &[u8], offset: usize) -> String {
        let mut clean = String::with_capacity(piece.len());
        let mut at = 0;
        for secret in self.secrets_between(offset, offset + piece.len()) {
            let start = secret.bytes.start.saturating_sub(offset).clamp(at, piece.len());
            clean.push_str(&String::from_utf8_lossy(piece.get(at..start).unwrap_or_default()));
            clean.push_str(&secret.shown);
            at = secret.bytes.end.saturating_sub(offset).clamp(start, piece.len());
        }
        clean.push_str(&String::from_utf8_lossy(piece.get(at..).unwrap_or_default()));
        clean
    }

    /// Masks the secrets in smells of the file with this text.
    pub fn redact_smells(&self, smells: &mut [Smell], text: &[u8]) {
        if self.is_empty() || smells.is_empty() {
            return;
        }
        let anchors = Anchors::new(text);
        let mut last: Option<((u32, u32), String)> = None;
        for smell in smells {
            if self.has_secret_on_lines(smell.anchor) {
                if last.as_ref().is_none_or(|(anchor, _)| *anchor != smell.anchor) {
                    last = Some((smell.anchor, self.redact_quote(&anchors, smell.anchor, text)));
                }
                smell.quote = last.as_ref().map(|(_, quote)| quote.clone());
            }
            if let Some(symbol) = &mut smell.symbol {
                self.redact_text(symbol);
            }
            // The other texts of this kind are made from masked secrets.
            if smell.kind == Kind::HardcodedConfiguration {
                continue;
            }
            [&mut smell.title, &mut smell.explanation, &mut smell.subject]
                .into_iter()
                .for_each(|part| self.redact_text(part));
            if let Some(suggestion) = &mut smell.suggestion {
                self.redact_suggestion(suggestion);
            }
        }
    }

    fn redact_suggestion(&self, suggestion: &mut Suggestion) {
        self.redact_text(&mut suggestion.text);
        // Drop a replacement that contains a secret: with a masked secret it would break the code.
        if suggestion.replacement.as_deref().is_some_and(|new| self.mask_fragments(new).is_some()) {
            (suggestion.replacement, suggestion.lines) = (None, None);
        }
    }

    /// Masks every fragment of the file's secrets in a text.
    pub fn redact_text(&self, text: &mut String) {
        if let Some(masked) = self.mask_fragments(text) {
            *text = masked;
        }
    }

    fn redact_quote(&self, anchors: &Anchors<'_>, anchor: (u32, u32), text: &[u8]) -> String {
        let lines = anchors.lines(anchor).iter().take(Finding::MAX_QUOTE_LINES);
        let quoted: Vec<String> = lines
            .map(|line| {
                let offset = (line.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
                self.redact_slice(line.get(..MAX_QUOTED_LINE_BYTES).unwrap_or(line), offset)
            })
            .collect();
        quoted.join("\n")
    }

    /// Returns a text with every fragment of a secret masked; `None` if there is none.
    fn mask_fragments(&self, text: &str) -> Option<String> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (at, part) in text.as_bytes().windows(FRAGMENT_BYTES).enumerate() {
            if <[u8; FRAGMENT_BYTES]>::try_from(part).is_ok_and(|part| self.fragments.contains(&part)) {
                match found.last_mut() {
                    Some(last) if last.end >= at => last.end = at + FRAGMENT_BYTES,
                    _ => found.push(at..at + FRAGMENT_BYTES),
                }
            }
        }
        for short in &self.short {
            found.extend(text.match_indices(short.as_str()).map(|(at, part)| at..at + part.len()));
        }
        if found.is_empty() {
            return None;
        }
        found.sort_by_key(|range| (range.start, range.end));
        let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
        for range in found {
            let start = text.floor_char_boundary(range.start).max(at);
            let end = text.ceil_char_boundary(range.end);
            if end > at {
                clean.push_str(text.get(at..start).unwrap_or_default());
                clean.push('…');
                at = end;
            }
        }
        clean.push_str(text.get(at..).unwrap_or_default());
        Some(clean)
    }
}
