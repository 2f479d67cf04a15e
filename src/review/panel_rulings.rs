//! Applies second opinions on findings of a panel's list.
//!
//! - A verdict never removes a finding: one that is called false is lower in the list, with the reason.
//! - Problems of kinds that are [never lowered](crate::domain::Kind::is_never_lowered) keep their priority.

use serde::Deserialize;

use crate::domain::{Confidence, Finding, FindingStep, Opinion, Priority, text};

/// Longest reason that is kept, in characters. Not from the literature: two sentences.
const MAX_REASON_CHARS: usize = 400;

/// Verdict about one finding of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Number of the finding in the request, from 1.
    pub number: usize,
    pub opinion: Opinion,
    /// Priority that the reviewer would give a real problem.
    pub priority: Option<Priority>,
    /// On one line; may be empty.
    pub reason: String,
}

#[derive(Deserialize)]
struct RulingAnswer {
    #[serde(default)]
    number: usize,
    #[serde(default)]
    verdict: String,
    #[serde(default)]
    priority: Option<u8>,
    #[serde(default)]
    reason: String,
}

/// Parses the verdicts of an answer about `count` findings, each number once, in the order of the numbers. Text around
/// the JSON is skipped, and so are entries that name no finding of the request or give no verdict.
pub fn parse_rulings(said: &str, count: usize) -> Vec<Ruling> {
    let array = said.find('[').zip(said.rfind(']')).and_then(|(from, to)| said.get(from..=to));
    let entries: Vec<serde_json::Value> = array.and_then(|array| serde_json::from_str(array).ok()).unwrap_or_default();
    let mut rulings: Vec<Ruling> = Vec::new();
    for answer in entries.into_iter().filter_map(|entry| serde_json::from_value::<RulingAnswer>(entry).ok()) {
        let is_new = rulings.iter().all(|ruling| ruling.number != answer.number);
        let has_verdict = !answer.verdict.trim().is_empty();
        if (1..=count).contains(&answer.number) && is_new && has_verdict {
            rulings.push(Ruling {
                number: answer.number,
                opinion: match answer.verdict.trim().to_ascii_lowercase().as_str() {
                    "real" | "true" => Opinion::Real,
                    "false" => Opinion::False,
                    _ => Opinion::Unsure,
                },
                priority: answer.priority.and_then(|priority| Priority::try_from(priority).ok()),
                reason: text::sanitize_line(&answer.reason).chars().take(MAX_REASON_CHARS).collect(),
            });
        }
    }
    rulings.sort_by_key(|ruling| ruling.number);
    rulings
}

