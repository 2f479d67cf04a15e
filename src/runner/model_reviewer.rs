//! A reviewer that talks to a model, opened from the settings: its limits, its words, its tools, its price.

use std::path::PathBuf;
use std::rc::Rc;

use super::code_context::{ContextTaskInput, WindowRoom, list_withheld};
use super::indexing::IndexReadiness;
use super::prompt_material::{PromptSubject, PromptTokenLimits};
use super::reviewer_identity::connect;
use super::{Runner, RunnerError};
use crate::config::{
    ModelCatalog, ModelFacts, Prompt, PromptName, Prompts, ReviewerKind, ReviewerSettings, SummaryAuthor,
};
use crate::context::pack::PackedContext;
use crate::context::tools::{Toolbox, ToolboxSetup};
use crate::domain::{Finding, RunId, RunRecord, Time, TurnPhase, Usage, content_hash, text};
use crate::git::{Changeset, Repo, TemporaryCheckout};
use crate::masking::Mask;
use crate::review::ReviewPlan;
use crate::review::conversation::{
    self, AnswerProblem, ConversationLimits, ConversationPrompt, DeliveryPart, RemainingBudget, ReviewTask,
};
use crate::reviewers::chat::{Chat, ChatError, ToolSupport};
use crate::reviewers::command::AGENT_SETTINGS_PATHS;
use crate::store::{SpendingLog, SpendingTotal};
use crate::tokens;

/// Lines of code on each side of a finding that is judged a second time.
const OPINION_CONTEXT_LINES: u32 = 40;
/// The longest answer that room is kept for in the window. Tokens; own: 300 findings, and what a model thinks before.
const MAX_ANSWER_TOKENS: u64 = 16_000;
/// What a provider adds to prompt and messages in words of its own: the system prompt is a message, and the answer is
/// primed, 3 tokens each by OpenAI's cookbook ("How to count tokens").
const PROVIDER_OVERHEAD_TOKENS: u64 = 6;

/// Whom a task is put together for.
#[derive(Clone, Copy)]
pub(super) struct TaskReviewer<'a> {
    pub settings: &'a ReviewerSettings,
    pub facts: &'a ModelFacts,
    pub mask: Mask,
    /// Whether tools can be offered to it.
    pub tools: ToolSupport,
}

/// A task for a model, and all that it tells: rules, what was learned, the change, the code around it.
pub(super) struct PreparedTask {
    pub task: ReviewTask,
    pub packed: PackedContext,
}

/// A reviewer that talks to a model, ready for it.
pub(super) struct OpenedReviewer {
    /// Its name in the settings.
    pub name: String,
    pub chat: Box<dyn Chat>,
    pub facts: ModelFacts,
    pub mask: Mask,
    /// Who takes over when it cannot go on.
    pub fallback: Option<String>,
    /// Where a program works; goes after the program.
    _checkout: Option<TemporaryCheckout>,
}

impl OpenedReviewer {
    /// What an answer cost, in US dollars; 0 when no price is known.
    pub fn cost(&self, usage: &Usage) -> f64 {
        self.facts.price.as_ref().map_or(0.0, |price| price.cost(usage))
    }
}

impl Runner {
    /// The settings of a reviewer that talks to a model.
    pub(super) fn model_settings(&self, name: &str) -> Result<&ReviewerSettings, RunnerError> {
        self.settings.reviewers.get(name).ok_or_else(|| self.unknown_reviewer_error(name))
    }

    /// What of the settings decides what a model says, beside its name and effort.
    pub(super) fn model_policy_version(&self, settings: &ReviewerSettings) -> Result<String, RunnerError> {
        let switches = format!(
            "{} {:?} {} {:?} {}",
            settings.kind.word(),
            settings.tools,
            settings.mask_secrets,
            settings.critic.map(|priority| priority.to_string()),
            // How much there is of it changes less than that there is any.
            self.settings.context.tokens > 0
        );
        let version = self.load_prompts()?.version();
        Ok(content_hash([version.as_bytes(), switches.as_bytes()]).chars().take(16).collect())
    }

