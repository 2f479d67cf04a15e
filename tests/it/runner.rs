//! Integration tests: runner. Real workers, real signals; a test waits for a condition, never for a fixed time.

mod kills;
mod memory;
pub mod place;
mod trouble;

use std::process::Stdio;

use place::{Place, gone, halfway, hold_still, signal, wait_for};
use revdeck::domain::{Actor, CancelReason, ErrorClass, FindingStatus, RunEvent, RunStatus, TriageAction};
use rustix::process::Signal;

#[test]
fn a_review_goes_through_its_life_and_keeps_what_it_found() {
    let place = Place::new();
    let commit = place.commit_modules("one", 3);
    let run = place.review(&["--commit", &commit, "--wait"]);
    let record = place.run(&run);
    assert_eq!(record.status, RunStatus::Completed);
    assert_eq!((record.attempt, record.outcome.coverage.files_total, record.outcome.coverage.files_covered), (1, 3, 3));
    assert!(record.owner.contains('@'), "{:?}", record.owner);
    assert!(record.subject.epoch > 0 && record.outcome.coverage.files.is_empty());
    let output = place.output(&run).expect("an output");
    assert_eq!(output.findings.len() as u32, record.outcome.finding_counts.total());
    assert!(
        record.outcome.summary.starts_with(&format!("{} findings in 3 files: ", output.findings.len())),
        "{}",
        record.outcome.summary
    );
    assert_eq!(output.coverage.files.len(), 3);
    for finding in &output.findings {
        assert_eq!((&finding.first_run_id, &finding.last_run_id), (&run, &run));
        assert_eq!(finding.detail_ref, format!("outputs/{run}.json#{}", finding.finding_id));
        assert!(finding.reported_at >= record.created_at);
    }
    let statuses = place.statuses(&run);
    use RunStatus::{Completed, Pending, Resolving, Reviewing, Snapshotting};
    assert_eq!(statuses, [Pending, Snapshotting, Reviewing, Resolving, Completed]);
    assert!(matches!(place.events(&run).last(), Some(RunEvent::Finished { status: RunStatus::Completed })));
}

#[test]
fn the_same_is_reviewed_once_and_something_else_again() {
    let place = Place::new();
    place.modules("one", 2);
    let first = place.review(&["--worktree", "--wait"]);
    assert_eq!(place.review(&["--worktree", "--wait"]), first, "reused");
    let commit = place.test.commit("one");
    assert_eq!(place.review(&["--commit", &commit]), first, "the commit shows the same as the worktree did");
    place.test.git(&["commit", "-q", "--amend", "-m", "another message"]);
    assert_eq!(place.review(&["--commit", "HEAD", "--wait"]), first, "amended without a change");
    assert!(place.run(&first).reuse.last_reason.contains("has reviewed exactly this"));
    let again = place.review(&["--commit", "HEAD", "--wait", "--force"]);
    assert_ne!(again, first);
    assert!(place.run(&again).decision.starts_with("reviewed again because that was asked for"));
    let (one, other) = (place.finding_ids(&first), place.finding_ids(&again));
    assert_eq!(one, other);
    for finding in place.output(&again).expect("an output").findings {
        assert_eq!((&finding.first_run_id, &finding.last_run_id), (&first, &again), "who reported it first is kept");
    }
    let skipped = place.review(&["--staged", "--wait"]);
    assert_eq!(place.run(&skipped).status, RunStatus::Skipped);
    assert_eq!(place.review(&["--staged"]), skipped, "one line says that there is nothing, not many");
}

