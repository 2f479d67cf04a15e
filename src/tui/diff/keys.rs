//! Connects the diff with the cockpit: its keys, its messages, and what it requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::app::{App, NoticeLevel, Pane};
use super::super::filter;
use super::super::keymap::Action;
use super::super::message::{AppCommand, DetailSubject, Tab};
use super::super::page_data::PageData;
use super::super::update::open_diff;
use super::super::views::{self, ViewChange, with_labels};
use super::file_pane::TextState;
use super::layout::{CodeRow, DiffPageRow, RunKind};
use super::model::{
    DiffFinding, DiffPage, DiffPageSide, DiffRequest, DiffTexts, HIGHLIGHT_BLOCK_LINES, TextHighlights,
};
use super::moves::DiffMove;
use super::navigation::DiffTarget;
use super::pane::{DiffPane, PlacedRow};
use super::shift::SHIFT_STEP;
use super::viewed::{is_change_name, mark_all_changes, toggle_change};
use crate::domain::{FindingStatus, Time, ViewedFile, text};
use crate::masking::Mask;
use crate::policy::Freshness;
use crate::runner::RemovedLine;

/// Most rows of a diff in which a search counts its matches, so that a key stays quick.
const MAX_COUNTED_ROWS: usize = 100_000;

/// Returns true if the detail shows a diff with files.
pub fn is_shown(app: &App) -> bool {
    match &app.detail.page {
        Some((_, Tab::Diff, page)) => matches!(&**page, PageData::Diff(page) if !page.files.is_empty()),
        _ => false,
    }
}

/// Returns true if the code is no longer what the shown change has, as far as the cockpit has looked.
pub fn is_outdated(app: &App) -> bool {
    let view = &app.store.view;
    let run = view.run_index(&app.detail.diff.page().run).map(|index| view.run(index));
    run.is_some_and(|run| app.run_freshness(&run) == Freshness::Obsolete)
}

/// Shows a page that was read. Folds and cursor stay if the last shown diff was about the same subject.
pub fn show_page(app: &mut App, page: Arc<DiffPage>, subject: &DetailSubject) {
    set_size(app);
    app.detail.diff.show(page, subject);
}

/// Takes the size of the detail pane.
fn set_size(app: &mut App) {
    let body = app.layout().body(Pane::Detail);
    // A view in place of the panes may show the diff although the pane has no room.
    let (width, height) = body.map_or((app.display.columns, app.display.rows), |area| (area.width, area.height));
    app.detail.diff.set_plain(app.display.plain);
    app.detail.diff.resize(usize::from(width), usize::from(height).max(1));
}

/// Stores the texts of a file of the shown page, or hands them to the view that shows the page.
pub fn apply_file(
    app: &mut App,
    page: &Arc<DiffPage>,
    file: usize,
    texts: Result<Arc<DiffTexts>, String>,
    commands: &mut Vec<AppCommand>,
) {
    views::apply_change(app, &ViewChange::DiffTexts { page, file, texts: &texts }, commands);
    if Arc::ptr_eq(page, app.detail.diff.page()) {
        app.detail.diff.set_texts(file, texts);
    }
}

/// Stores highlighted lines, or hands them to the view that has their text.
pub fn apply_highlights(app: &mut App, highlights: &TextHighlights, commands: &mut Vec<AppCommand>) {
    views::apply_change(app, &ViewChange::DiffHighlights(highlights), commands);
    app.detail.diff.apply_highlights(highlights);
}

/// Stores the moves of the shown page.
pub fn apply_moves(app: &mut App, page: &Arc<DiffPage>, moves: Vec<DiffMove>) {
    if page.has_same_change(app.detail.diff.page()) {
        app.detail.diff.set_moves(moves);
    }
}

/// Adapts the diff to the size of the pane, and requests the texts and highlights of what is on the screen and near it.
pub fn sync(app: &mut App, commands: &mut Vec<AppCommand>) {
    if !is_shown(app) {
        return;
    }
    set_size(app);
    let diff = &mut app.detail.diff;
    if diff.row_count() > 0 && diff.request_moves() {
        commands.push(AppCommand::Diff(DiffRequest::FindMoves(Arc::clone(diff.page()))));
    }
    request_visible(diff, commands);
}

