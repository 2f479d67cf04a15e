//! Machine-readable output: shape, filters and limits.

use super::*;

const FINDING_KEYS: [&str; 21] = [
    "finding_id",
    "first_run_id",
    "last_run_id",
    "priority",
    "severity",
    "confidence",
    "kind",
    "title",
    "explanation",
    "repo_relative_path",
    "line_start",
    "line_end",
    "quoted_code",
    "suggestion",
    "status",
    "detail_ref",
    "reported_at",
    "voices",
    "steps",
    "disputed",
    "symbol",
];

const RUN_KEYS: [&str; 57] = [
    "run_id",
    "status",
    "freshness",
    "created_at",
    "updated_at",
    "source",
    "owner",
    "branch",
    "worktree",
    "base_commit",
    "snapshot_commit",
    "head_commit",
    "epoch",
    "scope",
    "scope_hash",
    "diff_fingerprint",
    "prompt_policy_version",
    "changed_paths",
    "reviewer",
    "model",
    "reasoning_effort",
    "attempt",
    "paused",
    "follow_up_count",
    "phase_timings",
    "prompt_estimate",
    "tokens",
    "cost",
    "window_peak",
    "saved_token_estimate",
    "coverage",
    "finding_counts",
    "finding_digests",
    "scanned_findings",
    "listed_as",
    "merged_reports",
    "summary",
    "decision",
    "superseded_by",
    "reused_from",
    "carried_over_from",
    "resumed_from",
    "waits_for",
    "member_of",
    "panel",
    "follow_up_of",
    "full",
    "finish_note",
    "answered_by",
    "reuse_count",
    "adopted_count",
    "cancel_reason",
    "cancel_note",
    "budget_stop",
    "window_limit",
    "error_class",
    "error_summary",
];

#[test]
fn json_has_the_documented_shape() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");

    let started = test.json(&["review", "--format", "json"], DONE);
    has_keys(&started["run"], &RUN_KEYS);
    has_keys(&started["decision"], &["action", "reason", "saved_token_estimate", "supersedes"]);

    let review = test.json(&["review", "--wait", "--format", "json"], DONE);
    has_keys(&review, &["run", "findings", "coverage", "rejected", "decision"]);
    has_keys(&review["run"], &RUN_KEYS);
    has_keys(
        &review["coverage"],
        &[
            "files_total",
            "files_covered",
            "hunks_total",
            "hunks_covered",
            "files_carried",
            "hunks_carried",
            "hunks_left_out",
            "files",
            "left_out",
            "carried",
        ],
    );
    assert_eq!(review["run"]["status"], "completed");
    let created_at: revdeck::domain::Time =
        serde_json::from_value(review["run"]["created_at"].clone()).expect("a time as RFC 3339");
    assert_eq!(review["run"]["created_at"], created_at.to_string(), "in UTC");
    let finding = &list(&review, "findings")[0];
    has_keys(finding, &FINDING_KEYS);
    assert_eq!(finding["priority"], 1);
    assert_eq!(finding["kind"], "LONG_METHOD");
    assert_eq!(finding["repo_relative_path"], "long.py");
    assert_eq!(finding["status"], "open");

    let runs = test.json(&["runs", "--format", "json"], DONE);
    has_keys(&list(&runs, "runs")[0], &RUN_KEYS);
    let findings = test.json(&["findings", "--format", "json"], DONE);
    assert_eq!(list(&findings, "findings")[0], *finding);

    let id = finding["finding_id"].as_str().expect("an id");
    let shown = test.json(&["show", id, "--format", "json"], DONE);
    assert_eq!(shown["finding"], *finding);
    assert_eq!(list(&shown, "history").len(), 0);
    let shown = test.json(&["show", "latest", "--format", "json"], DONE);
    has_keys(&shown, &["run", "findings", "coverage"]);

    let smells = test.json(&["smells", ".", "--format", "json"], DONE);
    has_keys(&list(&smells, "findings")[0], &FINDING_KEYS);
    assert_eq!(list(&smells, "findings")[0]["first_run_id"], Value::Null);
    let function = &list(&smells, "functions")[0];
    let figures = ["nloc", "cyclomatic", "cognitive", "parameters", "nesting", "start_line", "end_line"];
    has_keys(function, &["path", "name"]);
    has_keys(function, &figures);
    assert_eq!((&function["nloc"], &function["parameters"]), (&202.into(), &1.into()), "{function}");

    let tokens = test.json(&["tokens", "long.py", "--format", "json"], DONE);
    has_keys(&list(&tokens, "files")[0], &["path", "tokens"]);
    let verified = test.json(&["store", "verify", "--format", "json"], DONE);
    has_keys(&verified, &["sound", "files", "lines", "problems"]);
    let ledger = test.json(&["ledger", "--format", "json"], DONE);
    has_keys(&ledger, &["ledger", "tokens", "cap", "surfaced"]);
    assert_eq!(list(&ledger, "surfaced").len(), 1);
}

