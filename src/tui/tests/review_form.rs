//! Tests the form of a review request: what each key requests, what the forecast says, and the screens.

use std::sync::Arc;

use rstest::rstest;

use super::looks::{SIZES, assert_looks};
use super::mouse::{click, find};
use super::support::*;
use crate::domain::{RunId, Scope, Time, UncountedCost};
use crate::policy::{Decision, ReviewAction};
use crate::runner::{CostLimit, MemberForecast, OfferedReviewer, RequestPreview, ReviewerTerms};
use crate::store::{RunRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, ChosenReviewer};
use crate::tui::views::prompt::PromptView;
use crate::tui::views::review_form::{OfferedCommit, ReviewFormFacts, ReviewFormReply, ReviewFormRequest};
use crate::tui::views::{ViewReply, ViewRequest};

fn facts() -> AppMessage {
    let reviewer = |name: &str, limit, obstacle: Option<&str>| OfferedReviewer {
        terms: ReviewerTerms { name: name.to_owned(), limit },
        members: Vec::new(),
        obstacle: obstacle.map(str::to_owned),
    };
    let commit = |id: &str, subject: &str, hours: i64| OfferedCommit {
        id: id.to_owned(),
        subject: subject.to_owned(),
        time: Time::from_millisecond(NOW - hours * 3_600_000).unwrap_or_default(),
    };
    let facts = ReviewFormFacts {
        reviewers: vec![
            reviewer("sonnet", CostLimit::AtMost { dollars: 1.16 }, None),
            reviewer("gpt", CostLimit::Unknown { tokens: None }, Some("put the key into the environment")),
            reviewer("builtin", CostLimit::Nothing, None),
        ],
        commits: vec![
            commit("a0c3bec", "Chunks are compressed by tree", 2),
            commit("91d02f4", "Retry on 429", 30),
            commit("5be1e03", "A first client", 700),
        ],
        branches: vec!["main".to_owned(), "retry".to_owned()],
        tags: vec!["nightly".to_owned()],
    };
    AppMessage::View(ViewReply::ReviewForm(ReviewFormReply::Facts(Ok(Arc::new(facts)))))
}

fn run() -> RunId {
    run_id(7).parse().expect("an id")
}

/// Returns the id of the newest run of the list.
fn listed() -> RunId {
    run_id(3).parse().expect("an id")
}

fn preview(action: ReviewAction, reason: &str, saved: u64, carried: Option<usize>) -> RequestPreview {
    RequestPreview {
        scope: Scope::Worktree,
        files: 12,
        hunks: 98,
        lines: 1_204,
        left_out: 3,
        decision: Decision {
            action,
            reason: reason.to_owned(),
            saved_token_estimate: saved,
            older: Vec::new(),
            duplicate_of: None,
        },
        carried_hunks: carried,
        tokens: 23_400,
        input_cost: Some(0.0702),
        members: Vec::new(),
        opinions: Vec::new(),
        limit: None,
        continues: None,
        spent_before: 0.0,
        uncounted: None,
        no_room: None,
        missing_key: None,
    }
}

/// Returns the forecast for a panel of which two members have reviewed the change.
fn panel_preview() -> RequestPreview {
    let member = |reviewer: &str, action, tokens| MemberForecast {
        reviewer: reviewer.to_owned(),
        action,
        tokens,
        input_cost: Some(0.0),
        limit: CostLimit::Nothing,
    };
    RequestPreview {
        members: vec![
            member("sonnet", ReviewAction::Reuse { run: run() }, 0),
            member("gpt", ReviewAction::Launch, 4_100),
            member("builtin", ReviewAction::Reuse { run: run() }, 0),
            member("local", ReviewAction::Adopt { run: run() }, 0),
            member("gemini", ReviewAction::Resume { from: run() }, 4_100),
        ],
        limit: Some(CostLimit::AtMost { dollars: 0.4 }),
        tokens: 8_200,
        input_cost: Some(0.021),
        ..preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(0))
    }
}

/// Returns the forecast for that panel if no price of `gpt` is known.
fn unpriced_panel_preview() -> RequestPreview {
    let unknown = CostLimit::Unknown { tokens: None };
    let mut preview = RequestPreview { limit: Some(unknown), input_cost: None, ..panel_preview() };
    (preview.members[1].input_cost, preview.members[1].limit) = (None, unknown);
    preview.members[4].limit = CostLimit::AtMost { dollars: 0.2 };
    preview
}

