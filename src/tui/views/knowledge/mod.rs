//! Learned patterns by language on one side, the page of the selected pattern on the other.
//!
//! - A selection is an id; its row is looked up again whenever rows change.
//! - Rows and page are built on changes; drawing only copies the visible part.
//! - Reads and writes are requested; a change is shown only after it is stored.

mod draw;
mod keys;
mod page;
mod worker;
pub(crate) use worker::start_worker;
#[cfg(test)]
pub(crate) use worker::{CacheWatcher, KnowledgeWorker};

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::confirm::{ConfirmAction, confirm_if_idle};
use super::{KeyPress, View, ViewChange, ViewEntry, ViewFlow, ViewReply, ViewRequest, prompt};
use crate::domain::{Kind, MuteAction, PatternId, Time, text};
use crate::knowledge::pattern::{Pattern, PatternStance};
use crate::knowledge::rank::PatternAssessment;
use crate::syntax::language::Language;
use crate::tui::app::{App, Cursor, NoticeLevel};
use crate::tui::doc::Doc;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext, ViewContext};
use crate::tui::layout::{ScreenLayout, SplitColumns, split_columns};
use crate::tui::message::AppCommand;
use crate::tui::{filter, pages};

/// Row in the table of views.
pub static ENTRY: ViewEntry = ViewEntry {
    action: "knowledge",
    group: "Panes",
    label: "knowledge",
    help: "learned patterns",
    key: "K",
    open,
    context: Some(&CONTEXT),
};

/// Keys of the view.
pub static CONTEXT: ViewContext = ViewContext {
    name: "knowledge",
    title: "learned patterns",
    keys: &[
        ("q", "abort"),
        ("Space", "unfold"),
        ("m", "mute"),
        ("D", "forget"),
        ("x", "forget"),
        ("e", "export"),
        ("r", "reload"),
    ],
    help: &[],
    group: "Knowledge",
    place: (file!(), line!()),
};

/// Pattern and its rank at the time it was read.
#[derive(Debug, Clone)]
pub struct RankedPattern {
    pub pattern: Pattern,
    pub standing: PatternAssessment,
    /// Number of other patterns in its group.
    pub similar: usize,
}

impl RankedPattern {
    pub fn seen(&self) -> u32 {
        self.pattern.times_seen()
    }
}

/// Knowledge about a language; the most useful patterns first.
#[derive(Debug, Clone)]
pub struct LanguagePatterns {
    pub language: Language,
    pub patterns: Vec<RankedPattern>,
    /// Finding kinds whose priority is lowered by one, with their number of dismissals.
    pub lowered: Vec<(Kind, u32)>,
}

/// Setting that turns learning on or off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearningMode {
    #[default]
    On,
    Off,
}

/// Location of a pattern's newest finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternLocation {
    pub path: String,
    pub line: u32,
    pub at: Time,
}

/// Knowledge of all languages; the languages whose patterns were seen most come first.
#[derive(Debug, Clone, Default)]
pub struct PatternLibrary {
    /// Languages with at least one pattern.
    pub languages: Vec<LanguagePatterns>,
    /// Location of each pattern's newest finding in this repository. The patterns themselves store no locations.
    pub locations: HashMap<PatternId, PatternLocation>,
    pub learning: LearningMode,
    /// Read errors, and notices about damaged entries.
    pub troubles: Vec<String>,
}

/// Request to the knowledge worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeOrder {
    Read,
    Mute { language: Language, pattern: PatternId, action: MuteAction },
    Forget { language: Language, pattern: PatternId },
    Export { path: String, existing: ExportOverwrite },
}

/// Behaviour of an export if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportOverwrite {
    Keep,
    Replace,
}

/// Result of a request other than reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeOutcome {
    /// Success message.
    Done(String),
    /// Path of an existing file; nothing was written.
    Exists(String),
    Failed(String),
}

/// Row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowledgeRow {
    /// A language: its index in [`PatternLibrary::languages`] and the number of its patterns that match the filter.
    Language {
        shelf: usize,
        passing: usize,
    },
    Pattern {
        shelf: usize,
        at: usize,
    },
}

/// Selected item of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeSelection {
    Language(Language),
    Pattern(PatternId),
}

