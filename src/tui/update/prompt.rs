//! Handles keys of text prompts: filter, search, reason, revision.

use super::super::app::{App, InputPromptKind, NoticeLevel, Overlay, Pane};
use super::super::filter::{self, FindingFilter};
use super::super::input::{KeyCode, KeyEvent};
use super::super::keymap::Action;
use super::super::knowledge::{self as patterns, ExportOverwrite, KnowledgeOrder};
use super::super::message::AppCommand;
use super::{close_overlay, data, keys, triage};
use crate::domain::{Disposition, Scope};

/// Returns the suggested reasons for a dismissal: reasons of this session, then the common ones.
pub fn dismissal_reasons(app: &App) -> Vec<String> {
    let mut all: Vec<String> = app.decisions.reasons.iter().take(4).cloned().collect();
    for reason in Disposition::REASONS {
        if !all.iter().any(|known| known == reason) {
            all.push(reason.to_owned());
        }
    }
    all
}

pub fn handle_paste(app: &mut App, text: &str, commands: &mut Vec<AppCommand>) {
    if let Overlay::Prompt(prompt) = &mut app.overlay {
        prompt.line.insert(text.trim_end_matches(['\r', '\n']));
        prompt.choice = 0;
        apply_typed(app, commands);
    }
}

pub fn handle_key(app: &mut App, key: KeyEvent, action: Option<Action>, commands: &mut Vec<AppCommand>) {
    let offered = dismissal_reasons(app);
    let Overlay::Prompt(prompt) = &mut app.overlay else { return };
    let line = &mut prompt.line;
    match action {
        Some(Action::Accept) => return accept(app, commands),
        Some(Action::Abort) => return abort(app, commands),
        Some(Action::CursorLeft) => line.move_left(),
        Some(Action::CursorRight) => line.move_right(),
        Some(Action::CursorStart) => line.move_to_start(),
        Some(Action::CursorEnd) => line.move_to_end(),
        Some(Action::DeleteLeft) => line.delete_left(),
        Some(Action::DeleteRight) => line.delete_right(),
        Some(Action::DeleteWord) => line.delete_word(),
        Some(Action::DeleteLine) => line.delete_all(),
        Some(Action::Complete | Action::Down | Action::Up) => match prompt.kind {
            InputPromptKind::Filter { .. } => {
                let completion = filter::complete(line.text(), line.cursor());
                if let Some(candidate) = completion.candidates.first() {
                    let ends = if candidate.ends_with(':') { "" } else { " " };
                    line.replace(completion.start, &format!("{candidate}{ends}"));
                }
            }
            InputPromptKind::Reason { .. } => {
                let n = offered.len();
                prompt.choice = match action {
                    Some(Action::Up) if prompt.choice <= 1 => n,
                    Some(Action::Up) => prompt.choice - 1,
                    _ => prompt.choice % n.max(1) + 1,
                };
                if let Some(reason) = offered.get(prompt.choice.wrapping_sub(1)) {
                    line.set_text(reason);
                }
                return;
            }
            _ => {}
        },
        _ => match key.code {
            KeyCode::Char(c) if !key.ctrl && !key.alt => {
                line.insert(c.encode_utf8(&mut [0; 4]));
                prompt.choice = 0;
            }
            _ => return,
        },
    }
    apply_typed(app, commands);
}

/// Applies changed text: filter and search show their results while the user types.
fn apply_typed(app: &mut App, commands: &mut Vec<AppCommand>) {
    let Overlay::Prompt(prompt) = &app.overlay else { return };
    let text = prompt.line.text().trim().to_owned();
    match &prompt.kind {
        InputPromptKind::Filter { .. } if text != app.filter_text => {
            app.filter_text = text;
            data::refilter(app, commands);
        }
        InputPromptKind::Patterns { .. } => patterns::set_filter(app, &text),
        InputPromptKind::Search { from, .. } => {
            let from = *from;
            app.search = text;
            if app.search.is_empty() {
                keys::go_to_row(app, from);
            } else {
                keys::find_row(app, from, true, false);
            }
        }
        _ => {}
    }
}

fn accept(app: &mut App, commands: &mut Vec<AppCommand>) {
    let Overlay::Prompt(prompt) = std::mem::replace(&mut app.overlay, Overlay::None) else { return };
    let text = prompt.line.text().trim().to_owned();
    match prompt.kind {
        InputPromptKind::Filter { .. } => {
            let faults = FindingFilter::parse(&text).faults;
            if !faults.is_empty() {
                app.show_notice(NoticeLevel::Error, format!("the filter does not know {}", faults.join(", ")));
            }
        }
        InputPromptKind::Search { before, .. } => {
            if text.is_empty() {
                app.search = before;
                keys::search_next(app, true, 1);
            } else {
                let at = if app.focus == Pane::Detail { app.scroll } else { usize::MAX };
                if at == usize::MAX && !keys::find_row(app, selected_row(app), true, false) {
                    app.show_notice(NoticeLevel::Info, format!("{text:?} is not here"));
                }
            }
        }
        InputPromptKind::Reason { lines } => {
            if text.is_empty() {
                app.show_notice(NoticeLevel::Error, "a dismissal needs a reason, so that nobody has to find it again");
                app.overlay = Overlay::Prompt(super::super::app::InputPrompt {
                    kind: InputPromptKind::Reason { lines },
                    ..prompt
                });
            } else {
                triage::dismiss(app, lines, &text, commands);
            }
        }
        InputPromptKind::Commit => match text.as_str() {
            "" => {}
            revision => keys::request_review(app, Some(Scope::Commit(revision.to_owned())), commands),
        },
        InputPromptKind::Snooze => {
            if !text.is_empty() {
                commands.push(AppCommand::Snooze(text));
            }
        }
        InputPromptKind::Patterns { .. } => {}
        InputPromptKind::Export => {
            if !text.is_empty() {
                commands.push(AppCommand::Knowledge(KnowledgeOrder::Export {
                    path: text,
                    existing: ExportOverwrite::Keep,
                }));
            }
        }
        InputPromptKind::Range => match Scope::parse_range(&text) {
            Some(scope) => keys::request_review(app, Some(scope), commands),
            None if text.is_empty() => {}
            None => app.show_notice(NoticeLevel::Error, format!("{text:?} is no range; write A..B or A...B")),
        },
    }
}

fn selected_row(app: &App) -> usize {
    match app.focus {
        Pane::Runs => app.run_cursor.selected,
        Pane::Files => app.file_cursor.selected,
        _ => app.finding_cursor.selected,
    }
}

fn abort(app: &mut App, commands: &mut Vec<AppCommand>) {
    let Overlay::Prompt(prompt) = std::mem::replace(&mut app.overlay, Overlay::None) else { return };
    match prompt.kind {
        InputPromptKind::Filter { before } => {
            if before != app.filter_text {
                app.filter_text = before;
                data::refilter(app, commands);
            }
        }
        InputPromptKind::Search { before, from } => {
            app.search = before;
            keys::go_to_row(app, from);
        }
        InputPromptKind::Reason { .. } => app.show_notice(NoticeLevel::Info, "nothing dismissed"),
        InputPromptKind::Patterns { before } => patterns::set_filter(app, &before),
        InputPromptKind::Commit | InputPromptKind::Range | InputPromptKind::Snooze | InputPromptKind::Export => {
            close_overlay(app)
        }
    }
}
