//! Holds the state of the cockpit. Only `update` changes the state; the views read it.
//!
//! - A selection is an id. When rows change, the row of the id is looked up again and keeps its position on the
//!   screen.

mod file_list;
mod file_tree;
mod lists;
mod notice;
mod pointer;
mod preferences;
mod run_list;
mod sequence;
mod session;
mod times;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

pub use file_list::{FileList, FileListEntry, FileSource, ListedFiles, ReviewedFile, ReviewedFiles, sort_files};
pub use file_tree::FileFolder;
pub use lists::{Cursor, FilterStep, FindingList, FindingListLine};
pub use notice::{Notice, NoticeLevel};
pub use pointer::{HeldPart, PointerState};
pub use preferences::Preferences;
pub use run_list::{FoldReason, FoldedRuns, RunChange, RunEntry, RunList, RunListLine, RunSubject};
pub use sequence::{PendingKeys, SequenceHint};
pub use session::{RunBudget, SessionInfo, TurnLimits};
pub use times::format_duration;

use super::diff::{DiffOptions, DiffPane};
use super::doc::{self, Doc, FoldKey};
use super::filter::{self, FindingFilter};
use super::glyphs::Glyphs;
use super::keymap::{KeyContext, Keymap};
use super::layout::{self, DraggedEdges, LayoutRequest, ScreenLayout};
use super::message::{DetailSubject, FileListRow, Tab, UserVerdict};
use super::page_data::PageData;
use super::theme::{Theme, ThemeChoice};
use super::update::CodeLooks;
use super::views::ViewStack;
use super::views::comment::SentComments;
use super::views::fix::FixIndex;
use super::views::prompt::{AskedPrompt, InputPromptKind, PromptView};
use super::views::review_form::ReviewFormFacts;
use crate::domain::{ContextRecord, FindingStatus, RunStatus};
use crate::policy::Freshness;
use crate::report::activity::ActivityState;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, FreshnessFacts, ReviewerTerms, UnreviewedChange, WatchState};
use crate::store::{FindingRow, Heartbeat, RunRow, StoreView, TeamStatus};

/// Panes of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// List of runs.
    Runs,
    /// List of findings.
    Findings,
    /// List of the files of the selected run.
    Files,
    /// Page of the selected item.
    Detail,
}

impl Pane {
    /// Every pane, lists first.
    pub const ALL: [Self; 4] = [Self::Runs, Self::Findings, Self::Files, Self::Detail];
}

/// Part of a run's context that is listed: the sent sections or the omitted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextListing {
    /// Sections that were sent to the reviewer.
    Sent,
    /// Pieces that were left out.
    LeftOut,
}

/// Triage decisions in flight, and the history that the triage prompts use.
#[derive(Debug, Clone, Default)]
pub struct TriageProgress {
    /// Number of orders that the store has not answered yet.
    pub pending: usize,
    /// Number of decisions that this process has stored. A view read after at least this many contains all of them.
    pub written: u64,
    /// Reasons given, latest first.
    pub reasons: Vec<String>,
    /// Start of the day on which decisions were counted last, in milliseconds since 1970, and their number.
    pub today: Option<(i64, usize)>,
    /// Verdict that the user gave last and that can be repeated on other findings: addressed or dismissed. `None` before the
    /// first.
    pub last: Option<UserVerdict>,
}

/// Numeric prefix typed before a key. The digits 1 to 3 also focus panes, so the earlier focus is stored: `12j`
/// moves 12 rows in the pane that had the focus before the digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCount {
    /// Number typed so far, at most 1,000,000.
    pub value: usize,
    /// Pane that had the focus before the first digit.
    pub origin: Pane,
    /// List pane to which the detail belonged before the first digit.
    pub origin_list: Pane,
    /// Use of the digits so far.
    pub kind: PendingCountKind,
    /// Time of the last digit, in milliseconds since 1970.
    pub at: i64,
}

/// Meaning of the digits typed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCountKind {
    /// A single digit whose key binding has already run; a second digit turns both into a count.
    Bound,
    /// A count whose first digit was a key of its own: `3`, `2` may be a number or two panes.
    Ambiguous,
    /// A count for the key that follows.
    Count,
}

