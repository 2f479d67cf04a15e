//! Reads the user's panels: `[panels.NAME]` tables. A repository cannot define any, because a panel costs money.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::DeValue;

use super::closest_word::did_you_mean;
use super::custom_commands::find_field;
use super::error::{ConfigError, SettingLocation};
use super::keys::{SettingType, SettingValue};
use super::money::Dollars;
use super::settings_file::SettingsFile;
use crate::domain::{Panel, text};

const FIELDS: [&str; 2] = ["reviewers", "max_cost"];
/// Maximum of `max_cost` in US dollars, as of `budget.run_cost`.
const MAX_COST: SettingType = SettingType::Money { max: 1_000_000 };

/// Reviewers that look at the same change and give one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelSettings {
    /// Name of the table.
    pub name: String,
    /// Names of the reviewers, each once.
    pub reviewers: Vec<String>,
    /// Most that the members' requests may cost together.
    pub max_cost: Option<Dollars>,
    /// Place of the list of reviewers in the settings.
    pub location: SettingLocation,
}

/// Parses a `[panels.NAME]` table. Whether its reviewers exist is checked by [`check_members`].
///
/// # Errors
///
/// Fails at the first field that is unknown or has an unusable value.
pub fn parse_panel(
    document: &SettingsFile,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    found: &Spanned<DeValue<'_>>,
) -> Result<PanelSettings, ConfigError> {
    let table_key = format!("panels.{}", name.get_ref());
    let start = name.span().start;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
        let allowed = "names of letters, digits, - _ and .".to_owned();
        return Err(document.value_error(start, &table_key, "this is no name for a panel", allowed));
    }
    let DeValue::Table(table) = found.get_ref() else {
        return Err(document.value_error(start, &table_key, "is no table", describe_table()));
    };
    for field in table.keys() {
        if !FIELDS.contains(&field.get_ref().as_ref()) {
            let meant = did_you_mean(field.get_ref(), FIELDS);
            let problem = format!("there is no key {:?}{meant}", text::sanitize_line(field.get_ref()));
            let key = format!("{table_key}.{}", field.get_ref());
            return Err(document.value_error(field.span().start, &key, problem, FIELDS.join(", ")));
        }
    }
    let Some((value, offset)) = find_field(table, "reviewers") else {
        return Err(document.value_error(start, &table_key, "needs reviewers", describe_table()));
    };
    let wrong = |field: &str, offset: usize, problem: String, allowed: String| {
        document.value_error(offset, &format!("{table_key}.{field}"), problem, allowed)
    };
    let reviewers = match value {
        Ok(SettingValue::List(names)) => names,
        Ok(_) => return Err(wrong("reviewers", offset, "is no list".to_owned(), describe_reviewers())),
        Err(problem) => return Err(wrong("reviewers", offset, problem, describe_reviewers())),
    };
    check_names(&reviewers).map_err(|problem| wrong("reviewers", offset, problem, describe_reviewers()))?;
    let max_cost = match find_field(table, "max_cost") {
        None => None,
        Some((value, offset)) => match value.and_then(|value| MAX_COST.check(value)) {
            Ok(SettingValue::Money(amount)) => Some(amount),
            Ok(_) => {
                return Err(wrong("max_cost", offset, "is no amount".to_owned(), MAX_COST.describe_allowed()));
            }
            Err(problem) => return Err(wrong("max_cost", offset, problem, MAX_COST.describe_allowed())),
        },
    };
    Ok(PanelSettings { name: name.get_ref().to_string(), reviewers, max_cost, location: document.location_at(offset) })
}

/// Checks the number of the names and that each is there once.
///
/// # Errors
///
/// Returns a description of the mistake.
pub fn check_names(reviewers: &[String]) -> Result<(), String> {
    if !(Panel::MIN_MEMBERS..=Panel::MAX_MEMBERS).contains(&reviewers.len()) {
        return Err(format!("has {}", text::format_count(reviewers.len(), "reviewer")));
    }
    let mut seen = BTreeSet::new();
    match reviewers.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(format!("names {:?} twice", text::sanitize_line(twice))),
        None => Ok(()),
    }
}

/// Returns the mistake of a panel that names a reviewer without a table.
pub fn check_members(panel: &PanelSettings, is_reviewer: impl Fn(&str) -> bool) -> Option<ConfigError> {
    let missing = panel.reviewers.iter().find(|name| *name != "builtin" && !is_reviewer(name))?;
    Some(ConfigError::Value {
        place: panel.location.clone(),
        key: format!("panels.{}.reviewers", panel.name),
        problem: format!("there is no reviewer named {:?}", text::sanitize_line(missing)),
        allowed: "builtin, and names of [reviewers] tables".to_owned(),
    })
}

fn describe_table() -> String {
    "a table with reviewers = [\"NAME\", \"builtin\"] and, if you like, max_cost".to_owned()
}

fn describe_reviewers() -> String {
    format!("a list of {} to {} different reviewers", Panel::MIN_MEMBERS, Panel::MAX_MEMBERS)
}

impl PanelSettings {
    /// Creates the panel of a request that names several reviewers.
    pub fn of_request(name: &str, reviewers: Vec<String>) -> Self {
        let location = SettingLocation::Flag("--reviewer".to_owned());
        Self { name: name.to_owned(), reviewers, max_cost: None, location }
    }

    /// Returns the settings by field, for a list of what is in effect.
    pub fn list_fields(&self) -> Vec<(&'static str, SettingValue)> {
        let reviewers = ("reviewers", SettingValue::List(self.reviewers.clone()));
        std::iter::once(reviewers).chain(self.max_cost.map(|cost| ("max_cost", SettingValue::Money(cost)))).collect()
    }
}
