//! The mouse, themes and the plain screen in a real terminal.

use vt100::{MouseProtocolEncoding, MouseProtocolMode};

use super::{Cockpit, repository};
use crate::runner::place::wait_for;

/// Waits until the terminal reports the mouse, or does not.
fn wait_for_mouse(cockpit: &Cockpit, on: bool) {
    wait_for("the mode of the mouse", || {
        let received = cockpit.received.0.lock().expect("a lock");
        let screen = received.parser.screen();
        let is_on = screen.mouse_protocol_mode() == MouseProtocolMode::ButtonMotion
            && screen.mouse_protocol_encoding() == MouseProtocolEncoding::Sgr;
        (is_on == on && (on || screen.mouse_protocol_mode() == MouseProtocolMode::None)).then_some(())
    });
}

/// Clicks at the first place of a text.
fn click(cockpit: &mut Cockpit, text: &str) {
    let screen = cockpit.wait_for(text);
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect("it is there");
    let column = line[..line.find(text).expect("it is there")].chars().count();
    cockpit.press(&format!("\x1b[<0;{};{}M\x1b[<0;{0};{1}m", column + 2, row + 1));
}

#[test]
fn clicks_work_and_every_way_out_switches_the_mouse_off() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open_with(&test, &[("EDITOR", "sh -c 'echo in the editor; read line'")]);
    cockpit.wait_for("History");
    wait_for_mouse(&cockpit, true);
    click(&mut cockpit, "Ledger");
    cockpit.wait_for("next turn");
    cockpit.press("\x1bOQ");
    cockpit.wait_for("the mouse is off");
    wait_for_mouse(&cockpit, false);
    cockpit.press("\x1bOQ");
    cockpit.wait_for("the mouse is on");
    wait_for_mouse(&cockpit, true);
    cockpit.press("e");
    cockpit.wait_for("in the editor");
    wait_for_mouse(&cockpit, false);
    cockpit.press("\r");
    cockpit.wait_for("Ledger");
    wait_for_mouse(&cockpit, true);
    click(&mut cockpit, "q quit");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn a_theme_is_kept_only_when_the_user_says_so() {
    let test = repository();
    test.settings("# mine\ntheme = \"dark\"\n");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("completed");
    cockpit.press("\x1bOR");
    cockpit.wait_for("theme light; F4 keeps it");
    let file = test.home().join("config.toml");
    let settings = || std::fs::read_to_string(&file).expect("the settings");
    assert_eq!(settings(), "# mine\ntheme = \"dark\"\n");
    cockpit.press("\x1bOS");
    cockpit.wait_for("theme light is kept in");
    assert_eq!(settings(), "# mine\ntheme = \"light\"\n");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn a_plain_screen_has_sentences_and_the_cursor_on_the_selected_row() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open_told(&test, &["--plain"], &[]);
    let on_selected_row = |cockpit: &Cockpit| {
        wait_for("the cursor on the selected row", || {
            let received = cockpit.received.0.lock().expect("a lock");
            let screen = received.parser.screen();
            let (row, column) = screen.cursor_position();
            let line = screen.contents().lines().nth(usize::from(row)).unwrap_or_default().to_owned();
            (!screen.hide_cursor() && column == 1 && line.starts_with(" > P")).then_some(row)
        })
    };
    let screen =
        cockpit.wait("a sentence", |screen| screen.contains("job.py line ") && screen.contains("Findings, 1 of"));
    assert!(!screen.contains(['│', '─', '○']), "{screen}");
    let first = on_selected_row(&cockpit);
    let rows: Vec<String> = screen.lines().filter(|line| line.contains("job.py line ")).map(str::to_owned).collect();
    let before = cockpit.received.0.lock().expect("a lock").bytes.len();
    cockpit.press("j");
    cockpit.wait_for("Findings, 2 of");
    assert!(on_selected_row(&cockpit) > first, "the name of a group may stand between two rows");
    // A screen reader speaks what is written: the title, then both rows, each as a whole.
    let written = {
        let received = cockpit.received.0.lock().expect("a lock");
        String::from_utf8_lossy(&received.bytes[before..]).into_owned()
    };
    let sentence = |row: &str| row.trim_start_matches([' ', '>']).trim_end().to_owned();
    let mut from = 0;
    for text in ["Findings, 2 of", &sentence(&rows[0]), &format!("> {}", sentence(&rows[1]))] {
        let found = written[from..].find(text);
        from += found.unwrap_or_else(|| panic!("no {text:?} in {written:?}")) + text.len();
    }
    assert!(!written.contains(&sentence(&rows[2])), "a row that stays is silent: {written:?}");
    cockpit.press("r");
    cockpit.wait("a menu alone", |screen| screen.contains("Review") && !screen.contains("Findings, 2 of"));
    cockpit.press("q");
    cockpit.wait_for("Findings, 2 of");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}
