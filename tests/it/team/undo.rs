//! Undo of a person who works on several machines.

use super::{Team, ids, join, review, status, sync};
use crate::env::{DONE, TestEnvironment, run};

#[test]
fn a_person_undoes_on_one_machine_what_was_decided_on_another() {
    let team = Team::new();
    let (desk, laptop, bob) = (team.member("Ada"), team.machine("Ada"), team.member("Bob"));
    join(&laptop, "ada-2");
    let found = ids(&review(&desk));
    run(&desk, &["triage", &found[0], &found[1], "dismissed", "--reason", "intended"], DONE);
    let exchange = |order: &[&TestEnvironment]| order.iter().for_each(|machine| drop(sync(machine)));
    let statuses = || -> Vec<String> {
        let machines = [&desk, &laptop, &bob];
        machines.iter().flat_map(|machine| found.iter().map(move |id| status(machine, id))).collect()
    };
    exchange(&[&desk, &laptop, &bob]);
    assert_eq!(statuses(), ["dismissed"; 6]);
    assert_eq!(run(&bob, &["undo"], DONE), "nothing to take back\n", "another person decides anew");

    // Both findings were decided by one command, so one undo takes both back.
    let said = run(&laptop, &["undo"], DONE);
    assert_eq!(said.matches("dismissed -> open").count(), 2, "{said}");
    assert_eq!(run(&laptop, &["undo"], DONE), "nothing to take back\n");
    exchange(&[&laptop, &desk, &bob]);
    assert_eq!(statuses(), ["open"; 6]);
    assert_eq!(sync(&desk)["disputes"], 0);

    // The first machine knows that its own step was undone.
    assert_eq!(run(&desk, &["undo"], DONE), "nothing to take back\n");
    let said = run(&desk, &["redo"], DONE);
    assert_eq!(said.matches("open -> dismissed  (intended)").count(), 2, "{said}");
    exchange(&[&desk, &laptop, &bob]);
    assert_eq!(statuses(), ["dismissed"; 6]);
}

#[test]
fn a_step_that_was_redone_on_one_machine_and_undone_on_another_can_be_taken_back_on_both() {
    let team = Team::new();
    let (desk, laptop) = (team.member("Ada"), team.machine("Ada"));
    join(&laptop, "ada-2");
    let found = ids(&review(&desk));
    run(&desk, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    let exchange = || [&desk, &laptop, &desk].into_iter().for_each(|machine| drop(sync(machine)));
    let statuses = || [&desk, &laptop].map(|machine| status(machine, &found[0]));
    exchange();
    for (redone, undone, last) in [(&laptop, &desk, &desk), (&desk, &laptop, &desk), (&laptop, &desk, &laptop)] {
        // Neither machine knows of the steps of the other.
        run(redone, &["undo"], DONE);
        run(redone, &["redo"], DONE);
        run(undone, &["undo"], DONE);
        exchange();
        assert_eq!(statuses(), ["dismissed", "dismissed"]);
        assert_eq!(run(last, &["redo"], DONE), "nothing to make again\n");
        assert_eq!(run(last, &["undo"], DONE), format!("{}  dismissed -> open\n", found[0]));
        exchange();
        assert_eq!(statuses(), ["open", "open"]);
        for machine in [&desk, &laptop] {
            assert_eq!(run(machine, &["undo"], DONE), "nothing to take back\n");
        }
        run(last, &["redo"], DONE);
        exchange();
        assert_eq!(statuses(), ["dismissed", "dismissed"]);
    }
}

#[test]
fn an_undo_elsewhere_leaves_what_others_decided() {
    let team = Team::new();
    let (desk, laptop, bob) = (team.member("Ada"), team.machine("Ada"), team.member("Bob"));
    join(&laptop, "ada-2");
    let found = ids(&review(&desk));
    sync(&desk);
    sync(&bob);
    run(&bob, &["triage", &found[0], "addressed"], DONE);
    run(&desk, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    for machine in [&desk, &bob, &laptop] {
        sync(machine);
    }
    assert_eq!(status(&laptop, &found[0]), "dismissed");
    // The laptop has learned of Bob's decision first, and says the same as the desk would.
    let said = run(&laptop, &["undo"], DONE);
    assert_eq!(said, format!("{}  dismissed -> addressed, as Bob decided\n", found[0]));
    for machine in [&laptop, &desk, &bob] {
        sync(machine);
    }
    for machine in [&desk, &laptop, &bob] {
        assert_eq!(status(machine, &found[0]), "addressed", "Bob's decision stands");
    }
    // It is Bob's, and nobody else's.
    assert_eq!(run(&bob, &["undo"], DONE), format!("{}  addressed -> open\n", found[0]));
    for machine in [&bob, &desk, &laptop] {
        sync(machine);
        assert_eq!(status(machine, &found[0]), "open");
    }
}

#[test]
fn an_undo_says_that_the_decision_of_another_person_stands() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    // Neither knows of the other's decision.
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&bob, &["triage", &found[0], "dismissed", "--reason", "in a test"], DONE);
    for machine in [&ada, &bob, &ada] {
        sync(machine);
    }
    let said = run(&ada, &["undo"], DONE);
    assert_eq!(said, format!("{}  stays dismissed, as Bob decided  (in a test)\n", found[0]));
    assert_eq!(status(&ada, &found[0]), "dismissed", "at once");
    assert_eq!(run(&ada, &["undo"], DONE), "nothing to take back\n", "her decision is taken back");
    for machine in [&ada, &bob] {
        sync(machine);
    }
    assert_eq!((status(&ada, &found[0]), status(&bob, &found[0])), ("dismissed".into(), "dismissed".into()));
    // Once Bob takes his back, too, nobody has decided.
    assert_eq!(run(&bob, &["undo"], DONE), format!("{}  dismissed -> open\n", found[0]));
    for machine in [&bob, &ada] {
        sync(machine);
    }
    assert_eq!((status(&ada, &found[0]), status(&bob, &found[0])), ("open".into(), "open".into()));
}

