//! Previews a review request: the size of the change, the decision of the policy and the cost, without recording anything.
//!
//! The preview is a forecast. The request decides again under the store's lock, and the worker decides which hunks are
//! carried over.

use std::collections::HashMap;

use crate::config::ModelCatalog;
use crate::domain::{Panel, Scope, Usage};
use crate::git::Snapshot;
use crate::policy::{self, Decision};
use crate::runner::launcher::request::{PanelRole, RequestInput, count_changed_lines};
use crate::runner::launcher::request_decision::{DeadWorkerPolicy, EarlierRunFacts};
use crate::runner::reviewer_access::reviewer_identity::estimate_saved_tokens;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, Launcher, ReviewDemand, ReviewRequest, ReviewerTerms, RunnerError};

/// Largest number of hunks whose carry-over is forecast; the keys of more take longer than a person waits.
const MAX_FORECAST_HUNKS: usize = 5_000;

/// Forecast for a review request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPreview {
    /// Scope after the default was resolved.
    pub scope: Scope,
    /// Number of files to review.
    pub files: usize,
    /// Number of hunks in these files.
    pub hunks: usize,
    /// Number of lines that the change removes or adds.
    pub lines: u64,
    /// Number of changed files that no reviewer reads.
    pub left_out: usize,
    /// Decision of the policy, with its reason.
    pub decision: Decision,
    /// Number of hunks that an earlier run has reviewed unchanged: at most as many are carried over. `None` if the change
    /// is too large to find out.
    pub carried_hunks: Option<usize>,
    /// Estimated tokens of the first request; 0 for the built-in reviewer. Each further request sends the conversation
    /// again.
    pub tokens: u64,
    /// Estimated price of `tokens` in US dollars; `None` if the price is not known.
    pub input_cost: Option<f64>,
}

/// Reviewer that a form can offer.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedReviewer {
    /// Name, and the most that one review may cost.
    pub terms: ReviewerTerms,
    /// Reason why it cannot review now, such as a missing key, with the next step.
    pub obstacle: Option<String>,
}

impl Launcher<'_> {
    /// Forecasts the answer to a request: takes a snapshot and decides, but records nothing and asks no model.
    ///
    /// # Errors
    ///
    /// If there is no such reviewer or revision, or if git or the store fails.
    pub fn preview_request(&self, request: &ReviewRequest) -> Result<RequestPreview, RunnerError> {
        let (snapshot, identity) = self.take_snapshot(request)?;
        let launch_request = policy::LaunchRequest {
            has_secret_files: self.has_secret_files(&snapshot),
            ..self.build_policy_request(request, &identity, &snapshot)
        };
        let input = RequestInput {
            request,
            policy_request: &launch_request,
            snapshot: &snapshot,
            triage_bytes: 0,
            follow_up_of: None,
            role: PanelRole::Alone,
        };
        let decision = self.forecast_decision(&input)?;
        let carried_hunks =
            if request.demand == ReviewDemand::Anew { Some(0) } else { self.forecast_carried_hunks(&input)? };
        let hunks = snapshot.change.files.iter().map(|file| file.hunks.len()).sum::<usize>();
        let lines = count_changed_lines(&snapshot);
        let carried_lines = match carried_hunks {
            Some(carried) if hunks > 0 => lines * carried as u64 / hunks as u64,
            _ => 0,
        };
        let saved = estimate_saved_tokens(&identity.reviewer, carried_lines, carried_hunks == Some(hunks));
        let tokens = launch_request.prompt_estimate.saturating_sub(saved);
        Ok(RequestPreview {
            scope: snapshot.scope.clone(),
            files: snapshot.change.files.len(),
            hunks,
            lines,
            left_out: snapshot.change.left_out.len(),
            decision,
            carried_hunks,
            tokens,
            input_cost: self.estimate_input_cost(&identity.reviewer, tokens)?,
        })
    }

    /// Returns the reviewers of the settings, the built-in one and the panels; the default panel or reviewer comes first.
    ///
    /// # Errors
    ///
    /// If `models.toml` cannot be read.
    pub fn list_offered_reviewers(&self) -> Result<Vec<OfferedReviewer>, RunnerError> {
        let settings = &self.services.settings;
        let named = settings.reviewers.keys().filter(|name| **name != settings.default_reviewer).cloned();
        let mut names = vec![settings.default_reviewer.clone()];
        names.extend(named.filter(|name| name != BUILTIN_REVIEWER));
        if !names.iter().any(|name| name == BUILTIN_REVIEWER) {
            names.push(BUILTIN_REVIEWER.to_owned());
        }
        names.extend(settings.panels.keys().map(|panel| format!("{}{panel}", Panel::PREFIX)));
        let default_panel = format!("{}{}", Panel::PREFIX, settings.default_panel);
        if let Some(at) = names.iter().position(|name| *name == default_panel) {
            names[..=at].rotate_right(1);
        }
        let reviewers = self.services.reviewers();
        let offer = |name: &str| {
            let limit = reviewers.cost_limit(name)?;
            let obstacle = match reviewers.check_key(name) {
                Err(RunnerError::MissingKey(missing)) => Some(missing.hint()),
                Err(error) => Some(error.to_string()),
                Ok(()) => None,
            };
            Ok(OfferedReviewer { terms: ReviewerTerms { name: name.to_owned(), limit }, obstacle })
        };
        names.iter().map(|name| offer(name)).collect()
    }

    /// Decides as the request will, on the runs that are known now.
    fn forecast_decision(&self, input: &RequestInput<'_>) -> Result<Decision, RunnerError> {
        let view = self.services.store.runs_view()?;
        let mut earlier = EarlierRunFacts { dead: DeadWorkerPolicy::LeaveIt, resumable: HashMap::new() };
        loop {
            let candidates = self.collect_candidates(&view, input, &earlier)?.unwrap_or_default();
            if candidates.unchecked.is_empty() {
                return Ok(policy::decide(input.policy_request, &candidates.known));
            }
            self.check_resumable(candidates.unchecked, &mut earlier);
        }
    }

    fn forecast_carried_hunks(&self, input: &RequestInput<'_>) -> Result<Option<usize>, RunnerError> {
        let Snapshot { change, .. } = input.snapshot;
        let hunks = change.files.iter().map(|file| file.hunks.len()).sum::<usize>();
        if hunks > MAX_FORECAST_HUNKS {
            return Ok(None);
        }
        self.services.worker().count_reviewed_hunks(&self.draft_record(input), change).map(Some)
    }

    /// Returns the price of input tokens in US dollars; `None` if it is not known.
    fn estimate_input_cost(&self, reviewer: &str, tokens: u64) -> Result<Option<f64>, RunnerError> {
        let reviewers = self.services.reviewers();
        if reviewers.cost_limit(reviewer)? == CostLimit::Nothing {
            return Ok(Some(0.0));
        }
        if let Some(panel) = reviewers.find_panel(reviewer)? {
            // Each member is sent about the same.
            let each = tokens / panel.reviewers.iter().filter(|name| *name != BUILTIN_REVIEWER).count().max(1) as u64;
            let costs = panel.reviewers.iter().map(|name| self.estimate_input_cost(name, each));
            return costs.sum();
        }
        let facts = ModelCatalog::load(&self.services.paths)?.facts_for_reviewer(reviewers.model_settings(reviewer)?);
        Ok(facts.price.map(|price| price.cost(&Usage { input: tokens, ..Usage::default() })))
    }
}
