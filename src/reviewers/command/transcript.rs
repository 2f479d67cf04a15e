//! The text and figures that a program has reported so far, independent of its output format.

use crate::domain::{ErrorClass, StopReason, Usage};

/// Maximum size of the text of an answer.
pub const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The sum of what a program has reported. Its size is bounded.
#[derive(Debug, Default)]
pub struct AgentTranscript {
    /// All messages of the answer in order, with an empty line between two messages.
    pub text: String,
    /// The text exceeded [`MAX_TEXT_BYTES`] and is incomplete.
    pub is_truncated: bool,
    /// The beginning of a message that will arrive again as a whole.
    pub partial: String,
    pub model: String,
    pub usage: Usage,
    pub stop: Option<StopReason>,
    /// The last error that the program reported.
    pub error: Option<(ErrorClass, String)>,
    /// Number of events that were read, including events that may be ignored.
    pub events: u64,
    /// The next text begins a new message.
    apart: bool,
}

impl AgentTranscript {
    /// Adds a whole message.
    pub fn push_message(&mut self, text: &str) {
        self.partial.clear();
        if !text.is_empty() {
            self.apart = true;
            self.push_text(text);
            self.apart = true;
        }
    }

    /// Adds text to a message that is not repeated as a whole.
    pub fn push_text(&mut self, text: &str) {
        if std::mem::take(&mut self.apart) && !self.text.is_empty() {
            let line_ends = if self.text.ends_with('\n') { "\n" } else { "\n\n" };
            self.is_truncated |= !push_bounded(&mut self.text, line_ends);
        }
        self.is_truncated |= !push_bounded(&mut self.text, text);
    }

    /// Ends the current message.
    pub fn end_message(&mut self) {
        self.apart = true;
    }

    /// Adds text to a message that will be repeated as a whole.
    pub fn push_preview(&mut self, text: &str) {
        push_bounded(&mut self.partial, text);
    }

    /// Ends the transcript. A partial message becomes part of the text.
    pub fn finish(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        self.push_message(&partial);
    }
}

/// Appends as much as there is room for. Returns `true` if that was all of `more`.
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
