//! Renders what reviewers, models, kinds or languages are worth as aligned text with bars.

use clap::ValueEnum;
use unicode_width::UnicodeWidthStr;

use super::text::{DEFAULT_WIDTH, MAX_WIDTH, join_parts, precision_style};
use super::{format_dollars, format_millis, format_percent, format_short_count};
use crate::domain::text::sanitize_line;
use crate::ledger::metrics::{MisjudgedKind, Worth, WorthRow};
use crate::report::text_style::{TextOptions, TextStyle};

/// Grouping of findings whose worth is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorthGrouping {
    Reviewer,
    Model,
    Kind,
    Language,
}

/// Widths of the columns behind the names.
const COLUMNS: [usize; 5] = [8, 10, 11, 11, 11];
const HEADINGS: [&str; 5] = ["raised", "accepted", "dismissed", "undecided", "precision"];
/// Columns of a bar.
const BAR: usize = 20;
/// Narrowest and widest column of names.
const NAME_COLUMNS: std::ops::RangeInclusive<usize> = 12..=30;

impl WorthGrouping {
    /// All groupings, in the order in which a key goes through them.
    pub const ALL: [Self; 4] = [Self::Reviewer, Self::Model, Self::Kind, Self::Language];

    /// Returns the grouping after this one; the first one after the last.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|grouping| *grouping == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Returns the name of the grouping: `By reviewer`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Reviewer => "By reviewer",
            Self::Model => "By model",
            Self::Kind => "By kind",
            Self::Language => "By language",
        }
    }

    /// Returns the rows of this grouping.
    pub fn rows(self, worth: &Worth) -> &[WorthRow] {
        match self {
            Self::Reviewer => &worth.by_reviewer,
            Self::Model => &worth.by_model,
            Self::Kind => &worth.by_kind,
            Self::Language => &worth.by_language,
        }
    }
}

/// Renders the worth of one grouping: for each row its figures, and below them a bar with the reasons of dismissals.
pub fn render_worth(look: &TextOptions, worth: &Worth, grouping: WorthGrouping) -> String {
    let rows = grouping.rows(worth);
    let width = look.width.unwrap_or(DEFAULT_WIDTH).clamp(40, MAX_WIDTH);
    let room = width.saturating_sub(COLUMNS.iter().sum()).clamp(*NAME_COLUMNS.start(), *NAME_COLUMNS.end());
    let cells =
        |cells: &[String]| cells.iter().zip(COLUMNS).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>();
    let mut text = format!(
        "{}{}\n",
        look.paint(TextStyle::Strong, &pad_end(grouping.title(), room)),
        look.paint(TextStyle::Faint, &cells(&HEADINGS.map(str::to_owned)))
    );
    let marks = BarMarks::new(look);
    for row in rows {
        let name = look.truncate(&sanitize_line(&row.name), room - 1);
        let counts = [row.raised, row.accepted, row.dismissed, row.undecided];
        let mut figures: Vec<String> = counts.iter().map(|count| format_short_count(u64::from(*count))).collect();
        figures.push(format_percent(row.precision.share));
        let figures = look.paint(precision_style(&row.precision), &cells(&figures));
        text.push_str(&format!("{}{figures}\n", pad_end(&name, room)));
        let details = join_parts(&describe_worth(row), look.separator(), width.saturating_sub(BAR + 4), |long| {
            vec![look.truncate(long, width.saturating_sub(BAR + 4))]
        });
        for (number, line) in details.iter().enumerate() {
            let bar = if number == 0 { marks.render(look, row) } else { " ".repeat(BAR) };
            text.push_str(format!("  {bar}  {}", look.paint(TextStyle::Faint, line)).trim_end());
            text.push('\n');
        }
    }
    text.push('\n');
    let legend = format!("{} accepted  {} dismissed  {} undecided", marks.accepted, marks.dismissed, marks.undecided);
    text.push_str(&look.paint(TextStyle::Faint, &legend));
    text.push('\n');
    if grouping == WorthGrouping::Reviewer {
        for line in worth.almost_always_wrong.iter().map(describe_misjudged) {
            text.push_str(&TextOptions { width: Some(width), ..*look }.wrap(&sanitize_line(&line), 0));
        }
    }
    text
}

