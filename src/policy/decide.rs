//! Decides if a request becomes a run of its own, and which older runs it replaces.
//!
//! Two runs are *equivalent* if a reviewer would receive the same code and the same instructions: scope hash, diff
//! fingerprint, prompt-policy version, reviewer, model and effort are equal. Commit ids, times and branches are left
//! out on purpose: an amended commit with the same content is not reviewed twice.
//!
//! Two runs have the same *lineage* if they ask the same question about changing code: the scope (`worktree`, `staged`,
//! `branch:BASE`), branch, worktree and reviewer are equal. Only within a lineage does a newer run replace an older run
//! with another diff. `commit:`, `range:` and `all` name fixed content and are never replaced by other content. The
//! reviewer is part of the lineage so that an offline review never ends a paid one; so are the kinds that it is asked
//! for and its prompt set, so that the two sides of a comparison stand beside each other. [`super::supersede`] decides which
//! older runs may finish anyway. A run for which a panel waits is ended only by a newer run of that panel.
//!
//! The first matching line decides about a request (`--force` skips all lines but the first and the last):
//!
//! | there is | the request |
//! |---|---|
//! | nothing to review | is skipped |
//! | an active equivalent run, also one that goes on after its worker died | adopts it |
//! | an equivalent run that has reviewed everything | reuses it |
//! | an equivalent run that is partial, and another attempt would give the same or is not left | reuses it |
//! | an automatic request, and its last equivalent run was stopped by a person, has no attempts left or came to nothing | is skipped |
//! | an assistant's request, and assistants have started as many reviews as they may | is skipped |
//! | an equivalent run that was lost, failed or is partial, with attempts left | resumes it and counts the attempt |
//! | anything else, also an equivalent run that ended early or whose result is lost | is launched; unchanged hunks of earlier runs are carried over, see [`super::carry`] |
//!
//! A request that is adopted or reused has no record of its own. The record of the run that answers it holds its
//! reason, its HEAD and the saved tokens. A skipped duplicate points to the run that it duplicates. Only a duplicate
//! that no run can answer gets a `skipped` record.

use crate::domain::{RequestDecision, RunId, RunStatus, Scope, Source};

use super::decision_reason::{DecisionReason, describe_older_runs, describe_wait};
use super::known_run::{CancelRequest, KnownRun, Resumable, ReviewExtent, RunAdvance, is_moving_scope};
use super::supersede::{FinishRule, SupersedeVerdict, judge_older_run};

/// Maximum number of worker starts. A lost or failed run is resumed only below this number of attempts.
pub const MAX_ATTEMPTS: u32 = 3;

/// Request for a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Scope with resolved names, as in the snapshot.
    pub scope: Scope,
    /// Hash of all that decides what is reviewed, except the content.
    pub scope_hash: String,
    /// Hash of both sides' content of all changes.
    pub diff_fingerprint: String,
    /// Hash of the prompts, the thresholds and the built-in reviewer's rules.
    pub prompt_policy_version: String,
    /// Name of the reviewer in the settings, or `builtin`.
    pub reviewer: String,
    /// Model in the reviewer's settings; empty for `builtin`.
    pub model: String,
    /// Reasoning effort in the reviewer's settings; empty for the provider's default.
    pub reasoning_effort: String,
    /// Short name of the branch; empty when HEAD is detached.
    pub branch: String,
    /// Root folder of the working tree.
    pub worktree: String,
    /// Number of changed files to review.
    pub files: usize,
    /// Number of changed files that no reviewer would read.
    pub left_out: usize,
    /// True if a left-out file has a new secret, or could not be searched at once. A review reports it. Read only when
    /// `files` is 0.
    pub has_secret_files: bool,
    /// True to review again although an equivalent review exists.
    pub force: bool,
    /// Kind of requester; only an automatic request may be refused as a duplicate.
    pub asker: Requester,
    /// Number of reviews that assistants have started and may start; without limits for other requesters.
    pub quota: AssistantQuota,
    /// Setting about older active runs.
    pub rule: FinishRule,
    /// Estimated tokens to send to the reviewer. 0 for the built-in reviewer.
    pub prompt_estimate: u64,
}

/// Reviews that coding assistants have started, and limits of their number. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AssistantQuota {
    /// Number of reviews that the requesting session has started.
    pub in_session: u32,
    /// Maximum of `in_session`.
    pub per_session: Option<u32>,
    /// Number of reviews that all assistants have started in the repository within the last hour.
    pub in_hour: u32,
    /// Maximum of `in_hour`.
    pub per_hour: Option<u32>,
}

