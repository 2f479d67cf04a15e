//! Resolves panels by their names: those of the settings, and those that a request puts together.

use crate::config::{PanelSettings, check_panel_names};
use crate::domain::{ErrorClass, Panel, PanelOpinion, RunReviewer, content_hash};
use crate::reviewers::chat::ChatError;
use crate::runner::reviewer_access::reviewer_identity::ReviewerIdentity;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, ReviewerAccess, RunnerError};

/// Separates the reviewers in the name of a panel that has no table. Names of reviewers do not contain it.
const SEPARATOR: char = '+';

impl ReviewerAccess<'_> {
    /// Returns the panel with this reviewer's name, `panel:NAME` or `panel:ONE+OTHER`. `None` if it is no name of a
    /// panel.
    ///
    /// # Errors
    ///
    /// If the settings have no such panel, or a reviewer of it is unknown.
    pub(in crate::runner) fn find_panel(&self, reviewer: &str) -> Result<Option<PanelSettings>, RunnerError> {
        let Some(name) = Panel::name_of(reviewer) else { return Ok(None) };
        if let Some(panel) = self.services.settings.panels.get(name) {
            return Ok(Some(panel.clone()));
        }
        if !name.contains(SEPARATOR) {
            let known: Vec<&str> = self.services.settings.panels.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(RunnerError::UnknownPanel { name: name.to_owned(), known });
        }
        let reviewers: Vec<String> = name.split(SEPARATOR).map(str::to_owned).collect();
        check_panel_names(&reviewers).map_err(|problem| {
            let most = format!("a panel has {} to {} different reviewers", Panel::MIN_MEMBERS, Panel::MAX_MEMBERS);
            ChatError::new(ErrorClass::Configuration, format!("the panel {name} {problem}; {most}"))
        })?;
        for name in reviewers.iter().filter(|name| *name != BUILTIN_REVIEWER) {
            self.model_settings(name)?;
        }
        Ok(Some(PanelSettings::of_request(name, reviewers)))
    }

    /// Returns the default panel by its reviewer's name; `None` if a single reviewer is the default.
    pub(in crate::runner) fn default_panel(&self) -> Option<String> {
        let name = &self.services.settings.default_panel;
        (!name.is_empty()).then(|| format!("{}{name}", Panel::PREFIX))
    }

    /// Estimates the tokens that the members of a panel send for a change.
    pub(in crate::runner) fn estimate_panel_tokens(
        &self,
        identity: &ReviewerIdentity,
        lines: u64,
    ) -> Result<u64, RunnerError> {
        let Some(panel) = self.find_panel(&identity.reviewer)? else {
            return Ok(Self::estimate_review_tokens(identity, lines));
        };
        let members = panel.reviewers.iter().map(|name| self.resolve_identity(Some(name)));
        members.map(|member| Ok(Self::estimate_review_tokens(&member?, lines))).sum()
    }

    /// Returns the identity of a panel for a change: it changes whenever that of a member does, and with who gives second
    /// opinions and how they are asked for.
    pub(super) fn panel_identity(
        &self,
        panel: &PanelSettings,
        identify: impl Fn(&str) -> Result<ReviewerIdentity, RunnerError>,
    ) -> Result<ReviewerIdentity, RunnerError> {
        let members = panel.reviewers.iter().map(|name| {
            let ReviewerIdentity { reviewer, model, effort, policy_version } = identify(name)?;
            let focus = panel.focus.get(name).map_or(&[][..], Vec::as_slice);
            let version = RunReviewer::focused_version(&policy_version, focus);
            Ok(format!("{reviewer}\n{model}\n{effort}\n{version}\n"))
        });
        let mut members = members.collect::<Result<String, RunnerError>>()?;
        let opinions = panel.opinions();
        if !opinions.is_empty() {
            members.push_str(&format!("{}\n", self.load_prompts()?.judge_version()));
        }
        for PanelOpinion { reviewer, priorities, disputed } in opinions {
            let ReviewerIdentity { model, effort, .. } = identify(&reviewer)?;
            members.push_str(&format!("{reviewer}\n{model}\n{effort}\n{priorities:?} {disputed}\n"));
        }
        Ok(ReviewerIdentity {
            reviewer: format!("{}{}", Panel::PREFIX, panel.name),
            model: String::new(),
            effort: String::new(),
            policy_version: RunReviewer::version_of_set(
                &format!("panel:{}", content_hash([members.as_bytes()])),
                self.prompt_set,
            ),
        })
    }

    /// Returns the most that a review of a panel may cost: the sum of its members, or its own limit.
    pub(super) fn panel_cost_limit(&self, panel: &PanelSettings) -> Result<CostLimit, RunnerError> {
        self.cost_limit_of_members(panel, |_| true, 0.0)
    }

    /// Returns the most that a review of a panel may cost if only some of its members are asked: their sum with those that
    /// give second opinions, or the rest of the panel's limit after `spent_before` US dollars. The limit is checked before each
    /// request for what it sends: one answer comes on top.
    pub(in crate::runner) fn cost_limit_of_members(
        &self,
        panel: &PanelSettings,
        is_asked: impl Fn(&str) -> bool,
        spent_before: f64,
    ) -> Result<CostLimit, RunnerError> {
        let members = panel.reviewers.iter().map(String::as_str).filter(|name| is_asked(name));
        // The budgets of a run hold for all second opinions together: who gives two sorts of them counts once.
        let asked: Vec<&str> = members.chain(panel.opinion_reviewers()).collect();
        let members = asked.iter().map(|name| self.cost_limit(name));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let sum = members.into_iter().fold(CostLimit::Nothing, CostLimit::plus);
        Ok(match (sum, panel.max_cost) {
            (CostLimit::AtMost { dollars }, Some(most)) => match most.as_f64() - spent_before {
                rest if rest > 0.0 => CostLimit::at_most(dollars.min(rest + self.longest_answer_cost(&asked)?)),
                _ => CostLimit::AtMost { dollars: 0.0 },
            },
            (sum, _) => sum,
        })
    }
}
