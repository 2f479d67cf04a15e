//! Prepares a question: who answers, what is sent and the most that it may cost. Starts the worker that asks.

use super::error::MuteReviewer;
use super::question_material::{MaterialLimits, QuestionMaterial};
use super::{AskError, Asker};
use crate::config::{ModelCatalog, ModelFacts, Prompt, ReviewerKind, ReviewerSettings};
use crate::domain::{
    Actor, ChatMessage, ChatRequest, FindingId, FindingQuestion, QuestionRequest, RunId, RunRecord, Source, Usage,
    Voice, text,
};
use crate::masking::Mask;
use crate::policy::{BudgetAmount, QuestionLimits, check_question_budget};
use crate::runner::import::OWN_REVIEWER;
use crate::runner::reviewer_access::usage_estimate::count_request;
use crate::runner::{BUILTIN_REVIEWER, CostLimit, RunnerError, process};
use crate::store::{Store, StoreError, UnsettledQuestion};
use crate::tokens;

/// Longest answer in tokens, reasoning included. Own choice: a page, and the reasoning before it.
const MAX_ANSWER_TOKENS: u64 = 8_000;
/// Most tokens of code, of the change, and of earlier questions in a request. Own choice: a file of 600 lines has about
/// 6,000 tokens. In a small window, each part has at most a share of it.
const MAX_CODE_TOKENS: u64 = 12_000;
const MAX_HUNK_TOKENS: u64 = 6_000;
const MAX_EARLIER_TOKENS: u64 = 6_000;
/// Percentage of the counted tokens that a request may take: counts of models whose tokenizer is not public are
/// estimates.
const COUNT_MARGIN_PERCENT: u64 = 115;

/// A question that may be asked: all checks have passed, and nothing was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedQuestion {
    /// Finding that the user named.
    pub finding_id: FindingId,
    /// Finding with which the question is recorded: that of a panel's list, if it has the problem under another id.
    pub listed: FindingId,
    /// Report that the reviewer is shown, if it is not that of `listed`.
    pub reported_as: Option<FindingId>,
    /// Run whose snapshot has the code that is sent.
    pub run_id: RunId,
    /// Reviewer that answers.
    pub reviewer: String,
    /// Reviewers that report the finding and can answer, among which the user can choose.
    pub answerers: Vec<String>,
    /// The question on one line with masked secrets; empty if it is not known yet.
    pub question: String,
    /// The most that it may cost.
    pub limit: CostLimit,
    /// The most that it may take of the budgets; nothing for a free reviewer.
    pub most: BudgetAmount,
}

/// Next step of the user with questions about a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionPlan {
    /// Asks a question.
    Ask(Box<PreparedQuestion>),
    /// Stops the question that is on its way. No second one is asked before it has its result.
    Stop(QuestionRequest),
}

/// The request to the model, and what is known of the model.
pub(super) struct ModelQuestion<'a> {
    pub settings: &'a ReviewerSettings,
    pub facts: ModelFacts,
    pub request: ChatRequest,
}

