//! The state of the cockpit: one owner, changed by `update` only, read by the views.
//!
//! Invariant: a selection is an id. Positions are found anew whenever rows change, and the selected row keeps its place
//! on the screen.

use std::collections::HashSet;
use std::sync::Arc;

use super::doc::{self, Doc, FoldKey};
use super::filter::{self, Filter, Known};
use super::fixes::{FixOrder, Fixes};
use super::glyphs::Glyphs;
use super::keymap::{Context, Keymap};
use super::knowledge::{Knowledge, Order};
use super::layout::{self, Layout};
use super::line::LineEdit;
use super::live::Mode;
use super::loaded::Loaded;
use super::message::{FileRow, Subject, Tab, TriageLine};
use super::stats::Stats;
use super::theme::{Depth, Theme};
use crate::domain::{FindingId, FindingStatus, RunStatus, Scope, Surroundings};
use crate::runner::{Runner, WatchState};
use crate::store::{FindingRow, Pulse, RunRow, View};

/// The panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    Runs,
    Findings,
    Files,
    Detail,
}

/// A position in rows and the first row on screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    pub at: usize,
    pub offset: usize,
}

impl Cursor {
    /// Moves to a row; the window follows with as little motion as possible.
    pub fn go(&mut self, at: usize, rows: usize, height: usize) {
        self.at = at.min(rows.saturating_sub(1));
        self.offset = self.offset.clamp((self.at + 1).saturating_sub(height.max(1)), self.at);
        self.offset = self.offset.min(rows.saturating_sub(height.max(1)));
    }

    /// The rows changed and the selected one is at `at` now: it keeps its place on the screen.
    pub fn moved(&mut self, at: usize, rows: usize, height: usize) {
        let place = self.at.saturating_sub(self.offset);
        self.offset = at.saturating_sub(place);
        self.go(at, rows, height);
    }
}

/// A row of the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEntry {
    pub index: u32,
    /// It was superseded and stands below what replaced it.
    pub nested: bool,
    /// Runs that it superseded and that are folded away.
    pub folded: u32,
    /// It superseded runs, and they are shown.
    pub unfolded: bool,
}

/// The part of a run's context that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    Sent,
    LeftOut,
}

/// How a message to the user is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Done,
    Plain,
    Trouble,
}

/// The line above the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub tone: Tone,
    pub text: String,
}

/// What is in front of the panes.
#[derive(Debug, Clone)]
pub enum Overlay {
    None,
    Help { offset: usize },
    Stats(Box<Stats>),
    Menu(Menu),
    Confirm { question: Question, text: String },
    Prompt(Prompt),
}

/// What a yes does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Ends this run.
    Cancel(String),
    Fix(FixOrder),
    Knowledge(Order),
}

/// A list to choose from.
#[derive(Debug, Clone)]
pub struct Menu {
    pub title: &'static str,
    pub items: Vec<MenuItem>,
    pub at: usize,
}

#[derive(Debug, Clone)]
pub struct MenuItem {
    pub label: String,
    pub hint: String,
    pub choice: Choice,
}

/// What a menu's item does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Review(Option<Scope>),
    AskCommit,
    AskRange,
    Copy {
        text: String,
        what: &'static str,
    },
    Fix(FixOrder),
    /// As `Fix`, but it asks first.
    AskFix {
        text: String,
        order: FixOrder,
    },
    ShowFix,
    PlanFix(Vec<FindingId>),
}

/// A line being typed.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub kind: PromptKind,
    pub line: LineEdit,
    /// Which of the offered texts was taken last, from 1; 0 for none.
    pub choice: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptKind {
    /// With the filter to go back to.
    Filter {
        before: String,
    },
    Search {
        before: String,
        from: usize,
    },
    /// Why these are dismissed.
    Reason {
        lines: Vec<TriageLine>,
    },
    Commit,
    Range,
    /// For how long nothing is to begin by itself.
    Snooze,
    /// With the filter of knowledge to go back to.
    Patterns {
        before: String,
    },
    /// Where knowledge is written to.
    Export,
}

/// Where the cockpit is.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub repository: String,
    pub branch: String,
    /// What the window of a reviewer that talks to a model holds at most, in tokens.
    pub window_tokens: u64,
    /// Turns of a run at most.
    pub max_turns: u32,
    pub budget: Budget,
}

/// What a run may cost at most, where there is a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// In US dollars.
    pub cost: Option<f64>,
    pub tokens: Option<u64>,
}

/// Decisions on their way, and what is remembered of those made.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    /// Orders on their way to the store.
    pub pending: usize,
    /// Statuses stored after this many decisions of ours are in every view that is newer.
    pub written: u64,
    /// Reasons given, the latest first.
    pub reasons: Vec<String>,
}

