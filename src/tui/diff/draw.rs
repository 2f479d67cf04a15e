//! Draws the visible rows of a diff.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::super::app::Pane;
use super::super::draw::painter::Painter;
use super::super::draw::{draw_line, selection_style};
use super::super::filter;
use super::super::pages::priority_label;
use super::super::theme::Role;
use super::super::views::prompt::PromptView;
use super::columns::{DiffColumns, fit_columns, wrapped_part};
use super::file_pane::{FilePane, ONLY_SPACE};
use super::keys::current_status;
use super::layout::{CodeRow, DiffPageRow, FileLayout, NOTE_INDENT, RunKind};
use super::model::{DiffFile, DiffFinding, DiffPageSide};
use super::pane::{DiffPane, FINDING_INDENT, PlacedRow};
use crate::domain::{Priority, text};
use crate::tui::doc::TextColumns;

/// Columns between the facts of a header. Added and removed lines, which belong together, have one column between them.
const FACT_GAP: u16 = 2;
/// Columns of the sign of a fold in the header of a file, with the space after it.
const FOLD_COLUMNS: u16 = 2;
/// Columns of a path, or of the whole path if it is shorter, that facts in the header of a file leave to it.
const MIN_PATH_COLUMNS: usize = 9;
/// Columns of a header that has room for more than the word why a file was left out of the review.
const MIN_WORDY_HEADER: u16 = 60;

/// Part of a diff that is drawn, and its looks.
pub(super) struct DiffLook<'a> {
    diff: &'a DiffPane,
    columns: DiffColumns,
    /// Columns by which the code is shifted to the left.
    shift: usize,
    /// Text that is searched for, in lower case.
    wanted: &'a str,
    /// Style of the row of the cursor.
    cursor: Option<Style>,
    /// Index of the file.
    file: usize,
    /// Code is drawn without its colours.
    is_dim: bool,
    /// Returns true for a finding that has a mark and is counted.
    is_marked: &'a dyn Fn(&DiffFinding) -> bool,
    /// Findings that were decided are counted, too.
    counts_decided: bool,
}

impl<'a> DiffLook<'a> {
    /// Creates the ordinary looks of a file of a pane, without cursor and search.
    pub(super) fn new(diff: &'a DiffPane, file: usize) -> Self {
        Self {
            diff,
            columns: diff.columns_of(file),
            shift: diff.shift(),
            wanted: "",
            cursor: None,
            file,
            is_dim: false,
            is_marked: &|_| true,
            counts_decided: false,
        }
    }

    /// Sets the looks of a row of a diff with emphasis: it tells what was found, whatever became of it.
    pub(super) fn with_emphasis(self, is_dim: bool, is_marked: &'a dyn Fn(&DiffFinding) -> bool) -> Self {
        Self { is_dim, is_marked, counts_decided: true, ..self }
    }
}

/// Draws the diff of the detail pane. The header of the file at the top stays on the screen.
pub fn draw(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let diff = &app.detail.diff;
    let focused = app.panes.focus == Pane::Detail;
    let is_searching = focused || app.views.front_as::<PromptView>().is_some();
    let wanted = if is_searching { app.search.to_lowercase() } else { String::new() };
    let cursor = selection_style(painter, focused);
    let marked = diff.marked_lines();
    for offset in 0..area.height {
        let at = diff.top() + usize::from(offset);
        let Some(PlacedRow { file, row }) = diff.row(at) else { break };
        let Some((known, pane)) = diff.file(file) else { break };
        let row = if offset == 0 { DiffPageRow::Header } else { row };
        let here = Rect { y: area.y + offset, height: 1, ..area };
        let is_marked = marked.is_some_and(|marked| diff.is_among(at, marked));
        let cursor = (focused && (at == diff.cursor() || is_marked)).then_some(cursor);
        let look = DiffLook { wanted: &wanted, cursor, ..DiffLook::new(diff, file) };
        if row == DiffPageRow::Header {
            draw_header(painter, here, &look);
        } else {
            draw_row(painter, here, (known, pane, &pane.layout), row, &look);
        }
    }
    painter.draw_scroll_thumb(area, diff.top(), diff.row_count());
}

