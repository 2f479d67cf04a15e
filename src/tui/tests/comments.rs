//! Tests comments: their editor, ranges, rewriting and taking back.

use std::sync::Arc;

use super::diff::{of_finding, of_run};
use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use super::triage_mode::deliver;
use crate::domain::{FindingId, FindingStatus, LineRange, Priority};
use crate::runner::{OWN_REVIEWER, OwnFinding, WrittenComment};
use crate::store::triage::UndoOutcome;
use crate::store::{FindingRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab, TriageOrder};
use crate::tui::page_data::PageData;
use crate::tui::views::comment::CommentView;
use crate::tui::views::triage::TriageCard;

/// Returns the comments that the commands store, and the findings that they replace.
fn written(commands: Vec<AppCommand>) -> Vec<(OwnFinding, Option<FindingId>)> {
    let written = |command| match command {
        AppCommand::WriteFinding { finding, rewrites } => Some((finding, rewrites)),
        _ => None,
    };
    commands.into_iter().filter_map(written).collect()
}

/// Returns the findings with the reasons with which the commands dismiss them.
fn dismissed(commands: &[AppCommand]) -> Vec<(String, String)> {
    let mut dismissed = Vec::new();
    for command in commands {
        if let AppCommand::Triage(TriageOrder::Set { findings, verdict }) = command
            && verdict.status == FindingStatus::Dismissed
        {
            dismissed.extend(findings.iter().map(|finding| (finding.to_string(), verdict.reason.clone())));
        }
    }
    dismissed
}

/// The reply of the store that a comment is a finding now.
fn stored(n: u32) -> AppMessage {
    AppMessage::FindingWritten(Ok(WrittenComment { finding: id(n), trouble: None }))
}

fn id(n: u32) -> FindingId {
    finding_id(n).parse().expect("an id")
}

#[test]
fn a_comment_without_a_diff_says_which_key_opens_one() {
    let mut app = showing(160, 48, view());
    press(&mut app, "1 Shift-Tab c");
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("a comment is written on a line of the diff; d opens it"));
}

#[test]
fn a_comment_is_written_at_a_finding_in_the_list_on_its_page_and_in_triage_mode() {
    for keys in ["2 c", "2 l c", "t c"] {
        let mut app = showing_page("builtin", FindingStatus::Open);
        press(&mut app, keys);
        assert!(screen(&app).contains("Comment on total.rs:48"), "{keys}: {}", screen(&app));
        type_text(&mut app, "p1 what about the rate?");
        let (finding, rewrites) = written(press(&mut app, "Enter")).pop().expect("a finding");
        let place = (finding.run.as_str(), finding.path.as_str(), finding.lines);
        assert_eq!(place, (run_id(3).as_str(), "src/invoice/total.rs", LineRange::new(48, 48)), "{keys}");
        assert_eq!((finding.text.as_str(), finding.priority), ("what about the rate?", Priority::P1), "{keys}");
        assert_eq!((finding.removed, rewrites), (None, None), "{keys}");
        // What the store refuses comes back in front of triage mode, too.
        send(&mut app, AppMessage::FindingWritten(Err("the disk is full".to_owned())));
        assert!(screen(&app).contains("the disk is full"), "{keys}: {}", screen(&app));
        press(&mut app, "Enter");
        send(&mut app, stored(9));
        let said = app.notice.as_ref().map(|notice| notice.text.as_str());
        assert_eq!(said, Some("comment written at src/invoice/total.rs:48"), "{keys}");
    }
}

#[test]
fn a_finding_without_a_line_or_code_says_why_it_takes_no_comment() {
    let gone = Some("as quoted; snapshot gone");
    for (status, line_start, note, expected) in [
        (FindingStatus::Obsolete, 48, None, "no comment here: the code of the finding is gone"),
        (FindingStatus::Open, 0, None, "no comment here: the finding is about no line"),
        (FindingStatus::Open, 48, gone, "no comment here: the snapshot with its code is no longer kept"),
    ] {
        let mut builder = StoreViewBuilder::default();
        let (run, finding) = (run_id(3), finding_id(2));
        builder.run(run_row(&run)).finding(FindingRow { status, line_start, ..finding_row(&finding, &run) });
        let mut app = showing(160, 48, complete(builder));
        press(&mut app, "f");
        press(&mut app, "Ctrl-u Enter");
        let mut loaded = page(2, 3);
        if let PageData::Finding(page) = &mut *loaded {
            page.code.note = note;
        }
        let subject = DetailSubject::Finding(finding.clone());
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded });
        press(&mut app, "2 c");
        assert!(app.views.is_empty(), "{expected}");
        assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(expected));
    }
}

