//! Holds the team to its budget of a day: a request to a model is reserved before it is sent, and settled by its answer.

use tokio_postgres::types::Type;

use super::connection::{Database, DatabaseError};
use crate::domain::MachineName;

/// Budget of a team for a day, and what was spent of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TeamBudget {
    /// US dollars that were spent today.
    pub cost: f64,
    /// Tokens that were spent today.
    pub tokens: u64,
    /// US dollars that a day may cost; `None` for no limit.
    pub day_cost: Option<f64>,
    /// Tokens that a day may take; `None` for no limit.
    pub day_tokens: Option<u64>,
}

impl TeamBudget {
    /// Returns true if there is a limit.
    pub fn is_limited(&self) -> bool {
        self.day_cost.is_some() || self.day_tokens.is_some()
    }
}

/// Answer to a machine that wants to send a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TeamReservation {
    /// The request may be sent.
    Granted,
    /// Requests on their way may use up the rest of the budget.
    MustWait,
    /// There is a limit in US dollars, and the cost of the request is not known.
    Unpriced,
    /// The budget does not hold the request.
    Refused(TeamBudget),
}

fn to_tokens(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or(0)
}

fn to_number(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

impl Database {
    /// Returns the budget of a project.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked.
    pub fn read_budget(&self, project: &str) -> Result<TeamBudget, DatabaseError> {
        let row = self.query_one(
            "reading the team's budget",
            "SELECT cost + waiting_cost, tokens + waiting_tokens, day_cost, day_tokens FROM revdeck.read_budget($1)",
            &[(&project, Type::TEXT)],
        )?;
        Ok(TeamBudget {
            cost: row.get(0),
            tokens: to_tokens(row.get(1)),
            day_cost: row.get(2),
            day_tokens: row.get::<_, Option<i64>>(3).map(to_tokens),
        })
    }

    /// Sets the limits of a project. Only the owner of the tables may.
    ///
    /// # Errors
    /// Returns an error when the role may not do so, or the database cannot be asked.
    pub fn set_budget(
        &self,
        project: &str,
        day_cost: Option<f64>,
        day_tokens: Option<u64>,
    ) -> Result<(), DatabaseError> {
        let day_tokens = day_tokens.map(to_number);
        let parameters: &[_] =
            &[(&project as _, Type::TEXT), (&day_cost as _, Type::FLOAT8), (&day_tokens as _, Type::INT8)];
        self.query("setting the team's budget", "SELECT revdeck.set_budget($1, $2, $3)", parameters).map(drop)
    }

    /// Reserves the most that a request may cost: US dollars, `None` if the price is not known, and tokens. `request` is unique; to
    /// reserve it again changes nothing.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked; then the request must not be sent.
    pub fn reserve(
        &self,
        project: &str,
        machine: &MachineName,
        request: &str,
        cost: Option<f64>,
        tokens: u64,
    ) -> Result<TeamReservation, DatabaseError> {
        let row = self.query_one(
            "reserving the cost of a request",
            "SELECT answer, cost, tokens, day_cost, day_tokens FROM revdeck.reserve($1, $2, $3, $4, $5)",
            &[
                (&project, Type::TEXT),
                (&machine.as_str(), Type::TEXT),
                (&request, Type::TEXT),
                (&cost, Type::FLOAT8),
                (&to_number(tokens), Type::INT8),
            ],
        )?;
        Ok(match row.get::<_, &str>(0) {
            "granted" => TeamReservation::Granted,
            "wait" => TeamReservation::MustWait,
            "unpriced" => TeamReservation::Unpriced,
            _ => TeamReservation::Refused(TeamBudget {
                cost: row.get(1),
                tokens: to_tokens(row.get(2)),
                day_cost: row.get(3),
                day_tokens: row.get::<_, Option<i64>>(4).map(to_tokens),
            }),
        })
    }

    /// Records what a request cost, in place of what was reserved for it.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked; then what was reserved counts as spent.
    pub fn settle(&self, project: &str, request: &str, cost: f64, tokens: u64) -> Result<(), DatabaseError> {
        let tokens = to_number(tokens);
        self.query(
            "recording the cost of a request",
            "SELECT revdeck.settle($1, $2, $3, $4)",
            &[(&project, Type::TEXT), (&request, Type::TEXT), (&cost, Type::FLOAT8), (&tokens, Type::INT8)],
        )
        .map(drop)
    }
}
