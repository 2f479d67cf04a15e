//! Triage mode: one finding at a time on the whole screen, decided with one key.
//!
//! | file | purpose |
//! |---|---|
//! | `queue` | findings of the session, verdicts, steps back; pure |
//! | `card` | data of a finding and its laid-out pages |
//! | `similar` | decisions about findings of the same kind and shape |
//! | `worker` | loads cards ahead of the user |
//! | `summary` | the closing page and its line |
//! | `draw` | rectangles and drawing |
//!
//! - A verdict shows the next finding in the same frame: its card was requested while the decided one was shown.
//! - The counts contain a verdict only after it is stored. A verdict that was not stored brings its finding back.

mod card;
mod draw;
mod queue;
mod similar;
mod summary;
mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) use card::TriageCard;
#[cfg(test)]
pub(crate) use similar::SimilarDecisions;
pub(crate) use worker::{CardRequest, start_worker};

use ratatui::layout::Position;

use card::CardPages;
use queue::{StepBack, StoredLines, TriageQueue, TriageVerdict};
use similar::is_similar;

use super::fix::{self, FixOrder};
use super::prompt::{InputPromptKind, PromptView, ReasonEntry, build_reason_prompt};
use super::{KeyPress, View, ViewChange, ViewFlow, ViewReply, ViewRequest, change_view, scroll_distance};
use crate::domain::{Disposition, Finding, FindingId, FindingStatus, FixStatus};
use crate::store::StoreView;
use crate::store::triage::UndoOutcome;
use crate::tui::app::{App, NoticeLevel};
use crate::tui::doc::Doc;
use crate::tui::draw::painter::Painter;
use crate::tui::empty_list::explain_empty_list;
use crate::tui::input::{KeyCode, KeyEvent};
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::{AppCommand, TriageOrder, UserVerdict};
use crate::tui::update::{
    comment_on_finding, commit_mark_range, dismiss, open_note_prompt, open_rating_prompt, open_snooze_prompt,
    request_verdict, select_finding,
};

/// Most cards in memory; beyond, only those that are shown next stay.
const MAX_CARDS: usize = 32;

/// Triage session.
#[derive(Debug, Default)]
pub struct TriageView {
    queue: TriageQueue,
    cards: HashMap<String, LoadedCard>,
    /// Findings whose cards were requested and have not arrived.
    requested: HashSet<String>,
    /// Pages of the shown finding; empty while its card is missing.
    pages: CardPages,
    /// Closing page; empty while a finding is shown.
    closing: Doc,
    /// Lines scrolled: first the code, then the explanation, else the closing page.
    scroll: usize,
    /// Decisions that the session has asked the store to undo since the last verdict, and not to redo.
    undone: usize,
}

/// Card as it was read, or the reason why it could not be read.
#[derive(Debug)]
struct LoadedCard {
    card: Result<Arc<TriageCard>, String>,
    /// The finding has changed since; the card is read again and stays on the screen until then.
    is_stale: bool,
}

/// Opens triage mode for the marked findings, else for the listed ones, as far as they are undecided. Begins at the
/// selected finding.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    commit_mark_range(app);
    app.finding_list.mark_range_start = None;
    let marks = &app.finding_list.marks;
    let mut findings = Vec::new();
    for index in &app.finding_list.rows {
        let row = app.store.view.finding(*index as usize);
        let status = app.current_status(&row);
        let is_snoozed = app.finding_list.overrides.snoozed.hides(row.id, status);
        if is_snoozed && !app.finding_list.filter.wants_snoozed() && !marks.contains(row.id) {
            // Snoozed just now, and still in the list.
            continue;
        }
        if status.is_undecided() && (marks.is_empty() || marks.contains(row.id)) {
            findings.push(row.id.to_owned());
        }
    }
    if findings.is_empty() {
        let why = match app.finding_list.rows.is_empty() && app.store.view.run_count() > 0 {
            true => explain_empty_list(app).headline,
            false => "no listed finding is undecided".to_owned(),
        };
        return app.show_notice(NoticeLevel::Info, format!("nothing to decide: {why}"));
    }
    let selected = app.selected_finding().map(|finding| finding.id);
    let start = findings.iter().position(|id| Some(id.as_str()) == selected).unwrap_or(0);
    let mut view = TriageView { queue: TriageQueue::new(findings, start), ..TriageView::default() };
    app.notice = None;
    view.show(app, commands);
    app.views.open(view);
}

