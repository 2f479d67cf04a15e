//! Files that were deleted, emptied or cut: the loss is noticed at once and for ever, and a repair restores what other
//! files tell.

use insta::assert_snapshot;
use rstest::rstest;

use super::*;
use crate::env::{DONE, INCOMPLETE, TestEnvironment, err, run};

/// Returns the problems of a store, without the folder.
fn problems(store: &Store) -> Vec<String> {
    let folder = format!("{}/", store.root().display());
    let report = store.verify().expect("verified");
    report.problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
}

fn decide(store: &Store, findings: &[usize]) {
    for n in findings {
        let lines = [disposition(*n, FindingStatus::Dismissed, &format!("t_{n}"))];
        store.append_dispositions(&lines).expect("decided");
    }
}

/// Cuts a file to a number of lines; 0 empties it.
fn cut(path: &Path, lines: usize) {
    let text = fs::read_to_string(path).expect("a file");
    let kept: String = text.split_inclusive('\n').take(lines).collect();
    fs::write(path, kept).expect("written");
}

#[rstest]
#[case::deleted(None, "triage.ndjson: was deleted; it had 6 lines; ")]
#[case::emptied(Some(0), "triage.ndjson: was emptied; it had 6 lines; ")]
#[case::cut(Some(4), "triage.ndjson: was cut: 4 of 6 lines are left; ")]
fn a_file_that_has_lost_lines_is_noticed_also_after_it_has_grown_again(
    #[case] left: Option<usize>,
    #[case] expected: &str,
) {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    finish(&store, 1, &[1, 2, 3, 4, 5, 6]);
    decide(&store, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(problems(&store), [""; 0]);
    let path = store.root().join("triage.ndjson");
    match left {
        Some(lines) => cut(&path, lines),
        None => fs::remove_file(&path).expect("removed"),
    }
    let assert_noticed = || {
        let found = problems(&store);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
        let notices = store.view().expect("a view").notices.clone();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].starts_with(&expected.replace(": was", " was")), "{notices:?}");
    };
    assert_noticed();
    // The file grows beyond its old size.
    decide(&store, &[1, 2, 3, 4, 5, 6]);
    decide(&store, &[1, 2, 3, 4, 5, 6]);
    assert_noticed();
    let before = fs::read(&path).expect("a file");
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(fs::read(&path).expect("a file"), before, "nothing readable is changed");
    assert_eq!(problems(&store), [""; 0]);
    assert_eq!(store.view().expect("a view").notices, [""; 0]);
}

#[test]
fn what_revdeck_itself_rewrites_is_no_loss() {
    let place = Place::new();
    let store = place.store();
    for n in 1..5 {
        create(&store, n, RunStatus::Reviewing);
        finish(&store, n, &[n]);
    }
    decide(&store, &[1, 2]);
    // Twelve lines of runs become four.
    assert_eq!(store.prune(None, None, at(0), false).expect("pruned").lines, 8);
    assert_eq!(problems(&store), [""; 0]);
    append_raw(&store.root().join("runs.ndjson"), "rubbish\n");
    append_raw(&store.root().join("triage.ndjson"), "{torn");
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(problems(&store), [""; 0]);
    // A torn line is sealed by the next writer.
    append_raw(&store.root().join("triage.ndjson"), "{torn");
    decide(&store, &[3]);
    assert_eq!(problems(&store).len(), 1, "only the torn line");
    assert!(store.repair().expect("repaired").is_clean());
    // A version that remembers no sizes wrote the store, and goes on writing to it.
    fs::remove_file(store.root().join("extents")).expect("removed");
    decide(&store, &[4]);
    let line = fs::read_to_string(store.root().join("triage.ndjson")).expect("a file");
    append_raw(&store.root().join("triage.ndjson"), line.lines().next().expect("a line"));
    append_raw(&store.root().join("triage.ndjson"), "\n");
    decide(&store, &[1]);
    assert_eq!(problems(&store), [""; 0]);
    cut(&store.root().join("triage.ndjson"), 2);
    assert_eq!(problems(&store).len(), 1);
}

