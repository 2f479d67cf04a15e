//! Acquires and restores the terminal.
//!
//! The terminal is restored after [`Terminal::release`], a panic of the main thread, SIGTERM, SIGINT, SIGQUIT or SIGHUP.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::input::{KITTY_ALTERNATE_KEYS, KITTY_DISAMBIGUATE, KITTY_EVENT_TYPES, TerminalInput};

/// Enters the alternate screen, hides the cursor, switches bracketed paste on, asks for reports when the terminal gets the
/// focus and when its colours become dark or light, and has cells stand where they are written: a terminal that reorders right-to-left text
/// would move it from one pane into another.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?2031h\x1b[8l";
/// Clears the screen, because some terminals, such as mosh, have no alternate one.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[8h\x1b[?2031l\x1b[?1004l\x1b[?2004l\x1b[0m\x1b[H\x1b[2J\x1b[?25h\x1b[?1049l";
/// Takes back what [`push_key_protocol`] has asked for.
const POP_KEY_PROTOCOL: &[u8] = b"\x1b[<u";
/// Asks for the device attributes. Its answer comes after those to all earlier queries.
const ATTRIBUTES_QUERY: &[u8] = b"\x1b[c";
/// Time after a query for which the end waits for its answer: over a slow link, an answer takes as long as the echo of a
/// key, and what takes longer than this is hardly used by anybody.
const MAX_ANSWER_WAIT: Duration = Duration::from_millis(500);
/// Queries the background colour; terminals without support ignore the query.
const BACKGROUND_QUERY: &[u8] = b"\x1b]11;?\x1b\\";
/// The query for the terminal in which tmux runs. tmux passes it on if `allow-passthrough` is on; a tmux that knows the
/// colour answers the plain query itself.
const TMUX_BACKGROUND_QUERY: &[u8] = b"\x1bPtmux;\x1b\x1b]11;?\x1b\x1b\\\x1b\\";
/// The query for the terminal in which GNU screen runs. It ends with BEL, because ST would end what screen passes on. An
/// [`ATTRIBUTES_QUERY`] for that terminal follows: screen answers its own at once, before this answer comes.
const SCREEN_BACKGROUND_QUERY: &[u8] = b"\x1bP\x1b]11;?\x07\x1b\\\x1bP\x1b[c\x1b\\";

/// True while the cockpit controls the terminal. A static, because the panic hook has no other access to this
/// state.
static IS_ACQUIRED: AtomicBool = AtomicBool::new(false);

/// True if the terminal was asked for released keys. The consoles of old Linux kernels print what they do not know.
static HAS_KEY_PROTOCOL: AtomicBool = AtomicBool::new(false);

/// True if the terminal was asked to report the mouse.
static HAS_MOUSE: AtomicBool = AtomicBool::new(false);

/// Asks for presses, releases and movement with a button held, in the form of SGR, which has no greatest column.
const MOUSE_ON: &[u8] = b"\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1002l";

/// Chooses whether the terminal reports the mouse from the next time on that it is taken.
pub fn choose_mouse(on: bool) {
    HAS_MOUSE.store(on, Ordering::SeqCst);
}

/// Query to the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TerminalQuery {
    bytes: Vec<u8>,
    /// Number of [`ATTRIBUTES_QUERY`] in the bytes.
    attributes_queries: u32,
}

/// Returns the query for the background colour, also of the terminal around tmux or GNU screen.
pub fn background_query(variable: impl Fn(&str) -> Option<String>) -> TerminalQuery {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    let (through, attributes_queries) = if is_set("TMUX") || term.starts_with("tmux") {
        (TMUX_BACKGROUND_QUERY, 0)
    } else if is_set("STY") || term.starts_with("screen") {
        (SCREEN_BACKGROUND_QUERY, 1)
    } else {
        (&b""[..], 0)
    };
    TerminalQuery { bytes: [BACKGROUND_QUERY, through].concat(), attributes_queries }
}

/// Returns the bytes that give the terminal back.
fn leave_sequence() -> Vec<u8> {
    let pop = if HAS_KEY_PROTOCOL.load(Ordering::SeqCst) { POP_KEY_PROTOCOL } else { b"" };
    let mouse = if HAS_MOUSE.load(Ordering::SeqCst) { MOUSE_OFF } else { b"" };
    [pop, mouse, LEAVE_SEQUENCE].concat()
}