/// Kind of requester: does a person wait for the answer?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// A person at the cockpit or the command line, or a coding assistant.
    Person,
    /// A watcher or a hook. It repeats its requests and accepts a refusal.
    Automatic,
}

impl From<Source> for Requester {
    fn from(source: Source) -> Self {
        match source {
            Source::Watch | Source::Hook => Self::Automatic,
            Source::Cockpit | Source::Cli | Source::Assistant | Source::Import => Self::Person,
        }
    }
}

/// Decision about a request, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub action: ReviewAction,
    /// Reason as one sentence for a person.
    pub reason: String,
    /// Estimated tokens that this decision saves.
    pub saved_token_estimate: u64,
    /// Active runs of the lineage with other code, oldest first, and the verdict about each.
    pub older: Vec<(RunId, SupersedeVerdict)>,
    /// Run that a skipped request duplicates.
    pub duplicate_of: Option<RunId>,
}

impl Decision {
    /// Returns the active runs that this decision ends.
    pub fn supersedes(&self) -> Vec<RunId> {
        let ended = self.older.iter().filter(|(_, verdict)| matches!(verdict, SupersedeVerdict::Cancel(_)));
        ended.map(|(run, _)| run.clone()).collect()
    }

    /// Returns the older run that the new run waits for, because it may finish.
    pub fn waits_for(&self) -> Option<&RunId> {
        let starts_run = self.action.starts_run();
        let finishing =
            self.older.iter().filter(|(_, verdict)| starts_run && matches!(verdict, SupersedeVerdict::Finish(_)));
        finishing.map(|(run, _)| run).next_back()
    }
}

/// Action of a [`Decision`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewAction {
    /// Start a new run.
    Launch,
    /// Let a live equivalent run answer.
    Adopt { run: RunId },
    /// Use the result of a completed equivalent run.
    Reuse { run: RunId },
    /// Start a new run that takes over the records of an equivalent run, which was lost, failed or is partial, and goes
    /// on from there.
    Resume { from: RunId },
    /// Do nothing: there is nothing to review, or the request is a duplicate.
    Skip,
}

impl ReviewAction {
    /// Returns true if a new run begins, be it in place of one that ended early.
    pub fn starts_run(&self) -> bool {
        matches!(self, Self::Launch | Self::Resume { .. })
    }

    /// Returns the action without the run that it is about; its word stands in JSON output.
    pub fn decision(&self) -> RequestDecision {
        match self {
            Self::Launch => RequestDecision::Launch,
            Self::Adopt { .. } => RequestDecision::Adopt,
            Self::Reuse { .. } => RequestDecision::Reuse,
            Self::Resume { .. } => RequestDecision::Resume,
            Self::Skip => RequestDecision::Skip,
        }
    }

    /// Returns the word for the action in JSON output.
    pub fn word(&self) -> &'static str {
        self.decision().word()
    }
}

/// Decides about a request. `known` may have any order. Among several matching runs, the newest counts (ids sort by
/// time).
pub fn decide(request: &LaunchRequest, known: &[KnownRun<'_>]) -> Decision {
    let case = RequestCase { request, known };
    let answer = case
        .skip_empty()
        .or_else(|| case.launch_by_force())
        .or_else(|| case.adopt_active())
        .or_else(|| case.reuse_whole())
        .or_else(|| case.reuse_partial())
        .or_else(|| case.skip_repeated())
        .or_else(|| case.skip_over_quota())
        .or_else(|| case.resume_ended())
        .unwrap_or_else(|| case.launch());
    // A skipped request leaves older runs alone.
    let older = if answer.action == ReviewAction::Skip { Vec::new() } else { judge_older_runs(request, known) };
    let mut decision = Decision {
        action: answer.action,
        reason: answer.reason.to_string(),
        saved_token_estimate: answer.saved,
        older,
        duplicate_of: answer.duplicate_of,
    };
    decision.reason += &describe_older_runs(&decision.older);
    if let Some(run) = decision.waits_for() {
        decision.reason += &describe_wait(run);
    }
    decision
}

/// Request and the runs that may answer it. Each function that returns an [`Answer`] is a row of the module's table.
struct RequestCase<'a> {
    request: &'a LaunchRequest,
    known: &'a [KnownRun<'a>],
}

