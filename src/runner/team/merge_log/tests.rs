//! Machines that decide, undo, snooze, rate, review and forget each other in any order, and receive any parts of what others have
//! decided, any number of times, have the same histories once all has arrived.

use proptest::prelude::*;

use super::super::undo::list_undone;
use super::*;
use crate::domain::{Actor, FindingRating, FindingSnooze, Priority, Rating, RunRecord, SnoozeEnd, TriageAction};
use crate::policy::may_set;
use crate::store::triage::{TriageLog, UndoAuthor, UndoDirection, UndoStep, find_next_step};
use crate::store::{HistoryBuilder, LastLines, VoidCause};

mod own_machines;
mod panel_lists;

/// Number of machines.
const MACHINES: usize = 3;
/// Number of findings. Reviews see something about the first half of them.
const FINDINGS: usize = 4;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Begin of all clocks.
const START_MS: i64 = 1_764_237_272_000;

/// Step of a simulation. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Decide {
        machine: usize,
        finding: usize,
        status: FindingStatus,
        is_assistant: bool,
    },
    Undo {
        machine: usize,
    },
    /// A review of the machine has seen that the code was changed, or that it was not.
    Review {
        machine: usize,
        finding: usize,
        status: FindingStatus,
    },
    Snooze {
        machine: usize,
        finding: usize,
    },
    Rate {
        machine: usize,
        finding: usize,
    },
    /// A part of the decisions of `from` arrives: those whose bit is set.
    Deliver {
        from: usize,
        to: usize,
        parts: u64,
    },
    Forget {
        machine: usize,
        other: usize,
    },
    Remember {
        machine: usize,
        other: usize,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let (machine, finding) = (0..MACHINES, 0..FINDINGS);
    let status = prop::sample::select(FindingStatus::ALL.to_vec());
    prop_oneof![
        5 => (machine.clone(), finding.clone(), status.clone(), any::<bool>()).prop_map(
            |(machine, finding, status, is_assistant)| Step::Decide { machine, finding, status, is_assistant }
        ),
        2 => machine.clone().prop_map(|machine| Step::Undo { machine }),
        2 => (machine.clone(), finding.clone(), status)
            .prop_map(|(machine, finding, status)| Step::Review { machine, finding, status }),
        1 => (machine.clone(), finding.clone()).prop_map(|(machine, finding)| Step::Snooze { machine, finding }),
        1 => (machine.clone(), finding).prop_map(|(machine, finding)| Step::Rate { machine, finding }),
        6 => (machine.clone(), machine.clone(), any::<u64>())
            .prop_map(|(from, to, parts)| Step::Deliver { from, to, parts }),
        1 => (machine.clone(), machine.clone()).prop_map(|(machine, other)| Step::Forget { machine, other }),
        1 => (machine.clone(), machine).prop_map(|(machine, other)| Step::Remember { machine, other }),
    ]
}

fn finding(number: usize) -> FindingId {
    format!("f_00000000000000a{number}").parse().expect("an id")
}

fn name(number: usize) -> MachineName {
    format!("machine-{number}").parse().expect("a name")
}

fn status_after(log: &[Disposition], id: &FindingId) -> FindingStatus {
    LastLines::new(log).status_of(id)
}

fn all_findings() -> BTreeSet<FindingId> {
    (0..FINDINGS).map(finding).collect()
}

/// Machine with its files.
struct Machine {
    team: TeamMembership,
    person: TeamPerson,
    log: Vec<Disposition>,
    snoozes: Vec<FindingSnooze>,
    ratings: Vec<FindingRating>,
    received: Vec<SharedDecision>,
    /// Runs of panels, of this machine and of others.
    lists: Vec<RunRecord>,
    forgotten: Vec<MachineName>,
    /// Number of lines of the log that the last exchange knew.
    exchanged: usize,
    /// Difference of its wall clock from that of the others.
    skew_ms: i64,
}

impl Machine {
    fn new(number: usize) -> Self {
        let (machine, person) = (name(number), format!("Person{number}"));
        Self {
            team: TeamMembership {
                log: machine.clone(),
                machine,
                place: "origin".to_owned(),
                project: String::new(),
                joined_at: Time::UNIX_EPOCH,
                left_at: None,
            },
            person: TeamPerson { name: person, email: String::new() },
            log: Vec::new(),
            snoozes: Vec::new(),
            ratings: Vec::new(),
            received: Vec::new(),
            lists: Vec::new(),
            forgotten: Vec::new(),
            exchanged: 0,
            skew_ms: [0, 3 * DAY_MS, -2 * DAY_MS][number % 3],
        }
    }

