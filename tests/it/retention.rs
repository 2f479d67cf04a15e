//! Integration tests: revdeck deletes the data of old runs, and its earlier answers about runs and findings stay
//! true.

use std::fs;

use revdeck::domain::{RunId, RunStatus};
use revdeck::git::Repo;
use serde_json::Value;

use crate::env::DONE;
use crate::runner::place::{Place, is_starting, wait_for};

fn json(place: &Place, arguments: &[&str]) -> Value {
    place.test.json(&[arguments, &["--format", "json"]].concat(), DONE)
}

fn finding(place: &Place, path: &str) -> String {
    let all = json(place, &["findings"]);
    let mut all = all["findings"].as_array().expect("findings").iter();
    let found = all.find(|finding| finding["repo_relative_path"] == path).expect("a finding");
    found["finding_id"].as_str().expect("an id").to_owned()
}

/// Returns every answer that revdeck gives about runs and findings.
fn told(place: &Place) -> Vec<String> {
    let mut told = Vec::new();
    let mut ask = |arguments: &[&str]| {
        // All ages are relative to one moment.
        let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output =
            command.env("REVDECK_NOW", "2126-01-01T00:00:00Z").args(arguments).output().expect("revdeck starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
        told.push(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stdout)));
    };
    ask(&["runs", "--format", "json"]);
    ask(&["findings", "--format", "json", "--status", "all", "--limit", "0"]);
    ask(&["ledger", "--format", "json"]);
    for run in place.runs() {
        ask(&["show", run.run_id.as_str(), "--format", "json"]);
        ask(&["details", run.run_id.as_str()]);
    }
    let all = json(place, &["findings", "--status", "all", "--limit", "0"]);
    for finding in all["findings"].as_array().expect("findings") {
        let id = finding["finding_id"].as_str().expect("an id");
        ask(&["show", id, "--format", "json"]);
        ask(&["details", id]);
    }
    told
}

fn journals(place: &Place) -> usize {
    let events = place.store().root().join("events");
    fs::read_dir(events).map_or(0, |folder| {
        folder.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "jsonl")).count()
    })
}

fn kept(place: &Place) -> Vec<RunId> {
    Repo::discover(&place.test.repo()).and_then(|repo| repo.kept_snapshot_runs()).expect("listed")
}

/// Reviews the worktree four times: with findings that are open, dismissed or addressed, and without findings.
fn runs(place: &Place) -> [RunId; 4] {
    let review = |folder: &str| {
        place.modules(folder, 1);
        let run = place.review(&["--worktree", "--wait"]);
        place.test.commit(folder);
        run
    };
    let (open, dismissed, addressed) = (review("open"), review("dismissed"), review("addressed"));
    place.revdeck(&["triage", &finding(place, "dismissed/module_0.py"), "dismissed", "--reason", "on purpose"]);
    place.revdeck(&["triage", &finding(place, "addressed/module_0.py"), "addressed"]);
    place.test.write("README", "another line\n");
    let clean = place.review(&["--worktree", "--wait"]);
    [open, dismissed, addressed, clean]
}

#[test]
fn what_is_told_is_the_same_before_and_after() {
    let place = Place::new();
    let [.., clean] = runs(&place);
    let (before, snapshots) = (told(&place), kept(&place));
    assert_eq!((journals(&place), snapshots.len()), (4, 4));
    let dry = json(&place, &["store", "prune", "--older-than", "0d", "--dry-run"]);
    assert_eq!(
        (&dry["journals"], &dry["snapshots"], &dry["snapshots_held"]),
        (&4.into(), &serde_json::json!([clean]), &3.into())
    );
    assert_eq!((journals(&place), kept(&place).len()), (4, 4));
    let done = json(&place, &["store", "prune", "--older-than", "0d"]);
    assert_eq!((&done["journals"], &done["bytes"]), (&4.into(), &dry["bytes"]));
    assert_eq!(journals(&place), 0);
    for (after, before) in told(&place).iter().zip(&before) {
        assert_eq!(after, before);
    }
    assert_eq!(kept(&place).len(), 3);
    assert!(place.revdeck(&["store", "verify"]).contains("the store is sound"));
    // A second prune has no work to do.
    let again = json(&place, &["store", "prune", "--older-than", "0d"]);
    assert_eq!(
        (&again["journals"], &again["lines"], &again["snapshots"]),
        (&0.into(), &0.into(), &serde_json::json!([]))
    );
}

