//! Defines messages and commands. All input of the cockpit, time included, arrives as a message; all effects
//! leave as commands.

use std::collections::HashSet;
use std::sync::Arc;

use super::app::{FileSource, ListedFiles, ReviewedFiles, RunSubject};
use super::custom_commands::CommandCall;
use super::diff::{DiffMove, DiffPage, DiffRequest, DiffTexts, TextHighlights};
use super::finding_order::{FindingQuery, ListedFindings};
use super::input::TerminalInput;
use super::page_data::PageData;
use super::saved_filters::FilterChange;
use super::views::fix::{FixIndex, FixOrder, FixPlan};
use super::views::{ViewReply, ViewRequest};
use crate::domain::{
    FindingId, FindingQuestion, FindingRating, FindingSnooze, FindingStatus, Fix, QuestionRequest, RatingWish, RunId,
    Scope, Time, ViewedFile,
};
use crate::runner::{
    BUILTIN_REVIEWER, FreshnessFacts, OpeningOutcome, OwnFinding, QuestionPlan, ReviewerTerms, ScopeFingerprints,
    SnoozeWish, SnoozedFindings, WatchState, WrittenComment,
};
use crate::store::triage::UndoOutcome;
use crate::store::{Heartbeat, StoreView, TeamStatus};

/// Event for the cockpit.
#[derive(Debug)]
pub enum AppMessage {
    /// A key press, a paste, or the terminal's reply to a query.
    Input(TerminalInput),
    /// The terminal has a new size.
    Resized {
        /// Width in cells.
        columns: u16,
        /// Height in cells.
        rows: u16,
    },
    /// A second has passed. Sent only while the screen shows a running clock, and once at the start.
    Tick,
    /// New state of the store.
    StoreRead {
        /// View that was read.
        view: Arc<StoreView>,
        /// Number of decisions that this process had stored before the read.
        written: u64,
    },
    /// Heartbeats of the working runs, by run id.
    Pulses(Vec<(String, Heartbeat)>),
    /// Facts from which the freshness of the runs is derived; sent before the view whose runs they describe.
    Freshness(Arc<FreshnessFacts>),
    /// Ids of the runs whose workers have died without an end of the run; each once.
    WorkersGone(Vec<String>),
    /// Present content of the scopes of runs, or the reason why git could not tell it; and how long the look took.
    ScopesCompared {
        /// Fingerprints of the scopes.
        result: Result<ScopeFingerprints, String>,
        /// Duration of the look in milliseconds.
        took_ms: i64,
    },
    /// The repository is not at its place any more, with the path of its root; `None` when it is back.
    RepositoryGone(Option<String>),
    /// Number of findings that the user decided today.
    DecidedToday {
        /// Start of the day in milliseconds since 1970.
        since: i64,
        /// Number of findings.
        count: usize,
    },
    /// An assistant has got a ledger.
    LedgerDelivered,
    /// The store cannot be read, or not completely.
    StoreTrouble(String),
    /// A thread of the cockpit has stopped, and nothing starts it again.
    PartStopped(String),
    /// Rows that match the filter.
    Filtered {
        /// Serial number of the filter request.
        serial: u64,
        /// View that was filtered.
        view: Arc<StoreView>,
        /// Findings of `view` in the order of the list.
        listed: ListedFindings,
    },
    /// Data of the detail page.
    Loaded {
        /// Subject of the page.
        subject: DetailSubject,
        /// Tab of the page.
        tab: Tab,
        /// Data of the page, or the reason why it could not be read.
        loaded: Box<PageData>,
    },
    /// Data of the detail page with its secrets. Shown only while the user wants to see them.
    Revealed {
        /// Subject of the page.
        subject: DetailSubject,
        /// Tab of the page.
        tab: Tab,
        /// Data of the page, or the reason why it could not be read.
        loaded: Box<PageData>,
    },
    /// Texts of a file of a diff.
    DiffFile {
        /// Page for which they were read.
        page: Arc<DiffPage>,
        /// Index of the file.
        file: usize,
        /// Texts, or the reason why they could not be read.
        texts: Result<Arc<DiffTexts>, String>,
    },
    /// Lines of a diff that moved.
    DiffMoves {
        /// Page in which they were looked for.
        page: Arc<DiffPage>,
        /// Moves between its files.
        moves: Vec<DiffMove>,
    },
    /// Highlighted lines of a file of a diff.
    DiffHighlights(TextHighlights),
    /// A comment was stored; or the reason why it was not.
    FindingWritten(Result<WrittenComment, String>),
    /// Path and content of the viewed files, and path and name of the viewed changes, after this or another cockpit has marked
    /// some.
    ViewedFiles(HashSet<(String, String)>),
    /// The mark of a file as viewed was stored.
    ViewedFile {
        /// Mark that was stored.
        mark: ViewedFile,
        /// The reason why it was not stored.
        result: Result<(), String>,
    },
    /// The marks of changes of a file as viewed were stored.
    ChangesMarked {
        /// Marks that were stored; one of the whole file may be among them.
        marks: Vec<ViewedFile>,
        /// The reason why they were not stored.
        result: Result<(), String>,
    },
    /// The marks of files of the list as viewed were stored.
    FilesMarked {
        /// Files that were to be marked.
        files: Vec<RunFile>,
        /// Marks that were stored: of the files whose content is known. Or the reason why none was.
        result: Result<Vec<ViewedFile>, String>,
    },
    /// Files of a run; `None` if the run has no output.
    Files {
        /// Run id.
        run: String,
        /// Files sorted by path.
        files: Option<Vec<FileListRow>>,
    },
    /// Files of the newest reviews in which no finding is open.
    ReviewedFiles(ReviewedFiles),
    /// Files of the listed findings.
    FilesListed {
        /// Serial number of the request.
        serial: u64,
        /// Files with the numbers of the findings.
        listed: ListedFiles,
    },
    /// Commits that runs reviewed, by run id.
    RunSubjects(Vec<(String, RunSubject)>),
    /// Ids of the findings that a run reported.
    Reported {
        /// Run id.
        run: String,
        /// Finding ids; empty when the run has no output.
        findings: Vec<String>,
    },
    /// Result of a triage order.
    Triaged {
        /// The executed order.
        order: TriageOrder,
        /// Outcome, or the reason why nothing was stored.
        result: Result<UndoOutcome, String>,
        /// Number of decisions that this process has stored so far.
        written: u64,
    },
    /// Result of writing a note: false if the same note was there already.
    Noted(Result<bool, String>),
    /// Result of rating findings: the stored lines.
    Rated(Result<Vec<FindingRating>, String>),
    /// Result of snoozing findings: the stored lines.
    SnoozeStored(Result<Vec<FindingSnooze>, String>),
    /// State of the exchange with the team; `None` without a team.
    Team(Option<TeamStatus>),
    /// True if the process that brings the news of the team runs again, false if it has ended.
    TeamFollowed(bool),
    /// The process that brings the news of the team gave up: the failure, with what to do.
    TeamStopped(String),
    /// Findings that are out of sight for a time.
    Snoozed(Arc<SnoozedFindings>),
    /// Data for a view.
    View(ViewReply),
    /// Result of a review request.
    Requested(Result<ReviewReply, String>),
    /// Result of the look for changes that nobody has reviewed.
    Opened {
        /// Changes that are reviewed now or offered, or the reason why nobody could look.
        outcome: Result<OpeningOutcome, String>,
        /// Default reviewer and the most that its reviews may cost; `None` if that is unknown.
        terms: Option<ReviewerTerms>,
    },
    /// Result of a cancel request.
    Cancelled {
        /// Run id.
        run: String,
        /// Outcome in one sentence, or the reason why the request failed.
        result: Result<String, String>,
    },
    /// Result of pausing or resuming a run.
    Paused(Result<String, String>),
    /// Repairs after dead processes, described in one line; `None` if there was nothing to repair.
    Reconciled(Option<String>),
    /// Result of a command of the user in one line.
    ProgramEnded(Result<String, String>),
    /// State of the watcher and of the snooze.
    Watch(WatchState),
    /// Result of starting or stopping the watcher, of a snooze, or of starting an exchange with the team; or why a question was not
    /// stopped.
    Watched(Result<String, String>),
    /// Result of writing the theme into the settings.
    ThemeKept(Result<String, String>),
    /// Result of saving or removing a filter.
    FilterSaved(Result<String, String>),
    /// All fixes.
    Fixes(Arc<FixIndex>),
    /// Reviewer that would make a fix.
    FixPlanned(Result<FixPlan, String>),
    /// Result of a fix request.
    FixFinished {
        /// The executed order.
        order: FixOrder,
        /// State of the fix, or the reason why nothing was done.
        result: Result<Box<Fix>, String>,
    },
    /// Reviewer that would answer a question and the most that it may cost, or the question that is on its way.
    QuestionPlanned(Result<QuestionPlan, String>),
    /// A question was sent, or not for this reason.
    QuestionAsked(Result<QuestionRequest, String>),
    /// Questions that have their results now.
    QuestionsAnswered(Vec<FindingQuestion>),
    /// A text was copied by a program, or there is none that could.
    Copied {
        /// The text and its name.
        order: CopyOrder,
        /// Program that has the text; `None` if there is none.
        program: Option<&'static str>,
    },
    /// Nothing was copied, because the findings could not be read.
    CopyFailed(String),
    /// The editor has exited.
    Edited(Result<(), String>),
    /// A signal, or the loss of the terminal, ends the cockpit.
    Ended(ExitCause),
    /// The process continues after a suspension; the whole screen is drawn again.
    Resumed,
    /// Another process had stopped the cockpit, which continues.
    Continued,
}

