//! Settles results that answer another request: those of another machine, and those of code that is back.

use super::*;
use crate::config::{ReviewerKind, ReviewerSettings};
use crate::domain::{HeldBackPlace, MachineName, Panel, PanelMember, RequestDecision, RunOrigin, TeamPerson};
use crate::runner::SettledAnswer;

impl LifecycleFixture {
    /// Records a silent review of the working tree that another machine has made, and takes it as the answer to a request here.
    fn take_from_team(
        &self,
        run_id: &RunId,
        reviewer: &str,
        coverage: Coverage,
        held_back_places: Option<Vec<HeldBackPlace>>,
    ) -> Vec<FindingId> {
        let snapshot = self.take_snapshot();
        let mut record = self.draft(run_id, &snapshot, Source::Cli, reviewer);
        record.status = RunStatus::Completed;
        let output = RunOutput { coverage, held_back_places, ..RunOutput::new(record) };
        let machine: MachineName = "ada-1".parse().expect("a name");
        let origin = RunOrigin { machine, person: TeamPerson::default() };
        self.services.store.import_team_runs(vec![(output, origin)], &[]).expect("imported");
        self.answer_with(run_id)
    }

    /// Lets a stored run answer a request about the working tree.
    fn answer_with(&self, run_id: &RunId) -> Vec<FindingId> {
        let (services, snapshot) = (&self.services, self.take_snapshot());
        let own = self.draft(&services.ambient.new_run_id(), &snapshot, Source::Cli, "any");
        let answer = services.store.run(run_id).expect("readable").expect("the run");
        services.findings().settle_adopted_result(&own, &answer).unproven
    }
}

#[test]
fn a_review_of_another_machine_settles_what_it_shows_to_be_read_and_names_the_rest() {
    let place = |path: &str| HeldBackPlace {
        finding_id: FindingId::from_parts("CORRECTNESS", path, "other", 0),
        path: path.to_owned(),
    };
    let fixed = BODY.replace("result = 0", "result = 1 - 1");
    let fixed = fixed.as_str();
    let (open, addressed) = (FindingStatus::Open, FindingStatus::Addressed);
    for (case, text, reviewer, is_read, held_back, expected) in [
        ("it has read the place", fixed, "opus", true, Some(vec![]), (addressed, false)),
        ("another reviewer", fixed, "haiku", true, Some(vec![]), (open, false)),
        ("a panel, whose members it does not name", fixed, "panel:opus+haiku", true, Some(vec![]), (open, true)),
        ("a record of an older version", fixed, "opus", true, None, (open, true)),
        ("a report is held back in the file", fixed, "opus", true, Some(vec![place("a.py")]), (open, true)),
        ("a report is held back elsewhere", fixed, "opus", true, Some(vec![place("b.py")]), (addressed, false)),
        ("it does not say that it has read the place", fixed, "opus", false, Some(vec![]), (open, true)),
        ("the code is as it was", BODY, "opus", true, Some(vec![]), (open, false)),
    ] {
        let mut bench = LifecycleFixture::new();
        for name in ["opus", "haiku"] {
            let settings = Arc::make_mut(&mut bench.services.settings);
            settings.reviewers.insert(name.to_owned(), ReviewerSettings::new(ReviewerKind::Openai));
        }
        // The clock of the other machine is behind.
        let theirs = bench.services.ambient.new_run_id();
        bench.write(BODY);
        let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
        let id = first.findings[0].finding_id.clone();
        bench.write(text);
        let coverage = if is_read { cover_all(&bench.take_snapshot()) } else { Coverage::default() };
        let unproven = bench.take_from_team(&theirs, reviewer, coverage, held_back);
        assert_eq!((bench.status(&id), unproven == [id.clone()]), expected, "{case}");
        let length = bench.services.store.triage_bytes().expect("a length");
        assert_eq!((bench.answer_with(&theirs), bench.status(&id)), (unproven, expected.0), "{case}: the second time");
        assert_eq!(bench.services.store.triage_bytes().expect("a length"), length, "{case}: the second time");
    }
}

