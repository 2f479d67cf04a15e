//! Tests the worth of reviewers with tables.

use jiff::tz::TimeZone;
use rstest::rstest;

use super::*;
use crate::domain::{Actor, FindingDecision, ReviewerUsage, Time, Usage};
use crate::ledger::metrics::{MetricsDetail, MetricsSelection, compute_metrics, measure_worth};

/// A run of a table: reviewer, model, status, dollars, milliseconds of its review.
type RunSpec = (&'static str, &'static str, &'static str, f64, u64);

fn runs(specs: &[RunSpec]) -> Vec<RunFigures> {
    let figures = |(number, (reviewer, model, status, cost, review_ms)): (usize, &RunSpec)| {
        serde_json::from_value(serde_json::json!({
            "run_id": format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{number:02}"), "status": status,
            "created_at": "2026-11-01T10:00:00Z", "source": "cli", "scope": "worktree", "reviewer": reviewer,
            "model": model, "cost": cost, "tokens": {"input": if model.is_empty() { 0 } else { 1_000 }},
            "phase_timings": {"review_ms": review_ms},
        }))
        .expect("figures")
    };
    specs.iter().enumerate().map(figures).collect()
}

/// A finding of a table: the runs that reported it, kind, language, status, class of the reason.
type FindingSpec = (&'static [u32], Kind, &'static str, FindingStatus, DismissalReason);

fn facts(specs: &[FindingSpec]) -> Vec<FindingFact<'static>> {
    let fact = |spec: &FindingSpec| FindingFact {
        id: "f_0000000000000001",
        first_run: spec.0.last().copied(),
        kind: spec.1,
        language: spec.2,
        status: spec.3,
        decided: (spec.3 != FindingStatus::Open).then_some(FindingDecision {
            actor: Actor::User,
            at: Time::UNIX_EPOCH,
            reason: spec.4,
        }),
    };
    specs.iter().map(fact).collect()
}

fn pair_reports(specs: &[FindingSpec]) -> Vec<(u32, u32)> {
    let pairs =
        |(finding, spec): (usize, &FindingSpec)| spec.0.iter().map(|run| (*run, finding as u32)).collect::<Vec<_>>();
    specs.iter().enumerate().flat_map(pairs).collect()
}

fn worth(run_specs: &[RunSpec], finding_specs: &[FindingSpec]) -> Worth {
    let (runs, findings, reports) = (runs(run_specs), facts(finding_specs), pair_reports(finding_specs));
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    measure_worth(&input, &MetricsSelection::default())
}

fn row<'a>(rows: &'a [WorthRow], name: &str) -> &'a WorthRow {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} in {rows:?}"))
}

use DismissalReason::{FalseAlarm, FixedElsewhere, Generated, Intended, NotWorthIt, Other};
use FindingStatus::{Addressed, Dismissed, Obsolete, Open, Unresolved};

