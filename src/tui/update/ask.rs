//! Handles questions to the reviewer of a finding: the key, the prompt with the most that it may cost, and the answers.

use super::super::app::{App, NoticeLevel, Pane};
use super::super::diff;
use super::super::input::KeyEvent;
use super::super::keymap::{Action, KeyContext};
use super::super::line_edit::LineEdit;
use super::super::message::{AppCommand, DetailSubject};
use super::super::page_data::PageData;
use super::super::views::confirm::{ConfirmAction, confirm_if_idle};
use super::super::views::prompt::{self, InputPromptKind, PromptView};
use super::super::views::triage::TriageView;
use super::super::views::{self, ViewChange};
use super::triage::name_place;
use crate::domain::{
    Finding, FindingId, FindingQuestion, Panel, QuestionOutcome, QuestionRequest, QuestionVerdict, text,
};
use crate::runner::{CostLimit, PreparedQuestion, QuestionPlan};

/// Returns the finding at the cursor of the diff, else the selected one.
pub fn finding_at_hand(app: &App) -> Option<FindingId> {
    match (diff::finding_at_cursor(app), &app.detail.subject) {
        (Some(id), _) => id.parse().ok(),
        (None, DetailSubject::Finding(id)) => id.parse().ok(),
        (None, _) => None,
    }
}

/// Asks who would answer a question about the selected finding, and what it may cost; the prompt follows with the reply.
pub fn plan_question(app: &mut App, commands: &mut Vec<AppCommand>) {
    match finding_at_hand(app) {
        Some(finding) => plan_question_about(app, finding, commands),
        None => app.show_notice(NoticeLevel::Info, "no finding is selected"),
    }
}

/// Asks who would answer a question about a finding, and what it may cost. Where the reviewer certainly answers, the
/// prompt opens at once, and the cost follows.
pub fn plan_question_about(app: &mut App, finding: FindingId, commands: &mut Vec<AppCommand>) {
    if can_answer(app, &finding) {
        app.notice = None;
        open_prompt(app, finding.clone(), None);
    } else {
        app.show_notice(NoticeLevel::Info, format!("looking at who can answer{}", app.display.glyphs.ellipsis));
    }
    commands.push(AppCommand::PlanQuestion { finding, reviewer: None });
}

/// Returns what a key that asks or helps does now: it asks where a page shows a finding whose reviewer can answer.
pub fn choose_ask_or_help(app: &App, action: Action) -> Action {
    match action {
        Action::AskOrHelp if finding_to_ask(app).is_some() => Action::Ask,
        Action::AskOrHelp => Action::Help,
        action => action,
    }
}

/// Returns the finding of the page with the focus, or of triage mode, if its reviewer can answer a question.
pub fn finding_to_ask(app: &App) -> Option<FindingId> {
    let finding = match app.views.front() {
        None if app.panes.focus == Pane::Detail => finding_at_hand(app),
        None => None,
        Some(view) => view.finding_at_hand(),
    };
    finding.filter(|finding| can_answer(app, finding))
}

/// Returns true if a reviewer that reported a finding last is a model of the settings. While the finding of a panel is not
/// loaded, nobody knows which members report it: any model may be one.
pub fn can_answer(app: &App, finding: &FindingId) -> bool {
    let (view, models) = (&app.store.view, &app.session.answering_reviewers);
    let run = app.finding_by_id(finding.as_str()).and_then(|row| view.run_index(row.last_run));
    let Some(run) = run.map(|index| view.run(index)) else { return false };
    if run.is_import() {
        return false;
    }
    if Panel::name_of(run.reviewer).is_none() {
        return models.contains(run.reviewer);
    }
    match loaded_finding(app, finding) {
        Some(loaded) => loaded.voices.iter().any(|voice| models.contains(&voice.reviewer)),
        None => !models.is_empty(),
    }
}

/// Returns a finding as its page or its card of triage mode shows it; `None` if neither is loaded.
fn loaded_finding<'a>(app: &'a App, id: &FindingId) -> Option<&'a Finding> {
    let card = || app.views.find::<TriageView>().and_then(|view| view.loaded_finding(id));
    match app.detail.page.as_ref().map(|(.., loaded)| loaded.as_ref()) {
        Some(PageData::Finding(page)) if page.finding.finding_id == *id => Some(&page.finding),
        _ => card(),
    }
}

