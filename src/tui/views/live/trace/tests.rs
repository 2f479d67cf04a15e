use super::*;
use crate::domain::{CarriedFile, OmissionReason, OmittedFile, RunId, Time, TurnPhase, WindowUse};
use crate::tui::page_data::PageData;
use crate::tui::tests::support;

fn trace(events: Vec<RunEvent>) -> ReviewTrace {
    let mut trace = ReviewTrace::default();
    for event in events {
        trace.apply_entry(JournalEntry { seq: 0, at: Time::UNIX_EPOCH, event });
    }
    trace
}

fn asked(turn: u32) -> RunEvent {
    RunEvent::TurnAsked { turn, phase: TurnPhase::Analyse, asked: String::new(), window: WindowUse::default() }
}

fn file(path: &str, hunks: &[(u32, u32)]) -> FileCoverage {
    let hunks = hunks.iter().map(|(start, end)| LineRange::new(*start, *end)).collect();
    FileCoverage { path: path.to_owned(), hunks, keys: Vec::new() }
}

fn covered(path: &str, hunks: &[(u32, u32)]) -> RunEvent {
    RunEvent::Covered { file: file(path, hunks) }
}

fn tool(turn: u32, name: &str, arguments: &str, outcome: ToolOutcome, result: &str) -> RunEvent {
    let (name, arguments, result) = (name.to_owned(), arguments.to_owned(), result.to_owned());
    RunEvent::ToolAnswered { turn, name, arguments, outcome, tokens: 9, result }
}

fn finding(n: u32, priority: Priority) -> Box<Finding> {
    let PageData::Finding(page) = *support::page(n, 1) else { unreachable!("the page of a finding") };
    Box::new(Finding { priority, ..page.finding })
}

