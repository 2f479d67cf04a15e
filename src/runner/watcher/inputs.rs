//! Collects the inputs of a verdict: the settings as rules, the size of the change, and the money spent.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::config::Settings;
use crate::domain::{Scope, WatchTrigger};
use crate::git::GitError;
use crate::policy::{
    self, AutoReviewInput, AutoReviewRules, AutoReviewVerdict, ChangeSize, DailySpend, NoReviewReason,
};
use crate::runner::launcher::request::count_changed_lines;
use crate::runner::{RunnerError, Services, Watcher};

pub(super) fn rules_from_settings(settings: &Settings) -> AutoReviewRules {
    let (watch, budget) = (&settings.watch, &settings.budget);
    let cost = [budget.day_cost, watch.day_cost];
    AutoReviewRules {
        on: watch.on.clone(),
        quiet_ms: watch.quiet_seconds.saturating_mul(1000),
        interval_ms: watch.interval_seconds.saturating_mul(1000),
        min_changed_lines: watch.min_changed_lines,
        quiet_hours: watch.quiet_hours,
        day_tokens: [budget.day_tokens, watch.day_tokens].into_iter().flatten().min(),
        day_cost: cost.into_iter().flatten().min().map(|most| most.as_f64()),
    }
}

/// Measures the change of a scope. If a branch has no commits of its own, measures its last commit.
pub(super) fn measure_scope(services: &Services, scope: &Scope) -> Result<(Scope, ChangeSize), GitError> {
    let filter = services.filter();
    let measured = services.repo.take_snapshot(scope, &filter);
    let alone = match &measured {
        Ok(snapshot) => snapshot.change.files.is_empty(),
        Err(error) => matches!(error, GitError::NoBase { .. } | GitError::NoMergeBase { .. }),
    };
    let (scope, snapshot) = match (scope, alone) {
        (Scope::Branch(None), true) => {
            let scope = Scope::Commit("HEAD".to_owned());
            let snapshot = services.repo.take_snapshot(&scope, &filter)?;
            (scope, snapshot)
        }
        (scope, _) => (scope.clone(), measured?),
    };
    Ok((scope, ChangeSize::Measured { files: snapshot.change.files.len(), lines: count_changed_lines(&snapshot) }))
}

/// Converts a duration to milliseconds.
pub(super) fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Watcher<'_> {
    /// Builds the situation for a finished movement, with the fields that all movements share.
    pub(super) fn base_situation(&self, movement: WatchTrigger) -> Result<AutoReviewInput, RunnerError> {
        let now = self.services.ambient.now();
        let here = now.to_zoned(TimeZone::system());
        let spent_today = match self.is_watcher_free()? {
            true => None,
            false => self
                .services
                .reviewers()
                .spent_today()
                .map(|spent| Some(DailySpend { tokens: spent.tokens, cost: spent.cost }))?,
        };
        Ok(AutoReviewInput {
            movement,
            still_ms: u64::MAX,
            operation: None,
            snoozed_ms: self
                .services
                .store
                .snoozed_until(now)
                .map(|until| to_ms(until.duration_since(now).unsigned_abs())),
            minute: here.hour().unsigned_abs() as u16 * 60 + here.minute().unsigned_abs() as u16,
            spent_today,
            asked_ms_ago: None,
            change: ChangeSize::NotMeasured,
        })
    }

    /// Returns the reason why a commit is not reviewed without a request; `None` if it is.
    pub(in crate::runner) fn reason_not_to_review(
        &self,
        movement: WatchTrigger,
    ) -> Result<Option<NoReviewReason>, RunnerError> {
        let rules = AutoReviewRules { on: vec![movement], ..rules_from_settings(&self.services.settings) };
        Ok(match policy::decide_auto_review(&rules, &self.base_situation(movement)?) {
            AutoReviewVerdict::Review(_) => None,
            AutoReviewVerdict::Wait(_, why) | AutoReviewVerdict::NotNow(why) => Some(why),
        })
    }

    /// Returns `true` if the reviewer of watched reviews is free of charge, so that no budget applies.
    fn is_watcher_free(&self) -> Result<bool, RunnerError> {
        let reviewers = self.services.reviewers();
        reviewers.is_free(&reviewers.automatic_reviewer()?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_of_two_limits_holds() {
        let mut settings = Settings::default();
        assert_eq!(rules_from_settings(&settings).day_tokens, settings.budget.day_tokens);
        settings.watch.day_tokens = Some(5);
        settings.watch.day_cost = crate::config::Dollars::new(99.0);
        let rules = rules_from_settings(&settings);
        assert_eq!((rules.day_tokens, rules.day_cost), (Some(5), settings.budget.day_cost.map(|cost| cost.as_f64())));
    }
}
