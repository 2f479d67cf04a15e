//! Loads the layered settings, keymaps, themes and models; the defaults are embedded from `assets/`. Also provides
//! the clock and the ids.
//!
//! - A reviewed repository can set only harmless keys (thresholds, ignored paths, scope).

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
pub use reviewers::{
    ApiKeySource, CommandDialect, ModelService, ReviewerKind, ReviewerSettings, ServiceAccess,
};
pub use settings_file::{AllowedKeys, overlay_user_file};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::{Priority, QuietHours, Scope, WatchTrigger};

/// When commands print in color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// Color on a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Effective settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub default_reviewer: String,
    /// Scope to review by default; `None` means the worktree if it has changes, else HEAD's commit.
    pub default_scope: Option<Scope>,
    pub max_parallel_runs: usize,
    /// Globs in .gitignore syntax for changed files that no review looks at.
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
    /// User's `[reviewers]` tables by name; `builtin` needs no table.
    pub reviewers: BTreeMap<String, ReviewerSettings>,
    /// `assets/smells.toml` with the user's and the repository's changes merged in, as TOML.
    pub smells: String,
    /// `assets/keymap.toml` with the user's changes merged in, as TOML.
    pub keymap: String,
}

/// Conversation window of a reviewer that talks to a model; see `assets/config.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    pub max_turns: u32,
    pub max_tokens: u64,
    pub slide_after_turn: u32,
    pub slide_over_messages: usize,
    pub keep_messages: usize,
}

/// Spending limits of reviewers; see `assets/config.toml` for what counts and why. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Maximum tokens of one run.
    pub run_tokens: Option<u64>,
    pub run_cost: Option<Dollars>,
    /// Maximum tokens of all runs since midnight.
    pub day_tokens: Option<u64>,
    pub day_cost: Option<Dollars>,
}

/// Policy for runs that newer code makes outdated; see `assets/config.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicySettings {
    /// Share of reviewed hunks in percent from which an outdated run may finish; see `policy::supersede::FinishRule`.
    pub finish_from: u32,
}

/// Retention of journals and snapshots; see `assets/config.toml`. `None` means forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    pub keep_days: Option<u32>,
    pub keep_runs: Option<usize>,
}

/// Automatic reviews and their frequency; see `assets/config.toml`. `None` means no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchSettings {
    pub on: Vec<WatchTrigger>,
    pub quiet_seconds: u64,
    pub interval_seconds: u64,
    pub min_changed_lines: u64,
    pub quiet_hours: Option<QuietHours>,
    /// Globs in .gitignore syntax for files whose changes start no review.
    pub ignored_paths: Vec<String>,
    /// Reviewer of automatic reviews; `None` means the default reviewer.
    pub reviewer: Option<String>,
    /// Maximum tokens per day, counting all runs.
    pub day_tokens: Option<u64>,
    pub day_cost: Option<Dollars>,
    pub poll: bool,
    pub poll_seconds: u64,
}

/// Settings for making fixes; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveSettings {
    /// Reviewer that makes fixes; `None` means that only exact suggestions are applied.
    pub reviewer: Option<String>,
    /// Maximum number of times that a patch is made again because its review found a problem.
    pub follow_ups: u32,
}

/// Code context around a change for reviewers that talk to a model; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSettings {
    /// Maximum tokens of context; 0 turns it off.
    pub tokens: u32,
    /// Embedding server; `None` turns embeddings off.
    pub embeddings: Option<EmbeddingSettings>,
}

/// Embedding server, configured like a reviewer; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingSettings {
    /// One of [`ReviewerKind::WITH_EMBEDDINGS`].
    pub kind: ReviewerKind,
    pub model: String,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub api_key_cmd: Option<String>,
    /// Maximum time that building a context waits for the server, over all requests.
    pub timeout: Duration,
}

impl EmbeddingSettings {
    /// Returns the settings of a reviewer at the same server, because the rules for the API key are the same.
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

/// Switch for learning from reviews, with the layer that set it; see `assets/config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearningSettings {
    pub enabled: bool,
    pub origin: SettingOrigin,
}

impl LearningSettings {
    /// Returns true if only this command's flag turned learning off. Processes that the command starts do not find
    /// this in the settings.
    pub fn is_refused_by_flag(&self) -> bool {
        !self.enabled && matches!(self.origin, SettingOrigin::Flag(_))
    }
}

impl Default for Settings {
    /// Returns the embedded defaults.
    fn default() -> Self {
        layers::load_defaults().unwrap_or_else(|error| unreachable!("a test loads the embedded settings: {error}"))
    }
}

/// Loads the user's theme with this name merged over `base` (an embedded theme, or an empty text), as TOML. Returns
/// `None` if the user has no such theme.
///
/// # Errors
///
/// Fails if the theme file cannot be read or is not TOML.
pub fn load_user_theme(paths: &Paths, name: &str, base: &str) -> Result<Option<String>, ConfigError> {
    paths.theme_file(name).map_or(Ok(None), |file| overlay_user_file(base, &file, AllowedKeys::Any))
}