    fn records(&self) -> Vec<SharedDecision> {
        number_decisions(&self.log, &self.team, &self.person)
    }

    fn append(&mut self, finding: FindingId, status: FindingStatus, actor: Actor, at: Time, group: String) {
        let previous = status_after(&self.log, &finding);
        self.log.push(Disposition {
            finding_id: finding,
            status,
            previous,
            actor,
            reason: format!("in step {group}"),
            at,
            action: TriageAction::Set,
            group,
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        });
    }

    /// Undoes the last step, after which decisions of others may stand at once.
    fn undo(&mut self, at: Time) {
        self.step(UndoDirection::Undo, at);
    }

    fn step(&mut self, direction: UndoDirection, at: Time) {
        let log = TriageLog { decisions: &self.log, snoozes: &self.snoozes, ratings: &self.ratings };
        match find_next_step(log, UndoAuthor::here(Actor::User), direction, at) {
            Some(UndoStep::Decide(lines)) => {
                let findings = list_undone(&lines);
                self.log.extend(lines);
                self.compare(&findings, at);
            }
            Some(UndoStep::Snooze(lines)) => self.snoozes.extend(lines),
            Some(UndoStep::Rate(lines)) => self.ratings.extend(lines),
            None => {}
        }
    }

    fn snooze(&mut self, finding: FindingId, at: Time, group: String) {
        self.snoozes.push(FindingSnooze {
            finding_id: finding,
            until: Some(SnoozeEnd::Time(at)),
            previous: None,
            actor: Actor::User,
            at,
            action: TriageAction::Set,
            group,
        });
    }

    fn rate(&mut self, finding: FindingId, at: Time, group: String) {
        self.ratings.push(FindingRating {
            finding_id: finding,
            rating: Rating { priority: Some(Priority::P0), kind: None },
            previous: Rating::default(),
            actor: Actor::User,
            at,
            action: TriageAction::Set,
            group,
        });
    }

    /// Compares the log with all that has arrived, and returns the disputes.
    fn compare(&mut self, findings: &BTreeSet<FindingId>, at: Time) -> BTreeMap<FindingId, Vec<DisputeSide>> {
        let mut lists = PanelLists::default();
        self.lists.iter().for_each(|run| lists.add_run(run, &self.forgotten));
        lists.add_merge_lines(&self.log);
        let findings = &lists.reports.add_findings(findings);
        let about = lists.reports.add_reports(findings);
        let is_meant = |decision: &&SharedDecision| {
            about.contains(&decision.finding_id) && !decision.id.machine.is_forgotten(&self.forgotten)
        };
        let mut decisions: BTreeMap<(FindingId, DecisionId), SharedDecision> = BTreeMap::new();
        for decision in self.received.iter().filter(is_meant) {
            // As they are read: of two with one identity, the least one counts.
            let key = (decision.finding_id.clone(), decision.id.clone());
            let kept = decisions.entry(key).or_insert_with(|| decision.clone());
            if *decision < *kept {
                kept.clone_from(decision);
            }
        }
        let owner = LogOwner { team: &self.team, person: &self.person, forgotten: &self.forgotten, now: at };
        let update = update_log(&self.log, decisions.into_values().collect(), findings, &lists, owner);
        self.log.extend(update.lines);
        update.disputes
    }

    fn receive(&mut self, decisions: Vec<SharedDecision>, at: Time) {
        let is_used = |decision: &SharedDecision| !decision.id.machine.is_forgotten(&self.forgotten);
        let new: Vec<SharedDecision> = decisions.into_iter().filter(is_used).collect();
        // An exchange compares what was decided here since the one before, too.
        let own = self.log[self.exchanged..].iter().map(|line| line.finding_id.clone());
        let findings = new.iter().map(|decision| decision.finding_id.clone()).chain(own).collect();
        self.received.extend(new);
        self.compare(&findings, at);
        self.exchanged = self.log.len();
    }

    fn forget(&mut self, other: MachineName, at: Time) {
        if other == self.team.machine || self.forgotten.contains(&other) {
            return;
        }
        self.received.retain(|decision| decision.id.machine != other);
        self.forgotten.push(other);
        self.compare(&all_findings(), at);
    }

