//! Tests the form of a run record and the sentences about a run.

use serde_json::{Map, Value, json};

use super::*;
use crate::domain::{OmissionReason, OmittedFile};

/// Returns a record with a value for every key that a file may hold, in the order of the file.
fn full_record() -> Value {
    let mut record = json!({
        "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "status": "failed", "created_at": "2026-11-01T10:00:00Z",
        "updated_at": "2026-11-01T10:05:00Z", "source": "watch", "owner": "ada@orchard", "branch": "main",
        "worktree": "/home/ada/orchard", "base_commit": "b1", "snapshot_commit": "s1", "head_commit": "h1",
        "epoch": 7, "triage_bytes": 120, "scope": "worktree", "scope_hash": "sc", "diff_fingerprint": "df",
        "prompt_policy_version": "p1", "changed_paths": ["a.rs"], "reviewer": "deep", "model": "d-1",
        "reasoning_effort": "high", "focus": ["SECURITY"], "prompt_set": "strict",
    });
    let rest = json!({
        "attempt": 2, "follow_up_count": 1,
        "follow_up_of": "fx_01JD3Z8Q6M7S5V2K4T9XWB1C0E",
        "team": {"machine": "lovelace-3f9a2c", "person": {"name": "Ada", "email": "ada@example.org"}}, "phase_timings": PhaseTimings::default(),
        "prompt_estimate": 900, "tokens": Usage { input: 5, ..Usage::default() }, "cost": 0.25,
        "price_known": true, "reserved_cost": 0.5, "window_peak": 800,
        "answered_by": [ReviewerUsage { reviewer: "deep".into(), ..ReviewerUsage::default() }],
        "saved_token_estimate": 40, "coverage": Coverage::default(), "finding_counts": FindingCounts::default(),
        "finding_digests": ["f_0000000000000001"], "scanned_findings": ["f_0000000000000002"],
        "listed_as": [{"run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0N", "reported_as": "f_0000000000000001",
            "finding_id": "f_0000000000000002"}],
        "merged_reports": [{"reported_as": "f_0000000000000003", "finding_id": "f_0000000000000002"}],
        "summary": "one finding", "decision": "nothing equivalent",
        "reuse_count": 3, "adopted_count": 1, "last_reused_at": "2026-11-01T11:00:00Z", "last_reuse_reason": "same",
        "last_reuse_head": "h2", "superseded_by": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0F",
        "reused_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0G", "carried_over_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0H",
        "resumed_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0J", "waits_for": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0K",
        "member_of": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0M",
        "panel": {"name": "three", "members": [
            {"reviewer": "deep", "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0N", "decision": "reuse", "saved_token_estimate": 9},
        ], "max_cost": 1.5},
        "full": true, "private": true, "paused": true, "cancel_reason": "user_stop", "cancel_note": "enough",
        "finish_note": "nearly done", "error_class": "network", "error_summary": "no route",
    });
    let (Some(fields), Value::Object(rest)) = (record.as_object_mut(), rest) else { unreachable!("two objects") };
    fields.extend(rest);
    record
}

