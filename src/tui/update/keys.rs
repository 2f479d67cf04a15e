//! Executes key presses and actions.

use super::super::app::{App, ContextListing, NoticeLevel, Pane, PendingCount, PendingCountKind, PendingKeys};
use super::super::custom_commands::CommandForm;
use super::super::diff;
use super::super::input::{KeyCode, KeyEvent};
use super::super::keymap::{Action, KeyMatch};
use super::super::line_edit::LineEdit;
use super::super::message::{AppCommand, ChosenReviewer, DetailSubject, Tab, TriageOrder};
use super::super::views::confirm::{ConfirmAction, ConfirmView};
use super::super::views::help::HelpView;
use super::super::views::prompt::{InputPromptKind, PromptView};
use super::super::views::{self, KeyPress, View, fix};
use super::command_forms::ask_or_run;
use super::comments;
use super::marks::{toggle_all_marks, toggle_mark_range, toggle_marks};
use super::menus::{build_copy_menu, build_file_order_menu, build_order_menu, build_run_order_menu};
use super::mouse::toggle_mouse;
use super::search::{present_row, search_next};
use super::{
    ask, data, files, folds, keep_theme, parse_run_id, push_quit, rebuild_page, runs, secrets, switch_theme, triage,
};
use crate::domain::{FindingStatus, Scope};
use crate::store::{RunRow, WatcherStatus};

/// Handles a key press.
pub fn handle_key(app: &mut App, key: KeyEvent, commands: &mut Vec<AppCommand>) {
    let context = app.key_context();
    if let Some(pending) = app.pending_keys.take() {
        return continue_sequence(app, pending, key, commands);
    }
    let action = match app.keymap.find(context, &[key]) {
        KeyMatch::Prefix => return begin_sequence(app, key),
        KeyMatch::Action(action) => Some(ask::choose_ask_or_help(app, action)),
        KeyMatch::Unbound => None,
    };
    if let Some(action) = action
        && run_over_views(app, action, commands)
    {
        return;
    }
    if views::handle_key(app, KeyPress { key, action }, commands) {
        return;
    }
    let count = app.count.take().filter(|count| !count.has_timed_out(app.now));
    if let KeyCode::Char(c @ '0'..='9') = key.code
        && key.is_text()
        && (c != '0' || count.is_some())
    {
        let kind = match count.map(|count| count.kind) {
            None if action.is_some() => PendingCountKind::Bound,
            None | Some(PendingCountKind::Count) => PendingCountKind::Count,
            Some(PendingCountKind::Bound | PendingCountKind::Ambiguous) => PendingCountKind::Ambiguous,
        };
        let (value, origin, origin_list) =
            count.map_or((0, app.panes.focus, app.panes.list), |count| (count.value, count.origin, count.origin_list));
        let value = (value * 10 + c as usize - '0' as usize).min(1_000_000);
        app.count = Some(PendingCount { value, origin, origin_list, kind, at: app.now });
        if let Some(action) = action {
            run_action(app, action, None, commands);
        }
        return;
    }
    app.notice = None;
    if let Some(action) = action {
        let count = take_count(app, count, action, commands);
        run_action(app, action, count, commands);
    }
}

/// Runs an action that works the same in front of any view: help, palette, a question about the finding of the view,
/// commands of the user, what concerns the terminal. Returns false for another action.
fn run_over_views(app: &mut App, action: Action, commands: &mut Vec<AppCommand>) -> bool {
    match action {
        // Its keys while text is searched in it.
        Action::Help if app.views.front_as::<HelpView>().is_some() => {}
        Action::Help | Action::Palette => {
            app.notice = None;
            views::open_for_action(app, action, commands);
        }
        // A view that handles a key is off the stack, and with it the loaded finding, which says who reports it.
        Action::Ask => match app.views.front().and_then(View::finding_at_hand) {
            Some(finding) => ask::plan_question_about(app, finding, commands),
            None => return false,
        },
        Action::Custom(index) => run_command(app, index, commands),
        Action::Redraw => commands.push(AppCommand::Redraw),
        Action::Suspend => commands.push(AppCommand::Suspend),
        _ => return false,
    }
    true
}

