//! Converts an object into a report: reads its fields, normalizes their values and bounds their sizes.

use std::borrow::Cow;

use super::field_names::{
    CONFIDENCE, EXPLANATION, KIND, PRIORITY, QUOTE, REPLACED, REPLACEMENT, ReportFields, SEVERITY, SUGGESTION,
    SUGGESTION_TEXT, TITLE, as_object, as_text, parse_lines, split_path_lines,
};
use super::labels;
use super::lenient_json::LenientValue;
use crate::domain::text::{is_unsafe, sanitize_line, sanitize_lines};
use crate::domain::{Confidence, Kind, LineRange, Priority, ReportedProblem};
use crate::review::code_fences::{FencedSuggestion, find_fenced_blocks, find_suggestion};

// Maximum lengths in characters. Not from the literature: what a user reads, and for code what one finding can be
// about.
const MAX_PATH_CHARS: usize = 1_000;
const MAX_TITLE_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 4_000;
const MAX_QUOTE_CHARS: usize = 4_000;
const MAX_REPLACEMENT_CHARS: usize = 20_000;

/// Number of columns of a tab in the texts of a report, and in code that is only shown or compared.
pub(in crate::review) const TAB_COLUMNS: usize = 4;

/// The result of parsing an object.
pub(super) enum ReportParseResult {
    /// The report, with notes about its unusable parts.
    Report(Box<ReportedProblem>, Vec<&'static str>),
    /// The object names neither a file nor a problem.
    Nameless,
    /// The example of a prompt, repeated by the model.
    Example,
}

/// Returns `true` if an object outside a list of reports looks like a report: it names a file, a problem, and one more
/// field. `path` is the file from the surrounding values.
pub(super) fn looks_like_report(fields: &ReportFields<'_, '_>, path: &str) -> bool {
    // A `name` field alone occurs in all kinds of objects.
    let problem = || fields.text(&TITLE[..TITLE.len() - 1]).or_else(|| fields.text(EXPLANATION)).is_some();
    let more = [SEVERITY, PRIORITY, CONFIDENCE, KIND, QUOTE, SUGGESTION];
    (!path.is_empty() || fields.path().is_some())
        && problem()
        && (fields.lines().is_some() || more.iter().any(|names| fields.values_of(names).next().is_some()))
}

pub(super) fn parse_report(fields: &ReportFields<'_, '_>, path: &str) -> ReportParseResult {
    let named = fields.path();
    let (path, path_lines) = named.as_deref().map_or((path, None), |path| split_path_lines(path.trim()));
    if is_placeholder(path) {
        return ReportParseResult::Example;
    }
    let title = fields.text(TITLE).unwrap_or_default();
    let explanation = fields.text(EXPLANATION).unwrap_or_default();
    let kind = fields
        .values_of(KIND)
        .filter_map(as_text)
        .find_map(|name| labels::parse_kind(&name))
        .unwrap_or(Kind::Correctness);
    if path.is_empty() && title.is_empty() && explanation.is_empty() {
        return ReportParseResult::Nameless;
    }
    let (marked, heading) = split_priority_mark(&title);
    let priority = fields.values_of(PRIORITY).find_map(parse_priority).or(marked);
    // Without any words, the title stays empty, and the report is rejected.
    let title = first_headline(heading).or_else(|| first_headline(&explanation)).unwrap_or_default();
    let mut notes = Vec::new();
    let place = fields.lines().or(path_lines);
    let ReportedSuggestion { words: suggestion, replacement, replaced } =
        parse_suggestion(fields, &explanation, place, &mut notes);
    ReportParseResult::Report(
        Box::new(ReportedProblem {
            path: sanitize_line(first_chars(path, MAX_PATH_CHARS)).into_owned(),
            line_start: place.map_or(0, |lines| lines.start),
            line_end: place.map_or(0, |lines| lines.end),
            kind,
            severity: fields.values_of(SEVERITY).filter_map(as_text).find_map(|word| labels::parse_severity(&word)),
            priority,
            confidence: fields.values_of(CONFIDENCE).find_map(parse_confidence),
            explanation: match explanation.trim() {
                // The first line is the title; the other lines must not be lost.
                "" if heading.trim().contains('\n') || title.ends_with('…') => clean_prose(heading),
                said if said == title => String::new(),
                said => clean_prose(said),
            },
            title,
            quoted_code: sanitize_lines(
                truncate_code(&strip_fence(&fields.text(QUOTE).unwrap_or_default())),
                TAB_COLUMNS,
            ),
            suggestion: clean_prose(&suggestion),
            replacement,
            replaced,
        }),
        notes,
    )
}

/// Returns `true` if a path is a placeholder, as in the example of a prompt or in a schema.
fn is_placeholder(path: &str) -> bool {
    let file = path.trim_start_matches('/').strip_prefix("path/to/");
    file.is_some_and(|file| file == "file" || file.starts_with("file.") || file.contains('<'))
        || (path.starts_with('<') && path.ends_with('>'))
        || matches!(path, "..." | "…" | "string" | "relative/path")
}

/// Splits the priority from a title: `[P1] Lock is not released`.
fn split_priority_mark(title: &str) -> (Option<Priority>, &str) {
    let rest = title.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    // A number without `P` is an index.
    match rest.filter(|(mark, _)| mark.starts_with(['P', 'p'])).map(|(mark, rest)| (mark.parse(), rest)) {
        Some((Ok(priority), rest)) => (Some(priority), rest),
        _ => (None, title),
    }
}

fn parse_priority(value: &LenientValue<'_>) -> Option<Priority> {
    match value {
        LenientValue::Number(number) if *number >= 0.0 => Some(labels::priority_from_number(*number as u8)),
        value => labels::parse_priority(&as_text(value)?),
    }
}

fn parse_confidence(value: &LenientValue<'_>) -> Option<Confidence> {
    match value {
        LenientValue::Number(number) => labels::confidence_from_score(*number),
        value => {
            let text = as_text(value)?;
            let number = || text.trim().trim_end_matches('%').parse().ok().and_then(labels::confidence_from_score);
            labels::parse_confidence(&text).or_else(number)
        }
    }
}

/// The suggestion of a report.
struct ReportedSuggestion<'v> {
    words: Cow<'v, str>,
    replacement: Option<String>,
    /// Lines that the replacement replaces; `None` for the lines of the report.
    replaced: Option<LineRange>,
}

