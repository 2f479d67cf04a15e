//! Names of machines: one store has one, and no other store writes its log.

use std::process::Stdio;

use serde_json::json;

use super::machines::{machine, member};
use super::postgres_server::{OWNER, database};
use super::{Team, ids, review, sync, with_variable};
use crate::env::{DONE, USAGE, err, run};
use crate::runner::place::wait_for;

#[test]
fn a_name_that_another_clone_has_is_refused_and_its_owner_comes_back() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    sync(&ada);
    let second = team.machine("Ada");
    insta::assert_snapshot!(second.fails(&["team", "join", "--machine", "ada-1"], USAGE), @"
    error: the name ada-1 is taken in origin: another machine or clone keeps its records there under this name
      hint: `revdeck team join --machine NAME` takes another name
    ");
    assert!(run(&second, &["team"], DONE).contains("takes part in no team"));
    run(&second, &["team", "join", "--machine", "ada-2"], DONE);
    assert_eq!(sync(&second)["received"]["reviews"], 1);
    // The owner of the name leaves and joins again, also after it was elsewhere.
    run(&ada, &["team", "leave"], DONE);
    run(&ada, &["team", "join"], DONE);
    assert_eq!(sync(&ada)["copied"], false);
    let other = Team::new();
    run(&ada, &["team", "join", other.remote().to_str().expect("text")], DONE);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    run(&ada, &["team", "join", "origin"], DONE);
    assert_eq!(sync(&ada)["sent"]["reviews"], 0);
}

#[test]
fn a_name_that_turns_out_to_be_taken_is_changed() {
    let team = Team::new();
    let ada = team.member("Ada");
    review(&ada);
    sync(&ada);
    let second = team.machine("Ada");
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    let joined = run(&second, &["team", "join", "--machine", "ada-1"], DONE);
    assert!(joined.contains("the first `revdeck sync` says if another machine has this name"), "{joined}");
    std::fs::rename(&away, team.remote()).expect("moved back");
    let found = ids(&review(&second));
    run(&second, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    let before = team.everything();
    let refused = second.fails(&["sync"], USAGE);
    assert!(refused.contains("the name ada-1 is taken in origin"), "{refused}");
    assert_eq!(team.everything(), before, "nothing was written into the log of another machine");
    run(&second, &["team", "join", "--machine", "ada-2"], DONE);
    assert_eq!(sync(&second)["sent"], json!({"decisions": 1, "reviews": 1}));
    assert_eq!(team.logs(), ["ada-1", "ada-2"]);
    let received = sync(&ada);
    assert_eq!((&received["received"]["decisions"], &received["set_aside"]), (&json!(1), &json!([])), "{received}");
    // From now on, records carry the new name.
    second.fails(&["team", "join", "--machine", "ada-3"], USAGE);
}

#[test]
fn jobs_of_continuous_integration_may_have_one_name() {
    let team = Team::new();
    for _ in 0..2 {
        let job = team.machine("Builder");
        let joined = with_variable(&job, "CI", "true", &["team", "join", "--machine", "ci-1"]);
        assert_eq!(joined.status.code(), Some(DONE), "{}", err(&joined));
        review(&job);
        assert_eq!(sync(&job)["copied"], false);
    }
    assert_eq!(team.logs(), ["ci"]);
}

#[test]
fn a_name_in_a_database_is_refused_and_its_owner_comes_back() {
    let Some(database) = database() else { return };
    let address = database.address(OWNER);
    let ada = member(&database, "Ada");
    review(&ada);
    sync(&ada);
    let second = machine("Ada");
    let refused = second.fails(&["team", "join", &address, "--machine", "ada-1"], USAGE);
    assert!(refused.contains("the name ada-1 is taken in postgres://"), "{refused}");
    run(&ada, &["team", "leave"], DONE);
    run(&ada, &["team", "join", &address], DONE);
    assert_eq!(sync(&ada)["copied"], false);
    // A name is one of a project.
    run(&second, &["team", "join", &address, "--machine", "ada-1", "--project", "other"], DONE);
}

#[test]
fn a_follower_whose_name_is_taken_gives_up_and_says_what_to_do() {
    let Some(database) = database() else { return };
    let ada = member(&database, "Ada");
    // Nobody has sent anything yet, so both get the name.
    let second = machine("Ada");
    run(&second, &["team", "join", &database.address(OWNER), "--machine", "ada-1"], DONE);
    review(&ada);
    sync(&ada);
    let mut command = second.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["sync", "--follow"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut follower = command.spawn().expect("revdeck starts");
    let ended = wait_for("the end of the follower", || follower.try_wait().expect("a state"));
    assert_eq!(ended.code(), Some(USAGE));
    let said = err(&follower.wait_with_output().expect("an end"));
    assert_eq!(said.matches("is taken in").count(), 1, "{said}");
    assert!(said.contains("hint: `revdeck team join --machine NAME` takes another name"), "{said}");
    // The store says so, too, for whoever looks later.
    let told = run(&second, &["team"], DONE);
    assert!(told.contains("; `revdeck team join --machine NAME` takes another name"), "{told}");
}

#[test]
fn a_copy_of_a_store_is_noticed() {
    let team = Team::new();
    let (ada, copy) = (team.member("Ada"), team.machine("Ada"));
    let found = ids(&review(&ada));
    sync(&ada);
    review(&copy);
    let (from, to) = (ada.store().root().to_owned(), copy.store().root().to_owned());
    std::fs::create_dir_all(to.join("team")).expect("a folder");
    for file in ["team/own.ndjson", "team/membership.json", "team.json"] {
        std::fs::copy(from.join(file), to.join(file)).expect(file);
    }
    assert_eq!(sync(&copy)["copied"], false, "they have made the same until now");
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    let told = run(&copy, &["sync"], DONE);
    assert!(told.contains("the log of this machine has records of another copy of its store"), "{told}");
    assert_eq!(sync(&copy)["copied"], false, "it is said once");
}