#[test]
fn a_finding_counts_for_each_reviewer_that_reported_it() {
    let runs = [
        ("deep", "d-1", "completed", 0.4, 4_000),
        ("quick", "q-1", "completed", 0.1, 1_000),
        ("deep", "d-2", "failed", 0.2, 2_000),
        ("builtin", "", "completed", 0.0, 50),
        // A skipped run reviewed nothing.
        ("quick", "q-1", "skipped", 0.0, 0),
    ];
    let findings: [FindingSpec; 7] = [
        (&[0, 1], Kind::Security, "rust", Addressed, Other),
        (&[0, 2], Kind::Security, "rust", Addressed, Other),
        (&[0], Kind::DeadCode, "go", Dismissed, FalseAlarm),
        (&[1], Kind::DeadCode, "rust", Dismissed, Intended),
        (&[2], Kind::DeadCode, "", Open, Other),
        (&[3], Kind::DeadCode, "", Unresolved, Other),
        (&[3], Kind::MagicNumbers, "go", Obsolete, Other),
    ];
    let worth = worth(&runs, &findings);
    let counts = |row: &WorthRow| [row.raised, row.accepted, row.dismissed, row.undecided, row.obsolete];

    let names: Vec<&str> = worth.by_reviewer.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["deep", "builtin", "quick"], "most findings first, then by name");
    let deep = row(&worth.by_reviewer, "deep");
    assert_eq!(counts(deep), [4, 2, 1, 1, 0], "two runs of it reported the second finding: it counts once");
    assert_eq!((deep.cost, deep.review_ms), (Some(0.6000000000000001), 6_000), "the failed run cost, too");
    assert_eq!((deep.cost_per_accepted, deep.review_ms_per_accepted), (Some(0.30000000000000004), Some(3_000)));
    assert_eq!((deep.precision.share, deep.dismissed_by_reason.false_alarm), (Some(2.0 / 3.0), 1));
    let quick = row(&worth.by_reviewer, "quick");
    assert_eq!((counts(quick), quick.dismissed_by_reason.intended), ([2, 1, 1, 0, 0], 1));
    let builtin = row(&worth.by_reviewer, "builtin");
    assert_eq!((counts(builtin), builtin.cost), ([2, 0, 0, 1, 1], Some(0.0)));
    assert_eq!((builtin.cost_per_accepted, builtin.precision.share), (None, None), "nothing was accepted: not 0");

    assert_eq!(counts(row(&worth.by_model, "d-1")), [3, 2, 1, 0, 0]);
    assert_eq!(counts(row(&worth.by_model, "d-2")), [2, 1, 0, 1, 0]);
    assert_eq!(counts(row(&worth.by_model, "builtin")), [2, 0, 0, 1, 1], "a reviewer without a model has its own name");

    assert_eq!(counts(row(&worth.by_kind, "DEAD_CODE")), [4, 0, 2, 2, 0]);
    assert_eq!(counts(row(&worth.by_language, "rust")), [3, 2, 1, 0, 0]);
    assert_eq!(counts(row(&worth.by_language, "other")), [2, 0, 0, 2, 0]);
    // Security has two of the three findings of run 0, one of two of run 1, and one of two of run 2.
    let security = row(&worth.by_kind, "SECURITY");
    let cost = security.cost.expect("known");
    assert!((cost - (0.4 * 2.0 / 3.0 + 0.1 / 2.0 + 0.2 / 2.0)).abs() < 1e-9, "{cost}");
    assert_eq!(security.review_ms, (4_000.0 * 2.0 / 3.0 + 500.0 + 1_000.0_f64).round() as u64);
    let shared = |rows: &[WorthRow]| rows.iter().filter_map(|row| row.cost).sum::<f64>();
    assert!((shared(&worth.by_kind) - 0.7).abs() < 1e-9, "the parts of all kinds are the whole");
    assert!((shared(&worth.by_language) - 0.7).abs() < 1e-9);
}

#[test]
fn an_unknown_price_is_not_a_low_one() {
    let runs = [("deep", "d-1", "completed", 0.0, 10), ("deep", "d-1", "completed", 0.5, 10)];
    let worth = worth(&runs, &[(&[1], Kind::Security, "rust", Addressed, Other)]);
    let deep = row(&worth.by_reviewer, "deep");
    assert_eq!((deep.cost, deep.cost_per_accepted, deep.review_ms_per_accepted), (None, None, Some(20)));
    assert_eq!(row(&worth.by_kind, "SECURITY").cost, Some(0.5), "the run without a price found nothing of this kind");
}

#[rstest]
#[case::nearly_always_wrong(Kind::MagicNumbers, &[(Addressed, Other, 1), (Dismissed, NotWorthIt, 19)], Some((1, 19)))]
#[case::too_few_decisions(Kind::MagicNumbers, &[(Dismissed, FalseAlarm, 19)], None)]
#[case::open_ones_decide_nothing(Kind::MagicNumbers, &[(Dismissed, FalseAlarm, 19), (Open, Other, 9)], None)]
#[case::two_of_twenty_were_right(Kind::MagicNumbers, &[(Addressed, Other, 2), (Dismissed, Intended, 18)], None)]
#[case::two_of_twenty_five(Kind::MagicNumbers, &[(Addressed, Other, 2), (Dismissed, Intended, 23)], Some((2, 23)))]
#[case::fixed_elsewhere_was_right(Kind::MagicNumbers, &[(Dismissed, FixedElsewhere, 10), (Dismissed, Other, 19)], None)]
#[case::generated_code_is_not_its_fault(Kind::MagicNumbers, &[(Dismissed, Generated, 40)], None)]
#[case::never_security(Kind::Security, &[(Dismissed, FalseAlarm, 100)], None)]
#[case::never_correctness(Kind::Correctness, &[(Dismissed, FalseAlarm, 100)], None)]
#[case::never_concurrency(Kind::Concurrency, &[(Dismissed, FalseAlarm, 100)], None)]
#[case::nor_a_smell_that_may_be_one_of_them(Kind::HardcodedConfiguration, &[(Dismissed, FalseAlarm, 100)], None)]
fn kinds_about_which_a_reviewer_is_almost_always_wrong(
    #[case] kind: Kind,
    #[case] decided: &[(FindingStatus, DismissalReason, usize)],
    #[case] expected: Option<(u32, u32)>,
) {
    let specs: Vec<FindingSpec> = decided
        .iter()
        .flat_map(|(status, reason, count)| vec![(&[0_u32] as &[u32], kind, "rust", *status, *reason); *count])
        .collect();
    let (runs, findings, reports) =
        (runs(&[("deep", "d-1", "completed", 0.1, 1)]), facts(&specs), pair_reports(&specs));
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    let misjudged = list_misjudged_kinds(&input, "deep");
    let counts: Vec<(u32, u32)> = misjudged.iter().map(|kind| (kind.accepted, kind.wrong)).collect();
    assert_eq!(counts, Vec::from_iter(expected), "{misjudged:?}");
    assert!(misjudged.iter().all(|one| one.at_most < MAX_WRONG_PRECISION && one.reviewer == "deep"));
    let worth = measure_worth(&input, &MetricsSelection::default());
    assert_eq!(worth.almost_always_wrong, misjudged, "the page and the next review say the same");
    assert_eq!(list_misjudged_kinds(&input, "quick"), [], "it says nothing about another reviewer");
}

