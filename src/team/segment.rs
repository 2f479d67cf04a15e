//! Writes records as segments of a log, and reads segments of others.
//!
//! A segment is text: a line for each record, as JSON. It is read whole or not at all, because it was written whole: a
//! segment with a damaged line is damaged or hostile. A record of a type that this version does not know is skipped.

use serde::Deserialize;
use thiserror::Error;

use crate::domain::{
    Actor, Finding, MachineName, RunRecord, RunStatus, SharedDecision, SharedReview, TeamClock, TeamRecord,
    is_repository_path,
};

/// Maximum size of a segment in bytes. A machine that sends more writes several.
pub const MAX_SEGMENT_BYTES: usize = 16 << 20;
/// Maximum size of a record in bytes. A review of some 5,000 files has less.
pub const MAX_RECORD_BYTES: usize = 8 << 20;
/// Maximum number of findings of a review.
const MAX_FINDINGS: usize = 20_000;
/// Maximum number of bytes of a name, a path, a title or a reason.
const MAX_LINE_BYTES: usize = 4 << 10;
/// Maximum number of bytes of an explanation, a quote or a proposed change.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Greatest line number that a finding may have.
const MAX_LINE_NUMBER: u32 = 100_000_000;

/// Latest time of a decision: the year 2200. What is far ahead of the clock of this machine does not count before its time, see
/// [`TeamClock::MAX_AHEAD_MS`].
const MAX_CLOCK_MS: i64 = 7_258_118_400_000;
/// Maximum number of decisions that one names as replaced.
pub const MAX_REPLACED: usize = 64;
/// Maximum number of bytes of the group of a decision: a name of a machine, the id of a fix and that of a step.
const MAX_GROUP_BYTES: usize = 200;
/// Maximum number of bytes of a reason.
pub const MAX_REASON_BYTES: usize = MAX_LINE_BYTES;

/// Fault of a segment, because of which none of its records is taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SegmentFault {
    /// The segment or one of its lines is too large.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The segment, or a line of it.
        what: String,
        /// Limit in bytes.
        limit: usize,
    },
    /// A line is no record.
    #[error("line {line} is no record: {what}")]
    NoRecord {
        /// Number of the line, 1-based.
        line: usize,
        /// Reason, such as the message of the parser.
        what: String,
    },
    /// A record is by another machine than the log.
    #[error("line {line} is by {machine}, but stands in the log of {log}")]
    WrongMachine {
        /// Number of the line, 1-based.
        line: usize,
        /// Machine that the record names.
        machine: MachineName,
        /// Name of the log.
        log: MachineName,
    },
}

/// Records of a segment.
#[derive(Debug, Default)]
pub struct ParsedSegment {
    /// Records with the lines that they were read from.
    pub records: Vec<(TeamRecord, String)>,
    /// Number of records of types that this version does not know.
    pub unknown: usize,
}

/// Packs lines into segments of at most the size that readers take.
pub fn pack_lines(lines: &[String]) -> Vec<Vec<u8>> {
    let mut segments: Vec<Vec<u8>> = Vec::new();
    for line in lines {
        match segments.last_mut().filter(|segment| segment.len() + line.len() < MAX_SEGMENT_BYTES) {
            Some(segment) => segment.extend_from_slice(line.as_bytes()),
            None => segments.push(line.clone().into_bytes()),
        }
        if let Some(segment) = segments.last_mut() {
            segment.push(b'\n');
        }
    }
    segments
}

/// Reads a segment of the log named `log`.
///
/// # Errors
/// Returns the first fault; then no record of the segment may be taken.
pub fn parse_segment(bytes: &[u8], log: &MachineName) -> Result<ParsedSegment, SegmentFault> {
    if bytes.len() > MAX_SEGMENT_BYTES {
        return Err(SegmentFault::TooLarge { what: "the segment".to_owned(), limit: MAX_SEGMENT_BYTES });
    }
    let mut parsed = ParsedSegment::default();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let number = index + 1;
        if line.len() > MAX_RECORD_BYTES {
            return Err(SegmentFault::TooLarge { what: format!("line {number}"), limit: MAX_RECORD_BYTES });
        }
        let no_record = |what: String| SegmentFault::NoRecord { line: number, what };
        let text = std::str::from_utf8(line).map_err(|_| no_record("it is not UTF-8".to_owned()))?;
        if !is_known_type(text).map_err(no_record)? {
            parsed.unknown += 1;
            continue;
        }
        let record: TeamRecord = serde_json::from_str(text).map_err(|error| no_record(error.to_string()))?;
        check_record(&record).map_err(no_record)?;
        if !may_stand_in(record.machine(), log) {
            let (machine, log) = (record.machine().clone(), log.clone());
            return Err(SegmentFault::WrongMachine { line: number, machine, log });
        }
        parsed.records.push((record, text.to_owned()));
    }
    Ok(parsed)
}