/// Applies the verdict of `by` to a finding:
///
/// | verdict | priority | confidence |
/// |---|---|---|
/// | real | the one that the reviewer gives, else unchanged | high |
/// | false | one step less urgent, unless the kind is never lowered | low |
/// | unsure | unchanged | unchanged |
pub fn apply_ruling(finding: &mut Finding, by: &str, ruling: &Ruling) {
    let from = finding.priority;
    match ruling.opinion {
        Opinion::Real => {
            let given = ruling.priority.unwrap_or(from);
            // A problem that may be serious is never made less urgent.
            finding.priority = if finding.kind.is_never_lowered() { given.min(from) } else { given };
            finding.confidence = Confidence::High;
        }
        Opinion::False => {
            if !finding.kind.is_never_lowered() {
                finding.priority = Priority::ALL.get(from.index() + 1).copied().unwrap_or(from);
            }
            finding.confidence = Confidence::Low;
        }
        Opinion::Unsure => {}
    }
    finding.steps.push(FindingStep::Ruled {
        by: by.to_owned(),
        opinion: ruling.opinion,
        reason: ruling.reason.clone(),
        from,
        to: finding.priority,
    });
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{Dispute, Kind, PanelOpinion, Voice};
    use crate::review::unit_engine::tests::finding;

    #[test]
    fn verdicts_are_taken_out_of_what_a_model_says() {
        let said = "Here: ```json\n{\"rulings\": [{\"number\": 2, \"verdict\": \"FALSE\", \"reason\": \"the\\nlock is held\"}, \
                    {\"number\": 1, \"verdict\": \"real\", \"priority\": 1}, {\"number\": 1, \"verdict\": \"false\"}, \
                    {\"number\": 9, \"verdict\": \"real\"}, {\"number\": 3, \"verdict\": \"perhaps\", \"priority\": 7}, 5]}```";
        let rulings = parse_rulings(said, 3);
        let brief: Vec<(usize, Opinion, Option<Priority>)> =
            rulings.iter().map(|ruling| (ruling.number, ruling.opinion, ruling.priority)).collect();
        let expected = [(1, Opinion::Real, Some(Priority::P1)), (2, Opinion::False, None), (3, Opinion::Unsure, None)];
        assert_eq!(brief, expected);
        assert!(!rulings[1].reason.contains('\n') && rulings[1].reason.contains("lock"));
        for nothing in ["", "] [", "no", "[", "{\"rulings\": 5}", "[{\"number\": 1, \"reason\": \"so\"}]"] {
            assert!(parse_rulings(nothing, 3).is_empty(), "{nothing}");
        }
    }

    #[rstest]
    #[case::real(Kind::Performance, Opinion::Real, Some(0), (0, Confidence::High))]
    #[case::real_and_less_urgent(Kind::Performance, Opinion::Real, Some(3), (3, Confidence::High))]
    #[case::real_and_serious(Kind::Security, Opinion::Real, Some(3), (2, Confidence::High))]
    #[case::real_without_priority(Kind::Performance, Opinion::Real, None, (2, Confidence::High))]
    #[case::false_alarm(Kind::Performance, Opinion::False, Some(0), (3, Confidence::Low))]
    #[case::false_and_serious(Kind::Security, Opinion::False, None, (2, Confidence::Low))]
    #[case::unsure(Kind::Performance, Opinion::Unsure, Some(0), (2, Confidence::Medium))]
    fn a_verdict_moves_a_finding_and_never_removes_it(
        #[case] kind: Kind,
        #[case] opinion: Opinion,
        #[case] priority: Option<u8>,
        #[case] expected: (u8, Confidence),
    ) {
        let mut judged = finding("a.rs", 1, 2, 2);
        (judged.kind, judged.confidence) = (kind, Confidence::Medium);
        let priority = priority.map(|priority| Priority::try_from(priority).expect("a priority"));
        apply_ruling(&mut judged, "dear", &Ruling { number: 1, opinion, priority, reason: "so".into() });
        assert_eq!((judged.priority as u8, judged.confidence), expected);
        let said = judged.steps.last().expect("a step").to_string();
        assert!(said.starts_with("dear ") && said.ends_with(": so"), "{said}");
    }

    #[test]
    fn a_claim_that_nobody_else_makes_is_the_own_one_of_its_reviewer() {
        let judge = PanelOpinion::parse("one", "p0").expect("an opinion");
        for (reviewers, expected) in [
            (&[""; 0][..], false),
            (&["one"][..], true),
            (&["one", "one"][..], true),
            (&["two"][..], false),
            (&["one", "two"][..], false),
            (&["one", Voice::SECRET_SCAN][..], false),
        ] {
            let mut claimed = finding("a.rs", 1, 2, 0);
            let voice = |reviewer: &&str| Voice {
                reviewer: (*reviewer).to_owned(),
                run_id: claimed.last_run_id.clone(),
                finding_id: claimed.finding_id.clone(),
                priority: claimed.priority,
                confidence: claimed.confidence,
                kind: claimed.kind,
                title: claimed.title.clone(),
                explanation: String::new(),
                line_start: claimed.line_start,
                line_end: claimed.line_end,
                held_back: None,
            };
            let voices = reviewers.iter().map(voice).collect();
            claimed.voices = voices;
            assert_eq!(judge.is_own_claim(&claimed), expected, "{reviewers:?}");
        }
    }

    #[rstest]
    #[case::real(Opinion::Real, false)]
    #[case::false_alarm(Opinion::False, false)]
    #[case::unsure(Opinion::Unsure, true)]
    fn a_verdict_settles_a_dispute(#[case] opinion: Opinion, #[case] is_asked: bool) {
        let judge = PanelOpinion::parse("judge", "disputed").expect("an opinion");
        let mut disputed = finding("a.rs", 1, 2, 2);
        disputed.disputed = vec![Dispute::Priority { most: Priority::P0, least: Priority::P3 }];
        assert!(judge.concerns(&disputed));
        apply_ruling(&mut disputed, "dear", &Ruling { number: 1, opinion, priority: None, reason: String::new() });
        assert_eq!(judge.concerns(&disputed), is_asked);
    }
}
