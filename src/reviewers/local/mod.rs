//! Finds servers of language models on this machine: Ollama, llama.cpp, and others with OpenAI's format.
//!
//! - Only loopback addresses are asked, never through a proxy, and a redirect is not followed.
//! - Everything a server sends is untrusted: size, time and number of models are bounded, and a name with control
//!   characters is no name.
//! - No request loads a model.

mod client;
mod llama_cpp;
mod ollama;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use client::{LoopbackClient, RequestProblem};

use super::json_access::str_at;
use crate::config::ReviewerKind;
use crate::domain::text::sanitize_line;
use crate::domain::word_enum;

/// Port on which Ollama listens by default.
pub const OLLAMA_PORT: u16 = 11434;
/// Port on which llama.cpp's server listens by default.
pub const LLAMA_CPP_PORT: u16 = 8080;
/// Maximum time for all questions to one server. Not from the literature: a server on this machine answers them in
/// milliseconds, and a user waits for the command.
const SERVER_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum number of models of one server.
const MAX_MODELS: usize = 200;
/// Maximum length of a model's name in characters: a file path at most.
const MAX_NAME_CHARS: usize = 300;
/// Maximum length of a text about a model or a server in characters.
const MAX_TEXT_CHARS: usize = 60;

word_enum!(
    /// Program that serves models.
    LocalServerKind {
        /// Ollama.
        Ollama = "ollama",
        /// The server of llama.cpp.
        LlamaCpp = "llama.cpp",
        /// Another server with OpenAI's format.
        Openai = "openai",
    }
);

impl LocalServerKind {
    /// Returns the name of the program for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::Openai => "A server with OpenAI's format",
        }
    }

    /// Returns the kind of reviewers that talk to this server.
    pub fn reviewer_kind(self) -> ReviewerKind {
        match self {
            Self::Ollama => ReviewerKind::Ollama,
            Self::LlamaCpp | Self::Openai => ReviewerKind::Openai,
        }
    }
}

/// Model of a local server, as the server describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalModel {
    /// Id by which requests name the model; without control characters.
    pub id: String,
    /// Size for people, as in `30.5B Q4_K_M`; may be empty.
    pub size: String,
    /// True if the model is in memory; a request to another one may take minutes.
    pub is_loaded: bool,
    /// Context window in tokens that the server gives to one request now, or that the model's own configuration asks for.
    pub served_window: Option<u64>,
    /// Largest context window in tokens that the model was trained for.
    pub trained_window: Option<u64>,
    /// Tool support as the server declares it; `None` if it declares none.
    pub declares_tools: Option<bool>,
    /// Share of the loaded model that is in video memory, in percent; `None` if unknown, or if none of it is.
    pub video_memory_percent: Option<u64>,
}

/// Model that cannot review, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedModel {
    /// Id on one line without control characters.
    pub id: String,
    /// Reason, to complete "left out: ID (…)".
    pub reason: String,
}

/// Models of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalModels {
    /// Models that can review, in the order of the server.
    pub usable: Vec<LocalModel>,
    /// Models that cannot.
    pub omitted: Vec<OmittedModel>,
}

impl LocalModels {
    /// Adds a model, or omits it if its id is unusable. Keeps at most [`MAX_MODELS`].
    fn push(&mut self, model: LocalModel) {
        let is_plain = sanitize_line(&model.id) == model.id && !model.id.trim().is_empty();
        if self.usable.len() >= MAX_MODELS {
            return;
        }
        if is_plain && model.id.chars().count() <= MAX_NAME_CHARS {
            self.usable.push(model);
        } else {
            self.omit(&model.id, "this is no name of a model");
        }
    }

    fn omit(&mut self, id: &str, reason: &str) {
        if self.omitted.len() < MAX_MODELS {
            self.omitted.push(OmittedModel { id: shorten(id), reason: reason.to_owned() });
        }
    }
}

/// Server of models on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    pub kind: LocalServerKind,
    pub address: SocketAddr,
    /// Version as the server gives it, on one line; may be empty.
    pub version: String,
    pub models: LocalModels,
}

impl LocalServer {
    /// Returns the address as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Result of asking one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalAnswer {
    /// Nothing listens there.
    Nobody,
    /// Something answers that is no known server of models, or cannot be used now, with the reason on one line.
    Unusable(String),
    Server(LocalServer),
}

/// Asks all addresses at once what serves models there, and returns the answers in the same order. Addresses that are
/// not loopback are not asked. `cancelled` is called every 50 ms; `true` ends all requests and returns no answers.
///
/// # Errors
///
/// Fails if the network runtime cannot start.
pub fn find_servers(
    addresses: &[SocketAddr],
    cancelled: &dyn Fn() -> bool,
) -> std::io::Result<Vec<(SocketAddr, LocalAnswer)>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut found = runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (index, address) in addresses.iter().copied().enumerate().filter(|(_, address)| address.ip().is_loopback())
        {
            asked.spawn(async move { (index, address, ask_address(address).await) });
        }
        let mut answers = Vec::new();
        while !asked.is_empty() && !cancelled() {
            let next = tokio::time::timeout(super::chat::CANCEL_CHECK_INTERVAL, asked.join_next()).await;
            answers.extend(next.ok().flatten().and_then(Result::ok));
        }
        answers
    });
    // Requests under way are dropped with the runtime.
    runtime.shutdown_background();
    found.sort_by_key(|(index, ..)| *index);
    Ok(found.into_iter().map(|(_, address, answer)| (address, answer)).collect())
}

