//! Findings on their way to coding assistants: the ledger page, which follows deliveries, and the copied prompt.

use crossterm::Command as _;
use crossterm::clipboard::CopyToClipboard;

use super::Cockpit;
use crate::env::{DONE, TestEnvironment, executable, long_function, run};
use crate::runner::place::wait_for;

/// Creates a repository with a reviewed p1 finding, where the cockpit starts nothing itself.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("base.txt", "base\n");
    test.commit("base");
    test.write("long.py", long_function("long"));
    run(&test, &["review", "--wait"], DONE);
    test.settings("on_open = \"nothing\"\n");
    test
}

#[test]
fn the_ledger_page_follows_what_other_processes_deliver() {
    let test = reviewed();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("long.py");
    cockpit.press("2L");
    let before = cockpit.wait_for("A new session");
    assert!(!before.contains("claude-code"), "{before}");
    run(&test, &["ledger", "--agent", "claude-code", "--session", "s1"], DONE);
    cockpit.wait("the delivery", |screen| screen.contains("claude-code"));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn what_is_said_about_a_copied_prompt_is_what_is_known() {
    let test = reviewed();
    let folder = test.home().join("programs");
    let copied = test.home().join("copied");
    executable(folder.join("wl-copy"), format!("#!/bin/sh\ncat > '{}'\n", copied.display()));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a PATH"));
    let mut cockpit = Cockpit::open_with(&test, &[("PATH", &path), ("WAYLAND_DISPLAY", "wayland-0")]);
    cockpit.wait_for("long.py");
    cockpit.press("2Y");
    cockpit.wait_for("copied the prompt with wl-copy");
    let prompt = std::fs::read_to_string(&copied).expect("a copy");
    assert!(prompt.contains("long.py:1") && prompt.contains("is 202 code lines long"), "{prompt}");
    assert_eq!(run(&test, &["findings", "--format", "prompt"], DONE), prompt);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    // Without a program the terminal gets the text, and nobody knows what it does with it.
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("long.py");
    cockpit.press("2Y");
    cockpit.wait_for("sent the prompt to the terminal, which may put it into the clipboard");
    let mut sent = String::new();
    CopyToClipboard::to_clipboard_from(&prompt).write_ansi(&mut sent).expect("a text");
    wait_for("the text for the terminal's clipboard", || {
        let received = cockpit.received.0.lock().expect("a lock");
        String::from_utf8_lossy(&received.bytes).contains(&sent).then_some(())
    });
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}
