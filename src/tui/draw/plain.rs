//! Draws the screen as lines of text for a screen reader: the pane with the focus only, a sentence for each row, no
//! frames and no columns. What other screens say by a sign or a colour, a word says here.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::super::app::{App, FileListEntry, NoticeLevel, Pane, RunEntry};
use super::super::bars;
use super::super::diff;
use super::super::doc::{DocLine, shorten_middle};
use super::super::layout::ScreenLayout;
use super::super::message::{FileListRow, FileListState};
use super::super::pages::{build_empty_page, priority_label, to_sentence};
use super::super::panel_runs::describe_origin;
use super::super::theme::Role;
use super::super::views::prompt::PromptView;
use super::header::{collect_counts, describe_engine};
use super::painter::{Painter, to_shown_text};
use super::{files, findings, frame, hints, runs};
use crate::config::RunOrder;
use crate::domain::text::format_count;
use crate::domain::{Panel, Priority, ReviewReach, Shortfall};
use crate::policy::Freshness;
use crate::store::FindingRow;

/// Draws header, pane, message and footer.
pub fn draw_screen(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    let app = painter.app;
    if !layout.header.is_empty() {
        draw_line(painter, layout.header, &describe_session(app), Role::Normal);
    }
    if app.views.covers_panes() {
        app.views.draw(painter, layout, false);
    } else if let Some(area) = layout.pane(app.panes.focus) {
        draw_line(painter, area.title, &describe_pane(app, area.body), Role::Title);
        draw_rows(painter, area.body);
    }
    let hints = app.sequence_hints();
    if hints.len() < 2 {
        draw_notice(painter, layout.notice);
    }
    match hints.is_empty() {
        true => frame::draw_footer(painter, layout.footer),
        false => hints::draw(painter, layout, &hints),
    }
    app.views.draw(painter, layout, true);
}

/// Returns the cell at which the terminal's cursor stands, so that a screen reader follows it: the cursor of the prompt,
/// the selected row, else the title.
pub fn find_cursor(app: &App, layout: &ScreenLayout, buffer: &Buffer) -> Position {
    let cells = |area: Rect| area.intersection(buffer.area).positions();
    if app.views.front_as::<PromptView>().is_some()
        && let Some(cursor) = cells(layout.notice).find(|at| buffer[*at].modifier.contains(Modifier::REVERSED))
    {
        return cursor;
    }
    let bar = app.display.theme.style(Role::Selected);
    let is_bar = |at: &Position| {
        let cell = &buffer[*at];
        bar.bg.is_none_or(|bg| cell.bg == bg) && cell.modifier.contains(bar.add_modifier)
    };
    let has_bar = bar.bg.is_some() || !bar.add_modifier.is_empty();
    let above_footer = Rect { height: buffer.area.height.saturating_sub(1), ..buffer.area };
    let title = layout.pane(app.panes.focus).map_or(Position::ORIGIN, |area| area.title.as_position());
    cells(above_footer).find(|at| has_bar && is_bar(at)).unwrap_or(title)
}

fn draw_line(painter: &mut Painter<'_>, area: Rect, text: &str, role: Role) {
    painter.draw_text(area.x, area.y, area.width, text, role);
}

/// Describes repository, branch, the state of the reviews, and what the header of other screens counts.
fn describe_session(app: &App) -> String {
    let branch = match app.session.branch.as_str() {
        "" => "detached HEAD".to_owned(),
        branch => format!("branch {branch}"),
    };
    let counts: Vec<_> = collect_counts(app).into_iter().map(|(fact, _)| fact).collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" {}.", counts.join(", ")) };
    format!("{}, {branch}. {}.{counts}", app.session.repository, describe_engine(app))
}

