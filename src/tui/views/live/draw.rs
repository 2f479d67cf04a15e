//! Draws the Live view: the head, and below it the diff or, where there is none, the files with their lines.

use ratatui::layout::Rect;

use super::trace::{FileMoment, FileReading};
use super::{LiveView, head};
use crate::domain::{LineRange, text};
use crate::tui::app::App;
use crate::tui::diff::{self, DiffEmphasis};
use crate::tui::doc::{Doc, DocLine};
use crate::tui::draw::draw_line;
use crate::tui::draw::painter::Painter;
use crate::tui::layout::ScreenLayout;
use crate::tui::theme::Role;

/// Columns of space at both edges of the screen.
pub const MARGIN: u16 = 1;
/// Most ranges of lines in a row of the list of files.
const MAX_LISTED_RANGES: usize = 12;

/// Rectangles of the view.
pub struct LiveAreas {
    pub head: Rect,
    /// Row of the rule below the head.
    rule: u16,
    pub body: Rect,
}

/// Returns the rectangles for a layout, and the rows of the head. Half of the rows at most are those of the head.
pub fn compute_areas(app: &App, view: &LiveView, layout: &ScreenLayout) -> (LiveAreas, Vec<DocLine>) {
    let top = layout.header.bottom();
    let height = layout.notice.y.saturating_sub(top);
    let width = layout.header.width.saturating_sub(2 * MARGIN);
    let rows = head::build_head(app, view, usize::from(width), usize::from(height / 2).max(1));
    let rule = (top + rows.len() as u16).min(layout.notice.y);
    let body = Rect::new(MARGIN, rule + 1, width.saturating_sub(MARGIN), layout.notice.y.saturating_sub(rule + 1));
    (LiveAreas { head: Rect::new(MARGIN, top, width, rows.len() as u16), rule, body }, rows)
}

/// Returns the columns of the diff beside its margin, and its rows.
pub fn diff_size(app: &App, view: &LiveView) -> (usize, usize) {
    let (areas, _) = compute_areas(app, view, &app.layout());
    (usize::from(areas.body.width.saturating_sub(DiffEmphasis::MARGIN)), usize::from(areas.body.height).max(1))
}

/// Returns the rows of the diff, or of the list of files.
pub fn body_height(app: &App, view: &LiveView) -> usize {
    diff_size(app, view).1
}

/// Draws the view between the header and the message line.
pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, view: &LiveView) {
    let app = painter.app;
    let (areas, rows) = compute_areas(app, view, layout);
    let top = layout.header.bottom();
    let whole = Rect::new(0, top, layout.header.width, layout.notice.y.saturating_sub(top));
    painter.fill(whole, painter.style(Role::Normal));
    for (y, row) in (areas.head.y..areas.head.bottom().min(layout.notice.y)).zip(&rows) {
        draw_line(painter, areas.head.x, y, areas.head.width, row, "");
    }
    if areas.rule < layout.notice.y {
        painter.draw_rule(areas.head.x, areas.rule, areas.head.width, Role::Rule);
    }
    if view.diff.page().files.is_empty() {
        for (y, line) in (areas.body.y..areas.body.bottom()).zip(view.list.lines.iter().skip(view.list_top)) {
            draw_line(painter, areas.body.x, y, areas.body.width, line, "");
        }
        painter.draw_scroll_thumb(areas.body, view.list_top, view.list.lines.len());
        return;
    }
    let glyphs = &app.display.glyphs;
    let file_sign = |file: usize| {
        let reading = view.file_moment(file).map_or(FileReading::Unread, FileMoment::reading);
        (glyphs.sign_or_word(glyphs.file_reading(reading), reading.name()), Role::from_file_reading(reading))
    };
    let emphasis = DiffEmphasis {
        tone: &|placed| view.tone(placed),
        is_marked: &|finding| view.is_marked(finding),
        file_sign: &file_sign,
    };
    diff::draw_with_emphasis(painter, areas.body, &view.diff, &emphasis);
}

/// Lists the files with the lines that were read, for a run without a diff.
pub fn build_file_list(app: &App, view: &LiveView) -> Doc {
    let mut doc = Doc::default();
    if !view.diff.page().files.is_empty() {
        return doc;
    }
    if let Some(note) = &view.diff.page().note {
        doc.push(DocLine::styled(Role::Muted, note));
    }
    let glyphs = &app.display.glyphs;
    for (path, file) in &view.moment.files {
        let reading = file.reading();
        let role = match reading {
            FileReading::Now => Role::Strong,
            FileReading::Before | FileReading::Carried => Role::Normal,
            FileReading::LeftOut | FileReading::Unread => Role::Faint,
        };
        let (now, before) = file.ranges();
        let sign = glyphs.sign_or_word(glyphs.file_reading(reading), reading.name());
        let mut line = DocLine::styled(Role::from_file_reading(reading), sign).with_span(role, &format!(" {path}"));
        if reading == FileReading::LeftOut && !glyphs.uses_words() {
            line = line.with_span(Role::Faint, "  left out");
        }
        if !now.is_empty() {
            line = line.with_span(Role::Accent, &format!("  {}", format_ranges(&now)));
        }
        if !before.is_empty() {
            line = line.with_span(Role::Muted, &format!("  {}", format_ranges(&before)));
        }
        doc.push(line);
    }
    doc
}

/// Formats ranges of lines: `1-40, 60-88`, or `all` if one of them is the whole file.
fn format_ranges(ranges: &[LineRange]) -> String {
    let format = |range: &LineRange| match (range.start.max(1), range.end) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start}-{end}"),
    };
    if ranges.iter().any(|range| range.end == u32::MAX) {
        return "all".to_owned();
    }
    let mut listed: Vec<String> = ranges.iter().take(MAX_LISTED_RANGES).map(format).collect();
    if let Some(more) = ranges.len().checked_sub(MAX_LISTED_RANGES).filter(|more| *more > 0) {
        listed.push(format!("{} more", text::format_thousands(more as u64)));
    }
    listed.join(", ")
}
