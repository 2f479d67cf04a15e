//! Tests the metrics with tables.

use rstest::rstest;

use super::*;
use crate::domain::{
    DismissalReason, FindingId, LedgerForm, RunEnding, RunLinks, RunRecord, RunReuse, RunUsage, TokenCountPrecision,
};

const NOW: i64 = 1_790_000_000;

fn time_at(seconds: i64) -> Time {
    Time::from_second(NOW + seconds).expect("a moment")
}

fn run_id(number: u8) -> RunId {
    format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{number:02}").parse().expect("an id")
}

fn finding_id(number: u8) -> FindingId {
    format!("f_{number:016x}").parse().expect("an id")
}

/// Returns a completed run of the built-in reviewer, requested `number` hours after the first one. Change the fields
/// that matter.
fn run(number: u8) -> RunRecord {
    let created = time_at(i64::from(number) * 3600);
    let record = serde_json::json!({
        "run_id": run_id(number), "status": "completed", "created_at": created, "updated_at": created,
        "source": "cli", "scope": "worktree", "reviewer": "builtin", "attempt": 1,
    });
    serde_json::from_value(record).expect("a record")
}

fn change(mut run: RunRecord, change: impl FnOnce(&mut RunRecord)) -> RunRecord {
    change(&mut run);
    run
}

fn build_ending(reason: CancelReason) -> RunEnding {
    RunEnding { cancel_reason: Some(reason), ..RunEnding::default() }
}

fn resumed_from(number: u8) -> RunLinks {
    RunLinks { resumed_from: Some(run_id(number)), ..RunLinks::default() }
}

fn run_with_tokens(number: u8, input: u64, cost: f64) -> RunRecord {
    let tokens = Usage { input, cached: 1, output: 10, reasoning: 5, ..Usage::default() };
    change(run(number), |run| {
        run.reviewed_by.name = "deep".into();
        run.usage = RunUsage { tokens, cost, window_peak: input, ..RunUsage::default() };
    })
}

fn build_answerer(reviewer: &str, turns: u32) -> ReviewerUsage {
    ReviewerUsage { reviewer: reviewer.into(), turns, ..ReviewerUsage::default() }
}

/// Finding of a table: its number, the runs that reported it first and last, its kind, its status and the actor that
/// set the status.
type FindingSpec = (u8, u8, u8, Kind, FindingStatus, Option<Actor>);

fn measure_runs(
    runs: &[RunRecord],
    rows: &[FindingSpec],
    handed: &[LedgerDelivery],
    selection: &MetricsSelection,
) -> Metrics {
    let ids: Vec<String> = rows.iter().map(|row| finding_id(row.0).to_string()).collect();
    let position = |number: u8| runs.iter().position(|run| run.run_id == run_id(number)).map(|at| at as u32);
    let findings: Vec<FindingFact<'_>> = rows
        .iter()
        .zip(&ids)
        .map(|(row, id)| FindingFact {
            id,
            first_run: position(row.1),
            kind: row.3,
            language: "",
            status: row.4,
            decided: row.5.map(|actor| FindingDecision { actor, at: time_at(0), reason: DismissalReason::Other }),
        })
        .collect();
    let mut reports: Vec<(u32, u32)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        reports.extend([row.1, row.2].into_iter().filter_map(|run| Some((position(run)?, at as u32))));
    }
    for (at, run) in runs.iter().enumerate() {
        let named = rows.iter().enumerate().filter(|(_, row)| run.outcome.finding_digests.contains(&finding_id(row.0)));
        reports.extend(named.map(|(finding, _)| (at as u32, finding as u32)));
    }
    reports.sort_unstable();
    reports.dedup();
    let runs: Vec<RunFigures> = runs.iter().map(RunFigures::from).collect();
    compute_metrics(
        &MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed },
        (selection, MetricsDetail::EachRun),
        &TimeZone::UTC,
    )
}

#[test]
fn sums_of_the_greatest_counts_do_not_overflow() {
    let greatest = |number: u8| {
        change(run(number), |run| {
            run.follow_up_count = u32::MAX;
            run.reuse = RunReuse { count: u32::MAX, adopted_count: u32::MAX, ..RunReuse::default() };
            run.outcome.coverage.hunks_covered = u32::MAX;
            run.outcome.coverage.hunks_carried = u32::MAX;
        })
    };
    let totals = measure_all(&[greatest(1), greatest(2)]).totals;
    let sums = [totals.follow_ups, totals.adopted, totals.hunks_covered, totals.hunks_carried];
    assert_eq!(sums, [u32::MAX; 4]);
}

