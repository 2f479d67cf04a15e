//! Text prompts: filter, search, reason, revision, time, path.

mod input_line;
mod reasons;

use ratatui::layout::Position;

use super::knowledge::{ExportOverwrite, KnowledgeOrder, KnowledgeView};
use super::review_form::{self, ReviewDraft};
use super::revision_list::{OfferedRevision, draw_revisions, find_revisions, is_search_text, range_since, revision_at};
use super::{KeyPress, View, ViewFlow, ViewRequest, change_view, open_for_action, with_labels};
use crate::domain::{Disposition, FindingId, FindingNote, RatingWish, Scope, Time, text};
use crate::runner::{PreparedQuestion, SnoozeWish, parse_snooze};
use crate::tui::app::{App, NoticeLevel, Pane};
use crate::tui::custom_commands::CommandForm;
use crate::tui::doc::{self, TextColumns};
use crate::tui::draw::painter::Painter;
use crate::tui::filter;
use crate::tui::input::KeyEvent;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::AppCommand;
use crate::tui::saved_filters::SavedFilters;
use crate::tui::update::{
    accept_filter, apply_filter, ask_or_run, data, describe_cost, describe_no_match, describe_position, dismiss,
    find_row, go_to_row, is_in_diff, next_answerer, present_row, request_note, request_question, request_rating,
    request_snooze, say_not_run, search_next, show_position,
};
use input_line::draw_input_line;
pub use input_line::draw_line_edit;
use reasons::ReasonRow;

/// Open prompt: the text input line and its purpose.
#[derive(Debug, Clone)]
pub struct PromptView {
    pub kind: InputPromptKind,
    pub line: LineEdit,
    /// 1-based index of the suggestion that was inserted last; 0 for none.
    pub choice: usize,
    /// Reason why the typed text was not accepted; empty after the next change.
    pub error: String,
    /// Text that the user typed last; the offered revisions match it.
    query: String,
    /// Position of the row that a search in the diff has found: `2 of 7`.
    found: String,
    /// Key that opens the help while nothing is typed, because it has opened the prompt; `None` for none.
    pub help_key: Option<KeyEvent>,
}

/// Purpose of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum InputPromptKind {
    /// Edits the findings filter; `before` is restored on cancel.
    Filter {
        before: String,
    },
    Search {
        before: String,
        from: usize,
    },
    /// Asks for the reason for which these findings are dismissed.
    Reason {
        findings: Vec<FindingId>,
        entry: ReasonEntry,
    },
    /// Asks until when these findings are out of sight.
    SnoozeFindings {
        findings: Vec<FindingId>,
    },
    /// Asks for the priority and kind of these findings.
    Rate {
        findings: Vec<FindingId>,
    },
    /// Asks for a note about a finding.
    Note {
        finding: FindingId,
    },
    /// Asks for a question to the reviewer of a finding.
    Ask {
        finding: FindingId,
        /// Reviewer that answers, and the most that it may cost; `None` until that is known.
        plan: Option<Box<PreparedQuestion>>,
        /// Other reviewer that the user wants to ask, until its cost is known; `None` for none.
        wanted: Option<String>,
    },
    /// Asks for the commit to review; the form of the review follows.
    Commit {
        draft: ReviewDraft,
    },
    /// Asks for the range to review; the form of the review follows.
    Range {
        draft: ReviewDraft,
    },
    /// Asks how long automatic reviews pause.
    Snooze,
    /// Edits the filter of the knowledge view; `before` is restored on cancel.
    Patterns {
        before: String,
    },
    /// Asks for the path to which knowledge is exported.
    Export,
    /// Asks for the answer to the next question of a command of the user.
    Command {
        form: Box<CommandForm>,
    },
}

/// Meaning of a digit in the prompt for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonEntry {
    /// Nothing was typed: a digit chooses a reason.
    ByDigit,
    /// The user types a reason: a digit is text.
    Typed,
}

