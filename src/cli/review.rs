//! `revdeck review`: requests a review. With `--wait` it waits for the result and prints the findings.

use std::io::{IsTerminal, Write};

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use serde_json::json;

use super::error::{CliError, CliExitCode};
use super::estimate::{announce_costs, print_estimate};
use super::run_result::RunResult;
use super::scope_args::ScopeArgs;
use super::session::{Invocation, Session};
use super::{complete, interrupt, output, runs, sync};
use crate::config::{DEFAULT_PROMPT_SET, Paths, Prompts, RequiredAssets, SettingOrigin, Settings};
use crate::domain::text::format_count;
use crate::domain::{OmissionReason, Panel, Priority, RunRecord, RunStatus, Source, Time};
use crate::policy::{Decision, ReviewAction};
use crate::report::activity::{describe_activity, describe_turn, format_elapsed};
use crate::report::figures::{format_brief, format_dollars};
use crate::report::forecast::encode_forecast;
use crate::report::{OutputFormat, TextOptions, json, text};
use crate::runner::{
    RequestOutcome, RequestPreview, ReviewDemand, ReviewRequest, Services, SettledAnswer, WaitProgress, WaitedTurn,
    read_run_freshness,
};
use crate::tui::doc::fit_start;

/// Exit codes of `review --wait`, for its help.
const EXIT_CODES: &str = "\
Exit codes with --wait:
  0  all that should be reviewed was reviewed
  1  a finding of the priority of --fail-on, or a more urgent one, stands
  2  a mistake in the command or the settings
  3  the review did not complete, or left a part out that --allow-unreviewed does not name";

/// Arguments of `review`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, group = ArgGroup::new("result").multiple(true))]
pub struct ReviewArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Reviewer to use: builtin or a name from your settings; several, separated by commas, review as a panel
    #[arg(long, value_name = "NAME,...", add = ArgValueCandidates::new(complete::list_reviewers))]
    reviewer: Option<String>,
    /// Panel to use: a [panels] table of your settings
    #[arg(long, value_name = "NAME", conflicts_with = "reviewer", add = ArgValueCandidates::new(complete::list_panels))]
    panel: Option<String>,
    /// Prompt set to use: a folder prompts/NAME next to your settings; default uses none
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::list_prompt_sets))]
    prompt_set: Option<String>,
    /// Wait for the review and print its findings
    #[arg(long, group = "result")]
    wait: bool,
    /// Only print what the review would do and cost; start nothing
    #[arg(long, conflicts_with_all = ["result", "sync", "fail_on", "allow_unreviewed"])]
    estimate: bool,
    /// Review again even if an equivalent review exists
    #[arg(long)]
    force: bool,
    /// With --wait: exchange records with the team before and after the review, see `revdeck team`
    #[arg(long, requires = "result")]
    sync: bool,
    /// Only report what this machine or its team has reviewed, as --wait does; never start a review
    #[arg(long, group = "result", conflicts_with = "force")]
    from_team: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
    /// With --wait: exit with 1 if a finding of this priority (p0 to p3) or a more urgent one stands; none disables
    /// this
    #[arg(long, value_name = "P", requires = "result", value_parser = parse_priority)]
    fail_on: Option<FailOn>,
    /// With --wait: parts of the change that may stay unreviewed without exit code 3, by reason (turn_limit, binary,
    /// generated, ...); see docs/policy.md
    #[arg(long, value_name = "KIND,...", requires = "result", value_delimiter = ',')]
    allow_unreviewed: Option<Vec<OmissionReason>>,
}

impl ReviewArgs {
    /// Returns true if the command prints findings: it waits for the review, or reports one that has ended.
    fn prints_findings(&self) -> bool {
        self.wait || self.from_team
    }
}

/// Value of `--fail-on`: a priority, or `none`, which overrides the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FailOn(Option<Priority>);

fn parse_priority(text: &str) -> Result<FailOn, String> {
    if text == "none" { Ok(FailOn(None)) } else { text.parse().map(|priority| FailOn(Some(priority))) }
}

