//! The input of a hook, and the form of its answer.

use std::io::Read;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::Assistant;

/// Maximum size of a hook's input in bytes. It contains the user's prompt.
const MAX_HOOK_INPUT_BYTES: u64 = 8 << 20;
/// Maximum length of an answer. Claude Code cuts answers at 10,000 characters.
pub(crate) const MAX_HOOK_ANSWER_CHARS: usize = 10_000;

/// Call of a hook by an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookEvent {
    pub(crate) kind: HookEventKind,
    /// Name of the event in the assistant's own words.
    name: String,
    /// Session of the assistant; a subagent has one of its own.
    pub(crate) session: String,
    /// True for a call on behalf of a subagent.
    pub(crate) is_subagent: bool,
    /// Folder in which the assistant works, as an absolute path.
    pub(crate) folder: PathBuf,
    /// File in which the assistant keeps the session.
    pub(crate) transcript: Option<PathBuf>,
    /// Text of the user; empty for events without one.
    pub(crate) prompt: String,
}

/// Meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookEventKind {
    /// The user has sent a prompt: the answer reaches the model.
    Turn,
    /// The context was compacted while the assistant works: the answer reaches the model.
    Compacted,
    /// The context is about to be lost: the next ledger comes whole. The answer reaches nobody.
    Forget,
    /// The context may be about to be lost: the assistant says so at each turn. The answer reaches nobody.
    MayForget,
    /// The assistant is about to stop.
    Stop,
    /// Nothing to do.
    Other,
}

/// Reason why an input is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookInputError {
    /// The input is not the JSON of a hook, or is too large.
    #[error("the input of the hook cannot be read: {0}")]
    Parse(#[from] serde_json::Error),
    /// The input names no absolute folder.
    #[error("the input of the hook names no folder")]
    NoFolder,
}

#[derive(Deserialize)]
struct HookInput {
    hook_event_name: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    agent_id: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    source: Option<String>,
    /// Cause of a compaction: `manual` or `auto`.
    #[serde(default)]
    trigger: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    transcript_path: serde_json::Value,
}

/// Reads the input of a hook up to the end of its JSON object. Does not wait for the end of the stream.
///
/// # Errors
///
/// Returns an error if the input is not the JSON of a hook, is larger than 8 MB, or names no folder.
pub(crate) fn read_hook_event(stream: impl Read, assistant: Assistant) -> Result<HookEvent, HookInputError> {
    let stream = std::io::BufReader::new(stream.take(MAX_HOOK_INPUT_BYTES));
    let input = HookInput::deserialize(&mut serde_json::Deserializer::from_reader(stream))?;
    if !input.cwd.is_absolute() {
        return Err(HookInputError::NoFolder);
    }
    let subagent = input.agent_id.filter(|id| !id.is_empty());
    let cause = input.source.or(input.trigger).unwrap_or_default();
    let kind = classify(assistant, &input.hook_event_name, &cause);
    Ok(HookEvent {
        kind,
        name: input.hook_event_name,
        is_subagent: subagent.is_some(),
        session: match subagent {
            Some(subagent) => format!("{}/{subagent}", input.session_id),
            None => input.session_id,
        },
        folder: input.cwd,
        transcript: input.transcript_path.as_str().map(PathBuf::from).filter(|path| path.is_absolute()),
        prompt: input.prompt.unwrap_or_default(),
    })
}

fn classify(assistant: Assistant, event: &str, cause: &str) -> HookEventKind {
    match (assistant, event) {
        (Assistant::ClaudeCode | Assistant::Codex, "UserPromptSubmit")
        | (Assistant::Gemini, "BeforeAgent")
        | (Assistant::OpenCode, "chat.message") => HookEventKind::Turn,
        (Assistant::ClaudeCode | Assistant::Codex, "SessionStart") if cause == "compact" => HookEventKind::Compacted,
        // A session that starts anew gets its ledger with the first prompt, once.
        (Assistant::ClaudeCode | Assistant::Codex | Assistant::Gemini, "SessionStart") if cause == "clear" => {
            HookEventKind::Forget
        }
        // Gemini CLI 0.61 calls this hook at each turn, before it looks whether the context is full.
        (Assistant::Gemini, "PreCompress") if cause == "auto" => HookEventKind::MayForget,
        (Assistant::ClaudeCode | Assistant::Codex, "PreCompact")
        | (Assistant::Gemini, "PreCompress")
        | (Assistant::OpenCode, "session.compacting") => HookEventKind::Forget,
        (Assistant::ClaudeCode | Assistant::Codex, "Stop") | (Assistant::Gemini, "AfterAgent") => HookEventKind::Stop,
        _ => HookEventKind::Other,
    }
}

