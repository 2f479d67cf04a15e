//! A settings file as text with places: reads it, walks it, and turns what it says into checked values.
//!
//! Invariant: a file from a reviewed repository is opened only if it is an ordinary file of moderate size.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, SettingLocation};
use super::keys::SettingValue;
use super::money::Dollars;

/// Larger settings files are refused, in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// A settings file that exists.
#[derive(Debug)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub text: String,
}

/// Whether a link may be followed to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// The user's own folder: dotfiles are often links.
    Follow,
    /// A reviewed repository: a link could lead anywhere.
    Refuse,
}

impl SettingsFile {
    /// Reads a file; `None` when there is none.
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

    /// The file's table, with places.
    pub fn parse_table(&self) -> Result<DeTable<'_>, ConfigError> {
        DeTable::parse(&self.text).map(Spanned::into_inner).map_err(|error| ConfigError::Syntax {
            place: self.location_at(error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })
    }

    pub fn location_at(&self, offset: usize) -> SettingLocation {
        SettingLocation::from_offset(&self.path, &self.text, offset)
    }

    pub fn value_error(&self, offset: usize, key: &str, problem: impl Into<String>, allowed: String) -> ConfigError {
        ConfigError::Value { place: self.location_at(offset), key: key.to_owned(), problem: problem.into(), allowed }
    }
}

/// A value of one of the forms that settings have; the error says what it is instead.
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

/// Lays `over` over `base`: tables are merged key by key, everything else is replaced.
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

/// Holds a table of a file against one that has every key there is: same names, same sorts of values.
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
            return Err(document.value_error(key.span().start, &name, "there is no such key", names.join(", ")));
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

/// `base` with the user's file laid over it, both as TOML; `base` itself when there is no such file. With `shape` the
/// file may only hold the keys that `base` holds.
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

/// What a user's file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedKeys {
    /// Only the keys of the file it is laid over.
    OnlyBaseKeys,
    /// Anything; who reads it says what is wrong with it.
    Any,
}

/// A file's table without places.
pub fn parse_owned_table(document: &SettingsFile) -> Result<toml::Table, ConfigError> {
    document.text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        place: document.location_at(error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })
}

/// The table of an embedded file; a test parses each of them.
pub fn parse_embedded(text: &str) -> toml::Table {
    text.parse().unwrap_or_default()
}
