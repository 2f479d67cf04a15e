//! Draws pane titles, message line and footer.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::super::app::{App, ContextListing, NoticeLevel, Pane, PendingCountKind};
use super::super::bars::{self, FooterKey};
use super::super::diff;
use super::super::doc::{self, FoldKey};
use super::super::keymap::{Action, KeyContext};
use super::super::layout::{MIN_SCREEN_SIZE, PaneArea, ScreenLayout};
use super::super::message::DetailSubject;
use super::super::pages;
use super::super::theme::Role;
use super::super::update;
use super::detail::draw_line;
use super::painter::Painter;
use crate::runner::BUILTIN_REVIEWER;
use crate::tui::doc::TextColumns;

/// Draws a message on a screen that is too small.
pub fn draw_too_small(painter: &mut Painter<'_>) {
    let area = painter.buffer.area;
    let text = format!("{}x{} is too small", area.width, area.height);
    let need = format!("revdeck needs {}x{}", MIN_SCREEN_SIZE.0, MIN_SCREEN_SIZE.1);
    for (row, line) in [(0, text), (1, need)] {
        let x = area.width.saturating_sub(line.len() as u16) / 2;
        painter.draw_text(x, area.height.saturating_sub(2) / 2 + row, area.width, &line, Role::Muted);
    }
}

pub fn draw_divider(painter: &mut Painter<'_>, area: Rect) {
    painter.draw_vertical_rule(area.x, area.y, area.height, Role::Rule);
}

/// Columns before a fact of a title.
pub const FACT_GAP: u16 = 2;
/// Columns of the rule before the tail of a title, with the blanks beside it. A title with a tail has more than these.
const TAIL_GAP: u16 = 4;

/// Returns the key that goes to a pane.
fn find_title_key(app: &App, pane: Pane) -> Option<String> {
    let action = match pane {
        Pane::Runs => Action::Runs,
        Pane::Findings => Action::Findings,
        Pane::Files => Action::Files,
        Pane::Detail => return None,
    };
    app.keymap.key_of(KeyContext::Global, action).map(ToString::to_string)
}

/// Returns the columns of the title of a pane that are left for facts, with the gap before each, if it shows its tail.
pub fn room_for_facts(app: &App, area: PaneArea, (pane, name): (Pane, &str), tail: &str) -> usize {
    let key = find_title_key(app, pane).map_or(0, |key| key.width() + 1);
    let taken = key + name.width() + tail.width() + usize::from(TAIL_GAP) + 1;
    usize::from(area.title.width).saturating_sub(taken)
}

/// Draws `2 Findings  12 of 340  status:undecided ──────── p0 p1 p2 p3`; the rule fills the rest of the line.
pub fn draw_title(
    painter: &mut Painter<'_>,
    area: PaneArea,
    pane: Pane,
    name: &str,
    facts: &[(String, Role)],
    tail: &str,
) {
    let app = painter.app;
    let focused = app.panes.focus == pane;
    let Rect { x, y, width, .. } = area.title;
    let mut used = 0;
    if let Some(key) = find_title_key(app, pane) {
        used += painter.draw_text(x, y, width, &key, if focused { Role::Title } else { Role::Faint }) + 1;
    }
    used += painter.draw_text(
        x + used,
        y,
        width.saturating_sub(used),
        name,
        if focused { Role::Title } else { Role::Muted },
    );
    for (fact, role) in facts {
        if !fact.is_empty() && used + 4 < width {
            used += FACT_GAP;
            used += painter.draw_text(x + used, y, width - used, fact, *role);
        }
    }
    let tail_width = tail.width() as u16;
    let mut end = width;
    if !tail.is_empty() && used + tail_width + TAIL_GAP < width {
        painter.draw_text_right(x, y, width, tail, Role::Faint);
        end -= tail_width + 1;
    }
    if used + 1 < end {
        painter.draw_rule(x + used + 1, y, end - used - 1, if focused { Role::Focus } else { Role::Rule });
    }
}

