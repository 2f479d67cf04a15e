//! Decisions about reports that the panel of another machine has merged into findings of its list.

use serde_json::json;

use super::{Team, ids, join, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, executable, run};

/// Lets a machine review with two programs that report one problem in line 3 of `b.py`, each as another kind, so that their reports
/// have different ids.
fn use_agents(machine: &TestEnvironment) {
    let mut settings = String::new();
    for (name, kind) in [("one", "ERROR_HANDLING"), ("two", "SECURITY")] {
        let finding = json!({
            "path": "b.py", "line_start": 3, "line_end": 3, "kind": kind, "severity": "high",
            "title": "path is read without a check", "explanation": "Any file can be read.",
            "quoted_code": "        return open(path)",
        });
        let answer = json!({ "findings": [finding] });
        let script = machine.home().join(format!("{name}.sh"));
        executable(&script, format!("#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{answer}\nEND\n"));
        settings.push_str(&format!("[reviewers.{name}]\nkind = \"command\"\ncommand = [\"{}\"]\n", script.display()));
    }
    machine.settings(&settings);
}

/// Reviews the last commit with some reviewers, and returns the ids of the findings.
fn review_with(machine: &TestEnvironment, reviewers: &str) -> Vec<String> {
    let arguments = ["review", "--commit", "HEAD", "--reviewer", reviewers, "--wait", "--format", "json"];
    ids(&machine.json(&arguments, DONE))
}

/// Lets a panel review on a machine. Returns the id of the finding on its list, and the reviewer and id of the report with another id.
fn review_with_panel(machine: &TestEnvironment) -> (String, String, String) {
    let arguments = ["review", "--commit", "HEAD", "--reviewer", "one,two", "--wait", "--format", "json"];
    let reviewed = machine.json(&arguments, DONE);
    let found = ids(&reviewed);
    let [listed] = found.as_slice() else { panic!("{reviewed}") };
    let voices = reviewed["findings"][0]["voices"].as_array().expect("voices");
    let merged = voices.iter().find(|voice| voice["finding_id"] != listed.as_str()).expect("a merged report");
    let word = |key: &str| merged[key].as_str().expect("a word").to_owned();
    let expected = json!([{ "reported_as": merged["finding_id"], "finding_id": listed }]);
    assert_eq!(reviewed["run"]["merged_reports"], expected);
    (listed.clone(), word("reviewer"), word("finding_id"))
}

fn assert_status(machines: &[&TestEnvironment], finding: &str, expected: &str) {
    let statuses: Vec<String> = machines.iter().map(|machine| status(machine, finding)).collect();
    assert_eq!(statuses, vec![expected; machines.len()]);
}

