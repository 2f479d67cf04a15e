//! An answer as it grows, the same for all wire formats, and what it is worth when it ends, whole or broken.
//!
//! Invariants: bounded, whatever comes; text only grows, so that what broke off is the beginning of the whole.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::key::Key;
use crate::domain::text::one_line;
use crate::domain::{Response, Stop, ToolCall, Usage};

/// Bytes of text, arguments and thoughts together. The longest answers of today's models have 128,000 tokens, half a
/// megabyte of text.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of the arguments of one call.
const CALL_BYTES: usize = 1024 * 1024;
const CALLS: usize = 128;
/// Bytes that anything begun is counted with, so that a million empty things are too large as well.
const PART_BYTES: usize = 64;
/// Characters of the names and ids that a server gives. OpenAI takes ids of 40 back.
const NAME_CHARACTERS: usize = 128;
/// What ids of ours begin with.
const OWN_ID: &str = "rd_";

/// The answer grew over a limit; this says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge(pub &'static str);

/// An answer that is coming in.
#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    drafts: Vec<Draft>,
    pub opaque: Vec<Value>,
    pub stop: Option<Stop>,
    pub usage: Usage,
    pub model: String,
    /// The server said that nothing follows.
    pub finished: bool,
    /// Something was understood: the server speaks the format.
    pub heard: bool,
    bytes: usize,
}

/// A call that is coming in.
#[derive(Debug)]
struct Draft {
    call: ToolCall,
    /// The server said that its arguments are all there.
    ended: bool,
}

/// Which call a piece of arguments belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(usize);

impl Answer {
    pub fn say(&mut self, text: &str) -> Result<(), TooLarge> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Another block of text begins: it does not run into the one before.
    pub fn paragraph(&mut self) -> Result<(), TooLarge> {
        match self.text.is_empty() || self.text.ends_with('\n') {
            true => Ok(()),
            false => self.say("\n\n"),
        }
    }

    /// A call begins. Without an id of its own (or with one that another call has) it gets one of ours.
    pub fn call(&mut self, id: &str, name: &str) -> Result<Slot, TooLarge> {
        if self.drafts.len() == CALLS {
            return Err(TooLarge("more than 128 tool calls"));
        }
        self.grow(PART_BYTES + id.len().min(NAME_CHARACTERS) + name.len().min(NAME_CHARACTERS))?;
        let fits = (1..=NAME_CHARACTERS).contains(&id.len()) && one_line(id) == id;
        let taken = self.drafts.iter().any(|draft| draft.call.id == id);
        let id = if fits && !taken { id.to_owned() } else { format!("{OWN_ID}{}", ulid::Ulid::generate()) };
        self.drafts.push(Draft { call: ToolCall { id, name: bounded(name), arguments: String::new() }, ended: false });
        Ok(Slot(self.drafts.len() - 1))
    }

    pub fn id(&self, slot: Slot) -> &str {
        self.drafts.get(slot.0).map_or("", |draft| &draft.call.id)
    }

    /// The name of a call that began without one.
    pub fn name(&mut self, slot: Slot, name: &str) {
        if let Some(draft) = self.drafts.get_mut(slot.0)
            && draft.call.name.is_empty()
        {
            draft.call.name = bounded(name);
        }
    }

    pub fn arguments(&mut self, slot: Slot, piece: &str) -> Result<(), TooLarge> {
        self.grow(piece.len())?;
        let Some(draft) = self.drafts.get_mut(slot.0) else { return Ok(()) };
        if draft.call.arguments.len() + piece.len() > CALL_BYTES {
            return Err(TooLarge("a tool call of more than 1 MiB"));
        }
        draft.call.arguments.push_str(piece);
        Ok(())
    }

    /// The arguments are all there; `whole` holds them, if the server says them once more.
    pub fn end_call(&mut self, slot: Slot, whole: Option<&str>) -> Result<(), TooLarge> {
        if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
            if let Some(draft) = self.drafts.get_mut(slot.0) {
                draft.call.arguments.clear();
            }
            self.arguments(slot, whole)?;
        }
        if let Some(draft) = self.drafts.get_mut(slot.0) {
            draft.ended = true;
        }
        Ok(())
    }

    /// Something for the provider to get back.
    pub fn keep(&mut self, item: Value) -> Result<(), TooLarge> {
        self.grow(PART_BYTES + item.to_string().len())?;
        self.opaque.push(item);
        Ok(())
    }

    /// Counts what is kept elsewhere until it is whole.
    pub fn grow(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES { Err(TooLarge("an answer of more than 8 MiB")) } else { Ok(()) }
    }

    pub fn has_calls(&self) -> bool {
        !self.drafts.is_empty()
    }

    /// The answer of a server that said its last word.
    pub fn complete(self, key: &Key) -> Response {
        let calls: Vec<ToolCall> = self.drafts.into_iter().filter_map(Draft::call).collect();
        // Some servers give "stop" for calls, and some "tool_calls" for none.
        let stop = match self.stop {
            Some(Stop::Done) | None if !calls.is_empty() => Stop::Tools,
            Some(Stop::Tools) if calls.is_empty() => Stop::Done,
            stop => stop.unwrap_or(Stop::Unknown),
        };
        response(self.text, calls, self.opaque, stop, self.usage, &self.model, key)
    }

    /// What a broken answer is worth: its text, its whole calls, and those cut off behind something that can be used
    /// (a first element of a list). `None` when there is nothing to go on with.
    pub fn interrupted(self, key: &Key) -> Option<Response> {
        let calls: Vec<ToolCall> = self.drafts.into_iter().filter(Draft::is_usable).filter_map(Draft::call).collect();
        let response = response(self.text, calls, self.opaque, Stop::Interrupted, self.usage, &self.model, key);
        (!response.is_empty()).then_some(response)
    }
}