fn reply(serial: u64, result: Result<RequestPreview, String>) -> AppMessage {
    AppMessage::View(ViewReply::ReviewForm(ReviewFormReply::Preview { serial, result: Box::new(result) }))
}

/// Returns the serial numbers, reviewers and force of the requested forecasts.
fn forecasts(commands: &[AppCommand]) -> Vec<(u64, ChosenReviewer, bool)> {
    let requests = commands.iter().filter_map(|command| match command {
        AppCommand::View(ViewRequest::ReviewForm(ReviewFormRequest::Preview { serial, reviewer, force, .. })) => {
            Some((*serial, reviewer.clone(), *force))
        }
        _ => None,
    });
    requests.collect()
}

fn named(name: &str) -> ChosenReviewer {
    ChosenReviewer::Named(name.to_owned())
}

#[rstest]
#[case::as_offered("r Enter", None, ChosenReviewer::Default, false)]
#[case::forced("r f Enter", None, ChosenReviewer::Default, true)]
#[case::forced_and_not("r f f Enter", None, ChosenReviewer::Default, false)]
#[case::next_reviewer("r l j Enter", Some(Scope::Worktree), named("gpt"), false)]
#[case::previous_reviewer("r h Enter", None, named("builtin"), false)]
#[case::a_digit_of_a_free_reviewer_starts("r h 3", Some(Scope::Staged), named("builtin"), false)]
#[case::a_second_digit_starts("r 3 8 3 3", Some(Scope::Staged), ChosenReviewer::Default, false)]
#[case::around("r l l l Enter", None, named("sonnet"), false)]
#[case::of_a_commit("r h f 6 Enter Enter", Some(Scope::Commit("HEAD~1".into())), named("builtin"), true)]
#[case::a_listed_commit("r 6 Down Down Enter Enter", Some(Scope::Commit("91d02f4".into())), ChosenReviewer::Default, false)]
#[case::since_a_commit(
    "r 7 r e t r y Down Down Enter Enter",
    Some(Scope::Range { from: "91d02f4".into(), to: "HEAD".into() }),
    ChosenReviewer::Default,
    false
)]
#[case::a_commit_by_its_title("r 6 4 2 9 Enter Enter", Some(Scope::Commit("91d02f4".into())), ChosenReviewer::Default, false)]
#[case::since_a_commit_by_its_title(
    "r 7 c h u n k s Enter Enter",
    Some(Scope::Range { from: "a0c3bec".into(), to: "HEAD".into() }),
    ChosenReviewer::Default,
    false
)]
#[case::a_tag("r 6 n i g h t l y Enter Enter", Some(Scope::Commit("nightly".into())), ChosenReviewer::Default, false)]
#[case::a_name_that_is_listed_and_part_of_a_title("r 6 r e t r y Enter Enter", Some(Scope::Commit("retry".into())), ChosenReviewer::Default, false)]
#[case::since_a_branch(
    "r 7 r e t r y Down Enter Enter",
    Some(Scope::Range { from: "retry".into(), to: "HEAD".into() }),
    ChosenReviewer::Default,
    false
)]
fn keys_choose_scope_reviewer_and_force(
    #[case] keys: &str,
    #[case] scope: Option<Scope>,
    #[case] reviewer: ChosenReviewer,
    #[case] force: bool,
) {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    let requested: Vec<_> = press(&mut app, keys)
        .into_iter()
        .filter_map(|command| match command {
            AppCommand::Review { scope, reviewer, force } => Some((scope, reviewer, force)),
            _ => None,
        })
        .collect();
    assert_eq!(requested, [(scope, reviewer, force)]);
}

#[test]
fn a_digit_shows_what_a_paid_review_may_cost_before_it_starts() {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r");
    let commands = press(&mut app, "3");
    assert!(!commands.iter().any(is_review), "{commands:?}");
    assert_eq!(forecast_scopes(&commands), [Some(Scope::Staged)]);
    assert!(press(&mut app, "3").iter().any(is_review));
}

#[test]
fn the_built_in_reviewer_is_known_to_be_free_before_the_others_are_known() {
    for (limit, expected) in [(CostLimit::Nothing, true), (CostLimit::AtMost { dollars: 1.16 }, false)] {
        let mut app = showing(160, 48, view());
        app.session.reviewer = Some(ReviewerTerms { name: "one".to_owned(), limit });
        assert_eq!(press(&mut app, "r 3").iter().any(is_review), expected, "{limit:?}");
    }
}

