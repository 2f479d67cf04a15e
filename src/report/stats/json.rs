//! Encodes the statistics as one JSON object.

use serde::Serialize;

use crate::domain::{SCHEMA_VERSION, Time};
use crate::ledger::metrics::{
    KindMetrics, Metrics, MetricsSelection, MetricsSeries, MetricsTotals, ReviewerMetrics, RunMetrics, Worth,
};
use crate::parallel;
use crate::report::json::encode_json_text;

/// Number of runs that a thread encodes at a time: about 450 kB of text.
const RUNS_PER_PIECE: usize = 512;
/// Maximum number of pieces that are in memory as text: one for each thread of the pool.
const MAX_PIECES: usize = 8;

/// Keys before `runs` in the output of `stats --format json`. Every key is always present; `null` stands for an unknown value.
#[derive(Debug, Serialize)]
struct StatsHead<'a> {
    version: u32,
    since: Option<Time>,
    totals: &'a MetricsTotals,
}

/// Keys behind `runs`.
#[derive(Debug, Serialize)]
struct StatsTail<'a> {
    by_kind: &'a [KindMetrics],
    by_reviewer: &'a [ReviewerMetrics],
    series: &'a MetricsSeries,
    worth: &'a Worth,
}

/// Encodes the statistics of a selection. The parts, one after the other, are one JSON object on one line, escaped as by
/// [`encode_json_text`].
///
/// The runs are nearly all of the text: 9 MB for 10,000 of them. They are encoded in pieces on several threads, and each piece
/// is printed before many more are encoded.
pub fn encode_stats(
    metrics: &Metrics,
    selection: &MetricsSelection,
) -> impl Iterator<Item = serde_json::Result<String>> {
    let Metrics { totals, runs, by_kind, by_reviewer, series, worth } = metrics;
    let head = encode_json_text(&StatsHead { version: SCHEMA_VERSION, since: selection.since, totals });
    let head = head.map(|mut head| {
        head.pop();
        head + ",\"runs\":["
    });
    let tail = encode_json_text(&StatsTail { by_kind, by_reviewer, series, worth });
    let tail = tail.map(|mut tail| {
        tail.replace_range(..1, "],");
        tail
    });
    std::iter::once(head).chain(encode_runs(runs)).chain([tail])
}

/// Encodes the elements of an array of runs, in parts.
fn encode_runs(runs: &[RunMetrics]) -> impl Iterator<Item = serde_json::Result<String>> {
    let encode_pieces = |runs: &[RunMetrics]| {
        let pieces: Vec<&[RunMetrics]> = runs.chunks(RUNS_PER_PIECE).collect();
        parallel::map(&pieces, |piece| encode_json_text(*piece))
    };
    let pieces = runs.chunks(RUNS_PER_PIECE * MAX_PIECES).flat_map(encode_pieces);
    pieces.enumerate().map(|(number, array)| array.map(|array| open_array(array, number == 0)))
}

/// Replaces the brackets of an array by what stands before its elements in a longer one: nothing, or a comma.
fn open_array(mut array: String, is_first: bool) -> String {
    array.pop();
    array.replace_range(..1, if is_first { "" } else { "," });
    array
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use rstest::rstest;

    use super::*;
    use crate::domain::RunFigures;
    use crate::ledger::metrics::{MetricsDetail, MetricsInput, compute_metrics};
    use crate::report::json::escape_json_text;

    /// The whole object, with its keys in their order.
    #[derive(Serialize)]
    struct StatsDocument<'a> {
        version: u32,
        since: Option<Time>,
        totals: &'a MetricsTotals,
        runs: &'a [RunMetrics],
        by_kind: &'a [KindMetrics],
        by_reviewer: &'a [ReviewerMetrics],
        series: &'a MetricsSeries,
        worth: &'a Worth,
    }

    fn measure_runs(count: usize) -> Metrics {
        let run = |number: usize| -> RunFigures {
            let reviewer = ["deep \u{202e}\"[]{}\"", "\u{7f}日本"][number % 2];
            let run = serde_json::json!({
                "run_id": format!("ar_01JD3Z8Q6M7S5V2K4T9XWB{number:04}"), "status": "completed",
                "created_at": Time::UNIX_EPOCH, "source": "cli", "scope": "commit:abc",
                "reviewer": reviewer, "model": "d-1", "cost": 0.25, "phase_timings": {"review_ms": number},
            });
            serde_json::from_value(run).expect("figures")
        };
        let runs: Vec<RunFigures> = (0..count).map(run).collect();
        let input = MetricsInput { runs: &runs, findings: &[], reports: &[], scanned: &[], handed: &[] };
        compute_metrics(&input, (&MetricsSelection::default(), MetricsDetail::EachRun), &TimeZone::UTC)
    }

    #[rstest]
    #[case::no_runs(0)]
    #[case::one_run(1)]
    #[case::one_piece(RUNS_PER_PIECE)]
    #[case::two_pieces(RUNS_PER_PIECE + 1)]
    #[case::many_pieces(RUNS_PER_PIECE * MAX_PIECES + 1)]
    fn the_parts_are_one_object_with_the_keys_in_their_order(#[case] count: usize) {
        let metrics = measure_runs(count);
        let selection = MetricsSelection { since: Some(Time::UNIX_EPOCH), ..MetricsSelection::default() };
        let parts: Vec<String> = encode_stats(&metrics, &selection).map(|part| part.expect("encoded")).collect();
        assert_eq!(parts.len(), 2 + count.div_ceil(RUNS_PER_PIECE));
        let Metrics { totals, runs, by_kind, by_reviewer, series, worth } = &metrics;
        assert_eq!(runs.len(), count);
        let (version, since) = (SCHEMA_VERSION, selection.since);
        let whole = StatsDocument { version, since, totals, runs, by_kind, by_reviewer, series, worth };
        let whole = serde_json::to_string(&whole).expect("encoded");
        assert!(parts.concat() == escape_json_text(&whole), "the texts differ");
    }
}
