//! Thresholds of the smells: the embedded `assets/smells.toml`, overridden by the user's values. The TOML file
//! documents unit, default and source of every value.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use super::smells::Limits;

/// Text of the embedded defaults, for `config show`.
pub const DEFAULT_SMELLS_TOML: &str = include_str!("../../../assets/smells.toml");
/// [`DEFAULT_SMELLS_TOML`] as JSON, which is parsed faster.
const DEFAULT_SMELLS_JSON: &str = include_str!(concat!(env!("OUT_DIR"), "/smells.json"));

/// Error for thresholds that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}: {message}")]
pub struct LimitsError {
    /// File of the bad values.
    pub origin: String,
    /// Problem as the TOML parser describes it.
    pub message: String,
}

/// Rules that turn the ratio of a figure to its limit into a priority.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grading {
    /// Ratio of figure to limit from which the priority is p2.
    pub medium_ratio: f64,
    /// Ratio of figure to limit from which the priority is p1.
    pub high_ratio: f64,
    /// Ratio of the figures after and before a change from which a growth is reported.
    pub min_growth: f64,
    /// Factor on the limits in test code.
    pub test_factor: f64,
}

impl Limits {
    /// Builds the thresholds from the defaults and `layers`, pairs of a file name and its TOML text. A later layer
    /// overrides earlier ones.
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError`] with the name of the file if its text is not TOML, has an unknown key or has a value of
    /// a wrong type.
    pub fn from_layers<'a>(layers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, LimitsError> {
        let mut limits: Self = parse_defaults()?;
        let mut all: Option<toml::Table> = None;
        for (origin, text) in layers {
            // The settings in force are the defaults as they are, unless somebody has changed a value.
            if all.is_none() && text == DEFAULT_SMELLS_TOML {
                continue;
            }
            let mut table = all.map_or_else(parse_defaults, Ok)?;
            merge_tables(&mut table, parse_table(origin, text)?);
            // Validate after each layer, so that the error names the file with the bad value.
            limits = table.clone().try_into().map_err(|error| to_limits_error(origin, &error))?;
            all = Some(table);
        }
        Ok(limits)
    }
}

impl Default for Limits {
    fn default() -> Self {
        // A test checks the embedded file; a user could not fix an error in it.
        #[allow(clippy::expect_used)]
        Self::from_layers([]).expect("assets/smells.toml is embedded and checked by a test")
    }
}

fn parse_defaults<T: DeserializeOwned>() -> Result<T, LimitsError> {
    serde_json::from_str(DEFAULT_SMELLS_JSON)
        .map_err(|error| LimitsError { origin: "assets/smells.toml".to_owned(), message: error.to_string() })
}

fn parse_table(origin: &str, text: &str) -> Result<toml::Table, LimitsError> {
    text.parse::<toml::Table>().map_err(|error| to_limits_error(origin, &error))
}

fn to_limits_error(origin: &str, error: &toml::de::Error) -> LimitsError {
    LimitsError { origin: origin.to_owned(), message: error.to_string().trim_end().to_owned() }
}

fn merge_tables(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge_tables(below, above),
            (Some(below), value) => *below = value,
            (None, value) => {
                below.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound_and_every_key_is_explained() {
        let limits = Limits::default();
        assert_eq!((limits.long_method.max_code_lines, limits.complex_functions.max_cyclomatic), (60, 15));
        let reread = Limits::from_layers([("mine.toml", format!("{DEFAULT_SMELLS_TOML}\n").as_str())]);
        assert_eq!(reread.as_ref(), Ok(&limits), "the build changes none");
        let mut explained = false;
        for line in DEFAULT_SMELLS_TOML.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                let in_a_group = line.starts_with("enabled") || line.ends_with("true") || explained;
                assert!(in_a_group, "{line:?} has no comment above it");
            }
            explained = line.starts_with('#') || (explained && !line.is_empty());
        }
    }

    #[test]
    fn layers_change_only_what_they_name() {
        let limits = Limits::from_layers([("a.toml", "[long_method]\nmax_code_lines = 80\n")]).expect("is sound");
        let mut expected = Limits::default();
        expected.long_method.max_code_lines = 80;
        assert_eq!(limits, expected);
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        for (text, part) in [
            ("[long_method]\nmax_lines = 80\n", "max_lines"),
            ("[long_methods]\nx = 1\n", "long_methods"),
            ("[long_method]\nmax_code_lines = \"many\"\n", "invalid type"),
            ("[long_method\n", "TOML"),
        ] {
            let error = Limits::from_layers([("mine.toml", text)]).expect_err(text).to_string();
            assert!(error.starts_with("mine.toml: ") && error.contains(part), "{error}");
        }
    }
}
