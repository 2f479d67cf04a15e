//! Logs over smart HTTP, and signed logs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::http_remote::{CutPoint, CutRequest, HttpRemote};
use super::{Team, ids, review, status, sync};
use crate::chance::Dice;
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, executable, run};

#[test]
fn machines_exchange_records_over_smart_http() {
    let team = Team::new();
    let Some(remote) = HttpRemote::start(&team.remote()) else { return };
    let (ada, bob) = (team.machine("Ada"), team.machine("Bob"));
    for (machine, name) in [(&ada, "ada-1"), (&bob, "bob-1")] {
        run(machine, &["team", "join", &remote.url(name), "--machine", name], DONE);
    }
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 1}));
    assert_eq!(sync(&bob)["applied"], 1);
    assert_eq!(status(&bob, &found[0]), "dismissed");
    assert_eq!(sync(&bob)["received"], json!({"decisions": 0, "reviews": 0}));
}

#[test]
fn servers_that_do_not_take_or_show_the_logs_are_named_with_the_way_out() {
    let team = Team::new();
    let Some(remote) = HttpRemote::start(&team.remote()) else { return };
    let (ada, url) = (team.machine("Ada"), remote.url("ada-1"));
    run(&ada, &["team", "join", &url, "--machine", "ada-1"], DONE);
    review(&ada);
    let hook = team.remote().join("hooks/pre-receive");
    let only_branches = "#!/bin/sh\nwhile read -r old new name; do\n  case $name in refs/heads/*|refs/tags/*) ;;\n    *) echo 'only \
         refs/heads and refs/tags here' >&2; exit 1 ;;\n  esac\ndone\n";
    let elsewhere = "`revdeck team join REMOTE`";
    for (title, key, value, said, way_out) in [
        ("no right to push", "http.receivepack", "false", "git push with", "with the right to push"),
        ("hidden from pushes", "receive.hideRefs", "refs/revdeck", "(deny updating a hidden ref)", "receive.hideRefs"),
        ("hidden from both", "transfer.hideRefs", "refs/revdeck", "(deny updating a hidden ref)", "transfer.hideRefs"),
        (
            "branches and tags alone",
            "",
            "",
            "(pre-receive hook declined): only refs/heads and refs/tags here",
            "a remote of its own for the records works",
        ),
        ("no right to read", "http.uploadpack", "false", "git ls-remote with", "the remote may not be read here"),
    ] {
        if key.is_empty() {
            executable(&hook, only_branches);
        } else {
            team.git(&["config", "http.receivepack", "true"]);
            team.git(&["config", key, value]);
        }
        let failed = ada.errors(&["sync"], INCOMPLETE);
        assert_eq!(failed.lines().count(), 2, "{title}: {failed}");
        for words in [said, way_out, elsewhere] {
            assert!(failed.contains(words), "{title}: {failed}");
        }
        match key.is_empty() {
            true => std::fs::remove_file(&hook).expect("removed"),
            false => drop(team.git(&["config", "--unset", key])),
        }
    }
    // Nothing was lost on the way.
    team.git(&["config", "http.receivepack", "true"]);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    // Logs that are taken and not shown are noticed by the next exchange.
    team.git(&["config", "uploadpack.hideRefs", "refs/revdeck"]);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(failed.contains("it hides refs/revdeck") && failed.contains("uploadpack.hideRefs"), "{failed}");
}

#[test]
fn requests_that_git_compresses_or_sends_in_chunks_are_served() {
    let team = Team::new();
    let Some(remote) = HttpRemote::start(&team.remote()) else { return };
    let ada = team.machine("Ada");
    // A request that names more than about 20 objects is compressed.
    let tree = ada.git(&["mktree", "--missing"]);
    let refs: Vec<String> = (0..30)
        .map(|number| {
            let commit = ada.git(&["commit-tree", tree.trim(), "-m", &format!("log {number}")]);
            format!("{}:refs/revdeck/team/log-{number}", commit.trim())
        })
        .collect();
    let push = ["push", "-q", "origin"].into_iter().chain(refs.iter().map(String::as_str)).collect::<Vec<_>>();
    ada.git(&push);
    let bob = team.machine("Bob");
    run(&bob, &["team", "join", &remote.url("bob-1"), "--machine", "bob-1"], DONE);
    sync(&bob);
    let here = bob.git(&["for-each-ref", "--format=%(refname)", "refs/revdeck/team-logs/"]);
    assert_eq!(here.lines().count(), 30, "{here}");
    // A push that is larger than git's buffer goes in chunks.
    let mut dice = Dice(3);
    let noise: Vec<u8> = (0..200_000).map(|_| dice.below(256) as u8).collect();
    ada.write("noise.bin", &noise);
    ada.commit("Noise");
    ada.git(&["-c", "http.postBuffer=65536", "push", "-q", &remote.url("ada-1"), "HEAD:refs/heads/noise"]);
    assert_eq!(team.git(&["cat-file", "-s", "refs/heads/noise:noise.bin"]).trim(), noise.len().to_string());
    let (ada, bob) = (remote.line("ada-1"), remote.line("bob-1"));
    assert!(ada.chunked > 0 && bob.compressed > 0, "{ada:?} {bob:?}");
}

