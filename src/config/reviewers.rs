//! Reviewers as the user described them in `[reviewers.NAME]` tables.
//!
//! Invariants: a key to a service is never in here, only where to get it; a key is only ever meant for the service it
//! belongs to, so another address gets none unless the user names one for it.

use std::path::PathBuf;
use std::time::Duration;

use super::keys::{SettingValue, parse_authority};
use super::money::Dollars;
use crate::domain::{Effort, Encoding, Priority};

mod table;

pub use table::{FIELDS, ReviewerTable, check_fallbacks, parse_reviewer};

/// How a reviewer is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewerKind {
    Builtin,
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Ollama,
    Command,
}

impl ReviewerKind {
    const ALL: [(&'static str, Self); 7] = [
        ("builtin", Self::Builtin),
        ("openai", Self::Openai),
        ("openai-responses", Self::OpenaiResponses),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("ollama", Self::Ollama),
        ("command", Self::Command),
    ];

    /// The word in the settings.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Whether a model is talked to over HTTP.
    pub fn is_http(self) -> bool {
        !matches!(self, Self::Builtin | Self::Command)
    }

    /// The host of the service that speaks this way by itself.
    pub fn default_host(self) -> Option<&'static str> {
        match self {
            Self::Openai | Self::OpenaiResponses => Some("api.openai.com"),
            Self::Anthropic => Some("api.anthropic.com"),
            Self::Gemini => Some("generativelanguage.googleapis.com"),
            Self::Builtin | Self::Ollama | Self::Command => None,
        }
    }

    /// The variable in which the users of [`ReviewerKind::home`] keep their key.
    fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Openai | Self::OpenaiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Builtin | Self::Ollama | Self::Command => None,
        }
    }
}

/// What a command understands and prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandDialect {
    /// Claude Code.
    Claude,
    Codex,
    /// Gemini CLI.
    Gemini,
    /// The prompt on standard input, text on standard output; or events of revdeck's own. It is called with the user's
    /// words only.
    Plain,
}

impl CommandDialect {
    const ALL: [(&'static str, Self); 4] =
        [("claude", Self::Claude), ("codex", Self::Codex), ("gemini", Self::Gemini), ("plain", Self::Plain)];

    /// The word in the settings.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, dialect)| *dialect == self).map_or("", |(word, _)| word)
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, dialect)| *dialect)
    }

    /// By the name of the program's file.
    pub fn from_program(program: &str) -> Self {
        let file = program.rsplit(['/', '\\']).next().unwrap_or(program).to_lowercase();
        Self::from_word(file.split('.').next().unwrap_or_default()).unwrap_or(Self::Plain)
    }
}

/// Who writes the summary of what slides out of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummaryAuthor {
    /// revdeck, from what it knows of the conversation.
    #[default]
    Local,
    /// The model, for the price of a further request.
    Model,
}

/// Where the key to a service comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeySource<'a> {
    /// An environment variable of this name.
    Variable(&'a str),
    /// What this command line prints.
    Command(&'a str),
    /// No key is sent.
    None,
}

/// A reviewer as the user described it. What is `None` was left to the model, the window's settings, or to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerSettings {
    pub kind: ReviewerKind,
    pub model: String,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub api_key_cmd: Option<String>,
    /// A file of certificates in PEM that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    pub command: Vec<String>,
    /// As said; [`ReviewerSettings::dialect`] is what holds.
    pub dialect: Option<CommandDialect>,
    pub effort: Option<Effort>,
    /// Tokens.
    pub context_window: Option<u64>,
    /// Tokens.
    pub max_output: Option<u64>,
    pub encoding: Option<Encoding>,
    /// For a million tokens; set together with `price_output`.
    pub price_input: Option<Dollars>,
    /// For a million tokens read from the provider's cache; `price_input` when absent.
    pub price_cached: Option<Dollars>,
    /// For a million tokens.
    pub price_output: Option<Dollars>,
    /// At most so many, and never more than `[window]` allows.
    pub max_turns: Option<u32>,
    /// Whether the model is given tools; by what is known of the model when absent.
    pub tools: Option<bool>,
    pub mask_secrets: bool,
    /// The longest wait for the next byte of an answer.
    pub idle_timeout: Duration,
    /// The longest wait for a whole answer, or for a command to end.
    pub total_timeout: Duration,
    /// How often a request is sent in all before it has failed.
    pub attempts: u32,
    /// Who takes over when this reviewer cannot go on.
    pub fallback: Option<String>,
    /// Findings of this priority and more urgent ones get a second opinion by the model.
    pub critic: Option<Priority>,
    pub summary: SummaryAuthor,
}

