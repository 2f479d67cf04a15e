//! Provides facts about models, merged from `assets/models.toml`, the user's `models.toml` and the reviewer's own
//! settings, in rising precedence.
//!
//! - A price applies only at the hosts of its seller; any other host has no price.
//! - An unknown model works, and [`ModelFacts::known`] marks its facts as a guess.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::settings_file::{SettingsFile, SymlinkPolicy};
use super::{ConfigError, Dollars, Paths, ReviewerKind, ReviewerSettings, embedded};
use crate::domain::{Effort, Encoding, Usage};

/// Tool support of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolUse {
    Yes,
    No,
    /// Tools work together with reasoning only over OpenAI's Responses API.
    Responses,
}

/// Source of a model's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelMatch {
    /// The matching name in `models.toml`.
    Name(String),
    /// No name matches.
    Guess,
}

/// Price of a model in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPrice {
    pub input: Dollars,
    /// Price of input that is read from the provider's cache.
    pub cached: Dollars,
    pub output: Dollars,
    /// Price of input that is not read from the cache, in percent of `input`: such input is written to the cache.
    pub written_percent: u32,
    pub long: Option<LongPromptPrice>,
    /// Source of the price, for a person: the seller and the date of its list, or who set it.
    pub from: String,
}

/// Higher price for all tokens of a request whose prompt exceeds a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPromptPrice {
    /// Prompt size in tokens above which the price applies.
    pub over: u64,
    /// Factor on the price of input, cached or not, in percent.
    pub input_percent: u32,
    /// Factor on the price of output, in percent.
    pub output_percent: u32,
}

impl ModelPrice {
    /// Returns the price of a free service.
    fn free(from: &str) -> Self {
        let (zero, from) = (Dollars::ZERO, from.to_owned());
        Self { input: zero, cached: zero, output: zero, written_percent: 100, long: None, from }
    }

    /// Returns true if no token costs anything.
    pub fn is_free(&self) -> bool {
        [self.input, self.cached, self.output].iter().all(|price| *price == Dollars::ZERO)
    }

    /// Returns the maximum cost of one request in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let times = |percent: u32| f64::from(percent) / 100.0;
        let (long_input, long_output) = match self.long {
            Some(long) if usage.input > long.over => (times(long.input_percent), times(long.output_percent)),
            _ => (1.0, 1.0),
        };
        let fresh = usage.input.saturating_sub(usage.cached) as f64 * self.input.as_f64() * times(self.written_percent);
        let cached = usage.cached.min(usage.input) as f64 * self.cached.as_f64();
        let output = (usage.output + usage.reasoning) as f64 * self.output.as_f64();
        ((fresh + cached) * long_input + output * long_output) / 1e6
    }
}

/// Limits, abilities and price of a reviewer's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// Maximum tokens of prompt and answer together.
    pub context_window: u64,
    /// Maximum tokens of an answer.
    pub max_output: u64,
    pub encoding: Encoding,
    pub tools: ToolUse,
    /// Accepted words for the reasoning effort; empty when the effort cannot be set by a word.
    pub effort: Vec<Effort>,
    /// True if requests may contain a temperature.
    pub temperature: bool,
    /// `None` when the price is unknown: tokens can be limited then, but not the cost.
    pub price: Option<ModelPrice>,
    pub known: ModelMatch,
}

impl ModelFacts {
    /// Returns true if the model gets tools when it is reached through this kind of reviewer.
    pub fn takes_tools(&self, kind: ReviewerKind) -> bool {
        match self.tools {
            ToolUse::Yes => true,
            ToolUse::Responses => kind == ReviewerKind::OpenaiResponses,
            ToolUse::No => false,
        }
    }

    /// Returns true if the price is known and zero.
    pub fn is_free(&self) -> bool {
        self.price.as_ref().is_some_and(ModelPrice::is_free)
    }
}

/// Model tables: the embedded one and the user's.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCatalog {
    embedded: ModelTable,
    users: ModelTable,
}

