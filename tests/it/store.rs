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

mod damage;
mod losses;
mod moved;
#[path = "../../benches/support/sample.rs"]
mod sample;
mod sound;

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
        detail_ref: format!("outputs/{}.json#{}", run_id(run), finding_id(n)),
        reported_at: at(0),
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

#[test]
fn many_writers_lose_and_double_nothing() {
    let place = Place::new();
    let mut processes: Vec<_> =
        (1..=4).map(|n| helper("append", &place.state(), n).spawn().expect("a process")).collect();
    std::thread::scope(|scope| {
        for writer in 5..=8 {
            let store = place.store();
            scope.spawn(move || write_much(&store, writer));
        }
    });
    for process in &mut processes {
        assert!(process.wait().expect("ends").success());
    }
    let store = place.store();
    let view = store.view().expect("a view");
    assert_eq!((view.run_count(), view.finding_count()), (8, 8 * EACH));
    assert_eq!(view.notices, Vec::<String>::new());
    for index in 0..view.finding_count() {
        assert_eq!(view.finding(index).status, FindingStatus::Dismissed);
    }
    for index in 0..view.run_count() {
        assert_eq!(view.run(index).attempt, EACH as u32);
    }
    assert_eq!(store.triage_log().expect("read").len(), 2 * 8 * EACH);
    assert_eq!(store.epoch().expect("read"), 8 * EACH as u64);
    assert_eq!(store.verify().expect("verified").problems, []);
}

#[test]
fn a_line_torn_at_any_byte_is_sealed_and_hides_no_other() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(1, 1)) }).expect("appended");
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let files: Vec<(PathBuf, Vec<u8>)> = ["runs.ndjson", "triage.ndjson", &format!("events/{}.jsonl", run_id(1))]
        .iter()
        .map(|name| store.root().join(name))
        .map(|path| (path.clone(), fs::read(&path).expect("read")))
        .collect();
    for (path, whole) in &files {
        for cut in (0..whole.len()).step_by(if path.extension().is_some_and(|e| e == "jsonl") { 3 } else { 7 }) {
            for (path, whole) in &files {
                fs::write(path, whole).expect("as it was");
            }
            // A second line that is only partly written. Its writer died before it could remember the new size.
            let _ = fs::remove_file(store.root().join("extents"));
            let torn = [whole.as_slice(), &whole[..cut]].concat();
            fs::write(path, &torn).expect("torn");
            let view = store.view().expect("a view");
            assert_eq!((view.run_count(), view.finding_count()), (1, 1), "{} cut at {cut}", path.display());

            create(&store, 2, RunStatus::Pending);
            store.append_dispositions(&[disposition(2, FindingStatus::Addressed, "g")]).expect("appended");
            let mut journal = store.open_journal(&run_id(1)).expect("opens");
            let entry =
                journal.append(at(2), RunEvent::Finding { finding: Box::new(finding(2, 1)) }).expect("appended");
            assert_eq!(entry.seq, 1, "{} cut at {cut}", path.display());
            let view = store.view().expect("a view");
            assert_eq!((view.run_count(), view.finding_count()), (2, 2), "{} cut at {cut}", path.display());
            let status = |n| view.finding(view.finding_index(finding_id(n).as_str()).expect("there")).status;
            assert_eq!((status(1), status(2)), (FindingStatus::Dismissed, FindingStatus::Addressed));
            let report = store.verify().expect("verified");
            assert_eq!(report.problems.len(), usize::from(cut > 0), "{} cut at {cut}: {report:?}", path.display());
            assert_eq!(view.notices.len(), usize::from(cut > 0), "{:?}", view.notices);
        }
    }
}

