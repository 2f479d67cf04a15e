//! Defines `update(app, message) -> commands`: every decision of the cockpit, without IO and clock, testable as
//! tables of messages.
//!
//! - A decision about a finding is shown only after the message that it is stored.

mod announce;
mod ask;
pub(crate) use ask::{
    can_answer, describe_cost, dismiss_hint, finding_at_hand, finding_to_ask, next_answerer, plan_question_about,
    request_question,
};
mod command_forms;
mod comments;
pub(crate) use command_forms::{ask_or_run, say_not_run};
mod compare;
pub use compare::CodeLooks;
pub(crate) mod data;
mod files;
pub(crate) use files::list_reviews;
mod filter_line;
pub(crate) use comments::{comment_on_finding, withdraw_comment};
mod folds;
pub(crate) use filter_line::{accept_filter, apply_filter};
pub(crate) use folds::selected_fold as chosen_fold;
mod keys;
pub(crate) use keys::{focus_pane, go_to_row, open_diff, pausable_run, request_review, run_chosen_action};
mod marks;
pub(crate) use marks::commit_mark_range;
mod menus;
pub(crate) use menus::{build_file_order_menu, build_order_menu, build_run_order_menu};
mod mouse;
mod run_changes;
mod runs;
pub(crate) use runs::{arrange_runs, request_subjects};
mod search;
mod secrets;
pub(crate) use search::{
    describe_no_match, describe_position, find_row, is_in_diff, present_row, search_next, show_position,
};
mod triage;
pub(crate) use triage::{
    dismiss, open_note_prompt, open_rating_prompt, open_snooze_prompt, request_note, request_rating, request_snooze,
    request_verdict, select_finding,
};

use std::sync::Arc;

use super::app::{App, NoticeLevel, OpeningLook, Pane};
use super::diff;
use super::doc::{Doc, FollowMode};
use super::finding_texts::prepare_texts;
use super::input::TerminalInput;
use super::keymap::{Action, KeyContext};
use super::message::{AppCommand, AppMessage, CopyOrder, DetailSubject, ExitCause, ReviewReply, Tab};
use super::page_data::PageData;
use super::pages;
use super::theme::{Background, ThemeName};
use super::views::fix::FixIndex;
use super::views::{self, ViewChange, fix, prompt};
use crate::domain::{RunId, Usage, text};
use crate::runner::{BUILTIN_REVIEWER, OpeningOutcome, ReviewerTerms, UnreviewedChange};
use crate::store::Heartbeat;

