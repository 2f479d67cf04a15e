//! A conversation with a model as plain data, the same whoever serves it: what is sent, what comes back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Usage;
use super::finding::word_enum;

word_enum!(
    /// Why a model stopped.
    StopReason {
        /// It said all it wanted to.
        Done = "done",
        /// It wants tools answered.
        Tools = "tools",
        /// The answer reached its limit of tokens.
        Length = "length",
        /// It, or a filter before it, refused.
        Refused = "refused",
        /// The connection broke; what had come until then is here.
        Interrupted = "interrupted",
        /// The provider gave a reason that is not known, or none.
        Unknown = "unknown",
    }
);

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The arguments as a JSON Schema.
    pub parameters: Value,
}

/// A call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; made by us for those that give none.
    pub id: String,
    pub name: String,
    /// JSON, if the model kept to it; cut off when the answer was.
    pub arguments: String,
}

/// One message of a conversation; the system prompt stands apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    User {
        text: String,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What a provider wants back unread with the next request (signed thoughts).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        opaque: Vec<Value>,
    },
    /// The answer to a call of the assistant message before it.
    Tool {
        call_id: String,
        name: String,
        text: String,
    },
}

/// What is sent in one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    pub system: String,
    pub messages: Vec<ChatMessage>,
    pub tools: Vec<ToolSpec>,
    /// The answer may have this many tokens.
    pub max_output: u64,
    pub temperature: Option<f64>,
    /// Leading messages that are the same in every turn: where providers may cut for their prompt caches.
    pub pinned: usize,
}

/// What came back in one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Value>,
    pub stop: StopReason,
    /// As the provider counted; all 0 when it did not say.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, by the provider's word; may be more exact than what was asked for.
    #[serde(default)]
    pub model: String,
}

impl ChatResponse {
    /// Whether there is nothing in it to go on with.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    /// The message that stands for it in the conversation.
    pub fn to_message(&self) -> ChatMessage {
        ChatMessage::Assistant { text: self.text.clone(), calls: self.calls.clone(), opaque: self.opaque.clone() }
    }
}