#[test]
fn repair_sets_corrupt_lines_aside_and_keeps_the_rest() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=3 {
        create(&store, n, RunStatus::Pending);
    }
    finish(&store, 1, &[1, 2]);
    finish(&store, 2, &[3]);
    let mut journal = store.open_journal(&run_id(3)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(4, 3)) }).expect("appended");
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let before = dump(&store.view().expect("a view"));

    let newer = r#"{"finding_id":"f_0000000000000001","status":"snoozed","x":1}"#;
    for (name, rubbish) in [
        ("runs.ndjson", &b"\xff\xfe\x00garbage\n{\"run_id\":\"../../etc\",\"status\":\"pending\"}\n{}\n"[..]),
        ("triage.ndjson", format!("[1,2]\n{newer}\nnull\n").as_bytes()),
        (&format!("events/{}.jsonl", run_id(3)), b"not json\n{\"seq\":\n"),
    ] {
        let path = store.root().join(name);
        let whole = fs::read(&path).expect("read");
        fs::write(&path, [rubbish, &whole, rubbish].concat()).expect("written");
    }
    // This test is about single lines; that files were overwritten is another problem.
    fs::remove_file(store.root().join("extents")).expect("removed");
    store.advance_epoch().expect("made");
    fs::write(store.root().join("epoch"), "many").expect("written");
    // The journal replaces a damaged output.
    let damaged = store.root().join("outputs").join(format!("{}.json", run_id(2)));
    let mut journal = store.open_journal(&run_id(2)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(3, 2)) }).expect("appended");
    journal.append(at(1), RunEvent::Finished { status: RunStatus::Completed }).expect("appended");
    fs::write(&damaged, "{\"version\":1,\"findi").expect("written");

    let view = store.view().expect("a view");
    assert_eq!(dump(&view), before);
    assert_eq!(view.notices.len(), 3, "{:?}", view.notices);
    let found = store.verify().expect("verified");
    assert_eq!(found.newer_lines, 2);
    assert_eq!(found.problems.len(), 6 + 4 + 4 + 1 + 1, "{found:#?}");
    assert!(!found.is_clean());
    assert!(store.verify().expect("verified") == found, "verify changes nothing");

    let repaired = store.repair().expect("repaired");
    assert!(repaired.is_clean(), "{repaired:#?}");
    let after = store.verify().expect("verified");
    assert_eq!((after.problems, after.newer_lines), (vec![], 2));
    let view = store.view().expect("a view");
    assert_eq!(dump(&view), before);
    assert_eq!(store.epoch().expect("read"), 1);
    let aside = fs::read(store.root().join("runs.ndjson.corrupt-1")).expect("kept");
    assert_eq!(aside.iter().filter(|byte| **byte == b'\n').count(), 6);
    assert!(damaged.with_file_name(format!("{}.json.corrupt-1", run_id(2))).exists());
    assert!(fs::read_to_string(store.root().join("triage.ndjson")).expect("read").contains(newer));
}

#[test]
fn what_a_newer_version_wrote_survives_a_change() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let path = store.root().join("runs.ndjson");
    let line = fs::read_to_string(&path)
        .expect("read")
        .replace("\"coverage\":{", "\"mood\":[1,{\"a\":2}],\"coverage\":{\"depth\":7,");
    fs::write(&path, &line).expect("written");
    for step in 1..=3_u32 {
        let run = store.update_run(&run_id(1), at(1), |run| run.outcome.coverage.files_total = step).expect("updated");
        assert_eq!(run.outcome.coverage.files_total, step);
    }
    let last = fs::read_to_string(&path).expect("read").lines().last().map(str::to_owned).expect("a line");
    let last: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(last["mood"], serde_json::json!([1, {"a": 2}]));
    assert_eq!((&last["coverage"]["depth"], &last["coverage"]["files_total"]), (&7.into(), &3.into()));
}

