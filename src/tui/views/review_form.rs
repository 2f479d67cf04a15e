//! Form of a review request: scope, reviewer, force, and a forecast of the policy's answer.
//!
//! The forecast is computed on a thread of its own. Enter does not wait for it. A commit or a range is picked in a prompt,
//! which hands it back to the form: nothing starts before the form has shown its forecast, too.

mod forecast;
mod worker;

use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::prompt::{AskedPrompt, InputPromptKind, PromptView};
use super::window::{draw_window, place_window};
use super::{KeyPress, View, ViewChange, ViewFlow, ViewReply, ViewRequest, with_labels};
use crate::domain::{Panel, Scope, Time, text};
use crate::runner::{BUILTIN_REVIEWER, CostLimit, OfferedReviewer, RequestPreview, ReviewerTerms};
use crate::tui::app::App;
use crate::tui::doc;
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::draw::window_overlay_style;
use crate::tui::input::KeyCode;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::{AppCommand, ChosenReviewer};
use crate::tui::request_counter::RequestCounter;
use crate::tui::theme::Role;
use crate::tui::update::request_review;
use forecast::describe_preview;
pub(crate) use worker::start_worker;

/// Columns of the names of the fields.
const NAME_COLUMNS: u16 = 10;
/// Width of the form where the screen has room for it.
const MIN_WIDTH: u16 = 96;
/// Rows of the fields: reviewer and force.
const FIELD_ROWS: u16 = 2;
/// Rows of scopes that stay in sight on a low screen, where it has so many.
const MIN_SCOPE_ROWS: u16 = 4;
/// Lines of the forecast at most.
const MAX_FORECAST_LINES: usize = 5;
/// Further lines for a forecast with reviewers that have no key, or whose cost no limit can count.
const NOTE_LINES: usize = 2;

/// Commit that a picker offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedCommit {
    /// Shortened id.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Commit time.
    pub time: Time,
}

/// Reviewers, commits and branches of the repository, as the form found them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReviewFormFacts {
    /// Reviewers, the default one first.
    pub reviewers: Vec<OfferedReviewer>,
    /// Commits of HEAD, newest first.
    pub commits: Vec<OfferedCommit>,
    /// Local branches, sorted by name.
    pub branches: Vec<String>,
    /// Tags. They are not offered, but a typed one is taken as it is.
    pub tags: Vec<String>,
}

/// Request of the form to its thread.
#[derive(Debug)]
pub enum ReviewFormRequest {
    /// Lists reviewers, commits and branches.
    Facts,
    /// Forecasts the answer to a review request.
    Preview {
        /// Serial number, which the reply repeats.
        serial: u64,
        scope: Option<Scope>,
        reviewer: ChosenReviewer,
        force: bool,
    },
}

/// Reply of the form's thread.
#[derive(Debug)]
pub enum ReviewFormReply {
    Facts(Result<Arc<ReviewFormFacts>, String>),
    Preview { serial: u64, result: Box<Result<RequestPreview, String>> },
}

/// Scope that the form lists.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScopeItem {
    label: String,
    hint: String,
    choice: ScopeChoice,
    /// Reviewer while the user has chosen none.
    reviewer: ChosenReviewer,
}

/// Effect of a scope in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScopeChoice {
    /// This scope; `None` for the default scope.
    Scope(Option<Scope>),
    /// The commit that the user has picked; `None` before, when it opens the prompt for one.
    Commit(Option<String>),
    /// The range that the user has picked; `None` before, when it opens the prompt for one.
    Range(Option<String>),
}

impl ScopeChoice {
    /// Returns the scope of the request; `None` before a revision is picked.
    fn to_request(&self) -> Option<RequestedScope> {
        match self {
            Self::Scope(scope) => Some(RequestedScope(scope.clone())),
            Self::Commit(picked) => picked.clone().map(|commit| RequestedScope(Some(Scope::Commit(commit)))),
            Self::Range(picked) => {
                picked.as_deref().and_then(Scope::parse_range).map(|range| RequestedScope(Some(range)))
            }
        }
    }

    /// Returns the text of the revision that the user has picked.
    fn picked(&self) -> Option<&str> {
        match self {
            Self::Scope(_) => None,
            Self::Commit(picked) | Self::Range(picked) => picked.as_deref(),
        }
    }
}

/// Scope of a request; `None` for the default scope.
struct RequestedScope(Option<Scope>);