/// Runs an action that was chosen by name: the view in front takes it, else the panes.
pub fn run_chosen_action(app: &mut App, action: Action, commands: &mut Vec<AppCommand>) {
    let action = ask::choose_ask_or_help(app, action);
    if run_over_views(app, action, commands) {
        return;
    }
    // The views look at the key only if it has no action.
    let key = KeyEvent::plain(KeyCode::Enter);
    if !views::handle_key(app, KeyPress { key, action: Some(action) }, commands) {
        run_action(app, action, None, commands);
    }
}

/// Runs a command of the user with the fields of the selected item, after its questions if it has some.
fn run_command(app: &mut App, index: usize, commands: &mut Vec<AppCommand>) {
    let Some(command) = app.keymap.commands.get(index) else { return };
    match CommandForm::new(app, command) {
        Ok(form) => ask_or_run(app, form, commands),
        Err(reason) => app.show_notice(NoticeLevel::Info, reason),
    }
}

/// Waits for the key after the first key of a sequence. A number typed before it is kept for the action.
fn begin_sequence(app: &mut App, key: KeyEvent) {
    let count = app.count.take().filter(|count| !count.has_timed_out(app.now));
    app.notice = None;
    app.pending_keys = Some(PendingKeys { keys: vec![key], context: app.key_context(), views: app.views.len(), count });
}

/// Handles the next key of a sequence. Esc, and a key that goes back, end it in silence; a key that continues no
/// sequence ends it, too, and does nothing else.
fn continue_sequence(app: &mut App, mut pending: PendingKeys, key: KeyEvent, commands: &mut Vec<AppCommand>) {
    let context = pending.context;
    pending.keys.push(key);
    match app.keymap.find(context, &pending.keys) {
        KeyMatch::Prefix => app.pending_keys = Some(pending),
        KeyMatch::Action(action) => {
            let action = ask::choose_ask_or_help(app, action);
            if run_over_views(app, action, commands) {
                return;
            }
            if views::handle_key(app, KeyPress { key, action: Some(action) }, commands) {
                return;
            }
            app.notice = None;
            let count = take_count(app, pending.count, action, commands);
            run_action(app, action, count, commands);
        }
        KeyMatch::Unbound => {
            let goes_back = matches!(app.keymap.action(context, key), Some(Action::Back | Action::Abort));
            if key.code != KeyCode::Esc && !goes_back {
                app.show_notice(NoticeLevel::Info, format!("{} is not bound", pending.text()));
            }
        }
    }
}

/// Ends a sequence whose context is gone: a view has opened or closed, or another pane has the focus.
pub fn drop_stale_sequence(app: &mut App) {
    let (context, views) = (app.key_context(), app.views.len());
    app.pending_keys.take_if(|pending| (pending.context, pending.views) != (context, views));
}

/// Returns the typed number if the action accepts one; goes back to the pane in which it was typed. A verdict accepts no
/// number whose digits may have been the keys of panes: who switches panes and decides means the selected finding only.
fn take_count(
    app: &mut App,
    count: Option<PendingCount>,
    action: Action,
    commands: &mut Vec<AppCommand>,
) -> Option<usize> {
    let is_meant = match count?.kind {
        PendingCountKind::Bound => false,
        PendingCountKind::Ambiguous => accepts_count(action) && !is_verdict(action),
        PendingCountKind::Count => accepts_count(action),
    };
    let count = count.filter(|_| is_meant)?;
    if app.panes.focus != count.origin {
        focus_pane(app, count.origin, commands);
        app.panes.list = count.origin_list;
    }
    Some(count.value)
}

fn accepts_count(action: Action) -> bool {
    use Action as A;
    matches!(
        action,
        A::Down
            | A::Up
            | A::Top
            | A::Bottom
            | A::HalfPageDown
            | A::HalfPageUp
            | A::PageDown
            | A::PageUp
            | A::NextMatch
            | A::PreviousMatch
            | A::Mark
            | A::NextHunk
            | A::PreviousHunk
            | A::NextUnviewed
            | A::PreviousUnviewed
            | A::NextFile
            | A::PreviousFile
            | A::NextFinding
            | A::PreviousFinding
    ) || is_verdict(action)
}

