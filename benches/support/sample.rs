//! A store like the one after months of work: for benches, for tests and for measurements of the cockpit.
//!
//! A shape always gives the same store. The files are written directly, without syncing, because 10,000 runs through
//! the store would take 50,000 syncs.

use std::fs::{self, File};
use std::io::{BufWriter, Result, Write};

use revdeck::domain::*;
use revdeck::store::Store;

/// The size of the sample and the reviewed code.
pub struct Shape {
    pub runs: usize,
    /// The number of different findings; a second run reports a tenth of them again.
    pub findings: usize,
    /// The paths of files that have findings.
    pub paths: Vec<String>,
    pub head: String,
    pub worktree: String,
    /// The time of the newest run's request.
    pub until: Time,
}

impl Shape {
    /// Returns the shape of a generated repository of 3,000 files.
    pub fn of(runs: usize, findings: usize) -> Self {
        const FOLDERS: [&str; 12] = [
            "src/server",
            "src/client",
            "src/store/index",
            "src/api/v2",
            "web/components",
            "web/hooks",
            "cmd/agent",
            "internal/queue",
            "lib/parser",
            "lib/render/text",
            "tools/release",
            "tests/integration",
        ];
        const NAMES: [&str; 10] =
            ["handler", "session", "cache", "router", "tokens", "worker", "schema", "events", "layout", "retry"];
        const ENDS: [&str; 6] = ["rs", "py", "ts", "go", "java", "c"];
        let path = |n: usize| format!("{}/{}_{}.{}", FOLDERS[n % 12], NAMES[n / 12 % 10], n / 120, ENDS[n % 6]);
        Self {
            runs,
            findings,
            paths: (0..3000).map(path).collect(),
            head: "7d1f0c5be2a94f3c8b6a0e9d4c3b2a1908f7e6d5".into(),
            worktree: "/home/ada/code/orchard".into(),
            until: Time::from_millisecond(1_790_000_000_000).unwrap_or(Time::UNIX_EPOCH),
        }
    }
}

/// A generator of random-looking numbers with a fixed sequence (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.roll() % n.max(1) as u64) as usize
    }

    fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            text.push_str(&format!("{:016x}", self.roll()));
        }
        text.truncate(digits);
        text
    }
}

const FUNCTIONS: [&str; 12] = [
    "parse_header",
    "merge_sessions",
    "handleUpload",
    "Reconcile",
    "flush_pending",
    "renderTable",
    "acquireLease",
    "decode_frame",
    "build_index",
    "onMessage",
    "validateOrder",
    "spawn_worker",
];

fn words(kind: Kind, dice: &mut Dice) -> (String, String) {
    let (name, n) = (FUNCTIONS[dice.below(12)], 16 + dice.below(140));
    let title = match kind {
        Kind::LongMethod => format!("`{name}` has {} code lines, more than 60", 60 + n),
        Kind::MagicNumbers => format!("The number {} is not explained", n * 7),
        Kind::DuplicateCode => format!("{n} tokens of `{name}` stand in another file as well"),
        Kind::GodClass => format!("`{name}Manager` has {n} methods, more than 15"),
        Kind::DeadCode => format!("The parameter `{name}` is never used"),
        Kind::GlobalVariables => format!("The mutable global `{name}_state` is touched by {} functions", n / 9),
        Kind::MutableSharedState => format!("`{name}` and 2 others change the module's `registry`"),
        Kind::ComplexFunctions => format!("`{name}` has a cyclomatic complexity of {n}, more than 15"),
        Kind::MissingErrorHandling => format!("The error of `{name}` is ignored"),
        Kind::TightCoupling => format!("The constructor builds its own `{name}Client`"),
        _ => format!("An address in `{name}` is written into the code: 10.0.{n}.1"),
    };
    let why = format!(
        "{title}. Measured in the snapshot over the lines at the anchor; the change adds {} lines here, and a reader has \
         to keep {} names in mind to follow it.",
        n / 3 + 1,
        n / 8 + 2
    );
    (title, why)
}