#[test]
fn whoever_was_overruled_takes_back_the_own_decision_and_no_earlier_one() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    run(&ada, &["triage", &found[1], "dismissed", "--reason", "intended"], DONE);
    // Neither knows of the other's decision about the same finding; Bob's is later.
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&bob, &["triage", &found[0], "addressed"], DONE);
    for machine in [&ada, &bob] {
        sync(machine);
    }
    assert_eq!(sync(&ada)["disputes"], 1);
    assert_eq!(run(&ada, &["undo"], DONE), format!("{}  stays addressed, as Bob decided\n", found[0]));
    for machine in [&ada, &bob] {
        assert_eq!(sync(machine)["disputes"], 0);
        let statuses = (status(machine, &found[0]), status(machine, &found[1]));
        assert_eq!(statuses, ("addressed".into(), "dismissed".into()));
    }
    // The next step is the one before.
    assert_eq!(run(&ada, &["undo"], DONE), format!("{}  dismissed -> open\n", found[1]));
}

#[test]
fn an_undo_says_at_once_which_claim_stands_everywhere_after_the_next_exchange() {
    let team = Team::new();
    let people = [team.member("Ada"), team.member("Bob"), team.member("Cleo")];
    let [ada, bob, cleo] = &people;
    let found = ids(&review(ada));
    let exchange = || [ada, bob, cleo, ada, bob].into_iter().for_each(|machine| drop(sync(machine)));
    exchange();
    // Neither knows of the other.
    run(ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    let mut claim = bob.command(env!("CARGO_BIN_EXE_revdeck"));
    let claimed = claim.args(["triage", found[0].as_str(), "addressed"]).env("REVDECK_ACTOR", "assistant").output();
    assert_eq!(claimed.expect("revdeck starts").status.code(), Some(DONE));
    exchange();
    let statuses = || -> Vec<String> { people.iter().map(|machine| status(machine, &found[0])).collect() };
    assert_eq!(statuses(), ["dismissed"; 3], "a person beats a claim");
    let said = run(ada, &["undo"], DONE);
    assert_eq!(said, format!("{}  dismissed -> addressed, as the assistant of Bob claimed\n", found[0]));
    assert_eq!(status(ada, &found[0]), "addressed", "at once");
    exchange();
    assert_eq!(statuses(), ["addressed"; 3]);
}

#[test]
fn who_has_left_the_team_undoes_only_what_was_decided_here() {
    let team = Team::new();
    let (desk, laptop) = (team.member("Ada"), team.machine("Ada"));
    join(&laptop, "ada-2");
    let found = ids(&review(&desk));
    sync(&desk);
    sync(&laptop);
    run(&laptop, &["triage", &found[0], "addressed"], DONE);
    run(&desk, &["triage", &found[1], "dismissed", "--reason", "intended"], DONE);
    sync(&desk);
    sync(&laptop);
    run(&laptop, &["team", "leave"], DONE);
    let said = run(&laptop, &["undo"], DONE);
    assert!(said.contains(&found[0]) && !said.contains(&found[1]), "{said}");
    assert_eq!(run(&laptop, &["undo"], DONE), "nothing to take back\n");
    assert_eq!((status(&laptop, &found[0]), status(&laptop, &found[1])), ("open".into(), "dismissed".into()));
    // A member again, both machines count.
    run(&laptop, &["team", "join"], DONE);
    let said = run(&laptop, &["undo"], DONE);
    assert!(said.contains(&found[1]), "{said}");
}
