//! The engine of a review by a model: what is asked next, what is made of each answer, how it ends.

use std::collections::{HashSet, VecDeque};

use super::delivery::{Delivery, Part, fitting};
use super::window::{Composed, Window};
use super::{Count, FINISH, Limits, REPORT_FINDINGS};
use crate::domain::{
    CancelReason, ChatRequest, ErrorClass, FileCoverage, Finding, FindingId, LineRange, Message, Rejected, Reported,
    Response, RunEvent, RunStatus, Stop, ToolCall, ToolOutcome, ToolSpec, TurnPhase, Usage, WindowUse, text,
};
use crate::review::replay::to_u32;
use crate::review::{Accumulated, Admission, Examined, Extracted, Outcome, Plan, PlannedFile, Spent, extract};

/// Tool calls of one answer that are carried out; the others are not passed on.
const MAX_CALLS: usize = 16;
/// Answers in a row that may be good for nothing before the run fails: the first and its one retry.
const MAX_BAD: u32 = 2;
/// Files that are named when done was said too early.
const LISTED: usize = 40;
/// Of the pinned task at most this part tells of known findings: an eighth.
const KNOWN_SHARE: u64 = 8;
/// Of a known finding's title so much is told. Characters.
const KNOWN_TITLE: usize = 120;
/// What a journal entry keeps of what was asked. Characters.
const ASKED: usize = 400;

/// What is reviewed, and with what.
pub struct Task {
    pub plan: Plan,
    /// Findings that came along with `plan.carried`.
    pub known: Vec<Finding>,
    /// The diff in the order in which it is delivered.
    pub parts: Vec<Part>,
    pub system: String,
    /// Empty for models that take none.
    pub tools: Vec<ToolSpec>,
    pub limits: Limits,
    pub count: Count,
    /// The words of the prompts.
    pub say: Box<dyn Fn(Say<'_>) -> String>,
    /// What the fixed parts cost beside their text: schemas are billed in a form of the provider's own. Tokens.
    pub overhead: u64,
}

/// What has to be said to the model.
#[derive(Debug, Clone, Copy)]
pub enum Say<'a> {
    /// The pinned task, with as much of the diff as it may hold and what comes later.
    Task {
        diff: &'a str,
        later: &'a str,
        /// What earlier reviews of the same change found in the parts that are not sent again, a line each; may be empty.
        known: &'a str,
    },
    /// The next part of the diff.
    More {
        diff: &'a str,
        later: &'a str,
    },
    /// Done was said, and these were not reviewed: paths, a line each.
    Uncovered {
        hunks: &'a str,
    },
    Phase {
        phase: TurnPhase,
        turn: u32,
        of: u32,
    },
    /// The last allowed turn.
    Last,
    /// The answer was cut for length.
    Cut,
    Retry {
        trouble: Trouble,
        reason: &'a str,
    },
    /// A line for an old tool result.
    Masked {
        call: &'a ToolCall,
        tokens: u64,
    },
    /// A request beside the turns: these messages in a few lines.
    Summarise {
        messages: &'a str,
    },
    /// A request beside the turns: is this finding real?
    Opinion {
        finding: &'a Finding,
    },
}

impl Task {
    /// A review of which nothing is to be sent: it ends as soon as it has begun.
    pub fn nothing_to_send(plan: Plan, known: Vec<Finding>) -> Self {
        Self {
            plan,
            known,
            parts: Vec::new(),
            system: String::new(),
            tools: Vec::new(),
            limits: Limits::none(),
            count: Box::new(|_| 0),
            say: Box::new(|_| String::new()),
            overhead: 0,
        }
    }

    /// What of every request is always the same: prompt, tools, and what they cost besides. Tokens.
    pub fn fixed_tokens(&self) -> u64 {
        let specs = self.tools.iter().map(|tool| (self.count)(&serde_json::to_string(tool).unwrap_or_default()));
        (self.count)(&self.system) + specs.sum::<u64>() + self.overhead
    }

