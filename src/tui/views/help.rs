//! Help: the keys of the present place, the other keys, and the meaning of the glyphs. Typing searches it.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::prompt::{draw_line_edit, edit_line};
use super::window::draw_window;
use super::{KeyPress, View, ViewFlow, scroll_distance};
use crate::domain::FindingId;
use crate::tui::app::App;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext, KeySequence, Keymap};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::AppCommand;
use crate::tui::theme::Role;
use crate::tui::update::plan_question_about;

/// Columns of the keys in front of the texts.
const KEY_WIDTH: u16 = 18;
/// Columns of a row with its key and its text.
const COLUMN_WIDTH: u16 = 58;
/// Fewest columns of a screen that shows two columns of rows.
const MIN_TWO_COLUMNS_WIDTH: u16 = 120;

/// State of the help.
#[derive(Debug, Clone)]
pub struct HelpView {
    lines: Vec<HelpLine>,
    /// Indices of the lines that the search leaves.
    shown: Vec<usize>,
    /// First visible line (0-based).
    offset: usize,
    /// Search text; `None` while nothing is searched.
    search: Option<LineEdit>,
    /// Finding at hand, whose reviewer can be asked.
    finding: Option<FindingId>,
}

/// Line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HelpLine {
    Title(String),
    Entry {
        /// Keys, or a glyph.
        sign: String,
        role: Role,
        text: String,
    },
    Blank,
}

impl HelpView {
    /// Creates the help for the present place, where a finding may be at hand.
    pub fn new(app: &App, here: &[Action], finding: Option<FindingId>) -> Self {
        let mut lines = build_lines(app, here);
        let ask = finding.as_ref().and_then(|_| app.keymap.key_of(KeyContext::Help, Action::Ask));
        if let Some(key) = ask {
            let text = format!("again: {}", app.keymap.help_text(Action::Ask));
            lines.insert(1, HelpLine::Entry { sign: key.to_string(), role: Role::Key, text });
        }
        Self { shown: (0..lines.len()).collect(), lines, offset: 0, search: None, finding }
    }

    /// Lists the lines that contain every typed word, with the titles above them.
    fn apply_search(&mut self) {
        self.offset = 0;
        let text = self.search.as_ref().map_or("", LineEdit::text).to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            self.shown = (0..self.lines.len()).collect();
            return;
        }
        self.shown.clear();
        let (mut title, mut title_text) = (None, String::new());
        for (index, line) in self.lines.iter().enumerate() {
            match line {
                HelpLine::Blank => {}
                HelpLine::Title(name) => (title, title_text) = (Some(index), name.to_lowercase()),
                HelpLine::Entry { sign, text, .. } => {
                    let searched = format!("{} {} {title_text}", sign.to_lowercase(), text.to_lowercase());
                    if words.iter().all(|word| searched.contains(word)) {
                        self.shown.extend(title.take());
                        self.shown.push(index);
                    }
                }
            }
        }
    }

    /// Returns the number of columns and their height on the screen.
    fn size(&self, app: &App) -> (usize, usize) {
        let columns = if app.display.columns >= MIN_TWO_COLUMNS_WIDTH { 2 } else { 1 };
        let room = usize::from(app.display.rows).saturating_sub(4 + usize::from(self.search.is_some())).max(1);
        (columns, room.min(self.shown.len().div_ceil(columns)).max(1))
    }

    fn scroll(&mut self, app: &App, by: isize) {
        let (columns, height) = self.size(app);
        let last = self.shown.len().saturating_sub(columns * height);
        self.offset = self.offset.saturating_add_signed(by).min(last);
    }

    /// Executes a movement. Returns false for another action.
    fn run_movement(&mut self, app: &App, action: Option<Action>) -> bool {
        let page = isize::try_from(self.size(app).1).unwrap_or(isize::MAX);
        let Some(by) = action.and_then(|action| scroll_distance(action, page)) else { return false };
        self.scroll(app, by);
        true
    }

    fn search_for(&mut self, key: &str) {
        let mut line = self.search.take().unwrap_or_default();
        line.insert(key);
        self.search = Some(line);
        self.apply_search();
    }
}

impl View for HelpView {
    /// While text is typed, characters are text.
    fn key_context(&self) -> KeyContext {
        if self.search.is_some() { KeyContext::Prompt } else { KeyContext::Help }
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        if self.search.is_none() {
            let movement = press.action.or_else(|| app.keymap.action(KeyContext::Global, press.key));
            match (press.action, press.key.character()) {
                (Some(Action::Abort), _) => return ViewFlow::Close,
                (Some(Action::Ask), _) => {
                    if let Some(finding) = self.finding.take() {
                        plan_question_about(app, finding, commands);
                    }
                    return ViewFlow::Close;
                }
                (Some(Action::Search), _) => self.search = Some(LineEdit::default()),
                _ if self.run_movement(app, movement) => {}
                (None, Some(character)) => self.search_for(character.encode_utf8(&mut [0; 4])),
                _ => {}
            }
            return ViewFlow::Open;
        }
        match press.action {
            // Esc takes the search back first; Enter keeps it.
            Some(Action::Abort) => {
                self.search = None;
                self.apply_search();
            }
            Some(Action::Accept) => {}
            action if self.run_movement(app, action) => {}
            _ => {
                if self.search.as_mut().is_some_and(|line| edit_line(line, press)) {
                    self.apply_search();
                }
            }
        }
        ViewFlow::Open
    }