#[test]
fn triage_mode_says_that_the_snapshot_of_a_finding_is_gone() {
    let mut app = showing(160, 48, view());
    press(&mut app, "t");
    let mut gone = TriageCard::clone(&card(1));
    gone.page.code.note = Some("as quoted; snapshot gone");
    deliver(&mut app, finding_id(1), Arc::new(gone));
    press(&mut app, "c");
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("no comment here: the snapshot with its code is no longer kept"));
}

#[test]
fn the_reason_why_a_comment_was_not_written_is_said_in_full() {
    let error =
        "\"37ca1ce6a0bfc51718b7f8f302ba37291f669740\" names no commit in /work/of/a/customer/with/a/long/name/billing";
    for (columns, rows) in [(160, 48), (100, 30), (80, 24)] {
        let mut app = of_run(columns, rows);
        press(&mut app, "g ] h c");
        type_text(&mut app, "why?");
        press(&mut app, "Enter");
        send(&mut app, AppMessage::FindingWritten(Err(error.to_owned())));
        let shown = screen(&app);
        let has = |text: &str| shown.contains(text);
        assert!(has("names no commit in") && has("name/billing") && has("why?"), "{columns}x{rows}: {shown}");
    }
    // A repository that is gone is the reason for any error.
    let mut app = of_run(100, 30);
    press(&mut app, "g ] h c");
    type_text(&mut app, "why?");
    press(&mut app, "Enter");
    send(&mut app, AppMessage::RepositoryGone(Some("/work/billing".to_owned())));
    send(&mut app, AppMessage::FindingWritten(Err(error.to_owned())));
    let shown = screen(&app);
    assert!(shown.contains("│ the repository is gone ") && !shown.contains("names no commit"), "{shown}");
}

#[test]
fn a_finding_on_a_removed_line_says_so() {
    let mut app = of_finding(160, 48);
    press(&mut app, "z = g");
    while crate::tui::diff::removed_line_at_cursor(&app).is_none() {
        press(&mut app, "j");
    }
    press(&mut app, "c");
    assert!(screen(&app).contains("Comment on total.rs, removed line 1"), "{}", screen(&app));
    type_text(&mut app, "why?");
    let removed = written(press(&mut app, "Enter")).pop().and_then(|(finding, _)| finding.removed);
    let removed = removed.expect("the removed line");
    assert_eq!((removed.number, removed.text.as_str()), (1, "pub fn total(lines: &[Line]) -> f64 {"));
}

#[test]
fn a_range_of_lines_gets_a_text_of_several_lines() {
    let open = |columns, rows| {
        let mut app = of_run(columns, rows);
        press(&mut app, "g ] h ] h v j j j j c");
        type_text(&mut app, "p1 one loop is enough\r\n- the first");
        press(&mut app, "Ctrl-j");
        type_text(&mut app, "- the second");
        app
    };
    assert_looks_at_all_sizes("comment_range", open);
    let mut app = open(160, 48);
    assert!(screen(&app).contains("Comment on total.rs:4-6"), "{}", screen(&app));
    let (finding, rewrites) = written(press(&mut app, "Enter")).pop().expect("a finding");
    assert_eq!((finding.lines, finding.priority, rewrites), (LineRange::new(4, 6), Priority::P1, None));
    assert_eq!((finding.text.as_str(), finding.details.as_str()), ("one loop is enough", "- the first\n- the second"));
    // What the store refuses comes back with its text.
    send(&mut app, AppMessage::FindingWritten(Err("the disk is full".to_owned())));
    let shown = screen(&app);
    assert!(shown.contains("the disk is full") && shown.contains("- the second"), "{shown}");
    press(&mut app, "Enter");
    send(&mut app, stored(9));
    assert!(!app.detail.diff.has_range() && app.views.is_empty());
    assert!(screen(&app).contains("comment written at src/invoice/total.rs:4-6"), "{}", screen(&app));
}

