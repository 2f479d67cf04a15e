//! Fixes: makes a patch for findings in a copy of the snapshot, reviews it, offers it, and applies it to the user's
//! files only on request.
//!
//! | step | process | recorded status |
//! |---|---|---|
//! | [`crate::runner::Fixer::request_fix`] | the cockpit or the command line | `working` |
//! | [`crate::runner::Fixer::apply_suggestions`] | the cockpit, for exact suggestions that the user has seen | `working` to `applied` |
//! | [`crate::runner::Fixer::run_fixer`] | a separate worker that holds the fix's lock | `reviewing`, then `offered` or `failed` |
//! | [`crate::runner::Fixer::apply_fix`], [`crate::runner::Fixer::undo_fix`], [`crate::runner::Fixer::drop_fix`] | the user's | `applied`, `undone`, `dropped` |
//! | [`crate::runner::Fixer::reconcile_fixes`] | any process, after a worker died | `failed`, or `offered` if a patch exists |
//!
//! revdeck itself applies exact suggestions ([`exact_suggestions`]); the reviewer of `resolve.reviewer` makes all other
//! patches. The run that found the problems has ended and stays unchanged: a fix has its own record
//! ([`crate::domain::Fix`]). The run's status `resolving` is the short time in which the end of the run updates
//! findings.

mod apply_fix;
mod apply_patch;
mod apply_suggestions;
mod command_fixer;
mod error;
mod exact_suggestions;
mod fixer_requests;
mod fixer_worker;
mod follow_up;
mod model_fixer;
mod request_fix;

pub(crate) use error::FixError;
pub(crate) use request_fix::FixMakers;

use crate::domain::{FindingId, Source};
use crate::runner::Services;

/// Service that makes, reviews, applies, undoes and drops fixes.
#[derive(Clone, Copy)]
pub struct Fixer<'a> {
    pub(in crate::runner) services: &'a Services,
}

/// A request for a fix.
#[derive(Debug, Clone)]
pub struct FixRequest {
    pub findings: Vec<FindingId>,
    /// The reviewer that makes the fix; `None` for the one of the settings, or for the built-in one if all suggestions
    /// are exact.
    pub reviewer: Option<String>,
    pub source: Source,
}