async fn ask_address(address: SocketAddr) -> LocalAnswer {
    let client = match LoopbackClient::new(address, Instant::now() + SERVER_TIMEOUT) {
        Ok(client) => client,
        Err(problem) => return LocalAnswer::Unusable(problem),
    };
    // llama.cpp also answers some paths of Ollama, but not the one with the version. So its own path comes first.
    let properties = match client.get("props").await {
        Err(RequestProblem::NoConnection) => return LocalAnswer::Nobody,
        // The other questions would take as long.
        Err(problem @ (RequestProblem::Broken | RequestProblem::TooLong)) => {
            return LocalAnswer::Unusable(problem.describe());
        }
        properties => properties,
    };
    let served = |kind, version: &str, models| {
        LocalAnswer::Server(LocalServer { kind, address, version: shorten(version), models })
    };
    if let Ok(properties) = &properties
        && llama_cpp::is_llama_cpp(properties)
    {
        return match llama_cpp::list_models(&client, properties).await {
            Ok(models) => served(LocalServerKind::LlamaCpp, str_at(properties, "/build_info"), models),
            Err(problem) => LocalAnswer::Unusable(problem.describe()),
        };
    }
    let version = client.get("api/version").await.unwrap_or_default();
    if version.get("version").is_some_and(Value::is_string) {
        return match ollama::list_models(&client).await {
            Ok(models) => served(LocalServerKind::Ollama, str_at(&version, "/version"), models),
            Err(problem) => LocalAnswer::Unusable(problem.describe()),
        };
    }
    match client.get("v1/models").await {
        Ok(list) if list.get("data").is_some_and(Value::is_array) => {
            let kind = match llama_cpp::is_list_of_llama_cpp(&list) {
                true => LocalServerKind::LlamaCpp,
                false => LocalServerKind::Openai,
            };
            served(kind, "", llama_cpp::read_list(&list))
        }
        Ok(_) => LocalAnswer::Unusable("it is no server of models that revdeck knows".to_owned()),
        Err(problem) => LocalAnswer::Unusable(problem.describe()),
    }
}

/// Returns an untrusted text as one short line.
fn shorten(text: &str) -> String {
    let line: String = sanitize_line(text).chars().take(MAX_TEXT_CHARS + 1).collect();
    match line.chars().count() > MAX_TEXT_CHARS {
        true => line.chars().take(MAX_TEXT_CHARS - 1).chain(['…']).collect(),
        false => line,
    }
}

/// Returns the address of Ollama from the value of `OLLAMA_HOST`, in any of the forms that Ollama takes. Returns `None`
/// for another machine, and for a value that names no address. The address that stands for all interfaces includes this
/// machine.
pub fn parse_ollama_host(value: &str) -> Option<SocketAddr> {
    let value = value.trim().trim_matches(['"', '\'']);
    let (scheme, rest) = value.split_once("://").unwrap_or(("", value));
    let default_port = match scheme {
        "" => OLLAMA_PORT,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        // An IPv6 address may stand without brackets, and then without a port.
        None if authority.matches(':').count() > 1 => (authority, None),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(default_port), |port| port.parse().ok())?;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let ip = match host {
        "" => loopback,
        host if host.eq_ignore_ascii_case("localhost") => loopback,
        host => host.parse().ok()?,
    };
    let ip = if ip.is_unspecified() { loopback } else { ip };
    ip.is_loopback().then(|| SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_ollama_is_taken_only_from_this_machine() {
        for (value, expected) in [
            ("127.0.0.1:11500", Some("127.0.0.1:11500")),
            ("127.0.0.1", Some("127.0.0.1:11434")),
            ("localhost:9", Some("127.0.0.1:9")),
            ("http://LOCALHOST", Some("127.0.0.1:80")),
            ("http://127.0.0.1:11500/", Some("127.0.0.1:11500")),
            (":7000", Some("127.0.0.1:7000")),
            ("0.0.0.0", Some("127.0.0.1:11434")),
            ("[::1]:7000", Some("[::1]:7000")),
            ("::1", Some("[::1]:11434")),
            ("\"0.0.0.0:7000\"", Some("127.0.0.1:7000")),
            ("10.0.0.7:11434", None),
            ("https://127.0.0.1", None),
            ("models.example.org", None),
            ("127.0.0.1:port", None),
            ("127.0.0.1:70000", None),
        ] {
            assert_eq!(parse_ollama_host(value).map(|address| address.to_string()).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_name_with_control_characters_is_no_name() {
        let mut models = LocalModels::default();
        for id in ["a", "b\u{1b}[31m", "", "\u{202e}c", &"x".repeat(MAX_NAME_CHARS + 1)] {
            models.push(LocalModel { id: id.to_owned(), ..LocalModel::default() });
        }
        assert_eq!(models.usable.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(models.omitted.len(), 4);
        assert!(models.omitted.iter().all(|omitted| sanitize_line(&omitted.id) == omitted.id), "{models:?}");
    }
}
