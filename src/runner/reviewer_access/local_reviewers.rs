//! Makes reviewers of the models that servers on this machine serve: finds them, tests their tools, and chooses a window
//! that fits.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Url;

use crate::config::{Dollars, ModelCatalog, Paths, ReviewerKind, ReviewerSettings};
use crate::domain::text::format_thousands;
use crate::domain::{ErrorClass, Voice};
use crate::reviewers::chat::ChatError;
use crate::reviewers::local::{
    LocalAnswer, LocalModel, LocalServer, LocalServerKind, OLLAMA_PORT, OmittedModel, find_servers,
};
use crate::runner::BUILTIN_REVIEWER;
use crate::runner::reviewer_access::reviewer_probe::{ToolProbe, probe_reviewer};

/// Smallest window of a reviewer in tokens, as the settings allow it.
const MIN_WINDOW_TOKENS: u64 = 4_000;
/// Largest window of a reviewer in tokens, as the settings allow it.
const MAX_WINDOW_TOKENS: u64 = 10_000_000;
/// Window in tokens below which a note says that reviews suffer. Below it, revdeck's tools take more than a tenth of the
/// window, see [`super::model_reviewer`].
const COMFORTABLE_WINDOW_TOKENS: u64 = 16_000;
/// Maximum time for the test of a model that is in memory.
const LOADED_TEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time for the test of a model that must be loaded first: 40 GB from a disk with 100 MB/s take 400 s.
const LOADING_TEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum length of a reviewer's name in characters.
const MAX_NAME_CHARS: usize = 60;

/// Names that the reviewer of a model cannot have: those of the built-in reviewer and of the search for secrets.
const RESERVED_NAMES: [&str; 2] = [BUILTIN_REVIEWER, Voice::SECRET_SCAN];

/// Models whose tools are tested. A test loads a model that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelTests {
    /// Models in memory.
    Loaded,
    All,
    None,
}

/// Request to find reviewers on this machine.
#[derive(Debug, Clone, Copy)]
pub struct DiscoveryRequest<'a> {
    /// Addresses to ask; those that are not loopback are not asked.
    pub addresses: &'a [SocketAddr],
    /// Ids of models, or names of their reviewers; empty for all.
    pub only: &'a [String],
    pub tests: ModelTests,
    /// Window in tokens that the user wants; `None` for the window that the server gives.
    pub window: Option<u64>,
}

/// Tool support of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolVerdict {
    /// The model called a tool as asked.
    Called,
    /// The model got a tool and did not call it.
    NotCalled,
    /// The server says that the model takes no tools; nothing was sent.
    NotDeclared,
    /// Not tested; the server says whether the model takes tools, or says nothing.
    NotTested { declared: bool },
    /// The model does not answer, with the reason on one line.
    Failed(String),
}

/// Source of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// The server gives this window, or the model's own configuration asks for it.
    Served,
    /// The user asked for it.
    Wanted,
    /// revdeck asks for it: the model's largest window, and at most what its table of models allows.
    Asked,
    /// Nobody says how large the window is.
    Unknown,
}

/// Model of a local server, as a reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalReviewer {
    /// Name of the reviewer: the one in the user's settings, or a new one.
    pub name: String,
    /// True if the user's settings have a reviewer with this server and model already.
    pub is_configured: bool,
    pub settings: ReviewerSettings,
    pub model: LocalModel,
    pub window_source: WindowSource,
    pub tools: ToolVerdict,
}

