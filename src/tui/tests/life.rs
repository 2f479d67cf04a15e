//! Tests the history on a finding's page: moves, claims, offers.

use super::support::*;
use crate::domain::{
    Actor, Disposition, FindingNote, FindingQuestion, FindingRating, FindingSnooze, FindingStatus, Kind, NoteKind,
    Priority, QuestionAnswer, QuestionOutcome, QuestionRequest, QuestionVerdict, Rating, RunId, RunOrigin, RunRecord,
    SnoozeEnd, TeamPerson, Time, TriageAction, Usage,
};
use crate::policy::MuteOffer;
use crate::report::FirstReport;
use crate::tui::message::{AppMessage, Tab};
use crate::tui::page_data::{CodeRelocation, FindingPage, PageData};

/// Returns the screen with a changed page of the selected finding.
fn render_with(change: impl FnOnce(&mut FindingPage)) -> String {
    let mut app = showing(160, 80, view());
    let subject = app.detail.subject.clone();
    let mut loaded = page(2, 3);
    if let PageData::Finding(page) = loaded.as_mut() {
        change(page);
    }
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded });
    press(&mut app, "l z");
    screen(&app)
}

fn build_disposition(page: &FindingPage, actor: Actor, status: FindingStatus, reason: &str) -> Disposition {
    Disposition {
        finding_id: page.finding.finding_id.clone(),
        status,
        previous: FindingStatus::Open,
        actor,
        reason: reason.to_owned(),
        at: Time::UNIX_EPOCH,
        action: TriageAction::Set,
        group: String::new(),
        run_id: None,
        merged_into: None,
        team: None,
        ci: false,
    }
}

#[test]
fn where_it_was_seen_last_and_where_it_was_reported() {
    let run: RunId = run_id(7).parse().expect("an id");
    let record: RunRecord = serde_json::from_value(serde_json::json!({
        "run_id": run, "status": "completed", "created_at": "2026-03-04T05:06:07Z", "updated_at": "2026-03-04T05:06:07Z",
        "source": "cli", "scope": "worktree", "reviewer": "builtin", "snapshot_commit": "0123456789abcdef",
    }))
    .expect("a record");
    let shown = render_with(|page| {
        page.relocation = Some(CodeRelocation { run: record, reported: "src/total.rs:9-10".to_owned() })
    });
    let line = shown.lines().find(|line| line.contains("seen at src/invoice/total.rs:31")).expect("a line");
    assert!(line.contains("in worktree; reported at"), "{shown}");
    assert!(shown.contains("src/total.rs:9-10"), "{shown}");
    assert!(shown.contains("01234567"), "the code is of the snapshot that it was seen in: {shown}");
}

