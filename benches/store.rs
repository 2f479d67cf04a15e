//! Measures the store against its targets: `cargo bench --bench store`.
//!
//! `append` and `load` do the same work in SQLite (WAL, synchronous=FULL); `open` is a store of 10,000 runs and
//! 100,000 findings. All files are in a temporary folder: set TMPDIR to the disk to measure (not a tmpfs, where a
//! sync costs nothing).

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use revdeck::domain::*;
use revdeck::store::{JournalWriter, RepoInfo, RunRow, Store, StoreView, StoreViewBuilder};
use rusqlite::{Connection, params};

#[path = "support/sample.rs"]
mod sample;

fn main() {
    if std::env::args().any(|argument| argument == "turns") {
        return append::turns();
    }
    divan::main();
    // Rust does not drop statics, and a sample is large.
    for folder in [&*LARGE, &*RECORDS] {
        let _ = std::fs::remove_dir_all(folder.folder.path());
    }
}

struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let info = RepoInfo { version: 1, key: "bench".into(), name: "bench".into(), common_dir: "/bench/.git".into() };
    let store = Store::open(&folder.path().join("state"), info).expect("a store");
    Place { folder, store }
}

/// A store of 10,000 runs and 100,000 findings.
static LARGE: LazyLock<Place> = LazyLock::new(|| {
    let place = place();
    sample::fill(&place.store, &sample::Shape::of(10_000, 100_000)).expect("a sample");
    place.store.view().expect("a checkpoint");
    place
});

/// A store of 100,000 run records, one line each.
static RECORDS: LazyLock<Place> = LazyLock::new(|| {
    let place = place();
    place.store.with_lock(|_| Ok(())).expect("made");
    let lines: Vec<u8> = records()
        .iter()
        .flat_map(|record| serde_json::to_vec(record).expect("JSON").into_iter().chain([b'\n']))
        .collect();
    std::fs::write(place.store.root().join("runs.ndjson"), lines).expect("written");
    place
});

fn records() -> Vec<RunRecord> {
    let shape = sample::Shape::of(100_000, 0);
    let mut dice = sample::Dice(1);
    (0..shape.runs)
        .map(|number| {
            let mut record = sample::record(&shape, number, &mut dice);
            record.status = RunStatus::Completed;
            record
        })
        .collect()
}

fn checkpoint(place: &Place) -> PathBuf {
    place.store.root().join("view.cache")
}

mod append {
    use super::*;