/// Applies a message at time `now` (milliseconds since 1970) and returns the effects to execute.
pub fn update(app: &mut App, now: i64, message: AppMessage) -> Vec<AppCommand> {
    app.now = now;
    let mut commands = Vec::new();
    if let AppMessage::Input(TerminalInput::Key(_) | TerminalInput::Mouse(_) | TerminalInput::Paste(_)) = message {
        compare::look_after_input(app, &mut commands);
    }
    match message {
        AppMessage::Input(TerminalInput::Key(key)) => keys::handle_key(app, key, &mut commands),
        AppMessage::Input(TerminalInput::Mouse(event)) => mouse::handle_mouse(app, event, &mut commands),
        AppMessage::Input(TerminalInput::Paste(text)) => views::handle_paste(app, &text, &mut commands),
        AppMessage::Input(TerminalInput::Released) => secrets::release(app),
        AppMessage::Input(TerminalInput::FocusGained) => compare::look(app, &mut commands),
        // The event loop counts the answers.
        AppMessage::Input(TerminalInput::AnsweredAll | TerminalInput::AnsweredByWindowsTerminal) => {}
        AppMessage::Input(TerminalInput::ReportsReleases) => app.display.reports_releases = true,
        AppMessage::Input(TerminalInput::Background(rgb)) => apply_background(app, Background::from_rgb(rgb)),
        AppMessage::Resized { columns, rows } => {
            (app.display.columns, app.display.rows) = (columns, rows);
            scroll_to_selection(app);
            views::apply_change(app, &ViewChange::Resized, &mut commands);
        }
        AppMessage::Tick => {
            app.count = app.count.take().filter(|count| !count.has_timed_out(now));
            app.expire_notice();
            data::expire_snoozes(app, &mut commands);
        }
        AppMessage::StoreRead { view, written } => {
            views::apply_change(app, &ViewChange::StoreRead(&view), &mut commands);
            data::apply_view(app, view, written, &mut commands);
        }
        AppMessage::View(reply) => views::apply_reply(app, reply, &mut commands),
        AppMessage::Pulses(pulses) => apply_pulses(app, pulses, &mut commands),
        AppMessage::Freshness(mut facts) => {
            Arc::make_mut(&mut facts).keep_observed(&app.store.freshness);
            app.store.freshness = facts;
            if let Some(branch) = app.store.freshness.branch() {
                app.session.branch = branch.to_owned();
            }
            // A run has ended, or the repository has moved.
            compare::look(app, &mut commands);
            if app.store.view.run_count() == 0 {
                // The first view follows at once; until then there is no page to build.
                return commands;
            }
        }
        AppMessage::WorkersGone(runs) => announce::announce_dead_workers(app, &runs, &mut commands),
        AppMessage::ScopesCompared { result, took_ms } => compare::apply_look(app, result, took_ms, &mut commands),
        AppMessage::RepositoryGone(gone) => apply_presence(app, gone, &mut commands),
        AppMessage::StoreTrouble(text) => app.store.trouble = Some(text),
        AppMessage::PartStopped(text) => {
            // The first message has the cause.
            app.stopped_part.get_or_insert(text);
        }
        AppMessage::Filtered { serial, view, listed } => data::apply_filtered(app, serial, view, listed, &mut commands),
        // A masked page that was requested before the secrets were.
        AppMessage::Loaded { .. } if app.detail.revealed.is_some() => {}
        AppMessage::Loaded { subject, tab, loaded } => show_loaded_page(app, subject, tab, loaded),
        AppMessage::Revealed { subject, tab, loaded } => {
            if app.detail.revealed.as_ref() == Some(&(subject.clone(), tab)) {
                show_loaded_page(app, subject, tab, loaded);
            }
        }
        AppMessage::DiffFile { page, file, texts } => diff::apply_file(app, &page, file, texts, &mut commands),
        AppMessage::DiffMoves { page, moves } => diff::apply_moves(app, &page, moves),
        AppMessage::DiffHighlights(highlights) => diff::apply_highlights(app, &highlights, &mut commands),
        AppMessage::FindingWritten(result) => comments::apply_written(app, result),
        AppMessage::ViewedFiles(viewed) => diff::apply_viewed_files(app, &viewed),
        AppMessage::ViewedFile { mark, result } => diff::apply_viewed(app, &mark, result),
        AppMessage::ChangesMarked { marks, result } => diff::apply_marked_changes(app, &marks, result),
        AppMessage::FilesMarked { files, result } => files::apply_marked(app, &files, result),
        AppMessage::Files { run, files } => data::apply_files(app, &run, files),
        AppMessage::ReviewedFiles(files) => app.file_list.set_reviewed(files),
        AppMessage::FilesListed { serial, listed } => files::apply_listed_files(app, serial, listed),
        AppMessage::RunSubjects(subjects) => {
            Arc::make_mut(&mut app.run_list.subjects)
                .extend(subjects.into_iter().map(|(run, subject)| (run, Some(subject))));
        }
        AppMessage::Reported { run, findings } => data::apply_reported(app, run, findings, &mut commands),
        AppMessage::Triaged { order, result, written } => {
            triage::apply_stored(app, &order, result.clone(), written);
            views::apply_change(app, &ViewChange::Triaged { order: &order, result: &result }, &mut commands);
        }
        AppMessage::Noted(result) => triage::apply_noted(app, result),
        AppMessage::Rated(result) => triage::apply_rating(app, result, &mut commands),
        AppMessage::SnoozeStored(result) => triage::apply_snooze(app, result, &mut commands),
        AppMessage::Team(team) => data::apply_team(app, team, &mut commands),
        AppMessage::TeamFollowed(is_running) => app.store.has_lost_team = !is_running,
        AppMessage::TeamStopped(failure) => {
            app.append_notice(NoticeLevel::Error, format!("no exchange with the team: {failure}"));
        }
        AppMessage::Snoozed(snoozed) => data::apply_snoozed(app, snoozed, &mut commands),
        AppMessage::Requested(Ok(reply)) => apply_review_reply(app, &reply),
        AppMessage::Requested(Err(error)) => apply_refusal(app, format!("no review: {error}")),
        AppMessage::Opened { outcome, terms } => apply_opening(app, outcome, terms),
        AppMessage::Cancelled { result, .. } => {
            show_outcome(app, result.map_err(|error| format!("not cancelled: {error}")));
        }
        AppMessage::Paused(result) | AppMessage::Watched(result) => show_outcome(app, result),
        AppMessage::ProgramEnded(result) => {
            show_outcome(app, result);
            app.keep_notice();
        }
        AppMessage::FilterSaved(result) => show_outcome(app, result.map_err(|error| format!("not saved: {error}"))),
        AppMessage::ThemeKept(result) => apply_kept_theme(app, result),
        AppMessage::Reconciled(Some(summary)) => {
            app.show_notice(NoticeLevel::Info, summary);
            app.keep_notice();
        }
        AppMessage::Reconciled(None) => {}
        AppMessage::Watch(state) => app.store.watch = state,
        AppMessage::Fixes(fixes) => apply_fixes(app, fixes, &mut commands),
        AppMessage::DecidedToday { since, count } => app.decisions.today = Some((since, count)),
        AppMessage::LedgerDelivered => app.detail.stale |= app.detail.tab == Tab::Ledger,
        AppMessage::FixPlanned(plan) => fix::confirm_plan(app, plan),
        AppMessage::FixFinished { order, result } => {
            fix::show_result(app, &result);
            views::apply_change(app, &ViewChange::Fixed { order: &order, result: &result }, &mut commands);
        }
        AppMessage::QuestionPlanned(plan) => ask::open_question_prompt(app, plan),
        AppMessage::QuestionAsked(result) => ask::apply_asked(app, result, &mut commands),
        AppMessage::QuestionsAnswered(lines) => ask::apply_answers(app, &lines, &mut commands),
        AppMessage::Copied { order, program } => apply_copy(app, order, program, &mut commands),
        AppMessage::CopyFailed(error) => app.show_notice(NoticeLevel::Error, error),
        AppMessage::Edited(result) => {
            if let Err(error) = result {
                app.show_notice(NoticeLevel::Error, error);
            }
            commands.push(AppCommand::Redraw);
        }
        AppMessage::Ended(end) => commands.push(AppCommand::Quit(Some(end))),
        AppMessage::Resumed | AppMessage::Continued => commands.push(AppCommand::Redraw),
    }
    keys::drop_stale_sequence(app);
    sync_detail(app, &mut commands);
    prepare_texts(app);
    comments::forget_last_step(app, &commands);
    commands
}

