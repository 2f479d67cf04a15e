//! The knowledge view while it is open: what was read of the patterns, which of them are listed, and the page of the
//! selected one.
//!
//! Invariants: a selection is an id, found anew whenever rows change; rows and page are made here, when something
//! changes, and drawing takes those on screen.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use super::app::{App, Cursor, Tone};
use super::doc::Doc;
use super::layout::{Columns, beside};
use super::message::Command;
use super::{filter, pages};
use crate::domain::{Kind, MuteAction, PatternId, Time};
use crate::knowledge::pattern::{Pattern, Stance};
use crate::knowledge::rank::Standing;
use crate::provider::builtin::language::Language;

/// A pattern and where it stood when it was read.
#[derive(Debug, Clone)]
pub struct Known {
    pub pattern: Pattern,
    pub standing: Standing,
    /// Other patterns of its group.
    pub similar: usize,
}

impl Known {
    pub fn seen(&self) -> u32 {
        self.pattern.seen()
    }
}

/// What is known of a language; the most useful patterns first.
#[derive(Debug, Clone)]
pub struct Shelf {
    pub language: Language,
    pub patterns: Vec<Known>,
    /// Kinds of findings that are a priority lower, with how often they were dismissed.
    pub lowered: Vec<(Kind, u32)>,
}

/// Whether something new is learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Learning {
    #[default]
    On,
    Off,
}

/// Where a pattern's finding was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: String,
    pub line: u32,
    pub at: Time,
}

/// Everything that is known, as it was read. Languages of which most was seen come first.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// Languages of which something is known.
    pub shelves: Vec<Shelf>,
    /// Where in this repository the newest finding of a pattern was: the patterns themselves keep no places.
    pub places: HashMap<PatternId, Place>,
    pub learning: Learning,
    /// What could not be read, and what had to be set aside.
    pub troubles: Vec<String>,
}

/// Something to do with knowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    Read,
    Mute { language: Language, pattern: PatternId, action: MuteAction },
    Forget { language: Language, pattern: PatternId },
    Export { path: String, existing: Existing },
}

/// What an export does about a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Keep,
    Replace,
}

/// What came of an order other than reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// In a sentence.
    Done(String),
    /// Nothing was written: there is a file of this name.
    Exists(String),
    Failed(String),
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A language, by its place among the shelves, with how many of its patterns pass the filter.
    Shelf {
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
pub enum Selected {
    Shelf(Language),
    Pattern(PatternId),
}

/// The half of the view that the keys are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Side {
    #[default]
    List,
    Page,
}

/// The open view.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// `None` until it was read.
    pub library: Option<Arc<Library>>,
    pub rows: Vec<Row>,
    /// Patterns that pass the filter.
    pub passing: usize,
    pub cursor: Cursor,
    /// Words; all of them must stand in what a row says.
    pub filter: String,
    pub folded: HashSet<Language>,
    pub side: Side,
    pub doc: Doc,
    /// The first line of the page on screen.
    pub scroll: usize,
    /// What `doc` is about.
    shown: Option<Selected>,
}

impl Library {
    pub fn count(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.patterns.len()).sum()
    }

    /// Whether anything but what came with revdeck is there, or was seen of that.
    fn has_learned(&self) -> bool {
        let has = |shelf: &Shelf| !shelf.lowered.is_empty() || shelf.patterns.iter().any(|known| known.seen() > 0);
        self.shelves.iter().any(has)
    }

    /// A pattern by its id.
    pub fn pattern(&self, id: &PatternId) -> Option<&Known> {
        self.shelves.iter().flat_map(|shelf| &shelf.patterns).find(|known| known.pattern.id == *id)
    }
}

impl Knowledge {
    pub fn shelf(&self, row: Row) -> Option<&Shelf> {
        let (Row::Shelf { shelf, .. } | Row::Pattern { shelf, .. }) = row;
        self.library.as_ref()?.shelves.get(shelf)
    }

    pub fn known(&self, row: Row) -> Option<&Known> {
        match row {
            Row::Shelf { .. } => None,
            Row::Pattern { at, .. } => self.shelf(row)?.patterns.get(at),
        }
    }

    pub fn row(&self) -> Option<Row> {
        self.rows.get(self.cursor.at).copied()
    }

    /// The selected pattern with its language.
    pub fn chosen(&self) -> Option<(Language, &Known)> {
        let row = self.row()?;
        Some((self.shelf(row)?.language, self.known(row)?))
    }

    /// Whether the patterns of the selected language are hidden.
    pub fn is_folded(&self) -> bool {
        self.row().and_then(|row| self.shelf(row)).is_some_and(|shelf| self.folded.contains(&shelf.language))
    }

