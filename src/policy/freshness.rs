//! Derives the freshness of a run: how it relates to the code as it is now.
//!
//! Invariant: nothing here knows when a run began or how long it takes. The time since the worker's last activity
//! arrives as a class. The caller defines the limits of the classes, and they never end a run.

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

/// Class of the time since a worker last recorded something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// At most about a minute.
    Recent,
    /// Longer than an ordinary step of this reviewer.
    Quiet,
    /// Longer than any step should take.
    Silent,
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

/// Derives how a run relates to the code as it is now. Checked first are reasons that end its claim (superseded, lost), then the current content of its scope. The worker's activity counts only if the run is not obsolete.
pub fn derive_freshness(target: &FreshnessSubject<'_>, liveness: Liveness, now: &CurrentCode<'_>) -> Freshness {
    if target.status == RunStatus::Superseded || !target.superseded_by.is_empty() {
        return Freshness::Superseded;
    }
    if target.status == RunStatus::Lost || liveness == Liveness::Dead {
        return Freshness::Lost;
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
fn compare_code(target: &FreshnessSubject<'_>, now: &CurrentCode<'_>) -> Freshness {
    match target.scope.parse() {
        // Commits and ranges never change.
        Ok(Scope::Commit(_) | Scope::Range { .. } | Scope::Since { .. }) => return Freshness::Current,
        Ok(Scope::Worktree | Scope::Staged | Scope::Branch(_) | Scope::All) => {}
        Err(_) => return Freshness::Unknown,
    }
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
    #[case::lock_not_readable(WORKING, Liveness::Unknown, NOW, Unknown)]
    fn table(
        #[case] target: FreshnessSubject<'_>,
        #[case] liveness: Liveness,
        #[case] now: CurrentCode<'_>,
        #[case] expected: Freshness,
    ) {
        assert_eq!(derive_freshness(&target, liveness, &now), expected);
    }
}