/// Describes the pane with the focus: its name, the position in it, the filter.
fn describe_pane(app: &App, body: Rect) -> String {
    let place = |selected: usize, rows: usize| match rows {
        0 => "empty".to_owned(),
        rows => format!("{} of {rows}", selected + 1),
    };
    match app.panes.focus {
        Pane::Runs => format!("Runs, {}.", place(app.run_list.cursor.selected, app.run_list.entries.len())),
        Pane::Files => format!("Files, {}.", place(app.file_list.cursor.selected, app.file_list.row_count())),
        Pane::Findings => {
            let list = &app.finding_list;
            let filter =
                if list.filter_text.is_empty() { String::new() } else { format!(", filter {}", list.filter_text) };
            format!("Findings, {}{filter}.", place(list.cursor.selected, list.rows.len()))
        }
        Pane::Detail => {
            let tabs = bars::place_tabs(app, 0, u16::MAX / 2);
            let at = tabs.iter().position(|placed| placed.tab == app.detail.tab).unwrap_or(0);
            let name = tabs.get(at).map_or("", |placed| placed.name);
            let (lines, top) = match diff::is_shown(app) {
                true => (app.detail.diff.row_count(), app.detail.diff.top()),
                false => (app.detail.doc.lines.len(), app.detail.scroll),
            };
            let last = (top + usize::from(body.height)).min(lines);
            let is_outdated = diff::is_shown(app) && diff::is_outdated(app);
            let changed = if is_outdated { format!(", {}", Freshness::Obsolete.describe()) } else { String::new() };
            let (tab, first) = (at + 1, (top + 1).min(last));
            format!("{name}, tab {tab} of {}, lines {first} to {last} of {lines}{changed}.", tabs.len())
        }
    }
}

fn draw_rows(painter: &mut Painter<'_>, body: Rect) {
    let app = painter.app;
    if app.panes.focus == Pane::Detail {
        super::detail::draw_body(painter, body);
        return;
    }
    let list = PlainList::new(app, app.panes.focus);
    let bar = frame::pane_selection_style(painter, app.panes.focus);
    for (y, line) in (body.y..body.bottom()).zip(list.page(usize::from(body.height))) {
        let area = Rect::new(body.x, y, body.width, 1);
        match line {
            PlainLine::Group(group) => draw_line(painter, area, &describe_group(app, group), Role::Normal),
            PlainLine::Row(at) => {
                let is_selected = at == list.selected;
                if is_selected {
                    painter.fill(area, bar);
                    painter.set_overlay_style(Some(bar));
                }
                let sign = if is_selected { ">" } else { " " };
                draw_line(painter, area, &format!("{sign} {}", describe_row(app, at)), Role::Normal);
                painter.set_overlay_style(None);
            }
        }
    }
    if list.rows == 0 {
        draw_empty(painter, body);
    }
}

/// Says why the list with the focus is empty.
fn draw_empty(painter: &mut Painter<'_>, body: Rect) {
    let app = painter.app;
    let lines: Vec<String> = match app.panes.focus {
        Pane::Files => vec![to_sentence(files::describe_no_files(app))],
        _ => build_empty_page(app, usize::from(body.width)).lines.iter().map(DocLine::plain_text).collect(),
    };
    for (line, y) in lines.iter().zip(body.y..body.bottom()) {
        draw_line(painter, Rect { y, height: 1, ..body }, line, Role::Normal);
    }
}

/// Returns the row of a list at a line of its pane; `None` for the name of a group, and below the list.
pub fn row_at(app: &App, pane: Pane, line: usize) -> Option<usize> {
    let height = usize::from(app.layout().body(pane)?.height);
    match PlainList::new(app, pane).page(height).get(line)? {
        PlainLine::Row(at) => Some(*at),
        PlainLine::Group(_) => None,
    }
}

/// Returns the rows of a list that are on the screen; none while another pane is.
pub fn rows_on_page(app: &App, pane: Pane) -> Vec<usize> {
    let Some(body) = app.layout().body(pane) else { return Vec::new() };
    let lines = PlainList::new(app, pane).page(usize::from(body.height)).into_iter();
    let rows = lines.filter_map(|line| match line {
        PlainLine::Row(at) => Some(at),
        PlainLine::Group(_) => None,
    });
    rows.collect()
}

/// Line of a list on a plain screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainLine {
    /// Name of the group with this number, above its first row.
    Group(usize),
    /// Row at this position.
    Row(usize),
}

/// List that is shown page by page, with one line for each row and for the name of each group.
struct PlainList<'a> {
    rows: usize,
    selected: usize,
    /// Positions at which groups start, ascending.
    groups: &'a [u32],
}

impl<'a> PlainList<'a> {
    fn new(app: &'a App, pane: Pane) -> Self {
        let ungrouped: &[u32] = &[];
        let (cursor, rows, groups) = match pane {
            Pane::Runs => (app.run_list.cursor, app.run_list.entries.len(), ungrouped),
            Pane::Files => (app.file_list.cursor, app.file_list.row_count(), ungrouped),
            Pane::Findings | Pane::Detail => {
                let list = &app.finding_list;
                (list.cursor, list.rows.len(), list.groups.as_slice())
            }
        };
        Self { rows, selected: cursor.selected, groups }
    }

