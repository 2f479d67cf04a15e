//! Runs `revdeck worker RUN`: one run from its claim to its end.

mod cancel_watch;
pub(super) mod carry_over;
mod change_review;
pub(super) mod conversation;
mod earlier_attempts;
mod earlier_rulings;
mod panel_cost;
mod panel_opinions;
mod panel_review;
pub(super) mod report_validation;
mod reported_findings;
pub(in crate::runner) mod rewritten_code;
mod run_claim;
mod run_worker;
pub(super) mod secret_scan;
pub(super) mod shared_reading;
mod standing_code;
mod team_claim;
mod visible_findings;
mod worker_process;

use self::cancel_watch::CancelWatch;
use self::run_worker::RunWorker;
use crate::runner::Services;

/// Service that executes one run in the process of its worker.
#[derive(Clone, Copy)]
pub struct Worker<'a> {
    pub(in crate::runner) services: &'a Services,
}