/// Takes the terminal's background into the theme, if the theme follows it.
fn apply_background(app: &mut App, background: Background) {
    if app.display.themes.set_background(background) {
        app.display.theme = app.display.themes.theme();
        rebuild_page(app);
    }
}

/// Switches to the next theme until the end of the session, and says which key keeps it.
fn switch_theme(app: &mut App) {
    app.display.themes.switch_to_next();
    apply_theme(app);
}

/// Shows a built-in theme until the user quits.
pub(crate) fn show_theme(app: &mut App, name: ThemeName) {
    app.display.themes.switch_to(name);
    apply_theme(app);
}

/// Draws with the chosen theme.
pub(crate) fn refresh_theme(app: &mut App) {
    app.display.theme = app.display.themes.theme();
    rebuild_page(app);
}

fn apply_theme(app: &mut App) {
    refresh_theme(app);
    let display = &app.display;
    let (name, is_kept) = (display.themes.name().to_owned(), display.themes.is_kept());
    let key = app.keymap.key_of(KeyContext::Global, Action::KeepTheme).filter(|_| !is_kept);
    let hint = key.map_or_else(String::new, |key| format!("; {key} keeps it"));
    app.show_notice(NoticeLevel::Info, format!("theme {name}{hint}"));
}

/// Asks to write the theme on the screen into the user's settings.
pub(crate) fn keep_theme(app: &mut App, commands: &mut Vec<AppCommand>) {
    match app.display.themes.is_kept() {
        true => app.show_notice(
            NoticeLevel::Info,
            format!("{} is the theme of your settings already", app.display.themes.name()),
        ),
        false => commands.push(AppCommand::KeepTheme(app.display.themes.name().to_owned())),
    }
}

