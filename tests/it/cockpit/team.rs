//! Teams that are joined and left while the cockpit is open.

use revdeck::store::TeamProgress;

use super::Cockpit;
use crate::env::{DONE, TestEnvironment, run};
use crate::runner::place::wait_for;
use crate::team::machines::{machine, member};
use crate::team::postgres_server::{OWNER, TestDatabase, database};
use crate::team::{Team, ids, join, review, status, sync};

/// Opens the cockpit over the two findings of a review.
fn open(machine: &TestEnvironment) -> Cockpit {
    machine.settings("on_open = \"nothing\"\n");
    let cockpit = Cockpit::open(machine);
    wait_for_header(&cockpit, "2 open", true);
    cockpit
}

/// Waits until the first line of the screen shows a text, or shows it no longer.
fn wait_for_header(cockpit: &Cockpit, text: &str, is_shown: bool) {
    let header = |screen: &str| screen.lines().next().unwrap_or_default().contains(text);
    cockpit.wait(&format!("{text:?} in the header: {is_shown}"), |screen| header(screen) == is_shown);
}

/// Has Ada join the database.
fn join_database(ada: &TestEnvironment, database: &TestDatabase) {
    run(ada, &["team", "join", &database.address(OWNER), "--machine", "ada-1"], DONE);
}

/// Has Ada leave the team, as soon as no exchange is under way.
fn leave(ada: &TestEnvironment) {
    wait_for("leaving", || ada.revdeck(&["team", "leave"]).status.success().then_some(()));
}

/// Has Bob dismiss a finding, and Ada join the database again: waits until Ada has the decision.
fn join_again_after_a_decision(ada: &TestEnvironment, bob: &TestEnvironment, database: &TestDatabase, finding: &str) {
    sync(bob);
    run(bob, &["triage", finding, "dismissed", "--reason", "intended"], DONE);
    sync(bob);
    join_database(ada, database);
    wait_for("the decision at Ada's", || (status(ada, finding) == "dismissed").then_some(()));
}

#[test]
fn the_header_follows_joining_an_exchange_and_leaving() {
    let team = Team::new();
    let ada = team.machine("Ada");
    review(&ada);
    let cockpit = open(&ada);
    join(&ada, "ada-1");
    wait_for_header(&cockpit, "1 to send", true);
    sync(&ada);
    wait_for_header(&cockpit, "synced ", true);
    run(&ada, &["team", "leave"], DONE);
    wait_for_header(&cockpit, "synced ", false);
    cockpit.quit();
}

#[test]
fn a_database_is_followed_from_the_moment_of_joining() {
    let Some(database) = database() else { return };
    let (ada, bob) = (machine("Ada"), member(&database, "Bob"));
    let found = ids(&review(&ada));
    let cockpit = open(&ada);
    join_database(&ada, &database);
    wait_for_header(&cockpit, "synced ", true);
    leave(&ada);
    wait_for_header(&cockpit, "synced ", false);
    join_again_after_a_decision(&ada, &bob, &database, &found[0]);
    wait_for_header(&cockpit, "1 open", true);
    cockpit.quit();
}

#[test]
fn a_team_that_was_left_after_a_failure_is_followed_when_it_is_joined_again() {
    let Some(database) = database() else { return };
    let (ada, bob) = (machine("Ada"), member(&database, "Bob"));
    let found = ids(&review(&ada));
    let cockpit = open(&ada);
    join_database(&ada, &database);
    wait_for_header(&cockpit, "synced ", true);
    // The last exchange before leaving failed.
    let store = ada.store();
    let progress = store.team_progress().expect("progress");
    store.write_team_progress(&TeamProgress { failure: Some("no answer".into()), ..progress }).expect("written");
    wait_for_header(&cockpit, "team offline", true);
    leave(&ada);
    wait_for_header(&cockpit, "team offline", false);
    join_again_after_a_decision(&ada, &bob, &database, &found[0]);
    cockpit.quit();
}
