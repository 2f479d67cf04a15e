//! The layers laid over each other: embedded defaults, the user's file, the repository's, environment, flags.
//!
//! Invariant: of the repository's file only keys with [`Trust::Repository`] and `[smells]` are obeyed; everything else
//! in it, mistakes included, becomes a warning and keeps no command from its work.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::document::{self, Document, Links, Shape};
use super::error::{ConfigError, Place};
use super::keys::{self, Form, KEYS, Trust, Value};
use super::reviewers::{self, Parsed};
use super::strictness::Strictness;
use super::{
    BudgetSettings, ColorChoice, ContextSettings, Dollars, EmbeddingSettings, LearningSettings, Paths, PolicySettings,
    ResolveSettings, RetentionSettings, ReviewerKind, Settings, WatchSettings, WindowSettings, embedded,
};
use crate::domain::text;

/// The repository's own settings file.
pub const REPOSITORY_FILE: &str = ".revdeck.toml";

/// What the settings are made from.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub paths: &'a Paths,
    /// The working tree, where there is one.
    pub worktree: Option<&'a Path>,
    /// Looks a variable up; its value when set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Key, flag and the flag's value.
    pub flags: &'a [(&'static str, &'static str, String)],
    /// Whether the texts of smells and keymap will be read: a mistake in the user's keymap is no reason not to review.
    pub texts: Texts,
    /// What becomes of a mistake in the user's own settings.
    pub mistakes: Mistakes,
}

/// What becomes of a mistake in the user's own settings; one in the repository's is always told and passed over, as
/// whoever wrote it must not be able to keep anybody from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistakes {
    /// It is an error: what was meant to hold would not.
    Refuse,
    /// It is told and passed over: the command reads what is there and needs no settings.
    Tell,
}

/// Which of the texts are needed besides the plain settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    None,
    Smells,
    All,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    User(Place),
    Repository(Place),
    Environment(Place),
    Flag(Place),
}

impl Origin {
    /// Where it stands; a default stands in this program.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Default => None,
            Self::User(place) | Self::Repository(place) | Self::Environment(place) | Self::Flag(place) => Some(place),
        }
    }
}

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// The settings, where each came from, and what was refused.
#[derive(Debug)]
pub struct Loaded {
    pub settings: Settings,
    /// In the order of `assets/config.toml`.
    pub shown: Vec<Setting>,
    /// Changed thresholds with their origin, as `smells.long_method.max_code_lines`.
    pub thresholds: Vec<(String, String, Origin)>,
    /// The settings of reviewers with their origin, as `reviewers.NAME.model`; defaults included.
    pub reviewers: Vec<Setting>,
    /// One line each, harmless for a terminal.
    pub warnings: Vec<String>,
    /// Some of the user's own settings were passed over ([`Mistakes::Tell`]): not what the user wants to work with.
    pub mistaken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Default,
    User,
    Repository,
}

impl Layer {
    fn origin(self, place: Place) -> Origin {
        match self {
            Self::Default => Origin::Default,
            Self::User => Origin::User(place),
            Self::Repository => Origin::Repository(place),
        }
    }
}

struct Loading {
    /// By index of [`KEYS`].
    settings: Vec<Option<(Value, Origin)>>,
    reviewers: BTreeMap<String, Parsed>,
    smells: Vec<toml::Table>,
    thresholds: Vec<(String, String, Origin)>,
    warnings: Vec<String>,
    mistakes: Mistakes,
    mistaken: bool,
}

