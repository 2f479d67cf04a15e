//! Tells the event loop of interrupts (SIGINT, SIGQUIT), but for those that were for a program in front of the cockpit.
//!
//! - The signal handler sets a flag. The thread of signals takes it and sends a message; several interrupts may be one.
//! - Whoever forgets interrupts clears the flag and drops the messages in one step, so that none is on its way. One that
//!   arrives later sets the flag again, and is told.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGQUIT};

use super::event_source::{EventLoopClosed, MessageSender};
use super::message::{AppMessage, ExitCause};

/// Interrupts that have arrived and are not told yet.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    /// Set by the signal handler.
    has_arrived: Arc<AtomicBool>,
    /// Held while an interrupt is told and while interrupts are forgotten.
    gate: Arc<Mutex<()>>,
}

impl Interrupts {
    /// Notes interrupts from now on.
    ///
    /// # Errors
    ///
    /// Returns an error if the signals cannot be handled.
    pub fn listen() -> io::Result<Self> {
        let interrupts = Self::default();
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&interrupts.has_arrived))?;
        }
        Ok(interrupts)
    }

    /// Sends the message of the interrupts that have arrived, if there are any.
    ///
    /// # Errors
    ///
    /// Returns an error if the event loop has ended.
    pub fn tell(&self, mailbox: &MessageSender) -> Result<(), EventLoopClosed> {
        let _held = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        match self.has_arrived.swap(false, Ordering::SeqCst) {
            true => mailbox.send(AppMessage::Ended(ExitCause::Interrupted)),
            false => Ok(()),
        }
    }

    /// Forgets the interrupts that have arrived. `drop_messages` drops the messages of those that were told.
    pub fn forget(&self, drop_messages: impl FnOnce()) {
        let _held = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_arrived.store(false, Ordering::SeqCst);
        drop_messages();
    }

    /// Does what the signal handler does.
    #[cfg(test)]
    pub fn raise(&self) {
        self.has_arrived.store(true, Ordering::SeqCst);
    }
}
