//! Tests what becomes of secrets that revdeck's own search found in the runs of models.

use super::*;

const SECRET: &str = "A secret for `API_KEY` stands in the code: …(38 characters)";

/// Returns what the built-in reviewer says about the secret.
fn built_in() -> Finding {
    report(41, Kind::HardcodedConfiguration, P1, SECRET)
}

/// Returns what the search finds in the run of each model.
fn scanned() -> Finding {
    Finding { steps: vec![FindingStep::Scanned], ..built_in() }
}

/// Returns a model's report of the secret.
fn told(priority: Priority) -> Finding {
    report(41, Kind::HardcodedConfiguration, priority, "A secret for `API_KEY` stands in the code")
}

/// Returns a model's report that the search made as urgent as the secret.
fn raised(from: Priority) -> Finding {
    Finding { priority: P1, steps: vec![FindingStep::Raised { from, to: P1 }], ..told(from) }
}

#[test]
fn what_the_search_for_secrets_finds_is_one_voice_and_no_agreement() {
    let quiet = || member("third", Vec::new());
    let raise = "raised from p3 to p1: revdeck's own search for secrets finds it, too";
    let found = "found by revdeck's own search for secrets, not by a reviewer";
    let agree = "2 of 3 reviewers agree: confidence raised from medium to high";
    let ranked = "priority p2: the most urgent of p2, p3";
    let raise_ranked = "raised from p2 to p1: revdeck's own search for secrets finds it, too";
    type Voices = &'static [(&'static str, Priority)];
    let cases: [(&str, Vec<Member>, Voices, &[&str]); 6] = [
        (
            "no model says anything",
            vec![member("gpt", vec![scanned()]), member("claude", vec![scanned()]), quiet()],
            &[("revdeck", P1)],
            &[found],
        ),
        (
            "a model plays it down",
            vec![member("gpt", vec![raised(P3)]), member("claude", vec![scanned()]), quiet()],
            &[("gpt", P3), ("revdeck", P1)],
            &[raise],
        ),
        ("nobody else looked", vec![member("gpt", vec![raised(P3)])], &[("gpt", P3)], &[raise]),
        (
            "two models play it down",
            vec![member("gpt", vec![raised(P3)]), member("claude", vec![raised(P2)]), quiet()],
            &[("claude", P2), ("gpt", P3)],
            &[agree, ranked, raise_ranked],
        ),
        (
            "two models say the same, and it is found in the run of a third",
            vec![member("gpt", vec![told(P1)]), member("claude", vec![told(P1)]), member("third", vec![scanned()])],
            &[("claude", P1), ("gpt", P1), ("revdeck", P1)],
            &[agree],
        ),
        (
            "the built-in reviewer reports it",
            vec![member("builtin", vec![built_in()]), member("claude", vec![scanned()])],
            &[("builtin", P1)],
            &[],
        ),
    ];
    for (name, members, voices, steps) in cases {
        for members in [members.clone(), members.into_iter().rev().collect()] {
            let list = merge(&members);
            let [merged] = list.findings.as_slice() else { panic!("{name}: {list:#?}") };
            let said: Vec<(&str, Priority)> =
                merged.voices.iter().map(|voice| (voice.reviewer.as_str(), voice.priority)).collect();
            assert_eq!(said, voices, "{name}");
            let followed: Vec<String> = merged.steps.iter().map(ToString::to_string).collect();
            assert_eq!(followed, steps, "{name}");
            assert_eq!(merged.priority, P1, "{name}");
            assert!(merged.disputed.is_empty(), "{name}: {merged:#?}");
            let voices: HashSet<&FindingId> = merged.voices.iter().map(|voice| &voice.finding_id).collect();
            let reports = members.iter().flat_map(|member| &member.findings);
            let reports: HashSet<&FindingId> = reports.map(|finding| &finding.finding_id).collect();
            assert_eq!(voices, reports, "{name}: each id is a voice");
        }
    }
}

#[test]
fn members_whose_own_priorities_are_far_apart_dispute_although_the_search_raised_one() {
    let list = merge(&[member("gpt", vec![told(P0)]), member("claude", vec![raised(P3)])]);
    let [merged] = list.findings.as_slice() else { panic!("{list:#?}") };
    assert_eq!(merged.disputed, [Dispute::Priority { most: P0, least: P3 }]);
    assert_eq!(merged.priority, P0);
}

#[test]
fn a_secret_that_a_member_calls_fixed_is_disputed_by_the_search() {
    let fixed = Member { fixed: vec![scanned().finding_id], ..member("claude", Vec::new()) };
    let list = merge(&[member("gpt", vec![scanned()]), fixed]);
    let expected = Dispute::Fixed { fixed: vec!["claude".into()], standing: vec!["revdeck".into()] };
    assert_eq!(list.findings[0].disputed, [expected]);
}

#[test]
fn a_member_that_describes_the_secret_has_the_words_and_the_search_makes_it_surer() {
    let told = Finding { confidence: Confidence::Low, ..told(P1) };
    let sure = Finding { confidence: Confidence::High, ..scanned() };
    let backed = "confidence raised from low to high: revdeck's own search for secrets finds it, too";
    for (name, known, id) in [
        ("nothing is known", vec![], &told.finding_id),
        ("the member's report is known", vec![&told.finding_id], &told.finding_id),
        ("what the search found is known", vec![&sure.finding_id], &sure.finding_id),
    ] {
        // The search finds the same in two other runs.
        let members = [
            member("gpt", vec![told.clone()]),
            member("claude", vec![sure.clone()]),
            member("third", vec![sure.clone()]),
        ];
        let list = merge_with(&members, &known, |_, _| None);
        let [merged] = list.findings.as_slice() else { panic!("{name}: {list:#?}") };
        assert_eq!(&merged.finding_id, id, "{name}");
        assert_eq!((&merged.title, merged.own_voice()), (&told.title, Some(0)), "{name}");
        assert_eq!(merged.confidence, Confidence::High, "{name}");
        let steps: Vec<String> = merged.steps.iter().map(ToString::to_string).collect();
        assert_eq!(steps, [backed], "{name}");
    }
}
