//! The figures as text for a person: calm, aligned, at most 80 columns unless the terminal is wider.

use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthStr;

use super::{Chart, charts, facts};
use crate::domain::text::one_line;
use crate::domain::{CancelReason, RunStatus};
use crate::ledger::metrics::{Fates, Metrics, Precision, RunMetrics, Series, Step};
use crate::report::figures::{ASCII_BLOCKS, BLOCKS, brief, dollars, percent, spark, took, whole};
use crate::report::look::{Look, Paint};

/// Columns of a text that goes to no terminal.
const WIDTH: usize = 80;
/// A wider text is harder to read.
const MOST: usize = 110;
/// Columns of a name before what is said about it, and of a sum behind a chart.
const NAME: usize = 13;
const SUM: usize = 6;
/// Fewer decisions than this say little about a kind or a reviewer. Own: with so many a share of one half is between a
/// quarter and three quarters.
pub const TELLING: u32 = 10;

/// All figures, or those of the one run that was asked about.
pub fn text(look: &Look, metrics: &Metrics, one: Option<&RunMetrics>, zone: &TimeZone) -> String {
    let page = Page { look, width: look.width.unwrap_or(WIDTH).clamp(40, MOST) };
    if let Some(run) = one {
        return page.run(run);
    }
    let mut text = String::new();
    for fact in facts(metrics) {
        text.push_str(&page.field(fact.name, &fact.parts));
    }
    text.push_str(&page.over_time(metrics, zone));
    let kinds = metrics.by_kind.iter().map(|kind| (kind.kind.word(), String::new(), &kind.findings, &kind.precision));
    text.push_str(&page.table("By kind", "", kinds));
    let reviewers = metrics.by_reviewer.iter().map(|one| {
        let figures = format!("{:>7}{:>8}", whole(u64::from(one.runs)), brief(one.tokens_spent));
        (one.reviewer.as_str(), figures, &one.findings, &one.precision)
    });
    text.push_str(&page.table("By reviewer", "   runs  tokens", reviewers));
    text
}

/// From when to when a series goes, in words: `by day, Mar 4 to Mar 9`.
pub fn span(series: &Series, zone: &TimeZone) -> String {
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

/// How much a precision deserves to be looked at: colour only where it says something.
fn paint_of(precision: &Precision) -> Paint {
    match (precision.share, precision.decided()) {
        (Some(share), TELLING..) if share < 0.5 => Paint::Notice,
        _ => Paint::Plain,
    }
}

struct Page<'a> {
    look: &'a Look,
    width: usize,
}

