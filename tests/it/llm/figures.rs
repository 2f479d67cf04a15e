//! Costs and reviewer names of model reviews in `stats`: the same figures as in the run records and the account.

use revdeck::domain::RunRecord;
use revdeck::store::PaidAnswer;

use super::*;

fn stats(place: &Place) -> Value {
    serde_json::from_str(&place.revdeck(&["stats", "--format", "json"])).expect("JSON")
}

/// Returns every line of the account.
fn paid(place: &Place) -> Vec<PaidAnswer> {
    let account = place.test.home().join("state").join("spending.ndjson");
    let text = std::fs::read_to_string(account).expect("something was paid");
    text.lines().map(|line| serde_json::from_str(line).expect("a payment")).collect()
}

#[test]
fn tokens_and_money_are_those_of_the_records_and_of_the_account() {
    let place = place_with_change(40);
    let refusal = Turn::Refuse { status: 402, headers: Vec::new(), body: "{}".into() };
    let broken = Model::start(vec![calls(&[report(&[5]), read(1)]), refusal, calls(&[report(&[7]), finish()])]);
    let other = Model::start(vec![calls(&[read(1)]), calls(&[report(&[9]), finish()])]);
    let more = format!(
        "price_input = 2.0\nprice_output = 8.0\nfallback = \"n\"\n[reviewers.n]\nkind = \"openai\"\nmodel = \"other\"\n\
         effort = \"low\"\nbase_url = \"{}\"\napi_key_cmd = \"printf other-key-123456\"\nprice_input = 1.0\n\
         price_output = 1.0",
        other.url()
    );
    settings(&place, &broken, &more);
    let fallen = place.review(&["--reviewer", "m", "--wait"]);
    assert_eq!(place.review(&["--reviewer", "m", "--wait"]), fallen, "nothing is paid for twice");
    place.review(&["--reviewer", "m", "--wait", "--force"]);

    let stats = stats(&place);
    let (records, paid) = (place.runs(), paid(&place));
    let spent: u64 = records.iter().map(|run: &RunRecord| run.usage.tokens.total()).sum();
    let cost: f64 = records.iter().map(|run| run.usage.cost).sum();
    let totals = &stats["totals"];
    assert!(spent > 0 && paid.len() == 4);
    assert_eq!(totals["tokens_spent"], spent);
    assert_eq!(spent, paid.iter().map(|paid| paid.tokens).sum::<u64>());
    let said = totals["cost"].as_f64().expect("a price");
    assert!((said - cost).abs() < 1e-9 && (cost - paid.iter().map(|paid| paid.cost).sum::<f64>()).abs() < 1e-9);
    assert!(totals["tokens_saved"].as_u64() > Some(0), "{totals}");

    let run = stats["runs"].as_array().and_then(|runs| runs.last()).expect("the first run");
    assert_eq!(run["run_id"], fallen.as_str());
    let by: Vec<(&str, &str, u64)> = run["answered_by"]
        .as_array()
        .expect("who answered")
        .iter()
        .map(|one| {
            let word = |key: &str| one[key].as_str().expect("a word");
            (word("reviewer"), word("reasoning_effort"), one["turns"].as_u64().expect("turns"))
        })
        .collect();
    assert_eq!(by, [("m", "", 1), ("n", "low", 2)], "{run}");
    let of_answers: u64 =
        run["answered_by"].as_array().into_iter().flatten().filter_map(|one| one["tokens"]["input"].as_u64()).sum();
    assert_eq!(run["tokens"]["input"], of_answers);
    let times = &run["phase_timings"];
    let moment = |key: &str| times[key].as_u64().expect("a moment");
    assert!(moment("first_token_ms") <= moment("first_finding_ms"), "{times}");
    let reviewers: Vec<(&str, u64)> = stats["by_reviewer"]
        .as_array()
        .expect("reviewers")
        .iter()
        .map(|one| (one["reviewer"].as_str().expect("a name"), one["runs"].as_u64().expect("runs")))
        .collect();
    assert_eq!(reviewers, [("m", 1), ("n", 1)]);
    let text = place.revdeck(&["stats", "--run", fallen.as_str()]);
    assert!(text.contains("2 answers of n") && text.contains("first token after"), "{text}");
}
