//! Renders the history of a finding: reports, decisions, snoozes, ratings, notes and questions, oldest first.

use super::format_location;
use crate::domain::{
    Actor, Disposition, FindingNote, FindingQuestion, FindingRating, FindingSnooze, NoteKind, Panel, Priority,
    QuestionOutcome, QuestionVerdict, RunRecord, Source, Time, TriageAction, text,
};
use crate::report::{describe_snooze_end, weave_events};
use crate::runner::OWN_REVIEWER;
use crate::tui::app::App;
use crate::tui::doc::{Doc, DocLine, wrap_words};
use crate::tui::page_data::FindingPage;
use crate::tui::theme::Role;

/// Kind of an event, in the order of those of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Report,
    Decision,
    Other,
}

/// Renders the history of a finding.
pub fn render_history(app: &App, page: &FindingPage, width: usize, doc: &mut Doc) {
    doc.push_heading("History", page.finding.finding_id.as_str());
    let column = app.format_date_time(page.finding.reported_at).len() + 2;
    for (time, what) in list_events(app, page) {
        let time = time.map_or_else(String::new, |time| app.format_date_time(time));
        let lines = wrap_words(&text::sanitize_line(&what), width.saturating_sub(column).max(12));
        for (index, line) in lines.into_iter().enumerate() {
            let time = if index == 0 { time.as_str() } else { "" };
            doc.push(DocLine::styled(Role::Faint, &format!("{time:<column$}")).with_span(Role::Muted, &line));
        }
    }
}

/// Returns what happened to a finding, oldest first; what has no known time comes first. Of the same moment, a report comes
/// before a decision.
fn list_events(app: &App, page: &FindingPage) -> Vec<(Option<Time>, String)> {
    let mut decisions = Vec::new();
    for (index, line) in page.history.iter().enumerate() {
        let who = name_author(line);
        let what = match line.action {
            TriageAction::Set => format!("{} by {who}", line.status),
            TriageAction::Undo => format!("{} again: {who} took it back", line.status),
            TriageAction::Redo => format!("{} again by {who}", line.status),
        };
        let reason = if line.reason.is_empty() { String::new() } else { format!(": {}", line.reason) };
        let void = page.void.get(&index).map_or_else(String::new, |cause| format!(" ({})", cause.describe()));
        decisions.push(((Some(line.at), Step::Decision), format!("{what}{void}{reason}")));
    }
    let mut events = Vec::new();
    for FindingSnooze { until, actor, at, .. } in &page.snoozes {
        let end = describe_snooze_end(until.as_ref(), &app.display.zone);
        events.push((Some(*at), format!("{end}, by {}", name_actor(*actor))));
    }
    for FindingRating { rating, previous, actor, at, .. } in &page.ratings {
        events.push((Some(*at), format!("rated {rating}, before {previous}, by {}", name_actor(*actor))));
    }
    for FindingNote { kind, actor, text, at, .. } in &page.notes {
        let what = match kind {
            NoteKind::Dispute => "disputed",
            NoteKind::Remark => "note",
        };
        events.push((Some(*at), format!("{what} by {}: {text}", name_actor(*actor))));
    }
    let asked = page.questions.iter().map(|line| (line.request.at, &line.request.reviewer, describe_result(line)));
    let pending = page.pending.iter().map(|request| (request.at, &request.reviewer, "has not answered yet"));
    for (at, reviewer, result) in asked.chain(pending) {
        // The texts stand in a section of their own.
        events.push((Some(at), format!("you asked {reviewer}, which {result}")));
    }
    let reports = list_reports(app, page).into_iter().map(|(at, what)| ((at, Step::Report), what));
    let events = events.into_iter().map(|(at, what)| ((at, Step::Other), what));
    let woven = weave_events(decisions, reports.chain(events).collect());
    woven.into_iter().map(|((at, _), what)| (at, what)).collect()
}

