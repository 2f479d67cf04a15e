//! Reads from an assistant's settings whether revdeck's MCP server runs there.
//!
//! Settings are searched for revdeck's name first, and parsed only if it occurs: the assistant waits for the answer.
//! Settings that cannot be parsed name no server, so that the reader gets the command, which always works.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use memchr::memmem;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Word that an entry of revdeck contains, as its name or in its command.
const PROGRAM_NAME: &str = "revdeck";
/// Argument that starts the server.
const SERVER_ARGUMENT: &str = "mcp";
/// Variable that names the folder of the stores.
const HOME_VARIABLE: &str = "REVDECK_HOME";
/// Tool whose call the ledger shows.
const DETAILS_TOOL: &str = "auto_review_details";

/// MCP servers that settings name, as far as the ledger needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct McpEntries {
    servers: BTreeMap<String, McpEntry>,
    /// Names of servers that are not started.
    excluded: BTreeSet<String>,
    /// Names of the only servers that are started; `None` for all.
    allowed: Option<BTreeSet<String>>,
}

/// Statements of one settings file about a server; `None` where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct McpEntry {
    is_revdeck: Option<bool>,
    is_enabled: Option<bool>,
}

/// Returns whether settings may name revdeck's server. A false `true` costs only time.
pub(super) fn may_name_server(settings: &[u8]) -> bool {
    memmem::find(settings, PROGRAM_NAME.as_bytes()).is_some()
}

impl McpEntries {
    /// Returns whether revdeck's server is started.
    pub(super) fn has_running_server(&self) -> bool {
        self.servers.iter().any(|(name, entry)| {
            entry.is_revdeck == Some(true)
                && entry.is_enabled != Some(false)
                && !self.excluded.contains(name)
                && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(name))
        })
    }

    /// Adds settings that count more than these.
    pub(super) fn merge(&mut self, stronger: Self) {
        for (name, stronger) in stronger.servers {
            let entry = self.servers.entry(name).or_default();
            entry.is_revdeck = stronger.is_revdeck.or(entry.is_revdeck);
            entry.is_enabled = stronger.is_enabled.or(entry.is_enabled);
        }
        self.excluded.extend(stronger.excluded);
        self.allowed = stronger.allowed.or(self.allowed.take());
    }

    /// Drops the servers with these names.
    pub(super) fn remove(&mut self, names: &BTreeSet<String>) {
        self.servers.retain(|name, _| !names.contains(name));
    }

    /// Reads `.claude.json`: the user's servers, and the servers and switches of the project in the folder `root`.
    pub(super) fn from_claude_state(state: &[u8], root: &str) -> Self {
        let mut parser = serde_json::Deserializer::from_slice(state);
        let Ok(state) = (ClaudeStateSeed { root }).deserialize(&mut parser) else { return Self::default() };
        let mut entries = Self::from_servers(&state.servers);
        // A project's server replaces the user's one with the same name.
        entries.merge(Self::from_servers(&state.project.servers));
        entries.excluded = state.project.disabled_servers;
        entries
    }

    /// Reads `.mcp.json` of a project.
    pub(super) fn from_claude_project(text: &str) -> Self {
        parse_json(text).map_or(Self::default(), |settings| Self::from_servers(&settings["mcpServers"]))
    }

    /// Reads the settings of Gemini CLI.
    pub(super) fn from_gemini(text: &str) -> Self {
        let Some(settings) = parse_json(text) else { return Self::default() };
        let mut entries = Self::from_servers(&settings["mcpServers"]);
        let mcp = &settings["mcp"];
        // The last two are the names of older versions.
        entries.excluded =
            [&mcp["excluded"], &settings["excludeMCPServers"]].into_iter().flat_map(list_names).collect();
        let allowed = [&mcp["allowed"], &settings["allowMCPServers"]].into_iter().find(|list| list.is_array());
        entries.allowed = allowed.map(list_names).filter(|names| !names.is_empty());
        entries
    }

    /// Reads the file into which Gemini CLI writes the servers that the user has switched off.
    pub(super) fn from_gemini_switches(text: &str) -> Self {
        let switches = parse_json(text).unwrap_or_default();
        let switches = switches.as_object().into_iter().flatten();
        let is_off = |switch: &Value| switch["enabled"] == Value::Bool(false);
        let excluded = switches.filter(|(_, switch)| is_off(switch)).map(|(name, _)| name.clone()).collect();
        Self { excluded, ..Self::default() }
    }

    /// Reads the settings of opencode.
    pub(super) fn from_opencode(text: &str) -> Self {
        let Some(settings) = parse_json(text) else { return Self::default() };
        let mut entries = Self::from_servers(&settings["mcp"]);
        entries.merge(Self::from_servers(&settings["mcp"]["servers"]));
        entries
    }

    /// Reads `config.toml` of Codex.
    ///
    /// `has_own_home` is true if `REVDECK_HOME` is set: Codex passes on only variables that an entry names, and a server
    /// without it would look into another store.
    pub(super) fn from_codex(text: &str, has_own_home: bool) -> Self {
        let Ok(settings) = toml::from_str::<Value>(text) else { return Self::default() };
        let mut entries = Self::from_servers(&settings["mcp_servers"]);
        let knows_home = |server: &Value| {
            server["env"][HOME_VARIABLE].is_string() || list_names(&server["env_vars"]).contains(HOME_VARIABLE)
        };
        if has_own_home {
            let servers = settings["mcp_servers"].as_object().into_iter().flatten();
            let without = servers.filter(|(_, server)| !knows_home(server)).map(|(name, _)| name.clone());
            entries.excluded.extend(without);
        }
        entries
    }

    fn from_servers(servers: &Value) -> Self {
        let entry = |server: &Value| McpEntry {
            is_revdeck: server.get("command").map(|_| is_revdeck(server)),
            is_enabled: match server["enabled"].as_bool() {
                _ if lacks_details_tool(server) => Some(false),
                enabled => enabled,
            },
        };
        let servers = servers.as_object().into_iter().flatten();
        let servers = servers.filter(|(_, server)| server.is_object());
        Self { servers: servers.map(|(name, server)| (name.clone(), entry(server))).collect(), ..Self::default() }
    }
}

