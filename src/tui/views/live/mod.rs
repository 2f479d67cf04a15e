//! Live view: a run on the whole screen, turn by turn, while it works and after its end.
//!
//! | file | purpose |
//! |---|---|
//! | `trace` | reads, reports and coverage of each turn, from journal entries; pure |
//! | `steps` | the steps of a turn in short words; pure |
//! | `row` | rows whose parts shorten until they fit; pure |
//! | `head` | the rows above the diff |
//! | `panel` | the members of a panel, in place of turns |
//! | `draw` | rectangles and drawing |
//! | `pointer` | the turn or the file under the pointer |
//! | `worker` | follows the journal and reads the diff |
//!
//! - While the view follows a run, it shows the last turn with an answer: the next one has read nothing yet.
//! - The journal is read after changes of the store and of the run's heartbeat, of which the cockpit tells; nothing polls.

mod draw;
mod head;
mod panel;
mod pointer;
mod row;
mod steps;
mod trace;
mod worker;

use std::sync::Arc;

use ratatui::layout::Position;

pub(crate) use trace::{FileReading, ReviewTrace, path_key};
#[cfg(test)]
pub(crate) use worker::LiveLoader;
pub(crate) use worker::{LiveReply, LiveRequest, start_worker};

use pointer::LivePlace;
use trace::{FileMoment, LineReading, ReportTime, TraceMoment};

use super::confirm::{ConfirmAction, ConfirmView};
use super::{KeyPress, View, ViewChange, ViewEntry, ViewFlow, ViewReply, ViewRequest, scroll_distance};
use crate::domain::{LineRange, RunRecord};
use crate::runner::BUILTIN_REVIEWER;
use crate::store::{HeartbeatState, RunRow};
use crate::tui::app::{App, NoticeLevel};
use crate::tui::diff::{self, DiffFinding, DiffPage, DiffPageRow, DiffPane, LineTone, PlacedRow};
use crate::tui::doc::Doc;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext, ViewContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::{AppCommand, DetailSubject};
use crate::tui::turns::Turn;
use crate::tui::update::parse_run_id;

/// Row in the table of views.
pub static ENTRY: ViewEntry = ViewEntry {
    action: "live",
    group: "Panes",
    label: "live",
    help: "live view: a run turn by turn",
    key: "V",
    open,
    context: Some(&CONTEXT),
};

/// Keys of the view.
pub static CONTEXT: ViewContext = ViewContext {
    name: "live",
    title: "live view",
    keys: &[
        ("Left", "previous_turn"),
        ("Right", "next_turn"),
        ("Home", "first_turn"),
        ("End", "follow"),
        ("=", "side_by_side"),
        ("-", "wrap"),
        ("b", "ignore_space"),
        ("Esc", "abort"),
        ("q", "abort"),
    ],
    help: &[(Action::Accept, "open the member of the panel")],
    group: "Live view",
    place: (file!(), line!()),
};

/// Run as its journal tells it.
#[derive(Debug)]
pub struct LivePage {
    pub record: RunRecord,
    pub trace: ReviewTrace,
    /// Paths of the change, in the form of [`path_key`]; empty for the whole tree.
    pub changed: Vec<String>,
}

/// State of the open view.
#[derive(Debug)]
pub struct LiveView {
    /// Id of the run.
    run: String,
    page: Option<Arc<LivePage>>,
    /// The reason why the run could not be read.
    trouble: Option<String>,
    refresh: JournalRefresh,
    /// Turn and activity of the last heartbeat that was taken into account.
    beat: Option<(u32, HeartbeatState)>,
    /// Number of the turn that the user has chosen; `None` while the view follows the run.
    chosen: Option<u32>,
    /// State of the run at the shown turn.
    moment: TraceMoment,
    /// Turn at which the diff was scrolled to the lines that it read.
    scrolled_turn: Option<u32>,
    diff: DiffPane,
    /// Paths of the files of the diff in the form of [`path_key`].
    paths: Vec<String>,
    /// Files with their lines, where there is no diff.
    list: Doc,
    /// First visible line of `list`.
    list_top: usize,
    /// Number of the selected member (0-based), if the run is that of a panel.
    member: usize,
}

/// State of the request for the newest journal entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum JournalRefresh {
    #[default]
    Done,
    Pending,
    /// The run has changed since the request; the entries are requested again when the pending ones arrive.
    Outdated,
}