fn open_prompt(app: &mut App, finding: FindingId, plan: Option<Box<PreparedQuestion>>) {
    let context = app.key_context();
    let keys = [Action::AskOrHelp, Action::Help].into_iter().flat_map(|action| app.keymap.keys_of(context, action));
    let mut keys = keys.filter_map(|keys| <[KeyEvent; 1]>::try_from(keys.keys()).ok()).map(|[key]| key);
    let help_key = keys.find(|key| key.is_text());
    let kind = InputPromptKind::Ask { finding, plan, wanted: None };
    let mut prompt = PromptView::new(kind, LineEdit::default());
    prompt.help_key = help_key;
    app.views.open(prompt);
}

/// Returns true for the prompt of a question whose cost is not known yet.
fn is_awaiting_plan(prompt: &PromptView) -> bool {
    matches!(prompt.kind, InputPromptKind::Ask { plan: None, .. })
}

/// Returns the reviewer after the one of a plan among those that can answer; `None` if there is no other one.
pub fn next_answerer(plan: &PreparedQuestion) -> Option<&str> {
    let at = plan.answerers.iter().position(|name| *name == plan.reviewer);
    let next = at.map_or(0, |at| (at + 1) % plan.answerers.len());
    plan.answerers.get(next).filter(|name| **name != plan.reviewer).map(String::as_str)
}

/// Shows an error in the prompt of a question and leaves it open: the reviewer of before stays if another one was wanted, and
/// text that is typed next must not reach the keys below. Returns false if neither another reviewer was wanted nor anything
/// typed.
fn refuse_in_prompt(app: &mut App, error: &str) -> bool {
    let mut is_shown = false;
    views::change_view(app, |prompt: &mut PromptView, _| {
        let is_typed = is_awaiting_plan(prompt) && !prompt.line.text().is_empty();
        let InputPromptKind::Ask { wanted, .. } = &mut prompt.kind else { return };
        if wanted.take().is_some() || is_typed {
            error.clone_into(&mut prompt.error);
            is_shown = true;
        }
    });
    is_shown
}

/// Says what a question may cost in the prompt that is open for it, else opens the prompt; or asks whether the question
/// on its way is to stop.
pub fn open_question_prompt(app: &mut App, plan: Result<QuestionPlan, String>) {
    const EARLIER: &str = "an earlier question has no answer yet: Esc, then ask";
    match plan {
        Ok(QuestionPlan::Ask(plan)) if can_answer(app, &plan.finding_id) => {
            // Without the prompt, the user has closed it meanwhile.
            views::change_view(app, |prompt: &mut PromptView, _| match &mut prompt.kind {
                InputPromptKind::Ask { finding, plan: known, wanted } if *finding == plan.finding_id => {
                    (*known, *wanted) = (Some(plan), None);
                }
                _ => {}
            });
        }
        Ok(QuestionPlan::Ask(_)) if app.views.has_window() => {
            app.show_notice(NoticeLevel::Info, "a question can be asked: ask for it again");
        }
        Ok(QuestionPlan::Ask(plan)) => {
            app.notice = None;
            open_prompt(app, plan.finding_id.clone(), Some(plan));
        }
        Ok(QuestionPlan::Stop(_)) if refuse_in_prompt(app, EARLIER) => {}
        Ok(QuestionPlan::Stop(request)) => {
            app.views.close_matching(is_awaiting_plan);
            app.notice = None;
            let text = format!(
                "{} has not answered yet. Stop the question? The provider may charge for it.",
                text::sanitize_line(&request.reviewer)
            );
            let otherwise = "a question has no answer yet: ask again to stop it";
            confirm_if_idle(app, ConfirmAction::StopQuestion(request.finding_id), text, otherwise);
        }
        Err(error) => {
            let refusal = format!("no question: {error}");
            if refuse_in_prompt(app, &refusal) {
                return;
            }
            app.views.close_matching(is_awaiting_plan);
            app.show_notice(NoticeLevel::Error, refusal);
        }
    }
}