    fn handle_paste(&mut self, _app: &mut App, text: &str, _commands: &mut Vec<AppCommand>) {
        self.search_for(text.trim_end_matches(['\r', '\n']));
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let (columns, height) = self.size(painter.app);
        let width = COLUMN_WIDTH * columns as u16 + 6;
        let search_rows = u16::from(self.search.is_some());
        // The window keeps its height while the search leaves fewer lines.
        let full = self.lines.len().div_ceil(columns).max(height) as u16;
        let inside = draw_window(painter, width, full + 2 + search_rows, false, "Help");
        if let Some(line) = &self.search {
            let used = painter.draw_text(inside.x, inside.y, 8, "search", Role::Title) + 2;
            let field = Rect::new(inside.x + used, inside.y, inside.width.saturating_sub(used), 1);
            draw_line_edit(painter, field, line);
        }
        let list = Rect { y: inside.y + search_rows, height: inside.height.saturating_sub(search_rows), ..inside };
        if self.shown.is_empty() {
            painter.draw_text(list.x, list.y, list.width, "nothing matches", Role::Muted);
        }
        let offset = self.offset.min(self.shown.len().saturating_sub(columns * height));
        let each = list.width / columns as u16;
        for column in 0..columns {
            let x = list.x + each * column as u16;
            let lines = self.shown.iter().skip(offset + column * height).take(height);
            for (index, y) in lines.zip(list.top()..list.bottom()) {
                draw_help_line(painter, Rect::new(x, y, each.saturating_sub(2), 1), &self.lines[*index]);
            }
        }
        painter.draw_scroll_thumb(list, offset, self.shown.len());
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        match self.search {
            Some(_) => vec![(Action::Abort, "end the search"), (Action::DeleteLine, "delete line")],
            None => vec![(Action::Search, "search, or just type"), (Action::Abort, "back")],
        }
    }
}

fn draw_help_line(painter: &mut Painter<'_>, area: Rect, line: &HelpLine) {
    match line {
        HelpLine::Blank => {}
        HelpLine::Title(title) => {
            painter.draw_text(area.x, area.y, area.width, title, Role::Title);
        }
        HelpLine::Entry { sign, role, text } => {
            let used = painter.draw_text(area.x, area.y, KEY_WIDTH, sign, *role).max(KEY_WIDTH - 2) + 1;
            painter.draw_text(area.x + used, area.y, area.width.saturating_sub(used), text, Role::Normal);
        }
    }
}

/// Builds the help: the keys of the place with its most useful actions `here`, all other keys by group, the glyphs, the
/// keys of other places.
fn build_lines(app: &App, here: &[Action]) -> Vec<HelpLine> {
    let (context, keymap) = (app.key_context(), &app.keymap);
    let mut lines = Vec::new();
    let own = |wanted: KeyContext| {
        let bindings = keymap.bindings(wanted).iter().filter(move |binding| binding.context == wanted);
        unique(bindings.filter_map(|binding| binding.action))
    };
    let mut local: Vec<Action> = here.to_vec();
    local.extend(own(context));
    let local = unique(local.into_iter().filter(|action| keymap.key_of(context, *action).is_some()));
    push_section(app, &mut lines, &format!("Here: {}", context.title()), context, &local);
    for group in unique(Action::TABLE.iter().map(|row| row.1)) {
        let actions = Action::TABLE.iter().filter(|row| row.1 == group).map(|row| row.0);
        let actions: Vec<Action> =
            actions.filter(|action| !local.contains(action) && is_for_everywhere(keymap, context, *action)).collect();
        push_section(app, &mut lines, group, context, &actions);
    }
    let commands: Vec<Action> = (0..keymap.commands.len()).map(Action::Custom).collect();
    push_section(app, &mut lines, "Your commands", context, &commands);
    push_legend(app, &mut lines);
    for (other, _) in KeyContext::ALL.into_iter().filter(|(other, _)| *other != context && *other != KeyContext::Global)
    {
        push_section(app, &mut lines, &format!("In {}", other.title()), other, &own(other));
    }
    lines.truncate(lines.len().saturating_sub(1));
    lines
}

/// Returns true for an action of the global context, and for one that has no key at all.
fn is_for_everywhere(keymap: &Keymap, context: KeyContext, action: Action) -> bool {
    let has_key = |context| keymap.key_of(context, action).is_some();
    has_key(context) || has_key(KeyContext::Global) || !KeyContext::ALL.iter().any(|(context, _)| has_key(*context))
}

/// Returns the first of each equal items.
fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn push_section(app: &App, lines: &mut Vec<HelpLine>, title: &str, context: KeyContext, actions: &[Action]) {
    if actions.is_empty() {
        return;
    }
    lines.push(HelpLine::Title(title.to_owned()));
    for action in actions {
        let found = app.keymap.keys_of(context, *action);
        let keys = if found.is_empty() { app.keymap.keys_of(KeyContext::Global, *action) } else { found };
        let sign = if keys.is_empty() { app.display.glyphs.dash.to_owned() } else { join_keys(&keys) };
        lines.push(HelpLine::Entry { sign, role: Role::Key, text: app.keymap.help_text(*action).into_owned() });
    }
    lines.push(HelpLine::Blank);
}

/// Joins as many keys as fit in front of the text.
fn join_keys(keys: &[&KeySequence]) -> String {
    let mut joined = String::new();
    for key in keys.iter().map(ToString::to_string) {
        if joined.is_empty() {
            joined = key;
        } else if joined.width() + 1 + key.width() < usize::from(KEY_WIDTH) {
            joined = format!("{joined} {key}");
        }
    }
    joined
}

fn push_legend(app: &App, lines: &mut Vec<HelpLine>) {
    lines.push(HelpLine::Title("Glyphs".to_owned()));
    for entry in app.display.glyphs.legend() {
        lines.push(HelpLine::Entry { sign: entry.glyph, role: entry.role, text: entry.meaning });
    }
    lines.push(HelpLine::Blank);
}