/// Tells an open session that a prompt has dismissed findings.
pub fn record_dismissals(app: &mut App, findings: &[FindingId], reason: &str, commands: &mut Vec<AppCommand>) {
    change_view(app, |view: &mut TriageView, app| {
        let shown = view.queue.current().map(|item| item.finding.as_str());
        if findings.iter().any(|finding| Some(finding.as_str()) == shown) {
            view.record(app, TriageVerdict::Dismissed(reason.to_owned()), commands);
        }
    });
}

/// Tells an open session that a prompt snoozes findings, or ends their snoozes: the shown one is for later, and the store has not
/// answered yet.
pub fn record_snoozes(app: &mut App, findings: &[FindingId], is_snoozed: bool, commands: &mut Vec<AppCommand>) {
    change_view(app, |view: &mut TriageView, app| {
        if view.shown_id().is_some_and(|shown| findings.contains(&shown)) {
            let verdict = if is_snoozed { TriageVerdict::Snoozed } else { TriageVerdict::SnoozeEnded };
            view.record(app, verdict, commands);
        }
    });
}

/// Tells an open session the answer of the store to a snooze: `None` if it was not stored, else whether it has changed anything.
pub fn apply_snooze(app: &mut App, has_changed: Option<bool>, commands: &mut Vec<AppCommand>) {
    change_view(app, |view: &mut TriageView, app| {
        let before = view.queue.position();
        view.queue.apply_snooze(has_changed);
        view.follow_queue(app, before, commands);
    });
}

/// Tells an open session that the store has rated findings: `u` takes that back, and their cards are read again.
pub fn record_ratings(app: &mut App, findings: &[FindingId], commands: &mut Vec<AppCommand>) {
    change_view(app, |view: &mut TriageView, app| {
        view.undone = 0;
        for finding in findings {
            view.queue.record_rating(finding.as_str());
            view.mark_stale(finding.as_str());
        }
        view.request_cards(commands);
        view.build(app);
    });
}

impl View for TriageView {
    fn key_context(&self) -> KeyContext {
        KeyContext::Triage
    }

    fn is_window(&self) -> bool {
        false
    }

