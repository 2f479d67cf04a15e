//! Draws the list of runs: status, what was reviewed, number of findings, reviewer, cost, age; below a run, the number
//! of runs that it replaced; below a panel, its members with their progress.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::super::app::{App, Pane, RunEntry, RunListLine};
use super::super::layout::PaneArea;
use super::super::pages::format_dollars;
use super::super::panel_runs::{describe_origin, describe_total, is_paid_by_panel};
use super::super::theme::Role;
use super::frame;
use super::painter::{Painter, measure_shown};
use crate::config::RunOrder;
use crate::domain::{Panel, Priority, RequestDecision, RunStatus, text};
use crate::policy::Freshness;
use crate::store::RunRow;

/// Column heading for [`draw_counts`].
pub const COUNTS_HEADER: &str = "p0  p1  p2  p3";

/// Width from which the freshness is a word; a narrower list has a sign.
const MIN_WORD_COLUMNS: u16 = 60;

/// Greatest width of the column of labels.
const MAX_LABEL_COLUMNS: u16 = 22;

pub fn draw(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    draw_title(painter, area);
    let body = area.body;
    let list = &app.run_list;
    if body.height == 0 {
        return;
    }
    if list.entries.is_empty() {
        return frame::draw_empty_list(painter, body, "no review yet", Role::Faint);
    }
    let bar = frame::pane_selection_style(painter, Pane::Runs);
    let lines: Vec<RunListLine> =
        (0..usize::from(body.height)).map_while(|y| list.line(list.cursor.offset + y)).collect();
    let visible = |line: &RunListLine| match line {
        RunListLine::Run(at) => list.entries.get(*at).map(|entry| VisibleRun::from_entry(app, entry, body.width)),
        RunListLine::Fold(_) | RunListLine::Branch(_) => None,
    };
    let rows: Vec<Option<VisibleRun<'_>>> = lines.iter().map(visible).collect();
    let columns = RunColumns::measure(app, rows.iter().flatten(), body.width);
    for ((line, row), y) in lines.iter().zip(&rows).zip(body.y..) {
        let area = Rect::new(body.x, y, body.width, 1);
        match (line, row) {
            (RunListLine::Run(at), Some(row)) => {
                if *at == list.cursor.selected {
                    painter.fill(area, bar);
                    painter.set_overlay_style(Some(bar));
                }
                draw_run(painter, row, area, columns);
                painter.set_overlay_style(None);
            }
            (RunListLine::Fold(at), _) => draw_fold(painter, &list.entries[*at], area),
            (RunListLine::Branch(at), _) => draw_branch(painter, &list.entries[*at], area),
            (RunListLine::Run(_), None) => {}
        }
    }
    painter.draw_scroll_thumb(body, list.cursor.offset, list.line_count());
}

/// Run in a visible row, with its texts at the time of the frame.
struct VisibleRun<'a> {
    entry: &'a RunEntry,
    run: RunRow<'a>,
    label: String,
    /// Text and style of what is unusual, then the content of the change; of a member, its progress.
    facts: Vec<(String, Role)>,
    /// Fact that is shown only beside all others, and may be empty.
    spare: String,
    /// Number of findings by priority.
    counts: [u32; 4],
    /// Name of the reviewer; empty if it is the label.
    reviewer: Cow<'a, str>,
    cost: String,
    age: String,
}

impl<'a> VisibleRun<'a> {
    fn from_entry(app: &'a App, entry: &'a RunEntry, width: u16) -> Self {
        let run = app.store.view.run(entry.index as usize);
        let mut row = match entry.member {
            Some(decision) => Self::from_member(app, entry, run, decision),
            None => Self::from_run(app, entry, run, width),
        };
        row.age = app.format_short_age(run.created_ms);
        row
    }

