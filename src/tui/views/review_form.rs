//! Form of a review request: scope, reviewer, force, and a forecast of the policy's answer.
//!
//! The forecast is computed on a thread of its own. Enter does not wait for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::prompt::{InputPromptKind, PromptView};
use super::window::draw_window;
use super::{KeyPress, View, ViewChange, ViewFlow, ViewReply, ViewRequest, with_labels};
use crate::domain::{Panel, RunId, Scope, Source, Time, text};
use crate::policy::ReviewAction;
use crate::report::figures::{format_brief, format_thousands};
use crate::runner::{
    BUILTIN_REVIEWER, CostLimit, MemberForecast, OfferedReviewer, RequestPreview, ReviewDemand, ReviewRequest,
    ReviewerTerms, Services,
};
use crate::tui::app::App;
use crate::tui::doc;
use crate::tui::draw::painter::Painter;
use crate::tui::effects::spawn_worker;
use crate::tui::event_source::MessageSender;
use crate::tui::input::KeyCode;
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::layout::ScreenLayout;
use crate::tui::line_edit::LineEdit;
use crate::tui::message::{AppCommand, AppMessage, ChosenReviewer};
use crate::tui::request_counter::RequestCounter;
use crate::tui::theme::Role;
use crate::tui::update::request_review;

/// Number of commits that the picker of commits searches, newest first.
const MAX_PICKED_COMMITS: usize = 2_000;
/// Columns of the names of the fields.
const NAME_COLUMNS: u16 = 10;
/// Characters of a shortened run id: `ar_`, and enough of the time in it to tell the runs of a second apart.
const SHORT_ID_CHARS: usize = 13;
/// Width of the form where the screen has room for it.
const MIN_WIDTH: u16 = 96;
/// Lines of the forecast at most.
const MAX_FORECAST_LINES: usize = 5;

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
    /// Opens the prompt for a commit.
    Commit,
    /// Opens the prompt for a range.
    Range,
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

/// Open form.
#[derive(Debug)]
pub struct ReviewFormView {
    items: Vec<ScopeItem>,
    selected: usize,
    /// Index of the chosen reviewer in the facts; `None` for the reviewer of the scope.
    reviewer: Option<usize>,
    force: bool,
    forecast: Forecast,
    serials: RequestCounter,
}

/// Opens the form: first what nobody has reviewed, then the usual scopes by the default reviewer.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    let mut form = ReviewFormView {
        items: list_scopes(app),
        selected: 0,
        reviewer: None,
        force: false,
        forecast: Forecast::Awaited,
        serials: RequestCounter::default(),
    };
    commands.push(AppCommand::View(ViewRequest::ReviewForm(ReviewFormRequest::Facts)));
    form.request_forecast(app, commands);
    app.views.open(form);
}

/// Lists the scopes of the form. A change that nobody has reviewed is offered by the built-in reviewer.
fn list_scopes(app: &App) -> Vec<ScopeItem> {
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
        asked("a commit", "searches subjects, or any revision", ScopeChoice::Commit),
        asked("a range", "A..B or A...B, or the commits since one", ScopeChoice::Range),
        usual("everything", "the whole tree", Some(Scope::All)),
    ]);
    items
}

impl ReviewFormView {
    /// Returns the reviewer of the request: the chosen one, else that of the scope.
    fn chosen_reviewer(&self, app: &App) -> ChosenReviewer {
        let named = self.reviewer.and_then(|at| app.review_facts.reviewers.get(at));
        match named {
            Some(offered) => ChosenReviewer::Named(offered.terms.name.clone()),
            None => self.items.get(self.selected).map_or(ChosenReviewer::Default, |item| item.reviewer.clone()),
        }
    }

    /// Returns the index of the shown reviewer in the facts; `None` before the facts are there.
    fn reviewer_index(&self, app: &App) -> Option<usize> {
        let reviewers = &app.review_facts.reviewers;
        let name = match self.chosen_reviewer(app) {
            ChosenReviewer::Default => return (!reviewers.is_empty()).then_some(0),
            ChosenReviewer::Builtin => BUILTIN_REVIEWER.to_owned(),
            ChosenReviewer::Named(name) => name,
        };
        reviewers.iter().position(|offered| offered.terms.name == name)
    }

    fn switch_reviewer(&mut self, app: &App, forward: bool) {
        let count = app.review_facts.reviewers.len();
        if let Some(at) = self.reviewer_index(app).filter(|_| count > 1) {
            self.reviewer = Some(if forward { (at + 1) % count } else { (at + count - 1) % count });
        }
    }

