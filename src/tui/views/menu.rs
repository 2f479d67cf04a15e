//! Menu: a list of choices.

use std::borrow::Cow;

use ratatui::layout::{Position, Rect};

use super::confirm::{ConfirmAction, ConfirmView};
use super::fix::{self, FixOrder};
use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewFlow, with_labels};
use crate::config::{FileOrder, RunOrder};
use crate::domain::FindingId;
use crate::tui::app::{App, Pane};
use crate::tui::custom_commands::CommandForm;
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::draw::selection_style;
use crate::tui::finding_order::FindingArrangement;
use crate::tui::input::KeyCode;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::{AppCommand, CopyOrder, Tab};
use crate::tui::theme::Role;
use crate::tui::update::{arrange_runs, ask_or_run, data, focus_pane, say_not_run};

/// Open menu.
#[derive(Debug, Clone)]
pub struct MenuView {
    pub title: Cow<'static, str>,
    pub items: Vec<MenuItem>,
    pub selected: usize,
}

/// Line of a menu.
#[derive(Debug, Clone)]
pub struct MenuItem {
    pub label: String,
    pub hint: String,
    pub choice: MenuChoice,
}

/// Effect of a menu item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MenuChoice {
    Copy(CopyOrder),
    Fix(FixOrder),
    /// As `Fix`, after a confirmation that shows `text`.
    AskFix {
        text: String,
        order: FixOrder,
    },
    ShowFix,
    PlanFix(Vec<FindingId>),
    /// Sorts and groups the findings.
    Arrange(FindingArrangement),
    /// Arranges the files.
    ArrangeFiles(FileOrder),
    /// Sorts the runs.
    ArrangeRuns(RunOrder),
    /// Goes on with a command of the user, whose question has this answer.
    Answer(Box<CommandForm>),
}

impl MenuChoice {
    fn run(self, app: &mut App, commands: &mut Vec<AppCommand>) {
        match self {
            Self::Copy(order) => commands.push(AppCommand::Copy(order)),
            Self::Fix(order) => fix::send_order(app, order, commands),
            Self::AskFix { text, order } => app.views.open(ConfirmView { action: ConfirmAction::Fix(order), text }),
            Self::ShowFix => {
                focus_pane(app, Pane::Detail, commands);
                app.detail.tab = Tab::Fix;
                app.detail.scroll = 0;
            }
            Self::PlanFix(findings) => commands.push(AppCommand::PlanFix(findings)),
            Self::Arrange(arrangement) => data::rearrange(app, arrangement, commands),
            Self::ArrangeFiles(order) => data::arrange_files(app, order),
            Self::ArrangeRuns(order) => arrange_runs(app, order),
            Self::Answer(form) => ask_or_run(app, *form, commands),
        }
    }
}

impl MenuView {
    fn label_width(&self) -> u16 {
        self.items.iter().map(|item| item.label.width()).max().unwrap_or(0) as u16
    }

    /// Returns the width and the height of the window.
    fn size(&self) -> (u16, u16) {
        let hint = self.items.iter().map(|item| item.hint.width()).max().unwrap_or(0) as u16;
        let width = (self.label_width() + hint + 12).max(self.title.width() as u16 + 6).max(30);
        (width, self.items.len() as u16 + 2)
    }

    /// Returns the first visible item, so that the selected one is in sight.
    fn first_row(&self, height: u16) -> usize {
        (self.selected + 1).saturating_sub(usize::from(height.max(1)))
    }
}

/// Returns the digit that chooses an item, given by its index; 0 stands for the tenth.
fn digit_of_item(index: usize) -> Option<usize> {
    (index < 10).then_some((index + 1) % 10)
}

/// Returns the index of the item that a digit chooses.
fn item_of_digit(digit: char) -> usize {
    (digit as usize + 9 - '0' as usize) % 10
}

impl View for MenuView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Menu
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let chosen = match (press.action, press.key.code) {
            (Some(Action::Down), _) => {
                self.selected = (self.selected + 1).min(self.items.len().saturating_sub(1));
                return ViewFlow::Open;
            }
            (Some(Action::Up), _) => {
                self.selected = self.selected.saturating_sub(1);
                return ViewFlow::Open;
            }
            (Some(Action::Abort), _) => {
                if let Some(MenuItem { choice: MenuChoice::Answer(form), .. }) = self.items.first() {
                    say_not_run(app, form);
                }
                return ViewFlow::Close;
            }
            (Some(Action::Accept), _) => self.items.get(self.selected),
            (None, KeyCode::Char(c @ '0'..='9')) => match self.items.get(item_of_digit(c)) {
                Some(item) => Some(item),
                None => return ViewFlow::Open,
            },
            _ => return ViewFlow::Open,
        };
        if let Some(item) = chosen {
            item.choice.clone().run(app, commands);
        }
        ViewFlow::Close
    }

    /// Selects the item under the pointer; a double click chooses it.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        let (width, height) = self.size();
        let (_, inside) = place_window(app, width, height, false);
        let first = self.first_row(inside.height);
        let Some(item) = self.items.get(first + usize::from(cell.y.saturating_sub(inside.y))) else {
            return ViewFlow::Open;
        };
        if !inside.contains(cell) {
            return ViewFlow::Open;
        }
        if is_double {
            item.choice.clone().run(app, commands);
            return ViewFlow::Close;
        }
        self.selected = first + usize::from(cell.y - inside.y);
        ViewFlow::Open
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let label = self.label_width();
        let (width, height) = self.size();
        let inside = draw_window(painter, width, height, false, &self.title);
        let first = self.first_row(inside.height);
        let bar = selection_style(painter, true);
        for (row, item) in self.items.iter().enumerate().skip(first).take(usize::from(inside.height)) {
            let y = inside.y + (row - first) as u16;
            if row == self.selected {
                painter.fill(Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
                painter.set_overlay_style(Some(bar));
            }
            if let Some(digit) = digit_of_item(row) {
                painter.draw_text(inside.x, y, 1, &digit.to_string(), Role::Key);
            }
            painter.draw_text(inside.x + 3, y, label, &item.label, Role::Normal);
            let x = inside.x + 3 + label + 3;
            painter.draw_text(x, y, inside.right().saturating_sub(x), &item.hint, Role::Muted);
            painter.set_overlay_style(None);
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        let mut footer = with_labels([Action::Accept, Action::Down, Action::Up, Action::Abort]);
        footer[0].1 = "choose";
        footer
    }
}
