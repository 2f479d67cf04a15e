//! The files of each assistant and the entries that go into them. Limits of time are in the unit of the assistant:
//! seconds, and milliseconds for Gemini.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::own_call::{MCP_WORDS, STATUS_WORDS, scoped_hook_words};
use super::settings_file::AssistantFile;
use super::{Assistant, AssistantError, InstallScope, ProgramCall, StopHook};
use super::{json_settings, line_endings, toml_settings};

/// Name of the MCP server.
pub(super) const SERVER_NAME: &str = "revdeck";
/// Time after which an assistant gives the hook up. The hook gives itself up after 0.2 s.
const HOOK_SECONDS: u64 = 5;
/// Plugin for opencode. The list of words replaces the placeholder.
const OPENCODE_PLUGIN: &str = include_str!("../../assets/assistants/opencode.js");
const PLUGIN_PLACEHOLDER: &str = "[\"REVDECK\"]";

/// Folders that decide where the settings of assistants are.
#[derive(Debug, Clone)]
pub(crate) struct AssistantFolders {
    pub(crate) home: PathBuf,
    /// Root of the working tree; `None` outside of a repository.
    pub(crate) project: Option<PathBuf>,
    /// Value of `CLAUDE_CONFIG_DIR`.
    pub(crate) claude: Option<PathBuf>,
    /// Value of `CODEX_HOME`.
    pub(crate) codex: Option<PathBuf>,
    /// Value of `XDG_CONFIG_HOME`.
    pub(crate) xdg_config: Option<PathBuf>,
    /// Folder of the install records.
    pub(crate) records: PathBuf,
}

/// Form of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// JSON, perhaps with comments.
    Json,
    Toml,
    /// A file that is revdeck's as a whole.
    Whole,
}

/// Entry of revdeck in a settings file.
#[derive(Debug)]
pub(super) enum SettingsEntry {
    /// Handler of an event.
    Hook {
        event: &'static str,
        matcher: Option<&'static str>,
        handler: Value,
    },
    /// MCP server, in the object at `parents`.
    Server {
        parents: &'static [&'static str],
        value: Value,
    },
    StatusLine {
        value: Value,
    },
}

/// Entry of revdeck that was found in a settings file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundEntry {
    /// Name such as `hooks.Stop`.
    pub(super) name: String,
    /// Content of the entry, with the matcher of a hook.
    pub(super) content: Value,
}

/// Reason why a text cannot be edited.
#[derive(Debug)]
pub(super) enum SettingsFault {
    Damaged(String),
    ByHand(String),
}

/// One settings file with the entries that an installation puts into it.
#[derive(Debug)]
pub(super) struct SettingsTarget {
    pub(super) path: PathBuf,
    pub(super) format: FileFormat,
    /// Folder that the file may not leave through links.
    place: PathBuf,
    scope: InstallScope,
    assistant: Assistant,
    entries: Vec<SettingsEntry>,
    /// Program that the entries call.
    program: ProgramCall,
    /// Content of a file that is revdeck's as a whole.
    content: String,
}

impl SettingsTarget {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the path leads out of the place, or if the file cannot be read.
    pub(super) fn read(&self) -> Result<AssistantFile, AssistantError> {
        AssistantFile::read(&self.path, &self.place, self.scope)
    }

    /// Inserts the entries into a text without any of revdeck's. Returns the content and notes about entries of others.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is damaged, has another form than the assistant's, or is somebody else's file, or if
    /// an inserted entry would not be recognised as revdeck's.
    pub(super) fn insert(
        &self,
        path: &Path,
        text: Option<&str>,
    ) -> Result<(Option<String>, Vec<String>), AssistantError> {
        match (self.format, text) {
            (FileFormat::Whole, None) => return Ok((Some(self.content.clone()), Vec::new())),
            (FileFormat::Whole, Some(text)) if self.is_edited(text) => {
                return Err(AssistantError::Edited { path: path.to_owned() });
            }
            (FileFormat::Whole, Some(_)) => return Err(AssistantError::Foreign { path: path.to_owned() }),
            (_, text) if self.entries.is_empty() => return Ok((text.map(str::to_owned), Vec::new())),
            _ => {}
        }
        let edited = line_endings::edit_lines(text.unwrap_or_default(), |text| match self.format {
            FileFormat::Toml => toml_settings::insert(text, &self.entries),
            _ => json_settings::insert(text, &self.entries),
        });
        let (edited, notes) = edited.map_err(|fault| fault.at(path))?;
        let notes: Vec<String> = notes.into_iter().map(|note| format!("{}: {note}", path.display())).collect();
        let recognised = self.remove(path, &edited)?.1.len();
        // An entry that is not recognised could neither be updated nor removed.
        if recognised + notes.len() < self.entries.len() {
            return Err(AssistantError::Unrecognisable { path: path.to_owned(), program: self.program.program() });
        }
        // Only notes and empty parents: the file stays as it is.
        Ok((if recognised == 0 { text.map(str::to_owned) } else { Some(edited) }, notes))
    }

