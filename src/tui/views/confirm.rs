//! Question before an action.

use super::fix::{self, FixOrder};
use super::knowledge::KnowledgeOrder;
use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewFlow, ViewRequest, with_labels};
use crate::domain::FindingId;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc;
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::theme::Role;
use crate::tui::update::parse_run_id;

/// Open question.
#[derive(Debug, Clone)]
pub struct ConfirmView {
    /// Action that follows if the user accepts.
    pub action: ConfirmAction,
    pub text: String,
}

/// Action that a confirmation starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmAction {
    /// Cancels the run with this id.
    Cancel(String),
    /// Stops the question about this finding.
    StopQuestion(FindingId),
    Fix(FixOrder),
    Knowledge(KnowledgeOrder),
}

impl ConfirmAction {
    fn title(&self) -> &'static str {
        match self {
            Self::Cancel(_) => "Cancel",
            Self::StopQuestion(_) => "Stop",
            Self::Fix(FixOrder::Make(_)) => "Fix",
            Self::Fix(FixOrder::Apply(_) | FixOrder::ApplySuggestions(_)) => "Apply",
            Self::Fix(FixOrder::Undo(_)) => "Undo",
            Self::Fix(FixOrder::Drop(_)) => "Drop",
            Self::Knowledge(KnowledgeOrder::Forget { .. }) => "Forget",
            Self::Knowledge(_) => "Export",
        }
    }

    fn run(self, app: &mut App, commands: &mut Vec<AppCommand>) {
        match self {
            Self::Cancel(run) => {
                if let Some(run) = parse_run_id(&run) {
                    app.show_notice(NoticeLevel::Info, "asking the run to end");
                    commands.push(AppCommand::Cancel(run));
                }
            }
            Self::StopQuestion(finding) => {
                app.show_notice(NoticeLevel::Info, "stopping the question");
                commands.push(AppCommand::StopQuestion(finding));
            }
            Self::Fix(order) => fix::send_order(app, order, commands),
            Self::Knowledge(order) => commands.push(AppCommand::View(ViewRequest::Knowledge(order))),
        }
    }
}

/// Opens a question that no key asked for. If a window is open, shows the notice `otherwise` instead, so that a key
/// does not answer two questions.
pub fn confirm_if_idle(app: &mut App, action: ConfirmAction, text: String, otherwise: &str) {
    if app.views.has_window() {
        app.show_notice(NoticeLevel::Info, otherwise);
    } else {
        app.views.open(ConfirmView { action, text });
    }
}

impl View for ConfirmView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Confirm
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        match press.action {
            Some(Action::Accept) => {
                self.action.clone().run(app, commands);
                ViewFlow::Close
            }
            Some(Action::Abort) => ViewFlow::Close,
            _ => ViewFlow::Open,
        }
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let widest = painter.buffer.area.width.saturating_sub(2).max(40);
        let width = (self.text.width() as u16 + 6).clamp(40, widest);
        let columns = place_window(painter.app, width, 1, false).1.width;
        let lines = doc::wrap_words(&self.text, usize::from(columns));
        let inside = draw_window(painter, width, lines.len() as u16 + 4, false, self.action.title());
        // A small screen has no room for a blank row above the text.
        let blank = u16::from(usize::from(inside.height) > lines.len());
        for (y, line) in (inside.y + blank..inside.bottom()).zip(&lines) {
            painter.draw_text(inside.x, y, inside.width, line, Role::Normal);
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        with_labels([Action::Accept, Action::Abort])
    }
}
