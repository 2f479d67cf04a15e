//! Help: the keys of the present place, the other keys, and the meaning of the glyphs. Typing searches it.

use ratatui::layout::Rect;

use super::prompt::{draw_line_edit, edit_line};
use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewFlow, scroll_distance};
use crate::domain::FindingId;
use crate::tui::app::App;
use crate::tui::doc;
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext, KeySequence, Keymap};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::AppCommand;
use crate::tui::theme::Role;
use crate::tui::update::{can_answer, plan_question_about};

/// Most columns of the keys in front of a text.
const KEY_WIDTH: u16 = 18;
/// Column at which the texts begin, unless the keys are longer.
const TEXT_COLUMN: u16 = 17;
/// Fewest columns of a row whose texts begin at [`TEXT_COLUMN`]. On a narrower one the texts take the room of the keys.
const MIN_WIDE_ROW: u16 = 40;
/// Column of the texts on a narrow screen: below the keys if these are longer.
const NARROW_TEXT_COLUMN: u16 = 4;
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
    /// First visible row (0-based).
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

/// Row on the screen: a title, or a part of an entry that is as long as the row.
#[derive(Debug, PartialEq, Eq)]
struct HelpRow<'a> {
    /// Keys or glyph with their role; `None` where a text continues.
    sign: Option<(&'a str, Role)>,
    text: String,
    text_role: Role,
    /// Column of the text.
    column: u16,
}

impl HelpView {
    /// Creates the help for the present place. A finding at hand is offered for a question if its reviewer can answer.
    pub fn new(app: &App, here: &[Action], finding: Option<FindingId>) -> Self {
        let finding = finding.filter(|finding| can_answer(app, finding));
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

    /// Lays out the lines that the search leaves.
    fn shown_rows(&self, app: &App) -> Vec<HelpRow<'_>> {
        let width = row_width(app);
        let shown = self.shown.iter().filter_map(|line| self.lines.get(*line));
        shown.flat_map(|line| lay_out_line(line, width)).collect()
    }

    /// Returns the height of the columns for this number of rows.
    fn height(&self, app: &App, rows: usize) -> usize {
        // The window is as high as it can be; on a small screen it has no frame.
        let (_, inside) = place_window(app, window_width(column_count(app)), app.display.rows, false);
        let room = usize::from(inside.height).saturating_sub(usize::from(self.search.is_some())).max(1);
        room.min(rows.div_ceil(usize::from(column_count(app)))).max(1)
    }

    fn scroll(&mut self, app: &App, by: isize) {
        let rows = self.shown_rows(app).len();
        let last = rows.saturating_sub(usize::from(column_count(app)) * self.height(app, rows));
        self.offset = self.offset.min(last).saturating_add_signed(by).min(last);
    }

    /// Executes a movement. Returns false for another action.
    fn run_movement(&mut self, app: &App, action: Option<Action>) -> bool {
        let page = isize::try_from(self.height(app, self.shown_rows(app).len())).unwrap_or(isize::MAX);
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
        let (columns, width) = (column_count(painter.app), row_width(painter.app));
        let rows = self.shown_rows(painter.app);
        let height = self.height(painter.app, rows.len());
        let search_rows = u16::from(self.search.is_some());
        // The window keeps its height while the search leaves fewer lines.
        let all: usize = self.lines.iter().map(|line| lay_out_line(line, width).len()).sum();
        let full = all.div_ceil(usize::from(columns)).max(height) as u16;
        let inside = draw_window(painter, window_width(columns), full + 2 + search_rows, false, "Help");
        if let Some(line) = &self.search {
            let used = painter.draw_text(inside.x, inside.y, 8, "search", Role::Title) + 2;
            let field = Rect::new(inside.x + used, inside.y, inside.width.saturating_sub(used), 1);
            draw_line_edit(painter, field, line);
        }
        let list = Rect { y: inside.y + search_rows, height: inside.height.saturating_sub(search_rows), ..inside };
        if rows.is_empty() {
            painter.draw_text(list.x, list.y, list.width, "nothing matches", Role::Muted);
        }
        let offset = self.offset.min(rows.len().saturating_sub(usize::from(columns) * height));
        for column in 0..columns {
            let x = list.x + list.width / columns * column;
            let shown = rows.iter().skip(offset + usize::from(column) * height).take(height);
            for (row, y) in shown.zip(list.top()..list.bottom()) {
                draw_help_row(painter, Rect::new(x, y, width, 1), row);
            }
        }
        painter.draw_scroll_thumb(list, offset, rows.len());
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        match self.search {
            Some(_) => vec![(Action::Abort, "end the search"), (Action::DeleteLine, "delete line")],
            None => vec![(Action::Search, "search, or just type"), (Action::Abort, "back")],
        }
    }
}