    /// Dismisses with the reason under the pointer.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        _is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        match draw::reason_at(app, self, cell) {
            // The view looks at the action only.
            Some(action) => {
                self.handle_key(app, KeyPress { key: KeyEvent::plain(KeyCode::Enter), action: Some(action) }, commands)
            }
            None => ViewFlow::Open,
        }
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        use Action as A;
        let Some(action) = press.action else { return ViewFlow::Open };
        app.notice = None;
        let page = draw::code_height(app, self);
        match action {
            A::Abort | A::Back => return self.close(app),
            A::Accept if self.queue.current().is_none() => return self.close(app),
            A::Accept => self.apply_patch(app, commands),
            A::Addressed => self.decide(app, FindingStatus::Addressed, "", commands),
            A::Reason1 => self.decide(app, FindingStatus::Dismissed, Disposition::REASONS[0], commands),
            A::Reason2 => self.decide(app, FindingStatus::Dismissed, Disposition::REASONS[1], commands),
            A::Reason3 => self.decide(app, FindingStatus::Dismissed, Disposition::REASONS[2], commands),
            A::Reason4 => self.decide(app, FindingStatus::Dismissed, Disposition::REASONS[3], commands),
            A::Reason5 => self.prompt_reason(app, ReasonEntry::Typed),
            A::Dismiss => self.prompt_reason(app, ReasonEntry::ByDigit),
            A::Repeat => self.repeat(app, commands),
            A::Later => self.record(app, TriageVerdict::Later, commands),
            A::Undo => self.step_back(app, commands),
            A::Redo => self.redo(app, commands),
            A::Fix => self.fix(app, commands),
            A::Reveal => {
                let key = |action| app.keymap.key_text(KeyContext::Triage, action);
                let said = format!(
                    "secrets stay masked here: {} leaves, and {} shows them on the page",
                    key(A::Abort),
                    key(A::Reveal)
                );
                app.show_notice(NoticeLevel::Info, said);
            }
            A::Skip => {
                self.queue.go_forward();
                self.show(app, commands);
            }
            A::Return => {
                self.queue.go_back();
                self.show(app, commands);
            }
            A::Note => {
                if let Some(finding) = self.shown_id() {
                    open_note_prompt(app, finding);
                }
            }
            A::SnoozeFinding => {
                if let Some(finding) = self.shown_id() {
                    open_snooze_prompt(app, vec![finding]);
                }
            }
            A::Rate => {
                if let Some(finding) = self.shown_id() {
                    open_rating_prompt(app, vec![finding]);
                }
            }
            A::Comment => self.comment(app),
            A::Edit => self.edit(app, commands),
            A::CopyPrompt => {
                commands.extend(self.queue.current().map(|item| AppCommand::CopyPrompt(vec![item.finding.clone()])));
            }
            A::Quit => commands.push(AppCommand::Quit(None)),
            action => self.scroll_by(app, scroll_distance(action, page).unwrap_or(0)),
        }
        ViewFlow::Open
    }

    fn update(&mut self, app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            ViewChange::Resized | ViewChange::FixesRead => self.build(app),
            ViewChange::StoreRead(view) => {
                self.mark_changed_cards(app, view);
                self.request_cards(commands);
            }
            ViewChange::Reply(ViewReply::TriageCard { finding, card }) => self.accept_card(app, finding, card),
            ViewChange::Asked(finding) => {
                self.cards.get_mut(finding.as_str()).into_iter().for_each(|card| card.is_stale = true);
                self.request_cards(commands);
            }
            ViewChange::Triaged { order, result } => self.apply_answer(app, order, result, commands),
            ViewChange::Fixed { order, result } => self.apply_fix_answer(app, order, result, commands),
            _ => {}
        }
    }

    fn finding_at_hand(&self) -> Option<FindingId> {
        self.shown_id()
    }

    fn draw(&self, painter: &mut Painter<'_>, layout: &ScreenLayout) {
        draw::draw(painter, layout, self);
    }

    fn footer(&self, app: &App) -> Vec<(Action, &'static str)> {
        use Action as A;
        let last = [(A::Later, "later"), (A::Undo, "back"), (A::Abort, "leave")];
        if self.queue.current().is_none() {
            return vec![(A::Undo, "take the last one back"), (A::Abort, "leave")];
        }
        let mut actions = vec![(A::Addressed, "addressed")];
        if self.pages.patch.is_some() {
            actions.insert(0, (A::Accept, "apply"));
        }
        if !draw::has_reasons_row(app) {
            actions.extend(draw::REASON_ACTIONS.map(|action| (action, action.footer_label())));
        }
        actions.into_iter().chain(last).chain([(A::Skip, "next"), (A::Return, "previous"), (A::Help, "help")]).collect()
    }
}

impl TriageView {
    fn shown_id(&self) -> Option<FindingId> {
        self.queue.current().and_then(|item| item.finding.parse().ok())
    }

    /// Returns a finding whose card is loaded.
    pub(crate) fn loaded_finding(&self, id: &FindingId) -> Option<&Finding> {
        let card = self.cards.get(id.as_str())?.card.as_ref().ok()?;
        Some(&card.page.finding)
    }

    /// Returns the card of the shown finding.
    fn shown_card(&self) -> Option<&LoadedCard> {
        self.queue.current().and_then(|item| self.cards.get(&item.finding))
    }

    /// Shows the finding at the position of the queue, from its own lines on, or the closing page.
    fn show(&mut self, app: &App, commands: &mut Vec<AppCommand>) {
        self.request_cards(commands);
        self.build(app);
        self.scroll = 0;
        self.scroll_to_finding(app);
    }

