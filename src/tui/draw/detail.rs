//! Draws the detail pane: tabs and the visible lines of the page.

use ratatui::layout::Rect;

use super::super::app::{App, Pane};
use super::super::bars;
use super::super::diff;
use super::super::doc::{self, DocLine};
use super::super::filter;
use super::super::layout::PaneArea;
use super::super::message::{DetailSubject, Tab};
use super::super::pages::{format_brief, format_dollars};
use super::super::theme::Role;
use super::super::update;
use super::super::views::prompt::PromptView;
use super::frame;
use super::painter::Painter;
use crate::policy::Freshness;
use crate::report::activity::ActivityState;
use crate::tui::doc::TextColumns;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    draw_tabs(painter, area.title);
    draw_body(painter, area.body);
}

/// Draws the activity of the run and the visible lines of the page.
pub fn draw_body(painter: &mut Painter<'_>, mut body: Rect) {
    let app = painter.app;
    let head = app.status_rows(body.height);
    draw_activity(painter, Rect { height: head.min(body.height), ..body });
    (body.y, body.height) = (body.y + head, body.height - head);
    if diff::is_shown(app) {
        return diff::draw(painter, body);
    }
    if app.detail.doc.lines.is_empty() {
        if app.detail.loading.is_some() && app.detail.page.is_none() {
            painter.draw_text(body.x, body.y, body.width, "loading", Role::Faint);
        }
        return;
    }
    let wanted = if app.panes.focus == Pane::Detail || app.views.front_as::<PromptView>().is_some() {
        app.search.to_lowercase()
    } else {
        String::new()
    };
    let chosen = update::chosen_fold(app).filter(|_| app.panes.focus == Pane::Detail);
    let chosen = chosen.and_then(|at| app.detail.doc.folds.get(at)).map(|fold| fold.line);
    for row in 0..body.height {
        let at = app.detail.scroll + usize::from(row);
        let Some(line) = app.detail.doc.lines.get(at) else { break };
        if chosen == Some(at) {
            let bar = frame::pane_selection_style(painter, Pane::Detail);
            painter.fill(Rect::new(body.x, body.y + row, body.width, 1), bar);
            painter.set_overlay_style(Some(bar));
        }
        draw_line(painter, body.x, body.y + row, body.width, line, &wanted);
    }
    painter.draw_scroll_thumb(body, app.detail.scroll, app.detail.doc.lines.len());
}

/// Draws the activity of the run, its usage so far, and the end of the model's output.
fn draw_activity(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let Some((run, live)) = app.subject_run().and_then(|run| Some((run, app.run_activity(&run)?))) else { return };
    if area.height < 2 {
        return;
    }
    let role = Role::from_activity(live.state);
    let pulse = app.pulse(run.id);
    let mut right = area.right();
    if let Some(pulse) = pulse.filter(|pulse| pulse.tokens.total() > 0) {
        let tokens = format!("{} tokens", format_brief(pulse.tokens.total()));
        let dollars = format_dollars(pulse.cost);
        let forms = match pulse.cost > 0.0 {
            true => vec![format!("{dollars} {} {tokens}", app.display.glyphs.dot), dollars],
            false => vec![tokens],
        };
        let room = usize::from(area.width).saturating_sub(live.text.width() + 4);
        if let Some(spent) = forms.into_iter().find(|spent| spent.width() <= room) {
            right -= painter.draw_text_right(area.x, area.y, area.width, &spent, Role::Muted) + 2;
        }
    }
    painter.draw_text(area.x, area.y, 1, app.display.glyphs.activity(live.state), role);
    let room = right.saturating_sub(area.x + 2);
    let text = doc::shorten(&live.text, usize::from(room), app.display.glyphs.ellipsis);
    painter.draw_text(area.x + 2, area.y, room, &text, role);
    if let Some(pulse) = pulse.filter(|_| live.state != ActivityState::Paused) {
        let room = area.width - 2;
        let said = doc::shorten_start(&pulse.tail, usize::from(room), app.display.glyphs.ellipsis);
        painter.draw_text(area.x + 2, area.y + 1, room, &said, Role::Faint);
    }
}

