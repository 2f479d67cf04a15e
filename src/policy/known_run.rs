//! Describes a run of the store as decisions see it: is it active, done, equivalent to a request, of its lineage?

use crate::domain::{RunReviewer, RunStatus, Scope};

use super::Liveness;
use super::decide::LaunchRequest;
use super::supersede::{FinishRule, RunProgress, SupersedeVerdict, judge_older_run};

/// Run of the store, with the fields that decisions need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRun<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// Status in the run's record.
    pub status: RunStatus,
    /// State of the worker. Read only while the record says that the run is working.
    pub liveness: Liveness,
    /// Text form of the [`Scope`].
    pub scope: &'a str,
    /// Hash, comparable with [`LaunchRequest::scope_hash`].
    pub scope_hash: &'a str,
    /// Hash, comparable with [`LaunchRequest::diff_fingerprint`].
    pub diff_fingerprint: &'a str,
    /// Hash, comparable with [`LaunchRequest::prompt_policy_version`].
    pub policy_version: &'a str,
    /// Name of the reviewer in the settings, or `builtin`.
    pub reviewer: &'a str,
    /// Model in the reviewer's settings; empty for `builtin`.
    pub model: &'a str,
    /// Reasoning effort in the reviewer's settings; empty for the provider's default.
    pub reasoning_effort: &'a str,
    /// Short name of the branch; empty when HEAD was detached.
    pub branch: &'a str,
    /// Root folder of the working tree.
    pub worktree: &'a str,
    /// Number of worker starts, including those of a resumed run.
    pub attempt: u32,
    /// Epoch of the newest request that the run answers.
    pub epoch: u64,
    /// State of a request to end the run.
    pub ending: CancelRequest,
    /// Extent of the review. Meaningful only for a completed run, and for a run that its budget ended.
    pub extent: ReviewExtent,
    /// Number of recorded findings.
    pub findings: u32,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Id of the run that replaces it. Empty if there is none.
    pub superseded_by: &'a str,
    /// Read only for equivalent runs that were lost, failed or are partial.
    pub resumable: Resumable,
    /// Progress of the run. Read only for active runs of the request's lineage; a run with unknown progress may not
    /// finish.
    pub underway: Option<RunProgress>,
}

/// Properties that make two reviews equivalent when all of them are equal: a reviewer receives the same code and the
/// same instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EquivalenceKey<'a> {
    scope_hash: &'a str,
    diff_fingerprint: &'a str,
    policy_version: &'a str,
    reviewer: &'a str,
    model: &'a str,
    reasoning_effort: &'a str,
}

/// State of a request to end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelRequest {
    /// No request: the run goes on to its own end.
    NotRequested,
    /// The worker will end at its next check, or has ended because of the request.
    Requested,
    /// Like [`CancelRequest::Requested`], by a person.
    StoppedByPerson,
}

/// Extent of a completed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewExtent {
    /// Everything in scope was reviewed.
    Whole,
    /// A part of the review failed. The recorded part can be taken over.
    Partial,
    /// The run ended early: its turns, its budget or its window were used up, or its answers broke off. A new run goes on
    /// with the rest.
    Unfinished {
        /// Number of reviewed hunks, including carried hunks.
        reviewed: u32,
        /// Number of hunks to review.
        hunks: u32,
        /// Whether the run itself reviewed anything.
        progress: RunAdvance,
    },
    /// The result of the run is damaged. A new run begins anew.
    ResultLost {
        /// Number of findings that cannot be read any more.
        findings: u32,
    },
    /// Complete except for files that the change itself puts out of sight. A new run would not see them either.
    OutOfSight {
        /// Number of hidden files.
        files: u32,
    },
    /// Complete except for unreadable files. The attempt it resumed from could not read exactly the same files.
    StaysUnread {
        /// Number of unreadable files.
        files: u32,
    },
}

impl ReviewExtent {
    /// Returns true if another run, on any machine, would review nothing that this one has not.
    pub fn leaves_nothing(self) -> bool {
        match self {
            Self::Whole | Self::OutOfSight { .. } => true,
            // Another machine may be able to read the files.
            Self::StaysUnread { .. } | Self::Partial | Self::Unfinished { .. } | Self::ResultLost { .. } => false,
        }
    }
}

/// Tells whether a run reviewed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAdvance {
    /// The run reviewed at least one hunk.
    Some,
    /// The run reviewed nothing; another run may fare no better.
    None,
}

/// State of a run that ended early: can it be resumed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumable {
    /// The journal is readable and the snapshot exists.
    Yes,
    /// The journal or the snapshot is missing, or nobody has checked.
    No,
}

