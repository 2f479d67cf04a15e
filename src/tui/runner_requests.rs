//! Handles the requests of the cockpit to the runner: reviews, ends of runs, pauses, the watcher and fixes. Each result is a
//! message.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use super::effects::spawn_worker;
use super::event_source::MessageSender;
use super::message::{AppMessage, ChosenReviewer, ReviewReply};
use super::repository_presence::RepositoryPresence;
use super::saved_filters::FilterChange;
use super::team_follower::TeamFollower;
use super::views::fix::{FixOrder, FixPlan};
use crate::config;
use crate::domain::{Actor, FindingId, QuestionRequest, RunId, Scope, Source, WatchMode};
use crate::policy;
use crate::runner::{
    CancelOutcome, FixMakers, FixRequest, OwnFinding, PauseOutcome, ReconcileReport, RequestOutcome, ReviewDemand,
    ReviewRequest, RunnerError, Services, parse_snooze, wait_for_answer,
};
use crate::store::{WatcherInfo, WatcherStatus};

/// Request to the services of the runner, handled one after another.
pub(super) enum RunnerRequest {
    Reconcile,
    Review {
        scope: Option<Scope>,
        reviewer: ChosenReviewer,
        force: bool,
    },
    ReviewOnOpen,
    Cancel(RunId),
    Pause(RunId),
    Resume(RunId),
    Sync,
    FollowTeam,
    Watch,
    Snooze(String),
    KeepTheme(String),
    SaveFilter(FilterChange),
    PlanFix(Vec<FindingId>),
    Fix(FixOrder),
    WriteFinding {
        finding: OwnFinding,
        rewrites: Option<FindingId>,
    },
    PlanQuestion {
        finding: FindingId,
        reviewer: Option<String>,
    },
    StopQuestion(FindingId),
    Ask {
        finding: FindingId,
        reviewer: String,
        question: String,
    },
    /// Tells when all before it is done.
    Flush(Sender<()>),
}

