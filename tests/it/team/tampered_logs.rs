//! Logs that somebody else than their owner has moved, replaced or extended.

use std::path::Path;

use serde_json::json;

use super::hostile::{decision, push_log, store_blob};
use super::transport::sign_with_ssh;
use super::{Team, ids, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, run};

/// Ref of Ada's log.
const ADA: &str = "refs/revdeck/team/ada-1";

#[test]
fn a_log_that_was_put_back_or_replaced_is_sent_again() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    let found = ids(&review(&ada));
    sync(&ada);
    let backup = team.git(&["rev-parse", ADA]);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    // The remote is restored from a backup that is older than the decision.
    team.git(&["update-ref", ADA, backup.trim()]);
    let again = sync(&ada);
    assert_eq!((&again["restored"], &again["sent"]), (&json!(true), &json!({"decisions": 1, "reviews": 0})), "{again}");
    sync(&bob);
    assert_eq!(status(&bob, &found[0]), "dismissed");
    assert_eq!(sync(&ada)["restored"], false);
    // Somebody replaces the log by force.
    push_log(&eve, "ada-1", &[("000000-x.ndjson", String::new())]);
    let again = sync(&ada);
    assert_eq!((&again["restored"], &again["sent"]), (&json!(true), &json!({"decisions": 1, "reviews": 1})), "{again}");
    assert_eq!(sync(&bob)["received"], json!({"decisions": 0, "reviews": 0}), "nothing is doubled");
}

/// Trusts the ssh keys of people from now on.
fn trust(machine: &TestEnvironment, keys: &[(&str, &Path)]) {
    let lines = keys.iter().map(|(owner, key)| format!("{owner} {}", std::fs::read_to_string(key).expect("a key")));
    let trusted = machine.home().join("allowed");
    std::fs::create_dir_all(machine.home()).expect("a folder");
    std::fs::write(&trusted, lines.collect::<String>()).expect("written");
    machine.git(&["config", "gpg.ssh.allowedSignersFile", trusted.to_str().expect("text")]);
}

/// Puts a segment on top of a log of the remote, as whoever may push can; signed if `flags` say so.
fn extend_log(by: &TestEnvironment, log: &str, content: &str, flags: &[&str]) {
    let reference = format!("refs/revdeck/team/{log}");
    by.git(&["fetch", "-q", "origin", &format!("+{reference}:refs/x/log")]);
    let blob = store_blob(by, content);
    by.git(&["read-tree", "refs/x/log"]);
    by.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},000099-{}.ndjson", &blob[..8])]);
    let tree = by.git(&["write-tree"]);
    by.git(&["read-tree", "HEAD"]);
    let commit = by.git(&[&["commit-tree"][..], flags, &["-p", "refs/x/log", "-m", "x", tree.trim()]].concat());
    by.git(&["push", "-q", "origin", &format!("{}:{reference}", commit.trim())]);
}

