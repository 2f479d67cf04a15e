//! One bad run blocks no other run: unreadable journals and locks, and workers that die before they start.

use revdeck::domain::{ErrorClass, RunId, RunRecord, RunStatus};
use rstest::rstest;

use super::place::{Place, is_starting, wait_for};

/// Records a run with the request of `model`, in an earlier state of its life. Before that, waits for the end of the
/// model's worker: at its end it settles dead runs and starts pending ones, and so would lock the new run.
fn like(place: &Place, model: &RunId, id: &str, change: impl FnOnce(&mut RunRecord)) -> RunId {
    wait_for("the end of the worker", || (!is_starting(&place.store(), model)).then_some(()));
    let mut record = place.run(model);
    record.run_id = id.parse().expect("an id");
    record.subject.scope_hash = "another".to_owned();
    (record.links.superseded_by, record.links.carried_over_from) = (None, None);
    change(&mut record);
    place.store().with_lock(|locked| locked.create_run(&record)).expect("the store can be written");
    record.run_id
}

const BAD: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";
const OTHER: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0B";

fn dead(record: &mut RunRecord) {
    (record.status, record.attempt) = (RunStatus::Reviewing, 3);
}

fn pending(record: &mut RunRecord) {
    (record.status, record.attempt) = (RunStatus::Pending, 0);
}

/// Puts an obstacle in place of a file that no process, not even root, can then read or write.
fn obstruct(place: &Place, path: &str) {
    std::fs::create_dir_all(place.store().root().join(path)).expect("a folder");
}

#[test]
fn a_dead_run_that_cannot_be_read_is_in_nobodys_way() {
    let place = Place::new();
    let first = place.commit_modules("one", 1);
    let second = place.commit_modules("two", 1);
    let model = place.review(&["--commit", &first, "--wait"]);
    let bad = like(&place, &model, BAD, dead);
    let other = like(&place, &model, OTHER, dead);
    obstruct(&place, &format!("events/{bad}.jsonl"));

    let run = place.review(&["--commit", &second, "--wait"]);
    assert_eq!(place.run(&run).status, RunStatus::Completed);
    assert_eq!(place.ended(&other).status, RunStatus::Lost, "the one behind it is settled");
    let said = String::from_utf8_lossy(&place.test.revdeck(&["runs"]).stderr).into_owned();
    assert!(said.contains(&format!("run {bad} cannot be settled: ")), "{said}");
    // A request for the same review does not wait for the bad run.
    let same = place.run(&model).subject.scope_hash;
    place.store().update_run(&bad, place.run(&bad).updated_at, |run| run.subject.scope_hash = same).expect("a line");
    let again = place.review(&["--commit", &first, "--wait", "--force"]);
    assert_eq!(place.run(&again).status, RunStatus::Completed);
}

#[test]
fn a_run_whose_workers_die_before_they_begin_fails_and_holds_up_nobody() {
    let place = Place::new();
    place.settings("max_parallel_runs = 1\n");
    let first = place.commit_modules("one", 1);
    let second = place.commit_modules("two", 1);
    let model = place.review(&["--commit", &first, "--wait"]);
    let bad = like(&place, &model, BAD, pending);
    // Its worker cannot take its lock and ends.
    obstruct(&place, &format!("locks/{bad}.lock"));

    let younger = place.review(&["--commit", &second, "--wait"]);
    assert_eq!(place.run(&younger).status, RunStatus::Completed);
    let record = place.run(&bad);
    assert_eq!(
        (record.status, record.ending.error_class),
        (RunStatus::Failed, Some(ErrorClass::WorkerDied)),
        "{record:?}"
    );
    assert!(
        record.ending.error_summary.contains("3 workers were started")
            && record.ending.error_summary.contains("worker.log")
    );
}

#[test]
fn a_run_is_reviewed_although_its_worktree_is_gone_or_something_else() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let elsewhere = place.test.home().join("elsewhere");
    let made = place.test.command("git").args(["init", "-q"]).arg(&elsewhere).status().expect("git starts");
    assert!(made.success());
    let gone = place.test.home().join("gone");
    // The start also works if the environment of the starting process names the repository.
    let told = place.test.repo().join(".git");
    let mut before = model.clone();
    for (tens, git_dir) in [("2", ""), ("3", told.to_str().expect("a name"))] {
        for (id, worktree) in [(BAD, &elsewhere), (OTHER, &gone)] {
            // A worker that is about to end would start the run, too.
            wait_for("the worker's end", || (!is_starting(&place.store(), &before)).then_some(()));
            let run = like(&place, &model, &id.replace("1C0", &format!("1C{tens}")), |record| {
                pending(record);
                record.subject.worktree = worktree.to_string_lossy().into_owned();
            });
            let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
            assert!(command.arg("runs").env("GIT_DIR", git_dir).output().expect("revdeck starts").status.success());
            assert_eq!(place.ended(&run).status, RunStatus::Completed, "{git_dir} {}", worktree.display());
            before = run;
        }
    }
}

