//! Notices questions about findings that have got their results, whichever process asked them.

use super::event_source::MessageSender;
use super::message::AppMessage;
use crate::store::Store;

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
    pub fn send_new(&mut self, store: &Store, messages: &MessageSender) -> bool {
        let bytes = store.questions_bytes();
        if bytes == self.bytes {
            return true;
        }
        match store.question_log() {
            Ok(mut log) => {
                let new = log.split_off(self.lines.min(log.len()));
                *self = Self { bytes, lines: log.len() + new.len() };
                messages.send(AppMessage::QuestionsAnswered(new)).is_ok()
            }
            Err(error) => messages.send(AppMessage::StoreTrouble(error.to_string())).is_ok(),
        }
    }
}