#[test]
fn where_git_cannot_read_the_code_of_the_request_nothing_is_clean() {
    for (case, reviewer, decided, is_held_back, expected) in [
        ("the reviewer of the finding is silent", "opus", None, false, true),
        ("another reviewer is silent", "haiku", None, false, false),
        ("another reviewer has reported it, and holds it back", "haiku", None, true, true),
        ("somebody has decided", "opus", Some(FindingStatus::Dismissed), false, false),
        ("somebody has decided, and the report is held back", "opus", Some(FindingStatus::Dismissed), true, false),
    ] {
        let bench = LifecycleFixture::new();
        let theirs = bench.services.ambient.new_run_id();
        bench.write(BODY);
        let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
        let id = first.findings[0].finding_id.clone();
        let held_back = is_held_back.then(|| HeldBackPlace { finding_id: id.clone(), path: "a.py".to_owned() });
        bench.take_from_team(&theirs, reviewer, Coverage::default(), Some(held_back.into_iter().collect()));
        if let Some(status) = decided {
            bench.triage(&id, status);
        }
        let before = bench.status(&id);
        let mut own = bench.draft(&bench.services.ambient.new_run_id(), &bench.take_snapshot(), Source::Cli, "any");
        own.subject.snapshot_commit = "1".repeat(40);
        let answer = bench.services.store.run(&theirs).expect("readable").expect("the run");
        let unproven = bench.services.findings().settle_adopted_result(&own, &answer).unproven;
        assert_eq!((unproven == [id.clone()], bench.status(&id)), (expected, before), "{case}");
    }
}

/// Returns a fixture in which a finding was reported and its code was fixed since, an id for a run of another machine that is
/// older, and the id of the finding.
fn report_and_fix() -> (LifecycleFixture, RunId, FindingId) {
    let bench = LifecycleFixture::new();
    let theirs = bench.services.ambient.new_run_id();
    bench.write(BODY);
    let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
    let id = first.findings[0].finding_id.clone();
    bench.write(&BODY.replace("result = 0", "result = 1 - 1"));
    (bench, theirs, id)
}

#[test]
fn a_finding_that_is_dismissed_elsewhere_alone_still_stands_here() {
    let (bench, theirs, id) = report_and_fix();
    let held_back = HeldBackPlace { finding_id: id.clone(), path: "renamed.py".to_owned() };
    let unproven = bench.take_from_team(&theirs, "opus", cover_all(&bench.take_snapshot()), Some(vec![held_back]));
    assert_eq!((bench.status(&id), unproven), (FindingStatus::Open, vec![id]));
}

#[test]
fn code_that_is_fixed_again_is_settled_by_the_review_that_has_read_the_fix() {
    let bench = LifecycleFixture::new();
    let fixed = BODY.replace("result = 0", "result = 1 - 1");
    bench.write(BODY);
    let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
    let id = first.findings[0].finding_id.clone();
    bench.write(&fixed);
    let second = bench.run("opus", RunStatus::Completed, &[]);
    for (text, run, expected) in [
        (BODY, &first.run.run_id, FindingStatus::Unresolved),
        (fixed.as_str(), &second.run.run_id, FindingStatus::Addressed),
        (BODY, &first.run.run_id, FindingStatus::Unresolved),
        (fixed.as_str(), &second.run.run_id, FindingStatus::Addressed),
    ] {
        bench.write(text);
        assert_eq!((bench.answer_with(run), bench.status(&id)), (vec![], expected), "{text}");
    }
}

#[test]
fn a_finding_that_is_reported_again_and_dismissed_elsewhere_alone_is_back_here() {
    let (bench, theirs, id) = report_and_fix();
    bench.run("opus", RunStatus::Completed, &[]);
    assert_eq!(bench.status(&id), FindingStatus::Addressed);
    bench.write(BODY);
    let held_back = HeldBackPlace { finding_id: id.clone(), path: "a.py".to_owned() };
    let unproven = bench.take_from_team(&theirs, "opus", cover_all(&bench.take_snapshot()), Some(vec![held_back]));
    assert_eq!((bench.status(&id), unproven), (FindingStatus::Unresolved, vec![id]));
}

#[test]
fn a_report_counts_again_when_its_finding_is_no_longer_dismissed() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let reports = [report(Priority::P0, (2, 2), "not exact")];
    let id = bench.run("opus", RunStatus::Completed, &reports).findings[0].finding_id.clone();
    bench.triage(&id, FindingStatus::Dismissed);
    let second = bench.run("opus", RunStatus::Completed, &reports);
    assert_eq!((second.findings.len(), second.held_back.len()), (0, 1));
    assert!(bench.answer_with(&second.run.run_id).is_empty());
    bench.triage(&id, FindingStatus::Open);
    assert_eq!(bench.answer_with(&second.run.run_id), vec![id]);
}