#[test]
fn a_connection_that_breaks_in_the_middle_loses_and_doubles_nothing() {
    let team = Team::new();
    let Some(remote) = HttpRemote::start(&team.remote()) else { return };
    let (ada, bob) = (team.machine("Ada"), team.machine("Bob"));
    for (machine, name) in [(&ada, "ada-1"), (&bob, "bob-1")] {
        run(machine, &["team", "join", &remote.url(name), "--machine", name], DONE);
    }
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    for (number, point) in CutPoint::ALL.into_iter().enumerate() {
        // Ada's decision leaves although its push breaks off.
        let status_now = if number % 2 == 0 { "addressed" } else { "open" };
        run(&ada, &["triage", &found[0], status_now], DONE);
        remote.cut_next("ada-1", CutRequest::Push, point);
        let failed = ada.errors(&["sync"], INCOMPLETE);
        assert!(failed.contains("git push with"), "{point:?}: {failed}");
        sync(&ada);
        // Bob gets it although his fetch breaks off.
        remote.cut_next("bob-1", CutRequest::Fetch, point);
        let failed = bob.errors(&["sync"], INCOMPLETE);
        assert!(failed.contains("git fetch with"), "{point:?}: {failed}");
        sync(&bob);
        assert_eq!(status(&bob, &found[0]), status_now, "{point:?}");
        assert_eq!((remote.line("ada-1").cuts, remote.line("bob-1").cuts), (number + 1, number + 1));
    }
    let sent = team.everything();
    let lines: HashSet<&str> = sent.lines().collect();
    // A review and three decisions.
    assert_eq!((sent.lines().count(), lines.len()), (4, 4), "{sent}");
    remote.close("ada-1", true);
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(failed.contains("git ls-remote with"), "{failed}");
    remote.close("ada-1", false);
    assert_eq!(sync(&ada)["sent"]["decisions"], 1);
}

/// Lets a machine sign with an ssh key of its own, and returns the file with its public key.
pub fn sign_with_ssh(machine: &TestEnvironment) -> PathBuf {
    let key = machine.home().join("key");
    std::fs::create_dir_all(machine.home()).expect("a folder");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f"]).arg(&key).status();
    assert!(made.expect("ssh-keygen starts").success());
    machine.git(&["config", "gpg.format", "ssh"]);
    machine.git(&["config", "user.signingKey", key.to_str().expect("text")]);
    machine.settings("[team]\nsign = \"always\"\n");
    key.with_extension("pub")
}

#[test]
fn a_signed_log_names_its_signer_and_an_unknown_key_is_named_so() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let key = sign_with_ssh(&ada);
    let found = ids(&review(&ada));
    sync(&ada);
    let signed = |bob: &TestEnvironment| {
        bob.json(&["team", "--format", "json"], DONE)["machines"]["ada-1"]["signed"].as_str().expect("words").to_owned()
    };
    sync(&bob);
    assert_eq!(signed(&bob), "signed by an unknown key");
    // Bob trusts the key.
    let trusted = bob.home().join("allowed");
    let key = std::fs::read_to_string(key).expect("a key");
    std::fs::write(&trusted, format!("ada@example.org {key}")).expect("written");
    bob.git(&["config", "gpg.ssh.allowedSignersFile", trusted.to_str().expect("text")]);
    assert_eq!(signed(&bob), "signed by ada@example.org", "before the next exchange");
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    sync(&bob);
    assert_eq!(signed(&bob), "signed by ada@example.org");
    // Bob does not trust it any more.
    bob.git(&["config", "gpg.ssh.allowedSignersFile", "/dev/null"]);
    assert_eq!(signed(&bob), "signed by an unknown key");
    // A key that cannot sign stops the exchange, and nothing is lost.
    executable(ada.home().join("broken"), "#!/bin/sh\nexit 1\n");
    ada.git(&["config", "gpg.ssh.program", ada.home().join("broken").to_str().expect("text")]);
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(failed.contains("error: git cannot sign in [repo]"), "{failed}");
    ada.settings("");
    assert_eq!(sync(&ada)["sent"]["decisions"], 1);
    sync(&bob);
    assert_eq!(signed(&bob), "unsigned");
}

#[test]
fn a_machine_keeps_its_name_when_it_leaves_and_joins_again() {
    let team = Team::new();
    let ada = team.machine("Ada");
    run(&ada, &["team", "join"], DONE);
    let name = |machine: &TestEnvironment| {
        machine.json(&["team", "--format", "json"], DONE)["membership"]["machine"].as_str().expect("a name").to_owned()
    };
    let first = name(&ada);
    run(&ada, &["team", "leave"], DONE);
    run(&ada, &["team", "join"], DONE);
    assert_eq!(name(&ada), first);
    let bob = team.machine("Bob");
    run(&bob, &["team", "join"], DONE);
    assert_ne!(name(&bob), first);
    let renamed = ada.fails(&["team", "join", "--machine", "ada-2"], USAGE);
    assert!(renamed.contains("hint: records carry the name of their machine, so it stays"), "{renamed}");
    assert_eq!(name(&ada), first);
}