fn measure_all(runs: &[RunRecord]) -> Metrics {
    measure_runs(runs, &[], &[], &MetricsSelection::default())
}

fn build_delivery(seconds: i64, run: Option<u8>, findings: &[u8], tokens: u64) -> LedgerDelivery {
    LedgerDelivery {
        at: time_at(seconds),
        worktree: "/w".into(),
        run_id: run.map(run_id),
        findings: findings.iter().map(|number| finding_id(*number)).collect(),
        tokens,
        counted: TokenCountPrecision::AtMost,
        left_out: 0,
        agent: String::new(),
        session: String::new(),
        form: LedgerForm::Whole,
        format: None,
        max_tokens: None,
        state: String::new(),
    }
}

#[test]
fn nothing_on_record_is_nothing_said() {
    assert_eq!(measure_all(&[]), Metrics { totals: MetricsTotals::default(), ..Metrics::default() });
}

#[rstest]
#[case::a_plain_one(run(1), "launched 1 completed 1")]
#[case::on_its_way(RunRecord { status: RunStatus::Reviewing, ..run(1) }, "launched 1 active 1")]
#[case::skipped(RunRecord { status: RunStatus::Skipped, attempt: 0, ..run(1) }, "skipped 1")]
#[case::superseded(
    RunRecord { status: RunStatus::Superseded, ending: build_ending(CancelReason::Superseded), ..run(1) },
    "launched 1 superseded 1"
)]
#[case::stopped(
    RunRecord { status: RunStatus::Cancelled, ending: build_ending(CancelReason::UserStop), ..run(1) },
    "launched 1 cancelled 1 user_stop 1"
)]
#[case::failed(RunRecord { status: RunStatus::Failed, ..run(1) }, "launched 1 failed 1")]
#[case::lost_in_its_third_attempt(RunRecord { status: RunStatus::Lost, attempt: 3, ..run(1) }, "launched 1 lost 1 resumed 2")]
#[case::answered_others(
    RunRecord { reuse: RunReuse { count: 5, adopted_count: 2, ..RunReuse::default() }, ..run(1) },
    "launched 1 completed 1 adopted 2 reused 3"
)]
#[case::follow_ups(RunRecord { follow_up_count: 2, ..run(1) }, "launched 1 completed 1 follow_ups 2")]
fn a_run_counts_for_what_it_was(#[case] record: RunRecord, #[case] expected: &str) {
    let totals = measure_all(&[record]).totals;
    let value = serde_json::to_value(&totals).expect("an object");
    let names = [
        "launched",
        "completed",
        "active",
        "skipped",
        "superseded",
        "cancelled",
        "failed",
        "lost",
        "resumed",
        "adopted",
        "reused",
        "follow_ups",
        "hunks_carried",
    ];
    let mut said: Vec<String> = Vec::new();
    for name in names {
        let count = value[name].as_u64().expect("a count");
        if count > 0 {
            said.push(format!("{name} {count}"));
        }
        if name == "cancelled" {
            said.extend(totals.cancelled_by_reason.iter().map(|(reason, count)| format!("{reason} {count}")));
        }
    }
    assert_eq!(said.join(" "), expected);
}

#[test]
fn a_comment_and_an_import_are_no_reviews_and_their_findings_count() {
    let imported = |number: u8, reviewer: &str| {
        change(run(number), |run| {
            run.source = Source::Import;
            run.reviewed_by.name = reviewer.into();
        })
    };
    let (comment, lost) = (imported(2, "you"), RunRecord { status: RunStatus::Lost, ..imported(3, "ruff") });
    let rows: [FindingSpec; 2] =
        [(1, 1, 1, Kind::DeadCode, FindingStatus::Open, None), (2, 2, 2, Kind::Correctness, FindingStatus::Open, None)];
    let metrics = measure_runs(&[lost, comment.clone(), run(1)], &rows, &[], &MetricsSelection::default());
    let totals = &metrics.totals;
    assert_eq!((totals.launched, totals.completed, totals.lost, totals.findings.found), (1, 1, 0, 2));
    assert!(!totals.is_empty());
    let reviewers: Vec<(&str, u32, u32)> =
        metrics.by_reviewer.iter().map(|one| (one.reviewer.as_str(), one.runs, one.findings.found)).collect();
    assert_eq!(reviewers, [("builtin", 1, 1), ("ruff", 0, 0), ("you", 0, 1)]);
    let points: (u32, u32) =
        metrics.series.points.iter().fold((0, 0), |sum, point| (sum.0 + point.runs, sum.1 + point.findings));
    assert_eq!(points, (1, 2));
    assert_eq!(metrics.runs.len(), 3, "each run has its figures");

    let alone = measure_runs(&[comment], &rows[1..], &[], &MetricsSelection::default());
    assert_eq!((alone.totals.launched, alone.totals.is_empty()), (0, false), "its finding is something to tell");
    assert!(measure_all(&[imported(1, "ruff")]).totals.is_empty());
    assert!(!measure_all(&[RunRecord { status: RunStatus::Skipped, ..run(1) }]).totals.is_empty());
}

