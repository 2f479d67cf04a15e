//! The reasons why nothing could be published.

use thiserror::Error;

use super::api_client::ApiFailure;

/// The reason why a command could not publish.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The address of the API is unusable.
    #[error("{variable} is no usable address of an API: {problem}")]
    Address {
        /// Variable with the address.
        variable: String,
        /// Description of the fault.
        problem: String,
    },
    /// The token cannot be used.
    #[error("{problem}")]
    Token {
        /// Description of the fault, with the name of the variable.
        problem: String,
    },
    /// The host refused the token.
    #[error("{message}")]
    Refused {
        /// Description with the status and the words of the host.
        message: String,
        /// Next step for the user.
        hint: String,
    },
    /// The host cannot be reached, or does not answer as its API should.
    #[error("cannot {action}: {failure}")]
    Host {
        /// Step that failed, as a verb with its object.
        action: &'static str,
        /// Failure of the request.
        failure: ApiFailure,
    },
}

impl PublishError {
    /// Converts the failure of a step that every later step needs.
    pub fn from_failure(action: &'static str, failure: ApiFailure) -> Self {
        let hint = match &failure {
            ApiFailure::Refused { status: 401, .. } => {
                "the token is wrong or expired: put a valid one into the variable that holds it"
            }
            ApiFailure::Refused { status: 403, .. } => {
                "the token lacks a permission: it must be allowed to read and write pull requests or merge requests"
            }
            ApiFailure::Refused { status: 404, .. } => {
                "check the number and --repo; a private repository also looks like this to a token that may not read it"
            }
            _ => return Self::Host { action, failure },
        };
        Self::Refused { message: format!("cannot {action}: {failure}"), hint: hint.to_owned() }
    }

    /// Returns `true` if the arguments, the settings or the token are at fault, not the host or the network.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Host { .. })
    }

    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Address { variable, .. } => {
                format!("{variable} is like https://github.example.com/api/v3 or https://gitlab.example.com/api/v4")
            }
            Self::Token { .. } => "put the token into the variable without spaces and line ends".to_owned(),
            Self::Refused { hint, .. } => hint.clone(),
            Self::Host { .. } => "run the same command again: it goes on where it stopped".to_owned(),
        }
    }
}
