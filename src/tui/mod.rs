//! Runs the cockpit: state, messages, update, keymap, one view file per pane, theme.
//!
//! There is one [`message::AppMessage`] enum, one [`app::App`] and one pure `update`. Views only read; `effects`
//! executes commands on background threads. The loop sleeps until a message arrives: an idle cockpit writes no
//! byte and uses no CPU.
//!
//! - A decision is stored before the screen shows it.
//! - All displayed text has passed `domain::text`.
//! - The terminal is restored in every case, also after a panic.
//! - The first frame needs only the newest records of the store.

mod activity;
pub mod app;
mod bars;
mod clipboard;
pub mod custom_commands;
pub mod diff;
pub(crate) mod doc;
mod draw;
mod editor;
mod effects;
mod emoji;
mod event_source;
pub mod filter;
mod filter_terms;
pub mod finding_order;
pub mod glyphs;
mod highlight;
pub mod input;
mod interrupts;
pub mod keymap;
mod layout;
mod line_edit;
mod markdown;
pub mod message;
mod new_answers;
mod notification;
pub(crate) mod page_data;
mod page_loader;
mod pages;
mod panel_runs;
mod panel_table;
mod passthrough;
mod repository_presence;
pub mod request_counter;
mod run_label;
mod runner_requests;
mod saved_filters;
mod screen;
mod short_title;
mod team_follower;
mod terminal;
mod text_edit;
pub mod theme;
pub(crate) mod turns;
mod update;
pub(crate) mod views;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

pub use draw::draw;
pub(crate) use page_loader::LedgerSource;
pub use screen::Screen;
pub use update::update;

use app::{App, AppOptions, MotionMode, Preferences, RunBudget, SessionInfo, TurnLimits};
use clipboard::encode_with_redraw;
use custom_commands::{CommandCall, ask_for_enter, run_in_terminal};
use diff::DiffOptions;
use event_source::{EventSource, MessageSender};
use finding_order::FindingArrangement;
use interrupts::Interrupts;
use keymap::{Keymap, KeymapFault, KeymapFaultLevel};
use message::{AppCommand, AppMessage, ExitCause};
use notification::encode_notification;
use terminal::{Terminal, TerminalQuery};
use theme::{Background, ColorDepth, Theme, ThemeChoice, ThemeName};

use crate::config::{
    self, ClockAndIds, ColorChoice, CommandPlace, CustomCommand, KeymapFile, OpeningMode, Paths, ReviewerKind,
    ReviewerSettings, Settings,
};
use crate::git::Repo;
use crate::runner::{FreshnessFacts, Services, SnoozedFindings, max_turns};
use crate::store::{LastVisit, StoreView};

/// Parts from which the cockpit is built.
pub struct Cockpit {
    /// Access to the repository, the store and the settings.
    pub services: Services,
    /// Composes the ledgers of the next turns. Called on a background thread.
    pub ledger: LedgerSource,
}

/// Kind of the cockpit's exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CockpitExit {
    /// The user quit.
    Quit,
    /// SIGTERM, SIGINT, SIGQUIT or SIGHUP.
    Signal,
}

/// Error that ends the cockpit.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// The terminal or a signal handler failed.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// A mistake in the keys of the settings. Nothing was drawn.
    #[error("{0}")]
    Keymap(String),
}

/// Longest wait for input while a finding is snoozed. Some systems count the milliseconds of a wait in 32 bits.
const MAX_PATIENCE: Duration = Duration::from_secs(86_400);

/// Runs in the first frame of a large store, about as many as a screen shows; each costs reading a small file.
const MAX_FIRST_FRAME_RUNS: usize = 24;

