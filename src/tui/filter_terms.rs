//! Splits the text of a filter into terms, names their kinds, and quotes values that would not be one term.
//!
//! Text in double quotes is one value, whatever is in it: `path:"docs dir/a b.py"`. A backslash in it stands before a quote
//! or a backslash that belongs to the value. A quote that is not closed reaches to the end, so that a filter means something
//! while it is typed.

use std::borrow::Cow;

use crate::domain::Kind;

/// Property of findings that a term narrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// Status, snoozes and disputes of people.
    Status,
    /// Priority.
    Priority,
    /// Kind of the finding.
    Kind,
    /// Path of the file.
    Path,
    /// Run that reported the finding.
    Run,
    /// Contradictions in a panel.
    Panel,
}

impl TermKind {
    /// Names of the terms, in the order in which completion offers them.
    pub const NAMES: [&str; 6] = ["status:", "p:", "kind:", "path:", "run:", "panel:"];

    /// Returns the kind of the terms with a name, in any case; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "status" | "s" => Self::Status,
            "p" | "priority" => Self::Priority,
            "kind" | "k" => Self::Kind,
            "path" | "file" => Self::Path,
            "run" => Self::Run,
            "panel" => Self::Panel,
            _ => return None,
        })
    }

    /// Returns the kind of a term as it is written; `None` for words, in quotes or not, and for an unknown name.
    pub fn from_term(term: &str) -> Option<Self> {
        split_name(term).and_then(|(name, _)| Self::from_name(name))
    }

    /// Returns the values of a term; none if any text is a value.
    pub fn values(self) -> Vec<String> {
        match self {
            Self::Status => {
                let words = ["undecided", "open", "unresolved", "addressed", "dismissed", "obsolete"];
                words.into_iter().chain(["decided", "snoozed", "disputed", "all"]).map(str::to_owned).collect()
            }
            Self::Priority => ["0", "1", "2", "3"].map(str::to_owned).to_vec(),
            Self::Panel => vec!["disputed".to_owned()],
            Self::Kind => Kind::ALL.iter().map(|kind| kind.word().to_owned()).collect(),
            Self::Path | Self::Run => Vec::new(),
        }
    }
}

/// Place in a text with quotes.
#[derive(Default)]
struct QuoteScan {
    is_inside: bool,
    is_escaped: bool,
}

impl QuoteScan {
    /// Goes over a character. Returns true if it is inside of quotes, or a quote.
    fn step(&mut self, c: char) -> bool {
        let was_inside = self.is_inside;
        match c {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' if self.is_inside => self.is_escaped = true,
            '"' => self.is_inside = !self.is_inside,
            _ => {}
        }
        was_inside || self.is_inside
    }
}

/// Returns the terms of a filter as they are written, with their quotes.
pub fn split_terms(text: &str) -> Vec<&str> {
    split_outside_quotes(text, char::is_whitespace)
}

/// Returns the name and the values of a term; `None` for words without a name.
pub fn split_name(term: &str) -> Option<(&str, &str)> {
    term.split_once(':').filter(|(name, _)| !name.contains('"'))
}

/// Returns the values of a term as they are written, without empty ones.
pub fn split_values(values: &str) -> Vec<&str> {
    split_outside_quotes(values, |c| c == ',')
}

/// Returns the byte at which the term at the end of the text begins; the length of the text if none is at its end.
pub fn last_term_start(text: &str) -> usize {
    let mut scan = QuoteScan::default();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if !scan.step(c) && c.is_whitespace() {
            start = at + c.len_utf8();
        }
    }
    start
}

/// Returns the parts of the text between separators outside of quotes, without empty ones.
fn split_outside_quotes(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut scan = QuoteScan::default();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if !scan.step(c) && is_separator(c) {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the meaning of a written value: without its quotes.
pub fn unquote(value: &str) -> String {
    let mut scan = QuoteScan::default();
    let mut plain = String::with_capacity(value.len());
    for c in value.chars() {
        let (was_inside, was_escaped) = (scan.is_inside, scan.is_escaped);
        scan.step(c);
        match c {
            '"' | '\\' if was_escaped => plain.push(c),
            c if was_escaped => plain.extend(['\\', c]),
            '"' => {}
            '\\' if was_inside => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Returns a term as it is written, with the quote at its end that may be missing, so that another term can follow it.
pub fn close_quote(term: &str) -> Cow<'_, str> {
    let mut scan = QuoteScan::default();
    for c in term.chars() {
        scan.step(c);
    }
    match (scan.is_inside, scan.is_escaped) {
        (false, _) => Cow::Borrowed(term),
        (true, false) => Cow::Owned(format!("{term}\"")),
        // A backslash at the end of the text stands before nothing.
        (true, true) => Cow::Owned(format!("{}\"", &term[..term.len() - 1])),
    }
}

/// Returns a value as it is written, in quotes if it needs them.
pub fn quote(value: &str) -> Cow<'_, str> {
    if !value.contains(|c: char| c.is_whitespace() || matches!(c, ',' | '"')) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_a_value_together() {
        for (text, terms) in [
            (" p:0  kind:dead ", &["p:0", "kind:dead"][..]),
            ("", &[]),
            (r#"path:"docs dir/a b.py" p:1"#, &[r#"path:"docs dir/a b.py""#, "p:1"]),
            (r#"path:src/"a b".rs"#, &[r#"path:src/"a b".rs"#]),
            (r#""two words" x"#, &[r#""two words""#, "x"]),
            // While it is typed.
            (r#"p:1 path:"docs d"#, &["p:1", r#"path:"docs d"#]),
            (r#"path:"a \" b" c"#, &[r#"path:"a \" b""#, "c"]),
        ] {
            assert_eq!(split_terms(text), terms, "{text}");
        }
        for (term, expected) in [
            (r#"path:"a:b c""#, Some(("path", r#""a:b c""#))),
            (r#""a:b c""#, None),
            ("word", None),
            ("kind:", Some(("kind", ""))),
        ] {
            assert_eq!(split_name(term), expected, "{term}");
        }
        assert_eq!(split_values(r#""a, b",c,,"#), [r#""a, b""#, "c"]);
        for (text, start) in [("", 0), ("p:0 ki", 4), ("p:0 ", 4), (r#"path:"a b"#, 0), (r#"path:"a b" st"#, 11)] {
            assert_eq!(last_term_start(text), start, "{text}");
        }
    }

    #[test]
    fn a_term_can_follow_one_whose_quote_is_not_closed() {
        for term in ["p:0", r#"path:"a b"#, r#"path:"a b""#, r#""a \" b"#, r#""a b\"#, "\""] {
            let closed = close_quote(term);
            assert_eq!(split_terms(&format!("{closed} p:1")), [&*closed, "p:1"], "{term}");
            assert_eq!(unquote(&closed), unquote(term), "{term}");
        }
    }

    #[test]
    fn a_quoted_value_means_itself() {
        for value in ["a.rs", "docs dir/a b.py", "a,b", "say \"hi\" now", "C:\\x y\\", "a\\b", "größe 漢字", "\""] {
            let written = quote(value);
            assert_eq!(unquote(&written), value, "{written}");
            assert_eq!(split_terms(&format!("p:0 path:{written} x")).len(), 3, "{written}");
            assert_eq!(split_values(&written).len(), 1, "{written}");
        }
        for (written, value) in [("\"a b", "a b"), ("x\"a b\"y", "xa by"), (r#""a\b""#, r"a\b"), ("\"\"", "")] {
            assert_eq!(unquote(written), value, "{written}");
        }
    }
}
