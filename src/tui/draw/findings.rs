//! Draws the list of findings: group headers, and rows with place, symbol and problem.

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::{App, FindingListLine, Pane};
use super::super::empty_list::{EmptyList, explain_empty_list};
use super::super::filter;
use super::super::filter_terms::split_terms;
use super::super::finding_order::{FindingArrangement, group_label};
use super::super::finding_texts::{FindingText, ShownText, find_texts};
use super::super::layout::PaneArea;
use super::super::pages::priority_label;
use super::super::theme::Role;
use super::frame;
use super::painter::{Painter, measure_shown};
use crate::config::FindingGrouping;
use crate::domain::{FindingStatus, text};
use crate::store::FindingRow;

/// Width from which a row has a column for the problem beside place and symbol. A narrower row shows the problem where place
/// and symbol leave room.
const MIN_PROBLEM_COLUMNS: u16 = 60;
/// Room from which a narrow row shows the beginning of a problem that does not fit.
const MIN_PROBLEM_ROOM: u16 = 8;
/// Width from which a row names the kind.
const MIN_KIND_COLUMNS: u16 = 120;
/// Width of the column of kinds, with the space after it.
const KIND_COLUMNS: u16 = 16;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    let list = &app.finding_list;
    if list.rows.is_empty() {
        if app.store.view.run_count() == 0 {
            return frame::draw_empty_list(painter, body, "nothing found yet", Role::Faint);
        }
        let EmptyList { headline, role, .. } = explain_empty_list(app);
        return frame::draw_empty_list(painter, body, &headline, role);
    }
    let bar = frame::pane_selection_style(painter, Pane::Findings);
    let lines = list.cursor.offset..list.cursor.offset + usize::from(body.height);
    let visible: Vec<VisibleLine<'_>> = lines.map_while(|line| VisibleLine::new(app, list.line(line)?)).collect();
    let columns = FindingColumns::measure(app, body, &visible);
    for (visible, y) in visible.iter().zip(body.y..) {
        let line = Rect::new(body.x, y, body.width, 1);
        match (visible.line, &visible.finding) {
            (FindingListLine::Header(group), _) => draw_header(painter, group, line),
            (FindingListLine::Finding { at, line: 0 }, Some((finding, texts))) => {
                draw_row(painter, at, line, bar, |painter| draw_finding(painter, (finding, texts), at, line, columns));
            }
            (FindingListLine::Finding { at, .. }, Some((finding, texts))) => {
                draw_row(painter, at, line, bar, |painter| draw_second_line(painter, (finding, texts), line));
            }
            (FindingListLine::Finding { .. }, None) => {}
        }
    }
    painter.draw_scroll_thumb(body, list.cursor.offset, list.line_count());
}

/// Line of the list on the screen.
struct VisibleLine<'a> {
    line: FindingListLine,
    /// Finding of the line, with the texts that are measured and drawn; `None` for a header.
    finding: Option<(FindingRow<'a>, Cow<'a, FindingText>)>,
}

impl<'a> VisibleLine<'a> {
    fn new(app: &'a App, line: FindingListLine) -> Option<Self> {
        let finding = match line {
            FindingListLine::Header(_) => None,
            FindingListLine::Finding { at, .. } => {
                let index = *app.finding_list.rows.get(at)?;
                Some((app.store.view.finding(index as usize), find_texts(app, index)))
            }
        };
        Some(Self { line, finding })
    }
}

/// Widths of the columns of place and symbol, each with the two spaces after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FindingColumns {
    place: u16,
    symbol: u16,
}

