//! Events for the engine of a conversation, and the effects that it returns.

use super::ReviewTask;
use crate::domain::{
    BudgetStop, CancelReason, ChatRequest, ChatResponse, ErrorClass, LineRange, ReportedProblem, RunEvent, ToolCall,
    ToolOutcome,
};
use crate::review::{ReportValidation, ReviewOutcome};

/// The problem with an unusable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProblem {
    /// The answer has neither text nor tool calls.
    Empty,
    /// The model refused.
    Refused,
    /// The answer has neither a list of findings nor a tool call.
    Unreadable,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationToolResult {
    /// Result for the model.
    pub text: String,
    /// Success or failure of the call.
    pub outcome: ToolOutcome,
    /// One line for the user.
    pub summary: String,
    /// Lines of files that the result shows.
    pub shown: Vec<(String, LineRange)>,
}

/// Limit that does not allow the next request.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetProblem {
    /// The limit.
    pub stop: BudgetStop,
    /// One sentence with the size of the next request, for the notes of the run.
    pub note: String,
}

/// An event for the engine.
#[derive(Debug)]
pub enum ConversationEvent {
    /// The first event.
    Started(Box<ReviewTask>),
    /// The answer to a request, with its cost in US dollars; the cost is `None` if an earlier run paid for the answer.
    Answered {
        /// Answer with its token usage; all counts are 0 if the provider gave none.
        response: Box<ChatResponse>,
        /// Milliseconds from the request to the first byte of the answer.
        first_ms: u64,
        /// Milliseconds from the request to the end of the answer.
        took_ms: u64,
        /// Cost in US dollars; `None` if an earlier run paid.
        cost: Option<f64>,
    },
    /// The request failed.
    Failed {
        /// Class of the failure.
        class: ErrorClass,
        /// Description of the failure for a person.
        summary: String,
    },
    /// The request was not sent because the budget does not allow it.
    BudgetExceeded(BudgetProblem),
    /// The validated reports, in their order.
    Validated(Vec<ReportValidation>),
    /// The results, in the order of the calls.
    ToolsAnswered(Vec<ConversationToolResult>),
    /// A cancellation was requested, for this reason.
    CancelAsked(CancelReason),
}

/// An action for the caller. Effects must be executed in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationEffect {
    /// Append the event to the run's journal.
    Append(RunEvent),
    /// Send a request to the model.
    Ask {
        /// Number of the request. Requests for second opinions are numbered after the turns.
        turn: u32,
        /// Messages, tools and limits of the request.
        request: Box<ChatRequest>,
    },
    /// Validate these reports against the snapshot.
    Validate {
        /// Turn of the reports, from 1.
        turn: u32,
        /// Reports in the order of the answer.
        reports: Vec<ReportedProblem>,
    },
    /// Execute these tool calls.
    RunTools {
        /// Turn of the calls, from 1.
        turn: u32,
        /// Calls in the order of the answer.
        calls: Vec<ToolCall>,
    },
    /// End the run with this result.
    Finish(Box<ReviewOutcome>),
}
