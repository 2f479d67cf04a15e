//! Fixes: a patch for findings is made in a copy of the snapshot, reviewed, offered, and put into the user's files only
//! when a person says so.
//!
//! | step | who | on record |
//! |---|---|---|
//! | [`Runner::fix`] | whoever presses the key or types the command | `working` |
//! | [`Runner::work_on_fix`] | a worker of its own, holding the fix's lock for its life | `reviewing`, then `offered` or `failed` |
//! | [`Runner::apply_fix`], [`Runner::undo_fix`], [`Runner::drop_fix`] | the person | `applied`, `undone`, `dropped` |
//! | [`Runner::reconcile_fixes`] | whoever comes by after a worker died | `failed`; what was made already is `offered` |
//!
//! Who makes the patch: exact suggestions are put in by revdeck itself ([`exact`]); what has none is for the reviewer that
//! `resolve.reviewer` names. The run that found the problems has ended and stays as it is: a fix has a record of its own
//! ([`crate::domain::Fix`]), and the run's status `resolving` is the short time in which its own end acts on findings.

mod apply_fix;
mod apply_patch;
mod command_fixer;
mod error;
mod exact_suggestions;
mod fixer_requests;
mod fixer_worker;
mod follow_up;
mod model_fixer;
mod request_fix;

pub use error::FixError;

use crate::domain::{FindingId, Source};

/// A wish for a fix.
#[derive(Debug, Clone)]
pub struct FixRequest {
    pub findings: Vec<FindingId>,
    /// `None` for whom the settings name, or nobody where every suggestion is exact.
    pub reviewer: Option<String>,
    pub source: Source,
}