/// Describes a kind about which a reviewer is almost always wrong, in one sentence.
pub fn describe_misjudged(one: &MisjudgedKind) -> String {
    let MisjudgedKind { reviewer, kind, accepted, wrong, at_most } = one;
    let decided = accepted + wrong;
    let at_most = format_percent(Some(*at_most));
    format!("{reviewer} is almost always wrong about {kind}: {accepted} of {decided} accepted, at most {at_most} right")
}

/// Describes a row besides its counts: the certain part of its precision, cost and time for each accepted finding, and the
/// reasons of its dismissals.
pub fn describe_worth(row: &WorthRow) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(row.precision.at_least.map(|share| format!("at least {}", format_percent(Some(share)))));
    parts.extend(describe_spending(row));
    parts.extend(describe_dismissals(row));
    parts
}

/// Describes cost and time for each accepted finding: `$0.04 and 61 s each`; where none is accepted, those of all reviews:
/// `$0.04 and 61 s in all`. What costs nothing has a time only.
fn describe_spending(row: &WorthRow) -> Option<String> {
    let (cost, ms, what) = match row.accepted {
        0 => (row.cost, Some(row.review_ms).filter(|ms| *ms > 0), "in all"),
        _ => (row.cost_per_accepted, row.review_ms_per_accepted, "each"),
    };
    let is_unpriced = row.cost.is_none() && row.cost_per_accepted.is_none();
    let unpriced = if is_unpriced { ", price not known" } else { "" };
    let cost = cost.filter(|cost| *cost > 0.0).map(format_dollars);
    let spent: Vec<String> = cost.into_iter().chain(ms.map(format_millis)).collect();
    (!spent.is_empty()).then(|| format!("{} {what}{unpriced}", spent.join(" and ")))
}

/// Describes the reasons of a row's dismissals, the most frequent first: `12 false alarm`.
fn describe_dismissals(row: &WorthRow) -> Vec<String> {
    let mut reasons: Vec<_> = row.dismissed_by_reason.iter().filter(|(_, count)| *count > 0).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.into_iter().map(|(reason, count)| format!("{} {reason}", format_short_count(u64::from(count)))).collect()
}

/// Glyphs of the parts of a bar, distinct without colours.
struct BarMarks {
    accepted: &'static str,
    dismissed: &'static str,
    undecided: &'static str,
}

impl BarMarks {
    fn new(look: &TextOptions) -> Self {
        match look.ascii {
            true => Self { accepted: "#", dismissed: "x", undecided: "." },
            false => Self { accepted: "█", dismissed: "▒", undecided: "·" },
        }
    }

    /// Renders the shares of accepted, dismissed and undecided findings among the raised ones. The rest are obsolete.
    fn render(&self, look: &TextOptions, row: &WorthRow) -> String {
        let [accepted, dismissed, undecided] = split_bar(row, BAR);
        let used = accepted + dismissed + undecided;
        format!(
            "{}{}{}{}",
            look.paint(TextStyle::Good, &self.accepted.repeat(accepted)),
            look.paint(TextStyle::Notice, &self.dismissed.repeat(dismissed)),
            look.paint(TextStyle::Faint, &self.undecided.repeat(undecided)),
            " ".repeat(BAR.saturating_sub(used))
        )
    }
}

/// Splits a bar of `width` cells into accepted, dismissed and undecided findings. A part that has a finding has a cell, if
/// there is room; the parts never exceed the width.
pub fn split_bar(row: &WorthRow, width: usize) -> [usize; 3] {
    let raised = f64::from(row.raised.max(1));
    let mut left = width;
    [row.accepted, row.dismissed, row.undecided].map(|count| {
        let exact = f64::from(count) / raised * width as f64;
        let cells = (exact.round() as usize).max(usize::from(count > 0)).min(left);
        left -= cells;
        cells
    })
}

