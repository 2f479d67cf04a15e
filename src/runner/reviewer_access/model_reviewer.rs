//! Opens a reviewer that uses a model from the settings: its limits, prompts, tools and price.

use std::borrow::Cow;
use std::path::PathBuf;
use std::rc::Rc;

use crate::config::{
    Dollars, ModelCatalog, ModelFacts, Prompt, PromptName, Prompts, ReviewerKind, ReviewerSettings, UserGuidelines,
    WindowSettings,
};
use crate::context::pack::PackedContext;
use crate::context::tools::{Toolbox, ToolboxSetup};
use crate::domain::{
    BudgetKind, BudgetStop, Finding, Kind, RunRecord, SteeredKind, Time, TurnPhase, Usage, content_hash, text,
};
use crate::git::{Changeset, CheckoutPlan, Repo, TemporaryCheckout};
use crate::masking::Mask;
use crate::masking::secret_files::is_secret_file;
use crate::review::ReviewPlan;
use crate::review::conversation::{
    AnswerProblem, BudgetLimit, BudgetProblem, ConversationLimits, ConversationPrompt, RemainingBudget, ReviewTask,
};
use crate::reviewers::chat::{Chat, ChatError, ToolSupport};
use crate::reviewers::command::agent_settings_paths;
use crate::runner::indexing::IndexReadiness;
use crate::runner::prompt::code_context::{ContextTaskInput, WindowRoom, list_withheld};
use crate::runner::prompt::prompt_material::{PromptSubject, PromptTokenLimits};
use crate::runner::reviewer_access::reviewer_identity::connect;
use crate::runner::steering::render_kind_warning;
use crate::runner::{PromptBuilder, ReviewerAccess, RunnerError};
use crate::store::{SpendingLog, SpendingTotal};
use crate::tokens;

/// Lines of code on each side of a finding that gets a second opinion.
const OPINION_CONTEXT_LINES: u32 = 40;
/// Longest answer for which the window keeps room, in tokens. Not from the literature: 300 findings, and the reasoning
/// before them.
pub(in crate::runner) const MAX_ANSWER_TOKENS: u64 = 16_000;
/// Divisor of the context window that limits the answer, unless the settings name a limit: a quarter. The change and the
/// code around it need the rest more.
const ANSWER_DIVISOR: u64 = 4;
/// Answer in tokens for which there is room in any window: six findings.
const MIN_ANSWER_TOKENS: u64 = 1_000;
/// Divisor of the window that limits the descriptions of the tools: a sixth. In a smaller window, the code that tools
/// would read is better sent at once.
const TOOLS_DIVISOR: u64 = 6;
/// Divisor of the window that limits the system prompt of a model without tools: a quarter. A longer one is replaced by
/// the short one.
const SYSTEM_DIVISOR: u64 = 4;
/// Tokens that a provider adds to prompt and messages: 3 tokens each for the system message and for priming the answer
/// (OpenAI's cookbook, "How to count tokens").
const PROVIDER_OVERHEAD_TOKENS: u64 = 6;

/// The reviewer for which a task is prepared.
#[derive(Clone, Copy)]
pub(in crate::runner) struct TaskReviewer<'a> {
    pub settings: &'a ReviewerSettings,
    pub facts: &'a ModelFacts,
    pub mask: Mask,
    /// The tool support of the model.
    pub tools: ToolSupport,
    /// Kinds of findings of which the model is warned.
    pub misjudged: &'a [SteeredKind],
}

/// A task for a model, with everything it sends: rules, learned patterns, the change, the code around it.
pub(in crate::runner) struct PreparedTask {
    pub task: ReviewTask,
    pub packed: PackedContext,
    pub ready: IndexReadiness,
}

/// A reviewer with an open client.
pub(in crate::runner) struct OpenedReviewer {
    /// The name of the reviewer in the settings.
    pub name: String,
    pub chat: Box<dyn Chat>,
    pub facts: ModelFacts,
    pub mask: Mask,
    /// The name of the reviewer that takes over after a failure.
    pub fallback: Option<String>,
    /// The working folder of a command-line agent. Declared after `chat`, so that it is dropped after the agent.
    _checkout: Option<TemporaryCheckout>,
}