#[test]
fn closing_whoever_asked_ends_nothing() {
    let place = Place::new();
    let commit = place.commit_modules("one", 40);
    // Starts a process group of its own, as a terminal does; `setsid` would hide the exit code.
    let mut asker = std::os::unix::process::CommandExt::process_group(
        place.test.command(env!("CARGO_BIN_EXE_revdeck")).args(["review", "--commit", &commit, "--wait"]),
        0,
    )
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .expect("revdeck starts");
    let (run, worker) =
        wait_for("a worker", || place.newest().and_then(|run| Some((run.clone(), place.worker(&run)?))));
    signal(worker, Signal::HUP);
    signal(worker, Signal::INT);
    rustix::process::kill_process_group(place::pid(asker.id()), Signal::HUP)
        .expect("the asker's group gets the signal");
    asker.wait().expect("the asker ends");
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
    assert_eq!(place.run(&run).attempt, 1);
}

#[test]
fn a_working_run_ends_when_it_is_asked_and_keeps_what_it_found() {
    let place = Place::new();
    let commit = place.commit_modules("one", 150);
    let run = place.review(&["--commit", &commit]);
    let worker = halfway(&place, &run);
    let canceller = place.start(&["cancel", run.as_str(), "--reason", "not now"]);
    wait_for("the wish", || place.run(&run).ending.cancel_reason);
    signal(worker, Signal::CONT);
    let said = canceller.wait_with_output().expect("cancel ends");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let record = place.ended(&run);
    assert_eq!(record.status, RunStatus::Cancelled);
    assert_eq!(
        (record.ending.cancel_reason, record.ending.cancel_note.as_str()),
        (Some(CancelReason::UserStop), "not now")
    );
    assert!(
        record.outcome.coverage.files_covered > 0 && record.outcome.coverage.files_covered < 150,
        "{:?}",
        record.outcome.coverage
    );
    assert_eq!(place.finding_ids(&run), place.journalled(&run));
    assert!(!place.finding_ids(&run).is_empty());
}

#[test]
fn a_hung_worker_holds_up_nothing_for_ever() {
    let place = Place::new();
    place.settings("max_parallel_runs = 1\n");
    let commits: Vec<String> = (0..4).map(|number| place.commit_modules(&format!("m{number}"), 60)).collect();
    let hung = place.review(&["--commit", &commits[0]]);
    let worker = wait_for("a worker", || place.worker(&hung));
    hold_still(&place.store(), worker);

    let waiting = place.review(&["--commit", &commits[1]]);
    let last = place.review(&["--commit", &commits[2]]);
    let orphan = place.review(&["--commit", &commits[3]]);
    for run in [&waiting, &last, &orphan] {
        assert_eq!(place.run(run).status, RunStatus::Pending);
    }
    // A pending run ends at once.
    place.revdeck(&["cancel", waiting.as_str(), "--reason", "changed my mind"]);
    let record = place.run(&waiting);
    assert_eq!((record.status, record.attempt), (RunStatus::Cancelled, 0));
    // If the snapshot of a run is unreadable, the run reports that and reviews no other code.
    let objects = place.test.repo().join(".git/objects");
    let tree = place.test.git(&["rev-parse", &format!("{}^{{tree}}", commits[3])]);
    let (folder, file) = tree.trim().split_at(2);
    std::fs::remove_file(objects.join(folder).join(file)).expect("a loose object");

    // A suspended worker cannot answer; revdeck kills it and starts the next run.
    place.revdeck(&["cancel", hung.as_str(), "--reason", "it hangs"]);
    assert!(gone(worker), "the worker still lives");
    let record = place.run(&hung);
    assert_eq!((record.status, record.ending.cancel_note.as_str()), (RunStatus::Cancelled, "it hangs"));
    assert_eq!(place.finding_ids(&hung), place.journalled(&hung));

    assert_eq!(place.ended(&last).status, RunStatus::Completed);
    let record = place.ended(&orphan);
    assert_eq!((record.status, record.ending.error_class), (RunStatus::Failed, Some(ErrorClass::Git)), "{record:?}");
    assert!(record.outcome.summary.contains("the snapshot is gone or cannot be read"), "{}", record.outcome.summary);
}

