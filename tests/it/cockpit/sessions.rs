//! Whole sessions in a real terminal: many decisions and their undo, a run that is cancelled while it is watched, a storm
//! of sizes, and a cockpit that is killed and opened again.

use std::num::NonZero;

use portable_pty::PtySize;
use revdeck::domain::RunStatus;
use serde_json::json;

use super::triage::{decisions, reviewed};
use super::{COLUMNS, Cockpit, ROWS, repository};
use crate::env::TestEnvironment;
use crate::llm::server::{Model, calls, says};
use crate::runner::place::wait_for;

fn resize(cockpit: &Cockpit, columns: u16, rows: u16) {
    let cells = |count| NonZero::new(count).expect("not nothing");
    let mut received = cockpit.received.0.lock().expect("a lock");
    received.parser.set_size(cells(rows), cells(columns));
    let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
    cockpit.master.resize(size).expect("a new size");
}

#[test]
fn the_code_of_triage_mode_fills_a_large_screen() {
    let test = TestEnvironment::new();
    let lines = |numbers: std::ops::Range<u32>| -> String {
        numbers.map(|number| format!("line_{number:03} = value_{number:03}\n")).collect()
    };
    test.write("job.py", lines(0..100));
    test.commit("First");
    let load = "\n\ndef load(path):\n    try:\n        return open(path)\n    except:\n        return None\n\n\n";
    test.write("job.py", [&lines(0..50), load, &lines(50..100)].concat());
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    resize(&cockpit, 160, 60);
    cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle"));
    cockpit.press("2t");
    cockpit
        .wait("code around the change", |screen| screen.contains("1 of ") && screen.contains("line_066 = value_066"));
    cockpit.press("q");
    cockpit.quit();
}

fn assert_decisions(test: &TestEnvironment, expected: &[(&str, usize)]) {
    let expected = expected.iter().map(|(status, count)| ((*status).to_owned(), *count));
    assert_eq!(decisions(test), expected.collect());
}

#[test]
fn many_findings_are_dismissed_at_once_and_one_undo_takes_all_back() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the list", |screen| screen.contains("20 open") && screen.contains("idle"));
    cockpit.press("g");
    cockpit.press("v4j");
    cockpit.wait_for("5 marked");
    cockpit.press("x1");
    cockpit.wait("fifteen are left", |screen| screen.contains("15 open") && !screen.contains("marked"));
    assert_decisions(&test, &[("dismissed: not worth it", 5), ("open", 15)]);
    cockpit.press("u");
    cockpit.wait_for("20 open");
    assert_decisions(&test, &[("open", 15), ("open again", 5)]);
    cockpit.press("*");
    cockpit.wait_for("20 marked");
    cockpit.press("a");
    cockpit.wait_for("20 decided today");
    assert_decisions(&test, &[("addressed", 20)]);
    cockpit.press("u");
    cockpit.wait_for("20 open");
    assert_decisions(&test, &[("open again", 20)]);
    cockpit.press("\x12");
    cockpit.wait_for("20 decided today");
    assert_decisions(&test, &[("addressed", 20)]);
    cockpit.quit();
}

#[test]
fn a_run_is_watched_and_cancelled_and_keeps_what_it_found() {
    let test = repository();
    test.commit("Second");
    let report = json!({ "findings": [{ "path": "job.py", "line_start": 6, "line_end": 6, "kind": "CORRECTNESS",
        "priority": 1, "title": "items is shared", "explanation": "one list for all calls",
        "quoted_code": "def load(path, items=[]):" }] });
    let turns = vec![calls(&[("report_findings", report), ("show_diff", json!({}))]), says("never")];
    let model = Model::start(turns);
    model.hold_after(1);
    test.settings(&format!(
        "on_open = \"nothing\"\n[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = {:?}\n\
         api_key_cmd = \"printf sk-made-up\"\nattempts = 1\nprice_input = 2.0\nprice_output = 8.0\n",
        model.url()
    ));
    assert!(test.revdeck(&["review", "--reviewer", "m", "--commit", "HEAD"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    wait_for("the second request", || (model.asked() == 2).then_some(()));
    cockpit.press("1V");
    cockpit.wait("the run", |screen| screen.contains("turn 2 of 20") && screen.contains("items is shared"));
    cockpit.press("C");
    cockpit.wait_for("Cancel the review");
    cockpit.press("y");
    cockpit.wait_for("cancelled; what it found stays");
    cockpit.press("\x1b");
    cockpit.wait("the panes", |screen| screen.contains("1 Runs") && screen.contains("items is shared"));
    let view = test.store().view().expect("a view");
    assert_eq!(view.run(0).status, RunStatus::Cancelled);
    let titles: Vec<&str> = (0..view.finding_count()).map(|index| view.finding(index).title).collect();
    assert!(titles.contains(&"items is shared"), "{titles:?}");
    model.let_go();
    cockpit.quit();
}

#[test]
fn a_storm_of_sizes_leaves_a_whole_screen() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    let trimmed = |screen: &str| screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let before = trimmed(&cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle")));
    let mut number = 7_u32;
    for step in 0..300 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (columns, rows) = (20 + (number >> 8) % 481, 5 + (number >> 20) % 146);
        resize(&cockpit, columns as u16, rows as u16);
        if step % 10 == 0 {
            cockpit.press(["j", "k", "G", "g"][step / 10 % 4]);
        }
    }
    for (columns, rows) in [(20, 5), (500, 150), (80, 24)] {
        resize(&cockpit, columns, rows);
        let last = |screen: &str| screen.lines().last().unwrap_or_default().to_owned();
        let shown = cockpit.wait("help and quit", |screen| {
            last(screen).contains("? help")
                && last(screen).contains("q quit")
                && screen.lines().count() == rows as usize
        });
        assert!(shown.lines().all(|line| line.chars().count() <= columns as usize), "{shown}");
    }
    resize(&cockpit, COLUMNS, ROWS);
    cockpit.press("2g");
    cockpit.wait("the screen of before", |screen| trimmed(screen) == before);
    cockpit.quit();
}

#[test]
fn a_killed_cockpit_loses_no_decision_and_stops_no_run() {
    let test = repository();
    test.commit("Second");
    let model = Model::start(vec![says("```json\n{\"findings\": []}\n```"); 3]);
    model.hold_after(0);
    test.settings(&format!(
        "[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = {:?}\napi_key_cmd = \"printf sk-made-up\"\n",
        model.url()
    ));
    let mut cockpit = Cockpit::open(&test);
    // The page of the run may show its findings before the list has them.
    cockpit.wait("the list", |screen| screen.contains("3 open"));
    assert!(test.revdeck(&["review", "--reviewer", "m", "--commit", "HEAD"]).status.success());
    cockpit.wait("the run of the model", |screen| screen.contains("m on ") && screen.contains("reviewing"));
    cockpit.press("2gx");
    cockpit.wait_for("Why dismiss");
    cockpit.press("2");
    cockpit.wait_for("dismissed job.py:");
    cockpit.signal("KILL");
    cockpit.child.wait().expect("it ends");
    let decided = decisions(&test);
    assert_eq!(decided.get("dismissed: false alarm"), Some(&1), "{decided:?}");

    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the run and the decision", |screen| {
        screen.contains("2 open") && screen.contains("m on ") && screen.contains("reviewing")
    });
    assert_eq!(decisions(&test), decided);
    model.let_go();
    cockpit.wait_for("idle");
    assert_eq!(model.asked(), 1, "the request was not sent twice");
    cockpit.wait_for("1 decided today");
    cockpit.press("u");
    cockpit.wait_for("3 open");
    cockpit.quit();
}
