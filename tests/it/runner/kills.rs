//! Kills workers at random points while several processes request reviews.
//!
//! A point is a number of writes to the worker's journal and to its log of parsed texts. A generator with a fixed seed
//! (`REVDECK_TEST_SEED`) chooses it, so every step of a run is hit about equally often, however long it takes.
//! `REVDECK_TEST_KILLS` is the number of kills. On a slow machine there are fewer, because the test stops killing
//! after `REVDECK_TEST_SECONDS`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use revdeck::domain::{FindingId, RunEvent, RunId, RunRecord, RunStatus};
use rustix::process::Signal;

use super::place::{Place, pid, poll, wait_for};
use crate::chance::{Dice, variable};

const KILLS: usize = 200;
const ASKERS: usize = 8;
/// The number of killer threads: as many as concurrent workers.
const KILLERS: usize = 4;
const SECONDS: usize = 45;
/// Time after which a thread looks again, should no event have come.
const PATIENCE: Duration = Duration::from_millis(100);
/// The number of writes of a worker that polling tells apart: to its journal the start, the plan, two units of files,
/// the findings across files with the last phase; to its log of parsed texts some of the 68 entries.
const EVENTS: u64 = 24;

/// The state that the killers share.
struct Hunt {
    kills: usize,
    killed: AtomicUsize,
    until: Instant,
    /// The duration of an undisturbed attempt.
    attempt: Duration,
    /// Counts from the store, updated by one thread for all.
    pending: AtomicUsize,
    working: Mutex<Vec<RunId>>,
    /// The runs that a killer waits for, so that two killers do not wait for the same run.
    chosen: Mutex<BTreeSet<RunId>>,
    /// The findings in each journal at the moment of the kill.
    recorded: Mutex<BTreeMap<RunId, BTreeSet<FindingId>>>,
}

impl Hunt {
    /// Returns the working runs. They are copied, because a killer that held this lock while it waits for `chosen`
    /// could wait for another killer for ever.
    fn working(&self) -> Vec<RunId> {
        self.working.lock().expect("the store can be read").clone()
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "how many were killed is what one looks for in a long run")]
fn no_finding_is_lost_or_doubled_and_no_run_is_stuck() {
    let seed = variable("REVDECK_TEST_SEED", 0x5eed) as u64;
    let place = Place::new();
    place.settings(&format!("max_parallel_runs = {KILLERS}\n"));
    // Each commit has two units of files, so that there are writes between the first finding and the last.
    let commits: Vec<String> = (0..ASKERS).map(|number| place.commit_modules(&format!("m{number}"), 34)).collect();
    let mut expected: BTreeMap<String, BTreeSet<FindingId>> = BTreeMap::new();
    let mut attempt = Duration::ZERO;
    for commit in &commits {
        let undisturbed = place.review(&["--commit", commit, "--wait"]);
        expected.insert(place.run(&undisturbed).subject.snapshot_commit, place.finding_ids(&undisturbed));
        attempt = attempt.max(duration(&place, &undisturbed));
    }

    let hunt = Hunt {
        kills: variable("REVDECK_TEST_KILLS", KILLS),
        killed: AtomicUsize::new(0),
        until: Instant::now() + Duration::from_secs(variable("REVDECK_TEST_SECONDS", SECONDS) as u64),
        attempt,
        pending: AtomicUsize::new(0),
        working: Mutex::default(),
        chosen: Mutex::default(),
        recorded: Mutex::default(),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| keep_up(&place, &hunt, &stop));
        for commit in &commits {
            let (place, hunt, stop) = (&place, &hunt, &stop);
            scope.spawn(move || ask_again_and_again(place, hunt, commit, stop));
        }
        let killers: Vec<_> = (0..KILLERS)
            .map(|number| {
                let (place, hunt) = (&place, &hunt);
                scope.spawn(move || kill_workers(place, hunt, Dice(seed * 2 + 1 + number as u64)))
            })
            .collect();
        let results: Vec<_> = killers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a killer ends"));
    });

    wait_for("the end of all runs", || {
        place.revdeck(&["runs", "-n", "1"]);
        place.runs().iter().all(|run| run.status.is_terminal()).then_some(())
    });
    let (runs, recorded) = (place.runs(), hunt.recorded.into_inner().expect("no killer panicked"));
    for run in &runs {
        check(&place, run, &expected, recorded.get(&run.run_id), seed);
    }
    let count = |status| runs.iter().filter(|run| run.status == status).count();
    let (completed, lost) = (count(RunStatus::Completed), count(RunStatus::Lost));
    let killed = hunt.killed.load(Ordering::Relaxed);
    println!("{killed} workers killed, {} runs: {completed} completed, {lost} lost (seed {seed})", runs.len());
    assert_eq!(completed + lost, runs.len(), "{:?}", runs.iter().map(|run| run.status).collect::<Vec<_>>());
    assert!(killed > hunt.kills / 20, "only {killed} workers could be killed");
}