    pub(super) fn load_prompts(&self) -> Result<Prompts, RunnerError> {
        Ok(Prompts::load(&self.paths)?)
    }

    /// Opens a reviewer by its name. Nothing is sent yet.
    pub(super) fn open_model(
        &self,
        name: &str,
        record: &RunRecord,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<OpenedReviewer, RunnerError> {
        let settings = self.model_settings(name)?;
        let facts = ModelCatalog::load(&self.paths)?.facts_for_reviewer(settings);
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let checkout = match settings.kind {
            ReviewerKind::Command => Some(self.make_checkout(record, cancelled)?),
            _ => None,
        };
        let root = self.repo.root();
        let folder = checkout.as_ref().map_or(root.as_path(), TemporaryCheckout::folder);
        let chat = connect(name, settings, &facts, &self.paths, folder)?;
        Ok(OpenedReviewer {
            name: name.to_owned(),
            chat,
            facts,
            mask,
            fallback: settings.fallback.clone(),
            _checkout: checkout,
        })
    }

    /// Where checkouts are made, each named after its run.
    pub(super) fn checkouts(&self) -> PathBuf {
        self.paths.cache.join("checkouts").join(self.repo.key())
    }

    /// A copy of the snapshot for a program to look around in. What dead workers left of theirs goes.
    fn make_checkout(
        &self,
        record: &RunRecord,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<TemporaryCheckout, RunnerError> {
        if let Err(error) = self.remove_leftovers() {
            tracing::warn!(%error, "throw-away checkouts of dead workers stay");
        }
        let folder = self.checkouts().join(record.run_id.as_str());
        let checkout = self.repo.create_checkout(&record.snapshot_commit, &folder, &AGENT_SETTINGS_PATHS, cancelled)?;
        checkout.ok_or_else(|| RunnerError::Reviewer(ChatError::cancelled()))
    }

    /// The tools of a run's model.
    pub(super) fn build_toolbox(
        &self,
        record: &RunRecord,
        change: &Changeset,
        mask: Mask,
    ) -> Result<Toolbox, RunnerError> {
        let setup = ToolboxSetup {
            repo: Repo::discover(&self.repo.root())?,
            base_commit: record.base_commit.clone(),
            snapshot_commit: record.snapshot_commit.clone(),
            change: change.clone(),
            reviewer: self.open_builtin(record)?,
            mask,
            folder: Some(self.paths.history_folder(&self.repo.key())),
        };
        Ok(Toolbox::new(setup)?)
    }

    /// A reviewer that was opened, as somebody to put a task together for.
    pub(super) fn task_reviewer<'a>(&'a self, opened: &'a OpenedReviewer) -> Result<TaskReviewer<'a>, RunnerError> {
        let settings = self.model_settings(&opened.name)?;
        Ok(TaskReviewer { settings, facts: &opened.facts, mask: opened.mask, tools: opened.chat.tool_support() })
    }

    /// What a run's model is asked to review, and what it is told of the code around that.
    pub(super) fn prepare_task(
        &self,
        who: TaskReviewer<'_>,
        record: &RunRecord,
        change: &Changeset,
        (mut plan, known): (ReviewPlan, Vec<Finding>),
        (ready, wish, cancelled): (&IndexReadiness, &ContextTaskInput, &dyn Fn() -> bool),
    ) -> Result<PreparedTask, RunnerError> {
        let TaskReviewer { settings, facts, mask, .. } = who;
        let limits = self.conversation_limits(settings, facts, &record.run_id)?;
        let encoding = facts.encoding;
        let count = move |text: &str| tokens::count_tokens(encoding, text) as u64;
        let prompts = Rc::new(self.load_prompts()?);
        let subject = PromptSubject::new(record, change, &plan, (encoding, mask), cancelled);
        let gathered = self.gather_prompt_material(&subject, &PromptTokenLimits::for_review(&limits), &prompts, wish);
        let material = &gathered.material;
        let unseen: Vec<&str> = material.left_out.iter().map(|file| file.path.as_str()).collect();
        plan.files.retain(|file| !unseen.contains(&file.path.as_str()));
        plan.left_out.extend(material.left_out.iter().cloned());
        let parts = material.parts.iter().cloned();
        let parts =
            parts.map(|part| DeliveryPart { path: part.path, hunks: part.hunks, text: part.text, tokens: part.tokens });
        let native = who.tools == ToolSupport::Native && facts.takes_tools(settings.kind);
        let mut system = prompts.render(&Prompt::System);
        if settings.kind == ReviewerKind::Command {
            system = format!("{system}\n\n{}", prompts.render(&Prompt::Agent));
        }
        let mut task = ReviewTask {
            plan,
            known_findings: known,
            parts: parts.collect(),
            system,
            tools: if native { Toolbox::specs() } else { Vec::new() },
            limits,
            count: Box::new(count),
            render_prompt: Box::new(|_| String::new()),
            overhead: PROVIDER_OVERHEAD_TOKENS,
        };
        let mut told = PromptTexts {
            scope: describe_scope(record),
            rules: gathered.rules_text(),
            patterns: gathered.patterns.clone(),
            omitted_files: gathered.omitted_files.clone(),
            context: String::new(),
        };
        // Programs look around by themselves; a prompt of the user's own may do without.
        let is_told = settings.kind != ReviewerKind::Command && prompts.has_placeholder(PromptName::Task, "context");
        let most = if is_told { self.settings.context.tokens } else { 0 };
        let mut packed = PackedContext::default();
        if most > 0 {
            let empty = ConversationPrompt::Task { diff: "", later: "", known: "" };
            let words = count(&self.prompt_renderer(Rc::clone(&prompts), told.clone(), record, mask)(empty));
            let room = WindowRoom {
                window: task.limits.window_tokens,
                pinned: task.limits.pinned_tokens(),
                fixed: task.fixed_tokens() + words + task.known_tokens(),
                diff: material.tokens.min(task.limits.part_tokens()),
            };
            let (budget, index) = (room.budget(most), ready.index.as_ref());
            packed = self.pack_code_context(&subject, (budget, Vec::new()), gathered.documents(), (index, wish));
            packed.notes.splice(0..0, ready.note().filter(|_| budget > 0).map(str::to_owned));
            told.context = packed.text();
        } else {
            packed.notes.push("it is told nothing of the code around the change".to_owned());
        }
        task.render_prompt = self.prompt_renderer(prompts, told, record, mask);
        packed = packed
            .prepend_pieces(&gathered.pieces(task.first_part_count()), &|text| tokens::count_tokens(encoding, text));
        packed.notes.extend(gathered.notes());
        packed.notes.extend(list_withheld(&material.over_budget, &task.plan.left_out));
        Ok(PreparedTask { task, packed })
    }

    /// The engine's words, from the prompts.
    fn prompt_renderer(
        &self,
        prompts: Rc<Prompts>,
        told: PromptTexts,
        record: &RunRecord,
        mask: Mask,
    ) -> Box<dyn Fn(ConversationPrompt<'_>) -> String> {
        let (repo, commit) = (Repo::discover(&self.repo.root()).ok(), record.snapshot_commit.clone());
        Box::new(move |say| {
            let render = |prompt: Prompt<'_>| prompts.render(&prompt);
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
                    render(Prompt::Critic { finding: &describe_finding(finding), code: &code })
                }
            }
        })
    }

