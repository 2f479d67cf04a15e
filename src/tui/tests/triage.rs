//! Tests decisions about findings: reasons, repeated verdicts, notes.

use std::sync::Arc;

use rstest::rstest;

use super::support::*;
use crate::domain::{
    Actor, DecisionId, Disposition, FindingRating, FindingSnooze, FindingStatus, Kind, Priority, Rating, RatingWish,
    SnoozeEnd, TeamClock, TeamOrigin, TeamPerson, Time, TriageAction,
};
use crate::runner::{SnoozeWish, SnoozedFindings};
use crate::store::triage::UndoOutcome;
use crate::store::{FindingRow, StoreViewBuilder};
use crate::tui::app::{App, Pane};
use crate::tui::filter::DEFAULT;
use crate::tui::keymap::Action;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab, TriageOrder};
use crate::tui::saved_filters::FilterChange;
use crate::tui::update;
use crate::tui::views::prompt::PromptView;

/// Returns the findings with the status and the reason that the commands ask for.
fn asked(commands: &[AppCommand]) -> Vec<(String, FindingStatus, String)> {
    let mut asked = Vec::new();
    for command in commands {
        if let AppCommand::Triage(TriageOrder::Set { findings, verdict }) = command {
            asked.extend(findings.iter().map(|finding| (finding.to_string(), verdict.status, verdict.reason.clone())));
        }
    }
    asked
}

fn dismissed(number: u32, reason: &str) -> (String, FindingStatus, String) {
    (finding_id(number), FindingStatus::Dismissed, reason.to_owned())
}

fn selected(app: &App) -> String {
    app.selected_finding().map(|finding| finding.id.to_owned()).unwrap_or_default()
}

#[rstest]
#[case("x 1", Some("not worth it"))]
#[case("x 2", Some("false alarm"))]
#[case("x 3", Some("intended"))]
#[case("x 4", Some("generated"))]
#[case("x 6", Some("fixed elsewhere"))]
#[case::free_text("x 5 3 r d Enter", Some("3rd"))]
#[case::another_digit_is_text("x 7 1 Enter", Some("71"))]
#[case::a_digit_after_a_letter_is_text("x v 2 Enter", Some("v2"))]
#[case::arrows_choose("x Down Down Enter", Some("false alarm"))]
#[case::arrows_leave_the_digits("x Down 3", Some("intended"))]
#[case::free_text_needs_words("x 5 Enter", None)]
fn a_dismissal_takes_its_reason_from_a_digit_or_from_words(#[case] keys: &str, #[case] reason: Option<&str>) {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, keys);
    let expected: Vec<_> = reason.into_iter().map(|reason| dismissed(1, reason)).collect();
    assert_eq!(asked(&commands), expected);
    assert_eq!(app.views.is_empty(), reason.is_some(), "without a reason the prompt stays");
}

#[test]
fn a_verdict_about_all_leaves_what_was_decided_or_snoozed_just_now() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    let until = Time::from_millisecond(NOW + 60_000).expect("a time");
    send(&mut app, AppMessage::SnoozeStored(Ok(vec![snoozed_line(2, Some(SnoozeEnd::Time(until)))])));
    let snoozed = SnoozedFindings::for_test(&[(&finding_id(2), until)]);
    send(&mut app, AppMessage::Snoozed(Arc::new(snoozed)));
    assert_eq!(app.finding_list.rows.len(), 4, "they stay in the list");
    let commands = press(&mut app, "* x 4");
    assert_eq!(asked(&commands), [dismissed(3, "generated"), dismissed(5, "generated")]);
    store(&mut app, commands);
    press(&mut app, "*");
    assert!(app.finding_list.marks.is_empty(), "nothing is left");
    // A list of all statuses means all of them.
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "status:all");
    press(&mut app, "Enter *");
    assert_eq!(app.finding_list.marks.len(), app.finding_list.rows.len());
    press(&mut app, "*");
    assert!(app.finding_list.marks.is_empty(), "the key takes the marks away again");
}

#[test]
fn the_last_reason_is_chosen_first() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "x 3");
    store(&mut app, commands);
    let commands = press(&mut app, "x Enter");
    assert_eq!(asked(&commands), [dismissed(2, "intended")]);
    store(&mut app, commands);
    let commands = press(&mut app, "x 5 m i n e Enter");
    store(&mut app, commands);
    press(&mut app, "x");
    let prompt: &PromptView = app.views.front_as().expect("the prompt");
    assert_eq!((prompt.line.text(), prompt.choice), ("mine", 1));
    let shown = screen(&app);
    for row in ["mine", "1 not worth it", "4 generated", "5 other", "6 fixed elsewhere"] {
        assert!(shown.contains(row), "{row} in {shown}");
    }
    let help = Action::Dismiss.help_text();
    assert!(help.contains("x1 to x6 "), "{help}");
}

