//! Machines that have the same lists of panels and the same decisions about reports have the same statuses.

use super::*;

#[test]
fn a_dismissed_report_that_has_given_way_to_the_list_of_a_panel_stays_so_until_somebody_decides_again() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let (mut ada, mut bob) = (Machine::new(0), Machine::new(1));
    let report = finding(0);
    ada.append(report.clone(), FindingStatus::Dismissed, Actor::User, at(1), "t_1".to_owned());
    let run = format!("ar_{:026}", 7).parse().expect("an id");
    ada.log.push(Disposition::from_merge(&report, FindingStatus::Dismissed, &finding(1), &run, at(2)));
    ada.compare(&all_findings(), at(3));
    assert_eq!(ada.log.len(), 2, "{:#?}", ada.log);
    bob.append(report.clone(), FindingStatus::Dismissed, Actor::User, at(4), "t_2".to_owned());
    ada.receive(bob.records(), at(5));
    assert_eq!(status_after(&ada.log, &report), FindingStatus::Dismissed);
}

#[test]
fn a_dismissal_that_arrives_after_a_panel_has_merged_the_report_is_not_lost() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let (mut ada, mut bob) = (Machine::new(0), Machine::new(1));
    let report = finding(0);
    ada.append(report.clone(), FindingStatus::Dismissed, Actor::User, at(1), "t_1".to_owned());
    let run = format!("ar_{:026}", 7).parse().expect("an id");
    bob.log.push(Disposition::from_merge(&report, FindingStatus::Open, &finding(1), &run, at(2)));
    bob.receive(ada.records(), at(3));
    assert_eq!(status_after(&bob.log, &report), FindingStatus::Dismissed, "{:#?}", bob.log);
    let lines = bob.log.len();
    bob.receive(ada.records(), at(4));
    assert_eq!(bob.log.len(), lines, "what is settled needs no line");
    // A report that has given way although its dismissal was known stays so when a decision comes that does not stand.
    let mut cleo = Machine::new(2);
    cleo.append(report.clone(), FindingStatus::Addressed, Actor::User, at(0), "t_3".to_owned());
    bob.log.push(Disposition::from_merge(&report, FindingStatus::Dismissed, &finding(1), &run, at(5)));
    bob.receive(cleo.records(), at(6));
    assert_eq!(status_after(&bob.log, &report), FindingStatus::Obsolete, "{:#?}", bob.log);
}

#[test]
fn a_decision_about_a_merged_report_reaches_the_finding_of_the_list_in_any_order() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    use FindingStatus::{Addressed, Dismissed, Obsolete, Open};
    let run = format!("ar_{:026}", 7).parse().expect("an id");
    // Machines 1 and 2 decide about the report; the merge of machine 0 comes before, between or after.
    let (mut ada, mut bob) = (Machine::new(1), Machine::new(2));
    ada.append(finding(0), Dismissed, Actor::User, at(1), "t_1".to_owned());
    let dismissed = ada.records();
    ada.undo(at(3));
    let withdrawn = ada.records();
    bob.append(finding(1), Addressed, Actor::User, at(1), "t_2".to_owned());
    let about_finding = bob.records();
    for merged_at in [at(0), at(2), at(9)] {
        for (title, batches, expected) in [
            ("a dismissal", vec![dismissed.clone()], [Dismissed, Dismissed]),
            ("twice", vec![dismissed.clone(), dismissed.clone()], [Dismissed, Dismissed]),
            ("taken back", vec![dismissed.clone(), withdrawn.clone()], [Obsolete, Open]),
            ("taken back at once", vec![withdrawn.clone()], [Obsolete, Open]),
            ("taken back first", vec![withdrawn[1..].to_vec(), dismissed.clone()], [Obsolete, Open]),
            ("the finding is decided", vec![dismissed.clone(), about_finding.clone()], [Dismissed, Addressed]),
            ("the finding was decided", vec![about_finding.clone(), dismissed.clone()], [Dismissed, Addressed]),
            ("both at once", vec![[dismissed.clone(), about_finding.clone()].concat()], [Dismissed, Addressed]),
        ] {
            let mut here = Machine::new(0);
            here.log.push(Disposition::from_merge(&finding(0), Open, &finding(1), &run, merged_at));
            batches.into_iter().for_each(|batch| here.receive(batch, at(10)));
            let statuses = [0, 1].map(|number| status_after(&here.log, &finding(number)));
            assert_eq!(statuses, expected, "{title}, {merged_at}: {:#?}", here.log);
            let lines = here.log.len();
            here.compare(&all_findings(), at(11));
            assert_eq!(here.log.len(), lines, "{title}: what is settled needs no line");
            assert!(here.records().is_empty(), "{title}: nobody speaks for others");
            // The machine that decided so is forgotten, and used again.
            here.forgotten.push(name(1));
            here.compare(&all_findings(), at(12));
            let is_decided = expected[1] == Addressed;
            let statuses = [0, 1].map(|number| status_after(&here.log, &finding(number)));
            assert_eq!(statuses, [Obsolete, if is_decided { Addressed } else { Open }], "{title}: forgotten");
            here.forgotten.clear();
            here.compare(&all_findings(), at(13));
            let statuses = [0, 1].map(|number| status_after(&here.log, &finding(number)));
            assert_eq!(statuses, expected, "{title}: used again");
        }
    }
}