#[test]
fn words_of_a_newer_version_hide_only_their_own_line() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    create(&store, 2, RunStatus::Pending);
    finish(&store, 1, &[1, 2, 3]);
    let output = store.root().join("outputs").join(format!("{}.json", run_id(1)));
    let text = fs::read_to_string(&output).expect("read").replace(finding(2, 1).kind.word(), "TIME_TRAVEL");
    fs::write(&output, text).expect("written");
    store.open_journal(&run_id(2)).expect("made");
    append_raw(&store.root().join("runs.ndjson"), &{
        let mut paused = serde_json::to_value(record(2, RunStatus::Pending)).expect("JSON");
        paused["status"] = "paused".into();
        paused.to_string()
    });
    store.append_dispositions(&[disposition(9, FindingStatus::Open, "g")]).expect("made");
    append_raw(&store.root().join("triage.ndjson"), r#"{"finding_id":"f_0000000000000001","status":"snoozed"}"#);
    append_raw(
        &store.root().join("events").join(format!("{}.jsonl", run_id(2))),
        r#"{"seq":0,"at":"2026-01-01T00:00:00Z","event":"dreamt","of":"sheep"}"#,
    );
    let view = store.view().expect("a view");
    assert_eq!((view.run_count(), ids(&view).len()), (2, 2));
    assert_eq!(view.notices.len(), 3, "{:?}", view.notices);
    let output = store.output(&run_id(1)).expect("read").expect("there");
    assert_eq!(output.findings.len(), 2);
    assert_eq!(store.reported_findings(&run_id(1)).expect("read"), output.findings);
    assert_eq!(store.read_journal(&run_id(2)).expect("read")[0].event, RunEvent::Unknown);
    assert_eq!(store.verify().expect("verified").problems, []);
    // A change by this version starts from the newest line, even if it can read only an older one.
    let run = store.update_run(&run_id(2), at(9), |run| run.attempt = 2).expect("updated");
    assert_eq!((run.status, run.attempt), (RunStatus::Pending, 2));
    assert!(fs::read_to_string(store.root().join("runs.ndjson")).expect("read").ends_with("\n"));
    assert_eq!(fs::read_to_string(store.root().join("runs.ndjson")).expect("read").matches("paused").count(), 2);
}

fn append_raw(path: &Path, line: &str) {
    let mut bytes = fs::read(path).expect("read");
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_store_of_a_newer_schema_is_read_and_never_written() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    finish(&store, 1, &[1]);
    let path = store.root().join("repo.json");
    let mut repo: serde_json::Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    repo["version"] = 2.into();
    repo["zone"] = "new".into();
    fs::write(&path, repo.to_string()).expect("written");
    let listing = |folder: &Path| {
        let mut names: Vec<_> = files_below(folder).into_iter().map(|path| (fs::read(&path).ok(), path)).collect();
        names.sort();
        names
    };
    let before = listing(store.root());
    // Both a store that was open when the other version wrote, and one that is opened now.
    for store in [store, place.store()] {
        let id = run_id(1);
        let refused: Vec<Result<(), StoreError>> = vec![
            store.with_lock(|_| Ok(())),
            store.update_run(&id, at(1), |_| {}).map(drop),
            store.open_journal(&id).map(drop),
            store.write_output(&store.output(&id).expect("read").expect("there")),
            store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]),
            store.lock_run(&id).map(drop),
            store.advance_epoch().map(drop),
            store.repair().map(drop),
            store.prune(None, Some(0), at(0), false).map(drop),
        ];
        for (index, result) in refused.into_iter().enumerate() {
            let error = result.expect_err(&format!("write {index} is refused"));
            assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
            assert!(error.hint().contains("upgrade revdeck"));
        }
        assert_eq!(ids(&store.view().expect("a view")).len(), 1);
        assert!(store.finding(&finding_id(1)).expect("read").is_some());
    }
    assert!(place.store().view().expect("a view").notices[0].contains("newer revdeck"));
    assert_eq!(listing(place.store().root()), before);
}

// ---- a disk that is full, a folder that cannot be written ------------------------------------------------------

