//! Pairs of reports as a table, and these properties: a journal restores the state, no report is lost.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::domain::{Confidence, LineRange, Priority, RunEvent, Severity};
use crate::review::unit_engine::tests::finding;

/// Returns a finding whose id comes from its place, and which quotes a line of its own by default.
fn finding_titled(lines: (u32, u32), kind: Kind, title: &str) -> Finding {
    let mut told = finding("a.rs", lines.0, lines.1, 2);
    told.finding_id = FindingId::from_parts(kind.word(), "a.rs", &format!("line {}", lines.0), 0);
    (told.kind, told.title) = (kind, title.to_owned());
    told.quoted_code = format!("call_{}(argument);", lines.0);
    told
}

fn with_code(lines: (u32, u32), kind: Kind, title: &str, code: &str) -> Finding {
    Finding { quoted_code: code.to_owned(), ..finding_titled(lines, kind, title) }
}

use Kind::{Concurrency, Correctness, ErrorHandling, MissingErrorHandling, Security};

#[rstest]
#[case::overlapping(finding_titled((10, 20), Correctness, "Off by one"), finding_titled((15, 25), Correctness, "Wrong bound"), true)]
#[case::contained(finding_titled((10, 200), Correctness, "Off by one"), finding_titled((15, 15), Correctness, "Wrong bound"), true)]
#[case::contained_and_another_problem(finding_titled((10, 200), Correctness, "Off by one"), finding_titled((15, 15), Correctness, "Lock kept"), false)]
#[case::one_line_and_two_problems(finding_titled((10, 10), Security, "SQL injection through `name`"), finding_titled((10, 10), Security, "Any caller may delete: no permission is needed"), false)]
#[case::one_line_and_two_names(finding_titled((10, 10), Correctness, "`user` may be null"), finding_titled((10, 10), Correctness, "`account` may be null"), false)]
#[case::the_same_line_in_words_that_say_little(finding_titled((10, 10), Correctness, "Looks odd"), finding_titled((10, 10), Correctness, "Surprising"), true)]
#[case::overlapping_but_of_another_kind(finding_titled((10, 20), Correctness, "Off by one"), finding_titled((15, 25), Security, "Injection"), false)]
#[case::one_text_under_two_kinds(finding_titled((10, 20), Correctness, "Off by one"), finding_titled((10, 20), Security, "Off by one"), false)]
#[case::near_and_reworded(finding_titled((10, 12), Correctness, "Null check missing for user"), finding_titled((14, 14), Correctness, "User is not checked for null"), true)]
#[case::near_and_another_problem(finding_titled((10, 12), Correctness, "Null check missing for user"), finding_titled((14, 14), Correctness, "Wrong bound"), false)]
#[case::far_and_the_same_words(finding_titled((10, 12), Correctness, "Null check missing for user"), finding_titled((16, 16), Correctness, "Null check missing for user"), false)]
#[case::near_and_another_name(finding_titled((10, 10), Correctness, "Result of `read` ignored"), finding_titled((11, 11), Correctness, "Result of `write` ignored"), false)]
#[case::drifted(with_code((10, 10), Correctness, "Wrong bound", "x[i + 1]"), with_code((17, 17), Correctness, "Off by one", "x[i+1]"), true)]
#[case::drifted_too_far(with_code((10, 10), Correctness, "Wrong bound", "x[i + 1]"), with_code((30, 30), Correctness, "Off by one", "x[i+1]"), false)]
#[case::the_same_code_but_told_apart(with_code((10, 10), Correctness, "Result of `a` ignored", "next();"), with_code((12, 12), Correctness, "Result of `b` ignored", "next();"), false)]
#[case::twins(finding_titled((10, 12), MissingErrorHandling, "Error of read is ignored"), finding_titled((12, 12), ErrorHandling, "Ignored error on read"), true)]
#[case::twins_backwards(finding_titled((10, 12), ErrorHandling, "Error of read is ignored"), finding_titled((12, 12), MissingErrorHandling, "Ignored error on read"), true)]
#[case::twins_in_other_words(finding_titled((10, 12), MissingErrorHandling, "Error of read is ignored"), finding_titled((12, 12), ErrorHandling, "Panics on a closed pipe"), false)]
#[case::no_twins(finding_titled((10, 12), MissingErrorHandling, "Error of read is ignored"), finding_titled((12, 12), Concurrency, "Error of read is ignored"), false)]
#[case::another_file(finding_titled((10, 12), Correctness, "Off by one"), Finding { repo_relative_path: "b.rs".into(), ..finding_titled((10, 12), Correctness, "Off by one") }, false)]
fn pairs(#[case] one: Finding, #[case] mut other: Finding, #[case] same: bool) {
    if other.finding_id == one.finding_id {
        other.finding_id = FindingId::from_parts("OTHER", "b.rs", "x", 0);
    }
    for (first, second) in [(&one, &other), (&other, &one)] {
        let mut state = FindingAccumulator::default();
        assert_eq!(state.admit(first), Admission::New);
        assert_eq!(state.admit(second) != Admission::New, same);
        assert_eq!(state.len(), if same { 1 } else { 2 });
    }
}