/// Returns the run of a panel that was requested at second 50, and whose list has merged the reports 0 and 2 into finding 1: as it is on
/// the machine of the panel (`None`), or on others.
fn list_of_panel(machine: Option<usize>) -> RunRecord {
    let merged: Vec<serde_json::Value> = [0, 2]
        .iter()
        .map(|report| serde_json::json!({ "reported_as": finding(*report), "finding_id": finding(1) }))
        .collect();
    let mut run = serde_json::json!({
        "run_id": format!("ar_{:026}", 7), "status": "completed", "created_at": "1970-01-01T00:00:50Z",
        "updated_at": "1970-01-01T00:00:51Z", "source": "cli", "scope": "worktree", "reviewer": "panel:all",
        "merged_reports": merged,
    });
    if let Some(machine) = machine {
        run["team"] = serde_json::json!({ "machine": name(machine), "person": { "name": format!("Person{machine}") } });
    }
    serde_json::from_value(run).expect("a run")
}

/// Returns all orders of numbers from 0.
fn list_orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let add_last =
        |order: Vec<usize>| (0..count).map(move |place| [&order[..place], &[count - 1], &order[place..]].concat());
    list_orders(count - 1).into_iter().flat_map(add_last).collect()
}

#[test]
fn every_machine_that_has_a_list_and_the_decisions_finds_the_same_statuses_in_any_order() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    // `1@2:0:dismissed` decides on machine 1 at second 2 about report 0, `bot-1@60:0:addressed` lets the assistant there claim, `1@3:undo`
    // undoes there, `1@4:redo` makes that again, and `1>2` delivers what machine 1 has decided to machine 2. Then the list of machine 0 and
    // all decisions arrive at each machine in any order. The statuses of finding 1 are those with the list, and without it.
    for (title, script, [expected, without_list]) in [
        ("a dismissal", "1@2:0:dismissed", ["dismissed", "open"]),
        ("taken back", "1@2:0:dismissed 1@3:undo", ["open", "open"]),
        ("decided again", "1@2:0:dismissed 1@3:undo 1@4:0:dismissed", ["dismissed", "open"]),
        ("opened by somebody else", "1@2:0:dismissed 1>2 2@3:0:open", ["open", "open"]),
        ("addressed instead", "1@2:0:dismissed 1@3:0:addressed", ["addressed", "open"]),
        ("addressed before the panel has seen the problem", "1@2:0:addressed", ["open", "open"]),
        ("addressed afterwards", "1@60:0:addressed", ["addressed", "open"]),
        ("a claim afterwards", "bot-1@60:0:addressed", ["addressed", "open"]),
        ("a person before a claim", "2@2:0:dismissed bot-1@60:2:addressed", ["dismissed", "open"]),
        ("the later of two reports", "1@2:0:dismissed 2@60:2:addressed", ["addressed", "open"]),
        ("the other one of two reports", "1@2:0:dismissed 2@60:2:addressed 2@61:undo", ["dismissed", "open"]),
        ("decided for itself", "1@2:0:open 1@3:0:dismissed", ["open", "open"]),
        ("opened, which was taken back", "1@2:0:open 1@3:undo 1@4:0:dismissed", ["dismissed", "open"]),
        ("opened again after that", "1@2:0:open 1@3:undo 1@4:redo 1>2 2@5:0:dismissed", ["open", "open"]),
        ("opened after a decision", "1@2:0:dismissed 1>2 2@3:0:open 2@4:0:dismissed", ["dismissed", "open"]),
        (
            "opened after a decision that was taken back",
            "1@2:0:dismissed 1@3:undo 1>2 2@4:0:open 2@5:0:dismissed",
            ["dismissed", "open"],
        ),
        (
            "another report after one that is decided for itself",
            "1@2:0:dismissed 2@1:0:open 2@60:2:addressed",
            ["addressed", "open"],
        ),
        ("the finding is decided", "1@4:0:dismissed 2@3:1:addressed", ["addressed", "addressed"]),
        ("the finding is opened", "1@4:0:dismissed 2@2:1:dismissed 2@3:1:open", ["open", "open"]),
        ("the finding is decided no longer", "1@4:0:dismissed 2@2:1:addressed 2@3:undo", ["dismissed", "open"]),
        ("the finding is claimed", "1@4:0:dismissed bot-2@60:1:addressed", ["dismissed", "addressed"]),
    ] {
        let mut deciders: Vec<Machine> = (1..3).map(Machine::new).collect();
        for word in script.split(' ') {
            if let Some((from, to)) = word.split_once('>') {
                let [from, to] = [from, to].map(|text| text.parse::<usize>().expect("a machine"));
                let records = deciders[from - 1].records();
                deciders[to - 1].receive(records, at(1));
                continue;
            }
            let (actor, word) = match word.strip_prefix("bot-") {
                Some(word) => (Actor::Assistant, word),
                None => (Actor::User, word),
            };
            let parts: Vec<&str> = word.split([':', '@']).collect();
            let [machine, second, rest @ ..] = parts.as_slice() else { panic!("{word}") };
            let machine: usize = machine.parse().expect("a machine");
            let (machine, time) = (&mut deciders[machine - 1], at(second.parse().expect("a second")));
            match rest {
                ["undo"] => machine.step(UndoDirection::Undo, time),
                ["redo"] => machine.step(UndoDirection::Redo, time),
                [about, status] => {
                    let about = finding(about.parse().expect("a number"));
                    machine.append(about, status.parse().expect("a status"), actor, time, format!("t_{second}"));
                }
                _ => panic!("{word}"),
            }
        }
        let records: Vec<Vec<SharedDecision>> = deciders.iter().map(Machine::records).collect();
        let decisions: Vec<&SharedDecision> = records.iter().flatten().collect();
        for order in list_orders(decisions.len() + 1) {
            for number in 0..4 {
                let is_decider = (1..3).contains(&number);
                let mut machine = Machine::new(number);
                if is_decider {
                    machine.log.clone_from(&deciders[number - 1].log);
                    machine.received.clone_from(&deciders[number - 1].received);
                }
                for step in &order {
                    let Some(decision) = decisions.get(*step) else {
                        machine.lists.push(list_of_panel(Some(0).filter(|_| number != 0)));
                        // On the machine of the panel, reports that nobody has decided about give way.
                        for report in [0, 2].map(finding).into_iter().filter(|_| number == 0) {
                            let status = status_after(&machine.log, &report);
                            if status.is_undecided() {
                                let run = &machine.lists[0].run_id;
                                machine.log.push(Disposition::from_merge(&report, status, &finding(1), run, at(50)));
                            }
                        }
                        machine.compare(&all_findings(), at(70));
                        continue;
                    };
                    if decision.id.machine != machine.team.machine {
                        machine.receive(vec![(*decision).clone()], at(70));
                    }
                }
                let context = format!("{title}, {order:?}, machine {number}: {:#?}", machine.log);
                let status_now = |machine: &Machine| status_after(&machine.log, &finding(1)).word();
                assert_eq!(status_now(&machine), expected, "{context}");
                let lines = machine.log.len();
                machine.compare(&all_findings(), at(71));
                assert_eq!(machine.log.len(), lines, "what is settled needs no line: {context}");
                let own = if is_decider { records[number - 1].as_slice() } else { &[] };
                assert_eq!(machine.records(), own, "nobody speaks for others: {context}");
                if number == 0 {
                    continue;
                }
                // The machine of the list is forgotten, and used again.
                machine.forgotten.push(name(0));
                machine.compare(&all_findings(), at(72));
                assert_eq!(status_now(&machine), without_list, "forgotten: {context}");
                machine.forgotten.clear();
                machine.compare(&all_findings(), at(73));
                assert_eq!(status_now(&machine), expected, "used again: {context}");
            }
        }
    }
}