/// Returns the requested reviewer or panel, or the default one, after a check that it exists. A panel is named as in the
/// records of runs: `panel:NAME`.
fn resolve_reviewer(
    settings: &Settings,
    asked: Option<&str>,
    panel: Option<&str>,
    source: Source,
) -> Result<String, CliError> {
    // A coding assistant does not start several reviews by naming nobody.
    let is_default = asked.is_none() && source == Source::Cli;
    let default_panel = Some(settings.default_panel.as_str()).filter(|name| !name.is_empty() && is_default);
    if let Some(name) = panel.or(default_panel) {
        return resolve_panel(settings, name, panel.is_none());
    }
    let name = asked.unwrap_or(&settings.default_reviewer);
    let names: Vec<&str> = name.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in &names {
        check_reviewer(settings, name)?;
    }
    match names.as_slice() {
        [] => Err(CliError::usage("no reviewer is named")),
        [one] => Ok((*one).to_owned()),
        several => Ok(format!("{}{}", Panel::PREFIX, several.join("+"))),
    }
}

fn check_reviewer(settings: &Settings, name: &str) -> Result<(), CliError> {
    if name == "builtin" || settings.reviewers.contains_key(name) {
        return Ok(());
    }
    let mut known = vec!["builtin"];
    known.extend(settings.reviewers.keys().map(String::as_str).filter(|name| *name != "builtin"));
    let panel = match settings.panels.contains_key(name) {
        true => format!("{name} is a panel: `--panel {name}`; reviewers: "),
        false => "there are: ".to_owned(),
    };
    Err(CliError::usage(format!("there is no reviewer named {name:?}")).hint(format!("{panel}{}", known.join(", "))))
}

fn resolve_panel(settings: &Settings, name: &str, is_default: bool) -> Result<String, CliError> {
    if settings.panels.contains_key(name) {
        return Ok(format!("{}{name}", Panel::PREFIX));
    }
    let which = if is_default { ", the default_panel" } else { "" };
    let known: Vec<&str> = settings.panels.keys().map(String::as_str).collect();
    let hint = match known.is_empty() {
        _ if name == "builtin" || settings.reviewers.contains_key(name) => {
            format!("{name} is a reviewer: `--reviewer {name}`")
        }
        true => "a panel is a [panels.NAME] table in your settings; `--reviewer a,b` needs none".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    };
    Err(CliError::usage(format!("there is no panel named {name:?}{which}")).hint(hint))
}

/// Returns the requested prompt set, after a check that it exists and that its texts can be used; `None` for the prompts
/// outside of a set.
fn resolve_prompt_set(paths: &Paths, asked: Option<&str>, reviewer: &str) -> Result<Option<String>, CliError> {
    let Some(set) = asked else { return Ok(None) };
    if reviewer == "builtin" {
        return Err(CliError::usage("--prompt-set is for models: the built-in reviewer has no prompts")
            .hint("--reviewer or --panel names who is asked"));
    }
    if set == DEFAULT_PROMPT_SET {
        return Ok(None);
    }
    Prompts::load_set(paths, Some(set))?;
    Ok(Some(set.to_owned()))
}