    /// Returns the line of a row, counted from the top of the list.
    fn line_of(&self, at: usize) -> usize {
        at + self.groups.partition_point(|start| *start as usize <= at)
    }

    /// Returns the lines of the page with the selected row, at most `height`.
    fn page(&self, height: usize) -> Vec<PlainLine> {
        let height = height.max(1);
        let top = self.line_of(self.selected) / height * height;
        let mut first = self.selected.min(self.rows);
        while first > 0 && self.line_of(first - 1) >= top {
            first -= 1;
        }
        let mut lines = Vec::with_capacity(height + 1);
        for at in first..self.rows {
            let group = self.groups.binary_search_by(|start| (*start as usize).cmp(&at)).ok();
            // The name may be the last line of the page before.
            lines.extend(group.filter(|_| self.line_of(at) > top).map(PlainLine::Group));
            lines.push(PlainLine::Row(at));
            if lines.len() >= height {
                break;
            }
        }
        lines.truncate(height);
        lines
    }
}

/// Names a group and counts its findings.
fn describe_group(app: &App, group: usize) -> String {
    let list = &app.finding_list;
    let first = list.groups.get(group).and_then(|start| list.rows.get(*start as usize));
    let name =
        first.map_or_else(String::new, |index| findings::name_group(app, &app.store.view.finding(*index as usize)));
    format!("{name}, {}.", format_count(list.group_len(group), "finding"))
}

/// Describes a row of the list with the focus in a sentence.
fn describe_row(app: &App, at: usize) -> String {
    match app.panes.focus {
        Pane::Runs => app.run_list.entries.get(at).map_or(String::new(), |entry| describe_run(app, entry)),
        Pane::Files => match app.file_list.row(at) {
            Some(FileListEntry::File { file, .. }) => describe_file(file),
            Some(FileListEntry::Folder(folder)) => {
                let state = if folder.is_folded { ", folded" } else { "" };
                format!("folder {}, {}{state}", folder.path, format_count(folder.files, "file"))
            }
            Some(FileListEntry::LeftOut(count)) => {
                let more = if app.file_list.has_more_left_out() { "at least " } else { "" };
                format!("{more}{} left out", format_count(count, "file"))
            }
            None => String::new(),
        },
        Pane::Findings | Pane::Detail => {
            app.finding_list.rows.get(at).map_or(String::new(), |index| describe_finding(app, at, *index as usize))
        }
    }
}

/// Describes the finding at a position of the list, which has this index in the view. A long path loses its middle, so that
/// the line and the title stay on the screen.
fn describe_finding(app: &App, at: usize, index: usize) -> String {
    let finding = app.store.view.finding(index);
    let marked = if app.is_marked(at, finding.id) { "marked, " } else { "" };
    let longest = usize::from(app.display.columns / 2);
    let path = shorten_middle(&to_shown_text(app, finding.path), longest, app.display.glyphs.ellipsis);
    let around = if finding.symbol.is_empty() { String::new() } else { format!(" in {}", finding.symbol) };
    format!(
        "{marked}{} {}{}, {}, {} line {}{around}: {}",
        priority_label(finding.priority),
        app.current_status(&finding).word(),
        describe_marks(app, &finding, index),
        finding.kind.label(),
        path,
        finding.line_start,
        finding.title
    )
}

/// Returns the words for the marks of a finding, to follow its status.
fn describe_marks(app: &App, finding: &FindingRow<'_>, index: usize) -> String {
    let overrides = &app.finding_list.overrides;
    let is_snoozed = overrides.snoozed.hides(finding.id, app.current_status(finding));
    let marks = [
        (finding.panel_disputed, " and disputed in a panel"),
        (overrides.disputed.contains(finding.id), ", disputed in the team"),
        (is_snoozed, ", snoozed"),
        (!is_snoozed && app.is_new(index, finding), ", new"),
    ];
    marks.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, words)| words).collect()
}

