//! The engine of a review by a model: up to twenty turns in a bounded window.
//!
//! - A whole answer is recorded before it is processed, and its findings before the next request.
//! - The engine is deterministic: with the recorded answers it reaches the same state again, up to the next unpaid
//!   turn.
//! - A request never exceeds [`ConversationLimits::window_tokens`].

mod answers;
mod completion;
mod diff_delivery;
mod engine;
mod limits;
mod messages;
mod requests;
mod resume_log;
mod side_requests;
mod task;
#[cfg(test)]
mod tests;
mod window;
mod window_summary;

pub use engine::ConversationEngine;
pub use limits::{BudgetLimit, ConversationLimits, RemainingBudget};
pub(crate) use messages::AnswerProblem;
pub use messages::{BudgetProblem, ConversationEffect, ConversationEvent, ConversationToolResult};
pub(crate) use resume_log::ResumeLog;
pub use task::{ConversationPrompt, ReviewTask};

/// Counts the tokens of a text in the model's encoding.
pub type PromptTokenCounter = Box<dyn Fn(&str) -> u64>;

/// The names of the tools that the engine itself answers.
pub const REPORT_FINDINGS_TOOL: &str = "report_findings";
/// Name of the tool with which the model ends the review.
pub const FINISH_TOOL: &str = "finish";