/// Draws the lines around a finding of the loaded diff, with its text below them, in any rectangle. Returns false if the
/// loaded diff does not have the finding.
pub fn draw_around_finding(painter: &mut Painter<'_>, area: Rect, finding: &str) -> bool {
    let diff = &painter.app.detail.diff;
    let columns = DiffColumns { width: usize::from(area.width), is_side_by_side: false, is_wrapped: false };
    let Some((file, index, layout)) = diff.lay_out_around(finding, columns) else { return false };
    let Some((known, pane)) = diff.file(file) else { return false };
    let height = usize::from(area.height);
    let line = known.findings.get(index).map_or(1, |finding| finding.lines.start.max(1));
    let anchor = layout.row_of_line(DiffPageSide::New, line).or_else(|| layout.row_of_text(index)).unwrap_or(0);
    // The header of the file is left out: whoever shows one finding names its place already.
    let most = layout.rows().saturating_sub(height).max(1);
    let top = anchor.saturating_sub(height / 4).clamp(1, most);
    let look = DiffLook { columns, shift: 0, ..DiffLook::new(diff, file) };
    for offset in 0..area.height {
        let Some(row) = layout.row(top + usize::from(offset)) else { break };
        draw_row(painter, Rect { y: area.y + offset, height: 1, ..area }, (known, pane, &layout), row, &look);
    }
    true
}

/// Draws the header of a file: fold, path, numbers of lines and findings.
pub(super) fn draw_header(painter: &mut Painter<'_>, area: Rect, look: &DiffLook<'_>) {
    let app = painter.app;
    let diff = look.diff;
    let Some((known, pane)) = diff.file(look.file) else { return };
    let glyphs = &app.display.glyphs;
    if let Some(style) = look.cursor {
        painter.fill(area, style);
        painter.set_overlay_style(Some(style));
    }
    let mut right = area.right();
    let path_room = FOLD_COLUMNS + known.path.width().min(MIN_PATH_COLUMNS) as u16;
    // Draws a fact of one or more texts from the right, with a gap at its left, if that leaves room for the path.
    let mut put = |painter: &mut Painter<'_>, texts: &[(String, Role)]| {
        let columns = |text: &str| text.width() as u16 + 1;
        let width = texts.iter().map(|(text, _)| columns(text)).sum::<u16>();
        if right > area.x + width + 1 + path_room {
            right -= width + 1;
            let mut x = right + FACT_GAP;
            for (text, role) in texts {
                // Without the tint of changed lines: the numbers are no code.
                let style = Style { bg: None, ..painter.style(*role) };
                painter.draw_styled_text(x, area.y, columns(text), text, style);
                x += columns(text);
            }
        }
    };
    if pane.is_viewed {
        put(painter, &[(format!("{} viewed", glyphs.done), Role::Good)]);
    } else if let Some((marked @ 1.., all)) = pane.count_marked_changes() {
        put(painter, &[(format!("{} {marked}/{all} viewed", glyphs.done), Role::Good)]);
    }
    for priority in Priority::ALL.into_iter().rev() {
        let is_counted = |finding: &&DiffFinding| {
            finding.priority == priority
                && (look.is_marked)(finding)
                && (look.counts_decided || current_status(app, finding).is_undecided())
        };
        let count = known.findings.iter().filter(is_counted).count();
        if count > 0 {
            let fact = format!("{count} {}", priority_label(priority));
            put(painter, &[(fact, Role::from_priority(priority))]);
        }
    }
    let (added, removed) = DiffFile::count_lines(pane.blocks(known));
    // Both or none: one of them alone would look like the whole change.
    let lines = [(added, '+', Role::Added), (removed, '-', Role::Removed)];
    let lines: Vec<(String, Role)> = lines
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, sign, role)| (format!("{sign}{count}"), role))
        .collect();
    if !lines.is_empty() {
        put(painter, &lines);
    }
    if pane.differs_only_in_space() && pane.note(known).is_none() {
        put(painter, &[(ONLY_SPACE.to_owned(), Role::Muted)]);
    }
    if let Some(reason) = known.left_out {
        let has_room = area.width >= MIN_WORDY_HEADER;
        let fact = if has_room { format!("not reviewed: {reason}") } else { reason.to_string() };
        put(painter, &[(fact, Role::Muted)]);
    }
    let fold = if pane.is_folded { glyphs.folded } else { glyphs.unfolded };
    let mut x = area.x + painter.draw_text(area.x, area.y, 1, fold, Role::Faint) + 1;
    let room = right.saturating_sub(x + 1);
    if let Some(old) = &known.old_path {
        let old = text::sanitize_line(old);
        if old.width() + 4 + known.path.width() <= usize::from(room) {
            x += painter.draw_text(x, area.y, room, &format!("{old} {} ", glyphs.arrow), Role::Muted);
        }
    }
    let path_role = if pane.is_viewed { Role::Muted } else { Role::Strong };
    x += painter.draw_text_end(x, area.y, right.saturating_sub(x + 1), &known.path, path_role);
    // The commits stand on the first header if there is room.
    if look.file == 0 && !diff.page().to.is_empty() {
        let short = |commit: &str| commit.get(..8).unwrap_or(commit).to_owned();
        let from = if diff.page().from.is_empty() { "nothing".to_owned() } else { short(&diff.page().from) };
        let range = format!("{from}..{}", short(&diff.page().to));
        if usize::from(right.saturating_sub(x)) > range.width() + 4 {
            painter.draw_text(x + 2, area.y, right - x - 2, &range, Role::Faint);
        }
    }
    painter.set_overlay_style(None);
}

