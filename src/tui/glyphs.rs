//! Defines the glyphs that the cockpit draws, with stand-ins for terminals and fonts that have only ASCII.

mod legend;

pub use legend::LegendEntry;

use crate::domain::{FindingStatus, RunStatus, Shortfall};
use crate::knowledge::pattern::{PatternOrigin, PatternStance};
use crate::policy::Freshness;
use crate::report::activity::ActivityState;
use crate::tui::views::live::FileReading;

/// Set of glyphs, each one column wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// Segment of rules and of horizontal frame lines.
    pub horizontal: &'static str,
    /// Segment of dividers and of vertical frame lines.
    pub vertical: &'static str,
    /// Corners of a window: top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    /// Sign for text that was cut, or for work that is not done yet.
    pub ellipsis: &'static str,
    /// Sign before a number that is not exact, but an upper bound.
    pub at_most: &'static str,
    /// Separator between facts; also the sign of an info notice.
    pub dot: &'static str,
    /// Sign for a missing value and for a file left out; also the middle of a range.
    pub dash: &'static str,
    /// Sign at the left edge of a finding's code lines and of the chosen candidate.
    pub bar: &'static str,
    /// Sign of a marked finding.
    pub mark: &'static str,
    /// Sign of a finding about which the reviewers of a panel contradict each other.
    pub disputed: &'static str,
    /// Filled cell of a horizontal gauge.
    pub filled: &'static str,
    /// Empty cell of a horizontal gauge.
    pub empty: &'static str,
    /// Sign of a closed fold.
    pub folded: &'static str,
    /// Sign of an open fold.
    pub unfolded: &'static str,
    /// Sign between the old and the new name of a file.
    pub arrow: &'static str,
    /// Sign of a superseded run below its replacement.
    pub nested: &'static str,
    /// Quotation marks around a commit's title.
    pub quotes: (&'static str, &'static str),
    /// Sign of a success notice.
    pub done: &'static str,
    /// Sign of a change of a diff that the user has viewed.
    pub viewed: &'static str,
    /// Sign of an error notice.
    pub trouble: &'static str,
    /// Sign for a count of 0 and for the idle state.
    pub none: &'static str,
    /// Cell of the scroll thumb.
    pub thumb: &'static str,
    /// Segments of a reviewer's window: pinned, summarized, masked, kept, free.
    pub window: [&'static str; 5],
    /// Vertical bars from empty to a full cell, in eighths.
    pub eighths: [&'static str; 9],
    /// Limit line of a chart.
    pub limit: &'static str,
    /// Mark of a chart value beyond the limit.
    pub beyond: &'static str,
    /// Mark of the highest chart value.
    pub peak: &'static str,
    /// Ends of the bar of turns.
    pub scrub: (&'static str, &'static str),
    ascii: bool,
    /// Words stand for the signs of statuses.
    plain: bool,
}

/// Glyphs for terminals and fonts with Unicode.
pub const UNICODE: Glyphs = Glyphs {
    horizontal: "─",
    vertical: "│",
    corners: ["╭", "╮", "╰", "╯"],
    ellipsis: "…",
    at_most: "≤",
    dot: "·",
    dash: "–",
    bar: "▌",
    mark: "●",
    disputed: "±",
    filled: "━",
    empty: "─",
    folded: "▸",
    unfolded: "▾",
    arrow: "→",
    nested: "└",
    quotes: ("“", "”"),
    done: "✓",
    viewed: "✓",
    trouble: "!",
    none: "·",
    thumb: "┃",
    window: ["▓", "▒", "░", "█", "·"],
    eighths: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    limit: "┄",
    beyond: "▲",
    peak: "▾",
    scrub: ("◂", "▸"),
    ascii: false,
    plain: false,
};

/// Stand-ins that consist of ASCII only.
pub const ASCII: Glyphs = Glyphs {
    horizontal: "-",
    vertical: "|",
    corners: ["+", "+", "+", "+"],
    ellipsis: "~",
    at_most: "<=",
    dot: "-",
    dash: "-",
    bar: ">",
    mark: "*",
    disputed: "?",
    filled: "#",
    empty: ".",
    folded: "+",
    unfolded: "-",
    arrow: ">",
    nested: "`",
    quotes: ("\"", "\""),
    done: "+",
    viewed: "v",
    trouble: "!",
    none: ".",
    thumb: "#",
    window: ["P", "S", "M", "#", "."],
    eighths: [" ", ".", ".", ".", ":", ":", ":", "#", "#"],
    limit: "-",
    beyond: "^",
    peak: "v",
    scrub: ("<", ">"),
    ascii: true,
    plain: false,
};

/// Glyphs for a screen reader, which would read frames, bars and the signs of statuses aloud: blanks for them, letters and
/// signs for the rest. A status is said in a word, see [`Glyphs::sign_or_word`].
pub const PLAIN: Glyphs = Glyphs {
    horizontal: " ",
    vertical: " ",
    corners: [" ", " ", " ", " "],
    ellipsis: "~",
    dot: "-",
    filled: " ",
    empty: " ",
    viewed: " ",
    thumb: " ",
    ascii: false,
    plain: true,
    ..ASCII
};

/// Stand-ins of the Latin letters from `À` (U+00C0) to `ÿ` (U+00FF).
const LATIN: &[u8; 64] = b"AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPsaaaaaaaceeeeiiiidnooooo/ouuuuypy";

/// Returns the ASCII character that stands for a grapheme: the letter without its accents, the sign that looks most like
/// it, else a question mark.
pub fn ascii_stand_in(grapheme: &str) -> char {
    let Some(first) = grapheme.chars().next() else { return ' ' };
    match first {
        ' '..='~' => first,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{3000}' => ' ',
        'À'..='ÿ' => LATIN.get(first as usize - 'À' as usize).map_or('?', |byte| char::from(*byte)),
        '‘' | '’' | '‚' | '′' => '\'',
        '“' | '”' | '„' | '″' => '"',
        // They stand around the name of a masked secret, often within quotation marks.
        '«' => '<',
        '»' => '>',
        '‐'..='―' | '−' | '·' | '•' | '─'..='━' => '-',
        '…' => '~',
        '│' | '┃' | '║' => '|',
        '→' | '⇒' | '▸' | '›' => '>',
        '←' | '⇐' | '◂' | '‹' => '<',
        '✓' | '✔' => '+',
        '✗' | '✘' => 'x',
        '╭'..='╰' | '┌'..='╬' => '+',
        '█' | '▓' => '#',
        _ => '?',
    }
}

impl Glyphs {
    /// Returns the same glyphs, with or without characters beyond ASCII in texts.
    pub fn with_ascii_only(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }

    /// Returns true if only ASCII may be drawn, in texts too.
    pub fn is_ascii_only(&self) -> bool {
        self.ascii
    }

    /// Returns true for a screen reader: words stand for the signs of statuses.
    pub fn uses_words(&self) -> bool {
        self.plain
    }

    /// Returns the first glyph of a pair, or the second if only ASCII may be drawn; a blank for a screen reader.
    fn pick(&self, (unicode, ascii): (&'static str, &'static str)) -> &'static str {
        match (self.plain, self.ascii) {
            (true, _) => " ",
            (false, true) => ascii,
            (false, false) => unicode,
        }
    }

    /// Returns the sign of a status, or its word for a screen reader: for places that show the sign alone.
    pub fn sign_or_word<'a>(&self, sign: &'a str, word: &'a str) -> &'a str {
        if self.plain { word } else { sign }
    }

    /// Returns the sign of a status with a blank, to stand before its word; nothing for a screen reader.
    pub fn sign_before_word(&self, sign: &str) -> String {
        if self.plain { String::new() } else { format!("{sign} ") }
    }

    /// Returns the glyph for the status of a run.
    pub fn run_status(&self, status: RunStatus) -> &'static str {
        use RunStatus as S;
        self.pick(match status {
            S::Pending => ("◌", "."),
            S::Snapshotting | S::Reviewing | S::Resolving => ("●", "*"),
            S::Completed => ("✓", "+"),
            S::Failed => ("✗", "x"),
            S::Cancelled => ("⊘", "c"),
            S::Superseded => ("↑", "^"),
            S::Skipped => ("–", "-"),
            S::Lost => ("!", "!"),
        })
    }

    /// Returns the glyph for a run that did not review its whole change.
    pub fn shortfall(&self, shortfall: Shortfall) -> &'static str {
        match shortfall {
            Shortfall::Gaps => self.run_status(RunStatus::Failed),
            Shortfall::NothingReviewed => self.pick(("∅", "0")),
        }
    }

    /// Returns the glyph for the freshness of a run.
    pub fn freshness(&self, freshness: Freshness) -> &'static str {
        self.pick(match freshness {
            Freshness::Current => (" ", " "),
            Freshness::LongRunning => ("…", "~"),
            Freshness::Inactive => ("!", "!"),
            Freshness::Superseded => ("↑", "^"),
            Freshness::Obsolete => ("≠", "#"),
            Freshness::Lost => ("✗", "x"),
            Freshness::Unknown => ("?", "?"),
        })
    }

    /// Returns the glyph for the activity of a working run.
    pub fn activity(&self, mode: ActivityState) -> &'static str {
        self.pick(match mode {
            ActivityState::Working => ("●", "*"),
            ActivityState::Waiting | ActivityState::HeldUp => ("◌", "."),
            ActivityState::Stalled => ("!", "!"),
            ActivityState::Paused => ("‖", "="),
        })
    }

    /// Returns the glyph for the stance of a pattern: mistake or false alarm.
    pub fn stance(&self, stance: PatternStance) -> &'static str {
        self.pick(match stance {
            PatternStance::Mistake => ("✗", "x"),
            PatternStance::FalseAlarm => ("⊘", "o"),
        })
    }

    /// Returns the glyph for the origin of a pattern; patterns learned here have a blank.
    pub fn origin(&self, origin: PatternOrigin) -> &'static str {
        self.pick(match origin {
            PatternOrigin::Learned => (" ", " "),
            PatternOrigin::Base => ("◆", "b"),
            PatternOrigin::Imported => ("↓", "i"),
        })
    }

    /// Returns the glyph for a file in the map of a run.
    pub fn file_reading(&self, reading: FileReading) -> &'static str {
        self.pick(match reading {
            FileReading::Now => ("█", "#"),
            FileReading::Before => ("▓", "+"),
            FileReading::Carried => ("▒", "c"),
            FileReading::LeftOut => ("–", "-"),
            FileReading::Unread => ("·", "."),
        })
    }

    /// Returns the glyph for the status of a finding.
    pub fn finding_status(&self, status: FindingStatus) -> &'static str {
        use FindingStatus as S;
        self.pick(match status {
            S::Open => ("○", "o"),
            S::Unresolved => ("◐", "!"),
            S::Addressed => ("✓", "+"),
            S::Dismissed => ("✗", "x"),
            S::Obsolete => ("–", "-"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grapheme_has_an_ascii_stand_in() {
        for (grapheme, expected) in [
            ("a", 'a'),
            ("é", 'e'),
            ("e\u{301}", 'e'),
            ("ß", 's'),
            ("×", 'x'),
            ("÷", '/'),
            ("ÿ", 'y'),
            ("“", '"'),
            ("«", '<'),
            ("»", '>'),
            ("—", '-'),
            ("漢", '?'),
            ("👩‍👩‍👧‍👦", '?'),
            ("→", '>'),
        ] {
            assert_eq!(ascii_stand_in(grapheme), expected, "{grapheme}");
        }
        for c in '\u{80}'..='\u{ffff}' {
            let stand_in = ascii_stand_in(c.encode_utf8(&mut [0; 4]));
            assert!((' '..='~').contains(&stand_in), "{c:?}");
        }
    }
}