/// Runs `revdeck review`.
///
/// # Errors
///
/// Returns an error if the scope or reviewer is unknown, or the run cannot be started.
pub fn run(invocation: &Invocation, arguments: &ReviewArgs) -> Result<CliExitCode, CliError> {
    if !arguments.prints_findings() && arguments.format.exporter().is_some() {
        let name = arguments.format.name();
        if arguments.estimate {
            return Err(CliError::usage(format!("--format {name} is for findings, and --estimate prints none"))
                .hint("--format text or json prints the estimate"));
        }
        return Err(CliError::usage(format!("--format {name} needs --wait: without it there are no findings yet"))
            .hint(format!("`revdeck show latest --format {name}` prints them when the review has ended")));
    }
    let session = invocation.open_session(RequiredAssets::Smells)?;
    let request = build_request(&session, arguments, invocation.actor()?.source())?;
    let allowed =
        arguments.allow_unreviewed.clone().unwrap_or_else(|| session.loaded.settings.allow_unreviewed.clone());
    let (mut services, look) = session.into_runner();
    let mut earlier_exchange = sync::EarlierExchange::default();
    if arguments.sync {
        (services, earlier_exchange) = sync::sync_before_review(services, &look)?;
    }
    if arguments.estimate {
        return print_estimate(&services.launcher().preview_request(&request)?, arguments.format);
    }
    let mut forecast = None;
    let mut announce = |preview: RequestPreview| {
        if arguments.format == OutputFormat::Text {
            announce_costs(&preview);
        }
        forecast = Some(preview);
    };
    let requested = match request.demand {
        ReviewDemand::OnlyExisting => services.launcher().request_review(&request)?,
        ReviewDemand::AsNeeded | ReviewDemand::Anew => {
            services.launcher().request_announced_review(&request, &mut announce)?
        }
    };
    let forecast = json!(forecast.as_ref().map(encode_forecast));
    runs::print_reconciled(&services.recovery().take_news());
    if !arguments.prints_findings() {
        return print_started(&services, &look, arguments.format, &requested, forecast);
    }
    let mut requested = requested;
    let mut run = wait_for_run(&services, &requested, &look)?;
    let own = run.clone();
    // Another run reviews, or has reviewed, exactly the same.
    loop {
        let answer = services.answering_run(run.clone())?;
        if answer.run_id == run.run_id {
            break;
        }
        requested.decision.reason = format!("adopted: {}", run.ending.cancel_note);
        requested.decision.action = ReviewAction::Adopt { run: answer.run_id.clone() };
        requested.run = answer;
        run = wait_for_run(&services, &requested, &look)?;
        if run.team.is_some() {
            // Its worker has settled the findings; this says what is left.
            requested.settled = services.findings().settle_adopted_result(&own, &run);
        }
    }
    // A member may be a review of another machine, where a finding is dismissed that stands here.
    requested.settled.add_unproven(services.findings().list_dismissed_by_members(&run));
    if arguments.sync {
        sync::sync_after_review(&services, &look, &earlier_exchange)?;
    }
    let subject = &run.subject;
    let settings = services.settings_for(&subject.base_commit, &subject.snapshot_commit);
    // A change may make the gate of the repository stricter, but not looser.
    let fail_on =
        arguments.fail_on.map_or(settings.fail_on.max(services.settings.fail_on), |FailOn(priority)| priority);
    let now = services.ambient.now();
    warn_of_unsettled(&requested.settled);
    let result = RunResult::load_answer(&services.repo, &services.store, run, now, &requested.settled)?;
    output::print(&result.format_with_decision(&look, arguments.format, &requested.decision, forecast))?;
    Ok(result.exit_code(fail_on, &allowed))
}

fn build_request(session: &Session, arguments: &ReviewArgs, source: Source) -> Result<ReviewRequest, CliError> {
    let settings = &session.loaded.settings;
    let mut scope = arguments.scope.scope()?;
    if scope.is_none() {
        scope.clone_from(&settings.default_scope);
        let is_gate =
            arguments.prints_findings() && arguments.fail_on.map_or(settings.fail_on, |FailOn(limit)| limit).is_some();
        let mut origins = session.loaded.entries.iter().filter(|entry| entry.key == "default_scope");
        // A change must not choose which change a gate looks at.
        if is_gate && origins.any(|entry| matches!(entry.origin, SettingOrigin::Repository(_))) {
            output::print_note("note: default_scope of the repository is not obeyed by a gate (fail_on)");
            scope = None;
        }
    }
    let reviewer = resolve_reviewer(settings, arguments.reviewer.as_deref(), arguments.panel.as_deref(), source)?;
    Ok(ReviewRequest {
        scope,
        prompt_set: resolve_prompt_set(&session.paths, arguments.prompt_set.as_deref(), &reviewer)?,
        reviewer: Some(reviewer),
        source,
        started_in_session: 0,
        demand: match arguments.from_team {
            true => ReviewDemand::OnlyExisting,
            false => ReviewDemand::anew_if(arguments.force),
        },
    })
}

pub(super) fn decision_to_json(decision: &Decision) -> serde_json::Value {
    json!({
        "action": decision.action.word(),
        "reason": decision.reason,
        "saved_token_estimate": decision.saved_token_estimate,
        "supersedes": decision.supersedes(),
    })
}

/// Says on standard error that a result could not be applied to the findings.
fn warn_of_unsettled(settled: &SettledAnswer) {
    if let Some(failure) = settled.describe_failure() {
        output::print_note(&format!("warning: {failure}"));
    }
}