impl<'a> KnownRun<'a> {
    /// Returns the properties by which runs are compared.
    pub fn equivalence_key(&self) -> EquivalenceKey<'a> {
        EquivalenceKey {
            scope_hash: self.scope_hash,
            diff_fingerprint: self.diff_fingerprint,
            policy_version: self.policy_version,
            reviewer: self.reviewer,
            model: self.model,
            reasoning_effort: self.reasoning_effort,
        }
    }

    /// Returns true if the run will still give a result. A run that was asked to end will not.
    pub(super) fn is_active(&self) -> bool {
        match self.status {
            _ if self.ending != CancelRequest::NotRequested => false,
            RunStatus::Pending => true,
            status if status.is_working() => self.liveness != Liveness::Dead,
            _ => false,
        }
    }

    /// Returns true if the run has reviewed everything in its scope.
    pub(super) fn is_done(&self) -> bool {
        self.status == RunStatus::Completed && self.extent == ReviewExtent::Whole
    }

    /// Returns true if the run was lost, failed or is partial, or its result is lost.
    pub(super) fn has_ended_early(&self) -> bool {
        matches!(self.status, RunStatus::Lost | RunStatus::Failed)
            || (self.status == RunStatus::Completed && self.extent != ReviewExtent::Whole)
            || (self.status.is_working() && self.liveness == Liveness::Dead)
    }

    /// Returns true if the run ended early and a new run can go on with the rest.
    pub(super) fn is_unfinished(&self) -> bool {
        matches!(self.status, RunStatus::Completed | RunStatus::Cancelled)
            && matches!(self.extent, ReviewExtent::Unfinished { .. })
    }

    pub(super) fn is_equivalent_to(&self, request: &LaunchRequest) -> bool {
        self.equivalence_key() == request.equivalence_key()
    }

    /// Returns true if the run is active in the request's lineage with other code. `scope` is the text form of the
    /// request's scope.
    pub fn is_older_sibling(&self, request: &LaunchRequest, scope: &str) -> bool {
        (self.status == RunStatus::Pending || self.status.is_working())
            && self.diff_fingerprint != request.diff_fingerprint
            && self.same_lineage(scope, &request.branch, &request.worktree, &request.reviewer)
            && self.is_asked_as(&request.prompt_policy_version)
            && is_moving_scope(scope)
    }

    /// Returns true if the run may finish although newer code was requested.
    pub fn may_finish(&self, rule: FinishRule) -> bool {
        let is_going_on = self.ending == CancelRequest::NotRequested;
        let verdict = self.underway.as_ref().filter(|_| is_going_on).map(|underway| judge_older_run(underway, rule));
        matches!(verdict, Some(SupersedeVerdict::Finish(_)))
    }

    /// Returns true if the reviewer is asked for the same kinds, by the same prompt set, as in a review with this
    /// prompt-policy version.
    pub(super) fn is_asked_as(&self, policy_version: &str) -> bool {
        RunReviewer::set_of_version(self.policy_version) == RunReviewer::set_of_version(policy_version)
            && RunReviewer::focus_of_version(self.policy_version) == RunReviewer::focus_of_version(policy_version)
    }

    pub(super) fn same_lineage(&self, scope: &str, branch: &str, worktree: &str, reviewer: &str) -> bool {
        self.scope == scope && self.branch == branch && self.worktree == worktree && self.reviewer == reviewer
    }
}

/// Returns the completed runs that may have reviewed all that `run` is to review, with the same instructions, newest first. Those
/// whose extent [leaves nothing](ReviewExtent::leaves_nothing) have.
pub fn find_answers<'a>(run: &KnownRun<'_>, known: impl IntoIterator<Item = KnownRun<'a>>) -> Vec<&'a str> {
    let answers = known.into_iter().filter(|other| {
        other.id != run.id && other.status == RunStatus::Completed && other.equivalence_key() == run.equivalence_key()
    });
    let mut ids: Vec<&str> = answers.map(|answer| answer.id).collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids
}

impl LaunchRequest {
    /// Returns the properties by which the request is compared with runs.
    pub(super) fn equivalence_key(&self) -> EquivalenceKey<'_> {
        EquivalenceKey {
            scope_hash: &self.scope_hash,
            diff_fingerprint: &self.diff_fingerprint,
            policy_version: &self.prompt_policy_version,
            reviewer: &self.reviewer,
            model: &self.model,
            reasoning_effort: &self.reasoning_effort,
        }
    }
}

/// Returns true if the code in a scope can change, so that a later run of the scope replaces an earlier one.
pub(super) fn is_moving_scope(scope: &str) -> bool {
    matches!(scope.parse(), Ok(Scope::Worktree | Scope::Staged | Scope::Branch(_)))
}
