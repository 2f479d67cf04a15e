//! Collects an answer as it arrives, in the same way for all wire formats, and converts it into a response when it ends
//! or breaks off.
//!
//! - All parts are bounded, whatever the server sends.
//! - Text only grows, so that a broken answer is a prefix of the whole answer.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::api_key::ApiKey;
use crate::domain::text::sanitize_line;
use crate::domain::{ChatResponse, StopReason, ToolCall, Usage};

/// Maximum size of text, arguments and reasoning together. The longest answers of today's models have 128,000 tokens,
/// which is half a megabyte of text.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of the arguments of one tool call.
const MAX_CALL_BYTES: usize = 1024 * 1024;
const MAX_CALLS: usize = 128;
/// Bytes that every new part counts in addition to its content, so that a million empty parts exceed the limit too.
const PART_OVERHEAD_BYTES: usize = 64;
/// Maximum length of the names and ids that a server gives. OpenAI accepts ids of up to 40 characters in requests.
const MAX_NAME_CHARS: usize = 128;
/// Prefix of the ids that revdeck generates.
const GENERATED_ID_PREFIX: &str = "rd_";

/// The error of an answer that exceeds a limit. The text names the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTooLarge(pub &'static str);

/// An answer that is still arriving.
#[derive(Debug, Default)]
pub struct ResponseBuilder {
    pub text: String,
    drafts: Vec<ToolCallDraft>,
    pub opaque: Vec<Value>,
    pub stop: Option<StopReason>,
    pub usage: Usage,
    pub model: String,
    /// The server reported the end of the answer.
    pub finished: bool,
    /// At least one event was understood: the server speaks the format.
    pub is_recognized: bool,
    bytes: usize,
}

/// A tool call that is still arriving.
#[derive(Debug)]
struct ToolCallDraft {
    call: ToolCall,
    /// The server reported that the arguments are complete.
    ended: bool,
}

/// The index of a tool call in [`ResponseBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolCallIndex(usize);

impl ResponseBuilder {
    /// Appends text.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the answer exceeds its limit.
    pub fn push_text(&mut self, text: &str) -> Result<(), ResponseTooLarge> {
        self.charge_bytes(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Starts a new block of text, separated from the block before by an empty line.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the answer exceeds its limit.
    pub fn start_paragraph(&mut self) -> Result<(), ResponseTooLarge> {
        match self.text.is_empty() || self.text.ends_with('\n') {
            true => Ok(()),
            false => self.push_text("\n\n"),
        }
    }

    /// Starts a tool call. Generates an id if the server gave none, or an id that another call already has.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if there are too many calls, or the answer exceeds its limit.
    pub fn start_call(&mut self, id: &str, name: &str) -> Result<ToolCallIndex, ResponseTooLarge> {
        if self.drafts.len() == MAX_CALLS {
            return Err(ResponseTooLarge("more than 128 tool calls"));
        }
        self.charge_bytes(PART_OVERHEAD_BYTES + id.len().min(MAX_NAME_CHARS) + name.len().min(MAX_NAME_CHARS))?;
        let fits = (1..=MAX_NAME_CHARS).contains(&id.len()) && sanitize_line(id) == id;
        let taken = self.drafts.iter().any(|draft| draft.call.id == id);
        let id =
            if fits && !taken { id.to_owned() } else { format!("{GENERATED_ID_PREFIX}{}", ulid::Ulid::generate()) };
        self.drafts.push(ToolCallDraft {
            call: ToolCall { id, name: clip_name(name), arguments: String::new() },
            ended: false,
        });
        Ok(ToolCallIndex(self.drafts.len() - 1))
    }

    pub fn call_id(&self, slot: ToolCallIndex) -> &str {
        self.drafts.get(slot.0).map_or("", |draft| &draft.call.id)
    }

    /// Sets the name of a call that started without a name.
    pub fn set_call_name(&mut self, slot: ToolCallIndex, name: &str) {
        if let Some(draft) = self.drafts.get_mut(slot.0)
            && draft.call.name.is_empty()
        {
            draft.call.name = clip_name(name);
        }
    }

    /// Appends a piece of the arguments of a call.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the call or the answer exceeds its limit.
    pub fn push_arguments(&mut self, slot: ToolCallIndex, piece: &str) -> Result<(), ResponseTooLarge> {
        self.charge_bytes(piece.len())?;
        let Some(draft) = self.drafts.get_mut(slot.0) else { return Ok(()) };
        if draft.call.arguments.len() + piece.len() > MAX_CALL_BYTES {
            return Err(ResponseTooLarge("a tool call of more than 1 MiB"));
        }
        draft.call.arguments.push_str(piece);
        Ok(())
    }

    /// Marks the arguments of a call as complete. If the server repeats the arguments in `whole`, they replace the
    /// collected pieces.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the call or the answer exceeds its limit.
    pub fn end_call(&mut self, slot: ToolCallIndex, whole: Option<&str>) -> Result<(), ResponseTooLarge> {
        if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
            if let Some(draft) = self.drafts.get_mut(slot.0) {
                draft.call.arguments.clear();
            }
            self.push_arguments(slot, whole)?;
        }
        if let Some(draft) = self.drafts.get_mut(slot.0) {
            draft.ended = true;
        }
        Ok(())
    }

    /// Adds an opaque item that the provider wants back with the next request.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the answer exceeds its limit.
    pub fn push_opaque(&mut self, item: Value) -> Result<(), ResponseTooLarge> {
        self.charge_bytes(PART_OVERHEAD_BYTES + item.to_string().len())?;
        self.opaque.push(item);
        Ok(())
    }

    /// Counts bytes that the caller keeps elsewhere until the part is complete.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the answer exceeds its limit.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), ResponseTooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_RESPONSE_BYTES { Err(ResponseTooLarge("an answer of more than 8 MiB")) } else { Ok(()) }
    }