#[test]
fn lists_can_be_filtered() {
    let test = reviewed();
    for (arguments, expected) in [
        (&["--priority", "p1"][..], vec!["LONG_METHOD"]),
        (&["--kind", "complex-functions"], vec!["COMPLEX_FUNCTIONS"]),
        (&["--kind", "LONG_METHOD,COMPLEX_FUNCTIONS"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--path", "./wide.py"], vec!["COMPLEX_FUNCTIONS"]),
        (&["--path", "wide"], vec![]),
        (&["--status", "dismissed"], vec![]),
        (&["--status", "open,addressed"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--run", "latest"], vec!["LONG_METHOD", "COMPLEX_FUNCTIONS"]),
        (&["--limit", "1"], vec!["LONG_METHOD"]),
    ] {
        let found = test.json(&[&["findings", "--format", "json"], arguments].concat(), DONE);
        let kinds: Vec<&str> = list(&found, "findings").iter().filter_map(|finding| finding["kind"].as_str()).collect();
        assert_eq!(kinds, expected, "{arguments:?}");
    }
    let failed = test.json(&["runs", "--status", "failed,lost", "--format", "json"], DONE);
    assert_eq!(list(&failed, "runs").len(), 0);
}

#[test]
fn details_stay_within_their_bytes() {
    let test = TestEnvironment::new();
    for number in 0..30 {
        test.write(&format!("wide{number}.py"), wide_function(&format!("wide{number}")));
    }
    test.commit("many findings");
    run(&test, &["review", "--wait"], DONE);
    for limit in [512, 1000, 2000, 5000, 20_000] {
        let bytes = limit.to_string();
        let text = run(&test, &["details", "latest", "--max-bytes", &bytes], DONE);
        assert!(text.len() <= limit, "{} > {limit}", text.len());
        let value = test.json(&["details", "latest", "--max-bytes", &bytes, "--format", "json"], DONE);
        assert!(value.to_string().len() < limit, "{limit}: {value}");
        let shown = list(&value, "findings").len();
        assert_eq!(value["findings_left_out"], 30 - shown);
    }
    let all = test.json(&["details", "latest", "--max-bytes", "64000", "--format", "json"], DONE);
    assert_eq!(list(&all, "findings").len(), 30);
    let id = list(&all, "findings")[3]["finding_id"].as_str().expect("an id").to_owned();
    let one = test.json(&["details", "latest", &id, "--format", "json"], DONE);
    assert_eq!(list(&one, "findings").len(), 1);
}

#[test]
fn the_ledger_is_silent_or_short() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    assert_eq!(run(&test, &["ledger"], DONE), "", "nothing to say is not one byte");
    let test = reviewed();
    // Of the two findings only the p1 stands in it.
    assert_snapshot!(test.output(&["ledger"], DONE), @r#"
    <auto_review_ledger version="1" repo="repo">
      <latest run="[run]" status="completed" snapshot="[hash]" findings="2" surfaced="false" summary="2 findings in 2 files: 1 p1, 1 p3"/>
      <finding id="f_[id]" run="[run]" p="1" path="long.py" line="1" title="Function `long` is 202 code lines long"/>
      <details available="revdeck details RUN FINDING"/>
    </auto_review_ledger>
    "#);
    assert_eq!(run(&test, &["ledger", "--max-tokens", "0"], DONE), "");
    for cap in [40, 120, 160, 200] {
        let value = test.json(&["ledger", "--max-tokens", &cap.to_string(), "--format", "json"], DONE);
        assert!(value["tokens"].as_u64().is_some_and(|tokens| tokens <= cap), "{cap}: {value}");
    }
}
