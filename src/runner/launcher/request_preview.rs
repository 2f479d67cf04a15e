//! Previews a review request: the size of the change, the decision of the policy and the cost, without recording anything.
//!
//! The preview is a forecast. The request decides again under the store's lock, and the worker decides which hunks are
//! carried over.

use crate::config::{Dollars, ModelCatalog, PanelSettings};
use crate::domain::text::{format_limit_dollars, round_up_dollars};
use crate::domain::{Panel, RunId, Scope, UncountedCost, Usage};
use crate::git::Snapshot;
use crate::policy::{self, Decision, ReviewAction};
use crate::runner::launcher::continued_panel::ContinuedPanel;
use crate::runner::launcher::missing_opinions::find_reused_list;
use crate::runner::launcher::panel_request::member_input;
use crate::runner::launcher::request::{RequestInput, count_changed_lines};
use crate::runner::launcher::request_decision::{DeadWorkerPolicy, EarlierRunFacts};
use crate::runner::reviewer_access::reviewer_identity::estimate_saved_tokens;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, Launcher, ReviewDemand, ReviewRequest, ReviewerTerms, RunnerError};

/// Largest number of hunks whose carry-over is forecast; the keys of more take longer than a person waits.
const MAX_FORECAST_HUNKS: usize = 5_000;
/// Largest number of hunks whose carry-over is forecast on the way to a review: it must not begin noticeably later.
const MAX_ANNOUNCED_HUNKS: usize = 500;

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
    /// Number of hunks that an earlier run has reviewed unchanged: at most as many are carried over. For a panel, the
    /// smallest number of a member that starts. `None` if the change is too large to find out, and 0 if nothing starts.
    pub carried_hunks: Option<usize>,
    /// Estimated tokens of the first request; 0 for the built-in reviewer. Each further request sends the conversation
    /// again. For a panel, the sum of the members that start.
    pub tokens: u64,
    /// Estimated price of `tokens` in US dollars; `None` if the price is not known.
    pub input_cost: Option<f64>,
    /// Members of a panel that starts, in the order of the settings; empty for a single reviewer, and for a panel whose
    /// list is there already.
    pub members: Vec<MemberForecast>,
    /// Reviewers that may give second opinions on the list of a panel that starts.
    pub opinions: Vec<ReviewerTerms>,
    /// Most that the review may cost, for a panel with the second opinions and within its limit; `None` if nothing starts.
    pub limit: Option<CostLimit>,
    /// Run that a panel completes: what it has spent counts towards the limit of the panel.
    pub continues: Option<RunId>,
    /// Cost of `continues`, and of the runs that it completed, in US dollars.
    pub spent_before: f64,
    /// Reviewers that start, and whose cost no limit can count.
    pub uncounted: Option<UncountedCost>,
    /// Limit that leaves no room for a request that costs money, in one sentence. `None` if each starts within its limits, and if a
    /// price is not known.
    pub no_room: Option<String>,
    /// Reviewer that would start and has no key, so that the request would be refused, in one sentence; `None` if all have one.
    pub missing_key: Option<String>,
}

/// Forecast for a member of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberForecast {
    /// Name of the reviewer.
    pub reviewer: String,
    /// Decision of the policy about its request.
    pub action: ReviewAction,
    /// Estimated tokens of its first request; 0 if it sends nothing.
    pub tokens: u64,
    /// Estimated price of `tokens` in US dollars; `None` if the price is not known.
    pub input_cost: Option<f64>,
    /// Most that its review may cost; [`CostLimit::Nothing`] if it does not start.
    pub limit: CostLimit,
}

impl MemberForecast {
    /// Returns true if a run of the member begins or goes on.
    pub fn starts(&self) -> bool {
        self.action.starts_run()
    }
}

/// Reviewer that a form can offer.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedReviewer {
    /// Name, and the most that one review may cost.
    pub terms: ReviewerTerms,
    /// Reviewers of a panel; empty for a single reviewer.
    pub members: Vec<String>,
    /// Reason why it cannot review now, such as a missing key, with the next step.
    pub obstacle: Option<String>,
}

/// First request of a reviewer, or the first requests of several, as far as they can be forecast.
struct SendingForecast {
    carried_hunks: Option<usize>,
    tokens: u64,
    input_cost: Option<f64>,
}