/// Model table as parsed from one file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModelTable {
    sellers: BTreeMap<String, ModelSeller>,
    families: BTreeMap<String, ModelEntry>,
    models: BTreeMap<String, ModelEntry>,
    guesses: BTreeMap<String, ModelEntry>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSeller {
    hosts: Vec<String>,
    /// Date on which the prices were looked up.
    checked: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModelEntry {
    family: Option<String>,
    seller: Option<String>,
    #[serde(deserialize_with = "window")]
    context_window: Option<u64>,
    #[serde(deserialize_with = "output")]
    max_output: Option<u64>,
    encoding: Option<EncodingName>,
    #[serde(deserialize_with = "percent")]
    factor: Option<u32>,
    tools: Option<ToolUse>,
    effort: Option<Vec<Effort>>,
    temperature: Option<bool>,
    price: Option<PriceEntry>,
    #[serde(deserialize_with = "percent")]
    written: Option<u32>,
    long: Option<LongPromptEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum EncodingName {
    #[serde(rename = "o200k_base")]
    O200kBase,
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
    #[serde(rename = "approximate")]
    Approximate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    input: Dollars,
    cached: Option<Dollars>,
    output: Dollars,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPromptEntry {
    over: u64,
    #[serde(deserialize_with = "percent")]
    input: Option<u32>,
    #[serde(deserialize_with = "percent")]
    output: Option<u32>,
}

fn check_range(found: u64, min: u64, max: u64) -> Result<Option<u64>, String> {
    if (min..=max).contains(&found) { Ok(Some(found)) } else { Err(format!("{found} is not from {min} to {max}")) }
}

/// Parses `context_window` within the bounds of the same key in a `[reviewers]` table.
fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    check_range(u64::deserialize(deserializer)?, 4000, 10_000_000).map_err(D::Error::custom)
}

fn output<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    check_range(u64::deserialize(deserializer)?, 256, 1_000_000).map_err(D::Error::custom)
}

/// Parses a factor to percent.
fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let factor = f64::deserialize(deserializer)?;
    if (0.1..=100.0).contains(&factor) {
        Ok(Some((factor * 100.0).round() as u32))
    } else {
        Err(D::Error::custom(format!("{factor} is not from 0.1 to 100")))
    }
}

impl ModelEntry {
    fn merge_over(&self, base: &Self) -> Self {
        // A factor belongs to the encoding in the same entry.
        let (encoding, factor) = match self.encoding {
            Some(_) => (self.encoding, self.factor),
            None => (base.encoding, self.factor.or(base.factor)),
        };
        Self {
            family: self.family.clone().or_else(|| base.family.clone()),
            seller: self.seller.clone().or_else(|| base.seller.clone()),
            context_window: self.context_window.or(base.context_window),
            max_output: self.max_output.or(base.max_output),
            encoding,
            factor,
            tools: self.tools.or(base.tools),
            effort: self.effort.clone().or_else(|| base.effort.clone()),
            temperature: self.temperature.or(base.temperature),
            price: self.price.or(base.price),
            written: self.written.or(base.written),
            long: self.long.or(base.long),
        }
    }
}

/// Converts a model name to lower case, with hyphens instead of dots, so that `Claude-Opus-4.5` equals
/// `claude-opus-4-5`.
fn normalize_model_name(name: &str) -> String {
    name.to_lowercase().replace('.', "-")
}

/// Returns true if a normalized id matches a normalized name: equal, or longer by a suffix that is not a further
/// version number.
fn is_name_match(id: &str, name: &str) -> bool {
    let Some(rest) = id.strip_prefix(name) else { return false };
    let Some(word) = rest.strip_prefix(['-', ':', '@', '_']) else { return rest.is_empty() };
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_version = (1..=2).contains(&digits) && !word[digits..].starts_with(|c: char| c.is_alphanumeric());
    !is_version || !rest.starts_with('-')
}

