//! Claims of reviews: what one machine of a team reviews, another waits for and adopts.

use std::process::Child;

use revdeck::domain::{RunEvent, RunId};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::machines::{end_of, member_with_model, newest_run, report, start_review, two_turns, wait_for_note};
use super::postgres_server::{TestDatabase, database};
use super::{CHANGE, review};
use crate::env::{DONE, TestEnvironment, out, run};
use crate::llm::server::{Model, Turn};
use crate::mcp::client::McpClient;
use crate::runner::place::{gone, signal, wait_for};

/// A review of Ada's machine that holds its claim, because the model does not answer yet, and a machine of Bob with the
/// same code.
struct HeldReview {
    database: TestDatabase,
    model: Model,
    ada: TestEnvironment,
    bob: TestEnvironment,
    /// The command that waits for the review of Ada's machine.
    first: Child,
}

impl HeldReview {
    /// Starts a review whose first request has arrived. `turns` are the answers of the model, which come when it is let go.
    /// Returns `None` where no PostgreSQL is installed.
    fn start(turns: Vec<Turn>) -> Option<Self> {
        let database = database()?;
        let model = Model::start(turns);
        let ada = member_with_model(&database, "Ada", &model);
        let bob = member_with_model(&database, "Bob", &model);
        model.hold_after(0);
        let first = start_review(&ada);
        wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
        Some(Self { database, model, ada, bob, first })
    }

    /// Starts the same review on Bob's machine. Returns its command when it waits for Ada's machine.
    fn start_waiting_review(&self) -> Child {
        let second = start_review(&self.bob);
        wait_for_note(&self.bob, "waits for ada-1");
        second
    }

    /// Kills the worker of Ada's review.
    fn kill_worker(&self) {
        let run = newest_run(&self.ada)["run_id"].as_str().expect("an id").parse().expect("an id");
        let worker = find_worker(&self.ada, &run);
        signal(worker, Signal::KILL);
        wait_for("the worker's end", || gone(worker).then_some(()));
    }
}

/// Returns the process that has worked on a run first.
fn find_worker(machine: &TestEnvironment, run: &RunId) -> u32 {
    let entries = machine.store().read_journal(run).expect("a journal");
    let started = entries.iter().find_map(|entry| match entry.event {
        RunEvent::Started { worker, .. } => Some(worker),
        _ => None,
    });
    started.expect("a worker")
}

fn count_claims(database: &TestDatabase) -> String {
    database.sql("SELECT count(*) FROM revdeck.claims")
}

/// Ends the time of all claims, as if it had passed.
fn expire_claims(database: &TestDatabase) {
    database.sql("UPDATE revdeck.claims SET ends_at = now() - interval '1 second'");
}

#[test]
fn an_equivalent_review_elsewhere_is_adopted_and_not_paid_twice() {
    let Some(held) = HeldReview::start(vec![report()]) else { return };
    let second = start_review(&held.bob);
    wait_for_note(&held.bob, "waits for ada-1, which reviews the same as ar_");
    assert_eq!(newest_run(&held.bob)["status"], "reviewing");
    held.model.let_go();
    let (first, second) = (end_of(held.first), end_of(second));
    assert_eq!(held.model.asked(), 1, "the review was paid twice");
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
    assert_eq!((&second["run"]["team"]["machine"], &second["decision"]["action"]), (&json!("ada-1"), &json!("adopt")));
    assert_eq!(second["findings"][0]["title"], "Every error is hidden");
    let own = held.bob.json(&["runs", "--format", "json"], DONE)["runs"].clone();
    let ended = own.as_array().expect("runs").iter().find(|run| run["status"] == "cancelled").expect("its own run");
    assert_eq!((&ended["cancel_reason"], &ended["reused_from"]), (&json!("duplicate"), &first["run"]["run_id"]));
    assert_eq!(ended["tokens"]["input"].as_u64().unwrap_or(0), 0);
    assert_eq!(count_claims(&held.database), "0", "the claim has ended");
    // Later requests reuse it like any other.
    assert_eq!(review(&held.bob)["decision"]["action"], "reuse");
    // And a machine that has received nothing yet, too: it claims, receives and takes the result.
    let cleo = member_with_model(&held.database, "Cleo", &held.model);
    let third = end_of(start_review(&cleo));
    assert_eq!((held.model.asked(), &third["run"]["run_id"]), (1, &first["run"]["run_id"]));
}

