mod event_orders;
mod scanned_secrets;
mod shared_ids;

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::domain::{FileCoverage, Severity, SteeredKind, Suggestion, SuppressionReason};
use crate::review::unit_engine::tests::finding;
use Kind::{Concurrency, Correctness, Performance, Security, Tests};
use Priority::{P0, P1, P2, P3};

const PATH: &str = "src/client.rs";

/// Member of a panel with its own data.
#[derive(Debug, Clone)]
struct Member {
    reviewer: &'static str,
    run_id: RunId,
    findings: Vec<Finding>,
    coverage: Coverage,
    is_finished: bool,
    kinds: Option<Vec<Kind>>,
    confirmed: Vec<FindingId>,
    fixed: Vec<FindingId>,
    held_back: Vec<SuppressedReport>,
}

/// Returns a member that has reviewed lines 1 to 100 to the end.
fn member(reviewer: &'static str, findings: Vec<Finding>) -> Member {
    let last = char::from(reviewer.as_bytes()[0].to_ascii_uppercase());
    let hunks = vec![LineRange::new(1, 100)];
    let files = vec![FileCoverage { path: PATH.into(), hunks, keys: Vec::new() }];
    Member {
        reviewer,
        run_id: format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C0{last}").parse().expect("an id"),
        findings,
        coverage: Coverage { files, ..Coverage::default() },
        is_finished: true,
        kinds: None,
        confirmed: Vec::new(),
        fixed: Vec::new(),
        held_back: Vec::new(),
    }
}

fn report(line: u32, kind: Kind, priority: Priority, title: &str) -> Finding {
    let mut report = finding(PATH, line, line + 1, 2);
    report.finding_id = FindingId::from_parts(kind.word(), PATH, &format!("{title} {line}"), 0);
    report.detail_ref = format!("outputs/RUN.json#{}", report.finding_id);
    report.confidence = Confidence::Medium;
    report.quoted_code = format!("let a = read({line});");
    (report.kind, report.priority, report.title) = (kind, priority, title.to_owned());
    report.severity = priority.severity();
    report
}

impl Member {
    fn result(&self) -> MemberResult<'_> {
        MemberResult {
            reviewer: self.reviewer,
            run_id: &self.run_id,
            findings: &self.findings,
            coverage: &self.coverage,
            is_finished: self.is_finished,
            kinds: self.kinds.as_deref(),
            confirmed: &self.confirmed,
            fixed: &self.fixed,
            held_back: &self.held_back,
        }
    }
}

fn merge_with(
    members: &[Member],
    known: &[&FindingId],
    record_of: impl Fn(&str, Kind) -> Option<KindRecord>,
) -> OneList {
    let members: Vec<MemberResult<'_>> = members.iter().map(Member::result).collect();
    merge_panel(&members, |id| known.contains(&id), |_| None, record_of)
}

/// Merges with ids that stand for problems.
fn merge_standing(members: &[Member], standing: &[(FindingId, StandingProblem)]) -> OneList {
    let members: Vec<MemberResult<'_>> = members.iter().map(Member::result).collect();
    let problem_of =
        |id: &FindingId| standing.iter().find(|(known, _)| known == id).map(|(_, problem)| problem.clone());
    merge_panel(&members, |id| problem_of(id).is_some(), problem_of, |_, _| None)
}

fn merge(members: &[Member]) -> OneList {
    merge_with(members, &[], |_, _| None)
}

const KEPT: &str = "The lock is held across an await";
const HELD: &str = "Lock is held across await";

