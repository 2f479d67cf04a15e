//! The page of figures: what reviews did and cost, what happened over time, how precise kinds and reviewers are.

use unicode_width::UnicodeWidthStr;

use super::super::app::App;
use super::super::doc::{Doc, Line, shorten};
use super::super::glyphs::Glyphs;
use super::super::stats::Stats;
use super::super::theme::Role;
use super::kind_words;
use crate::ledger::metrics::{Fates, Metrics, Precision};
use crate::report::figures::{brief, percent, spark, whole};
use crate::report::stats::{TELLING, charts, facts, span};

/// The column of names before facts and charts, and that of sums behind charts.
const NAMES: usize = 14;
const SUM: usize = 8;
/// A chart is no wider: further apart, two days are not compared.
const WIDEST: usize = 120;
/// Widths of the columns of a table: found, addressed, dismissed, precision, at least.
const FIGURES: [usize; 5] = [9, 11, 11, 11, 10];
const BY_KIND: &str = "By kind";
const BY_REVIEWER: &str = "By reviewer";
/// The columns that only reviewers have.
const OWN: &str = "   runs  tokens";
/// A bar of precision is as wide as there is room, within these.
const BAR: std::ops::RangeInclusive<usize> = 12..=40;

/// The page in `width` columns.
pub fn stats(app: &App, stats: &Stats, width: usize) -> Doc {
    let mut doc = Doc::default();
    if let Some(why) = &stats.trouble {
        doc.paragraph(Role::Warn, &format!("These figures may be old: {why}"), width);
        doc.blank();
    }
    match &stats.metrics {
        None if stats.trouble.is_some() => {}
        None => doc.push(Line::of(Role::Faint, "counting")),
        Some(metrics) if metrics.totals.launched + metrics.totals.skipped == 0 => {
            doc.paragraph(Role::Normal, "No runs yet: the first review will have figures here.", width);
        }
        Some(metrics) => figures(app, metrics, width, &mut doc),
    }
    doc
}

fn figures(app: &App, metrics: &Metrics, width: usize, doc: &mut Doc) {
    let dot = format!(" {} ", app.glyphs.dot);
    for fact in facts(metrics) {
        doc.field(fact.name, NAMES, Role::Normal, &fact.parts.join(&dot), width);
    }
    let charts = charts(metrics, width.saturating_sub(NAMES + SUM + 2).min(WIDEST));
    if charts.iter().any(|chart| chart.values.len() > 1) {
        doc.blank();
        doc.push(
            Line::of(Role::Title, &padded("Over time", NAMES)).and(Role::Faint, &span(&metrics.series, &app.zone)),
        );
        for chart in charts {
            let room = width.saturating_sub(NAMES + SUM + 2).min(WIDEST);
            let line = spark(&chart.values, chart.most, room, &app.glyphs.eighths);
            doc.push(
                Line::of(Role::Muted, &padded(chart.name, NAMES))
                    .and(Role::Accent, &line)
                    .and(Role::Normal, &format!("  {}", chart.total)),
            );
        }
    }
    // The figures of both tables stand below each other where there is room for that.
    let longest = |names: &mut dyn Iterator<Item = usize>, title: &str| names.max().unwrap_or(0).max(title.width());
    let kind_names = longest(&mut metrics.by_kind.iter().map(|kind| kind.kind.word().width()), BY_KIND);
    let reviewer_names = longest(&mut metrics.by_reviewer.iter().map(|one| one.reviewer.width()), BY_REVIEWER);
    let block = kind_names.max(reviewer_names + OWN.width());
    let aligned = block + FIGURES.iter().sum::<usize>() <= width;
    let kind_names = if aligned { block } else { kind_names };
    let reviewer_names = if aligned { block - OWN.width() } else { reviewer_names };
    let kinds: Vec<Row<'_>> = metrics
        .by_kind
        .iter()
        .map(|kind| (kind_words(kind.kind.word()), String::new(), &kind.findings, &kind.precision))
        .collect();
    table(&app.glyphs, (BY_KIND, ""), &kinds, (kind_names, width), doc);
    let reviewers: Vec<Row<'_>> = metrics
        .by_reviewer
        .iter()
        .map(|one| {
            let own = format!("{:>7}{:>8}", whole(u64::from(one.runs)), brief(one.tokens_spent));
            (one.reviewer.clone(), own, &one.findings, &one.precision)
        })
        .collect();
    table(&app.glyphs, (BY_REVIEWER, OWN), &reviewers, (reviewer_names, width), doc);
}

/// Name, figures of columns that only this table has, and what every table shows.
type Row<'a> = (String, String, &'a Fates, &'a Precision);

/// A title and the names of the columns that only this table has; rows; the columns that names want, and all there are.
fn table(
    glyphs: &Glyphs,
    (title, own): (&str, &str),
    rows: &[Row<'_>],
    (wanted, width): (usize, usize),
    doc: &mut Doc,
) {
    if rows.is_empty() {
        return;
    }
    let names = ["found", "addressed", "dismissed", "precision", "at least"];
    let figures: usize = FIGURES.iter().sum::<usize>() + own.width();
    let room = width.saturating_sub(figures).min(wanted).max(4);
    // The bar stands between the counts and the shares.
    let bar = width.saturating_sub(room + figures + 3).min(*BAR.end());
    let bar = if BAR.contains(&bar) { bar } else { 0 };
    let gap = if bar > 0 { bar + 3 } else { 0 };
    let cells = |cells: &[String], columns: &[usize]| {
        cells.iter().zip(columns).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>()
    };
    let named = names.map(str::to_owned);
    doc.blank();
    doc.push(Line::of(Role::Title, &padded(title, room)).and(
        Role::Faint,
        &format!("{own}{}{}{}", cells(&named[..3], &FIGURES[..3]), " ".repeat(gap), cells(&named[3..], &FIGURES[3..])),
    ));
    for (name, own, fates, precision) in rows {
        let counts = [fates.found, fates.addressed, fates.dismissed].map(|n| whole(u64::from(n)));
        let shares = [percent(precision.share), percent(precision.at_least)];
        let few = precision.share.is_some_and(|share| share < 0.5) && precision.decided() >= TELLING;
        let mut line = Line::of(Role::Normal, &padded(&shorten(name, room, glyphs.ellipsis), room))
            .and(Role::Normal, &format!("{own}{}", cells(&counts, &FIGURES[..3])));
        if bar > 0 {
            line = with_bar(line, glyphs, precision, bar);
        }
        doc.push(line.and(if few { Role::Warn } else { Role::Normal }, &cells(&shares, &FIGURES[3..])));
    }
}

/// What is certain, what is likely, and the rest.
fn with_bar(line: Line, glyphs: &Glyphs, precision: &Precision, width: usize) -> Line {
    let cells = |share: Option<f64>| (share.unwrap_or(0.0) * width as f64).round() as usize;
    let (certain, likely) = (cells(precision.at_least), cells(precision.share));
    line.and(Role::Normal, "   ")
        .and(Role::Filled, &glyphs.filled.repeat(certain))
        .and(Role::Muted, &glyphs.filled.repeat(likely.saturating_sub(certain)))
        .and(Role::Empty, &glyphs.empty.repeat(width.saturating_sub(likely.max(certain))))
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