impl LocalReviewer {
    /// Returns what the user should know before using the reviewer, one line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.settings.context_window {
            None => notes.push(
                "the server does not say how large its window is: set context_window to it before a review".to_owned(),
            ),
            Some(window) if window < COMFORTABLE_WINDOW_TOKENS => {
                let more = match self.settings.kind {
                    ReviewerKind::Ollama if self.model.trained_window.is_none_or(|most| most > window) => {
                        ": `--window 16384` asks Ollama for more, which takes memory"
                    }
                    ReviewerKind::Openai if self.model.trained_window.is_some_and(|most| most > window) => {
                        ": start the server with more (llama-server -c 16384)"
                    }
                    _ => "",
                };
                notes.push(format!("{} tokens are few for a review{more}", format_thousands(window)));
            }
            Some(_) => {}
        }
        if self.settings.kind.local_server().is_none() && self.settings.price_input.is_none() {
            notes.push(
                "the server may pass requests on to a paid service, so its price is not known: price_input = 0 and \
                 price_output = 0 say that it is free"
                    .to_owned(),
            );
        }
        if let Some(percent) = self.model.video_memory_percent.filter(|percent| *percent < 100) {
            notes.push(format!("{percent} % of it are in video memory: a smaller window makes it faster"));
        }
        if let ToolVerdict::Failed(problem) = &self.tools {
            notes.push(format!("it does not answer: {problem}"));
        }
        notes
    }

    /// Returns true if the user's settings should get this reviewer.
    pub fn is_new(&self) -> bool {
        !self.is_configured && !matches!(self.tools, ToolVerdict::Failed(_))
    }
}

/// Server with the reviewers made of its models.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredServer {
    pub kind: LocalServerKind,
    pub url: String,
    /// Version on one line; may be empty.
    pub version: String,
    pub reviewers: Vec<LocalReviewer>,
    pub omitted: Vec<OmittedModel>,
}

/// The servers that were found, and the addresses where something else answers, with the reason on one line.
pub type FoundServers = (Vec<DiscoveredServer>, Vec<(SocketAddr, String)>);

/// Finds servers on this machine and makes reviewers of their models. Returns the servers, and the addresses where
/// something else answers, with the reason on one line. `begin_test` gets the id of each model before its test. `stop` is
/// called often; `true` ends everything under way.
///
/// # Errors
///
/// Fails if the network runtime cannot start.
pub fn discover_reviewers(
    request: DiscoveryRequest<'_>,
    configured: &BTreeMap<String, ReviewerSettings>,
    (models, paths): (&ModelCatalog, &Paths),
    begin_test: &dyn Fn(&str),
    stop: &dyn Fn() -> bool,
) -> std::io::Result<FoundServers> {
    let (mut servers, mut others) = (Vec::new(), Vec::new());
    let mut taken: Vec<String> = configured.keys().cloned().chain(RESERVED_NAMES.map(str::to_owned)).collect();
    for (address, answer) in find_servers(request.addresses, stop)? {
        match answer {
            LocalAnswer::Nobody => {}
            LocalAnswer::Unusable(reason) => others.push((address, reason)),
            LocalAnswer::Server(server) => {
                let mut found = DiscoveredServer {
                    kind: server.kind,
                    url: server.url(),
                    version: server.version.clone(),
                    reviewers: Vec::new(),
                    omitted: server.models.omitted.clone(),
                };
                for model in &server.models.usable {
                    match make_reviewer(&server, model, request.window, (configured, &mut taken), models) {
                        Ok(reviewer) => found.reviewers.push(reviewer),
                        Err(reason) => found.omitted.push(OmittedModel { id: model.id.clone(), reason }),
                    }
                }
                if !request.only.is_empty() {
                    let is_named = |id: &str, name: &str| request.only.iter().any(|only| only == id || only == name);
                    found.reviewers.retain(|reviewer| is_named(&reviewer.model.id, &reviewer.name));
                    found.omitted.retain(|omitted| is_named(&omitted.id, &omitted.id));
                }
                test_reviewers(&mut found, (address, request.tests), (models, paths), begin_test, stop)?;
                servers.push(found);
            }
        }
    }
    Ok((servers, others))
}