#[test]
fn reports_of_one_problem_become_one_finding_with_the_words_of_all() {
    let mut first = report(41, Concurrency, P1, KEPT);
    first.explanation = "Every caller waits for the network.".to_owned();
    let second = Finding {
        suggestion: Some(Suggestion { text: "Drop it.".into(), replacement: Some("drop(guard);".into()), lines: None }),
        ..report(42, Concurrency, P2, HELD)
    };
    let other = report(80, Tests, P3, "The retry is not tested");
    let members = [
        member("gpt", vec![first.clone()]),
        member("claude", vec![second.clone(), other.clone()]),
        member("builtin", Vec::new()),
    ];
    let list = merge(&members);
    let [merged, alone] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!((merged.priority, merged.severity, merged.confidence), (P1, Severity::High, Confidence::High));
    assert_eq!((&merged.finding_id, &merged.title, merged.line_start), (&first.finding_id, &first.title, 41));
    let suggestion = merged.suggestion.as_ref().expect("the suggestion of the other report");
    assert_eq!(suggestion.lines, Some(LineRange::new(42, 43)), "it stays with its lines");
    let said: Vec<(&str, Priority, &str, u32)> = merged
        .voices
        .iter()
        .map(|voice| (voice.reviewer.as_str(), voice.priority, voice.title.as_str(), voice.line_start))
        .collect();
    assert_eq!(said, [("claude", P2, HELD, 42), ("gpt", P1, KEPT, 41)]);
    assert_eq!(merged.voices[1].explanation, first.explanation);
    let steps: Vec<String> = merged.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        ["2 of 3 reviewers agree: confidence raised from medium to high", "priority p1: the most urgent of p1, p2"]
    );
    let in_run = (members[1].run_id.clone(), second.finding_id);
    assert_eq!(list.listed_as, BTreeMap::from([(in_run, first.finding_id)]));
    assert_eq!((&alone.finding_id, alone.voices.len(), alone.steps.len()), (&other.finding_id, 1, 0));
    assert!(list.findings.iter().all(|finding| finding.disputed.is_empty()), "{list:?}");
}

#[rstest]
#[case::one(&[P2], Performance, P2)]
#[case::the_same(&[P2, P2, P2], Performance, P2)]
#[case::two(&[P2, P3], Performance, P2)]
#[case::three(&[P1, P2, P3], Performance, P2)]
#[case::one_exaggerates(&[P0, P2, P2], Performance, P2)]
#[case::never_lowered(&[P1, P2, P3], Correctness, P1)]
fn the_priority_is_the_middle_one_or_the_most_urgent_one_of_a_grave_kind(
    #[case] priorities: &[Priority],
    #[case] kind: Kind,
    #[case] expected: Priority,
) {
    let names = ["a", "b", "c"];
    let members: Vec<Member> = priorities
        .iter()
        .zip(names)
        .map(|(priority, name)| member(name, vec![report(41, kind, *priority, "The list is copied for each row")]))
        .collect();
    let list = merge(&members);
    let [merged] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!(merged.priority, expected);
    let differ = priorities.iter().any(|priority| *priority != priorities[0]);
    let is_ranked = merged.steps.iter().any(|step| matches!(step, FindingStep::Ranked { .. }));
    assert_eq!(is_ranked, differ, "{merged:?}");
    let is_disputed = merged.disputed.iter().any(|dispute| matches!(dispute, Dispute::Priority { .. }));
    let spread = priorities.iter().max().map_or(0, |p| p.index()) - priorities.iter().min().map_or(0, |p| p.index());
    assert_eq!(is_disputed, spread >= 2, "{merged:?}");
}

#[rstest]
#[case::two_low(&[Confidence::Low, Confidence::Low], Confidence::Low)]
#[case::three_low(&[Confidence::Low, Confidence::Low, Confidence::Low], Confidence::Medium)]
#[case::low_and_medium(&[Confidence::Low, Confidence::Medium], Confidence::Medium)]
#[case::two_medium(&[Confidence::Medium, Confidence::Medium], Confidence::High)]
#[case::high_and_low(&[Confidence::High, Confidence::Low], Confidence::High)]
fn agreement_raises_the_confidence_and_never_lowers_it(#[case] given: &[Confidence], #[case] expected: Confidence) {
    let members: Vec<Member> = given
        .iter()
        .zip(["a", "b", "c"])
        .map(|(confidence, name)| {
            member(name, vec![Finding { confidence: *confidence, ..report(41, Correctness, P2, "Off by one") }])
        })
        .collect();
    let list = merge(&members);
    assert_eq!(list.findings.iter().map(|finding| finding.confidence).collect::<Vec<_>>(), [expected]);
}

