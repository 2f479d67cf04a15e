//! Logs that somebody else than their owner has moved, replaced or extended.

use serde_json::json;

use super::hostile::push_log;
use super::{Team, ids, review, status, sync};
use crate::env::{DONE, run};

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
