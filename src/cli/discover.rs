//! `revdeck reviewers discover`: finds models on this machine and makes reviewers of them.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use serde_json::{Value, json};

use super::args::PlainFormat;
use super::error::{CliError, CliExitCode};
use super::session::{Invocation, read_variable};
use super::{interrupt, output};
use crate::config::{LoadedSettings, ModelCatalog, ReviewerSettings, add_reviewers, render_reviewer};
use crate::domain::text::{format_thousands, sanitize_line};
use crate::report::json as report;
use crate::reviewers::local::{LLAMA_CPP_PORT, OLLAMA_PORT, parse_ollama_host};
use crate::runner::{
    DiscoveredServer, DiscoveryRequest, LocalReviewer, ModelTests, ToolVerdict, WindowSource, discover_reviewers,
};

/// Variable with the address of Ollama, as Ollama itself reads it.
const OLLAMA_HOST_VARIABLE: &str = "OLLAMA_HOST";

/// Arguments of `reviewers discover`.
#[derive(Debug, Args)]
pub struct DiscoverArgs {
    /// Models or names of reviewers; all that are found by default
    #[arg(value_name = "MODEL")]
    models: Vec<String>,
    /// Ask this port of this machine instead of 11434 (or OLLAMA_HOST) and 8080; may be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Test the tools of every model; one that is not in memory is loaded for it
    #[arg(long)]
    test: bool,
    /// Test no model, not even those in memory
    #[arg(long, conflicts_with = "test")]
    no_test: bool,
    /// Window of the reviewers in tokens; the server and the model may give less
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(4_000..=10_000_000))]
    window: Option<u64>,
    /// Write the reviewers that are not there yet into your config.toml
    #[arg(long)]
    add: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: PlainFormat,
}

/// Result of the search.
struct Discovery {
    servers: Vec<DiscoveredServer>,
    /// Addresses where something else answers, with the reason on one line.
    others: Vec<(SocketAddr, String)>,
    asked: Vec<SocketAddr>,
    notes: Vec<String>,
    /// Names of the reviewers that were written into the settings.
    added: Vec<String>,
}

/// Runs `revdeck reviewers discover`. Exits with 3 if there is no model that can review.
///
/// # Errors
///
/// Returns an error if a named model is not there, an assistant wants to add reviewers, or the settings cannot be written.
pub fn run(
    invocation: &Invocation,
    arguments: &DiscoverArgs,
    loaded: &LoadedSettings,
    models: &ModelCatalog,
) -> Result<CliExitCode, CliError> {
    if arguments.add {
        invocation.actor()?.require_person("add reviewers")?;
    }
    interrupt::exit_on_interrupt("the search was not waited for".to_owned());
    let (asked, notes) = list_addresses(&arguments.port, read_variable(OLLAMA_HOST_VARIABLE).as_deref());
    let request = DiscoveryRequest {
        addresses: &asked,
        only: &arguments.models,
        tests: match (arguments.test, arguments.no_test) {
            (true, _) => ModelTests::All,
            (_, true) => ModelTests::None,
            _ => ModelTests::Loaded,
        },
        window: arguments.window,
    };
    let say = |model: &str| {
        if std::io::stderr().is_terminal() {
            output::print_note(&format!("testing {model} …"));
        }
    };
    let known = &loaded.settings.reviewers;
    let (servers, others) = discover_reviewers(request, known, (models, &invocation.paths), &say, &|| false)
        .map_err(|error| CliError::failed(format!("cannot start the network runtime: {error}")))?;
    let mut discovery = Discovery { servers, others, asked, notes, added: Vec::new() };
    for wanted in &arguments.models {
        if !discovery.knows(wanted) {
            return Err(CliError::usage(format!("no server on this machine has a model {wanted:?}"))
                .hint("`revdeck reviewers discover` lists what there is"));
        }
    }
    if arguments.add {
        discovery.add_to_settings(invocation)?;
    }
    let is_found = discovery.reviewers().next().is_some();
    match arguments.format {
        PlainFormat::Json => output::print_json(&discovery.to_json())?,
        PlainFormat::Text if is_found => output::print(&discovery.to_text())?,
        PlainFormat::Text => return Err(discovery.nothing_error()),
    }
    if arguments.format == PlainFormat::Text {
        let file = sanitize_line(&invocation.paths.config_file().to_string_lossy()).into_owned();
        match (arguments.add, discovery.added.is_empty()) {
            (true, false) => output::print_note(&format!("added to {file}: {}", discovery.added.join(", "))),
            (true, true) => output::print_note("nothing to add: your settings have them, or they do not answer"),
            (false, _) if discovery.reviewers().any(LocalReviewer::is_new) => {
                output::print_note(&format!("`--add` writes them into {file}"));
            }
            (false, _) => {}
        }
    }
    Ok(if is_found { CliExitCode::Done } else { CliExitCode::Incomplete })
}

