//! The knowledge view while it is open: what was read of the patterns, which of them are listed, and the page of the
//! selected one.
//!
//! Invariants: a selection is an id, found anew whenever rows change; rows and page are made here, when something
//! changes, and drawing takes those on screen.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use super::app::{App, Cursor, NoticeLevel};
use super::doc::Doc;
use super::layout::{SplitColumns, split_columns};
use super::message::AppCommand;
use super::{filter, pages};
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::knowledge::pattern::{Pattern, PatternStance};
use crate::knowledge::rank::PatternAssessment;
use crate::reviewers::analyzer::language::Language;

/// A pattern and where it stood when it was read.
#[derive(Debug, Clone)]
pub struct RankedPattern {
    pub pattern: Pattern,
    pub standing: PatternAssessment,
    /// Other patterns of its group.
    pub similar: usize,
}

impl RankedPattern {
    pub fn seen(&self) -> u32 {
        self.pattern.times_seen()
    }
}

/// What is known of a language; the most useful patterns first.
#[derive(Debug, Clone)]
pub struct LanguagePatterns {
    pub language: Language,
    pub patterns: Vec<RankedPattern>,
    /// Kinds of findings that are a priority lower, with how often they were dismissed.
    pub lowered: Vec<(Kind, u32)>,
}

/// Whether something new is learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearningMode {
    #[default]
    On,
    Off,
}

/// Where a pattern's finding was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternLocation {
    pub path: String,
    pub line: u32,
    pub at: Time,
}

/// Everything that is known, as it was read. Languages of which most was seen come first.
#[derive(Debug, Clone, Default)]
pub struct PatternLibrary {
    /// Languages of which something is known.
    pub languages: Vec<LanguagePatterns>,
    /// Where in this repository the newest finding of a pattern was: the patterns themselves keep no places.
    pub locations: HashMap<PatternId, PatternLocation>,
    pub learning: LearningMode,
    /// What could not be read, and what had to be set aside.
    pub troubles: Vec<String>,
}

/// Something to do with knowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeOrder {
    Read,
    Mute { language: Language, pattern: PatternId, action: MuteAction },
    Forget { language: Language, pattern: PatternId },
    Export { path: String, existing: ExportOverwrite },
}

/// What an export does about a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportOverwrite {
    Keep,
    Replace,
}

/// What came of an order other than reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeOutcome {
    /// In a sentence.
    Done(String),
    /// Nothing was written: there is a file of this name.
    Exists(String),
    Failed(String),
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowledgeRow {
    /// A language, by its place among the shelves, with how many of its patterns pass the filter.
    Language {
        shelf: usize,
        passing: usize,
    },
    Pattern {
        shelf: usize,
        at: usize,
    },
}

/// What is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeSelection {
    Language(Language),
    Pattern(PatternId),
}

/// The half of the view that the keys are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KnowledgePane {
    #[default]
    List,
    Page,
}

/// The open view.
#[derive(Debug, Clone, Default)]
pub struct KnowledgeView {
    /// `None` until it was read.
    pub library: Option<Arc<PatternLibrary>>,
    pub rows: Vec<KnowledgeRow>,
    /// Patterns that pass the filter.
    pub passing: usize,
    pub cursor: Cursor,
    /// Words; all of them must stand in what a row says.
    pub filter: String,
    pub folded: HashSet<Language>,
    pub focus: KnowledgePane,
    pub doc: Doc,
    /// The first line of the page on screen.
    pub scroll: usize,
    /// What `doc` is about.
    shown: Option<KnowledgeSelection>,
}

impl PatternLibrary {
    pub fn pattern_count(&self) -> usize {
        self.languages.iter().map(|shelf| shelf.patterns.len()).sum()
    }

    /// Whether anything but what came with revdeck is there, or was seen of that.
    fn has_learned(&self) -> bool {
        let has =
            |shelf: &LanguagePatterns| !shelf.lowered.is_empty() || shelf.patterns.iter().any(|known| known.seen() > 0);
        self.languages.iter().any(has)
    }

    /// A pattern by its id.
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

    /// The selected pattern with its language.
    pub fn selected_pattern(&self) -> Option<(Language, &RankedPattern)> {
        let row = self.selected_row()?;
        Some((self.language_patterns(row)?.language, self.ranked_pattern(row)?))
    }