impl FindingColumns {
    /// Measures the visible findings: a column takes what its longest text needs, up to its share of the width, and more
    /// if the texts after it leave room.
    fn measure(app: &App, body: Rect, visible: &[VisibleLine<'_>]) -> Self {
        let list = &app.finding_list;
        let grouping = list.arrangement.grouping;
        let has_two_lines = list.row_height > 1;
        let is_narrow = body.width < MIN_PROBLEM_COLUMNS;
        // Longest place, symbol, problem beside a symbol, and text without a symbol.
        let (mut place, mut symbol, mut problem, mut whole) = (0, 0, 0, 0);
        for visible in visible {
            let FindingListLine::Finding { line: 0, .. } = visible.line else { continue };
            let Some((finding, texts)) = &visible.finding else { continue };
            place = place.max(texts.place.columns + GAP);
            if !has_two_lines && has_own_symbol(texts) {
                symbol = symbol.max(texts.symbol.columns + GAP);
                problem = problem.max(texts.problem.columns.min(if is_narrow { MIN_PROBLEM_ROOM } else { u16::MAX }));
                continue;
            }
            whole = whole.max(match texts.symbol.text.is_empty() {
                true if has_two_lines => measure_shown(app, finding.kind.label()),
                false if has_two_lines || is_narrow => texts.symbol.columns,
                _ => texts.problem.columns,
            });
        }
        let others = [
            (true, 3 + NEW_COLUMNS),
            (grouping != FindingGrouping::Priority, PRIORITY_COLUMNS),
            (has_status_column(app, body.width), STATUS_COLUMNS),
            (has_kind_column(grouping, body.width), KIND_COLUMNS),
        ];
        let others: u16 = others.iter().filter(|(is_shown, _)| *is_shown).map(|(_, width)| width).sum();
        let room = body.width.saturating_sub(others);
        let place_share = if body.width >= MIN_PROBLEM_COLUMNS { WIDE_PLACE_SHARE } else { NARROW_PLACE_SHARE };
        let columns =
            Self { place: place.min(place_share.of(body.width)), symbol: symbol.min(SYMBOL_SHARE.of(body.width)) };
        let (symbol, texts) = match is_narrow {
            // Places that need the room get it, unless symbols and problems fit beside their share.
            true if columns.place + columns.symbol + problem > room => (columns.symbol, symbol.saturating_sub(GAP)),
            // A longer symbol moves the problem of its row.
            true => (columns.symbol, columns.symbol + problem),
            false => {
                let symbol = symbol.min(columns.symbol.max(room.saturating_sub(columns.place + problem)));
                (symbol, symbol + problem)
            }
        };
        let texts = texts.max(whole);
        Self { place: place.min(columns.place.max(room.saturating_sub(texts))), symbol }
    }
}

/// Part of a row that a column takes.
#[derive(Debug, Clone, Copy)]
struct ColumnShare {
    percent: u16,
    least: u16,
    most: u16,
}

impl ColumnShare {
    fn of(self, width: u16) -> u16 {
        (u32::from(width) * u32::from(self.percent) / 100).clamp(u32::from(self.least), u32::from(self.most)) as u16
    }
}

const WIDE_PLACE_SHARE: ColumnShare = ColumnShare { percent: 30, least: 20, most: 44 };
const NARROW_PLACE_SHARE: ColumnShare = ColumnShare { percent: 55, least: 12, most: 24 };
const SYMBOL_SHARE: ColumnShare = ColumnShare { percent: 20, least: 12, most: 28 };
/// Columns between a column and the next one.
const GAP: u16 = 2;
/// Width of the mark of a new finding, with the space before it.
const NEW_COLUMNS: u16 = 4;
/// Room after the columns from which a row has the sign of a dispute: the sign, the space before it and a few letters.
const MIN_DISPUTED_ROOM: u16 = 6;
/// Width of the column of priorities, with the space after it.
const PRIORITY_COLUMNS: u16 = 3;
/// Width of the column of statuses, with the space after it.
const STATUS_COLUMNS: u16 = 12;
/// Width from which a row of the zoomed list names the status.
const MIN_STATUS_COLUMNS: u16 = 131;

fn has_status_column(app: &App, width: u16) -> bool {
    app.panes.zoomed && width >= MIN_STATUS_COLUMNS
}

fn has_kind_column(grouping: FindingGrouping, width: u16) -> bool {
    width >= MIN_KIND_COLUMNS && grouping != FindingGrouping::Kind
}

/// Returns true if a row shows the symbol before the problem.
fn has_own_symbol(texts: &FindingText) -> bool {
    !texts.symbol.text.is_empty() && !texts.is_whole_title
}

/// Draws a line of the finding at a position, with the bar if it is selected.
fn draw_row(painter: &mut Painter<'_>, at: usize, line: Rect, bar: Style, draw: impl FnOnce(&mut Painter<'_>)) {
    if at == painter.app.finding_list.cursor.selected {
        painter.fill(line, bar);
        painter.set_overlay_style(Some(bar));
    }
    draw(painter);
    painter.set_overlay_style(None);
}

