//! `revdeck lsp`: shows findings in editors over the Language Server Protocol on standard input and output.

use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use crate::domain::Priority;
use crate::lsp::{ServerEnd, ServerOptions, serve_stdio};

/// Arguments of `lsp`.
#[derive(Debug, Args)]
pub struct LspArgs {
    /// Show only findings of this priority (p0 to p3) or a more urgent one
    #[arg(long, value_name = "P")]
    priority: Option<Priority>,
    /// Accepted, because some editors add it: the server always uses standard input and output
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Runs `revdeck lsp` until the editor ends it, closes standard input, or a signal arrives.
///
/// # Errors
///
/// Returns an error if the server cannot start.
pub fn run(invocation: &Invocation, arguments: &LspArgs) -> Result<CliExitCode, CliError> {
    let actor = invocation.actor()?;
    let opener = invocation.clone();
    let open = move |folder: &Path| match opener.open_silent_session(folder) {
        Ok(session) => Ok(session.into_runner().0),
        Err(error) => Err(error.message),
    };
    let options = ServerOptions {
        open: Arc::new(open),
        actor: actor.actor,
        refusal_hint: actor.hint(),
        least: arguments.priority,
    };
    match serve_stdio(options) {
        Ok(ServerEnd::Orderly) => Ok(CliExitCode::Done),
        // The protocol wants an exit code of 1, which means findings elsewhere.
        Ok(ServerEnd::Abrupt) => Ok(CliExitCode::Findings),
        Err(error) => Err(CliError::failed(error.to_string())),
    }
}
