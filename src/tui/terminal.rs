//! The terminal: taken over, given back, whatever happens.
//!
//! Invariants: after [`Terminal::leave`], a panic of the main thread, SIGTERM or SIGHUP the terminal is as it was found.
//! The loop reads the terminal itself, so that an editor that it waits for has all of the input, and a key takes no way
//! over another thread.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, poll};

use super::input::InputParser;
use super::message::{AppMessage, ExitCause};

/// Alternate screen, cursor hidden, bracketed paste.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h";
const LEAVE_SEQUENCE: &[u8] = b"\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";
/// Asks for the background colour; whoever does not know the question ignores it.
pub const BACKGROUND_QUERY: &[u8] = b"\x1b]11;?\x1b\\";
/// A lone Esc is one when nothing follows for so long.
const ESC_TIMEOUT: Duration = Duration::from_millis(25);

/// Whether the terminal is ours at present: for the panic hook, which has no other way to know.
static IS_ACQUIRED: AtomicBool = AtomicBool::new(false);

/// The output side.
pub struct Terminal {
    out: File,
}

impl Terminal {
    /// Takes the terminal over. What is written to it follows with the first frame, in one go.
    pub fn acquire() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        IS_ACQUIRED.store(true, Ordering::SeqCst);
        Ok(Self { out })
    }

    /// Columns and rows.
    pub fn size() -> (u16, u16) {
        match crossterm::terminal::size() {
            Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
            _ => (80, 24),
        }
    }

    /// Enters the alternate screen, with the first frame.
    pub fn enter_alternate_screen(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(&[ENTER_SEQUENCE, frame].concat())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Takes the terminal again after [`Terminal::leave`].
    pub fn reacquire(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_ACQUIRED.store(true, Ordering::SeqCst);
        self.write(ENTER_SEQUENCE)
    }

    /// Gives it back.
    pub fn release(&mut self) -> io::Result<()> {
        if IS_ACQUIRED.swap(false, Ordering::SeqCst) {
            // The line discipline first: whoever sees the screen given back may type.
            let cooked = disable_raw_mode();
            self.write(LEAVE_SEQUENCE)?;
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

/// A panic of a thread that is not one of ours (their panics are caught and told) gives the terminal back first, so that
/// its message can be read.
pub fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name().is_some_and(|name| name.starts_with(super::effects::WORKER)) {
            tracing::error!("{panic}");
            return;
        }
        if IS_ACQUIRED.swap(false, Ordering::SeqCst) {
            let _ = disable_raw_mode();
            let _ = io::stdout().write_all(LEAVE_SEQUENCE);
            let _ = io::stdout().flush();
        }
        before(panic);
    }));
}

/// Where threads put their messages: the channel, and a byte that wakes the loop, which waits for keys as well.
#[derive(Debug, Clone)]
pub struct MessageSender {
    sender: Sender<AppMessage>,
    wake: Arc<PipeWriter>,
}

/// Nobody reads the messages any more.
#[derive(Debug)]
pub struct EventLoopClosed;

impl MessageSender {
    pub fn send(&self, message: AppMessage) -> Result<(), EventLoopClosed> {
        self.sender.send(message).map_err(|_| EventLoopClosed)?;
        // A full pipe wakes as well as one with a byte more.
        let _ = (&*self.wake).write(b"!");
        Ok(())
    }
}

/// Keys and messages, waited for in one place.
pub struct EventSource {
    tty: File,
    wake: PipeReader,
    messages: Receiver<AppMessage>,
    parser: InputParser,
    ready: VecDeque<AppMessage>,
}

impl EventSource {
    pub fn new() -> io::Result<(Self, MessageSender)> {
        let (reader, writer) = io::pipe()?;
        for end in [reader.as_fd(), writer.as_fd()] {
            rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)?;
        }
        let (sender, messages) = channel();
        let tty = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let events = Self { tty, wake: reader, messages, parser: InputParser::default(), ready: VecDeque::new() };
        Ok((events, MessageSender { sender, wake: Arc::new(writer) }))
    }

    /// What is there already, without waiting for more.
    pub fn try_next(&mut self) -> Option<AppMessage> {
        self.ready.pop_front().or_else(|| self.messages.try_recv().ok())
    }

    /// Waits for the next one; `None` when the patience has come to its end.
    pub fn wait_next(&mut self, patience: Option<Duration>) -> Option<AppMessage> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        loop {
            if let Some(message) = self.try_next() {
                return Some(message);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = if self.parser.has_pending_bytes() {
                Some(left.map_or(ESC_TIMEOUT, |left| left.min(ESC_TIMEOUT)))
            } else {
                left
            };
            let timeout = timeout.and_then(|time| rustix::fs::Timespec::try_from(time).ok());
            let mut waiting = [PollFd::new(&self.tty, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut waiting, timeout.as_ref()) {
                Ok(0) if self.parser.has_pending_bytes() => {
                    let mut inputs = Vec::new();
                    self.parser.flush(&mut inputs);
                    self.ready.extend(inputs.into_iter().map(AppMessage::Input));
                }
                Ok(0) => return None,
                Ok(_) => {
                    let (typed, woken) = (!waiting[0].revents().is_empty(), !waiting[1].revents().is_empty());
                    if woken {
                        let _ = self.wake.read(&mut [0; 4096]);
                    }
                    if typed {
                        self.read_input();
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Some(AppMessage::Ended(ExitCause::HungUp)),
            }
        }
    }

    fn read_input(&mut self) {
        let mut bytes = [0; 4096];
        match self.tty.read(&mut bytes) {
            Ok(n) if n > 0 => {
                let mut inputs = Vec::new();
                self.parser.feed(&bytes[..n], &mut inputs);
                self.ready.extend(inputs.into_iter().map(AppMessage::Input));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Without a terminal there is nobody to show anything to, whether or not the hang-up was signalled.
            _ => self.ready.push_back(AppMessage::Ended(ExitCause::HungUp)),
        }
    }
}