/// Requests the texts and highlights of what is on the screen and near it.
pub fn request_visible(diff: &mut DiffPane, commands: &mut Vec<AppCommand>) {
    let (top, height) = (diff.top(), diff.height());
    let near = top.saturating_sub(height)..(top + 2 * height).min(diff.row_count());
    if near.is_empty() {
        return;
    }
    let (Some(first), Some(last)) = (diff.file_at(near.start), diff.file_at(near.end - 1)) else { return };
    let page = Arc::clone(diff.page());
    for file in first..=last {
        let Some(pane) = diff.file_mut(file) else { continue };
        if !pane.is_folded && matches!(pane.texts, TextState::Unread) {
            pane.texts = TextState::Requested;
            commands.push(AppCommand::Diff(DiffRequest::Read { page: Arc::clone(&page), file }));
        }
    }
    for row in near {
        let Some(PlacedRow { file, row: DiffPageRow::Code(CodeRow { old, new, kind, .. }) }) = diff.row(row) else {
            continue;
        };
        let Some(path) = page.files.get(file).map(|file| &file.path) else { continue };
        let Some(pane) = diff.file_mut(file) else { continue };
        let Some(texts) = pane.read_texts().cloned() else { continue };
        // An unchanged line is drawn with the new text on both sides.
        for (side, line) in [(DiffPageSide::Old, old.filter(|_| kind != RunKind::Context)), (DiffPageSide::New, new)] {
            let Some(block) = line.map(|line| line.saturating_sub(1) / HIGHLIGHT_BLOCK_LINES) else { continue };
            if pane.request_highlights(side, block) {
                let request = DiffRequest::Highlight { path: path.clone(), texts: Arc::clone(&texts), side, block };
                commands.push(AppCommand::Diff(request));
            }
        }
    }
}

/// Executes an action of the diff. Returns false if the diff does not have it.
pub fn run_action(app: &mut App, action: Action, count: Option<usize>, commands: &mut Vec<AppCommand>) -> bool {
    use Action as A;
    let times = count.unwrap_or(1);
    let target = match action {
        A::NextHunk | A::PreviousHunk => Some(DiffTarget::Hunk),
        A::NextUnviewed | A::PreviousUnviewed => Some(DiffTarget::Unviewed),
        A::NextFile | A::PreviousFile => Some(DiffTarget::File),
        A::NextFinding | A::PreviousFinding => Some(DiffTarget::Finding),
        _ => None,
    };
    if let Some(target) = target {
        if !is_shown(app) {
            open_diff(app, commands);
            return true;
        }
        let is_forward = matches!(action, A::NextHunk | A::NextUnviewed | A::NextFile | A::NextFinding);
        go_to(app, target, is_forward, times);
        return true;
    }
    if matches!(action, A::SideBySide | A::Wrap | A::IgnoreSpace) {
        toggle_option(app, action);
        return true;
    }
    if app.panes.focus != Pane::Detail || !is_shown(app) {
        return false;
    }
    let diff = &mut app.detail.diff;
    let page = diff.height().saturating_sub(2).max(1);
    let step = isize::try_from(times).unwrap_or(isize::MAX);
    match action {
        A::Down => move_by(app, step),
        A::Up => move_by(app, -step),
        A::HalfPageDown => diff.page_by((page / 2).max(1) as isize * step),
        A::HalfPageUp => diff.page_by(-((page / 2).max(1) as isize) * step),
        A::PageDown => diff.page_by(page as isize * step),
        A::PageUp => diff.page_by(-(page as isize) * step),
        A::Top => diff.move_to(count.map_or(0, |row| row.saturating_sub(1))),
        A::Bottom => diff.move_to(count.map_or(usize::MAX, |row| row.saturating_sub(1))),
        A::Open => open_row(app),
        A::MarkRange => {
            if !diff.toggle_range() {
                app.show_notice(NoticeLevel::Info, "a range begins on a line of the new side");
            }
        }
        A::Back if diff.clear_range() => {}
        A::Viewed => return toggle_row(app, commands),
        A::ViewedChange => toggle_change(app, commands),
        // To the left of the code is the list; to the right is only more code.
        A::ScrollLeft if diff.shift() == 0 => return false,
        A::ScrollLeft => diff.shift_by(-(SHIFT_STEP as isize)),
        A::ScrollRight if !diff.can_shift() => {}
        A::ScrollRight => diff.shift_by(SHIFT_STEP as isize),
        _ => return false,
    }
    true
}