/// Makes a reviewer of a model. Adds its name to `taken`. Returns the reason if the model cannot review.
fn make_reviewer(
    server: &LocalServer,
    model: &LocalModel,
    wanted: Option<u64>,
    (configured, taken): (&BTreeMap<String, ReviewerSettings>, &mut Vec<String>),
    models: &ModelCatalog,
) -> Result<LocalReviewer, String> {
    let kind = server.kind.reviewer_kind();
    let mut settings = ReviewerSettings { model: model.id.clone(), ..ReviewerSettings::new(kind) };
    match server.kind {
        LocalServerKind::Ollama if server.address == SocketAddr::from(([127, 0, 0, 1], OLLAMA_PORT)) => {}
        LocalServerKind::Ollama => settings.base_url = Some(server.url()),
        LocalServerKind::LlamaCpp | LocalServerKind::Openai => {
            settings.base_url = Some(format!("{}/v1/", server.url()));
        }
    }
    // Any other server may be a gateway that passes requests on to a service.
    if server.kind == LocalServerKind::LlamaCpp {
        (settings.price_input, settings.price_output) = (Some(Dollars::ZERO), Some(Dollars::ZERO));
    }
    let default = models.facts_for_reviewer(&settings).context_window;
    let (window, window_source) = choose_window(kind, model, wanted, default);
    if let Some(tokens) = window.filter(|tokens| *tokens < MIN_WINDOW_TOKENS) {
        let least = format_thousands(MIN_WINDOW_TOKENS);
        return Err(format!("its window has {} tokens, and a review needs {least}", format_thousands(tokens)));
    }
    settings.context_window = window.map(|tokens| tokens.min(MAX_WINDOW_TOKENS));
    let own = configured.iter().find(|(_, reviewer)| is_same_model(reviewer, &settings)).map(|(name, _)| name);
    let name = own.cloned().unwrap_or_else(|| choose_name(&model.id, taken));
    let tools = match model.declares_tools {
        Some(false) => ToolVerdict::NotDeclared,
        declared => ToolVerdict::NotTested { declared: declared == Some(true) },
    };
    let is_configured = own.is_some();
    let mut reviewer = LocalReviewer { name, is_configured, settings, model: model.clone(), window_source, tools };
    set_tools(&mut reviewer);
    Ok(reviewer)
}

/// Returns the window of a reviewer in tokens. Ollama gives as much as a request asks for, up to what the model was
/// trained for; other servers give what they were started with.
fn choose_window(
    kind: ReviewerKind,
    model: &LocalModel,
    wanted: Option<u64>,
    default: u64,
) -> (Option<u64>, WindowSource) {
    let trained = model.trained_window.unwrap_or(u64::MAX);
    match (kind, wanted, model.served_window) {
        (ReviewerKind::Ollama, Some(wanted), _) => (Some(wanted.min(trained)), WindowSource::Wanted),
        // A window in which nothing can be reviewed is not worth keeping.
        (ReviewerKind::Ollama, None, Some(served)) if served >= MIN_WINDOW_TOKENS => {
            (Some(served), WindowSource::Served)
        }
        (ReviewerKind::Ollama, None, _) => (Some(default.min(trained)), WindowSource::Asked),
        (_, Some(wanted), Some(served)) if wanted < served => (Some(wanted), WindowSource::Wanted),
        (_, _, Some(served)) => (Some(served), WindowSource::Served),
        (_, Some(wanted), None) => (Some(wanted), WindowSource::Wanted),
        (_, None, None) => (None, WindowSource::Unknown),
    }
}

/// Returns true if both reviewers ask the same model of the same server.
fn is_same_model(one: &ReviewerSettings, other: &ReviewerSettings) -> bool {
    let endpoint = |reviewer: &ReviewerSettings| {
        let address = reviewer.base_url.as_deref().or(reviewer.kind.service().map(|service| service.url))?;
        let url = Url::parse(address).ok()?;
        let host = url.host_str().map(|host| if host == "localhost" { "127.0.0.1" } else { host }.to_owned());
        Some((host?, url.port_or_known_default()))
    };
    one.model == other.model && endpoint(one).is_some() && endpoint(one) == endpoint(other)
}

