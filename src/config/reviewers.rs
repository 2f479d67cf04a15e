//! Defines the settings of reviewers in `[reviewers.NAME]` tables.
//!
//! - The settings never hold an API key, only where to get it.
//! - A default key is sent only to the service that it belongs to. Another address gets no key, unless the user names
//!   a key for it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::keys::{SettingKey, SettingType as Form, SettingValue, parse_authority, setting_table};
use super::money::Dollars;
use super::settings::none_if_no_value;
use crate::domain::{Effort, Encoding, Priority, SummaryAuthor};

mod dialect;
mod kind;
mod table;

pub use dialect::CommandDialect;
pub(crate) use kind::EMBEDDING_WORDS;
pub use kind::ReviewerKind;
pub(crate) use table::{ReviewerTable, check_fallbacks, parse_reviewer};

/// Source of the API key for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeySource<'a> {
    /// Environment variable with this name.
    Variable(&'a str),
    /// Output of this command line.
    Command(&'a str),
    /// No key is sent.
    None,
}

setting_table! {
    /// Reviewer settings from the user. `None` leaves the choice to the model's facts or to the window settings, or
    /// turns the feature off.
    #[derive(Eq, Serialize)]
    ReviewerSettings at "" {
        kind: ReviewerKind, Form::OneOf(ReviewerKind::WORDS), User;
        model: String, Form::Text, User;
        base_url: Option<String>, Form::Address, User;
        api_key_env: Option<String>, Form::Variable, User;
        api_key_cmd: Option<String>, Form::Text, User;
        /// True to send a key over plain http to another machine.
        insecure_http: bool, Form::Flag, User;
        /// File with PEM certificates that are trusted in addition to the system's.
        ca_file: Option<PathBuf>, Form::Text, User;
        command: Vec<String>, Form::Program, User;
        /// Dialect in the settings; [`ReviewerSettings::dialect`] returns the effective one.
        dialect: Option<CommandDialect>, Form::OneOf(CommandDialect::WORDS), User;
        effort: Option<Effort>, Form::OneOf(Effort::WORDS), User;
        /// Context window in tokens.
        context_window: Option<u64>, Form::Count { min: 4000, max: 10_000_000 }, User;
        /// Maximum answer in tokens.
        max_output: Option<u64>, Form::Count { min: 256, max: 1_000_000 }, User;
        #[serde(deserialize_with = "none_if_no_value", serialize_with = "write_encoding")]
        encoding: Option<Encoding>, Form::OneOf(&["o200k_base", "cl100k_base"]), User;
        /// Price per million input tokens; set together with `price_output`.
        price_input: Option<Dollars>, Form::Money { max: 10_000 }, User;
        /// Price per million input tokens read from the provider's cache; `None` means `price_input`.
        price_cached: Option<Dollars>, Form::Money { max: 10_000 }, User;
        /// Price per million output tokens.
        price_output: Option<Dollars>, Form::Money { max: 10_000 }, User;
        /// Maximum number of turns, never more than `[window]` allows.
        max_turns: Option<u32>, Form::Count { min: 1, max: 20 }, User;
        /// Tool support in the settings; `None` means that the model's facts decide.
        tools: Option<bool>, Form::Flag, User;
        mask_secrets: bool, Form::Flag, User;
        /// Maximum wait for the next byte of an answer.
        #[serde(with = "whole_seconds")]
        idle_timeout: Duration, Form::Count { min: 1, max: 3600 }, User;
        /// Maximum wait for a whole answer, or for a command to end.
        #[serde(with = "whole_seconds")]
        total_timeout: Duration, Form::Count { min: 1, max: 86_400 }, User;
        /// Maximum number of attempts per request.
        attempts: u32, Form::Count { min: 1, max: 10 }, User;
        /// Reviewer that takes over when this reviewer cannot continue.
        fallback: Option<String>, Form::Text, User;
        /// Findings of this priority or a more urgent one get a second opinion from the model.
        #[serde(deserialize_with = "none_if_no_value", serialize_with = "write_priority")]
        critic: Option<Priority>, Form::FailOn, User;
        summary: SummaryAuthor, Form::OneOf(SummaryAuthor::WORDS), User;
    }
}

/// Fields that a table may hold, in the order of `assets/config.toml`.
pub const FIELDS: &[SettingKey] = ReviewerSettings::KEYS;

/// Reads and writes a duration as seconds.
mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_secs())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}

fn write_encoding<S: Serializer>(encoding: &Option<Encoding>, serializer: S) -> Result<S::Ok, S::Error> {
    encoding.map(Encoding::name).serialize(serializer)
}

