//! Errors of making, applying and reverting a fix.

use thiserror::Error;

use super::apply_patch::PatchMismatch;
use crate::domain::text::sanitize_line;
use crate::domain::{FindingId, FindingStatus, Fix, FixId, FixStatus};

/// An error about a fix. Paths and texts in it are untrusted; the code that prints the error sanitizes them.
#[derive(Debug, Error)]
pub enum FixError {
    #[error("there is no finding to fix")]
    NoFinding,
    #[error("{} findings are too many for one fix; {} is the most", .0, Fix::MAX_FINDINGS)]
    TooMany(usize),
    #[error("{id} is {status}: there is nothing to fix")]
    Decided { id: FindingId, status: FindingStatus },
    #[error("the details of {0} are not in the store: the output of its run is gone")]
    NoDetails(FindingId),
    #[error("the snapshot in which {0} was found is no longer kept")]
    NoSnapshot(FindingId),
    #[error("no exact suggestion comes with {}", if *.0 == 1 { "the finding" } else { "any of the findings" })]
    NothingExact(usize),
    #[error("there is no fix {id} in this repository")]
    Unknown { id: FixId },
    #[error("{id} is {status}: {wanted}")]
    WrongStatus { id: FixId, status: FixStatus, wanted: &'static str },
    #[error("somebody makes or applies {id} just now")]
    Busy { id: FixId },
    #[error("the patch of {id} is gone or damaged")]
    NoPatch { id: FixId },
    /// Nothing was written.
    #[error("the patch does not apply: {path}: {}", sanitize_line(&.why.to_string()))]
    Differs { path: String, why: PatchMismatch },
    #[error("the patch does not apply: {path} {what}")]
    Missing { path: String, what: &'static str },
    /// Nothing was written.
    #[error("the lines of the fix in {path} have changed since: nothing was taken back")]
    ChangedSince { path: String },
    #[error("{id} was applied in {worktree}")]
    AppliedElsewhere { id: FixId, worktree: String },
    #[error("{0}")]
    BudgetSpent(String),
    #[error("no patch can be made: {0}")]
    NotMade(String),
}

impl FixError {
    /// Returns the next step for the user, as a sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NothingExact(_) => {
                "name a reviewer that can make a fix: `resolve.reviewer` in your settings".to_owned()
            }
            Self::Decided { id, .. } => format!("`revdeck triage {id} open` opens it again"),
            Self::Unknown { .. } => "`revdeck fixes` lists them".to_owned(),
            Self::NoDetails(_) | Self::NoSnapshot(_) => {
                "review the change again, and fix what is found then".to_owned()
            }
            Self::Differs { .. } | Self::Missing { .. } => {
                "your files have changed since the snapshot; review again and fix what is found then, or take from \
                 `revdeck fix show` what you need"
                    .to_owned()
            }
            Self::ChangedSince { .. } => {
                "undo your changes of these lines first, or take the fix back by hand; opening its findings again needs \
                 no file: `revdeck triage FINDING open`"
                    .to_owned()
            }
            Self::AppliedElsewhere { worktree, .. } => format!("change into {worktree}"),
            Self::Busy { .. } => "`revdeck fixes` says how far it is".to_owned(),
            Self::NotMade(_) => "review the change again, and fix what is found then".to_owned(),
            Self::NoFinding | Self::TooMany(_) | Self::WrongStatus { .. } | Self::NoPatch { .. } | Self::BudgetSpent(_) => {
                return None;
            }
        })
    }
}