impl HookEvent {
    /// Returns a hash of the event and its prompt, which is the same for all hooks that an assistant calls for it.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for part in [self.name.as_str(), &self.session, &self.prompt] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hash.finalize().to_hex()[..16].to_owned()
    }

    /// Returns the output that gives a text to the model, in the form that the assistant expects.
    pub(crate) fn format_context(&self, assistant: Assistant, text: &str) -> String {
        match assistant {
            Assistant::ClaudeCode | Assistant::Codex | Assistant::OpenCode => text.to_owned(),
            Assistant::Gemini => {
                json!({ "hookSpecificOutput": { "hookEventName": self.name, "additionalContext": text } }).to_string()
            }
        }
    }

    /// Returns the output that lets the assistant go on with `reason` instead of stopping.
    pub(crate) fn format_objection(&self, assistant: Assistant, reason: &str) -> String {
        let decision = if assistant == Assistant::Gemini { "deny" } else { "block" };
        json!({ "decision": decision, "reason": reason }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(assistant: Assistant, json: &str) -> Option<HookEvent> {
        read_hook_event(json.as_bytes(), assistant).ok()
    }

    #[test]
    fn events_have_one_meaning_for_all_assistants() {
        let kind = |assistant, event: &str, source: &str| {
            let field = if event.starts_with("Pre") { "trigger" } else { "source" };
            let json = json!({ "hook_event_name": event, "cwd": "/r", field: source, "session_id": "s", "x": [1] });
            read(assistant, &json.to_string()).expect("an event").kind
        };
        use Assistant::{ClaudeCode, Codex, Gemini, OpenCode};
        for (assistant, event, source, expected) in [
            (ClaudeCode, "UserPromptSubmit", "", HookEventKind::Turn),
            (ClaudeCode, "SessionStart", "startup", HookEventKind::Other),
            (ClaudeCode, "SessionStart", "resume", HookEventKind::Other),
            (ClaudeCode, "SessionStart", "clear", HookEventKind::Forget),
            (ClaudeCode, "SessionStart", "compact", HookEventKind::Compacted),
            (ClaudeCode, "PreCompact", "", HookEventKind::Forget),
            (ClaudeCode, "Stop", "", HookEventKind::Stop),
            (ClaudeCode, "SubagentStop", "", HookEventKind::Other),
            (ClaudeCode, "BeforeAgent", "", HookEventKind::Other),
            (Codex, "UserPromptSubmit", "", HookEventKind::Turn),
            (Codex, "SessionStart", "compact", HookEventKind::Compacted),
            (Codex, "Stop", "", HookEventKind::Stop),
            (Gemini, "BeforeAgent", "", HookEventKind::Turn),
            (Gemini, "SessionStart", "clear", HookEventKind::Forget),
            (Gemini, "PreCompress", "", HookEventKind::Forget),
            (Gemini, "PreCompress", "manual", HookEventKind::Forget),
            (Gemini, "PreCompress", "auto", HookEventKind::MayForget),
            (ClaudeCode, "PreCompact", "auto", HookEventKind::Forget),
            (Gemini, "AfterAgent", "", HookEventKind::Stop),
            (OpenCode, "chat.message", "", HookEventKind::Turn),
            (OpenCode, "session.compacting", "", HookEventKind::Forget),
        ] {
            assert_eq!(kind(assistant, event, source), expected, "{assistant:?} {event} {source}");
        }
    }

    #[test]
    fn an_input_ends_with_its_object_and_a_subagent_has_its_own_session() {
        let event = r#"{"session_id":"s","agent_id":"a1","hook_event_name":"Stop","cwd":"/r"}"#;
        let read = |json: &str| read(Assistant::Codex, json);
        let found = read(&format!("{event} and more")).expect("an event");
        assert_eq!((found.session.as_str(), found.is_subagent), ("s/a1", true));
        for wrong in
            ["", "{", "[]", "{}", r#"{"hook_event_name":"Stop","cwd":"r"}"#, r#"{"hook_event_name":1,"cwd":"/r"}"#]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_answer_has_the_form_of_the_assistant() {
        let event = read(Assistant::Gemini, r#"{"hook_event_name":"BeforeAgent","cwd":"/r"}"#).expect("an event");
        assert_eq!(event.format_context(Assistant::ClaudeCode, "a \"b\"\n"), "a \"b\"\n");
        assert_eq!(
            event.format_context(Assistant::Gemini, "a \"b\"\n"),
            r#"{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"a \"b\"\n"}}"#
        );
        assert_eq!(event.format_objection(Assistant::Gemini, "x"), r#"{"decision":"deny","reason":"x"}"#);
        assert_eq!(event.format_objection(Assistant::Codex, "x"), r#"{"decision":"block","reason":"x"}"#);
    }
}