/// Lays all layers over each other.
pub fn load(inputs: Inputs<'_>) -> Result<Loaded, ConfigError> {
    let mut loading = Loading::of_defaults()?;
    loading.mistakes = inputs.mistakes;
    match Document::read(inputs.paths.config_file(), Links::Follow) {
        Ok(Some(user)) => loading.file(&user, Layer::User)?,
        Ok(None) => {}
        Err(error) => loading.mistake(Layer::User, error)?,
    }
    if inputs.texts != Texts::None {
        match Document::read(inputs.paths.smells_file(), Links::Follow) {
            Ok(Some(user)) => loading.smells_file(&user)?,
            Ok(None) => {}
            Err(error) => loading.mistake(Layer::User, error)?,
        }
    }
    if let Some(worktree) = inputs.worktree {
        match Document::read(worktree.join(REPOSITORY_FILE), Links::Refuse) {
            Ok(Some(repository)) => loading.file(&repository, Layer::Repository)?,
            Ok(None) => {}
            Err(error) => loading.mistake(Layer::Repository, error)?,
        }
    }
    for (index, key) in KEYS.iter().enumerate() {
        let variable = key.variable();
        if let Some(found) = (inputs.environment)(&variable).filter(|value| !value.is_empty()) {
            let place = Place::Variable(variable);
            match checked(key, &found, &place) {
                Ok(value) => loading.settings[index] = Some((value, Origin::Environment(place))),
                Err(error) => loading.mistake(Layer::User, error)?,
            }
        }
    }
    for (name, flag, given) in inputs.flags {
        let place = Place::Flag((*flag).to_owned());
        if let Some(index) = keys::find(name) {
            let value = checked(&KEYS[index], given, &place)?;
            loading.settings[index] = Some((value, Origin::Flag(place)));
        }
    }
    loading.unsound_patterns();
    let over = std::mem::take(&mut loading.smells);
    let (smells, keymap) = match texts(inputs, over.clone()) {
        Ok(texts) => texts,
        Err(error) => {
            // Only the keymap is read there and can be mistaken.
            loading.mistake(Layer::User, error)?;
            texts(Inputs { texts: Texts::Smells, ..inputs }, over)?
        }
    };
    Ok(loading.finish(smells, keymap))
}

/// The embedded settings alone.
pub(super) fn defaults() -> Result<Settings, ConfigError> {
    let loading = Loading::of_defaults()?;
    Ok(loading.finish(embedded::SMELLS.to_owned(), embedded::KEYMAP.to_owned()).settings)
}

/// Smells with `over` laid over them in order, and the keymap with the user's file laid over it.
fn texts(inputs: Inputs<'_>, over: Vec<toml::Table>) -> Result<(String, String), ConfigError> {
    let mut smells = embedded::SMELLS.to_owned();
    if inputs.texts != Texts::None && !over.is_empty() {
        let mut merged = document::embedded(&smells);
        over.into_iter().for_each(|over| document::merge(&mut merged, over));
        smells = merged.to_string();
    }
    let mut keymap = embedded::KEYMAP.to_owned();
    if inputs.texts == Texts::All
        && let Some(text) = document::overlay(&keymap, &inputs.paths.keymap_file(), Shape::Free)?
    {
        keymap = text;
    }
    Ok((smells, keymap))
}

fn checked(key: &keys::Key, given: &str, place: &Place) -> Result<Value, ConfigError> {
    key.form.parse(given).map_err(|problem| ConfigError::Value {
        place: place.clone(),
        key: key.name.to_owned(),
        problem,
        allowed: key.form.allowed(),
    })
}

impl Loading {
    fn of_defaults() -> Result<Self, ConfigError> {
        let mut loading = Self {
            settings: vec![None; KEYS.len()],
            reviewers: BTreeMap::new(),
            smells: Vec::new(),
            thresholds: Vec::new(),
            warnings: Vec::new(),
            mistakes: Mistakes::Refuse,
            mistaken: false,
        };
        let defaults = Document { path: "assets/config.toml".into(), text: embedded::CONFIG.to_owned() };
        loading.file(&defaults, Layer::Default)?;
        Ok(loading)
    }

    /// Tells of a mistake and goes on, or ends here: by whose settings they are.
    fn mistake(&mut self, layer: Layer, error: ConfigError) -> Result<(), ConfigError> {
        match (layer, self.mistakes) {
            (Layer::Repository, _) => {}
            (Layer::User, Mistakes::Tell) => self.mistaken = true,
            (Layer::User, Mistakes::Refuse) | (Layer::Default, _) => return Err(error),
        }
        self.warnings.push(text::one_line(&format!("ignored: {error}; {}", error.hint())).into_owned());
        Ok(())
    }