/// Returns the addresses to ask, and notes for the user: the given ports, or the usual ports and `OLLAMA_HOST`.
fn list_addresses(ports: &[u16], ollama_host: Option<&str>) -> (Vec<SocketAddr>, Vec<String>) {
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut notes = Vec::new();
    let mut addresses: Vec<SocketAddr> = ports.iter().copied().map(local).collect();
    if addresses.is_empty() {
        let given = ollama_host.filter(|value| !value.trim().is_empty());
        let ollama = given.and_then(parse_ollama_host);
        if given.is_some() && ollama.is_none() {
            notes.push("OLLAMA_HOST names no address of this machine, and only this machine is searched".to_owned());
        }
        addresses = [ollama.unwrap_or(local(OLLAMA_PORT)), local(LLAMA_CPP_PORT)].to_vec();
    }
    let mut seen = Vec::new();
    addresses.retain(|address| {
        !seen.contains(address) && {
            seen.push(*address);
            true
        }
    });
    (addresses, notes)
}

impl Discovery {
    fn reviewers(&self) -> impl Iterator<Item = &LocalReviewer> {
        self.servers.iter().flat_map(|server| &server.reviewers)
    }

    /// Returns true if a server has this model, or a reviewer has this name.
    fn knows(&self, wanted: &str) -> bool {
        let omitted = self.servers.iter().flat_map(|server| &server.omitted);
        self.reviewers().any(|reviewer| reviewer.name == wanted || reviewer.model.id == wanted)
            || omitted.into_iter().any(|omitted| omitted.id == wanted)
    }

    fn add_to_settings(&mut self, invocation: &Invocation) -> Result<(), CliError> {
        let new: Vec<(&str, &ReviewerSettings)> = self
            .reviewers()
            .filter(|reviewer| reviewer.is_new())
            .map(|reviewer| (reviewer.name.as_str(), &reviewer.settings))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        add_reviewers(&invocation.paths.config_file(), &new)?;
        self.added = new.iter().map(|(name, _)| (*name).to_owned()).collect();
        Ok(())
    }

    /// Returns the error for a search without a model that can review.
    fn nothing_error(&self) -> CliError {
        let mut lines = Vec::new();
        let asked: Vec<String> = self.asked.iter().map(SocketAddr::to_string).collect();
        let problem = match self.servers.is_empty() {
            true => "no server of models answers on this machine",
            false => "no model on this machine can review",
        };
        lines.push(format!("{problem}; asked: {}", asked.join(", ")));
        lines.extend(self.others.iter().map(|(address, reason)| format!("{address}: {reason}")));
        for server in &self.servers {
            let omitted = server.omitted.iter().map(|omitted| format!("{} ({})", omitted.id, omitted.reason));
            let omitted: Vec<String> = omitted.collect();
            let told = if omitted.is_empty() { "has no models".to_owned() } else { omitted.join(", ") };
            lines.push(format!("{} at {}: {told}", server.kind.name(), server.url));
        }
        lines.extend(self.notes.iter().cloned());
        CliError::failed(lines.join("\n")).hint(
            "start Ollama (`ollama serve`, `ollama pull MODEL`) or `llama-server -m MODEL --jinja`, or name another \
             port with --port",
        )
    }

    /// Returns what was found as TOML: comments, and a table for each reviewer that the settings do not have.
    fn to_text(&self) -> String {
        let mut paragraphs = Vec::new();
        for server in &self.servers {
            let version = if server.version.is_empty() { String::new() } else { format!(" {}", server.version) };
            paragraphs.push(format!("# {}{version} at {}\n", server.kind.name(), server.url));
            paragraphs.extend(server.reviewers.iter().map(format_reviewer));
            let omitted = server.omitted.iter();
            let omitted: String =
                omitted.map(|omitted| format!("# left out: {} ({})\n", omitted.id, omitted.reason)).collect();
            paragraphs.extend(Some(omitted).filter(|omitted| !omitted.is_empty()));
        }
        let others = self.others.iter().map(|(address, reason)| format!("# {address}: {reason}\n"));
        let notes = self.notes.iter().map(|note| format!("# {note}\n"));
        paragraphs.extend(Some(others.chain(notes).collect::<String>()).filter(|others| !others.is_empty()));
        paragraphs.join("\n")
    }

    fn to_json(&self) -> Value {
        let servers: Vec<Value> = self.servers.iter().map(|server| self.server_to_json(server)).collect();
        let others: Vec<Value> = self
            .others
            .iter()
            .map(|(address, reason)| json!({ "address": address.to_string(), "reason": reason }))
            .collect();
        let asked: Vec<String> = self.asked.iter().map(SocketAddr::to_string).collect();
        report::build_versioned([
            ("asked", asked.into()),
            ("servers", servers.into()),
            ("others", others.into()),
            ("added", self.added.clone().into()),
            ("notes", self.notes.clone().into()),
        ])
    }

