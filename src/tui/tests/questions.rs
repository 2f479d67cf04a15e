//! Tests questions to the reviewer of a finding: key, prompt, notices and the page.

use std::sync::Arc;

use insta::assert_snapshot;

use super::looks::assert_looks_at_all_sizes;
use super::support::*;
use crate::domain::{
    Confidence, FindingId, FindingQuestion, Kind, Priority, QuestionAnswer, QuestionOutcome, QuestionRequest,
    QuestionVerdict, Time, Usage, Voice,
};
use crate::policy::BudgetAmount;
use crate::runner::{CostLimit, PreparedQuestion, QuestionPlan};
use crate::store::{FindingRow, RunRow, StoreViewBuilder};
use crate::tui::app::App;
use crate::tui::message::{AppCommand, AppMessage, DetailSubject, Tab};
use crate::tui::page_data::{FindingPage, PageData};
use crate::tui::views::ViewReply;
use crate::tui::views::prompt::PromptView;
use crate::tui::views::triage::{SimilarDecisions, TriageCard};

fn finding(n: u32) -> FindingId {
    finding_id(n).parse().expect("an id")
}

fn plan(limit: CostLimit) -> PreparedQuestion {
    let run_id = run_id(3).parse().expect("an id");
    let (question, most) = (String::new(), BudgetAmount::default());
    let answerers = vec!["sonnet".to_owned()];
    PreparedQuestion {
        finding_id: finding(2),
        listed: finding(2),
        reported_as: None,
        run_id,
        reviewer: "sonnet".into(),
        answerers,
        question,
        limit,
        most,
    }
}

fn question_plan(limit: CostLimit) -> QuestionPlan {
    QuestionPlan::Ask(Box::new(plan(limit)))
}

fn request(question: &str, minutes: i64) -> QuestionRequest {
    QuestionRequest {
        finding_id: finding(2),
        run_id: run_id(3).parse().expect("an id"),
        question: question.to_owned(),
        reviewer: "sonnet".to_owned(),
        at: Time::from_second(NOW / 1000 - minutes * 60).expect("a time"),
        reserved_tokens: 0,
        reserved_microdollars: 0,
        reported_as: None,
    }
}

fn answered(question: &str, minutes: i64, outcome: QuestionOutcome) -> FindingQuestion {
    FindingQuestion {
        request: request(question, minutes),
        model: "claude-sonnet-4-5".to_owned(),
        outcome,
        tokens: Usage { input: 1_900, output: 140, ..Usage::default() },
        cost: 0.0078,
        took_ms: 2_000,
    }
}

fn answer(verdict: QuestionVerdict, text: &str) -> QuestionOutcome {
    QuestionOutcome::Answer(QuestionAnswer { verdict, text: text.to_owned(), unstructured: false })
}

/// Returns the questions of commands: finding, reviewer, text.
fn questions(commands: &[AppCommand]) -> Vec<(String, String, String)> {
    let asked = |command: &AppCommand| match command {
        AppCommand::Ask { finding, reviewer, question } => {
            Some((finding.to_string(), reviewer.clone(), question.clone()))
        }
        _ => None,
    };
    commands.iter().filter_map(asked).collect()
}

fn notice(app: &App) -> &str {
    app.notice.as_ref().map_or("", |notice| notice.text.as_str())
}

fn asking(columns: u16, limit: CostLimit) -> App {
    asking_at(columns, 24, limit)
}

/// Returns a cockpit that shows a finding, with the reply to its key `A`.
fn asking_at(columns: u16, rows: u16, limit: CostLimit) -> App {
    let mut app = showing(columns, rows, view());
    let commands = press(&mut app, "j A");
    let planned = commands
        .iter()
        .any(|command| matches!(command, AppCommand::PlanQuestion { finding: id, .. } if *id == finding(2)));
    assert!(planned, "{commands:?}");
    send(&mut app, AppMessage::QuestionPlanned(Ok(question_plan(limit))));
    app
}

