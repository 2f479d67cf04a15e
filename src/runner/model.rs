//! A reviewer that talks to a model, opened from the settings: its limits, its words, its tools, its price.

use std::path::PathBuf;
use std::rc::Rc;

use super::gather::{Sizes, Subject};
use super::identity::connect;
use super::indexing::Ready;
use super::surround::{Room, Wish, withheld};
use super::{Runner, RunnerError};
use crate::config::{ModelFacts, Models, Prompt, PromptName, Prompts, ReviewerKind, ReviewerSettings, SummaryBy};
use crate::context::mask::Mask;
use crate::context::pack::Packed;
use crate::context::tokens;
use crate::context::tools::{Setup, Toolbox};
use crate::domain::{Finding, RunId, RunRecord, Time, TurnPhase, Usage, content_hash, text};
use crate::git::{Change, Repo, Throwaway};
use crate::provider::chat::{Chat, ChatError, Tools};
use crate::provider::command::SETTINGS_OF_AGENTS;
use crate::review::Plan;
use crate::review::dialog::{self, Budget, Limits, Part, Say, Task, Trouble};
use crate::store::{Spending, Total};

/// Lines of code on each side of a finding that is judged a second time.
const OPINION_LINES: u32 = 40;
/// The longest answer that room is kept for in the window. Tokens; own: 300 findings, and what a model thinks before.
const ANSWER_TOKENS: u64 = 16_000;
/// What a provider adds to prompt and messages in words of its own: the system prompt is a message, and the answer is
/// primed, 3 tokens each by OpenAI's cookbook ("How to count tokens").
const OVERHEAD: u64 = 6;

/// Whom a task is put together for.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub settings: &'a ReviewerSettings,
    pub facts: &'a ModelFacts,
    pub mask: Mask,
    /// Whether tools can be offered to it.
    pub tools: Tools,
}

/// A task for a model, and all that it tells: rules, what was learned, the change, the code around it.
pub(super) struct Prepared {
    pub task: Task,
    pub packed: Packed,
}

/// A reviewer that talks to a model, ready for it.
pub(super) struct Opened {
    /// Its name in the settings.
    pub name: String,
    pub chat: Box<dyn Chat>,
    pub facts: ModelFacts,
    pub mask: Mask,
    /// Who takes over when it cannot go on.
    pub fallback: Option<String>,
    /// Where a program works; goes after the program.
    _checkout: Option<Throwaway>,
}

impl Opened {
    /// What an answer cost, in US dollars; 0 when no price is known.
    pub fn cost(&self, usage: &Usage) -> f64 {
        self.facts.price.as_ref().map_or(0.0, |price| price.cost(usage))
    }
}

impl Runner {
    /// The settings of a reviewer that talks to a model.
    pub(super) fn model_settings(&self, name: &str) -> Result<&ReviewerSettings, RunnerError> {
        self.settings.reviewers.get(name).ok_or_else(|| self.unknown_reviewer(name))
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
        let version = self.prompts()?.version();
        Ok(content_hash([version.as_bytes(), switches.as_bytes()]).chars().take(16).collect())
    }

    pub(super) fn prompts(&self) -> Result<Prompts, RunnerError> {
        Ok(Prompts::load(&self.paths)?)
    }