fn print_started(
    services: &Services,
    look: &TextOptions,
    format: OutputFormat,
    requested: &RequestOutcome,
    forecast: serde_json::Value,
) -> Result<CliExitCode, CliError> {
    let RequestOutcome { decision, run, settled } = requested;
    warn_of_unsettled(settled);
    if format == OutputFormat::Json {
        let freshness = read_run_freshness(&services.repo, &services.store, run, services.ambient.now())?;
        output::print_json(&json::build_versioned([
            ("run", json::encode_run(run, freshness)),
            ("decision", decision_to_json(decision)),
            ("forecast", forecast),
        ]))?;
        return Ok(CliExitCode::Done);
    }
    let said = match decision.action {
        ReviewAction::Launch => "asked for",
        ReviewAction::Adopt { .. } if run.is_later_attempt() => "goes on",
        ReviewAction::Adopt { .. } => "is on its way already",
        ReviewAction::Reuse { .. } => "has been done",
        ReviewAction::Resume { .. } => "goes on",
        ReviewAction::Skip => "was skipped",
    };
    let dot = look.separator();
    output::print(&format!(
        "{}  review of {} {said}{dot}{}\n",
        run.run_id,
        crate::domain::text::sanitize_line(&run.subject.scope.to_string()),
        crate::domain::text::sanitize_line(&decision.reason)
    ))?;
    Ok(CliExitCode::Done)
}

/// Waits until the run ends. Draws a progress line if standard error is a terminal.
fn wait_for_run(services: &Services, requested: &RequestOutcome, look: &TextOptions) -> Result<RunRecord, CliError> {
    let id = &requested.run.run_id;
    if requested.run.status.is_terminal() {
        return Ok(requested.run.clone());
    }
    interrupt::exit_on_interrupt(format!(
        "interrupted: the review goes on; `revdeck show {id}` shows it, `revdeck cancel {id}` ends it"
    ));
    let mut line = ProgressLine { visible: std::io::stderr().is_terminal(), ascii: look.ascii };
    let run = services.control().wait_for_run(id, &mut |progress| {
        line.show(progress, services.ambient.now());
        true
    });
    line.clear();
    Ok(run?)
}

/// Progress line on the terminal. A run that talks to a model shows its turn and phase, its activity, what it has
/// covered and found, its tokens, cost and time; a run of the built-in reviewer shows its covered hunks.
struct ProgressLine {
    visible: bool,
    ascii: bool,
}

impl ProgressLine {
    const BAR_WIDTH: usize = 24;

    fn show(&mut self, progress: &WaitProgress, now: Time) {
        if self.visible {
            let line = Self::format_line(progress, now, self.ascii);
            // A line that wraps could not be cleared.
            let width = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", fit_start(&line, width.saturating_sub(1)).0);
        }
    }

    fn format_line(WaitProgress { run, turn, pulse }: &WaitProgress, now: Time, ascii: bool) -> String {
        let coverage = &run.outcome.coverage;
        let done = (coverage.hunks_covered + coverage.hunks_carried) as usize;
        // A plan may have named fewer hunks than were reviewed in the end.
        let total = done.max(coverage.hunks_total as usize);
        // The end of a run is named as in every list.
        let status = match run.status.is_terminal() {
            true => text::run_status_word(run.status, run.state_word(), run.shortfall()).1,
            false => run.status.word(),
        };
        let mut parts = Vec::new();
        let (head, (filled, of)) = match (turn, pulse) {
            (Some(WaitedTurn { number, of, .. }), _) if number > of => {
                (describe_turn(*number, *of), (of.saturating_sub(1) as usize, *of as usize))
            }
            (Some(WaitedTurn { number, of, phase }), _) => {
                // The turn under way is not done.
                (
                    format!("{}, {}", describe_turn(*number, *of), phase.word()),
                    (number.saturating_sub(1) as usize, *of as usize),
                )
            }
            (None, Some(_)) => (status.to_owned(), (0, 1)),
            (None, None) => (status.to_owned(), (done, total)),
        };
        if let Some(pulse) = pulse {
            parts.push(describe_activity(pulse, run.is_paused(), now.as_millisecond()).text);
        } else if run.status == RunStatus::Pending {
            parts.push("waiting for a worker".to_owned());
        }
        if total > 0 && (turn.is_some() || pulse.is_none()) {
            parts.push(format!("{done} of {}", format_count(total, "hunk")));
        }
        let found = run.outcome.finding_counts.total() as usize;
        if found > 0 {
            parts.push(format_count(found, "finding"));
        }
        if let Some(pulse) = pulse {
            if pulse.tokens.total() > 0 {
                parts.push(format!("{} tokens", format_brief(pulse.tokens.total())));
            }
            if pulse.cost > 0.0 {
                parts.push(format_dollars(pulse.cost));
            }
            parts.push(format_elapsed(now.duration_since(run.created_at).as_millis().try_into().unwrap_or(0)));
        }
        let filled = (filled * Self::BAR_WIDTH).checked_div(of).unwrap_or(0).min(Self::BAR_WIDTH);
        let (full, empty, dot) = if ascii { ("#", ".", " - ") } else { ("━", "─", " · ") };
        format!("{head:<12} {}{} {}", full.repeat(filled), empty.repeat(Self::BAR_WIDTH - filled), parts.join(dot))
    }