#[test]
fn what_another_program_wrote_over_the_lines_is_noticed() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    decide(&store, &[1, 2, 3]);
    let path = store.root().join("triage.ndjson");
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(&path, text.replace("t_3", "t_4")).expect("written");
    assert_snapshot!(problems(&store).join("\n"), @"triage.ndjson: was changed by another program: its first 3 lines are not those that were written; repair: decisions are restored from applied fixes and from the reviews that heeded them; the rest is lost");
}

/// Appends three synced entries to the journal of run 1, from this millisecond on.
fn write_journal(store: &Store, from: i64) {
    let mut journal = store.open_journal(&run_id(1)).expect("a journal");
    for n in 1..=3 {
        journal
            .append(at(from + n), RunEvent::Finding { finding: Box::new(finding((from + n) as usize, 1)) })
            .expect("appended");
    }
}

#[rstest]
#[case::deleted(None, "was deleted; it had 3 lines; ")]
#[case::emptied(Some(0), "was emptied; it had 3 lines; ")]
#[case::cut(Some(2), "was cut: 2 of 3 lines are left; ")]
fn a_journal_that_has_lost_lines_is_noticed_also_after_it_has_grown_again(
    #[case] left: Option<usize>,
    #[case] expected: &str,
) {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    write_journal(&store, 0);
    assert_eq!(problems(&store), [""; 0]);
    let path = store.root().join(format!("events/{}.jsonl", run_id(1)));
    match left {
        Some(lines) => cut(&path, lines),
        None => fs::remove_file(&path).expect("removed"),
    }
    let found = problems(&store);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!("events/{}.jsonl: {expected}", run_id(1))), "{found:?}");
    write_journal(&store, 10);
    write_journal(&store, 20);
    assert_eq!(problems(&store).len(), 1, "the new lines are not those that are gone");
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(problems(&store), [""; 0]);
    write_journal(&store, 30);
    cut(&path, 1);
    assert_eq!(problems(&store).len(), 1, "what came after the repair is remembered");
}

#[test]
fn a_pruned_journal_is_no_loss() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    write_journal(&store, 0);
    finish(&store, 1, &[1]);
    assert_eq!(store.prune(None, Some(0), at(0), false).expect("pruned").journals, 1);
    assert_eq!(problems(&store), [""; 0]);
}

#[test]
fn ledgers_and_spending_that_are_gone_are_noticed() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let delivery: LedgerDelivery = serde_json::from_value(serde_json::json!({
        "at": at(1), "worktree": "/n", "tokens": 100, "counted": TokenCountPrecision::AtMost,
    }))
    .expect("a delivery");
    store.record_ledger_delivery(&delivery).expect("recorded");
    store.record_ledger_delivery(&delivery).expect("recorded");
    assert_eq!(problems(&store), [""; 0]);
    cut(&store.root().join("surfaced.ndjson"), 1);
    assert_snapshot!(problems(&store).join("\n"), @"surfaced.ndjson: was cut: 1 of 2 lines are left; repair: the file goes on with what there is; nothing else tells the lost lines");
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(problems(&store), [""; 0]);
}

#[test]
fn muted_kinds_are_restored_from_the_reviews_that_heeded_them() {
    let test = TestEnvironment::new();
    let code = |name: &str| format!("def {name}():\n    try:\n        print({name})\n    except:\n        pass\n");
    test.write("a.py", code("a"));
    test.commit("one");
    run(&test, &["mute", "MISSING_ERROR_HANDLING"], DONE);
    run(&test, &["mute", "LONG_METHOD"], DONE);
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    let store = test.store();
    fs::remove_file(store.root().join("mutes.ndjson")).expect("removed");
    assert!(store.repair().expect("repaired").is_clean());
    let muted: Vec<Kind> = store.muted_kinds().expect("readable").into_keys().collect();
    // No review met the other kind.
    assert_eq!(muted, [Kind::MissingErrorHandling]);
    // A line about a kind is younger than what reviews tell.
    store.set_muted(&[Kind::MissingErrorHandling], MuteAction::Unmute, at(5)).expect("unmuted");
    store.set_muted(&[Kind::DeadCode, Kind::LongMethod], MuteAction::Mute, at(6)).expect("muted");
    cut(&store.root().join("mutes.ndjson"), 2);
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(store.muted_kinds().expect("readable").into_keys().collect::<Vec<_>>(), [Kind::DeadCode; 0]);
}

