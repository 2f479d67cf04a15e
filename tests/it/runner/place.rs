//! A repository with code that has findings, and functions that read its store.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use revdeck::domain::{FindingId, RunEvent, RunId, RunOutput, RunRecord, RunStatus};
use revdeck::store::Store;
use rustix::process::{Pid, Signal};

use crate::env::{TestEnvironment, executable, poll_every};

/// A timeout that no operation here reaches, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Interval of [`poll`]: short against a step of a worker.
const POLL_INTERVAL: Duration = Duration::from_micros(400);

/// Waits until `condition` returns a value.
#[track_caller]
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    let Some(value) = poll_every(POLL_INTERVAL * 5, DEADLINE, condition) else {
        panic!("waited in vain for {what}");
    };
    value
}

/// Returns true if a worker that was started for the run lives: it holds a lock that the program has taken for it.
pub fn is_starting(store: &Store, run: &RunId) -> bool {
    match std::fs::File::open(store.root().join("locks").join(format!("{run}.start"))) {
        Ok(file) => matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
            false
        }
    }
}

/// Waits until `condition` is true, at most for `time`. Returns whether it is true.
pub fn poll(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    poll_every(POLL_INTERVAL, time, || condition().then_some(())).is_some()
}

pub fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).expect("a process id")).expect("a process id")
}

/// Sends a signal to a process that exists.
pub fn signal(process: u32, signal: Signal) {
    rustix::process::kill_process(pid(process), signal).expect("the process is there");
}

/// Suspends a worker at a moment when it does not hold the store's lock; otherwise no other process could continue.
pub fn hold_still(store: &Store, process: u32) {
    let held = store.with_lock(|_| {
        signal(process, Signal::STOP);
        wait_for("a process that stands still", || (gone(process) || state(process) == Some('T')).then_some(()));
        Ok(())
    });
    held.expect("the store's lock");
}

/// Suspends the worker of a run after it has covered something and before it has covered everything; returns its
/// process id.
pub fn halfway(place: &Place, run: &RunId) -> u32 {
    let worker = wait_for("a covered file", || {
        let covered = place.events(run).iter().any(|event| matches!(event, RunEvent::Covered { .. }));
        covered.then(|| place.worker(run)).flatten()
    });
    hold_still(&place.store(), worker);
    assert!(place.run(run).status.is_working(), "the repository is too small for this machine");
    worker
}

/// Returns the letter that the kernel reports for a process state.
fn state(process: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Returns true if all threads of a process have ended (it may still be a zombie): only then its locks are free.
pub fn gone(process: u32) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    match state(process) {
        Some(state) => state == 'Z' && threads() <= 1,
        None => rustix::process::test_kill_process(pid(process)).is_err(),
    }
}