/// Returns the bytes that take the terminal.
fn enter_sequence(is_windows_terminal: bool) -> Vec<u8> {
    let has_key_protocol = HAS_KEY_PROTOCOL.load(Ordering::SeqCst);
    let push = if has_key_protocol { push_key_protocol(is_windows_terminal) } else { Vec::new() };
    let mouse = if HAS_MOUSE.load(Ordering::SeqCst) { MOUSE_ON } else { b"" };
    [ENTER_SEQUENCE, mouse, &push].concat()
}

/// Returns the bytes that ask whether the terminal can report released keys in the kitty keyboard protocol, and leave it at
/// [`key_flags`] without them: while kitty reports releases, it sends Enter, Tab and Backspace a second time (kitty
/// issues 7136, 8212). Terminals without the protocol ignore all three sequences.
fn push_key_protocol(is_windows_terminal: bool) -> Vec<u8> {
    let asked = key_flags(is_windows_terminal, true);
    let mut bytes = format!("\x1b[>{asked}u\x1b[?u").into_bytes();
    bytes.extend(set_key_flags(key_flags(is_windows_terminal, false)));
    bytes
}

/// Returns the bytes that set the flags of the kitty keyboard protocol.
fn set_key_flags(flags: u32) -> Vec<u8> {
    format!("\x1b[={flags};1u").into_bytes()
}

/// Returns the flags of the kitty keyboard protocol. In Windows Terminal keys stay what they are without it: up to version
/// 1.25, it reports a character that AltGr types as Alt with another key (microsoft/terminal issue 19977). It reports
/// releases all the same.
fn key_flags(is_windows_terminal: bool, reports_releases: bool) -> u32 {
    let rest = if is_windows_terminal { 0 } else { KITTY_DISAMBIGUATE | KITTY_ALTERNATE_KEYS };
    if reports_releases { rest | KITTY_EVENT_TYPES } else { rest }
}

/// Time after the terminal was taken again in which the signal that the process continues is no news.
const CONTINUED_GRACE: Duration = Duration::from_millis(500);

/// Returns true if the terminal may be asked for released keys: it knows the kitty keyboard protocol, or ignores the
/// question. The consoles of old Linux kernels print it.
fn may_know_key_protocol(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("TERM").is_some_and(|term| term != "linux")
}

/// Returns true in GNU screen, which keeps a lone Esc byte back while the mouse is reported.
pub fn is_gnu_screen(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("STY").is_some_and(|value| !value.is_empty())
}

/// Returns true in Windows Terminal on the same machine, also in WSL. Over SSH, only its answer tells
/// ([`TerminalInput::AnsweredByWindowsTerminal`]).
pub fn is_windows_terminal(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("WT_SESSION").is_some_and(|value| !value.is_empty())
}

/// Output side of the terminal.
pub struct Terminal {
    out: File,
    /// True while the terminal reports released keys.
    reports_releases: bool,
    /// See [`key_flags`].
    is_windows_terminal: bool,
    /// Last time at which the terminal was taken again.
    reacquired_at: Option<Instant>,
    /// Number of [`ATTRIBUTES_QUERY`] without an answer, and the time of the last one.
    open_queries: u32,
    queried_at: Option<Instant>,
}