impl PendingCount {
    /// Milliseconds after the last digit at which the count is dropped.
    pub const TIMEOUT_MS: i64 = 1_000;

    /// Returns true if the last digit is too old at `now`, in milliseconds since 1970.
    pub fn has_timed_out(&self, now: i64) -> bool {
        now.saturating_sub(self.at) >= Self::TIMEOUT_MS
    }
}

/// Size and looks of the screen.
#[derive(Debug)]
pub struct DisplaySettings {
    /// Width in cells.
    pub columns: u16,
    /// Height in cells.
    pub rows: u16,
    /// Time zone of the displayed times.
    pub zone: jiff::tz::TimeZone,
    /// Style of each role.
    pub theme: Theme,
    /// Name of the theme, and the others that the user can switch to.
    pub themes: ThemeChoice,
    /// True if the terminal reports released keys.
    pub reports_releases: bool,
    /// Unicode glyphs or their ASCII stand-ins.
    pub glyphs: Glyphs,
    /// Way in which clocks move.
    pub motion: MotionMode,
    /// True if the screen is lines of text for a screen reader.
    pub plain: bool,
}

/// Way in which the screen changes by itself while a review runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MotionMode {
    /// Clocks step by a second.
    #[default]
    Full,
    /// Clocks step by 10 seconds.
    Reduced,
    /// No clock moves; a key or news of the store shows the present time.
    Still,
}

/// Newest state of the store, as it was read.
#[derive(Debug, Default)]
pub struct StoreState {
    /// View that the lists show.
    pub view: Arc<StoreView>,
    /// View that was read last, while its findings are filtered; `None` once the lists show it.
    pub next_view: Option<Arc<StoreView>>,
    /// Heartbeats of the working runs, by run id.
    pub pulses: Vec<(String, Heartbeat)>,
    /// Facts from which the freshness of the runs is derived.
    pub freshness: Arc<FreshnessFacts>,
    /// State of the watcher and of the snooze.
    pub watch: WatchState,
    /// State of the exchange with the team; `None` without a team.
    pub team: Option<TeamStatus>,
    /// True while the process that brings the news of the team is not running although it should.
    pub has_lost_team: bool,
    /// All fixes.
    pub fixes: Arc<FixIndex>,
    /// Store problem, shown until it is resolved.
    pub trouble: Option<String>,
    /// Path of the repository's root while the repository is not there.
    pub gone_repository: Option<String>,
}

/// Pane with the focus, and what is visible.
#[derive(Debug)]
pub struct PaneFocus {
    /// Pane that receives the keys.
    pub focus: Pane,
    /// The list pane to which the detail belongs.
    pub list: Pane,
    /// True when the focused pane fills the screen.
    pub zoomed: bool,
    /// Places of the edges that the user has dragged.
    pub dragged: DraggedEdges,
}

/// Detail pane: the page of the selected item.
#[derive(Debug)]
pub struct DetailPane {
    /// Selected item.
    pub subject: DetailSubject,
    /// Selected tab.
    pub tab: Tab,
    /// Loaded data and the subject and tab to which it belongs.
    pub page: Option<(DetailSubject, Tab, Box<PageData>)>,
    /// Rows of the diff, if the page is one.
    pub diff: DiffPane,
    /// Lines of the page, built from `page`.
    pub doc: Doc,
    /// Width in cells for which `doc` was built; 0 when it must be built again.
    pub width: u16,
    /// Rows of the pane for which `doc` was built.
    pub rows: usize,
    /// Index of the first line of `doc` on the screen.
    pub scroll: usize,
    /// The fold at the cursor; `None` before the cursor has moved.
    pub fold: Option<FoldKey>,
    /// Folds that are open.
    pub open_folds: HashSet<FoldKey>,
    /// Part of the context that the context tab lists.
    pub context_listing: ContextListing,
    /// Requested page that has not arrived.
    pub loading: Option<(DetailSubject, Tab)>,
    /// The page may be outdated: it is read again and stays on the screen until the reply arrives.
    pub stale: bool,
    /// Freshness of the shown run, as `doc` says it.
    pub freshness: Option<Freshness>,
    /// Page whose secrets are shown; `None` while secrets are masked.
    pub revealed: Option<(DetailSubject, Tab)>,
}