/// Opens the view for the selected run, else for the run that the user has requested last while it is under way, else for the
/// run of the selected finding. A run that was requested just now and is not listed yet goes before all.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    let is_under_way =
        |run: &String| app.store.view.run_index(run).is_some_and(|at| !app.store.view.run(at).status.is_terminal());
    let requested = app.run_list.requested.clone().filter(is_under_way);
    let selected = match &app.detail.subject {
        DetailSubject::Run(run) | DetailSubject::File { run, .. } => Some(run.clone()),
        DetailSubject::Finding(_) | DetailSubject::Nothing if requested.is_some() => requested,
        DetailSubject::Finding(id) => app.finding_by_id(id).map(|finding| finding.last_run.to_owned()),
        DetailSubject::Nothing => app.selected_run().map(|run| run.id.to_owned()),
    };
    let selected = selected.filter(|run| app.store.view.run_index(run).is_some());
    // The store has a requested run before the view lists it.
    let Some(run) = app.run_list.awaited.clone().or(selected) else {
        return app.show_notice(NoticeLevel::Info, "no run is selected");
    };
    open_run(app, run, commands);
}

/// Opens the view for a run, given by its id.
fn open_run(app: &mut App, run: String, commands: &mut Vec<AppCommand>) {
    let mut view = LiveView {
        run,
        page: None,
        trouble: None,
        refresh: JournalRefresh::Done,
        beat: None,
        chosen: None,
        moment: TraceMoment::default(),
        scrolled_turn: None,
        diff: DiffPane::new(app.detail.diff.options()),
        paths: Vec::new(),
        list: Doc::default(),
        list_top: 0,
        member: 0,
    };
    app.notice = None;
    view.note_beat(app);
    // What is shown of a panel is in memory.
    if !view.is_panel(app) {
        view.request(commands);
    }
    app.views.open(view);
}

impl View for LiveView {
    fn key_context(&self) -> KeyContext {
        KeyContext::View(&CONTEXT)
    }

    fn is_window(&self) -> bool {
        false
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        use Action as A;
        let Some(action) = press.action else { return ViewFlow::Open };
        app.notice = None;
        if self.is_panel(app) {
            return panel::handle_key(self, app, action, commands);
        }
        let page = isize::try_from(draw::body_height(app, self)).unwrap_or(isize::MAX).saturating_sub(1).max(1);
        match action {
            A::Abort | A::Back => return ViewFlow::Close,
            action if ENTRY.is_opened_by(action) => return ViewFlow::Close,
            A::PreviousTurn | A::Left => self.step(app, false),
            A::NextTurn | A::Right => self.step(app, true),
            A::FirstTurn => self.choose(app, self.turns().first().map(|turn| turn.number)),
            A::Follow => self.choose(app, None),
            A::SideBySide if app.display.plain => app.show_notice(NoticeLevel::Info, diff::PLAIN_IS_UNIFIED),
            A::SideBySide => drop(self.diff.toggle_side_by_side()),
            A::Wrap => drop(self.diff.toggle_wrap()),
            A::IgnoreSpace => drop(self.diff.toggle_space()),
            A::Pause => self.toggle_pause(app, commands),
            A::Cancel => self.confirm_cancel(app),
            A::Quit => commands.push(AppCommand::Quit(None)),
            action => self.scroll_by(app, scroll_distance(action, page).unwrap_or(0)),
        }
        self.sync(app, commands);
        ViewFlow::Open
    }

