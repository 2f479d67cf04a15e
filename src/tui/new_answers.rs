//! Notices questions about findings that have got their results, whichever process asked them.

use super::event_source::MessageSender;
use super::message::AppMessage;
use crate::store::{Store, StoreError};

/// Lines of `questions.ndjson` that the cockpit knows.
pub struct NewAnswers {
    bytes: u64,
    lines: usize,
}

impl NewAnswers {
    /// Takes the lines that are there for known: only later ones are news.
    pub fn new(store: &Store) -> Self {
        Self { bytes: store.questions_bytes(), lines: store.question_log().map_or(0, |log| log.len()) }
    }

    /// Sends the lines that are new. Returns false if the receiver is gone.
    ///
    /// # Errors
    /// Returns an error when the lines cannot be read.
    pub fn send_new(&mut self, store: &Store, messages: &MessageSender) -> Result<bool, StoreError> {
        let bytes = store.questions_bytes();
        if bytes == self.bytes {
            return Ok(true);
        }
        let mut log = store.question_log()?;
        let new = log.split_off(self.lines.min(log.len()));
        *self = Self { bytes, lines: log.len() + new.len() };
        Ok(messages.send(AppMessage::QuestionsAnswered(new)).is_ok())
    }
}
