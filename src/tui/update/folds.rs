//! Moves between the folds of a page, opens and closes them. A row that leads elsewhere is a fold, too.
//!
//! - A step selects the next fold only if the current one is fully visible, else it scrolls by one line. So the
//!   up and down keys reach every line.

use super::super::app::{App, NoticeLevel, Pane};
use super::super::doc::{DocFold, FoldKey};
use super::rebuild_page;
use super::runs::select_member;

/// Returns the index of the selected fold, else of the first visible one.
pub fn selected_fold(app: &App) -> Option<usize> {
    let folds = &app.detail.doc.folds;
    let chosen = app.detail.fold.and_then(|key| folds.iter().position(|fold| fold.key == key));
    match chosen.filter(|at| is_visible(app, &folds[*at])) {
        Some(at) => Some(at),
        None => folds.iter().position(|fold| is_visible(app, fold)),
    }
}

fn is_visible(app: &App, fold: &DocFold) -> bool {
    (app.detail.scroll..app.detail.scroll + app.pane_height(Pane::Detail)).contains(&fold.line)
}

/// Moves by a number of steps.
pub fn move_by(app: &mut App, steps: usize, down: bool) {
    for _ in 0..steps.min(10_000) {
        let before = (app.detail.scroll, app.detail.fold);
        move_one(app, down);
        if before == (app.detail.scroll, app.detail.fold) {
            return;
        }
    }
}

fn move_one(app: &mut App, down: bool) {
    let folds = &app.detail.doc.folds;
    let bottom = app.detail.scroll + app.pane_height(Pane::Detail);
    let next = match (selected_fold(app), down) {
        (None, _) => None,
        // The first visible fold was not selected yet.
        (Some(at), _) if app.detail.fold != Some(folds[at].key) => folds.get(at),
        // Down from a fully visible fold; up only to a visible neighbour.
        (Some(at), true) => folds.get(at + 1).filter(|next| next.line <= bottom),
        (Some(at), false) => at.checked_sub(1).and_then(|at| folds.get(at)).filter(|fold| is_visible(app, fold)),
    };
    match next.copied() {
        Some(fold) => {
            app.detail.fold = Some(fold.key);
            if down {
                scroll_to_fold(app, fold.line);
            }
        }
        None if down => {
            app.detail.scroll =
                (app.detail.scroll + 1).min((app.detail.doc.lines.len() + app.detail.scroll).saturating_sub(bottom))
        }
        None => app.detail.scroll = app.detail.scroll.saturating_sub(1),
    }
}

/// Scrolls until the fold at `line` is fully visible; its first line has precedence.
fn scroll_to_fold(app: &mut App, line: usize) {
    let end = app
        .detail
        .doc
        .folds
        .iter()
        .map(|fold| fold.line)
        .find(|next| *next > line)
        .unwrap_or(app.detail.doc.lines.len());
    let height = app.pane_height(Pane::Detail);
    app.detail.scroll = app.detail.scroll.max(end.saturating_sub(height)).min(line);
}

/// Selects a fold by its 0-based index (clamped to the last one); scrolls to it if `must_show`.
pub fn select_fold(app: &mut App, at: usize, must_show: bool) {
    let Some(fold) = app.detail.doc.folds.get(at.min(app.detail.doc.folds.len().saturating_sub(1))).copied() else {
        return;
    };
    app.detail.fold = Some(fold.key);
    if must_show {
        scroll_to_fold(app, fold.line);
    }
}

/// Selects the fold whose title is at a line of the page. Returns false if there is none.
pub fn select_fold_at(app: &mut App, line: usize) -> bool {
    let fold = app.detail.doc.folds.iter().find(|fold| fold.line == line).copied();
    app.detail.fold = fold.map(|fold| fold.key).or(app.detail.fold);
    fold.is_some()
}

/// Goes to the run of a member of the panel on the page, given by its number; its page has the same tab. While the page is
/// still that of the run before, nothing happens.
fn open_member(app: &mut App, number: u32) {
    if app.detail.page.as_ref().is_none_or(|(subject, ..)| *subject != app.detail.subject) {
        return;
    }
    let chosen = app.subject_run().and_then(|panel| {
        let (member, _) = panel.panel_members().nth(number as usize)?;
        app.store.view.run_index(member)?;
        Some((panel.id.to_owned(), member.to_owned()))
    });
    match chosen {
        Some((panel, member)) => select_member(app, &panel, &member),
        None => app.show_notice(NoticeLevel::Info, "the run of this member is not listed"),
    }
}

/// Opens or closes the selected fold, or goes where it leads. Returns false if there is none.
pub fn toggle_fold(app: &mut App) -> bool {
    let Some(fold) = selected_fold(app).and_then(|at| app.detail.doc.folds.get(at)).copied() else { return false };
    app.detail.fold = Some(fold.key);
    if let FoldKey::Member(number) = fold.key {
        open_member(app, number);
        return true;
    }
    let opened = !app.detail.open_folds.remove(&fold.key);
    if opened {
        app.detail.open_folds.insert(fold.key);
    }
    rebuild_page(app);
    if opened && let Some(fold) = app.detail.doc.folds.iter().find(|known| known.key == fold.key).copied() {
        scroll_to_fold(app, fold.line);
    }
    true
}