    fn scroll_to_finding(&mut self, app: &App) {
        let height = draw::code_height(app, self).max(0) as usize;
        let start = self.pages.code.start.saturating_sub(height / 3);
        self.scroll = start.min(self.pages.code.lines.len().saturating_sub(height));
    }

    /// Lays the shown finding or the closing page out.
    fn build(&mut self, app: &App) {
        let width = draw::text_width(app);
        self.pages = match self.shown_card().map(|loaded| &loaded.card) {
            Some(Ok(card)) => CardPages::build(app, card, width),
            Some(Err(error)) => {
                let mut pages = CardPages::default();
                pages.text.push_paragraph(crate::tui::theme::Role::Warn, error, width);
                pages
            }
            None => CardPages::default(),
        };
        self.closing = match self.queue.current() {
            Some(_) => Doc::default(),
            None => summary::build_closing_page(app, &self.queue, width),
        };
        self.scroll_by(app, 0);
    }

    fn scroll_by(&mut self, app: &App, by: isize) {
        self.scroll = self.scroll.saturating_add_signed(by).min(draw::max_scroll(app, self));
    }

    /// Requests the cards that are shown next, unless they are there or on their way.
    fn request_cards(&mut self, commands: &mut Vec<AppCommand>) {
        let upcoming = self.queue.upcoming();
        let is_there = |finding: &str| self.cards.get(finding).is_some_and(|loaded| !loaded.is_stale);
        let missing = upcoming.iter().filter(|finding| !is_there(finding) && !self.requested.contains(**finding));
        let missing: Vec<String> = missing.map(|finding| (*finding).to_owned()).collect();
        if self.cards.len() > MAX_CARDS {
            self.cards.retain(|finding, _| upcoming.contains(&finding.as_str()));
        }
        if !missing.is_empty() {
            self.requested.extend(missing.iter().cloned());
            commands.push(AppCommand::View(ViewRequest::TriageCards(missing)));
        }
    }

    fn accept_card(&mut self, app: &App, finding: &str, card: &Result<Arc<TriageCard>, String>) {
        self.requested.remove(finding);
        let known = self.cards.insert(finding.to_owned(), LoadedCard { card: card.clone(), is_stale: false });
        if self.queue.current().is_some_and(|item| item.finding == finding) {
            self.build(app);
            if known.is_none() {
                self.scroll_to_finding(app);
            }
        }
    }

    fn mark_stale(&mut self, finding: &str) {
        if let Some(loaded) = self.cards.get_mut(finding) {
            loaded.is_stale = true;
        }
    }

    /// Marks the cards of findings like these, which count the decisions about them.
    fn mark_similar_stale(&mut self, app: &App, decided: &[&str]) {
        let decided: Vec<_> = decided.iter().filter_map(|finding| app.finding_by_id(finding)).collect();
        for (finding, loaded) in &mut self.cards {
            let row = app.finding_by_id(finding);
            loaded.is_stale |= row.is_some_and(|row| decided.iter().any(|other| is_similar(&row, other)));
        }
    }

    /// Marks the cards of findings that the new view of the store reports otherwise.
    fn mark_changed_cards(&mut self, app: &App, new: &StoreView) {
        let key = |view: &StoreView, finding: &str| {
            let row = view.finding(view.finding_index(finding)?);
            Some((row.status, row.last_run.to_owned(), row.line_start))
        };
        for (finding, loaded) in &mut self.cards {
            loaded.is_stale |= key(&app.store.view, finding) != key(new, finding);
        }
    }

    /// Requests a verdict about the shown finding and goes on.
    fn decide(&mut self, app: &mut App, status: FindingStatus, reason: &str, commands: &mut Vec<AppCommand>) {
        let Some(finding) = self.find_target(app, status) else { return };
        let verdict = match status {
            FindingStatus::Dismissed => {
                dismiss(app, vec![finding], reason, commands);
                TriageVerdict::Dismissed(reason.to_owned())
            }
            _ => {
                request_verdict(app, vec![finding], UserVerdict::without_reason(status), commands);
                TriageVerdict::Addressed
            }
        };
        self.record(app, verdict, commands);
    }

