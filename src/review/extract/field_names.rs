//! Reads the fields of a report under the names that models use for them.

use std::borrow::Cow;

use super::labels::fold_name;
use super::lenient_json::{LenientObject, LenientValue};
use crate::domain::LineRange;

// Names as `fold_name` returns them, in order of preference.
pub(super) const LISTS: &[&str] = &["findings", "issues", "codesmells", "smells", "problems", "bugs", "defects"];
pub(super) const PATH: &[&str] =
    &["reporelativepath", "path", "filepath", "file", "filename", "relativepath", "absolutefilepath", "uri"];
pub(super) const TITLE: &[&str] = &["title", "headline", "summary", "message", "issue", "problem", "name"];
pub(super) const EXPLANATION: &[&str] =
    &["explanation", "body", "description", "details", "detail", "message", "rationale", "reason", "impact"];
pub(super) const QUOTE: &[&str] =
    &["quotedcode", "quote", "codesnippet", "snippet", "existingcode", "originalcode", "currentcode", "code"];
pub(super) const SUGGESTION: &[&str] =
    &["suggestion", "improvement", "recommendation", "suggestedfix", "fix", "remediation", "solution"];
pub(super) const SUGGESTION_TEXT: &[&str] = &["text", "description", "message", "suggestion", "summary"];
pub(super) const REPLACEMENT: &[&str] =
    &["replacement", "replacementcode", "suggestedcode", "fixedcode", "newcode", "improvedcode"];
pub(super) const REPLACED: &[&str] = &["replaced", "replacedlines", "replacementlines", "replacementrange"];
pub(super) const KIND: &[&str] =
    &["kind", "codesmelltype", "smelltype", "category", "type", "issuetype", "class", "rule", "ruleid"];
pub(super) const SEVERITY: &[&str] = &["severity", "level", "severitylevel", "impactlevel"];
pub(super) const PRIORITY: &[&str] = &["priority"];
pub(super) const CONFIDENCE: &[&str] = &["confidence", "confidencescore", "confidencelevel", "certainty"];

const START: &[&str] =
    &["linestart", "startline", "line", "linenumber", "lineno", "firstline", "start", "begin", "from"];
const END: &[&str] = &["lineend", "endline", "lastline", "end", "to"];
const RANGE: &[&str] = &["lines", "linerange", "range", "linenumbers"];
const LOCATION: &[&str] = &["location", "codelocation", "position", "loc", "span"];

/// Maximum nesting of objects in which lines are searched: `location`, `range`, `start`, `line`.
const MAX_LINES_DEPTH: usize = 4;

/// Maximum size in bytes of a text that is parsed as lines. Not from the literature.
const MAX_LINES_TEXT_BYTES: usize = 64;

/// Maximum number of members that are searched. Not from the literature: an object with more members is neither a
/// report nor the parent of one.
const MAX_MEMBERS: usize = 100;

/// The members of an object by their folded names.
pub(super) struct ReportFields<'v, 'a>(Vec<(String, &'v LenientValue<'a>)>);

impl<'v, 'a> ReportFields<'v, 'a> {
    pub fn from_object(object: &'v LenientObject<'a>) -> Self {
        Self(object.members.iter().map(|(name, value)| (fold_name(name), value)).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'v LenientValue<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Returns the values with one of these names, in the order of the names. Skips null values.
    pub fn values_of(&self, names: &[&str]) -> impl Iterator<Item = &'v LenientValue<'a>> {
        let members = self.0.get(..MAX_MEMBERS).unwrap_or(&self.0);
        let named = names.iter().flat_map(|name| members.iter().filter(move |(own, _)| own == name));
        named.map(|(_, value)| *value).filter(|value| !matches!(value, LenientValue::Null))
    }

    /// Returns the first text under these names that is not blank.
    pub fn text(&self, names: &[&str]) -> Option<Cow<'v, str>> {
        self.values_of(names).filter_map(as_text).find(|text| !text.trim().is_empty())
    }

    /// Returns the path of the object or of its location. A line number may follow the path after a colon.
    pub fn path(&self) -> Option<Cow<'v, str>> {
        self.text(PATH).or_else(|| {
            let places = self.values_of(LOCATION).chain(self.values_of(&["file"])).filter_map(as_object);
            places.filter_map(|place| Self::from_object(place).text(PATH)).next()
        })
    }

    /// Returns the lines of the object, in any of the known forms.
    pub fn lines(&self) -> Option<LineRange> {
        self.find_lines(MAX_LINES_DEPTH)
    }

    fn find_lines(&self, depth: usize) -> Option<LineRange> {
        let depth = depth.checked_sub(1)?;
        let own = || {
            let start = self.values_of(START).find_map(|value| parse_lines(value, depth))?;
            let end = self.values_of(END).find_map(|value| parse_lines(value, depth)).map_or(start.end, |end| end.end);
            Some(LineRange::new(start.start, end))
        };
        own().or_else(|| {
            self.values_of(RANGE).chain(self.values_of(LOCATION)).find_map(|value| parse_lines(value, depth))
        })
    }
}