/// Runs the cockpit until the user quits or a signal ends it. Reviews continue without it.
///
/// # Errors
///
/// Returns an error if the terminal cannot be read, written or restored, or if signals cannot be handled.
pub fn run(cockpit: Cockpit) -> Result<CockpitExit, TuiError> {
    let Cockpit { services, ledger } = cockpit;
    let (columns, rows) = Terminal::size();
    let (settings, paths) = (Arc::clone(&services.settings), services.paths.clone());
    let (look, first) = std::thread::scope(|scope| {
        // Both take a part of the time to the first frame: one reads settings, the other one reads the store.
        let look = std::thread::Builder::new().spawn_scoped(scope, || LoadedLook::load(&settings, &paths));
        let first = FirstView::read(&services);
        let look = match look {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => LoadedLook::load(&settings, &paths),
        };
        (look, first)
    });
    let mut app = App::new(load_options(&services, look.map_err(TuiError::Keymap)?, (columns, rows)));
    app.now = services.ambient.now().as_millisecond();
    app.preferences = Preferences::from_settings(&services.settings);
    app.finding_list.row_height = services.settings.finding_rows;
    app.finding_list.arrangement =
        FindingArrangement { sort: services.settings.finding_order, grouping: services.settings.finding_groups };
    app.run_list.order = services.settings.run_order;
    app.file_list.set_order(services.settings.file_order);
    app.finding_list.saved_filters.clone_from(&services.settings.filters);
    // On the first visit, what comes from now on is new.
    Arc::make_mut(&mut app.finding_list.overrides).last_visit = Some(Arc::new(first.visit));
    match first.store {
        Ok((view, facts, snoozed)) => {
            let now = app.now;
            update(&mut app, now, AppMessage::Freshness(Arc::new(facts)));
            // Without it, findings that are out of sight would show for a moment.
            Arc::make_mut(&mut app.finding_list.overrides).snoozed = Arc::new(snoozed);
            // Pages are requested again when the threads run.
            for command in update(&mut app, now, AppMessage::StoreRead { view, written: 0 }) {
                if let AppCommand::Filter { serial, view, query } = command {
                    let listed = query.list(&view);
                    update(&mut app, now, AppMessage::Filtered { serial, view, listed });
                }
            }
            app.detail.loading = None;
            app.file_list.forget_requests();
            app.run_list.subjects = Arc::default();
            app.code_looks = update::CodeLooks::default();
        }
        Err(error) => app.store.trouble = Some(error),
    }
    terminal::restore_on_panic();
    let mut terminal = Terminal::acquire()?;
    let mut screen = Screen::new(columns, rows);
    screen.avoid_attributes(screen::find_missing_attributes(|name| std::env::var(name).ok()));
    if app.display.plain {
        screen.write_whole_rows();
    }
    terminal::choose_mouse(app.pointer.is_on);
    terminal.enter_alternate_screen(screen.draw_frame(|buffer| draw(&app, buffer)))?;
    // Another theme may be chosen later.
    let query = choose_query(app.display.themes.has_colors(), |name| std::env::var(name).ok());
    terminal.end_queries(&query)?;
    let (events, mailbox) = EventSource::new()?;
    listen_to_signals(events.interrupts(), mailbox.clone())?;
    let root = services.repo.root();
    let (store, config_file) = (services.store.clone(), services.paths.config_file());
    let repo = Repo::discover(&root).ok();
    let loader = page_loader::PageLoader::new(services.store.clone(), repo, Box::new(services.filter()), ledger);
    // A separate runner, so that a cancel request does not wait until a snapshot is taken.
    let control = services.open_again();
    let effects =
        effects::Effects::start(loader, services, control, (ClockAndIds::system(), app.display.zone.clone()), mailbox);
    let mut cockpit =
        EventLoop { app, screen, terminal, events, effects, root, clock: ClockAndIds::system(), config_file };
    let end = cockpit.run_until_end();
    let left = match end {
        Ok(Some(ExitCause::HungUp)) => cockpit.terminal.release(),
        _ => cockpit.release_terminal(),
    };
    if cockpit.app.store.view.complete {
        let visit = LastVisit::ending(cockpit.clock.now(), &cockpit.app.store.view);
        if let Err(error) = store.record_visit(&visit) {
            tracing::warn!(%error, "the end of the visit is not recorded");
        }
    }
    match end {
        // The terminal is gone, so a failed restore is expected.
        Ok(Some(ExitCause::HungUp)) => Ok(CockpitExit::Signal),
        Ok(end) => {
            left?;
            Ok(if end.is_some() { CockpitExit::Signal } else { CockpitExit::Quit })
        }
        Err(error) => Err(error.into()),
    }
}

