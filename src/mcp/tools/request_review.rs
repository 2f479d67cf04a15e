//! `request_review`: asks for a review. The policy answers: a new run, a run under way, an earlier result, or nothing.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::domain::text::format_count;
use crate::domain::{RunId, RunRecord, RunStatus, Scope, Source};
use crate::mcp::clean::cut_text;
use crate::mcp::rows::{RunSummary, unreadable};
use crate::mcp::tool::{
    ProgressStep, ToolContext, ToolDefinition, ToolEffect, ToolOutput, ToolSchemas, check_range, parse_arguments,
};
use crate::mcp::{OpenPurpose, RepositoryAccess, ToolFailure};
use crate::policy::ReviewAction;
use crate::runner::{ReviewDemand, ReviewRequest, WaitProgress};

/// Maximum of `wait_seconds`: an hour, longer than a review of a large change takes.
const MAX_WAIT_SECONDS: usize = 3600;
/// Interval between two looks at a cancellation while a call waits.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Progress of a run that has reviewed everything and has not ended yet, of 100.
const MAX_ACTIVE_PERCENT: f64 = 99.0;
/// Next step after a request that starts no review and is answered by none.
const NOT_STARTED: &str = "no review was started, for the reason above; if one is needed, tell the user";
/// Maximum length of the reason, in bytes.
const MAX_REASON_BYTES: usize = 1000;

/// Definition of the tool.
pub const TOOL: ToolDefinition = ToolDefinition {
    name: "request_review",
    title: "Ask for a review",
    description: "Ask for a review of a change. revdeck decides and says why: it starts a review in the background, \
                  adopts one under way, reuses an earlier result, or skips it. With wait_seconds the call returns \
                  when the review has ended, with progress meanwhile; otherwise call review_status later.",
    effect: ToolEffect::StartsReview,
    schemas: ToolSchemas::derive::<ReviewArguments, ReviewResult>,
    call,
};

/// The request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReviewArguments {
    /// Code to review: worktree (uncommitted changes), staged, commit:REV, range:A..B, branch or branch:BASE, or all.
    /// Default: what the settings say, else the uncommitted changes or the last commit
    #[serde(default)]
    scope: Option<String>,
    /// Seconds to wait for the end of the review, at most 3600. Default: 0
    #[serde(default)]
    wait_seconds: Option<usize>,
}

/// The answer of the policy.
#[derive(Debug, Serialize, JsonSchema)]
struct ReviewResult {
    /// launch, adopt, reuse, resume or skip
    action: String,
    /// Reason for the action
    reason: String,
    /// Tokens that an adopted or reused review saved, estimated
    saved_token_estimate: u64,
    /// Run that answers the request
    run: RunSummary,
    /// True if the run has ended
    ended: bool,
    /// Next step
    next: String,
}

fn call(context: &ToolContext<'_>, arguments: JsonObject) -> Result<ToolOutput, ToolFailure> {
    let arguments: ReviewArguments = parse_arguments(TOOL.name, arguments)?;
    let seconds = check_range("wait_seconds", arguments.wait_seconds, 0, 0..=MAX_WAIT_SECONDS)?;
    let scope = arguments.scope.as_deref().map(parse_scope).transpose()?;
    let services = context.access.open(OpenPurpose::Request)?;
    let request = ReviewRequest {
        scope: scope.or_else(|| services.settings.default_scope.clone()),
        reviewer: Some(services.settings.default_reviewer.clone()),
        prompt_set: None,
        source: Source::Assistant,
        started_in_session: context.access.started_reviews.load(Ordering::Relaxed),
        demand: ReviewDemand::AsNeeded,
    };
    let requested = services.launcher().request_review(&request)?;
    let action = &requested.decision.action;
    if action.starts_run() {
        context.access.started_reviews.fetch_add(1, Ordering::Relaxed);
    }
    let is_skipped = *action == ReviewAction::Skip;
    let unsettled = requested.settled.describe_failure();
    let mut run = requested.run;
    if seconds > 0 && !run.status.is_terminal() {
        wait_for_end(context, &run.run_id, Duration::from_secs(seconds as u64))?;
        run = services.store.run(&run.run_id)?.ok_or_else(|| unreadable("run", run.run_id.as_str()))?;
    }
    run = services.answering_run(run)?;
    let ended = run.status.is_terminal();
    ToolOutput::new(&ReviewResult {
        action: requested.decision.action.word().to_owned(),
        reason: cut_text(&requested.decision.reason, MAX_REASON_BYTES),
        saved_token_estimate: requested.decision.saved_token_estimate,
        next: match unsettled {
            Some(failure) => cut_text(&failure, MAX_REASON_BYTES),
            None if is_skipped => NOT_STARTED.to_owned(),
            None => describe_next_step(&run),
        },
        run: RunSummary::from_record(&services, &run)?,
        ended,
    })
}