/// Digits typed before a key. 1 to 3 are panes as well, so the focus before them is kept: `12j` moves 12 where one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub value: usize,
    pub origin: Pane,
    pub origin_list: Pane,
    pub kind: CountKind,
    /// When the last digit was typed, in milliseconds since 1970.
    pub at: i64,
}

/// What the digits typed so far can still be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountKind {
    /// A single one that has done what it is bound to: only another digit makes a count of it.
    Bound,
    Count,
}

impl Count {
    /// Milliseconds after which digits are forgotten: a count is typed in one go.
    pub const LAPSE: i64 = 1_000;

    pub fn has_lapsed(&self, now: i64) -> bool {
        now.saturating_sub(self.at) >= Self::LAPSE
    }
}

/// Everything.
#[derive(Debug)]
pub struct App {
    pub columns: u16,
    pub rows: u16,
    /// Milliseconds since 1970, from the last message.
    pub now: i64,
    pub zone: jiff::tz::TimeZone,
    pub place: Place,
    pub keymap: Keymap,
    pub theme: Theme,
    pub depth: Depth,
    /// The theme was chosen in the settings: an answer of the terminal does not change it.
    pub theme_is_set: bool,
    pub glyphs: Glyphs,

    pub view: Arc<View>,
    pub known: Arc<Known>,
    /// Rows of runs that have not ended, newest first.
    pub active: Vec<u32>,
    /// What the runs that work do this moment, by their ids.
    pub pulses: Vec<(String, Pulse)>,
    pub watch: WatchState,
    pub fixes: Arc<Fixes>,

    pub focus: Pane,
    /// The list that the detail belongs to.
    pub list: Pane,
    pub zoomed: bool,

    pub runs: Vec<RunEntry>,
    pub run_cursor: Cursor,
    pub unfolded: HashSet<String>,
    /// To be selected as soon as the view knows it.
    pub awaited_run: Option<String>,

    pub findings: Vec<u32>,
    pub finding_cursor: Cursor,
    pub filter_text: String,
    pub filter: Filter,
    /// The number of the newest filtering that was asked for, and of the one that is shown.
    pub filter_asked: u64,
    pub filter_shown: u64,
    pub marks: HashSet<String>,
    pub range_from: Option<usize>,

    pub files: Vec<FileRow>,
    /// The run whose files are shown, and the one whose files were asked for last.
    pub files_of: String,
    pub files_asked: String,
    pub file_cursor: Cursor,

    pub tab: Tab,
    pub subject: Subject,
    pub detail: Option<(Subject, Tab, Box<Loaded>)>,
    pub doc: Doc,
    pub doc_width: u16,
    pub scroll: usize,
    /// The part of the page that can be shown or hidden now, and those that are shown.
    pub fold: Option<FoldKey>,
    pub open_folds: HashSet<FoldKey>,
    pub portion: Portion,
    /// What was asked for and has not come.
    pub loading: Option<(Subject, Tab)>,
    /// What is shown could be other by now: read it again, and show it until the answer is here.
    pub stale: bool,

    /// Over the panes, and below what is in front.
    pub knowledge: Option<Box<Knowledge>>,
    pub overlay: Overlay,
    pub search: String,
    pub count: Option<Count>,
    pub notice: Option<Notice>,
    /// The store is not what it should be: shown until it is.
    pub trouble: Option<String>,
    pub decisions: Decisions,
    /// The first review was asked for because there was none.
    pub first_review: FirstReview,
}

/// How far the review that a first start begins has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstReview {
    /// Not known yet whether one is needed.
    Unknown,
    Asked,
    /// There was nothing to review, and why.
    Nothing(String),
    NotNeeded,
}

/// What the cockpit is made of.
pub struct Setup {
    pub columns: u16,
    pub rows: u16,
    pub zone: jiff::tz::TimeZone,
    pub place: Place,
    pub keymap: Keymap,
    pub theme: Theme,
    pub depth: Depth,
    pub theme_is_set: bool,
    pub glyphs: Glyphs,
    pub notices: Vec<String>,
}