/// Returns the number of columns of rows.
fn column_count(app: &App) -> u16 {
    if app.display.columns >= MIN_TWO_COLUMNS_WIDTH { 2 } else { 1 }
}

fn window_width(columns: u16) -> u16 {
    COLUMN_WIDTH * columns + 6
}

/// Returns the width of a row in its column.
fn row_width(app: &App) -> u16 {
    let columns = column_count(app);
    let (_, inside) = place_window(app, window_width(columns), app.display.rows, false);
    (inside.width / columns).saturating_sub(2)
}

/// Lays out a line in rows of this width: a long text continues below its beginning.
fn lay_out_line(line: &HelpLine, width: u16) -> Vec<HelpRow<'_>> {
    let row = |sign, text: String, text_role, column| HelpRow { sign, text, text_role, column };
    match line {
        HelpLine::Blank => vec![row(None, String::new(), Role::Normal, 0)],
        HelpLine::Title(title) => {
            let parts = doc::wrap_words(title, usize::from(width));
            parts.into_iter().map(|part| row(None, part, Role::Title, 0)).collect()
        }
        HelpLine::Entry { sign, role, text } => {
            let end = (sign.width() as u16).min(KEY_WIDTH) + 1;
            let is_wide = width >= MIN_WIDE_ROW;
            let column = if is_wide { end.max(TEXT_COLUMN) } else { NARROW_TEXT_COLUMN };
            let parts = doc::wrap_words(text, usize::from(width.saturating_sub(column)));
            let mut rows: Vec<_> = parts.into_iter().map(|part| row(None, part, Role::Normal, column)).collect();
            if rows.is_empty() || end > column {
                rows.insert(0, row(None, String::new(), Role::Normal, column));
            }
            rows[0].sign = Some((sign.as_str(), *role));
            rows
        }
    }
}

fn draw_help_row(painter: &mut Painter<'_>, area: Rect, row: &HelpRow<'_>) {
    if let Some((sign, role)) = row.sign {
        painter.draw_text(area.x, area.y, KEY_WIDTH.min(area.width), sign, role);
    }
    let x = area.x + row.column;
    painter.draw_text(x, area.y, area.right().saturating_sub(x), &row.text, row.text_role);
}

/// Builds the help: the keys of the place with its most useful actions `here`, all other keys by group, the glyphs, the
/// keys of other places. A key that does something else at the place is one of other places.
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
    let hidden = unique(own(KeyContext::Global).into_iter().filter(|action| is_hidden(keymap, context, *action)));
    for group in unique(Action::rows().map(|row| row.1)) {
        let actions = Action::rows().filter(|row| row.1 == group).map(|row| row.0);
        let actions = actions.filter(|action| !local.contains(action) && is_for_everywhere(keymap, context, *action));
        let actions: Vec<Action> = actions.filter(|action| !hidden.contains(action)).collect();
        push_section(app, &mut lines, group, context, &actions);
    }
    let commands: Vec<Action> = (0..keymap.commands.len()).map(Action::Custom).collect();
    push_section(app, &mut lines, "Your commands", context, &commands);
    push_legend(app, &mut lines);
    push_section(app, &mut lines, "In other places", KeyContext::Global, &hidden);
    for other in keymap.contexts().filter(|other| *other != context && *other != KeyContext::Global) {
        push_section(app, &mut lines, &format!("In {}", other.title()), other, &own(other));
    }
    lines.truncate(lines.len().saturating_sub(1));
    lines
}

/// Returns true for an action of the global context, and for one that has no key at all.
fn is_for_everywhere(keymap: &Keymap, context: KeyContext, action: Action) -> bool {
    let has_key = |context| keymap.key_of(context, action).is_some();
    has_key(context) || has_key(KeyContext::Global) || !keymap.contexts().any(has_key)
}

