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
