//! Reads a settings file as text with source positions, checks its tables and converts its values.
//!
//! - A file from a reviewed repository is opened only if it is a regular file of moderate size.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::closest_word::did_you_mean;
use super::error::{ConfigError, SettingLocation};
use super::keys::SettingValue;
use super::money::Dollars;

/// Maximum size of a settings file in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Existing settings file.
#[derive(Debug)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub text: String,
}

/// Policy for symbolic links to a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Follow links, for the user's own folder: dotfiles are often links.
    Follow,
    /// Refuse links, for a reviewed repository: a link could point anywhere.
    Refuse,
}

impl SettingsFile {
    /// Reads a file; returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not a regular file or is larger than `MAX_SETTINGS_BYTES`.
    pub fn read(path: PathBuf, links: SymlinkPolicy) -> Result<Option<Self>, ConfigError> {
        let metadata = match links {
            SymlinkPolicy::Follow => std::fs::metadata(&path),
            SymlinkPolicy::Refuse => std::fs::symlink_metadata(&path),
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        if !metadata.is_file() {
            return Err(ConfigError::NotAFile { path, problem: "it is not an ordinary file".to_owned() });
        }
        if metadata.len() > MAX_SETTINGS_BYTES {
            return Err(ConfigError::NotAFile {
                path,
                problem: format!("it is larger than {MAX_SETTINGS_BYTES} bytes"),
            });
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Self { path, text })),
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Creates a file from its text.
    ///
    /// # Errors
    ///
    /// Fails if the text is larger than `MAX_SETTINGS_BYTES`.
    pub fn from_text(path: &Path, text: &str) -> Result<Self, ConfigError> {
        if text.len() as u64 > MAX_SETTINGS_BYTES {
            let problem = format!("it is larger than {MAX_SETTINGS_BYTES} bytes");
            return Err(ConfigError::NotAFile { path: path.to_owned(), problem });
        }
        Ok(Self { path: path.to_owned(), text: text.to_owned() })
    }

    /// Parses the file to a table with source positions.
    ///
    /// # Errors
    ///
    /// Fails if the file is not TOML.
    pub fn parse_table(&self) -> Result<DeTable<'_>, ConfigError> {
        DeTable::parse(&self.text).map(Spanned::into_inner).map_err(|error| ConfigError::Syntax {
            place: self.location_at(error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })
    }

    /// Returns the location of byte `offset`.
    pub fn location_at(&self, offset: usize) -> SettingLocation {
        SettingLocation::from_offset(&self.path, &self.text, offset)
    }

    /// Creates an error for `key` at byte `offset`.
    pub fn value_error(&self, offset: usize, key: &str, problem: impl Into<String>, allowed: String) -> ConfigError {
        ConfigError::Value { place: self.location_at(offset), key: key.to_owned(), problem: problem.into(), allowed }
    }
}

/// Converts a TOML value to a setting value.
///
/// # Errors
///
/// Returns a description of the value if no setting has such a type, or if a number is out of range.
pub fn parse_value(value: &DeValue<'_>) -> Result<SettingValue, String> {
    match value {
        DeValue::String(text) => Ok(SettingValue::Text(text.to_string())),
        DeValue::Boolean(flag) => Ok(SettingValue::Flag(*flag)),
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix())
            .map(SettingValue::Count)
            .map_err(|_| format!("{integer} is out of range")),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .and_then(Dollars::new)
            .map(SettingValue::Money)
            .ok_or_else(|| format!("{float} is out of range")),
        DeValue::Array(items) => items
            .iter()
            .map(|item| item.get_ref().as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .map(SettingValue::List)
            .ok_or_else(|| "has something else than texts in its list".to_owned()),
        other => Err(format!("is a {}", other.type_str())),
    }
}

/// Merges `over` into `base`: tables key by key, any other value by replacement.
pub fn merge_tables(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => merge_tables(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Checks a table against `base`, which holds every known key: names, types of values and ranges must fit.
///
/// # Errors
///
/// Returns the first key that is unknown or has a value of the wrong type or range.
pub fn check_shape(
    document: &SettingsFile,
    over: &DeTable<'_>,
    base: &toml::Table,
    prefix: &str,
) -> Result<(), ConfigError> {
    for (key, value) in over {
        let name = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        let Some(known) = base.get(key.get_ref().as_ref()) else {
            let names: Vec<&str> = base.keys().map(String::as_str).collect();
            let problem = format!("there is no such key{}", did_you_mean(key.get_ref(), names.iter().copied()));
            return Err(document.value_error(key.span().start, &name, problem, names.join(", ")));
        };
        match (known, value.get_ref()) {
            (toml::Value::Table(known), DeValue::Table(over)) => check_shape(document, over, known, &name)?,
            (toml::Value::Float(_), DeValue::Integer(_) | DeValue::Float(_)) => {}
            (toml::Value::Integer(_), DeValue::Integer(integer))
                if u64::from_str_radix(integer.as_str(), integer.radix()).is_err() =>
            {
                let allowed = format!("a whole number that is not negative; the default is {known}");
                return Err(document.value_error(
                    value.span().start,
                    &name,
                    format!("{integer} is out of range"),
                    allowed,
                ));
            }
            (toml::Value::Integer(known), DeValue::Integer(integer))
                if u32::from_str_radix(integer.as_str(), integer.radix()).is_err() =>
            {
                let allowed = format!("a whole number up to {}; the default is {known}", u32::MAX);
                return Err(document.value_error(
                    value.span().start,
                    &name,
                    format!("{integer} is out of range"),
                    allowed,
                ));
            }
            (toml::Value::Array(known), DeValue::Array(items)) => {
                let sort = |word: &'static str| if word == "integer" || word == "float" { "number" } else { word };
                let wanted = known.first().map(|item| sort(item.type_str()));
                let other =
                    items.iter().find(|item| wanted.is_some_and(|wanted| sort(item.get_ref().type_str()) != wanted));
                if let (Some(other), Some(wanted)) = (other, wanted) {
                    let problem = format!("has a value of the sort {} in its list", other.get_ref().type_str());
                    let allowed = format!("a list of values of the sort {wanted}");
                    return Err(document.value_error(other.span().start, &name, problem, allowed));
                }
            }
            (known, value) if known.type_str() == value.type_str() => {}
            (known, other) => {
                let problem = format!("has a value of the sort {}", other.type_str());
                let allowed = format!("a value of the sort {}; the default is {known}", known.type_str());
                return Err(document.value_error(value.span().start, &name, problem, allowed));
            }
        }
    }
    Ok(())
}

/// Merges the user's file over `base`, both as TOML. Returns `None` if the file does not exist. With
/// [`AllowedKeys::OnlyBaseKeys`] the file may only hold keys of `base`.
///
/// # Errors
///
/// Fails if the file cannot be read, is not TOML or holds a key that `shape` forbids.
pub fn overlay_user_file(base: &str, file: &Path, shape: AllowedKeys) -> Result<Option<String>, ConfigError> {
    let Some(document) = SettingsFile::read(file.to_owned(), SymlinkPolicy::Follow)? else { return Ok(None) };
    let table = document.parse_table()?;
    let mut merged = parse_embedded(base);
    if shape == AllowedKeys::OnlyBaseKeys {
        check_shape(&document, &table, &merged, "")?;
    }
    merge_tables(&mut merged, parse_owned_table(&document)?);
    Ok(Some(merged.to_string()))
}

/// Keys that a user's file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedKeys {
    /// Only the keys of the embedded file.
    OnlyBaseKeys,
    /// Any key; the code that reads the table reports mistakes.
    Any,
}

/// Parses the file to a table without source positions.
///
/// # Errors
///
/// Fails if the file is not TOML.
pub fn parse_owned_table(document: &SettingsFile) -> Result<toml::Table, ConfigError> {
    document.text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        place: document.location_at(error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })
}

/// Parses an embedded file. An empty table stands for invalid TOML; a test parses every embedded file.
pub fn parse_embedded(text: &str) -> toml::Table {
    text.parse().unwrap_or_default()
}
