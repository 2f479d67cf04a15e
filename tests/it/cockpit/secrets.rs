//! Secrets in the code: masked on every page, and shown only while the user asks for it.

use super::Cockpit;
use crate::env::{DONE, TestEnvironment, run};

const TOKEN: &str = "ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX";
const OLD_TOKEN: &str = "ghp_Zt5Rw1pLm8Nk3Vb6Xc9Qs2Df4Gh7Jy0AeUoI";

/// Creates a reviewed repository in which one commit replaces a token by another.
fn leaky() -> TestEnvironment {
    let test = TestEnvironment::new();
    let code = |token: &str| {
        format!("import os\n\n\nTOKEN = \"{token}\"\n\n\ndef load(path, items=[]):\n    return items + [path]\n")
    };
    test.write("job.py", code(OLD_TOKEN));
    test.commit("First");
    let more = "\n\ndef save(path):\n    try:\n        return open(path)\n    except:\n        pass\n";
    test.write("job.py", code(TOKEN) + more);
    test.commit("Second");
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    test.settings("on_open = \"nothing\"\n");
    test
}

/// Panics if the terminal has ever received a part of a token, its first letters included.
fn assert_never_shown(cockpit: &Cockpit) {
    let received = cockpit.received.0.lock().expect("a lock");
    let bytes = String::from_utf8_lossy(&received.bytes);
    for token in [TOKEN, OLD_TOKEN] {
        for part in [&token[..8], &token[4..10], &token[20..28]] {
            assert!(!bytes.contains(part), "{part} was on the screen");
        }
    }
}

#[test]
fn secrets_are_masked_on_the_page_and_in_the_diff_until_the_user_asks() {
    let test = leaky();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("TOKEN = \"«secret:github_token»\"");
    cockpit.press("ll");
    cockpit.wait("the diff with both sides masked", |screen| screen.matches("«secret:github_token»").count() == 2);
    assert_never_shown(&cockpit);
    cockpit.press("~");
    let screen = cockpit.wait_for("secrets shown");
    assert!(screen.contains("~ masks them"), "{screen}");
    cockpit.wait("both tokens", |screen| screen.contains(TOKEN) && screen.contains(OLD_TOKEN));
    let is_masked = |screen: &str| {
        !screen.contains("secrets shown") && !screen.contains(TOKEN) && screen.contains("«secret:github_token»")
    };
    // The key again, another tab and help end it.
    cockpit.press("~");
    cockpit.wait("masked secrets", is_masked);
    for (leave, back) in [("h", "l"), ("?", "q")] {
        cockpit.press("~");
        cockpit.wait_for(TOKEN);
        cockpit.press(leave);
        cockpit.wait("no secret", |screen| !screen.contains(TOKEN));
        cockpit.press(back);
        cockpit.wait("masked secrets", is_masked);
    }
    // So does another finding.
    cockpit.press("2~");
    cockpit.wait_for(TOKEN);
    cockpit.press("j");
    cockpit.wait("no secret", |screen| !screen.contains(TOKEN) && !screen.contains("secrets shown"));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn nothing_that_is_kept_or_printed_has_a_part_of_a_secret() {
    let test = leaky();
    let mut said = String::new();
    for arguments in [
        &["findings", "--format", "json"][..],
        &["findings", "--format", "markdown"],
        &["show", "latest"],
        &["show", "latest", "--format", "json"],
        &["ledger"],
    ] {
        said += &run(&test, arguments, DONE);
    }
    for file in crate::env::files_below(&test.home()) {
        said += &String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default());
    }
    assert!(said.contains("GitHub token"), "the secret is reported");
    for token in [TOKEN, OLD_TOKEN] {
        for part in [&token[..8], &token[4..10], &token[20..28]] {
            assert!(!said.contains(part), "{part}");
        }
    }
}

/// Creates a repository on a branch and with a folder that are named after a token, and reviews its last commit.
fn with_keys_in_names() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("First");
    test.git(&["checkout", "-q", "-b", &format!("fix/{TOKEN}")]);
    let code = "def save(path):\n    try:\n        return open(path)\n    except:\n        pass\n";
    test.write(&format!("data/{TOKEN}/m.py"), code);
    test.commit("Second");
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    test.settings("on_open = \"nothing\"\n");
    test
}

#[test]
fn keys_in_the_names_of_branches_and_files_are_on_no_page() {
    const MASKED: &str = "«secret:github_token»";
    let test = with_keys_in_names();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("header, page and files", |screen| screen.matches(MASKED).count() >= 3);
    let steps = [
        ("ll", "the diff", "except:"),
        ("l", "the log", "covered"),
        ("hh1", "the page of the run", "branch"),
        ("3", "the page of the file", "hunk reviewed"),
        ("r", "the menu of reviews", "since it left its base"),
    ];
    for (keys, page, shown) in steps {
        cockpit.press(keys);
        cockpit.wait(page, |screen| screen.contains(shown) && screen.contains(MASKED));
    }
    cockpit.press("q");
    assert_never_shown(&cockpit);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn keys_in_the_names_of_branches_and_files_are_in_no_text() {
    let test = with_keys_in_names();
    let file = format!("data/{TOKEN}/m.py");
    for arguments in [
        &["status"][..],
        &[],
        &["doctor"],
        &["context", "--commit", "HEAD", "--explain"],
        &["tokens", &file],
        &["tokens", &file, "a.py"],
        &["runs"],
        &["findings"],
        &["show", "latest"],
    ] {
        let output = test.revdeck(arguments);
        let said = crate::env::out(&output) + &crate::env::err(&output);
        assert!(said.contains("«secret:github_token»") || arguments == ["runs"], "{arguments:?}: {said}");
        assert!(!said.contains(&TOKEN[4..]), "{arguments:?}: {said}");
    }
    // As the script for fish asks.
    // A completion that takes too long on a busy machine lists nothing.
    let listed = crate::runner::place::wait_for("a completion in time", || {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.env("REVDECK_COMPLETE", "fish").args(["--", "revdeck", "show", "f_"]).output();
        let listed = crate::env::out(&output.expect("revdeck starts"));
        (!listed.trim().is_empty()).then_some(listed)
    });
    assert!(listed.contains("«secret:github_token»") && !listed.contains(&TOKEN[4..]), "{listed}");
    // Not only the words of sections, also the reasons for them.
    let packed = test.json(&["context", "--commit", "HEAD", "--format", "json"], DONE);
    let sections = packed["sections"].as_array().expect("sections");
    assert!(sections.iter().all(|section| !section["reason"].to_string().contains(&TOKEN[4..])), "{packed}");
}
