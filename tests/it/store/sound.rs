//! Messages of a store about lost or repaired data.

use super::*;

#[test]
fn an_epoch_never_falls_back_behind_a_run() {
    for damage in ["missing", "empty", "unreadable", "nonsense"] {
        let place = Place::new();
        let store = place.store();
        let mut run = record(1, RunStatus::Pending);
        run.subject.epoch = 41;
        store.with_lock(|locked| locked.create_run(&run)).expect("created");
        create(&store, 2, RunStatus::Pending);
        let path = store.root().join("epoch");
        match damage {
            "empty" => fs::write(&path, "").expect("written"),
            "unreadable" => fs::write(&path, b"\xff\xfe").expect("written"),
            "nonsense" => fs::write(&path, "many\n").expect("written"),
            _ => {}
        }
        assert_eq!(store.epoch().expect("read"), 41, "{damage}");
        assert_eq!(store.advance_epoch().expect("advanced"), 42, "{damage}");
        assert_eq!(store.epoch().expect("read"), 42, "{damage}");
    }
}

#[test]
fn what_was_repaired_is_told_no_more() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    store.open_journal(&run_id(1)).expect("opens").append(at(1), RunEvent::Unknown).expect("appended");
    append_raw(&store.root().join(format!("events/{}.jsonl", run_id(1))), "{torn");
    store.update_run(&run_id(1), at(2), |run| run.status = RunStatus::Lost).expect("lost");
    store.checkpoint_now().expect("written");
    assert_eq!(store.view().expect("a view").notices.len(), 1, "{:?}", store.view().expect("a view").notices);
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(store.view().expect("a view").notices, Vec::<String>::new());
}

#[test]
fn rows_know_what_decisions_need() {
    let place = Place::new();
    let store = place.store();
    let mut run = record(1, RunStatus::Reviewing);
    (run.subject.epoch, run.reviewed_by.reasoning_effort) = (7, "high".into());
    (run.ending.cancel_reason, run.ending.error_class) = (Some(CancelReason::UserStop), Some(ErrorClass::Reviewer));
    store.with_lock(|locked| locked.create_run(&run)).expect("created");
    for checkpoint in [false, true] {
        if checkpoint {
            store.checkpoint_now().expect("written");
        }
        let view = store.runs_view().expect("a view");
        let row = view.run(0);
        assert_eq!((row.epoch, row.reasoning_effort), (7, "high"));
        assert_eq!((row.cancel_reason, row.error_class), ("user_stop", "reviewer"));
    }
}

/// A file that is replaced twice may get its first inode again, and its lines may have the same length as before.
#[test]
fn a_file_that_was_replaced_twice_is_read_anew() {
    use std::os::unix::fs::MetadataExt;
    // File systems differ in when they reuse an inode; some never do.
    for _ in 0..20 {
        let place = Place::new();
        let store = place.store();
        (0..3).for_each(|run| create(&store, run, RunStatus::Reviewing));
        let path = store.root().join("runs.ndjson");
        let before = fs::metadata(&path).expect("there");
        let view = store.view().expect("a view");
        finish(&store, 1, &[]);
        create(&store, 3, RunStatus::Reviewing);
        // File times have a limited resolution.
        let tick = store.root().with_extension("tick");
        while before.created().is_ok_and(|born| {
            let _ = fs::remove_file(&tick);
            fs::write(&tick, "").expect("written");
            fs::metadata(&tick).expect("there").created().is_ok_and(|now| now == born)
        }) {}
        let mut bytes = fs::read(&path).expect("read");
        bytes.extend_from_slice(b"rubbish\n");
        fs::write(&path, bytes).expect("written");
        assert!(store.repair().expect("repaired").is_clean());
        drop(store.prune(None, None, at(0), false).expect("compacted"));
        let refreshed = dump(&store.refresh_view(&view).expect("a view"));
        let _ = fs::remove_file(store.root().join("view.cache"));
        assert_eq!(refreshed, dump(&store.view().expect("a view")));
        if fs::metadata(&path).expect("there").ino() == before.ino() {
            return;
        }
    }
}

/// The reviewers of a panel contradict each other about a finding until a later run reports it without a contradiction.
#[test]
fn a_row_knows_whether_its_latest_report_is_disputed() {
    let place = Place::new();
    let store = place.store();
    let dispute = Dispute::Alone { reviewer: "claude".into(), silent: vec!["gpt".into()] };
    let disputed = Finding { disputed: vec![dispute], severity: Severity::High, ..finding(1, 1) };
    let check = |view: &StoreView, expected: bool, stage: &str| {
        let row = |n: usize| view.finding(view.finding_index(finding_id(n).as_str()).expect("listed"));
        assert_eq!((row(1).panel_disputed, row(2).panel_disputed), (expected, false), "{stage}");
        let severity = if expected { Severity::High } else { Severity::Medium };
        assert_eq!((row(1).severity, row(2).severity), (severity, Severity::Medium), "{stage}");
    };

    create(&store, 1, RunStatus::Reviewing);
    let findings = [disputed, finding(2, 1)];
    let events = findings.clone().map(|finding| RunEvent::Finding { finding: Box::new(finding) });
    store.open_journal(&run_id(1)).expect("a journal").append_all(at(1), &events).expect("appended");
    let live = store.view().expect("a view");
    check(&live, true, "while the run works");

    let run = store.update_run(&run_id(1), at(0), |run| run.status = RunStatus::Resolving).expect("resolving");
    let output = RunOutput { findings: findings.to_vec(), ..RunOutput::new(run) };
    store.write_output(&output).expect("the output");
    store.update_run(&run_id(1), at(0), |run| run.status = RunStatus::Completed).expect("completed");
    check(&store.recent_view(5).expect("a view"), true, "the newest runs");
    check(&store.refresh_view(&live).expect("a view"), true, "the next view");
    store.checkpoint_now().expect("written");
    check(&store.view().expect("a view"), true, "from the checkpoint");

    create(&store, 2, RunStatus::Pending);
    finish(&store, 2, &[1]);
    check(&store.view().expect("a view"), false, "reported again by one reviewer");
}

/// A second opinion that can tell settles the contradiction about a finding; another one leaves it open.
#[test]
fn a_row_is_not_disputed_after_a_verdict() {
    use Opinion::{False, Real, Unsure};
    let ruled = |opinion: Opinion| FindingStep::Ruled {
        by: "opus".into(),
        opinion,
        reason: String::new(),
        from: Priority::P1,
        to: Priority::P1,
    };
    for (opinions, expected) in
        [(vec![], true), (vec![Unsure], true), (vec![Real], false), (vec![False], false), (vec![Real, Unsure], false)]
    {
        let place = Place::new();
        let store = place.store();
        let dispute = Dispute::Priority { most: Priority::P0, least: Priority::P3 };
        let steps = std::iter::once(FindingStep::Scanned).chain(opinions.iter().copied().map(ruled)).collect();
        let disputed = Finding { disputed: vec![dispute], steps, ..finding(1, 1) };
        create(&store, 1, RunStatus::Reviewing);
        let event = RunEvent::Finding { finding: Box::new(disputed) };
        store.open_journal(&run_id(1)).expect("a journal").append_all(at(1), &[event]).expect("appended");
        let view = store.view().expect("a view");
        assert_eq!(view.finding(0).panel_disputed, expected, "{opinions:?}");
    }
}
