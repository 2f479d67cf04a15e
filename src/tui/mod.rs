//! The cockpit: state, messages, update, keymap, one view file per pane, theme.
//!
//! One [`message::Message`] enum, one [`app::App`], one pure `update`; views only read; `effects` carries commands out on
//! background threads. The loop sleeps until something happens: a cockpit at rest writes no byte and uses no processor.
//!
//! Invariants: a decision is stored before the screen says so; everything shown has passed `domain::text`; the terminal
//! is given back whatever happens; the first frame needs nothing but the newest records of the store.

pub mod app;
pub mod doc;
mod editor;
mod effects;
pub mod filter;
mod fixes;
pub mod glyphs;
mod highlight;
pub mod input;
pub mod keymap;
pub mod knowledge;
mod layout;
mod line;
mod live;
mod load;
mod load_fix;
mod load_knowledge;
pub mod loaded;
mod markdown;
pub mod message;
mod pages;
mod screen;
pub mod stats;
mod terminal;
pub mod theme;
pub mod turns;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

pub use load::LedgerSource;
pub use loaded::LedgerText;
pub use screen::Screen;
pub use update::update;
pub use view::draw;

use app::{App, Budget, Place, Setup};
use keymap::Keymap;
use message::{Command, End, Message};
use terminal::{Events, Mailbox, Terminal};
use theme::{Background, Depth, Theme};

use crate::config::{self, Ambient, ColorChoice, Paths, Settings};
use crate::git::{Filter, Repo};
use crate::runner::Runner;

/// What the cockpit is made of.
pub struct Cockpit {
    pub runner: Runner,
    /// The exact ledger, or `None` when there is nothing to say. Called on a background thread.
    pub ledger: LedgerSource,
}

/// How the cockpit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The user quit.
    Quit,
    /// SIGTERM, SIGINT or SIGHUP.
    Signal,
}

/// Why the cockpit could not run.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Runs of the first frame: as many as an ordinary screen shows. Each costs a small file to read.
const FIRST_RUNS: usize = 24;

/// Runs the cockpit until the user quits. Reviews go on without it.
pub fn run(cockpit: Cockpit) -> Result<Exit, TuiError> {
    let Cockpit { runner, ledger } = cockpit;
    let (columns, rows) = Terminal::size();
    let mut app = App::new(setup(&runner, columns, rows));
    app.now = runner.ambient.now().as_millisecond();
    match runner.store.recent(FIRST_RUNS) {
        Ok(view) => {
            let now = app.now;
            // Pages are asked for again once the threads are there.
            for command in update(&mut app, now, Message::Viewed { view, written: 0 }) {
                if let Command::Filter { serial, view, filter, known } = command {
                    let rows = filter.rows(&view, &known);
                    update(&mut app, now, Message::Filtered { serial, view, rows });
                }
            }
            app.loading = None;
            app.files_asked.clear();
        }
        Err(error) => app.trouble = Some(error.to_string()),
    }
    terminal::restore_on_panic();
    let mut terminal = Terminal::take()?;
    let mut screen = Screen::new(columns, rows);
    terminal.enter(screen.frame(|buffer| draw(&app, buffer)))?;
    if asks_background(&app) {
        terminal.write(terminal::ASK_BACKGROUND)?;
    }
    let (events, mailbox) = Events::new()?;
    listen_to_signals(mailbox.clone())?;
    let root = runner.repo.root();
    let repo = Repo::discover(&root).ok();
    let filter =
        Filter { max_file_bytes: runner.settings.max_file_bytes, ignored_paths: runner.settings.ignored_paths.clone() };
    let loader = load::Loader::new(runner.store.clone(), repo, filter, ledger);
    // Somebody who wants a run to stop does not wait until a snapshot is taken.
    let control = Repo::discover(&root).ok().map(|repo| Runner {
        repo,
        store: runner.store.clone(),
        settings: Arc::clone(&runner.settings),
        paths: runner.paths.clone(),
        ambient: Ambient::system(),
    });
    let effects = effects::Effects::start(loader, runner, control, (Ambient::system(), app.zone.clone()), mailbox);
    let mut cockpit = Running { app, screen, terminal, events, effects, root, clock: Ambient::system() };
    let end = cockpit.run();
    let left = cockpit.terminal.leave();
    match end {
        // The terminal is gone: that it cannot be given back is no news.
        Ok(Some(End::HungUp)) => Ok(Exit::Signal),
        Ok(end) => {
            left?;
            Ok(if end.is_some() { Exit::Signal } else { Exit::Quit })
        }
        Err(error) => Err(error.into()),
    }
}

fn setup(runner: &Runner, columns: u16, rows: u16) -> Setup {
    let variable = |name: &str| std::env::var(name).ok();
    let (keymap, mut notices) = Keymap::parse(&runner.settings.keymap);
    let depth = match runner.settings.color {
        ColorChoice::Never => Depth::None,
        ColorChoice::Auto | ColorChoice::Always => Depth::detect(variable),
    };
    let (theme, theme_is_set) = theme(&runner.settings, &runner.paths, depth, variable, &mut notices);
    Setup {
        columns,
        rows,
        zone: zone(variable),
        place: Place {
            repository: runner.repo.name(),
            branch: runner.repo.branch(),
            window_tokens: runner.settings.window.max_tokens,
            max_turns: runner.settings.window.max_turns,
            budget: Budget {
                cost: runner.settings.budget.run_cost.map(|cost| cost.as_f64()),
                tokens: runner.settings.budget.run_tokens,
            },
        },
        keymap,
        theme,
        depth,
        theme_is_set,
        glyphs: if runner.settings.ascii { glyphs::ASCII } else { glyphs::UNICODE },
        notices,
    }
}

