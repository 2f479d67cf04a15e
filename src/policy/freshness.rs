//! Derives the freshness of a run: how it relates to the code as it is now.
//!
//! Invariants:
//! - Nothing here knows when a run began or how long its review takes. Only the silence of its worker counts, and it
//!   never ends a run.
//! - [`derive_freshness`] is the only place that decides: lists, pages, JSON and the ledger show its result.

use serde::{Deserialize, Serialize};

use crate::domain::{RunStatus, Scope};

crate::domain::word_enum!(
    /// Relation of a run to the code as it is now. Always derived, never stored as truth.
    Freshness {
        /// The run reviews the code as it is.
        Current = "current",
        /// The worker is alive and in a long step. Nothing is wrong.
        LongRunning = "long_running",
        /// The worker is alive but has recorded nothing for very long. A person may want to check it.
        Inactive = "inactive",
        /// A newer run of the same scope replaces it.
        Superseded = "superseded",
        /// The scope now shows other code.
        Obsolete = "obsolete",
        /// The worker died.
        Lost = "lost",
        /// The repository has changed since, and the scope has not been compared again.
        Unknown = "unknown",
    }
);

impl Freshness {
    /// Returns what the freshness means, as a part of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Current => "it reviews the code as it is",
            Self::LongRunning => "its worker is in a long step",
            Self::Inactive => "its worker is alive, but has shown no sign of life for over 10 minutes",
            Self::Superseded => "a newer run replaces it",
            Self::Obsolete => "the code has changed since",
            Self::Lost => "its worker died",
            Self::Unknown => "the repository has moved since, and nobody has compared the code again",
        }
    }
}

/// Class of a worker's silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// The worker has recorded something a moment ago.
    Recent,
    /// The worker is in a long step and shows signs of life: bytes of an answer arrive, or a tool runs.
    Quiet,
    /// The worker shows no sign of life for longer than any step should take.
    Silent,
}

impl Activity {
    /// Seconds since the last record up to which a worker counts as active; ordinary steps are shorter.
    pub const MAX_RECENT_SECONDS: i64 = 60;
    /// Seconds without a sign of life after which a worker counts as silent; no step of a review is silent for longer.
    pub const MAX_QUIET_SECONDS: i64 = 600;

    /// Classifies a worker by the seconds since its last record and since its last heartbeat. `None` if it has no
    /// heartbeat. A heartbeat is a sign of life, but no record: while an answer streams, the worker is in a long step.
    pub fn classify(recorded_ago: i64, heartbeat_ago: Option<i64>) -> Self {
        match recorded_ago.min(heartbeat_ago.unwrap_or(i64::MAX)) {
            _ if recorded_ago <= Self::MAX_RECENT_SECONDS => Self::Recent,
            ..=Self::MAX_QUIET_SECONDS => Self::Quiet,
            _ => Self::Silent,
        }
    }
}

/// State of a run's worker, from the run's lock and record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// No worker has started.
    Waiting,
    /// A worker holds the lock.
    Working(Activity),
    /// The record says that a worker is active, but nobody holds the lock.
    Dead,
    /// The run has ended.
    Ended,
    /// The lock could not be checked.
    Unknown,
}

/// Run whose freshness is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshnessSubject<'a> {
    pub status: RunStatus,
    /// Text form of the [`Scope`].
    pub scope: &'a str,
    pub branch: &'a str,
    pub head_commit: &'a str,
    pub epoch: u64,
    pub diff_fingerprint: &'a str,
    /// Id of the run that replaces it. Empty if there is none.
    pub superseded_by: &'a str,
    /// True if the run was ended because its commit was rewritten.
    pub is_obsolete: bool,
}

/// Code in the run's worktree as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentCode<'a> {
    pub epoch: u64,
    pub branch: &'a str,
    pub head_commit: &'a str,
    /// Current fingerprint of the run's scope. `None` if it was not computed.
    pub fingerprint: Option<&'a str>,
}

/// Derives how a run relates to the code as it is now. Checked first are reasons that end its claim (superseded, lost,
/// obsolete), then the current content of its scope. The worker's activity counts only if the run is not obsolete.
/// `now` is `None` if the run's worktree is gone or cannot be read.
pub fn derive_freshness(target: &FreshnessSubject<'_>, liveness: Liveness, now: Option<&CurrentCode<'_>>) -> Freshness {
    if target.status == RunStatus::Superseded || !target.superseded_by.is_empty() {
        return Freshness::Superseded;
    }
    if target.status == RunStatus::Lost || liveness == Liveness::Dead {
        return Freshness::Lost;
    }
    if target.is_obsolete {
        return Freshness::Obsolete;
    }
    match compare_code(target, now) {
        Freshness::Obsolete => Freshness::Obsolete,
        code => match liveness {
            Liveness::Working(Activity::Recent) | Liveness::Waiting => Freshness::Current,
            Liveness::Working(Activity::Quiet) => Freshness::LongRunning,
            Liveness::Working(Activity::Silent) => Freshness::Inactive,
            Liveness::Unknown => Freshness::Unknown,
            Liveness::Ended | Liveness::Dead => code,
        },
    }
}

