//! Palette: one line of input over commands, settings, runs, findings and files, each with its key.

pub mod matching;
mod settings;

use std::sync::Arc;

use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use super::prompt::{draw_line_edit, edit_line};
use super::window::{draw_window, place_window};
use super::{KeyPress, VIEWS, View, ViewFlow, ViewRequest, change_view, theme_picker};
use crate::domain::text;
use crate::tui::app::{App, Pane};
use crate::tui::doc::TextColumns;
use crate::tui::draw;
use crate::tui::draw::painter::Painter;
use crate::tui::glyphs;
use crate::tui::keymap::{Action, ActionRow, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::AppCommand;
use crate::tui::request_counter::RequestCounter;
use crate::tui::theme::{Role, ThemeName};
use crate::tui::update;
use matching::{PaletteMatches, PaletteQuery, find_matches};
pub use settings::SettingChange;

/// Purpose of a row of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaletteTarget {
    /// Runs an action.
    Action(Action),
    /// Switches to a built-in theme.
    Theme(ThemeName),
    /// Opens the theme picker.
    Themes,
    /// Switches ASCII glyphs on or off.
    Ascii(bool),
    /// Changes another setting, or opens the settings file.
    Setting(SettingChange),
    /// Selects a run, by its id.
    Run(String),
    /// Selects a finding, by its id.
    Finding(String),
    /// Selects a file of the listed run, by its path.
    File(String),
}

impl PaletteTarget {
    /// Returns the word that stands in front of the row.
    fn kind(&self) -> &'static str {
        match self {
            Self::Action(_) => "command",
            Self::Theme(_) | Self::Themes | Self::Ascii(_) | Self::Setting(_) => "setting",
            Self::Run(_) => "run",
            Self::Finding(_) => "finding",
            Self::File(_) => "file",
        }
    }

    /// Returns true for a row that is listed before anything is typed.
    fn is_command(&self) -> bool {
        matches!(self, Self::Action(_) | Self::Theme(_) | Self::Themes | Self::Ascii(_) | Self::Setting(_))
    }
}

/// Candidate that is collected when the palette opens.
#[derive(Debug, Clone)]
pub struct PaletteEntry {
    pub target: PaletteTarget,
    /// Shown text.
    pub text: String,
    /// Further words that find the entry.
    pub words: String,
    /// Text at the right edge: the key.
    pub hint: String,
}

impl PaletteEntry {
    /// Writes the searched text into `out`: the shown text first.
    fn write_haystack(&self, out: &mut String) {
        out.clear();
        out.push_str(&self.text);
        out.push(' ');
        out.push_str(&self.words);
    }

    fn to_row(&self, matched: Vec<u32>) -> PaletteRow {
        PaletteRow { target: self.target.clone(), text: self.text.clone(), hint: self.hint.clone(), matched }
    }
}

/// Row of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaletteRow {
    pub target: PaletteTarget,
    pub text: String,
    /// Text at the right edge: the key, or the state.
    pub hint: String,
    /// Positions of the matched letters in `text`, in graphemes, ascending.
    pub matched: Vec<u32>,
}

/// State of the palette.
#[derive(Debug)]
pub struct PaletteView {
    line: LineEdit,
    entries: Arc<[PaletteEntry]>,
    rows: Vec<PaletteRow>,
    selected: usize,
    /// First visible row.
    offset: usize,
    /// Requests to the thread, and which of them `rows` answers.
    queries: RequestCounter,
    /// Enter was pressed before the rows for the typed text arrived.
    accepts: bool,
}

/// Most runs, newest first, whose commits are read when the palette opens, so that they are found by their titles.
const MAX_NAMED_RUNS: usize = 300;

/// Opens the palette in front of the present view.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    update::request_subjects(app, 0..app.store.view.run_count().min(MAX_NAMED_RUNS), commands);
    let entries = collect_entries(app);
    let rows = find_matches(&build_query(app, 0, "", &entries)).rows;
    app.views.open(PaletteView {
        line: LineEdit::default(),
        entries,
        rows,
        selected: 0,
        offset: 0,
        queries: RequestCounter::default(),
        accepts: false,
    });
}

