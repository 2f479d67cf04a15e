//! Highlights code on a worker thread. The syntax definitions are read when first needed; a file is parsed only
//! up to its last visible line.

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::page_data::HighlightSpans;
use super::theme::Role;

/// Greatest number of lines parsed before the visible ones; enough for comments and strings that start earlier.
const MAX_LEAD_LINES: usize = 3_000;
/// Longest highlighted line, in bytes; longer lines stay plain.
const MAX_LINE_BYTES: usize = 1_000;

/// Parses code; keeps the syntax definitions once they are read.
#[derive(Default)]
pub struct Highlighter {
    syntaxes: Option<SyntaxSet>,
    roles: Vec<(Scope, Role)>,
}

/// Syntect scopes and their styles; the longest matching scope wins.
const SCOPE_ROLES: [(&str, Role); 22] = [
    ("comment", Role::Comment),
    ("string", Role::String),
    ("constant", Role::Constant),
    ("constant.character.escape", Role::Constant),
    ("keyword", Role::Keyword),
    ("keyword.operator", Role::Normal),
    ("keyword.operator.word", Role::Keyword),
    ("keyword.operator.logical.python", Role::Keyword),
    ("storage.type", Role::Keyword),
    ("storage.modifier", Role::Keyword),
    ("variable.language", Role::Keyword),
    ("entity.name.function", Role::Function),
    ("support.function", Role::Function),
    ("variable.function", Role::Function),
    ("entity.name.type", Role::Type),
    ("entity.name.class", Role::Type),
    ("entity.name.struct", Role::Type),
    ("entity.name.enum", Role::Type),
    ("entity.other.inherited-class", Role::Type),
    ("support.type", Role::Type),
    ("support.class", Role::Type),
    ("entity.name.tag", Role::Keyword),
];

impl Highlighter {
    /// Returns the highlighted spans of `lines[from..to]` (0-based), one list per line; empty if the language is
    /// unknown.
    pub fn highlight_lines(&mut self, path: &str, lines: &[&str], from: usize, to: usize) -> Vec<HighlightSpans> {
        if self.roles.is_empty() {
            self.roles = SCOPE_ROLES.iter().filter_map(|(name, role)| Some((Scope::new(name).ok()?, *role))).collect();
        }
        let Self { syntaxes, roles } = self;
        let syntaxes = syntaxes.get_or_insert_with(two_face::syntax::extra_newlines);
        let Some(syntax) = find_syntax(syntaxes, path, lines.first().copied().unwrap_or("")) else {
            return Vec::new();
        };
        let mut state = ParseState::new(syntax);
        let mut stack = ScopeStack::new();
        let start = from.saturating_sub(MAX_LEAD_LINES);
        let mut out = Vec::with_capacity(to.saturating_sub(from));
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate().take(to).skip(start) {
            let mut spans = HighlightSpans::new();
            if line.len() <= MAX_LINE_BYTES {
                text.clear();
                text.push_str(line);
                text.push('\n');
                let Ok(parsed) = state.parse_line(&text, syntaxes) else { return Vec::new() };
                let mut at = 0;
                for (end, operation) in parsed {
                    if index >= from && end > at {
                        push_span(roles, &mut spans, at, end.min(line.len()), &stack);
                    }
                    at = end;
                    if stack.apply(&operation).is_err() {
                        return Vec::new();
                    }
                }
                if index >= from {
                    push_span(roles, &mut spans, at, line.len(), &stack);
                }
            }
            if index >= from {
                out.push(spans);
            }
        }
        out
    }
}

fn push_span(roles: &[(Scope, Role)], spans: &mut HighlightSpans, start: usize, end: usize, stack: &ScopeStack) {
    if start >= end {
        return;
    }
    let role = stack.as_slice().iter().rev().find_map(|scope| {
        let fitting = roles.iter().filter(|(prefix, _)| prefix.is_prefix_of(*scope));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, role)| *role)
    });
    let Some(role) = role.filter(|role| *role != Role::Normal) else { return };
    let (start, end) = (start as u32, end as u32);
    match spans.last_mut() {
        Some(last) if last.1 == start && last.2 == role => last.1 = end,
        _ => spans.push((start, end, role)),
    }
}

fn find_syntax<'a>(syntaxes: &'a SyntaxSet, path: &str, first_line: &str) -> Option<&'a SyntaxReference> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or(name, |(_, extension)| extension);
    syntaxes
        .find_syntax_by_extension(name)
        .or_else(|| syntaxes.find_syntax_by_extension(extension))
        .or_else(|| syntaxes.find_syntax_by_extension(&extension.to_ascii_lowercase()))
        .or_else(|| syntaxes.find_syntax_by_first_line(first_line))
        .filter(|syntax| syntax.name != "Plain Text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_meaning_that_a_reader_sees() {
        let lines = ["/* a", "b */ fn main() {", "    let x = \"s\"; // c"];
        let spans = Highlighter::default().highlight_lines("src/a.rs", &lines, 1, 3);
        let piece = |line: usize, text: &str| {
            let at = lines[line].find(text).expect("a piece") as u32;
            spans[line - 1].iter().find(|(start, end, _)| (*start..*end).contains(&at)).map(|(.., role)| *role)
        };
        assert_eq!(piece(1, "b"), Some(Role::Comment), "a comment that began before the shown lines");
        assert_eq!(piece(1, "fn"), Some(Role::Keyword));
        assert_eq!(piece(1, "main"), Some(Role::Function));
        assert_eq!(piece(2, "\"s\""), Some(Role::String));
        assert_eq!(piece(2, "// c"), Some(Role::Comment));
        assert_eq!(piece(2, "="), None);
        assert_eq!(Highlighter::default().highlight_lines("LICENSE", &["plain"], 0, 1), Vec::<HighlightSpans>::new());
    }
}