#[test]
fn the_stronger_and_the_fuller_stay_whatever_the_order() {
    let mut alarmed = finding_titled((10, 12), Correctness, "Null check missing for user");
    (alarmed.priority, alarmed.severity, alarmed.confidence) = (Priority::P0, Severity::High, Confidence::Low);
    let mut full = finding_titled((12, 13), Correctness, "User is not checked for null");
    (full.priority, full.severity, full.confidence) = (Priority::P2, Severity::Critical, Confidence::High);
    full.explanation = "A guest has none.".into();
    let replacement = Suggestion { text: "Check it.".into(), replacement: Some("if user {}".into()), lines: None };
    full.suggestion = Some(replacement.clone());
    let mut results = Vec::new();
    for (first, second) in [(&alarmed, &full), (&full, &alarmed)] {
        let mut state = FindingAccumulator::default();
        state.admit(first);
        let admission = state.admit(second);
        let kept = state.findings().remove(0);
        assert_eq!(admission, Admission::Restated(Box::new(kept.clone())));
        assert_eq!(
            (&kept.finding_id, kept.lines(), &kept.quoted_code),
            (&first.finding_id, first.lines(), &first.quoted_code)
        );
        assert_eq!(
            (kept.priority, kept.severity, kept.confidence),
            (Priority::P0, Severity::Critical, Confidence::High)
        );
        assert_eq!(
            (kept.title.as_str(), kept.explanation.as_str()),
            ("User is not checked for null", "A guest has none.")
        );
        results.push(kept.suggestion);
        assert_eq!(state.admit(second), Admission::Repeated(first.finding_id.clone()));
        assert_eq!(state.admit(first), Admission::Repeated(first.finding_id.clone()));
    }
    let moved = Suggestion { lines: Some(LineRange::new(12, 13)), ..replacement.clone() };
    assert_eq!(results, [Some(moved), Some(replacement)]);
}

#[test]
fn reports_that_may_be_two_problems_at_one_place_keep_both_texts() {
    let mut odd = finding_titled((10, 12), Correctness, "Looks odd");
    odd.explanation = "Nobody would expect it.".into();
    let mut wrong = finding_titled((12, 12), Correctness, "Wrong in winter");
    (wrong.priority, wrong.severity) = (Priority::P0, Severity::Critical);
    let mut total = finding_titled((11, 11), Correctness, "Total is not what it says");
    total.explanation = "x".repeat(1_000);
    let mut state = FindingAccumulator::default();
    for each in [&odd, &wrong, &total, &odd, &wrong, &total] {
        state.admit(each);
    }
    let kept = state.findings().remove(0);
    assert_eq!((state.len(), kept.title.as_str()), (1, "Wrong in winter"), "the urgent one leads");
    let parts: Vec<&str> = kept.explanation.split(ALSO_HEADING).collect();
    let is_total = format!("Total is not what it says\n{}…", "x".repeat(MAX_ALSO_CHARS));
    assert_eq!(parts, ["", "Looks odd\nNobody would expect it.", is_total.as_str()]);
}