impl Page<'_> {
    /// A name, and parts between dots, broken between parts; one that is too long for a line is broken between words.
    fn field(&self, name: &str, parts: &[String]) -> String {
        let dot = self.look.dot();
        let room = self.width.saturating_sub(NAME);
        let mut lines: Vec<String> = vec![String::new()];
        for part in parts {
            let part = one_line(part);
            let last = lines.last_mut();
            match last {
                Some(line) if line.is_empty() => line.push_str(&part),
                Some(line) if line.width() + dot.width() + part.width() <= room => {
                    line.push_str(dot);
                    line.push_str(&part);
                }
                _ => lines.push(part.into_owned()),
            }
            if let Some(long) = lines.pop_if(|line| line.width() > room) {
                let look = Look { width: Some(room), ..*self.look };
                lines.extend(look.wrap(&long, 0).lines().map(str::to_owned));
            }
        }
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let name = self.look.paint(Paint::Faint, &format!("{name:<NAME$}"));
            text.push_str(format!("{name}{}", self.look.fit(line, room)).trim_end());
            text.push('\n');
        }
        text
    }

    fn heading(&self, text: &str) -> String {
        format!("\n{}\n", self.look.paint(Paint::Strong, text))
    }

    fn over_time(&self, metrics: &Metrics, zone: &TimeZone) -> String {
        let room = self.width.saturating_sub(2 + NAME + SUM + 2);
        let blocks = if self.look.ascii { &ASCII_BLOCKS } else { &BLOCKS };
        let charts = charts(metrics, room);
        // One column is no course of time.
        if charts.iter().all(|chart| chart.values.len() < 2) {
            return String::new();
        }
        let mut text = self.heading(&format!("Over time, {}", span(&metrics.series, zone)));
        for Chart { name, values, most, total } in charts {
            let line = spark(&values, most, room, blocks);
            let name = self.look.paint(Paint::Faint, &format!("{name:<NAME$}"));
            text.push_str(&format!("  {name}{line}  {total:>SUM$}\n"));
        }
        text
    }

    /// Figures by name; `more` are the headings of columns of their own, which the rows have figures for.
    fn table<'t>(
        &self,
        title: &str,
        more: &str,
        rows: impl Iterator<Item = (&'t str, String, &'t Fates, &'t Precision)>,
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
            self.look.paint(Paint::Strong, title),
            pad(title),
            self.look.paint(Paint::Faint, &format!("{more}{figures}"))
        );
        for (name, own, fates, precision) in rows {
            let name = self.look.fit(&one_line(name), room);
            let shares = format!("{:>11}{:>10}", percent(precision.share), percent(precision.at_least));
            text.push_str(&format!(
                "{name}{}{own}{:>7}{:>11}{:>11}{}\n",
                pad(&name),
                whole(u64::from(fates.found)),
                whole(u64::from(fates.addressed)),
                whole(u64::from(fates.dismissed)),
                self.look.paint(paint_of(precision), &shares)
            ));
        }
        text
    }

    /// One run.
    fn run(&self, run: &RunMetrics) -> String {
        let named =
            |parts: &[&str]| parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let mut text = format!(
            "{}  {}\n",
            self.look.paint(Paint::Strong, run.run_id.as_str()),
            self.look.paint(Paint::of_run(run.status), run.status.word())
        );
        let asked = named(&[&run.reviewer, &run.model, &run.reasoning_effort]);
        let answers = run.answered_by.iter().map(|one| {
            let who = named(&[&one.reviewer, &one.model, &one.reasoning_effort]);
            format!(
                "{} of {who}, {} tokens",
                crate::domain::text::count(one.turns as usize, "answer"),
                brief(one.tokens.total())
            )
        });
        let times = &run.phase_timings;
        let mut pace: Vec<String> = [
            ("queued", times.queued_ms),
            ("snapshot", times.snapshot_ms),
            ("review", times.review_ms),
            ("resolve", times.resolve_ms),
        ]
        .map(|(name, ms)| format!("{name} {}", took(ms)))
        .into();
        pace.extend(times.first_token_ms.map(|ms| format!("first token after {}", took(ms))));
        pace.extend(times.first_finding_ms.map(|ms| format!("first finding after {}", took(ms))));
        let fields = [
            (
                "Asked for",
                vec![run.scope.to_string(), format!("{} ago", self.look.age(run.created_at)), run.source.to_string()],
            ),
            ("Decision", vec![run.decision.clone()]),
            ("Ended", ended(run)),
            ("Reviewer", std::iter::once(asked).chain(answers).collect()),
            ("Time", pace),
            ("Tokens", tokens(run)),
            ("Answered", answered(run)),
            ("Findings", super::fates(&run.findings)),
        ];
        for (name, parts) in fields {
            if parts.iter().any(|part| !part.is_empty()) {
                text.push_str(&self.field(name, &parts));
            }
        }
        text
    }
}

/// Why a run ended, where that needs a word.
fn ended(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    let reason = run.cancel_reason.filter(|reason| *reason != CancelReason::Superseded);
    parts.extend(reason.map(|reason| reason.word().replace('_', " ")));
    parts.extend(run.superseded_by.as_ref().map(|newer| format!("superseded by {newer}")));
    parts.extend(run.error_class.map(|class| class.word().replace('_', " ")));
    parts.extend(super::some(run.resumed, "times resumed"));
    parts
}

fn tokens(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    if run.tokens_spent > 0 {
        let tokens = &run.tokens;
        parts.push(format!("{} spent", brief(run.tokens_spent)));
        parts.push(format!("{} input", brief(tokens.input)));
        parts.push(format!("{} cached", brief(tokens.cached)));
        parts.push(format!("{} output", brief(tokens.output)));
        parts.push(format!("{} reasoning", brief(tokens.reasoning)));
        parts.push(run.cost.map_or_else(|| "no price known".to_owned(), dollars));
        parts.extend(run.window_peak.map(|peak| format!("largest request {}", brief(peak))));
    } else if run.status != RunStatus::Skipped {
        parts.push("none spent".to_owned());
    }
    parts.extend((run.tokens_saved > 0).then(|| format!("about {} saved", brief(run.tokens_saved))));
    parts
}

/// Later requests that the run answered, and what went with it.
fn answered(run: &RunMetrics) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(super::some(run.adopted, "adopted"));
    parts.extend(super::some(run.reused, "reused"));
    parts.extend(super::some(run.follow_ups, "follow-ups"));
    parts.extend(super::some(run.hunks_carried, "hunks carried over"));
    parts.extend(run.surfaced_at.map(|_| "its result was told to an assistant".to_owned()));
    parts
}