#[test]
fn a_run_that_goes_on_from_another_was_resumed_once_more() {
    let first = RunRecord { status: RunStatus::Lost, attempt: 2, ..run(1) };
    let waits = RunRecord { status: RunStatus::Pending, attempt: 2, links: resumed_from(1), ..run(2) };
    let mut second = RunRecord { attempt: 3, links: resumed_from(1), ..run(2) };
    assert_eq!(measure_all(&[waits, first.clone()]).totals.resumed, 1);
    assert_eq!(measure_all(&[second.clone(), first.clone()]).totals.resumed, 2);
    // Its other carried hunks do not count here.
    second.links.carried_over_from = Some(run_id(1));
    second.outcome.coverage.hunks_carried = 4;
    assert_eq!(measure_all(&[second.clone(), first.clone()]).totals.resumed, 2);
    second.links.resumed_from = None;
    assert_eq!(measure_all(&[second, first]).totals.resumed, 3);
}

#[test]
fn sums_are_the_sums_of_the_records_and_unknown_is_not_zero() {
    let free = change(run(1), |run| run.usage.saved_token_estimate = 700);
    let metrics = measure_all(&[run_with_tokens(3, 2_000, 0.0), run_with_tokens(2, 1_000, 0.25), free]);
    let totals = &metrics.totals;
    assert_eq!(totals.tokens, Usage { input: 3_000, cached: 2, output: 20, reasoning: 10, ..Usage::default() });
    assert_eq!((totals.tokens_spent, totals.tokens_saved), (3_030, 700));
    assert_eq!((totals.cost, totals.runs_without_price), (0.25, 1));
    let costs: Vec<Option<f64>> = metrics.runs.iter().map(|run| run.cost).collect();
    assert_eq!(
        costs,
        [None, Some(0.25), Some(0.0)],
        "a run without tokens cost nothing, one without a price is unknown"
    );
    let peaks: Vec<Option<u64>> = metrics.runs.iter().map(|run| run.window_peak).collect();
    assert_eq!(peaks, [Some(2_000), Some(1_000), None]);
    assert!(metrics.runs.iter().all(|run| run.phase_timings.first_token_ms.is_none()));
}

#[test]
fn a_finding_counts_once_in_all_and_once_for_each_run_and_reviewer() {
    use FindingStatus as S;
    let runs = [
        change(run(3), |run| {
            run.outcome.finding_digests = vec![finding_id(2)];
            run.reviewed_by.name = "deep".into();
        }),
        change(run(2), |run| run.outcome.finding_digests = vec![finding_id(1), finding_id(2)]),
        run(1),
    ];
    let rows: [FindingSpec; 6] = [
        // All three runs reported it; the table names the first and the last.
        (2, 1, 3, Kind::Security, S::Addressed, Some(Actor::Engine)),
        (1, 1, 2, Kind::Security, S::Addressed, Some(Actor::User)),
        (3, 1, 1, Kind::Security, S::Dismissed, Some(Actor::User)),
        (4, 1, 1, Kind::DeadCode, S::Unresolved, Some(Actor::Engine)),
        (5, 2, 2, Kind::DeadCode, S::Obsolete, Some(Actor::Engine)),
        // The run is not on record any more.
        (6, 9, 9, Kind::DeadCode, S::Open, None),
    ];
    let surfaced = [build_delivery(5, Some(1), &[2, 3], 90), build_delivery(9, Some(1), &[2], 60)];
    let metrics = measure_runs(&runs, &rows, &surfaced, &MetricsSelection::default());
    let fates = |fates: &OutcomeCounts| {
        let OutcomeCounts { found, surfaced, open, unresolved, addressed, claimed, confirmed, dismissed, obsolete } =
            *fates;
        assert_eq!(addressed, claimed + confirmed);
        [found, surfaced, open, unresolved, claimed, confirmed, dismissed, obsolete]
    };
    assert_eq!(fates(&metrics.totals.findings), [5, 2, 0, 1, 1, 1, 1, 1]);
    let of_runs: Vec<[u32; 8]> = metrics.runs.iter().map(|run| fates(&run.findings)).collect();
    assert_eq!(of_runs, [[1, 1, 0, 0, 0, 1, 0, 0], [3, 1, 0, 0, 1, 1, 0, 1], [4, 2, 0, 1, 1, 1, 1, 0]]);
    assert_eq!(metrics.runs[2].surfaced_at, Some(time_at(5)), "when it was told first");
    assert_eq!(metrics.runs[0].surfaced_at, None);
    let kinds: Vec<(Kind, [u32; 8])> = metrics.by_kind.iter().map(|kind| (kind.kind, fates(&kind.findings))).collect();
    assert_eq!(
        kinds,
        [(Kind::Security, [3, 2, 0, 0, 1, 1, 1, 0]), (Kind::DeadCode, [2, 0, 0, 1, 0, 0, 0, 1])],
        "most findings first"
    );
    let reviewers: Vec<(&str, u32, u32, u32)> = metrics
        .by_reviewer
        .iter()
        .map(|one| (one.reviewer.as_str(), one.runs, one.findings.found, one.precision.addressed))
        .collect();
    assert_eq!(reviewers, [("builtin", 2, 5, 2), ("deep", 1, 1, 1)]);
    let total = metrics.totals.precision;
    assert_eq!((total.addressed, total.dismissed, total.share), (2, 1, Some(2.0 / 3.0)));
    assert_eq!((metrics.totals.ledgers, metrics.totals.ledger_tokens), (2, 150));
}