/// Draws any row but a header.
pub(super) fn draw_row(
    painter: &mut Painter<'_>,
    area: Rect,
    (file, pane, layout): (&DiffFile, &FilePane, &FileLayout),
    row: DiffPageRow,
    look: &DiffLook<'_>,
) {
    if let Some(style) = look.cursor {
        painter.fill(area, style);
        painter.set_overlay_style(Some(style));
    }
    let glyphs = painter.app.display.glyphs;
    match row {
        DiffPageRow::Header | DiffPageRow::Blank => {}
        DiffPageRow::Note { line } => {
            let room = area.width.saturating_sub(NOTE_INDENT as u16);
            painter.draw_text(area.x + NOTE_INDENT as u16, area.y, room, layout.note_line(line), Role::Muted);
        }
        DiffPageRow::Gap(hidden) => {
            let lines = text::format_count(hidden.lines as usize, "line");
            let label = format!("{} {lines}", glyphs.ellipsis);
            let mut x = area.x + 1;
            x += painter.draw_text(x, area.y, area.right().saturating_sub(x), &label, Role::Hunk) + 1;
            let texts = pane.read_texts();
            let line = layout.declaration_below(hidden).and_then(|line| texts?.new.line(line));
            if let Some(line) = line.filter(|_| x + 8 < area.right()) {
                let line = line.trim().trim_end_matches(['{', ' ']);
                x += 1
                    + painter.draw_styled_text(x + 1, area.y, area.right() - x - 2, line, painter.style(Role::Muted))
                    + 1;
            }
            if x + 1 < area.right() && look.cursor.is_none() {
                painter.draw_rule(x, area.y, area.right() - x, Role::Rule);
            }
        }
        DiffPageRow::Finding { index, line } => {
            let Some(shown) = layout.finding_line(index, line) else { return };
            let role = file.findings.get(index).map_or(Role::Muted, |finding| Role::from_priority(finding.priority));
            let indent = FINDING_INDENT as u16;
            painter.draw_text(area.x + indent - 2, area.y, 1, glyphs.thumb, role);
            draw_line(painter, area.x + indent, area.y, area.width.saturating_sub(indent + 1), shown, look.wanted);
        }
        DiffPageRow::Code(code) if look.columns.is_side_by_side => {
            let half = look.columns.half_width() as u16;
            let left = Rect { width: half, ..area };
            let right = Rect { x: area.x + half + 1, width: area.width.saturating_sub(half + 1), ..area };
            draw_side(painter, left, (file, pane, layout), (code, DiffPageSide::Old), look);
            painter.draw_text(area.x + half, area.y, 1, glyphs.vertical, Role::Rule);
            draw_side(painter, right, (file, pane, layout), (code, DiffPageSide::New), look);
        }
        DiffPageRow::Code(code) => draw_unified(painter, area, (file, pane, layout), code, look),
    }
    painter.set_overlay_style(None);
}

/// Columns of the mark of findings and of the sign of a viewed change, whose blank keeps a number of findings apart from that of
/// the line.
const MARK_WIDTH: u16 = 2;

/// Sign and style of a changed line.
#[derive(Debug, Clone, Copy)]
struct ChangeLook {
    sign: &'static str,
    base: Role,
    word: Role,
    is_changed: bool,
}

