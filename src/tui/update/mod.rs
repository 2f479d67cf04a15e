//! `update(app, message) -> commands`: everything the cockpit decides. No IO and no clock, so a table of messages tells
//! all of it.
//!
//! Invariant: a decision about a finding shows only after the message that says it is stored.

mod data;
mod fix;
mod folds;
pub use folds::chosen as chosen_fold;
mod keys;
pub use keys::run_to_pause;
mod knowledge;
pub use knowledge::ask_replace;
mod prompt;
pub use prompt::reasons;
mod triage;

use super::app::{App, FirstReview, Overlay, Pane, Question, Tone};
use super::doc::{Doc, Growth};
use super::input::Input;
use super::loaded::Loaded;
use super::message::{Command, End, Message, Subject, Tab};
use super::theme::{Background, Theme};
use super::{knowledge as patterns, pages, stats};
use crate::domain::RunId;
use crate::store::Pulse;

/// Asks a question that comes by itself. Who has opened something meanwhile is not asked in the middle of it, where a key
/// would answer both, and reads `otherwise`.
fn ask(app: &mut App, question: Question, text: String, otherwise: &str) {
    match app.overlay {
        Overlay::None => app.overlay = Overlay::Confirm { question, text },
        _ => app.say(Tone::Plain, otherwise),
    }
}

/// Changes the state by what happened at `now` (milliseconds since 1970); what it returns is to be done outside.
pub fn update(app: &mut App, now: i64, message: Message) -> Vec<Command> {
    app.now = now;
    let mut commands = Vec::new();
    match message {
        Message::Input(Input::Key(key)) => keys::press(app, key, &mut commands),
        Message::Input(Input::Paste(text)) => prompt::paste(app, &text, &mut commands),
        Message::Input(Input::Background(rgb)) => {
            if !app.theme_is_set {
                app.theme = Theme::fitting(Background::of(rgb), app.depth);
                build(app);
            }
        }
        Message::Resized { columns, rows } => {
            (app.columns, app.rows) = (columns, rows);
            keep_in_sight(app);
            stats::build(app);
            patterns::resized(app);
        }
        Message::Tick => app.count = app.count.take().filter(|count| !count.has_lapsed(now)),
        Message::Viewed { view, written } => {
            stats::viewed(app, &view, &mut commands);
            data::viewed(app, view, written, &mut commands);
        }
        Message::Stats(figures) => stats::came(app, figures, &mut commands),
        Message::Knowledge(library) => patterns::came(app, library),
        Message::KnowledgeChanged => {
            if app.knowledge.is_some() {
                commands.push(Command::Knowledge(patterns::Order::Read));
            }
        }
        Message::KnowledgeDone(outcome) => patterns::done(app, outcome),
        Message::Pulses(pulses) => beat(app, pulses),
        Message::StoreTrouble(text) => app.trouble = Some(text),
        Message::Filtered { serial, view, rows } => data::filtered(app, serial, view, rows),
        Message::Loaded { subject, tab, loaded } => loaded_page(app, subject, tab, loaded),
        Message::Files { run, files } => data::files_loaded(app, &run, files),
        Message::Reported { run, findings } => data::reported(app, run, findings, &mut commands),
        Message::Triaged { order, result, written } => triage::stored(app, &order, result, written),
        Message::Requested(Ok(asked)) => {
            if app.first_review == FirstReview::Asked && asked.nothing {
                app.first_review = FirstReview::Nothing(asked.text.clone());
            }
            if let Some(run) = &asked.run {
                data::select_run(app, run);
            }
            let first = app.first_review == FirstReview::Asked && !asked.nothing;
            let note = if first { ": a first review, offline and at no cost" } else { "" };
            app.say(Tone::Done, format!("{}{note}", asked.text));
        }
        Message::Requested(Err(error)) => {
            if app.first_review == FirstReview::Asked {
                app.first_review = FirstReview::Nothing(error.clone());
            }
            app.say(Tone::Trouble, format!("no review: {error}"));
        }
        Message::Cancelled { result, .. } => match result {
            Ok(text) => app.say(Tone::Done, text),
            Err(error) => app.say(Tone::Trouble, format!("not cancelled: {error}")),
        },
        Message::Paused(Ok(text)) => app.say(Tone::Done, text),
        Message::Paused(Err(error)) => app.say(Tone::Trouble, error),
        Message::Reconciled(Some(summary)) => app.say(Tone::Plain, summary),
        Message::Reconciled(None) => {}
        Message::Watch(state) => app.watch = state,
        Message::Watched(Ok(text)) => app.say(Tone::Done, text),
        Message::Watched(Err(error)) => app.say(Tone::Trouble, error),
        Message::Fixes(fixes) => {
            fix::tell(app, &fixes);
            app.fixes = fixes;
            app.stale |= app.tab == Tab::Fix;
            build(app);
        }
        Message::FixPlanned(plan) => fix::planned(app, plan),
        Message::FixDone(result) => fix::done(app, result.map(|fix| *fix)),
        Message::Edited(Ok(())) => commands.push(Command::Redraw),
        Message::Edited(Err(error)) => {
            app.say(Tone::Trouble, error);
            commands.push(Command::Redraw);
        }
        Message::Ended(end) => commands.push(Command::Quit(Some(end))),
        Message::Resumed => commands.push(Command::Redraw),
    }
    follow(app, &mut commands);
    commands
}