#[test]
fn newer_code_supersedes_the_review_of_older_code() {
    let place = Place::new();
    place.hold_reviews("max_parallel_runs = 1\n");
    place.modules("one", 2);
    let older = place.review(&["--worktree"]);
    // What it has planned decides whether it may finish.
    let is_reviewing = || place.run(&older).status == RunStatus::Reviewing;
    let worker = wait_for("a worker that reviews", || place.worker(&older).filter(|_| is_reviewing()));
    hold_still(&place.store(), worker);
    place.modules("two", 1);
    let waiting = place.review(&["--worktree"]);
    place.modules("three", 1);
    let newest = place.review(&["--worktree"]);
    let record = place.run(&waiting);
    assert_eq!((record.status, record.links.superseded_by), (RunStatus::Superseded, Some(newest.clone())), "at once");
    assert_eq!(place.run(&older).ending.cancel_reason, Some(CancelReason::Superseded));
    place.let_end();
    signal(worker, Signal::CONT);
    let record = place.ended(&older);
    assert_eq!((record.status, record.links.superseded_by), (RunStatus::Superseded, Some(newest.clone())));
    assert_eq!(place.ended(&newest).status, RunStatus::Completed);

    // Completed runs are superseded as well, and count again when their content is back.
    place.modules("four", 1);
    let four = place.review(&["--worktree", "--wait"]);
    wait_for("the fold", || place.run(&newest).links.superseded_by.filter(|by| *by == four));
    std::fs::remove_dir_all(place.test.repo().join("four")).expect("the modules are there");
    assert_eq!(place.review(&["--worktree"]), newest);
    assert_eq!(place.run(&newest).links.superseded_by, None);
    assert_eq!(place.run(&four).links.superseded_by, Some(newest));
}

#[test]
fn no_more_than_two_work_at_once_and_none_is_forgotten() {
    let place = Place::new();
    let commits: Vec<String> = (0..8).map(|number| place.commit_modules(&format!("m{number}"), 4)).collect();
    let children: Vec<_> = commits.iter().map(|commit| place.start(&["review", "--commit", commit])).collect();
    for child in children {
        let output = child.wait_with_output().expect("review ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    wait_for("the end of all runs", || {
        let runs = place.runs();
        (runs.len() == 8 && runs.iter().all(|run| run.status == RunStatus::Completed)).then_some(())
    });
    // The lines of the file are in the order of the decisions.
    let mut working = std::collections::HashSet::new();
    let mut most = 0;
    for record in place.lines() {
        match record.status.is_working() {
            true => working.insert(record.run_id),
            false => working.remove(&record.run_id),
        };
        most = most.max(working.len());
    }
    assert_eq!(most, 2);
}