#[test]
fn the_last_review_of_this_machine_is_found_behind_many_of_others() {
    let bench = LifecycleFixture::new();
    bench.write(BODY);
    let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
    for _ in 0..7 {
        let theirs = bench.services.ambient.new_run_id();
        bench.take_from_team(&theirs, "opus", Coverage::default(), None);
    }
    let last = bench.run("haiku", RunStatus::Completed, &[]);
    let settlement = FindingSettlement::new(&bench.services, &last.run, RunStatus::Completed, ReviewExtent::Whole);
    let settlement = settlement.expect("readable");
    let follower = settlement.find_follower().map(|index| settlement.view.run_id(index).to_owned());
    assert_eq!(follower, Some(first.run.run_id.to_string()));
}

#[test]
fn a_panel_names_what_its_member_of_another_machine_holds_back() {
    let bench = LifecycleFixture::new();
    let theirs = bench.services.ambient.new_run_id();
    bench.write(BODY);
    let id = FindingId::from_parts("CORRECTNESS", "a.py", "result = 0", 0);
    let held_back = HeldBackPlace { finding_id: id.clone(), path: "a.py".to_owned() };
    bench.take_from_team(&theirs, "opus", Coverage::default(), Some(vec![held_back]));
    let run_id = bench.services.ambient.new_run_id();
    let mut panel = bench.draft(&run_id, &bench.take_snapshot(), Source::Cli, "panel:opus+haiku");
    let member = PanelMember {
        reviewer: "opus".to_owned(),
        run_id: theirs,
        decision: RequestDecision::Reuse,
        saved_token_estimate: 0,
    };
    panel.links.panel = Some(Panel { name: "opus+haiku".to_owned(), members: vec![member], ..Panel::default() });
    let list = || bench.services.findings().list_dismissed_by_members(&panel);
    assert_eq!(list().expect("readable"), vec![id]);
    // Where the result of a member cannot be read, nobody says that the panel is clean.
    let store = &bench.services.store;
    store.with_lock(|locked| locked.create_run(&panel)).expect("recorded");
    store.write_output(&RunOutput::new(panel.clone())).expect("written");
    let settle = || bench.services.findings().settle_adopted_result(&panel, &panel);
    assert_eq!(settle().describe_failure(), None);
    let member = &panel.links.panel.as_ref().expect("a panel").members[0].run_id;
    let output = store.root().join("outputs").join(format!("{member}.json"));
    std::fs::remove_file(&output).and_then(|()| std::fs::create_dir(&output)).expect("in the way");
    let failure = settle().describe_failure().expect("a failure");
    assert!(failure.contains("no clean review: ") && failure.contains(member.as_str()), "{failure}");
    let mut settled = SettledAnswer::default();
    settled.add_unproven(list());
    assert!(settled.unproven.is_empty() && settled.failure.is_some(), "{settled:?}");
}

#[test]
fn a_report_that_a_panel_lists_under_another_id_counts_for_the_finding_of_the_list() {
    let (open, unresolved, dismissed) = (FindingStatus::Open, FindingStatus::Unresolved, FindingStatus::Dismissed);
    for (case, is_fixed, decided, expected, is_named) in [
        ("the listed finding is open", false, None, open, true),
        ("it was fixed, and the code is back", true, None, unresolved, true),
        ("somebody dismissed it", false, Some(dismissed), dismissed, false),
    ] {
        let bench = LifecycleFixture::new();
        bench.write(BODY);
        let first = bench.run("opus", RunStatus::Completed, &[report(Priority::P0, (4, 4), "rounded")]);
        let second = bench.run("haiku", RunStatus::Completed, &[report(Priority::P0, (2, 2), "not exact")]);
        let (id, listed) = (&first.findings[0].finding_id, &second.findings[0].finding_id);
        let merged =
            Disposition::from_merge(id, FindingStatus::Open, listed, &second.run.run_id, bench.services.ambient.now());
        bench.services.store.append_dispositions(&[merged]).expect("stored");
        if is_fixed {
            bench.write(&BODY.replace("result = 0", "result = 1 - 1"));
            bench.run("haiku", RunStatus::Completed, &[]);
            assert_eq!(bench.status(listed), FindingStatus::Addressed, "{case}");
            bench.write(BODY);
        }
        if let Some(status) = decided {
            bench.triage(listed, status);
        }
        let named: &[FindingId] = if is_named { std::slice::from_ref(listed) } else { &[] };
        assert_eq!(bench.answer_with(&first.run.run_id), named, "{case}");
        assert_eq!((bench.status(id), bench.status(listed)), (FindingStatus::Obsolete, expected), "{case}");
    }
}
