//! Exchange with a git remote beside the joined one.

use serde_json::{Value, json};

use super::{Team, ids, join, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, run};

fn sync_with(machine: &TestEnvironment, remote: &str) -> Value {
    machine.json(&["sync", remote, "--format", "json"], DONE)
}

/// Returns a machine that has joined `origin` and has a second remote `backup`.
fn member_with_backup(team: &Team, backup: &Team) -> TestEnvironment {
    let ada = team.member("Ada");
    ada.git(&["remote", "add", "backup", backup.remote().to_str().expect("text")]);
    ada
}

#[test]
fn nothing_leaves_for_a_second_remote_before_a_person_allows_it() {
    let (team, backup) = (Team::new(), Team::new());
    let ada = team.machine("Ada");
    ada.git(&["remote", "add", "backup", backup.remote().to_str().expect("text")]);
    review(&ada);
    let failed = ada.fails(&["sync", "backup", "--yes"], USAGE);
    assert!(failed.contains("this repository has not joined a team here"), "{failed}");
    join(&ada, "ada-1");
    insta::assert_snapshot!(ada.fails(&["sync", "backup"], USAGE), @"
    error: nothing leaves for backup before a person allows it: this machine has joined origin
      hint: `revdeck sync backup --yes` sends 1 review there, and exchanges with it whenever you name it; `revdeck sync backup --dry-run --show` prints what would leave
    ");
    let preview = ada.json(&["sync", "backup", "--dry-run", "--format", "json"], DONE);
    assert_eq!(preview["would_send"]["reviews"], 1);
    assert!(ada.fails(&["sync", "bakcup", "--yes"], USAGE).contains("is no git remote of this repository"));
    let assistant =
        ada.command(env!("CARGO_BIN_EXE_revdeck")).args(["sync", "backup", "--yes"]).env("CLAUDECODE", "1").output();
    assert_eq!(assistant.expect("revdeck starts").status.code(), Some(USAGE));
    assert!(backup.logs().is_empty() && team.logs().is_empty());

    run(&ada, &["sync", "backup", "--yes"], DONE);
    assert_eq!((backup.logs(), team.logs().len()), (vec!["ada-1".to_owned()], 0));
    // Leaving takes the permission back.
    run(&ada, &["team", "leave"], DONE);
    for arguments in [&["sync", "backup"][..], &["sync", "backup", "--yes"], &["sync"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(ada.fails(arguments, USAGE), @"
            error: ada-1 has left the team: nothing is exchanged any longer with origin
              hint: `revdeck team join` takes part again, and says what will leave this machine; until then nothing does, and other remotes need `revdeck sync REMOTE --yes` again
            ");
        }
    }
    run(&ada, &["team", "join"], DONE);
    assert!(ada.fails(&["sync", "backup"], USAGE).contains("nothing leaves for backup before a person allows it"));
    run(&ada, &["sync", "backup", "--yes"], DONE);
}

#[test]
fn each_remote_gets_all_that_this_machine_has_made() {
    let (team, backup) = (Team::new(), Team::new());
    let ada = member_with_backup(&team, &backup);
    let found = ids(&review(&ada));
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 0, "reviews": 1}));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    run(&ada, &["sync", "backup", "--yes"], DONE);
    // Records that were collected for one remote still wait for the other.
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 0}));
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 0}));
    assert_eq!(sync_with(&ada, "backup")["sent"], json!({"decisions": 1, "reviews": 0}));
    assert_eq!(sync_with(&ada, "backup")["sent"], json!({"decisions": 0, "reviews": 0}));
    let lines = |place: &Team| {
        let mut lines: Vec<String> = place.everything().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&team), lines(&backup));
    // Another spelling of the joined place is the joined place.
    assert_eq!(sync_with(&ada, team.remote().to_str().expect("text"))["place"], "origin");
    let shown = ada.json(&["team", "--format", "json"], DONE);
    assert_eq!(
        (&shown["membership"]["place"], &shown["other_places"][0]["place"]),
        (&json!("origin"), &json!("backup"))
    );
    assert!(run(&ada, &["team"], DONE).contains("exchanges with backup, too, when you name it"));
}

#[test]
fn what_others_have_at_a_second_remote_counts_and_is_not_passed_on() {
    let (team, backup) = (Team::new(), Team::new());
    let (ada, carol) = (member_with_backup(&team, &backup), team.member("Carol"));
    let found = ids(&review(&ada));
    run(&ada, &["sync", "backup", "--yes"], DONE);
    sync(&ada);
    let bob = team.machine("Bob");
    run(&bob, &["team", "join", backup.remote().to_str().expect("text"), "--machine", "bob-1"], DONE);
    assert_eq!(sync(&bob)["received"]["reviews"], 1);
    run(&bob, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&bob);

    let exchange = sync_with(&ada, "backup");
    assert_eq!((&exchange["received"]["decisions"], &exchange["applied"]), (&json!(1), &json!(1)));
    assert_eq!(status(&ada, &found[0]), "dismissed");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 0, "reviews": 0}), "each machine sends its own records only");
    sync(&carol);
    assert_eq!(status(&carol, &found[0]), "open");
    // A forgotten machine is forgotten at every remote.
    run(&ada, &["team", "forget", "bob-1"], DONE);
    run(&bob, &["triage", &found[1], "addressed"], DONE);
    sync(&bob);
    assert_eq!(sync_with(&ada, "backup")["received"]["decisions"], 0);
    insta::assert_snapshot!(run(&ada, &["team", "remember", "bob-1"], DONE), @"
    bob-1 is read again from the next `revdeck sync` on
    what it has sent to backup is read by `revdeck sync backup`
    ");
    assert_eq!(sync(&ada)["received"]["decisions"], 0, "it has sent nothing there");
    assert_eq!(sync_with(&ada, "backup")["received"]["decisions"], 2);
    assert_eq!(status(&ada, &found[1]), "addressed");
}

#[test]
fn a_permission_is_kept_only_for_a_remote_that_has_answered() {
    let (team, backup) = (Team::new(), Team::new());
    let ada = member_with_backup(&team, &backup);
    review(&ada);
    let away = backup.remote().with_extension("away");
    std::fs::rename(backup.remote(), &away).expect("moved");
    ada.errors(&["sync", "backup", "--yes"], INCOMPLETE);
    assert!(!run(&ada, &["team"], DONE).contains("backup"));
    std::fs::rename(&away, backup.remote()).expect("moved back");
    assert!(ada.fails(&["sync", "backup"], USAGE).contains("nothing leaves for backup before a person allows it"));
    run(&ada, &["sync", "backup", "--yes"], DONE);
    assert_eq!(sync_with(&ada, "backup")["place"], "backup");
}

#[test]
fn the_repository_itself_is_no_place_for_its_records() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.git(&["remote", "add", "me", "."]);
    let linked = ada.repo().with_extension("linked");
    let linked = linked.to_str().expect("text");
    ada.git(&["worktree", "add", "-q", "--detach", linked]);
    let url = format!("file://{}", ada.repo().display());
    for place in [".", ".git", "me", url.as_str(), linked] {
        let refused = ada.fails(&["sync", place, "--yes"], USAGE);
        assert!(refused.contains("this is the repository itself"), "{place}: {refused}");
    }
    assert_eq!(ada.json(&["team", "--format", "json"], DONE)["other_places"], json!([]));
    assert_eq!(ada.git(&["for-each-ref", "refs/revdeck/team"]), "");
}