impl SendingForecast {
    /// Adds up what several reviewers send.
    fn sum(all: &[Self]) -> Self {
        Self {
            // `None` is less than every number: not known of one, not known of all.
            carried_hunks: all.iter().map(|one| one.carried_hunks).min().unwrap_or(Some(0)),
            tokens: all.iter().map(|one| one.tokens).fold(0, u64::saturating_add),
            // The sum of no numbers would be -0.0.
            input_cost: all.iter().try_fold(0.0, |sum, one| Some(sum + one.input_cost?)),
        }
    }
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
        self.forecast_request(&RequestInput::unrecorded(request, &launch_request, &snapshot), MAX_FORECAST_HUNKS)
    }

    /// Forecasts the answer to a request that is about to be decided, if it may cost money. It reads no more than the
    /// decision does, and the hunks that earlier runs have reviewed if there are few.
    pub(super) fn forecast_paid_request(
        &self,
        input: &RequestInput<'_>,
    ) -> Result<Option<RequestPreview>, RunnerError> {
        match self.services.reviewers().cost_limit(&input.policy_request.reviewer)? {
            CostLimit::Nothing => Ok(None),
            CostLimit::AtMost { .. } | CostLimit::Unknown { .. } => {
                let preview = self.forecast_request(input, MAX_ANNOUNCED_HUNKS)?;
                // A request that is refused costs nothing.
                Ok(preview.missing_key.is_none().then_some(preview))
            }
        }
    }

    /// Returns why a request that starts a review would be refused: a reviewer that would be asked has no key.
    fn find_missing_key(&self, preview: &RequestPreview, reviewer: &str) -> Option<RunnerError> {
        let reviewers = self.services.reviewers();
        if preview.members.is_empty() {
            return reviewers.check_key(reviewer).err();
        }
        let members = preview.members.iter().filter(|member| member.starts());
        let mut members = members.filter_map(|member| reviewers.check_key(&member.reviewer).err());
        // No fallback gives a second opinion.
        let mut opinions = preview.opinions.iter().filter_map(|opinion| reviewers.check_own_key(&opinion.name).err());
        members.next().or_else(|| opinions.next())
    }

    /// Forecasts the answer to a request. The carry-over of more than `max_hunks` hunks is not forecast.
    fn forecast_request(&self, input: &RequestInput<'_>, max_hunks: usize) -> Result<RequestPreview, RunnerError> {
        let snapshot = input.snapshot;
        let mut preview = RequestPreview {
            scope: snapshot.scope.clone(),
            files: snapshot.change.files.len(),
            hunks: count_hunks(snapshot),
            lines: count_changed_lines(snapshot),
            left_out: snapshot.change.left_out.len(),
            decision: self.forecast_decision(input)?,
            carried_hunks: Some(0),
            tokens: 0,
            input_cost: Some(0.0),
            members: Vec::new(),
            opinions: Vec::new(),
            limit: None,
            continues: None,
            spent_before: 0.0,
            uncounted: None,
            no_room: None,
            missing_key: None,
        };
        let (reviewers, reviewer) = (self.services.reviewers(), input.policy_request.reviewer.as_str());
        let panel = reviewers.find_panel(reviewer)?;
        if let Some(panel) = &panel
            && let Some(run) = find_reused_list(input.request, &preview.decision)
        {
            let missing = self.find_missing_opinions(&run, panel.max_cost.map(Dollars::as_f64))?;
            preview.decision = policy::renew_opinions(preview.decision, &missing);
        }
        if !preview.decision.action.starts_run() {
            return Ok(preview);
        }
        let sent = match &panel {
            Some(panel) => self.forecast_panel(input, panel, max_hunks, &mut preview)?,
            None => {
                preview.limit = Some(reviewers.cost_limit(reviewer)?);
                let unpriced = reviewers.find_unpriced([reviewer])?.names(|_| true);
                preview.uncounted = UncountedCost::new(reviewers.cost_limit_names(None), unpriced);
                self.forecast_sending(input, max_hunks)?
            }
        };
        SendingForecast {
            carried_hunks: preview.carried_hunks,
            tokens: preview.tokens,
            input_cost: preview.input_cost,
        } = sent;
        preview.no_room = self.find_tight_limit(panel.as_ref(), &preview);
        preview.missing_key = self.find_missing_key(&preview, reviewer).map(|error| error.to_string());
        Ok(preview)
    }

    /// Returns the limit that the first request of each reviewer that costs money would exceed, in one sentence.
    fn find_tight_limit(&self, panel: Option<&PanelSettings>, preview: &RequestPreview) -> Option<String> {
        let starting = preview.members.iter().filter(|member| member.starts()).map(|member| member.input_cost);
        let costs: Vec<Option<f64>> = if panel.is_some() { starting.collect() } else { vec![preview.input_cost] };
        let costs: Vec<f64> = costs.into_iter().collect::<Option<_>>()?;
        let first = costs.into_iter().filter(|cost| *cost > 0.0).min_by(f64::total_cmp)?;
        let of_panel = panel.and_then(|panel| {
            let left = panel.max_cost?.as_f64() - preview.spent_before;
            Some((format!("max_cost of panel {}", panel.name), left))
        });
        let of_run = self.services.settings.budget.run_cost.map(|cost| ("budget.run_cost".to_owned(), cost.as_f64()));
        let (limit, left) = of_panel.into_iter().chain(of_run).find(|(_, left)| *left < first)?;
        let (left, first) = (format_limit_dollars(left.max(0.0)), format_limit_dollars(round_up_dollars(first)));
        Some(format!(
            "no request that costs money will be sent: {limit} leaves {left}, and the first one takes about {first}"
        ))
    }

    /// Forecasts what a panel that starts costs: its members, second opinions and limits. Returns what its members send.
    fn forecast_panel(
        &self,
        input: &RequestInput<'_>,
        panel: &PanelSettings,
        max_hunks: usize,
        preview: &mut RequestPreview,
    ) -> Result<SendingForecast, RunnerError> {
        let reviewers = self.services.reviewers();
        let (members, sent) = self.forecast_members(input, panel, max_hunks)?;
        let view = self.services.store.runs_view()?;
        if let Some(ContinuedPanel { run, spent }) = self.find_continued_panel(&view, input.policy_request)? {
            (preview.continues, preview.spent_before) = (Some(run), spent);
        }
        let recorded = Panel {
            max_cost: panel.max_cost.map(Dollars::as_f64),
            continues: preview.continues.clone(),
            spent_before: preview.spent_before,
            ..Panel::default()
        };
        if let Some(spent) = recorded.describe_spent_before() {
            preview.decision.reason.push_str(&format!("; {spent}"));
        }
        let starts = |name: &str| members.iter().any(|member| member.reviewer == name && member.starts());
        preview.limit = Some(reviewers.cost_limit_of_members(panel, starts, preview.spent_before)?);
        let opinions = panel.opinion_reviewers();
        let is_asked = |name: &str| starts(name) || opinions.contains(&name);
        let unpriced = reviewers.find_unpriced_of_panel(panel)?.names(is_asked);
        preview.uncounted = UncountedCost::new(reviewers.cost_limit_names(Some(panel)), unpriced);
        let terms = opinions
            .into_iter()
            .map(|name| Ok(ReviewerTerms { limit: reviewers.cost_limit(name)?, name: name.to_owned() }));
        preview.opinions = terms.collect::<Result<_, RunnerError>>()?;
        preview.members = members;
        Ok(sent)
    }

    /// Forecasts the answer to the request of each member of a panel, and adds up what those that start send. The panel itself
    /// starts.
    fn forecast_members(
        &self,
        input: &RequestInput<'_>,
        panel: &PanelSettings,
        max_hunks: usize,
    ) -> Result<(Vec<MemberForecast>, SendingForecast), RunnerError> {
        // The panel gets no run: the id stands for it.
        let id = self.services.ambient.new_run_id();
        let (mut members, mut sent) = (Vec::new(), Vec::new());
        for name in &panel.reviewers {
            let member = self.describe_member(input, panel, name)?;
            let input = member_input(input, &member, &id);
            let action = self.forecast_decision(&input)?.action;
            let mut forecast = MemberForecast {
                reviewer: member.reviewer.clone(),
                action,
                tokens: 0,
                input_cost: Some(0.0),
                limit: CostLimit::Nothing,
            };
            if forecast.starts() {
                let sending = self.forecast_sending(&input, max_hunks)?;
                (forecast.tokens, forecast.input_cost) = (sending.tokens, sending.input_cost);
                forecast.limit = self.services.reviewers().cost_limit(&member.reviewer)?;
                sent.push(sending);
            }
            members.push(forecast);
        }
        Ok((members, SendingForecast::sum(&sent)))
    }

    /// Forecasts the first request of a single reviewer.
    fn forecast_sending(&self, input: &RequestInput<'_>, max_hunks: usize) -> Result<SendingForecast, RunnerError> {
        let RequestInput { request, policy_request, snapshot, .. } = *input;
        let carried_hunks =
            if request.demand == ReviewDemand::Anew { Some(0) } else { self.forecast_carried_hunks(input, max_hunks)? };
        let (hunks, lines) = (count_hunks(snapshot), count_changed_lines(snapshot));
        let carried_lines = match carried_hunks {
            Some(carried) if hunks > 0 => lines * carried as u64 / hunks as u64,
            _ => 0,
        };
        let saved = estimate_saved_tokens(&policy_request.reviewer, carried_lines, carried_hunks == Some(hunks));
        let tokens = policy_request.prompt_estimate.saturating_sub(saved);
        let input_cost = self.estimate_input_cost(&policy_request.reviewer, tokens)?;
        Ok(SendingForecast { carried_hunks, tokens, input_cost })
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
        let reviewers = self.services.reviewers();
        if let Some(default_panel) = reviewers.default_panel() {
            names.retain(|name| *name != default_panel);
            names.insert(0, default_panel);
        }
        let offer = |name: &str| {
            let limit = match reviewers.cost_limit(name) {
                // The default one may be none of the settings: nothing starts before another one is chosen.
                Err(error @ (RunnerError::UnknownReviewer { .. } | RunnerError::UnknownPanel { .. })) => {
                    let terms = ReviewerTerms { name: name.to_owned(), limit: CostLimit::Nothing };
                    return Ok(OfferedReviewer { terms, members: Vec::new(), obstacle: Some(error.to_string()) });
                }
                limit => limit?,
            };
            let obstacle = match reviewers.check_key(name) {
                Err(RunnerError::MissingKey(missing)) => Some(missing.hint()),
                Err(error) => Some(error.to_string()),
                Ok(()) => None,
            };
            let members = reviewers.find_panel(name)?.map(|panel| panel.reviewers).unwrap_or_default();
            Ok(OfferedReviewer { terms: ReviewerTerms { name: name.to_owned(), limit }, members, obstacle })
        };
        names.iter().map(|name| offer(name)).collect()
    }

    /// Decides as the request will, on the runs that are known now.
    fn forecast_decision(&self, input: &RequestInput<'_>) -> Result<Decision, RunnerError> {
        let view = self.services.store.runs_view()?;
        let mut earlier = EarlierRunFacts::new(DeadWorkerPolicy::Forecast);
        loop {
            let candidates = self.collect_candidates(&view, input, &earlier)?.unwrap_or_default();
            if candidates.unchecked.is_empty() {
                return Ok(policy::decide(input.policy_request, &candidates.known));
            }
            self.check_resumable(candidates.unchecked, &mut earlier);
        }
    }

    fn forecast_carried_hunks(&self, input: &RequestInput<'_>, max_hunks: usize) -> Result<Option<usize>, RunnerError> {
        if count_hunks(input.snapshot) > max_hunks {
            return Ok(None);
        }
        self.services.worker().count_reviewed_hunks(&self.draft_record(input), &input.snapshot.change).map(Some)
    }

    /// Returns the price of input tokens of a single reviewer in US dollars; `None` if it is not known.
    fn estimate_input_cost(&self, reviewer: &str, tokens: u64) -> Result<Option<f64>, RunnerError> {
        let reviewers = self.services.reviewers();
        if reviewers.cost_limit(reviewer)? == CostLimit::Nothing {
            return Ok(Some(0.0));
        }
        let facts = ModelCatalog::load(&self.services.paths)?.facts_for_reviewer(reviewers.model_settings(reviewer)?);
        Ok(facts.price.map(|price| price.cost(&Usage { input: tokens, ..Usage::default() })))
    }
}