    fn clear(&mut self) {
        if self.visible {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CancelReason, FindingCounts, TurnPhase, Usage};
    use crate::store::{Heartbeat, HeartbeatState};

    const NOW: i64 = 1_772_625_600_000;

    fn at(ms_ago: i64) -> Time {
        Time::from_millisecond(NOW - ms_ago).expect("a moment")
    }

    fn progress(status: &str, turn: Option<WaitedTurn>, state: Option<HeartbeatState>) -> WaitProgress {
        let mut run: RunRecord = serde_json::from_value(json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A", "status": status, "created_at": at(80_000), "updated_at": at(0),
            "source": "cli", "scope": "worktree", "reviewer": "m",
        }))
        .expect("a record");
        (run.outcome.coverage.hunks_total, run.outcome.coverage.hunks_covered) = (98, 98);
        run.outcome.finding_counts = FindingCounts::default();
        run.outcome.finding_counts.add(Priority::P1);
        let pulse = state.map(|state| Heartbeat {
            turn: turn.map_or(0, |turn| turn.number),
            state,
            since: at(3_000),
            last_byte_at: Some(at(100)),
            bytes: 12_345,
            tail: String::new(),
            cost: if turn.is_some() { 0.14 } else { 0.0 },
            tokens: if turn.is_some() { Usage { input: 41_000, ..Usage::default() } } else { Usage::default() },
        });
        WaitProgress { run, turn, pulse }
    }

    #[test]
    fn the_progress_line_counts_turns_and_is_never_full_while_turns_run() {
        let line = |progress: &WaitProgress| ProgressLine::format_line(progress, at(0), true);
        let turn = |number| Some(WaitedTurn { number, of: 20, phase: TurnPhase::Analyse });
        assert_eq!(
            line(&progress("reviewing", None, Some(HeartbeatState::Preparing))),
            "reviewing    ........................ gathering context, 3 s - 1 finding - 1 min 20 s"
        );
        // Every hunk was sent; 14 turns are left.
        assert_eq!(
            line(&progress("reviewing", turn(7), Some(HeartbeatState::Receiving))),
            "turn 7 of 20, analyse #######................. receiving, 12 KB, 3 s - 98 of 98 hunks - 1 finding - 41k \
             tokens - $0.14 - 1 min 20 s"
        );
        let last = line(&progress("reviewing", turn(20), Some(HeartbeatState::Tools)));
        assert!(last.contains("######################.. running tools"), "{last}");
        assert_eq!(
            line(&progress("reviewing", None, None)),
            "reviewing    ######################## 98 of 98 hunks - 1 finding"
        );
        let waiting = line(&progress("pending", None, None));
        assert!(waiting.contains("waiting for a worker"), "{waiting}");
    }

    #[test]
    fn the_last_progress_line_names_the_end_as_lists_do() {
        let line = |status: &str, change: &dyn Fn(&mut RunRecord)| {
            let mut last = progress(status, None, None);
            last.run.outcome.coverage.hunks_covered = 49;
            change(&mut last.run);
            ProgressLine::format_line(&last, at(0), true)
        };
        assert_eq!(
            line("completed", &|run| run.outcome.coverage.incomplete = true),
            "incomplete   ############............ 49 of 98 hunks - 1 finding"
        );
        assert_eq!(
            line("cancelled", &|run| run.ending.cancel_reason = Some(CancelReason::BudgetExhausted)),
            "budget reached ############............ 49 of 98 hunks - 1 finding"
        );
        assert!(line("cancelled", &|_| ()).starts_with("cancelled "));
    }
}
