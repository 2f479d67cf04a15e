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
//! | an equivalent run that is partial, and another attempt would give the same or is not left | reuses it |
//! | an automatic request, and its last equivalent run was stopped by a person or has no attempts left | is skipped |
//! | an equivalent run that was lost, failed or is partial, with attempts left | resumes it and counts the attempt |
//! | anything else | is launched; unchanged hunks of earlier runs are carried over, see [`super::carry`] |
//!
//! A request that is adopted or reused has no record of its own. The record of the run that answers it holds its
//! reason, its HEAD and the saved tokens. A skipped duplicate points to the run that it duplicates. Only a duplicate
//! that no run can answer gets a `skipped` record.

use crate::domain::{RunId, RunStatus, Scope, Source};

use super::decision_reason::{DecisionReason, describe_older_runs, describe_wait};
use super::known_run::{CancelRequest, KnownRun, Resumable, ReviewExtent, is_moving_scope};
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

    /// Skips a request without a file to review, even a forced one.
    fn skip_empty(&self) -> Option<Answer<'a>> {
        let reason = DecisionReason::NothingToReview { left_out: self.request.left_out };
        (self.request.files == 0).then(|| Answer::new(ReviewAction::Skip, reason, 0))
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
        let reason = DecisionReason::UnderReview { run: run.id, waits: run.status == RunStatus::Pending };
        Some(Answer::new(ReviewAction::Adopt { run: id }, reason, self.estimate_saving(run)))
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
            ReviewExtent::Partial | ReviewExtent::Whole => return None,
        };
        Some(Answer::new(ReviewAction::Reuse { run: id }, reason, self.estimate_saving(run)))
    }

    /// Skips an automatic request that repeats a run which a person stopped or which has no attempts left.
    fn skip_repeated(&self) -> Option<Answer<'a>> {
        if self.request.asker != Requester::Automatic {
            return None;
        }
        let (run, id) = self.find_newest(|run| run.status != RunStatus::Skipped && run.status.is_terminal())?;
        let stopped = run.status == RunStatus::Cancelled && run.ending == CancelRequest::StoppedByPerson;
        if !stopped && !(run.has_ended_early() && run.attempt >= MAX_ATTEMPTS) {
            return None;
        }
        let reason = DecisionReason::Duplicate { run: run.id, stopped };
        let answer = Answer::new(ReviewAction::Skip, reason, self.request.prompt_estimate);
        Some(Answer { duplicate_of: Some(id), ..answer })
    }

    /// Resumes the newest run that ended early, if it can go on and has attempts left.
    fn resume_ended(&self) -> Option<Answer<'a>> {
        let (run, id) = self.find_newest(|run| run.has_ended_early())?;
        if run.attempt >= MAX_ATTEMPTS || run.resumable == Resumable::No {
            return None;
        }
        Some(Answer::new(ReviewAction::Resume { from: id }, DecisionReason::TakesOver { run }, run.tokens))
    }

    fn launch(&self) -> Answer<'a> {
        let reason = match self.find_newest(|run| run.has_ended_early()) {
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

    use super::super::Liveness;
    use super::super::supersede::RunProgress;
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