#[test]
fn clearly_different_problems_on_one_line_are_findings_of_their_own() {
    let titles = ["Wrong bound", "Lock kept over an await", "File handle leaks"];
    let again = ["Reads past the end", "Mutex is held too long", "Descriptor is never closed"];
    let mut state = FindingAccumulator::default();
    for (number, title) in titles.iter().chain(&again).enumerate() {
        let mut each = finding_titled((10, 10), Correctness, title);
        each.finding_id = FindingId::from_parts("X", "a.rs", &number.to_string(), 0);
        assert_eq!(state.admit(&each) == Admission::New, number < titles.len(), "{title}");
    }
    assert_eq!(state.len(), 3);
}

#[test]
fn two_reports_of_one_answer_are_two_findings_and_a_later_answer_repeats_them() {
    let told = |title: &str| {
        let mut told = finding_titled((10, 10), Correctness, title);
        told.finding_id = FindingId::from_parts("X", "a.rs", title, 0);
        told
    };
    let mut state = FindingAccumulator::default();
    state.begin_answer();
    for title in ["Password is logged", "Token never expires"] {
        assert_eq!(state.admit(&told(title)), Admission::New, "{title}");
    }
    state.begin_answer();
    assert_ne!(
        state.admit(&told("Credentials are exposed")),
        Admission::New,
        "concepts join the words of later answers"
    );
    assert_eq!(state.len(), 2);
}

#[test]
fn texts_stay_bounded() {
    let mut state = FindingAccumulator::default();
    for number in 0..200 {
        // A word of letters only: a number would be a name that tells the problems apart.
        let word: String = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'k')).collect();
        let mut each = finding_titled((1, 1 + number), Correctness, &format!("Looks {word} somehow"));
        each.finding_id = FindingId::from_parts("X", "a.rs", &number.to_string(), 0);
        each.explanation = format!("why{number} ").repeat(50);
        state.admit(&each);
    }
    assert_eq!(state.len(), 1);
    assert!(state.findings()[0].explanation.chars().count() <= MAX_EXPLANATION_CHARS);
}

#[test]
fn an_id_is_known_wherever_it_stands() {
    let mut state = FindingAccumulator::default();
    let first = finding_titled((10, 12), Correctness, "Off by one");
    state.admit(&first);
    let moved = Finding { line_start: 900, line_end: 901, ..first.clone() };
    assert_eq!(state.admit(&moved), Admission::Repeated(first.finding_id));
}

#[test]
fn a_report_is_held_against_its_neighbours_only() {
    let mut state = FindingAccumulator::default();
    let many = 10_000u32;
    let each = |number: u32| finding_titled((number * 2, number * 2), Correctness, &format!("Magic number {number}"));
    for number in 1..=many {
        assert_eq!(state.admit(&each(number)), Admission::New);
    }
    let held: usize =
        (1..=many).map(|number| state.findings_near(&each(number), Correctness, MAX_MOVED_DISTANCE).count()).sum();
    assert!(held <= 11 * many as usize, "{held}");
    let wide = finding_titled((1, u32::MAX), Correctness, "All of it");
    assert_eq!(state.findings_near(&wide, Correctness, MAX_MOVED_DISTANCE).count(), MAX_CANDIDATES);
    assert!(matches!(state.admit(&wide), Admission::Restated(_)));
}

#[test]
fn lines_that_are_none_do_no_harm() {
    let mut state = FindingAccumulator::default();
    for (start, end) in [(9, 2), (0, 0), (u32::MAX, 0), (1, u32::MAX), (3, 3)] {
        state.admit(&finding_titled((start, end), Correctness, "x"));
    }
    assert!(!state.is_empty());
}