#[test]
fn a_verdict_moves_on_to_the_next_undecided_finding_and_no_row_moves() {
    let mut app = showing(160, 48, view());
    press(&mut app, "f");
    press(&mut app, "Ctrl-u Enter g l");
    assert_eq!((selected(&app), app.panes.focus), (finding_id(1), Pane::Detail));
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    assert_eq!((selected(&app), app.panes.focus), (finding_id(2), Pane::Detail), "the page moves on as well");
    press(&mut app, "h");
    let rows = app.finding_list.rows.clone();
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    // Finding 4 comes next, and is dismissed already.
    assert_eq!((selected(&app), &app.finding_list.rows), (finding_id(3), &rows));
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    assert_eq!(selected(&app), finding_id(5));
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    assert_eq!(selected(&app), finding_id(5), "nothing below is undecided");
}

#[rstest]
#[case::addressed("5 a", &[1, 2, 3, 5], FindingStatus::Addressed, "")]
#[case::from_the_selected_one("j 4 a", &[2, 3, 5], FindingStatus::Addressed, "")]
#[case::on_the_page("j l 4 a", &[2, 3, 5], FindingStatus::Addressed, "")]
#[case::dismissed("j 4 x 3", &[2, 3, 5], FindingStatus::Dismissed, "intended")]
// Finding 4 has been dismissed: its verdict stays.
#[case::decided_ones_stay("f Ctrl-u Enter g 4 a", &[1, 2, 3, 5], FindingStatus::Addressed, "")]
// Findings 4 and 6 are decided, the others are open.
#[case::reopened("f Ctrl-u Enter g 6 O", &[4, 6], FindingStatus::Open, "")]
fn a_number_before_a_verdict_decides_that_many_findings_with_one_undo(
    #[case] keys: &str,
    #[case] findings: &[u32],
    #[case] status: FindingStatus,
    #[case] reason: &str,
) {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, keys);
    let expected: Vec<_> = findings.iter().map(|number| (finding_id(*number), status, reason.to_owned())).collect();
    assert_eq!(asked(&commands), expected);
    assert_eq!(commands.iter().filter(|command| matches!(command, AppCommand::Triage(_))).count(), 1, "one undo");
}

#[test]
fn keys_of_panes_before_a_verdict_are_no_number() {
    // Four findings are undecided. No key of a pane begins 42.
    for (keys, decided) in [("1 2 a", 1), ("3 2 a", 1), ("2 3 a", 0), ("4 2 a", 4)] {
        let mut app = showing(160, 48, view());
        let asked = asked(&press(&mut app, keys));
        assert_eq!(asked.len(), decided, "{keys}: {asked:?}");
    }
}

#[test]
fn a_number_before_a_verdict_repeats_it_below_and_contradicts_marks() {
    let mut app = showing(160, 48, view());
    let commands = press(&mut app, "x 4");
    store(&mut app, commands);
    let commands = press(&mut app, "9 .");
    assert_eq!(asked(&commands), [dismissed(2, "generated"), dismissed(3, "generated"), dismissed(5, "generated")]);
    store(&mut app, commands);
    assert_eq!(selected(&app), finding_id(2), "nothing is left below");

    let mut app = showing(160, 48, view());
    assert_eq!(asked(&press(&mut app, "Space 5 a")), []);
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("findings are marked: the key decides those, without a number"));
    assert_eq!(asked(&press(&mut app, "a")), [(finding_id(1), FindingStatus::Addressed, String::new())]);
}

#[test]
fn the_finding_after_a_verdict_is_on_the_screen_below_the_headers_of_groups() {
    let mut builder = StoreViewBuilder::default();
    let run = run_id(1);
    builder.run(run_row(&run));
    for n in 0..60 {
        let (id, path) = (finding_id(n), format!("src/part_{n:02}.rs"));
        builder.finding(FindingRow { path: &path, ..finding_row(&id, &run) });
    }
    let mut app = showing(160, 48, complete(builder));
    press(&mut app, "2 o 8 g");
    assert_eq!(app.finding_list.groups.len(), 60, "each finding has a header");
    for _ in 0..40 {
        let commands = press(&mut app, "a");
        store(&mut app, commands);
        let line = app.finding_list.line_of(app.finding_list.cursor.selected);
        let shown = app.finding_list.cursor.offset..app.finding_list.cursor.offset + app.pane_height(Pane::Findings);
        assert!(shown.contains(&line), "line {line} of {shown:?}: {}", screen(&app));
    }
}

