//! How text is to look: colours, width, and the moment that ages are counted from.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::{FindingStatus, Priority, RunStatus, Time};

/// The terminal, or whatever else reads the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextOptions {
    pub color: bool,
    pub ascii: bool,
    /// Columns of the terminal; `None` when the text goes into a pipe or a file and is not to be cut.
    pub width: Option<usize>,
    pub now: Time,
}

/// A colour or weight by what it says, not by its number.
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
    /// `text` in this paint, when there are colours.
    pub fn paint(&self, paint: TextStyle, text: &str) -> String {
        if self.color && paint != TextStyle::Plain && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", paint.sgr_code())
        } else {
            text.to_owned()
        }
    }

    /// Between parts of one line.
    pub fn separator(&self) -> &'static str {
        if self.ascii { " - " } else { " · " }
    }

    pub fn ellipsis(&self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }

    /// How long ago a moment is, in its largest unit: `12s`, `5m`, `3h`, `8d`. A moment in the future is `0s`.
    pub fn format_age(&self, moment: Time) -> String {
        format_age(self.now.as_millisecond().saturating_sub(moment.as_millisecond()))
    }

    /// `text` cut to `width` columns, with a mark where something was cut off.
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

    /// `text` broken between words into lines of at most the terminal's width less `indent`; each begins with `indent`
    /// spaces. Without a width one line.
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

/// A span of milliseconds in its largest unit; a negative one is `0s`.
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
        assert_eq!(look(None).wrap("one two", 2), "  one two\n");
        assert_eq!(look(Some(10)).wrap("", 1), " \n");
    }
}
