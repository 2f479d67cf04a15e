//! The detail: a line of tabs and the lines of the page that are on screen.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::super::app::{Overlay, Pane};
use super::super::doc::{self, Line};
use super::super::filter;
use super::super::layout::PaneArea;
use super::super::live::Mode;
use super::super::message::{Subject, Tab};
use super::super::pages::{brief, dollars};
use super::super::theme::Role;
use super::super::update;
use super::frame;
use super::paint::Painter;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    tabs(painter, area.title);
    let app = painter.app;
    let mut body = area.body;
    let head = app.head_rows(body.height);
    live(painter, Rect { height: head.min(body.height), ..body });
    (body.y, body.height) = (body.y + head, body.height - head);
    if app.doc.lines.is_empty() {
        if app.loading.is_some() && app.detail.is_none() {
            painter.put(body.x, body.y, body.width, "loading", Role::Faint);
        }
        return;
    }
    let wanted = if app.focus == Pane::Detail || matches!(app.overlay, Overlay::Prompt(_)) {
        app.search.to_lowercase()
    } else {
        String::new()
    };
    let chosen = update::chosen_fold(app).filter(|_| app.focus == Pane::Detail);
    let chosen = chosen.and_then(|at| app.doc.folds.get(at)).map(|fold| fold.line);
    for row in 0..body.height {
        let at = app.scroll + usize::from(row);
        let Some(line) = app.doc.lines.get(at) else { break };
        if chosen == Some(at) {
            let bar = frame::bar(painter, Pane::Detail);
            painter.fill(Rect::new(body.x, body.y + row, body.width, 1), bar);
            painter.over(Some(bar));
        }
        draw_line(painter, body.x, body.y + row, body.width, line, &wanted);
    }
    painter.thumb(body, app.scroll, app.doc.lines.len());
}

/// What the run does this moment, what it has cost so far, and the end of what the model says.
fn live(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let Some((run, live)) = app.subject_run().and_then(|run| Some((run, app.live(&run)?))) else { return };
    if area.height < 2 {
        return;
    }
    let role = Role::of_live(live.mode);
    let pulse = app.pulse(run.id);
    let mut right = area.right();
    if let Some(pulse) = pulse.filter(|pulse| pulse.tokens.total() > 0) {
        let mut spent = format!("{} tokens", brief(pulse.tokens.total()));
        if pulse.cost > 0.0 {
            spent = format!("{} {} {spent}", dollars(pulse.cost), app.glyphs.dot);
        }
        if usize::from(area.width) >= live.text.width() + spent.width() + 4 {
            right -= painter.put_right(area.x, area.y, area.width, &spent, Role::Muted) + 2;
        }
    }
    painter.put(area.x, area.y, 1, app.glyphs.live(live.mode), role);
    let room = right.saturating_sub(area.x + 2);
    let text = doc::shorten(&live.text, usize::from(room), app.glyphs.ellipsis);
    painter.put(area.x + 2, area.y, room, &text, role);
    if let Some(pulse) = pulse.filter(|_| live.mode != Mode::Paused) {
        let room = area.width - 2;
        let said = doc::last_words(&pulse.tail, usize::from(room), app.glyphs.ellipsis);
        painter.put(area.x + 2, area.y + 1, room, &said, Role::Faint);
    }
}

fn tabs(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let focused = app.focus == Pane::Detail;
    let page = match &app.subject {
        Subject::Run(_) => "Run",
        Subject::File { .. } => "File",
        Subject::Finding(_) | Subject::Nothing => "Finding",
    };
    let name = |tab: Tab| match tab {
        Tab::Page => page,
        Tab::Turns => "Turns",
        Tab::Context => "Context",
        Tab::Fix => "Fix",
        Tab::Diff => "Diff",
        Tab::Log => "Log",
        Tab::Ledger => "Ledger",
    };
    // Closer together where they would not all be there.
    let names: usize = app.tabs().iter().map(|tab| name(*tab).len() + 3).sum();
    let gap = if names <= usize::from(area.width) + 3 { 3 } else { 2 };
    let mut x = area.x;
    for tab in app.tabs() {
        let role = match (*tab == app.tab, focused) {
            (true, true) => Role::Title,
            (true, false) => Role::Strong,
            (false, _) => Role::Faint,
        };
        x += painter.put(x, area.y, area.right().saturating_sub(x), name(*tab), role) + gap;
    }
    x = x.saturating_sub(gap - 1);
    if x < area.right() {
        painter.rule(x, area.y, area.right() - x, if focused { Role::Focus } else { Role::Rule });
    }
}

/// Draws a line of a page; `wanted`, in lower case, is made to stand out.
pub(super) fn draw_line(painter: &mut Painter<'_>, x: u16, y: u16, width: u16, line: &Line, wanted: &str) {
    let mut right = x + width;
    if let Some(role) = line.fill {
        let style = painter.style(role);
        let behind = ratatui::style::Style { fg: None, add_modifier: Default::default(), ..style };
        painter.fill(Rect::new(x, y, width, 1), behind);
        painter.over(Some(behind));
    }
    if let Some(tail) = &line.tail {
        let used = (tail.text.width() as u16).min(width / 2);
        painter.put_right(x, y, width, &tail.text, tail.role);
        right = right.saturating_sub(used + 2);
    }
    let mut at = x;
    for (index, piece) in line.pieces.iter().enumerate() {
        if at >= right {
            break;
        }
        // A piece that ends exactly at the edge while another follows must still say that there is more.
        let more = line.pieces[index + 1..].iter().any(|piece| !piece.text.is_empty());
        let room = right - at;
        if more && piece.text.width() as u16 >= room {
            let cut = format!(
                "{}{}",
                super::super::doc::head(&piece.text, usize::from(room - 1)).0,
                painter.app.glyphs.ellipsis
            );
            painter.put(at, y, room, &cut, piece.role);
            break;
        }
        at += painter.put(at, y, room, &piece.text, piece.role);
    }
    painter.over(None);
    if !wanted.is_empty() && filter::holds(&line.plain(), wanted) {
        let style = painter.style(Role::Match);
        let plain = line.plain();
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