fn is_verdict(action: Action) -> bool {
    matches!(action, Action::Addressed | Action::Dismiss | Action::Reopen | Action::Repeat)
}

/// Requests a review.
pub fn request_review(
    app: &mut App,
    scope: Option<Scope>,
    reviewer: ChosenReviewer,
    force: bool,
    commands: &mut Vec<AppCommand>,
) {
    let what = scope.as_ref().map_or_else(|| "what changed".to_owned(), |scope| app.name_scope(scope));
    app.asked_prompt = None;
    app.show_notice(NoticeLevel::Info, format!("asking for a review of {what}{}", app.display.glyphs.ellipsis));
    commands.push(AppCommand::Review { scope, reviewer, force });
}

fn open_prompt(app: &mut App, kind: InputPromptKind, line: LineEdit) {
    app.views.open(PromptView::new(kind, line));
}

/// Focuses a pane. Focusing runs or files unpins the findings that were kept visible after a decision.
pub fn focus_pane(app: &mut App, pane: Pane, commands: &mut Vec<AppCommand>) {
    if matches!(pane, Pane::Runs | Pane::Files) && !app.finding_list.overrides.pinned.is_empty() {
        data::refilter(app, commands);
    }
    app.panes.focus = pane;
    if pane != Pane::Detail {
        app.panes.list = pane;
    }
    if pane != Pane::Findings {
        app.finding_list.mark_range_start = None;
    }
}

