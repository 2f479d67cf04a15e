//! Readers that follow a journal or wait for changes.

use super::*;

#[test]
fn a_journal_is_followed_without_reading_it_again() {
    let place = Place::new();
    let store = place.store();
    let mut follow = store.follow_journal(&run_id(1), 0);
    assert_eq!(follow.advance().expect("read"), []);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    for n in 0..3 {
        journal.append(at(n), RunEvent::Note { text: format!("note {n}") }).expect("appended");
        let news = follow.advance().expect("read");
        assert_eq!(news.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [n as u64]);
    }
    let path = store.root().join("events").join(format!("{}.jsonl", run_id(1)));
    let mut bytes = fs::read(&path).expect("read");
    bytes.extend_from_slice(b"{\"seq\":3,\"at\":");
    fs::write(&path, &bytes).expect("torn");
    assert_eq!(follow.advance().expect("read"), []);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(9), RunEvent::Unknown).expect("appended");
    assert_eq!(follow.advance().expect("read").len(), 1);
    assert_eq!(follow.skipped(), 1);
    let late: Vec<u64> =
        store.follow_journal(&run_id(1), 2).advance().expect("read").iter().map(|entry| entry.seq).collect();
    assert_eq!(late, [2, 3]);
}

#[test]
fn a_tail_wakes_for_changes_and_for_nothing_else() {
    let place = Place::new();
    let store = place.store();
    // The tail watches a store that does not exist yet.
    let mut tail = store.open_tail();
    assert_eq!(tail.polling_reason(), None);
    let (wakes, woken) = std::sync::mpsc::channel();
    let stopper = tail.stopper();
    let waiting = std::thread::spawn(move || {
        while tail.wait() == StoreChange::Store {
            wakes.send(Instant::now()).expect("somebody listens");
        }
        tail.wait()
    });
    let wait_for = |what: &str, known: &mut Arc<StoreView>, done: &dyn Fn(&StoreView) -> bool| {
        while !done(known) {
            woken.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("no wake for {what}"));
            *known = store.refresh_view(known).expect("a view");
        }
    };
    let mut view = store.view().expect("a view");
    create(&store, 1, RunStatus::Reviewing);
    wait_for("a new run", &mut view, &|view| view.run_count() == 1);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(1, 1)) }).expect("appended");
    wait_for("a finding", &mut view, &|view| view.finding_count() == 1);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    wait_for("a disposition", &mut view, &|view| view.finding(0).status == FindingStatus::Addressed);
    // Many changes in a short time cause only a few wake-ups.
    let begun = Instant::now();
    for n in 2..60 {
        journal.append(at(n), RunEvent::Finding { finding: Box::new(finding(n as usize, 1)) }).expect("appended");
    }
    wait_for("a burst", &mut view, &|view| view.finding_count() == 59);
    let most = begun.elapsed().as_millis() / 100 + 2;
    assert!(woken.try_iter().count() as u128 <= most);
    // Reading, locking and queries cause no wake-up.
    while woken.recv_timeout(Duration::from_millis(250)).is_ok() {}
    for _ in 0..20 {
        store.view().expect("a view");
        store.is_live(&run_id(1)).expect("asked");
        drop(store.lock_run(&run_id(1)).expect("locks"));
        store.checkpoint_now().expect("written");
    }
    assert_eq!(woken.recv_timeout(Duration::from_millis(250)).ok(), None);
    stopper.stop();
    assert_eq!(waiting.join().expect("ends"), StoreChange::Stopped);
}

#[test]
fn a_pulse_wakes_as_a_pulse_and_is_no_part_of_what_the_store_keeps() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    create(&store, 2, RunStatus::Reviewing);
    drop(store.open_journal(&run_id(1)).expect("opens"));
    let runs = [run_id(1), run_id(2)];
    let mut tail = store.open_tail();
    let lock = store.lock_run(&run_id(1)).expect("locks").expect("is free");
    let mut pulse = store.start_heartbeat(&run_id(1), at(1));
    assert_eq!(tail.wait(), StoreChange::Heartbeat);
    // The heartbeat of a worker that has ended causes no event.
    std::mem::forget(store.start_heartbeat(&run_id(2), at(1)));
    let beating: Vec<String> = store.heartbeats(&runs).into_iter().map(|(run, _)| run).collect();
    assert_eq!(beating, [run_id(1).as_str()]);
    // A store change that arrives together with a heartbeat is reported as a store change.
    while tail.wait() != StoreChange::Heartbeat {}
    pulse.begin_turn(at(2), 3);
    create(&store, 3, RunStatus::Reviewing);
    let mut woken = tail.wait();
    while woken == StoreChange::Heartbeat {
        woken = tail.wait();
    }
    assert_eq!(woken, StoreChange::Store);
    let report = store.verify().expect("verified");
    assert!(
        report.problems.iter().all(|problem| problem.path.extension().is_none_or(|end| end != "pulse")),
        "{report:?}"
    );
    // Prune deletes the heartbeat and the parse log of a killed worker once its run has ended, and keeps those of an
    // active worker.
    let logs = [1, 2].map(|number| store.parse_log_path(&run_id(number)));
    logs.iter().for_each(|log| fs::write(log, "").expect("written"));
    store.update_run(&run_id(2), at(3), |run| run.status = RunStatus::Lost).expect("updated");
    let events = store.root().join("events");
    let pulses = || {
        let names = fs::read_dir(&events).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.ends_with(".pulse"));
        names.sort();
        names
    };
    assert_eq!(pulses().len(), 2);
    assert!(store.prune(None, None, at(4), true).expect("looked at").bytes > 0);
    assert_eq!(pulses().len(), 2, "a dry run removes nothing");
    assert!(logs.iter().all(|log| log.exists()));
    store.prune(None, None, at(4), false).expect("pruned");
    assert_eq!(pulses(), [format!("{}.pulse", run_id(1))]);
    assert_eq!(logs.map(|log| log.exists()), [true, false]);
    drop((pulse, lock));
    assert_eq!(pulses(), Vec::<String>::new());
}

#[test]
fn a_wait_with_a_limit_ends_without_a_change() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let mut tail = store.open_tail();
    assert_eq!(tail.wait_at_most(Duration::from_millis(1)), None);
    create(&store, 2, RunStatus::Reviewing);
    assert_eq!(tail.wait_at_most(Duration::from_secs(60)), Some(StoreChange::Store));
    tail.stopper().stop();
    assert_eq!(tail.wait_at_most(Duration::from_secs(60)), Some(StoreChange::Stopped));
}
