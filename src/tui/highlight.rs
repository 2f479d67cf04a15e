//! Highlights code on a worker thread. The syntax definitions are read when first needed; a file is parsed only
//! up to its last visible line.

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::page_data::HighlightSpans;
use super::theme::Role;

/// Greatest number of lines parsed before the visible ones; enough for comments and strings that start earlier.
const MAX_LEAD_LINES: usize = 3_000;
/// Longest highlighted line, in bytes; longer lines stay plain.
const MAX_LINE_BYTES: usize = 1_000;
/// Texts whose parsing can be continued.
const MAX_CONTINUED_TEXTS: usize = 6;

/// Parses code; keeps the syntax definitions once they are read.
#[derive(Default)]
pub struct Highlighter {
    syntaxes: Option<SyntaxSet>,
    roles: Vec<(Scope, Role)>,
}

/// Texts that were parsed in part, the last one first. It stays on the thread that made it.
#[derive(Default)]
pub struct PartlyParsedTexts {
    texts: Vec<ParseProgress>,
}

/// State of the parser at some lines of a text.
struct ParseProgress {
    /// Names the text.
    key: (u64, bool),
    /// Line (0-based) at which each state begins, in ascending order.
    states: Vec<(u32, ParseState, ScopeStack)>,
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
            let Some(spans) = parse_line((syntaxes, roles), line, &mut text, (&mut state, &mut stack)) else {
                return Vec::new();
            };
            if index >= from {
                out.push(spans);
            }
        }
        out
    }

    /// Returns the highlighted spans of `count` lines of a text from `from` on (0-based), one list per line; empty if the
    /// language is unknown. Parsing goes on from the nearest line above that was parsed for the same text, which `key`
    /// names. `line` returns a line by its number from 0, and `None` behind the last one.
    pub fn highlight_block<'a>(
        &mut self,
        parsed: &mut PartlyParsedTexts,
        path: &str,
        key: (u64, bool),
        line: &dyn Fn(u32) -> Option<&'a str>,
        from: u32,
        count: u32,
    ) -> Vec<HighlightSpans> {
        if self.roles.is_empty() {
            self.roles = SCOPE_ROLES.iter().filter_map(|(name, role)| Some((Scope::new(name).ok()?, *role))).collect();
        }
        let Self { syntaxes, roles } = self;
        let continued = &mut parsed.texts;
        let syntaxes = syntaxes.get_or_insert_with(two_face::syntax::extra_newlines);
        let Some(syntax) = find_syntax(syntaxes, path, line(0).unwrap_or("")) else { return Vec::new() };
        let mut progress = match continued.iter().position(|known| known.key == key) {
            Some(at) => continued.remove(at),
            None => ParseProgress { key, states: vec![(0, ParseState::new(syntax), ScopeStack::new())] },
        };
        let lead = from.saturating_sub(MAX_LEAD_LINES as u32);
        let known = progress.states.partition_point(|(at, ..)| *at <= from).checked_sub(1);
        let (start, mut state, mut stack) = match known.and_then(|at| progress.states.get(at)) {
            Some((at, state, stack)) if *at >= lead => (*at, state.clone(), stack.clone()),
            _ => (lead, ParseState::new(syntax), ScopeStack::new()),
        };
        let mut out = Vec::with_capacity(count as usize);
        let mut text = String::new();
        for number in start..from.saturating_add(count) {
            let Some(line) = line(number) else { break };
            let Some(spans) = parse_line((syntaxes, roles), line, &mut text, (&mut state, &mut stack)) else { break };
            if number >= from {
                out.push(spans);
            }
        }
        let end = from.saturating_add(count);
        let place = progress.states.partition_point(|(at, ..)| *at < end);
        if progress.states.get(place).is_none_or(|(at, ..)| *at != end) {
            progress.states.insert(place, (end, state, stack));
        }
        continued.insert(0, progress);
        continued.truncate(MAX_CONTINUED_TEXTS);
        out
    }
}

/// Parses a line and returns its spans; `None` if the syntax definition fails. `text` is a buffer.
fn parse_line(
    (syntaxes, roles): (&SyntaxSet, &[(Scope, Role)]),
    line: &str,
    text: &mut String,
    (state, stack): (&mut ParseState, &mut ScopeStack),
) -> Option<HighlightSpans> {
    let mut spans = HighlightSpans::new();
    if line.len() > MAX_LINE_BYTES {
        return Some(spans);
    }
    text.clear();
    text.push_str(line);
    text.push('\n');
    let parsed = state.parse_line(text, syntaxes).ok()?;
    let mut at = 0;
    for (end, operation) in parsed {
        if end > at {
            push_span(roles, &mut spans, at, end.min(line.len()), stack);
        }
        at = end;
        stack.apply(&operation).ok()?;
    }
    push_span(roles, &mut spans, at, line.len(), stack);
    Some(spans)
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
        // Blocks give the same, in any order, and a string that began in an earlier block goes on.
        let mut parsed = PartlyParsedTexts::default();
        let mut block = |highlighter: &mut Highlighter, from, count| {
            highlighter.highlight_block(
                &mut parsed,
                "src/a.rs",
                (1, true),
                &|line| lines.get(line as usize).copied(),
                from,
                count,
            )
        };
        let mut highlighter = Highlighter::default();
        assert_eq!(block(&mut highlighter, 1, 2), spans);
        let whole = block(&mut highlighter, 0, 9);
        assert_eq!((&whole[1..], whole.len()), (&spans[..], 3));
        assert_eq!(block(&mut highlighter, 2, 1), spans[1..]);
        assert_eq!(Highlighter::default().highlight_lines("LICENSE", &["plain"], 0, 1), Vec::<HighlightSpans>::new());
    }
}