#[test]
fn a_dot_repeats_the_last_verdict_on_what_is_marked_or_selected() {
    let mut app = showing(160, 48, view());
    assert_eq!(asked(&press(&mut app, ".")), []);
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "no verdict to repeat yet"));
    let commands = press(&mut app, "x 4");
    store(&mut app, commands);
    press(&mut app, "Space Space");
    let commands = press(&mut app, ".");
    let orders = commands.iter().filter(|command| matches!(command, AppCommand::Triage(_))).count();
    assert_eq!((asked(&commands), orders), (vec![dismissed(2, "generated"), dismissed(3, "generated")], 1), "one undo");
    store(&mut app, commands);
    let commands = press(&mut app, "a");
    store(&mut app, commands);
    press(&mut app, "O g");
    let commands = press(&mut app, ".");
    assert_eq!(asked(&commands), [(finding_id(1), FindingStatus::Addressed, String::new())], "reopening is no verdict");
}

#[test]
fn a_note_is_stored_and_read_again_and_decides_nothing() {
    let mut app = showing(160, 48, view());
    let (subject, tab, loaded) = (app.detail.subject.clone(), Tab::Page, page(1, 3));
    send(&mut app, AppMessage::Loaded { subject, tab, loaded });
    press(&mut app, "i");
    type_text(&mut app, "ask Ann:\nsee #12");
    let commands = press(&mut app, "Enter");
    let notes: Vec<_> = commands
        .iter()
        .filter_map(|command| match command {
            AppCommand::Note { finding, text } => Some((finding.to_string(), text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(notes, [(finding_id(1), "ask Ann: see #12")]);
    assert_eq!(asked(&commands), []);
    let commands = send(&mut app, AppMessage::Noted(Ok(true)));
    let reads_page = |command: &AppCommand| matches!(command, AppCommand::Load { subject: DetailSubject::Finding(id), tab: Tab::Page } if *id == finding_id(1));
    assert!(commands.iter().any(reads_page), "its page shows the note");
    send(&mut app, AppMessage::Noted(Err("disk full".to_owned())));
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "not stored: disk full"));
    assert!(press(&mut app, "i Enter").iter().all(|command| !matches!(command, AppCommand::Note { .. })));
}

fn snoozes(commands: &[AppCommand]) -> Vec<(Vec<String>, SnoozeWish)> {
    let order = |command: &AppCommand| match command {
        AppCommand::SnoozeFindings { findings, wish } => {
            Some((findings.iter().map(ToString::to_string).collect(), *wish))
        }
        _ => None,
    };
    commands.iter().filter_map(order).collect()
}

#[test]
fn a_filter_is_saved_used_and_removed_by_its_name() {
    let saved = |commands: &[AppCommand]| -> Vec<FilterChange> {
        let change = |command: &AppCommand| match command {
            AppCommand::SaveFilter(change) => Some(change.clone()),
            _ => None,
        };
        commands.iter().filter_map(change).collect()
    };
    let change = |text: Option<&str>| FilterChange { name: "urgent".to_owned(), text: text.map(ToOwned::to_owned) };
    let mut app = showing(160, 48, view());
    press(&mut app, "2 f");
    assert!(!screen(&app).contains("=@NAME"), "the usual filter needs no name: {}", screen(&app));
    type_text(&mut app, "p:0 ");
    assert!(screen(&app).contains("=@NAME saves it"), "{}", screen(&app));
    type_text(&mut app, "=@urgent");
    assert_eq!(saved(&press(&mut app, "Enter")), [change(Some("status:undecided p:0"))]);
    assert_eq!(app.finding_list.filter_text, "status:undecided p:0");
    press(&mut app, "f Ctrl-u");
    assert!(screen(&app).contains("panel:  @urgent"), "saved filters are offered: {}", screen(&app));
    type_text(&mut app, "@urg");
    press(&mut app, "Tab Enter");
    assert_eq!(app.finding_list.filter_text, "status:undecided p:0", "the name was completed and replaced");
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "@none");
    press(&mut app, "Enter");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert!(prompt.error.starts_with("@none is no saved filter; there are @urgent"), "{}", prompt.error);
    press(&mut app, "Ctrl-u");
    type_text(&mut app, "p:9 =@urgent");
    assert_eq!(saved(&press(&mut app, "Enter")), [], "a filter that means nothing is not saved");
    press(&mut app, "Ctrl-u");
    type_text(&mut app, "p:0 =@my urgent");
    assert_eq!(saved(&press(&mut app, "Enter")), [], "nobody could use the name");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert!(prompt.error.starts_with("@my urgent is no name of a filter"), "{}", prompt.error);
    press(&mut app, "Ctrl-u");
    type_text(&mut app, "=@urgent");
    assert_eq!(saved(&press(&mut app, "Enter")), [change(None)]);
    assert_eq!((app.finding_list.filter_text.as_str(), app.finding_list.saved_filters.len()), (DEFAULT, 0));
}

#[test]
fn a_rating_asks_for_priority_and_kind_of_the_chosen_findings() {
    let rated = |commands: &[AppCommand]| -> Vec<(usize, RatingWish)> {
        let order = |command: &AppCommand| match command {
            AppCommand::RateFindings { findings, wish } => Some((findings.len(), *wish)),
            _ => None,
        };
        commands.iter().filter_map(order).collect()
    };
    let set = |priority, kind| RatingWish::Set(Rating { priority, kind });
    let mut app = showing(160, 48, view());
    assert_eq!(rated(&press(&mut app, "P Esc")), []);
    let commands = press(&mut app, "P Ctrl-u p 3 Enter");
    assert_eq!(rated(&commands), [(1, set(Some(Priority::P3), None))]);
    press(&mut app, "P Ctrl-u p 9 Enter");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert!(prompt.error.contains("\"p9\" is neither a priority nor a kind"), "{}", prompt.error);
    press(&mut app, "Esc j Space Space P");
    type_text(&mut app, "security");
    let commands = press(&mut app, "Enter");
    assert_eq!(rated(&commands), [(2, set(None, Some(Kind::Security)))]);
    let line = FindingRating {
        finding_id: finding_id(1).parse().expect("an id"),
        rating: Rating { priority: Some(Priority::P3), kind: None },
        previous: Rating::default(),
        actor: Actor::User,
        at: Time::UNIX_EPOCH,
        action: TriageAction::Set,
        group: "t_1".to_owned(),
    };
    send(&mut app, AppMessage::Rated(Ok(vec![line.clone()])));
    assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some("src/config.rs:7 is p3 now · u undoes"));
    let back = FindingRating { rating: Rating::default(), ..line };
    let result = Ok(UndoOutcome::Rated(vec![back]));
    send(&mut app, AppMessage::Triaged { order: TriageOrder::Undo, result, written: 0 });
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("undone: src/config.rs:7 is as reported now"));
}

