//! Asks for second opinions on the list of a panel: the judge of disputed findings, and the more expensive reviewer to
//! whom urgent ones are escalated.
//!
//! - A request contains only the findings that it is about, what was said about each, and their frozen code.
//! - An answer is in the journal before it is applied. A worker that goes on after another one reads it there and does
//!   not pay for it again. An opinion that an earlier run of the panel paid for is taken over
//!   ([`super::earlier_rulings`]).
//! - A request that fails, or that a budget forbids, leaves its findings as they are, and a note names them. The other
//!   requests are sent all the same, as far as the budgets allow.
//! - An answer without a verdict on a finding is no opinion on it, although it was paid for: the run does not ask again, and a
//!   later request for the panel does.
//! - A member that gives second opinions, too, is not asked about what nobody else reports.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::config::Prompt;
use crate::domain::{
    BudgetKind, BudgetStop, CancelReason, ChatMessage, ChatRequest, ChatResponse, ErrorClass, Finding, JournalEntry,
    Panel, PanelOpinion, RunEvent, RunStatus, TurnPhase, Usage, Voice, WindowUse, content_hash, text,
};
use crate::masking::Mask;
use crate::review::conversation::{BudgetLimit, BudgetProblem, RemainingBudget};
use crate::review::{ReviewOutcome, RunCost, apply_ruling, parse_rulings};
use crate::reviewers::chat::{ChatObserver, ChatProgress};
use crate::runner::RunnerError;
use crate::runner::reviewer_access::model_reviewer::{OpenedReviewer, describe_finding, read_code_around};
use crate::runner::worker::team_claim::ClaimedRequest;
use crate::runner::worker::worker_process::classify_error;
use crate::runner::worker::{CancelWatch, RunWorker};
use crate::store::HeartbeatWriter;
use crate::tokens;

/// Most findings in one request. Not from the literature: a model that judges more of them at once skips some.
const MAX_FINDINGS: usize = 20;
/// Tokens of the element around a finding, with its number. Not from the literature: a dozen, rounded up.
const FINDING_FRAME_TOKENS: u64 = 20;
/// Longest answer of a request, in tokens: a verdict and two sentences for each finding, and some thinking.
const MAX_ANSWER_TOKENS: u64 = 8_000;

/// Most findings that a note names, as many as one request has.
const MAX_NAMED_FINDINGS: usize = MAX_FINDINGS;

/// Result of a request.
enum OpinionAnswer {
    Given(Box<ChatResponse>),
    /// There is none, for this reason. The others are asked for all the same.
    Missing(String),
    /// The run was cancelled, as the outcome says.
    Cancelled,
}

/// Requests of the panel's run so far.
struct OpinionRequests {
    /// Results of earlier attempts by what was asked; the summary of the failure for a request that failed.
    recorded: HashMap<String, Result<Box<ChatResponse>, String>>,
    /// Notes in the journal.
    noted: HashSet<String>,
    /// Limits in the journal at which a request was not sent.
    stops: Vec<BudgetStop>,
    /// Number of the last request.
    turn: u32,
    spent: RunCost,
}

impl OpinionRequests {
    fn from_journal(entries: &[JournalEntry]) -> Self {
        let mut requests = Self {
            recorded: HashMap::new(),
            noted: HashSet::new(),
            stops: Vec::new(),
            turn: 0,
            spent: RunCost::default(),
        };
        let mut last = String::new();
        for entry in entries {
            match &entry.event {
                RunEvent::TurnAsked { turn, asked, .. } => {
                    requests.turn = requests.turn.max(*turn);
                    last.clone_from(asked);
                }
                RunEvent::TurnAnswered { response, cost, .. } => {
                    requests.spent.add(&response.usage, *cost, &response.model);
                    requests.recorded.insert(std::mem::take(&mut last), Ok(response.clone()));
                }
                RunEvent::Unanswered { turn, summary, .. } => {
                    requests.turn = requests.turn.max(*turn);
                    requests.recorded.insert(std::mem::take(&mut last), Err(summary.clone()));
                }
                RunEvent::Note { text } => {
                    requests.noted.insert(text.clone());
                }
                RunEvent::BudgetReached { stop } => requests.stops.push(*stop),
                _ => {}
            }
        }
        requests
    }
}