#[test]
fn what_the_search_for_secrets_finds_counts_for_no_reviewer() {
    let runs = runs(&[("deep", "d-1", "completed", 0.4, 4_000), ("quick", "q-1", "completed", 0.1, 1_000)]);
    let specs: [FindingSpec; 2] = [
        (&[0, 1], Kind::HardcodedConfiguration, "rust", Addressed, Other),
        (&[0, 1], Kind::HardcodedConfiguration, "rust", Open, Other),
    ];
    let findings = facts(&specs);
    // The search finds both secrets in both runs. Only `quick` reports one of them.
    let (reports, scanned) = ([(1, 1)], [(0, 0), (1, 0), (0, 1)]);
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &scanned, handed: &[] };
    let metrics = compute_metrics(&input, (&MetricsSelection::default(), MetricsDetail::EachRun), &TimeZone::UTC);
    let worth = measure_worth(&input, &MetricsSelection::default());
    let raised = |rows: &[WorthRow]| rows.iter().map(|row| (row.name.clone(), row.raised)).collect::<Vec<_>>();
    assert_eq!(raised(&worth.by_reviewer), [("quick".to_owned(), 1), ("deep".to_owned(), 0)]);
    assert_eq!(raised(&worth.by_model), [("q-1".to_owned(), 1), ("d-1".to_owned(), 0)]);
    assert_eq!(raised(&worth.by_kind), [("HARDCODED_CONFIGURATION".to_owned(), 2)]);
    let by_reviewer: Vec<u32> = metrics.by_reviewer.iter().map(|row| row.findings.found).collect();
    assert_eq!(by_reviewer, [0, 1], "deep, quick");
    assert_eq!(metrics.totals.findings.found, 2, "they were found all the same");
    let by_run: Vec<u32> = metrics.runs.iter().map(|run| run.findings.found).collect();
    assert_eq!(by_run, [2, 2]);
    let decided = list_kind_records(&input, &["deep", "quick"]);
    assert!(decided.is_empty(), "nobody decided about a report of theirs: {decided:?}");
}