/// Returns true if the record has a type of this version.
fn is_known_type(line: &str) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct TypeField<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
    }
    let field: TypeField<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    Ok(matches!(field.kind.as_ref(), "decision" | "review" | "patterns"))
}

/// Returns true if a log may hold records of this machine: its own log, or for jobs of continuous integration, which exist
/// once, the log that they share.
fn may_stand_in(machine: &MachineName, log: &MachineName) -> bool {
    machine == log || (machine.is_ci() && log.as_str() == MachineName::CI_LOG)
}

/// Checks a record against the limits by which others read it.
///
/// # Errors
/// Returns the first fault, as a part of a sentence.
pub fn check_record(record: &TeamRecord) -> Result<(), String> {
    match record {
        TeamRecord::Decision(decision) => check_decision(decision),
        TeamRecord::Review(review) => check_review(review),
        // The import checks each pattern.
        TeamRecord::Patterns(patterns) => {
            check_size("the author", &patterns.person.name, MAX_LINE_BYTES)?;
            check_size("the author", &patterns.person.email, MAX_LINE_BYTES)?;
            check_size("the language", &patterns.language, MAX_LINE_BYTES)
        }
    }
}

fn check_decision(decision: &SharedDecision) -> Result<(), String> {
    check_size("the author", &decision.person.name, MAX_LINE_BYTES)?;
    check_size("the author", &decision.person.email, MAX_LINE_BYTES)?;
    check_size("the reason", &decision.reason, MAX_LINE_BYTES)?;
    let clock = decision.id.clock;
    if !(0..MAX_CLOCK_MS).contains(&clock.ms) || clock.count > TeamClock::MAX_COUNT {
        return Err("its clock is out of range".to_owned());
    }
    if decision.over.len() > MAX_REPLACED {
        return Err(format!("it names more than {MAX_REPLACED} decisions"));
    }
    if decision.group.len() > MAX_GROUP_BYTES || !decision.group.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("its group is longer than {MAX_GROUP_BYTES} bytes or no plain word"));
    }
    match decision.actor {
        Actor::Engine => Err("a decision of the engine is nobody's decision".to_owned()),
        _ => Ok(()),
    }
}

fn check_review(review: &SharedReview) -> Result<(), String> {
    let SharedReview { person, run, findings, coverage, held_back_places, .. } = review;
    let held_back = held_back_places.as_deref().unwrap_or_default();
    check_size("the author", &person.name, MAX_LINE_BYTES)?;
    check_size("the author", &person.email, MAX_LINE_BYTES)?;
    check_run(run)?;
    if findings.len() > MAX_FINDINGS || held_back.len() > MAX_FINDINGS {
        return Err(format!("it has more than {MAX_FINDINGS} findings"));
    }
    for finding in findings {
        check_finding(finding, run)?;
    }
    let files = coverage.files.iter().chain(coverage.carried.iter().map(|carried| &carried.file));
    let left_out = coverage.left_out.iter().map(|file| &file.path);
    for path in files.map(|file| &file.path).chain(left_out).chain(&coverage.partial) {
        check_path(path)?;
    }
    held_back.iter().map(|held| &held.path).chain(&run.subject.changed_paths).try_for_each(|path| check_path(path))
}

fn check_run(run: &RunRecord) -> Result<(), String> {
    if run.status != RunStatus::Completed {
        return Err(format!("its run is {}, and only completed ones are shared", run.status));
    }
    if run.team.is_some() {
        return Err("its run was received from another machine".to_owned());
    }
    if run.subject.scope_hash.starts_with(RunRecord::FIX_SCOPE_PREFIX) {
        return Err("its run reviews a fix of another machine".to_owned());
    }
    for (what, id) in [
        ("the base", &run.subject.base_commit),
        ("the snapshot", &run.subject.snapshot_commit),
        ("the head", &run.subject.head_commit),
    ] {
        if !id.is_empty() && (id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            return Err(format!("{what} of its run is no id of a commit"));
        }
    }
    for (what, text) in [
        ("the branch", &run.subject.branch),
        ("the worktree", &run.subject.worktree),
        ("the reviewer", &run.reviewed_by.name),
        ("the model", &run.reviewed_by.model),
        ("the summary", &run.outcome.summary),
        ("the decision", &run.decision),
        ("the owner", &run.owner),
    ] {
        check_size(what, text, MAX_LINE_BYTES)?;
    }
    Ok(())
}