impl RunWorker<'_> {
    /// Asks for the second opinions of a panel and applies them to the outcome.
    pub(super) fn ask_for_opinions(
        &mut self,
        panel: &Panel,
        outcome: &mut ReviewOutcome,
        entries: &[JournalEntry],
    ) -> Result<(), RunnerError> {
        let mut requests = OpinionRequests::from_journal(entries);
        let ruled = if panel.opinions.is_empty() { Vec::new() } else { self.load_ruled_findings()? };
        for opinion in &panel.opinions {
            if outcome.status != RunStatus::Completed {
                break;
            }
            // Who was asked already is not asked again about the same finding.
            let (own, asked): (Vec<usize>, Vec<usize>) = (0..outcome.findings.len())
                .filter(|at| opinion.concerns(&outcome.findings[*at]) && !is_ruled_by(&outcome.findings[*at], opinion))
                .partition(|at| opinion.is_own_claim(&outcome.findings[*at]));
            if !own.is_empty() {
                let why = "nobody else reports what it reports itself";
                self.note_without_opinion(outcome, &mut requests, (&opinion.reviewer, &own), why);
            }
            let asked = self.apply_earlier_rulings(opinion, asked, outcome, &ruled);
            if asked.is_empty() {
                continue;
            }
            self.ask_opinion(panel, opinion, &asked, outcome, &mut requests)?;
        }
        outcome.spent = requests.spent;
        Ok(())
    }

    /// Asks one reviewer about the findings at these places, in as few requests as fit its window.
    fn ask_opinion(
        &mut self,
        panel: &Panel,
        opinion: &PanelOpinion,
        asked: &[usize],
        outcome: &mut ReviewOutcome,
        requests: &mut OpinionRequests,
    ) -> Result<(), RunnerError> {
        let opened = self
            .services
            .reviewers()
            .open_model(&opinion.reviewer, &self.record, &|| self.cancel_watch.check().is_some());
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(RunnerError::Reviewer(error)) if error.cancelled => {
                let reason = self.cancel_watch.check().unwrap_or(CancelReason::UserStop);
                (outcome.status, outcome.cancel) = (reason.status(), Some(reason));
                return Ok(());
            }
            Err(error @ RunnerError::Store(_)) => return Err(error),
            Err(error) => {
                let (class, summary) = (classify_error(&error), error.to_string());
                // A later request for the panel asks again: the key may be there then.
                if self.note_without_opinion(outcome, requests, (&opinion.reviewer, asked), &summary) {
                    requests.turn += 1;
                    self.buffer.push(RunEvent::Unanswered { turn: requests.turn, class, summary });
                }
                return Ok(());
            }
        };
        let mut pulse = self.services.store.start_heartbeat(&self.record.run_id, self.now());
        for batch in self.batch_findings(&opened, asked, outcome)? {
            let answer = match requests.recorded.remove(&batch.asked) {
                Some(Ok(response)) => OpinionAnswer::Given(response),
                Some(Err(why)) => OpinionAnswer::Missing(why),
                None => self.request_opinion(panel, &mut opened, &batch, outcome, (requests, &mut pulse))?,
            };
            let response = match answer {
                OpinionAnswer::Given(response) => response,
                OpinionAnswer::Missing(why) => {
                    self.note_without_opinion(outcome, requests, (&opinion.reviewer, &batch.findings), &why);
                    continue;
                }
                OpinionAnswer::Cancelled => break,
            };
            let rulings = parse_rulings(&response.text, batch.findings.len());
            let mut missing = batch.findings.clone();
            for mut ruling in rulings {
                ruling.reason = Mask::On.mask_key_shapes(&ruling.reason).into_owned();
                let at = batch.findings[ruling.number - 1];
                missing.retain(|left| *left != at);
                apply_ruling(&mut outcome.findings[at], &opinion.reviewer, &ruling);
            }
            self.note_missing_verdicts(outcome, requests, (&opinion.reviewer, &missing));
        }
        Ok(())
    }

    /// Sends one request and records its answer, or that there is none.
    fn request_opinion(
        &mut self,
        panel: &Panel,
        opened: &mut OpenedReviewer,
        batch: &OpinionBatch,
        outcome: &mut ReviewOutcome,
        (requests, pulse): (&mut OpinionRequests, &mut HeartbeatWriter),
    ) -> Result<OpinionAnswer, RunnerError> {
        let answered = self.wait_until_allowed(pulse)?;
        if let Some(reason) = answered.or_else(|| self.cancel_watch.check_now()) {
            (outcome.status, outcome.cancel) = (reason.status(), Some(reason));
            return Ok(OpinionAnswer::Cancelled);
        }
        if let Some(BudgetProblem { stop, note }) =
            self.find_opinion_budget_problem(panel, opened, batch, &requests.spent)?
        {
            // A later request for the panel asks again if the limit allows it then.
            if !requests.stops.contains(&stop) {
                requests.stops.push(stop);
                self.buffer.push(RunEvent::BudgetReached { stop });
            }
            return Ok(OpinionAnswer::Missing(note));
        }
        let window = WindowUse { tokens: batch.tokens, limit: batch.limit, messages: 1, ..WindowUse::default() };
        requests.turn += 1;
        let (turn, asked) = (requests.turn, batch.asked.clone());
        self.buffer.push(RunEvent::TurnAsked { turn, phase: TurnPhase::Finish, asked, window });
        self.flush()?;
        requests.spent.add_request(batch.tokens, batch.limit);
        pulse.begin_turn(self.now(), turn);
        let (answer, began, first) = loop {
            let (asked, now, began) = (&self.cancel_watch, self.now(), Instant::now());
            let claimed = self.begin_request(&opened.name);
            let mut watch = OpinionWatch { asked, pulse: &mut *pulse, now, began, first: None, claimed };
            let answer = opened.chat.respond(&batch.request, &mut watch);
            let (first, was_stopped) = (watch.first, watch.claimed.was_stopped());
            let is_cancelled = answer.as_ref().is_err_and(|error| error.cancelled);
            if !is_cancelled || self.cancel_watch.check().is_some() || !was_stopped {
                break (answer, began, first);
            }
            // Another machine may have reviewed the same while the request waited.
            if let Some(reason) = self.wait_until_allowed(pulse)? {
                (outcome.status, outcome.cancel) = (reason.status(), Some(reason));
                return Ok(OpinionAnswer::Cancelled);
            }
        };
        let first_ms = first.map_or(0, |first| (first.as_millis() as u64).max(1));
        let took_ms = began.elapsed().as_millis() as u64;
        match answer {
            Ok(response) => {
                let (response, cost) = self.account_answer(turn, response, &batch.request, opened);
                requests.spent.add(&response.usage, cost, &response.model);
                let response = Box::new(response);
                let recorded = response.clone();
                self.buffer.push(RunEvent::TurnAnswered {
                    turn,
                    response: recorded,
                    cost,
                    first_ms,
                    took_ms,
                    taken_over: false,
                });
                self.flush()?;
                self.record_cost(&requests.spent)?;
                Ok(OpinionAnswer::Given(response))
            }
            Err(error) if error.cancelled => {
                let reason = self.cancel_watch.check().unwrap_or(CancelReason::UserStop);
                (outcome.status, outcome.cancel) = (reason.status(), Some(reason));
                Ok(OpinionAnswer::Cancelled)
            }
            Err(error) => {
                let (class, summary) = (error.class, error.summary);
                self.buffer.push(RunEvent::Unanswered { turn, class, summary: summary.clone() });
                Ok(OpinionAnswer::Missing(summary))
            }
        }
    }

    /// Records that the last answer has no verdict on the findings at these places of the outcome, if there are any. A later
    /// request for the panel asks again.
    fn note_missing_verdicts(
        &mut self,
        outcome: &mut ReviewOutcome,
        requests: &mut OpinionRequests,
        (reviewer, missing): (&str, &[usize]),
    ) {
        if missing.is_empty() {
            return;
        }
        let end = self.buffer.len();
        if self.note_without_opinion(outcome, requests, (reviewer, missing), "its answer has no verdict") {
            let findings = text::format_count(missing.len(), "finding");
            let summary = format!("the answer of {reviewer} has no verdict on {findings}");
            let unanswered = RunEvent::Unanswered { turn: requests.turn, class: ErrorClass::Malformed, summary };
            // Before the note: a journal that has the note has both, wherever a killed worker has ended it.
            self.buffer.insert(end, unanswered);
        }
    }

    /// Notes that a reviewer was not asked, or has not answered, about the findings at these places of the outcome. Returns
    /// true if the journal did not have the note.
    fn note_without_opinion(
        &mut self,
        outcome: &mut ReviewOutcome,
        requests: &mut OpinionRequests,
        (reviewer, findings): (&str, &[usize]),
        why: &str,
    ) -> bool {
        let named =
            findings.iter().filter_map(|at| outcome.findings.get(*at)).map(|finding| finding.finding_id.as_str());
        let named = named.take(MAX_NAMED_FINDINGS).collect::<Vec<_>>().join(", ");
        let more = match findings.len().saturating_sub(MAX_NAMED_FINDINGS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let note = format!("no second opinion by {reviewer}: {why}; not judged: {named}{more}");
        let note = text::sanitize_line(&note).into_owned();
        // An earlier attempt may have recorded the same.
        let is_new = requests.noted.insert(note.clone());
        if is_new {
            self.buffer.push(RunEvent::Note { text: note.clone() });
        }
        outcome.notes.push(note);
        is_new
    }

    /// Returns the limit that a request would exceed, with the words for people: that of a run, of the day or of the panel. All
    /// second opinions of a panel are requests of one run.
    fn find_opinion_budget_problem(
        &self,
        panel: &Panel,
        opened: &OpenedReviewer,
        batch: &OpinionBatch,
        spent: &RunCost,
    ) -> Result<Option<BudgetProblem>, RunnerError> {
        let budget = &self.services.settings.budget;
        let next = opened.cost(&Usage { input: batch.tokens, ..Usage::default() });
        let limit = |limit: f64| BudgetLimit { limit, used: 0.0 };
        let run = RemainingBudget {
            run_tokens: budget.run_tokens.map(|tokens| limit(tokens as f64)),
            run_cost: budget.run_cost.map(|cost| limit(cost.as_f64())),
            ..RemainingBudget::default()
        };
        // A free request exceeds no limit in US dollars.
        if let Some(stop) = run.find_stop(spent, batch.tokens, Some(next).filter(|next| *next > 0.0)) {
            return Ok(Some(BudgetProblem { stop, note: stop.describe() }));
        }
        if opened.facts.is_free() {
            return Ok(None);
        }
        if let Some(problem) = self.services.reviewers().check_daily_budget()? {
            return Ok(Some(problem));
        }
        let Some(limit) = panel.max_cost else { return Ok(None) };
        let members = self.services.spent_by_members(panel, &self.record.run_id)?;
        let reached = panel.spent_before + members + spent.cost;
        let stop = BudgetStop { kind: BudgetKind::PanelCost, reached, limit };
        let problem = || BudgetProblem { stop, note: stop.describe_in_panel(Some(&panel.name)) };
        Ok((reached + next > limit).then(problem))
    }

    /// Divides the findings into requests.
    fn batch_findings(
        &self,
        opened: &OpenedReviewer,
        asked: &[usize],
        outcome: &ReviewOutcome,
    ) -> Result<Vec<OpinionBatch>, RunnerError> {
        let prompt_set = self.record.reviewed_by.prompt_set.as_deref();
        let prompts = self.services.reviewers().with_prompt_set(prompt_set).load_prompts()?;
        let facts = &opened.facts;
        let count = |text: &str| tokens::count_tokens(facts.encoding, text) as u64;
        let answer = MAX_ANSWER_TOKENS.min(facts.max_output).min(facts.context_window / 2);
        let limit = self.services.settings.window.max_tokens.min(facts.context_window.saturating_sub(answer));
        let frame = count(&prompts.render(&Prompt::Judge { findings: "" }));
        let mut groups: Vec<Vec<(usize, String)>> = Vec::new();
        let mut room = 0;
        for at in asked {
            let text = self.describe_reports(&outcome.findings[*at], opened.mask);
            let needed = count(&text) + FINDING_FRAME_TOKENS;
            match groups.last_mut().filter(|group| group.len() < MAX_FINDINGS && needed <= room) {
                Some(group) => group.push((*at, text)),
                None => {
                    groups.push(vec![(*at, text)]);
                    room = limit.saturating_sub(frame);
                }
            }
            room = room.saturating_sub(needed);
        }
        let batches = groups.into_iter().map(|group| {
            let numbered = (1..)
                .zip(&group)
                .map(|(number, (_, text))| format!("<finding number=\"{number}\">\n{text}</finding>\n\n"));
            let findings: String = numbered.collect();
            let words =
                opened.mask.mask_key_shapes(&prompts.render(&Prompt::Judge { findings: &findings })).into_owned();
            let tokens = count(&words);
            // The hash tells a request from others of the same size: an answer belongs to its words.
            let hash = content_hash([words.as_bytes()]);
            let number = text::format_count(group.len(), "finding");
            let asked = format!("{}{number} ({})", PanelOpinion::request_words(&opened.name), &hash[..12]);
            let request = ChatRequest {
                messages: vec![ChatMessage::User { text: words }],
                max_output: answer,
                temperature: Some(0.0),
                ..ChatRequest::default()
            };
            let findings = group.into_iter().map(|(at, _)| at).collect();
            OpinionBatch { findings, asked, request, tokens, limit }
        });
        Ok(batches.collect())
    }

    /// Describes what was said about a finding, and shows its code.
    pub(super) fn describe_reports(&self, finding: &Finding, mask: Mask) -> String {
        let mut said = format!("{}\n", describe_finding(finding));
        let own = finding.own_voice().and_then(|at| finding.voices.get(at));
        let repeats_own = |voice: &Voice| {
            own.is_some_and(|own| {
                (&own.title, &own.explanation, own.priority) == (&voice.title, &voice.explanation, voice.priority)
            })
        };
        for voice in finding.voices.iter().filter(|voice| !repeats_own(voice)) {
            let reason = Some(voice.explanation.as_str()).filter(|reason| *reason != finding.explanation);
            let reason = reason.filter(|reason| !reason.is_empty()).map_or_else(String::new, |it| format!(": {it}"));
            let line = format!("another reviewer, {} {}: {}{reason}", voice.priority, voice.kind, voice.title);
            said.push_str(&format!("{}\n", text::sanitize_line(&line)));
        }
        for dispute in &finding.disputed {
            said.push_str(&format!("disputed: {dispute}\n"));
        }
        let commit = &self.record.subject.snapshot_commit;
        let code = read_code_around(&self.services.repo, commit, finding, mask);
        let said = mask.mask_words(&said);
        format!("{said}\ncode:\n{code}")
    }
}

