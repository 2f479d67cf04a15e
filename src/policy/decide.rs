//! Decides if a request becomes a run of its own, and which older runs it replaces.
//!
//! Two runs are *equivalent* if a reviewer would receive the same code and the same instructions: scope hash, diff
//! fingerprint, prompt-policy version, reviewer, model and effort are equal. Commit ids, times and branches are left
//! out on purpose: an amended commit with the same content is not reviewed twice.
//!
//! Two runs have the same *lineage* if they ask the same question about changing code: the scope (`worktree`, `staged`,
//! `branch:BASE`), branch, worktree and reviewer are equal. Only within a lineage does a newer run replace an older run
//! with another diff. `commit:`, `range:` and `all` name fixed content and are never replaced by other content. The
//! reviewer is part of the lineage so that an offline review never ends a paid one. [`super::supersede`] decides which
//! older runs may finish anyway.
//!
//! The first matching line decides about a request (`--force` skips all lines but the first and the last):
//!
//! | there is | the request |
//! |---|---|
//! | nothing to review | is skipped |
//! | an active equivalent run | adopts it |
//! | an equivalent run that has reviewed everything | reuses it |
//! | an automatic request, and its last equivalent run was stopped by a person or has no attempts left | is skipped |
//! | an equivalent run that was lost, failed or is partial, with attempts left | resumes it and counts the attempt |
//! | anything else | is launched; unchanged hunks of earlier runs are carried over, see [`super::carry`] |
//!
//! A request that is adopted or reused has no record of its own. The record of the run that answers it holds its
//! reason, its HEAD and the saved tokens. A skipped duplicate points to the run that it duplicates. Only a duplicate
//! that no run can answer gets a `skipped` record.

use crate::domain::{RunId, RunStatus, Scope, Source};

use super::Liveness;
use super::supersede::{FinishRule, RunProgress, SupersedeVerdict, judge_older_run};

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
    /// True to review again although an equivalent review exists.
    pub force: bool,
    /// Kind of requester; only an automatic request may be refused as a duplicate.
    pub asker: Requester,
    /// Setting about older active runs.
    pub rule: FinishRule,
    /// Estimated tokens to send to the reviewer. 0 for the built-in reviewer.
    pub prompt_estimate: u64,
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
            Source::Cockpit | Source::Cli | Source::Assistant => Self::Person,
        }
    }
}

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
    /// Extent of the review. Meaningful only for a completed run.
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
    /// Complete except for unreadable files. The attempt it resumed from could not read exactly the same files.
    StaysUnread {
        /// Number of unreadable files.
        files: u32,
    },
}

/// State of a run that ended early: can it be resumed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumable {
    /// The journal is readable and the snapshot exists.
    Yes,
    /// The journal or the snapshot is missing, or nobody has checked.
    No,
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
        let launches = matches!(self.action, ReviewAction::Launch | ReviewAction::Resume { .. });
        let finishing =
            self.older.iter().filter(|(_, verdict)| launches && matches!(verdict, SupersedeVerdict::Finish(_)));
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