fn check_finding(finding: &Finding, run: &RunRecord) -> Result<(), String> {
    check_path(&finding.repo_relative_path)?;
    check_size("a title", &finding.title, MAX_LINE_BYTES)?;
    check_size("a symbol", finding.symbol.as_deref().unwrap_or_default(), MAX_LINE_BYTES)?;
    check_size("an explanation", &finding.explanation, MAX_TEXT_BYTES)?;
    check_size("quoted code", &finding.quoted_code, MAX_TEXT_BYTES)?;
    for voice in &finding.voices {
        check_size("a title", &voice.title, MAX_LINE_BYTES)?;
        check_size("an explanation", &voice.explanation, MAX_TEXT_BYTES)?;
    }
    if let Some(suggestion) = &finding.suggestion {
        check_size("a suggestion", &suggestion.text, MAX_TEXT_BYTES)?;
        check_size("a proposed change", suggestion.replacement.as_deref().unwrap_or_default(), MAX_TEXT_BYTES)?;
    }
    let is_in_file = |line: u32| (1..=MAX_LINE_NUMBER).contains(&line);
    if !is_in_file(finding.line_start) || !is_in_file(finding.line_end) || finding.line_end < finding.line_start {
        return Err(format!("{} has the lines {} to {}", finding.finding_id, finding.line_start, finding.line_end));
    }
    if finding.last_run_id != run.run_id {
        return Err(format!("{} is of another run", finding.finding_id));
    }
    Ok(())
}

fn check_size(what: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit { Ok(()) } else { Err(format!("{what} is longer than {limit} bytes")) }
}