#[test]
fn a_judge_of_a_panel_costs_and_has_reported_nothing() {
    let mut runs = runs(&[
        ("panel:pair", "", "completed", 0.5, 700),
        ("one", "m-one", "completed", 0.25, 4_000),
        ("two", "m-two", "completed", 0.125, 1_000),
        // Nobody was asked for a second opinion.
        ("panel:pair", "", "completed", 0.0, 3),
        ("judge", "m-judge", "completed", 0.0625, 100),
    ]);
    let answerer = |reviewer: &str, model: &str, turns| ReviewerUsage {
        reviewer: reviewer.into(),
        model: model.into(),
        turns,
        ..ReviewerUsage::default()
    };
    runs[0].answered_by = vec![answerer("judge", "m-judge", 2), answerer("dear", "m-dear", 1)];
    runs[0].price_known = Some(true);
    let twenty: FindingSpec = (&[0, 2, 3], Kind::MagicNumbers, "rust", Dismissed, FalseAlarm);
    let mut specs: Vec<FindingSpec> = vec![twenty; 20];
    specs.push((&[0, 1, 2, 3], Kind::Security, "rust", Addressed, Other));
    // The judge has reviewed other code itself.
    specs.push((&[4], Kind::Security, "rust", Addressed, Other));
    let (findings, reports) = (facts(&specs), pair_reports(&specs));
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    let worth = measure_worth(&input, &MetricsSelection::default());
    let sums = |rows: &[WorthRow]| {
        let sums = rows.iter().map(|row| (row.name.clone(), row.raised, row.cost, row.review_ms));
        sums.collect::<Vec<_>>()
    };
    let expected = |prefix: &str| {
        [("two", 21_u32, 0.125_f64, 1_000_u64), ("judge", 1, 0.5625, 800), ("one", 1, 0.25, 4_000)]
            .map(|(name, raised, cost, ms)| (format!("{prefix}{name}"), raised, Some(cost), ms))
    };
    assert_eq!(sums(&worth.by_reviewer), expected(""));
    assert_eq!(sums(&worth.by_model), expected("m-"));
    let total = |rows: &[WorthRow]| rows.iter().filter_map(|row| row.cost).sum::<f64>();
    for rows in [&worth.by_reviewer, &worth.by_model, &worth.by_kind, &worth.by_language] {
        assert!((total(rows) - 0.9375).abs() < 1e-9, "nothing that was paid is lost: {rows:?}");
    }
    let wrong: Vec<&str> = worth.almost_always_wrong.iter().map(|kind| kind.reviewer.as_str()).collect();
    assert_eq!(wrong, ["two"], "a judge is not wrong about what others reported");
    assert_eq!(list_misjudged_kinds(&input, "judge"), []);
    let decided = list_kind_records(&input, &["judge"]);
    assert!(decided.is_empty(), "security is never lowered, and the rest is not its own: {decided:?}");
    // A panel alone: its judge has a row with what it cost.
    let only_panel = MetricsSelection { run: Some(runs[0].run_id.clone()), ..MetricsSelection::default() };
    let alone = measure_worth(&input, &only_panel);
    assert_eq!(sums(&alone.by_model), [("m-judge".to_owned(), 0, Some(0.5), 700)]);
    assert_eq!(alone.by_kind.iter().map(|row| row.raised).sum::<u32>(), 21, "the list was reported all the same");
    // Newer records have what each of them took. Two models answered for the judge.
    let opinion = |reviewer: &str, model: &str, cost, took_ms| {
        let tokens = Usage { input: 8, ..Usage::default() };
        ReviewerUsage { tokens, cost: Some(cost), took_ms: Some(took_ms), ..answerer(reviewer, model, 1) }
    };
    runs[0].answered_by = vec![
        opinion("judge", "m-judge", 0.125, 200),
        opinion("dear", "m-dear", 0.25, 350),
        opinion("judge", "m-judge-2", 0.125, 40),
    ];
    let input = MetricsInput { runs: &runs, findings: &findings, reports: &reports, scanned: &[], handed: &[] };
    let each = measure_worth(&input, &only_panel);
    let rows = |rows: [(&str, f64, u64); 2]| rows.map(|(name, cost, ms)| (name.to_owned(), 0_u32, Some(cost), ms));
    assert_eq!(sums(&each.by_reviewer), rows([("dear", 0.25, 350), ("judge", 0.25, 240)]));
    let by_model: Vec<_> = each.by_model.iter().map(|row| (row.name.as_str(), row.cost, row.review_ms)).collect();
    assert_eq!(by_model, [("m-dear", Some(0.25), 350), ("m-judge", Some(0.125), 200), ("m-judge-2", Some(0.125), 40)]);
    let all = measure_worth(&input, &MetricsSelection::default());
    assert!((total(&all.by_reviewer) - 0.9375).abs() < 1e-9, "nothing that was paid is lost: {:?}", all.by_reviewer);
    let metrics = compute_metrics(&input, (&only_panel, MetricsDetail::Sums), &TimeZone::UTC);
    let by_reviewer = metrics.by_reviewer.iter().map(|row| (row.reviewer.as_str(), row.runs, row.tokens_spent));
    assert_eq!(by_reviewer.collect::<Vec<_>>(), [("dear", 1, 8), ("judge", 1, 16)]);
    let spent: Vec<_> = metrics.by_reviewer.iter().map(|row| (row.cost, row.review_ms, row.findings.found)).collect();
    assert_eq!(spent, [(0.25, Some(350), 0), (0.25, Some(240), 0)]);
}
