//! Trouble while the cockpit is open: a repository that is moved away, a disk that gets full. One line says it, and keys go on
//! working.

use std::fs;
use std::io::Write as _;

use super::{Cockpit, repository};
use crate::env::{DONE, TestEnvironment, run};
use crate::runner::place::wait_for;

/// Returns a repository with a finished review of three findings.
fn reviewed() -> TestEnvironment {
    let test = repository();
    run(&test, &["review", "--wait"], DONE);
    test
}

fn wait_for_findings(cockpit: &Cockpit) {
    cockpit.wait("findings", |screen| screen.contains("3 open") && screen.contains("idle"));
}

#[test]
fn a_repository_that_is_moved_away_is_one_line_until_it_is_back() {
    const LINE: &str = "the repository is gone: ";
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    wait_for_findings(&cockpit);
    let (place, away) = (test.repo(), test.repo().with_extension("away"));
    fs::rename(&place, &away).expect("renamed");
    cockpit.press("j");
    let screen = cockpit.wait_for(LINE);
    let lines: Vec<&str> = screen.lines().filter(|line| line.contains(LINE)).collect();
    assert!(matches!(lines.as_slice(), [line] if line.trim_end().ends_with("/repo")), "{screen}");
    // Keys go on working, and what needs the repository says so in one line.
    cockpit.press("d");
    cockpit.wait_for("The repository is gone: its code cannot be read.");
    cockpit.press("d");
    cockpit.press("a");
    cockpit.wait_for("addressed job.py:");
    cockpit.press("u");
    cockpit.wait_for("is open again");
    cockpit.press("k");
    cockpit.wait_for(LINE);
    fs::rename(&away, &place).expect("renamed");
    cockpit.wait("no line", |screen| !screen.contains(LINE));
    cockpit.press("d");
    cockpit.wait("the diff", |screen| screen.contains("+ def load(path, items=[]):"));
    cockpit.quit();
}

#[test]
fn a_repository_that_is_moved_or_deleted_is_announced_while_nobody_presses_a_key() {
    const LINE: &str = "the repository is gone: ";
    let test = reviewed();
    let cockpit = Cockpit::open(&test);
    wait_for_findings(&cockpit);
    let (place, away) = (test.repo(), test.repo().with_extension("away"));
    fs::rename(&place, &away).expect("renamed");
    cockpit.wait_for(LINE);
    fs::rename(&away, &place).expect("renamed");
    cockpit.wait("no line", |screen| !screen.contains(LINE));
    fs::remove_dir_all(&place).expect("removed");
    cockpit.wait_for(LINE);
    cockpit.quit();
}

#[test]
fn a_decision_made_just_before_the_end_is_stored() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    wait_for_findings(&cockpit);
    // Another process writes, so that the decision has to wait.
    let locked = test.store().with_lock(|_| {
        cockpit.press("aq");
        cockpit.assert_restored();
        Ok(())
    });
    locked.expect("the lock");
    assert_eq!(cockpit.end(), 0);
    let listed = test.json(&["findings", "--status", "addressed", "--format", "json"], DONE);
    assert_eq!(listed["findings"].as_array().map(Vec::len), Some(1), "{listed}");
}

/// Has a decision refused because the disk is full, and goes on. The cockpit says why in one message.
fn meet_full_disk(cockpit: &mut Cockpit) {
    wait_for_findings(cockpit);
    cockpit.press("a");
    let screen = cockpit.wait_for("not stored: ");
    assert_eq!(screen.matches("not stored: ").count(), 1, "{screen}");
    // The message has one line: it names the file without its folders.
    let line = screen.lines().find(|line| line.contains("not stored: ")).unwrap_or_default();
    let has_cause = ["no space left on device", "may not grow further"].iter().any(|cause| line.contains(cause));
    assert!(has_cause && !line.contains('/'), "{screen}");
    assert!(screen.contains("3 open"), "what is not stored is not shown: {screen}");
    // Nothing is frozen.
    cockpit.press("j");
    cockpit.wait("the next finding", |screen| screen.contains("2/3") && !screen.contains("not stored: "));
    cockpit.press("x");
    cockpit.wait_for("Why dismiss");
    cockpit.press("\x1b");
    cockpit.wait("the list", |screen| !screen.contains("Why dismiss"));
}

#[test]
fn a_decision_that_the_disk_has_no_room_for_is_a_message_and_nothing_is_frozen() {
    let test = reviewed();
    let found = test.json(&["findings", "--format", "json"], DONE);
    let finding = found["findings"][0]["finding_id"].as_str().expect("an id");
    let reason = "x".repeat(1_500);
    for _ in 0..3 {
        run(&test, &["triage", finding, "dismissed", "--reason", &reason], DONE);
        run(&test, &["undo"], DONE);
    }
    // The decisions are longer than files may become now.
    let mut cockpit = Cockpit::open_limited(&test, 4);
    meet_full_disk(&mut cockpit);
    cockpit.quit();
}

/// Needs the right to mount a file system; without it, nothing is tested here.
#[test]
fn a_full_disk_is_a_message_and_decisions_are_stored_again_when_it_has_room() {
    let test = repository();
    let home = test.home();
    let Some(_disk) = crate::disk::SmallDisk::mount(&home, 4 << 10) else { return };
    run(&test, &["review", "--wait"], DONE);
    let filler = home.join("filler");
    let mut file = fs::File::create(&filler).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    let mut cockpit = Cockpit::open(&test);
    meet_full_disk(&mut cockpit);
    drop(file);
    fs::remove_file(&filler).expect("removed");
    cockpit.press("a");
    wait_for("the decision", || {
        let addressed = test.json(&["findings", "--status", "addressed", "--format", "json"], DONE);
        (addressed["findings"].as_array()?.len() == 1).then_some(())
    });
    cockpit.quit();
}
