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
    &["replacement", "replacementcode", "replacementtext", "suggestedcode", "fixedcode", "newcode", "improvedcode"];
pub(super) const REPLACED: &[&str] = &["replaced", "replacedlines", "replacementlines", "replacementrange"];
pub(super) const KIND: &[&str] =
    &["kind", "codesmelltype", "smelltype", "category", "type", "issuetype", "class", "rule", "ruleid"];
pub(super) const SEVERITY: &[&str] = &["severity", "level", "severitylevel", "impactlevel"];
pub(super) const PRIORITY: &[&str] = &["priority"];
pub(super) const CONFIDENCE: &[&str] = &["confidence", "confidencescore", "confidencelevel", "certainty"];

const START: &[&str] = &[
    "linestart",
    "startline",
    "startlinenumber",
    "startlineno",
    "firstline",
    "fromline",
    "originalstartline",
    "startlocation",
    "startposition",
];
const END: &[&str] =
    &["lineend", "endline", "endlinenumber", "endlineno", "lastline", "toline", "endlocation", "endposition"];
/// Names of a first and last line that may be columns if a line stands beside them.
const BARE_START: &[&str] = &["start", "begin", "from"];
const BARE_END: &[&str] = &["end", "to"];
/// Names of one line. Beside a first line it is the last line, as in GitHub's review comments.
const LINE: &[&str] = &["line", "linenumber", "lineno", "row", "originalline"];
const RANGE: &[&str] = &["lines", "linerange", "range", "linenumbers", "region"];
const LOCATION: &[&str] = &[
    "location",
    "codelocation",
    "position",
    "positions",
    "pos",
    "loc",
    "span",
    "spans",
    "locations",
    "primarylocation",
    "physicallocation",
];
/// Names of objects that hold the path of a location.
const FILE_OBJECTS: &[&str] = &["file", "artifactlocation"];

/// Maximum nesting in which lines and paths are searched. The deepest known form is SARIF's: the report, `locations`,
/// `physicalLocation`, `region`, and some reserve.
const MAX_LINES_DEPTH: usize = 6;

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
        self.find_path(MAX_LINES_DEPTH)
    }

    fn find_path(&self, depth: usize) -> Option<Cow<'v, str>> {
        let depth = depth.checked_sub(1)?;
        let in_place = || {
            let places = self.values_of(LOCATION).chain(self.values_of(FILE_OBJECTS)).filter_map(first_object);
            places.filter_map(|place| Self::from_object(place).find_path(depth)).next()
        };
        // `src/a.rs:12`
        let as_place = || self.text(LOCATION).filter(|place| split_path_lines(place.trim()).1.is_some());
        self.text(PATH).or_else(in_place).or_else(as_place)
    }

    /// Returns the lines of the object, in any of the known forms. If an object names one line and a range, the range
    /// is returned.
    pub fn lines(&self) -> Option<LineRange> {
        self.find_lines(MAX_LINES_DEPTH)
    }

    fn find_lines(&self, depth: usize) -> Option<LineRange> {
        let depth = depth.checked_sub(1)?;
        let first = |names: &[&str]| self.values_of(names).find_map(|value| parse_lines(value, depth));
        let (mut start, mut end, line) = (first(START), first(END), first(LINE));
        let (bare_start, bare_end) = (first(BARE_START), first(BARE_END));
        let has_line = |line: LineRange| {
            bare_start.is_some_and(|start| start.start <= line.start) && bare_end.is_some_and(|end| line.end <= end.end)
        };
        if start.is_none() && line.is_none_or(has_line) {
            start = bare_start;
        }
        if end.is_none() {
            let fits = |end: &LineRange, line: LineRange| {
                line.start <= end.end && bare_start.is_none_or(|start| start.start <= line.start)
            };
            end = bare_end.filter(|end| line.is_none_or(|line| fits(end, line)));
        }
        match (start, end, line) {
            (Some(start), Some(end), _) => Some(LineRange::new(start.start, end.end)),
            (None, Some(end), Some(line)) => Some(LineRange::new(line.start, end.end)),
            (Some(start), None, Some(line)) => Some(LineRange::new(start.start, line.end)),
            (Some(one), None, None) | (None, None, Some(one)) => {
                Some(self.find_range(depth).map_or(one, |range| choose_range(one, range)))
            }
            // The first line stands in the location, and the end beside it.
            (None, Some(end), None) => self.find_range(depth).map(|range| match range.count() {
                1 if range.start < end.end => LineRange::new(range.start, end.end),
                _ => range,
            }),
            // A number alone may be a position in a diff, so it comes last.
            (None, None, None) => self.find_range(depth).or_else(|| first(LOCATION)),
        }
    }

    /// Returns the lines of the range or the location in the object.
    fn find_range(&self, depth: usize) -> Option<LineRange> {
        let ranges = self.values_of(RANGE).filter_map(|value| parse_slice(value).or_else(|| parse_lines(value, depth)));
        let places = self.values_of(LOCATION).filter_map(|value| match value {
            LenientValue::Text(text) => split_path_lines(text.trim()).1,
            value => Self::from_object(first_object(value)?).find_lines(depth),
        });
        ranges.chain(places).next()
    }
}

