//! Merges the layers of settings: embedded defaults, the user's file, the repository's file, environment, flags.
//!
//! - From the repository's file, only keys with [`Trust::Repository`] and `[smells]` have an effect. Everything else
//!   in it, including mistakes, becomes a warning and stops no command.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::closest_word::did_you_mean;
use super::custom_commands::{self, CustomCommand};
use super::error::{ConfigError, SettingLocation};
use super::keymap_files::{self, KeyPreset, KeymapFile};
use super::keys::{self, SettingType, SettingValue, Trust};
use super::panels::{self, PanelSettings};
use super::reviewers::{self, ReviewerTable};
use super::settings_file::{self, SettingsFile, SymlinkPolicy};
use super::strictness::ThresholdStrictness;
use super::{KEYS, Paths, Settings, embedded, settings};
use crate::domain::text;

/// Name of the repository's settings file.
pub const REPOSITORY_FILE: &str = ".revdeck.toml";

/// Sources of the settings.
#[derive(Clone, Copy)]
pub struct SettingsSources<'a> {
    /// Folders with the user's files.
    pub paths: &'a Paths,
    /// Source of the repository's file.
    pub repository: RepositorySource<'a>,
    /// Looks up an environment variable; returns its value if it is set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Key, flag and value of each flag.
    pub flags: &'a [(&'static str, &'static str, String)],
    /// Embedded files that the command needs. A mistake in the user's keymap must not stop a review.
    pub texts: RequiredAssets,
    /// Policy for mistakes in the user's own settings.
    pub mistakes: MistakePolicy,
}

/// Source of the repository's settings file.
#[derive(Debug, Clone, Copy)]
pub enum RepositorySource<'a> {
    /// No file is read.
    None,
    /// The file in the root folder of a working tree.
    Worktree(&'a Path),
    /// The text of a file in a commit.
    Text {
        /// Path that messages name.
        path: &'a Path,
        /// Content of the file.
        text: &'a str,
    },
}

impl<'a> From<Option<&'a Path>> for RepositorySource<'a> {
    fn from(worktree: Option<&'a Path>) -> Self {
        worktree.map_or(Self::None, Self::Worktree)
    }
}

impl RepositorySource<'_> {
    fn read(self) -> Result<Option<SettingsFile>, ConfigError> {
        match self {
            Self::None => Ok(None),
            Self::Worktree(root) => SettingsFile::read(root.join(REPOSITORY_FILE), SymlinkPolicy::Refuse),
            Self::Text { path, text } => SettingsFile::from_text(path, text).map(Some),
        }
    }
}

/// Policy for mistakes in the user's own settings. A mistake in the repository's file is always a warning, because
/// its author must not be able to stop anybody from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MistakePolicy {
    /// Fail: the intended setting would not be in effect.
    Refuse,
    /// Warn and ignore the setting: the command only reads data and needs no settings.
    Warn,
}

/// Embedded files that are needed besides the plain settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAssets {
    /// No embedded file.
    None,
    /// `assets/smells.toml`.
    Smells,
    /// All embedded files, the keymap and the themes too.
    All,
}

/// Layer that set a value, with its location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Embedded default.
    #[default]
    Default,
    /// The user's file.
    User(SettingLocation),
    /// The repository's file.
    Repository(SettingLocation),
    /// Environment variable.
    Environment(SettingLocation),
    /// Flag of the command.
    Flag(SettingLocation),
}

impl SettingOrigin {
    /// Returns the location of the value; `None` for an embedded default.
    pub fn location(&self) -> Option<&SettingLocation> {
        match self {
            Self::Default => None,
            Self::User(place) | Self::Repository(place) | Self::Environment(place) | Self::Flag(place) => Some(place),
        }
    }
}

/// Setting in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// Key with its table, such as `window.max_turns`.
    pub key: String,
    /// Value in effect.
    pub value: SettingValue,
    /// Layer that set the value.
    pub origin: SettingOrigin,
}