    /// Describes the run of a panel's member below its panel: `gpt  turn 3/20  1/2 hunks  $0.01`.
    fn from_member(app: &App, entry: &'a RunEntry, run: RunRow<'a>, decision: RequestDecision) -> Self {
        let (_, word, role) = app.run_state(&run);
        let mut facts = Vec::new();
        if word != RunStatus::Completed.word() && word != RunStatus::Reviewing.word() {
            facts.push((word.to_owned(), role));
        }
        if app.run_freshness(&run) == Freshness::Lost && word != Freshness::Lost.word() {
            facts.push((Freshness::Lost.word().to_owned(), Role::from_freshness(Freshness::Lost)));
        }
        facts.push((describe_origin(decision).to_owned(), Role::Faint));
        let turn = app.describe_run_turn(&run);
        if !turn.is_empty() {
            facts.push((format!("turn {turn}"), Role::Muted));
        }
        if run.hunks_total > 0 {
            let hunks = text::format_count(run.hunks_total.max(run.hunks_covered) as usize, "hunk");
            facts.push((format!("{}/{hunks}", run.hunks_covered), Role::Muted));
        }
        let cost = if is_paid_by_panel(decision) { app.run_spending(&run).1 } else { 0.0 };
        Self {
            entry,
            run,
            label: run.reviewer.to_owned(),
            facts,
            spare: String::new(),
            counts: run.counts,
            reviewer: Cow::Borrowed(""),
            cost: describe_cost(cost),
            age: String::new(),
        }
    }

    fn from_run(app: &App, entry: &'a RunEntry, run: RunRow<'a>, width: u16) -> Self {
        let (_, word, role) = app.run_state(&run);
        let sums = run.is_panel().then(|| app.sum_panel(&run));
        let mut facts = Vec::new();
        match sums.filter(|sums| !run.status.is_terminal() && sums.done < sums.members) {
            Some(sums) => facts.push((sums.describe_done(), role)),
            None if word != RunStatus::Completed.word() => facts.push((word.to_owned(), role)),
            None => {}
        }
        if let Some(freshness) = notable_freshness(app, entry, &run) {
            let sign = app.display.glyphs.freshness(freshness);
            let text = if width < MIN_WORD_COLUMNS { sign } else { freshness.word() };
            facts.push((text.to_owned(), Role::from_freshness(freshness)));
        }
        if app.run_list.order != RunOrder::Branch && is_on_other_branch(app, &run) {
            facts.push((format!("on {}", run.branch), Role::Muted));
        }
        facts.push((app.describe_content_beside_label(&run), Role::Muted));
        if let Some(Some(change)) = app.run_list.changes.get(run.id) {
            facts.push((change.describe(), if change.new > 0 { Role::Normal } else { Role::Muted }));
        }
        if run.reuse_count > 0 {
            facts.push((format!("reused {}", text::format_count(run.reuse_count as usize, "time")), Role::Faint));
        }
        let left_out = run.left_out_files().map(|files| text::format_count(files as usize, "file"));
        Self {
            entry,
            run,
            label: app.label_run(&run).into_owned(),
            facts,
            spare: left_out.map_or_else(String::new, |files| format!("{files} left out")),
            counts: sums.map_or(run.counts, |sums| sums.counts),
            reviewer: Panel::describe_reviewer(run.reviewer),
            cost: describe_cost(sums.map_or_else(|| app.run_spending(&run).1, |sums| sums.cost)),
            age: String::new(),
        }
    }
}

/// Returns the freshness of a run if neither its state nor its place in the list says it already.
pub(super) fn notable_freshness(app: &App, entry: &RunEntry, run: &RunRow<'_>) -> Option<Freshness> {
    let freshness = app.run_freshness(run);
    // The age says that a run takes long, and a nested run says by its place that it was replaced.
    let is_known = freshness == Freshness::Current
        || freshness == Freshness::LongRunning
        || (entry.nested && freshness == Freshness::Superseded)
        // The row of the panel says whether the code has changed since.
        || (entry.member.is_some() && run.status.is_terminal())
        || freshness.word() == app.run_state(run).1;
    (!is_known).then_some(freshness)
}

/// Returns true if a run belongs to another branch than the one that is checked out, and its name does not say so.
pub(super) fn is_on_other_branch(app: &App, run: &RunRow<'_>) -> bool {
    !run.branch.is_empty() && run.branch != app.session.branch && !run.scope.starts_with("branch")
}

/// Formats a cost in US dollars; empty for none.
pub(super) fn describe_cost(cost: f64) -> String {
    if cost > 0.0 { format_dollars(cost) } else { String::new() }
}

