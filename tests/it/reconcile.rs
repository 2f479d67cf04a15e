//! Integration tests: startup repairs the leftovers of killed processes and reports each repair once.

use std::fs;
use std::io::Write as _;

use revdeck::config::Paths;
use revdeck::domain::{RunEvent, RunId, RunStatus};
use revdeck::git::Repo;
use revdeck::store::{Leftover, RecoveryNotice};
use rustix::process::Signal;

use crate::runner::place::{Place, signal, wait_for};

fn id(number: usize) -> RunId {
    format!("ar_01JAAAAAAAAAAAAAAAAAAAA{number:03}").parse().expect("an id")
}

/// Returns the messages that a command prints to standard error.
fn said(place: &Place, arguments: &[&str]) -> String {
    let output = place.test.revdeck(arguments);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Creates a run and kills its worker before the run ends.
fn killed(place: &Place, folder: &str) -> RunId {
    let commit = place.commit_modules(folder, 150);
    let run = place.review(&["--commit", &commit]);
    let worker = wait_for("its worker", || place.worker(&run));
    signal(worker, Signal::KILL);
    wait_for("its lock", || (!place.store().is_live(&run).expect("the lock")).then_some(()));
    run
}

#[test]
fn leftovers_go_and_are_told_once() {
    let place = Place::new();
    let store = place.store();
    let checkouts = Paths::from_home(&place.test.home()).cache.join("checkouts").join(&store.info().key);
    let live = id(1);
    let _lock = store.lock_run(&live).expect("locked").expect("free");
    for run in [&live, &id(2), &id(3)] {
        fs::create_dir_all(checkouts.join(run.as_str()).join("src")).expect("a folder");
    }
    assert_eq!(said(&place, &["runs"]), "note: 2 leftover worktrees removed\n");
    assert_eq!(said(&place, &["runs"]), "", "told once");
    assert!(checkouts.join(live.as_str()).exists(), "nobody takes it from under a worker");
    assert_eq!(fs::read_dir(&checkouts).expect("the folder").count(), 1);
}

#[test]
fn a_run_that_was_never_recorded_leaves_nothing_and_nobody_elses_snapshot_goes() {
    let place = Place::new();
    let (store, repo) = (place.store(), Repo::discover(&place.test.repo()).expect("a repository"));
    let head = repo.head();
    // Leftovers of another home: this home has no record of that run.
    let (half_made, elsewhere) = (id(1), id(2));
    let die = |run: &RunId| {
        store
            .with_lock(|locked| {
                locked.write_pending_marker(run)?;
                let note = RunEvent::Note { text: "a note".to_owned() };
                store.open_journal(run)?.append(revdeck::domain::Time::UNIX_EPOCH, note)
            })
            .expect("begun");
        repo.keep_snapshot(run, &head).expect("kept");
    };
    repo.keep_snapshot(&elsewhere, &head).expect("kept");
    die(&half_made);
    assert_eq!(said(&place, &["runs"]), "note: 1 leftover snapshot released\n");
    assert_eq!(said(&place, &["runs"]), "");
    assert_eq!(repo.kept_snapshot_runs().expect("listed"), std::slice::from_ref(&elsewhere));
    assert_eq!(fs::read_dir(store.root().join("events")).map_or(0, Iterator::count), 0, "its journal is gone");

    // The marker names a recorded run: the run stays. The request also removes the half-made run of another process.
    die(&half_made);
    let run = place.review(&["--commit", "HEAD", "--wait"]);
    assert!(!store.has_pending_run(), "a request cleans up after itself");
    assert!(!repo.kept_snapshot_runs().expect("listed").contains(&half_made), "and after others");
    store.with_lock(|locked| locked.write_pending_marker(&run)).expect("begun");
    assert_eq!(said(&place, &["runs"]), "");
    assert!(!store.has_pending_run());
    assert_eq!(repo.kept_snapshot_runs().expect("listed"), [elsewhere, run]);
}

#[test]
fn what_a_process_without_a_person_settles_is_told_at_the_next_start() {
    let place = Place::new();
    let run = killed(&place, "one");
    // A hook requests another review and finds the dead worker.
    place.revdeck(&["hook", "run", "post-commit", "--commit", "HEAD~1"]);
    assert!(place.run(&run).attempt <= 2);
    assert_eq!(said(&place, &["runs"]), "note: 1 run resumed\n");
    let notes: Vec<String> = place
        .events(&run)
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::Note { text } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(notes, ["worker died in attempt 1 of 3; resumed"], "the details are in the run's journal");
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
    assert_eq!(said(&place, &["runs"]), "");
}

#[test]
fn a_review_tells_what_it_found_on_its_way() {
    let place = Place::new();
    let run = killed(&place, "one");
    assert_eq!(said(&place, &["review", "--commit", "HEAD~1"]), "note: 1 run resumed\n");
    assert_eq!(said(&place, &["runs"]), "");
    place.ended(&run);
}

#[test]
fn news_have_an_end_and_survive_torn_lines() {
    let place = Place::new();
    let store = place.store();
    let lost = |number: usize| RecoveryNotice::Run {
        run_id: id(number),
        status: RunStatus::Lost,
        cause: "worker died in turn 7".to_owned(),
        findings: 4,
    };
    assert_eq!(store.take_notices().expect("read"), []);
    assert!(!store.root().exists(), "a look makes nothing");
    store.append_notices(&[lost(1)]).expect("told");
    let path = store.root().join("news.ndjson");
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("the file");
    file.write_all(b"{\"news\":\"run\",\"run_").expect("torn");
    let worktree = RecoveryNotice::Removed { leftover: Leftover::Worktree, count: 1 };
    store.append_notices(std::slice::from_ref(&worktree)).expect("told");
    assert_eq!(store.take_notices().expect("read"), [lost(1), worktree]);
    assert_eq!(store.take_notices().expect("read"), []);
    for number in 0..1000 {
        store.append_notices(&[lost(number)]).expect("told");
    }
    assert!(fs::metadata(&path).expect("the file").len() <= 48 << 10);
    let news = store.take_notices().expect("read");
    assert!(news.len() > 100 && news.last() == Some(&lost(999)), "{}", news.len());
    assert!(store.verify().expect("read").is_clean());
}