/// Draws the notice or the store problem, on as many lines as it needs and the screen has.
pub fn draw_notice(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    let app = painter.app;
    let Rect { x, y, width, height } = layout.notice;
    if height == 0 {
        return;
    }
    let Some((tone, text)) = app.current_notice() else {
        if app.decisions.pending > 0 {
            painter.draw_text(
                x + 1,
                y,
                width.saturating_sub(2),
                &format!("storing{}", app.display.glyphs.ellipsis),
                Role::Muted,
            );
        }
        return;
    };
    let (sign, role) = match tone {
        NoticeLevel::Success => (app.display.glyphs.done, Role::Good),
        NoticeLevel::Info => (app.display.glyphs.dot, Role::Muted),
        NoticeLevel::Error => (app.display.glyphs.trouble, Role::Bad),
    };
    painter.draw_text(x + 1, y, 1, sign, role);
    let role = if tone == NoticeLevel::Error { Role::Warn } else { Role::Normal };
    let lines = doc::wrap_words(&text, layout.notice_width());
    let last = usize::from(height.saturating_sub(1));
    for (row, line) in lines.iter().take(last).enumerate() {
        painter.draw_text(x + 3, y + row as u16, width.saturating_sub(4), line, role);
    }
    let rest = lines.get(last..).unwrap_or_default().join(" ");
    painter.draw_text(x + 3, y + last as u16, width.saturating_sub(4), &rest, role);
}

/// Draws the keys that are useful in the current context, as many as the screen has room for.
pub fn draw_footer(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let Rect { y, width, .. } = area;
    // A view on a small screen may have drawn here.
    painter.fill(area, painter.style(Role::Normal));
    let mut end = width.saturating_sub(1);
    for (text, role) in footer_facts(app) {
        end = end.saturating_sub(painter.draw_text_right(0, y, end, &text, role) + 2);
    }
    for FooterKey { x, key, word, .. } in bars::place_footer_keys(app, end) {
        let used = painter.draw_text(x, y, end.saturating_sub(x), &key.to_string(), Role::Key) + 1;
        painter.draw_text(x + used, y, end.saturating_sub(x + used), word, Role::Muted);
    }
}

/// Returns the first column at the right end of the footer that is taken by a count or by the number of marked findings.
pub fn footer_end(app: &App, width: u16) -> u16 {
    let mut end = width.saturating_sub(1);
    for text in footer_facts(app) {
        end = end.saturating_sub(text.0.width() as u16 + 2);
    }
    end
}

/// Returns the facts at the right end of the footer, from right to left: the count being typed, the marked findings.
fn footer_facts(app: &App) -> impl Iterator<Item = (String, Role)> {
    let count = app.count.filter(|count| count.kind != PendingCountKind::Bound);
    let marked = app.count_marked();
    let count = count.map(|count| (count.value.to_string(), Role::Accent));
    count.into_iter().chain((marked > 0).then(|| (format!("{marked} marked"), Role::MarkSign)))
}

