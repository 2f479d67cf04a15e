//! Recovery: settles runs without a worker, removes leftovers, keeps runs and caches within their limits.

pub(super) mod cache_sweep;
pub(super) mod reconcile;
pub(super) mod recover;
pub(super) mod retention;
