//! Integration tests: what sessions of coding assistants receive, turn by turn.

use std::collections::BTreeSet;

use revdeck::domain::{FindingStatus, LedgerForm, Priority};
use revdeck::tokens::{Encoding, count_tokens};
use serde_json::Value;

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, long_function, run};

const AGENT: [&str; 5] = ["ledger", "--agent", "claude-code", "--session", "s1"];

/// Returns the next ledger of a session, which is recorded.
fn next_turn(test: &TestEnvironment) -> String {
    run(test, &AGENT, DONE)
}

/// Returns a repository with one commit.
fn start() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    test
}

#[test]
fn a_session_gets_one_line_until_something_changes() {
    let test = start();
    assert_eq!(next_turn(&test), "", "nothing to say is not one byte");
    assert!(!test.store().root().join("surfaced.ndjson").exists(), "nothing was told");
    test.write("a.py", long_function("wide"));
    run(&test, &["review", "--wait"], DONE);
    let whole = next_turn(&test);
    assert!(whole.contains("<finding ") && whole.contains("revdeck details RUN FINDING"), "{whole}");
    let line = next_turn(&test);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("unchanged=\"true\" findings=\"1\""), "{line}");
    assert!(run(&test, &["ledger", "--agent", "claude-code", "--session", "s2"], DONE).contains("<finding "));
    run(&test, &["ledger", "--forget", "--agent", "claude-code", "--session", "s1"], DONE);
    assert!(next_turn(&test).contains("<finding "), "after a compaction, all comes back");
    let told = test.store().ledger_deliveries().expect("readable");
    let forms: Vec<(&str, LedgerForm)> = told.iter().map(|one| (one.session.as_str(), one.form)).collect();
    use LedgerForm::{Forgotten, Unchanged, Whole};
    assert_eq!(forms, [("s1", Whole), ("s1", Unchanged), ("s2", Whole), ("s1", Forgotten), ("s1", Whole)]);
    assert!(told[1].tokens < 60 && told[0].tokens > 60, "{told:?}");
    let text = run(&test, &["ledger", "--format", "text"], DONE);
    assert!(text.starts_with("Automatic review of ") && !text.contains('<'), "{text}");
}

