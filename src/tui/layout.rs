//! Computes the rectangles of the panes: all lists and the detail from 120 columns, one list and the detail from
//! 100 columns, one pane below that; and the part of the screen at a cell, for the mouse.
//!
//! - Pure: the same size, focus, zoom and divider give the same rectangles, both for `update` (which needs heights) and
//!   for views.
//! - A pane has two free columns at its right: a blank and the scroll thumb, which text never touches.

use ratatui::layout::{Position, Rect};

use super::app::Pane;

/// Fewest columns for three stacked lists beside the detail.
pub const MIN_WIDE_COLUMNS: u16 = 120;
/// Fewest columns for one list beside the detail. In less, a row of the list would lose the place or the symbol.
pub const MIN_SPLIT_COLUMNS: u16 = 100;
/// Fewest rows for three stacked lists.
const MIN_THREE_LISTS_ROWS: u16 = 14;
/// Smallest usable screen: columns, rows.
pub const MIN_SCREEN_SIZE: (u16, u16) = (20, 5);
/// Fewest rows for a header, and for a message line that is there without a message.
const MIN_FRAMED_ROWS: u16 = 10;
/// Fewest columns that the divider leaves on both of its sides when it is dragged.
const MIN_DRAGGED_COLUMNS: u16 = 30;
/// Fewest rows, with its title, that a list keeps when an edge between lists is dragged.
const MIN_DRAGGED_ROWS: u16 = 4;

/// Rectangles of a pane: title row and the body below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneArea {
    pub title: Rect,
    pub body: Rect,
}

/// Rectangles of the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenLayout {
    pub too_small: bool,
    /// Without a row on a low screen.
    pub header: Rect,
    /// Column between the lists and the detail.
    pub divider: Option<Rect>,
    /// Without a row on a low screen that has nothing to say.
    pub notice: Rect,
    pub footer: Rect,
    runs: Option<PaneArea>,
    findings: Option<PaneArea>,
    files: Option<PaneArea>,
    detail: Option<PaneArea>,
}

/// Part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenPart {
    /// Title row of a pane; of the detail, the tabs.
    Title(Pane),
    /// Row of the body of a pane, 0-based from its top.
    Body(Pane, u16),
    /// Rule between the lists and the detail, with the blanks beside it.
    Divider,
    Notice,
    Footer,
    /// Header, margins, blank lines.
    Elsewhere,
}

impl ScreenLayout {
    /// Returns the part of the screen at a cell.
    pub fn part_at(&self, column: u16, row: u16) -> ScreenPart {
        let at = Position::new(column, row);
        let is_near =
            |divider: Rect| (divider.top()..divider.bottom()).contains(&row) && column.abs_diff(divider.x) <= MARGIN;
        if self.divider.is_some_and(is_near) {
            return ScreenPart::Divider;
        }
        for (pane, area) in Pane::ALL.into_iter().filter_map(|pane| Some((pane, self.pane(pane)?))) {
            // The thumb and the margin belong to the row beside them.
            let wide = |area: Rect| Rect { x: area.x.saturating_sub(MARGIN), width: area.width + 3 * MARGIN, ..area };
            if wide(area.title).contains(at) {
                return ScreenPart::Title(pane);
            }
            if wide(area.body).contains(at) {
                return ScreenPart::Body(pane, row - area.body.y);
            }
        }
        match at {
            at if self.notice.contains(at) => ScreenPart::Notice,
            at if self.footer.contains(at) => ScreenPart::Footer,
            _ => ScreenPart::Elsewhere,
        }
    }

    pub fn pane(&self, pane: Pane) -> Option<PaneArea> {
        match pane {
            Pane::Runs => self.runs,
            Pane::Findings => self.findings,
            Pane::Files => self.files,
            Pane::Detail => self.detail,
        }
    }

    /// Returns the rows of the three stacked lists, with titles and without blank lines; `None` where they do not stand
    /// one below the other.
    pub fn stacked_rows(&self) -> Option<u16> {
        let height = |area: PaneArea| area.title.height + area.body.height;
        Some(height(self.runs?) + height(self.findings?) + height(self.files?))
    }

