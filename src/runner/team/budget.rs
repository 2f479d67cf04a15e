//! Holds the requests of this machine to the team's budget of a day, whoever sends them: reviews, fixes, questions.

use std::time::{Duration, Instant};

use super::TeamSync;
use crate::config::{Dollars, ModelFacts};
use crate::domain::{BudgetKind, BudgetStop, ChatRequest, ChatResponse, ErrorClass, Usage};
use crate::review::conversation::BudgetProblem;
use crate::reviewers::chat::{Chat, ChatError, ChatObserver, ChatProgress, ToolSupport};
use crate::runner::cancellable_sleep::sleep_unless_cancelled;
use crate::runner::reviewer_access::usage_estimate::{count_request, fill_missing_usage};
use crate::store::TeamMembership;
use crate::team::postgres::{Database, DatabaseAddress, DatabaseError, TeamBudget, TeamReservation, is_database};
use crate::tokens;

/// Interval between two attempts to reserve, while requests of others may use up the rest.
const RESERVE_PAUSE: Duration = Duration::from_secs(1);
/// Time for which a request waits for a database that cannot be reached, where there is a limit.
const MAX_AWAY_WAIT: Duration = Duration::from_secs(20);
/// Time for which a database that could not be reached is not asked again, where there is no limit.
const AWAY_PAUSE: Duration = Duration::from_secs(120);
/// Share of what is left that is not reserved, so that the sum in the database does not pass the limit by a rounding error.
const ROUNDING: f64 = 1e-9;

/// Model whose requests are reserved in the team's budget before they are sent.
struct BudgetedChat {
    inner: Box<dyn Chat>,
    facts: ModelFacts,
    budget: BudgetConnection,
    /// True if the team had a budget when this machine last heard of it. Then nothing is sent that cannot be reserved.
    is_limited: bool,
    /// Begin of the names of requests, unique for this model.
    prefix: String,
    /// Number of requests.
    count: u32,
    /// Time at which the database could not be reached.
    away_since: Option<Instant>,
    /// Remaining limits of the run of a command-line agent, which makes requests of its own. `None` for a model.
    agent: Option<AgentLimits>,
}

/// Connection to the database that has the team's budget.
struct BudgetConnection {
    team: TeamMembership,
    /// Connection that has answered the last call.
    database: Option<Database>,
}

/// Most that a command-line agent may take; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AgentLimits {
    /// US dollars.
    cost: Option<f64>,
    tokens: Option<u64>,
}

/// Reservation of one request.
struct RequestReservation {
    name: String,
    /// Most that the request may cost, in US dollars; `None` if the price is not known.
    cost: Option<f64>,
    /// Most tokens that it may take.
    tokens: u64,
}

impl TeamSync<'_> {
    /// Lets the requests to a model count for the team's budget. Without a team that has a database, or for a model that costs
    /// nothing, returns the model as it is.
    pub(in crate::runner) fn hold_to_budget(&self, chat: Box<dyn Chat>, facts: &ModelFacts) -> Box<dyn Chat> {
        self.hold_within(chat, facts, None)
    }

    /// Does the same for a command-line agent. Reserves as much as a run may take, at which nothing stops the agent.
    pub(in crate::runner) fn hold_agent_to_budget(&self, chat: Box<dyn Chat>, facts: &ModelFacts) -> Box<dyn Chat> {
        let budget = &self.services.settings.budget;
        let limits = AgentLimits { cost: budget.run_cost.map(Dollars::as_f64), tokens: budget.run_tokens };
        self.hold_within(chat, facts, Some(limits))
    }

    fn hold_within(&self, chat: Box<dyn Chat>, facts: &ModelFacts, agent: Option<AgentLimits>) -> Box<dyn Chat> {
        let Some(team) = self.membership().ok().filter(|team| is_database(&team.place) && !facts.is_free()) else {
            return chat;
        };
        let is_limited = self.services.store.team_progress().is_ok_and(|progress| progress.has_budget);
        Box::new(BudgetedChat {
            inner: chat,
            facts: facts.clone(),
            budget: BudgetConnection { team, database: None },
            is_limited,
            prefix: self.services.ambient.new_run_id().to_string(),
            count: 0,
            away_since: None,
            agent,
        })
    }

    /// Returns why the team's budget refuses requests; `None` if it cannot be asked.
    pub(in crate::runner) fn describe_budget(&self, summary: &str) -> Option<BudgetProblem> {
        let team = self.membership().ok().filter(|team| is_database(&team.place))?;
        let budget = connect(&team).and_then(|database| database.read_budget(&team.project)).ok()?;
        let stop = budget_stop(&budget)?;
        Some(BudgetProblem { stop, note: summary.to_owned() })
    }
}