/// Keys, colours and time zone, as they are read before the first frame.
struct LoadedLook {
    keymap: Keymap,
    themes: ThemeChoice,
    zone: jiff::tz::TimeZone,
    /// Problems of the theme's file.
    notices: Vec<String>,
}

impl LoadedLook {
    /// Loads the parts, or returns the first mistake in the keymap.
    fn load(settings: &Settings, paths: &Paths) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok();
        let depth = match settings.color {
            ColorChoice::Never => ColorDepth::None,
            ColorChoice::Auto | ColorChoice::Always => ColorDepth::detect(variable),
        };
        // Whoever loaded the settings has refused a theme that is not there.
        let mut notices = Vec::new();
        let themes = load_theme(settings, paths, depth, variable, &mut notices);
        Ok(Self { keymap: load_keymap(settings)?, themes, zone: local_time_zone(variable), notices })
    }
}

/// What the first frame shows of the store.
struct FirstView {
    visit: LastVisit,
    /// The newest runs with their facts, or the reason why they cannot be read.
    store: Result<(Arc<StoreView>, FreshnessFacts, SnoozedFindings), String>,
}

impl FirstView {
    fn read(services: &Services) -> Self {
        let now = services.ambient.now();
        // On the first visit, what comes from now on is new.
        let visit = services.store.last_visit();
        let visit = visit.unwrap_or_else(|| LastVisit { left_at: now, ..LastVisit::default() });
        let store = services.store.first_view(MAX_FIRST_FRAME_RUNS).map_err(|error| error.to_string()).map(|view| {
            let facts = FreshnessFacts::read(&services.repo, &services.store, &view);
            let snoozed = SnoozedFindings::read(Some(&services.repo), &services.store, &view, now);
            (view, facts, snoozed.unwrap_or_default())
        });
        Self { visit, store }
    }
}

fn load_options(services: &Services, look: LoadedLook, (columns, rows): (u16, u16)) -> AppOptions {
    let variable = |name: &str| std::env::var(name).ok();
    let LoadedLook { keymap, themes, zone, notices } = look;
    AppOptions {
        columns,
        rows,
        zone,
        session: SessionInfo {
            repository: services.repo.name(),
            branch: services.repo.branch(),
            turn_limits: read_turn_limits(&services.settings),
            budget: RunBudget {
                cost: services.settings.budget.run_cost.map(|cost| cost.as_f64()),
                tokens: services.settings.budget.run_tokens,
            },
            answering_reviewers: list_answering_reviewers(&services.settings),
            reviewer: None,
            reviews_on_open: services.settings.on_open == OpeningMode::Review,
        },
        keymap,
        themes,
        glyphs: match (services.settings.plain, services.settings.ascii) {
            (true, ascii_only) => glyphs::PLAIN.with_ascii_only(ascii_only),
            (false, true) => glyphs::ASCII,
            (false, false) => glyphs::UNICODE,
        },
        motion: match (services.settings.plain, services.settings.motion) {
            (true, _) => MotionMode::Still,
            (false, false) => MotionMode::Reduced,
            (false, true) => MotionMode::Full,
        },
        mouse: services.settings.mouse && !terminal::is_gnu_screen(variable),
        plain: services.settings.plain,
        diff: DiffOptions { wraps: services.settings.diff_wrap, ignores_space: services.settings.diff_ignore_space },
        notices,
    }
}