#[test]
fn findings_beyond_those_that_a_record_names_are_found_all_the_same() {
    let counts = serde_json::from_value(serde_json::json!({"p2": 900})).expect("counts");
    let metrics = measure_runs(
        &[change(run(1), |run| run.outcome.finding_counts = counts)],
        &[(1, 1, 1, Kind::DeadCode, FindingStatus::Open, None)],
        &[],
        &MetricsSelection::default(),
    );
    let run = &metrics.runs[0].findings;
    assert_eq!((run.found, run.open), (900, 1));
}

#[rstest]
#[case::asked_for_alone(&[], "deep")]
#[case::it_answered(&[("deep", 3)], "deep")]
#[case::another_gave_most_answers(&[("deep", 1), ("quick", 4)], "quick")]
#[case::of_equals_the_last(&[("deep", 2), ("quick", 2)], "quick")]
fn a_run_counts_for_who_gave_most_of_its_answers(#[case] answers: &[(&str, u32)], #[case] expected: &str) {
    let answered_by = answers.iter().map(|(name, turns)| build_answerer(name, *turns)).collect();
    let metrics = measure_all(&[change(run_with_tokens(1, 10, 0.1), |run| run.usage.answered_by = answered_by)]);
    let names: Vec<&str> = metrics.by_reviewer.iter().map(|one| one.reviewer.as_str()).collect();
    assert_eq!(names, [expected]);
}

#[test]
fn the_run_of_a_panel_is_no_reviewer_and_a_judge_has_reported_nothing() {
    let panel = |number: u8, answers: &[(&str, u32)]| {
        change(run(number), |run| {
            run.reviewed_by.name = "panel:all".into();
            run.usage.answered_by = answers.iter().map(|(name, turns)| build_answerer(name, *turns)).collect();
        })
    };
    let runs = [panel(3, &[("judge", 1)]), panel(2, &[]), run_with_tokens(1, 100, 0.5)];
    let rows: [FindingSpec; 2] =
        [(1, 1, 2, Kind::DeadCode, FindingStatus::Open, None), (2, 1, 3, Kind::DeadCode, FindingStatus::Open, None)];
    let metrics = measure_runs(&runs, &rows, &[], &MetricsSelection::default());
    let listed: Vec<(&str, u32, u32)> =
        metrics.by_reviewer.iter().map(|one| (one.reviewer.as_str(), one.runs, one.findings.found)).collect();
    assert_eq!(listed, [("deep", 1, 2), ("judge", 1, 0)]);
    assert_eq!(metrics.totals.findings.found, 2);
}

