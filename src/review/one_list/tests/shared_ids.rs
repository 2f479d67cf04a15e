//! Tests what becomes of different problems at the same code, whose reports have one id if their reviewers end together.

use super::*;

const INJECTION: &str = "SQL injection through `name`";
const PERMISSION: &str = "Any caller may delete: no permission is needed";

/// Returns a report about line 41 with the nth id of its code.
fn told(title: &str, variant: u32) -> Finding {
    let mut told = report(41, Security, P2, title);
    told.finding_id = FindingId::from_parts(Security.word(), PATH, &told.quoted_code, 0).variant(variant);
    told.detail_ref = format!("outputs/RUN.json#{}", told.finding_id);
    told
}

/// Returns the id, the title, and the reviewers of each finding.
fn outline(list: &OneList) -> Vec<(FindingId, String, Vec<String>)> {
    let mut outline: Vec<_> = list
        .findings
        .iter()
        .map(|found| {
            let reviewers: Vec<String> = found.voices.iter().map(|voice| voice.reviewer.clone()).collect();
            (found.finding_id.clone(), found.title.clone(), reviewers)
        })
        .collect();
    outline.sort_by(|one, other| one.1.cmp(&other.1));
    outline
}

#[test]
fn two_problems_with_one_id_are_the_findings_that_a_later_end_would_have_given() {
    let base = told(INJECTION, 0).finding_id;
    let first = member("claude", vec![told(PERMISSION, 0)]);
    for variant in [0, 1] {
        let second = member("gpt", vec![told(INJECTION, variant)]);
        for members in [[first.clone(), second.clone()], [second.clone(), first.clone()]] {
            let list = merge(&members);
            let expected = [
                (base.clone(), PERMISSION.to_owned(), vec!["claude".to_owned()]),
                (base.variant(1), INJECTION.to_owned(), vec!["gpt".to_owned()]),
            ];
            assert_eq!(outline(&list), expected, "{variant}");
            for found in &list.findings {
                assert_eq!(found.confidence, Confidence::Medium, "nobody agrees: {found:?}");
                assert!(found.detail_ref.ends_with(found.finding_id.as_str()), "{found:?}");
            }
            for run in [&first.run_id, &member("third", Vec::new()).run_id] {
                assert_eq!(
                    ListedIds::new(&list).find(run, &base),
                    base,
                    "the id stays the one of the first problem: {list:?}"
                );
            }
            let reported_as = &second.findings[0].finding_id;
            assert_eq!(ListedIds::new(&list).find(&second.run_id, reported_as), base.variant(1));
        }
    }
}

#[test]
fn who_agrees_about_one_of_two_problems_with_one_id_is_a_voice_of_that_one() {
    let base = told(INJECTION, 0).finding_id;
    let members = [
        member("claude", vec![told(INJECTION, 0)]),
        member("gpt", vec![told(PERMISSION, 0)]),
        member("third", vec![told(INJECTION, 0)]),
    ];
    let expected = [
        (base.variant(1), PERMISSION.to_owned(), vec!["gpt".to_owned()]),
        (base.clone(), INJECTION.to_owned(), vec!["claude".to_owned(), "third".to_owned()]),
    ];
    assert_eq!(outline(&merge(&members)), expected);
}

#[test]
fn a_second_problem_takes_no_id_of_another_finding() {
    let base = told(INJECTION, 0).finding_id;
    let members = [member("claude", vec![told(PERMISSION, 0)]), member("gpt", vec![told(INJECTION, 0)])];
    let list = merge_with(&members, &[&base.variant(1)], |_, _| None);
    assert_eq!(outline(&list)[1].0, base.variant(2), "an earlier run has found the other one");
    let elsewhere = Finding { finding_id: base.variant(1), ..report(90, Tests, P3, "The retry is not tested") };
    let members = [members[0].clone(), members[1].clone(), member("third", vec![elsewhere])];
    let ids: HashSet<FindingId> = merge(&members).findings.into_iter().map(|found| found.finding_id).collect();
    assert_eq!(ids, HashSet::from([base.clone(), base.variant(1), base.variant(2)]));
}

#[test]
fn what_was_said_about_an_id_holds_for_the_problem_that_keeps_it() {
    let base = told(INJECTION, 0).finding_id;
    let claims = Member { fixed: vec![base.clone()], ..member("third", Vec::new()) };
    let members = [member("claude", vec![told(PERMISSION, 0)]), member("gpt", vec![told(INJECTION, 0)]), claims];
    for found in merge_with(&members, &[&base], |_, _| None).findings {
        let is_disputed = found.disputed.iter().any(|dispute| matches!(dispute, Dispute::Fixed { .. }));
        assert_eq!(is_disputed, found.finding_id == base, "{found:?}");
    }
}

/// Returns the words of the report with this title, for an id that stands for it.
fn standing(title: &str, is_new: bool) -> StandingProblem {
    StandingProblem { title: title.to_owned(), explanation: told(title, 0).explanation, is_new }
}

/// Numbers of the ids of the permission, which `claude` reports, and of the injection, which `gpt` reports.
#[rstest]
#[case::together([0, 0])]
#[case::claude_first([0, 1])]
#[case::gpt_first([1, 0])]
#[case::after_a_problem_that_is_not_reported([1, 2])]
fn the_ids_of_two_problems_do_not_depend_on_who_ended_first(#[case] numbers: [u32; 2]) {
    let base = told(INJECTION, 0).finding_id;
    let members =
        [member("claude", vec![told(PERMISSION, numbers[0])]), member("gpt", vec![told(INJECTION, numbers[1])])];
    let known = if numbers.contains(&0) { Vec::new() } else { vec![&base] };
    let first = u32::try_from(known.len()).expect("a number");
    let list = merge_with(&members, &known, |_, _| None);
    let ids: Vec<FindingId> = outline(&list).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, [base.variant(first), base.variant(first + 1)]);
    for (member, id) in members.iter().zip(&ids) {
        assert_eq!(
            ListedIds::new(&list).find(&member.run_id, &member.findings[0].finding_id),
            *id,
            "{}",
            member.reviewer
        );
    }
}

