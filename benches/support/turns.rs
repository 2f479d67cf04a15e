//! Runs that talk to a model, as their workers would write them: for tests of the cockpit and for demonstrations.
//!
//! The same moment always gives the same runs. All data goes through the store's own journal, records and heartbeats.

use std::error::Error;

use revdeck::domain::*;
use revdeck::store::{HeartbeatState, HeartbeatWriter, RunLock, Store};
use serde_json::json;

/// The code in the first request: path, lines, kind, tokens, score, reason.
const SENT: [(&str, u32, u32, &str, u32, f32, &str); 17] = [
    ("", 0, 0, "task", 412, 1.0, "the task"),
    ("src/session.rs", 0, 0, "diff", 3_904, 1.0, "the change"),
    ("src/retry.rs", 0, 0, "diff", 1_731, 1.0, "the change"),
    ("src/http/client.rs", 0, 0, "diff", 2_806, 1.0, "the change"),
    ("", 0, 0, "rules", 884, 1.0, "the project's rules"),
    (
        "src/pool.rs",
        12,
        118,
        "class",
        2_240,
        0.947,
        "it changed together with the change's files; in 61 % of their commits; names of the change",
    ),
    (
        "src/session.rs",
        1,
        39,
        "module",
        611,
        0.912,
        "it declares, uses or imports what the change does; where its imports, its beginning or its end is",
    ),
    (
        "tests/session.rs",
        20,
        164,
        "test",
        3_118,
        0.884,
        "it has the change's words; a test and what it tests; lines like the changed ones",
    ),
    (
        "src/error.rs",
        8,
        61,
        "type",
        702,
        0.731,
        "it declares, uses or imports what the change does; names of the change",
    ),
    ("src/config.rs", 44, 102, "function", 968, 0.655, "it has the change's words; the change's words"),
    (
        "crates/transport/src/connection/keep_alive/idle_connection_reaper.rs",
        210,
        318,
        "function",
        1_984,
        0.540,
        "it changed together with the change's files; in 22 % of their commits; the change's words",
    ),
    ("src/http/headers.rs", 1, 74, "constant", 1_106, 0.402, "its path is like the change's; lines that change often"),
    ("src/http/redirect.rs", 15, 88, "function", 1_322, 0.388, "its path is like the change's; the change's words"),
    ("docs/sessions.md", 1, 60, "documentation", 940, 0.214, "it has the change's words; the change's words"),
    ("src/metrics.rs", 0, 0, "summary", 231, 0.192, "it has the change's words; the change's words"),
    ("", 0, 0, "overview", 1_020, 1.0, "the folders of the tree"),
    (
        "src/lock.rs",
        3,
        97,
        "function",
        1_655,
        0.951,
        "it declares, uses or imports what the change does; names of the change",
    ),
];

/// The highest-ranked code that was left out.
const LEFT_OUT: [(&str, u32, u32, &str, u32, f32, &str); 8] = [
    ("src/session.rs", 40, 88, "function", 1_020, 0.938, "in another section"),
    ("tests/retry.rs", 1, 412, "test", 7_480, 0.611, "over the budget"),
    (
        "crates/transport/src/connection/keep_alive/idle_connection_reaper.rs",
        1,
        209,
        "class",
        3_322,
        0.377,
        "over the budget",
    ),
    ("src/http/body.rs", 18, 240, "interface", 2_871, 0.309, "over the budget"),
    ("src/cli/serve.rs", 77, 131, "function", 866, 0.187, "over the budget"),
    ("Cargo.toml", 1, 84, "config", 912, 0.120, "over the budget"),
    ("src/log.rs", 5, 58, "function", 704, 0.081, "score too low"),
    ("examples/proxy.rs", 1, 96, "window", 1_204, 0.044, "score too low"),
];

fn surroundings() -> ContextRecord {
    let listed = |(path, start_line, end_line, kind, tokens, score, reason): (&str, u32, u32, &str, u32, f32, &str)| {
        let (path, kind, reason) = (path.to_owned(), kind.to_owned(), reason.to_owned());
        ContextRecordSection { path, start_line, end_line, kind, tokens, score, reason }
    };
    ContextRecord {
        budget: 27_000,
        total_tokens: SENT.iter().map(|section| section.4).sum(),
        compression: "light".into(),
        patterns: Vec::new(),
        notes: vec!["the index is being built: only files that the change names were looked at".into()],
        sections: SENT.into_iter().map(listed).collect(),
        left_out: LEFT_OUT.into_iter().map(listed).collect(),
        left_out_total: 431,
    }
}

