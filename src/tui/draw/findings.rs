//! Draws the list of findings: priority, status, kind, location, title.

use ratatui::layout::Rect;

use super::super::app::Pane;
use super::super::layout::PaneArea;
use super::super::pages::priority_label;
use super::super::theme::Role;
use super::frame;
use super::painter::Painter;
use crate::domain::FindingStatus;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
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
    let body = area.body;
    if app.finding_list.rows.is_empty() {
        let text = if total == 0 { "nothing found yet" } else { "nothing passes the filter" };
        painter.draw_text(body.x, body.y, body.width, text, Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Findings);
    let wide = body.width >= 60;
    let place_width = if wide { (body.width * 3 / 10).clamp(22, 44) } else { 0 };
    let kind_width = if wide { 15 } else { 0 };
    for row in 0..body.height {
        let at = app.finding_list.cursor.offset + usize::from(row);
        let Some(index) = app.finding_list.rows.get(at) else { break };
        let finding = app.store.view.finding(*index as usize);
        let status = app.current_status(&finding);
        let (x, y, width) = (body.x, body.y + row, body.width);
        if at == app.finding_list.cursor.selected {
            painter.fill(Rect::new(x, y, width, 1), bar);
            painter.set_overlay_style(Some(bar));
        }
        let decided = !status.is_undecided();
        let quiet = |role| if decided { Role::Dismissed } else { role };
        if app.is_marked(at, finding.id) {
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
        if wide {
            painter.draw_text(left, y, kind_width - 1, finding.kind.label(), quiet(Role::Muted));
            left += kind_width;
            let place = format_location(finding.path, finding.line_start);
            painter.draw_text_end(left, y, place_width - 2, &place, quiet(Role::Accent));
            left += place_width;
        }
        let role = match status {
            FindingStatus::Open | FindingStatus::Unresolved => Role::Normal,
            _ => Role::Dismissed,
        };
        painter.draw_text(left, y, (x + width).saturating_sub(left), finding.title, role);
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, app.finding_list.cursor.offset, app.finding_list.rows.len());
}

fn format_location(path: &str, line: u32) -> String {
    format!("{path}:{line}")
}