/// Half of the view that has the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KnowledgePane {
    #[default]
    List,
    Page,
}

/// State of the open view.
#[derive(Debug, Clone, Default)]
pub struct KnowledgeView {
    /// `None` until the first read finishes.
    pub library: Option<Arc<PatternLibrary>>,
    pub rows: Vec<KnowledgeRow>,
    /// Number of patterns that match the filter.
    pub passing: usize,
    pub cursor: Cursor,
    /// Words; each must occur in a text of the pattern.
    pub filter: String,
    pub folded: HashSet<Language>,
    pub focus: KnowledgePane,
    pub doc: Doc,
    /// First visible line of the page (0-based).
    pub scroll: usize,
    /// Item that `doc` shows.
    shown: Option<KnowledgeSelection>,
}

impl PatternLibrary {
    pub fn pattern_count(&self) -> usize {
        self.languages.iter().map(|shelf| shelf.patterns.len()).sum()
    }

    /// Returns true if any pattern was seen in a review or any kind is lowered.
    fn has_learned(&self) -> bool {
        let has =
            |shelf: &LanguagePatterns| !shelf.lowered.is_empty() || shelf.patterns.iter().any(|known| known.seen() > 0);
        self.languages.iter().any(has)
    }

    /// Returns the pattern with this id.
    pub fn pattern(&self, id: &PatternId) -> Option<&RankedPattern> {
        self.languages.iter().flat_map(|shelf| &shelf.patterns).find(|known| known.pattern.id == *id)
    }
}

impl KnowledgeView {
    pub fn language_patterns(&self, row: KnowledgeRow) -> Option<&LanguagePatterns> {
        let (KnowledgeRow::Language { shelf, .. } | KnowledgeRow::Pattern { shelf, .. }) = row;
        self.library.as_ref()?.languages.get(shelf)
    }

    pub fn ranked_pattern(&self, row: KnowledgeRow) -> Option<&RankedPattern> {
        match row {
            KnowledgeRow::Language { .. } => None,
            KnowledgeRow::Pattern { at, .. } => self.language_patterns(row)?.patterns.get(at),
        }
    }

    pub fn selected_row(&self) -> Option<KnowledgeRow> {
        self.rows.get(self.cursor.selected).copied()
    }

    /// Returns the selected pattern and its language.
    pub fn selected_pattern(&self) -> Option<(Language, &RankedPattern)> {
        let row = self.selected_row()?;
        Some((self.language_patterns(row)?.language, self.ranked_pattern(row)?))
    }

    /// Returns true if the patterns of the selected language are hidden.
    pub fn is_folded(&self) -> bool {
        self.selected_row()
            .and_then(|row| self.language_patterns(row))
            .is_some_and(|shelf| self.folded.contains(&shelf.language))
    }

    /// Returns true if the library was read and holds no patterns.
    pub fn is_empty(&self) -> bool {
        self.library.as_ref().is_some_and(|library| library.languages.is_empty())
    }

    fn selection(&self) -> Option<KnowledgeSelection> {
        let row = self.selected_row()?;
        Some(match self.ranked_pattern(row) {
            Some(known) => KnowledgeSelection::Pattern(known.pattern.id.clone()),
            None => KnowledgeSelection::Language(self.language_patterns(row)?.language),
        })
    }

    fn rebuild_rows(&mut self) {
        self.rows.clear();
        self.passing = 0;
        let Some(library) = &self.library else { return };
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        for (shelf, held) in library.languages.iter().enumerate() {
            let before = self.rows.len();
            let passing = held.patterns.iter().enumerate().filter(|(_, known)| matches_words(&known.pattern, &words));
            self.rows.push(KnowledgeRow::Language { shelf, passing: 0 });
            self.rows.extend(passing.map(|(at, _)| KnowledgeRow::Pattern { shelf, at }));
            let passing = self.rows.len() - before - 1;
            self.rows[before] = KnowledgeRow::Language { shelf, passing };
            self.passing += passing;
            match passing {
                0 => self.rows.truncate(before),
                _ if self.folded.contains(&held.language) => self.rows.truncate(before + 1),
                _ => {}
            }
        }
    }
}