    pub fn body(&self, pane: Pane) -> Option<Rect> {
        self.pane(pane).map(|area| area.body)
    }

    /// Returns the columns of text in the message line, which starts with a glyph.
    pub fn notice_width(&self) -> usize {
        usize::from(self.notice.width.saturating_sub(4))
    }

    /// Returns true if no row is reserved for messages.
    pub fn lacks_notice(&self) -> bool {
        self.notice.height == 0
    }

    /// Enlarges the message line to `lines` rows, at most a third of the screen, taken from the bottom of the panes.
    pub fn with_notice(mut self, lines: usize) -> Self {
        let most = (self.footer.y / 3).max(1);
        let height = u16::try_from(lines).unwrap_or(most).clamp(1, most);
        self.notice = Rect { y: self.footer.y.saturating_sub(height), height, ..self.notice };
        let end = self.notice.y;
        for pane in [&mut self.runs, &mut self.findings, &mut self.files, &mut self.detail] {
            *pane = pane.filter(|area| area.title.y < end);
            if let Some(area) = pane {
                area.body.height = area.body.height.min(end.saturating_sub(area.body.y));
            }
        }
        if let Some(divider) = &mut self.divider {
            divider.height = divider.height.min(end.saturating_sub(divider.y));
        }
        self
    }
}

/// Two columns with a rule between them: start and width of each column, and the column of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitColumns {
    pub left: (u16, u16),
    pub divider: u16,
    pub right: (u16, u16),
}

/// Columns of space at the screen's edges and on both sides of the rule.
const MARGIN: u16 = 1;

/// Splits a screen into two columns with the rule at `divider`. At the right of each column stay a blank and the place of
/// its scroll thumb, which for the left column is the rule.
pub fn split_columns(columns: u16, divider: u16) -> SplitColumns {
    let right = divider + 1 + 2 * MARGIN;
    SplitColumns {
        left: (MARGIN, divider.saturating_sub(2 * MARGIN)),
        divider,
        right: (right, columns.saturating_sub(right + 2 * MARGIN)),
    }
}

/// Facts from which a layout follows.
#[derive(Debug, Clone, Copy)]
pub struct LayoutRequest {
    /// Width of the screen in cells.
    pub columns: u16,
    /// Height of the screen in cells.
    pub rows: u16,
    /// Pane with the focus, which is always visible.
    pub focus: Pane,
    /// List beside the detail where only one list has room.
    pub list: Pane,
    /// True if the pane with the focus fills the screen.
    pub zoomed: bool,
    /// Places of the edges that the user has dragged.
    pub dragged: DraggedEdges,
}

/// Places of the edges between panes that the user has dragged; `None` for those where they are by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DraggedEdges {
    /// The divider, in thousandths of the width of the screen.
    pub divider: Option<u16>,
    /// Height of the runs, in thousandths of the rows of the three lists.
    pub runs: Option<u16>,
    /// Height of the files, in the same measure.
    pub files: Option<u16>,
}

/// Returns the share of `part` in `whole` in thousandths, rounded so that [`take_share`] gives `part` again.
pub fn share_of(part: u16, whole: u16) -> Option<u16> {
    u16::try_from((u32::from(part) * 1_000).div_ceil(u32::from(whole.max(1)))).ok()
}

/// Returns this many thousandths of `whole`.
fn take_share(share: u16, whole: u16) -> u16 {
    u16::try_from(u32::from(whole) * u32::from(share) / 1_000).unwrap_or(whole)
}

/// Heights of the three stacked lists, with their titles, in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListHeights {
    runs: u16,
    findings: u16,
    files: u16,
}

