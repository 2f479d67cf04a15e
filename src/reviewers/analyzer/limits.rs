//! Thresholds of the smells: the embedded `assets/smells.toml`, overridden by the user's values. The TOML file
//! documents unit, default and source of every value.

use serde::Deserialize;
use thiserror::Error;

/// Text of the embedded defaults, for `config show`.
pub const DEFAULT_SMELLS_TOML: &str = include_str!("../../../assets/smells.toml");

/// Error for thresholds that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}: {message}")]
pub struct LimitsError {
    /// File of the bad values.
    pub origin: String,
    pub message: String,
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident { $($field:ident: $type:ty),+ $(,)? })+) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $table { $(pub $field: $type),+ })+
    };
}

tables! {
    /// All thresholds: the rules for grading, and one table per smell.
    Limits {
        grading: Grading,
        long_method: LongMethod,
        complex_functions: ComplexFunctions,
        god_class: GodClass,
        magic_numbers: MagicNumbers,
        duplicate_code: DuplicateCode,
        dead_code: DeadCode,
        global_variables: GlobalVariables,
        mutable_shared_state: MutableSharedState,
        missing_error_handling: MissingErrorHandling,
        tight_coupling: TightCoupling,
        hardcoded_configuration: HardcodedConfiguration,
    }
    /// Rules that turn the ratio of a figure to its limit into a priority.
    Grading { medium_ratio: f64, high_ratio: f64, min_growth: f64, test_factor: f64 }
    LongMethod { enabled: bool, max_code_lines: u32 }
    ComplexFunctions { enabled: bool, max_cyclomatic: u32, max_cognitive: u32, max_nesting: u32, max_parameters: u32 }
    GodClass { enabled: bool, max_methods: u32, max_fields: u32, max_lines: u32, min_methods_for_fields: u32 }
    MagicNumbers {
        enabled: bool,
        allowed: Vec<f64>,
        allowed_in_arithmetic: Vec<f64>,
        max_offset: u32,
        max_arity: u32,
        max_argument: u32,
        time_values: Vec<f64>,
        units: Vec<String>,
        codes: Vec<String>,
        sizes: Vec<String>,
        telling_calls: Vec<String>,
        http_calls: Vec<String>,
        text_sinks: Vec<String>,
        formulas: Vec<String>,
        trivial_strings: Vec<String>,
        min_string_repeats: u32,
        min_string_length: u32,
        max_per_function: u32,
    }
    DuplicateCode {
        enabled: bool,
        min_tokens: u32,
        min_lines: u32,
        high_similarity: u32,
        medium_similarity: u32,
        low_similarity: u32,
    }
    DeadCode {
        enabled: bool,
        unused_imports: bool,
        unused_locals: bool,
        unused_parameters: bool,
        unused_private_functions: bool,
        unreachable_statements: bool,
        constant_conditions: bool,
    }
    GlobalVariables { enabled: bool, min_functions: u32, medium_functions: u32, high_functions: u32 }
    MutableSharedState { enabled: bool, min_writers: u32, high_writers: u32, mutable_defaults: bool }
    MissingErrorHandling {
        enabled: bool,
        report_unwrap: bool,
        report_expect: bool,
        unchecked_c_returns: bool,
        floating_promises: bool,
        max_unwraps_per_function: u32,
        expected_errors: Vec<String>,
    }
    TightCoupling {
        enabled: bool,
        max_concretes_in_constructor: u32,
        max_relative_depth: u32,
        service_words: Vec<String>,
        value_words: Vec<String>,
        value_types: Vec<String>,
    }
    HardcodedConfiguration {
        enabled: bool,
        min_entropy: f64,
        min_hex_entropy: f64,
        min_password_entropy: f64,
        min_secret_length: u32,
        addresses: bool,
        document_hosts: Vec<String>,
        service_words: Vec<String>,
        address_words: Vec<String>,
        request_words: Vec<String>,
    }
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
        let mut all = parse_table("assets/smells.toml", DEFAULT_SMELLS_TOML)?;
        let mut last = "assets/smells.toml";
        for (origin, text) in layers {
            merge_tables(&mut all, parse_table(origin, text)?);
            last = origin;
            // Validate after each layer, so that the error names the file with the bad value.
            all.clone().try_into::<Self>().map_err(|error| to_limits_error(origin, &error))?;
        }
        all.try_into().map_err(|error| to_limits_error(last, &error))
    }
}

impl Default for Limits {
    fn default() -> Self {
        // A test checks the embedded file; a user could not fix an error in it.
        #[allow(clippy::expect_used)]
        Self::from_layers([]).expect("assets/smells.toml is embedded and checked by a test")
    }
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
