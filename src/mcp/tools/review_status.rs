//! `review_status`: what is under way, and what waits for a decision.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::text::format_count;
use crate::mcp::clean::cut_text;
use crate::mcp::rows::{PriorityCounts, RunSummary, summarize_runs};
use crate::mcp::tool::{ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, parse_arguments};
use crate::mcp::{OpenPurpose, ServerMode, ToolFailure};
use crate::runner::WatchState;
use crate::store::WatcherStatus;

/// Maximum number of runs under way and of warnings in the result.
const MAX_ACTIVE_RUNS: usize = 10;
const MAX_WARNINGS: usize = 10;
/// Maximum length of a warning and of a name, in bytes.
const MAX_WARNING_BYTES: usize = 400;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "review_status",
    title: "Review status",
    description: "The reviews under way, the latest one that ended, the number of undecided findings by priority, \
                  and whether changes are reviewed automatically.",
    effect: ToolEffect::Reads,
    schemas: ToolSchemas::derive::<StatusArguments, StatusResult>,
    call,
};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {}

/// State of the reviews of this repository.
#[derive(Debug, Serialize, JsonSchema)]
struct StatusResult {
    /// Name of the repository
    repository: String,
    /// Branch of the working tree; empty on a detached HEAD
    branch: String,
    /// Commit of HEAD; empty before the first commit
    head_commit: String,
    /// Runs under way, newest first
    active: Vec<RunSummary>,
    /// Newest run that has ended; null if none has
    latest: Option<RunSummary>,
    /// Findings that nobody has decided about
    undecided: PriorityCounts,
    /// True if a watcher reviews changes automatically
    watching: bool,
    /// Time until which automatic reviews pause, RFC 3339; null if they do not
    snoozed_until: Option<String>,
    /// True if this server accepts no requests
    read_only: bool,
    /// Problems of the store that the user should know
    warnings: Vec<String>,
    /// A sentence for the user
    summary: String,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let StatusArguments {} = parse_arguments(TOOL.name, arguments)?;
    let services = context.access.open(OpenPurpose::Read)?;
    let view = services.store.view()?;
    let rows = || (0..view.run_count()).map(|index| (index, view.run(index)));
    let active: Vec<usize> = rows().filter(|(_, run)| !run.status.is_terminal()).map(|(index, _)| index).collect();
    let latest = rows().find(|(_, run)| run.status.is_terminal() && !run.is_fix_review()).map(|(index, _)| index);
    let mut counts = [0_u32; 4];
    for row in (0..view.finding_count()).map(|index| view.finding(index)).filter(|row| row.status.is_undecided()) {
        counts[row.priority.index()] += 1;
    }
    let undecided = PriorityCounts::from(counts);
    let watch = WatchState::read(&services.store, services.ambient.now())?;
    let shown = &active[..active.len().min(MAX_ACTIVE_RUNS)];
    let warnings = view.notices.iter().take(MAX_WARNINGS).map(|notice| cut_text(notice, MAX_WARNING_BYTES)).collect();
    ToolOutput::new(&StatusResult {
        repository: cut_text(&services.repo.name(), MAX_WARNING_BYTES),
        branch: cut_text(&services.repo.branch(), MAX_WARNING_BYTES),
        head_commit: services.repo.head(),
        active: summarize_runs(&services, &view, shown)?,
        latest: summarize_runs(&services, &view, latest.as_slice())?.pop(),
        undecided,
        watching: watch.watcher != WatcherStatus::None,
        snoozed_until: watch.snoozed.map(|until| until.to_string()),
        read_only: context.access.mode == ServerMode::ReadOnly,
        warnings,
        summary: describe(active.len(), undecided),
    })
}

fn describe(active: usize, undecided: PriorityCounts) -> String {
    let reviews = match active {
        0 => "no review is under way".to_owned(),
        n => format!("{} under way", format_count(n, "review")),
    };
    let findings = match undecided.total {
        0 => "no finding waits for a decision".to_owned(),
        total => format!(
            "{} undecided ({} p0, {} p1, {} p2, {} p3)",
            format_count(total as usize, "finding"),
            undecided.p0,
            undecided.p1,
            undecided.p2,
            undecided.p3
        ),
    };
    format!("{reviews}; {findings}")
}