#[test]
fn a_machine_does_not_sign_what_somebody_else_put_into_its_log() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    let key = sign_with_ssh(&ada);
    trust(&bob, &[("ada@example.org", key.as_path())]);
    ada.settings("[team]\nsign = \"always\"\naccept = \"signed\"\n");
    bob.settings("[team]\naccept = \"signed\"\n");
    let found = ids(&review(&ada));
    sync(&ada);
    assert_eq!(sync(&bob)["received"]["reviews"], 1);
    extend_log(&eve, "ada-1", &format!("{}\n", decision("ada-1", &found[0], "forged")), &[]);
    assert!(sync(&bob)["set_aside"].to_string().contains("no key that git trusts"));
    let before = team.everything();
    // With something to send and without, nothing is put on top.
    let refused = ada.errors(&["sync"], INCOMPLETE);
    insta::assert_snapshot!(refused, @"
    error: the log ada-1 at origin has records that the key of this machine has not signed: nothing was added to it
      hint: `git push origin --delete refs/revdeck/team/ada-1` removes the log, and the next `revdeck sync` sends your records again; let the owner of the remote protect refs/revdeck/team/*
    ");
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    let again = ada.errors(&["sync"], INCOMPLETE);
    assert!(again.contains("has records that the key of this machine has not signed"), "{again}");
    assert_eq!(team.everything(), before);
    assert_eq!(status(&ada, &found[0]), "open", "nor does it count here");
    sync(&bob);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "open".into()));
    // The way out.
    team.git(&["update-ref", "-d", ADA]);
    assert_eq!(sync(&ada)["restored"], true);
    sync(&bob);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "addressed".into()));
}

#[test]
fn a_copy_of_a_store_that_signs_with_the_same_key_writes_the_same_log() {
    let team = Team::new();
    let (ada, copy) = (team.member("Ada"), team.machine("Ada"));
    sign_with_ssh(&ada);
    copy.settings("[team]\nsign = \"always\"\n");
    copy.git(&["config", "gpg.format", "ssh"]);
    copy.git(&["config", "user.signingKey", ada.home().join("key").to_str().expect("text")]);
    let found = ids(&review(&ada));
    sync(&ada);
    review(&copy);
    std::fs::create_dir_all(copy.store().root().join("team")).expect("a folder");
    for file in ["team/own.ndjson", "team/membership.json", "team.json"] {
        std::fs::copy(ada.store().root().join(file), copy.store().root().join(file)).expect(file);
    }
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    // Once with nothing to send, and once with something, on top of what the other one has sent.
    sync(&copy);
    run(&ada, &["triage", &found[1], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    run(&copy, &["triage", &found[1], "addressed"], DONE);
    assert_eq!(sync(&copy)["sent"]["decisions"], 1);
}

#[test]
fn a_log_belongs_to_its_first_signer_until_a_person_accepts_another() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    let (key_of_ada, key_of_eve) = (sign_with_ssh(&ada), sign_with_ssh(&eve));
    trust(&bob, &[("ada@example.org", key_of_ada.as_path()), ("eve@example.org", key_of_eve.as_path())]);
    bob.settings("[team]\naccept = \"signed\"\n");
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    extend_log(&eve, "ada-1", &format!("{}\n", decision("ada-1", &found[0], "as Ada")), &["-S"]);
    let named = sync(&bob)["set_aside"].to_string();
    let reason = "another key than before has signed the log: it is signed by eve@example.org, not signed by \
                  ada@example.org; `revdeck team remember ada-1` accepts that";
    assert!(named.contains(reason), "{named}");
    assert_eq!(status(&bob, &found[0]), "open");
    let accepted = run(&bob, &["team", "remember", "ada-1"], DONE);
    assert!(accepted.contains("is read again from the next"), "{accepted}");
    assert_eq!(sync(&bob)["set_aside"], json!([]));
    assert_eq!(status(&bob, &found[0]), "dismissed");
    assert!(run(&bob, &["team"], DONE).contains("signed by eve@example.org"));
}

#[test]
fn a_signature_does_not_vouch_for_the_commits_before_it() {
    let team = Team::new();
    let (ada, bob, eve) = (team.member("Ada"), team.member("Bob"), team.machine("Eve"));
    let key = sign_with_ssh(&ada);
    trust(&bob, &[("ada@example.org", key.as_path())]);
    bob.settings("[team]\naccept = \"signed\"\n");
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    extend_log(&eve, "ada-1", &format!("{}\n", decision("ada-1", &found[0], "forged")), &[]);
    // An older revdeck of Ada's signs on top of it.
    extend_log(&ada, "ada-1", &format!("{}\n", decision("ada-1", &found[1], "by Ada")), &["-S"]);
    let named = sync(&bob)["set_aside"].to_string();
    assert!(named.contains("no key that git trusts has signed all that is new in the log"), "{named}");
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "open".into()));
}

#[test]
fn too_many_refs_are_counted_and_push_no_known_log_out() {
    let team = Team::new();
    let (zoe, bob, eve) = (team.member("Zoe"), team.member("Bob"), team.machine("Eve"));
    let found = ids(&review(&zoe));
    sync(&zoe);
    assert_eq!(sync(&bob)["left_out"], 0);
    // The names of empty logs come before hers.
    push_log(&eve, "aa-0", &[]);
    let commit = team.git(&["rev-parse", "refs/revdeck/team/aa-0"]);
    let lines = (1..=2_000).map(|number| format!("{} refs/revdeck/team/aa-{number:04}\n", commit.trim()));
    let packed = team.remote().join("packed-refs");
    let mut refs = std::fs::read_to_string(&packed).unwrap_or_default();
    refs.extend(lines);
    std::fs::write(&packed, refs).expect("written");
    run(&zoe, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&zoe);
    let told = run(&bob, &["sync"], DONE);
    assert!(told.contains("received 1 decision") && told.contains("origin, 1 other machine\n"), "{told}");
    let said = format!("{} logs of other machines not read", team.logs().len() - 2_000);
    assert!(told.contains(&said) && told.contains("git push origin --delete refs/revdeck/team/MACHINE"), "{told}");
    assert_eq!(status(&bob, &found[0]), "dismissed");
}

#[test]
fn a_remote_that_hides_the_logs_is_named_with_the_way_out() {
    let team = Team::new();
    let ada = team.member("Ada");
    team.git(&["config", "uploadpack.hideRefs", "refs/revdeck"]);
    review(&ada);
    sync(&ada);
    for _ in 0..2 {
        insta::allow_duplicates! {
            insta::assert_snapshot!(ada.errors(&["sync"], INCOMPLETE), @"
            error: origin does not list the log ada-1 although it has it: it hides refs/revdeck, so nobody can read the records
              hint: see uploadpack.hideRefs of the remote; one of its own for the records works, also a bare repository: `revdeck team join REMOTE`
            ");
        }
    }
    let other = Team::new();
    run(&ada, &["team", "join", other.remote().to_str().expect("text")], DONE);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
}
