//! Handles the key for fixes; the action depends on the fix of the selected finding.

use super::super::app::{App, ConfirmAction, Menu, MenuChoice, MenuItem, NoticeLevel, Overlay};
use super::super::fixes::{FixIndex, FixOrder, FixPlan};
use super::super::message::{AppCommand, DetailSubject, Tab};
use super::super::pages::{format_brief, format_dollars};
use super::keys;
use crate::domain::{FindingId, Fix, FixStatus, text};
use crate::runner::Runner;

/// Handles the key: opens the menu of the selected finding's fix, else requests a fix of the marked or selected
/// findings.
pub fn handle_key(app: &mut App, commands: &mut Vec<AppCommand>) {
    let targets = collect_targets(app);
    if targets.is_empty() {
        return app.show_notice(NoticeLevel::Info, "no finding is selected");
    }
    let known = match &app.subject {
        DetailSubject::Finding(id) if app.marks.is_empty() => {
            app.fixes.for_finding(id).filter(|fix| fix.status != FixStatus::Dropped)
        }
        _ => None,
    };
    match known.filter(|fix| fix.status != FixStatus::Failed).map(|fix| build_menu(app, fix)) {
        Some(menu) => app.overlay = Overlay::Menu(menu),
        None => request_plan(app, targets, commands),
    }
}

/// Requests the reviewer for a fix; the confirmation follows with the reply.
fn request_plan(app: &mut App, findings: Vec<FindingId>, commands: &mut Vec<AppCommand>) {
    app.show_notice(NoticeLevel::Info, format!("looking at who can fix it{}", app.glyphs.ellipsis));
    commands.push(AppCommand::PlanFix(findings));
}

/// Returns the marked findings, else the selected one.
fn collect_targets(app: &mut App) -> Vec<FindingId> {
    keys::commit_mark_range(app);
    app.mark_range_start = None;
    if app.marks.is_empty() {
        let DetailSubject::Finding(id) = &app.subject else { return Vec::new() };
        return id.parse().into_iter().collect();
    }
    let mut ids: Vec<&String> = app.marks.iter().collect();
    ids.sort_by_key(|id| app.view.finding_index(id));
    ids.into_iter().filter_map(|id| id.parse().ok()).collect()
}

fn build_menu(app: &App, fix: &Fix) -> Menu {
    let item = |label: &str, hint: String, choice| MenuItem { label: label.to_owned(), hint, choice };
    let ask = |question: &str, order| MenuChoice::AskFix { text: question.to_owned(), order };
    let (id, size) = (&fix.fix_id, fix.format_diff_stat());
    let apply = |hint| {
        let text = format!("Write the patch into your files ({size})?");
        item("apply it", hint, ask(&text, FixOrder::Apply(id.clone())))
    };
    let undo = || {
        let text = format!("Take the patch out of your files again ({size})?");
        item("undo it", "what you changed since stays".to_owned(), ask(&text, FixOrder::Undo(id.clone())))
    };
    let drop = |hint: &str| item("drop it", hint.to_owned(), MenuChoice::Fix(FixOrder::Drop(id.clone())));
    let look = || item("look at it", "the patch".to_owned(), MenuChoice::ShowFix);
    let again =
        || item("make another", "who makes it is asked first".to_owned(), MenuChoice::PlanFix(fix.findings.clone()));
    let items = match fix.status {
        _ if fix.is_half_applied() => vec![apply("it is half applied: finish".to_owned()), undo()],
        FixStatus::Offered | FixStatus::Undone => {
            vec![look(), apply(format!("{size}, into your files")), drop("the patch is let go"), again()]
        }
        FixStatus::Applied => vec![look(), undo()],
        FixStatus::Working | FixStatus::Reviewing => vec![drop("stop making it")],
        FixStatus::Dropped | FixStatus::Failed => vec![again()],
    };
    // If the patch is already on the screen, the next item is preselected.
    let at = usize::from(app.tab == Tab::Fix && items.len() > 1 && matches!(items[0].choice, MenuChoice::ShowFix));
    Menu { title: "Fix", items, selected: at }
}