/// Checks that a path means a file of the repository on every system: relative, without `..`, without parts of a git dir, see
/// [`is_repository_path`].
fn check_path(path: &str) -> Result<(), String> {
    let is_safe = path.len() <= MAX_LINE_BYTES
        && !path.contains(['\0', '\n', '\r'])
        && !path.contains('\\')
        && is_repository_path(path)
        && path.as_bytes().get(1) != Some(&b':');
    match is_safe {
        true => Ok(()),
        false => Err(format!("{:?} is not a path of the repository", path.chars().take(80).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RUN: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E";

    fn log(name: &str) -> MachineName {
        name.parse().expect("a name")
    }

    fn decision() -> Value {
        json!({
            "type": "decision", "clock": [1_764_237_272_000_i64, 0], "machine": "lovelace-1",
            "person": {"name": "Ada", "email": "ada@example.org"}, "actor": "user",
            "finding_id": "f_00000000000000aa", "status": "dismissed", "reason": "intended",
            "at": "2026-11-27T10:00:00Z", "action": "set", "group": "t_01JD3Z8Q6M7S5V2K4T9XWB1C0E",
        })
    }

    fn finding() -> Value {
        json!({
            "finding_id": "f_00000000000000aa", "first_run_id": RUN, "last_run_id": RUN, "priority": 1,
            "severity": "high", "confidence": "high", "kind": "CORRECTNESS", "title": "t", "explanation": "e",
            "repo_relative_path": "src/a.rs", "line_start": 3, "line_end": 4, "quoted_code": "", "status": "open",
            "detail_ref": "outputs/x.json", "reported_at": "2026-11-27T10:00:00Z",
        })
    }

    fn review() -> Value {
        json!({
            "type": "review", "machine": "lovelace-1", "person": {"name": "Ada"},
            "run": {
                "run_id": RUN, "status": "completed", "created_at": "2026-11-27T10:00:00Z",
                "updated_at": "2026-11-27T10:01:00Z", "source": "cli", "scope": "worktree", "reviewer": "builtin",
            },
            "findings": [finding()],
            "coverage": {"files": [{"path": "src/a.rs", "hunks": [], "keys": []}]},
        })
    }

    fn parse(records: &[Value], name: &str) -> Result<ParsedSegment, SegmentFault> {
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        parse_segment(text.as_bytes(), &log(name))
    }

    #[test]
    fn records_survive_the_way_there_and_back() {
        let parsed = parse(&[decision(), review()], "lovelace-1").expect("a segment");
        let records: Vec<TeamRecord> = parsed.records.iter().map(|(record, _)| record.clone()).collect();
        let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).expect("a line")).collect();
        let segments = pack_lines(&lines);
        let again = parse_segment(&segments[0], &log("lovelace-1")).expect("a segment");
        assert_eq!(again.records.into_iter().map(|(record, _)| record).collect::<Vec<_>>(), records);
        assert_eq!(segments.len(), 1);
    }

    #[test]
    fn a_segment_is_never_larger_than_readers_take() {
        let line = |bytes: usize| "x".repeat(bytes);
        for (lines, expected) in [
            (vec![], vec![]),
            (vec![line(3), line(4)], vec![9]),
            (vec![line(MAX_SEGMENT_BYTES - 5), line(3)], vec![MAX_SEGMENT_BYTES]),
            (vec![line(MAX_SEGMENT_BYTES - 5), line(4)], vec![MAX_SEGMENT_BYTES - 4, 5]),
        ] {
            assert_eq!(pack_lines(&lines).iter().map(Vec::len).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_record_of_a_later_version_is_skipped() {
        let parsed = parse(&[json!({"type": "oracle", "deep": [1]}), decision()], "lovelace-1").expect("a segment");
        assert_eq!((parsed.records.len(), parsed.unknown), (1, 1));
    }

    #[test]
    fn only_continuous_integration_shares_a_log() {
        let by = |machine: &str| {
            let mut record = decision();
            record["machine"] = machine.into();
            record
        };
        for (machine, name, is_right) in
            [("ci-7", "ci", true), ("ci-7", "ci-7", true), ("lovelace-1", "ci", false), ("lovelace-1", "ada", false)]
        {
            assert_eq!(parse(&[by(machine)], name).is_ok(), is_right, "{machine} in {name}");
        }
    }

    #[test]
    fn hostile_records_are_refused_with_the_reason() {
        let with = |mut record: Value, pointer: &str, value: Value| {
            *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
            record
        };
        let out = |path: &str| with(review(), "/findings/0/repo_relative_path", path.into());
        for (record, expected) in [
            (json!({"type": "decision"}), "line 1 is no record: missing field"),
            (json!([1]), "line 1 is no record: invalid"),
            (with(decision(), "/actor", "engine".into()), "nobody's decision"),
            (with(decision(), "/finding_id", "f_../../x".into()), "line 1 is no record"),
            (with(decision(), "/machine", "../x".into()), "is not a name of a machine"),
            (with(decision(), "/reason", "x".repeat(5_000).into()), "the reason is longer than"),
            (with(decision(), "/group", "x".repeat(201).into()), "its group is longer than"),
            (with(decision(), "/group", "t_1 \u{1b}[2J".into()), "or no plain word"),
            (out("../etc/passwd"), "is not a path of the repository"),
            (out("/etc/passwd"), "is not a path of the repository"),
            (out("a/.GIT/config"), "is not a path of the repository"),
            (out("git~1/config"), "is not a path of the repository"),
            (out("GIT~1"), "is not a path of the repository"),
            (out("a/.g\u{200c}it/config"), "is not a path of the repository"),
            (out("a/.gi\u{206c}t/config"), "is not a path of the repository"),
            (out("a/.git ./config"), "is not a path of the repository"),
            (out(".git::$INDEX_ALLOCATION/config"), "is not a path of the repository"),
            (out(".git\\config"), "is not a path of the repository"),
            (with(review(), "/coverage/files/0/path", "git~1/x".into()), "is not a path of the repository"),
            (out("c:/x"), "is not a path of the repository"),
            (out("a\\..\\b"), "is not a path of the repository"),
            (out("a\nb"), "is not a path of the repository"),
            (with(review(), "/coverage/files/0/path", "..".into()), "is not a path of the repository"),
            (with(review(), "/findings/0/line_start", 0.into()), "has the lines 0 to 4"),
            (with(review(), "/findings/0/line_end", 1.into()), "has the lines 3 to 1"),
            (with(review(), "/findings/0/last_run_id", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0F".into()), "is of another run"),
            (with(review(), "/run/status", "reviewing".into()), "only completed ones are shared"),
            (with(review(), "/run/run_id", "ar_../x".into()), "line 1 is no record"),
        ] {
            let fault = parse(std::slice::from_ref(&record), "lovelace-1").expect_err(expected).to_string();
            assert!(fault.contains(expected), "{fault} instead of {expected}");
        }
        let mut odd = review();
        odd["run"]["snapshot_commit"] = "--output=x".into();
        assert!(parse(&[odd], "lovelace-1").expect_err("an option").to_string().contains("no id of a commit"));
        let not_text = parse_segment(b"\xff\n", &log("a")).expect_err("bytes").to_string();
        assert_eq!(not_text, "line 1 is no record: it is not UTF-8");
    }

    #[test]
    fn clocks_are_taken_up_to_their_limits() {
        for (ms, count, is_right) in [
            (0, 0, true),
            (-1, 0, false),
            (MAX_CLOCK_MS - 1, TeamClock::MAX_COUNT, true),
            (MAX_CLOCK_MS, 0, false),
            (0, TeamClock::MAX_COUNT + 1, false),
        ] {
            let mut record = decision();
            record["clock"] = json!([ms, count]);
            assert_eq!(parse(&[record], "lovelace-1").is_ok(), is_right, "{ms}.{count}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_parsed() {
        let large = vec![b'x'; MAX_SEGMENT_BYTES + 1];
        assert!(matches!(parse_segment(&large, &log("a")), Err(SegmentFault::TooLarge { .. })));
        let long = vec![b'x'; MAX_RECORD_BYTES + 1];
        assert!(matches!(parse_segment(&long, &log("a")), Err(SegmentFault::TooLarge { .. })));
    }
}
