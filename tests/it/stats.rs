//! Integration tests: `revdeck stats` with stores that real reviews wrote.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::runner::place::{Place, hold_still, signal, wait_for};

fn stats(place: &Place, arguments: &[&str]) -> Value {
    let text = place.revdeck(&[&["stats", "--format", "json"], arguments].concat());
    let stats: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(stats["version"], 1);
    stats
}

fn of_run<'a>(stats: &'a Value, run: &str) -> &'a Value {
    let runs = stats["runs"].as_array().expect("runs");
    runs.iter().find(|one| one["run_id"] == run).unwrap_or_else(|| panic!("{run} is missing in {stats}"))
}

fn sum(stats: &Value, key: &str) -> u64 {
    stats["runs"].as_array().expect("runs").iter().filter_map(|run| run[key].as_u64()).sum()
}

#[test]
fn what_reviews_did_and_what_became_of_their_findings() {
    let place = Place::new();
    // A suspended review never finishes in place of its replacement, however far it is.
    place.settings("max_parallel_runs = 1\n[policy]\nfinish_from = 101\n");
    let commit = place.commit_modules("one", 3);
    let done = place.review(&["--commit", &commit, "--wait"]);
    let findings: Vec<String> = place.finding_ids(&done).iter().map(ToString::to_string).collect();
    place.revdeck(&["triage", &findings[0], "addressed"]);
    place.revdeck(&["triage", &findings[1], "dismissed", "--reason", "as it should be"]);
    for _ in 0..2 {
        assert_eq!(place.review(&["--commit", &commit]), done, "no line has changed");
    }
    let skipped = place.review(&["--staged", "--wait"]);

    // The run is suspended while it works: a second request adopts it, another run waits and is cancelled, newer code
    // replaces it.
    place.modules("two", 150);
    let older = place.review(&["--worktree"]);
    let worker = wait_for("a worker", || place.worker(&older));
    hold_still(&place.store(), worker);
    assert_eq!(place.review(&["--worktree"]), older);
    let waiting = place.review(&["--all"]);
    place.revdeck(&["cancel", waiting.as_str(), "--reason", "not now"]);
    place.modules("three", 1);
    let newest = place.review(&["--worktree"]);
    signal(worker, Signal::CONT);
    place.ended(&older);
    place.ended(&newest);

    let all = stats(&place, &[]);
    let totals = &all["totals"];
    for (key, expected) in [
        ("launched", 4),
        ("completed", 2),
        ("adopted", 1),
        ("reused", 2),
        ("skipped", 1),
        ("superseded", 1),
        ("cancelled", 1),
        ("active", 0),
        ("failed", 0),
        ("lost", 0),
        ("resumed", 0),
        ("follow_ups", 0),
        ("tokens_spent", 0),
    ] {
        assert_eq!(totals[key], expected, "{key} in {totals}");
    }
    assert_eq!(totals["cancelled_by_reason"], json!({ "user_stop": 1 }));
    let listed: Value =
        serde_json::from_str(&place.revdeck(&["findings", "--status", "all", "--format", "json"])).expect("JSON");
    assert_eq!(totals["findings"]["found"], listed["findings"].as_array().expect("findings").len());
    let precision = &totals["precision"];
    assert_eq!(
        (&precision["addressed"], &precision["dismissed"], &precision["share"]),
        (&json!(1), &json!(1), &json!(0.5))
    );

    let run = of_run(&all, done.as_str());
    assert_eq!((&run["reused"], &run["adopted"], &run["cost"]), (&json!(2), &json!(0), &json!(0.0)));
    let fates = &run["findings"];
    assert_eq!(fates["found"], findings.len());
    assert_eq!((&fates["claimed"], &fates["dismissed"], &fates["confirmed"]), (&json!(1), &json!(1), &json!(0)));
    let times = &run["phase_timings"];
    assert_eq!(times["first_token_ms"], Value::Null, "nobody answers in tokens");
    let first = times["first_finding_ms"].as_u64().expect("it has findings");
    let record = place.run(&done);
    let took = record.updated_at.as_millisecond() - record.created_at.as_millisecond();
    assert!(i64::try_from(first).expect("a while") <= took, "{first} of {took}");
    assert_eq!(of_run(&all, older.as_str())["adopted"], 1);
    assert_eq!(of_run(&all, older.as_str())["superseded_by"], newest.as_str());
    assert_eq!(of_run(&all, skipped.as_str())["findings"]["found"], 0);

    // `--since` counts only later requests; a run id counts one run alone.
    assert_eq!(stats(&place, &["--since", "2099-01-01"])["runs"], json!([]));
    assert_eq!(stats(&place, &["--since", "1h"])["totals"], *totals);
    let one = stats(&place, &["--run", done.as_str()]);
    assert_eq!((one["runs"].as_array().map(Vec::len), &one["runs"][0]), (Some(1), run));
    let text = place.revdeck(&["stats", "--run", "latest"]);
    assert!(text.starts_with(newest.as_str()) && text.contains("first finding after"), "{text}");
    let text = place.revdeck(&["stats", "--ascii"]);
    assert!(text.is_ascii() && text.contains("4 launched - 1 adopted - 2 reused - 1 skipped"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(place.revdeck(&["stats", "--since", "2099-01-01"]), "no run was asked for since then\n");
}

#[test]
fn an_empty_store_has_a_sentence_and_every_key() {
    let place = Place::new();
    let text = place.revdeck(&["stats"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    let stats = stats(&place, &[]);
    for key in ["since", "totals", "runs", "by_kind", "by_reviewer", "series", "worth"] {
        assert!(stats.get(key).is_some(), "{key} is missing in {stats}");
    }
    assert_eq!(stats["totals"]["precision"]["share"], Value::Null, "unknown is not 0");
    assert!(!place.store().root().exists(), "reading makes nothing");
}

#[test]
fn what_an_assistant_was_told_is_on_record_and_told_once_as_news() {
    let place = Place::new();
    let commit = place.commit_modules("one", 2);
    let run = place.review(&["--commit", &commit, "--wait"]);
    let ledger = |arguments: &[&str]| place.revdeck(&[&["ledger"], arguments].concat());
    let is_surfaced = |ledger: String| {
        let (_, rest) = ledger.split_once(" surfaced=\"").expect("the latest run");
        rest.split_once('"').expect("a value").0.to_owned()
    };
    assert_eq!(is_surfaced(ledger(&[])), "false");
    assert_eq!(is_surfaced(ledger(&["--record"])), "false", "looking at it told nobody");
    assert_eq!(is_surfaced(ledger(&[])), "true");
    let json: Value = serde_json::from_str(&ledger(&["--record", "--format", "json"])).expect("JSON");
    // The budget has no room: the ledger delivers no finding and records none.
    assert_eq!(ledger(&["--record", "--max-tokens", "10"]), "");

    let handed = place.store().ledger_deliveries().expect("readable");
    assert_eq!(handed.len(), 2);
    assert_eq!(handed[0].run_id.as_ref(), Some(&run));
    assert_eq!(json["tokens"], handed[1].tokens);
    assert!(handed[0].tokens >= handed[1].tokens, "an upper bound is no less than the exact count");
    let named: Vec<&str> = handed[1].findings.iter().map(|id| id.as_str()).collect();
    assert_eq!(json["surfaced"], json!(named));
    let stats = stats(&place, &[]);
    assert_eq!(stats["totals"]["ledgers"], 2);
    assert_eq!(stats["totals"]["ledger_tokens"], handed[0].tokens + handed[1].tokens);
    assert_eq!(of_run(&stats, run.as_str())["surfaced_at"], handed[0].at.to_string());
    assert_eq!(stats["totals"]["findings"]["surfaced"], named.len());
}

#[test]
fn totals_are_the_sums_of_the_runs() {
    let place = Place::new();
    for folder in ["one", "two"] {
        let commit = place.commit_modules(folder, 2);
        place.review(&["--commit", &commit, "--wait"]);
    }
    let stats = stats(&place, &[]);
    for key in ["tokens_spent", "tokens_saved", "adopted", "reused", "hunks_covered"] {
        assert_eq!(stats["totals"][key], sum(&stats, key), "{key}");
    }
    let points = stats["series"]["points"].as_array().expect("points");
    let runs: u64 = points.iter().filter_map(|point| point["runs"].as_u64()).sum();
    assert_eq!(runs, 2);
}

#[test]
fn worth_follows_from_decisions_and_survives_the_loss_of_derived_files() {
    let place = Place::new();
    let commit = place.commit_modules("one", 3);
    let run = place.review(&["--commit", &commit, "--wait"]);
    // A second review of the same code by the same reviewer reports the same findings: they count once.
    let again = place.review(&["--all", "--wait"]);
    assert_ne!(again, run);
    let ids: Vec<String> = place.finding_ids(&run).iter().map(ToString::to_string).collect();
    assert!(ids.len() >= 4, "{ids:?}");
    place.revdeck(&["triage", &ids[0], "addressed"]);
    place.revdeck(&["triage", &ids[1], "dismissed", "--reason", "false alarm"]);
    place.revdeck(&["triage", &ids[2], "dismissed", "--reason", "it is meant so"]);
    place.revdeck(&["triage", &ids[3], "dismissed", "--reason", "not worth it"]);
    place.revdeck(&["undo"]);

    let before = stats(&place, &[])["worth"].clone();
    let rows = before["by_reviewer"].as_array().expect("rows");
    let [row] = rows.as_slice() else { panic!("one reviewer: {before}") };
    let all = place.revdeck(&["findings", "--status", "all", "--format", "json"]);
    let all: Value = serde_json::from_str(&all).expect("JSON");
    let raised = all["findings"].as_array().expect("findings").len();
    assert_eq!((&row["name"], &row["raised"]), (&json!("builtin"), &json!(raised)));
    assert_eq!((&row["accepted"], &row["confirmed"], &row["dismissed"]), (&json!(1), &json!(0), &json!(2)));
    assert_eq!(row["undecided"], raised - 3);
    assert_eq!(
        (&row["dismissed_by_reason"]["false_alarm"], &row["dismissed_by_reason"]["other"]),
        (&json!(1), &json!(1))
    );
    assert_eq!((&row["cost"], &row["cost_per_accepted"]), (&json!(0.0), &json!(0.0)));
    for grouping in ["by_model", "by_kind", "by_language"] {
        let raised_in_all: u64 =
            before[grouping].as_array().expect("rows").iter().filter_map(|row| row["raised"].as_u64()).sum();
        assert_eq!(raised_in_all, raised as u64, "{grouping}");
    }
    assert_eq!(before["almost_always_wrong"], json!([]));

    // All of it follows from the records: a lost checkpoint changes nothing.
    place.store().checkpoint_now().expect("written");
    assert_eq!(stats(&place, &[])["worth"], before);
    std::fs::remove_file(place.store().root().join("view.cache")).expect("removed");
    assert_eq!(stats(&place, &[])["worth"], before);

    let text = place.revdeck(&["stats", "--by", "reviewer", "--ascii"]);
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
    let words: Vec<&str> = text.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(words[..5], ["builtin", &raised.to_string(), "1", "2", &(raised - 3).to_string()], "{text}");
    assert!(text.contains("1 false alarm") && text.contains("1 other"), "{text}");
    for grouping in ["model", "kind", "language"] {
        assert!(place.revdeck(&["stats", "--by", grouping]).starts_with("By "), "{grouping}");
    }
}
