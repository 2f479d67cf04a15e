//! Parses a `[reviewers.NAME]` table: checks each field, then the combination of fields, then the references between
//! tables.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::closest_word::did_you_mean;
use super::super::error::{ConfigError, SettingLocation};
use super::super::keys::SettingValue;
use super::super::settings::read_values_over;
use super::super::settings_file::{SettingsFile, parse_value};
use super::{FIELDS, ReviewerKind, ReviewerSettings};
use crate::domain::text;

/// Table that is valid on its own, with the locations of its field names.
#[derive(Debug, Clone)]
pub struct ReviewerTable {
    pub settings: ReviewerSettings,
    pub locations: BTreeMap<&'static str, SettingLocation>,
}

fn field_names() -> String {
    FIELDS.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")
}

/// Checked fields of a table, by name.
struct ReviewerFields<'a> {
    document: &'a SettingsFile,
    /// Key of the table: `reviewers.NAME`.
    key: String,
    /// Byte offset of the table.
    start: usize,
    values: BTreeMap<&'static str, ReviewerField>,
}

struct ReviewerField {
    /// Byte offset of the name; `start` is the byte offset of the value.
    name: usize,
    start: usize,
    value: SettingValue,
}

impl ReviewerFields<'_> {
    fn read_fields(&mut self, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, found) in table {
            let key = format!("{}.{}", self.key, name.get_ref());
            let start = found.span().start;
            if name.get_ref() == "api_key" {
                let allowed = "api_key_env or api_key_cmd".to_owned();
                return Err(self.document.value_error(
                    start,
                    &key,
                    "a key does not belong into a settings file",
                    allowed,
                ));
            }
            let Some(field) = FIELDS.iter().find(|field| field.name == name.get_ref()) else {
                let known = FIELDS.iter().map(|field| field.name);
                let meant = did_you_mean(name.get_ref(), known);
                let problem = format!("there is no key {:?}{meant}", text::sanitize_line(name.get_ref()));
                return Err(self.document.value_error(name.span().start, &key, problem, field_names()));
            };
            let checked = parse_value(found.get_ref())
                .and_then(|value| field.form.check(value))
                .map_err(|problem| self.document.value_error(start, &key, problem, field.form.describe_allowed()))?;
            self.values.insert(field.name, ReviewerField { name: name.span().start, start, value: checked });
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<&SettingValue> {
        self.values.get(name).map(|field| &field.value)
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Some(SettingValue::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn count(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(SettingValue::Count(count)) => Some(*count),
            _ => None,
        }
    }

    /// Returns an error located at an existing field.
    fn field_error<T>(&self, name: &str, problem: &str, allowed: &str) -> Result<T, ConfigError> {
        let start = self.values.get(name).map_or(self.start, |field| field.start);
        Err(self.document.value_error(start, &format!("{}.{name}", self.key), problem, allowed.to_owned()))
    }

    fn parse_kind(&self) -> Result<ReviewerKind, ConfigError> {
        let kind = self.text("kind").and_then(|word| word.parse().ok());
        kind.ok_or_else(|| {
            let words: Vec<String> = ReviewerKind::WORDS.iter().map(|word| format!("{word:?}")).collect();
            self.document.value_error(
                self.start,
                &self.key,
                "needs kind",
                format!("kind = one of {}", words.join(", ")),
            )
        })
    }

    fn to_settings(&self, kind: ReviewerKind) -> Result<ReviewerSettings, ConfigError> {
        let values = self.values.iter().map(|(name, field)| (*name, &field.value));
        // The checks of the fields let nothing through that a setting cannot hold.
        let mut settings = read_values_over(&ReviewerSettings::new(kind), values)
            .map_err(|error| self.document.value_error(self.start, &self.key, error.to_string(), field_names()))?;
        // A relative path starts from the settings file's folder, because no other folder stays the same.
        settings.ca_file = settings.ca_file.map(|file| self.document.path.with_file_name("").join(file));
        Ok(settings)
    }

    /// Checks which fields require or exclude each other.
    fn check_combinations(&self, kind: ReviewerKind) -> Result<(), ConfigError> {
        let has = |name: &str| self.values.contains_key(name);
        let missing = |field: &str| {
            let problem = format!("needs {field} for kind = {:?}", kind.word());
            Err(self.document.value_error(self.start, &self.key, problem, format!("a table with {}", field_names())))
        };
        match kind {
            ReviewerKind::Command if !has("command") => return missing("command"),
            kind if kind.is_http() && !has("model") => return missing("model"),
            _ => {}
        }
        for name in ["command", "dialect"] {
            if kind != ReviewerKind::Command && has(name) {
                return self.field_error(name, "is only for kind = \"command\"", "leave it out");
            }
        }
        if has("api_key_env") && has("api_key_cmd") {
            return self.field_error("api_key_cmd", "stands beside api_key_env", "one of them");
        }
        for (name, other) in
            [("price_input", "price_output"), ("price_output", "price_input"), ("price_cached", "price_input")]
        {
            if has(name) && !has(other) {
                return self.field_error(
                    name,
                    &format!("needs {other} as well"),
                    "price_input and price_output together",
                );
            }
        }
        match (self.count("max_output"), self.count("context_window")) {
            (Some(output), Some(window)) if output >= window => self.field_error(
                "max_output",
                "leaves no room for a question",
                &format!("less than context_window, {window}"),
            ),
            _ => Ok(()),
        }
    }
}

/// Parses one table of `[reviewers]`; `name` and `table` carry their source positions.
///
/// # Errors
///
/// Returns the first mistake in the table.
pub fn parse_reviewer(
    document: &SettingsFile,
    name: &Spanned<toml::de::DeString<'_>>,
    table: &Spanned<DeValue<'_>>,
) -> Result<ReviewerTable, ConfigError> {
    let key = format!("reviewers.{}", name.get_ref());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
        let allowed = "names of letters, digits, - _ and .".to_owned();
        return Err(document.value_error(name.span().start, &key, "this is no name for a reviewer", allowed));
    }
    let DeValue::Table(found) = table.get_ref() else {
        let allowed = format!("a table with {}", field_names());
        return Err(document.value_error(table.span().start, &key, "is no table", allowed));
    };
    let mut fields = ReviewerFields { document, key, start: table.span().start, values: BTreeMap::new() };
    fields.read_fields(found)?;
    let kind = fields.parse_kind()?;
    if name.get_ref() == "builtin" && kind != ReviewerKind::Builtin {
        return fields.field_error("kind", "the name stands for the built-in reviewer", "another name for the table");
    }
    fields.check_combinations(kind)?;
    let places = fields.values.iter().map(|(name, field)| (*name, document.location_at(field.name))).collect();
    Ok(ReviewerTable { settings: fields.to_settings(kind)?, locations: places })
}

