//! Finds quoted code again in a text, also if secrets in it are masked.

use std::collections::HashSet;

use super::text::normalize_code;

/// Minimum length of a line that tells something about the code, in bytes: shorter ones stand in every file.
const MIN_TELLING_BYTES: usize = 6;
/// Beginnings and ends of the marks that stand in place of secrets: `«secret:kind»` and `…(20 characters)`.
const MASKS: [(&str, &str); 2] = [("\u{ab}secret", "\u{bb}"), ("\u{2026}(", " characters)")];

/// Lines of a text, for comparison with quoted code. Spaces do not count.
#[derive(Debug, Clone)]
pub struct CodeLines {
    lines: HashSet<String>,
}

impl CodeLines {
    /// Splits a text into lines.
    pub fn new(text: &str) -> Self {
        Self { lines: normalize_code(text).lines().map(str::to_owned).collect() }
    }

    /// Returns true if at least half of the telling lines of `quoted` stand in the text. A line with masked secrets stands
    /// there if a line has the same text around them. True without a telling line.
    pub fn contain(&self, quoted: &str) -> bool {
        let quoted = normalize_code(quoted);
        let stands = |line: &str| match split_at_masks(line) {
            None if line.len() < MIN_TELLING_BYTES => None,
            None => Some(self.lines.contains(line)),
            Some((before, after)) if before.len() + after.len() < MIN_TELLING_BYTES => None,
            Some((before, after)) => Some(self.lines.iter().any(|line| {
                line.len() > before.len() + after.len() && line.starts_with(before) && line.ends_with(after)
            })),
        };
        let told: Vec<bool> = quoted.lines().filter_map(stands).collect();
        told.is_empty() || 2 * told.iter().filter(|stands| **stands).count() >= told.len()
    }
}

/// Returns the text before the first mask and behind the last one; `None` if there is no mask.
fn split_at_masks(line: &str) -> Option<(&str, &str)> {
    let masks = MASKS.iter().flat_map(|(begin, end)| {
        line.match_indices(begin).filter_map(move |(at, _)| Some((at, at + line[at..].find(end)? + end.len())))
    });
    let (start, end) = masks.fold(None, |span: Option<(usize, usize)>, (from, to)| {
        Some(span.map_or((from, to), |(start, end)| (start.min(from), end.max(to))))
    })?;
    Some((&line[..start], &line[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_while_half_of_its_lines_do_and_masks_stand_for_any_text() {
        let lines = CodeLines::new("fn a() {\n    one();\n    two();\n}\nKEY = \"abc\"\nother = 1\nx = env(\"KEY\")\n");
        for (quoted, stands) in [
            ("one();\ntwo();", true),
            ("one();\nnine();", true),
            ("eight();\nnine();", false),
            ("}", true),
            ("", true),
            ("KEY = \"\u{ab}secret\u{bb}\"", true),
            ("KEY = \"\u{ab}secret:aws_key\u{bb}\"", true),
            ("  KEY  =  \"\u{2026}(20 characters)\"", true),
            ("TOKEN = \"\u{2026}(20 characters)\"", false),
            ("x = \"\u{2026}(20 characters)\"", false),
            ("other = \u{2026}(1 characters)", true),
            ("\"\u{2026}(20 characters)\"", true),
        ] {
            assert_eq!(lines.contain(quoted), stands, "{quoted:?}");
        }
    }

    #[test]
    fn the_text_around_all_masks_of_a_line_counts() {
        let split = |line| split_at_masks(line).map(|(a, b)| (a.to_owned(), b.to_owned()));
        let parts = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(split("f(\u{ab}secret\u{bb}, \u{2026}(3 characters)) end"), parts("f(", ") end"));
        assert_eq!(split("f(\u{2026}(3 characters)) \u{2026}(and"), parts("f(", ") \u{2026}(and"));
        assert_eq!(split("\u{2026}(more"), None);
        assert_eq!(split("plain"), None);
    }
}