fn record(accepted: u32, decided: u32) -> impl Fn(&str, Kind) -> Option<KindRecord> {
    move |reviewer, kind| {
        let record = KindRecord { reviewer: reviewer.to_owned(), kind, accepted, decided };
        (reviewer == "gpt").then_some(record)
    }
}

#[rstest]
#[case::mostly_wrong(Performance, P2, (3, 24), true, (P3, Confidence::Medium))]
#[case::the_least_urgent(Performance, P3, (3, 24), true, (P3, Confidence::Low))]
#[case::few_decisions(Performance, P2, (0, 19), true, (P2, Confidence::Medium))]
#[case::as_often_right_as_wrong(Performance, P2, (12, 24), true, (P2, Confidence::Medium))]
#[case::not_surely_wrong(Performance, P2, (8, 20), true, (P2, Confidence::Medium))]
#[case::security(Security, P2, (0, 40), true, (P2, Confidence::Medium))]
#[case::correctness(Correctness, P2, (0, 40), true, (P2, Confidence::Medium))]
#[case::concurrency(Concurrency, P2, (0, 40), true, (P2, Confidence::Medium))]
#[case::nobody_else_looked(Performance, P2, (3, 24), false, (P2, Confidence::Medium))]
fn a_lone_claim_with_a_poor_record_is_shown_lower(
    #[case] kind: Kind,
    #[case] priority: Priority,
    #[case] (accepted, decided): (u32, u32),
    #[case] is_finished: bool,
    #[case] expected: (Priority, Confidence),
) {
    let lone = report(41, kind, priority, "The list is copied for each row");
    let members = [member("gpt", vec![lone]), Member { is_finished, ..member("claude", Vec::new()) }];
    let list = merge_with(&members, &[], record(accepted, decided));
    let [found] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!((found.priority, found.confidence), expected);
    let is_changed = expected != (priority, Confidence::Medium);
    assert_eq!(found.steps.len(), usize::from(is_changed), "{found:?}");
    assert_eq!(found.voices[0].priority, priority, "the word of the reviewer stays");
}

#[rstest]
#[case::alone(&[("gpt", P1, true)], P2, "lowered from p1 to p2: 0 of 22 PERFORMANCE findings of gpt were accepted", false)]
#[case::another_agrees(&[("gpt", P1, true), ("claude", P1, false)], P1, "", false)]
#[case::another_is_more_urgent(&[("gpt", P2, true), ("claude", P1, false)], P1, "", true)]
#[case::another_is_less_urgent(&[("gpt", P1, true), ("claude", P2, false)], P1, "", true)]
#[case::all_are_mostly_wrong(
    &[("gpt", P1, true), ("claude", P1, true)],
    P2,
    "lowered from p1 to p2: 0 of 22 PERFORMANCE findings of claude were accepted; 0 of 22 PERFORMANCE findings of gpt were \
     accepted",
    false
)]
fn a_report_that_its_run_has_lowered_keeps_its_priority_and_is_lowered_once(
    #[case] said: &[(&'static str, Priority, bool)],
    #[case] expected: Priority,
    #[case] lowered: &str,
    #[case] is_ranked: bool,
) {
    let report_of = |&(name, priority, is_lowered): &(&'static str, Priority, bool)| {
        let mut found = report(41, Performance, priority, "The list is copied for each row");
        if is_lowered {
            SteeredKind { kind: Performance, accepted: 0, wrong: 22 }.lower(&mut found, name);
        }
        member(name, vec![found])
    };
    let mut members: Vec<Member> = said.iter().map(report_of).collect();
    members.push(member("third", Vec::new()));
    let list = merge_with(&members, &[], record(0, 22));
    let [found] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!(found.priority, expected);
    assert_eq!(found.lowered.as_ref().map(ToString::to_string).unwrap_or_default(), lowered);
    let mut given: Vec<(&str, Priority)> = said.iter().map(|&(name, priority, _)| (name, priority)).collect();
    given.sort_unstable();
    let voices: Vec<(&str, Priority)> =
        found.voices.iter().map(|voice| (voice.reviewer.as_str(), voice.priority)).collect();
    assert_eq!(voices, given, "the word of each reviewer stays");
    let has_step = |wanted: fn(&FindingStep) -> bool| found.steps.iter().any(wanted);
    assert!(!has_step(|step| matches!(step, FindingStep::Lowered { .. })), "it is lowered once: {found:?}");
    assert_eq!(has_step(|step| matches!(step, FindingStep::Ranked { .. })), is_ranked, "{found:?}");
}

