//! Builds the parts of a page that the run of a panel has of its members: their table, and the sums while they work.

use super::super::app::App;
use super::super::doc::{Doc, FoldKey};
use super::super::panel_runs::PanelSums;
use super::super::panel_table::{MemberColumns, build_member_table};
use super::super::theme::Role;
use super::NAMES;
use super::run::{find_list_row, format_spent};
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
    doc.push_field("spent", NAMES, Role::Normal, &sums.describe_spending_by_members(), width);
}

/// Describes what the panel of another machine has spent: its members stay there. `None` for any other run.
pub fn describe_spending_elsewhere(run: &RunRecord) -> Option<String> {
    let is_panel = Panel::name_of(&run.reviewed_by.name).is_some() && run.links.panel.is_none();
    let machine = &run.team.as_ref().filter(|_| is_panel)?.machine;
    Some(match run.usage.tokens.total() {
        0 => format!("not known here: its members are on {machine}"),
        _ => {
            let opinions = format_spent(&run.usage.tokens, run.usage.cost);
            format!("{opinions} by second opinions; its members are on {machine}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panel_of_another_machine_is_not_said_to_have_spent_nothing() {
        let run = |reviewer: &str, is_elsewhere: bool, input: u64| -> RunRecord {
            let mut run = serde_json::json!({
                "run_id": format!("ar_{:026}", 7), "status": "completed", "created_at": "2026-03-04T11:59:00Z",
                "updated_at": "2026-03-04T11:59:40Z", "source": "cli", "scope": "commit:HEAD", "reviewer": reviewer,
            });
            if is_elsewhere {
                run["team"] = serde_json::json!({ "machine": "ada-1", "person": { "name": "Ada" } });
            }
            let mut run: RunRecord = serde_json::from_value(run).expect("a record");
            run.usage.tokens.input = input;
            run
        };
        for (run, expected) in [
            (run("panel:three", true, 0), Some("not known here: its members are on ada-1")),
            (run("panel:three", true, 1_200), Some("1,200 in, 0 out by second opinions; its members are on ada-1")),
            (run("panel:three", false, 0), None),
            (run("sonnet", true, 1_200), None),
        ] {
            assert_eq!(describe_spending_elsewhere(&run).as_deref(), expected);
        }
    }
}
