//! Tests the engine with a table of events and effects, and the property that cutting the journal anywhere changes
//! nothing.

use proptest::prelude::*;

use super::*;
use crate::domain::{Confidence, FindingId, Kind, LineRange, Priority, ReviewedFile, RunId, Severity, Time};
use crate::review::plan::PlannedFile;

pub(in crate::review) fn finding(path: &str, start: u32, end: u32, priority: u8) -> Finding {
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
    Finding {
        finding_id: FindingId::from_parts("LONG_METHOD", path, &format!("{start} {end} {priority}"), 0),
        first_run_id: run.clone(),
        last_run_id: run,
        priority: Priority::try_from(priority).expect("a priority"),
        severity: Severity::Medium,
        confidence: Confidence::High,
        kind: Kind::LongMethod,
        title: format!("{path}:{start}"),
        explanation: String::new(),
        repo_relative_path: path.to_owned(),
        line_start: start,
        line_end: end,
        quoted_code: String::new(),
        pattern: None,
        suggestion: None,
        status: crate::domain::FindingStatus::Open,
        lowered: None,
        detail_ref: String::new(),
        reported_at: Time::UNIX_EPOCH,
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: None,
    }
}

fn plan(files: usize, unit_files: usize) -> ReviewPlan {
    ReviewPlan {
        carried: Vec::new(),
        files: (0..files)
            .map(|index| PlannedFile {
                keys: Vec::new(),
                path: format!("f{index}.rs"),
                hunks: vec![LineRange::new(1, 10), LineRange::new(20, 29)],
                added_lines: 20,
            })
            .collect(),
        left_out: vec![OmittedFile::new("Cargo.lock", OmissionReason::LockFile)],
        unit_files,
        has_whole_unit: true,
    }
}

/// Returns a report which says that these files were read, 50 lines each.
fn read(files: &[usize], findings: Vec<Finding>) -> UnitReport {
    let read = files.iter().map(|index| ReviewedFile { path: format!("f{index}.rs"), lines: 50 }).collect();
    UnitReport { findings, read, ..UnitReport::default() }
}

/// A reviewer that always reports the same about a file, and about all files together.
#[derive(Debug, Clone)]
struct UnitScript {
    plan: ReviewPlan,
    files: Vec<Finding>,
    whole: Vec<Finding>,
}

impl UnitScript {
    fn report(&self, unit: &ReviewUnit) -> UnitReport {
        let paths: Vec<&str> = unit.files.iter().map(|&index| self.plan.files[index].path.as_str()).collect();
        let source = if unit.kind == ReviewUnitKind::CrossFile { &self.whole } else { &self.files };
        UnitReport {
            findings: source.iter().filter(|f| paths.contains(&f.repo_relative_path.as_str())).cloned().collect(),
            read: paths.iter().map(|path| ReviewedFile { path: (*path).to_owned(), lines: 50 }).collect(),
            ..UnitReport::default()
        }
    }

    /// Runs to the end from a journal, and appends to it.
    fn run(&self, journal: &mut Vec<RunEvent>) -> (ReviewOutcome, usize) {
        let mut engine = UnitEngine::new();
        let mut calls = 0;
        let replayed = JournalState::from_events(journal.iter());
        let mut effects = engine.handle(UnitEvent::Started(self.plan.clone(), Box::new(replayed)));
        loop {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    UnitEffect::Append(event) => journal.push(event),
                    UnitEffect::CallReviewer(unit) => {
                        calls += 1;
                        next = engine.handle(UnitEvent::Reported(self.report(&unit)));
                    }
                    UnitEffect::Finish(outcome) => return (*outcome, calls),
                }
            }
            assert!(!next.is_empty(), "the engine neither goes on nor ends");
            effects = next;
        }
    }
}

