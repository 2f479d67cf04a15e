//! Styles text for its reader: colours, width, and the moment from which ages are counted.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::{FindingStatus, Priority, RunStatus, Time};
use crate::policy::Freshness;

/// Options for text output: a terminal, a pipe or a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextOptions {
    pub color: bool,
    pub ascii: bool,
    /// Columns of the terminal; `None` for a pipe or a file, where lines are not cut.
    pub width: Option<usize>,
    /// Reference moment of [`TextOptions::format_age`].
    pub now: Time,
}

/// Semantic text style; `sgr_code` maps it to a terminal colour or weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    Plain,
    Strong,
    Faint,
    Good,
    Notice,
    Bad,
    Location,
}

impl TextStyle {
    fn sgr_code(self) -> &'static str {
        match self {
            TextStyle::Plain => "",
            TextStyle::Strong => "1",
            TextStyle::Faint => "2",
            TextStyle::Good => "32",
            TextStyle::Notice => "33",
            TextStyle::Bad => "1;31",
            TextStyle::Location => "36",
        }
    }

    pub fn from_priority(priority: Priority) -> Self {
        match priority {
            Priority::P0 | Priority::P1 => TextStyle::Bad,
            Priority::P2 => TextStyle::Notice,
            Priority::P3 => TextStyle::Plain,
        }
    }

    pub fn from_run_status(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => TextStyle::Good,
            RunStatus::Failed | RunStatus::Lost => TextStyle::Bad,
            RunStatus::Cancelled | RunStatus::Superseded | RunStatus::Skipped => TextStyle::Faint,
            RunStatus::Pending | RunStatus::Snapshotting | RunStatus::Reviewing | RunStatus::Resolving => {
                TextStyle::Notice
            }
        }
    }

    pub fn from_freshness(freshness: Freshness) -> Self {
        match freshness {
            Freshness::Current | Freshness::LongRunning => TextStyle::Plain,
            Freshness::Inactive => TextStyle::Notice,
            Freshness::Lost => TextStyle::Bad,
            Freshness::Superseded | Freshness::Obsolete | Freshness::Unknown => TextStyle::Faint,
        }
    }

    pub fn from_finding_status(status: FindingStatus) -> Self {
        match status {
            FindingStatus::Open => TextStyle::Plain,
            FindingStatus::Unresolved => TextStyle::Notice,
            FindingStatus::Addressed => TextStyle::Good,
            FindingStatus::Dismissed | FindingStatus::Obsolete => TextStyle::Faint,
        }
    }
}

impl TextOptions {
    /// Returns `text` in the given style, or unchanged when colours are off.
    pub fn paint(&self, paint: TextStyle, text: &str) -> String {
        if self.color && paint != TextStyle::Plain && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", paint.sgr_code())
        } else {
            text.to_owned()
        }
    }

    /// Returns the separator between parts of one line.
    pub fn separator(&self) -> &'static str {
        if self.ascii { " - " } else { " · " }
    }

    pub fn ellipsis(&self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }

    /// Formats the time since `moment` in its largest unit: `12s`, `5m`, `3h`, `8d`. A future moment gives `0s`.
    pub fn format_age(&self, moment: Time) -> String {
        format_age(self.now.as_millisecond().saturating_sub(moment.as_millisecond()))
    }

    /// Cuts `text` to `width` terminal columns and marks a cut with an ellipsis.
    pub fn truncate(&self, text: &str, width: usize) -> String {
        if text.width() <= width {
            return text.to_owned();
        }
        let room = width.saturating_sub(self.ellipsis().width());
        let mut cut = String::new();
        let mut used = 0;
        for grapheme in text.graphemes(true) {
            if used + grapheme.width() > room {
                break;
            }
            used += grapheme.width();
            cut.push_str(grapheme);
        }
        if room > 0 || width >= self.ellipsis().width() {
            cut.push_str(self.ellipsis());
        }
        cut
    }

    /// Breaks `text` between words into lines of at most the terminal's width. Each line starts with `indent` spaces
    /// and holds 20 to 100 columns of text. Without a width the result is one line. A longer word stays whole, so that a
    /// path can be copied.
    ///
    /// The crate textwrap (0.16) is not used, because it counts `❤️` as one column instead of two, and its lines become
    /// wider than the terminal.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let Some(width) = self.width else { return format!("{pad}{text}\n") };
        let room = width.saturating_sub(indent).clamp(20, 100);
        let (mut wrapped, mut line, mut used) = (String::new(), String::new(), 0);
        for word in text.split(' ') {
            if used > 0 && used + 1 + word.width() > room {
                wrapped.push_str(&format!("{pad}{line}\n"));
                line.clear();
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += word.width();
        }
        wrapped.push_str(&format!("{pad}{line}\n"));
        wrapped
    }
}

/// Formats a duration in its largest unit (hours up to 48 h, then days); a negative duration gives `0s`.
pub fn format_age(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(width: Option<usize>) -> TextOptions {
        TextOptions { color: false, ascii: false, width, now: Time::UNIX_EPOCH }
    }

    #[test]
    fn ages_have_one_unit_and_are_never_negative() {
        for (milliseconds, expected) in [
            (-5_000, "0s"),
            (999, "0s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (3_600_000, "1h"),
            (47 * 3_600_000, "47h"),
            (48 * 3_600_000, "2d"),
        ] {
            assert_eq!(format_age(milliseconds), expected, "{milliseconds} ms");
        }
    }

    #[test]
    fn cutting_respects_wide_characters() {
        for (text, width, expected) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("🧑‍🚀🧑‍🚀", 3, "🧑‍🚀…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(look(None).truncate(text, width), expected, "{text} in {width}");
        }
    }

    #[test]
    fn wrapping_breaks_between_words() {
        assert_eq!(look(Some(24)).wrap("one two three four five six", 2), "  one two three four\n  five six\n");
        assert_eq!(look(Some(20)).wrap("sixteen columns: ❤️❤️ b", 0), "sixteen columns:\n❤️❤️ b\n");
        assert_eq!(look(None).wrap("one two", 2), "  one two\n");
        assert_eq!(look(Some(10)).wrap("", 1), " \n");
    }
}
