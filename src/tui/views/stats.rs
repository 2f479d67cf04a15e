//! Statistics: work and cost of reviews, charts over time, precision by kind and reviewer, worth of reviewers.

use std::any::Any;
use std::sync::Arc;

use ratatui::layout::Rect;

use super::load::{LoadInputs, ViewLoad};
use super::{KeyPress, View, ViewChange, ViewEntry, ViewFlow, ViewReply, ViewRequest, scroll_distance, with_labels};
use crate::domain::Time;
use crate::ledger::metrics::{Metrics, MetricsDetail, MetricsSelection, OutcomeCounts, Precision, Worth, WorthRow};
use crate::report::figures::{format_brief, format_millis, format_percent, format_short_count, render_sparkline};
use crate::report::stats::{
    MIN_TELLING_DECISIONS, WorthGrouping, build_charts, describe_metrics, describe_misjudged, describe_span,
    describe_worth, gather_metrics, join_parts, split_bar,
};
use crate::store::StoreView;
use crate::tui::app::App;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{Doc, DocLine, shorten};
use crate::tui::draw::draw_line;
use crate::tui::draw::painter::Painter;
use crate::tui::glyphs::Glyphs;
use crate::tui::keymap::{Action, KeyContext, ViewContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::pages::format_kind;
use crate::tui::theme::Role;

/// Columns of names before facts and charts, and of totals behind charts.
const NAMES: usize = 14;
const SUM: usize = 8;
/// Greatest width of a chart in columns; a wider chart makes days hard to compare.
const MAX_CHART_COLUMNS: usize = 120;
/// Column widths of a table: found, addressed, dismissed, precision, at least.
const FIGURE_COLUMNS: [usize; 5] = [9, 11, 11, 11, 10];
/// Number of these columns before the bar of the precision.
const COUNT_COLUMNS: usize = 3;
/// Columns that long names keep beside the columns that only the reviewers table has.
const MIN_NAME_COLUMNS: usize = 16;
const BY_KIND: &str = "By kind";
const BY_REVIEWER: &str = "By reviewer";
/// Headings of the columns that only the reviewers table has.
const REVIEWER_COLUMNS: &str = "  runs tokens  time";
/// Title of the bars of worth, before the name of their grouping.
const WORTH: &str = "Worth";
/// Greatest width of a reviewer's name before its bar, and smallest width of the bar, in columns.
const MAX_WORTH_NAME: usize = 24;
const MIN_WORTH_BAR: usize = 10;
/// Fewest columns in which the facts behind a bar are broken into lines; fewer columns show the beginning of them.
const MIN_FACT_COLUMNS: usize = 16;
/// Smallest and greatest width of a precision bar in columns.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 12..=40;

/// Row in the table of views.
pub static ENTRY: ViewEntry = ViewEntry {
    action: "stats",
    group: "Panes",
    label: "stats",
    help: "cost, outcomes, precision",
    key: "S",
    open,
    context: Some(&CONTEXT),
};

/// Keys of the page.
pub static CONTEXT: ViewContext = ViewContext {
    name: "stats",
    title: "statistics",
    keys: &[("q", "abort"), ("Esc", "abort")],
    help: &[],
    group: "",
    place: (file!(), line!()),
};

/// State of the open page.
#[derive(Debug, Clone)]
pub struct StatsView {
    /// Metrics with an empty list of runs, because the page shows no single run.
    metrics: Option<Arc<Metrics>>,
    /// Error of the last read.
    trouble: Option<String>,
    doc: Doc,
    /// Grouping of the bars of worth.
    grouping: WorthGrouping,
    /// Line of the title of these bars; `None` without bars.
    worth_line: Option<usize>,
    /// First visible line (0-based).
    pub offset: usize,
    refresh: RefreshState,
}

/// State of the request for the figures of the newest view of the store.
#[derive(Debug, Clone, Default)]
enum RefreshState {
    #[default]
    Done,
    Pending,
    /// The store has changed since the request; the figures are requested again when the pending ones arrive.
    Outdated(Arc<StoreView>),
}

/// Opens the page and requests its figures.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    let mut view = StatsView {
        metrics: None,
        trouble: None,
        doc: Doc::default(),
        grouping: WorthGrouping::Reviewer,
        worth_line: None,
        offset: 0,
        refresh: RefreshState::Done,
    };
    view.refresh(app.now, &Arc::clone(&app.store.view), commands);
    view.build_page(app);
    app.views.open(view);
}