/// Returns the fallbacks that name no usable reviewer or form a cycle, by the name of the reviewer that has the
/// field.
pub fn check_fallbacks(reviewers: &BTreeMap<String, ReviewerTable>) -> Vec<(String, ConfigError)> {
    let takes_over = |name: &str| reviewers.get(name).is_some_and(|it| it.settings.kind != ReviewerKind::Builtin);
    let mut errors = Vec::new();
    for (name, parsed) in reviewers {
        let (Some(first), Some(place)) = (&parsed.settings.fallback, parsed.locations.get("fallback")) else {
            continue;
        };
        let problem = match (first.as_str(), find_cycle(reviewers, name)) {
            ("builtin", _) => "the built-in reviewer takes nothing over".to_owned(),
            (_, Some(path)) => format!("leads back to itself: {}", path.join(" -> ")),
            (other, None) if takes_over(other) => continue,
            (other, None) if reviewers.contains_key(other) => "the built-in reviewer takes nothing over".to_owned(),
            (other, None) => format!("there is no reviewer named {other:?}"),
        };
        let others: Vec<&str> =
            reviewers.keys().map(String::as_str).filter(|other| other != name && takes_over(other)).collect();
        let allowed = match others.is_empty() {
            true => "another reviewer that is not the built-in one; there is none".to_owned(),
            false => format!("another reviewer, without a circle: {}", others.join(", ")),
        };
        let key = format!("reviewers.{name}.fallback");
        errors.push((name.clone(), ConfigError::Value { place: place.clone(), key, problem, allowed }));
    }
    errors
}

/// Returns the path along fallbacks from `name` back to itself.
fn find_cycle<'a>(reviewers: &'a BTreeMap<String, ReviewerTable>, name: &'a str) -> Option<Vec<&'a str>> {
    let mut path = vec![name];
    // A path longer than the number of reviewers has met a cycle that does not contain `name`.
    while path.len() <= reviewers.len() {
        let next = reviewers.get(*path.last()?)?.settings.fallback.as_deref()?;
        path.push(next);
        if next == name {
            return Some(path);
        }
    }
    None
}