impl OpenedReviewer {
    /// Returns the cost of an answer in US dollars; 0 if no price is known.
    pub fn cost(&self, usage: &Usage) -> f64 {
        self.facts.price.as_ref().map_or(0.0, |price| price.cost(usage))
    }

    /// Returns the price in US dollars of a million tokens that are sent; `None` if it is not known.
    pub fn input_price(&self) -> Option<f64> {
        input_price(&self.facts)
    }
}

impl<'a> ReviewerAccess<'a> {
    /// Returns the settings of a reviewer that uses a model.
    pub(in crate::runner) fn model_settings(&self, name: &str) -> Result<&'a ReviewerSettings, RunnerError> {
        self.services.settings.reviewers.get(name).ok_or_else(|| self.unknown_reviewer_error(name))
    }

    /// Returns a hash of the settings and prompts that influence the reports of a model, besides its name and effort.
    pub(in crate::runner) fn model_policy_version(&self, settings: &ReviewerSettings) -> Result<String, RunnerError> {
        let switches = format!(
            "{} {:?} {} {:?} {}",
            settings.kind.word(),
            settings.tools,
            settings.mask_secrets,
            settings.critic.map(|priority| priority.to_string()),
            // The amount of context changes the reports less than its presence.
            self.services.settings.context.tokens > 0
        );
        let version = self.load_prompts()?.version();
        let own = UserGuidelines::load(&self.services.paths)?.version();
        let parts = [version.as_bytes(), switches.as_bytes()].into_iter().chain(own.as_deref().map(str::as_bytes));
        Ok(content_hash(parts).chars().take(16).collect())
    }

    /// Loads the prompts of the review's set, or those outside of a set.
    pub(in crate::runner) fn load_prompts(&self) -> Result<Prompts, RunnerError> {
        Ok(Prompts::load_set(&self.services.paths, self.prompt_set)?)
    }

    /// Opens a reviewer by its name. Sends nothing yet.
    pub(in crate::runner) fn open_model(
        &self,
        name: &str,
        record: &RunRecord,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<OpenedReviewer, RunnerError> {
        let settings = self.model_settings(name)?;
        let facts = ModelCatalog::load(&self.services.paths)?.facts_for_reviewer(settings);
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let checkout = match settings.kind {
            ReviewerKind::Command => Some(self.make_checkout(record, mask, cancelled)?),
            _ => None,
        };
        let root = self.services.repo.root();
        let folder = checkout.as_ref().map_or(root.as_path(), TemporaryCheckout::folder);
        let chat = connect(name, settings, &facts, &self.services.paths, folder)?;
        let team = self.services.team();
        let chat = match settings.kind {
            ReviewerKind::Command => team.hold_agent_to_budget(chat, &facts),
            _ => team.hold_to_budget(chat, &facts),
        };
        Ok(OpenedReviewer {
            name: name.to_owned(),
            chat,
            facts,
            mask,
            fallback: settings.fallback.clone(),
            _checkout: checkout,
        })
    }

    /// Returns the folder of temporary checkouts. Each checkout is named after its run.
    pub(in crate::runner) fn checkouts(&self) -> PathBuf {
        self.services.paths.cache.join("checkouts").join(self.services.repo.key())
    }

    /// Creates a copy of the snapshot and its base for a command-line agent. Removes checkouts that dead workers left.
    fn make_checkout(
        &self,
        record: &RunRecord,
        mask: Mask,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<TemporaryCheckout, RunnerError> {
        if let Err(error) = self.services.recovery().remove_leftovers() {
            tracing::warn!(%error, "throw-away checkouts of dead workers stay");
        }
        let folder = self.checkouts().join(record.run_id.as_str());
        let base = record.subject.base_commit.as_str();
        let plan = CheckoutPlan {
            commit: &record.subject.snapshot_commit,
            base: (!base.is_empty()).then_some(base),
            unwanted: &agent_settings_paths(),
            is_secret: &is_withheld,
            mask: match mask {
                Mask::On => Some(&|path, content| mask.mask_content(path, content)),
                Mask::Off => None,
            },
        };
        let checkout = self.services.repo.create_checkout(&plan, &folder, cancelled)?;
        checkout.ok_or_else(|| RunnerError::Reviewer(ChatError::cancelled()))
    }
}

/// Returns the price in US dollars of a million tokens that are sent to a model; `None` if it is not known.
fn input_price(facts: &ModelFacts) -> Option<f64> {
    facts.price.as_ref().map(|price| price.cost(&Usage { input: 1_000_000, ..Usage::default() }))
}

/// Returns true if an agent must not get the file at a path at all: it holds secrets, or its path does.
pub(in crate::runner) fn is_withheld(path: &str) -> bool {
    is_secret_file(path) || matches!(Mask::On.mask_key_shapes(path), Cow::Owned(_))
}

impl PromptBuilder<'_> {
    /// Creates the tools of a run's model.
    pub(in crate::runner) fn build_toolbox(
        &self,
        record: &RunRecord,
        change: &Changeset,
        mask: Mask,
    ) -> Result<Toolbox, RunnerError> {
        let setup = ToolboxSetup {
            repo: self.services.repo.discover_again()?,
            base_commit: record.subject.base_commit.clone(),
            snapshot_commit: record.subject.snapshot_commit.clone(),
            change: change.clone(),
            reviewer: self.services.reviewers().open_builtin(record)?,
            mask,
            folder: Some(self.services.paths.history_folder(&self.services.repo.key())),
        };
        Ok(Toolbox::new(setup)?)
    }
}

