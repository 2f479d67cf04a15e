//! Builds the context page of a run: the sections of `revdeck context` (rules, learned patterns, the change, the
//! code around it), the share of the budget that each takes, and the omitted pieces.
//!
//! - Columns without room are dropped, the least important first.
//! - Locations and reasons are wrapped, never cut.

use super::super::app::{App, ContextListing};
use super::super::doc::{Doc, DocLine, wrap_words};
use super::super::keymap::{Action, KeyContext};
use super::super::page_data::TurnsPage;
use super::super::theme::Role;
use super::{NAMES, format_thousands};
use crate::domain::{ContextRecord, ContextRecordSection, RunStatus, text};
use crate::report::figures::format_short_count;
use crate::tui::doc::TextColumns;

/// Greatest width of the bar in columns; a wider bar makes shares hard to compare.
const MAX_BAR_COLUMNS: usize = 100;
/// Columns of a location: minimum before other columns get room, minimum beside a reason, maximum beside a
/// reason.
const LOCATION_COLUMNS: [usize; 3] = [24, 30, 44];
/// On a screen with fewer rows, the list starts further up.
const MIN_TALL_ROWS: u16 = 30;
/// Columns of figures, including the gap before them.
const TOKENS: usize = 8;
const SCORE: usize = 8;
/// Columns between a location or a figure and the text behind it.
const GAP_COLUMNS: usize = 2;

pub fn render_context(app: &App, page: &TurnsPage, width: usize, doc: &mut Doc) {
    let Some(context) = &page.conversation.context else {
        doc.push_paragraph(Role::Muted, empty_reason(page), width);
        return;
    };
    let shares = compute_shares(context);
    render_budget(app, context, &shares, width, doc);
    let (above, below) = build_legend(app, &shares, width);
    doc.lines.extend(above);
    if !context.compression.is_empty() {
        doc.push_field("compressed", NAMES, Role::Normal, describe_compression(&context.compression), width);
    }
    for note in &context.notes {
        doc.push_field("note", NAMES, Role::Warn, note, width);
    }
    let left_out = (context.left_out_total as usize).max(context.left_out.len());
    let key = app.keymap.key_of(KeyContext::Detail, Action::LeftOut);
    let shows = key.map_or_else(String::new, |key| format!("; press {key} to see"));
    let sections = match context.sections.len() {
        ContextRecord::MAX_LISTED => format!("the first {}", text::format_count(ContextRecord::MAX_LISTED, "section")),
        count => text::format_count(count, "section"),
    };
    match app.detail.context_listing {
        ContextListing::Sent => {
            let said = match left_out {
                0 => "nothing".to_owned(),
                count => format!("{}{shows}", text::format_count(count, "piece")),
            };
            doc.push_field("left out", NAMES, Role::Normal, &said, width);
            render_list(app, &format!("{sections} sent"), &context.sections, width, doc);
            if !context.patterns.is_empty() {
                doc.push_blank();
                let title = text::format_count(context.patterns.len(), "learned pattern");
                doc.push(DocLine::styled(Role::Title, &format!("{title} told")));
                for pattern in &context.patterns {
                    doc.push_paragraph(Role::Normal, pattern, width);
                }
            }
        }
        ContextListing::LeftOut => {
            doc.push_field("sent", NAMES, Role::Normal, &format!("{sections}{shows}"), width);
            let hidden = left_out - context.left_out.len();
            let title = match hidden {
                0 => format!("{} left out", text::format_count(left_out, "piece")),
                hidden => format!("{} left out, {hidden} not listed", text::format_count(left_out, "piece")),
            };
            render_list(app, &title, &context.left_out, width, doc);
            if hidden > 0 && !context.left_out.is_empty() {
                let said = format!("{} and {hidden} more, none of them stronger", app.display.glyphs.ellipsis);
                doc.push_paragraph(Role::Muted, &said, width);
            }
        }
    }
    if !below.is_empty() {
        doc.push_blank();
        doc.lines.extend(below);
    }
}

/// Returns the reason why there is no context.
fn empty_reason(page: &TurnsPage) -> &'static str {
    match page.run.status {
        _ if !page.conversation.turns.is_empty() => {
            "This run tells of no code around the change: its first request had the change alone, or was sent before \
             revdeck kept a record of what went with it."
        }
        RunStatus::Pending => "Waiting for a worker.",
        status if !status.is_terminal() => "Nothing has been sent yet.",
        // The journal was removed by `store prune`, or no worker sent a request.
        _ if page.run.usage.tokens.total() > 0 => {
            "The journal of this run is no longer kept: what it sent cannot be shown."
        }
        _ => "Nothing was sent in this run.",
    }
}

