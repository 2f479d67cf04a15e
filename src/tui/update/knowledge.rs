//! Keys of the knowledge view. What is read and written is asked for; nothing shows before it is stored.

use super::super::app::{App, Overlay, PromptKind, Question, Tone};
use super::super::keymap::Action;
use super::super::knowledge::{self, Existing, Order, Side};
use super::super::line::LineEdit;
use super::super::message::Command;
use super::{ask, keys, quit};
use crate::domain::{MuteAction, text};

/// Where an export goes unless somebody names another place: not among the files that are reviewed.
const EXPORT: &str = "~/revdeck-knowledge.json";

pub fn press(app: &mut App, action: Option<Action>, commands: &mut Vec<Command>) {
    use Action as A;
    let Some(action) = action else { return };
    match action {
        A::Abort | A::Knowledge => app.knowledge = None,
        A::Back => back(app),
        A::NextPane | A::PreviousPane => turn(app, None),
        A::Right | A::Open => turn(app, Some(Side::Page)),
        A::Left => turn(app, Some(Side::List)),
        A::NextTab => knowledge::go_to_shelf(app, true),
        A::PreviousTab => knowledge::go_to_shelf(app, false),
        A::Unfold => knowledge::fold(app),
        A::Search | A::Filter => {
            let before = app.knowledge.as_ref().map_or_else(String::new, |view| view.filter.clone());
            let text = if before.is_empty() { String::new() } else { format!("{before} ") };
            keys::open_prompt(app, PromptKind::Patterns { before }, LineEdit::new(&text));
        }
        A::Mute => mute(app, commands),
        A::Forget => forget(app),
        A::Export => keys::open_prompt(app, PromptKind::Export, LineEdit::offered(EXPORT)),
        A::Reload => {
            app.say(Tone::Plain, format!("reading it again{}", app.glyphs.ellipsis));
            commands.push(Command::Knowledge(Order::Read));
        }
        A::Help => app.overlay = Overlay::Help { offset: 0 },
        A::Redraw => commands.push(Command::Redraw),
        A::Suspend => commands.push(Command::Suspend),
        A::Quit => quit(commands),
        action => travel(app, action),
    }
}

/// Moves the selection, or the page when it has the keys.
fn travel(app: &mut App, action: Action) {
    use Action as A;
    let Some(view) = &app.knowledge else { return };
    let (side, at) = (view.side, view.cursor.at);
    let height = match side {
        Side::List => knowledge::rows(app),
        Side::Page => knowledge::page_rows(app),
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
        Side::List => knowledge::go_to(app, at.saturating_add_signed(by)),
        Side::Page => knowledge::scroll(app, by),
    }
}

/// Gives the keys to a side, or to the other one.
fn turn(app: &mut App, to: Option<Side>) {
    if let Some(view) = &mut app.knowledge {
        view.side = match (to, view.side) {
            (Some(side), _) => side,
            (None, Side::List) => Side::Page,
            (None, Side::Page) => Side::List,
        };
    }
    knowledge::scroll(app, 0);
}

/// From the page to the list, from a part of the list to all of it, and out.
fn back(app: &mut App) {
    let Some(view) = &mut app.knowledge else { return };
    if view.side == Side::Page && !view.is_empty() {
        view.side = Side::List;
    } else if !view.filter.is_empty() {
        knowledge::set_filter(app, "");
    } else {
        app.knowledge = None;
    }
}

fn mute(app: &mut App, commands: &mut Vec<Command>) {
    let Some((language, known)) = app.knowledge.as_ref().and_then(|view| view.chosen()) else {
        return app.say(Tone::Plain, "no pattern is selected");
    };
    let action = if known.pattern.muted { MuteAction::Unmute } else { MuteAction::Mute };
    commands.push(Command::Knowledge(Order::Mute { language, pattern: known.pattern.id.clone(), action }));
}

fn forget(app: &mut App) {
    let Some((language, known)) = app.knowledge.as_ref().and_then(|view| view.chosen()) else {
        return app.say(Tone::Plain, "no pattern is selected");
    };
    app.overlay = Overlay::Confirm {
        question: Question::Knowledge(Order::Forget { language, pattern: known.pattern.id.clone() }),
        text: "Forget this pattern for good? It is neither learned nor imported again.".to_owned(),
    };
}

/// An export would take the place of a file: asks whether it shall.
pub fn ask_replace(app: &mut App, path: String) {
    let text = format!("There is a file {}. Replace it?", text::one_line(&path));
    let order = Order::Export { path, existing: Existing::Replace };
    ask(app, Question::Knowledge(order), text, "nothing was exported, the file is there already: export again");
}
