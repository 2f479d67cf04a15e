//! The budget of a team: what all machines together may spend.

use serde_json::{Value, json};

use super::machines::{end_of, member, member_with_model, report, start_review, two_turns};
use super::postgres_server::{OWNER, database};
use super::{CHANGE, sync};
use crate::embeddings::{self, fill_shop};
use crate::env::{DONE, INCOMPLETE, out, run};
use crate::llm::server::{Model, Turn};
use crate::runner::place::wait_for;

#[test]
fn the_budget_of_the_team_holds_exactly_under_concurrency() {
    use revdeck::team::postgres::{Database, DatabaseAddress, TeamReservation};
    let Some(database) = database() else { return };
    member(&database, "Ada");
    let address = DatabaseAddress::parse(&database.address(OWNER)).expect("an address");
    Database::connect(&address).expect("a connection").set_budget("p", Some(1.0), Some(1_000_000)).expect("set");
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let address = address.clone();
            std::thread::spawn(move || {
                let connected = Database::connect(&address).expect("a connection");
                let name = format!("machine-{number}").parse().expect("a name");
                let mut spent = 0.0;
                for request in 0..40 {
                    let id = format!("{number}-{request}");
                    match connected.reserve("p", &name, &id, Some(0.03), 1_000).expect("an answer") {
                        // Some answers cost less than was reserved, and some machines die before they can say so.
                        TeamReservation::Granted if request % 3 == 0 => spent += 0.03,
                        TeamReservation::Granted => {
                            connected.settle("p", &id, 0.01, 500).expect("settled");
                            spent += 0.01;
                        }
                        TeamReservation::MustWait | TeamReservation::Refused(_) | TeamReservation::Unpriced => {}
                    }
                }
                spent
            })
        })
        .collect();
    let spent: f64 = workers.into_iter().map(|worker| worker.join().expect("a sum")).sum();
    let known = Database::connect(&address).expect("a connection").read_budget("p").expect("a budget");
    assert!((known.cost - spent).abs() < 1e-9, "{} is recorded of {spent}", known.cost);
    assert!(spent <= 1.0 + 1e-9 && spent > 0.9, "{spent} of $1 is spent");
}

