//! Requests and starts: a request is decided by the policy, a run is recorded, workers are started.

pub(super) mod commit_hook;
mod continued_panel;
mod missing_opinions;
pub(super) mod needless_runs;
pub(super) mod older_run_progress;
pub(super) mod opening;
mod panel_request;
pub(super) mod preview;
pub(super) mod request;
mod request_decision;
pub(super) mod request_preview;
mod run_recording;
pub(super) mod start_workers;
mod superseded_runs;

use crate::runner::Services;

/// Service that answers requests: takes the snapshot, has the policy decide, records the run, starts workers, and
/// previews what a model would be sent.
#[derive(Clone, Copy)]
pub struct Launcher<'a> {
    pub(in crate::runner) services: &'a Services,
}
