//! Decisions and reviews of a machine count no longer when it is forgotten, and again when it is remembered.

use super::history::shared_history;
use super::{Team, ids, review, status, sync};
use crate::env::{DONE, TestEnvironment, run};

/// Reviews the last commit, although another machine has done so.
fn review_again(machine: &TestEnvironment) {
    run(machine, &["review", "--commit", "HEAD", "--wait", "--force"], DONE);
}

#[test]
fn a_finding_that_only_a_forgotten_machine_has_dismissed_is_open_again() {
    let team = Team::new();
    let (bob, eve, cleo) = (team.member("Bob"), team.member("Eve"), team.member("Cleo"));
    let found = ids(&review(&bob));
    sync(&bob);
    sync(&eve);
    for finding in &found {
        run(&eve, &["triage", finding, "dismissed", "--reason", "intended"], DONE);
    }
    sync(&eve);
    sync(&bob);
    sync(&cleo);
    // Bob agrees about the second one.
    run(&bob, &["triage", &found[1], "addressed"], DONE);
    sync(&bob);
    sync(&cleo);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("dismissed".into(), "addressed".into()));
    let before = shared_history(&cleo, &found[0]);
    let said = run(&cleo, &["team", "forget", "eve-1"], DONE);
    insta::assert_snapshot!(said, @"
    eve-1 is forgotten · what it has said counts no longer
    1 finding with another status, without its decisions
    `revdeck team remember eve-1` takes it back
    ");
    assert_eq!((status(&cleo, &found[0]), status(&cleo, &found[1])), ("open".into(), "addressed".into()));
    let told = run(&cleo, &["show", &found[0]], DONE);
    for line in [
        "Eve on eve-1 set open -> dismissed (no longer counts: machine forgotten): intended",
        "engine set dismissed -> open: decision of eve-1 no longer counts: machine forgotten",
    ] {
        assert!(told.contains(line), "{told}");
    }
    // The finding stays open after another exchange.
    sync(&cleo);
    assert_eq!(status(&cleo, &found[0]), "open");
    assert_eq!(status(&bob, &found[0]), "dismissed", "to forget is a decision of one machine");
    run(&cleo, &["team", "remember", "eve-1"], DONE);
    sync(&cleo);
    assert_eq!((status(&cleo, &found[0]), status(&cleo, &found[1])), ("dismissed".into(), "addressed".into()));
    assert_eq!(shared_history(&cleo, &found[0]), before);
    assert_eq!(shared_history(&cleo, &found[1]), shared_history(&bob, &found[1]));
}

#[test]
fn findings_that_nobody_else_has_reported_are_obsolete_and_reviews_answer_nothing() {
    let team = Team::new();
    let (eve, bob, cleo) = (team.member("Eve"), team.member("Bob"), team.member("Cleo"));
    let found = ids(&review(&eve));
    run(&eve, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&eve);
    sync(&bob);
    sync(&cleo);
    // Bob has found both himself, although the dismissal of the first one holds it back.
    review_again(&bob);
    run(&bob, &["team", "forget", "eve-1"], DONE);
    run(&cleo, &["team", "forget", "eve-1"], DONE);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "open".into()));
    assert_eq!((status(&cleo, &found[0]), status(&cleo, &found[1])), ("obsolete".into(), "obsolete".into()));
    let told = run(&cleo, &["show", &found[1]], DONE);
    assert!(told.contains("engine set open -> obsolete: reported by eve-1 alone: machine forgotten"), "{told}");
    // Bob's review confirms them for Cleo.
    sync(&bob);
    sync(&cleo);
    assert_eq!(status(&cleo, &found[1]), "open");
    let report = cleo.json(&["review", "--commit", "HEAD", "--from-team", "--format", "json"], DONE);
    assert_eq!(report["run"]["team"]["machine"], "bob-1");
    run(&cleo, &["team", "remember", "eve-1"], DONE);
    sync(&cleo);
    assert_eq!((status(&cleo, &found[0]), status(&cleo, &found[1])), ("dismissed".into(), "open".into()));
}

#[test]
fn a_review_of_a_forgotten_machine_does_not_stand_for_one() {
    let team = Team::new();
    let (eve, bob) = (team.member("Eve"), team.member("Bob"));
    let found = ids(&review(&eve));
    sync(&eve);
    sync(&bob);
    run(&bob, &["team", "forget", "eve-1"], DONE);
    let own = review(&bob);
    assert_eq!(own["decision"]["action"], "launch", "{}", own["decision"]);
    assert_eq!(own["coverage"]["hunks_carried"], 0, "{}", own["coverage"]);
    assert_eq!(ids(&own), found);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "open".into()));
}