#[test]
fn a_decision_about_a_merged_report_reaches_the_finding_on_every_machine_that_has_the_list() {
    let team = Team::new();
    let (ada, bob, cleo) = (team.member("Ada"), team.member("Bob"), team.member("Cleo"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    assert_eq!(review_with(&bob, &reviewer), std::slice::from_ref(&report), "Bob has the report alone");
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    let exchange = || [&bob, &ada, &cleo, &bob].iter().for_each(|machine| drop(sync(machine)));
    exchange();
    assert_status(&[&ada, &bob, &cleo], &listed, "dismissed");
    for machine in [&ada, &bob, &cleo] {
        let shown = machine.output(&["show", &listed], DONE);
        assert!(shown.contains(" (about a report that its panel lists here): intended"), "{shown}");
        assert_eq!(sync(machine)["sent"], json!({ "decisions": 0, "reviews": 0 }), "nobody speaks for Bob");
    }

    // Bob takes it back: at once on his machine, and by the next exchange elsewhere.
    run(&bob, &["undo"], DONE);
    assert_status(&[&bob], &listed, "open");
    exchange();
    assert_status(&[&ada, &bob, &cleo], &listed, "open");
    run(&bob, &["undo", "--redo"], DONE);
    exchange();
    assert_status(&[&ada, &bob, &cleo], &listed, "dismissed");

    // Whoever forgets the author of the decision or the machine of the list does without, until it is used again.
    for (machine, without) in [("bob-1", "open"), ("ada-1", "obsolete")] {
        run(&cleo, &["team", "forget", machine], DONE);
        assert_status(&[&cleo], &listed, without);
        run(&cleo, &["team", "remember", machine], DONE);
        sync(&cleo);
        assert_status(&[&cleo], &listed, "dismissed");
    }

    // Another machine gets the list and the decision at once.
    let dan = team.member("Dan");
    sync(&dan);
    assert_status(&[&dan], &listed, "dismissed");

    // What is decided about the finding itself stands.
    run(&cleo, &["triage", &listed, "open"], DONE);
    [&cleo, &ada, &bob, &dan].iter().for_each(|machine| drop(sync(machine)));
    assert_status(&[&ada, &bob, &cleo, &dan], &listed, "open");
}

#[test]
fn the_list_may_arrive_before_the_decision_or_after_it() {
    let team = Team::new();
    let (ada, bob, cleo) = (team.member("Ada"), team.member("Bob"), team.member("Cleo"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    sync(&ada);
    sync(&cleo);
    assert_status(&[&ada, &cleo], &listed, "open");
    let dan = team.member("Dan");
    assert_eq!(review_with(&bob, &reviewer), std::slice::from_ref(&report));
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    // Bob's own decision reaches the finding when he gets the list.
    [&bob, &cleo, &dan, &ada].iter().for_each(|machine| drop(sync(machine)));
    assert_status(&[&ada, &bob, &cleo, &dan], &listed, "dismissed");
    // A review that is no panel's changes nothing about it.
    review(&cleo);
    sync(&cleo);
    assert_status(&[&cleo], &listed, "dismissed");
}

#[test]
fn a_decision_that_was_made_without_the_remote_reaches_the_finding_later() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    review_with(&bob, &reviewer);
    [&ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    bob.errors(&["sync"], INCOMPLETE);
    assert_status(&[&bob], &listed, "dismissed");
    std::fs::rename(&away, team.remote()).expect("moved back");
    [&bob, &ada].iter().for_each(|machine| drop(sync(machine)));
    assert_status(&[&ada, &bob], &listed, "dismissed");
}

#[test]
fn a_decision_that_waits_for_the_remote_reaches_the_finding_although_a_machine_is_forgotten_meanwhile() {
    let team = Team::new();
    let (ada, bob, cleo) = (team.member("Ada"), team.member("Bob"), team.member("Cleo"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    review_with(&bob, &reviewer);
    let other = &ids(&review(&cleo))[0];
    run(&cleo, &["triage", other, "addressed"], DONE);
    [&cleo, &ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    bob.errors(&["sync"], INCOMPLETE);
    run(&bob, &["team", "forget", "cleo-1"], DONE);
    std::fs::rename(&away, team.remote()).expect("moved back");
    // Ada's list is not read again.
    team.git(&["update-ref", "-d", "refs/revdeck/team/ada-1"]);
    sync(&bob);
    assert_status(&[&bob], &listed, "dismissed");
}

#[test]
fn who_undoes_and_redoes_on_another_machine_decides_nothing_about_the_finding_itself() {
    let team = Team::new();
    let (ada, bob, laptop) = (team.member("Ada"), team.member("Bob"), team.machine("Bob"));
    join(&laptop, "bob-2");
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    review_with(&bob, &reviewer);
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    let machines = [&ada, &bob, &laptop];
    let exchange = || [&bob, &ada, &laptop, &bob, &ada].iter().for_each(|machine| drop(sync(machine)));
    exchange();
    assert_status(&machines, &listed, "dismissed");

    run(&laptop, &["undo"], DONE);
    assert_status(&[&laptop], &listed, "open");
    assert_eq!(sync(&laptop)["sent"]["decisions"], 1, "about the report: the finding follows it");
    let said = run(&laptop, &["redo"], DONE);
    assert!(said.contains(&format!("{listed}  open -> dismissed  (intended)")), "{said}");
    assert_status(&[&laptop], &listed, "dismissed");
    assert_eq!(sync(&laptop)["sent"]["decisions"], 1, "the report is dismissed again, and the finding follows it");
    exchange();
    assert_status(&machines, &listed, "dismissed");

    // So whoever takes back the decision about the report takes it back about the finding, too.
    run(&bob, &["undo"], DONE);
    assert_status(&[&bob], &listed, "open");
    exchange();
    assert_status(&machines, &listed, "open");
    assert_status(&machines[1..], &report, "open");
}

#[test]
fn who_undoes_on_the_machine_of_the_panel_decides_for_nobody_that_the_report_is_obsolete() {
    let team = Team::new();
    let (bob, ada, laptop) = (team.member("Bob"), team.member("Ada"), team.machine("Bob"));
    join(&laptop, "bob-2");
    [&bob, &laptop].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&laptop);
    review_with(&bob, &reviewer);
    let (machines, others) = ([&bob, &ada, &laptop], [&bob, &ada]);
    let exchange = || [&bob, &laptop, &ada, &bob, &laptop].iter().for_each(|machine| drop(sync(machine)));
    exchange();
    assert_status(&[&laptop], &report, "obsolete");

    // Somebody opens the report there, and takes that back: it is a part of the finding again, on every machine.
    run(&laptop, &["triage", &report, "open"], DONE);
    let said = run(&laptop, &["undo"], DONE);
    assert_eq!(said, format!("{report}  open -> obsolete  (the panel lists the problem as {listed})\n"));
    exchange();
    assert_status(&others, &report, "open");
    assert_status(&[&laptop], &report, "obsolete");
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    exchange();
    assert_status(&machines, &listed, "dismissed");
    assert_status(&machines, &report, "dismissed");

    let said = run(&laptop, &["undo"], DONE);
    assert_eq!(said, format!("{listed}  dismissed -> open\n"), "the report gives way to the finding again");
    assert_status(&[&laptop], &report, "obsolete");
    assert_eq!(sync(&laptop)["sent"]["decisions"], 1, "about the report");
    exchange();
    assert_status(&machines, &listed, "open");
    assert_status(&others, &report, "open");
    assert_status(&[&laptop], &report, "obsolete");
    run(&laptop, &["redo"], DONE);
    exchange();
    assert_status(&machines, &listed, "dismissed");
    assert_status(&machines, &report, "dismissed");

    // What somebody else has decided about the report stands afterwards.
    run(&bob, &["undo"], DONE);
    exchange();
    run(&bob, &["redo"], DONE);
    run(&ada, &["triage", &report, "dismissed", "--reason", "known"], DONE);
    exchange();
    let said = run(&laptop, &["undo"], DONE);
    assert_eq!(said, format!("{listed}  stays dismissed, as Ada decided  (known)\n"));
    exchange();
    assert_status(&machines, &listed, "dismissed");
    assert_status(&others, &report, "dismissed");
}

#[test]
fn a_decision_reaches_the_finding_at_once_on_a_machine_that_has_left_the_team() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let (listed, reviewer, report) = review_with_panel(&ada);
    review_with(&bob, &reviewer);
    run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    [&ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    assert_status(&[&bob], &listed, "dismissed");
    run(&bob, &["team", "leave"], DONE);
    run(&bob, &["undo"], DONE);
    assert_status(&[&bob], &report, "open");
    assert_status(&[&bob], &listed, "open");
    run(&bob, &["redo"], DONE);
    assert_status(&[&bob], &listed, "dismissed");
}

#[test]
fn a_decision_that_may_not_leave_reaches_the_finding_at_once() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    [&ada, &bob].iter().for_each(|machine| use_agents(machine));
    let settings = std::fs::read_to_string(bob.home().join("config.toml")).expect("settings");
    bob.settings(&format!("{settings}[team]\nexclude = [\"b.py\"]\n"));
    let (listed, reviewer, report) = review_with_panel(&ada);
    review_with(&bob, &reviewer);
    [&ada, &bob].iter().for_each(|machine| drop(sync(machine)));
    let said = run(&bob, &["triage", &report, "dismissed", "--reason", "intended"], DONE);
    assert_eq!(said, format!("{report}  open -> dismissed\n"));
    assert_status(&[&bob], &listed, "dismissed");
    run(&bob, &["triage", &report, "addressed"], DONE);
    assert_status(&[&bob], &listed, "addressed");
    run(&bob, &["undo"], DONE);
    assert_status(&[&bob], &listed, "dismissed");
    assert_eq!(sync(&bob)["sent"]["decisions"], 0);
    sync(&ada);
    assert_status(&[&ada], &listed, "open");
}

#[test]
fn who_shares_decisions_alone_sends_no_ids_of_reports() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    use_agents(&ada);
    let settings = std::fs::read_to_string(ada.home().join("config.toml")).expect("settings");
    ada.settings(&format!("{settings}[team]\nshare = \"decisions\"\n"));
    let (listed, _, report) = review_with_panel(&ada);
    run(&ada, &["triage", &listed, "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    sync(&bob);
    let sent = team.everything();
    assert!(sent.contains(&listed) && !sent.contains(&report), "{sent}");
}
