//! Draws the list of findings: priority, status, kind, location, title.

use ratatui::layout::Rect;

use super::super::app::Pane;
use super::super::layout::PaneArea;
use super::super::pages::priority_label;
use super::super::theme::Role;
use super::frame;
use super::painter::Painter;
use crate::domain::FindingStatus;
use crate::store::FindingRow;

/// Width from which a list has columns for kind and location.
const MIN_WIDE_COLUMNS: u16 = 60;
/// Width of the column of kinds, with the space after it.
const KIND_COLUMNS: u16 = 15;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    if app.finding_list.rows.is_empty() {
        let text = if app.store.view.finding_count() == 0 { "nothing found yet" } else { "nothing passes the filter" };
        painter.draw_text(body.x, body.y, body.width, text, Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Findings);
    let cursor = app.finding_list.cursor;
    for y in body.y..body.y + body.height {
        let at = cursor.offset + usize::from(y - body.y);
        let Some(index) = app.finding_list.rows.get(at) else { break };
        let finding = app.store.view.finding(*index as usize);
        let line = Rect::new(body.x, y, body.width, 1);
        if at == cursor.selected {
            painter.fill(line, bar);
            painter.set_overlay_style(Some(bar));
        }
        draw_finding(painter, &finding, app.is_marked(at, finding.id), line);
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, cursor.offset, app.finding_list.rows.len());
}

/// Draws the title with the number of findings and the filter; `+` says that the store has more.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let total = app.store.view.finding_count();
    let mut facts = Vec::new();
    if total > 0 {
        let more = if app.store.view.complete { "" } else { "+" };
        let count = if app.finding_list.rows.len() == total {
            format!("{total}{more}")
        } else {
            format!("{} of {total}{more}", app.finding_list.rows.len())
        };
        facts.push((count, Role::Muted));
    }
    if !app.finding_list.filter_text.is_empty() && total > 0 {
        facts.push((app.finding_list.filter_text.clone(), Role::Accent));
    }
    frame::draw_title(painter, area, Pane::Findings, "Findings", &facts, "");
}

/// Draws a finding in `line`, which is one row high.
fn draw_finding(painter: &mut Painter<'_>, finding: &FindingRow<'_>, marked: bool, line: Rect) {
    let app = painter.app;
    let status = app.current_status(finding);
    let Rect { x, y, width, .. } = line;
    let decided = !status.is_undecided();
    let quiet = |role| if decided { Role::Dismissed } else { role };
    if marked {
        painter.draw_text(x, y, 1, app.display.glyphs.mark, Role::MarkSign);
    }
    let mut left = x + 2;
    painter.draw_text(left, y, 2, priority_label(finding.priority), quiet(Role::from_priority(finding.priority)));
    left += 3;
    painter.draw_text(left, y, 1, app.display.glyphs.finding_status(status), Role::from_finding_status(status));
    left += 2;
    if app.panes.zoomed && width > 130 {
        painter.draw_text(left, y, 10, status.word(), Role::from_finding_status(status));
        left += 12;
    }
    if width >= MIN_WIDE_COLUMNS {
        painter.draw_text(left, y, KIND_COLUMNS - 1, finding.kind.label(), quiet(Role::Muted));
        left += KIND_COLUMNS;
        let place_width = (width * 3 / 10).clamp(22, 44);
        let place = format_location(finding.path, finding.line_start);
        painter.draw_text_end(left, y, place_width - 2, &place, quiet(Role::Accent));
        left += place_width;
    }
    let role = match status {
        FindingStatus::Open | FindingStatus::Unresolved => Role::Normal,
        _ => Role::Dismissed,
    };
    painter.draw_text(left, y, (x + width).saturating_sub(left), finding.title, role);
}

fn format_location(path: &str, line: u32) -> String {
    format!("{path}:{line}")
}