fn request(now: i64, view: &Arc<StoreView>) -> AppCommand {
    AppCommand::View(ViewRequest::Load(Box::new(LoadFigures { view: Arc::clone(view), now })))
}

/// Computes the figures of a view of the store and the files beside it.
#[derive(Debug)]
pub struct LoadFigures {
    pub view: Arc<StoreView>,
    /// Time of the request, in milliseconds since 1970.
    pub now: i64,
}

/// Figures, or the reason why they could not be read.
pub type LoadedFigures = Result<Arc<Metrics>, String>;

impl ViewLoad for LoadFigures {
    fn load(self: Box<Self>, inputs: &LoadInputs) -> Box<dyn Any + Send> {
        let selection = MetricsSelection { now: Time::from_millisecond(self.now).ok(), ..MetricsSelection::default() };
        let selection = (&selection, MetricsDetail::Sums);
        let figures = gather_metrics(&inputs.store, &self.view, selection, &inputs.zone);
        let figures: LoadedFigures = figures.map(Arc::new).map_err(|error| error.to_string());
        Box::new(figures)
    }
}

impl View for StatsView {
    fn key_context(&self) -> KeyContext {
        KeyContext::View(&CONTEXT)
    }

    fn is_window(&self) -> bool {
        false
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let page = isize::try_from(page_height(app)).unwrap_or(isize::MAX);
        match press.action {
            Some(Action::Abort | Action::Back | Action::Left) => return ViewFlow::Close,
            Some(action) if ENTRY.is_opened_by(action) => return ViewFlow::Close,
            Some(Action::Quit) => commands.push(AppCommand::Quit(None)),
            Some(Action::Order) => self.regroup(app),
            Some(action) => self.scroll(app, scroll_distance(action, page).unwrap_or(0)),
            None => {}
        }
        ViewFlow::Open
    }

    fn update(&mut self, app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            ViewChange::Resized => self.build_page(app),
            ViewChange::StoreRead(view) => self.refresh(app.now, view, commands),
            ViewChange::Reply(ViewReply::Loaded(data)) => {
                if let Some(figures) = data.downcast_ref::<LoadedFigures>() {
                    self.set_figures(app.now, figures, commands);
                    self.build_page(app);
                }
            }
            ViewChange::Reply(ViewReply::LoadFailed(failed)) if failed.is_of::<LoadFigures>() => {
                self.set_figures(app.now, &Err(failed.error.clone()), commands);
                self.build_page(app);
            }
            _ => {}
        }
    }

    /// Draws the page between header and message line.
    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout) {
        let top = layout.header.bottom();
        let area = Rect::new(0, top, layout.header.width, layout.notice.y.saturating_sub(top));
        painter.fill(area, painter.style(Role::Normal));
        let used = painter.draw_text(1, top, area.width.saturating_sub(2), "Stats", Role::Title);
        painter.draw_rule(used + 2, top, area.width.saturating_sub(used + 3), Role::Focus);
        let body = Rect::new(1, top + 1, area.width.saturating_sub(3), area.height.saturating_sub(1));
        for row in 0..body.height {
            let Some(line) = self.doc.lines.get(self.offset + usize::from(row)) else { break };
            draw_line(painter, body.x, body.y + row, body.width, line, "");
        }
        painter.draw_scroll_thumb(body, self.offset, self.doc.lines.len());
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        let mut actions = with_labels([Action::Down, Action::Up, Action::Bottom]);
        actions.extend(self.worth_line.map(|_| (Action::Order, "group")));
        actions.extend(with_labels([Action::Abort, Action::Help]));
        actions
    }
}