    fn request_forecast(&mut self, app: &App, commands: &mut Vec<AppCommand>) {
        let Some(ScopeChoice::Scope(scope)) = self.items.get(self.selected).map(|item| item.choice.clone()) else {
            self.forecast = Forecast::Unneeded;
            return;
        };
        self.forecast = Forecast::Awaited;
        let serial = self.serials.begin();
        let reviewer = self.chosen_reviewer(app);
        let request = ReviewFormRequest::Preview { serial, scope, reviewer, force: self.force };
        commands.push(AppCommand::View(ViewRequest::ReviewForm(request)));
    }

    /// Requests the review, or opens the prompt for a revision.
    fn accept(&self, app: &mut App, commands: &mut Vec<AppCommand>) {
        let Some(item) = self.items.get(self.selected) else { return };
        let (reviewer, force) = (self.chosen_reviewer(app), self.force);
        match &item.choice {
            ScopeChoice::Scope(scope) => request_review(app, scope.clone(), reviewer, force, commands),
            ScopeChoice::Commit => {
                let kind = InputPromptKind::Commit { reviewer, force };
                app.views.open(PromptView::new(kind, LineEdit::with_suggestion("HEAD~1")));
            }
            ScopeChoice::Range => {
                app.views.open(PromptView::new(InputPromptKind::Range { reviewer, force }, LineEdit::default()));
            }
        }
    }

    /// Returns the title with the reviewer and the most that the review may cost.
    fn title(&self, app: &App) -> String {
        let known = self.reviewer_index(app).map(|at| &app.review_facts.reviewers[at].terms);
        let terms =
            known.or_else(|| app.paid_reviewer().filter(|_| self.chosen_reviewer(app) == ChosenReviewer::Default));
        match terms {
            None if self.chosen_reviewer(app) == ChosenReviewer::Builtin => {
                format!("Review by {BUILTIN_REVIEWER}, at no cost")
            }
            Some(ReviewerTerms { name, limit }) => format!("Review by {}, {limit}", name_reviewer(name)),
            None => "Review".to_owned(),
        }
    }