#[test]
fn a_review_of_all_that_the_change_leaves_in_sight_answers_others() {
    let Some(database) = database() else { return };
    let model = Model::start(Vec::new());
    let [ada, bob] = ["Ada", "Bob"].map(|person| {
        let machine = member_with_model(&database, person, &model);
        machine.write("c.py", CHANGE);
        // No reviewer reads a new file of a vendored folder, here or elsewhere.
        machine.write("third_party/lib.py", CHANGE);
        machine.commit("Take a library");
        machine
    });
    let review = |machine: &TestEnvironment| -> Value {
        let printed = machine.revdeck(&["review", "--commit", "HEAD", "--wait", "--format", "json"]);
        serde_json::from_str(&out(&printed)).expect("JSON")
    };
    let first = review(&ada);
    let reused = review(&ada)["decision"].clone();
    assert_eq!(reused["action"], "reuse", "{reused}");
    assert!(reused["reason"].as_str().expect("a reason").contains("puts out of sight"), "{reused}");
    let second = review(&bob);
    assert_eq!((model.asked(), &second["run"]["run_id"]), (1, &first["run"]["run_id"]), "the review was paid twice");
}

#[test]
fn a_machine_whose_reviews_stay_there_takes_those_of_others() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let [ada, bob] = ["Ada", "Bob"].map(|person| member_with_model(&database, person, &model));
    let settings = bob.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("{text}[team]\nshare = \"decisions\"\n")).expect("settings");
    let first = end_of(start_review(&ada));
    // Bob has received nothing yet.
    let second = end_of(start_review(&bob));
    assert_eq!((model.asked(), &second["run"]["run_id"]), (1, &first["run"]["run_id"]), "the review was paid twice");
}

#[test]
fn a_forced_review_and_one_of_other_code_wait_for_nobody() {
    let Some(held) = HeldReview::start(vec![report(), report(), report()]) else { return };
    run(&held.bob, &["review", "--commit", "HEAD", "--force"], DONE);
    wait_for("the forced request", || (held.model.asked() == 2).then_some(()));
    held.bob.write("c.py", CHANGE);
    held.bob.commit("More");
    run(&held.bob, &["review", "--commit", "HEAD"], DONE);
    wait_for("the request of other code", || (held.model.asked() == 3).then_some(()));
    held.model.let_go();
    end_of(held.first);
}

#[test]
fn a_killed_worker_goes_on_with_its_claim() {
    let Some(held) = HeldReview::start(vec![report(), report()]) else { return };
    let second = held.start_waiting_review();
    held.kill_worker();
    // The waiting command starts a new worker, which has the claim of the old one.
    wait_for("the request that is sent again", || (held.model.asked() == 2).then_some(()));
    held.model.let_go();
    let (first, second) = (end_of(held.first), end_of(second));
    assert_eq!((&first["run"]["attempt"], held.model.asked()), (&json!(2), 2));
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
}

#[test]
fn a_machine_that_has_died_holds_nobody_for_long() {
    let Some(mut held) = HeldReview::start(vec![report(), report()]) else { return };
    // The whole machine is gone: nobody there starts a worker again.
    held.first.kill().expect("killed");
    held.first.wait().expect("an end");
    held.kill_worker();
    let second = held.start_waiting_review();
    expire_claims(&held.database);
    wait_for("the request of Bob", || (held.model.asked() == 2).then_some(()));
    held.model.let_go();
    let second = end_of(second);
    assert_eq!(second["run"]["team"], Value::Null);
    assert_eq!(second["findings"].as_array().expect("findings").len(), 1);
}

#[test]
fn a_claim_that_this_machine_may_not_end_is_waited_for() {
    let Some(mut held) = HeldReview::start(vec![report(), report()]) else { return };
    // As if the address of the database had named another role when the run began.
    held.database.sql("UPDATE revdeck.claims SET held_by = 'somebody'");
    let ended = newest_run(&held.ada)["run_id"].as_str().expect("an id").to_owned();
    held.ada.revdeck(&["cancel", &ended]);
    held.first.wait().expect("an end");
    let second = start_review(&held.ada);
    wait_for_note(&held.ada, "waits for ada-1");
    expire_claims(&held.database);
    wait_for("the second request", || (held.model.asked() == 2).then_some(()));
    held.model.let_go();
    assert_eq!(end_of(second)["findings"].as_array().expect("findings").len(), 1);
}