/// Content of the form while a prompt for a revision stands in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReviewDraft {
    /// Picked commit.
    commit: Option<String>,
    /// Picked range, as [`Scope::parse_range`] reads it.
    range: Option<String>,
    /// Name of the chosen reviewer; `None` for the reviewer of the scope.
    reviewer: Option<String>,
    force: bool,
    /// Requested forecasts: a late one is for the earlier form.
    serials: RequestCounter,
}

/// Forecast for the selected scope, reviewer and force.
#[derive(Debug, Clone, PartialEq)]
enum Forecast {
    /// Requested and not yet there.
    Awaited,
    /// There is none before a revision is named.
    Unneeded,
    Known(Box<Result<RequestPreview, String>>),
}

/// Rows of the form in its window.
struct FormRows {
    /// First scope in sight, by its index.
    first: usize,
    /// Rows of scopes.
    scopes: u16,
    /// Blank rows above the fields, and above the forecast.
    gap: u16,
}

/// Open form.
#[derive(Debug)]
pub struct ReviewFormView {
    items: Vec<ScopeItem>,
    selected: usize,
    /// Name of the chosen reviewer; `None` for the reviewer of the scope.
    reviewer: Option<String>,
    force: bool,
    forecast: Forecast,
    serials: RequestCounter,
}

/// Opens the form: first what nobody has reviewed, then the usual scopes by the default reviewer.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    commands.push(AppCommand::View(ViewRequest::ReviewForm(ReviewFormRequest::Facts)));
    open_draft(app, ReviewDraft::default(), |_| true, commands);
}

/// Opens the form with a picked commit, which is selected.
pub fn open_with_commit(app: &mut App, draft: ReviewDraft, commit: Option<String>, commands: &mut Vec<AppCommand>) {
    let draft = ReviewDraft { commit: commit.or(draft.commit), ..draft };
    open_draft(app, draft, |choice| matches!(choice, ScopeChoice::Commit(_)), commands);
}

/// Opens the form with a picked range, which is selected.
pub fn open_with_range(app: &mut App, draft: ReviewDraft, range: Option<String>, commands: &mut Vec<AppCommand>) {
    let draft = ReviewDraft { range: range.or(draft.range), ..draft };
    open_draft(app, draft, |choice| matches!(choice, ScopeChoice::Range(_)), commands);
}

/// Opens the form with this content; the first scope for which `is_selected` returns true is selected.
fn open_draft(
    app: &mut App,
    draft: ReviewDraft,
    is_selected: impl Fn(&ScopeChoice) -> bool,
    commands: &mut Vec<AppCommand>,
) {
    let items = list_scopes(app, &draft);
    let mut form = ReviewFormView {
        selected: items.iter().position(|item| is_selected(&item.choice)).unwrap_or(0),
        items,
        reviewer: draft.reviewer,
        force: draft.force,
        forecast: Forecast::Awaited,
        serials: draft.serials,
    };
    form.request_forecast(commands);
    app.views.open(form);
}

/// Lists the scopes of the form. A change that nobody has reviewed is offered by the built-in reviewer.
fn list_scopes(app: &App, draft: &ReviewDraft) -> Vec<ScopeItem> {
    let branch = if app.session.branch.is_empty() { "HEAD" } else { app.session.branch.as_str() };
    let free = format!("by {BUILTIN_REVIEWER}, offline and at no cost");
    let item = |label: &str, hint: &str, choice, reviewer| ScopeItem {
        label: label.to_owned(),
        hint: hint.to_owned(),
        choice,
        reviewer,
    };
    let usual = |label: &str, hint: &str, scope| item(label, hint, ScopeChoice::Scope(scope), ChosenReviewer::Default);
    let asked = |label: &str, hint: &str, choice| {
        let label = format!("{label}{}", app.display.glyphs.ellipsis);
        item(&label, hint, choice, ChosenReviewer::Default)
    };
    let offered = app.offered.iter().map(|change| {
        let choice = ScopeChoice::Scope(Some(change.scope.clone()));
        item(&change.text, &free, choice, ChosenReviewer::Builtin)
    });
    let mut items: Vec<ScopeItem> = offered.collect();
    items.extend([
        usual("what changed", "uncommitted changes, else the last commit", None),
        usual("uncommitted changes", "untracked files included", Some(Scope::Worktree)),
        usual("staged changes", "what the next commit would hold", Some(Scope::Staged)),
        usual("last commit", "HEAD against its parent", Some(Scope::Commit("HEAD".to_owned()))),
        usual("branch", &format!("{branch} since it left its base"), Some(Scope::Branch(None))),
        asked("a commit", "searches subjects, or any revision", ScopeChoice::Commit(draft.commit.clone())),
        asked("a range", "A..B or A...B, or the commits since one", ScopeChoice::Range(draft.range.clone())),
        usual("everything", "the whole tree", Some(Scope::All)),
    ]);
    for (item, digit) in items.iter_mut().zip('1'..='9') {
        if let Some(picked) = item.choice.picked() {
            item.hint = format!("{}; {digit} picks another", describe_picked(app, picked));
        }
    }
    items
}