impl<'a> ReviewerAccess<'a> {
    /// Describes an opened reviewer for the preparation of a task.
    pub(in crate::runner) fn task_reviewer(&self, opened: &'a OpenedReviewer) -> Result<TaskReviewer<'a>, RunnerError> {
        let settings = self.model_settings(&opened.name)?;
        let tools = opened.chat.tool_support();
        Ok(TaskReviewer { settings, facts: &opened.facts, mask: opened.mask, tools, misjudged: &[] })
    }
}

impl PromptBuilder<'_> {
    /// Prepares the task of a run's model, with the code around the change. `prepare_index` is called when everything that needs
    /// no index is prepared.
    pub(in crate::runner) fn prepare_task(
        &self,
        who: TaskReviewer<'_>,
        record: &RunRecord,
        change: &Changeset,
        (mut plan, known): (ReviewPlan, Vec<Finding>),
        (prepare_index, wish, cancelled): (impl FnOnce() -> IndexReadiness, &ContextTaskInput, &dyn Fn() -> bool),
    ) -> Result<PreparedTask, RunnerError> {
        let TaskReviewer { settings, facts, mask, .. } = who;
        let mut limits = self.conversation_limits(settings, facts, record)?;
        let encoding = facts.encoding;
        let count = move |text: &str| tokens::count_tokens(encoding, text) as u64;
        let takes_tools = who.tools == ToolSupport::Native && facts.takes_tools(settings.kind);
        let mut tools = if takes_tools { Toolbox::specs() } else { Vec::new() };
        let described = tools.iter().map(|tool| count(&serde_json::to_string(tool).unwrap_or_default())).sum::<u64>();
        let lacks_room_for_tools = described > limits.window_tokens / TOOLS_DIVISOR;
        if lacks_room_for_tools {
            tools.clear();
        }
        // A command-line agent has tools of its own.
        limits.has_tools = !tools.is_empty() || settings.kind == ReviewerKind::Command;
        let reviewers = self.services.reviewers().with_prompt_set(record.reviewed_by.prompt_set.as_deref());
        let prompts = Rc::new(reviewers.load_prompts()?);
        let subject = PromptSubject::new(record, change, &plan, (encoding, mask), cancelled);
        let mut warning = render_kind_warning(who.misjudged);
        if !prompts.has_placeholder(PromptName::Task, "patterns") {
            warning.clear();
        }
        let sizes = PromptTokenLimits::for_review(&limits).with_fewer_patterns(count(&warning));
        let mut gathered = self.gather_prompt_material(&subject, &sizes, &prompts, wish);
        gathered.patterns.insert_str(0, &warning);
        let ready = prepare_index();
        let material = &gathered.material;
        let unseen: Vec<&str> = material.left_out.iter().map(|file| file.path.as_str()).collect();
        plan.files.retain(|file| !unseen.contains(&file.path.as_str()));
        plan.left_out.extend(material.left_out.iter().cloned());
        let mut system = prompts.render(&Prompt::System);
        let is_system_short = !limits.has_tools && count(&system) > limits.window_tokens / SYSTEM_DIVISOR;
        if is_system_short {
            system = prompts.render(&Prompt::SystemShort);
        }
        if settings.kind == ReviewerKind::Command {
            system = format!("{system}\n\n{}", prompts.render(&Prompt::Agent));
        }
        let mut task = ReviewTask {
            plan,
            known_findings: known,
            parts: material.parts.clone(),
            system,
            tools,
            limits,
            count: Box::new(count),
            render_prompt: Box::new(|_| String::new()),
            overhead: PROVIDER_OVERHEAD_TOKENS,
        };
        let mut told = PromptTexts {
            // A branch may have a secret in its name.
            scope: mask.mask_key_shapes(&describe_scope(record)).into_owned(),
            rules: [describe_focus(&record.reviewed_by.focus), gathered.rules_text()].concat(),
            patterns: gathered.patterns.clone(),
            omitted_files: gathered.omitted_files.clone(),
            context: String::new(),
        };
        // Command-line agents search the code by themselves; a user's own prompt may omit the context.
        let is_told = settings.kind != ReviewerKind::Command && prompts.has_placeholder(PromptName::Task, "context");
        let most = if is_told { self.services.settings.context.tokens } else { 0 };
        let mut packed = PackedContext::default();
        if most > 0 {
            let empty = ConversationPrompt::Task { diff: "", later: "", known: "" };
            let words = count(&self.prompt_renderer(Rc::clone(&prompts), told.clone(), record, mask)(empty));
            let room = WindowRoom {
                window: task.limits.window_tokens,
                pinned: task.limits.pinned_tokens(),
                fixed: task.fixed_tokens() + words + task.known_tokens(),
                diff: material.tokens.min(task.limits.part_tokens()),
                has_tools: task.limits.has_tools,
            };
            let budget = room.budget(most);
            packed = self.pack_code_context(&subject, (budget, Vec::new()), gathered.documents(), (&ready, wish));
            task.limits.budget = self.remaining_budget(record)?;
            packed.notes.splice(0..0, ready.note().filter(|_| budget > 0).map(str::to_owned));
            told.context = packed.text();
        } else {
            packed.notes.push("it is told nothing of the code around the change".to_owned());
        }
        task.render_prompt = self.prompt_renderer(prompts, told, record, mask);
        packed = packed
            .prepend_pieces(&gathered.pieces(task.first_part_count()), &|text| tokens::count_tokens(encoding, text));
        packed.notes.extend(gathered.notes());
        if lacks_room_for_tools {
            packed.notes.push("the window is too small for tools: more code is sent instead".to_owned());
        }
        if is_system_short {
            packed.notes.push("the window is small: the short instructions (system-short.md) are sent".to_owned());
        }
        packed.notes.extend(list_withheld(&material.over_budget, &task.plan.left_out));
        Ok(PreparedTask { task, packed, ready })
    }

