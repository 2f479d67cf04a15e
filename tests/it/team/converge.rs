//! Machines that decide, undo, snooze, rate, review, fix, forget each other and exchange in any order, with partitions and kills,
//! come to the same result, and show the same histories.
//!
//! `REVDECK_TEAM_MACHINES` and `REVDECK_TEAM_OPERATIONS` make the simulation larger.

use std::collections::{BTreeMap, HashSet};
use std::process::{Child, Stdio};
use std::time::Duration;

use revdeck::domain::TeamRecord;
use serde_json::json;

use super::history::{is_seen_by_review, shared_decisions};
use super::postgres_server::{TestDatabase, database};
use super::{CHANGE, Team, ids, join, machines, review, status, sync};
use crate::chance::{Dice, variable};
use crate::env::{DONE, TestEnvironment, run};
use crate::llm::finish;
use crate::llm::server::{Model, calls};
use crate::runner::place::poll;

/// Number of operations of a simulation, without the variable.
const OPERATIONS: usize = 60;
/// Number of changes that machines ask a model about.
const CHANGES: usize = 4;

#[test]
fn machines_converge_over_git_whatever_the_order() {
    simulate(&Place::Git(Team::new()), 7);
}

#[test]
fn machines_converge_over_a_database_and_pay_for_no_review_twice() {
    let Some(database) = database() else { return };
    database.create_member_role();
    simulate(&Place::Database(database), 11);
}

/// Place of the logs.
enum Place {
    Git(Team),
    Database(TestDatabase),
}

impl Place {
    fn member(&self, number: usize) -> TestEnvironment {
        let (person, name) = (format!("Person{number}"), format!("machine-{number}"));
        match self {
            Self::Git(team) => {
                let machine = team.machine(&person);
                join(&machine, &name);
                machine
            }
            Self::Database(database) => {
                let machine = machines::machine(&person);
                if number == 0 {
                    run(&machine, &["team", "join", &database.address("owner"), "--machine", &name], DONE);
                } else {
                    let role = role(database, number);
                    database.create_role(&role, "revdeck_member");
                    run(&machine, &["team", "join", &database.address(&role), "--machine", &name], DONE);
                }
                machine
            }
        }
    }

    /// Cuts a machine off from the place, or lets it in again.
    fn partition(&self, machine: &TestEnvironment, number: usize, is_cut_off: bool) {
        match self {
            Self::Git(team) => {
                let url = if is_cut_off { "/nowhere.git".into() } else { team.remote() };
                machine.git(&["remote", "set-url", "origin", url.to_str().expect("text")]);
            }
            // The first one is the owner of the server, who is always let in.
            Self::Database(_) if number == 0 => {}
            Self::Database(database) => {
                let login = if is_cut_off { "NOLOGIN" } else { "LOGIN" };
                database.sql(&format!("ALTER ROLE {} {login}", role(database, number)));
            }
        }
    }

    /// Returns all records as lines.
    fn records(&self) -> String {
        match self {
            Self::Git(team) => team.everything(),
            Self::Database(database) => database
                .sql("SELECT string_agg(convert_from(content, 'UTF8'), '' ORDER BY log, number) FROM revdeck.segments"),
        }
    }
}

fn role(database: &TestDatabase, number: usize) -> String {
    format!("machine_{number}_{}", database.name)
}

fn start(machine: &TestEnvironment, arguments: &[&str]) -> Child {
    let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("revdeck starts")
}

