//! Findings of a run that takes the result of another machine.

use serde_json::json;

use super::machines::{member_with_model, report};
use super::postgres_server::database;
use super::{ids, review, status};
use crate::env::{DONE, run};
use crate::llm::server::Model;

#[test]
fn findings_of_an_adopted_result_are_settled_like_those_of_a_reused_run() {
    let Some(database) = database() else { return };
    let model = Model::start(vec![report()]);
    let [ada, bob] = ["Ada", "Bob"].map(|person| member_with_model(&database, person, &model));
    let reviewed = review(&ada);
    let found = ids(&reviewed);
    // A review of other code has seen at Bob's that the code is gone; by now it is back.
    let gone = json!({
        "finding_id": found[0], "status": "obsolete", "previous": "open", "actor": "engine", "at": "2026-01-05T10:00:00Z",
        "reason": "its file is gone", "action": "set", "group": "g",
    });
    bob.store().append_dispositions(&[serde_json::from_value(gone).expect("a line")]).expect("stored");
    let adopted = review(&bob);
    assert_eq!((&adopted["run"]["run_id"], model.asked()), (&reviewed["run"]["run_id"], 1));
    assert_eq!(status(&bob, &found[0]), "open");
    let shown = run(&bob, &["show", &found[0]], DONE);
    assert!(shown.contains("its code is there again"), "{shown}");
}