/// The end of a run, or its present activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All of its 20 turns are done; the window slides since the sixth.
    Completed,
    /// The key was revoked in turn 4.
    Failed,
    /// A person paused it after turn 6.
    Paused,
    /// The server told it to wait in turn 3.
    RateLimited,
    /// No data arrives any more in turn 9.
    Stalled,
    /// Turn 7 is arriving.
    Receiving,
}

impl Fate {
    pub const ALL: [Self; 6] =
        [Self::Completed, Self::Failed, Self::Paused, Self::RateLimited, Self::Stalled, Self::Receiving];

    /// Returns the number of answered turns.
    fn answered(self) -> u32 {
        match self {
            Self::Completed => 20,
            Self::Failed => 3,
            Self::Paused | Self::Receiving => 6,
            Self::RateLimited => 2,
            Self::Stalled => 8,
        }
    }
}

/// A written run. While this value exists, the run is alive: its lock is held and its heartbeat continues.
pub struct Written {
    pub run: RunId,
    pub pulse: Option<HeartbeatWriter>,
    _lock: Option<RunLock>,
}

/// The tokens in the window before each turn: it fills, is masked and slides, and fills again.
const WINDOW: [u64; 20] = [
    6_180, 14_920, 27_340, 38_810, 52_470, 68_210, 41_050, 49_730, 57_160, 63_900, 44_280, 51_640, 59_370, 66_020,
    43_510, 50_880, 56_240, 61_790, 40_330, 45_060,
];

const ASKED: [&str; 4] = [
    "Review the change: 14 files, 31 hunks. Start with what reads input from outside.",
    "The answers to your calls. Report what you are sure of, then go on with the callers of Session::take().",
    "8 of 31 hunks have not been looked at: src/session.rs 40-88, src/retry.rs 9-61, src/http/client.rs 120-201.",
    "The answers to your calls. Say finish when every hunk was looked at.",
];

const ANSWERED: [&str; 5] = [
    "The change moves the session cache behind a lock. I read the cache first, then whoever takes a session out of it, \
     because a session that is handed out twice would be the worst that can happen here.",
    "take() drops the guard before it writes the entry back, so that two callers can hold the same session.\n\n\
     ```json\n{\"findings\": [{\"path\": \"src/session.rs\", \"line\": 48, \"severity\": \"high\"}]}\n```\n\n\
     I go on with the callers.",
    "",
    "retry() sleeps between attempts while it still holds the connection; the pool has four of them, so four slow hosts \
     stop everybody. The tests do not see it, they use a pool of one hundred.",
    "Nothing in src/http/client.rs that was not there before. The header names are compared without regard to case now, \
     which RFC 9110 asks for.",
];

