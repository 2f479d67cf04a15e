//! Talking to a model: one request, one answer, whoever serves it.

use thiserror::Error;

use crate::domain::{ChatRequest, ChatResponse, ErrorClass};

/// What happens while an answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatProgress {
    /// The request is on its way; nothing has come back.
    Sent,
    /// This many bytes of the answer came in.
    Bytes(usize),
    /// Text of the answer, as it comes. Data: it may hold anything.
    Text(String),
    /// The provider asks for patience, or the request failed and is sent again after the wait.
    Waiting { reason: String, wait_ms: u64 },
}

/// Who waits for an answer.
pub trait ChatObserver {
    fn on_progress(&mut self, progress: ChatProgress);
    /// Asked at least every 100 ms; with yes the answer is [`ErrorClass::Internal`] "cancelled" at once, see
    /// [`ChatError::cancelled`].
    fn is_cancelled(&self) -> bool;
}

/// Why there is no answer.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{summary}")]
pub struct ChatError {
    pub class: ErrorClass,
    /// One line with who, what and what to do next; never a key.
    pub summary: String,
    /// The watcher asked for an end.
    pub cancelled: bool,
}

impl ChatError {
    pub fn new(class: ErrorClass, summary: impl Into<String>) -> Self {
        Self { class, summary: summary.into(), cancelled: false }
    }

    pub fn cancelled() -> Self {
        Self { class: ErrorClass::Internal, summary: "cancelled".to_owned(), cancelled: true }
    }
}

/// Whether a model can be given tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSupport {
    Native,
    /// Findings come as JSON in its text. Agents bring tools of their own.
    None,
}

/// A model that can be talked to.
pub trait Chat: Send {
    /// Sends a request and waits for the whole answer. Retries what is worth retrying (within its own limits), tells
    /// the watcher, and uses what a broken connection left: an answer that can be used is never asked for twice.
    ///
    /// # Errors
    /// By class, with what to do.
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError>;

    fn tool_support(&self) -> ToolSupport;
}
