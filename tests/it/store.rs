//! Integration tests: store.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::{ProptestConfig, Strategy, prop_assert_eq, proptest};
use revdeck::domain::*;
use revdeck::store::*;

mod checkpoints;
mod damage;
mod lines;
mod locks;
mod losses;
mod moved;
mod received_runs;
mod refused_writes;
#[path = "../../benches/support/sample.rs"]
mod sample;
mod sound;
mod tail;
mod writers;

use crate::env::files_below;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn store(&self) -> Store {
        Store::open(&self.state(), info(1)).expect("the store opens")
    }
}

fn info(version: u32) -> RepoInfo {
    RepoInfo { version, key: "k1".into(), name: "demo".into(), common_dir: "/demo/.git".into() }
}

fn at(ms: i64) -> Time {
    Time::from_millisecond(1_700_000_000_000 + ms).expect("a moment")
}

fn run_id(n: usize) -> RunId {
    format!("ar_{n:026}").parse().expect("an id")
}

fn finding_id(n: usize) -> FindingId {
    format!("f_{n:016x}").parse().expect("an id")
}

fn record(n: usize, status: RunStatus) -> RunRecord {
    let json = serde_json::json!({
        "run_id": run_id(n), "status": status, "created_at": at(n as i64 * 1000), "updated_at": at(n as i64 * 1000),
        "source": "cli", "scope": "worktree", "reviewer": "builtin", "branch": "main",
    });
    serde_json::from_value(json).expect("a record")
}

fn finding(n: usize, run: usize) -> Finding {
    Finding {
        finding_id: finding_id(n),
        first_run_id: run_id(run),
        last_run_id: run_id(run),
        priority: Priority::ALL[n % 4],
        severity: Severity::Medium,
        confidence: Confidence::High,
        kind: Kind::ALL[n % 11],
        title: format!("finding {n} as run {run} saw it"),
        explanation: "because".into(),
        repo_relative_path: format!("src/file{}.rs", n % 7),
        line_start: n as u32 + 1,
        line_end: n as u32 + 3,
        quoted_code: "let x = 42;".into(),
        pattern: None,
        suggestion: None,
        status: FindingStatus::Open,
        lowered: None,
        detail_ref: format!("outputs/{}.json#{}", run_id(run), finding_id(n)),
        reported_at: at(0),
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: (!n.is_multiple_of(3)).then(|| format!("function_{}", n % 5)),
    }
}

fn disposition(n: usize, status: FindingStatus, group: &str) -> Disposition {
    Disposition {
        finding_id: finding_id(n),
        status,
        previous: FindingStatus::Open,
        actor: Actor::User,
        reason: "seen".into(),
        at: at(0),
        action: TriageAction::Set,
        group: group.into(),
        run_id: None,
        merged_into: None,
        team: None,
        ci: false,
    }
}

fn create(store: &Store, n: usize, status: RunStatus) {
    store.with_lock(|locked| locked.create_run(&record(n, status))).expect("created");
}

fn finish(store: &Store, n: usize, findings: &[usize]) {
    let run = store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Resolving).expect("resolving");
    let findings: Vec<Finding> = findings.iter().map(|f| finding(*f, n)).collect();
    let output = RunOutput { findings, coverage: Coverage::default(), ..RunOutput::new(run) };
    store.write_output(&output).expect("the output");
    store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Completed).expect("completed");
}

/// Returns a view as text, for a comparison of two views.
fn dump(view: &StoreView) -> Vec<String> {
    let runs = (0..view.run_count()).map(|index| format!("{:?}", view.run(index)));
    let findings = (0..view.finding_count()).map(|index| format!("{:?}", view.finding(index)));
    runs.chain(findings).collect()
}

fn ids(view: &StoreView) -> Vec<String> {
    (0..view.finding_count()).map(|index| view.finding(index).id.to_owned()).collect()
}

#[test]
fn the_findings_of_a_run_are_those_of_its_output_or_of_its_journal() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let improved = Finding { title: "said better".into(), ..finding(1, 1) };
    let events = [
        RunEvent::Finding { finding: Box::new(finding(1, 1)) },
        RunEvent::Finding { finding: Box::new(finding(2, 1)) },
        RunEvent::Finding { finding: Box::new(finding(3, 1)) },
        RunEvent::Judged { finding_id: finding_id(2), opinion: Opinion::False, reason: "it is guarded".into() },
        RunEvent::Restated { turn: 2, finding: Box::new(improved.clone()) },
    ];
    store.open_journal(&run_id(1)).expect("a journal").append_all(at(1), &events).expect("appended");
    let from_journal = store.output(&run_id(1)).expect("read").expect("there").findings;
    assert_eq!(from_journal, [improved, finding(3, 1)]);
    assert_eq!(store.reported_findings(&run_id(1)).expect("read"), from_journal);
    finish(&store, 1, &[5, 6]);
    assert_eq!(store.reported_findings(&run_id(1)).expect("read"), [finding(5, 1), finding(6, 1)]);
}

