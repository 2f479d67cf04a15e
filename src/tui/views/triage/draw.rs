//! Draws triage mode: counts, place, symbol and title; code beside or above the patch; explanation; keys. On a plain
//! screen, the patch stands below the code: every line has one text.

use std::ops::Range;

use ratatui::layout::{Position, Rect};

use super::TriageView;
use super::queue::VerdictCounts;
use crate::domain::text;
use crate::store::FindingRow;
use crate::tui::app::App;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{Doc, shorten};
use crate::tui::draw::draw_line;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::{ScreenLayout, split_columns};
use crate::tui::pages::priority_label;
use crate::tui::short_title::name_function_around;
use crate::tui::theme::Role;

/// Actions that dismiss with a reason, in the order of their keys.
pub const REASON_ACTIONS: [Action; 5] =
    [Action::Reason1, Action::Reason2, Action::Reason3, Action::Reason4, Action::Reason5];
/// Fewest columns for the reasons in the footer; with fewer they have a row of their own.
const MIN_ONE_ROW_COLUMNS: u16 = 150;
/// Fewest columns for the patch beside the code.
const MIN_BESIDE_COLUMNS: u16 = 100;
/// Columns of space at both edges of the screen.
const MARGIN: u16 = 1;
/// Columns between place, symbol and title.
const HEAD_GAP: usize = 2;
/// Columns between two counts.
const COUNT_GAP: u16 = 3;
/// Fewest rows of code, as far as the screen has them.
const MIN_CODE_ROWS: u16 = 4;

/// Rectangles of triage mode.
struct TriageAreas {
    /// Counts, place, symbol and title.
    head: Rect,
    /// The code, or the closing page.
    code: Rect,
    patch: Option<PatchArea>,
    text: Rect,
    /// Rows of rules across the screen.
    rules: Vec<u16>,
    /// Row with the reasons.
    reasons: Option<Rect>,
}

/// Place of the patch.
enum PatchArea {
    /// Right of the code; the rule between them is in this column.
    Beside(Rect, u16),
    /// Below the code.
    Below(Rect),
}

/// Returns true if the reasons have a row of their own.
pub fn has_reasons_row(app: &App) -> bool {
    app.display.columns < MIN_ONE_ROW_COLUMNS
}

/// Returns the columns of the explanation.
pub fn text_width(app: &App) -> usize {
    usize::from(app.display.columns.saturating_sub(2 * MARGIN + 2)).max(20)
}

/// Returns the rows of the code, or of the closing page.
pub fn code_height(app: &App, view: &TriageView) -> isize {
    isize::try_from(compute_areas(app, view).code.height).unwrap_or(isize::MAX)
}

/// Returns the greatest number of lines by which the view can be scrolled.
pub fn max_scroll(app: &App, view: &TriageView) -> usize {
    let areas = compute_areas(app, view);
    let hidden = |doc: &Doc, area: Rect| doc.lines.len().saturating_sub(usize::from(area.height));
    match view.queue.current() {
        Some(_) => hidden(&view.pages.code, areas.code) + hidden(&view.pages.text, areas.text),
        None => hidden(&view.closing, areas.code),
    }
}

fn compute_areas(app: &App, view: &TriageView) -> TriageAreas {
    let layout = app.layout();
    let (columns, top) = (layout.header.width, layout.header.bottom());
    let (x, width) = (MARGIN, columns.saturating_sub(2 * MARGIN));
    let mut bottom = layout.notice.y;
    let row = |y: u16, height: u16| Rect::new(x, y, width, height);
    let shown = view.queue.current().and_then(|item| app.finding_by_id(&item.finding));
    let Some(finding) = shown else {
        let code = row(top + 2, bottom.saturating_sub(top + 2));
        return TriageAreas {
            head: row(top, 1),
            code,
            patch: None,
            text: row(bottom, 0),
            rules: vec![top + 1],
            reasons: None,
        };
    };
    let mut reasons = None;
    if has_reasons_row(app) {
        bottom = bottom.saturating_sub(1);
        reasons = Some(row(bottom, 1));
    }
    let head = row(top, 1 + if fits_in_a_row(&finding, width) { 1 } else { 2 });
    let body = head.bottom() + 1;
    // A rule below the head and one above the explanation.
    let room = bottom.saturating_sub(body + 1);
    let beside = columns >= MIN_BESIDE_COLUMNS && !app.display.plain;
    let lines = |doc: &Doc| u16::try_from(doc.lines.len()).unwrap_or(u16::MAX);
    let (code_lines, patch_lines) = (lines(&view.pages.code), view.pages.patch.as_ref().map(lines));
    let wanted = match patch_lines {
        Some(patch) if beside => code_lines.max(patch),
        Some(patch) => code_lines.saturating_add(patch).saturating_add(1),
        None => code_lines,
    };
    let text_rows = lines(&view.pages.text).min((room / 3).max(room.saturating_sub(wanted)));
    let text_rows = text_rows.min(room.saturating_sub(MIN_CODE_ROWS));
    let upper = room - text_rows;
    let text = row(body + upper + 1, text_rows);
    let mut rules = vec![head.bottom(), body + upper];
    let mut code = row(body, upper);
    let patch = match patch_lines {
        None => None,
        Some(_) if beside => {
            let columns = split_columns(columns, columns * 58 / 100);
            (code.x, code.width) = columns.left;
            Some(PatchArea::Beside(Rect::new(columns.right.0, body, columns.right.1, upper), columns.divider))
        }
        Some(lines) => {
            let rows = lines
                .min((upper / 2).max(upper.saturating_sub(code_lines.saturating_add(1))))
                .min(upper.saturating_sub(1));
            // A patch without a row would take the row of the code for its title.
            (rows > 0).then(|| {
                code.height = upper.saturating_sub(rows + 1);
                rules.push(code.bottom());
                PatchArea::Below(row(code.bottom() + 1, rows))
            })
        }
    };
    TriageAreas { head, code, patch, text, rules, reasons }
}

