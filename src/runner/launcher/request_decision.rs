//! Decides about a request: collects the runs that may answer it, and asks the policy.

use std::cell::LazyCell;
use std::collections::HashMap;

use crate::domain::text::sanitize_line;
use crate::domain::{CancelReason, Panel, RunId, RunRecord, RunStatus, Source};
use crate::policy::{self, Decision, KnownRun, Liveness, Resumable, ReviewAction, ReviewExtent};
use crate::runner::launcher::request::{PanelRole, RequestInput};
use crate::runner::{Launcher, ReviewDemand, ReviewRequest, RunnerError, known_runs};
use crate::store::{RunRow, StoreView};

/// Maximum number of equivalent runs whose files are read. The newest runs decide.
const MAX_INSPECTED_RUNS: usize = 8;
/// Period of `assistants.reviews_per_hour` in milliseconds.
const QUOTA_PERIOD_MS: i64 = 3_600_000;

/// The decision about a request, which nothing in the store shows yet.
pub(super) struct JudgedRequest {
    pub decision: Decision,
    /// Records of the newest equivalent runs.
    pub equivalent: Vec<RunRecord>,
}

/// The result of judging a request under the store's lock.
pub(super) enum RequestJudgement {
    Decided(Box<JudgedRequest>),
    /// A working run has no worker and must be settled first.
    DeadWorker,
    /// Nobody has checked yet whether these runs can be resumed.
    UncheckedRuns(Vec<RunRecord>),
}

/// Facts about earlier runs that were found out before the lock was taken.
pub(super) struct EarlierRunFacts {
    pub dead: DeadWorkerPolicy,
    /// Whether a run that ended early can be resumed.
    pub resumable: HashMap<RunId, Resumable>,
    /// Second opinions that the run of a panel lacks.
    pub opinions: HashMap<RunId, policy::MissingOpinions>,
}

impl EarlierRunFacts {
    /// Returns no facts yet.
    pub fn new(dead: DeadWorkerPolicy) -> Self {
        Self { dead, resumable: HashMap::new(), opinions: HashMap::new() }
    }
}

/// The runs that may answer a request.
#[derive(Default)]
pub(super) struct RequestCandidates<'a> {
    pub known: Vec<KnownRun<'a>>,
    /// Records of the newest equivalent runs, because a row does not say what can be taken over from a run.
    equivalent: Vec<RunRecord>,
    /// Equivalent runs that ended early and of which nobody knows whether they can be resumed.
    pub unchecked: Vec<RunRecord>,
}

/// The handling of a run with a dead worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadWorkerPolicy {
    SettleFirst,
    /// Settling was tried and failed: decide without it.
    LeaveIt,
    /// Nothing is settled: decide as if the run were lost, which goes on like the settled run.
    Forecast,
}

