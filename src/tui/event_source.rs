//! Source of keys and messages for the event loop.
//!
//! The event loop reads the terminal itself: an editor for which the loop waits gets all input, and a key press does not
//! pass through another thread.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::input::{InputParser, TerminalInput};
use super::interrupts::Interrupts;
use super::message::{AppMessage, ExitCause};

/// Pause without further bytes after which a lone Esc byte is the Esc key. As long as in Neovim (`ttimeoutlen`): over a slow
/// link, the bytes of an arrow may come one by one.
const ESC_TIMEOUT: Duration = Duration::from_millis(50);

/// Sends messages to the event loop. A byte in a pipe wakes the loop, which also waits for keys.
#[derive(Debug, Clone)]
pub struct MessageSender {
    sender: Sender<AppMessage>,
    wake: Arc<PipeWriter>,
}

/// Error: the event loop no longer reads messages.
#[derive(Debug)]
pub struct EventLoopClosed;

impl MessageSender {
    /// Sends a message and wakes the event loop.
    ///
    /// # Errors
    ///
    /// Returns an error if the event loop has ended.
    pub fn send(&self, message: AppMessage) -> Result<(), EventLoopClosed> {
        self.sender.send(message).map_err(|_| EventLoopClosed)?;
        // A full pipe wakes the loop too.
        let _ = (&*self.wake).write(b"!");
        Ok(())
    }
}

/// Source of keys and messages, waited for together.
pub struct EventSource {
    tty: File,
    wake: PipeReader,
    messages: Receiver<AppMessage>,
    parser: InputParser,
    /// Time of the last bytes of the terminal, or of the end of the last pause without some.
    quiet_since: Instant,
    ready: VecDeque<AppMessage>,
    interrupts: Interrupts,
}

impl EventSource {
    /// Creates the event source and a sender for its messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the wake pipe cannot be created, standard input cannot be duplicated or signals cannot be
    /// handled.
    pub fn new() -> io::Result<(Self, MessageSender)> {
        let tty = io::stdin().as_fd().try_clone_to_owned()?;
        Self::with_terminal(File::from(tty), Interrupts::listen()?)
    }