    /// Returns the decisions of a history as they must be on each machine, one on each line.
    fn describe(&self, finding: &FindingId) -> String {
        let mut builder = HistoryBuilder::new(finding, &self.team.machine);
        self.log.iter().for_each(|line| builder.add(line.clone()));
        let history = builder.finish(&self.forgotten, |_| Some(self.person.clone()));
        let mut text = String::new();
        for (index, line) in history.lines.into_iter().enumerate().filter(|(_, line)| line.is_decision()) {
            // These are local: what undo takes back together, and what a review has seen before.
            let line = Disposition { group: String::new(), previous: FindingStatus::Open, ..line };
            let void = history.void.get(&index).map_or("", |cause: &VoidCause| cause.word());
            text.push_str(&format!("{} {void}\n", serde_json::to_string(&line).expect("JSON")));
        }
        text
    }
}

fn perform(machines: &mut [Machine], step: &Step, number: usize) {
    let at = |machine: &Machine| {
        let ms = START_MS + i64::try_from(number).expect("few steps") * 1_000 + machine.skew_ms;
        Time::from_millisecond(ms).expect("a time")
    };
    let group = number.to_string();
    match *step {
        Step::Decide { machine, finding: about, status, is_assistant } => {
            let at = at(&machines[machine]);
            let machine = &mut machines[machine];
            let actor = if is_assistant { Actor::Assistant } else { Actor::User };
            if may_set(actor, status_after(&machine.log, &finding(about)), status).is_ok() {
                machine.append(finding(about), status, actor, at, group);
            }
        }
        Step::Undo { machine } => {
            let at = at(&machines[machine]);
            machines[machine].undo(at);
        }
        Step::Review { machine, finding: about, status } => {
            let at = at(&machines[machine]);
            let machine = &mut machines[machine];
            let about = finding(about % (FINDINGS / 2));
            if may_set(Actor::Engine, status_after(&machine.log, &about), status).is_ok() {
                machine.append(about, status, Actor::Engine, at, group);
            }
        }
        Step::Snooze { machine, finding: about } => {
            let at = at(&machines[machine]);
            machines[machine].snooze(finding(about), at, group);
        }
        Step::Rate { machine, finding: about } => {
            let at = at(&machines[machine]);
            machines[machine].rate(finding(about), at, group);
        }
        Step::Deliver { from, to, parts } => {
            let is_in_part = |index: usize| (parts >> (index % 64)) & 1 == 1;
            let records = machines[from].records().into_iter().enumerate();
            let part = records.filter(|(index, _)| is_in_part(*index)).map(|(_, record)| record).collect();
            let at = at(&machines[to]);
            if from != to {
                machines[to].receive(part, at);
            }
        }
        Step::Forget { machine, other } => {
            let at = at(&machines[machine]);
            machines[machine].forget(name(other), at);
        }
        Step::Remember { machine, other } => machines[machine].forgotten.retain(|known| *known != name(other)),
    }
}

