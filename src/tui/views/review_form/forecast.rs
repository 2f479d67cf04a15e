//! Describes the forecast of a review: the size of the change, the decision of the policy, and the cost.

use crate::domain::{Panel, RunId};
use crate::report::forecast::{
    describe_decision, describe_members, describe_sending, describe_size, list_request_notes,
};
use crate::runner::{CostLimit, RequestPreview};
use crate::tui::app::App;
use crate::tui::theme::Role;

/// Characters of a shortened run id: `ar_`, and enough of the time in it to tell the runs of a second apart.
const SHORT_ID_CHARS: usize = 13;

/// Describes a forecast: the size of the change, the decision, what no limit can count, and what is sent.
pub fn describe_preview(app: &App, preview: &RequestPreview, limit: Option<CostLimit>) -> Vec<(String, Role)> {
    let mut described = vec![(describe_size(&app.name_scope(&preview.scope), preview), Role::Normal)];
    let starts = preview.decision.action.starts_run();
    let answer = describe_decision(&preview.decision, |run| name_run(app, run));
    described.push((answer, if starts { Role::Normal } else { Role::Good }));
    if starts {
        described.extend(describe_members(preview).map(|line| (line, Role::Normal)));
        described.extend(list_request_notes(preview).into_iter().map(|note| (note, Role::Warn)));
        described.extend(describe_sending(preview, limit).map(|line| (line, Role::Muted)));
    }
    described
}

/// Names the run that answers a request: `the review of a0c3bec by sonnet`.
fn name_run(app: &App, run: &RunId) -> String {
    let row = app.store.view.run_index(run.as_str()).map(|index| app.store.view.run(index));
    row.map_or_else(
        || shorten_id(run).to_owned(),
        |row| format!("the review of {} by {}", app.name_run(&row), Panel::describe_reviewer(row.reviewer)),
    )
}

/// Returns the beginning of a run's id, which commands accept in place of the whole.
fn shorten_id(run: &RunId) -> &str {
    run.as_str().get(..SHORT_ID_CHARS).unwrap_or(run.as_str())
}
