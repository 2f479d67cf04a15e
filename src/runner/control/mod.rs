//! Control of a run from outside its worker: cancelling, pausing, waiting for its end.

pub(super) mod cancel;
pub(super) mod pause;
pub(super) mod run_check;
pub(super) mod wait;

use crate::runner::Services;

/// Service that acts on a run from outside its worker: cancels, pauses, resumes, waits for its end.
#[derive(Clone, Copy)]
pub struct RunControl<'a> {
    pub(in crate::runner) services: &'a Services,
}