/// Says where the settings now name the theme.
fn apply_kept_theme(app: &mut App, result: Result<String, String>) {
    if result.is_ok() {
        app.display.themes.mark_kept();
    }
    show_outcome(app, result.map_err(|error| format!("the theme is not kept: {error}")));
}

/// Selects the run that answers a review request, takes its scope from the offers, and shows the decision.
fn apply_review_reply(app: &mut App, reply: &ReviewReply) {
    prompt::forget_asked(app, prompt::REVIEW_PROMPTS);
    app.offered.retain(|change| Some(&change.scope) != reply.scope.as_ref());
    if let Some(run) = &reply.run {
        app.run_list.requested = Some(run.clone());
        data::select_run(app, run);
    }
    show_outcome(app, reply.decision.clone());
}

/// Opens the prompt of a refused review request again, or shows the error if the request had no prompt.
fn apply_refusal(app: &mut App, error: String) {
    if !prompt::reopen_refused(app, prompt::REVIEW_PROMPTS, &error) {
        app.show_notice(NoticeLevel::Error, error);
    }
}

/// Says who copied the text; without a program, sends it to the terminal.
fn apply_copy(app: &mut App, order: CopyOrder, program: Option<&str>, commands: &mut Vec<AppCommand>) {
    let CopyOrder { text, what } = order;
    if let Some(program) = program {
        app.show_notice(NoticeLevel::Success, format!("copied {what} with {program}"));
        return;
    }
    app.show_notice(NoticeLevel::Info, format!("sent {what} to the terminal, which may put it into the clipboard"));
    commands.push(AppCommand::CopyToTerminal(text));
}

/// Says which changes nobody has reviewed, who reviews them now, and what the default reviewer may cost.
fn apply_opening(app: &mut App, outcome: Result<OpeningOutcome, String>, terms: Option<ReviewerTerms>) {
    app.session.reviewer = terms;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            // A repository that is gone has a line of its own.
            if app.store.gone_repository.is_none() {
                app.append_notice(NoticeLevel::Error, format!("nothing is reviewed: {error}"));
            }
            app.opening = OpeningLook::Failed(error);
            return;
        }
    };
    let key = app.keymap.key_text(KeyContext::Global, Action::Review);
    let list = |changes: &mut dyn Iterator<Item = &UnreviewedChange>| {
        let texts: Vec<&str> = changes.map(|change| change.text.as_str()).collect();
        text::sanitize_line(&texts.join(" and ")).into_owned()
    };
    let mut said = Vec::new();
    match outcome.started.as_slice() {
        [] => {}
        [(change, run)] if outcome.is_first => {
            data::select_run(app, run.as_str());
            said.push(format!("reviewing {}: a first review, offline and at no cost", app.name_scope(&change.scope)));
        }
        started => {
            let what = list(&mut started.iter().map(|(change, _)| change));
            said.push(format!("nobody has reviewed {what}: {BUILTIN_REVIEWER} does, offline and at no cost"));
        }
    }
    if !outcome.offered.is_empty() {
        said.push(format!("nobody has reviewed {}: {key} reviews it", list(&mut outcome.offered.iter())));
    }
    if let Some(ReviewerTerms { name, limit }) = app.paid_reviewer().filter(|_| !said.is_empty()) {
        said.push(format!("{key} asks {} ({limit})", text::sanitize_line(name)));
    }
    app.opening = outcome.nothing.map_or(OpeningLook::Done, OpeningLook::Nothing);
    app.offered = outcome.offered;
    if !said.is_empty() {
        let dot = app.display.glyphs.dot;
        app.append_notice(NoticeLevel::Info, said.join(&format!(" {dot} ")));
    }
    for failure in outcome.unsettled {
        app.append_notice(NoticeLevel::Error, text::sanitize_line(&failure));
    }
}

fn show_outcome(app: &mut App, result: Result<String, String>) {
    match result {
        Ok(text) => app.show_notice(NoticeLevel::Success, text),
        Err(error) => app.show_notice(NoticeLevel::Error, error),
    }
}

