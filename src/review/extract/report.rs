//! An object as a report: its fields read, put into our words and bounded.

use std::borrow::Cow;

use super::fields::{
    CONFIDENCE, EXPLANATION, Fields, KIND, PRIORITY, QUOTE, REPLACED, REPLACEMENT, SEVERITY, SUGGESTION,
    SUGGESTION_TEXT, TITLE, lines_in, object, text, with_lines,
};
use super::json::Value;
use super::words;
use crate::domain::text::{is_unsafe, lines, one_line};
use crate::domain::{Confidence, Kind, LineRange, Priority, Reported};

// Bounds in characters; own: what a person reads of it, and for code what one finding can be about.
const MAX_PATH: usize = 1_000;
const MAX_TITLE: usize = 200;
const MAX_TEXT: usize = 4_000;
const MAX_QUOTE: usize = 4_000;
const MAX_REPLACEMENT: usize = 20_000;

/// Columns of a tab where code is only shown or compared.
const TAB: usize = 4;

/// What became of an object.
pub(super) enum Read {
    /// With what of it could not be used.
    Report(Box<Reported>, Vec<&'static str>),
    /// It names neither a file nor a problem.
    Nameless,
    /// The example of a prompt, said after it.
    Example,
}

/// Whether an object that nobody said is a report looks like one: a file, a problem, and one thing more. `path` is the
/// file that it is known to be about.
pub(super) fn looks_like_one(fields: &Fields<'_, '_>, path: &str) -> bool {
    // A name alone names anything.
    let problem = || fields.text(&TITLE[..TITLE.len() - 1]).or_else(|| fields.text(EXPLANATION)).is_some();
    let more = [SEVERITY, PRIORITY, CONFIDENCE, KIND, QUOTE, SUGGESTION];
    (!path.is_empty() || fields.path().is_some())
        && problem()
        && (fields.lines().is_some() || more.iter().any(|names| fields.under(names).next().is_some()))
}

pub(super) fn read(fields: &Fields<'_, '_>, path: &str) -> Read {
    let named = fields.path();
    let (path, path_lines) = named.as_deref().map_or((path, None), |path| with_lines(path.trim()));
    if is_placeholder(path) {
        return Read::Example;
    }
    let title = fields.text(TITLE).unwrap_or_default();
    let explanation = fields.text(EXPLANATION).unwrap_or_default();
    let kind = fields.under(KIND).filter_map(text).find_map(|name| words::kind(&name)).unwrap_or(Kind::Correctness);
    if path.is_empty() && title.is_empty() && explanation.is_empty() {
        return Read::Nameless;
    }
    let (marked, heading) = marked(&title);
    let priority = fields.under(PRIORITY).find_map(priority).or(marked);
    let title = headline(heading)
        .or_else(|| headline(&explanation))
        .unwrap_or_else(|| kind.word().to_lowercase().replace('_', " "));
    let mut notes = Vec::new();
    let (suggestion, replacement, replaced) = suggested(fields, &mut notes);
    let place = fields.lines().or(path_lines);
    Read::Report(
        Box::new(Reported {
            path: one_line(start(path, MAX_PATH)).into_owned(),
            line_start: place.map_or(0, |lines| lines.start),
            line_end: place.map_or(0, |lines| lines.end),
            kind,
            severity: fields.under(SEVERITY).filter_map(text).find_map(|word| words::severity(&word)),
            priority,
            confidence: fields.under(CONFIDENCE).find_map(confidence),
            explanation: match explanation.trim() {
                // What did not fit into one line is not lost.
                "" if heading.trim().contains('\n') || title.ends_with('…') => prose(heading),
                said if said == title => String::new(),
                said => prose(said),
            },
            title,
            quoted_code: lines(start_of_code(without_fence(&fields.text(QUOTE).unwrap_or_default())), TAB),
            suggestion: prose(&suggestion),
            replacement,
            replaced,
        }),
        notes,
    )
}

/// Whether a path stands for any path, as in the example of a prompt or in a schema.
fn is_placeholder(path: &str) -> bool {
    let file = path.trim_start_matches('/').strip_prefix("path/to/");
    file.is_some_and(|file| file == "file" || file.starts_with("file.") || file.contains('<'))
        || (path.starts_with('<') && path.ends_with('>'))
        || matches!(path, "..." | "…" | "string" | "relative/path")
}

/// A title without the priority that stands before it: `[P1] Lock is not released`.
fn marked(title: &str) -> (Option<Priority>, &str) {
    let rest = title.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    // A number alone is an index.
    match rest.filter(|(mark, _)| mark.starts_with(['P', 'p'])).map(|(mark, rest)| (mark.parse(), rest)) {
        Some((Ok(priority), rest)) => (Some(priority), rest),
        _ => (None, title),
    }
}

fn priority(value: &Value<'_>) -> Option<Priority> {
    match value {
        Value::Number(number) if *number >= 0.0 => Some(words::priority_of(*number as u8)),
        value => words::priority(&text(value)?),
    }
}

fn confidence(value: &Value<'_>) -> Option<Confidence> {
    match value {
        Value::Number(number) => words::confidence_of(*number),
        value => {
            let text = text(value)?;
            let number = || text.trim().trim_end_matches('%').parse().ok().and_then(words::confidence_of);
            words::confidence(&text).or_else(number)
        }
    }
}

/// The suggestion in words and as code, and the lines that the code replaces.
fn suggested<'v>(
    fields: &Fields<'v, '_>,
    notes: &mut Vec<&'static str>,
) -> (Cow<'v, str>, Option<String>, Option<LineRange>) {
    let nested = fields.under(SUGGESTION).find_map(object).map(Fields::of);
    let within = |names| nested.as_ref().and_then(|nested| nested.text(names));
    let words = fields.text(SUGGESTION).or_else(|| within(SUGGESTION_TEXT)).unwrap_or_default();
    // An empty replacement is one: the lines go.
    let code = fields.under(REPLACEMENT).find_map(text).or_else(|| nested.as_ref()?.under(REPLACEMENT).find_map(text));
    let replaced =
        fields.under(REPLACED).find_map(|value| lines_in(value, 2)).or_else(|| nested.as_ref().and_then(Fields::lines));
    let mut replacement = None;
    if let Some(code) = code {
        let code = without_fence(&code);
        // Code that would hide what it does must not be applied, and a piece of it is no replacement.
        if code.chars().any(|c| is_unsafe(c) && !matches!(c, '\t' | '\n' | '\r')) {
            notes.push("its replacement has characters that cannot be seen, and is dropped");
        } else if code.len() > MAX_REPLACEMENT && code.chars().count() > MAX_REPLACEMENT {
            notes.push("its replacement is too long, and is dropped");
        } else {
            replacement = Some(code.to_owned());
        }
    }
    let replaced = replaced.filter(|_| replacement.is_some());
    (words, replacement, replaced)
}

/// The first `max` characters.
pub(super) fn start(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// A quote up to its bound, in whole lines where there are several.
fn start_of_code(code: &str) -> &str {
    let first = start(code, MAX_QUOTE);
    match first.rfind('\n') {
        Some(end) if first.len() < code.len() => first.get(..end).unwrap_or_default(),
        _ => first,
    }
}

/// Code without the fence around it.
fn without_fence(code: &str) -> &str {
    let inner = || {
        let fenced = code.trim();
        let (opening, rest) = fenced.split_once('\n')?;
        opening.strip_prefix("```")?;
        rest.strip_suffix("```").map(|rest| rest.strip_suffix('\n').unwrap_or(rest))
    };
    inner().unwrap_or(code)
}

/// Many lines for a person.
fn prose(text: &str) -> String {
    bounded(lines(start(text.trim(), MAX_TEXT + 1), TAB), MAX_TEXT)
}

fn bounded(text: String, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text,
        Some(_) => format!("{}…", start(&text, max - 1)),
    }
}

/// The first line that says something, without the marks of a heading.
fn headline(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*')))
        .find(|line| !line.is_empty())?;
    Some(bounded(one_line(start(line, MAX_TITLE + 1)).into_owned(), MAX_TITLE))
}
