//! Machines of one person, who undoes and redoes one step on any of them, with or without exchanges between.

use super::*;
use crate::store::triage::OtherMachines;

/// Address of the person.
const EMAIL: &str = "ada@example.org";

/// Action of the person on a machine.
#[derive(Debug, Clone, Copy)]
enum OwnStep {
    Undo(usize),
    Redo(usize),
    /// The machine sends what it has decided to a common place, and takes over what is there.
    Exchange(usize),
}

/// Machines of the person, and what each has sent to their common place.
struct OwnMachines {
    machines: Vec<Machine>,
    sent: Vec<Vec<SharedDecision>>,
    steps: i64,
}

impl OwnMachines {
    /// Returns machines of which all know one decision of the first one.
    fn new() -> Self {
        let mut machines: Vec<Machine> = (0..MACHINES).map(Machine::new).collect();
        for machine in &mut machines {
            machine.person = TeamPerson { name: "Ada".to_owned(), email: EMAIL.to_owned() };
        }
        let mut own = Self { sent: vec![Vec::new(); machines.len()], machines, steps: 0 };
        let at = own.pass_time(0);
        own.machines[0].append(finding(0), FindingStatus::Dismissed, Actor::User, at, "t_1".to_owned());
        own.exchange_all();
        own
    }

    /// Returns the next wall clock of a machine.
    fn pass_time(&mut self, machine: usize) -> Time {
        self.steps += 1;
        let ms = START_MS + self.steps * 1_000 + self.machines[machine].skew_ms;
        Time::from_millisecond(ms).expect("a time")
    }

    /// Undoes or redoes on a machine as [`crate::store::Store::undo_or_redo`] does. Returns false if there is nothing.
    fn step(&mut self, machine: usize, direction: UndoDirection) -> bool {
        let at = self.pass_time(machine);
        let machine = &mut self.machines[machine];
        let disputes = BTreeMap::new();
        let name = machine.team.machine.clone();
        let elsewhere = OtherMachines { email: EMAIL, machine: &name, forgotten: &[], disputes: &disputes };
        let author = UndoAuthor { actor: Actor::User, elsewhere: Some(elsewhere) };
        let log = TriageLog { decisions: &machine.log, ..TriageLog::default() };
        let Some(step) = find_next_step(log, author, direction, at) else { return false };
        let lines = match step {
            UndoStep::Decide(lines) => lines,
            step => panic!("{step:?}"),
        };
        let findings = list_undone(&lines);
        machine.log.extend(lines);
        machine.compare(&findings, at);
        true
    }

    fn exchange(&mut self, number: usize) {
        let at = self.pass_time(number);
        self.sent[number] = self.machines[number].records();
        let others = self.sent.iter().enumerate().filter(|(other, _)| *other != number);
        let others: Vec<SharedDecision> = others.flat_map(|(_, sent)| sent.iter().cloned()).collect();
        self.machines[number].receive(others, at);
    }

    /// Exchanges until each machine has everything.
    fn exchange_all(&mut self) {
        for number in (0..self.machines.len()).chain(0..self.machines.len()) {
            self.exchange(number);
        }
    }

    /// Returns the status that all machines have.
    fn common_status(&self) -> FindingStatus {
        let statuses: Vec<FindingStatus> =
            self.machines.iter().map(|machine| status_after(&machine.log, &finding(0))).collect();
        assert!(statuses.iter().all(|status| *status == statuses[0]), "{statuses:?}");
        statuses[0]
    }

    fn perform(&mut self, step: OwnStep) {
        match step {
            OwnStep::Undo(machine) => drop(self.step(machine, UndoDirection::Undo)),
            OwnStep::Redo(machine) => drop(self.step(machine, UndoDirection::Redo)),
            OwnStep::Exchange(machine) => self.exchange(machine),
        }
    }
}

#[test]
fn a_redo_stands_against_an_undo_that_did_not_know_of_it_and_can_be_taken_back_anywhere() {
    use FindingStatus::{Dismissed, Open};
    // `0-` undoes on machine 0, `0+` redoes there, `0=` exchanges.
    for (title, script, expected) in [
        ("undone on both", "0- 1-", Open),
        ("undone on both, and redone on one", "0- 1- 1+", Dismissed),
        ("redone on one before it is undone on the other", "1- 1+ 0-", Dismissed),
        ("undone and redone on both", "0- 0+ 1- 1+", Dismissed),
        ("redone on both, and undone on one again", "0- 0+ 1- 1+ 0-", Dismissed),
        ("an undo that knew of both redos", "0- 0+ 1- 1+ 1= 0= 0-", Open),
        ("redone where the undo of the other has arrived", "0- 0= 1= 1+ 1= 0=", Dismissed),
        ("undone with a clock that is days behind", "1- 1+ 1= 2= 2-", Open),
        ("without knowledge, by a clock that is days behind", "1- 1+ 2-", Dismissed),
    ] {
        for last in 0..MACHINES {
            let mut own = OwnMachines::new();
            for word in script.split(' ') {
                let (machine, key) = word.split_at(1);
                let machine = machine.parse().expect("a machine");
                own.perform(match key {
                    "-" => OwnStep::Undo(machine),
                    "+" => OwnStep::Redo(machine),
                    "=" => OwnStep::Exchange(machine),
                    _ => panic!("{word}"),
                });
            }
            own.exchange_all();
            assert_eq!(own.common_status(), expected, "{title}");
            assert_eq!(own.step(last, UndoDirection::Undo), expected == Dismissed, "{title}, on {last}");
            own.exchange_all();
            assert_eq!(own.common_status(), Open, "{title}, taken back on {last}");
            assert!(own.step((last + 1) % MACHINES, UndoDirection::Redo), "{title}, after {last}");
            own.exchange_all();
            assert_eq!(own.common_status(), Dismissed, "{title}, redone after {last}");
        }
    }
}

fn any_own_step() -> impl Strategy<Value = OwnStep> {
    prop_oneof![
        (0..MACHINES).prop_map(OwnStep::Undo),
        (0..MACHINES).prop_map(OwnStep::Redo),
        (0..MACHINES).prop_map(OwnStep::Exchange),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_stands_can_be_taken_back_on_every_machine_of_the_person(
        steps in prop::collection::vec(any_own_step(), 1..40),
        last in 0..MACHINES,
    ) {
        let mut own = OwnMachines::new();
        steps.into_iter().for_each(|step| own.perform(step));
        own.exchange_all();
        let is_decided = own.common_status() == FindingStatus::Dismissed;
        prop_assert_eq!(own.step(last, UndoDirection::Undo), is_decided);
        own.exchange_all();
        prop_assert_eq!(own.common_status(), FindingStatus::Open);
        prop_assert!(own.step(last, UndoDirection::Redo));
        own.exchange_all();
        prop_assert_eq!(own.common_status(), FindingStatus::Dismissed);
    }
}
