//! Machines that decide, undo, review and exchange in any order, with partitions and kills, come to the same result.
//!
//! The seed `REVDECK_TEST_SEED` chooses the operations. `REVDECK_TEAM_MACHINES` and `REVDECK_TEAM_OPERATIONS` make a simulation
//! larger. The campaigns are the same simulations with 10 machines and 10,000 operations:
//!
//! ```sh
//! cargo test --release --test it -- --ignored campaign_of_machines --nocapture --test-threads 1
//! ```

mod kills;
mod place;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::process::Child;
use std::time::Instant;

use revdeck::domain::{Actor, RunOutput, RunRecord, RunStatus, TeamRecord};
use serde_json::{Value, json};

use self::kills::{KilledReview, Kills, Victim, kill_sync, review_arguments, start};
use self::place::Place;
use super::http_remote::{CutPoint, CutRequest};
use super::{CHANGE, ids, review, status, sync};
use crate::chance::{Dice, variable};
use crate::env::{DONE, TestEnvironment};
use crate::llm::finish;
use crate::llm::server::{Model, Turn, calls, says};

/// Numbers of machines and of operations of a simulation that runs with the other tests, without the variables.
const SMALL: (usize, usize) = (3, 40);
/// Those of a campaign.
const CAMPAIGN: (usize, usize) = (10, 10_000);
/// Number of changes beyond those whose review is killed.
const SPARE_CHANGES: usize = 2;
/// Largest number of visible steps of an exchange before it is killed; an exchange has up to about ten.
const MAX_STEPS: u64 = 12;
/// Largest number of writes to a journal between the answer of the model and a kill.
const MAX_WRITES: u64 = 5;

#[test]
fn machines_converge_over_git_whatever_the_order() {
    simulate(&Place::git(), SMALL);
}

#[test]
fn machines_converge_over_http_whatever_breaks() {
    let Some(place) = Place::http() else { return };
    simulate(&place, SMALL);
}

#[test]
fn machines_converge_over_a_database_and_pay_for_no_review_twice() {
    let Some(place) = Place::database() else { return };
    simulate(&place, SMALL);
}

#[test]
#[ignore = "a campaign: takes about half an hour"]
fn campaign_of_machines_over_git() {
    simulate(&Place::git(), CAMPAIGN);
}

#[test]
#[ignore = "a campaign: takes about half an hour"]
fn campaign_of_machines_over_http() {
    let Some(place) = Place::http() else { return };
    simulate(&place, CAMPAIGN);
}

#[test]
#[ignore = "a campaign: takes about half an hour"]
fn campaign_of_machines_over_a_database() {
    let Some(place) = Place::database() else { return };
    simulate(&place, CAMPAIGN);
}

/// Operation of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Dismiss,
    Address,
    Reopen,
    /// An assistant claims that a finding is addressed.
    Claim,
    Undo,
    Sync,
    /// An exchange that is killed.
    KilledSync,
    /// An exchange whose connection is cut in the middle of a push or a fetch, where connections are ours.
    BrokenSync,
    /// The machine cannot reach the place from now on, or reaches it again.
    Partition,
    /// A review by the model; with claims, another machine asks for the same at the same moment.
    Review,
    /// A review by the model whose command or worker is killed.
    KilledReview,
}

/// Operations in the proportions of a simulation. They are drawn like cards, so that a short simulation has all of them.
const DECK: [Operation; 20] = [
    Operation::Dismiss,
    Operation::Dismiss,
    Operation::Dismiss,
    Operation::Address,
    Operation::Address,
    Operation::Reopen,
    Operation::Reopen,
    Operation::Claim,
    Operation::Undo,
    Operation::Undo,
    Operation::Sync,
    Operation::Sync,
    Operation::Sync,
    Operation::KilledSync,
    Operation::KilledSync,
    Operation::BrokenSync,
    Operation::Partition,
    Operation::Partition,
    Operation::Review,
    Operation::KilledReview,
];

/// Returns the content of the file that a change adds.
fn code(change: usize) -> String {
    format!("def asked_{change}(x):\n    return x + {change}\n")
}

/// Returns the change that a request to the model is about.
fn requested_change(request: &Value, changes: usize) -> Option<usize> {
    let text = request.to_string();
    (0..changes).find(|change| text.contains(&format!("+def asked_{change}(")))
}