impl AppMessage {
    /// Returns the reason if this says that the store did not take what the user decided or wrote.
    pub fn into_failed_write(self) -> Option<String> {
        match self {
            Self::Triaged { result, .. } => result.err(),
            Self::FindingWritten(result) => result.err(),
            Self::Noted(result) => result.err(),
            Self::Rated(result) => result.err(),
            Self::SnoozeStored(result) => result.err(),
            _ => None,
        }
    }
}

/// Cause of an exit without a key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// SIGTERM.
    Terminated,
    /// SIGINT or SIGQUIT, which a terminal sends to all its programs for Ctrl-C and Ctrl-\\ outside raw mode.
    Interrupted,
    /// SIGHUP: the terminal is gone.
    HungUp,
}

/// Answer to a review request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewReply {
    /// Scope of the request; `None` for the default scope.
    pub scope: Option<Scope>,
    /// Id of the run that answers the request.
    pub run: Option<String>,
    /// Decision in one sentence, or why the review that answers is no clean one.
    pub decision: Result<String, String>,
}

/// Effect to execute outside the state.
#[derive(Debug)]
pub enum AppCommand {
    /// Reads the data of the detail page.
    Load {
        /// Subject of the page.
        subject: DetailSubject,
        /// Tab of the page.
        tab: Tab,
    },
    /// Reads the data of the detail page with its secrets.
    Reveal {
        /// Subject of the page.
        subject: DetailSubject,
        /// Tab of the page.
        tab: Tab,
    },
    /// Reads or highlights a file of the diff.
    Diff(DiffRequest),
    /// Stores a finding that the user has written, in place of an older one if it rewrites one.
    WriteFinding {
        /// Finding to store.
        finding: OwnFinding,
        /// Older finding of the user that gives way.
        rewrites: Option<FindingId>,
    },
    /// Stores that a file was viewed, or that it was not.
    MarkViewed(ViewedFile),
    /// Stores that changes of a file, and perhaps the whole file, were viewed, or that they were not.
    MarkChanges(Vec<ViewedFile>),
    /// Stores that files of the list were viewed, or that they were not.
    MarkFiles {
        /// Files of the list.
        files: Vec<RunFile>,
        /// False to take the marks back.
        viewed: bool,
        /// Time of the key press.
        at: Time,
    },
    /// Reads the files of a run.
    LoadFiles {
        /// Run id.
        run: String,
    },
    /// Reads the files that these runs reviewed or left out and in which no finding is open.
    LoadReviewedFiles {
        /// Run ids, the newest first.
        runs: Vec<String>,
    },
    /// Reads the commits that runs reviewed.
    LoadRunSubjects(Vec<RunSubjectQuery>),
    /// Reads the ids of the findings that a run reported.
    LoadReported {
        /// Run id.
        run: String,
    },
    /// Filters and sorts the findings of a view.
    Filter {
        /// Serial number, which the result repeats.
        serial: u64,
        /// View to filter.
        view: Arc<StoreView>,
        /// Filter and order to apply.
        query: FindingQuery,
    },
    /// Collects the files of the listed findings.
    ListFiles {
        /// Serial number, which the result repeats.
        serial: u64,
        /// View of the findings.
        view: Arc<StoreView>,
        /// Findings whose files are wanted.
        source: FileSource,
    },
    /// Requests data for a view.
    View(ViewRequest),
    /// Stores, undoes or redoes triage decisions.
    Triage(TriageOrder),
    /// Snoozes findings, or ends their snoozes.
    SnoozeFindings {
        /// Finding ids.
        findings: Vec<FindingId>,
        /// End of the snooze.
        wish: SnoozeWish,
    },
    /// Changes the priority or kind of findings.
    RateFindings {
        /// Finding ids.
        findings: Vec<FindingId>,
        /// New values.
        wish: RatingWish,
    },
    /// Stores a note of the user about a finding.
    Note {
        /// Finding id.
        finding: FindingId,
        /// Text of the note, on one line.
        text: String,
    },
    /// Requests a review.
    Review {
        /// Scope; `None` for the default scope.
        scope: Option<Scope>,
        /// Reviewer.
        reviewer: ChosenReviewer,
        /// True to review again although an equivalent review exists.
        force: bool,
    },
    /// Looks for changes that nobody has reviewed; the built-in reviewer reviews them if the settings say so.
    ReviewOnOpen,
    /// Looks whether scopes still show what runs have reviewed.
    CompareScopes {
        /// Epoch of the facts on the screen.
        epoch: u64,
        /// Scopes that change with the worktree or the index.
        scopes: Vec<Scope>,
    },
    /// Cancels a run.
    Cancel(RunId),
    /// Pauses a run.
    Pause(RunId),
    /// Resumes a paused run.
    Resume(RunId),
    /// Starts a watcher, or stops the current one.
    Watch,
    /// Exchanges records with the team.
    Sync,
    /// Follows the team that the machine has just joined, if it is one that tells news.
    FollowTeam,
    /// Pauses automatic reviews for the typed duration.
    Snooze(String),
    /// Has the terminal report the mouse, or not.
    SetMouse(bool),
    /// Writes the name of a theme into the user's settings.
    KeepTheme(String),
    /// Writes a saved filter into the user's settings, or removes it there.
    SaveFilter(FilterChange),
    /// Determines the reviewer that would make a fix.
    PlanFix(Vec<FindingId>),
    /// Makes, applies, undoes or drops a fix.
    Fix(FixOrder),
    /// Determines who would answer a question about a finding, and what it may cost.
    PlanQuestion {
        /// Finding id.
        finding: FindingId,
        /// Reviewer that is to answer; `None` for the one that reported the finding.
        reviewer: Option<String>,
    },
    /// Stops the question about a finding that is on its way.
    StopQuestion(FindingId),
    /// Asks the reviewer of a finding.
    Ask {
        /// Finding id.
        finding: FindingId,
        /// Name of the reviewer.
        reviewer: String,
        /// Text of the question.
        question: String,
    },
    /// Copies text with a program of the system.
    Copy(CopyOrder),
    /// Copies findings as a prompt for a coding agent, by id.
    CopyPrompt(Vec<String>),
    /// Sends text to the terminal's clipboard.
    CopyToTerminal(String),
    /// Opens a file in the editor.
    Edit {
        /// Path relative to the root of the working tree.
        path: String,
        /// Line at which the editor opens, 1-based.
        line: u32,
    },
    /// Opens the user's settings file in the editor.
    EditSettings {
        /// Setting at which the editor opens.
        setting: Option<&'static str>,
    },
    /// Tells the user outside the screen, if the settings say so.
    Notify(String),
    /// Runs a command of the user.
    RunProgram(CommandCall),
    /// Suspends the process, as Ctrl-Z does in a shell.
    Suspend,
    /// Draws the whole screen again.
    Redraw,
    /// Ends the cockpit; `None` when the user quit.
    Quit(Option<ExitCause>),
}