    /// Removes revdeck's entries from a text. Returns the rest, `None` if the file itself is revdeck's, and the names of
    /// the removed entries.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is damaged.
    pub(super) fn remove(&self, path: &Path, text: &str) -> Result<(Option<String>, Vec<FoundEntry>), AssistantError> {
        let removed = line_endings::edit_lines(text, |text| match self.format {
            FileFormat::Json => json_settings::remove(text, self.assistant, &self.program),
            FileFormat::Toml => toml_settings::remove(text, self.assistant, &self.program),
            FileFormat::Whole => Ok((text.to_owned(), Vec::new())),
        });
        let (rest, entries) = removed.map_err(|fault| fault.at(path))?;
        if self.format != FileFormat::Whole {
            return Ok((Some(rest), entries));
        }
        let plugin = FoundEntry { name: "plugin".to_owned(), content: Value::Null };
        Ok(match is_own_plugin(text) {
            true => (None, vec![plugin]),
            false if self.is_edited(text) => (Some(text.to_owned()), vec![plugin]),
            false => (Some(text.to_owned()), Vec::new()),
        })
    }

    /// Returns whether a text is a file that is revdeck's as a whole, but not as this revdeck writes it.
    pub(super) fn is_edited(&self, text: &str) -> bool {
        let marker = OPENCODE_PLUGIN.lines().next().unwrap_or_default();
        self.format == FileFormat::Whole && text.starts_with(marker) && !is_own_plugin(text)
    }

    /// Returns whether a text with revdeck's entries is what an installation would write.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is damaged.
    pub(super) fn is_current(&self, path: &Path, text: &str) -> Result<bool, AssistantError> {
        if self.format == FileFormat::Whole {
            return Ok(text == self.content);
        }
        // The same entries at another place are right too.
        let (rest, found) = self.remove(path, text)?;
        let (again, _) = self.insert(path, rest.as_deref())?;
        let (_, wanted) = self.remove(path, again.as_deref().unwrap_or_default())?;
        Ok(found.len() == wanted.len() && wanted.iter().all(|entry| found.contains(entry)))
    }
}

impl SettingsFault {
    fn at(self, path: &Path) -> AssistantError {
        let path = path.to_owned();
        match self {
            Self::Damaged(why) => AssistantError::Damaged { path, why },
            Self::ByHand(why) => AssistantError::ByHand { path, why },
        }
    }
}

/// Returns whether a text is the plugin for opencode, whatever the program that it calls.
fn is_own_plugin(text: &str) -> bool {
    let (start, end) = OPENCODE_PLUGIN.split_once(PLUGIN_PLACEHOLDER).unwrap_or((OPENCODE_PLUGIN, ""));
    text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
}

/// Returns whether the name of an entry is that of a Stop hook.
pub(super) fn is_stop_entry(entry: &str) -> bool {
    matches!(entry, "hooks.Stop" | "hooks.AfterAgent")
}

/// Lists the files of an assistant, each with the entries that an installation puts into it.
///
/// # Errors
///
/// Returns an error in project scope without a repository, or if the program cannot be named in a command.
pub(super) fn list_targets(
    assistant: Assistant,
    scope: InstallScope,
    folders: &AssistantFolders,
    program: &ProgramCall,
    stop: StopHook,
) -> Result<Vec<SettingsTarget>, AssistantError> {
    let root = match scope {
        InstallScope::User => None,
        InstallScope::Project => Some(folders.project.as_deref().ok_or(AssistantError::NoProject)?),
    };
    let installation = Installation { assistant, root, folders, program, stop };
    match assistant {
        Assistant::ClaudeCode => installation.claude_targets(),
        Assistant::Codex => installation.codex_targets(),
        Assistant::Gemini => installation.gemini_targets(),
        Assistant::OpenCode => Ok(installation.opencode_targets()),
    }
}