/// Returns true if each word occurs in some text about the pattern.
fn matches_words(pattern: &Pattern, words: &[&str]) -> bool {
    let stance = match pattern.stance {
        PatternStance::Mistake => "mistake",
        PatternStance::FalseAlarm => "false alarm",
    };
    let muted = if pattern.muted { "muted" } else { "" };
    let kind = pages::format_kind(pattern.kind.word());
    let edit = pages::format_kind(pattern.edit.word());
    let said: [&str; 10] = [
        &pattern.language,
        &pattern.description,
        &pattern.instruction,
        &kind,
        &edit,
        stance,
        pattern.origin.word(),
        pattern.evidence.word(),
        muted,
        pattern.id.as_str(),
    ];
    words.iter().all(|word| said.iter().any(|text| filter::contains_ignore_case(text, word)))
}

/// Opens the view and requests the library.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    let mut view = KnowledgeView::default();
    commands.push(request(KnowledgeOrder::Read));
    view.build_page(app);
    app.views.open(view);
}

fn request(order: KnowledgeOrder) -> AppCommand {
    AppCommand::View(ViewRequest::Knowledge(order))
}

/// Shows the result of a request.
pub fn show_outcome(app: &mut App, outcome: KnowledgeOutcome) {
    match outcome {
        KnowledgeOutcome::Done(text) => {
            prompt::forget_asked(app, prompt::KNOWLEDGE_PROMPTS);
            app.show_notice(NoticeLevel::Success, text);
        }
        KnowledgeOutcome::Failed(why) => {
            if !prompt::reopen_refused(app, prompt::KNOWLEDGE_PROMPTS, &why) {
                app.show_notice(NoticeLevel::Error, why);
            }
        }
        KnowledgeOutcome::Exists(path) => {
            prompt::forget_asked(app, prompt::KNOWLEDGE_PROMPTS);
            confirm_replace(app, path);
        }
    }
}

/// Asks if an export may replace an existing file.
fn confirm_replace(app: &mut App, path: String) {
    let text = format!("There is a file {}. Replace it?", text::sanitize_line(&path));
    let order = KnowledgeOrder::Export { path, existing: ExportOverwrite::Replace };
    confirm_if_idle(
        app,
        ConfirmAction::Knowledge(order),
        text,
        "nothing was exported, the file is there already: export again",
    );
}

impl View for KnowledgeView {
    fn key_context(&self) -> KeyContext {
        KeyContext::View(&CONTEXT)
    }

    fn is_window(&self) -> bool {
        false
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        app.notice = None;
        match press.action {
            Some(action) => self.run_action(app, action, commands),
            None => ViewFlow::Open,
        }
    }

    /// Selects the row under the pointer; a double click folds or unfolds a language, and goes to the page of a pattern. A
    /// click on the page gives it the focus.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        _commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        app.notice = None;
        let areas = self.compute_areas(app);
        if areas.list.contains(cell) {
            self.focus = KnowledgePane::List;
            let at = self.cursor.offset + usize::from(cell.y - areas.list.y);
            let Some(row) = self.rows.get(at).copied() else { return ViewFlow::Open };
            // It is in sight: the list stays where it is, so that a second click finds the same row.
            self.cursor.selected = at;
            self.build_page(app);
            match row {
                _ if !is_double => {}
                KnowledgeRow::Language { .. } => self.toggle_fold(app),
                KnowledgeRow::Pattern { .. } => self.focus = KnowledgePane::Page,
            }
        } else if areas.list_title.contains(cell) {
            self.focus = KnowledgePane::List;
        } else if areas.page.contains(cell) || areas.page_title.contains(cell) {
            self.focus = KnowledgePane::Page;
        }
        self.scroll_by(app, 0);
        ViewFlow::Open
    }

    fn update(&mut self, app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            ViewChange::Resized => self.handle_resize(app),
            ViewChange::Reply(ViewReply::Knowledge(library)) => self.set_library(app, library),
            ViewChange::Reply(ViewReply::KnowledgeChanged) => commands.push(request(KnowledgeOrder::Read)),
            _ => {}
        }
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        draw::draw(painter, self);
    }

    /// Returns the actions for the selected pattern, or for a language.
    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        use Action as A;
        if self.is_empty() {
            return vec![(A::Reload, "reload"), (A::Back, "back"), (A::Help, "help")];
        }
        let of_it = match self.selected_pattern() {
            Some((_, known)) => {
                vec![(A::Mute, if known.pattern.muted { "unmute" } else { "mute" }), (A::Forget, "forget")]
            }
            None => vec![(A::Unfold, if self.is_folded() { "unfold" } else { "fold" })],
        };
        let of_all =
            [(A::Filter, "filter"), (A::Export, "export"), (A::Reload, "reload"), (A::Back, "back"), (A::Help, "help")];
        of_it.into_iter().chain(of_all).collect()
    }
}

