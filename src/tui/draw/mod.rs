//! Draws the screen: header, panes, message line and footer; one file per pane. Views draw themselves.
//!
//! - Only visible rows are touched, so drawing costs the same for ten findings and for a hundred thousand.

mod detail;
mod files;
mod findings;
mod frame;
mod header;
mod hints;
pub(crate) mod painter;
mod plain;
mod runs;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::app::{App, Pane};
use super::layout::{PaneArea, ScreenLayout};
pub(crate) use detail::{draw_line, tab_name};
pub(crate) use frame::{footer_actions, footer_end, selection_style, window_overlay_style};
pub(crate) use hints::key_at as hinted_key_at;
use painter::Painter;
pub(crate) use plain::{row_at as plain_row_at, rows_on_page as plain_rows_on_page};

/// Draws the whole screen. Returns the cell of the cursor if the terminal is to show it, as a screen reader needs it.
pub fn draw(app: &App, buffer: &mut Buffer) -> Option<Position> {
    let cursor = draw_contents(app, buffer);
    if let Some(canvas) = app.display.themes.canvas() {
        canvas.paint(buffer);
    }
    cursor
}

/// Returns the list with the focus and its area; `None` if another part of the screen has the keys, or stands in front.
pub fn find_focused_list(app: &App) -> Option<(Pane, Rect)> {
    let layout = app.layout();
    let is_list = app.panes.focus != Pane::Detail && !app.display.plain && !layout.too_small;
    let is_in_front = app.views.is_empty() && app.sequence_hints().is_empty();
    // A canvas paints all of the screen.
    if !is_list || !is_in_front || app.display.themes.canvas().is_some() {
        return None;
    }
    let area = layout.pane(app.panes.focus)?;
    Some((app.panes.focus, area.title.union(area.body)))
}

/// Draws only a list: what a key changes first.
pub fn draw_list(app: &App, pane: Pane, buffer: &mut Buffer) {
    let layout = app.layout();
    if let Some(area) = layout.pane(pane) {
        draw_pane(&mut Painter::new(app, buffer), pane, area);
    }
}

fn draw_contents(app: &App, buffer: &mut Buffer) -> Option<Position> {
    let layout = app.layout();
    let mut painter = Painter::new(app, buffer);
    if layout.too_small {
        frame::draw_too_small(&mut painter);
        return None;
    }
    if app.display.plain {
        plain::draw_screen(&mut painter, &layout);
        return Some(plain::find_cursor(app, &layout, buffer));
    }
    header::draw_header(&mut painter, &layout);
    if app.views.covers_panes() {
        app.views.draw(&mut painter, &layout, false);
    } else {
        draw_panes(&mut painter, &layout);
    }
    let hints = app.sequence_hints();
    if hints.len() < 2 {
        frame::draw_notice(&mut painter, &layout);
    }
    if hints.is_empty() {
        frame::draw_footer(&mut painter, layout.footer);
    } else {
        hints::draw(&mut painter, &layout, &hints);
    }
    app.views.draw(&mut painter, &layout, true);
    None
}

fn draw_panes(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    if let Some(area) = layout.divider {
        frame::draw_divider(painter, area);
    }
    for (pane, area) in Pane::ALL.into_iter().filter_map(|pane| Some((pane, layout.pane(pane)?))) {
        draw_pane(painter, pane, area);
    }
}

fn draw_pane(painter: &mut Painter<'_>, pane: Pane, area: PaneArea) {
    match pane {
        Pane::Runs => runs::draw(painter, area),
        Pane::Findings => findings::draw(painter, area),
        Pane::Files => files::draw(painter, area),
        Pane::Detail => detail::draw(painter, area),
    }
}
