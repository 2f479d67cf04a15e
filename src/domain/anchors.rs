//! The code that findings are anchored to: what of it identifies a finding and what of it is quoted.
//!
//! Both are bounded, and asked for again at no cost while the anchor stays the same: a file may be one line of a
//! megabyte with thousands of smells on it.

use std::rc::Rc;

use super::text::normalize_code;
use super::{Finding, content_hash};

/// Longer code is identified by its beginning and a hash. Bytes.
const MAX_IDENTITY_BYTES: usize = 4096;

/// Longer lines are cut where they are quoted. Characters; own: what a wide terminal shows in two rows.
const MAX_QUOTE_COLUMNS: usize = 400;

/// A text by its lines, counted from 1, and what was made of the last anchor.
pub struct Anchors<'a> {
    lines: Vec<&'a [u8]>,
    identity: Option<((u32, u32), Rc<str>)>,
}

impl<'a> Anchors<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
        Self { lines, identity: None }
    }

    /// Lines `first` to `last`, both included, as far as there are any.
    pub fn lines(&self, (first, last): (u32, u32)) -> &[&'a [u8]] {
        let first = (first.max(1) as usize - 1).min(self.lines.len());
        let last = (last as usize).clamp(first, self.lines.len());
        self.lines.get(first..last).unwrap_or_default()
    }

    /// What makes code the same code, see [`normalize_code`].
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

    /// The code as it is shown: the first lines, long ones cut; bytes that are no UTF-8 replaced.
    pub fn quote(&self, anchor: (u32, u32)) -> String {
        let lines = self.lines(anchor).iter().take(Finding::MAX_QUOTE_LINES);
        let quoted: Vec<String> = lines
            .map(|line| {
                // A character has four bytes at most; one that is cut here is cut off below.
                let line = line.get(..MAX_QUOTE_COLUMNS * 4 + 4).unwrap_or(line);
                truncate_line(&String::from_utf8_lossy(line)).into_owned()
            })
            .collect();
        quoted.join("\n")
    }
}

/// The identity of code that is not the file's own: a quote with secrets masked.
pub fn compute_code_identity(code: &str) -> String {
    let normal = normalize_code(code);
    if normal.len() <= MAX_IDENTITY_BYTES {
        return normal;
    }
    let hash = content_hash([normal.as_bytes()]);
    format!("{} {hash}", &normal[..normal.floor_char_boundary(MAX_IDENTITY_BYTES)])
}

/// As much of a quote as a finding holds.
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
