//! The state of the cockpit: one owner, changed by `update` only, read by the views.
//!
//! Invariant: a selection is an id. Positions are found anew whenever rows change, and the selected row keeps its place
//! on the screen.

use std::collections::HashSet;
use std::sync::Arc;

use super::activity::ActivityState;
use super::doc::{self, Doc, FoldKey};
use super::filter::{self, FilterOverrides, FindingFilter};
use super::fixes::{FixIndex, FixOrder};
use super::glyphs::Glyphs;
use super::keymap::{KeyContext, Keymap};
use super::knowledge::{KnowledgeOrder, KnowledgeView};
use super::layout::{self, ScreenLayout};
use super::line_edit::LineEdit;
use super::message::{DetailSubject, FileListRow, Tab, TriageOrderItem};
use super::page_data::PageData;
use super::stats::StatsPage;
use super::theme::{ColorDepth, Theme};
use crate::domain::{ContextRecord, FindingId, FindingStatus, RunStatus, Scope};
use crate::runner::{Runner, WatchState};
use crate::store::{FindingRow, Heartbeat, RunRow, StoreView};

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
    pub selected: usize,
    pub offset: usize,
}

impl Cursor {
    /// Moves to a row; the window follows with as little motion as possible.
    pub fn select(&mut self, at: usize, rows: usize, height: usize) {
        self.selected = at.min(rows.saturating_sub(1));
        self.offset = self.offset.clamp((self.selected + 1).saturating_sub(height.max(1)), self.selected);
        self.offset = self.offset.min(rows.saturating_sub(height.max(1)));
    }

    /// The rows changed and the selected one is at `at` now: it keeps its place on the screen.
    pub fn select_in_place(&mut self, at: usize, rows: usize, height: usize) {
        let place = self.selected.saturating_sub(self.offset);
        self.offset = at.saturating_sub(place);
        self.select(at, rows, height);
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
pub enum ContextListing {
    Sent,
    LeftOut,
}

/// How a message to the user is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Success,
    Info,
    Error,
}

/// The line above the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub level: NoticeLevel,
    pub text: String,
}

/// What is in front of the panes.
#[derive(Debug, Clone)]
pub enum Overlay {
    None,
    Help { offset: usize },
    Stats(Box<StatsPage>),
    Menu(Menu),
    Confirm { question: ConfirmAction, text: String },
    Prompt(InputPrompt),
}

/// What a yes does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmAction {
    /// Ends this run.
    Cancel(String),
    Fix(FixOrder),
    Knowledge(KnowledgeOrder),
}

/// A list to choose from.
#[derive(Debug, Clone)]
pub struct Menu {
    pub title: &'static str,
    pub items: Vec<MenuItem>,
    pub selected: usize,
}

#[derive(Debug, Clone)]
pub struct MenuItem {
    pub label: String,
    pub hint: String,
    pub choice: MenuChoice,
}

/// What a menu's item does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MenuChoice {
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
pub struct InputPrompt {
    pub kind: InputPromptKind,
    pub line: LineEdit,
    /// Which of the offered texts was taken last, from 1; 0 for none.
    pub choice: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPromptKind {
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
        lines: Vec<TriageOrderItem>,
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
pub struct SessionInfo {
    pub repository: String,
    pub branch: String,
    /// What the window of a reviewer that talks to a model holds at most, in tokens.
    pub window_tokens: u64,
    /// Turns of a run at most.
    pub max_turns: u32,
    pub budget: RunBudget,
}

/// What a run may cost at most, where there is a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunBudget {
    /// In US dollars.
    pub cost: Option<f64>,
    pub tokens: Option<u64>,
}

/// Decisions on their way, and what is remembered of those made.
#[derive(Debug, Clone, Default)]
pub struct TriageProgress {
    /// Orders on their way to the store.
    pub pending: usize,
    /// Statuses stored after this many decisions of ours are in every view that is newer.
    pub written: u64,
    /// Reasons given, the latest first.
    pub reasons: Vec<String>,
}

/// Digits typed before a key. 1 to 3 are panes as well, so the focus before them is kept: `12j` moves 12 where one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCount {
    pub value: usize,
    pub origin: Pane,
    pub origin_list: Pane,
    pub kind: PendingCountKind,
    /// When the last digit was typed, in milliseconds since 1970.
    pub at: i64,
}

