//! Comment: a finding that the user writes about lines of a diff, in one line of text or more.

use std::collections::VecDeque;

use ratatui::layout::Rect;

use super::prompt::draw_line_edit;
use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewFlow, with_labels};
use crate::domain::{FindingId, LineRange, text};
use crate::runner::{OwnFinding, RemovedLine};
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc::wrap_words;
use crate::tui::draw::painter::Painter;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::message::AppCommand;
use crate::tui::text_edit::TextEdit;
use crate::tui::theme::Role;
use crate::tui::update::withdraw_comment;

/// Width of the window in columns.
const WIDTH: u16 = 84;
/// Most rows of text on the screen.
const MAX_TEXT_ROWS: u16 = 12;
/// Most rows of the reason why a text was not stored.
const MAX_ERROR_ROWS: usize = 4;

/// Lines that a comment is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentPlace {
    /// Run whose diff shows the lines.
    pub run: String,
    /// Path relative to the repository root.
    pub path: String,
    /// Lines of the new side.
    pub lines: LineRange,
    /// Line of the old side that the comment is about; `lines` is then the next one that is left.
    pub removed: Option<RemovedLine>,
}

/// Comments on their way to the store, and what became of them.
#[derive(Debug, Default)]
pub struct SentComments {
    /// Comments that the store has not answered yet, in the order of their requests.
    pub sent: VecDeque<CommentView>,
    /// Comment that was refused while another window was open; its text waits for the next key that writes one.
    pub refused: Option<CommentView>,
    /// Comment that was written after the last other step, with the one that it replaced: an undo takes both back.
    pub last_written: Option<(FindingId, Option<FindingId>)>,
    /// Comment that an undo has withdrawn, as long as that is the last step: a redo brings it back.
    pub withdrawn: Option<FindingId>,
    /// Texts whose editor was left without writing, at most one for each place. They last until the cockpit ends.
    drafts: Vec<CommentDraft>,
}

/// Text that was typed for a comment and not written.
#[derive(Debug)]
struct CommentDraft {
    place: CommentPlace,
    rewrites: Option<FindingId>,
    text: String,
}

impl CommentDraft {
    /// Returns true if the editor is about the same stored comment, or a new one about the same lines, in whatever run.
    fn is_for(&self, comment: &CommentView) -> bool {
        let (place, other) = (&self.place, &comment.place);
        let is_same_place = (&place.path, place.lines, &place.removed) == (&other.path, other.lines, &other.removed);
        self.rewrites == comment.rewrites && (self.rewrites.is_some() || is_same_place)
    }
}

impl SentComments {
    /// Keeps the text of an editor that is left, in place of an earlier one. Returns false if there is nothing to keep: the
    /// text is empty, or that of the stored comment.
    fn keep_draft(&mut self, comment: &CommentView) -> bool {
        self.forget_draft(comment);
        let text = comment.text.text();
        let is_worth_keeping = !text.trim().is_empty() && text != comment.stored;
        if is_worth_keeping {
            let (place, rewrites) = (comment.place.clone(), comment.rewrites.clone());
            self.drafts.push(CommentDraft { place, rewrites, text });
        }
        is_worth_keeping
    }

    /// Forgets the text that was left at the place of an editor.
    fn forget_draft(&mut self, comment: &CommentView) {
        self.drafts.retain(|draft| !draft.is_for(comment));
    }
}

/// Open editor of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentView {
    place: CommentPlace,
    /// Comment that the text replaces; `None` for a new one.
    rewrites: Option<FindingId>,
    /// Text of the comment that is replaced; empty for a new one.
    stored: String,
    text: TextEdit,
    /// The editor has started with a text that was left here before.
    is_draft: bool,
    error: String,
}

impl CommentView {
    /// Creates the editor of a new comment.
    pub fn new(place: CommentPlace) -> Self {
        let (stored, error) = (String::new(), String::new());
        Self { place, rewrites: None, stored, text: TextEdit::new(""), is_draft: false, error }
    }

    /// Creates the editor of a stored comment, which starts with its text.
    pub fn rewriting(finding: FindingId, place: CommentPlace, text: &str) -> Self {
        let text = TextEdit::new(text);
        Self { rewrites: Some(finding), stored: text.text(), text, ..Self::new(place) }
    }

    /// Replaces the text by the one that was left at this place without being written, if there is one.
    pub fn with_draft(self, comments: &SentComments) -> Self {
        let draft = comments.drafts.iter().find(|draft| draft.is_for(&self));
        match draft {
            Some(draft) => Self { text: TextEdit::new(&draft.text), is_draft: true, ..self },
            None => self,
        }
    }

    /// Returns the comment that the text replaces.
    pub fn rewrites(&self) -> Option<&FindingId> {
        self.rewrites.as_ref()
    }

    /// Sets the reason why the text was not stored.
    pub fn with_error(self, error: &str) -> Self {
        Self { error: text::sanitize_line(error).into_owned(), ..self }
    }

    /// Names the lines: `src/total.rs:14-16`.
    pub fn name_place(&self) -> String {
        text::sanitize_line(&format!("{}:{}", self.place.path, name_lines(self.place.lines))).into_owned()
    }

    fn title(&self) -> String {
        let name = self.place.path.rsplit('/').next().unwrap_or(&self.place.path);
        let place = match &self.place.removed {
            Some(removed) => format!("{name}, removed line {}", removed.number),
            None => format!("{name}:{}", name_lines(self.place.lines)),
        };
        let verb = if self.rewrites.is_some() { "Rewrite the comment on" } else { "Comment on" };
        format!("{verb} {}", text::sanitize_line(&place))
    }

