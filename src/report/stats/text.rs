//! Renders the statistics as aligned text, at most 80 columns wide unless the terminal is wider.

use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthStr;

use super::{StatsChart, build_charts, describe_metrics};
use crate::domain::text::sanitize_line;
use crate::domain::{CancelReason, RunStatus};
use crate::ledger::metrics::{Metrics, MetricsSeries, OutcomeCounts, Precision, RunMetrics, Step};
use crate::report::figures::{
    ASCII_BLOCKS, BLOCKS, format_brief, format_dollars, format_millis, format_percent, format_short_count,
    render_sparkline,
};
use crate::report::text_style::{TextOptions, TextStyle};

/// Width in columns of text that does not go to a terminal.
pub(super) const DEFAULT_WIDTH: usize = 80;
/// Greatest width in columns; wider text is harder to read.
pub(super) const MAX_WIDTH: usize = 110;
/// Columns of a field name, and of the total behind a chart.
const NAME: usize = 13;
const SUM: usize = 6;
/// Fewest decisions that make the precision of a kind or a reviewer meaningful. Chosen here: with 10 decisions a
/// share of one half lies between about one quarter and three quarters.
pub const MIN_TELLING_DECISIONS: u32 = 10;

/// Joins parts to lines of at most `width` columns, and breaks none of them. `break_long` divides a single part that is wider.
pub fn join_parts(
    parts: &[String],
    separator: &str,
    width: usize,
    break_long: impl Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for part in parts {
        let part = sanitize_line(part);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&part),
            Some(line) if line.width() + separator.width() + part.width() <= width => {
                line.push_str(separator);
                line.push_str(&part);
            }
            _ => lines.push(part.into_owned()),
        }
        if let Some(long) = lines.pop_if(|line| line.width() > width) {
            lines.extend(break_long(&long));
        }
    }
    lines
}

/// Renders all statistics, or those of the run in `one`.
pub fn render_stats(look: &TextOptions, metrics: &Metrics, one: Option<&RunMetrics>, zone: &TimeZone) -> String {
    let page = StatsText { look, width: look.width.unwrap_or(DEFAULT_WIDTH).clamp(40, MAX_WIDTH) };
    if let Some(run) = one {
        return page.render_run(run);
    }
    let mut text = String::new();
    for fact in describe_metrics(metrics) {
        text.push_str(&page.format_field(fact.name, &fact.parts));
    }
    text.push_str(&page.render_over_time(metrics, zone));
    let kinds = metrics.by_kind.iter().map(|kind| (kind.kind.word(), String::new(), &kind.findings, &kind.precision));
    text.push_str(&page.render_table("By kind", "", kinds));
    let reviewers = metrics.by_reviewer.iter().map(|one| {
        let time = one.review_ms.map_or_else(String::new, |ms| format_millis(ms).replace(' ', ""));
        let (runs, tokens) = (format_short_count(u64::from(one.runs)), format_brief(one.tokens_spent));
        let figures = format!("{runs:>6}{tokens:>7}{time:>6}");
        (one.reviewer.as_str(), figures, &one.findings, &one.precision)
    });
    text.push_str(&page.render_table("By reviewer", "  runs tokens  time", reviewers));
    text
}

/// Describes the step and the range of a series: `by day, Mar 4 to Mar 9`. Returns an empty string for an empty
/// series.
pub fn describe_span(series: &MetricsSeries, zone: &TimeZone) -> String {
    let (Some(step), Some(first), Some(last)) = (series.step, series.points.first(), series.points.last()) else {
        return String::new();
    };
    let format = match step {
        Step::Hour => "%b %-d %H:%M",
        Step::Day | Step::Week => "%b %-d",
        Step::Month => "%b %Y",
    };
    let said = |at: crate::domain::Time| at.to_zoned(zone.clone()).strftime(format).to_string();
    match (said(first.start), said(last.start)) {
        (first, last) if first == last => format!("by {step}, {first}"),
        (first, last) => format!("by {step}, {first} to {last}"),
    }
}

/// Returns the style of a precision; colour only if the precision is below one half and enough decisions support
/// it.
pub(super) fn precision_style(precision: &Precision) -> TextStyle {
    match (precision.share, precision.decided_count()) {
        (Some(share), MIN_TELLING_DECISIONS..) if share < 0.5 => TextStyle::Notice,
        _ => TextStyle::Plain,
    }
}

struct StatsText<'a> {
    look: &'a TextOptions,
    width: usize,
}

