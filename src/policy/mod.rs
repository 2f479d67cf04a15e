//! Pure decisions: launch, adopt, reuse, resume, skip; freshness; the rate of reviewing unasked; the life of a finding.
//!
//! Invariants: no IO, no clock, no randomness; imports `domain` only. [`freshness`] is given no start time and no
//! duration, so a long run can never be taken for a stale one.
//!
//! # Who decides what
//!
//! | question | decided by | from |
//! |---|---|---|
//! | is a request a run of its own? | [`decide`] | scope, content, reviewer, model, effort, prompts; runs under way |
//! | may an older run finish? | [`supersede::verdict`] | hunks delivered, what of the rest still holds, `policy.finish_from` |
//! | what of a run need not be sent? | [`carry::carry_over`] | keys of hunks, what runs with the same eyes have reviewed |
//! | does a run still speak of the code? | [`freshness`](freshness()) | snapshot, head, epoch, lock, last activity; never its age |
//! | what became of a finding? | [`next_status`] | what a run saw of code that it covered |
//!
//! # The life of a finding
//!
//! At the end of each run the runner asks this room, in this order, about the findings that the run may have an opinion on:
//!
//! 1. [`reach`]: may the run judge it at all? Its branch and worktree have to be those of the finding, and its snapshot
//!    at least as new. A run that is over early judges what it covered.
//! 2. [`anchor::locate`]: where does its code stand now? Unchanged code is no evidence: the finding stands, at its new
//!    place.
//! 3. [`recognise`]: is one of the run's reports this finding, in other words, at slightly other lines, in edited code
//!    or in a file of another name? Then it keeps its id and its history.
//! 4. [`confirms`] and [`next_status`]: what the evidence makes of it. Silence counts only of the reviewer that reported
//!    it, and only about code that was changed and covered. The built-in reviewer reports what a change adds and says
//!    nothing about what stood there before, so that its silence alone is not enough: it is asked whether the problem is
//!    still there.
//! 5. [`is_late`], [`may_mute`]: is a report held back? Dismissed ones are, wherever their code is the same.

pub mod anchor;
mod auto_review;
pub mod carry;
mod decide;
mod finding_match;
mod freshness;
mod lifecycle;
mod run_authority;
pub mod supersede;
mod suppression;

pub use auto_review::{
    AutoReviewInput, AutoReviewRules, AutoReviewVerdict, ChangeSize, DailySpend, MIN_SETTLE_MS, NoReviewReason,
    RetryAt, decide_auto_review,
};
pub use decide::{
    CancelRequest, Decision, KnownRun, LaunchRequest, MAX_ATTEMPTS, Requester, Resumable, ReviewAction, ReviewExtent,
    decide, find_replaced_runs,
};
pub use finding_match::{MatchCandidate, is_edited_anchor, match_earlier_findings};
pub use freshness::{Activity, CurrentCode, Freshness, FreshnessSubject, Liveness, SnapshotState, derive_freshness};
pub use lifecycle::{
    ClaimOrder, DETERMINISTIC_REVIEWER, Evidence, FindingState, Refusal, Resolution, ReviewObservation, SilentRun,
    confirms_fix, find_resolution, may_set, needs_reason, next_status,
};
pub use run_authority::{RunAuthority, SnapshotLayer, SnapshotView, decide_authority};
pub use suppression::{
    MIN_DISMISSALS_TO_OFFER_MUTE, MuteOffer, NeverMutedKind, PriorCoverage, ReviewerProfile, is_late, list_mute_offers,
    may_mute,
};
