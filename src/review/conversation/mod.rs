//! The engine of a review by a model: up to twenty turns in a window that never overflows, no finding lost.
//!
//! Invariants: an answer is appended whole before anything is made of it, its findings before the next request; the
//! engine is deterministic, so feeding it the recorded answers again leads to the same state and to the next unpaid
//! turn; what is sent never exceeds [`Limits::window_tokens`].

mod completion;
mod diff_delivery;
mod engine;
mod limits;
mod resume_log;
mod side_requests;
#[cfg(test)]
mod tests;
mod window;
mod window_summary;

pub use diff_delivery::DeliveryPart;
pub use engine::{
    AnswerProblem, ConversationEffect, ConversationEngine, ConversationEvent, ConversationPrompt,
    ConversationToolResult, ReviewTask,
};
pub use limits::{ConversationLimits, RemainingBudget, WindowSummaryAuthor};
pub use resume_log::ResumeLog;

/// Counts the tokens of a text by the model's encoding.
pub type PromptTokenCounter = Box<dyn Fn(&str) -> u64>;

/// The names of the tools that the engine answers itself.
pub const REPORT_FINDINGS_TOOL: &str = "report_findings";
pub const FINISH_TOOL: &str = "finish";