#[test]
fn the_code_of_findings_that_are_not_settled_stays() {
    for settled in [false, true] {
        let place = Place::new();
        // This content is in no commit: only the snapshot has it.
        place.modules("open", 1);
        let open = place.review(&["--worktree", "--wait"]);
        let commit = place.run(&open).subject.snapshot_commit;
        fs::remove_dir_all(place.test.repo().join("open")).expect("removed");
        if settled {
            // This review sees that the code is gone.
            place.test.write("README", "another line\n");
            place.review(&["--worktree", "--wait"]);
        }
        let done = json(&place, &["store", "prune", "--older-than", "0d"]);
        assert_eq!(done["snapshots_held"], usize::from(!settled), "{done}");
        place.test.git(&["gc", "-q", "--prune=now"]);
        let there = place.test.command("git").args(["cat-file", "-e", &commit]).output().expect("git starts");
        assert_eq!(there.status.success(), !settled);
        let all = json(&place, &["findings", "--status", "all", "--limit", "0"]);
        assert!(!all["findings"].as_array().expect("findings").is_empty(), "findings stay");
    }
}

#[test]
fn age_and_number_must_both_say_so_unless_one_is_named() {
    let place = Place::new();
    runs(&place);
    let would =
        |arguments: &[&str]| json(&place, &[&["store", "prune", "--dry-run"], arguments].concat())["journals"].clone();
    for (arguments, journals) in [
        (&[][..], 0),
        (&["--older-than", "0d"], 4),
        (&["--keep", "0"], 4),
        (&["--keep", "1"], 3),
        (&["--keep", "9"], 0),
        (&["--older-than", "1d"], 0),
        (&["--older-than", "0d", "--keep", "3"], 1),
        (&["--keep-days", "0", "--keep-runs", "2"], 2),
    ] {
        assert_eq!(would(arguments), journals, "{arguments:?}");
    }
    place.settings("[retention]\nkeep_days = 1\nkeep_runs = 1\n");
    assert_eq!(would(&[]), 0, "they are young");
    for (days, runs) in [(0, 1), (1, 0)] {
        place.settings(&format!("[retention]\nkeep_days = {days}\nkeep_runs = {runs}\n"));
        assert_eq!(would(&[]), 0, "for ever");
    }
}

#[test]
fn a_worker_keeps_house_once_a_day() {
    let place = Place::new();
    place.settings("[retention]\nkeep_days = 10\nkeep_runs = 1\n");
    let review = |day: u32, folder: &str| {
        place.modules(folder, 1);
        let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.env("REVDECK_NOW", format!("2026-03-{day:02}T10:00:00Z")).args(["review", "--worktree", "--wait"]);
        assert!(command.output().expect("revdeck starts").status.success());
        let run = place.newest().expect("a run");
        // The worker continues for a moment after the end of its run.
        wait_for("the end of its worker", || (!is_starting(&place.store(), &run)).then_some(run.clone()))
    };
    let first = review(1, "one");
    review(5, "two");
    assert_eq!(journals(&place), 2, "nothing is old");
    review(20, "three");
    assert_eq!(journals(&place), 2, "the second one changed today: the third stands for it");
    assert_eq!(place.events(&first), []);
    assert_eq!(place.run(&first).status, RunStatus::Completed);
    assert!(!place.finding_ids(&first).is_empty());
}