/// Describes a picked revision: with the subject, if it is a listed commit.
fn describe_picked(app: &App, picked: &str) -> String {
    let commit = app.review_facts.commits.iter().find(|commit| commit.id == picked);
    let (opening, closing) = app.display.glyphs.quotes;
    match commit {
        Some(commit) => format!("{picked} {opening}{}{closing}", commit.subject),
        None => picked.to_owned(),
    }
}

impl ReviewFormView {
    /// Returns the reviewer of the request: the chosen one, else that of the scope.
    fn chosen_reviewer(&self) -> ChosenReviewer {
        match &self.reviewer {
            Some(name) => ChosenReviewer::Named(name.clone()),
            None => self.items.get(self.selected).map_or(ChosenReviewer::Default, |item| item.reviewer.clone()),
        }
    }

    /// Returns the index of the shown reviewer in the facts; `None` before the facts are there.
    fn reviewer_index(&self, app: &App) -> Option<usize> {
        let reviewers = &app.review_facts.reviewers;
        let name = match self.chosen_reviewer() {
            ChosenReviewer::Default => return (!reviewers.is_empty()).then_some(0),
            ChosenReviewer::Builtin => BUILTIN_REVIEWER.to_owned(),
            ChosenReviewer::Named(name) => name,
        };
        reviewers.iter().position(|offered| offered.terms.name == name)
    }

    /// Returns true if the shown reviewer costs nothing; false before that is known.
    fn is_free(&self, app: &App) -> bool {
        let listed = self.reviewer_index(app).map(|at| &app.review_facts.reviewers[at].terms);
        let terms = match self.chosen_reviewer() {
            ChosenReviewer::Builtin => return true,
            // The default reviewer may be known before the others.
            ChosenReviewer::Default => listed.or(app.session.reviewer.as_ref()),
            ChosenReviewer::Named(_) => listed,
        };
        terms.is_some_and(|terms| terms.limit == CostLimit::Nothing)
    }

    fn switch_reviewer(&mut self, app: &App, forward: bool) {
        let count = app.review_facts.reviewers.len();
        if let Some(at) = self.reviewer_index(app).filter(|_| count > 1) {
            let step = if forward { 1 } else { count - 1 };
            self.reviewer = Some(app.review_facts.reviewers[(at + step) % count].terms.name.clone());
        }
    }

    fn request_forecast(&mut self, commands: &mut Vec<AppCommand>) {
        let item = self.items.get(self.selected);
        let Some(RequestedScope(scope)) = item.and_then(|item| item.choice.to_request()) else {
            self.forecast = Forecast::Unneeded;
            return;
        };
        self.forecast = Forecast::Awaited;
        let serial = self.serials.begin();
        let reviewer = self.chosen_reviewer();
        let request = ReviewFormRequest::Preview { serial, scope, reviewer, force: self.force };
        commands.push(AppCommand::View(ViewRequest::ReviewForm(request)));
    }

    /// Requests the review. Opens the prompt for a revision instead if none is picked, or if the forecast has refused it.
    fn accept(&self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let Some(item) = self.items.get(self.selected) else { return };
        let Some(RequestedScope(scope)) = item.choice.to_request() else { return self.open_picker(app, "") };
        let kind = self.picker_kind();
        if kind.is_some()
            && let Forecast::Known(result) = &self.forecast
            && let Err(error) = result.as_ref()
        {
            return self.open_picker(app, error);
        }
        request_review(app, scope, self.chosen_reviewer(), self.force, commands);
        let text = item.choice.picked().unwrap_or_default().to_owned();
        app.asked_prompt = kind.map(|kind| AskedPrompt { kind, text });
    }

