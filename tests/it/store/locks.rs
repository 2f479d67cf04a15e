//! Locks of runs and of the store.

use super::*;

#[test]
fn a_lock_is_held_until_its_process_dies() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let mut holder = helper("hold", &place.state(), 1).spawn().expect("a process");
    let mut said = String::new();
    let mut output = BufReader::new(holder.stdout.take().expect("its output"));
    while !said.contains("held") {
        assert!(output.read_line(&mut said).expect("read") > 0, "it ended: {said}");
    }
    assert!(store.is_live(&run_id(1)).expect("asked"));
    assert!(store.lock_run(&run_id(1)).expect("asked").is_none());
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    assert!(!store.is_live(&run_id(1)).expect("asked"));
    assert!(store.lock_run(&run_id(1)).expect("asked").is_some());
    assert!(store.root().join("locks").join(format!("{}.lock", run_id(1))).exists(), "lock files stay");
}

#[test]
fn a_new_store_has_its_folders_from_the_start() {
    let place = Place::new();
    let store = place.store();
    assert!(!store.root().exists(), "nothing is written yet");
    store.with_lock(|_| Ok(())).expect("locked");
    for name in ["events", "outputs", "locks"] {
        assert!(store.root().join(name).is_dir(), "{name}");
    }
}

#[test]
fn questions_about_liveness_keep_no_worker_from_its_lock() {
    let place = Place::new();
    let store = place.store();
    drop(store.lock_run(&run_id(1)).expect("locks"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    store.is_live(&run_id(1)).expect("asked");
                }
            });
        }
        let taken = (0..200).filter(|_| store.lock_run(&run_id(1)).expect("locks").is_some()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(taken, 200);
    });
}

#[test]
fn a_nested_call_under_the_lock_does_not_wait_for_itself() {
    let place = Place::new();
    let store = place.store();
    store
        .with_lock(|locked| {
            locked.create_run(&record(1, RunStatus::Pending))?;
            store.update_run(&run_id(1), at(1), |run| run.status = RunStatus::Reviewing)?;
            store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")])
        })
        .expect("done");
    assert_eq!(store.view().expect("a view").run(0).status, RunStatus::Reviewing);
}
