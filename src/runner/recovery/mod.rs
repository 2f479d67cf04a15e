//! Recovery: settles runs without a worker, removes leftovers, keeps runs and caches within their limits.

pub(super) mod cache_sweep;
pub(super) mod reconcile;
pub(super) mod recover;
pub(super) mod retention;

use crate::runner::Services;

/// Service that settles runs without a worker, removes leftovers of dead processes, and applies the retention.
#[derive(Clone, Copy)]
pub struct Recovery<'a> {
    pub(in crate::runner) services: &'a Services,
}