const TOOLS: [(&str, &str, ToolOutcome, u64, &str); 5] = [
    (
        "read_file",
        r#"{"path":"src/session.rs","first":1,"last":240}"#,
        ToolOutcome::Answered,
        2_914,
        "lines 1-240 of 412",
    ),
    (
        "codebase_search",
        r#"{"pattern":"take\\(","paths":["src/**"]}"#,
        ToolOutcome::Answered,
        811,
        "9 places in 5 files",
    ),
    ("show_diff", r#"{"path":"src/retry.rs"}"#, ToolOutcome::Answered, 1_377, "2 hunks"),
    ("read_file", r#"{"path":"../../etc/passwd"}"#, ToolOutcome::Refused, 24, "outside of the repository"),
    ("find_symbol", r#"{"name":"Session"}"#, ToolOutcome::Failed, 31, "the arguments end in the middle"),
];

const FOUND: [(&str, u32, Priority, Kind, &str); 5] = [
    (
        "src/session.rs",
        48,
        Priority::P1,
        Kind::Concurrency,
        "a session can be handed out twice: the guard of `cache` is dropped too early",
    ),
    ("src/retry.rs", 31, Priority::P2, Kind::Performance, "sleeps while it holds a connection of the pool"),
    (
        "src/session.rs",
        77,
        Priority::P2,
        Kind::ErrorHandling,
        "the error of `flush` is lost when the session is closed",
    ),
    ("src/http/client.rs", 140, Priority::P0, Kind::Security, "the token goes along to whatever host a redirect names"),
    ("src/config.rs", 12, Priority::P3, Kind::Docs, "the default in the comment is not the one in the code"),
];

fn later(from: Time, seconds: f64) -> Time {
    Time::from_millisecond(from.as_millisecond() + (seconds * 1000.0) as i64).unwrap_or(from)
}

/// Writes a run with this fate; `number` determines its id, `now` is the moment of observation.
pub fn write(store: &Store, number: u32, fate: Fate, now: Time) -> Result<Written, Box<dyn Error>> {
    let turns = fate.answered();
    let began = later(now, -45.0 * f64::from(turns + 1) - 3_600.0 * f64::from(u8::from(fate == Fate::Completed)));
    let run: RunId = format!("ar_{number:026}").parse()?;
    let scope = if number.is_multiple_of(2) { "worktree" } else { "commit:HEAD" };
    let record: RunRecord = serde_json::from_value(json!({
        "run_id": run, "status": "pending", "created_at": began, "updated_at": began, "source": "cli",
        "owner": "ada@orchard", "branch": "fix/sessions", "worktree": "/billing", "scope": scope,
        "reviewer": "claude", "model": "claude-sonnet-4-5", "reasoning_effort": "medium", "attempt": 1,
        "decision": "nothing equivalent was reviewed before",
        "coverage": { "files_total": 14, "hunks_total": 31 },
    }))?;
    store.with_lock(|locked| locked.create_run(&record))?;
    let lock = store.lock_run(&run)?;
    store.update_run(&run, began, |record| record.status = RunStatus::Reviewing)?;
    let mut journal = store.open_journal(&run)?;
    journal.append(began, RunEvent::Started { attempt: 1, worker: 4711 })?;
    journal.append(began, RunEvent::Phase { status: RunStatus::Reviewing })?;
    journal.append(began, RunEvent::Planned { files: 14, hunks: 31, left_out: Vec::new() })?;
    // The run with the revoked key has the format of older versions: it contains no record of the code around the
    // change.
    if fate != Fate::Failed {
        journal.append(began, RunEvent::Surrounded { context: Box::new(surroundings()) })?;
    }
    let mut findings: Vec<Finding> = Vec::new();
    let mut rejected = Vec::new();
    let (mut tokens, mut cost) = (Usage::default(), 0.0);
    for turn in 1..=turns {
        let at = later(began, 45.0 * f64::from(turn - 1));
        journal.append_all(at, &[asked(turn, turns.max(20))])?;
        let (answer, paid) = answered(turn);
        tokens.input += answer.usage.input;
        tokens.cached += answer.usage.cached;
        tokens.output += answer.usage.output;
        cost += paid;
        let took = 6_400 + u64::from(turn) * 1_130 % 9_000;
        let done = later(at, took as f64 / 1000.0);
        let response = Box::new(answer);
        journal.append(
            done,
            RunEvent::TurnAnswered {
                turn,
                response,
                cost: paid,
                first_ms: 640 + took / 9,
                took_ms: took,
                taken_over: false,
            },
        )?;
        let new = reported(turn, &run, done, &mut findings, &mut rejected, &mut journal)?;
        let total = findings.len() as u32;
        journal.append(
            done,
            RunEvent::CodeSmellsAccumulated {
                new_issues: new,
                total_issues: total,
                turn,
                issues_by_type: Default::default(),
            },
        )?;
        for (name, arguments, outcome, tokens, result) in tools_of(turn) {
            let (name, arguments, result) = (name.to_owned(), arguments.to_owned(), result.to_owned());
            journal.append(done, RunEvent::ToolAnswered { turn, name, arguments, outcome, tokens, result })?;
        }
        if turn >= 6 {
            let slid = RunEvent::SlidingWindowApplied { turn, messages_removed: 2 + turn % 3, messages_kept: 10 };
            journal.append(done, slid)?;
        }
        for file in [turn].into_iter().filter(|turn| *turn <= 14) {
            let hunks = vec![LineRange::new(1, 40), LineRange::new(60, 88)];
            let file = FileCoverage { path: format!("src/part_{file:02}.rs"), hunks, keys: Vec::new() };
            journal.append(done, RunEvent::Covered { file })?;
        }
    }
    let pulse = present(store, &run, fate, now, (tokens, cost), &mut journal)?;
    let living = pulse.is_some();
    if !living {
        let status = if fate == Fate::Failed { RunStatus::Failed } else { RunStatus::Completed };
        let ended = later(began, 45.0 * f64::from(turns + 1));
        let record = store.update_run(&run, ended, |record| {
            (record.usage.tokens, record.usage.cost) = (tokens, cost);
            record.usage.window_peak = WINDOW.iter().take(turns as usize).copied().max().unwrap_or(0);
            record.usage.window_limit = 70_000;
            record.outcome.finding_counts = FindingCounts::from_findings(&findings);
            record.outcome.coverage =
                Coverage { files_covered: 14, hunks_covered: 31, ..record.outcome.coverage.clone() };
            record.status = status;
            if status == RunStatus::Failed {
                (record.ending.error_class, record.ending.error_summary) = (Some(ErrorClass::Auth), REVOKED.to_owned());
            }
            record.outcome.summary = format!(
                "{status}: {} in {turns} turns",
                revdeck::domain::text::format_count(findings.len(), "finding")
            );
        })?;
        let coverage = record.outcome.coverage.clone();
        store.write_output(&RunOutput { findings, coverage, rejected, ..RunOutput::new(record) })?;
        journal.append(ended, RunEvent::Finished { status })?;
    }
    Ok(Written { run, pulse, _lock: lock.filter(|_| living) })
}

const REVOKED: &str = "claude: the key in ANTHROPIC_API_KEY was refused (401); check that it is valid and set it again";

fn asked(turn: u32, of: u32) -> RunEvent {
    let phase = match turn {
        1..=5 => TurnPhase::Investigate,
        6..=15 => TurnPhase::Analyse,
        _ => TurnPhase::Finish,
    };
    let at = (turn as usize - 1) % WINDOW.len();
    let window = WindowUse {
        tokens: WINDOW[at],
        limit: 70_000,
        pinned: 6_120,
        summarized: if turn > 6 { 480 + u64::from(turn) * 61 } else { 0 },
        messages: (turn * 3).min(14),
        masked: if turn > 5 { 1 + turn % 4 } else { 0 },
        removed: if turn > 6 { (turn - 6) * 3 } else { 0 },
        approximate: false,
    };
    let asked = match turn {
        1 => ASKED[0].to_owned(),
        turn if turn == of => "This is the last turn: report what is missing, then say finish.".to_owned(),
        turn => ASKED[1 + turn as usize % 3].to_owned(),
    };
    RunEvent::TurnAsked { turn, phase, asked, window }
}

fn answered(turn: u32) -> (ChatResponse, f64) {
    let at = turn as usize;
    let input = WINDOW[(at - 1) % WINDOW.len()];
    let usage = Usage {
        input,
        cached: if turn > 1 { input * 3 / 4 } else { 0 },
        output: 310 + u64::from(turn) * 97 % 1_400,
        ..Usage::default()
    };
    let calls = tools_of(turn)
        .into_iter()
        .enumerate()
        .map(|(n, (name, arguments, ..))| ToolCall {
            id: format!("call_{turn}_{n}"),
            name: name.into(),
            arguments: arguments.into(),
        })
        .collect();
    let response = ChatResponse {
        text: ANSWERED[at % ANSWERED.len()].to_owned(),
        calls,
        opaque: Vec::new(),
        stop: match turn {
            9 => StopReason::Length,
            20 => StopReason::Done,
            _ => StopReason::Tools,
        },
        usage,
        model: "claude-sonnet-4-5-20250929".into(),
    };
    let cost = (input - usage.cached) as f64 * 3e-6 + usage.cached as f64 * 0.3e-6 + usage.output as f64 * 15e-6;
    (response, cost)
}

fn tools_of(turn: u32) -> Vec<(&'static str, &'static str, ToolOutcome, u64, &'static str)> {
    match turn {
        20 => Vec::new(),
        4 => TOOLS.to_vec(),
        turn => (0..1 + turn as usize % 3).map(|n| TOOLS[(turn as usize + n) % 3]).collect(),
    }
}

/// Writes the reports of a turn; returns the number of new ones.
fn reported(
    turn: u32,
    run: &RunId,
    at: Time,
    findings: &mut Vec<Finding>,
    rejected: &mut Vec<RejectedReport>,
    journal: &mut revdeck::store::JournalWriter,
) -> Result<u32, Box<dyn Error>> {
    let due = match turn {
        2 => Some(0),
        4 => Some(1),
        8 => Some(2),
        12 => Some(3),
        17 => Some(4),
        _ => None,
    };
    if let Some((path, line, priority, kind, title)) = due.and_then(|at| FOUND.get(at)).copied() {
        let finding_id = FindingId::from_parts(kind.word(), path, title, 0);
        let finding = Finding {
            lowered: None,
            detail_ref: format!("outputs/{run}.json#{finding_id}"),
            finding_id,
            first_run_id: run.clone(),
            last_run_id: run.clone(),
            priority,
            severity: Severity::High,
            confidence: Confidence::Medium,
            kind,
            title: title.into(),
            explanation: "Two threads can come by between the two lines.".into(),
            repo_relative_path: path.into(),
            line_start: line,
            line_end: line + 4,
            quoted_code: "    let session = cache.lock().remove(&key);".into(),
            pattern: None,
            suggestion: None,
            status: FindingStatus::Open,
            reported_at: at,
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        };
        journal.append(at, RunEvent::Finding { finding: Box::new(finding.clone()) })?;
        findings.push(finding);
        return Ok(1);
    }
    if let Some(known) = findings.first().filter(|_| turn == 6) {
        let (line_start, line_end, title) = (known.line_start + 1, known.line_end, known.title.clone());
        let finding_id = known.finding_id.clone();
        journal.append(at, RunEvent::Repeated { turn, finding_id, line_start, line_end, title })?;
    }
    if matches!(turn, 3 | 11 | 14) {
        let report = ReportedProblem {
            path: "src/pool.rs".into(),
            line_start: 410 + turn,
            line_end: 412 + turn,
            kind: Kind::Concurrency,
            severity: Some(Severity::High),
            priority: None,
            confidence: None,
            title: "the pool is not closed when the last client goes".into(),
            explanation: String::new(),
            quoted_code: "pool.close()".into(),
            suggestion: String::new(),
            replacement: None,
            replaced: None,
        };
        let reason = format!("src/pool.rs has 388 lines in the snapshot, line {} is not there", report.line_start);
        let one = RejectedReport { report, reason };
        journal.append(at, RunEvent::Rejected { turn, rejected: Box::new(one.clone()) })?;
        rejected.push(one);
    }
    Ok(0)
}

/// Returns the activity of a run at `now`; `None` for one that has ended.
fn present(
    store: &Store,
    run: &RunId,
    fate: Fate,
    now: Time,
    (tokens, cost): (Usage, f64),
    journal: &mut revdeck::store::JournalWriter,
) -> Result<Option<HeartbeatWriter>, Box<dyn Error>> {
    let next = fate.answered() + 1;
    if fate == Fate::Completed {
        return Ok(None);
    }
    if fate == Fate::Failed {
        journal.append(later(now, -30.0), asked(next, 20))?;
        journal.append(later(now, -29.0), RunEvent::Failed { class: ErrorClass::Auth, summary: REVOKED.into() })?;
        return Ok(None);
    }
    let mut pulse = store.start_heartbeat(run, later(now, -90.0));
    pulse.set_spending(later(now, -80.0), cost, tokens);
    pulse.begin_turn(later(now, -70.0), next);
    if fate == Fate::Paused {
        store.with_lock(|locked| locked.annotate_run(run, |record| record.paused = true))?;
        journal.append(later(now, -300.0), RunEvent::Paused)?;
        pulse.set_state(later(now, -60.0), HeartbeatState::Paused);
        return Ok(Some(pulse));
    }
    journal.append(later(now, -62.0), asked(next, 20))?;
    pulse.set_state(later(now, -62.0), HeartbeatState::Waiting);
    match fate {
        Fate::RateLimited => {
            let (reason, wait_ms) = ("rate limited".to_owned(), 20_000);
            journal.append(later(now, -8.0), RunEvent::Waiting { turn: next, reason: reason.clone(), wait_ms })?;
            pulse.set_state(later(now, -8.0), HeartbeatState::BackingOff { reason, until: later(now, 12.0) });
        }
        Fate::Stalled => {
            pulse.append_text(
                later(now, -41.0),
                "The pool hands out a connection that another thread is still writing to. I look at",
            );
            pulse.add_received_bytes(later(now, -40.0), 3_912);
        }
        _ => {
            pulse.add_received_bytes(later(now, -3.0), 11_870);
            pulse.append_text(
                later(now, -0.9),
                "retry() doubles the pause up to a minute, and nothing stops it when the run is ",
            );
            pulse.append_text(later(now, -0.5), "cancelled: the thread sleeps on. ");
            pulse.add_received_bytes(later(now, -0.2), 512);
        }
    }
    Ok(Some(pulse))
}
