//! Workers are killed at random points while several processes ask for reviews.
//!
//! The points are entries of a run's journal, chosen by a generator with a fixed seed (`REVDECK_TEST_SEED`); how many
//! workers are killed is in `REVDECK_TEST_KILLS`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use revdeck::domain::{FindingId, RunId, RunRecord, RunStatus};
use rustix::process::Signal;

use super::place::{Place, pid, wait_for};

const KILLS: usize = 200;
const ASKERS: usize = 8;
/// No worker is killed any more after this time, so that a slow machine ends the test as well.
const PATIENCE: Duration = Duration::from_secs(40);

fn variable(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A generator of numbers (xorshift) that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[test]
fn no_finding_is_lost_or_doubled_and_no_run_is_stuck() {
    let kills = variable("REVDECK_TEST_KILLS", KILLS);
    let seed = variable("REVDECK_TEST_SEED", 0x5eed);
    let place = Place::new();
    let commits: Vec<String> = (0..ASKERS).map(|number| place.commit_modules(&format!("m{number}"), 40)).collect();

    let stop = AtomicBool::new(false);
    let killed = AtomicUsize::new(0);
    let mut recorded: BTreeMap<RunId, BTreeSet<FindingId>> = BTreeMap::new();
    std::thread::scope(|scope| {
        for commit in &commits {
            let (place, stop) = (&place, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // Enough to do, and not more: a queue without end shows nothing new.
                    wait_for("room in the queue", || {
                        let pending = place.runs().iter().filter(|run| run.status == RunStatus::Pending).count();
                        (pending < ASKERS || stop.load(Ordering::Relaxed)).then_some(())
                    });
                    place.review(&["--commit", commit, "--force"]);
                }
            });
        }
        let stop_all = StopOnDrop(&stop);
        kill_workers(&place, kills, seed as u64, &killed, &mut recorded);
        drop(stop_all);
    });
    let killed = killed.load(Ordering::Relaxed);

    wait_for("the end of all runs", || {
        place.revdeck(&["runs", "-n", "1"]);
        place.runs().iter().all(|run| run.status.is_terminal()).then_some(())
    });
    let runs = place.runs();
    let expected: BTreeMap<String, BTreeSet<FindingId>> = commits
        .iter()
        .map(|commit| {
            let undisturbed = place.review(&["--commit", commit, "--force", "--wait"]);
            (place.run(&undisturbed).snapshot_commit, place.finding_ids(&undisturbed))
        })
        .collect();
    for run in &runs {
        check(&place, run, &expected, recorded.get(&run.run_id), seed);
    }
    let count = |status| runs.iter().filter(|run| run.status == status).count();
    let (completed, lost) = (count(RunStatus::Completed), count(RunStatus::Lost));
    println!("{killed} workers killed, {} runs: {completed} completed, {lost} lost (seed {seed})", runs.len());
    assert_eq!(completed + lost, runs.len(), "{:?}", runs.iter().map(|run| run.status).collect::<Vec<_>>());
    assert!(killed * 2 >= kills, "only {killed} of {kills} workers could be killed in {PATIENCE:?}");
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Kills one worker after the other, each when its journal has reached an entry chosen at random; remembers which
/// findings its journal held.
fn kill_workers(
    place: &Place,
    kills: usize,
    seed: u64,
    killed: &AtomicUsize,
    recorded: &mut BTreeMap<RunId, BTreeSet<FindingId>>,
) {
    let mut dice = Dice(seed | 1);
    let store = place.store();
    let until = Instant::now() + PATIENCE;
    while killed.load(Ordering::Relaxed) < kills && Instant::now() < until {
        let working: Vec<RunRecord> = place
            .runs()
            .into_iter()
            .filter(|run| run.status.is_working() && store.is_live(&run.run_id).unwrap_or(false))
            .collect();
        if working.is_empty() {
            std::thread::yield_now();
            continue;
        }
        let run = &working[dice.below(working.len())].run_id;
        // An attempt writes some 250 entries in five writes; half of the points are between its first words.
        let ahead = if dice.below(2) == 0 { dice.below(4) } else { dice.below(260) };
        let target = place.events(run).len() + ahead;
        wait_for("an entry or an end", || {
            let record = place.run(run);
            let is_over = !record.status.is_working() || !store.is_live(run).unwrap_or(false);
            (is_over || place.events(run).len() >= target).then_some(())
        });
        let record = place.run(run);
        // The worker of this attempt, and of no earlier one, and not after it has ended.
        if place.attempt(run) != Some(record.attempt) || !store.is_live(run).unwrap_or(false) {
            continue;
        }
        let Some(worker) = place.worker(run) else { continue };
        if rustix::process::kill_process(pid(worker), Signal::KILL).is_ok() {
            killed.fetch_add(1, Ordering::Relaxed);
            recorded.entry(run.clone()).or_default().extend(place.journalled(run));
        }
    }
}

fn check(
    place: &Place,
    run: &RunRecord,
    expected: &BTreeMap<String, BTreeSet<FindingId>>,
    recorded: Option<&BTreeSet<FindingId>>,
    seed: usize,
) {
    let id = &run.run_id;
    let hint = format!("run {id} {} in attempt {}, seed {seed}", run.status, run.attempt);
    let (journalled, findings) = (place.journalled(id), place.finding_ids(id));
    let expected = &expected[&run.snapshot_commit];
    assert_eq!(findings, journalled, "output and journal differ: {hint}");
    assert!(recorded.is_none_or(|recorded| recorded.is_subset(&findings)), "a recorded finding is gone: {hint}");
    assert_eq!(run.finding_counts.total() as usize, findings.len(), "{hint}");
    match run.status {
        RunStatus::Completed => assert_eq!(&findings, expected, "{hint}"),
        _ => {
            assert_eq!(run.attempt, 3, "{hint}");
            assert!(findings.is_subset(expected), "{hint}");
        }
    }
}
