//! Finds the reviewers without a known price: no limit in US dollars can count what they cost.

use crate::config::{ModelCatalog, PanelSettings};
use crate::runner::{BUILTIN_REVIEWER, ReviewerAccess, RunnerError};

/// Reviewers without a known price, by the reviewer that is asked.
#[derive(Debug, Clone, Default)]
pub(in crate::runner) struct UnpricedReviewers {
    /// Name of the reviewer that is asked, and the names of those that may answer for it: itself and its fallbacks.
    by_asked: Vec<(String, Vec<String>)>,
}

impl UnpricedReviewers {
    /// Returns the names of those that may answer if only some reviewers are asked, each once.
    pub fn names(&self, is_asked: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.by_asked.iter().filter(|(asked, _)| is_asked(asked)).flat_map(|(_, unpriced)| unpriced) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

impl ReviewerAccess<'_> {
    /// Finds which of these reviewers and of their fallbacks have no known price.
    pub(in crate::runner) fn find_unpriced<'n>(
        &self,
        asked: impl IntoIterator<Item = &'n str>,
    ) -> Result<UnpricedReviewers, RunnerError> {
        let models = ModelCatalog::load(&self.services.paths)?;
        let mut by_asked = Vec::new();
        for name in asked {
            let mut unpriced = Vec::new();
            let mut next = Some(name).filter(|name| *name != BUILTIN_REVIEWER);
            // The settings have no cycle of fallbacks.
            while let Some(name) = next {
                let settings = self.model_settings(name)?;
                if models.facts_for_reviewer(settings).price.is_none() {
                    unpriced.push(name.to_owned());
                }
                next = settings.fallback.as_deref().filter(|name| *name != BUILTIN_REVIEWER);
            }
            by_asked.push((name.to_owned(), unpriced));
        }
        Ok(UnpricedReviewers { by_asked })
    }

    /// Finds the members of a panel, and those that give second opinions, without a known price.
    pub(in crate::runner) fn find_unpriced_of_panel(
        &self,
        panel: &PanelSettings,
    ) -> Result<UnpricedReviewers, RunnerError> {
        self.find_unpriced(panel.reviewers.iter().map(String::as_str).chain(panel.opinion_reviewers()))
    }

    /// Returns the limits in US dollars of a review, as the settings name them.
    pub(in crate::runner) fn cost_limit_names(&self, panel: Option<&PanelSettings>) -> Vec<String> {
        let of_panel = panel.and_then(|panel| panel.max_cost).map(|_| "max_cost");
        let of_run = self.services.settings.budget.run_cost.map(|_| "budget.run_cost");
        of_panel.into_iter().chain(of_run).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::config::{Dollars, ReviewerKind, ReviewerSettings};
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn models_without_a_price_and_agents_are_unpriced_also_as_fallbacks() {
        let mut fixture = RunnerFixture::new();
        let settings = Arc::make_mut(&mut fixture.services.settings);
        let mut add = |name: &str, kind, price: Option<f64>, fallback: Option<&str>| {
            let reviewer = ReviewerSettings {
                model: "who/knows".to_owned(),
                price_input: price.and_then(Dollars::new),
                price_output: price.and_then(Dollars::new),
                fallback: fallback.map(str::to_owned),
                ..ReviewerSettings::new(kind)
            };
            settings.reviewers.insert(name.to_owned(), reviewer);
        };
        add("priced", ReviewerKind::Openai, Some(2.0), None);
        add("unknown", ReviewerKind::Openai, None, None);
        add("agent", ReviewerKind::Command, None, None);
        add("local", ReviewerKind::Ollama, None, None);
        add("falls", ReviewerKind::Openai, Some(2.0), Some("unknown"));
        let reviewers = fixture.services.reviewers();
        for (asked, expected) in [
            (&["priced", "local", "builtin"][..], &[""; 0][..]),
            (&["unknown", "agent"][..], &["unknown", "agent"][..]),
            (&["falls"][..], &["unknown"][..]),
            (&["falls", "unknown"][..], &["unknown"][..]),
        ] {
            let unpriced = reviewers.find_unpriced(asked.iter().copied()).expect("reviewers of the settings");
            assert_eq!(unpriced.names(|_| true), expected, "{asked:?}");
            assert_eq!(unpriced.names(|_| false), [""; 0]);
        }
    }
}