fn write_priority<S: Serializer>(priority: &Option<Priority>, serializer: S) -> Result<S::Ok, S::Error> {
    priority.map_or("none".to_owned(), |priority| priority.to_string()).serialize(serializer)
}

impl ReviewerSettings {
    /// Default for `idle_timeout`. Codex, a client of the same services, also waits 300 s for a byte
    /// (`stream_idle_timeout_ms`): models that reason hard are silent for minutes.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
    /// Default for `total_timeout`: enough for an agent to review a large change.
    pub const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(1800);
    /// Default for `attempts`, the same as in Codex (`request_max_retries`).
    pub const DEFAULT_ATTEMPTS: u32 = 4;

    /// Returns the default settings of a kind.
    pub fn new(kind: ReviewerKind) -> Self {
        Self {
            kind,
            model: String::new(),
            base_url: None,
            api_key_env: None,
            api_key_cmd: None,
            insecure_http: false,
            ca_file: None,
            command: Vec::new(),
            dialect: None,
            effort: None,
            context_window: None,
            max_output: None,
            encoding: None,
            price_input: None,
            price_cached: None,
            price_output: None,
            max_turns: None,
            tools: None,
            mask_secrets: true,
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
            total_timeout: Self::DEFAULT_TOTAL_TIMEOUT,
            attempts: Self::DEFAULT_ATTEMPTS,
            fallback: None,
            critic: None,
            summary: SummaryAuthor::Local,
        }
    }