impl Asker<'_> {
    /// Determines what the user can do: stop the question about the finding that is on its way, or ask a reviewer.
    /// `reviewer` is as in [`Asker::prepare_question`].
    ///
    /// # Errors
    ///
    /// As [`Asker::prepare_question`].
    pub fn plan_question(&self, finding: &FindingId, reviewer: Option<&str>) -> Result<QuestionPlan, RunnerError> {
        if let Some(pending) = self.find_pending(finding)? {
            return Ok(QuestionPlan::Stop(pending));
        }
        Ok(QuestionPlan::Ask(Box::new(self.prepare_question(finding, reviewer, None)?)))
    }

    /// Checks whether a question may be asked, and computes the most that it may cost. `reviewer` is `None` for the one
    /// that reported the finding; of a panel, the one whose words the finding has, else the first other that reports it and
    /// can answer. Without `question`, the longest one counts. A question about a report that a panel lists under another id goes
    /// to the member that reported it, with that report and the code that the member has reviewed; if it cannot answer, it is one
    /// about the finding of the list.
    ///
    /// # Errors
    ///
    /// If the finding or its code is gone, the reviewer cannot answer, its key is missing, the question is too long, or
    /// it may pass a budget.
    pub fn prepare_question(
        &self,
        finding: &FindingId,
        reviewer: Option<&str>,
        question: Option<&str>,
    ) -> Result<PreparedQuestion, RunnerError> {
        let question = question.map(str::trim);
        match question.map(|question| question.chars().count()) {
            Some(0) => return Err(AskError::Empty.into()),
            Some(length) if length > QuestionRequest::MAX_CHARS => return Err(AskError::TooLong.into()),
            _ => {}
        }
        let reported = self.load_question_material(finding)?;
        let (reviewer, material) = match self.resolve_answerer(reviewer, &reported) {
            Err(refusal) if reviewer.is_none() && reported.reported_as().is_some() => {
                // Another member that reports the problem may answer.
                let listed = self.load_question_material(&reported.listed)?;
                (self.resolve_answerer(None, &listed).map_err(|_| refusal)?, listed)
            }
            resolved => (resolved?, reported),
        };
        self.services.reviewers().resolve_identity(Some(&reviewer))?;
        self.services.reviewers().check_own_key(&reviewer)?;
        let mask = self.mask_for(&reviewer)?;
        let question = mask.mask_text(None, &text::sanitize_line(question.unwrap_or_default())).into_owned();
        let model = self.build_model_question(&material, &reviewer, &question)?;
        let (limit, most) = limit_question(&reviewer, &question, &model)?;
        let answerers = self.list_answerers(&material);
        let (finding_id, reported_as) = (finding.clone(), material.reported_as().cloned());
        let QuestionMaterial { listed, run: RunRecord { run_id, .. }, .. } = material;
        self.check_budgets(&run_id, &reviewer, most, None)?;
        Ok(PreparedQuestion { finding_id, listed, reported_as, run_id, reviewer, answerers, question, limit, most })
    }

    /// Records a question and starts the worker that asks it; does not wait for the answer. Until then, the most that it
    /// may take is reserved in the budgets.
    ///
    /// # Errors
    ///
    /// If the actor is not the user, another question about the finding has no answer yet, the question may pass a budget
    /// together with others on their way, or the worker cannot be started. Nothing was sent then.
    pub fn ask(&self, prepared: PreparedQuestion, actor: Actor) -> Result<QuestionRequest, RunnerError> {
        if actor != Actor::User {
            return Err(AskError::NotTheUser.into());
        }
        let PreparedQuestion { listed: finding_id, reported_as, run_id, reviewer, question, most, .. } = prepared;
        if question.is_empty() {
            return Err(AskError::Empty.into());
        }
        let store = &self.services.store;
        let Some(mut lock) = store.lock_question(&finding_id)? else { return Err(AskError::Busy(finding_id).into()) };
        record_lost_question(store, &finding_id)?;
        let input = lock.clone_file()?;
        // Under the store's lock, so that of two questions that fit one by one, the second sees the first.
        let request = store.with_lock_as(|_| -> Result<QuestionRequest, RunnerError> {
            self.check_budgets(&run_id, &reviewer, most, None)?;
            let request = QuestionRequest {
                finding_id,
                run_id,
                question,
                reviewer,
                at: self.services.ambient.now(),
                reserved_tokens: most.tokens,
                reserved_microdollars: (most.cost * 1e6).ceil() as u64,
                reported_as,
            };
            lock.write_request(&request)?;
            Ok(request)
        })?;
        let arguments = ["asker", request.finding_id.as_str()];
        let log = crate::runner::launcher::start_workers::WORKER_LOG;
        let (repo, paths) = (&self.services.repo, &self.services.paths);
        match process::spawn_detached(repo, paths, &repo.root(), &arguments, input, log) {
            Ok(child) => process::reap(child),
            Err(error) => {
                lock.clear_request()?;
                lock.release();
                return Err(error);
            }
        }
        Ok(request)
    }

    /// Stops the question about a finding that is on its way; the worker stores that as its result. Returns the question,
    /// or `None` if none is on its way.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    pub fn stop_question(&self, finding: &FindingId) -> Result<Option<QuestionRequest>, StoreError> {
        let pending = self.find_pending(finding)?;
        if let Some(request) = &pending {
            self.services.store.stop_question(request)?;
        }
        Ok(pending)
    }

    /// Returns the question about the problem of a finding that is on its way.
    fn find_pending(&self, finding: &FindingId) -> Result<Option<QuestionRequest>, StoreError> {
        let store = &self.services.store;
        // Most of the time nothing is asked, and the findings need not be read.
        if store.unanswered_findings()?.is_empty() {
            return Ok(None);
        }
        let view = store.view()?;
        store.pending_question_about(&view, finding)
    }

    /// Records the results of questions whose workers died.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    pub fn reconcile_questions(&self) -> Result<(), StoreError> {
        let store = &self.services.store;
        store.unanswered_findings()?.iter().try_for_each(|id| settle_question(store, id))
    }

    /// Returns the name of the reviewer that answers: the named one, or the first that reports the finding and can answer.
    ///
    /// # Errors
    ///
    /// If it cannot answer. Where none can, the error is that of the one whose words the finding has.
    fn resolve_answerer(&self, named: Option<&str>, material: &QuestionMaterial) -> Result<String, RunnerError> {
        let mute = |reviewer: &str, sort| Err(AskError::Mute { reviewer: reviewer.to_owned(), sort }.into());
        let reporters = material.reporters();
        let name = match named {
            Some(name) => name,
            None if material.run.source == Source::Import => {
                let importer = &material.run.reviewed_by.name;
                let sort = if importer == OWN_REVIEWER { MuteReviewer::Own } else { MuteReviewer::Import };
                return mute(importer, sort);
            }
            None => {
                let able = reporters.iter().find(|name| self.check_answers(name).is_ok());
                let Some(name) = able.or(reporters.first()) else {
                    return mute(Voice::SECRET_SCAN, MuteReviewer::SecretScan);
                };
                *name
            }
        };
        self.check_answers(name)?;
        Ok(name.to_owned())
    }

    /// Returns the reviewers that report the finding and can answer.
    fn list_answerers(&self, material: &QuestionMaterial) -> Vec<String> {
        let able = material.reporters().into_iter().filter(|name| self.check_answers(name).is_ok());
        able.map(str::to_owned).collect()
    }

    /// Checks that a reviewer is a model of the settings.
    fn check_answers(&self, name: &str) -> Result<(), RunnerError> {
        let mute = |sort| Err(AskError::Mute { reviewer: name.to_owned(), sort }.into());
        if name == BUILTIN_REVIEWER {
            return mute(MuteReviewer::Builtin);
        }
        match self.services.reviewers().model_settings(name)?.kind {
            ReviewerKind::Builtin => mute(MuteReviewer::Builtin),
            ReviewerKind::Command => mute(MuteReviewer::Agent),
            _ => Ok(()),
        }
    }

    fn mask_for(&self, reviewer: &str) -> Result<Mask, RunnerError> {
        let settings = self.services.reviewers().model_settings(reviewer)?;
        Ok(if settings.mask_secrets { Mask::On } else { Mask::Off })
    }

    /// Builds the request to the model.
    pub(super) fn build_model_question(
        &self,
        material: &QuestionMaterial,
        reviewer: &str,
        question: &str,
    ) -> Result<ModelQuestion<'_>, RunnerError> {
        let settings = self.services.reviewers().model_settings(reviewer)?;
        let facts = ModelCatalog::load(&self.services.paths)?.facts_for_reviewer(settings);
        let mask = self.mask_for(reviewer)?;
        let window = facts.context_window;
        let encoding = facts.encoding;
        let limits = MaterialLimits {
            code: MAX_CODE_TOKENS.min(window / 4),
            hunk: MAX_HUNK_TOKENS.min(window / 8),
            earlier: MAX_EARLIER_TOKENS.min(window / 8),
            count: &|text| tokens::count_tokens(encoding, text) as u64,
        };
        let prompts = self.services.reviewers().load_prompts()?;
        let (code, hunk) = (self.read_code(material, mask, &limits), self.read_hunk(material, mask, &limits));
        let (finding, earlier) = (material.describe_finding(), material.describe_earlier(&limits));
        let (finding, earlier) = (mask.mask_words(&finding), mask.mask_words(&earlier));
        let question = mask.mask_text(None, question);
        let task =
            Prompt::AskTask { finding: &finding, code: &code, hunk: &hunk, earlier: &earlier, question: &question };
        let request = ChatRequest {
            system: prompts.render(&Prompt::Ask),
            messages: vec![ChatMessage::User { text: prompts.render(&task) }],
            max_output: facts.max_output.min(MAX_ANSWER_TOKENS).min(window / 4),
            ..ChatRequest::default()
        };
        Ok(ModelQuestion { settings, facts, request })
    }

    /// Checks that a question fits the budgets together with the other questions of the repository that are on their way:
    /// with all of them, or with those that were asked before `own`.
    ///
    /// # Errors
    ///
    /// If it may pass a budget.
    pub(super) fn check_budgets(
        &self,
        run: &RunId,
        reviewer: &str,
        most: BudgetAmount,
        own: Option<&QuestionRequest>,
    ) -> Result<(), RunnerError> {
        if most == BudgetAmount::default() {
            return Ok(());
        }
        let budget = &self.services.settings.budget;
        let limits = QuestionLimits {
            run_cost: budget.run_cost.map(|most| most.as_f64()),
            run_tokens: budget.run_tokens,
            day_cost: budget.day_cost.map(|most| most.as_f64()),
            day_tokens: budget.day_tokens,
        };
        let mut of_run = self.used_by_questions(run)?;
        let spent = self.services.reviewers().spent_today()?;
        let mut of_day = BudgetAmount { cost: spent.cost, tokens: spent.tokens };
        let order = |request: &QuestionRequest| (request.at, request.finding_id.clone());
        for other in self.services.store.pending_questions()? {
            if own.is_some_and(|own| order(&other) >= order(own)) {
                continue;
            }
            let reserved =
                BudgetAmount { cost: other.reserved_microdollars as f64 / 1e6, tokens: other.reserved_tokens };
            of_day += reserved;
            if other.run_id == *run {
                of_run += reserved;
            }
        }
        check_question_budget(limits, of_run, of_day, most)
            .map_err(|refusal| AskError::OverBudget { reviewer: reviewer.to_owned(), refusal }.into())
    }

    /// Returns what the questions about the findings of a run have taken. Those of free reviewers count, too, because a
    /// line does not tell the price.
    fn used_by_questions(&self, run: &RunId) -> Result<BudgetAmount, StoreError> {
        let mut used = BudgetAmount::default();
        for line in self.services.store.question_log()?.iter().filter(|line| line.request.run_id == *run) {
            used += BudgetAmount { cost: line.cost, tokens: line.tokens.total() };
        }
        Ok(used)
    }
}