/// Returns the stored line of a snooze.
fn snoozed_line(number: u32, until: Option<SnoozeEnd>) -> FindingSnooze {
    FindingSnooze {
        finding_id: finding_id(number).parse().expect("an id"),
        until,
        previous: None,
        actor: Actor::User,
        at: Time::UNIX_EPOCH,
        action: TriageAction::Set,
        group: "t_1".to_owned(),
    }
}

#[test]
fn a_snooze_asks_for_its_end_and_a_p0_finding_gets_seven_days_at_most() {
    let mut app = showing(160, 48, view());
    press(&mut app, "Z Ctrl-u 8 d Enter");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert_eq!(prompt.error, "a p0 finding is snoozed for 7 days at most, and only until a time");
    press(&mut app, "Esc");
    press(&mut app, "Z");
    type_text(&mut app, "soon");
    press(&mut app, "Enter");
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert!(prompt.error.contains("is no time"), "{}", prompt.error);
    press(&mut app, "Esc");
    let commands = press(&mut app, "Z Enter");
    let until = Time::from_millisecond(NOW + 3 * 86_400_000).expect("a time");
    assert_eq!(snoozes(&commands), [(vec![finding_id(1)], SnoozeWish::Until(until))], "three days are offered");
    press(&mut app, "j Space Space Z");
    type_text(&mut app, "change");
    let commands = press(&mut app, "Enter");
    assert_eq!(snoozes(&commands), [(vec![finding_id(2), finding_id(3)], SnoozeWish::FileChange)]);
}