    /// Whether the patterns of the selected language are hidden.
    pub fn is_folded(&self) -> bool {
        self.selected_row()
            .and_then(|row| self.language_patterns(row))
            .is_some_and(|shelf| self.folded.contains(&shelf.language))
    }

    /// Whether there is nothing to list because nothing is known at all.
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

/// Whether each word stands in something that is said of a pattern.
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

/// Opens the view; what is known is on its way.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.knowledge = Some(Box::default());
    commands.push(AppCommand::Knowledge(KnowledgeOrder::Read));
    build_page(app);
}

/// What is known is here.
pub fn set_library(app: &mut App, library: Arc<PatternLibrary>) {
    let Some(view) = &mut app.knowledge else { return };
    let first = view.library.is_none();
    let (taught, empty) = (library.has_learned(), library.languages.is_empty());
    let trouble = (!library.troubles.is_empty()).then(|| library.troubles.join(" · "));
    let (selected, at) = (view.selection(), view.cursor.selected);
    view.library = Some(library);
    refresh_rows(app, selected, if first { 1 } else { at });
    match trouble {
        Some(trouble) => app.show_notice(NoticeLevel::Error, trouble),
        // An empty page says it at length.
        None if first && !taught && !empty => {
            app.show_notice(NoticeLevel::Info, "nothing learned yet: try `revdeck knowledge learn --history 500`");
        }
        // What was said of the reading is over; what was done stays.
        None if !first => app.notice = app.notice.take().filter(|notice| notice.level != NoticeLevel::Info),
        None => {}
    }
}

/// An order was carried out, or not.
pub fn show_outcome(app: &mut App, outcome: KnowledgeOutcome) {
    match outcome {
        KnowledgeOutcome::Done(text) => app.show_notice(NoticeLevel::Success, text),
        KnowledgeOutcome::Failed(why) => app.show_notice(NoticeLevel::Error, why),
        KnowledgeOutcome::Exists(path) => super::update::confirm_replace(app, path),
    }
}

/// Lists what passes the filter; what was selected stays so where it is listed.
pub fn set_filter(app: &mut App, text: &str) {
    let Some(view) = &mut app.knowledge else { return };
    if view.filter == text {
        return;
    }
    text.clone_into(&mut view.filter);
    let (selected, at) = (view.selection(), view.cursor.selected);
    refresh_rows(app, selected, at.max(1));
}

/// Shows or hides the patterns of the language that is selected.
pub fn toggle_fold(app: &mut App) {
    let Some(view) = &mut app.knowledge else { return };
    let Some(language) = view.selected_row().and_then(|row| view.language_patterns(row)).map(|shelf| shelf.language)
    else {
        return;
    };
    let at = view.cursor.selected;
    let selected = if view.folded.remove(&language) {
        view.selection()
    } else {
        view.folded.insert(language);
        Some(KnowledgeSelection::Language(language))
    };
    refresh_rows(app, selected, at);
}

/// Makes the rows anew and finds the selection again, else the row at `at`.
fn refresh_rows(app: &mut App, selected: Option<KnowledgeSelection>, at: usize) {
    let height = list_height(app);
    let Some(view) = &mut app.knowledge else { return };
    view.rebuild_rows();
    let same = selected.and_then(|selected| {
        view.rows.iter().position(|row| match (&selected, row) {
            (KnowledgeSelection::Pattern(id), row @ KnowledgeRow::Pattern { .. }) => {
                view.ranked_pattern(*row).is_some_and(|known| known.pattern.id == *id)
            }
            (KnowledgeSelection::Language(language), row @ KnowledgeRow::Language { .. }) => {
                view.language_patterns(*row).is_some_and(|shelf| shelf.language == *language)
            }
            _ => false,
        })
    });
    let count = view.rows.len();
    match same {
        Some(at) => view.cursor.select_in_place(at, count, height),
        None => view.cursor.select(at, count, height),
    }
    build_page(app);
}

/// Selects a row.
pub fn select_row(app: &mut App, at: usize) {
    let height = list_height(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.select(at, view.rows.len(), height);
    }
    build_page(app);
}

