//! `revdeck mcp`: serves coding assistants over the Model Context Protocol on standard input and output.

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::config::{MistakePolicy, RequiredAssets};
use crate::mcp::{OpenPurpose, RepositoryAccess, ServeError, ServerMode, ToolFailure, serve_stdio};

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Offer reading tools only: no requests, claims or notes
    #[arg(long)]
    read_only: bool,
}

impl From<CliError> for ToolFailure {
    fn from(error: CliError) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}

/// Runs `revdeck mcp` until the client closes standard input or a signal ends it.
///
/// # Errors
///
/// Returns an error if the server cannot start or the client does not begin a session.
pub fn run(invocation: &Invocation, arguments: &McpArgs) -> Result<CliExitCode, CliError> {
    let mode = if arguments.read_only { ServerMode::ReadOnly } else { ServerMode::Full };
    let opener = invocation.clone();
    let open = move |purpose| {
        let (texts, mistakes) = match purpose {
            OpenPurpose::Read => (RequiredAssets::None, MistakePolicy::Warn),
            OpenPurpose::Request => (RequiredAssets::Smells, MistakePolicy::Refuse),
        };
        Ok(opener.open_runner(texts, mistakes)?)
    };
    let access = RepositoryAccess::new(mode, open);
    serve_stdio(access).map_err(|error| match error {
        ServeError::Start(_) => CliError::failed(error.to_string()),
        ServeError::Session(_) => CliError::usage(error.to_string())
            .hint("`revdeck mcp` is started by a coding assistant: docs/assistants.md shows how to add it"),
    })?;
    Ok(CliExitCode::Done)
}