#[test]
fn the_prompt_says_the_most_that_a_question_costs_and_escape_sends_nothing() {
    for (limit, said) in [
        (CostLimit::AtMost { dollars: 0.13 }, "at most $0.13"),
        (CostLimit::Nothing, "at no cost"),
        (CostLimit::Unknown { tokens: Some(12_345) }, "price unknown, at most 12,345 tokens"),
    ] {
        let mut app = asking(160, limit);
        let shown = screen(&app);
        assert!(shown.contains(&format!("{said}  ? again: help  asks sonnet  Esc sen")), "{shown}");
        type_text(&mut app, "Why?");
        assert_eq!(questions(&press(&mut app, "Esc")), []);
        assert!(!app.views.has_window(), "the prompt is closed");
    }
    let mut app = asking(160, CostLimit::Nothing);
    assert_eq!(questions(&press(&mut app, "Enter")), []);
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert_eq!(prompt.error, "a question needs a text; nothing was sent");
    type_text(&mut app, "Why?");
    let sent = questions(&press(&mut app, "Enter"));
    assert_eq!(sent, [(finding_id(2), "sonnet".to_owned(), "Why?".to_owned())]);
    assert_eq!(notice(&app), "asking sonnet…");
}

#[test]
fn a_second_question_mark_asks_the_reviewer_of_the_finding_at_hand() {
    let planned = |commands: &[AppCommand]| -> Vec<String> {
        let finding = |command: &AppCommand| match command {
            AppCommand::PlanQuestion { finding, .. } => Some(finding.to_string()),
            _ => None,
        };
        commands.iter().filter_map(finding).collect()
    };
    let mut app = reviewed_by("sonnet", 160, 48);
    press(&mut app, "j ?");
    assert!(screen(&app).contains("again: ask its reviewer"), "{}", screen(&app));
    assert_eq!(planned(&press(&mut app, "?")), [finding_id(2)]);
    assert!(app.views.front_as::<PromptView>().is_some() && app.views.len() == 1, "the help is closed");
    // Searched text is text.
    let commands = press(&mut app, "Esc ? / ?");
    assert!(planned(&commands).is_empty() && !app.views.is_empty());
    // Nothing at hand: the second key closes the help.
    let mut app = showing(160, 48, many(0));
    press(&mut app, "?");
    assert!(!screen(&app).contains("again: ask"));
    assert!(planned(&press(&mut app, "?")).is_empty() && app.views.is_empty());
    // In triage mode it is the finding on the screen.
    let mut app = reviewed_by("sonnet", 160, 48);
    press(&mut app, "t");
    assert_eq!(planned(&press(&mut app, "F1 ?")), [finding_id(1)]);
    assert_eq!(app.views.len(), 2, "triage mode stays below the prompt");
    // The built-in reviewer answers no question: the help does not offer it.
    let mut app = reviewed_by("builtin", 160, 48);
    press(&mut app, "j ?");
    assert!(!screen(&app).contains("again: ask"), "{}", screen(&app));
    assert!(planned(&press(&mut app, "?")).is_empty() && app.views.is_empty());
}

/// Returns a cockpit whose newest run, that of findings 1 to 4, is by a reviewer that answers or not.
fn reviewed_by(reviewer: &str, columns: u16, rows: u16) -> App {
    let (new, old) = (run_id(3), run_id(1));
    let mut builder = StoreViewBuilder::default();
    builder.run(RunRow { reviewer, ..run_row(&new) });
    builder.run(RunRow { created_ms: NOW - 86_400_000, ..run_row(&old) });
    for (number, run) in [(1, &new), (2, &new), (3, &new), (5, &old)] {
        builder.finding(FindingRow { line_start: number, ..finding_row(&finding_id(number), run) });
    }
    let mut app = showing(columns, rows, complete(builder));
    app.session.answering_reviewers = ["sonnet".to_owned()].into();
    app
}