/// State of the cockpit.
#[derive(Debug)]
pub struct App {
    /// Milliseconds since 1970, as of the last message.
    pub now: i64,
    /// Facts that stay the same during the session.
    pub session: SessionInfo,
    /// Keys of the actions.
    pub keymap: Keymap,
    /// Size and looks of the screen.
    pub display: DisplaySettings,
    /// Newest state of the store.
    pub store: StoreState,
    /// Pane with the focus, and what is visible.
    pub panes: PaneFocus,
    /// List of runs.
    pub run_list: RunList,
    /// List of findings and its filter.
    pub finding_list: FindingList,
    /// List of the files of the selected run.
    pub file_list: FileList,
    /// Page of the selected item.
    pub detail: DetailPane,
    /// Views in place of the panes and windows in front of them.
    pub views: ViewStack,
    /// Search text; empty without a search.
    pub search: String,
    /// State of the mouse.
    pub pointer: PointerState,
    /// Number typed before a key.
    pub count: Option<PendingCount>,
    /// First keys of a sequence; `None` outside of sequences.
    pub pending_keys: Option<PendingKeys>,
    /// Message above the footer.
    pub notice: Option<Notice>,
    /// Says which part of the cockpit has stopped until it is started again.
    pub stopped_part: Option<String>,
    /// Prompt whose text another process judges.
    pub asked_prompt: Option<AskedPrompt>,
    /// Comments on their way to the store, and what became of them.
    pub comments: SentComments,
    /// Triage decisions in flight, and the reasons given.
    pub decisions: TriageProgress,
    /// Progress of the look for changes that nobody has reviewed.
    pub opening: OpeningLook,
    /// Changes that nobody has reviewed, for the review menu.
    pub offered: Vec<UnreviewedChange>,
    /// Looks at the code of runs.
    pub code_looks: CodeLooks,
    /// Settings that the palette shows and no other state has.
    pub preferences: Preferences,
    /// Reviewers, commits and branches, as the review form found them last.
    pub review_facts: Arc<ReviewFormFacts>,
}

/// Progress of the look for changes that nobody has reviewed, once after the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpeningLook {
    /// The store is not read yet.
    Unknown,
    /// The look was requested.
    Asked,
    /// Nothing to review in a repository without runs, with the reason.
    Nothing(String),
    /// The look failed, with the reason.
    Failed(String),
    /// Changes are reviewed, offered, or not there.
    Done,
}

/// Options from which the cockpit is built.
pub struct AppOptions {
    /// Width of the terminal in cells.
    pub columns: u16,
    /// Height of the terminal in cells.
    pub rows: u16,
    /// Time zone of the displayed times.
    pub zone: jiff::tz::TimeZone,
    /// Facts that stay the same during the session.
    pub session: SessionInfo,
    /// Keys of the actions.
    pub keymap: Keymap,
    /// Theme, and the others that the user can switch to.
    pub themes: ThemeChoice,
    /// Unicode glyphs or their ASCII stand-ins.
    pub glyphs: Glyphs,
    /// Ways to show a diff.
    pub diff: DiffOptions,
    /// Way in which clocks move.
    pub motion: MotionMode,
    /// True if the terminal reports the mouse.
    pub mouse: bool,
    /// True if the screen is lines of text for a screen reader.
    pub plain: bool,
    /// Problems of the theme's file; shown in the first notice.
    pub notices: Vec<String>,
}