#[test]
fn where_nothing_can_be_written_reads_work_and_writes_say_why() {
    let place = Place::new();
    fs::write(place.state(), "a file where the folder should be").expect("written");
    let store = place.store();
    assert_eq!(store.view().expect("a view").run_count(), 0);
    assert_eq!(store.recent_view(3).expect("a view").run_count(), 0);
    let error = store.with_lock(|locked| locked.create_run(&record(1, RunStatus::Pending))).expect_err("no folder");
    assert!(error.to_string().contains("auto-review"), "{error}");
    assert!(error.hint().contains("in the way"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn a_read_only_store_is_read_and_says_so_when_written() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.store();
    for n in 1..=40 {
        create(&store, n, RunStatus::Pending);
        finish(&store, n, &[n]);
    }
    let all: Vec<PathBuf> = files_below(store.root());
    let folders = [store.root().to_owned(), store.root().join("outputs")];
    let protect = |files, folder| {
        for path in &all {
            fs::set_permissions(path, fs::Permissions::from_mode(files)).expect("set");
        }
        for path in &folders {
            fs::set_permissions(path, fs::Permissions::from_mode(folder)).expect("set");
        }
    };
    protect(0o400, 0o500);
    // Root may write everywhere; then only the reading half of this test has an effect.
    let can_write_anyway = fs::write(store.root().join("probe"), "").is_ok();
    assert_eq!(ids(&place.store().view().expect("a view")).len(), 40);
    assert!(!place.store().is_live(&run_id(1)).expect("asked"));
    if !can_write_anyway {
        assert!(!store.root().join("view.cache").exists());
        let line = [disposition(1, FindingStatus::Dismissed, "g")];
        let error = store.append_dispositions(&line).expect_err("read-only");
        assert!(error.hint().contains("access"), "{}", error.hint());
    }
    protect(0o600, 0o700);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_clear_error_and_leaves_nothing_half_written() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    let path = store.root().join("triage.ndjson");
    let before = fs::read(&path).expect("read");
    // The limit has room for some whole lines and a part of one.
    let done = helper("limit", &place.state(), before.len() + 1000).output().expect("a process");
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(fs::read(&path).expect("read"), before);
    assert_eq!(store.read_journal(&run_id(1)).expect("read").len(), 1);
    assert!(store.verify().expect("verified").is_clean());

    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let error = store.append_dispositions(&[disposition(2, FindingStatus::Addressed, "g")]).expect_err("full");
    assert!(error.to_string().contains("triage.ndjson"), "{error}");
    assert!(error.hint().contains("disk is full"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn everything_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Pending);
    finish(&store, 1, &[1]);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    store.open_journal(&run_id(1)).expect("opens").append(at(1), RunEvent::Unknown).expect("appended");
    let _lock = store.lock_run(&run_id(1)).expect("locks").expect("free");
    store.advance_epoch().expect("advanced");
    store.checkpoint_now().expect("written");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let files = files_below(store.root());
    assert_eq!(files.len(), 10, "{files:?}");
    for path in &files {
        assert_eq!(mode(path), 0o600, "{}", path.display());
        let mut folder = path.parent();
        while let Some(path) = folder.filter(|path| path.starts_with(place.state())) {
            assert_eq!(mode(path), 0o700, "{}", path.display());
            folder = path.parent();
        }
    }
    fs::set_permissions(store.root().join("triage.ndjson"), fs::Permissions::from_mode(0o644)).expect("opened up");
    assert_eq!(store.verify().expect("verified").problems.len(), 1);
    assert!(store.repair().expect("repaired").is_clean());
    assert_eq!(mode(&store.root().join("triage.ndjson")), 0o600);
}

// ---- liveness --------------------------------------------------------------------------------------------------

#[test]
fn a_lock_is_held_until_its_process_dies() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    let mut holder = helper("hold", &place.state(), 1).spawn().expect("a process");
    let mut said = String::new();
    let mut output = BufReader::new(holder.stdout.take().expect("its output"));
    while !said.contains("held") {
        assert!(output.read_line(&mut said).expect("read") > 0, "it ended: {said}");
    }
    assert!(store.is_live(&run_id(1)).expect("asked"));
    assert!(store.lock_run(&run_id(1)).expect("asked").is_none());
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    assert!(!store.is_live(&run_id(1)).expect("asked"));
    assert!(store.lock_run(&run_id(1)).expect("asked").is_some());
    assert!(store.root().join("locks").join(format!("{}.lock", run_id(1))).exists(), "lock files stay");
}

#[test]
fn questions_about_liveness_keep_no_worker_from_its_lock() {
    let place = Place::new();
    let store = place.store();
    drop(store.lock_run(&run_id(1)).expect("locks"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    store.is_live(&run_id(1)).expect("asked");
                }
            });
        }
        let taken = (0..200).filter(|_| store.lock_run(&run_id(1)).expect("locks").is_some()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(taken, 200);
    });
}

