//! Explains an empty list of findings: code that was not reviewed, and findings that are not read yet, never look clean.

use super::app::App;
use super::filter::DEFAULT;
use super::keymap::{Action, KeyContext};
use super::theme::Role;
use super::update::list_reviews;
use crate::domain::{CancelReason, ReviewReach, RunStatus, text};
use crate::store::RunRow;

/// Explanation of an empty list of findings.
#[derive(Debug, Clone)]
pub struct EmptyList {
    /// The reason, without a capital letter and a full stop.
    pub headline: String,
    /// Style of the headline.
    pub role: Role,
    /// Sentences that say more, and name the next keys.
    pub details: Vec<String>,
}

impl EmptyList {
    fn new(role: Role, headline: impl Into<String>, details: Vec<String>) -> Self {
        Self { headline: headline.into(), role, details }
    }
}

/// Explains why no finding is listed. Reads only what is in memory.
pub fn explain_empty_list(app: &App) -> EmptyList {
    if !app.store.view.complete {
        return EmptyList::new(Role::Muted, "reading the store", Vec::new());
    }
    match app.chosen_run().and_then(|run| app.store.view.run_index(run)) {
        Some(index) => explain_run(app, &app.store.view.run(index)),
        None => explain_filter(app),
    }
}

/// Explains the list that is narrowed to a run.
fn explain_run(app: &App, run: &RunRow<'_>) -> EmptyList {
    let reason = run.describe_unreviewed().unwrap_or_default();
    let found: u32 = run.counts.iter().sum();
    let found_text = text::format_count(found as usize, "finding");
    let is_narrowed = app.finding_list.filter_text.trim() != format!("run:{}", run.id);
    let is_read = app.finding_list.overrides.reported.contains_key(run.id);
    let review = app.keymap.key_text(KeyContext::Global, Action::Review);
    let files = app.keymap.key_text(KeyContext::Global, Action::Files);
    let back = "Esc shows all findings again.".to_owned();
    match run.review_reach() {
        ReviewReach::Nothing => {
            let next = match run.shortfall().is_some() || run.status == RunStatus::Skipped {
                true => format!("Press {review} to review again, {files} to see what was left out."),
                false => format!("Press {review} to review again; the page of the run says more."),
            };
            EmptyList::new(Role::Warn, format!("not reviewed: {reason}"), vec![next, back])
        }
        reach if found > 0 && is_narrowed => {
            let filter = app.keymap.key_text(KeyContext::Global, Action::Filter);
            let mut details = vec![format!("The run has {found_text}. Press {filter} to change the filter."), back];
            if reach == ReviewReach::Part {
                details.insert(0, format!("Only a part was reviewed: {reason}."));
            }
            EmptyList::new(Role::Strong, "no finding of this run passes the filter", details)
        }
        _ if found > 0 && !is_read => EmptyList::new(Role::Muted, "reading the findings of this run", vec![back]),
        _ if found > 0 => {
            let next = format!("`revdeck store verify` looks for damage. Press {review} to review again.");
            EmptyList::new(Role::Warn, format!("the {found_text} of this run cannot be listed"), vec![next, back])
        }
        ReviewReach::Unfinished => {
            let state =
                format!("The review is not over ({}): findings appear here as they come.", app.run_state(run).1);
            EmptyList::new(Role::Strong, "no findings yet", vec![state, back])
        }
        ReviewReach::Part => {
            let next = format!(
                "Nothing was found in that part. Press {review} to review again, {files} to see what was left out."
            );
            EmptyList::new(Role::Warn, format!("only a part was reviewed: {reason}"), vec![next, back])
        }
        ReviewReach::Whole => {
            let left_out = run.left_out_files().map(|files| text::format_count(files as usize, "file"));
            let left_out = left_out.map(|count| format!("{count} left out on purpose: press {files} to see what."));
            EmptyList::new(Role::Good, "no findings", left_out.into_iter().chain([back]).collect())
        }
    }
}

/// Explains the list of all runs.
fn explain_filter(app: &App) -> EmptyList {
    let review = app.keymap.key_text(KeyContext::Global, Action::Review);
    let filter = app.keymap.key_text(KeyContext::Global, Action::Filter);
    let newest = find_newest_review(app);
    let reach = newest.as_ref().map(RunRow::review_reach);
    let caution = newest.as_ref().and_then(|run| describe_unfinished(app, run));
    let is_default = app.finding_list.filter_text == DEFAULT;
    let (role, headline) = match (app.store.view.finding_count(), reach) {
        (0, None) => (Role::Strong, "nothing found yet"),
        (0, Some(ReviewReach::Whole)) => (Role::Good, "nothing found"),
        (0, Some(ReviewReach::Part)) => (Role::Warn, "nothing found in the reviewed part"),
        (0, Some(ReviewReach::Nothing)) => (Role::Warn, "the newest review reviewed nothing"),
        (0, Some(ReviewReach::Unfinished)) => (Role::Strong, "no findings yet"),
        (_, Some(ReviewReach::Whole)) if is_default => (Role::Good, "nothing left to decide"),
        _ if is_default => (Role::Strong, "nothing left to decide"),
        _ => (Role::Strong, "no finding passes the filter"),
    };
    let is_empty = app.store.view.finding_count() == 0;
    let keys = match is_default {
        // The headline names no filter.
        false if is_empty => {
            format!("Press {filter} to change the filter, Esc to take it back, {review} to review again.")
        }
        true => format!("Press {filter} to change the filter (status:all shows everything), {review} to review again."),
        false => format!("Press {filter} to change it, Esc to take it back."),
    };
    EmptyList::new(role, headline, caution.into_iter().chain([keys]).collect())
}

/// Returns the newest review of this branch that is neither skipped nor superseded nor imported, and that no other review answers
/// for.
fn find_newest_review(app: &App) -> Option<RunRow<'_>> {
    list_reviews(app).find(|run| {
        !matches!(run.status, RunStatus::Skipped | RunStatus::Superseded)
            && run.cancel_reason != CancelReason::Duplicate.word()
            && !run.is_import()
    })
}

/// Says in a sentence what the newest review did not review; `None` if it reviewed its whole change.
fn describe_unfinished(app: &App, run: &RunRow<'_>) -> Option<String> {
    let name = text::sanitize_line(&app.name_run(run)).into_owned();
    let reason = run.describe_unreviewed().unwrap_or_default();
    match run.review_reach() {
        ReviewReach::Whole => None,
        ReviewReach::Unfinished => Some(format!("The review of {name} is not over ({}).", app.run_state(run).1)),
        ReviewReach::Nothing => Some(format!("The newest review, of {name}, reviewed nothing: {reason}.")),
        ReviewReach::Part => Some(format!("The newest review, of {name}, reviewed only a part: {reason}.")),
    }
}