/// The local time zone. The system's own file is read directly: looking zones up by name walks through all of them, which
/// takes longer than the rest of the start.
fn zone(variable: impl Fn(&str) -> Option<String>) -> jiff::tz::TimeZone {
    if variable("TZ").is_none()
        && let Ok(bytes) = std::fs::read("/etc/localtime")
        && let Ok(zone) = jiff::tz::TimeZone::tzif("local", &bytes)
    {
        return zone;
    }
    jiff::tz::TimeZone::system()
}

/// The themes that are always there.
const THEMES: [&str; 4] = ["dark", "light", "neutral", "ansi"];

/// Whether the settings can name this theme: `auto`, one of ours, or a file of the user's (sound or not).
pub fn has_theme(paths: &Paths, name: &str) -> bool {
    matches!(name, "auto" | "") || THEMES.contains(&name) || !matches!(config::user_theme(paths, name, ""), Ok(None))
}

/// The theme of the settings; `auto` takes what the environment says and waits for the terminal's answer.
fn theme(
    settings: &Settings,
    paths: &Paths,
    depth: Depth,
    variable: impl Fn(&str) -> Option<String>,
    notices: &mut Vec<String>,
) -> (Theme, bool) {
    let (base, name) = match settings.theme.as_str() {
        "auto" | "" => {
            let background = variable("COLORFGBG").map_or(Background::Unknown, |value| Background::of_variable(&value));
            return (Theme::fitting(background, depth), false);
        }
        "dark" => (theme::DARK, "dark"),
        "light" => (theme::LIGHT, "light"),
        "neutral" => (theme::NEUTRAL, "neutral"),
        "ansi" => (theme::ANSI, "ansi"),
        name => (theme::DARK, name),
    };
    let text = match config::user_theme(paths, name, base) {
        Ok(Some(text)) => text,
        Ok(None) => {
            if !THEMES.contains(&name) {
                notices.push(format!("there is no theme {name:?}"));
            }
            base.to_owned()
        }
        Err(error) => {
            notices.push(error.to_string());
            base.to_owned()
        }
    };
    let (theme, faults) = Theme::parse(&text, depth);
    notices.extend(faults);
    (theme, true)
}

fn asks_background(app: &App) -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    !app.theme_is_set && matches!(app.depth, Depth::Indexed256 | Depth::True) && term != "linux"
}

fn listen_to_signals(mailbox: Mailbox) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGWINCH])?;
    std::thread::Builder::new().name(format!("{}signals", effects::WORKER)).spawn(move || {
        for signal in signals.forever() {
            let message = match signal {
                SIGWINCH => {
                    let (columns, rows) = Terminal::size();
                    Message::Resized { columns, rows }
                }
                SIGHUP => Message::Ended(End::HungUp),
                _ => Message::Ended(End::Terminated),
            };
            if mailbox.send(message).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

struct Running {
    app: App,
    screen: Screen,
    terminal: Terminal,
    events: Events,
    effects: effects::Effects,
    root: std::path::PathBuf,
    clock: Ambient,
}

/// Goes on, or ends with the reason.
type Going = std::ops::ControlFlow<Option<End>>;

impl Running {
    fn run(&mut self) -> io::Result<Option<End>> {
        // What the first frame showed asks for its pages.
        let mut next = Some(Message::Tick);
        loop {
            let message = match next.take() {
                Some(message) => message,
                // Only while a run lives does the passing of time change what is shown.
                None => {
                    let patience = self.app.shows_time().then_some(Duration::from_secs(1));
                    self.events.next(patience).unwrap_or(Message::Tick)
                }
            };
            if let Going::Break(end) = self.handle(message)? {
                return Ok(end);
            }
            while let Some(message) = self.events.ready() {
                if let Going::Break(end) = self.handle(message)? {
                    return Ok(end);
                }
            }
            let app = &self.app;
            let bytes = self.screen.frame(|buffer| draw(app, buffer));
            if !bytes.is_empty() {
                self.terminal.write(bytes)?;
            }
        }
    }

    fn handle(&mut self, message: Message) -> io::Result<Going> {
        if let Message::Resized { columns, rows } = message {
            self.screen.resize(columns, rows);
        }
        let now = self.clock.now().as_millisecond();
        for command in update(&mut self.app, now, message) {
            match command {
                Command::Quit(end) => return Ok(Going::Break(end)),
                Command::Redraw => self.screen.forget(),
                Command::Copy(text) => self.terminal.write(&clipboard(&text))?,
                Command::Edit { path, line } => {
                    let edited = self.edit(&path, line)?;
                    return self.handle(Message::Edited(edited));
                }
                Command::Suspend => {
                    self.suspend()?;
                    return self.handle(Message::Resumed);
                }
                command => self.effects.run(command, &self.app.view),
            }
        }
        Ok(Going::Continue(()))
    }

    fn edit(&mut self, path: &str, line: u32) -> io::Result<Result<(), String>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let setting = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_default();
        let file = self.root.join(path);
        self.terminal.leave()?;
        let edited = editor::run(&setting, &self.root, &file, line);
        self.terminal.take_again()?;
        self.fit();
        Ok(edited)
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.terminal.leave()?;
        // The whole group, as the terminal would do it: whoever started us stops with us.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        self.terminal.take_again()?;
        self.fit();
        Ok(())
    }

    /// The size may have changed while somebody else had the terminal.
    fn fit(&mut self) {
        let (columns, rows) = Terminal::size();
        self.screen.resize(columns, rows);
        let now = self.clock.now().as_millisecond();
        let _ = update(&mut self.app, now, Message::Resized { columns, rows });
    }
}

/// A text for the terminal's clipboard: OSC 52.
fn clipboard(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    format!("\x1b]52;c;{}\x07", base64::engine::general_purpose::STANDARD.encode(text)).into_bytes()
}