#[test]
fn two_voices_are_not_lowered() {
    let same = || vec![report(41, Performance, P2, "The list is copied for each row")];
    let members = [member("gpt", same()), member("claude", same()), member("third", Vec::new())];
    let list = merge_with(&members, &[], record(0, 100));
    assert_eq!(list.findings[0].priority, P2);
    assert!(matches!(list.findings[0].steps.as_slice(), [FindingStep::Agreed { voices: 2, reviewers: 3, .. }]));
}

#[test]
fn a_reviewer_that_answered_for_two_members_does_not_agree_with_itself() {
    let same = || vec![report(41, Performance, P1, "The list is copied for each row")];
    let again = |findings: Vec<Finding>| Member {
        run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0Z".parse().expect("an id"),
        ..member("gpt", findings)
    };
    let list = merge(&[member("gpt", same()), again(same())]);
    let [found] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!((found.voices.len(), found.count_reviewer_voices()), (2, 1));
    assert_eq!((found.confidence, found.steps.len()), (Confidence::Medium, 0), "{found:?}");
    // Nor does its silence contradict itself.
    let list = merge(&[member("gpt", same()), again(Vec::new())]);
    assert!(list.findings[0].disputed.is_empty(), "{list:?}");
    // Another one agrees with it once.
    let list = merge(&[member("gpt", same()), again(same()), member("claude", same())]);
    assert!(matches!(list.findings[0].steps.as_slice(), [FindingStep::Agreed { voices: 2, reviewers: 2, .. }]));
}

#[test]
fn a_lone_urgent_claim_is_disputed_where_others_reviewed_the_same_hunk() {
    let claim = || vec![report(41, Correctness, P1, "Off by one")];
    let dispute = |silent: Member| merge(&[member("gpt", claim()), silent]).findings[0].disputed.clone();
    let is_alone = |disputed: Vec<Dispute>| matches!(disputed.as_slice(), [Dispute::Alone { .. }]);
    let quiet = || member("claude", Vec::new());
    assert_eq!(dispute(quiet()), [Dispute::Alone { reviewer: "gpt".into(), silent: vec!["claude".into()] }]);
    assert!(!is_alone(dispute(Member { is_finished: false, ..quiet() })), "it is not at its end");
    assert!(!is_alone(dispute(Member { kinds: Some(vec![Kind::LongMethod]), ..quiet() })), "it cannot report this");
    assert!(is_alone(dispute(Member { kinds: Some(vec![Correctness]), ..quiet() })));
    let with_hunk = |lines| {
        let files = vec![FileCoverage { path: PATH.into(), hunks: vec![lines], keys: Vec::new() }];
        Member { coverage: Coverage { files, ..Coverage::default() }, ..quiet() }
    };
    assert!(!is_alone(dispute(with_hunk(LineRange::new(200, 210)))), "it saw another hunk");
    assert!(is_alone(dispute(with_hunk(LineRange::new(42, 60)))));
    let holding = |finding: Finding| {
        let (because, reason) = (SuppressionReason::Late, String::new());
        Member { held_back: vec![SuppressedReport { finding, because, reason }], ..quiet() }
    };
    assert!(!is_alone(dispute(holding(report(41, Correctness, P3, "Off by one")))), "it was held back");
    assert!(
        is_alone(dispute(holding(report(80, Correctness, P3, "The lock is never released")))),
        "it is another problem"
    );
    // The record of the reviewer makes the claim less urgent, and nobody agrees with it for that.
    let mut lowered = report(41, Performance, P1, "The list is copied for each row");
    SteeredKind { kind: Performance, accepted: 0, wrong: 22 }.lower(&mut lowered, "gpt");
    let lowered = merge(&[member("gpt", vec![lowered]), quiet()]);
    assert_eq!(lowered.findings[0].priority, P2);
    assert!(is_alone(lowered.findings[0].disputed.clone()), "{lowered:?}");
    let minor = merge(&[member("gpt", vec![report(41, Correctness, P2, "Off by one")]), quiet()]);
    assert!(minor.findings[0].disputed.is_empty(), "it is not urgent");
}

