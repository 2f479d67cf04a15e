//! Makes pure decisions: launch, adopt, reuse, resume or skip a review; freshness; automatic reviews; finding
//! lifecycle.
//!
//! Invariants:
//! - No IO, no clock, no randomness; only `domain` is imported.
//! - [`derive_freshness`] receives no start time and no duration, so a long run can never count as stale.
//!
//! # Decisions
//!
//! | question | decided by | from |
//! |---|---|---|
//! | is a request a run of its own? | [`decide()`] | scope, content, reviewer, model, effort, prompts; active runs |
//! | may an older run finish? | [`supersede::judge_older_run`] | delivered and valid hunks, `policy.finish_from` |
//! | which hunks need not be sent? | [`carry::carry_over`] | keys of hunks, and hunks reviewed with the same profile |
//! | is a live run still needed? | [`find_needless_runs`] | its commit and the history; live runs with equal content |
//! | does a run still show the current code? | [`derive_freshness`] | snapshot, head, epoch, lock, activity; no age |
//! | does a finding of another machine count here? | [`is_uncommitted_elsewhere`] | scope and worktree of the run that reported it last |
//! | may a finding be snoozed, and is it? | [`may_snooze`], [`is_snoozed`] | actor, priority, end of the snooze, now |
//! | may a question be asked? | [`check_question_budget`] | limits of a run and of a day, what is used, the most it may take |
//! | which decision of a team stands? | [`merge_decisions`] | decisions of all machines, and which ones their authors knew |
//! | is a panel asked again for second opinions? | [`renew_opinions`] | runs without an answer, limits then and now |
//! | which decisions about reports hold for a panel's list? | [`take_over_decisions`] | last decisions about the ids of a problem, their order |
//! | which decisions of a team about reports hold for a list? | [`follow_reports`] | lists and decisions of all machines |
//! | what does an undo take back, and what stands behind it? | [`restore_replaced`], [`withdraw_from_obsolete`], [`describe_undo`] | lines of the step and of the log, decisions of the team |
//! | which status does a finding get? | [`next_status`] | observations of a run in code that it covered |
//!
//! # Finding lifecycle
//!
//! At the end of each run the runner makes these steps, in this order, for the findings that the run may judge:
//!
//! 1. [`decide_authority`]: may the run judge the finding? It must have the branch and worktree of the finding and a
//!    snapshot at least as new. A run that ended early judges only what it covered.
//! 2. [`anchor::locate_anchor`]: where is the finding's code now? Unchanged code is no evidence: the finding keeps its
//!    status, at its new place.
//! 3. [`match_earlier_findings`]: does one of the run's reports mean this finding, in other words, at slightly other
//!    lines, in edited code or in a renamed file? Then the finding keeps its id and its history.
//! 4. [`confirms_fix`] and [`next_status`]: which status follows from the evidence? Silence counts only from the
//!    reviewer that reported the finding, and only about code that was changed and covered. The built-in reviewer
//!    reports only problems that a change adds, so its silence is not enough: it is asked if the problem still exists.
//! 5. [`is_late`], [`may_mute`]: is a report suppressed? Dismissed reports are, wherever their code is the same.

pub(crate) mod anchor;
mod auto_review;
pub mod carry;
mod decide;
mod decision_reason;
mod finding_match;
mod finding_snooze;
mod freshness;
mod known_run;
mod lifecycle;
mod missing_opinions;
mod moved_decisions;
mod needless_runs;
mod question_budget;
mod received_decisions;
mod run_authority;
pub mod supersede;
mod suppression;
mod team_merge;
mod undo_effect;

pub use anchor::AnchorLocation;
pub(crate) use auto_review::{
    AutoReviewInput, AutoReviewRules, AutoReviewVerdict, ChangeSize, DailySpend, MIN_SETTLE_MS, NoReviewReason,
    RetryAt, decide_auto_review,
};
pub use decide::{AssistantQuota, LaunchRequest, Requester, decide, find_replaced_runs};
pub(crate) use decide::{Decision, MAX_ATTEMPTS, ReviewAction};
pub use finding_match::{MatchCandidate, match_earlier_findings};
pub(crate) use finding_match::{is_edited_anchor, is_same_rule};
pub(crate) use finding_snooze::{SnoozeRefusal, SnoozeSubject, is_snoozed, may_snooze, snooze_wake_time};
pub use freshness::Liveness;
pub(crate) use freshness::{Activity, CurrentCode, Freshness, FreshnessSubject, derive_freshness};
pub use known_run::{CancelRequest, EquivalenceKey, KnownRun, Resumable, ReviewExtent, RunAdvance, find_answers};
pub(crate) use lifecycle::{
    ClaimOrder, DETERMINISTIC_REVIEWER, Evidence, FindingState, Refusal, ReviewObservation, SilentRun, confirms_fix,
    find_resolution, follows_merge, may_cancel, may_set, needs_reason, next_status,
};
pub(crate) use missing_opinions::{MissingOpinions, OpinionStop, PresentLimit, renew_opinions};
pub(crate) use moved_decisions::{LoggedDecision, gives_way, take_over_decisions};
pub(crate) use needless_runs::{LiveRun, NeedlessVerdict, ReviewedCommit, find_needless_runs};
pub(crate) use question_budget::{BudgetAmount, QuestionLimits, QuestionOverBudget, check_question_budget};
pub(crate) use received_decisions::{MergedReports, follow_reports};
pub(crate) use run_authority::{RunAuthority, SnapshotLayer, SnapshotView, decide_authority, is_uncommitted_elsewhere};
pub(crate) use suppression::{MuteOffer, PriorCoverage, ReviewerProfile, is_late, list_mute_offers, may_mute};
pub use team_merge::{MergedDecision, merge_decisions};
pub(crate) use undo_effect::{UndoLines, describe_undo, restore_replaced, restores_decision, withdraw_from_obsolete};