#[test]
fn a_version_names_its_set_and_its_kinds() {
    for (set, focus, expected) in [
        (None, &[][..], "0a1b"),
        (Some("strict"), &[], "0a1b@strict"),
        (None, &[Kind::Security], "0a1b+SECURITY"),
        (Some("strict"), &[Kind::Security, Kind::Concurrency], "0a1b@strict+SECURITY,CONCURRENCY"),
    ] {
        let version = RunReviewer::focused_version(&RunReviewer::version_of_set("0a1b", set), focus);
        assert_eq!(version, expected);
        assert_eq!(RunReviewer::set_of_version(&version), set, "{version}");
        let words: Vec<&str> = focus.iter().map(|kind| kind.word()).collect();
        assert_eq!(RunReviewer::focus_of_version(&version), words.join(","), "{version}");
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn a_record_is_one_flat_object_that_keeps_every_key_and_their_order() {
    let written = full_record();
    let record: RunRecord = serde_json::from_value(written.clone()).expect("a record");
    let again = serde_json::to_value(&record).expect("an object");
    assert_eq!(keys(&again), keys(&written));
    assert_eq!(again, written);
    let line = serde_json::to_string(&record).expect("a line");
    assert_eq!(serde_json::from_str::<RunRecord>(&line).expect("a record"), record);
}

#[test]
fn only_the_first_fields_are_required_and_unknown_keys_are_skipped() {
    let required = ["run_id", "status", "created_at", "updated_at", "source", "scope", "reviewer"];
    let mut small: Map<String, Value> = Map::new();
    for name in required {
        small.insert(name.into(), full_record()[name].clone());
    }
    small.insert("from_a_later_version".into(), json!({"deep": [1, 2]}));
    let record: RunRecord = serde_json::from_value(Value::Object(small.clone())).expect("a record");
    assert_eq!((record.subject.triage_bytes, record.usage.cost, record.reuse.count), (None, 0.0, 0));
    for name in required {
        let mut less = small.clone();
        less.remove(name);
        let error = serde_json::from_value::<RunRecord>(Value::Object(less)).expect_err(name);
        assert!(error.to_string().contains(&format!("missing field `{name}`")), "{error}");
    }
}

#[test]
fn the_error_of_a_part_that_failed_joins_the_summary_only_where_nothing_else_says_it() {
    const FOUND: &str = "1 finding in 1 file: 1 p2; 1 held back";
    const GAPS: &str = "incomplete: 1 file not reviewed: unreadable; no findings in 1 file";
    let left_out = vec![OmittedFile::new("b.rs", OmissionReason::Unreadable)];
    let mut gaps = Coverage { files_total: 2, files_covered: 1, left_out, ..Coverage::default() };
    gaps.set_gaps([], OmissionReason::NotReached);
    let whole = Coverage::default();
    let with_error = format!("{FOUND}; incomplete: no route");
    let with_gaps = format!("{GAPS}; no route");
    let network = Some(ErrorClass::Network);
    for (title, status, class, coverage, summary, expected) in [
        ("a part failed", RunStatus::Completed, network, &whole, FOUND, with_error.as_str()),
        ("there are gaps, too", RunStatus::Completed, network, &gaps, GAPS, with_gaps.as_str()),
        (
            "an older version has joined it",
            RunStatus::Completed,
            network,
            &whole,
            with_error.as_str(),
            with_error.as_str(),
        ),
        ("the gap names the files", RunStatus::Completed, Some(ErrorClass::Unreadable), &gaps, GAPS, GAPS),
        ("no error", RunStatus::Completed, None, &whole, FOUND, FOUND),
        (
            "all failed",
            RunStatus::Failed,
            network,
            &whole,
            "failed: no answer; 1 finding kept",
            "failed: no answer; 1 finding kept",
        ),
        ("no summary yet", RunStatus::Completed, network, &whole, "", ""),
    ] {
        let mut record: RunRecord = serde_json::from_value(full_record()).expect("a record");
        (record.status, record.ending.error_class) = (status, class);
        record.outcome.coverage = coverage.clone();
        summary.clone_into(&mut record.outcome.summary);
        assert_eq!(record.summary_with_error(), expected, "{title}");
        assert_eq!(record.outcome.summary, summary, "{title}: the summary itself stays");
    }
}

#[test]
fn a_run_that_reviewed_no_file_is_told_from_a_clean_one() {
    use Shortfall as S;
    // Files and hunks: total, covered; hunks carried over.
    for (title, status, counts, findings, gaps, expected) in [
        ("all files reviewed", RunStatus::Completed, [2, 2, 5, 5, 0], 0, false, None),
        ("some files left out on purpose", RunStatus::Completed, [3, 2, 5, 5, 0], 0, false, None),
        ("all files left out on purpose", RunStatus::Completed, [2, 0, 0, 0, 0], 0, false, Some(S::NothingReviewed)),
        ("a secret in a file that was left out", RunStatus::Completed, [2, 0, 0, 0, 0], 1, false, None),
        ("all hunks carried over", RunStatus::Completed, [2, 0, 5, 0, 5], 0, false, None),
        ("nothing has changed", RunStatus::Completed, [0, 0, 0, 0, 0], 0, false, None),
        ("a file out of sight", RunStatus::Completed, [1, 0, 0, 0, 0], 0, true, Some(S::Gaps)),
        ("a part of the hunks", RunStatus::Completed, [2, 1, 5, 3, 0], 0, false, Some(S::Gaps)),
        ("never begun", RunStatus::Skipped, [2, 0, 0, 0, 0], 0, false, None),
        ("not ended yet", RunStatus::Reviewing, [2, 0, 0, 0, 0], 0, false, None),
    ] {
        let mut record: RunRecord = serde_json::from_value(full_record()).expect("a record");
        (record.status, record.ending.error_class) = (status, None);
        let [files_total, files_covered, hunks_total, hunks_covered, hunks_carried] = counts;
        record.outcome.coverage = Coverage {
            files_total,
            files_covered,
            hunks_total,
            hunks_covered,
            hunks_carried,
            incomplete: gaps,
            ..Coverage::default()
        };
        record.outcome.finding_counts = FindingCounts { p1: findings, ..FindingCounts::default() };
        assert_eq!(record.shortfall(), expected, "{title}");
        // A renamed file has no hunks.
        record.outcome.coverage.files_carried = 1;
        assert_eq!(record.shortfall(), expected.filter(|shortfall| *shortfall == S::Gaps), "{title}");
        assert!(!record.outcome.coverage.has_reviewed_nothing(), "{title}");
    }
}

#[test]
fn the_panel_of_a_member_does_not_replace_it() {
    for (superseded_by, member_of, expected) in [
        (None, None, None),
        (Some("newer"), None, Some("newer")),
        (None, Some("panel"), None),
        (Some("panel"), Some("panel"), None),
        (Some("newer"), Some("panel"), Some("newer")),
    ] {
        assert_eq!(find_replacement(superseded_by, member_of), expected);
    }
}