impl ListHeights {
    /// Divides `rows`, at least [`MIN_THREE_LISTS_ROWS`] without two blank lines, among the lists. Each keeps some rows.
    fn divide(rows: u16, dragged: DraggedEdges) -> Self {
        let height = |share: Option<u16>| match share {
            Some(share) => take_share(share, rows).clamp(MIN_DRAGGED_ROWS, rows.saturating_sub(2 * MIN_DRAGGED_ROWS)),
            None => (rows / 4).max(4),
        };
        let runs = height(dragged.runs);
        let files = height(dragged.files).min(rows.saturating_sub(runs + MIN_DRAGGED_ROWS));
        Self { runs, findings: rows.saturating_sub(runs + files), files }
    }
}

impl LayoutRequest {
    /// Returns the column of the divider.
    fn divider(&self) -> u16 {
        let columns = self.columns;
        match self.dragged.divider {
            Some(share) => {
                take_share(share, columns).clamp(MIN_DRAGGED_COLUMNS, columns.saturating_sub(MIN_DRAGGED_COLUMNS))
            }
            None if columns >= MIN_WIDE_COLUMNS => (columns * 48 / 100).min((columns / 3).max(100)),
            None => (columns * 44 / 100).max(34),
        }
    }
}

/// Computes the layout of a screen.
pub fn compute_layout(request: LayoutRequest) -> ScreenLayout {
    let LayoutRequest { columns, rows, focus, list, zoomed, .. } = request;
    let roomy = rows >= 30;
    let framed = u16::from(rows >= MIN_FRAMED_ROWS);
    let header = Rect::new(0, 0, columns, framed);
    let top = if roomy { 2 } else { framed };
    let footer = Rect::new(0, rows.saturating_sub(1), columns, 1);
    let notice = Rect::new(0, rows.saturating_sub(1 + framed), columns, framed);
    let height = rows.saturating_sub(top + 1 + framed);
    let mut layout = ScreenLayout {
        too_small: columns < MIN_SCREEN_SIZE.0 || rows < MIN_SCREEN_SIZE.1,
        header,
        divider: None,
        notice,
        footer,
        runs: None,
        findings: None,
        files: None,
        detail: None,
    };
    let area = |x: u16, y: u16, width: u16, height: u16| PaneArea {
        title: Rect::new(x, y, width, 1.min(height)),
        body: Rect::new(x, y + 1, width, height.saturating_sub(1)),
    };
    let full = area(MARGIN, top, columns.saturating_sub(3 * MARGIN), height);
    let mut put = |pane: Pane, area: PaneArea| match pane {
        Pane::Runs => layout.runs = Some(area),
        Pane::Findings => layout.findings = Some(area),
        Pane::Files => layout.files = Some(area),
        Pane::Detail => layout.detail = Some(area),
    };
    if zoomed || columns < MIN_SPLIT_COLUMNS {
        put(focus, full);
        return layout;
    }
    let SplitColumns { left: (x, width), divider, right } = split_columns(columns, request.divider());
    let mut detail = area(right.0, top, right.1, height);
    if roomy {
        // A blank line below the tabs.
        detail.body.y += 1;
        detail.body.height = detail.body.height.saturating_sub(1);
    }
    put(Pane::Detail, detail);
    if columns >= MIN_WIDE_COLUMNS && height >= MIN_THREE_LISTS_ROWS {
        // A blank line between the panes if there is room.
        let air = u16::from(roomy);
        let ListHeights { runs, findings, files } =
            ListHeights::divide(height.saturating_sub(2 * air), request.dragged);
        put(Pane::Runs, area(x, top, width, runs));
        put(Pane::Findings, area(x, top + runs + air, width, findings));
        put(Pane::Files, area(x, top + runs + findings + 2 * air, width, files));
    } else if roomy && list != Pane::Runs {
        // The title of the runs alone, which says what runs.
        put(Pane::Runs, area(x, top, width, 1));
        put(list, area(x, top + 1, width, height.saturating_sub(1)));
    } else {
        put(list, area(x, top, width, height));
    }
    layout.divider = Some(Rect::new(divider, top, 1, height));
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with the layout of every size, focus, zoom and divider.
    fn for_each_layout(mut check: impl FnMut(LayoutRequest, &ScreenLayout)) {
        for columns in (0..=260).chain([500]) {
            for rows in [0, 3, 5, 7, 9, 10, 24, 29, 30, 48, 60, 150] {
                for focus in Pane::ALL {
                    let edges = |share| DraggedEdges { divider: share, runs: share, files: share };
                    for (zoomed, share) in [(false, None), (true, None), (false, Some(0)), (false, Some(999))] {
                        let list = if focus == Pane::Detail { Pane::Findings } else { focus };
                        let request = LayoutRequest { columns, rows, focus, list, zoomed, dragged: edges(share) };
                        let layout = compute_layout(request);
                        if !layout.too_small {
                            check(request, &layout);
                            check(request, &layout.with_notice(3));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn panes_never_overlap_and_never_leave_the_screen() {
        for_each_layout(|request, layout| {
            let LayoutRequest { columns, rows, focus, .. } = request;
            let screen = Rect::new(0, 0, columns, rows);
            let mut areas = vec![layout.header, layout.notice, layout.footer];
            areas.extend(layout.divider);
            for pane in Pane::ALL {
                areas.extend(layout.pane(pane).map(|area| area.title));
                areas.extend(layout.body(pane));
            }
            areas.retain(|area| !area.is_empty());
            for (i, a) in areas.iter().enumerate() {
                assert_eq!(screen.intersection(*a), *a, "{columns}x{rows} {a:?}");
                for b in &areas[i + 1..] {
                    assert!(a.intersection(*b).is_empty(), "{columns}x{rows}: {a:?} and {b:?}");
                }
            }
            let body = layout.body(focus).expect("the focus is in sight");
            assert!(body.height > 0 && body.width > 8, "{columns}x{rows}: {body:?} shows nothing");
        });
    }

    #[test]
    fn a_thumb_has_a_blank_between_it_and_the_text() {
        for_each_layout(|request, layout| {
            for area in Pane::ALL.into_iter().filter_map(|pane| layout.pane(pane)) {
                let thumb = area.body.right() + 1;
                assert!(thumb < request.columns, "{request:?}: no column for the thumb");
                if let Some(divider) = layout.divider.filter(|divider| area.body.x < divider.x) {
                    assert_eq!(divider.x, thumb, "{request:?}: the thumb of a list is on the rule");
                }
            }
        });
    }

    #[test]
    fn each_cell_belongs_to_the_part_that_is_drawn_there() {
        let request = LayoutRequest {
            columns: 160,
            rows: 48,
            focus: Pane::Findings,
            list: Pane::Findings,
            zoomed: false,
            dragged: DraggedEdges::default(),
        };
        let layout = compute_layout(request);
        let divider = layout.divider.expect("a divider").x;
        let findings = layout.pane(Pane::Findings).expect("the findings");
        let detail = layout.pane(Pane::Detail).expect("the detail");
        for (column, row, part) in [
            (5, 0, ScreenPart::Elsewhere),
            (5, findings.title.y, ScreenPart::Title(Pane::Findings)),
            (0, findings.body.y, ScreenPart::Body(Pane::Findings, 0)),
            (5, findings.body.y + 3, ScreenPart::Body(Pane::Findings, 3)),
            (divider - 1, findings.body.y, ScreenPart::Divider),
            (divider, findings.body.y, ScreenPart::Divider),
            (divider + 1, findings.body.y, ScreenPart::Divider),
            (divider + 2, detail.title.y, ScreenPart::Title(Pane::Detail)),
            (159, detail.body.y + 1, ScreenPart::Body(Pane::Detail, 1)),
            (5, 46, ScreenPart::Notice),
            (5, 47, ScreenPart::Footer),
            (5, 48, ScreenPart::Elsewhere),
            (999, 20, ScreenPart::Elsewhere),
        ] {
            assert_eq!(layout.part_at(column, row), part, "{column},{row}");
        }
    }
}