fn connect(team: &TeamMembership) -> Result<Database, DatabaseError> {
    Database::connect(&DatabaseAddress::parse(&team.place)?)
}

/// Returns the limit that is nearest to its end.
fn budget_stop(budget: &TeamBudget) -> Option<BudgetStop> {
    let cost = budget.day_cost.map(|limit| BudgetStop { kind: BudgetKind::TeamCost, reached: budget.cost, limit });
    let tokens = budget.day_tokens.map(|limit| BudgetStop {
        kind: BudgetKind::TeamTokens,
        reached: budget.tokens as f64,
        limit: limit as f64,
    });
    let share = |stop: &BudgetStop| if stop.limit > 0.0 { stop.reached / stop.limit } else { f64::INFINITY };
    [cost, tokens].into_iter().flatten().max_by(|one, other| share(one).total_cmp(&share(other)))
}

/// Returns the most that an agent may take, in tokens or US dollars, under what is `left` of the team's limit: as much as its
/// `run` still may, or all that is left, and at least `one` request. Without a limit of the team, one request is enough to count.
fn most_of_agent<T: PartialOrd>(one: T, run: Option<T>, left: Option<T>) -> T {
    match (left, run) {
        (Some(_), Some(most)) | (Some(most), None) if most > one => most,
        _ => one,
    }
}

impl BudgetConnection {
    /// Calls the database by the connection that is there, or a new one: one that was idle during a pause or a long answer may
    /// be gone. So a call must change nothing when it is repeated.
    fn call<T>(
        &mut self,
        call: impl Fn(&Database, &TeamMembership) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        if let Some(Ok(answer)) = self.database.as_ref().map(|database| call(database, &self.team)) {
            return Ok(answer);
        }
        self.database = None;
        let database = connect(&self.team)?;
        let answer = call(&database, &self.team)?;
        self.database = Some(database);
        Ok(answer)
    }
}

impl BudgetedChat {
    /// Reserves a request, and waits for others where it must. Returns its reservation; `None` if the database cannot be asked
    /// and there is no limit.
    fn reserve(
        &mut self,
        request: &ChatRequest,
        watch: &mut dyn ChatObserver,
    ) -> Result<Option<RequestReservation>, ChatError> {
        if !self.is_limited && self.away_since.is_some_and(|since| since.elapsed() < AWAY_PAUSE) {
            return Ok(None);
        }
        let (tokens, cost) = self.estimate_most(request);
        self.count += 1;
        let reservation = RequestReservation { name: format!("{}-{}", self.prefix, self.count), cost, tokens };
        let give_up = Instant::now() + MAX_AWAY_WAIT;
        let mut is_told = false;
        loop {
            let reason = match self.try_to_reserve(&reservation) {
                Ok(TeamReservation::Granted) => return Ok(Some(reservation)),
                Ok(TeamReservation::MustWait) => "other machines may use up the team's budget",
                Ok(TeamReservation::Unpriced) => {
                    let said = "the team has a budget in US dollars, and the price of this model is not known: \
                                price_input and price_output of its reviewer say it";
                    return Err(ChatError::new(ErrorClass::TeamBudget, said));
                }
                Ok(TeamReservation::Refused(budget)) => {
                    let said = budget_stop(&budget).map(|stop| stop.describe()).unwrap_or_default();
                    let most = reservation.cost.unwrap_or(0.0);
                    let summary = format!("{said}; this request may take ${most:.4} and {tokens} tokens");
                    return Err(ChatError::new(ErrorClass::TeamBudget, summary));
                }
                Err(error) => {
                    if !self.is_limited {
                        self.away_since = Some(Instant::now());
                        tracing::warn!(%error, "a request does not count for the team");
                        return Ok(None);
                    }
                    if Instant::now() >= give_up {
                        let summary = format!("the team has a budget, and it cannot be asked: {error}");
                        return Err(ChatError::new(ErrorClass::Network, summary));
                    }
                    "the team's budget cannot be asked"
                }
            };
            if !std::mem::replace(&mut is_told, true) {
                let wait_ms = RESERVE_PAUSE.as_millis() as u64;
                watch.on_progress(ChatProgress::Waiting { reason: reason.to_owned(), wait_ms });
            }
            if sleep_unless_cancelled(RESERVE_PAUSE, || watch.is_cancelled().then_some(())).is_some() {
                return Err(ChatError::cancelled());
            }
        }
    }