/// Runs an action of the panes. `count` is the number typed before its key: repetitions, or a row.
fn run_action(app: &mut App, action: Action, count: Option<usize>, commands: &mut Vec<AppCommand>) {
    use Action as A;
    let times = count.unwrap_or(1);
    if diff::run_action(app, action, count, commands) {
        return;
    }
    match action {
        A::Down | A::Up if moves_by_fold(app) => folds::move_by(app, times, action == A::Down),
        A::Down | A::HalfPageDown | A::PageDown => move_by(app, compute_distance(app, action, times)),
        A::Up | A::HalfPageUp | A::PageUp => move_by(app, -compute_distance(app, action, times)),
        A::Top => go_to_end(app, 0, count),
        A::Bottom => go_to_end(app, usize::MAX, count),
        A::NextMatch => search_next(app, true, times),
        A::PreviousMatch => search_next(app, false, times),
        A::Runs => focus_pane(app, Pane::Runs, commands),
        A::Findings => focus_pane(app, Pane::Findings, commands),
        A::Files => focus_pane(app, Pane::Files, commands),
        A::NextPane => focus_neighbour(app, true, commands),
        A::PreviousPane => focus_neighbour(app, false, commands),
        A::Left | A::ScrollLeft => go_left(app, commands),
        A::Right | A::ScrollRight => go_right(app, commands),
        A::Viewed if app.panes.focus == Pane::Files => files::toggle_viewed(app, commands),
        A::Viewed => run_action(app, A::PageDown, count, commands),
        A::ViewedChange => app.show_notice(NoticeLevel::Info, diff::NO_DIFF),
        // The diff has executed them.
        A::NextHunk | A::PreviousHunk | A::NextFile | A::PreviousFile | A::NextFinding | A::PreviousFinding => {}
        A::NextUnviewed | A::PreviousUnviewed => {}
        A::SideBySide | A::Wrap | A::IgnoreSpace => {}
        A::Diff => toggle_diff(app, commands),
        A::Comment => comments::write_comment(app),
        A::Rewrite => comments::rewrite_comment(app),
        A::NextTab => switch_tab(app, true),
        A::PreviousTab => switch_tab(app, false),
        A::Reveal => secrets::toggle(app),
        A::Ledger => toggle_ledger(app, commands),
        A::LeftOut => toggle_context_listing(app, commands),
        A::Custom(index) => run_command(app, index, commands),
        A::View(_) | A::Review | A::Triage | A::Help | A::Palette => views::open_for_action(app, action, commands),
        A::Open => open_selected(app, commands),
        A::Back => go_back(app, commands),
        A::Unfold => set_run_fold(app, None),
        A::Zoom => app.panes.zoomed = !app.panes.zoomed,
        A::Mark => toggle_marks(app, times),
        A::MarkRange => toggle_mark_range(app),
        A::MarkAll => toggle_all_marks(app),
        A::Addressed => triage::set_status(app, FindingStatus::Addressed, count, commands),
        A::Reopen => triage::set_status(app, FindingStatus::Open, count, commands),
        A::Dismiss => triage::prompt_reason(app, count),
        A::Repeat => triage::repeat_last_verdict(app, count, commands),
        A::Note => triage::prompt_note(app),
        A::Ask => ask::plan_question(app, commands),
        A::SnoozeFinding => triage::prompt_snooze(app),
        A::Rate => triage::prompt_rating(app),
        A::Fix => fix::handle_key(app, commands),
        A::Undo if comments::undo_comment(app, commands) => {}
        A::Undo => triage::undo_or_redo(app, TriageOrder::Undo, commands),
        A::Redo if comments::redo_comment(app, commands) => {}
        A::Redo => triage::undo_or_redo(app, TriageOrder::Redo, commands),
        A::Filter => prompt_filter(app, commands),
        A::Search => prompt_search(app),
        A::Order if app.panes.list == Pane::Files => app.views.open(build_file_order_menu(app)),
        A::Order if app.panes.list == Pane::Runs => app.views.open(build_run_order_menu(app)),
        A::Order => app.views.open(build_order_menu(app)),
        A::Cancel => confirm_cancel(app),
        A::Pause => toggle_pause(app, commands),
        A::Watch => toggle_watch(app, commands),
        A::Sync => sync_team(app, commands),
        A::Snooze => prompt_snooze(app),
        A::Copy => open_copy_menu(app),
        A::CopyPrompt => copy_prompt(app, commands),
        A::Edit => edit_selected(app, commands),
        A::Mouse => toggle_mouse(app, commands),
        A::NextTheme => switch_theme(app),
        A::KeepTheme => keep_theme(app, commands),
        // They work in front of any view.
        A::Redraw | A::Suspend => {}
        // It was replaced by one of the two.
        A::AskOrHelp => {}
        A::Quit => push_quit(commands),
        // Only views and prompts have these.
        A::Reason1 | A::Reason2 | A::Reason3 | A::Reason4 | A::Reason5 | A::Later | A::Skip | A::Return => {}
        A::Accept | A::Abort | A::Mute | A::Forget | A::Export | A::Reload | A::Complete => {}
        A::NextReviewer | A::PreviousReviewer | A::Force => {}
        A::PreviousTurn | A::NextTurn | A::FirstTurn | A::Follow => {}
        A::NewLine | A::CursorLeft | A::CursorRight | A::CursorStart | A::CursorEnd => {}
        A::DeleteLeft | A::DeleteRight | A::DeleteWord | A::DeleteLine => {}
    }
}

/// Returns the number of rows that an action moves, up or down, if it is repeated `times`.
fn compute_distance(app: &App, action: Action, times: usize) -> isize {
    let height = app.pane_height(app.panes.focus);
    let page = if app.panes.focus == Pane::Findings { app.finding_list.rows_per_page(height) } else { height };
    let rows = match action {
        Action::HalfPageDown | Action::HalfPageUp => (page / 2).max(1),
        Action::PageDown | Action::PageUp => page.saturating_sub(1).max(1),
        _ => 1,
    };
    isize::try_from(rows * times).unwrap_or(isize::MAX)
}

/// Goes to the row with the typed number (1-based), else to row `end`.
fn go_to_end(app: &mut App, end: usize, count: Option<usize>) {
    let row = count.map_or(end, |row| row.saturating_sub(1));
    go_to_row(app, row);
    if moves_by_fold(app) {
        folds::select_fold(app, row, count.is_some());
    }
}

/// Focuses the next or the previous pane; wraps around.
fn focus_neighbour(app: &mut App, forward: bool, commands: &mut Vec<AppCommand>) {
    const ORDER: [Pane; 4] = [Pane::Runs, Pane::Findings, Pane::Files, Pane::Detail];
    let at = ORDER.iter().position(|pane| *pane == app.panes.focus).unwrap_or(0);
    let next = if forward { at + 1 } else { at + ORDER.len() - 1 };
    focus_pane(app, ORDER[next % ORDER.len()], commands);
}