/// Loaded settings with their origins and warnings.
#[derive(Debug)]
pub struct LoadedSettings {
    /// Effective settings.
    pub settings: Settings,
    /// Plain settings, in the order of `assets/config.toml`.
    pub entries: Vec<EffectiveSetting>,
    /// Changed thresholds as key, value and origin; keys are written as `smells.long_method.max_code_lines`.
    pub thresholds: Vec<(String, String, SettingOrigin)>,
    /// Settings of reviewers and panels with their origin, including defaults; keys are written as `reviewers.NAME.model`.
    pub reviewers: Vec<EffectiveSetting>,
    /// Warnings, one line each, safe for a terminal.
    pub warnings: Vec<String>,
    /// True if some of the user's own settings were ignored ([`MistakePolicy::Warn`]), so that the settings are not
    /// what the user intended.
    pub has_mistakes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingsLayer {
    Default,
    User,
    Repository,
}

impl SettingsLayer {
    fn origin(self, place: SettingLocation) -> SettingOrigin {
        match self {
            Self::Default => SettingOrigin::Default,
            Self::User => SettingOrigin::User(place),
            Self::Repository => SettingOrigin::Repository(place),
        }
    }
}

struct SettingsLoader {
    /// Values and origins, indexed like [`KEYS`].
    settings: Vec<Option<(SettingValue, SettingOrigin)>>,
    reviewers: BTreeMap<String, ReviewerTable>,
    commands: BTreeMap<String, CustomCommand>,
    panels: BTreeMap<String, PanelSettings>,
    /// Texts of saved filters, by name.
    filters: BTreeMap<String, String>,
    smells: Vec<toml::Table>,
    thresholds: Vec<(String, String, SettingOrigin)>,
    warnings: Vec<String>,
    mistakes: MistakePolicy,
    mistaken: bool,
}

/// Loads and merges all layers.
///
/// # Errors
///
/// Returns the first mistake in a flag, or in the user's settings with [`MistakePolicy::Refuse`].
pub fn load_settings(inputs: SettingsSources<'_>) -> Result<LoadedSettings, ConfigError> {
    let mut loading = SettingsLoader::from_defaults()?;
    loading.mistakes = inputs.mistakes;
    match SettingsFile::read(inputs.paths.config_file(), SymlinkPolicy::Follow) {
        Ok(Some(user)) => loading.apply_file(&user, SettingsLayer::User)?,
        Ok(None) => {}
        Err(error) => loading.report_mistake(SettingsLayer::User, error)?,
    }
    if inputs.texts != RequiredAssets::None {
        match SettingsFile::read(inputs.paths.smells_file(), SymlinkPolicy::Follow) {
            Ok(Some(user)) => loading.apply_smells_file(&user)?,
            Ok(None) => {}
            Err(error) => loading.report_mistake(SettingsLayer::User, error)?,
        }
    }
    match inputs.repository.read() {
        Ok(Some(repository)) => loading.apply_file(&repository, SettingsLayer::Repository)?,
        Ok(None) => {}
        Err(error) => loading.report_mistake(SettingsLayer::Repository, error)?,
    }
    for (index, key) in KEYS.iter().enumerate() {
        let variable = key.environment_variable();
        if let Some(found) = (inputs.environment)(&variable).filter(|value| !value.is_empty()) {
            let place = SettingLocation::Variable(variable);
            match parse_setting(key, &found, &place) {
                Ok(value) => loading.settings[index] = Some((value, SettingOrigin::Environment(place))),
                Err(error) => loading.report_mistake(SettingsLayer::User, error)?,
            }
        }
    }
    for (name, flag, given) in inputs.flags {
        let place = SettingLocation::Flag((*flag).to_owned());
        if let Some(index) = keys::find_key_index(name) {
            let value = parse_setting(&KEYS[index], given, &place)?;
            loading.settings[index] = Some((value, SettingOrigin::Flag(place)));
        }
    }
    loading.warn_unsound_patterns();
    let over = std::mem::take(&mut loading.smells);
    let preset = loading.key_preset();
    let (smells, keymap) = match merge_assets(inputs, preset, over.clone()) {
        Ok(texts) => texts,
        Err(error) => {
            // Only the keymap is read here and can hold a mistake.
            loading.report_mistake(SettingsLayer::User, error)?;
            merge_assets(SettingsSources { texts: RequiredAssets::Smells, ..inputs }, preset, over)?
        }
    };
    loading.finish(smells, keymap)
}

/// Returns the embedded settings alone.
pub(super) fn load_defaults() -> Result<Settings, ConfigError> {
    let loading = SettingsLoader::from_defaults()?;
    Ok(loading.finish(embedded::SMELLS.to_owned(), keymap_files::embedded_keymaps(KeyPreset::Vim))?.settings)
}

/// Returns the smells with the tables of `over` merged in order, and the keymap files.
fn merge_assets(
    inputs: SettingsSources<'_>,
    preset: KeyPreset,
    over: Vec<toml::Table>,
) -> Result<(String, Vec<KeymapFile>), ConfigError> {
    let mut smells = embedded::SMELLS.to_owned();
    if inputs.texts != RequiredAssets::None && !over.is_empty() {
        let mut merged = settings_file::parse_embedded(&smells);
        over.into_iter().for_each(|over| settings_file::merge_tables(&mut merged, over));
        smells = merged.to_string();
    }
    let keymap = match inputs.texts {
        RequiredAssets::All => keymap_files::load_keymaps(inputs.paths, preset)?,
        RequiredAssets::None | RequiredAssets::Smells => keymap_files::embedded_keymaps(preset),
    };
    Ok((smells, keymap))
}

fn parse_setting(key: &keys::SettingKey, given: &str, place: &SettingLocation) -> Result<SettingValue, ConfigError> {
    key.form.parse(given).map_err(|problem| ConfigError::Value {
        place: place.clone(),
        key: key.name.to_owned(),
        problem,
        allowed: key.form.describe_allowed(),
    })
}

impl SettingsLoader {
    fn from_defaults() -> Result<Self, ConfigError> {
        let mut loading = Self {
            settings: vec![None; KEYS.len()],
            reviewers: BTreeMap::new(),
            commands: BTreeMap::new(),
            panels: BTreeMap::new(),
            filters: BTreeMap::new(),
            smells: Vec::new(),
            thresholds: Vec::new(),
            warnings: Vec::new(),
            mistakes: MistakePolicy::Refuse,
            mistaken: false,
        };
        let defaults = SettingsFile { path: "assets/config.toml".into(), text: embedded::DEFAULTS.to_owned() };
        loading.apply_file(&defaults, SettingsLayer::Default)?;
        Ok(loading)
    }

