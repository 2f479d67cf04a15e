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
                assert_eq!(list.find_listed(run, &base), base, "the id stays the one of the first problem: {list:?}");
            }
            let reported_as = &second.findings[0].finding_id;
            assert_eq!(list.find_listed(&second.run_id, reported_as), base.variant(1));
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
