//! Servers that report no usage: it is estimated, marked as that, and counted by the budgets.

use revdeck::config::ReviewerKind;
use revdeck::domain::{CancelReason, RunEvent, RunStatus};
use rstest::rstest;
use serde_json::Value;

use super::samples::stream;
use super::server::{Server, streamed};
use crate::env::INCOMPLETE;
use crate::runner::place::Place;

/// Returns the stream of a format without the counts of tokens.
fn uncounted(kind: ReviewerKind) -> String {
    let names = ["\"usage\":", "\"usageMetadata\":", "\"prompt_eval_count\":", "\"eval_count\":"];
    names.into_iter().fold(stream(kind), |text, name| text.replace(name, &name.replacen('"', "\"no_", 1)))
}

/// Creates a repository with a change, and a reviewer `m` that talks to the server.
fn place(kind: ReviewerKind, server: &Server, more: &str) -> Place {
    let place = Place::new();
    place.test.write("src/ä.rs", (1..200).map(|line| format!("let value_{line} = {line};\n")).collect::<String>());
    place.test.commit("change");
    let url = server.endpoint(kind).base_url.expect("an address");
    let prices = if kind == ReviewerKind::Ollama { "" } else { "price_input = 2.0\nprice_output = 8.0\n" };
    place.settings(&format!(
        "[reviewers.m]\nkind = \"{kind}\"\nmodel = \"m-1\"\nbase_url = \"{url}\"\napi_key_cmd = \"printf key\"\n{prices}{more}\n"
    ));
    place
}

#[rstest]
#[case::openai(ReviewerKind::Openai)]
#[case::responses(ReviewerKind::OpenaiResponses)]
#[case::anthropic(ReviewerKind::Anthropic)]
#[case::gemini(ReviewerKind::Gemini)]
#[case::ollama(ReviewerKind::Ollama)]
fn what_a_server_does_not_report_is_estimated(#[case] kind: ReviewerKind) {
    let server = Server::new(vec![streamed(&uncounted(kind)); 3]);
    let place = place(kind, &server, "[window]\nmax_turns = 2");
    place.test.revdeck(&["review", "--reviewer", "m", "--wait"]);
    let run = place.newest().expect("a run");
    let record = place.run(&run);
    let answers: Vec<_> = place
        .events(&run)
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::TurnAnswered { response, cost, .. } => Some((response.usage, cost)),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), 2, "{}", record.outcome.summary);
    for (usage, cost) in &answers {
        assert!(usage.estimated && usage.input > 1_000 && usage.output > 10, "{usage:?}");
        assert_eq!(*cost > 0.0, kind != ReviewerKind::Ollama);
    }
    assert_eq!(record.usage.tokens, answers.iter().map(|(usage, _)| *usage).sum());
    let shown = place.revdeck(&["show", run.as_str()]);
    assert!(shown.contains(&format!("~{} (estimated)", record.usage.tokens.total())), "{shown}");
    let json: Value = serde_json::from_str(&place.revdeck(&["show", run.as_str(), "--format", "json"])).expect("JSON");
    assert_eq!(json["run"]["tokens"]["estimated"], true);
    let account = std::fs::read_to_string(place.test.home().join("state/spending.ndjson")).unwrap_or_default();
    let paid: Vec<Value> = account.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let total: u64 = paid.iter().filter_map(|paid| paid["tokens"].as_u64()).sum();
    // What costs nothing has no account.
    assert_eq!(total, if kind == ReviewerKind::Ollama { 0 } else { record.usage.tokens.total() });
    assert!(paid.iter().all(|paid| paid["estimated"] == true), "{account}");
    // A free model costs nothing, which is no unknown cost.
    let stats: Value = serde_json::from_str(&place.revdeck(&["stats", "--format", "json"])).expect("JSON");
    assert_eq!(stats["worth"]["by_reviewer"][0]["cost"].as_f64(), Some(record.usage.cost), "{}", stats["worth"]);
    let tested = place.revdeck(&["reviewers", "test", "m"]);
    assert!(tested.contains("used       ~") && !tested.contains("~0 tokens"), "{tested}");
}

#[rstest]
#[case::of_a_run("run_tokens")]
#[case::of_a_day("day_tokens")]
fn a_budget_holds_for_a_server_that_reports_no_usage(#[case] budget: &str) {
    let kind = ReviewerKind::Openai;
    let server = Server::new(vec![streamed(&uncounted(kind)); 20]);
    let place = place(kind, &server, &format!("[budget]\n{budget} = 12000"));
    let output = place.test.revdeck(&["review", "--reviewer", "m", "--wait"]);
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{output:?}");
    let record = place.run(&place.newest().expect("a run"));
    let ending = (record.status, record.ending.cancel_reason);
    assert_eq!(ending, (RunStatus::Cancelled, Some(CancelReason::BudgetExhausted)), "{}", record.outcome.summary);
    assert!(record.usage.tokens.total() <= 12_000 && server.requests().len() < 8, "{:?}", record.usage.tokens);
}
