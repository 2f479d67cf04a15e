//! Builds the menus of the panes: what to review, what to copy.

use super::super::app::App;
use super::super::markdown;
use super::super::message::{ChosenReviewer, CopyOrder, DetailSubject};
use super::super::page_data::PageData;
use super::super::views::menu::{MenuChoice, MenuItem, MenuView};
use crate::domain::{Scope, text};
use crate::runner::{BUILTIN_REVIEWER, ReviewerTerms};

/// Builds the menu of scopes to review: first what nobody has reviewed, then the usual ones by the default reviewer,
/// whose name and limit stand in the title if it may cost money.
pub fn build_review_menu(app: &App) -> MenuView {
    let item = |label: &str, hint: &str, choice| MenuItem { label: label.to_owned(), hint: hint.to_owned(), choice };
    let review = |scope| MenuChoice::Review { scope: Some(scope), reviewer: ChosenReviewer::Default };
    let branch = if app.session.branch.is_empty() { "HEAD" } else { app.session.branch.as_str() };
    let free = format!("by {BUILTIN_REVIEWER}, offline and at no cost");
    let mut items: Vec<MenuItem> = Vec::new();
    for change in &app.offered {
        let choice = MenuChoice::Review { scope: Some(change.scope.clone()), reviewer: ChosenReviewer::Builtin };
        items.push(item(&change.text, &free, choice));
    }
    let default = |scope| MenuChoice::Review { scope, reviewer: ChosenReviewer::Default };
    items.extend([
        item("what changed", "uncommitted changes, else the last commit", default(None)),
        item("uncommitted changes", "untracked files included", review(Scope::Worktree)),
        item("staged changes", "what the next commit would hold", review(Scope::Staged)),
        item("last commit", "HEAD against its parent", review(Scope::Commit("HEAD".to_owned()))),
        item("branch", &format!("{branch} since it left its base"), review(Scope::Branch(None))),
        item(&format!("a commit{}", app.display.glyphs.ellipsis), "any revision", MenuChoice::AskCommit),
        item(&format!("a range{}", app.display.glyphs.ellipsis), "A..B or A...B", MenuChoice::AskRange),
        item("everything", "the whole tree", review(Scope::All)),
    ]);
    let title = match app.paid_reviewer() {
        Some(ReviewerTerms { name, limit }) => {
            let choice = MenuChoice::Review { scope: None, reviewer: ChosenReviewer::Builtin };
            items.push(item("what changed", &free, choice));
            format!("Review by {}, {limit}", text::sanitize_line(name)).into()
        }
        None => "Review".into(),
    };
    MenuView { title, items, selected: 0 }
}

/// Builds the menu of texts to copy from the selected item; `None` if nothing is selected.
pub fn build_copy_menu(app: &App) -> Option<MenuView> {
    let copy = |text: String, what: &'static str| {
        let mut hint = text.lines().next().unwrap_or("").to_owned();
        if what == "the finding" {
            hint = "all of it, as Markdown".to_owned();
        }
        MenuItem { label: what.to_owned(), hint, choice: MenuChoice::Copy(CopyOrder { text, what }) }
    };
    let mut items = Vec::new();
    match &app.detail.subject {
        DetailSubject::Finding(id) => {
            let finding = app.finding_by_id(id)?;
            items.push(copy(format!("{}:{}", finding.path, finding.line_start), "the place"));
            let page = app.detail.page.as_ref().and_then(|(subject, _, loaded)| match loaded.as_ref() {
                PageData::Finding(page) if *subject == app.detail.subject => Some(&page.finding),
                _ => None,
            });
            let text = match page {
                Some(whole) => markdown::render_finding(whole, app.current_status(&finding)),
                None => markdown::render_row(&finding, app.current_status(&finding)),
            };
            items.push(copy(text, "the finding"));
            items.push(copy(finding.id.to_owned(), "the id"));
        }
        DetailSubject::Run(id) => {
            items.push(copy(id.clone(), "the id"));
            let run = app.selected_run()?;
            if !run.snapshot_commit.is_empty() {
                items.push(copy(run.snapshot_commit.to_owned(), "the snapshot"));
            }
        }
        DetailSubject::File { path, .. } => items.push(copy(path.clone(), "the path")),
        DetailSubject::Nothing => return None,
    }
    Some(MenuView { title: "Copy".into(), items, selected: 0 })
}
