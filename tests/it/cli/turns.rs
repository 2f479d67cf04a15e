//! Runs that talk to a model: how they are paused, and which of their reports were set aside.

use revdeck::domain::Time;

use super::*;
use crate::turns::{Fate, write};

#[test]
fn pause_and_resume_are_wishes_on_record() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("begin");
    let store = test.store();
    let working = write(&store, 1, Fate::Receiving, Time::now()).expect("a run");
    let paused = || store.run(&working.run).expect("read").expect("a run").paused;
    let before = store.run(&working.run).expect("read").expect("a run");
    let told = ["resume", "pause", "pause", "resume", "pause"].map(|command| {
        let said = test.output(&[command, "latest"], DONE);
        format!("{command}: {}, paused: {}", said.trim_end(), paused())
    });
    assert_snapshot!(told.join("\n"), @"
    resume: [run]  is not paused, paused: false
    pause: [run]  pauses: what is being answered still comes in, nothing more is asked, paused: true
    pause: [run]  is paused already, paused: true
    resume: [run]  goes on, paused: false
    pause: [run]  pauses: what is being answered still comes in, nothing more is asked, paused: true
    ");
    let after = store.run(&working.run).expect("read").expect("a run");
    assert_eq!((after.status, after.updated_at), (before.status, before.updated_at), "the run itself did nothing");
    assert_snapshot!(test.output(&["runs"], DONE), @"[run]  paused  current  [duration]  commit:HEAD  claude  1 p1 1 p2  14 files");
    let shown = test.output(&["show", "latest"], DONE);
    assert_snapshot!(shown.lines().next().unwrap_or_default(), @"[run]  paused");
    assert_eq!(test.json(&["show", "latest", "--format", "json"], DONE)["run"]["paused"], true);
    // The run ends while it is paused: the terminal status counts.
    store.update_run(&working.run, Time::now(), |run| run.status = RunStatus::Cancelled).expect("updated");
    let told = ["pause", "resume"].map(|command| test.output(&[command, "latest"], DONE));
    assert_snapshot!(told.concat(), @"
    [run]  has already ended
    [run]  has already ended
    ");
    assert_snapshot!(test.output(&["runs"], DONE), @"[run]  cancelled  current  [duration]  commit:HEAD  claude  1 p1 1 p2  14 files");
    assert_eq!(test.fails(&["pause", "ar_nothing"], USAGE).lines().count(), 2);
}

#[test]
fn a_reviewer_that_asks_no_model_cannot_pause() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("begin");
    let store = test.store();
    let working = write(&store, 1, Fate::Receiving, Time::now()).expect("a run");
    store.update_run(&working.run, Time::now(), |run| run.reviewed_by.name = "builtin".into()).expect("updated");
    assert_snapshot!(test.fails(&["pause", "latest"], USAGE), @"
    error: the run [run] cannot pause: its reviewer asks no model
      hint: `revdeck cancel [run]` ends it
    ");
    assert!(!store.run(&working.run).expect("read").expect("a run").paused);
}

#[test]
fn reports_that_were_set_aside_are_told_with_their_reasons() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("begin");
    let store = test.store();
    // A finished run has them in its output, an active run in its journal.
    for (number, fate, count) in [(1, Fate::Completed, 3), (2, Fate::Stalled, 1)] {
        let written = write(&store, number, fate, Time::now()).expect("a run");
        let id = written.run.as_str();
        let reason = "src/pool.rs:413-415  the pool is not closed when the last client goes: src/pool.rs has 388 lines";
        let counted = if count == 1 { "1 report set aside: it does not" } else { "3 reports set aside: they do not" };
        for command in ["show", "details"] {
            let text = run(&test, &[command, id], DONE);
            assert!(text.contains(counted) && text.contains(reason), "{command} {fate:?}: {text}");
            let object = test.json(&[command, id, "--format", "json"], DONE);
            let rejected = list(&object, "rejected");
            assert_eq!(rejected.len(), count, "{command} {fate:?}");
            has_keys(&rejected[0], &["report", "reason"]);
            has_keys(
                &rejected[0]["report"],
                &[
                    "path",
                    "line_start",
                    "line_end",
                    "kind",
                    "severity",
                    "priority",
                    "confidence",
                    "title",
                    "explanation",
                    "quoted_code",
                    "suggestion",
                    "replacement",
                    "replaced",
                ],
            );
        }
        // The output counts the entries that do not fit.
        let brief = run(&test, &["details", id, "--max-bytes", "900"], DONE);
        assert!(brief.len() <= 900 && brief.contains(counted), "{brief}");
        let brief = test.json(&["details", id, "--max-bytes", "1500", "--format", "json"], DONE);
        assert!(list(&brief, "rejected").is_empty() && brief["lists_left_out"] == true, "{brief}");
        let markdown = run(&test, &["show", id, "--format", "markdown"], DONE);
        assert!(markdown.contains(&format!("> {counted}")), "{markdown}");
    }
}