    /// Returns the function that renders the engine's texts from the prompts.
    fn prompt_renderer(
        &self,
        prompts: Rc<Prompts>,
        told: PromptTexts,
        record: &RunRecord,
        mask: Mask,
    ) -> Box<dyn Fn(ConversationPrompt<'_>) -> String> {
        let (repo, commit) = (self.services.repo.discover_again().ok(), record.subject.snapshot_commit.clone());
        Box::new(move |say| {
            // Every part is masked already; names and texts of earlier answers are not.
            let render = |prompt: Prompt<'_>| mask.mask_key_shapes(&prompts.render(&prompt)).into_owned();
            match say {
                ConversationPrompt::Task { diff, later, known } => {
                    let PromptTexts { scope, rules, patterns, omitted_files: not_shown, context } = &told;
                    render(Prompt::Task { scope, rules, patterns, known, not_shown, diff, context, later })
                }
                ConversationPrompt::More { diff, later } => render(Prompt::More { diff, later }),
                ConversationPrompt::Uncovered { hunks } => render(Prompt::Uncovered { hunks }),
                ConversationPrompt::Phase { phase, turn, of } => render(match phase {
                    TurnPhase::Investigate => Prompt::TurnInvestigate { turn, of },
                    TurnPhase::Analyse => Prompt::TurnAnalyse { turn, of },
                    TurnPhase::Finish => Prompt::TurnFinish { turn, of },
                }),
                ConversationPrompt::Last => render(Prompt::Last),
                ConversationPrompt::Cut => render(Prompt::Cut),
                ConversationPrompt::Retry { trouble, reason } => render(match trouble {
                    AnswerProblem::Empty => Prompt::RetryEmpty,
                    AnswerProblem::Refused => Prompt::RetryRefused { reason },
                    AnswerProblem::Unreadable => Prompt::RetryUnreadable { reason },
                }),
                ConversationPrompt::Masked { call, tokens } => {
                    let call = format!("{} {}", call.name, text::sanitize_line(&call.arguments));
                    render(Prompt::Masked { call: &call, tokens })
                }
                ConversationPrompt::Summarise { messages } => {
                    render(Prompt::Summarize { text: messages, tokens: ConversationLimits::MAX_SUMMARY_TOKENS })
                }
                ConversationPrompt::Opinion { finding } => {
                    let code =
                        repo.as_ref().map(|repo| read_code_around(repo, &commit, finding, mask)).unwrap_or_default();
                    let about = describe_finding(finding);
                    render(Prompt::Critic { finding: &mask.mask_key_shapes(&about), code: &code })
                }
            }
        })
    }