/// Digit that stands for another reason, which the user types. The common reasons have the digits around it, in their order.
pub const OTHER_DIGIT: usize = 5;
/// Maximum number of typed reasons of this session that are offered.
const MAX_TYPED_REASONS: usize = 4;

/// Returns the reasons that are offered for a dismissal: those typed in this session, latest first, then the common ones.
pub fn dismissal_reasons(app: &App) -> Vec<String> {
    let typed = app.decisions.reasons.iter().filter(|reason| !Disposition::REASONS.contains(&reason.as_str()));
    typed.take(MAX_TYPED_REASONS).cloned().chain(Disposition::REASONS.map(str::to_owned)).collect()
}

/// Builds the prompt for the reason for which findings are dismissed. The last reason of this session is chosen already.
pub fn build_reason_prompt(app: &App, findings: Vec<FindingId>) -> PromptView {
    let kind = InputPromptKind::Reason { findings, entry: ReasonEntry::ByDigit };
    let Some(last) = app.decisions.reasons.first() else { return PromptView::new(kind, LineEdit::default()) };
    let choice = dismissal_reasons(app).iter().position(|reason| reason == last).map_or(0, |at| at + 1);
    PromptView { choice, ..PromptView::new(kind, LineEdit::with_suggestion(last)) }
}