    /// Every entry stands for itself: of a mistaken file the sound ones are obeyed, unless the first mistake ends it all.
    fn file(&mut self, document: &Document, layer: Layer) -> Result<(), ConfigError> {
        let table = match document.table() {
            Ok(table) => table,
            Err(error) => return self.mistake(layer, error),
        };
        for (name, value) in &table {
            let start = name.span().start;
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("smells", DeValue::Table(over)) => {
                    if let Err(error) = self.smells(document, over, layer) {
                        self.mistake(layer, error)?;
                    }
                }
                ("reviewers", DeValue::Table(tables)) if layer != Layer::Repository => {
                    for (reviewer, fields) in tables {
                        match reviewers::parse(document, reviewer, fields) {
                            Ok(parsed) => {
                                self.reviewers.insert(reviewer.get_ref().to_string(), parsed);
                            }
                            Err(error) => self.mistake(layer, error)?,
                        }
                    }
                }
                (name, _) => self.entry(document, layer, name, start, value)?,
            }
        }
        for (name, error) in reviewers::check_fallbacks(&self.reviewers) {
            self.mistake(layer, error)?;
            if let Some(reviewer) = self.reviewers.get_mut(&name) {
                reviewer.settings.fallback = None;
            }
        }
        Ok(())
    }

    /// A value, or a group of them.
    fn entry(
        &mut self,
        document: &Document,
        layer: Layer,
        name: &str,
        start: usize,
        found: &toml::Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        if let DeValue::Table(fields) = found.get_ref()
            && keys::is_group(name)
        {
            return fields.iter().try_for_each(|(field, value)| {
                self.entry(document, layer, &format!("{name}.{}", field.get_ref()), field.span().start, value)
            });
        }
        match self.value(document, layer, name, start, found) {
            Ok(()) => Ok(()),
            Err(error) => self.mistake(layer, error),
        }
    }

    fn value(
        &mut self,
        document: &Document,
        layer: Layer,
        name: &str,
        start: usize,
        found: &toml::Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let index = keys::find(name);
        let trusted = index.is_some_and(|index| KEYS[index].trust == Trust::Repository);
        if layer == Layer::Repository && !trusted {
            let allowed: Vec<&str> =
                KEYS.iter().filter(|key| key.trust == Trust::Repository).map(|key| key.name).collect();
            self.warnings.push(format!(
                "{}: {}: not obeyed; a repository may only set {} and [smells]",
                text::one_line(&document.place(start).to_string()),
                text::one_line(name),
                allowed.join(", ")
            ));
            return Ok(());
        }
        let Some(index) = index else {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).chain(["[reviewers.NAME]", "[smells]"]).collect();
            return Err(document.error(start, name, "there is no such setting", names.join(", ")));
        };
        let key = &KEYS[index];
        let mut value = document::value(found.get_ref())
            .and_then(|value| key.form.check(value))
            .map_err(|problem| document.error(found.span().start, name, problem, key.form.allowed()))?;
        if let (Form::Patterns, Layer::Repository, Value::List(own)) = (key.form, layer, &mut value)
            && let Some((Value::List(before), _)) = &self.settings[index]
        {
            own.splice(..0, before.iter().cloned());
        }
        if let (Layer::Repository, Some((users, Origin::User(_)))) = (layer, &self.settings[index])
            && keys::hides_more(name, &value, users)
        {
            self.warnings.push(not_stricter(&layer.origin(document.place(start)), name));
            return Ok(());
        }
        self.settings[index] = Some((value, layer.origin(document.place(start))));
        Ok(())
    }

    /// A `[smells]` table of a settings file.
    fn smells(&mut self, document: &Document, over: &DeTable<'_>, layer: Layer) -> Result<(), ConfigError> {
        document::check_shape(document, over, &document::embedded(embedded::SMELLS), "smells")?;
        let Some(toml::Value::Table(mut table)) = document::owned(document)?.remove("smells") else { return Ok(()) };
        let mut changed = thresholds(document, over, layer);
        if layer == Layer::Repository {
            self.refuse_looser(&mut table, &mut changed);
        }
        self.thresholds.retain(|(key, ..)| changed.iter().all(|(other, ..)| other != key));
        self.thresholds.extend(changed);
        self.smells.push(table);
        Ok(())
    }

    /// Takes out of a repository's thresholds, once those of the user are known, what is looser than the user's own.
    fn refuse_looser(&mut self, theirs: &mut toml::Table, changed: &mut Vec<(String, String, Origin)>) {
        let mut users = toml::Table::new();
        self.smells.iter().for_each(|own| document::merge(&mut users, own.clone()));
        let strictness = Strictness::of(embedded::SMELLS);
        for (group, keys) in theirs {
            let (Some(own), toml::Value::Table(keys)) = (users.get(group), keys) else { continue };
            keys.retain(|name, value| {
                let looser =
                    own.get(name).is_some_and(|own| strictness.is_looser(&format!("{group}.{name}"), value, own));
                if looser {
                    let key = format!("smells.{group}.{name}");
                    let refused = changed.extract_if(.., |(other, ..)| *other == key);
                    self.warnings.extend(refused.map(|(key, _, origin)| not_stricter(&origin, &key)));
                }
                !looser
            });
        }
    }

    /// The user's own `smells.toml`: below every `[smells]` table.
    fn smells_file(&mut self, document: &Document) -> Result<(), ConfigError> {
        let checked = document.table().and_then(|table| {
            document::check_shape(document, &table, &document::embedded(embedded::SMELLS), "")?;
            Ok((thresholds(document, &table, Layer::User), document::owned(document)?))
        });
        match checked {
            Ok((mut changed, owned)) => {
                changed.retain(|(key, ..)| self.thresholds.iter().all(|(other, ..)| other != key));
                self.thresholds.splice(..0, changed);
                self.smells.insert(0, owned);
                Ok(())
            }
            Err(error) => self.mistake(Layer::User, error),
        }
    }

    /// Patterns that cannot mean what was meant, because they are none.
    fn unsound_patterns(&mut self) {
        for (key, found) in KEYS.iter().zip(&self.settings) {
            let (Form::Patterns, Some((Value::List(patterns), _))) = (key.form, found) else { continue };
            for pattern in patterns {
                let mut builder = ignore::gitignore::GitignoreBuilder::new("");
                if let Err(error) = builder.allow_unclosed_class(false).add_line(None, pattern) {
                    let line = format!("{}: {pattern:?} is no sound pattern: {error}", key.name);
                    self.warnings.push(text::one_line(&line).into_owned());
                }
            }
        }
    }

    fn finish(self, smells: String, keymap: String) -> Loaded {
        let values = Values(&self.settings);
        let settings = Settings {
            default_reviewer: values.text("default_reviewer"),
            default_scope: values.text("default_scope").parse().ok(),
            max_parallel_runs: values.count("max_parallel_runs") as usize,
            ignored_paths: values.list("ignored_paths"),
            max_file_bytes: values.count("max_file_bytes"),
            ledger_tokens: values.count("ledger_tokens") as usize,
            fail_on: values.text("fail_on").parse().ok(),
            theme: values.text("theme"),
            ascii: values.flag("ascii"),
            color: match values.text("color").as_str() {
                "always" => ColorChoice::Always,
                "never" => ColorChoice::Never,
                _ => ColorChoice::Auto,
            },
            window: WindowSettings {
                max_turns: values.count("window.max_turns") as u32,
                max_tokens: values.count("window.max_tokens"),
                slide_after_turn: values.count("window.slide_after_turn") as u32,
                slide_over_messages: values.count("window.slide_over_messages") as usize,
                keep_messages: values.count("window.keep_messages") as usize,
            },
            budget: BudgetSettings {
                run_tokens: Some(values.count("budget.run_tokens")).filter(|tokens| *tokens > 0),
                run_cost: Some(values.money("budget.run_cost")).filter(|cost| *cost > Dollars::ZERO),
                day_tokens: Some(values.count("budget.day_tokens")).filter(|tokens| *tokens > 0),
                day_cost: Some(values.money("budget.day_cost")).filter(|cost| *cost > Dollars::ZERO),
            },
            policy: PolicySettings { finish_from: values.count("policy.finish_from") as u32 },
            retention: RetentionSettings {
                keep_days: Some(values.count("retention.keep_days") as u32).filter(|days| *days > 0),
                keep_runs: Some(values.count("retention.keep_runs") as usize).filter(|runs| *runs > 0),
            },
            watch: WatchSettings {
                on: values.list("watch.on").iter().filter_map(|word| word.parse().ok()).collect(),
                quiet_seconds: values.count("watch.quiet_seconds"),
                interval_seconds: values.count("watch.interval_seconds"),
                min_changed_lines: values.count("watch.min_changed_lines"),
                quiet_hours: values.text("watch.quiet_hours").parse().ok(),
                ignored_paths: values.list("watch.ignored_paths"),
                reviewer: Some(values.text("watch.reviewer")).filter(|name| name != "auto"),
                day_tokens: Some(values.count("watch.day_tokens")).filter(|tokens| *tokens > 0),
                day_cost: Some(values.money("watch.day_cost")).filter(|cost| *cost > Dollars::ZERO),
                poll: values.flag("watch.poll"),
                poll_seconds: values.count("watch.poll_seconds").max(1),
            },
            resolve: ResolveSettings {
                reviewer: Some(values.text("resolve.reviewer")).filter(|name| !name.is_empty()),
                follow_ups: values.count("resolve.follow_ups") as u32,
            },
            context: ContextSettings {
                tokens: values.count("context.tokens") as u32,
                embeddings: match values.text("context.embeddings.kind").as_str() {
                    "openai" => Some(ReviewerKind::Openai),
                    "ollama" => Some(ReviewerKind::Ollama),
                    _ => None,
                }
                .map(|kind| {
                    let said = |field: &str| {
                        Some(values.text(&format!("context.embeddings.{field}"))).filter(|text| !text.is_empty())
                    };
                    EmbeddingSettings {
                        kind,
                        model: said("model").unwrap_or_default(),
                        base_url: said("base_url"),
                        api_key_env: said("api_key_env"),
                        api_key_cmd: said("api_key_cmd"),
                        patience: Duration::from_secs(values.count("context.embeddings.seconds").max(1)),
                    }
                }),
            },
            learning: LearningSettings {
                enabled: values.flag("learning.enabled"),
                origin: values.origin("learning.enabled"),
            },
            reviewers: self.reviewers.iter().map(|(name, it)| (name.clone(), it.settings.clone())).collect(),
            smells,
            keymap,
        };
        let shown = KEYS
            .iter()
            .zip(&self.settings)
            .filter_map(|(key, found)| found.clone().map(|(value, origin)| (key.name.to_owned(), value, origin)))
            .map(|(key, value, origin)| Setting { key, value, origin })
            .collect();
        let reviewers = self.reviewers.iter().flat_map(|(name, reviewer)| shown_reviewer(name, reviewer)).collect();
        let Self { thresholds, warnings, mistaken, .. } = self;
        Loaded { settings, shown, thresholds, reviewers, warnings, mistaken }
    }
}

