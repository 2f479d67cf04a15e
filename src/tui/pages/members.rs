//! Builds the parts of a page that the run of a panel has of its members: their table, and the sums while they work.

use super::super::app::App;
use super::super::doc::{Doc, FoldKey};
use super::super::panel_runs::PanelSums;
use super::super::panel_table::{MemberColumns, build_member_table};
use super::super::theme::Role;
use super::run::find_list_row;
use super::{NAMES, format_dollars, format_thousands};
use crate::domain::{Panel, RunRecord};

/// Renders the members as a table. Each row leads to the run of its member.
pub fn render_members(app: &App, run: &RunRecord, panel: &Panel, width: usize, doc: &mut Doc) {
    let members = app.list_recorded_members(panel);
    let table = build_member_table(app, &members, MemberColumns::Figures, width);
    doc.push_heading("Members", &find_sums(app, run).map_or_else(String::new, |sums| sums.describe_done()));
    doc.push(table.heading);
    for (number, row) in (0..).zip(table.rows) {
        doc.push_fold(FoldKey::Member(number), row);
    }
}

/// Returns the sums over the members of a panel; `None` for another run, and for one that is not listed.
pub fn find_sums(app: &App, run: &RunRecord) -> Option<PanelSums> {
    let row = find_list_row(app, run).filter(|row| row.is_panel())?;
    Some(app.sum_panel(&row))
}

/// Renders the tokens and the cost of a panel: those of its members, and of second opinions.
pub fn render_spending(sums: &PanelSums, width: usize, doc: &mut Doc) {
    let mut parts = vec![match sums.tokens {
        0 => "no tokens".to_owned(),
        tokens => format!("{} tokens", format_thousands(tokens)),
    }];
    parts.extend((sums.cost > 0.0).then(|| format_dollars(sums.cost)));
    doc.push_field("spent", NAMES, Role::Normal, &format!("{} by all members", parts.join(", ")), width);
}
