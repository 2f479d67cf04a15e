//! Tests the pages of a finished run under their tabs: the run, one of its files, its log.

use super::support::*;
use super::turns::sample::Fate;
use super::turns::{TurnsFixture, assert_fixture_looks};
use crate::tui::app::Pane;
use crate::tui::message::{DetailSubject, Tab};

#[test]
fn a_finished_run_and_its_log() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    for (name, keys, tab) in [("run_finished", "1 l", Tab::Page), ("run_log", "1 l l l l l", Tab::Log)] {
        assert_fixture_looks(name, &mut desk, |desk, columns, rows| {
            let mut app = desk.app(columns, rows);
            desk.press(&mut app, keys);
            assert_eq!((app.detail.tab, app.panes.focus), (tab, Pane::Detail), "{name}");
            let page = app.detail.page.as_ref().map(|(subject, tab, _)| (subject, *tab));
            assert_eq!(page, Some((&app.detail.subject, tab)), "{name}: {}", screen(&app));
            app
        });
    }
}

#[test]
fn a_file_of_a_run() {
    let mut desk = TurnsFixture::with_fates(&[Fate::Completed]);
    assert_fixture_looks("run_file", &mut desk, |desk, columns, rows| {
        let mut app = desk.app(columns, rows);
        desk.press(&mut app, "3 l");
        let page = app.detail.page.as_ref().map(|(subject, tab, _)| (subject, *tab));
        assert!(matches!(page, Some((DetailSubject::File { .. }, Tab::Page))), "{}", screen(&app));
        app
    });
}