/// Returns the lines of an object that names both one line and a range. A range whose end is directly above the line
/// counts from 0, as in the language server protocol.
fn choose_range(line: LineRange, range: LineRange) -> LineRange {
    match (line.count(), range.count()) {
        (1, 2..) if range.end.checked_add(1) == Some(line.start) => LineRange::new(range.start + 1, line.end),
        (1, 2..) => range,
        _ => line,
    }
}

/// Returns the object, or the first object of a list. The other locations of a list may be in other files.
fn first_object<'v, 'a>(value: &'v LenientValue<'a>) -> Option<&'v LenientObject<'a>> {
    match value {
        LenientValue::List(items) => items.iter().find_map(as_object),
        value => as_object(value),
    }
}

/// Parses a range that is written like `10:20`. Elsewhere, a colon separates the line from the column.
fn parse_slice(value: &LenientValue<'_>) -> Option<LineRange> {
    let LenientValue::Text(text) = value else { return None };
    let (start, end) = text.trim().split_once(':')?;
    let (start, end) = (start.parse().ok()?, end.parse().ok()?);
    (0 < start && start <= end).then_some(LineRange { start, end })
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

/// Parses the first two line numbers of a short text. A number after a colon is a column.
pub(super) fn parse_line_text(text: &str) -> Option<LineRange> {
    if text.len() > MAX_LINES_TEXT_BYTES {
        return None;
    }
    let places = text.split(|c: char| !c.is_ascii_digit() && c != ':').map(|place| place.trim_start_matches(':'));
    let digits = places.filter_map(|place| place.split(':').next().filter(|digits| !digits.is_empty()));
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

/// Returns a value as text; a list of texts becomes one text with one line per item, and an object with a member `text`
/// counts as that text, as in SARIF.
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
        LenientValue::Object(object) => object.members.iter().find_map(|(name, value)| match value {
            LenientValue::Text(text) if fold_name(name) == "text" => Some(Cow::Borrowed(text.as_ref())),
            _ => None,
        }),
        LenientValue::Null | LenientValue::Bool(_) => None,
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
    #[case(r#"{"range": {"range": {"range": {"range": {"range": {"range": {"range": {"line": 1}}}}}}}}"#, None)]
    // A line and its range.
    #[case(r#"{"line": 10, "range": {"startLine": 10, "endLine": 90}}"#, Some((10, 90)))]
    #[case(r#"{"line": 12, "range": {"startLine": "10", "endLine": "20"}}"#, Some((10, 20)))]
    #[case(r#"{"line": 12, "lines": "10-20"}"#, Some((10, 20)))]
    #[case(r#"{"line_number": 12, "line_range": [10, 20]}"#, Some((10, 20)))]
    #[case(r#"{"line": 12, "lines": {"begin": 10, "end": 20}}"#, Some((10, 20)))]
    #[case(r#"{"line": "12-15", "range": {"startLine": 12, "endLine": 12}}"#, Some((12, 15)))]
    #[case(r#"{"line": 12, "location": {"file": "a", "start_line": 10, "end_line": 20}}"#, Some((10, 20)))]
    #[case(r#"{"line": 12, "start_line": 10, "end_line": 20, "range": "1-99"}"#, Some((10, 20)))]
    #[case(r#"{"start_line": 10, "range": {"start": 10, "end": 20}}"#, Some((10, 20)))]
    #[case(r#"{"line": 10, "endLine": 20}"#, Some((10, 20)))]
    // GitHub's review comments end at `line`.
    #[case(r#"{"start_line": 10, "line": 15}"#, Some((10, 15)))]
    // Lines of the language server protocol begin at 0.
    #[case(r#"{"line": 12, "range": {"start": {"line": 11, "character": 0}, "end": {"line": 11, "character": 9}}}"#, Some((12, 12)))]
    // SARIF, reviewdog, Code Climate, Ruff, Monaco, ESLint, Semgrep.
    #[case(
        r#"{"locations": [{"physicalLocation": {"artifactLocation": {"uri": "a"}, "region": {"startLine": 10, "startColumn": 3, "endLine": 20}}}]}"#,
        Some((10, 20))
    )]
    #[case(r#"{"locations": [{"region": {"startLine": 3}}, {"region": {"startLine": 90}}]}"#, Some((3, 3)))]
    #[case(r#"{"location": {"region": {"startLine": 10, "endLine": 20}}}"#, Some((10, 20)))]
    #[case(r#"{"location": {"path": "a", "range": {"start": {"line": 10, "column": 2}, "end": {"line": 20}}}}"#, Some((10, 20)))]
    #[case(r#"{"location": {"path": "a", "lines": {"begin": 10, "end": 20}}}"#, Some((10, 20)))]
    #[case(r#"{"location": {"positions": {"begin": {"line": 10, "column": 2}, "end": {"line": 20, "column": 2}}}}"#, Some((10, 20)))]
    #[case(r#"{"location": {"row": 10, "column": 5}, "end_location": {"row": 20, "column": 1}}"#, Some((10, 20)))]
    #[case(r#"{"startLineNumber": 10, "startColumn": 1, "endLineNumber": 20}"#, Some((10, 20)))]
    #[case(r#"{"line": 10, "column": 4, "endLine": 20, "endColumn": 7}"#, Some((10, 20)))]
    #[case(r#"{"start": {"line": 10, "col": 4}, "end": {"line": 20, "col": 7}}"#, Some((10, 20)))]
    // What may be columns, offsets or a position in a diff.
    #[case(r#"{"line": 12, "start": 340, "end": 355}"#, Some((12, 12)))]
    #[case(r#"{"line": 12, "start": 10, "end": 20}"#, Some((10, 20)))]
    #[case(r#"{"line": 12, "start": 5}"#, Some((12, 12)))]
    #[case(r#"{"line": 12, "end": 5}"#, Some((12, 12)))]
    #[case(r#"{"line": 12, "position": 4}"#, Some((12, 12)))]
    #[case(r#"{"position": 4}"#, Some((4, 4)))]
    #[case(r#"{"location": "src/a2.rs:10-20"}"#, Some((10, 20)))]
    #[case(r#"{"line": 12, "location": "src/a2.rs:10-20"}"#, Some((10, 20)))]
    // Texts with columns.
    #[case(r#"{"lines": "10:5-20:3"}"#, Some((10, 20)))]
    #[case(r#"{"line": "10:5"}"#, Some((10, 10)))]
    #[case(r#"{"lines": "10:20"}"#, Some((10, 20)))]
    #[case(r#"{"lines": "10:5"}"#, Some((10, 10)))]
    #[case(r#"{"lines": "lines 10 to 20"}"#, Some((10, 20)))]
    #[case(r#"{"lines": "10–20"}"#, Some((10, 20)))]
    #[case(r#"{"end_line": 20}"#, None)]
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
