//! `claim_addressed`: claims that a finding is fixed. A later review confirms or contradicts the claim.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::{Actor, FindingNote, FindingStatus};
use crate::mcp::clean::clean_text;
use crate::mcp::tool::{
    ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, parse_arguments, require_text,
};
use crate::mcp::{OpenPurpose, ToolFailure};
use crate::runner::{SetStatusError, StatusChange, set_status};
use crate::store::id_lookup;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "claim_addressed",
    title: "Claim a finding as fixed",
    description: "Claim that you have fixed a finding, with a note that says how. It is a claim: the next review that \
                  covers the code confirms it, or raises the finding again. Call it after the fix is in the files. If \
                  the finding is wrong, call dispute instead.",
    effect: ToolEffect::Adds,
    schemas: ToolSchemas::derive::<ClaimArguments, ClaimResult>,
    call,
};

/// The claim.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimArguments {
    /// Finding: an id, or a unique beginning of one
    finding_id: String,
    /// How it was fixed, in one or two sentences
    note: String,
}

/// The finding after the claim.
#[derive(Debug, Serialize, JsonSchema)]
struct ClaimResult {
    finding_id: String,
    /// Status after the claim
    status: String,
    /// Status before the claim
    previous: String,
    /// False if the finding was addressed already
    changed: bool,
    /// Next step
    next: String,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let arguments: ClaimArguments = parse_arguments(TOOL.name, arguments)?;
    let note = require_text("note", &arguments.note, FindingNote::MAX_TEXT_CHARS, "how you fixed it, in a sentence")?;
    let services = context.access.open(OpenPurpose::Read)?;
    let finding = id_lookup::resolve_finding(&services.store, &arguments.finding_id)?;
    let change = StatusChange { actor: Actor::Assistant, status: FindingStatus::Addressed, reason: &clean_text(note) };
    let places = (Some(&services.repo), &services.store);
    let lines = set_status(places, &services.ambient, std::slice::from_ref(&finding), change);
    let lines = lines.map_err(|error| match error {
        SetStatusError::Store(error) => error.into(),
        refused => ToolFailure::new(refused.to_string())
            .hint("an assistant claims fixes of open and unresolved findings; the user decides about the others"),
    })?;
    let (finding, status, previous) = match lines.first() {
        // A panel may have merged the report into a finding with another id.
        Some(line) => (&line.finding_id, line.status, line.previous),
        None => (&finding, FindingStatus::Addressed, FindingStatus::Addressed),
    };
    ToolOutput::new(&ClaimResult {
        finding_id: finding.to_string(),
        status: status.word().to_owned(),
        previous: previous.word().to_owned(),
        changed: !lines.is_empty(),
        next: "the next review that covers the code confirms the claim or raises the finding again".to_owned(),
    })
}
