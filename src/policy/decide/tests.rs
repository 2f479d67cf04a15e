//! Tests the decisions about requests, row by row.

use rstest::rstest;

use super::super::Liveness;
use super::super::known_run::find_answers;
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
        has_secret_files: false,
        force: false,
        asker: Requester::Person,
        quota: AssistantQuota::default(),
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

/// Returns a run that ended early after it reviewed so many of 40 hunks.
fn unfinished(id: &'static str, reviewed: u32, progress: RunAdvance) -> KnownRun<'static> {
    KnownRun {
        extent: ReviewExtent::Unfinished { reviewed, hunks: 40, progress },
        resumable: Resumable::No,
        ..run(id, RunStatus::Completed)
    }
}

#[test]
fn a_run_that_ended_early_is_never_reused_and_the_next_one_goes_on() {
    let decided = decide(&request(), &[unfinished(A, 7, RunAdvance::Some)]);
    assert_eq!(decided.action, ReviewAction::Launch);
    assert_eq!(decided.reason, format!("{A} has reviewed 7 of 40 hunks; this run goes on with the rest"));
    let budget = KnownRun { status: RunStatus::Cancelled, ..unfinished(A, 7, RunAdvance::Some) };
    assert_eq!(decide(&request(), &[budget]).action, ReviewAction::Launch);
    let later = run(B, RunStatus::Completed);
    assert_eq!(
        decide(&request(), &[unfinished(A, 7, RunAdvance::Some), later]).action,
        ReviewAction::Reuse { run: id(B) }
    );
}

#[test]
fn an_automatic_request_goes_on_as_long_as_runs_get_anywhere() {
    let automatic = LaunchRequest { asker: Requester::Automatic, ..request() };
    assert_eq!(decide(&automatic, &[unfinished(A, 7, RunAdvance::Some)]).action, ReviewAction::Launch);
    assert_eq!(decide(&automatic, &[unfinished(A, 7, RunAdvance::None)]).action, ReviewAction::Skip);
    assert_eq!(decide(&request(), &[unfinished(A, 7, RunAdvance::None)]).action, ReviewAction::Launch);
}

#[test]
fn an_assistant_over_its_quota_gets_only_reviews_that_exist() {
    let free = AssistantQuota { in_session: 900, per_session: None, in_hour: 900, per_hour: None };
    let by_session = AssistantQuota { in_session: 60, per_session: Some(60), ..free };
    let by_hour = AssistantQuota { in_hour: 20, per_hour: Some(20), ..free };
    let lost = run(A, RunStatus::Lost);
    for (quota, reason) in [
        (
            by_session,
            "refused: this session has started 60 reviews, as many as `assistants.reviews_per_session` allows; the user \
             can ask for one with `revdeck review`",
        ),
        (
            by_hour,
            "refused: assistants have started 20 reviews within an hour, as many as `assistants.reviews_per_hour` \
             allows; ask again later, or the user asks with `revdeck review`",
        ),
    ] {
        let request = LaunchRequest { quota, ..request() };
        for known in [&[][..], std::slice::from_ref(&lost)] {
            let decided = decide(&request, known);
            assert_eq!((decided.action, decided.reason.as_str()), (ReviewAction::Skip, reason));
        }
        let active = run(A, RunStatus::Reviewing);
        assert_eq!(decide(&request, &[active]).action, ReviewAction::Adopt { run: id(A) });
        assert_eq!(decide(&request, &[run(A, RunStatus::Completed)]).action, ReviewAction::Reuse { run: id(A) });
    }
    for quota in [
        free,
        AssistantQuota { in_session: 59, per_session: Some(60), ..free },
        AssistantQuota { in_hour: 19, per_hour: Some(20), ..free },
    ] {
        assert_eq!(decide(&LaunchRequest { quota, ..request() }, &[]).action, ReviewAction::Launch);
    }
}

#[test]
fn files_out_of_sight_are_not_seen_by_another_run_either() {
    let hidden = KnownRun { extent: ReviewExtent::OutOfSight { files: 1 }, ..run(A, RunStatus::Completed) };
    let decided = decide(&request(), &[hidden]);
    assert_eq!(decided.action, ReviewAction::Reuse { run: id(A) });
    assert_eq!(decided.reason, format!("{A} has reviewed all but 1 file that the change puts out of sight"));
}

#[test]
fn completed_equivalent_runs_may_answer_a_run_newest_first() {
    use RunStatus::{Completed, Failed, Reviewing};
    const C: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0C";
    let own = run(A, Reviewing);
    let partial = KnownRun { extent: ReviewExtent::Partial, ..run(B, Completed) };
    let other = KnownRun { diff_fingerprint: "another", ..run(B, Completed) };
    for (known, expected) in [
        (vec![run(A, Completed)], vec![]),
        (vec![run(B, Completed)], vec![B]),
        (vec![run(B, Completed), run(C, Completed)], vec![C, B]),
        // Its row does not say whether it lacks only what the change puts out of sight.
        (vec![partial], vec![B]),
        (vec![other, run(C, Failed)], vec![]),
    ] {
        assert_eq!(find_answers(&own, known.iter().copied()), expected, "{known:?}");
    }
    for (extent, expected) in [
        (ReviewExtent::Whole, true),
        (ReviewExtent::OutOfSight { files: 2 }, true),
        (ReviewExtent::StaysUnread { files: 2 }, false),
        (ReviewExtent::Partial, false),
        (ReviewExtent::ResultLost { findings: 1 }, false),
        (ReviewExtent::Unfinished { reviewed: 1, hunks: 2, progress: RunAdvance::Some }, false),
    ] {
        assert_eq!(extent.leaves_nothing(), expected, "{extent:?}");
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
#[case::waiting_twin(vec![KnownRun { attempt: 0, ..run(A, Pending) }], adopt(A, &[]), 41_000, "waits to review")]
#[case::one_that_goes_on(
    vec![KnownRun { attempt: 1, tokens: 700, ..run(A, Pending) }], adopt(A, &[]), 700, "waits to go on"
)]
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
#[case::result_lost(
    vec![KnownRun { extent: ReviewExtent::ResultLost { findings: 1 }, ..run(A, Completed) }],
    launch(&[]), 0, "its result is damaged and 1 finding is lost; the review begins anew"
)]
#[case::result_of_one_of_two_lost(
    vec![run(A, Completed), KnownRun { extent: ReviewExtent::ResultLost { findings: 2 }, ..run(B, Completed) }],
    reuse(A, &[]), 41_000, A
)]
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

#[test]
fn reviews_with_different_prompt_sets_stand_beside_each_other() {
    let older = KnownRun { diff_fingerprint: "older", ..run(A, RunStatus::Reviewing) };
    for (version, asked, ends) in
        [("p1", "p2", true), ("p1@strict", "p2@strict", true), ("p1", "p2@strict", false), ("p1@a", "p1@b", false)]
    {
        let request = LaunchRequest { prompt_policy_version: asked.into(), ..request() };
        let older = KnownRun { policy_version: version, ..older };
        assert_eq!(!decide(&request, &[older]).supersedes().is_empty(), ends, "{version} and {asked}");
        let ended = KnownRun { status: RunStatus::Completed, ..older };
        let standing = KnownRun { policy_version: asked, epoch: 2, ..run(B, RunStatus::Completed) };
        assert_eq!(!find_replaced_runs(&standing, &[ended]).is_empty(), ends, "{version} and {asked}");
    }
}