/// Numbers of the ids as above, the problem about which somebody has decided, and the number of the id with the decision.
#[rstest]
#[case::together_about_the_first([0, 0], PERMISSION, 0)]
#[case::together_about_the_second([0, 0], INJECTION, 0)]
#[case::claude_first_about_its_own([0, 1], PERMISSION, 0)]
#[case::claude_first_about_the_later_one([0, 1], INJECTION, 1)]
#[case::gpt_first_about_its_own([1, 0], INJECTION, 0)]
#[case::gpt_first_about_the_later_one([1, 0], PERMISSION, 1)]
fn a_decision_stays_with_its_problem(#[case] numbers: [u32; 2], #[case] title: &str, #[case] decided: u32) {
    let base = told(INJECTION, 0).finding_id;
    let members =
        [member("claude", vec![told(PERMISSION, numbers[0])]), member("gpt", vec![told(INJECTION, numbers[1])])];
    let list = merge_standing(&members, &[(base.variant(decided), standing(title, true))]);
    let mut outline = outline(&list);
    outline.retain(|(_, listed, _)| listed == title);
    assert_eq!(outline.len(), 1, "{list:#?}");
    assert_eq!(outline[0].0, base.variant(decided));
    let ids: HashSet<&FindingId> = list.findings.iter().map(|finding| &finding.finding_id).collect();
    assert_eq!(ids, HashSet::from([&base, &base.variant(1)]));
}

#[test]
fn a_decision_goes_to_no_other_problem_although_nobody_reports_its_own() {
    let base = told(INJECTION, 0).finding_id;
    let members = [member("claude", vec![told(PERMISSION, 0)]), member("gpt", Vec::new())];
    let list = merge_standing(&members, &[(base.clone(), standing(INJECTION, true))]);
    assert_eq!(list.findings[0].finding_id, base.variant(1));
    assert_eq!(ListedIds::new(&list).find(&members[0].run_id, &base), base.variant(1));
    // Of an earlier run, the member itself has recognised the problem.
    let list = merge_standing(&members, &[(base.clone(), standing(INJECTION, false))]);
    assert_eq!(list.findings[0].finding_id, base);
}

/// True for the ids of the two reports that were known before the panel; the others are those about which somebody decides.
#[rstest]
#[case::the_first_was_known([true, false])]
#[case::the_second_was_known([false, true])]
#[case::both_are_decided([false, false])]
#[case::both_were_known([true, true])]
fn of_two_ids_that_stand_for_one_problem_the_other_one_leads_to_the_list(#[case] known: [bool; 2]) {
    // Two lines, and so two codes.
    let reports = [report(41, Concurrency, P1, KEPT), report(42, Concurrency, P2, HELD)];
    let mut members = vec![member("gpt", vec![reports[0].clone()]), member("claude", vec![reports[1].clone()])];
    let problem = |found: &Finding, is_known: bool| {
        let (title, explanation) = (found.title.clone(), found.explanation.clone());
        (found.finding_id.clone(), StandingProblem { title, explanation, is_new: !is_known })
    };
    let standing = [problem(&reports[0], known[0]), problem(&reports[1], known[1])];
    let list = merge_standing(&members, &standing);
    let [listed] = list.findings.as_slice() else { panic!("{list:#?}") };
    let other = reports.iter().find(|found| found.finding_id != listed.finding_id).expect("the other one");
    let moved = BTreeMap::from([(other.finding_id.clone(), Some(listed.finding_id.clone()))]);
    assert_eq!(list.moved_ids, moved, "{list:#?}");
    members.reverse();
    assert_eq!(merge_standing(&members, &standing), list);
}

#[test]
fn an_id_whose_problem_nobody_reports_leads_nowhere() {
    let base = told(INJECTION, 0).finding_id;
    let list =
        merge_standing(&[member("claude", vec![told(PERMISSION, 0)])], &[(base.clone(), standing(INJECTION, true))]);
    assert_eq!(list.moved_ids, BTreeMap::from([(base, None)]));
}

#[test]
fn an_earlier_list_of_the_same_reports_keeps_its_ids() {
    let base = told(INJECTION, 0).finding_id;
    let members = [member("claude", vec![told(PERMISSION, 0)]), member("gpt", vec![told(INJECTION, 0)])];
    // The earlier list had the injection first.
    let earlier = [(base.clone(), standing(INJECTION, false)), (base.variant(1), standing(PERMISSION, false))];
    let ids: Vec<FindingId> = outline(&merge_standing(&members, &earlier)).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, [base.variant(1), base]);
}

#[test]
fn the_ids_of_the_first_member_are_those_of_the_list() {
    let base = told(INJECTION, 0).finding_id;
    for numbers in [[0, 1], [1, 0]] {
        let members = [
            member("claude", vec![told(PERMISSION, numbers[0]), told(INJECTION, numbers[1])]),
            member("gpt", vec![told(INJECTION, 0)]),
        ];
        let ids: Vec<FindingId> = outline(&merge(&members)).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, numbers.map(|number| base.variant(number)));
    }
}
