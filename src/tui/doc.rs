//! Builds the page of the detail pane: lines of styled spans, laid out for a width. A page is built when its
//! content or the width changes; drawing only copies the visible lines.
//!
//! - Every span has passed `domain::text`.
//! - No line is wider than the page, except code, which drawing cuts with an ellipsis.

use unicode_segmentation::UnicodeSegmentation;

use super::theme::Role;
use crate::domain::text;

/// Text with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocSpan {
    pub role: Role,
    pub text: String,
}

/// Line of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocLine {
    pub spans: Vec<DocSpan>,
    /// Background style of the whole line.
    pub fill: Option<Role>,
    /// Span at the right edge.
    pub tail: Option<DocSpan>,
    /// 1-based line of the file that this line shows, for opening an editor.
    pub source: Option<u32>,
}

impl DocLine {
    pub fn styled(role: Role, text: &str) -> Self {
        Self::default().with_span(role, text)
    }

    /// Appends a span; line ends and control characters in `text` are replaced.
    pub fn with_span(mut self, role: Role, text: &str) -> Self {
        if !text.is_empty() {
            self.spans.push(DocSpan { role, text: text::sanitize_line(text).into_owned() });
        }
        self
    }

    pub fn with_tail(mut self, role: Role, text: &str) -> Self {
        self.tail = Some(DocSpan { role, text: text::sanitize_line(text).into_owned() });
        self
    }

    pub fn plain_text(&self) -> String {
        self.spans.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Page of the detail pane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doc {
    pub lines: Vec<DocLine>,
    /// First line to show; 0 unless an important line stands further down.
    pub start: usize,
    pub follow: FollowMode,
    /// Folds, from top to bottom.
    pub folds: Vec<DocFold>,
}

/// Scrolling behaviour while the page grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FollowMode {
    #[default]
    Off,
    /// Stays at the end if the end was visible.
    StickToEnd,
    /// As `StickToEnd`, and the end is shown first.
    StartAtEnd,
}

/// Collapsible part of a page below its title line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocFold {
    pub key: FoldKey,
    /// Index of the title line.
    pub line: usize,
}

/// Identity of a fold, stable when the page is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoldKey {
    Turn(u32),
    /// The reports that were set aside.
    SetAside,
    /// A member of a panel, by its number (0-based). It does not unfold: it leads to the member's run.
    Member(u32),
}

impl Doc {
    pub fn push(&mut self, line: DocLine) {
        self.lines.push(line);
    }

    /// Adds the title line of a fold.
    pub fn push_fold(&mut self, key: FoldKey, line: DocLine) {
        self.folds.push(DocFold { key, line: self.lines.len() });
        self.push(line);
    }

    /// Adds an empty line unless the page is empty or already ends with an empty line.
    pub fn push_blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.lines.push(DocLine::default());
        }
    }

    /// Adds a heading with an optional fact (`tail`) at the right edge.
    pub fn push_heading(&mut self, text: &str, tail: &str) {
        self.push_blank();
        let mut line = DocLine::styled(Role::Title, text);
        if !tail.is_empty() {
            line = line.with_tail(Role::Faint, tail);
        }
        self.push(line);
    }

    /// Adds a paragraph, wrapped at words; line ends in `text` are kept.
    pub fn push_paragraph(&mut self, role: Role, text: &str, width: usize) {
        for part in text.trim_end().split('\n') {
            for line in wrap_words(&text::sanitize_line(part), width) {
                self.push(DocLine::styled(role, &line));
            }
        }
    }

    /// Adds a path, broken after slashes, with a fact at the right edge of the last line, or on its own line below if
    /// there is no room.
    pub fn push_path(&mut self, margin: usize, role: Role, path: &str, (fact_role, fact): (Role, &str), width: usize) {
        let lines = wrap_words(&text::sanitize_line(path), width.saturating_sub(margin).max(8));
        let last = lines.last().map_or(0, |line| margin + line.width());
        let line = |text: &str| DocLine::styled(Role::Muted, &" ".repeat(margin)).with_span(role, text);
        self.lines.extend(lines.iter().map(|text| line(text)));
        if !fact.is_empty() && last + 2 + fact.width() > width {
            self.push(line(""));
        }
        if let Some(last) = self.lines.last_mut().filter(|_| !fact.is_empty()) {
            *last = std::mem::take(last).with_tail(fact_role, fact);
        }
    }

    /// Adds facts with separators between them, as many per line as fit.
    pub fn push_facts(&mut self, role: Role, facts: &[String], dot: &str, width: usize) {
        let mut line = String::new();
        for fact in facts {
            if !line.is_empty() && line.width() + dot.width() + fact.width() > width {
                self.push_paragraph(role, &std::mem::take(&mut line), width);
            }
            if !line.is_empty() {
                line.push_str(dot);
            }
            line.push_str(fact);
        }
        self.push_paragraph(role, &line, width);
    }

    /// Adds a name in a left column and text in a right column; the text wraps within its column.
    pub fn push_field(&mut self, name: &str, name_width: usize, role: Role, text: &str, width: usize) {
        let room = width.saturating_sub(name_width).max(8);
        for (index, line) in wrap_words(&text::sanitize_line(text), room).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let padding = name_width.saturating_sub(name.width());
            self.push(DocLine::styled(Role::Muted, &format!("{name}{}", " ".repeat(padding))).with_span(role, &line));
        }
    }
}