    /// Opens a reviewer by its name. Nothing is sent yet.
    pub(super) fn open_model(
        &self,
        name: &str,
        record: &RunRecord,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Opened, RunnerError> {
        let settings = self.model_settings(name)?;
        let facts = Models::load(&self.paths)?.of(settings);
        let mask = if settings.mask_secrets { Mask::On } else { Mask::Off };
        let checkout = match settings.kind {
            ReviewerKind::Command => Some(self.checkout(record, cancelled)?),
            _ => None,
        };
        let root = self.repo.root();
        let folder = checkout.as_ref().map_or(root.as_path(), Throwaway::folder);
        let chat = connect(name, settings, &facts, &self.paths, folder)?;
        Ok(Opened {
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
    fn checkout(&self, record: &RunRecord, cancelled: &dyn Fn() -> bool) -> Result<Throwaway, RunnerError> {
        if let Err(error) = self.tidy() {
            tracing::warn!(%error, "throw-away checkouts of dead workers stay");
        }
        let folder = self.checkouts().join(record.run_id.as_str());
        let checkout = self.repo.throwaway(&record.snapshot_commit, &folder, &SETTINGS_OF_AGENTS, cancelled)?;
        checkout.ok_or_else(|| RunnerError::Reviewer(ChatError::cancelled()))
    }

    /// The tools of a run's model.
    pub(super) fn toolbox(&self, record: &RunRecord, change: &Change, mask: Mask) -> Result<Toolbox, RunnerError> {
        let setup = Setup {
            repo: Repo::discover(&self.repo.root())?,
            base_commit: record.base_commit.clone(),
            snapshot_commit: record.snapshot_commit.clone(),
            change: change.clone(),
            reviewer: self.builtin(record)?,
            mask,
            folder: Some(self.paths.history_folder(&self.repo.key())),
        };
        Ok(Toolbox::new(setup)?)
    }

    /// A reviewer that was opened, as somebody to put a task together for.
    pub(super) fn who<'a>(&'a self, opened: &'a Opened) -> Result<Who<'a>, RunnerError> {
        let settings = self.model_settings(&opened.name)?;
        Ok(Who { settings, facts: &opened.facts, mask: opened.mask, tools: opened.chat.tools() })
    }

    /// What a run's model is asked to review, and what it is told of the code around that.
    pub(super) fn task(
        &self,
        who: Who<'_>,
        record: &RunRecord,
        change: &Change,
        (mut plan, known): (Plan, Vec<Finding>),
        (ready, wish, cancelled): (&Ready, &Wish, &dyn Fn() -> bool),
    ) -> Result<Prepared, RunnerError> {
        let Who { settings, facts, mask, .. } = who;
        let limits = self.limits(settings, facts, &record.run_id)?;
        let encoding = facts.encoding;
        let count = move |text: &str| tokens::count(encoding, text) as u64;
        let prompts = Rc::new(self.prompts()?);
        let subject = Subject::new(record, change, &plan, (encoding, mask), cancelled);
        let gathered = self.gather(&subject, &Sizes::of_review(&limits), &prompts, wish);
        let material = &gathered.material;
        let unseen: Vec<&str> = material.left_out.iter().map(|file| file.path.as_str()).collect();
        plan.files.retain(|file| !unseen.contains(&file.path.as_str()));
        plan.left_out.extend(material.left_out.iter().cloned());
        let parts = material.parts.iter().cloned();
        let parts = parts.map(|part| Part { path: part.path, hunks: part.hunks, text: part.text, tokens: part.tokens });
        let native = who.tools == Tools::Native && facts.takes_tools(settings.kind);
        let mut system = prompts.render(&Prompt::System);
        if settings.kind == ReviewerKind::Command {
            system = format!("{system}\n\n{}", prompts.render(&Prompt::Agent));
        }
        let mut task = Task {
            plan,
            known,
            parts: parts.collect(),
            system,
            tools: if native { Toolbox::specs() } else { Vec::new() },
            limits,
            count: Box::new(count),
            say: Box::new(|_| String::new()),
            overhead: OVERHEAD,
        };
        let mut told = Told {
            scope: scope_in_words(record),
            rules: gathered.rules_in_words(),
            patterns: gathered.patterns.clone(),
            not_shown: gathered.not_shown.clone(),
            context: String::new(),
        };
        // Programs look around by themselves; a prompt of the user's own may do without.
        let is_told = settings.kind != ReviewerKind::Command && prompts.has(PromptName::Task, "context");
        let most = if is_told { self.settings.context.tokens } else { 0 };
        let mut packed = Packed::default();
        if most > 0 {
            let empty = Say::Task { diff: "", later: "", known: "" };
            let words = count(&self.words(Rc::clone(&prompts), told.clone(), record, mask)(empty));
            let room = Room {
                window: task.limits.window_tokens,
                pinned: task.limits.pinned_tokens(),
                fixed: task.fixed_tokens() + words + task.known_tokens(),
                diff: material.tokens.min(task.limits.part_tokens()),
            };
            let (budget, index) = (room.budget(most), ready.index.as_ref());
            packed = self.around(&subject, (budget, Vec::new()), gathered.documents(), (index, wish));
            packed.notes.splice(0..0, ready.note().filter(|_| budget > 0).map(str::to_owned));
            told.context = packed.text();
        } else {
            packed.notes.push("it is told nothing of the code around the change".to_owned());
        }
        task.say = self.words(prompts, told, record, mask);
        packed = packed.behind(&gathered.pieces(task.first_parts()), &|text| tokens::count(encoding, text));
        packed.notes.extend(gathered.notes());
        packed.notes.extend(withheld(&material.beyond, &task.plan.left_out));
        Ok(Prepared { task, packed })
    }

    /// The engine's words, from the prompts.
    fn words(
        &self,
        prompts: Rc<Prompts>,
        told: Told,
        record: &RunRecord,
        mask: Mask,
    ) -> Box<dyn Fn(Say<'_>) -> String> {
        let (repo, commit) = (Repo::discover(&self.repo.root()).ok(), record.snapshot_commit.clone());
        Box::new(move |say| {
            let render = |prompt: Prompt<'_>| prompts.render(&prompt);
            match say {
                Say::Task { diff, later, known } => {
                    let Told { scope, rules, patterns, not_shown, context } = &told;
                    render(Prompt::Task { scope, rules, patterns, known, not_shown, diff, context, later })
                }
                Say::More { diff, later } => render(Prompt::More { diff, later }),
                Say::Uncovered { hunks } => render(Prompt::Uncovered { hunks }),
                Say::Phase { phase, turn, of } => render(match phase {
                    TurnPhase::Investigate => Prompt::TurnInvestigate { turn, of },
                    TurnPhase::Analyse => Prompt::TurnAnalyse { turn, of },
                    TurnPhase::Finish => Prompt::TurnFinish { turn, of },
                }),
                Say::Last => render(Prompt::Last),
                Say::Cut => render(Prompt::Cut),
                Say::Retry { trouble, reason } => render(match trouble {
                    Trouble::Empty => Prompt::RetryEmpty,
                    Trouble::Refused => Prompt::RetryRefused { reason },
                    Trouble::Unreadable => Prompt::RetryUnreadable { reason },
                }),
                Say::Masked { call, tokens } => {
                    let call = format!("{} {}", call.name, text::one_line(&call.arguments));
                    render(Prompt::Masked { call: &call, tokens })
                }
                Say::Summarise { messages } => {
                    render(Prompt::Summarize { text: messages, tokens: Limits::SUMMARY_TOKENS })
                }
                Say::Opinion { finding } => {
                    let code = repo.as_ref().map(|repo| code_around(repo, &commit, finding, mask)).unwrap_or_default();
                    render(Prompt::Critic { finding: &in_words(finding), code: &code })
                }
            }
        })
    }

    fn limits(&self, settings: &ReviewerSettings, facts: &ModelFacts, run: &RunId) -> Result<Limits, RunnerError> {
        let window = &self.settings.window;
        let budget = &self.settings.budget;
        // What an earlier attempt of this run has paid, the engine counts itself.
        let today = self.spending().since(self.midnight(), Some(run))?;
        let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        let tokens = [budget.run_tokens, left(budget.day_tokens, today.tokens)];
        let costs = [
            budget.run_cost.map(|cost| cost.as_f64()),
            budget.day_cost.map(|cost| (cost.as_f64() - today.cost).max(0.0)),
        ];
        let answer = facts.max_output.min(ANSWER_TOKENS);
        let turns = settings.max_turns.unwrap_or(window.max_turns).min(window.max_turns);
        Ok(Limits {
            max_turns: turns.max(1),
            window_tokens: window.max_tokens.min(facts.context_window.saturating_sub(answer)),
            output_tokens: answer,
            slide_after_turn: window.slide_after_turn,
            slide_over_messages: window.slide_over_messages,
            keep_messages: window.keep_messages,
            budget: Budget {
                tokens: tokens.into_iter().flatten().min(),
                cost: costs.into_iter().flatten().min_by(f64::total_cmp),
            },
            input_price: facts.price.as_ref().map(|price| price.cost(&Usage { input: 1_000_000, ..Usage::default() })),
            approximate: facts.encoding.is_approximate(),
            summary: match settings.summary {
                SummaryBy::Local => dialog::SummaryBy::Local,
                SummaryBy::Model => dialog::SummaryBy::Model,
            },
            opinion: settings.critic,
        })
    }

    /// The account of all that was paid, of every repository.
    pub(super) fn spending(&self) -> Spending {
        Spending::open(&self.paths.state)
    }

    /// What was paid since midnight, where the user is.
    pub(super) fn spent_today(&self) -> Result<Total, RunnerError> {
        Ok(self.spending().since(self.midnight(), None)?)
    }

    /// The last one, where the user is.
    fn midnight(&self) -> Time {
        let now = self.ambient.now().to_zoned(jiff::tz::TimeZone::system());
        now.start_of_day().map_or(now.timestamp(), |day| day.timestamp())
    }

    /// What is said when nothing more may be paid for today.
    pub(super) fn day_is_spent(&self) -> Result<Option<String>, RunnerError> {
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
struct Told {
    scope: String,
    rules: String,
    /// What was learned.
    patterns: String,
    /// What the change has besides its diff.
    not_shown: String,
    /// The code around the change.
    context: String,
}

/// What is reviewed, as the model is told.
fn scope_in_words(record: &RunRecord) -> String {
    use crate::domain::Scope;
    let short = |id: &str| id.chars().take(12).collect::<String>();
    match &record.scope {
        Scope::Worktree => "the uncommitted changes of the working tree".to_owned(),
        Scope::Staged => "the staged changes".to_owned(),
        Scope::All => "the whole tree, all of it as if it were new".to_owned(),
        scope => format!("{scope}, from {} to {}", short(&record.base_commit), short(&record.snapshot_commit)),
    }
}

fn in_words(finding: &Finding) -> String {
    format!(
        "{} at {}:{}-{}\n{}\n{}",
        finding.kind,
        finding.repo_relative_path,
        finding.line_start,
        finding.line_end,
        text::one_line(&finding.title),
        text::lines(&finding.explanation, 4),
    )
}

/// The code around a finding, with line numbers, as a model may see it.
fn code_around(repo: &Repo, commit: &str, finding: &Finding, mask: Mask) -> String {
    let path = &finding.repo_relative_path;
    let Ok(Some(bytes)) = repo.file_at(commit, path) else { return String::new() };
    let code = String::from_utf8_lossy(&bytes).into_owned();
    let code = mask.text(Some(path), &code);
    let (first, last) = (finding.line_start.saturating_sub(OPINION_LINES).max(1), finding.line_end + OPINION_LINES);
    let lines =
        (1..).zip(code.lines()).skip_while(|(number, _)| *number < first).take_while(|(number, _)| *number <= last);
    lines.map(|(number, line)| format!("{number:>5}  {}\n", text::one_line(line))).collect()
}
