//! Theme picker: a list of themes; the screen shows the selected one at once.

use ratatui::layout::{Position, Rect};

use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewFlow};
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::draw::selection_style;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::theme::{Role, ThemeName};
use crate::tui::update::{keep_theme, refresh_theme};

const TITLE: &str = "Theme";
/// Mark of the theme that the settings name.
const KEPT: &str = "kept";

/// Open theme picker.
#[derive(Debug)]
pub struct ThemePickerView {
    /// Themes with their names; `None` stands for the user's own theme.
    items: Vec<(Option<ThemeName>, String)>,
    selected: usize,
    /// Theme that was shown before.
    before: Option<ThemeName>,
}

/// Opens the picker at the theme on the screen. Without colours there is nothing to choose.
pub fn open(app: &mut App) {
    let themes = &app.display.themes;
    let items = themes.list();
    if items.len() < 2 {
        return app.show_notice(NoticeLevel::Info, "without colours there is only one theme");
    }
    let before = themes.shown();
    let selected = items.iter().position(|(theme, _)| *theme == before).unwrap_or(0);
    app.views.open(ThemePickerView { items, selected, before });
}

impl ThemePickerView {
    fn size(&self) -> (u16, u16) {
        let name = self.items.iter().map(|(_, name)| name.width()).max().unwrap_or(0);
        ((name + KEPT.width() + 10).max(30) as u16, self.items.len() as u16 + 2)
    }

    /// Returns the first visible item, so that the selected one is in sight.
    fn first_row(&self, height: u16) -> usize {
        (self.selected + 1).saturating_sub(usize::from(height.max(1)))
    }

    /// Selects an item and shows its theme.
    fn select(&mut self, app: &mut App, at: usize) {
        self.selected = at.min(self.items.len().saturating_sub(1));
        if let Some((theme, _)) = self.items.get(self.selected) {
            app.display.themes.show(*theme);
            refresh_theme(app);
        }
    }
}

impl View for ThemePickerView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Menu
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        match press.action {
            Some(Action::Down) => self.select(app, self.selected + 1),
            Some(Action::Up) => self.select(app, self.selected.saturating_sub(1)),
            Some(Action::Accept) => {
                keep_theme(app, commands);
                return ViewFlow::Close;
            }
            Some(Action::Abort) => {
                app.display.themes.show(self.before);
                refresh_theme(app);
                return ViewFlow::Close;
            }
            _ => {}
        }
        ViewFlow::Open
    }

    /// Selects the theme under the pointer; a double click keeps it.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        let (width, height) = self.size();
        let (_, inside) = place_window(app, width, height, true);
        let at = self.first_row(inside.height) + usize::from(cell.y.saturating_sub(inside.y));
        if !inside.contains(cell) || at >= self.items.len() {
            return ViewFlow::Open;
        }
        self.select(app, at);
        if is_double {
            keep_theme(app, commands);
            return ViewFlow::Close;
        }
        ViewFlow::Open
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let (width, height) = self.size();
        // Low, so that the lists and the page show the theme.
        let inside = draw_window(painter, width, height, true, TITLE);
        let first = self.first_row(inside.height);
        let bar = selection_style(painter, true);
        let kept = painter.app.display.themes.kept().to_owned();
        for ((row, (_, name)), y) in self.items.iter().enumerate().skip(first).zip(inside.y..inside.bottom()) {
            if row == self.selected {
                painter.fill(Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
                painter.set_overlay_style(Some(bar));
            }
            painter.draw_text(inside.x, y, inside.width, name, Role::Normal);
            if *name == kept {
                painter.draw_text_right(inside.x, y, inside.width, KEPT, Role::Muted);
            }
            painter.set_overlay_style(None);
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        vec![(Action::Accept, "keep"), (Action::Down, "next"), (Action::Up, "previous"), (Action::Abort, "back")]
    }
}