fn count_hunks(snapshot: &Snapshot) -> usize {
    snapshot.change.files.iter().map(|file| file.hunks.len()).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{ReviewerKind, ReviewerSettings, Settings};
    use crate::domain::{PanelOpinion, RunRecord, RunStatus, Source};
    use crate::runner::fixture::RunnerFixture;

    fn request(reviewer: &str, demand: ReviewDemand) -> ReviewRequest {
        ReviewRequest {
            scope: Some(Scope::Commit("HEAD".to_owned())),
            reviewer: Some(reviewer.to_owned()),
            prompt_set: None,
            source: Source::Cockpit,
            started_in_session: 0,
            demand,
        }
    }

    /// Returns a fixture with a commit and the reviewers `paid` and `other`, whose settings may be changed further.
    fn start_with_paid_reviewers(change: impl FnOnce(&mut Settings)) -> RunnerFixture {
        let mut fixture = RunnerFixture::new();
        let settings = Arc::make_mut(&mut fixture.services.settings);
        for name in ["paid", "other"] {
            let reviewer = ReviewerSettings {
                model: "m".to_owned(),
                price_input: Dollars::new(2.0),
                price_output: Dollars::new(8.0),
                ..ReviewerSettings::new(ReviewerKind::Openai)
            };
            settings.reviewers.insert(name.to_owned(), reviewer);
        }
        change(settings);
        fixture.commit_files(&[("a.py", &b"def f(a):\n    return a\n"[..])]);
        fixture
    }

    #[test]
    fn who_judges_and_is_escalated_to_counts_once_for_both() {
        let names = ["paid", "builtin"].map(str::to_owned).to_vec();
        let panel = PanelSettings {
            judge: Some("other".to_owned()),
            escalate: Some(PanelOpinion::parse("other", "p0").expect("an opinion")),
            ..PanelSettings::of_request("p", names)
        };
        let fixture = start_with_paid_reviewers(|settings| drop(settings.panels.insert("p".to_owned(), panel)));
        let preview = fixture.services.launcher().preview_request(&request("panel:p", ReviewDemand::AsNeeded));
        let preview = preview.expect("a forecast");
        let limit = |name| fixture.services.reviewers().cost_limit(name).expect("a reviewer of the settings");
        assert_eq!(preview.opinions, [ReviewerTerms { name: "other".to_owned(), limit: limit("other") }]);
        assert_eq!(preview.limit, Some(limit("paid").plus(limit("other"))));
    }

    #[test]
    fn a_default_that_the_settings_do_not_have_is_offered_first_and_says_so() {
        let mut fixture = RunnerFixture::new();
        let offered = |fixture: &RunnerFixture| {
            let offered = fixture.services.launcher().list_offered_reviewers().expect("a list");
            offered.into_iter().map(|offered| (offered.terms.name, offered.obstacle)).collect::<Vec<_>>()
        };
        let builtin = (BUILTIN_REVIEWER.to_owned(), None);
        assert_eq!(offered(&fixture), std::slice::from_ref(&builtin));
        let settings = Arc::make_mut(&mut fixture.services.settings);
        settings.default_panel = "ghost".to_owned();
        let obstacle = "there is no panel named \"ghost\"; there are: none".to_owned();
        let ghost = ("panel:ghost".to_owned(), Some(obstacle));
        assert_eq!(offered(&fixture), [ghost, builtin.clone()]);
        let settings = Arc::make_mut(&mut fixture.services.settings);
        (settings.default_panel, settings.default_reviewer) = (String::new(), "nobody".to_owned());
        let obstacle = "there is no reviewer named \"nobody\"; there are: builtin".to_owned();
        assert_eq!(offered(&fixture), [("nobody".to_owned(), Some(obstacle)), builtin]);
    }

    #[test]
    fn a_panel_is_forecast_by_member_and_only_those_that_start_are_paid() {
        let fixture = start_with_paid_reviewers(|_| {});
        let launcher = fixture.services.launcher();
        let preview = |reviewer, demand| launcher.preview_request(&request(reviewer, demand)).expect("a forecast");
        let panel = |demand| {
            let preview = preview("panel:paid+other+builtin", demand);
            let member = |one: &MemberForecast| (one.reviewer.clone(), one.action.word(), one.tokens);
            let members: Vec<(String, &str, u64)> = preview.members.iter().map(member).collect();
            (members, preview.tokens, preview.input_cost, preview.limit)
        };
        let expected = |members: [(&str, &'static str, u64); 3]| {
            members.map(|(reviewer, action, tokens)| (reviewer.to_owned(), action, tokens)).to_vec()
        };
        let limit = |name| fixture.services.reviewers().cost_limit(name).expect("a reviewer of the settings");
        let alone = preview("other", ReviewDemand::AsNeeded);
        assert!(alone.tokens > 0 && alone.input_cost > Some(0.0), "{alone:?}");
        assert!(alone.members.is_empty() && alone.limit == Some(limit("other")), "{alone:?}");

        for reviewer in ["paid", "builtin"] {
            let draft = launcher.draft_unrecorded_run(&request(reviewer, ReviewDemand::AsNeeded));
            let (_, mut record) = draft.expect("a draft");
            (record.status, record.attempt) = (RunStatus::Completed, 1);
            let coverage = &mut record.outcome.coverage;
            (coverage.files_covered, coverage.hunks_covered) = (coverage.files_total, coverage.hunks_total);
            fixture.services.store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
        }
        let (members, tokens, cost, most) = panel(ReviewDemand::AsNeeded);
        assert_eq!(
            members,
            expected([("paid", "reuse", 0), ("other", "launch", alone.tokens), ("builtin", "reuse", 0)])
        );
        assert_eq!((tokens, cost, most), (alone.tokens, alone.input_cost, Some(limit("other"))));

        let (members, tokens, _, most) = panel(ReviewDemand::Anew);
        assert_eq!(
            members,
            expected([("paid", "launch", alone.tokens), ("other", "launch", alone.tokens), ("builtin", "launch", 0)])
        );
        assert_eq!((tokens, most), (2 * alone.tokens, Some(limit("panel:paid+other+builtin"))));
    }

    #[test]
    fn a_run_whose_worker_died_goes_on_if_it_has_attempts_left() {
        let fixture = start_with_paid_reviewers(|_| {});
        let launcher = fixture.services.launcher();
        let request = request("paid", ReviewDemand::AsNeeded);
        let (_, draft) = launcher.draft_unrecorded_run(&request).expect("a draft");
        for (attempt, expected, said) in
            [(1, "resume", "was lost in attempt 1 of 3"), (3, "launch", "its last attempt")]
        {
            let run_id = fixture.services.ambient.new_run_id();
            // Nobody holds the lock of the run.
            let record = RunRecord { run_id, status: RunStatus::Reviewing, attempt, ..draft.clone() };
            fixture.services.store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
            let preview = launcher.preview_request(&request).expect("a forecast");
            assert_eq!(preview.decision.action.word(), expected, "{}", preview.decision.reason);
            assert!(preview.decision.reason.contains(said), "{}", preview.decision.reason);
        }
    }

    #[test]
    fn the_limit_of_a_panel_and_one_answer_are_the_most_and_a_limit_without_room_is_said() {
        let mut fixture = RunnerFixture::new();
        fixture.commit_files(&[("a.py", &b"def f(a):\n    return a\n"[..])]);
        let reviewer = ReviewerSettings {
            model: "m".to_owned(),
            price_input: Dollars::new(2.0),
            price_output: Dollars::new(10.0),
            max_output: Some(1_000),
            ..ReviewerSettings::new(ReviewerKind::Openai)
        };
        // An answer costs at most one cent, a first request about as much.
        for (max_cost, most, has_room) in [(0.5, "at most $0.51", true), (0.000_1, "at most $0.011", false)] {
            let settings = Arc::make_mut(&mut fixture.services.settings);
            settings.reviewers.insert("paid".to_owned(), reviewer.clone());
            settings.reviewers.insert("other".to_owned(), reviewer.clone());
            let panel = PanelSettings {
                name: "pair".to_owned(),
                max_cost: Dollars::new(max_cost),
                ..fixture.services.reviewers().find_panel("panel:paid+other").expect("a panel").expect("of two")
            };
            let settings = Arc::make_mut(&mut fixture.services.settings);
            settings.panels.insert("pair".to_owned(), panel);
            let launcher = fixture.services.launcher();
            let preview = launcher.preview_request(&request("panel:pair", ReviewDemand::AsNeeded)).expect("a forecast");
            assert_eq!(preview.limit.map(|limit| limit.to_string()).as_deref(), Some(most), "{preview:?}");
            assert_eq!(preview.no_room.is_none(), has_room, "{preview:?}");
        }
        let nothing = SendingForecast::sum(&[]).input_cost.expect("nothing is sent");
        assert!(nothing.is_sign_positive(), "{nothing:?} is no amount");
    }
}