const UNCHANGED: ChangeLook = ChangeLook { sign: " ", base: Role::Normal, word: Role::Normal, is_changed: false };
const ADDED: ChangeLook = ChangeLook { sign: "+", base: Role::Added, word: Role::AddedWord, is_changed: true };
const REMOVED: ChangeLook = ChangeLook { sign: "-", base: Role::Removed, word: Role::RemovedWord, is_changed: true };

impl ChangeLook {
    /// Returns the looks of the same line where it is dim.
    fn dim(self) -> Self {
        Self { base: Role::Faint, word: Role::Faint, is_changed: false, ..self }
    }
}

/// Returns the looks of a line, and what its right edge says: where it has moved to or come from if it is the first of a move,
/// and that the change was viewed if it is the first of that.
fn change_look(look: &DiffLook<'_>, (code, side): (CodeRow, DiffPageSide)) -> (ChangeLook, Option<String>) {
    let change = match (code.kind, side) {
        (RunKind::Context, _) if look.is_dim => return (UNCHANGED.dim(), None),
        (RunKind::Context, _) => return (UNCHANGED, None),
        (RunKind::Removed, _) | (RunKind::Paired, DiffPageSide::Old) => REMOVED,
        (RunKind::Added, _) | (RunKind::Paired, DiffPageSide::New) => ADDED,
    };
    if look.is_dim {
        return (change.dim(), None);
    }
    let diff = look.diff;
    let line = code.line(side).unwrap_or(0);
    let has_label = !look.columns.is_wrapped;
    let is_viewed = |(file, pane): (&DiffFile, &FilePane)| {
        pane.begins_viewed_change(file, (code, side), look.columns.is_side_by_side)
    };
    let viewed = (has_label && diff.file(look.file).is_some_and(is_viewed)).then(|| "viewed".to_owned());
    let Some(found) = diff.find_move(look.file, side, line) else { return (change, viewed) };
    let begins = found.lines(side).start == line && has_label;
    let moved = begins.then(|| {
        let (word, file, start) = match side {
            DiffPageSide::Old => ("moved to", found.new_file, found.new.start),
            DiffPageSide::New => ("moved from", found.old_file, found.old.start),
        };
        match diff.file(file) {
            Some((other, _)) if file != look.file => format!("{word} {}:{start}", text::sanitize_line(&other.path)),
            _ => format!("{word} line {start}"),
        }
    });
    let label = match (moved, viewed) {
        (Some(moved), Some(viewed)) => Some(format!("{moved}, {viewed}")),
        (moved, viewed) => moved.or(viewed),
    };
    (ChangeLook { base: Role::Moved, word: Role::Moved, ..change }, label)
}

/// Draws the sign of a viewed change in the margin, beside the mark of findings.
fn draw_viewed_sign(painter: &mut Painter<'_>, area: Rect, (file, pane): (&DiffFile, &FilePane), code: CodeRow) {
    if pane.change_of(file, code).is_some_and(|change| pane.is_change_viewed(change)) {
        painter.draw_text(area.x + 1, area.y, 1, painter.app.display.glyphs.viewed, Role::Good);
    }
}

/// Draws what the right edge of a line says. Returns the room that is left of it.
fn draw_edge_label(painter: &mut Painter<'_>, area: Rect, label: Option<&str>) -> Rect {
    let Some(label) = label else { return area };
    let width = label.width() as u16;
    if width + 20 > area.width {
        return area;
    }
    painter.draw_text_right(area.x, area.y, area.width, label, Role::Muted);
    Rect { width: area.width - width - 2, ..area }
}

fn draw_unified(
    painter: &mut Painter<'_>,
    area: Rect,
    (file, pane, layout): (&DiffFile, &FilePane, &FileLayout),
    code: CodeRow,
    look: &DiffLook<'_>,
) {
    let side = if code.new.is_some() { DiffPageSide::New } else { DiffPageSide::Old };
    let (change, label) = change_look(look, (code, side));
    fill_change(painter, area, change, look);
    draw_mark(painter, area, (file, look), code.new);
    draw_viewed_sign(painter, area, (file, pane), code);
    let digits = layout.digits;
    let is_first = code.part == 0;
    let number =
        |line: Option<u32>| line.filter(|_| is_first).map_or_else(|| " ".repeat(digits), |n| format!("{n:>digits$}"));
    let numbers = format!("{} {}", number(code.old), number(code.new));
    let mut x = area.x + MARK_WIDTH;
    x += painter.draw_text(x, area.y, area.right().saturating_sub(x), &numbers, number_role(painter, change)) + 1;
    painter.draw_text(x, area.y, 1, if is_first { change.sign } else { " " }, change.base);
    x += 2;
    let here = Rect { x, width: area.right().saturating_sub(x), ..area };
    let here = draw_edge_label(painter, here, label.as_deref());
    draw_code(painter, here, pane, (code, side), change, look);
}

