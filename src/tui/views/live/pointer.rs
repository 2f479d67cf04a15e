//! Finds what stands under the pointer: a turn of the scrub bar; a file of the map, of the diff or of the list.

use ratatui::layout::Position;

use super::LiveView;
use super::draw::compute_areas;
use super::head::{MAP_TITLE, map_steps};
use crate::tui::app::App;
use crate::tui::diff::DiffPageRow;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{DocLine, DocSpan};

/// Part of the view that a click means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LivePlace {
    /// Number of a turn.
    Turn(u32),
    PreviousTurn,
    NextTurn,
    /// Cell of the map: the first of its files, by its path in the form of [`super::path_key`].
    MapCell(String),
    /// Name of a file, in the same form.
    File(String),
}

/// Returns the turn or the file at a cell of the screen.
pub fn place_at(app: &App, view: &LiveView, cell: Position) -> Option<LivePlace> {
    let (areas, rows) = compute_areas(app, view, &app.layout());
    if areas.head.contains(cell) {
        let line = rows.get(usize::from(cell.y - areas.head.y))?;
        let (column, scrub) = (usize::from(cell.x - areas.head.x), app.display.glyphs.scrub);
        return match line.spans.first()?.text.as_str() {
            first if first == scrub.0 => find_turn(line, column, scrub),
            MAP_TITLE => find_mapped_file(view, line, column),
            _ => None,
        };
    }
    if !areas.body.contains(cell) {
        return None;
    }
    let row = usize::from(cell.y - areas.body.y);
    if view.diff.page().files.is_empty() {
        let notes = usize::from(view.diff.page().note.is_some());
        let file = (view.list_top + row).checked_sub(notes)?;
        return view.moment.files.keys().nth(file).cloned().map(LivePlace::File);
    }
    let placed = view.diff.row(view.diff.top() + row)?;
    // The header of the file at the top stays on the screen.
    let is_header = row == 0 || placed.row == DiffPageRow::Header;
    view.paths.get(placed.file).filter(|_| is_header).cloned().map(LivePlace::File)
}

/// Returns the turn at a column of the scrub bar: `◂ 1 2 [3] 4… ▸`.
fn find_turn(line: &DocLine, column: usize, scrub: (&str, &str)) -> Option<LivePlace> {
    let mut end = 0;
    let is_here = |span: &&DocSpan| {
        end += span.text.width();
        column < end
    };
    match line.spans.iter().find(is_here)?.text.as_str() {
        text if text == scrub.0 => Some(LivePlace::PreviousTurn),
        text if text == scrub.1 => Some(LivePlace::NextTurn),
        text => text.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok().map(LivePlace::Turn),
    }
}

/// Returns the first of the files for which a cell of the map stands.
fn find_mapped_file(view: &LiveView, line: &DocLine, column: usize) -> Option<LivePlace> {
    let cells = line.spans.iter().skip(1).take_while(|span| !span.text.trim().is_empty());
    let cells: usize = cells.map(|span| span.text.width()).sum();
    let cell = column.checked_sub(MAP_TITLE.width()).filter(|cell| *cell < cells)?;
    let changed: Vec<&String> =
        view.moment.files.iter().filter(|(_, file)| file.is_changed).map(|(path, _)| path).collect();
    let step = map_steps(changed.len()).find(|step| changed.len().div_ceil(*step) == cells)?;
    changed.get(cell * step).map(|path| LivePlace::MapCell((*path).clone()))
}