impl AppCommand {
    /// Returns true if the command reads or computes something for the screen and changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Load { .. }
                | Self::Reveal { .. }
                | Self::Diff(_)
                | Self::LoadFiles { .. }
                | Self::LoadReviewedFiles { .. }
                | Self::LoadRunSubjects(_)
                | Self::LoadReported { .. }
                | Self::Filter { .. }
                | Self::ListFiles { .. }
                | Self::CompareScopes { .. }
        )
    }
}

/// Run whose commits are read, and the ends of their range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSubjectQuery {
    /// Run id.
    pub run: String,
    /// Commit before the first commit; empty for a commit without a parent.
    pub base: String,
    /// Last commit.
    pub tip: String,
}

/// Text to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOrder {
    /// The text.
    pub text: String,
    /// Name of the text for the user, such as "the id".
    pub what: &'static str,
}

/// Reviewer of a requested review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenReviewer {
    /// The default reviewer of the settings; it may cost money.
    Default,
    /// The built-in reviewer.
    Builtin,
    /// A reviewer of the settings; it may cost money.
    Named(String),
}

impl ChosenReviewer {
    /// Returns the name of the reviewer; `None` for the default one.
    pub fn into_name(self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Builtin => Some(BUILTIN_REVIEWER.to_owned()),
            Self::Named(name) => Some(name),
        }
    }
}

