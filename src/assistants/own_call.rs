//! The commands that revdeck's entries call, and how an entry is recognised as one of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Assistant, AssistantError, InstallScope};

/// Start and end of a command that does nothing where revdeck is not installed.
const GUARD: (&str, &str) = ("if command -v revdeck >/dev/null 2>&1; then ", "; fi");

/// Call of the revdeck program in the settings of an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramCall {
    /// The revdeck in `PATH`. Its commands stay the same when revdeck moves.
    InPath,
    /// The program with this path, for users whose `PATH` has no revdeck or another one.
    At(PathBuf),
    /// The revdeck in `PATH`, where there is one: for files that other people get with the repository.
    IfPresent,
}

impl ProgramCall {
    /// Returns the program for an argument list.
    pub(crate) fn program(&self) -> String {
        match self {
            Self::InPath | Self::IfPresent => "revdeck".to_owned(),
            Self::At(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Returns whether `program` is revdeck, or has the name of this program.
    fn is_named(&self, program: &str) -> bool {
        let name = file_name(program);
        is_revdeck(name) || matches!(self, Self::At(_) if name == file_name(&self.program()))
    }

    /// Returns a line for the shell that calls revdeck with `words`.
    ///
    /// # Errors
    ///
    /// Returns an error if the path of the program cannot be quoted.
    pub(crate) fn shell_line(&self, words: &str) -> Result<String, AssistantError> {
        Ok(match self {
            Self::InPath => format!("revdeck {words}"),
            Self::At(path) => format!("{} {words}", quote(path)?),
            Self::IfPresent => format!("{}revdeck {words}{}", GUARD.0, GUARD.1),
        })
    }
}

fn quote(path: &Path) -> Result<String, AssistantError> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '\n', '\r']));
    let text = text.ok_or_else(|| AssistantError::Unquotable { path: path.to_owned() })?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    Ok(if text.chars().all(is_plain) { text.to_owned() } else { format!("'{text}'") })
}

/// Returns the words of the hook command of an assistant, with which its calls are recognised in both scopes.
pub(super) fn hook_words(assistant: Assistant) -> String {
    format!("hook run {}", assistant.name())
}

/// Words behind a hook command of the project's files. Where the user's settings have the hook too, an assistant calls
/// both at each turn, and one of them stays silent.
const PROJECT_WORDS: &str = " --scope project";

/// Returns the words of the hook command of an assistant in one scope.
pub(super) fn scoped_hook_words(assistant: Assistant, scope: InstallScope) -> String {
    let words = hook_words(assistant);
    if scope == InstallScope::Project { words + PROJECT_WORDS } else { words }
}

/// Words that start the MCP server.
pub(super) const MCP_WORDS: &str = "mcp";
/// Words that print the status line.
pub(super) const STATUS_WORDS: &str = "status --line";

/// Returns whether an entry with `command` (a line or a list) and perhaps `args` calls revdeck, or the program of `own`
/// whatever its name, with exactly `words`, or with these in project scope.
pub(super) fn is_own_call(entry: &Value, words: &str, own: &ProgramCall) -> bool {
    let list = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let arguments = entry.get("args").map_or(Some(Vec::new()), list);
    let (Some(command), Some(arguments)) = (entry.get("command"), arguments) else { return false };
    match command {
        Value::Array(_) => list(command)
            .is_some_and(|all| all.split_first().is_some_and(|(program, rest)| is_own_list(program, rest, words, own))),
        Value::String(program) if !arguments.is_empty() => is_own_list(program, &arguments, words, own),
        Value::String(line) => is_own_line(line, words, own),
        _ => false,
    }
}

fn is_own_list(program: &str, arguments: &[String], words: &str, own: &ProgramCall) -> bool {
    own.is_named(program) && is_call_of(&arguments.join(" "), words)
}

/// Returns whether the arguments of a call are `words`, in any scope.
fn is_call_of(arguments: &str, words: &str) -> bool {
    arguments.strip_suffix(PROJECT_WORDS).unwrap_or(arguments) == words
}

fn is_own_line(line: &str, words: &str, own: &ProgramCall) -> bool {
    let line = line.trim();
    let line = line.strip_prefix(GUARD.0).and_then(|line| line.strip_suffix(GUARD.1)).unwrap_or(line);
    let Some((program, rest)) = (match line.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\''),
        None => line.split_once(' '),
    }) else {
        return false;
    };
    own.is_named(program) && is_call_of(rest.trim(), words)
}

/// Returns the last part of a path with separators of any system.
fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

/// Returns whether a file name is one that revdeck is installed under: with a version, as `revdeck-0.1`, or behind a
/// wrapper, as `.revdeck-wrapped`.
fn is_revdeck(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let rest = name.strip_prefix('.').unwrap_or(name).strip_prefix("revdeck");
    let is_version = |rest: &str| {
        let version = rest.strip_prefix('-').unwrap_or_default().trim_start_matches('v');
        version.starts_with(|c: char| c.is_ascii_digit())
    };
    rest.is_some_and(|rest| matches!(rest, "" | "-wrapped") || is_version(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_commands_are_recognised_and_those_of_others_are_not() {
        let words = "hook run codex";
        for program in [ProgramCall::InPath, ProgramCall::IfPresent, ProgramCall::At("/opt/my tools/revdeck".into())] {
            let line = program.shell_line(words).expect("a line");
            assert!(is_own_call(&json!({ "command": line }), words, &program), "{line}");
            assert!(!is_own_call(&json!({ "command": line }), "hook run gemini", &program), "{line}");
            let scoped =
                program.shell_line(&scoped_hook_words(Assistant::Codex, InstallScope::Project)).expect("a line");
            assert!(is_own_call(&json!({ "command": scoped }), words, &program), "{scoped}");
            let list = json!({ "command": program.program(), "args": ["hook", "run", "codex"] });
            assert!(is_own_call(&list, words, &program), "{list}");
        }
        for other in [
            json!({ "command": "revdeck hook run codex | tee log" }),
            json!({ "command": "my-revdeck hook run codex" }),
            json!({ "command": "echo revdeck hook run codex" }),
            json!({ "command": "revdeck", "args": ["hook", "run", "codex", "--more"] }),
            json!({ "command": "revdeck", "args": ["hook", 1] }),
            json!({ "command": 1 }),
            json!({ "url": "https://example.org" }),
            json!([]),
        ] {
            assert!(!is_own_call(&other, words, &ProgramCall::InPath), "{other}");
        }
        assert!(is_own_call(&json!({ "command": ["/a/revdeck", "mcp"] }), MCP_WORDS, &ProgramCall::InPath));
        assert!(ProgramCall::At("/it's/revdeck".into()).shell_line(words).is_err());
    }

    #[test]
    fn a_program_with_another_name_knows_its_own_entries() {
        let named = |name: &str, own: &ProgramCall| is_own_call(&json!({ "command": [name, "mcp"] }), MCP_WORDS, own);
        for (name, is_known) in [
            ("revdeck-0.1", true),
            ("/opt/revdeck-v2.0.1", true),
            ("/nix/store/x/bin/.revdeck-wrapped", true),
            ("C:\\tools\\revdeck.exe", true),
            ("revdeck-tool", false),
            ("revdecks", false),
            ("my-revdeck", false),
            ("rd", false),
        ] {
            assert_eq!(named(name, &ProgramCall::InPath), is_known, "{name}");
            assert!(named(name, &ProgramCall::At(format!("/elsewhere/{}", file_name(name)).into())), "{name}");
            assert!(!named("other", &ProgramCall::At(name.into())), "{name}");
        }
    }
}
