//! `revdeck stats`: prints figures about reviews: activity, cost, savings and precision.

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, civil};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{output, resolve_id, runs};
use crate::config::RequiredAssets;
use crate::domain::Time;
use crate::ledger::metrics::{MetricsDetail, MetricsSelection};
use crate::report::stats::{self, WorthGrouping};

/// Long help: definitions of the figures.
const ABOUT_FIGURES: &str = "\
Show what reviews found, cost and saved, and how precise they were.

JSON keys: `totals`, `runs` (newest first), `by_kind`, `by_reviewer`, `series` (`step`, `points`), `worth`. An unknown value \
is null, never 0: the built-in reviewer has no first token, and a model without a known price has no cost.

`found` counts each finding once. `addressed` is split into `claimed` (somebody said that it is fixed) and \
`confirmed` (a later review saw the fix). Precision compares addressed with dismissed findings: `share` is the part \
that was addressed, `at_least` the lower bound of its Wilson interval at 95 % confidence. Saved tokens are an \
estimate of the cost of reviewing again. `time` is the median time of a completed review. --since counts runs \
requested since then, and the findings that they \
reported.

--by shows what reviewers, models, kinds or languages are worth. A finding counts for each reviewer that reported it. \
`accepted` are addressed findings; cost and time are those of all reviews, divided by the accepted findings. For a kind \
or a language, each finding of a review bears an equal part of them. A reviewer is called almost always wrong about a kind \
if of at least 20 decided findings less than a quarter were accepted with 95 % confidence.";

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT_FIGURES)]
pub struct StatsArgs {
    /// Count only runs requested since then: 90m, 12h, 7d, 4w, a day (2026-11-01) or a time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<StatsSince>,
    /// Show one run with figures from its journal: an id, the beginning of an id, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with = "since")]
    run: Option<String>,
    /// Show what each reviewer, model, kind or language is worth: its findings, what became of them, and their cost
    #[arg(long, value_enum, value_name = "GROUPING", conflicts_with = "run")]
    by: Option<WorthGrouping>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Value of `--since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatsSince {
    Ago(SignedDuration),
    /// Midnight of the day in the local time zone.
    Day(civil::Date),
    Moment(Time),
}

impl StatsSince {
    /// Returns the moment.
    ///
    /// # Errors
    ///
    /// Returns an error if it is out of range.
    pub(super) fn resolve(self, now: Time, zone: &TimeZone) -> Result<Time, CliError> {
        self.to_time(now, zone).ok_or_else(|| {
            CliError::usage("--since names a moment that is out of reach").hint("write a later one, or leave it out")
        })
    }

    fn to_time(self, now: Time, zone: &TimeZone) -> Option<Time> {
        match self {
            Self::Ago(duration) => now.checked_sub(duration).ok(),
            Self::Day(date) => date.to_zoned(zone.clone()).ok().map(|day| day.timestamp()),
            Self::Moment(moment) => Some(moment),
        }
    }
}

/// Parses the value of `--since`.
///
/// # Errors
///
/// Returns how to write it.
pub(super) fn parse_since(text: &str) -> Result<StatsSince, String> {
    let ago = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let hours = |hours: i64| SignedDuration::try_from_hours(hours);
        let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
        let duration = match unit {
            "m" => SignedDuration::try_from_mins(number),
            "h" => hours(number),
            "d" => hours(number.checked_mul(24)?),
            "w" => hours(number.checked_mul(7 * 24)?),
            _ => None,
        };
        duration.map(StatsSince::Ago)
    };
    ago()
        .or_else(|| text.parse().ok().map(StatsSince::Moment))
        .or_else(|| text.parse().ok().map(StatsSince::Day))
        .ok_or_else(|| "write 90m, 12h, 7d, 4w, a day like 2026-11-01 or a moment like 2026-11-01T12:00:00Z".to_owned())
}

/// Runs `revdeck stats`.
///
/// # Errors
///
/// Returns an error if the run is unknown or `--since` is out of range.
pub fn run(invocation: &Invocation, arguments: &StatsArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_reading_session(RequiredAssets::None)?;
    let zone = TimeZone::system();
    let since = arguments.since.map(|since| since.resolve(session.ambient.now(), &zone)).transpose()?;
    let run = arguments.run.as_deref().map(|given| resolve_id::resolve_run(&session.store, given)).transpose()?;
    let selection = MetricsSelection { since, run, now: Some(session.ambient.now()) };
    let view = session.store.view()?;
    runs::print_notices(&view);
    let detail = match arguments.format {
        PlainFormat::Text if selection.run.is_none() => MetricsDetail::Sums,
        PlainFormat::Text | PlainFormat::Json => MetricsDetail::EachRun,
    };
    let metrics = stats::gather_metrics(&session.store, &view, (&selection, detail), &zone)?;
    match arguments.format {
        PlainFormat::Json => output::print_json_parts(stats::encode_stats(&metrics, &selection))?,
        // The metrics have single runs only if one is selected.
        PlainFormat::Text if metrics.totals.is_empty() && metrics.runs.is_empty() => {
            output::print(match (view.run_count(), selection.since) {
                (0, _) | (_, None) => "no runs yet: `revdeck review` makes a start\n",
                (_, Some(_)) => "no run was asked for since then\n",
            })?
        }
        PlainFormat::Text => {
            let one = selection.run.as_ref().and_then(|_| metrics.runs.first());
            output::print(&match arguments.by {
                Some(grouping) => stats::render_worth(&session.look, &metrics.worth, grouping),
                None => stats::render_stats(&session.look, &metrics, one, &zone),
            })?;
        }
    }
    Ok(CliExitCode::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_people_say_it() {
        let now: Time = "2026-11-21T12:00:00Z".parse().expect("a moment");
        for (text, expected) in [
            ("0m", Some("2026-11-21T12:00:00Z")),
            ("90m", Some("2026-11-21T10:30:00Z")),
            ("12h", Some("2026-11-21T00:00:00Z")),
            ("7d", Some("2026-11-14T12:00:00Z")),
            ("4w", Some("2026-10-24T12:00:00Z")),
            ("2026-11-01", Some("2026-11-01T00:00:00Z")),
            ("2026-11-01T01:00:00+01:00", Some("2026-11-01T00:00:00Z")),
            ("", None),
            ("d", None),
            ("-7d", None),
            ("7", None),
            ("7y", None),
            ("99999999999999999d", None),
            ("999999w", None),
            ("ü", None),
            ("2026-13-01", None),
        ] {
            let since = parse_since(text).ok().and_then(|since| since.to_time(now, &TimeZone::UTC));
            assert_eq!(since.map(|moment| moment.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