/// Delivers all that was lost, so that every machine has everything of those that it does not forget.
fn deliver_everything(machines: &mut [Machine], number: usize) {
    for from in 0..machines.len() {
        for to in 0..machines.len() {
            perform(machines, &Step::Deliver { from, to, parts: u64::MAX }, number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn machines_that_have_the_same_decisions_show_the_same_histories(
        steps in prop::collection::vec(any_step(), 1..60),
        is_one_forgotten_by_all in any::<bool>(),
    ) {
        let mut machines: Vec<Machine> = (0..MACHINES).map(Machine::new).collect();
        for (number, step) in steps.iter().enumerate() {
            perform(&mut machines, step, number);
        }
        let end = steps.len();
        machines.iter_mut().for_each(|machine| machine.forgotten.clear());
        // Twice: repetition changes nothing.
        deliver_everything(&mut machines, end);
        deliver_everything(&mut machines, end);
        let now = Time::from_millisecond(START_MS + 100 * DAY_MS).expect("a time");
        let mut compared = 0..MACHINES;
        if is_one_forgotten_by_all {
            machines.iter_mut().skip(1).for_each(|machine| machine.forget(name(0), now));
            compared = 1..MACHINES;
        }
        let mut states: Vec<String> = Vec::new();
        for machine in &mut machines[compared] {
            let lines = machine.log.len();
            let disputes = machine.compare(&all_findings(), now);
            prop_assert_eq!(machine.log.len(), lines, "what is settled needs no line");
            let mut state = format!("{disputes:?}\n");
            for number in 0..FINDINGS {
                state.push_str(&machine.describe(&finding(number)));
                // What a review has seen moves the status on its machine alone.
                if number >= FINDINGS / 2 {
                    state.push_str(&format!("{}\n", status_after(&machine.log, &finding(number))));
                }
            }
            states.push(state);
        }
        for state in &states {
            prop_assert_eq!(state, &states[0]);
        }
    }
}

#[test]
fn a_decision_of_a_person_stands_against_a_later_claim_of_the_own_assistant_from_the_next_exchange_on() {
    let mut machines: Vec<Machine> = (0..2).map(Machine::new).collect();
    let decide = |status, is_assistant| Step::Decide { machine: 0, finding: 0, status, is_assistant };
    let steps = [
        decide(FindingStatus::Addressed, false),
        Step::Review { machine: 0, finding: 0, status: FindingStatus::Open },
        decide(FindingStatus::Addressed, true),
    ];
    for (number, step) in steps.iter().enumerate() {
        perform(&mut machines, step, number);
    }
    deliver_everything(&mut machines, steps.len());
    assert_eq!(machines[0].log.last().map(|line| line.actor), Some(Actor::User));
    let lines = machines[0].log.len();
    deliver_everything(&mut machines, steps.len());
    assert_eq!(machines[0].log.len(), lines, "what is settled needs no line");
}

#[test]
fn newer_evidence_of_a_review_keeps_the_status_and_late_decisions_keep_their_history() {
    let mut machines: Vec<Machine> = (0..2).map(Machine::new).collect();
    let steps = [
        Step::Decide { machine: 0, finding: 0, status: FindingStatus::Addressed, is_assistant: true },
        Step::Review { machine: 1, finding: 0, status: FindingStatus::Unresolved },
    ];
    machines.iter_mut().for_each(|machine| machine.skew_ms = 0);
    for (number, step) in steps.iter().enumerate() {
        perform(&mut machines, step, number);
    }
    deliver_everything(&mut machines, steps.len());
    let statuses: Vec<&str> = machines[1].log.iter().map(|line| line.status.word()).collect();
    assert_eq!(statuses, ["unresolved", "addressed", "unresolved"]);
    assert_eq!(machines[1].describe(&finding(0)), machines[0].describe(&finding(0)));
}

#[test]
fn an_undo_finds_at_once_what_the_next_exchange_would_find() {
    // `0:dismissed` decides on machine 0, `bot-1:addressed` lets the assistant of machine 1 claim, `1>0` delivers all decisions of
    // machine 1 to machine 0 and `1/0` each alone, the last first. Then machine 0 undoes its last step.
    for (title, script, expected) in [
        ("alone", "0:dismissed", "open"),
        ("the same decision", "0:dismissed 1:dismissed 1>0", "dismissed, as Person1 decided"),
        ("another one, behind which the own one stood", "1:addressed 0:dismissed 1>0", "addressed, as Person1 decided"),
        ("the latest of two people", "0:dismissed 1:addressed 2:dismissed 2>0 1>0", "dismissed, as Person2 decided"),
        ("one that was known before the own one", "1:open 1>0 0:dismissed", "open"),
        ("one that was taken back", "0:dismissed 1:dismissed 1:undo 1>0", "open"),
        ("a late copy of one that was taken back", "0:dismissed 1:dismissed 1:undo 1/0", "open"),
        ("one that a later own decision has replaced", "0:dismissed 1:dismissed 1>0 0:addressed 0:undo", "open"),
        (
            "one before somebody opened the finding again",
            "2:dismissed 2>1 1:open 0:dismissed 2>0 1>0",
            "open, as Person1 decided",
        ),
        (
            "one before somebody else took back a decision",
            "0:dismissed 2:dismissed 1:addressed 1:undo 1>0 2>0",
            "dismissed, as Person2 decided",
        ),
        ("a claim", "0:dismissed bot-1:addressed 1>0", "addressed, as the assistant of Person1 claimed"),
        ("a claim beside a person", "0:dismissed 2:dismissed bot-1:addressed 1>0 2>0", "dismissed, as Person2 decided"),
        ("an own claim", "bot-0:addressed 0:dismissed", "addressed"),
    ] {
        let mut machines: Vec<Machine> = (0..MACHINES).map(Machine::new).collect();
        machines.iter_mut().for_each(|machine| machine.skew_ms = 0);
        let words: Vec<&str> = script.split(' ').chain(["0:undo"]).collect();
        let number = |text: &str| text.parse::<usize>().expect("a machine");
        let at = |step: usize| {
            Time::from_millisecond(START_MS + i64::try_from(step).expect("few steps") * 1_000).expect("a time")
        };
        for (step, word) in words.iter().enumerate() {
            if let Some((from, to)) = word.split_once('>') {
                perform(&mut machines, &Step::Deliver { from: number(from), to: number(to), parts: u64::MAX }, step);
            } else if let Some((from, to)) = word.split_once('/') {
                let records = machines[number(from)].records();
                records.into_iter().rev().for_each(|record| machines[number(to)].receive(vec![record], at(step)));
            } else if let Some((machine, "undo")) = word.split_once(':') {
                machines[number(machine)].undo(at(step));
            } else {
                let (who, status) = word.split_once(':').expect("a decision");
                let (actor, machine) = match who.strip_prefix("bot-") {
                    Some(machine) => (Actor::Assistant, machine),
                    None => (Actor::User, who),
                };
                let status = status.parse().expect("a status");
                machines[number(machine)].append(finding(0), status, actor, at(step), format!("t_{step}"));
            }
        }
        let describe = |machine: &Machine| {
            let last = machine.log.iter().rev().find(|line| line.finding_id == finding(0)).expect("a line");
            let by = last.describe_team_decision().map_or_else(String::new, |decided| format!(", as {decided}"));
            format!("{}{by}", last.status)
        };
        assert_eq!(describe(&machines[0]), expected, "{title}: {:#?}", machines[0].log);
        let lines = machines[0].log.len();
        machines[0].compare(&all_findings(), at(words.len()));
        assert_eq!(machines[0].log.len(), lines, "{title}: what is settled needs no line");
        deliver_everything(&mut machines, words.len());
        let statuses: Vec<FindingStatus> =
            machines.iter().map(|machine| status_after(&machine.log, &finding(0))).collect();
        assert!(statuses.iter().all(|status| *status == statuses[0]), "{title}: {statuses:?}");
        assert!(expected.starts_with(statuses[0].word()), "{title}: {statuses:?}");
    }
}

#[test]
fn of_two_decisions_with_one_identity_every_machine_takes_the_same() {
    let mut source = Machine::new(0);
    source.append(finding(0), FindingStatus::Dismissed, Actor::User, Time::UNIX_EPOCH, "1".to_owned());
    let one = source.records().remove(0);
    let other = SharedDecision { status: FindingStatus::Addressed, ..one.clone() };
    let (least, most) = if one < other { (one, other) } else { (other, one) };
    let histories = [[&least, &most], [&most, &least]].map(|order| {
        let mut machine = Machine::new(1);
        for decision in order {
            machine.received.push(decision.clone());
            machine.compare(&all_findings(), Time::UNIX_EPOCH);
        }
        (machine.describe(&finding(0)), status_after(&machine.log, &finding(0)))
    });
    assert_eq!(histories[0], histories[1]);
    assert_eq!(histories[0].1, least.status);
}

#[test]
fn what_a_forgotten_machine_has_decided_counts_no_more_until_it_is_used_again() {
    let at = |seconds: i64| Time::from_second(seconds).expect("a time");
    let (mut eve, mut bob) = (Machine::new(0), Machine::new(1));
    let dismissed = FindingStatus::Dismissed;
    (0..2).for_each(|number| eve.append(finding(number), dismissed, Actor::User, at(1), number.to_string()));
    bob.receive(eve.records(), at(2));
    bob.append(finding(1), FindingStatus::Addressed, Actor::User, at(0), "0".to_owned());
    let statuses = |machine: &Machine| [0, 1].map(|number| status_after(&machine.log, &finding(number)).word());
    assert_eq!(statuses(&bob), ["dismissed", "addressed"]);
    bob.forget(name(0), at(3));
    assert_eq!(statuses(&bob), ["open", "addressed"], "what others have decided stays");
    let last = bob.log.iter().rev().find(|line| line.finding_id == finding(0)).expect("a line");
    assert_eq!(last.reason, "decision of machine-0 no longer counts: machine forgotten");
    assert!(bob.describe(&finding(0)).contains(" forgotten\n"), "{}", bob.describe(&finding(0)));
    let before = bob.describe(&finding(1));
    bob.forgotten.clear();
    bob.receive(eve.records(), at(4));
    assert_eq!(statuses(&bob), ["dismissed", "addressed"]);
    assert!(!bob.describe(&finding(0)).contains("forgotten"), "{}", bob.describe(&finding(0)));
    assert!(before.contains(" forgotten\n") && !bob.describe(&finding(1)).contains("forgotten"));
}