impl StatsView {
    /// Requests new figures after a change of the store.
    fn refresh(&mut self, now: i64, view: &Arc<StoreView>, commands: &mut Vec<AppCommand>) {
        // The first view of a large store has only the newest runs.
        if !view.complete {
            return;
        }
        match self.refresh {
            RefreshState::Done => {
                self.refresh = RefreshState::Pending;
                commands.push(request(now, view));
            }
            RefreshState::Pending | RefreshState::Outdated(_) => {
                self.refresh = RefreshState::Outdated(Arc::clone(view));
            }
        }
    }

    /// Takes figures that arrived, or the error.
    fn set_figures(&mut self, now: i64, figures: &Result<Arc<Metrics>, String>, commands: &mut Vec<AppCommand>) {
        self.refresh = match std::mem::take(&mut self.refresh) {
            RefreshState::Outdated(view) => {
                commands.push(request(now, &view));
                RefreshState::Pending
            }
            RefreshState::Done | RefreshState::Pending => RefreshState::Done,
        };
        match figures {
            Ok(metrics) => (self.metrics, self.trouble) = (Some(Arc::clone(metrics)), None),
            Err(why) => self.trouble = Some(why.clone()),
        }
    }

    /// Builds the page for the current width.
    fn build_page(&mut self, app: &App) {
        let width = usize::from(app.display.columns.saturating_sub(4)).max(20);
        (self.doc, self.worth_line) = build_stats_page(app, self, width);
        self.scroll(app, 0);
    }

    /// Shows the bars of worth by the next grouping, and scrolls to them.
    fn regroup(&mut self, app: &App) {
        let Some(before) = self.worth_line else { return };
        let is_in_sight = (self.offset..self.offset + page_height(app)).contains(&before);
        // The first key shows the bars as they are, where they are out of sight.
        if is_in_sight {
            self.grouping = self.grouping.next();
            self.build_page(app);
        }
        // All bars that there is room for.
        let rows = self.doc.lines.len();
        if let Some(line) = self.worth_line.filter(|line| *line < self.offset || rows > self.offset + page_height(app))
        {
            self.offset = line;
        }
        self.scroll(app, 0);
    }

    /// Scrolls the page by a number of lines.
    fn scroll(&mut self, app: &App, by: isize) {
        let most = self.doc.lines.len().saturating_sub(page_height(app));
        self.offset = self.offset.saturating_add_signed(by).min(most);
    }
}

/// Returns the number of lines between the page's title and the message line (at least 1).
fn page_height(app: &App) -> usize {
    let layout = app.layout();
    usize::from(layout.notice.y.saturating_sub(layout.header.bottom() + 1)).max(1)
}

/// Builds the page, `width` columns wide. Returns it with the line of the title of the bars of worth.
fn build_stats_page(app: &App, stats: &StatsView, width: usize) -> (Doc, Option<usize>) {
    let mut doc = Doc::default();
    let mut worth_line = None;
    if let Some(why) = &stats.trouble {
        let lead = if stats.metrics.is_some() { "These figures may be old" } else { "There are no figures" };
        doc.push_paragraph(Role::Warn, &format!("{lead}: {why}"), width);
        doc.push_blank();
    }
    match &stats.metrics {
        None if stats.trouble.is_some() => {}
        None => doc.push(DocLine::styled(Role::Faint, "counting")),
        Some(metrics) if metrics.totals.is_empty() => {
            doc.push_paragraph(Role::Normal, "No runs yet: the first review will have figures here.", width);
        }
        Some(metrics) => {
            render_figures(app, metrics, width, &mut doc);
            worth_line = render_worth(&app.display.glyphs, &metrics.worth, stats.grouping, width, &mut doc);
        }
    }
    (doc, worth_line)
}