    fn conversation_limits(
        &self,
        settings: &ReviewerSettings,
        facts: &ModelFacts,
        run: &RunId,
    ) -> Result<ConversationLimits, RunnerError> {
        let window = &self.settings.window;
        let budget = &self.settings.budget;
        // What an earlier attempt of this run has paid, the engine counts itself.
        let today = self.spending().total_since(self.midnight(), Some(run))?;
        let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        let tokens = [budget.run_tokens, left(budget.day_tokens, today.tokens)];
        let costs = [
            budget.run_cost.map(|cost| cost.as_f64()),
            budget.day_cost.map(|cost| (cost.as_f64() - today.cost).max(0.0)),
        ];
        let answer = facts.max_output.min(MAX_ANSWER_TOKENS);
        let turns = settings.max_turns.unwrap_or(window.max_turns).min(window.max_turns);
        Ok(ConversationLimits {
            max_turns: turns.max(1),
            window_tokens: window.max_tokens.min(facts.context_window.saturating_sub(answer)),
            output_tokens: answer,
            slide_after_turn: window.slide_after_turn,
            slide_over_messages: window.slide_over_messages,
            keep_messages: window.keep_messages,
            budget: RemainingBudget {
                tokens: tokens.into_iter().flatten().min(),
                cost: costs.into_iter().flatten().min_by(f64::total_cmp),
            },
            input_price: facts.price.as_ref().map(|price| price.cost(&Usage { input: 1_000_000, ..Usage::default() })),
            approximate: facts.encoding.is_approximate(),
            summary: match settings.summary {
                SummaryAuthor::Local => conversation::WindowSummaryAuthor::Local,
                SummaryAuthor::Model => conversation::WindowSummaryAuthor::Model,
            },
            opinion: settings.critic,
        })
    }

