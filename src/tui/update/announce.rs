//! Announces runs that end, and urgent findings as they arrive, in the message line and outside the screen. A member of a
//! panel is announced for a failure, its budget and urgent findings only: the end of the panel says the rest.

use std::sync::Arc;

use super::super::app::{App, NoticeLevel};
use super::super::message::AppCommand;
use crate::domain::{CancelReason, Panel, Priority, ReviewReach, RunStatus, text};
use crate::store::{FindingRow, RunRow, StoreView};

/// Maximum number of runs that are announced at once; more would not be read.
const MAX_ANNOUNCED: usize = 3;

/// Compares the view on the screen with the next one, and announces what a user should know. The first complete view
/// announces nothing: its runs ended before the cockpit was opened.
pub fn announce_changes(app: &mut App, next: &Arc<StoreView>, commands: &mut Vec<AppCommand>) {
    let before = Arc::clone(&app.store.view);
    if !before.complete {
        return;
    }
    let known = app.run_list.active.iter().map(|index| before.run(*index as usize).id.to_owned());
    let new = (0..next.run_count()).map(|index| next.run(index).id).take_while(|id| before.run_index(id).is_none());
    let mut said: Vec<Announcement> = Vec::new();
    // Members of a panel may report one problem at the same time.
    let mut told: Vec<FindingRow<'_>> = Vec::new();
    for id in known.chain(new.map(str::to_owned)) {
        let Some(run) = next.run_index(&id).map(|index| next.run(index)) else { continue };
        // Who imports findings or asks for a fix gets an answer of its own.
        if run.is_fix_review() || run.is_import() {
            continue;
        }
        let counts = before.run_index(&id).map_or([0; 4], |index| before.run(index).counts);
        let panel = Some(run.member_of).filter(|id| !id.is_empty()).and_then(|id| next.run_index(id));
        let panel = panel.map(|index| next.run(index));
        let ends = run.status.is_terminal() && (panel.is_none() || is_broken(&run));
        // The end of a run says how much of what it found is urgent.
        let has_ended = panel.unwrap_or(run).status.is_terminal();
        let text = match ends {
            true => describe_end(app, &run),
            false if !has_ended && count_urgent(run.counts) > count_urgent(counts) => {
                describe_urgent(app, &run, count_unknown(&before, next, &run, &mut told))
            }
            false => None,
        };
        let Some((level, text)) = text else { continue };
        let (ended, working) = match ends {
            true => (Some(id).filter(|_| tells_counts(&run)), Vec::new()),
            false => (None, panel.map(|panel| panel.id.to_owned()).into_iter().chain([id]).collect()),
        };
        said.push(Announcement { level, text, ended, working });
    }
    for Announcement { level, text, ended, working } in said.into_iter().take(MAX_ANNOUNCED) {
        if let Some(ended) = ended {
            app.drop_interim_notice(&ended);
        }
        app.append_interim_notice(level, text.clone(), working);
        commands.push(AppCommand::Notify(text));
    }
}

/// Message about a run.
struct Announcement {
    level: NoticeLevel,
    text: String,
    /// Run that has ended, if the text says how much it found. It replaces what was told about the run before.
    ended: Option<String>,
    /// Working run that has found something, and its panel: the end of either says it again.
    working: Vec<String>,
}

/// Announces runs whose workers have died: nothing in the store will tell it before somebody goes on with them.
pub fn announce_dead_workers(app: &mut App, runs: &[String], commands: &mut Vec<AppCommand>) {
    let view = Arc::clone(&app.store.view);
    let rows = runs.iter().filter_map(|id| view.run_index(id)).map(|index| view.run(index));
    for run in rows.filter(|run| run.status.is_working() && !run.is_fix_review()).take(MAX_ANNOUNCED) {
        let text = describe_lost(app, &run);
        app.append_notice(NoticeLevel::Error, text.clone());
        commands.push(AppCommand::Notify(text));
    }
}

fn describe_lost(app: &App, run: &RunRow<'_>) -> String {
    format!("the worker that reviewed {} is gone", text::sanitize_line(&app.name_run(run)))
}

/// Returns true for a run that came to no end of its own: it failed, lost its worker or reached its budget.
fn is_broken(run: &RunRow<'_>) -> bool {
    match run.status {
        RunStatus::Failed | RunStatus::Lost => true,
        RunStatus::Cancelled => run.cancel_reason == CancelReason::BudgetExhausted.word(),
        _ => false,
    }
}

/// Returns true if the end of a run is described with what it found, see [`describe_end`].
fn tells_counts(run: &RunRow<'_>) -> bool {
    let is_told = match run.status {
        RunStatus::Completed => true,
        RunStatus::Cancelled => run.cancel_reason == CancelReason::BudgetExhausted.word(),
        _ => false,
    };
    is_told && run.review_reach() != ReviewReach::Nothing
}

