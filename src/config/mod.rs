//! Loads the layered settings, keymaps, themes and models; the defaults are embedded from `assets/`. Also provides
//! the clock and the ids.
//!
//! - A reviewed repository can set only harmless keys (thresholds, ignored paths, scope).
//! - A setting is one field in `settings.rs`, and its default and explanation in `assets/config.toml`.

mod added_reviewer;
mod clock;
mod closest_word;
mod command_prompts;
mod custom_commands;
pub(crate) mod embedded;
mod error;
mod kept_setting;
mod keymap_files;
mod keys;
mod layers;
mod loosened_rules;
mod models;
mod money;
mod panels;
mod paths;
mod prompt_sets;
mod prompts;
mod reviewers;
mod settings;
mod settings_file;
mod strictness;
#[cfg(test)]
mod tests;
mod user_guidelines;

pub(crate) use added_reviewer::{add_reviewers, render_reviewer};
pub(crate) use clock::ClockAndIds;
pub(crate) use closest_word::did_you_mean;
pub use command_prompts::CommandPrompt;
pub use custom_commands::{CommandField, CommandPart, CommandPlace, CommandWord, CustomCommand};
pub(crate) use error::{ConfigError, SettingLocation};
pub(crate) use kept_setting::set_user_setting;
pub use keymap_files::{KeyPreset, KeymapFile};
pub(crate) use keymap_files::{embedded_keymaps, load_keymaps};
pub(crate) use keys::{SettingKey, SettingValue, Trust};
pub use layers::{
    EffectiveSetting, LoadedSettings, MistakePolicy, REPOSITORY_FILE, RepositorySource, RequiredAssets, SettingOrigin,
    SettingsSources, load_settings,
};
pub(crate) use loosened_rules::describe_loosened_rules;
pub(crate) use models::{ModelCatalog, ModelFacts, ModelMatch, ModelPrice, ToolUse};
pub(crate) use money::Dollars;
pub use panels::PanelSettings;
pub(crate) use panels::check_names as check_panel_names;
pub use paths::Paths;
pub(crate) use prompt_sets::{DEFAULT_PROMPT_SET, describe_prompt_set, list_prompt_sets};
pub use prompts::PromptName;
pub(crate) use prompts::{Prompt, Prompts};
pub(crate) use reviewers::ReviewerSettings;
pub use reviewers::{ApiKeySource, CommandDialect, ReviewerKind};
#[cfg(test)]
pub(crate) use settings::CONTEXT_KINDS;
pub use settings::{AcceptedRecords, FindingGrouping, FindingSort, SignChoice, TeamBackendKind};
pub(crate) use settings::{
    ColorChoice, ContextSettings, EmbeddingSettings, FileOrder, KEYS, NotifyMode, OpeningMode, RetentionSettings,
    RunOrder, Settings, WindowSettings,
};
pub(crate) use settings_file::{AllowedKeys, overlay_user_file};
pub(crate) use user_guidelines::UserGuidelines;

/// Loads the user's theme with this name merged over `base` (an embedded theme, or an empty text), as TOML. Returns
/// `None` if the user has no such theme.
///
/// # Errors
///
/// Fails if the theme file cannot be read, is not TOML, or has keys that `base` does not have.
pub fn load_user_theme(paths: &Paths, name: &str, base: &str) -> Result<Option<String>, ConfigError> {
    let shape = if base.is_empty() { AllowedKeys::Any } else { AllowedKeys::OnlyBaseKeys };
    paths.theme_file(name).map_or(Ok(None), |file| overlay_user_file(base, &file, shape))
}

/// Lists the names of the user's theme files, sorted.
pub fn list_user_themes(paths: &Paths) -> Vec<String> {
    let Some(folder) = paths.theme_file("x").and_then(|file| file.parent().map(std::path::Path::to_owned)) else {
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned)).collect();
    names.sort();
    names
}