fn apply_fixes(app: &mut App, fixes: Arc<FixIndex>, commands: &mut Vec<AppCommand>) {
    fix::notify_ended(app, &fixes);
    app.store.fixes = fixes;
    app.detail.stale |= app.detail.tab == Tab::Fix;
    rebuild_page(app);
    views::apply_change(app, &ViewChange::FixesRead, commands);
}

/// Synchronizes the detail with the selection and the page with its width, after every message.
fn sync_detail(app: &mut App, commands: &mut Vec<AppCommand>) {
    files::sync(app, commands);
    let subject = selected_subject(app);
    if subject != app.detail.subject {
        data::mark_seen(app);
        // Another finding is looked at for itself: log and ledger are about runs and assistants. A diff follows the
        // selection until a finding is chosen.
        if matches!(subject, DetailSubject::Finding(_)) && matches!(app.detail.tab, Tab::Log | Tab::Ledger) {
            app.detail.tab = Tab::Page;
        }
        app.detail.subject = subject;
        app.detail.scroll = 0;
        app.detail.fold = None;
        app.detail.open_folds.clear();
    }
    if !app.tabs().contains(&app.detail.tab) {
        app.detail.tab = Tab::Page;
    }
    secrets::hide_if_left(app);
    let wanted = (app.detail.subject.clone(), app.detail.tab);
    let shown = app.detail.page.as_ref().is_some_and(|(subject, tab, _)| (subject, *tab) == (&wanted.0, wanted.1));
    if app.detail.subject == DetailSubject::Nothing && app.detail.tab != Tab::Ledger {
        if app.detail.page.take().is_some() || app.detail.loading.take().is_some() {
            app.detail.scroll = 0;
        }
        // The page of an empty selection may change with every message.
        app.detail.width = 0;
    } else if (!shown && app.detail.loading.as_ref() != Some(&wanted))
        || (shown && std::mem::take(&mut app.detail.stale))
    {
        // The page of another subject stays for the short time until the new one is read; the page of another tab
        // would be wrong.
        if app.detail.page.as_ref().is_some_and(|(_, tab, _)| *tab != app.detail.tab) {
            app.detail.page = None;
            app.detail.doc = Doc::default();
            app.detail.scroll = 0;
        }
        app.detail.loading = Some(wanted.clone());
        let (is_revealed, (subject, tab)) = (app.detail.revealed.is_some(), wanted);
        commands.push(match is_revealed {
            true => AppCommand::Reveal { subject, tab },
            false => AppCommand::Load { subject, tab },
        });
    }
    let width = app.layout().body(Pane::Detail).map_or(0, |area| area.width);
    let rows = app.page_rows();
    let freshness = app.subject_run().map(|run| app.run_freshness(&run));
    if ((width, rows) != (app.detail.width, app.detail.rows) && width > 0) || freshness != app.detail.freshness {
        (app.detail.width, app.detail.rows, app.detail.freshness) = (width, rows, freshness);
        rebuild_page(app);
    }
    // The rows above the page change with the run's activity.
    clamp_scroll(app);
    diff::sync(app, commands);
    let visible = runs::list_visible_runs(app);
    runs::request_subjects(app, visible.iter().map(|row| row.index as usize), commands);
    run_changes::compare_visible_runs(app, &visible);
}

/// Returns the selected item of the list that had the focus last.
fn selected_subject(app: &App) -> DetailSubject {
    match app.panes.list {
        Pane::Runs => app.selected_run().map(|run| DetailSubject::Run(run.id.to_owned())),
        Pane::Files => app
            .selected_file()
            .map(|file| DetailSubject::File {
                run: app.file_list.run_of(&file.path).to_owned(),
                path: file.path.clone(),
            })
            .or_else(|| app.selected_run().map(|run| DetailSubject::Run(run.id.to_owned()))),
        Pane::Findings | Pane::Detail => {
            app.selected_finding().map(|finding| DetailSubject::Finding(finding.id.to_owned()))
        }
    }
    .unwrap_or(DetailSubject::Nothing)
}