/// Planned hunks: 9, 2 of them in a file that the reviewer leaves out.
fn sample() -> ReviewTrace {
    let left_out = |path: &str, reason| OmittedFile::new(path, reason);
    let from: RunId = support::run_id(9).parse().expect("an id");
    let carried = CarriedFile { file: file("kept.rs", &[(5, 5)]), from, findings: Vec::new() };
    trace(vec![
        RunEvent::Planned { files: 5, hunks: 9, left_out: vec![left_out("Cargo.lock", OmissionReason::LockFile)] },
        RunEvent::Carried { carried: Box::new(carried) },
        RunEvent::LeftOut { file: left_out("b.bin", OmissionReason::TooComplex), hunks: 2 },
        asked(1),
        RunEvent::Finding { finding: finding(1, Priority::P1) },
        covered("a.rs", &[(10, 12), (40, 40)]),
        tool(1, "read_file", r#"{"path":"b.rs"}"#, ToolOutcome::Answered, "b.rs, lines 1 to 30 of 90"),
        tool(1, "read_file", r#"{"path":"c.rs"}"#, ToolOutcome::Refused, "not here"),
        // The worker starts again.
        RunEvent::Started { attempt: 2, worker: 1 },
        covered("a.rs", &[(10, 12), (40, 40)]),
        asked(2),
        RunEvent::Finding { finding: finding(2, Priority::P0) },
        RunEvent::Restated { turn: 2, finding: finding(1, Priority::P2) },
        covered("b.rs", &[(50, 52)]),
        tool(2, "show_diff", r#"{"path":"./c.rs"}"#, ToolOutcome::Answered, "the diff of c.rs, page 1"),
        asked(3),
        RunEvent::Judged {
            finding_id: finding(2, Priority::P0).finding_id.clone(),
            opinion: Opinion::False,
            reason: String::new(),
        },
        asked(4),
    ])
}

#[test]
fn each_turn_adds_to_what_was_read_reported_and_covered() {
    use FileReading as F;
    let trace = sample();
    let changed = ["a.rs", "b.rs", "c.rs", "d.rs"].map(str::to_owned);
    let paths = ["Cargo.lock", "a.rs", "b.bin", "b.rs", "c.rs", "d.rs", "kept.rs"];
    // Turn, readings of `paths`, hunks (now, before, carried), findings by priority.
    for (turn, readings, hunks, counts) in [
        (Some(0), [F::LeftOut, F::Unread, F::LeftOut, F::Unread, F::Unread, F::Unread, F::Carried], (0, 0, 1), [0; 4]),
        (Some(1), [F::LeftOut, F::Now, F::LeftOut, F::Now, F::Unread, F::Unread, F::Carried], (2, 0, 1), [0, 0, 1, 0]),
        (Some(2), [F::LeftOut, F::Before, F::LeftOut, F::Now, F::Now, F::Unread, F::Carried], (1, 2, 1), [1, 0, 1, 0]),
        (
            Some(4),
            [F::LeftOut, F::Before, F::LeftOut, F::Before, F::Before, F::Unread, F::Carried],
            (0, 3, 1),
            [0, 0, 1, 0],
        ),
        (
            None,
            [F::LeftOut, F::Before, F::LeftOut, F::Before, F::Before, F::Unread, F::Carried],
            (0, 3, 1),
            [0, 0, 1, 0],
        ),
    ] {
        let moment = trace.moment(turn, &changed);
        let listed: Vec<&str> =
            moment.files.iter().filter(|(_, file)| file.is_changed).map(|(path, _)| path.as_str()).collect();
        assert_eq!(listed, paths, "{turn:?}");
        assert_eq!(paths.map(|path| moment.files[path].reading()), readings, "{turn:?}");
        let HunkCounts { now, before, carried, total } = moment.hunks;
        assert_eq!(((now, before, carried), total), (hunks, 7), "{turn:?}");
        assert_eq!(moment.counts, counts, "{turn:?}");
    }
}

#[test]
fn lines_are_read_now_or_before_or_by_nobody() {
    use LineReading as L;
    let trace = sample();
    for (turn, path, lines, expected) in [
        (1, "a.rs", (10, 10), L::Now),
        (1, "a.rs", (15, 15), L::Now),
        (1, "a.rs", (16, 16), L::Unread),
        (1, "a.rs", (16, 90), L::Now),
        (2, "a.rs", (40, 40), L::Before),
        (1, "b.rs", (30, 30), L::Now),
        (1, "b.rs", (31, 31), L::Unread),
        (2, "b.rs", (30, 30), L::Before),
        (2, "b.rs", (51, 51), L::Now),
        (2, "c.rs", (7_000, 7_000), L::Now),
        (1, "kept.rs", (5, 5), L::Before),
        (3, "kept.rs", (9, 9), L::Unread),
    ] {
        let moment = trace.moment(Some(turn), &[]);
        let lines = LineRange::new(lines.0, lines.1);
        assert_eq!(moment.files[path].reading_of(lines), expected, "turn {turn}, {path}, {lines:?}");
    }
}

#[test]
fn a_finding_is_there_from_its_report_until_a_second_opinion() {
    use ReportTime as T;
    let trace = sample();
    let ids = [1, 2].map(|n| finding(n, Priority::P1).finding_id.to_string());
    for (turn, times) in [
        (0, [T::Hidden, T::Hidden]),
        (1, [T::Now, T::Hidden]),
        (2, [T::Now, T::Now]),
        (3, [T::Before, T::Hidden]),
        (4, [T::Before, T::Hidden]),
    ] {
        let moment = trace.moment(Some(turn), &[]);
        assert_eq!([moment.reports[&ids[0]], moment.reports[&ids[1]]], times, "turn {turn}");
    }
    assert_eq!(trace.moment(None, &[]).reports[&ids[0]], T::Before);
    assert_eq!((trace.report_count(), trace.last_turn(), trace.count_sent(1)), (4, 4, (1, 2)));
}

#[test]
fn hostile_names_and_lines_are_made_safe() {
    let evil = "a\u{1b}[2J\u{202e}.rs";
    let arguments = serde_json::json!({ "path": evil }).to_string();
    let result = format!("{evil}, lines 9 to {} of 7", u32::MAX);
    let trace = trace(vec![
        asked(1),
        tool(1, "read_file", &arguments, ToolOutcome::Answered, &result),
        tool(1, "read_file", "{\"path\":\"cut", ToolOutcome::Answered, "nothing"),
        tool(1, "show_diff", "{}", ToolOutcome::Answered, "the diff of 9 files, page 1"),
        covered(evil, &[(u32::MAX, 0)]),
    ]);
    let moment = trace.moment(Some(1), &[]);
    assert_eq!(moment.files.len(), 1, "{moment:?}");
    let (path, file) = moment.files.first_key_value().expect("a file");
    assert!(!path.chars().any(text::is_unsafe), "{path:?}");
    assert_eq!((file.reading(), moment.hunks.total), (FileReading::Now, 1));
    assert_eq!(parse_shown_lines("a, b.rs, lines 3 to 4 of 9"), Some(("a, b.rs", LineRange::new(3, 4))));
    assert_eq!(parse_shown_lines("a.rs, lines 3-4 of 9"), None);
}