    fn server_to_json(&self, server: &DiscoveredServer) -> Value {
        let omitted = server.omitted.iter().map(|omitted| json!({ "model": omitted.id, "reason": omitted.reason }));
        json!({
            "kind": server.kind.word(),
            "url": server.url,
            "version": server.version,
            "models": server.reviewers.iter().map(reviewer_to_json).collect::<Vec<_>>(),
            "left_out": omitted.collect::<Vec<_>>(),
        })
    }
}

fn reviewer_to_json(reviewer: &LocalReviewer) -> Value {
    let LocalReviewer { name, is_configured, settings, model, window_source, tools } = reviewer;
    json!({
        "model": model.id,
        "name": name,
        "configured": is_configured,
        "kind": settings.kind.word(),
        "base_url": settings.base_url,
        "loaded": model.is_loaded,
        "context_window": settings.context_window,
        "context_window_from": match window_source {
            WindowSource::Served => "served",
            WindowSource::Wanted => "wanted",
            WindowSource::Asked => "asked",
            WindowSource::Unknown => "unknown",
        },
        "model_window": model.trained_window,
        "tools": match tools {
            ToolVerdict::Called => "called",
            ToolVerdict::NotCalled => "not_called",
            ToolVerdict::NotDeclared => "not_given",
            ToolVerdict::NotTested { .. } => "not_tested",
            ToolVerdict::Failed(_) => "failed",
        },
        "declares_tools": model.declares_tools,
        "size": model.size,
        "video_memory_percent": model.video_memory_percent,
        "notes": reviewer.notes(),
        "settings": render_reviewer(name, settings),
    })
}

/// Returns a reviewer as comments and, if the settings do not have it, its table.
fn format_reviewer(reviewer: &LocalReviewer) -> String {
    let LocalReviewer { name, is_configured, settings, model, window_source, tools } = reviewer;
    let size = if model.size.is_empty() { String::new() } else { format!(" ({})", model.size) };
    let most = model.trained_window.filter(|most| settings.context_window != Some(*most));
    let most = most.map_or(String::new(), |most| format!(" of {}", format_thousands(most)));
    let window = match (settings.context_window, window_source) {
        (None, _) => "window not known".to_owned(),
        (Some(tokens), source) => {
            let source = match source {
                WindowSource::Served => "as served",
                WindowSource::Wanted => "as you want it",
                WindowSource::Asked | WindowSource::Unknown => "as revdeck asks for it",
            };
            format!("window {}{most} tokens, {source}", format_thousands(tokens))
        }
    };
    let tools = match tools {
        ToolVerdict::Called => "tools called as asked",
        ToolVerdict::NotCalled => "tools given and not called",
        ToolVerdict::NotDeclared => "no tools, as its server says",
        ToolVerdict::NotTested { declared: true } => "tools not tested, its server says yes",
        ToolVerdict::NotTested { declared: false } => "tools not tested",
        ToolVerdict::Failed(_) => "tools not known",
    };
    let loaded = if model.is_loaded { "in memory" } else { "not in memory" };
    let mut lines = format!("# {}{size}, {loaded}: {window}; {tools}\n", model.id);
    lines.extend(reviewer.notes().iter().map(|note| format!("# {}\n", sanitize_line(note))));
    match is_configured {
        true => lines.push_str(&format!("# your settings have it: [reviewers.{name}]\n")),
        false => lines.push_str(&render_reviewer(name, settings)),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked() {
        let asked = |ports: &[u16], host: Option<&str>| {
            let (addresses, notes) = list_addresses(ports, host);
            (addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" "), notes.len())
        };
        assert_eq!(asked(&[], None), ("127.0.0.1:11434 127.0.0.1:8080".to_owned(), 0));
        assert_eq!(asked(&[], Some("")), ("127.0.0.1:11434 127.0.0.1:8080".to_owned(), 0));
        assert_eq!(asked(&[], Some("0.0.0.0:7000")), ("127.0.0.1:7000 127.0.0.1:8080".to_owned(), 0));
        assert_eq!(asked(&[], Some("127.0.0.1:8080")), ("127.0.0.1:8080".to_owned(), 0));
        assert_eq!(asked(&[], Some("10.1.2.3:7000")), ("127.0.0.1:11434 127.0.0.1:8080".to_owned(), 1));
        assert_eq!(asked(&[1234, 8000, 1234], Some("127.0.0.1:7000")), ("127.0.0.1:1234 127.0.0.1:8000".to_owned(), 0));
    }
}