impl KnowledgeView {
    /// Shows a library that was read and keeps the selection.
    fn set_library(&mut self, app: &mut App, library: &Arc<PatternLibrary>) {
        let first = self.library.is_none();
        let (taught, empty) = (library.has_learned(), library.languages.is_empty());
        let trouble = (!library.troubles.is_empty()).then(|| library.troubles.join(" · "));
        let (selected, at) = (self.selection(), self.cursor.selected);
        self.library = Some(Arc::clone(library));
        self.refresh_rows(app, selected, if first { 1 } else { at });
        match trouble {
            Some(trouble) => app.show_notice(NoticeLevel::Error, trouble),
            // An empty page explains this at length.
            None if first && !taught && !empty => {
                app.show_notice(NoticeLevel::Info, "nothing learned yet: try `revdeck knowledge learn --history 500`");
            }
            // A notice about reading disappears; a notice about a change stays.
            None if !first => app.notice = app.notice.take().filter(|notice| notice.level != NoticeLevel::Info),
            None => {}
        }
    }

    /// Applies a filter; the selected item stays selected if it still matches.
    pub fn set_filter(&mut self, app: &App, text: &str) {
        if self.filter == text {
            return;
        }
        text.clone_into(&mut self.filter);
        let (selected, at) = (self.selection(), self.cursor.selected);
        self.refresh_rows(app, selected, at.max(1));
    }

    /// Folds or unfolds the patterns of the selected language.
    fn toggle_fold(&mut self, app: &App) {
        let Some(language) =
            self.selected_row().and_then(|row| self.language_patterns(row)).map(|shelf| shelf.language)
        else {
            return;
        };
        let at = self.cursor.selected;
        let selected = if self.folded.remove(&language) {
            self.selection()
        } else {
            self.folded.insert(language);
            Some(KnowledgeSelection::Language(language))
        };
        self.refresh_rows(app, selected, at);
    }

    /// Rebuilds the rows and restores the selection; if it is gone, selects row `at`.
    fn refresh_rows(&mut self, app: &App, selected: Option<KnowledgeSelection>, at: usize) {
        let height = self.list_height(app);
        self.rebuild_rows();
        let same = selected.and_then(|selected| {
            self.rows.iter().position(|row| match (&selected, row) {
                (KnowledgeSelection::Pattern(id), row @ KnowledgeRow::Pattern { .. }) => {
                    self.ranked_pattern(*row).is_some_and(|known| known.pattern.id == *id)
                }
                (KnowledgeSelection::Language(language), row @ KnowledgeRow::Language { .. }) => {
                    self.language_patterns(*row).is_some_and(|shelf| shelf.language == *language)
                }
                _ => false,
            })
        });
        let count = self.rows.len();
        match same {
            Some(at) => self.cursor.select_in_place(at, count, height),
            None => self.cursor.select(at, count, height),
        }
        self.build_page(app);
    }

    /// Selects a row.
    fn select_row(&mut self, app: &App, at: usize) {
        let height = self.list_height(app);
        self.cursor.select(at, self.rows.len(), height);
        self.build_page(app);
    }

    /// Selects the next or previous language.
    fn select_language(&mut self, app: &App, forward: bool) {
        let mut shelves = self.rows.iter().enumerate().filter(|(_, row)| matches!(row, KnowledgeRow::Language { .. }));
        let next = match forward {
            true => shelves.find(|(at, _)| *at > self.cursor.selected),
            false => shelves.rfind(|(at, _)| *at < self.cursor.selected),
        };
        let Some((at, _)) = next else { return };
        self.select_row(app, at);
        // Scrolls so that its patterns are visible below it.
        self.cursor.offset = at.min(self.rows.len().saturating_sub(self.list_height(app)));
    }