fn pad_end(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::is_unsafe;
    use crate::domain::{Kind, Time};
    use crate::ledger::metrics::{DismissalCounts, Precision};

    #[test]
    fn a_bar_is_full_when_all_is_told_and_shows_what_is_rare() {
        for (counts, raised, expected) in [
            ([0, 0, 0], 0, [0, 0, 0]),
            ([10, 0, 0], 10, [20, 0, 0]),
            ([5, 5, 0], 10, [10, 10, 0]),
            ([1, 1, 998], 1_000, [1, 1, 18]),
            ([998, 1, 1], 1_000, [20, 0, 0]),
            ([5, 0, 0], 10, [10, 0, 0]),
        ] {
            let [accepted, dismissed, undecided] = counts;
            let row = WorthRow { raised, accepted, dismissed, undecided, ..WorthRow::default() };
            let parts = split_bar(&row, BAR);
            assert_eq!(parts, expected, "{counts:?}");
            assert!(parts.iter().sum::<usize>() <= BAR);
        }
    }

    fn sample_row(name: &str, [accepted, dismissed, undecided, obsolete]: [u32; 4]) -> WorthRow {
        WorthRow {
            name: name.to_owned(),
            raised: accepted + dismissed + undecided + obsolete,
            accepted,
            dismissed,
            undecided,
            obsolete,
            dismissed_by_reason: DismissalCounts {
                false_alarm: dismissed / 2,
                other: dismissed - dismissed / 2,
                ..DismissalCounts::default()
            },
            precision: Precision::from_counts(accepted, dismissed),
            ..WorthRow::default()
        }
    }

    #[test]
    fn cost_and_time_are_those_of_an_accepted_finding_or_of_all_reviews() {
        let accepted = |cost: Option<f64>| WorthRow {
            cost: cost.map(|each| each * 4.0),
            cost_per_accepted: cost,
            review_ms: 8_000,
            review_ms_per_accepted: Some(2_000),
            ..sample_row("deep", [4, 0, 0, 0])
        };
        let rejected = |cost: Option<f64>| WorthRow { cost, review_ms: 8_000, ..sample_row("deep", [0, 0, 4, 0]) };
        for (row, expected) in [
            (accepted(Some(0.02)), Some("$0.02 and 2.0 s each")),
            (accepted(Some(0.0)), Some("2.0 s each")),
            (accepted(None), Some("2.0 s each, price not known")),
            (rejected(Some(0.08)), Some("$0.08 and 8.0 s in all")),
            (rejected(Some(0.0)), Some("8.0 s in all")),
            (rejected(None), Some("8.0 s in all, price not known")),
            (WorthRow::default(), None),
        ] {
            assert_eq!(describe_spending(&row).as_deref(), expected, "{row:?}");
        }
    }

    #[test]
    fn every_reason_of_a_dismissal_is_told_at_any_width() {
        let reasons =
            DismissalCounts { not_worth_it: 1, false_alarm: 20, intended: 9, generated: 3, ..Default::default() };
        let row = WorthRow { dismissed_by_reason: reasons, ..sample_row("deep", [4, 33, 0, 0]) };
        let worth = Worth { by_model: vec![row], ..Worth::default() };
        for width in [40, 60, 80, 110] {
            let look = TextOptions { color: false, ascii: false, width: Some(width), now: Time::UNIX_EPOCH };
            let page = render_worth(&look, &worth, WorthGrouping::Model);
            for reason in ["20 false alarm", "9 intended", "3 generated", "1 not worth it"] {
                assert!(page.contains(reason), "{reason} at {width} in {page}");
            }
        }
    }

    #[test]
    fn a_page_of_reviewers() {
        let priced = WorthRow {
            cost_per_accepted: Some(0.042),
            review_ms_per_accepted: Some(61_000),
            ..sample_row("deep", [120, 30, 14, 6])
        };
        let offline = WorthRow {
            cost_per_accepted: Some(0.0),
            review_ms_per_accepted: Some(310),
            ..sample_row("builtin", [1, 19, 1_200, 0])
        };
        let hostile = "\u{1b}[2J漢字かな交じり文の長い名前の審査員の名前はどこまでも続く\u{202e}";
        let worth = Worth {
            by_reviewer: vec![offline, priced, sample_row(hostile, [0, 0, 3, 0])],
            almost_always_wrong: vec![MisjudgedKind {
                reviewer: "builtin".into(),
                kind: Kind::MagicNumbers,
                accepted: 1,
                wrong: 19,
                at_most: 0.236,
            }],
            ..Worth::default()
        };
        let mut text = String::new();
        for (ascii, width) in [(false, None), (true, Some(80)), (false, Some(60)), (false, Some(120))] {
            let look = TextOptions { color: false, ascii, width, now: Time::UNIX_EPOCH };
            let page = render_worth(&look, &worth, WorthGrouping::Reviewer);
            assert!(!page.chars().any(|c| c != '\n' && is_unsafe(c)), "{page:?}");
            let wide = width.unwrap_or(DEFAULT_WIDTH);
            assert!(page.lines().all(|line| line.width() <= wide.max(63)), "{page}");
            text.push_str(&format!("{width:?}\n{page}\n"));
        }
        insta::assert_snapshot!("worth", text);
    }
}