/// Entries of revdeck for one assistant in one scope.
struct Installation<'a> {
    assistant: Assistant,
    /// Root of the project in project scope.
    root: Option<&'a Path>,
    folders: &'a AssistantFolders,
    program: &'a ProgramCall,
    stop: StopHook,
}

impl Installation<'_> {
    fn scope(&self) -> InstallScope {
        if self.root.is_some() { InstallScope::Project } else { InstallScope::User }
    }

    fn target(&self, path: PathBuf, place: &Path, format: FileFormat, entries: Vec<SettingsEntry>) -> SettingsTarget {
        SettingsTarget {
            path,
            format,
            place: place.to_owned(),
            scope: self.scope(),
            assistant: self.assistant,
            entries,
            program: self.program.clone(),
            content: String::new(),
        }
    }

    /// Returns the user's folder of an assistant and the place that its files may not leave. A folder that a variable
    /// names is a place of its own, unless it lies in the home folder.
    fn user_folder(&self, named: Option<&Path>, below_home: &str) -> (PathBuf, PathBuf) {
        match named {
            Some(folder) => {
                let (place, home) = (existing_ancestor(folder), &self.folders.home);
                let is_in_home = place
                    .canonicalize()
                    .is_ok_and(|place| home.canonicalize().is_ok_and(|home| place.starts_with(home)));
                (folder.to_owned(), if is_in_home { home.clone() } else { place })
            }
            None => (self.folders.home.join(below_home), self.folders.home.clone()),
        }
    }

    fn claude_targets(&self) -> Result<Vec<SettingsTarget>, AssistantError> {
        let claude = self.folders.claude.as_deref();
        let (settings, servers, place) = match self.root {
            Some(root) => (root.join(".claude/settings.json"), root.join(".mcp.json"), root.to_owned()),
            None => {
                let (config, place) = self.user_folder(claude, ".claude");
                let servers = claude.unwrap_or(&self.folders.home).join(".claude.json");
                (config.join("settings.json"), servers, place)
            }
        };
        let mut entries = claude_hooks(self.scope(), self.program, self.stop)?;
        // A status line in the project's settings would take the place of everybody's own.
        if self.scope() == InstallScope::User {
            let line = json!({ "type": "command", "command": self.program.shell_line(STATUS_WORDS)? });
            entries.push(SettingsEntry::StatusLine { value: line });
        }
        let server = json!({ "type": "stdio", "command": self.program.program(), "args": [MCP_WORDS] });
        let server = SettingsEntry::Server { parents: &["mcpServers"], value: server };
        Ok(vec![
            self.target(settings, &place, FileFormat::Json, entries),
            self.target(servers, &place, FileFormat::Json, vec![server]),
        ])
    }

    fn codex_targets(&self) -> Result<Vec<SettingsTarget>, AssistantError> {
        let (config, place) = match self.root {
            Some(root) => (root.join(".codex"), root.to_owned()),
            None => self.user_folder(self.folders.codex.as_deref(), ".codex"),
        };
        let (hooks_file, settings) = (config.join("hooks.json"), config.join("config.toml"));
        let hooks = codex_hooks(self.scope(), self.program, self.stop)?;
        // Codex passes on only variables that are named here.
        let server = json!({ "command": self.program.program(), "args": [MCP_WORDS], "env_vars": ["REVDECK_HOME"] });
        let server = SettingsEntry::Server { parents: &["mcp_servers"], value: server };
        // Codex warns where one folder has hooks in both files.
        let in_settings =
            !hooks_file.exists() && fs::read_to_string(&settings).is_ok_and(|text| toml_settings::has_hooks(&text));
        let (in_json, mut in_toml) = if in_settings { (Vec::new(), hooks) } else { (hooks, Vec::new()) };
        in_toml.push(server);
        Ok(vec![
            self.target(hooks_file, &place, FileFormat::Json, in_json),
            self.target(settings, &place, FileFormat::Toml, in_toml),
        ])
    }

    fn gemini_targets(&self) -> Result<Vec<SettingsTarget>, AssistantError> {
        let place = self.root.unwrap_or(&self.folders.home);
        let mut entries = gemini_hooks(self.scope(), self.program, self.stop)?;
        let server = json!({ "command": self.program.program(), "args": [MCP_WORDS] });
        entries.push(SettingsEntry::Server { parents: &["mcpServers"], value: server });
        Ok(vec![self.target(place.join(".gemini/settings.json"), place, FileFormat::Json, entries)])
    }

    fn opencode_targets(&self) -> Vec<SettingsTarget> {
        let (config, plugins, place) = match self.root {
            Some(root) => (root.to_owned(), root.join(".opencode"), root.to_owned()),
            None => {
                let (config, place) = self.user_folder(self.folders.xdg_config.as_deref(), ".config");
                (config.join("opencode"), config.join("opencode"), place)
            }
        };
        let server = json!({ "type": "local", "command": [self.program.program(), MCP_WORDS], "enabled": true });
        let server = SettingsEntry::Server { parents: &["mcp"], value: server };
        let settings = ["opencode.jsonc", "opencode.json"].map(|name| config.join(name));
        let settings = settings.iter().find(|file| file.exists()).unwrap_or(&settings[1]).clone();
        let hook = scoped_hook_words(self.assistant, self.scope());
        let words: Vec<String> =
            std::iter::once(self.program.program()).chain(hook.split(' ').map(str::to_owned)).collect();
        let mut plugin = self.target(plugins.join("plugins/revdeck.js"), &place, FileFormat::Whole, Vec::new());
        plugin.content = OPENCODE_PLUGIN.replace(PLUGIN_PLACEHOLDER, &json!(words).to_string());
        vec![plugin, self.target(settings, &place, FileFormat::Json, vec![server])]
    }
}

