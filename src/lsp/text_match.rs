//! A file as a review read it, compared with the text of a document: where a finding's lines are now.
//!
//! The rules are those that decide about findings at the end of a run ([`crate::policy::anchor`]), so an unsaved edit moves
//! a finding as the next review would.

use std::sync::Arc;

use crate::domain::LineRange;
use crate::git::{Hunk, Repo};
use crate::policy::anchor::{
    AddedLines, AnchorEdit, AnchorLocation, CurrentFile, HashedLines, MappedLines, locate_anchor, map_lines,
};

/// Maximum size of a text that is compared, in bytes; as where findings are followed from run to run.
pub const MAX_COMPARED_BYTES: usize = 4 << 20;
/// Name of the one file that is compared.
const FILE_NAME: &str = "file";

/// File as a review read it.
#[derive(Debug)]
pub struct ReviewedText {
    text: String,
    code: HashedLines,
}

impl ReviewedText {
    /// Takes over a file's content; `None` if it is too large. Line ends become `\n`.
    pub fn new(content: &[u8]) -> Option<Self> {
        if content.len() > MAX_COMPARED_BYTES {
            return None;
        }
        let text = with_plain_line_ends(&String::from_utf8_lossy(content));
        Some(Self { code: HashedLines::from_text(text.as_bytes()), text })
    }
}

fn with_plain_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Reviewed text and the text of a document, with the edits between them.
#[derive(Debug)]
pub struct TextMatch<'a> {
    old: &'a ReviewedText,
    new: String,
    code: Arc<HashedLines>,
    edits: Vec<AnchorEdit>,
}

impl<'a> TextMatch<'a> {
    /// Compares two texts. Returns `None` if the document is too large.
    pub fn new(repo: &Repo, old: &'a ReviewedText, document: &str) -> Option<Self> {
        if document.len() > MAX_COMPARED_BYTES {
            return None;
        }
        let new = with_plain_line_ends(document);
        let edit = |Hunk { old_start, old_lines, new_start, new_lines }| AnchorEdit {
            old_start,
            old_lines,
            new_start,
            new_lines,
        };
        let hunks = if old.text == new { Ok(Vec::new()) } else { repo.diff_texts(old.text.as_bytes(), new.as_bytes()) };
        let edits = hunks.ok()?.into_iter().map(edit).collect();
        let code = Arc::new(HashedLines::from_text(new.as_bytes()));
        Some(Self { old, new, code, edits })
    }

    /// Locates reviewed lines in the document: unchanged, edited to less than a half, or moved unchanged. Returns `None` if
    /// their code does not stand there any more.
    pub fn locate(&self, lines: LineRange) -> Option<LineRange> {
        let now = CurrentFile { path: FILE_NAME, code: &self.code, edits: &self.edits };
        let here = locate_anchor(&self.old.code, FILE_NAME, lines, Some(now), || None);
        if let Some(found) = here {
            return found.place().map(|(_, lines)| lines);
        }
        let mut added = AddedLines::default();
        added.add(FILE_NAME, Arc::clone(&self.code), self.edits.iter().filter_map(AnchorEdit::added_lines));
        match locate_anchor(&self.old.code, FILE_NAME, lines, Some(now), || Some(&added)) {
            Some(AnchorLocation::Unchanged { lines, .. }) => Some(lines),
            _ => None,
        }
    }

    /// Locates reviewed lines in the document if not one character of them has changed, apart from line ends.
    pub fn locate_exactly(&self, lines: LineRange) -> Option<LineRange> {
        let MappedLines::Unchanged(there) = map_lines(&self.old.code, &self.code, &self.edits, lines) else {
            return None;
        };
        let wanted = nth_lines(&self.old.text, lines);
        (wanted.len() == lines.count() as usize && wanted == nth_lines(&self.new, there)).then_some(there)
    }
}

fn nth_lines(text: &str, lines: LineRange) -> Vec<&str> {
    text.lines().skip((lines.start as usize).saturating_sub(1)).take(lines.count() as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an empty repository, which comparing texts needs only for its errors.
    fn repository() -> (tempfile::TempDir, Repo) {
        let folder = tempfile::tempdir().expect("a folder");
        let made = std::process::Command::new("git").current_dir(folder.path()).args(["init", "-q"]).status();
        assert!(made.expect("git starts").success());
        let repo = Repo::discover(folder.path()).expect("a repository");
        (folder, repo)
    }

    fn lines(found: Option<LineRange>) -> Option<(u32, u32)> {
        found.map(|lines| (lines.start, lines.end))
    }

    #[test]
    fn findings_follow_unsaved_edits_until_their_code_is_gone() {
        let (_folder, repo) = repository();
        let reviewed =
            "fn first() {\n    let total = price * count;\n    return total;\n}\nfn second() {\n    other();\n}\n";
        let old = ReviewedText::new(reviewed.as_bytes()).expect("small enough");
        for (name, text, located, exact) in [
            ("unchanged", reviewed.to_owned(), Some((2, 3)), Some((2, 3))),
            ("lines above", format!("// a\n// b\n{reviewed}"), Some((4, 5)), Some((4, 5))),
            ("other line ends", reviewed.replace('\n', "\r\n"), Some((2, 3)), Some((2, 3))),
            ("indented", reviewed.replace("    let", "        let"), Some((2, 3)), None),
            ("one of two lines edited", reviewed.replace("return total", "return totals"), Some((2, 3)), None),
            ("rewritten", reviewed.replace("let total = price * count;\n    return total", "sum()"), None, None),
            (
                "moved down",
                {
                    let moved = "    let total = price * count;\n    return total;\n";
                    format!("{}{moved}", reviewed.replace(moved, ""))
                },
                Some((6, 7)),
                None,
            ),
            ("deleted", "fn second() {\n    other();\n}\n".to_owned(), None, None),
            ("empty", String::new(), None, None),
        ] {
            let compared = TextMatch::new(&repo, &old, &text).expect("small enough");
            assert_eq!(lines(compared.locate(LineRange::new(2, 3))), located, "{name}");
            assert_eq!(lines(compared.locate_exactly(LineRange::new(2, 3))), exact, "{name}");
        }
        let same = TextMatch::new(&repo, &old, reviewed).expect("small enough");
        assert_eq!(lines(same.locate(LineRange::new(900, 901))), None, "outside of the file");
        assert_eq!(lines(same.locate_exactly(LineRange::new(7, 9))), None, "beyond its end");
    }

    #[test]
    fn large_texts_are_not_compared() {
        let (_folder, repo) = repository();
        let large = "x".repeat(MAX_COMPARED_BYTES + 1);
        assert!(ReviewedText::new(large.as_bytes()).is_none());
        let old = ReviewedText::new(b"x\n").expect("small enough");
        assert!(TextMatch::new(&repo, &old, &large).is_none());
    }
}
