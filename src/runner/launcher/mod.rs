//! Requests and starts: a request is decided by the policy, a run is recorded, workers are started.

pub(super) mod commit_hook;
pub(super) mod older_run_progress;
pub(super) mod preview;
pub(super) mod request;
pub(super) mod start_workers;
