//! Validates reports against a file of a hundred lines, as a table.

use rstest::rstest;

use super::*;
use crate::domain::{Kind, Suggestion, anchors::Anchors};

/// Returns `let v1 = 1;` to `let v100 = 100;`, with equal lines at 40 and 60.
fn code() -> String {
    let line = |number: u32| match number {
        40 | 60 => "    repeated(here);\n".to_owned(),
        _ => format!("    let v{number} = {number};\n"),
    };
    (1..=100).map(line).collect()
}

fn report(lines: (u32, u32), quote: &str) -> ReportedProblem {
    ReportedProblem {
        path: "src/a.rs".into(),
        line_start: lines.0,
        line_end: lines.1,
        kind: Kind::Correctness,
        severity: None,
        priority: None,
        confidence: Some(Confidence::High),
        title: "It breaks".into(),
        explanation: "Because of src/a.rs.".into(),
        quoted_code: quote.into(),
        suggestion: String::new(),
        replacement: None,
        replaced: None,
    }
}

fn scope() -> ScopeLines {
    ScopeLines::new([("src/a.rs".to_owned(), vec![LineRange::new(58, 65), LineRange::new(30, 31)])])
        .with_roots(["/repo".to_owned()])
}

fn validate_sample(report: &ReportedProblem) -> ReportValidation {
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
    let files = [("src/a.rs", code()), ("src/other.rs", code()), ("empty.rs", String::new())];
    validate_report(report, &scope(), &run, |path| {
        let (_, text) = files.iter().find(|(known, _)| *known == path)?;
        Some(Rc::new(FileText::new(text.as_bytes())))
    })
}

fn expect_finding(report: &ReportedProblem) -> (Finding, Vec<String>) {
    match validate_sample(report) {
        ReportValidation::Finding { finding, notes } => (*finding, notes),
        ReportValidation::Rejected(rejected) => panic!("{}", rejected.reason),
    }
}

/// A value that breaks off leaves an object that names only a file and a kind.
#[rstest]
#[case::line_breaks_off(r#"{"findings":[{"path":"src/a.rs","line_start": ]}]}"#)]
#[case::only_marks(r#"{"findings":[{"path":"src/a.rs","line_start":30,"title":" ## ","explanation":"**"}]}"#)]
#[case::only_code(r#"{"findings":[{"path":"src/a.rs","type":"security","quoted_code":"let v30 = 30;"}]}"#)]
fn a_report_without_words_is_rejected(#[case] answer: &str) {
    let response = crate::domain::ChatResponse {
        text: answer.to_owned(),
        calls: Vec::new(),
        opaque: Vec::new(),
        stop: crate::domain::StopReason::Done,
        usage: crate::domain::Usage::default(),
        model: String::new(),
    };
    let reports = crate::review::extract_reports(&response).reports;
    let [report] = reports.as_slice() else { panic!("{reports:?}") };
    match validate_sample(report) {
        ReportValidation::Rejected(rejected) => {
            assert_eq!(rejected.reason, "it has neither a title nor an explanation");
            assert!(!rejected.report.title.is_empty());
        }
        ReportValidation::Finding { finding, .. } => panic!("{finding:?}"),
    }
}

