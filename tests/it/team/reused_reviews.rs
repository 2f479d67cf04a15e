//! A review of another machine that answers a request here settles the findings of this machine, as an own review would.

use serde_json::json;

use super::{CHANGE, Team, ids, review, status, sync};
use crate::env::{DONE, run};

#[test]
fn a_reused_review_settles_what_this_machine_has_found_before() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    // The finding is Bob's own: Ada has not reviewed this commit.
    let found = ids(&review(&bob));
    assert_eq!(found.len(), 2);
    ada.write("b.py", CHANGE.replacen("except:", "except OSError:", 1));
    ada.commit("Name the exception");
    ada.git(&["push", "-q", "origin", "HEAD:main"]);
    let reviewed = review(&ada);
    sync(&ada);
    bob.git(&["fetch", "-q", "origin"]);
    bob.git(&["reset", "-q", "--hard", "origin/main"]);
    sync(&bob);
    assert_eq!(status(&bob, &found[0]), "open", "nobody has asked for a review of this commit here");

    let reused = review(&bob);
    assert_eq!(reused["decision"]["action"], "reuse");
    assert_eq!(reused["run"]["run_id"], reviewed["run"]["run_id"]);
    assert_eq!(ids(&reused), Vec::<String>::new());
    // The gate, the finding, the lists and the ledger say the same.
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("addressed".into(), "open".into()));
    assert_eq!(ids(&bob.json(&["findings", "--format", "json"], DONE)), [found[1].clone()]);
    let undecided = bob.json(&["status", "--format", "json"], DONE)["undecided"].clone();
    let counts = undecided.as_object().expect("counts").values().filter_map(serde_json::Value::as_u64);
    assert_eq!(counts.sum::<u64>(), 1, "{undecided}");
    assert!(!run(&bob, &["ledger", "--format", "text"], DONE).contains(&found[0]));
    let shown = run(&bob, &["show", &found[0]], DONE);
    assert!(shown.contains("confirmed by run"), "{shown}");
    // What the review has shown here is no decision that others receive.
    assert_eq!(sync(&bob)["sent"]["decisions"], json!(0));
}