#[test]
fn each_key_for_the_next_line_begins_one() {
    for key in ["Ctrl-j", "Alt-Enter", "Ctrl-Enter"] {
        let mut app = of_run(160, 48);
        press(&mut app, "] h c");
        type_text(&mut app, "the title");
        press(&mut app, key);
        type_text(&mut app, "the text");
        let (finding, _) = written(press(&mut app, "Enter")).pop().expect("a finding");
        assert_eq!((finding.text.as_str(), finding.details.as_str()), ("the title", "the text"), "{key}");
    }
}

#[test]
fn a_range_is_copied_without_its_signs() {
    let mut app = of_run(160, 48);
    press(&mut app, "g ] h ] h v j j j j y");
    let commands = press(&mut app, "1");
    let copied = commands.into_iter().find_map(|command| match command {
        AppCommand::Copy(order) => Some((order.what, order.text)),
        _ => None,
    });
    let lines = "        sum += line.amount.parse::<f64>().unwrap_or(0.0);\n    }\n    Ok(sum)";
    assert_eq!(copied, Some(("the lines", lines.to_owned())));
}

#[test]
fn a_range_stays_in_one_file_and_esc_ends_it() {
    let mut app = of_run(160, 48);
    press(&mut app, "g ] h v ] f");
    press(&mut app, "c");
    assert!(app.views.is_empty());
    assert!(screen(&app).contains("the range does not reach this row"), "{}", screen(&app));
    press(&mut app, "Esc");
    assert!(!app.detail.diff.has_range());
    assert_eq!(app.panes.focus, crate::tui::app::Pane::Detail, "only the range ends");
    press(&mut app, "g v");
    assert!(screen(&app).contains("a range begins on a line of the new side"), "{}", screen(&app));
}

#[test]
fn undo_withdraws_what_was_just_written_and_then_undoes_decisions() {
    let mut app = of_run(160, 48);
    press(&mut app, "] h c");
    type_text(&mut app, "name it");
    press(&mut app, "Enter");
    send(&mut app, stored(9));
    let commands = press(&mut app, "u");
    assert_eq!(dismissed(&commands), [(finding_id(9), "withdrawn".to_owned())]);
    store(&mut app, commands);
    let said = app.notice.as_ref().map(|notice| notice.text.clone());
    assert_eq!(said, Some(format!("comment withdrawn at {} · u brings it back", finding_id(9))));
    let commands = press(&mut app, "u");
    assert!(commands.iter().any(|command| matches!(command, AppCommand::Triage(TriageOrder::Undo))), "{commands:?}");
    assert!(app.decisions.last.is_none(), "a dot does not repeat it");
}

/// Returns the decisions that the commands request.
fn orders(commands: Vec<AppCommand>) -> Vec<TriageOrder> {
    let order = |command| match command {
        AppCommand::Triage(order) => Some(order),
        _ => None,
    };
    commands.into_iter().filter_map(order).collect()
}

#[test]
fn redo_brings_back_a_comment_that_an_undo_has_just_withdrawn() {
    use TriageOrder::{Redo, Undo};
    let withdrawing = || {
        let mut app = of_run(160, 48);
        press(&mut app, "] h c");
        type_text(&mut app, "name it");
        press(&mut app, "Enter");
        send(&mut app, stored(9));
        let commands = press(&mut app, "u");
        assert_eq!(dismissed(&commands).len(), 1);
        (app, commands)
    };
    let withdrawn = || {
        let (mut app, commands) = withdrawing();
        assert_eq!(store(&mut app, commands), 1);
        app
    };
    // Both keys bring it back, and a further redo is that of any decision.
    for keys in ["Ctrl-r", "u"] {
        let mut app = withdrawn();
        assert_eq!(orders(press(&mut app, keys)), [Undo], "{keys}");
        assert_eq!(orders(press(&mut app, "Ctrl-r")), [Redo], "{keys}");
    }
    // After another step, nothing is brought back.
    let mut app = withdrawn();
    assert_eq!(orders(press(&mut app, "2 a")).len(), 1);
    assert_eq!(orders(press(&mut app, "Ctrl-r")), [Redo]);
    let mut app = withdrawn();
    press(&mut app, "g ] h c");
    type_text(&mut app, "another one");
    assert_eq!(written(press(&mut app, "Enter")).len(), 1);
    assert_eq!(orders(press(&mut app, "Ctrl-r")), [Redo]);
    // The last decision of the store is another one if it did not record the withdrawal.
    for result in [Err("the disk is full".to_owned()), Ok(UndoOutcome::Decided(Vec::new()))] {
        let (mut app, commands) = withdrawing();
        for order in orders(commands) {
            send(&mut app, AppMessage::Triaged { order, result: result.clone(), written: 0 });
        }
        assert_eq!(orders(press(&mut app, "Ctrl-r")), [Redo], "{result:?}");
    }
}