#[test]
fn what_the_ledger_advertises_works() {
    let test = start();
    test.write("a.py", long_function("wide"));
    run(&test, &["review", "--wait"], DONE);
    let ledger = next_turn(&test);
    let value = |name: &str| {
        let finding = ledger.lines().find(|line| line.contains("<finding ")).expect("a finding");
        finding.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"')).expect("it").0.to_owned()
    };
    let (id, reported_by) = (value("id"), value("run"));
    let details = run(&test, &["details", &reported_by, &id], DONE);
    assert!(details.contains(&id) && details.contains("def wide"), "{details}");
    // An assistant with the MCP server gets the name of the tool.
    test.write(".mcp.json", r#"{"mcpServers":{"revdeck":{"command":"revdeck","args":["mcp"]}}}"#);
    let other = run(&test, &["ledger", "--agent", "claude-code", "--session", "s2"], DONE);
    assert!(other.contains("auto_review_details(run_id, finding_id)"), "{other}");
    let other = run(&test, &["ledger", "--agent", "codex", "--session", "s3"], DONE);
    assert!(other.contains("revdeck details RUN FINDING"), "{other}");
}

#[test]
fn the_least_priority_is_a_setting() {
    let test = start();
    test.write("a.py", long_function("wide"));
    run(&test, &["review", "--wait"], DONE);
    for (priority, expected) in [("p0", 0), ("p1", 1), ("none", 0)] {
        test.settings(&format!("ledger_priority = \"{priority}\"\n"));
        assert_eq!(run(&test, &["ledger"], DONE).matches("<finding ").count(), expected, "{priority}");
    }
}

#[test]
fn details_say_what_was_cut_and_what_is_damaged() {
    let test = start();
    for number in 0..30 {
        let name = format!("a_function_with_a_name_that_needs_a_lot_of_room_and_more_{number}");
        test.write(&format!("wide{number}.py"), long_function(&name));
    }
    run(&test, &["review", "--wait"], DONE);
    let brief = run(&test, &["details", "latest", "--max-bytes", "2000"], DONE);
    assert!(brief.contains("more left out to stay within 2000 bytes"), "{brief}");
    let next = brief.lines().find_map(|line| line.strip_prefix("  next: revdeck ")).expect("the next call");
    let next: Vec<&str> = next.split(' ').collect();
    assert!(run(&test, &next, DONE).contains(next[1]));
    let all = brief.lines().find_map(|line| line.strip_prefix("  all: revdeck ")).expect("the call for all");
    let all = run(&test, &all.split(' ').collect::<Vec<_>>(), DONE);
    assert!(all.len() > brief.len() && !all.contains("more left out"), "{all}");
    let one = run(&test, &["details", next[1], "--max-bytes", "512"], DONE);
    assert!(one.len() <= 512 && one.contains(&format!("revdeck show {}", next[1])), "{one}");
    assert!(test.fails(&["details", "latest", "--max-bytes", "64001"], USAGE).contains("512 to 64000"));

    let store = test.store();
    let view = store.view().expect("a view");
    let latest = view.run(0).id.to_owned();
    let output = store.root().join("outputs").join(format!("{latest}.json"));
    std::fs::write(&output, "{\"version\":1,\"run\"").expect("written");
    let damaged = test.output(&["details", &latest], DONE);
    assert!(damaged.contains("the result is damaged") && damaged.contains("p1"), "{damaged}");
    std::fs::write(store.root().join("events").join(format!("{latest}.jsonl")), "").expect("written");
    let message = test.fails(&["details", &latest], INCOMPLETE);
    assert!(message.contains("is damaged") && message.contains("revdeck store verify"), "{message}");
}

#[test]
fn a_status_line_is_short_and_never_fails() {
    let test = start();
    assert_eq!(run(&test, &["status", "--line"], DONE), "");
    test.write("a.py", long_function("wide"));
    run(&test, &["review", "--wait"], DONE);
    assert_eq!(run(&test, &["status", "--line"], DONE), "1 p1\n");
    let status = test.json(&["status", "--format", "json"], DONE);
    assert_eq!((&status["undecided"]["p1"], &status["latest"]["status"]), (&1.into(), &"completed".into()));
    let text = run(&test, &["status"], DONE);
    assert!(text.contains("1 finding (1 p1) to decide"), "{text}");
    let outside = tempfile::tempdir().expect("a folder");
    let folder = outside.path().to_str().expect("a path");
    assert_eq!(run(&test, &["-C", folder, "status", "--line"], DONE), "");
}

#[test]
fn a_prompt_names_the_chosen_findings() {
    let test = start();
    test.write("a.py", long_function("wide"));
    run(&test, &["review", "--wait"], DONE);
    let prompt = run(&test, &["findings", "--format", "prompt"], DONE);
    assert!(prompt.contains("1. a.py:1-") && prompt.contains("def wide"), "{prompt}");
    assert_eq!(run(&test, &["findings", "--priority", "p0", "--format", "prompt"], DONE), "");
}

/// A session of 100 turns in which five changes are reviewed, half fixed and half removed. Every p0 and p1 is told while
/// its code stands, and none afterwards.
#[test]
fn a_session_of_100_turns_costs_few_tokens_and_misses_nothing() {
    let test = start();
    let (mut tokens, mut told) = (0, BTreeSet::new());
    let mut gone: BTreeSet<String> = BTreeSet::new();
    let (mut expected, mut largest) = (BTreeSet::new(), 0);
    let urgent = |wanted: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        let view = test.store().view().expect("a view");
        (0..view.finding_count())
            .map(|index| view.finding(index))
            .filter(|row| row.priority <= Priority::P1 && row.status == FindingStatus::Open && wanted(row.path))
            .map(|row| row.id.to_owned())
            .collect()
    };
    for turn in 0..100 {
        let part = turn / 20;
        let (first, second) = (format!("first{part}.py"), format!("second{part}.py"));
        match turn % 20 {
            3 => {
                test.write(&first, long_function(&format!("first{part}")));
                test.write(&second, long_function(&format!("second{part}")));
                test.write(&format!("other{part}.py"), long_function(&format!("other{part}")));
                run(&test, &["review", "--wait"], DONE);
                expected.extend(urgent(&|path| path.contains(&part.to_string())));
            }
            10 => {
                gone.extend(urgent(&|path| path == first));
                test.write(&first, "x = 1\n");
            }
            15 => {
                gone.extend(urgent(&|path| path == second));
                std::fs::remove_file(test.repo().join(&second)).expect("removed");
            }
            _ => {}
        }
        let ledger = next_turn(&test);
        let cost = count_tokens(Encoding::O200kBase, &ledger);
        tokens += cost;
        largest = largest.max(cost);
        let named: BTreeSet<String> = ledger
            .split("<finding id=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'))
            .map(|(id, _)| id.to_owned())
            .collect();
        assert!(named.is_disjoint(&gone), "turn {turn} names code that is gone: {ledger}");
        told.extend(named);
    }
    assert!(expected.len() >= 15, "three for each review: {expected:?}");
    assert!(expected.is_subset(&told), "never told: {:?}", expected.difference(&told));
    assert!(largest <= 600, "{largest}");
    assert!(tokens < 120 * 100, "{} tokens a turn", tokens / 100);
    let preview: Value = test.json(&["ledger", "--preview"], DONE);
    assert_eq!(preview["sessions"][1]["session"], "s1");
    assert_eq!(preview["recent"].as_array().map(Vec::len), Some(10));
}

#[test]
fn findings_of_a_checkpoint_are_told_and_counted_like_all_others() {
    let test = start();
    for number in 0..4 {
        test.write(&format!("wide{number}.py"), long_function(&format!("wide{number}")));
    }
    run(&test, &["review", "--wait"], DONE);
    let counted = || test.json(&["status", "--format", "json"], DONE)["undecided"].to_string();
    let named = || run(&test, &["ledger"], DONE).matches("<finding ").count();
    let before = (counted(), named());
    assert_eq!(before.1, 4);
    test.store().checkpoint_now().expect("a checkpoint");
    assert_eq!((counted(), named()), before);
    // Lines after the checkpoint decide: a dismissal, its undo, and the same problems in a later run.
    let found = test.json(&["findings", "--format", "json"], DONE);
    let id = found["findings"][0]["finding_id"].as_str().expect("an id").to_owned();
    run(&test, &["triage", &id, "dismissed", "--reason", "as it should be"], DONE);
    assert_eq!(named(), 3);
    test.write("wide4.py", long_function("wide4"));
    run(&test, &["review", "--wait"], DONE);
    assert_eq!(named(), 4, "the dismissed one stays dismissed");
    run(&test, &["triage", &id, "open"], DONE);
    assert_eq!(named(), 5);
    let later = (counted(), named());
    test.store().checkpoint_now().expect("a checkpoint");
    assert_eq!((counted(), named()), later);
}
