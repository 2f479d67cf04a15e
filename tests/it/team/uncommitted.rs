//! Uncommitted code of one machine, which no other machine has: its findings are shown elsewhere, and count nowhere.

use serde_json::Value;

use super::machines::newest_run;
use super::{CHANGE, Team, ids, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, run};

/// Returns the number of undecided findings in the status line, and in the list of repositories.
fn counted(machine: &TestEnvironment) -> (u64, u64) {
    let sum = |counts: &Value| counts.as_object().expect("counts").values().filter_map(Value::as_u64).sum::<u64>();
    let status = machine.json(&["status", "--format", "json"], DONE);
    let repos = machine.json(&["repos", "--format", "json"], DONE);
    (sum(&status["undecided"]), sum(&repos["repos"][0]["undecided"]))
}

#[test]
fn findings_of_uncommitted_code_elsewhere_fail_no_gate_and_do_not_count() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    bob.write("c.py", CHANGE);
    let found = ids(&bob.json(&["review", "--worktree", "--wait", "--format", "json"], DONE));
    assert_eq!(found.len(), 2);
    assert_eq!(counted(&bob), (2, 2));
    sync(&bob);
    assert_eq!(sync(&ada)["received"]["reviews"], 1);
    // They are shown, with nothing else.
    assert_eq!(ids(&ada.json(&["findings", "--format", "json"], DONE)).len(), 2);
    assert_eq!(counted(&ada), (0, 0));
    // A gate about the same file does not fail because of them.
    ada.write("c.py", "def first(path):\n    return path\n");
    ada.commit("Begin another way");
    run(&ada, &["review", "--commit", "HEAD", "--wait", "--fail-on", "p3"], DONE);
    run(&ada, &["review", "--worktree", "--wait", "--fail-on", "p3"], DONE);
    assert_eq!(counted(&ada), (0, 0));
    // Where the code is, they count: the same change answers a request there.
    ada.git(&["reset", "-q", "--hard", "HEAD~1"]);
    ada.write("c.py", CHANGE);
    let reused = ada.json(&["review", "--worktree", "--wait", "--format", "json"], DONE);
    assert_eq!((reused["decision"]["action"].as_str(), ids(&reused)), (Some("reuse"), found));
    assert_eq!(counted(&ada), (2, 2));
}

#[test]
fn the_inode_of_a_large_file_stays_on_its_machine() {
    let team = Team::new();
    let ada = team.member("Ada");
    ada.settings("max_file_bytes = 1000\n");
    ada.write("c.py", CHANGE);
    ada.write("large.py", "x = 1\n".repeat(1_000));
    run(&ada, &["review", "--worktree", "--wait"], INCOMPLETE);
    let id = newest_run(&ada)["run_id"].as_str().expect("an id").parse().expect("an id");
    let output = ada.store().output(&id).expect("readable").expect("a result");
    let large = output.coverage.left_out.iter().find(|file| file.path == "large.py").expect("it was left out");
    assert!(large.inode.is_some());
    let shown = run(&ada, &["sync", "--dry-run", "--show"], DONE);
    assert!(shown.contains("large.py") && !shown.contains("inode"), "{shown}");
}
