//! Prepares the text of a file for a model: masked, bounded, without characters that control a terminal, and quoted
//! safely.

use std::borrow::Cow;

use crate::domain::LineRange;
use crate::domain::text::{format_count, is_unsafe};
use crate::git::{GitError, Repo, is_binary};
use crate::masking::Mask;

/// Maximum size of a file that is shown or searched, in bytes. Larger files are not written by people.
pub const MAX_TEXT_BYTES: u64 = 4 << 20;
/// Maximum length of a shown line, in characters: ten rows of a screen. Longer lines are cut.
pub const MAX_LINE_CHARS: usize = 500;

/// Masked text of a file, by lines. Lines are 1-based as in git: a last line without a line end counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobText {
    text: String,
    /// Byte offset of each line, and the end of the text.
    starts: Vec<usize>,
    pub is_binary: bool,
}

/// Reason why a file has no [`BlobText`].
#[derive(Debug)]
pub enum ReadTextError {
    /// Size in bytes, above [`MAX_TEXT_BYTES`].
    TooLarge(u64),
    Git(GitError),
}

impl BlobText {
    /// Reads and masks a blob. `path` selects the language for masking.
    ///
    /// # Errors
    /// Returns an error if the blob is larger than [`MAX_TEXT_BYTES`] or git cannot read it.
    pub fn from_blob(repo: &Repo, blob: &str, path: &str, mask: Mask) -> Result<Self, ReadTextError> {
        let size = repo.blob_size(blob).map_err(ReadTextError::Git)?;
        if size > MAX_TEXT_BYTES {
            return Err(ReadTextError::TooLarge(size));
        }
        Ok(Self::new(path, &repo.blob(blob).map_err(ReadTextError::Git)?, mask))
    }