/// What the digits typed so far can still be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCountKind {
    /// A single one that has done what it is bound to: only another digit makes a count of it.
    Bound,
    Count,
}

impl PendingCount {
    /// Milliseconds after which digits are forgotten: a count is typed in one go.
    pub const TIMEOUT_MS: i64 = 1_000;

    pub fn has_timed_out(&self, now: i64) -> bool {
        now.saturating_sub(self.at) >= Self::TIMEOUT_MS
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
    pub session: SessionInfo,
    pub keymap: Keymap,
    pub theme: Theme,
    pub depth: ColorDepth,
    /// The theme was chosen in the settings: an answer of the terminal does not change it.
    pub theme_is_set: bool,
    pub glyphs: Glyphs,

    pub view: Arc<StoreView>,
    pub overrides: Arc<FilterOverrides>,
    /// Rows of runs that have not ended, newest first.
    pub active: Vec<u32>,
    /// What the runs that work do this moment, by their ids.
    pub pulses: Vec<(String, Heartbeat)>,
    pub watch: WatchState,
    pub fixes: Arc<FixIndex>,

    pub focus: Pane,
    /// The list that the detail belongs to.
    pub list_pane: Pane,
    pub zoomed: bool,

    pub runs: Vec<RunEntry>,
    pub run_cursor: Cursor,
    pub unfolded: HashSet<String>,
    /// To be selected as soon as the view knows it.
    pub awaited_run: Option<String>,

    pub findings: Vec<u32>,
    pub finding_cursor: Cursor,
    pub filter_text: String,
    pub filter: FindingFilter,
    /// The number of the newest filtering that was asked for, and of the one that is shown.
    pub filter_requested: u64,
    pub filter_applied: u64,
    pub marks: HashSet<String>,
    pub mark_range_start: Option<usize>,

    pub files: Vec<FileListRow>,
    /// The run whose files are shown, and the one whose files were asked for last.
    pub files_run: String,
    pub files_requested: String,
    pub file_cursor: Cursor,

    pub tab: Tab,
    pub subject: DetailSubject,
    pub detail: Option<(DetailSubject, Tab, Box<PageData>)>,
    pub doc: Doc,
    pub doc_width: u16,
    pub scroll: usize,
    /// The part of the page that can be shown or hidden now, and those that are shown.
    pub fold: Option<FoldKey>,
    pub open_folds: HashSet<FoldKey>,
    pub context_listing: ContextListing,
    /// What was asked for and has not come.
    pub loading: Option<(DetailSubject, Tab)>,
    /// What is shown could be other by now: read it again, and show it until the answer is here.
    pub stale: bool,

    /// Over the panes, and below what is in front.
    pub knowledge: Option<Box<KnowledgeView>>,
    pub overlay: Overlay,
    pub search: String,
    pub count: Option<PendingCount>,
    pub notice: Option<Notice>,
    /// The store is not what it should be: shown until it is.
    pub trouble: Option<String>,
    pub decisions: TriageProgress,
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
pub struct AppOptions {
    pub columns: u16,
    pub rows: u16,
    pub zone: jiff::tz::TimeZone,
    pub session: SessionInfo,
    pub keymap: Keymap,
    pub theme: Theme,
    pub depth: ColorDepth,
    pub theme_is_set: bool,
    pub glyphs: Glyphs,
    pub notices: Vec<String>,
}

impl App {
    pub fn new(setup: AppOptions) -> Self {
        let notice =
            (!setup.notices.is_empty()).then(|| Notice { level: NoticeLevel::Error, text: setup.notices.join(" · ") });
        Self {
            columns: setup.columns,
            rows: setup.rows,
            now: 0,
            zone: setup.zone,
            session: setup.session,
            keymap: setup.keymap,
            theme: setup.theme,
            depth: setup.depth,
            theme_is_set: setup.theme_is_set,
            glyphs: setup.glyphs,
            view: Arc::default(),
            overrides: Arc::default(),
            active: Vec::new(),
            pulses: Vec::new(),
            watch: WatchState::default(),
            fixes: Arc::default(),
            focus: Pane::Findings,
            list_pane: Pane::Findings,
            zoomed: false,
            runs: Vec::new(),
            run_cursor: Cursor::default(),
            unfolded: HashSet::new(),
            awaited_run: None,
            findings: Vec::new(),
            finding_cursor: Cursor::default(),
            filter_text: filter::DEFAULT.to_owned(),
            filter: FindingFilter::parse(filter::DEFAULT),
            filter_requested: 0,
            filter_applied: 0,
            marks: HashSet::new(),
            mark_range_start: None,
            files: Vec::new(),
            files_run: String::new(),
            files_requested: String::new(),
            file_cursor: Cursor::default(),
            tab: Tab::Page,
            subject: DetailSubject::Nothing,
            detail: None,
            doc: Doc::default(),
            doc_width: 0,
            scroll: 0,
            fold: None,
            open_folds: HashSet::new(),
            context_listing: ContextListing::Sent,
            loading: None,
            stale: false,
            knowledge: None,
            overlay: Overlay::None,
            search: String::new(),
            count: None,
            notice,
            trouble: None,
            decisions: TriageProgress::default(),
            first_review: FirstReview::Unknown,
        }
    }

    pub fn layout(&self) -> ScreenLayout {
        let layout = layout::compute_layout(self.columns, self.rows, self.focus, self.list_pane, self.zoomed);
        match self.current_notice() {
            Some((_, text)) => layout.with_notice(doc::wrap_words(text, layout.notice_width()).len()),
            None => layout,
        }
    }

    /// What the line above the footer says: the last result, or what is wrong.
    pub fn current_notice(&self) -> Option<(NoticeLevel, &str)> {
        let trouble = || self.trouble.as_deref().map(|text| (NoticeLevel::Error, text));
        self.notice.as_ref().map(|notice| (notice.level, notice.text.as_str())).or_else(trouble)
    }

    /// Rows of a list, or lines of the page, that fit on the screen.
    pub fn pane_height(&self, pane: Pane) -> usize {
        let rows = self.layout().body(pane).map_or(1, |area| match pane {
            Pane::Detail => area.height.saturating_sub(self.status_rows(area.height)),
            Pane::Runs | Pane::Findings | Pane::Files => area.height,
        });
        usize::from(rows).max(1)
    }

    /// The run that the detail is about.
    pub fn subject_run(&self) -> Option<RunRow<'_>> {
        match &self.subject {
            DetailSubject::Run(id) => self.view.run_index(id).map(|index| self.view.run(index)),
            DetailSubject::File { .. } | DetailSubject::Finding(_) | DetailSubject::Nothing => None,
        }
    }

    /// Rows above the page, of `height`, that say what the run does this moment: they stay where they are while the page
    /// moves.
    pub fn status_rows(&self, height: u16) -> u16 {
        let shown = matches!(self.tab, Tab::Page | Tab::Turns);
        let live = self.subject_run().filter(|_| shown).and_then(|run| self.run_activity(&run));
        match (live.map(|live| live.state), height) {
            (None, _) | (_, ..6) => 0,
            (Some(ActivityState::Paused), _) | (_, 6..16) => 2,
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
        if let DetailSubject::Finding(id) = &self.subject
            && self.fixes.for_finding(id).is_some_and(|fix| !fix.files.is_empty())
        {
            return &WITH_FIX;
        }
        let turns = self.subject_run().is_some_and(|run| run.reviewer != Runner::BUILTIN);
        if turns { &WITH_TURNS } else { &WITHOUT }
    }

    /// What the run on the page told of the code around the change.
    pub fn shown_context(&self) -> Option<&ContextRecord> {
        match self.detail.as_ref().map(|(.., loaded)| loaded.as_ref()) {
            Some(PageData::Context(page)) => page.conversation.context.as_deref(),
            _ => None,
        }
    }

    /// Which keys apply.
    pub fn key_context(&self) -> KeyContext {
        match &self.overlay {
            Overlay::None if self.knowledge.is_some() => KeyContext::Knowledge,
            Overlay::None => match self.focus {
                Pane::Runs => KeyContext::Runs,
                Pane::Findings => KeyContext::Findings,
                Pane::Files => KeyContext::Files,
                Pane::Detail => KeyContext::Detail,
            },
            Overlay::Help { .. } => KeyContext::Help,
            Overlay::Stats(_) => KeyContext::Stats,
            Overlay::Menu(_) => KeyContext::Menu,
            Overlay::Confirm { .. } => KeyContext::Confirm,
            Overlay::Prompt(_) => KeyContext::Prompt,
        }
    }

    /// The selected run.
    pub fn selected_run(&self) -> Option<RunRow<'_>> {
        self.runs.get(self.run_cursor.selected).map(|entry| self.view.run(entry.index as usize))
    }

    /// The selected finding.
    pub fn selected_finding(&self) -> Option<FindingRow<'_>> {
        self.findings.get(self.finding_cursor.selected).map(|index| self.view.finding(*index as usize))
    }