/// Parses the suggestion as text and as code, and the lines that the code replaces. Without a field for the code, the
/// code is that of the suggestion block in the suggestion or the explanation (see [`find_suggestion`]). The texts keep
/// the block, because the code may turn out not to fit. `place` are the lines of the report.
fn parse_suggestion<'v>(
    fields: &ReportFields<'v, '_>,
    explanation: &str,
    place: Option<LineRange>,
    notes: &mut Vec<&'static str>,
) -> ReportedSuggestion<'v> {
    let nested = fields.values_of(SUGGESTION).find_map(as_object).map(ReportFields::from_object);
    let within = |names| nested.as_ref().and_then(|nested| nested.text(names));
    let words = fields.text(SUGGESTION).or_else(|| within(SUGGESTION_TEXT)).unwrap_or_default();
    // An empty replacement is valid: it removes the lines.
    let code = fields
        .values_of(REPLACEMENT)
        .find_map(as_text)
        .or_else(|| nested.as_ref()?.values_of(REPLACEMENT).find_map(as_text));
    let replaced = fields
        .values_of(REPLACED)
        .find_map(|value| parse_lines(value, 2))
        .or_else(|| nested.as_ref().and_then(ReportFields::lines));
    let (code, replaced) = match code {
        Some(code) => (Some(strip_fence(&code).into_owned()), replaced),
        None => match find_suggestion(&words).or_else(|| find_suggestion(explanation)) {
            Some(FencedSuggestion { around: (0, 0), code, .. }) => (Some(code), replaced),
            // Without lines of the report, nothing says what is around them.
            Some(FencedSuggestion { around: (above, below), code, .. }) => (
                place.map(|_| code),
                replaced.or_else(|| {
                    let lines = place?;
                    Some(LineRange::new(lines.start.saturating_sub(above), lines.end.saturating_add(below)))
                }),
            ),
            None => (None, None),
        },
    };
    let mut replacement = None;
    if let Some(code) = code {
        // Code with invisible characters could hide its effect and must not be applied. A truncated piece of code is no
        // replacement either.
        if code.chars().any(|c| is_unsafe(c) && !matches!(c, '\t' | '\n' | '\r')) {
            notes.push("its replacement has characters that cannot be seen, and is dropped");
        } else if code.len() > MAX_REPLACEMENT_CHARS && code.chars().count() > MAX_REPLACEMENT_CHARS {
            notes.push("its replacement is too long, and is dropped");
        } else {
            replacement = Some(code);
        }
    }
    let replaced = replaced.filter(|_| replacement.is_some());
    ReportedSuggestion { words, replacement, replaced }
}

/// Returns the first `max` characters.
pub(super) fn first_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// Cuts a quote to its maximum length, at a line end if there are several lines.
fn truncate_code(code: &str) -> &str {
    let first = first_chars(code, MAX_QUOTE_CHARS);
    match first.rfind('\n') {
        Some(end) if first.len() < code.len() => first.get(..end).unwrap_or_default(),
        _ => first,
    }
}

/// Removes the code fence around code.
fn strip_fence(code: &str) -> Cow<'_, str> {
    let fenced = code.trim();
    match find_fenced_blocks(fenced).as_slice() {
        [block] if block.is_closed && block.span == (0..fenced.len()) => {
            Cow::Owned(block.code.strip_suffix('\n').unwrap_or(&block.code).to_owned())
        }
        _ => Cow::Borrowed(code),
    }
}

/// Cleans multi-line text for display and bounds its length.
fn clean_prose(text: &str) -> String {
    truncate_chars(sanitize_lines(first_chars(text.trim(), MAX_TEXT_CHARS + 1), TAB_COLUMNS), MAX_TEXT_CHARS)
}

fn truncate_chars(text: String, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text,
        Some(_) => format!("{}…", first_chars(&text, max - 1)),
    }
}

/// Returns the first line that is not blank, without heading marks.
fn first_headline(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*')))
        .find(|line| !line.is_empty())?;
    Some(truncate_chars(sanitize_line(first_chars(line, MAX_TITLE_CHARS + 1)).into_owned(), MAX_TITLE_CHARS))
}