/// Draws the title with the order, the filter and the position in the list; `+` says that the store has more.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let list = &app.finding_list;
    let mut facts = Vec::new();
    if app.store.view.finding_count() > 0 {
        let more = if app.store.view.complete { "" } else { "+" };
        let count = text::format_thousands(list.rows.len() as u64);
        let position = match list.rows.is_empty() {
            true => "0".to_owned(),
            false => format!("{}/{count}{more}", text::format_thousands(list.cursor.selected as u64 + 1)),
        };
        facts.push((position, Role::Muted));
        if let Some(run) = app.chosen_run().and_then(|run| app.store.view.run_index(run)) {
            facts.push((format!("of {}", app.name_run(&app.store.view.run(run))), Role::Accent));
        }
        facts.push((describe_filter(app), Role::Accent));
    }
    let FindingArrangement { sort, grouping } = list.arrangement;
    let order = match grouping {
        FindingGrouping::None => format!("by {}", sort.word()),
        grouping if grouping.word() == sort.word() => format!("by {}", sort.word()),
        grouping => format!("by {} in {}", sort.word(), name_groups(grouping)),
    };
    let order = if list.rows.is_empty() { "" } else { &order };
    frame::draw_title(painter, area, Pane::Findings, "Findings", &facts, order);
}

/// Returns the word for the groups; empty without groups.
fn name_groups(grouping: FindingGrouping) -> &'static str {
    match grouping {
        FindingGrouping::None => "",
        FindingGrouping::Priority => "priorities",
        FindingGrouping::File => "files",
        FindingGrouping::Kind => "kinds",
        FindingGrouping::Run => "runs",
    }
}

/// Returns the terms of the filter that the title must name: not the default ones, and not the run that is named anyway.
fn describe_filter(app: &App) -> String {
    let text = &app.finding_list.filter_text;
    if text == filter::DEFAULT {
        return String::new();
    }
    let chosen = app.chosen_run();
    let is_named = |term: &&str| term.strip_prefix("run:").is_none_or(|run| Some(run) != chosen);
    split_terms(text).into_iter().filter(is_named).collect::<Vec<_>>().join(" ")
}

/// Names the group to which a finding belongs.
pub(super) fn name_group(app: &App, finding: &FindingRow<'_>) -> String {
    match app.finding_list.arrangement.grouping {
        FindingGrouping::Run => match app.store.view.run_index(finding.last_run).map(|at| app.store.view.run(at)) {
            Some(run) => format!("{}  {}", app.name_run(&run), app.format_short_age(run.created_ms)),
            None => finding.last_run.to_owned(),
        },
        grouping => group_label(finding, grouping),
    }
}

/// Draws the header of a group, such as `P1 ─ 2`.
fn draw_header(painter: &mut Painter<'_>, group: usize, line: Rect) {
    let app = painter.app;
    let list = &app.finding_list;
    let Some(index) = list.groups.get(group).and_then(|start| list.rows.get(*start as usize)) else { return };
    let finding = app.store.view.finding(*index as usize);
    let role = match list.arrangement.grouping {
        FindingGrouping::Priority => Role::from_priority(finding.priority),
        _ => Role::Strong,
    };
    let label = name_group(app, &finding);
    let count = format!(" {} {}", app.display.glyphs.horizontal, text::format_thousands(list.group_len(group) as u64));
    let room = line.width.saturating_sub(count.chars().count() as u16);
    let used = painter.draw_text_end(line.x, line.y, room, &label, role);
    painter.draw_text(line.x + used, line.y, line.width - used, &count, Role::Faint);
}

