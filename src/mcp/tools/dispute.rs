//! `dispute`: tells the user that a finding seems wrong. The finding keeps its status.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::text::sanitize_line;
use crate::domain::{Actor, FindingNote, NoteKind};
use crate::mcp::clean::clean_text;
use crate::mcp::tool::{
    ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, parse_arguments, require_text,
};
use crate::mcp::{OpenPurpose, ToolFailure};
use crate::runner::write_note;
use crate::store::id_lookup;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "dispute",
    title: "Dispute a finding",
    description: "Tell the user why you hold that a finding is wrong. The note stands beside the finding; its status \
                  stays as it is, because only the user dismisses findings.",
    effect: ToolEffect::Adds,
    schemas: ToolSchemas::derive::<DisputeArguments, DisputeResult>,
    call,
};

/// The note.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DisputeArguments {
    /// Finding: an id, or a unique beginning of one
    finding_id: String,
    /// Why the finding is wrong, with evidence from the code
    reason: String,
}

/// The finding after the note.
#[derive(Debug, Serialize, JsonSchema)]
struct DisputeResult {
    finding_id: String,
    /// Status of the finding, which the note does not change
    status: String,
    /// False if the same note was there already
    recorded: bool,
    /// Next step
    next: String,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let arguments: DisputeArguments = parse_arguments(TOOL.name, arguments)?;
    let reason = require_text(
        "reason",
        &arguments.reason,
        FindingNote::MAX_TEXT_CHARS,
        "why the finding is wrong, with evidence",
    )?;
    let services = context.access.open(OpenPurpose::Read)?;
    let finding_id = id_lookup::resolve_finding(&services.store, &arguments.finding_id)?;
    let note = FindingNote {
        finding_id,
        kind: NoteKind::Dispute,
        actor: Actor::Assistant,
        text: sanitize_line(&clean_text(reason)).into_owned(),
        at: services.ambient.now(),
    };
    // A panel may have merged the report into a finding with another id.
    let (note, recorded) = write_note(&services.store, note)?;
    ToolOutput::new(&DisputeResult {
        status: services.store.status(&note.finding_id)?.word().to_owned(),
        finding_id: note.finding_id.to_string(),
        recorded,
        next: "the user reads the note beside the finding and decides; go on with the next finding".to_owned(),
    })
}