fn names(effects: &[UnitEffect]) -> Vec<String> {
    effects
        .iter()
        .map(|effect| match effect {
            UnitEffect::Append(RunEvent::Finding { finding }) => format!("finding {}", finding.title),
            UnitEffect::Append(RunEvent::Covered { file }) => format!("covered {}", file.path),
            UnitEffect::Append(RunEvent::LeftOut { file, .. }) => format!("left out {} {}", file.path, file.reason),
            UnitEffect::Append(RunEvent::Planned { files, hunks, left_out }) => {
                format!("planned {files} {hunks} {}", left_out.len())
            }
            UnitEffect::Append(RunEvent::Note { text }) => format!("note {text}"),
            UnitEffect::Append(RunEvent::Failed { summary, .. }) => format!("failure {summary}"),
            UnitEffect::Append(RunEvent::CancelAsked { reason }) => format!("cancel {reason}"),
            UnitEffect::Append(RunEvent::CodeSmellsAccumulated { new_issues, total_issues, turn, issues_by_type }) => {
                format!("unit {turn}: {new_issues} of {total_issues} {issues_by_type:?}")
            }
            UnitEffect::Append(RunEvent::FinalCodeSmellsSummary { total_issues, loops, issues_by_type }) => {
                format!("summary {total_issues} in {loops} {issues_by_type:?}")
            }
            UnitEffect::Append(other) => format!("{other:?}"),
            UnitEffect::CallReviewer(unit) => format!("review {:?} {:?}", unit.kind, unit.files),
            UnitEffect::Finish(outcome) => format!("finish {}", outcome.summary),
        })
        .collect()
}

fn start(engine: &mut UnitEngine, plan: ReviewPlan) -> Vec<String> {
    names(&engine.handle(UnitEvent::Started(plan, Box::default())))
}

#[test]
fn findings_are_recorded_before_their_file_is_covered() {
    let mut engine = UnitEngine::new();
    assert_eq!(start(&mut engine, plan(3, 2)), ["planned 4 6 1", "review EachFile [0, 1]"]);
    let report = read(&[0, 1], vec![finding("f1.rs", 2, 4, 2), finding("f0.rs", 1, 3, 1)]);
    assert_eq!(
        names(&engine.handle(UnitEvent::Reported(report))),
        [
            "finding f0.rs:1",
            "covered f0.rs",
            "finding f1.rs:2",
            "covered f1.rs",
            "unit 1: 2 of 2 {\"LONG_METHOD\": 2}",
            "review EachFile [2]",
        ]
    );
    assert_eq!(
        names(&engine.handle(UnitEvent::Reported(read(&[2], Vec::new())))),
        ["covered f2.rs", "unit 2: 0 of 2 {\"LONG_METHOD\": 2}", "review CrossFile [0, 1, 2]"]
    );
    assert_eq!(
        names(&engine.handle(UnitEvent::Reported(UnitReport::default()))),
        [
            "unit 3: 0 of 2 {\"LONG_METHOD\": 2}",
            "summary 2 in 3 {\"LONG_METHOD\": 2}",
            "finish 2 findings in 3 files: 1 p1, 1 p2; 1 file left out",
        ]
    );
    assert_eq!(engine.handle(UnitEvent::Reported(UnitReport::default())), []);
}

#[test]
fn what_cannot_be_true_is_set_aside_and_said() {
    let mut engine = UnitEngine::new();
    start(&mut engine, plan(1, 1));
    let report = UnitReport {
        findings: vec![
            finding("elsewhere.rs", 1, 1, 0),
            finding("f0.rs", 0, 2, 0),
            finding("f0.rs", 9, 11, 0),
            finding("f0.rs", 10, 10, 3),
        ],
        read: vec![ReviewedFile { path: "f0.rs".into(), lines: 10 }],
        ..UnitReport::default()
    };
    assert_eq!(
        names(&engine.handle(UnitEvent::Reported(report))),
        [
            "finding f0.rs:10",
            "covered f0.rs",
            "note set aside \"elsewhere.rs:1\" in elsewhere.rs: the file is not in scope",
            "note set aside \"f0.rs:0\" in f0.rs: lines 0 to 2 are no lines",
            "note set aside \"f0.rs:9\" in f0.rs: line 11 is beyond its end at line 10",
            "unit 1: 1 of 1 {\"LONG_METHOD\": 1}",
            "review CrossFile [0]",
        ]
    );
}

