//! Tests what the cockpit does about changes that nobody has reviewed when it opens.

use rstest::rstest;

use super::support::*;
use crate::domain::Scope;
use crate::runner::{CostLimit, OpeningOutcome, ReviewerTerms, UnreviewedChange};
use crate::store::StoreViewBuilder;
use crate::tui::app::{App, NoticeLevel, OpeningLook};
use crate::tui::message::{AppCommand, AppMessage, ChosenReviewer, ReviewReply};

fn looks_for_changes(commands: &[AppCommand]) -> bool {
    commands.iter().any(|command| matches!(command, AppCommand::ReviewOnOpen))
}

fn unreviewed(scope: Scope, text: &str) -> UnreviewedChange {
    UnreviewedChange { scope, text: text.to_owned(), is_large: false }
}

fn opened(outcome: OpeningOutcome, limit: CostLimit) -> AppMessage {
    AppMessage::Opened { outcome: Ok(outcome), terms: Some(ReviewerTerms { name: "claude".to_owned(), limit }) }
}

#[test]
fn a_first_start_looks_once_and_says_when_there_is_nothing() {
    let mut app = app(160, 48);
    let commands = send(&mut app, AppMessage::StoreRead { view: complete(StoreViewBuilder::default()), written: 0 });
    assert!(looks_for_changes(&commands));
    assert!(screen(&app).contains("Welcome"));
    let outcome = OpeningOutcome {
        is_first: true,
        nothing: Some("there are no uncommitted changes".to_owned()),
        ..OpeningOutcome::default()
    };
    send(&mut app, opened(outcome, CostLimit::AtMost { dollars: 1.16 }));
    assert!(matches!(app.opening, OpeningLook::Nothing(_)));
    assert_eq!(app.notice, None, "nothing to review, nothing to offer");
    assert!(screen(&app).contains("Nothing to review yet"));
    assert!(screen(&app).contains("There are no uncommitted changes."), "{}", screen(&app));
    let commands = send(&mut app, AppMessage::StoreRead { view: complete(StoreViewBuilder::default()), written: 0 });
    assert!(!looks_for_changes(&commands), "once is enough");
}

#[rstest]
#[case::first(
    true, &["uncommitted changes in 2 files"], &[], CostLimit::AtMost { dollars: 1.16 },
    "reviewing worktree: a first review, offline and at no cost · r asks claude (at most $1.16)"
)]
#[case::coming_back(
    false, &["2 new commits", "uncommitted changes in 1 file"], &[], CostLimit::Nothing,
    "nobody has reviewed 2 new commits and uncommitted changes in 1 file: builtin does, offline and at no cost"
)]
#[case::offered(
    false, &[], &["2 new commits"], CostLimit::Unknown { tokens: None },
    "nobody has reviewed 2 new commits: r reviews it · r asks claude (its price is not known)"
)]
#[case::large(
    false, &["uncommitted changes in 1 file"], &["214 new commits"], CostLimit::Nothing,
    "nobody has reviewed uncommitted changes in 1 file: builtin does, offline and at no cost · nobody has reviewed 214 \
     new commits: r reviews it"
)]
fn opening_says_what_nobody_has_reviewed_and_what_a_paid_reviewer_may_cost(
    #[case] is_first: bool,
    #[case] started: &[&str],
    #[case] offered: &[&str],
    #[case] limit: CostLimit,
    #[case] expected: &str,
) {
    let mut app = showing(160, 48, view());
    let run = || run_id(9).parse().expect("an id");
    let outcome = OpeningOutcome {
        is_first,
        offered: offered.iter().map(|text| unreviewed(Scope::Commit("HEAD".to_owned()), text)).collect(),
        started: started.iter().map(|text| (unreviewed(Scope::Worktree, text), run())).collect(),
        nothing: None,
        unsettled: Vec::new(),
    };
    send(&mut app, opened(outcome, limit));
    assert_eq!(app.notice.as_ref().map(|notice| notice.text.as_str()), Some(expected));
}

#[test]
fn a_result_that_could_not_be_applied_is_an_error_beside_what_is_reviewed() {
    let failure = "2 new commits: the result could not be applied to all findings";
    for (offered, expected) in [
        (vec![], failure.to_owned()),
        (
            vec![unreviewed(Scope::Worktree, "uncommitted changes in 1 file")],
            format!("nobody has reviewed uncommitted changes in 1 file: r reviews it · {failure}"),
        ),
    ] {
        let mut app = showing(160, 48, view());
        let unsettled = vec![failure.to_owned()];
        let outcome = OpeningOutcome { offered, unsettled, ..OpeningOutcome::default() };
        send(&mut app, AppMessage::Opened { outcome: Ok(outcome), terms: None });
        let notice = app.notice.as_ref().expect("a message");
        assert_eq!((notice.level, notice.text.as_str()), (NoticeLevel::Error, expected.as_str()));
    }
}

#[test]
fn an_offer_is_taken_from_the_review_menu_at_no_cost() {
    let mut app = showing(160, 48, view());
    let offer = unreviewed(Scope::Commit("abc1234".to_owned()), "1 new commit");
    let outcome = OpeningOutcome { offered: vec![offer], ..OpeningOutcome::default() };
    send(&mut app, opened(outcome, CostLimit::AtMost { dollars: 1.16 }));
    press(&mut app, "r");
    let shown = screen(&app);
    assert!(shown.contains("Review by builtin, at no cost"), "{shown}");
    assert!(shown.contains("by builtin, offline and at no cost"), "{shown}");
    press(&mut app, "j");
    let shown = screen(&app);
    assert!(shown.contains("Review by claude, at most $1.16"), "{shown}");
    press(&mut app, "k");
    let asked: Vec<_> = press(&mut app, "Enter")
        .into_iter()
        .filter_map(|command| match command {
            AppCommand::Review { scope, reviewer, .. } => Some((scope, reviewer)),
            _ => None,
        })
        .collect();
    let scope = Some(Scope::Commit("abc1234".to_owned()));
    assert_eq!(asked, [(scope.clone(), ChosenReviewer::Builtin)]);
    send(&mut app, AppMessage::Requested(Err("the disk is full".to_owned())));
    assert_eq!(app.offered.len(), 1, "nobody reviews it yet");
    let mut reply = ReviewReply { scope, run: None, decision: Ok("reviewing".to_owned()) };
    send(&mut app, AppMessage::Requested(Ok(reply.clone())));
    assert_eq!(app.offered, [], "it is no longer offered");
    let level = |app: &App| app.notice.as_ref().map(|notice| notice.level);
    assert_eq!(level(&app), Some(NoticeLevel::Success));
    reply.decision = Err("this is no clean review".to_owned());
    send(&mut app, AppMessage::Requested(Ok(reply)));
    assert_eq!(level(&app), Some(NoticeLevel::Error));
}