/// Selects the next language, or the one before.
pub fn select_language(app: &mut App, forward: bool) {
    let Some(view) = &app.knowledge else { return };
    let mut shelves = view.rows.iter().enumerate().filter(|(_, row)| matches!(row, KnowledgeRow::Language { .. }));
    let next = match forward {
        true => shelves.find(|(at, _)| *at > view.cursor.selected),
        false => shelves.rfind(|(at, _)| *at < view.cursor.selected),
    };
    let Some((at, _)) = next else { return };
    select_row(app, at);
    // Its patterns are to be seen with it.
    let height = list_height(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.offset = at.min(view.rows.len().saturating_sub(height));
    }
}

/// Moves the page by some lines.
pub fn scroll(app: &mut App, by: isize) {
    let height = page_height(app);
    if let Some(view) = &mut app.knowledge {
        let most = view.doc.lines.len().saturating_sub(height);
        view.scroll = view.scroll.saturating_add_signed(by).min(most);
    }
}

/// Makes the page of what is selected, for the width that the screen has. Another selection's page begins at its top.
pub fn build_page(app: &mut App) {
    let Some(view) = &app.knowledge else { return };
    let width = usize::from(compute_areas(app).page.width).max(20);
    let (doc, selected) = (pages::build_knowledge_page(app, view, width), view.selection());
    if let Some(view) = &mut app.knowledge {
        view.doc = doc;
        if view.shown != selected {
            view.scroll = 0;
        }
        view.shown = selected;
    }
    scroll(app, 0);
}

/// The screen has another size.
pub fn handle_resize(app: &mut App) {
    let height = list_height(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.select(view.cursor.selected, view.rows.len(), height);
    }
    build_page(app);
}

/// Rows of the list that fit on the screen.
pub fn list_height(app: &App) -> usize {
    usize::from(compute_areas(app).list.height).max(1)
}

/// Lines of the page that fit on the screen.
pub fn page_height(app: &App) -> usize {
    usize::from(compute_areas(app).page.height).max(1)
}

/// Where the view's parts are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnowledgeAreas {
    pub list_title: Rect,
    pub list: Rect,
    /// The column between both where they stand beside each other.
    pub divider: Rect,
    pub page_title: Rect,
    pub page: Rect,
}

/// Beside each other where there is room for it, else one above the other; on a small screen the half that has the keys.
/// An empty view is a page.
pub fn compute_areas(app: &App) -> KnowledgeAreas {
    /// Rows that a list and a page above each other need to be of use.
    const MIN_STACKED_ROWS: u16 = 16;
    /// Columns that a list and a page beside each other need.
    const MIN_SIDE_BY_SIDE_COLUMNS: u16 = 140;
    let layout = app.layout();
    let top = layout.header.y + if app.rows >= 30 { 2 } else { 1 };
    let height = layout.notice.y.saturating_sub(top);
    let full = Rect::new(1, top, app.columns.saturating_sub(2), height);
    let split = |area: Rect| {
        let title = Rect { height: area.height.min(1), ..area };
        (title, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area })
    };
    let view = app.knowledge.as_deref();
    let side = view.map(|view| view.focus).unwrap_or_default();
    let mut areas = KnowledgeAreas::default();
    if view.is_some_and(KnowledgeView::is_empty) {
        (areas.page_title, areas.page) = split(full);
    } else if app.columns >= MIN_SIDE_BY_SIDE_COLUMNS {
        // Rows say more than the page of one of them.
        let SplitColumns { left, divider, right } = split_columns(app.columns, (app.columns * 57 / 100).min(120));
        (areas.list_title, areas.list) = split(Rect { x: left.0, width: left.1, ..full });
        areas.divider = Rect { x: divider, width: 1, ..full };
        (areas.page_title, areas.page) = split(Rect { x: right.0, width: right.1, ..full });
    } else if height >= MIN_STACKED_ROWS {
        let upper = height * 9 / 20;
        let air = u16::from(app.rows >= 30);
        (areas.list_title, areas.list) = split(Rect { height: upper - air, ..full });
        (areas.page_title, areas.page) = split(Rect { y: top + upper, height: height - upper, ..full });
    } else if side == KnowledgePane::List {
        (areas.list_title, areas.list) = split(full);
        // The page is made for the width that it will have.
        areas.page.width = full.width;
    } else {
        (areas.page_title, areas.page) = split(full);
    }
    if app.rows >= 30 && !view.is_some_and(KnowledgeView::is_empty) {
        // A blank line below the title, as elsewhere.
        areas.page.y += 1;
        areas.page.height = areas.page.height.saturating_sub(1);
    }
    areas
}