#[test]
fn a_report_that_was_held_back_speaks_for_the_finding_of_another_member() {
    let holding = |reviewer: &'static str, finding: &Finding, because: SuppressionReason| {
        let held = SuppressedReport { finding: finding.clone(), because, reason: String::new() };
        Member { held_back: vec![held], ..member(reviewer, Vec::new()) }
    };
    let raised = report(41, Concurrency, P1, KEPT);
    let held = report(42, Concurrency, P3, HELD);
    let late = holding("claude", &held, SuppressionReason::Late);
    let members = [member("gpt", vec![raised.clone()]), late.clone(), member("third", Vec::new())];
    let list = merge(&members);
    let [found] = list.findings.as_slice() else { panic!("{list:?}") };
    assert_eq!((&found.finding_id, found.line_start, &found.title), (&raised.finding_id, 41, &raised.title));
    // It agrees. Its priority and its id are not those of the list.
    assert_eq!((found.priority, found.confidence), (P1, Confidence::High));
    assert!(matches!(found.steps.as_slice(), [FindingStep::Agreed { voices: 2, reviewers: 3, .. }]), "{found:?}");
    let said: Vec<_> =
        found.voices.iter().map(|voice| (voice.reviewer.as_str(), voice.priority, voice.held_back)).collect();
    assert_eq!(said, [("claude", P3, Some(SuppressionReason::Late)), ("gpt", P1, None)]);
    assert_eq!((found.voices[0].title.as_str(), &found.voices[0].finding_id), (HELD, &held.finding_id));
    assert!(found.disputed.is_empty() && list.listed_as.is_empty() && list.moved_ids.is_empty(), "{list:?}");
    let reversed: Vec<Member> = members.iter().rev().cloned().collect();
    assert_eq!(merge(&reversed), list);
    // By itself it is no finding, and what a person has dismissed joins none.
    assert!(merge(&[member("gpt", Vec::new()), late]).findings.is_empty());
    let dismissed = holding("claude", &held, SuppressionReason::Dismissed);
    let list = merge(&[member("gpt", vec![raised.clone()]), dismissed]);
    assert_eq!((list.findings[0].voices.len(), list.findings[0].confidence), (1, Confidence::Medium));
    // A member is in a finding once, and a report in one finding.
    let both = Member {
        findings: vec![report(42, Concurrency, P2, HELD)],
        ..holding("claude", &held, SuppressionReason::Muted)
    };
    let other = report(80, Concurrency, P2, "The queue is read without its mutex");
    let list = merge(&[member("gpt", vec![raised, other]), both]);
    let voices: Vec<usize> = list.findings.iter().map(|finding| finding.voices.len()).collect();
    assert_eq!(voices, [2, 1], "{list:?}");
    // It outweighs the record of the reviewer, like any report.
    let claim = report(41, Performance, P2, "The list is copied for each row");
    let quiet = || member("third", Vec::new());
    let late = holding("claude", &claim, SuppressionReason::Late);
    for (second, expected) in [(member("claude", Vec::new()), P3), (late, P2)] {
        let list = merge_with(&[member("gpt", vec![claim.clone()]), second, quiet()], &[], record(3, 24));
        assert_eq!(list.findings[0].priority, expected, "{list:?}");
    }
}

