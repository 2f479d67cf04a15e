//! Errors of questions about findings.

use crate::domain::{FindingId, QuestionRequest};
use crate::policy::QuestionOverBudget;

/// Reason why a question is not asked. Nothing was sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    /// Somebody else than the user asks.
    #[error("only the user asks a reviewer about a finding: a question may cost the user money")]
    NotTheUser,
    /// The reviewer of the finding talks to no model.
    #[error("{reviewer} cannot answer: {}", .sort.reason())]
    Mute {
        /// Name of the reviewer.
        reviewer: String,
        /// Sort of reviewer.
        sort: MuteReviewer,
    },
    #[error("a question needs a text")]
    Empty,
    #[error("a question has at most {} characters", QuestionRequest::MAX_CHARS)]
    TooLong,
    #[error("the details of {0} are not in the store: the output of its run is gone")]
    NoDetails(FindingId),
    #[error("the snapshot in which {0} was found is no longer kept")]
    NoSnapshot(FindingId),
    #[error("another question about {0} is being answered")]
    Busy(FindingId),
    #[error("the finding and its code are too much for the window of {reviewer}: {tokens} of {window} tokens")]
    TooLarge {
        /// Name of the reviewer.
        reviewer: String,
        /// Tokens of the request and the longest answer.
        tokens: u64,
        /// Tokens of the model's window.
        window: u64,
    },
    #[error("{reviewer} is not asked: {refusal}")]
    OverBudget {
        /// Name of the reviewer.
        reviewer: String,
        /// Budget that the question could pass.
        refusal: QuestionOverBudget,
    },
}

/// Sort of a reviewer that answers no questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MuteReviewer {
    /// The built-in reviewer.
    Builtin,
    /// Another tool whose report was imported.
    Import,
    /// The user.
    Own,
    /// A command-line agent.
    Agent,
    /// revdeck's own search for secrets.
    SecretScan,
}

impl MuteReviewer {
    fn reason(self) -> &'static str {
        match self {
            Self::Builtin => "the built-in reviewer works without a model",
            Self::Import => "its report was imported from another tool",
            Self::Own => "the finding is your own",
            Self::Agent => "agent programs review, but answer no questions",
            Self::SecretScan => "its own search for secrets found it, and no reviewer reported it",
        }
    }
}

impl AskError {
    /// Returns the next step for the user, as a sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Mute { .. } => {
                "a model of your settings can answer in its place: `revdeck ask FINDING QUESTION --reviewer NAME`"
                    .to_owned()
            }
            Self::NoDetails(_) | Self::NoSnapshot(_) => {
                "review the change again, and ask about what is found then".to_owned()
            }
            Self::Busy(id) => format!("`revdeck show {id}` has the answer as soon as it is there"),
            Self::OverBudget { .. } => "[budget] in your settings has the limits".to_owned(),
            Self::NotTheUser | Self::Empty | Self::TooLong | Self::TooLarge { .. } => return None,
        })
    }
}
