//! Machines that decide, undo, review and exchange in any order come to the same result.

use super::{CHANGE, Team, ids, join, review, status, sync};
use crate::chance::{Dice, variable};
use crate::env::{DONE, TestEnvironment};

/// Number of operations of a simulation, without the variable.
const OPERATIONS: usize = 60;

#[test]
fn machines_converge_whatever_the_order() {
    simulate(variable("REVDECK_TEAM_MACHINES", 3), variable("REVDECK_TEAM_OPERATIONS", OPERATIONS), 7);
}

fn simulate(machines: usize, operations: usize, seed: u64) {
    let team = Team::new();
    let mut dice = Dice(seed);
    let mut chance = |limit: usize| dice.below(limit as u64) as usize;
    let people: Vec<TestEnvironment> = (0..machines)
        .map(|number| {
            let machine = team.machine(&format!("Person{number}"));
            join(&machine, &format!("machine-{number}"));
            machine
        })
        .collect();
    let mut found = ids(&review(&people[0]));
    people[0].write("many.py", CHANGE.replace("def ", "def more_"));
    people[0].commit("More");
    found.extend(ids(&review(&people[0])));
    sync(&people[0]);
    people.iter().for_each(|machine| drop(sync(machine)));
    // Clocks differ by days.
    let skew = |number: usize| format!("2026-11-{:02}T10:00:00Z", 20 + number * 3);
    for step in 0..operations {
        let number = chance(machines);
        let machine = &people[number];
        let finding = &found[chance(found.len())];
        let act = |arguments: &[&str], actor: &str| {
            let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
            command.args(arguments).env("REVDECK_ACTOR", actor).env("REVDECK_NOW", skew(number));
            command.output().expect("revdeck starts")
        };
        match chance(8) {
            0 | 1 => drop(act(&["triage", finding, "dismissed", "--reason", &format!("intended {step}")], "user")),
            2 => drop(act(&["triage", finding, "addressed"], "user")),
            3 => drop(act(&["triage", finding, "open"], "user")),
            4 => drop(act(&["triage", finding, "addressed"], "assistant")),
            5 => drop(act(&["undo"], "user")),
            6 => {
                // Killed at any moment; nothing may be lost or doubled by it.
                let mut command = machine.command(env!("CARGO_BIN_EXE_revdeck"));
                let mut process = command
                    .arg("sync")
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .expect("revdeck starts");
                std::thread::sleep(std::time::Duration::from_millis(chance(40) as u64));
                let _ = process.kill();
                process.wait().expect("an end");
            }
            _ => drop(sync(machine)),
        }
    }
    // Twice: what the last one sent must reach the first one, and what that makes of it the others.
    for _ in 0..2 {
        people.iter().for_each(|machine| drop(sync(machine)));
    }
    let state = |machine: &TestEnvironment| {
        let disputes = machine.json(&["team", "--format", "json"], DONE)["disputes"].clone();
        let findings: Vec<String> = found.iter().map(|id| format!("{id} {}", status(machine, id))).collect();
        format!("{}\n{disputes:#}", findings.join("\n"))
    };
    let first = state(&people[0]);
    for machine in &people[1..] {
        assert_eq!(state(machine), first);
    }
    // Each record is at the place once.
    let everything = team.everything();
    let lines: Vec<&str> = everything.lines().collect();
    let different: std::collections::HashSet<&&str> = lines.iter().collect();
    assert_eq!(lines.len(), different.len(), "a record is doubled");
}