/// Goes to the previous tab, from the first tab to the list; folds a run.
fn go_left(app: &mut App, commands: &mut Vec<AppCommand>) {
    match (app.panes.focus, app.detail.tab) {
        (Pane::Detail, Tab::Page) => focus_pane(app, app.panes.list, commands),
        (Pane::Detail, _) => switch_tab(app, false),
        (Pane::Runs, _) => set_run_fold(app, Some(false)),
        _ => {}
    }
}

/// Unfolds a run, else goes to the detail; in the detail, goes to the next tab.
fn go_right(app: &mut App, commands: &mut Vec<AppCommand>) {
    match app.panes.focus {
        Pane::Detail => switch_tab(app, true),
        Pane::Runs if can_unfold(app) => set_run_fold(app, Some(true)),
        Pane::Findings if app.selected_finding().is_some() => choose_finding(app, commands),
        _ => focus_pane(app, Pane::Detail, commands),
    }
}

/// Goes to the diff of the selected item, or from there back to its page in the list that led to it.
fn toggle_diff(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.detail.tab == Tab::Diff && app.panes.focus == Pane::Detail {
        app.detail.tab = Tab::Page;
        app.detail.scroll = 0;
        return focus_pane(app, app.panes.list, commands);
    }
    open_diff(app, commands);
}

/// Opens the diff of the selected item.
pub fn open_diff(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.detail.subject == DetailSubject::Nothing {
        return app.show_notice(NoticeLevel::Info, "nothing is selected");
    }
    if app.detail.tab != Tab::Diff {
        app.detail.tab = Tab::Diff;
        app.detail.scroll = 0;
    }
    focus_pane(app, Pane::Detail, commands);
}

fn toggle_ledger(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.detail.tab = if app.detail.tab == Tab::Ledger { Tab::Page } else { Tab::Ledger };
    app.detail.scroll = 0;
    if app.layout().pane(Pane::Detail).is_none() {
        focus_pane(app, Pane::Detail, commands);
    }
}

fn prompt_filter(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.panes.focus != Pane::Findings {
        focus_pane(app, Pane::Findings, commands);
    }
    let before = app.finding_list.filter_text.clone();
    let text = if before.is_empty() { String::new() } else { format!("{before} ") };
    open_prompt(app, InputPromptKind::Filter { before }, LineEdit::new(&text));
}

fn prompt_search(app: &mut App) {
    let from = present_row(app);
    let before = std::mem::take(&mut app.search);
    open_prompt(app, InputPromptKind::Search { before, from }, LineEdit::default());
}

/// Copies the marked findings, else the selected one, as a prompt for a coding agent.
fn copy_prompt(app: &mut App, commands: &mut Vec<AppCommand>) {
    let findings = triage::collect_selected(app);
    if findings.is_empty() {
        app.show_notice(NoticeLevel::Info, "no finding is selected".to_owned());
    } else {
        commands.push(AppCommand::CopyPrompt(findings));
    }
}

fn prompt_snooze(app: &mut App) {
    let offered = if app.store.watch.snoozed.is_some() { "off" } else { "30m" };
    open_prompt(app, InputPromptKind::Snooze, LineEdit::with_suggestion(offered));
}

/// Starts the watcher, or asks the running one to end.
fn toggle_watch(app: &mut App, commands: &mut Vec<AppCommand>) {
    let ends = app.store.watch.watcher != WatcherStatus::None;
    let said = if ends { "asking the watcher to end" } else { "beginning to watch" };
    app.show_notice(NoticeLevel::Info, format!("{said}{}", app.display.glyphs.ellipsis));
    commands.push(AppCommand::Watch);
}

/// Starts an exchange with the team, or says how to join one.
fn sync_team(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.store.team.is_none() {
        let said = "this repository has no team here; `revdeck team join` begins one and says what would leave";
        app.show_notice(NoticeLevel::Info, said.to_owned());
        return;
    }
    commands.push(AppCommand::Sync);
}