impl App {
    /// Creates the state before the first message, without data of the store.
    pub fn new(setup: AppOptions) -> Self {
        let notice = (!setup.notices.is_empty()).then(|| Notice::new(NoticeLevel::Error, setup.notices.join(" · "), 0));
        Self {
            now: 0,
            session: setup.session,
            keymap: setup.keymap,
            display: DisplaySettings {
                columns: setup.columns,
                rows: setup.rows,
                zone: setup.zone,
                theme: setup.themes.theme(),
                themes: setup.themes,
                reports_releases: false,
                glyphs: setup.glyphs,
                motion: setup.motion,
                plain: setup.plain,
            },
            store: StoreState::default(),
            panes: PaneFocus {
                focus: Pane::Findings,
                list: Pane::Findings,
                zoomed: false,
                dragged: DraggedEdges::default(),
            },
            run_list: RunList::default(),
            finding_list: FindingList {
                filter_text: filter::DEFAULT.to_owned(),
                filter: FindingFilter::parse(filter::DEFAULT),
                ..FindingList::default()
            },
            file_list: FileList::default(),
            detail: DetailPane {
                subject: DetailSubject::Nothing,
                tab: Tab::Page,
                page: None,
                diff: DiffPane::new(setup.diff),
                doc: Doc::default(),
                width: 0,
                rows: 0,
                scroll: 0,
                fold: None,
                open_folds: HashSet::new(),
                context_listing: ContextListing::Sent,
                loading: None,
                stale: false,
                freshness: None,
                revealed: None,
            },
            views: ViewStack::default(),
            search: String::new(),
            pointer: PointerState::new(setup.mouse),
            count: None,
            pending_keys: None,
            notice,
            stopped_part: None,
            asked_prompt: None,
            comments: SentComments::default(),
            decisions: TriageProgress::default(),
            opening: OpeningLook::Unknown,
            offered: Vec::new(),
            code_looks: CodeLooks::default(),
            preferences: Preferences::default(),
            review_facts: Arc::default(),
        }
    }

    /// Returns the number of lines of the detail page that fit, whatever message is shown: a page that is laid out for
    /// its height does not jump when a message comes or goes.
    pub fn page_rows(&self) -> usize {
        usize::from(self.layout_without_notice().body(Pane::Detail).map_or(0, |area| area.height))
    }

    /// Returns the layout for the present size and focus.
    fn layout_without_notice(&self) -> ScreenLayout {
        layout::compute_layout(LayoutRequest {
            columns: self.display.columns,
            rows: self.display.rows,
            focus: self.panes.focus,
            list: self.panes.list,
            zoomed: self.panes.zoomed || self.display.plain,
            dragged: self.panes.dragged,
        })
    }

    /// Returns the layout for the present size, focus and message.
    pub fn layout(&self) -> ScreenLayout {
        let layout = self.layout_without_notice();
        let hints = self.sequence_hints().len();
        if hints > 1 {
            return layout.with_notice(hints - 1);
        }
        // Above the line of a prompt stands the reason why its text was not accepted, or a long question. The window of
        // dismissals has it inside.
        let prompt =
            self.views.front_as::<PromptView>().filter(|prompt| !matches!(prompt.kind, InputPromptKind::Reason { .. }));
        let above = prompt.map_or(0, |prompt| prompt.lines_above(layout.notice_width()).len());
        if above > 0 {
            return layout.with_notice(above + 1);
        }
        match self.current_notice() {
            Some((_, text)) => layout.with_notice(doc::wrap_words(&text, layout.notice_width()).len()),
            // A prompt and a decision on its way to the store need a line, which a low screen does not reserve.
            None if layout.lacks_notice() && (prompt.is_some() || self.decisions.pending > 0) => layout.with_notice(1),
            None => layout,
        }
    }

    /// Returns the number of list rows, or page lines, that fit in the pane (at least 1).
    pub fn pane_height(&self, pane: Pane) -> usize {
        let rows = self.layout().body(pane).map_or(1, |area| match pane {
            Pane::Detail => area.height.saturating_sub(self.status_rows(area.height)),
            Pane::Runs | Pane::Findings | Pane::Files => area.height,
        });
        usize::from(rows).max(1)
    }