impl App {
    pub fn new(setup: Setup) -> Self {
        let notice =
            (!setup.notices.is_empty()).then(|| Notice { tone: Tone::Trouble, text: setup.notices.join(" · ") });
        Self {
            columns: setup.columns,
            rows: setup.rows,
            now: 0,
            zone: setup.zone,
            place: setup.place,
            keymap: setup.keymap,
            theme: setup.theme,
            depth: setup.depth,
            theme_is_set: setup.theme_is_set,
            glyphs: setup.glyphs,
            view: Arc::default(),
            known: Arc::default(),
            active: Vec::new(),
            pulses: Vec::new(),
            watch: WatchState::default(),
            fixes: Arc::default(),
            focus: Pane::Findings,
            list: Pane::Findings,
            zoomed: false,
            runs: Vec::new(),
            run_cursor: Cursor::default(),
            unfolded: HashSet::new(),
            awaited_run: None,
            findings: Vec::new(),
            finding_cursor: Cursor::default(),
            filter_text: filter::DEFAULT.to_owned(),
            filter: Filter::parse(filter::DEFAULT),
            filter_asked: 0,
            filter_shown: 0,
            marks: HashSet::new(),
            range_from: None,
            files: Vec::new(),
            files_of: String::new(),
            files_asked: String::new(),
            file_cursor: Cursor::default(),
            tab: Tab::Page,
            subject: Subject::Nothing,
            detail: None,
            doc: Doc::default(),
            doc_width: 0,
            scroll: 0,
            fold: None,
            open_folds: HashSet::new(),
            portion: Portion::Sent,
            loading: None,
            stale: false,
            knowledge: None,
            overlay: Overlay::None,
            search: String::new(),
            count: None,
            notice,
            trouble: None,
            decisions: Decisions::default(),
            first_review: FirstReview::Unknown,
        }
    }

    pub fn layout(&self) -> Layout {
        let layout = layout::of(self.columns, self.rows, self.focus, self.list, self.zoomed);
        match self.message() {
            Some((_, text)) => layout.with_notice(doc::wrap(text, layout.notice_width()).len()),
            None => layout,
        }
    }

    /// What the line above the footer says: the last result, or what is wrong.
    pub fn message(&self) -> Option<(Tone, &str)> {
        let trouble = || self.trouble.as_deref().map(|text| (Tone::Trouble, text));
        self.notice.as_ref().map(|notice| (notice.tone, notice.text.as_str())).or_else(trouble)
    }

    /// Rows of a list, or lines of the page, that fit on the screen.
    pub fn height(&self, pane: Pane) -> usize {
        let rows = self.layout().body(pane).map_or(1, |area| match pane {
            Pane::Detail => area.height.saturating_sub(self.head_rows(area.height)),
            Pane::Runs | Pane::Findings | Pane::Files => area.height,
        });
        usize::from(rows).max(1)
    }