    /// Opens the prompt for the revision of the selected scope, which takes the place of the form. It says why the picked
    /// one was refused; `error` is empty if none was.
    fn open_picker(&self, app: &mut App, error: &str) {
        let Some(kind) = self.picker_kind() else { return };
        let picked = self.items.get(self.selected).and_then(|item| item.choice.picked());
        let line = match (&kind, picked) {
            (_, Some(picked)) => LineEdit::with_suggestion(picked),
            (InputPromptKind::Commit { .. }, None) => LineEdit::with_suggestion("HEAD~1"),
            (_, None) => LineEdit::default(),
        };
        let mut prompt = PromptView::new(kind, line);
        prompt.error = text::sanitize_line(error).into_owned();
        app.views.open(prompt);
    }

    /// Returns the kind of the prompt for the selected scope; `None` for a scope without a revision to pick.
    fn picker_kind(&self) -> Option<InputPromptKind> {
        let draft = self.to_draft();
        match self.items.get(self.selected)?.choice {
            ScopeChoice::Scope(_) => None,
            ScopeChoice::Commit(_) => Some(InputPromptKind::Commit { draft }),
            ScopeChoice::Range(_) => Some(InputPromptKind::Range { draft }),
        }
    }

    fn to_draft(&self) -> ReviewDraft {
        let (reviewer, serials) = (self.reviewer.clone(), self.serials);
        let mut draft = ReviewDraft { reviewer, force: self.force, serials, ..ReviewDraft::default() };
        for item in &self.items {
            match &item.choice {
                ScopeChoice::Scope(_) => {}
                ScopeChoice::Commit(picked) => draft.commit.clone_from(picked),
                ScopeChoice::Range(picked) => draft.range.clone_from(picked),
            }
        }
        draft
    }

    /// Returns the title with the reviewer and the most that the review may cost.
    fn title(&self, app: &App) -> String {
        let known = self.reviewer_index(app).map(|at| &app.review_facts.reviewers[at].terms);
        let terms = known.or_else(|| app.paid_reviewer().filter(|_| self.chosen_reviewer() == ChosenReviewer::Default));
        match terms {
            None if self.chosen_reviewer() == ChosenReviewer::Builtin => {
                format!("Review by {BUILTIN_REVIEWER}, at no cost")
            }
            Some(ReviewerTerms { name, limit }) => format!("Review by {}, {limit}", name_reviewer(name)),
            None => "Review".to_owned(),
        }
    }

    /// Returns the number of lines of the forecast at most.
    fn max_forecast_lines(&self) -> usize {
        match &self.forecast {
            Forecast::Known(result) => match result.as_ref() {
                Ok(preview) if preview.uncounted.is_some() || preview.missing_key.is_some() => {
                    MAX_FORECAST_LINES + NOTE_LINES
                }
                _ => MAX_FORECAST_LINES,
            },
            _ => MAX_FORECAST_LINES,
        }
    }

    /// Arranges the rows in a window of this inner height, with so many lines of the forecast. On a low screen, the scopes scroll,
    /// so that the reviewer and the forecast with the cost stay in sight.
    fn arrange_rows(&self, height: u16, notes: usize) -> FormRows {
        let all = u16::try_from(self.items.len()).unwrap_or(u16::MAX);
        let below = FIELD_ROWS.saturating_add(u16::try_from(notes).unwrap_or(u16::MAX));
        if all.saturating_add(below).saturating_add(2) <= height {
            return FormRows { first: 0, scopes: all, gap: 1 };
        }
        let least = height.div_ceil(2).min(MIN_SCOPE_ROWS);
        let scopes = height.saturating_sub(below).max(least).min(all);
        FormRows { first: (self.selected + 1).saturating_sub(usize::from(scopes)), scopes, gap: 0 }
    }

