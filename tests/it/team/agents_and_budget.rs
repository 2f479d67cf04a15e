//! Command-line agents under the budget of a team.

use serde_json::{Value, json};

use super::machines::member;
use super::postgres_server::database;
use super::use_agent;
use crate::env::{DONE, INCOMPLETE, TestEnvironment, out, run};

/// Sets prices at which a single request costs far less than a run may, and what a run may cost.
fn set_prices(machine: &TestEnvironment, run_cost: &str) {
    let settings = machine.home().join("config.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let agent = text.split("price_input").next().expect("a reviewer");
    let more = format!("price_input = 0.1\nprice_output = 0.1\n[budget]\nrun_cost = {run_cost}\n");
    std::fs::write(&settings, format!("{agent}{more}")).expect("settings");
}

#[test]
fn an_agent_does_not_begin_where_its_run_could_pass_the_limit() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    let calls = use_agent(&ada);
    ada.write("c.py", "def load(path):\n    return open(path)\n");
    ada.commit("Load");
    run(&ada, &["team", "budget", "--day-cost", "0.5"], DONE);
    set_prices(&ada, "1.0");
    let review = ["review", "--commit", "HEAD", "--reviewer", "agent", "--wait", "--format", "json"];
    let refused = ada.revdeck(&review);
    assert_eq!(refused.status.code(), Some(INCOMPLETE), "{}", out(&refused));
    assert!(!calls.exists(), "the agent was started");
    let refused: Value = serde_json::from_str(&out(&refused)).expect("JSON");
    assert_eq!(refused["run"]["budget_stop"]["budget"], "team_cost", "{refused}");
    // A run that may take less than is left begins, and so does one without a limit. It then counts as what it took.
    let spent = || ada.json(&["team", "budget", "--format", "json"], DONE)["cost"].as_f64().expect("a cost");
    for (number, run_cost) in [(1, "0.2"), (2, "0")] {
        set_prices(&ada, run_cost);
        let reviewed = ada.json(&[&review[..], &["--force"]].concat(), DONE);
        assert_eq!(reviewed["run"]["status"], json!("completed"), "{reviewed}");
        assert_eq!(std::fs::read_to_string(&calls).expect("calls").lines().count(), number);
        assert!(spent() > 0.0 && spent() < 0.1, "{} was spent", spent());
    }
}