fn draw_side(
    painter: &mut Painter<'_>,
    area: Rect,
    (file, pane, layout): (&DiffFile, &FilePane, &FileLayout),
    (code, side): (CodeRow, DiffPageSide),
    look: &DiffLook<'_>,
) {
    let Some(line) = code.line(side) else {
        // Beside a removed line.
        if side == DiffPageSide::New {
            draw_viewed_sign(painter, area, (file, pane), code);
        }
        return;
    };
    let (change, label) = change_look(look, (code, side));
    fill_change(painter, area, change, look);
    let mut x = area.x;
    if side == DiffPageSide::New {
        draw_mark(painter, area, (file, look), Some(line));
        draw_viewed_sign(painter, area, (file, pane), code);
        x += MARK_WIDTH;
    }
    let digits = layout.digits;
    if code.part == 0 {
        let number = format!("{line:>digits$}");
        painter.draw_text(x, area.y, area.right().saturating_sub(x), &number, number_role(painter, change));
        painter.draw_text(x + digits as u16 + 1, area.y, 1, change.sign, change.base);
    }
    x += digits as u16 + 3;
    let here = Rect { x, width: area.right().saturating_sub(x), ..area };
    let here = draw_edge_label(painter, here, label.as_deref());
    draw_code(painter, here, pane, (code, side), change, look);
}

/// Returns the role of a line number: without a tint, it tells the change together with the sign.
fn number_role(painter: &Painter<'_>, change: ChangeLook) -> Role {
    let theme = &painter.app.display.theme;
    if change.is_changed && !theme.tints_changes() && theme.colors_changed_code() {
        change.base
    } else {
        Role::LineNumber
    }
}

/// Fills the row of a changed line, unless the cursor has filled it.
fn fill_change(painter: &mut Painter<'_>, area: Rect, change: ChangeLook, look: &DiffLook<'_>) {
    if change.is_changed && look.cursor.is_none() {
        let behind = background(painter.style(change.base));
        painter.fill(area, behind);
        painter.set_overlay_style(Some(behind));
    } else {
        painter.set_overlay_style(look.cursor);
    }
}

fn background(style: Style) -> Style {
    Style { fg: None, add_modifier: Modifier::empty(), ..style }
}

/// Draws the mark of the most urgent finding at a line: a dot or a number at its first line, a bar at the others.
fn draw_mark(painter: &mut Painter<'_>, area: Rect, (file, look): (&DiffFile, &DiffLook<'_>), line: Option<u32>) {
    let Some(line) = line else { return };
    let app = painter.app;
    let covers = |finding: &&DiffFinding| {
        finding.lines.start.max(1) == line || (finding.lines.start..=finding.lines.end).contains(&line)
    };
    let begins = |finding: &&DiffFinding| finding.lines.start.max(1) == line;
    let marked = || file.findings.iter().filter(|finding| (look.is_marked)(finding));
    let Some(finding) =
        marked().filter(covers).min_by_key(|finding| (!current_status(app, finding).is_undecided(), finding.priority))
    else {
        return;
    };
    let starting = marked().filter(begins).count();
    let glyphs = painter.app.display.glyphs;
    let count = starting.min(9).to_string();
    let sign = match starting {
        0 => glyphs.bar,
        1 => glyphs.mark,
        _ => &count,
    };
    let status = current_status(app, finding);
    let role = match status.is_undecided() {
        true => Role::from_priority(finding.priority),
        false => Role::from_finding_status(status),
    };
    painter.draw_text(area.x, area.y, 1, sign, role);
}

