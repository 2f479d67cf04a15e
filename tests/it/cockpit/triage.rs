//! Triage mode in a real terminal, with real files and a real store.

use std::collections::BTreeMap;

use revdeck::domain::{FindingStatus, TriageAction};

use super::{Cockpit, assert_silent};
use crate::env::TestEnvironment;

/// Number of files, each with one finding.
const FILES: usize = 20;
const UNUSED: &str = "import sys\nimport os\n\n\ndef main():\n    return sys.argv\n";

/// Creates and reviews a repository with an unused import in each of its files.
pub fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("README.md", "# Sample\n");
    test.commit("First");
    for number in 0..FILES {
        test.write(&format!("part{number:02}.py"), UNUSED.replace("main", &format!("main_{number}")));
    }
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    test
}

fn unused_imports(test: &TestEnvironment) -> usize {
    let has_import = |number: &usize| {
        let text = std::fs::read_to_string(test.repo().join(format!("part{number:02}.py"))).expect("a file");
        text.contains("import os")
    };
    (0..FILES).filter(has_import).count()
}

/// Counts the findings by status, dismissed ones also by reason, as the store has them.
pub fn decisions(test: &TestEnvironment) -> BTreeMap<String, usize> {
    let store = test.store();
    let view = store.view().expect("a view");
    let mut counts = BTreeMap::new();
    for index in 0..view.finding_count() {
        let row = view.finding(index);
        let id = row.id.parse().expect("an id");
        let last = store.dispositions(&id).expect("decisions").pop();
        let key = match (row.status, last) {
            (FindingStatus::Dismissed, Some(last)) => format!("dismissed: {}", last.reason),
            (status, Some(last)) if last.action == TriageAction::Undo => format!("{status} again"),
            (status, _) => status.to_string(),
        };
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[test]
fn twenty_findings_are_decided_and_the_store_has_exactly_that() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle"));
    cockpit.press("gt");
    cockpit.wait_for("1 of 20");
    // Patches need the page of their finding; other verdicts need nothing.
    for place in 1..=3 {
        cockpit.wait("the patch", |screen| screen.contains(&format!("{place} of 20")) && screen.contains("suggested"));
        cockpit.press("\r");
    }
    cockpit.wait("the patches in the files", |screen| screen.contains("4 of 20") && screen.contains("addressed 3"));
    assert_eq!(unused_imports(&test), FILES - 3, "what the screen counts is written");
    cockpit.press("aaaa112234 aaaaa");
    cockpit.wait("the last one", |screen| screen.contains("20 of 20") && screen.contains("addressed 12"));
    cockpit.press("a");
    cockpit.wait_for("All 20 findings looked at");
    cockpit.wait_for("addressed 13");
    cockpit.press("u");
    cockpit.wait("the last one again", |screen| screen.contains("20 of 20") && screen.contains("addressed 12"));
    assert_silent(&cockpit);
    cockpit.press("\x1b");
    cockpit.wait_for("triage: 12 addressed, 6 dismissed, 1 later, 1 not decided");
    let expected = [
        ("addressed", 12),
        ("dismissed: false alarm", 2),
        ("dismissed: generated", 1),
        ("dismissed: intended", 1),
        ("dismissed: not worth it", 2),
        ("open", 1),
        ("open again", 1),
    ];
    assert_eq!(decisions(&test), expected.map(|(key, count)| (key.to_owned(), count)).into());
    assert_eq!(unused_imports(&test), FILES - 3);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn a_patch_is_applied_with_two_keys_and_taken_back_with_its_decision() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle"));
    cockpit.press("F");
    cockpit.wait("the patch", |screen| screen.contains("Apply to part") && screen.contains("- import os"));
    assert_eq!(unused_imports(&test), FILES, "it is only shown");
    cockpit.press("\r");
    cockpit.wait_for("applied: 1 file, +0 -1");
    assert_eq!(unused_imports(&test), FILES - 1);
    assert_eq!(decisions(&test).get("addressed"), Some(&1));
    cockpit.wait_for("19 open");
    // The same in triage mode, where `u` asks nothing.
    cockpit.press("t");
    cockpit.wait("the next finding", |screen| screen.contains("of 19") && screen.contains("suggested"));
    cockpit.press("\r");
    cockpit.wait_for("addressed 1");
    assert_eq!(unused_imports(&test), FILES - 2);
    cockpit.press("u");
    cockpit.wait("the import again", |screen| screen.contains("addressed 0") && screen.contains("· open ·"));
    assert_eq!(unused_imports(&test), FILES - 1);
    assert_eq!(decisions(&test).get("open again"), Some(&1));
    cockpit.press("\x1b");
    cockpit.wait_for("triage: ");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn a_snoozed_finding_and_a_note_reach_the_store_and_undo_takes_the_snooze_back() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle"));
    cockpit.press("gi");
    cockpit.wait_for("decides nothing");
    cockpit.press("ask Ann\r");
    cockpit.wait("its history", |screen| screen.contains("note by you: ask Ann"));
    cockpit.press("Z");
    cockpit.wait_for("3d, 2w, 2026-12-01");
    cockpit.press("\r");
    cockpit.wait_for("snoozed until ");
    let store = test.store();
    let snoozed = store.snoozes().expect("readable");
    assert_eq!(snoozed.len(), 1, "it is stored when the screen says so");
    let shown = test.revdeck(&["show", snoozed[0].finding_id.as_str()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("note by the user") && shown.contains("snoozed until "), "{shown}");
    assert_silent(&cockpit);
    cockpit.press("u");
    cockpit.wait_for("undone: ");
    assert_eq!(store.snoozes().expect("readable"), []);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}
