//! Computes metrics over time for sparklines, in steps that fit the time span.

use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use serde::{Deserialize, Serialize};

use crate::domain::{Time, word_enum};

word_enum!(
    /// Length of a point of a series.
    Step { Hour = "hour", Day = "day", Week = "week", Month = "month" }
);

/// Metrics over time. A step without any event has a point too.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MetricsSeries {
    pub step: Option<Step>,
    /// Oldest first.
    pub points: Vec<SeriesPoint>,
}

/// Metrics of one step. Tokens count at the time of the run's request, decisions at the time of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeriesPoint {
    pub start: Time,
    /// Number of requested reviews, without comments and imports.
    pub runs: u32,
    /// Number of findings reported for the first time.
    pub findings: u32,
    pub tokens_spent: u64,
    pub tokens_saved: u64,
    /// Findings whose last decision is in this step.
    pub addressed: u32,
    pub dismissed: u32,
    /// Share of addressed among these decisions, from 0 to 1. `None` if there are none.
    pub addressed_share: Option<f64>,
    /// Median time of the review of its completed runs, in milliseconds. `None` without one.
    pub review_ms: Option<u64>,
}

/// Maximum number of points. More add no information; the oldest are left out.
const MAX_POINTS: usize = 600;
const HOUR_MS: i64 = 3_600_000;

impl Step {
    /// Returns the shortest step that gives a few dozen points for a time span.
    fn for_span(first: Time, last: Time) -> Self {
        match last.as_millisecond().saturating_sub(first.as_millisecond()) / HOUR_MS {
            ..48 => Self::Hour,
            48..2_208 => Self::Day,
            2_208..17_520 => Self::Week,
            _ => Self::Month,
        }
    }

    /// Returns the start of the step that contains a moment.
    fn truncate(self, at: Time, zone: &TimeZone) -> Option<Zoned> {
        let at = at.to_zoned(zone.clone());
        let date = at.date();
        match self {
            Self::Hour => at.with().minute(0).second(0).subsec_nanosecond(0).build(),
            Self::Day => at.start_of_day(),
            Self::Week => date
                .checked_sub(i32::from(date.weekday().to_monday_zero_offset()).days())
                .and_then(|monday| monday.to_zoned(zone.clone())),
            Self::Month => date.first_of_month().to_zoned(zone.clone()),
        }
        .ok()
    }

    fn advance(self, begin: &Zoned) -> Option<Zoned> {
        let step = match self {
            Self::Hour => 1.hour(),
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
        };
        begin.checked_add(step).ok()
    }
}

impl MetricsSeries {
    /// Creates empty points from the earliest to the latest of the moments.
    pub(super) fn from_times(moments: impl Iterator<Item = Time> + Clone, zone: &TimeZone) -> Self {
        let (Some(first), Some(last)) = (moments.clone().min(), moments.max()) else { return Self::default() };
        let step = Step::for_span(first, last);
        let mut points = std::collections::VecDeque::new();
        let mut begin = step.truncate(first, zone);
        while let Some(start) = begin.filter(|begin| begin.timestamp() <= last) {
            if points.len() == MAX_POINTS {
                points.pop_front();
            }
            points.push_back(SeriesPoint {
                start: start.timestamp(),
                runs: 0,
                findings: 0,
                tokens_spent: 0,
                tokens_saved: 0,
                addressed: 0,
                dismissed: 0,
                addressed_share: None,
                review_ms: None,
            });
            begin = step.advance(&start);
        }
        Self { step: Some(step), points: points.into() }
    }

    /// Returns the point that contains a moment.
    pub(super) fn point_at(&mut self, moment: Time) -> Option<&mut SeriesPoint> {
        let behind = self.points.partition_point(|point| point.start <= moment);
        behind.checked_sub(1).and_then(|at| self.points.get_mut(at))
    }

    /// Computes the shares after everything is counted.
    pub(super) fn compute_shares(&mut self) {
        for point in &mut self.points {
            point.addressed_share = super::Precision::from_counts(point.addressed, point.dismissed).share;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], None, &[])]
    #[case::one(&["2026-03-04T12:34:56Z"], Some(Step::Hour), &["2026-03-04T12:00:00Z"])]
    #[case::gaps_have_points(
        &["2026-03-04T23:34:56Z", "2026-03-05T01:00:00Z"],
        Some(Step::Hour),
        &["2026-03-04T23:00:00Z", "2026-03-05T00:00:00Z", "2026-03-05T01:00:00Z"]
    )]
    // Clocks go forward on the 29th: that day is 23 hours long and one point.
    #[case::days_of_the_user(
        &["2026-03-30T21:59:00Z", "2026-03-28T12:00:00Z"],
        Some(Step::Day),
        &["2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]
    )]
    #[case::weeks_begin_on_monday(
        &["2026-01-01T12:00:00Z", "2026-04-10T00:00:00Z"],
        Some(Step::Week),
        &["2025-12-28T23:00:00Z", "2026-01-04T23:00:00Z"]
    )]
    #[case::months(
        &["2023-05-20T12:00:00Z", "2026-04-10T00:00:00Z"],
        Some(Step::Month),
        &["2023-04-30T22:00:00Z", "2023-05-31T22:00:00Z"]
    )]
    fn points_begin_where_a_person_would_begin_them(
        #[case] moments: &[&str],
        #[case] step: Option<Step>,
        #[case] first: &[&str],
    ) {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let moments: Vec<Time> = moments.iter().map(|text| text.parse().expect("a moment")).collect();
        let mut series = MetricsSeries::from_times(moments.iter().copied(), &zone);
        assert_eq!(series.step, step);
        let starts: Vec<String> = series.points.iter().map(|point| point.start.to_string()).collect();
        assert_eq!(starts.iter().take(first.len()).collect::<Vec<_>>(), first);
        assert!(starts.len() < 60, "{}", starts.len());
        for moment in moments {
            let point = series.point_at(moment).expect("every moment has a point");
            assert!(point.start <= moment);
        }
    }

    #[test]
    fn a_clock_that_once_stood_at_zero_makes_no_endless_series() {
        let moments = [Time::UNIX_EPOCH, "9999-01-01T00:00:00Z".parse().expect("a moment")];
        let mut series = MetricsSeries::from_times(moments.into_iter(), &TimeZone::UTC);
        assert_eq!(series.points.len(), MAX_POINTS);
        assert!(series.point_at(moments[0]).is_none(), "what is left out is not counted elsewhere");
    }
}
