//! Tests what the cockpit shows of a team: the state of the exchange, and findings about which people disagree.

use std::collections::HashSet;

use super::support::*;
use crate::domain::Time;
use crate::store::TeamStatus;
use crate::tui::message::{AppCommand, AppMessage, Tab};

fn status(has_failed: bool, to_send: usize, disputed: &[u32]) -> AppMessage {
    let disputed: HashSet<String> = disputed.iter().map(|number| finding_id(*number)).collect();
    let synced_at = Time::from_millisecond(NOW - 60_000).ok();
    AppMessage::Team(Some(TeamStatus { joined_at: Some(Time::UNIX_EPOCH), synced_at, has_failed, to_send, disputed }))
}

#[test]
fn the_header_says_what_waits_what_failed_and_about_what_people_disagree() {
    for (message, expected) in [
        (status(false, 0, &[]), "synced 11:59"),
        (status(false, 3, &[]), "3 to send"),
        (status(true, 0, &[]), "team offline"),
        (status(true, 3, &[]), "team offline, 3 to send"),
        (status(true, 3, &[1, 2]), "team offline, 3 to send  2 disputed"),
        (status(false, 3, &[1, 2]), "2 disputed  3 to send"),
        (status(false, 0, &[1]), "1 disputed  synced 11:59"),
    ] {
        let mut app = showing(160, 48, view());
        send(&mut app, message);
        let header = screen(&app).lines().next().unwrap_or_default().to_owned();
        assert!(header.contains(expected), "{expected} in {header}");
    }
    let mut app = showing(160, 48, view());
    send(&mut app, AppMessage::Team(None));
    assert!(!screen(&app).contains("synced"));
}

#[test]
fn the_header_says_that_the_team_is_away_until_its_news_come_again() {
    let mut app = showing(160, 48, view());
    send(&mut app, status(false, 0, &[]));
    for (is_running, expected) in [(false, "team offline"), (true, "synced 11:59")] {
        send(&mut app, AppMessage::TeamFollowed(is_running));
        let header = screen(&app).lines().next().unwrap_or_default().to_owned();
        assert!(header.contains(expected), "{expected} in {header}");
    }
}

#[test]
fn a_failure_that_only_a_person_can_put_right_is_named_with_what_to_do() {
    let mut app = showing(160, 48, view());
    send(&mut app, status(true, 1, &[]));
    let failure = "the name ada-1 is taken in db; `revdeck team join --machine NAME` takes another name";
    send(&mut app, AppMessage::TeamStopped(failure.to_owned()));
    let shown = screen(&app);
    assert!(shown.contains("no exchange with the team: the name ada-1 is taken in db"), "{shown}");
    assert!(shown.contains("takes another name"), "{shown}");
}

#[test]
fn disputed_findings_are_marked_and_a_filter_lists_them() {
    let mut app = showing(160, 48, view());
    send(&mut app, status(false, 0, &[2]));
    let shown = screen(&app);
    let rows = shown.lines().skip(1);
    assert_eq!(rows.filter(|row| row.contains("disputed ")).count(), 1, "{shown}");
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "status:disputed");
    press(&mut app, "Enter");
    assert_eq!(app.finding_list.rows.len(), 1);
    assert_eq!(app.selected_finding().map(|finding| finding.id.to_owned()), Some(finding_id(2)));
    // The prompt begins with the default, and another status takes its place.
    let mut app = showing(160, 48, view());
    send(&mut app, status(false, 0, &[2]));
    press(&mut app, "f");
    type_text(&mut app, "status:disputed");
    press(&mut app, "Enter");
    assert_eq!((app.finding_list.rows.len(), app.finding_list.filter_text.as_str()), (1, "status:disputed"));
}

#[test]
fn the_page_of_a_finding_says_that_people_disagree() {
    for (disputed, expected) in [(2, true), (3, false)] {
        let mut app = showing(160, 80, view());
        send(&mut app, status(false, 0, &[disputed]));
        let subject = app.detail.subject.clone();
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
        press(&mut app, "l z");
        let shown = screen(&app);
        assert_eq!(shown.contains("People disagree about this finding"), expected, "{disputed}: {shown}");
    }
}

#[test]
fn the_key_starts_an_exchange_or_says_how_to_join() {
    let mut app = showing(160, 48, view());
    assert!(press(&mut app, "T").is_empty());
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text.contains("`revdeck team join`")));
    send(&mut app, status(false, 1, &[]));
    let commands = press(&mut app, "T");
    assert!(matches!(commands.as_slice(), [AppCommand::Sync]), "{commands:?}");
}

#[test]
fn a_team_that_is_joined_while_the_cockpit_is_open_is_followed_at_once() {
    let joined = |at: i64| Some(TeamStatus { joined_at: Time::from_millisecond(at).ok(), ..TeamStatus::default() });
    let mut app = showing(160, 48, view());
    for (title, team, is_followed) in [
        ("no team", None, false),
        ("joined", joined(1), true),
        ("records to send", joined(1).map(|team| TeamStatus { to_send: 3, ..team }), false),
        ("left", None, false),
        ("joined again", joined(2), true),
        ("joined elsewhere", joined(3), true),
    ] {
        let commands = send(&mut app, AppMessage::Team(team.clone()));
        let follows = commands.iter().filter(|command| matches!(command, AppCommand::FollowTeam)).count();
        assert_eq!(follows, usize::from(is_followed), "{title}: {commands:?}");
        let header = screen(&app).lines().next().unwrap_or_default().to_owned();
        assert_eq!(header.contains("to send"), team.is_some(), "{title}: {header}");
    }
}