/// Parses lines (1-based) from a number, a text (`12-15`, `L12`, `lines 12 to 15`), a pair, or an object of these. Line
/// 0 counts as no line.
pub(super) fn parse_lines(value: &LenientValue<'_>, depth: usize) -> Option<LineRange> {
    match value {
        LenientValue::Number(number) => parse_line(*number).map(|line| LineRange::new(line, line)),
        LenientValue::Text(text) => parse_line_text(text),
        LenientValue::List(items) => {
            let mut numbers = items.iter().filter_map(|item| parse_lines(item, depth.checked_sub(1)?));
            let first = numbers.next()?;
            Some(LineRange::new(first.start, numbers.next_back().map_or(first.end, |last| last.end)))
        }
        LenientValue::Object(object) => ReportFields::from_object(object).find_lines(depth),
        LenientValue::Null | LenientValue::Bool(_) => None,
    }
}

fn parse_line(number: f64) -> Option<u32> {
    // Large numbers saturate, which is beyond the end of every file.
    (number >= 1.0).then_some(number as u32)
}

/// Parses the first two numbers of a short text.
pub(super) fn parse_line_text(text: &str) -> Option<LineRange> {
    if text.len() > MAX_LINES_TEXT_BYTES {
        return None;
    }
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let mut numbers = digits.map(|digits| digits.parse().unwrap_or(u32::MAX)).filter(|&line| line > 0);
    let start = numbers.next()?;
    Some(LineRange::new(start, numbers.next().unwrap_or(start)))
}

/// Splits `src/a.rs:12-15` into the path and its lines.
pub(super) fn split_path_lines(path: &str) -> (&str, Option<LineRange>) {
    let is_line = |text: &str| {
        text.bytes().any(|byte| byte.is_ascii_digit())
            && text.trim_start_matches('L').bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'L'))
    };
    match path.rsplit_once([':', '#']) {
        Some((before, lines)) if !before.is_empty() && is_line(lines) => match before.rsplit_once(':') {
            // The line is followed by a column.
            Some((path, line)) if !path.is_empty() && is_line(line) => (path, parse_line_text(line)),
            _ => (before, parse_line_text(lines)),
        },
        _ => (path, None),
    }
}

pub(super) fn as_object<'v, 'a>(value: &'v LenientValue<'a>) -> Option<&'v LenientObject<'a>> {
    match value {
        LenientValue::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns a value as text; a list of texts becomes one text with one line per item.
pub(super) fn as_text<'v>(value: &'v LenientValue<'_>) -> Option<Cow<'v, str>> {
    match value {
        LenientValue::Text(text) => Some(Cow::Borrowed(text)),
        LenientValue::Number(number) => Some(number.to_string().into()),
        LenientValue::List(items) => {
            let lines: Option<Vec<&str>> = items
                .iter()
                .map(|item| match item {
                    LenientValue::Text(text) => Some(text.as_ref()),
                    _ => None,
                })
                .collect();
            Some(lines?.join("\n").into())
        }
        LenientValue::Null | LenientValue::Bool(_) | LenientValue::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::lenient_json::LenientJsonReader;
    use super::*;

    #[rstest]
    #[case(r#"{"line_start": 3, "line_end": 7}"#, Some((3, 7)))]
    #[case(r#"{"line": 12}"#, Some((12, 12)))]
    #[case(r#"{"line": "12-15"}"#, Some((12, 15)))]
    #[case(r#"{"line": "L12"}"#, Some((12, 12)))]
    #[case(r##"{"lines": "#L12-L15"}"##, Some((12, 15)))]
    #[case(r#"{"lines": [12, 13, 14]}"#, Some((12, 14)))]
    #[case(r#"{"startLine": "9", "endLine": 4.0}"#, Some((4, 9)))]
    #[case(r#"{"range": {"startLine": 1, "endLine": 2}}"#, Some((1, 2)))]
    #[case(r#"{"range": {"start": {"line": 5, "character": 1}, "end": {"line": 6}}}"#, Some((5, 6)))]
    #[case(r#"{"location": {"file": "a", "range": {"start": 5, "end": 6}}}"#, Some((5, 6)))]
    #[case(r#"{"code_location": {"absolute_file_path": "/a", "line_range": {"start": 5, "end": 6}}}"#, Some((5, 6)))]
    #[case(r#"{"line": 0}"#, None)]
    #[case(r#"{"line": -3}"#, None)]
    #[case(r#"{"line": null, "lines": "5"}"#, Some((5, 5)))]
    #[case(r#"{"line": 1e99}"#, Some((u32::MAX, u32::MAX)))]
    #[case(r#"{"line": "99999999999999"}"#, Some((u32::MAX, u32::MAX)))]
    #[case(r#"{"range": {"range": {"range": {"range": {"range": {"line": 1}}}}}}"#, None)]
    fn lines(#[case] json: &str, #[case] expected: Option<(u32, u32)>) {
        let value = LenientJsonReader::new(json).next_value().expect("an object");
        let lines = ReportFields::from_object(as_object(&value).expect("an object")).lines();
        assert_eq!(lines, expected.map(|(start, end)| LineRange { start, end }));
    }

    #[rstest]
    #[case("src/a.rs", "src/a.rs", None)]
    #[case("src/a.rs:12", "src/a.rs", Some((12, 12)))]
    #[case("src/a.rs:12:5", "src/a.rs", Some((12, 12)))]
    #[case("src/a.rs:12-15", "src/a.rs", Some((12, 15)))]
    #[case("src/a.rs#L12-L15", "src/a.rs", Some((12, 15)))]
    #[case("C:\\a.rs", "C:\\a.rs", None)]
    #[case(":12", ":12", None)]
    fn paths_with_lines(#[case] path: &str, #[case] expected: &str, #[case] lines: Option<(u32, u32)>) {
        assert_eq!(split_path_lines(path), (expected, lines.map(|(start, end)| LineRange { start, end })));
    }
}