    /// Returns the word for the key that accepts: some scopes ask for a revision first.
    fn accept_label(&self) -> &'static str {
        let is_refused = matches!(&self.forecast, Forecast::Known(result) if result.is_err());
        let picks = self.forecast == Forecast::Unneeded || (is_refused && self.picker_kind().is_some());
        if picks { "pick" } else { "start" }
    }

    /// Returns the width and the height of the window.
    fn window_size(&self, title: &str) -> (u16, u16) {
        let label = self.items.iter().map(|item| item.label.width()).max().unwrap_or(0);
        let hint = self.items.iter().map(|item| item.hint.width()).max().unwrap_or(0);
        let width = ((label + hint + 12).max(title.width() + 6) as u16).max(MIN_WIDTH);
        (width, self.items.len() as u16 + 4 + self.max_forecast_lines() as u16 + 2)
    }

    fn draw_scopes(&self, painter: &mut Painter<'_>, inside: Rect, first: usize) {
        let label = self.items.iter().map(|item| item.label.width()).max().unwrap_or(0) as u16;
        let bar = painter.style(Role::Selected);
        for ((row, item), y) in self.items.iter().enumerate().skip(first).zip(inside.y..inside.bottom()) {
            if row == self.selected {
                painter.fill(Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
                painter.set_overlay_style(Some(window_overlay_style(bar)));
            }
            painter.draw_text(inside.x, y, 2, &(row + 1).to_string(), Role::Key);
            painter.draw_text(inside.x + 3, y, label, &item.label, Role::Normal);
            let x = inside.x + 3 + label + 3;
            painter.draw_text(x, y, inside.right().saturating_sub(x), &item.hint, Role::Muted);
            painter.set_overlay_style(None);
        }
    }

    /// Draws a field: its name, its value, and the key that changes it.
    fn draw_field(painter: &mut Painter<'_>, row: Rect, name: &str, value: &str, action: Action) {
        painter.draw_text(row.x, row.y, NAME_COLUMNS, name, Role::Muted);
        let x = row.x + NAME_COLUMNS;
        let width = row.right().saturating_sub(x);
        let used = painter.draw_text(x, row.y, width, value, Role::Normal);
        if let Some(key) = painter.app.keymap.key_of(KeyContext::ReviewForm, action) {
            painter.draw_text(x + used + 2, row.y, width.saturating_sub(used + 2), &key.to_string(), Role::Key);
        }
    }

    fn describe_reviewer(&self, app: &App) -> String {
        let name = match (self.reviewer_index(app), self.chosen_reviewer()) {
            (Some(at), _) => app.review_facts.reviewers[at].terms.name.clone(),
            (None, ChosenReviewer::Builtin) => BUILTIN_REVIEWER.to_owned(),
            (None, ChosenReviewer::Named(name)) => name,
            (None, ChosenReviewer::Default) => match app.paid_reviewer() {
                Some(terms) => terms.name.clone(),
                None => "the default reviewer".to_owned(),
            },
        };
        let mut name = name_reviewer(&name);
        let members = self.reviewer_index(app).map_or(&[][..], |at| app.review_facts.reviewers[at].members.as_slice());
        if !members.is_empty() {
            name = format!("{name}: {}", text::sanitize_line(&members.join(" + ")));
        }
        match self.reviewer_index(app).and_then(|at| app.review_facts.reviewers[at].obstacle.as_deref()) {
            Some(obstacle) => format!("{name}: {}", text::sanitize_line(obstacle)),
            None => name,
        }
    }

    /// Returns the lines of the forecast with their roles.
    fn describe_forecast(&self, app: &App, width: usize) -> Vec<(String, Role)> {
        let lines = match &self.forecast {
            Forecast::Awaited => vec![(format!("looking{}", app.display.glyphs.ellipsis), Role::Muted)],
            Forecast::Unneeded => {
                vec![("Enter asks which one; its forecast comes before anything starts".to_owned(), Role::Muted)]
            }
            Forecast::Known(result) => match result.as_ref() {
                Err(error) => vec![(error.clone(), Role::Bad)],
                Ok(preview) => {
                    let limit = self.reviewer_index(app).map(|at| app.review_facts.reviewers[at].terms.limit);
                    describe_preview(app, preview, preview.limit.or(limit))
                }
            },
        };
        let wrapped = lines.into_iter().flat_map(|(line, role)| {
            doc::wrap_words(&text::sanitize_line(&line), width).into_iter().map(move |line| (line, role))
        });
        wrapped.take(self.max_forecast_lines()).collect()
    }
}

/// Returns the name of a reviewer as people say it: `sonnet`, `panel three`.
fn name_reviewer(name: &str) -> String {
    text::sanitize_line(&Panel::describe_reviewer(name)).into_owned()
}

impl View for ReviewFormView {
    fn key_context(&self) -> KeyContext {
        KeyContext::ReviewForm
    }