/// Breaks text at white space into lines of at most `width` columns. A longer word is treated as a path and
/// broken after slashes; a longer path component is broken between graphemes.
///
/// The crate textwrap (0.16) is not used, because it adds up the widths of characters: `❤️` counts as one column instead of
/// two, so that `I ❤️ it so` is put into 9 columns and takes 10, and `👩‍👩‍👧` counts as six and is broken inside. It also breaks
/// `src/tui/doc.rs:12` at a width of 10 after `src/tui/do`.
pub fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let size = word.width();
        if used > 0 && used + 1 + size <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + size;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if size <= width {
            line.push_str(word);
            used = size;
            continue;
        }
        for name in word.split_inclusive('/') {
            let size = name.width();
            if used > 0 && used + size > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            if size <= width {
                line.push_str(name);
                used += size;
                continue;
            }
            for grapheme in name.graphemes(true) {
                let size = grapheme.width();
                if used + size > width && used > 0 {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push_str(grapheme);
                used += size;
            }
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Returns the first grapheme of a text; `None` if the text is empty. Most graphemes of a screen are an ASCII character before
/// another one or stand alone, which needs no tables of Unicode: they were a tenth of the time of a frame.
pub fn first_grapheme(text: &str) -> Option<&str> {
    match text.as_bytes() {
        [] => None,
        // Nothing joins two ASCII characters but a line end, which is no part of a line.
        [0..=0x7f] | [0..=0x7f, 0..=0x7f, ..] => text.get(..1),
        // Nor do lines and blocks (U+2500 to U+25BF) join each other or ASCII.
        [0xe2, 0x94..=0x96, _]
        | [0xe2, 0x94..=0x96, _, 0..=0x7f, ..]
        | [0xe2, 0x94..=0x96, _, 0xe2, 0x94..=0x96, ..] => text.get(..3),
        _ => text.graphemes(true).next(),
    }
}

/// Width of a line of text. In place of [`unicode_width::UnicodeWidthStr`], whose tables were a twentieth of the time of a frame: nearly every
/// text of a screen is ASCII.
pub trait TextColumns {
    /// Returns the columns of the text.
    fn width(&self) -> usize;
}

impl TextColumns for str {
    fn width(&self) -> usize {
        if self.is_ascii() { self.len() } else { unicode_width::UnicodeWidthStr::width(self) }
    }
}

/// Returns the longest prefix of `text` that is at most `width` columns wide, and its width.
pub fn fit_start(text: &str, width: usize) -> (&str, usize) {
    if text.is_ascii() {
        let end = text.len().min(width);
        return (&text[..end], end);
    }
    let (mut at, mut used) = (0, 0);
    while let Some(grapheme) = first_grapheme(&text[at..]) {
        let size = if grapheme.len() == 1 { 1 } else { grapheme.width() };
        if used + size > width {
            break;
        }
        (at, used) = (at + grapheme.len(), used + size);
    }
    (&text[..at], used)
}

/// Shortens a text to at most `width` columns at its end; cuts between words if that loses at most a third of the
/// text.
pub fn shorten(text: &str, width: usize, ellipsis: &str) -> String {
    let (whole, _) = fit_start(text, width);
    if whole.len() == text.len() {
        return text.to_owned();
    }
    let (cut, _) = fit_start(text, width.saturating_sub(ellipsis.width() + 1));
    let ends_a_word = text[cut.len()..].starts_with(' ');
    let words = if ends_a_word { Some(cut.len()) } else { cut.rfind(' ').filter(|at| *at * 3 > cut.len() * 2) };
    match words {
        Some(at) => format!("{} {ellipsis}", cut[..at].trim_end()),
        None => format!("{}{ellipsis}", fit_start(text, width.saturating_sub(ellipsis.width())).0),
    }
}

/// Returns the last words of a text as one line of at most `width` columns.
pub fn shorten_start(text: &str, width: usize, ellipsis: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut used = ellipsis.width();
    for word in text.split_whitespace().rev() {
        used += word.width() + 1;
        if used > width {
            words.push(ellipsis);
            break;
        }
        words.push(word);
    }
    words.reverse();
    words.join(" ")
}

/// Shortens a path to at most `width` columns in its middle, between two folders if that loses little: where it begins and
/// what it ends in tell most.
pub fn shorten_middle(path: &str, width: usize, ellipsis: &str) -> String {
    if path.width() <= width {
        return path.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let (start, _) = fit_start(path, room / 3);
    let start = start.rfind('/').map_or(start, |at| &start[..=at]);
    let end = fit_end(path, room.saturating_sub(start.width()));
    let end = match end.find('/') {
        Some(at) if at < end.len() / 2 => &end[at..],
        _ => end,
    };
    format!("{start}{ellipsis}{end}")
}

/// Returns the longest suffix of `text` that is at most `width` columns wide.
pub fn fit_end(text: &str, width: usize) -> &str {
    if text.is_ascii() {
        return &text[text.len().saturating_sub(width)..];
    }
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used > width {
            return &text[at + grapheme.len()..];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a text with [`first_grapheme`].
    fn split(mut text: &str) -> Vec<&str> {
        let mut graphemes = Vec::new();
        while let Some(grapheme) = first_grapheme(text) {
            text = &text[grapheme.len()..];
            graphemes.push(grapheme);
        }
        graphemes
    }

    proptest! {
        /// Letters, accents, what stands before letters (U+0600), lines and blocks, flags, emoji and their joiners, Hangul and
        /// Devanagari that join, in any order.
        #[test]
        fn graphemes_are_split_as_unicode_says(
            text in "[a-c .\u{300}\u{301}\u{600}─│▪█◀…\u{fe0f}\u{200d}\u{1f3fd}🇩🇪👩💻ᄀ\u{1161}\u{11a8}क\u{94d}ष日]{0,12}"
        ) {
            prop_assert_eq!(split(&text), text.graphemes(true).collect::<Vec<_>>());
        }
    }

    /// Checks a function that shortens texts: each row has a text, its columns and the expected result.
    fn check_shortened(shorten: fn(&str, usize, &str) -> String, table: &[(&str, usize, &str)]) {
        for (text, width, expected) in table {
            let shortened = shorten(text, *width, "…");
            assert_eq!(shortened, *expected, "{text:?} at {width}");
            // Without any room, the ellipsis stays.
            assert!(shortened.width() <= (*width).max(1), "{text:?} at {width}");
        }
    }

    #[test]
    fn a_path_is_cut_between_folders_in_its_middle() {
        let table = [
            ("/work/gone", 10, "/work/gone"),
            ("/work/projects/customers/billing", 20, "/work/…/billing"),
            ("/work/projects/customers/billing", 26, "/work/…/customers/billing"),
            ("/a-folder-with-a-long-name/x", 12, "/…ong-name/x"),
            ("no-folders-in-this-name", 8, "no…-name"),
            ("/work/gone", 1, "…"),
            ("/work/gone", 0, "…"),
        ];
        check_shortened(shorten_middle, &table);
    }

    #[test]
    fn paragraphs_are_wrapped_at_words_and_never_too_wide() {
        for (text, width, expected) in [
            ("one two three", 7, &["one two", "three"][..]),
            ("one", 7, &["one"]),
            ("", 7, &[""]),
            ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
            ("漢字漢字 ok", 5, &["漢字", "漢字", "ok"]),
            ("it is done, now.", 11, &["it is done,", "now."]),
            ("it is done, now.", 10, &["it is", "done, now."]),
            ("in src/tui/doc.rs:12 now", 10, &["in", "src/tui/", "doc.rs:12", "now"]),
            ("src/tui/doc.rs:12", 17, &["src/tui/doc.rs:12"]),
            ("a/very_long_name/b.rs", 8, &["a/", "very_lon", "g_name/", "b.rs"]),
            ("/a//b", 2, &["/", "a/", "/b"]),
            ("I ❤️ it so", 9, &["I ❤️ it", "so"]),
            ("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧 ok", 4, &["👩‍👩‍👧👩‍👩‍👧", "👩‍👩‍👧", "ok"]),
        ] {
            assert_eq!(wrap_words(text, width), expected, "{text:?} at {width}");
        }
        let long =
            "The quick (brown) fox's `jump()` over src/tui/doc.rs:12, again and again; 漢字かな交じり文。".repeat(5);
        for width in 1..60 {
            for line in wrap_words(&long, width) {
                assert!(line.width() <= width.max(2), "{line:?} at {width}");
            }
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&wrap_words(&long, width).join(" ")), squeeze(&long), "nothing is lost at {width}");
        }
    }

    #[test]
    fn a_path_has_its_fact_beside_or_below_it() {
        for (width, expected) in [
            (40, &["  src/tui/doc.rs|lock file"][..]),
            (27, &["  src/tui/doc.rs|lock file"]),
            (26, &["  src/tui/doc.rs|", "  |lock file"]),
            (12, &["  src/tui/|", "  doc.rs|", "  |lock file"]),
        ] {
            let mut doc = Doc::default();
            doc.push_path(2, Role::Normal, "src/tui/doc.rs", (Role::Faint, "lock file"), width);
            let tail = |line: &DocLine| line.tail.as_ref().map_or(String::new(), |tail| tail.text.clone());
            let lines: Vec<String> =
                doc.lines.iter().map(|line| format!("{}|{}", line.plain_text(), tail(line))).collect();
            assert_eq!(lines, expected, "at {width}");
        }
    }

    #[test]
    fn facts_keep_no_dot_at_the_end_of_a_line() {
        let facts = ["dead code", "severity low", "confidence high"].map(str::to_owned);
        for (width, expected) in [
            (60, &["dead code · severity low · confidence high"][..]),
            (30, &["dead code · severity low", "confidence high"]),
            (16, &["dead code", "severity low", "confidence high"]),
        ] {
            let mut doc = Doc::default();
            doc.push_facts(Role::Muted, &facts, " · ", width);
            assert_eq!(doc.lines.iter().map(DocLine::plain_text).collect::<Vec<_>>(), expected, "at {width}");
        }
    }

    #[test]
    fn text_is_cut_by_columns_not_by_characters() {
        assert_eq!(fit_start("漢字x", 3), ("漢", 2));
        assert_eq!(fit_start("abc", 3), ("abc", 3));
        assert_eq!(fit_end("src/漢字", 3), "字");
        assert_eq!(fit_end("abc", 9), "abc");
        let starts = [
            ("one\n two  three ", 15, "one two three"),
            ("one two three", 14, "… two three"),
            ("one two three", 7, "… three"),
            ("one two three", 6, "…"),
            ("", 6, ""),
        ];
        check_shortened(shorten_start, &starts);
        let ends = [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two …"),
            ("one two three", 9, "one two …"),
            ("one two three", 8, "one two…"),
            ("abcdefghij", 4, "abc…"),
            ("漢字漢字漢字", 5, "漢字…"),
            ("x", 0, "…"),
        ];
        check_shortened(shorten, &ends);
    }
}
