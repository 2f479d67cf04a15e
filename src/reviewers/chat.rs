//! The interface to a language model: one request, one answer, with any provider.

use std::time::Duration;

use thiserror::Error;

use crate::domain::{ChatRequest, ChatResponse, ErrorClass};

/// Interval between two checks whether the observer asked to stop.
pub const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Time limits of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTimeouts {
    /// Limit without a byte, also before the first byte: a reasoning model sends nothing while it thinks, and an agent
    /// waits for its own provider.
    pub idle: Duration,
    /// Limit for one answer, from sending the request to the last byte.
    pub total: Duration,
}

/// An event while an answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatProgress {
    /// The request is sent; nothing has come back.
    Sent,
    /// Number of bytes of the answer that just arrived.
    Bytes(usize),
    /// New text of the answer, as it arrives. The text is untrusted and can hold any character.
    Text(String),
    /// The answer broke off or took too long, and nothing of it can be used. The provider may charge for what it had begun.
    Lost,
    /// The provider asks the client to wait, or the request failed. The client sends the request again after `wait_ms`
    /// milliseconds.
    Waiting {
        /// Cause of the wait, for a person.
        reason: String,
        /// Length of the wait in milliseconds.
        wait_ms: u64,
    },
}

/// Follows by the progress of a request whether an answer to it is on its way.
#[derive(Debug, Clone, Copy)]
pub struct AnswerTracker {
    /// True for an agent, which makes requests of its own and goes on while it waits for its provider.
    is_agent: bool,
    is_under_way: bool,
}

impl AnswerTracker {
    /// Creates the tracker of a request that is not sent yet.
    pub fn new(is_agent: bool) -> Self {
        Self { is_agent, is_under_way: false }
    }

    /// Takes the next progress into account.
    pub fn add(&mut self, progress: &ChatProgress) {
        match progress {
            ChatProgress::Sent => self.is_under_way = true,
            ChatProgress::Lost => self.is_under_way = false,
            ChatProgress::Waiting { .. } => self.is_under_way &= self.is_agent,
            ChatProgress::Bytes(_) | ChatProgress::Text(_) => {}
        }
    }

    /// Returns false before the request is sent, and in the pause between two attempts.
    pub fn is_under_way(self) -> bool {
        self.is_under_way
    }
}

/// An observer of a request that is under way.
pub trait ChatObserver {
    /// Receives the progress of the request, on the thread that waits for the answer.
    fn on_progress(&mut self, progress: ChatProgress);
    /// Returns `true` if the request must stop. The client asks at least every 100 ms, and then returns
    /// [`ChatError::cancelled`] at once.
    fn is_cancelled(&self) -> bool;
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{summary}")]
pub struct ChatError {
    /// Class of the failure.
    pub class: ErrorClass,
    /// One line that names the provider, the problem and the next step. The line never contains a key.
    pub summary: String,
    /// `true` if the observer asked to stop.
    pub cancelled: bool,
}

impl ChatError {
    /// Creates the error of a request that failed by itself.
    pub fn new(class: ErrorClass, summary: impl Into<String>) -> Self {
        Self { class, summary: summary.into(), cancelled: false }
    }

    /// Returns the error of a request that the observer stopped. Its class is [`ErrorClass::Internal`].
    pub fn cancelled() -> Self {
        Self { class: ErrorClass::Internal, summary: "cancelled".to_owned(), cancelled: true }
    }
}

/// Tool support of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSupport {
    /// The model takes tools through the provider's API.
    Native,
    /// The model takes no tools from revdeck. It reports findings as JSON in its text; command-line agents bring their
    /// own tools.
    None,
}

/// A language model.
pub trait Chat: Send {
    /// Sends a request and waits for the whole answer.
    ///
    /// Retries failures that can pass by themselves, within the limits of the implementation, and reports each wait to
    /// `watch`. Uses the part that a broken connection delivered: a usable answer is never requested twice.
    ///
    /// # Errors
    ///
    /// A [`ChatError`] with the class of the failure and the next step for the user.
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError>;

    /// Returns the tool support as known so far; a response of the server may change it.
    fn tool_support(&self) -> ToolSupport;
}