/// Draws the first line of a finding: mark, status, priority where no header names it, place, symbol, problem.
fn draw_finding(
    painter: &mut Painter<'_>,
    (finding, texts): (&FindingRow<'_>, &FindingText),
    at: usize,
    line: Rect,
    columns: FindingColumns,
) {
    let app = painter.app;
    let list = &app.finding_list;
    let status = app.current_status(finding);
    let decided = !status.is_undecided();
    let quiet = |role| if decided { Role::Dismissed } else { role };
    let Rect { x, y, width, .. } = line;
    if app.is_marked(at, finding.id) {
        painter.draw_text(x, y, 1, app.display.glyphs.mark, Role::MarkSign);
    }
    painter.draw_text(x + 1, y, 1, app.display.glyphs.finding_status(status), Role::from_finding_status(status));
    let mut left = x + 3;
    if list.arrangement.grouping != FindingGrouping::Priority {
        painter.draw_text(left, y, 2, priority_label(finding.priority), quiet(Role::from_priority(finding.priority)));
        left += PRIORITY_COLUMNS;
    }
    if has_status_column(app, width) {
        painter.draw_text(left, y, STATUS_COLUMNS - 1, status.word(), Role::from_finding_status(status));
        left += STATUS_COLUMNS;
    }
    let FindingText { place, symbol, problem, .. } = texts;
    painter.draw_shown_end(left, y, columns.place.saturating_sub(GAP), &place.text, quiet(Role::Accent));
    left += columns.place;
    if has_kind_column(list.arrangement.grouping, width) {
        painter.draw_text(left, y, KIND_COLUMNS - 1, finding.kind.label(), quiet(Role::Muted));
        left += KIND_COLUMNS;
    }
    let (strong, plain) = match status {
        FindingStatus::Open | FindingStatus::Unresolved => (Role::Normal, Role::Muted),
        _ => (Role::Dismissed, Role::Dismissed),
    };
    let mut room = (x + width).saturating_sub(left);
    let is_snoozed = list.overrides.snoozed.hides(finding.id, status);
    let mark = match list.rows.get(at) {
        _ if is_snoozed => Some(("snoozed", Role::Muted)),
        _ if list.overrides.disputed.contains(finding.id) => Some(("disputed", Role::Warn)),
        Some(index) if app.is_new(*index as usize, finding) => Some(("new", Role::Good)),
        _ => None,
    };
    if finding.panel_disputed && room > MIN_DISPUTED_ROOM {
        room -= painter.draw_text_right(left, y, room, app.display.glyphs.disputed, quiet(Role::Warn)) + 1;
    }
    if let Some((mark, role)) = mark.filter(|_| room > 12) {
        room -= painter.draw_text_right(left, y, room, mark, role) + 1;
    }
    let mut draw = |x: u16, width: u16, shown: &ShownText, role| painter.draw_shown(x, y, width, &shown.text, role);
    if list.row_height > 1 {
        match symbol.text.is_empty() {
            true => painter.draw_text(left, y, room, finding.kind.label(), strong),
            false => draw(left, room, symbol, strong),
        };
        return;
    }
    let is_narrow = width < MIN_PROBLEM_COLUMNS;
    if !has_own_symbol(texts) {
        // A whole title names its symbol. What is left of a cut one may not.
        let is_cut = is_narrow && !symbol.text.is_empty() && problem.columns > room;
        draw(left, room, if is_cut { symbol } else { problem }, strong);
        return;
    }
    if is_narrow {
        let used = draw(left, room, symbol, strong);
        let problem_at = columns.symbol.max(used + GAP);
        let rest = room.saturating_sub(problem_at);
        if rest >= MIN_PROBLEM_ROOM.min(problem.columns) {
            draw(left + problem_at, rest, problem, plain);
        }
        return;
    }
    let symbol_width = columns.symbol.clamp(1, room.max(1));
    draw(left, symbol_width.saturating_sub(GAP), symbol, strong);
    draw(left + symbol_width, room.saturating_sub(symbol_width), problem, plain);
}

/// Draws the second line of a finding: its title.
fn draw_second_line(painter: &mut Painter<'_>, (finding, texts): (&FindingRow<'_>, &FindingText), line: Rect) {
    let is_undecided = painter.app.current_status(finding).is_undecided();
    let role = if is_undecided { Role::Muted } else { Role::Dismissed };
    painter.draw_shown(line.x + 3, line.y, line.width.saturating_sub(3), &texts.problem.text, role);
}
