//! Requests a panel: decides about each member as about a request of its own, and records the members' runs and the run
//! of the panel in one step under the store's lock.
//!
//! - All members see one snapshot.
//! - A member is an ordinary run, or an equivalent run that is adopted or reused. So what a member has reviewed is not
//!   paid for again, whoever asked for it.
//! - The members are recorded first and the panel last, so that no reader finds a panel without its members.
//! - A review of newer code by a single reviewer does not end a run that a panel waits for.
//! - A panel that lacks second opinions which it can get now is asked again for those alone ([`policy::renew_opinions`]).
//! - A request that completes an earlier run of the panel goes on with its `max_cost` ([`super::continued_panel`]).
//! - The run of the panel stays pending until all members have ended, and then merges their findings
//!   ([`crate::runner::panel`]).

use std::collections::HashSet;

use crate::config::{Dollars, PanelSettings};
use crate::domain::{Kind, Panel, PanelMember, RequestDecision, RunId, RunReviewer};
use crate::git::Snapshot;
use crate::policy;
use crate::runner::launcher::missing_opinions::find_reused_list;
use crate::runner::launcher::request::{LockedAttempt, PanelRole, RequestInput};
use crate::runner::launcher::request_decision::{EarlierRunFacts, JudgedRequest, RequestJudgement};
use crate::runner::reviewer_access::unpriced::UnpricedReviewers;
use crate::runner::worker::rewritten_code::mark_moved_code;
use crate::runner::{BUILTIN_REVIEWER, Launcher, RequestOutcome, RunnerError, known_runs};
use crate::store::{HeartbeatState, LockedStore, RunRow, StoreView};

/// Member of a requested panel: its reviewer, and the request and the code as it sees them.
pub(super) struct RequestedMember {
    pub reviewer: String,
    focus: Vec<Kind>,
    request: policy::LaunchRequest,
    snapshot: Snapshot,
}