/// Describes the end of a run; `None` if there is nothing to tell: the user ended it, or another run answers.
fn describe_end(app: &App, run: &RunRow<'_>) -> Option<(NoticeLevel, String)> {
    let name = text::sanitize_line(&app.name_run(run)).into_owned();
    let reviewer = Panel::describe_reviewer(run.reviewer);
    let reviewer = text::sanitize_line(&reviewer);
    let found = describe_counts(run.counts);
    let cancelled_for = |reason: CancelReason| run.cancel_reason == reason.word();
    let is_unread = run.review_reach() == ReviewReach::Nothing;
    Some(match run.status {
        // Not reviewed is never clean.
        RunStatus::Completed if is_unread => (NoticeLevel::Info, format!("{reviewer} reviewed nothing of {name}")),
        RunStatus::Completed if run.is_incomplete() => {
            (NoticeLevel::Info, format!("{reviewer} reviewed a part of {name}: {found}"))
        }
        RunStatus::Completed => (NoticeLevel::Success, format!("{reviewer} reviewed {name}: {found}")),
        RunStatus::Failed => {
            let class = run.error_class.replace('_', " ");
            let why = if class.is_empty() { String::new() } else { format!(": {class}") };
            (NoticeLevel::Error, format!("{reviewer} failed to review {name}{why}"))
        }
        RunStatus::Cancelled if cancelled_for(CancelReason::BudgetExhausted) => {
            let found = if is_unread { "nothing was reviewed".to_owned() } else { found };
            (NoticeLevel::Error, format!("{reviewer} reached the budget of {name}: {found}"))
        }
        RunStatus::Cancelled if !cancelled_for(CancelReason::UserStop) => {
            let why = run.cancel_reason.parse::<CancelReason>().map_or("", CancelReason::describe);
            (NoticeLevel::Info, format!("the review of {name} was cancelled: {why}"))
        }
        RunStatus::Lost => (NoticeLevel::Error, describe_lost(app, run)),
        _ => return None,
    })
}

/// Returns the number of P0 and P1.
fn count_urgent(counts: [u32; 4]) -> u32 {
    counts[0].saturating_add(counts[1])
}

/// Counts the urgent findings of a run by priority that are not in `told` and that the view before did not have: a problem
/// that was known is no news. Adds them to `told`.
fn count_unknown<'a>(
    before: &StoreView,
    next: &'a StoreView,
    run: &RunRow<'_>,
    told: &mut Vec<FindingRow<'a>>,
) -> [u32; 4] {
    let mut counts = [0; 4];
    let findings = (0..next.finding_count()).map(|index| next.finding(index));
    for finding in findings.filter(|finding| finding.priority <= Priority::P1 && finding.last_run == run.id) {
        if !is_known(before, &finding) && !told.iter().any(|other| is_same_problem(other, &finding)) {
            counts[finding.priority.index()] += 1;
            told.push(finding);
        }
    }
    counts
}

/// Returns true if a view has this finding, or one of its kind at its lines, whose id it may get at the end of the run.
fn is_known(view: &StoreView, finding: &FindingRow<'_>) -> bool {
    let is_same = |index: usize| is_same_problem(&view.finding(index), finding);
    view.finding_index(finding.id).is_some() || (0..view.finding_count()).any(is_same)
}

fn is_same_problem(one: &FindingRow<'_>, other: &FindingRow<'_>) -> bool {
    one.kind == other.kind && one.path == other.path && one.lines().overlaps(other.lines())
}

/// Describes new urgent findings of a working run.
fn describe_urgent(app: &App, run: &RunRow<'_>, new: [u32; 4]) -> Option<(NoticeLevel, String)> {
    (new != [0; 4]).then(|| {
        let name = text::sanitize_line(&app.name_run(run)).into_owned();
        let reviewer = Panel::describe_reviewer(run.reviewer);
        (NoticeLevel::Info, format!("{} found {} in {name}", text::sanitize_line(&reviewer), describe_counts(new)))
    })
}

/// Describes numbers of findings: `12 findings, 1 P0, 2 P1`.
fn describe_counts(counts: [u32; 4]) -> String {
    let total: usize = counts.iter().map(|count| *count as usize).sum();
    if total == 0 {
        return "nothing found".to_owned();
    }
    let urgent = [Priority::P0, Priority::P1].into_iter().filter(|priority| counts[priority.index()] > 0);
    let urgent = urgent.map(|priority| format!(", {} P{}", counts[priority.index()], priority.index()));
    format!("{}{}", text::format_count(total, "finding"), urgent.collect::<String>())
}
