//! Keys while text is typed: filter, search, a reason, a revision.

use super::super::app::{App, Overlay, Pane, PromptKind, Tone};
use super::super::filter::{self, Filter};
use super::super::input::{Code, Key};
use super::super::keymap::Action;
use super::super::knowledge::{self as patterns, Existing, Order};
use super::super::message::Command;
use super::{close, data, keys, triage};
use crate::domain::{Disposition, Scope};

/// What a dismissal offers: reasons given in this session, then the common ones.
pub fn reasons(app: &App) -> Vec<String> {
    let mut all: Vec<String> = app.decisions.reasons.iter().take(4).cloned().collect();
    for reason in Disposition::REASONS {
        if !all.iter().any(|known| known == reason) {
            all.push(reason.to_owned());
        }
    }
    all
}

pub fn paste(app: &mut App, text: &str, commands: &mut Vec<Command>) {
    if let Overlay::Prompt(prompt) = &mut app.overlay {
        prompt.line.insert(text.trim_end_matches(['\r', '\n']));
        prompt.choice = 0;
        typed(app, commands);
    }
}

pub fn press(app: &mut App, key: Key, action: Option<Action>, commands: &mut Vec<Command>) {
    let offered = reasons(app);
    let Overlay::Prompt(prompt) = &mut app.overlay else { return };
    let line = &mut prompt.line;
    match action {
        Some(Action::Accept) => return accept(app, commands),
        Some(Action::Abort) => return abort(app, commands),
        Some(Action::CursorLeft) => line.left(),
        Some(Action::CursorRight) => line.right(),
        Some(Action::CursorStart) => line.start(),
        Some(Action::CursorEnd) => line.end(),
        Some(Action::DeleteLeft) => line.delete_left(),
        Some(Action::DeleteRight) => line.delete_right(),
        Some(Action::DeleteWord) => line.delete_word(),
        Some(Action::DeleteLine) => line.delete_all(),
        Some(Action::Complete | Action::Down | Action::Up) => match prompt.kind {
            PromptKind::Filter { .. } => {
                let completion = filter::complete(line.text(), line.cursor());
                if let Some(candidate) = completion.candidates.first() {
                    let ends = if candidate.ends_with(':') { "" } else { " " };
                    line.replace(completion.start, &format!("{candidate}{ends}"));
                }
            }
            PromptKind::Reason { .. } => {
                let n = offered.len();
                prompt.choice = match action {
                    Some(Action::Up) if prompt.choice <= 1 => n,
                    Some(Action::Up) => prompt.choice - 1,
                    _ => prompt.choice % n.max(1) + 1,
                };
                if let Some(reason) = offered.get(prompt.choice.wrapping_sub(1)) {
                    line.set(reason);
                }
                return;
            }
            _ => {}
        },
        _ => match key.code {
            Code::Char(c) if !key.ctrl && !key.alt => {
                line.insert(c.encode_utf8(&mut [0; 4]));
                prompt.choice = 0;
            }
            _ => return,
        },
    }
    typed(app, commands);
}

/// The text changed: filter and search show what they find while they are typed.
fn typed(app: &mut App, commands: &mut Vec<Command>) {
    let Overlay::Prompt(prompt) = &app.overlay else { return };
    let text = prompt.line.text().trim().to_owned();
    match &prompt.kind {
        PromptKind::Filter { .. } if text != app.filter_text => {
            app.filter_text = text;
            data::refilter(app, commands);
        }
        PromptKind::Patterns { .. } => patterns::set_filter(app, &text),
        PromptKind::Search { from, .. } => {
            let from = *from;
            app.search = text;
            if app.search.is_empty() {
                keys::go_to(app, from);
            } else {
                keys::find(app, from, true, false);
            }
        }
        _ => {}
    }
}

fn accept(app: &mut App, commands: &mut Vec<Command>) {
    let Overlay::Prompt(prompt) = std::mem::replace(&mut app.overlay, Overlay::None) else { return };
    let text = prompt.line.text().trim().to_owned();
    match prompt.kind {
        PromptKind::Filter { .. } => {
            let faults = Filter::parse(&text).faults;
            if !faults.is_empty() {
                app.say(Tone::Trouble, format!("the filter does not know {}", faults.join(", ")));
            }
        }
        PromptKind::Search { before, .. } => {
            if text.is_empty() {
                app.search = before;
                keys::search(app, true, 1);
            } else {
                let at = if app.focus == Pane::Detail { app.scroll } else { usize::MAX };
                if at == usize::MAX && !keys::find(app, selected(app), true, false) {
                    app.say(Tone::Plain, format!("{text:?} is not here"));
                }
            }
        }
        PromptKind::Reason { lines } => {
            if text.is_empty() {
                app.say(Tone::Trouble, "a dismissal needs a reason, so that nobody has to find it again");
                app.overlay =
                    Overlay::Prompt(super::super::app::Prompt { kind: PromptKind::Reason { lines }, ..prompt });
            } else {
                triage::dismiss(app, lines, &text, commands);
            }
        }
        PromptKind::Commit => match text.as_str() {
            "" => {}
            revision => keys::ask_review(app, Some(Scope::Commit(revision.to_owned())), commands),
        },
        PromptKind::Snooze => {
            if !text.is_empty() {
                commands.push(Command::Snooze(text));
            }
        }
        PromptKind::Patterns { .. } => {}
        PromptKind::Export => {
            if !text.is_empty() {
                commands.push(Command::Knowledge(Order::Export { path: text, existing: Existing::Keep }));
            }
        }
        PromptKind::Range => match Scope::range(&text) {
            Some(scope) => keys::ask_review(app, Some(scope), commands),
            None if text.is_empty() => {}
            None => app.say(Tone::Trouble, format!("{text:?} is no range; write A..B or A...B")),
        },
    }
}

fn selected(app: &App) -> usize {
    match app.focus {
        Pane::Runs => app.run_cursor.at,
        Pane::Files => app.file_cursor.at,
        _ => app.finding_cursor.at,
    }
}

fn abort(app: &mut App, commands: &mut Vec<Command>) {
    let Overlay::Prompt(prompt) = std::mem::replace(&mut app.overlay, Overlay::None) else { return };
    match prompt.kind {
        PromptKind::Filter { before } => {
            if before != app.filter_text {
                app.filter_text = before;
                data::refilter(app, commands);
            }
        }
        PromptKind::Search { before, from } => {
            app.search = before;
            keys::go_to(app, from);
        }
        PromptKind::Reason { .. } => app.say(Tone::Plain, "nothing dismissed"),
        PromptKind::Patterns { before } => patterns::set_filter(app, &before),
        PromptKind::Commit | PromptKind::Range | PromptKind::Snooze | PromptKind::Export => close(app),
    }
}
