//! Views and windows in front of the panes: each file holds the state, the keys, the loading, the page and the
//! drawing of one view.
//!
//! To add a full-screen view: a file here with a type that implements [`View`] and its row, a [`ViewEntry`]; and the
//! line of the row in [`VIEWS`]. The action that opens it, its key, and its lines in help and palette follow from the row.
//!
//! A view that has more than that has it in one place each:
//!
//! | what | where |
//! |---|---|
//! | keys of its own, besides those that scroll and leave | nowhere else: a [`ViewContext`] in its file, named in its row; other pages share [`stats::CONTEXT`] |
//! | actions of its own, which no other view has | rows in `keymap.rs` |
//! | data that takes time | nowhere else: a [`ViewLoad`] in its file, sent as [`ViewRequest::Load`]; [`stats`] is an example |
//! | a thread of its own, which keeps what it has read between requests | variants of [`ViewRequest`] and [`ViewReply`], and the thread in [`ViewWorkers`] |
//!
//! Windows are opened by the code that needs them.

pub(crate) mod comment;
pub(crate) mod confirm;
pub(crate) mod fix;
pub(crate) mod help;
pub(crate) mod knowledge;
pub(crate) mod live;
pub(crate) mod load;
pub(crate) mod menu;
pub(crate) mod palette;
pub(crate) mod patch;
pub(crate) mod prompt;
pub(crate) mod review_form;
mod revision_list;
pub(crate) mod stats;
#[cfg(test)]
mod tests;
mod theme_picker;
pub(crate) mod triage;
mod window;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use jiff::tz::TimeZone;
use ratatui::layout::Position;

use super::app::{App, NoticeLevel};
use super::diff::{DiffPage, DiffTexts, TextHighlights};
use super::draw::footer_actions;
use super::draw::painter::Painter;
use super::event_source::MessageSender;
use super::input::KeyEvent;
use super::keymap::{Action, KeyContext, ViewContext};
use super::layout::ScreenLayout;
use super::message::{AppCommand, TriageOrder};
use crate::domain::{FindingId, Fix};
use crate::runner::Services;
use crate::store::StoreView;
use crate::store::triage::UndoOutcome;
use crate::tui::update::finding_at_hand;
use fix::FixOrder;
use knowledge::{KnowledgeOrder, KnowledgeOutcome, PatternLibrary};
use live::{LiveReply, LiveRequest};
use load::{FailedLoad, LoadInputs, LoadThreads, ViewLoad};
use palette::matching::{PaletteMatches, PaletteQuery};
use review_form::{ReviewFormReply, ReviewFormRequest};
use triage::{CardRequest, TriageCard};

/// View in place of the panes, or window in front of them. While one of its functions runs, the view is not in
/// [`App::views`].
pub trait View: fmt::Debug + Any {
    /// Returns the context in which the keymap looks up the view's keys.
    fn key_context(&self) -> KeyContext;

    /// Returns true for a window, which stands in front of the panes and over which no unprompted question opens;
    /// false for a view that is drawn in place of the panes.
    fn is_window(&self) -> bool {
        true
    }

    /// Returns true for a field of text: the wheel never edits it or chooses in it, but scrolls what stands behind.
    fn is_text_field(&self) -> bool {
        false
    }

    /// Handles a key press. The view in front gets all keys.
    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow;

    /// Handles a click at a cell of the screen; `is_double` for the second press of a double click.
    fn handle_click(
        &mut self,
        _app: &mut App,
        _cell: Position,
        _is_double: bool,
        _commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        ViewFlow::Open
    }

    /// Handles pasted text.
    fn handle_paste(&mut self, _app: &mut App, _text: &str, _commands: &mut Vec<AppCommand>) {}

    /// Adapts the view to a change. Every open view gets every change.
    fn update(&mut self, _app: &mut App, _change: &ViewChange<'_>, _commands: &mut Vec<AppCommand>) {}

    /// Returns the finding that the view is about, whose reviewer can be asked.
    fn finding_at_hand(&self) -> Option<FindingId> {
        None
    }

    /// Returns true if the footer names Enter for an action that Enter has, although another key is shorter.
    fn names_enter(&self) -> bool {
        false
    }

    /// Draws the view.
    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout);

