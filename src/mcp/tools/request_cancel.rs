//! `request_cancel`: asks for the end of a run that an assistant requested.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::text::sanitize_line;
use crate::domain::{Actor, FindingNote};
use crate::mcp::clean::clean_text;
use crate::mcp::rows::unreadable;
use crate::mcp::tool::{
    ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, parse_arguments, require_text,
};
use crate::mcp::{OpenPurpose, ToolFailure};
use crate::policy;
use crate::runner::CancelOutcome;
use crate::store::id_lookup;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "request_cancel",
    title: "Ask to cancel a review",
    description: "Ask to end a review that an assistant requested, with the reason. Its findings so far are kept. A \
                  review that the user requested is refused: only the user ends it. A long duration is no reason.",
    effect: ToolEffect::Ends,
    schemas: ToolSchemas::derive::<CancelArguments, CancelResult>,
    call,
};

/// The request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    /// Run: an id, a unique beginning of one, or latest
    run_id: String,
    /// Why the review is no longer needed
    reason: String,
}

/// The run after the request.
#[derive(Debug, Serialize, JsonSchema)]
struct CancelResult {
    run_id: String,
    /// `cancelled_before_start`, cancelled, killed (its worker did not answer) or `already_ended`
    outcome: String,
    /// Status of the run
    status: String,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let arguments: CancelArguments = parse_arguments(TOOL.name, arguments)?;
    let reason =
        require_text("reason", &arguments.reason, FindingNote::MAX_TEXT_CHARS, "why the review is no longer needed")?;
    let services = context.access.open(OpenPurpose::Request)?;
    let run = id_lookup::resolve_run(&services.store, &arguments.run_id)?;
    let record = services.store.run(&run)?.ok_or_else(|| unreadable("run", run.as_str()))?;
    if !record.status.is_terminal() && !policy::may_cancel(Actor::Assistant, record.source) {
        return Err(ToolFailure::new(format!(
            "{run} was not requested by an assistant, so only the user may cancel it"
        ))
        .hint(format!("tell the user why: `revdeck cancel {run}` ends it")));
    }
    let outcome = match services.control().cancel(&run, &sanitize_line(&clean_text(reason)))? {
        CancelOutcome::BeforeStart => "cancelled_before_start",
        CancelOutcome::ByWorker => "cancelled",
        CancelOutcome::Killed => "killed",
        CancelOutcome::AlreadyOver => "already_ended",
    };
    let status = services.store.run(&run)?.map_or(record.status, |record| record.status);
    ToolOutput::new(&CancelResult {
        run_id: run.to_string(),
        outcome: outcome.to_owned(),
        status: status.word().to_owned(),
    })
}