#[test]
fn a_nested_call_under_the_lock_does_not_wait_for_itself() {
    let place = Place::new();
    let store = place.store();
    store
        .with_lock(|locked| {
            locked.create_run(&record(1, RunStatus::Pending))?;
            store.update_run(&run_id(1), at(1), |run| run.status = RunStatus::Reviewing)?;
            store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")])
        })
        .expect("done");
    assert_eq!(store.view().expect("a view").run(0).status, RunStatus::Reviewing);
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

#[test]
fn a_damaged_or_foreign_checkpoint_is_of_no_consequence() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=4 {
        create(&store, n, RunStatus::Pending);
        finish(&store, n, &[n, n + 1]);
    }
    store.append_dispositions(&[disposition(1, FindingStatus::Dismissed, "g")]).expect("appended");
    let expected = dump(&store.view().expect("a view"));
    let runs = dump(&store.runs_view().expect("a view"));
    store.checkpoint_now().expect("written");
    let path = store.root().join("view.cache");
    let whole = fs::read(&path).expect("read");
    assert_eq!(dump(&store.view().expect("a view")), expected);
    let mut damaged: Vec<Vec<u8>> = (0..whole.len())
        .step_by(whole.len() / 150)
        .map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            bytes
        })
        .collect();
    damaged.extend((0..20).map(|part| whole[..whole.len() * part / 20].to_vec()));
    damaged.push([whole.as_slice(), b"more"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).expect("written");
        assert_eq!(dump(&store.view().expect("a view")), expected);
        assert_eq!(dump(&store.runs_view().expect("a view")), runs);
    }
    // A file that was replaced by one of the same length, and a file that became shorter.
    fs::write(&path, &whole).expect("written");
    let triage = store.root().join("triage.ndjson");
    let other = fs::read_to_string(&triage).expect("read").replace("dismissed", "addressed");
    fs::write(&triage, other).expect("written");
    let row = store.view().expect("a view");
    assert_eq!(row.finding(row.finding_index(finding_id(1).as_str()).expect("there")).status, FindingStatus::Addressed);
    let path = store.root().join("runs.ndjson");
    let first: String =
        fs::read_to_string(&path).expect("read").lines().next().map(|line| format!("{line}\n")).expect("one");
    let old = store.view().expect("a view");
    fs::write(&path, first).expect("written");
    assert_eq!(store.view().expect("a view").run_count(), 1);
    assert_eq!(store.refresh_view(&old).expect("a view").run_count(), 1);
}