fn format_place(finding: &FindingRow<'_>) -> String {
    text::sanitize_line(&format!("{}:{}", finding.path, finding.line_start)).into_owned()
}

/// Returns true if place, symbol and title fit into one row.
fn fits_in_a_row(finding: &FindingRow<'_>, width: u16) -> bool {
    let symbol = text::sanitize_line(name_function_around(finding)).width();
    let before_title = format_place(finding).width() + HEAD_GAP + if symbol > 0 { symbol + HEAD_GAP } else { 0 };
    before_title + text::sanitize_line(finding.title).width() <= usize::from(width)
}

/// Draws triage mode between the header and the message line.
pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, view: &TriageView) {
    let app = painter.app;
    let top = layout.header.bottom();
    let whole = Rect::new(0, top, layout.header.width, layout.notice.y.saturating_sub(top));
    painter.fill(whole, painter.style(Role::Normal));
    let areas = compute_areas(app, view);
    draw_head(painter, view, areas.head);
    let bottom = areas.reasons.map_or(layout.notice.y, |reasons| reasons.y);
    for y in areas.rules.into_iter().filter(|y| *y < bottom) {
        painter.draw_rule(areas.head.x, y, areas.head.width, Role::Rule);
    }
    if view.queue.current().is_none() {
        return draw_doc(painter, areas.code, &view.closing, view.scroll);
    }
    let code_scroll = view.scroll.min(view.pages.code.lines.len().saturating_sub(usize::from(areas.code.height)));
    if view.pages.code.lines.is_empty() && view.pages.text.lines.is_empty() && areas.code.height > 0 {
        painter.draw_text(areas.code.x, areas.code.y, areas.code.width, "loading", Role::Faint);
    }
    draw_doc(painter, areas.code, &view.pages.code, code_scroll);
    if let (Some(patch), Some(area)) = (&view.pages.patch, areas.patch) {
        let (body, title_x, title_y) = match area {
            PatchArea::Beside(body, divider) => {
                for y in body.top()..body.bottom() {
                    painter.draw_text(divider, y, 1, app.display.glyphs.vertical, Role::Rule);
                }
                (body, body.x, body.y.saturating_sub(1))
            }
            PatchArea::Below(body) => (body, body.x, body.y.saturating_sub(1)),
        };
        // Blanks part the words from the rule on both sides.
        painter.draw_text(title_x.saturating_sub(1), title_y, body.width + 1, " suggested ", Role::Muted);
        draw_doc(painter, body, patch, 0);
    }
    draw_doc(painter, areas.text, &view.pages.text, view.scroll - code_scroll);
    if let Some(row) = areas.reasons {
        draw_reasons(painter, row);
    }
}

/// Draws the lines of a page that its area shows.
fn draw_doc(painter: &mut Painter<'_>, area: Rect, doc: &Doc, scroll: usize) {
    for (y, line) in (area.y..area.bottom()).zip(doc.lines.iter().skip(scroll)) {
        draw_line(painter, area.x, y, area.width, line, "");
    }
    painter.draw_scroll_thumb(area, scroll, doc.lines.len());
}

