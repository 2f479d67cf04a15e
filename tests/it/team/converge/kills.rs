//! Kills of exchanges and of reviews, at moments that others can see: a request that has come, a file that was written.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use revdeck::domain::{RunEvent, RunId, RunRecord, RunStatus};
use revdeck::store::Store;
use rustix::process::Signal;
use serde_json::Value;

use super::place::Place;
use crate::env::{DONE, TestEnvironment};
use crate::llm::server::Model;
use crate::runner::place::{gone, pid, poll, wait_for};

/// Time after which a process has ended, or never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes that are killed during a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Command,
    Worker,
    Both,
}

impl Victim {
    pub const ALL: [Self; 3] = [Self::Command, Self::Worker, Self::Both];
}

/// Number of killed processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kills {
    pub syncs: usize,
    pub commands: usize,
    pub workers: usize,
}

/// Starts revdeck without waiting for it.
pub fn start(machine: &TestEnvironment, arguments: &[&str]) -> Child {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("revdeck starts")
}

/// Returns the arguments of a review by the model.
pub fn review_arguments(scope: &str) -> [&str; 8] {
    ["review", "--reviewer", "mine", "--commit", scope, "--wait", "--format", "json"]
}

fn has_ended(process: &mut Child) -> bool {
    process.try_wait().expect("a status").is_some()
}

/// Kills a process. Returns false if it had ended before.
fn kill(process: &mut Child) -> bool {
    let was_alive = !has_ended(process);
    // The process may end at this very moment.
    let _ = process.kill();
    process.wait().expect("an end");
    was_alive
}

/// Waits until the observed value, which was `known` before, has changed `changes` times, or until `is_over`.
fn await_changes<T: PartialEq>(changes: u64, mut known: T, observe: impl Fn() -> T, mut is_over: impl FnMut() -> bool) {
    let mut seen = 0;
    poll(PATIENCE, || {
        let now = observe();
        seen += u64::from(now != known);
        known = now;
        seen >= changes || is_over()
    });
}

/// Kills an exchange after `steps` changes of its visible state. Returns false if it had ended before.
pub fn kill_sync(place: &Place, machine: &TestEnvironment, number: usize, steps: u64) -> bool {
    let folders: [PathBuf; 2] = [machine.store().root().join("team"), machine.repo().join(".git/refs/revdeck")];
    let observe = || place.trace(number, &folders);
    let before = observe();
    let mut process = start(machine, &["sync"]);
    await_changes(steps, before, observe, || has_ended(&mut process));
    kill(&mut process)
}

/// Returns the present status of each run of a store.
pub fn read_statuses(store: &Store) -> io::Result<BTreeMap<RunId, RunStatus>> {
    let text = std::fs::read_to_string(store.root().join("runs.ndjson"))?;
    let records = text.lines().filter_map(|line| serde_json::from_str::<RunRecord>(line).ok());
    Ok(records.map(|run| (run.run_id, run.status)).collect())
}

/// Returns the run that a worker of this machine works on, and the process id of the worker.
fn working_run(store: &Store) -> Option<(RunId, u32)> {
    let runs = read_statuses(store).ok()?;
    let (run, _) = runs.into_iter().rev().find(|(_, status)| status.is_working())?;
    let entries = store.read_journal(&run).ok()?;
    let worker = entries.iter().rev().find_map(|entry| match entry.event {
        RunEvent::Started { worker, .. } => Some(worker),
        _ => None,
    })?;
    Some((run, worker))
}

/// Waits until a worker has written `writes` times to its journal, or has ended.
fn await_writes(store: &Store, run: &RunId, worker: u32, writes: u64) {
    let journal = store.root().join("events").join(format!("{run}.jsonl"));
    let length = || std::fs::metadata(&journal).map_or(0, |metadata| metadata.len());
    await_changes(writes, length(), length, || gone(worker));
}

/// A review by the model that is killed, and asked for again.
pub struct KilledReview<'a> {
    pub machine: &'a TestEnvironment,
    /// Machine that asks for the same review meanwhile.
    pub bystander: Option<&'a TestEnvironment>,
    /// Commit.
    pub scope: &'a str,
    pub victim: Victim,
    /// Number of writes to the journal after the answer of the model; 0 kills while the model still thinks.
    pub writes: u64,
}

impl KilledReview<'_> {
    /// Starts the review, kills it and lets it go on. Returns its result.
    pub fn run(&self, model: &Model, kills: &mut Kills) -> Value {
        let arguments = review_arguments(self.scope);
        let asked = model.asked();
        model.hold_after(asked);
        let mut command = start(self.machine, &arguments);
        wait_for("a request, or the end of the review", || {
            (model.asked() > asked || has_ended(&mut command)).then_some(())
        });
        if model.asked() == asked {
            // An earlier review of the change is used again.
            model.let_go();
            return self.machine.json(&arguments, DONE);
        }
        let store = self.machine.store();
        let (run, worker) = wait_for("a worker", || working_run(&store));
        let bystander = self.bystander.map(|bystander| start(bystander, &arguments));
        if self.writes > 0 {
            model.let_go();
            await_writes(&store, &run, worker, self.writes);
        }
        if self.victim != Victim::Worker {
            kills.commands += usize::from(kill(&mut command));
        }
        if self.victim != Victim::Command && !gone(worker) {
            kills.workers += usize::from(rustix::process::kill_process(pid(worker), Signal::KILL).is_ok());
            wait_for("the worker's end", || gone(worker).then_some(()));
        }
        model.let_go();
        if self.victim == Victim::Worker {
            // The command starts another worker.
            assert!(command.wait().expect("an end").success(), "the review of {} fails", self.scope);
        }
        let result = self.machine.json(&arguments, DONE);
        if let Some(mut bystander) = bystander {
            assert!(bystander.wait().expect("an end").success(), "another review of {} fails", self.scope);
        }
        result
    }
}