/// The warning about a repository's value that is looser than the user's own.
fn not_stricter(theirs: &Origin, key: &str) -> String {
    let place = theirs.place().map(ToString::to_string).unwrap_or_default();
    format!("{}: {key}: not obeyed; a repository may only make it stricter than your own value", text::one_line(&place))
}

/// A reviewer's settings, each with the place that set it.
fn shown_reviewer(name: &str, reviewer: &Parsed) -> Vec<Setting> {
    let origin = |field: &str| reviewer.places.get(field).cloned().map_or(Origin::Default, Origin::User);
    let shown = reviewer.settings.shown().into_iter();
    shown
        .map(|(field, value)| Setting { key: format!("reviewers.{name}.{field}"), value, origin: origin(field) })
        .collect()
}

/// The thresholds that a table changes, as they stand in the file.
fn thresholds(document: &Document, over: &DeTable<'_>, layer: Layer) -> Vec<(String, String, Origin)> {
    let mut changed = Vec::new();
    for (group, values) in over {
        let DeValue::Table(values) = values.get_ref() else { continue };
        for (name, value) in values {
            let shown = document.text.get(value.span()).unwrap_or_default().to_owned();
            let key = format!("smells.{}.{}", group.get_ref(), name.get_ref());
            changed.push((key, shown, layer.origin(document.place(name.span().start))));
        }
    }
    changed
}

/// Values by name; every key has one, because the embedded file sets them all (a test sees to it).
struct Values<'a>(&'a [Option<(Value, Origin)>]);

impl Values<'_> {
    fn found(&self, name: &str) -> Option<&(Value, Origin)> {
        keys::find(name).and_then(|index| self.0[index].as_ref())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.found(name).map(|(value, _)| value)
    }

    fn origin(&self, name: &str) -> Origin {
        self.found(name).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    fn text(&self, name: &str) -> String {
        match self.get(name) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    fn count(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Count(count)) => *count,
            _ => 0,
        }
    }

    fn money(&self, name: &str) -> Dollars {
        match self.get(name) {
            Some(Value::Money(amount)) => *amount,
            _ => Dollars::ZERO,
        }
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Some(Value::List(list)) => list.clone(),
            _ => Vec::new(),
        }
    }
}