/// Returns the actions of the footer, most useful first.
pub fn footer_actions(app: &App, context: KeyContext) -> Vec<(Action, &'static str)> {
    use Action as A;
    if let Some(view) = app.views.front() {
        return view.footer(app);
    }
    let actions = match context {
        // There is nothing to open, to unfold or to filter yet.
        KeyContext::Runs | KeyContext::Global if app.run_list.entries.is_empty() => vec![A::Review, A::Help, A::Quit],
        KeyContext::Runs | KeyContext::Global => {
            let third = if app.has_active_runs() {
                Some((A::Cancel, A::Cancel.footer_label()))
            } else {
                unfold_label(app).map(|label| (A::Unfold, label))
            };
            let first = [A::Open, A::Review].map(|action| (action, action.footer_label())).into_iter().chain(third);
            let last = [A::Ledger, A::Filter, A::Palette, A::Help, A::Quit];
            let last = last.map(|action| (action, action.footer_label()));
            return first.chain(pause_action(app)).chain(last).collect();
        }
        KeyContext::Findings => {
            vec![A::Addressed, A::Dismiss, A::Diff, A::Triage, A::Filter, A::Comment, A::Palette, A::Help, A::Quit]
        }
        KeyContext::Files => vec![A::Open, A::Right, A::Edit, A::Copy, A::Search, A::Palette, A::Help, A::Quit],
        KeyContext::Detail if diff::is_shown(app) => return diff::footer_actions(app),
        KeyContext::Detail if !app.detail.doc.folds.is_empty() => {
            let chosen = update::chosen_fold(app).and_then(|at| app.detail.doc.folds.get(at));
            let word = match chosen {
                Some(fold) if matches!(fold.key, FoldKey::Member(_)) => "open",
                Some(fold) if app.detail.open_folds.contains(&fold.key) => "fold",
                _ => "unfold",
            };
            let last = [A::NextTab, A::Zoom, A::Search, A::Back, A::Help].map(|action| (action, action.footer_label()));
            return std::iter::once((A::Open, word)).chain(pause_action(app)).chain(last).collect();
        }
        KeyContext::Detail if app.shown_context().is_some() => {
            let other = match app.detail.context_listing {
                ContextListing::Sent => "left out",
                ContextListing::LeftOut => "sent",
            };
            let last = [A::NextTab, A::Zoom, A::Search, A::Back, A::Help].map(|action| (action, action.footer_label()));
            return std::iter::once((A::LeftOut, other)).chain(pause_action(app)).chain(last).collect();
        }
        // Runs and files have no triage actions.
        KeyContext::Detail if matches!(app.detail.subject, DetailSubject::Run(_)) => {
            vec![A::NextTab, A::Review, A::Zoom, A::Search, A::Back, A::Help]
        }
        KeyContext::Detail if matches!(app.detail.subject, DetailSubject::File { .. }) => {
            vec![A::Edit, A::NextTab, A::Zoom, A::Search, A::Back, A::Help]
        }
        // The ledger of an empty list.
        KeyContext::Detail if app.detail.subject == DetailSubject::Nothing => {
            vec![A::NextTab, A::Review, A::Zoom, A::Search, A::Back, A::Help]
        }
        KeyContext::Detail => vec![A::Addressed, A::Dismiss, A::Edit, A::NextTab, A::Zoom, A::Back, A::Help],
        // The keys of views.
        _ => Vec::new(),
    };
    actions.into_iter().map(|action| (action, action.footer_label())).collect()
}

/// Returns the label of the key that unfolds or folds the runs below the selected one; `None` if there are none.
fn unfold_label(app: &App) -> Option<&'static str> {
    let entry = app.run_list.entries.get(app.run_list.cursor.selected).filter(|entry| entry.member.is_none())?;
    match (entry.nested || entry.unfolded, entry.folded.total()) {
        (true, _) => Some("fold"),
        (false, 1..) => Some(Action::Unfold.footer_label()),
        (false, 0) => None,
    }
}

/// Returns the pause or resume action if the run supports it.
fn pause_action(app: &App) -> Option<(Action, &'static str)> {
    let run = update::pausable_run(app).filter(|run| run.reviewer != BUILTIN_REVIEWER)?;
    Some((Action::Pause, if run.paused { "go on" } else { "pause" }))
}

/// Says in an empty list what is missing; where no page beside it says what to do, the list does.
pub fn draw_empty_list(painter: &mut Painter<'_>, body: Rect, text: &str, role: Role) {
    let app = painter.app;
    if app.layout().pane(Pane::Detail).is_some() {
        for (line, y) in doc::wrap_words(text, usize::from(body.width)).iter().zip(body.y..body.bottom()) {
            painter.draw_text(body.x, y, body.width, line, role);
        }
        return;
    }
    let page = pages::build_empty_page(app, usize::from(body.width));
    for (line, y) in page.lines.iter().zip(body.y..body.bottom()) {
        draw_line(painter, body.x, y, body.width, line, "");
    }
}

/// Returns the style of the selection bar in a pane.
pub fn pane_selection_style(painter: &Painter<'_>, pane: Pane) -> ratatui::style::Style {
    selection_style(painter, painter.app.panes.focus == pane)
}

/// Returns the style of the selection bar with or without focus.
pub fn selection_style(painter: &Painter<'_>, focused: bool) -> ratatui::style::Style {
    let style = painter.style(if focused { Role::Selected } else { Role::SelectedIdle });
    if style.add_modifier.contains(Modifier::REVERSED) { style.remove_modifier(Modifier::DIM) } else { style }
}

/// Returns the style laid over the texts of the selected row of a window, whose bar has this style. Texts without a colour of
/// their own keep that of the terminal, except on a reversed bar, which would look patchy.
pub fn window_overlay_style(bar: ratatui::style::Style) -> ratatui::style::Style {
    match bar.add_modifier.contains(Modifier::REVERSED) {
        true => bar.remove_modifier(Modifier::DIM),
        false => ratatui::style::Style { fg: None, ..bar },
    }
}