    pub fn has_calls(&self) -> bool {
        !self.drafts.is_empty()
    }

    /// Converts a complete answer into a response.
    pub fn into_response(self, key: &ApiKey) -> ChatResponse {
        let calls: Vec<ToolCall> = self.drafts.into_iter().filter_map(ToolCallDraft::into_call).collect();
        // Some servers report "stop" for an answer with calls, and some report "tool_calls" for an answer without
        // calls.
        let stop = match self.stop {
            Some(StopReason::Done) | None if !calls.is_empty() => StopReason::Tools,
            Some(StopReason::Tools) if calls.is_empty() => StopReason::Done,
            stop => stop.unwrap_or(StopReason::Unknown),
        };
        build_response(self.text, calls, self.opaque, stop, self.usage, &self.model, key)
    }

    /// Converts a broken answer into a response with its text, its complete calls and the calls that broke off after a
    /// usable part (for example after the first element of a list). Returns `None` if nothing is usable.
    pub fn into_interrupted_response(self, key: &ApiKey) -> Option<ChatResponse> {
        let calls: Vec<ToolCall> =
            self.drafts.into_iter().filter(ToolCallDraft::is_usable).filter_map(ToolCallDraft::into_call).collect();
        let response =
            build_response(self.text, calls, self.opaque, StopReason::Interrupted, self.usage, &self.model, key);
        (!response.is_empty()).then_some(response)
    }
}

impl ToolCallDraft {
    fn is_usable(&self) -> bool {
        self.ended
            || self.call.arguments.contains('}')
            || serde_json::from_str::<IgnoredAny>(&self.call.arguments).is_ok()
    }

    /// Returns the call, or `None` for a call without a name.
    fn into_call(mut self) -> Option<ToolCall> {
        if self.call.arguments.trim().is_empty() {
            self.call.arguments = "{}".to_owned();
        }
        (!self.call.name.is_empty()).then_some(self.call)
    }
}