/// Returns a name for the reviewer of a model that is not in `taken`, and adds it: the last part of a path, without the
/// ending of model files and without Ollama's default tag, in lower case.
fn choose_name(id: &str, taken: &mut Vec<String>) -> String {
    let last = id.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(id);
    let last = last.strip_suffix(".gguf").unwrap_or(last);
    let last = last.strip_suffix(":latest").unwrap_or(last).to_ascii_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = last.chars().map(plain).take(MAX_NAME_CHARS).collect();
    let name = name.trim_matches(['-', '.']);
    let name = if name.is_empty() { "local" } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or_else(|| name.to_owned());
    taken.push(free.clone());
    free
}

/// Puts the verdict into the settings: a model that takes no tools is given none.
fn set_tools(reviewer: &mut LocalReviewer) {
    reviewer.settings.tools = match reviewer.tools {
        ToolVerdict::Called => Some(true),
        ToolVerdict::NotCalled | ToolVerdict::NotDeclared => Some(false),
        ToolVerdict::NotTested { .. } | ToolVerdict::Failed(_) => None,
    };
}

/// Tests the models of a server one after the other, because they share its memory. If nobody asked for these tests, the first
/// one that runs out of time is the last: a server that hangs would be waited for by each model.
fn test_reviewers(
    found: &mut DiscoveredServer,
    (address, tests): (SocketAddr, ModelTests),
    (models, paths): (&ModelCatalog, &Paths),
    begin_test: &dyn Fn(&str),
    stop: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let mut has_timed_out = false;
    for reviewer in &mut found.reviewers {
        let is_wanted = match tests {
            ModelTests::Loaded => reviewer.model.is_loaded && !has_timed_out,
            ModelTests::All => true,
            ModelTests::None => false,
        };
        if !is_wanted || stop() || (reviewer.tools == ToolVerdict::NotDeclared && reviewer.model.is_loaded) {
            continue;
        }
        begin_test(&reviewer.model.id);
        let timeout = if reviewer.model.is_loaded { LOADED_TEST_TIMEOUT } else { LOADING_TEST_TIMEOUT };
        let given = ReviewerSettings {
            tools: Some(reviewer.tools != ToolVerdict::NotDeclared),
            idle_timeout: timeout,
            total_timeout: timeout,
            attempts: 1,
            ..reviewer.settings.clone()
        };
        let answer = probe_reviewer(&reviewer.name, &given, models, paths, stop);
        reviewer.tools = match answer.map(|probe| probe.tools) {
            Ok(ToolProbe::Called) => ToolVerdict::Called,
            Ok(ToolProbe::NotCalled) => ToolVerdict::NotCalled,
            Ok(ToolProbe::NotGiven) => ToolVerdict::NotDeclared,
            Err(ChatError { cancelled: true, .. }) => continue,
            Err(error) => {
                has_timed_out |= error.class == ErrorClass::Timeout;
                ToolVerdict::Failed(error.summary)
            }
        };
        set_tools(reviewer);
        if !reviewer.model.is_loaded && found.kind == LocalServerKind::Ollama {
            measure_loaded(reviewer, address, stop)?;
        }
    }
    Ok(())
}

