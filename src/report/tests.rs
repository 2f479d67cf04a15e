//! Renders one set of findings with hostile texts in every format for other programs.

use insta::assert_snapshot;

use super::{ExportedFinding, FindingExport, OutputFormat, TextOptions};
use crate::domain::text::is_unsafe;
use crate::domain::{
    Confidence, Dispute, Finding, FindingId, FindingStatus, FindingStep, Kind, LineRange, Priority, RankRule, Severity,
    Suggestion, Time, Voice,
};

/// Formats with a renderer for other programs.
const FORMATS: [OutputFormat; 6] = [
    OutputFormat::Sarif,
    OutputFormat::Github,
    OutputFormat::Rdjsonl,
    OutputFormat::Gitlab,
    OutputFormat::Junit,
    OutputFormat::Quickfix,
];
/// Made up; it only has the shape of a key.
const SECRET: &str = concat!("ghp_16C7e42F292c", "6912E7710c838347Ae178B4a");

pub(super) fn finding(kind: Kind, priority: Priority, path: &str, line: u32, title: &str) -> Finding {
    let run: crate::domain::RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
    Finding {
        finding_id: FindingId::from_parts(kind.word(), path, title, 0),
        first_run_id: run.clone(),
        last_run_id: run,
        priority,
        severity: Severity::Medium,
        confidence: Confidence::High,
        kind,
        title: title.to_owned(),
        explanation: "It is wrong for 100% of inputs.\nSecond line: a, b.".to_owned(),
        repo_relative_path: path.to_owned(),
        line_start: line,
        line_end: line + 1,
        quoted_code: "let x = 1;".to_owned(),
        suggestion: None,
        pattern: None,
        status: FindingStatus::Open,
        lowered: None,
        detail_ref: String::new(),
        reported_at: Time::UNIX_EPOCH,
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: None,
    }
}

fn suggest(replacement: &str, lines: Option<LineRange>) -> Option<Suggestion> {
    Some(Suggestion { text: "Write it so.".to_owned(), replacement: Some(replacement.to_owned()), lines })
}

/// Findings with texts and paths that mean something to a terminal, a runner, an XML or a JSON parser.
fn findings() -> Vec<ExportedFinding> {
    let title = "\x1b[2J 100% ::error file=x::y ]]> <b>&\"'\r\n::set-output name=a::b\u{202e}";
    let hostile = finding(Kind::Security, Priority::P0, "src/a b,c:d%1\n.rs", 3, title);
    let fixed = Finding {
        suggestion: suggest("let x = one();", Some(LineRange::new(3, 3))),
        ..finding(Kind::MagicNumbers, Priority::P2, "src/ü.rs", 3, "Number 1 has no name")
    };
    let removed = Finding {
        suggestion: suggest("", None),
        ..finding(Kind::DeadCode, Priority::P3, "src/ü.rs", 7, "`x` is never used")
    };
    let secret = Finding {
        explanation: format!("The key {SECRET} is in the code."),
        quoted_code: format!("key = {SECRET}"),
        suggestion: suggest(&format!("key = \"{SECRET}\""), None),
        ..finding(Kind::Correctness, Priority::P1, &format!("src/{SECRET}.rs"), 1, &format!("Key {SECRET}"))
    };
    let dismissed = Finding {
        status: FindingStatus::Dismissed,
        ..finding(Kind::LongMethod, Priority::P1, "src/long.rs", 1, "Dismissed by a person")
    };
    let gone = Finding {
        status: FindingStatus::Obsolete,
        ..finding(Kind::LongMethod, Priority::P1, "src/gone.rs", 1, "Obsolete")
    };
    vec![
        ExportedFinding::new(&hostile, None),
        ExportedFinding::new(&fixed, None),
        ExportedFinding::new(&removed, None),
        ExportedFinding::new(&secret, None),
        ExportedFinding::new(&dismissed, Some("generated\ncode".to_owned())),
        ExportedFinding::new(&gone, None),
    ]
}

fn render(format: OutputFormat, export: &FindingExport) -> String {
    format.exporter().expect("a renderer")(export)
}

/// Renders the findings; JSON is printed on several lines, so that changes can be read.
fn render_readable(format: OutputFormat, export: &FindingExport) -> String {
    let text = render(format, export);
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) => {
            serde_json::to_string_pretty(&value).expect("JSON").replace(env!("CARGO_PKG_VERSION"), "[version]")
        }
        Err(_) => text,
    }
}

#[test]
fn hostile_findings_in_every_format() {
    let export = FindingExport::new(findings(), Some("1 of 2 files: turn\nlimit 50%".to_owned()), "src/ü.rs");
    for format in FORMATS {
        assert_snapshot!(format.name(), render_readable(format, &export));
    }
}

#[test]
fn a_clean_review_in_every_format() {
    let export = FindingExport::new(Vec::new(), None, "");
    let all: String =
        FORMATS.map(|format| format!("--- {}\n{}\n", format.name(), render_readable(format, &export))).concat();
    assert_snapshot!("clean", all);
}