impl Default for ModelCatalog {
    /// Returns the embedded table alone.
    fn default() -> Self {
        let embedded = serde_json::from_str(embedded::MODELS_JSON)
            .unwrap_or_else(|error| unreachable!("a test reads the embedded models: {error}"));
        Self { embedded, users: ModelTable::default() }
    }
}

impl ModelCatalog {
    /// Loads the embedded table and the user's table over it.
    ///
    /// # Errors
    ///
    /// Fails if the user's file cannot be read, or if an entry is invalid.
    pub fn load(paths: &Paths) -> Result<Self, ConfigError> {
        let models = Self::default();
        let Some(document) = SettingsFile::read(paths.models_file(), SymlinkPolicy::Follow)? else { return Ok(models) };
        document.parse_table()?;
        let content = |offset: usize, problem: String| ConfigError::Content {
            place: document.location_at(offset),
            problem,
            allowed: "what `revdeck config defaults models` explains".to_owned(),
        };
        let users: ModelTable = toml::from_str(&document.text)
            .map_err(|error| content(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
        let models = Self { users, ..models };
        match models.find_broken_reference() {
            None => Ok(models),
            Some((name, problem)) => Err(content(document.text.find(&name).unwrap_or(0), problem)),
        }
    }

    /// Finds a reference to an unknown family or seller, or an approximate encoding without a factor. Returns the
    /// entry's name and a description.
    fn find_broken_reference(&self) -> Option<(String, String)> {
        [&self.embedded, &self.users].into_iter().find_map(|table| {
            let entries = table.models.iter().chain(&table.families).chain(&table.guesses);
            entries.into_iter().find_map(|(name, entry)| {
                let family = entry.family.as_ref().filter(|it| self.find_entry(|table| &table.families, it).is_none());
                let seller = entry.seller.as_ref().filter(|it| self.find_seller(it).is_none());
                let problem = match (family, seller) {
                    (Some(family), _) => format!("there is no family {family:?}"),
                    (None, Some(seller)) => format!("there is no seller {seller:?}"),
                    (None, None) if entry.encoding == Some(EncodingName::Approximate) && entry.factor.is_none() => {
                        "encoding = \"approximate\" needs a factor".to_owned()
                    }
                    (None, None) => return None,
                };
                Some((name.clone(), format!("{name}: {problem}")))
            })
        })
    }

    /// Returns an entry, with the user's values over the embedded ones.
    fn find_entry(
        &self,
        group: impl Fn(&ModelTable) -> &BTreeMap<String, ModelEntry>,
        name: &str,
    ) -> Option<ModelEntry> {
        match (group(&self.users).get(name), group(&self.embedded).get(name)) {
            (Some(own), Some(base)) => Some(own.merge_over(base)),
            (Some(entry), None) | (None, Some(entry)) => Some(entry.clone()),
            (None, None) => None,
        }
    }

    fn find_seller(&self, name: &str) -> Option<&ModelSeller> {
        self.users.sellers.get(name).or_else(|| self.embedded.sellers.get(name))
    }

    /// Returns the longest model name that matches an id.
    fn find_name(&self, id: &str) -> Option<&str> {
        let id = normalize_model_name(id);
        let names = self.users.models.keys().chain(self.embedded.models.keys());
        let fitting = names.filter(|name| {
            let name = normalize_model_name(name);
            // The part before a slash names the service that serves the model, or a folder of it.
            is_name_match(&id, &name) || id.rsplit_once('/').is_some_and(|(_, last)| is_name_match(last, &name))
        });
        fitting.max_by_key(|name| name.len()).map(String::as_str)
    }

    /// Returns the facts, completed by the guess with the name `guess`, and the seller of the price.
    fn resolve_facts(&self, id: &str, guess: &str) -> (ModelFacts, Option<&ModelSeller>) {
        let name = self.find_name(id);
        let found = name.and_then(|name| self.find_entry(|table| &table.models, name));
        let mut entry = found.unwrap_or_default();
        if let Some(family) = entry.family.as_ref().and_then(|family| self.find_entry(|table| &table.families, family))
        {
            entry = entry.merge_over(&family);
        }
        for guess in [guess, "other"] {
            if let Some(guess) = self.find_entry(|table| &table.guesses, guess) {
                entry = entry.merge_over(&guess);
            }
        }
        let seller = entry.seller.as_ref().and_then(|name| self.find_seller(name));
        let from = match (&entry.seller, seller) {
            (Some(name), Some(seller)) => format!("{name}, {}", seller.checked),
            _ => "models.toml".to_owned(),
        };
        let facts = ModelFacts {
            context_window: entry.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output: entry.max_output.unwrap_or(DEFAULT_MAX_OUTPUT),
            encoding: match (entry.encoding, entry.factor) {
                (Some(EncodingName::O200kBase), _) | (None, None) => Encoding::O200kBase,
                (Some(EncodingName::Cl100kBase), _) => Encoding::Cl100kBase,
                (Some(EncodingName::Approximate) | None, factor) => {
                    Encoding::Approximate { percent: factor.unwrap_or(100) }
                }
            },
            tools: entry.tools.unwrap_or(ToolUse::No),
            effort: entry.effort.unwrap_or_default(),
            temperature: entry.temperature.unwrap_or(false),
            price: entry.price.map(|price| ModelPrice {
                input: price.input,
                cached: price.cached.unwrap_or(price.input),
                output: price.output,
                written_percent: entry.written.unwrap_or(100),
                long: entry.long.map(|long| LongPromptPrice {
                    over: long.over,
                    input_percent: long.input.unwrap_or(100),
                    output_percent: long.output.unwrap_or(100),
                }),
                from,
            }),
            known: name.map_or(ModelMatch::Guess, |name| ModelMatch::Name(name.to_owned())),
        };
        (facts, seller)
    }

    /// Returns the facts of a reviewer's model at the place where it is served, with the reviewer's own settings
    /// applied.
    pub fn facts_for_reviewer(&self, reviewer: &ReviewerSettings) -> ModelFacts {
        let home = reviewer.is_official_service() || reviewer.kind.local_server().is_some();
        let (mut facts, seller) =
            self.resolve_facts(&reviewer.model, if home { reviewer.kind.word() } else { "other" });
        let sold_here = seller.is_none_or(|seller| {
            reviewer.host().is_some_and(|host| seller.hosts.iter().any(|sold| sold.eq_ignore_ascii_case(host)))
        });
        if let Some(server) = reviewer.kind.local_server() {
            // The server allocates memory for the context window that a request names, and its own default is small.
            let (asked, _) = self.resolve_facts("", reviewer.kind.word());
            facts.context_window = facts.context_window.min(asked.context_window);
            facts.price = Some(ModelPrice::free(server));
        } else if !sold_here {
            facts.price = None;
        }
        if let (Some(input), Some(output)) = (reviewer.price_input, reviewer.price_output) {
            let cached = reviewer.price_cached.unwrap_or(input);
            facts.price = Some(ModelPrice { input, cached, output, ..ModelPrice::free("your settings") });
        }
        facts.context_window = reviewer.context_window.unwrap_or(facts.context_window);
        facts.max_output = reviewer.max_output.unwrap_or(facts.max_output).min(facts.context_window / 2);
        facts.encoding = reviewer.encoding.unwrap_or(facts.encoding);
        match reviewer.tools {
            Some(true) if facts.tools == ToolUse::No => facts.tools = ToolUse::Yes,
            Some(false) => facts.tools = ToolUse::No,
            _ => {}
        }
        facts
    }
}

/// Context window in tokens when even the guesses give none; only a user's file can cause this.
const DEFAULT_CONTEXT_WINDOW: u64 = 32_000;
/// Maximum answer in tokens when even the guesses give none.
const DEFAULT_MAX_OUTPUT: u64 = 4096;

#[cfg(test)]
mod tests;
