//! Draws the list of runs: status, scope, reviewer, time, findings by priority, tokens.

use ratatui::layout::Rect;

use super::super::app::{App, Pane, RunEntry};
use super::super::layout::PaneArea;
use super::super::theme::Role;
use super::frame;
use super::painter::Painter;
use crate::domain::{Priority, RunStatus};
use crate::policy::Freshness;
use crate::store::RunRow;

/// Column heading for [`draw_counts`].
pub const COUNTS_HEADER: &str = "p0  p1  p2  p3";

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    if app.run_list.entries.is_empty() {
        painter.draw_text(body.x, body.y, body.width, "no review yet", Role::Faint);
        return;
    }
    let bar = frame::pane_selection_style(painter, Pane::Runs);
    let cursor = app.run_list.cursor;
    let visible = app.run_list.entries.iter().skip(cursor.offset).take(usize::from(body.height));
    let rows: Vec<VisibleRun<'_>> = visible.map(|entry| VisibleRun::from_entry(app, entry)).collect();
    let columns = OptionalColumns {
        tokens: rows.iter().any(|row| row.run.tokens > 0),
        freshness_sign: rows.iter().any(|row| row.freshness != Freshness::Current),
    };
    for ((at, row), y) in rows.iter().enumerate().zip(body.y..) {
        let line = Rect::new(body.x, y, body.width, 1);
        if cursor.offset + at == cursor.selected {
            painter.fill(line, bar);
            painter.set_overlay_style(Some(bar));
        }
        draw_run(painter, row, line, columns);
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(body, cursor.offset, app.run_list.entries.len());
}

/// Run in a visible row, with its freshness at the time of the frame.
struct VisibleRun<'a> {
    entry: &'a RunEntry,
    run: RunRow<'a>,
    freshness: Freshness,
}

impl<'a> VisibleRun<'a> {
    fn from_entry(app: &'a App, entry: &'a RunEntry) -> Self {
        let run = app.store.view.run(entry.index as usize);
        let freshness = app.run_freshness(&run);
        Self { entry, run, freshness }
    }
}

/// Columns that are drawn only if a visible run has something for them.
#[derive(Debug, Clone, Copy)]
struct OptionalColumns {
    tokens: bool,
    /// A sign instead of the word, where the word does not fit.
    freshness_sign: bool,
}

/// Width of the longest freshness word with a gap.
const FRESHNESS_WIDTH: u16 = 13;
/// Columns that the freshness leaves for the scope at least: `worktree` with the number of folded runs.
const MIN_SCOPE_WIDTH: u16 = 13;

/// Draws the title with the number of rows, and of all runs if some are folded away; `+` says that the store has more.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let total = app.store.view.run_count();
    let mut facts = Vec::new();
    if total > 0 {
        let more = if app.store.view.complete { "" } else { "+" };
        let shown = app.run_list.entries.len();
        let count = if shown == total { format!("{total}{more}") } else { format!("{shown} of {total}{more}") };
        facts.push((count, Role::Muted));
    }
    let columns = if app.run_list.entries.is_empty() { "" } else { COUNTS_HEADER };
    frame::draw_title(painter, area, Pane::Runs, "Runs", &facts, columns);
}

/// Draws a run in `line`, which is one row high.
fn draw_run(painter: &mut Painter<'_>, row: &VisibleRun<'_>, line: Rect, columns: OptionalColumns) {
    let app = painter.app;
    let VisibleRun { entry, run, freshness } = row;
    let (sign, word, role) = app.run_state(run);
    let mut left = line.x;
    if entry.nested {
        painter.draw_text(left, line.y, 1, app.display.glyphs.nested, Role::Faint);
        left += 2;
    }
    painter.draw_text(left, line.y, 1, sign, role);
    left += 2;
    let mut rest = Rect::new(left, line.y, line.right().saturating_sub(left), 1);
    draw_columns(painter, run, &mut rest, columns.tokens);
    if rest.width >= 24 {
        painter.draw_text(rest.x, rest.y, 11, word, role);
        rest = Rect::new(rest.x + 12, rest.y, rest.width - 12, 1);
    }
    draw_freshness(painter, *freshness, &mut rest, columns.freshness_sign);
    draw_scope(painter, entry, run, rest);
}

/// Draws the freshness as a word, or as a sign if there is no room for the word. Takes the drawn columns off `rest`.
fn draw_freshness(painter: &mut Painter<'_>, freshness: Freshness, rest: &mut Rect, sign: bool) {
    let role = Role::from_freshness(freshness);
    let width = match rest.width >= FRESHNESS_WIDTH + MIN_SCOPE_WIDTH {
        true => {
            painter.draw_text(rest.x, rest.y, FRESHNESS_WIDTH - 1, freshness.word(), role);
            FRESHNESS_WIDTH
        }
        false if sign && rest.width > MIN_SCOPE_WIDTH / 2 => {
            painter.draw_text(rest.x, rest.y, 1, painter.app.display.glyphs.freshness(freshness), role);
            2
        }
        false => 0,
    };
    *rest = Rect::new(rest.x + width, rest.y, rest.width - width, 1);
}

/// Draws the columns from the right edge: counts, tokens, time, reviewer. A column that does not fit is dropped. Takes
/// the drawn columns off `rest`.
fn draw_columns(painter: &mut Painter<'_>, run: &RunRow<'_>, rest: &mut Rect, has_tokens: bool) {
    let app = painter.app;
    let y = rest.y;
    if let Some(x) = take_column(rest, 16, 10) {
        draw_counts(painter, x, y, run.counts, run.status);
    }
    if has_tokens && let Some(x) = take_column(rest, 7, 26) {
        let tokens = match run.tokens {
            0 => app.display.glyphs.dash.to_owned(),
            n @ 1..=9999 => n.to_string(),
            n => format!("{}k", n / 1000),
        };
        painter.draw_text_right(x, y, 6, &tokens, Role::Muted);
    }
    if let Some(x) = take_column(rest, 8, 18) {
        painter.draw_text_right(x, y, 7, &app.format_date_or_time(run.created_ms), Role::Muted);
    }
    if let Some(x) = take_column(rest, 10, 28) {
        painter.draw_text(x, y, 9, run.reviewer, Role::Muted);
    }
}

/// Takes a column of `width` off the right end and returns where it begins; `None` if fewer than `least` columns would
/// be left for the scope.
fn take_column(rest: &mut Rect, width: u16, least: u16) -> Option<u16> {
    if rest.width < width + least {
        return None;
    }
    rest.width -= width;
    Some(rest.right())
}

/// Draws the scope, and at the right end the fold sign with the number of folded runs.
fn draw_scope(painter: &mut Painter<'_>, entry: &RunEntry, run: &RunRow<'_>, area: Rect) {
    let glyphs = painter.app.display.glyphs;
    let mut width = area.width.saturating_sub(1);
    let folded = match (entry.folded, entry.unfolded) {
        (0, false) => String::new(),
        (0, true) => glyphs.unfolded.to_owned(),
        (n, _) => format!("{}{n}", glyphs.folded),
    };
    if !folded.is_empty() && width > 8 {
        let used = painter.draw_text_right(area.x, area.y, width, &folded, Role::Faint);
        width -= used + 1;
    }
    let scope = if run.is_fix_review() { "patch of a fix" } else { run.scope };
    painter.draw_text(area.x, area.y, width, scope, if entry.nested { Role::Muted } else { Role::Normal });
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