#[test]
fn a_snoozed_finding_stays_where_it_is_until_the_list_is_filtered_again_and_comes_back_by_itself() {
    let mut app = showing(160, 48, view());
    let rows = app.finding_list.rows.clone();
    let until = Time::from_millisecond(NOW + 60_000).expect("a time");
    let line = snoozed_line(1, Some(SnoozeEnd::Time(until)));
    send(&mut app, AppMessage::SnoozeStored(Ok(vec![line])));
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("src/config.rs:7 snoozed until 2026-03-04 12:01 · u undoes"));
    let snoozed = SnoozedFindings::for_test(&[(&finding_id(1), until)]);
    send(&mut app, AppMessage::Snoozed(Arc::new(snoozed)));
    assert_eq!((selected(&app), &app.finding_list.rows), (finding_id(2), &rows));
    let shown = screen(&app);
    assert!(shown.lines().next().is_some_and(|header| header.contains("3 open  1 snoozed")), "{shown}");
    assert!(shown.lines().any(|row| row.contains("src/config.rs:7") && row.contains("snoozed ")), "{shown}");
    press(&mut app, "1 2");
    assert_eq!(app.finding_list.rows.len(), rows.len() - 1);
    press(&mut app, "f Ctrl-u");
    type_text(&mut app, "status:snoozed");
    press(&mut app, "Enter");
    assert_eq!(app.finding_list.rows.len(), 1);
    assert!(screen(&app).contains("status:snoozed"));
    press(&mut app, "Esc t");
    assert!(screen(&app).contains("of 3"), "triage mode leaves it out as well");
    press(&mut app, "Esc");
    update(&mut app, NOW + 59_999, AppMessage::Tick);
    assert_eq!(app.finding_list.rows.len(), rows.len() - 1);
    update(&mut app, NOW + 60_000, AppMessage::Tick);
    assert_eq!(app.finding_list.rows, rows, "its time has come");
    let undone = UndoOutcome::Snoozed(vec![snoozed_line(1, None)]);
    send(&mut app, AppMessage::Triaged { order: TriageOrder::Undo, result: Ok(undone), written: 0 });
    assert!(app.notice.as_ref().is_some_and(|notice| notice.text == "undone: src/config.rs:7 not snoozed"));
}

#[test]
fn an_undo_names_the_person_whose_decision_stands() {
    use FindingStatus::{Addressed, Dismissed, Open};
    let origin = || TeamOrigin {
        id: DecisionId { clock: TeamClock { ms: 1, count: 0 }, machine: "bob-1".parse().expect("a name") },
        person: TeamPerson { name: "B\u{1b}ob".to_owned(), email: "bob@example.org".to_owned() },
    };
    let undone = |number: u32, status: FindingStatus, team: Option<TeamOrigin>| Disposition {
        finding_id: finding_id(number).parse().expect("an id"),
        status,
        previous: Dismissed,
        actor: Actor::User,
        reason: String::new(),
        at: Time::UNIX_EPOCH,
        action: TriageAction::Undo,
        group: "t_1".to_owned(),
        run_id: None,
        merged_into: None,
        team,
        ci: false,
    };
    for (lines, said) in [
        (vec![undone(1, Open, None)], "undone: src/config.rs:7 is open again · Ctrl-r redoes"),
        (vec![undone(1, Dismissed, Some(origin()))], "undone: src/config.rs:7 stays dismissed, as B\u{fffd}ob decided"),
        (vec![undone(1, Addressed, Some(origin()))], "undone: src/config.rs:7 is addressed, as B\u{fffd}ob decided"),
        (
            vec![undone(1, Dismissed, Some(origin())), undone(2, Open, None)],
            "undone: 2 findings, 1 of them as others decided: src/config.rs:7, src/invoice/total.rs:31",
        ),
        (
            vec![undone(1, Dismissed, Some(origin())), undone(2, Dismissed, Some(origin()))],
            "undone: 2 findings as others decided: src/config.rs:7, src/invoice/total.rs:31",
        ),
    ] {
        let mut app = showing(160, 48, view());
        let expected = lines[0].status;
        let result = Ok(UndoOutcome::Decided(lines));
        send(&mut app, AppMessage::Triaged { order: TriageOrder::Undo, result, written: 1 });
        assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(said));
        let row = app.finding_by_id(&finding_id(1)).expect("a finding");
        assert_eq!(app.current_status(&row), expected, "{said}");
    }
}