    /// A finding by its id.
    pub fn finding_by_id(&self, id: &str) -> Option<FindingRow<'_>> {
        self.view.finding_index(id).map(|index| self.view.finding(index))
    }

    pub fn selected_file(&self) -> Option<&FileListRow> {
        self.files.get(self.file_cursor.selected)
    }

    pub fn current_status(&self, row: &FindingRow<'_>) -> FindingStatus {
        self.overrides.status_of(row)
    }

    /// Whether a run has not ended.
    pub fn has_active_runs(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether something on the screen shows the passing of time: a run that is paused does not.
    pub fn has_running_clock(&self) -> bool {
        let changes =
            |run: RunRow<'_>| !self.run_activity(&run).is_some_and(|live| live.state == ActivityState::Paused);
        self.count.is_some() || self.active.iter().any(|index| changes(self.view.run(*index as usize)))
    }

    /// The run that the header speaks of: one that works, else one that waits, else the newest.
    pub fn headline_run(&self) -> Option<RunRow<'_>> {
        let active = || self.active.iter().map(|index| self.view.run(*index as usize));
        active()
            .find(|run| run.status.is_working() && !run.paused)
            .or_else(|| active().find(|run| run.status.is_working()))
            .or_else(|| active().next())
            .or_else(|| (0..self.view.run_count()).map(|index| self.view.run(index)).find(|run| !run.is_fix_review()))
    }

    pub fn waiting_runs(&self) -> usize {
        self.active.iter().filter(|index| self.view.run(**index as usize).status == RunStatus::Pending).count()
    }

    /// Whether a finding is marked, the range being marked included.
    pub fn is_marked(&self, at: usize, id: &str) -> bool {
        let in_range = self.mark_range_start.is_some_and(|from| {
            let (low, high) = (from.min(self.finding_cursor.selected), from.max(self.finding_cursor.selected));
            (low..=high).contains(&at)
        });
        in_range || self.marks.contains(id)
    }

    pub fn show_notice(&mut self, tone: NoticeLevel, text: impl Into<String>) {
        self.notice = Some(Notice { level: tone, text: text.into() });
    }

    /// The text of an age column: the time of day for today, else the date. Never relative, so that a cockpit at rest
    /// shows nothing wrong and needs no timer.
    pub fn format_date_or_time(&self, ms: i64) -> String {
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
    pub fn format_date_time(&self, time: jiff::Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// `2s`, `3m`, `4h`: for what is going on now.
    pub fn format_age_of(&self, ms: i64) -> String {
        format_duration(self.now.saturating_sub(ms).max(0) / 1000)
    }
}

/// Seconds in one unit: `2s`, `3m`, `4h`, `5d`.
pub fn format_duration(seconds: i64) -> String {
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
        cursor.select(7, 100, 10);
        assert_eq!(cursor, Cursor { selected: 7, offset: 0 });
        cursor.select_in_place(12, 105, 10);
        assert_eq!(cursor, Cursor { selected: 12, offset: 5 }, "five rows came in above");
        cursor.select_in_place(0, 3, 10);
        assert_eq!(cursor, Cursor { selected: 0, offset: 0 });
        cursor.select(99, 3, 10);
        assert_eq!(cursor.selected, 2);
        cursor.select(5, 0, 10);
        assert_eq!(cursor, Cursor::default());
    }
}