    fn handle_key(&mut self, app: &mut App, press: KeyPress, commands: &mut Vec<AppCommand>) -> ViewFlow {
        match (press.action, press.key.code) {
            (Some(Action::Down), _) => self.selected = (self.selected + 1).min(self.items.len().saturating_sub(1)),
            (Some(Action::Up), _) => self.selected = self.selected.saturating_sub(1),
            (Some(action @ (Action::NextReviewer | Action::PreviousReviewer)), _) => {
                self.switch_reviewer(app, action == Action::NextReviewer);
            }
            (Some(Action::Force), _) => self.force = !self.force,
            (Some(Action::Abort), _) => return ViewFlow::Close,
            (Some(Action::Accept), _) => {
                self.accept(app, commands);
                return ViewFlow::Close;
            }
            (_, KeyCode::Char(c @ '1'..='9')) => {
                let at = c as usize - '1' as usize;
                if at >= self.items.len() {
                    return ViewFlow::Open;
                }
                let is_shown = std::mem::replace(&mut self.selected, at) == at;
                // The digit of a revision picks one, or another one.
                if self.picker_kind().is_some() {
                    self.open_picker(app, "");
                    return ViewFlow::Close;
                }
                // What may cost money starts when its forecast has been shown.
                if is_shown || self.is_free(app) {
                    self.accept(app, commands);
                    return ViewFlow::Close;
                }
            }
            _ => return ViewFlow::Open,
        }
        self.request_forecast(commands);
        ViewFlow::Open
    }

    /// Selects the scope under the pointer, and a double click requests its review; a click on a field changes it.
    fn handle_click(
        &mut self,
        app: &mut App,
        cell: Position,
        is_double: bool,
        commands: &mut Vec<AppCommand>,
    ) -> ViewFlow {
        let (width, height) = self.window_size(&self.title(app));
        let (_, inside) = place_window(app, width, height, false);
        if !inside.contains(cell) {
            return ViewFlow::Open;
        }
        let rows = self.arrange_rows(inside.height, self.describe_forecast(app, usize::from(inside.width)).len());
        let row = cell.y - inside.y;
        if row < rows.scopes {
            let at = rows.first + usize::from(row);
            let is_new = self.selected != at;
            self.selected = at;
            if is_double {
                self.accept(app, commands);
                return ViewFlow::Close;
            }
            if is_new {
                self.request_forecast(commands);
            }
            return ViewFlow::Open;
        }
        match row.checked_sub(rows.scopes + rows.gap) {
            Some(0) => self.switch_reviewer(app, true),
            Some(1) => self.force = !self.force,
            _ => return ViewFlow::Open,
        }
        self.request_forecast(commands);
        ViewFlow::Open
    }

    fn update(&mut self, _app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            // A late forecast is for the scope before, not for a revision that is still to be picked.
            ViewChange::Reply(ViewReply::ReviewForm(ReviewFormReply::Preview { serial, result }))
                if self.serials.accept(*serial)
                    && !self.serials.is_waiting()
                    && self.forecast != Forecast::Unneeded =>
            {
                self.forecast = Forecast::Known(result.clone());
            }
            // A run that ended or began may answer the request.
            ViewChange::StoreRead(_) if !self.serials.is_waiting() && self.forecast != Forecast::Unneeded => {
                let shown = std::mem::replace(&mut self.forecast, Forecast::Awaited);
                self.request_forecast(commands);
                self.forecast = shown;
            }
            _ => {}
        }
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let app = painter.app;
        let title = self.title(app);
        let (width, height) = self.window_size(&title);
        let inside = draw_window(painter, width, height, false, &title);
        let notes = self.describe_forecast(app, usize::from(inside.width));
        let rows = self.arrange_rows(inside.height, notes.len());
        self.draw_scopes(painter, Rect { height: inside.height.min(rows.scopes), ..inside }, rows.first);
        let mut row = Rect { y: inside.y + rows.scopes + rows.gap, height: 1, ..inside };
        for (name, value, action) in [
            ("reviewer", self.describe_reviewer(app), Action::NextReviewer),
            ("force", if self.force { "yes" } else { "no" }.to_owned(), Action::Force),
        ] {
            if row.y < inside.bottom() {
                Self::draw_field(painter, row, name, &value, action);
            }
            row.y += 1;
        }
        row.y += rows.gap;
        for (line, role) in notes {
            if row.y >= inside.bottom() {
                break;
            }
            painter.draw_text(row.x, row.y, row.width, &line, role);
            row.y += 1;
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        let keys = with_labels([Action::Down, Action::Up, Action::NextReviewer, Action::Force, Action::Abort]);
        std::iter::once((Action::Accept, self.accept_label())).chain(keys).collect()
    }
}
