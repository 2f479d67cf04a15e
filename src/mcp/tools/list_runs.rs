//! `list_runs`: runs of the repository, newest first.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::RunStatus;
use crate::mcp::rows::{RunSummary, summarize_runs};
use crate::mcp::tool::{
    ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, check_range, parse_arguments, parse_words,
};
use crate::mcp::{OpenPurpose, ToolFailure};
use crate::runner::Services;

/// Default and maximum of `limit`, in runs. A row has at most 1 KB.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 50;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "list_runs",
    title: "List reviews",
    description: "Reviews (runs) of this repository, newest first, with status, scope, reviewer and number of \
                  findings. A run that is incomplete did not review a part of its change.",
    effect: ToolEffect::Reads,
    schemas: ToolSchemas::derive::<RunsArguments, RunsResult>,
    call,
};

/// Filters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RunsArguments {
    /// Statuses: pending, snapshotting, reviewing, resolving, completed, failed, cancelled, superseded, skipped, lost.
    /// Default: all
    status: Vec<String>,
    /// Maximum number of runs, 1 to 50. Default: 20
    limit: Option<usize>,
    /// Number of runs to skip, as `next_offset` of an earlier result says
    offset: usize,
}

/// Runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct RunsResult {
    runs: Vec<RunSummary>,
    /// Number of all runs that fit the filters
    total: usize,
    /// Offset for the next call; null if nothing follows
    next_offset: Option<usize>,
}

/// Runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunSelection {
    /// Statuses; empty for all.
    pub statuses: Vec<RunStatus>,
    /// Number of runs to skip.
    pub offset: usize,
    /// Maximum number of runs.
    pub limit: usize,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let arguments: RunsArguments = parse_arguments(TOOL.name, arguments)?;
    let selection = RunSelection {
        statuses: parse_words("status", &arguments.status)?,
        offset: arguments.offset,
        limit: check_range("limit", arguments.limit, DEFAULT_LIMIT, 1..=MAX_LIMIT)?,
    };
    list_runs(&context.access.open(OpenPurpose::Read)?, &selection)
}

/// Lists the selected runs.
///
/// # Errors
///
/// If the store cannot be read.
pub fn list_runs(services: &Services, selection: &RunSelection) -> Result<ToolOutput, ToolFailure> {
    let view = services.store.view()?;
    let fits = |index: &usize| selection.statuses.is_empty() || selection.statuses.contains(&view.run(*index).status);
    let chosen: Vec<usize> = (0..view.run_count()).filter(fits).collect();
    let end = chosen.len().min(selection.offset.saturating_add(selection.limit));
    let shown = chosen.get(selection.offset..end).unwrap_or_default();
    ToolOutput::new(&RunsResult {
        runs: summarize_runs(services, &view, shown)?,
        total: chosen.len(),
        next_offset: (end < chosen.len() && !shown.is_empty()).then_some(end),
    })
}
