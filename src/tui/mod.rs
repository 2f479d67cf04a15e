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
mod empty_list;
mod event_source;
pub mod filter;
mod filter_terms;
pub mod finding_order;
mod finding_texts;
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
mod shown_cells;
mod startup;
mod team_follower;
mod terminal;
mod text_edit;
pub mod theme;
pub(crate) mod turns;
mod update;
pub(crate) mod views;

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use ratatui::layout::Rect;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

pub use draw::draw;
pub(crate) use page_loader::LedgerSource;
pub use screen::Screen;
pub use startup::{can_show_unicode, check_keymap, load_keymap};
pub use theme::{find_theme_fault, find_theme_file_faults};
pub use update::update;

use app::{App, Pane};
use clipboard::encode_with_redraw;
use custom_commands::{CommandCall, ask_for_enter, run_in_terminal};
use draw::{draw_list, find_focused_list};
use event_source::{EventSource, MessageSender};
use interrupts::Interrupts;
use message::{AppCommand, AppMessage, ExitCause};
use notification::encode_notification;
use terminal::Terminal;

use crate::config::{ClockAndIds, CommandPlace};
use crate::git::Repo;
use crate::runner::Services;
use crate::store::LastVisit;

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
    /// A decision or a comment made just before the end was not stored.
    #[error("not stored: {0}")]
    NotStored(String),
}

/// Longest wait for input while a finding is snoozed. Some systems count the milliseconds of a wait in 32 bits.
const MAX_PATIENCE: Duration = Duration::from_secs(86_400);

/// Runs the cockpit until the user quits or a signal ends it. Reviews continue without it.
///
/// # Errors
///
/// Returns an error if the settings have a mistake in the keys, if the terminal cannot be read, written or restored, if
/// signals cannot be handled, or if the store did not take what the user decided last.
pub fn run(cockpit: Cockpit) -> Result<CockpitExit, TuiError> {
    let Cockpit { services, ledger } = cockpit;
    let (columns, rows) = Terminal::size();
    let app = startup::build_first_app(&services, (columns, rows))?;
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
    let query = startup::choose_query(app.display.themes.has_colors(), |name| std::env::var(name).ok());
    terminal.end_queries(&query)?;
    let (events, mailbox) = EventSource::new()?;
    listen_to_signals(events.interrupts(), mailbox.clone())?;
    // A change of the size before that was told to nobody.
    let (present_columns, present_rows) = Terminal::size();
    if (present_columns, present_rows) != (columns, rows) {
        let _ = mailbox.send(AppMessage::Resized { columns: present_columns, rows: present_rows });
    }
    let root = services.repo.root();
    let (store, config_file) = (services.store.clone(), services.paths.config_file());
    let repo = Repo::discover(&root).ok();
    let loader = page_loader::PageLoader::new(services.store.clone(), repo, Box::new(services.filter()), ledger);
    // A separate runner, so that a cancel request does not wait until a snapshot is taken.
    let control = services.open_again();
    let effects =
        effects::Effects::start(loader, services, control, (ClockAndIds::system(), app.display.zone.clone()), mailbox);
    let mut cockpit = EventLoop {
        app,
        screen,
        terminal,
        events,
        effects,
        waiting_reads: Vec::new(),
        shown_list: None,
        root,
        clock: ClockAndIds::system(),
        config_file,
    };
    let end = cockpit.run_until_end();
    let left = match end {
        Ok(Some(ExitCause::HungUp)) => cockpit.terminal.release(),
        _ => cockpit.release_terminal(),
    };
    cockpit.effects.await_writes();
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
            let unread = std::iter::from_fn(|| cockpit.events.try_next());
            if let Some(reason) = unread.filter_map(AppMessage::into_failed_write).next() {
                return Err(TuiError::NotStored(reason));
            }
            Ok(if end.is_some() { CockpitExit::Signal } else { CockpitExit::Quit })
        }
        Err(error) => Err(error.into()),
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
    /// Commands that only read, which wait until the next frame is drawn.
    waiting_reads: Vec<AppCommand>,
    /// List with the focus in the last frame, and its area.
    shown_list: Option<(Pane, Rect)>,
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
            let is_input = matches!(message, AppMessage::Input(_));
            if let LoopFlow::Break(end) = self.handle_message(message)? {
                return Ok(end);
            }
            while let Some(message) = self.events.try_next() {
                if let LoopFlow::Break(end) = self.handle_message(message)? {
                    return Ok(end);
                }
            }
            self.terminal.report_releases(self.app.detail.revealed.is_some() && self.app.display.reports_releases)?;
            self.draw(is_input)?;
            for command in self.waiting_reads.drain(..) {
                self.effects.dispatch(command, &self.app.store.view);
            }
            self.screen.prepare_next_frame();
        }
    }

    /// Draws a frame. After a key, the list with the focus is drawn and written before the rest: a processor that has slept takes
    /// two thirds of the time of a frame for what the key does not change.
    fn draw(&mut self, is_input: bool) -> io::Result<()> {
        let app = &self.app;
        let list = find_focused_list(app);
        // A list that has moved would stand over what is still shown beside it.
        if let Some((pane, area)) = list.filter(|_| is_input && list == self.shown_list) {
            let bytes = self.screen.draw_part(area, |buffer| draw_list(app, pane, buffer));
            if !bytes.is_empty() {
                self.terminal.write(bytes)?;
            }
        }
        self.shown_list = list;
        let bytes = self.screen.draw_frame(|buffer| draw(app, buffer));
        if !bytes.is_empty() {
            self.terminal.write(bytes)?;
        }
        Ok(())
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
                // To wake another thread first, and to share the processor with it, would make each key slower. What is stored
                // does not wait, because a terminal may take long to accept a frame.
                command if command.only_reads() => self.waiting_reads.push(command),
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
        self.give_terminal_to_editor(|setting, root| editor::open_editor(setting, root, path, line))
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