#[test]
fn a_result_that_a_killed_worker_has_not_sent_goes_out_with_the_next_request() {
    let Some(held) = HeldReview::start(vec![report()]) else { return };
    held.database.refuse_connections(true);
    held.model.let_go();
    // The review is complete here, and nobody else knows.
    wait_for("the end of the review", || (newest_run(&held.ada)["status"] == "completed").then_some(()));
    held.kill_worker();
    end_of(held.first);
    held.database.refuse_connections(false);
    assert_eq!(count_claims(&held.database), "1");
    assert_eq!(review(&held.ada)["decision"]["action"], "reuse");
    let second = end_of(start_review(&held.bob));
    assert_eq!(
        (held.model.asked(), &second["run"]["team"]["machine"]),
        (1, &json!("ada-1")),
        "the review was paid twice"
    );
    wait_for("the end of the claim", || (count_claims(&held.database) == "0").then_some(()));
}

#[test]
fn a_claim_that_another_machine_got_meanwhile_is_noticed_before_the_next_request() {
    let Some(held) = HeldReview::start(vec![two_turns().remove(0), report()]) else { return };
    // As if Ada's machine had been suspended while it waited for the answer.
    expire_claims(&held.database);
    let second = start_review(&held.bob);
    wait_for("the request of Bob", || (held.model.asked() == 2).then_some(()));
    held.model.let_go();
    let (first, second) = (end_of(held.first), end_of(second));
    assert_eq!(held.model.asked(), 2, "the rest of the review was paid twice");
    assert_eq!((&first["run"]["run_id"], &second["run"]["team"]), (&second["run"]["run_id"], &Value::Null));
}

#[test]
fn a_run_that_began_without_a_claim_takes_it_when_the_database_is_back() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![two_turns().remove(0), report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let bob = member_with_model(&database, "Bob", &model);
    database.refuse_connections(true);
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    wait_for_note(&ada, "the review goes on without asking the team");
    database.refuse_connections(false);
    wait_for("the claim of Ada", || (count_claims(&database) == "1").then_some(()));
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    model.let_go();
    let (first, second) = (end_of(first), end_of(second));
    assert_eq!((model.asked(), &second["run"]["run_id"]), (2, &first["run"]["run_id"]), "the review was paid twice");
}

#[test]
fn a_claim_holds_although_what_others_have_sent_cannot_be_received() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let bob = member_with_model(&database, "Bob", &model);
    database.sql("ALTER FUNCTION revdeck.list_logs RENAME TO hidden");
    model.hold_after(0);
    let first = start_review(&ada);
    wait_for("the request of Ada", || (model.asked() == 1).then_some(()));
    database.sql("ALTER FUNCTION revdeck.hidden RENAME TO list_logs");
    let second = start_review(&bob);
    wait_for_note(&bob, "waits for ada-1");
    model.let_go();
    // Bob does not wait until its time is over.
    let first = end_of(first);
    wait_for("the end of the claim", || (count_claims(&database) == "0").then_some(()));
    let second = end_of(second);
    assert_eq!((model.asked(), &second["run"]["run_id"]), (1, &first["run"]["run_id"]), "the review was paid twice");
}

#[test]
fn a_member_of_a_panel_takes_what_its_reviewer_has_reviewed_alone_elsewhere() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let [ada, bob] = ["Ada", "Bob"].map(|person| member_with_model(&database, person, &model));
    let alone = end_of(start_review(&ada));
    let review = ["review", "--commit", "HEAD", "--reviewer", "builtin,mine", "--wait", "--format", "json"];
    let listed = bob.json(&review, DONE);
    assert_eq!(model.asked(), 1, "the review was paid twice");
    let panel: RunId = listed["run"]["run_id"].as_str().expect("an id").parse().expect("an id");
    let record = bob.store().run(&panel).expect("readable").expect("a run");
    let members = record.links.panel.expect("a panel").members;
    let mine = &members.iter().find(|member| member.reviewer == "mine").expect("a member").run_id;
    let member = bob.store().run(mine).expect("readable").expect("a run");
    let answer = member.links.reused_from.as_ref().map(RunId::as_str);
    assert_eq!(answer, alone["run"]["run_id"].as_str());
    let by_mine = |finding: &Value| finding["voices"].to_string().contains("\"mine\"");
    assert!(listed["findings"].as_array().expect("findings").iter().any(by_mine), "{listed}");
}

