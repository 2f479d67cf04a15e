//! Key sequences: the waiting first key, its hints, and the ways in which a sequence ends.

use super::support::{app, finding_id, many, press, screen, send, showing, view};
use crate::config::{KeyPreset, KeymapFile, embedded_keymaps};
use crate::tui::app::App;
use crate::tui::input::TerminalInput;
use crate::tui::keymap::Keymap;
use crate::tui::message::{AppMessage, Tab};
use crate::tui::views::fix::FixPlan;

fn last_lines(app: &App, count: usize) -> String {
    let screen = screen(app);
    let lines: Vec<&str> = screen.lines().collect();
    lines[lines.len() - count..].join("\n")
}

/// Lays keys of the user over the preset.
fn bind(app: &mut App, text: &str) {
    let mut files = embedded_keymaps(KeyPreset::Vim);
    files.push(KeymapFile { name: "keymap.toml".to_owned(), text: text.to_owned().into() });
    app.keymap = Keymap::from_layers(&files, &[]).0;
}

#[test]
fn a_prefix_shows_the_keys_that_follow_and_waits_without_a_clock() {
    let mut app = showing(100, 30, view());
    press(&mut app, "]");
    assert!(!app.has_running_clock());
    let last = last_lines(&app, 1);
    assert!(last.starts_with(" ]   "), "{last}");
    assert!(last.contains("t next tab"), "{last}");
    press(&mut app, "t");
    assert_eq!(app.detail.tab, Tab::Diff);
    assert_eq!((app.pending_keys, app.notice), (None, None));
}

#[test]
fn esc_and_unknown_keys_end_a_sequence_and_do_nothing_else() {
    let mut app = showing(100, 30, view());
    for (keys, said) in
        [("] Esc", None), ("] q", Some("] q is not bound")), ("[ Ctrl-x", Some("[ Ctrl-x is not bound"))]
    {
        let (tab, selected) = (app.detail.tab, app.finding_list.cursor.selected);
        assert_eq!(press(&mut app, keys).len(), 0, "{keys}");
        assert_eq!(app.pending_keys, None, "{keys}");
        assert_eq!(app.current_notice().map(|(_, text)| text).as_deref(), said, "{keys}");
        assert_eq!((app.detail.tab, app.finding_list.cursor.selected), (tab, selected), "{keys}");
    }
    press(&mut app, "j");
    assert_eq!(app.finding_list.cursor.selected, 1, "the next key is a new one");
}

#[test]
fn a_sequence_ends_when_a_view_opens() {
    let mut app = showing(100, 30, view());
    press(&mut app, "]");
    let finding = finding_id(1).parse().unwrap_or_else(|error| panic!("{error:?}"));
    let plan = FixPlan { findings: vec![finding], reviewer: "claude".to_owned(), patch_reviewer: "claude".to_owned() };
    send(&mut app, AppMessage::FixPlanned(Ok(plan)));
    assert!(app.views.has_window());
    assert_eq!(app.pending_keys, None);
    press(&mut app, "t");
    assert_eq!(app.detail.tab, Tab::Page);
}

#[test]
fn a_number_before_a_sequence_counts() {
    let mut app = showing(100, 30, many(40));
    bind(&mut app, "[global]\n'] j' = 'down'\n");
    press(&mut app, "1 2 ]");
    assert!(!app.has_running_clock(), "the number waits with the prefix");
    press(&mut app, "j");
    assert_eq!(app.finding_list.cursor.selected, 12);
}

#[test]
fn many_hints_take_as_many_lines_as_they_need() {
    let mut app = app(80, 24);
    let keys: String = ('A'..='Z').map(|c| format!("'] {c}' = 'copy_prompt'\n")).collect();
    bind(&mut app, &format!("[global]\n']' = false\n{keys}"));
    press(&mut app, "]");
    insta::assert_snapshot!(last_lines(&app, 6));
    send(&mut app, AppMessage::Input(TerminalInput::Paste("x".into())));
    press(&mut app, "Esc");
    assert_eq!(app.sequence_hints().len(), 0);
}
