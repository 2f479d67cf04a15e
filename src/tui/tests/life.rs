//! Tests the history on a finding's page: moves, claims, offers.

use super::support::*;
use crate::domain::{Actor, Disposition, FindingStatus, Kind, Priority, RunId, RunRecord, Time, TriageAction};
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
    assert!(line.contains(&format!("by run {run}; reported at")), "{shown}");
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
    2026-03-04 11:00  carried over by builtin in worktree from the review of abc1234 by opus: its code has not changed since
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