/// Handles requests until their senders or the receiver of the messages are gone.
pub(super) fn serve_runner_requests(
    services: &Services,
    asks: &Receiver<RunnerRequest>,
    presence: &Arc<RepositoryPresence>,
    messages: &MessageSender,
) {
    // Ends with this thread, and so with the cockpit.
    let mut follower: Option<TeamFollower> = None;
    while let Ok(wish) = asks.recv() {
        let message = match wish {
            RunnerRequest::Reconcile => {
                let reconciled = services.recovery().reconcile();
                // An unwritable store is reported only when the user triggers a write.
                reconciled.trouble.iter().for_each(|trouble| tracing::warn!(%trouble, "not set right"));
                let paid = services.recovery().describe_paid_resumes(&reconciled);
                let summary = ReconcileReport { trouble: Vec::new(), ..reconciled }.summary();
                let said = [summary, paid].into_iter().flatten().collect::<Vec<_>>().join("; ");
                AppMessage::Reconciled((!said.is_empty()).then_some(said))
            }
            RunnerRequest::ReviewOnOpen => {
                let outcome = services.launcher().review_on_open().map_err(describe_runner_error);
                if outcome.is_err() {
                    // If the repository is gone, that is told first: it is the reason.
                    presence.look();
                }
                AppMessage::Opened { outcome, terms: services.reviewers().default_terms().ok() }
            }
            RunnerRequest::Review { scope, reviewer, force } => {
                AppMessage::Requested(request_review(services, scope, reviewer, force))
            }
            RunnerRequest::Cancel(run) => {
                let result = cancel_run(services, &run);
                AppMessage::Cancelled { run: run.as_str().to_owned(), result }
            }
            RunnerRequest::Pause(run) => AppMessage::Paused(describe_pausing(
                services.control().pause(&run),
                "pauses as soon as the answer is in",
            )),
            RunnerRequest::Sync => AppMessage::Watched(start_sync(services)),
            RunnerRequest::FollowTeam => {
                match &follower {
                    Some(follower) => follower.notice_team(),
                    None if services.team().is_live() => {
                        follower = services.open_again().map(|again| TeamFollower::start(again, messages.clone()));
                    }
                    None => {}
                }
                continue;
            }
            RunnerRequest::Watch => AppMessage::Watched(toggle_watch(services)),
            RunnerRequest::Snooze(text) => AppMessage::Watched(snooze(services, &text)),
            RunnerRequest::KeepTheme(name) => AppMessage::ThemeKept(keep_theme(services, &name)),
            RunnerRequest::SaveFilter(change) => AppMessage::FilterSaved(save_filter(services, &change)),
            RunnerRequest::PlanFix(findings) => AppMessage::FixPlanned(
                services
                    .fixer()
                    .choose_fixer(&findings)
                    .map(|FixMakers { maker, patch_reviewer }| FixPlan { findings, reviewer: maker, patch_reviewer })
                    .map_err(describe_runner_error),
            ),
            RunnerRequest::Fix(order) => {
                let done = match &order {
                    FixOrder::Make(findings) => services.fixer().request_fix(&FixRequest {
                        findings: findings.clone(),
                        reviewer: None,
                        source: Source::Cockpit,
                    }),
                    FixOrder::ApplySuggestions(findings) => {
                        services.fixer().apply_suggestions(findings, Source::Cockpit, Actor::User)
                    }
                    FixOrder::Apply(fix) => services.fixer().apply_fix(fix, Actor::User),
                    FixOrder::Undo(fix) => services.fixer().undo_fix(fix, Actor::User),
                    FixOrder::Drop(fix) => services.fixer().drop_fix(fix),
                };
                AppMessage::FixFinished { order, result: done.map(Box::new).map_err(describe_runner_error) }
            }
            RunnerRequest::PlanQuestion { finding, reviewer } => {
                let plan = services.asker().plan_question(&finding, reviewer.as_deref());
                AppMessage::QuestionPlanned(plan.map_err(describe_runner_error))
            }
            RunnerRequest::StopQuestion(finding) => match services.asker().stop_question(&finding) {
                // Its result comes like that of any question.
                Ok(_) => continue,
                Err(error) => AppMessage::Watched(Err(format!("not stopped: {error}"))),
            },
            RunnerRequest::Ask { finding, reviewer, question } => {
                let asked = ask(services, &finding, &reviewer, &question, messages);
                AppMessage::QuestionAsked(asked.map_err(describe_runner_error))
            }
            RunnerRequest::WriteFinding { finding, rewrites } => {
                AppMessage::FindingWritten(services.importer().write_own_finding(&finding, rewrites.as_ref()))
            }
            RunnerRequest::Flush(done) => {
                let _ = done.send(());
                continue;
            }
            RunnerRequest::Resume(run) => {
                AppMessage::Paused(describe_pausing(services.control().resume(&run), "goes on"))
            }
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

/// Requests a review and describes the decision.
fn request_review(
    services: &Services,
    scope: Option<Scope>,
    reviewer: ChosenReviewer,
    force: bool,
) -> Result<ReviewReply, String> {
    let request = ReviewRequest {
        scope: scope.clone(),
        reviewer: reviewer.into_name(),
        prompt_set: None,
        source: Source::Cockpit,
        started_in_session: 0,
        demand: ReviewDemand::anew_if(force),
    };
    let requested = services.launcher().request_review(&request).map_err(describe_runner_error)?;
    let run = Some(requested.run.run_id.as_str().to_owned());
    let decision = match requested.settled.describe_failure() {
        Some(failure) => Err(format!("{}: {failure}", requested.run.subject.name())),
        None => Ok(describe_request(&requested)),
    };
    Ok(ReviewReply { scope, run, decision })
}

/// Cancels a run and describes the result.
fn cancel_run(services: &Services, run: &RunId) -> Result<String, String> {
    let how = services.control().cancel(run, "from the cockpit").map_err(|error| error.to_string())?;
    let said = match how {
        CancelOutcome::BeforeStart => "cancelled before it began",
        CancelOutcome::ByWorker => "cancelled; what it found stays",
        CancelOutcome::Killed => "the worker did not answer and was ended; what it found stays",
        CancelOutcome::AlreadyOver => "it was over already",
    };
    Ok(said.to_owned())
}

/// Sends a question, and waits for its end on a thread of its own: a worker that dies leaves the failure to others.
fn ask(
    services: &Services,
    finding: &FindingId,
    reviewer: &str,
    question: &str,
    messages: &MessageSender,
) -> Result<QuestionRequest, RunnerError> {
    let asker = services.asker();
    let prepared = asker.prepare_question(finding, Some(reviewer), Some(question))?;
    let request = asker.ask(prepared, Actor::User)?;
    let (store, asked) = (services.store.clone(), request.clone());
    spawn_worker("question", messages.clone(), move || {
        if let Err(error) = wait_for_answer(&store, &asked) {
            tracing::warn!(finding = %asked.finding_id, %error, "the end of a question is not seen");
        }
    });
    Ok(request)
}

/// Writes the name of a theme into the user's settings and says where.
fn keep_theme(services: &Services, name: &str) -> Result<String, String> {
    let file = services.paths.config_file();
    config::set_user_setting(&file, &["theme"], Some(name)).map_err(|error| error.to_string())?;
    Ok(format!("theme {name} is kept in {}", file.display()))
}

/// Writes a saved filter into the user's settings, or removes it there, and says where.
fn save_filter(services: &Services, FilterChange { name, text }: &FilterChange) -> Result<String, String> {
    let file = services.paths.config_file();
    config::set_user_setting(&file, &["filters", name], text.as_deref()).map_err(|error| error.to_string())?;
    let done = if text.is_some() { "is saved in" } else { "is removed from" };
    Ok(format!("the filter @{name} {done} {}", file.display()))
}

/// Starts a watcher, or stops the current one, and describes the result.
fn toggle_watch(services: &Services) -> Result<String, String> {
    let watcher = services.store.watcher_status().map_err(|error| error.to_string())?;
    if watcher != WatcherStatus::None {
        services.watcher().stop_watch().map_err(|error| error.to_string())?;
        return Ok("the watcher has ended".to_owned());
    }
    match services.watcher().start_watch() {
        Ok(WatcherStatus::Known(WatcherInfo { mode: WatchMode::Polling { reason }, .. })) => {
            Ok(format!("watching by looking every so often: {reason}"))
        }
        Ok(WatcherStatus::Known(_) | WatcherStatus::Unknown) => {
            let by = services.watcher().describe_reviewer().ok().flatten();
            let by = by.map_or_else(String::new, |by| format!("; {by}"));
            Ok(format!("watching: what changes is reviewed, also without the cockpit{by}"))
        }
        Ok(WatcherStatus::None) => {
            Err(format!("nobody watches: {} says why", services.watcher().watch_log_path().display()))
        }
        Err(error) => Err(format!("nobody watches: {error}")),
    }
}

/// Starts an exchange with the team in a process of its own; its end changes the header.
fn start_sync(services: &Services) -> Result<String, String> {
    match services.team().start_sync() {
        Ok(()) => Ok("exchanging records with the team; the header says when it is done".to_owned()),
        Err(error) => Err(format!("nothing was exchanged: {error}")),
    }
}

fn snooze(services: &Services, text: &str) -> Result<String, String> {
    let zone = jiff::tz::TimeZone::system();
    let until = parse_snooze(text, services.ambient.now(), &zone)?;
    services.store.set_snooze(until).map_err(|error| error.to_string())?;
    Ok(match until {
        Some(until) => format!("snoozed until {}", until.to_zoned(zone).strftime("%H:%M")),
        None => "not snoozed any more".to_owned(),
    })
}

/// Describes an error, with the next step for the user if there is one.
fn describe_runner_error(error: RunnerError) -> String {
    match &error {
        RunnerError::MissingKey(missing) => format!("{error}; {}", missing.hint()),
        RunnerError::Fix(_) | RunnerError::Ask(_) => match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

/// Describes the result of pausing or resuming a run; `done` is the text for a recorded change.
fn describe_pausing(result: Result<PauseOutcome, RunnerError>, done: &str) -> Result<String, String> {
    match result {
        Ok(PauseOutcome::Recorded) => Ok(done.to_owned()),
        Ok(PauseOutcome::Already) => Ok("it was so already".to_owned()),
        Ok(PauseOutcome::Over) => Ok("it was over already".to_owned()),
        Ok(PauseOutcome::NoTurns) => Err("this reviewer asks no model: it has nothing to pause".to_owned()),
        Err(error) => Err(format!("nothing changed: {error}")),
    }
}

/// Describes the decision about a review request in one sentence.
fn describe_request(requested: &RequestOutcome) -> String {
    let (change, reason) = (requested.run.subject.name(), &requested.decision.reason);
    // The list of runs selects the run that answers: its id says nothing more.
    let without_id = |run: &RunId| reason.replace(run.as_str(), "that review");
    match &requested.decision.action {
        policy::ReviewAction::Launch => format!("reviewing {change}"),
        policy::ReviewAction::Adopt { run } if requested.run.is_later_attempt() => {
            format!("the review of {change} goes on: {}", without_id(run))
        }
        policy::ReviewAction::Adopt { run } => format!("{change} is being reviewed already: {}", without_id(run)),
        policy::ReviewAction::Reuse { run } => format!("{change} has been reviewed already: {}", without_id(run)),
        policy::ReviewAction::Resume { from } => format!("reviewing {change}: {}", without_id(from)),
        policy::ReviewAction::Skip => reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{RunRecord, RunStatus};
    use crate::policy::{Decision, ReviewAction};
    use crate::runner::{FixError, SettledAnswer};

    #[test]
    fn a_run_that_goes_on_after_its_worker_died_is_not_called_new() {
        let run: RunRecord = serde_json::from_value(serde_json::json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C01", "status": "pending", "created_at": "2026-03-04T11:00:00Z",
            "updated_at": "2026-03-04T11:00:01Z", "source": "cockpit", "scope": "worktree", "reviewer": "builtin",
            "branch": "main", "snapshot_commit": "3fa2c1d09b7e4851aa",
        }))
        .expect("a record");
        let describe = |status, attempt, reason: &str| {
            let decision = Decision {
                action: ReviewAction::Adopt { run: run.run_id.clone() },
                reason: format!("{} {reason}", run.run_id),
                saved_token_estimate: 0,
                older: Vec::new(),
                duplicate_of: None,
            };
            let run = RunRecord { status, attempt, ..run.clone() };
            describe_request(&RequestOutcome { decision, run, settled: SettledAnswer::default() })
        };
        for (status, attempt, reason, expected) in [
            (RunStatus::Pending, 0, "waits", "worktree is being reviewed already: that review waits"),
            (RunStatus::Reviewing, 1, "reviews", "worktree is being reviewed already: that review reviews"),
            (RunStatus::Pending, 1, "waits", "the review of worktree goes on: that review waits"),
            (RunStatus::Reviewing, 2, "goes on", "the review of worktree goes on: that review goes on"),
        ] {
            assert_eq!(describe(status, attempt, reason), expected);
        }
    }

    #[test]
    fn the_next_step_without_a_fixer_names_a_setting_and_no_flag() {
        assert_eq!(
            describe_runner_error(FixError::NothingExact(1).into()),
            "no exact suggestion comes with the finding; name a reviewer that can make a fix: `resolve.reviewer` in your \
             settings"
        );
    }
}