fn last_line(app: &App) -> String {
    screen(app).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_question_mark_on_the_page_of_a_finding_asks_and_another_one_helps() {
    let is_planned = |commands: &[AppCommand], number: u32| {
        commands
            .iter()
            .any(|command| matches!(command, AppCommand::PlanQuestion { finding: id, .. } if *id == finding(number)))
    };
    for (open, at_hand) in [("l", 1), ("j l", 2), ("t", 1)] {
        let mut app = reviewed_by("sonnet", 100, 30);
        press(&mut app, open);
        assert!(last_line(&app).contains("? ask   F1 help"), "{open}: {}", screen(&app));
        let commands = press(&mut app, "?");
        assert!(is_planned(&commands, at_hand), "{open}: {commands:?}");
        let place = app.views.len();
        // The prompt is there before its cost is known; no question is sent until then.
        assert!(screen(&app).contains("looking at the cost…  ? again: help"), "{}", screen(&app));
        let mut plan = plan(CostLimit::AtMost { dollars: 0.13 });
        plan.finding_id = finding(at_hand);
        if open == "l" {
            type_text(&mut app, "Why?");
            assert_eq!(questions(&press(&mut app, "Enter")), []);
            press(&mut app, "Ctrl-u");
        }
        send(&mut app, AppMessage::QuestionPlanned(Ok(QuestionPlan::Ask(Box::new(plan.clone())))));
        assert!(screen(&app).contains("at most $0.13  ? again: help  asks sonnet"), "{}", screen(&app));
        assert_eq!(press(&mut app, "?").len(), 0, "the help costs nothing");
        assert!(screen(&app).contains("Here: "), "{}", screen(&app));
        assert_eq!(app.views.len(), place, "the help stands in place of the prompt");
        press(&mut app, "q");
        // Typed text may contain the key, and there is nothing more to say about it.
        press(&mut app, "?");
        send(&mut app, AppMessage::QuestionPlanned(Ok(QuestionPlan::Ask(Box::new(plan)))));
        press(&mut app, "w h y ?");
        assert!(screen(&app).contains("why?") && !screen(&app).contains("again: help"), "{}", screen(&app));
        assert_eq!(questions(&press(&mut app, "Enter")), [(finding_id(at_hand), "sonnet".into(), "why?".into())]);
    }
}

#[test]
fn a_question_mark_is_the_help_where_nobody_answers_and_in_lists() {
    for (reviewer, keys) in [("builtin", "l"), ("agent", "l"), ("builtin", "t"), ("sonnet", ""), ("sonnet", "1 l")] {
        let mut app = reviewed_by(reviewer, 100, 30);
        press(&mut app, keys);
        assert!(last_line(&app).contains("? help"), "{reviewer} {keys}: {}", screen(&app));
        assert_eq!(press(&mut app, "?").len(), 0, "{reviewer} {keys}");
        assert!(screen(&app).contains("Here: "), "{reviewer} {keys}: {}", screen(&app));
    }
    // F1 is always the help, in front of a prompt, too.
    let mut app = reviewed_by("sonnet", 100, 30);
    press(&mut app, "l F1");
    assert!(screen(&app).contains("Here: detail"), "{}", screen(&app));
    press(&mut app, "q A F1");
    assert!(screen(&app).contains("Here: prompts"), "{}", screen(&app));
    press(&mut app, "/ F1 Esc q");
    assert!(app.views.front_as::<PromptView>().is_some(), "one help stood in front of the prompt: {}", screen(&app));
}

/// Returns the page of the first finding as these members of a panel report it.
fn page_of_members(members: &[&str]) -> Box<FindingPage> {
    let voice = |reviewer: &&str| Voice {
        reviewer: (*reviewer).to_owned(),
        run_id: run_id(2).parse().expect("an id"),
        finding_id: finding(1),
        priority: Priority::P1,
        confidence: Confidence::Medium,
        kind: Kind::MissingErrorHandling,
        title: "an error is lost".to_owned(),
        explanation: String::new(),
        line_start: 31,
        line_end: 32,
        held_back: None,
    };
    let PageData::Finding(mut page) = *page(1, 3) else { unreachable!("the page of a finding") };
    page.finding.voices = members.iter().map(voice).collect();
    page
}

#[test]
fn a_question_mark_asks_about_the_finding_of_a_panel_if_a_member_that_reports_it_is_a_model() {
    for (members, said) in [
        (&["builtin", "sonnet"][..], "? ask   F1 help"),
        (&["builtin"], "? help"),
        (&["model-of-before"], "? help"),
        (&[], "? help"),
    ] {
        for open in ["l", "t"] {
            let mut app = reviewed_by("panel:three", 100, 30);
            press(&mut app, open);
            assert!(last_line(&app).contains("? ask   F1 help"), "its members are not known: {}", screen(&app));
            let page = page_of_members(members);
            let message = match open {
                "l" => {
                    let subject = DetailSubject::Finding(finding_id(1));
                    AppMessage::Loaded { subject, tab: Tab::Page, loaded: Box::new(PageData::Finding(page)) }
                }
                _ => {
                    let card = TriageCard { page: *page, diff: None, similar: SimilarDecisions::default() };
                    AppMessage::View(ViewReply::TriageCard { finding: finding_id(1), card: Ok(Arc::new(card)) })
                }
            };
            send(&mut app, message);
            assert!(last_line(&app).contains(said), "{members:?}, {open}: {}", screen(&app));
            press(&mut app, "A");
            let is_open = app.views.front_as::<PromptView>().is_some();
            assert_eq!(is_open, said != "? help", "no prompt opens that is refused: {}", screen(&app));
        }
    }
}

#[test]
fn another_member_that_reports_the_finding_can_be_asked() {
    let planned = |reviewer: &str| {
        let answerers = vec!["sonnet".to_owned(), "gpt".to_owned()];
        let of_sonnet = plan(CostLimit::Nothing);
        let plan = PreparedQuestion { finding_id: finding(1), reviewer: reviewer.to_owned(), answerers, ..of_sonnet };
        AppMessage::QuestionPlanned(Ok(QuestionPlan::Ask(Box::new(plan))))
    };
    let wants = |commands: &[AppCommand], reviewer: &str| {
        let is_wanted = |command: &AppCommand| matches!(command, AppCommand::PlanQuestion { reviewer: Some(wanted), .. } if wanted == reviewer);
        commands.iter().any(is_wanted)
    };
    let mut app = reviewed_by("panel:three", 160, 30);
    press(&mut app, "l ?");
    assert!(!wants(&press(&mut app, "Tab"), "gpt"), "nobody knows yet who can answer");
    send(&mut app, planned("sonnet"));
    assert!(screen(&app).contains("asks sonnet  Tab asks gpt"), "{}", screen(&app));
    type_text(&mut app, "Why?");
    assert!(wants(&press(&mut app, "Tab"), "gpt"));
    assert!(screen(&app).contains("looking at the cost"), "{}", screen(&app));
    assert_eq!(questions(&press(&mut app, "Enter")), [], "its cost is not known");
    // A reviewer that cannot be asked changes nothing.
    send(&mut app, AppMessage::QuestionPlanned(Err("gpt has no API key".to_owned())));
    let prompt: &PromptView = app.views.front_as().expect("the prompt stays");
    assert_eq!((prompt.line.text(), prompt.error.as_str()), ("Why?", "no question: gpt has no API key"));
    assert!(screen(&app).contains("asks sonnet"), "{}", screen(&app));
    for key in ["Down", "Up"] {
        assert!(!wants(&press(&mut app, key), "gpt"), "{key}: only the key that the prompt names chooses another one");
    }
    assert!(screen(&app).contains("asks sonnet  Tab asks gpt"), "{}", screen(&app));
    assert!(wants(&press(&mut app, "Tab"), "gpt"));
    send(&mut app, planned("gpt"));
    assert!(wants(&press(&mut app, "Tab"), "sonnet"), "round and round");
    send(&mut app, planned("sonnet"));
    press(&mut app, "Tab");
    send(&mut app, planned("gpt"));
    assert_eq!(questions(&press(&mut app, "Enter")), [(finding_id(1), "gpt".to_owned(), "Why?".to_owned())]);
}

#[test]
fn a_prompt_that_opened_at_once_goes_when_nobody_answers() {
    for reply in [Err("no key".to_owned()), Ok(QuestionPlan::Stop(request("Why?", 1)))] {
        let mut app = reviewed_by("sonnet", 100, 30);
        press(&mut app, "j l ?");
        let is_stop = reply.is_ok();
        send(&mut app, AppMessage::QuestionPlanned(reply));
        assert!(app.views.front_as::<PromptView>().is_none(), "{}", screen(&app));
        assert_eq!(screen(&app).contains("Stop the question?"), is_stop);
        assert_eq!(notice(&app) == "no question: no key", !is_stop);
    }
    // Who has left the prompt does not get it again.
    let mut app = reviewed_by("sonnet", 100, 30);
    press(&mut app, "j l ? Esc");
    send(&mut app, AppMessage::QuestionPlanned(Ok(question_plan(CostLimit::Nothing))));
    assert!(app.views.is_empty());
}

#[test]
fn a_question_on_its_way_is_stopped_with_the_key_that_asked_it() {
    for (key, stops) in [("y", true), ("n", false)] {
        let mut app = showing(100, 30, view());
        press(&mut app, "j A");
        send(&mut app, AppMessage::QuestionPlanned(Ok(QuestionPlan::Stop(request("Why?", 1)))));
        assert!(screen(&app).contains("sonnet has not answered yet. Stop the question?"), "{}", screen(&app));
        let commands = press(&mut app, key);
        let stopped =
            commands.iter().any(|command| matches!(command, AppCommand::StopQuestion(id) if *id == finding(2)));
        assert_eq!((stopped, app.views.is_empty()), (stops, true), "{commands:?}");
    }
}

#[test]
fn a_reviewer_that_cannot_answer_opens_no_prompt_and_a_refused_question_keeps_its_text() {
    let mut app = showing(160, 48, view());
    press(&mut app, "A");
    send(&mut app, AppMessage::QuestionPlanned(Err("builtin cannot answer".to_owned())));
    assert_eq!(notice(&app), "no question: builtin cannot answer");
    assert!(app.views.front_as::<PromptView>().is_none());

    let mut app = asking(160, CostLimit::Nothing);
    type_text(&mut app, "Why?");
    press(&mut app, "Enter");
    send(&mut app, AppMessage::QuestionAsked(Err("the budget is used up".to_owned())));
    let prompt: &PromptView = app.views.front_as().expect("the prompt is there again");
    assert_eq!((prompt.line.text(), prompt.error.as_str()), ("Why?", "the budget is used up"));
}

#[test]
fn an_answer_is_noticed_and_its_page_is_read_again() {
    let reads = |commands: &[AppCommand]| commands.iter().any(|command| matches!(command, AppCommand::Load { .. }));
    for (outcome, said) in [
        (answer(QuestionVerdict::Stands, "It can."), "sonnet answers: it holds to src/invoice/total.rs:31"),
        (answer(QuestionVerdict::Explained, "It can."), "sonnet answers about src/invoice/total.rs:31"),
        (
            answer(QuestionVerdict::Withdrawn, "Line 4 checks."),
            "sonnet withdraws src/invoice/total.rs:31 · you decide: x dismisses it",
        ),
        (
            QuestionOutcome::Failure("no\nnetwork".to_owned()),
            "sonnet does not answer about src/invoice/total.rs:31: no network",
        ),
    ] {
        let mut app = asking(160, CostLimit::Nothing);
        press(&mut app, "Esc");
        let subject = DetailSubject::Finding(finding_id(2));
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
        let commands = send(&mut app, AppMessage::QuestionAsked(Ok(request("Why?", 0))));
        assert!(reads(&commands), "the page shows the question");
        assert_eq!(notice(&app), "sonnet is asked; its answer comes here");
        let subject = DetailSubject::Finding(finding_id(2));
        send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: page(2, 3) });
        let commands = send(&mut app, AppMessage::QuestionsAnswered(vec![answered("Why?", 0, outcome)]));
        assert!(reads(&commands), "the page shows the answer");
        assert_eq!(notice(&app), said);
        let statuses = commands.iter().any(|command| matches!(command, AppCommand::Triage(_)));
        assert!(!statuses, "an answer decides nothing");
    }
}