#[test]
fn opening_many_runs_leaves_a_checkpoint_and_recent_agrees_with_it() {
    let place = Place::new();
    let store = place.store();
    sample::fill(&store, &sample::Shape::of(120, 1500)).expect("a sample");
    let scratch = store.view().expect("a view");
    assert_eq!((scratch.run_count(), scratch.finding_count()), (120, 1500));
    assert!(store.root().join("view.cache").exists());
    let opened = store.view().expect("a view");
    assert_eq!(dump(&opened), dump(&scratch));
    assert_eq!(dump(&store.lines_only_view().expect("a view")), dump(&store.runs_view().expect("a view")));
    assert!(Arc::ptr_eq(&store.refresh_view(&opened).expect("a view"), &opened), "nothing changed");
    let recent = store.recent_view(20).expect("a view");
    assert_eq!((recent.run_count(), recent.complete), (20, false));
    for index in 0..20 {
        assert_eq!(recent.run(index), opened.run(index));
    }
    for index in 0..recent.finding_count() {
        let (few, all) = (recent.finding(index), opened.finding(index));
        assert_eq!((few.id, few.status, few.last_run, few.title), (all.id, all.status, all.last_run, all.title));
    }
    assert_eq!(store.verify().expect("verified").problems, []);
    for index in (0..opened.finding_count()).step_by(97) {
        let row = opened.finding(index);
        let whole = store.finding_in(&opened, &row.id.parse().expect("an id")).expect("read").expect("there");
        assert_eq!((whole.title.as_str(), whole.status), (row.title, row.status));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Create,
    Work(usize, usize),
    Complete(usize, Vec<usize>),
    End(usize, RunStatus),
    Triage(usize, FindingStatus),
    Rubbish(usize, bool),
    Checkpoint,
    Refresh,
    Repair,
    Compact,
}

fn op() -> impl Strategy<Value = Op> {
    use proptest::prelude::*;
    let findings = || prop::collection::vec(0..25_usize, 0..6);
    let ended = prop::sample::select(vec![RunStatus::Lost, RunStatus::Failed, RunStatus::Cancelled]);
    let status = prop::sample::select(FindingStatus::ALL);
    prop_oneof![
        4 => Just(Op::Create),
        6 => (0..12_usize, 0..25_usize).prop_map(|(run, finding)| Op::Work(run, finding)),
        4 => (0..12_usize, findings()).prop_map(|(run, findings)| Op::Complete(run, findings)),
        2 => (0..12_usize, ended).prop_map(|(run, status)| Op::End(run, status)),
        4 => (0..25_usize, status).prop_map(|(finding, status)| Op::Triage(finding, status)),
        1 => (0..2_usize, any::<bool>()).prop_map(|(file, torn)| Op::Rubbish(file, torn)),
        2 => Just(Op::Checkpoint),
        3 => Just(Op::Refresh),
        1 => Just(Op::Repair),
        1 => Just(Op::Compact),
    ]
}

fn apply(store: &Store, op: &Op, runs: &mut Vec<bool>, view: &mut Arc<StoreView>) {
    let open = |n: usize, runs: &Vec<bool>| runs.get(n).copied().unwrap_or(false);
    match op {
        Op::Create => {
            create(store, runs.len(), RunStatus::Reviewing);
            runs.push(true);
        }
        Op::Work(run, n) if open(*run, runs) => {
            let mut journal = store.open_journal(&run_id(*run)).expect("opens");
            journal
                .append(at(*n as i64), RunEvent::Finding { finding: Box::new(finding(*n, *run)) })
                .expect("appended");
        }
        Op::Complete(run, findings) if open(*run, runs) => {
            finish(store, *run, findings);
            runs[*run] = false;
        }
        Op::End(run, status) if open(*run, runs) => {
            store.update_run(&run_id(*run), at(0), |run| run.status = *status).expect("ended");
            runs[*run] = false;
        }
        Op::Triage(n, status) => store.append_dispositions(&[disposition(*n, *status, "g")]).expect("appended"),
        Op::Rubbish(file, torn) => {
            let path = store.root().join(["runs.ndjson", "triage.ndjson"][*file]);
            let mut bytes = fs::read(&path).unwrap_or_default();
            bytes.extend_from_slice(if *torn { b"{\"run_id\":\"ar_0" } else { b"rubbish\n" });
            fs::write(&path, bytes).expect("written");
        }
        Op::Checkpoint => store.checkpoint_now().expect("written"),
        Op::Refresh => *view = store.refresh_view(view).expect("a view"),
        Op::Repair => assert!(store.repair().expect("repaired").is_clean()),
        Op::Compact => drop(store.prune(None, None, at(0), false).expect("compacted")),
        Op::Work(..) | Op::Complete(..) | Op::End(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checkpoint_tail_refresh_and_scratch_agree(ops in proptest::collection::vec(op(), 1..40)) {
        let place = Place::new();
        let store = place.store();
        store.with_lock(|_| Ok(())).expect("made");
        let mut runs = Vec::new();
        let mut view = store.view().expect("a view");
        for op in &ops {
            apply(&store, op, &mut runs, &mut view);
        }
        let opened = dump(&store.view().expect("a view"));
        let refreshed = dump(&store.refresh_view(&view).expect("a view"));
        let cached = dump(&store.runs_view().expect("a view"));
        let _ = fs::remove_file(store.root().join("view.cache"));
        let scratch = dump(&store.view().expect("a view"));
        prop_assert_eq!(&opened, &scratch);
        prop_assert_eq!(&refreshed, &scratch);
        prop_assert_eq!(cached, dump(&store.runs_view().expect("a view")));
        // Sorts the lines by time instead of by their place in the file.
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(dump(&store.recent_view(1000).expect("a view"))), sorted(scratch));
    }
}

// ---- following and tailing -------------------------------------------------------------------------------------

#[test]
fn a_journal_is_followed_without_reading_it_again() {
    let place = Place::new();
    let store = place.store();
    let mut follow = store.follow_journal(&run_id(1), 0);
    assert_eq!(follow.advance().expect("read"), []);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    for n in 0..3 {
        journal.append(at(n), RunEvent::Note { text: format!("note {n}") }).expect("appended");
        let news = follow.advance().expect("read");
        assert_eq!(news.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [n as u64]);
    }
    let path = store.root().join("events").join(format!("{}.jsonl", run_id(1)));
    let mut bytes = fs::read(&path).expect("read");
    bytes.extend_from_slice(b"{\"seq\":3,\"at\":");
    fs::write(&path, &bytes).expect("torn");
    assert_eq!(follow.advance().expect("read"), []);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(9), RunEvent::Unknown).expect("appended");
    assert_eq!(follow.advance().expect("read").len(), 1);
    assert_eq!(follow.skipped(), 1);
    let late: Vec<u64> =
        store.follow_journal(&run_id(1), 2).advance().expect("read").iter().map(|entry| entry.seq).collect();
    assert_eq!(late, [2, 3]);
}

#[test]
fn a_tail_wakes_for_changes_and_for_nothing_else() {
    let place = Place::new();
    let store = place.store();
    // The tail watches a store that does not exist yet.
    let mut tail = store.open_tail();
    assert_eq!(tail.polling_reason(), None);
    let (wakes, woken) = std::sync::mpsc::channel();
    let stopper = tail.stopper();
    let waiting = std::thread::spawn(move || {
        while tail.wait() == StoreChange::Store {
            wakes.send(Instant::now()).expect("somebody listens");
        }
        tail.wait()
    });
    let wait_for = |what: &str, known: &mut Arc<StoreView>, done: &dyn Fn(&StoreView) -> bool| {
        while !done(known) {
            woken.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("no wake for {what}"));
            *known = store.refresh_view(known).expect("a view");
        }
    };
    let mut view = store.view().expect("a view");
    create(&store, 1, RunStatus::Reviewing);
    wait_for("a new run", &mut view, &|view| view.run_count() == 1);
    let mut journal = store.open_journal(&run_id(1)).expect("opens");
    journal.append(at(1), RunEvent::Finding { finding: Box::new(finding(1, 1)) }).expect("appended");
    wait_for("a finding", &mut view, &|view| view.finding_count() == 1);
    store.append_dispositions(&[disposition(1, FindingStatus::Addressed, "g")]).expect("appended");
    wait_for("a disposition", &mut view, &|view| view.finding(0).status == FindingStatus::Addressed);
    // Many changes in a short time cause only a few wake-ups.
    let begun = Instant::now();
    for n in 2..60 {
        journal.append(at(n), RunEvent::Finding { finding: Box::new(finding(n as usize, 1)) }).expect("appended");
    }
    wait_for("a burst", &mut view, &|view| view.finding_count() == 59);
    let most = begun.elapsed().as_millis() / 100 + 2;
    assert!(woken.try_iter().count() as u128 <= most);
    // Reading, locking and queries cause no wake-up.
    while woken.recv_timeout(Duration::from_millis(250)).is_ok() {}
    for _ in 0..20 {
        store.view().expect("a view");
        store.is_live(&run_id(1)).expect("asked");
        drop(store.lock_run(&run_id(1)).expect("locks"));
        store.checkpoint_now().expect("written");
    }
    assert_eq!(woken.recv_timeout(Duration::from_millis(250)).ok(), None);
    stopper.stop();
    assert_eq!(waiting.join().expect("ends"), StoreChange::Stopped);
}