    /// Records a mistake as a warning, or returns it as an error; the layer and the policy decide.
    fn report_mistake(&mut self, layer: SettingsLayer, error: ConfigError) -> Result<(), ConfigError> {
        match (layer, self.mistakes) {
            (SettingsLayer::Repository, _) => {}
            (SettingsLayer::User, MistakePolicy::Warn) => self.mistaken = true,
            (SettingsLayer::User, MistakePolicy::Refuse) | (SettingsLayer::Default, _) => return Err(error),
        }
        self.warnings.push(text::sanitize_line(&format!("ignored: {error}; {}", error.hint())).into_owned());
        Ok(())
    }

    /// Applies a settings file. Each entry is applied on its own: valid entries of a file with a mistake take effect,
    /// unless the mistake is an error.
    fn apply_file(&mut self, document: &SettingsFile, layer: SettingsLayer) -> Result<(), ConfigError> {
        let table = match document.parse_table() {
            Ok(table) => table,
            Err(error) => return self.report_mistake(layer, error),
        };
        for (name, value) in &table {
            let start = name.span().start;
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("smells", DeValue::Table(over)) => {
                    if let Err(error) = self.apply_smells(document, over, layer) {
                        self.report_mistake(layer, error)?;
                    }
                }
                ("reviewers", DeValue::Table(tables)) if layer != SettingsLayer::Repository => {
                    for (reviewer, fields) in tables {
                        match reviewers::parse_reviewer(document, reviewer, fields) {
                            Ok(parsed) => {
                                self.reviewers.insert(reviewer.get_ref().to_string(), parsed);
                            }
                            Err(error) => self.report_mistake(layer, error)?,
                        }
                    }
                }
                ("commands", DeValue::Table(tables)) if layer != SettingsLayer::Repository => {
                    for (command, fields) in tables {
                        match custom_commands::parse_command(document, command, fields) {
                            Ok(parsed) => {
                                self.commands.insert(parsed.name.clone(), parsed);
                            }
                            Err(error) => self.report_mistake(layer, error)?,
                        }
                    }
                }
                ("panels", DeValue::Table(tables)) if layer != SettingsLayer::Repository => {
                    for (panel, fields) in tables {
                        match panels::parse_panel(document, panel, fields) {
                            Ok(parsed) => {
                                self.panels.insert(parsed.name.clone(), parsed);
                            }
                            Err(error) => self.report_mistake(layer, error)?,
                        }
                    }
                }
                ("filters", DeValue::Table(filters)) if layer != SettingsLayer::Repository => {
                    for (name, text) in filters {
                        let key = format!("filters.{}", name.get_ref());
                        let error = match text.get_ref() {
                            // `@NAME` ends at a blank, and a quote holds blanks together.
                            _ if name.get_ref().is_empty()
                                || name.get_ref().contains(|c: char| c.is_whitespace() || c == '"') =>
                            {
                                let allowed = "a name without blanks and quotes, such as \"urgent\"".to_owned();
                                document.value_error(name.span().start, &key, "is no name of a filter", allowed)
                            }
                            DeValue::String(text) => {
                                self.filters.insert(name.get_ref().to_string(), text.to_string());
                                continue;
                            }
                            _ => {
                                let allowed = "a filter, such as \"status:open p:0,1\"".to_owned();
                                document.value_error(text.span().start, &key, "is no text", allowed)
                            }
                        };
                        self.report_mistake(layer, error)?;
                    }
                }
                (name, _) => self.apply_entry(document, layer, name, start, value)?,
            }
        }
        for (name, error) in reviewers::check_fallbacks(&self.reviewers) {
            self.report_mistake(layer, error)?;
            if let Some(reviewer) = self.reviewers.get_mut(&name) {
                reviewer.settings.fallback = None;
            }
        }
        let kind_of = |name: &str| self.reviewers.get(name).map(|reviewer| reviewer.settings.kind);
        let known: Vec<&str> = self.reviewers.keys().map(String::as_str).collect();
        let wrong = |(name, panel): (&String, &PanelSettings)| {
            panels::check_members(panel, kind_of, &known).map(|error| (name.clone(), error))
        };
        let wrong: Vec<(String, ConfigError)> = self.panels.iter().filter_map(wrong).collect();
        for (name, error) in wrong {
            self.report_mistake(layer, error)?;
            self.panels.remove(&name);
        }
        Ok(())
    }