impl Draft {
    fn is_usable(&self) -> bool {
        self.ended
            || self.call.arguments.contains('}')
            || serde_json::from_str::<IgnoredAny>(&self.call.arguments).is_ok()
    }

    /// A call without a name is none.
    fn call(mut self) -> Option<ToolCall> {
        if self.call.arguments.trim().is_empty() {
            self.call.arguments = "{}".to_owned();
        }
        (!self.call.name.is_empty()).then_some(self.call)
    }
}

fn response(
    text: String,
    calls: Vec<ToolCall>,
    opaque: Vec<Value>,
    stop: Stop,
    usage: Usage,
    model: &str,
    key: &Key,
) -> Response {
    let mut response = Response { text, calls, opaque, stop, usage, model: bounded(model) };
    key.hide_in_answer(&mut response.text);
    key.hide_in_answer(&mut response.model);
    for call in &mut response.calls {
        for field in [&mut call.id, &mut call.name, &mut call.arguments] {
            key.hide_in_answer(field);
        }
    }
    response.opaque.retain(|item| !key.is_in(&item.to_string()));
    response
}

/// A name of a server's in one line, cut.
fn bounded(name: &str) -> String {
    one_line(name).chars().take(NAME_CHARACTERS).collect()
}

/// Whether an id was made here, so that the provider does not know it.
pub fn is_own_id(id: &str) -> bool {
    id.starts_with(OWN_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(Some("sk-0123456789abcdef".into()))
    }

    #[test]
    fn a_whole_answer() {
        let mut answer = Answer { stop: Some(Stop::Done), ..Answer::default() };
        answer.say("Look: ").expect("room");
        let slot = answer.call("call_1", "read_file").expect("room");
        answer.arguments(slot, r#"{"path":"#).expect("room");
        answer.arguments(slot, r#""a"}"#).expect("room");
        let without = answer.call("call_1", "finish").expect("room");
        answer.end_call(without, None).expect("room");
        answer.call("call_3", "").expect("room");
        let response = answer.complete(&key());
        assert_eq!(response.stop, Stop::Tools, "calls are calls, whatever the server says");
        assert_eq!(response.calls.len(), 2, "a call without a name is none");
        assert_eq!(
            (response.calls[0].id.as_str(), response.calls[0].arguments.as_str()),
            ("call_1", r#"{"path":"a"}"#)
        );
        assert!(is_own_id(&response.calls[1].id), "two calls cannot have one id");
        assert_eq!(response.calls[1].arguments, "{}");
    }

    #[test]
    fn a_broken_answer_keeps_what_can_be_used() {
        let mut answer = Answer::default();
        for (name, arguments) in [
            ("whole", r#"{"path":"a"}"#),
            ("cut_in_the_second", r#"{"findings":[{"line":1},{"li"#),
            ("cut_in_the_first", r#"{"findings":[{"li"#),
            ("nothing", ""),
        ] {
            let slot = answer.call("", name).expect("room");
            answer.arguments(slot, arguments).expect("room");
        }
        let response = answer.interrupted(&key()).expect("something to go on with");
        let names: Vec<&str> = response.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["whole", "cut_in_the_second"]);
        assert_eq!(response.stop, Stop::Interrupted);
        assert_eq!(Answer { text: " \n".into(), ..Answer::default() }.interrupted(&key()), None);
    }

    #[test]
    fn nothing_grows_without_bounds() {
        let mut answer = Answer::default();
        let mebibyte = "x".repeat(1024 * 1024);
        let slot = answer.call("a", "b").expect("room");
        answer.arguments(slot, &mebibyte).expect("room");
        assert_eq!(answer.arguments(slot, "y"), Err(TooLarge("a tool call of more than 1 MiB")));
        let said = (0..20).find_map(|_| answer.say(&mebibyte).err());
        assert_eq!(said, Some(TooLarge("an answer of more than 8 MiB")));
        assert!(answer.text.len() <= ANSWER_BYTES);
        let mut answer = Answer::default();
        assert!((0..1000).any(|_| answer.call("", "b").is_err()));
    }

    #[test]
    fn a_server_that_says_the_key_is_not_quoted() {
        let mut answer = Answer::default();
        for piece in ["your key is sk-01234567", "89abcdef."] {
            answer.say(piece).expect("room");
        }
        assert_eq!(answer.complete(&key()).text, "your key is [key].");
    }
}