/// Describes the most that a question may cost, in few words.
pub fn describe_cost(limit: CostLimit) -> String {
    match limit {
        CostLimit::Unknown { tokens: Some(tokens) } => {
            format!("price unknown, at most {} tokens", text::format_thousands(tokens))
        }
        limit => limit.to_string(),
    }
}

/// Sends a typed question.
///
/// # Errors
///
/// Returns the reason if the text is no question; nothing is sent then.
pub fn request_question(
    app: &mut App,
    plan: &PreparedQuestion,
    question: &str,
    commands: &mut Vec<AppCommand>,
) -> Result<(), String> {
    if question.is_empty() {
        return Err("a question needs a text; nothing was sent".to_owned());
    }
    if question.chars().count() > QuestionRequest::MAX_CHARS {
        return Err(format!("a question has at most {} characters", QuestionRequest::MAX_CHARS));
    }
    let (finding, reviewer) = (plan.finding_id.clone(), plan.reviewer.clone());
    let said = format!("asking {}{}", text::sanitize_line(&reviewer), app.display.glyphs.ellipsis);
    app.show_notice(NoticeLevel::Info, said);
    commands.push(AppCommand::Ask { finding, reviewer, question: question.to_owned() });
    Ok(())
}

/// Shows that a question was sent, or opens its prompt again with the reason why not.
pub fn apply_asked(app: &mut App, result: Result<QuestionRequest, String>, commands: &mut Vec<AppCommand>) {
    match result {
        Ok(request) => {
            prompt::forget_asked(app, prompt::ASK_PROMPTS);
            refresh_asked(app, &request, commands);
            let said = format!("{} is asked; its answer comes here", text::sanitize_line(&request.reviewer));
            app.show_notice(NoticeLevel::Success, said);
        }
        Err(error) => {
            if !prompt::reopen_refused(app, prompt::ASK_PROMPTS, &error) {
                app.show_notice(NoticeLevel::Error, format!("nothing was sent: {error}"));
            }
        }
    }
}

/// Shows a notice about new answers; the page of their finding is read again.
pub fn apply_answers(app: &mut App, lines: &[FindingQuestion], commands: &mut Vec<AppCommand>) {
    lines.iter().for_each(|line| refresh_asked(app, &line.request, commands));
    let Some(line) = lines.last() else { return };
    let (place, reviewer) = (name_place(app, &line.request.finding_id), text::sanitize_line(&line.request.reviewer));
    let answer = match &line.outcome {
        QuestionOutcome::Answer(answer) => answer,
        QuestionOutcome::Failure(reason) => {
            let said = format!("{reviewer} does not answer about {place}: {}", text::sanitize_line(reason));
            return app.show_notice(NoticeLevel::Error, said);
        }
    };
    let dot = app.display.glyphs.dot;
    let said = match answer.verdict {
        QuestionVerdict::Stands => format!("{reviewer} answers: it holds to {place}"),
        QuestionVerdict::Explained => format!("{reviewer} answers about {place}"),
        QuestionVerdict::Withdrawn => format!("{reviewer} withdraws {place} {dot} you decide{}", dismiss_hint(app)),
    };
    app.show_notice(NoticeLevel::Success, said);
    app.keep_notice();
}

/// Returns `: x dismisses it`, with the key of the keymap; empty if it has none.
pub fn dismiss_hint(app: &App) -> String {
    let key = app.keymap.key_of(KeyContext::Global, Action::Dismiss);
    key.map_or_else(String::new, |key| format!(": {key} dismisses it"))
}

/// Has the page and the card of the finding that a question is about read again, and those of the report that it names.
fn refresh_asked(app: &mut App, request: &QuestionRequest, commands: &mut Vec<AppCommand>) {
    refresh_finding(app, &request.finding_id, commands);
    if let Some(report) = &request.reported_as {
        refresh_finding(app, report, commands);
    }
}

/// Has the page and the card of a finding read again.
fn refresh_finding(app: &mut App, finding: &FindingId, commands: &mut Vec<AppCommand>) {
    views::apply_change(app, &ViewChange::Asked(finding), commands);
    app.detail.stale |= matches!(&app.detail.subject, DetailSubject::Finding(id) if id == finding.as_str());
}