/// Runs, decisions and a fix are made by commands; then all three files go.
#[test]
fn a_repair_restores_what_outputs_journals_and_fixes_tell() {
    let test = TestEnvironment::new();
    let code = |name: &str| {
        format!(
            "import sys\nimport os\n\n\ndef {name}():\n    try:\n        print(sys.argv)\n    except:\n        pass\n"
        )
    };
    test.write("a.py", code("a"));
    test.commit("one");
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    let findings = test.json(&["findings", "--format", "json"], DONE)["findings"].clone();
    let find = |kind: &str| {
        let all = findings.as_array().expect("findings");
        let found = all.iter().find(|finding| finding["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {findings}"));
        found["finding_id"].as_str().expect("an id").to_owned()
    };
    let (unused, swallowed) = (find("DEAD_CODE"), find("MISSING_ERROR_HANDLING"));
    run(&test, &["triage", &swallowed, "dismissed", "--reason", "on purpose"], DONE);
    run(&test, &["fix", &unused, "--wait"], DONE);
    run(&test, &["fix", "apply", "latest"], DONE);
    // A later review heeds the dismissal.
    test.write("a.py", format!("{}# end\n", fs::read_to_string(test.repo().join("a.py")).expect("a file")));
    test.commit("two");
    run(&test, &["review", "--all", "--wait", "--force"], DONE);
    let state = || {
        let column = |list: serde_json::Value, keys: &[&str]| -> Vec<Vec<serde_json::Value>> {
            let rows = list.as_array().expect("a list").iter();
            rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect()).collect()
        };
        let runs = test.json(&["runs", "--format", "json"], DONE)["runs"].clone();
        let findings = test.json(&["findings", "--status", "all", "--format", "json"], DONE)["findings"].clone();
        (
            column(runs, &["run_id", "status", "scope", "reviewer", "finding_counts", "coverage", "summary"]),
            column(findings, &["finding_id", "status", "title"]),
        )
    };
    let before = state();
    let root = test.store().root().to_owned();
    for name in ["runs.ndjson", "triage.ndjson"] {
        fs::remove_file(root.join(name)).expect("removed");
    }
    let said = test.revdeck(&["runs"]);
    assert_snapshot!(test.normalise(&err(&said)), @"
    warning: runs.ndjson was deleted; it had 16 lines; `revdeck store verify` says more, `revdeck store repair` restores what other files tell
    warning: triage.ndjson was deleted; it had 3 lines; `revdeck store verify` says more, `revdeck store repair` restores what other files tell
    ");
    let doctor = run(&test, &["doctor"], DONE);
    assert!(doctor.contains("triage.ndjson was deleted; it had "), "{doctor}");
    let verified = test.output(&["store", "verify"], INCOMPLETE);
    assert!(verified.contains("runs.ndjson: was deleted; it had "), "{verified}");
    run(&test, &["store", "repair"], DONE);
    assert!(test.output(&["store", "verify"], DONE).starts_with("the store is sound: "));
    assert_eq!(state(), before);
}

#[rstest]
#[case::without_a_key(r#"{"version": 1, "name": "demo", "common_dir": "/demo/.git"}"#, "cannot be read")]
#[case::another_key(
    r#"{"version": 1, "key": "k2", "name": "demo", "common_dir": "/demo/.git"}"#,
    "names another repository"
)]
#[case::a_key_of_another_type(
    r#"{"version": 1, "key": 7, "name": "demo", "common_dir": "/demo/.git"}"#,
    "cannot be read"
)]
#[case::rubbish("{", "cannot be read")]
#[case::empty("", "cannot be read")]
fn the_name_of_the_repository_is_repaired_as_announced(#[case] content: &str, #[case] what: &str) {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    let path = store.root().join("repo.json");
    let sound = fs::read(&path).expect("a file");
    fs::write(&path, content).expect("written");
    let store = place.store();
    assert_eq!(problems(&store), [format!("repo.json: {what}; repair: written anew for this repository")]);
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(problems(&store), [""; 0]);
    assert_eq!(fs::read(&path).expect("a file"), sound);
    assert_eq!(fs::read_to_string(store.root().join("repo.json.corrupt-1")).expect("set aside"), content);
}