fn simulate(place: &Place, seed: u64) {
    let machines = variable("REVDECK_TEAM_MACHINES", 3);
    let operations = variable("REVDECK_TEAM_OPERATIONS", OPERATIONS);
    let mut dice = Dice(seed);
    let mut chance = |limit: usize| dice.below(limit as u64) as usize;
    let model = Model::start(
        (0..CHANGES * machines).map(|_| calls(&[("report_findings", json!({ "findings": [] })), finish()])).collect(),
    );
    let people: Vec<TestEnvironment> = (0..machines).map(|number| place.member(number)).collect();
    let mut found = ids(&review(&people[0]));
    let fixable_code = CHANGE.replace("def ", "def fix_");
    for machine in &people {
        machine.write("fixable.py", &fixable_code);
        machine.commit("Fixable");
        for change in 0..CHANGES {
            machine.write(&format!("change_{change}.py"), format!("def asked_{change}(x):\n    return x + {change}\n"));
            machine.commit(&format!("Change {change}"));
        }
        machine.settings(&format!(
            "[reviewers.mine]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
             api_key_cmd = \"printf made-up\"\nattempts = 1\n",
            model.url()
        ));
    }
    people[0].write("many.py", CHANGE.replace("def ", "def more_"));
    people[0].commit("More");
    found.extend(ids(&review(&people[0])));
    people[0].git(&["reset", "-q", "--hard", "HEAD~1"]);
    // Reviews of one machine see that these are fixed.
    let scope = format!("HEAD~{CHANGES}");
    let fixable = ids(&people[0].json(&["review", "--commit", &scope, "--wait", "--format", "json"], DONE));
    assert!(!fixable.is_empty());
    let known: Vec<&String> = found.iter().chain(&fixable).collect();
    sync(&people[0]);
    people.iter().for_each(|machine| drop(sync(machine)));
    // Clocks differ by days.
    let skew = |number: usize| format!("2026-11-{:02}T10:00:00Z", 20 + number * 3 % 9);
    let mut cut_off: HashSet<usize> = HashSet::new();
    for step in 0..operations {
        let number = chance(machines);
        let machine = &people[number];
        let finding = known[chance(known.len())].as_str();
        let act = |arguments: &[&str], actor: &str| {
            let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
            command.args(arguments).env("REVDECK_ACTOR", actor).env("REVDECK_NOW", skew(number));
            command.output().expect("revdeck starts")
        };
        match chance(16) {
            0 | 1 => drop(act(&["triage", finding, "dismissed", "--reason", &format!("intended {step}")], "user")),
            2 => drop(act(&["triage", finding, "addressed"], "user")),
            3 => drop(act(&["triage", finding, "open"], "user")),
            4 => drop(act(&["triage", finding, "addressed"], "assistant")),
            5 => drop(act(&["undo"], "user")),
            6 => {
                // Killed at any moment; nothing may be lost or doubled by it.
                let mut process = start(machine, &["sync"]);
                let time = Duration::from_millis(chance(40) as u64);
                poll(time, || process.try_wait().expect("a status").is_some());
                let _ = process.kill();
                process.wait().expect("an end");
            }
            7 => {
                let is_cut_off = !cut_off.remove(&number);
                if is_cut_off {
                    cut_off.insert(number);
                }
                place.partition(machine, number, is_cut_off);
            }
            // Two machines that can reach the database ask for the same review at the same moment.
            8 if matches!(place, Place::Database(_)) => {
                let scope = format!("HEAD~{}", chance(CHANGES));
                let arguments = ["review", "--reviewer", "mine", "--commit", &scope, "--wait"];
                let askers = [number, chance(machines)].into_iter().filter(|asker| !cut_off.contains(asker));
                let started: Vec<Child> = askers.map(|asker| start(&people[asker], &arguments)).collect();
                for mut process in started {
                    assert!(process.wait().expect("an end").success(), "step {step}");
                }
            }
            11 => drop(act(&["triage", finding, "snoozed", "--until", "3d"], "user")),
            12 => drop(act(&["triage", finding, "rated", "--as", "p1"], "user")),
            // An assistant that disputes a finding leaves a note.
            13 => drop(act(&["triage", finding, "dismissed", "--reason", "not a fault"], "assistant")),
            14 => {
                // The fault is gone in one function, in both, or back again.
                let code = fixable_code.replacen("except:", "except OSError:", chance(3));
                machine.write("fixable.py", code);
                drop(machine.revdeck(&["review", "--worktree", "--wait"]));
            }
            // With a database, a machine that forgets another one pays for its review again.
            15 if matches!(place, Place::Git(_)) => {
                let action = if chance(2) == 0 { "forget" } else { "remember" };
                let other = (number + 1 + chance(machines - 1)) % machines;
                drop(act(&["team", action, &format!("machine-{other}")], "user"));
            }
            _ => drop(act(&["sync"], "user")),
        }
    }
    (0..machines).for_each(|number| place.partition(&people[number], number, false));
    for (number, machine) in people.iter().enumerate() {
        for other in (0..machines).filter(|other| *other != number) {
            run(machine, &["team", "remember", &format!("machine-{other}")], DONE);
        }
    }
    // Twice: what the last one sent must reach the first one, and what that makes of it the others.
    for _ in 0..2 {
        people.iter().for_each(|machine| drop(sync(machine)));
    }
    // What a review has seen moves the status on its machine alone, but not the decisions.
    let is_decided_alone = |id: &&&String| !people.iter().any(|machine| is_seen_by_review(machine, id));
    let unseen: Vec<&String> = known.iter().filter(is_decided_alone).copied().collect();
    let state = |machine: &TestEnvironment| {
        let disputes = machine.json(&["team", "--format", "json"], DONE)["disputes"].clone();
        let findings: Vec<String> = unseen.iter().map(|id| format!("{id} {}", status(machine, id))).collect();
        let histories: Vec<String> = known.iter().map(|id| shared_decisions(machine, id)).collect();
        format!("{}\n{}\n{disputes:#}", findings.join("\n"), histories.join("\n"))
    };
    let first = state(&people[0]);
    for machine in &people[1..] {
        assert_eq!(state(machine), first);
    }
    // Each record is at the place once, and none is missing.
    let records = place.records();
    let lines: HashSet<&str> = records.lines().collect();
    assert_eq!(records.lines().count(), lines.len(), "a record is doubled");
    for machine in &people {
        let store = machine.store();
        let (own, _) = store.own_team_lines(0).expect("own records");
        // A process that is killed while it writes leaves a torn line, which is no record: the next exchange writes it again.
        let is_record = |line: &str| serde_json::from_str::<TeamRecord>(line).is_ok();
        let missing = own.iter().map(|line| line.trim_end()).filter(|line| is_record(line) && !lines.contains(line));
        assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "of {} records", own.len());
        assert_eq!(store.count_unsent(&store.team_progress().expect("progress")).expect("a count").total(), 0);
    }
    // Nothing is paid twice.
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for request in model.requests() {
        let text = request.to_string();
        let change = (0..CHANGES)
            .find(|change| text.contains(&format!("+def asked_{change}(")))
            .map_or_else(|| text.clone(), |change| format!("change {change}"));
        *asked.entry(change).or_default() += 1;
    }
    assert!(asked.values().all(|count| *count == 1), "{asked:?}");
}
