//! Decisions, and the ids that select findings for them.

use super::*;

#[test]
fn decisions_are_kept_taken_back_and_made_again() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let status = |id: &str| test.json(&["show", id, "--format", "json"], DONE)["finding"]["status"].clone();

    assert_snapshot!(test.fails(&["triage", &ids[0], "dismissed"], USAGE), @"
    error: a dismissal needs its reason
      hint: write --reason TEXT: it is kept, and the finding is not raised again
    ");
    assert_eq!(status(&ids[0]), "open");

    run(&test, &["triage", &ids[0], &ids[1], "addressed", "--reason", "rewritten"], DONE);
    assert_eq!((status(&ids[0]), status(&ids[1])), ("addressed".into(), "addressed".into()));
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "on purpose"], DONE);
    assert_eq!(status(&ids[0]), "dismissed");
    run(&test, &["undo"], DONE);
    assert_eq!(status(&ids[0]), "addressed");
    run(&test, &["undo"], DONE);
    assert_eq!((status(&ids[0]), status(&ids[1])), ("open".into(), "open".into()), "one command is one step");
    assert_eq!(run(&test, &["undo"], DONE), "nothing to take back\n");
    run(&test, &["undo", "--redo"], DONE);
    assert_eq!(status(&ids[1]), "addressed");
    run(&test, &["redo"], DONE);
    assert_eq!(status(&ids[0]), "dismissed");
    assert_eq!(run(&test, &["redo"], DONE), "nothing to make again\n");

    let shown = run(&test, &["show", &ids[0]], DONE);
    assert!(shown.contains("on purpose") && shown.contains("user redo addressed -> dismissed"), "{shown}");
}

#[test]
fn ids_may_be_shortened_as_long_as_they_are_clear() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let short = &ids[0][..8];
    assert!(run(&test, &["show", short], DONE).contains(&ids[0]));
    assert!(run(&test, &["show", &short[2..]], DONE).contains(&ids[0]), "without the f_");
    let output = test.revdeck(&["triage", "f_", "addressed"]);
    let error = err(&output);
    assert_eq!(output.status.code(), Some(USAGE), "{error}");
    assert!(ids.iter().all(|id| error.contains(id.as_str())), "{error}");

    let runs = test.json(&["runs", "--format", "json"], DONE);
    let id = list(&runs, "runs")[0]["run_id"].as_str().expect("an id").to_owned();
    assert!(run(&test, &["show", &id[..12].to_lowercase()], DONE).contains(&id));
    for unknown in ["ar_00000000000000000000000000", "f_0000000000000000", "ar_zzz", "nonsense", "", "../../etc"] {
        let error = test.fails(&["show", unknown], USAGE);
        assert!(error.starts_with("error: ") && error.contains("  hint: "), "{unknown:?}: {error}");
    }
    let error = err(&test.revdeck(&["show", "ar_zzz"]));
    assert_snapshot!(error.replace(&id, "[the run]"), @r#"
    error: there is no run "ar_zzz" in this repository
      hint: `revdeck runs` lists them; the newest: [the run]
    "#);
}