fn open_copy_menu(app: &mut App) {
    match build_copy_menu(app) {
        Some(menu) => app.views.open(menu),
        None => app.show_notice(NoticeLevel::Info, "nothing is selected"),
    }
}

/// Opens the selected item in the editor.
fn edit_selected(app: &mut App, commands: &mut Vec<AppCommand>) {
    match selected_location(app) {
        Some((path, line)) => commands.push(AppCommand::Edit { path, line }),
        None => app.show_notice(NoticeLevel::Info, "no file is selected"),
    }
}

/// Switches between the sent and the omitted pieces of the context.
fn toggle_context_listing(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.shown_context().is_none() {
        return app.show_notice(NoticeLevel::Info, "nothing to switch: this page lists no context");
    }
    app.detail.context_listing = match app.detail.context_listing {
        ContextListing::Sent => ContextListing::LeftOut,
        ContextListing::LeftOut => ContextListing::Sent,
    };
    if app.layout().pane(Pane::Detail).is_none() {
        focus_pane(app, Pane::Detail, commands);
    }
    app.detail.scroll = 0;
    rebuild_page(app);
}

/// Returns the selected row (0-based) of the list that had the focus last.
pub fn selected_row(app: &App) -> usize {
    match app.panes.list {
        Pane::Runs => app.run_list.cursor.selected,
        Pane::Files => app.file_list.cursor.selected,
        Pane::Findings | Pane::Detail => app.finding_list.cursor.selected,
    }
}

fn move_by(app: &mut App, by: isize) {
    let at = match app.panes.focus {
        Pane::Detail => app.detail.scroll,
        _ => selected_row(app),
    };
    go_to_row(app, at.saturating_add_signed(by));
}

pub fn go_to_row(app: &mut App, at: usize) {
    let height = app.pane_height(app.panes.focus);
    match app.panes.focus {
        Pane::Runs => app.run_list.step_to(at, height),
        Pane::Findings => app.finding_list.step_to(at, height),
        Pane::Files => app.file_list.step_to(at, height),
        Pane::Detail if diff::is_shown(app) => app.detail.diff.move_to(at),
        Pane::Detail => app.detail.scroll = at.min(app.detail.doc.lines.len().saturating_sub(height)),
    }
}

fn switch_tab(app: &mut App, forward: bool) {
    let tabs = app.tabs();
    let at = tabs.iter().position(|tab| *tab == app.detail.tab).unwrap_or(0);
    let next = if forward { at + 1 } else { at.saturating_sub(1) };
    if let Some(tab) = tabs.get(next).filter(|_| next != at) {
        app.detail.tab = *tab;
        app.detail.scroll = 0;
    }
}

fn can_unfold(app: &App) -> bool {
    app.run_list.entries.get(app.run_list.cursor.selected).is_some_and(|entry| entry.folded.total() > 0)
}

fn set_run_fold(app: &mut App, wanted: Option<bool>) {
    let Some(entry) = app.run_list.entries.get(app.run_list.cursor.selected).copied() else { return };
    let at = if entry.nested {
        app.run_list.entries[..app.run_list.cursor.selected].iter().rposition(|entry| !entry.nested).unwrap_or(0)
    } else {
        app.run_list.cursor.selected
    };
    let Some(root) = app.run_list.entries.get(at).copied() else { return };
    let id = app.store.view.run(root.index as usize).id.to_owned();
    let open = wanted.unwrap_or(!root.unfolded);
    if open && root.folded.total() > 0 {
        app.run_list.unfolded.insert(id.clone());
    } else if !open && root.unfolded {
        app.run_list.unfolded.remove(&id);
    } else {
        return;
    }
    let selected = if open { app.selected_run().map(|run| run.id.to_owned()) } else { Some(id) };
    runs::rebuild_runs(app, selected.as_deref());
}

