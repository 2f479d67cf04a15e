//! `revdeck knowledge` without a subcommand: totals over all languages, the most useful patterns, and the precision of
//! reviews before and after learning.

use clap::Args;
use serde_json::{Value, json};

use super::{load_look, pattern_output};
use crate::cli::args::PlainFormat;
use crate::cli::error::{CliError, CliExitCode};
use crate::cli::output;
use crate::cli::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::text::format_count;
use crate::domain::{FindingStatus, Time};
use crate::git::Repo;
use crate::knowledge::cache::KnowledgeCache;
use crate::knowledge::totals::KnowledgeTotals;
use crate::knowledge::{builtin_patterns, rank};
use crate::ledger::metrics::Precision;
use crate::report::{TextOptions, TextStyle, TextTable, json};
use crate::store::StoreView;

/// Number of patterns in the list. Chosen for revdeck: as many as a model is told about.
const MAX_TOP_PATTERNS: usize = 10;

/// Minimum number of decided findings for a precision. Below it, one decision more moves the share by five points or
/// more.
const MIN_DECISIONS: u32 = 20;

/// Arguments of `knowledge` without a subcommand.
#[derive(Debug, Args)]
pub struct KnowledgeOverviewArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Precision of the findings of a repository before and after learning.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LearningPrecision {
    /// Time at which the first pattern was learned; `None` if none was.
    since: Option<Time>,
    /// Findings that were first reported before `since`: reviews without learned patterns.
    before: Precision,
    /// Findings that were first reported later.
    after: Precision,
}

impl LearningPrecision {
    /// Computes the precision from the status of each finding and the time of its first report.
    fn from_findings(findings: impl IntoIterator<Item = (FindingStatus, Time)>, since: Option<Time>) -> Self {
        let mut counts = [[0_u32; 2]; 2];
        for (status, reported) in findings {
            let of_period = &mut counts[usize::from(since.is_some_and(|since| reported >= since))];
            match status {
                FindingStatus::Addressed => of_period[0] += 1,
                FindingStatus::Dismissed => of_period[1] += 1,
                FindingStatus::Open | FindingStatus::Unresolved | FindingStatus::Obsolete => {}
            }
        }
        let [before, after] = counts.map(|[addressed, dismissed]| Precision::from_counts(addressed, dismissed));
        Self { since, before, after }
    }

    fn from_view(view: &StoreView, since: Option<Time>) -> Self {
        let findings = (0..view.finding_count()).filter_map(|index| {
            let row = view.finding(index);
            let first = view.run_index(row.first_run)?;
            Some((row.status, Time::from_millisecond(view.run(first).created_ms).ok()?))
        });
        Self::from_findings(findings, since)
    }

    fn to_json(self) -> Value {
        json!({
            "since": self.since,
            "min_decisions": MIN_DECISIONS,
            "before": precision_to_json(&self.before),
            "after": precision_to_json(&self.after),
        })
    }
}

fn is_enough(precision: &Precision) -> bool {
    precision.decided_count() >= MIN_DECISIONS
}

/// Converts a precision to JSON; its shares are null if too few findings were decided.
fn precision_to_json(precision: &Precision) -> Value {
    let known = is_enough(precision);
    json!({
        "addressed": precision.addressed,
        "dismissed": precision.dismissed,
        "share": precision.share.filter(|_| known),
        "at_least": precision.at_least.filter(|_| known),
    })
}

/// Formats a precision: `80 % of 25 decided findings were addressed, at least 61 %`.
fn format_precision(precision: &Precision) -> String {
    let decided = precision.decided_count();
    match (precision.share, precision.at_least) {
        (Some(share), Some(bound)) if is_enough(precision) => {
            let (share, bound) = (share * 100.0, bound * 100.0);
            format!("{share:.0} % of {decided} decided findings were addressed, at least {bound:.0} %")
        }
        _ => format!("too few decisions: {decided} of {MIN_DECISIONS}"),
    }
}