impl View for PromptView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Prompt
    }

    fn is_text_field(&self) -> bool {
        true
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        if press.action.is_none() && self.shown_help_key() == Some(press.key) {
            open_for_action(app, Action::Help, commands);
            return ViewFlow::Close;
        }
        if let Some(flow) = self.choose_by_digit(app, press, commands) {
            return flow;
        }
        match press.action {
            Some(Action::Accept) => return self.accept(app, commands),
            Some(Action::Abort) => {
                self.abort(app, commands);
                return ViewFlow::Close;
            }
            Some(Action::Complete | Action::Down | Action::Up) => match self.kind {
                InputPromptKind::Filter { .. } => self.complete(&app.finding_list.saved_filters),
                InputPromptKind::Reason { .. } => {
                    self.choose_offer(&dismissal_reasons(app), press.action == Some(Action::Up));
                    return ViewFlow::Open;
                }
                // Another reviewer may cost more, so only the key that the prompt names chooses one.
                InputPromptKind::Ask { .. } if press.action == Some(Action::Complete) => {
                    self.want_next_answerer(commands);
                    return ViewFlow::Open;
                }
                InputPromptKind::Commit { .. } | InputPromptKind::Range { .. } => {
                    let offered: Vec<String> = self.offered_revisions(app).into_iter().map(|(text, _)| text).collect();
                    self.choose_offer(&offered, press.action == Some(Action::Up));
                    return ViewFlow::Open;
                }
                _ => {}
            },
            _ => {
                if !self.edit(press) {
                    return ViewFlow::Open;
                }
            }
        }
        self.apply_typed(app, commands);
        ViewFlow::Open
    }

    /// Chooses the reason or the revision under the pointer; a double click accepts it.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        let Some((choice, text)) = self.offer_at(app, cell) else { return ViewFlow::Open };
        if choice == 0
            && let InputPromptKind::Reason { entry, .. } = &mut self.kind
        {
            *entry = ReasonEntry::Typed;
        }
        self.choice = choice;
        self.line.set_text(&text);
        self.error.clear();
        match is_double && choice > 0 {
            true => self.accept(app, commands),
            false => ViewFlow::Open,
        }
    }

    fn handle_paste(&mut self, app: &mut App, text: &str, commands: &mut Vec<AppCommand>) {
        self.line.insert(text.trim_end_matches(['\r', '\n']));
        self.choice = 0;
        if let InputPromptKind::Reason { entry, .. } = &mut self.kind {
            *entry = ReasonEntry::Typed;
        }
        self.error.clear();
        self.query = self.line.text().to_owned();
        self.apply_typed(app, commands);
    }

    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout) {
        match &self.kind {
            InputPromptKind::Reason { findings, entry } => reasons::draw(painter, self, findings.len(), *entry),
            InputPromptKind::Note { .. } => draw_input_line(painter, layout, "note", self, &["decides nothing"]),
            InputPromptKind::Ask { plan, wanted, .. } => {
                let mut help = match plan {
                    Some(plan) if wanted.is_none() => {
                        vec![describe_cost(plan.limit), format!("asks {}", text::sanitize_line(&plan.reviewer))]
                    }
                    _ => vec![format!("looking at the cost{}", painter.app.display.glyphs.ellipsis)],
                };
                let other = plan.as_deref().filter(|_| wanted.is_none()).and_then(next_answerer);
                let key = painter.app.keymap.key_of(KeyContext::Prompt, Action::Complete);
                if let (Some(other), Some(key)) = (other, key) {
                    help.push(format!("{key} asks {}", text::sanitize_line(other)));
                }
                if let Some(key) = self.shown_help_key() {
                    help.insert(1, format!("{key} again: help"));
                }
                help.push("Esc sends nothing".to_owned());
                let help: Vec<&str> = help.iter().map(String::as_str).collect();
                draw_input_line(painter, layout, "ask", self, &help);
            }
            InputPromptKind::SnoozeFindings { .. } => {
                let help = ["3d, 2w, 2026-12-01", "change: of the file", "off"];
                draw_input_line(painter, layout, "snooze", self, &help);
            }
            InputPromptKind::Rate { .. } => {
                draw_input_line(painter, layout, "rate", self, &["p0 to p3", "a kind: SECURITY", "reported"]);
            }
            InputPromptKind::Filter { .. } => {
                let saved = &painter.app.finding_list.saved_filters;
                let completion = filter::complete(self.line.text(), self.line.cursor(), saved);
                let mut help: Vec<&str> = completion.candidates.iter().map(String::as_str).collect();
                let text = self.line.text();
                let is_term_whole = help.is_empty() || completion.start == text.len();
                let is_usual = text.trim().is_empty() || text.trim() == filter::DEFAULT;
                if is_term_whole && !is_usual && !text.contains("=@") {
                    help.push("=@NAME saves it");
                }
                draw_input_line(painter, layout, "filter", self, &help);
            }
            InputPromptKind::Search { .. } => {
                // The room for the position stays, so that the line does not jump while the user types.
                let found = [self.found.as_str()];
                let help = if is_in_diff(painter.app) { found.as_slice() } else { &[] };
                draw_input_line(painter, layout, "search", self, help);
            }
            InputPromptKind::Commit { .. } => {
                draw_input_line(painter, layout, "commit", self, &["any revision: HEAD~2, v1.0, 3fa2c1"]);
                self.draw_offered_revisions(painter);
            }
            InputPromptKind::Snooze => {
                draw_input_line(painter, layout, "snooze", self, &["for 30m, 2h, 1d", "until 14:00", "off"]);
            }
            InputPromptKind::Patterns { .. } => {
                draw_input_line(painter, layout, "filter", self, &["language, kind, origin, words"]);
            }
            InputPromptKind::Export => draw_input_line(painter, layout, "export to", self, &[]),
            InputPromptKind::Command { form } => {
                let step = form.describe_step();
                let help = [step.as_str(), "Esc runs nothing"];
                let help = if step.is_empty() { &help[1..] } else { &help };
                // A low screen has no row above the line.
                let is_above = self.error.is_empty()
                    && layout.notice.height > 1
                    && !self.lines_above(layout.notice_width()).is_empty();
                let name = if is_above { form.name() } else { form.question() };
                draw_input_line(painter, layout, &name, self, help);
            }
            InputPromptKind::Range { .. } => {
                draw_input_line(painter, layout, "range", self, &["A..B from A to B", "A...B since B left A"]);
                self.draw_offered_revisions(painter);
            }
        }
    }

    fn footer(&self, app: &App) -> Vec<(Action, &'static str)> {
        use Action as A;
        match self.kind {
            InputPromptKind::Filter { .. } => {
                with_labels([A::Accept, A::Complete, A::Abort, A::DeleteWord, A::DeleteLine])
            }
            InputPromptKind::Reason { .. } => vec![
                (A::Accept, "dismiss"),
                (A::Down, "next reason"),
                (A::DeleteLine, "delete line"),
                (A::Abort, "back"),
            ],
            InputPromptKind::Commit { .. } | InputPromptKind::Range { .. }
                if !self.offered_revisions(app).is_empty() =>
            {
                vec![
                    (A::Accept, "accept"),
                    (A::Down, "next revision"),
                    (A::DeleteLine, "delete line"),
                    (A::Abort, "back"),
                ]
            }
            _ => with_labels([A::Accept, A::DeleteWord, A::DeleteLine, A::Abort]),
        }
    }
}