#[test]
fn each_choice_asks_for_its_forecast_and_late_ones_are_dropped() {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    assert_eq!(forecasts(&press(&mut app, "r")), [(1, ChosenReviewer::Default, false)]);
    assert_eq!(forecasts(&press(&mut app, "l")), [(2, named("gpt"), false)]);
    assert_eq!(forecasts(&press(&mut app, "f")), [(3, named("gpt"), true)]);
    send(&mut app, reply(2, Err("too late".to_owned())));
    assert!(!screen(&app).contains("too late"), "{}", screen(&app));
    send(&mut app, reply(3, Ok(preview(ReviewAction::Launch, "forced", 0, Some(0)))));
    assert!(screen(&app).contains("starts a review: forced"), "{}", screen(&app));
    // A prompt names the revision first.
    assert_eq!(forecasts(&press(&mut app, "j j j j j")).len(), 4);
    assert!(screen(&app).contains("Enter asks which one"), "{}", screen(&app));
}

#[test]
fn a_late_forecast_is_not_shown_for_a_revision_that_is_still_to_be_picked() {
    for keys in ["r Down Down Down Down Down", "r 6 Esc", "r 7 Esc"] {
        let mut app = showing(160, 48, view());
        send(&mut app, facts());
        let asked = forecasts(&press(&mut app, keys)).len() as u64;
        send(&mut app, reply(asked, Ok(preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(0)))));
        let shown = screen(&app);
        assert!(shown.contains("Enter asks which one") && !shown.contains("starts a review"), "{keys}: {shown}");
    }
}

/// Returns the scopes of the requested forecasts.
fn forecast_scopes(commands: &[AppCommand]) -> Vec<Option<Scope>> {
    let requests = commands.iter().filter_map(|command| match command {
        AppCommand::View(ViewRequest::ReviewForm(ReviewFormRequest::Preview { scope, .. })) => Some(scope.clone()),
        _ => None,
    });
    requests.collect()
}

fn is_review(command: &AppCommand) -> bool {
    matches!(command, AppCommand::Review { .. })
}

#[rstest]
#[case::commit("6", "91d02f4", Scope::Commit("91d02f4".into()), "91d02f4 “Retry on 429”; 6 picks another")]
#[case::range("7", "main...retry", Scope::Since { from: "main".into(), to: "retry".into() }, "main...retry; 7 picks another")]
fn a_picked_revision_shows_its_forecast_before_anything_starts(
    #[case] digit: &str,
    #[case] typed: &str,
    #[case] scope: Scope,
    #[case] hint: &str,
) {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r l");
    press(&mut app, digit);
    type_text(&mut app, typed);
    let commands = press(&mut app, "Enter");
    assert!(!commands.iter().any(is_review), "{commands:?}");
    assert_eq!(forecast_scopes(&commands), [Some(scope.clone())]);
    assert_eq!(forecasts(&commands), [(3, named("gpt"), false)], "the chosen reviewer stays");
    // The answer for the scope before it is late.
    send(&mut app, reply(2, Err("too late".to_owned())));
    send(&mut app, reply(3, Ok(preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(61)))));
    let shown = screen(&app);
    for text in
        ["Review by gpt", hint, "98 hunks", "starts a review: nobody has reviewed this", "its price is not known"]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    let commands = press(&mut app, "Enter");
    let requested = commands.iter().find(|command| is_review(command));
    assert!(
        matches!(requested, Some(AppCommand::Review { scope: Some(asked), .. }) if *asked == scope),
        "{commands:?}"
    );
    assert!(app.views.is_empty());
}

#[test]
fn the_form_keeps_what_was_picked_until_another_revision_is() {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r 6 Down Enter f 7 Down Enter");
    let picked = ["a0c3bec “Chunks are compressed by tree”; 6 picks another", "a0c3bec..HEAD; 7 picks another"];
    let has = |app: &App, text: &str| screen(app).contains(text);
    assert!(picked.iter().all(|text| has(&app, text)), "{}", screen(&app));
    // Esc goes back to the form, without another revision.
    press(&mut app, "6 Down Down Esc");
    assert!(picked.iter().all(|text| has(&app, text)), "{}", screen(&app));
    assert!(has(&app, "yes"), "force stays: {}", screen(&app));
    press(&mut app, "6 Down Down Enter");
    assert!(has(&app, "91d02f4 “Retry on 429”; 6 picks another") && has(&app, picked[1]), "{}", screen(&app));
    // An empty text picks nothing.
    let commands = press(&mut app, "7 Ctrl-u Enter Enter");
    let expected = Scope::Range { from: "a0c3bec".into(), to: "HEAD".into() };
    assert!(
        commands.iter().any(|command| matches!(command, AppCommand::Review { scope: Some(asked), force: true, .. } if *asked == expected)),
        "{commands:?}"
    );
}