/// Describes a run: its state, what was reviewed by whom and when, what was found, then what is unusual about it.
fn describe_run(app: &App, entry: &RunEntry) -> String {
    let run = app.store.view.run(entry.index as usize);
    let name = app.name_run(&run);
    let content = app.describe_run_content(&run);
    let mut facts =
        vec![app.run_state(&run).1.to_owned(), format!("{name} by {}", Panel::describe_reviewer(run.reviewer))];
    if !name.contains(&content) {
        facts.push(content);
    }
    if runs::is_on_other_branch(app, &run) || (app.run_list.order == RunOrder::Branch && !run.branch.is_empty()) {
        facts.push(format!("on {}", run.branch));
    }
    facts.push(app.format_date_or_time(run.created_ms));
    let sums = run.is_panel().then(|| app.sum_panel(&run));
    if let Some(sums) = sums.filter(|_| !run.status.is_terminal()) {
        facts.push(sums.describe_done());
    }
    // Where nobody looked, it would be misleading that nothing was found.
    let counts = sums.map_or(run.counts, |sums| sums.counts);
    facts.push(match run.review_reach() {
        _ if counts != [0; 4] => describe_counts(counts),
        // The state says it already.
        ReviewReach::Nothing if run.shortfall() == Some(Shortfall::NothingReviewed) => String::new(),
        ReviewReach::Nothing => "nothing was reviewed".to_owned(),
        ReviewReach::Part => "no findings in the reviewed part".to_owned(),
        ReviewReach::Unfinished => "no findings yet".to_owned(),
        ReviewReach::Whole => "no findings".to_owned(),
    });
    facts.extend(run.left_out_files().map(|files| format!("{} left out", format_count(files as usize, "file"))));
    if let (Some(Some(change)), None) = (app.run_list.changes.get(run.id), entry.member) {
        facts.push(change.describe());
    }
    facts.extend(runs::notable_freshness(app, entry, &run).map(|freshness| freshness.word().to_owned()));
    facts.push(runs::describe_cost(sums.map_or_else(|| app.run_spending(&run).1, |sums| sums.cost)));
    if run.reuse_count > 0 {
        facts.push(format!("reused {}", format_count(run.reuse_count as usize, "time")));
    }
    match entry.member {
        Some(decision) => {
            let turn = app.describe_run_turn(&run);
            if !turn.is_empty() {
                facts.push(format!("turn {turn}"));
            }
            facts.push("member of the panel above".to_owned());
            facts.push(describe_origin(decision).to_owned());
        }
        None if !run.member_of.is_empty() => facts.push("member of a panel".to_owned()),
        None => {}
    }
    facts.push(entry.folded.describe());
    facts.retain(|fact| !fact.is_empty());
    facts.join(", ")
}

fn describe_file(file: &FileListRow) -> String {
    let state = match file.state {
        FileListState::LeftOut(why) => format!("left out, {why}"),
        FileListState::Waiting => "waiting".to_owned(),
        FileListState::Covered | FileListState::Unknown => describe_counts(file.counts),
        FileListState::Partial => format!("{}, partly reviewed", describe_counts(file.counts)),
    };
    let viewed = match file.viewed_changes {
        _ if file.is_viewed => ", viewed".to_owned(),
        Some((viewed, all)) => format!(", {viewed} of {} viewed", format_count(all as usize, "change")),
        None => String::new(),
    };
    format!("{}: {state}{viewed}", file.path)
}

/// Describes the numbers of findings by priority, without zeros.
fn describe_counts(counts: [u32; 4]) -> String {
    let total: u32 = counts.iter().sum();
    if total == 0 {
        return "no findings".to_owned();
    }
    let parts = Priority::ALL.into_iter().filter(|priority| counts[priority.index()] > 0);
    let parts: Vec<String> =
        parts.map(|priority| format!("{} {}", counts[priority.index()], priority_label(priority))).collect();
    format!("{} ({})", format_count(total as usize, "finding"), parts.join(", "))
}

/// Draws the message with a word for its level.
fn draw_notice(painter: &mut Painter<'_>, area: Rect) {
    let Some((level, text)) = painter.app.current_notice().filter(|_| !area.is_empty()) else { return };
    let word = match level {
        NoticeLevel::Success => "Done",
        NoticeLevel::Info => "Note",
        NoticeLevel::Error => "Error",
    };
    let lines = super::super::doc::wrap_words(&format!("{word}: {text}"), usize::from(area.width.saturating_sub(2)));
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        painter.draw_text(1, y, area.width.saturating_sub(2), line, Role::Normal);
    }
}