/// Answer to a request, without regard to older runs of its lineage.
struct Answer<'a> {
    action: ReviewAction,
    reason: DecisionReason<'a>,
    /// Estimated tokens that the answer saves.
    saved: u64,
    duplicate_of: Option<RunId>,
}

impl<'a> Answer<'a> {
    fn new(action: ReviewAction, reason: DecisionReason<'a>, saved: u64) -> Self {
        Self { action, reason, saved, duplicate_of: None }
    }
}

impl<'a> RequestCase<'a> {
    /// Returns the newest equivalent run that fits, with its parsed id.
    fn find_newest(&self, fits: impl Fn(&KnownRun<'_>) -> bool) -> Option<(&'a KnownRun<'a>, RunId)> {
        let fitting = self.known.iter().filter(|run| run.is_equivalent_to(self.request) && fits(run));
        let run = fitting.max_by_key(|run| run.id)?;
        Some((run, run.id.parse().ok()?))
    }

    /// Estimates the tokens that an equivalent run saves the request.
    fn estimate_saving(&self, run: &KnownRun<'_>) -> u64 {
        self.request.prompt_estimate.max(run.tokens)
    }

    /// Skips a request without a file to review or a secret to report, even a forced one.
    fn skip_empty(&self) -> Option<Answer<'a>> {
        let reason = DecisionReason::NothingToReview { left_out: self.request.left_out };
        let is_empty = self.request.files == 0 && !self.request.has_secret_files;
        is_empty.then(|| Answer::new(ReviewAction::Skip, reason, 0))
    }

    fn launch_by_force(&self) -> Option<Answer<'a>> {
        if !self.request.force {
            return None;
        }
        let same = self.find_newest(|run| run.is_done() || run.is_active());
        let reason = DecisionReason::Forced { same: same.map(|(run, _)| run.id) };
        Some(Answer::new(ReviewAction::Launch, reason, 0))
    }

    fn adopt_active(&self) -> Option<Answer<'a>> {
        let (run, id) = self.find_newest(|run| run.is_active())?;
        let waits = run.status == RunStatus::Pending;
        let reason = DecisionReason::UnderReview { run: run.id, waits, attempt: run.attempt };
        // A run that goes on because its worker died is no second request: only what it has spent is not spent again.
        let saved = if waits && run.attempt > 0 { run.tokens } else { self.estimate_saving(run) };
        Some(Answer::new(ReviewAction::Adopt { run: id }, reason, saved))
    }

    fn reuse_whole(&self) -> Option<Answer<'a>> {
        let (run, id) = self.find_newest(|run| run.is_done())?;
        let reason = DecisionReason::Reviewed { run: run.id };
        Some(Answer::new(ReviewAction::Reuse { run: id }, reason, self.estimate_saving(run)))
    }

    /// Reuses a partial run if another attempt would give the same or is not left.
    fn reuse_partial(&self) -> Option<Answer<'a>> {
        let (run, id) = self.find_newest(|run| run.has_ended_early())?;
        let reason = match run.extent {
            _ if run.status != RunStatus::Completed => return None,
            ReviewExtent::StaysUnread { files } => DecisionReason::StaysUnread { run: run.id, files },
            ReviewExtent::Partial if run.attempt >= MAX_ATTEMPTS => {
                DecisionReason::StaysPartial { run: run.id, attempt: run.attempt }
            }
            ReviewExtent::OutOfSight { files } => DecisionReason::ReviewedInSight { run: run.id, files },
            ReviewExtent::Partial
            | ReviewExtent::Unfinished { .. }
            | ReviewExtent::ResultLost { .. }
            | ReviewExtent::Whole => return None,
        };
        Some(Answer::new(ReviewAction::Reuse { run: id }, reason, self.estimate_saving(run)))
    }

    /// Skips an automatic request that repeats a run which a person stopped, which has no attempts left, or which
    /// reviewed nothing before it ended early.
    fn skip_repeated(&self) -> Option<Answer<'a>> {
        if self.request.asker != Requester::Automatic {
            return None;
        }
        let (run, id) = self.find_newest(|run| run.status != RunStatus::Skipped && run.status.is_terminal())?;
        let stopped = run.status == RunStatus::Cancelled && run.ending == CancelRequest::StoppedByPerson;
        let stuck = matches!(run.extent, ReviewExtent::Unfinished { progress: RunAdvance::None, .. });
        let used_up = stuck || run.has_ended_early() && run.attempt >= MAX_ATTEMPTS;
        if !(stopped || used_up) {
            return None;
        }
        let reason = DecisionReason::Duplicate { run: run.id, stopped };
        let answer = Answer::new(ReviewAction::Skip, reason, self.request.prompt_estimate);
        Some(Answer { duplicate_of: Some(id), ..answer })
    }

    /// Skips a request of an assistant that has started as many reviews as it may.
    fn skip_over_quota(&self) -> Option<Answer<'a>> {
        let AssistantQuota { in_session, per_session, in_hour, per_hour } = self.request.quota;
        let reason = match (per_session, per_hour) {
            (Some(limit), _) if in_session >= limit => DecisionReason::SessionQuota { limit },
            (_, Some(limit)) if in_hour >= limit => DecisionReason::HourQuota { limit },
            _ => return None,
        };
        Some(Answer::new(ReviewAction::Skip, reason, 0))
    }

    /// Resumes the newest run that ended early, if it can go on and has attempts left.
    fn resume_ended(&self) -> Option<Answer<'a>> {
        let (run, id) = self.find_newest(|run| run.has_ended_early())?;
        let is_result_lost = matches!(run.extent, ReviewExtent::ResultLost { .. });
        if run.attempt >= MAX_ATTEMPTS || run.resumable == Resumable::No || run.is_unfinished() || is_result_lost {
            return None;
        }
        Some(Answer::new(ReviewAction::Resume { from: id }, DecisionReason::TakesOver { run }, run.tokens))
    }

    fn launch(&self) -> Answer<'a> {
        let reason = match self.find_newest(|run| run.has_ended_early() || run.is_unfinished()) {
            Some((&KnownRun { id, extent: ReviewExtent::Unfinished { reviewed, hunks, .. }, .. }, _)) => {
                DecisionReason::GoesOn { run: id, reviewed, hunks }
            }
            Some((&KnownRun { id, extent: ReviewExtent::ResultLost { findings }, .. }, _)) => {
                DecisionReason::ResultLost { run: id, findings }
            }
            Some((run, _)) if run.resumable == Resumable::No => DecisionReason::CannotGoOn { run: run.id },
            Some((run, _)) => DecisionReason::OutOfAttempts { run: run.id },
            None => DecisionReason::NoEquivalentRun,
        };
        Answer::new(ReviewAction::Launch, reason, 0)
    }
}