impl Terminal {
    /// Switches the terminal to raw mode. The alternate screen follows with the first frame, in one write.
    ///
    /// # Errors
    ///
    /// Returns an error if standard output cannot be duplicated or raw mode fails.
    pub fn acquire() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        let variable = |name: &str| std::env::var(name).ok();
        HAS_KEY_PROTOCOL.store(may_know_key_protocol(variable), Ordering::SeqCst);
        IS_ACQUIRED.store(true, Ordering::SeqCst);
        let is_windows_terminal = is_windows_terminal(variable);
        Ok(Self {
            out,
            reports_releases: false,
            is_windows_terminal,
            reacquired_at: None,
            open_queries: 0,
            queried_at: None,
        })
    }

    /// Returns columns and rows; 80 by 24 if unknown.
    pub fn size() -> (u16, u16) {
        match crossterm::terminal::size() {
            Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
            _ => (80, 24),
        }
    }

    /// Enters the alternate screen and writes the first frame.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn enter_alternate_screen(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(&[enter_sequence(self.is_windows_terminal).as_slice(), frame].concat())
    }

    /// Has the terminal report the mouse, or not.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        // Noted before it is switched on, so that a panic in between switches it off.
        if on {
            choose_mouse(true);
            return self.write(MOUSE_ON);
        }
        self.write(MOUSE_OFF)?;
        choose_mouse(false);
        Ok(())
    }

    /// Has the terminal report released keys, or not.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn report_releases(&mut self, on: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.reports_releases, on) == on {
            return Ok(());
        }
        self.write(&set_key_flags(key_flags(self.is_windows_terminal, on)))
    }

    /// Writes bytes to the terminal.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Acquires the terminal again after [`Terminal::release`].
    ///
    /// # Errors
    ///
    /// Returns an error if raw mode fails or the terminal cannot be written.
    pub fn reacquire(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_ACQUIRED.store(true, Ordering::SeqCst);
        self.reports_releases = false;
        self.reacquired_at = Some(Instant::now());
        self.write(&enter_sequence(self.is_windows_terminal))?;
        self.end_queries(&TerminalQuery::default())
    }

    /// Sends a query, and one whose answer comes after those to all others, if there are any.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn end_queries(&mut self, query: &TerminalQuery) -> io::Result<()> {
        if query.bytes.is_empty() && !HAS_KEY_PROTOCOL.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.open_queries += query.attributes_queries + 1;
        self.queried_at = Some(Instant::now());
        self.write(&[query.bytes.as_slice(), ATTRIBUTES_QUERY].concat())
    }

    /// Notes an answer to one of the [`ATTRIBUTES_QUERY`] that [`Terminal::end_queries`] has sent. Sets the flags of keys again
    /// if it says that this is Windows Terminal.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written.
    pub fn note_answer(&mut self, answer: &TerminalInput) -> io::Result<()> {
        self.open_queries = self.open_queries.saturating_sub(1);
        if self.is_windows_terminal || *answer != TerminalInput::AnsweredByWindowsTerminal {
            return Ok(());
        }
        self.is_windows_terminal = true;
        match HAS_KEY_PROTOCOL.load(Ordering::SeqCst) {
            true => self.write(&set_key_flags(key_flags(true, self.reports_releases))),
            false => Ok(()),
        }
    }

    /// Returns the time until which answers may come; `None` if none is expected any more.
    pub fn answers_until(&self) -> Option<Instant> {
        let until = self.queried_at.filter(|_| self.open_queries > 0)? + MAX_ANSWER_WAIT;
        (until > Instant::now()).then_some(until)
    }

    /// Takes the terminal again after the process was stopped, unless the loop has just done so. Returns true if it did.
    ///
    /// # Errors
    ///
    /// Returns an error if raw mode fails or the terminal cannot be written.
    pub fn reacquire_after_stop(&mut self) -> io::Result<bool> {
        if self.reacquired_at.is_some_and(|at| at.elapsed() < CONTINUED_GRACE) {
            return Ok(false);
        }
        self.release()?;
        self.reacquire()?;
        Ok(true)
    }

    /// Restores the terminal; does nothing if it is already released.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be written or its mode cannot be restored.
    pub fn release(&mut self) -> io::Result<()> {
        if IS_ACQUIRED.swap(false, Ordering::SeqCst) {
            // Raw mode ends first: a user who sees the restored screen may already type.
            let cooked = disable_raw_mode();
            self.write(&leave_sequence())?;
            cooked?;
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

/// Installs a panic hook that restores the terminal before the message is printed. Panics of the cockpit's worker
/// threads are only logged, because those threads catch and report their panics.
pub fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name().is_some_and(|name| name.starts_with(super::effects::WORKER)) {
            tracing::error!("{panic}");
            return;
        }
        if IS_ACQUIRED.swap(false, Ordering::SeqCst) {
            let _ = disable_raw_mode();
            let _ = io::stdout().write_all(&leave_sequence());
            let _ = io::stdout().flush();
        }
        before(panic);
    }));
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read};

    use super::super::event_source::EventSource;
    use super::super::message::AppMessage;
    use super::*;

    /// Creates a terminal whose output is a pipe.
    fn piped_terminal() -> (Terminal, PipeReader) {
        let (written, out) = io::pipe().expect("a pipe");
        rustix::fs::fcntl_setfl(written.as_fd(), rustix::fs::OFlags::NONBLOCK).expect("a mode");
        let out = File::from(std::os::fd::OwnedFd::from(out));
        let terminal = Terminal {
            out,
            reports_releases: false,
            is_windows_terminal: false,
            reacquired_at: None,
            open_queries: 0,
            queried_at: None,
        };
        (terminal, written)
    }

    /// Returns what was written since the last call.
    fn read_written(written: &mut PipeReader) -> String {
        let mut bytes = [0; 256];
        let count = written.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[test]
    fn windows_terminal_gets_the_key_protocol_only_while_releases_are_needed() {
        assert_eq!(push_key_protocol(false), b"\x1b[>7u\x1b[?u\x1b[=5;1u");
        assert_eq!(push_key_protocol(true), b"\x1b[>2u\x1b[?u\x1b[=0;1u");
        for (value, expected) in [(None, false), (Some(""), false), (Some("2c2b8f4e-6a1c"), true)] {
            let variable = |name: &str| value.filter(|_| name == "WT_SESSION").map(str::to_owned);
            assert_eq!(is_windows_terminal(variable), expected, "{value:?}");
        }
        // Over SSH, its answer comes later.
        HAS_KEY_PROTOCOL.store(true, Ordering::SeqCst);
        let (mut terminal, mut written) = piped_terminal();
        let answer = TerminalInput::AnsweredByWindowsTerminal;
        terminal.note_answer(&TerminalInput::AnsweredAll).expect("written");
        assert_eq!(read_written(&mut written), "");
        terminal.report_releases(true).expect("written");
        assert_eq!(read_written(&mut written), "\x1b[=7;1u");
        terminal.note_answer(&answer).expect("written");
        assert_eq!(read_written(&mut written), "\x1b[=2;1u");
        terminal.note_answer(&answer).expect("written");
        assert_eq!(read_written(&mut written), "", "that is known");
        terminal.report_releases(false).expect("written");
        assert_eq!(read_written(&mut written), "\x1b[=0;1u");
    }

    #[test]
    fn the_linux_console_is_not_asked_for_released_keys() {
        for (term, expected) in [
            (Some("linux"), false),
            // GNU screen ignores what it does not know, on the console, too.
            (Some("screen.linux"), true),
            (Some("xterm-256color"), true),
            (None, false),
        ] {
            let variable = |name: &str| term.filter(|_| name == "TERM").map(str::to_owned);
            assert_eq!(may_know_key_protocol(variable), expected, "{term:?}");
        }
    }

    #[test]
    fn the_background_is_asked_through_multiplexers_too() {
        let query = |pairs: &[(&str, &str)]| {
            background_query(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        for (pairs, through, attributes_queries) in [
            (&[("TERM", "xterm-256color")][..], &b""[..], 0),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux-1/default,1,0")], TMUX_BACKGROUND_QUERY, 0),
            // tmux with the terminal type of screen, also over SSH, where its variable does not arrive.
            (&[("TERM", "screen-256color"), ("TMUX", "/tmp/x,1,0"), ("STY", "")], TMUX_BACKGROUND_QUERY, 0),
            (&[("TERM", "screen-256color"), ("STY", "1.pts-0.host")], SCREEN_BACKGROUND_QUERY, 1),
            (&[("TERM", "screen")], SCREEN_BACKGROUND_QUERY, 1),
        ] {
            let bytes = [BACKGROUND_QUERY, through].concat();
            let asked = bytes.windows(ATTRIBUTES_QUERY.len()).filter(|part| *part == ATTRIBUTES_QUERY).count();
            assert_eq!(asked, attributes_queries as usize, "{pairs:?}");
            assert_eq!(query(pairs), TerminalQuery { bytes, attributes_queries }, "{pairs:?}");
        }
    }

    #[test]
    fn behind_gnu_screen_its_own_answer_is_not_the_last_one() {
        let variable = |name: &str| (name == "STY").then(|| "1.pts-0.host".to_owned());
        // The answers of screen and of the terminal come one by one, or at once.
        for answers in [
            &["\x1b[?1;2c", "\x1b]11;rgb:ff/ff/ff\x07\x1b[?62;22c"][..],
            &["\x1b[?1;2c\x1b]11;rgb:ff/ff/ff\x07\x1b[?62c"],
        ] {
            let (mut terminal, _written) = piped_terminal();
            let (mut events, mut typed, _mailbox) = EventSource::piped();
            terminal.end_queries(&background_query(variable)).expect("written");
            for answer in answers {
                assert!(terminal.open_queries > 0, "an answer is to come");
                typed.write_all(answer.as_bytes()).expect("written");
                for answer in events.drain_answers(Instant::now() + Duration::from_secs(3_600)) {
                    terminal.note_answer(&answer).expect("written");
                }
            }
            assert_eq!(terminal.open_queries, 0, "{answers:?}");
            assert!(matches!(events.try_next(), Some(AppMessage::Input(TerminalInput::Background([255, 255, 255])))));
        }
    }
}