    /// Returns the shown finding; `None`, with a notice, if it has the status already.
    fn find_target(&self, app: &mut App, status: FindingStatus) -> Option<FindingId> {
        let finding = self.shown_id()?;
        let present = app.finding_by_id(finding.as_str()).map_or(FindingStatus::Open, |row| app.current_status(&row));
        if present == status {
            app.show_notice(NoticeLevel::Info, format!("already {status}"));
            return None;
        }
        Some(finding)
    }

    fn record(&mut self, app: &App, verdict: TriageVerdict, commands: &mut Vec<AppCommand>) {
        self.undone = 0;
        self.queue.record(verdict);
        self.show(app, commands);
    }

    fn prompt_reason(&mut self, app: &mut App, entry: ReasonEntry) {
        let Some(finding) = self.find_target(app, FindingStatus::Dismissed) else { return };
        let prompt = match entry {
            ReasonEntry::ByDigit => build_reason_prompt(app, vec![finding]),
            ReasonEntry::Typed => {
                PromptView::new(InputPromptKind::Reason { findings: vec![finding], entry }, LineEdit::default())
            }
        };
        app.views.open(prompt);
    }

    fn repeat(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        match app.decisions.last.clone() {
            Some(UserVerdict { status, reason }) => self.decide(app, status, &reason, commands),
            None => app.show_notice(NoticeLevel::Info, "no verdict to repeat yet"),
        }
    }

    /// Applies the offered fix of the shown finding, else its exact suggestion, and goes on.
    fn apply_patch(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let Some(finding) = self.shown_id() else { return };
        let offered = app.store.fixes.for_finding(finding.as_str());
        let offered = offered.filter(|fix| fix.status == FixStatus::Offered && fix.findings.len() == 1);
        let order = match offered {
            Some(fix) => FixOrder::Apply(fix.fix_id.clone()),
            None if self.pages.patch.is_some() => FixOrder::ApplySuggestions(vec![finding]),
            None => {
                let said = match self.shown_card() {
                    Some(_) => {
                        let key = app.keymap.key_text(KeyContext::Triage, Action::Fix);
                        format!("no exact suggestion comes with it: {key} has a fix made")
                    }
                    None => "its page is being read".to_owned(),
                };
                return app.show_notice(NoticeLevel::Info, said);
            }
        };
        fix::send_order(app, order, commands);
        self.record(app, TriageVerdict::Patched(None), commands);
    }

    /// Opens the menu of the fix of the shown finding, or has one made. An exact suggestion is applied by another key.
    fn fix(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let Some(finding) = self.shown_id() else { return };
        let has_fix = app.store.fixes.for_finding(finding.as_str()).is_some();
        if self.pages.patch.is_some() && !has_fix {
            let key = app.keymap.key_text(KeyContext::Triage, Action::Accept);
            return app.show_notice(NoticeLevel::Info, format!("the patch is on the screen: {key} applies it"));
        }
        fix::handle_key_in_view(app, finding, commands);
    }

    /// Has the store redo the decision that the session took back last.
    fn redo(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        if self.undone == 0 {
            return app.show_notice(NoticeLevel::Info, "no decision was taken back since the last verdict");
        }
        self.undone -= 1;
        app.decisions.pending += 1;
        commands.push(AppCommand::Triage(TriageOrder::Redo));
    }

    /// Takes the last verdict of the session back and shows its finding.
    fn step_back(&mut self, app: &mut App, commands: &mut Vec<AppCommand>) {
        match self.queue.step_back() {
            StepBack::Nothing => return app.show_notice(NoticeLevel::Info, "nothing to take back in this session"),
            StepBack::Busy => return app.show_notice(NoticeLevel::Info, "the patch is being applied: try again"),
            StepBack::Done => {}
            StepBack::UndoDecision => {
                self.undone += 1;
                app.decisions.pending += 1;
                commands.push(AppCommand::Triage(TriageOrder::Undo));
            }
            StepBack::UndoFix(fix) => fix::send_order(app, FixOrder::Undo(fix), commands),
        }
        self.show(app, commands);
    }