/// Returns a run's record at the time of its request.
pub fn record(shape: &Shape, number: usize, dice: &mut Dice) -> RunRecord {
    // One run every 20 minutes.
    let age = (shape.runs - number) as i64 * 1_200_000;
    let created = Time::from_millisecond(shape.until.as_millisecond() - age).unwrap_or(Time::UNIX_EPOCH);
    let milliseconds = u64::try_from(created.as_millisecond()).unwrap_or(0);
    let id = ulid::Ulid::from_parts(milliseconds, u128::from(dice.roll()));
    let scope = match dice.below(10) {
        0..=4 => Scope::Worktree,
        5..=6 => Scope::Commit(dice.hex(10)),
        7 => Scope::Staged,
        8 => Scope::Since { from: "origin/main".into(), to: "HEAD".into() },
        _ => Scope::Branch(Some("main".into())),
    };
    RunRecord {
        run_id: format!("ar_{id}").parse().unwrap_or_else(|error| panic!("a ULID is 26 letters: {error}")),
        status: RunStatus::Pending,
        created_at: created,
        updated_at: created,
        source: Source::ALL[dice.below(Source::ALL.len())],
        owner: "ada@orchard".into(),
        subject: ReviewSubject {
            branch: ["main", "main", "feature/sessions", "fix/retry", "release/2.4"][dice.below(5)].into(),
            worktree: shape.worktree.clone(),
            base_commit: shape.head.clone(),
            snapshot_commit: shape.head.clone(),
            head_commit: shape.head.clone(),
            triage_bytes: None,
            epoch: number as u64 / 50,
            scope,
            scope_hash: dice.hex(64),
            diff_fingerprint: dice.hex(64),
            prompt_policy_version: "builtin-1".into(),
            changed_paths: (0..1 + dice.below(8)).map(|_| shape.paths[dice.below(shape.paths.len())].clone()).collect(),
        },
        reviewed_by: RunReviewer { name: "builtin".into(), ..RunReviewer::default() },
        attempt: 1,
        follow_up_count: 0,
        follow_up_of: None,
        team: None,
        ci: false,
        usage: RunUsage::default(),
        outcome: RunOutcome::default(),
        decision: "nothing equivalent was reviewed before".into(),
        reuse: RunReuse::default(),
        links: RunLinks::default(),
        full: false,
        private: false,
        paused: false,
        ending: RunEnding::default(),
    }
}

/// Returns a finding of a run.
pub fn finding(shape: &Shape, run: &RunRecord, dice: &mut Dice) -> Finding {
    let kind = Kind::ALL[dice.below(11)];
    let (title, explanation) = words(kind, dice);
    let line_start = 1 + dice.below(900) as u32;
    let id = format!("f_{:016x}", dice.roll());
    Finding {
        finding_id: id.parse().unwrap_or_else(|error| panic!("{error}")),
        first_run_id: run.run_id.clone(),
        last_run_id: run.run_id.clone(),
        priority: Priority::ALL[[0, 1, 1, 2, 2, 2, 3, 3, 3, 3][dice.below(10)]],
        severity: Severity::ALL[dice.below(4)],
        confidence: Confidence::ALL[dice.below(3)],
        kind,
        title,
        explanation,
        repo_relative_path: shape.paths[dice.below(shape.paths.len())].clone(),
        line_start,
        line_end: line_start + dice.below(40) as u32,
        quoted_code: "    let limit = 4096;\n    if payload.len() > limit {\n        return Err(TooLarge);\n    }"
            .into(),
        pattern: None,
        suggestion: (dice.below(3) == 0).then(|| Suggestion {
            text: "Give the value a name.".into(),
            replacement: Some("    const LIMIT: usize = 4096;".into()),
            lines: None,
        }),
        status: FindingStatus::Open,
        lowered: None,
        detail_ref: format!("outputs/{}.json#{id}", run.run_id),
        reported_at: run.created_at,
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: None,
    }
}

fn line(to: &mut impl Write, value: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer(&mut *to, value)?;
    to.write_all(b"\n")
}