fn build_query(app: &App, serial: u64, text: &str, entries: &Arc<[PaletteEntry]>) -> PaletteQuery {
    PaletteQuery {
        serial,
        text: text.to_owned(),
        entries: Arc::clone(entries),
        view: Arc::clone(&app.store.view),
        subjects: Arc::clone(&app.run_list.subjects),
        quotes: app.display.glyphs.quotes,
    }
}

/// Applies a result of the thread, and runs its first row if Enter was pressed for this text.
pub fn apply_matches(app: &mut App, matches: PaletteMatches, commands: &mut Vec<AppCommand>) {
    let mut accepted = None;
    change_view(app, |view: &mut PaletteView, _| {
        if view.queries.accept(matches.serial) {
            view.rows = matches.rows;
            (view.selected, view.offset) = (0, 0);
            if !view.queries.is_waiting() && std::mem::take(&mut view.accepts) {
                accepted = view.rows.first().map(|row| row.target.clone());
            }
        }
    });
    // Only the palette in front can have taken Enter.
    if let Some(target) = accepted.filter(|_| app.views.front_as::<PaletteView>().is_some()) {
        app.views.close_front();
        run_target(app, target, commands);
    }
}

impl View for PaletteView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Prompt
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let page = shown_rows(app);
        match press.action {
            Some(Action::Abort) => return ViewFlow::Close,
            Some(Action::Accept) if self.queries.is_waiting() => self.accepts = true,
            Some(Action::Accept) => {
                let Some(row) = self.rows.get(self.selected) else { return ViewFlow::Open };
                run_target(app, row.target.clone(), commands);
                return ViewFlow::Close;
            }
            Some(Action::Down | Action::Complete) => self.select(self.selected + 1, page),
            Some(Action::Up) => self.select(self.selected.saturating_sub(1), page),
            Some(Action::PageDown) => self.select(self.selected + page, page),
            Some(Action::PageUp) => self.select(self.selected.saturating_sub(page), page),
            _ => {
                let before = self.line.text().to_owned();
                if edit_line(&mut self.line, press) && self.line.text() != before {
                    self.send_query(app, commands);
                }
            }
        }
        ViewFlow::Open
    }

    /// Selects the row under the pointer; a double click runs it or goes there.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        let (width, height) = window_size(app);
        let (_, inside) = place_window(app, width, height, false);
        let list = list_area(inside);
        let at = self.offset + usize::from(cell.y.saturating_sub(list.y));
        let Some(row) = self.rows.get(at).filter(|_| list.contains(cell)) else { return ViewFlow::Open };
        if is_double {
            run_target(app, row.target.clone(), commands);
            return ViewFlow::Close;
        }
        self.selected = at;
        ViewFlow::Open
    }

    fn handle_paste(&mut self, app: &mut App, text: &str, commands: &mut Vec<AppCommand>) {
        self.line.insert(text.trim_end_matches(['\r', '\n']));
        self.send_query(app, commands);
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        self.draw_rows(painter);
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        vec![(Action::Accept, "run or go there"), (Action::Down, "down"), (Action::Up, "up"), (Action::Abort, "back")]
    }
}

impl PaletteView {
    /// Returns the typed text.
    #[cfg(test)]
    pub fn text(&self) -> &str {
        self.line.text()
    }

    fn select(&mut self, at: usize, height: usize) {
        self.selected = at.min(self.rows.len().saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height), self.selected);
    }

    /// Asks for the rows of the typed text. The old rows stay until the answer comes, which takes milliseconds.
    fn send_query(&mut self, app: &App, commands: &mut Vec<AppCommand>) {
        self.accepts = false;
        let query = build_query(app, self.queries.begin(), self.line.text().trim(), &self.entries);
        commands.push(AppCommand::View(ViewRequest::Palette(query)));
    }

    fn draw_rows(&self, painter: &mut Painter<'_>) {
        let (width, height) = window_size(painter.app);
        let inside = draw_window(painter, width, height, false, "Go to");
        draw_line_edit(painter, Rect { height: 1, ..inside }, &self.line);
        let list = list_area(inside);
        if self.rows.is_empty() && !self.queries.is_waiting() {
            painter.draw_text(list.x, list.y, list.width, "nothing matches", Role::Muted);
        }
        let bar = painter.style(Role::Selected);
        for (row, y) in self.rows.iter().skip(self.offset).zip(list.top()..list.bottom()) {
            let is_selected = y - list.y == (self.selected - self.offset) as u16;
            if is_selected {
                painter.fill(Rect::new(list.x - 1, y, list.width + 2, 1), bar);
                painter.set_overlay_style(Some(draw::window_overlay_style(bar)));
            }
            painter.draw_text(list.x, y, KIND_WIDTH, row.target.kind(), Role::Faint);
            let hint_role = if matches!(row.target, PaletteTarget::Action(_)) { Role::Key } else { Role::Muted };
            let hint = painter.draw_text_right(list.x, y, list.width, &row.hint, hint_role);
            let x = list.x + KIND_WIDTH + 1;
            draw_matched(painter, x, y, list.right().saturating_sub(x + hint + 2), row);
            painter.set_overlay_style(None);
        }
        painter.draw_scroll_thumb(list, self.offset, self.rows.len());
    }
}