impl PromptView {
    pub fn new(kind: InputPromptKind, line: LineEdit) -> Self {
        Self { kind, line, choice: 0, error: String::new(), query: String::new(), found: String::new(), help_key: None }
    }

    /// Returns the lines above that of the prompt, each of at most `width` columns: why the text was not accepted, else a
    /// question of which the line would show a part only.
    pub fn lines_above(&self, width: usize) -> Vec<String> {
        if !self.error.is_empty() {
            return doc::wrap_words(&self.error, width);
        }
        let InputPromptKind::Command { form } = &self.kind else { return Vec::new() };
        let question = form.question();
        if question.width() > width / 2 { doc::wrap_words(&question, width) } else { Vec::new() }
    }

    /// Returns the key that opens the help now.
    fn shown_help_key(&self) -> Option<KeyEvent> {
        self.help_key.filter(|_| self.line.text().is_empty())
    }

    /// Returns the revisions that match the typed text, each with the text that the prompt takes for it.
    fn offered_revisions(&self, app: &App) -> Vec<(String, OfferedRevision)> {
        let is_range = matches!(self.kind, InputPromptKind::Range { .. });
        let text = |revision: &OfferedRevision| match is_range {
            true => range_since(&revision.text),
            false => revision.text.clone(),
        };
        let found = find_revisions(&app.review_facts, &self.query);
        found.into_iter().map(|revision| (text(&revision), revision)).collect()
    }

    fn draw_offered_revisions(&self, painter: &mut Painter<'_>) {
        if self.error.is_empty() {
            let offered = self.offered_revisions(painter.app);
            let chosen = if self.is_only_match_meant(painter.app, &offered) { 1 } else { self.choice };
            let revisions: Vec<OfferedRevision> = offered.into_iter().map(|(_, revision)| revision).collect();
            draw_revisions(painter, &revisions, chosen);
        }
    }

    /// Returns true if the typed text means the only revision that matches it.
    fn is_only_match_meant(&self, app: &App, offered: &[(String, OfferedRevision)]) -> bool {
        self.choice == 0 && offered.len() == 1 && is_search_text(&self.query, &app.review_facts.tags)
    }

    /// Returns the revision or range to review: the only match of a search, else the text itself.
    fn read_revision(&self, app: &App) -> String {
        let mut offered = self.offered_revisions(app);
        match self.is_only_match_meant(app, &offered) {
            true => offered.swap_remove(0).0,
            false => self.line.text().trim().to_owned(),
        }
    }

