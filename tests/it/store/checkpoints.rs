//! Checkpoints of the view: written by readers, ignored when they are damaged.

use super::*;

#[test]
fn a_damaged_or_foreign_checkpoint_is_of_no_consequence() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=4 {
        create(&store, n, RunStatus::Pending);
        finish(&store, n, &[n, n + 1]);
    }
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let expected = dump(&store.view().expect("a view"));
    let runs = dump(&store.runs_view().expect("a view"));
    store.checkpoint_now().expect("written");
    let path = store.root().join("view.cache");
    let whole = fs::read(&path).expect("read");
    assert_eq!(dump(&store.view().expect("a view")), expected);
    let mut damaged: Vec<Vec<u8>> = (0..whole.len())
        .step_by(whole.len() / 150)
        .map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            bytes
        })
        .collect();
    damaged.extend((0..20).map(|part| whole[..whole.len() * part / 20].to_vec()));
    damaged.push([whole.as_slice(), b"more"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).expect("written");
        assert_eq!(dump(&store.view().expect("a view")), expected);
        assert_eq!(dump(&store.runs_view().expect("a view")), runs);
        assert_eq!(dump(&select_all(&store, 10).0), expected);
        assert_eq!(select_all(&store, 0).1, 5);
    }
    // A file that was replaced by one of the same length, and a file that became shorter.
    fs::write(&path, &whole).expect("written");
    let triage = store.root().join("triage.ndjson");
    let other = fs::read_to_string(&triage).expect("read").replace("dismissed", "addressed");
    fs::write(&triage, other).expect("written");
    let row = store.view().expect("a view");
    assert_eq!(row.finding(row.finding_index(finding_id(1).as_str()).expect("there")).status, FindingStatus::Addressed);
    let path = store.root().join("runs.ndjson");
    let first: String =
        fs::read_to_string(&path).expect("read").lines().next().map(|line| format!("{line}\n")).expect("one");
    let old = store.view().expect("a view");
    fs::write(&path, first).expect("written");
    assert_eq!(store.view().expect("a view").run_count(), 1);
    assert_eq!(store.refresh_view(&old).expect("a view").run_count(), 1);
}

#[test]
fn a_large_checkpoint_is_read_in_two_halves_and_needs_both() {
    let place = Place::new();
    let store = place.store();
    sample::fill(&store, &sample::Shape::of(20, 5000)).expect("a sample");
    let scratch = store.view().expect("a view");
    let (expected, decided) = (dump(&scratch), history(&scratch));
    store.checkpoint_now().expect("written");
    let path = store.root().join("view.cache");
    let whole = fs::read(&path).expect("read");
    assert!(whole.len() > 512 * 1024, "{} bytes are read on one thread", whole.len());
    // All findings come from the checkpoint.
    let (outputs, away) = (store.root().join("outputs"), place.folder.path().join("away"));
    fs::rename(&outputs, &away).expect("renamed");
    let opened = store.view().expect("a view");
    assert_eq!((dump(&opened), history(&opened)), (expected.clone(), decided));
    fs::rename(&away, &outputs).expect("renamed");
    for part in 0..8 {
        let mut bytes = whole.clone();
        bytes[whole.len() * part / 8 + 300] ^= 0x55;
        fs::write(&path, &bytes).expect("written");
        assert_eq!(dump(&store.view().expect("a view")), expected, "damaged in part {part}");
    }
}

/// Selects up to `limit` findings. Returns the view, and the number of findings that were ranked or are its rows.
fn select_all(store: &Store, limit: usize) -> (Arc<StoreView>, usize) {
    let ranked = std::cell::Cell::new(0);
    let view = store.select_findings(|_| {
        let ranked = &ranked;
        let rank = move |_: &FindingFacts| {
            ranked.set(ranked.get() + 1);
            (limit > 0).then_some(())
        };
        Ok(FindingSelector { paths: Vec::new(), ids: Vec::new(), limit, rank: Box::new(rank) })
    });
    let view = view.expect("a view");
    let count = ranked.get() + if limit == 0 { view.finding_count() } else { 0 };
    (view, count)
}

#[test]
fn named_findings_are_rows_and_are_not_ranked() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    finish(&store, 1, &[1, 2, 3]);
    store.checkpoint_now().expect("written");
    let mut ranked = 0;
    let ids = vec![finding_id(2).to_string(), finding_id(9).to_string()];
    let view = store.select_findings(|_| {
        let rank = |_: &FindingFacts| -> Option<()> {
            ranked += 1;
            None
        };
        Ok(FindingSelector { paths: Vec::new(), ids, limit: 0, rank: Box::new(rank) })
    });
    let view = view.expect("a view");
    assert_eq!((view.finding_count(), view.finding(0).id.to_owned()), (1, finding_id(2).to_string()));
    assert_eq!(ranked, 2);
}