/// Columns of the word in front of a row.
const KIND_WIDTH: u16 = 7;
/// Most columns of the window: longer rows are hard to read.
const MAX_WIDTH: u16 = 100;
/// Fewest rows inside of the window for a blank one.
const MIN_ROWS_WITH_BLANK: u16 = 4;
/// Most rows of the list: the eye takes in no more, and the panes stay in sight.
const MAX_HEIGHT: usize = 14;

/// Returns the rows of the list in a window with a frame.
fn list_height(app: &App) -> usize {
    usize::from(app.display.rows).saturating_sub(8).clamp(1, MAX_HEIGHT)
}

/// Returns the width and the height of the window.
fn window_size(app: &App) -> (u16, u16) {
    (app.display.columns.saturating_sub(4).min(MAX_WIDTH), list_height(app) as u16 + 4)
}

/// Returns the rows below the typed text, from the inside of the window. A blank row stands between them where there is room.
fn list_area(inside: Rect) -> Rect {
    let head = if inside.height >= MIN_ROWS_WITH_BLANK { 2 } else { 1 };
    Rect { y: inside.y + head, height: inside.height.saturating_sub(head), ..inside }
}

/// Returns the rows of the list that are drawn: on a small screen, the window fills it.
fn shown_rows(app: &App) -> usize {
    let (width, height) = window_size(app);
    usize::from(list_area(place_window(app, width, height, false).1).height).max(1)
}

/// Draws the text of a row; matched letters stand out.
fn draw_matched(painter: &mut Painter<'_>, x: u16, y: u16, width: u16, row: &PaletteRow) {
    if row.matched.is_empty() || row.text.width() > usize::from(width) {
        let used = painter.draw_text(x, y, width, &row.text, Role::Normal);
        if row.matched.is_empty() {
            return;
        }
        // The letters that are still in sight.
        return restyle_matched(painter, x, y, used.saturating_sub(1), row);
    }
    let used = painter.draw_text(x, y, width, &row.text, Role::Normal);
    restyle_matched(painter, x, y, used, row);
}

fn restyle_matched(painter: &mut Painter<'_>, x: u16, y: u16, used: u16, row: &PaletteRow) {
    let style = painter.style(Role::Match);
    let mut column = 0;
    for (at, grapheme) in row.text.graphemes(true).enumerate() {
        let width = grapheme.width() as u16;
        if column + width > used {
            return;
        }
        if u32::try_from(at).is_ok_and(|at| row.matched.binary_search(&at).is_ok()) {
            painter.restyle(Rect::new(x + column, y, width, 1), ratatui::style::Style { bg: None, ..style });
        }
        column += width;
    }
}

