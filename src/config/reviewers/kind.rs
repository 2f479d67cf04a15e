//! Kinds of reviewers and the services behind them.
//!
//! # Adding a model vendor
//!
//! - Here: a variant of [`ReviewerKind`] and its row in [`ReviewerKind::service`].
//! - In `reviewers/http/wire`: a file with the wire format, and its line in `wire::from_kind`.
//! - In the user's words: the kind in `docs/reviewers.md` and `assets/config.toml`; a test compares both with the rows.
//!
//! Nothing else matches on a vendor: the checks of settings, `revdeck doctor`, `revdeck reviewers` and the client read
//! the row.

use serde::{Deserialize, Serialize};

use super::super::keys::parse_authority;
use crate::domain::word_enum;

word_enum!(
    /// Way in which a reviewer is reached. The words are the values of `kind` in the settings.
    ReviewerKind {
        /// revdeck's own analyzer.
        Builtin = "builtin",
        /// `POST chat/completions`; most servers other than OpenAI's speak it too.
        Openai = "openai",
        /// `POST responses`.
        OpenaiResponses = "openai-responses",
        /// `POST v1/messages`.
        Anthropic = "anthropic",
        /// `POST models/MODEL:streamGenerateContent`.
        Gemini = "gemini",
        /// `POST api/chat`.
        Ollama = "ollama",
        /// Command-line agent.
        Command = "command",
    }
);

/// Service that answers requests of a kind when the settings name no other address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelService {
    /// Base URL of the requests.
    pub url: &'static str,
    pub access: ServiceAccess,
}

/// Access to a [`ModelService`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceAccess {
    /// The vendor's servers reject requests without a key.
    Key {
        /// Environment variable that usually holds the key.
        variable: &'static str,
    },
    /// A server on the user's machine needs no key and charges nothing. It allocates memory for the context window of
    /// a request.
    Local {
        /// Name of the server for people.
        name: &'static str,
    },
}

impl ModelService {
    const fn with_key(url: &'static str, variable: &'static str) -> Self {
        Self { url, access: ServiceAccess::Key { variable } }
    }

    const fn local(url: &'static str, name: &'static str) -> Self {
        Self { url, access: ServiceAccess::Local { name } }
    }
}

impl ReviewerKind {
    /// Kinds whose servers also compute embeddings.
    pub const WITH_EMBEDDINGS: &'static [Self] = &[Self::Openai, Self::Ollama];

    /// Returns the service of a kind that talks to a model over HTTP, and `None` for the other kinds.
    pub const fn service(self) -> Option<ModelService> {
        Some(match self {
            Self::Builtin | Self::Command => return None,
            Self::Openai | Self::OpenaiResponses => {
                ModelService::with_key("https://api.openai.com/v1", "OPENAI_API_KEY")
            }
            Self::Anthropic => ModelService::with_key("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
            Self::Gemini => {
                ModelService::with_key("https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY")
            }
            Self::Ollama => ModelService::local("http://127.0.0.1:11434", "Ollama"),
        })
    }

    /// Returns true if the reviewer talks to a model over HTTP.
    pub const fn is_http(self) -> bool {
        self.service().is_some()
    }

    /// Returns the host of the vendor's servers; `None` if there are none.
    pub fn default_host(self) -> Option<&'static str> {
        self.default_key_variable()?;
        self.service().and_then(|service| parse_authority(service.url))
    }

    /// Returns the environment variable that usually holds the key for [`ReviewerKind::default_host`].
    pub const fn default_key_variable(self) -> Option<&'static str> {
        match self.service() {
            Some(ModelService { access: ServiceAccess::Key { variable }, .. }) => Some(variable),
            _ => None,
        }
    }

    /// Returns the name of the server if it runs on the user's machine.
    pub const fn local_server(self) -> Option<&'static str> {
        match self.service() {
            Some(ModelService { access: ServiceAccess::Local { name }, .. }) => Some(name),
            _ => None,
        }
    }
}

/// Words of `context.embeddings.kind`: `off` and the kinds of [`ReviewerKind::WITH_EMBEDDINGS`].
pub const EMBEDDING_WORDS: &[&str] = &{
    let mut words = ["off"; ReviewerKind::WITH_EMBEDDINGS.len() + 1];
    let mut at = 1;
    while at < words.len() {
        words[at] = ReviewerKind::WITH_EMBEDDINGS[at - 1].word();
        at += 1;
    }
    words
};

#[cfg(test)]
mod tests {
    use super::super::CommandDialect;
    use super::*;

    #[test]
    fn the_default_host_is_the_one_of_the_service() {
        let hosts = ReviewerKind::ALL.iter().map(|kind| (kind.word(), kind.default_host()));
        assert_eq!(
            hosts.collect::<Vec<_>>(),
            [
                ("builtin", None),
                ("openai", Some("api.openai.com")),
                ("openai-responses", Some("api.openai.com")),
                ("anthropic", Some("api.anthropic.com")),
                ("gemini", Some("generativelanguage.googleapis.com")),
                ("ollama", None),
                ("command", None),
            ]
        );
    }

    #[test]
    fn the_documentation_names_every_kind_dialect_and_key() {
        for (file, text, [kinds, dialects]) in [
            ("docs/reviewers.md", include_str!("../../../docs/reviewers.md"), ["| `kind` |", "| `dialect` |"]),
            ("assets/config.toml", include_str!("../../../assets/config.toml"), ["# kind = ", "# dialect = "]),
        ] {
            for (start, expected) in [(kinds, ReviewerKind::WORDS), (dialects, CommandDialect::WORDS)] {
                let list = text.lines().find(|line| line.starts_with(start)).expect("a list");
                let words: Vec<&str> = list.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
                for word in expected {
                    assert!(words.contains(word), "{file}: {word} is missing: {list}");
                }
            }
            for variable in ReviewerKind::ALL.iter().filter_map(|kind| kind.default_key_variable()) {
                assert!(text.contains(variable), "{file}: {variable} is missing");
            }
        }
    }
}