/// Returns a cockpit that shows the page of a finding that this reviewer reported.
fn showing_page(reviewer: &str, status: FindingStatus) -> App {
    let mut builder = StoreViewBuilder::default();
    let run = run_id(3);
    builder.run(crate::store::RunRow { reviewer, ..run_row(&run) });
    let id = finding_id(2);
    builder.finding(FindingRow { priority: Priority::P1, status, ..finding_row(&id, &run) });
    let mut app = showing(160, 48, complete(builder));
    press(&mut app, "f");
    press(&mut app, "Ctrl-u Enter");
    let subject = DetailSubject::Finding(id);
    let mut loaded = page(2, 3);
    if let PageData::Finding(page) = &mut *loaded {
        page.finding.title = "name the value".into();
        page.finding.explanation = "It is a rate.".into();
    }
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded });
    app
}

#[test]
fn a_comment_is_rewritten_or_withdrawn_and_other_findings_are_not() {
    let mut app = showing_page(OWN_REVIEWER, FindingStatus::Open);
    press(&mut app, "E");
    let shown = screen(&app);
    assert!(shown.contains("Rewrite the comment on total.rs:31-32"), "{shown}");
    assert!(shown.contains("p1 name the value") && shown.contains("It is a rate."), "{shown}");
    type_text(&mut app, " Of tax.");
    let (finding, rewrites) = written(press(&mut app, "Enter")).pop().expect("a finding");
    assert_eq!((finding.text.as_str(), finding.details.as_str()), ("name the value", "It is a rate. Of tax."));
    assert_eq!((finding.priority, rewrites), (Priority::P1, Some(id(2))));
    send(&mut app, stored(2));
    // Without a text.
    press(&mut app, "E Ctrl-u Backspace Ctrl-u");
    assert!(app.views.front_as::<CommentView>().is_some());
    let commands = press(&mut app, "Enter");
    assert_eq!(dismissed(&commands), [(finding_id(2), "withdrawn".to_owned())]);
    for (mut app, said) in [
        (showing_page("builtin", FindingStatus::Open), "only findings that you wrote can be rewritten"),
        (showing_page(OWN_REVIEWER, FindingStatus::Dismissed), "it is decided: open it again first"),
    ] {
        press(&mut app, "E");
        assert!(app.views.is_empty() && screen(&app).contains(said), "{}", screen(&app));
    }
}

#[test]
fn a_rewrite_that_is_corrected_once_more_still_replaces_the_old_text() {
    let mut app = showing_page(OWN_REVIEWER, FindingStatus::Open);
    press(&mut app, "E Ctrl-u Backspace Ctrl-u");
    type_text(&mut app, "p1");
    press(&mut app, "Enter");
    assert!(screen(&app).contains("a finding needs a text"), "{}", screen(&app));
    type_text(&mut app, " new words");
    let (finding, rewrites) = written(press(&mut app, "Enter")).pop().expect("a finding");
    assert_eq!((finding.text.as_str(), rewrites), ("new words", Some(id(2))));
    press(&mut app, "E");
    assert!(screen(&app).contains("the last comment is being stored"), "{}", screen(&app));
    // An undo takes the new text back, and brings the old one again.
    send(&mut app, stored(9));
    let commands = press(&mut app, "u");
    assert_eq!(dismissed(&commands), [(finding_id(9), "withdrawn".to_owned())]);
    let reopened = commands.iter().any(|command| match command {
        AppCommand::Triage(TriageOrder::Set { findings, verdict }) => {
            verdict.status == FindingStatus::Open && findings.contains(&id(2))
        }
        _ => false,
    });
    assert!(reopened, "{commands:?}");
}

#[test]
fn a_text_that_the_store_refuses_while_a_window_is_open_waits_for_the_key() {
    let mut app = of_run(160, 48);
    press(&mut app, "] h c");
    type_text(&mut app, "the first");
    press(&mut app, "Enter c");
    type_text(&mut app, "the second");
    press(&mut app, "Enter ?");
    send(&mut app, AppMessage::FindingWritten(Err("the disk is full".to_owned())));
    send(&mut app, stored(9));
    press(&mut app, "Esc c");
    let shown = screen(&app);
    assert!(shown.contains("the first") && shown.contains("the disk is full"), "{shown}");
}