fn go_to(app: &mut App, target: DiffTarget, forward: bool, times: usize) {
    for step in 0..times.min(1_000) {
        if !app.detail.diff.go_to(target, forward) {
            if step == 0 {
                let name = match target {
                    DiffTarget::Hunk => "change",
                    DiffTarget::Unviewed => "unviewed change",
                    DiffTarget::File => "file",
                    DiffTarget::Finding => "finding",
                };
                let direction = if forward { "below" } else { "above" };
                app.show_notice(NoticeLevel::Info, format!("no {name} {direction}"));
            }
            return;
        }
    }
}

/// Says that a key does nothing without a diff.
pub const NO_DIFF: &str = "this is for the tab Diff; it is not open";
/// Says why the two sides of a diff do not stand beside each other on a plain screen.
pub const PLAIN_IS_UNIFIED: &str = "the plain screen has no columns: the diff stays unified";

/// Switches the way in which the diff is shown.
fn toggle_option(app: &mut App, action: Action) {
    if !is_shown(app) {
        return app.show_notice(NoticeLevel::Info, NO_DIFF);
    }
    if action == Action::SideBySide && app.display.plain {
        return app.show_notice(NoticeLevel::Info, PLAIN_IS_UNIFIED);
    }
    let diff = &mut app.detail.diff;
    let said = match action {
        Action::Wrap if diff.toggle_wrap() => "long lines continue in the next row",
        Action::Wrap => "long lines are cut",
        Action::IgnoreSpace if diff.toggle_space() => "white space is ignored",
        Action::IgnoreSpace => "white space counts again",
        _ if diff.page().from.is_empty() => "there is no old side: this is the whole tree, or a first commit",
        _ if !diff.has_two_sides() => "no file here has two sides: all are new or deleted",
        _ => {
            diff.toggle_side_by_side();
            return;
        }
    };
    app.show_notice(NoticeLevel::Info, said);
}

/// Moves the cursor by a number of rows.
fn move_by(app: &mut App, rows: isize) {
    let row = app.detail.diff.cursor().saturating_add_signed(rows);
    app.detail.diff.move_to(row);
}

/// Folds a file, shows the text of a finding, or shows more unchanged lines.
fn open_row(app: &mut App) {
    let diff = &mut app.detail.diff;
    let Some(PlacedRow { file, row }) = diff.row(diff.cursor()) else { return };
    match row {
        DiffPageRow::Header => {
            let is_folded = diff.files()[file].is_folded;
            diff.set_folded(file, !is_folded);
        }
        DiffPageRow::Gap(hidden) => diff.expand(file, hidden),
        DiffPageRow::Code(_) | DiffPageRow::Finding { .. } => {
            let (file, findings) = diff.findings_at_cursor();
            if !findings.is_empty() {
                diff.toggle_findings(file, &findings);
            }
        }
        DiffPageRow::Note { .. } | DiffPageRow::Blank => {}
    }
}

/// Marks the file of a header as viewed or not, or shows or hides the findings of the line. Returns false if the row is
/// neither.
fn toggle_row(app: &mut App, commands: &mut Vec<AppCommand>) -> bool {
    let now = app.now;
    let diff = &mut app.detail.diff;
    if let Some(PlacedRow { file, row: DiffPageRow::Header }) = diff.row(diff.cursor())
        && let Some((known, pane)) = diff.file(file)
    {
        let (viewed, at) = (!pane.is_viewed, Time::from_millisecond(now).unwrap_or_default());
        let changes = mark_all_changes(known, pane, viewed, at);
        if !changes.is_empty() {
            commands.push(AppCommand::MarkChanges(changes));
        }
        let (path, content) = (known.path.clone(), known.content_key());
        commands.push(AppCommand::MarkViewed(ViewedFile { path, content, viewed, at }));
        return true;
    }
    let (file, findings) = diff.findings_at_cursor();
    if findings.is_empty() {
        return false;
    }
    diff.toggle_findings(file, &findings);
    true
}

