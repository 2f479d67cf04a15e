//! Pure decisions: launch, adopt, reuse, resume, skip; freshness; the life of a finding.
//!
//! Invariants: no IO, no clock, no randomness; imports `domain` only. [`freshness`] is given no start time and no
//! duration, so a long run can never be taken for a stale one.

pub mod anchor;
mod decide;
mod freshness;
mod lifecycle;

pub use decide::{Action, Decision, Ending, Extent, KnownRun, MAX_ATTEMPTS, Request, Resumable, decide, replaced_by};
pub use freshness::{Activity, Freshness, Liveness, SnapshotState, Surroundings, Target, freshness};
pub use lifecycle::{ClaimOrder, Evidence, Refusal, may_set, needs_reason, next_status};