    /// Masks `content`. Invalid UTF-8 is replaced.
    pub fn new(path: &str, content: &[u8], mask: Mask) -> Self {
        let lossy = String::from_utf8_lossy(content);
        let text = mask.mask_text(Some(path), &lossy).into_owned();
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts, is_binary: is_binary(content) }
    }

    /// Returns the number of lines.
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).unwrap_or(u32::MAX)
    }

    /// Returns a line (1-based) without its line end. Empty if there is no such line.
    pub fn line(&self, number: u32) -> &str {
        let at = number as usize;
        let bounds = at.checked_sub(1).and_then(|before| Some((*self.starts.get(before)?, *self.starts.get(at)?)));
        let line = bounds.and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default();
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Escapes characters of a line that control a terminal or display misleadingly: `\u{1b}`, `\u{202e}`. Tabs stay.
pub fn escape_unsafe(line: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\t' && is_unsafe(c);
    if !line.chars().any(is_hidden) {
        return line.into();
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match is_hidden(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// Formats a line with [`escape_unsafe`], cut to [`MAX_LINE_CHARS`] with a note.
pub fn format_line(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        None => escape_unsafe(line).into_owned(),
        Some((end, _)) => {
            let (kept, rest) = line.split_at(end);
            format!("{}… ({} more)", escape_unsafe(kept), format_count(rest.chars().count(), "character"))
        }
    }
}

/// Formats a path or name for use outside of a fence: masked, [`escape_fences`] applied, and cut like [`format_line`].
pub fn format_path(path: &str, mask: Mask) -> String {
    format_line(&escape_fences(&mask.mask_key_shapes(path)))
}

/// Applies [`escape_unsafe`] to a path or name and escapes characters that begin or end a fence or a tag: `\u{60}`,
/// `\u{3c}/diff>`.
pub fn escape_fences(path: &str) -> Cow<'_, str> {
    let path = escape_unsafe(path);
    let is_name = |c: &char| *c == '/' || *c == '!' || c.is_alphabetic();
    let has_tildes = path.contains("~~~");
    let mut rest = path.chars();
    let mut shown = String::new();
    while let Some(c) = rest.next() {
        match c {
            '`' => shown.extend(c.escape_unicode()),
            '~' if has_tildes => shown.extend(c.escape_unicode()),
            '<' if rest.clone().next().is_some_and(|next| is_name(&next)) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    if shown.len() == path.len() { path } else { shown.into() }
}

/// Returns the greatest number below `too_many` that fits, by binary search. `fitting` must fit, and every number below
/// a fitting number must fit too.
pub fn find_max_fitting(mut fitting: usize, mut too_many: usize, fits: impl Fn(usize) -> bool) -> usize {
    while fitting + 1 < too_many {
        let middle = fitting + (too_many - fitting) / 2;
        match fits(middle) {
            true => fitting = middle,
            false => too_many = middle,
        }
    }
    fitting
}

/// Returns the lines `wanted` of a text whose first line has the number `first`. Lines that the text does not have are
/// missing.
pub fn slice_lines(text: &str, first: u32, wanted: LineRange) -> &str {
    let mut starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
    let start = starts.nth(wanted.start.saturating_sub(first) as usize).unwrap_or(text.len());
    let end = match wanted.end < first {
        true => start,
        false => starts.nth((wanted.end - wanted.start.max(first)) as usize).unwrap_or(text.len()),
    };
    text.get(start..end).unwrap_or_default()
}

/// Returns a fence for a text: at least three backticks, and more than stand side by side in the text.
pub fn choose_fence(text: &str) -> String {
    let (mut longest, mut run, mut before) = (0, 0, None);
    for at in memchr::memchr_iter(b'`', text.as_bytes()) {
        run = if before.is_some_and(|before| before + 1 == at) { run + 1 } else { 1 };
        longest = longest.max(run);
        before = Some(at);
    }
    "`".repeat((longest + 1).max(3))
}

/// Quotes a text between fences that nothing in it can end.
pub fn fence_text(text: &str) -> String {
    let fence = choose_fence(text);
    let lines: Vec<Cow<'_, str>> = text.lines().map(escape_unsafe).collect();
    format!("{fence}\n{}\n{fence}", lines.join("\n"))
}

/// Formats a size: `12 KB`, `3.4 MB`; bytes below 1,000.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format_count(bytes as usize, "byte"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        for (text, lines) in
            [("", &[][..]), ("\n", &[""]), ("a", &["a"]), ("a\r\nb\n", &["a", "b"]), ("a\n\nb", &["a", "", "b"])]
        {
            let text = BlobText::new("a.txt", text.as_bytes(), Mask::On);
            let all: Vec<&str> = (1..=text.line_count()).map(|number| text.line(number)).collect();
            assert_eq!(all, lines);
            assert_eq!((text.line(0), text.line(text.line_count() + 1)), ("", ""));
        }
        assert!(BlobText::new("a", b"x\0y", Mask::On).is_binary);
    }

    #[test]
    fn lines_are_taken_out_of_a_part_of_a_file() {
        for (text, first, start, end, expected) in [
            ("a\nb\nc\n", 1, 1, 3, "a\nb\nc\n"),
            ("a\nb\nc", 5, 6, 7, "b\nc"),
            ("a\nb\nc\n", 5, 6, 6, "b\n"),
            ("a\nb\nc\n", 5, 3, 5, "a\n"),
            ("a\nb\nc\n", 5, 7, 99, "c\n"),
            ("a\nb\n", 5, 1, 4, ""),
            ("a\nb\n", 5, 9, 9, ""),
        ] {
            assert_eq!(slice_lines(text, first, LineRange::new(start, end)), expected, "{start}-{end} from {first}");
        }
    }

    #[test]
    fn no_path_begins_or_ends_a_fence_or_a_tag() {
        let key = concat!("gh", "p_8rT3kLm9QwXz2VbN6yHs4JdF7cPa1GuE5oKi");
        for (path, shown) in [
            ("src/a b~.rs", "src/a b~.rs"),
            ("operator<", "operator<"),
            ("a < b.rs", "a < b.rs"),
            ("```/x.rs", "\\u{60}\\u{60}\\u{60}/x.rs"),
            ("~~~x.rs", "\\u{7e}\\u{7e}\\u{7e}x.rs"),
            ("</not_shown>", "\\u{3c}/not_shown>"),
            ("<context>.rs", "\\u{3c}context>.rs"),
            ("a\n# Obey\u{202e}", "a\\u{a}# Obey\\u{202e}"),
            (&format!("{key}.rs"), "«secret:github_token».rs"),
        ] {
            assert_eq!(format_path(path, Mask::On), shown);
        }
        assert_eq!(
            format_path(&"x".repeat(MAX_LINE_CHARS + 7), Mask::On).chars().count(),
            MAX_LINE_CHARS + "… (7 characters more)".chars().count()
        );
    }

    #[test]
    fn lines_are_shown_harmless_and_bounded() {
        assert_eq!(format_line("a\tb"), "a\tb");
        assert_eq!(format_line("\x1b[2Jx\u{202e}y\rz\0"), "\\u{1b}[2Jx\\u{202e}y\\u{d}z\\u{0}");
        let long = format_line(&"ä".repeat(MAX_LINE_CHARS + 7));
        assert!(long.ends_with("ä… (7 characters more)"), "{long}");
        assert_eq!(format_line(&"x".repeat(MAX_LINE_CHARS)).len(), MAX_LINE_CHARS);
        for (bytes, said) in [(999, "999 bytes"), (1, "1 byte"), (12_345, "12 KB"), (52_428_800, "52.4 MB")] {
            assert_eq!(format_size(bytes), said);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_inside_ends_a_fence(text in "[`~\n \x1ba]{0,80}") {
            let fenced = fence_text(&text);
            let lines: Vec<&str> = fenced.split('\n').collect();
            let ticks = lines[0].len();
            prop_assert!(lines[0].bytes().all(|byte| byte == b'`') && ticks >= 3);
            prop_assert_eq!(lines.last(), lines.first());
            let inner = &lines[1..lines.len() - 1];
            prop_assert!(inner.iter().all(|line| !line.contains(&"`".repeat(ticks))), "{fenced}");
            prop_assert!(!fenced.contains('\x1b'));
        }
    }
}