#[rstest]
#[case::there((10, 10), "let v10 = 10;", (10, 10), Confidence::High)]
#[case::a_part_of_a_larger_place((8, 30), "let v10 = 10;", (8, 30), Confidence::High)]
#[case::a_part_that_would_not_be_shown((8, 30), "let v25 = 25;", (25, 25), Confidence::High)]
#[case::a_place_within_the_quote((11, 11), "let v10 = 10;\nlet v11 = 11;", (11, 11), Confidence::High)]
#[case::off_by_one((11, 12), "let v10 = 10;\nlet v11 = 11;", (10, 11), Confidence::High)]
#[case::moved((90, 91), "let v10 = 10;\nlet v11 = 11;", (10, 11), Confidence::High)]
#[case::moved_beyond_the_end((900, 901), "let v10 = 10;", (10, 10), Confidence::High)]
#[case::the_nearest((55, 55), "repeated(here);", (60, 60), Confidence::Medium)]
#[case::one_of_two_at_its_lines((40, 40), "repeated(here);", (40, 40), Confidence::High)]
#[case::one_of_two_that_was_changed((0, 0), "repeated(here);", (60, 60), Confidence::High)]
#[case::only_a_line_of_it((90, 91), "let v100 = 100;\nlet w = 0;", (100, 100), Confidence::Medium)]
#[case::no_quote((10, 12), "", (10, 12), Confidence::Medium)]
#[case::no_quote_to_speak_of((10, 12), " }\n", (10, 12), Confidence::Medium)]
#[case::an_end_beyond_the_end((99, 120), "", (99, 100), Confidence::Medium)]
#[case::the_whole_file((0, 0), "", (30, 30), Confidence::Low)]
fn places(#[case] lines: (u32, u32), #[case] quote: &str, #[case] expected: (u32, u32), #[case] sure: Confidence) {
    let (finding, notes) = expect_finding(&report(lines, quote));
    assert_eq!((finding.line_start, finding.line_end), expected);
    assert_eq!((finding.confidence, notes.as_slice()), (sure, [].as_slice()));
    assert!(finding.quoted_code.starts_with(code().lines().nth(expected.0 as usize - 1).expect("a line")));
    assert!(finding.quoted_code.lines().count() <= Finding::MAX_QUOTE_LINES);
}

#[test]
fn places_that_are_too_long_are_cut() {
    let text = "    let x = 1;\n".repeat(1_000) + "let y = 2;\n";
    let file = FileText::new(text.as_bytes());
    let hunks = [LineRange::new(500, 510), LineRange::new(300, 900)];
    let lines = |claimed: (u32, u32), quote: &str, hunks: &[LineRange]| {
        locate_problem(&report(claimed, quote), &file, "a.rs", Some(hunks))
            .map(|place| (place.lines.start, place.lines.end))
    };
    assert_eq!(lines((1, 1_001), "let y = 2;", &hunks), Ok((1_001, 1_001)));
    assert_eq!(lines((1, 1_001), "", &hunks), Ok((300, 499)));
    assert_eq!(lines((1, 1_001), "", &[]), Ok((1, 1)));
    assert_eq!(lines((2, u32::MAX), "", &[]), Ok((2, 2)));
    assert_eq!(lines((1, 200), "", &[]), Ok((1, 200)));
    assert_eq!(lines((1, 1), &"let x = 1;\n".repeat(300), &[]), Ok((1, 1)));
    assert_eq!(lines((0, 0), &"let x = 1;\n".repeat(300), &[]), Ok((1, 200)));
}

#[rstest]
#[case::no_path("", (1, 1), "", "it names no file")]
#[case::elsewhere("/etc/passwd", (1, 1), "", "/etc/passwd is not in the repository")]
#[case::upwards("../a.rs", (1, 1), "", "../a.rs leads out of the repository")]
#[case::no_such_file("src/b.rs", (1, 1), "", "src/b.rs is not in the snapshot")]
#[case::an_empty_file("empty.rs", (1, 1), "", "empty.rs is empty")]
#[case::beyond_the_end("src/a.rs", (101, 101), "", "line 101 is beyond the end of src/a.rs at line 100")]
#[case::a_made_up_quote("src/a.rs", (10, 10), "let made_up = true;", "the quoted code does not stand in src/a.rs")]
#[case::no_line("src/other.rs", (0, 0), "", "it names no line and quotes no code of src/other.rs, which is not changed")]
fn reports_that_do_not_hold(#[case] path: &str, #[case] lines: (u32, u32), #[case] quote: &str, #[case] reason: &str) {
    let report = ReportedProblem { path: path.into(), ..report(lines, quote) };
    let reason = reason.to_owned();
    assert_eq!(validate_sample(&report), ReportValidation::Rejected(RejectedReport { report, reason }));
}

#[rstest]
#[case("", "It breaks", false)]
#[case("Something else.", "It breaks", false)]
#[case("Its only caller, in src/a.rs, changed.", "It breaks", true)]
#[case("", "`a.rs` passes null", true)]
fn a_file_that_is_not_changed_needs_a_reason(#[case] explanation: &str, #[case] title: &str, #[case] holds: bool) {
    let mut report = report((10, 10), "let v10 = 10;");
    (report.path, report.explanation, report.title) = ("src/other.rs".into(), explanation.into(), title.into());
    let reason = "src/other.rs is not changed, and the report names nothing that is";
    match validate_sample(&report) {
        ReportValidation::Finding { finding, .. } => assert!(holds, "{finding:?}"),
        ReportValidation::Rejected(rejected) => assert_eq!((holds, rejected.reason.as_str()), (false, reason)),
    }
}

