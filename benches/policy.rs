//! Measures decisions of the policy: a request against 10,000 known runs, older runs, and 200 hunks against the
//! records of 64 runs. `cargo bench --bench policy`; each must stay below a millisecond.

use divan::{Bencher, black_box};
use revdeck::domain::{
    Actor, DecisionId, FindingStatus, RunStatus, Scope, SharedDecision, TeamClock, TeamPerson, Time, TriageAction,
};
use revdeck::policy::carry::{HunkToReview, MAX_EARLIER_RUNS, ReviewedHunk, carry_over};
use revdeck::policy::supersede::{FinishRule, RunProgress, WorkerState};
use revdeck::policy::{
    AssistantQuota, CancelRequest, KnownRun, LaunchRequest, Liveness, Requester, Resumable, ReviewExtent, decide,
    find_replaced_runs, merge_decisions,
};

fn main() {
    divan::main();
}

const RUNS: usize = 10_000;
const HUNKS: usize = 200;

/// Ids in the order of time, and fingerprints, a tenth of which are equal.
struct Texts {
    ids: Vec<String>,
    fingerprints: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        Self {
            ids: (0..RUNS).map(|number| format!("ar_01JD3Z8Q6M7S5V2K4T9X{number:06}")).collect(),
            fingerprints: (0..RUNS / 10).map(|number| format!("{number:064x}")).collect(),
        }
    }

    fn runs(&self) -> Vec<KnownRun<'_>> {
        let run = |(number, id)| self.run(number, id);
        self.ids.iter().map(String::as_str).enumerate().map(run).collect()
    }

    fn run<'a>(&'a self, number: usize, id: &'a str) -> KnownRun<'a> {
        let active = number >= RUNS - 4;
        let underway = RunProgress {
            hunks: 20,
            delivered: 12,
            left_unchanged: 5,
            unchanged: 15,
            tokens: 9_000,
            tokens_left: 4_000,
            ..RunProgress::new_idle(WorkerState::Working)
        };
        KnownRun {
            id,
            status: if active { RunStatus::Reviewing } else { RunStatus::Completed },
            liveness: Liveness::Unknown,
            scope: "worktree",
            scope_hash: "a scope hash of sixty-four digits, as all of them have it in fact",
            diff_fingerprint: &self.fingerprints[number % self.fingerprints.len()],
            policy_version: "0123456789abcdef",
            reviewer: if number.is_multiple_of(3) { "builtin" } else { "cloud" },
            model: "a-model-20260101",
            reasoning_effort: "medium",
            branch: ["main", "topic", "release"][number % 3],
            worktree: "/home/user/work/code",
            attempt: 1,
            epoch: number as u64,
            ending: CancelRequest::NotRequested,
            extent: ReviewExtent::Whole,
            findings: 3,
            tokens: 20_000,
            superseded_by: "",
            resumable: Resumable::No,
            underway: active.then_some(underway),
        }
    }
}

fn request(fingerprint: &str) -> LaunchRequest {
    LaunchRequest {
        scope: Scope::Worktree,
        scope_hash: "a scope hash of sixty-four digits, as all of them have it in fact".into(),
        diff_fingerprint: fingerprint.into(),
        prompt_policy_version: "0123456789abcdef".into(),
        reviewer: "cloud".into(),
        model: "a-model-20260101".into(),
        reasoning_effort: "medium".into(),
        branch: "topic".into(),
        worktree: "/home/user/work/code".into(),
        files: 12,
        left_out: 1,
        has_secret_files: false,
        force: false,
        asker: Requester::Person,
        quota: AssistantQuota::default(),
        rule: FinishRule { finish_from: 80 },
        prompt_estimate: 12_000,
    }
}

/// No equivalent run is known: the policy checks every run for each question.
#[divan::bench]
fn decides_about_something_new(bencher: Bencher<'_, '_>) {
    let texts = Texts::new();
    let (known, request) = (texts.runs(), request("something new"));
    bencher.bench_local(|| decide(black_box(&request), black_box(&known)));
}

#[divan::bench]
fn decides_to_reuse(bencher: Bencher<'_, '_>) {
    let texts = Texts::new();
    let (known, request) = (texts.runs(), request(&texts.fingerprints[500]));
    bencher.bench_local(|| decide(black_box(&request), black_box(&known)));
}

#[divan::bench]
fn finds_what_a_run_stands_for(bencher: Bencher<'_, '_>) {
    let texts = Texts::new();
    let known = texts.runs();
    let standing = KnownRun { scope: "commit:abc", ..known[RUNS - 10] };
    bencher.bench_local(|| find_replaced_runs(black_box(&standing), black_box(&known)));
}

/// 10,000 decisions of 10 machines about 2,000 findings, each of which knows the one before.
#[divan::bench]
fn merges_10_000_decisions_of_a_team(bencher: Bencher<'_, '_>) {
    let id = |number: usize| DecisionId {
        clock: TeamClock { ms: number as i64, count: 0 },
        machine: format!("machine-{}", number % 10).parse().expect("a name"),
    };
    let decisions: Vec<SharedDecision> = (0..RUNS)
        .map(|number| SharedDecision {
            id: id(number),
            person: TeamPerson { name: format!("Person {}", number % 10), email: String::new() },
            actor: if number % 4 == 0 { Actor::Assistant } else { Actor::User },
            finding_id: format!("f_{:016x}", number % 2_000).parse().expect("an id"),
            status: FindingStatus::ALL[number % 4],
            reason: "intended".to_owned(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            over: number.checked_sub(2_000).map(id).into_iter().collect(),
            group: String::new(),
            ci: false,
        })
        .collect();
    bencher.bench_local(|| merge_decisions(black_box(&decisions)).len());
}

/// 200 hunks: every fourth is new, the others are spread over the records of 64 runs with 200 hunks each.
#[divan::bench]
fn carries_200_hunks_over_from_64_runs(bencher: Bencher<'_, '_>) {
    let path = |hunk: usize| format!("src/room_{}/file_{}.rs", hunk % 7, hunk % 40);
    let key = |run: usize, hunk: usize| format!("{:032x}", run * 1_000_003 + hunk);
    let recorded: Vec<Vec<(String, String)>> =
        (0..MAX_EARLIER_RUNS).map(|run| (0..HUNKS).map(|hunk| (path(hunk), key(run, hunk))).collect()).collect();
    let change: Vec<(String, String)> = (0..HUNKS)
        .map(|hunk| {
            (path(hunk), if hunk % 4 == 0 { key(MAX_EARLIER_RUNS, hunk) } else { key(hunk % MAX_EARLIER_RUNS, hunk) })
        })
        .collect();
    let wanted: Vec<HunkToReview<'_>> =
        change.iter().map(|(path, key)| HunkToReview { path, old_path: None, key }).collect();
    bencher.bench_local(|| {
        let earlier = recorded
            .iter()
            .map(|run| run.iter().map(|(path, key)| ReviewedHunk { path, key }).collect::<Vec<ReviewedHunk<'_>>>());
        carry_over(black_box(&wanted), earlier)
    });
}
