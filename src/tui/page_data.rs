//! Defines the data of the detail pages as read in the background: plain values without layout.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diff::DiffPage;
use super::message::FileListState;
use super::theme::Role;
use super::turns::TurnHistory;
use crate::domain::{
    Disposition, Finding, FindingNote, FindingQuestion, FindingRating, FindingSnooze, Fix, JournalEntry,
    QuestionRequest, RunOutput, RunRecord,
};
use crate::policy::MuteOffer;
use crate::report::FirstReport;
use crate::runner::LedgerPreview;
use crate::store::VoidCause;

/// Data for a subject and a tab.
#[derive(Debug, Clone)]
pub enum PageData {
    Finding(Box<FindingPage>),
    Run(Box<RunPage>),
    Turns(Box<TurnsPage>),
    /// Same data as `Turns`, for the context tab.
    Context(Box<TurnsPage>),
    File(Box<FilePage>),
    Fix(Box<FixPage>),
    /// Diff of a file, or of all files of a run.
    Diff(Arc<DiffPage>),
    Log {
        run: Option<Box<RunRecord>>,
        entries: Vec<JournalEntry>,
    },
    /// Ledgers of the next turns, and what was delivered.
    Ledger(LedgerPreview),
    /// Error message.
    Failed(String),
}

impl From<Arc<DiffPage>> for PageData {
    fn from(page: Arc<DiffPage>) -> Self {
        Self::Diff(page)
    }
}

#[derive(Debug, Clone)]
pub struct FindingPage {
    pub finding: Finding,
    /// Decisions, in the order of [`crate::store::Store::decision_history`].
    pub history: Vec<Disposition>,
    /// Decisions that do not count, by their index in `history`.
    pub void: BTreeMap<usize, VoidCause>,
    /// Notes of assistants for the user, oldest first.
    pub notes: Vec<FindingNote>,
    /// Snoozes and their ends, oldest first.
    pub snoozes: Vec<FindingSnooze>,
    /// Changes of priority and kind by the user, oldest first.
    pub ratings: Vec<FindingRating>,
    /// Questions to reviewers with their answers, oldest first.
    pub questions: Vec<FindingQuestion>,
    /// Question that is being asked.
    pub pending: Option<QuestionRequest>,
    /// The run that last reported the finding.
    pub run: Option<RunRecord>,
    /// The first report; `None` if the last run made it, or if it is unknown.
    pub first_report: Option<FirstReport>,
    /// The run that last examined the code, if the last run only carried the finding over.
    pub carried_from: Option<RunRecord>,
    /// Later run that saw the code elsewhere, with the reported location; the shown code is from that run's snapshot.
    pub relocation: Option<CodeRelocation>,
    /// Offer to mute the kind, because its findings were only ever dismissed.
    pub offer: Option<MuteOffer>,
    pub code: CodeExcerpt,
}

impl FindingPage {
    /// Returns the last line of the history that counts.
    pub fn last_decision(&self) -> Option<&Disposition> {
        let mut lines = self.history.iter().enumerate().rev();
        lines.find(|(index, _)| !self.void.contains_key(index)).map(|(_, line)| line)
    }
}

/// Record that code has moved since it was reported.
#[derive(Debug, Clone)]
pub struct CodeRelocation {
    /// The run that saw the code at its new location.
    pub run: RunRecord,
    /// Reported location as `path:lines`.
    pub reported: String,
}

/// Lines of a file in the snapshot.
#[derive(Debug, Clone, Default)]
pub struct CodeExcerpt {
    /// 1-based number of the first line.
    pub first: u32,
    pub lines: Vec<String>,
    /// Highlighted spans per line; empty until highlighted.
    pub spans: Vec<HighlightSpans>,
    /// Reason why the lines are not from the snapshot.
    pub note: Option<&'static str>,
}

/// Highlighted spans of a line: start byte, end byte (exclusive), style.
pub type HighlightSpans = Vec<(u32, u32, Role)>;

#[derive(Debug, Clone)]
pub struct RunPage {
    pub run: RunRecord,
    pub output: Option<RunOutput>,
    /// Journal of an active run; empty after the run has ended.
    pub journal: Vec<JournalEntry>,
}

/// Turns of a run that talks to a model.
#[derive(Debug, Clone)]
pub struct TurnsPage {
    pub run: RunRecord,
    pub conversation: TurnHistory,
}

#[derive(Debug, Clone)]
pub struct FilePage {
    pub run: RunRecord,
    pub path: String,
    pub findings: Vec<Finding>,
    /// Number of hunks that the run covered or took over.
    pub hunks: usize,
    /// Whether the run has reviewed the file.
    pub state: FileListState,
}

/// A fix with its patch.
#[derive(Debug, Clone)]
pub struct FixPage {
    pub fix: Fix,
    pub diffs: Vec<FileDiffPage>,
}

/// Diff of a file.
#[derive(Debug, Clone, Default)]
pub struct FileDiffPage {
    pub path: String,
    pub old_path: Option<String>,
    /// Commits of the old and the new side; empty if unknown.
    pub from: String,
    pub to: String,
    pub hunks: Vec<DiffPageHunk>,
    /// Text shown instead of or above the hunks.
    pub note: Option<String>,
    /// Lines of the finding on the new side (1-based, inclusive).
    pub anchor: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Default)]
pub struct DiffPageHunk {
    pub old_start: u32,
    pub new_start: u32,
    pub old_lines: u32,
    pub new_lines: u32,
    pub lines: Vec<DiffPageLine>,
}

#[derive(Debug, Clone)]
pub struct DiffPageLine {
    pub side: DiffSide,
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub text: String,
    pub spans: HighlightSpans,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffSide {
    Both,
    Old,
    New,
}