fn draw_tabs(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let focused = app.panes.focus == Pane::Detail;
    let mut x = area.x;
    for placed in bars::place_tabs(app, area.x, area.width) {
        let role = match (placed.tab == app.detail.tab, focused) {
            (true, true) => Role::Title,
            (true, false) => Role::Strong,
            (false, _) => Role::Faint,
        };
        let room = area.right().saturating_sub(placed.x);
        x = placed.x + painter.draw_text(placed.x, area.y, room, placed.name, role) + 1;
    }
    if app.detail.revealed.is_some() {
        x += 1 + painter.draw_text(x + 1, area.y, area.right().saturating_sub(x + 1), "secrets shown", Role::Warn) + 1;
    }
    if diff::is_shown(app) && app.detail.diff.options().ignores_space {
        x += 1
            + painter.draw_text(x + 1, area.y, area.right().saturating_sub(x + 1), "white space ignored", Role::Muted)
            + 1;
    }
    if diff::is_shown(app) && diff::is_outdated(app) {
        let room = usize::from(area.right().saturating_sub(x + 1));
        let texts = [Freshness::Obsolete.describe(), Freshness::Obsolete.word()];
        if let Some(text) = texts.into_iter().find(|text| text.width() <= room) {
            x += 1 + painter.draw_text(x + 1, area.y, room as u16, text, Role::from_freshness(Freshness::Obsolete)) + 1;
        }
    }
    if x < area.right() {
        painter.draw_rule(x, area.y, area.right() - x, if focused { Role::Focus } else { Role::Rule });
    }
}

/// Returns the name of a tab for the selected item.
pub fn tab_name(app: &App, tab: Tab) -> &'static str {
    match (tab, &app.detail.subject) {
        (Tab::Page, DetailSubject::Run(_)) => "Run",
        (Tab::Page, DetailSubject::File { .. }) => "File",
        (Tab::Page, DetailSubject::Finding(_) | DetailSubject::Nothing) => "Finding",
        (Tab::Turns, _) => "Turns",
        (Tab::Context, _) => "Context",
        (Tab::Fix, _) => "Fix",
        (Tab::Diff, _) => "Diff",
        (Tab::Log, _) => "Log",
        (Tab::Ledger, _) => "Ledger",
    }
}

/// Draws a line of a page and highlights `wanted` (lower case).
pub fn draw_line(painter: &mut Painter<'_>, x: u16, y: u16, width: u16, line: &DocLine, wanted: &str) {
    let mut right = x + width;
    if let Some(role) = line.fill {
        let style = painter.style(role);
        let behind = ratatui::style::Style { fg: None, add_modifier: Default::default(), ..style };
        painter.fill(Rect::new(x, y, width, 1), behind);
        painter.set_overlay_style(Some(behind));
    }
    if let Some(tail) = &line.tail {
        let used = (tail.text.width() as u16).min(width / 2);
        painter.draw_text_right(x, y, width, &tail.text, tail.role);
        right = right.saturating_sub(used + 2);
    }
    let mut at = x;
    for (index, piece) in line.spans.iter().enumerate() {
        if at >= right {
            break;
        }
        // A span that ends exactly at the edge still gets an ellipsis if another span follows.
        let more = line.spans[index + 1..].iter().any(|piece| !piece.text.is_empty());
        let room = right - at;
        if more && piece.text.width() as u16 >= room {
            let cut = format!(
                "{}{}",
                super::super::doc::fit_start(&piece.text, usize::from(room - 1)).0,
                painter.app.display.glyphs.ellipsis
            );
            painter.draw_styled_text(at, y, room, &cut, painter.style(piece.role));
            break;
        }
        at += painter.draw_styled_text(at, y, room, &piece.text, painter.style(piece.role));
    }
    painter.set_overlay_style(None);
    if !wanted.is_empty() && filter::contains_ignore_case(&line.plain_text(), wanted) {
        let style = painter.style(Role::Match);
        let plain = line.plain_text();
        let lower = plain.to_lowercase();
        if lower.len() == plain.len()
            && let Some(start) = lower.find(wanted)
            && plain.is_char_boundary(start)
            && plain.is_char_boundary(start + wanted.len())
        {
            let from = plain[..start].width() as u16;
            let length = plain[start..start + wanted.len()].width() as u16;
            let area = Rect::new(x + from, y, length, 1).intersection(Rect::new(x, y, width, 1));
            painter.restyle(area, style);
        }
    }
}