    /// The most that known findings take of the pinned task. Tokens.
    pub fn known_tokens(&self) -> u64 {
        if self.known.is_empty() { 0 } else { self.limits.pinned_tokens() / KNOWN_SHARE }
    }

    /// How many parts of the diff the first request has.
    pub fn first_parts(&self) -> usize {
        fitting(self.parts.iter(), self.opening().1)
    }

    /// What the first request tells of known findings, and the tokens that it has for the diff.
    fn opening(&self) -> (String, u64) {
        let known = known_lines(&self.known, &self.plan.open(), self.known_tokens(), &self.count);
        let words = (self.count)(&(self.say)(Say::Task { diff: "", later: "", known: &known }));
        (known, self.limits.pinned_tokens().saturating_sub(self.fixed_tokens() + words))
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("plan", &self.plan).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What was wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Empty,
    Refused,
    Unreadable,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    pub outcome: ToolOutcome,
    /// One line for a person.
    pub summary: String,
    /// Lines of files that it shows.
    pub shown: Vec<(String, LineRange)>,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The first event.
    Started(Box<Task>),
    /// The answer to what was asked, and what it cost in US dollars; `None` when an earlier run has paid for it.
    Answered {
        response: Box<Response>,
        first_ms: u64,
        took_ms: u64,
        cost: Option<f64>,
    },
    /// There is none.
    Failed {
        class: ErrorClass,
        summary: String,
    },
    /// It was not asked, as it may not be paid for: why.
    Unaffordable(String),
    /// What the reports are worth, in their order.
    Examined(Vec<Examined>),
    /// In the order of the calls.
    ToolsAnswered(Vec<ToolAnswer>),
    CancelAsked(CancelReason),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Append(RunEvent),
    Ask {
        turn: u32,
        request: Box<ChatRequest>,
    },
    /// Hold these reports against the snapshot.
    Examine {
        turn: u32,
        reports: Vec<Reported>,
    },
    RunTools {
        turn: u32,
        calls: Vec<ToolCall>,
    },
    Finish(Box<Outcome>),
}

/// What the engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    NotStarted,
    Answer,
    /// The model's summary of what left the window.
    Summary,
    /// A second opinion.
    Opinion,
    Verdicts,
    Results,
    Over,
}

