//! What becomes of the findings when a run takes the result of another machine.

use serde_json::json;

use super::machines::machine;
use super::postgres_server::{OWNER, database};
use super::{ids, review, status};
use crate::env::{DONE, run};
use crate::llm::finish;
use crate::llm::server::{Model, calls};

#[test]
fn findings_of_an_adopted_result_are_settled_like_those_of_a_reused_run() {
    let Some(database) = database() else { return };
    let finding = json!({ "path": "b.py", "line_start": 4, "line_end": 4, "kind": "ERROR_HANDLING", "priority": 1,
        "confidence": 0.8, "title": "Every error is hidden", "explanation": "The bare except hides them all.",
        "quoted_code": "    except:" });
    let model = Model::start(vec![calls(&[("report_findings", json!({ "findings": [finding] })), finish()])]);
    let [ada, bob] = ["Ada", "Bob"].map(|person| {
        let machine = machine(person);
        let name = format!("{}-1", person.to_lowercase());
        run(&machine, &["team", "join", &database.address(OWNER), "--machine", &name], DONE);
        machine.settings(&format!(
            "default_reviewer = \"mine\"\n[reviewers.mine]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\n\
             base_url = \"{}\"\napi_key_cmd = \"printf made-up\"\nattempts = 1\n",
            model.url()
        ));
        machine
    });
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
