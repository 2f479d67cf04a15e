//! Machines that decide, undo, snooze, rate, review, fix, forget each other and exchange in any order, with partitions and kills,
//! come to the same result, and show the same histories.
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
use std::process::{Child, Command};
use std::time::Instant;

use revdeck::domain::{Actor, RunOutput, RunStatus, TeamRecord};
use serde_json::{Value, json};

use self::kills::{KilledReview, Kills, Victim, kill_sync, read_statuses, review_arguments, start};
use self::place::{Access, Place, name};
use super::history::{is_seen_by_review, shared_decisions};
use super::http_remote::{CutPoint, CutRequest};
use super::{CHANGE, ids, review, sync};
use crate::chance::{Dice, variable};
use crate::env::{DONE, TestEnvironment, err};
use crate::llm::finish;
use crate::llm::server::{Model, Turn, calls, says};
use crate::mcp::client::McpClient;

/// Numbers of machines and of operations of a simulation that runs with the other tests, without the variables. All operations come
/// twice.
const SMALL: (usize, usize) = (3, 2 * DECK.len());
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
    /// An assistant disputes a finding, which leaves a note.
    Dispute,
    Snooze,
    Rate,
    Undo,
    /// A fault disappears from the worktree, or is back, and a review of the machine sees it.
    Fix,
    /// The records of another machine count no longer, except with claims.
    Forget,
    /// A machine that is forgotten counts again.
    Remember,
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
const DECK: [Operation; 27] = [
    Operation::Dismiss,
    Operation::Dismiss,
    Operation::Dismiss,
    Operation::Address,
    Operation::Address,
    Operation::Reopen,
    Operation::Reopen,
    Operation::Claim,
    Operation::Dispute,
    Operation::Snooze,
    Operation::Rate,
    Operation::Undo,
    Operation::Undo,
    Operation::Fix,
    Operation::Fix,
    Operation::Forget,
    Operation::Remember,
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

/// File with two faults that machines take out and put back.
const FIXABLE: &str = "fixable.py";

/// Returns the content of [`FIXABLE`].
fn fixable_code() -> String {
    CHANGE.replace("def ", "def fix_")
}

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
    /// Machines, each with another one that it has forgotten.
    forgotten: BTreeSet<(usize, usize)>,
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
        let mut commits = vec![vec![(FIXABLE.to_owned(), fixable_code())]];
        commits.extend((0..changes).map(|change| vec![(format!("change_{change}.py"), code(change))]));
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
        let scope = format!("HEAD~{changes}");
        let result = people[0].json(&["review", "--commit", &scope, "--wait", "--format", "json"], DONE);
        found.extend(ids(&result));
        assert_eq!(found.len(), 6, "{result}");
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
            forgotten: BTreeSet::new(),
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

    /// Returns a command on a machine whose clock is days off.
    fn command(&self, number: usize, arguments: &[&str], actor: &str) -> Command {
        let now = format!("2026-11-{:02}T10:00:00Z", 20 + number * 3 % 9);
        let mut command = self.people[number].command(env!("CARGO_BIN_EXE_revdeck"));
        command.args(arguments).env("REVDECK_ACTOR", actor).env("REVDECK_NOW", now);
        command
    }

    /// Runs a command. It may fail: the machine may be cut off, or have nothing to undo.
    fn act(&self, number: usize, arguments: &[&str], actor: &str) {
        self.command(number, arguments, actor).output().expect("revdeck starts");
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
            Operation::Dispute => {
                let mut client = McpClient::spawn(self.command(number, &["mcp"], "assistant"));
                client.initialize();
                client.tool("dispute", json!({ "finding_id": finding, "reason": format!("no fault {step}") }));
            }
            Operation::Snooze => self.act(number, &["triage", &finding, "snoozed", "--until", "3d"], "user"),
            Operation::Rate => self.act(number, &["triage", &finding, "rated", "--as", "p1"], "user"),
            Operation::Undo => self.act(number, &["undo"], "user"),
            Operation::Fix => self.fix(number),
            Operation::Forget => self.forget(number),
            Operation::Remember => self.remember(),
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

    /// Takes the fault out of one function or of both, or puts it back, and reviews the worktree.
    fn fix(&mut self, number: usize) {
        let code = fixable_code().replacen("except:", "except OSError:", self.below(3));
        let machine = &self.people[number];
        machine.write(FIXABLE, code);
        let output = machine.revdeck(&["review", "--worktree", "--wait"]);
        assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    }

    /// Has a machine forget another one. With claims none does: it would pay for the reviews of the other one again.
    fn forget(&mut self, number: usize) {
        if self.place.has_claims() {
            return;
        }
        let machines = self.people.len();
        let other = (number + 1 + self.below(machines - 1)) % machines;
        if number != other && self.forgotten.insert((number, other)) {
            self.change_trust(number, "forget", other);
        }
    }

    /// Has a machine use another one again that it has forgotten.
    fn remember(&mut self) {
        let index = self.below(self.forgotten.len());
        let Some((number, other)) = self.forgotten.iter().nth(index).copied() else { return };
        self.forgotten.remove(&(number, other));
        self.change_trust(number, "remember", other);
    }

    /// Runs `team forget` or `team remember`, which a machine that is cut off can do, too.
    fn change_trust(&self, number: usize, action: &str, other: usize) {
        let other = name(other);
        let mut arguments = vec!["team", action, other.as_str()];
        // Nothing of it may have come yet.
        arguments.extend((action == "forget").then_some("--unseen"));
        let output = self.command(number, &arguments, "user").output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
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
            self.place.set_access(&self.people[number], number, Access::Open);
        }
    }

    fn partition(&mut self, number: usize) {
        let is_cut_off = !self.cut_off.remove(&number);
        if is_cut_off {
            // A result that nobody else has seen is reviewed again elsewhere, once its claim has run out.
            self.place.await_results(number);
            self.cut_off.insert(number);
            self.partitions += 1;
        }
        let is_refused = self.below(2) == 0;
        let access = match (is_cut_off, is_refused) {
            (false, _) => Access::Open,
            (true, true) => Access::Refused,
            (true, false) => Access::Closed,
        };
        self.place.set_access(&self.people[number], number, access);
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

    /// Lets all machines in again, and has them use and exchange what all have.
    fn bring_together(&self) {
        for (number, machine) in self.people.iter().enumerate() {
            self.place.set_access(machine, number, Access::Open);
        }
        for (number, other) in &self.forgotten {
            self.change_trust(*number, "remember", *other);
        }
        // Twice: what the last one sent must reach the first one, and what that makes of it the others.
        for _ in 0..2 {
            self.people.iter().for_each(|machine| drop(sync(machine)));
        }
    }

    /// Checks that all machines have the same findings, statuses, decisions in the same order, and disputes.
    fn check_states(&self) {
        let all: Vec<&String> = self.found.iter().chain(&self.reported).collect();
        let show = |machine: &TestEnvironment, id: &str| machine.json(&["show", id, "--format", "json"], DONE);
        let show_all = |machine: &TestEnvironment| all.iter().map(|id| show(machine, id)).collect::<Vec<Value>>();
        let shown: Vec<Vec<Value>> = self.people.iter().map(show_all).collect();
        // A review that sees a finding of the built-in reviewer moves its status on the machine of the review alone.
        let is_moved =
            |index: usize| index < self.found.len() && shown.iter().any(|findings| is_seen_by_review(&findings[index]));
        let describe = |machine: &TestEnvironment, findings: &[Value]| {
            let mut state = machine.json(&["team", "--format", "json"], DONE)["disputes"].to_string();
            for (index, finding) in findings.iter().enumerate() {
                let status =
                    if is_moved(index) { "" } else { finding["finding"]["status"].as_str().expect("a status") };
                state.push_str(&format!("\n{} {status}\n{}", all[index], shared_decisions(finding)));
            }
            state
        };
        let first = describe(&self.people[0], &shown[0]);
        for (machine, findings) in self.people.iter().zip(&shown).skip(1) {
            assert_eq!(describe(machine, findings), first);
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
            // Each decision of this machine has become a record.
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
            let store = machine.store();
            let statuses = read_statuses(&store).expect("runs");
            let is_bad =
                |status: RunStatus| !status.is_terminal() || matches!(status, RunStatus::Lost | RunStatus::Failed);
            let bad: Vec<_> = statuses.iter().filter(|(_, status)| is_bad(**status)).collect();
            assert!(bad.is_empty(), "{bad:?}");
            for file in crate::env::files_below(&store.root().join("outputs")) {
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
            let killed: Vec<_> = self.killed_workers.iter().filter(|((killed, _), _)| killed == change).collect();
            assert!(
                payers == 1 || !self.place.has_claims(),
                "{payers} machines have paid for change {change}: {machines:?}; killed workers: {killed:?}"
            );
        }
    }
}