/// Answers a request with a whole review: one finding about the change.
fn answer(request: &Value, changes: usize) -> Turn {
    let Some(change) = requested_change(request, changes) else { return says("a request about no change") };
    let finding = json!({ "path": format!("change_{change}.py"), "line_start": 2, "line_end": 2, "kind": "LOGIC",
        "priority": 2, "confidence": 0.8, "title": format!("Change {change} adds without a check"),
        "explanation": "The argument may be text.", "quoted_code": format!("    return x + {change}") });
    calls(&[("report_findings", json!({ "findings": [finding] })), finish()])
}

struct Simulation<'a> {
    place: &'a Place,
    people: Vec<TestEnvironment>,
    model: Model,
    dice: Dice,
    /// Operations that are drawn before all of them come again.
    deck: Vec<Operation>,
    /// Number of changes that a machine may ask the model about.
    changes: usize,
    /// Next change whose review is killed.
    next_change: usize,
    /// Findings of the built-in reviewer, which everybody knows and decides about.
    found: Vec<String>,
    /// Findings of the model.
    reported: BTreeSet<String>,
    cut_off: HashSet<usize>,
    kills: Kills,
    /// Numbers of killed workers, by change and machine.
    killed_workers: BTreeMap<(usize, usize), usize>,
    partitions: usize,
}

/// Runs a simulation and checks its result; `machines` and `operations` are those without the variables.
#[allow(clippy::print_stdout, reason = "a campaign prints its figures")]
fn simulate(place: &Place, (machines, operations): (usize, usize)) {
    let begun = Instant::now();
    let seed = variable("REVDECK_TEST_SEED", 7) as u64;
    let machines = variable("REVDECK_TEAM_MACHINES", machines);
    let operations = variable("REVDECK_TEAM_OPERATIONS", operations);
    let mut simulation = Simulation::begin(place, machines, operations, seed);
    for step in 0..operations {
        simulation.take_step(step);
    }
    simulation.bring_together();
    simulation.check_states();
    let decisions = simulation.check_records();
    simulation.check_runs();
    simulation.check_payments();
    let Simulation { kills, partitions, found, reported, model, .. } = &simulation;
    let cuts: usize = (0..machines).map(|number| place.cuts(number)).sum();
    println!(
        "{operations} operations, {machines} machines, {} kills ({} of sync, {} of review, {} of a worker), {partitions} partitions, \
         {cuts} connections cut, {} findings, {decisions} decisions, {} paid requests, {:.0} s (seed {seed})",
        kills.syncs + kills.commands + kills.workers,
        kills.syncs,
        kills.commands,
        kills.workers,
        found.len() + reported.len(),
        model.asked(),
        begun.elapsed().as_secs_f64(),
    );
}