/// Findings of one request.
struct OpinionBatch {
    /// Places in the outcome, in the order of their numbers.
    findings: Vec<usize>,
    /// The request in a few words, and a hash of its text.
    asked: String,
    request: ChatRequest,
    /// Tokens of the request.
    tokens: u64,
    /// Maximum of `tokens`.
    limit: u64,
}

fn is_ruled_by(finding: &Finding, opinion: &PanelOpinion) -> bool {
    use crate::domain::FindingStep::Ruled;
    finding.steps.iter().any(|step| matches!(step, Ruled { by, .. } if *by == opinion.reviewer))
}

/// Observer of one request.
struct OpinionWatch<'a> {
    asked: &'a CancelWatch<'a>,
    pulse: &'a mut HeartbeatWriter,
    now: crate::domain::Time,
    began: Instant,
    first: Option<Duration>,
    claimed: ClaimedRequest<'a>,
}

impl ChatObserver for OpinionWatch<'_> {
    fn on_progress(&mut self, progress: ChatProgress) {
        self.claimed.add(&progress);
        if let ChatProgress::Bytes(bytes) = progress {
            self.first.get_or_insert_with(|| self.began.elapsed());
            let passed = self.began.elapsed();
            self.pulse.add_received_bytes(self.now.checked_add(passed).unwrap_or(self.now), bytes);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.asked.check().is_some() || self.claimed.may_be_needless()
    }
}
