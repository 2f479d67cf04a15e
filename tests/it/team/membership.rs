//! Messages about a machine's own part in a team and about the other machines.

use super::{Team, review, sync};
use crate::env::{DONE, INCOMPLETE, USAGE, run};

#[test]
fn a_machine_does_not_forget_itself() {
    let team = Team::new();
    let ada = team.machine("Ada");
    assert!(ada.fails(&["team", "forget", "ada-1"], USAGE).contains("has not joined a team"));
    super::join(&ada, "ada-1");
    insta::assert_snapshot!(ada.fails(&["team", "forget", "ada-1"], USAGE), @"
    error: ada-1 is this machine: without its own records, it would lose its decisions
      hint: `revdeck team leave` takes part no longer
    ");
    assert!(!run(&ada, &["team"], DONE).contains("forgotten"));
}

#[test]
fn a_mistyped_name_of_a_machine_is_answered_with_the_known_ones() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    insta::assert_snapshot!(bob.fails(&["team", "forget", "ad-1"], USAGE), @"
    error: no machine ad-1 is known here
      hint: no other machine has sent anything yet; `revdeck team forget ad-1 --unseen` forgets a machine before its records come
    ");
    review(&ada);
    sync(&ada);
    sync(&bob);
    insta::assert_snapshot!(bob.fails(&["team", "forget", "ad-2"], USAGE), @"
    error: no machine ad-2 is known here
      hint: known are: ada-1; `revdeck team forget ad-2 --unseen` forgets a machine before its records come
    ");
    assert!(!run(&bob, &["team"], DONE).contains("ad-2"));
    insta::assert_snapshot!(run(&bob, &["team", "forget", "ada-1"], DONE), @"
    ada-1 is forgotten · what it has said counts no longer
    2 findings obsolete now, which nobody else has reported or decided about
    `revdeck team remember ada-1` takes it back
    ");
    // Once more is no mistake, and jobs need not have come.
    run(&bob, &["team", "forget", "ada-1"], DONE);
    run(&bob, &["team", "forget", "ci"], DONE);
}

#[test]
fn a_machine_is_forgotten_before_its_records_come_only_on_purpose() {
    let team = Team::new();
    let (eve, bob) = (team.member("Eve"), team.member("Bob"));
    review(&eve);
    sync(&eve);
    insta::assert_snapshot!(run(&bob, &["team", "forget", "eve-1", "--unseen"], DONE), @"
    eve-1 is forgotten · nothing of it has come yet, and nothing will be read
    `revdeck team remember eve-1` takes it back
    ");
    assert_eq!(sync(&bob)["received"]["reviews"], 0);
    assert_eq!(
        run(&bob, &["team", "remember", "eve-1"], DONE),
        "eve-1 is read again from the next `revdeck sync` on\n"
    );
    assert_eq!(sync(&bob)["received"]["reviews"], 1);
}

#[test]
fn a_machine_that_comes_back_to_its_place_knows_how_much_it_has_of_others() {
    let (team, other) = (Team::new(), Team::new());
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    review(&ada);
    sync(&ada);
    assert_eq!(sync(&bob)["machines"], 1);
    run(&bob, &["team", "join", other.remote().to_str().expect("text")], DONE);
    assert_eq!(sync(&bob)["machines"], 0);
    run(&bob, &["team", "join", "origin"], DONE);
    let again = sync(&bob);
    assert_eq!((&again["received"]["reviews"], &again["machines"]), (&0.into(), &1.into()), "{again}");
    assert!(run(&bob, &["team"], DONE).contains("ada-1  1 record"));
}

#[cfg(unix)]
#[test]
fn the_members_of_a_panel_do_not_wait_to_be_sent() {
    let team = Team::new();
    let ada = team.member("Ada");
    super::use_agent(&ada);
    ada.write("c.py", "def load(path):\n    return open(path)\n");
    run(&ada, &["review", "--worktree", "--reviewer", "builtin,agent", "--wait"], DONE);
    assert_eq!(ada.json(&["team", "--format", "json"], DONE)["to_send"], 1);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    assert_eq!(ada.json(&["team", "--format", "json"], DONE)["to_send"], 0);
}

#[cfg(unix)]
#[test]
fn what_a_panel_of_another_machine_has_cost_is_not_known() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    super::use_agent(&ada);
    for machine in [&ada, &bob] {
        machine.write("c.py", "def load(path):\n    return open(path)\n");
    }
    run(&ada, &["review", "--worktree", "--reviewer", "builtin,agent", "--wait"], DONE);
    sync(&ada);
    sync(&bob);
    run(&bob, &["review", "--worktree", "--reviewer", "builtin", "--wait"], DONE);
    // The members of the panel stay on the machine that they worked on.
    let compared = bob.json(&["compare", "builtin+agent", "builtin", "--format", "json"], DONE);
    assert!(compared["runs"][0]["cost"].is_null() && compared["runs"][1]["cost"] == 0.0, "{compared}");
}

#[cfg(unix)]
#[test]
fn a_report_of_the_team_names_who_has_reviewed_the_code_instead() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    super::use_agent(&bob);
    review(&ada);
    sync(&ada);
    sync(&bob);
    let report = ["review", "--commit", "HEAD", "--from-team", "--reviewer", "agent"];
    let refused = bob.fails(&report, INCOMPLETE);
    assert!(refused.contains("has a review of commit:") && refused.contains(" as it is now by agent"), "{refused}");
    assert!(
        refused.contains("hint: somebody else has reviewed it: `--reviewer builtin` shows the result"),
        "{refused}"
    );
    // A review of a forgotten machine answers nothing.
    run(&bob, &["team", "forget", "ada-1"], DONE);
    let refused = bob.fails(&report, INCOMPLETE);
    assert!(!refused.contains("--reviewer builtin"), "{refused}");
    run(&bob, &["team", "remember", "ada-1"], DONE);
    run(&bob, &["review", "--commit", "HEAD", "--from-team", "--reviewer", "builtin"], DONE);
}

#[test]
fn who_joins_again_without_a_place_joins_where_the_machine_took_part_last() {
    let (team, other) = (Team::new(), Team::new());
    let ada = team.machine("Ada");
    let place = || ada.json(&["team", "--format", "json"], DONE)["membership"]["place"].clone();
    let again = "this machine took part there last: `revdeck team join REMOTE` takes another place, such as origin";
    run(&ada, &["team", "join", other.remote().to_str().expect("text"), "--machine", "ada-1"], DONE);
    let first = place();
    review(&ada);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    run(&ada, &["team", "leave"], DONE);
    let joined = run(&ada, &["team", "join"], DONE);
    assert!(joined.contains(again), "{joined}");
    assert_eq!(place(), first);
    assert_eq!(sync(&ada)["sent"]["reviews"], 0);
    assert!(team.logs().is_empty());
    // Another place is taken by its name, and is the last one from then on.
    for arguments in [&["team", "join", "origin"][..], &["team", "leave"], &["team", "join"]] {
        let said = run(&ada, arguments, DONE);
        assert!(!said.contains(again), "{said}");
    }
    assert_eq!(place(), "origin");
}

#[test]
fn a_place_that_is_not_there_is_called_what_it_looks_like() {
    let team = Team::new();
    let ada = team.machine("Ada");
    insta::assert_snapshot!(ada.fails(&["team", "join", "../nobody.git"], USAGE), @r#"
    error: there is no repository at "../nobody.git"
      hint: `git init --bare ../nobody.git` makes one; the name of a git remote or a URL works, too
    "#);
    insta::assert_snapshot!(ada.fails(&["team", "join", "upstream"], USAGE), @r#"
    error: "upstream" is no git remote of this repository
      hint: there are: origin; a URL or a path works, too
    "#);
}

#[test]
fn the_tables_of_a_database_are_printed_without_a_repository() {
    let ada = Team::new().machine("Ada");
    let nowhere = tempfile::tempdir().expect("a folder");
    let folder = nowhere.path().to_str().expect("text");
    assert!(run(&ada, &["-C", folder, "team", "schema"], DONE).contains("CREATE SCHEMA"));
    // A command without JSON does not take the option.
    assert!(ada.errors(&["team", "join", "--format", "json"], USAGE).contains("unexpected argument '--format'"));
}

#[test]
fn who_leaves_before_the_first_exchange_has_sent_nothing() {
    let ada = Team::new().member("Ada");
    insta::assert_snapshot!(run(&ada, &["team", "leave"], DONE), @"ada-1 takes part no longer · nothing was sent to origin");
}

#[test]
fn a_database_that_is_away_is_not_joined() {
    let ada = Team::new().machine("Ada");
    let refused = ada.errors(&["team", "join", "postgres://ada@127.0.0.1:1/x", "--project", "x"], INCOMPLETE);
    assert!(refused.contains("no connection to postgres://ada@127.0.0.1:1/x"), "{refused}");
    assert!(refused.contains("hint: nothing was joined: try again when the database can be reached"), "{refused}");
    assert!(run(&ada, &["team"], DONE).contains("takes part in no team"));
}