/// Draws `7 of 20 · P1 · open · complexity · confidence high      addressed 4   dismissed 2   later 0` and, below, place,
/// symbol (the function around the finding, if the title names none) and title. The confidence is that of the card, once it
/// is there.
fn draw_head(painter: &mut Painter<'_>, view: &TriageView, area: Rect) {
    let app = painter.app;
    let Rect { x, y, width, .. } = area;
    let finding = view.queue.current().and_then(|item| app.finding_by_id(&item.finding));
    let place = match view.queue.position() {
        Some(position) => format!("{position} of {}", view.queue.len()),
        None => "Triage".to_owned(),
    };
    // On a narrow screen the position and the priority stay, and the counts go.
    let priority = finding.as_ref().map_or(0, |finding| priority_label(finding.priority).width() + 3);
    let room = usize::from(width).saturating_sub(place.width() + priority);
    let mut end = x + width;
    for (text, is_some) in fit_counts(view.queue.counts(), room).into_iter().rev() {
        let role = if is_some { Role::Normal } else { Role::Faint };
        end -= painter.draw_text_right(x, y, end - x, &text, role).min(end - x);
        end = end.saturating_sub(COUNT_GAP).max(x);
    }
    let mut at = x + painter.draw_text(x, y, end.saturating_sub(x), &place, Role::Title);
    let Some(finding) = finding else { return };
    let status = app.current_status(&finding);
    let dot = format!(" {} ", app.display.glyphs.dot);
    let confidence = match view.shown_card().map(|loaded| &loaded.card) {
        Some(Ok(card)) => format!("confidence {}", card.page.finding.confidence),
        _ => String::new(),
    };
    for (text, role) in [
        (priority_label(finding.priority), Role::from_priority(finding.priority)),
        (status.word(), Role::from_finding_status(status)),
        (finding.kind.label(), Role::Muted),
        (confidence.as_str(), Role::Muted),
    ] {
        if text.is_empty() {
            continue;
        }
        if at + dot.width() as u16 + text.width() as u16 > end {
            break;
        }
        at += painter.draw_text(at, y, end - at, &dot, Role::Faint);
        at += painter.draw_text(at, y, end - at, text, role);
    }
    let place = format_place(&finding);
    let title = text::sanitize_line(finding.title);
    let ellipsis = app.display.glyphs.ellipsis;
    let mut used = painter.draw_text_end(x, y + 1, width, &place, Role::Accent) + HEAD_GAP as u16;
    let symbol = text::sanitize_line(name_function_around(&finding));
    if !symbol.is_empty() && used < width {
        let shown = shorten(&symbol, usize::from(width - used), ellipsis);
        used += painter.draw_text(x + used, y + 1, width - used, &shown, Role::Normal) + HEAD_GAP as u16;
    }
    match area.height {
        ..=2 => painter.draw_text(x + used, y + 1, width.saturating_sub(used), &title, Role::Strong),
        _ => painter.draw_text(x, y + 2, width, &shorten(&title, usize::from(width), ellipsis), Role::Strong),
    };
}

/// Returns the counts of verdicts that fit into `room` columns with a gap before each, and whether they are more than zero:
/// all, else those of verdicts that were given, else none.
fn fit_counts(counts: VerdictCounts, room: usize) -> Vec<(String, bool)> {
    let said = [("addressed", counts.addressed), ("dismissed", counts.dismissed), ("later", counts.later)];
    let all = said.map(|(word, count)| (format!("{word} {count}"), count > 0)).to_vec();
    let given = all.iter().filter(|(_, is_some)| *is_some).cloned().collect();
    let width = |texts: &Vec<(String, bool)>| {
        texts.iter().map(|(text, _)| text.width() + usize::from(COUNT_GAP)).sum::<usize>()
    };
    [all, given].into_iter().find(|texts| width(texts) <= room).unwrap_or_default()
}

/// Returns the reasons that fit into their row, each with its columns and its key.
fn place_reasons(app: &App, area: Rect) -> Vec<(Range<u16>, String, Action)> {
    let mut x = area.x;
    let mut placed = Vec::new();
    for action in REASON_ACTIONS {
        let Some(key) = app.keymap.key_of(KeyContext::Triage, action) else { continue };
        let key = key.to_string();
        let width = (key.width() + 1 + action.footer_label().width()) as u16;
        if x + width > area.right() {
            break;
        }
        placed.push((x..x + width, key, action));
        x += width + 3;
    }
    placed
}

/// Returns the reason at a cell of the screen.
pub fn reason_at(app: &App, view: &TriageView, cell: Position) -> Option<Action> {
    let row = compute_areas(app, view).reasons.filter(|row| row.contains(cell))?;
    place_reasons(app, row).into_iter().find(|(columns, ..)| columns.contains(&cell.x)).map(|(.., action)| action)
}

/// Draws the reasons with their keys.
fn draw_reasons(painter: &mut Painter<'_>, area: Rect) {
    for (columns, key, action) in place_reasons(painter.app, area) {
        let x = columns.start;
        let x = x + painter.draw_text(x, area.y, area.right() - x, &key, Role::Key) + 1;
        painter.draw_text(x, area.y, area.right() - x, action.footer_label(), Role::Muted);
    }
}