    fn disposition(n: u64) -> Disposition {
        Disposition {
            finding_id: format!("f_{n:016x}").parse().expect("an id"),
            status: FindingStatus::Dismissed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: "agreed in the weekly review".into(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: "01JD3Z8Q6M7S5V2K4T9XWB1C0E".into(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        }
    }

    fn event(run: &RunRecord, n: u64) -> RunEvent {
        let mut finding = sample::finding(&sample::Shape::of(1, 1), run, &mut sample::Dice(n));
        finding.line_start = n as u32;
        RunEvent::Finding { finding: Box::new(finding) }
    }

    fn run() -> RunRecord {
        sample::record(&sample::Shape::of(1, 1), 0, &mut sample::Dice(7))
    }

    fn sqlite(folder: &std::path::Path) -> Connection {
        let connection = Connection::open(folder.join("db.sqlite")).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
                 CREATE TABLE triage (seq INTEGER PRIMARY KEY, json TEXT NOT NULL);
                 CREATE TABLE events (run_id TEXT, seq INTEGER, json TEXT NOT NULL, PRIMARY KEY (run_id, seq)) WITHOUT ROWID;",
            )
            .expect("tables");
        connection
    }

    /// Appends one disposition under the store's lock, durably.
    #[divan::bench(sample_count = 200, sample_size = 5)]
    fn disposition_store(bencher: Bencher) {
        let place = place();
        let mut n = 0;
        bencher.bench_local(|| {
            n += 1;
            place.store.append_dispositions(&[disposition(n)]).expect("appended");
        });
    }

    #[divan::bench(sample_count = 200, sample_size = 5)]
    fn disposition_sqlite(bencher: Bencher) {
        let place = place();
        let connection = sqlite(place.folder.path());
        let mut n = 0;
        bencher.bench_local(|| {
            n += 1;
            let json = serde_json::to_string(&disposition(n)).expect("JSON");
            connection
                .prepare_cached("INSERT INTO triage (json) VALUES (?)")
                .expect("SQL")
                .execute([json])
                .expect("row");
        });
    }

    /// Appends the same lines to both stores in turns, so that other disk activity affects both equally.
    #[allow(clippy::print_stdout, reason = "it is what this is for")]
    pub fn turns() {
        const ROUNDS: u64 = 3000;
        let place = place();
        let connection = sqlite(place.folder.path());
        let run = run();
        let mut journal = place.store.open_journal(&run.run_id).expect("a journal");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 1..=ROUNDS {
            let event = event(&run, n);
            let entry = JournalEntry { seq: n, at: Time::UNIX_EPOCH, event: event.clone() };
            let append = |ours: &mut Vec<Duration>, journal: &mut JournalWriter| {
                let begun = Instant::now();
                journal.append(Time::UNIX_EPOCH, event.clone()).expect("appended");
                ours.push(begun.elapsed());
            };
            let insert = |theirs: &mut Vec<Duration>| {
                let begun = Instant::now();
                let json = serde_json::to_string(&entry).expect("JSON");
                let mut insert = connection.prepare_cached("INSERT INTO events VALUES (?, ?, ?)").expect("SQL");
                insert.execute(params![run.run_id.as_str(), n as i64, json]).expect("row");
                theirs.push(begun.elapsed());
            };
            if n % 2 == 0 {
                append(&mut ours, &mut journal);
                insert(&mut theirs);
            } else {
                insert(&mut theirs);
                append(&mut ours, &mut journal);
            }
        }
        for (name, times) in [("store", &mut ours), ("sqlite", &mut theirs)] {
            times.sort();
            let sum: Duration = times.iter().sum();
            println!(
                "{name:7} {ROUNDS} durable findings: {:.0} per second, median {:?}",
                ROUNDS as f64 / sum.as_secs_f64(),
                times[times.len() / 2]
            );
        }
    }

    /// Appends one finding to a run's journal, durably.
    #[divan::bench(sample_count = 200, sample_size = 5)]
    fn finding_store(bencher: Bencher) {
        let place = place();
        let run = run();
        let mut journal = place.store.open_journal(&run.run_id).expect("a journal");
        let mut n = 0;
        bencher.bench_local(|| {
            n += 1;
            journal.append(Time::UNIX_EPOCH, event(&run, n)).expect("appended");
        });
    }

    #[divan::bench(sample_count = 200, sample_size = 5)]
    fn finding_sqlite(bencher: Bencher) {
        let place = place();
        let connection = sqlite(place.folder.path());
        let run = run();
        let mut n = 0;
        bencher.bench_local(|| {
            n += 1;
            let entry = JournalEntry { seq: n, at: Time::UNIX_EPOCH, event: event(&run, n) };
            let json = serde_json::to_string(&entry).expect("JSON");
            let mut insert = connection.prepare_cached("INSERT INTO events VALUES (?, ?, ?)").expect("SQL");
            insert.execute(params![run.run_id.as_str(), n as i64, json]).expect("row");
        });
    }
}

mod load {
    use super::*;