    /// Opens the editor of a comment at the line of the shown finding.
    fn comment(&self, app: &mut App) {
        let Some(finding) = self.shown_id() else { return };
        let card = self.shown_card().and_then(|loaded| loaded.card.as_ref().ok());
        comment_on_finding(app, finding.as_str(), card.is_some_and(|card| card.page.code.note.is_some()));
    }

    fn edit(&self, app: &App, commands: &mut Vec<AppCommand>) {
        let row = self.queue.current().and_then(|item| app.finding_by_id(&item.finding));
        commands.extend(row.map(|row| AppCommand::Edit { path: row.path.to_owned(), line: row.line_start }));
    }

    /// Applies the answer of the store to a decision or an undo.
    fn apply_answer(
        &mut self,
        app: &App,
        order: &TriageOrder,
        result: &Result<UndoOutcome, String>,
        commands: &mut Vec<AppCommand>,
    ) {
        let before = self.queue.position();
        match order {
            TriageOrder::Set { findings, .. } => {
                let findings: Vec<&str> = findings.iter().map(FindingId::as_str).collect();
                findings.iter().for_each(|finding| self.mark_stale(finding));
                if result.is_ok() {
                    self.mark_similar_stale(app, &findings);
                }
                self.queue.apply_decision(&findings, result.is_ok());
            }
            TriageOrder::Undo | TriageOrder::Redo => {
                let changed = match result {
                    Ok(UndoOutcome::Decided(lines)) => StoredLines::Decisions(lines),
                    Ok(UndoOutcome::Snoozed(lines)) => StoredLines::Snoozes(lines),
                    Ok(UndoOutcome::Rated(lines)) => StoredLines::Ratings(lines),
                    Ok(UndoOutcome::Nothing | UndoOutcome::Fix(_)) | Err(_) => StoredLines::Decisions(&[]),
                };
                let findings = changed.findings();
                findings.iter().for_each(|finding| self.mark_stale(finding));
                self.mark_similar_stale(app, &findings);
                if *order == TriageOrder::Redo {
                    self.queue.apply_redo(changed);
                } else {
                    self.queue.apply_undo(changed);
                    // Nothing was taken back.
                    self.undone = self.undone.saturating_sub(usize::from(findings.is_empty()));
                }
            }
        }
        self.follow_queue(app, before, commands);
    }

    /// Applies the answer to a request to apply a patch, or to take it out of the files.
    fn apply_fix_answer(
        &mut self,
        app: &App,
        order: &FixOrder,
        result: &Result<Box<crate::domain::Fix>, String>,
        commands: &mut Vec<AppCommand>,
    ) {
        let before = self.queue.position();
        let done = result.as_ref().ok();
        match order {
            FixOrder::Apply(_) | FixOrder::ApplySuggestions(_) => {
                let applied = done.filter(|fix| fix.status == FixStatus::Applied);
                self.queue.apply_patched(applied.map(|fix| fix.fix_id.clone()));
            }
            FixOrder::Undo(fix) => self.queue.apply_unpatched(fix, done.is_some()),
            FixOrder::Make(_) | FixOrder::Drop(_) => {}
        }
        let findings: Vec<&str> = done.iter().flat_map(|fix| &fix.findings).map(|finding| finding.as_str()).collect();
        findings.iter().for_each(|finding| self.mark_stale(finding));
        self.mark_similar_stale(app, &findings);
        self.follow_queue(app, before, commands);
    }

    /// Shows the finding to which an answer has brought the queue back; else only the counts may have changed.
    fn follow_queue(&mut self, app: &App, before: Option<usize>, commands: &mut Vec<AppCommand>) {
        if self.queue.position() != before {
            self.show(app, commands);
        } else {
            self.request_cards(commands);
            self.build(app);
        }
    }

    /// Leaves triage mode: selects the shown finding in the list and says what was decided.
    fn close(&self, app: &mut App) -> ViewFlow {
        if let Some(item) = self.queue.current() {
            select_finding(app, &item.finding);
        }
        let said = summary::build_closing_line(app, &self.queue);
        app.show_notice(NoticeLevel::Success, said);
        ViewFlow::Close
    }
}