    /// Stores the text. One that is no finding stays; an empty one withdraws a stored comment.
    fn accept(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let typed = self.text.text();
        let (first, details) = typed.trim().split_once('\n').unwrap_or((typed.trim(), ""));
        let Some((priority, said)) = OwnFinding::parse(first) else {
            if let Some(finding) = self.rewrites.clone().filter(|_| typed.trim().is_empty()) {
                app.comments.forget_draft(self);
                withdraw_comment(app, finding, commands);
                return ViewFlow::Close;
            }
            self.error = "a finding needs a text".to_owned();
            return ViewFlow::Open;
        };
        let Ok(run) = self.place.run.parse() else { return ViewFlow::Close };
        let finding = OwnFinding {
            run,
            path: self.place.path.clone(),
            lines: self.place.lines,
            text: said.to_owned(),
            details: details.trim_end().to_owned(),
            priority,
            removed: self.place.removed.clone(),
        };
        self.error.clear();
        app.comments.forget_draft(self);
        app.comments.sent.push_back(self.clone());
        commands.push(AppCommand::WriteFinding { finding, rewrites: self.rewrites.clone() });
        ViewFlow::Close
    }

    /// Edits the text. Returns false if the key does not edit.
    fn edit(&mut self, press: KeyPress) -> bool {
        let text = &mut self.text;
        match press.action {
            Some(Action::NewLine) => text.break_line(),
            Some(Action::CursorLeft) => text.move_left(),
            Some(Action::CursorRight) => text.move_right(),
            Some(Action::Up) => text.move_row(false),
            Some(Action::Down) => text.move_row(true),
            Some(Action::CursorStart) => text.line_mut().move_to_start(),
            Some(Action::CursorEnd) => text.line_mut().move_to_end(),
            Some(Action::DeleteLeft) => text.delete_left(),
            Some(Action::DeleteRight) => text.delete_right(),
            Some(Action::DeleteWord) => text.line_mut().delete_word(),
            Some(Action::DeleteLine) => text.line_mut().delete_all(),
            _ => match press.key.character() {
                Some(character) => text.insert(character.encode_utf8(&mut [0; 4])),
                None => return false,
            },
        }
        true
    }
}

fn name_lines(lines: LineRange) -> String {
    if lines.start == lines.end { lines.start.to_string() } else { format!("{}-{}", lines.start, lines.end) }
}

impl View for CommentView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Prompt
    }

    fn is_text_field(&self) -> bool {
        true
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        match press.action {
            Some(Action::Accept) => return self.accept(app, commands),
            Some(Action::Abort) => {
                let is_kept = app.comments.keep_draft(self);
                let action = if self.rewrites.is_some() { Action::Rewrite } else { Action::Comment };
                let key = app.keymap.key_of(KeyContext::Detail, action).filter(|_| is_kept);
                let again = key.map_or_else(String::new, |key| format!("; {key} at the same place has the text"));
                app.show_notice(NoticeLevel::Info, format!("nothing written{again}"));
                return ViewFlow::Close;
            }
            _ => {
                if self.edit(press) {
                    self.error.clear();
                }
            }
        }
        ViewFlow::Open
    }

    fn handle_paste(&mut self, _app: &mut App, text: &str, _commands: &mut Vec<AppCommand>) {
        self.text.insert(text.trim_end_matches(['\r', '\n']));
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let lines = self.text.lines();
        let rows = u16::try_from(lines.len()).unwrap_or(MAX_TEXT_ROWS).clamp(2, MAX_TEXT_ROWS);
        let (hints, role) = match (&self.rewrites, self.error.is_empty()) {
            // What went wrong is said in full.
            (_, false) => {
                let (_, inside) = place_window(painter.app, WIDTH, rows + 3, true);
                let mut parts = wrap_words(&self.error, usize::from(inside.width));
                parts.truncate(MAX_ERROR_ROWS);
                (parts, Role::Bad)
            }
            (rewrites, true) => {
                let draft = if self.is_draft { "draft; " } else { "" };
                let withdrawn = if rewrites.is_some() { "; without a text the comment is withdrawn" } else { "" };
                (vec![format!("{draft}p0 to p3 in front, else p2{withdrawn}")], Role::Muted)
            }
        };
        let hint_rows = hints.len() as u16;
        let inside = draw_window(painter, WIDTH, rows + 2 + hint_rows, true, &self.title());
        let rows = inside.height.saturating_sub(hint_rows).max(1);
        let first = (self.text.row() + 1).saturating_sub(usize::from(rows));
        for (at, y) in (first..lines.len()).zip(inside.y..inside.y + rows) {
            let field = Rect { y, height: 1, ..inside };
            if at == self.text.row() {
                draw_line_edit(painter, field, &lines[at]);
            } else {
                painter.fill(field, painter.style(Role::Prompt));
                painter.draw_text(field.x, y, field.width, lines[at].text(), Role::Prompt);
            }
        }
        for (hint, y) in hints.iter().zip(inside.y + rows..inside.bottom()) {
            painter.draw_text(inside.x, y, inside.width, hint, role);
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        with_labels([Action::Accept, Action::NewLine, Action::DeleteWord, Action::DeleteLine, Action::Abort])
    }
}
