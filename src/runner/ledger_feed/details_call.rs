//! Finds out how an assistant looks up details: with the MCP server of revdeck where its settings name it, else with the
//! command.

use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::ledger::DetailsCall;

/// Number of bytes between the program's name and its argument in an entry of an MCP server; own choice.
const MAX_ENTRY_BYTES: usize = 400;

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
    let has_server = |file: &PathBuf| std::fs::read(file).is_ok_and(|text| names_server(&text));
    if files.iter().any(has_server) { DetailsCall::McpTool } else { DetailsCall::Shell }
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
}
