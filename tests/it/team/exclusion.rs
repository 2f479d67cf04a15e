//! Records that `[team] exclude` holds back are sent when it is lifted, once.

use serde_json::json;

use super::{Team, ids, review, status, sync};
use crate::env::{DONE, INCOMPLETE, run};

const NOTHING: &str = r#"{"decisions":0,"reviews":0}"#;

#[test]
fn what_was_held_back_is_sent_once_when_the_exclusion_is_lifted() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    ada.settings("[team]\nexclude = [\"b.py\"]\n");
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    assert_eq!(sync(&ada)["sent"].to_string(), NOTHING);
    // A later decision moves the place from which the next exchange reads on.
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    assert_eq!(sync(&ada)["sent"].to_string(), NOTHING);
    assert_eq!(run(&ada, &["sync", "--dry-run", "--show"], DONE), "");

    ada.settings("");
    let shown = run(&ada, &["sync", "--dry-run", "--show"], DONE);
    assert_eq!(shown.lines().filter(|line| line.contains("\"type\":\"decision\"")).count(), 2, "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains("\"type\":\"review\"")).count(), 1, "{shown}");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 2, "reviews": 1}));
    assert_eq!(sync(&bob)["received"], json!({"decisions": 2, "reviews": 1}));
    assert_eq!((status(&bob, &found[0]), status(&bob, &found[1])), ("dismissed".into(), "addressed".into()));

    // Excluded and lifted again: it has left already.
    for settings in ["[team]\nexclude = [\"b.py\"]\n", "", "[team]\nexclude = [\"c.py\"]\n"] {
        ada.settings(settings);
        assert_eq!(sync(&ada)["sent"].to_string(), NOTHING, "{settings}");
    }
    assert_eq!(sync(&bob)["received"].to_string(), NOTHING);
}

#[test]
fn what_waited_for_the_remote_when_it_was_excluded_is_sent_when_that_is_lifted() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let found = ids(&review(&ada));
    sync(&ada);
    sync(&bob);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    let away = team.remote().with_extension("away");
    std::fs::rename(team.remote(), &away).expect("moved");
    ada.errors(&["sync"], INCOMPLETE);
    std::fs::rename(&away, team.remote()).expect("moved back");
    ada.settings("[team]\nexclude = [\"b.py\"]\n");
    assert_eq!(sync(&ada)["sent"].to_string(), NOTHING);
    ada.settings("");
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 0}));
    assert_eq!(sync(&ada)["sent"].to_string(), NOTHING);
    sync(&bob);
    assert_eq!(status(&bob, &found[0]), "dismissed");
    // All is sent again where the log has disappeared, and still each record once.
    team.git(&["update-ref", "-d", "refs/revdeck/team/ada-1"]);
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 1}));
    let everything = team.everything();
    assert_eq!(everything.lines().filter(|line| line.contains("\"type\":\"decision\"")).count(), 1);
}