#[test]
fn a_run_that_kills_three_workers_is_lost_with_what_it_found() {
    let place = Place::new();
    let commit = place.commit_modules("one", 150);
    let run = place.review(&["--commit", &commit]);
    for attempt in 1..=3 {
        let worker = wait_for("the next attempt", || {
            let begun = place.run(&run).attempt == attempt && place.attempt(&run) == Some(attempt);
            // The third attempt records at least one unit.
            let covered = place.events(&run).iter().any(|event| matches!(event, RunEvent::Covered { .. }));
            (begun && (attempt < 3 || covered)).then(|| place.worker(&run)).flatten()
        });
        signal(worker, Signal::KILL);
        let said = wait_for("the recovery", || {
            let output = place.test.revdeck(&["runs"]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.starts_with("note: ").then_some(text)
        });
        let expected =
            if attempt < 3 { "note: 1 run resumed\n" } else { "note: 1 run lost: worker died in attempt 3, " };
        assert!(said.starts_with(expected), "{said}");
    }
    let record = place.run(&run);
    assert_eq!((record.status, record.ending.error_class), (RunStatus::Lost, Some(ErrorClass::WorkerDied)));
    assert!(
        record.outcome.finding_counts.total() > 0 && record.outcome.summary.ends_with("findings kept"),
        "{}",
        record.outcome.summary
    );
    assert_eq!(place.finding_ids(&run), place.journalled(&run));
    // A new request starts a new review, because three attempts are the limit. Units that the lost run covered are
    // carried over.
    let anew = place.review(&["--commit", &commit, "--wait"]);
    assert_ne!(anew, run);
    let record = place.run(&anew);
    assert_eq!((record.status, record.attempt, &record.links.resumed_from), (RunStatus::Completed, 1, &None));
    assert_eq!(
        (&record.links.carried_over_from, record.outcome.coverage.hunks_carried > 0),
        (&Some(run.clone()), true)
    );
    assert!(place.journalled(&run).is_subset(&place.finding_ids(&anew)));
    assert_eq!(place.run(&run).links.superseded_by, Some(anew), "the lost one is folded under it");
}

#[test]
fn a_failed_run_is_taken_over_by_the_next_one_of_the_same_code() {
    let place = Place::new();
    let commit = place.commit_modules("one", 70);
    let baseline = place.review(&["--commit", &commit, "--wait"]);
    // The leftovers of a worker that failed after its first unit.
    let cut = place.events(&baseline).iter().position(|event| matches!(event, RunEvent::Covered { .. })).expect("one");
    let journal = place.journal_lines(&baseline);
    place.take_back(&baseline, &journal[..=cut], |record| record.status = RunStatus::Failed);
    std::fs::remove_file(place.output_path(&baseline)).expect("the output is there");
    let taken = place.journalled(&baseline);

    let next = place.review(&["--commit", &commit, "--wait"]);
    assert_ne!(next, baseline);
    let record = place.run(&next);
    assert_eq!((record.status, record.attempt), (RunStatus::Completed, 2));
    assert_eq!(record.links.carried_over_from, Some(baseline.clone()));
    assert_eq!(record.outcome.coverage.files_covered, 70);
    assert!(!taken.is_empty() && taken.is_subset(&place.finding_ids(&next)));
    let covered = place.events(&next).iter().filter(|event| matches!(event, RunEvent::Covered { .. })).count();
    assert_eq!(covered, 70, "a file is covered once");
    for finding in place.output(&next).expect("an output").findings {
        assert_eq!(finding.last_run_id, next);
    }
}

#[test]
fn a_run_killed_after_its_output_is_completed_not_lost() {
    let place = Place::new();
    let commit = place.commit_modules("one", 3);
    let run = place.review(&["--commit", &commit, "--wait"]);
    wait_for("the worker's last words", || {
        matches!(place.events(&run).last(), Some(RunEvent::Finished { .. })).then_some(())
    });
    let expected = place.run(&run);
    place.take_back(&run, &place.journal_lines(&run), |record| {
        record.status = RunStatus::Resolving;
        record.attempt = 3;
        record.outcome.summary.clear();
    });
    assert!(place.run(&run).status.is_working());
    place.revdeck(&["runs"]);
    let record = place.run(&run);
    assert_eq!((record.status, &record.outcome.summary), (RunStatus::Completed, &expected.outcome.summary));
    assert_eq!(record.outcome.finding_counts, expected.outcome.finding_counts);
}

#[test]
fn a_clock_that_goes_backwards_keeps_no_finding_addressed() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let first = place.review(&["--commit", &commit, "--wait"]);
    let id = place.finding_ids(&first).into_iter().next().expect("a finding");
    let at = |now: &str, arguments: &[&str]| {
        let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.args(arguments).env("REVDECK_NOW", now).output().expect("revdeck starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let status = || place.store().status(&id).expect("readable");
    at("2031-05-06T07:08:09Z", &["triage", id.as_str(), "addressed", "--reason", "fixed"]);
    assert_eq!(status(), FindingStatus::Addressed);
    at("2029-05-06T07:08:09Z", &["review", "--commit", &commit, "--force", "--wait"]);
    assert_eq!(status(), FindingStatus::Unresolved, "it was claimed first, whatever the clock said");
}

#[test]
fn what_was_decided_meets_the_next_report() {
    let place = Place::new();
    let commit = place.commit_modules("one", 1);
    let first = place.review(&["--commit", &commit, "--wait"]);
    let ids: Vec<_> = place.finding_ids(&first).into_iter().collect();
    let [addressed, dismissed, ..] = &ids[..] else { panic!("too few findings: {ids:?}") };
    place.revdeck(&["triage", addressed.as_str(), "addressed", "--reason", "fixed"]);
    place.revdeck(&["triage", dismissed.as_str(), "dismissed", "--reason", "on purpose"]);
    let again = place.review(&["--commit", &commit, "--wait", "--force"]);

    let store = place.store();
    assert_eq!(store.status(addressed).expect("readable"), FindingStatus::Unresolved);
    assert_eq!(store.status(dismissed).expect("readable"), FindingStatus::Dismissed);
    let last = store.dispositions(addressed).expect("readable").pop().expect("one");
    assert_eq!((last.actor, last.action, last.previous), (Actor::Engine, TriageAction::Set, FindingStatus::Addressed));
    assert_eq!(last.run_id, Some(again.clone()));
    let output = place.output(&again).expect("an output");
    let status = |id| output.findings.iter().find(|finding| finding.finding_id == id).map(|finding| finding.status);
    assert_eq!(status(addressed.clone()), Some(FindingStatus::Unresolved));
    assert_eq!(status(dismissed.clone()), None, "it is not raised again");
    let held: Vec<_> = output.held_back.iter().map(|held| (&held.finding.finding_id, held.finding.status)).collect();
    assert_eq!(held, [(dismissed, FindingStatus::Dismissed)], "and it is kept");
}

#[test]
fn a_run_names_what_it_left_out() {
    let place = Place::new();
    let shown = |run: &revdeck::domain::RunId| -> (String, serde_json::Value) {
        let json = place.revdeck(&["show", run.as_str(), "--format", "json"]);
        (place.revdeck(&["show", run.as_str()]), serde_json::from_str(&json).expect("JSON"))
    };
    let left_out = |json: &serde_json::Value| -> Vec<String> {
        let files = json["coverage"]["left_out"].as_array().expect("a list").iter();
        files.map(|file| format!("{}: {}", file["path"], file["reason"]).replace('"', "")).collect()
    };
    place.test.write("Cargo.lock", "[[package]]\n");
    std::fs::remove_file(place.test.repo().join("README")).expect("removed");
    let skipped = place.review(&["--worktree", "--wait"]);
    assert_eq!(place.run(&skipped).status, RunStatus::Skipped);
    let (text, json) = shown(&skipped);
    assert_eq!(left_out(&json), ["Cargo.lock: lock_file", "README: deleted"]);
    assert!(text.contains("  Cargo.lock: lock file\n  README: deleted\n"), "{text}");

    // Only the request sees these files: one is too large to be stored, the filter refuses the others.
    place.modules("one", 1);
    place.test.write(".gitattributes", "*.key filter=vault\n");
    place.test.git(&["config", "filter.vault.clean", "false"]);
    place.test.git(&["config", "filter.vault.required", "true"]);
    place.test.write("a.key", "secret\n");
    place.test.write("large.py", "x = 1\n".repeat(200_000));
    let asked = place.test.revdeck(&["review", "--wait", "--fail-on", "none"]);
    assert_eq!(asked.status.code(), Some(3), "a part is not clean");
    let run = place.newest().expect("a run");
    assert_eq!(place.run(&run).status, RunStatus::Completed);
    let (text, json) = shown(&run);
    let left_out = left_out(&json);
    for file in ["a.key: unreadable", "large.py: oversized", "Cargo.lock: lock_file"] {
        assert_eq!(left_out.iter().filter(|left| *left == file).count(), 1, "{file} in {left_out:?}");
    }
    assert!(text.contains("could not be read: a.key"), "{text}");
    assert!(json["notes"][0].as_str().is_some_and(|note| note.starts_with("a.key is left out as git")), "{json}");
}
