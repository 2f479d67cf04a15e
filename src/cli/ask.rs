//! `revdeck ask`: asks the reviewer of a finding a question and prints the answer. A worker asks and stores the answer,
//! so that an interrupted command loses nothing that was paid for.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::session::Invocation;
use super::{complete, output, resolve_id};
use crate::config::RequiredAssets;
use crate::domain::{FindingQuestion, QuestionOutcome, QuestionVerdict, SCHEMA_VERSION};
use crate::report::describe_answer;
use crate::report::figures::{format_dollars, format_thousands};
use crate::runner::wait_for_answer;

/// Arguments of `ask`.
#[derive(Debug, Args)]
#[command(after_help = "\
The reviewer sees the finding as it was reported, its code and its part of the change in the reviewed
snapshot, and the earlier questions about it. Secrets are masked. A question is one request to a model;
the command says the most that it may cost before it asks, and refuses what a budget does not allow.

An answer changes no status. `revdeck show FINDING` has all questions. `--stop` ends a question that is on its way, such as
one that the cockpit asked; the provider may charge for it.")]
pub struct AskArgs {
    /// Finding: an id or the beginning of an id
    #[arg(value_name = "FINDING", add = ArgValueCandidates::new(complete::list_findings))]
    finding: String,
    /// Question, at most 2,000 characters
    #[arg(value_name = "QUESTION", required_unless_present = "stop")]
    question: Option<String>,
    /// Reviewer that answers, a model over HTTP; by default the one that reported the finding
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::list_reviewers))]
    reviewer: Option<String>,
    /// Stop the question about this finding that has no answer yet
    #[arg(long, conflicts_with_all = ["question", "reviewer"])]
    stop: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: PlainFormat,
}

/// Runs `revdeck ask`.
///
/// # Errors
///
/// Returns an error if an assistant asks, the finding is unknown, its reviewer cannot answer, its key is missing, or the
/// question may pass a budget. Nothing was sent then.
pub fn run(invocation: &Invocation, arguments: &AskArgs) -> Result<CliExitCode, CliError> {
    let actor = invocation.actor()?;
    actor.require_person("ask a reviewer about a finding, because a question may cost the user money")?;
    let (services, _) = invocation.open_session(RequiredAssets::Smells)?.into_runner();
    let finding = resolve_id::resolve_finding_in(&*services.store.view()?, &arguments.finding)?;
    let asker = services.asker();
    let request = if arguments.stop {
        let pending = asker.stop_question(&finding)?;
        pending.ok_or_else(|| CliError::usage(format!("no question about {finding} is on its way")))?
    } else {
        let prepared =
            asker.prepare_question(&finding, arguments.reviewer.as_deref(), arguments.question.as_deref())?;
        if prepared.listed != finding {
            output::print_note(&format!("note: a panel lists {finding} as {}", prepared.listed));
        }
        output::print_note(&format!("note: asking {}, {}", prepared.reviewer, prepared.limit));
        asker.ask(prepared, actor.actor)?
    };
    let line = wait_for_answer(&services.store, &request)?;
    match arguments.format {
        PlainFormat::Json => output::print_json(&json!({ "version": SCHEMA_VERSION, "question": line }))?,
        PlainFormat::Text => output::print(&format_question(&line))?,
    }
    Ok(match line.outcome {
        QuestionOutcome::Answer(_) => CliExitCode::Done,
        QuestionOutcome::Failure(_) if arguments.stop => CliExitCode::Done,
        QuestionOutcome::Failure(_) => CliExitCode::Incomplete,
    })
}

/// Formats the result of a question, with its cost.
fn format_question(line: &FindingQuestion) -> String {
    let id = &line.request.finding_id;
    let mut said = format!("{}\n", describe_answer(line));
    if let QuestionOutcome::Answer(answer) = &line.outcome
        && answer.verdict == QuestionVerdict::Withdrawn
    {
        said.push_str(&format!("its status has not changed: `revdeck triage {id} dismissed --reason TEXT` decides\n"));
    }
    if line.tokens.total() > 0 {
        let estimated = if line.tokens.estimated { "~" } else { "" };
        let (tokens, cost) = (format_thousands(line.tokens.total()), format_dollars(line.cost));
        said.push_str(&format!("{estimated}{tokens} tokens, {cost}\n"));
    }
    said
}
