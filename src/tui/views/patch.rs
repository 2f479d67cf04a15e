//! The patch of an exact suggestion: its lines, and the window that shows it before it is applied.

use super::fix::{self, FixOrder};
use super::window::draw_window;
use super::{KeyPress, View, ViewFlow, with_labels};
use crate::domain::{FindingId, text};
use crate::tui::app::App;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{Doc, DocLine};
use crate::tui::draw::draw_line;
use crate::tui::draw::painter::Painter;
use crate::tui::input::KeyCode;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::{AppCommand, DetailSubject};
use crate::tui::page_data::{FindingPage, PageData};
use crate::tui::pages::count_digits;
use crate::tui::theme::Role;

/// Unchanged lines shown before and after the replaced lines.
const CONTEXT_LINES: u32 = 3;
/// Most replaced lines that are shown; more do not fit on a screen.
const MAX_REPLACED_LINES: u32 = 200;
/// Greatest width of the window in columns.
const MAX_WIDTH: usize = 110;

/// Builds the lines of a finding's exact suggestion as a small diff; `None` if the suggestion is not exact.
pub fn build_suggestion(app: &App, page: &FindingPage) -> Option<Doc> {
    let suggestion = page.finding.suggestion.as_ref()?;
    let replacement = suggestion.replacement.as_deref()?;
    let lines = suggestion.lines.unwrap_or(page.finding.lines());
    let code = &page.code;
    let line_at = |number: u32| number.checked_sub(code.first).and_then(|index| code.lines.get(index as usize));
    let digits = count_digits(lines.end.saturating_add(CONTEXT_LINES));
    let build = |number: Option<u32>, sign: &str, role: Role, text: &str| {
        let number = number.map_or_else(|| " ".repeat(digits), |number| format!("{number:>digits$}"));
        let mut line =
            DocLine::styled(Role::LineNumber, &number).with_span(role, &format!(" {sign} ")).with_span(role, text);
        line.fill = (role != Role::Normal).then_some(role);
        line
    };
    let mut doc = Doc::default();
    let add_context = |doc: &mut Doc, numbers: std::ops::Range<u32>| {
        for (number, text) in numbers.filter_map(|number| Some((number, line_at(number)?))) {
            doc.push(build(Some(number), " ", Role::Normal, text));
        }
    };
    let last = lines.end.min(lines.start.saturating_add(MAX_REPLACED_LINES));
    add_context(&mut doc, lines.start.saturating_sub(CONTEXT_LINES).max(1)..lines.start);
    let mut unread = 0;
    for number in lines.start..=last {
        match line_at(number) {
            Some(text) => doc.push(build(Some(number), "-", Role::Removed, text)),
            None => unread += 1,
        }
    }
    let unread = unread + (lines.end - last) as usize;
    if unread > 0 {
        let what = format!("{} {} more", app.display.glyphs.ellipsis, text::format_count(unread, "line"));
        doc.push(build(None, "-", Role::Removed, &what));
    }
    // Without replacement, the lines are deleted.
    if !replacement.is_empty() {
        for text in text::sanitize_lines(replacement.trim_end_matches('\n'), 4).split('\n') {
            doc.push(build(None, "+", Role::Added, text));
        }
    }
    add_context(&mut doc, lines.end.saturating_add(1)..lines.end.saturating_add(CONTEXT_LINES + 1));
    Some(doc)
}

/// Returns true if the page of the finding is loaded and has an exact suggestion.
pub fn has_loaded_suggestion(app: &App, finding: &FindingId) -> bool {
    loaded_page(app, finding)
        .is_some_and(|page| page.finding.suggestion.as_ref().is_some_and(|suggestion| suggestion.replacement.is_some()))
}

/// Returns the page of a finding if the detail pane has it.
fn loaded_page<'a>(app: &'a App, finding: &FindingId) -> Option<&'a FindingPage> {
    match app.detail.page.as_ref()? {
        (DetailSubject::Finding(id), _, data) if id == finding.as_str() => match data.as_ref() {
            PageData::Finding(page) => Some(page),
            _ => None,
        },
        _ => None,
    }
}

/// Opens the window with the patch of a finding's exact suggestion. Does nothing without [`has_loaded_suggestion`].
pub fn open(app: &mut App, finding: &FindingId) {
    let Some(page) = loaded_page(app, finding) else { return };
    let Some(doc) = build_suggestion(app, page) else { return };
    let place = format!("{}:{}", page.finding.repo_relative_path, page.finding.line_start);
    let title = format!("Apply to {}?", text::sanitize_line(&place));
    app.notice = None;
    app.views.open(PatchView { finding: finding.clone(), title, doc, offset: 0 });
}

/// Window with a patch, which the user applies or not.
#[derive(Debug, Clone)]
pub struct PatchView {
    finding: FindingId,
    title: String,
    doc: Doc,
    /// First visible line (0-based); drawing limits it to the last page.
    offset: usize,
}

impl View for PatchView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Confirm
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        match (press.action, press.key.code) {
            (Some(Action::Accept), _) => {
                fix::send_order(app, FixOrder::ApplySuggestions(vec![self.finding.clone()]), commands);
                ViewFlow::Close
            }
            (Some(Action::Abort), _) => ViewFlow::Close,
            (_, KeyCode::Down | KeyCode::Char('j')) => self.scroll(1),
            (_, KeyCode::Up | KeyCode::Char('k')) => self.scroll(-1),
            (_, KeyCode::PageDown) => self.scroll(10),
            (_, KeyCode::PageUp) => self.scroll(-10),
            _ => ViewFlow::Open,
        }
    }

    fn names_enter(&self) -> bool {
        true
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let width = self.doc.lines.iter().map(|line| line.plain_text().width()).max().unwrap_or(0);
        let width = width.max(self.title.width() + 2).min(MAX_WIDTH) as u16 + 4;
        let height = u16::try_from(self.doc.lines.len()).unwrap_or(u16::MAX).saturating_add(2);
        // The message line and the footer stay in sight.
        let height = height.min(painter.buffer.area.height.saturating_sub(4));
        let inside = draw_window(painter, width, height, false, &self.title);
        let offset = self.offset.min(self.doc.lines.len().saturating_sub(usize::from(inside.height)));
        for (y, line) in (inside.y..inside.bottom()).zip(self.doc.lines.iter().skip(offset)) {
            draw_line(painter, inside.x, y, inside.width, line, "");
        }
        painter.draw_scroll_thumb(inside, offset, self.doc.lines.len());
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        let mut footer = with_labels([Action::Accept, Action::Abort]);
        footer[0].1 = "apply";
        footer
    }
}

impl PatchView {
    fn scroll(&mut self, by: isize) -> ViewFlow {
        self.offset = self.offset.saturating_add_signed(by).min(self.doc.lines.len().saturating_sub(1));
        ViewFlow::Open
    }
}