    /// Returns the run that the detail shows.
    pub fn subject_run(&self) -> Option<RunRow<'_>> {
        match &self.detail.subject {
            DetailSubject::Run(id) => self.store.view.run_index(id).map(|index| self.store.view.run(index)),
            DetailSubject::File { .. } | DetailSubject::Finding(_) | DetailSubject::Nothing => None,
        }
    }

    /// Returns the freshness of a run at the time of the last message.
    pub fn run_freshness(&self, run: &RunRow<'_>) -> Freshness {
        let now = jiff::Timestamp::from_millisecond(self.now).unwrap_or_default();
        self.store.freshness.derive(run, self.pulse(run.id), now)
    }

    /// Returns the number of rows above the page, out of `height`, that show the activity of the run. They do not
    /// scroll.
    pub fn status_rows(&self, height: u16) -> u16 {
        let shown = matches!(self.detail.tab, Tab::Page | Tab::Turns);
        let live = self.subject_run().filter(|_| shown).and_then(|run| self.run_activity(&run));
        match (live.map(|live| live.state), height) {
            (None, _) | (_, ..6) => 0,
            (Some(ActivityState::Paused), _) | (_, 6..16) => 2,
            // The end of the model's output has its own row, even before there is output, so that the page does not
            // jump.
            (Some(_), _) => 3,
        }
    }

    /// Returns the tabs of the selected item. A run has turns and a context unless its reviewer is the built-in one;
    /// a finding has a fix tab if there is a patch.
    pub fn tabs(&self) -> &'static [Tab] {
        const WITH_TURNS: [Tab; 6] = [Tab::Page, Tab::Turns, Tab::Context, Tab::Diff, Tab::Log, Tab::Ledger];
        const WITH_FIX: [Tab; 5] = [Tab::Page, Tab::Fix, Tab::Diff, Tab::Log, Tab::Ledger];
        const WITHOUT: [Tab; 4] = [Tab::Page, Tab::Diff, Tab::Log, Tab::Ledger];
        if let DetailSubject::Finding(id) = &self.detail.subject
            && self.store.fixes.for_finding(id).is_some_and(|fix| !fix.files.is_empty())
        {
            return &WITH_FIX;
        }
        let turns = self.subject_run().is_some_and(|run| run.reviewer != BUILTIN_REVIEWER);
        if turns { &WITH_TURNS } else { &WITHOUT }
    }

    /// Returns the recorded context of the run on the page, if the context page is loaded.
    pub fn shown_context(&self) -> Option<&ContextRecord> {
        match self.detail.page.as_ref().map(|(.., loaded)| loaded.as_ref()) {
            Some(PageData::Context(page)) => page.conversation.context.as_deref(),
            _ => None,
        }
    }

    /// Returns the key context: the keys that apply now.
    pub fn key_context(&self) -> KeyContext {
        match (self.views.front(), self.panes.focus) {
            (Some(view), _) => view.key_context(),
            (None, Pane::Runs) => KeyContext::Runs,
            (None, Pane::Findings) => KeyContext::Findings,
            (None, Pane::Files) => KeyContext::Files,
            (None, Pane::Detail) => KeyContext::Detail,
        }
    }

    /// Returns the selected run; `None` when no run is listed.
    pub fn selected_run(&self) -> Option<RunRow<'_>> {
        self.run_list.entries.get(self.run_list.cursor.selected).map(|entry| self.store.view.run(entry.index as usize))
    }

    /// Returns the id of the run to whose findings the list is narrowed; `None` if it shows those of all runs.
    pub fn chosen_run(&self) -> Option<&str> {
        let mut runs = self.finding_list.filter.named_runs();
        runs.next().filter(|_| runs.next().is_none())
    }

    /// Returns the selected finding; `None` when no finding is listed.
    pub fn selected_finding(&self) -> Option<FindingRow<'_>> {
        self.finding_list
            .rows
            .get(self.finding_list.cursor.selected)
            .map(|index| self.store.view.finding(*index as usize))
    }

    /// Returns the finding with this id; `None` when the view does not contain it.
    pub fn finding_by_id(&self, id: &str) -> Option<FindingRow<'_>> {
        self.store.view.finding_index(id).map(|index| self.store.view.finding(index))
    }

    /// Returns the selected file; `None` when no file is selected.
    pub fn selected_file(&self) -> Option<&FileListRow> {
        self.file_list.file(self.file_list.cursor.selected)
    }

    /// Returns true if a finding, given by its index in the view, is undecided and new since the last visit.
    pub fn is_new(&self, index: usize, row: &FindingRow<'_>) -> bool {
        self.current_status(row).is_undecided() && self.finding_list.overrides.is_new(&self.store.view, index, row)
    }

    /// Returns the status of a finding after the decisions that the view lacks.
    pub fn current_status(&self, row: &FindingRow<'_>) -> FindingStatus {
        self.finding_list.overrides.status_of(row)
    }

    /// Returns true if any run has not ended.
    pub fn has_active_runs(&self) -> bool {
        !self.run_list.active.is_empty()
    }

    /// Returns the time until the next [`AppMessage::Tick`](super::message::AppMessage::Tick) if time changes the screen:
    /// a clock runs, or a message will go.
    pub fn tick_interval(&self) -> Option<Duration> {
        let is_passing = self.notice.as_ref().is_some_and(|notice| notice.until.is_some());
        if self.count.is_some() || is_passing {
            return Some(Duration::from_secs(1));
        }
        let step = Duration::from_millis(u64::try_from(self.clock_step()?).unwrap_or(1_000));
        self.has_moving_age().then_some(step)
    }

    /// Returns true if time changes the screen.
    pub fn has_running_clock(&self) -> bool {
        self.tick_interval().is_some()
    }

    /// Returns true if the age of a running review is on the screen. Paused and lost runs have none.
    fn has_moving_age(&self) -> bool {
        let changes = |run: RunRow<'_>| {
            let is_paused = self.run_activity(&run).is_some_and(|live| live.state == ActivityState::Paused);
            !is_paused && self.run_freshness(&run) != Freshness::Lost
        };
        self.run_list.active.iter().any(|index| changes(self.store.view.run(*index as usize)))
    }

    /// Returns the run of the header: a working run that is not paused, else a paused run, else a waiting run, else
    /// the newest review: no part of a fix, no import and no comment. A panel waits for its members, which come before it.
    pub fn headline_run(&self) -> Option<RunRow<'_>> {
        let active = || self.run_list.active.iter().map(|index| self.store.view.run(*index as usize));
        active()
            .find(|run| run.status.is_working() && !run.paused)
            .or_else(|| active().find(|run| run.status.is_working()))
            .or_else(|| active().find(|run| !run.is_panel()))
            .or_else(|| active().next())
            .or_else(|| {
                (0..self.store.view.run_count())
                    .map(|index| self.store.view.run(index))
                    .find(|run| !run.is_fix_review() && !run.is_import())
            })
    }

    /// Returns the number of runs that wait for a worker. A panel waits for its members, which are counted.
    pub fn waiting_runs(&self) -> usize {
        let runs = self.run_list.active.iter().map(|index| self.store.view.run(*index as usize));
        runs.filter(|run| run.status == RunStatus::Pending && !run.is_panel()).count()
    }

    /// Returns the number of marked findings, those of the range being marked included.
    pub fn count_marked(&self) -> usize {
        let list = &self.finding_list;
        let Some(range) = list.mark_range().and_then(|range| list.rows.get(range)) else { return list.marks.len() };
        if list.marks.is_empty() {
            // The usual case, and a range may be as long as the list.
            return range.len();
        }
        let is_new = |index: &&u32| !list.marks.contains(self.store.view.finding(**index as usize).id);
        list.marks.len() + range.iter().filter(is_new).count()
    }

    /// Returns true if the finding is marked or lies in the range being marked.
    pub fn is_marked(&self, at: usize, id: &str) -> bool {
        self.finding_list.mark_range().is_some_and(|range| range.contains(&at)) || self.finding_list.marks.contains(id)
    }

    /// Returns the default reviewer and its limit if its reviews may cost money.
    pub fn paid_reviewer(&self) -> Option<&ReviewerTerms> {
        self.session.reviewer.as_ref().filter(|terms| terms.limit != CostLimit::Nothing)
    }
}