    /// Shows the turn under the pointer, the file of a cell of the map, or the next turn that read the file whose name is
    /// there. In a panel, selects the member; a double click opens its view.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        if self.is_panel(app) {
            panel::handle_click(self, app, cell, is_double, commands);
            return ViewFlow::Open;
        }
        let Some(place) = pointer::place_at(app, self, cell) else { return ViewFlow::Open };
        app.notice = None;
        match place {
            LivePlace::Turn(turn) => self.choose(app, Some(turn)),
            LivePlace::PreviousTurn => self.step(app, false),
            LivePlace::NextTurn => self.step(app, true),
            LivePlace::MapCell(path) => self.scroll_to_file(app, &path),
            LivePlace::File(path) => match self.find_reading_turn(&path) {
                Some(turn) => {
                    self.choose(app, Some(turn));
                    self.scroll_to_file(app, &path);
                }
                None => app.show_notice(NoticeLevel::Info, "no turn has read this file"),
            },
        }
        self.sync(app, commands);
        ViewFlow::Open
    }

    fn update(&mut self, app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            ViewChange::Resized => self.build(app),
            ViewChange::StoreRead(_) if self.may_change() && !self.is_panel(app) => self.request(commands),
            ViewChange::PulsesRead if self.may_change() && self.note_beat(app) && !self.is_panel(app) => {
                self.request(commands);
            }
            ViewChange::Reply(ViewReply::Live(reply)) => self.apply_reply(app, reply, commands),
            ViewChange::DiffTexts { page, file, texts } if Arc::ptr_eq(page, self.diff.page()) => {
                self.diff.set_texts(*file, (*texts).clone());
                self.show_turn(app);
            }
            ViewChange::DiffHighlights(highlights) => self.diff.apply_highlights(highlights),
            _ => return,
        }
        self.sync(app, commands);
    }

    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout) {
        match self.row(painter.app).filter(RunRow::is_panel) {
            Some(run) => panel::draw(painter, layout, self, &run),
            None => draw::draw(painter, layout, self),
        }
    }

    fn footer(&self, app: &App) -> Vec<(Action, &'static str)> {
        use Action as A;
        if let Some(run) = self.row(app).filter(RunRow::is_panel) {
            return panel::footer(&run);
        }
        let run = self.row(app).filter(|run| !run.status.is_terminal());
        let mut actions = Vec::new();
        if !self.turns().is_empty() {
            actions.extend([(A::PreviousTurn, "previous"), (A::NextTurn, "next turn")]);
            actions.extend(self.chosen.map(|_| (A::Follow, if run.is_some() { "follow" } else { "last turn" })));
        }
        actions.extend([(A::Down, "down"), (A::Up, "up")]);
        if let Some(run) = run {
            if run.reviewer != BUILTIN_REVIEWER {
                actions.push((A::Pause, if run.paused { "go on" } else { "pause" }));
            }
            actions.push((A::Cancel, "cancel"));
        }
        actions.extend([(A::Abort, "leave"), (A::Help, "help")]);
        actions
    }
}

