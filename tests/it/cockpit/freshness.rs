//! A worktree that is edited while the cockpit is open.

use super::{Cockpit, assert_silent, repository};

/// Waits until a run of the list is outdated, or none is, and something asks for a look again and again.
fn wait_for_outdated(cockpit: &mut Cockpit, asks: &str, is_outdated: bool) {
    let is_there = |screen: &str| screen.contains("obsolete") == is_outdated;
    for _ in 0..40 {
        cockpit.press(asks);
        let found = cockpit.look_for(std::time::Duration::from_millis(500), is_there);
        if found {
            return;
        }
    }
    cockpit.wait("the freshness of the run", is_there);
}

#[test]
fn a_key_or_the_focus_finds_out_that_the_code_has_changed_and_is_as_it_was_again() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    let screen = cockpit.wait("findings", |screen| screen.contains("3 open") && screen.contains("idle"));
    assert!(!screen.contains("obsolete"), "{screen}");
    cockpit.press("1");
    cockpit.wait_for("current");
    assert_silent(&cockpit);
    let code = std::fs::read_to_string(test.repo().join("job.py")).expect("the file");
    test.write("job.py", format!("{code}\n\ndef more():\n    return 1\n"));
    // Nobody uses the cockpit: it looks at nothing.
    assert_silent(&cockpit);
    wait_for_outdated(&mut cockpit, "1", true);
    cockpit.wait_for("the code has changed since");
    // Back at the terminal, without a key.
    test.write("job.py", &code);
    wait_for_outdated(&mut cockpit, "\x1b[I", false);
    test.write("new.py", "import os\n");
    wait_for_outdated(&mut cockpit, "\x1b[I", true);
    assert_silent(&cockpit);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    let received = cockpit.received.0.lock().expect("a lock");
    let switched = |sequence: &[u8]| received.bytes.windows(sequence.len()).filter(|part| *part == sequence).count();
    assert_eq!((switched(b"\x1b[?1004h"), switched(b"\x1b[?1004l")), (1, 1), "reports of the focus end");
}

#[test]
fn the_header_follows_the_branch_that_is_checked_out() {
    let test = repository();
    test.commit("Second");
    let cockpit = Cockpit::open(&test);
    cockpit.wait("the header", |screen| screen.contains("idle"));
    let is_named = |name: &'static str| {
        move |screen: &str| screen.lines().next().is_some_and(|header| header.contains(&format!("  {name} ")))
    };
    test.git(&["checkout", "-q", "-b", "topic"]);
    cockpit.wait("the new branch", is_named("topic"));
    test.git(&["checkout", "-q", "--detach"]);
    cockpit.wait("no branch", is_named("detached HEAD"));
    cockpit.quit();
}