#[test]
fn a_pulse_wakes_as_a_pulse_and_is_no_part_of_what_the_store_keeps() {
    let place = Place::new();
    let store = place.store();
    create(&store, 1, RunStatus::Reviewing);
    create(&store, 2, RunStatus::Reviewing);
    drop(store.open_journal(&run_id(1)).expect("opens"));
    let runs = [run_id(1), run_id(2)];
    let mut tail = store.open_tail();
    let lock = store.lock_run(&run_id(1)).expect("locks").expect("is free");
    let mut pulse = store.start_heartbeat(&run_id(1), at(1));
    assert_eq!(tail.wait(), StoreChange::Heartbeat);
    // The heartbeat of a worker that has ended causes no event.
    std::mem::forget(store.start_heartbeat(&run_id(2), at(1)));
    let beating: Vec<String> = store.heartbeats(&runs).into_iter().map(|(run, _)| run).collect();
    assert_eq!(beating, [run_id(1).as_str()]);
    // A store change that arrives together with a heartbeat is reported as a store change.
    while tail.wait() != StoreChange::Heartbeat {}
    pulse.begin_turn(at(2), 3);
    create(&store, 3, RunStatus::Reviewing);
    let mut woken = tail.wait();
    while woken == StoreChange::Heartbeat {
        woken = tail.wait();
    }
    assert_eq!(woken, StoreChange::Store);
    let report = store.verify().expect("verified");
    assert!(
        report.problems.iter().all(|problem| problem.path.extension().is_none_or(|end| end != "pulse")),
        "{report:?}"
    );
    // Prune deletes the heartbeat and the parse log of a killed worker once its run has ended, and keeps those of an
    // active worker.
    let logs = [1, 2].map(|number| store.parse_log_path(&run_id(number)));
    logs.iter().for_each(|log| fs::write(log, "").expect("written"));
    store.update_run(&run_id(2), at(3), |run| run.status = RunStatus::Lost).expect("updated");
    let events = store.root().join("events");
    let pulses = || {
        let names = fs::read_dir(&events).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.ends_with(".pulse"));
        names.sort();
        names
    };
    assert_eq!(pulses().len(), 2);
    assert!(store.prune(None, None, at(4), true).expect("looked at").bytes > 0);
    assert_eq!(pulses().len(), 2, "a dry run removes nothing");
    assert!(logs.iter().all(|log| log.exists()));
    store.prune(None, None, at(4), false).expect("pruned");
    assert_eq!(pulses(), [format!("{}.pulse", run_id(1))]);
    assert_eq!(logs.map(|log| log.exists()), [true, false]);
    drop((pulse, lock));
    assert_eq!(pulses(), Vec::<String>::new());
}

// ---- prune -----------------------------------------------------------------------------------------------------

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
    assert_eq!(files_below(store.root()).len(), files - 2);
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

#[test]
fn requests_alone_keep_the_checkpoint_up_to_date() {
    let place = Place::new();
    let store = place.store();
    sample::fill(&store, &sample::Shape::of(300, 300)).expect("a sample");
    let cache = store.root().join("view.cache");
    let runs = store.with_lock(|locked| {
        let runs = locked.runs_view()?.run_count();
        assert!(!cache.exists(), "not while others wait for the lock");
        Ok(runs)
    });
    assert_eq!(runs.expect("read"), 300);
    assert!(cache.exists());
}
