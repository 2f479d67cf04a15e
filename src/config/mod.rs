//! Layered settings, keymaps, themes; defaults embedded from `assets/`. Also what comes from outside: clock and ids.
//!
//! Invariant: a reviewed repository can set only harmless keys (thresholds, ignored paths, scope).

mod clock;
pub mod embedded;
mod error;
mod keys;
mod layers;
mod models;
mod money;
mod paths;
mod prompts;
mod reviewers;
mod settings_file;
mod strictness;
#[cfg(test)]
mod tests;

pub use clock::ClockAndIds;
pub use error::{ConfigError, SettingLocation};
pub use keys::{KEYS, SettingKey, SettingType, SettingValue, Trust};
pub use layers::{
    EffectiveSetting, LoadedSettings, MistakePolicy, REPOSITORY_FILE, RequiredAssets, SettingOrigin, SettingsSources,
    load_settings,
};
pub use models::{LongPromptPrice, ModelCatalog, ModelFacts, ModelMatch, ModelPrice, ToolUse};
pub use money::Dollars;
pub use paths::Paths;
pub use prompts::{Prompt, PromptName, Prompts};
pub use reviewers::{ApiKeySource, CommandDialect, ReviewerKind, ReviewerSettings, SummaryAuthor};
pub use settings_file::{AllowedKeys, overlay_user_file};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::{Priority, QuietHours, Scope, WatchTrigger};

/// When commands print in colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// The settings in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub default_reviewer: String,
    /// `None` for the worktree when it is dirty, else HEAD's commit.
    pub default_scope: Option<Scope>,
    pub max_parallel_runs: usize,
    /// Globs in the syntax of .gitignore: changed files that no review looks at.
    pub ignored_paths: Vec<String>,
    pub max_file_bytes: u64,
    pub ledger_tokens: usize,
    pub fail_on: Option<Priority>,
    pub theme: String,
    pub ascii: bool,
    pub color: ColorChoice,
    pub window: WindowSettings,
    pub budget: BudgetSettings,
    pub policy: PolicySettings,
    pub retention: RetentionSettings,
    pub watch: WatchSettings,
    pub resolve: ResolveSettings,
    pub context: ContextSettings,
    pub learning: LearningSettings,
    /// The user's `[reviewers]` tables by name; `builtin` needs none.
    pub reviewers: BTreeMap<String, ReviewerSettings>,
    /// `assets/smells.toml` with the user's and the repository's changes laid over it, as TOML.
    pub smells: String,
    /// `assets/keymap.toml` with the user's changes laid over it, as TOML.
    pub keymap: String,
}

/// What a reviewer that talks to a model keeps in view; see `assets/config.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    pub max_turns: u32,
    pub max_tokens: u64,
    pub slide_after_turn: u32,
    pub slide_over_messages: usize,
    pub keep_messages: usize,
}

/// What reviewers may spend; see `assets/config.toml` for what counts and why. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Tokens of one run.
    pub run_tokens: Option<u64>,
    pub run_cost: Option<Dollars>,
    /// Tokens of all runs since midnight.
    pub day_tokens: Option<u64>,
    pub day_cost: Option<Dollars>,
}

/// What the harness does about runs that newer code makes old; see `assets/config.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicySettings {
    /// See `policy::supersede::FinishRule`; in percent.
    pub finish_from: u32,
}

/// Which runs keep their journals and snapshots; see `assets/config.toml`. `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    pub keep_days: Option<u32>,
    pub keep_runs: Option<usize>,
}

/// What is reviewed without being asked for, and how often; see `assets/config.toml`. `None` is no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchSettings {
    pub on: Vec<WatchTrigger>,
    pub quiet_seconds: u64,
    pub interval_seconds: u64,
    pub min_changed_lines: u64,
    pub quiet_hours: Option<QuietHours>,
    /// Globs in the syntax of .gitignore: files whose movement is none.
    pub ignored_paths: Vec<String>,
    /// `None` for the default reviewer.
    pub reviewer: Option<String>,
    /// Of a day, all runs counted.
    pub day_tokens: Option<u64>,
    pub day_cost: Option<Dollars>,
    pub poll: bool,
    pub poll_seconds: u64,
}

/// How fixes are made; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveSettings {
    /// `None`: only exact suggestions are put in.
    pub reviewer: Option<String>,
    /// How often a patch is made again because its review found fault with it.
    pub follow_ups: u32,
}

/// What a reviewer that talks to a model is told of the code around a change; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSettings {
    /// At most; 0 is nothing.
    pub tokens: u32,
    /// Who makes vectors of code; `None` is nobody.
    pub embeddings: Option<EmbeddingSettings>,
}

/// A server that makes vectors of code, as reviewers have theirs; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingSettings {
    /// `Openai` or `Ollama`.
    pub kind: ReviewerKind,
    pub model: String,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub api_key_cmd: Option<String>,
    /// How long a context waits for it, all requests together.
    pub timeout: Duration,
}

impl EmbeddingSettings {
    /// As a reviewer that is reached the same way: where its key comes from follows the same rules.
    pub fn as_reviewer(&self) -> ReviewerSettings {
        ReviewerSettings {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            api_key_cmd: self.api_key_cmd.clone(),
            ..ReviewerSettings::new(self.kind)
        }
    }
}

/// Whether reviews teach; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearningSettings {
    pub enabled: bool,
    pub origin: SettingOrigin,
}

impl LearningSettings {
    /// Whether this command alone was told to learn nothing: what it starts does not find that in the settings.
    pub fn is_refused_by_flag(&self) -> bool {
        !self.enabled && matches!(self.origin, SettingOrigin::Flag(_))
    }
}

impl Default for Settings {
    /// The embedded defaults alone.
    fn default() -> Self {
        layers::load_defaults().unwrap_or_else(|error| unreachable!("a test loads the embedded settings: {error}"))
    }
}

/// The user's theme of this name laid over `base` (an embedded theme, or nothing), as TOML; `None` when there is none.
pub fn load_user_theme(paths: &Paths, name: &str, base: &str) -> Result<Option<String>, ConfigError> {
    paths.theme_file(name).map_or(Ok(None), |file| overlay_user_file(base, &file, AllowedKeys::Any))
}