impl<'a> Simulation<'a> {
    /// Sets machines up that have the same commits and have joined; all know the findings of the built-in reviewer.
    fn begin(place: &'a Place, machines: usize, operations: usize, seed: u64) -> Self {
        let changes = operations.div_ceil(DECK.len()) + SPARE_CHANGES;
        let model = Model::start_answering(move |request| answer(request, changes));
        let people: Vec<TestEnvironment> = (0..machines).map(|number| place.member(number)).collect();
        let first = &people[0];
        let mut found = ids(&review(first));
        first.write("many.py", CHANGE.replace("def ", "def more_"));
        first.commit("More");
        found.extend(ids(&review(first)));
        first.git(&["reset", "-q", "--hard", "HEAD~1"]);
        let commits: Vec<_> = (0..changes).map(|change| vec![(format!("change_{change}.py"), code(change))]).collect();
        for (number, machine) in people.iter().enumerate() {
            machine.import(&commits);
            machine.git(&["reset", "-q", "--hard"]);
            // The keys tell who pays.
            machine.settings(&format!(
                "[reviewers.mine]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
                 api_key_cmd = \"printf made-up-{number}\"\nattempts = 1\n",
                model.url()
            ));
        }
        people.iter().for_each(|machine| drop(sync(machine)));
        Self {
            place,
            people,
            model,
            // 0 is no seed.
            dice: Dice(seed * 2 + 1),
            deck: Vec::new(),
            changes,
            next_change: 0,
            found,
            reported: BTreeSet::new(),
            cut_off: HashSet::new(),
            kills: Kills::default(),
            killed_workers: BTreeMap::new(),
            partitions: 0,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.dice.below(limit as u64) as usize
    }

    fn draw(&mut self) -> Operation {
        if self.deck.is_empty() {
            self.deck.extend(DECK);
        }
        let card = self.below(self.deck.len());
        self.deck.swap_remove(card)
    }

    /// Returns the commit of a change.
    fn scope(&self, change: usize) -> String {
        format!("HEAD~{}", self.changes - 1 - change)
    }

    /// Runs a command on a machine whose clock is days off. It may fail: the machine may be cut off, or have nothing to undo.
    fn act(&self, number: usize, arguments: &[&str], actor: &str) {
        let now = format!("2026-11-{:02}T10:00:00Z", 20 + number * 3 % 9);
        let mut command = self.people[number].command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(arguments).env("REVDECK_ACTOR", actor).env("REVDECK_NOW", now);
        command.output().expect("revdeck starts");
    }

    fn take_step(&mut self, step: usize) {
        let number = self.below(self.people.len());
        let finding = self.below(self.found.len());
        let finding = self.found[finding].clone();
        match self.draw() {
            Operation::Dismiss => {
                let reason = format!("intended {step}");
                self.act(number, &["triage", &finding, "dismissed", "--reason", &reason], "user");
            }
            Operation::Address => self.act(number, &["triage", &finding, "addressed"], "user"),
            Operation::Reopen => self.act(number, &["triage", &finding, "open"], "user"),
            Operation::Claim => self.act(number, &["triage", &finding, "addressed"], "assistant"),
            Operation::Undo => self.act(number, &["undo"], "user"),
            Operation::Sync => self.act(number, &["sync"], "user"),
            Operation::KilledSync => {
                let steps = self.dice.below(MAX_STEPS);
                let is_killed = kill_sync(self.place, &self.people[number], number, steps);
                self.kills.syncs += usize::from(is_killed);
            }
            Operation::BrokenSync => self.break_sync(number, step, &finding),
            Operation::Partition => self.partition(number),
            Operation::Review => self.review(number, step),
            Operation::KilledReview => self.kill_review(number),
        }
    }

    /// Has a connection break in the middle of an exchange that has something to send.
    fn break_sync(&mut self, number: usize, step: usize, finding: &str) {
        if !self.cut_off.contains(&number) {
            let request = if self.below(2) == 0 { CutRequest::Fetch } else { CutRequest::Push };
            let point = CutPoint::ALL[self.below(CutPoint::ALL.len())];
            self.act(number, &["triage", finding, "dismissed", "--reason", &format!("intended {step}")], "user");
            self.place.cut_next(number, request, point);
        }
        self.act(number, &["sync"], "user");
        if !self.cut_off.contains(&number) {
            self.place.partition(&self.people[number], number, false, false);
        }
    }

    fn partition(&mut self, number: usize) {
        let is_cut_off = !self.cut_off.remove(&number);
        if is_cut_off {
            self.cut_off.insert(number);
            self.partitions += 1;
        }
        let is_refused = self.below(2) == 0;
        self.place.partition(&self.people[number], number, is_cut_off, is_refused);
    }

    /// Has a machine review a change. With claims, one that cannot reach the place does not: it would review without a claim.
    fn review(&mut self, number: usize, step: usize) {
        let change = self.below(self.changes);
        let scope = self.scope(change);
        let other = self.below(self.people.len());
        let mut askers = vec![number];
        if self.place.has_claims() {
            askers.push(other);
            askers.retain(|asker| !self.cut_off.contains(asker));
        }
        let started: Vec<Child> =
            askers.iter().map(|asker| start(&self.people[*asker], &review_arguments(&scope))).collect();
        for mut process in started {
            assert!(process.wait().expect("an end").success(), "step {step}");
        }
        if let Some(asker) = askers.first() {
            // Used again, without a request.
            let result = self.people[*asker].json(&review_arguments(&scope), DONE);
            self.reported.extend(ids(&result));
        }
    }

    /// Kills a review of a change that nobody has asked about on purpose, and lets it go on.
    fn kill_review(&mut self, number: usize) {
        let (place, machines) = (self.place, self.people.len());
        let mut reachable =
            (0..machines).map(|step| (number + step) % machines).filter(|asker| !self.cut_off.contains(asker));
        let (asker, bystander) = match place.has_claims() {
            true => (reachable.next(), reachable.next()),
            false => (Some(number), None),
        };
        let Some(asker) = asker else { return };
        let victim = Victim::ALL[self.below(Victim::ALL.len())];
        let writes = self.dice.below(MAX_WRITES + 1);
        let has_bystander = self.below(2) == 0;
        let change = self.next_change.min(self.changes - 1);
        self.next_change += 1;
        let killed = KilledReview {
            machine: &self.people[asker],
            bystander: bystander.filter(|_| has_bystander).map(|bystander| &self.people[bystander]),
            scope: &self.scope(change),
            victim,
            writes,
        };
        let before = self.kills.workers;
        let result = killed.run(&self.model, &mut self.kills);
        *self.killed_workers.entry((change, asker)).or_default() += self.kills.workers - before;
        self.reported.extend(ids(&result));
    }

    /// Lets all machines in again, and has them exchange what they have.
    fn bring_together(&self) {
        for (number, machine) in self.people.iter().enumerate() {
            self.place.partition(machine, number, false, false);
        }
        // Twice: what the last one sent must reach the first one, and what that makes of it the others.
        for _ in 0..2 {
            self.people.iter().for_each(|machine| drop(sync(machine)));
        }
    }

    /// Checks that all machines have the same findings, statuses and disputes.
    fn check_states(&self) {
        let state = |machine: &TestEnvironment| {
            let disputes = machine.json(&["team", "--format", "json"], DONE)["disputes"].clone();
            let all = self.found.iter().chain(&self.reported);
            let findings: Vec<String> = all.map(|id| format!("{id} {}", status(machine, id))).collect();
            format!("{}\n{disputes:#}", findings.join("\n"))
        };
        let first = state(&self.people[0]);
        for machine in &self.people[1..] {
            assert_eq!(state(machine), first);
        }
    }

    /// Checks that each record is at the place once, and that none is missing. Returns the number of decisions.
    fn check_records(&self) -> usize {
        let records = self.place.records();
        let lines: HashSet<&str> = records.lines().collect();
        assert_eq!(records.lines().count(), lines.len(), "a record is doubled");
        let mut decisions = 0;
        for machine in &self.people {
            let store = machine.store();
            let (own, _) = store.own_team_lines(0).expect("own records");
            // A process that is killed while it writes leaves a torn line, which is no record: the next exchange writes it again.
            let own: HashMap<&str, TeamRecord> =
                own.iter().filter_map(|line| Some((line.trim_end(), serde_json::from_str(line).ok()?))).collect();
            let missing = own.keys().copied().filter(|line| !lines.contains(line));
            assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "of {} records", own.len());
            assert_eq!(store.count_unsent(&store.team_progress().expect("progress")).expect("a count").total(), 0);
            // Whatever was decided here has become a record.
            let decided = store.triage_log().expect("decisions");
            let decided = decided.iter().filter(|line| line.team.is_none() && line.actor != Actor::Engine).count();
            let sent = own.values().filter(|record| matches!(record, TeamRecord::Decision(_))).count();
            assert_eq!(sent, decided, "decisions of a machine are lost or doubled");
            decisions += decided;
        }
        decisions
    }

