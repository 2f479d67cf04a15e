//! Builds the statistics page: work and cost of reviews, charts over time, precision by kind and reviewer.

use unicode_width::UnicodeWidthStr;

use super::super::app::App;
use super::super::doc::{Doc, DocLine, shorten};
use super::super::glyphs::Glyphs;
use super::super::stats::StatsPage;
use super::super::theme::Role;
use super::format_kind;
use crate::ledger::metrics::{Metrics, OutcomeCounts, Precision};
use crate::report::figures::{format_brief, format_percent, format_short_count, render_sparkline};
use crate::report::stats::{MIN_TELLING_DECISIONS, build_charts, describe_metrics, describe_span};

/// Columns of names before facts and charts, and of totals behind charts.
const NAMES: usize = 14;
const SUM: usize = 8;
/// Greatest width of a chart in columns; a wider chart makes days hard to compare.
const MAX_CHART_COLUMNS: usize = 120;
/// Column widths of a table: found, addressed, dismissed, precision, at least.
const FIGURE_COLUMNS: [usize; 5] = [9, 11, 11, 11, 10];
const BY_KIND: &str = "By kind";
const BY_REVIEWER: &str = "By reviewer";
/// Headings of the columns that only the reviewers table has.
const REVIEWER_COLUMNS: &str = "   runs  tokens";
/// Smallest and greatest width of a precision bar in columns.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 12..=40;

/// Builds the page, `width` columns wide.
pub fn build_stats_page(app: &App, stats: &StatsPage, width: usize) -> Doc {
    let mut doc = Doc::default();
    if let Some(why) = &stats.trouble {
        doc.push_paragraph(Role::Warn, &format!("These figures may be old: {why}"), width);
        doc.push_blank();
    }
    match &stats.metrics {
        None if stats.trouble.is_some() => {}
        None => doc.push(DocLine::styled(Role::Faint, "counting")),
        Some(metrics) if metrics.totals.launched + metrics.totals.skipped == 0 => {
            doc.push_paragraph(Role::Normal, "No runs yet: the first review will have figures here.", width);
        }
        Some(metrics) => render_figures(app, metrics, width, &mut doc),
    }
    doc
}

fn render_figures(app: &App, metrics: &Metrics, width: usize, doc: &mut Doc) {
    let dot = format!(" {} ", app.glyphs.dot);
    for fact in describe_metrics(metrics) {
        doc.push_field(fact.name, NAMES, Role::Normal, &fact.parts.join(&dot), width);
    }
    let charts = build_charts(metrics, width.saturating_sub(NAMES + SUM + 2).min(MAX_CHART_COLUMNS));
    if charts.iter().any(|chart| chart.values.len() > 1) {
        doc.push_blank();
        doc.push(
            DocLine::styled(Role::Title, &pad_end("Over time", NAMES))
                .with_span(Role::Faint, &describe_span(&metrics.series, &app.zone)),
        );
        for chart in charts {
            let room = width.saturating_sub(NAMES + SUM + 2).min(MAX_CHART_COLUMNS);
            let line = render_sparkline(&chart.values, chart.max, room, &app.glyphs.eighths);
            doc.push(
                DocLine::styled(Role::Muted, &pad_end(chart.name, NAMES))
                    .with_span(Role::Accent, &line)
                    .with_span(Role::Normal, &format!("  {}", chart.total)),
            );
        }
    }
    // The figures of both tables are aligned if there is room.
    let longest = |names: &mut dyn Iterator<Item = usize>, title: &str| names.max().unwrap_or(0).max(title.width());
    let kind_names = longest(&mut metrics.by_kind.iter().map(|kind| kind.kind.word().width()), BY_KIND);
    let reviewer_names = longest(&mut metrics.by_reviewer.iter().map(|one| one.reviewer.width()), BY_REVIEWER);
    let block = kind_names.max(reviewer_names + REVIEWER_COLUMNS.width());
    let aligned = block + FIGURE_COLUMNS.iter().sum::<usize>() <= width;
    let kind_names = if aligned { block } else { kind_names };
    let reviewer_names = if aligned { block - REVIEWER_COLUMNS.width() } else { reviewer_names };
    let kinds: Vec<StatsTableRow<'_>> = metrics
        .by_kind
        .iter()
        .map(|kind| (format_kind(kind.kind.word()), String::new(), &kind.findings, &kind.precision))
        .collect();
    render_table(&app.glyphs, (BY_KIND, ""), &kinds, (kind_names, width), doc);
    let reviewers: Vec<StatsTableRow<'_>> = metrics
        .by_reviewer
        .iter()
        .map(|one| {
            let own = format!("{:>7}{:>8}", format_short_count(u64::from(one.runs)), format_brief(one.tokens_spent));
            (one.reviewer.clone(), own, &one.findings, &one.precision)
        })
        .collect();
    render_table(&app.glyphs, (BY_REVIEWER, REVIEWER_COLUMNS), &reviewers, (reviewer_names, width), doc);
}