    /// Returns the limits of a run, with what counts against them already: the engine itself counts the answers, those of
    /// earlier attempts too, but not the vectors.
    fn remaining_budget(&self, record: &RunRecord) -> Result<RemainingBudget, RunnerError> {
        let budget = &self.services.settings.budget;
        let (spending, midnight) = (self.services.reviewers().spending(), self.services.reviewers().midnight());
        let today = spending.total_since(midnight, Some(&record.run_id))?;
        let vectors = spending.vectors_of_run(&record.run_id, record.created_at)?;
        let tokens = |limit: Option<u64>, used: u64| {
            let used = used.saturating_add(vectors.tokens) as f64;
            limit.map(|limit| BudgetLimit { limit: limit as f64, used })
        };
        let cost = |limit: Option<Dollars>, used: f64| {
            limit.map(|limit| BudgetLimit { limit: limit.as_f64(), used: used + vectors.cost })
        };
        Ok(RemainingBudget {
            run_tokens: tokens(budget.run_tokens, 0),
            day_tokens: tokens(budget.day_tokens, today.tokens),
            run_cost: cost(budget.run_cost, 0.0),
            day_cost: cost(budget.day_cost, today.cost),
        })
    }

    /// Returns the most estimated tokens that the vectors of a run may still take; `None` for no limit.
    pub(in crate::runner) fn vector_token_limit(
        &self,
        record: &RunRecord,
        facts: &ModelFacts,
    ) -> Result<Option<u64>, RunnerError> {
        let left = self.remaining_budget(record)?;
        let price = input_price(facts);
        let affordable =
            left.cost_left().zip(price.filter(|price| *price > 0.0)).map(|(cost, price)| (cost / price * 1e6) as u64);
        Ok(left.tokens_left().into_iter().chain(affordable).min())
    }

    fn conversation_limits(
        &self,
        settings: &ReviewerSettings,
        facts: &ModelFacts,
        record: &RunRecord,
    ) -> Result<ConversationLimits, RunnerError> {
        let window = &self.services.settings.window;
        let mut answer = facts.max_output.min(MAX_ANSWER_TOKENS);
        if settings.max_output.is_none() {
            answer = answer.min((facts.context_window / ANSWER_DIVISOR).max(MIN_ANSWER_TOKENS));
        }
        Ok(ConversationLimits {
            max_turns: max_turns(settings, window),
            window_tokens: window.max_tokens.min(facts.context_window.saturating_sub(answer)),
            output_tokens: answer,
            has_tools: facts.takes_tools(settings.kind),
            slide_after_turn: window.slide_after_turn,
            slide_over_messages: window.slide_over_messages,
            keep_messages: window.keep_messages,
            budget: self.remaining_budget(record)?,
            input_price: input_price(facts),
            approximate: facts.encoding.is_approximate(),
            summary: settings.summary,
            opinion: settings.critic,
        })
    }
}

/// Returns the maximum number of turns of a review by this reviewer, at least 1.
pub(crate) fn max_turns(settings: &ReviewerSettings, window: &WindowSettings) -> u32 {
    settings.max_turns.unwrap_or(window.max_turns).min(window.max_turns).max(1)
}