/// Returns true for an action whose global keys all do something else in the context, which has no other key for it.
fn is_hidden(keymap: &Keymap, context: KeyContext, action: Action) -> bool {
    context.has_global_fallback()
        && keymap.key_of(context, action).is_none()
        && keymap.key_of(KeyContext::Global, action).is_some()
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
        let text = app.keymap.help_text_in(context, *action).into_owned();
        lines.push(HelpLine::Entry { sign, role: Role::Key, text });
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::tui::tests::support::{press, showing, view};

    #[rstest]
    #[case::two_columns(160, 48)]
    #[case::one_column(100, 30)]
    #[case::small(80, 24)]
    #[case::narrow(36, 8)]
    #[case::smallest(20, 5)]
    fn no_text_is_cut(#[case] columns: u16, #[case] rows: u16) {
        let app = showing(columns, rows, view());
        let help = HelpView::new(&app, &[], None);
        let width = row_width(&app);
        for line in &help.lines {
            let laid_out = lay_out_line(line, width);
            let fits = |row: &HelpRow<'_>| row.column + row.text.width() as u16 <= width;
            assert!(laid_out.iter().all(fits), "{columns} columns: {laid_out:?}");
            let text: String = laid_out.iter().map(|row| row.text.as_str()).collect();
            let whole = match line {
                HelpLine::Blank => "",
                HelpLine::Title(text) | HelpLine::Entry { text, .. } => text,
            };
            assert_eq!(text.replace(' ', ""), whole.replace(' ', ""), "{columns} columns");
        }
    }

    #[rstest]
    #[case("In statistics", "q Esc", "leave the view")]
    #[case("In learned patterns", "q", "leave the view")]
    #[case("In live view", "q Esc", "leave the view")]
    #[case("In triage mode", "q Esc", "leave the view")]
    #[case("In menus", "Enter", "open or do what is selected")]
    #[case("In the review form", "Enter", "begin the review")]
    #[case("In the review form", "q Esc Ctrl-c", "cancel")]
    #[case("In this help", "q Esc Enter Ctrl-c", "leave the help")]
    fn a_key_is_described_by_what_it_does_in_its_place(#[case] place: &str, #[case] keys: &str, #[case] text: &str) {
        let app = showing(160, 48, view());
        let help = HelpView::new(&app, &[], None);
        let title = help.lines.iter().position(|line| matches!(line, HelpLine::Title(title) if title == place));
        let title = title.unwrap_or_else(|| panic!("{place} in {:?}", help.lines));
        let entries = help.lines[title + 1..].iter().map_while(|line| match line {
            HelpLine::Entry { sign, text, .. } => Some((sign.as_str(), text.as_str())),
            HelpLine::Title(_) | HelpLine::Blank => None,
        });
        let entries: Vec<_> = entries.collect();
        let is_same_key = |sign: &str| sign.split(' ').next() == keys.split(' ').next();
        assert!(entries.iter().any(|(sign, said)| is_same_key(sign) && *said == text), "{keys} in {entries:?}");
    }

    #[test]
    fn a_key_that_does_something_else_here_is_listed_for_other_places() {
        let mut app = showing(160, 48, view());
        press(&mut app, "t");
        let help = HelpView::new(&app, &[], None);
        // The section and the text of each line with this key.
        let texts_of = |key: &str| -> Vec<(String, String)> {
            let mut section = String::new();
            let mut found = Vec::new();
            for line in &help.lines {
                match line {
                    HelpLine::Title(title) => section.clone_from(title),
                    HelpLine::Entry { sign, text, .. } if sign.split(' ').next() == Some(key) => {
                        found.push((section.clone(), text.clone()));
                    }
                    HelpLine::Entry { .. } | HelpLine::Blank => {}
                }
            }
            found
        };
        for key in ["1", "n"] {
            let places: Vec<String> = texts_of(key).into_iter().map(|(section, _)| section).collect();
            assert_eq!(places.first().map(String::as_str), Some("Here: triage mode"), "{key}: {places:?}");
            assert!(places.iter().any(|place| place == "In other places"), "{key}: {places:?}");
            assert!(!places.iter().any(|place| place == "Panes" || place == "Move"), "{key}: {places:?}");
        }
        let (section, _) = texts_of("C").swap_remove(0);
        assert_eq!(section, "Act", "a key that works here, too");
    }

    #[test]
    fn a_long_text_continues_below_its_beginning() {
        let entry = |sign: &str| HelpLine::Entry {
            sign: sign.to_owned(),
            role: Role::Key,
            text: "sort and group the findings, the files or the runs".to_owned(),
        };
        let lay_out = |sign: &str, width| -> Vec<String> {
            let line = entry(sign);
            let row = |row: HelpRow<'_>| {
                let sign = row.sign.map_or("", |(sign, _)| sign);
                let gap = usize::from(row.column).saturating_sub(sign.width());
                format!("{sign}{:gap$}{}", "", row.text).trim_end().to_owned()
            };
            lay_out_line(&line, width).into_iter().map(row).collect()
        };
        let wide = ["o                sort and group the findings, the files", "                 or the runs"];
        assert_eq!(lay_out("o", 56), wide);
        let narrow = ["o   sort and group the", "    findings, the files or", "    the runs"];
        assert_eq!(lay_out("o", 26), narrow);
        let below = ["Ctrl-o", "    sort and group the", "    findings, the files or", "    the runs"];
        assert_eq!(lay_out("Ctrl-o", 26), below);
    }
}