#[test]
fn a_selection_leaves_out_runs_and_what_belongs_to_them() {
    let runs = [run_with_tokens(3, 100, 0.5), run_with_tokens(2, 100, 0.5), run_with_tokens(1, 100, 0.5)];
    let rows: [FindingSpec; 2] = [
        (1, 1, 1, Kind::DeadCode, FindingStatus::Open, None),
        // Reported long ago, and again.
        (2, 1, 3, Kind::DeadCode, FindingStatus::Open, None),
    ];
    let surfaced = [build_delivery(0, None, &[1], 40), build_delivery(9_000, None, &[2], 30)];
    let measured = |selection| measure_runs(&runs, &rows, &surfaced, &selection);
    let since = measured(MetricsSelection { since: Some(time_at(7_200)), ..MetricsSelection::default() });
    assert_eq!((since.runs.len(), since.totals.tokens_spent), (2, 230));
    assert_eq!((since.totals.findings.found, since.totals.findings.surfaced), (1, 1));
    assert_eq!((since.totals.ledgers, since.totals.ledger_tokens), (1, 30));
    assert_eq!(since.series.points.iter().map(|point| point.findings).sum::<u32>(), 0, "neither is new");
    let one = measured(MetricsSelection { run: Some(run_id(1)), ..MetricsSelection::default() });
    assert_eq!((one.runs.len(), one.totals.findings.found, one.totals.ledgers), (1, 2, 0));
}

#[test]
fn the_series_adds_up_to_the_totals() {
    use FindingStatus as S;
    let runs = [
        run_with_tokens(40, 10, 0.1),
        change(run_with_tokens(2, 20, 0.1), |run| run.usage.saved_token_estimate = 8),
        run_with_tokens(1, 30, 0.1),
    ];
    let rows: [FindingSpec; 3] = [
        (1, 1, 40, Kind::Security, S::Addressed, Some(Actor::User)),
        (2, 2, 2, Kind::Security, S::Dismissed, Some(Actor::User)),
        (3, 40, 40, Kind::Security, S::Open, None),
    ];
    let metrics = measure_runs(&runs, &rows, &[], &MetricsSelection::default());
    let series = &metrics.series;
    assert_eq!((series.step, series.points.len()), (Some(Step::Hour), 41), "the decisions are from hour 0");
    let sum = |value: fn(&SeriesPoint) -> u64| series.points.iter().map(value).sum::<u64>();
    assert_eq!(sum(|point| u64::from(point.runs)), 3);
    assert_eq!(sum(|point| u64::from(point.findings)), 3);
    assert_eq!(sum(|point| point.tokens_spent), metrics.totals.tokens_spent);
    assert_eq!(sum(|point| point.tokens_saved), metrics.totals.tokens_saved);
    assert_eq!(series.points[0].addressed_share, Some(0.5));
    assert_eq!(series.points[1].addressed_share, None, "nothing was decided: not 0");
}

#[test]
fn what_a_wrong_clock_puts_into_the_future_has_no_place_in_the_series_and_counts_elsewhere() {
    let wrong: Time = "9999-06-01T00:00:00Z".parse().expect("a moment");
    let runs = [change(run_with_tokens(3, 10, 0.1), |run| run.created_at = wrong), run_with_tokens(1, 20, 0.1)];
    let runs = runs.each_ref().map(RunFigures::from);
    let ids = [1, 2, 3].map(|number| finding_id(number).to_string());
    let times = [time_at(7_200), wrong, time_at(86_400)];
    let fact = |number: usize| FindingFact {
        id: &ids[number],
        first_run: Some(1),
        kind: Kind::Security,
        language: "",
        status: FindingStatus::Dismissed,
        decided: Some(FindingDecision { actor: Actor::User, at: times[number], reason: DismissalReason::Other }),
    };
    let findings = [fact(0), fact(1), fact(2)];
    let reports = [(0, 0), (1, 0), (1, 1), (1, 2)];
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    // The clock of this machine, and the number of points with the runs, findings and decisions in them.
    for (now, expected) in [
        (Some(time_at(10_800)), (24, 1, 3, 2)),
        // That day is over a day ahead of this clock.
        (Some(time_at(-1)), (2, 1, 3, 1)),
        // The oldest are left out.
        (None, (600, 1, 0, 1)),
    ] {
        let selection = MetricsSelection { now, ..MetricsSelection::default() };
        let metrics = compute_metrics(&input, (&selection, MetricsDetail::Sums), &TimeZone::UTC);
        let points = &metrics.series.points;
        let sum = |value: fn(&SeriesPoint) -> u32| points.iter().map(value).sum::<u32>();
        let sums = (sum(|point| point.runs), sum(|point| point.findings), sum(|point| point.dismissed));
        assert_eq!((points.len(), sums.0, sums.1, sums.2), expected, "{now:?}");
        assert_eq!((metrics.totals.findings.dismissed, metrics.totals.tokens_spent > 20), (3, true), "{now:?}");
    }
}