/// Triage decisions made by one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriageOrder {
    /// Gives findings a verdict.
    Set {
        /// Finding ids.
        findings: Vec<FindingId>,
        /// Verdict about all of them.
        verdict: UserVerdict,
    },
    /// Undoes the user's last decision.
    Undo,
    /// Redoes the last undone decision.
    Redo,
}

/// Status that the user gives findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserVerdict {
    /// New status.
    pub status: FindingStatus,
    /// Reason of a dismissal, else empty.
    pub reason: String,
}

impl UserVerdict {
    /// Returns the verdict with a status that needs no reason.
    pub fn without_reason(status: FindingStatus) -> Self {
        Self { status, reason: String::new() }
    }
}

/// Subject of the detail pane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DetailSubject {
    /// No item is selected.
    Nothing,
    /// A run, by its id.
    Run(String),
    /// A finding, by its id.
    Finding(String),
    /// A file of a run.
    File {
        /// Run id.
        run: String,
        /// Path relative to the repository root.
        path: String,
    },
}

/// Tab of the detail pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The finding, the run or the file itself.
    Page,
    /// Requests and responses of a run.
    Turns,
    /// Context of the run's first request.
    Context,
    /// Patch that fixes the finding.
    Fix,
    /// Change that the run reviewed, or its part in one file.
    Diff,
    /// Journal of the run.
    Log,
    /// Findings as a text for coding assistants; the same for every subject.
    Ledger,
}

