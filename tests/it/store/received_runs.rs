//! Runs of other machines among those of this one.

use super::*;

/// Returns the title of a finding in a view.
fn title(view: &StoreView, n: usize) -> String {
    let index = view.finding_index(finding_id(n).as_str()).expect("a finding");
    view.finding(index).title.to_owned()
}

#[test]
fn reports_of_a_received_run_that_answers_here_are_the_same_for_every_reader() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    store.update_run(&run_id(1), at(0), |run| run.subject.worktree = "/demo".into()).expect("a worktree");
    finish(&store, 1, &[5]);
    let received =
        RunOutput { findings: vec![finding(5, 2), finding(6, 2)], ..RunOutput::new(record(2, RunStatus::Completed)) };
    let origin = RunOrigin { machine: "ada-1".parse().expect("a name"), person: TeamPerson::default() };
    store.import_team_runs(vec![(received, origin)]).expect("imported");
    let before = store.view().expect("a view");
    assert_eq!(title(&before, 5), "finding 5 as run 1 saw it", "nobody here has asked for the other run");
    store.checkpoint_now().expect("written");
    // A request here is answered by it.
    store
        .with_lock(|locked| locked.annotate_run(&run_id(2), |run| run.subject.worktree = "/demo".into()))
        .expect("noted");
    let refreshed = store.refresh_view(&before).expect("a view");
    let from_checkpoint = place.store().view().expect("a view");
    let selected = store
        .select_findings(|_| {
            let rank = |_: &FindingFacts| Some(0);
            Ok(FindingSelector { paths: Vec::new(), ids: Vec::new(), limit: 10, rank: Box::new(rank) })
        })
        .expect("a view");
    fs::remove_file(store.root().join("view.cache")).expect("a checkpoint");
    let scratch = place.store().view().expect("a view");
    assert_eq!(title(&scratch, 5), "finding 5 as run 2 saw it");
    for view in [&refreshed, &from_checkpoint, &selected] {
        assert_eq!(dump(view), dump(&scratch));
    }
    let reported = |view: &StoreView| -> Vec<usize> {
        (0..view.run_count()).map(|run| view.reported_findings(run).count()).collect()
    };
    assert_eq!(reported(&refreshed), reported(&scratch));
}
