//! Asking whoever makes a fix: what it costs is on record before anything is made of the answer.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::make::{Made, Material, NoPatch};
use crate::config::{ModelFacts, Models};
use crate::domain::{ChatRequest, Fix, FixId, Response};
use crate::provider::chat::{Chat, Progress, Watch};
use crate::runner::{Runner, RunnerError};
use crate::store::Paid;

/// How often, at most, it is looked whether a fix was dropped.
const LOOK: Duration = Duration::from_millis(100);

/// Whether a fix that is being made was dropped.
pub(super) struct Wanted<'a> {
    runner: &'a Runner,
    fix: FixId,
    looked: Cell<Option<Instant>>,
    size: Cell<u64>,
    dropped: Cell<bool>,
}

impl<'a> Wanted<'a> {
    pub fn new(runner: &'a Runner, fix: &Fix) -> Self {
        let fix = fix.fix_id.clone();
        Self { runner, fix, looked: Cell::new(None), size: Cell::new(0), dropped: Cell::new(false) }
    }

    pub fn is_dropped(&self) -> bool {
        if self.dropped.get() || self.looked.get().is_some_and(|looked| looked.elapsed() < LOOK) {
            return self.dropped.get();
        }
        self.looked.set(Some(Instant::now()));
        let size = self.runner.store.fixes_bytes();
        if size != self.size.get()
            && let Ok(Some(fix)) = self.runner.store.fix(&self.fix)
        {
            self.size.set(size);
            self.dropped.set(!fix.status.is_working());
        }
        self.dropped.get()
    }
}

impl Watch for &Wanted<'_> {
    fn progress(&mut self, _: Progress) {}

    fn cancelled(&self) -> bool {
        self.is_dropped()
    }
}

impl Runner {
    /// What is known of the model that makes a fix.
    pub(super) fn fixer_facts(&self, name: &str) -> Result<ModelFacts, RunnerError> {
        Ok(Models::load(&self.paths)?.of(self.model_settings(name)?))
    }

    /// One request and its answer. Refused when the budget of the day, or what a run may cost, is spent.
    pub(super) fn ask_fixer(
        &self,
        chat: &mut dyn Chat,
        request: &ChatRequest,
        (material, facts, wanted): (&Material, &ModelFacts, &Wanted<'_>),
        made: &mut Made,
    ) -> Result<Response, NoPatch> {
        let free = facts.is_free();
        if !free {
            self.may_spend(&material.fix, made)?;
        }
        let mut watch = wanted;
        let response = chat.respond(request, &mut watch).map_err(|error| match error.cancelled {
            true => NoPatch::Dropped,
            false => NoPatch::Because(error.summary),
        })?;
        let cost = facts.price.as_ref().map_or(0.0, |price| price.cost(&response.usage));
        made.requests += 1;
        let paid = Paid {
            at: self.ambient.now(),
            // The account of a day tells whose money it was; the run is whose findings it was spent on.
            run_id: material.fix.run_id.clone(),
            turn: made.requests,
            reviewer: material.fix.reviewer.clone(),
            tokens: response.usage.total(),
            cost,
        };
        if !free && let Err(error) = self.spending().append(&paid) {
            tracing::warn!(fix = %material.fix.fix_id, %error, "what was paid is missing from the account of the day");
        }
        made.cost += cost;
        made.tokens += response.usage;
        made.model.clone_from(&response.model);
        Ok(response)
    }

    fn may_spend(&self, fix: &Fix, made: &Made) -> Result<(), NoPatch> {
        if let Some(spent) = self.day_is_spent()? {
            return Err(NoPatch::Because(spent));
        }
        let budget = &self.settings.budget;
        let (tokens, cost) = (fix.tokens.total() + made.tokens.total(), fix.cost + made.cost);
        if let Some(most) = budget.run_tokens.filter(|most| tokens >= *most) {
            return Err(NoPatch::Because(format!("the budget of {most} tokens is used up (budget.run_tokens)")));
        }
        match budget.run_cost.filter(|most| cost >= most.as_f64()) {
            Some(most) => Err(NoPatch::Because(format!("the budget of ${most} is used up (budget.run_cost)"))),
            None => Ok(()),
        }
    }
}