    fn draw_scopes(&self, painter: &mut Painter<'_>, inside: Rect) {
        let label = self.items.iter().map(|item| item.label.width()).max().unwrap_or(0) as u16;
        let bar = painter.style(Role::Selected);
        for ((row, item), y) in self.items.iter().enumerate().zip(inside.y..inside.bottom()) {
            if row == self.selected {
                painter.fill(Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
                painter.set_overlay_style(Some(ratatui::style::Style { fg: None, ..bar }));
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
        let name = match (self.reviewer_index(app), self.chosen_reviewer(app)) {
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
            Forecast::Unneeded => vec![("the next step asks which one".to_owned(), Role::Muted)],
            Forecast::Known(result) => match result.as_ref() {
                Err(error) => vec![(error.clone(), Role::Bad)],
                Ok(preview) => {
                    let limit = self.reviewer_index(app).map(|at| app.review_facts.reviewers[at].terms.limit);
                    describe_preview(preview, preview.member_limit.or(limit))
                }
            },
        };
        let wrapped = lines.into_iter().flat_map(|(line, role)| {
            doc::wrap_words(&text::sanitize_line(&line), width).into_iter().map(move |line| (line, role))
        });
        wrapped.take(MAX_FORECAST_LINES).collect()
    }
}

/// Describes a forecast: the size of the change, the decision, and what is sent.
fn describe_preview(preview: &RequestPreview, limit: Option<CostLimit>) -> Vec<(String, Role)> {
    let RequestPreview { scope, files, hunks, lines, left_out, decision, .. } = preview;
    let mut size = format!(
        "{scope}: {}, {}, {}",
        text::format_count(*files, "file"),
        text::format_count(*hunks, "hunk"),
        format_changed_lines(*lines)
    );
    if *left_out > 0 {
        size.push_str(&format!(", {} left out", text::format_count(*left_out, "file")));
    }
    let mut described = vec![(size, Role::Normal)];
    let saved = match decision.saved_token_estimate {
        0 => String::new(),
        tokens => format!("; saves about {}", format_tokens(tokens)),
    };
    let starts = matches!(decision.action, ReviewAction::Launch | ReviewAction::Resume { .. });
    let answer = match &decision.action {
        ReviewAction::Launch => format!("starts a review: {}", decision.reason),
        ReviewAction::Resume { from } => format!("goes on with {}: {}", shorten_id(from), decision.reason),
        ReviewAction::Adopt { run } => format!("joins {}, 0 tokens: {}{saved}", shorten_id(run), decision.reason),
        ReviewAction::Reuse { run } => format!("reuses {}, 0 tokens: {}{saved}", shorten_id(run), decision.reason),
        ReviewAction::Skip => format!("starts nothing: {}", decision.reason),
    };
    described.push((answer, if starts { Role::Normal } else { Role::Good }));
    if starts {
        described.extend(describe_members(&preview.members).map(|line| (line, Role::Normal)));
        described.extend(describe_sending(preview, limit).map(|line| (line, Role::Muted)));
    }
    described
}

/// Returns the name of a reviewer as people say it: `sonnet`, `panel three`.
fn name_reviewer(name: &str) -> String {
    match Panel::name_of(name) {
        Some(panel) => format!("panel {}", text::sanitize_line(panel)),
        None => text::sanitize_line(name).into_owned(),
    }
}

/// Describes what becomes of the members of a panel: `sonnet, builtin: reused; gpt, gemini: ~8k tokens`. `None` without
/// members.
fn describe_members(members: &[MemberForecast]) -> Option<String> {
    let list = |wanted: &dyn Fn(&MemberForecast) -> bool, said: &str| {
        let named = members.iter().filter(|member| wanted(member)).map(|member| member.reviewer.as_str());
        let named: Vec<&str> = named.collect();
        (!named.is_empty()).then(|| format!("{}: {said}", named.join(", ")))
    };
    let sends = |member: &MemberForecast| member.starts() && member.tokens > 0;
    let tokens: u64 = members.iter().filter(|member| sends(member)).map(|member| member.tokens).sum();
    let parts = [
        list(&|member| matches!(member.action, ReviewAction::Reuse { .. }), "reused"),
        list(&|member| matches!(member.action, ReviewAction::Adopt { .. }), "under way"),
        list(&|member| matches!(member.action, ReviewAction::Skip), "nothing to review"),
        list(&|member| member.starts() && !sends(member), "0 tokens"),
        list(&sends, &format!("~{}", format_tokens(tokens))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the beginning of a run's id, which commands accept in place of the whole.
fn shorten_id(run: &RunId) -> &str {
    run.as_str().get(..SHORT_ID_CHARS).unwrap_or(run.as_str())
}

/// Formats a number of changed lines: `1 changed line`, `1,204 changed lines`.
fn format_changed_lines(lines: u64) -> String {
    let ending = if lines == 1 { "" } else { "s" };
    format!("{} changed line{ending}", format_thousands(lines))
}

/// Describes the hunks that need not be sent again, the tokens and price of the first request, and the most that the
/// review may cost. Each further request sends the conversation again, and nobody knows how many there will be.
fn describe_sending(preview: &RequestPreview, limit: Option<CostLimit>) -> Option<String> {
    let mut parts = Vec::new();
    match preview.carried_hunks {
        Some(carried) if carried > 0 => {
            let rest = preview.hunks.saturating_sub(carried);
            parts.push(format!("up to {} carried over, {rest} to review", text::format_count(carried, "hunk")));
        }
        _ => {}
    }
    if preview.tokens > 0 {
        let price = match preview.input_cost {
            Some(dollars) if dollars > 0.0 => format!(" (${:.2})", (dollars * 100.0).ceil() / 100.0),
            _ => String::new(),
        };
        let first = if preview.members.is_empty() { "first request" } else { "first requests" };
        parts.push(format!("{first} ~{}{price}", format_tokens(preview.tokens)));
    }
    let sent = parts.join(", ");
    let most = limit.map_or_else(String::new, |limit| limit.to_string());
    let gap = if sent.is_empty() || most.is_empty() { "" } else { "; " };
    let said = format!("{sent}{gap}{most}");
    (!said.is_empty()).then_some(said)
}

/// Formats a number of tokens: `900 tokens`, `24k tokens`.
fn format_tokens(tokens: u64) -> String {
    format!("{} tokens", format_brief(tokens))
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
                self.selected = at;
                self.accept(app, commands);
                return ViewFlow::Close;
            }
            _ => return ViewFlow::Open,
        }
        self.request_forecast(app, commands);
        ViewFlow::Open
    }

    fn update(&mut self, app: &mut App, change: &ViewChange<'_>, commands: &mut Vec<AppCommand>) {
        match change {
            ViewChange::Reply(ViewReply::ReviewForm(ReviewFormReply::Preview { serial, result }))
                if self.serials.accept(*serial) && !self.serials.is_waiting() =>
            {
                self.forecast = Forecast::Known(result.clone());
            }
            // A run that ended or began may answer the request.
            ViewChange::StoreRead(_) if !self.serials.is_waiting() && self.forecast != Forecast::Unneeded => {
                let shown = std::mem::replace(&mut self.forecast, Forecast::Awaited);
                self.request_forecast(app, commands);
                self.forecast = shown;
            }
            _ => {}
        }
    }

    fn draw(&self, painter: &mut Painter<'_>, _layout: &ScreenLayout) {
        let app = painter.app;
        let title = self.title(app);
        let label = self.items.iter().map(|item| item.label.width()).max().unwrap_or(0);
        let hint = self.items.iter().map(|item| item.hint.width()).max().unwrap_or(0);
        let width = ((label + hint + 12).max(title.width() + 6) as u16).max(MIN_WIDTH);
        let rows = self.items.len() as u16;
        let inside = draw_window(painter, width, rows + 4 + MAX_FORECAST_LINES as u16 + 2, false, &title);
        self.draw_scopes(painter, Rect { height: inside.height.min(rows), ..inside });
        let mut row = Rect { y: inside.y + rows + 1, height: 1, ..inside };
        for (name, value, action) in [
            ("reviewer", self.describe_reviewer(app), Action::NextReviewer),
            ("force", if self.force { "yes" } else { "no" }.to_owned(), Action::Force),
        ] {
            if row.y < inside.bottom() {
                Self::draw_field(painter, row, name, &value, action);
            }
            row.y += 1;
        }
        row.y += 1;
        for (line, role) in self.describe_forecast(app, usize::from(inside.width)) {
            if row.y >= inside.bottom() {
                break;
            }
            painter.draw_text(row.x, row.y, row.width, &line, role);
            row.y += 1;
        }
    }

    fn footer(&self, _app: &App) -> Vec<(Action, &'static str)> {
        with_labels([Action::Accept, Action::Down, Action::Up, Action::NextReviewer, Action::Force, Action::Abort])
    }
}

/// Starts the thread of the form. It answers only the newest of the forecasts that wait.
pub fn start_worker(services: &Services, messages: &MessageSender) -> Sender<ReviewFormRequest> {
    let (requests, orders) = channel();
    if let Some(services) = services.open_again() {
        let send = messages.clone();
        spawn_worker("form", messages.clone(), move || serve_requests(&services, &orders, &send));
    }
    requests
}

fn serve_requests(services: &Services, orders: &Receiver<ReviewFormRequest>, messages: &MessageSender) {
    while let Ok(first) = orders.recv() {
        let mut newest = None;
        for request in std::iter::once(first).chain(orders.try_iter()) {
            let ReviewFormRequest::Facts = request else {
                newest = Some(request);
                continue;
            };
            let facts = read_facts(services).map(Arc::new);
            if messages.send(AppMessage::View(ViewReply::ReviewForm(ReviewFormReply::Facts(facts)))).is_err() {
                return;
            }
        }
        let Some(ReviewFormRequest::Preview { serial, scope, reviewer, force }) = newest else { continue };
        let request = ReviewRequest {
            scope,
            reviewer: reviewer.into_name(),
            prompt_set: None,
            source: Source::Cockpit,
            started_in_session: 0,
            demand: ReviewDemand::anew_if(force),
        };
        let result = services.launcher().preview_request(&request).map_err(|error| error.to_string());
        let reply = ReviewFormReply::Preview { serial, result: Box::new(result) };
        if messages.send(AppMessage::View(ViewReply::ReviewForm(reply))).is_err() {
            return;
        }
    }
}

fn read_facts(services: &Services) -> Result<ReviewFormFacts, String> {
    let reviewers = services.launcher().list_offered_reviewers().map_err(|error| error.to_string())?;
    // A repository without commits has none to pick.
    let commits = services.repo.recent_commits(MAX_PICKED_COMMITS).unwrap_or_default();
    let commits = commits.into_iter().map(|commit| OfferedCommit {
        id: commit.short_id,
        subject: text::sanitize_line(&commit.subject).into_owned(),
        time: commit.time,
    });
    let branches = services.repo.branch_names().unwrap_or_default();
    let tags = services.repo.tag_names().unwrap_or_default();
    Ok(ReviewFormFacts { reviewers, commits: commits.collect(), branches, tags })
}
