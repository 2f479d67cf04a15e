//! Says what the glyphs mean, for the help.

use super::Glyphs;
use crate::domain::{FindingStatus, RunStatus, Shortfall};
use crate::knowledge::pattern::{PatternOrigin, PatternStance};
use crate::policy::Freshness;
use crate::report::activity::ActivityState;
use crate::tui::theme::Role;
use crate::tui::views::live::FileReading;

/// Glyph with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegendEntry {
    /// One glyph, or several of the same meaning.
    pub glyph: String,
    /// Style in which it is drawn.
    pub role: Role,
    /// Meaning in a few words.
    pub meaning: String,
}

impl Glyphs {
    /// Lists every glyph that stands for something, the frames too. Blanks are left out.
    pub fn legend(&self) -> Vec<LegendEntry> {
        // A new glyph does not compile until it is explained here.
        let Self {
            horizontal,
            vertical,
            corners,
            ellipsis,
            dot,
            dash,
            arrow,
            at_most,
            quotes: (opening_quote, closing_quote),
            bar,
            mark,
            disputed,
            filled,
            empty,
            folded,
            unfolded,
            nested,
            done,
            viewed,
            trouble,
            none,
            thumb,
            window: [pinned, summarized, masked, kept, free],
            eighths,
            limit,
            beyond,
            peak,
            scrub: (back, forth),
            ascii: _,
            plain: _,
        } = *self;
        let mut entries = Vec::new();
        let mut push = |glyph: &str, role, meaning: &str| {
            if !glyph.trim().is_empty() {
                entries.push(LegendEntry { glyph: glyph.to_owned(), role, meaning: meaning.to_owned() });
            }
        };
        for status in FindingStatus::ALL {
            push(self.finding_status(*status), Role::from_finding_status(*status), &format!("finding: {status}"));
        }
        push(mark, Role::MarkSign, "marked finding");
        push(disputed, Role::Warn, "finding: disputed in a panel");
        for status in RunStatus::ALL {
            push(self.run_status(*status), Role::from_run_status(*status), &format!("run: {status}"));
        }
        for (shortfall, meaning) in SHORTFALLS {
            push(
                self.shortfall(shortfall),
                Role::from_shortfall(shortfall),
                &format!("run: {}, {meaning}", shortfall.word()),
            );
        }
        push(nested, Role::Faint, "run that the run above superseded");
        for freshness in Freshness::ALL {
            push(
                self.freshness(*freshness),
                Role::from_freshness(*freshness),
                &format!("run: {}", freshness.describe()),
            );
        }
        for (state, meaning) in ACTIVITIES {
            push(self.activity(state), Role::from_activity(state), &format!("review now: {meaning}"));
        }
        for stance in PatternStance::ALL {
            push(self.stance(*stance), Role::from_stance(*stance), &format!("pattern: {stance}"));
        }
        for origin in PatternOrigin::ALL {
            push(self.origin(*origin), Role::Muted, &format!("pattern: {origin}"));
        }
        push(folded, Role::Muted, "closed fold");
        push(unfolded, Role::Muted, "open fold");
        push(bar, Role::Anchor, "line of the finding; chosen row");
        push(ellipsis, Role::Muted, "text that was cut; work under way");
        push(dash, Role::Muted, "no value; left out; no key");
        push(none, Role::Muted, "zero; nothing runs");
        push(arrow, Role::Muted, "before and after");
        push(at_most, Role::Muted, "at most so many");
        push(&join([opening_quote, closing_quote]), Role::Muted, "subject of a commit");
        push(done, Role::Good, "message: done");
        push(viewed, Role::Good, "diff: change that you have viewed");
        push(dot, Role::Muted, "message; between facts");
        push(trouble, Role::Bad, "message: something failed");
        push(&join([filled, empty]), Role::Filled, "share that is done, and the rest");
        push(pinned, Role::Pinned, "window: pinned messages");
        push(summarized, Role::Summarized, "window: summarized");
        push(masked, Role::Masked, "window: tool results taken out");
        push(kept, Role::Kept, "window: sent as it was");
        push(free, Role::Faint, "window: free");
        push(&join(eighths), Role::Filled, "height of a value in a chart");
        push(limit, Role::Limit, "limit of a chart");
        push(beyond, Role::Warn, "value above the limit of a chart");
        push(peak, Role::Muted, "highest value of a chart");
        push(&join([back, forth]), Role::Muted, "ends of the bar of turns");
        for (reading, meaning) in FileReading::ALL {
            push(self.file_reading(reading), Role::from_file_reading(reading), &format!("file of a run: {meaning}"));
        }
        push(thumb, Role::Muted, "position in a list");
        push(&(join([horizontal, vertical]) + &corners.concat()), Role::Rule, "frames");
        entries
    }
}

const SHORTFALLS: [(Shortfall, &str); 2] =
    [(Shortfall::Gaps, "a part is missing"), (Shortfall::NothingReviewed, "every file was left out")];

const ACTIVITIES: [(ActivityState, &str); 5] = [
    (ActivityState::Working, "receives an answer"),
    (ActivityState::Waiting, "waits for the first byte"),
    (ActivityState::HeldUp, "rate limited, or tries again"),
    (ActivityState::Stalled, "nothing came for too long"),
    (ActivityState::Paused, "paused"),
];

/// Joins different glyphs.
fn join<const N: usize>(glyphs: [&str; N]) -> String {
    let mut joined = String::new();
    for glyph in glyphs {
        if !joined.contains(glyph) {
            joined.push_str(glyph);
        }
    }
    joined.trim().to_owned()
}