    /// Scrolls the page by a number of lines.
    fn scroll_by(&mut self, app: &App, by: isize) {
        let most = self.doc.lines.len().saturating_sub(self.page_height(app));
        self.scroll = self.scroll.saturating_add_signed(by).min(most);
    }

    /// Builds the page of the selected item for the current width. The page of a new selection starts at the top.
    fn build_page(&mut self, app: &App) {
        let width = usize::from(self.compute_areas(app).page.width).max(20);
        let selected = self.selection();
        self.doc = page::build_knowledge_page(app, self, width);
        if self.shown != selected {
            self.scroll = 0;
        }
        self.shown = selected;
        self.scroll_by(app, 0);
    }

    /// Adapts rows and page to a new screen size.
    fn handle_resize(&mut self, app: &App) {
        let height = self.list_height(app);
        self.cursor.select(self.cursor.selected, self.rows.len(), height);
        self.build_page(app);
    }

    /// Returns the number of list rows that fit on the screen (at least 1).
    fn list_height(&self, app: &App) -> usize {
        usize::from(self.compute_areas(app).list.height).max(1)
    }

    /// Returns the number of page lines that fit on the screen (at least 1).
    fn page_height(&self, app: &App) -> usize {
        usize::from(self.compute_areas(app).page.height).max(1)
    }

    /// Computes the rectangles: list and page side by side, else stacked, else only the half with the focus. An empty
    /// view is only a page.
    fn compute_areas(&self, app: &App) -> KnowledgeAreas {
        /// Fewest rows for a list and a page stacked.
        const MIN_STACKED_ROWS: u16 = 16;
        /// Fewest columns for a list and a page side by side.
        const MIN_SIDE_BY_SIDE_COLUMNS: u16 = 140;
        let layout = app.layout();
        let top = layout.header.bottom() + u16::from(app.display.rows >= 30);
        let height = layout.notice.y.saturating_sub(top);
        let full = Rect::new(1, top, app.display.columns.saturating_sub(3), height);
        let split = |area: Rect| {
            let title = Rect { height: area.height.min(1), ..area };
            (title, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area })
        };
        let mut areas = KnowledgeAreas::default();
        if self.is_empty() {
            (areas.page_title, areas.page) = split(full);
        } else if app.display.columns >= MIN_SIDE_BY_SIDE_COLUMNS && !app.display.plain {
            // The list gets 57 % of the width, because its rows say more than the page of one pattern.
            let SplitColumns { left, divider, right } =
                split_columns(app.display.columns, (app.display.columns * 57 / 100).min(120));
            (areas.list_title, areas.list) = split(Rect { x: left.0, width: left.1, ..full });
            areas.divider = Rect { x: divider, width: 1, ..full };
            (areas.page_title, areas.page) = split(Rect { x: right.0, width: right.1, ..full });
        } else if height >= MIN_STACKED_ROWS {
            let upper = height * 9 / 20;
            let air = u16::from(app.display.rows >= 30);
            (areas.list_title, areas.list) = split(Rect { height: upper - air, ..full });
            (areas.page_title, areas.page) = split(Rect { y: top + upper, height: height - upper, ..full });
        } else if self.focus == KnowledgePane::List {
            (areas.list_title, areas.list) = split(full);
            // The hidden page is still built for the width it will have.
            areas.page.width = full.width;
        } else {
            (areas.page_title, areas.page) = split(full);
        }
        if app.display.rows >= 30 && !self.is_empty() {
            // A blank line below the title, as in the other views.
            areas.page.y += 1;
            areas.page.height = areas.page.height.saturating_sub(1);
        }
        areas
    }
}

/// Rectangles of the view's parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KnowledgeAreas {
    pub list_title: Rect,
    pub list: Rect,
    /// Column between list and page when they stand side by side.
    pub divider: Rect,
    pub page_title: Rect,
    pub page: Rect,
}