#[test]
fn a_revision_that_the_forecast_refuses_is_picked_again() {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r 6");
    type_text(&mut app, "HEAD~99");
    press(&mut app, "Enter");
    send(&mut app, reply(2, Err("there is no HEAD~99".to_owned())));
    assert!(screen(&app).contains("there is no HEAD~99"), "{}", screen(&app));
    let commands = press(&mut app, "Enter");
    assert!(!commands.iter().any(is_review), "{commands:?}");
    let prompt: &PromptView = app.views.front_as().expect("the prompt");
    assert_eq!((prompt.line.text(), prompt.error.as_str()), ("HEAD~99", "there is no HEAD~99"));
}

#[rstest]
#[case::reused(
    preview(ReviewAction::Reuse { run: run() }, "has reviewed exactly this", 41_000, Some(98)),
    &["worktree: 12 files, 98 hunks, 1,204 changed lines, 3 files left out", "0 tokens: has reviewed exactly this; saves about 41k tokens"]
)]
#[case::reused_by_its_name(
    preview(ReviewAction::Reuse { run: listed() }, &format!("{} has reviewed exactly this", run_id(3)), 0, Some(98)),
    &["reuses the review of worktree by builtin, 0 tokens: it has reviewed exactly this"]
)]
#[case::carried(
    preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(61)),
    &["starts a review: nobody has reviewed this", "up to 61 hunks carried over, 37 to review, first request ~23k tokens ($0.071); at most $1.16"]
)]
#[case::too_large(
    preview(ReviewAction::Launch, "nobody has reviewed this", 0, None),
    &["first request ~23k tokens ($0.071); at most $1.16"]
)]
#[case::a_partly_reviewed_panel(
    panel_preview(),
    &["sonnet, builtin: reused; local: under way; gpt, gemini: ~8.2k tokens", "first requests ~8.2k tokens ($0.021); at most $0.40"]
)]
#[case::a_panel_with_an_unknown_price(
    unpriced_panel_preview(),
    &["first requests ~8.2k tokens; at most $0.20 without gpt, whose price is not known"]
)]
#[case::a_panel_with_a_judge(
    RequestPreview {
        opinions: vec![ReviewerTerms { name: "opus".to_owned(), limit: CostLimit::AtMost { dollars: 1.4 } }],
        ..panel_preview()
    },
    &["gpt, gemini: ~8.2k tokens; opus for opinions"]
)]
#[case::a_judge_without_a_key(
    RequestPreview { missing_key: Some("opus has no API key: the variable X is not set".to_owned()), ..panel_preview() },
    &["it would be refused: opus has no API key: the variable X is not set", "at most $0.40"]
)]
#[case::skipped(preview(ReviewAction::Skip, "there is nothing to review", 0, Some(0)), &["starts nothing: there is nothing to review"])]
fn the_forecast_says_what_the_policy_will_do(#[case] preview: RequestPreview, #[case] expected: &[&str]) {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r");
    send(&mut app, reply(1, Ok(preview)));
    let shown = screen(&app);
    for line in expected {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn a_reviewer_whose_cost_no_limit_can_count_is_named() {
    let mut app = showing(160, 48, view());
    send(&mut app, facts());
    press(&mut app, "r");
    let uncounted = UncountedCost::new(vec!["max_cost".to_owned()], vec!["gpt".to_owned()]);
    send(&mut app, reply(1, Ok(RequestPreview { uncounted, ..panel_preview() })));
    let shown = screen(&app);
    for part in [
        "max_cost cannot count gpt: no price is known;",
        "[reviewers.gpt]",
        "first requests ~8.2k tokens",
        "at most $0.40",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn a_panel_is_shown_with_its_members() {
    let mut app = showing(160, 48, view());
    let members = ["sonnet", "gpt", "builtin"].map(str::to_owned).to_vec();
    let terms = ReviewerTerms { name: "panel:three".to_owned(), limit: CostLimit::AtMost { dollars: 2.0 } };
    let reviewers = vec![OfferedReviewer { terms, members, obstacle: None }];
    let offered = ReviewFormFacts { reviewers, ..ReviewFormFacts::default() };
    send(&mut app, AppMessage::View(ViewReply::ReviewForm(ReviewFormReply::Facts(Ok(Arc::new(offered))))));
    press(&mut app, "r");
    let shown = screen(&app);
    for part in ["Review by panel three, at most $2.00", "panel three: sonnet + gpt + builtin"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    // The forecast names a review by a panel in the same way.
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { reviewer: "panel:three", scope: "worktree", ..run_row(&run_id(7)) });
    let mut app = showing(160, 48, complete(builder));
    send(&mut app, facts());
    press(&mut app, "r");
    let reuse = ReviewAction::Reuse { run: run_id(7).parse().expect("an id") };
    send(&mut app, reply(1, Ok(preview(reuse, "it has reviewed exactly this", 0, None))));
    let shown = screen(&app);
    assert!(shown.contains("reuses the review of worktree by panel three, 0 tokens"), "{shown}");
    assert!(!shown.contains("panel:three"), "{shown}");
}

fn form(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    send(&mut app, facts());
    press(&mut app, "r j");
    send(&mut app, reply(2, Ok(preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(61)))));
    app
}

#[test]
fn the_form_and_its_picker_fit_every_screen() {
    for (columns, rows) in SIZES {
        let mut app = form(columns, rows);
        assert_looks("review_form", &mut app);
        press(&mut app, "l");
        send(&mut app, reply(3, Err("no such branch".to_owned())));
        assert_looks("review_form_refused", &mut app);
        press(&mut app, "6 r e Down");
        assert_looks("review_form_commits", &mut app);
        press(&mut app, "Down Down Enter");
        let size = preview(ReviewAction::Launch, "nobody has reviewed this", 0, Some(61));
        let picked = RequestPreview { scope: Scope::Commit("91d02f4".to_owned()), ..size };
        send(&mut app, reply(4, Ok(picked)));
        assert_looks("review_form_picked", &mut app);
    }
}

#[test]
fn on_a_low_screen_the_selected_scope_and_the_reviewer_stay_in_sight() {
    for (columns, rows) in [(80, 14), (80, 12), (36, 8)] {
        let mut app = form(columns, rows);
        for label in ["staged changes", "last commit", "branch", "a commit", "a range", "everything"] {
            press(&mut app, "j");
            let shown = screen(&app);
            assert!(shown.contains(label) && shown.contains("reviewer  sonnet"), "{columns}x{rows}, {label}: {shown}");
        }
        // The first row in sight is no longer the first scope.
        let (x, y) = find(&app, "a range");
        click(&mut app, x, y);
        let (x, y) = find(&app, "reviewer  sonnet");
        click(&mut app, x, y);
        let shown = screen(&app);
        assert!(shown.contains("reviewer  gpt") && shown.contains("Enter pick"), "{columns}x{rows}: {shown}");
    }
}

#[test]
fn a_click_selects_a_scope_or_changes_a_field_and_a_double_click_starts() {
    for (columns, rows) in SIZES {
        let mut app = form(columns, rows);
        let (x, y) = find(&app, "what the next commit would hold");
        let commands = click(&mut app, x, y);
        assert_eq!(forecast_scopes(&commands), [Some(Scope::Staged)], "{columns}x{rows}");
        let (x, y) = find(&app, "reviewer  sonnet");
        assert_eq!(forecasts(&click(&mut app, x, y)), [(4, named("gpt"), false)], "{columns}x{rows}");
        let (x, y) = find(&app, "force     no");
        assert_eq!(forecasts(&click(&mut app, x, y)), [(5, named("gpt"), true)], "{columns}x{rows}");
        let (x, y) = find(&app, "HEAD against its parent");
        assert!(!click(&mut app, x, y).iter().any(is_review), "{columns}x{rows}: one click selects");
        let commands = click(&mut app, x, y);
        assert!(commands.iter().any(is_review) && app.views.is_empty(), "{columns}x{rows}: {commands:?}");
    }
}

#[test]
fn a_click_chooses_a_commit_and_a_double_click_picks_it() {
    for (columns, rows) in SIZES {
        let mut app = showing(columns, rows, view());
        send(&mut app, facts());
        press(&mut app, "r 6");
        let (x, y) = find(&app, "Retry on 429");
        click(&mut app, x, y);
        let text = app.views.front_as::<PromptView>().map(|prompt| prompt.line.text().to_owned());
        assert_eq!(text.as_deref(), Some("91d02f4"), "{columns}x{rows}");
        let commands = click(&mut app, x, y);
        assert_eq!(forecast_scopes(&commands), [Some(Scope::Commit("91d02f4".into()))], "{columns}x{rows}");
        assert!(screen(&app).contains("6 picks another"), "{columns}x{rows}: {}", screen(&app));
    }
}
