//! Renders the use of a reviewer's window: a bar for one turn, a chart over all turns, and the legend.
//!
//! - A share above zero has at least one cell while cells are left.
//! - The cells never add up to more than the bar's width.

use super::super::doc::{Doc, DocLine, DocSpan, wrap_words};
use super::super::glyphs::Glyphs;
use super::super::theme::Role;
use super::super::turns::Turn;
use crate::domain::WindowUse;
use crate::report::figures::{format_brief, format_thousands};

/// Columns of numbers at the left of the chart.
const GUTTER: usize = 6;
/// Greatest width of a turn in columns, including the gap.
const MAX_TURN_COLUMNS: usize = 4;

/// Shares of a window in the order of a bar: pinned messages, summaries of removed ones, masked results, recent
/// messages, free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowShare {
    Pinned,
    Summarized,
    Masked,
    Kept,
    Free,
}

impl WindowShare {
    const ALL: [Self; 5] = [Self::Pinned, Self::Summarized, Self::Masked, Self::Kept, Self::Free];

    fn appearance(self, glyphs: &Glyphs) -> (&'static str, Role, &'static str) {
        let [pinned, summarized, masked, kept, free] = glyphs.window;
        match self {
            Self::Pinned => (pinned, Role::Pinned, "pinned"),
            Self::Summarized => (summarized, Role::Summarized, "summarized"),
            Self::Masked => (masked, Role::Masked, "masked"),
            Self::Kept => (kept, Role::Kept, "kept"),
            Self::Free => (free, Role::Empty, "free"),
        }
    }
}

/// Distributes `cells` over the shares, in the order of [`WindowShare::ALL`]. Masked results take less than a
/// cell and get one.
fn allocate_cells(window: &WindowUse, cells: usize) -> [usize; 5] {
    let share = |tokens: u64| {
        let share =
            (tokens as u128 * cells as u128 * 2 + u128::from(window.limit)) / (u128::from(window.limit).max(1) * 2);
        usize::try_from(share).unwrap_or(cells)
    };
    let at_least_one = |tokens: u64| if tokens == 0 { 0 } else { share(tokens).max(1) };
    let mut left = at_least_one(window.tokens).min(cells);
    let mut take = |wanted: usize| {
        let taken = wanted.min(left);
        left -= taken;
        taken
    };
    let pinned = take(at_least_one(window.pinned));
    let summarized = take(at_least_one(window.summarized));
    let masked = take(usize::from(window.masked > 0));
    let kept = take(cells);
    [pinned, summarized, masked, kept, cells - pinned - summarized - masked - kept]
}

/// Appends the bar of one turn, `width` columns wide.
pub fn build_bar(glyphs: &Glyphs, window: &WindowUse, width: usize, mut line: DocLine) -> DocLine {
    for (part, count) in WindowShare::ALL.into_iter().zip(allocate_cells(window, width)) {
        let (sign, role, _) = part.appearance(glyphs);
        line = line.with_span(role, &sign.repeat(count));
    }
    line
}

/// Renders the legend of the bars, wrapped to `width`.
pub fn render_legend(glyphs: &Glyphs, width: usize, doc: &mut Doc) {
    let start = || DocLine::styled(Role::Normal, &" ".repeat(GUTTER));
    let (mut line, mut used) = (start(), GUTTER);
    for part in WindowShare::ALL {
        let (sign, role, word) = part.appearance(glyphs);
        let gap = if used > GUTTER { 3 } else { 0 };
        let need = gap + 2 + word.len();
        if gap > 0 && used + need > width {
            doc.push(std::mem::replace(&mut line, start()));
            used = GUTTER;
        }
        let gap = if used > GUTTER { "   " } else { "" };
        line = line.with_span(Role::Faint, gap).with_span(role, sign).with_span(Role::Faint, &format!(" {word}"));
        used += gap.len() + 2 + word.len();
    }
    doc.push(line);
}

/// Column of the chart: the fullest window of the turns that share it.
#[derive(Debug, Clone, Copy, Default)]
struct ChartColumn {
    tokens: u64,
    is_peak: bool,
}

/// Mapping of turns to columns.
struct ChartScale {
    /// Rows between zero and the limit.
    rows: usize,
    /// Limit of the window in tokens; the top of the chart.
    limit: u64,
    /// Columns per turn, including the gap; 1 if several turns share a column.
    step: usize,
    columns: Vec<ChartColumn>,
    /// Number of turns that share a column.
    share: usize,
}

impl ChartScale {
    fn fit(turns: &[&Turn], expected: u32, (width, rows): (usize, usize)) -> Option<Self> {
        let limit = turns.iter().map(|turn| turn.window.limit).max().filter(|limit| *limit > 0)?;
        let last = turns.iter().map(|turn| turn.number).max()?;
        let slots = last.max(expected).max(1) as usize;
        let room = width.saturating_sub(GUTTER).max(1);
        let share = slots.div_ceil(room);
        let step = (room / slots).clamp(1, MAX_TURN_COLUMNS);
        let mut columns = vec![ChartColumn::default(); slots.div_ceil(share)];
        let peak = find_peak(turns)?.number;
        for turn in turns {
            if let Some(column) = columns.get_mut((turn.number.max(1) as usize - 1) / share) {
                column.tokens = column.tokens.max(turn.window.tokens);
                column.is_peak |= turn.number == peak;
            }
        }
        Some(Self { rows, limit, step, columns, share })
    }