/// Returns the innermost folder of a path that exists.
fn existing_ancestor(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

fn claude_hooks(
    scope: InstallScope,
    program: &ProgramCall,
    stop: StopHook,
) -> Result<Vec<SettingsEntry>, AssistantError> {
    let words = scoped_hook_words(Assistant::ClaudeCode, scope);
    let handler = match scope {
        // A list of arguments needs no shell.
        InstallScope::User => json!({
            "type": "command",
            "command": program.program(),
            "args": words.split(' ').collect::<Vec<_>>(),
            "timeout": HOOK_SECONDS,
        }),
        InstallScope::Project => {
            json!({ "type": "command", "command": program.shell_line(&words)?, "timeout": HOOK_SECONDS })
        }
    };
    let mut events = vec![("UserPromptSubmit", None), ("SessionStart", Some("clear|compact")), ("PreCompact", None)];
    if stop == StopHook::On {
        events.push(("Stop", None));
    }
    Ok(to_hooks(events, &handler))
}

fn codex_hooks(
    scope: InstallScope,
    program: &ProgramCall,
    stop: StopHook,
) -> Result<Vec<SettingsEntry>, AssistantError> {
    let line = program.shell_line(&scoped_hook_words(Assistant::Codex, scope))?;
    let handler = json!({ "type": "command", "command": line, "timeout": HOOK_SECONDS });
    let mut events = vec![("UserPromptSubmit", None), ("SessionStart", Some("clear|compact")), ("PreCompact", None)];
    if stop == StopHook::On {
        events.push(("Stop", None));
    }
    Ok(to_hooks(events, &handler))
}

fn gemini_hooks(
    scope: InstallScope,
    program: &ProgramCall,
    stop: StopHook,
) -> Result<Vec<SettingsEntry>, AssistantError> {
    let line = program.shell_line(&scoped_hook_words(Assistant::Gemini, scope))?;
    let handler = json!({ "name": "revdeck", "type": "command", "command": line, "timeout": HOOK_SECONDS * 1000 });
    let mut events = vec![("BeforeAgent", None), ("SessionStart", Some("clear")), ("PreCompress", None)];
    if stop == StopHook::On {
        events.push(("AfterAgent", None));
    }
    Ok(to_hooks(events, &handler))
}

fn to_hooks(events: Vec<(&'static str, Option<&'static str>)>, handler: &Value) -> Vec<SettingsEntry> {
    let hook = |(event, matcher)| SettingsEntry::Hook { event, matcher, handler: handler.clone() };
    events.into_iter().map(hook).collect()
}
