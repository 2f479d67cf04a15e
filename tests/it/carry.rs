//! Integration tests: reviewed hunks are not sent again, and older runs may finish.

mod random;

use std::collections::BTreeSet;

use revdeck::domain::{CancelReason, FindingId, FindingStatus, Kind, RunEvent, RunId, RunStatus};
use rustix::process::Signal;
use serde_json::Value;

use crate::runner::place::{Place, halfway, signal, wait_for};

/// Returns the ids of all findings that a run reported, raised or held back.
fn reported(place: &Place, run: &RunId) -> BTreeSet<FindingId> {
    let output = place.output(run).expect("an output");
    let raised = output.findings.into_iter().map(|finding| finding.finding_id);
    raised.chain(output.held_back.into_iter().map(|held| held.finding.finding_id)).collect()
}

fn edit(place: &Place, path: &str, from: &str, to: &str) {
    let file = place.test.repo().join(path);
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.contains(from), "{path} has no {from:?}");
    std::fs::write(file, text.replace(from, to)).expect("the file");
}

#[test]
fn what_was_reviewed_as_it_is_is_not_reviewed_again() {
    let place = Place::new();
    place.modules("one", 3);
    let first = place.review(&["--worktree", "--wait"]);
    edit(&place, "one/module_1.py", "except:\n        pass", "except ValueError:\n        raise");
    let second = place.review(&["--worktree", "--wait"]);
    let (record, output) = (place.run(&second), place.output(&second).expect("an output"));
    let coverage = &record.outcome.coverage;
    assert_eq!((coverage.files_covered, coverage.files_carried, coverage.files_total), (1, 2, 3));
    assert_eq!((coverage.hunks_covered, coverage.hunks_carried, coverage.hunks_total), (1, 2, 3));
    assert_eq!(record.links.carried_over_from, Some(first.clone()));
    assert!(
        record.decision.contains(&format!("2 of 3 hunks carried over from {first}, 1 to review")),
        "{}",
        record.decision
    );
    let covered: Vec<String> = place
        .events(&second)
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::Covered { file } => Some(file.path),
            _ => None,
        })
        .collect();
    assert_eq!(covered, ["one/module_1.py"], "the others were not put before the reviewer");
    // The output has every finding of the other files, with its id, its first run and its origin.
    let before = place.output(&first).expect("an output");
    for finding in before.findings.iter().filter(|finding| finding.repo_relative_path != "one/module_1.py") {
        let here = output.findings.iter().find(|here| here.finding_id == finding.finding_id).expect("it came along");
        assert_eq!((&here.first_run_id, &here.last_run_id), (&first, &second));
        assert_eq!((here.lines(), here.reported_at), (finding.lines(), finding.reported_at));
        assert_eq!(here.detail_ref, format!("outputs/{second}.json#{}", here.finding_id));
        let carried = finding.kind != Kind::DuplicateCode;
        assert_eq!(output.coverage.carried_from_run(&here.finding_id), Some(&first).filter(|_| carried));
    }
    let forced = place.review(&["--worktree", "--wait", "--force"]);
    assert_eq!(reported(&place, &forced), reported(&place, &second));
    let record = place.run(&forced);
    assert!(record.full && record.outcome.coverage.hunks_carried == 0 && record.outcome.coverage.files_covered == 3);
    assert!(record.decision.starts_with("reviewed again because that was asked for"), "{}", record.decision);

    // Every command that shows a run prints this text.
    let said = format!("2 of 3 hunks carried over from {first}; 1 file, 1 hunk reviewed");
    let text = place.revdeck(&["show", second.as_str()]);
    assert!(text.contains(&said), "{text}");
    let markdown = place.revdeck(&["show", second.as_str(), "--format", "markdown"]);
    assert!(markdown.contains("2 of 3 hunks carried over from"), "{markdown}");
    let json: Value =
        serde_json::from_str(&place.revdeck(&["show", second.as_str(), "--format", "json"])).expect("JSON");
    assert_eq!(json["coverage"]["hunks_carried"], 2);
    assert_eq!(json["coverage"]["carried"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["coverage"]["carried"][0]["from"], first.as_str());

    // A third run carries over from the second and still names the run that reviewed the code.
    edit(&place, "one/module_2.py", "value *", "value +");
    let third = place.output(&place.review(&["--worktree", "--wait"])).expect("an output");
    let from: Vec<(&str, &RunId)> =
        third.coverage.carried.iter().map(|carried| (carried.file.path.as_str(), &carried.from)).collect();
    assert!(from.contains(&("one/module_0.py", &forced)), "the newest look at it: {from:?}");
}

