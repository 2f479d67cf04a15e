//! Several processes write one store at the same time.

use super::*;

#[test]
fn many_writers_lose_and_double_nothing() {
    let place = Place::new();
    let mut processes: Vec<_> =
        (1..=4).map(|n| helper("append", &place.state(), n).spawn().expect("a process")).collect();
    std::thread::scope(|scope| {
        for writer in 5..=8 {
            let store = place.store();
            scope.spawn(move || write_much(&store, writer));
        }
    });
    for process in &mut processes {
        assert!(process.wait().expect("ends").success());
    }
    let store = place.store();
    let view = store.view().expect("a view");
    assert_eq!((view.run_count(), view.finding_count()), (8, 8 * EACH));
    assert_eq!(view.notices, Vec::<String>::new());
    for index in 0..view.finding_count() {
        assert_eq!(view.finding(index).status, FindingStatus::Dismissed);
    }
    for index in 0..view.run_count() {
        assert_eq!(view.run(index).attempt, EACH as u32);
    }
    assert_eq!(store.triage_log().expect("read").len(), 2 * 8 * EACH);
    assert_eq!(store.epoch().expect("read"), 8 * EACH as u64);
    assert_eq!(store.verify().expect("verified").problems, []);
}