/// Draws the text of a line: syntax colours, changed words, matches of the search.
fn draw_code(
    painter: &mut Painter<'_>,
    area: Rect,
    pane: &FilePane,
    (code, side): (CodeRow, DiffPageSide),
    change: ChangeLook,
    look: &DiffLook<'_>,
) {
    let Some(texts) = pane.read_texts() else { return };
    // Both sides have an unchanged line; only the new text of an unchanged file is read.
    let (side, line) = match (code.kind, code.new) {
        (RunKind::Context, Some(line)) => (DiffPageSide::New, Some(line)),
        _ => (side, code.line(side)),
    };
    let Some((line, whole)) = line.and_then(|line| Some((line, texts.side(side).line(line)?))) else { return };
    let width = usize::from(area.width);
    let (start, end, is_cut) = match look.columns.is_wrapped {
        true => {
            let (start, end) = wrapped_part(whole, code.part, look.columns.text_width(pane.layout.digits).min(width));
            (start, end, false)
        }
        false => {
            let (_, start) = fit_columns(whole, 0, look.shift);
            let (_, end) = fit_columns(whole, start, width);
            (start, end, end < whole.len())
        }
    };
    let end = if is_cut { fit_columns(whole, start, width.saturating_sub(1)).1 } else { end };
    let base = painter.style(change.base);
    let is_tinted = base.bg.is_some_and(|color| color != ratatui::style::Color::Reset);
    let is_coloured = !look.is_dim && (!change.is_changed || painter.app.display.theme.colors_changed_code());
    let syntax = if is_coloured { pane.spans(side, line) } else { &[] };
    let words = if change.is_changed { texts.changed_words(side, line, pane.ignores_space) } else { &[] };
    let word_style = painter.style(change.word);
    // Code with syntax colours has the attributes of its line; the colour of the line is that of its sign and numbers.
    let attributes = if is_tinted { Modifier::empty() } else { base.add_modifier };
    let is_plain = change.is_changed && is_coloured && pane.is_highlighted(side, line);
    let plain = if is_plain { painter.style(Role::Normal).add_modifier(attributes) } else { base };
    let mut at = start;
    let mut x = area.x;
    while at < end {
        let span = syntax.iter().find(|(_, to, _)| (*to as usize) > at);
        let word = words.iter().find(|word| word.end > at);
        let inside_span = span.filter(|(from, ..)| (*from as usize) <= at);
        let inside_word = word.is_some_and(|word| word.start <= at);
        let next = [
            span.map(|(from, to, _)| if (*from as usize) <= at { *to as usize } else { *from as usize }),
            word.map(|word| if word.start <= at { word.end } else { word.start }),
        ];
        let next = next.into_iter().flatten().min().unwrap_or(end).min(end).max(at + 1);
        let next = whole.ceil_char_boundary(next);
        let mut style = inside_span.map_or(plain, |(.., role)| painter.style(*role).add_modifier(attributes));
        if change.is_changed && is_tinted && look.cursor.is_none() {
            style = Style { bg: base.bg, ..style };
        }
        if inside_word {
            style = style.patch(if is_tinted { Style { fg: None, ..word_style } } else { word_style });
            // The tint of the word lies over that of the line.
            painter.set_overlay_style(look.cursor.or(Some(background(word_style))));
        } else {
            painter.set_overlay_style(look.cursor.or(change.is_changed.then(|| background(base))));
        }
        let piece = whole.get(at..next).unwrap_or("");
        x += painter.draw_styled_text(x, area.y, area.right().saturating_sub(x), piece, style);
        at = next;
    }
    if is_cut {
        painter.draw_text(x, area.y, area.right().saturating_sub(x), painter.app.display.glyphs.ellipsis, Role::Faint);
    }
    painter.set_overlay_style(look.cursor);
    mark_match(painter, area, whole.get(start..end).unwrap_or(""), look.wanted);
}

/// Highlights the first match of the search.
fn mark_match(painter: &mut Painter<'_>, area: Rect, shown: &str, wanted: &str) {
    if wanted.is_empty() || !filter::contains_ignore_case(shown, wanted) {
        return;
    }
    let lower = shown.to_lowercase();
    if lower.len() == shown.len()
        && let Some(start) = lower.find(wanted)
        && let (Some(before), Some(found)) = (shown.get(..start), shown.get(start..start + wanted.len()))
    {
        let place = Rect { x: area.x + before.width() as u16, width: found.width() as u16, ..area };
        let style = painter.style(Role::Match);
        painter.restyle(place.intersection(area), style);
    }
}
