//! Findings that came from another machine: a later review here judges them as its own.

use super::{Team, ids, review, status, sync};
use crate::env::DONE;
#[cfg(unix)]
use crate::env::TestEnvironment;

/// Lets a machine review with a program that reports one problem in line 2 of `c.py`, which quotes `code`.
#[cfg(unix)]
fn use_agent(machine: &TestEnvironment, code: &str) {
    let finding = serde_json::json!({
        "path": "c.py", "line_start": 2, "line_end": 2, "kind": "SECURITY", "severity": "high",
        "title": "path is read without a check", "explanation": "Any file can be read.", "quoted_code": code,
    });
    let answer = serde_json::json!({ "findings": [finding] });
    let script = machine.home().join("agent.sh");
    crate::env::executable(&script, format!("#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{answer}\nEND\n"));
    machine.settings(&format!("[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n", script.display()));
}

#[cfg(unix)]
fn review_with_agent(machine: &TestEnvironment) -> Vec<String> {
    let arguments = ["review", "--commit", "HEAD", "--reviewer", "agent", "--wait", "--format", "json"];
    ids(&machine.json(&arguments, DONE))
}

#[test]
fn a_finding_of_another_machine_is_addressed_by_a_fix_that_is_reviewed_here() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("open".into(), "open".into()));
    bob.write("b.py", super::CHANGE.replacen("except:", "except OSError:", 1));
    bob.commit("Name the exception");
    review(&bob);
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("addressed".into(), "open".into()));
    // Bob's machine has looked at the code; this is no decision that others receive.
    assert_eq!(sync(&bob)["sent"], serde_json::json!({"decisions": 0, "reviews": 1}));
}

#[cfg(unix)]
#[test]
fn a_report_about_edited_code_keeps_the_id_and_the_dismissal_of_another_machine() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    use_agent(&ada, "    return open(path)");
    use_agent(&bob, "    return open(path, \"rb\")");
    ada.write("c.py", "def load(path):\n    return open(path)\n");
    ada.commit("Load");
    ada.git(&["push", "-q", "origin", "main"]);
    let found = review_with_agent(&ada);
    assert_eq!(found.len(), 1);
    sync(&ada);
    bob.git(&["fetch", "-q"]);
    bob.git(&["reset", "-q", "--hard", "origin/main"]);
    sync(&bob);
    bob.write("c.py", "def load(path):\n    return open(path, \"rb\")\n");
    bob.commit("Read bytes");
    assert_eq!(review_with_agent(&bob), found, "one problem has one id");
    sync(&bob);
    crate::env::run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    sync(&bob);
    assert_eq!(status(&bob, &found[0]), "dismissed");
}