#[test]
fn opening_many_runs_leaves_a_checkpoint_and_recent_agrees_with_it() {
    let place = Place::new();
    let store = place.store();
    sample::fill(&store, &sample::Shape::of(120, 1500)).expect("a sample");
    let scratch = store.view().expect("a view");
    assert_eq!((scratch.run_count(), scratch.finding_count()), (120, 1500));
    assert!(store.root().join("view.cache").exists());
    let opened = store.view().expect("a view");
    assert_eq!(dump(&opened), dump(&scratch));
    assert_eq!(history(&opened), history(&scratch));
    for run in 0..opened.run_count() {
        let mut reported: Vec<String> =
            opened.reported_findings(run).map(|finding| opened.finding(finding).id.to_owned()).collect();
        let record = store.run(&opened.run(run).id.parse().expect("an id")).expect("readable").expect("a record");
        let mut named: Vec<String> = record.outcome.finding_digests.iter().map(ToString::to_string).collect();
        reported.sort();
        named.sort();
        assert_eq!(reported, named, "{}", record.run_id);
    }
    assert_eq!(dump(&store.lines_only_view().expect("a view")), dump(&store.runs_view().expect("a view")));
    assert!(Arc::ptr_eq(&store.refresh_view(&opened).expect("a view"), &opened), "nothing changed");
    // The checkpoint is small, so the first frame has everything.
    let first = store.first_view(20).expect("a view");
    assert_eq!((dump(&first), first.complete), (dump(&opened), false));
    fs::File::options()
        .append(true)
        .open(store.root().join("view.cache"))
        .and_then(|file| file.set_len(513 * 1024))
        .expect("a large checkpoint");
    assert_eq!(store.first_view(20).expect("a view").run_count(), 20);
    let recent = store.recent_view(20).expect("a view");
    assert_eq!((recent.run_count(), recent.complete), (20, false));
    for index in 0..20 {
        assert_eq!(recent.run(index), opened.run(index));
    }
    for index in 0..recent.finding_count() {
        let (few, all) = (recent.finding(index), opened.finding(index));
        assert_eq!((few.id, few.status, few.last_run, few.title), (all.id, all.status, all.last_run, all.title));
    }
    assert_eq!(store.verify().expect("verified").problems, []);
    for index in (0..opened.finding_count()).step_by(97) {
        let row = opened.finding(index);
        let whole = store.finding_in(&opened, &row.id.parse().expect("an id")).expect("read").expect("there");
        assert_eq!((whole.title.as_str(), whole.status), (row.title, row.status));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Create,
    Work(usize, usize),
    Complete(usize, Vec<usize>),
    End(usize, RunStatus),
    Triage(usize, FindingStatus),
    Rubbish(usize, bool),
    Checkpoint,
    Refresh,
    Repair,
    Compact,
}

fn op() -> impl Strategy<Value = Op> {
    use proptest::prelude::*;
    let findings = || prop::collection::vec(0..25_usize, 0..6);
    let ended = prop::sample::select(vec![RunStatus::Lost, RunStatus::Failed, RunStatus::Cancelled]);
    let status = prop::sample::select(FindingStatus::ALL);
    prop_oneof![
        4 => Just(Op::Create),
        6 => (0..12_usize, 0..25_usize).prop_map(|(run, finding)| Op::Work(run, finding)),
        4 => (0..12_usize, findings()).prop_map(|(run, findings)| Op::Complete(run, findings)),
        2 => (0..12_usize, ended).prop_map(|(run, status)| Op::End(run, status)),
        4 => (0..25_usize, status).prop_map(|(finding, status)| Op::Triage(finding, status)),
        1 => (0..2_usize, any::<bool>()).prop_map(|(file, torn)| Op::Rubbish(file, torn)),
        2 => Just(Op::Checkpoint),
        3 => Just(Op::Refresh),
        1 => Just(Op::Repair),
        1 => Just(Op::Compact),
    ]
}

fn apply(store: &Store, op: &Op, runs: &mut Vec<bool>, view: &mut Arc<StoreView>) {
    let open = |n: usize, runs: &Vec<bool>| runs.get(n).copied().unwrap_or(false);
    match op {
        Op::Create => {
            create(store, runs.len(), RunStatus::Reviewing);
            runs.push(true);
        }
        Op::Work(run, n) if open(*run, runs) => {
            let mut journal = store.open_journal(&run_id(*run)).expect("opens");
            journal
                .append(at(*n as i64), RunEvent::Finding { finding: Box::new(finding(*n, *run)) })
                .expect("appended");
        }
        Op::Complete(run, findings) if open(*run, runs) => {
            finish(store, *run, findings);
            runs[*run] = false;
        }
        Op::End(run, status) if open(*run, runs) => {
            store.update_run(&run_id(*run), at(0), |run| run.status = *status).expect("ended");
            runs[*run] = false;
        }
        Op::Triage(n, status) => store.append_dispositions(&[disposition(*n, *status, "g")]).expect("appended"),
        Op::Rubbish(file, torn) => {
            let path = store.root().join(["runs.ndjson", "triage.ndjson"][*file]);
            let mut bytes = fs::read(&path).unwrap_or_default();
            bytes.extend_from_slice(if *torn { b"{\"run_id\":\"ar_0" } else { b"rubbish\n" });
            fs::write(&path, bytes).expect("written");
        }
        Op::Checkpoint => store.checkpoint_now().expect("written"),
        Op::Refresh => *view = store.refresh_view(view).expect("a view"),
        Op::Repair => assert!(store.repair().expect("repaired").is_clean()),
        Op::Compact => drop(store.prune(None, None, at(0), false).expect("compacted")),
        Op::Work(..) | Op::Complete(..) | Op::End(..) => {}
    }
}

/// Returns the findings that each run reported, and the last disposition of each finding.
fn history(view: &StoreView) -> Vec<String> {
    let reported = |run: usize| {
        let mut ids: Vec<&str> = view.reported_findings(run).map(|finding| view.finding(finding).id).collect();
        ids.sort_unstable();
        format!("{} {ids:?}", view.run(run).id)
    };
    let decided = |finding: usize| format!("{} {:?}", view.finding(finding).id, view.decision(finding));
    (0..view.run_count()).map(reported).chain((0..view.finding_count()).map(decided)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checkpoint_tail_refresh_and_scratch_agree(ops in proptest::collection::vec(op(), 1..40)) {
        let place = Place::new();
        let store = place.store();
        store.with_lock(|_| Ok(())).expect("made");
        let mut runs = Vec::new();
        let mut view = store.view().expect("a view");
        for op in &ops {
            apply(&store, op, &mut runs, &mut view);
        }
        let opened = store.view().expect("a view");
        let refreshed = store.refresh_view(&view).expect("a view");
        let histories = [history(&opened), history(&refreshed)];
        let figures = store.run_figures(&opened).expect("readable").into_iter().flatten();
        let mut figures: Vec<RunFigures> = figures.collect();
        figures.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        let mut records: Vec<RunFigures> =
            store.latest_records().expect("readable").iter().map(RunFigures::from).collect();
        records.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        prop_assert_eq!(figures, records, "of the latest lines");
        let (opened, refreshed) = (dump(&opened), dump(&refreshed));
        let cached = dump(&store.runs_view().expect("a view"));
        let _ = fs::remove_file(store.root().join("view.cache"));
        let scratch = store.view().expect("a view");
        prop_assert_eq!(&histories[0], &history(&scratch));
        prop_assert_eq!(&histories[1], &history(&scratch));
        let scratch = dump(&scratch);
        prop_assert_eq!(&opened, &scratch);
        prop_assert_eq!(&refreshed, &scratch);
        prop_assert_eq!(cached, dump(&store.runs_view().expect("a view")));
        // Sorts the lines by time instead of by their place in the file.
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(dump(&store.recent_view(1000).expect("a view"))), sorted(scratch));
    }
}

#[test]
fn requests_alone_keep_the_checkpoint_up_to_date() {
    let place = Place::new();
    let store = place.store();
    sample::fill(&store, &sample::Shape::of(300, 300)).expect("a sample");
    let cache = store.root().join("view.cache");
    let runs = store.with_lock(|locked| {
        let runs = locked.runs_view()?.run_count();
        assert!(!cache.exists(), "not while others wait for the lock");
        Ok(runs)
    });
    assert_eq!(runs.expect("read"), 300);
    assert!(cache.exists());
}

#[test]
fn few_runs_with_many_findings_leave_a_checkpoint() {
    let many: Vec<usize> = (0..2000).collect();
    let finish_lost = |store: &Store, findings: &[usize]| {
        let events: Vec<RunEvent> =
            findings.iter().map(|n| RunEvent::Finding { finding: Box::new(finding(*n, 1)) }).collect();
        store.open_journal(&run_id(1)).expect("a journal").append_all(at(1), &events).expect("appended");
        store.update_run(&run_id(1), at(0), |run| run.status = RunStatus::Lost).expect("lost");
    };
    for (is_lost, findings, expected) in
        [(false, &many[..], true), (false, &many[..2], false), (true, &many[..], true), (true, &many[..2], false)]
    {
        let place = Place::new();
        let store = place.store();
        create(&store, 1, RunStatus::Reviewing);
        match is_lost {
            true => finish_lost(&store, findings),
            false => finish(&store, 1, findings),
        }
        let view = store.view().expect("a view");
        assert_eq!(view.finding_count(), findings.len());
        assert_eq!(store.root().join("view.cache").exists(), expected, "{} findings", findings.len());
        assert_eq!(dump(&store.view().expect("a view")), dump(&view));
    }
}