/// Fills an empty store.
pub fn fill(store: &Store, shape: &Shape) -> Result<()> {
    store.with_lock(|_| Ok(())).map_err(std::io::Error::other)?;
    let root = store.root();
    for folder in ["events", "outputs", "locks"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let mut runs = BufWriter::new(File::create(root.join("runs.ndjson"))?);
    let mut triage = BufWriter::new(File::create(root.join("triage.ndjson"))?);
    let mut dice = Dice(shape.runs as u64 ^ (shape.findings as u64) << 32);
    let mut before: Vec<Finding> = Vec::new();
    for number in 0..shape.runs {
        let mut run = record(shape, number, &mut dice);
        let step = |run: &mut RunRecord, seconds: i64, status| {
            run.updated_at =
                Time::from_millisecond(run.created_at.as_millisecond() + seconds * 1000).unwrap_or(run.created_at);
            run.status = status;
        };
        // The findings are spread evenly but not equally; the last run gets the rest.
        let (due, next) = (shape.findings * number / shape.runs, shape.findings * (number + 1) / shape.runs);
        let mut findings: Vec<Finding> = (due..next).map(|_| finding(shape, &run, &mut dice)).collect();
        if !before.is_empty() {
            for _ in 0..findings.len() / 10 {
                let mut again = before[dice.below(before.len())].clone();
                again.last_run_id = run.run_id.clone();
                findings.push(again);
            }
        }
        line(&mut runs, &run)?;
        for (seconds, status) in [(1, RunStatus::Snapshotting), (2, RunStatus::Reviewing), (9, RunStatus::Resolving)] {
            step(&mut run, seconds, status);
            line(&mut runs, &run)?;
        }
        let files: Vec<FileCoverage> = run
            .subject
            .changed_paths
            .iter()
            .map(|path| FileCoverage {
                keys: Vec::new(),
                path: path.clone(),
                hunks: vec![LineRange::new(10, 40), LineRange::new(90, 96)],
            })
            .collect();
        let covered = files.len() as u32;
        let coverage = Coverage {
            files_total: covered + 1,
            files_covered: covered,
            hunks_total: covered * 2,
            hunks_covered: covered * 2,
            hunks_left_out: 0,
            lines_covered: covered * 38,
            files,
            left_out: vec![OmittedFile::new("Cargo.lock", OmissionReason::LockFile)],
            ..Coverage::default()
        };
        run.outcome.coverage = coverage.without_lists();
        run.outcome.finding_counts = FindingCounts::from_findings(&findings);
        run.outcome.finding_digests =
            findings.iter().take(RunRecord::MAX_DIGESTS).map(|finding| finding.finding_id.clone()).collect();
        run.usage.phase_timings =
            PhaseTimings { queued_ms: 12, snapshot_ms: 40, review_ms: 230, resolve_ms: 3, ..PhaseTimings::default() };
        run.outcome.summary = format!("{} in {covered} files", text::format_count(findings.len(), "finding"));
        let last = match dice.below(100) {
            0..=4 => RunStatus::Failed,
            5..=7 => RunStatus::Cancelled,
            8..=9 => RunStatus::Lost,
            _ => RunStatus::Completed,
        };
        step(&mut run, 10, last);
        line(&mut runs, &run)?;
        journal(store, &run, &findings, &coverage)?;
        let output = RunOutput { findings, coverage, ..RunOutput::new(run.clone()) };
        // Runs that did not complete have no output.
        if last == RunStatus::Completed {
            fs::write(root.join("outputs").join(format!("{}.json", run.run_id)), serde_json::to_vec(&output)?)?;
        }
        for finding in &output.findings {
            if dice.below(10) < 3 {
                let status = [FindingStatus::Addressed, FindingStatus::Dismissed][dice.below(2)];
                let disposition = Disposition {
                    finding_id: finding.finding_id.clone(),
                    status,
                    previous: FindingStatus::Open,
                    actor: Actor::User,
                    reason: "agreed in the weekly review".into(),
                    at: run.updated_at,
                    action: TriageAction::Set,
                    group: dice.hex(16),
                    run_id: None,
                    merged_into: None,
                    team: None,
                    ci: false,
                };
                line(&mut triage, &disposition)?;
            }
        }
        before = output.findings;
    }
    runs.flush()?;
    triage.flush()?;
    #[cfg(unix)]
    protect(root)?;
    Ok(())
}

fn journal(store: &Store, run: &RunRecord, findings: &[Finding], coverage: &Coverage) -> Result<()> {
    let mut journal = BufWriter::new(File::create(store.root().join("events").join(format!("{}.jsonl", run.run_id)))?);
    let mut seq = 0;
    let mut say = |event: RunEvent| {
        let entry = JournalEntry { seq, at: run.updated_at, event };
        seq += 1;
        line(&mut journal, &entry)
    };
    say(RunEvent::Started { attempt: 1, worker: 4711 })?;
    say(RunEvent::Phase { status: RunStatus::Reviewing })?;
    say(RunEvent::Planned {
        files: coverage.files_total,
        hunks: coverage.hunks_total,
        left_out: coverage.left_out.clone(),
    })?;
    for finding in findings {
        say(RunEvent::Finding { finding: Box::new(finding.clone()) })?;
    }
    for file in &coverage.files {
        say(RunEvent::Covered { file: file.clone() })?;
    }
    say(RunEvent::Finished { status: run.status })?;
    journal.flush()
}

#[cfg(unix)]
fn protect(root: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for folder in ["", "events", "outputs", "locks"] {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let mode = if entry.file_type()?.is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}
