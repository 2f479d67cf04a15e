//! Holds the requests of this machine to the team's budget of a day, whoever sends them: reviews, fixes, questions. Those for
//! vectors are held by [`super::vector_budget`].

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::TeamSync;
use crate::config::{Dollars, ModelFacts};
use crate::domain::{BudgetKind, BudgetStop, ChatRequest, ChatResponse, ErrorClass, Usage};
use crate::review::conversation::BudgetProblem;
use crate::reviewers::chat::{AnswerTracker, Chat, ChatError, ChatObserver, ChatProgress, ToolSupport};
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

/// Why a request waits although the budget is not used up.
pub(super) const BUDGET_UNDER_WAY: &str = "other machines may use up the team's budget";

/// Model whose requests are reserved in the team's budget before they are sent.
struct BudgetedChat {
    inner: Box<dyn Chat>,
    requests: BudgetedRequests,
    /// Remaining limits of the run of a command-line agent, which makes requests of its own. `None` for a model.
    agent: Option<AgentLimits>,
}

/// Requests to one model, as the team's budget counts them.
pub(super) struct BudgetedRequests {
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
    /// Answers that came while the database could not be reached.
    unsettled: Vec<AnsweredRequest>,
}

/// Request of which the database does not know yet what it took.
struct AnsweredRequest {
    name: String,
    /// US dollars.
    cost: f64,
    tokens: u64,
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

/// Spending of a request: the most that it may take, or what it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RequestSpending {
    /// Cost in US dollars; `None` if the price is not known.
    pub cost: Option<f64>,
    pub tokens: u64,
}

/// Observer of a request that counts the answers that were lost: the provider may charge for each of them.
struct LostAnswers<'a> {
    watch: &'a mut dyn ChatObserver,
    count: u32,
    answer: AnswerTracker,
}

impl<'a> LostAnswers<'a> {
    fn new(watch: &'a mut dyn ChatObserver, is_agent: bool) -> Self {
        Self { watch, count: 0, answer: AnswerTracker::new(is_agent) }
    }

    /// Returns the number of answers for which nobody knows what they cost.
    fn count_with(&self, answer: &Result<ChatResponse, ChatError>) -> u32 {
        match answer {
            Err(error) if error.cancelled => self.count + u32::from(self.answer.is_under_way()),
            // An agent does not say how often it has asked.
            Err(error) if error.class == ErrorClass::Timeout => self.count.max(1),
            Ok(_) | Err(_) => self.count,
        }
    }
}

impl ChatObserver for LostAnswers<'_> {
    fn on_progress(&mut self, progress: ChatProgress) {
        self.answer.add(&progress);
        self.count += u32::from(progress == ChatProgress::Lost);
        self.watch.on_progress(progress);
    }

    fn is_cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }
}

