//! `revdeck ledger`: prints the summary that a coding assistant receives at each turn. Prints nothing, not even a
//! newline, if there is nothing to report.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::error::{CliError, CliExitCode};
use super::output;
use super::session::Invocation;
use crate::config::RequiredAssets;
use crate::domain::TokenCountPrecision;
use crate::ledger::LedgerFormat;
use crate::report::json;
use crate::runner::{
    LedgerRecall, LedgerRequest, LedgerSources, compose_ledger, forget_ledger_session, preview_ledgers,
};
use crate::tokens::Encoding;

/// Arguments of `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Token limit, at most 1200; 0 prints nothing
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Assistant that reads the summary, such as claude-code. What it received is recorded
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    agent: String,
    /// Session of the assistant: what it received before is not repeated
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
    /// Print everything, although the session received it before
    #[arg(long)]
    whole: bool,
    /// Print nothing, and record that the session has lost what it received before: its next summary is whole
    #[arg(long, requires = "session", conflicts_with_all = ["whole", "record"])]
    forget: bool,
    /// Record that an assistant received the summary, with its token count and findings
    #[arg(long)]
    record: bool,
    /// Print as JSON what every known session would receive, and what was delivered last; record nothing
    #[arg(long, conflicts_with_all = ["agent", "session", "whole", "forget", "record", "max_tokens", "format"])]
    preview: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: LedgerOutput,
}

/// Output formats of `ledger`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum LedgerOutput {
    #[default]
    Xml,
    Text,
    Json,
}

/// Runs `revdeck ledger`.
///
/// # Errors
///
/// Returns an error outside of a repository, or if the store fails.
pub fn run(invocation: &Invocation, arguments: &LedgerArgs) -> Result<CliExitCode, CliError> {
    let session = invocation.open_session(RequiredAssets::None)?;
    let sources = LedgerSources {
        repo: &session.repo,
        store: &session.store,
        settings: &session.loaded.settings,
        now: session.ambient.now(),
    };
    if arguments.preview {
        let preview = preview_ledgers(&sources)?;
        output::print_json(&json::build_versioned([
            ("sessions", json!(preview.sessions)),
            ("recent", json!(preview.recent)),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    if arguments.forget {
        forget_ledger_session(&sources, &arguments.agent, &arguments.session)?;
        return Ok(CliExitCode::Done);
    }
    let request = LedgerRequest {
        max_tokens: arguments.max_tokens,
        agent: arguments.agent.clone(),
        session: arguments.session.clone(),
        format: match arguments.format {
            LedgerOutput::Xml | LedgerOutput::Json => LedgerFormat::Xml,
            LedgerOutput::Text => LedgerFormat::Text,
        },
        recall: if arguments.whole { LedgerRecall::Forget } else { LedgerRecall::Remember },
        counted: match arguments.format {
            LedgerOutput::Json => TokenCountPrecision::Exact,
            LedgerOutput::Xml | LedgerOutput::Text => TokenCountPrecision::AtMost,
        },
        ..LedgerRequest::default()
    };
    let turn = compose_ledger(&sources, &request)?;
    match arguments.format {
        LedgerOutput::Xml | LedgerOutput::Text => output::print(turn.text())?,
        LedgerOutput::Json => {
            let ledger = turn.ledger.as_ref();
            output::print_json(&json::build_versioned([
                ("ledger", json!(ledger.map(|ledger| &ledger.text))),
                ("form", json!(ledger.map(|ledger| ledger.form))),
                ("tokens", json!(ledger.map_or(0, |ledger| ledger.tokens))),
                ("encoding", json!(Encoding::O200kBase.name())),
                ("cap", json!(turn.cap)),
                ("surfaced", json!(ledger.map_or(&[][..], |ledger| &ledger.surfaced))),
                ("left_out", json!(ledger.map_or(0, |ledger| ledger.left_out))),
                ("omitted", json!(ledger.map_or(&[][..], |ledger| &ledger.omitted))),
            ]))?;
        }
    }
    if arguments.record || !arguments.agent.is_empty() || !arguments.session.is_empty() {
        turn.record(&session.store)?;
    }
    Ok(CliExitCode::Done)
}