/// Returns false on the Linux console, whose fonts have 256 or 512 characters, and if the locale of the environment has another
/// encoding than UTF-8. Without a locale, the terminal is taken to show Unicode, as nearly all do.
pub fn can_show_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("TERM").is_some_and(|term| is_linux_console(&term)) {
        return false;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|it| !it.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Returns true for the terminal type of the Linux console, also in GNU screen, which writes its own name in front of it.
fn is_linux_console(term: &str) -> bool {
    term == "linux" || term.ends_with(".linux")
}

/// Returns the names of the reviewers that are models: analyzer and agents answer no questions.
fn list_answering_reviewers(settings: &Settings) -> BTreeSet<String> {
    let answers = |own: &ReviewerSettings| !matches!(own.kind, ReviewerKind::Builtin | ReviewerKind::Command);
    settings.reviewers.iter().filter(|(_, own)| answers(own)).map(|(name, _)| name.clone()).collect()
}

fn read_turn_limits(settings: &Settings) -> TurnLimits {
    let limits = settings.reviewers.iter().map(|(name, own)| (name.clone(), max_turns(own, &settings.window)));
    TurnLimits { default: settings.window.max_turns, by_reviewer: limits.collect() }
}

/// Returns the local time zone. Reads `/etc/localtime` directly: a lookup by name walks through all zones, which
/// takes longer than the rest of the start.
fn local_time_zone(variable: impl Fn(&str) -> Option<String>) -> jiff::tz::TimeZone {
    if variable("TZ").is_none()
        && let Ok(bytes) = std::fs::read("/etc/localtime")
        && let Ok(zone) = jiff::tz::TimeZone::tzif("local", &bytes)
    {
        return zone;
    }
    jiff::tz::TimeZone::system()
}

/// Describes why the settings cannot name this theme; `None` for `auto`, a built-in theme and a user's theme file,
/// valid or not.
pub fn find_theme_fault(paths: &Paths, name: &str) -> Option<String> {
    let is_known = name.parse::<ThemeName>().is_ok() || !matches!(config::load_user_theme(paths, name, ""), Ok(None));
    if is_known {
        return None;
    }
    let own = config::list_user_themes(paths);
    let builtin = ThemeName::TABLE.iter().map(|(_, word)| *word);
    let known: Vec<&str> = builtin.chain(own.iter().map(String::as_str)).collect();
    let meant = config::did_you_mean(name, known.iter().copied());
    let known = known.join(", ");
    Some(match meant.as_str() {
        "" => format!("there is no theme {name:?}; there are: {known}"),
        meant => format!("there is no theme {name:?}{meant} There are: {known}"),
    })
}

/// Builds the keymap of the settings, or returns the first mistake in it.
///
/// # Errors
///
/// A line that names file and line of the mistake, and the number of further ones.
pub fn load_keymap(settings: &Settings) -> Result<Keymap, String> {
    let (keymap, faults) = Keymap::from_settings(settings);
    let errors = faults.iter().filter(|fault| fault.level == KeymapFaultLevel::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(keymap),
        [error] => Err(error.clone()),
        [error, rest @ ..] => {
            let rest = crate::domain::text::format_count(rest.len(), "further mistake");
            Err(format!("{error} ({rest}: `revdeck keys` lists them)"))
        }
    }
}

/// Checks keymap files and the keys of the user's commands: returns the mistakes, then the remarks, one line each.
pub fn check_keymap(files: &[KeymapFile], commands: &[CustomCommand]) -> (Vec<String>, Vec<String>) {
    let (errors, remarks): (Vec<KeymapFault>, Vec<KeymapFault>) =
        Keymap::from_layers(files, commands).1.into_iter().partition(|fault| fault.level == KeymapFaultLevel::Error);
    let lines = |faults: Vec<KeymapFault>| faults.iter().map(ToString::to_string).collect();
    (lines(errors), lines(remarks))
}

/// Describes the mistakes in the files of a user's themes.
pub fn find_theme_file_faults(paths: &Paths) -> Vec<String> {
    let check = |name: &String| match config::load_user_theme(paths, name, theme::DARK) {
        Ok(Some(text)) => {
            let mut faults = Theme::parse(&text, ColorDepth::TrueColor).1;
            faults.extend(find_base_fault(&text));
            faults
        }
        Ok(None) => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    let names = config::list_user_themes(paths);
    names.iter().flat_map(|name| check(name).into_iter().map(move |fault| format!("{name}: {fault}"))).collect()
}

/// Describes the `base` of a theme that is no built-in theme.
fn find_base_fault(text: &str) -> Option<String> {
    let table = text.parse::<toml::Table>().ok()?;
    let base = table.get("base")?.as_str().unwrap_or_default();
    let known = || ThemeName::TABLE.iter().map(|(_, word)| *word);
    let meant = config::did_you_mean(base, known());
    let is_known = base.parse::<ThemeName>().is_ok();
    (!is_known).then(|| {
        format!("base = {base:?} is no theme of revdeck; there are: {}{meant}", known().collect::<Vec<_>>().join(", "))
    })
}

/// Loads the theme of the settings. `auto` and `high-contrast` use the environment; the terminal's reply may change them
/// later.
fn load_theme(
    settings: &Settings,
    paths: &Paths,
    depth: ColorDepth,
    variable: impl Fn(&str) -> Option<String>,
    notices: &mut Vec<String>,
) -> ThemeChoice {
    let background = variable("COLORFGBG").map_or(Background::Unknown, |value| Background::from_colorfgbg(&value));
    let name = settings.theme.as_str();
    let builtin = name.parse::<ThemeName>().ok();
    let fallback = ThemeChoice::new(builtin.unwrap_or(ThemeName::Dark), background, depth);
    if builtin == Some(ThemeName::Auto) {
        return fallback;
    }
    match load_own_theme(paths, name, builtin.unwrap_or(ThemeName::Dark)) {
        Ok(Some(text)) => {
            let (theme, faults) = Theme::parse(&text, depth);
            notices.extend(faults);
            notices.extend(find_base_fault(&text));
            ThemeChoice::own(name, theme, depth)
        }
        Ok(None) => fallback,
        Err(error) => {
            notices.push(error.to_string());
            fallback
        }
    }
}

/// Reads a theme of the user, laid over the built-in theme that its `base` names, else over `base`.
fn load_own_theme(paths: &Paths, name: &str, base: ThemeName) -> Result<Option<String>, config::ConfigError> {
    let Some(text) = config::load_user_theme(paths, name, base.toml())? else { return Ok(None) };
    let named =
        text.parse::<toml::Table>().ok().and_then(|table| table.get("base")?.as_str()?.parse::<ThemeName>().ok());
    match named {
        Some(named) if named != base => config::load_user_theme(paths, name, named.toml()),
        _ => Ok(Some(text)),
    }
}

/// Returns the query for the background colour; an empty one without colours, and on the Linux console, which does not
/// know it.
fn choose_query(has_colors: bool, variable: impl Fn(&str) -> Option<String>) -> TerminalQuery {
    match has_colors && !is_linux_console(&variable("TERM").unwrap_or_default()) {
        true => terminal::background_query(variable),
        false => TerminalQuery::default(),
    }
}

fn listen_to_signals(interrupts: Interrupts, mailbox: MessageSender) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGWINCH, SIGCONT])?;
    std::thread::Builder::new().name(format!("{}signals", effects::WORKER)).spawn(move || {
        for signal in signals.forever() {
            let sent = match signal {
                SIGWINCH => {
                    let (columns, rows) = Terminal::size();
                    mailbox.send(AppMessage::Resized { columns, rows })
                }
                SIGCONT => mailbox.send(AppMessage::Continued),
                SIGHUP => mailbox.send(AppMessage::Ended(ExitCause::HungUp)),
                SIGINT | SIGQUIT => interrupts.tell(&mailbox),
                _ => mailbox.send(AppMessage::Ended(ExitCause::Terminated)),
            };
            if sent.is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

struct EventLoop {
    app: App,
    screen: Screen,
    terminal: Terminal,
    events: EventSource,
    effects: effects::Effects,
    root: std::path::PathBuf,
    clock: ClockAndIds,
    /// Settings file of the user.
    config_file: std::path::PathBuf,
}

/// Continues, or breaks with the exit cause.
type LoopFlow = std::ops::ControlFlow<Option<ExitCause>>;

impl EventLoop {
    fn run_until_end(&mut self) -> io::Result<Option<ExitCause>> {
        // Requests the pages for the first frame.
        let mut next = Some(AppMessage::Tick);
        loop {
            let message = match next.take() {
                Some(message) => message,
                // Time changes the screen only while a clock is running, or when a snoozed finding comes back.
                None => {
                    let clock = match self.app.tick_interval() {
                        Some(interval) => Some(interval),
                        None => self.app.time_until_ages_change(),
                    };
                    let now = self.clock.now();
                    let wake = self.app.finding_list.overrides.snoozed.next_wake();
                    let wake = wake.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO));
                    let patience = clock.into_iter().chain(wake.map(|wake| wake.min(MAX_PATIENCE))).min();
                    self.events.wait_next(patience).unwrap_or(AppMessage::Tick)
                }
            };
            if let LoopFlow::Break(end) = self.handle_message(message)? {
                return Ok(end);
            }
            while let Some(message) = self.events.try_next() {
                if let LoopFlow::Break(end) = self.handle_message(message)? {
                    return Ok(end);
                }
            }
            self.terminal.report_releases(self.app.detail.revealed.is_some() && self.app.display.reports_releases)?;
            let app = &self.app;
            let bytes = self.screen.draw_frame(|buffer| draw(app, buffer));
            if !bytes.is_empty() {
                self.terminal.write(bytes)?;
            }
        }
    }

    fn handle_message(&mut self, message: AppMessage) -> io::Result<LoopFlow> {
        match message {
            AppMessage::Resized { columns, rows }
                if (columns, rows) == (self.app.display.columns, self.app.display.rows) =>
            {
                return Ok(LoopFlow::Continue(()));
            }
            AppMessage::Resized { columns, rows } => self.screen.resize(columns, rows),
            AppMessage::Input(ref answer) if answer.ends_answers() => {
                self.terminal.note_answer(answer)?;
                return Ok(LoopFlow::Continue(()));
            }
            AppMessage::Continued => {
                if !self.terminal.reacquire_after_stop()? {
                    return Ok(LoopFlow::Continue(()));
                }
                self.sync_size();
                return self.handle_message(AppMessage::Resumed);
            }
            _ => {}
        }
        let now = self.clock.now().as_millisecond();
        for command in update(&mut self.app, now, message) {
            match command {
                AppCommand::Quit(end) => return Ok(LoopFlow::Break(end)),
                AppCommand::Redraw => self.screen.invalidate(),
                AppCommand::Notify(text) => {
                    let bytes =
                        encode_notification(self.app.preferences.notify, &text, |name| std::env::var(name).ok());
                    if !bytes.is_empty() {
                        self.terminal.write(bytes.as_bytes())?;
                    }
                }
                AppCommand::SetMouse(on) => self.terminal.set_mouse(on)?,
                AppCommand::CopyToTerminal(text) => {
                    let bytes = encode_with_redraw(&text, &mut self.screen, |name| std::env::var(name).ok());
                    self.terminal.write(bytes.as_bytes())?;
                }
                AppCommand::Edit { path, line } => {
                    let edited = self.open_editor(&path, line)?;
                    return self.handle_message(AppMessage::Edited(edited));
                }
                AppCommand::EditSettings { setting } => {
                    let edited = self.edit_settings(setting)?;
                    return self.handle_message(AppMessage::Edited(edited));
                }
                AppCommand::RunProgram(call) if call.place == CommandPlace::Terminal => {
                    let ended = self.run_program(&call)?;
                    self.screen.invalidate();
                    return self.handle_message(AppMessage::ProgramEnded(ended));
                }
                AppCommand::Suspend => {
                    self.suspend()?;
                    return self.handle_message(AppMessage::Resumed);
                }
                command => self.effects.dispatch(command, &self.app.store.view),
            }
        }
        Ok(LoopFlow::Continue(()))
    }

    /// Gives the terminal back after its answers to queries have come.
    fn release_terminal(&mut self) -> io::Result<()> {
        while let Some(until) = self.terminal.answers_until() {
            let answers = self.events.drain_answers(until);
            if answers.is_empty() {
                break;
            }
            for answer in &answers {
                self.terminal.note_answer(answer)?;
            }
        }
        self.terminal.release()
    }

    fn open_editor(&mut self, path: &str, line: u32) -> io::Result<Result<(), String>> {
        let file = self.root.join(path);
        self.give_terminal_to_editor(|setting, root| editor::open_editor(setting, root, &file, line))
    }

    /// Opens the user's settings file at a setting. The editor creates the file if there is none.
    fn edit_settings(&mut self, setting: Option<&str>) -> io::Result<Result<(), String>> {
        let file = self.config_file.clone();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let line = setting.map_or(1, |setting| editor::find_setting_line(&text, setting));
        if let Some(folder) = file.parent()
            && let Err(error) = std::fs::create_dir_all(folder)
        {
            return Ok(Err(format!("cannot create {}: {error}", folder.display())));
        }
        self.give_terminal_to_editor(|setting, root| editor::run_editor(setting, root, &file, line))
    }

    /// Releases the terminal, has the editor of the environment run, and takes the terminal back.
    fn give_terminal_to_editor(
        &mut self,
        edit: impl FnOnce(&str, &std::path::Path) -> Result<(), String>,
    ) -> io::Result<Result<(), String>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let setting = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_default();
        self.release_terminal()?;
        let edited = edit(&setting, &self.root);
        self.events.forget_interrupts();
        self.terminal.reacquire()?;
        self.sync_size();
        Ok(edited)
    }

    fn run_program(&mut self, call: &CommandCall) -> io::Result<Result<String, String>> {
        self.release_terminal()?;
        let ended = run_in_terminal(call, &self.root);
        // Ctrl-C was for the program.
        self.events.forget_interrupts();
        if call.pause {
            let said = ended.as_ref().unwrap_or_else(|error| error);
            // Without a terminal, nobody has to be waited for.
            let _ = ask_for_enter(said).map(|()| self.events.wait_for_line());
        }
        self.terminal.reacquire()?;
        self.sync_size();
        Ok(ended)
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.release_terminal()?;
        // Stops the whole process group, as the terminal does for Ctrl-Z, so that a parent in the group stops too.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        self.terminal.reacquire()?;
        self.sync_size();
        Ok(())
    }

    /// Updates the size, which may have changed while another program had the terminal.
    fn sync_size(&mut self) {
        let (columns, rows) = Terminal::size();
        self.screen.resize(columns, rows);
        let now = self.clock.now().as_millisecond();
        let _ = update(&mut self.app, now, AppMessage::Resized { columns, rows });
    }
}