/// Widths of the columns, from the visible runs.
#[derive(Debug, Clone, Copy)]
struct RunColumns {
    label: u16,
    cost: u16,
    age: u16,
    reviewer: u16,
}

impl RunColumns {
    fn measure<'a>(app: &App, rows: impl Iterator<Item = &'a VisibleRun<'a>>, width: u16) -> Self {
        let mut columns = Self { label: 0, cost: 0, age: 0, reviewer: 0 };
        for row in rows {
            let wide = |text: &str| measure_shown(app, text);
            columns.label = columns.label.max(wide(&row.label) + if row.entry.nested { 2 } else { 0 });
            columns.cost = columns.cost.max(wide(&row.cost));
            columns.age = columns.age.max(wide(&row.age));
            columns.reviewer = columns.reviewer.max(wide(&row.reviewer));
        }
        columns.label = columns.label.min(MAX_LABEL_COLUMNS).min(width / 2);
        columns.reviewer = columns.reviewer.min(12);
        columns
    }
}

/// Draws the title with the number of runs; `+` says that the store has more.
fn draw_title(painter: &mut Painter<'_>, area: PaneArea) {
    let app = painter.app;
    let total = app.run_list.run_count;
    let mut facts = Vec::new();
    if total > 0 {
        let more = if app.store.view.complete { "" } else { "+" };
        facts.push((format!("{}{more}", text::format_thousands(total as u64)), Role::Muted));
    }
    // Without rows below it, the title says what runs, or what was reviewed last.
    if area.body.height == 0
        && let Some(run) = app.headline_run()
    {
        let (sign, word, role) = app.run_state(&run);
        facts.push((sign.to_owned(), role));
        let what = match app.run_activity(&run) {
            Some(live) => live.text,
            None if run.has_reviewed() => app.format_short_age(run.created_ms),
            None => word.to_owned(),
        };
        facts.push((format!("{}  {what}", app.label_run(&run)), Role::Muted));
    }
    frame::draw_title(painter, area, Pane::Runs, "Runs", &facts, "");
}

/// Draws a run in `line`, which is one row high. Columns from the right: age, cost, reviewer, findings; a column that
/// does not fit is dropped.
fn draw_run(painter: &mut Painter<'_>, row: &VisibleRun<'_>, line: Rect, columns: RunColumns) {
    let app = painter.app;
    let run = &row.run;
    let (sign, _, role) = app.run_state(run);
    let mut left = line.x;
    if row.entry.nested {
        painter.draw_text(left, line.y, 1, app.display.glyphs.nested, Role::Faint);
        left += 2;
    }
    painter.draw_text(left, line.y, 1, sign, role);
    left += 2;
    let mut rest = Rect::new(left, line.y, line.right().saturating_sub(left), 1);
    if let Some(x) = take_column(&mut rest, columns.age + 1, columns.label) {
        painter.draw_text_right(x, rest.y, columns.age + 1, &row.age, Role::Muted);
    }
    if columns.cost > 0
        && let Some(x) = take_column(&mut rest, columns.cost + 2, columns.label)
    {
        painter.draw_text_right(x, rest.y, columns.cost + 2, &row.cost, Role::Muted);
    }
    if let Some(x) = take_column(&mut rest, columns.reviewer + 2, columns.label + 12) {
        painter.draw_text(x + 2, rest.y, columns.reviewer, &row.reviewer, Role::Muted);
    }
    if let Some(x) = take_column(&mut rest, 4, columns.label + 12) {
        draw_total(painter, x, rest.y, row);
    }
    let label_width = columns.label.saturating_sub(left - line.x - 2).min(rest.width);
    let role = if row.entry.nested { Role::Muted } else { Role::Normal };
    painter.draw_text(rest.x, rest.y, label_width, &row.label, role);
    rest.width = rest.width.saturating_sub(label_width + 2);
    rest.x += label_width + 2;
    draw_facts(painter, (&row.facts, &row.spare), rest);
}

/// Columns of the dot between two facts, with a blank on each side.
const DOT_COLUMNS: u16 = 3;
/// Fewest columns that a fact keeps for the sake of those after it: a title is known by its first words.
const MIN_SHORTENED_COLUMNS: u16 = 20;
/// Fewest columns of a shortened fact behind another one. Fewer letters say nothing.
const MIN_REST_COLUMNS: u16 = 8;

