//! Builds the menus of orders and of texts to copy.

use super::super::app::App;
use super::super::diff;
use super::super::finding_order::FindingArrangement;
use super::super::markdown;
use super::super::message::{CopyOrder, DetailSubject};
use super::super::page_data::PageData;
use super::super::views::menu::{MenuChoice, MenuItem, MenuView};
use crate::config::{FileOrder, FindingGrouping, FindingSort, RunOrder};

/// Builds the menu of orders and groups of the findings; the present order is selected.
pub fn build_order_menu(app: &App) -> MenuView {
    let now = app.finding_list.arrangement;
    let item = |verb: &str, word: &str, is_present: bool, choice| MenuItem {
        label: format!("{verb} {word}"),
        hint: if is_present { "as it is now" } else { "" }.to_owned(),
        choice: MenuChoice::Arrange(choice),
    };
    let sorts = FindingSort::ALL.iter().map(|sort| {
        let choice = FindingArrangement { sort: *sort, ..now };
        item("sort by", sort.word(), *sort == now.sort, choice)
    });
    let groupings = FindingGrouping::ALL.iter().map(|grouping| {
        let choice = FindingArrangement { grouping: *grouping, ..now };
        let is_present = *grouping == now.grouping;
        match grouping {
            FindingGrouping::None => item("no", "groups", is_present, choice),
            _ => item("group by", grouping.word(), is_present, choice),
        }
    });
    let selected = FindingSort::ALL.iter().position(|sort| *sort == now.sort).unwrap_or(0);
    MenuView { title: "Order of the findings".into(), items: sorts.chain(groupings).collect(), selected }
}

/// Builds the menu of orders of the runs; the present order is selected.
pub fn build_run_order_menu(app: &App) -> MenuView {
    let label = |order| match order {
        RunOrder::Age => "newest first",
        RunOrder::Branch => "a timeline for each branch",
    };
    build_choice_menu("Order of the runs", RunOrder::ALL, app.run_list.order, label, MenuChoice::ArrangeRuns)
}

/// Builds the menu of orders of the files; the present order is selected.
pub fn build_file_order_menu(app: &App) -> MenuView {
    let label = |order| match order {
        FileOrder::Findings => "files with findings first",
        FileOrder::Folders => "tree of folders",
    };
    build_choice_menu("Order of the files", FileOrder::ALL, app.file_list.order(), label, MenuChoice::ArrangeFiles)
}

/// Builds a menu of values, of which the present one is selected.
fn build_choice_menu<T: Copy + PartialEq>(
    title: &'static str,
    values: &[T],
    now: T,
    label: impl Fn(T) -> &'static str,
    choose: impl Fn(T) -> MenuChoice,
) -> MenuView {
    let item = |value: &T| MenuItem {
        label: label(*value).to_owned(),
        hint: if *value == now { "as it is now" } else { "" }.to_owned(),
        choice: choose(*value),
    };
    let selected = values.iter().position(|value| *value == now).unwrap_or(0);
    MenuView { title: title.into(), items: values.iter().map(item).collect(), selected }
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
    let code = diff::code_at_cursor(app).into_iter();
    let mut items: Vec<MenuItem> = code.map(|(what, line)| copy(line, what)).collect();
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