/// Judges the runs of the request's lineage that have not ended and show other code. A run whose worker died is
/// included and is not resumed.
fn judge_older_runs(request: &LaunchRequest, known: &[KnownRun<'_>]) -> Vec<(RunId, SupersedeVerdict)> {
    let scope = request.scope.to_string();
    let mut older: Vec<(RunId, SupersedeVerdict)> = known
        .iter()
        .filter(|run| run.is_older_sibling(request, &scope))
        .filter_map(|run| {
            let verdict = match (&run.underway, run.ending) {
                (Some(underway), CancelRequest::NotRequested) => judge_older_run(underway, request.rule),
                (_, CancelRequest::Requested | CancelRequest::StoppedByPerson) => {
                    SupersedeVerdict::Cancel("its end was asked for".to_owned())
                }
                (None, CancelRequest::NotRequested) => {
                    SupersedeVerdict::Cancel("how far it is cannot be told".to_owned())
                }
            };
            Some((run.id.parse().ok()?, verdict))
        })
        .collect();
    older.sort_by(|(one, _), (other, _)| one.cmp(other));
    older
}

/// Returns the ended runs that `standing` replaces in a list. `standing` has just completed or was found to be current
/// again. In a scope that can change, these are all runs of its lineage; in a fixed scope, only equivalent runs. Runs
/// that were requested or found current after it are not replaced, even if it ends later. Runs that are replaced
/// already are not returned again, so that the replacements form chains that end at a run that is not replaced.
pub fn find_replaced_runs(standing: &KnownRun<'_>, known: &[KnownRun<'_>]) -> Vec<RunId> {
    let follows = is_moving_scope(standing.scope);
    let mut ids: Vec<RunId> = known
        .iter()
        .filter(|run| {
            run.id != standing.id
                && run.status.is_terminal()
                && run.superseded_by.is_empty()
                && run.epoch <= standing.epoch
                && run.same_lineage(standing.scope, standing.branch, standing.worktree, standing.reviewer)
                && run.is_asked_as(standing.policy_version)
                && (follows
                    || (run.scope_hash == standing.scope_hash && run.diff_fingerprint == standing.diff_fingerprint))
        })
        .filter_map(|run| run.id.parse().ok())
        .collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests;