    fn bar_width(&self) -> usize {
        if self.step > 1 { self.step - 1 } else { 1 }
    }

    /// Returns the height of a column in eighths of a row.
    fn level(&self, column: &ChartColumn) -> usize {
        let eighths = column.tokens as u128 * (self.rows * 8) as u128 / u128::from(self.limit);
        let level = usize::try_from(eighths).unwrap_or(usize::MAX);
        if column.tokens > 0 { level.max(1) } else { 0 }
    }
}

fn find_peak<'a>(turns: &[&'a Turn]) -> Option<&'a Turn> {
    turns.iter().copied().rev().max_by_key(|turn| turn.window.tokens)
}

/// Renders the use of the window over the turns. The limit is a line `rows` rows above zero; the peak is marked
/// and described. Space for `expected` turns keeps the chart stable while a run works.
pub fn render_chart(glyphs: &Glyphs, turns: &[&Turn], expected: u32, (width, rows): (usize, usize), doc: &mut Doc) {
    let (Some(scale), Some(peak)) = (ChartScale::fit(turns, expected, (width, rows)), find_peak(turns)) else { return };
    let over = scale.columns.iter().any(|column| column.tokens > scale.limit);
    if over {
        doc.push(build_row(glyphs, &scale, rows + 1));
    }
    for level in (0..=rows).rev() {
        doc.push(build_row(glyphs, &scale, level));
    }
    doc.push(build_axis(&scale));
    let window = &peak.window;
    let percent = u128::from(window.tokens) * 100 / u128::from(window.limit.max(1));
    let about = if window.approximate { "about " } else { "" };
    let said = format!("peak {about}{} in turn {}, {percent} %", format_thousands(window.tokens), peak.number);
    let role = if window.tokens > window.limit { Role::Bad } else { Role::Muted };
    for line in wrap_words(&said, width.saturating_sub(GUTTER)) {
        doc.push(DocLine::styled(role, &" ".repeat(GUTTER)).with_span(role, &line));
    }
}

/// Builds a row of the chart. Row 0 is the lowest; row `scale.rows` is the limit line, the row above shows values
/// beyond the limit.
fn build_row(glyphs: &Glyphs, scale: &ChartScale, row: usize) -> DocLine {
    let limit = scale.rows;
    let label = match row {
        0 => "0".to_owned(),
        row if row == limit => format_brief(scale.limit),
        _ => String::new(),
    };
    let mut pieces = vec![DocSpan { role: Role::Faint, text: format!("{label:>width$} ", width = GUTTER - 1) }];
    let mut put = |role: Role, text: &str, times: usize| match pieces.last_mut() {
        Some(last) if last.role == role => last.text.push_str(&text.repeat(times)),
        _ => pieces.push(DocSpan { role, text: text.repeat(times) }),
    };
    let behind = if row == limit { (glyphs.limit, Role::Limit) } else { (" ", Role::Faint) };
    let bar_width = scale.bar_width();
    for column in &scale.columns {
        let level = scale.level(column);
        let beyond = level > limit * 8;
        let top = level.div_ceil(8);
        if beyond && row > limit {
            put(Role::Bad, glyphs.beyond, bar_width);
        } else if beyond && row == limit {
            put(Role::Bad, glyphs.eighths[8], bar_width);
        } else if column.is_peak && !beyond && row == top {
            // In the middle of its bar.
            put(behind.1, behind.0, (bar_width - 1) / 2);
            put(Role::Strong, glyphs.peak, 1);
            put(behind.1, behind.0, bar_width / 2);
        } else if row < limit && row < top {
            let role = match (column.is_peak, beyond) {
                (_, true) => Role::Bad,
                (true, _) => Role::Strong,
                _ => Role::Kept,
            };
            put(role, glyphs.eighths[(level - row * 8).min(8)], bar_width);
        } else {
            put(behind.1, behind.0, bar_width);
        }
        put(behind.1, behind.0, scale.step - bar_width);
    }
    DocLine { spans: pieces, ..DocLine::default() }
}

/// Builds the axis: the numbers of the first turn and of every fifth turn, as far as they fit with a blank
/// between them.
fn build_axis(scale: &ChartScale) -> DocLine {
    let mut text = String::new();
    for column in 0..scale.columns.len() {
        let (turn, at) = (column * scale.share + 1, GUTTER + column * scale.step);
        let number = if turn == 1 { 1 } else { turn.next_multiple_of(5) };
        if number < turn + scale.share && text.len() < at {
            text = format!("{text:<at$}{number}");
        }
    }
    DocLine::styled(Role::Faint, &text)
}