/// Shows the stored mark of a file, folds a viewed file, and goes to the next one.
pub fn apply_viewed(app: &mut App, mark: &ViewedFile, result: Result<(), String>) {
    if let Err(error) = result {
        return app.show_notice(NoticeLevel::Error, format!("not marked as viewed: {error}"));
    }
    let run = app.detail.diff.page().run.clone();
    app.file_list.set_viewed(&run, &mark.path, mark.viewed);
    if !is_shown(app) {
        return;
    }
    let diff = &mut app.detail.diff;
    let files = &diff.page().files;
    let Some(file) = files.iter().position(|file| file.path == mark.path && file.content_key() == mark.content) else {
        return;
    };
    let is_at_header = diff.cursor() == diff.file_start(file);
    if let Some(pane) = diff.file_mut(file) {
        pane.is_viewed = mark.viewed;
    }
    diff.set_folded(file, mark.viewed);
    if mark.viewed && is_at_header && file + 1 < diff.files().len() {
        diff.move_to(diff.file_start(file + 1));
    }
    let viewed = diff.files().iter().filter(|file| file.is_viewed).count();
    let text = format!("viewed {viewed} of {}", text::format_count(diff.files().len(), "file"));
    app.show_notice(NoticeLevel::Info, text);
}

/// Has the marks of the list read again, and the diff if it shows others than the marked files and changes, given by path and by
/// content or name.
pub fn apply_viewed_files(app: &mut App, viewed: &HashSet<(String, String)>) {
    app.file_list.forget_requests();
    if !is_shown(app) {
        return;
    }
    let mut changes: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (path, name) in viewed.iter().filter(|(_, content)| is_change_name(content)) {
        changes.entry(path).or_default().insert(name);
    }
    let none = HashSet::new();
    let diff = &app.detail.diff;
    let mut files = diff.page().files.iter().zip(diff.files());
    let is_outdated = files.any(|(file, pane)| {
        let marked = changes.get(file.path.as_str()).unwrap_or(&none);
        let has_same_changes = pane.viewed_changes.len() == marked.len()
            && pane.viewed_changes.iter().all(|name| marked.contains(name.as_str()));
        let is_whole = pane.count_marked_changes().map_or(pane.is_viewed && !marked.is_empty(), |(n, all)| n == all);
        let is_marked = viewed.contains(&(file.path.clone(), file.content_key()));
        !has_same_changes || pane.is_viewed != (is_marked || is_whole)
    });
    app.detail.stale |= is_outdated;
}

/// Returns the status of a finding of the diff after the newest decision, which the page may lack.
pub fn current_status(app: &App, finding: &DiffFinding) -> FindingStatus {
    app.finding_by_id(&finding.id).map_or(finding.status, |row| app.current_status(&row))
}

/// Returns the id of the most urgent finding at the cursor, of those without a verdict if there are some.
pub fn finding_at_cursor(app: &App) -> Option<&str> {
    if app.panes.focus != Pane::Detail || !is_shown(app) {
        return None;
    }
    let diff = &app.detail.diff;
    let (file, found) = diff.findings_at_cursor();
    let findings = &diff.page().files.get(file)?.findings;
    let found = found.into_iter().filter_map(|index| findings.get(index));
    let urgency = |finding: &&DiffFinding| (!current_status(app, finding).is_undecided(), finding.priority);
    found.min_by_key(urgency).map(|finding| finding.id.as_str())
}

/// Returns the finding to which a key at the cursor applies, the others there and those below it, in the order of the diff;
/// nothing if the cursor is at none.
pub fn findings_from_cursor(app: &App) -> Vec<&str> {
    let Some(first) = finding_at_cursor(app) else { return Vec::new() };
    let diff = &app.detail.diff;
    let ids = diff.findings_from_cursor().into_iter();
    let ids = ids.map(|(file, index)| diff.page().files[file].findings[index].id.as_str());
    std::iter::once(first).chain(ids.filter(|id| *id != first)).collect()
}