pub(super) fn open_selected(app: &mut App, commands: &mut Vec<AppCommand>) {
    match app.panes.focus {
        Pane::Runs => {
            if let Some(run) = app.selected_run().map(|run| run.id.to_owned()) {
                focus_pane(app, Pane::Findings, commands);
                data::show_run(app, &run, commands);
            }
        }
        Pane::Files => open_selected_file(app, commands),
        Pane::Findings => choose_finding(app, commands),
        Pane::Detail => {
            folds::toggle_fold(app);
        }
    }
}

/// Goes to the page of the selected finding, whatever tab was open before.
fn choose_finding(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.selected_finding().is_none() {
        return;
    }
    focus_pane(app, Pane::Detail, commands);
    if app.detail.tab != Tab::Page {
        app.detail.tab = Tab::Page;
        app.detail.scroll = 0;
    }
}

/// Folds or unfolds what the row stands for, or narrows the findings to the selected file.
fn open_selected_file(app: &mut App, commands: &mut Vec<AppCommand>) {
    if data::toggle_files(app) {
        return;
    }
    let Some(path) = app.selected_file().map(|file| file.path.clone()) else { return };
    focus_pane(app, Pane::Findings, commands);
    data::show_path(app, &path, commands);
}

/// Returns true if up and down move between folds.
fn moves_by_fold(app: &App) -> bool {
    app.panes.focus == Pane::Detail && app.detail.doc.folds.len() > 1
}

/// Goes one step back: the innermost state is left first.
fn go_back(app: &mut App, commands: &mut Vec<AppCommand>) {
    if app.finding_list.mark_range_start.take().is_some() {
        return;
    }
    if app.panes.focus == Pane::Detail {
        focus_pane(app, app.panes.list, commands);
    } else if !app.finding_list.marks.is_empty() {
        app.finding_list.marks.clear();
    } else if !app.search.is_empty() {
        app.search.clear();
    } else if app.panes.zoomed {
        app.panes.zoomed = false;
    } else if data::widen(app, commands) {
        // The step back was a wider list.
    } else if let Some(key) = app.keymap.key_of(app.key_context(), Action::Quit) {
        app.show_notice(NoticeLevel::Info, format!("{key} quits; reviews go on without the cockpit"));
    }
}

fn confirm_cancel(app: &mut App) {
    let chosen = app
        .selected_run()
        .filter(|run| app.panes.list == Pane::Runs && !run.status.is_terminal())
        .or_else(|| app.headline_run().filter(|run| !run.status.is_terminal()))
        .map(|run| (run.id.to_owned(), format!("Cancel the review of {}? What it found stays.", app.name_run(&run))));
    match chosen {
        Some((run, text)) => app.views.open(ConfirmView { action: ConfirmAction::Cancel(run), text }),
        None => app.show_notice(NoticeLevel::Info, "no review is running"),
    }
}

/// Returns the run that can be paused or resumed: the selected run, or the headline run outside the list of runs.
pub fn pausable_run(app: &App) -> Option<RunRow<'_>> {
    let run = if app.panes.list == Pane::Runs { app.selected_run() } else { app.headline_run() };
    run.filter(|run| !run.status.is_terminal())
}

fn toggle_pause(app: &mut App, commands: &mut Vec<AppCommand>) {
    let chosen = pausable_run(app).map(|run| (run.id.to_owned(), run.paused));
    let Some((id, paused)) = chosen else {
        let said = if app.panes.list == Pane::Runs { "this review is not running" } else { "no review is running" };
        return app.show_notice(NoticeLevel::Info, said);
    };
    let Some(run) = parse_run_id(&id) else { return };
    app.show_notice(NoticeLevel::Info, if paused { "asking the run to go on" } else { "asking the run to pause" });
    commands.push(if paused { AppCommand::Resume(run) } else { AppCommand::Pause(run) });
}

/// Returns path and line of the selected item, for the editor.
fn selected_location(app: &App) -> Option<(String, u32)> {
    if let Some(place) = diff::source_at_cursor(app) {
        return Some(place);
    }
    match &app.detail.subject {
        DetailSubject::Finding(id) => {
            let finding = app.finding_by_id(id)?;
            Some((finding.path.to_owned(), finding.line_start))
        }
        DetailSubject::File { path, .. } => Some((path.clone(), 1)),
        DetailSubject::Run(_) | DetailSubject::Nothing => None,
    }
}