    /// The account of all that was paid, of every repository.
    pub(super) fn spending(&self) -> SpendingLog {
        SpendingLog::open(&self.paths.state)
    }

    /// What was paid since midnight, where the user is.
    pub(super) fn spent_today(&self) -> Result<SpendingTotal, RunnerError> {
        Ok(self.spending().total_since(self.midnight(), None)?)
    }

    /// The last one, where the user is.
    fn midnight(&self) -> Time {
        let now = self.ambient.now().to_zoned(jiff::tz::TimeZone::system());
        now.start_of_day().map_or(now.timestamp(), |day| day.timestamp())
    }

    /// What is said when nothing more may be paid for today.
    pub(super) fn check_daily_budget(&self) -> Result<Option<String>, RunnerError> {
        let budget = &self.settings.budget;
        if budget.day_tokens.is_none() && budget.day_cost.is_none() {
            return Ok(None);
        }
        let today = self.spent_today()?;
        if let Some(most) = budget.day_tokens.filter(|most| today.tokens >= *most) {
            return Ok(Some(format!("the budget of {most} tokens for a day is used up (budget.day_tokens)")));
        }
        let most = budget.day_cost.filter(|most| today.cost >= most.as_f64());
        Ok(most.map(|most| format!("the budget of ${most} for a day is used up (budget.day_cost)")))
    }
}

/// What every request tells beside the change.
#[derive(Debug, Clone)]
struct PromptTexts {
    scope: String,
    rules: String,
    /// What was learned.
    patterns: String,
    /// What the change has besides its diff.
    omitted_files: String,
    /// The code around the change.
    context: String,
}

/// What is reviewed, as the model is told.
fn describe_scope(record: &RunRecord) -> String {
    use crate::domain::Scope;
    let short = |id: &str| id.chars().take(12).collect::<String>();
    match &record.scope {
        Scope::Worktree => "the uncommitted changes of the working tree".to_owned(),
        Scope::Staged => "the staged changes".to_owned(),
        Scope::All => "the whole tree, all of it as if it were new".to_owned(),
        scope => format!("{scope}, from {} to {}", short(&record.base_commit), short(&record.snapshot_commit)),
    }
}

fn describe_finding(finding: &Finding) -> String {
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

/// The code around a finding, with line numbers, as a model may see it.
fn read_code_around(repo: &Repo, commit: &str, finding: &Finding, mask: Mask) -> String {
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
