//! Finds out how an assistant looks up details: with the MCP server of revdeck where its settings name it, else with the
//! command.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use memchr::memmem;
use serde_json::Value;

use crate::ledger::DetailsCall;

/// Number of bytes between the program's name and its argument in an entry of an MCP server; own choice.
const MAX_ENTRY_BYTES: usize = 400;

/// Name under which revdeck's MCP server stands in settings.
const SERVER_NAME: &str = "revdeck";

/// Returns the call that works for an assistant with this name in a worktree. An unknown assistant has a shell.
pub(crate) fn find_details_call(agent: &str, root: &Path) -> DetailsCall {
    let Some(home) = directories::BaseDirs::new().map(|folders| folders.home_dir().to_owned()) else {
        return DetailsCall::Shell;
    };
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let files = match agent {
        "claude-code" => {
            let own = variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone());
            vec![own.join(".claude.json"), root.join(".mcp.json")]
        }
        "codex" => {
            let own = variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
            vec![own.join("config.toml"), root.join(".codex/config.toml")]
        }
        "gemini" => vec![home.join(".gemini/settings.json"), root.join(".gemini/settings.json")],
        "opencode" => {
            let own = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("opencode");
            [own.as_path(), root].iter().flat_map(|at| [at.join("opencode.json"), at.join("opencode.jsonc")]).collect()
        }
        _ => Vec::new(),
    };
    // A later file counts more: settings of a project can switch the user's server off.
    let mut states = files.iter().filter_map(|file| find_server(agent, &std::fs::read(file).ok()?));
    if states.next_back() == Some(ServerState::On) { DetailsCall::McpTool } else { DetailsCall::Shell }
}

/// State of revdeck's MCP server in a settings file that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    On,
    Off,
}

/// Returns the state of the server in settings; `None` where they do not name it.
fn find_server(agent: &str, settings: &[u8]) -> Option<ServerState> {
    // Only these assistants know the word; their files are small.
    let may_be_off = matches!(agent, "codex" | "opencode") && memmem::find(settings, b"enabled").is_some();
    let switched_off = || {
        let text = std::str::from_utf8(settings).ok()?;
        if agent == "codex" { is_off_in_toml(text) } else { is_off_in_json(text) }
    };
    match may_be_off.then(switched_off).flatten() {
        Some(true) => Some(ServerState::Off),
        _ => names_server(settings).then_some(ServerState::On),
    }
}

/// Returns whether the settings of opencode switch the server off; `None` where they do not name it or are damaged.
fn is_off_in_json(text: &str) -> Option<bool> {
    let options = ParseOptions { allow_comments: true, allow_trailing_commas: true, ..ParseOptions::default() };
    let settings: Value = CstRootNode::parse(text, &options).ok()?.value()?.to_serde_value()?;
    let servers = settings.get("mcp")?;
    let server = servers.get("servers").and_then(|servers| servers.get(SERVER_NAME)).or(servers.get(SERVER_NAME))?;
    Some(server.get("enabled") == Some(&Value::Bool(false)))
}

/// Returns whether the settings of Codex switch the server off; `None` where they do not name it or are damaged.
fn is_off_in_toml(text: &str) -> Option<bool> {
    let settings: toml_edit::DocumentMut = text.parse().ok()?;
    let server = settings.get("mcp_servers")?.get(SERVER_NAME)?;
    Some(server.get("enabled").and_then(toml_edit::Item::as_bool) == Some(false))
}

/// Returns true if settings in JSON or TOML start `revdeck mcp`. They are searched, not parsed: they can be large, and
/// the assistant waits.
fn names_server(settings: &[u8]) -> bool {
    memmem::find_iter(settings, b"revdeck").any(|at| {
        let entry = &settings[at..settings.len().min(at + MAX_ENTRY_BYTES)];
        // A closing brace with a comma ends the entry in JSON, an empty line in TOML.
        let end = memmem::find(entry, b"},").or_else(|| memmem::find(entry, b"\n\n")).unwrap_or(entry.len());
        memmem::find(&entry[..end], b"\"mcp\"").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_starts_the_server_is_found_and_others_are_not() {
        for (settings, expected) in [
            (r#"{"mcpServers":{"revdeck":{"command":"/usr/bin/revdeck","args":["mcp"]}}}"#, true),
            ("[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\n", true),
            (r#"{"mcp":{"servers":{"revdeck":{"type":"local","command":["revdeck","mcp","--read-only"]}}}}"#, true),
            (
                r#"{"hooks":[{"command":"revdeck","args":["ledger","--hook"]},{"command":"other","args":["mcp"]}]}"#,
                false,
            ),
            ("[hooks]\ncommand = \"revdeck ledger --hook\"\n\n[mcp_servers.x]\nargs = [\"mcp\"]\n", false),
            ("", false),
        ] {
            assert_eq!(names_server(settings.as_bytes()), expected, "{settings}");
        }
    }
    #[test]
    fn a_server_that_is_switched_off_is_not_advertised() {
        let on = Some(ServerState::On);
        let off = Some(ServerState::Off);
        let entry = r#"{ "mcp": { "revdeck": { "type": "local", "command": ["revdeck", "mcp"], "enabled": true } } }"#;
        let only_switch = r#"{ /* here */ "mcp": { "revdeck": { "enabled": false }, } }"#;
        let newer = r#"{ "mcp": { "servers": { "revdeck": { "enabled": false, "command": ["revdeck", "mcp"] } } } }"#;
        let other_off = entry.replace("{ \"mcp\": {", r#"{ "mcp": { "other": { "enabled": false },"#);
        let table = "[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\nenabled = true\n";
        for (agent, settings, expected) in [
            ("opencode", entry, on),
            ("opencode", &entry.replace("true", "false"), off),
            ("opencode", only_switch, off),
            ("opencode", newer, off),
            ("opencode", &other_off, on),
            ("opencode", "{}", None),
            ("codex", table, on),
            ("codex", &table.replace("true", "false"), off),
            // Other assistants do not know the word.
            ("gemini", &entry.replace("true", "false"), on),
        ] {
            assert_eq!(find_server(agent, settings.as_bytes()), expected, "{agent}: {settings}");
        }
    }
}
