//! Defines the glyphs that the cockpit draws, with stand-ins for terminals and fonts that have only ASCII.

use super::activity::ActivityState;
use crate::domain::{FindingStatus, RunStatus};
use crate::knowledge::pattern::{PatternOrigin, PatternStance};

/// Set of glyphs, each one column wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub horizontal: &'static str,
    pub vertical: &'static str,
    pub corners: [&'static str; 4],
    pub ellipsis: &'static str,
    pub dot: &'static str,
    pub dash: &'static str,
    pub bar: &'static str,
    pub mark: &'static str,
    pub filled: &'static str,
    pub empty: &'static str,
    pub folded: &'static str,
    pub unfolded: &'static str,
    pub nested: &'static str,
    pub done: &'static str,
    pub trouble: &'static str,
    pub none: &'static str,
    pub thumb: &'static str,
    /// Segments of a reviewer's window: pinned, summarized, masked, kept, free.
    pub window: [&'static str; 5],
    /// Vertical bars from empty to a full cell, in eighths.
    pub eighths: [&'static str; 9],
    /// Limit line of a chart, mark of a value beyond the limit, mark of the peak.
    pub limit: &'static str,
    pub beyond: &'static str,
    pub peak: &'static str,
    ascii: bool,
}

pub const UNICODE: Glyphs = Glyphs {
    horizontal: "─",
    vertical: "│",
    corners: ["╭", "╮", "╰", "╯"],
    ellipsis: "…",
    dot: "·",
    dash: "–",
    bar: "▌",
    mark: "●",
    filled: "━",
    empty: "─",
    folded: "▸",
    unfolded: "▾",
    nested: "└",
    done: "✓",
    trouble: "!",
    none: "·",
    thumb: "┃",
    window: ["▓", "▒", "░", "█", "·"],
    eighths: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    limit: "┄",
    beyond: "▲",
    peak: "▾",
    ascii: false,
};

pub const ASCII: Glyphs = Glyphs {
    horizontal: "-",
    vertical: "|",
    corners: ["+", "+", "+", "+"],
    ellipsis: "~",
    dot: "-",
    dash: "-",
    bar: ">",
    mark: "*",
    filled: "#",
    empty: ".",
    folded: "+",
    unfolded: "-",
    nested: "`",
    done: "+",
    trouble: "!",
    none: ".",
    thumb: "#",
    window: ["P", "S", "M", "#", "."],
    eighths: [" ", ".", ".", ".", ":", ":", ":", "#", "#"],
    limit: "-",
    beyond: "^",
    peak: "v",
    ascii: true,
};

impl Glyphs {
    /// Returns true if only ASCII may be drawn.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    pub fn run_status(&self, status: RunStatus) -> &'static str {
        use RunStatus as S;
        let (unicode, ascii) = match status {
            S::Pending => ("◌", "."),
            S::Snapshotting | S::Reviewing | S::Resolving => ("●", "*"),
            S::Completed => ("✓", "+"),
            S::Failed => ("✗", "x"),
            S::Cancelled => ("⊘", "c"),
            S::Superseded => ("↑", "^"),
            S::Skipped => ("–", "-"),
            S::Lost => ("!", "!"),
        };
        if self.ascii { ascii } else { unicode }
    }

    /// Returns the glyph for the activity of a working run.
    pub fn activity(&self, mode: ActivityState) -> &'static str {
        let (unicode, ascii) = match mode {
            ActivityState::Working => ("●", "*"),
            ActivityState::Waiting | ActivityState::HeldUp => ("◌", "."),
            ActivityState::Stalled => ("!", "!"),
            ActivityState::Paused => ("‖", "="),
        };
        if self.ascii { ascii } else { unicode }
    }

    /// Returns the glyph for the stance of a pattern: mistake or false alarm.
    pub fn stance(&self, stance: PatternStance) -> &'static str {
        let (unicode, ascii) = match stance {
            PatternStance::Mistake => ("✗", "x"),
            PatternStance::FalseAlarm => ("⊘", "o"),
        };
        if self.ascii { ascii } else { unicode }
    }

    /// Returns the glyph for the origin of a pattern; patterns learned here have a blank.
    pub fn origin(&self, origin: PatternOrigin) -> &'static str {
        let (unicode, ascii) = match origin {
            PatternOrigin::Learned => (" ", " "),
            PatternOrigin::Base => ("◆", "b"),
            PatternOrigin::Imported => ("↓", "i"),
        };
        if self.ascii { ascii } else { unicode }
    }

    pub fn finding_status(&self, status: FindingStatus) -> &'static str {
        use FindingStatus as S;
        let (unicode, ascii) = match status {
            S::Open => ("○", "o"),
            S::Unresolved => ("◐", "!"),
            S::Addressed => ("✓", "+"),
            S::Dismissed => ("✗", "x"),
            S::Obsolete => ("–", "-"),
        };
        if self.ascii { ascii } else { unicode }
    }
}
