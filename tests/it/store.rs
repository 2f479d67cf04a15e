//! Integration tests: store.

use std::fs;
use std::path::{Path, PathBuf};

use revdeck::domain::*;
use revdeck::store::*;

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
        kind: Kind::SMELLS[n % 11],
        title: format!("finding {n} as run {run} saw it"),
        explanation: "because".into(),
        repo_relative_path: format!("src/file{}.rs", n % 7),
        line_start: n as u32 + 1,
        line_end: n as u32 + 3,
        quoted_code: "let x = 42;".into(),
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
    store.locked(|locked| locked.create_run(&record(n, status))).expect("created");
}

fn finish(store: &Store, n: usize, findings: &[usize]) {
    let run = store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Resolving).expect("resolving");
    let findings: Vec<Finding> = findings.iter().map(|f| finding(*f, n)).collect();
    let output = RunOutput { version: 1, run, findings, coverage: Coverage::default(), notes: Vec::new() };
    store.write_output(&output).expect("the output");
    store.update_run(&run_id(n), at(0), |run| run.status = RunStatus::Completed).expect("completed");
}

/// A view as text, for comparing two.
fn dump(view: &View) -> Vec<String> {
    let runs = (0..view.run_count()).map(|index| format!("{:?}", view.run(index)));
    let findings = (0..view.finding_count()).map(|index| format!("{:?}", view.finding(index)));
    runs.chain(findings).collect()
}

fn ids(view: &View) -> Vec<String> {
    (0..view.finding_count()).map(|index| view.finding(index).id.to_owned()).collect()
}

#[test]
fn reading_a_store_that_is_not_there_makes_nothing() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(store.view().expect("a view").run_count(), 0);
    assert_eq!(store.recent(5).expect("a view").run_count(), 0);
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
    let _tail = store.tail();
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
    let mut journal = store.journal(&run_id(1)).expect("opens");
    journal.append(at(6), RunEvent::Planned { files: 3, hunks: 4, left_out: vec![] }).expect("appends");
    journal.append(at(7), RunEvent::Finding { finding: Box::new(finding(5, 1)) }).expect("appends");
    journal.append(at(7), RunEvent::Finding { finding: Box::new(finding(6, 1)) }).expect("appends");
    let file = FileCoverage { path: "src/file1.rs".into(), hunks: vec![LineRange::new(1, 4)] };
    journal.append(at(8_000), RunEvent::Covered { file }).expect("appends");

    let live = store.view().expect("a view");
    assert_eq!(live.finding_count(), 2);
    let run = live.run(0);
    assert_eq!((run.files_total, run.hunks_total, run.files_covered, run.hunks_covered), (3, 4, 1, 1));
    assert_eq!(run.counts.iter().sum::<u32>(), 2);
    assert_eq!(run.updated_ms, at(8_000).as_millisecond());
    assert_eq!(dump(&live), dump(&store.recent(5).expect("a view")));

    store.append_dispositions(&[disposition(6, FindingStatus::Dismissed, "g")]).expect("appends");
    finish(&store, 1, &[5, 6]);
    drop(lock);
    assert!(!store.is_live(&run_id(1)).expect("asked"));
    let view = store.refresh(&live).expect("a view");
    assert_eq!(view.run(0).status, RunStatus::Completed);
    assert_eq!(
        view.finding(view.finding_index(finding_id(6).as_str()).expect("there")).status,
        FindingStatus::Dismissed
    );
    assert_eq!(dump(&view), dump(&store.view().expect("a view")));
    let whole = store.finding(&finding_id(6)).expect("read").expect("there");
    assert_eq!((whole.status, whole.title), (FindingStatus::Dismissed, finding(6, 1).title));
    assert_eq!(store.output(&run_id(1)).expect("read").expect("there").findings.len(), 2);
    assert_eq!(store.verify().expect("verified").problems, []);

    // A terminal status stays; other fields may change.
    let run = store.update_run(&run_id(1), at(9), |run| run.status = RunStatus::Lost).expect("updates");
    assert_eq!(run.status, RunStatus::Completed);
    store.update_run(&run_id(1), at(9), |run| run.superseded_by = Some(run_id(2))).expect("updates");
    assert_eq!(store.view().expect("a view").run(0).superseded_by, run_id(2).as_str());
    store.update_run(&run_id(1), at(9), |run| run.superseded_by = None).expect("updates");
    assert_eq!(store.run(&run_id(1)).expect("read").expect("there").superseded_by, None);
}

#[test]
fn a_finding_reported_again_is_one_row_as_the_latest_run_saw_it() {
    let place = Place::new();
    let store = place.store();
    for n in 1..=3 {
        create(&store, n, RunStatus::Pending);
    }
    // The runs end in another order than they were asked for.
    finish(&store, 3, &[1, 2]);
    let first = store.view().expect("a view");
    finish(&store, 1, &[1, 4]);
    finish(&store, 2, &[1]);
    for view in
        [store.view().expect("a view"), store.refresh(&first).expect("a view"), store.recent(9).expect("a view")]
    {
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