#[test]
fn a_report_is_compared_with_those_at_its_lines_only() {
    let reports: Vec<Finding> = (0..500).map(|number| report(number * 40 + 1, Correctness, P2, "Off by one")).collect();
    let longer = Finding { line_end: reports[7].line_end + 9, ..reports[7].clone() };
    let elsewhere = Finding { repo_relative_path: "src/other.rs".to_owned(), ..reports[7].clone() };
    let mut index = ReportIndex::new();
    for (at, report) in reports.iter().chain([&longer, &elsewhere]).enumerate() {
        index.insert(report, at);
    }
    for (at, report) in reports.iter().enumerate() {
        let near: BTreeSet<usize> = index.find_near(report).collect();
        let expected = if at == 7 { BTreeSet::from([7, reports.len()]) } else { BTreeSet::from([at]) };
        assert_eq!(near, expected);
    }
}

#[test]
fn fixed_against_still_there_is_disputed() {
    let known = report(41, Correctness, P2, "Off by one");
    let id = known.finding_id.clone();
    let claims = Member { fixed: vec![id.clone()], ..member("claude", Vec::new()) };
    let list = merge(&[member("gpt", vec![known]), claims.clone()]);
    let expected = Dispute::Fixed { fixed: vec!["claude".into()], standing: vec!["gpt".into()] };
    assert_eq!(list.findings[0].disputed, std::slice::from_ref(&expected));
    assert!(list.disputed_known.is_empty());
    // Nobody reports it, and one member saw it.
    let sees = Member { confirmed: vec![id.clone()], ..member("gpt", Vec::new()) };
    let list = merge(&[sees, claims.clone()]);
    assert_eq!(list.disputed_known, [(id, expected)]);
    assert!(merge(&[claims]).disputed_known.is_empty(), "nobody contradicts");
}

#[test]
fn a_known_id_wins_and_no_id_is_given_twice() {
    let (first, mut second) = (report(41, Concurrency, P1, KEPT), report(42, Concurrency, P2, HELD));
    second.explanation = String::new();
    let members = [member("gpt", vec![first.clone()]), member("claude", vec![second.clone()])];
    assert_eq!(merge(&members).findings[0].finding_id, first.finding_id);
    let list = merge_with(&members, &[&second.finding_id], |_, _| None);
    assert_eq!(
        (&list.findings[0].finding_id, &list.findings[0].title),
        (&second.finding_id, &second.title),
        "the id stays with its place and words"
    );
    assert_eq!(list.findings[0].priority, P1);
    let in_run = (members[0].run_id.clone(), first.finding_id.clone());
    assert_eq!(list.listed_as, BTreeMap::from([(in_run, second.finding_id.clone())]));
    let other_run = &members[1].run_id;
    assert_eq!(
        ListedIds::new(&list).find(other_run, &first.finding_id),
        second.finding_id,
        "it may name what it does not report"
    );
    // A record from elsewhere may have an id twice.
    let mut twin = report(80, Tests, P3, "The retry is not tested");
    (twin.finding_id, twin.detail_ref) = (first.finding_id.clone(), first.detail_ref.clone());
    let list = merge(&[member("gpt", vec![first.clone(), twin])]);
    let ids: HashSet<&FindingId> = list.findings.iter().map(|finding| &finding.finding_id).collect();
    assert_eq!(ids.len(), 2, "{list:?}");
    assert!(list.findings.iter().all(|finding| finding.detail_ref.ends_with(finding.finding_id.as_str())));
    assert_eq!(merge(&[]), OneList::default());
}

const TITLES: [&str; 8] = [
    "Unchecked index",
    "Index is unchecked",
    "Unchecked division",
    KEPT,
    HELD,
    "Result of `read` is ignored",
    "Result of `write` is ignored",
    "SQL injection through `name`",
];
const KINDS: [Kind; 5] = [Correctness, Concurrency, Security, Performance, Kind::ErrorHandling];