prop_compose! {
    fn reports()(reports in prop::collection::vec((1..60u32, 0..6u32, 0..4usize, 0..6usize, 0..4u8, 0..3usize), 1..30)) -> Vec<Finding> {
        const KINDS: [Kind; 4] = [Correctness, ErrorHandling, MissingErrorHandling, Security];
        const TITLES: [&str; 6] = ["Null check missing for user", "User is not checked for null", "Lock is never released",
            "Result of `read` ignored", "Result of `write` ignored", "Wrong bound"];
        let code = ["x[i + 1]", "x[i+1]", "lock.take(all, of, them)"];
        reports.into_iter().enumerate().map(|(index, (line, more, kind, title, priority, text))| {
            let mut each = finding_titled((line, line + more), KINDS[kind], TITLES[title]);
            each.finding_id = FindingId::from_parts(KINDS[kind].word(), "a.rs", &format!("{line} {}", index % 7), 0);
            each.priority = Priority::try_from(priority).unwrap_or(Priority::P3);
            each.explanation = "Because of it. ".repeat(text);
            each.quoted_code = code[text].to_owned();
            each
        }).collect()
    }
}

/// Returns the state after the findings and restatements of a journal, in order.
fn replay(journal: &[RunEvent]) -> FindingAccumulator {
    let mut state = FindingAccumulator::default();
    for event in journal {
        match event {
            RunEvent::Finding { finding } => state.add_known(finding),
            RunEvent::Restated { finding, .. } => state.replace(finding),
            _ => {}
        }
    }
    state
}

proptest! {
    #[test]
    fn a_journal_brings_the_state_back(reports in reports()) {
        let (mut state, mut journal) = (FindingAccumulator::default(), Vec::new());
        for report in &reports {
            match state.admit(report) {
                Admission::New => journal.push(RunEvent::Finding { finding: Box::new(report.clone()) }),
                Admission::Restated(finding) => journal.push(RunEvent::Restated { turn: 1, finding }),
                Admission::Repeated(_) => {}
            }
            prop_assert_eq!(&replay(&journal), &state);
        }
    }

    #[test]
    fn a_report_that_was_just_told_says_nothing_new(reports in reports()) {
        let mut state = FindingAccumulator::default();
        for report in &reports {
            state.admit(report);
            let before = state.clone();
            prop_assert!(matches!(state.admit(report), Admission::Repeated(_)), "{:?}", report);
            prop_assert_eq!(&state, &before);
        }
    }

    #[test]
    fn nothing_reported_is_lost_or_made_weaker(reports in reports()) {
        let mut state = FindingAccumulator::default();
        let mut stands_for: Vec<(FindingId, &Finding)> = Vec::new();
        for report in &reports {
            let id = match state.admit(report) {
                Admission::New => report.finding_id.clone(),
                Admission::Restated(finding) => finding.finding_id,
                Admission::Repeated(id) => id,
            };
            stands_for.push((id, report));
        }
        prop_assert_eq!(state.findings().len(), state.len());
        for (id, report) in stands_for {
            let kept = state.iter().find(|known| known.finding_id == id).expect("a finding that stands for the report");
            prop_assert!(kept.priority <= report.priority && kept.severity >= report.severity);
        }
        // Two findings of one kind share a line only if their words clearly describe two problems.
        for one in state.iter() {
            for other in state.iter().filter(|other| other.finding_id != one.finding_id && other.kind == one.kind) {
                let words = |finding: &Finding| FindingWords::from_finding(finding, main_explanation(&finding.explanation));
                let is_separate = words(one).compare(&words(other)).distinct.separates(one, other);
                prop_assert!(is_separate || !one.lines().overlaps(other.lines()), "{:?} {:?}", one, other);
            }
        }
    }
}