/// Reads what Ollama gave the model when the test loaded it: a window that is smaller than the one that was asked for is
/// the window that fits.
fn measure_loaded(reviewer: &mut LocalReviewer, address: SocketAddr, stop: &dyn Fn() -> bool) -> std::io::Result<()> {
    let Some((_, LocalAnswer::Server(server))) = find_servers(&[address], stop)?.pop() else { return Ok(()) };
    let Some(model) = server.models.usable.into_iter().find(|model| model.id == reviewer.model.id) else {
        return Ok(());
    };
    if !model.is_loaded {
        return Ok(());
    }
    let given = model.served_window.filter(|tokens| *tokens >= MIN_WINDOW_TOKENS);
    if let (Some(given), Some(asked)) = (given, reviewer.settings.context_window)
        && given < asked
    {
        (reviewer.settings.context_window, reviewer.window_source) = (Some(given), WindowSource::Served);
    }
    reviewer.model = model;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn names_are_short_unique_and_allowed() {
        let mut taken: Vec<String> = RESERVED_NAMES.into_iter().chain(["qwen3-coder-30b"]).map(str::to_owned).collect();
        for (id, expected) in [
            ("qwen3-coder:30b", "qwen3-coder-30b-2"),
            ("llama3.2:latest", "llama3.2"),
            ("../models/Meta-Llama-3.1-8B-Q4_K_M.gguf", "meta-llama-3.1-8b-q4_k_m"),
            ("C:\\models\\a.gguf", "a"),
            ("hf.co/someone/Model-GGUF:Q4", "model-gguf-q4"),
            ("builtin", "builtin-2"),
            ("RevDeck", "revdeck-2"),
            ("模型", "local"),
            ("::", "local-2"),
        ] {
            assert_eq!(choose_name(id, &mut taken), expected, "{id}");
        }
    }

    #[rstest]
    #[case::as_served(ReviewerKind::Ollama, Some(8192), Some(40_960), None, Some(8192), WindowSource::Served)]
    #[case::too_small(ReviewerKind::Ollama, Some(2048), Some(40_960), None, Some(32_768), WindowSource::Asked)]
    #[case::not_loaded(ReviewerKind::Ollama, None, Some(16_384), None, Some(16_384), WindowSource::Asked)]
    #[case::wanted(ReviewerKind::Ollama, Some(4096), Some(40_960), Some(20_000), Some(20_000), WindowSource::Wanted)]
    #[case::trained(ReviewerKind::Ollama, None, Some(8192), Some(20_000), Some(8192), WindowSource::Wanted)]
    #[case::llama(ReviewerKind::Openai, Some(8192), Some(131_072), None, Some(8192), WindowSource::Served)]
    #[case::never_more(ReviewerKind::Openai, Some(8192), Some(131_072), Some(20_000), Some(8192), WindowSource::Served)]
    #[case::less(ReviewerKind::Openai, Some(8192), None, Some(6000), Some(6000), WindowSource::Wanted)]
    #[case::unknown(ReviewerKind::Openai, None, Some(131_072), None, None, WindowSource::Unknown)]
    fn windows_are_what_the_server_gives(
        #[case] kind: ReviewerKind,
        #[case] served_window: Option<u64>,
        #[case] trained_window: Option<u64>,
        #[case] wanted: Option<u64>,
        #[case] expected: Option<u64>,
        #[case] source: WindowSource,
    ) {
        let model = LocalModel { served_window, trained_window, ..LocalModel::default() };
        assert_eq!(choose_window(kind, &model, wanted, 32_768), (expected, source));
    }

    #[test]
    fn the_same_model_of_the_same_server_is_recognised() {
        let reviewer = |kind, model: &str, base_url: Option<&str>| ReviewerSettings {
            model: model.to_owned(),
            base_url: base_url.map(str::to_owned),
            ..ReviewerSettings::new(kind)
        };
        let found = reviewer(ReviewerKind::Ollama, "m", None);
        for (own, expected) in [
            (reviewer(ReviewerKind::Ollama, "m", Some("http://localhost:11434")), true),
            (reviewer(ReviewerKind::Openai, "m", Some("http://127.0.0.1:11434/v1/")), true),
            (reviewer(ReviewerKind::Ollama, "n", None), false),
            (reviewer(ReviewerKind::Ollama, "m", Some("http://127.0.0.1:9")), false),
            (reviewer(ReviewerKind::Command, "m", None), false),
        ] {
            assert_eq!(is_same_model(&own, &found), expected, "{own:?}");
        }
    }
}