fn render_figures(app: &App, metrics: &Metrics, width: usize, doc: &mut Doc) {
    let dot = format!(" {} ", app.display.glyphs.dot);
    for fact in describe_metrics(metrics) {
        doc.push_field(fact.name, NAMES, Role::Normal, &fact.parts.join(&dot), width);
    }
    let charts = build_charts(metrics, width.saturating_sub(NAMES + SUM + 2).min(MAX_CHART_COLUMNS));
    if charts.iter().any(|chart| chart.values.len() > 1) {
        doc.push_blank();
        doc.push(
            DocLine::styled(Role::Title, &pad_end("Over time", NAMES))
                .with_span(Role::Faint, &describe_span(&metrics.series, &app.display.zone)),
        );
        for chart in charts {
            let room = width.saturating_sub(NAMES + SUM + 2).min(MAX_CHART_COLUMNS);
            let line = render_sparkline(&chart.values, chart.max, room, &app.display.glyphs.eighths);
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
    let figures = FIGURE_COLUMNS.iter().sum::<usize>();
    let aligned = block + figures <= width;
    let has_own = reviewer_names.min(MIN_NAME_COLUMNS) + REVIEWER_COLUMNS.width() + figures <= width;
    let (kind_names, reviewer_names) = if aligned {
        (block, block - REVIEWER_COLUMNS.width())
    } else if has_own {
        (kind_names, reviewer_names)
    } else {
        let names = kind_names.max(reviewer_names);
        (names, names)
    };
    let kinds: Vec<StatsTableRow<'_>> = metrics
        .by_kind
        .iter()
        .map(|kind| (format_kind(kind.kind.word()), String::new(), &kind.findings, &kind.precision))
        .collect();
    render_table(&app.display.glyphs, (BY_KIND, ""), &kinds, (kind_names, width), doc);
    let reviewers: Vec<StatsTableRow<'_>> = metrics
        .by_reviewer
        .iter()
        .map(|one| {
            let time = one.review_ms.map_or_else(String::new, |ms| format_millis(ms).replace(' ', ""));
            let (runs, tokens) = (format_short_count(u64::from(one.runs)), format_brief(one.tokens_spent));
            let own = if has_own { format!("{runs:>6}{tokens:>7}{time:>6}") } else { String::new() };
            (one.reviewer.clone(), own, &one.findings, &one.precision)
        })
        .collect();
    let own = if has_own { REVIEWER_COLUMNS } else { "" };
    render_table(&app.display.glyphs, (BY_REVIEWER, own), &reviewers, (reviewer_names, width), doc);
}

/// Renders what each reviewer, model, kind or language is worth: a bar of its accepted, dismissed and undecided findings, and
/// what an accepted one costs. Below the reviewers stand the kinds about which one is almost always wrong. Returns the line of
/// the title; `None` if nobody has reported anything.
fn render_worth(glyphs: &Glyphs, worth: &Worth, grouping: WorthGrouping, width: usize, doc: &mut Doc) -> Option<usize> {
    let name_of = |row: &WorthRow| match (grouping, row.name.as_str()) {
        (WorthGrouping::Kind, kind) => format_kind(kind),
        (_, name) => name.to_owned(),
    };
    if worth.by_reviewer.iter().all(|row| row.raised == 0) {
        return None;
    }
    let rows = grouping.rows(worth);
    let title = format!("{WORTH} {}", grouping.title().to_lowercase());
    let names = rows.iter().map(|row| name_of(row).width()).max().unwrap_or(0);
    let names = names.min(MAX_WORTH_NAME).max(title.width());
    let bar = (width / 5).clamp(MIN_WORTH_BAR, *BAR_COLUMNS.end());
    let room = width.saturating_sub(names + bar + 4);
    let dot = format!(" {} ", glyphs.dot);
    doc.push_blank();
    let line = doc.lines.len();
    let legend = ["accepted", "dismissed", "undecided"].iter().zip(worth_marks(glyphs));
    let legend = legend.map(|(word, (_, mark))| format!("{mark} {word}")).collect::<Vec<_>>().join("  ");
    doc.push(
        DocLine::styled(Role::Title, &pad_end(&title, names))
            .with_span(Role::Faint, &shorten(&format!("  {legend}"), width.saturating_sub(names), glyphs.ellipsis)),
    );
    for row in rows {
        let name = pad_end(&shorten(&name_of(row), names, glyphs.ellipsis), names);
        let mut line = DocLine::styled(Role::Normal, &name).with_span(Role::Normal, "  ");
        let parts = split_bar(row, bar);
        for (cells, (role, mark)) in parts.into_iter().zip(worth_marks(glyphs)) {
            line = line.with_span(role, &mark.repeat(cells));
        }
        line = line.with_span(Role::Normal, &" ".repeat(bar - parts.iter().sum::<usize>() + 2));
        let accepted = format_short_count(u64::from(row.accepted));
        let mut facts = vec![format!("{accepted} of {} accepted", format_short_count(u64::from(row.raised)))];
        facts.extend(describe_worth(row));
        let cut = |long: &str| vec![shorten(long, room, glyphs.ellipsis)];
        let mut facts = match room {
            0..MIN_FACT_COLUMNS => cut(&facts.join(&dot)),
            _ => join_parts(&facts, &dot, room, cut),
        }
        .into_iter();
        doc.push(line.with_span(Role::Muted, &facts.next().unwrap_or_default()));
        for more in facts {
            let indent = " ".repeat(names + bar + 4);
            doc.push(DocLine::styled(Role::Normal, &indent).with_span(Role::Muted, &more));
        }
    }
    if grouping == WorthGrouping::Reviewer {
        for one in &worth.almost_always_wrong {
            doc.push_paragraph(Role::Warn, &describe_misjudged(one), width);
        }
    }
    Some(line)
}

/// Returns the role and the glyph of each part of a bar of worth. The glyphs differ without colours.
fn worth_marks(glyphs: &Glyphs) -> [(Role, &'static str); 3] {
    [(Role::Filled, glyphs.eighths[8]), (Role::Muted, glyphs.eighths[4]), (Role::Empty, glyphs.none)]
}

/// Name, text of extra columns, outcomes, precision.
type StatsTableRow<'a> = (String, String, &'a OutcomeCounts, &'a Precision);

/// Renders a table. `own` holds the headings of extra columns; `wanted` is the width of the name column, `width`
/// that of the page. On a narrow page the last columns are left out, so that no title and no figure is cut.
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
    let fits = |count: &usize| title.width() + own.width() + FIGURE_COLUMNS[..*count].iter().sum::<usize>() <= width;
    let shown = (1..=FIGURE_COLUMNS.len()).rev().find(fits).unwrap_or(1);
    let all: &'static [usize] = &FIGURE_COLUMNS;
    let (of_counts, of_shares) = all[..shown].split_at(shown.min(COUNT_COLUMNS));
    let figures: usize = FIGURE_COLUMNS[..shown].iter().sum::<usize>() + own.width();
    let room = width.saturating_sub(figures).min(wanted).max(4);
    // The bar stands between the counts and the shares.
    let bar = width.saturating_sub(room + figures + 3).min(*BAR_COLUMNS.end());
    let bar = if BAR_COLUMNS.contains(&bar) && shown == FIGURE_COLUMNS.len() { bar } else { 0 };
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
            cells(&named[..COUNT_COLUMNS], of_counts),
            " ".repeat(gap),
            cells(&named[COUNT_COLUMNS..], of_shares)
        ),
    ));
    for (name, own, fates, precision) in rows {
        let counts = [fates.found, fates.addressed, fates.dismissed].map(|n| format_short_count(u64::from(n)));
        let shares = [format_percent(precision.share), format_percent(precision.at_least)];
        let few =
            precision.share.is_some_and(|share| share < 0.5) && precision.decided_count() >= MIN_TELLING_DECISIONS;
        let mut line = DocLine::styled(Role::Normal, &pad_end(&shorten(name, room, glyphs.ellipsis), room))
            .with_span(Role::Normal, &format!("{own}{}", cells(&counts, of_counts)));
        if bar > 0 {
            line = with_precision_bar(line, glyphs, precision, bar);
        }
        doc.push(line.with_span(if few { Role::Warn } else { Role::Normal }, &cells(&shares, of_shares)));
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