fn build_response(
    text: String,
    calls: Vec<ToolCall>,
    opaque: Vec<Value>,
    stop: StopReason,
    usage: Usage,
    model: &str,
    key: &ApiKey,
) -> ChatResponse {
    let mut response = ChatResponse { text, calls, opaque, stop, usage, model: clip_name(model) };
    key.redact_in_place(&mut response.text);
    key.redact_in_place(&mut response.model);
    for call in &mut response.calls {
        for field in [&mut call.id, &mut call.name, &mut call.arguments] {
            key.redact_in_place(field);
        }
    }
    response.opaque.retain(|item| !key.is_in(&item.to_string()));
    response
}

/// Makes a name from the server one line and clips it to [`MAX_NAME_CHARS`].
fn clip_name(name: &str) -> String {
    sanitize_line(name).chars().take(MAX_NAME_CHARS).collect()
}

/// Returns `true` for an id that revdeck generated, which the provider does not know.
pub fn is_generated_id(id: &str) -> bool {
    id.starts_with(GENERATED_ID_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        ApiKey::new(Some("sk-0123456789abcdef".into()))
    }

    #[test]
    fn a_whole_answer() {
        let mut answer = ResponseBuilder { stop: Some(StopReason::Done), ..ResponseBuilder::default() };
        answer.push_text("Look: ").expect("room");
        let slot = answer.start_call("call_1", "read_file").expect("room");
        answer.push_arguments(slot, r#"{"path":"#).expect("room");
        answer.push_arguments(slot, r#""a"}"#).expect("room");
        let without = answer.start_call("call_1", "finish").expect("room");
        answer.end_call(without, None).expect("room");
        answer.start_call("call_3", "").expect("room");
        let response = answer.into_response(&key());
        assert_eq!(response.stop, StopReason::Tools, "calls are calls, whatever the server says");
        assert_eq!(response.calls.len(), 2, "a call without a name is none");
        assert_eq!(
            (response.calls[0].id.as_str(), response.calls[0].arguments.as_str()),
            ("call_1", r#"{"path":"a"}"#)
        );
        assert!(is_generated_id(&response.calls[1].id), "two calls cannot have one id");
        assert_eq!(response.calls[1].arguments, "{}");
    }

    #[test]
    fn a_broken_answer_keeps_what_can_be_used() {
        let mut answer = ResponseBuilder::default();
        for (name, arguments) in [
            ("whole", r#"{"path":"a"}"#),
            ("cut_in_the_second", r#"{"findings":[{"line":1},{"li"#),
            ("cut_in_the_first", r#"{"findings":[{"li"#),
            ("nothing", ""),
        ] {
            let slot = answer.start_call("", name).expect("room");
            answer.push_arguments(slot, arguments).expect("room");
        }
        let response = answer.into_interrupted_response(&key()).expect("something to go on with");
        let names: Vec<&str> = response.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["whole", "cut_in_the_second"]);
        assert_eq!(response.stop, StopReason::Interrupted);
        assert_eq!(
            ResponseBuilder { text: " \n".into(), ..ResponseBuilder::default() }.into_interrupted_response(&key()),
            None
        );
    }

    #[test]
    fn nothing_grows_without_bounds() {
        let mut answer = ResponseBuilder::default();
        let mebibyte = "x".repeat(1024 * 1024);
        let slot = answer.start_call("a", "b").expect("room");
        answer.push_arguments(slot, &mebibyte).expect("room");
        assert_eq!(answer.push_arguments(slot, "y"), Err(ResponseTooLarge("a tool call of more than 1 MiB")));
        let said = (0..20).find_map(|_| answer.push_text(&mebibyte).err());
        assert_eq!(said, Some(ResponseTooLarge("an answer of more than 8 MiB")));
        assert!(answer.text.len() <= MAX_RESPONSE_BYTES);
        let mut answer = ResponseBuilder::default();
        assert!((0..1000).any(|_| answer.start_call("", "b").is_err()));
    }

    #[test]
    fn a_server_that_says_the_key_is_not_quoted() {
        let mut answer = ResponseBuilder::default();
        for piece in ["your key is sk-01234567", "89abcdef."] {
            answer.push_text(piece).expect("room");
        }
        assert_eq!(answer.into_response(&key()).text, "your key is [key].");
    }
}