    /// Returns the most that a request may take: tokens, and US dollars if the price is known.
    fn estimate_most(&mut self, request: &ChatRequest) -> (u64, Option<f64>) {
        let encoding = self.facts.encoding;
        let input = count_request(request, &|text| tokens::count_tokens(encoding, text) as u64);
        let usage = Usage { input, output: request.max_output, ..Usage::default() };
        let cost = self.facts.price.as_ref().map(|price| price.cost(&usage));
        let Some(limits) = self.agent else { return (usage.total(), cost) };
        let (left_cost, left_tokens) = match self.budget.call(|database, team| database.read_budget(&team.project)) {
            Ok(budget) => (
                budget.day_cost.map(|limit| (limit - budget.cost).max(0.0) * (1.0 - ROUNDING)),
                budget.day_tokens.map(|limit| limit.saturating_sub(budget.tokens)),
            ),
            // To reserve it will fail, too.
            Err(_) if self.is_limited => (Some(0.0), Some(0)),
            Err(_) => (None, None),
        };
        let tokens = most_of_agent(usage.total(), limits.tokens, left_tokens);
        (tokens, cost.map(|cost| most_of_agent(cost, limits.cost, left_cost)))
    }

    /// Lets what an agent has taken count for what it may still take.
    fn lower_agent_limits(&mut self, cost: f64, tokens: u64) {
        if let Some(limits) = &mut self.agent {
            limits.cost = limits.cost.map(|left| (left - cost).max(0.0));
            limits.tokens = limits.tokens.map(|left| left.saturating_sub(tokens));
        }
    }

    fn try_to_reserve(&mut self, request: &RequestReservation) -> Result<TeamReservation, DatabaseError> {
        let RequestReservation { name, cost, tokens } = request;
        self.budget.call(|database, team| database.reserve(&team.project, &team.machine, name, *cost, *tokens))
    }

    fn settle(&mut self, name: &str, cost: f64, tokens: u64) {
        let settled = self.budget.call(|database, team| database.settle(&team.project, name, cost, tokens));
        if let Err(error) = settled {
            tracing::warn!(%error, "what was reserved of the team's budget counts as spent");
        }
    }
}

impl Chat for BudgetedChat {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
        let reserved = self.reserve(request, watch)?;
        let answer = self.inner.respond(request, watch);
        let Some(RequestReservation { name, cost, tokens }) = reserved else { return answer };
        match &answer {
            Ok(response) => {
                let mut counted = response.clone();
                fill_missing_usage(request, &mut counted, self.facts.encoding);
                let cost = self.facts.price.as_ref().map_or(0.0, |price| price.cost(&counted.usage));
                self.settle(&name, cost, counted.usage.total());
                self.lower_agent_limits(cost, counted.usage.total());
            }
            // The provider may charge for what it has begun: all that was reserved counts as spent.
            Err(error) if error.cancelled || error.class == ErrorClass::Timeout => {
                self.settle(&name, cost.unwrap_or(0.0), tokens);
            }
            Err(_) => self.settle(&name, 0.0, 0),
        }
        answer
    }

    fn tool_support(&self) -> ToolSupport {
        self.inner.tool_support()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reserves_what_its_run_may_take_or_all_that_is_left() {
        for (title, run, left, expected) in [
            ("no limit of the team", Some(100), None, 3),
            ("the run's limit", Some(100), Some(900), 100),
            ("more than is left, so that it is refused", Some(100), Some(50), 100),
            ("a run without a limit", None, Some(50), 50),
            ("the run has taken nearly all", Some(1), Some(50), 3),
            ("nothing is left", None, Some(0), 3),
        ] {
            assert_eq!(most_of_agent(3, run, left), expected, "{title}");
        }
    }

    #[test]
    fn the_limit_that_is_nearest_to_its_end_is_named() {
        let budget = |cost, day_cost, tokens, day_tokens| TeamBudget { cost, day_cost, tokens, day_tokens };
        for (budget, expected) in [
            (budget(1.0, None, 5, None), None),
            (budget(1.0, Some(2.0), 5, None), Some(BudgetKind::TeamCost)),
            (budget(1.0, Some(2.0), 900, Some(1_000)), Some(BudgetKind::TeamTokens)),
            (budget(0.0, Some(0.0), 900, Some(1_000)), Some(BudgetKind::TeamCost)),
        ] {
            assert_eq!(budget_stop(&budget).map(|stop| stop.kind), expected, "{budget:?}");
        }
    }
}