    /// Checks that no run is stuck or lost, and that no result has a finding twice.
    fn check_runs(&self) {
        for machine in &self.people {
            let root = machine.store().root().to_owned();
            let text = std::fs::read_to_string(root.join("runs.ndjson")).expect("runs");
            let mut last = BTreeMap::new();
            for run in text.lines().filter_map(|line| serde_json::from_str::<RunRecord>(line).ok()) {
                last.insert(run.run_id.clone(), run.status);
            }
            let is_bad =
                |status: RunStatus| !status.is_terminal() || matches!(status, RunStatus::Lost | RunStatus::Failed);
            let bad: Vec<_> = last.iter().filter(|(_, status)| is_bad(**status)).collect();
            assert!(bad.is_empty(), "{bad:?}");
            for file in crate::env::files_below(&root.join("outputs")) {
                let Ok(bytes) = std::fs::read(&file) else { continue };
                let Ok(output) = serde_json::from_slice::<RunOutput>(&bytes) else { continue };
                let unique: BTreeSet<_> = output.findings.iter().map(|finding| &finding.finding_id).collect();
                assert_eq!(unique.len(), output.findings.len(), "{}", file.display());
            }
        }
    }

    /// Checks that no machine has paid for a review twice, but for an answer that a kill has lost. With claims, no two machines
    /// have paid for the same review.
    fn check_payments(&self) {
        let mut paid: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
        for (request, key) in self.model.requests().iter().zip(self.model.keys()) {
            let machine = key.rsplit('-').next().and_then(|number| number.parse().ok()).expect("a machine");
            let change = requested_change(request, self.changes).expect("a request about a change");
            *paid.entry(change).or_default().entry(machine).or_default() += 1;
        }
        for (change, machines) in &paid {
            for (machine, requests) in machines {
                let lost = self.killed_workers.get(&(*change, *machine)).copied().unwrap_or(0);
                assert!(*requests <= 1 + lost, "machine {machine} asked {requests} times about change {change}");
            }
            let payers = machines.len();
            assert!(payers == 1 || !self.place.has_claims(), "{payers} machines have paid for change {change}");
        }
    }
}