impl<'a> ReviewerAccess<'a> {
    /// Opens the account of all payments, for all repositories.
    pub(in crate::runner) fn spending(&self) -> SpendingLog {
        SpendingLog::open(&self.services.paths.state)
    }

    /// Returns the payments since the last midnight in the user's time zone.
    pub(in crate::runner) fn spent_today(&self) -> Result<SpendingTotal, RunnerError> {
        Ok(self.spending().total_since(self.midnight(), None)?)
    }

    /// Returns the last midnight in the user's time zone.
    fn midnight(&self) -> Time {
        let now = self.services.ambient.now().to_zoned(jiff::tz::TimeZone::system());
        now.start_of_day().map_or(now.timestamp(), |day| day.timestamp())
    }

    /// Returns a message if the daily budget is used up.
    pub(in crate::runner) fn check_daily_budget(&self) -> Result<Option<BudgetProblem>, RunnerError> {
        let budget = &self.services.settings.budget;
        if budget.day_tokens.is_none() && budget.day_cost.is_none() {
            return Ok(None);
        }
        let today = self.spent_today()?;
        if let Some(most) = budget.day_tokens.filter(|most| today.tokens >= *most) {
            let stop = BudgetStop { kind: BudgetKind::DayTokens, reached: today.tokens as f64, limit: most as f64 };
            let note = format!("the budget of {most} tokens for a day is used up; {}", stop.next_step());
            return Ok(Some(BudgetProblem { stop, note }));
        }
        let most = budget.day_cost.filter(|most| today.cost >= most.as_f64());
        Ok(most.map(|most| {
            let stop = BudgetStop { kind: BudgetKind::DayCost, reached: today.cost, limit: most.as_f64() };
            let note = format!("the budget of ${most} for a day is used up; {}", stop.next_step());
            BudgetProblem { stop, note }
        }))
    }
}

/// The texts that every request contains besides the change.
#[derive(Debug, Clone)]
struct PromptTexts {
    scope: String,
    rules: String,
    /// The learned patterns.
    patterns: String,
    /// The changes without a diff.
    omitted_files: String,
    /// The code around the change.
    context: String,
}

/// Describes the kinds that a member of a panel is asked for, as a part of the rules; empty for all kinds.
fn describe_focus(focus: &[Kind]) -> String {
    if focus.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = focus.iter().map(|kind| kind.word()).collect();
    format!(
        "Other reviewers look at this change, too. Look for problems of these kinds, and report others only if they break \
         something: {}.\n\n",
        words.join(", ")
    )
}

/// Describes the scope in the words of the prompt.
fn describe_scope(record: &RunRecord) -> String {
    use crate::domain::Scope;
    let short = |id: &str| id.chars().take(12).collect::<String>();
    match &record.subject.scope {
        Scope::Worktree => "the uncommitted changes of the working tree".to_owned(),
        Scope::Staged => "the staged changes".to_owned(),
        Scope::All => "the whole tree, all of it as if it were new".to_owned(),
        scope => format!(
            "{scope}, from {} to {}",
            short(&record.subject.base_commit),
            short(&record.subject.snapshot_commit)
        ),
    }
}

pub(in crate::runner) fn describe_finding(finding: &Finding) -> String {
    format!(
        "{} at {}:{}-{}\n{}\n{}",
        finding.kind,
        finding.repo_relative_path,
        finding.line_start,
        finding.line_end,
        text::sanitize_line(&finding.title),
        text::sanitize_lines(&finding.explanation, 4),
    )
}

/// Returns the code around a finding with line numbers, masked for the model.
pub(in crate::runner) fn read_code_around(repo: &Repo, commit: &str, finding: &Finding, mask: Mask) -> String {
    let path = &finding.repo_relative_path;
    let Ok(Some(bytes)) = repo.file_at(commit, path) else { return String::new() };
    let code = String::from_utf8_lossy(&bytes).into_owned();
    let code = mask.mask_text(Some(path), &code);
    let (first, last) =
        (finding.line_start.saturating_sub(OPINION_CONTEXT_LINES).max(1), finding.line_end + OPINION_CONTEXT_LINES);
    let lines =
        (1..).zip(code.lines()).skip_while(|(number, _)| *number < first).take_while(|(number, _)| *number <= last);
    lines.map(|(number, line)| format!("{number:>5}  {}\n", text::sanitize_line(line))).collect()
}