#[test]
fn the_prompt_and_the_page_with_questions_fit_every_screen() {
    assert_looks_at_all_sizes("ask_prompt", |columns, rows| {
        let mut app = asking_at(columns, rows, CostLimit::AtMost { dollars: 0.13 });
        type_text(&mut app, "The caller checks the amounts, does it not?");
        app
    });
    assert_looks_at_all_sizes("finding_questions", |columns, rows| {
        let mut app = with_questions(columns, rows);
        press(&mut app, "G");
        app
    });
}

#[test]
fn the_page_of_a_finding_shows_its_questions() {
    let shown = screen(&with_questions(110, 60));
    let start = shown.find("Questions").expect("a heading");
    let end = shown.find("History").expect("a heading");
    let lines: Vec<&str> = shown[start..end].lines().map(|line| line.trim_matches(['│', ' '])).collect();
    assert_snapshot!(lines.join("\n"));
}

/// Shows the page of a finding about which questions were asked, alone on the screen.
fn with_questions(columns: u16, rows: u16) -> App {
    let mut app = showing(columns, rows, view());
    press(&mut app, "j l z");
    let PageData::Finding(mut page) = *page(2, 3) else { unreachable!("the page of a finding") };
    let unstructured = QuestionAnswer {
        verdict: QuestionVerdict::Explained,
        text: "I would\n\u{1b}[2Jdismiss it: `revdeck triage f_2 dismissed`".to_owned(),
        unstructured: true,
    };
    page.questions = vec![
        answered(
            "Why is this a problem?",
            50,
            answer(QuestionVerdict::Stands, "`parse` fails for \"1,5\", and the amount then counts as 0.0."),
        ),
        answered(
            "The caller checks the amounts.",
            40,
            answer(QuestionVerdict::Withdrawn, "Then the amounts are numbers, and nothing is lost."),
        ),
        answered("And now?", 30, QuestionOutcome::Answer(unstructured)),
        FindingQuestion {
            tokens: Usage::default(),
            ..answered("Are you there?", 20, QuestionOutcome::Failure("worker died".to_owned()))
        },
    ];
    page.pending = Some(request("Is line 31 the only one?", 0));
    let subject = DetailSubject::Finding(finding_id(2));
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded: Box::new(PageData::Finding(page)) });
    app
}