#[test]
fn a_finding_is_not_said_to_be_opened_by_somebody_who_has_decided_about_another_report() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let (mut ada, mut bob, mut here) = (Machine::new(1), Machine::new(2), Machine::new(0));
    here.lists.push(list_of_panel(None));
    ada.append(finding(0), FindingStatus::Dismissed, Actor::User, at(2), "t_1".to_owned());
    here.receive(ada.records(), at(70));
    assert_eq!(status_after(&here.log, &finding(1)), FindingStatus::Dismissed);
    // Before the panel has seen the problem, so it does not hold for the finding.
    bob.append(finding(2), FindingStatus::Addressed, Actor::User, at(4), "t_2".to_owned());
    here.receive(bob.records(), at(71));
    ada.undo(at(3));
    here.receive(ada.records(), at(72));
    let last = here.log.iter().rev().find(|line| line.finding_id == finding(1)).expect("a line");
    let by = last.team.as_ref().map(|origin| &origin.id.machine);
    assert_eq!((last.status, by), (FindingStatus::Open, Some(&name(1))), "{:#?}", here.log);
}

#[test]
fn a_claim_about_the_finding_with_the_identity_of_the_decision_about_its_report_changes_nothing() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let mut ada = Machine::new(1);
    ada.append(finding(0), FindingStatus::Dismissed, Actor::User, at(60), "t_1".to_owned());
    let dismissal = ada.records().remove(0);
    let (finding_id, actor, status) = (finding(1), Actor::Assistant, FindingStatus::Addressed);
    let claim = SharedDecision { finding_id, actor, status, ..dismissal.clone() };
    for (title, first, second) in [("claim first", &claim, &dismissal), ("claim last", &dismissal, &claim)] {
        let mut here = Machine::new(2);
        here.lists.push(list_of_panel(Some(0)));
        for decision in [first, second] {
            here.receive(vec![decision.clone()], at(70));
        }
        let lines = here.log.len();
        for _ in 0..2 {
            assert_eq!(status_after(&here.log, &finding(1)), FindingStatus::Dismissed, "{title}: {:#?}", here.log);
            here.compare(&all_findings(), at(71));
        }
        assert_eq!(here.log.len(), lines, "{title}: what is settled needs no line");
    }
}

#[test]
fn a_report_that_a_person_took_out_of_the_finding_is_decided_for_itself() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let (mut ada, mut bob) = (Machine::new(0), Machine::new(1));
    let run = format!("ar_{:026}", 7).parse().expect("an id");
    bob.log.push(Disposition::from_merge(&finding(0), FindingStatus::Open, &finding(1), &run, at(1)));
    bob.append(finding(0), FindingStatus::Open, Actor::User, at(2), "t_1".to_owned());
    ada.append(finding(0), FindingStatus::Dismissed, Actor::User, at(3), "t_2".to_owned());
    bob.receive(ada.records(), at(4));
    let statuses = [0, 1].map(|number| status_after(&bob.log, &finding(number)));
    assert_eq!(statuses, [FindingStatus::Dismissed, FindingStatus::Open]);
}