/// Returns the time from the first to the last entry of a journal.
fn duration(place: &Place, run: &RunId) -> Duration {
    let entries = wait_for("the last entry", || {
        let entries = place.store().read_journal(run).expect("the journal can be read");
        let is_over = entries.last().is_some_and(|entry| matches!(entry.event, RunEvent::Finished { .. }));
        is_over.then_some(entries)
    });
    let (first, last) = (&entries[0], &entries[entries.len() - 1]);
    Duration::from_millis(u64::try_from(last.at.as_millisecond() - first.at.as_millisecond()).unwrap_or(0))
}

fn keep_up(place: &Place, hunt: &Hunt, stop: &AtomicBool) {
    let store = place.store();
    let mut view = store.view().expect("the store can be read");
    while !stop.load(Ordering::Relaxed) {
        let with = |wanted: fn(RunStatus) -> bool| {
            let rows = (0..view.run_count()).map(|index| view.run(index)).filter(move |run| wanted(run.status));
            rows.filter_map(|run| run.id.parse::<RunId>().ok()).collect::<Vec<_>>()
        };
        hunt.pending.store(with(|status| status == RunStatus::Pending).len(), Ordering::Relaxed);
        *hunt.working.lock().expect("no killer panicked") = with(RunStatus::is_working);
        let known = view;
        let changed = || store.refresh_view(&known).is_ok_and(|now| !std::sync::Arc::ptr_eq(&now, &known));
        poll(PATIENCE, || stop.load(Ordering::Relaxed) || changed());
        view = store.refresh_view(&known).expect("the store can be read");
    }
}

fn ask_again_and_again(place: &Place, hunt: &Hunt, commit: &str, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // Keeps the queue short: a longer queue tests no other case.
        let is_short = || hunt.pending.load(Ordering::Relaxed) < ASKERS / 2;
        if poll(PATIENCE, || is_short() || stop.load(Ordering::Relaxed)) && is_short() {
            place.review(&["--commit", commit, "--force"]);
        }
    }
}

fn kill_workers(place: &Place, hunt: &Hunt, mut dice: Dice) {
    let store = place.store();
    while hunt.killed.load(Ordering::Relaxed) < hunt.kills && Instant::now() < hunt.until {
        let chosen = {
            let working = hunt.working();
            let mut chosen = hunt.chosen.lock().expect("no killer panicked");
            let run = working.into_iter().find(|run| !chosen.contains(run) && store.is_live(run).unwrap_or(false));
            if let Some(run) = &run {
                chosen.insert(run.clone());
            }
            run
        };
        let Some(run) = chosen else {
            let is_free = |run: &RunId| !hunt.chosen.lock().expect("no killer panicked").contains(run);
            poll(PATIENCE, || hunt.working().iter().any(is_free));
            continue;
        };
        place.await_events(&run, dice.below(EVENTS), hunt.attempt * 2);
        // Kills only the worker of the present attempt, and only while it holds the lock.
        let record = place.run(&run);
        if record.status.is_working()
            && let Some((attempt, worker)) = place.started(&run)
            && attempt == record.attempt
            && store.is_live(&run).unwrap_or(false)
            && rustix::process::kill_process(pid(worker), Signal::KILL).is_ok()
        {
            hunt.killed.fetch_add(1, Ordering::Relaxed);
            let journalled = place.journalled(&run);
            hunt.recorded.lock().expect("no killer panicked").entry(run.clone()).or_default().extend(journalled);
            place.revdeck(&["runs", "-n", "1"]);
        }
        hunt.chosen.lock().expect("no killer panicked").remove(&run);
    }
}

fn check(
    place: &Place,
    run: &RunRecord,
    expected: &BTreeMap<String, BTreeSet<FindingId>>,
    recorded: Option<&BTreeSet<FindingId>>,
    seed: u64,
) {
    let id = &run.run_id;
    let hint = format!("run {id} {} in attempt {}, seed {seed}", run.status, run.attempt);
    let (journalled, findings) = (place.journalled(id), place.finding_ids(id));
    let expected = &expected[&run.subject.snapshot_commit];
    assert_eq!(findings, journalled, "output and journal differ: {hint}");
    assert!(recorded.is_none_or(|recorded| recorded.is_subset(&findings)), "a recorded finding is gone: {hint}");
    assert_eq!(run.outcome.finding_counts.total() as usize, findings.len(), "{hint}");
    match run.status {
        RunStatus::Completed => assert_eq!(&findings, expected, "{hint}"),
        _ => {
            assert_eq!(run.attempt, 3, "{hint}");
            assert!(findings.is_subset(expected), "{hint}");
        }
    }
}
