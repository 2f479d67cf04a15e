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

    let shown = test.output(&["show", &ids[0]], DONE);
    assert_snapshot!(lines_with(&shown, |line| line.starts_with("[duration] ago")), @"
    [duration] ago  user set open -> addressed: rewritten
    [duration] ago  user set addressed -> dismissed: on purpose
    [duration] ago  user undo dismissed -> addressed: rewritten
    [duration] ago  user undo addressed -> open
    [duration] ago  user redo open -> addressed: rewritten
    [duration] ago  user redo addressed -> dismissed: on purpose
    ");
}

#[test]
fn ids_may_be_shortened_as_long_as_they_are_clear() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let shown = |id: &str, key: &str, field: &str| {
        test.json(&["show", id, "--format", "json"], DONE)[key][field].as_str().map(str::to_owned)
    };
    let short = &ids[0][..8];
    assert_eq!(shown(short, "finding", "finding_id").as_ref(), Some(&ids[0]));
    assert_eq!(shown(&short[2..], "finding", "finding_id").as_ref(), Some(&ids[0]), "without the f_");
    let output = test.revdeck(&["triage", "f_", "addressed"]);
    assert_eq!((output.status.code(), out(&output)), (Some(USAGE), String::new()));
    let error = err(&output).replace(&ids[0], "[long]").replace(&ids[1], "[wide]");
    assert_snapshot!(error, @r#"
    error: "f_" is the beginning of several finding ids:
      [long]
      [wide]
      hint: write more of it
    "#);

    let runs = test.json(&["runs", "--format", "json"], DONE);
    let id = list(&runs, "runs")[0]["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(shown(&id[..12].to_lowercase(), "run", "run_id").as_ref(), Some(&id));
    let errors =
        ["ar_00000000000000000000000000", "f_0000000000000000", "ar_zzz", "nonsense", "", "../../etc"].map(|unknown| {
            let output = test.revdeck(&["show", unknown]);
            assert_eq!((output.status.code(), out(&output)), (Some(USAGE), String::new()), "{unknown:?}");
            err(&output).replace(&id, "[the run]").replace(&ids[0], "[long]").replace(&ids[1], "[wide]")
        });
    assert_snapshot!(errors.concat(), @r#"
    error: there is no run "ar_00000000000000000000000000" in this repository
      hint: `revdeck runs` lists them; the newest: [the run]
    error: there is no finding "f_0000000000000000" in this repository
      hint: `revdeck findings` lists them; the newest: [long], [wide]
    error: there is no run "ar_zzz" in this repository
      hint: `revdeck runs` lists them; the newest: [the run]
    error: there is no run and no finding "nonsense"
      hint: `revdeck runs` lists them; the newest: [the run]
    error: there is no run and no finding ""
      hint: write more of it
    error: there is no run and no finding "../../etc"
      hint: `revdeck runs` lists them; the newest: [the run]
    "#);
}

/// Returns the ids of the listed findings.
fn listed(test: &TestEnvironment, arguments: &[&str]) -> Vec<String> {
    let value = test.json(&[&["findings", "--format", "json"], arguments].concat(), DONE);
    list(&value, "findings").iter().map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_snoozed_finding_is_out_of_the_list_and_the_ledger_until_it_comes_back() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let ledger = || run(&test, &["ledger"], DONE);
    let waiting = |command: &str| {
        let state = test.json(&[command, "--format", "json"], DONE);
        let counts = if command == "status" { &state["undecided"] } else { &state["repos"][0]["undecided"] };
        ["p0", "p1", "p2", "p3"].iter().filter_map(|priority| counts[priority].as_u64()).sum::<u64>()
    };
    assert!(ledger().contains(&ids[0]));
    assert_eq!((waiting("status"), waiting("repos")), (2, 2));
    assert_snapshot!(test.output(&["triage", &ids[0], "snoozed", "--until", "change"], DONE), @"f_[id]  snoozed until long.py changes");
    assert_eq!(listed(&test, &[]), ids[1..]);
    assert_eq!(listed(&test, &["--status", "snoozed"]), ids[..1]);
    assert_eq!(listed(&test, &["--status", "open"]).len(), 2, "it is open, and who asks for that gets it");
    assert!(!ledger().contains(&ids[0]), "{}", ledger());
    let output = test.revdeck(&["findings"]);
    assert_snapshot!(err(&output), @"note: 1 finding snoozed; --status snoozed lists them");
    let counted = test.json(&["findings", "--format", "json"], DONE);
    assert_eq!(counted["snoozed"], 1);
    assert_eq!((waiting("status"), waiting("repos")), (1, 2), "other repositories' files are not read");
    // The status is what it was, and a dismissal needs no second look.
    assert_eq!(test.json(&["show", &ids[0], "--format", "json"], DONE)["finding"]["status"], "open");
    let shown = test.output(&["show", &ids[0]], DONE);
    assert_snapshot!(lines_with(&shown, |line| line.starts_with("snoozed")), @"snoozed until long.py changes, by the user [duration] ago");
    run(&test, &["undo"], DONE);
    assert_eq!(listed(&test, &[]), ids);
    run(&test, &["redo"], DONE);
    assert_eq!(listed(&test, &[]), ids[1..]);
    test.write("long.py", long_function("longer"));
    assert_eq!(listed(&test, &[]), ids, "its file has changed");
    test.write("long.py", long_function("long"));
    run(&test, &["triage", &ids[0], "snoozed", "--until", "off"], DONE);
    assert_eq!(listed(&test, &[]), ids);
    run(&test, &["triage", &ids[0], &ids[1], "snoozed", "--until", "3d"], DONE);
    assert_eq!(listed(&test, &[]), Vec::<String>::new());
    assert_eq!(ledger().matches("<finding ").count(), 0, "{}", ledger());
    assert_eq!((waiting("status"), waiting("repos")), (0, 0));
    run(&test, &["undo"], DONE);
    assert_eq!(listed(&test, &[]), ids, "one command is one step");
}

#[test]
fn a_rating_holds_everywhere_also_after_the_next_report_until_it_is_taken_back() {
    let test = reviewed();
    let ids = finding_ids(&test);
    let first = |test: &TestEnvironment| {
        let found = test.json(&["findings", "--format", "json"], DONE);
        let found = list(&found, "findings").iter().find(|finding| finding["finding_id"] == *ids[0]).cloned();
        let found = found.expect("the finding");
        format!("p{} {}", found["priority"], found["kind"].as_str().expect("a kind"))
    };
    assert_eq!(first(&test), "p1 LONG_METHOD");
    let rate = |rating: &str| test.output(&["triage", &ids[0], "rated", "--as", rating], DONE);
    assert_snapshot!(rate("p3"), @"f_[id]  as reported -> p3");
    assert_snapshot!(rate("god_class"), @"f_[id]  p3 -> p3 GOD_CLASS");
    assert_eq!(first(&test), "p3 GOD_CLASS");
    // A checkpoint, a gate, the ledger and a later report.
    test.store().checkpoint_now().expect("a checkpoint");
    assert_eq!(test.json(&["status", "--format", "json"], DONE)["undecided"]["p1"], 0);
    assert!(!run(&test, &["ledger"], DONE).contains(&ids[0]));
    run(&test, &["review", "--wait", "--force"], DONE);
    assert_eq!(first(&test), "p3 GOD_CLASS");
    let shown = test.json(&["show", &ids[0], "--format", "json"], DONE);
    assert_eq!((&shown["finding"]["priority"], shown["ratings"].as_array().map(Vec::len)), (&3.into(), Some(2)));
    let text = test.output(&["show", &ids[0]], DONE);
    assert_snapshot!(lines_with(&text, |line| line.starts_with("rated")), @r"
    rated p3, before as reported, by the user [duration] ago
    rated p3 GOD_CLASS, before p3, by the user [duration] ago
    ");
    assert_snapshot!(test.output(&["undo"], DONE), @"f_[id]  p3 GOD_CLASS -> p3");
    assert_snapshot!(test.output(&["undo"], DONE), @"f_[id]  p3 -> as reported");
    assert_eq!(first(&test), "p1 LONG_METHOD");
    run(&test, &["redo"], DONE);
    assert_eq!(first(&test), "p3 LONG_METHOD");
    assert_snapshot!(rate("reported"), @"f_[id]  p3 -> as reported");
    assert_eq!(first(&test), "p1 LONG_METHOD");
    assert!(test.store().verify().expect("verified").is_clean());
}

#[test]
fn a_rating_that_means_nothing_is_refused() {
    let test = reviewed();
    let ids = finding_ids(&test);
    for (arguments, said) in [
        (&["triage", &ids[0], "rated"][..], "a rating needs its value"),
        (&["triage", &ids[0], "rated", "--as", "p7"], "\"p7\" is neither a priority nor a kind"),
        (&["triage", &ids[0], "rated", "--as", "p1", "--until", "3d"], "only a snooze has an end"),
        (&["triage", &ids[0], "open", "--as", "p1"], "only a rating has --as"),
        (&["triage", &ids[0], "rated", "--as", "p1", "--reason", "x"], "a rating has no reason"),
    ] {
        let error = test.fails(arguments, USAGE);
        assert!(error.contains(said), "{error}");
    }
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["triage", &ids[0], "rated", "--as", "p3"]).env("REVDECK_ACTOR", "assistant");
    let refused = err(&command.output().expect("it runs"));
    assert!(refused.contains("only the user changes the priority or kind of a finding"), "{refused}");
}

#[test]
fn a_snooze_that_means_nothing_is_refused() {
    let test = reviewed();
    let ids = finding_ids(&test);
    assert_snapshot!(test.fails(&["triage", &ids[0], "snoozed"], USAGE), @"
    error: a snooze needs its end
      hint: write --until [duration], --until 2026-12-01 or --until change
    ");
    assert_snapshot!(test.fails(&["triage", &ids[0], "snoozed", "--until", "soon"], USAGE), @r#"error: "soon" is no time; write [duration], 2w, [duration], 2026-12-01, change (until the file changes) or off"#);
    assert_snapshot!(test.fails(&["triage", &ids[0], "snoozed", "--until", "2020-01-01"], USAGE), @"error: f_[id] cannot be snoozed: that time is over");
    assert_snapshot!(test.fails(&["triage", &ids[0], "open", "--until", "3d"], USAGE), @"
    error: only a snooze has an end
      hint: write snoozed --until WHEN
    ");
    run(&test, &["triage", &ids[0], "addressed"], DONE);
    assert_snapshot!(test.fails(&["triage", &ids[0], "snoozed", "--until", "3d"], USAGE), @"error: f_[id] cannot be snoozed: it is addressed already");
    assert_eq!(test.store().snooze_log().expect("readable"), []);
}