    static SQLITE: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = RECORDS.folder.path().join("runs.sqlite");
        let mut connection = Connection::open(&path).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
                 CREATE TABLE runs (seq INTEGER PRIMARY KEY, run_id TEXT UNIQUE, status INTEGER, scope TEXT, reviewer TEXT,
                   model TEXT, branch TEXT, created INTEGER, updated INTEGER, p0 INTEGER, p1 INTEGER, p2 INTEGER,
                   p3 INTEGER, tokens INTEGER, files_total INTEGER, files_covered INTEGER, hunks_total INTEGER,
                   hunks_covered INTEGER, attempt INTEGER, superseded_by TEXT, fingerprint TEXT, scope_hash TEXT,
                   policy TEXT, snapshot TEXT, head TEXT, worktree TEXT);
                 CREATE TABLE records (seq INTEGER PRIMARY KEY, run_id TEXT UNIQUE, json TEXT);",
            )
            .expect("tables");
        let transaction = connection.transaction().expect("begun");
        for record in records() {
            transaction
                .prepare_cached("INSERT INTO runs VALUES (NULL,?,?,?,?,?,?,?,?,0,0,0,0,0,?,?,?,?,?,'',?,?,?,?,?,?)")
                .expect("SQL")
                .execute(params![
                    record.run_id.as_str(),
                    record.status as u8,
                    record.subject.scope.to_string(),
                    record.reviewed_by.name,
                    record.reviewed_by.model,
                    record.subject.branch,
                    record.created_at.as_millisecond(),
                    record.updated_at.as_millisecond(),
                    record.outcome.coverage.files_total,
                    record.outcome.coverage.files_covered,
                    record.outcome.coverage.hunks_total,
                    record.outcome.coverage.hunks_covered,
                    record.attempt,
                    record.subject.diff_fingerprint,
                    record.subject.scope_hash,
                    record.subject.prompt_policy_version,
                    record.subject.snapshot_commit,
                    record.subject.head_commit,
                    record.subject.worktree,
                ])
                .expect("row");
            let json = serde_json::to_string(&record).expect("JSON");
            transaction
                .prepare_cached("INSERT INTO records VALUES (NULL,?,?)")
                .expect("SQL")
                .execute([record.run_id.as_str(), &json])
                .expect("row");
        }
        transaction.commit().expect("committed");
        path
    });

    /// Loads all rows, as columns, into the same view.
    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn runs_100k_sqlite(bencher: Bencher) {
        let path = &*SQLITE;
        bencher.bench_local(|| {
            let connection = Connection::open(path).expect("opens");
            let mut select = connection.prepare("SELECT * FROM runs ORDER BY seq DESC").expect("SQL");
            let mut rows = select.query([]).expect("rows");
            let mut view = StoreViewBuilder::default();
            while let Some(row) = rows.next().expect("a row") {
                let text = |column: usize| row.get_ref(column).expect("a column").as_str().expect("text");
                let number = |column: usize| row.get::<_, i64>(column).expect("a number");
                view.run(RunRow {
                    id: text(1),
                    status: RunStatus::ALL[number(2) as usize],
                    scope: text(3),
                    reviewer: text(4),
                    model: text(5),
                    reasoning_effort: "",
                    branch: text(6),
                    created_ms: number(7),
                    updated_ms: number(8),
                    counts: [number(9) as u32, number(10) as u32, number(11) as u32, number(12) as u32],
                    tokens: number(13) as u64,
                    files_total: number(14) as u32,
                    files_covered: number(15) as u32,
                    hunks_total: number(16) as u32,
                    hunks_covered: number(17) as u32,
                    incomplete: false,
                    has_carried: false,
                    attempt: number(18) as u32,
                    paused: false,
                    epoch: 0,
                    superseded_by: text(19),
                    cancel_reason: "",
                    error_class: "",
                    diff_fingerprint: text(20),
                    scope_hash: text(21),
                    policy_version: text(22),
                    snapshot_commit: text(23),
                    head_commit: text(24),
                    matching_head: text(24),
                    worktree: text(25),
                    base_commit: "",
                    cost: 0.0,
                    reused_from: "",
                    carried_over_from: "",
                    resumed_from: "",
                    member_of: "",
                    members: "",
                    reuse_count: 0,
                });
            }
            assert_eq!(view.build().run_count(), 100_000);
        });
    }

    /// Loads all whole records, from JSON in SQLite.
    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn records_100k_sqlite_json(bencher: Bencher) {
        let path = &*SQLITE;
        bencher.bench_local(|| {
            let connection = Connection::open(path).expect("opens");
            let mut select = connection.prepare("SELECT json FROM records ORDER BY seq").expect("SQL");
            let mut rows = select.query([]).expect("rows");
            let mut all: Vec<RunRecord> = Vec::new();
            while let Some(row) = rows.next().expect("a row") {
                let json = row.get_ref(0).expect("a column").as_str().expect("text");
                all.push(serde_json::from_str(json).expect("a record"));
            }
            assert_eq!(all.len(), 100_000);
        });
    }

    /// Loads all runs from the lines, without a checkpoint.
    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn runs_100k_store_lines(bencher: Bencher) {
        let place = &*RECORDS;
        bencher
            .with_inputs(|| {
                let _ = std::fs::remove_file(checkpoint(place));
            })
            .bench_local_values(|()| {
                assert_eq!(place.store.lines_only_view().expect("a view").run_count(), 100_000);
            });
    }

    /// Loads all runs as a process opens them: checkpoint and tail.
    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn runs_100k_store(bencher: Bencher) {
        let place = &*RECORDS;
        place.store.view().expect("a checkpoint");
        bencher.bench_local(|| {
            assert_eq!(place.store.runs_view().expect("a view").run_count(), 100_000);
        });
    }
}

