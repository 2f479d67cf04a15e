//! Computes the identity and the quote of the code that a finding is anchored to.
//!
//! Both are bounded in size, because a file may be one line of a megabyte with thousands of smells on it. The
//! identity of the last anchor is cached.

use std::rc::Rc;

use super::text::normalize_code;
use super::{Finding, content_hash};

/// Maximum size of an identity in bytes. Longer code is identified by its first bytes and a hash.
const MAX_IDENTITY_BYTES: usize = 4096;

/// Maximum length of a quoted line in characters. Chosen for revdeck: about two rows of a wide terminal.
const MAX_QUOTE_COLUMNS: usize = 400;

/// Text split into lines, with a cache of the last anchor's identity. Line numbers are 1-based.
pub struct Anchors<'a> {
    lines: Vec<&'a [u8]>,
    identity: Option<((u32, u32), Rc<str>)>,
}

impl<'a> Anchors<'a> {
    /// Splits a text into lines.
    pub fn new(text: &'a [u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
        Self { lines, identity: None }
    }

    /// Returns lines `first` to `last` (1-based, inclusive). Lines beyond the end of the text are left out.
    pub fn lines(&self, (first, last): (u32, u32)) -> &[&'a [u8]] {
        let first = (first.max(1) as usize - 1).min(self.lines.len());
        let last = (last as usize).clamp(first, self.lines.len());
        self.lines.get(first..last).unwrap_or_default()
    }

    /// Returns the identity of the code at the anchor (see [`normalize_code`]).
    pub fn identity(&mut self, anchor: (u32, u32)) -> Rc<str> {
        if let Some((known, identity)) = &self.identity
            && *known == anchor
        {
            return Rc::clone(identity);
        }
        let lines: Vec<_> = self.lines(anchor).iter().map(|line| String::from_utf8_lossy(line)).collect();
        let identity: Rc<str> = compute_code_identity(&lines.join("\n")).into();
        self.identity = Some((anchor, Rc::clone(&identity)));
        identity
    }

    /// Returns the code for display: at most [`Finding::MAX_QUOTE_LINES`] lines, long lines truncated, invalid UTF-8
    /// replaced.
    pub fn quote(&self, anchor: (u32, u32)) -> String {
        let lines = self.lines(anchor).iter().take(Finding::MAX_QUOTE_LINES);
        let quoted: Vec<String> = lines
            .map(|line| {
                // A character has at most four bytes. If this slice splits a character, `truncate_line` removes the
                // broken end.
                let line = line.get(..MAX_QUOTE_COLUMNS * 4 + 4).unwrap_or(line);
                truncate_line(&String::from_utf8_lossy(line)).into_owned()
            })
            .collect();
        quoted.join("\n")
    }
}

/// Computes the identity of code that is not raw file content, for example a quote with masked secrets.
pub fn compute_code_identity(code: &str) -> String {
    let normal = normalize_code(code);
    if normal.len() <= MAX_IDENTITY_BYTES {
        return normal;
    }
    let hash = content_hash([normal.as_bytes()]);
    format!("{} {hash}", &normal[..normal.floor_char_boundary(MAX_IDENTITY_BYTES)])
}

/// Returns the first [`Finding::MAX_QUOTE_LINES`] lines of the code, long lines truncated.
pub fn truncate_quote(code: &str) -> String {
    let first: Vec<_> = code.lines().take(Finding::MAX_QUOTE_LINES).map(truncate_line).collect();
    first.join("\n")
}

fn truncate_line(line: &str) -> std::borrow::Cow<'_, str> {
    match line.char_indices().nth(MAX_QUOTE_COLUMNS) {
        Some((end, _)) => format!("{}…", &line[..end]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_identities_are_bounded_and_tell_code_apart() {
        let long = "ä x ".repeat(100_000);
        let text = format!("short\r\n{long}1\n{long}2\n");
        let mut anchors = Anchors::new(text.as_bytes());
        assert_eq!(anchors.quote((1, 1)), "short");
        assert_eq!(anchors.quote((2, 3)).chars().count(), 2 * (MAX_QUOTE_COLUMNS + 1) + 1);
        assert_eq!(anchors.quote((9, 12)), "");
        let (one, other) = (anchors.identity((2, 2)), anchors.identity((3, 3)));
        assert_ne!(one, other);
        assert!(one.len() < MAX_IDENTITY_BYTES + 100);
        assert!(Rc::ptr_eq(&other, &anchors.identity((3, 3))), "made once for an anchor");
        assert_eq!(&*anchors.identity((1, 1)), "short");
    }
}