impl KnownRun<'_> {
    /// Returns true if the run will still give a result. A run that was asked to end will not.
    fn is_active(&self) -> bool {
        match self.status {
            _ if self.ending != CancelRequest::NotRequested => false,
            RunStatus::Pending => true,
            status if status.is_working() => self.liveness != Liveness::Dead,
            _ => false,
        }
    }

    /// Returns true if the run has reviewed everything in its scope.
    fn is_done(&self) -> bool {
        self.status == RunStatus::Completed && self.extent == ReviewExtent::Whole
    }

    /// Returns true if the run was lost, failed or is partial.
    fn has_ended_early(&self) -> bool {
        matches!(self.status, RunStatus::Lost | RunStatus::Failed)
            || (self.status == RunStatus::Completed && self.extent != ReviewExtent::Whole)
            || (self.status.is_working() && self.liveness == Liveness::Dead)
    }

    /// Returns the reason to reuse a partial run, because another attempt would give the same. `None` if another
    /// attempt is worth it.
    fn reason_to_reuse_partial(&self) -> Option<String> {
        match self.extent {
            _ if self.status != RunStatus::Completed => None,
            ReviewExtent::StaysUnread { files } => {
                let stay = if files == 1 { "stays" } else { "stay" };
                Some(format!(
                    "{} has reviewed all but {} that {stay} unreadable; `--force` tries again",
                    self.id,
                    crate::domain::text::format_count(files as usize, "file"),
                ))
            }
            ReviewExtent::Partial if self.attempt >= MAX_ATTEMPTS => Some(format!(
                "{} could review only a part, in attempt {}; `--force` begins anew",
                self.id, self.attempt
            )),
            ReviewExtent::Partial | ReviewExtent::Whole => None,
        }
    }

    fn is_equivalent_to(&self, request: &LaunchRequest) -> bool {
        self.scope_hash == request.scope_hash
            && self.diff_fingerprint == request.diff_fingerprint
            && self.policy_version == request.prompt_policy_version
            && self.reviewer == request.reviewer
            && self.model == request.model
            && self.reasoning_effort == request.reasoning_effort
    }

    /// Returns true if the run is active in the request's lineage with other code. `scope` is the text form of the
    /// request's scope.
    pub fn is_older_sibling(&self, request: &LaunchRequest, scope: &str) -> bool {
        (self.status == RunStatus::Pending || self.status.is_working())
            && self.diff_fingerprint != request.diff_fingerprint
            && self.same_lineage(scope, &request.branch, &request.worktree, &request.reviewer)
            && is_moving_scope(scope)
    }

    fn same_lineage(&self, scope: &str, branch: &str, worktree: &str, reviewer: &str) -> bool {
        self.scope == scope && self.branch == branch && self.worktree == worktree && self.reviewer == reviewer
    }
}

/// Returns true if the code in a scope can change, so that a later run of the scope replaces an earlier one.
fn is_moving_scope(scope: &str) -> bool {
    matches!(scope.parse(), Ok(Scope::Worktree | Scope::Staged | Scope::Branch(_)))
}