#[test]
fn what_a_cancelled_review_covered_is_carried_over() {
    let place = Place::new();
    let commit = place.commit_modules("one", 150);
    let run = place.review(&["--commit", &commit]);
    let worker = halfway(&place, &run);
    let canceller = place.start(&["cancel", run.as_str(), "--reason", "not now"]);
    wait_for("the wish", || place.run(&run).ending.cancel_reason);
    signal(worker, Signal::CONT);
    assert!(canceller.wait_with_output().expect("cancel ends").status.success());
    let covered = place.ended(&run).outcome.coverage.files_covered;
    assert!(covered > 0);
    let again = place.review(&["--commit", &commit, "--wait"]);
    assert_ne!(again, run);
    let coverage = place.run(&again).outcome.coverage;
    assert_eq!((coverage.files_carried, coverage.files_covered), (covered, 150 - covered));
    let full = place.review(&["--commit", &commit, "--wait", "--force"]);
    assert_eq!(reported(&place, &again), reported(&place, &full));
}

#[test]
fn other_rules_carry_nothing_over() {
    let place = Place::new();
    place.modules("one", 2);
    place.review(&["--worktree", "--wait"]);
    place.settings("[smells.magic_numbers]\nenabled = false\n");
    place.modules("two", 1);
    let run = place.review(&["--worktree", "--wait"]);
    assert_eq!(
        (place.run(&run).outcome.coverage.hunks_carried, place.run(&run).outcome.coverage.files_covered),
        (0, 3)
    );
}

/// A carried finding is no new report: it neither contradicts nor confirms a claim, and its dismissal holds.
#[test]
fn carried_findings_are_neither_news_nor_evidence() {
    let place = Place::new();
    place.modules("one", 2);
    let first = place.review(&["--worktree", "--wait"]);
    let findings = place.output(&first).expect("an output").findings;
    let mut there = findings.iter().filter(|finding| finding.repo_relative_path == "one/module_0.py");
    let (claimed, dismissed) = (there.next().expect("a finding"), there.next().expect("another"));
    place.revdeck(&["triage", claimed.finding_id.as_str(), "addressed", "--reason", "elsewhere"]);
    place.revdeck(&["triage", dismissed.finding_id.as_str(), "dismissed", "--reason", "fine"]);
    edit(&place, "one/module_1.py", "value *", "value +");
    let second = place.review(&["--worktree", "--wait"]);
    let output = place.output(&second).expect("an output");
    assert_eq!(output.coverage.carried_from_run(&claimed.finding_id), Some(&first));
    let store = place.store();
    assert_eq!(store.status(&claimed.finding_id).expect("readable"), FindingStatus::Addressed);
    assert_eq!(store.dispositions(&claimed.finding_id).expect("readable").len(), 1, "the claim and nothing else");
    assert_eq!(store.status(&dismissed.finding_id).expect("readable"), FindingStatus::Dismissed);
    assert!(output.findings.iter().all(|finding| finding.finding_id != dismissed.finding_id));
    assert!(
        output
            .held_back
            .iter()
            .any(|held| held.finding.finding_id == dismissed.finding_id && held.reason.contains("because fine"))
    );
    let shown = place.revdeck(&["show", claimed.finding_id.as_str()]);
    let carried = format!(" ago, run {first}: its code has not changed since\n");
    assert!(shown.contains("carried over from the review of ") && shown.contains(&carried), "{shown}");
    // A new review does contradict the claim.
    place.review(&["--worktree", "--wait", "--force"]);
    assert_eq!(store.status(&claimed.finding_id).expect("readable"), FindingStatus::Unresolved);
}

/// The code is fixed and then restored while other code changes: the earlier review of this exact code counts again.
#[test]
fn code_that_is_back_brings_its_findings_back() {
    let place = Place::new();
    place.modules("one", 2);
    let first = place.review(&["--worktree", "--wait"]);
    let swallowed = "except:\n        pass";
    let finding = place
        .output(&first)
        .expect("an output")
        .findings
        .into_iter()
        .find(|finding| finding.kind == Kind::MissingErrorHandling && finding.repo_relative_path == "one/module_0.py")
        .expect("a finding");
    edit(&place, "one/module_0.py", swallowed, "except ValueError:\n        raise");
    let fixed = place.review(&["--worktree", "--wait"]);
    let store = place.store();
    assert_eq!(store.status(&finding.finding_id).expect("readable"), FindingStatus::Addressed, "by {fixed}");
    edit(&place, "one/module_0.py", "except ValueError:\n        raise", swallowed);
    edit(&place, "one/module_1.py", "value *", "value +");
    let back = place.review(&["--worktree", "--wait"]);
    let output = place.output(&back).expect("an output");
    assert_eq!(output.coverage.carried_from_run(&finding.finding_id), Some(&first));
    assert_eq!(store.status(&finding.finding_id).expect("readable"), FindingStatus::Unresolved);
}