/// File as a run shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// Run id.
    pub run: String,
    /// Path relative to the repository root.
    pub path: String,
}

/// Row of the files list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileListRow {
    /// Path relative to the repository root.
    pub path: String,
    /// Number of findings by priority, P0 to P3.
    pub counts: [u32; 4],
    /// Coverage of the file by the run.
    pub state: FileListState,
    /// The user has viewed the file with the content that the run reviewed, or each of its changes.
    pub is_viewed: bool,
    /// Numbers of the viewed changes and of all changes of a file of which only a part was viewed.
    pub viewed_changes: Option<(u32, u32)>,
}

impl FileListRow {
    /// Creates the row of a file without findings that is not viewed.
    pub fn new(path: &str, state: FileListState) -> Self {
        Self { path: path.to_owned(), counts: [0; 4], state, is_viewed: false, viewed_changes: None }
    }
}

/// Coverage of a file by a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileListState {
    /// Reviewed, or named by a finding.
    Covered,
    /// Reviewed in part: hunks of it should have been reviewed and were not.
    Partial,
    /// Not yet sent to the reviewer.
    Waiting,
    /// Not reviewed, with the reason as a label, such as "binary".
    LeftOut(&'static str),
    /// Has findings; its coverage is not loaded.
    Unknown,
}