#[test]
fn a_member_that_has_ended_leaves_the_claim_to_its_panel() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member_with_model(&database, "Ada", &model);
    model.hold_after(0);
    let started = out(&ada.revdeck(&["review", "--commit", "HEAD", "--reviewer", "builtin,mine"]));
    let panel: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the request of the member", || (model.asked() == 1).then_some(()));
    let record = ada.store().run(&panel).expect("readable").expect("a run");
    let members = record.links.panel.expect("a panel").members;
    let builtin = &members.iter().find(|member| member.reviewer == "builtin").expect("a member").run_id;
    let has_ended = || ada.store().run(builtin).expect("readable").is_some_and(|member| member.status.is_terminal());
    wait_for("the result of the built-in member", || has_ended().then_some(()));
    let worker = find_worker(&ada, builtin);
    wait_for("the end of the built-in member", || gone(worker).then_some(()));
    // A result that was not sent.
    database.refuse_connections(true);
    let other = ["review", "--commit", "HEAD~1", "--reviewer", "builtin", "--wait", "--format", "json"];
    let other = ada.json(&other, DONE)["run"]["run_id"].as_str().expect("an id").parse().expect("an id");
    let worker = find_worker(&ada, &other);
    wait_for("the end of the other review", || gone(worker).then_some(()));
    database.refuse_connections(false);
    let to_send = || ada.store().team_status().expect("readable").expect("a team").to_send;
    assert_eq!((to_send(), count_claims(&database).as_str()), (1, "1"));
    // A worker that comes too late for the member sends it, and nothing else.
    run(&ada, &["worker", builtin.as_str()], DONE);
    assert_eq!((to_send(), count_claims(&database).as_str()), (0, "1"), "the claim of the panel has ended");
    model.let_go();
    wait_for("the end of the claim", || (count_claims(&database) == "0").then_some(()));
    assert_eq!(model.asked(), 1);
}

#[test]
fn a_lost_connection_loses_no_claim() {
    let Some(held) = HeldReview::start(vec![report()]) else { return };
    let second = held.start_waiting_review();
    held.database.cut_connections();
    assert_eq!(held.database.sql("SELECT count(*) FROM revdeck.claims WHERE ends_at > now()"), "1");
    held.model.let_go();
    let (first, second) = (end_of(held.first), end_of(second));
    assert_eq!(held.model.asked(), 1);
    assert_eq!(first["run"]["status"], "completed");
    assert_eq!(second["run"]["run_id"], first["run"]["run_id"]);
}

#[test]
fn a_review_without_a_database_goes_on_and_says_so() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member_with_model(&database, "Ada", &model);
    database.sql("DROP SCHEMA revdeck CASCADE");
    let reviewed = end_of(start_review(&ada));
    assert_eq!(reviewed["findings"].as_array().expect("findings").len(), 1);
    wait_for_note(&ada, "the review goes on without asking the team");
}

#[test]
fn a_paused_run_holds_nobody() {
    // The first turn of Ada, and the whole review of Bob.
    let Some(held) = HeldReview::start(vec![two_turns().remove(0), report()]) else { return };
    let paused = newest_run(&held.ada)["run_id"].as_str().expect("an id").to_owned();
    run(&held.ada, &["pause", &paused], DONE);
    let second = held.start_waiting_review();
    held.model.let_go();
    let second = end_of(second);
    assert_eq!((held.model.asked(), &second["run"]["team"]), (2, &Value::Null));
    // The paused run finds the result when it goes on.
    run(&held.ada, &["resume", &paused], DONE);
    let first = end_of(held.first);
    assert_eq!((held.model.asked(), &first["run"]["run_id"]), (2, &second["run"]["run_id"]));
}

#[test]
fn a_run_that_waits_for_another_machine_takes_no_slot() {
    let Some(held) = HeldReview::start(vec![report()]) else { return };
    let settings = held.bob.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("max_parallel_runs = 1\n{text}")).expect("settings");
    let second = held.start_waiting_review();
    let other =
        held.bob.json(&["review", "--commit", "HEAD", "--reviewer", "builtin", "--wait", "--format", "json"], DONE);
    assert_eq!(other["run"]["status"], "completed");
    assert_eq!(held.model.asked(), 1);
    held.model.let_go();
    assert_eq!(end_of(held.first)["run"]["run_id"], end_of(second)["run"]["run_id"]);
}

#[test]
fn an_assistant_hears_of_the_findings_of_an_adopted_review() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let bob = member_with_model(&database, "Bob", &model);
    let first = end_of(start_review(&ada));
    let mut assistant = McpClient::start(&bob, &[]);
    let answer = assistant.tool("request_review", json!({ "scope": "commit:HEAD", "wait_seconds": 30 }));
    let run_id = first["run"]["run_id"].as_str().expect("an id");
    let next = answer["next"].as_str().expect("a sentence");
    assert!(next.starts_with(&format!("auto_review_details(run_id=\"{run_id}\")")), "{answer}");
    assert_eq!(model.asked(), 1);
}