/// Draws facts with dots between them. A long one is shortened in favour of those behind it, such as `3 new`; a fact
/// without room is left out together with its dot. `spare` needs room beside all facts.
fn draw_facts(painter: &mut Painter<'_>, (facts, spare): (&[(String, Role)], &str), line: Rect) {
    let mut facts: Vec<(u16, &str, Role)> = facts
        .iter()
        .filter(|(fact, _)| !fact.is_empty())
        .map(|(fact, role)| (measure_shown(painter.app, fact), fact.as_str(), *role))
        .collect();
    let spare_width = measure_shown(painter.app, spare);
    let needed =
        facts.iter().fold(spare_width, |sum, (width, ..)| sum.saturating_add(width.saturating_add(DOT_COLUMNS)));
    if !spare.is_empty() && needed <= line.width {
        facts.push((spare_width, spare, Role::Muted));
    }
    let mut x = line.x;
    for (at, (width, fact, role)) in facts.iter().enumerate() {
        let mut room = line.right().saturating_sub(x);
        if at > 0 {
            if room < DOT_COLUMNS + MIN_REST_COLUMNS.min(*width) {
                break;
            }
            painter.draw_text(x + 1, line.y, 1, painter.app.display.glyphs.dot, Role::Faint);
            (x, room) = (x + DOT_COLUMNS, room - DOT_COLUMNS);
        }
        let behind = facts[at + 1..]
            .iter()
            .fold(0, |sum: u16, (width, ..)| sum.saturating_add(width.saturating_add(DOT_COLUMNS)));
        if *width > room.saturating_sub(behind) && room >= behind.saturating_add(MIN_SHORTENED_COLUMNS) {
            room -= behind;
        }
        if room == 0 {
            break;
        }
        x += painter.draw_text(x, line.y, room, fact, *role);
    }
}

/// Draws the number of findings in the colour of the most urgent one, in four columns.
fn draw_total(painter: &mut Painter<'_>, x: u16, y: u16, row: &VisibleRun<'_>) {
    match describe_total(row.counts) {
        (0, role) if row.run.has_reviewed() => {
            painter.draw_text_right(x, y, 4, painter.app.display.glyphs.none, role);
        }
        (0, _) => {}
        (total, role) => {
            let text = if total > 999 { format!("{}k", total / 1000) } else { total.to_string() };
            painter.draw_text_right(x, y, 4, &text, role);
        }
    }
}

/// Draws the number of runs that are folded away below a run: `└ 2 superseded, 1 reused`.
fn draw_fold(painter: &mut Painter<'_>, entry: &RunEntry, line: Rect) {
    let glyphs = painter.app.display.glyphs;
    let text = format!("{} {}", glyphs.nested, entry.folded.describe());
    painter.draw_text(line.x + 2, line.y, line.width.saturating_sub(2), &text, Role::Faint);
}

/// Draws the name of a branch above its runs.
fn draw_branch(painter: &mut Painter<'_>, entry: &RunEntry, line: Rect) {
    let branch = painter.app.store.view.run(entry.index as usize).branch;
    let name = if branch.is_empty() { "no branch" } else { branch };
    painter.draw_text(line.x, line.y, line.width, name, Role::Strong);
}

/// Takes a column of `width` off the right end and returns where it begins; `None` if fewer than `least` columns would
/// be left for the label.
fn take_column(rest: &mut Rect, width: u16, least: u16) -> Option<u16> {
    if rest.width < width + least {
        return None;
    }
    rest.width -= width;
    Some(rest.right())
}

/// Draws findings by priority, four columns each.
pub fn draw_counts(painter: &mut Painter<'_>, x: u16, y: u16, counts: [u32; 4]) {
    for priority in Priority::ALL {
        let n = counts[priority.index()];
        let x = x + priority.index() as u16 * 4;
        if n == 0 {
            painter.draw_text_right(x, y, 4, painter.app.display.glyphs.none, Role::Faint);
        } else {
            let text = if n > 999 { format!("{}k", n / 1000) } else { n.to_string() };
            painter.draw_text_right(x, y, 4, &text, Role::from_priority(priority));
        }
    }
}
