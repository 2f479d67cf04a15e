//! Kills revdeck's processes at random points while all of its parts are in use, in two worktrees and during `git gc`:
//! no data is lost, no run is stuck, no process and no worktree is left. Run by hand, because it takes minutes:
//!
//! ```sh
//! cargo test --test it -- --ignored campaign_of_kills --nocapture
//! ```
//!
//! The test kills `REVDECK_TEST_KILLS` (2,000) processes in at most `REVDECK_TEST_SECONDS` (3,600), chosen with the
//! seed `REVDECK_TEST_SEED`. A kill comes after a number of writes to the store, which the seed chooses too; which
//! process is there by then depends on the machine, so a seed does not repeat a test exactly.
//!
//! [`ROLES`] lists the processes that are killed. Keepers are not among them: when a keeper is killed, its worker
//! ends the program that it keeps; when both are killed at once, no process ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use revdeck::config::Paths;
use revdeck::domain::{ErrorClass, FindingId, RunId, RunStatus};
use revdeck::git::Repo;
use rustix::process::Signal;

use crate::chance::{Dice, variable};
use crate::env::executable;
use crate::runner::place::{Place, pid, poll, wait_for};

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Worker,
    Cockpit,
    /// A command that a user runs: `revdeck review`, `runs`, `triage`.
    Command,
    Watcher,
}

/// The roles that are killed, with their weights.
const ROLES: [(Role, u64); 4] = [(Role::Worker, 6), (Role::Cockpit, 2), (Role::Command, 2), (Role::Watcher, 2)];
const COMMITS: usize = 6;
const COCKPITS: usize = 2;
const ASKERS: usize = 5;
const KILLERS: u64 = 3;
/// The maximum number of pending runs; above it the test requests no more.
const QUEUE: usize = 6;
/// Writes of a worker, and of all processes, within which it is killed.
const WORKER_EVENTS: u64 = 24;
const STORE_EVENTS: u64 = 6;
/// Time after which a thread looks again, should no event have come.
const PATIENCE: Duration = Duration::from_millis(100);
/// The keys that the test sends to a cockpit: move, decide, undo, request a review.
const KEYS: [&str; 8] = ["j", "k", "a", "u", "1", "2", "r\r", "o"];

/// A revdeck process of this test.
#[derive(PartialEq, Eq)]
struct Process {
    number: u32,
    /// The command line, the program first.
    words: Vec<String>,
}

impl Process {
    fn role(&self) -> Option<Role> {
        if self
            .words
            .first()
            .is_none_or(|program| program != env!("CARGO_BIN_EXE_revdeck") && program != "/proc/self/exe")
        {
            return None;
        }
        match self.words.get(1).map(String::as_str) {
            None => Some(Role::Cockpit),
            Some("worker") => Some(Role::Worker),
            Some("watch") => Some(Role::Watcher),
            Some("keep") => None,
            Some(_) => Some(Role::Command),
        }
    }
}

/// Returns every process that has the place's home in its environment.
fn processes(place: &Place) -> Vec<Process> {
    let mark = format!("REVDECK_HOME={}", place.test.home().display());
    let ourselves = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if number == ourselves || !environment.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()) {
            continue;
        }
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<String> =
            words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        // A zombie process has no arguments.
        if !words.is_empty() {
            found.push(Process { number, words });
        }
    }
    found
}

/// The state that all threads share.
struct Hunt {
    place: Place,
    /// The linked worktree.
    second: PathBuf,
    commits: Vec<String>,
    kills: usize,
    until: Instant,
    stop: AtomicBool,
    killed: Mutex<BTreeMap<Role, usize>>,
    /// The duration of an undisturbed worker.
    attempt: Duration,
    /// The findings in each journal at the moment of the kill.
    recorded: Mutex<BTreeMap<RunId, BTreeSet<FindingId>>>,
    /// The decisions that a command has confirmed as stored.
    decided: Mutex<BTreeSet<String>>,
}