impl ReviewerSettings {
    /// Codex, which talks to the same services, waits 300 s for a byte (`stream_idle_timeout_ms`): models that think
    /// hard are silent for minutes.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
    /// Enough for an agent to review a large change.
    pub const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(1800);
    /// As Codex does it (`request_max_retries`).
    pub const DEFAULT_ATTEMPTS: u32 = 4;

    /// A reviewer with nothing but its defaults.
    pub fn new(kind: ReviewerKind) -> Self {
        Self {
            kind,
            model: String::new(),
            base_url: None,
            api_key_env: None,
            api_key_cmd: None,
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
            summary: SummaryAuthor::default(),
        }
    }

    /// The host that is talked to, without its port; `None` where that is Ollama's own choice or nobody.
    pub fn host(&self) -> Option<&str> {
        let Some(address) = &self.base_url else { return self.kind.default_host() };
        let authority = parse_authority(address)?;
        match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        }
    }

    /// Whether it is the service that its kind is named after, and nobody can listen.
    pub fn is_official_service(&self) -> bool {
        let safe = self.base_url.as_ref().is_none_or(|address| address.starts_with("https://"));
        safe && self
            .kind
            .default_host()
            .is_some_and(|home| self.host().is_some_and(|host| host.eq_ignore_ascii_case(home)))
    }

    /// Whether what is sent can be read on its way: http to another machine.
    pub fn is_plaintext(&self) -> bool {
        let plain = self.base_url.as_ref().is_some_and(|address| address.starts_with("http://"));
        plain
            && self.host().is_some_and(|host| {
                !host.eq_ignore_ascii_case("localhost")
                    && !host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            })
    }

    /// Where the key comes from. The well-known variable of a kind is used for that service only: at another address
    /// it would hand one company's key to another.
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

    /// What the command speaks: as said, else by the name of the program.
    pub fn dialect(&self) -> CommandDialect {
        self.dialect.unwrap_or_else(|| {
            self.command.first().map_or(CommandDialect::Plain, |program| CommandDialect::from_program(program))
        })
    }

    /// Its settings by the names and in the order of [`FIELDS`]; those that are not set and have no default are
    /// missing.
    pub fn list_fields(&self) -> Vec<(&'static str, SettingValue)> {
        let text = |text: &str| Some(SettingValue::Text(text.to_owned())).filter(|_| !text.is_empty());
        let maybe = |text: &Option<String>| text.clone().map(SettingValue::Text);
        let money = |amount: Option<Dollars>| amount.map(SettingValue::Money);
        let talks = self.kind != ReviewerKind::Builtin;
        let value = |name: &str| match name {
            "kind" => text(self.kind.word()),
            "model" => text(&self.model),
            "base_url" => maybe(&self.base_url),
            "api_key_env" => maybe(&self.api_key_env),
            "api_key_cmd" => maybe(&self.api_key_cmd),
            "ca_file" => self.ca_file.as_ref().map(|path| SettingValue::Text(path.to_string_lossy().into_owned())),
            "command" => Some(SettingValue::List(self.command.clone())).filter(|_| !self.command.is_empty()),
            "dialect" if self.kind == ReviewerKind::Command => text(self.dialect().word()),
            "effort" => self.effort.and_then(|effort| text(effort.word())),
            "context_window" => self.context_window.map(SettingValue::Count),
            "max_output" => self.max_output.map(SettingValue::Count),
            "encoding" => self.encoding.and_then(|encoding| text(encoding.name())),
            "price_input" => money(self.price_input),
            "price_cached" => money(self.price_cached),
            "price_output" => money(self.price_output),
            "max_turns" => self.max_turns.map(|turns| SettingValue::Count(turns.into())),
            "tools" => self.tools.map(SettingValue::Flag),
            "mask_secrets" if talks => Some(SettingValue::Flag(self.mask_secrets)),
            "idle_timeout" if talks => Some(SettingValue::Count(self.idle_timeout.as_secs())),
            "total_timeout" if talks => Some(SettingValue::Count(self.total_timeout.as_secs())),
            "attempts" if talks => Some(SettingValue::Count(self.attempts.into())),
            "fallback" => maybe(&self.fallback),
            "critic" if talks => text(&self.critic.map_or("none".to_owned(), |priority| priority.to_string())),
            "summary" if talks => text(match self.summary {
                SummaryAuthor::Local => "local",
                SummaryAuthor::Model => "model",
            }),
            _ => None,
        };
        FIELDS.iter().filter_map(|(name, _)| value(name).map(|value| (*name, value))).collect()
    }
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