impl Launcher<'_> {
    /// Decides about a request. The caller holds the store's lock until the decision is recorded.
    pub(super) fn judge_request(
        &self,
        view: &StoreView,
        input: &RequestInput<'_>,
        earlier: &EarlierRunFacts,
    ) -> Result<RequestJudgement, RunnerError> {
        let RequestInput { policy_request: launch_request, .. } = input;
        let Some(candidates) = self.collect_candidates(view, input, earlier)? else {
            return Ok(RequestJudgement::DeadWorker);
        };
        if !candidates.unchecked.is_empty() {
            return Ok(RequestJudgement::UncheckedRuns(candidates.unchecked));
        }
        let limited;
        // A panel counts as one review.
        let launch_request =
            if input.request.source == Source::Assistant && !matches!(input.role, PanelRole::Member { .. }) {
                let quota = self.measure_quota(view, input.request)?;
                limited = policy::LaunchRequest { quota, ..(*launch_request).clone() };
                &limited
            } else {
                *launch_request
            };
        let decision = policy::decide(launch_request, &candidates.known);
        tracing::debug!(?decision, "decided");
        let is_answered = matches!(decision.action, ReviewAction::Reuse { .. } | ReviewAction::Skip);
        if input.request.demand == ReviewDemand::OnlyExisting && !is_answered {
            let scope = sanitize_line(&launch_request.scope.to_string()).into_owned();
            return Err(RunnerError::NotReviewed {
                scope,
                reviewer: sanitize_line(&Panel::describe_reviewer(&launch_request.reviewer)).into_owned(),
                others: self.list_other_reviewers(view, launch_request),
            });
        }
        Ok(RequestJudgement::Decided(Box::new(JudgedRequest { decision, equivalent: candidates.equivalent })))
    }

    /// Collects the runs that may answer a request. Returns `None` if a run with a dead worker must be settled first.
    pub(super) fn collect_candidates<'v>(
        &self,
        view: &'v StoreView,
        input: &RequestInput<'_>,
        earlier: &EarlierRunFacts,
    ) -> Result<Option<RequestCandidates<'v>>, RunnerError> {
        let RequestInput { policy_request: launch_request, .. } = input;
        let scope = launch_request.scope.to_string();
        let held = LazyCell::new(|| self.runs_held_by_panels(view, input.role.panel_name()));
        let is_same = |row: &RunRow<'_>| {
            row.scope_hash == launch_request.scope_hash && row.diff_fingerprint == launch_request.diff_fingerprint
        };
        let same = known_runs::run_rows(view).filter(is_same).map(|row| row.id);
        let forgotten = self.services.team().find_forgotten_runs(same)?;
        let mut candidates = RequestCandidates::default();
        for row in known_runs::run_rows(view) {
            let same = is_same(&row);
            // What a forgotten machine has reviewed answers nothing.
            if (!same && row.status.is_terminal()) || forgotten.contains(row.id) {
                continue;
            }
            let mut run = known_runs::known_run_from_row(&row);
            run.liveness = self.services.check_liveness(&row);
            // A process that settles the run in this moment holds its lock, so the run does not look dead.
            if run.liveness == Liveness::Dead && earlier.dead == DeadWorkerPolicy::SettleFirst {
                return Ok(None);
            }
            if run.is_older_sibling(launch_request, &scope) {
                run.underway = self.measure_progress(&row, run.liveness, input.snapshot)?;
                // The newer run may wait for it, but does not end it.
                if held.contains(row.id) && !run.may_finish(launch_request.rule) {
                    continue;
                }
            }
            if same
                && candidates.equivalent.len() < MAX_INSPECTED_RUNS
                && let Ok(id) = row.id.parse::<RunId>()
                && let Some(record) = self.services.store.run(&id)?
            {
                let early = match record.status {
                    RunStatus::Lost | RunStatus::Failed => true,
                    RunStatus::Completed => {
                        run.extent = self.services.compute_extent(&record)?;
                        run.extent == ReviewExtent::Partial
                    }
                    RunStatus::Cancelled if record.ending.cancel_reason == Some(CancelReason::BudgetExhausted) => {
                        run.extent = self.services.compute_extent(&record)?;
                        false
                    }
                    _ => run.liveness == Liveness::Dead && earlier.dead == DeadWorkerPolicy::Forecast,
                };
                match earlier.resumable.get(&id) {
                    Some(resumable) if early => run.resumable = *resumable,
                    None if early => candidates.unchecked.push(record.clone()),
                    _ => {}
                }
                candidates.equivalent.push(record);
            }
            candidates.known.push(run);
        }
        Ok(Some(candidates))
    }

    /// Finds out which of the runs can be resumed.
    pub(super) fn check_resumable(&self, records: Vec<RunRecord>, earlier: &mut EarlierRunFacts) {
        for record in records {
            let resumable = if self.can_resume(&record) { Resumable::Yes } else { Resumable::No };
            earlier.resumable.insert(record.run_id, resumable);
        }
    }

    /// Returns `true` if an unfinished run has everything that a new attempt needs.
    pub(in crate::runner) fn can_resume(&self, record: &RunRecord) -> bool {
        self.services
            .repo
            .compute_changeset(&record.subject.base_commit, &record.subject.snapshot_commit, &self.services.filter())
            .is_ok()
            && self.services.store.read_journal(&record.run_id).is_ok()
    }

    /// Counts the reviews that assistants have started, as far as a limit needs it.
    fn measure_quota(&self, view: &StoreView, request: &ReviewRequest) -> Result<policy::AssistantQuota, RunnerError> {
        let limits = self.services.settings.assistants;
        let mut quota = policy::AssistantQuota {
            in_session: request.started_in_session,
            per_session: limits.reviews_per_session,
            in_hour: 0,
            per_hour: limits.reviews_per_hour,
        };
        let Some(per_hour) = limits.reviews_per_hour else { return Ok(quota) };
        let since = self.services.ambient.now().as_millisecond() - QUOTA_PERIOD_MS;
        for row in known_runs::run_rows(view) {
            if quota.in_hour >= per_hour || row.created_ms < since || row.status == RunStatus::Skipped {
                continue;
            }
            // A row does not say who requested the run.
            let record = row.id.parse::<RunId>().ok().map(|id| self.services.store.run(&id)).transpose()?.flatten();
            let is_asked = |record: RunRecord| record.source == Source::Assistant && record.links.member_of.is_none();
            quota.in_hour += u32::from(record.is_some_and(is_asked));
        }
        Ok(quota)
    }

    /// Returns the options that name who has reviewed exactly this code, apart from the reviewer that is asked for, sorted. What a
    /// forgotten machine has reviewed answers nothing.
    fn list_other_reviewers(&self, view: &StoreView, request: &policy::LaunchRequest) -> Vec<String> {
        let is_other = |row: &RunRow<'_>| {
            row.status == RunStatus::Completed
                && row.member_of.is_empty()
                && row.scope_hash == request.scope_hash
                && row.diff_fingerprint == request.diff_fingerprint
                && row.reviewer != request.reviewer
        };
        let to_option = |row: RunRow<'_>| match Panel::name_of(row.reviewer) {
            // The panel of a request that names several reviewers has no table.
            Some(panel) if panel.contains('+') => format!("--reviewer {}", panel.replace('+', ",")),
            Some(panel) => format!("--panel {panel}"),
            None => format!("--reviewer {}", row.reviewer),
        };
        let others = || known_runs::run_rows(view).filter(is_other);
        let forgotten = self.services.team().find_forgotten_runs(others().map(|row| row.id)).unwrap_or_default();
        let options = others().filter(|row| !forgotten.contains(row.id)).map(to_option);
        let mut options: Vec<String> = options.map(|option| sanitize_line(&option).into_owned()).collect();
        options.sort();
        options.dedup();
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MachineName, RunOrigin, TeamPerson};
    use crate::runner::fixture::RunnerFixture;
    use crate::store::TeamProgress;

    #[test]
    fn no_run_of_a_forgotten_machine_answers_however_many_newer_ones_there_are() {
        let fixture = RunnerFixture::new();
        fixture.commit_files(&[("a.py", &b"def f(a):\n    return a\n"[..])]);
        let (services, eve): (_, MachineName) = (&fixture.services, "eve-1".parse().expect("a name"));
        let launcher = services.launcher();
        let request = RunnerFixture::request_head();
        let (_, draft) = launcher.draft_unrecorded_run(&request).expect("a draft");
        let create = |status: RunStatus, team: Option<RunOrigin>| {
            let run_id = services.ambient.new_run_id();
            let mut record = RunRecord { run_id, status, team, attempt: 1, ..draft.clone() };
            let coverage = &mut record.outcome.coverage;
            (coverage.files_covered, coverage.hunks_covered) = (coverage.files_total, coverage.hunks_total);
            services.store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
        };
        create(RunStatus::Completed, Some(RunOrigin { machine: eve.clone(), person: TeamPerson::default() }));
        for _ in 0..MAX_INSPECTED_RUNS {
            create(RunStatus::Cancelled, None);
        }
        for (forgotten, expected) in [(vec![], "reuse"), (vec![eve], "launch")] {
            let progress = TeamProgress { forgotten, ..TeamProgress::default() };
            services.store.write_team_progress(&progress).expect("stored");
            let preview = launcher.preview_request(&request).expect("a forecast");
            assert_eq!(preview.decision.action.word(), expected, "{}", preview.decision.reason);
        }
    }
}