    /// Dismisses with the reason of a digit, or lets the user type another one. Returns `None` if the key is not such a
    /// digit, or is text.
    fn choose_by_digit(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> Option<ViewFlow> {
        let InputPromptKind::Reason { findings, entry } = &mut self.kind else { return None };
        if *entry == ReasonEntry::Typed {
            return None;
        }
        let typed = press.key.character().filter(|_| press.action.is_none())?;
        let digit = typed.to_digit(10).map_or(0, |digit| digit as usize);
        if !(1..=Disposition::REASONS.len() + 1).contains(&digit) {
            *entry = ReasonEntry::Typed;
            return None;
        }
        if digit == OTHER_DIGIT {
            *entry = ReasonEntry::Typed;
            self.line.delete_all();
            self.choice = 0;
            return Some(ViewFlow::Open);
        }
        let index = if digit < OTHER_DIGIT { digit - 1 } else { digit - 2 };
        dismiss(app, std::mem::take(findings), Disposition::REASONS[index], commands);
        Some(ViewFlow::Close)
    }

    /// Keeps the prompt open and shows why its text was not accepted.
    fn refuse(&mut self, error: impl Into<String>) -> ViewFlow {
        self.error = error.into();
        ViewFlow::Open
    }

    /// Edits the line. Returns false if the key does not edit.
    fn edit(&mut self, press: KeyPress) -> bool {
        self.error.clear();
        if press.action.is_none() && press.key.is_text() {
            self.choice = 0;
        }
        let is_edited = edit_line(&mut self.line, press);
        if is_edited {
            self.query = self.line.text().to_owned();
        }
        is_edited
    }

    /// Completes the word at the cursor with the first candidate.
    fn complete(&mut self, saved: &SavedFilters) {
        let completion = filter::complete(self.line.text(), self.line.cursor(), saved);
        if let Some(candidate) = completion.candidates.first() {
            let ends = if candidate.ends_with(':') { "" } else { " " };
            self.line.replace(completion.start, &format!("{candidate}{ends}"));
        }
    }

    /// Returns the offer under the pointer: its 1-based index and its text; index 0 and no text for a reason that the user
    /// types.
    fn offer_at(&self, app: &App, cell: Position) -> Option<(usize, String)> {
        match &self.kind {
            InputPromptKind::Reason { .. } => match reasons::row_at(app, self, cell)? {
                ReasonRow::Offered(index) => Some((index + 1, dismissal_reasons(app).into_iter().nth(index)?)),
                ReasonRow::Other => Some((0, String::new())),
            },
            InputPromptKind::Commit { .. } | InputPromptKind::Range { .. } if self.error.is_empty() => {
                let offered = self.offered_revisions(app);
                let index = revision_at(app, offered.len(), cell)?;
                offered.into_iter().nth(index).map(|(text, _)| (index + 1, text))
            }
            _ => None,
        }
    }

    /// Inserts the next or previous of the offered texts.
    fn choose_offer(&mut self, offered: &[String], up: bool) {
        let n = offered.len();
        self.choice = match up {
            true if self.choice <= 1 => n,
            true => self.choice - 1,
            false => self.choice % n.max(1) + 1,
        };
        if let Some(reason) = offered.get(self.choice.wrapping_sub(1)) {
            self.line.set_text(reason);
        }
    }

    /// Applies changed text: filter and search show their results while the user types.
    fn apply_typed(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let text = self.line.text().trim().to_owned();
        match &self.kind {
            InputPromptKind::Filter { .. } => apply_filter(app, &text, commands),
            InputPromptKind::Patterns { .. } => filter_patterns(app, &text),
            InputPromptKind::Search { from, .. } => {
                app.search = text;
                if app.search.is_empty() {
                    go_to_row(app, *from);
                } else {
                    find_row(app, *from, true, false);
                }
                self.found = describe_position(app);
            }
            _ => {}
        }
    }

    /// Accepts the text. A text that means nothing stays, with the reason beside it.
    fn accept(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let text = match self.kind {
            InputPromptKind::Commit { .. } | InputPromptKind::Range { .. } => self.read_revision(app),
            _ => self.line.text().trim().to_owned(),
        };
        match &mut self.kind {
            InputPromptKind::Filter { .. } => {
                if let Err(error) = accept_filter(app, &text, commands) {
                    return self.refuse(error);
                }
            }
            InputPromptKind::Search { before, .. } => {
                if text.is_empty() {
                    app.search = std::mem::take(before);
                    search_next(app, true, 1);
                } else if !find_row(app, present_row(app), true, false) {
                    let said = describe_no_match(app);
                    if app.panes.focus != Pane::Detail {
                        return self.refuse(said);
                    }
                    // A page may get further lines, which the key for the next match finds.
                    app.show_notice(NoticeLevel::Info, said);
                } else {
                    show_position(app);
                }
            }
            InputPromptKind::Reason { .. } if text.is_empty() => {
                return self.refuse("a dismissal needs a reason: type one, or choose one below");
            }
            InputPromptKind::Reason { findings, .. } => dismiss(app, std::mem::take(findings), &text, commands),
            InputPromptKind::SnoozeFindings { findings } => {
                let now = Time::from_millisecond(app.now).unwrap_or_default();
                let wish = SnoozeWish::parse(&text, now, &app.display.zone);
                if let Err(error) = wish.and_then(|wish| request_snooze(app, findings, wish, commands)) {
                    return self.refuse(error);
                }
            }
            InputPromptKind::Rate { findings } => match RatingWish::parse(&text) {
                Ok(wish) => request_rating(findings, wish, commands),
                Err(error) => return self.refuse(error),
            },
            InputPromptKind::Ask { .. } => return self.accept_question(app, text, commands),
            InputPromptKind::Note { .. } if text.chars().count() > FindingNote::MAX_TEXT_CHARS => {
                return self.refuse(format!("a note has at most {} characters", FindingNote::MAX_TEXT_CHARS));
            }
            InputPromptKind::Note { finding } => {
                if !text.is_empty() {
                    request_note(finding.clone(), &text, commands);
                }
            }
            InputPromptKind::Patterns { .. } => {}
            InputPromptKind::Command { form } => ask_or_run(app, form.with_answer(&text), commands),
            InputPromptKind::Snooze | InputPromptKind::Export if text.is_empty() => {}
            InputPromptKind::Commit { draft } => {
                let picked = (!text.is_empty()).then_some(text);
                review_form::open_with_commit(app, std::mem::take(draft), picked, commands);
            }
            InputPromptKind::Snooze => {
                let now = Time::from_millisecond(app.now).unwrap_or_default();
                if let Err(error) = parse_snooze(&text, now, &app.display.zone) {
                    return self.refuse(error);
                }
                commands.push(AppCommand::Snooze(text));
            }
            InputPromptKind::Export => {
                app.asked_prompt = Some(AskedPrompt { kind: InputPromptKind::Export, text: text.clone() });
                commands.push(AppCommand::View(ViewRequest::Knowledge(KnowledgeOrder::Export {
                    path: text,
                    existing: ExportOverwrite::Keep,
                })));
            }
            InputPromptKind::Range { .. } if !text.is_empty() && Scope::parse_range(&text).is_none() => {
                return self.refuse(format!("{text:?} is no range; write A..B or A...B"));
            }
            InputPromptKind::Range { draft } => {
                let picked = (!text.is_empty()).then_some(text);
                review_form::open_with_range(app, std::mem::take(draft), picked, commands);
            }
        }
        ViewFlow::Close
    }

    /// Sends a typed question. A text that is no question stays.
    fn accept_question(&mut self, app: &mut App, text: String, commands: &mut Vec<AppCommand>) -> ViewFlow {
        let InputPromptKind::Ask { plan, wanted, .. } = &self.kind else { return ViewFlow::Close };
        let Some(plan) = plan.as_deref().filter(|_| wanted.is_none()) else {
            return self.refuse("what it may cost is not known yet; nothing was sent");
        };
        if let Err(error) = request_question(app, plan, &text, commands) {
            return self.refuse(error);
        }
        app.asked_prompt = Some(AskedPrompt { kind: self.kind.clone(), text });
        ViewFlow::Close
    }

    /// Has the next reviewer of the finding answer, once its cost is known. Nothing happens if there is no other one.
    fn want_next_answerer(&mut self, commands: &mut Vec<AppCommand>) {
        let InputPromptKind::Ask { finding, plan: Some(plan), wanted: wanted @ None } = &mut self.kind else { return };
        if let Some(next) = next_answerer(plan) {
            self.error.clear();
            commands.push(AppCommand::PlanQuestion { finding: finding.clone(), reviewer: Some(next.to_owned()) });
            *wanted = Some(next.to_owned());
        }
    }

    /// Restores the state before the prompt.
    fn abort(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        match &mut self.kind {
            InputPromptKind::Filter { before } => {
                if *before != app.finding_list.filter_text {
                    app.finding_list.filter_text = std::mem::take(before);
                    data::refilter(app, commands);
                }
            }
            InputPromptKind::Search { before, from } => {
                app.search = std::mem::take(before);
                go_to_row(app, *from);
            }
            InputPromptKind::Reason { .. } => app.show_notice(NoticeLevel::Info, "nothing dismissed"),
            InputPromptKind::Command { form } => say_not_run(app, form),
            InputPromptKind::Patterns { before } => filter_patterns(app, before),
            InputPromptKind::SnoozeFindings { .. }
            | InputPromptKind::Rate { .. }
            | InputPromptKind::Note { .. }
            | InputPromptKind::Ask { .. }
            | InputPromptKind::Snooze
            | InputPromptKind::Export => {}
            InputPromptKind::Commit { draft } => {
                review_form::open_with_commit(app, std::mem::take(draft), None, commands);
            }
            InputPromptKind::Range { draft } => {
                review_form::open_with_range(app, std::mem::take(draft), None, commands);
            }
        }
    }
}

/// Edits a line. Returns false if the key does not edit.
pub fn edit_line(line: &mut LineEdit, press: KeyPress) -> bool {
    match press.action {
        Some(Action::CursorLeft) => line.move_left(),
        Some(Action::CursorRight) => line.move_right(),
        Some(Action::CursorStart) => line.move_to_start(),
        Some(Action::CursorEnd) => line.move_to_end(),
        Some(Action::DeleteLeft) => line.delete_left(),
        Some(Action::DeleteRight) => line.delete_right(),
        Some(Action::DeleteWord) => line.delete_word(),
        Some(Action::DeleteLine) => line.delete_all(),
        _ => match press.key.character() {
            Some(character) => line.insert(character.encode_utf8(&mut [0; 4])),
            None => return false,
        },
    }
    true
}

/// Prompt whose text another process judges, while its answer is awaited.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedPrompt {
    pub kind: InputPromptKind,
    pub text: String,
}