/// Returns the most that a question may cost, and the most that it may take of the budgets.
///
/// # Errors
///
/// If it may pass the window of the model.
pub(super) fn limit_question(
    reviewer: &str,
    question: &str,
    model: &ModelQuestion<'_>,
) -> Result<(CostLimit, BudgetAmount), RunnerError> {
    let facts = &model.facts;
    let most = most_usage(model, question);
    let (tokens, window) = (most.total(), facts.context_window);
    if tokens > window {
        return Err(AskError::TooLarge { reviewer: reviewer.to_owned(), tokens, window }.into());
    }
    if facts.is_free() {
        return Ok((CostLimit::Nothing, BudgetAmount::default()));
    }
    let cost = facts.price.as_ref().map(|price| price.cost(&most));
    let limit = cost.map_or(CostLimit::Unknown { tokens: Some(tokens) }, CostLimit::at_most);
    Ok((limit, BudgetAmount { cost: cost.unwrap_or(0.0), tokens }))
}

/// Returns the most tokens that a question takes. A question that is not known yet counts as the longest one.
fn most_usage(model: &ModelQuestion<'_>, question: &str) -> Usage {
    let count = |text: &str| tokens::count_tokens(model.facts.encoding, text) as u64;
    // A character is about a token at most.
    let unknown = if question.is_empty() { QuestionRequest::MAX_CHARS as u64 } else { 0 };
    let input = (count_request(&model.request, &count) + unknown) * COUNT_MARGIN_PERCENT / 100;
    Usage { input, output: model.request.max_output, ..Usage::default() }
}

