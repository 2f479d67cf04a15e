//! The terminal: taken over, given back, whatever happens.
//!
//! Invariants: after [`Terminal::leave`], a panic of the main thread, SIGTERM or SIGHUP the terminal is as it was found;
//! the input thread reads nothing while an editor has the terminal.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, poll};

use super::input::{Input, Parser};

/// Alternate screen, cursor hidden, bracketed paste.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h";
const LEAVE: &[u8] = b"\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";
/// Asks for the background colour; whoever does not know the question ignores it.
pub const ASK_BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";
/// A lone Esc is one when nothing follows for so long (milliseconds).
const ESC_WAIT: i64 = 25;

/// Whether the terminal is ours at present: for the panic hook, which has no other way to know.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The output side.
pub struct Terminal {
    out: File,
}

impl Terminal {
    /// Takes the terminal over. What is written to it follows with the first frame, in one go.
    pub fn take() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
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
    pub fn enter(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(&[ENTER, frame].concat())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Takes the terminal again after [`Terminal::leave`].
    pub fn take_again(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        self.write(ENTER)
    }

    /// Gives it back.
    pub fn leave(&mut self) -> io::Result<()> {
        if TAKEN.swap(false, Ordering::SeqCst) {
            let written = self.write(LEAVE);
            disable_raw_mode()?;
            written?;
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.leave();
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
        if TAKEN.swap(false, Ordering::SeqCst) {
            let _ = io::stdout().write_all(LEAVE);
            let _ = io::stdout().flush();
            let _ = disable_raw_mode();
        }
        before(panic);
    }));
}

/// The input side: a thread that reads the terminal and can be told to let go of it.
pub struct Keyboard {
    wake: PipeWriter,
    parked: Receiver<()>,
    resume: SyncSender<()>,
}

impl Keyboard {
    /// Starts the thread; what is typed goes to `send`, which says whether anybody still listens.
    pub fn start(send: impl Fn(Input) -> bool + Send + 'static) -> io::Result<Self> {
        let (reader, wake) = io::pipe()?;
        let (parking, parked) = sync_channel(0);
        let (resume, resumed) = sync_channel(0);
        let tty = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        thread::Builder::new()
            .name(format!("{}keyboard", super::effects::WORKER))
            .spawn(move || listen(tty, reader, &parking, &resumed, &send))?;
        Ok(Self { wake, parked, resume })
    }

    /// Lets `work` have the terminal's input.
    pub fn parked<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_parked = (&self.wake).write_all(b"p").is_ok() && self.parked.recv().is_ok();
        let result = work();
        if is_parked {
            let _ = self.resume.send(());
        }
        result
    }
}

fn listen(
    mut tty: File,
    mut wake: PipeReader,
    parking: &SyncSender<()>,
    resumed: &Receiver<()>,
    send: &dyn Fn(Input) -> bool,
) {
    let mut parser = Parser::default();
    let mut inputs = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let patience = parser.is_waiting().then(|| rustix::fs::Timespec { tv_sec: 0, tv_nsec: ESC_WAIT * 1_000_000 });
        let mut waiting = [PollFd::new(&tty, PollFlags::IN), PollFd::new(&wake, PollFlags::IN)];
        match poll(&mut waiting, patience.as_ref()) {
            Ok(0) => parser.flush(&mut inputs),
            Ok(_) if !waiting[1].revents().is_empty() => {
                let _ = wake.read(&mut [0; 1]);
                if parking.send(()).is_err() || resumed.recv().is_err() {
                    return;
                }
                parser = Parser::default();
            }
            Ok(_) => match tty.read(&mut bytes) {
                Ok(0) => return,
                Ok(n) => parser.feed(&bytes[..n], &mut inputs),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for input in inputs.drain(..) {
            if !send(input) {
                return;
            }
        }
    }
}