#[test]
fn a_file_of_which_nothing_was_said_is_not_covered() {
    let mut engine = UnitEngine::new();
    start(&mut engine, plan(2, 2));
    let effects = engine.handle(UnitEvent::Reported(read(&[1], vec![finding("f1.rs", 1, 1, 2)])));
    assert_eq!(
        names(&effects),
        [
            "left out f0.rs unreadable",
            "finding f1.rs:1",
            "covered f1.rs",
            "note f0.rs: the reviewer did not say that it read this file",
            "unit 1: 1 of 1 {\"LONG_METHOD\": 1}",
            "review CrossFile [0, 1]",
        ]
    );
}

#[test]
fn hunks_of_files_that_the_reviewer_leaves_out_are_not_its_to_cover() {
    use OmissionReason::{NotReached, Unreadable, UnsupportedLanguage};
    let mut engine = UnitEngine::new();
    start(&mut engine, plan(4, 3));
    let left_out = [(1, UnsupportedLanguage), (2, Unreadable)]
        .map(|(index, reason)| OmittedFile::new(format!("f{index}.rs"), reason));
    let mut report = read(&[0], Vec::new());
    report.left_out = left_out.to_vec();
    let effects = engine.handle(UnitEvent::Reported(report));
    let mut journal = vec![RunEvent::Planned { files: 5, hunks: 8, left_out: plan(4, 3).left_out }];
    journal.extend(effects.into_iter().filter_map(|effect| match effect {
        UnitEffect::Append(event) => Some(event),
        _ => None,
    }));
    let replayed = JournalState::from_events(&journal).coverage();
    let effects = engine.handle(UnitEvent::CancelAsked(CancelReason::UserStop));
    let Some(UnitEffect::Finish(outcome)) = effects.last() else { panic!("{effects:?}") };
    for coverage in [&replayed, &outcome.coverage] {
        // Two hunks per file: one file covered, one left out, one unreadable, one not reached.
        assert_eq!((coverage.hunks_covered, coverage.hunks_total, coverage.hunks_left_out), (2, 6, 2));
        assert_eq!((coverage.files_covered, coverage.reviewable_file_count(), coverage.files_total), (1, 3, 5));
    }
    assert_eq!(outcome.coverage.left_out.last().map(|file| file.reason), Some(NotReached));
}