fn describe_compression(word: &str) -> &str {
    match word {
        "light" => "light: without plain comments",
        "medium" => "medium: without plain comments and needless white space",
        "strong" => "strong: without plain comments, needless white space, bodies of functions that hardly matter",
        other => other,
    }
}

/// Share of the context, as the bar shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContextShare {
    Change,
    Code,
    Project,
    Free,
}

impl ContextShare {
    const ALL: [Self; 4] = [Self::Change, Self::Code, Self::Project, Self::Free];

    fn from_section_kind(kind: &str) -> Self {
        match kind {
            "task" | "diff" => Self::Change,
            "rules" | "patterns" | "documentation" | "overview" => Self::Project,
            _ => Self::Code,
        }
    }

    fn appearance(self, app: &App) -> (&'static str, Role, &'static str) {
        let [pinned, summarized, _, kept, free] = app.display.glyphs.window;
        match self {
            Self::Change => (pinned, Role::Pinned, "change"),
            Self::Code => (kept, Role::Kept, "code"),
            Self::Project => (summarized, Role::Summarized, "project"),
            Self::Free => (free, Role::Empty, "free"),
        }
    }
}

/// Computes the tokens of each share in the order of [`ContextShare::ALL`]. The sum is the budget, or the sent
/// tokens if they exceed it. The code share includes unlisted sections and the few tokens by which joined
/// sections differ from their sum.
fn compute_shares(context: &ContextRecord) -> [u64; 4] {
    let total = u64::from(context.total_tokens);
    let of = |part: ContextShare| {
        let sections = context.sections.iter().filter(|section| ContextShare::from_section_kind(&section.kind) == part);
        sections.map(|section| u64::from(section.tokens)).sum::<u64>()
    };
    let change = of(ContextShare::Change).min(total);
    let project = of(ContextShare::Project).min(total - change);
    [change, total - change - project, project, u64::from(context.budget).saturating_sub(total)]
}

/// Distributes `width` cells over the shares. A share above zero gets at least one cell while there is room. The
/// running sum is rounded, so rounding errors do not add up.
fn allocate_cells(shares: &[u64; 4], width: usize) -> [usize; 4] {
    let whole = shares.iter().sum::<u64>().max(1) as u128;
    let mut cells = [0; 4];
    let (mut sum, mut filled) = (0, 0);
    for (cell, share) in cells.iter_mut().zip(shares) {
        sum += u128::from(*share);
        let end = usize::try_from((sum * width as u128 * 2 + whole) / (whole * 2)).unwrap_or(width);
        *cell = if *share > 0 { end.saturating_sub(filled).max(1).min(width - filled) } else { 0 };
        filled += *cell;
    }
    cells
}

/// Renders the tokens and the budget as text and as a bar.
fn render_budget(app: &App, context: &ContextRecord, shares: &[u64; 4], width: usize, doc: &mut Doc) {
    let (total, budget) = (u64::from(context.total_tokens), u64::from(context.budget));
    let said =
        format!("{} of {}, {} %", format_thousands(total), format_thousands(budget), total * 100 / budget.max(1));
    let role = if total > budget { Role::Bad } else { Role::Strong };
    doc.push_field("tokens", NAMES, role, &said, width);
    let mut bar = DocLine::default();
    for (part, count) in ContextShare::ALL.into_iter().zip(allocate_cells(shares, width.min(MAX_BAR_COLUMNS))) {
        let (sign, role, _) = part.appearance(app);
        bar = bar.with_span(role, &sign.repeat(count));
    }
    doc.push(bar);
}

/// Builds the legend of the bar with token counts; returns the lines below the bar and the lines at the end of
/// the page. On a short screen, only a legend of one line stays below the bar (without token counts if they do
/// not fit), and the full legend moves to the end.
fn build_legend(app: &App, shares: &[u64; 4], width: usize) -> (Vec<DocLine>, Vec<DocLine>) {
    let whole = build_legend_lines(app, shares, width, true);
    if app.display.rows >= MIN_TALL_ROWS || whole.len() == 1 {
        return (whole, Vec::new());
    }
    let words = Some(build_legend_lines(app, shares, width, false)).filter(|words| words.len() == 1);
    (words.unwrap_or_default(), whole)
}

fn build_legend_lines(app: &App, shares: &[u64; 4], width: usize, has_tokens: bool) -> Vec<DocLine> {
    let (mut lines, mut line, mut used) = (Vec::new(), DocLine::default(), 0);
    for (part, tokens) in ContextShare::ALL.into_iter().zip(*shares).filter(|(_, tokens)| *tokens > 0) {
        let (sign, role, word) = part.appearance(app);
        let said = if has_tokens { format!(" {word} {}", format_thousands(tokens)) } else { format!(" {word}") };
        let need = sign.width() + said.width();
        if used > 0 && used + 3 + need > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        let gap = if used > 0 { "   " } else { "" };
        line = line.with_span(Role::Faint, gap).with_span(role, sign).with_span(Role::Faint, &said);
        used += gap.len() + need;
    }
    lines.push(line);
    lines
}