impl StatsText<'_> {
    /// Formats a name and its parts with separators between them. Lines break between parts; a part too long for a
    /// line breaks between words.
    fn format_field(&self, name: &str, parts: &[String]) -> String {
        let room = self.width.saturating_sub(NAME);
        let look = TextOptions { width: Some(room), ..*self.look };
        let lines = join_parts(parts, self.look.separator(), room, |long| {
            look.wrap(long, 0).lines().map(str::to_owned).collect::<Vec<String>>()
        });
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let name = self.look.paint(TextStyle::Faint, &format!("{name:<NAME$}"));
            text.push_str(format!("{name}{}", self.look.truncate(line, room)).trim_end());
            text.push('\n');
        }
        text
    }

    fn format_heading(&self, text: &str) -> String {
        format!("\n{}\n", self.look.paint(TextStyle::Strong, text))
    }

    fn render_over_time(&self, metrics: &Metrics, zone: &TimeZone) -> String {
        let room = self.width.saturating_sub(2 + NAME + SUM + 2);
        let blocks = if self.look.ascii { &ASCII_BLOCKS } else { &BLOCKS };
        let charts = build_charts(metrics, room);
        // A chart with one column shows no development.
        if charts.iter().all(|chart| chart.values.len() < 2) {
            return String::new();
        }
        let mut text = self.format_heading(&format!("Over time, {}", describe_span(&metrics.series, zone)));
        for StatsChart { name, values, max: most, total } in charts {
            let line = render_sparkline(&values, most, room, blocks);
            let name = self.look.paint(TextStyle::Faint, &format!("{name:<NAME$}"));
            text.push_str(&format!("  {name}{line}  {total:>SUM$}\n"));
        }
        text
    }

    /// Renders outcome figures by name. `more` holds the headings of extra columns; each row brings the text for
    /// these columns.
    fn render_table<'t>(
        &self,
        title: &str,
        more: &str,
        rows: impl Iterator<Item = (&'t str, String, &'t OutcomeCounts, &'t Precision)>,
    ) -> String {
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return String::new();
        }
        let figures = "  found  addressed  dismissed  precision  at least";
        let room = self.width.saturating_sub(figures.len() + more.len());
        let widest = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0).max(title.width());
        let room = room.min(widest).max(4);
        let pad = |text: &str| " ".repeat(room.saturating_sub(text.width()));
        let mut text = format!(
            "\n{}{}{}\n",
            self.look.paint(TextStyle::Strong, title),
            pad(title),
            self.look.paint(TextStyle::Faint, &format!("{more}{figures}"))
        );
        for (name, own, fates, precision) in rows {
            let name = self.look.truncate(&sanitize_line(name), room);
            let shares = format!("{:>11}{:>10}", format_percent(precision.share), format_percent(precision.at_least));
            text.push_str(&format!(
                "{name}{}{own}{:>7}{:>11}{:>11}{}\n",
                pad(&name),
                format_short_count(u64::from(fates.found)),
                format_short_count(u64::from(fates.addressed)),
                format_short_count(u64::from(fates.dismissed)),
                self.look.paint(precision_style(precision), &shares)
            ));
        }
        text
    }

    /// Renders the statistics of one run.
    fn render_run(&self, run: &RunMetrics) -> String {
        let named =
            |parts: &[&str]| parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let mut text = format!(
            "{}  {}\n",
            self.look.paint(TextStyle::Strong, run.run_id.as_str()),
            self.look.paint(TextStyle::from_run_status(run.status), run.status.word())
        );
        let asked = named(&[&run.reviewer, &run.model, &run.reasoning_effort]);
        let answers = run.answered_by.iter().map(|one| {
            let who = named(&[&one.reviewer, &one.model, &one.reasoning_effort]);
            format!(
                "{} of {who}, {} tokens",
                crate::domain::text::format_count(one.turns as usize, "answer"),
                format_brief(one.tokens.total())
            )
        });
        let times = &run.phase_timings;
        let mut pace: Vec<String> = [
            ("queued", times.queued_ms),
            ("snapshot", times.snapshot_ms),
            ("review", times.review_ms),
            ("resolve", times.resolve_ms),
        ]
        .map(|(name, ms)| format!("{name} {}", format_millis(ms)))
        .into();
        pace.extend(times.first_token_ms.map(|ms| format!("first token after {}", format_millis(ms))));
        pace.extend(times.first_finding_ms.map(|ms| format!("first finding after {}", format_millis(ms))));
        let fields = [
            (
                "Asked for",
                vec![
                    run.scope.to_string(),
                    format!("{} ago", self.look.format_age(run.created_at)),
                    run.source.to_string(),
                ],
            ),
            ("Decision", vec![run.decision.clone()]),
            ("Ended", describe_ending(run)),
            ("Reviewer", std::iter::once(asked).chain(answers).collect()),
            ("Time", pace),
            ("Tokens", describe_run_tokens(run)),
            ("Answered", describe_answered(run)),
            ("Findings", super::describe_outcomes(&run.findings)),
        ];
        for (name, parts) in fields {
            if parts.iter().any(|part| !part.is_empty()) {
                text.push_str(&self.format_field(name, &parts));
            }
        }
        text
    }
}

/// Describes why a run ended early; empty for an ordinary end.
fn describe_ending(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    let reason = run.cancel_reason.filter(|reason| *reason != CancelReason::Superseded);
    parts.extend(reason.map(|reason| reason.word().replace('_', " ")));
    parts.extend(run.replaced_by().map(|newer| format!("superseded by {newer}")));
    parts.extend(run.error_class.map(|class| class.word().replace('_', " ")));
    parts.extend(super::format_things(run.resumed, "time").map(|times| format!("resumed {times}")));
    parts
}

fn describe_run_tokens(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    if run.tokens_spent > 0 {
        let tokens = &run.tokens;
        parts.push(format!("{} spent", format_brief(run.tokens_spent)));
        parts.push(format!("{} input", format_brief(tokens.input)));
        parts.push(format!("{} cached", format_brief(tokens.cached)));
        parts.push(format!("{} output", format_brief(tokens.output)));
        parts.push(format!("{} reasoning", format_brief(tokens.reasoning)));
        parts.push(run.cost.map_or_else(|| "no price known".to_owned(), format_dollars));
        parts.extend(run.window_peak.map(|peak| format!("largest request {}", format_brief(peak))));
    } else if run.status != RunStatus::Skipped {
        parts.push("none spent".to_owned());
    }
    parts.extend((run.tokens_saved > 0).then(|| format!("about {} saved", format_brief(run.tokens_saved))));
    parts
}

/// Describes the later requests that the run answered.
fn describe_answered(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(super::format_unless_zero(run.adopted, "adopted"));
    parts.extend(super::format_unless_zero(run.reused, "reused"));
    parts.extend(super::format_things(run.follow_ups, "follow-up"));
    parts.extend(super::describe_carried(run.hunks_carried));
    parts.extend(run.surfaced_at.map(|_| "its result was told to an assistant".to_owned()));
    parts
}