    /// Applies a value, or a group of values.
    fn apply_entry(
        &mut self,
        document: &SettingsFile,
        layer: SettingsLayer,
        name: &str,
        start: usize,
        found: &toml::Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        if let DeValue::Table(fields) = found.get_ref()
            && keys::is_group(name)
        {
            return fields.iter().try_for_each(|(field, value)| {
                self.apply_entry(document, layer, &format!("{name}.{}", field.get_ref()), field.span().start, value)
            });
        }
        match self.apply_value(document, layer, name, start, found) {
            Ok(()) => Ok(()),
            Err(error) => self.report_mistake(layer, error),
        }
    }

    fn apply_value(
        &mut self,
        document: &SettingsFile,
        layer: SettingsLayer,
        name: &str,
        start: usize,
        found: &toml::Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let index = keys::find_key_index(name);
        let trusted = index.is_some_and(|index| KEYS[index].trust == Trust::Repository);
        if layer == SettingsLayer::Repository && !trusted {
            let allowed: Vec<&str> =
                KEYS.iter().filter(|key| key.trust == Trust::Repository).map(|key| key.name).collect();
            self.warnings.push(format!(
                "{}: {}: not obeyed; a repository may only set {} and [smells]",
                text::sanitize_line(&document.location_at(start).to_string()),
                text::sanitize_line(name),
                allowed.join(", ")
            ));
            return Ok(());
        }
        let Some(index) = index else {
            let names: Vec<&str> = KEYS
                .iter()
                .map(|key| key.name)
                .chain(["[reviewers.NAME]", "[panels.NAME]", "[commands.NAME]", "[filters]", "[smells]"])
                .collect();
            let problem = format!("there is no such setting{}", did_you_mean(name, names.iter().copied()));
            return Err(document.value_error(start, name, problem, names.join(", ")));
        };
        let key = &KEYS[index];
        let mut value = settings_file::parse_value(found.get_ref())
            .and_then(|value| key.form.check(value))
            .map_err(|problem| document.value_error(found.span().start, name, problem, key.form.describe_allowed()))?;
        if let (SettingType::Patterns, SettingsLayer::Repository, SettingValue::List(own)) =
            (key.form, layer, &mut value)
            && let Some((SettingValue::List(before), _)) = &self.settings[index]
        {
            own.splice(..0, before.iter().cloned());
        }
        if let (SettingsLayer::Repository, Some((users, SettingOrigin::User(_)))) = (layer, &self.settings[index])
            && keys::is_weaker_gate(name, &value, users)
        {
            self.warnings.push(format_not_stricter(&layer.origin(document.location_at(start)), name));
            return Ok(());
        }
        self.settings[index] = Some((value, layer.origin(document.location_at(start))));
        Ok(())
    }

