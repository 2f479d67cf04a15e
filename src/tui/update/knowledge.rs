//! Handles the keys of the knowledge view. Reads and writes are requested; a change is shown only after it is
//! stored.

use super::super::app::{App, ConfirmAction, InputPromptKind, NoticeLevel, Overlay};
use super::super::keymap::Action;
use super::super::knowledge::{self, ExportOverwrite, KnowledgeOrder, KnowledgePane};
use super::super::line_edit::LineEdit;
use super::super::message::AppCommand;
use super::{confirm_if_idle, keys, push_quit};
use crate::domain::{MuteAction, text};

/// Default path of an export, outside the reviewed files.
const DEFAULT_EXPORT_PATH: &str = "~/revdeck-knowledge.json";

pub fn handle_key(app: &mut App, action: Option<Action>, commands: &mut Vec<AppCommand>) {
    use Action as A;
    let Some(action) = action else { return };
    match action {
        A::Abort | A::Knowledge => app.knowledge = None,
        A::Back => go_back(app),
        A::NextPane | A::PreviousPane => switch_pane(app, None),
        A::Right | A::Open => switch_pane(app, Some(KnowledgePane::Page)),
        A::Left => switch_pane(app, Some(KnowledgePane::List)),
        A::NextTab => knowledge::select_language(app, true),
        A::PreviousTab => knowledge::select_language(app, false),
        A::Unfold => knowledge::toggle_fold(app),
        A::Search | A::Filter => {
            let before = app.knowledge.as_ref().map_or_else(String::new, |view| view.filter.clone());
            let text = if before.is_empty() { String::new() } else { format!("{before} ") };
            keys::open_prompt(app, InputPromptKind::Patterns { before }, LineEdit::new(&text));
        }
        A::Mute => toggle_mute(app, commands),
        A::Forget => confirm_forget(app),
        A::Export => keys::open_prompt(app, InputPromptKind::Export, LineEdit::with_suggestion(DEFAULT_EXPORT_PATH)),
        A::Reload => {
            app.show_notice(NoticeLevel::Info, format!("reading it again{}", app.glyphs.ellipsis));
            commands.push(AppCommand::Knowledge(KnowledgeOrder::Read));
        }
        A::Help => app.overlay = Overlay::Help { offset: 0 },
        A::Redraw => commands.push(AppCommand::Redraw),
        A::Suspend => commands.push(AppCommand::Suspend),
        A::Quit => push_quit(commands),
        action => move_or_scroll(app, action),
    }
}

/// Moves the selection, or scrolls the page if it has the focus.
fn move_or_scroll(app: &mut App, action: Action) {
    use Action as A;
    let Some(view) = &app.knowledge else { return };
    let (side, at) = (view.focus, view.cursor.selected);
    let height = match side {
        KnowledgePane::List => knowledge::list_height(app),
        KnowledgePane::Page => knowledge::page_height(app),
    };
    let by = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
    let (half, page) = (by((height / 2).max(1)), by(height.saturating_sub(1).max(1)));
    let by = match action {
        A::Down => 1,
        A::Up => -1,
        A::HalfPageDown => half,
        A::HalfPageUp => -half,
        A::PageDown => page,
        A::PageUp => -page,
        A::Top => isize::MIN,
        A::Bottom => isize::MAX,
        _ => return,
    };
    match side {
        KnowledgePane::List => knowledge::select_row(app, at.saturating_add_signed(by)),
        KnowledgePane::Page => knowledge::scroll(app, by),
    }
}

/// Focuses a half of the view; `None` means the other half.
fn switch_pane(app: &mut App, to: Option<KnowledgePane>) {
    if let Some(view) = &mut app.knowledge {
        view.focus = match (to, view.focus) {
            (Some(side), _) => side,
            (None, KnowledgePane::List) => KnowledgePane::Page,
            (None, KnowledgePane::Page) => KnowledgePane::List,
        };
    }
    knowledge::scroll(app, 0);
}

/// Goes back: from the page to the list, then clears the filter, then closes the view.
fn go_back(app: &mut App) {
    let Some(view) = &mut app.knowledge else { return };
    if view.focus == KnowledgePane::Page && !view.is_empty() {
        view.focus = KnowledgePane::List;
    } else if !view.filter.is_empty() {
        knowledge::set_filter(app, "");
    } else {
        app.knowledge = None;
    }
}

fn toggle_mute(app: &mut App, commands: &mut Vec<AppCommand>) {
    let Some((language, known)) = app.knowledge.as_ref().and_then(|view| view.selected_pattern()) else {
        return app.show_notice(NoticeLevel::Info, "no pattern is selected");
    };
    let action = if known.pattern.muted { MuteAction::Unmute } else { MuteAction::Mute };
    commands.push(AppCommand::Knowledge(KnowledgeOrder::Mute { language, pattern: known.pattern.id.clone(), action }));
}

fn confirm_forget(app: &mut App) {
    let Some((language, known)) = app.knowledge.as_ref().and_then(|view| view.selected_pattern()) else {
        return app.show_notice(NoticeLevel::Info, "no pattern is selected");
    };
    app.overlay = Overlay::Confirm {
        question: ConfirmAction::Knowledge(KnowledgeOrder::Forget { language, pattern: known.pattern.id.clone() }),
        text: "Forget this pattern for good? It is neither learned nor imported again.".to_owned(),
    };
}

/// Asks if an export may replace an existing file.
pub fn confirm_replace(app: &mut App, path: String) {
    let text = format!("There is a file {}. Replace it?", text::sanitize_line(&path));
    let order = KnowledgeOrder::Export { path, existing: ExportOverwrite::Replace };
    confirm_if_idle(
        app,
        ConfirmAction::Knowledge(order),
        text,
        "nothing was exported, the file is there already: export again",
    );
}
