//! Shows the secrets of one page for as long as the user looks at it.
//!
//! - Pages are masked when they are read. A page with its secrets is read apart, and is dropped as soon as the user
//!   hides it, moves the selection, changes the tab or opens another view.

use super::super::app::{App, NoticeLevel};
use super::super::doc::Doc;
use super::super::keymap::Action;
use super::super::message::{DetailSubject, Tab};

/// Shows the secrets of the page, or masks them again. On a terminal that reports released keys, they are shown for as
/// long as the key is held.
pub fn toggle(app: &mut App) {
    if app.detail.revealed.is_some() && app.display.reports_releases {
        // The held key repeats itself.
        return;
    }
    if app.detail.revealed.is_some() {
        hide(app);
        app.show_notice(NoticeLevel::Info, "secrets are masked");
        return;
    }
    let can_hold_code = matches!(
        (app.detail.tab, &app.detail.subject),
        (Tab::Page | Tab::Fix, DetailSubject::Finding(_))
            | (Tab::Diff, DetailSubject::Finding(_) | DetailSubject::Run(_) | DetailSubject::File { .. })
    );
    if !can_hold_code {
        return app.show_notice(NoticeLevel::Info, "this page shows no code");
    }
    app.detail.revealed = Some((app.detail.subject.clone(), app.detail.tab));
    // A masked page that is on its way will not be shown.
    (app.detail.stale, app.detail.loading) = (true, None);
    let key = app.keymap.key_text(app.key_context(), Action::Reveal);
    let end = match app.display.reports_releases {
        true => format!("secrets are shown while {key} is held"),
        false => format!("secrets are shown until you move on; {key} masks them"),
    };
    app.show_notice(NoticeLevel::Info, end);
}

/// Masks the secrets when a key is released: the protocol names the released key by its place on the keyboard, so that
/// the one with `~` is not known, and to mask too early does no harm.
pub fn release(app: &mut App) {
    if app.detail.revealed.is_some() && app.display.reports_releases {
        app.notice = None;
        hide(app);
    }
}

/// Drops the page with its secrets if the user no longer looks at it.
pub fn hide_if_left(app: &mut App) {
    let is_left = |(subject, tab): &(DetailSubject, Tab)| {
        *subject != app.detail.subject || *tab != app.detail.tab || !app.views.is_empty()
    };
    if app.detail.revealed.as_ref().is_some_and(is_left) {
        hide(app);
    }
}

fn hide(app: &mut App) {
    app.detail.revealed = None;
    app.detail.page = None;
    app.detail.doc = Doc::default();
    app.detail.loading = None;
}