#[test]
fn the_history_has_its_dates_and_says_where_a_carried_finding_comes_from() {
    let record = |number: u32, scope: &str, reviewer: &str| -> RunRecord {
        serde_json::from_value(serde_json::json!({
            "run_id": run_id(number), "status": "completed", "created_at": "2026-03-04T05:06:07Z",
            "updated_at": "2026-03-04T05:06:07Z", "source": "cli", "scope": scope, "reviewer": reviewer,
        }))
        .expect("a record")
    };
    let history = |change: &dyn Fn(&mut FindingPage)| {
        let shown = render_with(|page| {
            page.finding.first_run_id = run_id(1).parse().expect("an id");
            page.run = Some(record(3, "worktree", "builtin"));
            page.first_report = Some(FirstReport {
                at: "2026-03-02T08:30:00Z".parse().expect("a time"),
                run: record(1, "staged", "opus"),
                priority: Some(page.finding.priority),
            });
            change(page);
        });
        let lines = shown.lines().map(str::trim).skip_while(|line| !line.starts_with("History")).skip(1).take(3);
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(history(&|_| {}), @"
    2026-03-02 08:30  reported first by opus in staged
    2026-03-04 11:00  reported again by builtin in worktree
    ");
    insta::assert_snapshot!(history(&|page| page.carried_from = Some(record(2, "commit:abc1234", "opus"))), @"
    2026-03-02 08:30  reported first by opus in staged
    2026-03-04 05:06  carried over by builtin in worktree from the review of abc1234 by opus: its code has not changed since
    ");
    let ran_elsewhere = |page: &mut FindingPage| {
        let origin = RunOrigin { machine: "ada-1".parse().expect("a name"), person: TeamPerson::default() };
        page.first_report.iter_mut().for_each(|first| first.run.team = Some(origin.clone()));
    };
    insta::assert_snapshot!(history(&ran_elsewhere), @"
    2026-03-02 08:30  reported first by opus on ada-1 in staged
    2026-03-04 11:00  reported again by builtin in worktree
    ");
    let was_p0 = |page: &mut FindingPage| {
        page.first_report.iter_mut().for_each(|first| first.priority = Some(Priority::P0));
    };
    insta::assert_snapshot!(history(&was_p0), @"
    2026-03-02 08:30  reported first by opus in staged as p0
    2026-03-04 11:00  reported again by builtin in worktree as p1
    ");
}

#[test]
fn the_history_is_in_the_order_of_time_whatever_happened() {
    let at = |minute: u32| -> Time { format!("2026-03-04T11:{minute:02}:00Z").parse().expect("a time") };
    let shown = render_with(|page| {
        let id = page.finding.finding_id.clone();
        let decided = |minute: u32, status: FindingStatus, action: TriageAction| Disposition {
            at: at(minute),
            action,
            ..build_disposition(page, Actor::User, status, "")
        };
        page.history = vec![
            decided(7, FindingStatus::Addressed, TriageAction::Set),
            decided(9, FindingStatus::Open, TriageAction::Undo),
        ];
        page.ratings = vec![FindingRating {
            finding_id: id.clone(),
            rating: Rating { priority: Some(Priority::P3), kind: None },
            previous: Rating::default(),
            actor: Actor::User,
            at: at(6),
            action: TriageAction::Set,
            group: String::new(),
        }];
        page.snoozes = vec![FindingSnooze {
            finding_id: id.clone(),
            until: Some(SnoozeEnd::FileChange { path: "a.rs".to_owned(), content: String::new() }),
            previous: None,
            actor: Actor::User,
            at: at(8),
            action: TriageAction::Set,
            group: String::new(),
        }];
        page.notes = vec![FindingNote {
            finding_id: id.clone(),
            kind: NoteKind::Remark,
            actor: Actor::Assistant,
            text: "the same moment".to_owned(),
            at: at(7),
        }];
        let request = |minute: u32| QuestionRequest {
            finding_id: id.clone(),
            run_id: run_id(3).parse().expect("an id"),
            question: "Why?".to_owned(),
            reviewer: "sonnet".to_owned(),
            at: at(minute),
            reserved_tokens: 0,
            reserved_microdollars: 0,
            reported_as: None,
        };
        let verdict = QuestionVerdict::Withdrawn;
        let answer = QuestionAnswer { verdict, text: "It is checked.".to_owned(), unstructured: false };
        page.questions = vec![FindingQuestion {
            request: request(5),
            model: String::new(),
            outcome: QuestionOutcome::Answer(answer),
            tokens: Usage::default(),
            cost: 0.0,
            took_ms: 0,
        }];
        page.pending = Some(request(10));
    });
    let lines = shown.lines().map(str::trim).skip_while(|line| !line.starts_with("History")).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with("2026")).collect();
    let by_run = format!("by run {}", run_id(3));
    insta::assert_snapshot!(lines.join("\n").replace(&by_run, "by RUN"), @"
    2026-03-04 11:00  reported by RUN
    2026-03-04 11:05  you asked sonnet, which withdrew it
    2026-03-04 11:06  rated p3, before as reported, by you
    2026-03-04 11:07  addressed by you
    2026-03-04 11:07  note by the assistant: the same moment
    2026-03-04 11:08  snoozed until a.rs changes, by you
    2026-03-04 11:09  open again: you took it back
    2026-03-04 11:10  you asked sonnet, which has not answered yet
    ");
}

#[test]
fn a_claim_and_its_confirmation() {
    let shown = render_with(|page| {
        page.history = vec![
            build_disposition(page, Actor::User, FindingStatus::Addressed, "handled"),
            build_disposition(
                page,
                Actor::Engine,
                FindingStatus::Addressed,
                "confirmed by run ar_1: its code was changed",
            ),
        ];
    });
    assert!(shown.contains("addressed by you: handled"), "{shown}");
    assert!(shown.contains("addressed by revdeck: confirmed by run ar_1"), "{shown}");
}

#[test]
fn muting_is_offered_with_a_dismissed_finding_only() {
    let offer = Some(MuteOffer { kind: Kind::Docs, dismissed: 6 });
    let line = "6 of this kind dismissed, none addressed: `revdeck mute DOCS` holds them back.";
    assert!(!render_with(|page| page.offer = offer).contains(line));
    let mut app = showing(160, 80, view());
    let index =
        (0..app.store.view.finding_count()).find(|&at| app.store.view.finding(at).status == FindingStatus::Dismissed);
    let id = app.store.view.finding(index.expect("a dismissed one")).id.to_owned();
    app.detail.subject = crate::tui::message::DetailSubject::Finding(id.clone());
    let mut loaded = page(2, 3);
    if let PageData::Finding(page) = loaded.as_mut() {
        (page.offer, page.finding.finding_id) = (offer, id.parse().expect("an id"));
    }
    let subject = app.detail.subject.clone();
    send(&mut app, AppMessage::Loaded { subject, tab: Tab::Page, loaded });
    press(&mut app, "l z");
    assert!(screen(&app).contains(line), "{}", screen(&app));
}
