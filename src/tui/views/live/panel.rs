//! Shows the members of a panel in place of turns. Each leads to a Live view of its own.

use ratatui::layout::{Position, Rect};

use super::draw::MARGIN;
use super::head::describe_no_findings;
use super::row::{RowPart, fit_row};
use super::{ENTRY, LiveView, open_run};
use crate::domain::{Panel, text};
use crate::masking::mask_shown_name;
use crate::store::RunRow;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc::{DocLine, shorten_start};
use crate::tui::draw::painter::Painter;
use crate::tui::draw::{draw_line, selection_style};
use crate::tui::keymap::Action;
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::panel_runs::describe_total;
use crate::tui::panel_table::{MemberColumns, build_member_table};
use crate::tui::theme::Role;
use crate::tui::views::ViewFlow;

/// Rows above the table: two of the head, and a rule.
const ROWS_ABOVE: u16 = 3;

/// Place of the table on the screen.
struct TablePlace {
    /// Row of the names of the columns. A low screen has room for the selected member before them.
    heading: Option<u16>,
    /// Rows of the members.
    rows: Rect,
    /// First visible member.
    first: usize,
}

impl TablePlace {
    fn new(layout: &ScreenLayout, selected: usize) -> Self {
        let bottom = layout.notice.y.max(layout.header.bottom());
        let top = (layout.header.bottom() + ROWS_ABOVE).min(bottom);
        let heading = (bottom - top > 1).then_some(top);
        let y = top + u16::from(heading.is_some());
        let rows = Rect::new(0, y, layout.header.width, bottom - y);
        Self { heading, rows, first: (selected + 1).saturating_sub(usize::from(rows.height)) }
    }
}

/// Handles a key press where the run is that of a panel.
pub fn handle_key(view: &mut LiveView, app: &mut App, action: Action, commands: &mut Vec<AppCommand>) -> ViewFlow {
    use Action as A;
    let last = view.row(app).map_or(0, |run| run.panel_members().count()).saturating_sub(1);
    view.member = view.member.min(last);
    match action {
        A::Abort | A::Back => return ViewFlow::Close,
        action if ENTRY.is_opened_by(action) => return ViewFlow::Close,
        A::Down => view.member = (view.member + 1).min(last),
        A::Up => view.member = view.member.saturating_sub(1),
        A::Top | A::FirstTurn => view.member = 0,
        A::Bottom | A::Follow => view.member = last,
        A::Open | A::Accept | A::Right | A::NextTurn => open_member(view, app, commands),
        A::Pause => view.toggle_pause(app, commands),
        A::Cancel => view.confirm_cancel(app),
        A::Quit => commands.push(AppCommand::Quit(None)),
        _ => {}
    }
    ViewFlow::Open
}

/// Selects the member under the pointer; a double click opens its Live view.
pub fn handle_click(
    view: &mut LiveView,
    app: &mut App,
    cell: Position,
    is_double: bool,
    commands: &mut Vec<AppCommand>,
) {
    let members = view.row(app).map_or(0, |run| run.panel_members().count());
    let place = TablePlace::new(&app.layout(), view.member.min(members.saturating_sub(1)));
    let row = place.rows.contains(cell).then(|| place.first + usize::from(cell.y - place.rows.y));
    let Some(at) = row.filter(|at| *at < members) else { return };
    app.notice = None;
    match is_double {
        // The first click selected it, and may have moved the rows.
        true => open_member(view, app, commands),
        false => view.member = at,
    }
}

/// Opens the Live view of the selected member in front of this one.
fn open_member(view: &LiveView, app: &mut App, commands: &mut Vec<AppCommand>) {
    let member = view.row(app).and_then(|run| run.panel_members().nth(view.member));
    let listed = member.filter(|(id, _)| app.store.view.run_index(id).is_some()).map(|(id, _)| id.to_owned());
    match listed {
        Some(id) => open_run(app, id, commands),
        None => app.show_notice(NoticeLevel::Info, "the run of this member is not listed"),
    }
}

/// Returns the actions of the footer with their labels.
pub fn footer(run: &RunRow<'_>) -> Vec<(Action, &'static str)> {
    use Action as A;
    let mut actions = vec![(A::Open, "live"), (A::Down, "down"), (A::Up, "up")];
    if !run.status.is_terminal() {
        actions.extend([(A::Pause, if run.paused { "go on" } else { "pause" }), (A::Cancel, "cancel")]);
    }
    actions.extend([(A::Abort, "leave"), (A::Help, "help")]);
    actions
}

