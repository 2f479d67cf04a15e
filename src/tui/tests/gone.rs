//! Tests what the cockpit shows while the repository is not at its place.

use super::support::*;
use crate::tui::app::App;
use crate::tui::glyphs;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};

const ROOT: &str = "/work/projects/of/a/customer/with/a/long/name/billing-service";

fn gone(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    let subject = DetailSubject::Finding(finding_id(1));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(1, 3) });
    send(&mut app, AppMessage::RepositoryGone(Some(ROOT.to_owned())));
    app
}

/// Returns the lines that name the repository.
fn lines(app: &App) -> Vec<String> {
    screen(app)
        .lines()
        .filter(|line| line.contains("the repository is gone: "))
        .map(|line| line.trim().into())
        .collect()
}

#[test]
fn one_line_names_the_repository_with_both_ends_of_its_path() {
    for (columns, rows, is_plain, expected) in [
        (160, 48, false, "! the repository is gone: /work/projects/of/a/customer/with/a/long/name/billing-service"),
        (60, 16, false, "! the repository is gone: /work/…/name/billing-service"),
        (60, 8, false, "! the repository is gone: /work/…/name/billing-service"),
        (160, 48, true, "Error: the repository is gone: /work/projects/of/a/customer/with/a/long/name/billing-service"),
        (60, 16, true, "Error: the repository is gone: /work/~/billing-service"),
    ] {
        let mut app = gone(columns, rows);
        if is_plain {
            (app.display.plain, app.display.glyphs) = (true, glyphs::PLAIN);
        }
        assert_eq!(lines(&app), [expected], "{columns}x{rows}: {}", screen(&app));
    }
}

#[test]
fn a_key_in_the_path_is_masked_before_the_path_is_cut() {
    let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
    for (columns, is_plain) in (60..=110).flat_map(|columns| [(columns, false), (columns, true)]) {
        let mut app = gone(columns, 24);
        if is_plain {
            (app.display.plain, app.display.glyphs) = (true, glyphs::PLAIN);
        }
        let root = format!("/work/projects/of/a/customer/{key}/billing-service");
        send(&mut app, AppMessage::RepositoryGone(Some(root)));
        let shown = lines(&app);
        assert_eq!(shown.len(), 1, "{columns} {is_plain}: {}", screen(&app));
        let has_part = (0..=key.len() - 6).any(|at| shown[0].contains(&key[at..at + 6]));
        assert!(!has_part && shown[0].ends_with("billing-service"), "{columns} {is_plain}: {shown:?}");
    }
}

#[test]
fn a_look_for_changes_that_failed_because_of_it_does_not_hide_the_line() {
    let mut app = gone(160, 48);
    let outcome = Err(format!("cannot read {ROOT}/: No such file or directory"));
    send(&mut app, AppMessage::Opened { outcome, terms: None });
    assert_eq!(lines(&app).len(), 1, "{}", screen(&app));
}

#[test]
fn the_line_stays_under_keys_and_messages_until_the_repository_is_back() {
    let mut app = gone(160, 48);
    press(&mut app, "j k l h");
    assert_eq!(lines(&app).len(), 1, "{}", screen(&app));
    press(&mut app, "T");
    assert!(screen(&app).contains("revdeck team join"), "{}", screen(&app));
    press(&mut app, "k");
    assert_eq!(lines(&app).len(), 1, "{}", screen(&app));
    // A page that was requested meanwhile arrives.
    if let Some((subject, tab)) = app.detail.loading.clone() {
        send(&mut app, AppMessage::Loaded { subject, tab, loaded: page(1, 3) });
    }
    let commands = send(&mut app, AppMessage::RepositoryGone(None));
    assert!(lines(&app).is_empty(), "{}", screen(&app));
    let is_read_again = commands.iter().any(|command| matches!(command, AppCommand::Load { .. }));
    assert!(is_read_again, "what could not be read is read again: {commands:?}");
}