    fn with_terminal(tty: File, interrupts: Interrupts) -> io::Result<(Self, MessageSender)> {
        let (wake, woken) = io::pipe()?;
        for end in [wake.as_fd(), woken.as_fd()] {
            rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)?;
        }
        let (sender, messages) = channel();
        let events = Self {
            tty,
            wake,
            messages,
            parser: InputParser::default(),
            quiet_since: Instant::now(),
            ready: VecDeque::new(),
            interrupts,
        };
        Ok((events, MessageSender { sender, wake: Arc::new(woken) }))
    }

    /// Returns the interrupts, of which the thread of signals tells.
    pub fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    /// Returns a message that is already available, without waiting.
    pub fn try_next(&mut self) -> Option<AppMessage> {
        self.ready.pop_front().or_else(|| self.messages.try_recv().ok())
    }

    /// Waits for the next message; `None` if `patience` has passed.
    pub fn wait_next(&mut self, patience: Option<Duration>) -> Option<AppMessage> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        loop {
            if let Some(message) = self.try_next() {
                return Some(message);
            }
            let pause_end = self.parser.has_pending_bytes().then(|| self.quiet_since + ESC_TIMEOUT);
            let until = deadline.into_iter().chain(pause_end).min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| rustix::fs::Timespec::try_from(left).ok());
            let mut waiting = [PollFd::new(&self.tty, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut waiting, timeout.as_ref()) {
                Ok(0) => {
                    let now = Instant::now();
                    if pause_end.is_some_and(|end| end <= now) {
                        let mut inputs = Vec::new();
                        self.parser.flush(&mut inputs);
                        self.quiet_since = now;
                        self.ready.extend(inputs.into_iter().map(AppMessage::Input));
                    } else if deadline.is_some_and(|deadline| deadline <= now) {
                        return None;
                    }
                }
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

    /// Drops the interrupts that have arrived: a program in front of the cockpit got them, too, and they were for it.
    pub fn forget_interrupts(&mut self) {
        let interrupts = self.interrupts.clone();
        interrupts.forget(|| {
            self.take_messages();
            self.ready.retain(|message| !matches!(message, AppMessage::Ended(ExitCause::Interrupted)));
        });
    }

    /// Waits for a line of the terminal outside raw mode, or for the end of the cockpit, which becomes the next message. The
    /// line is dropped.
    pub fn wait_for_line(&mut self) {
        loop {
            self.take_messages();
            let end = self.ready.iter().position(|message| matches!(message, AppMessage::Ended(_)));
            if let Some(end) = end.and_then(|end| self.ready.remove(end)) {
                // No message before it may open a program.
                self.ready.push_front(end);
                return;
            }
            let mut waiting = [PollFd::new(&self.tty, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Ok(_) if !waiting[0].revents().is_empty() => match self.tty.read(&mut [0; 4096]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => return,
                },
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Moves the messages of other threads behind those that are ready.
    fn take_messages(&mut self) {
        let _ = self.wake.read(&mut [0; 4096]);
        self.ready.extend(self.messages.try_iter());
    }

    /// Reads what the terminal sends until it has answered the queries before an attributes query
    /// ([`super::terminal::Terminal::end_queries`]), at most until `deadline`. Without that, a late answer would become the
    /// input of the shell. Keys in between are dropped. Returns the answers that end queries; empty if none has come.
    pub fn drain_answers(&mut self, deadline: Instant) -> Vec<TerminalInput> {
        let mut inputs = Vec::new();
        self.read_answers(deadline, &mut inputs);
        let (ends, mut others): (Vec<_>, Vec<_>) = inputs.into_iter().partition(TerminalInput::ends_answers);
        // The cockpit may come back, and needs to know its background then.
        others.retain(|input| matches!(input, TerminalInput::Background(_) | TerminalInput::ReportsReleases));
        self.ready.extend(others.into_iter().map(AppMessage::Input));
        ends
    }

    fn read_answers(&mut self, deadline: Instant, inputs: &mut Vec<TerminalInput>) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = rustix::fs::Timespec::try_from(left).ok();
            let has_input = !left.is_zero() && {
                let mut waiting = [PollFd::new(&self.tty, PollFlags::IN)];
                match poll(&mut waiting, timeout.as_ref()) {
                    // A read would wait for a key, whatever the deadline.
                    Err(rustix::io::Errno::INTR) => continue,
                    found => matches!(found, Ok(1..)),
                }
            };
            let mut bytes = [0; 4096];
            match has_input.then(|| self.tty.read(&mut bytes)) {
                Some(Ok(read)) if read > 0 => {
                    self.quiet_since = Instant::now();
                    self.parser.feed(&bytes[..read], inputs);
                    if inputs.iter().any(TerminalInput::ends_answers) {
                        return;
                    }
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn read_input(&mut self) {
        let mut bytes = [0; 4096];
        match self.tty.read(&mut bytes) {
            Ok(n) if n > 0 => {
                let mut inputs = Vec::new();
                self.quiet_since = Instant::now();
                self.parser.feed(&bytes[..n], &mut inputs);
                self.ready.extend(inputs.into_iter().map(AppMessage::Input));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Without a terminal the cockpit ends, even if no SIGHUP arrived.
            _ => self.ready.push_back(AppMessage::Ended(ExitCause::HungUp)),
        }
    }

    /// Creates an event source whose terminal is a pipe.
    #[cfg(test)]
    pub fn piped() -> (Self, PipeWriter, MessageSender) {
        let (tty, typed) = io::pipe().expect("a pipe");
        let tty = File::from(std::os::fd::OwnedFd::from(tty));
        let (events, sender) = Self::with_terminal(tty, Interrupts::default()).expect("an event source");
        (events, typed, sender)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::input::{KeyCode, KeyEvent};
    use super::*;

    #[test]
    fn a_late_answer_is_read_before_the_terminal_is_given_back() {
        let far = Instant::now() + Duration::from_secs(3_600);
        let (mut events, mut typed, _mailbox) = EventSource::piped();
        typed.write_all(b"q\x1b]11;rgb:ffff/ff").expect("written");
        let late = thread::spawn(move || {
            typed.write_all(b"ff/ffff\x1b\\\x1b[?62;22c").expect("written");
            typed
        });
        assert_eq!(events.drain_answers(far), [TerminalInput::AnsweredAll]);
        let mut typed = late.join().expect("written");
        assert!(matches!(events.try_next(), Some(AppMessage::Input(TerminalInput::Background([255, 255, 255])))));
        assert!(events.try_next().is_none(), "keys in between are dropped");
        // Keys behind the answer stay for the shell.
        typed.write_all(b"ls\n").expect("written");
        let mut left = [0; 8];
        assert_eq!(events.tty.read(&mut left).expect("read"), 3);
        // A terminal that never answers is not waited for any longer than that.
        assert_eq!(events.drain_answers(Instant::now()), []);
    }

    #[test]
    fn an_unfinished_sequence_holds_up_no_tick_and_esc_waits_for_its_own_pause() {
        for unfinished in ["\x1b", "\x1b[1;", "\x1b]11;rgb:00", "\x1b[200~a\x1b[20"] {
            let (mut events, mut typed, _mailbox) = EventSource::piped();
            typed.write_all(unfinished.as_bytes()).expect("written");
            let began = Instant::now();
            let next = events.wait_next(Some(Duration::ZERO));
            // Reading may take longer than the pause on a busy machine.
            assert!(next.is_none() || began.elapsed() >= ESC_TIMEOUT, "{unfinished:?}: {next:?}");
        }
        let (mut events, mut typed, _mailbox) = EventSource::piped();
        typed.write_all(b"\x1b").expect("written");
        let began = Instant::now();
        let next_key = |events: &mut EventSource| match events.wait_next(Some(Duration::from_secs(3_600))) {
            Some(AppMessage::Input(TerminalInput::Key(key))) => key,
            other => panic!("{other:?} is no key"),
        };
        assert_eq!(next_key(&mut events), KeyEvent::plain(KeyCode::Esc));
        assert!(began.elapsed() >= ESC_TIMEOUT);
        // A sequence without an end is dropped.
        typed.write_all(b"\x1b[1;").expect("written");
        assert!(events.wait_next(Some(Duration::ZERO)).is_none());
        while events.parser.has_pending_bytes() {
            assert!(events.wait_next(Some(ESC_TIMEOUT)).is_none());
        }
        typed.write_all(b"j").expect("written");
        assert_eq!(next_key(&mut events), KeyEvent::plain(KeyCode::Char('j')));
    }

    #[test]
    fn an_interrupt_while_a_program_runs_is_for_that_and_another_signal_is_not() {
        let (mut events, _typed, mailbox) = EventSource::piped();
        mailbox.send(AppMessage::Ended(ExitCause::Interrupted)).expect("sent");
        mailbox.send(AppMessage::Ended(ExitCause::Terminated)).expect("sent");
        events.forget_interrupts();
        assert!(matches!(events.try_next(), Some(AppMessage::Ended(ExitCause::Terminated))));
        assert!(events.try_next().is_none());
        // At the question after the program, one ends the wait, and nothing else comes before that.
        mailbox.send(AppMessage::Resumed).expect("sent");
        mailbox.send(AppMessage::Ended(ExitCause::Interrupted)).expect("sent");
        events.wait_for_line();
        assert!(matches!(events.try_next(), Some(AppMessage::Ended(ExitCause::Interrupted))));
        assert!(matches!(events.try_next(), Some(AppMessage::Resumed)));
    }

    #[test]
    fn an_interrupt_is_told_once_and_only_if_it_came_after_those_that_are_forgotten() {
        // s: a signal; t: the thread of signals tells; f: a program has ended; r: the loop has read a message of the store.
        for (steps, expected) in [
            ("st", 1),
            ("stst", 2),
            ("sstt", 1),
            ("stt", 1),
            ("t", 0),
            ("stf", 0),
            ("sft", 0),
            ("sstft", 0),
            ("sfst", 1),
            ("sfstt", 1),
            ("stfst", 1),
            ("srtfst", 1),
            ("sftfst", 1),
        ] {
            let (mut events, _typed, mailbox) = EventSource::piped();
            let interrupts = events.interrupts();
            for step in steps.chars() {
                match step {
                    's' => interrupts.raise(),
                    't' => interrupts.tell(&mailbox).expect("the loop runs"),
                    'r' => {
                        mailbox.send(AppMessage::Tick).expect("sent");
                        assert!(matches!(events.try_next(), Some(AppMessage::Tick)));
                    }
                    _ => events.forget_interrupts(),
                }
            }
            let told = std::iter::from_fn(|| events.try_next());
            let told = told.filter(|message| matches!(message, AppMessage::Ended(ExitCause::Interrupted)));
            assert_eq!(told.count(), expected, "{steps}");
        }
    }

    #[test]
    fn forgetting_interrupts_waits_for_nothing() {
        let (mut events, _typed, _mailbox) = EventSource::piped();
        events.interrupts().raise();
        let began = Instant::now();
        events.forget_interrupts();
        assert!(began.elapsed() < Duration::from_millis(500), "no message is awaited");
    }
}
