//! Runs of other machines among those of this one, and what could not be taken of their logs.

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
    store.import_team_runs(vec![(received, origin)], &[]).expect("imported");
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

/// Returns a run with one finding, as a machine sends it.
fn received(run: usize, title: &str, machine: &str) -> (RunOutput, RunOrigin) {
    let finding = Finding { title: title.into(), ..finding(5, run) };
    let output = RunOutput { findings: vec![finding], ..RunOutput::new(record(run, RunStatus::Completed)) };
    (output, RunOrigin { machine: machine.parse().expect("a name"), person: TeamPerson::default() })
}

/// Returns the machine of a run, and how many lines it has.
fn maker(store: &Store, run: usize) -> (Option<String>, usize) {
    let record = store.run(&run_id(run)).expect("readable").expect("a run");
    let lines = fs::read_to_string(store.root().join("runs.ndjson")).expect("runs");
    let id = run_id(run).to_string();
    (record.team.map(|origin| origin.machine.to_string()), lines.lines().filter(|line| line.contains(&id)).count())
}

#[test]
fn an_id_of_a_run_belongs_to_one_machine_whatever_the_order() {
    for order in [["ada-1", "eve-1"], ["eve-1", "ada-1"]] {
        let place = Place::new();
        let store = place.store();
        let both = order.map(|name| received(2, name, name));
        let import = store.import_team_runs(both.to_vec(), &[]).expect("imported");
        assert_eq!(maker(&store, 2), (Some("ada-1".into()), 1), "{order:?}");
        let refused: Vec<String> = import
            .refused
            .iter()
            .map(|refused| format!("{} of {}", refused.claimant, refused.maker.as_ref().expect("a maker")))
            .collect();
        assert_eq!((import.count, refused), (1, vec!["eve-1 of ada-1".to_owned()]), "{order:?}");
    }
}

#[test]
fn a_claimed_id_stays_with_its_run_until_the_machine_is_forgotten() {
    for (first, second) in [("ada-1", "eve-1"), ("eve-1", "ada-1")] {
        let place = Place::new();
        let store = place.store();
        store.import_team_runs(vec![received(2, "one", first)], &[]).expect("imported");
        // The same run, also under another name of its machine, is a repetition.
        for again in [received(2, "one", first), received(2, "one", second)] {
            assert_eq!(store.import_team_runs(vec![again], &[]).expect("imported"), TeamRunImport::default());
        }
        let import = store.import_team_runs(vec![received(2, "two", second)], &[]).expect("imported");
        assert_eq!((import.count, import.refused.len()), (0, 1), "{first}");
        assert_eq!(maker(&store, 2), (Some(first.into()), 1));
        let before = store.view().expect("a view");
        assert_eq!(title(&before, 5), "one");
        let forgotten: [MachineName; 1] = [first.parse().expect("a name")];
        let import = store.import_team_runs(vec![received(2, "two", second)], &forgotten).expect("imported");
        assert_eq!((import.count, import.is_rewritten, import.refused.len()), (1, true, 0));
        assert_eq!(maker(&store, 2), (Some(second.into()), 1));
        assert_eq!(title(&store.refresh_view(&before).expect("a view"), 5), "two");
    }
}

#[test]
fn nobody_claims_the_id_of_an_own_run() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let import = store.import_team_runs(vec![received(1, "one", "eve-1")], &[]).expect("imported");
    assert_eq!((import.count, import.refused.first().map(|refused| refused.maker.clone())), (0, Some(None)));
    assert_eq!(maker(&store, 1), (None, 1));
}

#[test]
fn what_is_set_aside_stays_small() {
    let place = Place::new();
    let store = place.store();
    let (eve, short): (MachineName, MachineName) = ("eve-1".parse().expect("a name"), "eve".parse().expect("a name"));
    let folder = store.root().join("team/set-aside");
    fs::create_dir_all(&folder).expect("a folder");
    // An earlier version kept segments whole.
    fs::write(folder.join("eve-1-old.ndjson"), "x".repeat(5 << 20)).expect("written");
    let content = "x".repeat(1 << 20);
    for n in 0..60 {
        store.set_aside_segment(&eve, &format!("{n:06}-x.ndjson"), content.as_bytes()).expect("kept");
    }
    let last = store.set_aside_segment(&short, "000000-x.ndjson", b"x").expect("kept");
    let sizes: Vec<u64> = files_below(&folder).iter().map(|file| fs::metadata(file).expect("a file").len()).collect();
    assert_eq!((sizes.len(), sizes.iter().sum::<u64>()), (50, 49 * (64 << 10) + 1));
    // The name of one log is the start of the other's.
    store.remove_set_aside_segments(&short, std::slice::from_ref(&eve)).expect("removed");
    assert!(!last.exists());
    assert_eq!(files_below(&folder).len(), 49);
    store.remove_set_aside_segments(&eve, &[short]).expect("removed");
    assert_eq!(files_below(&folder).len(), 0);
}