fn parse_scope(word: &str) -> Result<Scope, ToolFailure> {
    word.parse().map_err(|error| {
        ToolFailure::new(format!("scope: {error}"))
            .hint("write worktree, staged, commit:REV, range:A..B, branch, branch:BASE or all")
    })
}

fn describe_next_step(run: &RunRecord) -> String {
    let found = run.outcome.finding_counts.total() as usize;
    match run.status.is_terminal() {
        false => "the review goes on in the background; review_status tells when it has ended".to_owned(),
        true if found > 0 => {
            format!("auto_review_details(run_id=\"{}\") returns the {}", run.run_id, format_count(found, "finding"))
        }
        true if run.status != RunStatus::Completed || run.shortfall().is_some() => format!(
            "this run is {} and has not reviewed the whole change: do not read it as a review without findings",
            run.status
        ),
        true => "nothing to do: this run reported no finding".to_owned(),
    }
}

/// News of a waiting thread.
enum WaitNews {
    Progress(ProgressStep),
    Ended(Result<(), ToolFailure>),
}

/// Waits until the run has ended, the time is over or the client no longer waits. The run itself goes on in any case.
fn wait_for_end(context: &ToolContext<'_>, run: &RunId, patience: Duration) -> Result<(), ToolFailure> {
    let (sender, news) = channel();
    let (access, id, deadline) = (context.access.clone(), run.clone(), Instant::now() + patience);
    // A thread of its own, because a run that does not move for a while does not wake who waits for it.
    std::thread::spawn(move || {
        let ended = follow_run(&access, &id, &|step| sender.send(WaitNews::Progress(step)).is_ok());
        let _ = sender.send(WaitNews::Ended(ended));
    });
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() || context.is_cancelled() {
            return Ok(());
        }
        match news.recv_timeout(rest.min(CANCEL_CHECK_INTERVAL)) {
            Ok(WaitNews::Progress(step)) => (context.progress)(step),
            Ok(WaitNews::Ended(ended)) => return ended,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Reports the progress of a run until it has ended or `report` returns false.
fn follow_run(
    access: &RepositoryAccess,
    run: &RunId,
    report: &dyn Fn(ProgressStep) -> bool,
) -> Result<(), ToolFailure> {
    let services = access.open(OpenPurpose::Request)?;
    services.control().wait_for_run(run, &mut |progress| report(describe_progress(progress)))?;
    Ok(())
}

fn describe_progress(WaitProgress { run, turn, .. }: &WaitProgress) -> ProgressStep {
    let coverage = &run.outcome.coverage;
    let done = coverage.hunks_covered + coverage.hunks_carried;
    let total = done.max(coverage.hunks_total);
    let (part, whole) = match turn {
        Some(turn) => (turn.number.saturating_sub(1), turn.of),
        None => (done, total),
    };
    let percent = match run.status.is_terminal() {
        true => 100.0,
        false if whole == 0 => 0.0,
        // After the last hunk there are still findings to settle.
        false => MAX_ACTIVE_PERCENT * f64::from(part.min(whole)) / f64::from(whole),
    };
    let mut message = run.status.word().to_owned();
    if let Some(turn) = turn.filter(|turn| turn.number <= turn.of) {
        message = format!("turn {} of {}, {}", turn.number, turn.of, turn.phase.word());
    }
    if total > 0 {
        message = format!("{message}, {done} of {}", format_count(total as usize, "hunk"));
    }
    ProgressStep { percent, message }
}
