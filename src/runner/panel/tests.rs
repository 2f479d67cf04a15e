//! Loads members whose reviews other runs have done.

use super::*;
use crate::domain::CancelReason;
use crate::runner::fixture::RunnerFixture;

#[test]
fn a_member_is_followed_to_the_run_that_reviews_the_same_and_not_to_that_of_a_panel() {
    for (reviewer, status, end, is_followed, is_active) in [
        ("a", RunStatus::Completed, MemberEnd::OwnEnd, true, false),
        ("a", RunStatus::Failed, MemberEnd::Broken, true, false),
        ("a", RunStatus::Reviewing, MemberEnd::Broken, true, true),
        ("panel:a+b", RunStatus::Completed, MemberEnd::Broken, false, false),
    ] {
        let fixture = RunnerFixture::new();
        let answer = fixture.record_working_run(|record| {
            record.reviewed_by.name = reviewer.to_owned();
            record.status = status;
        });
        let panel_run = fixture.record_working_run(|record| record.reviewed_by.name = "panel:a+b".to_owned());
        let own = fixture.record_working_run(|record| {
            record.reviewed_by.name = "a".to_owned();
            record.status = RunStatus::Cancelled;
            record.links.member_of = Some(panel_run.clone());
            record.links.reused_from = Some(answer.clone());
            record.ending.cancel_reason = Some(CancelReason::Duplicate);
        });
        let member = PanelMember {
            reviewer: "a".to_owned(),
            run_id: own.clone(),
            decision: RequestDecision::Launch,
            saved_token_estimate: 0,
        };
        let panel = Panel { name: "a+b".to_owned(), members: vec![member], ..Panel::default() };
        let loaded = fixture.services.load_members(&panel, &panel_run).expect("readable");
        let ends: Vec<(&RunId, MemberEnd)> =
            loaded.iter().map(|member| (&member.record.run_id, member.end())).collect();
        assert_eq!(ends, [(if is_followed { &answer } else { &own }, end)], "{reviewer} {status}");
        assert_eq!(fixture.services.launcher().has_active_member(&panel), is_active, "{reviewer} {status}");
    }
}