#[test]
fn a_text_that_was_left_is_offered_at_the_same_place_until_it_is_sent() {
    let typed = |app: &App| screen(app).contains("one loop is enough") && screen(app).contains("- the first");
    let said = |app: &App| app.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default();
    let range = "g ] h ] h v j j j j c";
    let mut app = of_run(160, 48);
    press(&mut app, range);
    type_text(&mut app, "p1 one loop is enough\n- the first");
    press(&mut app, "Esc");
    assert_eq!(said(&app), "nothing written; c at the same place has the text");
    // Another line, and another range, begin without it, and their texts do not replace it.
    press(&mut app, "Esc g ] h c");
    assert!(screen(&app).contains("Comment on ") && !typed(&app), "{}", screen(&app));
    type_text(&mut app, "of another line");
    press(&mut app, "Esc g ] h ] h v c");
    assert!(screen(&app).contains("Comment on total.rs:4") && !typed(&app), "{}", screen(&app));
    press(&mut app, "Esc");
    assert_eq!(said(&app), "nothing written", "no text, no draft");
    press(&mut app, "Esc");
    for _ in 0..2 {
        press(&mut app, range);
        let shown = screen(&app);
        assert!(shown.contains("Comment on total.rs:4-6") && shown.contains("draft; ") && typed(&app), "{shown}");
        press(&mut app, "Esc Esc");
    }
    press(&mut app, range);
    let (finding, _) = written(press(&mut app, "Enter")).pop().expect("a finding");
    assert_eq!((finding.text.as_str(), finding.details.as_str()), ("one loop is enough", "- the first"));
    send(&mut app, stored(9));
    press(&mut app, range);
    assert!(screen(&app).contains("Comment on total.rs:4-6") && !typed(&app), "{}", screen(&app));
}

#[test]
fn a_rewriting_that_was_left_is_offered_until_it_is_emptied() {
    let mut app = showing_page(OWN_REVIEWER, FindingStatus::Open);
    press(&mut app, "E Esc");
    assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some("nothing written"), "nothing was changed");
    press(&mut app, "E");
    type_text(&mut app, " Of tax.");
    press(&mut app, "Esc");
    let said = app.notice.as_ref().map(|notice| notice.text.as_str());
    assert_eq!(said, Some("nothing written; E at the same place has the text"));
    // A new comment is not the one that is rewritten.
    press(&mut app, "c");
    assert!(screen(&app).contains("Comment on total.rs:48") && !screen(&app).contains("Of tax."), "{}", screen(&app));
    press(&mut app, "Esc E");
    assert!(screen(&app).contains("It is a rate. Of tax."), "{}", screen(&app));
    press(&mut app, "Ctrl-u Backspace Ctrl-u Esc E");
    let shown = screen(&app);
    assert!(shown.contains("It is a rate.") && !shown.contains("Of tax.") && !shown.contains("draft; "), "{shown}");
}

#[test]
fn undo_after_another_step_takes_that_step_back() {
    let mut app = of_run(160, 48);
    press(&mut app, "] h c");
    type_text(&mut app, "name it");
    press(&mut app, "Enter");
    send(&mut app, stored(9));
    // Nobody waits for the answer of the store.
    let commands = press(&mut app, "2 a u");
    assert_eq!(dismissed(&commands), []);
    assert!(commands.iter().any(|command| matches!(command, AppCommand::Triage(TriageOrder::Undo))), "{commands:?}");
}

#[test]
fn a_range_ends_with_another_page_and_takes_no_line_above_its_start() {
    let mut app = of_run(160, 48);
    press(&mut app, "g ] h ] h v");
    let lines = app.detail.diff.marked_lines().map(|(_, lines)| lines);
    assert_eq!(lines, Some(LineRange::new(4, 4)), "it begins on a removed line");
    let page = super::diff::sample().page(None);
    app.detail.diff.show(page.clone(), &DetailSubject::Run(run_id(3)));
    assert!(app.detail.diff.has_range(), "the same page again");
    app.detail.diff.show(page, &DetailSubject::Run(run_id(1)));
    assert!(!app.detail.diff.has_range(), "another run");
}