#[cfg(test)]
mod terminal_tests {
    use super::*;

    #[test]
    fn the_linux_console_is_not_asked_for_its_background_and_gets_ascii() {
        for (term, is_console) in [
            (Some("linux"), true),
            (Some("screen.linux"), true),
            (Some("xterm-256color"), false),
            (Some("screen.xterm-256color"), false),
            (Some("tmux-256color"), false),
            (Some("linuxvt"), false),
            (Some(""), false),
            (None, false),
        ] {
            let variable = |name: &str| term.filter(|_| name == "TERM").map(str::to_owned);
            let expected = if is_console { TerminalQuery::default() } else { terminal::background_query(variable) };
            assert_eq!(choose_query(true, variable), expected, "{term:?}");
            assert_eq!(choose_query(false, variable), TerminalQuery::default(), "{term:?} without colours");
            assert_eq!(can_show_unicode(variable), !is_console, "{term:?}");
        }
        assert_ne!(terminal::background_query(|_| None), TerminalQuery::default());
    }

    #[test]
    fn a_locale_of_another_encoding_gets_ascii() {
        for (pairs, expected) in [
            (&[][..], true),
            (&[("LANG", "de_DE.UTF-8")], true),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "linux")], false),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "screen.linux"), ("STY", "1.tty1.host")], false),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "screen.xterm-256color")], true),
            (&[("LANG", "C.utf8")], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8"), ("LC_ALL", "")], true),
        ] {
            let variable = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(can_show_unicode(variable), expected, "{pairs:?}");
        }
    }
}