#[test]
fn a_failed_unit_is_left_out_and_the_run_goes_on() {
    let failure = || UnitEvent::Failed { class: ErrorClass::Reviewer, summary: "no".into() };
    let mut engine = UnitEngine::new();
    start(&mut engine, plan(2, 1));
    assert_eq!(names(&engine.handle(failure())), ["failure no", "left out f0.rs unreadable", "review EachFile [1]"]);
    engine.handle(UnitEvent::Reported(read(&[1], Vec::new())));
    let effects = engine.handle(failure());
    let Some(UnitEffect::Finish(outcome)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!((outcome.coverage.files_covered, outcome.coverage.files_total), (1, 3));
    assert_eq!(outcome.notes, ["a part of the review failed: no"]);
}

#[test]
fn a_run_that_covered_nothing_because_of_failures_has_failed() {
    let mut engine = UnitEngine::new();
    start(&mut engine, plan(1, 1));
    engine.handle(UnitEvent::Failed { class: ErrorClass::Git, summary: "gone".into() });
    let effects = engine.handle(UnitEvent::Reported(UnitReport::default()));
    assert_eq!(
        names(&effects),
        [
            "unit 1: 0 of 0 {}",
            "summary 0 in 1 {}",
            "finish failed: no file was reviewed; 2 files not reached or left out"
        ]
    );
    let Some(UnitEffect::Finish(outcome)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(outcome.status, RunStatus::Failed);
    assert_eq!(outcome.failure, Some((ErrorClass::Git, "gone".into())));
}

#[test]
fn a_cancelled_run_keeps_what_it_found_and_says_what_it_did_not_reach() {
    for (reason, status) in [
        (CancelReason::UserStop, RunStatus::Cancelled),
        (CancelReason::Obsolete, RunStatus::Cancelled),
        (CancelReason::Superseded, RunStatus::Superseded),
    ] {
        let mut engine = UnitEngine::new();
        start(&mut engine, plan(2, 1));
        engine.handle(UnitEvent::Reported(read(&[0], vec![finding("f0.rs", 1, 1, 2)])));
        let effects = engine.handle(UnitEvent::CancelAsked(reason));
        let [
            UnitEffect::Append(RunEvent::CancelAsked { .. }),
            UnitEffect::Append(RunEvent::FinalCodeSmellsSummary { total_issues: 1, loops: 1, .. }),
            UnitEffect::Finish(outcome),
        ] = &effects[..]
        else {
            panic!("{effects:?}")
        };
        assert_eq!((outcome.status, outcome.findings.len(), outcome.cancel), (status, 1, Some(reason)));
        let reasons: Vec<OmissionReason> = outcome.coverage.left_out.iter().map(|file| file.reason).collect();
        assert_eq!(reasons, [OmissionReason::LockFile, OmissionReason::NotReached]);
    }
}

#[test]
fn an_end_that_was_asked_for_before_a_crash_comes_after_it() {
    let journal = [RunEvent::CancelAsked { reason: CancelReason::UserStop }];
    let effects =
        UnitEngine::new().handle(UnitEvent::Started(plan(2, 1), Box::new(JournalState::from_events(&journal))));
    assert!(matches!(effects.last(), Some(UnitEffect::Finish(outcome)) if outcome.status == RunStatus::Cancelled));
}

#[test]
fn a_resumed_run_reviews_only_what_is_not_covered() {
    let script = UnitScript { plan: plan(5, 2), files: vec![finding("f3.rs", 1, 2, 1)], whole: Vec::new() };
    let mut journal = Vec::new();
    let (whole_run, calls) = script.run(&mut journal);
    assert_eq!(calls, 4);
    let covered = journal.iter().position(|event| matches!(event, RunEvent::Covered { file } if file.path == "f2.rs"));
    journal.truncate(covered.expect("f2.rs is covered") + 1);
    let (resumed, calls) = script.run(&mut journal);
    assert_eq!(calls, 2, "f3 and f4 in one unit, then all files together");
    assert_eq!(resumed, whole_run);
}

fn reports(files: usize) -> impl Strategy<Value = Vec<Finding>> {
    proptest::collection::vec(
        (0..files, 1..30u32, 0..12u32, 0..4u8)
            .prop_map(|(file, start, more, priority)| finding(&format!("f{file}.rs"), start, start + more, priority)),
        0..14,
    )
}

proptest! {
    #[test]
    fn cutting_the_journal_anywhere_changes_nothing(
        files in reports(4),
        whole in reports(4),
        unit_files in 1..5usize,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let script = UnitScript { plan: plan(4, unit_files), files, whole };
        let mut journal = Vec::new();
        let (expected, _) = script.run(&mut journal);
        let summary = |journal: &[RunEvent]| -> Vec<RunEvent> {
            journal.iter().filter(|event| matches!(event, RunEvent::FinalCodeSmellsSummary { .. })).cloned().collect()
        };
        prop_assert_eq!(summary(&journal).len(), 1);
        for (cut, _) in journal.iter().enumerate() {
            let mut cut_once = journal[..cut].to_vec();
            let (outcome, _) = script.run(&mut cut_once);
            prop_assert_eq!(&outcome, &expected, "cut at {}", cut);
            prop_assert_eq!(summary(&cut_once).len(), 1, "cut at {}", cut);
            prop_assert_eq!(JournalState::from_events(&cut_once).findings(), expected.findings.clone());
        }
        // A run may die several times, and an older journal may be cut again.
        let mut unlucky = journal;
        for cut in cuts {
            unlucky.truncate(cut.index(unlucky.len() + 1));
            let (outcome, _) = script.run(&mut unlucky);
            prop_assert_eq!(&outcome, &expected);
        }
        let ids: HashSet<&FindingId> = expected.findings.iter().map(|finding| &finding.finding_id).collect();
        prop_assert_eq!(ids.len(), expected.findings.len());
    }
}
