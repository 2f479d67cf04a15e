//! Draws the list of findings: group headers, and rows with place, symbol and problem.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::{App, FindingListLine, Pane};
use super::super::filter;
use super::super::finding_order::{FindingArrangement, FindingGrouping, group_label};
use super::super::layout::PaneArea;
use super::super::pages::priority_label;
use super::super::short_title::shorten_title;
use super::super::theme::Role;
use super::frame;
use super::painter::Painter;
use crate::domain::{FindingStatus, text};
use crate::store::FindingRow;

/// Width from which a row has a column for the problem beside place and symbol.
const MIN_PROBLEM_COLUMNS: u16 = 60;
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
        let text = if app.store.view.finding_count() == 0 { "nothing found yet" } else { "nothing passes the filter" };
        painter.draw_text(body.x, body.y, body.width, text, Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Findings);
    for y in body.y..body.y + body.height {
        let line = Rect::new(body.x, y, body.width, 1);
        match list.line(list.cursor.offset + usize::from(y - body.y)) {
            Some(FindingListLine::Header(group)) => draw_header(painter, group, line),
            Some(FindingListLine::Finding { at, line: 0 }) => {
                draw_row(painter, at, line, bar, |painter, finding| draw_finding(painter, finding, at, line));
            }
            Some(FindingListLine::Finding { at, .. }) => {
                draw_row(painter, at, line, bar, |painter, finding| draw_second_line(painter, finding, line));
            }
            None => break,
        }
    }
    painter.draw_scroll_thumb(body, list.cursor.offset, list.line_count());
}

/// Draws a line of the finding at a position, with the bar if it is selected.
fn draw_row(
    painter: &mut Painter<'_>,
    at: usize,
    line: Rect,
    bar: Style,
    draw: impl FnOnce(&mut Painter<'_>, &FindingRow<'_>),
) {
    let app = painter.app;
    let Some(index) = app.finding_list.rows.get(at) else { return };
    if at == app.finding_list.cursor.selected {
        painter.fill(line, bar);
        painter.set_overlay_style(Some(bar));
    }
    draw(painter, &app.store.view.finding(*index as usize));
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
        grouping => format!("by {} in {}", sort.word(), grouping.plural()),
    };
    let order = if list.rows.is_empty() { "" } else { &order };
    frame::draw_title(painter, area, Pane::Findings, "Findings", &facts, order);
}

/// Returns the terms of the filter that the title must name: not the default ones, and not the run that is named anyway.
fn describe_filter(app: &App) -> String {
    let text = &app.finding_list.filter_text;
    if text == filter::DEFAULT {
        return String::new();
    }
    let chosen = app.chosen_run();
    let is_named = |term: &&str| term.strip_prefix("run:").is_none_or(|run| Some(run) != chosen);
    text.split_whitespace().filter(is_named).collect::<Vec<_>>().join(" ")
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
    let label = match list.arrangement.grouping {
        FindingGrouping::Run => match app.store.view.run_index(finding.last_run).map(|at| app.store.view.run(at)) {
            Some(run) => format!("{}  {}", app.name_run(&run), app.format_short_age(run.created_ms)),
            None => finding.last_run.to_owned(),
        },
        grouping => group_label(&finding, grouping),
    };
    let count = format!(" {} {}", app.display.glyphs.horizontal, text::format_thousands(list.group_len(group) as u64));
    let room = line.width.saturating_sub(count.chars().count() as u16);
    let used = painter.draw_text_end(line.x, line.y, room, &label, role);
    painter.draw_text(line.x + used, line.y, line.width - used, &count, Role::Faint);
}

/// Draws the first line of a finding: mark, status, priority where no header names it, place, symbol, problem.
fn draw_finding(painter: &mut Painter<'_>, finding: &FindingRow<'_>, at: usize, line: Rect) {
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
        left += 3;
    }
    if app.panes.zoomed && width > 130 {
        painter.draw_text(left, y, 10, status.word(), Role::from_finding_status(status));
        left += 12;
    }
    let place = match list.arrangement.grouping {
        FindingGrouping::File => format!(":{}", finding.line_start),
        _ => format!("{}:{}", finding.path, finding.line_start),
    };
    let is_wide = width >= MIN_PROBLEM_COLUMNS;
    let place_width = match (list.arrangement.grouping, is_wide) {
        (FindingGrouping::File, _) => 7,
        (_, true) => (width * 3 / 10).clamp(20, 44),
        (_, false) => (width * 55 / 100).clamp(12, 24),
    };
    painter.draw_text_end(left, y, place_width - 1, &place, quiet(Role::Accent));
    left += place_width;
    if width >= MIN_KIND_COLUMNS && list.arrangement.grouping != FindingGrouping::Kind {
        painter.draw_text(left, y, KIND_COLUMNS - 1, finding.kind.label(), quiet(Role::Muted));
        left += KIND_COLUMNS;
    }
    let short = shorten_title(finding.title);
    let (strong, plain) = match status {
        FindingStatus::Open | FindingStatus::Unresolved => (Role::Normal, Role::Muted),
        _ => (Role::Dismissed, Role::Dismissed),
    };
    let mut room = (x + width).saturating_sub(left);
    if list.rows.get(at).is_some_and(|index| app.is_new(*index as usize, finding)) && room > 12 {
        room -= painter.draw_text_right(left, y, room, "new", Role::Good) + 1;
    }
    if list.row_height > 1 || (!is_wide && !short.symbol.is_empty()) {
        let symbol = if short.symbol.is_empty() { finding.kind.label() } else { short.symbol };
        painter.draw_text(left, y, room, symbol, strong);
        return;
    }
    if short.symbol.is_empty() {
        painter.draw_text(left, y, room, &short.problem, strong);
        return;
    }
    let symbol_width = (width / 5).clamp(12, 28).min(room);
    painter.draw_text(left, y, symbol_width - 1, short.symbol, strong);
    painter.draw_text(left + symbol_width, y, room - symbol_width, &short.problem, plain);
}

/// Draws the second line of a finding: its title.
fn draw_second_line(painter: &mut Painter<'_>, finding: &FindingRow<'_>, line: Rect) {
    let is_undecided = painter.app.current_status(finding).is_undecided();
    let role = if is_undecided { Role::Muted } else { Role::Dismissed };
    let title = shorten_title(finding.title).problem;
    painter.draw_text(line.x + 3, line.y, line.width.saturating_sub(3), &title, role);
}