/// Runs `revdeck knowledge` without a subcommand.
///
/// # Errors
///
/// Returns an error if the cache or the store cannot be read.
pub fn run(
    invocation: &Invocation,
    cache: &KnowledgeCache,
    arguments: &KnowledgeOverviewArgs,
) -> Result<CliExitCode, CliError> {
    let look = load_look(invocation)?;
    let (mut totals, mut patterns) = (KnowledgeTotals::default(), Vec::new());
    for language in builtin_patterns::languages() {
        let known = cache.load_language(language)?;
        totals.merge(&KnowledgeTotals::from_language(&known, look.now));
        patterns.extend(known.patterns);
    }
    let top = rank::select_top(&patterns, |_| 1.0, look.now, MAX_TOP_PATTERNS);
    let precision = match Repo::discover(&Invocation::current_folder()?) {
        Ok(_) => {
            let session = invocation.open_reading_session(RequiredAssets::None)?;
            let view = session.store.view()?;
            Some(LearningPrecision::from_view(&view, cache.learning_since()?))
        }
        Err(_) => None,
    };
    if arguments.format == PlainFormat::Json {
        let top: Vec<Value> =
            top.iter().map(|ranked| pattern_output::pattern_to_json(ranked.pattern, look.now)).collect();
        output::print_json(&json::build_versioned([
            ("totals", pattern_output::totals_to_json(&totals, None)),
            ("top", top.into()),
            ("precision", precision.map(LearningPrecision::to_json).into()),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let mut said = render_figures(&look, &totals, precision);
    said.push_str("\nThe most useful patterns:\n");
    let mut table = TextTable::default();
    for ranked in &top {
        table.push_row([
            (TextStyle::Strong, ranked.pattern.id.as_str()),
            (TextStyle::Plain, ranked.pattern.language.as_str()),
            (TextStyle::Plain, &format!("{:.2}", ranked.standing.confidence)),
            (TextStyle::Plain, &format!("{}x", ranked.pattern.times_seen())),
            (TextStyle::Plain, &pattern_output::format_forms(ranked.pattern)),
        ]);
    }
    said.push_str(&table.render(&look));
    output::print(&said)?;
    Ok(CliExitCode::Done)
}

fn render_figures(look: &TextOptions, totals: &KnowledgeTotals, precision: Option<LearningPrecision>) -> String {
    let KnowledgeTotals { learned, base, imported, used, watched, muted, forgotten, kinds, .. } = *totals;
    let (rate, bound) = totals.rates();
    let mut rows = vec![
        (
            "patterns",
            format!("{} in all languages: {learned} learned, {base} shipped, {imported} imported", totals.patterns),
        ),
        ("", format!("{used} used, {watched} watched, {muted} muted, {forgotten} forgotten")),
        ("kinds", format!("{} lowered by one priority", format_count(kinds, "kind"))),
        ("outcomes", pattern_output::format_rate(totals.successes, totals.failures, rate, bound)),
    ];
    match precision {
        None => rows.push(("precision", "of a repository: run this inside of one".to_owned())),
        Some(precision) => {
            let since = precision.since.map(|since| since.strftime("%Y-%m-%d").to_string());
            let before = format_precision(&precision.before);
            let after = format_precision(&precision.after);
            match since {
                None => rows.push(("precision", format!("nothing was learned yet; {before}"))),
                Some(since) => {
                    rows.push(("precision", format!("before learning: {before}")));
                    rows.push(("", format!("since {since}: {after}")));
                }
            }
        }
    }
    let mut table = TextTable::default();
    for (name, text) in &rows {
        table.push_row([(TextStyle::Faint, *name), (TextStyle::Plain, text.as_str())]);
    }
    table.render(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingStatus::{Addressed, Dismissed, Obsolete, Open};

    fn at(second: i64) -> Time {
        Time::from_second(second).expect("a time")
    }

    #[test]
    fn precision_is_split_at_the_first_lesson_and_said_from_twenty_decisions_on() {
        let many = |status, second, n| std::iter::repeat_n((status, at(second)), n);
        let findings = many(Addressed, 5, 10)
            .chain(many(Dismissed, 9, 10))
            .chain(many(Open, 5, 7))
            .chain(many(Addressed, 10, 16))
            .chain(many(Dismissed, 20, 3))
            .chain(many(Obsolete, 20, 9));
        let precision = LearningPrecision::from_findings(findings.clone(), Some(at(10)));
        assert_eq!(format_precision(&precision.before), "50 % of 20 decided findings were addressed, at least 30 %");
        assert_eq!(format_precision(&precision.after), "too few decisions: 19 of 20");
        let value = precision.to_json();
        assert_eq!((&value["before"]["share"], &value["after"]["share"]), (&json!(0.5), &Value::Null));
        assert_eq!((&value["after"]["addressed"], &value["after"]["dismissed"]), (&json!(16), &json!(3)));
        let never = LearningPrecision::from_findings(findings, None);
        assert_eq!((never.before.decided_count(), never.after.decided_count()), (39, 0));
    }
}