/// Column widths of a list.
struct ContextColumns {
    number: usize,
    place: usize,
    /// 0 if the column is dropped.
    kind: usize,
    has_score: bool,
    /// If false, reasons stand below the locations, or behind short ones.
    has_reason: bool,
}

impl ContextColumns {
    fn fit(entries: &[ContextRecordSection], width: usize) -> Self {
        let widest = |what: &dyn Fn(&ContextRecordSection) -> usize| entries.iter().map(what).max().unwrap_or(0);
        let number = entries.len().max(1).ilog10() as usize + 1 + GAP_COLUMNS;
        let kind = match widest(&|entry| if entry.path.is_empty() { 0 } else { entry.kind.width() }) {
            0 => 0,
            kind => kind.max("kind".len()) + GAP_COLUMNS,
        };
        let reason = match widest(&|entry| entry.reason.width()) {
            0 => None,
            reason => Some(reason.max("reason".len())),
        };
        let least = number + TOKENS;
        let [worth, beside, most] = LOCATION_COLUMNS;
        let wanted =
            widest(&|entry| entry_name(entry).width() + format_lines(entry).width() + GAP_COLUMNS).clamp(worth, most);
        // A reason beside its location saves a line, so the kind column is dropped first.
        for kind in [kind, 0] {
            let Some(reason) = reason else { break };
            let room = width.saturating_sub(least + kind + SCORE + GAP_COLUMNS + reason);
            if room >= wanted.min(beside) {
                return Self { number, place: wanted.min(room), kind, has_score: true, has_reason: true };
            }
        }
        let mut room = width.saturating_sub(least);
        let mut take = |columns: usize| {
            let fits = room >= worth + columns;
            room -= if fits { columns } else { 0 };
            fits
        };
        let has_score = take(SCORE);
        let kind = if take(kind) { kind } else { 0 };
        Self { number, place: room, kind, has_score, has_reason: false }
    }
}

/// Returns the path of an entry, or its kind if it belongs to no file.
fn entry_name(entry: &ContextRecordSection) -> &str {
    if entry.path.is_empty() { &entry.kind } else { &entry.path }
}

/// Formats the lines of an entry: `:12-40`; empty without lines.
fn format_lines(entry: &ContextRecordSection) -> String {
    match entry.start_line {
        0 => String::new(),
        start if entry.end_line > start => format!(":{start}-{}", entry.end_line),
        start => format!(":{start}"),
    }
}

/// Wraps `src/doc.rs:12-40` after slashes, and before the line range if a name fills the width.
fn wrap_location(entry: &ContextRecordSection, width: usize) -> Vec<String> {
    let lines = format_lines(entry);
    let name = text::sanitize_line(entry_name(entry));
    let mut parts = wrap_words(&format!("{name}{lines}"), width);
    if !parts.last().is_some_and(|last| last.ends_with(&lines)) {
        parts = wrap_words(&name, width);
        parts.push(lines);
    }
    parts
}