/// Waits for the answer to a question, and returns its line. Records a failure if the worker died.
///
/// # Errors
///
/// If the store cannot be read or written.
pub fn wait_for_answer(store: &Store, request: &QuestionRequest) -> Result<FindingQuestion, StoreError> {
    let id = &request.finding_id;
    store.wait_for_question(id)?;
    // The next question may be on its way already; its process has recorded the failure of this one then.
    settle_question(store, id)?;
    let line = store.question_at(id, request.at)?;
    Ok(line.unwrap_or_else(|| FindingQuestion::failed(request.clone(), "its line is gone".to_owned())))
}

/// Records the failure of a question whose worker died; nothing if a worker lives.
fn settle_question(store: &Store, id: &FindingId) -> Result<(), StoreError> {
    let Some(lock) = store.lock_question(id)? else { return Ok(()) };
    let recorded = record_lost_question(store, id);
    lock.release();
    recorded
}

/// Records the result of a question whose worker died: the answer, if only its line could not be appended, else a failure.
/// The caller holds the lock of the question.
fn record_lost_question(store: &Store, id: &FindingId) -> Result<(), StoreError> {
    match store.unsettled_question(id)? {
        None => Ok(()),
        Some(UnsettledQuestion::Answered(line)) => store.append_question(&line),
        Some(UnsettledQuestion::Asked(lost)) => {
            let reason = "worker died; the provider may charge for its request".to_owned();
            store.append_question(&FindingQuestion::failed(lost, reason))
        }
    }
}
