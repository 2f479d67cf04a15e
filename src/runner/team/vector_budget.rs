//! Holds the requests for vectors to the team's budget of a day.
//!
//! A review works without vectors, so it waits for none: texts whose tokens cannot be reserved at once are not sent.

use super::TeamSync;
use super::budget::{BUDGET_UNDER_WAY, BudgetedRequests, refused_error, unpriced_error};
use crate::config::ModelFacts;
use crate::context::embeddings::SharedBudget;
use crate::domain::{ErrorClass, Usage};
use crate::reviewers::chat::ChatError;
use crate::team::postgres::TeamReservation;

/// Share of a team's budget that vectors take.
struct VectorBudget {
    requests: BudgetedRequests,
    /// Name of the reservation that is not settled yet.
    reserved: Option<String>,
}

impl TeamSync<'_> {
    /// Returns the counter of the vectors of a model for the team's budget; `None` without a team that has a database, or for a
    /// model that costs nothing.
    pub(in crate::runner) fn vector_budget(&self, facts: &ModelFacts) -> Option<Box<dyn SharedBudget>> {
        let requests = self.budgeted_requests(facts)?;
        Some(Box::new(VectorBudget { requests, reserved: None }))
    }
}

impl SharedBudget for VectorBudget {
    fn reserve(&mut self, tokens: u64) -> Result<(), ChatError> {
        self.reserved = None;
        if self.requests.is_away() {
            return Ok(());
        }
        let most = self.requests.price(&Usage { input: tokens, ..Usage::default() });
        let name = self.requests.next_name();
        match self.requests.try_to_reserve(&name, |_, _| Ok(most)) {
            Ok((TeamReservation::Granted, _)) => {
                self.reserved = Some(name);
                Ok(())
            }
            Ok((TeamReservation::MustWait, _)) => Err(ChatError::new(ErrorClass::TeamBudget, BUDGET_UNDER_WAY)),
            Ok((TeamReservation::Unpriced, _)) => Err(unpriced_error("your models.toml may say it")),
            Ok((TeamReservation::Refused(budget), _)) => Err(refused_error(&budget, most)),
            Err(error) => self.requests.go_without(&error),
        }
    }

    fn settle(&mut self, tokens: u64) {
        if let Some(name) = self.reserved.take() {
            let took = self.requests.price(&Usage { input: tokens, ..Usage::default() });
            self.requests.settle(&name, took.cost.unwrap_or(0.0), took.tokens);
        }
    }
}
