//! What a program has said so far, whatever its way of saying it.

use crate::domain::{ErrorClass, StopReason, Usage};

/// Text that is kept of an answer.
pub const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The sum of what a program said. Bounded, whatever it says.
#[derive(Debug, Default)]
pub struct AgentTranscript {
    /// All it said as an answer, in order, with an empty line between messages.
    pub text: String,
    /// The text had no end.
    pub is_truncated: bool,
    /// The part of a message that has come in so far, of which the whole is going to be said again.
    pub partial: String,
    pub model: String,
    pub usage: Usage,
    pub stop: Option<StopReason>,
    /// What went wrong by its own word, the last one said.
    pub error: Option<(ErrorClass, String)>,
    /// Events that were understood, or that one may leave aside.
    pub events: u64,
    /// The next text begins a message.
    apart: bool,
}

impl AgentTranscript {
    /// A whole message.
    pub fn push_message(&mut self, text: &str) {
        self.partial.clear();
        if !text.is_empty() {
            self.apart = true;
            self.push_text(text);
            self.apart = true;
        }
    }

    /// More of a message that is not said again.
    pub fn push_text(&mut self, text: &str) {
        if std::mem::take(&mut self.apart) && !self.text.is_empty() {
            let line_ends = if self.text.ends_with('\n') { "\n" } else { "\n\n" };
            self.is_truncated |= !push_bounded(&mut self.text, line_ends);
        }
        self.is_truncated |= !push_bounded(&mut self.text, text);
    }

    /// The message is over.
    pub fn end_message(&mut self) {
        self.apart = true;
    }

    /// More of a message that is going to be said again as a whole.
    pub fn push_preview(&mut self, text: &str) {
        push_bounded(&mut self.partial, text);
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        self.push_message(&partial);
    }
}

/// Appends what there is room for; whether that was all.
fn push_bounded(text: &mut String, more: &str) -> bool {
    let room = MAX_TEXT_BYTES.saturating_sub(text.len());
    let kept = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
    text.push_str(kept);
    kept.len() == more.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stand_apart_and_what_was_cut_off_is_kept() {
        let mut said = AgentTranscript::default();
        said.push_preview("on");
        said.push_preview("e");
        said.push_message("one\n");
        said.push_text("tw");
        said.push_text("o");
        said.end_message();
        said.push_text("three");
        said.push_preview("fo");
        said.finish();
        assert_eq!(said.text, "one\n\ntwo\n\nthree\n\nfo");
        assert!(!said.is_truncated);
    }

    #[test]
    fn no_text_is_longer_than_the_limit() {
        let mut said = AgentTranscript::default();
        said.push_text("é");
        said.push_text(&"漢".repeat(MAX_TEXT_BYTES / 3 + 1));
        assert!(said.is_truncated && said.text.len() <= MAX_TEXT_BYTES && said.text.len() > MAX_TEXT_BYTES - 3);
        let length = said.text.len();
        said.push_message("more");
        assert!(said.text.len() <= MAX_TEXT_BYTES && said.text.len() >= length);
    }
}
