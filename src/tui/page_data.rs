//! What the detail shows, as it was read in the background: values only, nothing measured or coloured yet.

use super::theme::Role;
use super::turns::TurnHistory;
use crate::domain::{Disposition, Finding, Fix, JournalEntry, RunOutput, RunRecord};
use crate::policy::MuteOffer;

/// What was loaded for a subject and a tab.
#[derive(Debug, Clone)]
pub enum PageData {
    Finding(Box<FindingPage>),
    Run(Box<RunPage>),
    Turns(Box<TurnsPage>),
    /// From the same journal.
    Context(Box<TurnsPage>),
    File(Box<FilePage>),
    Fix(Box<FixPage>),
    /// One file's change, or all of a run's.
    Diff(Vec<FileDiffPage>),
    Log {
        run: Option<Box<RunRecord>>,
        entries: Vec<JournalEntry>,
    },
    /// The exact text, and how many tokens it costs an assistant; `None` when there is nothing to say.
    Ledger(Option<LedgerText>),
    /// In one sentence.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerText {
    pub text: String,
    pub tokens: usize,
}

#[derive(Debug, Clone)]
pub struct FindingPage {
    pub finding: Finding,
    pub history: Vec<Disposition>,
    /// The run that last reported it.
    pub run: Option<RunRecord>,
    /// A later run that saw the code elsewhere, and where it was reported; the code shown is of its snapshot.
    pub relocation: Option<CodeRelocation>,
    /// Its kind was only ever dismissed.
    pub offer: Option<MuteOffer>,
    pub code: CodeExcerpt,
}

/// That code has moved since it was reported.
#[derive(Debug, Clone)]
pub struct CodeRelocation {
    pub run: RunRecord,
    /// As in a list.
    pub reported: String,
}

/// Lines of a file of the snapshot.
#[derive(Debug, Clone, Default)]
pub struct CodeExcerpt {
    /// Number of the first line, from 1.
    pub first: u32,
    pub lines: Vec<String>,
    /// For each line the pieces that have a colour: start and end byte, role. Empty until highlighted.
    pub spans: Vec<HighlightSpans>,
    /// Why these are not the snapshot's lines.
    pub note: Option<&'static str>,
}

/// The coloured pieces of one line.
pub type HighlightSpans = Vec<(u32, u32, Role)>;

#[derive(Debug, Clone)]
pub struct RunPage {
    pub run: RunRecord,
    pub output: Option<RunOutput>,
    /// The last entries of its journal.
    pub journal: Vec<JournalEntry>,
}

/// A run that talks to a model.
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
    pub hunks: usize,
    pub left_out: Option<String>,
}

/// A patch that is offered.
#[derive(Debug, Clone)]
pub struct FixPage {
    pub fix: Fix,
    pub diffs: Vec<FileDiffPage>,
}

/// The change of one file.
#[derive(Debug, Clone, Default)]
pub struct FileDiffPage {
    pub path: String,
    pub old_path: Option<String>,
    pub from: String,
    pub to: String,
    pub hunks: Vec<DiffPageHunk>,
    /// Instead of hunks, or about them.
    pub note: Option<String>,
    /// Lines of the finding on the new side.
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