#[test]
fn reading_a_store_that_is_not_there_makes_nothing() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(store.view().expect("a view").run_count(), 0);
    assert_eq!(store.recent_view(5).expect("a view").run_count(), 0);
    assert_eq!(store.runs_view().expect("a view").run_count(), 0);
    assert_eq!(store.run(&run_id(1)).expect("read"), None);
    assert_eq!(store.output(&run_id(1)).expect("read"), None);
    assert_eq!(store.finding(&finding_id(1)).expect("read"), None);
    assert_eq!(store.read_journal(&run_id(1)).expect("read"), []);
    assert_eq!(store.dispositions(&finding_id(1)).expect("read"), []);
    assert!(!store.is_live(&run_id(1)).expect("read"));
    assert_eq!(store.epoch().expect("read"), 0);
    assert_eq!(store.verify().expect("read").problems, []);
    assert_eq!(store.prune(Some(0), Some(0), at(0), false).expect("read").runs, []);
    let _tail = store.open_tail();
    assert!(!place.state().exists());
}

#[test]
fn the_life_of_a_run_and_its_findings() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    let lock = store.lock_run(&run_id(1)).expect("locks").expect("free");
    assert!(store.is_live(&run_id(1)).expect("asked"));
    assert!(store.lock_run(&run_id(1)).expect("asked").is_none());
    store.update_run(&run_id(1), at(5), |run| run.status = RunStatus::Reviewing).expect("reviewing");
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(6), RunEvent::Planned { files: 3, hunks: 4, left_out: vec![] }).expect("appends");
    journal.append(at(7), RunEvent::Finding { finding: Box::new(finding(5, 1)) }).expect("appends");
    journal.append(at(7), RunEvent::Finding { finding: Box::new(finding(6, 1)) }).expect("appends");
    let file = FileCoverage { path: "src/file1.rs".into(), hunks: vec![LineRange::new(1, 4)], keys: Vec::new() };
    journal.append(at(8_000), RunEvent::Covered { file }).expect("appends");

    for (path, reason) in [("a.txt", OmissionReason::UnsupportedLanguage), ("b.rs", OmissionReason::Unreadable)] {
        let file = OmittedFile::new(path, reason);
        journal.append(at(8_000), RunEvent::LeftOut { file, hunks: 1 }).expect("appends");
    }

    let live = store.view().expect("a view");
    assert_eq!(live.finding_count(), 2);
    let run = live.run(0);
    assert_eq!((run.files_total, run.hunks_total, run.files_covered, run.hunks_covered), (3, 3, 1, 1));
    let listed = store.output(&run_id(1)).expect("read").expect("an output").coverage;
    assert_eq!((listed.hunks_total, listed.hunks_left_out, listed.reviewable_file_count()), (3, 1, 2));
    assert_eq!(run.counts.iter().sum::<u32>(), 2);
    assert_eq!(run.updated_ms, at(8_000).as_millisecond());
    assert_eq!(dump(&live), dump(&store.recent_view(5).expect("a view")));

    store.append_dispositions(&[disposition(6, FindingStatus::Dismissed, "g")]).expect("appends");
    finish(&store, 1, &[5, 6]);
    drop(lock);
    assert!(!store.is_live(&run_id(1)).expect("asked"));
    let view = store.refresh_view(&live).expect("a view");
    assert_eq!(view.run(0).status, RunStatus::Completed);
    assert_eq!(
        view.finding(view.finding_index(finding_id(6).as_str()).expect("there")).status,
        FindingStatus::Dismissed
    );
    assert_eq!(dump(&view), dump(&store.view().expect("a view")));
    let whole = store.finding(&finding_id(6)).expect("read").expect("there");
    assert_eq!((whole.status, whole.title), (FindingStatus::Dismissed, finding(6, 1).title));
    let output = store.output(&run_id(1)).expect("read").expect("there");
    assert_eq!(output.findings.len(), 2);
    assert_eq!(store.reported_findings(&run_id(1)).expect("read"), output.findings);
    assert_eq!(store.verify().expect("verified").problems, []);

    // A terminal status stays; other fields may change.
    let run = store.update_run(&run_id(1), at(9), |run| run.status = RunStatus::Lost).expect("updates");
    assert_eq!(run.status, RunStatus::Completed);
    store.update_run(&run_id(1), at(9), |run| run.links.superseded_by = Some(run_id(2))).expect("updates");
    assert_eq!(store.view().expect("a view").run(0).superseded_by, run_id(2).as_str());
    store.update_run(&run_id(1), at(9), |run| run.links.superseded_by = None).expect("updates");
    assert_eq!(store.run(&run_id(1)).expect("read").expect("there").links.superseded_by, None);
}