/// Returns who reported the finding and where its code was seen.
fn list_reports(app: &App, page: &FindingPage) -> Vec<(Option<Time>, String)> {
    let finding = &page.finding;
    let is_own =
        page.run.as_ref().is_some_and(|run| run.source == Source::Import && run.reviewed_by.name == OWN_REVIEWER);
    let by = |run: &RunRecord| match is_own {
        true => format!("by {} in {}", run.owner, app.name_record(run)),
        false => {
            let reviewer = Panel::describe_reviewer(&run.reviewed_by.name);
            // The run of another machine of the team; its code may not be here.
            let place = run.team.as_ref().map_or_else(String::new, |origin| format!(" on {}", origin.machine));
            format!("by {reviewer}{place} in {}", app.name_record(run))
        }
    };
    let by_last = page.run.as_ref().map_or_else(|| format!("by run {}", finding.last_run_id), by);
    let mut reports = Vec::new();
    if finding.first_run_id == finding.last_run_id {
        let what = if is_own { "written" } else { "reported" };
        reports.push((Some(finding.reported_at), format!("{what} {by_last}")));
    } else {
        // Another reviewer may call the same problem less urgent.
        let changed = page.first_report.as_ref().and_then(|first| first.priority);
        let changed = changed.filter(|priority| *priority != finding.priority);
        let as_priority = |priority: Option<Priority>| priority.map_or_else(String::new, |p| format!(" as {p}"));
        reports.push(match &page.first_report {
            Some(first) => (Some(first.at), format!("reported first {}{}", by(&first.run), as_priority(changed))),
            None => (None, format!("reported first by run {}", finding.first_run_id)),
        });
        let (at, what) = match &page.carried_from {
            Some(from) => {
                // The time of the report stays that of the run that examined the code.
                let at = page.run.as_ref().map_or(finding.reported_at, |run| run.created_at);
                let reviewer = Panel::describe_reviewer(&from.reviewed_by.name);
                let from = format!("the review of {} by {reviewer}", app.name_record(from));
                (at, format!("carried over {by_last} from {from}: its code has not changed since"))
            }
            // The priority on the page may be the user's own.
            None => {
                let now = changed.filter(|_| page.ratings.is_empty()).map(|_| finding.priority);
                (finding.reported_at, format!("reported again {by_last}{}", as_priority(now)))
            }
        };
        reports.push((Some(at), what));
    }
    if let Some(seen) = &page.relocation {
        let place = format_location(&finding.repo_relative_path, finding.line_start, finding.line_end, app);
        let what = format!("seen at {place} in {}; reported at {}", app.name_record(&seen.run), seen.reported);
        reports.push((Some(seen.run.created_at), what));
    }
    reports
}

/// Describes the result of a question in a few words.
fn describe_result(line: &FindingQuestion) -> &'static str {
    match &line.outcome {
        QuestionOutcome::Failure(_) => "gave no answer",
        QuestionOutcome::Answer(answer) if answer.unstructured => "answered",
        QuestionOutcome::Answer(answer) => match answer.verdict {
            QuestionVerdict::Stands => "holds to it",
            QuestionVerdict::Explained => "explained it",
            QuestionVerdict::Withdrawn => "withdrew it",
        },
    }
}

/// Returns the words for the author of a decision in a sentence to the user: who it was elsewhere, if the team sent it.
fn name_author(line: &Disposition) -> String {
    let here = || if line.ci { "a job of CI" } else { name_actor(line.actor) };
    line.describe_team_author().unwrap_or_else(|| here().to_owned())
}

/// Returns the word for an actor in a sentence to the user.
fn name_actor(actor: Actor) -> &'static str {
    match actor {
        Actor::User => "you",
        Actor::Assistant => "the assistant",
        Actor::Engine => "revdeck",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_of_a_decision_is_named() {
        for (actor, ci, expected) in [
            ("user", false, "you"),
            ("user", true, "a job of CI"),
            ("assistant", false, "the assistant"),
            ("engine", false, "revdeck"),
        ] {
            let line: Disposition = serde_json::from_value(serde_json::json!({
                "finding_id": "f_0000000000000001", "status": "addressed", "previous": "open", "actor": actor, "ci": ci,
                "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g",
            }))
            .expect("a disposition");
            assert_eq!(name_author(&line), expected, "{actor}");
        }
    }
}