/// Collects commands, settings and the files of the listed run.
fn collect_entries(app: &App) -> Arc<[PaletteEntry]> {
    let context = app.key_context();
    let key_of = |action| {
        let here = app.keymap.key_of(context, action);
        let contexts = app.keymap.contexts();
        let elsewhere =
            || contexts.filter(|context| !is_text(*context)).find_map(|context| app.keymap.key_of(context, action));
        here.or_else(elsewhere).map_or_else(String::new, ToString::to_string)
    };
    let here: Vec<Action> = draw::footer_actions(app, context).into_iter().map(|(action, _)| action).collect();
    let mut actions: Vec<ActionRow> = Action::rows().filter(|row| is_offered(row, context)).collect();
    // What the footer offers comes first, in its order; what only moves is faster with its key.
    actions.sort_by_key(|(action, group, ..)| {
        (here.iter().position(|known| known == action).unwrap_or(here.len()), GROUPS.iter().position(|g| g == group))
    });
    let actions = actions.into_iter().map(|(action, group, name, short, long)| PaletteEntry {
        target: PaletteTarget::Action(action),
        text: long.to_owned(),
        words: format!("{} {short} {group}", name.replace('_', " ")),
        hint: key_of(action),
    });
    let setting =
        |target, text: String, words: &str| PaletteEntry { target, text, words: words.to_owned(), hint: String::new() };
    let themes = ThemeName::TABLE
        .map(|(name, word)| setting(PaletteTarget::Theme(name), format!("theme: {word}"), "colour color"));
    let picker = setting(PaletteTarget::Themes, "theme: choose from a list, shown at once".to_owned(), "colour color");
    let to_ascii = app.display.glyphs != glyphs::ASCII;
    let glyph_text = if to_ascii { "glyphs: ASCII only" } else { "glyphs: Unicode" };
    let ascii = setting(PaletteTarget::Ascii(to_ascii), glyph_text.to_owned(), "ascii unicode symbols");
    let files = app.file_list.files().iter().map(|file| PaletteEntry {
        target: PaletteTarget::File(file.path.clone()),
        text: text::sanitize_line(&file.path).into_owned(),
        words: String::new(),
        hint: String::new(),
    });
    let own = app.keymap.commands.iter().enumerate().map(|(index, command)| PaletteEntry {
        target: PaletteTarget::Action(Action::Custom(index)),
        text: command.describe(),
        words: "command program".to_owned(),
        hint: key_of(Action::Custom(index)),
    });
    own.chain(actions)
        .chain([picker])
        .chain(themes)
        .chain([ascii])
        .chain(settings::list_settings(app))
        .chain(files)
        .collect()
}

/// Groups of commands in the order of the palette.
const GROUPS: [&str; 8] = ["Act", "Decide", "Find", "Panes", "Triage mode", "Live view", "Knowledge", "Move"];

/// Returns true for a command that does something in a context: the keys of a view are for that view only.
fn is_offered((action, group, ..): &ActionRow, context: KeyContext) -> bool {
    let is_of_view = match *group {
        "Answer" => false,
        "Triage mode" => context == KeyContext::Triage,
        group => {
            let mut contexts = VIEWS.iter().filter_map(|view| view.context);
            contexts.all(|view| view.group != group || context == KeyContext::View(view))
        }
    };
    is_of_view && !matches!(action, Action::Palette | Action::AskOrHelp)
}

/// Returns true for the contexts whose actions cannot be chosen.
fn is_text(context: KeyContext) -> bool {
    matches!(context, KeyContext::Menu | KeyContext::Confirm | KeyContext::Prompt | KeyContext::Help)
}

/// Runs or goes to the target of a row. The palette is closed.
fn run_target(app: &mut App, target: PaletteTarget, commands: &mut Vec<AppCommand>) {
    match target {
        PaletteTarget::Action(action) => update::run_chosen_action(app, action, commands),
        PaletteTarget::Theme(name) => update::show_theme(app, name),
        PaletteTarget::Themes => theme_picker::open(app),
        PaletteTarget::Ascii(is_on) => {
            app.display.glyphs = if is_on { glyphs::ASCII } else { glyphs::UNICODE };
            update::rebuild_page(app);
        }
        PaletteTarget::Setting(change) => settings::change_setting(app, change, commands),
        PaletteTarget::Run(id) => {
            app.views.close_all();
            update::focus_pane(app, Pane::Runs, commands);
            update::data::select_run(app, &id);
        }
        PaletteTarget::Finding(id) => {
            app.views.close_all();
            update::focus_pane(app, Pane::Findings, commands);
            update::data::select_finding(app, &id, commands);
        }
        PaletteTarget::File(path) => {
            app.views.close_all();
            let Some(at) = app.file_list.reveal(&path) else { return };
            update::focus_pane(app, Pane::Files, commands);
            update::go_to_row(app, at);
        }
    }
}