/// Returns the names of `.mcp.json` servers that the user has refused, from settings of Claude Code.
pub(super) fn refused_project_servers(text: &str) -> BTreeSet<String> {
    parse_json(text).map_or(BTreeSet::new(), |settings| list_names(&settings["disabledMcpjsonServers"]))
}

/// Returns the names of `.mcp.json` servers that the user has refused in the folder `root`, from `.claude.json`.
pub(super) fn refused_in_claude_state(state: &[u8], root: &str) -> BTreeSet<String> {
    let mut parser = serde_json::Deserializer::from_slice(state);
    ClaudeStateSeed { root }.deserialize(&mut parser).map(|state| state.project.refused_servers).unwrap_or_default()
}

/// Returns whether a server's entry calls revdeck with the argument of the server. The command is a text or a list.
fn is_revdeck(server: &Value) -> bool {
    let words = |value: &Value| -> Vec<String> {
        match value {
            Value::String(word) => vec![word.clone()],
            Value::Array(words) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    };
    let (command, arguments) = (words(&server["command"]), words(&server["args"]));
    let mut all = command.iter().chain(&arguments);
    all.any(|word| word.contains(PROGRAM_NAME)) && all.any(|word| word == SERVER_ARGUMENT)
}

/// Returns whether an entry leaves the tool for details out. Codex and Gemini CLI have lists of tools.
fn lacks_details_tool(server: &Value) -> bool {
    let names = |keys: [&str; 2]| keys.into_iter().map(|key| &server[key]).find(|list| list.is_array());
    names(["disabled_tools", "excludeTools"]).is_some_and(|list| list_names(list).contains(DETAILS_TOOL))
        || names(["enabled_tools", "includeTools"]).is_some_and(|list| !list_names(list).contains(DETAILS_TOOL))
}

fn list_names(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Parses JSON with comments and trailing commas.
fn parse_json(text: &str) -> Option<Value> {
    let options = ParseOptions { allow_comments: true, allow_trailing_commas: true, ..ParseOptions::default() };
    CstRootNode::parse(text, &options).ok()?.value()?.to_serde_value()
}

/// The parts of `.claude.json` that name servers.
#[derive(Debug, Default)]
struct ClaudeState {
    servers: Value,
    project: ClaudeProject,
}

/// Entry of one folder in `.claude.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaudeProject {
    #[serde(rename = "mcpServers")]
    servers: Value,
    /// Servers of any kind that the user has switched off.
    #[serde(rename = "disabledMcpServers")]
    disabled_servers: BTreeSet<String>,
    /// Servers of `.mcp.json` that the user has refused.
    #[serde(rename = "disabledMcpjsonServers")]
    refused_servers: BTreeSet<String>,
}

/// Reader of `.claude.json` that builds only the entry of one folder: the file holds all projects and is often large.
struct ClaudeStateSeed<'a> {
    root: &'a str,
}

impl<'de> DeserializeSeed<'de> for ClaudeStateSeed<'_> {
    type Value = ClaudeState;

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<ClaudeState, D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ClaudeStateSeed<'_> {
    type Value = ClaudeState;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("the state of Claude Code")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ClaudeState, M::Error> {
        let mut state = ClaudeState::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "mcpServers" => state.servers = map.next_value()?,
                "projects" => state.project = map.next_value_seed(ClaudeProjectSeed { root: self.root })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(state)
    }
}

