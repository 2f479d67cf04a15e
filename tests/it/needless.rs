//! Integration tests: runs that nobody needs any more end, or go on as the review of a rewritten commit.

use revdeck::domain::{CancelReason, RunEvent, RunId, RunRecord, RunStatus};
use serde_json::json;

use crate::llm::server::{Model, calls};
use crate::llm::{finish, settings};
use crate::runner::place::{Place, halfway, wait_for};

/// A repository with a commit whose review does not end by itself, and the run of that review.
fn held_review() -> (Place, RunId) {
    let place = Place::new();
    place.hold_reviews("");
    place.commit_modules("a", 2);
    let run = place.review(&["--commit", "HEAD"]);
    wait_for("a worker", || place.run(&run).status.is_working().then_some(()));
    (place, run)
}

fn head(place: &Place) -> String {
    place.test.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn end(record: &RunRecord) -> (RunStatus, Option<CancelReason>, &str) {
    (record.status, record.ending.cancel_reason, &record.ending.cancel_note)
}

#[test]
fn a_request_for_an_amended_commit_ends_the_review_of_the_old_one() {
    let (place, run) = held_review();
    let old = head(&place);
    place.modules("b", 1);
    place.test.git(&["add", "-A"]);
    place.test.git(&["commit", "-q", "--amend", "--no-edit"]);
    let next = place.review(&["--commit", "HEAD"]);
    assert_ne!(next, run);
    let note = format!("{} is in no branch any more", &old[..7]);
    assert_eq!(end(&place.ended(&run)), (RunStatus::Cancelled, Some(CancelReason::Obsolete), note.as_str()));
    let shown = place.test.normalise(&place.revdeck(&["show", run.as_str()]));
    assert!(shown.contains("freshness  obsolete: the code has changed since"), "{shown}");
    place.let_end();
    assert_eq!(place.ended(&next).status, RunStatus::Completed);
}

#[test]
fn a_commit_with_other_words_and_the_same_change_is_adopted_by_the_review_under_way() {
    let (place, run) = held_review();
    place.test.git(&["commit", "-q", "--amend", "-m", "other words"]);
    // Any command looks, not only a request.
    place.revdeck(&["runs"]);
    let record = place.run(&run);
    assert_eq!((record.reuse.last_head.as_str(), record.reuse.adopted_count), (head(&place).as_str(), 1));
    assert_eq!(record.ending.cancel_reason, None);
    // Once is enough, and a request adopts the same run.
    place.revdeck(&["runs"]);
    assert_eq!(place.run(&run).reuse.adopted_count, 1);
    assert_eq!(place.review(&["--commit", "HEAD"]), run);
    place.let_end();
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
}

#[test]
fn a_rebase_ends_the_reviews_of_commits_that_are_gone_and_no_others() {
    let place = Place::new();
    place.hold_reviews("max_parallel_runs = 3\n");
    place.commit_modules("kept", 1);
    let kept = place.review(&["--commit", "HEAD"]);
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    place.commit_modules("topic", 1);
    let moved = place.review(&["--commit", "HEAD"]);
    place.test.git(&["checkout", "-q", "main"]);
    place.test.write("topic/module_0.py", "def other():\n    return 1\n");
    place.test.commit("the same file");
    // The rebase stops in the middle, and the old commit is still in the branch.
    place.test.git(&["checkout", "-q", "topic"]);
    let rebase = place.test.command("git").args(["rebase", "main"]).output().expect("git starts");
    assert!(!rebase.status.success(), "the two commits conflict");
    place.revdeck(&["runs"]);
    assert_eq!(place.run(&moved).ending.cancel_reason, None, "nothing is decided in the middle of a rebase");
    place.modules("topic", 1);
    place.test.git(&["add", "-A"]);
    place.test.git(&["-c", "core.editor=true", "rebase", "--continue"]);
    place.revdeck(&["runs"]);
    assert_eq!(place.ended(&moved).ending.cancel_reason, Some(CancelReason::Obsolete));
    assert_eq!(place.run(&kept).ending.cancel_reason, None);
    place.let_end();
    assert_eq!(place.ended(&kept).status, RunStatus::Completed);
}

#[test]
fn a_commit_that_was_never_in_a_branch_can_be_reviewed() {
    let place = Place::new();
    place.hold_reviews("");
    let lost = place.commit_modules("a", 1);
    place.test.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let run = place.review(&["--commit", &lost]);
    place.revdeck(&["runs"]);
    assert_eq!(place.run(&run).ending.cancel_reason, None);
    place.let_end();
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
}

#[test]
fn a_worker_pays_for_no_further_turn_about_a_commit_that_was_rewritten() {
    let place = Place::new();
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let model =
        Model::start(vec![calls(&[read("a/module_0.py")]), calls(&[read("a/module_1.py")]), calls(&[finish()])]);
    model.hold_after(1);
    settings(&place, &model, "");
    place.commit_modules("a", 2);
    let run = place.review(&["--commit", "HEAD", "--reviewer", "m"]);
    wait_for("the second request", || (model.asked() == 2).then_some(()));
    place.modules("b", 1);
    place.test.git(&["add", "-A"]);
    place.test.git(&["commit", "-q", "--amend", "--no-edit"]);
    // No other process looks.
    model.let_go();
    let record = place.ended(&run);
    assert_eq!((record.status, record.ending.cancel_reason), (RunStatus::Cancelled, Some(CancelReason::Obsolete)));
    assert_eq!(model.asked(), 2, "the third turn is not asked");
    assert!(place.events(&run).contains(&RunEvent::CancelAsked { reason: CancelReason::Obsolete }));
}

#[test]
fn a_run_without_attempts_left_is_lost_with_its_dead_process_and_what_was_saved() {
    let place = Place::new();
    place.commit_modules("a", 60);
    let run = place.review(&["--commit", "HEAD"]);
    let worker = halfway(&place, &run);
    let attempts = |record: &mut RunRecord| record.attempt = 3;
    place.store().with_lock(|locked| locked.annotate_run(&run, attempts)).expect("the store");
    crate::runner::place::signal(worker, rustix::process::Signal::KILL);
    wait_for("the worker's end", || crate::runner::place::gone(worker).then_some(()));
    let (findings, covered) = (place.journalled(&run).len(), place.events(&run).into_iter().filter(is_covered).count());
    place.revdeck(&["runs"]);
    let record = place.run(&run);
    let note = format!(
        "worker died in attempt 3; {findings} findings and {} of 60 hunks are kept",
        covered_hunks(&place, &run)
    );
    assert_eq!(end(&record), (RunStatus::Lost, Some(CancelReason::DeadProcess), note.as_str()));
    assert_eq!((place.finding_ids(&run).len(), covered > 0), (findings, true));
}

fn is_covered(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Covered { .. })
}