/// Starts a run and suspends its worker after it has covered something.
fn standing_still(place: &Place) -> (RunId, u32) {
    place.modules("one", 150);
    let run = place.review(&["--worktree"]);
    let worker = halfway(place, &run);
    (run, worker)
}

#[test]
fn a_review_that_is_far_enough_finishes_and_the_newer_one_waits_for_it() {
    for slots in [1, 2] {
        let place = Place::new();
        place.settings(&format!("max_parallel_runs = {slots}\n[policy]\nfinish_from = 10\n"));
        let (older, worker) = standing_still(&place);
        edit(&place, "one/module_149.py", "value *", "value +");
        let newer = place.review(&["--worktree"]);
        let record = place.run(&newer);
        assert_eq!((record.status, &record.links.waits_for), (RunStatus::Pending, &Some(older.clone())));
        assert!(record.decision.contains(&format!("{older} may finish: ")), "{}", record.decision);
        assert!(record.decision.contains("policy.finish_from is 10 %"), "{}", record.decision);
        assert!(place.run(&older).ending.finish_note.contains(newer.as_str()));
        assert_eq!(place.run(&older).ending.cancel_reason, None);
        // No other process starts the run in the meantime.
        place.revdeck(&["runs"]);
        let shown = place.revdeck(&["show", newer.as_str()]);
        assert!(shown.contains("waits for") && place.run(&newer).status == RunStatus::Pending, "{shown}");
        signal(worker, Signal::CONT);
        assert_eq!(place.ended(&older).status, RunStatus::Completed);
        let record = place.ended(&newer);
        assert_eq!(record.status, RunStatus::Completed, "with {slots} slots");
        assert_eq!(
            (record.outcome.coverage.files_carried, record.outcome.coverage.files_covered),
            (149, 1),
            "{}",
            record.decision
        );
        wait_for("the fold", || place.run(&older).links.superseded_by.filter(|by| *by == newer));
        assert_eq!(place.run(&older).status, RunStatus::Completed, "it keeps its result");
    }
}

#[test]
fn a_review_that_would_waste_more_than_it_gives_is_cancelled_and_says_why() {
    let place = Place::new();
    place.settings("max_parallel_runs = 1\n[policy]\nfinish_from = 99\n");
    let (older, worker) = standing_still(&place);
    // Every file gets another value, so that no code of the suspended run is unchanged.
    for number in 0..150 {
        edit(&place, &format!("one/module_{number}.py"), "value *", "value +");
    }
    let newer = place.review(&["--worktree"]);
    let record = place.run(&older);
    assert_eq!(
        (record.ending.cancel_reason, &record.links.superseded_by),
        (Some(CancelReason::Superseded), &Some(newer.clone()))
    );
    assert!(record.ending.cancel_note.contains("none of its hunks is as it was"), "{}", record.ending.cancel_note);
    assert!(place.run(&newer).decision.contains("it replaces a run whose code has changed since (none of its hunks"));
    assert_eq!(place.run(&newer).links.waits_for, None);
    signal(worker, Signal::CONT);
    assert_eq!(place.ended(&older).status, RunStatus::Superseded);
    assert_eq!(place.ended(&newer).status, RunStatus::Completed);
}

/// The older run dies while the newer one waits: the newer one does not wait for ever.
#[test]
fn nobody_waits_for_the_dead() {
    let place = Place::new();
    place.settings("max_parallel_runs = 1\n[policy]\nfinish_from = 10\n");
    let (older, worker) = standing_still(&place);
    edit(&place, "one/module_149.py", "value *", "value +");
    let newer = place.review(&["--worktree"]);
    assert_eq!(place.run(&newer).links.waits_for, Some(older.clone()));
    signal(worker, Signal::KILL);
    let waiter = place.start(&["review", "--worktree", "--wait"]);
    assert!(waiter.wait_with_output().expect("it ends").status.code().is_some());
    assert_eq!(place.ended(&newer).status, RunStatus::Completed);
    assert!(place.ended(&older).status.is_terminal());
}