fn pad_end(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Renders a title with column names and a row per entry.
fn render_list(app: &App, title: &str, entries: &[ContextRecordSection], width: usize, doc: &mut Doc) {
    doc.push_blank();
    if entries.is_empty() {
        doc.push(DocLine::styled(Role::Title, title));
        return;
    }
    let columns = ContextColumns::fit(entries, width);
    let mut names = String::new();
    if columns.kind > 0 {
        names.push_str(&pad_end("kind", columns.kind));
    }
    names.push_str(&format!("{:>TOKENS$}", "tokens"));
    if columns.has_score {
        names.push_str(&format!("{:>SCORE$}", "score"));
    }
    if columns.has_reason {
        names.push_str(&format!("{}reason", " ".repeat(GAP_COLUMNS)));
    }
    let room = columns.number + columns.place;
    let mut line = DocLine::styled(Role::Title, &pad_end(title, room));
    if title.width() > room {
        doc.push(line);
        line = DocLine::styled(Role::Title, &" ".repeat(room));
    }
    doc.push(line.with_span(Role::Faint, &names));
    for (index, entry) in entries.iter().enumerate() {
        render_row(app, index + 1, entry, &columns, width, doc);
    }
}

fn render_row(
    app: &App,
    number: usize,
    entry: &ContextRecordSection,
    columns: &ContextColumns,
    width: usize,
    doc: &mut Doc,
) {
    let of_a_file = !entry.path.is_empty();
    let digits = columns.number - GAP_COLUMNS;
    let role = match (app.detail.context_listing, of_a_file) {
        (ContextListing::LeftOut, _) => Role::Muted,
        (ContextListing::Sent, true) => Role::Accent,
        (ContextListing::Sent, false) => Role::Normal,
    };
    let reason = text::sanitize_line(&entry.reason);
    let places = wrap_location(entry, columns.place.saturating_sub(GAP_COLUMNS).max(8));
    let behind = places.len() == 1 && places[0].width() + reason.width() + 2 * GAP_COLUMNS <= columns.place;
    for (index, part) in places.iter().enumerate() {
        if index > 0 {
            doc.push(DocLine::styled(Role::Faint, &" ".repeat(columns.number)).with_span(role, part));
            continue;
        }
        let mut line = DocLine::styled(Role::Faint, &format!("{number:>digits$}{}", " ".repeat(GAP_COLUMNS)))
            .with_span(role, part);
        let said =
            if behind && !columns.has_reason { format!("{}{reason}", " ".repeat(GAP_COLUMNS)) } else { String::new() };
        let rest = columns.place.saturating_sub(part.width());
        line = line.with_span(Role::Muted, &pad_end(&said, rest));
        if columns.kind > 0 {
            let kind = if of_a_file { entry.kind.as_str() } else { "" };
            line = line.with_span(Role::Muted, &pad_end(&text::sanitize_line(kind), columns.kind));
        }
        line = line.with_span(Role::Normal, &format!("{:>TOKENS$}", format_short_count(u64::from(entry.tokens))));
        if columns.has_score {
            line = line.with_span(Role::Muted, &format!("{:>SCORE$.3}", entry.score));
        }
        if columns.has_reason {
            line = line.with_span(Role::Muted, &format!("{}{reason}", " ".repeat(GAP_COLUMNS)));
        }
        doc.push(line);
    }
    if !columns.has_reason && !behind && !reason.is_empty() {
        for part in wrap_words(&reason, width.saturating_sub(columns.number).max(8)) {
            doc.push(DocLine::styled(Role::Faint, &" ".repeat(columns.number)).with_span(Role::Muted, &part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_wide_as_it_may_be_and_shows_all_that_is_there() {
        // Shares of change, code, project and free; expected cells.
        for (shares, width, expected) in [
            ([0, 0, 0, 0], 10, [0, 0, 0, 0]),
            ([0, 0, 0, 500], 10, [0, 0, 0, 10]),
            ([100, 200, 100, 400], 8, [1, 2, 1, 4]),
            ([1, 1, 1, 10_000], 10, [1, 1, 1, 7]),
            ([0, 995, 1, 4], 10, [0, 10, 0, 0]),
            ([u64::MAX / 4; 4], 4, [1, 1, 1, 1]),
            ([5, 5, 5, 5], 2, [1, 1, 0, 0]),
            ([5, 5, 5, 5], 0, [0, 0, 0, 0]),
        ] {
            assert_eq!(allocate_cells(&shares, width), expected, "{shares:?} in {width}");
        }
    }

    #[test]
    fn a_place_is_broken_behind_slashes_and_before_its_lines() {
        let of = |path: &str, start_line, end_line| ContextRecordSection {
            path: path.into(),
            kind: "overview".into(),
            start_line,
            end_line,
            ..ContextRecordSection::default()
        };
        for (entry, width, expected) in [
            (of("src/doc.rs", 12, 40), 16, &["src/doc.rs:12-40"][..]),
            (of("src/doc.rs", 12, 40), 15, &["src/", "doc.rs:12-40"]),
            (of("src/doc.rs", 12, 40), 11, &["src/doc.rs", ":12-40"]),
            (of("src/doc.rs", 12, 40), 8, &["src/", "doc.rs", ":12-40"]),
            (of("src/tui/doc.rs", 12, 12), 10, &["src/tui/", "doc.rs:12"]),
            (of("src/doc.rs", 0, 0), 10, &["src/doc.rs"]),
            (of("", 0, 0), 10, &["overview"]),
        ] {
            assert_eq!(wrap_location(&entry, width), expected, "{entry:?} in {width}");
        }
    }

    #[test]
    fn shares_add_up_to_the_budget_whatever_is_listed() {
        let section =
            |kind: &str, tokens| ContextRecordSection { kind: kind.into(), tokens, ..ContextRecordSection::default() };
        // Tokens of the change's other sections count as code.
        let sections = vec![section("diff", 300), section("focus", 50), section("rules", 100), section("function", 9)];
        for (budget, total_tokens, expected) in [
            (1_000, 460, [300, 60, 100, 540]),
            (1_000, 1_200, [300, 800, 100, 0]),
            (1_000, 350, [300, 0, 50, 650]),
            (0, 0, [0, 0, 0, 0]),
        ] {
            let context =
                ContextRecord { budget, total_tokens, sections: sections.clone(), ..ContextRecord::default() };
            assert_eq!(compute_shares(&context), expected, "{total_tokens} of {budget}");
        }
    }
}