pub struct Place {
    pub test: TestEnvironment,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { test: TestEnvironment::new() };
        place.test.write("README", "a repository\n");
        place.test.commit("begin");
        place
    }

    pub fn settings(&self, text: &str) {
        self.test.settings(text);
    }

    /// Writes settings that prevent any finding or end of a review before [`Self::let_end`], however slow the test
    /// is.
    pub fn hold_reviews(&self, settings: &str) {
        let (agent, may_end) = (self.test.home().join("agent"), self.may_end());
        let script = format!(
            "#!/bin/sh\ncat > /dev/null\nwhile ! [ -e '{}' ]; do sleep 0.02; done\necho '{{\"findings\": []}}'\n",
            may_end.display()
        );
        executable(&agent, script);
        self.settings(&format!(
            "default_reviewer = \"agent\"\n{settings}[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
            agent.display()
        ));
    }

    pub fn let_end(&self) {
        std::fs::write(self.may_end(), "").expect("a file");
    }

    fn may_end(&self) -> PathBuf {
        self.test.home().join("may-end")
    }

    /// Writes modules with a few findings each, all different.
    pub fn modules(&self, folder: &str, count: usize) {
        for number in 0..count {
            let seed = folder.bytes().map(usize::from).sum::<usize>() * 1000 + number;
            let mut text = String::new();
            for function in 0..2 {
                let value = seed * 7 + function * 1311 + 5000;
                let _ = write!(
                    text,
                    "def {folder}_{number}_{function}(value):\n    try:\n        return value * {value}\n    except:\n        \
                     pass\n\n\n",
                );
            }
            self.test.write(&format!("{folder}/module_{number}.py"), text);
        }
    }

    pub fn commit_modules(&self, folder: &str, count: usize) -> String {
        self.modules(folder, count);
        self.test.commit(folder)
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("revdeck starts")
    }

    /// Runs revdeck, expects success and returns the standard output.
    pub fn revdeck(&self, arguments: &[&str]) -> String {
        let output = self.test.revdeck(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "revdeck {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Requests a review that stays incomplete, waits for it and returns its run.
    pub fn review_incompletely(&self, arguments: &[&str]) -> RunId {
        let arguments = [&["review", "--wait", "--format", "json"], arguments].concat();
        let answer = self.test.json(&arguments, crate::env::INCOMPLETE);
        answer["run"]["run_id"].as_str().expect("a run").parse().expect("an id")
    }

    /// Requests a review and returns the run that serves the request.
    pub fn review(&self, arguments: &[&str]) -> RunId {
        let arguments = [&["review", "--format", "json"], arguments].concat();
        let answer: serde_json::Value = serde_json::from_str(&self.revdeck(&arguments)).expect("JSON");
        answer["run"]["run_id"].as_str().expect("a run").parse().expect("an id")
    }

    pub fn store(&self) -> Store {
        self.test.store()
    }

    pub fn run(&self, run: &RunId) -> RunRecord {
        self.store().run(run).expect("the store can be read").expect("the run is there")
    }

    pub fn ended(&self, run: &RunId) -> RunRecord {
        wait_for("the end of the run", || Some(self.run(run)).filter(|run| run.status.is_terminal()))
    }

    /// Returns every line of `runs.ndjson`.
    pub fn lines(&self) -> Vec<RunRecord> {
        let text = std::fs::read_to_string(self.store().root().join("runs.ndjson")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the present records, oldest first.
    pub fn runs(&self) -> Vec<RunRecord> {
        let mut runs: Vec<RunRecord> = Vec::new();
        for line in self.lines() {
            match runs.iter_mut().find(|run| run.run_id == line.run_id) {
                Some(run) => *run = line,
                None => runs.push(line),
            }
        }
        runs
    }

    pub fn newest(&self) -> Option<RunId> {
        self.runs().pop().map(|run| run.run_id)
    }

    /// Returns the statuses of a run in order, without repetitions.
    pub fn statuses(&self, run: &RunId) -> Vec<RunStatus> {
        let mut statuses: Vec<RunStatus> =
            self.lines().into_iter().filter(|line| line.run_id == *run).map(|line| line.status).collect();
        statuses.dedup();
        statuses
    }

    pub fn events(&self, run: &RunId) -> Vec<RunEvent> {
        let entries = self.store().read_journal(run).expect("the journal can be read");
        entries.into_iter().map(|entry| entry.event).collect()
    }

    /// Returns the attempt and process id of the last worker that started.
    pub fn started(&self, run: &RunId) -> Option<(u32, u32)> {
        self.events(run).into_iter().rev().find_map(|event| match event {
            RunEvent::Started { attempt, worker } => Some((attempt, worker)),
            _ => None,
        })
    }

    /// Returns the process id of the worker of the last attempt that started.
    pub fn worker(&self, run: &RunId) -> Option<u32> {
        self.started(run).map(|(_, worker)| worker)
    }

    pub fn attempt(&self, run: &RunId) -> Option<u32> {
        self.started(run).map(|(attempt, _)| attempt)
    }

    /// Returns the findings in the journal.
    pub fn journalled(&self, run: &RunId) -> BTreeSet<FindingId> {
        let mut ids = BTreeSet::new();
        for event in self.events(run) {
            if let RunEvent::Finding { finding } = event {
                assert!(
                    ids.insert(finding.finding_id.clone()),
                    "{} is in the journal of {run} twice",
                    finding.finding_id
                );
            }
        }
        ids
    }

    pub fn output_path(&self, run: &RunId) -> PathBuf {
        self.store().root().join("outputs").join(format!("{run}.json"))
    }

    pub fn output(&self, run: &RunId) -> Option<RunOutput> {
        let bytes = std::fs::read(self.output_path(run)).ok()?;
        Some(serde_json::from_slice(&bytes).expect("an output can be read"))
    }

    /// Returns the ids of the findings in the output; empty if there is no output.
    pub fn finding_ids(&self, run: &RunId) -> BTreeSet<FindingId> {
        let mut ids = BTreeSet::new();
        for finding in self.output(run).map(|output| output.findings).unwrap_or_default() {
            assert!(ids.insert(finding.finding_id.clone()), "{} is in the output of {run} twice", finding.finding_id);
        }
        ids
    }

    /// Counts what a worker has written so far: the bytes of its journal, and of its log of parsed texts.
    pub fn written_by(&self, run: &RunId) -> (u64, u64) {
        let root = self.store().root().to_owned();
        let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        (length(root.join(format!("events/{run}.jsonl"))), length(root.join(format!("locks/{run}.parsing"))))
    }

    /// Waits until a worker has written `events` more times, as far as polling sees them, or has ended. Waits at most
    /// for `time`.
    pub fn await_events(&self, run: &RunId, events: u64, time: Duration) {
        let (store, mut seen, mut known) = (self.store(), 0, self.written_by(run));
        poll(time, || {
            let now = self.written_by(run);
            seen += u64::from(now != known);
            known = now;
            seen >= events || !store.is_live(run).unwrap_or(false)
        });
    }

    fn journal_path(&self, run: &RunId) -> PathBuf {
        self.store().root().join("events").join(format!("{run}.jsonl"))
    }

    /// Returns the lines of a journal, each with its end.
    pub fn journal_lines(&self, run: &RunId) -> Vec<String> {
        let text = std::fs::read_to_string(self.journal_path(run)).expect("the journal");
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    /// Leaves a run as if its worker had died earlier, with these lines of its journal. Removes from `runs.ndjson` the
    /// lines after which it has ended or has replaced another run, and adds its record as `change` leaves it.
    pub fn take_back(&self, run: &RunId, journal: &[String], change: impl FnOnce(&mut RunRecord)) {
        let mut record = self.run(run);
        change(&mut record);
        std::fs::write(self.journal_path(run), journal.concat()).expect("the journal is writable");
        let path = self.store().root().join("runs.ndjson");
        let text = std::fs::read_to_string(&path).expect("the runs");
        let is_kept = |line: &&str| {
            let Ok(line) = serde_json::from_str::<RunRecord>(line) else { return true };
            let has_ended = line.run_id == *run && line.status.is_terminal();
            !has_ended && line.links.superseded_by.as_ref() != Some(run)
        };
        let mut kept: String = text.split_inclusive('\n').filter(is_kept).collect();
        kept.push_str(&serde_json::to_string(&record).expect("a record"));
        kept.push('\n');
        // The store would notice that lines are gone, and its checkpoint has read them.
        for name in ["extents", "view.cache"] {
            let _ = std::fs::remove_file(path.with_file_name(name));
        }
        std::fs::write(path, kept).expect("the runs are writable");
    }
}