#[test]
fn no_format_lets_a_secret_or_a_control_character_through() {
    let export = FindingExport::new(findings(), Some(format!("file {SECRET} is unreadable")), SECRET);
    for format in FORMATS {
        let text = render(format, &export);
        assert!(!text.contains(&SECRET[4..]), "{}: {text}", format.name());
        let unsafe_character = text.chars().find(|c| is_unsafe(*c) && *c != '\n');
        assert_eq!(unsafe_character, None, "{}: {text:?}", format.name());
    }
}

#[test]
fn an_incomplete_review_never_looks_like_a_clean_one() {
    let clean = FindingExport::new(Vec::new(), None, "");
    let incomplete = FindingExport::new(Vec::new(), Some("the worker died".to_owned()), "");
    for format in FORMATS {
        let (without, with) = (render(format, &clean), render(format, &incomplete));
        assert!(!without.contains("incomplete"), "{}: {without}", format.name());
        assert!(with.contains("incomplete") && with.contains("the worker died"), "{}: {with}", format.name());
    }
}

#[test]
fn junit_is_xml_that_means_the_findings() {
    let export = FindingExport::new(findings(), None, "");
    let text = render(OutputFormat::Junit, &export);
    let document = roxmltree::Document::parse(&text).expect("XML");
    let failed = document.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert_eq!(failed, 4, "the dismissed finding and the obsolete one are no failures: {text}");
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase")).count();
    assert_eq!(document.root_element().attribute("tests"), Some(cases.to_string().as_str()));
    let messages: Vec<_> = document.descendants().filter_map(|node| node.attribute("message")).collect();
    assert!(messages.iter().any(|message| message.contains("]]> <b>&\"'")), "{messages:?}");
}

#[test]
fn a_workflow_command_stays_on_its_line() {
    let export = FindingExport::new(findings(), None, "");
    let text = render(OutputFormat::Github, &export);
    assert_eq!(text.lines().count(), 4, "{text}");
    for line in text.lines() {
        let (properties, message) = line[2..].split_once("::").expect("a message");
        let names: Vec<&str> = properties
            .split_once(' ')
            .expect("properties")
            .1
            .split(',')
            .map(|part| part.split('=').next().unwrap_or_default())
            .collect();
        assert_eq!(names, ["file", "line", "endLine", "title"], "{line}");
        assert!(!message.is_empty(), "{line}");
    }
}

/// Finding of a panel: three reviewers with hostile names and words.
fn panel_finding() -> Finding {
    let own = finding(Kind::Performance, Priority::P2, "src/a.rs", 3, "Each row copies the list");
    let voice = |reviewer: &str, priority: Priority, kind: Kind, title: &str, explanation: &str| Voice {
        reviewer: reviewer.into(),
        run_id: own.first_run_id.clone(),
        finding_id: own.finding_id.clone(),
        priority,
        confidence: Confidence::Medium,
        kind,
        title: title.into(),
        explanation: explanation.into(),
        line_start: 4,
        line_end: 4,
        held_back: None,
    };
    let hostile = format!("<b>\u{1b}[2J@all {SECRET}");
    Finding {
        priority: Priority::P0,
        voices: vec![
            Voice { line_start: 3, ..voice("claude", Priority::P2, own.kind, &own.title, &own.explanation) },
            voice("g\u{9b}pt", Priority::P0, Kind::Correctness, &hostile, "`clone` in a loop.\nIt is quadratic."),
            voice("third", Priority::P2, own.kind, "The list is cloned", ""),
        ],
        steps: vec![
            FindingStep::Agreed { voices: 3, reviewers: 3, from: Confidence::Medium, to: Confidence::High },
            FindingStep::Ranked {
                priorities: vec![Priority::P0, Priority::P2, Priority::P2],
                to: Priority::P0,
                rule: RankRule::MostUrgent,
            },
        ],
        disputed: vec![Dispute::Priority { most: Priority::P0, least: Priority::P2 }],
        ..own
    }
}

#[test]
fn a_finding_of_a_panel_shows_every_word_and_lets_nothing_hostile_through() {
    let finding = panel_finding();
    let look = TextOptions { color: false, ascii: false, width: Some(80), now: Time::UNIX_EPOCH };
    let json = super::json::to_json_text(&super::json::encode_finding(&ExportedFinding::new(&finding, None).finding));
    let parsed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let shown = [
        super::text::render_finding(&look, &finding),
        super::markdown::render_finding(&finding),
        serde_json::to_string_pretty(&parsed).expect("JSON"),
    ];
    for text in &shown {
        assert!(!text.contains(&SECRET[4..]), "{text}");
        assert_eq!(text.chars().find(|c| is_unsafe(*c) && *c != '\n'), None, "{text:?}");
    }
    assert_snapshot!("panel", shown.join("\n---\n"));
}