/// Goes from the finding at the cursor, if that was decided just now, to the next one of the diff without a verdict. Returns
/// false if there is none, or the cursor is elsewhere.
pub fn go_to_next_undecided(app: &mut App, decided: &[String]) -> bool {
    if !findings_at_cursor(app).iter().any(|id| decided.iter().any(|decided| decided == id)) {
        return false;
    }
    let diff = &app.detail.diff;
    let is_undecided =
        |(file, index): &(usize, usize)| current_status(app, &diff.page().files[*file].findings[*index]).is_undecided();
    let Some((file, index)) = diff.findings_from_cursor().into_iter().find(is_undecided) else { return false };
    app.detail.diff.open_finding(file, index);
    true
}

/// Returns the ids of the findings at the cursor.
pub fn findings_at_cursor(app: &App) -> Vec<&str> {
    if app.panes.focus != Pane::Detail || !is_shown(app) {
        return Vec::new();
    }
    let diff = &app.detail.diff;
    let (file, found) = diff.findings_at_cursor();
    let findings = diff.page().files.get(file).map(|file| file.findings.as_slice()).unwrap_or_default();
    found.into_iter().filter_map(|index| findings.get(index)).map(|finding| finding.id.as_str()).collect()
}

/// Returns path and line of the new side at the cursor, else of the next line below it, else of the last one above.
pub fn source_at_cursor(app: &App) -> Option<(String, u32)> {
    if app.panes.focus != Pane::Detail || !is_shown(app) {
        return None;
    }
    let diff = &app.detail.diff;
    let file = diff.file_at(diff.cursor())?;
    let line = (diff.cursor()..diff.row_count()).find_map(|row| match diff.row(row)? {
        PlacedRow { file: other, row: DiffPageRow::Code(CodeRow { new: Some(line), .. }) } if other == file => {
            Some(line)
        }
        PlacedRow { file: other, row: DiffPageRow::Gap(hidden) } if other == file => Some(hidden.new),
        _ => None,
    });
    let line = line.or_else(|| diff.line_above(diff.cursor()).map(|(_, line)| line));
    Some((diff.page().files[file].path.clone(), line.unwrap_or(1)))
}

/// Returns the removed line at the cursor; `None` on any other row.
pub fn removed_line_at_cursor(app: &App) -> Option<RemovedLine> {
    let diff = &app.detail.diff;
    let PlacedRow { file, row: DiffPageRow::Code(CodeRow { old: Some(number), new: None, .. }) } =
        diff.row(diff.cursor())?
    else {
        return None;
    };
    let (_, pane) = diff.file(file)?;
    let text = pane.read_texts()?.side(DiffPageSide::Old).line(number)?;
    // A text that is shown with its secrets is not stored.
    let is_masked = matches!(diff.page().mask, Mask::On);
    Some(RemovedLine { number, text: if is_masked { text.to_owned() } else { String::new() } })
}

/// Returns the code of the row at the cursor without its sign, with its name for the user: the marked lines, else the new
/// line, and the old one if it is another. Nothing while the page shows its secrets.
pub fn code_at_cursor(app: &App) -> Vec<(&'static str, String)> {
    if app.panes.focus != Pane::Detail || !is_shown(app) {
        return Vec::new();
    }
    let diff = &app.detail.diff;
    if matches!(diff.page().mask, Mask::Off) {
        return Vec::new();
    }
    if let Some((file, lines)) = diff.marked_lines() {
        let Some(texts) = diff.file(file).and_then(|(_, pane)| pane.read_texts()) else { return Vec::new() };
        let marked: Vec<&str> = (lines.start..=lines.end).filter_map(|line| texts.new.line(line)).collect();
        return vec![("the lines", marked.join("\n"))];
    }
    let Some(PlacedRow { file, row: DiffPageRow::Code(code) }) = diff.row(diff.cursor()) else { return Vec::new() };
    let Some(texts) = diff.file(file).and_then(|(_, pane)| pane.read_texts()) else { return Vec::new() };
    let old = code.old.filter(|_| code.kind != RunKind::Context).and_then(|line| texts.old.line(line));
    let new = code.new.and_then(|line| texts.new.line(line));
    match (new, old) {
        (Some(new), Some(old)) => vec![("the line", new.to_owned()), ("the old line", old.to_owned())],
        (Some(line), None) | (None, Some(line)) => vec![("the line", line.to_owned())],
        (None, None) => Vec::new(),
    }
}

