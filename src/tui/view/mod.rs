//! Draws the state; one file per pane.
//!
//! - Only visible rows are touched, so drawing costs the same for ten findings and for a hundred thousand.

mod detail;
mod files;
mod findings;
mod frame;
mod knowledge;
mod overlay;
pub mod painter;
mod runs;
mod stats;

use ratatui::buffer::Buffer;

use super::app::{App, Overlay, Pane};
use super::layout::ScreenLayout;
use painter::Painter;

/// Draws the whole screen.
pub fn draw(app: &App, buffer: &mut Buffer) {
    let layout = app.layout();
    let mut painter = Painter::new(app, buffer);
    if layout.too_small {
        return frame::draw_too_small(&mut painter);
    }
    frame::draw_header(&mut painter, &layout);
    match &app.knowledge {
        Some(view) => knowledge::draw(&mut painter, view),
        None => draw_panes(&mut painter, &layout),
    }
    frame::draw_notice(&mut painter, &layout);
    frame::draw_footer(&mut painter, layout.footer);
    match &app.overlay {
        Overlay::None => {}
        Overlay::Help { offset } => overlay::draw_help(&mut painter, *offset),
        Overlay::Stats(page) => stats::draw(&mut painter, &layout, page),
        Overlay::Menu(menu) => overlay::draw_menu(&mut painter, menu),
        Overlay::Confirm { question, text } => overlay::draw_confirm(&mut painter, question, text),
        Overlay::Prompt(prompt) => overlay::draw_prompt(&mut painter, prompt, &layout),
    }
}

fn draw_panes(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    if let Some(area) = layout.divider {
        frame::draw_divider(painter, area);
    }
    if let Some(area) = layout.pane(Pane::Runs) {
        runs::draw(painter, area);
    }
    if let Some(area) = layout.pane(Pane::Findings) {
        findings::draw(painter, area);
    }
    if let Some(area) = layout.pane(Pane::Files) {
        files::draw(painter, area);
    }
    if let Some(area) = layout.pane(Pane::Detail) {
        detail::draw(painter, area);
    }
}