/// During a push that git has not accepted yet, git sets one variable more; otherwise the environment looks the same.
#[rstest]
#[case::kept_elsewhere(false, RunStatus::Completed)]
#[case::of_a_push(true, RunStatus::Failed)]
fn a_worker_finds_objects_that_its_starter_keeps_elsewhere(#[case] is_push: bool, #[case] expected: RunStatus) {
    let place = Place::new();
    place.commit_modules("one", 1);
    let (git_dir, objects) = (place.test.repo().join(".git"), place.test.home().with_file_name("objects"));
    std::fs::rename(git_dir.join("objects"), &objects).expect("moved");
    std::fs::create_dir(git_dir.join("objects")).expect("a folder");
    place.test.write("two.py", "x = 1\n");
    let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["review", "--worktree", "--wait"]).env("GIT_DIR", ".git").env("GIT_OBJECT_DIRECTORY", "../objects");
    if is_push {
        command.env("GIT_QUARANTINE_PATH", &objects);
    }
    command.output().expect("revdeck starts");
    let run = place.runs().pop().expect("a run");
    assert_eq!(run.status, expected, "{run:?}");
}

#[test]
fn starts_that_find_no_slot_are_not_held_against_a_run() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let store = place.store();
    let run = like(&place, &model, BAD, pending);
    for earlier in 0..2 {
        let starting = store.lock_start(&run).expect("readable").expect("free");
        assert_eq!(starting.failed_starts(), earlier);
        let held = starting.record_start().expect("writable");
        assert!(is_starting(&store, &run));
        assert!(store.lock_start(&run).expect("readable").is_none(), "a second one is not started");
        drop(held);
        assert!(!is_starting(&store, &run));
    }
    store.clear_failed_starts(&run).expect("writable");
    assert_eq!(store.lock_start(&run).expect("readable").expect("free").failed_starts(), 0);
    place.revdeck(&["runs"]);
    wait_for("the end", || Some(place.run(&run)).filter(|run| run.status == RunStatus::Completed));
}

#[test]
fn starts_that_find_an_older_run_to_wait_for_are_not_held_against_a_run() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let store = place.store();
    let older = like(&place, &model, BAD, |record| record.status = RunStatus::Reviewing);
    let worker = store.lock_run(&older).expect("readable").expect("free");
    let run = like(&place, &model, OTHER, |record| {
        pending(record);
        record.links.waits_for = Some(older.clone());
    });
    drop(store.lock_start(&run).expect("readable").expect("free").record_start().expect("writable"));
    place.revdeck(&["worker", run.as_str()]);
    assert_eq!(place.run(&run).status, RunStatus::Pending);
    assert_eq!(store.lock_start(&run).expect("readable").expect("free").failed_starts(), 0);
    drop(worker);
}

#[test]
fn who_waits_for_a_run_begins_when_it_is_paused() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let older = like(&place, &model, BAD, |record| {
        (record.status, record.reviewed_by.name) = (RunStatus::Reviewing, "of turns".to_owned());
    });
    let worker = place.store().lock_run(&older).expect("readable").expect("free");
    let run = like(&place, &model, OTHER, |record| {
        pending(record);
        record.links.waits_for = Some(older.clone());
    });
    place.revdeck(&["runs"]);
    assert!(!is_starting(&place.store(), &run));
    place.revdeck(&["pause", older.as_str()]);
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
    drop(worker);
}

/// Waits for the review of a commit, which a pending run answers, and returns the message with which the wait ends.
fn wait_in_vain(place: &Place, commit: &str) -> String {
    let output = place.test.revdeck(&["review", "--commit", commit, "--wait"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    said
}

/// Records a pending run that answers the request of `model`, which is no completed run any more.
fn pending_answer(place: &Place, model: &RunId, id: &str, waits_for: Option<RunId>) -> RunId {
    let scope = place.run(model).subject.scope_hash;
    like(place, model, id, |record| {
        pending(record);
        record.subject.scope_hash = scope;
        record.links.waits_for = waits_for;
    })
}

#[test]
fn a_wait_ends_when_the_older_run_cannot_be_settled() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let older = like(&place, &model, BAD, dead);
    obstruct(&place, &format!("events/{older}.jsonl"));
    let run = pending_answer(&place, &model, OTHER, Some(older.clone()));
    let said = wait_in_vain(&place, &commit);
    assert!(said.contains(&format!("{run} cannot be settled: ")) && said.contains(older.as_str()), "{said}");
    assert_eq!(place.run(&run).status, RunStatus::Pending, "the run stays for the next process");
}

#[test]
fn a_wait_ends_when_no_worker_can_be_started() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    obstruct(&place, &format!("locks/{OTHER}.start"));
    let run = pending_answer(&place, &model, OTHER, None);
    let said = wait_in_vain(&place, &commit);
    assert!(said.contains(&format!("{run} cannot be settled: ")) && said.contains(".start"), "{said}");
}

#[test]
fn a_start_whose_worker_cannot_write_its_claim_goes_on_to_be_counted() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let model = place.review(&["--commit", &commit, "--wait"]);
    let store = place.store();
    let run = like(&place, &model, BAD, pending);
    drop(store.lock_start(&run).expect("readable").expect("free").record_start().expect("writable"));
    // As on a full disk: no file can grow.
    let line = format!("trap '' XFSZ; ulimit -f 0; exec '{}' worker {run}", env!("CARGO_BIN_EXE_revdeck"));
    let output = place.test.command("sh").args(["-c", &line]).output().expect("a shell");
    assert!(!output.status.success());
    assert_eq!(place.run(&run).status, RunStatus::Pending);
    assert_eq!(store.lock_start(&run).expect("readable").expect("free").failed_starts(), 1);
}
