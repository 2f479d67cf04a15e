//! Sends requests to the reviewer that makes a fix. The cost of an answer is recorded before the answer is processed.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::fixer_worker::{FixAttempt, FixFailure, FixMaterial};
use crate::config::{ModelCatalog, ModelFacts};
use crate::domain::{ChatRequest, ChatResponse, Fix, FixId};
use crate::reviewers::chat::{Chat, ChatObserver, ChatProgress};
use crate::runner::reviewer_access::usage_estimate::fill_missing_usage;
use crate::runner::{Fixer, RunnerError, Services};
use crate::store::PaidAnswer;

/// Minimum interval between two checks whether the fix was dropped.
const DROP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Checks whether a fix in progress was dropped.
pub(super) struct FixDropWatch<'a> {
    services: &'a Services,
    fix: FixId,
    looked: Cell<Option<Instant>>,
    size: Cell<u64>,
    dropped: Cell<bool>,
}

impl<'a> FixDropWatch<'a> {
    pub fn new(services: &'a Services, fix: &Fix) -> Self {
        let fix = fix.fix_id.clone();
        Self { services, fix, looked: Cell::new(None), size: Cell::new(0), dropped: Cell::new(false) }
    }

    pub fn is_dropped(&self) -> bool {
        if self.dropped.get() || self.looked.get().is_some_and(|looked| looked.elapsed() < DROP_POLL_INTERVAL) {
            return self.dropped.get();
        }
        self.looked.set(Some(Instant::now()));
        let size = self.services.store.fixes_bytes();
        if size != self.size.get()
            && let Ok(Some(fix)) = self.services.store.fix(&self.fix)
        {
            self.size.set(size);
            self.dropped.set(!fix.status.is_working());
        }
        self.dropped.get()
    }
}

impl ChatObserver for &FixDropWatch<'_> {
    fn on_progress(&mut self, _: ChatProgress) {}

    fn is_cancelled(&self) -> bool {
        self.is_dropped()
    }
}

impl Fixer<'_> {
    /// Loads the facts about the model that makes a fix.
    pub(super) fn load_fixer_facts(&self, name: &str) -> Result<ModelFacts, RunnerError> {
        Ok(ModelCatalog::load(&self.services.paths)?
            .facts_for_reviewer(self.services.reviewers().model_settings(name)?))
    }

    /// Sends one request and returns the answer. Refuses if the daily budget or the budget of a run is used up.
    pub(super) fn ask_fixer(
        &self,
        chat: &mut dyn Chat,
        request: &ChatRequest,
        (material, facts, wanted): (&FixMaterial, &ModelFacts, &FixDropWatch<'_>),
        made: &mut FixAttempt,
    ) -> Result<ChatResponse, FixFailure> {
        let free = facts.is_free();
        if !free {
            self.check_fix_budget(&material.fix, made)?;
        }
        let mut watch = wanted;
        let mut response = chat.respond(request, &mut watch).map_err(|error| match error.cancelled {
            true => FixFailure::Dropped,
            false => FixFailure::Reason(error.summary),
        })?;
        fill_missing_usage(request, &mut response, facts.encoding);
        let cost = facts.price.as_ref().map_or(0.0, |price| price.cost(&response.usage));
        made.requests += 1;
        let paid = PaidAnswer {
            at: self.services.ambient.now(),
            // The daily account is per user; the run id names the run whose findings the money was spent on.
            run_id: material.fix.run_id.clone(),
            turn: made.requests,
            reviewer: material.fix.reviewer.clone(),
            tokens: response.usage.total(),
            cost,
            estimated: response.usage.estimated,
        };
        if !free && let Err(error) = self.services.reviewers().spending().append(&paid) {
            tracing::warn!(fix = %material.fix.fix_id, %error, "what was paid is missing from the account of the day");
        }
        made.cost += cost;
        made.tokens += response.usage;
        made.model.clone_from(&response.model);
        Ok(response)
    }

    fn check_fix_budget(&self, fix: &Fix, made: &FixAttempt) -> Result<(), FixFailure> {
        if let Some(spent) = self.services.reviewers().check_daily_budget()? {
            return Err(FixFailure::Reason(spent.note));
        }
        let budget = &self.services.settings.budget;
        let (tokens, cost) = (fix.tokens.total() + made.tokens.total(), fix.cost + made.cost);
        if let Some(most) = budget.run_tokens.filter(|most| tokens >= *most) {
            return Err(FixFailure::Reason(format!("the budget of {most} tokens is used up (budget.run_tokens)")));
        }
        match budget.run_cost.filter(|most| cost >= most.as_f64()) {
            Some(most) => Err(FixFailure::Reason(format!("the budget of ${most} is used up (budget.run_cost)"))),
            None => Ok(()),
        }
    }
}