#[test]
fn a_finding_reported_again_is_one_row_as_the_latest_run_saw_it() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=3 {
        create(&store, n, RunStatus::Pending);
    }
    // The runs end in another order than the order of their requests.
    finish(&store, 3, &[1, 2]);
    let first = store.view().expect("a view");
    finish(&store, 1, &[1, 4]);
    finish(&store, 2, &[1]);
    for view in [
        store.view().expect("a view"),
        store.refresh_view(&first).expect("a view"),
        store.recent_view(9).expect("a view"),
    ] {
        let row = view.finding(view.finding_index(finding_id(1).as_str()).expect("there"));
        assert_eq!((row.first_run, row.last_run), (run_id(1).as_str(), run_id(3).as_str()));
        assert_eq!(row.title, finding(1, 3).title);
        // Newest run first, then priority.
        assert_eq!(ids(&view), [finding_id(1), finding_id(2), finding_id(4)].map(String::from));
        for index in 0..view.finding_count() {
            assert_eq!(view.finding_index(view.finding(index).id), Some(index));
        }
        for index in 0..view.run_count() {
            assert_eq!(view.run_index(view.run(index).id), Some(index));
        }
    }
}

// ---- appends: many writers, torn and corrupt lines -------------------------------------------------------------

/// Runs in the processes that tests start; does nothing unless the environment names a task.
#[test]
fn helper_process() {
    let Some(job) = std::env::var_os("REVDECK_STORE_TEST_JOB") else { return };
    let state = PathBuf::from(std::env::var_os("REVDECK_STORE_TEST_STATE").expect("a state folder"));
    let number: usize = std::env::var("REVDECK_STORE_TEST_NUMBER").expect("a number").parse().expect("a number");
    let store = Store::open(&state, info(1)).expect("opens");
    match job.to_str().expect("plain") {
        "append" => write_much(&store, number),
        "hold" => {
            let _lock = store.lock_run(&run_id(number)).expect("locks").expect("free");
            std::io::stdout().write_all(b"held\n").expect("told");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).expect("waits for ever");
        }
        #[cfg(target_os = "linux")]
        "limit" => {
            // Lets a part of a write through, as a full disk does.
            let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), ignored).expect("ignored");
            let limit = rustix::process::Rlimit { current: Some(number as u64), maximum: Some(number as u64) };
            rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("limited");
            let lines: Vec<Disposition> = (0..50).map(|n| disposition(n, FindingStatus::Dismissed, "g")).collect();
            let error = store.append_dispositions(&lines).expect_err("there is no room");
            assert!(error.to_string().contains("triage.ndjson"), "{error}");
            assert!(error.hint().contains("grow"), "{}", error.hint());
            let mut journal = store.open_journal(&run_id(1)).expect("opens");
            let note = |length| RunEvent::Note { text: "x".repeat(length) };
            journal.append(at(1), note(number * 2)).expect_err("there is no room");
            journal.append(at(1), note(10)).expect("a short one fits");
        }
        other => panic!("no such job: {other}"),
    }
}