/// Name, text of extra columns, outcomes, precision.
type StatsTableRow<'a> = (String, String, &'a OutcomeCounts, &'a Precision);

/// Renders a table. `own` holds the headings of extra columns; `wanted` is the width of the name column, `width`
/// that of the page.
fn render_table(
    glyphs: &Glyphs,
    (title, own): (&str, &str),
    rows: &[StatsTableRow<'_>],
    (wanted, width): (usize, usize),
    doc: &mut Doc,
) {
    if rows.is_empty() {
        return;
    }
    let names = ["found", "addressed", "dismissed", "precision", "at least"];
    let figures: usize = FIGURE_COLUMNS.iter().sum::<usize>() + own.width();
    let room = width.saturating_sub(figures).min(wanted).max(4);
    // The bar stands between the counts and the shares.
    let bar = width.saturating_sub(room + figures + 3).min(*BAR_COLUMNS.end());
    let bar = if BAR_COLUMNS.contains(&bar) { bar } else { 0 };
    let gap = if bar > 0 { bar + 3 } else { 0 };
    let cells = |cells: &[String], columns: &[usize]| {
        cells.iter().zip(columns).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>()
    };
    let named = names.map(str::to_owned);
    doc.push_blank();
    doc.push(DocLine::styled(Role::Title, &pad_end(title, room)).with_span(
        Role::Faint,
        &format!(
            "{own}{}{}{}",
            cells(&named[..3], &FIGURE_COLUMNS[..3]),
            " ".repeat(gap),
            cells(&named[3..], &FIGURE_COLUMNS[3..])
        ),
    ));
    for (name, own, fates, precision) in rows {
        let counts = [fates.found, fates.addressed, fates.dismissed].map(|n| format_short_count(u64::from(n)));
        let shares = [format_percent(precision.share), format_percent(precision.at_least)];
        let few =
            precision.share.is_some_and(|share| share < 0.5) && precision.decided_count() >= MIN_TELLING_DECISIONS;
        let mut line = DocLine::styled(Role::Normal, &pad_end(&shorten(name, room, glyphs.ellipsis), room))
            .with_span(Role::Normal, &format!("{own}{}", cells(&counts, &FIGURE_COLUMNS[..3])));
        if bar > 0 {
            line = with_precision_bar(line, glyphs, precision, bar);
        }
        doc.push(line.with_span(if few { Role::Warn } else { Role::Normal }, &cells(&shares, &FIGURE_COLUMNS[3..])));
    }
}

/// Appends a bar of a precision: lower bound, share, rest.
fn with_precision_bar(line: DocLine, glyphs: &Glyphs, precision: &Precision, width: usize) -> DocLine {
    let cells = |share: Option<f64>| (share.unwrap_or(0.0) * width as f64).round() as usize;
    let (certain, likely) = (cells(precision.at_least), cells(precision.share));
    line.with_span(Role::Normal, "   ")
        .with_span(Role::Filled, &glyphs.filled.repeat(certain))
        .with_span(Role::Muted, &glyphs.filled.repeat(likely.saturating_sub(certain)))
        .with_span(Role::Empty, &glyphs.empty.repeat(width.saturating_sub(likely.max(certain))))
}

fn pad_end(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