impl Launcher<'_> {
    /// Requests the review of a panel. `input` is the request for the run of the panel. Starts the members for which a
    /// slot is free, and waits for none.
    ///
    /// # Errors
    ///
    /// As [`Launcher::request_review`]; if a key is missing, nothing is recorded.
    pub(super) fn request_panel(
        &self,
        input: &RequestInput<'_>,
        panel: &PanelSettings,
    ) -> Result<RequestOutcome, RunnerError> {
        let members: Vec<RequestedMember> =
            panel.reviewers.iter().map(|name| self.describe_member(input, panel, name)).collect::<Result<_, _>>()?;
        // Without a limit nothing has to be counted.
        let unpriced = match panel.max_cost {
            Some(_) => self.services.reviewers().find_unpriced_of_panel(panel)?,
            None => UnpricedReviewers::default(),
        };
        let (mut requested, view) = self.try_until_requested(|locked, earlier| {
            self.decide_panel(locked, input, (panel, &members, &unpriced), earlier)
        })?;
        requested.settled = self.services.findings().settle_answered_request(&requested, input.snapshot);
        self.settle_needless_of_view(&view);
        // The view is older than the members.
        if let Err(error) = self.start_pending() {
            tracing::warn!(run = %requested.run.run_id, %error, "no worker was started");
        }
        Ok(requested)
    }

    /// Returns the request of a member: that of the panel, by another reviewer.
    pub(super) fn describe_member(
        &self,
        input: &RequestInput<'_>,
        panel: &PanelSettings,
        reviewer: &str,
    ) -> Result<RequestedMember, RunnerError> {
        let mut snapshot = input.snapshot.clone();
        let (base, commit) = (&snapshot.base_commit, &snapshot.snapshot_commit);
        let focus = panel.focus.get(reviewer).cloned().unwrap_or_default();
        let reviewers = self.services.reviewers().with_prompt_set(input.request.prompt_set.as_deref());
        let mut identity = reviewers.resolve_identity_for(Some(reviewer), base, commit)?;
        identity.policy_version = RunReviewer::focused_version(&identity.policy_version, &focus);
        if identity.reviewer == BUILTIN_REVIEWER {
            let read = |path: &str| self.services.repo.file_at(&input.snapshot.snapshot_commit, path).ok().flatten();
            mark_moved_code(&mut snapshot.change, read);
        }
        let request = policy::LaunchRequest {
            has_secret_files: input.policy_request.has_secret_files,
            ..self.build_policy_request(input.request, &identity, &snapshot)
        };
        Ok(RequestedMember { reviewer: identity.reviewer, focus, request, snapshot })
    }

    fn decide_panel(
        &self,
        locked: &LockedStore<'_>,
        input: &RequestInput<'_>,
        (panel, members, unpriced): (&PanelSettings, &[RequestedMember], &UnpricedReviewers),
        earlier: &EarlierRunFacts,
    ) -> Result<LockedAttempt, RunnerError> {
        let view = locked.runs_view()?;
        let mut judged = match self.judge_request(&view, input, earlier)? {
            RequestJudgement::DeadWorker => return Ok(LockedAttempt::DeadWorker),
            RequestJudgement::UncheckedRuns(records) => return Ok(LockedAttempt::UncheckedRuns(records)),
            RequestJudgement::Decided(judged) => *judged,
        };
        if let Some(run) = find_reused_list(input.request, &judged.decision) {
            let Some(missing) = earlier.opinions.get(&run) else {
                return Ok(LockedAttempt::UncheckedOpinions { run, max_cost: panel.max_cost.map(Dollars::as_f64) });
            };
            judged.decision = policy::renew_opinions(judged.decision, missing);
        }
        if !judged.decision.action.starts_run() {
            let requested = self.record_decision(locked, input, judged)?;
            return Ok(LockedAttempt::Requested(Box::new(requested), view));
        }
        let id = self.services.ambient.new_run_id();
        let mut decided = Vec::new();
        for member in members {
            let input = member_input(input, member, &id);
            match self.judge_request(&view, &input, earlier)? {
                RequestJudgement::DeadWorker => return Ok(LockedAttempt::DeadWorker),
                RequestJudgement::UncheckedRuns(records) => return Ok(LockedAttempt::UncheckedRuns(records)),
                RequestJudgement::Decided(judged) => decided.push((input, *judged)),
            }
        }
        self.check_panel_keys(panel, &decided)?;
        let members = decided.into_iter().zip(members).map(|((input, judged), member)| {
            let RequestOutcome { decision, run, .. } = self.record_decision(locked, &input, judged)?;
            Ok(PanelMember {
                reviewer: member.reviewer.clone(),
                run_id: run.run_id,
                decision: decision.action.decision(),
                saved_token_estimate: decision.saved_token_estimate,
            })
        });
        let members = members.collect::<Result<Vec<_>, RunnerError>>()?;
        judged.decision.saved_token_estimate =
            members.iter().fold(0, |sum: u64, member| sum.saturating_add(member.saved_token_estimate));
        judged.decision.reason = describe_members(&judged.decision.reason, &members);
        let continued = self.find_continued_panel(&view, input.policy_request)?;
        let (opinions, opinion_reviewers) = (panel.opinions(), panel.opinion_reviewers());
        let starts =
            |member: &PanelMember| matches!(member.decision, RequestDecision::Launch | RequestDecision::Resume);
        let is_asked = |name: &str| {
            members.iter().any(|member| member.reviewer == name && starts(member)) || opinion_reviewers.contains(&name)
        };
        let uncounted = unpriced.names(is_asked);
        let panel = Panel {
            name: panel.name.clone(),
            members,
            max_cost: panel.max_cost.map(|cost| cost.as_f64()),
            spent_before: continued.as_ref().map_or(0.0, |continued| continued.spent),
            continues: continued.map(|continued| continued.run),
            uncounted,
            opinions,
        };
        if let Some(spent) = panel.describe_spent_before() {
            judged.decision.reason.push_str(&format!("; {spent}"));
        }
        let input = RequestInput { role: PanelRole::Panel(&id, &panel), ..*input };
        let requested = self.record_decision(locked, &input, judged)?;
        Ok(LockedAttempt::Requested(Box::new(requested), view))
    }

    /// Checks the keys of all members that need a new run, and of those who may give second opinions, before anything is
    /// recorded.
    fn check_panel_keys(
        &self,
        panel: &PanelSettings,
        decided: &[(RequestInput<'_>, JudgedRequest)],
    ) -> Result<(), RunnerError> {
        let reviewers = self.services.reviewers();
        decided
            .iter()
            .filter(|(_, judged)| judged.decision.action.starts_run())
            .try_for_each(|(input, _)| reviewers.check_key(&input.policy_request.reviewer))?;
        // No fallback gives a second opinion.
        panel.opinion_reviewers().into_iter().try_for_each(|name| reviewers.check_own_key(name))
    }

    /// Returns true while a member of the panel may still find something.
    pub(in crate::runner) fn has_active_member(&self, panel: &Panel) -> bool {
        let is_active = |run: &RunId| {
            let record = self.services.store.run(run).ok().flatten();
            // Another run may review the same in the place of one that has ended.
            record.is_some_and(|record| {
                !record.status.is_terminal()
                    || self.services.answering_run(record).is_ok_and(|answer| !answer.status.is_terminal())
            })
        };
        panel.members.iter().any(|member| is_active(&member.run_id))
    }

    /// Returns the runs that panels under way wait for, apart from panels with the reviewer's name `except`. Only a newer
    /// run of the panel itself ends them: without them, its list would be incomplete.
    pub(super) fn runs_held_by_panels(&self, view: &StoreView, except: Option<&str>) -> HashSet<String> {
        let is_live = |row: &RunRow<'_>| {
            !row.status.is_terminal()
                && row.cancel_reason.is_empty()
                && Panel::name_of(row.reviewer).is_some()
                && except != Some(row.reviewer)
        };
        let panels = known_runs::run_rows(view).filter(is_live).filter_map(|row| row.id.parse::<RunId>().ok());
        let panels = panels.filter_map(|run| self.services.store.run(&run).ok().flatten()?.links.panel);
        panels.flat_map(|panel| panel.members).map(|member| member.run_id.as_str().to_owned()).collect()
    }

    /// Returns the key under which the slot of a run is counted: all members of a panel share one.
    pub(in crate::runner) fn slot_of(&self, run: &RunId) -> RunId {
        let record = self.services.store.run(run).ok().flatten();
        record.and_then(|record| record.links.member_of).unwrap_or_else(|| run.clone())
    }

    /// Returns true for the run of a panel.
    pub(in crate::runner) fn is_panel(&self, run: &RunId) -> bool {
        self.services.store.run(run).ok().flatten().is_some_and(|record| record.links.panel.is_some())
    }

    /// Returns the slots that these working runs take. A run that waits for another machine takes none.
    pub(in crate::runner) fn collect_slots(&self, working: impl IntoIterator<Item = RunId>) -> HashSet<RunId> {
        working.into_iter().filter(|run| !self.waits_elsewhere(run)).map(|run| self.slot_of(&run)).collect()
    }

    /// Returns true for a run that waits for another machine of the team.
    pub(super) fn waits_elsewhere(&self, run: &RunId) -> bool {
        let state = self.services.store.heartbeat(run).map(|pulse| pulse.state);
        matches!(state, Some(HeartbeatState::Elsewhere { .. }))
    }

    /// Returns the runs of a panel's own members that have not ended. Runs that others asked for are left alone.
    pub(in crate::runner) fn active_own_members(&self, panel_run: &RunId, panel: &Panel) -> Vec<RunId> {
        let is_active = |run: &&RunId| {
            let record = self.services.store.run(run).ok().flatten();
            record.is_some_and(|record| {
                record.links.member_of.as_ref() == Some(panel_run)
                    && !record.status.is_terminal()
                    && record.reuse.adopted_count == 0
            })
        };
        panel.members.iter().map(|member| &member.run_id).filter(is_active).cloned().collect()
    }
}

/// Returns the request of a member for the panel's run with this id.
pub(super) fn member_input<'a>(
    panel: &RequestInput<'a>,
    member: &'a RequestedMember,
    id: &'a RunId,
) -> RequestInput<'a> {
    RequestInput {
        policy_request: &member.request,
        snapshot: &member.snapshot,
        role: PanelRole::Member { run: id, panel: &panel.policy_request.reviewer, focus: &member.focus },
        ..*panel
    }
}

/// Adds to the reason of a decision what becomes of the members that are not launched.
fn describe_members(reason: &str, members: &[PanelMember]) -> String {
    let word = |decision| match decision {
        RequestDecision::Adopt => Some("is on its way already"),
        RequestDecision::Reuse => Some("has been done"),
        RequestDecision::Resume => Some("goes on"),
        RequestDecision::Launch | RequestDecision::Skip => None,
    };
    let said = members.iter().filter_map(|member| {
        word(member.decision).map(|word| format!("{} {word} as {}", member.reviewer, member.run_id))
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { reason.to_owned() } else { format!("{reason}; {}", said.join("; ")) }
}