    /// The run that the detail is about.
    pub fn subject_run(&self) -> Option<RunRow<'_>> {
        match &self.subject {
            Subject::Run(id) => self.view.run_index(id).map(|index| self.view.run(index)),
            Subject::File { .. } | Subject::Finding(_) | Subject::Nothing => None,
        }
    }

    /// Rows above the page, of `height`, that say what the run does this moment: they stay where they are while the page
    /// moves.
    pub fn head_rows(&self, height: u16) -> u16 {
        let shown = matches!(self.tab, Tab::Page | Tab::Turns);
        let live = self.subject_run().filter(|_| shown).and_then(|run| self.live(&run));
        match (live.map(|live| live.mode), height) {
            (None, _) | (_, ..6) => 0,
            (Some(Mode::Paused), _) | (_, 6..16) => 2,
            // The end of what the model says has a row of its own, also before it says anything: nothing jumps.
            (Some(_), _) => 3,
        }
    }

    /// The pages of what is selected. A run has turns and a context when its reviewer is asked in turns; a finding has a fix when there
    /// is a patch.
    pub fn tabs(&self) -> &'static [Tab] {
        const WITH_TURNS: [Tab; 6] = [Tab::Page, Tab::Turns, Tab::Context, Tab::Diff, Tab::Log, Tab::Ledger];
        const WITH_FIX: [Tab; 5] = [Tab::Page, Tab::Fix, Tab::Diff, Tab::Log, Tab::Ledger];
        const WITHOUT: [Tab; 4] = [Tab::Page, Tab::Diff, Tab::Log, Tab::Ledger];
        if let Subject::Finding(id) = &self.subject
            && self.fixes.of(id).is_some_and(|fix| !fix.files.is_empty())
        {
            return &WITH_FIX;
        }
        let turns = self.subject_run().is_some_and(|run| run.reviewer != Runner::BUILTIN);
        if turns { &WITH_TURNS } else { &WITHOUT }
    }

    /// What the run on the page told of the code around the change.
    pub fn surroundings(&self) -> Option<&Surroundings> {
        match self.detail.as_ref().map(|(.., loaded)| loaded.as_ref()) {
            Some(Loaded::Context(page)) => page.conversation.context.as_deref(),
            _ => None,
        }
    }

    /// Which keys apply.
    pub fn context(&self) -> Context {
        match &self.overlay {
            Overlay::None if self.knowledge.is_some() => Context::Knowledge,
            Overlay::None => match self.focus {
                Pane::Runs => Context::Runs,
                Pane::Findings => Context::Findings,
                Pane::Files => Context::Files,
                Pane::Detail => Context::Detail,
            },
            Overlay::Help { .. } => Context::Help,
            Overlay::Stats(_) => Context::Stats,
            Overlay::Menu(_) => Context::Menu,
            Overlay::Confirm { .. } => Context::Confirm,
            Overlay::Prompt(_) => Context::Prompt,
        }
    }

    /// The selected run.
    pub fn run(&self) -> Option<RunRow<'_>> {
        self.runs.get(self.run_cursor.at).map(|entry| self.view.run(entry.index as usize))
    }

    /// The selected finding.
    pub fn finding(&self) -> Option<FindingRow<'_>> {
        self.findings.get(self.finding_cursor.at).map(|index| self.view.finding(*index as usize))
    }

    /// A finding by its id.
    pub fn finding_by_id(&self, id: &str) -> Option<FindingRow<'_>> {
        self.view.finding_index(id).map(|index| self.view.finding(index))
    }

    pub fn file(&self) -> Option<&FileRow> {
        self.files.get(self.file_cursor.at)
    }

    pub fn status(&self, row: &FindingRow<'_>) -> FindingStatus {
        self.known.status(row)
    }

    /// Whether a run has not ended.
    pub fn is_live(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether something on the screen shows the passing of time: a run that is paused does not.
    pub fn shows_time(&self) -> bool {
        let changes = |run: RunRow<'_>| !self.live(&run).is_some_and(|live| live.mode == Mode::Paused);
        self.count.is_some() || self.active.iter().any(|index| changes(self.view.run(*index as usize)))
    }

    /// The run that the header speaks of: one that works, else one that waits, else the newest.
    pub fn foremost_run(&self) -> Option<RunRow<'_>> {
        let active = || self.active.iter().map(|index| self.view.run(*index as usize));
        active()
            .find(|run| run.status.is_working() && !run.paused)
            .or_else(|| active().find(|run| run.status.is_working()))
            .or_else(|| active().next())
            .or_else(|| (0..self.view.run_count()).map(|index| self.view.run(index)).find(|run| !run.is_of_a_fix()))
    }

    pub fn waiting_runs(&self) -> usize {
        self.active.iter().filter(|index| self.view.run(**index as usize).status == RunStatus::Pending).count()
    }

    /// Whether a finding is marked, the range being marked included.
    pub fn is_marked(&self, at: usize, id: &str) -> bool {
        let in_range = self.range_from.is_some_and(|from| {
            let (low, high) = (from.min(self.finding_cursor.at), from.max(self.finding_cursor.at));
            (low..=high).contains(&at)
        });
        in_range || self.marks.contains(id)
    }

    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.notice = Some(Notice { tone, text: text.into() });
    }

    /// The text of an age column: the time of day for today, else the date. Never relative, so that a cockpit at rest
    /// shows nothing wrong and needs no timer.
    pub fn moment(&self, ms: i64) -> String {
        let at = |ms: i64| {
            jiff::Timestamp::from_millisecond(ms).ok().map(|time| time.to_zoned(self.zone.clone()).datetime())
        };
        let (Some(then), Some(now)) = (at(ms), at(self.now)) else { return String::new() };
        if then.date() == now.date() {
            then.strftime("%H:%M").to_string()
        } else if then.year() == now.year() {
            then.strftime("%b %e").to_string()
        } else {
            then.strftime("%Y-%m").to_string()
        }
    }

    /// A moment with day and time.
    pub fn full_moment(&self, time: jiff::Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// `2s`, `3m`, `4h`: for what is going on now.
    pub fn since(&self, ms: i64) -> String {
        duration(self.now.saturating_sub(ms).max(0) / 1000)
    }
}

/// Seconds in one unit: `2s`, `3m`, `4h`, `5d`.
pub fn duration(seconds: i64) -> String {
    match seconds {
        s @ ..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86_400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selected_row_keeps_its_place_on_the_screen() {
        let mut cursor = Cursor::default();
        cursor.go(7, 100, 10);
        assert_eq!(cursor, Cursor { at: 7, offset: 0 });
        cursor.moved(12, 105, 10);
        assert_eq!(cursor, Cursor { at: 12, offset: 5 }, "five rows came in above");
        cursor.moved(0, 3, 10);
        assert_eq!(cursor, Cursor { at: 0, offset: 0 });
        cursor.go(99, 3, 10);
        assert_eq!(cursor.at, 2);
        cursor.go(5, 0, 10);
        assert_eq!(cursor, Cursor::default());
    }
}