impl LiveView {
    /// Returns the run's row in the newest view of the store.
    fn row<'a>(&self, app: &'a App) -> Option<RunRow<'a>> {
        app.store.view.run_index(&self.run).map(|index| app.store.view.run(index))
    }

    /// Returns true if the view shows what this run does: its own run, or a member of its panel.
    pub fn shows_run(&self, run: &RunRow<'_>) -> bool {
        self.run == run.id || self.run == run.member_of
    }

    fn is_panel(&self, app: &App) -> bool {
        self.row(app).is_some_and(|run| run.is_panel())
    }

    fn turns(&self) -> &[Arc<Turn>] {
        self.page.as_ref().map_or(&[], |page| &page.trace.history.turns)
    }

    /// Returns the position of the shown turn: the chosen one; else, while the run works, the last one with an answer; else
    /// the last one.
    fn shown_index(&self) -> Option<usize> {
        let turns = self.turns();
        let answered = || turns.iter().rposition(|turn| turn.answer().is_some());
        match self.chosen {
            Some(number) => turns.iter().position(|turn| turn.number >= number).or(turns.len().checked_sub(1)),
            None => answered().filter(|_| self.may_change()).or(turns.len().checked_sub(1)),
        }
    }

    fn shown_turn(&self) -> Option<&Turn> {
        self.shown_index().and_then(|index| self.turns().get(index)).map(AsRef::as_ref)
    }

    /// Returns true if the journal may get further entries, as far as it was read.
    fn may_change(&self) -> bool {
        self.page.as_ref().is_none_or(|page| !page.record.status.is_terminal())
    }

    /// Remembers the run's heartbeat. Returns true if its turn or its activity has changed.
    fn note_beat(&mut self, app: &App) -> bool {
        let beat = app.pulse(&self.run).map(|pulse| (pulse.turn, pulse.state.clone()));
        let is_new = beat != self.beat;
        self.beat = beat;
        is_new
    }

    /// Requests the newest entries of the journal, once at a time.
    fn request(&mut self, commands: &mut Vec<AppCommand>) {
        self.refresh = match self.refresh {
            JournalRefresh::Done => {
                let request = LiveRequest { run: self.run.clone(), wants_diff: self.diff.page().run != self.run };
                commands.push(AppCommand::View(ViewRequest::Live(request)));
                JournalRefresh::Pending
            }
            JournalRefresh::Pending | JournalRefresh::Outdated => JournalRefresh::Outdated,
        };
    }

    fn apply_reply(&mut self, app: &App, reply: &LiveReply, commands: &mut Vec<AppCommand>) {
        match reply {
            LiveReply::Run { run, page } if *run == self.run => {
                match page {
                    Ok(page) => (self.page, self.trouble) = (Some(Arc::clone(page)), None),
                    Err(error) => self.trouble = Some(error.clone()),
                }
                if std::mem::take(&mut self.refresh) == JournalRefresh::Outdated {
                    self.request(commands);
                }
                self.build(app);
            }
            LiveReply::Diff(page) if page.run == self.run => self.show_diff(app, page),
            LiveReply::Run { .. } | LiveReply::Diff(_) => {}
        }
    }

    fn show_diff(&mut self, app: &App, page: &Arc<DiffPage>) {
        if self.diff.page().run != self.run {
            self.scrolled_turn = None;
        }
        self.paths = page.files.iter().map(|file| path_key(&file.path)).collect();
        self.diff.show(Arc::clone(page), &DetailSubject::Run(self.run.clone()));
        self.diff.unfold_viewed();
        self.build(app);
    }

    /// Computes the state at the shown turn and everything that is drawn of it.
    fn build(&mut self, app: &App) {
        let Some(page) = self.page.clone() else { return };
        let turn = self.shown_turn().map(|turn| turn.number);
        self.moment = page.trace.moment(turn, &page.changed);
        let reports = &self.moment.reports;
        self.diff.open_findings(|finding| reports.get(&finding.id) == Some(&ReportTime::Now));
        self.list = draw::build_file_list(app, self);
        self.resize(app);
        self.show_turn(app);
    }

    /// Scrolls to what the shown turn reported, else to what it read, once for each turn.
    fn show_turn(&mut self, app: &App) {
        let Some(turn) = self.shown_turn().map(|turn| turn.number) else { return };
        if self.scrolled_turn == Some(turn) || self.diff.page().files.is_empty() {
            return;
        }
        self.scrolled_turn = Some(turn);
        self.resize(app);
        let found = self.find_row(|view, placed| view.is_reported_now(placed));
        let row = found.or_else(|| self.find_row(|view, placed| view.tone(placed) == LineTone::Lit));
        if let Some(row) = row {
            self.diff.jump_to(row);
        }
    }

    /// Finds the first row of the files that the shown turn read or reported about.
    fn find_row(&self, is_wanted: impl Fn(&Self, PlacedRow) -> bool) -> Option<usize> {
        let files = 0..self.diff.files().len();
        let touched = files.filter(|file| self.is_touched_now(*file));
        touched.into_iter().find_map(|file| {
            let mut rows = self.diff.file_start(file)..self.diff.file_start(file + 1);
            rows.find(|row| self.diff.row(*row).is_some_and(|placed| is_wanted(self, placed)))
        })
    }

    /// Returns true if the shown turn read or reported something in a file of the diff.
    fn is_touched_now(&self, file: usize) -> bool {
        let is_read = self.file_moment(file).is_some_and(|moment| moment.reading() == FileReading::Now);
        let findings = self.diff.page().files.get(file).map_or(&[][..], |file| &file.findings);
        is_read || findings.iter().any(|finding| self.moment.reports.get(&finding.id) == Some(&ReportTime::Now))
    }

    fn is_reported_now(&self, placed: PlacedRow) -> bool {
        let DiffPageRow::Finding { index, .. } = placed.row else { return false };
        let finding = self.diff.page().files.get(placed.file).and_then(|file| file.findings.get(index));
        finding.is_some_and(|finding| self.moment.reports.get(&finding.id) == Some(&ReportTime::Now))
    }

    /// Returns the state of a file of the diff at the shown turn.
    fn file_moment(&self, file: usize) -> Option<&FileMoment> {
        self.paths.get(file).and_then(|path| self.moment.files.get(path))
    }

    /// Returns the emphasis of a row of the diff: lit for lines that the shown turn read, dim for those that nobody has
    /// read so far.
    fn tone(&self, placed: PlacedRow) -> LineTone {
        let lines = match placed.row {
            DiffPageRow::Gap(hidden) => Some(LineRange::new(hidden.new, hidden.new + hidden.lines.saturating_sub(1))),
            DiffPageRow::Code(code) => self.diff.new_line_of(placed.file, code).map(|line| LineRange::new(line, line)),
            _ => None,
        };
        let Some(lines) = lines else { return LineTone::Plain };
        let reading = self.file_moment(placed.file).map_or(LineReading::Unread, |moment| moment.reading_of(lines));
        match (reading, placed.row) {
            (LineReading::Now, _) => LineTone::Lit,
            (LineReading::Unread, DiffPageRow::Code(_)) => LineTone::Dim,
            _ => LineTone::Plain,
        }
    }

    /// Returns true for a finding that has a mark at the shown turn. Findings of other runs always have one.
    fn is_marked(&self, finding: &DiffFinding) -> bool {
        self.moment.reports.get(&finding.id) != Some(&ReportTime::Hidden)
    }

    /// Goes to the next or the previous turn. Beyond the last turn, the view follows the run.
    fn step(&mut self, app: &App, forward: bool) {
        let Some(shown) = self.shown_index() else { return };
        let turns = self.turns();
        let next = if forward { Some(shown + 1) } else { Some(shown.saturating_sub(1)) };
        let chosen = next.and_then(|next| turns.get(next)).map(|turn| turn.number);
        self.choose(app, chosen);
    }

    /// Shows a turn; `None` follows the run.
    fn choose(&mut self, app: &App, turn: Option<u32>) {
        self.chosen = turn;
        self.build(app);
    }

    /// Scrolls to a file of the diff, or of the list in its place.
    fn scroll_to_file(&mut self, app: &App, path: &str) {
        let signed = |row: usize| isize::try_from(row).unwrap_or(isize::MAX);
        if let Some(file) = self.paths.iter().position(|known| known == path) {
            let (start, top) = (self.diff.file_start(file), self.diff.top());
            self.diff.scroll_by(signed(start) - signed(top));
        } else if let Some(row) = self.moment.files.keys().position(|known| known == path) {
            self.scroll_by(app, signed(row) - signed(self.list_top));
        }
    }

    /// Returns the number of the first turn behind the shown one that read a file, around the end.
    fn find_reading_turn(&self, path: &str) -> Option<u32> {
        let (page, turns) = (self.page.as_ref()?, self.turns());
        let shown = self.shown_index().unwrap_or(0);
        let around = (shown + 1..turns.len()).chain(0..=shown).filter_map(|index| turns.get(index));
        let has_read = |turn: u32| {
            let moment = page.trace.moment(Some(turn), &page.changed);
            moment.files.get(path).is_some_and(|file| file.reading() == FileReading::Now)
        };
        around.map(|turn| turn.number).find(|turn| has_read(*turn))
    }

    /// Scrolls the diff, or the list of files in its place.
    fn scroll_by(&mut self, app: &App, by: isize) {
        let height = draw::body_height(app, self);
        self.diff.scroll_by(by);
        self.list_top =
            self.list_top.saturating_add_signed(by).min(self.list.lines.len().saturating_sub(height.max(1)));
    }

    /// Takes the size of the body.
    fn resize(&mut self, app: &App) {
        let (width, height) = draw::diff_size(app, self);
        self.diff.set_plain(app.display.plain);
        self.diff.resize(width, height);
        self.list_top = self.list_top.min(self.list.lines.len().saturating_sub(height));
    }

    /// Adapts the diff to the body, and requests the texts that are on the screen and near it.
    fn sync(&mut self, app: &App, commands: &mut Vec<AppCommand>) {
        self.resize(app);
        diff::request_visible(&mut self.diff, commands);
    }

    fn toggle_pause(&self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let run = self.row(app).filter(|run| !run.status.is_terminal() && run.reviewer != BUILTIN_REVIEWER);
        let (Some(paused), Some(id)) = (run.map(|run| run.paused), parse_run_id(&self.run)) else {
            return app.show_notice(NoticeLevel::Info, "this review cannot be paused");
        };
        app.show_notice(NoticeLevel::Info, if paused { "asking the run to go on" } else { "asking the run to pause" });
        commands.push(if paused { AppCommand::Resume(id) } else { AppCommand::Pause(id) });
    }

    fn confirm_cancel(&self, app: &mut App) {
        let Some(run) = self.row(app).filter(|run| !run.status.is_terminal()) else {
            return app.show_notice(NoticeLevel::Info, "this review is not running");
        };
        let text = format!("Cancel the review of {}? What it found stays.", app.name_run(&run));
        app.views.open(ConfirmView { action: ConfirmAction::Cancel(self.run.clone()), text });
    }
}
