//! Findings as text that an editor shows beside the code.
//!
//! Text from code, file names and models cannot become markup. It is escaped otherwise than for code hosts
//! ([`crate::report::markdown`]), because editors show HTML comments as they are.

use super::repository::PlacedFinding;
use crate::domain::text::sanitize_line;
use crate::report::ExportedFinding;
use crate::report::markdown::{fence_language, format_code_span, format_fence};

/// Maximum number of findings in one hover. Own choice: more do not fit on a screen.
const MAX_SHOWN: usize = 4;
/// Maximum size of an explanation, a suggestion and a replacement, in bytes each.
const MAX_TEXT_BYTES: usize = 8_000;

/// Renders findings as Markdown, one below the other.
pub fn render_markdown(placed: &[&PlacedFinding]) -> String {
    let shown: Vec<String> = placed.iter().take(MAX_SHOWN).map(|placed| render_finding(&placed.exported)).collect();
    let mut page = shown.join("\n---\n\n");
    if placed.len() > MAX_SHOWN {
        page.push_str(&format!("\n---\n\nand {} more\n", placed.len() - MAX_SHOWN));
    }
    page
}

/// Renders findings as plain text.
pub fn render_plain(placed: &[&PlacedFinding]) -> String {
    placed.iter().take(MAX_SHOWN).map(|placed| describe_finding(&placed.exported)).collect::<Vec<_>>().join("\n\n")
}

/// Describes a finding in plain lines.
pub fn describe_finding(exported: &ExportedFinding) -> String {
    let finding = &exported.finding;
    let mut text = format!("{} {}: {}\n", finding.priority, finding.kind.label(), finding.title);
    let rest = exported.describe();
    if !rest.is_empty() {
        text.push_str(&format!("{}\n", cut(&rest)));
    }
    text.push_str(&format!("{} ({}, {} confidence)", finding.finding_id, finding.status, finding.confidence));
    text
}

fn render_finding(exported: &ExportedFinding) -> String {
    let finding = &exported.finding;
    let mut page = format!("**{} {}**: {}\n\n", finding.priority, escape(finding.kind.label()), escape(&finding.title));
    for line in cut(&finding.explanation).lines().filter(|line| !line.trim().is_empty()) {
        page.push_str(&format!("{}\n\n", escape(line.trim())));
    }
    if let Some(suggestion) = &finding.suggestion {
        if !suggestion.text.is_empty() {
            page.push_str(&format!("Suggestion: {}\n\n", escape(&cut(&suggestion.text))));
        }
        // Half of a replacement would be wrong code.
        let replacement = suggestion.replacement.as_deref();
        if let Some(replacement) = replacement.filter(|code| !code.is_empty() && code.len() <= MAX_TEXT_BYTES) {
            page.push_str(&format_fence(replacement, fence_language(&finding.repo_relative_path)));
        }
    }
    let id = format_code_span(finding.finding_id.as_str());
    page.push_str(&format!("{id} ({}, {} confidence)\n", finding.status, finding.confidence));
    page
}

fn cut(text: &str) -> String {
    match text.len() > MAX_TEXT_BYTES {
        true => format!("{}…", &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]),
        false => text.to_owned(),
    }
}

/// Escapes one line so that nothing in it is markup, a link or HTML. A backslash before punctuation shows the character.
fn escape(text: &str) -> String {
    let text = sanitize_line(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        let before = &text[..at];
        let is_markup = match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '@' | '!' => true,
            // Beginnings of lists and headings, and of addresses that become links.
            '-' | '+' | '=' => before.trim().is_empty(),
            '.' | ')' => {
                before.chars().all(|c| c.is_ascii_digit())
                    || before.as_bytes().last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"www"))
            }
            ':' => text[at..].starts_with("://"),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        for (hostile, expected) in [
            ("plain words, even (these) - and: a.b", "plain words, even (these) - and: a.b"),
            ("<script>&amp;", "\\<script\\>\\&amp;"),
            ("`x` **b** _i_", "\\`x\\` \\*\\*b\\*\\* \\_i\\_"),
            ("[a](command:evil) ![c](d)", "\\[a\\](command:evil) \\!\\[c\\](d)"),
            ("see https://evil.example or WWW.evil.example", "see https\\://evil.example or WWW\\.evil.example"),
            ("1. item\n# head", "1\\. item \\# head"),
            ("- item", "\\- item"),
            ("a\u{1b}[2J\u{202e}b", "a\u{fffd}\\[2J\u{fffd}b"),
        ] {
            assert_eq!(escape(hostile), expected, "{hostile:?}");
        }
    }
}