/// Decides about a request. `known` may have any order. Among several matching runs, the newest counts (ids sort by
/// time).
pub fn decide(request: &LaunchRequest, known: &[KnownRun<'_>]) -> Decision {
    let newest = |fits: &dyn Fn(&KnownRun<'_>) -> bool| {
        known
            .iter()
            .filter(|run| run.is_equivalent_to(request) && fits(run))
            .max_by_key(|run| run.id)
            .and_then(|run| Some((run, run.id.parse::<RunId>().ok()?)))
    };
    if request.files == 0 {
        let reason = match request.left_out {
            0 => "nothing to review: no changed file is in scope".to_owned(),
            1 => "nothing to review: the one changed file is left out".to_owned(),
            n => format!("nothing to review: all {n} changed files are left out"),
        };
        return Decision::new(ReviewAction::Skip, reason, 0);
    }
    let older = judge_older_runs(request, known);
    let about_older = describe_older_runs(&older);
    let decided = |action, reason: String, saved| {
        let mut decision = Decision::new(action, reason, saved);
        decision.older.clone_from(&older);
        let waits =
            decision.waits_for().map(|run| format!("; it begins when {run} has ended, to carry over what it yields"));
        decision.reason = decision.reason + &about_older + &waits.unwrap_or_default();
        decision
    };
    if request.force {
        let reason = match newest(&|run| run.is_done() || run.is_active()) {
            Some((run, _)) => format!("reviewed again because that was asked for, although {} shows the same", run.id),
            None => "asked for without regard to earlier reviews; there is no equivalent one".to_owned(),
        };
        return decided(ReviewAction::Launch, reason, 0);
    }
    if let Some((run, id)) = newest(&|run| run.is_active()) {
        let doing = if run.status == RunStatus::Pending { "waits to review" } else { "is reviewing" };
        let saved = request.prompt_estimate.max(run.tokens);
        return decided(ReviewAction::Adopt { run: id }, format!("{} {doing} exactly this", run.id), saved);
    }
    if let Some((run, id)) = newest(&|run| run.is_done()) {
        let reason = format!("{} has reviewed exactly this; no line of it has changed since", run.id);
        let saved = request.prompt_estimate.max(run.tokens);
        return decided(ReviewAction::Reuse { run: id }, reason, saved);
    }
    let early = newest(&|run| run.has_ended_early());
    if let Some((run, id)) = &early
        && let Some(reason) = run.reason_to_reuse_partial()
    {
        let saved = request.prompt_estimate.max(run.tokens);
        return decided(ReviewAction::Reuse { run: id.clone() }, reason, saved);
    }
    let last = newest(&|run| run.status != RunStatus::Skipped && run.status.is_terminal());
    if request.asker == Requester::Automatic
        && let Some((run, id)) = last
    {
        let reason = match run.status {
            RunStatus::Cancelled if run.ending == CancelRequest::StoppedByPerson => Some("was stopped by a person"),
            _ if run.has_ended_early() && run.attempt >= MAX_ATTEMPTS => Some("ended early in its last attempt"),
            _ => None,
        };
        if let Some(ended) = reason {
            let reason = format!(
                "a duplicate: {} was about exactly this and {ended}; ask for it yourself to have it reviewed",
                run.id
            );
            return Decision {
                duplicate_of: Some(id),
                ..Decision::new(ReviewAction::Skip, reason, request.prompt_estimate)
            };
        }
    }
    if let Some((run, id)) = &early
        && run.attempt < MAX_ATTEMPTS
        && run.resumable == Resumable::Yes
    {
        let ended = match run.status {
            RunStatus::Failed => "failed",
            RunStatus::Completed => "could review only a part",
            _ => "was lost",
        };
        let reason = format!(
            "{} {ended} in attempt {} of {MAX_ATTEMPTS}; this run takes over what it recorded ({}) and goes on",
            run.id,
            run.attempt,
            crate::domain::text::format_count(run.findings as usize, "finding"),
        );
        return decided(ReviewAction::Resume { from: id.clone() }, reason, run.tokens);
    }
    let reason = match early {
        Some((run, _)) if run.resumable == Resumable::No => {
            format!("{} ended early and cannot go on: its journal or its snapshot is gone", run.id)
        }
        Some((run, _)) => format!("{} ended early in its last attempt; the review begins anew", run.id),
        None => "no review of exactly this exists".to_owned(),
    };
    decided(ReviewAction::Launch, reason, 0)
}

impl Decision {
    fn new(action: ReviewAction, reason: String, saved_token_estimate: u64) -> Self {
        Self { action, reason, saved_token_estimate, older: Vec::new(), duplicate_of: None }
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

/// Describes older runs: with the reason if there is one run, else with the number of runs.
fn describe_older_runs(older: &[(RunId, SupersedeVerdict)]) -> String {
    let (mut ended, mut finishing) = (Vec::new(), Vec::new());
    for (run, verdict) in older {
        match verdict {
            SupersedeVerdict::Cancel(why) => ended.push((run, why)),
            SupersedeVerdict::Finish(why) => finishing.push((run, why)),
        }
    }
    let ended = match ended.as_slice() {
        [] => String::new(),
        [(_, why)] => format!("; it replaces a run whose code has changed since ({why})"),
        several => format!("; it replaces {} runs whose code has changed since", several.len()),
    };
    let finishing = finishing.iter().map(|(run, why)| format!("; {run} may finish: {why}"));
    ended + &finishing.collect::<String>()
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
                && (follows
                    || (run.scope_hash == standing.scope_hash && run.diff_fingerprint == standing.diff_fingerprint))
        })
        .filter_map(|run| run.id.parse().ok())
        .collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const A: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";
    const B: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0B";

    fn request() -> LaunchRequest {
        LaunchRequest {
            scope: Scope::Worktree,
            scope_hash: "scope".into(),
            diff_fingerprint: "diff".into(),
            prompt_policy_version: "p1".into(),
            reviewer: "builtin".into(),
            model: String::new(),
            reasoning_effort: String::new(),
            branch: "main".into(),
            worktree: "/w".into(),
            files: 3,
            left_out: 0,
            force: false,
            asker: Requester::Person,
            rule: FinishRule { finish_from: 80 },
            prompt_estimate: 900,
        }
    }

    fn run(id: &'static str, status: RunStatus) -> KnownRun<'static> {
        KnownRun {
            id,
            status,
            liveness: Liveness::Working(super::super::Activity::Recent),
            scope: "worktree",
            scope_hash: "scope",
            diff_fingerprint: "diff",
            policy_version: "p1",
            reviewer: "builtin",
            model: "",
            reasoning_effort: "",
            branch: "main",
            worktree: "/w",
            attempt: 1,
            epoch: 1,
            ending: CancelRequest::NotRequested,
            extent: ReviewExtent::Whole,
            findings: 2,
            tokens: 41_000,
            superseded_by: "",
            resumable: Resumable::Yes,
            underway: None,
        }
    }

    fn id(text: &str) -> RunId {
        text.parse().expect("an id")
    }

    /// Returns the action for a request, and the runs that it ends.
    type ActionAndEndedRuns = (ReviewAction, Vec<RunId>);

    fn ids(texts: &[&str]) -> Vec<RunId> {
        texts.iter().map(|text| id(text)).collect()
    }

    fn launch(supersedes: &[&str]) -> ActionAndEndedRuns {
        (ReviewAction::Launch, ids(supersedes))
    }

    fn adopt(run: &str, supersedes: &[&str]) -> ActionAndEndedRuns {
        (ReviewAction::Adopt { run: id(run) }, ids(supersedes))
    }

    fn reuse(run: &str, supersedes: &[&str]) -> ActionAndEndedRuns {
        (ReviewAction::Reuse { run: id(run) }, ids(supersedes))
    }

    fn resume(from: &str) -> ActionAndEndedRuns {
        (ReviewAction::Resume { from: id(from) }, Vec::new())
    }

    fn summarize_decision(decision: &Decision) -> ActionAndEndedRuns {
        (decision.action.clone(), decision.supersedes())
    }

    use RunStatus::*;

    #[rstest]
    #[case::first_review(vec![], launch(&[]), 0, "no review of exactly this")]
    #[case::live_twin(vec![run(A, Reviewing)], adopt(A, &[]), 41_000, "is reviewing exactly this")]
    #[case::waiting_twin(vec![run(A, Pending)], adopt(A, &[]), 41_000, "waits to review")]
    #[case::done_before(vec![run(A, Completed)], reuse(A, &[]), 41_000, "has reviewed exactly this")]
    #[case::newest_of_two(vec![run(B, Completed), run(A, Completed)], reuse(B, &[]), 41_000, B)]
    #[case::live_before_done(vec![run(A, Completed), run(B, Pending)], adopt(B, &[]), 41_000, B)]
    #[case::amended_without_change(
        vec![KnownRun { branch: "topic", scope: "commit:abc", ..run(A, Completed) }], reuse(A, &[]), 41_000, A
    )]
    #[case::lost(vec![run(A, Lost)], resume(A), 41_000, "was lost in attempt 1 of 3")]
    #[case::failed(vec![run(A, Failed)], resume(A), 41_000, "failed in attempt 1")]
    #[case::dead_and_not_yet_settled(
        vec![KnownRun { liveness: Liveness::Dead, ..run(A, Reviewing) }], resume(A), 41_000, "was lost"
    )]
    #[case::lost_for_good(vec![KnownRun { attempt: 3, ..run(A, Lost) }], launch(&[]), 0, "begins anew")]
    #[case::lost_without_a_snapshot(
        vec![KnownRun { resumable: Resumable::No, ..run(A, Lost) }], launch(&[]), 0, "is gone"
    )]
    #[case::one_that_is_being_cancelled_is_not_adopted(
        vec![KnownRun { ending: CancelRequest::Requested, ..run(A, Reviewing) }], launch(&[]), 0, "no review of exactly this"
    )]
    #[case::one_that_is_cancelled_before_it_began(
        vec![KnownRun { ending: CancelRequest::Requested, ..run(A, Pending) }], launch(&[]), 0, "no review of exactly this"
    )]
    #[case::edit_undone_while_it_is_reviewed(
        vec![run(A, Completed), KnownRun { diff_fingerprint: "d1", ..run(B, Reviewing) }],
        reuse(A, &[B]), 41_000, "replaces a run"
    )]
    #[case::edit_undone_while_the_first_is_reviewed(
        vec![run(A, Reviewing), KnownRun { diff_fingerprint: "d1", ..run(B, Pending) }],
        adopt(A, &[B]), 41_000, "replaces a run"
    )]
    #[case::a_part_failed(
        vec![KnownRun { extent: ReviewExtent::Partial, ..run(A, Completed) }], resume(A), 41_000, "could review only a part"
    )]
    #[case::a_part_failed_where_an_earlier_one_did_all(
        vec![run(A, Completed), KnownRun { extent: ReviewExtent::Partial, ..run(B, Completed) }],
        reuse(A, &[]), 41_000, A
    )]
    #[case::a_part_failed_for_good(
        vec![KnownRun { extent: ReviewExtent::Partial, attempt: 3, ..run(A, Completed) }],
        reuse(A, &[]), 41_000, "only a part, in attempt 3; `--force`"
    )]
    #[case::a_file_stays_unreadable(
        vec![
            KnownRun { extent: ReviewExtent::Partial, ..run(A, Completed) },
            KnownRun { extent: ReviewExtent::StaysUnread { files: 1 }, attempt: 2, ..run(B, Completed) },
        ],
        reuse(B, &[]), 41_000, "all but 1 file that stays unreadable; `--force` tries again"
    )]
    #[case::an_earlier_one_could_read_what_stays_unreadable(
        vec![run(A, Completed), KnownRun { extent: ReviewExtent::StaysUnread { files: 2 }, ..run(B, Completed) }],
        reuse(A, &[]), 41_000, "has reviewed exactly this"
    )]
    #[case::tried_again_by_force_and_less_stays_unreadable(
        vec![
            KnownRun { extent: ReviewExtent::StaysUnread { files: 2 }, attempt: 2, ..run(A, Completed) },
            KnownRun { extent: ReviewExtent::Partial, ..run(B, Completed) },
        ],
        resume(B), 41_000, "attempt 1 of 3"
    )]
    #[case::cancelled_is_no_answer(vec![run(A, Cancelled)], launch(&[]), 0, "no review of exactly this")]
    #[case::other_policy(vec![KnownRun { policy_version: "p0", ..run(A, Completed) }], launch(&[]), 0, "no review")]
    #[case::other_reviewer(vec![KnownRun { reviewer: "x", ..run(A, Completed) }], launch(&[]), 0, "no review")]
    #[case::other_model(vec![KnownRun { model: "m", ..run(A, Completed) }], launch(&[]), 0, "no review")]
    #[case::other_effort(vec![KnownRun { reasoning_effort: "high", ..run(A, Reviewing) }], launch(&[]), 0, "no review")]
    #[case::other_scope_hash(vec![KnownRun { scope_hash: "s2", ..run(A, Completed) }], launch(&[]), 0, "no review")]
    #[case::older_diff_still_working(
        vec![KnownRun { diff_fingerprint: "d0", ..run(A, Reviewing) }], launch(&[A]), 0, "replaces a run"
    )]
    #[case::older_diffs_waiting(
        vec![
            KnownRun { diff_fingerprint: "d1", ..run(B, Pending) },
            KnownRun { diff_fingerprint: "d0", ..run(A, Pending) },
        ],
        launch(&[A, B]), 0, "replaces 2 runs"
    )]
    #[case::older_diff_done(vec![KnownRun { diff_fingerprint: "d0", ..run(A, Completed) }], launch(&[]), 0, "no review")]
    #[case::older_diff_dead(
        vec![KnownRun { diff_fingerprint: "d0", liveness: Liveness::Dead, ..run(A, Reviewing) }],
        launch(&[A]), 0, "replaces a run"
    )]
    #[case::other_branch(
        vec![KnownRun { diff_fingerprint: "d0", branch: "topic", ..run(A, Reviewing) }], launch(&[]), 0, "no review"
    )]
    #[case::other_worktree(
        vec![KnownRun { diff_fingerprint: "d0", worktree: "/v", ..run(A, Reviewing) }], launch(&[]), 0, "no review"
    )]
    #[case::other_scope_kind(
        vec![KnownRun { diff_fingerprint: "d0", scope: "staged", ..run(A, Reviewing) }], launch(&[]), 0, "no review"
    )]
    #[case::a_paid_review_goes_on(
        vec![KnownRun { diff_fingerprint: "d0", reviewer: "llm", ..run(A, Reviewing) }], launch(&[]), 0, "no review"
    )]
    fn decisions(
        #[case] known: Vec<KnownRun<'static>>,
        #[case] expected: ActionAndEndedRuns,
        #[case] saved: u64,
        #[case] reason: &str,
    ) {
        let decision = decide(&request(), &known);
        assert_eq!(summarize_decision(&decision), expected, "{}", decision.reason);
        assert_eq!(decision.saved_token_estimate, saved);
        assert!(decision.reason.contains(reason), "{:?} does not say {reason:?}", decision.reason);
    }

    #[rstest]
    #[case("commit:abc")]
    #[case("range:a..b")]
    #[case("all")]
    fn what_does_not_move_is_not_superseded(#[case] scope: &'static str) {
        let request = LaunchRequest { scope: scope.parse().expect("a scope"), ..request() };
        let known = [KnownRun { diff_fingerprint: "d0", scope, ..run(A, Reviewing) }];
        assert_eq!(summarize_decision(&decide(&request, &known)), launch(&[]));
    }

    #[test]
    fn branches_are_told_apart_by_their_base() {
        let request = LaunchRequest { scope: Scope::Branch(Some("main".into())), ..request() };
        let known = [
            KnownRun { diff_fingerprint: "d0", scope: "branch:main", ..run(A, Reviewing) },
            KnownRun { diff_fingerprint: "d0", scope: "branch:dev", ..run(B, Reviewing) },
        ];
        assert_eq!(summarize_decision(&decide(&request, &known)), launch(&[A]));
    }

    #[test]
    fn nothing_in_scope_is_skipped_even_by_force() {
        for (left_out, says) in [(0, "no changed file"), (1, "the one changed file"), (4, "all 4 changed files")] {
            let request = LaunchRequest { files: 0, left_out, force: true, ..request() };
            let decision = decide(&request, &[run(A, Completed)]);
            assert_eq!(decision.action, ReviewAction::Skip);
            assert!(decision.reason.contains(says), "{}", decision.reason);
        }
    }

    #[test]
    fn force_launches_and_says_so() {
        let request = LaunchRequest { force: true, ..request() };
        let known = [run(A, Completed), KnownRun { diff_fingerprint: "d0", ..run(B, Pending) }];
        let decision = decide(&request, &known);
        assert_eq!(summarize_decision(&decision), launch(&[B]));
        assert!(decision.reason.starts_with("reviewed again because that was asked for"), "{}", decision.reason);
        assert!(decision.reason.contains(A) && decision.reason.contains("replaces a run"), "{}", decision.reason);
        assert!(decide(&request, &[]).reason.contains("no equivalent one"));
    }

    #[test]
    fn a_standing_run_folds_what_it_replaces() {
        let standing = run(B, Completed);
        let older = KnownRun { diff_fingerprint: "d0", ..run(A, Completed) };
        for (known, folded) in [
            (older, true),
            (KnownRun { status: Lost, ..older }, true),
            (run(A, Cancelled), true),
            (KnownRun { status: Reviewing, ..older }, false),
            (KnownRun { superseded_by: "ar_x", ..older }, false),
            (KnownRun { epoch: 2, ..older }, false),
            (KnownRun { scope: "staged", ..older }, false),
            (KnownRun { branch: "topic", ..older }, false),
        ] {
            assert_eq!(!find_replaced_runs(&standing, &[known, standing]).is_empty(), folded, "{known:?}");
        }
        let fixed = KnownRun { scope: "commit:abc", ..standing };
        let twin = KnownRun { scope: "commit:abc", ..run(A, Lost) };
        assert_eq!(find_replaced_runs(&fixed, &[twin]), [id(A)]);
        assert_eq!(find_replaced_runs(&fixed, &[KnownRun { diff_fingerprint: "d0", ..twin }]), []);
    }

    /// Returns a run with other code that has delivered this many of its ten hunks.
    fn underway(id: &'static str, delivered: u32) -> KnownRun<'static> {
        let pace = super::super::supersede::WorkerState::Working;
        let underway = RunProgress {
            hunks: 10,
            delivered,
            unchanged: delivered,
            tokens: 500,
            tokens_left: 100,
            ..RunProgress::new_idle(pace)
        };
        KnownRun { diff_fingerprint: "d0", underway: Some(underway), ..run(id, RunStatus::Reviewing) }
    }

    #[rstest]
    #[case::nearly_done(vec![underway(A, 9)], &[], Some(A), "may finish: 9 of its 10 hunks are delivered (90 %")]
    #[case::just_begun(vec![underway(A, 2)], &[A], None, "it replaces a run whose code has changed since (of the 8 hunks")]
    #[case::one_of_each(vec![underway(A, 9), KnownRun { status: RunStatus::Pending, ..underway(B, 0) }], &[B], Some(A), "begins when")]
    #[case::its_end_was_asked_for(vec![KnownRun { ending: CancelRequest::StoppedByPerson, ..underway(A, 9) }], &[A], None, "its end was asked for")]
    #[case::another_branch(vec![KnownRun { branch: "topic", ..underway(A, 9) }], &[], None, "no review of exactly this")]
    fn older_runs_end_or_may_finish(
        #[case] known: Vec<KnownRun<'static>>,
        #[case] ended: &[&str],
        #[case] waits_for: Option<&str>,
        #[case] reason: &str,
    ) {
        let mut known = known;
        if let Some(pending) = known.iter_mut().find(|run| run.status == RunStatus::Pending) {
            pending.underway = Some(RunProgress::new_idle(super::super::supersede::WorkerState::Waiting));
        }
        let decision = decide(&request(), &known);
        assert_eq!(summarize_decision(&decision), launch(ended), "{}", decision.reason);
        assert_eq!(decision.waits_for(), waits_for.map(id).as_ref());
        assert!(decision.reason.contains(reason), "{:?} does not say {reason:?}", decision.reason);
        // A request that an earlier run answers waits for nothing.
        known.push(run("ar_01JD3Z8Q6M7S5V2K4T9XWB1C00", RunStatus::Completed));
        let reused = decide(&request(), &known);
        assert!(matches!(reused.action, ReviewAction::Reuse { .. }) && reused.waits_for().is_none());
        assert_eq!(reused.supersedes(), decision.supersedes());
    }

    #[rstest]
    #[case::stopped_by_a_person(vec![KnownRun { ending: CancelRequest::StoppedByPerson, ..run(A, RunStatus::Cancelled) }], Some(A))]
    #[case::and_asked_for_before(
        vec![run(A, RunStatus::Lost), KnownRun { ending: CancelRequest::StoppedByPerson, ..run(B, RunStatus::Cancelled) }], Some(B)
    )]
    #[case::out_of_attempts(vec![KnownRun { attempt: MAX_ATTEMPTS, ..run(A, RunStatus::Failed) }], Some(A))]
    #[case::attempts_left(vec![run(A, RunStatus::Failed)], None)]
    #[case::superseded(vec![KnownRun { ending: CancelRequest::Requested, ..run(A, RunStatus::Superseded) }], None)]
    #[case::out_of_money(vec![KnownRun { ending: CancelRequest::Requested, ..run(A, RunStatus::Cancelled) }], None)]
    #[case::reviewed_all_the_same(
        vec![run(A, RunStatus::Completed), KnownRun { ending: CancelRequest::StoppedByPerson, ..run(B, RunStatus::Cancelled) }], None
    )]
    fn a_watcher_takes_no_for_an_answer(#[case] known: Vec<KnownRun<'static>>, #[case] duplicate_of: Option<&str>) {
        let by = |asker| decide(&LaunchRequest { asker, ..request() }, &known);
        let decision = by(Requester::Automatic);
        assert_eq!(decision.duplicate_of, duplicate_of.map(id), "{}", decision.reason);
        assert_eq!(decision.action == ReviewAction::Skip, duplicate_of.is_some());
        let asked = by(Requester::Person);
        assert!(asked.action != ReviewAction::Skip && asked.duplicate_of.is_none(), "a person is not refused");
        let forced = decide(&LaunchRequest { asker: Requester::Automatic, force: true, ..request() }, &known);
        assert!(matches!(forced.action, ReviewAction::Launch), "{}", forced.reason);
    }
}