/// The engine of one conversation.
pub struct Dialog {
    pub(super) stage: Stage,
    pub(super) plan: Plan,
    pub(super) system: String,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) say: Box<dyn Fn(Say<'_>) -> String>,
    pub(super) window: Window,
    pub(super) delivery: Delivery,
    pub(super) turn: u32,
    pub(super) phase: TurnPhase,
    /// What the next request asks for, for a person.
    pub(super) asked: Vec<String>,
    pub(super) accumulated: Accumulated,
    /// Findings that a second opinion called false.
    pub(super) withdrawn: HashSet<FindingId>,
    pub(super) rejected: Vec<Rejected>,
    pub(super) notes: Vec<String>,
    pub(super) covered: Vec<FileCoverage>,
    pub(super) spent: Spent,
    /// Tokens of the request that is on its way.
    asking: u64,
    /// The answer that is being worked on.
    pub(super) answer: Option<Response>,
    pub(super) extracted: Extracted,
    /// The tool calls that are being carried out.
    pub(super) calls: Vec<ToolCall>,
    /// Answers in a row that were good for nothing.
    pub(super) bad: u32,
    /// Whether anything structured ever came.
    heard: Heard,
    shrunk: Shrunk,
    /// Findings that want a second opinion.
    pub(super) opinions: VecDeque<Finding>,
    /// Second opinions asked for; they are numbered after the turns.
    pub(super) judgements: u32,
    /// The one that is asked about.
    pub(super) judged: Option<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    Findings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shrunk {
    NotYet,
    Once,
}

impl Default for Dialog {
    fn default() -> Self {
        Self::new()
    }
}

impl Dialog {
    pub fn new() -> Self {
        Self {
            stage: Stage::NotStarted,
            plan: Plan::default(),
            system: String::new(),
            tools: Vec::new(),
            say: Box::new(|_| String::new()),
            window: Window::new(Box::new(|_| 0), Limits::none(), 0),
            delivery: Delivery::default(),
            turn: 0,
            phase: TurnPhase::Investigate,
            asked: Vec::new(),
            accumulated: Accumulated::default(),
            withdrawn: HashSet::new(),
            rejected: Vec::new(),
            notes: Vec::new(),
            covered: Vec::new(),
            spent: Spent::default(),
            asking: 0,
            answer: None,
            extracted: Extracted::default(),
            calls: Vec::new(),
            bad: 0,
            heard: Heard::Nothing,
            shrunk: Shrunk::NotYet,
            opinions: VecDeque::new(),
            judgements: 0,
            judged: None,
        }
    }

    /// Takes an event in and says what is to be done. After [`Effect::Finish`] nothing more is.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match (self.stage, event) {
            (Stage::NotStarted, Event::Started(task)) => self.start(*task),
            (Stage::Answer, Event::Answered { response, first_ms, took_ms, cost }) => {
                self.answered(*response, first_ms, took_ms, cost)
            }
            (Stage::Answer, Event::Failed { class, summary }) => self.failed(class, summary),
            (Stage::Summary | Stage::Opinion, Event::Answered { response, first_ms, took_ms, cost }) => {
                self.aside(*response, first_ms, took_ms, cost)
            }
            (Stage::Summary | Stage::Opinion, Event::Failed { class, summary }) => self.aside_failed(class, summary),
            (Stage::Opinion, Event::Unaffordable(reason)) => self.no_opinions(reason),
            (Stage::Answer | Stage::Summary, Event::Unaffordable(reason)) => self.unaffordable(reason),
            (Stage::Verdicts, Event::Examined(examined)) => self.examined(examined),
            (Stage::Results, Event::ToolsAnswered(answers)) => self.tools_answered(answers),
            (Stage::Over, _) => Vec::new(),
            (_, Event::CancelAsked(reason)) => self.cancelled(reason),
            _ => Vec::new(),
        }
    }

    /// The turn that is on its way, from 1; 0 before the first.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// What it has cost so far.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    fn start(&mut self, task: Task) -> Vec<Effect> {
        let fixed = task.fixed_tokens();
        let (known_told, first) = task.opening();
        let Task { plan, known, parts, system, tools, limits, count, say, overhead: _ } = task;
        let planned = RunEvent::Planned {
            files: to_u32(plan.files.len() + plan.left_out.len()),
            hunks: to_u32(plan.files.iter().map(|file| file.hunks.len()).sum()),
            left_out: plan.left_out.clone(),
        };
        let open = plan.open();
        known.iter().for_each(|finding| self.accumulated.know(finding));
        let files = open.len();
        self.delivery = Delivery::new(open, parts);
        (self.plan, self.system, self.tools, self.say) = (plan, system, tools, say);
        self.window = Window::new(count, limits, fixed);
        let mut effects = vec![Effect::Append(planned)];
        if files == 0 {
            effects.extend(self.finish(RunStatus::Completed, None, None));
            return effects;
        }
        if fixed >= self.window.limits().window_tokens * 2 / 5 {
            let text = format!(
                "the prompt and the tools alone take {fixed} tokens and a request may hold {}; raise window.max_tokens or the reviewer's context_window",
                self.window.limits().window_tokens
            );
            effects.extend(self.fail(ErrorClass::Configuration, text));
            return effects;
        }
        let diff = self.next_parts(first);
        let later = self.later();
        let task = (self.say)(Say::Task { diff: &diff, later: &later, known: &known_told });
        self.window.say(&task);
        self.asked.push(format!("review {}", text::count(files, "file")));
        effects.extend(self.ask());
        effects
    }

    /// The next parts of the diff that fit, as one text.
    fn next_parts(&mut self, tokens: u64) -> String {
        let parts = self.delivery.take(tokens);
        parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// What of the diff comes later, in words for the model.
    fn later(&self) -> String {
        match self.delivery.parts_left() {
            0 => String::new(),
            parts => format!("{parts} more parts of the diff, about {} tokens, follow.", self.delivery.tokens_left()),
        }
    }

    /// The next request, or the end when nothing more may be asked.
    fn ask(&mut self) -> Vec<Effect> {
        let limits = self.window.limits().clone();
        if self.turn >= limits.max_turns {
            return self.end();
        }
        self.turn += 1;
        let phase = limits.phase(self.turn);
        let last = self.turn == limits.max_turns;
        if last && self.turn > 1 {
            let words = (self.say)(Say::Last);
            self.window.say(&words);
            self.asked.push("the final report".to_owned());
        } else if phase != self.phase || self.turn == 1 {
            let words = (self.say)(Say::Phase { phase, turn: self.turn, of: limits.max_turns });
            self.window.say(&words);
        }
        self.phase = phase;
        let found = self.found();
        let composed = self.window.compose(self.turn, &found);
        let mut effects = Vec::new();
        if let Some((removed, kept)) = composed.slid {
            effects.push(Effect::Append(RunEvent::SlidingWindowApplied {
                turn: self.turn,
                messages_removed: to_u32(removed),
                messages_kept: to_u32(kept),
            }));
        }
        if composed.slid.is_some() && limits.summary == super::SummaryBy::Model {
            effects.extend(self.ask_for_summary(&composed));
            return effects;
        }
        effects.extend(self.send(composed));
        effects
    }

    /// The request of a turn.
    fn send(&mut self, composed: Composed) -> Vec<Effect> {
        self.spent.window_peak = self.spent.window_peak.max(composed.usage.tokens);
        let asked = match self.asked.is_empty() {
            true => "go on".to_owned(),
            false => std::mem::take(&mut self.asked).join("; "),
        };
        let request = ChatRequest {
            system: self.system.clone(),
            messages: composed.messages,
            // The same in every turn, also in the last: providers keep what comes first in their caches.
            tools: self.tools.clone(),
            max_output: self.window.limits().output_tokens,
            temperature: None,
            pinned: 1,
        };
        self.request(Stage::Answer, text::one_line(&asked).chars().take(ASKED).collect(), composed.usage, request)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request(
        &mut self,
        stage: Stage,
        asked: String,
        window: WindowUse,
        request: ChatRequest,
    ) -> Vec<Effect> {
        (self.stage, self.asking) = (stage, window.tokens);
        let turn = self.turn + self.judgements;
        vec![
            Effect::Append(RunEvent::TurnAsked { turn, phase: self.phase, asked, window }),
            Effect::Ask { turn, request: Box::new(request) },
        ]
    }

    /// Why the request that is on its way would cost more than may be spent. To be asked before it is paid for, and not
    /// when its answer is recorded.
    pub fn over_budget(&self) -> Option<String> {
        let (limits, tokens) = (self.window.limits(), self.asking);
        if let Some(most) = limits.budget.tokens
            && self.spent.usage.total().saturating_add(tokens) > most
        {
            let spent = self.spent.usage.total();
            return Some(format!(
                "the budget of {most} tokens is used up: {spent} are spent and the next request takes {tokens}"
            ));
        }
        if let (Some(most), Some(price)) = (limits.budget.cost, limits.input_price) {
            // What is cached is not known before; it only makes it cheaper.
            let next = tokens as f64 * price / 1e6;
            if self.spent.cost + next > most {
                let spent = self.spent.cost;
                return Some(format!(
                    "the budget of ${most:.2} is used up: ${spent:.4} are spent and the next request takes about ${next:.4}"
                ));
            }
        }
        None
    }

    fn answered(&mut self, mut response: Response, first_ms: u64, took_ms: u64, cost: Option<f64>) -> Vec<Effect> {
        match response.usage == Usage::default() {
            true => response.usage = self.window.estimated(&response),
            false => self.window.billed(&response.usage),
        }
        self.extracted = extract(&response);
        let mut effects = vec![self.account(&response, first_ms, took_ms, cost)];
        self.answer = Some(response);
        self.stage = Stage::Verdicts;
        let reports = std::mem::take(&mut self.extracted.reports);
        match reports.is_empty() {
            true => effects.extend(self.examined(Vec::new())),
            false => effects.push(Effect::Examine { turn: self.turn, reports }),
        }
        effects
    }

    /// Adds an answer to what was spent; the entry that says so.
    fn account(&mut self, response: &Response, first_ms: u64, took_ms: u64, cost: Option<f64>) -> Effect {
        if let Some(cost) = cost {
            self.spent.add(&response.usage, cost, &response.model);
        }
        Effect::Append(RunEvent::TurnAnswered {
            turn: self.turn + self.judgements,
            response: Box::new(response.clone()),
            cost: cost.unwrap_or_default(),
            first_ms,
            took_ms,
            taken_over: cost.is_none(),
        })
    }

    /// The answer to a request beside the turns.
    fn aside(&mut self, response: Response, first_ms: u64, took_ms: u64, cost: Option<f64>) -> Vec<Effect> {
        let mut effects = vec![self.account(&response, first_ms, took_ms, cost)];
        effects.extend(match self.stage {
            Stage::Summary => {
                self.summarised(&response);
                self.send_again()
            }
            _ => self.judge(&response),
        });
        effects
    }

    fn aside_failed(&mut self, class: ErrorClass, summary: String) -> Vec<Effect> {
        let mut effects = vec![self.unanswered(class, &summary)];
        match self.stage {
            Stage::Summary => {
                effects.push(self.noted(format!("no summary by the model: {summary}")));
                effects.extend(self.send_again());
            }
            _ => effects.extend(self.no_opinions(summary)),
        }
        effects
    }

    /// A request that failed and did not end the run: a restart must not take the next answer for its own.
    fn unanswered(&self, class: ErrorClass, summary: &str) -> Effect {
        let turn = self.turn + self.judgements;
        Effect::Append(RunEvent::Unanswered { turn, class, summary: summary.to_owned() })
    }

    /// The end without the second opinions that are still wanted.
    fn no_opinions(&mut self, reason: String) -> Vec<Effect> {
        self.opinions.clear();
        let mut effects = vec![self.noted(format!("no second opinion: {reason}"))];
        effects.extend(self.close());
        effects
    }

    /// The end because the next turn may not be paid for.
    fn unaffordable(&mut self, reason: String) -> Vec<Effect> {
        self.turn -= 1;
        let mut effects = vec![self.noted(reason)];
        effects.extend(self.cancelled(CancelReason::BudgetExhausted));
        effects
    }

    /// The request that waited for the summary.
    fn send_again(&mut self) -> Vec<Effect> {
        let found = self.found();
        let composed = self.window.compose(self.turn, &found);
        self.send(composed)
    }

    fn examined(&mut self, examined: Vec<Examined>) -> Vec<Effect> {
        let Some(response) = self.answer.take() else { return Vec::new() };
        let (mut effects, mut told) = (Vec::new(), Vec::new());
        let (mut fresh, mut kept) = (0, 0);
        let reported = examined.len();
        for examined in examined {
            let event = match examined {
                Examined::Rejected(rejected) => {
                    told.push(format!("{:?} set aside: {}", rejected.report.title, rejected.reason));
                    self.rejected.push(rejected.clone());
                    RunEvent::Rejected { turn: self.turn, rejected: Box::new(rejected) }
                }
                Examined::Finding { finding, notes } => {
                    kept += 1;
                    told.extend(notes.iter().cloned());
                    effects.extend(notes.into_iter().map(|text| self.noted(text)));
                    let finding = *finding;
                    let (line_start, line_end) = (finding.line_start, finding.line_end);
                    let title = finding.title.clone();
                    match self.accumulated.admit(&finding) {
                        Admission::New => {
                            fresh += 1;
                            RunEvent::Finding { finding: Box::new(finding) }
                        }
                        Admission::Restated(finding) => {
                            self.seen_again(&finding.finding_id);
                            RunEvent::Restated { turn: self.turn, finding }
                        }
                        Admission::Repeated(finding_id) => {
                            self.seen_again(&finding_id);
                            RunEvent::Repeated { turn: self.turn, finding_id, line_start, line_end, title }
                        }
                    }
                }
            };
            effects.push(Effect::Append(event));
        }
        for problem in std::mem::take(&mut self.extracted.problems) {
            effects.push(self.noted(format!("turn {}: {problem}", self.turn)));
        }
        effects.push(Effect::Append(RunEvent::CodeSmellsAccumulated {
            new_issues: fresh,
            total_issues: to_u32(self.accumulated.len()),
            turn: self.turn,
        }));
        if reported > 0 || self.extracted.lists > 0 {
            self.heard = Heard::Findings;
        }
        told.insert(0, format!("recorded: {kept}, of them new: {fresh}"));
        let told = told.join("; ");
        effects.extend(self.go_on(response, told));
        effects
    }

    /// What is done after an answer whose findings are safe.
    fn go_on(&mut self, response: Response, told: String) -> Vec<Effect> {
        if let Some((trouble, reason)) = self.trouble(&response) {
            return self.again(&response, trouble, reason);
        }
        self.bad = 0;
        let mut effects = Vec::new();
        let cut =
            matches!(response.stop, Stop::Length) || (response.stop == Stop::Interrupted && response.calls.is_empty());
        if !cut {
            for file in self.delivery.answered() {
                self.covered.push(file.clone());
                effects.push(Effect::Append(RunEvent::Covered { file }));
            }
        }
        let done = !cut && says_done(&response);
        if done && self.delivery.parts_left() == 0 {
            effects.extend(self.end());
            return effects;
        }
        let calls = self.remember(&response, &told);
        if !calls.is_empty() && !cut {
            self.stage = Stage::Results;
            effects.push(Effect::RunTools { turn: self.turn, calls });
            return effects;
        }
        if cut {
            self.answer_for_tools("not run: the answer was cut");
            let words = (self.say)(Say::Cut);
            self.window.say(&words);
            self.asked.push("the rest of the answer, shorter".to_owned());
        } else {
            if done {
                let open = self.delivery.open();
                let listed: Vec<&str> = open.iter().copied().take(LISTED).collect();
                let more = open.len().saturating_sub(LISTED);
                let more = if more > 0 { format!("\nand {} more", text::count(more, "file")) } else { String::new() };
                let words = (self.say)(Say::Uncovered { hunks: &format!("{}{more}", listed.join("\n")) });
                self.window.say(&words);
            }
            self.bring_more();
        }
        effects.extend(self.ask());
        effects
    }

    /// Brings the next part of the diff, when it is time for it.
    fn bring_more(&mut self) {
        let tokens = self.window.limits().part_tokens();
        if self.delivery.parts_left() == 0 {
            return;
        }
        let diff = self.next_parts(tokens);
        let later = self.later();
        let words = (self.say)(Say::More { diff: &diff, later: &later });
        self.window.say(&words);
        self.asked.push("the next part of the diff".to_owned());
    }

    /// Puts an answer into the conversation; the calls that have to be run are returned, the engine's own are answered.
    fn remember(&mut self, response: &Response, told: &str) -> Vec<ToolCall> {
        let Message::Assistant { text, mut calls, opaque } = response.message() else { return Vec::new() };
        calls.truncate(MAX_CALLS);
        let own = |call: &ToolCall| [REPORT_FINDINGS, FINISH].contains(&call.name.as_str());
        // The engine's own come first: results are sent in the order of the calls.
        let (own, others): (Vec<ToolCall>, Vec<ToolCall>) = calls.into_iter().partition(own);
        let calls = own.iter().chain(&others).cloned().collect();
        let text =
            if text.trim().is_empty() && own.is_empty() && others.is_empty() { "(nothing)".to_owned() } else { text };
        self.window.push(Message::Assistant { text, calls, opaque }, None);
        let mut told = Some(told);
        for call in own {
            let text = match call.name.as_str() {
                FINISH => "not finished yet: see below".to_owned(),
                _ => told.take().unwrap_or("recorded").to_owned(),
            };
            self.window.push(Message::Tool { call_id: call.id, name: call.name, text }, None);
        }
        self.calls.clone_from(&others);
        others
    }

    /// Calls that are not carried out are answered all the same: a call without its result may not be sent.
    fn answer_for_tools(&mut self, text: &str) {
        for call in std::mem::take(&mut self.calls) {
            self.window.push(Message::Tool { call_id: call.id, name: call.name, text: text.to_owned() }, None);
        }
    }

    fn tools_answered(&mut self, answers: Vec<ToolAnswer>) -> Vec<Effect> {
        let calls = std::mem::take(&mut self.calls);
        let mut effects = Vec::new();
        let share = self.window.limits().results_tokens() / (calls.len().max(1) as u64);
        for (call, answer) in calls.into_iter().zip(answers) {
            let text = self.window.cut(answer.text, share);
            let tokens = self.window.count(&text);
            for (path, lines) in answer.shown {
                self.delivery.shown(&path, lines);
            }
            effects.push(Effect::Append(RunEvent::ToolAnswered {
                turn: self.turn,
                name: call.name.clone(),
                arguments: text::one_line(&call.arguments).chars().take(ASKED / 2).collect(),
                outcome: answer.outcome,
                tokens,
                result: text::one_line(&answer.summary).chars().take(ASKED / 2).collect(),
            }));
            let mask = (self.say)(Say::Masked { call: &call, tokens });
            self.window.push(Message::Tool { call_id: call.id, name: call.name, text }, Some(mask));
        }
        // Parts of the diff that have waited long enough that each of them still gets a turn.
        let turns_left = self.window.limits().max_turns.saturating_sub(self.turn);
        if self.delivery.parts_left() > 0 && self.turns_needed() >= turns_left.saturating_sub(1) {
            self.bring_more();
        }
        effects.extend(self.ask());
        effects
    }

    /// Turns that the parts of the diff need which were not sent yet.
    fn turns_needed(&self) -> u32 {
        let tokens = self.window.limits().part_tokens().max(1);
        u32::try_from(self.delivery.tokens_left().div_ceil(tokens)).unwrap_or(u32::MAX)
    }

    /// What is wrong with an answer, if there is nothing in it to go on with.
    fn trouble(&self, response: &Response) -> Option<(Trouble, String)> {
        if response.stop == Stop::Refused {
            return Some((Trouble::Refused, "the model refused to answer".to_owned()));
        }
        if response.is_empty() {
            return Some((Trouble::Empty, "the answer was empty".to_owned()));
        }
        let structured = !response.calls.is_empty() || self.extracted.lists > 0 || self.heard == Heard::Findings;
        // A model without tools has to answer every part of the diff with a list, be it an empty one.
        let structured = structured && !(self.tools.is_empty() && self.extracted.lists == 0);
        let cut = matches!(response.stop, Stop::Length | Stop::Interrupted);
        (!structured && !cut)
            .then(|| (Trouble::Unreadable, "the answer holds neither a list of findings nor a tool call".to_owned()))
    }

    /// Asks once more, with the reason; the second time the run has failed.
    fn again(&mut self, response: &Response, trouble: Trouble, reason: String) -> Vec<Effect> {
        self.bad += 1;
        let mut effects = vec![self.noted(format!("turn {}: {reason}", self.turn))];
        if self.bad >= MAX_BAD || self.turn >= self.window.limits().max_turns {
            let class = if trouble == Trouble::Refused { ErrorClass::Refused } else { ErrorClass::Malformed };
            effects.extend(self.fail(class, format!("{reason}, in turn {} and when asked again", self.turn)));
            return effects;
        }
        if !response.is_empty() {
            self.remember(response, "recorded");
            self.answer_for_tools("not run");
        }
        let words = (self.say)(Say::Retry { trouble, reason: &reason });
        self.window.say(&words);
        self.asked.push(format!("again, because {reason}"));
        effects.extend(self.ask());
        effects
    }

    fn failed(&mut self, class: ErrorClass, summary: String) -> Vec<Effect> {
        if class == ErrorClass::ContextTooLong && self.shrunk == Shrunk::NotYet {
            self.shrunk = Shrunk::Once;
            self.window.shrink();
            let note = format!("turn {}: {summary}; asked again with a smaller window", self.turn);
            let mut effects = vec![self.unanswered(class, &summary), self.noted(note)];
            self.turn -= 1;
            self.asked.push("the same in a smaller window".to_owned());
            effects.extend(self.ask());
            return effects;
        }
        let turn = self.turn;
        self.fail(class, format!("turn {turn}: {summary}"))
    }

    fn fail(&mut self, class: ErrorClass, text: String) -> Vec<Effect> {
        let event = RunEvent::Failed { class, summary: text.clone() };
        let mut effects = vec![Effect::Append(event)];
        effects.extend(self.in_part());
        effects.extend(self.finish(RunStatus::Failed, None, Some((class, text))));
        effects
    }

    fn cancelled(&mut self, reason: CancelReason) -> Vec<Effect> {
        let mut effects = vec![Effect::Append(RunEvent::CancelAsked { reason })];
        effects.extend(self.in_part());
        effects.extend(self.finish(reason.status(), Some(reason), None));
        effects
    }

    /// The findings so far, a line each, for the summary of what slid out.
    fn found(&self) -> Vec<String> {
        let line = |finding: &Finding| {
            format!(
                "{} {} {}:{} {}",
                finding.priority, finding.kind, finding.repo_relative_path, finding.line_start, finding.title
            )
        };
        self.accumulated.iter().map(line).collect()
    }

    /// Whether a finding only came along with hunks that were not sent.
    pub(super) fn is_carried(&self, id: &FindingId) -> bool {
        self.plan.carried.iter().any(|carried| carried.findings.contains(id))
    }

    /// A finding that came along was reported by this run's model as well: it is its own report now.
    fn seen_again(&mut self, id: &FindingId) {
        self.plan.carried.iter_mut().for_each(|carried| carried.findings.retain(|carried| carried != id));
    }

    /// Keeps a line for a person; the entry with it.
    pub(super) fn noted(&mut self, text: String) -> Effect {
        if !self.notes.contains(&text) {
            self.notes.push(text.clone());
        }
        Effect::Append(RunEvent::Note { text })
    }
}

/// Whether the reviewer says that it is done with all that it was given.
fn says_done(response: &Response) -> bool {
    let finishes = response.calls.iter().any(|call| call.name == FINISH);
    let only_reports = response.calls.is_empty();
    finishes || (only_reports && matches!(response.stop, Stop::Done | Stop::Unknown | Stop::Interrupted))
}

/// Findings a line each, those in files that are sent first, in at most so many tokens.
fn known_lines(known: &[Finding], open: &[PlannedFile], tokens: u64, count: &Count) -> String {
    let sent: HashSet<&str> = open.iter().map(|file| file.path.as_str()).collect();
    let mut findings: Vec<&Finding> = known.iter().collect();
    findings.sort_by_key(|finding| !sent.contains(finding.repo_relative_path.as_str()));
    let (mut lines, mut used): (Vec<String>, u64) = (Vec::new(), 0);
    for finding in &findings {
        let title: String = finding.title.chars().take(KNOWN_TITLE).collect();
        let (path, line) = (&finding.repo_relative_path, finding.line_start);
        let line = text::one_line(&format!("{path}:{line} {} {title}", finding.kind)).into_owned();
        used = used.saturating_add(count(&line) + 1);
        if used > tokens {
            break;
        }
        lines.push(line);
    }
    if lines.len() < findings.len() {
        lines.push(format!("and {} more", findings.len() - lines.len()));
    }
    lines.join("\n")
}
