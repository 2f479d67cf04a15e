//! Computes where the keys of the footer and the tabs of the detail stand, for drawing and for clicks.
//!
//! - The keys of help and quit are always in the footer of the panes, on the narrowest screen too; in the footer of a
//!   view, those of help and of the way out.

use super::app::App;
use super::draw::{footer_actions, footer_end, tab_name};
use super::input::{KeyCode, KeyEvent};
use super::keymap::{Action, KeyContext, KeySequence};
use super::layout::ScreenLayout;
use super::message::Tab;
use super::update::finding_to_ask;
use crate::tui::doc::TextColumns;

/// Columns between two keys of the footer, and between two tabs.
const GAP: u16 = 3;

/// Key in the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterKey {
    /// First column.
    pub x: u16,
    /// Columns of the key and its word.
    pub width: u16,
    pub key: KeySequence,
    pub word: &'static str,
}

/// Returns the keys of the footer that fit before column `end`.
pub fn place_footer_keys(app: &App, end: u16) -> Vec<FooterKey> {
    let context = app.key_context();
    let is_kept = |action: &Action| match action {
        Action::Help | Action::AskOrHelp | Action::Quit => true,
        Action::Abort | Action::Back => !app.views.is_empty(),
        _ => false,
    };
    let names_enter = app.views.front().is_some_and(|view| view.names_enter());
    let place = |(action, word): &(Action, &'static str)| {
        let keys = app.keymap.keys_of(context, *action);
        let enter = keys.iter().find(|keys| names_enter && keys.keys() == [KeyEvent::plain(KeyCode::Enter)]);
        let key = (*enter.or(keys.first())?).clone();
        let width = key.to_string().width() as u16 + 1 + word.width() as u16;
        Some(FooterKey { x: 0, width, key, word })
    };
    // The kept keys stand last.
    let always: &[Action] = match app.views.front() {
        None => &[Action::Help, Action::Quit],
        Some(view) if !view.is_window() => &[Action::Help],
        Some(_) => &[],
    };
    let mut actions = footer_actions(app, context);
    let missing = always.iter().copied().filter(|action| !actions.iter().any(|(known, _)| known == action));
    let missing: Vec<(Action, &'static str)> = missing.map(|action| (action, action.footer_label())).collect();
    actions.extend(missing);
    name_help_key(app, context, &mut actions);
    let kept: Vec<FooterKey> = actions.iter().filter(|(action, _)| is_kept(action)).filter_map(place).collect();
    let kept_width: u16 = kept.iter().map(|key| key.width + GAP).sum();
    let mut x = 1;
    let mut placed = Vec::new();
    for key in actions.iter().filter(|(action, _)| !is_kept(action)).filter_map(place) {
        if x + key.width + kept_width > end {
            break;
        }
        x += key.width + GAP;
        placed.push(FooterKey { x: x - key.width - GAP, ..key });
    }
    // Without room for the words, the keys alone.
    let is_tight = x + kept_width > end + GAP;
    for mut key in kept {
        if is_tight {
            (key.word, key.width) = ("", key.key.to_string().width() as u16);
        }
        x += key.width + GAP;
        placed.push(FooterKey { x: x - key.width - GAP, ..key });
    }
    placed
}

/// Where one key asks or helps, puts it in place of the help, with the word for what it does now. The help keeps a key of
/// its own while that one asks.
fn name_help_key(app: &App, context: KeyContext, actions: &mut Vec<(Action, &'static str)>) {
    let Some(at) = actions.iter().position(|(action, _)| *action == Action::Help) else { return };
    if app.keymap.key_of(context, Action::AskOrHelp).is_none() {
        return;
    }
    match finding_to_ask(app) {
        Some(_) => actions.insert(at, (Action::AskOrHelp, Action::AskOrHelp.footer_label())),
        None => actions[at].0 = Action::AskOrHelp,
    }
}

/// Returns the key of the footer at a column.
pub fn footer_key_at(app: &App, column: u16) -> Option<KeySequence> {
    let keys = place_footer_keys(app, footer_end(app, app.display.columns));
    keys.into_iter().find(|key| (key.x..key.x + key.width).contains(&column)).map(|key| key.key)
}

/// Tab of the detail with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedTab {
    pub tab: Tab,
    /// First column.
    pub x: u16,
    pub name: &'static str,
}

/// Returns the tabs of the selected item in a title from column `x`, `width` columns wide.
pub fn place_tabs(app: &App, x: u16, width: u16) -> Vec<PlacedTab> {
    let names = || app.tabs().iter().map(|tab| (*tab, tab_name(app, *tab)));
    // A smaller gap if the tabs would not fit.
    let all: usize = names().map(|(_, name)| name.width() + usize::from(GAP)).sum();
    let gap = if all <= usize::from(width + GAP) { GAP } else { GAP - 1 };
    let mut x = x;
    names()
        .map(|(tab, name)| {
            let placed = PlacedTab { tab, x, name };
            x += name.width() as u16 + gap;
            placed
        })
        .collect()
}

/// Returns the tab at a column of the detail's title.
pub fn tab_at(app: &App, layout: &ScreenLayout, column: u16) -> Option<Tab> {
    let title = layout.pane(super::app::Pane::Detail)?.title;
    let tabs = place_tabs(app, title.x, title.width);
    tabs.iter().find(|tab| (tab.x..tab.x + tab.name.width() as u16).contains(&column)).map(|tab| tab.tab)
}