fn covered_hunks(place: &Place, run: &RunId) -> usize {
    let hunks = |event| match event {
        RunEvent::Covered { file } => file.hunks.len(),
        _ => 0,
    };
    place.events(run).into_iter().map(hunks).sum()
}

#[test]
fn of_two_live_runs_with_equal_content_the_younger_ends_as_a_duplicate() {
    let (place, run) = held_review();
    // Two processes that decided at the same moment, as on a file system without locks.
    let mut twin = place.run(&run);
    twin.run_id = "ar_7ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse().expect("an id");
    (twin.status, twin.attempt) = (RunStatus::Pending, 0);
    twin.subject.worktree = "/elsewhere".to_owned();
    place.store().with_lock(|locked| locked.create_run(&twin)).expect("the store");
    place.revdeck(&["runs"]);
    let note = format!("{run} reviews exactly the same and is further");
    let record = place.ended(&twin.run_id);
    assert_eq!(end(&record), (RunStatus::Cancelled, Some(CancelReason::Duplicate), note.as_str()));
    assert_eq!(record.links.reused_from, Some(run.clone()));
    place.let_end();
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
}

#[test]
fn a_forced_twin_is_no_duplicate() {
    let (place, run) = held_review();
    let forced = place.review(&["--commit", "HEAD", "--force"]);
    place.revdeck(&["runs"]);
    assert_eq!([&run, &forced].map(|run| place.run(run).ending.cancel_reason), [None, None]);
    place.let_end();
    assert_eq!([&run, &forced].map(|run| place.ended(run).status), [RunStatus::Completed; 2]);
}
