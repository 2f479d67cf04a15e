//! Executes the keys of the knowledge view.

use super::{ConfirmAction, ENTRY, KnowledgeOrder, KnowledgePane, KnowledgeView, request};
use crate::domain::MuteAction;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::keymap::Action;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::AppCommand;
use crate::tui::views::confirm::ConfirmView;
use crate::tui::views::prompt::{InputPromptKind, PromptView};
use crate::tui::views::{ViewFlow, open_for_action};

/// Default path of an export, outside the reviewed files.
const DEFAULT_EXPORT_PATH: &str = "~/revdeck-knowledge.json";

impl KnowledgeView {
    /// Executes an action.
    pub(super) fn run_action(&mut self, app: &mut App, action: Action, commands: &mut Vec<AppCommand>) -> ViewFlow {
        use Action as A;
        match action {
            A::Abort => return ViewFlow::Close,
            action if ENTRY.is_opened_by(action) => return ViewFlow::Close,
            A::Back => return self.go_back(app),
            A::NextPane | A::PreviousPane => self.switch_pane(app, None),
            A::Right | A::Open => self.switch_pane(app, Some(KnowledgePane::Page)),
            A::Left => self.switch_pane(app, Some(KnowledgePane::List)),
            A::NextTab => self.select_language(app, true),
            A::PreviousTab => self.select_language(app, false),
            A::Unfold => self.toggle_fold(app),
            A::Search | A::Filter => {
                let before = self.filter.clone();
                let text = if before.is_empty() { String::new() } else { format!("{before} ") };
                app.views.open(PromptView::new(InputPromptKind::Patterns { before }, LineEdit::new(&text)));
            }
            A::Mute => self.toggle_mute(app, commands),
            A::Forget => self.confirm_forget(app),
            A::Export => {
                let line = LineEdit::with_suggestion(DEFAULT_EXPORT_PATH);
                app.views.open(PromptView::new(InputPromptKind::Export, line));
            }
            A::Reload => {
                app.show_notice(NoticeLevel::Info, format!("reading it again{}", app.display.glyphs.ellipsis));
                commands.push(request(KnowledgeOrder::Read));
            }
            A::Help => open_for_action(app, action, commands),
            A::Quit => commands.push(AppCommand::Quit(None)),
            action => self.move_or_scroll(app, action),
        }
        ViewFlow::Open
    }

    /// Moves the selection, or scrolls the page if it has the focus.
    fn move_or_scroll(&mut self, app: &App, action: Action) {
        use Action as A;
        let height = match self.focus {
            KnowledgePane::List => self.list_height(app),
            KnowledgePane::Page => self.page_height(app),
        };
        let by = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
        let (half, page) = (by((height / 2).max(1)), by(height.saturating_sub(1).max(1)));
        let by = match action {
            A::Down => 1,
            A::Up => -1,
            A::HalfPageDown => half,
            A::HalfPageUp => -half,
            A::PageDown => page,
            A::PageUp => -page,
            A::Top => isize::MIN,
            A::Bottom => isize::MAX,
            _ => return,
        };
        match self.focus {
            KnowledgePane::List => self.select_row(app, self.cursor.selected.saturating_add_signed(by)),
            KnowledgePane::Page => self.scroll_by(app, by),
        }
    }

    /// Focuses a half of the view; `None` means the other half.
    fn switch_pane(&mut self, app: &App, to: Option<KnowledgePane>) {
        self.focus = match (to, self.focus) {
            (Some(side), _) => side,
            (None, KnowledgePane::List) => KnowledgePane::Page,
            (None, KnowledgePane::Page) => KnowledgePane::List,
        };
        self.scroll_by(app, 0);
    }

    /// Goes back: from the page to the list, then clears the filter, then closes the view.
    fn go_back(&mut self, app: &App) -> ViewFlow {
        if self.focus == KnowledgePane::Page && !self.is_empty() {
            self.focus = KnowledgePane::List;
        } else if !self.filter.is_empty() {
            self.set_filter(app, "");
        } else {
            return ViewFlow::Close;
        }
        ViewFlow::Open
    }

    fn toggle_mute(&self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let Some((language, known)) = self.selected_pattern() else {
            return app.show_notice(NoticeLevel::Info, "no pattern is selected");
        };
        let action = if known.pattern.muted { MuteAction::Unmute } else { MuteAction::Mute };
        commands.push(request(KnowledgeOrder::Mute { language, pattern: known.pattern.id.clone(), action }));
    }

    fn confirm_forget(&self, app: &mut App) {
        let Some((language, known)) = self.selected_pattern() else {
            return app.show_notice(NoticeLevel::Info, "no pattern is selected");
        };
        app.views.open(ConfirmView {
            action: ConfirmAction::Knowledge(KnowledgeOrder::Forget { language, pattern: known.pattern.id.clone() }),
            text: "Forget this pattern for good? It is neither learned nor imported again.".to_owned(),
        });
    }
}
