//! Computes the rectangles of the panes: all lists and the detail from 120 columns, one list and the detail from
//! 80 columns, one pane below that.
//!
//! - Pure: the same size, focus and zoom give the same rectangles, both for `update` (which needs heights) and
//!   for views.

use ratatui::layout::Rect;

use super::app::Pane;

/// Fewest columns for three stacked lists beside the detail.
pub const MIN_WIDE_COLUMNS: u16 = 120;
/// Fewest columns for one list beside the detail.
pub const MIN_SPLIT_COLUMNS: u16 = 80;
/// Fewest rows for three stacked lists.
const MIN_THREE_LISTS_ROWS: u16 = 14;
/// Smallest usable screen: columns, rows.
pub const MIN_SCREEN_SIZE: (u16, u16) = (40, 10);

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
    pub header: Rect,
    /// Column between the lists and the detail.
    pub divider: Option<Rect>,
    pub notice: Rect,
    pub footer: Rect,
    runs: Option<PaneArea>,
    findings: Option<PaneArea>,
    files: Option<PaneArea>,
    detail: Option<PaneArea>,
}

impl ScreenLayout {
    pub fn pane(&self, pane: Pane) -> Option<PaneArea> {
        match pane {
            Pane::Runs => self.runs,
            Pane::Findings => self.findings,
            Pane::Files => self.files,
            Pane::Detail => self.detail,
        }
    }

    pub fn body(&self, pane: Pane) -> Option<Rect> {
        self.pane(pane).map(|area| area.body)
    }

    /// Returns the columns of text in the message line, which starts with a glyph.
    pub fn notice_width(&self) -> usize {
        usize::from(self.notice.width.saturating_sub(4))
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

/// Splits a screen into two columns with the rule at `divider`.
pub fn split_columns(columns: u16, divider: u16) -> SplitColumns {
    let right = divider + 1 + 2 * MARGIN;
    SplitColumns {
        left: (MARGIN, divider.saturating_sub(2 * MARGIN)),
        divider,
        right: (right, columns.saturating_sub(right + MARGIN)),
    }
}

/// Computes the layout of a screen.
pub fn compute_layout(columns: u16, rows: u16, focus: Pane, list: Pane, zoomed: bool) -> ScreenLayout {
    let roomy = rows >= 30;
    let header = Rect::new(0, 0, columns, 1);
    let top = if roomy { 2 } else { 1 };
    let footer = Rect::new(0, rows.saturating_sub(1), columns, 1);
    let notice = Rect::new(0, rows.saturating_sub(2), columns, 1);
    let height = rows.saturating_sub(top + 2);
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
    let full = area(MARGIN, top, columns.saturating_sub(2 * MARGIN), height);
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
    let divider =
        if columns >= MIN_WIDE_COLUMNS { (columns * 48 / 100).min(100) } else { (columns * 44 / 100).max(34) };
    let SplitColumns { left: (x, width), divider, right } = split_columns(columns, divider);
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
        let rest = height.saturating_sub(2 * air);
        let runs = (rest / 4).max(4);
        let files = (rest / 4).max(4);
        let findings = rest.saturating_sub(runs + files);
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

    #[test]
    fn panes_never_overlap_and_never_leave_the_screen() {
        for columns in 0..=260 {
            for rows in [0, 3, 10, 24, 29, 30, 48, 60] {
                for focus in [Pane::Runs, Pane::Findings, Pane::Files, Pane::Detail] {
                    for zoomed in [false, true] {
                        let list = if focus == Pane::Detail { Pane::Findings } else { focus };
                        let layout = compute_layout(columns, rows, focus, list, zoomed);
                        if layout.too_small {
                            continue;
                        }
                        let screen = Rect::new(0, 0, columns, rows);
                        let mut areas = vec![layout.header, layout.notice, layout.footer];
                        areas.extend(layout.divider);
                        for pane in [Pane::Runs, Pane::Findings, Pane::Files, Pane::Detail] {
                            areas.extend(layout.pane(pane).map(|area| area.title));
                            areas.extend(layout.body(pane));
                        }
                        for (i, a) in areas.iter().enumerate() {
                            assert_eq!(screen.intersection(*a), *a, "{columns}x{rows} {a:?}");
                            for b in &areas[i + 1..] {
                                assert!(a.intersection(*b).is_empty(), "{columns}x{rows}: {a:?} and {b:?}");
                            }
                        }
                        assert!(layout.pane(focus).is_some(), "{columns}x{rows}: the focus is in sight");
                    }
                }
            }
        }
    }
}
