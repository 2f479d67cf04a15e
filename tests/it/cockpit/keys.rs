//! Keys in a real terminal: sequences, palette, help, and commands of the user.

use super::{Cockpit, repository};

#[test]
fn an_interrupt_ends_a_program_and_at_the_question_behind_it_the_cockpit() {
    let test = repository();
    test.settings(
        "[commands.long]\nkey = \"Ctrl-o\"\nrun = [\"sh\", \"-c\", \"echo at work; exec sleep 600\"]\nwhere = \"terminal\"\n\
         [commands.short]\nkey = \"Ctrl-t\"\nrun = [\"true\"]\nwhere = \"terminal\"\n",
    );
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("findings", |screen| screen.contains("3 open") && screen.contains("idle"));
    cockpit.press("\x0f");
    cockpit.wait_for("at work");
    cockpit.press("\x03");
    cockpit.wait_for("Enter goes back to revdeck.");
    cockpit.press("\r");
    cockpit.wait("the panes", |screen| screen.contains("long: ended with") && screen.contains("1 Runs"));
    cockpit.press("\x14");
    cockpit.wait_for("short: done. Enter goes back to revdeck.");
    // Without Enter.
    cockpit.press("\x03");
    assert_eq!(cockpit.end(), 130);
    cockpit.assert_restored();
}

#[test]
fn a_command_of_the_user_gets_the_answers_to_its_questions_as_they_are() {
    let test = repository();
    test.settings(
        "[commands.ask]\nkey = \"Ctrl-t\"\nrun = [\"echo\", \"{reason}\", \"{kind_of}\", \"{id}\"]\n\
         prompts = [{ name = \"reason\", title = \"Why?\" }, { name = \"kind_of\", choices = [\"bug\", \"style\"] }]\n",
    );
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("findings", |screen| screen.contains("3 open") && screen.contains("idle"));
    cockpit.press("2\x14");
    cockpit.wait_for("Why?");
    cockpit.press("$(echo no) q\r");
    cockpit.wait_for("kind_of (2 of 2)");
    cockpit.press("2");
    cockpit.wait_for("ask: done: $(echo no) q style f_");
    // Nothing runs without an answer.
    cockpit.press("\x14");
    cockpit.wait_for("Why?");
    cockpit.press("\x1b");
    cockpit.wait_for("ask: nothing was run");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn palette_sequences_and_commands_of_the_user_work_in_a_terminal() {
    let test = repository();
    test.settings(
        "[commands.where]\nkey = \"g w\"\nrun = [\"echo\", \"it is\", \"{path}:{line}\"]\n\
         [commands.fails]\nkey = \"Ctrl-t\"\nrun = [\"echo oh $REVDECK_PATH >&2; exit 3\"]\nshell = true\n\
         [commands.page]\nkey = \"Ctrl-o\"\nrun = [\"sh\", \"-c\", \"echo in the terminal\"]\nwhere = \"terminal\"\n",
    );
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("findings", |screen| screen.contains("3 open") && screen.contains("idle"));
    cockpit.press("2]");
    cockpit.wait_for("t next tab");
    cockpit.press("x");
    cockpit.wait_for("] x is not bound");

    // `g` is a prefix now, because the user's key begins with it.
    cockpit.press("gw");
    cockpit.wait_for("where: done: it is job.py:");
    cockpit.press("\x14");
    cockpit.wait_for("fails: ended with exit status: 3: oh job.py");
    cockpit.press("\x0f");
    let screen = cockpit.wait_for("page: done. Enter goes back to revdeck.");
    assert!(screen.contains("in the terminal"), "its output can be read: {screen}");
    cockpit.press("\r");
    cockpit.wait("the panes", |screen| screen.contains("page: done") && screen.contains("1 Runs"));

    cockpit.press(":");
    cockpit.wait_for("Go to");
    // Enter right behind the text waits for its rows.
    cockpit.press("cost, outcomes\r");
    cockpit.wait("the statistics", |screen| screen.contains("Stats") && !screen.contains("Go to"));
    cockpit.press("?");
    cockpit.wait_for("Here: statistics");
    cockpit.press("glyph");
    cockpit.wait_for("finding: open");
    cockpit.press("\x1b");
    cockpit.wait_for("Here: statistics");
    cockpit.press("qq");
    cockpit.wait("the panes", |screen| !screen.contains("Here: statistics"));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}