mod open {
    use super::*;

    fn check(view: &StoreView) {
        assert_eq!((view.run_count(), view.finding_count()), (10_000, 100_000));
    }

    /// Loads the complete view from the checkpoint and reports its memory.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn complete(bencher: Bencher) {
        let place = &*LARGE;
        let view = place.store.view().expect("a view");
        check(&view);
        assert!(view.memory_bytes() < 25_000_000, "{} bytes", view.memory_bytes());
        bencher.bench_local(|| place.store.view().expect("a view"));
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn complete_without_checkpoint(bencher: Bencher) {
        let place = &*LARGE;
        bencher
            .with_inputs(|| std::fs::remove_file(checkpoint(place)).expect("removed"))
            .bench_local_values(|()| check(&place.store.view().expect("a view")));
    }

    /// Reads the figures of all runs, the largest part of `revdeck stats`.
    #[divan::bench(sample_count = 20, sample_size = 1)]
    fn run_figures(bencher: Bencher) {
        let place = &*LARGE;
        let view = place.store.view().expect("a view");
        bencher.bench_local(|| {
            let figures = place.store.run_figures(&view).expect("read");
            assert_eq!(figures.iter().flatten().count(), 10_000);
        });
    }

    /// Loads the data that `revdeck review` reads before it decides.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn runs_only(bencher: Bencher) {
        let place = &*LARGE;
        bencher.bench_local(|| assert_eq!(place.store.runs_view().expect("a view").run_count(), 10_000));
    }

    /// Decides and writes a line under the lock, durably: the store's whole part of an enqueue.
    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn enqueue(bencher: Bencher) {
        let place = &*LARGE;
        let mut dice = sample::Dice(99);
        bencher.bench_local(|| {
            place
                .store
                .with_lock(|locked| {
                    black_box(locked.runs_view()?.run_count());
                    let mut record = sample::record(&sample::Shape::of(1, 1), 0, &mut dice);
                    record.status = RunStatus::Skipped;
                    locked.create_run(&record)
                })
                .expect("appended");
        });
        // Restores the file for the other benches.
        let path = place.store.root().join("runs.ndjson");
        let bytes = std::fs::read(&path).expect("read");
        let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(49_999).expect("50,000 lines").0;
        std::fs::OpenOptions::new().write(true).open(&path).expect("opens").set_len(end as u64 + 1).expect("cut");
    }

    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn recent_50(bencher: Bencher) {
        let place = &*LARGE;
        bencher.bench_local(|| assert_eq!(place.store.recent_view(50).expect("a view").run_count(), 50));
    }

    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn refresh_after_a_disposition(bencher: Bencher) {
        let place = &*LARGE;
        let view = place.store.view().expect("a view");
        let id: FindingId = view.finding(500).id.parse().expect("an id");
        let line = Disposition {
            finding_id: id,
            status: FindingStatus::Dismissed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: "bench".into(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: "g".into(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        place.store.append_dispositions(&[line]).expect("appended");
        bencher.bench_local(|| check(&place.store.refresh_view(&view).expect("a view")));
    }

    #[divan::bench(sample_count = 50, sample_size = 1)]
    fn finding_by_id(bencher: Bencher) {
        let place = &*LARGE;
        let view = place.store.view().expect("a view");
        let id: FindingId = view.finding(70_000).id.parse().expect("an id");
        bencher.bench_local(|| place.store.finding_in(&view, &id).expect("read").expect("there"));
    }

    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn read_every_row(bencher: Bencher) {
        let view = LARGE.store.view().expect("a view");
        bencher.bench_local(|| (0..view.finding_count()).map(|index| view.finding(index).title.len()).sum::<usize>());
    }
}