fn show_loaded_page(app: &mut App, subject: DetailSubject, tab: Tab, mut loaded: Box<PageData>) {
    if (&subject, tab) != (&app.detail.subject, app.detail.tab) {
        return;
    }
    // A page that is read again must not jump.
    let again = app.detail.page.as_ref().is_some_and(|(s, t, _)| (s, *t) == (&subject, tab));
    if again && let (Some((_, _, before)), PageData::Finding(page)) = (&app.detail.page, loaded.as_mut()) {
        // A page without highlighting keeps the known spans until the new ones arrive.
        if let PageData::Finding(before) = before.as_ref()
            && page.code.spans.is_empty()
            && before.code.lines == page.code.lines
        {
            page.code.spans.clone_from(&before.code.spans);
        }
    }
    // A reader at the start of the page stays there, even if the end is visible.
    let end_matters = app.detail.scroll > 0 || app.detail.doc.follow == FollowMode::StartAtEnd;
    let at_end = end_matters && app.detail.scroll + app.pane_height(Pane::Detail) >= app.detail.doc.lines.len();
    app.detail.loading = None;
    if let PageData::Diff(page) = loaded.as_ref() {
        diff::show_page(app, Arc::clone(page), &subject);
    }
    app.detail.page = Some((subject, tab, loaded));
    rebuild_page(app);
    if !again {
        app.detail.scroll =
            if app.detail.doc.follow == FollowMode::StartAtEnd { usize::MAX } else { app.detail.doc.start };
    } else if app.detail.doc.follow != FollowMode::Off && at_end {
        app.detail.scroll = usize::MAX;
    }
    clamp_scroll(app);
}

/// Notes whether the repository is at its place. When it is back, what could not be read is read again.
fn apply_presence(app: &mut App, gone: Option<String>, commands: &mut Vec<AppCommand>) {
    let is_back = gone.is_none() && app.store.gone_repository.is_some();
    app.store.gone_repository = gone;
    if is_back {
        app.detail.stale = true;
        compare::look(app, commands);
    }
}

/// Applies heartbeats; rebuilds the page of a working run if its usage changed.
fn apply_pulses(app: &mut App, pulses: Vec<(String, Heartbeat)>, commands: &mut Vec<AppCommand>) {
    let before = list_shown_usage(app);
    app.store.pulses = pulses;
    if list_shown_usage(app) != before {
        rebuild_page(app);
    }
    views::apply_change(app, &ViewChange::PulsesRead, commands);
}

/// Lists turn, tokens and cost of the working runs whose usage the page shows: the run itself, and the members of a panel.
fn list_shown_usage(app: &App) -> Vec<(u32, Usage, u64)> {
    let Some(run) = app.subject_run().filter(|_| matches!(app.detail.tab, Tab::Page | Tab::Turns)) else {
        return Vec::new();
    };
    // Turns are read again when the journal grows.
    let own = Some(run.id).filter(|_| app.detail.tab == Tab::Page);
    let runs = own.into_iter().chain(run.panel_members().map(|(member, _)| member));
    let pulses = runs.filter_map(|run| app.pulse(run));
    pulses.map(|pulse| (pulse.turn, pulse.tokens, pulse.cost.to_bits())).collect()
}

/// Rebuilds the page from the loaded data.
pub(crate) fn rebuild_page(app: &mut App) {
    app.detail.doc = pages::build_page(app, usize::from(app.detail.width.max(16)));
    clamp_scroll(app);
}

fn clamp_scroll(app: &mut App) {
    let most = app.detail.doc.lines.len().saturating_sub(app.pane_height(Pane::Detail));
    app.detail.scroll = app.detail.scroll.min(most);
}

/// Scrolls the lists to their selected rows after a change of the screen size.
pub(crate) fn scroll_to_selection(app: &mut App) {
    let (runs, findings, files) =
        (app.pane_height(Pane::Runs), app.pane_height(Pane::Findings), app.pane_height(Pane::Files));
    app.run_list.select(app.run_list.cursor.selected, runs);
    app.finding_list.select(app.finding_list.cursor.selected, findings);
    app.file_list.cursor.select(app.file_list.cursor.selected, app.file_list.row_count(), files);
    clamp_scroll(app);
}

fn push_quit(commands: &mut Vec<AppCommand>) {
    commands.push(AppCommand::Quit(None::<ExitCause>));
}

/// Parses the id of a run; `None` if the text is not an id.
pub fn parse_run_id(text: &str) -> Option<RunId> {
    text.parse().ok()
}