/// Compares the code that the run reviewed with the scope's current code: by fingerprint if there is one, else by
/// branch, HEAD and epoch.
fn compare_code(target: &FreshnessSubject<'_>, now: Option<&CurrentCode<'_>>) -> Freshness {
    match target.scope.parse() {
        // Commits and ranges never change.
        Ok(Scope::Commit(_) | Scope::Range { .. } | Scope::Since { .. }) => return Freshness::Current,
        Ok(Scope::Worktree | Scope::Staged | Scope::Branch(_) | Scope::All) => {}
        Err(_) => return Freshness::Unknown,
    }
    let Some(now) = now else { return Freshness::Unknown };
    match now.fingerprint {
        Some(fingerprint) if fingerprint == target.diff_fingerprint => Freshness::Current,
        Some(_) => Freshness::Obsolete,
        // On another branch the scope's name means other code. Back on the run's own branch, the run may be current
        // again.
        None if now.branch != target.branch => Freshness::Unknown,
        None if now.head_commit != target.head_commit => Freshness::Obsolete,
        None if now.epoch == target.epoch => Freshness::Current,
        None => Freshness::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TARGET: FreshnessSubject<'static> = FreshnessSubject {
        status: RunStatus::Completed,
        scope: "worktree",
        branch: "main",
        head_commit: "h1",
        epoch: 4,
        diff_fingerprint: "diff",
        superseded_by: "",
        is_obsolete: false,
    };
    const NOW: CurrentCode<'static> = CurrentCode { epoch: 4, branch: "main", head_commit: "h1", fingerprint: None };
    const WORKING: FreshnessSubject<'static> = FreshnessSubject { status: RunStatus::Reviewing, ..TARGET };
    const MOVED: CurrentCode<'static> = CurrentCode { epoch: 5, ..NOW };
    const COMMITTED: CurrentCode<'static> = CurrentCode { epoch: 5, head_commit: "h2", ..NOW };

    use Freshness::*;

    #[rstest]
    #[case::nothing_moved(TARGET, Liveness::Ended, NOW, Current)]
    #[case::epoch_moved(TARGET, Liveness::Ended, MOVED, Unknown)]
    #[case::epoch_moved_same_content(TARGET, Liveness::Ended, CurrentCode { fingerprint: Some("diff"), ..MOVED }, Current)]
    #[case::amended_same_content(TARGET, Liveness::Ended, CurrentCode { fingerprint: Some("diff"), ..COMMITTED }, Current)]
    #[case::edited(TARGET, Liveness::Ended, CurrentCode { fingerprint: Some("other"), ..MOVED }, Obsolete)]
    #[case::edited_and_looked_at_without_a_request(TARGET, Liveness::Ended, CurrentCode { fingerprint: Some("other"), ..NOW }, Obsolete)]
    #[case::staged_and_moved(FreshnessSubject { scope: "staged", ..TARGET }, Liveness::Ended, MOVED, Unknown)]
    #[case::staged_and_looked_at(FreshnessSubject { scope: "staged", ..TARGET }, Liveness::Ended, CurrentCode { fingerprint: Some("diff"), ..MOVED }, Current)]
    #[case::all_and_moved(FreshnessSubject { scope: "all", ..TARGET }, Liveness::Ended, MOVED, Unknown)]
    #[case::commit_stays_whatever_is_edited(FreshnessSubject { scope: "commit:h1", ..TARGET }, Liveness::Ended, MOVED, Current)]
    #[case::edited_and_back_on_another_branch(TARGET, Liveness::Ended, CurrentCode { branch: "topic", ..MOVED }, Unknown)]
    #[case::edited_before_it_began(FreshnessSubject { status: RunStatus::Pending, ..TARGET }, Liveness::Waiting, CurrentCode { fingerprint: Some("other"), ..MOVED }, Obsolete)]
    #[case::edited_while_it_is_reviewed(WORKING, Liveness::Working(Activity::Recent), CurrentCode { fingerprint: Some("other"), ..MOVED }, Obsolete)]
    #[case::moved_while_it_is_reviewed_and_the_same_again(WORKING, Liveness::Working(Activity::Recent), CurrentCode { fingerprint: Some("diff"), ..MOVED }, Current)]
    #[case::moved_under_a_dead_worker(WORKING, Liveness::Dead, MOVED, Lost)]
    #[case::committed(TARGET, Liveness::Ended, COMMITTED, Obsolete)]
    #[case::on_another_branch(TARGET, Liveness::Ended, CurrentCode { branch: "topic", ..COMMITTED }, Unknown)]
    #[case::commit_stays(FreshnessSubject { scope: "commit:h0", ..TARGET }, Liveness::Ended, COMMITTED, Current)]
    #[case::range_stays(FreshnessSubject { scope: "range:a...b", ..TARGET }, Liveness::Ended, COMMITTED, Current)]
    #[case::branch_moves(FreshnessSubject { scope: "branch:main", ..TARGET }, Liveness::Ended, COMMITTED, Obsolete)]
    #[case::scope_of_a_newer_version(FreshnessSubject { scope: "stack:3", ..TARGET }, Liveness::Ended, NOW, Unknown)]
    #[case::superseded(FreshnessSubject { superseded_by: "ar_x", ..TARGET }, Liveness::Ended, NOW, Superseded)]
    #[case::superseded_status(FreshnessSubject { status: RunStatus::Superseded, ..TARGET }, Liveness::Ended, NOW, Superseded)]
    #[case::superseded_while_working(FreshnessSubject { superseded_by: "ar_x", ..WORKING }, Liveness::Working(Activity::Recent), NOW, Superseded)]
    #[case::lost(FreshnessSubject { status: RunStatus::Lost, ..TARGET }, Liveness::Ended, NOW, Lost)]
    #[case::dead(WORKING, Liveness::Dead, NOW, Lost)]
    #[case::waiting(FreshnessSubject { status: RunStatus::Pending, ..TARGET }, Liveness::Waiting, NOW, Current)]
    #[case::busy(WORKING, Liveness::Working(Activity::Recent), NOW, Current)]
    #[case::long_step(WORKING, Liveness::Working(Activity::Quiet), NOW, LongRunning)]
    #[case::silent(WORKING, Liveness::Working(Activity::Silent), NOW, Inactive)]
    #[case::silent_is_not_lost(WORKING, Liveness::Working(Activity::Silent), MOVED, Inactive)]
    #[case::busy_on_old_code(WORKING, Liveness::Working(Activity::Recent), COMMITTED, Obsolete)]
    #[case::rewritten(FreshnessSubject { scope: "commit:h0", is_obsolete: true, ..TARGET }, Liveness::Ended, NOW, Obsolete)]
    #[case::rewritten_while_it_is_reviewed(FreshnessSubject { scope: "commit:h0", is_obsolete: true, ..WORKING }, Liveness::Working(Activity::Recent), NOW, Obsolete)]
    #[case::lock_not_readable(WORKING, Liveness::Unknown, NOW, Unknown)]
    fn table(
        #[case] target: FreshnessSubject<'_>,
        #[case] liveness: Liveness,
        #[case] now: CurrentCode<'_>,
        #[case] expected: Freshness,
    ) {
        assert_eq!(derive_freshness(&target, liveness, Some(&now)), expected);
    }

    #[rstest]
    #[case::moving_scope(TARGET, Unknown)]
    #[case::fixed_scope(FreshnessSubject { scope: "commit:h0", ..TARGET }, Current)]
    #[case::superseded(FreshnessSubject { superseded_by: "ar_x", ..TARGET }, Superseded)]
    fn without_a_worktree(#[case] target: FreshnessSubject<'_>, #[case] expected: Freshness) {
        assert_eq!(derive_freshness(&target, Liveness::Ended, None), expected);
    }

    /// Seconds since the last record and since the last heartbeat, and the class.
    #[rstest]
    #[case::just_recorded(0, None, Activity::Recent)]
    #[case::clock_went_back(-90, None, Activity::Recent)]
    #[case::a_minute(60, None, Activity::Recent)]
    #[case::long_step(61, None, Activity::Quiet)]
    #[case::ten_minutes_without_heartbeat(600, None, Activity::Quiet)]
    #[case::silent(601, None, Activity::Silent)]
    #[case::streaming_for_eleven_minutes(660, Some(1), Activity::Quiet)]
    #[case::streaming_for_a_day(86_400, Some(600), Activity::Quiet)]
    #[case::stream_has_stopped(1_260, Some(601), Activity::Silent)]
    #[case::heartbeat_of_the_future(660, Some(-5), Activity::Quiet)]
    fn silence(#[case] recorded_ago: i64, #[case] heartbeat_ago: Option<i64>, #[case] expected: Activity) {
        assert_eq!(Activity::classify(recorded_ago, heartbeat_ago), expected);
    }
}