#[test]
fn a_request_without_a_price_is_not_sent_under_a_limit_in_dollars() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let settings = ada.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let unpriced = text.replace("price_input = 2.0\nprice_output = 8.0\n", "").replace("gpt-4o-test", "made-up");
    std::fs::write(&settings, unpriced).expect("settings");
    run(&ada, &["team", "budget", "--day-cost", "20"], DONE);
    let refused = ada.revdeck(&["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    assert_eq!((refused.status.code(), model.asked()), (Some(INCOMPLETE), 0), "{}", out(&refused));
    run(&ada, &["team", "budget", "--none"], DONE);
    run(&ada, &["team", "budget", "--day-tokens", "9000000"], DONE);
    end_of(start_review(&ada));
    assert_eq!(model.asked(), 1);
}

#[test]
fn an_answer_that_broke_off_counts_as_reserved() {
    let Some(database) = database() else { return };
    // The first answer of each review ends before it has said anything; the model may charge for it.
    let broken = || Turn::Break { text: String::new() };
    let model = Model::start(vec![broken(), broken(), report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let spent = || ada.json(&["team", "budget", "--format", "json"], DONE)["cost"].as_f64().expect("a cost");
    let review = ["review", "--commit", "HEAD", "--wait", "--force", "--format", "json"];
    ada.revdeck(&review);
    let reserved = spent();
    assert_eq!(model.asked(), 1);
    assert!(reserved > 0.0, "an answer that may be charged counts for nothing");
    // The second one is sent again, and what both cost counts.
    let settings = ada.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, text.replace("attempts = 1", "attempts = 2")).expect("settings");
    ada.json(&review, DONE);
    assert_eq!(model.asked(), 3);
    assert!(spent() > 2.0 * reserved, "{} of two times {reserved} counts", spent());
    assert_eq!(database.sql("SELECT count(*) FROM revdeck.spending WHERE NOT is_final"), "0");
}

#[test]
fn a_connection_that_is_lost_between_two_turns_ends_no_review() {
    let Some(database) = database() else { return };
    let model = Model::start(two_turns());
    let ada = member_with_model(&database, "Ada", &model);
    run(&ada, &["team", "budget", "--day-cost", "20"], DONE);
    model.hold_after(0);
    let review = start_review(&ada);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    database.cut_connections();
    model.let_go();
    assert_eq!((end_of(review)["run"]["status"].clone(), model.asked()), (json!("completed"), 2));
    let settled = "SELECT count(*) FROM revdeck.spending WHERE is_final";
    assert_eq!(database.sql(settled), "2");
}

#[test]
fn a_review_ends_at_the_budget_of_the_team() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report(), report()]);
    let ada = member_with_model(&database, "Ada", &model);
    let bob = member_with_model(&database, "Bob", &model);
    end_of(start_review(&ada));
    let spent = ada.json(&["team", "budget", "--format", "json"], DONE);
    assert!(spent["cost"].as_f64().expect("a cost") > 0.0 && spent["day_cost"].is_null(), "{spent}");
    let limit = format!("{:.6}", spent["cost"].as_f64().expect("a cost") * 1.1);
    run(&ada, &["team", "budget", "--day-cost", &limit], DONE);
    bob.write("c.py", CHANGE);
    bob.commit("More");
    let refused = bob.revdeck(&["review", "--commit", "HEAD", "--wait", "--format", "json"]);
    assert_eq!(refused.status.code(), Some(INCOMPLETE), "{}", out(&refused));
    let refused: Value = serde_json::from_str(&out(&refused)).expect("JSON");
    assert_eq!((&refused["run"]["cancel_reason"], model.asked()), (&json!("budget_exhausted"), 1));
    assert_eq!(refused["run"]["budget_stop"]["budget"], "team_cost", "{refused}");
    // A limit of the team cannot be passed by taking the database away.
    sync(&bob);
    database.sql("ALTER TABLE revdeck.spending RENAME TO hidden");
    bob.write("d.py", CHANGE);
    bob.commit("Even more");
    bob.revdeck(&["review", "--commit", "HEAD", "--wait"]);
    assert_eq!(model.asked(), 1, "a request was sent without a reservation");
    database.sql("ALTER TABLE revdeck.hidden RENAME TO spending");
    run(&ada, &["team", "budget", "--none"], DONE);
    sync(&bob);
    end_of(start_review(&bob));
    assert_eq!(model.asked(), 2);
}

#[test]
fn vectors_count_for_the_budget_of_the_team() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    fill_shop(&ada);
    let server = embeddings::Server::start(Box::new(embeddings::openai));
    // Each model has vectors of its own, so that all texts are new.
    let notes_with = |model: &str| {
        ada.settings(&format!(
            "[context.embeddings]\nkind = \"openai\"\nmodel = \"{model}\"\nbase_url = \"http://127.0.0.1:{}\"\n\
             api_key_cmd = \"printf made-up\"\n",
            server.port
        ));
        ada.json(&["context", "worktree", "--budget", "4000", "--format", "json"], DONE)["notes"].to_string()
    };
    let spent = || ada.json(&["team", "budget", "--format", "json"], DONE)["tokens"].as_u64().expect("tokens");
    notes_with("a");
    let asked = server.asked().len();
    let tokens = spent();
    assert!(asked > 0 && tokens > 0, "{asked} requests, {tokens} tokens");
    assert_eq!(
        database.sql("SELECT count(*) FROM revdeck.spending WHERE NOT is_final"),
        "0",
        "a request is not settled"
    );
    // What the day does not hold is not sent, and says so.
    run(&ada, &["team", "budget", "--day-tokens", &(tokens + 10).to_string()], DONE);
    let notes = notes_with("b");
    assert!(notes.contains("without what code means: ") && notes.contains("this request may take"), "{notes}");
    assert_eq!((server.asked().len(), spent()), (asked, tokens));
    // Neither is what has no known price, under a limit in US dollars.
    run(&ada, &["team", "budget", "--none"], DONE);
    run(&ada, &["team", "budget", "--day-cost", "20"], DONE);
    let notes = notes_with("b");
    assert!(notes.contains("your models.toml may say it"), "{notes}");
    assert_eq!(server.asked().len(), asked);
    run(&ada, &["team", "budget", "--none"], DONE);
    notes_with("b");
    assert!(server.asked().len() > asked && spent() > tokens);
}