    /// Returns the host without its port; `None` for Ollama's default address and for reviewers without a host.
    pub fn host(&self) -> Option<&str> {
        let Some(address) = &self.base_url else { return self.kind.default_host() };
        let authority = parse_authority(address)?;
        match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        }
    }

    /// Returns true if the reviewer is the official service of its kind, reached over an encrypted connection.
    pub fn is_official_service(&self) -> bool {
        let safe = self.base_url.as_ref().is_none_or(|address| address.starts_with("https://"));
        safe && self
            .kind
            .default_host()
            .is_some_and(|home| self.host().is_some_and(|host| host.eq_ignore_ascii_case(home)))
    }

    /// Returns true if requests travel unencrypted: http to another machine.
    pub fn is_plaintext(&self) -> bool {
        let is_plain = |address: &String| address.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"));
        let plain = self.base_url.as_ref().is_some_and(is_plain);
        plain
            && self.host().is_some_and(|host| {
                !host.eq_ignore_ascii_case("localhost")
                    && !host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            })
    }

    /// Returns true if the key would be readable on the way and the user has not allowed that.
    pub fn exposes_key(&self) -> bool {
        self.is_plaintext() && self.key_source() != ApiKeySource::None && !self.insecure_http
    }

    /// Returns the source of the key. The default variable of a kind applies only to its official service; at another
    /// address it would give one company's key to another.
    pub fn key_source(&self) -> ApiKeySource<'_> {
        match (&self.api_key_cmd, &self.api_key_env) {
            (Some(command), _) => ApiKeySource::Command(command),
            (None, Some(variable)) => ApiKeySource::Variable(variable),
            (None, None) if self.is_official_service() => {
                self.kind.default_key_variable().map_or(ApiKeySource::None, ApiKeySource::Variable)
            }
            (None, None) => ApiKeySource::None,
        }
    }

    /// Returns the effective dialect: from the settings, else by the name of the program.
    pub fn dialect(&self) -> CommandDialect {
        self.dialect.unwrap_or_else(|| {
            self.command.first().map_or(CommandDialect::Plain, |program| CommandDialect::from_program(program))
        })
    }

    /// Lists the settings by name, in the order of [`FIELDS`]. Settings without a value and without a default are
    /// left out.
    pub fn list_fields(&self) -> Vec<(&'static str, SettingValue)> {
        let effective = Self { dialect: (self.kind == ReviewerKind::Command).then(|| self.dialect()), ..self.clone() };
        let values = serde_json::to_value(&effective).unwrap_or_default();
        let listed = FIELDS.iter().filter(|field| self.kind != ReviewerKind::Builtin || !has_default(field.name));
        let listed = listed.filter_map(|field| {
            let value = SettingValue::deserialize(values.get(field.name)?).ok()?;
            Some((field.name, value))
        });
        listed.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// Returns true for a setting of the requests that has a default. The built-in reviewer sends no requests.
fn has_default(name: &str) -> bool {
    matches!(
        name,
        "insecure_http" | "mask_secrets" | "idle_timeout" | "total_timeout" | "attempts" | "critic" | "summary"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reviewer(kind: ReviewerKind, base_url: Option<&str>) -> ReviewerSettings {
        ReviewerSettings { base_url: base_url.map(str::to_owned), ..ReviewerSettings::new(kind) }
    }

    #[test]
    fn a_key_goes_to_the_service_it_belongs_to() {
        use ApiKeySource::{None as Nothing, Variable};
        use ReviewerKind::{Anthropic, Gemini, Ollama, Openai, OpenaiResponses};
        for (kind, base_url, expected) in [
            (Openai, None, Variable("OPENAI_API_KEY")),
            (OpenaiResponses, None, Variable("OPENAI_API_KEY")),
            (Anthropic, None, Variable("ANTHROPIC_API_KEY")),
            (Gemini, None, Variable("GEMINI_API_KEY")),
            (Ollama, None, Nothing),
            (Openai, Some("https://API.openai.com/v1"), Variable("OPENAI_API_KEY")),
            (Openai, Some("http://api.openai.com/v1"), Nothing),
            (Openai, Some("https://openrouter.ai/api/v1"), Nothing),
            (Openai, Some("http://localhost:1234/v1"), Nothing),
            (Openai, Some("https://api.openai.com.example.org"), Nothing),
            (Anthropic, Some("https://api.openai.com"), Nothing),
        ] {
            assert_eq!(reviewer(kind, base_url).key_source(), expected, "{kind:?} at {base_url:?}");
        }
        let mut other = reviewer(Openai, Some("https://openrouter.ai/api/v1"));
        other.api_key_env = Some("OPENROUTER_API_KEY".to_owned());
        assert_eq!(other.key_source(), Variable("OPENROUTER_API_KEY"));
        other.api_key_cmd = Some("pass show openrouter".to_owned());
        assert_eq!(other.key_source(), ApiKeySource::Command("pass show openrouter"));
    }

    #[test]
    fn hosts_are_read_out_of_addresses() {
        for (base_url, host, readable) in [
            ("http://localhost:11434", "localhost", false),
            ("http://127.0.0.1", "127.0.0.1", false),
            ("http://[::1]:8080/v1", "::1", false),
            ("http://localhost.example.org", "localhost.example.org", true),
            ("https://models.example.org:443/v1?x=1", "models.example.org", false),
        ] {
            let reviewer = reviewer(ReviewerKind::Openai, Some(base_url));
            assert_eq!((reviewer.host(), reviewer.is_plaintext()), (Some(host), readable), "{base_url}");
        }
        for (base_url, key, insecure_http, expected) in [
            ("http://models.example.org", Some("KEY"), false, true),
            ("HTTP://models.example.org", Some("KEY"), false, true),
            ("http://10.0.0.7:8000/v1", Some("KEY"), false, true),
            ("http://10.0.0.7:8000/v1", Some("KEY"), true, false),
            ("http://10.0.0.7:8000/v1", None, false, false),
            ("http://127.0.0.1:8000/v1", Some("KEY"), false, false),
            ("https://models.example.org", Some("KEY"), false, false),
        ] {
            let api_key_env = key.map(str::to_owned);
            let reviewer =
                ReviewerSettings { api_key_env, insecure_http, ..reviewer(ReviewerKind::Openai, Some(base_url)) };
            assert_eq!(reviewer.exposes_key(), expected, "{base_url} {key:?} {insecure_http}");
        }
        let nowhere = reviewer(ReviewerKind::Ollama, None);
        assert_eq!((nowhere.host(), nowhere.is_plaintext()), (None, false));
    }

    #[test]
    fn a_command_speaks_as_its_name_says() {
        for (command, said, expected) in [
            ("claude", None, CommandDialect::Claude),
            ("/usr/local/bin/codex", None, CommandDialect::Codex),
            ("C:\\tools\\gemini.cmd", None, CommandDialect::Gemini),
            ("gemini.js", None, CommandDialect::Gemini),
            ("Codex.exe", None, CommandDialect::Codex),
            ("my-claude", None, CommandDialect::Plain),
            ("npx", Some(CommandDialect::Claude), CommandDialect::Claude),
        ] {
            let reviewer = ReviewerSettings {
                command: vec![command.to_owned()],
                dialect: said,
                ..ReviewerSettings::new(ReviewerKind::Command)
            };
            assert_eq!(reviewer.dialect(), expected, "{command}");
        }
    }
}