    /// Returns the actions of the footer with their labels, most useful first.
    fn footer(&self, app: &App) -> Vec<(Action, &'static str)>;
}

/// Key press and the action bound to it in the context of the view.
#[derive(Debug, Clone, Copy)]
pub struct KeyPress {
    pub key: KeyEvent,
    pub action: Option<Action>,
}

/// State of a view after a key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewFlow {
    Open,
    Close,
}

/// Change that may concern an open view.
#[derive(Debug)]
pub enum ViewChange<'a> {
    Resized,
    /// The store has changed.
    StoreRead(&'a Arc<StoreView>),
    /// The heartbeats of the working runs have changed.
    PulsesRead,
    /// The fixes have changed.
    FixesRead,
    /// Data that a view requested.
    Reply(&'a ViewReply),
    /// Texts of a file of a diff.
    DiffTexts {
        page: &'a Arc<DiffPage>,
        /// Index of the file.
        file: usize,
        texts: &'a Result<Arc<DiffTexts>, String>,
    },
    /// Highlighted lines of a file of a diff.
    DiffHighlights(&'a TextHighlights),
    /// The store has answered a triage order.
    Triaged {
        order: &'a TriageOrder,
        result: &'a Result<UndoOutcome, String>,
    },
    /// A question about this finding was sent, or has its result.
    Asked(&'a FindingId),
    /// A fix request has ended.
    Fixed {
        order: &'a FixOrder,
        result: &'a Result<Box<Fix>, String>,
    },
}

/// Request of a view for data, executed by its worker thread.
#[derive(Debug)]
pub enum ViewRequest {
    /// Loads data on the thread of this kind of load.
    Load(Box<dyn ViewLoad>),
    Knowledge(KnowledgeOrder),
    ReviewForm(ReviewFormRequest),
    /// Finds the rows of the palette.
    Palette(PaletteQuery),
    /// Loads these findings for triage mode, the most urgent first.
    TriageCards(Vec<String>),
    /// Reads the newest entries of a run's journal.
    Live(LiveRequest),
}

/// Message of a view's worker thread.
#[derive(Debug)]
pub enum ViewReply {
    /// Data of a [`ViewLoad`], which its view knows by its type.
    Loaded(Box<dyn Any + Send>),
    /// A [`ViewLoad`] gave no data.
    LoadFailed(FailedLoad),
    /// Current patterns.
    Knowledge(Arc<PatternLibrary>),
    /// Another process has changed the patterns.
    KnowledgeChanged,
    /// Result of a knowledge request.
    KnowledgeFinished(KnowledgeOutcome),
    ReviewForm(ReviewFormReply),
    /// Rows of the palette.
    Palette(PaletteMatches),
    /// Finding for triage mode, or the reason why it could not be read.
    TriageCard {
        finding: String,
        card: Result<Arc<TriageCard>, String>,
    },
    Live(LiveReply),
}

/// Full-screen views that an action opens, in the order of the help.
pub static VIEWS: [&ViewEntry; 3] = [&stats::ENTRY, &knowledge::ENTRY, &live::ENTRY];

/// Row of [`VIEWS`]: all that keymap, help, palette and panes know of a view.
#[derive(Debug)]
pub struct ViewEntry {
    /// Name of the action that opens the view, in keymaps.
    pub action: &'static str,
    /// Group of the action in the help.
    pub group: &'static str,
    /// Label of the action in the footer.
    pub label: &'static str,
    /// Help text of the action.
    pub help: &'static str,
    /// Default key of the action, in all panes and full-screen views.
    pub key: &'static str,
    /// Opens the view, or says why it cannot.
    pub open: fn(&mut App, &mut Vec<AppCommand>),
    /// Keys of the view; `None` for a view that shares those of another one.
    pub context: Option<&'static ViewContext>,
}

impl ViewEntry {
    /// Returns true for the action that opens this view; in the view, it closes it.
    pub fn is_opened_by(&self, action: Action) -> bool {
        matches!(action, Action::View(index) if VIEWS.get(index).is_some_and(|entry| entry.action == self.action))
    }
}

/// Opens the view of an action; other actions are ignored.
pub fn open_for_action(app: &mut App, action: Action, commands: &mut Vec<AppCommand>) {
    match action {
        Action::Review => review_form::open(app, commands),
        Action::Help => {
            let finding = match app.views.front() {
                None => finding_at_hand(app),
                Some(view) => view.finding_at_hand(),
            };
            let here: Vec<Action> =
                footer_actions(app, app.key_context()).into_iter().map(|(action, _)| action).collect();
            let help = help::HelpView::new(app, &here, finding);
            app.views.open(help);
        }
        Action::Palette => palette::open(app, commands),
        Action::Triage => triage::open(app, commands),
        Action::View(index) => {
            if let Some(entry) = VIEWS.get(index) {
                (entry.open)(app, commands);
            }
        }
        _ => {}
    }
}

/// Hands a reply to the open views.
pub fn apply_reply(app: &mut App, reply: ViewReply, commands: &mut Vec<AppCommand>) {
    match reply {
        // Its result matters after the view was closed, too.
        ViewReply::KnowledgeFinished(outcome) => knowledge::show_outcome(app, outcome),
        ViewReply::ReviewForm(ReviewFormReply::Facts(facts)) => match facts {
            Ok(facts) => app.review_facts = facts,
            Err(error) => app.show_notice(NoticeLevel::Error, error),
        },
        // Enter may have been pressed before, so that the result runs something.
        ViewReply::Palette(matches) => palette::apply_matches(app, matches, commands),
        reply => apply_change(app, &ViewChange::Reply(&reply), commands),
    }
}

/// Worker threads of the views.
pub struct ViewWorkers {
    loads: LoadThreads,
    knowledge: Sender<(KnowledgeOrder, Arc<StoreView>)>,
    review_form: Sender<ReviewFormRequest>,
    palette: Sender<PaletteQuery>,
    triage: Sender<CardRequest>,
    live: Sender<(LiveRequest, Arc<StoreView>)>,
}

impl ViewWorkers {
    /// Starts the threads.
    pub fn start(services: &Services, zone: TimeZone, messages: &MessageSender) -> Self {
        Self {
            loads: LoadThreads::new(LoadInputs { store: services.store.clone(), zone }, messages.clone()),
            knowledge: knowledge::start_worker(services, messages),
            review_form: review_form::start_worker(services, messages),
            palette: palette::matching::start_worker(messages),
            triage: triage::start_worker(services, messages),
            live: live::start_worker(services, messages),
        }
    }

    /// Sends a request to its thread; `view` is the newest view of the store. Returns false if the thread has ended.
    pub fn send(&self, request: ViewRequest, view: &Arc<StoreView>) -> bool {
        match request {
            ViewRequest::Load(load) => {
                self.loads.send(load);
                true
            }
            ViewRequest::Palette(query) => self.palette.send(query).is_ok(),
            ViewRequest::Knowledge(order) => self.knowledge.send((order, Arc::clone(view))).is_ok(),
            ViewRequest::ReviewForm(request) => self.review_form.send(request).is_ok(),
            ViewRequest::TriageCards(findings) => self.triage.send((findings, Arc::clone(view))).is_ok(),
            ViewRequest::Live(request) => self.live.send((request, Arc::clone(view))).is_ok(),
        }
    }
}

/// Open views, from back to front.
#[derive(Debug, Default)]
pub struct ViewStack {
    views: Vec<Box<dyn View>>,
}

impl ViewStack {
    /// Opens a view in front of the others.
    pub fn open(&mut self, view: impl View) {
        self.views.push(Box::new(view));
    }

    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Closes the view in front.
    pub fn close_front(&mut self) {
        self.views.pop();
    }

    /// Closes all views, so that the panes are in sight.
    pub fn close_all(&mut self) {
        self.views.clear();
    }

    /// Closes the open view of this type for which `is_meant` returns true. Returns false if there is none.
    pub fn close_matching<V: View>(&mut self, is_meant: impl Fn(&V) -> bool) -> bool {
        let place = self.views.iter().position(|view| downcast::<V>(&**view).is_some_and(&is_meant));
        place.map(|place| self.views.remove(place)).is_some()
    }

    /// Returns the view in front, which gets the keys.
    pub fn front(&self) -> Option<&dyn View> {
        self.views.last().map(|view| &**view)
    }

    /// Returns the view in front if it has this type.
    pub fn front_as<V: View>(&self) -> Option<&V> {
        self.views.last().and_then(|view| downcast(&**view))
    }

    /// Returns the foremost open view of this type.
    pub fn find<V: View>(&self) -> Option<&V> {
        self.views.iter().rev().find_map(|view| downcast(&**view))
    }

    /// Returns the place of the view that the wheel scrolls, counted from the back, and the context of its keys: the view in
    /// front; behind a field of text, the view in place of the panes. Returns `None` for the panes.
    pub fn find_wheel_target(&self) -> Option<(usize, KeyContext)> {
        let place = match self.front()?.is_text_field() {
            true => self.views.iter().rposition(|view| !view.is_window())?,
            false => self.views.len() - 1,
        };
        Some((place, self.views[place].key_context()))
    }

    /// Returns true if a window stands in front.
    pub fn has_window(&self) -> bool {
        self.front().is_some_and(View::is_window)
    }

    /// Returns true if a view is drawn in place of the panes.
    pub fn covers_panes(&self) -> bool {
        self.views.iter().any(|view| !view.is_window())
    }

    /// Draws the views in place of the panes, or the windows in front of them.
    pub fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout, windows: bool) {
        for view in self.views.iter().filter(|view| view.is_window() == windows) {
            view.draw(painter, layout);
        }
    }
}

fn downcast<V: View>(view: &dyn View) -> Option<&V> {
    let view: &dyn Any = view;
    view.downcast_ref()
}

/// Hands a key press to the view in front. Returns false if no view is open, or if the key is that of a pane, which closes the
/// full-screen views: the pane is to be seen.
pub fn handle_key(app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> bool {
    let Some(place) = app.views.views.len().checked_sub(1) else { return false };
    if matches!(press.action, Some(Action::Runs | Action::Findings | Action::Files))
        && app.views.views.iter().all(|view| matches!(view.key_context(), KeyContext::View(_)))
    {
        app.views.views.clear();
        return false;
    }
    handle_key_at(app, place, press, commands);
    true
}

/// Hands a key press to the view at a place, counted from the back. Without such a view, nothing happens.
pub fn handle_key_at(app: &mut App, place: usize, press: KeyPress, commands: &mut Vec<AppCommand>) {
    if place >= app.views.views.len() {
        return;
    }
    let mut view = app.views.views.remove(place);
    if view.handle_key(app, press, commands) == ViewFlow::Open {
        // A view that was opened meanwhile stays in front.
        app.views.views.insert(place, view);
    }
}

/// Hands a click to the view in front. Returns false if no view is open.
pub fn handle_click(app: &mut App, (column, row): (u16, u16), is_double: bool, commands: &mut Vec<AppCommand>) -> bool {
    let Some(mut view) = app.views.views.pop() else { return false };
    let place = app.views.views.len();
    if view.handle_click(app, Position::new(column, row), is_double, commands) == ViewFlow::Open {
        app.views.views.insert(place, view);
    }
    true
}

/// Hands pasted text to the view in front.
pub fn handle_paste(app: &mut App, text: &str, commands: &mut Vec<AppCommand>) {
    if let Some(mut view) = app.views.views.pop() {
        let place = app.views.views.len();
        view.handle_paste(app, text, commands);
        app.views.views.insert(place, view);
    }
}

/// Hands a change to every open view.
pub fn apply_change(app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
    let mut views = std::mem::take(&mut app.views.views);
    for view in &mut views {
        view.update(app, change, commands);
    }
    views.append(&mut app.views.views);
    app.views.views = views;
}

/// Changes the open view of this type, if there is one.
pub fn change_view<V: View>(app: &mut App, change: impl FnOnce(&mut V, &mut App)) {
    let Some(place) = app.views.views.iter().position(|view| downcast::<V>(&**view).is_some()) else { return };
    let mut view = app.views.views.remove(place);
    let inside: &mut dyn Any = &mut *view;
    if let Some(inside) = inside.downcast_mut::<V>() {
        change(inside, app);
    }
    app.views.views.insert(place, view);
}

/// Returns by how many lines an action scrolls; `None` if it does not scroll. `page` is the number of lines of a page.
pub(crate) fn scroll_distance(action: Action, page: isize) -> Option<isize> {
    Some(match action {
        Action::Down => 1,
        Action::Up => -1,
        Action::HalfPageDown => (page / 2).max(1),
        Action::HalfPageUp => -(page / 2).max(1),
        Action::PageDown => page,
        Action::PageUp => -page,
        Action::Top => isize::MIN,
        Action::Bottom => isize::MAX,
        _ => return None,
    })
}

/// Returns actions with their own labels, for a footer.
pub fn with_labels<const N: usize>(actions: [Action; N]) -> Vec<(Action, &'static str)> {
    actions.into_iter().map(|action| (action, action.footer_label())).collect()
}