impl Hunt {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Requests reviews by both reviewers, lists runs and decides.
fn ask(hunt: &Hunt, folder: &Path, mut dice: Dice) {
    while !hunt.is_over() {
        let waiting = hunt.place.runs().iter().filter(|run| run.status == RunStatus::Pending).count();
        let commit = &hunt.commits[dice.below(COMMITS as u64) as usize];
        let open = hunt.place.store().view().ok().and_then(|view| {
            let index = dice.below(view.finding_count() as u64) as usize;
            (index < view.finding_count()).then(|| view.finding(index).id.to_owned())
        });
        let finding = open.unwrap_or_default();
        let arguments: Vec<&str> = match dice.below(8) {
            0 => vec!["runs", "-n", "1"],
            1 if !finding.is_empty() => vec!["triage", &finding, "dismissed", "--reason", "on purpose"],
            2 | 3 if waiting < QUEUE => vec!["review", "--commit", commit, "--reviewer", "agent", "--force"],
            4 if waiting < QUEUE => vec!["review", "--commit", commit],
            _ if waiting < QUEUE => vec!["review", "--commit", commit, "--force"],
            _ => vec!["findings"],
        };
        let mut command = hunt.place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.current_dir(folder).args(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("revdeck starts");
        if arguments[0] == "triage" && status.success() {
            hunt.decided.lock().expect("a lock").insert(finding.clone());
        }
    }
}

/// Collects garbage in the repository again and again.
fn collect_garbage(hunt: &Hunt) {
    while !hunt.is_over() {
        hunt.place.test.git(&["gc", "--quiet"]);
        poll(PATIENCE * 5, || hunt.is_over());
    }
}

/// Keeps a cockpit open and types into it.
fn sit(hunt: &Hunt, folder: &Path, mut dice: Dice) {
    while !hunt.is_over() {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_revdeck"));
        command.cwd(folder);
        command.env_clear();
        for (name, value) in hunt.place.test.command("true").get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).expect("revdeck starts");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let mut keys = pair.master.take_writer().expect("a writer");
        let drawn = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok(count @ 1..) = output.read(&mut [0; 8192]) {
                    drawn.fetch_add(count, Ordering::Relaxed);
                }
            });
            while child.try_wait().expect("a status").is_none() {
                if hunt.is_over() {
                    let _ = child.kill();
                }
                let _ = keys.write_all(KEYS[dice.below(KEYS.len() as u64) as usize].as_bytes());
                let before = drawn.load(Ordering::Relaxed);
                poll(PATIENCE, || drawn.load(Ordering::Relaxed) != before);
            }
            drop((keys, pair.master));
        });
    }
}

/// Keeps a watcher running.
fn watch(hunt: &Hunt) {
    while !hunt.is_over() {
        let mut child = hunt.place.start(&["watch"]);
        while child.try_wait().expect("a status").is_none() {
            if poll(PATIENCE, || hunt.is_over()) {
                let _ = child.kill();
            }
        }
    }
}

/// Returns the sizes of the files that all processes write.
fn activity(hunt: &Hunt) -> [u64; 3] {
    let root = hunt.place.store().root().to_owned();
    ["runs.ndjson", "triage.ndjson", "epoch"].map(|name| {
        fs::metadata(root.join(name)).map_or(0, |data| data.len() + data.modified().map_or(0, modified_nanos))
    })
}