#[test]
fn a_function_name_is_harmless_and_masked_in_what_other_programs_read() {
    let symbol = format!("get \u{1b}[2J {SECRET}");
    let own = finding(Kind::Performance, Priority::P2, "src/a.rs", 3, "Each row copies the list");
    let exported = ExportedFinding::new(&Finding { symbol: Some(symbol), ..own }, None).finding;
    let encoded = super::json::encode_finding(&exported);
    let shown = encoded["symbol"].as_str().expect("a symbol");
    assert!(shown.starts_with("get \u{fffd}[2J") && !shown.contains(&SECRET[4..]), "{shown:?}");
}

#[test]
fn the_reviewers_that_report_a_finding_are_said_in_a_few_words() {
    let whole = panel_finding();
    let alone = Dispute::Alone { reviewer: "a".into(), silent: vec!["b".into()] };
    let priorities = Dispute::Priority { most: Priority::P0, least: Priority::P2 };
    for (reviewers, disputed, expected) in [
        (&["a"][..], None, Some("only a reports it")),
        (&[], None, None),
        (&["a"], Some(&priorities), Some("only a reports it")),
        // The dispute says it, and who is silent.
        (&["a"], Some(&alone), None),
        (&["a", "a"], None, Some("only a reports it")),
        (&["a", "b"], None, Some("a and b agree")),
        (&["a", "b\u{1b}", "c"], Some(&priorities), Some("a, b\u{fffd} and c agree")),
    ] {
        let voice = |reviewer: &&str| Voice { reviewer: (*reviewer).to_owned(), ..whole.voices[0].clone() };
        let finding = Finding {
            voices: reviewers.iter().map(voice).collect(),
            disputed: disputed.into_iter().cloned().collect(),
            ..whole.clone()
        };
        assert_eq!(super::panel::describe_agreement(&finding).as_deref(), expected, "{reviewers:?}");
    }
}

#[test]
fn a_report_that_was_held_back_says_so() {
    let mut finding = panel_finding();
    finding.voices[2].held_back = Some(crate::domain::SuppressionReason::OfAFix);
    let lines = super::panel::list_lines(&finding);
    let expected = "also said by third (p2, confidence medium, line 4, held back: of a fix): The list is cloned";
    assert_eq!(lines.get(2).map(String::as_str), Some(expected), "{lines:#?}");
    let agreed = super::panel::describe_agreement(&finding);
    assert!(agreed.is_some_and(|agreed| agreed.ends_with(" and third agree")));
    // With the same words as a report that was raised, it is still the other one.
    (finding.voices[2].title, finding.voices[2].explanation) = (finding.title.clone(), finding.explanation.clone());
    finding.voices.reverse();
    assert_eq!(finding.own_voice(), Some(2));
    assert_eq!(finding.raised_voices().count(), 2);
}

#[test]
fn a_dispute_says_who_has_settled_it() {
    use crate::domain::Opinion::{False, Real, Unsure};

    let disputed = panel_finding();
    let ruled = |by: &str, opinion| FindingStep::Ruled {
        by: by.to_owned(),
        opinion,
        reason: "as the line shows".to_owned(),
        from: Priority::P0,
        to: Priority::P0,
    };
    for (rulings, expected) in [
        (vec![], "disputed: the priorities go from p0 to p2"),
        (vec![ruled("opus", Real)], "settled: the priorities go from p0 to p2; opus finds it real"),
        (vec![ruled("o\u{1b}pus", False)], "settled: the priorities go from p0 to p2; o\u{fffd}pus finds it false"),
        (vec![ruled("opus", Unsure)], "disputed: the priorities go from p0 to p2; opus cannot tell"),
        (
            vec![ruled("opus", Real), ruled("dear", Unsure)],
            "settled: the priorities go from p0 to p2; opus finds it real",
        ),
    ] {
        let steps = [disputed.steps.clone(), rulings].concat();
        let finding = Finding { steps, ..disputed.clone() };
        let lines = super::panel::list_lines(&finding);
        assert_eq!(lines.last().map(String::as_str), Some(expected), "{lines:#?}");
    }
}

#[test]
fn a_finding_of_one_reviewer_is_stored_as_before_and_an_old_record_is_read() {
    let own = finding(Kind::Performance, Priority::P2, "src/a.rs", 3, "Each row copies the list");
    let stored = serde_json::to_string(&own).expect("JSON");
    for key in ["voices", "steps", "disputed"] {
        assert!(!stored.contains(key), "{stored}");
    }
    assert_eq!(serde_json::from_str::<Finding>(&stored).expect("a finding"), own);
    let panel = panel_finding();
    let stored = serde_json::to_string(&panel).expect("JSON");
    assert_eq!(serde_json::from_str::<Finding>(&stored).expect("a finding"), panel);
    let encoded = super::json::encode_finding(&own);
    assert_eq!((&encoded["voices"], &encoded["disputed"]), (&serde_json::json!([]), &serde_json::json!([])));
}
