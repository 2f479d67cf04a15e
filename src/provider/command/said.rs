//! What a program has said so far, whatever its way of saying it.

use crate::domain::{ErrorClass, Stop, Usage};

/// Text that is kept of an answer.
pub const TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The sum of what a program said. Bounded, whatever it says.
#[derive(Debug, Default)]
pub struct Said {
    /// All it said as an answer, in order, with an empty line between messages.
    pub text: String,
    /// The text had no end.
    pub cut: bool,
    /// The part of a message that has come in so far, of which the whole is going to be said again.
    pub partial: String,
    pub model: String,
    pub usage: Usage,
    pub stop: Option<Stop>,
    /// What went wrong by its own word, the last one said.
    pub trouble: Option<(ErrorClass, String)>,
    /// Events that were understood, or that one may leave aside.
    pub events: u64,
    /// The next text begins a message.
    apart: bool,
}

impl Said {
    /// A whole message.
    pub fn message(&mut self, text: &str) {
        self.partial.clear();
        if !text.is_empty() {
            self.apart = true;
            self.go_on(text);
            self.apart = true;
        }
    }

    /// More of a message that is not said again.
    pub fn go_on(&mut self, text: &str) {
        if std::mem::take(&mut self.apart) && !self.text.is_empty() {
            let line_ends = if self.text.ends_with('\n') { "\n" } else { "\n\n" };
            self.cut |= !push(&mut self.text, line_ends);
        }
        self.cut |= !push(&mut self.text, text);
    }

    /// The message is over.
    pub fn pause(&mut self) {
        self.apart = true;
    }

    /// More of a message that is going to be said again as a whole.
    pub fn preview(&mut self, text: &str) {
        push(&mut self.partial, text);
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        self.message(&partial);
    }
}

/// Appends what there is room for; whether that was all.
fn push(text: &mut String, more: &str) -> bool {
    let room = TEXT_BYTES.saturating_sub(text.len());
    let kept = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
    text.push_str(kept);
    kept.len() == more.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stand_apart_and_what_was_cut_off_is_kept() {
        let mut said = Said::default();
        said.preview("on");
        said.preview("e");
        said.message("one\n");
        said.go_on("tw");
        said.go_on("o");
        said.pause();
        said.go_on("three");
        said.preview("fo");
        said.end();
        assert_eq!(said.text, "one\n\ntwo\n\nthree\n\nfo");
        assert!(!said.cut);
    }

    #[test]
    fn no_text_is_longer_than_the_limit() {
        let mut said = Said::default();
        said.go_on("é");
        said.go_on(&"漢".repeat(TEXT_BYTES / 3 + 1));
        assert!(said.cut && said.text.len() <= TEXT_BYTES && said.text.len() > TEXT_BYTES - 3);
        let length = said.text.len();
        said.message("more");
        assert!(said.text.len() <= TEXT_BYTES && said.text.len() >= length);
    }
}
