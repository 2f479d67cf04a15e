//! Builds the menus of orders and of texts to copy.

use super::super::app::{App, RunOrder};
use super::super::finding_order::{FindingArrangement, FindingGrouping, FindingSort};
use super::super::markdown;
use super::super::message::{CopyOrder, DetailSubject};
use super::super::page_data::PageData;
use super::super::views::menu::{MenuChoice, MenuItem, MenuView};
use crate::config::FileOrder;

/// Builds the menu of orders and groups of the findings; the present order is selected.
pub fn build_order_menu(app: &App) -> MenuView {
    let now = app.finding_list.arrangement;
    let item = |verb: &str, word: &str, is_present: bool, choice| MenuItem {
        label: format!("{verb} {word}"),
        hint: if is_present { "as it is now" } else { "" }.to_owned(),
        choice: MenuChoice::Arrange(choice),
    };
    let sorts =
        FindingSort::ALL.map(|sort| item("sort by", sort.word(), sort == now.sort, FindingArrangement { sort, ..now }));
    let groupings = FindingGrouping::ALL.map(|grouping| {
        let is_present = grouping == now.grouping;
        match grouping {
            FindingGrouping::None => item("no", "groups", is_present, FindingArrangement { grouping, ..now }),
            _ => item("group by", grouping.word(), is_present, FindingArrangement { grouping, ..now }),
        }
    });
    let selected = FindingSort::ALL.iter().position(|sort| *sort == now.sort).unwrap_or(0);
    MenuView { title: "Order of the findings".into(), items: sorts.into_iter().chain(groupings).collect(), selected }
}

/// Builds the menu of orders of the runs; the present order is selected.
pub fn build_run_order_menu(app: &App) -> MenuView {
    let now = app.run_list.order;
    let item = |order: RunOrder| MenuItem {
        label: match order {
            RunOrder::Age => "newest first",
            RunOrder::Branch => "a timeline for each branch",
        }
        .to_owned(),
        hint: if order == now { "as it is now" } else { "" }.to_owned(),
        choice: MenuChoice::ArrangeRuns(order),
    };
    let selected = RunOrder::ALL.iter().position(|order| *order == now).unwrap_or(0);
    MenuView { title: "Order of the runs".into(), items: RunOrder::ALL.map(item).into(), selected }
}

/// Builds the menu of orders of the files; the present order is selected.
pub fn build_file_order_menu(app: &App) -> MenuView {
    let now = app.file_list.order();
    let item = |order: FileOrder| MenuItem {
        label: match order {
            FileOrder::Findings => "files with findings first",
            FileOrder::Folders => "tree of folders",
        }
        .to_owned(),
        hint: if order == now { "as it is now" } else { "" }.to_owned(),
        choice: MenuChoice::ArrangeFiles(order),
    };
    let selected = FileOrder::ALL.iter().position(|order| *order == now).unwrap_or(0);
    MenuView {
        title: "Order of the files".into(),
        items: FileOrder::ALL.iter().map(|order| item(*order)).collect(),
        selected,
    }
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
