//! Runs `revdeck asker FINDING`: sends one question to the model and stores the answer. The cost of the answer is
//! recorded before the answer is read.

use super::Asker;
use super::request_question::limit_question;
use crate::domain::{
    ChatRequest, ChatResponse, FindingId, FindingQuestion, QuestionOutcome, QuestionRequest, StopReason, Usage,
};
use crate::review::parse_question_answer;
use crate::reviewers::chat::{ChatObserver, ChatProgress};
use crate::runner::conclude::elapsed_ms;
use crate::runner::reviewer_access::reviewer_identity::connect;
use crate::runner::reviewer_access::usage_estimate::fill_missing_usage;
use crate::runner::{RunnerError, process};
use crate::store::{PaidAnswer, Store};

/// Observer of a request that ends when the user stops the question.
struct StopWatch<'a> {
    store: &'a Store,
    question: &'a QuestionRequest,
}

impl ChatObserver for StopWatch<'_> {
    fn on_progress(&mut self, _: ChatProgress) {}

    fn is_cancelled(&self) -> bool {
        self.store.is_question_stopped(self.question)
    }
}

impl Asker<'_> {
    /// Asks the recorded question about a finding and stores its result. Returns at once if there is none. The caller's
    /// standard input is the lock of the question.
    ///
    /// # Errors
    ///
    /// If the result cannot be stored; all other failures are stored as the result.
    pub fn run_asker(&self, id: &FindingId) -> Result<(), RunnerError> {
        // Another process would pay for the same question.
        if !self.services.store.is_question_worker(id) {
            return Ok(());
        }
        process::ignore_the_terminal();
        let stored = self.answer_pending(id);
        process::unlock_input();
        stored
    }

    fn answer_pending(&self, id: &FindingId) -> Result<(), RunnerError> {
        let Some(request) = self.services.store.pending_question(id)? else { return Ok(()) };
        let asked = self.ask_model(&request);
        let mut line = asked.unwrap_or_else(|error| {
            if self.services.store.is_question_stopped(&request) {
                let reason = "you stopped the question; the provider may charge for it".to_owned();
                return FindingQuestion::failed(request, reason);
            }
            tracing::error!(finding = %id, %error, "a question has no answer");
            FindingQuestion::failed(request, error.to_string())
        });
        line.took_ms = elapsed_ms(line.request.at, self.services.ambient.now());
        Ok(self.services.store.append_question(&line)?)
    }

    /// Sends the question and returns its line. The budgets are checked again, because others may have spent meanwhile.
    fn ask_model(&self, asked: &QuestionRequest) -> Result<FindingQuestion, RunnerError> {
        let material = self.load_asked_material(asked)?;
        let model = self.build_model_question(&material, &asked.reviewer, &asked.question)?;
        let (_, most) = limit_question(&asked.reviewer, &asked.question, &model)?;
        self.check_budgets(&asked.run_id, &asked.reviewer, most, Some(asked))?;
        let (paths, root) = (&self.services.paths, self.services.repo.root());
        let chat = connect(&asked.reviewer, model.settings, &model.facts, paths, &root)?;
        let mut chat = self.services.team().hold_to_budget(chat, &model.facts);
        let mut watch = StopWatch { store: &self.services.store, question: asked };
        let mut response = chat.respond(&model.request, &mut watch)?;
        fill_missing_usage(&model.request, &mut response, model.facts.encoding);
        let cost = model.facts.price.as_ref().map_or(0.0, |price| price.cost(&response.usage));
        if !model.facts.is_free() {
            self.record_spending(asked, &response.usage, cost);
        }
        Ok(FindingQuestion {
            request: asked.clone(),
            outcome: read_outcome(&model.request, &response),
            model: response.model,
            tokens: response.usage,
            cost,
            took_ms: 0,
        })
    }

    /// Adds an answer to the account of the day.
    fn record_spending(&self, asked: &QuestionRequest, usage: &Usage, cost: f64) {
        let paid = PaidAnswer {
            at: self.services.ambient.now(),
            // The account is per user; the run id names the run whose finding the money was spent on.
            run_id: asked.run_id.clone(),
            turn: 1,
            reviewer: asked.reviewer.clone(),
            tokens: usage.total(),
            cost,
            estimated: usage.estimated,
        };
        if let Err(error) = self.services.reviewers().spending().append(&paid) {
            tracing::warn!(finding = %asked.finding_id, %error, "what was paid is missing from the account of the day");
        }
    }
}

/// Returns the answer of a response, or the reason why it has none.
fn read_outcome(request: &ChatRequest, response: &ChatResponse) -> QuestionOutcome {
    if let Some(answer) = parse_question_answer(&response.text) {
        return QuestionOutcome::Answer(answer);
    }
    QuestionOutcome::Failure(match response.stop {
        StopReason::Refused => "the model, or a filter in front of it, refused".to_owned(),
        StopReason::Length => format!("the answer had only reasoning: it was cut off at {} tokens", request.max_output),
        _ => "the answer is empty".to_owned(),
    })
}