/// Finds the next row that contains the search text, from the cursor on; texts that are not read yet are not searched.
/// Goes there and returns true if there is one.
pub fn find_row(app: &mut App, at: usize, forward: bool, beyond: bool) -> bool {
    let wanted = app.search.to_lowercase();
    let diff = &app.detail.diff;
    let rows = diff.row_count();
    let holds = |row: usize| row_contains(diff, row, &wanted);
    let skip = usize::from(beyond);
    let found = (skip..rows + skip)
        .map(|n| if forward { (at + n) % rows.max(1) } else { (at + rows * 2 - n) % rows.max(1) })
        .find(|row| holds(*row));
    if let Some(row) = found {
        app.detail.diff.jump_to(row);
        app.detail.diff.reveal_match(&wanted);
    }
    found.is_some()
}

/// Returns the position of the row at the cursor among the rows that contain the search text, from 1, and the number of these
/// rows. `None` if the row does not contain it, or the diff has too many rows to count them at a key.
pub fn find_position(app: &App) -> Option<(usize, usize)> {
    let wanted = app.search.to_lowercase();
    let diff = &app.detail.diff;
    let (cursor, rows) = (diff.cursor(), diff.row_count());
    if wanted.is_empty() || rows > MAX_COUNTED_ROWS || !row_contains(diff, cursor, &wanted) {
        return None;
    }
    let count = |rows: std::ops::Range<usize>| rows.filter(|row| row_contains(diff, *row, &wanted)).count();
    let position = count(0..cursor) + 1;
    Some((position, position + count(cursor + 1..rows)))
}

/// Returns true if a row contains a text in lower case. A wrapped line counts in its first row.
fn row_contains(diff: &DiffPane, row: usize, wanted: &str) -> bool {
    let contains = |text: &str| filter::contains_ignore_case(text, wanted);
    let Some(PlacedRow { file, row }) = diff.row(row) else { return false };
    let Some((known, pane)) = diff.file(file) else { return false };
    match row {
        DiffPageRow::Header => contains(&known.path),
        DiffPageRow::Finding { index, line } => {
            pane.layout.finding_line(index, line).is_some_and(|line| contains(&line.plain_text()))
        }
        DiffPageRow::Code(CodeRow { old, new, kind, part: 0 }) => pane.read_texts().is_some_and(|texts| {
            let has = |side, line: Option<u32>| line.and_then(|line| texts.side(side).line(line)).is_some_and(contains);
            // Both sides have an unchanged line.
            has(DiffPageSide::New, new) || kind != RunKind::Context && has(DiffPageSide::Old, old)
        }),
        _ => false,
    }
}

/// Returns the actions of the footer, most useful first.
pub fn footer_actions(app: &App) -> Vec<(Action, &'static str)> {
    use Action as A;
    let diff = &app.detail.diff;
    let mut actions = Vec::new();
    if diff.has_range() {
        return with_labels([A::Comment, A::Copy, A::MarkRange, A::Back, A::Help]);
    }
    match diff.row(diff.cursor()).map(|placed| (placed.file, placed.row)) {
        Some((file, DiffPageRow::Header)) => {
            actions.push((A::Open, if diff.files()[file].is_folded { "unfold" } else { "fold" }));
            actions.push((A::Viewed, A::Viewed.footer_label()));
        }
        Some((_, DiffPageRow::Gap(_))) => actions.push((A::Open, "show lines")),
        _ if finding_at_cursor(app).is_some() => {
            actions.push((A::Open, "text"));
            let own = findings_at_cursor(app).iter().any(|id| app.is_own_comment(id)).then_some(A::Rewrite);
            let deciding = own.into_iter().chain([A::Addressed, A::Dismiss]);
            actions.extend(deciding.map(|action| (action, action.footer_label())));
        }
        Some((_, DiffPageRow::Code(code))) if code.kind != RunKind::Context => {
            actions.push((A::ViewedChange, A::ViewedChange.footer_label()));
        }
        _ => {}
    }
    // Where the diff is always unified, the key says only why.
    let sides = diff.has_two_sides().then_some(A::SideBySide);
    let rest = [A::NextHunk, A::NextFinding, A::Comment].into_iter().chain(sides);
    let rest = rest.chain([A::Zoom, A::Search, A::Back, A::Help]);
    actions.extend(rest.map(|action| (action, action.footer_label())));
    actions
}
