//! Draws the list of runs: status, scope, reviewer, time, findings by priority, tokens.

use ratatui::layout::Rect;

use super::super::app::Pane;
use super::super::layout::PaneArea;
use super::super::theme::Role;
use super::frame;
use super::painter::Painter;
use crate::domain::Priority;
use crate::domain::RunStatus;

/// Column heading for [`draw_counts`].
pub const COUNTS_HEADER: &str = "p0  p1  p2  p3";

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let total = app.store.view.run_count();
    let mut facts = Vec::new();
    if total > 0 {
        let more = if app.store.view.complete { "" } else { "+" };
        facts.push((format!("{total}{more}"), Role::Muted));
    }
    frame::draw_title(
        painter,
        area,
        Pane::Runs,
        "Runs",
        &facts,
        if app.run_list.entries.is_empty() { "" } else { COUNTS_HEADER },
    );
    let body = area.body;
    if app.run_list.entries.is_empty() {
        painter.draw_text(body.x, body.y, body.width, "no review yet", Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Runs);
    // The column is shown only if a visible run used tokens.
    let has_tokens = app
        .run_list
        .entries
        .iter()
        .skip(app.run_list.cursor.offset)
        .take(usize::from(body.height))
        .any(|entry| app.store.view.run(entry.index as usize).tokens > 0);
    for row in 0..body.height {
        let at = app.run_list.cursor.offset + usize::from(row);
        let Some(entry) = app.run_list.entries.get(at).copied() else { break };
        let run = app.store.view.run(entry.index as usize);
        let (x, y, width) = (body.x, body.y + row, body.width);
        if at == app.run_list.cursor.selected {
            painter.fill(Rect::new(x, y, width, 1), bar);
            painter.set_overlay_style(Some(bar));
        }
        let indent = if entry.nested { 2 } else { 0 };
        if entry.nested {
            painter.draw_text(x, y, 1, app.display.glyphs.nested, Role::Faint);
        }
        let (sign, word, role) = app.run_state(&run);
        let mut left = x + indent;
        painter.draw_text(left, y, 1, sign, role);
        left += 2;
        // From the right edge: counts, tokens, time, reviewer. Columns that do not fit are dropped; the scope stays.
        let mut right = x + width;
        let room = |right: u16, need: u16, least: u16| right.saturating_sub(left) >= need + least;
        if room(right, 16, 10) {
            right -= 16;
            draw_counts(painter, right, y, run.counts, run.status);
        }
        if has_tokens && room(right, 7, 26) {
            right -= 7;
            let tokens = match run.tokens {
                0 => app.display.glyphs.dash.to_owned(),
                n @ 1..=9999 => n.to_string(),
                n => format!("{}k", n / 1000),
            };
            painter.draw_text_right(right, y, 6, &tokens, Role::Muted);
        }
        if room(right, 8, 18) {
            right -= 8;
            painter.draw_text_right(right, y, 7, &app.format_date_or_time(run.created_ms), Role::Muted);
        }
        if room(right, 10, 28) {
            right -= 10;
            painter.draw_text(right, y, 9, run.reviewer, Role::Muted);
        }
        if right.saturating_sub(left) >= 24 {
            painter.draw_text(left, y, 11, word, role);
            left += 12;
        }
        let mut scope_width = right.saturating_sub(left + 1);
        let folded = match (entry.folded, entry.unfolded) {
            (0, false) => String::new(),
            (0, true) => app.display.glyphs.unfolded.to_owned(),
            (n, _) => format!("{}{n}", app.display.glyphs.folded),
        };
        if !folded.is_empty() && scope_width > 8 {
            let used = painter.draw_text_right(left, y, scope_width, &folded, Role::Faint);
            scope_width -= used + 1;
        }
        let scope = if run.is_fix_review() { "patch of a fix" } else { run.scope };
        painter.draw_text(left, y, scope_width, scope, if entry.nested { Role::Muted } else { Role::Normal });
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, app.run_list.cursor.offset, app.run_list.entries.len());
}

/// Draws findings by priority, four columns each.
pub fn draw_counts(painter: &mut Painter<'_>, x: u16, y: u16, counts: [u32; 4], status: RunStatus) {
    for priority in Priority::ALL {
        let n = counts[priority.index()];
        let x = x + priority.index() as u16 * 4;
        if n == 0 {
            if status == RunStatus::Completed || counts != [0; 4] {
                painter.draw_text_right(x, y, 4, painter.app.display.glyphs.none, Role::Faint);
            }
        } else {
            let text = if n > 999 { format!("{}k", n / 1000) } else { n.to_string() };
            painter.draw_text_right(x, y, 4, &text, Role::from_priority(priority));
        }
    }
}