    /// Applies the `[smells]` table of a settings file.
    fn apply_smells(
        &mut self,
        document: &SettingsFile,
        over: &DeTable<'_>,
        layer: SettingsLayer,
    ) -> Result<(), ConfigError> {
        settings_file::check_shape(document, over, &settings_file::parse_embedded(embedded::SMELLS), "smells")?;
        let Some(toml::Value::Table(mut table)) = settings_file::parse_owned_table(document)?.remove("smells") else {
            return Ok(());
        };
        let mut changed = collect_thresholds(document, over, layer);
        if layer == SettingsLayer::Repository {
            self.refuse_looser(&mut table, &mut changed);
        }
        self.thresholds.retain(|(key, ..)| changed.iter().all(|(other, ..)| other != key));
        self.thresholds.extend(changed);
        self.smells.push(table);
        Ok(())
    }

    /// Removes thresholds from a repository's table that are looser than the user's own. The user's thresholds must
    /// already be applied.
    fn refuse_looser(&mut self, theirs: &mut toml::Table, changed: &mut Vec<(String, String, SettingOrigin)>) {
        let mut users = toml::Table::new();
        self.smells.iter().for_each(|own| settings_file::merge_tables(&mut users, own.clone()));
        let strictness = ThresholdStrictness::from_toml(embedded::SMELLS);
        for (group, keys) in theirs {
            let (Some(own), toml::Value::Table(keys)) = (users.get(group), keys) else { continue };
            keys.retain(|name, value| {
                let looser =
                    own.get(name).is_some_and(|own| strictness.is_looser(&format!("{group}.{name}"), value, own));
                if looser {
                    let key = format!("smells.{group}.{name}");
                    let refused = changed.extract_if(.., |(other, ..)| *other == key);
                    self.warnings.extend(refused.map(|(key, _, origin)| format_not_stricter(&origin, &key)));
                }
                !looser
            });
        }
    }

    /// Applies the user's `smells.toml`, with lower precedence than every `[smells]` table.
    fn apply_smells_file(&mut self, document: &SettingsFile) -> Result<(), ConfigError> {
        let checked = document.parse_table().and_then(|table| {
            settings_file::check_shape(document, &table, &settings_file::parse_embedded(embedded::SMELLS), "")?;
            Ok((collect_thresholds(document, &table, SettingsLayer::User), settings_file::parse_owned_table(document)?))
        });
        match checked {
            Ok((mut changed, owned)) => {
                changed.retain(|(key, ..)| self.thresholds.iter().all(|(other, ..)| other != key));
                self.thresholds.splice(..0, changed);
                self.smells.insert(0, owned);
                Ok(())
            }
            Err(error) => self.report_mistake(SettingsLayer::User, error),
        }
    }

    /// Warns about invalid patterns in the lists of .gitignore patterns.
    fn warn_unsound_patterns(&mut self) {
        for (key, found) in KEYS.iter().zip(&self.settings) {
            let (SettingType::Patterns, Some((SettingValue::List(patterns), _))) = (key.form, found) else { continue };
            for pattern in patterns {
                let mut builder = ignore::gitignore::GitignoreBuilder::new("");
                if let Err(error) = builder.allow_unclosed_class(false).add_line(None, pattern) {
                    let line = format!("{}: {pattern:?} is no sound pattern: {error}", key.name);
                    self.warnings.push(text::sanitize_line(&line).into_owned());
                }
            }
        }
    }

    /// Returns the keys that the settings choose. A value that is no preset was refused before.
    fn key_preset(&self) -> KeyPreset {
        let found = keys::find_key_index("keys").and_then(|index| self.settings.get(index)?.as_ref());
        match found {
            Some((SettingValue::Text(word), _)) => word.parse().unwrap_or(KeyPreset::Vim),
            _ => KeyPreset::Vim,
        }
    }