fn modified_nanos(time: std::time::SystemTime) -> u64 {
    time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn kill(hunt: &Hunt, mut dice: Dice) {
    let shares: u64 = ROLES.into_iter().map(|(_, share)| share).sum();
    let is_open = |role: Role, share: u64| {
        let killed = hunt.killed.lock().expect("a lock").get(&role).copied().unwrap_or(0);
        killed < hunt.kills * share as usize / shares as usize
    };
    while ROLES.into_iter().any(|(role, share)| is_open(role, share)) && Instant::now() < hunt.until {
        let wanted: Vec<Role> =
            ROLES.into_iter().filter(|(role, share)| is_open(*role, *share)).map(|(role, _)| role).collect();
        let role = wanted[dice.below(wanted.len() as u64) as usize];
        let mut victims = processes(&hunt.place);
        victims.retain(|process| process.role() == Some(role));
        if victims.is_empty() {
            let before = activity(hunt);
            poll(PATIENCE, || activity(hunt) != before);
            continue;
        }
        let victim = victims.swap_remove(dice.below(victims.len() as u64) as usize);
        let run = victim.words.get(2).and_then(|word| word.parse::<RunId>().ok());
        match &run {
            Some(run) if role == Role::Worker => {
                hunt.place.await_events(run, dice.below(WORKER_EVENTS), hunt.attempt * 2);
            }
            _ => {
                let (events, mut seen, mut known) = (dice.below(STORE_EVENTS), 0, activity(hunt));
                poll(hunt.attempt * 2, || {
                    let now = activity(hunt);
                    seen += u64::from(now != known);
                    known = now;
                    seen >= events
                });
            }
        }
        let is_there = processes(&hunt.place).iter().any(|process| process == &victim);
        if !is_there || rustix::process::kill_process(pid(victim.number), Signal::KILL).is_err() {
            continue;
        }
        *hunt.killed.lock().expect("a lock").entry(role).or_default() += 1;
        if let Some(run) = run.filter(|_| role == Role::Worker) {
            let journalled = hunt.place.journalled(&run);
            hunt.recorded.lock().expect("a lock").entry(run).or_default().extend(journalled);
        }
    }
}

/// Writes a program that reviews: it takes some time, starts a child process that would stay, and reports one
/// finding.
fn agent(place: &Place) {
    let script = place.test.home().join("agent");
    let finding = r#"{"path":"PATH","line_start":4,"line_end":5,"quoted_code":"    except:\n        pass","kind":"LOGIC","severity":"high","confidence":"high","priority":1,"title":"All is swallowed","explanation":"An error is lost."}"#;
    let text = format!(
        "#!/bin/sh\ncat > prompt\nsleep 600 &\n(setsid sleep 600 &)\nsleep 0.0$(($$ % 10))\n\
         path=$(grep -o 'm[0-9]*/module_[0-9]*.py' prompt | head -n 1)\n\
         cat <<'END' | sed \"s|PATH|$path|\"\n```json\n{{\"findings\": [{finding}]}}\n```\nEND\n"
    );
    executable(&script, text);
    place.settings(&format!(
        "max_parallel_runs = 4\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
        script.display()
    ));
}

#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stdout, reason = "how many were killed is what one looks for")]
fn campaign_of_kills() {
    let seed = variable("REVDECK_TEST_SEED", 0x5eed) as u64;
    let place = Place::new();
    agent(&place);
    let commits: Vec<String> = (0..COMMITS).map(|number| place.commit_modules(&format!("m{number}"), 34)).collect();
    let mut expected: BTreeMap<(String, String), BTreeSet<FindingId>> = BTreeMap::new();
    let mut attempt = Duration::ZERO;
    for commit in &commits {
        for reviewer in ["builtin", "agent"] {
            let begun = Instant::now();
            let run = place.review(&["--commit", commit, "--reviewer", reviewer, "--wait"]);
            let found = place.finding_ids(&run);
            attempt = attempt.max(begun.elapsed());
            assert!(!found.is_empty(), "{reviewer}: {}", place.run(&run).outcome.summary);
            expected.insert((place.run(&run).subject.snapshot_commit, reviewer.to_owned()), found);
        }
    }
    let head = place.test.git(&["rev-parse", "HEAD"]);
    let second = place.test.repo().with_file_name("second");
    place.test.git(&["worktree", "add", "-q", "--detach", second.to_str().expect("text")]);
    let hunt = Hunt {
        place,
        second,
        commits,
        kills: variable("REVDECK_TEST_KILLS", 2_000),
        until: Instant::now() + Duration::from_secs(variable("REVDECK_TEST_SECONDS", 3_600) as u64),
        stop: AtomicBool::new(false),
        killed: Mutex::default(),
        attempt,
        recorded: Mutex::default(),
        decided: Mutex::default(),
    };
    let folders = [hunt.place.test.repo(), hunt.second.clone()];
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let dice = |number: u64| Dice(seed * 64 + 1 + number);
        for number in 0..ASKERS as u64 {
            let (hunt, folder) = (&hunt, folders[number as usize % 2].as_path());
            scope.spawn(move || ask(hunt, folder, dice(number)));
        }
        for number in 0..COCKPITS as u64 {
            let (hunt, folder) = (&hunt, folders[number as usize % 2].as_path());
            scope.spawn(move || sit(hunt, folder, dice(16 + number)));
        }
        scope.spawn(|| watch(&hunt));
        scope.spawn(|| collect_garbage(&hunt));
        let killers: Vec<_> = (0..KILLERS)
            .map(|number| {
                scope.spawn({
                    let hunt = &hunt;
                    move || kill(hunt, dice(32 + number))
                })
            })
            .collect();
        let ended: Vec<_> = killers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        hunt.stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.expect("a killer ends"));
    });
    let hunted = begun.elapsed();

    // No run is stuck.
    let Hunt { place, killed, recorded, decided, .. } = &hunt;
    wait_for("the end of all runs", || {
        place.revdeck(&["runs", "-n", "1"]);
        place.runs().iter().all(|run| run.status.is_terminal()).then_some(())
    });
    // No process is orphaned: the last workers end, and no other process is left.
    let settled = Instant::now();
    wait_for("the end of all processes", || processes(place).is_empty().then_some(()));
    let settled = settled.elapsed();

    // No finding or decision is lost or duplicated.
    let runs = place.runs();
    let recorded = recorded.lock().expect("a lock");
    for run in &runs {
        let hint = format!(
            "{} {} by {} in attempt {}: {}",
            run.run_id, run.status, run.reviewed_by.name, run.attempt, run.outcome.summary
        );
        let (journalled, findings) = (place.journalled(&run.run_id), place.finding_ids(&run.run_id));
        if let Some(recorded) = recorded.get(&run.run_id) {
            assert!(recorded.is_subset(&journalled), "a recorded finding is gone from the journal: {hint}");
        }
        let Some(expected) = expected.get(&(run.subject.snapshot_commit.clone(), run.reviewed_by.name.clone())) else {
            continue;
        };
        let held: BTreeSet<FindingId> = place
            .output(&run.run_id)
            .map(|output| output.held_back.into_iter().map(|held| held.finding.finding_id).collect())
            .unwrap_or_default();
        let all: BTreeSet<FindingId> = findings.union(&held).cloned().collect();
        match run.status {
            RunStatus::Completed => assert_eq!(&all, expected, "{hint}"),
            RunStatus::Lost => assert!(all.is_subset(expected) && run.attempt == 3, "{hint}"),
            // Three workers were killed before they had started.
            RunStatus::Failed => assert_eq!(run.ending.error_class, Some(ErrorClass::WorkerDied), "{hint}"),
            RunStatus::Cancelled | RunStatus::Superseded | RunStatus::Skipped => {}
            _ => panic!("{hint}"),
        }
    }
    let log = place.store().triage_log().expect("read");
    for finding in decided.lock().expect("a lock").iter() {
        assert!(log.iter().any(|line| line.finding_id.as_str() == finding), "the decision about {finding} is lost");
    }

    // No worktree is left, no snapshot without a run, and the user's repository is unchanged.
    let checkouts = Paths::from_home(&place.test.home()).cache.join("checkouts").join(&place.store().info().key);
    let left: Vec<_> = fs::read_dir(&checkouts).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new(), "worktrees stay behind");
    assert!(!place.store().has_pending_run());
    let known: BTreeSet<&RunId> = runs.iter().map(|run| &run.run_id).collect();
    let kept = Repo::discover(&place.test.repo()).and_then(|repo| repo.kept_snapshot_runs()).expect("listed");
    assert!(kept.iter().all(|run| known.contains(run)), "a snapshot of a run that nobody knows");
    assert_eq!(place.test.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(place.test.git(&["status", "--porcelain"]), "");
    let problems = place.store().repair().expect("read").problems.len();
    assert!(place.store().verify().expect("read").is_clean());

    let count = |status| runs.iter().filter(|run| run.status == status).count();
    let killed = killed.lock().expect("a lock");
    println!(
        "{} killed in {:.0} s: {killed:?}; {} runs: {} completed, {} lost, {} failed before they began; {} decisions; {problems} torn lines; \
         the last process was gone {:.1} s after the last run (seed {seed})",
        killed.values().sum::<usize>(),
        hunted.as_secs_f64(),
        runs.len(),
        count(RunStatus::Completed),
        count(RunStatus::Lost),
        count(RunStatus::Failed),
        decided.lock().expect("a lock").len(),
        settled.as_secs_f64(),
    );
    assert!(killed.values().sum::<usize>() > hunt.kills / 20, "only few could be killed");
}