    /// Whether there is nothing to list because nothing is known at all.
    pub fn is_empty(&self) -> bool {
        self.library.as_ref().is_some_and(|library| library.shelves.is_empty())
    }

    fn selected(&self) -> Option<Selected> {
        let row = self.row()?;
        Some(match self.known(row) {
            Some(known) => Selected::Pattern(known.pattern.id.clone()),
            None => Selected::Shelf(self.shelf(row)?.language),
        })
    }

    fn list(&mut self) {
        self.rows.clear();
        self.passing = 0;
        let Some(library) = &self.library else { return };
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        for (shelf, held) in library.shelves.iter().enumerate() {
            let before = self.rows.len();
            let passing = held.patterns.iter().enumerate().filter(|(_, known)| passes(&known.pattern, &words));
            self.rows.push(Row::Shelf { shelf, passing: 0 });
            self.rows.extend(passing.map(|(at, _)| Row::Pattern { shelf, at }));
            let passing = self.rows.len() - before - 1;
            self.rows[before] = Row::Shelf { shelf, passing };
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
fn passes(pattern: &Pattern, words: &[&str]) -> bool {
    let stance = match pattern.stance {
        Stance::Mistake => "mistake",
        Stance::FalseAlarm => "false alarm",
    };
    let muted = if pattern.muted { "muted" } else { "" };
    let kind = pages::kind_words(pattern.kind.word());
    let edit = pages::kind_words(pattern.edit.word());
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
    words.iter().all(|word| said.iter().any(|text| filter::holds(text, word)))
}

/// Opens the view; what is known is on its way.
pub fn open(app: &mut App, commands: &mut Vec<Command>) {
    app.knowledge = Some(Box::default());
    commands.push(Command::Knowledge(Order::Read));
    build(app);
}

/// What is known is here.
pub fn came(app: &mut App, library: Arc<Library>) {
    let Some(view) = &mut app.knowledge else { return };
    let first = view.library.is_none();
    let (taught, empty) = (library.has_learned(), library.shelves.is_empty());
    let trouble = (!library.troubles.is_empty()).then(|| library.troubles.join(" · "));
    let (selected, at) = (view.selected(), view.cursor.at);
    view.library = Some(library);
    relist(app, selected, if first { 1 } else { at });
    match trouble {
        Some(trouble) => app.say(Tone::Trouble, trouble),
        // An empty page says it at length.
        None if first && !taught && !empty => {
            app.say(Tone::Plain, "nothing learned yet: try `revdeck knowledge learn --history 500`");
        }
        // What was said of the reading is over; what was done stays.
        None if !first => app.notice = app.notice.take().filter(|notice| notice.tone != Tone::Plain),
        None => {}
    }
}

/// An order was carried out, or not.
pub fn done(app: &mut App, outcome: Outcome) {
    match outcome {
        Outcome::Done(text) => app.say(Tone::Done, text),
        Outcome::Failed(why) => app.say(Tone::Trouble, why),
        Outcome::Exists(path) => super::update::ask_replace(app, path),
    }
}

/// Lists what passes the filter; what was selected stays so where it is listed.
pub fn set_filter(app: &mut App, text: &str) {
    let Some(view) = &mut app.knowledge else { return };
    if view.filter == text {
        return;
    }
    text.clone_into(&mut view.filter);
    let (selected, at) = (view.selected(), view.cursor.at);
    relist(app, selected, at.max(1));
}

/// Shows or hides the patterns of the language that is selected.
pub fn fold(app: &mut App) {
    let Some(view) = &mut app.knowledge else { return };
    let Some(language) = view.row().and_then(|row| view.shelf(row)).map(|shelf| shelf.language) else { return };
    let at = view.cursor.at;
    let selected = if view.folded.remove(&language) {
        view.selected()
    } else {
        view.folded.insert(language);
        Some(Selected::Shelf(language))
    };
    relist(app, selected, at);
}

/// Makes the rows anew and finds the selection again, else the row at `at`.
fn relist(app: &mut App, selected: Option<Selected>, at: usize) {
    let height = rows(app);
    let Some(view) = &mut app.knowledge else { return };
    view.list();
    let same = selected.and_then(|selected| {
        view.rows.iter().position(|row| match (&selected, row) {
            (Selected::Pattern(id), row @ Row::Pattern { .. }) => {
                view.known(*row).is_some_and(|known| known.pattern.id == *id)
            }
            (Selected::Shelf(language), row @ Row::Shelf { .. }) => {
                view.shelf(*row).is_some_and(|shelf| shelf.language == *language)
            }
            _ => false,
        })
    });
    let count = view.rows.len();
    match same {
        Some(at) => view.cursor.moved(at, count, height),
        None => view.cursor.go(at, count, height),
    }
    build(app);
}

/// Selects a row.
pub fn go_to(app: &mut App, at: usize) {
    let height = rows(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.go(at, view.rows.len(), height);
    }
    build(app);
}

/// Selects the next language, or the one before.
pub fn go_to_shelf(app: &mut App, forward: bool) {
    let Some(view) = &app.knowledge else { return };
    let mut shelves = view.rows.iter().enumerate().filter(|(_, row)| matches!(row, Row::Shelf { .. }));
    let next = match forward {
        true => shelves.find(|(at, _)| *at > view.cursor.at),
        false => shelves.rfind(|(at, _)| *at < view.cursor.at),
    };
    let Some((at, _)) = next else { return };
    go_to(app, at);
    // Its patterns are to be seen with it.
    let height = rows(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.offset = at.min(view.rows.len().saturating_sub(height));
    }
}

/// Moves the page by some lines.
pub fn scroll(app: &mut App, by: isize) {
    let height = page_rows(app);
    if let Some(view) = &mut app.knowledge {
        let most = view.doc.lines.len().saturating_sub(height);
        view.scroll = view.scroll.saturating_add_signed(by).min(most);
    }
}

/// Makes the page of what is selected, for the width that the screen has. Another selection's page begins at its top.
pub fn build(app: &mut App) {
    let Some(view) = &app.knowledge else { return };
    let width = usize::from(areas(app).page.width).max(20);
    let (doc, selected) = (pages::knowledge(app, view, width), view.selected());
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
pub fn resized(app: &mut App) {
    let height = rows(app);
    if let Some(view) = &mut app.knowledge {
        view.cursor.go(view.cursor.at, view.rows.len(), height);
    }
    build(app);
}

/// Rows of the list that fit on the screen.
pub fn rows(app: &App) -> usize {
    usize::from(areas(app).list.height).max(1)
}

/// Lines of the page that fit on the screen.
pub fn page_rows(app: &App) -> usize {
    usize::from(areas(app).page.height).max(1)
}

/// Where the view's parts are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    pub list_title: Rect,
    pub list: Rect,
    /// The column between both where they stand beside each other.
    pub divider: Rect,
    pub page_title: Rect,
    pub page: Rect,
}

/// Beside each other where there is room for it, else one above the other; on a small screen the half that has the keys.
/// An empty view is a page.
pub fn areas(app: &App) -> Areas {
    /// Rows that a list and a page above each other need to be of use.
    const BOTH: u16 = 16;
    /// Columns that a list and a page beside each other need.
    const BESIDE: u16 = 140;
    let layout = app.layout();
    let top = layout.header.y + if app.rows >= 30 { 2 } else { 1 };
    let height = layout.notice.y.saturating_sub(top);
    let full = Rect::new(1, top, app.columns.saturating_sub(2), height);
    let split = |area: Rect| {
        let title = Rect { height: area.height.min(1), ..area };
        (title, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area })
    };
    let view = app.knowledge.as_deref();
    let side = view.map(|view| view.side).unwrap_or_default();
    let mut areas = Areas::default();
    if view.is_some_and(Knowledge::is_empty) {
        (areas.page_title, areas.page) = split(full);
    } else if app.columns >= BESIDE {
        // Rows say more than the page of one of them.
        let Columns { left, divider, right } = beside(app.columns, (app.columns * 57 / 100).min(120));
        (areas.list_title, areas.list) = split(Rect { x: left.0, width: left.1, ..full });
        areas.divider = Rect { x: divider, width: 1, ..full };
        (areas.page_title, areas.page) = split(Rect { x: right.0, width: right.1, ..full });
    } else if height >= BOTH {
        let upper = height * 9 / 20;
        let air = u16::from(app.rows >= 30);
        (areas.list_title, areas.list) = split(Rect { height: upper - air, ..full });
        (areas.page_title, areas.page) = split(Rect { y: top + upper, height: height - upper, ..full });
    } else if side == Side::List {
        (areas.list_title, areas.list) = split(full);
        // The page is made for the width that it will have.
        areas.page.width = full.width;
    } else {
        (areas.page_title, areas.page) = split(full);
    }
    if app.rows >= 30 && !view.is_some_and(Knowledge::is_empty) {
        // A blank line below the title, as elsewhere.
        areas.page.y += 1;
        areas.page.height = areas.page.height.saturating_sub(1);
    }
    areas
}
