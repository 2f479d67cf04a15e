//! Finds out how an assistant looks up details: with the MCP server of revdeck where its settings start it, else with the
//! command.

use std::path::{Path, PathBuf};

use super::mcp_entries::{McpEntries, may_name_server, refused_in_claude_state, refused_project_servers};
use crate::ledger::DetailsCall;

/// Returns the call that works for an assistant with this name in a worktree. An unknown assistant has a shell.
pub(crate) fn find_details_call(agent: &str, root: &Path) -> DetailsCall {
    let Some(folders) = SettingsFolders::from_environment() else { return DetailsCall::Shell };
    let entries = match agent {
        "claude-code" => read_claude(&folders, root),
        "codex" => {
            let files = [folders.codex.join("config.toml"), root.join(".codex/config.toml")];
            let has_own_home = std::env::var_os("REVDECK_HOME").is_some();
            read_layers(&files, |text| McpEntries::from_codex(text, has_own_home))
        }
        "gemini" => read_gemini(&folders, root),
        "opencode" => {
            let files =
                [folders.opencode.as_path(), root].map(|at| [at.join("opencode.json"), at.join("opencode.jsonc")]);
            read_layers(files.as_flattened(), McpEntries::from_opencode)
        }
        _ => McpEntries::default(),
    };
    if entries.has_running_server() { DetailsCall::McpTool } else { DetailsCall::Shell }
}

/// Folders in which assistants keep the user's settings.
struct SettingsFolders {
    home: PathBuf,
    /// Folder of `.claude.json`.
    claude_state: PathBuf,
    /// Folder of `settings.json` of Claude Code.
    claude_settings: PathBuf,
    codex: PathBuf,
    opencode: PathBuf,
}

impl SettingsFolders {
    fn from_environment() -> Option<Self> {
        let home = directories::BaseDirs::new()?.home_dir().to_owned();
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let claude = variable("CLAUDE_CONFIG_DIR");
        Some(Self {
            claude_state: claude.clone().unwrap_or_else(|| home.clone()),
            claude_settings: claude.unwrap_or_else(|| home.join(".claude")),
            codex: variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            opencode: variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("opencode"),
            home,
        })
    }
}

/// Reads a settings file if it may name the server.
fn read_text(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok().filter(|settings| may_name_server(settings.as_bytes()))
}

/// Reads files of which a later one counts more.
fn read_layers(files: &[PathBuf], parse: impl Fn(&str) -> McpEntries) -> McpEntries {
    let mut entries = McpEntries::default();
    for text in files.iter().filter_map(|file| read_text(file)) {
        entries.merge(parse(&text));
    }
    entries
}

fn read_gemini(folders: &SettingsFolders, root: &Path) -> McpEntries {
    let own = folders.home.join(".gemini");
    let files = [own.join("settings.json"), root.join(".gemini/settings.json")];
    let mut entries = read_layers(&files, McpEntries::from_gemini);
    if entries.has_running_server()
        && let Ok(switches) = std::fs::read_to_string(own.join("mcp-server-enablement.json"))
    {
        entries.merge(McpEntries::from_gemini_switches(&switches));
    }
    entries
}

/// Reads the servers of Claude Code: those of `.mcp.json` that the user has not refused, those of the user, and those of
/// the user for this folder.
fn read_claude(folders: &SettingsFolders, root: &Path) -> McpEntries {
    let folder = root.to_string_lossy();
    let state = std::fs::read(folders.claude_state.join(".claude.json")).unwrap_or_default();
    let mut entries = read_text(&root.join(".mcp.json"))
        .map_or(McpEntries::default(), |project| McpEntries::from_claude_project(&project));
    let is_in_project = entries.has_running_server();
    if is_in_project {
        entries.remove(&refused_in_claude_state(&state, &folder));
        let settings = [
            folders.claude_settings.join("settings.json"),
            root.join(".claude/settings.json"),
            root.join(".claude/settings.local.json"),
        ];
        for text in settings.iter().filter_map(|file| std::fs::read_to_string(file).ok()) {
            entries.remove(&refused_project_servers(&text));
        }
    }
    if is_in_project || may_name_server(&state) {
        entries.merge(McpEntries::from_claude_state(&state, &folder));
    }
    entries
}