/// Formats a count: `812`, `41.2k`, `512k`, `1.2M`.
pub fn format_compact(n: u64) -> String {
    match n {
        1_000..100_000 => format!("{}.{}k", n / 1_000, n % 1_000 / 100),
        _ => format_brief(n),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::glyphs::{ASCII, UNICODE};
    use super::super::super::turns::TurnHistory;
    use super::*;
    use crate::domain::{JournalEntry, RunEvent, Time, TurnPhase};

    fn window(tokens: u64, limit: u64) -> WindowUse {
        WindowUse { tokens, limit, ..WindowUse::default() }
    }

    #[test]
    fn parts_of_a_bar_are_there_when_they_are_and_never_too_wide() {
        let all = WindowUse { pinned: 6_000, summarized: 900, masked: 3, ..window(35_000, 70_000) };
        // Window, cells; pinned, summarized, masked, kept, free.
        for (window, width, expected) in [
            (window(0, 70_000), 10, [0, 0, 0, 0, 10]),
            (window(0, 0), 10, [0, 0, 0, 0, 10]),
            (window(1, 70_000), 10, [0, 0, 0, 1, 9]),
            (window(35_000, 70_000), 10, [0, 0, 0, 5, 5]),
            (window(70_000, 70_000), 10, [0, 0, 0, 10, 0]),
            (window(90_000, 70_000), 10, [0, 0, 0, 10, 0]),
            (window(u64::MAX, 1), 10, [0, 0, 0, 10, 0]),
            (all, 20, [2, 1, 1, 6, 10]),
            (all, 4, [1, 1, 0, 0, 2]),
            (all, 0, [0, 0, 0, 0, 0]),
        ] {
            assert_eq!(allocate_cells(&window, width), expected, "{window:?} in {width}");
        }
    }

    fn drawn(glyphs: &Glyphs, uses: &[WindowUse], expected: u32, width: usize, rows: usize) -> Vec<String> {
        let mut conversation = TurnHistory::default();
        for (turn, window) in (1..).zip(uses) {
            let event = RunEvent::TurnAsked { turn, phase: TurnPhase::Analyse, asked: String::new(), window: *window };
            conversation.apply_entry(JournalEntry { seq: 0, at: Time::UNIX_EPOCH, event });
        }
        let turns: Vec<&Turn> = conversation.turns.iter().map(AsRef::as_ref).collect();
        let mut doc = Doc::default();
        render_chart(glyphs, &turns, expected, (width, rows), &mut doc);
        doc.lines.iter().map(|line| line.plain_text().trim_end().to_owned()).collect()
    }

    #[test]
    fn the_chart_shows_levels_the_limit_and_the_peak() {
        let uses = [10_000, 35_000, 64_000, 20_000].map(|tokens| window(tokens, 80_000));
        let expected = [
            "  80k ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄",
            "               ▾",
            "              ███",
            "          ▁▁▁ ███",
            "          ███ ███ ▂▂▂",
            "    0 ▅▅▅ ███ ███ ███",
            "      1",
            "      peak 64,000 in turn 3, 80 %",
        ];
        let shown = drawn(&UNICODE, &uses, 0, 60, 5);
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(shown, expected, "{}", shown.join("\n"));
        // Beyond the limit.
        let uses = [10_000, 95_000].map(|tokens| window(tokens, 80_000));
        let shown = drawn(&ASCII, &uses, 4, 60, 3);
        assert_eq!(
            shown,
            [
                "          ^^^",
                "  80k ----###---------",
                "          ###",
                "          ###",
                "    0 ... ###",
                "      1",
                "      peak 95,000 in turn 2, 118 %"
            ],
            "{}",
            shown.join("\n")
        );
    }

    #[test]
    fn a_chart_of_any_width_holds_any_number_of_turns() {
        for turns in [1_usize, 2, 19, 20, 21, 100, 999] {
            let uses: Vec<WindowUse> = (0..turns).map(|turn| window(turn as u64 * 700 % 80_000, 70_000)).collect();
            // The narrowest page has 20 columns.
            for width in [20_usize, 41, 80, 200] {
                let shown = drawn(&UNICODE, &uses, 20, width, 5);
                assert!(shown.len() <= 12, "{turns} in {width}: {}", shown.len());
                // The digits of the last number may exceed the width.
                let widest = shown.iter().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width + 3, "{turns} turns in {width}: {widest}\n{}", shown.join("\n"));
            }
        }
        assert!(drawn(&UNICODE, &[], 20, 80, 5).is_empty(), "nothing was asked");
        assert!(drawn(&UNICODE, &[window(5, 0)], 20, 80, 5).is_empty(), "no limit is known");
    }

    #[test]
    fn numbers_are_short() {
        for (n, in_columns, in_words) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1_000, "1.0k", "1k"),
            (1_290, "1.2k", "1.2k"),
            (41_000, "41.0k", "41k"),
            (99_999, "99.9k", "99k"),
            (512_400, "512k", "512k"),
            (1_250_000, "1.2M", "1.2M"),
        ] {
            assert_eq!((format_compact(n).as_str(), format_brief(n).as_str()), (in_columns, in_words));
        }
    }
}
