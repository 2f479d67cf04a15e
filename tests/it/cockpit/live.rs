//! The Live view in a real terminal: a run that another process works on, and a review of real files.

use revdeck::domain::{FileCoverage, LineRange, RunEvent, RunStatus, Time};
use revdeck::store::HeartbeatState;

use super::{Cockpit, assert_silent, repository};

#[test]
fn a_run_is_followed_turn_by_turn_until_its_end() {
    let test = repository();
    test.commit("Second");
    let store = test.store();
    // This process acts as the worker: it holds the run's lock.
    let mut worker = crate::turns::write(&store, 2, crate::turns::Fate::Receiving, Time::now()).expect("a run");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("turn 7 of 20: receiving");
    cockpit.press("1V");
    cockpit.wait("the last answered turn", |screen| screen.contains("5 [6] 7…") && screen.contains("following"));
    let mut journal = store.open_journal(&worker.run).expect("a journal");
    let file = FileCoverage { path: "src/late.rs".into(), hunks: vec![LineRange::new(1, 2)], keys: Vec::new() };
    journal.append(Time::now(), RunEvent::Covered { file }).expect("appended");
    let pulse = worker.pulse.as_mut().expect("a pulse");
    pulse.set_state(Time::now(), HeartbeatState::Tools);
    cockpit.wait("what the worker did", |screen| screen.contains("src/late.rs") && screen.contains("running tools"));
    cockpit.press("\x1b[D");
    cockpit.wait("the turn before", |screen| screen.contains("[5] 6 7…") && screen.contains("not following"));
    cockpit.press("\x1b[F");
    cockpit.wait("the last answered turn", |screen| screen.contains("5 [6] 7…") && !screen.contains("not following"));
    store.update_run(&worker.run, Time::now(), |run| run.status = RunStatus::Completed).expect("updated");
    drop(worker);
    cockpit.wait("the end", |screen| screen.contains("✗ incomplete") && !screen.contains("following"));
    assert_silent(&cockpit);
    cockpit.press("\x1b");
    cockpit.wait("the panes", |screen| screen.contains("1 Runs"));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn the_change_of_a_finished_review_is_shown_with_its_findings() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the finding", |screen| screen.contains("History") && screen.contains("idle"));
    cockpit.press("V");
    let screen = cockpit.wait("the change", |screen| screen.contains("import os") && screen.contains("covered "));
    assert!(screen.contains("▓ ▾ job.py") && screen.contains("no cost"), "{screen}");
    assert_silent(&cockpit);
    cockpit.press("q");
    cockpit.wait_for("History");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}