fn helper(job: &str, state: &Path, number: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own program"));
    command
        .args(["--exact", "store::helper_process", "--nocapture", "--quiet"])
        .env("REVDECK_STORE_TEST_JOB", job)
        .env("REVDECK_STORE_TEST_STATE", state)
        .env("REVDECK_STORE_TEST_NUMBER", number.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

const EACH: usize = 12;

fn write_much(store: &Store, writer: usize) {
    let mut journal = store.open_journal(&run_id(writer)).expect("a journal");
    create(store, writer, RunStatus::Reviewing);
    for n in 0..EACH {
        let number = writer * 100 + n;
        store
            .append_dispositions(&[
                disposition(number, FindingStatus::Addressed, "g"),
                disposition(number, FindingStatus::Dismissed, "g"),
            ])
            .expect("appended");
        store.update_run(&run_id(writer), at(n as i64), |run| run.attempt += 1).expect("updated");
        journal
            .append(at(n as i64), RunEvent::Finding { finding: Box::new(finding(number, writer)) })
            .expect("appended");
        store.advance_epoch().expect("advanced");
        // Readers never fail in between.
        store.view().expect("a view");
    }
}

fn append_raw(path: &Path, line: &str) {
    let mut bytes = fs::read(path).expect("read");
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    fs::write(path, bytes).expect("written");
}

// ---- views -----------------------------------------------------------------------------------------------------

#[test]
fn hostile_text_comes_back_as_it_was() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    let title = "\u{1b}]52;c;aGk=\u{7}\u{9b}2J \u{202e}gnp.exe\r\n\0\u{fffd}\"\\ 漢字 🦀";
    let mut one = finding(1, 1);
    one.title = title.into();
    one.repo_relative_path = "a\nb/\u{1b}[31m.rs".into();
    store
        .open_journal(&run_id(1))
        .expect("opens")
        .append(at(1), RunEvent::Finding { finding: Box::new(one) })
        .expect("kept");
    let file = fs::read(store.root().join("events").join(format!("{}.jsonl", run_id(1)))).expect("read");
    assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(!file.contains(&0x1b), "a person may `cat` it");
    let view = store.view().expect("a view");
    assert_eq!((view.finding(0).title, view.finding(0).path), (title, "a\nb/\u{1b}[31m.rs"));
}

#[test]
fn a_clock_that_goes_backwards_changes_no_order() {
    let place = Place::new();
    let store = place.store();
    for (n, seconds) in [(1, 5_000_i64), (2, -90_000_000), (3, 0), (4, -1)] {
        let mut run = record(n, RunStatus::Pending);
        run.created_at = at(seconds * 1000);
        run.updated_at = run.created_at;
        store.with_lock(|locked| locked.create_run(&run)).expect("created");
    }
    let before = store.run(&run_id(1)).expect("read").expect("there").updated_at;
    let after = store.update_run(&run_id(1), at(-100_000), |run| run.attempt = 2).expect("updated").updated_at;
    assert_eq!(before, after, "time does not go backwards within a run");
    let view = store.view().expect("a view");
    let order: Vec<&str> = (0..4).map(|index| view.run(index).id).collect();
    assert_eq!(order, [4, 3, 2, 1].map(|n| run_id(n).to_string()));
}

// ---- prune -----------------------------------------------------------------------------------------------------

#[test]
fn a_view_that_is_older_than_the_end_of_a_run_does_not_hide_the_end() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    create(&store, 2, RunStatus::Completed);
    let view = store.view().expect("a view");
    create(&store, 3, RunStatus::Pending);
    finish(&store, 1, &[]);
    let read = |n: usize| store.run_in(&view, &run_id(n)).expect("read").map(|run| run.status);
    assert_eq!(read(1), Some(RunStatus::Completed), "it has ended since");
    assert_eq!(read(2), Some(RunStatus::Completed));
    assert_eq!(read(3), Some(RunStatus::Pending), "the view does not have it");
    assert_eq!(read(4), None);
    // The file is shorter than the view knows.
    fs::write(store.root().join("runs.ndjson"), "").expect("written");
    assert_eq!(read(2), None);
}

#[test]
fn prune_forgets_no_finding_and_no_disposition() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=6 {
        create(&store, n, RunStatus::Reviewing);
        let mut journal = store.open_journal(&run_id(n)).expect("opens");
        journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(n, n)) }).expect("appended");
    }
    for n in [1, 2, 5] {
        finish(&store, n, &[n]);
    }
    // A lost run without an output: its journal is the only record.
    store.update_run(&run_id(3), at(0), |run| run.status = RunStatus::Lost).expect("lost");
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let before = dump(&store.view().expect("a view"));
    let log = store.triage_log().expect("read");
    let now = at(40 * 86_400_000);
    let dry = store.prune(Some(30), Some(2), now, true).expect("pruned");
    let files = files_below(store.root()).len();
    let done = store.prune(Some(30), Some(2), now, false).expect("pruned");
    assert_eq!((dry.dry_run, dry.journals, dry.lines, &dry.runs), (true, 2, 7, &done.runs));
    assert_eq!((done.dry_run, done.journals, done.lines), (false, 2, 7));
    assert_eq!(files_below(store.root()).len(), files - 4, "journals, and the memory of their lengths");
    assert_eq!(done.runs, [run_id(3), run_id(2), run_id(1)]);
    assert_eq!(store.prune(Some(30), Some(2), now, false).expect("pruned").journals, 0);
    assert_eq!(fs::read_to_string(store.root().join("runs.ndjson")).expect("read").lines().count(), 6);
    assert_eq!(dump(&store.view().expect("a view")), before);
    assert_eq!(store.triage_log().expect("read"), log);
    assert!(store.prune(Some(100), None, now, false).expect("pruned").runs.is_empty(), "young runs stay");
    for n in 1..=6 {
        assert!(store.finding(&finding_id(n)).expect("read").is_some(), "{n}");
    }
}