#[rstest]
#[case("./src/a.rs")]
#[case("b/src/a.rs")]
#[case("/repo/src/a.rs")]
#[case("a.rs")]
fn paths_are_those_of_the_repository(#[case] path: &str) {
    let reported = ReportedProblem { path: path.into(), ..report((10, 10), "") };
    assert_eq!(expect_finding(&reported).0.repo_relative_path, "src/a.rs");
}

#[rstest]
#[case(None, None, Priority::P2, Severity::Medium)]
#[case(Some(Priority::P0), None, Priority::P0, Severity::Critical)]
#[case(None, Some(Severity::High), Priority::P1, Severity::High)]
#[case(None, Some(Severity::Low), Priority::P3, Severity::Low)]
#[case(Some(Priority::P3), Some(Severity::High), Priority::P3, Severity::High)]
fn what_is_missing_follows(
    #[case] priority: Option<Priority>,
    #[case] severity: Option<Severity>,
    #[case] soon: Priority,
    #[case] bad: Severity,
) {
    let (finding, _) =
        expect_finding(&ReportedProblem { priority, severity, confidence: None, ..report((10, 10), "let v10 = 10;") });
    assert_eq!((finding.priority, finding.severity, finding.confidence), (soon, bad, Confidence::Medium));
}

/// The ids equal those of the built-in reviewer for a one-line anchor.
#[test]
fn ids_are_those_of_the_built_in_reviewer() {
    let text = code();
    let mut anchors = Anchors::new(text.as_bytes());
    for (line, ordinal) in [(10, 0), (40, 0), (60, 1)] {
        let expected = FindingId::from_parts("CORRECTNESS", "src/a.rs", &anchors.identity((line, line)), ordinal);
        let quoted = text.lines().nth(line as usize - 1).expect("a line");
        for lines in [(line, line), (line, line + 3), (line - 1, line)] {
            assert_eq!(expect_finding(&report(lines, quoted)).0.finding_id, expected, "{lines:?}");
        }
        let (without_quote, _) = expect_finding(&report((line, line), ""));
        assert_eq!((without_quote.finding_id, without_quote.quoted_code), (expected, anchors.quote((line, line))));
    }
}

fn suggestion(text: &str, replacement: Option<&str>, lines: Option<(u32, u32)>) -> Option<Suggestion> {
    let lines = lines.map(|(start, end)| LineRange { start, end });
    Some(Suggestion { text: text.into(), replacement: replacement.map(str::to_owned), lines })
}