/// After every message: the detail follows the selection, the page fits its width.
fn follow(app: &mut App, commands: &mut Vec<Command>) {
    let subject = wanted_subject(app);
    if subject != app.subject {
        app.subject = subject;
        app.scroll = 0;
        app.fold = None;
        app.open_folds.clear();
    }
    if !app.tabs().contains(&app.tab) {
        app.tab = Tab::Page;
    }
    let wanted = (app.subject.clone(), app.tab);
    let shown = app.detail.as_ref().is_some_and(|(subject, tab, _)| (subject, *tab) == (&wanted.0, wanted.1));
    if app.subject == Subject::Nothing && app.tab != Tab::Ledger {
        if app.detail.take().is_some() || app.loading.take().is_some() {
            app.scroll = 0;
        }
        // What there is to say about nothing changes with every message.
        app.doc_width = 0;
    } else if (!shown && app.loading.as_ref() != Some(&wanted)) || (shown && std::mem::take(&mut app.stale)) {
        // Another subject's page stays until this one is read, which takes a moment only; another tab's would lie.
        if app.detail.as_ref().is_some_and(|(_, tab, _)| *tab != app.tab) {
            app.detail = None;
            app.doc = Doc::default();
            app.scroll = 0;
        }
        app.loading = Some(wanted.clone());
        commands.push(Command::Load { subject: wanted.0, tab: wanted.1 });
    }
    // The files follow when they are read, like the page; only the very first ones are what the view knows.
    if let Some(run) = app.run().map(|run| run.id.to_owned())
        && run != app.files_asked
    {
        if app.files_of.is_empty() {
            data::files_from_view(app, &run);
        }
        app.files_asked.clone_from(&run);
        commands.push(Command::LoadFiles { run });
    }
    let width = app.layout().body(Pane::Detail).map_or(0, |area| area.width);
    if width != app.doc_width && width > 0 {
        app.doc_width = width;
        build(app);
    }
    // Rows above the page come and go with what the run does.
    clamp_scroll(app);
}

/// What the detail is about: what is selected in the list that had the focus last.
fn wanted_subject(app: &App) -> Subject {
    match app.list {
        Pane::Runs => app.run().map(|run| Subject::Run(run.id.to_owned())),
        Pane::Files => app
            .file()
            .map(|file| Subject::File { run: app.files_of.clone(), path: file.path.clone() })
            .or_else(|| app.run().map(|run| Subject::Run(run.id.to_owned()))),
        Pane::Findings | Pane::Detail => app.finding().map(|finding| Subject::Finding(finding.id.to_owned())),
    }
    .unwrap_or(Subject::Nothing)
}

fn loaded_page(app: &mut App, subject: Subject, tab: Tab, mut loaded: Box<Loaded>) {
    if (&subject, tab) != (&app.subject, app.tab) {
        return;
    }
    // A page that is read again because its run moved on must not jump.
    let again = app.detail.as_ref().is_some_and(|(s, t, _)| (s, *t) == (&subject, tab));
    if again && let (Some((_, _, before)), Loaded::Finding(page)) = (&app.detail, loaded.as_mut()) {
        // Read again without colours: the colours that are known stay until the new ones come.
        if let Loaded::Finding(before) = before.as_ref()
            && page.code.spans.is_empty()
            && before.code.lines == page.code.lines
        {
            page.code.spans.clone_from(&before.code.spans);
        }
    }
    // Who looks at the beginning stays there, also where the end is in sight.
    let end_matters = app.scroll > 0 || app.doc.growth == Growth::EndFirst;
    let at_end = end_matters && app.scroll + app.height(Pane::Detail) >= app.doc.lines.len();
    app.loading = None;
    app.detail = Some((subject, tab, loaded));
    build(app);
    if !again {
        app.scroll = if app.doc.growth == Growth::EndFirst { usize::MAX } else { app.doc.start };
    } else if app.doc.growth != Growth::Not && at_end {
        app.scroll = usize::MAX;
    }
    clamp_scroll(app);
}

/// What working reviews have spent stands on their own page, too.
fn beat(app: &mut App, pulses: Vec<(String, Pulse)>) {
    let spent = |app: &App| match (&app.subject, app.tab) {
        (Subject::Run(run), Tab::Page) => app.pulse(run).map(|pulse| (pulse.tokens, pulse.cost.to_bits())),
        _ => None,
    };
    let before = spent(app);
    app.pulses = pulses;
    if spent(app) != before {
        build(app);
    }
}

/// Builds the page again from what is loaded.
fn build(app: &mut App) {
    app.doc = pages::build(app, usize::from(app.doc_width.max(20)));
    clamp_scroll(app);
}

fn clamp_scroll(app: &mut App) {
    let most = app.doc.lines.len().saturating_sub(app.height(Pane::Detail));
    app.scroll = app.scroll.min(most);
}

/// The screen changed: the selected rows stay in sight.
fn keep_in_sight(app: &mut App) {
    let (runs, findings, files) = (app.height(Pane::Runs), app.height(Pane::Findings), app.height(Pane::Files));
    app.run_cursor.go(app.run_cursor.at, app.runs.len(), runs);
    app.finding_cursor.go(app.finding_cursor.at, app.findings.len(), findings);
    app.file_cursor.go(app.file_cursor.at, app.files.len(), files);
    clamp_scroll(app);
}

fn quit(commands: &mut Vec<Command>) {
    commands.push(Command::Quit(None::<End>));
}

fn run_id(text: &str) -> Option<RunId> {
    text.parse().ok()
}

fn close(app: &mut App) {
    app.overlay = Overlay::None;
}