/// Kinds of prompts that one kind of answer is for.
pub type AnsweredKinds = fn(&InputPromptKind) -> bool;

/// Prompts that request a review.
pub const REVIEW_PROMPTS: AnsweredKinds =
    |kind| matches!(kind, InputPromptKind::Commit { .. } | InputPromptKind::Range { .. });
/// Prompts for a question about a finding.
pub const ASK_PROMPTS: AnsweredKinds = |kind| matches!(kind, InputPromptKind::Ask { .. });
/// Prompts of the knowledge view.
pub const KNOWLEDGE_PROMPTS: AnsweredKinds = |kind| matches!(kind, InputPromptKind::Export);

/// Forgets the prompt that waits for an answer if it is one of `answered`.
pub fn forget_asked(app: &mut App, answered: AnsweredKinds) {
    app.asked_prompt.take_if(|asked| answered(&asked.kind));
}

/// Opens the prompt again whose text was not accepted, with the text and the reason. Returns false if none of
/// `answered` has asked, or a window is open.
pub fn reopen_refused(app: &mut App, answered: AnsweredKinds, error: &str) -> bool {
    let asked = app.asked_prompt.take_if(|asked| answered(&asked.kind));
    let Some(AskedPrompt { kind, text }) = asked.filter(|_| !app.views.has_window()) else {
        return false;
    };
    let error = text::sanitize_line(error).into_owned();
    app.notice = None;
    app.views.open(PromptView { error, ..PromptView::new(kind, LineEdit::new(&text)) });
    true
}

/// Applies a filter to the knowledge view.
fn filter_patterns(app: &mut App, filter: &str) {
    change_view(app, |view: &mut KnowledgeView, app| view.set_filter(app, filter));
}