/// Reservation of one request.
struct RequestReservation {
    name: String,
    most: RequestSpending,
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
        match self.budgeted_requests(facts) {
            Some(requests) => Box::new(BudgetedChat { inner: chat, requests, agent }),
            None => chat,
        }
    }

    /// Returns the counter of the requests to a model for the team's budget; `None` without a team that has a database, or for a
    /// model that costs nothing.
    pub(super) fn budgeted_requests(&self, facts: &ModelFacts) -> Option<BudgetedRequests> {
        let team = self.membership().ok().filter(|team| is_database(&team.place) && !facts.is_free())?;
        Some(BudgetedRequests {
            facts: facts.clone(),
            budget: BudgetConnection { team, database: None },
            is_limited: self.services.store.team_progress().is_ok_and(|progress| progress.has_budget),
            prefix: self.services.ambient.new_run_id().to_string(),
            count: 0,
            away_since: None,
            unsettled: Vec::new(),
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

/// Returns the error of a request without a known price under a limit in US dollars. `remedy` says where a price may stand.
pub(super) fn unpriced_error(remedy: &str) -> ChatError {
    let said = format!("the team has a budget in US dollars, and the price of this model is not known: {remedy}");
    ChatError::new(ErrorClass::TeamBudget, said)
}

/// Returns the error of a request that the budget does not hold.
pub(super) fn refused_error(budget: &TeamBudget, most: RequestSpending) -> ChatError {
    let said = budget_stop(budget).map(|stop| stop.describe()).unwrap_or_default();
    let (cost, tokens) = (most.cost.unwrap_or(0.0), most.tokens);
    ChatError::new(ErrorClass::TeamBudget, format!("{said}; this request may take ${cost:.4} and {tokens} tokens"))
}

impl RequestSpending {
    /// Returns the spending of so many requests.
    fn times(self, count: u32) -> Self {
        Self {
            cost: self.cost.map(|cost| cost * f64::from(count)),
            tokens: self.tokens.saturating_mul(u64::from(count)),
        }
    }
}

impl AgentLimits {
    /// Returns the most that the agent may take under what is left of the team's limits; `one` is its first request.
    fn most(self, one: RequestSpending, budget: &TeamBudget) -> RequestSpending {
        let left_cost = budget.day_cost.map(|limit| (limit - budget.cost).max(0.0) * (1.0 - ROUNDING));
        let left_tokens = budget.day_tokens.map(|limit| limit.saturating_sub(budget.tokens));
        RequestSpending {
            cost: one.cost.map(|cost| most_of_agent(cost, self.cost, left_cost)),
            tokens: most_of_agent(one.tokens, self.tokens, left_tokens),
        }
    }
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

impl BudgetedRequests {
    /// Returns true while the database is not asked, because it could not be reached and there is no limit.
    pub(super) fn is_away(&self) -> bool {
        !self.is_limited && self.away_since.is_some_and(|since| since.elapsed() < AWAY_PAUSE)
    }

    /// Returns a new name for a request.
    pub(super) fn next_name(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.prefix, self.count)
    }

    /// Returns the tokens of a usage, and its cost if the price is known.
    pub(super) fn price(&self, usage: &Usage) -> RequestSpending {
        RequestSpending { cost: self.facts.price.as_ref().map(|price| price.cost(usage)), tokens: usage.total() }
    }

    /// Reserves a request, in one attempt to reach the database, which also gets what it does not know of earlier ones. `most` may ask the database how much to reserve; it is called
    /// again if the connection was gone. Returns the answer, and what was asked for.
    pub(super) fn try_to_reserve(
        &mut self,
        name: &str,
        most: impl Fn(&Database, &TeamMembership) -> Result<RequestSpending, DatabaseError>,
    ) -> Result<(TeamReservation, RequestSpending), DatabaseError> {
        let Self { budget, unsettled, .. } = self;
        let answered: &[AnsweredRequest] = unsettled;
        let reserved = budget.call(|database, team| {
            settle_answered(answered, database, team)?;
            let most = most(database, team)?;
            let answer = database.reserve(&team.project, &team.machine, name, most.cost, most.tokens)?;
            Ok((answer, most))
        })?;
        unsettled.clear();
        Ok(reserved)
    }

    /// Lets a request go on although the database cannot be asked, if there is no limit.
    ///
    /// # Errors
    ///
    /// If there is a limit.
    pub(super) fn go_without(&mut self, error: &DatabaseError) -> Result<(), ChatError> {
        if self.is_limited {
            let summary = format!("the team has a budget, and it cannot be asked: {error}");
            return Err(ChatError::new(ErrorClass::Network, summary));
        }
        self.away_since = Some(Instant::now());
        tracing::warn!(%error, "a request does not count for the team");
        Ok(())
    }

    /// Records what a request took, in place of what was reserved for it. While the database cannot be reached, the next request
    /// of this model does so.
    pub(super) fn settle(&mut self, name: &str, cost: f64, tokens: u64) {
        let Self { budget, unsettled, .. } = self;
        unsettled.push(AnsweredRequest { name: name.to_owned(), cost, tokens });
        let answered: &[AnsweredRequest] = unsettled;
        match budget.call(|database, team| settle_answered(answered, database, team)) {
            Ok(()) => unsettled.clear(),
            Err(error) => {
                tracing::warn!(%error, "what was reserved of the team's budget counts until the next request")
            }
        }
    }
}

/// Records what requests took. To do so again changes nothing.
///
/// # Errors
///
/// If the connection is lost. What the database refuses counts as reserved.
fn settle_answered(
    answered: &[AnsweredRequest],
    database: &Database,
    team: &TeamMembership,
) -> Result<(), DatabaseError> {
    for AnsweredRequest { name, cost, tokens } in answered {
        match database.settle(&team.project, name, *cost, *tokens) {
            Err(error) if !error.is_lost_connection() => {
                tracing::warn!(%error, "what was reserved of the team's budget counts as spent");
            }
            settled => settled?,
        }
    }
    Ok(())
}

impl BudgetedChat {
    /// Reserves a request, and waits for others where it must. Returns its reservation; `None` if the database cannot be asked
    /// and there is no limit.
    fn reserve(
        &mut self,
        request: &ChatRequest,
        watch: &mut dyn ChatObserver,
    ) -> Result<Option<RequestReservation>, ChatError> {
        if self.requests.is_away() {
            return Ok(None);
        }
        let one = self.estimate_one(request);
        let name = self.requests.next_name();
        let (agent, asked) = (self.agent, Cell::new(None::<RequestSpending>));
        let give_up = Instant::now() + MAX_AWAY_WAIT;
        let mut is_told = false;
        loop {
            let reserved = self.requests.try_to_reserve(&name, |database, team| {
                // Should an answer be lost, the database has what was asked for first.
                if let Some(most) = asked.get() {
                    return Ok(most);
                }
                let most = match agent {
                    Some(limits) => limits.most(one, &database.read_budget(&team.project)?),
                    None => one,
                };
                asked.set(Some(most));
                Ok(most)
            });
            let reason = match reserved {
                // The observer may have a reason by now that the request is not sent.
                Ok((TeamReservation::Granted, _)) if is_told && watch.is_cancelled() => {
                    self.requests.settle(&name, 0.0, 0);
                    return Err(ChatError::cancelled());
                }
                Ok((TeamReservation::Granted, most)) => return Ok(Some(RequestReservation { name, most })),
                Ok((TeamReservation::MustWait, _)) => BUDGET_UNDER_WAY,
                Ok((TeamReservation::Unpriced, _)) => {
                    return Err(unpriced_error("price_input and price_output of its reviewer say it"));
                }
                Ok((TeamReservation::Refused(budget), most)) => return Err(refused_error(&budget, most)),
                Err(error) if !self.requests.is_limited || Instant::now() >= give_up => {
                    return self.requests.go_without(&error).map(|()| None);
                }
                Err(_) => "the team's budget cannot be asked",
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

    /// Returns the most that one request may take, of which an agent makes several.
    fn estimate_one(&self, request: &ChatRequest) -> RequestSpending {
        let encoding = self.requests.facts.encoding;
        let input = count_request(request, &|text| tokens::count_tokens(encoding, text) as u64);
        self.requests.price(&Usage { input, output: request.max_output, ..Usage::default() })
    }

    /// Lets what an agent has taken count for what it may still take.
    fn lower_agent_limits(&mut self, cost: f64, tokens: u64) {
        if let Some(limits) = &mut self.agent {
            limits.cost = limits.cost.map(|left| (left - cost).max(0.0));
            limits.tokens = limits.tokens.map(|left| left.saturating_sub(tokens));
        }
    }
}

impl Chat for BudgetedChat {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
        let reserved = self.reserve(request, watch)?;
        let Some(RequestReservation { name, most }) = reserved else { return self.inner.respond(request, watch) };
        let mut watch = LostAnswers::new(watch, self.agent.is_some());
        let answer = self.inner.respond(request, &mut watch);
        // All that was reserved counts as spent for each of them.
        let lost = most.times(watch.count_with(&answer));
        let lost_cost = lost.cost.unwrap_or(0.0);
        match &answer {
            Ok(response) => {
                let mut counted = response.clone();
                fill_missing_usage(request, &mut counted, self.requests.facts.encoding);
                let RequestSpending { cost, tokens } = self.requests.price(&counted.usage);
                let cost = cost.unwrap_or(0.0);
                self.requests.settle(&name, cost + lost_cost, tokens.saturating_add(lost.tokens));
                self.lower_agent_limits(cost, tokens);
            }
            Err(_) => self.requests.settle(&name, lost_cost, lost.tokens),
        }
        answer
    }

    fn tool_support(&self) -> ToolSupport {
        self.inner.tool_support()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::config::{ModelCatalog, ReviewerKind, ReviewerSettings};
    use crate::domain::Time;
    use crate::team::postgres::fake_server::{ColumnValue, FakeServer, row_answer};

    /// Model that nothing may be sent to, and a person who waits for it.
    struct Nobody;

    impl Chat for Nobody {
        fn respond(&mut self, _: &ChatRequest, _: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
            Err(ChatError::cancelled())
        }

        fn tool_support(&self) -> ToolSupport {
            ToolSupport::None
        }
    }

    impl ChatObserver for Nobody {
        fn on_progress(&mut self, _: ChatProgress) {}

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    /// Returns the requests of a model, with a database at a port of this machine.
    fn requests_at(port: u16) -> BudgetedRequests {
        let team = TeamMembership {
            machine: "ada-1".parse().expect("a name"),
            log: "ada-1".parse().expect("a name"),
            place: format!("postgres://ada@127.0.0.1:{port}/team"),
            project: "p".to_owned(),
            joined_at: Time::UNIX_EPOCH,
            left_at: None,
        };
        BudgetedRequests {
            facts: ModelCatalog::default().facts_for_reviewer(&ReviewerSettings::new(ReviewerKind::Openai)),
            budget: BudgetConnection { team, database: None },
            is_limited: false,
            prefix: "r".to_owned(),
            count: 0,
            away_since: None,
            unsettled: Vec::new(),
        }
    }

    #[test]
    fn an_answer_that_comes_while_the_database_is_away_is_settled_by_the_next_request() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut requests = requests_at(listener.local_addr().expect("an address").port());
        let server = std::thread::spawn(move || {
            let granted = || row_answer(&[ColumnValue::Text("granted")]);
            let connect = || FakeServer::connect(listener.accept().expect("a client").0);
            let mut server = connect();
            server.read_statements(1);
            server.send(&[granted()]);
            drop(server);
            // The attempt to settle over another connection fails, too.
            drop(listener.accept().expect("a client"));
            let mut server = connect();
            // An answer to the next reservation would be refused, because it has other columns.
            server.read_statements(1);
            server.send(&[row_answer(&[ColumnValue::Bool(true)])]);
            server.read_statements(1);
            server.send(&[granted()]);
            server.read_statements(1);
            server.send(&[row_answer(&[ColumnValue::Bool(true)])]);
        });
        let most = RequestSpending { cost: Some(0.5), tokens: 100 };
        for is_settled in [false, true] {
            let name = requests.next_name();
            let reserved = requests.try_to_reserve(&name, |_, _| Ok(most)).expect("an answer");
            assert_eq!(reserved, (TeamReservation::Granted, most));
            assert!(requests.unsettled.is_empty(), "the database has got what it did not know");
            requests.settle(&name, 0.25, 50);
            assert_eq!(requests.unsettled.is_empty(), is_settled);
        }
        server.join().expect("all that was asked for");
    }

    #[test]
    fn one_attempt_to_reach_the_database_serves_a_request() {
        let server = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = server.local_addr().expect("an address").port();
        let attempts = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&attempts);
        // Every connection is counted, and closed without an answer.
        std::thread::spawn(move || {
            for connection in server.incoming() {
                seen.fetch_add(1, Ordering::SeqCst);
                drop(connection);
            }
        });
        for (title, agent) in [("a model", None), ("an agent", Some(AgentLimits { cost: None, tokens: None }))] {
            attempts.store(0, Ordering::SeqCst);
            let mut chat = BudgetedChat { inner: Box::new(Nobody), requests: requests_at(port), agent };
            for _ in 0..2 {
                let reserved = chat.reserve(&ChatRequest::default(), &mut Nobody).expect("no limit");
                assert!(reserved.is_none(), "{title}");
                // The next request does not ask a database that is away.
                assert_eq!(attempts.load(Ordering::SeqCst), 1, "{title}");
            }
        }
    }

    #[test]
    fn a_cancellation_counts_the_answer_that_is_on_its_way_and_no_other() {
        let waiting = || ChatProgress::Waiting { reason: "busy".to_owned(), wait_ms: 1 };
        let (sent, lost, some) = (|| ChatProgress::Sent, || ChatProgress::Lost, || ChatProgress::Bytes(3));
        let (cancelled, timeout) = (ChatError::cancelled(), ChatError::new(ErrorClass::Timeout, "late"));
        let overloaded = ChatError::new(ErrorClass::Overloaded, "busy");
        for (title, is_agent, told, error, expected) in [
            ("before it is sent", false, vec![], &cancelled, 0),
            ("in the answer", false, vec![sent(), some()], &cancelled, 1),
            ("in the pause after a lost answer", false, vec![sent(), lost(), waiting()], &cancelled, 1),
            ("in the pause after a refusal", false, vec![sent(), waiting()], &cancelled, 0),
            ("in the second answer", false, vec![sent(), lost(), waiting(), sent()], &cancelled, 2),
            ("an agent that waits for its provider", true, vec![sent(), waiting()], &cancelled, 1),
            ("an agent that took too long", true, vec![sent()], &timeout, 1),
            ("answers that took too long", false, vec![sent(), lost(), waiting(), sent(), lost()], &timeout, 2),
            ("refused to the end", false, vec![sent(), waiting(), sent()], &overloaded, 0),
        ] {
            let mut nobody = Nobody;
            let mut watch = LostAnswers::new(&mut nobody, is_agent);
            told.into_iter().for_each(|progress| watch.on_progress(progress));
            assert_eq!(watch.count_with(&Err(error.clone())), expected, "{title}");
        }
    }

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
