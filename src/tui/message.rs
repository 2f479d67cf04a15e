//! Defines messages and commands. All input of the cockpit, time included, arrives as a message; all effects
//! leave as commands.

use std::sync::Arc;

use super::filter::{FilterOverrides, FindingFilter};
use super::input::TerminalInput;
use super::page_data::PageData;
use super::views::fix::{FixIndex, FixOrder, FixPlan};
use super::views::{ViewReply, ViewRequest};
use crate::domain::{FindingId, FindingStatus, Fix, RunId, Scope};
use crate::runner::WatchState;
use crate::store::triage::UndoOutcome;
use crate::store::{Heartbeat, StoreView};

/// Event for the cockpit.
#[derive(Debug)]
pub enum AppMessage {
    Input(TerminalInput),
    Resized {
        columns: u16,
        rows: u16,
    },
    /// A second has passed. Sent only while the screen shows a running clock, and once at the start.
    Tick,
    /// New state of the store. `written` is the number of decisions that this process had stored before the read.
    StoreRead {
        view: Arc<StoreView>,
        written: u64,
    },
    /// Heartbeats of the working runs, by run id.
    Pulses(Vec<(String, Heartbeat)>),
    /// The store cannot be read, or not completely.
    StoreTrouble(String),
    /// Rows that match the filter.
    Filtered {
        serial: u64,
        view: Arc<StoreView>,
        rows: Vec<u32>,
    },
    /// Data of the detail page.
    Loaded {
        subject: DetailSubject,
        tab: Tab,
        loaded: Box<PageData>,
    },
    /// Files of a run; `None` if the run has no output.
    Files {
        run: String,
        files: Option<Vec<FileListRow>>,
    },
    /// Ids of the findings that a run reported.
    Reported {
        run: String,
        findings: Vec<String>,
    },
    /// Result of a triage order.
    Triaged {
        order: TriageOrder,
        result: Result<UndoOutcome, String>,
        written: u64,
    },
    /// Data for a view.
    View(ViewReply),
    /// Result of a review request.
    Requested(Result<ReviewReply, String>),
    Cancelled {
        run: String,
        result: Result<String, String>,
    },
    /// Result of pausing or resuming a run.
    Paused(Result<String, String>),
    /// Repairs after dead processes, described in one line; `None` if there was nothing to repair.
    Reconciled(Option<String>),
    /// State of the watcher and of the snooze.
    Watch(WatchState),
    /// Result of starting or stopping the watcher, or of a snooze.
    Watched(Result<String, String>),
    /// All fixes.
    Fixes(Arc<FixIndex>),
    /// Reviewer that would make a fix.
    FixPlanned(Result<FixPlan, String>),
    /// Result of a fix request.
    FixFinished(Result<Box<Fix>, String>),
    /// The editor has exited.
    Edited(Result<(), String>),
    Ended(ExitCause),
    /// The process continues after a suspension; the whole screen is drawn again.
    Resumed,
}

/// Cause of an exit without a key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// SIGTERM or SIGINT.
    Terminated,
    /// SIGHUP: the terminal is gone.
    HungUp,
}

/// Answer to a review request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewReply {
    /// Id of the run that answers the request.
    pub run: Option<String>,
    /// Decision in one sentence.
    pub text: String,
    /// There was nothing to review.
    pub nothing: bool,
}

/// Effect to execute outside the state.
#[derive(Debug)]
pub enum AppCommand {
    Load {
        subject: DetailSubject,
        tab: Tab,
    },
    LoadFiles {
        run: String,
    },
    /// Reads the ids of the findings that a run reported.
    LoadReported {
        run: String,
    },
    Filter {
        serial: u64,
        view: Arc<StoreView>,
        filter: FindingFilter,
        overrides: Arc<FilterOverrides>,
    },
    /// Requests data for a view.
    View(ViewRequest),
    Triage(TriageOrder),
    Review(Option<Scope>),
    Cancel(RunId),
    Pause(RunId),
    Resume(RunId),
    /// Starts a watcher, or stops the current one.
    Watch,
    /// Pauses automatic reviews for the typed duration.
    Snooze(String),
    /// Determines the reviewer that would make a fix.
    PlanFix(Vec<FindingId>),
    Fix(FixOrder),
    /// Copies text to the terminal's clipboard.
    Copy(String),
    Edit {
        path: String,
        line: u32,
    },
    Suspend,
    /// Draws the whole screen again.
    Redraw,
    Quit(Option<ExitCause>),
}

/// Triage decisions made by one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriageOrder {
    Set(Vec<TriageOrderItem>),
    /// Undoes the user's last decision.
    Undo,
    /// Redoes the last undone decision.
    Redo,
}

/// Finding and new status in a [`TriageOrder::Set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriageOrderItem {
    pub finding: FindingId,
    pub previous: FindingStatus,
    pub status: FindingStatus,
    pub reason: String,
}

/// Subject of the detail pane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DetailSubject {
    Nothing,
    Run(String),
    Finding(String),
    File { run: String, path: String },
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
    Diff,
    Log,
    Ledger,
}

/// Row of the files list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileListRow {
    pub path: String,
    /// Number of findings by priority, P0 to P3.
    pub counts: [u32; 4],
    pub state: FileListState,
}

/// Coverage of a file by a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileListState {
    Covered,
    /// Not yet sent to the reviewer.
    Waiting,
    LeftOut(&'static str),
    /// Has findings; its coverage is not loaded.
    Unknown,
}