/// Reader of the object `projects` that builds only the entry of one folder.
struct ClaudeProjectSeed<'a> {
    root: &'a str,
}

impl<'de> DeserializeSeed<'de> for ClaudeProjectSeed<'_> {
    type Value = ClaudeProject;

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<ClaudeProject, D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ClaudeProjectSeed<'_> {
    type Value = ClaudeProject;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("the projects of Claude Code")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ClaudeProject, M::Error> {
        let mut project = ClaudeProject::default();
        while let Some(key) = map.next_key::<String>()? {
            match key == self.root {
                true => project = map.next_value()?,
                false => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(project)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ENTRY: &str = r#"{"command":"/usr/bin/revdeck","args":["mcp"]}"#;
    const ROOT: &str = "/work/code";

    #[rstest]
    #[case::of_the_user(r#"{"mcpServers":{"revdeck":ENTRY}}"#, true)]
    #[case::with_a_name_of_its_own(r#"{"mcpServers":{"reviews":ENTRY}}"#, true)]
    #[case::arguments_first(r#"{"mcpServers":{"r":{"args":["--quiet","mcp"],"command":"revdeck"}}}"#, true)]
    #[case::of_this_project(r#"{"projects":{"/work/code":{"mcpServers":{"revdeck":ENTRY}}}}"#, true)]
    #[case::of_another_project(r#"{"projects":{"/work/other":{"mcpServers":{"revdeck":ENTRY}}}}"#, false)]
    #[case::switched_off_here(
        r#"{"mcpServers":{"revdeck":ENTRY},"projects":{"/work/code":{"disabledMcpServers":["revdeck"]}}}"#,
        false
    )]
    #[case::switched_off_elsewhere(
        r#"{"projects":{"/work/other":{"disabledMcpServers":["revdeck"]}},"mcpServers":{"revdeck":ENTRY}}"#,
        true
    )]
    #[case::replaced_here(
        r#"{"mcpServers":{"revdeck":ENTRY},"projects":{"/work/code":{"mcpServers":{"revdeck":{"command":"other"}}}}}"#,
        false
    )]
    #[case::only_a_hook(r#"{"mcpServers":{"x":{"command":"revdeck","args":["ledger"]}}}"#, false)]
    #[case::another_server(r#"{"mcpServers":{"revdeck":{"command":"other","args":["mcp"]}}}"#, false)]
    #[case::without_a_command(r#"{"mcpServers":{"revdeck":{"url":"http://revdeck/mcp"}}}"#, false)]
    #[case::damaged(r#"{"mcpServers":{"revdeck":ENTRY}"#, false)]
    #[case::no_object("[]", false)]
    fn servers_of_claude_code(#[case] state: &str, #[case] expected: bool) {
        let state = state.replace("ENTRY", ENTRY);
        let entries = McpEntries::from_claude_state(state.as_bytes(), ROOT);
        assert_eq!(entries.has_running_server(), expected, "{state}");
    }

    #[rstest]
    #[case::entry(r#"{"mcpServers":{"revdeck":ENTRY}}"#, true)]
    #[case::in_a_comment("{ // \"mcpServers\":{\"revdeck\":ENTRY}\n }", false)]
    #[case::excluded(r#"{"mcp":{"excluded":["revdeck"]},"mcpServers":{"revdeck":ENTRY}}"#, false)]
    #[case::another_excluded(r#"{"mcp":{"excluded":["x"]},"mcpServers":{"revdeck":ENTRY}}"#, true)]
    #[case::not_allowed(r#"{"mcp":{"allowed":["x"]},"mcpServers":{"revdeck":ENTRY}}"#, false)]
    #[case::allowed(r#"{"mcp":{"allowed":["revdeck"]},"mcpServers":{"revdeck":ENTRY}}"#, true)]
    #[case::excluded_by_the_older_name(r#"{"excludeMCPServers":["revdeck"],"mcpServers":{"revdeck":ENTRY}}"#, false)]
    #[case::without_the_tool(
        r#"{"mcpServers":{"revdeck":{"command":"revdeck","args":["mcp"],"excludeTools":["auto_review_details"]}}}"#,
        false
    )]
    fn servers_of_gemini(#[case] settings: &str, #[case] expected: bool) {
        let settings = settings.replace("ENTRY", ENTRY);
        assert_eq!(McpEntries::from_gemini(&settings).has_running_server(), expected, "{settings}");
    }

    #[test]
    fn a_server_that_gemini_has_switched_off_does_not_run() {
        for (switches, expected) in
            [(r#"{"revdeck":{"enabled":false}}"#, false), (r#"{"x":{"enabled":false}}"#, true), ("", true)]
        {
            let mut entries = McpEntries::from_gemini(&r#"{"mcpServers":{"revdeck":ENTRY}}"#.replace("ENTRY", ENTRY));
            entries.merge(McpEntries::from_gemini_switches(switches));
            assert_eq!(entries.has_running_server(), expected, "{switches}");
        }
    }

    #[rstest]
    #[case::entry(r#"{"mcp":{"revdeck":{"type":"local","command":["revdeck","mcp"]}}}"#, true)]
    #[case::switched_on(r#"{"mcp":{"revdeck":{"command":["revdeck","mcp"],"enabled":true}}}"#, true)]
    #[case::switched_off(r#"{"mcp":{"revdeck":{"command":["revdeck","mcp"],"enabled":false}}}"#, false)]
    #[case::newer_form(r#"{"mcp":{"servers":{"revdeck":{"command":["revdeck","mcp","--read-only"]}}}}"#, true)]
    #[case::newer_form_off(r#"{"mcp":{"servers":{"revdeck":{"command":["revdeck","mcp"],"enabled":false}}}}"#, false)]
    #[case::another_is_off(r#"{"mcp":{"other":{"enabled":false},"revdeck":{"command":["revdeck","mcp"],},},}"#, true)]
    #[case::in_a_line_comment("{ \"mcp\": {\n // \"revdeck\": {\"command\":[\"revdeck\",\"mcp\"]},\n } }", false)]
    #[case::in_a_block_comment(r#"{ "mcp": { /* "revdeck": {"command":["revdeck","mcp"]} */ } }"#, false)]
    fn servers_of_opencode(#[case] settings: &str, #[case] expected: bool) {
        assert_eq!(McpEntries::from_opencode(settings).has_running_server(), expected, "{settings}");
    }

    #[rstest]
    #[case::entry("[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\n", true)]
    #[case::in_literal_texts("[mcp_servers.x]\ncommand = 'revdeck'\nargs = ['mcp']\n", true)]
    #[case::switched_off("[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\nenabled = false\n", false)]
    #[case::in_a_comment("# [mcp_servers.revdeck]\n# command = \"revdeck\"\n# args = [\"mcp\"]\n", false)]
    #[case::only_a_hook("[hooks]\ncommand = \"revdeck ledger\"\n\n[mcp_servers.x]\nargs = [\"mcp\"]\n", false)]
    #[case::without_the_tool(
        "[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\nenabled_tools = [\"list_runs\"]\n",
        false
    )]
    #[case::damaged("[mcp_servers.revdeck\ncommand = \"revdeck\"\nargs = [\"mcp\"]\n", false)]
    fn servers_of_codex(#[case] settings: &str, #[case] expected: bool) {
        assert_eq!(McpEntries::from_codex(settings, false).has_running_server(), expected, "{settings}");
    }

    #[rstest]
    #[case::no_variable("", false)]
    #[case::passed_on("env_vars = [\"REVDECK_HOME\"]\n", true)]
    #[case::set("env = { REVDECK_HOME = \"/x\" }\n", true)]
    #[case::another("env_vars = [\"OTHER\"]\n", false)]
    fn a_server_of_codex_needs_the_folder_of_the_stores(#[case] more: &str, #[case] expected: bool) {
        let settings = format!("[mcp_servers.revdeck]\ncommand = \"revdeck\"\nargs = [\"mcp\"]\n{more}");
        assert_eq!(McpEntries::from_codex(&settings, true).has_running_server(), expected, "{settings}");
    }

    #[test]
    fn settings_of_a_project_switch_the_server_of_the_user_off_and_on() {
        let entry = |enabled: &str| format!(r#"{{"mcp":{{"revdeck":{{"enabled":{enabled}}}}}}}"#);
        for (switch, expected) in [(entry("false"), false), (entry("true"), true), ("{}".to_owned(), true)] {
            let mut entries = McpEntries::from_opencode(r#"{"mcp":{"revdeck":{"command":["revdeck","mcp"]}}}"#);
            entries.merge(McpEntries::from_opencode(&switch));
            assert_eq!(entries.has_running_server(), expected, "{switch}");
        }
    }

    #[test]
    fn refused_servers_are_named_by_settings_and_by_the_state() {
        let names = |text: &str| BTreeSet::from([text.to_owned()]);
        assert_eq!(refused_project_servers(r#"{"disabledMcpjsonServers":["revdeck"]}"#), names("revdeck"));
        let state =
            r#"{"projects":{"/work/code":{"disabledMcpjsonServers":["a"]},"/x":{"disabledMcpjsonServers":["b"]}}}"#;
        assert_eq!(refused_in_claude_state(state.as_bytes(), ROOT), names("a"));
    }
}