/// Facts of a random report: line, title, kind, priority, confidence, text.
type ReportFacts = (u32, usize, usize, usize, usize, bool);

fn build_report((line, title, kind, priority, confidence, has_text): ReportFacts) -> Finding {
    let mut report = report(line, KINDS[kind], Priority::ALL[priority], TITLES[title]);
    report.confidence = Confidence::ALL[confidence];
    if has_text {
        report.explanation = format!("It goes wrong for line {line}.");
    }
    report
}

fn build_members(reports: &[Vec<ReportFacts>]) -> Vec<Member> {
    let named = reports.iter().zip(["gpt", "claude", "builtin"]);
    named.map(|(facts, name)| member(name, facts.iter().copied().map(build_report).collect())).collect()
}

fn known_ids(members: &[Member]) -> Vec<FindingId> {
    let ids = members.iter().flat_map(|member| member.findings.iter().map(|finding| finding.finding_id.clone()));
    ids.step_by(3).collect()
}

fn merge_to_text(members: &[Member], known: &[FindingId]) -> String {
    let known: Vec<&FindingId> = known.iter().collect();
    let list = merge_with(members, &known, record(2, 40));
    let findings = serde_json::to_string(&list.findings).expect("findings");
    format!("{findings}\n{:?}\n{:?}", list.listed_as, list.disputed_known)
}

fn arbitrary_facts() -> impl Strategy<Value = Vec<Vec<ReportFacts>>> {
    let report = (1..30_u32, 0..TITLES.len(), 0..KINDS.len(), 0..4_usize, 0..3_usize, any::<bool>());
    prop::collection::vec(prop::collection::vec(report, 0..8), 1..4)
}

proptest! {
    #[test]
    fn the_list_does_not_depend_on_the_order_and_loses_nothing(
        facts in arbitrary_facts(),
        turns in prop::collection::vec(0..8_usize, 3),
        is_reversed in any::<bool>(),
    ) {
        let members = build_members(&facts);
        let known = known_ids(&members);
        let before = merge_to_text(&members, &known);
        let mut turned = members.clone();
        for (member, by) in turned.iter_mut().zip(&turns) {
            let by = by % member.findings.len().max(1);
            member.findings.rotate_left(by);
        }
        if is_reversed {
            turned.reverse();
        }
        prop_assert_eq!(merge_to_text(&turned, &known), before);
        let list = merge(&members);
        let mut voices: Vec<(&str, &str, &str, u32)> = list
            .findings
            .iter()
            .flat_map(|finding| &finding.voices)
            .map(|voice| (voice.reviewer.as_str(), voice.finding_id.as_str(), voice.title.as_str(), voice.line_start))
            .collect();
        let mut reports: Vec<(&str, &str, &str, u32)> = members
            .iter()
            .flat_map(|member| member.findings.iter().map(move |finding| (member.reviewer, finding)))
            .map(|(name, finding)| (name, finding.finding_id.as_str(), finding.title.as_str(), finding.line_start))
            .collect();
        voices.sort_unstable();
        reports.sort_unstable();
        prop_assert_eq!(voices, reports);
        let ids: HashSet<&FindingId> = list.findings.iter().map(|finding| &finding.finding_id).collect();
        prop_assert_eq!(ids.len(), list.findings.len(), "an id stands for one finding");
        for voice in list.findings.iter().flat_map(|finding| &finding.voices) {
            let listed = ListedIds::new(&list).find(&voice.run_id, &voice.finding_id);
            let is_same = |other: &Voice| (&other.run_id, &other.finding_id) == (&voice.run_id, &voice.finding_id);
            let is_found = |finding: &Finding| finding.finding_id == listed && finding.voices.iter().any(is_same);
            prop_assert!(list.findings.iter().any(is_found), "a report is found on the list under the id of its run");
        }
        let text = serde_json::to_string(&list.findings).expect("findings");
        let read: Vec<Finding> = serde_json::from_str(&text).expect("the same findings");
        prop_assert_eq!(read, list.findings);
    }
}
