//! The masked passages of a file, as they may be sent, with their token counts.
//!
//! - There is one text per passage of the document, in order.
//! - A text has as many lines as its passage, or none.

use std::ops::Range;
use std::sync::Arc;

use crate::domain::LineRange;
use crate::index::document::{Document, Passage};
use crate::index::words::identifiers;

/// Concatenated texts with their token counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassageTexts {
    pub all: Arc<str>,
    /// End offset of each text in `all`.
    pub ends: Vec<u32>,
    pub tokens: Vec<u32>,
}

impl PassageTexts {
    /// Concatenates texts and counts their tokens.
    pub fn from_texts<'a>(texts: impl Iterator<Item = &'a str>, count: &dyn Fn(&str) -> usize) -> Self {
        let (mut all, mut ends, mut tokens) = (String::new(), Vec::new(), Vec::new());
        for text in texts {
            all.push_str(text);
            ends.push(all.len() as u32);
            tokens.push(count(text) as u32);
        }
        Self { all: all.into(), ends, tokens }
    }

    /// Returns the byte range of a passage's text in `all`.
    pub fn byte_range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        match start.zip(self.ends.get(number)) {
            Some((start, end)) => start as usize..*end as usize,
            None => 0..0,
        }
    }

    pub fn get(&self, number: usize) -> &str {
        self.all.get(self.byte_range(number)).unwrap_or_default()
    }

    /// Returns the byte range and the tokens of `lines` (1-based), where the texts belong to `passages`. The token
    /// count is a sum over passages; a partly covered passage counts in proportion to its bytes.
    pub fn locate_lines(&self, passages: &[Passage], lines: LineRange) -> (Range<usize>, u32) {
        let first = passages.partition_point(|passage| passage.end < lines.start);
        let last = passages.partition_point(|passage| passage.end < lines.end).min(passages.len().saturating_sub(1));
        let (mut place, mut tokens) = (0..0, 0u32);
        for number in first..=last {
            let whole = self.byte_range(number);
            let own = passages.get(number).map_or(whole.clone(), |passage| {
                let text = self.get(number);
                let ends = || memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| whole.start + at + 1);
                let after = |line: u32| match (line - passage.start).checked_sub(1) {
                    None => whole.start,
                    Some(before) => ends().nth(before as usize).unwrap_or(whole.end),
                };
                let (start, end) = (lines.start.saturating_sub(1).max(passage.start), lines.end.min(passage.end));
                let start = after(start);
                start..if end == passage.end { whole.end } else { after(end) }.max(start)
            });
            let all = self.tokens.get(number).copied().unwrap_or(0);
            tokens += match own == whole {
                true => all,
                false => (u64::from(all) * own.len() as u64 / whole.len().max(1) as u64) as u32 + 1,
            };
            place = if number == first { own } else { place.start..own.end };
        }
        (place, tokens)
    }
}

/// Masked texts and token counts of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedFile {
    pub texts: Arc<PassageTexts>,
    /// Tokens of the unmasked passages; the ranking uses these.
    pub tokens: Vec<u32>,
    /// For each passage: true if it declares a type.
    pub declares_type: Vec<bool>,
}

impl MaskedFile {
    /// Builds the passages of a file without masking.
    pub fn from_text(document: &Document, text: &str, count: &dyn Fn(&str) -> usize) -> Self {
        let lines = PassageLines::new(text);
        let texts =
            PassageTexts::from_texts(document.passages.iter().map(|place| lines.get(place.start, place.end)), count);
        Self {
            tokens: texts.tokens.clone(),
            declares_type: find_type_passages(document, &lines),
            texts: Arc::new(texts),
        }
    }

    /// Builds the passages of a file with secrets. `said` returns the masked text of a line range (1-based, inclusive).
    pub fn with_masked_lines(
        document: &Document,
        text: &str,
        said: &dyn Fn(u32, u32) -> String,
        count: &dyn Fn(&str) -> usize,
    ) -> Self {
        let mut told = Self::from_text(document, text, count);
        let said: Vec<String> = document.passages.iter().map(|place| said(place.start + 1, place.end)).collect();
        let is_same = |(number, said): (usize, &String)| said.trim_end() == told.texts.get(number).trim_end();
        if !said.iter().enumerate().all(is_same) {
            let texts = said.iter().enumerate().map(|(number, said)| match is_same((number, said)) {
                true => told.texts.get(number),
                false => said.as_str(),
            });
            told.texts = Arc::new(PassageTexts::from_texts(texts, count));
        }
        told
    }
}

struct PassageLines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> PassageLines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        Self { text, starts: starts.collect() }
    }

    /// Returns the text of the lines `start..end` (0-based).
    fn get(&self, start: u32, end: u32) -> &'a str {
        let at = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len());
        self.text.get(at(start)..at(end)).unwrap_or_default()
    }
}

/// Returns for each passage whether one of its lines declares a type.
fn find_type_passages(document: &Document, lines: &PassageLines<'_>) -> Vec<bool> {
    const TYPES: [&str; 9] = ["class", "struct", "enum", "trait", "interface", "type", "record", "union", "typedef"];
    let mut types = vec![false; document.passages.len()];
    for (line, _) in &document.declarations {
        let passage = document.passages.partition_point(|place| place.end <= *line);
        if let Some(known) = types.get_mut(passage).filter(|known| !**known) {
            *known = identifiers(lines.get(*line, *line + 1)).take(5).any(|word| TYPES.contains(&word));
        }
    }
    types
}