#[rstest]
#[case::words((10, 10), "let v10 = 10;", "Do it.", None, None, suggestion("Do it.", None, None), "")]
#[case::its_own_lines((10, 10), "let v10 = 10;", "Do it.", Some("x();"), None, suggestion("Do it.", Some("x();"), None), "")]
#[case::no_words((10, 11), "let v10 = 10;", "", Some("x();"), None, suggestion("Replace lines 10 to 11.", Some("x();"), None), "")]
#[case::removed((10, 10), "let v10 = 10;", "", Some(""), None, suggestion("Remove line 10.", Some(""), None), "")]
#[case::other_lines((10, 10), "let v10 = 10;", "Do.", Some("x();"), Some((12, 13)), suggestion("Do.", Some("x();"), Some((12, 13))), "")]
#[case::moved((20, 20), "let v10 = 10;", "Do.", Some("x();"), None, suggestion("Do.", Some("x();"), None), "")]
#[case::moved_other_lines((20, 20), "let v10 = 10;", "Do.", Some("x();"), Some((22, 23)), suggestion("Do.", Some("x();"), Some((12, 13))), "")]
#[case::pinned_to_a_part((8, 30), "let v25 = 25;", "Do.", Some("x();"), None, suggestion("Do.", Some("x();"), Some((8, 30))), "")]
#[case::moved_and_of_another_length((20, 24), "let v10 = 10;", "Do.", Some("x();"), None, suggestion("Do.", None, None), "the replacement is dropped: it cannot be told which lines it is for")]
#[case::beyond_the_end((10, 10), "let v10 = 10;", "Do.", Some("x();"), Some((99, 101)), suggestion("Do.", None, None), "the replacement is dropped: lines 99 to 101 are not in the file, which has 100")]
#[case::the_same((10, 10), "let v10 = 10;", "", Some("    let v10 = 10;\n"), None, None, "the replacement is dropped: it is what stands there")]
#[case::nothing((10, 10), "let v10 = 10;", "", None, None, None, "")]
#[case::one_line_of_a_longer_quote((10, 10), "let v10 = 10;\nlet v11 = 11;", "Do.", Some("x();"), None, suggestion("Do.", Some("x();"), None), "")]
#[case::more_lines_than_claimed((10, 10), "let v10 = 10;\nlet v11 = 11;", "Do.", Some("x();\ny();"), None, suggestion("Do.", None, None), "the replacement is dropped: it cannot be told which lines it is for")]
#[case::a_block_of_its_own((10, 10), "let v10 = 10;", "```suggestion\nx();\n```", Some("x();\n"), None, suggestion("Replace line 10.", Some("x();\n"), None), "")]
#[case::a_block_with_tabs((10, 10), "let v10 = 10;", "Do.\n```suggestion\n    x();\n```", Some("\tx();\n"), None, suggestion("Do.", Some("\tx();\n"), None), "")]
#[case::a_block_that_does_not_fit((10, 10), "let v10 = 10;", "Do.\n```suggestion\nx();\n```", Some("x();\n"), Some((99, 101)), suggestion("Do.\n```suggestion\nx();\n```", None, None), "the replacement is dropped: lines 99 to 101 are not in the file, which has 100")]
#[case::another_block((10, 10), "let v10 = 10;", "```suggestion\ny();\n```", Some("x();\n"), None, suggestion("```suggestion\ny();\n```", Some("x();\n"), None), "")]
fn suggestions(
    #[case] lines: (u32, u32),
    #[case] quote: &str,
    #[case] text: &str,
    #[case] replacement: Option<&str>,
    #[case] replaced: Option<(u32, u32)>,
    #[case] expected: Option<Suggestion>,
    #[case] note: &str,
) {
    let mut report = report(lines, quote);
    report.suggestion = text.into();
    report.replacement = replacement.map(str::to_owned);
    report.replaced = replaced.map(|(start, end)| LineRange { start, end });
    let (finding, notes) = expect_finding(&report);
    assert_eq!((finding.suggestion, notes.concat().as_str()), (expected, note));
}

#[test]
fn an_explanation_loses_the_block_that_became_the_replacement() {
    let explained = |replaced: Option<LineRange>| {
        let mut report = report((10, 10), "let v10 = 10;");
        report.explanation = "It breaks.\n\n```suggestion\nx();\n```\n\nNow it holds.".into();
        (report.replacement, report.replaced) = (Some("x();\n".into()), replaced);
        expect_finding(&report).0.explanation
    };
    assert_eq!(explained(None), "It breaks.\nNow it holds.");
    assert_eq!(explained(Some(LineRange::new(900, 901))), "It breaks.\n\n```suggestion\nx();\n```\n\nNow it holds.");
}

#[test]
fn no_replacement_overwrites_what_the_reviewer_did_not_see() {
    let hide = |line: &[u8], _| line.starts_with(b"key").then(|| "key = '…'".to_owned());
    let file = Rc::new(FileText::with_hidden(b"a = 1\nkey = 'hunter2'\n", hide));
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
    let report =
        ReportedProblem { replacement: Some("key = env('K') or '…'".into()), ..report((2, 2), "key = '…'") };
    let ReportValidation::Finding { finding, notes } =
        validate_report(&report, &scope(), &run, |_| Some(Rc::clone(&file)))
    else {
        panic!("rejected");
    };
    assert_eq!((finding.quoted_code.as_str(), finding.suggestion.as_ref()), ("key = '…'", None));
    assert!(notes.concat().contains("a secret stands in its lines"), "{notes:?}");
}
