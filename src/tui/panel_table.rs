//! Lays out the members of a panel as a table: name, state, turn, hunks, findings, tokens, cost. Columns without content,
//! and those for which there is no room, are left out.

use super::app::App;
use super::doc::{DocLine, shorten};
use super::pages::{format_brief, format_dollars};
use super::panel_runs::{PanelMemberRun, describe_total};
use super::theme::Role;
use crate::domain::text;
use crate::masking::mask_shown_name;
use crate::report::activity::describe_activity;
use crate::tui::doc::TextColumns;

/// Columns between two columns of the table.
const GAP: usize = 2;
/// Greatest and smallest width of a reviewer's name.
const NAME_COLUMNS: std::ops::RangeInclusive<usize> = 6..=24;

/// Table of the members of a panel, one line each.
#[derive(Debug)]
pub struct MemberTable {
    /// Names of the columns.
    pub heading: DocLine,
    pub rows: Vec<DocLine>,
}

/// Extent of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberColumns {
    /// Figures, for a page that is built once.
    Figures,
    /// With the present activity, for a view that is drawn as time passes.
    Activity,
}

/// Column of the table.
struct TableColumn {
    heading: &'static str,
    /// Cell of each member.
    cells: Vec<(Role, String)>,
    is_right: bool,
    /// Importance: the column with the lowest rank is left out first.
    rank: u8,
}

impl TableColumn {
    /// Rank of a column that is never left out.
    const KEPT: u8 = u8::MAX;

    fn new(
        members: &[PanelMemberRun<'_>],
        (heading, rank, is_right): (&'static str, u8, bool),
        cell: impl Fn(&PanelMemberRun<'_>) -> (Role, String),
    ) -> Self {
        Self { heading, cells: members.iter().map(cell).collect(), is_right, rank }
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(|(_, cell)| cell.is_empty())
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|(_, cell)| cell.width()).max().unwrap_or(0).max(self.heading.width())
    }
}

/// Builds the table for `width` columns.
pub fn build_member_table(
    app: &App,
    members: &[PanelMemberRun<'_>],
    extent: MemberColumns,
    width: usize,
) -> MemberTable {
    let mut columns = build_columns(app, members);
    if extent == MemberColumns::Activity {
        columns.push(build_activity_column(app, members));
    }
    columns.retain(|column| !column.is_empty());
    while total_width(&columns) > width {
        let optional = (0..columns.len()).filter(|at| columns[*at].rank < TableColumn::KEPT);
        let Some(at) = optional.min_by_key(|at| columns[*at].rank) else { break };
        columns.remove(at);
    }
    let excess = total_width(&columns).saturating_sub(width);
    if let Some(names) = columns.first_mut().filter(|_| excess > 0) {
        let room = names.width().saturating_sub(excess).max(*NAME_COLUMNS.start());
        names.heading = "";
        for (_, name) in &mut names.cells {
            *name = shorten(name, room, app.display.glyphs.ellipsis);
        }
    }
    let heading = build_line(&columns, |column| (Role::Faint, column.heading));
    let row = |at: usize| build_line(&columns, move |column| (column.cells[at].0, column.cells[at].1.as_str()));
    MemberTable { heading, rows: (0..members.len()).map(row).collect() }
}

fn total_width(columns: &[TableColumn]) -> usize {
    columns.iter().map(|column| column.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Builds a line from one cell of each column.
fn build_line<'a>(columns: &'a [TableColumn], cell: impl Fn(&'a TableColumn) -> (Role, &'a str)) -> DocLine {
    let mut line = DocLine::default();
    for (at, column) in columns.iter().enumerate() {
        let (role, text) = cell(column);
        let pad = " ".repeat(column.width().saturating_sub(text.width()));
        let gap = if at > 0 { " ".repeat(GAP) } else { String::new() };
        let is_last = at + 1 == columns.len();
        line = match column.is_right {
            true => line.with_span(Role::Normal, &format!("{gap}{pad}")).with_span(role, text),
            false if is_last => line.with_span(Role::Normal, &gap).with_span(role, text),
            false => line.with_span(Role::Normal, &gap).with_span(role, text).with_span(Role::Normal, &pad),
        };
    }
    line
}

fn build_columns(app: &App, members: &[PanelMemberRun<'_>]) -> Vec<TableColumn> {
    let normal = |text: String| (Role::Normal, text);
    vec![
        TableColumn::new(members, ("reviewer", TableColumn::KEPT, false), |member| {
            let name = text::sanitize_line(&mask_shown_name(member.name)).into_owned();
            (Role::Strong, shorten(&name, *NAME_COLUMNS.end(), app.display.glyphs.ellipsis))
        }),
        TableColumn::new(members, ("state", TableColumn::KEPT, false), |member| {
            let (glyph, words, role) = app.member_state(member);
            (role, format!("{glyph} {words}"))
        }),
        TableColumn::new(members, ("turn", 1, true), |member| {
            normal(member.run.map_or_else(String::new, |run| app.describe_run_turn(&run)))
        }),
        TableColumn::new(members, ("hunks", 4, true), |member| {
            let run = member.run.filter(|run| run.hunks_total > 0);
            normal(run.map_or_else(String::new, |run| {
                format!("{}/{}", run.hunks_covered, run.hunks_total.max(run.hunks_covered))
            }))
        }),
        TableColumn::new(members, ("findings", 5, true), |member| {
            match member.run.map(|run| (run.has_reviewed(), describe_total(run.counts))) {
                Some((true, (0, role))) => (role, app.display.glyphs.none.to_owned()),
                None | Some((_, (0, _))) => normal(String::new()),
                Some((_, (total, role))) => (role, text::format_thousands(total)),
            }
        }),
        TableColumn::new(members, ("tokens", 2, true), |member| {
            let spent = find_spending(app, member).map(|(tokens, _)| tokens).filter(|tokens| *tokens > 0);
            normal(spent.map_or_else(String::new, format_brief))
        }),
        TableColumn::new(members, ("cost", 3, true), |member| {
            let cost = find_spending(app, member).map(|(_, cost)| cost).filter(|cost| *cost > 0.0);
            normal(cost.map_or_else(String::new, format_dollars))
        }),
    ]
}

/// Builds the column of what each member does at present.
fn build_activity_column(app: &App, members: &[PanelMemberRun<'_>]) -> TableColumn {
    TableColumn::new(members, ("now", 0, false), |member| {
        let run = member.run.filter(|run| run.status.is_working());
        let live =
            run.and_then(|run| app.pulse(run.id).map(|pulse| describe_activity(pulse, run.is_paused(), app.clock())));
        live.map_or_else(|| (Role::Normal, String::new()), |live| (Role::from_activity(live.state), live.text))
    })
}

/// Returns tokens and US dollars that a member spends for the panel; `None` if another request paid for its run.
fn find_spending(app: &App, member: &PanelMemberRun<'_>) -> Option<(u64, f64)> {
    member.run.filter(|_| member.is_paid_by_panel()).map(|run| app.run_spending(&run))
}