    fn finish(self, smells: String, keymap: Vec<KeymapFile>) -> Result<LoadedSettings, ConfigError> {
        let entries = self.list_entries();
        let settings = self.build_settings(&entries, smells, keymap)?;
        let panels = self.panels.values().flat_map(list_panel_settings);
        let reviewers = self.reviewers.iter().flat_map(|(name, reviewer)| list_reviewer_settings(name, reviewer));
        let reviewers = reviewers.chain(panels).collect();
        let Self { thresholds, warnings, mistaken, .. } = self;
        Ok(LoadedSettings { settings, entries, thresholds, reviewers, warnings, has_mistakes: mistaken })
    }

    /// Lists the plain settings in effect. Every key has a value, because the embedded file sets them all (tested).
    fn list_entries(&self) -> Vec<EffectiveSetting> {
        let found = KEYS.iter().zip(&self.settings);
        let found = found.filter_map(|(key, found)| found.clone().map(|(value, origin)| (key.name, value, origin)));
        found.map(|(key, value, origin)| EffectiveSetting { key: key.to_owned(), value, origin }).collect()
    }

    fn build_settings(
        &self,
        entries: &[EffectiveSetting],
        smells: String,
        keymap: Vec<KeymapFile>,
    ) -> Result<Settings, ConfigError> {
        let values = entries.iter().map(|setting| (setting.key.as_str(), &setting.value));
        // The checks of the keys let nothing through that a field cannot hold.
        let mut settings = settings::read_values::<Settings>(values).map_err(|error| ConfigError::Content {
            place: SettingLocation::from_offset(Path::new("assets/config.toml"), "", 0),
            problem: error.to_string(),
            allowed: "the embedded file, with every setting".to_owned(),
        })?;
        if let Some(learning) = entries.iter().find(|setting| setting.key == "learning.enabled") {
            settings.learning.origin = learning.origin.clone();
        }
        settings.reviewers = self.reviewers.iter().map(|(name, it)| (name.clone(), it.settings.clone())).collect();
        settings.commands = self.commands.values().cloned().collect();
        settings.panels.clone_from(&self.panels);
        settings.filters.clone_from(&self.filters);
        (settings.smells, settings.keymap) = (smells, keymap);
        Ok(settings)
    }
}

/// Formats the warning about a repository's value that is looser than the user's own.
fn format_not_stricter(theirs: &SettingOrigin, key: &str) -> String {
    let place = theirs.location().map(ToString::to_string).unwrap_or_default();
    format!(
        "{}: {key}: not obeyed; a repository may only make it stricter than your own value",
        text::sanitize_line(&place)
    )
}

/// Lists a reviewer's settings, each with the location that set it.
fn list_reviewer_settings(name: &str, reviewer: &ReviewerTable) -> Vec<EffectiveSetting> {
    let origin =
        |field: &str| reviewer.locations.get(field).cloned().map_or(SettingOrigin::Default, SettingOrigin::User);
    let shown = reviewer.settings.list_fields().into_iter();
    shown
        .map(|(field, value)| EffectiveSetting {
            key: format!("reviewers.{name}.{field}"),
            value,
            origin: origin(field),
        })
        .collect()
}

/// Lists a panel's settings, each with the location of its reviewers.
fn list_panel_settings(panel: &PanelSettings) -> Vec<EffectiveSetting> {
    let origin = SettingOrigin::User(panel.location.clone());
    let shown = panel.list_fields().into_iter();
    shown
        .map(|(field, value)| EffectiveSetting {
            key: format!("panels.{}.{field}", panel.name),
            value,
            origin: origin.clone(),
        })
        .collect()
}

/// Lists the thresholds that a table changes, with the source text of their values.
fn collect_thresholds(
    document: &SettingsFile,
    over: &DeTable<'_>,
    layer: SettingsLayer,
) -> Vec<(String, String, SettingOrigin)> {
    let mut changed = Vec::new();
    for (group, values) in over {
        let DeValue::Table(values) = values.get_ref() else { continue };
        for (name, value) in values {
            let shown = document.text.get(value.span()).unwrap_or_default().to_owned();
            let key = format!("smells.{}.{}", group.get_ref(), name.get_ref());
            changed.push((key, shown, layer.origin(document.location_at(name.span().start))));
        }
    }
    changed
}