/// Asks to undo or redo a step that was a fix: its files and its findings together.
pub fn confirm_step(app: &mut App, fix: &Fix) {
    let (id, size) = (fix.fix_id.clone(), fix.format_diff_stat());
    let (text, order) = match fix.status {
        FixStatus::Applied => {
            (format!("Your last step applied a fix. Take it out of your files again ({size})?"), FixOrder::Undo(id))
        }
        _ => (format!("Your last step took a fix out. Write it into your files again ({size})?"), FixOrder::Apply(id)),
    };
    super::confirm_if_idle(app, ConfirmAction::Fix(order), text, "that step is of a fix: ask for it again");
}

/// Asks for confirmation when the reviewer of the fix is known.
pub fn confirm_plan(app: &mut App, plan: Result<FixPlan, String>) {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return app.show_notice(NoticeLevel::Error, format!("no fix: {error}")),
    };
    let what = text::format_count(plan.findings.len(), "finding");
    let text = if plan.reviewer == Runner::BUILTIN {
        format!("Fix {what} with exact suggestions? It costs nothing.")
    } else {
        let budget = app.session.budget;
        let most = match (budget.cost, budget.tokens) {
            (Some(cost), _) => format!("It may cost up to {}.", format_dollars(cost)),
            (None, Some(tokens)) => format!("It may take up to {} tokens.", format_brief(tokens)),
            (None, None) => "Nothing limits what it costs.".to_owned(),
        };
        format!("Have {} fix {what}? {most}", text::sanitize_line(&plan.reviewer))
    };
    app.notice = None;
    super::confirm_if_idle(
        app,
        ConfirmAction::Fix(FixOrder::Make(plan.findings)),
        text,
        "a fix can be made: ask for it again",
    );
}

/// Sends a request and shows a notice.
pub fn send_order(app: &mut App, order: FixOrder, commands: &mut Vec<AppCommand>) {
    let what = match &order {
        FixOrder::Make(_) => "asking for a fix",
        FixOrder::Apply(_) => "applying the patch",
        FixOrder::Undo(_) => "taking the patch back",
        FixOrder::Drop(_) => "dropping the fix",
    };
    app.show_notice(NoticeLevel::Info, format!("{what}{}", app.glyphs.ellipsis));
    if matches!(order, FixOrder::Make(_)) {
        app.marks.clear();
    }
    commands.push(AppCommand::Fix(order));
}

/// Shows a notice if a fix has ended since the last read.
pub fn notify_ended(app: &mut App, fixes: &FixIndex) {
    let Some(fix) = fixes.ended_since(&app.fixes) else { return };
    match fix.status {
        FixStatus::Failed => {
            app.show_notice(NoticeLevel::Error, format!("no fix: {}", text::sanitize_line(&fix.reason)))
        }
        _ => app.show_notice(NoticeLevel::Success, format!("a fix is offered: {}", fix.format_diff_stat())),
    }
}

/// Shows the result of a fix request.
pub fn show_result(app: &mut App, result: Result<Fix, String>) {
    let fix = match result {
        Ok(fix) => fix,
        Err(error) => return app.show_notice(NoticeLevel::Error, error),
    };
    let key = app.keymap.key_of(app.key_context(), super::super::keymap::Action::Fix).map(|key| key.to_string());
    let key = key.unwrap_or_default();
    let dot = app.glyphs.dot;
    let text = match fix.status {
        FixStatus::Working | FixStatus::Reviewing => {
            "the fix is being made; it is offered here when it is ready".to_owned()
        }
        FixStatus::Applied => format!("applied: {} {dot} {key} undoes", fix.format_diff_stat()),
        FixStatus::Undone => format!("the patch is out of your files: {}", fix.format_diff_stat()),
        status => format!("the fix is {status}"),
    };
    app.show_notice(NoticeLevel::Success, text);
}