/// Draws the view between the header and the message line.
pub fn draw(painter: &mut Painter<'_>, layout: &ScreenLayout, view: &LiveView, run: &RunRow<'_>) {
    let app = painter.app;
    let top = layout.header.bottom();
    let whole = Rect::new(0, top, layout.header.width, layout.notice.y.saturating_sub(top));
    painter.fill(whole, painter.style(Role::Normal));
    let width = layout.header.width.saturating_sub(2 * MARGIN);
    let members = app.list_panel_members(run);
    let table = build_member_table(app, &members, MemberColumns::Activity, usize::from(width));
    let head = build_head(app, run, usize::from(width));
    for (line, y) in head.iter().zip(whole.top()..whole.bottom()) {
        draw_line(painter, MARGIN, y, width, line, "");
    }
    let rule = whole.top() + ROWS_ABOVE - 1;
    if rule < whole.bottom() {
        painter.draw_rule(MARGIN, rule, width, Role::Rule);
    }
    let selected = view.member.min(members.len().saturating_sub(1));
    let place = TablePlace::new(layout, selected);
    if let Some(y) = place.heading {
        draw_line(painter, MARGIN, y, width, &table.heading, "");
    }
    let mut end = place.rows.y;
    for ((at, line), y) in table.rows.iter().enumerate().skip(place.first).zip(place.rows.top()..place.rows.bottom()) {
        if at == selected {
            let bar = selection_style(painter, true);
            painter.fill(Rect::new(0, y, whole.width, 1), bar);
            painter.set_overlay_style(Some(bar));
        }
        draw_line(painter, MARGIN, y, width, line, "");
        painter.set_overlay_style(None);
        end = y + 1;
    }
    let pulse = members.get(selected).and_then(|member| app.pulse(member.id));
    if let Some(pulse) = pulse.filter(|_| end + 1 < whole.bottom()) {
        let words = shorten_start(&pulse.tail, usize::from(width), app.display.glyphs.ellipsis);
        draw_line(painter, MARGIN, end + 1, width, &DocLine::styled(Role::Faint, &words), "");
    }
}

/// Builds `panel three   a0c3bec “Retry on 429”   3 of 4 done      ◌ reviewing   41k tokens, $0.02`, and below it what was
/// covered and found.
fn build_head(app: &App, run: &RunRow<'_>, width: usize) -> [DocLine; 2] {
    let clean = |text: &str| text::sanitize_line(&mask_shown_name(text)).into_owned();
    let sums = app.sum_panel(run);
    let (sign, word, role) = app.run_state(run);
    let (label, name) = (clean(&app.label_run(run)), clean(&app.name_run(run)));
    let state = RowPart::texts(5, role, &[&format!("{sign} {word}"), app.display.glyphs.sign_or_word(sign, word)]);
    let spent = RowPart::texts(3, Role::Muted, &[&sums.describe_spending(), ""]);
    let parts = [
        RowPart::texts(2, Role::Title, &[&clean(&Panel::describe_reviewer(run.reviewer)), ""]),
        RowPart::texts(1, Role::Normal, &[&name, &label, ""]),
        RowPart::texts(4, Role::Strong, &[&sums.describe_done(), ""]),
        RowPart { is_right: true, ..state },
        RowPart { is_right: true, ..spent },
    ];
    let (total, found_role) = describe_total(sums.counts);
    let count = text::format_count(usize::try_from(total).unwrap_or(usize::MAX), "finding");
    let found = match total {
        0 => {
            let (role, forms) = describe_no_findings(run.review_reach(), true);
            RowPart::texts(3, role, &forms)
        }
        _ => RowPart::texts(3, found_role, &[&count]),
    };
    let not_merged = if run.status.is_terminal() || total == 0 { "" } else { "not merged yet" };
    let hunks = match sums.hunks_total {
        0 => String::new(),
        whole => format!("{} of {} covered", sums.hunks_covered, text::format_count(whole as usize, "hunk")),
    };
    let figures =
        [RowPart::texts(2, Role::Muted, &[&hunks, ""]), found, RowPart::texts(1, Role::Faint, &[not_merged, ""])];
    [fit_row(&parts, width), fit_row(&figures, width)]
}
