//! What can happen to the cockpit and what it can want done. Everything from outside, moments included, arrives as a
//! message; everything for outside leaves as a command.

use std::sync::Arc;

use super::filter::{FilterOverrides, FindingFilter};
use super::fixes::{FixIndex, FixOrder, FixPlan};
use super::input::TerminalInput;
use super::knowledge::{KnowledgeOrder, KnowledgeOutcome, PatternLibrary};
use super::page_data::PageData;
use crate::domain::{FindingId, FindingStatus, Fix, RunId, Scope};
use crate::ledger::metrics::Metrics;
use crate::runner::WatchState;
use crate::store::triage::UndoOutcome;
use crate::store::{Heartbeat, StoreView};

/// Something happened.
#[derive(Debug)]
pub enum AppMessage {
    Input(TerminalInput),
    Resized {
        columns: u16,
        rows: u16,
    },
    /// A second has passed; sent only while a run lives.
    Tick,
    /// The store as it is now. `written` counts the decisions that this process had stored before it was read.
    StoreRead {
        view: Arc<StoreView>,
        written: u64,
    },
    /// What the runs that work do this moment, by their ids.
    Pulses(Vec<(String, Heartbeat)>),
    /// The store cannot be read, or not completely.
    StoreTrouble(String),
    /// The rows that a filter lets through.
    Filtered {
        serial: u64,
        view: Arc<StoreView>,
        rows: Vec<u32>,
    },
    /// What the detail shows.
    Loaded {
        subject: DetailSubject,
        tab: Tab,
        loaded: Box<PageData>,
    },
    /// The files of a run.
    /// `None` when nothing is recorded of them but the findings.
    Files {
        run: String,
        files: Option<Vec<FileListRow>>,
    },
    /// The ids of the findings that a run reported.
    Reported {
        run: String,
        findings: Vec<String>,
    },
    /// What was stored for an order.
    Triaged {
        order: TriageOrder,
        result: Result<UndoOutcome, String>,
        written: u64,
    },
    /// The figures of the store.
    Stats(Result<Arc<Metrics>, String>),
    /// The patterns as they are now.
    Knowledge(Arc<PatternLibrary>),
    /// Somebody has changed them.
    KnowledgeChanged,
    /// What came of an order about them.
    KnowledgeFinished(KnowledgeOutcome),
    /// A review was asked for: the decision in words, and the run that stands for it.
    Requested(Result<ReviewReply, String>),
    Cancelled {
        run: String,
        result: Result<String, String>,
    },
    /// What came of pausing a run or of letting it go on.
    Paused(Result<String, String>),
    /// What dead processes left was set right: what that was, in a line.
    Reconciled(Option<String>),
    /// Who watches, and whether somebody wants to be left alone.
    Watch(WatchState),
    /// What came of starting or ending a watcher, or of a snooze.
    Watched(Result<String, String>),
    /// The fixes there are.
    Fixes(Arc<FixIndex>),
    /// Who would make a fix.
    FixPlanned(Result<FixPlan, String>),
    /// What came of an order about a fix.
    FixFinished(Result<Box<Fix>, String>),
    /// An editor has ended.
    Edited(Result<(), String>),
    Ended(ExitCause),
    /// Back from a suspension: everything must be drawn anew.
    Resumed,
}

/// Why the cockpit ends although nobody pressed a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// SIGTERM or SIGINT.
    Terminated,
    /// SIGHUP: the terminal is gone.
    HungUp,
}

/// What became of a wish for a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewReply {
    pub run: Option<String>,
    /// One sentence.
    pub text: String,
    /// Nothing was there to review.
    pub nothing: bool,
}

/// Something to do outside.
#[derive(Debug)]
pub enum AppCommand {
    Load {
        subject: DetailSubject,
        tab: Tab,
    },
    LoadFiles {
        run: String,
    },
    /// What did this run report?
    LoadReported {
        run: String,
    },
    Filter {
        serial: u64,
        view: Arc<StoreView>,
        filter: FindingFilter,
        overrides: Arc<FilterOverrides>,
    },
    /// Count what a view and the files beside it tell.
    Stats(Arc<StoreView>),
    Knowledge(KnowledgeOrder),
    Triage(TriageOrder),
    Review(Option<Scope>),
    Cancel(RunId),
    Pause(RunId),
    Resume(RunId),
    /// Starts a watcher, or ends the one there is.
    Watch,
    /// For so long nothing is to begin by itself, as it was typed.
    Snooze(String),
    /// Find out who would make a fix.
    PlanFix(Vec<FindingId>),
    Fix(FixOrder),
    /// Into the terminal's clipboard.
    Copy(String),
    Edit {
        path: String,
        line: u32,
    },
    Suspend,
    /// Draw everything anew.
    Redraw,
    Quit(Option<ExitCause>),
}

/// Decisions about findings, made by one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriageOrder {
    Set(Vec<TriageOrderItem>),
    /// Take back the last decision of the user.
    Undo,
    /// Set again what was taken back last.
    Redo,
}

/// One finding of a [`TriageOrder::Set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriageOrderItem {
    pub finding: FindingId,
    pub previous: FindingStatus,
    pub status: FindingStatus,
    pub reason: String,
}

/// What the detail is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DetailSubject {
    Nothing,
    Run(String),
    Finding(String),
    File { run: String, path: String },
}

/// The pages of the detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The finding, the run or the file itself.
    Page,
    /// What was asked and answered in a run.
    Turns,
    /// What a run's first request told of the code around the change.
    Context,
    /// The patch that is offered for a finding.
    Fix,
    Diff,
    Log,
    Ledger,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileListRow {
    pub path: String,
    /// Findings by priority.
    pub counts: [u32; 4],
    pub state: FileListState,
}

/// What a run did with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileListState {
    Covered,
    /// Not yet put before the reviewer.
    Waiting,
    LeftOut(&'static str),
    /// Has findings; whether all of it was covered is not loaded.
    Unknown,
}
